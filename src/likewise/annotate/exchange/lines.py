"""JSON lines: every fact, also what was undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from likewise.annotate.exchange.plain import pair_of_row
from likewise.annotate.facts import Fact
from likewise.annotate.store import Store


def write_lines(store: Store, path: Path) -> int:
    """Write all facts of a project; how many there are."""
    count = after = 0
    with path.open("w", encoding="utf-8") as out:
        while facts := store.facts(after=after, limit=10_000):
            for _, fact in facts:
                out.write(json.dumps(fact.to_dict(), ensure_ascii=True) + "\n")
            count, after = count + len(facts), facts[-1][0]
    return count


def read_lines(path: Path, who: str = "import") -> Iterator[Fact]:
    """The facts of a file of JSON lines: facts, or pairs as ``likewise.oracles.write_answers`` has
    them, with keys for a and b.

    Args:
        path: the file.
        who: said what has no author.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
                if not isinstance(values, dict):
                    raise ValueError("a line is one JSON object")
                if "body" in values:
                    yield Fact.from_dict(values)
                else:
                    yield pair_of_row(values, who)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
