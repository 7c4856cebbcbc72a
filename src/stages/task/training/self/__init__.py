"""Training of exit adapters."""
