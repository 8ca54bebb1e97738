"""The simplex equiangular tight frame."""

import math

import pytest
import torch

from likewise.information import simplex_etf


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("extra", [-1, 0, 1, 20])
@pytest.mark.parametrize("seed", [None, 0])
def test_unit_rows_equal_angles_zero_mean(classes: int, extra: int, seed: int | None) -> None:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    frame = simplex_etf(classes, classes + extra, generator, dtype=torch.float64)
    assert frame.shape == (classes, classes + extra)
    for i in range(classes):
        for j in range(classes):
            cosine = float(frame[i] @ frame[j])
            assert cosine == pytest.approx(1 if i == j else -1 / (classes - 1), abs=1e-12)
    assert float(frame.mean(0).abs().max()) < 1e-12


def test_default_is_definition_d_1() -> None:
    classes = 4
    expected = math.sqrt(4 / 3) * (torch.eye(4) - torch.ones(4, 4) / 4)
    assert simplex_etf(classes).dtype == torch.get_default_dtype()
    torch.testing.assert_close(simplex_etf(classes), expected)


def test_the_same_seed_gives_the_same_frame_and_another_seed_another() -> None:
    frames = [simplex_etf(5, 8, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(frames[0], frames[1])
    assert not torch.allclose(frames[0], frames[2], atol=0.1)


def test_errors() -> None:
    with pytest.raises(ValueError, match="classes must be at least 2, got 1"):
        simplex_etf(1)
    with pytest.raises(ValueError, match="dim must be at least classes - 1 = 4, got 3"):
        simplex_etf(5, 3)
