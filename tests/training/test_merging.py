"""--merge-duplicates: twins are alike in the graph that training sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.data import Images, open_source
from likewise.graph import Graph
from likewise.training.merging import with_twins
from likewise.training.recipes import recipe
from tests.library.test_duplicates import copy_of, picture

CONFIG = {"recipe": "simclr", "label_weight": None, "merge_duplicates": True, "duplicates": None}


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    originals = [picture(kind, number) for kind in range(3) for number in range(8)]
    return np.stack([*originals, copy_of(originals[3], "re-encoding", 0)])


def images(pixels: np.ndarray) -> Images:
    keys = [str(row) for row in range(len(pixels))]
    return Images(torch.from_numpy(pixels).permute(0, 3, 1, 2), keys)


def merged(pixels: np.ndarray, known: Graph, **changes: object) -> torch.Tensor:
    config = {**CONFIG, **changes}
    method = recipe(str(config["recipe"]))
    return with_twins(known, open_source(pixels), images(pixels), method, config).dense()


def expected(n: int, pairs: list[tuple[int, int]], weight: float = 1.0) -> torch.Tensor:
    matrix = torch.zeros(n, n)
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = weight
    return matrix


def test_twins_are_found_by_their_pixels(pixels):
    n = len(pixels)
    found = merged(pixels, Graph.identity(n))
    assert torch.equal(found, torch.eye(n) + expected(n, [(3, n - 1)]))


def test_twins_of_a_file_with_labels_beside_them(pixels, tmp_path: Path):
    path = tmp_path / "d.csv"
    path.write_text("group,key,closeness\n1,0,1\n1,4,1\n1,7,1\n")
    n = len(pixels)
    known = 0.75 * Graph.identity(n) + 0.25 * Graph.from_labels(torch.arange(n) % 2)
    found = merged(pixels, known, merge_duplicates=False, duplicates=str(path), label_weight=0.25)
    twins = expected(n, [(0, 4), (0, 7), (4, 7)], 0.75)
    assert torch.allclose(found, known.dense() + twins)


def test_nothing_asked_for_changes_nothing(pixels):
    known = Graph.identity(len(pixels))
    config = {**CONFIG, "merge_duplicates": False}
    source, held = open_source(pixels), images(pixels)
    assert with_twins(known, source, held, recipe("simclr"), config) is known


def test_refuses_what_leaves_no_room(pixels):
    known = Graph.from_labels(torch.arange(len(pixels)) % 2)
    with pytest.raises(ValueError, match="label_weight is 1"):
        merged(pixels, known, label_weight=1.0)


def test_training_with_it_sees_the_twin_as_alike(pixels, tmp_path):
    import inspect

    from likewise.training.session import prepare

    parameters = inspect.signature(likewise.train).parameters.values()
    options = {one.name: one.default for one in parameters}
    options |= {"data": pixels, "out": tmp_path / "run", "merge_duplicates": True}
    options |= {"encoder": "tiny", "projector": [16, 8], "batch_size": 8, "device": "cpu"}
    options |= {"sampler": "shuffled"}  # without weights of importance: the graph as it is
    prepared = prepare(**options)
    index = torch.tensor([3, len(pixels) - 1, 5])
    assert prepared.plan.graph(index).dense()[0].tolist() == [1.0, 1.0, 0.0]
