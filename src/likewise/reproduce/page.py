"""docs/reproductions.md, from the files that the reproductions wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from likewise.reproduce.registry import REPRODUCTIONS
from likewise.reproduce.report import counted
from likewise.runs.files import write_atomically

IMAGES = "images/reproductions"

HEAD = (
    "# Reproductions\n"
    "Figures and claims of the papers, run again with `likewise reproduce NAME`. Each row states "
    "the claim, what we measured and the verdict that follows from the numbers; nothing here is "
    "written by hand: `{command}` writes this page (with other names than all, the rows of those; "
    "the others stay).\n\n"
    'The errors are those of a linear probe without intercept. "Error" is the probe of the '
    "authors' experiments, fitted on the test labels; the *honest* error, with the probe fitted "
    "on the training labels, stands beside it in the lists below. ± is the standard deviation "
    "over trials (one trial has none); for a number of queries, it is that of the numbers which "
    "single trials need, while the number itself is where the mean error gets below the level for "
    'good. "More than" and "less than" are strict: equal figures are a tie, which supports no '
    "claim. Measured on {machines}; [CITATION.cff](../CITATION.cff) says which paper goes by which "
    "short name.\n\n"
    "`geometry`, `matrix-ssl` and `balanced` train encoders. Their rows are of the fast setting "
    "(tiny encoder, scikit-learn's digits in grey at 8 x 8 pixels, seconds a training) unless "
    "the name ends with -full (ResNet-18 on CIFAR-10, `likewise reproduce NAME --full --data "
    "FOLDER` on a GPU): a check that fails at the fast setting says that the claim does not show "
    "there, not that it is wrong on the authors' data. A trial is a seed.\n"
)


ROW = re.compile(r"^\| \[`(?P<name>[^`]+)`\]")
MACHINES = re.compile(r"Measured on (?P<machines>[^;]+);")


def stems() -> list[str]:
    """The names of all rows that there can be, in the order of the papers."""
    return [f"{name}{end}" for name in REPRODUCTIONS for end in ("", "-full")]


def read_found(folder: Path) -> list[dict[str, Any]]:
    """What is there, in the order of the papers."""
    found = {}
    for path in (folder / f"{name}.json" for name in stems()):
        if path.exists():
            found[path] = json.loads(path.read_text())
            if any("outcome" not in check for check in found[path]["checks"]):
                raise ValueError(f"{path} is of an earlier version: run that reproduction again")
    return list(found.values())


def read_page(page: Path) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Rows and sections of a page by name, and the machines that it names."""
    if not page.exists():
        return {}, {}, []
    text = page.read_text(encoding="utf-8")
    rows = {match["name"]: line for line in text.splitlines() if (match := ROW.match(line))}
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    sections = {part.splitlines()[0]: f"## {part}".rstrip() for part in parts}
    machines = MACHINES.search(text)
    return rows, sections, machines["machines"].split(" and ") if machines else []


def write_page(folder: Path, page: Path) -> None:
    """Write the page and put the pictures beside it.

    What the page says about reproductions that are not in the folder stays as it is.

    Args:
        folder: where the reproductions were written to.
        page: the Markdown file; pictures go to images/reproductions next to it.
    """
    found = read_found(folder)
    images = page.parent / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for entry in found:
        _copy(folder / f"{entry['name']}.png", images / f"{entry['name']}.png")
    text = page_text(found, f"likewise reproduce all --docs {page}", *read_page(page))
    with write_atomically(page) as aside:
        aside.write_text(text, encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    with write_atomically(target) as aside:
        aside.write_bytes(source.read_bytes())


def page_text(
    found: list[dict[str, Any]],
    command: str,
    rows: dict[str, str] | None = None,
    sections: dict[str, str] | None = None,
    machines: list[str] | None = None,
) -> str:
    """The page: one table of all, then a picture and all figures of each.

    Args:
        found: what was found now.
        command: what writes the page.
        rows: by name, of what was found before; replaced by what was found now.
        sections: likewise.
        machines: that the former were measured on.
    """
    rows = {**(rows or {}), **{entry["name"]: _row(entry) for entry in found}}
    sections = {**(sections or {}), **{e["name"]: "\n".join(_section(e)) for e in found}}
    names = [name for name in stems() if name in rows and name in sections]
    named = " and ".join(sorted({*(machines or []), *(entry["machine"] for entry in found)}))
    lines = [HEAD.format(command=command, machines=named)]
    lines += ["| name | claim | our figures | verdict |", "| --- | --- | --- | --- |"]
    lines += [rows[name] for name in names]
    for name in names:
        lines += ["", sections[name]]
    return "\n".join(lines) + "\n"


def _row(entry: dict[str, Any]) -> str:
    checks = "<br>".join(
        check["text"] + ("" if check["outcome"] == "met" else f" **{check['outcome']}**")
        for check in entry["checks"]
    )
    name = entry["name"]
    return f"| [`{name}`](#{name}) | {entry['claim']} | {checks} | {_brief(entry['verdict'])} |"


def _brief(verdict: str) -> str:
    """A verdict for the table, where the checks stand beside it.

    >>> _brief("holds up to error: 0.2 (at most 0.1)"), _brief("holds; not tested: deviation")
    ('holds in part', 'holds as far as tested')
    """
    said, *untested = verdict.split("; not tested: ")
    if " up to " in said:
        return "holds in part"
    return "holds as far as tested" if untested and said == "holds" else said


def _section(entry: dict[str, Any]) -> list[str]:
    name = entry["name"]
    settings = "; ".join(f"{key}: {_listed(value)}" for key, value in entry["settings"].items())
    lines = [
        f"## {name}",
        entry["claim"],
        "",
        f"**Verdict: {entry['verdict']}.** {entry['remark']}".rstrip(),
        "",
        f'<img src="{IMAGES}/{name}.png" alt="{name}" width="640">',
        "",
        f"{counted(entry)}, seed {entry['seed']}, {entry['seconds']:.0f} s. {settings}.",
        *([f"`{entry['command']}`"] if "command" in entry else []),
        "",
        "<details><summary>All figures</summary>",
        "",
        "| figure | ours ± standard deviation |",
        "| --- | --- |",
    ]
    lines += [f"| {figure['name']} | {figure['text']} |" for figure in entry["figures"]]
    return [*lines, "", "</details>"]


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
