"""The resolved configuration, and how to make the run and the report again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.reports.markup import tag, text
from likewise.reports.subject import Subject
from likewise.reports.verdicts import run_name

NOT_OPTIONS = {"data", "out", "resume", "graph", "force"}


def config_section(subjects: Sequence[Subject]) -> str:
    """All arguments, a column a run; those that differ come first and are set in bold."""
    runs = [(i, s) for i, s in enumerate(subjects) if s.config]
    if not runs:
        return ""
    names = list(dict.fromkeys(name for _, s in runs for name in s.config))
    values = {name: [_written(s.config.get(name)) for _, s in runs] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    rows = []
    for name in [*differing, *(name for name in names if name not in differing)]:
        cells = "".join(tag("td", text(value)) for value in values[name])
        kind = "differs" if name in differing else None
        rows.append(tag("tr", tag("th", text(name), scope="row") + cells, class_=kind))
    head = "".join(
        tag("th", run_name(s, i, len(subjects)) if len(runs) > 1 else "value", scope="col")
        for i, s in runs
    )
    body = (
        '<div class="table settings" tabindex="0" role="region" aria-label="Configuration"><table>'
        f'<caption>Configuration</caption><thead><tr><th scope="col">argument</th>{head}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    note = "Every argument of the training, with what was chosen where nothing was given."
    if len(runs) > 1:
        note += f" {len(differing)} differ, in bold."
    folded = tag("details", tag("summary", f"{len(names)} arguments") + body)
    return (
        f'<section id="config"><h2>Configuration</h2><p class="lead">{note}</p>{folded}</section>'
    )


def reproduce_section(
    subjects: Sequence[Subject], command: str, versions: str, usual: Mapping[str, Any]
) -> str:
    """Commands that make each run again, and this report."""
    parts = []
    for i, s in enumerate(subjects):
        if s.kind != "run":
            continue
        title = tag("h3", run_name(s, i, len(subjects))) if len(subjects) > 1 else ""
        exact = f"likewise train --config {shlex.quote(str(s.path / 'config.yaml'))} --out AGAIN"
        parts.append(f"{title}<p>With all arguments, as they were resolved:</p>{_code(exact)}")
        if usual:
            short = _code(train_command(s.config, usual))
            parts.append(f"<p>What differs from the defaults:</p>{short}")
    parts.append(f"<p>This report:</p>{_code(command)}")
    note = (
        "The same seed on the same machine gives the same run; on another machine, or with "
        "another version of PyTorch, rounding differs."
    )
    return (
        f'<section id="reproduce"><h2>How to reproduce</h2>{"".join(parts)}'
        f'<p class="note">{note} {text(versions)}</p></section>'
    )


def train_command(config: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """`likewise train` with the arguments that are not the defaults.

    Args:
        config: the resolved arguments.
        usual: the defaults of `likewise train`.

    >>> usual = {"data": None, "epochs": 100, "seed": 0, "projector": None}
    >>> config = {"data": "my photos", "epochs": 3, "seed": 0, "projector": [8, 4]}
    >>> print(train_command(config, usual))
    likewise train 'my photos' --out AGAIN \\
      --epochs 3 --projector '[8, 4]'
    """
    options = []
    for name, value in config.items():
        if name in NOT_OPTIONS or name not in usual or value is None or value == usual[name]:
            continue
        option = f"--{name.replace('_', '-')}"
        if usual[name] is False and value is True:
            options.append(option)
        else:
            given = json.dumps(value) if isinstance(value, (list, dict, bool)) else str(value)
            options.append(f"{option} {shlex.quote(given)}")
    lines = [f"likewise train {shlex.quote(str(config.get('data')))} --out AGAIN"]
    for option in options:
        if len(lines) == 1 or len(lines[-1]) + len(option) > 76:
            lines.append(f"  {option}")
        else:
            lines[-1] += f" {option}"
    return " \\\n".join(lines)


def _written(value: Any) -> str:
    if value is None:
        return "–"
    return json.dumps(value) if isinstance(value, (list, dict, bool)) else str(value)


def _code(content: str) -> str:
    return f'<div class="code"><pre>{text(content)}</pre></div>'
