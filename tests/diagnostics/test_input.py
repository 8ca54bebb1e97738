"""What every diagnostic does with bad input, with tensors and arrays, and with half precision."""

import math

import numpy as np
import pytest
import torch

from likewise import Graph, diagnostics
from tests.diagnostics import naive

N, DIM = 12, 4
Y = np.arange(N) % 3
WEIGHT = naive.normal(2, DIM, seed=9)


def calls():
    """Every diagnostic of embeddings, as a function of two views."""
    d = diagnostics
    return {
        "spectrum": lambda a, b: d.spectrum(a),
        "cross_entropy": lambda a, b: d.cross_entropy_by_batches(a, b, batch_size=6),
        "alignment": d.alignment,
        "uniformity": lambda a, b: d.uniformity(a),
        "view_noise": d.view_noise,
        "neural_collapse": lambda a, b: d.neural_collapse(a, Y),
        "class_ranks": lambda a, b: d.class_ranks(a, Y),
        "info_nce": d.info_nce_parts,
        "nearest_negatives": lambda a, b: d.nearest_negatives(a, b, labels=Y),
        "displacements": lambda a, b: d.displacements(a, b, a, b),
        "fraction_unexplained": lambda a, b: d.fraction_unexplained(a, WEIGHT),
        "augmentation_directions": lambda a, b: d.augmentation_directions(a, b, WEIGHT),
        "lie_generator": lambda a, b: d.lie_generator(a, b, 0.5, weight=WEIGHT),
        "local_maps": lambda a, b: d.local_affine_maps(torch.nn.Linear(DIM, 2), a),
        "prototype_bias": lambda a, b: d.prototype_bias(a, Y[:6], n_views=2),
        "prototype_bounds": lambda a, b: d.prototype_bounds(a, Y[:6], n_views=2),
        "balance_effect": lambda a, b: d.balance_effect(a, alphas=(2.0,), weights=(1.0,))[0],
        "closeness": lambda a, b: d.graph_closeness(a, Graph.from_labels(Y)),
        "regression": lambda a, b: d.regression_losses(a, Graph.from_labels(Y)),
        "directions": lambda a, b: d.direction_gradients(a, Graph.from_labels(Y)),
        "confusion": lambda a, b: d.confusion_rate(a, n_views=2),
        "evidence": lambda a, b: d.gather_evidence(a, b, h1=a, h2=b, labels=Y),
    }


def views():
    return naive.normal(N, DIM), naive.normal(N, DIM, seed=1)


def numbers(result):
    """All numbers of a result, by name."""
    if isinstance(result, float):
        return {"": np.array(result)}
    if isinstance(result, np.ndarray | torch.Tensor):
        return {"": np.asarray(result)}
    found = {}
    for name, value in vars(result).items():
        if isinstance(value, int | float | np.ndarray | torch.Tensor):
            found[name] = np.asarray(value)
    return found


@pytest.mark.parametrize("name", list(calls()))
def test_arrays_and_tensors_in_kind(name):
    a, b = views()
    from_arrays = calls()[name](a, b)
    from_tensors = calls()[name](torch.from_numpy(a), torch.from_numpy(b))
    for kind, result in ((np.ndarray, from_arrays), (torch.Tensor, from_tensors)):
        values = [result] if not hasattr(result, "notes") else vars(result).values()
        other = torch.Tensor if kind is np.ndarray else np.ndarray
        assert not any(isinstance(value, other) for value in values)
    one, two = numbers(from_arrays), numbers(from_tensors)
    assert one.keys() == two.keys() and one
    if name == "local_maps":
        return  # drawn anew in every call
    for key in one:
        assert np.allclose(one[key], two[key], equal_nan=True), key


@pytest.mark.parametrize("name", list(calls()))
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(name, bad):
    a, b = views()
    a[3, 1] = bad
    with pytest.raises(ValueError, match="NaN or infinity.*row 3"):
        calls()[name](a, b)


@pytest.mark.parametrize("name", list(calls()))
def test_shapes_and_types_are_checked(name):
    a, b = views()
    for wrong in (a[:, 0], a[None], np.zeros((N, 0)), a.astype(int), a.astype(complex)):
        with pytest.raises(ValueError, match="shape|values"):
            calls()[name](wrong, wrong)


@pytest.mark.parametrize("name", list(calls()))
def test_nothing_is_written_and_no_gradient_kept(name):
    a, b = (torch.from_numpy(x) for x in views())
    a.requires_grad_(True)
    before = a.detach().clone(), b.clone()
    result = calls()[name](a, b)
    values = [result] if not hasattr(result, "notes") else vars(result).values()
    assert not any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)
    assert torch.equal(a.detach(), before[0]) and torch.equal(b, before[1])


@pytest.mark.parametrize("name", sorted(set(calls()) - {"local_maps"}))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_types_agree_with_float64_of_the_same_rows(name, dtype):
    """Half-precision rows are taken as they are: the figures are those of the rounded rows."""
    a, b = (torch.from_numpy(x).to(dtype) for x in views())
    narrow = numbers(calls()[name](a, b))
    wide = numbers(calls()[name](a.double(), b.double()))
    for key in wide:
        if key == "floor" or key in ("sample", "view"):
            continue  # round-off itself, and ties
        assert np.allclose(narrow[key], wide[key], rtol=2e-4, atol=2e-4, equal_nan=True), key


@pytest.mark.parametrize("name", sorted(set(calls()) - {"local_maps"}))
def test_the_same_twice(name):
    a, b = views()
    one, two = numbers(calls()[name](a, b)), numbers(calls()[name](a, b))
    for key in one:
        assert np.array_equal(one[key], two[key], equal_nan=True)


def test_undefined_figures_always_come_with_a_note():
    """Degenerate rows through every diagnostic: an error, a number, or NaN that is explained."""
    explained = 0
    for name, call in calls().items():
        for rows in (np.ones((N, DIM)), np.zeros((N, DIM)), np.eye(N, DIM)):
            try:
                result = call(rows, rows)
            except ValueError as error:
                assert len(str(error)) > 20
                continue
            for key, value in numbers(result).items():
                if np.isnan(value).any():
                    assert hasattr(result, "notes") is False or result.notes, (name, key)
                    explained += 1
    assert explained > 10


def test_all_names_are_there():
    for name in diagnostics.__all__:
        assert getattr(diagnostics, name).__doc__, name
