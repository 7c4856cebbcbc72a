"""Config options that this distribution adds to DraftMesh's groups."""
