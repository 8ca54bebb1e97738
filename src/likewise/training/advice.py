"""What to try against a collapse, by the recipe: what holds its embeddings apart, and the rest.

The advice agrees with that of :func:`likewise.diagnostics.verdict`, which knows no recipe.
"""

from __future__ import annotations

from likewise.training.recipe import Recipe

HOLDS_MORE_APART = {
    "NTXent": ("a lower", "temperature"),
    "DecoupledContrastive": ("a lower", "temperature"),
    "InfoNCE": ("a larger", "inverse_temperature"),
    "BalancedContrastive": ("a larger", "weight"),
    "GeneralizedNTXent": ("a larger", "weight"),
    "VICReg": ("a larger", "covariance_weight"),
    "BarlowTwins": ("a larger", "off_diagonal_weight"),
    "SwAV": ("a smaller", "epsilon"),
    "TotalCodingRate": ("a smaller", "invariance_weight"),
    "EMPSSL": ("a smaller", "invariance_weight"),
    "MaximumEntropyCoding": ("a larger", "distortion"),
    "CorInfoMax": ("a smaller", "invariance_weight"),
    "MatrixSSL": ("a smaller", "alignment_weight"),
}
"""Of objectives that hold embeddings apart by themselves: which argument makes them do so more."""

HOLDS_NOTHING_APART = ("BYOLRegression", "NegativeCosine", "ClassRegression", "MatrixAlignment")
"""Objectives that only bring together: something else has to keep embeddings from one point."""

WITH_SPREAD = ("simclr", "vicreg")
"""Recipes to point to where nothing in the loss holds embeddings apart."""


def collapse_advice(recipe: Recipe, *, full: bool) -> str:
    """A sentence that says what to try.

    Args:
        recipe: the one in use.
        full: whether all embeddings are the same, or only few dimensions are in use.

    >>> from likewise.training import RECIPES
    >>> print(collapse_advice(RECIPES["simclr"], full=False))
    Try a lower temperature (--objective), a larger batch, weaker augmentation, or more epochs.
    >>> print(collapse_advice(RECIPES["byol"], full=True))
    Try a lower learning rate, or a recipe whose loss holds images apart (simclr, vicreg).
    """
    own = []
    if recipe.objective in HOLDS_NOTHING_APART:
        own = [f"a recipe whose loss holds images apart ({', '.join(WITH_SPREAD)})"]
    elif recipe.objective in HOLDS_MORE_APART:
        direction, argument = HOLDS_MORE_APART[recipe.objective]
        own = [f"{direction} {argument} (--objective)"]
    if full:
        ways = ["a lower learning rate", *own]
    else:
        ways = [*own, "a larger batch", "weaker augmentation", "more epochs"]
    return f"Try {in_order(ways)}."


def in_order(ways: list[str]) -> str:
    """A list for a reader.

    >>> in_order(["a"]), in_order(["a", "b"]), in_order(["a", "b", "c"])
    ('a', 'a, or b', 'a, b, or c')
    """
    return ", or ".join([", ".join(ways[:-1]), ways[-1]]) if len(ways) > 1 else ways[0]
