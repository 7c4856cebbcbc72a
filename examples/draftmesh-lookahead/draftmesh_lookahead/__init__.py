"""A draft strategy for DraftMesh, in a distribution of its own."""
