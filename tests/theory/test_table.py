"""docs/theory.md and the theory tests name the same things."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "theory.md"


def written() -> set[str]:
    names = set()
    for path in HERE.glob("test_*.py"):
        if path != Path(__file__):
            tree = ast.parse(path.read_text())
            names |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("test_")}


def listed() -> set[str]:
    return set(re.findall(r"`(test_\w+)`", TABLE.read_text()))


def test_every_listed_test_exists():
    assert listed() and listed() <= written()


def test_every_theory_test_is_listed():
    assert written() <= listed()


def test_every_row_has_a_test():
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    body = [row for row in rows if not row.startswith(("| where", "| ---"))]
    assert body and all("`test_" in row for row in body)
