"""Files that are asked for: what can be no file is refused before the work, not after it."""

from __future__ import annotations

from pathlib import Path


def check_file(path: Path | str, name: str = "out") -> None:
    """Raise unless a file can have that path; folders that are missing are made with it.

    >>> check_file("scores/of-today.json")
    >>> check_file(".")
    Traceback (most recent call last):
    ...
    ValueError: out is ., a folder: give the name of a file
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{name} is {path}, a folder: give the name of a file")
    above = next(folder for folder in (*path.parents, Path.cwd()) if folder.exists())
    if not above.is_dir():
        raise ValueError(f"{name} is {path}, and {above} is no folder: give a name in a folder")
