"""EAGLE drafts: a one-layer head that continues the target's own hidden states."""
