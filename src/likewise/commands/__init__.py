"""One typed function per command-line verb; ``likewise VERB --help`` says what each takes."""

import os

# Read when PyTorch is imported. Threads that wait long give their core away: on a machine with
# other work, spinning makes training on a CPU several times slower (2 cores shared with three
# other processes: 186 images/s with 100,000 turns, 694 with 10,000; alone 2,500 and about 2,100).
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

from likewise.commands.line import main  # noqa: E402

__all__ = ["main"]
