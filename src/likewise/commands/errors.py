"""What a command says to someone who called it wrongly."""

import importlib


class UsageError(ValueError):
    """An argument that cannot be used: its message goes to the user, without a traceback."""


class Interrupted(KeyboardInterrupt):
    """A command that a signal has ended in good order, and that has said so itself.

    Args:
        number: of the signal; the exit code is 128 more, as shells have it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def needs(what: str, extra: str, *modules: str) -> None:
    """Refuse what a library that is not installed is needed for, and name the extra that has it.

    Args:
        what: is asked for.
        extra: of this package, which installs the libraries.
        *modules: that have to be importable.

    >>> needs("flying", "wings", "feathers")
    Traceback (most recent call last):
    ...
    likewise.commands.errors.UsageError: flying needs feathers: pip install '.[wings]' in ...
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(
                f"{what} needs {module}: pip install '.[{extra}]' in the checkout"
            ) from error
