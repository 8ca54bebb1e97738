import math

import pytest
import torch

from likewise import Graph
from likewise.objectives.covariance import BarlowTwins, VICReg
from likewise.objectives.grams import product_energy
from likewise.objectives.spectral import VIC2
from likewise.objectives.whitening import WhiteningMSE
from tests.objectives import contract
from tests.objectives.contract import dense


def compared(graph):
    """(row, column, weight) of all pairs but those of a row with itself."""
    entries = dense(graph)
    for i in range(graph.n):
        for j in range(graph.n):
            if i != j:
                yield i, j, float(entries[i, j])


def mean_distance(z, target, graph, margin):
    total = weights = 0.0
    for i, j, weight in compared(graph):
        distance = float((z[i] - target[j]).norm())
        total += weight * distance**2 if weight > 0 else -weight * max(0.0, margin - distance) ** 2
        weights += abs(weight)
    return total / weights


def views_of(z, graph):
    return [z[v :: graph.n_views] for v in range(graph.n_views)]


def rows(n, dim=4, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- VICReg ---------------------------------------------------------------------------------------


def covariance(z, ddof, centered=True):
    n, dim = z.shape
    means = [float(z[:, k].mean()) if centered else 0.0 for k in range(dim)]
    return [
        [
            sum(float((z[i, k] - means[k]) * (z[i, m] - means[m])) for i in range(n)) / (n - ddof)
            for m in range(dim)
        ]
        for k in range(dim)
    ]


def off_diagonal(matrix):
    size = len(matrix)
    return sum(matrix[k][m] ** 2 for k in range(size) for m in range(size) if k != m)


class TestVICReg(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return VICReg(3.0, 2.0, 0.5, **{"margin": 2.5, **changes})

    def naive(self, z, graph, target=None):
        total = 3.0 * mean_distance(z, z if target is None else target, graph, 2.5)
        for view in views_of(z, graph):
            matrix = covariance(view, ddof=1)
            hinge = sum(max(0.0, 1 - math.sqrt(matrix[k][k] + 1e-4)) for k in range(z.shape[1]))
            total += (2.0 * hinge + 0.5 * off_diagonal(matrix)) / graph.n_views
        return total

    def original(self, z1, z2):
        """Eq. 6 of Bardes et al., of which ours keeps the sums over dimensions."""
        n, dim = z1.shape
        total = 3.0 * sum(float((z1[i] - z2[i]).square().sum()) for i in range(n)) / n
        for view in (z1, z2):
            matrix = covariance(view, ddof=1)
            hinge = sum(max(0.0, 1 - math.sqrt(matrix[k][k] + 1e-4)) for k in range(dim)) / dim
            mu, nu = 2.0 * dim / 2, 0.5 * dim / 2
            total += mu * hinge + nu * off_diagonal(matrix) / dim
        return total

    def spread(self, corners):
        return corners * self.dim**0.5


class TestVICRegOfATeacher(TestVICReg):
    teacher = True


class TestVICRegWideRows(TestVICReg):
    """More dimensions than samples: the n x n form."""

    dim = 9


class TestVICRegSquaredAndStacked(contract.TwoViewForm, contract.PreventsCollapse):
    """``pal``: one covariance of all rows."""

    def make(self, **changes):
        return VICReg(1.0, 2.0, 0.5, variance="squared", views="stacked", ddof=0, **changes)

    def naive(self, z, graph):
        matrix = covariance(z, ddof=0)
        squares = sum((matrix[k][k] - 1) ** 2 for k in range(z.shape[1]))
        return mean_distance(z, z, graph, 1.0) + 2.0 * squares + 0.5 * off_diagonal(matrix)

    def original(self, z1, z2):
        matrix = torch.cat([z1, z2]).T.cov(correction=0)
        penalty = 2.0 * (matrix.diagonal() - 1).square().sum()
        own = matrix.diagonal().square().sum()
        return (z1 - z2).square().sum(dim=1).mean() + penalty + 0.5 * (matrix.square().sum() - own)

    def spread(self, corners):
        return corners * self.dim**0.5


class TestVICRegUncenteredToADegree(contract.PreventsCollapse):
    def make(self, **changes):
        return VICReg(1, 2, 3, covariance_target="degree", centered=False, epsilon=0.1, **changes)

    def naive(self, z, graph):
        total = mean_distance(z, z, graph, 1.0)
        target = math.sqrt(float(dense(graph).abs().sum()) / graph.n**2)
        for view in views_of(z, graph):
            matrix = covariance(view, ddof=1, centered=False)
            hinge = sum(max(0, target - math.sqrt(matrix[k][k] + 0.1)) for k in range(z.shape[1]))
            total += (2 * hinge + 3 * off_diagonal(matrix)) / graph.n_views
        return total

    scale = 0.3


def test_vicreg_of_the_public_code():
    """facebookresearch/vicreg: means over dimensions; variance averaged over views, covariance
    summed."""
    z1, z2 = rows(10, 6), rows(10, 6, seed=1)
    parts = []
    for view in (z1, z2):
        std = (view.var(dim=0) + 1e-4).sqrt()
        matrix = view.T.cov()
        off = matrix - torch.diag(matrix.diagonal())
        parts.append(((1 - std).relu().mean() / 2, off.square().sum() / 6))
    code = 25 * (z1 - z2).square().mean() + sum(25 * a + b for a, b in parts)
    z = torch.stack([z1, z2], dim=1).reshape(20, 6)
    value = VICReg(25.0, 25.0, 2.0)(z, Graph.identity(10).views(2))
    torch.testing.assert_close(value, 6 * code)


def test_vicreg_of_its_paper():
    z1, z2 = rows(10, 6), rows(10, 6, seed=1)
    paper = 25 * (z1 - z2).square().sum(dim=1).mean()
    for view in (z1, z2):
        matrix = view.T.cov()
        off = matrix - torch.diag(matrix.diagonal())
        paper = paper + 25 * (1 - (view.var(dim=0) + 1e-4).sqrt()).relu().sum() / 6
        paper = paper + off.square().sum() / 6
    z = torch.stack([z1, z2], dim=1).reshape(20, 6)
    value = VICReg(25.0, 2 * 25.0 / 6, 2 * 1.0 / 6)(z, Graph.identity(10).views(2))
    torch.testing.assert_close(value, paper)


def test_vicreg_to_the_degree_is_vic2():
    """``pal`` B.1.1 as it holds: |Z^T Z - A I|^2 + sum G |z_i - z_j|^2
    = |Z Z^T - G|^2 + A^2 d - |G|^2 on a graph of equal degrees A."""
    graph = Graph.from_labels(torch.arange(12) % 3)
    z, n, degree = rows(12, 5), 12, 4
    vicreg = VICReg(
        1.0, n**2, n**2, variance="squared", views="stacked", covariance_target="degree", ddof=0,
        centered=False, reduction="sum",
    )(z, graph)  # fmt: skip
    vic2 = VIC2(reduction="sum")(z, graph)
    torch.testing.assert_close(vicreg, vic2 + degree**2 * 5 - graph.norm_squared())


def test_vicreg_covariance_target_is_a_variance():
    z, graph = rows(12), Graph.identity(6).views(2)
    scaled = VICReg(1, 1, 1, covariance_target=4.0, epsilon=0.0).terms(2 * z, graph)
    plain = VICReg(1, 1, 1, epsilon=0.0).terms(z, graph)
    torch.testing.assert_close(scaled["variance"], 2 * plain["variance"])
    torch.testing.assert_close(scaled["covariance"], 16 * plain["covariance"])


def test_vicreg_sums_over_pairs_and_views():
    z, graph = rows(12), Graph.identity(6).views(2)
    mean = VICReg().terms(z, graph)
    total = VICReg(reduction="sum").terms(z, graph)
    torch.testing.assert_close(total["invariance"], 12 * mean["invariance"])
    # No sums over samples: the covariance is a mean already, and views are averaged.
    torch.testing.assert_close(total["variance"], mean["variance"])
    torch.testing.assert_close(total["covariance"], mean["covariance"])


@pytest.mark.parametrize("views", ["separate", "stacked"])
@pytest.mark.parametrize("dim", [4, 40])
def test_vicreg_moves_with_the_rows(views, dim):
    z, graph = rows(12, dim), contract.mixed_graph()
    objective = VICReg(views=views)
    torch.testing.assert_close(objective(z + 7.0, graph), objective(z, graph))
    order = torch.randperm(dim, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(objective(z[:, order], graph), objective(z, graph))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("epsilon", [1e-4, 0.0])
@pytest.mark.parametrize("variance", ["hinge", "squared"])
def test_vicreg_gradient_is_finite_at_collapse(dtype, epsilon, variance):
    z = torch.ones(12, 4, dtype=dtype, requires_grad=True)
    VICReg(epsilon=epsilon, variance=variance)(z, contract.signed_graph()).backward()
    assert torch.isfinite(z.grad).all()


def test_vicreg_needs_two_samples_for_a_covariance():
    with pytest.raises(ValueError, match=r"every view has 1 sample.*stacked"):
        VICReg()(rows(3), Graph.identity(1).views(3))
    assert torch.isfinite(VICReg(views="stacked")(rows(3), Graph.identity(1).views(3)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"invariance_weight": -1}, "invariance_weight is -1"),
        ({"variance_weight": float("nan")}, "variance_weight is nan"),
        ({"covariance_weight": "1"}, "covariance_weight is '1'"),
        ({"variance": "linear"}, "variance is 'linear'.*'hinge'"),
        ({"views": "both"}, "views is 'both'.*'stacked'"),
        ({"covariance_target": "N"}, "covariance_target is 'N'.*'degree'"),
        ({"covariance_target": 0}, "covariance_target is 0"),
        ({"ddof": 2}, "ddof is 2: give 0 or 1"),
        ({"epsilon": -1e-4}, "epsilon is -0.0001"),
        ({"margin": 0}, "margin is 0"),
    ],
)
def test_vicreg_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        VICReg(**arguments)


# --- Barlow Twins ---------------------------------------------------------------------------------


def standardized(z, epsilon=1e-5, centered=True):
    """Columns with variance 1, up to epsilon."""
    if centered:
        z = z - z.sum(dim=0) / len(z)
    return z / (z.square().sum(dim=0) / len(z) + epsilon).sqrt()


def correlation_loss(left, right, weight):
    n, dim = left.shape
    total = 0.0
    for k in range(dim):
        for m in range(dim):
            entry = sum(float(left[i, k] * right[i, m]) for i in range(n)) / n
            total += (1 - entry) ** 2 if k == m else weight * entry**2
    return total


def degree_normalized(matrix):
    degrees = matrix.abs().sum(dim=1)
    scale = torch.where(degrees > 0, degrees.clamp_min(1e-12) ** -0.5, 0.0)
    return scale[:, None] * matrix * scale


def naive_branches(z, target, graph, teacher):
    views = graph.n_views
    if views == 1:
        matrix = dense(graph)
        return [(z, degree_normalized(matrix - torch.diag(matrix.diagonal())) @ target)]
    samples = degree_normalized(dense(graph)[::views, ::views])
    left, right = views_of(z, graph), views_of(target, graph)
    return [
        (left[u], samples @ right[v])
        for u in range(views)
        for v in range(views)
        if (u != v if teacher else u < v)
    ]


class TestBarlowTwins(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return BarlowTwins(0.1, **changes)

    def naive(self, z, graph, target=None):
        branches = naive_branches(z, z if target is None else target, graph, target is not None)
        values = [
            correlation_loss(standardized(left), standardized(right), 0.1)
            for left, right in branches
        ]
        return sum(values) / len(values)

    def original(self, z1, z2):
        """facebookresearch/barlowtwins: batch normalisation of both, then the correlation."""
        normalize = torch.nn.BatchNorm1d(self.dim, affine=False).double()
        matrix = normalize(z1).T @ normalize(z2) / len(z1)
        own = (1 - matrix.diagonal()).square().sum()
        off = matrix - torch.diag(matrix.diagonal())
        return own + 0.1 * off.square().sum()


class TestBarlowTwinsOfATeacher(TestBarlowTwins):
    teacher = True


class TestBarlowTwinsWideRows(TestBarlowTwins):
    """More dimensions than samples: the n x n form."""

    dim = 9


class TestBarlowTwinsStacked(contract.TwoViewForm, contract.PreventsCollapse):
    """``pal`` theorem 1, with the zero-diagonal graph divided by its degrees."""

    def make(self, **changes):
        return BarlowTwins(0.1, views="stacked", epsilon=0.0, **changes)

    def naive(self, z, graph, target=None):
        matrix = dense(graph)
        matrix = degree_normalized(matrix - torch.diag(matrix.diagonal()))
        right = standardized(z if target is None else target, 0.0)
        return correlation_loss(standardized(z, 0.0), matrix @ right, 0.1)

    def original(self, z1, z2):
        """Eq. 4 of ``pal`` with C -> (C + C^T) / 2, the columns normalised over both views."""
        both = standardized(torch.cat([z1, z2]), 0.0)
        n = len(z1)
        matrix = both[:n].T @ both[n:] / n
        matrix = (matrix + matrix.T) / 2
        off = matrix - torch.diag(matrix.diagonal())
        return (1 - matrix.diagonal()).square().sum() + 0.1 * off.square().sum()


class TestBarlowTwinsStackedOfATeacher(TestBarlowTwinsStacked):
    teacher = True


class TestBarlowTwinsUncentered(contract.ObjectiveContract):
    def make(self, **changes):
        return BarlowTwins(0.1, centered=False, **changes)

    def naive(self, z, graph):
        values = [
            correlation_loss(
                standardized(left, centered=False), standardized(right, centered=False), 0.1
            )
            for left, right in naive_branches(z, z, graph, False)
        ]
        return sum(values) / len(values)


@pytest.mark.parametrize("views", ["separate", "stacked"])
@pytest.mark.parametrize("n_views", [2, 3])
def test_barlow_twins_of_a_perfect_solution_is_0(views, n_views):
    corners = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]).double()
    objective = BarlowTwins(1.0, views=views, epsilon=0.0)
    z = corners.repeat_interleave(n_views, dim=0)
    assert objective(z, Graph.identity(4).views(n_views)).item() == pytest.approx(0, abs=1e-12)


def test_barlow_twins_of_the_classes_is_0():
    """``pal`` theorem 2 as it holds: Y (Y^T Y)^(-1/2) R D, for K = C classes of any size."""
    labels = torch.tensor([0] * 6 + [1] * 3 + [2] * 2)
    y = torch.nn.functional.one_hot(labels).double()
    rotation = torch.linalg.qr(rows(3, 3, seed=5)).Q
    z = (y / y.sum(dim=0).sqrt()) @ rotation * torch.tensor([1.0, 5.0, 0.2])
    objective = BarlowTwins(1.0, views="stacked", centered=False, epsilon=0.0)
    assert objective(z, Graph.from_labels(labels)).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("views", ["separate", "stacked"])
def test_barlow_twins_does_not_see_the_scale_of_columns(views):
    z, graph = rows(12), contract.mixed_graph()
    objective = BarlowTwins(views=views, epsilon=0.0)
    scaled = z * torch.tensor([1.0, 3.0, 0.1, 9.0]) + 2.0
    if views == "separate":
        torch.testing.assert_close(objective(scaled, graph), objective(z, graph))
    else:
        torch.testing.assert_close(objective(scaled, graph), objective(z + 2.0, graph))


def test_barlow_twins_sums_over_pairs_of_views():
    z, graph = rows(12), Graph.identity(4).views(3)
    total = BarlowTwins(reduction="sum")(z, graph)
    torch.testing.assert_close(total, BarlowTwins()(z, graph))


def test_barlow_twins_against_fewer_target_views():
    z, t = rows(12), rows(8, seed=1)
    graph = Graph.identity(4).views(3)
    values = [
        correlation_loss(standardized(z[u::3]), standardized(t[v::2]), 0.005)
        for u in range(3)
        for v in range(2)
        if u != v
    ]
    value = BarlowTwins()(z, graph, target=t)
    assert value.item() == pytest.approx(sum(values) / len(values))
    # Stacked: every row against the target's other views, divided by both degrees.
    pairs = torch.zeros(12, 8, dtype=torch.float64)
    for i in range(4):
        for u in range(3):
            for v in range(2):
                pairs[3 * i + u, 2 * i + v] = u != v
    pairs = pairs / (pairs.sum(1, keepdim=True) * pairs.sum(0, keepdim=True)).sqrt()
    left, right = standardized(z) / 12**0.5, standardized(t) / 8**0.5
    matrix = left.T @ pairs @ right
    off = matrix - torch.diag(matrix.diagonal())
    expected = (1 - matrix.diagonal()).square().sum() + 0.005 * off.square().sum()
    torch.testing.assert_close(BarlowTwins(views="stacked")(z, graph, target=t), expected)


@pytest.mark.parametrize("views", ["separate", "stacked"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-5])
def test_barlow_twins_gradient_is_finite_at_collapse(views, epsilon):
    z = torch.ones(12, 4, requires_grad=True)
    BarlowTwins(views=views, epsilon=epsilon)(z, contract.signed_graph()).backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize(
    "objective", [VICReg(1, 0, 0), BarlowTwins(), BarlowTwins(views="stacked")]
)
def test_nothing_compared_costs_nothing(objective):
    z = rows(6).requires_grad_()
    value = objective(z, Graph.identity(6))
    value.backward()
    assert value.item() == 0
    assert torch.equal(z.grad, torch.zeros_like(z))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"off_diagonal_weight": -0.1}, "off_diagonal_weight is -0.1"),
        ({"views": "all"}, "views is 'all'"),
        ({"epsilon": -1}, "epsilon is -1"),
    ],
)
def test_barlow_twins_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BarlowTwins(**arguments)


# --- W-MSE ----------------------------------------------------------------------------------------


def whitened(z, epsilon):
    """Cholesky whitening, as htdt/self-supervised writes it, then unit rows."""
    n, dim = z.shape
    z = z - z.mean(dim=0)
    matrix = (1 - epsilon) * (z.T @ z) / (n - 1) + epsilon * torch.eye(dim, dtype=z.dtype)
    z = z @ torch.linalg.inv(torch.linalg.cholesky(matrix)).T
    return z / z.norm(dim=1, keepdim=True)


def whitened_views(z, views, epsilon, slices):
    result = torch.zeros_like(z)
    for v in range(views):
        view = z[v::views]
        for members in slices:
            result[members * views + v] = whitened(view[members], epsilon)
    return result


class TestWhiteningMSE(contract.TwoViewForm, contract.PreventsCollapse):
    dim = 3
    epsilon = 0.0

    def make(self, **changes):
        return WhiteningMSE(epsilon=self.epsilon, **{"margin": 1.5, **changes})

    def slices(self, n):
        return [[torch.arange(n)]]

    def naive(self, z, graph, target=None):
        values = []
        for slices in self.slices(graph.n // graph.n_views):
            left = whitened_views(z, graph.n_views, self.epsilon, slices)
            right = left
            if target is not None:
                right = whitened_views(target, graph.n_views, self.epsilon, slices)
            values.append(mean_distance(left, right, graph, 1.5))
        return sum(values) / len(values)

    def original(self, z1, z2):
        values = [
            2 - 2 * (whitened(z1[m], self.epsilon) * whitened(z2[m], self.epsilon)).sum(dim=1)
            for slices in self.slices(len(z1))
            for m in slices
        ]
        return torch.cat(values).mean()


class TestWhiteningMSEOfATeacher(TestWhiteningMSE):
    teacher = True


class TestWhiteningMSEShrunk(TestWhiteningMSE):
    """More dimensions than samples need a share of the identity."""

    dim = 7
    epsilon = 0.1


class TestWhiteningMSESlices(TestWhiteningMSE):
    """Two iterations of slices of at least 2 samples."""

    random = True
    epsilon = 0.2

    def make(self, **changes):
        return super().make(slice_size=2, iterations=2, **changes)

    def slices(self, n):
        generator = torch.Generator().manual_seed(3)
        return [torch.randperm(n, generator=generator).tensor_split(n // 2) for _ in range(2)]

    def test_order_of_samples_does_not_matter(self):
        """It matters through the slices alone: moved along with their samples, nothing changes."""
        graph = Graph.identity(6).views(2)
        z = self.rows(graph)
        drawn = torch.randperm(6, generator=torch.Generator().manual_seed(3))
        moved = z.reshape(6, 2, -1)[torch.argsort(drawn)].reshape(12, -1)
        objective = WhiteningMSE(2, epsilon=0.2).double()
        one_by_one = [
            WhiteningMSE(epsilon=0.2)(moved[drawn[m]].flatten(0, 1), Graph.identity(2).views(2))
            for moved in [moved.reshape(6, 2, -1)]
            for m in torch.arange(6).split(2)
        ]
        value = self.value(objective, moved.reshape(12, -1), graph)
        torch.testing.assert_close(value, torch.stack(one_by_one).mean())


def test_whitening_removes_an_affine_map():
    """Up to a rotation that Cholesky factors of both views share: alike views stay at 0."""
    view = rows(20, 3)
    triangle = torch.tensor([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [-1.0, 0.5, 0.2]]).double()
    z = torch.stack([view, view @ triangle.T + 4.0], dim=1).reshape(40, 3)
    value = WhiteningMSE()(z, Graph.identity(20).views(2))
    assert value.item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["one-place", "line", "tiny"])
def test_whitening_is_finite_at_collapse(dtype, epsilon, kind):
    z = {
        "one-place": torch.ones(80, 16),
        "line": torch.randn(80, 1, generator=torch.Generator().manual_seed(0)) * torch.ones(16),
        "tiny": 1 + 1e-6 * torch.randn(80, 16, generator=torch.Generator().manual_seed(0)),
    }[kind]
    z = z.to(dtype).requires_grad_()
    value = WhiteningMSE(epsilon=epsilon)(z, Graph.identity(40).views(2))
    value.backward()
    assert torch.isfinite(value) and torch.isfinite(z.grad).all()


def test_whitening_sums_over_pairs():
    z, graph = rows(12, 3), contract.mixed_graph()
    weight = (dense(graph) - torch.diag(dense(graph).diagonal())).abs().sum()
    total = WhiteningMSE(reduction="sum")(z, graph)
    torch.testing.assert_close(total, weight * WhiteningMSE()(z, graph))


def test_whitening_needs_more_samples_than_dimensions():
    graph = Graph.identity(6).views(2)
    with pytest.raises(ValueError, match=r"a slice holds 6 of 6 samples.*6 dimensions.*epsilon"):
        WhiteningMSE()(rows(12, 6), graph)
    assert torch.isfinite(WhiteningMSE()(rows(12, 5), graph))
    with pytest.raises(ValueError, match=r"a slice holds 3 of 6 samples.*4 dimensions"):
        WhiteningMSE(3)(rows(12, 4), graph, generator=torch.Generator())
    with pytest.raises(ValueError, match="a slice holds 1 sample"):
        WhiteningMSE(epsilon=0.5)(rows(2, 4), Graph.identity(1).views(2))


def test_whitening_in_slices_needs_a_generator():
    with pytest.raises(ValueError, match=r"random slices: give a generator"):
        WhiteningMSE(3)(rows(12, 2), Graph.identity(6).views(2))
    # One slice draws nothing.
    assert torch.isfinite(WhiteningMSE(6, 3)(rows(12, 2), Graph.identity(6).views(2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slice_size": 1}, "slice_size is 1"),
        ({"slice_size": 2.5}, "slice_size is 2.5"),
        ({"iterations": 0}, "iterations is 0"),
        ({"epsilon": 1.5}, "epsilon is 1.5.*share"),
        ({"margin": -2}, "margin is -2"),
    ],
)
def test_whitening_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        WhiteningMSE(**arguments)


# --- Gram forms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 8), (8, 3)])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
def test_product_energy(shape, same, diagonal):
    a = rows(*shape).requires_grad_()
    b = None if same else rows(*shape, seed=1).requires_grad_()
    product = a.T @ (a if same else b)
    if not diagonal:
        product = product - torch.diag(product.diagonal())
    torch.testing.assert_close(product_energy(a, b, diagonal=diagonal), product.square().sum())
    inputs = (a,) if same else (a, b)

    def energy(*tensors):
        return product_energy(*tensors, diagonal=diagonal)

    assert torch.autograd.gradcheck(energy, inputs)
    assert torch.autograd.gradgradcheck(energy, inputs)


def test_product_energy_with_one_constant_side():
    a, b = rows(3, 8).requires_grad_(), rows(3, 8, seed=1)
    for left, right in ((a, b), (b, a)):
        (gradient,) = torch.autograd.grad(product_energy(left, right, diagonal=False), a)
        product = left.T @ right
        product = product - torch.diag(product.diagonal())
        (expected,) = torch.autograd.grad(product.square().sum(), a)
        torch.testing.assert_close(gradient, expected)
