"""What is derived and has no run to lie in: a folder in the user's cache, and names there."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path


def cache_folder(kind: str) -> Path:
    """The folder of one kind of derived files: ``~/.cache/likewise/KIND``.

    ``XDG_CACHE_HOME`` moves it, as the XDG Base Directory Specification has it. Where it is new,
    only its owner may look into it: what is derived from private images is private, too.

    >>> from unittest.mock import patch
    >>> from tempfile import mkdtemp
    >>> with patch.dict(os.environ, XDG_CACHE_HOME=mkdtemp()):
    ...     folder = cache_folder("index")
    >>> folder.is_dir(), folder.parts[-2:]
    (True, ('likewise', 'index'))
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification wants a path that is no absolute one ignored.
    cache = given if given.is_absolute() else Path.home() / ".cache"
    folder = cache / "likewise" / kind
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def distinct_name(title: str, *places: str) -> str:
    """A name that can be read, and is another one for other places: TITLE-HASH.

    Args:
        title: what a reader knows it by.
        places: what it belongs to, in words; a file or folder counts by its absolute path.

    >>> distinct_name("My photos!", "/home/ada/My photos!")
    'my-photos-555db60c'
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-").lower() or "images"
    identity = "\n".join(map(_settled, places)).encode("utf-8", "surrogatepass")
    return f"{words}-{hashlib.sha256(identity).hexdigest()[:8]}"


def _settled(place: str) -> str:
    try:
        return str(Path(place).resolve()) if Path(place).exists() else place
    except OSError:  # too long for a path
        return place
