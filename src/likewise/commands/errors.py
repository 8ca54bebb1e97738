"""What a command says to someone who called it wrongly."""


class UsageError(ValueError):
    """An argument that cannot be used: its message goes to the user, without a traceback."""
