"""Line charts as inline SVG, coloured by the style sheet so that they follow dark mode."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 12, 40
MOST_POINTS = 240
"""Points of a line; a longer one is averaged in bins of its x."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    name: what the legend calls it.
    x, y: its points; those that are not finite are left out.
    colour: which of the style sheet's colours, from 0.
    dash: 0 solid, 1 dashed, 2 dotted: tells lines of one colour apart.
    faint: whether it stands in the background.
    """

    name: str
    x: Sequence[float] | NDArray[np.float64]
    y: Sequence[float] | NDArray[np.float64]
    colour: int = 0
    dash: int = 0
    faint: bool = False

    def points(self, log_x: bool, log_y: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Finite points in the order of x, positive where an axis is logarithmic, at most 240."""
        x, y = np.asarray(self.x, dtype=float), np.asarray(self.y, dtype=float)
        good = np.isfinite(x) & np.isfinite(y)
        good &= (x > 0) | (not log_x)
        good &= (y > 0) | (not log_y)
        order = np.argsort(x[good], kind="stable")
        x, y = x[good][order], y[good][order]
        if len(x) <= MOST_POINTS:
            return x, y
        parts = np.array_split(np.arange(len(x)), MOST_POINTS)
        return np.array([x[p].mean() for p in parts]), np.array([y[p].mean() for p in parts])


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    note: str = "",
    log_x: bool = False,
    log_y: bool = False,
    share: bool = False,
    zero: bool = False,
) -> str:
    """A figure with its caption and legend; "" where no line has two points.

    Args:
        lines: what to draw.
        title: of the figure.
        x_label: what goes along.
        note: one sentence on how to read it, as plain text.
        log_x, log_y: logarithmic axes.
        share: whether y is a share, written as percent.
        zero: whether the y axis begins at 0.

    >>> svg = chart([Line("loss", [0, 1], [2.0, 1.0])], title="Loss", x_label="epoch")
    >>> svg.count("<polyline"), chart([], title="", x_label="")
    (1, '')
    """
    drawn = [(line, *line.points(log_x, log_y)) for line in lines]
    drawn = [(line, x, y) for line, x, y in drawn if len(x)]
    # A single point is no curve.
    if all(len(x) < 2 for _, x, _ in drawn):
        return ""
    across = Axis(np.concatenate([x for _, x, _ in drawn]), log_x, LEFT, WIDTH - RIGHT)
    ends = np.concatenate([y for _, _, y in drawn])
    up = Axis(np.append(ends, 0.0) if zero else ends, log_y, HEIGHT - BOTTOM, TOP, pad=0.04)
    parts = _frame(across, up, x_label, share)
    data = []
    for line, x, y in drawn:
        px, py = across.place(x), up.place(y)
        style = f"line c{line.colour % 8} d{line.dash}{' faint' if line.faint else ''}"
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True))
        if len(x) == 1:
            parts.append(f'<circle class="{style} dot" cx="{px[0]:.1f}" cy="{py[0]:.1f}" r="3"/>')
        else:
            parts.append(f'<polyline class="{style}" points="{path}"/>')
        if not line.faint:
            data.append(
                {
                    "name": line.name,
                    "colour": line.colour % 8,
                    "x": [_short(v) for v in x],
                    "y": [_short(v) for v in y],
                    "px": [round(float(v), 1) for v in px],
                    "py": [round(float(v), 1) for v in py],
                }
            )
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    said = "; ".join(f"{line.name} ends at {_short(y[-1]):g}" for line, _, y in drawn[:8])
    caption = f"<strong>{escape(title)}</strong>"
    if note:
        caption += f" <span>{escape(note)}</span>"
    about = escape(json.dumps({"x": x_label, "share": share, "lines": data}), quote=True)
    return (
        f'<figure class="chart"><figcaption>{caption}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" '
        f'aria-label="{escape(title)}: {escape(said)}. Arrow keys read the values." '
        f'data-chart="{about}">{"".join(parts)}</svg>{legend([d[0] for d in drawn])}</figure>'
    )


def legend(lines: Sequence[Line]) -> str:
    """The names of lines, where there is more than one."""
    if len(lines) < 2:
        return ""
    items = "".join(
        f'<li><svg viewBox="0 0 26 8" aria-hidden="true"><polyline class="line '
        f'c{line.colour % 8} d{line.dash}{" faint" if line.faint else ""}" points="1,4 25,4"/>'
        f"</svg>{escape(line.name)}</li>"
        for line in lines
    )
    return f'<ul class="legend">{items}</ul>'


class Axis:
    """From values to places on the paper.

    >>> Axis(np.array([0.0, 10.0]), False, 0, 100).place(np.array([5.0]))
    array([50.])
    """

    def __init__(
        self, values: NDArray[np.float64], log: bool, start: float, end: float, pad: float = 0.0
    ) -> None:
        self.log = log
        self.start, self.end = start, end
        scaled = np.log10(values) if log else values
        low, high = float(scaled.min()), float(scaled.max())
        if high - low < 1e-9 * max(abs(high), 1.0):
            middle = max(abs(high), 1.0) * (0.5 if not log else 1.0)
            low, high = low - middle, high + middle
        room = pad * (high - low)
        # A scale that begins at 0 has no room below it.
        self.low = low if low == 0 and not log else low - room
        self.high = high + room

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values lie."""
        scaled = np.log10(values) if self.log else values
        share = (scaled - self.low) / (self.high - self.low)
        placed: NDArray[np.float64] = self.start + share * (self.end - self.start)
        return placed

    def ticks(self) -> list[float]:
        """Round values, four to seven of them."""
        if self.log and self.high - self.low >= 1.0:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            step = max(1, math.ceil((last - first + 1) / 6))
            found = [10.0**power for power in range(first, last + 1, step)]
            if len(found) > 1:
                return found
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        raw = (high - low) / 4
        power = 10 ** math.floor(math.log10(raw))
        step = next(power * m for m in (1, 2, 2.5, 5, 10) if raw <= power * m)
        first = math.ceil(low / step - 1e-9)
        count = math.floor(high / step + 1e-9) - first + 1
        values = [(first + k) * step for k in range(count)]
        return [v for v in values if v > 0 or not self.log]


def _frame(across: Axis, up: Axis, x_label: str, share: bool) -> list[str]:
    parts = []
    ticks = up.ticks()
    for value, y in zip(ticks, up.place(np.array(ticks)), strict=True):
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        written = f"{100 * value:.4g} %" if share else tick_text(value)
        parts.append(f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{written}</text>')
    bottom = HEIGHT - BOTTOM
    ticks = across.ticks()
    for value, x in zip(ticks, across.place(np.array(ticks)), strict=True):
        parts.append(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick_text(value)}</text>'
        )
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
    )
    parts.append(
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
    )
    return parts


def tick_text(value: float) -> str:
    """A tick in few letters.

    >>> [tick_text(v) for v in (0.0, 0.25, 1500.0, 2e6, 1e-4)]
    ['0', '0.25', '1.5k', '2M', '1e-4']
    """
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.4g}M"
    if size >= 1e3:
        return f"{value / 1e3:.4g}k"
    if 0 < size < 1e-3:
        mantissa, power = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(power)}"
    return f"{value:.4g}"


def _short(value: float) -> float:
    return float(f"{value:.5g}")
