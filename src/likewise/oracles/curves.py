"""Curves of simulated asking: one HTML file with drawings inside, which needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.oracles.pal import History
from likewise.runs.files import write_atomically

COLORS = ("#3b6fb6", "#d1495b", "#3a8f5c", "#e0a030", "#7a5aa6", "#6b6b6b", "#2a9d9d", "#a0522d")
WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 14, 40

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; background: #fff }
h1 { font-size: 1.4rem } svg { max-width: 100%; height: auto } figure { margin: 0 }
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .3rem .8rem;
  text-align: right; border-bottom: 1px solid #ddd } th:first-child, td:first-child
  { text-align: left } .swatch { display: inline-block; width: .8em; height: .8em;
  margin-right: .5em }
"""


@dataclass(frozen=True)
class Line:
    """One curve: a name, where it is along the axis, and the mean and the spread there."""

    name: str
    x: NDArray[np.floating]
    mean: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]


def line_over(name: str, x: Sequence[ArrayLike], y: Sequence[ArrayLike], points: int = 200) -> Line:
    """The mean over several runs, of which each has its own places along the axis.

    Between its places a run keeps its value, as it does after its last: a run that had nothing
    left to ask stays where it is. Before the first question, it is 0.

    Args:
        name: in the legend.
        x: for every run, the places, ascending.
        y: for every run, the values there.
        points: at most so many places.
    """
    runs = [np.asarray(run, dtype=float) for run in x]
    end = max((float(run[-1]) for run in runs if len(run)), default=1.0)
    if all(np.array_equal(run, np.arange(1, len(run) + 1)) for run in runs):
        at = np.arange(0, end + 1)
    else:
        at = np.linspace(0.0, end, points)
    values = []
    for places, heights in zip(runs, y, strict=True):
        padded = np.concatenate([[0.0], np.asarray(heights, dtype=float)])
        values.append(padded[np.searchsorted(places, at, side="right")])
    table = np.array(values)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    return Line(name, at, mean, np.clip(mean - spread, 0, 1), np.clip(mean + spread, 0, 1))


def drawing(lines: Sequence[Line], x_label: str, y_label: str, level: float | None = None) -> str:
    """The curves as an SVG, with bands of one standard deviation, from 0 to 1.

    Args:
        lines: the curves.
        x_label: what runs along.
        y_label: what goes up.
        level: a dashed line to reach.
    """
    end = max((float(line.x[-1]) for line in lines), default=1.0) or 1.0

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / end

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y

    def path(x: NDArray[np.floating], y: NDArray[np.floating]) -> str:
        return " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(x, y, strict=True))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11" '
        f'role="img" aria-label="{escape(y_label)} against {escape(x_label)}">'
    ]
    for tick in np.linspace(0, 1, 6):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" '
            'stroke="#eee"/>'
            f'<text x="{LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>'
        )
    for tick in _ticks(end):
        parts.append(
            f'<text x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
            f"{tick:g}</text>"
        )
    for line, color in zip(lines, _colors(len(lines)), strict=True):
        band = path(
            np.concatenate([line.x, line.x[::-1]]), np.concatenate([line.low, line.high[::-1]])
        )
        parts.append(f'<polygon points="{band}" fill="{color}" opacity="0.13"/>')
        parts.append(
            f'<polyline points="{path(line.x, line.mean)}" fill="none" stroke="{color}" '
            f'stroke-width="1.8"><title>{escape(line.name)}</title></polyline>'
        )
    if level is not None:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(level):.1f}" y2="{up(level):.1f}" '
            f'stroke="#222" stroke-dasharray="4 4"><title>{level:.3f}</title></line>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
        f'<text transform="translate(13 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text></svg>'
    )
    return "\n".join(parts)


def questions_needed(history: History, level: float) -> int | None:
    """The first question after which the accuracy is at least `level`; None: it never was."""
    reached = np.flatnonzero(history.column("accuracy") >= level)
    return int(reached[0]) + 1 if len(reached) else None


def write_page(
    path: Path | str,
    runs: Mapping[str, Sequence[History]],
    *,
    title: str,
    level: float,
    remark: str = "",
) -> None:
    """Curves and a table of figures as one HTML file.

    Args:
        path: where to; the file is there as a whole or not at all.
        runs: for every sampler, its runs.
        title: of the page.
        level: the accuracy to reach.
        remark: what the reader should know, as plain text.
    """
    with write_atomically(path) as aside:
        aside.write_text(page(runs, title=title, level=level, remark=remark), encoding="utf-8")


def page(
    runs: Mapping[str, Sequence[History]], *, title: str, level: float, remark: str = ""
) -> str:
    """The HTML of :func:`write_page`."""
    asked = {name: [h for h in histories if len(h)] for name, histories in runs.items()}
    heights = {name: [h.column("accuracy") for h in done] for name, done in asked.items() if done}
    by_question = [
        line_over(name, [np.arange(1, len(run) + 1) for run in found], found)
        for name, found in heights.items()
    ]
    by_second = [
        line_over(name, [np.cumsum(h.column("seconds")) for h in asked[name]], found)
        for name, found in heights.items()
    ]
    colors = dict(zip([line.name for line in by_question], _colors(len(by_question)), strict=True))
    rows = "\n".join(_row(name, runs[name], level, colors.get(name, "#fff")) for name in runs)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>{escape(title)}</h1>
<p>{escape(remark)} Dashed: {level:.3f}. Bands: one standard deviation over runs.</p>
<div class="plots">
<figure>{drawing(by_question, "questions", "test accuracy", level)}</figure>
<figure>{drawing(by_second, "seconds of a person's time", "test accuracy", level)}</figure>
</div>
<table><thead><tr><th>sampler</th><th>questions to {level:.3f}</th><th>answers</th>
<th>seconds</th><th>last accuracy</th><th>classes found</th><th>items placed</th>
<th>stopped</th></tr></thead><tbody>
{rows}
</tbody></table></body></html>
"""


FIGURES = ("questions", "answers", "seconds", "accuracy", "classes", "placed")
"""The columns of the table; "stopped" comes after them."""


def figures(histories: Sequence[History], level: float) -> dict[str, str]:
    """What the table says about one sampler, as text."""
    done = [history for history in histories if len(history)]
    if not done:
        return dict.fromkeys(FIGURES, "–") | {"stopped": "asks nobody"}
    needed = [questions_needed(history, level) for history in done]
    reached = [(h, k) for h, k in zip(done, needed, strict=True) if k is not None]
    share = f" (in {len(reached)} of {len(done)} runs)" if len(reached) < len(done) else ""

    def mean(values: Sequence[float], digits: int = 0) -> str:
        return f"{np.mean(values):.{digits}f}{share}" if len(values) else "never"

    return {
        "questions": mean([k for _, k in reached], 1),
        "answers": mean([float(h.answers_given()[k - 1]) for h, k in reached]),
        "seconds": mean([float(np.cumsum(h.column("seconds"))[k - 1]) for h, k in reached]),
        "accuracy": f"{np.mean([h.steps[-1].accuracy or 0.0 for h in done]):.3f}",
        "classes": f"{np.mean([h.steps[-1].n_classes for h in done]):.1f}",
        "placed": f"{np.mean([h.steps[-1].placed for h in done]):.0f}",
        "stopped": done[0].stopped,
    }


def _row(name: str, histories: Sequence[History], level: float, color: str) -> str:
    cells = "".join(f"<td>{escape(text)}</td>" for text in figures(histories, level).values())
    swatch = f'<span class="swatch" style="background:{color}"></span>'
    return f"<tr><td>{swatch}{escape(name)}</td>{cells}</tr>"


def _colors(count: int) -> list[str]:
    return [COLORS[k % len(COLORS)] for k in range(count)]


def _ticks(end: float) -> NDArray[np.floating]:
    step = 10 ** np.floor(np.log10(end))
    for factor in (0.2, 0.25, 0.5, 1.0):
        if end / (step * factor) <= 6:
            step *= factor
            break
    return np.arange(0, end + 1e-9, step)
