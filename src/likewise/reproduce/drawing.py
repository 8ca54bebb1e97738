"""How the plots look, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#3b6fb6", "#d1495b", "#3a8f5c", "#e0a030", "#7a5aa6", "#6b6b6b")
INK = "#222222"


def canvas(
    columns: int = 1, rows: int = 1, *, width: float = 4.6, height: float = 3.2
) -> tuple[Figure, list[Axes]]:
    """An empty picture with its panels in reading order. No screen is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=INK)
    return figure, panels


def curve(
    panel: Axes,
    x: Sequence[float] | NDArray[Any],
    samples: NDArray[Any],
    label: str,
    color: str,
    *,
    dashed: bool = False,
) -> None:
    """The mean over trials (the first axis), and a band of one standard deviation."""
    mean, deviation = samples.mean(axis=0), samples.std(axis=0)
    panel.plot(x, mean, label=label, color=color, linestyle="--" if dashed else "-", lw=1.6)
    panel.fill_between(x, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)


def label(panel: Axes, title: str, x: str, y: str, *, legend: bool = True) -> None:
    """Title, axes and legend of a panel."""
    panel.set_title(title, fontsize=10, color=INK)
    panel.set_xlabel(x, fontsize=9)
    panel.set_ylabel(y, fontsize=9)
    if legend:
        panel.legend(frameon=False, fontsize=8)
