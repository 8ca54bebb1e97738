"""``python -m likewise.commands``, where the script ``likewise`` is not installed."""

import sys

from likewise.commands import main

if __name__ == "__main__":
    sys.exit(main())
