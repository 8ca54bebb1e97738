"""With crops of two sizes, what others are compared with comes from the large ones alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import Graph
from likewise.objectives.swav import balanced_codes
from likewise.training import RECIPES, Learner, recipe

SAMPLES, GLOBAL, LOCAL = 6, 2, 6


class Pooled(nn.Module):
    """An encoder for any size without batch statistics: what comes out is a function of a row."""

    dim = 6

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 4, self.dim)

    def forward(self, images: Tensor) -> Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(images, 2)
        rows: Tensor = self.layer(pooled.flatten(1)).tanh()
        return rows


def learner_of(name: str, **changes: Any) -> Learner:
    torch.manual_seed(0)
    return Learner(recipe(name), Pooled(), projector=[5], **changes).double().eval()


def crops() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(SAMPLES * views, 3, side, side, generator=generator, dtype=torch.float64)
        for views, side in ((GLOBAL, 8), (LOCAL, 4))
    ]


def by_view(learner: Learner, given: list[Tensor], place: int) -> Tensor:
    """The projector's (0) or predictor's (1) unit rows, (views, samples, dimensions)."""
    parts = [learner.student(crop)[place].detach().unflatten(0, (SAMPLES, -1)) for crop in given]
    return nn.functional.normalize(torch.cat(parts, dim=1).transpose(0, 1), dim=-1)


def value(learner: Learner, given: list[Tensor]) -> float:
    terms = learner(given, Graph.identity(SAMPLES))
    return sum(float(term.detach()) for term in terms.values())


def test_swav_predicts_the_codes_of_the_global_views_from_all_others() -> None:
    learner = learner_of("swav", options={"prototypes": 5})
    given = crops()
    prototypes = nn.functional.normalize(learner.objective.prototypes.detach(), dim=1)
    scores = by_view(learner, given, 0) @ prototypes.T
    expected = 0.0
    for view in range(GLOBAL):
        codes = balanced_codes(scores[view], epsilon=0.05, iterations=3)
        others = [other for other in range(GLOBAL + LOCAL) if other != view]
        for other in others:
            log_p = (scores[other] / 0.1).log_softmax(dim=1)
            expected -= float((codes * log_p).sum(dim=1).mean()) / len(others) / GLOBAL
    assert value(learner, given) == pytest.approx(expected, rel=1e-9)


def test_simsiam_compares_all_views_with_the_stopped_global_ones() -> None:
    learner, given = learner_of("simsiam"), crops()
    p, z = by_view(learner, given, 1), by_view(learner, given, 0)
    pairs = [(u, v) for u in range(GLOBAL + LOCAL) for v in range(GLOBAL) if u != v]
    cosines = [float((p[u] * z[v]).sum(dim=1).mean()) for u, v in pairs]
    assert value(learner, given) == pytest.approx(-sum(cosines) / len(pairs), rel=1e-9)


def test_nnclr_takes_neighbours_of_the_global_views() -> None:
    learner, given = learner_of("nnclr"), crops()
    queue = learner.queue.rows().double()
    p, z = by_view(learner, given, 1), by_view(learner, given, 0)[:GLOBAL]
    near = nn.functional.normalize(queue[(z @ queue.T).argmax(dim=-1)], dim=-1)
    expected = 0.0
    for u in range(GLOBAL + LOCAL):
        for i in range(SAMPLES):
            others = [(v, k) for v in range(GLOBAL) for k in range(SAMPLES) if (v, k) != (u, i)]
            scores = torch.stack([p[u, i] @ near[v, k] for v, k in others]) / 0.1
            alike = torch.tensor([k == i for _, k in others])
            expected += float(scores.logsumexp(dim=0) - scores[alike].mean())
    expected /= SAMPLES * (GLOBAL + LOCAL)
    assert value(learner, given) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["swav", "simsiam", "nnclr", "byol", "moco-v2"])
def test_the_target_holds_the_global_views(name: str) -> None:
    learner = learner_of(name)
    targets: list[Tensor] = []
    original = learner.objective.terms

    def terms(z: Tensor, graph: Graph, **arguments: Any) -> dict[str, Tensor]:
        assert len(z) == SAMPLES * (GLOBAL + LOCAL)
        targets.append(arguments["target"])
        return original(z, graph, **arguments)

    learner.objective.terms = terms  # type: ignore[method-assign]
    learner(crops(), Graph.identity(SAMPLES))
    assert [len(target) for target in targets] == [SAMPLES * GLOBAL]
    assert not targets[0].requires_grad


# Without a second branch; regression compares with labels.
ALONE = [
    name
    for name, one in RECIPES.items()
    if one.teacher == "none" and one.objective != "ClassRegression"
]


@pytest.mark.parametrize("name", ALONE)
def test_others_compare_all_views_and_plain_ones_have_no_target(name: str) -> None:
    options = {"slice_size": 12} if name == "w-mse" else None
    learner = learner_of(name, options=options)
    z = torch.randn(SAMPLES * 8, 5, dtype=torch.float64)
    plain = learner._other_branch([torch.zeros(SAMPLES * 8, 3, 8, 8)], z, SAMPLES)
    assert plain == (None, None)
    if name != "swav":
        assert learner._other_branch(crops(), z, SAMPLES) == (None, None)
