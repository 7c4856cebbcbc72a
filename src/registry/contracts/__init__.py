"""What the stages promise each other.

Shapes: B sequences, N draft nodes, V vocabulary, H hidden.
"""
