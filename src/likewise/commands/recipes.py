"""``likewise recipes``: the methods, with paper and defaults."""

from __future__ import annotations

WIDE = 140
"""Columns of a terminal from which on there is one for everything; else two do."""


def recipes(*, markdown: bool = False) -> None:
    """List the methods that `likewise train --recipe` knows, with paper and defaults.

    Args:
        markdown: as a Markdown table.
    """
    from rich.console import Console
    from rich.table import Table

    from likewise.training import RECIPES

    header = ("recipe", "paper", "objective", "heads", "second branch", "views", "optimiser")
    rows = []
    for name, recipe in RECIPES.items():
        options = ", ".join(f"{key}={value}" for key, value in recipe.options.items())
        heads = "-".join(map(str, recipe.projector))
        if recipe.predictor is not None:
            heads += f" + predictor {'-'.join(map(str, recipe.predictor))}"
        branch = {"none": "", "stopped": "stop-gradient", "momentum": f"teacher {recipe.momentum}"}
        power = recipe.dimension_power
        times = f", x d^{power}" if power else ""
        second = branch[recipe.teacher] + (f", queue {recipe.queue}" if recipe.queue else "")
        rows.append(
            (
                name,
                recipe.paper,
                f"{recipe.objective}({options}){times}",
                heads,
                second,
                f"{recipe.n_views} x {recipe.views}",
                f"{recipe.optimizer} {recipe.lr:g}, decay {recipe.weight_decay:g}",
            )
        )
    if markdown:
        print("| " + " | ".join(header) + " |")
        print("|" + " --- |" * len(header))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    console = Console()
    table = Table(
        caption="learning rates are for 256 images a batch, and grow with it; x d^p: the loss is "
        "multiplied by dimensions ** p",
    )
    # A name is there to be typed: it is never cut.
    table.add_column(header[0], no_wrap=True, min_width=max(map(len, RECIPES)))
    if console.width >= WIDE:
        for title in header[1:]:
            table.add_column(title, overflow="fold")
        for row in rows:
            table.add_row(*row)
    else:
        table.add_column("what it is", overflow="fold")
        for name, paper, *values in rows:
            named = zip(header[2:], values, strict=True)
            parts = [f"{title} {value}" for title, value in named if value]
            table.add_row(name, f"{paper}: {'; '.join(parts)}")
    console.print(table)
