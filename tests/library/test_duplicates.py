"""Near-duplicates: planted copies are found, and other pictures of the kind are not."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data import Keyed
from likewise.graph import Graph
from likewise.library import (
    alignment,
    candidates,
    duplicates_of_pictures,
    duplicates_of_rows,
    residuals,
)
from likewise.library.duplicates import Duplicates, are_twins, grey_pictures
from likewise.library.twins import effect_of, read_groups, twin_graph


def picture(kind: int, number: int) -> np.ndarray:
    """A picture that shares its large shapes with those of its kind, and has details of its own."""
    from scipy.ndimage import gaussian_filter

    shared, own = np.random.default_rng(kind), np.random.default_rng([kind, number])
    large = gaussian_filter(shared.standard_normal((32, 32, 3)), (6, 6, 0)) * 18
    small = gaussian_filter(own.standard_normal((32, 32, 3)), (1.5, 1.5, 0)) * 4
    return np.clip(128 + 60 * (large + 0.5 * small), 0, 255).astype(np.uint8)


def copy_of(pixels: np.ndarray, kind: str, seed: int) -> np.ndarray:
    image, rng = Image.fromarray(pixels), np.random.default_rng(seed)
    if kind == "crop":
        side = 32 * 0.9
        x, y = rng.uniform(0, 32 - side, 2)
        image = image.resize((32, 32), Image.BICUBIC, box=(x, y, x + side, y + side))
    elif kind == "re-encoding":
        file = io.BytesIO()
        image.save(file, "JPEG", quality=60)
        image = Image.open(file)
    elif kind == "rotation":
        image = image.rotate(4, Image.BICUBIC)
    else:
        return np.clip(pixels * 0.8 + 20, 0, 255).astype(np.uint8)
    return np.array(image)


def pictures_of(arrays: list[np.ndarray]) -> torch.Tensor:
    return grey_pictures(torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2))


@pytest.mark.parametrize("kind", ["crop", "re-encoding", "rotation", "light"])
def test_planted_copies_are_found_and_nothing_else(kind):
    originals = [picture(k, number) for k in range(3) for number in range(20)]
    copies = [copy_of(originals[i], kind, i) for i in range(0, 60, 6)]
    found = duplicates_of_pictures(pictures_of(originals + copies))
    planted = {(6 * number, 60 + number) for number in range(10)}
    pairs = {tuple(pair) for pair in found.pairs.tolist()}
    assert len(pairs & planted) >= 9
    assert len(pairs - planted) <= 1
    assert all(len(group) == 2 for group in found.groups)


def test_copies_of_copies_are_one_group():
    originals = [picture(k, number) for k in range(3) for number in range(12)]
    copies = [copy_of(originals[0], kind, 0) for kind in ("re-encoding", "light", "rotation")]
    found = duplicates_of_pictures(pictures_of(originals + copies))
    assert found.groups[0] == [0, 36, 37, 38]


def test_the_same_content_is_a_twin_whatever_it_looks_like():
    blank = [np.zeros((32, 32, 3), np.uint8)] * 3
    found = duplicates_of_pictures(pictures_of(blank), contents=np.array([0, 1, 0]))
    assert found.groups == [[0, 2]]


def test_rows_alone_find_what_is_far_closer_than_its_neighbours():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((80, 12))
    twins = rows[:5] + 0.02 * rng.standard_normal((5, 12))
    rows = np.concatenate([rows, twins])
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    found = duplicates_of_rows(rows)
    assert found.groups == [[number, 80 + number] for number in range(5)]


def test_few_pictures_are_no_error():
    assert duplicates_of_pictures(pictures_of([picture(0, 0)])).groups == []
    two = pictures_of([picture(0, 0), picture(0, 0)])
    assert duplicates_of_pictures(two).groups == [[0, 1]]


def test_refuses_a_strictness_without_meaning():
    with pytest.raises(ValueError, match="strict is 1.5"):
        duplicates_of_rows(np.eye(3, dtype=np.float32), strict=1.5)


class TestCandidates:
    def test_they_are_those_of_a_loop_over_all_views_and_pictures(self, monkeypatch):
        pictures = pictures_of([picture(k, number) for k in range(4) for number in range(10)])
        monkeypatch.setattr(candidates, "QUERIES_AT_ONCE", 7)
        monkeypatch.setattr(candidates, "PICTURES_AT_ONCE", 9)
        found = candidates.candidates_of(pictures)
        plain = candidates._outlines(pictures)
        best = np.full((40, 40), -np.inf)
        for view in candidates.VIEWS:
            move = torch.tensor([alignment.guess(*view)]).expand(40, 4)
            # The whole picture is looked at as it is: no interpolation.
            seen = pictures if view == candidates.VIEWS[0] else alignment.moved(pictures, move)[0]
            best = np.maximum(best, (candidates._outlines(seen) @ plain.T).numpy())
        np.fill_diagonal(best, -np.inf)
        for item in range(40):
            own = found.pair[found.picture == item]
            ends = {*found.first[own].tolist(), *found.second[own].tolist()} - {item}
            assert ends == set(np.argsort(-best[item])[:8].tolist())
        assert (best[found.first, found.second] >= best[found.second, found.first]).all()
        assert len(np.unique(np.sort([found.first, found.second], axis=0), axis=1).T) == len(
            found.first
        )

    def test_rows_add_their_nearest(self):
        pictures = pictures_of([picture(k, number) for k in range(4) for number in range(10)])
        rows = np.roll(np.eye(40, dtype=np.float32), 1, axis=0) + np.eye(40, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        found = candidates.candidates_of(pictures, rows)
        pairs = {
            frozenset(p) for p in zip(found.first.tolist(), found.second.tolist(), strict=True)
        }
        assert all(frozenset((i, (i + 1) % 40)) in pairs for i in range(40))


def test_what_is_left_out_at_first_sight_is_no_twin(monkeypatch):
    """The coarse look saves time, and finds what looking closely at all pairs finds."""
    originals = [picture(k, number) for k in range(3) for number in range(20)]
    kinds = ("crop", "re-encoding", "rotation", "light")
    copies = [copy_of(originals[i], kinds[i % 4], i) for i in range(0, 60, 5)]
    pictures = pictures_of(originals + copies)
    pairs = candidates.candidates_of(pictures)
    quick = residuals.residuals_of(pictures, pairs)
    monkeypatch.setattr(residuals, "LOOSE", (np.inf, np.inf))
    monkeypatch.setattr(residuals, "LOOSE_RESIDUAL", 2.0)
    every = residuals.residuals_of(pictures, pairs)
    assert len(every.pair) == len(pairs.first) > 5 * len(quick.pair)
    twins = quick.pair[are_twins(quick)]
    assert len(twins) >= 10
    assert set(twins) == set(every.pair[are_twins(every)])
    # Those that are looked at closely are measured the same way.
    same = np.isin(every.pair, quick.pair)
    assert np.allclose(every.whole[same], quick.whole, atol=1e-6)
    assert np.allclose(every.usual_detail[same], quick.usual_detail, atol=1e-6)


class TestAlignment:
    def test_a_known_move_is_found_again(self):
        from scipy.ndimage import gaussian_filter

        noise = np.random.default_rng(0).random((8, 32, 32))
        smooth = torch.tensor(np.stack([gaussian_filter(n, 2.5) for n in noise])[:, None]).float()
        moves = torch.tensor([alignment.guess(0.93, 3.0, 0.05, -0.04)]).expand(8, 4)
        seen, _ = alignment.moved(smooth, moves)
        found = alignment.align(smooth, 0.7 * seen + 0.2, torch.zeros(8, 4), steps=15)
        assert torch.allclose(found, moves, atol=0.02)
        assert bool((alignment.correlation(smooth, seen, found) > 0.995).all())

    def test_correlation_is_that_of_numpy_where_nothing_moves(self):
        rng = np.random.default_rng(1)
        a, b = rng.random((2, 3, 1, 8, 8)).astype(np.float32)
        found = alignment.correlation(torch.from_numpy(a), torch.from_numpy(b), torch.zeros(3, 4))
        line = (np.arange(8) + 0.5) / 4 - 1
        circle = line[:, None] ** 2 + line**2 <= 1
        expected = [
            np.corrcoef(x[0][circle], y[0][circle])[0, 1] for x, y in zip(a, b, strict=True)
        ]
        assert np.allclose(found, expected, atol=1e-5)


def groups(*members: list[int]) -> Duplicates:
    return Duplicates([*members], np.zeros((0, 2), np.int64), np.zeros(0), "pixels")


class TestEffect:
    def test_chances_are_those_of_drawing_batches(self):
        found, n, batch = groups([0, 1, 2], [5, 6]), 20, 6
        effect = effect_of(found, n, batch_size=batch)
        rng = np.random.default_rng(0)
        pairs, meets, there = 0, 0, 0
        twins = {0: {1, 2}, 1: {0, 2}, 2: {0, 1}, 5: {6}, 6: {5}}
        for _ in range(20_000):
            drawn = set(rng.permutation(n)[:batch].tolist())
            pairs += sum(len(drawn & twins[i]) for i in drawn & twins.keys()) / 2
            there += len(drawn & twins.keys())
            meets += sum(bool(drawn & twins[i]) for i in drawn & twins.keys())
        assert effect.false_negatives == pytest.approx(pairs / 20_000, rel=0.05)
        assert effect.meets == pytest.approx(meets / there, rel=0.05)
        assert (effect.with_twin, effect.pairs) == (5, 4)

    def test_a_twin_weighs_more_than_an_average_negative(self):
        rows = np.eye(10, dtype=np.float32)
        rows[1] = rows[0]
        effect = effect_of(groups([0, 1]), 10, rows, temperature=0.5)
        # Pairs that are drawn are orthogonal but for the twins, 1 in 45 of all pairs.
        usual = (44 + math.exp(2)) / 45
        assert effect.weight == pytest.approx(math.exp(2) / usual, rel=0.02)

    def test_no_twins_no_effect(self):
        assert "no near-duplicates" in effect_of(groups(), 10).text()


class TestGraph:
    def test_edges_are_all_pairs_of_a_group(self):
        graph = twin_graph(6, np.array([0, -1, 0, 1, 0, 1]))
        expected = np.zeros((6, 6))
        for i, j in [(0, 2), (0, 4), (2, 4), (3, 5)]:
            expected[i, j] = expected[j, i] = 1
        assert np.array_equal(graph.dense().numpy(), expected)
        both = Graph.identity(6) + graph
        assert np.array_equal(both.dense().numpy(), expected + np.eye(6))

    def test_groups_of_a_file_are_matched_by_key(self, tmp_path):
        path = tmp_path / "d.csv"
        path.write_text("group,key,closeness\n1,b,1\n1,c,1\n2,gone,1\n")
        assert read_groups(path, Keyed(["a", "b", "c"])).tolist() == [-1, 0, 0]
        with pytest.raises(ValueError, match="none of the 3 keys"):
            read_groups(path, Keyed(["x", "y"]))
        path.write_text("key,label\nb,1\n")
        with pytest.raises(ValueError, match="group and key"):
            read_groups(path, Keyed(["b"]))


def test_two_of_three_pictures():
    generator = torch.Generator().manual_seed(0)
    pictures = torch.rand(2, 1, 32, 32, generator=generator)
    nearly = pictures[:1] + 0.002 * torch.randn(1, 1, 32, 32, generator=generator)
    found = duplicates_of_pictures(torch.cat([pictures, nearly]))
    assert [sorted(group) for group in found.groups] == [[0, 2]] and found.closeness[0] > 0.9
