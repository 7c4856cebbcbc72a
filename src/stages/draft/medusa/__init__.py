"""Medusa: heads that guess several tokens ahead from one hidden state of the target."""
