"""The contrastive family against loops over the printed formulas."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import Graph
from likewise.objectives import (
    BalancedContrastive,
    BarlowTwins,
    DecoupledContrastive,
    GeneralizedNTXent,
    InfoNCE,
    NTXent,
    PrototypeContrast,
)
from likewise.objectives.denominators import DenominatorWeights
from tests.objectives import contract


def similarity(a: Tensor, b: Tensor, kind: str) -> float:
    if kind == "cosine":
        return float(a @ b / (a.norm() * b.norm()))
    if kind == "dot":
        return float(a @ b)
    distance = float((a - b).square().sum()) ** 0.5
    return -distance if kind == "distance" else -(distance**2)


def naive_contrastive(
    z: Tensor,
    graph: Graph,
    alpha: float | list[float],
    weight: float,
    divide: bool,
    denominator: str,
    kind: str = "cosine",
    positives: str = "sum",
    unknown: str = "negative",
    anchors: list[int] | None = None,
    target: Tensor | None = None,
    negatives: Tensor | None = None,
    batch_negatives: bool = True,
) -> float:
    """The module docstring of `contrastive`, pair by pair."""
    views = graph.n_views
    matrix = contract.dense(graph)
    known = contract.dense(graph.known())
    t = z if target is None else target
    others = len(t) // (len(z) // views)
    queue = [] if negatives is None else list(negatives)
    rows = range(len(z)) if anchors is None else anchors
    total = 0.0
    for i in rows:
        a = alpha[i] if isinstance(alpha, list) else alpha
        groups = [None]
        if denominator == "other-view":
            groups = [v for v in range(others) if v != i % views]
        weight_of_all = sum(
            max(float(matrix[i, (k // others) * views]), 0.0)
            for k in range(len(t))
            if (k // others, k % others) != (i // views, i % views)
            and (denominator != "other-view" or k % others != i % views)
        )
        for group in groups:
            alike, candidates = [], []
            for k in range(len(t)):
                sample, view = divmod(k, others)
                if group is not None and view != group:
                    continue
                g = float(matrix[i, sample * views])
                is_self = sample == i // views and view == i % views
                s = similarity(z[i], t[k], kind)
                if g > 0 and not is_self:
                    alike.append((g, s, t[k]))
                base = 1.0 if batch_negatives else float(g > 0 and not is_self)
                if unknown == "ignore" and not is_self:
                    base = float(known[i, sample * views] > 0)
                if denominator in ("negatives", "other-view") and g > 0:
                    base = 0.0
                if is_self:
                    base = 1.0 if denominator == "all-and-self" else 0.0
                elif batch_negatives:
                    base += max(-g, 0.0)
                if base:
                    candidates.append((base, s))
            candidates += [(1.0, similarity(z[i], q, kind)) for q in queue]
            degree = sum(g for g, _, _ in alike)
            if degree == 0:
                continue
            share = degree if positives == "sum" else degree / weight_of_all
            if positives == "log-mean":
                pull = math.log(sum(g * math.exp(a * s) for g, s, _ in alike) / degree)
            elif positives == "average":
                rows_ = [x / x.norm() if kind == "cosine" else x for _, _, x in alike]
                mean = sum(g * x for (g, _, _), x in zip(alike, rows_, strict=True)) / degree
                pull = a * similarity(z[i], mean, kind)
            else:
                pull = a * sum(g * s for g, s, _ in alike) / degree
            push = math.log(sum(w * math.exp(a * s) for w, s in candidates)) if candidates else 0.0
            total += share * (-pull + weight * push) / (a if divide else 1.0)
    return total / len(rows)


class Family(contract.TwoViewForm, contract.PreventsCollapse):
    settings: dict[str, Any] = {}
    alpha, weight, divide, denominator = 2.0, 1.0, False, "all"

    def naive(self, z: Tensor, graph: Graph, **arguments: Any) -> float:
        options = {"kind" if k == "similarity" else k: v for k, v in self.settings.items()}
        options.setdefault("denominator", self.denominator)
        return naive_contrastive(
            z, graph, self.alpha, self.weight, self.divide, **options, **arguments
        )

    def original(self, z1: Tensor, z2: Tensor) -> float:
        """SimCLR's, DCL's and balanced eq. 17's two-view form, over 2m rows."""
        rows = torch.nn.functional.normalize(torch.cat([z1, z2]), dim=1)
        m, total = len(z1), 0.0
        for i in range(2 * m):
            partner = (i + m) % (2 * m)
            excluded = {i} if self.denominator == "all" else {i, partner}
            logs = [
                self.alpha * float(rows[i] @ rows[k]) for k in range(2 * m) if k not in excluded
            ]
            push = math.log(sum(map(math.exp, logs)))
            pull = self.alpha * float(rows[i] @ rows[partner])
            total += (-pull + self.weight * push) / (self.alpha if self.divide else 1.0)
        return total / (2 * m)


class TestNTXent(Family):
    def make(self, **changes):
        return NTXent(0.5, **{**self.settings, **changes})


class TestDecoupledContrastive(Family):
    denominator = "negatives"

    def make(self, **changes):
        return DecoupledContrastive(0.5, **{**self.settings, **changes})


class TestBalancedContrastive(Family):
    alpha, weight, divide, denominator = 4.0, 1.5, True, "negatives"

    def make(self, **changes):
        return BalancedContrastive(4.0, 1.5, **{**self.settings, **changes})


class TestGeneralizedNTXent(Family):
    alpha, weight, divide = 3.0, 2.0, True

    def make(self, **changes):
        return GeneralizedNTXent(3.0, 2.0, **{**self.settings, **changes})


class TestInfoNCE(Family):
    denominator = "negatives"

    def make(self, **changes):
        return InfoNCE(2.0, **changes)

    def naive(self, z, graph, **arguments):
        anchors = list(range(0, len(z), graph.n_views))
        return naive_contrastive(
            z, graph, 2.0, 1.0, False, "negatives", anchors=anchors, **arguments
        )

    def original(self, z1, z2):
        f1 = torch.nn.functional.normalize(z1, dim=1)
        f2 = torch.nn.functional.normalize(z2, dim=1)
        total = 0.0
        for i in range(len(z1)):
            others = [f for j in range(len(z1)) if j != i for f in (f1[j], f2[j])]
            below = sum(math.exp(2.0 * float(f1[i] @ f)) for f in others)
            total -= math.log(math.exp(2.0 * float(f1[i] @ f2[i])) / below)
        return total / len(z1)


class Variant(contract.ObjectiveContract):
    """A setting of NT-Xent whose naive form is the general one."""

    settings: dict[str, Any] = {}

    def make(self, **changes):
        return NTXent(0.5, **{**self.settings, **changes})

    def naive(self, z, graph, **arguments):
        options = {"kind" if k == "similarity" else k: v for k, v in self.settings.items()}
        options.setdefault("denominator", "all")
        return naive_contrastive(z, graph, 2.0, 1.0, False, **options, **arguments)


class TestTeacher(Variant):
    teacher = True

    def split(self, samples, rank, world):
        """Rank 0 takes the smaller half, so that what it sends is padded in the middle."""
        half = samples // 2
        return (
            super().split(samples, rank, world)
            if world == 1
            else (slice(0, half) if rank == 0 else slice(half, samples))
        )

    def test_gradient_reaches_the_target(self, graph):
        z, target = self.rows(graph).requires_grad_(), self.rows(graph, seed=1).requires_grad_()
        objective = self.make().double()
        assert torch.autograd.gradcheck(
            lambda rows, other: objective(rows, graph, target=other), (z, target), atol=1e-6
        )


class TestTeacherDecoupled(Variant):
    teacher = True
    settings = {"denominator": "negatives"}


class TestQueue(Variant):
    queue = True


class TestQueueAlone(Variant):
    """MoCo: the queue and the positive."""

    teacher, queue = True, True
    settings = {"batch_negatives": False}


class TestSelfInDenominator(Variant):
    settings = {"denominator": "all-and-self"}


class TestOtherView(Variant):
    graphs = ("self-supervised", "three-views", "labels-views", "partial", "mixed", "signed")
    settings = {"denominator": "other-view"}

    def test_needs_views(self):
        with pytest.raises(ValueError, match=r"'other-view'.*views\(2\)"):
            self.make().double()(torch.randn(3, 4).double(), Graph.identity(3))


class TestMeanOverOtherViews(Variant):
    """balanced eq. 12: the mean over the transforms."""

    graphs = ("self-supervised", "three-views", "labels-views", "partial", "mixed", "signed")
    settings = {"denominator": "other-view", "positives": "mean"}


class TestIgnoreUnknown(Variant):
    settings = {"unknown": "ignore"}


class TestMeanOfPositives(Variant):
    """SupCon, L_out."""

    settings = {"positives": "mean"}


class TestLogMeanOfPositives(Variant):
    """SupCon, L_in."""

    settings = {"positives": "log-mean"}


class TestAverageOfPositives(Variant):
    settings = {"positives": "average"}


class TestDotProduct(Variant):
    settings = {"similarity": "dot"}


class TestDistance(Variant):
    settings = {"similarity": "distance"}


class TestSquaredDistance(Variant):
    settings = {"similarity": "squared-distance"}


class TestAverageAtADistance(Variant):
    settings = {"similarity": "squared-distance", "positives": "average"}


class TestPrototypeContrast(contract.PreventsCollapse):
    attract = "prototype"

    def make(self, **changes):
        return PrototypeContrast(0.7, attract=self.attract, **changes)

    def naive(self, z, graph, target=None):
        matrix = contract.dense(graph)
        t = z if target is None else target
        unit = torch.nn.functional.normalize(t, dim=1)
        rows = torch.nn.functional.normalize(z, dim=1)
        means = []
        for i in range(len(z)):
            mean = sum(
                (max(float(matrix[i, k]), 0.0) * unit[k] for k in range(len(t))),
                torch.zeros_like(z[0]),
            )
            means.append(mean / mean.norm() if mean.norm() > 0 else None)
        total = 0.0
        for i in range(len(z)):
            if means[i] is None:
                continue
            pulled = means[i]
            if self.attract == "views":
                first = i - i % graph.n_views
                pulled = unit[first : first + graph.n_views].mean(dim=0)
                pulled = pulled / pulled.norm()
            others = [
                float(rows[i] @ means[j])
                for j in range(len(z))
                if matrix[i, j] <= 0 and means[j] is not None
            ]
            total += -float(rows[i] @ pulled) + 0.7 * (max(others) if others else 0.0)
        return total / len(z)


class TestPrototypeContrastWithTeacher(TestPrototypeContrast):
    teacher = True


class TestPrototypeContrastOfViews(TestPrototypeContrast):
    attract = "views"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NTXent(0.0), "temperature is 0.0: give a number above 0"),
        (lambda: NTXent(-1.0), "temperature is -1.0"),
        (lambda: NTXent(float("nan")), "temperature is nan"),
        (lambda: DecoupledContrastive(0), "temperature is 0"),
        (lambda: InfoNCE(0.0), "inverse_temperature is 0.0"),
        (lambda: BalancedContrastive(alpha=-2.0), "alpha is -2.0"),
        (lambda: BalancedContrastive(weight=0.0), "weight is 0.0"),
        (lambda: GeneralizedNTXent(weight=-1.0), "weight is -1.0"),
        (lambda: NTXent(similarity="euclid"), "similarity is 'euclid': give one of 'cosine'"),
        (lambda: NTXent(denominator="some"), "denominator is 'some'"),
        (lambda: NTXent(positives="max"), "positives is 'max'"),
        (lambda: NTXent(unknown="positive"), "unknown is 'positive'"),
        (lambda: NTXent(True), "temperature is True: give a number above 0"),
        (lambda: PrototypeContrast(weight=0.0), "weight is 0.0"),
        (lambda: PrototypeContrast(attract="mean"), "attract is 'mean'"),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bad_arguments_of_a_call():
    graph = Graph.identity(3).views(2)
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    for arguments, message in (
        ({"target": z[:4]}, "target has 4 rows for 3 samples"),
        ({"target": z[:, :3]}, "target has 3 dimensions and z has 4"),
        ({"negatives": z[:, :3]}, "negatives has 3 dimensions and z has 4"),
        ({"target": z / 0}, "target holds NaN or infinity"),
        ({"negatives": z / 0}, "negatives holds NaN or infinity"),
        ({"temperature": torch.linspace(-1.0, 1.0, 6)}, "number above 0 per row"),
    ):
        with pytest.raises(ValueError, match=message):
            NTXent(0.5)(z, graph, **arguments)
    with pytest.raises(TypeError, match="NTXent takes no argument 'temprature'"):
        NTXent(0.5)(z, graph, temprature=torch.ones(6))
    with pytest.raises(ValueError, match="BarlowTwins has no use for negatives"):
        BarlowTwins()(z, graph, negatives=z)


def test_finite_values_are_not_looked_for_if_not_asked():
    objective = NTXent(0.5)
    objective.check_finite = False
    assert objective(torch.full((6, 4), torch.nan), Graph.identity(3).views(2)).isnan()


@pytest.mark.parametrize("positives", ["sum", "mean"])
def test_small_temperatures_do_not_overflow(positives):
    """exp(1 / 0.01), which two equal views have in the denominator, is beyond float32."""
    graph = Graph.identity(6).views(2)
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).double()
    z = z.repeat_interleave(2, dim=0)
    objective = NTXent(0.01, positives=positives)
    expected = naive_contrastive(z, graph, 100.0, 1.0, False, "all", positives=positives)
    assert objective(z, graph).item() == pytest.approx(expected)
    rows = z.float().requires_grad_()
    value = objective(rows, graph)
    value.backward()
    assert value.item() == pytest.approx(expected, abs=1e-4) and torch.isfinite(rows.grad).all()


@pytest.mark.parametrize("positives", ["sum", "mean"])
def test_self_supervision_is_one_step_of_autograd(positives):
    """The mean of one positive is itself: it takes the fast way of the sum."""
    z = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    objective = NTXent(0.5, positives=positives)
    assert "CosineContrast" in objective(z, Graph.identity(6).views(2)).grad_fn.name()
    halves = objective(z, (0.5 * Graph.identity(6)).views(2))
    whole = objective(z, Graph.identity(6).views(2))
    torch.testing.assert_close(halves, whole if positives == "mean" else whole / 2)


@pytest.mark.parametrize("positives", ["sum", "mean", "log-mean", "average"])
def test_nobody_is_repelled_where_all_are_alike(positives):
    graph = Graph.from_labels(torch.zeros(5, dtype=torch.long))
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    terms = DecoupledContrastive(0.5, positives=positives).terms(z, graph)
    (gradient,) = torch.autograd.grad(sum(terms.values()), z)
    assert terms["repulsion"].item() == 0.0 and torch.isfinite(gradient).all()


def test_no_prototype_is_repelled_where_all_are_alike():
    graph = Graph.from_labels(torch.zeros(5, dtype=torch.long))
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double()
    assert PrototypeContrast().terms(z, graph)["repulsion"].item() == 0.0


def test_symmetric_infonce_is_the_balanced_loss_times_beta():
    graph = Graph.identity(5).views(2)
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    expected = 3.0 * BalancedContrastive(3.0, 1.0)(z, graph)
    torch.testing.assert_close(InfoNCE(3.0, symmetric=True)(z, graph), expected)


def test_rows_at_the_average_of_their_positives_have_a_gradient():
    graph = Graph.identity(3).views(2)
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).double()
    z = z.repeat_interleave(2, dim=0).requires_grad_()
    value = NTXent(0.5, similarity="distance", positives="average")(z, graph)
    (gradient,) = torch.autograd.grad(value, z)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", ["self-supervised", "labels-views", "mixed"])
@pytest.mark.parametrize("objective", [NTXent(0.5), BalancedContrastive(4.0, 1.5)])
def test_gradient_to_be_differentiated_again_is_the_same(objective, name):
    """It has a formula of its own, which a check of the gradient does not reach."""
    graph = contract.GRAPHS[name]()
    z = torch.randn(graph.n, 4, generator=torch.Generator().manual_seed(0)).double()
    value = objective(z.requires_grad_(), graph)
    again = torch.autograd.grad(value, z, retain_graph=True, create_graph=True)
    torch.testing.assert_close(again, torch.autograd.grad(value, z))


def test_temperature_per_row_of_first_views():
    graph = Graph.identity(5).views(2)
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    temperature = torch.linspace(0.2, 1.0, 10).double()
    alphas = [1.0 / float(t) for t in temperature]
    expected = naive_contrastive(
        z, graph, alphas, 1.0, False, "negatives", anchors=list(range(0, 10, 2))
    )
    assert InfoNCE()(z, graph, temperature=temperature).item() == pytest.approx(expected)


@pytest.mark.parametrize("denominator", ["all", "other-view"])
def test_temperature_per_row_divides_what_the_balanced_loss_divides(denominator):
    graph = Graph.identity(4).views(3)
    z = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double()
    temperature = torch.linspace(0.2, 1.0, 12).double()
    alphas = [1.0 / float(t) for t in temperature]
    objective = BalancedContrastive(4.0, 1.5, denominator=denominator)
    expected = naive_contrastive(z, graph, alphas, 1.5, True, denominator)
    assert objective(z, graph, temperature=temperature).item() == pytest.approx(expected)


def test_temperature_per_row():
    graph = Graph.identity(5).views(2)
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    temperature = torch.linspace(0.2, 1.0, 10).double()
    value = NTXent(0.5)(z, graph, temperature=temperature)
    alphas = [1.0 / float(t) for t in temperature]
    expected = naive_contrastive(z, graph, alphas, 1.0, False, "all")
    assert value.item() == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"temperature has shape \(3,\) for 10 rows"):
        NTXent(0.5)(z, graph, temperature=torch.ones(3))


def test_sum_is_n_times_the_mean():
    graph = Graph.identity(5).views(2)
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    for kind, anchors in ((NTXent, 10), (InfoNCE, 5), (PrototypeContrast, 10)):
        total = kind(0.5, reduction="sum")(z, graph)
        assert total.item() == pytest.approx(anchors * kind(0.5)(z, graph).item())


def test_rows_without_positives_contribute_nothing():
    """Answers alone: rows that nobody was asked about have no positive and no NaN."""
    graph = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), n=5)
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    for objective in (
        NTXent(0.5),
        DecoupledContrastive(0.5),
        NTXent(0.5, unknown="ignore"),
        NTXent(0.5, unknown="ignore", denominator="all-and-self"),
    ):
        value = objective(z, graph)
        expected = naive_contrastive(
            z.detach(), graph, 2.0, 1.0, False, objective.denominator, unknown=objective.unknown
        )
        assert value.item() == pytest.approx(expected)
        (gradient,) = torch.autograd.grad(value, z)
        assert torch.isfinite(gradient).all()
    nobody = Graph.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([-1.0]), n=5)
    assert NTXent(0.5)(z, nobody).item() == 0.0


def test_zero_rows_have_no_direction():
    graph = Graph.identity(3).views(2)
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).double()
    z[2] = 0.0
    z.requires_grad_()
    value = NTXent(0.5)(z, graph)
    value.backward()
    assert torch.isfinite(value) and torch.isfinite(z.grad).all()


@pytest.mark.parametrize("others", [1, 2, 3])
@pytest.mark.parametrize("denominator", ["all", "negatives", "other-view", "all-and-self"])
@pytest.mark.parametrize("name", ["self-supervised", "labels-views", "signed"])
@pytest.mark.parametrize("limit", [10**9, 0], ids=["dense", "tiles"])
def test_teacher_with_any_number_of_views(monkeypatch, limit, name, denominator, others):
    from likewise.pairwise import reductions, tiles

    monkeypatch.setattr(reductions, "DENSE_LIMIT", limit)
    monkeypatch.setattr(tiles, "TILE", 5)
    graph = contract.GRAPHS[name]()
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(graph.n, 4, generator=generator).double()
    target = torch.randn(graph.n // 2 * others, 4, generator=generator).double()
    value = NTXent(0.5, denominator=denominator)(z, graph, target=target)
    expected = naive_contrastive(z, graph, 2.0, 1.0, False, denominator, target=target)
    assert value.item() == pytest.approx(expected)


@pytest.mark.parametrize("denominator", ["all", "negatives", "all-and-self"])
@pytest.mark.parametrize("name", ["self-supervised", "labels-views", "mixed", "signed"])
def test_tiles_agree_with_dense(monkeypatch, denominator, name):
    """The tiled path, forced on a small batch: same value, same gradient."""
    from likewise.pairwise import reductions, tiles

    graph = contract.GRAPHS[name]()
    z = torch.randn(graph.n, 4, generator=torch.Generator().manual_seed(0)).double()
    results = []
    for limit in (10**9, 0):
        monkeypatch.setattr(reductions, "DENSE_LIMIT", limit)
        monkeypatch.setattr(tiles, "TILE", 5)
        rows = z.clone().requires_grad_()
        value = NTXent(0.5, denominator=denominator)(rows, graph)
        value.backward()
        results.append((value.item(), rows.grad))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-12)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("others", [2, 3])
@pytest.mark.parametrize("denominator", ["all", "negatives", "all-and-self"])
def test_a_tile_of_the_denominator_is_a_block_of_the_whole(denominator, others):
    """Whatever its edges: also tiles that touch the diagonal, or their own sample, by one row."""
    pairs = Graph.identity(3).views(2).pairs(others)
    weights = DenominatorWeights(pairs, None, denominator)
    like = torch.zeros(0, dtype=torch.float64)
    whole = torch.stack(
        [
            torch.tensor([float(weigh(denominator, divmod(i, 2), divmod(k, others)))])
            for i in range(6)
            for k in range(3 * others)
        ]
    ).reshape(6, 3 * others)
    for top, bottom in itertools.combinations(range(7), 2):
        for left, right in itertools.combinations(range(3 * others + 1), 2):
            expected = whole[top:bottom, left:right].double()
            tile = weights.tile(slice(top, bottom), slice(left, right), like)
            tile = torch.ones_like(expected) if tile is None else tile
            torch.testing.assert_close(tile, expected)


def weigh(denominator: str, row: tuple[int, int], column: tuple[int, int]) -> bool:
    """Whether a column (sample, view) is in the denominator of a row, on the identity."""
    if row == column:
        return denominator == "all-and-self"
    return denominator != "negatives" or row[0] != column[0]


@pytest.mark.parametrize("queue", [0, 5])
@pytest.mark.parametrize("name", ["self-supervised", "partial", "signed"])
@pytest.mark.parametrize(
    "options",
    [
        {"unknown": "ignore"},
        {"batch_negatives": False},
        {"positives": "log-mean"},
        {"positives": "mean", "similarity": "distance"},
    ],
)
def test_options_hold_in_tiles(monkeypatch, options, name, queue):
    from likewise.pairwise import reductions, tiles

    monkeypatch.setattr(reductions, "DENSE_LIMIT", 0)
    monkeypatch.setattr(tiles, "TILE", 5)
    graph = contract.GRAPHS[name]()
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(graph.n, 4, generator=generator).double()
    negatives = torch.randn(queue, 4, generator=generator).double() if queue else None
    value = NTXent(0.5, **options)(z, graph, negatives=negatives)
    naive = {"kind" if name == "similarity" else name: option for name, option in options.items()}
    expected = naive_contrastive(z, graph, 2.0, 1.0, False, "all", negatives=negatives, **naive)
    assert value.item() == pytest.approx(expected)


def test_invariant_to_rotation_and_scale():
    graph = Graph.identity(6).views(2)
    z = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)).double()
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))
    scales = torch.rand(12, 1, dtype=torch.float64) + 0.5
    for objective in (NTXent(0.5), BalancedContrastive(), PrototypeContrast()):
        value = objective(z, graph).item()
        assert objective((z * scales) @ rotation, graph).item() == pytest.approx(value)


def single_views_graph() -> Graph:
    """Answers about single views beside the samples: no graph over samples."""
    answers = Graph.from_edges(
        torch.tensor([0, 3, 2]), torch.tensor([5, 8, 9]), torch.tensor([1.0, -1.0, 0.0]), n=12
    )
    return Graph.from_labels(torch.tensor([0, 1, 0, -1, 1, -1])).views(2) + answers


@pytest.mark.parametrize("unknown", ["negative", "ignore"])
@pytest.mark.parametrize("denominator", ["all", "negatives"])
def test_single_pairs_of_views_count(unknown, denominator):
    graph = single_views_graph()
    z = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)).double()
    value = NTXent(0.5, unknown=unknown, denominator=denominator)(z, graph)
    expected = naive_contrastive(
        z, node_level(graph), 2.0, 1.0, False, denominator, unknown=unknown
    )
    assert value.item() == pytest.approx(expected)


def node_level(graph: Graph) -> Graph:
    """The same entries and the same knowledge, listed as edges."""
    known = contract.dense(graph.known())
    i, j = torch.triu_indices(graph.n, graph.n)
    listed = known[i, j] > 0
    i, j = i[listed], j[listed]
    return Graph.from_edges(i, j, contract.dense(graph)[i, j], n=graph.n)


def test_whole_views_cannot_be_paired_where_single_views_differ():
    z = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)).double()
    with pytest.raises(ValueError, match="no graph over samples"):
        BarlowTwins()(z, single_views_graph())
    bare = Graph.identity(6).views(2).without_diagonal()
    expected = BarlowTwins()(z, Graph.identity(6).views(2))
    torch.testing.assert_close(BarlowTwins()(z, bare), expected)


def test_nan_in_a_row_that_nothing_depends_on_is_refused():
    graph = Graph.from_labels(torch.tensor([0, 0, 1, 1, -1]))
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double()
    z[4, 1] = torch.nan
    with pytest.raises(ValueError, match="z holds NaN or infinity, first in row 4"):
        PrototypeContrast()(z, graph)


def test_second_derivative_with_a_stopped_target():
    graph = Graph.identity(3).views(2)
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    target = z.detach().flip(1)
    assert torch.autograd.gradgradcheck(lambda rows: NTXent(0.5)(rows, graph, target=target), (z,))
    assert torch.autograd.gradgradcheck(lambda rows: NTXent(0.5)(rows, graph), (z,))


def test_training_after_validation_in_inference_mode():
    graph = Graph.from_labels(torch.tensor([0, 1, 0, 1])).views(2)
    z = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    for objective in (NTXent(), DecoupledContrastive(), PrototypeContrast(), BarlowTwins()):
        with torch.inference_mode():
            before = objective(z, graph)
        rows = z.clone().requires_grad_()
        value = objective(rows, graph)
        value.backward()
        assert value.item() == pytest.approx(before.item()) and torch.isfinite(rows.grad).all()


def test_a_teacher_with_the_same_single_view_is_refused():
    z = torch.randn(4, 3)
    with pytest.raises(ValueError, match=r"one view of every sample.*two views"):
        NTXent()(z, Graph.identity(4), target=z.flip(1))


def test_arguments_at_call_time():
    z, graph = torch.randn(8, 3), Graph.identity(4).views(2)
    with pytest.raises(TypeError, match="NTXent takes no argument 'temprature'"):
        NTXent()(z, graph, temprature=torch.ones(8))
    with pytest.raises(ValueError, match="temperature is 0.5: at call time give a tensor"):
        NTXent()(z, graph, temperature=0.5)


def test_backward_inside_autocast_is_full_precision():
    graph = Graph.identity(6).views(2)
    z = torch.randn(12, 8, generator=torch.Generator().manual_seed(0))
    for arguments in ({}, {"target": z.flip(1)}):
        slopes = []
        for enabled in (False, True):
            rows = z.clone().requires_grad_()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                NTXent(0.5)(rows, graph, **arguments).backward()
            slopes.append(rows.grad)
        torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("objective", [NTXent(0.5), BalancedContrastive(4.0, 1.5)])
def test_terms_can_be_weighed_anew(monkeypatch, objective):
    """Each part has its own slope, on the path of small batches and on the tiled one."""
    from likewise.pairwise import reductions

    graph = contract.GRAPHS["mixed"]()
    z = torch.randn(graph.n, 4, generator=torch.Generator().manual_seed(0)).double()
    slopes = []
    for limit in (10**9, 0):
        monkeypatch.setattr(reductions, "DENSE_LIMIT", limit)
        rows = z.clone().requires_grad_()
        terms = objective.terms(rows, graph)
        (2.0 * terms["attraction"] - 3.0 * terms["repulsion"]).backward()
        slopes.append(rows.grad)
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-12, atol=1e-14)
