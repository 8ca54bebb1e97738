"""Tiles against the dense path, and both against loops over pairs in float64."""

import itertools
import math
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from likewise.pairwise import products, reductions, tiles
from likewise.pairwise.reductions import row_kernel_sum, row_logsumexp
from likewise.pairwise.tiles import NoSelf

KERNELS = ("dot", "squared-distance", "distance")


@dataclass
class Dense:
    """Weights that are held, for tests; tiles of ones are given as None, as a caller may."""

    matrix: Tensor
    symmetric: bool = False

    def tile(self, rows: slice, columns: slice, like: Tensor) -> Tensor | None:
        block = self.matrix[rows, columns].to(like.device)
        return None if bool((block == 1).all()) else block


def rows(count: int, dim: int = 5, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, dim, generator=generator, dtype=torch.float64).to(dtype)


def some_weights(height: int, width: int, *, symmetric: bool = False) -> Dense:
    matrix = rows(height, width, seed=7).abs()
    matrix[rows(height, width, seed=8) < -0.3] = 0
    if symmetric:
        matrix = matrix + matrix.T
        matrix.fill_diagonal_(0)
    return Dense(matrix, symmetric)


def loop(q, k, *, scale=1.0, kernel="dot", weights=None, summed=False) -> Tensor:
    """The definition, one pair at a time."""
    out = []
    for i in range(len(q)):
        a = float(scale[i]) if isinstance(scale, Tensor) else scale
        terms, weight = [], []
        for j in range(len(k)):
            difference = q[i] - k[j]
            if kernel == "dot":
                terms.append(a * (q[i] * k[j]).sum())
            elif kernel == "squared-distance":
                terms.append(-a * (difference * difference).sum())
            elif bool((difference == 0).all()):
                terms.append(0 * difference.sum())
            else:
                terms.append(-a * (difference * difference).sum().sqrt())
            weight.append(1.0 if weights is None else float(weights.matrix[i, j]))
        if summed:
            out.append(sum(w * t for w, t in zip(weight, terms, strict=True)))
            continue
        kept = [t + math.log(w) for w, t in zip(weight, terms, strict=True) if w > 0]
        if not kept:
            out.append(q.new_tensor(-torch.inf))
            continue
        top = max(float(t.detach()) for t in kept)
        out.append(top + sum((t - top).exp() for t in kept).log())
    return torch.stack(out)


def value_and_gradients(function, *inputs: Tensor, **options) -> tuple[Tensor, ...]:
    """The value, and the gradient of a sum with signs and sizes that differ by row."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    value = function(leaves[0], leaves[-1], **options)
    factor = rows(len(value), 1, seed=9)[:, 0].to(value)
    torch.where(value.isfinite(), value * factor, 0 * value.detach().nan_to_num()).sum().backward()
    return (value.detach(), *(leaf.grad for leaf in leaves))


def assert_same(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...], tolerance: float) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.to(b.dtype), b, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=["one scale", "scale by row"])
def scale(request) -> float | Tensor:
    return 1.7 if request.param == "one scale" else torch.linspace(0.3, 3.0, 11).double()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 3, 4, 100])
def test_two_sets_of_rows_agree_with_the_definition(kernel, weighted, scale, tile):
    q, k = rows(11), rows(8, seed=1)
    q[2] = k[5]  # distance 0
    options = dict(scale=scale, kernel=kernel, weights=some_weights(11, 8) if weighted else None)
    expected = value_and_gradients(loop, q, k, **options)
    assert_same(value_and_gradients(row_logsumexp, q, k, tile=tile, **options), expected, 1e-12)


@pytest.mark.parametrize("weighted", ["no", "symmetric", "other"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 3, 4, 100])
def test_rows_with_themselves_agree_with_the_definition(kernel, weighted, scale, tile):
    z = rows(11)
    weights = some_weights(11, 11, symmetric=weighted == "symmetric")
    options = dict(scale=scale, kernel=kernel, weights=None if weighted == "no" else weights)
    expected = value_and_gradients(loop, z, **options)
    assert_same(value_and_gradients(row_logsumexp, z, tile=tile, **options), expected, 1e-12)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 3, 100])
def test_sums_of_kernels_agree_with_the_definition(kernel, same, scale, tile):
    inputs = (rows(11),) if same else (rows(11), rows(8, seed=1))
    weights = some_weights(11, 11 if same else 8, symmetric=same)
    weights.matrix[:3, 3:6] = weights.matrix[3:6, :3] = 1  # a tile of ones
    options = dict(kernel=kernel, weights=weights, scale=scale)
    expected = value_and_gradients(partial(loop, summed=True), *inputs, **options)
    assert_same(value_and_gradients(row_kernel_sum, *inputs, tile=tile, **options), expected, 1e-12)


def test_no_self_is_the_diagonal_in_tiles_of_any_edges():
    like = torch.zeros(0, dtype=torch.float64)
    for top, bottom in itertools.combinations(range(6), 2):
        for left, right in itertools.combinations(range(6), 2):
            expected = 1 - torch.eye(5, dtype=torch.float64)[top:bottom, left:right]
            tile = NoSelf().tile(slice(top, bottom), slice(left, right), like)
            torch.testing.assert_close(
                torch.ones_like(expected) if tile is None else tile, expected
            )


@pytest.mark.parametrize("size", [1e-43, 1e37])
def test_tiny_and_huge_weights_keep_their_digits_in_tiles(size):
    """Their products with exponentials are not representable; their logarithms are."""
    q, k = rows(11, dtype=torch.float32), rows(8, seed=1, dtype=torch.float32)
    weights = Dense(torch.full((11, 8), size, dtype=torch.float32))
    log = math.log(float(weights.matrix[0, 0]))
    expected = value_and_gradients(loop, q.double(), k.double())
    ours = value_and_gradients(row_logsumexp, q, k, weights=weights, tile=4)
    assert_same((ours[0] - log, *ours[1:]), expected, 1e-4)


@pytest.mark.parametrize("bound", [0.0, tiles.BOUND])
@pytest.mark.parametrize("kernel", KERNELS)
def test_tiles_agree_with_dense_with_a_maximum_and_without(kernel, bound, monkeypatch):
    monkeypatch.setattr(tiles, "BOUND", bound)
    q, k = rows(53, 16), rows(37, 16, seed=1)
    for inputs, weights in (
        ((q, k), some_weights(53, 37)),
        ((q,), some_weights(53, 53, symmetric=True)),
        ((q,), None),
    ):
        options = dict(kernel=kernel, weights=weights, scale=0.9)
        dense = value_and_gradients(row_logsumexp, *inputs, **options)
        for tile in (7, 16, 52):
            tiled = value_and_gradients(row_logsumexp, *inputs, tile=tile, **options)
            assert_same(tiled, dense, 1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_symmetric_path_agrees_with_the_general_one(kernel):
    z = rows(23)
    weights = some_weights(23, 23, symmetric=True)
    options = dict(kernel=kernel, scale=2.0, tile=5)
    symmetric = value_and_gradients(row_logsumexp, z, weights=weights, **options)
    general = value_and_gradients(row_logsumexp, z, weights=Dense(weights.matrix), **options)
    assert_same(symmetric, general, 1e-12)
    once = value_and_gradients(row_logsumexp, z, **options)
    apart = value_and_gradients(row_logsumexp, z, z, **options)
    assert_same(once, (apart[0], apart[1] + apart[2]), 1e-12)


def test_symmetric_path_visits_half_of_the_tiles(monkeypatch):
    visited = []
    original = tiles.similarities
    monkeypatch.setattr(
        tiles, "similarities", lambda *given: visited.append(given[1]) or original(*given)
    )
    z = rows(20).requires_grad_()
    row_logsumexp(z, z, tile=5).sum().backward()
    assert len(visited) == 2 * (4 * 5 // 2)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 4])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_logits_do_not_overflow(kernel, tile, same, dtype):
    q, k = rows(9, dtype=dtype), rows(7, seed=1, dtype=dtype)
    inputs = (q,) if same else (q, k)
    # One part in 2^24 of logits of 10^5 is 0.01: the same weights, only loosely.
    tolerance = 1e-9 if dtype == torch.float64 else 5e-2
    result = value_and_gradients(row_logsumexp, *inputs, scale=1e4, kernel=kernel, tile=tile)
    double = [x.double() for x in inputs]
    expected = value_and_gradients(loop, *double, scale=1e4, kernel=kernel)
    assert all(bool(x.isfinite().all()) for x in result)
    torch.testing.assert_close(result[0].double(), expected[0], rtol=1e-5, atol=tolerance)
    for ours, theirs in zip(result[1:], expected[1:], strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=1e4 * tolerance)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 3])
@pytest.mark.parametrize("upstream", [1.0, math.nan])
def test_a_row_without_weights_is_minus_infinity_and_has_no_gradient(kernel, tile, upstream):
    z = rows(8)
    weights = some_weights(8, 8, symmetric=True)
    weights.matrix[4] = weights.matrix[:, 4] = 0
    kept = [0, 1, 2, 3, 5, 6, 7]
    for x, k in ((z.clone().requires_grad_(),) * 2, (z.clone().requires_grad_(), z)):
        value = row_logsumexp(x, k, kernel=kernel, weights=weights, tile=tile)
        gradient = torch.ones(8).double()
        gradient[4] = upstream
        value.backward(gradient)
        assert value[4] == -torch.inf
        assert bool(value[kept].isfinite().all())
        assert bool(x.grad.isfinite().all())
        assert bool((x.grad[4] == 0).all())


@pytest.mark.parametrize("size", [1e-37, 1e37])
def test_weights_of_any_size(size):
    z = rows(8, dtype=torch.float32)
    weights = some_weights(8, 8, symmetric=True)
    expected = value_and_gradients(row_logsumexp, z, weights=weights, tile=3)
    weights.matrix *= size
    value, gradient = value_and_gradients(row_logsumexp, z, weights=weights, tile=3)
    torch.testing.assert_close(value, expected[0] + math.log(size), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, expected[1], rtol=1e-4, atol=1e-4)


def test_small_upstream_gradients_survive_in_float32():
    z = torch.nn.functional.normalize(rows(40, dtype=torch.float32), dim=1)
    large, small = z.clone().requires_grad_(), z.clone().requires_grad_()
    row_logsumexp(large, large, scale=58.0, tile=16).sum().backward()
    row_logsumexp(small, small, scale=58.0, tile=16).mul(2.0**-90).sum().backward()
    torch.testing.assert_close(small.grad * 2.0**90, large.grad, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 1, 3])
def test_one_row(kernel, tile):
    q, k = rows(1), rows(5, seed=1)
    for a, b in ((q, k), (k, q), (q, q)):
        value = value_and_gradients(row_logsumexp, a, b, kernel=kernel, tile=tile)
        assert_same(value, value_and_gradients(loop, a, b, kernel=kernel), 1e-12)
    single = value_and_gradients(row_logsumexp, q, kernel=kernel, tile=tile)
    assert_same(single, value_and_gradients(loop, q, kernel=kernel), 1e-12)


@pytest.mark.parametrize("tile", [None, 3])
def test_no_keys_and_no_queries(tile):
    assert bool((row_logsumexp(rows(3), rows(0), tile=tile) == -torch.inf).all())
    assert row_logsumexp(rows(0), rows(3), tile=tile).shape == (0,)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 3])
def test_gradients_by_finite_differences(kernel, tile):
    q, k = rows(5, 3).requires_grad_(), rows(4, 3, seed=1).requires_grad_()
    weights, square = some_weights(5, 4), some_weights(5, 5, symmetric=True)
    scale = torch.linspace(0.5, 2, 5).double()

    def two(a, b):
        return row_logsumexp(a, b, kernel=kernel, weights=weights, scale=scale, tile=tile)

    def same(a):
        return row_logsumexp(a, a, kernel=kernel, weights=square, scale=1.3, tile=tile)

    def summed(a):
        return row_kernel_sum(a, a, kernel=kernel, weights=square, scale=1.3, tile=tile)

    assert torch.autograd.gradcheck(two, (q, k))
    assert torch.autograd.gradcheck(same, (q,))
    assert torch.autograd.gradcheck(summed, (q,))
    if tile is None:
        assert torch.autograd.gradgradcheck(two, (q, k))
        assert torch.autograd.gradgradcheck(same, (q,))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tile", [None, 32])
def test_float32_is_close_to_float64(kernel, tile):
    z = torch.nn.functional.normalize(rows(100, 64), dim=1)
    weights = Dense(1 - torch.eye(100, dtype=torch.float64), symmetric=True)
    options = dict(kernel=kernel, weights=weights, scale=10.0, tile=tile)
    exact = value_and_gradients(row_logsumexp, z, **options)
    assert_same(value_and_gradients(row_logsumexp, z.float(), **options), exact, 3e-5)


@pytest.mark.parametrize("tile", [None, 32])
def test_far_from_the_origin_distances_stay_accurate(tile):
    z = rows(60, 16)
    weights = some_weights(60, 60, symmetric=True)
    for kernel in ("squared-distance", "distance"):
        exact = value_and_gradients(row_logsumexp, z, kernel=kernel, tile=tile)
        # 1,000 is exact in float32, but leaves 14 bits for what is added to it.
        moved = ((z * 1024).round() / 1024 + 1000).float()
        ours = value_and_gradients(row_logsumexp, moved, kernel=kernel, tile=tile)
        again = value_and_gradients(row_logsumexp, moved.double() - 1000, kernel=kernel, tile=tile)
        assert_same(ours, again, 1e-4)
        assert_same(again, exact, 0.1)
        total = row_kernel_sum(moved, moved, kernel=kernel, weights=weights, tile=tile)
        exact_total = row_kernel_sum(
            moved.double() - 1000, moved.double() - 1000, kernel=kernel, weights=weights
        )
        torch.testing.assert_close(total.double(), exact_total, rtol=1e-5, atol=0)


@pytest.mark.parametrize("limit", [2**24, 0])
@pytest.mark.parametrize("tile", [None, 16])
def test_near_pairs_keep_their_relative_accuracy(tile, limit, monkeypatch):
    monkeypatch.setattr(tiles, "NEAR_LIMIT", limit)  # 0: more near pairs than are written out
    one = torch.nn.functional.normalize(rows(20, 32), dim=1)
    z = torch.cat((one, one + 1e-3 * rows(20, 32, seed=1) / 32**0.5)).float()
    matrix = torch.zeros(40, 40, dtype=torch.float64)
    matrix[range(20), range(20, 40)] = matrix[range(20, 40), range(20)] = 1
    weights = Dense(matrix, symmetric=True)
    for kernel in ("squared-distance", "distance"):
        options = dict(kernel=kernel, weights=weights, tile=tile)
        value, gradient = value_and_gradients(row_kernel_sum, z, **options)
        distances = (z[:20].double() - z[20:].double()).norm(dim=1)
        exact = -(distances if kernel == "distance" else distances.square()).repeat(2)
        slope = value_and_gradients(row_kernel_sum, z.double(), **options)[1]
        # Inner products alone would be off by a tenth and more.
        torch.testing.assert_close(value.double(), exact, rtol=5e-5, atol=0)
        assert float((gradient - slope).norm() / slope.norm()) < 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tile", [None, 4])
def test_half_precision_is_computed_in_float32(dtype, tile):
    z = rows(9, dtype=dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, gradient = value_and_gradients(row_logsumexp, z, tile=tile)
    exact = value_and_gradients(row_logsumexp, z.double(), tile=tile)
    assert value.dtype == torch.float32 and gradient.dtype == dtype
    torch.testing.assert_close(value.double(), exact[0], rtol=1e-6, atol=1e-6)


class Largest(TorchDispatchMode):
    """The size of the largest tensor that any operation gives."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor):
                self.elements = max(self.elements, each.numel())
        return result


@pytest.mark.parametrize("bound", [0.0, tiles.BOUND])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("same", [False, True])
def test_tiles_never_hold_the_matrix_of_pairs(kernel, same, bound, monkeypatch):
    monkeypatch.setattr(tiles, "BOUND", bound)
    q = rows(300, 4).requires_grad_()
    k = q if same else rows(280, 4, seed=1).requires_grad_()

    class Ones:
        symmetric = True

        def tile(self, rows: slice, columns: slice, like: Tensor) -> Tensor:
            return like.new_ones(rows.stop - rows.start, columns.stop - columns.start)

    with Largest() as largest:
        row_logsumexp(q, k, kernel=kernel, weights=Ones(), tile=40).sum().backward()
        row_kernel_sum(q, k, kernel=kernel, weights=Ones(), tile=40).sum().backward()
    assert largest.elements <= max(300 * 6, 2 * 40 * 40)


def test_large_problems_are_tiled_and_small_ones_are_not(monkeypatch):
    monkeypatch.setattr(reductions, "DENSE_LIMIT", 100)
    monkeypatch.setattr(tiles, "TILE", 4)
    for height, width, is_tiled in ((10, 10, False), (10, 11, True), (2, 60, True), (60, 2, True)):
        q, k = rows(height).requires_grad_(), rows(width, seed=1)
        with Largest() as largest:
            value = row_logsumexp(q, k)
            value.sum().backward()
        assert (type(value.grad_fn).__name__ == "TiledBackward") == is_tiled
        if is_tiled:
            assert largest.elements <= max(5 * height, 5 * width)
        torch.testing.assert_close(value, (q @ k.T).logsumexp(1))


def test_what_is_wrong_is_said():
    q, k = rows(4), rows(3)
    with pytest.raises(ValueError, match="dimensions"):
        row_logsumexp(q, k[:, :2])
    with pytest.raises(ValueError, match="kernel is 'cosine'"):
        row_logsumexp(q, k, kernel="cosine")
    with pytest.raises(ValueError, match="scale has shape"):
        row_logsumexp(q, k, scale=torch.ones(3))
    with pytest.raises(ValueError, match="requires_grad=True"):
        row_logsumexp(q, k, scale=torch.ones(4, requires_grad=True))
    with pytest.raises(ValueError, match="weights.tile"):
        row_logsumexp(q, k, weights=Dense(torch.zeros(3, 3)))
    with pytest.raises(ValueError, match="tile is 0"):
        row_logsumexp(q, k, tile=0)
    with pytest.raises(ValueError, match="precision"):
        row_logsumexp(q, k, precision="tf32")


# The split product: its arithmetic is the same on a CPU, only slower.


def test_the_high_part_has_ten_bits_and_the_low_part_the_rest():
    x = rows(50, 50, dtype=torch.float32) * torch.logspace(-20, 20, 50)
    high = products.round_to_tf32(x)
    mantissa, _ = torch.frexp(high)  # in [0.5, 1): 11 bits with the leading one
    assert bool((mantissa * 2**11 == (mantissa * 2**11).round()).all())
    assert bool(((x - high).abs() <= 2.0**-11 * x.abs()).all())
    assert torch.equal(high + (x - high), x)
    left = products.Operand(x, "left", split=True)
    width = left.width
    low, middle, last = (left.stacked[:, i * width : i * width + 50] for i in range(3))
    assert torch.equal(middle, high) and torch.equal(last, high)
    assert bool(((high.double() + low.double() - x.double()).abs() <= 2.0**-22 * x.abs()).all())
    assert torch.equal(products.round_to_tf32(low.contiguous()), low)
    assert bool(
        torch.isnan(products.Operand(torch.full((1, 1), torch.nan), "left", True).stacked).any()
    )


@pytest.mark.parametrize("dim", [64, 61])
def test_three_products_of_parts_have_the_accuracy_of_float32(dim):
    a, b = rows(30, dim, dtype=torch.float32), rows(40, dim, seed=1, dtype=torch.float32)
    left, right = products.Operand(a, "left", True), products.Operand(b, "right", True)
    exact = a.double() @ b.double().T
    size = a.double().norm(dim=1)[:, None] * b.double().norm(dim=1)
    # In float64, what the parts leave out is all that is seen.
    stacked = left.stacked.double() @ right.stacked.double().T
    assert float(((stacked - exact).abs() / size).max()) < 2.0**-22
    one_product = left.high.double() @ right.high.double().T
    assert float(((one_product - exact).abs() / size).max()) > 2.0**-15
    out = products.similarities(left, slice(2, 30), right, slice(5, 40), torch.empty(28, 35))
    assert float(((out - exact[2:, 5:]).abs() / size[2:, 5:]).max()) < 1e-6

    tile = rows(30, 40, seed=2, dtype=torch.float32)
    for coefficients, operand, matrix in ((tile, right, b), (tile.T.contiguous(), left, a)):
        total = torch.ones(len(coefficients), operand.width)
        parts = products.split_(coefficients.clone(), torch.empty_like(coefficients))
        products.accumulate_(total, parts, operand, slice(0, len(matrix)))
        weighted = coefficients.double() @ matrix.double()
        torch.testing.assert_close(total[:, :dim].double(), 1 + weighted, rtol=2e-6, atol=2e-5)
        assert bool((total[:, dim:] == 1).all())


@pytest.mark.parametrize("bound", [0.0, tiles.BOUND])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("same", [False, True])
def test_tiles_of_split_products(kernel, same, bound, monkeypatch):
    monkeypatch.setattr(tiles, "tensor_cores", lambda like: True)
    monkeypatch.setattr(tiles, "BOUND", bound)
    inputs = (rows(33, 13),) if same else (rows(33, 13), rows(21, 13, seed=1))
    weights = some_weights(33, 33 if same else 21, symmetric=same)
    options = dict(kernel=kernel, weights=weights, scale=0.7)
    exact = value_and_gradients(row_logsumexp, *inputs, **options)
    single = [x.float() for x in inputs]
    ours = value_and_gradients(row_logsumexp, *single, tile=8, **options)
    assert_same(ours, exact, 3e-5)
    assert all(x.shape == y.shape for x, y in zip(ours, exact, strict=True))


def test_the_users_precision_comes_back_also_after_an_error():
    for device in (torch.device("cuda"), torch.device("cpu")):
        setting = products._setting(device)
        if setting is None:
            continue
        before = getattr(*setting)
        with pytest.raises(KeyError), products.matmul_precision(device, "tf32"):
            assert getattr(*setting) in ("tf32", True)
            raise KeyError
        assert getattr(*setting) == before
    torch.get_float32_matmul_precision()  # raises if the old and the new interface disagree


def test_the_dense_path_is_exact_where_the_user_allows_less(monkeypatch):
    seen = []
    original = products.matmul_precision
    monkeypatch.setattr(products, "is_reduced", lambda device: True)
    monkeypatch.setattr(
        products, "matmul_precision", lambda *given: seen.append(given[1]) or original(*given)
    )
    z = rows(6, dtype=torch.float32).requires_grad_()
    row_logsumexp(z, z).sum().backward()
    assert seen == ["ieee"] * 3
    a, b = rows(3, 2).requires_grad_(), rows(4, 2, seed=1).requires_grad_()
    assert torch.autograd.gradgradcheck(products._ExactProduct.apply, (a, b))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["split", "ieee"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("same", [False, True])
def test_cuda_agrees_with_float64(kernel, same, precision):
    inputs = [torch.nn.functional.normalize(rows(1500, 100, seed=s), dim=1) for s in (0, 1)]
    inputs = [x.cuda() for x in inputs[: 1 if same else 2]]
    weights = Dense(1 - torch.eye(1500, dtype=torch.float64), symmetric=True)
    options = dict(kernel=kernel, weights=weights, scale=10.0)
    exact = value_and_gradients(row_logsumexp, *inputs, **options)
    setting = products._setting("cuda")
    before = getattr(*setting)
    single = [x.float() for x in inputs]
    for tile in (None, 512, 700):
        ours = value_and_gradients(
            row_logsumexp, *single, tile=tile, precision=precision, **options
        )
        assert_same(ours, exact, 5e-5)
    assert getattr(*setting) == before


@pytest.mark.gpu
def test_cuda_holds_tiles_only():
    z = torch.nn.functional.normalize(torch.randn(32768, 256, device="cuda"), dim=1)
    z.requires_grad_()
    torch.cuda.reset_peak_memory_stats()
    row_logsumexp(z, z, scale=10.0).mean().backward()
    assert torch.cuda.max_memory_allocated() < 2**30
    assert bool(z.grad.isfinite().all())


class Random:
    """Any weights, with a row of zeros."""

    def __init__(self, rows: int, columns: int) -> None:
        generator = torch.Generator().manual_seed(4)
        self.matrix = torch.rand(rows, columns, generator=generator, dtype=torch.float64)
        self.matrix[1] = 0.0
        self.symmetric = False

    def tile(self, rows: slice, columns: slice, like: torch.Tensor) -> torch.Tensor:
        return self.matrix[rows, columns].to(like.dtype)


@pytest.mark.parametrize("weights", [None, NoSelf(), Random(6, 6)])
@pytest.mark.parametrize("tied", [True, False])
def test_a_known_bound_changes_nothing(weights, tied):
    """The path that holds exponentials: same value, gradient and second gradient."""
    generator = torch.Generator().manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(6, 3, generator=generator).double(), dim=1)
    other = z.flip(0).clone()

    def value(rows, bound):
        keys = rows if tied else other * rows.sum()
        logs = row_logsumexp(rows, keys, scale=2.0, weights=weights, bound=bound)
        return torch.where(torch.isfinite(logs), logs, 0.0).square().sum()

    z.requires_grad_()
    torch.testing.assert_close(value(z, 50.0), value(z, None))
    (first,) = torch.autograd.grad(value(z, 50.0), z)
    (second,) = torch.autograd.grad(value(z, None), z)
    torch.testing.assert_close(first, second)
    assert torch.autograd.gradcheck(lambda rows: value(rows, 50.0), (z,))
    assert torch.autograd.gradgradcheck(lambda rows: value(rows, 50.0), (z,))


def test_no_self_excludes_the_diagonal_of_any_tile():
    z = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)).double()
    expected = [
        math.log(sum(math.exp(float(z[i] @ z[k])) for k in range(7) if k != i)) for i in range(7)
    ]
    for tile in (None, 2, 3, 7):
        for keys in (z, z.clone()):
            result = row_logsumexp(z, keys, weights=NoSelf(), tile=tile)
            assert result.tolist() == pytest.approx(expected)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["split", "ieee"])
def test_fused_tiles_agree_with_float64(precision):
    z = torch.randn(1000, 40, generator=torch.Generator().manual_seed(0)).cuda()
    z = torch.nn.functional.normalize(z, dim=1)
    rows = z.clone().requires_grad_()
    row_logsumexp(
        rows, rows, scale=5.0, weights=NoSelf(), tile=300, precision=precision
    ).square().sum().backward()
    exact = z.double().requires_grad_()
    logits = (5.0 * exact @ exact.T).fill_diagonal_(-torch.inf)
    logits.logsumexp(1).square().sum().backward()
    assert (rows.grad - exact.grad).norm() / exact.grad.norm() < 2e-6
