"""Trained draft heads for the default model, each with a model card."""
