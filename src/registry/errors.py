"""Errors that are the user's to mend: one line that names the option to change."""


class UserError(ValueError):
    """A mistake in the configuration or the input; the command exits with code 2."""
