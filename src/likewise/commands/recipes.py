"""``likewise recipes``: the methods, with paper and defaults."""

from __future__ import annotations


def recipes(*, markdown: bool = False) -> None:
    """List the methods that `likewise train --recipe` knows, with paper and defaults.

    Args:
        markdown: as a Markdown table.
    """
    from rich.console import Console
    from rich.table import Table

    from likewise.training import RECIPES

    header = (
        "recipe",
        "paper",
        "objective",
        "heads",
        "second branch",
        "views",
        "optimiser",
        "remark",
    )
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
                f"{recipe.n_views} x {recipe.views}"
                + (f" ({recipe.large_views} from 64 pixels on)" if recipe.large_views else ""),
                f"{recipe.optimizer} {recipe.lr:g}, decay {recipe.weight_decay:g}",
                recipe.remark,
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
    table.add_column("what it is", overflow="fold")
    for name, paper, *values, remark in rows:
        named = zip(header[2:], values, strict=False)
        parts = [f"{title} {value}" for title, value in named if value]
        said = f"{paper}: {'; '.join(parts)}." + (f"\nRemark: {remark}." if remark else "")
        table.add_row(name, said)
    console.print(table)
