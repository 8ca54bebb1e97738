"""One typed function per command-line verb; ``likewise VERB --help`` says what each takes."""

from likewise.commands.line import main

__all__ = ["main"]
