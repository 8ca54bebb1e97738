"""One typed function per command-line verb; ``likewise VERB --help`` says what each takes."""

import os

# Read when PyTorch is imported. Threads that wait give their core away: on a machine with other
# work, spinning makes training on a CPU 5 times slower (196 against 1,056 images/s were seen).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from likewise.commands.line import main  # noqa: E402

__all__ = ["main"]
