import math

import numpy as np
import pytest
import torch

from likewise import Graph
from likewise.objectives.coding_rate import TotalCodingRate
from likewise.objectives.entropy_coding import MaximumEntropyCoding
from likewise.objectives.matrix_information import MatrixAlignment, MatrixSSL, MatrixUniformity
from likewise.objectives.uniformity import UniformityMCE, UniformityMKL
from tests.objectives import contract
from tests.objectives.contract import dense

DIM = contract.DIM
IDENTITY = np.eye(DIM)


def unit(z):
    return np.array([row / np.linalg.norm(row) for row in np.asarray(z)])


def branches(z, graph, target=None):
    """Left: a view. Right: the weighted mean of those alike in another view."""
    views = graph.n_views
    z, other = np.asarray(z), np.asarray(z if target is None else target)
    weights = dense(graph).numpy()[::views, ::views].copy()
    if views == 1:
        np.fill_diagonal(weights, 0.0)
    degree = np.abs(weights).sum(axis=1)
    for i in range(len(weights)):
        for j in range(len(weights)):
            if weights[i, j]:
                weights[i, j] /= math.sqrt(degree[i] * degree[j])
    if views == 1:
        return [(z, weights @ other)]
    return [
        (z[u::views], weights @ other[v::views])
        for u in range(views)
        for v in range(views)
        if (u < v if target is None else u != v)
    ]


def log(matrix):
    """The principal logarithm, also of a matrix that is not symmetric."""
    values, vectors = np.linalg.eig(matrix + 0j)
    return (vectors * np.log(values) @ np.linalg.inv(vectors)).real


def series(matrix):
    """log(I + M) to the fourth order."""
    return sum((-1) ** (k + 1) / k * np.linalg.matrix_power(matrix, k) for k in range(1, 5))


def cross_covariance(left, right, ddof=1):
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    total = sum(np.outer(a, b) for a, b in zip(left, right, strict=True))
    return total / (len(left) - ddof)


def cross_entropy(p, q, log_q):
    return np.trace(-p @ log_q + q)


def divergence(p, q, log_p, log_q):
    return np.trace(p @ log_p - p @ log_q - p + q)


class Fast:
    """For variants: the gradient along random directions, not entry by entry."""

    def test_gradient(self, graph):
        z, arguments = self.rows(graph).requires_grad_(), self.arguments(graph)
        objective = self.make().double().eval()
        assert torch.autograd.gradcheck(
            lambda rows: self.value(objective, rows, graph, **arguments), (z,), fast_mode=True
        )


# --- uniformity of one set of rows ----------------------------------------------------------------


class TestUniformityMCE(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return UniformityMCE(**{"regularization": 0.1, **changes})

    def of(self, z):
        second = sum(np.outer(row, row) for row in z) / len(z) + 0.1 * IDENTITY
        return cross_entropy(IDENTITY / DIM + 0.1 * IDENTITY, second, log(second))

    def naive(self, z, graph):
        return self.of(unit(z))

    def original(self, z1, z2):
        return self.of(unit(torch.cat([z1, z2])))

    def test_reduction_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        assert self.make(reduction="sum")(z, graph) == self.make()(z, graph)

    def test_gradient_is_finite_for_few_rows_in_one_place(self):
        z = torch.ones(3, 8, requires_grad=True)
        self.make()(z, Graph.identity(3)).backward()
        assert torch.isfinite(z.grad).all()


class TestUniformityMCESeparate(Fast, TestUniformityMCE):
    def make(self, **changes):
        return super().make(views="separate", **changes)

    def naive(self, z, graph):
        return np.mean([self.of(unit(z)[v :: graph.n_views]) for v in range(graph.n_views)])

    def original(self, z1, z2):
        return (self.of(unit(z1)) + self.of(unit(z2))) / 2


class TestUniformityMKL(TestUniformityMCE):
    def make(self, **changes):
        return UniformityMKL(**{"regularization": 0.1, **changes})

    def of(self, z):
        second = sum(np.outer(row, row) for row in z) / len(z) + 0.1 * IDENTITY
        p = IDENTITY / DIM + 0.1 * IDENTITY
        return divergence(p, second, log(p), log(second))

    def test_zero_on_the_even_sphere(self):
        z = torch.cat([torch.eye(8), -torch.eye(8)])
        assert abs(self.make()(z, Graph.identity(16)).item()) < 1e-6


def test_uniformity_is_the_coding_rate_up_to_constants():
    """Theorem 4.4 in its corrected form: the factor is 2 (1 + d lambda) / d."""
    dim, ridge = 5, 0.05
    graph = Graph.identity(7)
    z = torch.randn(7, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rate = TotalCodingRate(epsilon=math.sqrt(ridge * dim))(z, graph).item()
    factor = (1 + dim * ridge) * 2 / dim * rate
    cross = UniformityMCE(ridge)(z, graph).item()
    assert cross == pytest.approx(
        -(1 + dim * ridge) * math.log(ridge) + factor + 1 + dim * ridge, rel=1e-12
    )
    kl = UniformityMKL(ridge)(z, graph).item()
    constant = (1 + dim * ridge) * math.log((1 + dim * ridge) / (ridge * dim))
    assert kl == pytest.approx(constant + factor, rel=1e-10)


@pytest.mark.parametrize("kind", [UniformityMCE, UniformityMKL])
def test_uniformity_rejects(kind):
    with pytest.raises(ValueError, match="regularization is 0.0: give a number above 0"):
        kind(regularization=0.0)
    with pytest.raises(ValueError, match="views is 'mean'"):
        kind(views="mean")
    with pytest.raises(ValueError, match="takes no target"):
        kind()(torch.eye(3), Graph.identity(3), target=torch.eye(3))


# --- matrix uniformity ----------------------------------------------------------------------------


class TestMatrixUniformity(contract.TwoViewForm, contract.PreventsCollapse):
    """The default: I + C in place of C, and the series of its logarithm."""

    def make(self, **changes):
        return MatrixUniformity(**changes)

    def covariances(self, left, right):
        return [cross_covariance(left, right)]

    def of(self, covariance):
        p, q = IDENTITY + IDENTITY / DIM, IDENTITY + covariance
        return cross_entropy(p, q, series(covariance))

    def prepared(self, z):
        return unit(z)

    def value_of(self, pairs):
        return np.mean([np.mean([self.of(c) for c in self.covariances(*pair)]) for pair in pairs])

    def naive(self, z, graph, target=None):
        target = None if target is None else self.prepared(target)
        return self.value_of(branches(self.prepared(z), graph, target))

    def original(self, z1, z2):
        return self.value_of([(self.prepared(z1), self.prepared(z2))])

    def test_reduction_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        assert self.make(reduction="sum")(z, graph) == self.make()(z, graph)

    def test_fewer_rows_than_dimensions_in_float32(self):
        for rows in (torch.randn(3, 16), torch.ones(3, 16)):
            z = rows.repeat_interleave(2, dim=0).requires_grad_()
            value = self.make()(z, Graph.identity(3).views(2))
            value.backward()
            assert torch.isfinite(value) and torch.isfinite(z.grad).all()

    def test_turning_all_rows_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        turn, _ = torch.linalg.qr(self.rows(Graph.identity(DIM), 4))
        assert self.make()(z @ turn, graph).item() == pytest.approx(self.make()(z, graph).item())


class TestMatrixUniformityWithTeacher(Fast, TestMatrixUniformity):
    teacher = True


class TestMatrixUniformityRaw(Fast, TestMatrixUniformity):
    """Neither unit rows nor centred, divided by B, with the series about I."""

    scale = 0.3

    def make(self, **changes):
        return super().make(
            normalize=False, centered=False, ddof=0, ridge=0.7, logarithm="taylor", **changes
        )

    def prepared(self, z):
        return np.asarray(z)

    def covariances(self, left, right):
        return [left.T @ right / len(left)]

    def of(self, covariance):
        p, q = IDENTITY / DIM + 0.7 * IDENTITY, covariance + 0.7 * IDENTITY
        return cross_entropy(p, q, series(q - IDENTITY))

    def spread(self, corners):
        return math.sqrt(self.dim) * corners


class TestMatrixUniformityCrossExact(Fast, TestMatrixUniformity):
    """With a ridge above 1, C + ridge I is regular whatever the branches."""

    def make(self, **changes):
        return super().make(logarithm="exact", ridge=1.5, **changes)

    def of(self, covariance):
        p, q = IDENTITY / DIM + 1.5 * IDENTITY, covariance + 1.5 * IDENTITY
        return cross_entropy(p, q, log(q))


class TestMatrixUniformitySymmetric(Fast, TestMatrixUniformity):
    def make(self, **changes):
        return super().make(covariance="symmetric", **changes)

    def covariances(self, left, right):
        covariance = cross_covariance(left, right)
        return [(covariance + covariance.T) / 2]


class TestMatrixUniformitySymmetricExact(TestMatrixUniformityCrossExact):
    def make(self, **changes):
        return super().make(covariance="symmetric", **changes)

    def covariances(self, left, right):
        covariance = cross_covariance(left, right)
        return [(covariance + covariance.T) / 2]


class TestMatrixUniformityAutoExact(Fast, TestMatrixUniformity):
    """The default ridge is that of the target, 1 / d."""

    def make(self, **changes):
        return super().make(covariance="auto", logarithm="exact", **changes)

    def covariances(self, left, right):
        return [cross_covariance(left, left), cross_covariance(right, right)]

    def of(self, covariance):
        q = covariance + IDENTITY / DIM
        return cross_entropy(2 * IDENTITY / DIM, q, log(q))


def test_the_default_is_close_to_its_exact_logarithm():
    graph = Graph.identity(64).views(2)
    z = torch.randn(64, 16, dtype=torch.float64).repeat_interleave(2, dim=0)
    default = MatrixUniformity()(z, graph)
    exact = MatrixUniformity("symmetric", logarithm="exact", ridge=1.0)(z, graph)
    assert default.item() == pytest.approx(exact.item(), abs=2e-3)


def test_the_cross_covariance_ties_pairs_and_the_own_one_does_not():
    graph = Graph.identity(32).views(2)
    z = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    paired = torch.stack([z, z], dim=1).reshape(64, 4)
    shuffled = torch.stack([z, z.roll(1, 0)], dim=1).reshape(64, 4)
    cross, auto = MatrixUniformity(), MatrixUniformity(covariance="auto")
    assert cross(paired, graph) < cross(shuffled, graph)
    assert auto(paired, graph).item() == pytest.approx(auto(shuffled, graph).item(), rel=1e-5)


@pytest.mark.parametrize("covariance", ["cross", "symmetric"])
def test_branches_that_disagree_raise_with_the_exact_logarithm(covariance):
    z = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]])
    both = torch.stack([z, -z], dim=1).reshape(8, 3)
    objective = MatrixUniformity(covariance, logarithm="exact", ridge=0.01)
    with pytest.raises(ValueError, match="not positive.*logarithm='taylor-shifted'"):
        objective(both, Graph.identity(4).views(2))


@pytest.mark.parametrize("make", [MatrixUniformity, MatrixAlignment])
def test_singular_covariances_without_a_ridge_raise(make):
    z = torch.randn(6, 8)
    options = {"covariance": "auto"} if make is MatrixUniformity else {}
    objective = make(logarithm="exact", ridge=0.0, **options)
    with pytest.raises(ValueError, match="singular, and ridge is 0.0: give a ridge above 0"):
        objective(z, Graph.identity(3).views(2))


# --- matrix alignment -----------------------------------------------------------------------------


class TestMatrixAlignment(contract.TwoViewForm):
    def make(self, **changes):
        return MatrixAlignment(**changes)

    def of(self, p, q):
        return divergence(IDENTITY + p, IDENTITY + q, series(p), series(q))

    def value_of(self, pairs):
        return np.mean([self.of(cross_covariance(a, a), cross_covariance(b, b)) for a, b in pairs])

    def naive(self, z, graph, target=None):
        target = None if target is None else unit(target)
        pairs = branches(unit(z), graph, target)
        # With a teacher, the teacher's covariance is the one that is given.
        return self.value_of(pairs if target is None else [(b, a) for a, b in pairs])

    def original(self, z1, z2):
        return self.value_of([(unit(z1), unit(z2))])

    def test_reduction_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        assert self.make(reduction="sum")(z, graph) == self.make()(z, graph)

    def test_shuffling_the_pairs_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        shuffled = z.clone()
        shuffled[1::2] = z[1::2].roll(1, 0)
        assert self.make()(shuffled, graph).item() == pytest.approx(self.make()(z, graph).item())

    def test_fewer_rows_than_dimensions_in_float32(self):
        for rows in (torch.randn(6, 16), torch.ones(6, 16)):
            z = rows.requires_grad_()
            value = self.make()(z, Graph.identity(3).views(2))
            value.backward()
            assert torch.isfinite(value) and torch.isfinite(z.grad).all()


class TestMatrixAlignmentWithTeacher(Fast, TestMatrixAlignment):
    teacher = True

    def test_shuffling_the_pairs_changes_nothing(self):
        graph = Graph.identity(6).views(2)
        z, target = self.rows(graph), self.rows(graph, 1)
        rolled = target.reshape(6, 2, -1).roll(1, 0).reshape(12, -1)
        first, second = self.make()(z, graph, target=target), self.make()(z, graph, target=rolled)
        assert second.item() == pytest.approx(first.item())


class TestMatrixAlignmentExact(Fast, TestMatrixAlignment):
    """The default ridge is 1 / d."""

    def make(self, **changes):
        return super().make(logarithm="exact", **changes)

    def of(self, p, q):
        p, q = p + IDENTITY / DIM, q + IDENTITY / DIM
        return divergence(p, q, log(p), log(q))

    def test_never_negative_and_zero_for_equal_views(self):
        graph = Graph.identity(6).views(2)
        for seed in range(5):
            assert self.make()(self.rows(graph, seed), graph) >= 0
        same = self.rows(graph)[::2].repeat_interleave(2, dim=0)
        assert abs(self.make()(same, graph).item()) < 1e-12


class TestMatrixAlignmentBothWays(TestMatrixAlignmentExact):
    def make(self, **changes):
        return super().make(symmetric=True, **changes)

    def of(self, p, q):
        return (super().of(p, q) + super().of(q, p)) / 2


class TestMatrixAlignmentCrossEntropy(TestMatrixAlignmentWithTeacher):
    def make(self, **changes):
        return super().make(divergence="cross-entropy", logarithm="exact", **changes)

    def of(self, p, q):
        p, q = p + IDENTITY / DIM, q + IDENTITY / DIM
        return cross_entropy(p, q, log(q))


def test_cross_entropy_stops_the_first_branch():
    graph = Graph.identity(6).views(2)
    z = torch.randn(12, 4, requires_grad=True)
    MatrixAlignment("cross-entropy")(z, graph).backward()
    assert not z.grad[0::2].any() and z.grad[1::2].abs().min() > 0


# --- both -----------------------------------------------------------------------------------------


class TestMatrixSSL(Fast, contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return MatrixSSL(**{"alignment_weight": 0.5, **changes})

    def naive(self, z, graph, target=None):
        arguments = {} if target is None else {"target": target}
        uniformity = TestMatrixUniformity().naive(z, graph, **arguments)
        return uniformity + 0.5 * TestMatrixAlignment().naive(z, graph, **arguments)

    def original(self, z1, z2):
        uniformity = TestMatrixUniformity().original(z1, z2)
        return uniformity + 0.5 * TestMatrixAlignment().original(z1, z2)

    def test_terms_have_names(self):
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        assert list(self.make().terms(z, graph)) == ["uniformity", "alignment"]
        assert list(self.make(alignment_weight=0.0).terms(z, graph)) == ["uniformity"]


class TestMatrixSSLWithTeacher(TestMatrixSSL):
    teacher = True


def test_repeated_eigenvalues_have_a_finite_gradient():
    """At the optimum itself all eigenvalues of every covariance are equal."""
    graph = Graph.identity(16).views(2)
    z = torch.cat([torch.eye(8), -torch.eye(8)]).repeat_interleave(2, dim=0).requires_grad_()
    MatrixSSL(logarithm="exact", covariance="symmetric", ddof=0)(z, graph).backward()
    assert z.grad.abs().max() < 1e-5  # a stationary point


def test_training_fills_the_space():
    """From almost one place, and pairs come together: the recipe's default works alone."""
    torch.manual_seed(0)
    graph = Graph.identity(32).views(2)
    x = torch.randn(32, 6).repeat_interleave(2, dim=0) + 0.1 * torch.randn(64, 6)
    layer = torch.nn.Linear(6, 4)
    with torch.no_grad():
        layer.weight.mul_(0.1)
        layer.bias.fill_(1.0)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        MatrixSSL()(layer(x), graph).backward()
        optimizer.step()
    z = torch.nn.functional.normalize(layer(x).detach())
    assert torch.linalg.eigvalsh(torch.cov(z.T)).min() > 0.1
    assert (z[::2] * z[1::2]).sum(dim=1).mean() > 0.9


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (MatrixUniformity, {"covariance": "own"}, "covariance is 'own'"),
        (MatrixUniformity, {"ridge": -1.0}, "ridge is -1.0"),
        (MatrixUniformity, {"ddof": 0.5}, "ddof is 0.5"),
        (MatrixUniformity, {"order": 0}, "order is 0"),
        (MatrixUniformity, {"logarithm": "series"}, "logarithm is 'series'.*'taylor-shifted'"),
        (MatrixAlignment, {"divergence": "js"}, "divergence is 'js'.*'kl'"),
        (MatrixSSL, {"alignment_weight": -1.0}, "alignment_weight is -1.0"),
        (MatrixSSL, {"divergence": "js"}, "divergence is 'js'"),
    ],
)
def test_rejects(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        kind(**changes)


def test_too_few_samples_for_the_covariance():
    with pytest.raises(ValueError, match=r"1 samples with ddof 1.*ddof=0"):
        MatrixSSL()(torch.randn(2, 3), Graph.identity(1).views(2))


@pytest.mark.parametrize(("views", "target_views"), [(2, 3), (3, 2), (1, 2)])
def test_a_teacher_with_other_views(views, target_views):
    """Multi-crop: branches are the pairs of different views."""
    generator = torch.Generator().manual_seed(0)
    graph = Graph.identity(6).views(views)
    z = torch.randn(6 * views, DIM, dtype=torch.float64, generator=generator)
    target = torch.randn(6 * target_views, DIM, dtype=torch.float64, generator=generator)
    pairs = [
        (unit(z)[u::views], unit(target)[v::target_views])
        for u in range(views)
        for v in range(target_views)
        if u != v
    ]
    terms = MatrixSSL().terms(z, graph, target=target)
    assert terms["uniformity"].item() == pytest.approx(TestMatrixUniformity().value_of(pairs))
    mirrored = [(right, left) for left, right in pairs]
    assert terms["alignment"].item() == pytest.approx(TestMatrixAlignment().value_of(mirrored))


@pytest.mark.parametrize("covariance", ["cross", "symmetric"])
@pytest.mark.parametrize(
    "make",
    [
        lambda covariance: MatrixUniformity(covariance, logarithm="exact", ridge=0.0, ddof=0),
        lambda covariance: MaximumEntropyCoding(
            epsilon=0.5, covariance=covariance, logarithm="exact"
        ),
    ],
)
def test_opposite_views_have_no_logarithm(make, covariance):
    """In an even dimension the determinant is positive all the same."""
    corners = torch.cat([torch.eye(4), -torch.eye(4)]).double()
    graph = Graph.identity(8).views(2)
    equal = torch.stack([corners, corners], dim=1).reshape(16, 4)
    opposite = torch.stack([corners, -corners], dim=1).reshape(16, 4)
    assert torch.isfinite(make(covariance)(equal, graph))
    with pytest.raises(ValueError, match=r"logarithm='taylor"):
        make(covariance)(opposite, graph)
