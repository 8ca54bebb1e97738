"""What became of a folder since the last look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from likewise.data.source import count

SHOWN = 3


@dataclass
class Changes:
    """What an update of an index found.

    Attributes:
        added: keys that were not there; of these, `copies` have the content of another item.
        changed: keys with another content than before.
        removed: keys that are not there any more.
        renamed: (before, now), recognised by content.
        broken: why items that are there cannot be read.
        unchanged: how many items are as they were.
        embedded: how many images went through the encoder.
        first: whether there was no index before.
        seconds: how long the update took.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    copies: int = 0
    unchanged: int = 0
    embedded: int = 0
    first: bool = False
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.renamed)

    def text(self) -> str:
        """For a terminal: what changed, with a few names.

        >>> Changes(added=["a.png"], renamed=[("b.png", "c.png")], unchanged=7, embedded=1).text()
        '1 added (a.png), 1 renamed (b.png to c.png), 7 unchanged; 1 image embedded'
        """
        if self.first:
            found = [f"a new index of {count(len(self.added), 'image')}"]
        elif not self:
            found = [f"nothing changed, {count(self.unchanged, 'image')}"]
        else:
            moves = [f"{before} to {now}" for before, now in self.renamed]
            named = {
                "added": self.added,
                "changed": self.changed,
                "removed": self.removed,
                "renamed": moves,
            }
            found = [
                f"{len(names):,} {what} ({_few(names)})" for what, names in named.items() if names
            ]
            found.append(f"{self.unchanged:,} unchanged")
        text = ", ".join(found) + f"; {count(self.embedded, 'image')} embedded"
        if self.copies:
            text += f", {count(self.copies, 'copy', 'copies')} taken from others"
        if self.broken:
            text += f"; {len(self.broken):,} broken ({_few(list(self.broken))})"
        return text

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; of a new index without the list of all that is in it."""
        return {
            "first": self.first,
            "added": len(self.added) if self.first else self.added,
            "changed": self.changed,
            "removed": self.removed,
            "renamed": [list(pair) for pair in self.renamed],
            "broken": self.broken,
            "copies": self.copies,
            "unchanged": self.unchanged,
            "embedded": self.embedded,
            "seconds": round(self.seconds, 3),
        }


def _few(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
