"""What labels and answers say about pairs, counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise import Graph
from likewise.data import open_source
from likewise.oracles.answers import Answer
from likewise.oracles.beliefs import ExactBeliefs
from likewise.training import known
from likewise.training.batches import plan_batches
from likewise.training.choices import choose_machine
from likewise.training.known import mixed, usual_weight
from likewise.training.signed_pairs import signed_pairs
from tests.training.driver import pictures


def naive(graph: Graph) -> tuple[int, int]:
    dense = np.asarray(graph.dense())
    above = np.triu(np.ones_like(dense), 1) > 0
    return int((dense[above] > 0).sum()), int((dense[above] < 0).sum())


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_those_of_the_whole_matrix(seed: int) -> None:
    """Beliefs of answers that agree, some of them graded: classes, edges, and edges in classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 30)
    beliefs = ExactBeliefs(30)
    for _ in range(60):
        i, j = rng.choice(30, 2, replace=False)
        grade = float(rng.choice([0.5, 1.0]))
        beliefs.add([Answer(int(i), int(j), grade if labels[i] == labels[j] else -grade)])
    graph = beliefs.graph()
    found = signed_pairs(graph)
    assert found == naive(graph)
    assert min(found) > 10
    rows = torch.arange(0, 30, 2)
    assert signed_pairs(graph.subset(rows)) == naive(graph.subset(rows))


def test_by_default_what_is_known_weighs_as_much_as_the_views() -> None:
    """By batches that are drawn: the entries of known pairs beside those of samples themselves."""
    rng = np.random.default_rng(0)
    n, batch_size = 60, 12
    labels = np.where(rng.random(n) < 0.7, rng.integers(0, 3, n), -1)
    pairs = int(np.triu((labels[:, None] == labels) & (labels >= 0), 1).sum())
    weight = usual_weight(pairs, n, batch_size)
    dense = np.asarray(mixed(Graph.from_labels(torch.from_numpy(labels)), weight).dense())
    of_pairs, of_views = 0.0, 0.0
    for _ in range(4000):
        drawn = rng.choice(n, batch_size, replace=False)
        block = dense[np.ix_(drawn, drawn)]
        of_pairs += block.sum() - block.trace()
        of_views += batch_size * (1 - weight)
    assert of_pairs == pytest.approx(of_views, rel=0.03)
    assert usual_weight(1, 10_000, 8) == 0.99  # views keep a part
    assert usual_weight(1, 10_000, 8, shuffled=True) == 0.5


def test_no_weight_is_no_knowledge() -> None:
    graph = mixed(Graph.from_labels(torch.tensor([0, 0, -1])), 0.0)
    assert graph.is_identity and mixed(graph, 1.0) is graph


def test_edges_alone_and_nothing() -> None:
    i, j, weight = torch.tensor([[0, 1, 2], [1, 2, 2], [1, -1, 1]])
    assert signed_pairs(Graph.from_edges(i, j, weight)) == (1, 1)
    assert signed_pairs(Graph.identity(5)) == (0, 0)


def test_large_numbers_of_pairs_are_written_out() -> None:
    labels = torch.arange(1600) % 2
    graph = 0.5 * Graph.identity(1600) + 0.5 * Graph.from_labels(labels)
    # 2 x 800 x 799 / 2 pairs, each with probability 256 x 255 / (1600 x 1599).
    assert "holds 16,310 known pairs on average" in plan_batches(graph, 1600, 256).reason


def test_too_many_devices_and_none_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"device": "cuda", "devices": 2}
    for here, expected in (
        (0, "device is cuda, and PyTorch finds no GPU here"),
        (1, "devices is 2, and there is 1 GPU here: give at most 1"),
    ):
        monkeypatch.setattr(torch.cuda, "device_count", lambda here=here: here)
        with pytest.raises(ValueError, match=expected):
            choose_machine(dict(config))


@pytest.mark.parametrize("sampler", ["auto", "shuffled"])
def test_labels_of_few_images_leave_half_to_the_views_where_batches_are_shuffled(
    sampler: str, tmp_path: Path
) -> None:
    """The batch holds all images, so that nothing has to be brought together."""
    source = open_source(pictures(24), labels=[0, 0, 1, 1, *[None] * 20])
    run = likewise.train(
        source, out=tmp_path / "run", recipe="vicreg", labels="source", sampler=sampler,
        encoder="tiny", projector=[16, 8], epochs=1, device="cpu", logger=["csv"],
    )  # fmt: skip
    assert run.config["label_weight"] == 0.5


@pytest.mark.parametrize(("share", "shuffled"), [(0.5, False), (0.02, True)])
def test_the_weight_by_default_is_for_the_batches_that_are_drawn(
    share: float, shuffled: bool
) -> None:
    labels = torch.where(torch.arange(2000) % 10 == 0, torch.arange(2000) // 10 % 10, -1)
    config = {"batch_size": 256, "sampler": "auto", "known_share": share}
    found = known._usual_weight(Graph.from_labels(labels), 10 * 20 * 19 // 2, config)
    assert (found <= 0.5) == shuffled
