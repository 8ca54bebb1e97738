"""docs/reproductions.md, from the files that the reproductions wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from likewise.reproduce.registry import REPRODUCTIONS
from likewise.runs.files import write_atomically

IMAGES = "images/reproductions"

HEAD = (
    "# Reproductions\n"
    "Figures and claims of the papers, run again with `likewise reproduce NAME`. Each row states "
    "the claim, what we measured and the verdict that follows from the numbers; nothing here is "
    "written by hand: `{command}` writes this page.\n\n"
    'The errors are those of a linear probe without intercept. "Error" is the probe of the '
    "authors' experiments, fitted on the test labels; the *honest* error, with the probe fitted "
    "on the training labels, stands beside it in the lists below. ± is the standard deviation "
    "over trials; for a number of queries, it is that of the numbers which single trials need, "
    "while the number itself is where the mean error gets below the level for good. Measured on "
    "{machines}; [CITATION.cff](../CITATION.cff) says which paper goes by which short name.\n"
)


def read_found(folder: Path) -> list[dict[str, Any]]:
    """What is there, in the order of the papers."""
    paths = [folder / f"{name}.json" for name in REPRODUCTIONS]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def write_page(folder: Path, page: Path) -> None:
    """Write the page and put the pictures beside it.

    Args:
        folder: where the reproductions were written to.
        page: the Markdown file; pictures go to images/reproductions next to it.
    """
    found = read_found(folder)
    images = page.parent / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for entry in found:
        _copy(folder / f"{entry['name']}.png", images / f"{entry['name']}.png")
    text = page_text(found, f"likewise reproduce all --docs {page}")
    with write_atomically(page) as aside:
        aside.write_text(text, encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    with write_atomically(target) as aside:
        aside.write_bytes(source.read_bytes())


def page_text(found: list[dict[str, Any]], command: str) -> str:
    """The page: one table of all, then a picture and all figures of each."""
    machines = " and ".join(sorted({entry["machine"] for entry in found}))
    lines = [HEAD.format(command=command, machines=machines)]
    lines += ["| name | claim | our figures | verdict |", "| --- | --- | --- | --- |"]
    for entry in found:
        checks = "<br>".join(
            f"{check['text']}{'' if check['met'] else ' **not met**'}" for check in entry["checks"]
        )
        name = entry["name"]
        verdict = entry["verdict"].split(" up to ")[0]
        if verdict != entry["verdict"]:
            verdict += " in part"
        lines.append(f"| [`{name}`](#{name}) | {entry['claim']} | {checks} | {verdict} |")
    for entry in found:
        lines += ["", *_section(entry)]
    return "\n".join(lines) + "\n"


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
        f"{entry['trials']} trials, seed {entry['seed']}, {entry['seconds']:.0f} s. {settings}.",
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
