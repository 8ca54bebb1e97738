"""What paper 000 (supervised-theory) says, and what holds: regression on labels is a graph loss.

The paper writes samples in columns, f(X) of K x N and Y of C x N; here they are rows, so that V of
f(X) H = U S V^T are the left singular vectors of the centred rows, and G = Y Y^T.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from likewise import Graph
from likewise.objectives.covariance import VICReg
from likewise.objectives.orthogonal_head import OrthogonalHead
from likewise.objectives.regression import AbsoluteRegression, RelativeRegression, TraceObjective
from likewise.objectives.targets import graph_targets
from likewise.objectives.whitening import WhiteningMSE

N = 12
LABELS = torch.tensor([0, 1, 2, 0, 0, 1, 0, 2, 0, 1, 0, 2])
BALANCED = torch.arange(N) % 3
LAMBDAS = [0.0, 0.03, 1.0]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Matrices of 12 rows are done before a second thread has woken up."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def randn(n: int, d: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def eye(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


def one_hot(labels: Tensor) -> Tensor:
    return eye(int(labels.max()) + 1)[labels]


def dense(graph: Graph) -> Tensor:
    return graph.block(torch.arange(graph.n), dtype=torch.float64)


def centering(n: int) -> Tensor:
    return eye(n) - torch.ones(n, n, dtype=torch.float64) / n


def centered(z: Tensor) -> Tensor:
    return z - z.mean(dim=0)


def close(left: Tensor | float, right: Tensor | float, tolerance: float = 1e-9) -> bool:
    left, right = (x.detach() if isinstance(x, Tensor) else x for x in (left, right))
    return float(left) == pytest.approx(float(right), abs=tolerance)


def orthonormal(z: Tensor) -> Tensor:
    """Orthonormal columns of mean 0 that span those of HZ."""
    return torch.linalg.qr(centered(z))[0]


def energy(z: Tensor, weights: Tensor) -> float:
    """sum_ij G_ij |z_i - z_j|^2, pair by pair."""
    total = 0.0
    for i in range(len(z)):
        for j in range(len(z)):
            total += float(weights[i, j] * (z[i] - z[j]).square().sum())
    return total


def supervised() -> dict[str, tuple[Graph, Tensor]]:
    """Graphs with the targets Y that they come from."""
    targets = randn(N, 2, seed=100)
    soft = torch.softmax(randn(N, 4, seed=101), dim=1)
    return {
        "labels": (Graph.from_labels(LABELS), one_hot(LABELS)),
        "soft labels": (Graph.from_labels(soft), soft),
        "targets": (Graph.from_targets(targets), targets),
        "views": (Graph.identity(N // 2).views(2), eye(N // 2).repeat_interleave(2, dim=0)),
    }


def eq_1(weight: Tensor, bias: Tensor, z: Tensor, y: Tensor, regularization: float) -> Tensor:
    error = (z @ weight.T + bias - y).square().sum()
    return error / len(z) + regularization * weight.square().sum()


def least_squares(z: Tensor, y: Tensor, regularization: float) -> float:
    """The least value of equation 1 over W and b: one least-squares problem, with rows for W."""
    n, d = z.shape
    system = np.zeros((n + d, d + 1))
    system[:n, :d], system[:n, d] = z.numpy(), 1.0
    system[n:, :d] = math.sqrt(regularization * n) * np.eye(d)
    right = np.concatenate([y.numpy(), np.zeros((d, y.shape[1]))])
    solution = np.linalg.lstsq(system, right, rcond=None)[0]
    return float(np.square(system @ solution - right).sum() / n)


def eq_2(z: Tensor, weights: Tensor, regularization: float, *, center: bool = True) -> float:
    """-(1/N) Tr(V^T G V D), with D_kk := 0 where s_k = 0."""
    n = len(z)
    vectors, values, _ = np.linalg.svd((centered(z) if center else z).numpy(), full_matrices=False)
    total = 0.0
    for k, s in enumerate(values):
        if s > 1e-10:
            share = s**2 / (s**2 + regularization * n)
            total -= share * vectors[:, k] @ weights.numpy() @ vectors[:, k] / n
    return total


def constant(weights: Tensor) -> float:
    """Tr(HGH) / N."""
    n = len(weights)
    return float((centering(n) @ weights @ centering(n)).trace()) / n


def descend(loss: Callable[[Tensor], Tensor], start: Tensor, steps: int = 200) -> Tensor:
    free = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [free],
        max_iter=steps,
        tolerance_grad=1e-12,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(free)
        value.backward()
        return value

    optimizer.step(closure)
    return free.detach()


# Lemma 1 and theorem 1


@pytest.mark.parametrize("regularization", LAMBDAS)
@pytest.mark.parametrize("name", supervised())
def test_supervised_theory_lemma_1(name: str, regularization: float) -> None:
    graph, y = supervised()[name]
    weights = dense(graph)
    torch.testing.assert_close(weights, y @ y.T)
    # cst = |YH|^2 / N = Tr(HGH) / N
    assert close(constant(weights), centered(y).square().sum() / N)
    for d in (4, 15):
        z = randn(N, d, seed=d) + 1
        least = least_squares(z, y, regularization)
        assert close(least, eq_2(z, weights, regularization) + constant(weights))
        assert close(least, RelativeRegression(regularization)(z, graph))
        assert close(least, AbsoluteRegression(regularization)(z, graph))


def test_supervised_theory_lemma_1_centered_svd() -> None:
    graph, y = supervised()["labels"]
    weights = dense(graph)
    for regularization in LAMBDAS:
        offsets = []
        for seed in range(3):
            z = randn(N, 4, seed) + 1
            least = RelativeRegression(regularization)(z, graph)
            assert close(least, least_squares(z, y, regularization))
            assert close(least, eq_2(z, weights, regularization) + constant(weights))
            # as in the main text, with the singular vectors of the rows as they are
            printed = eq_2(z, weights, regularization, center=False)
            offsets.append(float(least) - printed)
            assert abs(offsets[-1] - constant(weights)) > 0.05
        assert max(offsets) - min(offsets) > 0.01  # nor is it right with another constant
        # rows of mean 0 make no difference
        z = centered(z)
        printed = eq_2(z, weights, regularization, center=False) + constant(weights)
        assert close(RelativeRegression(regularization)(z, graph), printed)


def test_supervised_theory_lemma_1_positivity() -> None:
    graph, y = supervised()["labels"]
    z = randn(N, 3, seed=0)
    deficient = torch.cat([z, z[:, :1] - z[:, 1:2], torch.ones(N, 1, dtype=torch.float64)], dim=1)
    values = torch.linalg.svdvals(centered(deficient))
    assert int((values > 1e-10).sum()) == 3
    values = torch.where(values > 1e-10, values, 0.0)
    for regularization in (0.03, 1.0):
        share = values.square() / (values.square() + regularization * N)
        assert bool((share >= 0).all()) and bool((share < 1).all())
        assert int((share == 0).sum()) == 2  # as printed, all of them are positive
        least = least_squares(deficient, y, regularization)
        assert close(RelativeRegression(regularization)(deficient, graph), least)
        assert close(AbsoluteRegression(regularization)(deficient, graph), least)
    # lambda = 0: 1 where the direction exists, and 0/0 where it does not
    share = values.square() / values.square()
    assert bool((share[:3] == 1).all()) and bool(share[3:].isnan().all())
    # with D := 0 there, copies and constants neither help nor harm
    for objective in (RelativeRegression(0.0), AbsoluteRegression(0.0)):
        assert close(objective(deficient, graph), least_squares(deficient, y, 0.0))
        assert close(objective(deficient, graph), objective(z, graph))
        collapsed = torch.ones(N, 2, dtype=torch.float64)
        assert close(objective(collapsed, graph), constant(dense(graph)))


@pytest.mark.parametrize("regularization", LAMBDAS)
@pytest.mark.parametrize("name", supervised())
def test_supervised_theory_a_1_closed_form_head(name: str, regularization: float) -> None:
    graph, y = supervised()[name]
    z = randn(N, 4, seed=1) + 1
    objective = AbsoluteRegression(regularization)
    weight, bias = objective.head(z, graph)
    # as printed, with samples in columns
    f, labels, h = z.T, y.T, centering(N)
    printed = labels @ h @ f.T @ torch.linalg.inv(f @ h @ f.T + N * regularization * eye(4))
    ones = torch.ones(N, dtype=torch.float64)
    torch.testing.assert_close(weight, printed)
    torch.testing.assert_close(bias, (labels @ ones - printed @ f @ ones) / N)
    # a stationary point of equation 1, which is convex, and its least value
    weight, bias = weight.clone().requires_grad_(), bias.clone().requires_grad_()
    value = eq_1(weight, bias, z, y, regularization)
    for gradient in torch.autograd.grad(value, (weight, bias)):
        assert float(gradient.abs().max()) < 1e-8
    assert close(value, objective(z, graph))
    value = value.detach()
    for seed in range(5):
        moved = weight.detach() + 0.1 * randn(*weight.shape, seed)
        assert bool(eq_1(moved, bias.detach(), z, y, regularization) > value)


@pytest.mark.parametrize("regularization", LAMBDAS)
@pytest.mark.parametrize("name", supervised())
def test_supervised_theory_theorem_1(name: str, regularization: float) -> None:
    graph, y = supervised()[name]
    z = randn(N, 4, seed=2).requires_grad_()
    absolute = AbsoluteRegression(regularization)(z, graph)
    relative = RelativeRegression(regularization)(z, graph)
    assert close(absolute, relative)
    # the same value everywhere has the same gradient: training is the same
    (left,), (right,) = (torch.autograd.grad(value, z) for value in (absolute, relative))
    assert float(left.abs().max()) > 1e-3
    torch.testing.assert_close(left, right)
    # labels count through who is alike alone: turn them, or keep nothing but the pairs
    turn = torch.linalg.qr(randn(y.shape[1], y.shape[1], seed=3))[0]
    assert close(AbsoluteRegression(regularization)(z, Graph.from_targets(y @ turn)), absolute)
    i, j = (y @ y.T).triu().nonzero().unbind(dim=1)
    pairs = Graph.from_edges(i, j, (y @ y.T)[i, j], n=N)
    assert close(RelativeRegression(regularization)(z, pairs), relative)
    # another graph is another objective
    other = Graph.from_labels(LABELS.roll(1))
    assert not close(RelativeRegression(regularization)(z, other), relative, 1e-3)


# Boundedness, theorem 2 and figure 1


def test_supervised_theory_objective_boundedness() -> None:
    regularization = 0.1
    objective = RelativeRegression(regularization)
    for name, (graph, _) in supervised().items():
        bound = constant(dense(graph))
        for seed, d in enumerate((2, 4, 15)):
            z = randn(N, d, seed)
            # |min L| does not go to infinity: eq. 2 stays in [-Tr(HGH)/N, 0]
            curve = [float(objective(10.0**p * z, graph)) for p in range(-3, 7)]
            assert all(-1e-9 <= value <= bound + 1e-9 for value in curve), name
            # it is the scale that runs away: larger is always better, and never enough
            assert curve == sorted(curve, reverse=True)
            limit = float(RelativeRegression(0.0)(z, graph))
            assert curve[-1] == pytest.approx(limit, abs=1e-6)
            for scale in (0.1, 1.0, 10.0):
                rows = (scale * z).requires_grad_()
                value = objective(rows, graph)
                (gradient,) = torch.autograd.grad(value, rows)
                assert bool(value > limit) and bool((rows * gradient).sum() < 0)
    # in closed form for z = t Y, balanced: the infimum 0 is not attained
    graph, y = Graph.from_labels(BALANCED), one_hot(BALANCED)
    for t in (0.1, 1.0, 100.0, 1e4):
        value = regularization * 2 * 4 / (4 * t**2 + regularization * N)
        assert float(objective(t * y, graph)) == pytest.approx(value, rel=1e-6) and value > 0
    # the bounds are those of a graph without negative eigenvalues
    indefinite = Graph.identity(N // 2).views(2).without_diagonal()
    apart = centered(torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(N // 2))[:, None]
    assert float(objective(apart, indefinite)) > constant(dense(indefinite)) + 0.01


def test_supervised_theory_theorem_2() -> None:
    vectors = orthonormal(randn(N, 4, seed=0))
    turn = torch.linalg.qr(randn(4, 4, seed=1))[0]
    sigma = torch.tensor([0.2, 1.0, 2.5, 7.0], dtype=torch.float64)
    for graph, _ in supervised().values():
        fit = (vectors.T @ dense(graph) @ vectors).diagonal()
        for regularization in (0.03, 1.0):
            objective = RelativeRegression(regularization)

            def loss(s: Tensor) -> Tensor:
                return objective((vectors * s) @ turn, graph)  # noqa: B023

            printed = fit * -2 * sigma * regularization / (sigma**2 + regularization * N) ** 2
            leaf = sigma.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(loss(leaf), leaf)
            torch.testing.assert_close(gradient, printed, atol=1e-10, rtol=1e-8)
            for k in range(4):
                step = 1e-5 * eye(4)[k]
                slope = float(loss(sigma + step) - loss(sigma - step)) / 2e-5
                assert slope == pytest.approx(float(printed[k]), abs=1e-7)


def test_supervised_theory_a_2_signs() -> None:
    graph, regularization = Graph.from_labels(LABELS), 0.1
    weights = dense(graph)
    vectors = orthonormal(randn(N, 4, seed=0))
    sigma = torch.tensor([0.2, 1.0, 2.5, 7.0], dtype=torch.float64)
    fit = (vectors.T @ weights @ vectors).diagonal()
    loss = float(RelativeRegression(regularization)(vectors * sigma, graph)) - constant(weights)
    lemma_1 = sigma**2 / (sigma**2 + regularization * N)
    share = lemma_1 / N  # the D of A.2
    assert loss < -0.1
    # first line as printed, with the D of lemma 1 and with that of A.2
    assert abs(loss - float((lemma_1 * fit).sum())) > 0.1
    assert abs(loss - float((share * fit).sum())) > 0.1
    assert close(loss, -(share * fit).sum())
    # the derivative of D' is positive; its second line has a minus too many
    for s in sigma.tolist():
        total = s**2 + regularization * N
        slopes = [x**2 / ((x**2 + regularization * N) * N) for x in (s - 1e-5, s + 1e-5)]
        slope = (slopes[1] - slopes[0]) / 2e-5
        assert slope == pytest.approx(2 * s * regularization / total**2, abs=1e-8) and slope > 0
        second = -(2 * s * total * N - s**2 * N * 2 * s) / (total**2 * N**2)
        assert second == pytest.approx(-slope, abs=1e-8)
    # the two slips cancel: -dD' q is the printed end, and theorem 2
    leaf = sigma.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(
        RelativeRegression(regularization)(vectors * leaf, graph), leaf
    )
    end = fit * -2 * sigma * regularization / (sigma**2 + regularization * N) ** 2
    torch.testing.assert_close(gradient, end)
    assert bool((gradient < 0).all())


def test_supervised_theory_figure_1() -> None:
    direction = orthonormal(randn(N, 1, seed=0))
    graph = Graph.from_targets(direction)  # (V^T G V)_kk = 1, as in the figure

    def slope(sigma: float, regularization: float) -> float:
        leaf = torch.tensor(sigma, dtype=torch.float64, requires_grad=True)
        value = RelativeRegression(regularization)(leaf * direction, graph)
        return float(torch.autograd.grad(value, leaf)[0])

    for regularization in (0.01, 0.1, 1.0):
        # it vanishes for large sigma, as 2 lambda / sigma^3 ...
        for sigma in (1e2, 1e3):
            tail = -2 * regularization / sigma**3
            assert slope(sigma, regularization) == pytest.approx(tail, rel=1e-2)
        # ... but at sigma = 0 as well: it peaks in between
        assert slope(0.0, regularization) == 0
        peak = math.sqrt(regularization * N / 3)
        grid = [slope(peak * t, regularization) for t in (0.01, 0.1, 0.5, 1, 2, 10, 100)]
        assert grid[:4] == sorted(grid[:4], reverse=True) and grid[3:] == sorted(grid[3:])
        found = minimize_scalar(
            slope, bounds=(0.1 * peak, 10 * peak), args=(regularization,), method="bounded"
        )
        assert found.x == pytest.approx(peak, rel=1e-3)
    # and it vanishes with lambda
    assert slope(1.0, 1e-6) == pytest.approx(-2e-6, rel=1e-3)
    # a direction that has collapsed entirely gets no gradient, though it would help
    graph, y = Graph.from_labels(BALANCED), one_hot(BALANCED)
    objective = RelativeRegression(0.1)
    z = torch.stack([y[:, 0], torch.zeros(N, dtype=torch.float64)], dim=1).requires_grad_()
    value = objective(z, graph)
    (gradient,) = torch.autograd.grad(value, z)
    assert float(gradient[:, 0].abs().max()) > 1e-3 and float(gradient[:, 1].abs().max()) == 0
    woken = z.detach() + 0.1 * torch.stack([0 * y[:, 1], y[:, 1]], dim=1)
    assert bool(objective(woken, graph) < value - 1e-3)


def test_supervised_theory_a_2_third_observation() -> None:
    views = Graph.identity(N // 2).views(2)
    answers = Graph.from_edges(torch.tensor([0, 2]), torch.tensor([1, 3]), -1.0, n=N)
    graphs = {
        "views": views,
        "labels": Graph.from_labels(LABELS),
        "zero-one loss": Graph.from_loss(BALANCED, "zero-one", form="raw"),
        "views without diagonal": views.without_diagonal(),
        "answers": Graph.identity(N) + 2 * answers,
    }
    signs = {}
    for name, graph in graphs.items():
        weights = dense(graph)
        centred = centering(N) @ weights @ centering(N)
        torch.testing.assert_close(dense(graph.centered()), centred)
        values, directions = torch.linalg.eigh(centred)
        signs[name] = bool(values[0] > -1e-9)
        # over many V the entries stay non-negative if and only if HGH is semi-definite
        lowest = min(
            float((v.T @ weights @ v).diagonal().min())
            for v in (orthonormal(randn(N, 4, seed)) for seed in range(50))
        )
        assert (lowest > -1e-9) == signs[name], name
        if signs[name]:
            continue
        # along a negative direction the gradient makes sigma smaller
        direction = directions[:, :1]
        assert close(direction.T @ weights @ direction, values[0]) and float(values[0]) < -0.9
        leaf = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        value = RelativeRegression(0.1)(leaf * direction, graph)
        assert float(torch.autograd.grad(value, leaf)[0]) > 1e-3
    assert list(signs.values()) == [True, True, True, False, False]
    # centring decides: minus the zero-one loss has a negative eigenvalue, but not after it
    assert float(torch.linalg.eigvalsh(dense(graphs["zero-one loss"]))[0]) < -1


# Corollary 1 and section 2.1


def spectrum(graph: Graph) -> list[int]:
    """Eigenvalues in descending order, which here are whole numbers."""
    values = torch.linalg.eigvalsh(dense(graph)).flip(0)
    assert float((values - values.round()).abs().max()) < 1e-9
    return values.round().int().tolist()


def test_supervised_theory_corollary_1_eigenvalues() -> None:
    classes, views = 3, 4
    labels = Graph.from_labels(BALANCED)
    ssl = Graph.identity(N // views).views(views)
    # as printed there is one eigenvalue that is not zero; there is one value, many times
    assert spectrum(labels) == [N // classes] * classes + [0] * (N - classes)
    assert spectrum(ssl) == [views] * (N // views) + [0] * (N - N // views)
    # centring takes off one of them
    assert spectrum(labels.centered()) == [4, 4] + [0] * (N - 2)
    assert spectrum(ssl.centered()) == [4, 4] + [0] * (N - 2)
    assert spectrum(Graph.identity(6).views(2).centered()) == [2] * 5 + [0] * 7
    # without the diagonal: V - 1 and -1
    assert spectrum(ssl.without_diagonal()) == [views - 1] * 3 + [-1] * 9
    # classes that are not balanced have more than one value
    assert spectrum(Graph.from_labels(LABELS)) == [6, 3, 3] + [0] * 9


def whiten(z: Tensor) -> Tensor:
    z = centered(z)
    root = torch.linalg.cholesky(z.T @ z / (len(z) - 1))
    return torch.linalg.solve_triangular(root, z.T, upper=False).T


def whitened_views(z: Tensor) -> Tensor:
    return torch.stack([whiten(z[0::2]), whiten(z[1::2])], dim=1).flatten(0, 1)


def test_supervised_theory_corollary_1() -> None:
    """With sigma_k = 1 the trace is W-MSE's and VICReg's invariance, up to constants."""
    graph, samples = Graph.identity(N // 2).views(2), N // 2
    trace = constant(dense(graph)) * N
    for d in (2, 4, samples - 1):
        for seed in range(3):
            z = randn(N, d, seed)
            w = whitened_views(z)
            scale = 2 * (samples - 1)
            torch.testing.assert_close(w.T @ w, scale * eye(d))
            relative = float(RelativeRegression(0.0)(w, graph))
            # sum_ij G_ij |w_i - w_j|^2 = 2 V |W|^2 - 2 Tr(W^T G W)
            fit = scale * (trace - N * relative)
            distance = (2 * 2 * scale * d - 2 * fit) / N
            terms = VICReg(1.0, 1.0, 1.0, epsilon=0.0).terms(w, graph)
            assert close(terms["invariance"], distance)
            assert close(terms["variance"], 0, 1e-7) and close(terms["covariance"], 0)
            # sigma_k >= 1: the hinge stays 0, and regression does not see the scale
            larger = VICReg(1.0, 1.0, 1.0, epsilon=0.0).terms(1.5 * w, graph)
            assert close(larger["variance"], 0) and close(larger["invariance"], 2.25 * distance)
            assert close(RelativeRegression(0.0)(1.5 * w, graph), relative)
            if d == samples - 1:  # whitened rows have equal norms, so that W-MSE only divides
                norm = (samples - 1) ** 2 / samples
                assert close(WhiteningMSE()(z, graph), distance / norm)
    # so that both have the same minimisers: VICReg finds an optimum of the regression
    labels = Graph.from_labels(BALANCED)
    objective = VICReg(1.0, 1.0, 1.0, variance="squared", views="stacked", ddof=0)
    best = descend(lambda rows: objective(rows, labels), randn(N, 2, seed=5))
    assert close(objective(best, labels), 0, 1e-8)
    assert close(RelativeRegression(0.0)(best, labels), 0, 1e-6)


def test_supervised_theory_corollary_1_needs_equal_degrees() -> None:
    invariance = VICReg(1.0, 0.0, 0.0)

    def slopes(graph: Graph) -> list[float]:
        """How VICReg changes with the regression, between whitened batches."""
        batches = [whiten(randn(N, 3, seed)) for seed in range(4)]
        pairs = [(invariance(w, graph), RelativeRegression(0.0)(w, graph)) for w in batches]
        first = pairs[0]
        return [float((v - first[0]) / (r - first[1])) for v, r in pairs[1:]]

    same = slopes(Graph.from_labels(BALANCED))
    assert max(same) - min(same) < 1e-6 and same[0] > 0
    other = slopes(Graph.from_labels(LABELS))
    assert max(other) - min(other) > 0.1


def test_supervised_theory_section_2_1_trace_objective() -> None:
    """-(1/N) Tr(HGH Z Z^T) is the invariance less the spread, weighted by degrees."""
    i, j = torch.tensor([0, 0, 2, 5]), torch.tensor([1, 2, 3, 9])
    signed = Graph.from_edges(i, j, torch.tensor([1.0, -1.0, 2.0, 0.5]), n=N)
    views = Graph.identity(N // 2).views(2)
    for graph in (views, Graph.from_labels(LABELS), signed, signed + views):
        weights = dense(graph)
        for seed in range(3):
            z = randn(N, 3, seed) + 1
            trace = TraceObjective().terms(z, graph)["trace"]
            h = centering(N)
            assert close(trace, -(h @ weights @ h @ z @ z.T).trace() / N)
            spread = (weights.sum(dim=1) * centered(z).square().sum(dim=1)).sum() / N
            assert close(trace, energy(z, weights) / (2 * N) - spread)


def test_supervised_theory_section_2_1_not_vicreg_as_printed() -> None:
    alpha, d = 0.7, 3
    batches = [randn(N, d, seed) + 1 for seed in range(4)]
    objective = TraceObjective(alpha)

    def vicreg(graph: Graph, share: float, scale: float, target: float) -> VICReg:
        """share * sum_ij G_ij |.|^2 + alpha scale^2 |Cov - target I|^2."""
        pairs = float(dense(graph.without_diagonal()).sum())
        weight = alpha * scale**2
        return VICReg(
            share * pairs,
            weight,
            weight,
            variance="squared",
            views="stacked",
            covariance_target=target,
            ddof=0,
        )

    def differences(graph: Graph, other: VICReg) -> list[float]:
        return [float(objective(z, graph) - other(z, graph)) for z in batches]

    graph, degree = Graph.identity(N // 3).views(3), 3
    # the display as printed, with Cov and with Cov times N
    for scale in (1, N):
        printed = vicreg(graph, 1 / N, scale, 1 / scale)
        values = [energy(z, dense(graph)) / N for z in batches]
        for z, value in zip(batches, values, strict=True):
            cov = centered(z).T @ centered(z) * scale / N
            assert close(printed(z, graph), value + alpha * (cov - eye(d)).square().sum(), 1e-7)
        gaps = differences(graph, printed)
        assert max(gaps) - min(gaps) > 1
    # |fHf^T - I| is not |Cov - I|: what one calls perfect costs the other a factor N
    whitened = math.sqrt(N) * orthonormal(batches[0])
    term = TraceObjective(alpha).terms(whitened, graph)["orthogonality"]
    assert close(term, alpha * d * (N - 1) ** 2)
    # equal degrees c: 1 / (2N), and the target (1 + c / (2 alpha N)) I for fHf^T
    target = 1 + degree / (2 * alpha * N)
    right = vicreg(graph, 1 / (2 * N), N, target / N)
    for gap in differences(graph, right):
        assert close(gap, alpha * d * (1 - target**2))
    z = batches[0].clone().requires_grad_()
    left, other = (torch.autograd.grad(f(z, graph), z)[0] for f in (objective, right))
    torch.testing.assert_close(left, other)
    # degrees that are not equal have no such constant
    uneven = Graph.from_labels(LABELS)
    for c in (3, 4, 6):
        gaps = differences(uneven, vicreg(uneven, 1 / (2 * N), N, (1 + c / (2 * alpha * N)) / N))
        assert max(gaps) - min(gaps) > 0.1


# Section 2.2: labels of self-supervised learning


def test_supervised_theory_proposition_1() -> None:
    samples, views = 4, 3
    graph = Graph.identity(samples).views(views)
    rows, columns = range(samples * views), range(samples)
    wanted = torch.tensor([[float(i // views == j // views) for j in rows] for i in rows])
    assert torch.equal(graph.dense(), wanted)
    printed = torch.tensor([[float(n // views == 1) for _ in columns] for n in rows])
    assert not torch.equal(printed @ printed.T, wanted)
    assert int(torch.linalg.matrix_rank(printed)) == 1  # the same in every column
    right = torch.tensor([[float(n // views == j) for j in columns] for n in rows])
    assert torch.equal(right @ right.T, wanted)
    # counted from 1, neighbours of different samples would share a class
    from_one = torch.tensor(
        [[float((n + 1) // views == j) for j in range(samples + 1)] for n in rows]
    )
    assert not torch.equal(from_one @ from_one.T, wanted)
    # these are the targets that the library regresses on: every sample is its own class
    assert torch.equal(graph_targets(graph, torch.float32), right)
    z = randn(samples * views, 3, seed=0)
    own = Graph.from_labels(torch.arange(samples).repeat_interleave(views))
    for objective in (AbsoluteRegression(), RelativeRegression()):
        assert close(objective(z, graph), objective(z, own))
        assert close(objective(z, graph), least_squares(z, right.double(), 0.01))


def test_supervised_theory_section_2_2_worst_case() -> None:
    samples, views = 5, 2
    graph = Graph.identity(samples).views(views)
    tasks = orthonormal(eye(samples)[:, 1:]).repeat_interleave(views, dim=0) / math.sqrt(views)
    torch.testing.assert_close(tasks.T @ tasks, eye(samples - 1))

    def error(z: Tensor, task: Tensor) -> float:
        """The squared error of a linear probe on one target of mean 0 and norm 1."""
        return float(AbsoluteRegression(0.0, reduction="sum")(z, Graph.from_targets(task)))

    def worst(z: Tensor) -> float:
        """The largest error over such tasks of the samples."""
        left, values, _ = torch.linalg.svd(centered(z), full_matrices=False)
        span = left[:, values > 1e-9]
        misses = eye(samples - 1) - tasks.T @ span @ span.T @ tasks
        hardest = tasks @ torch.linalg.eigh(misses)[1][:, -1]
        value = error(z, hardest)
        assert close(value, torch.linalg.eigvalsh(misses)[-1], 1e-7)
        return value

    def loss(z: Tensor) -> float:
        return float(RelativeRegression(0.0)(z, graph))

    for d in (1, 2, 3, 4, 6):
        for seed in range(4):
            z = randn(samples * views, d, seed)
            # the loss is the sum of the errors over a basis of tasks, hence of the mean error ...
            mean = sum(error(z, tasks[:, k]) for k in range(samples - 1)) / (samples - 1)
            assert close(loss(z), (samples - 1) / samples * mean)
            # ... which with K >= N - 1 bounds the worst, and with fewer says nothing of it
            assert loss(z) <= worst(z) <= samples * loss(z) + 1e-9
            if d < samples - 1:
                assert close(worst(z), 1)
    # K = N - 1: the least loss is the least worst case, both 0
    full = randn(samples, samples - 1, seed=0).repeat_interleave(views, dim=0)
    assert close(loss(full), 0) and close(worst(full), 0)
    # labels of two classes are learned perfectly by what fails entirely on another task
    labels = torch.tensor([0, 0, 0, 1, 1]).repeat_interleave(views)
    taught = one_hot(labels) @ randn(2, samples - 1, seed=1)
    assert close(RelativeRegression(0.0)(taught, Graph.from_labels(labels)), 0)
    assert close(worst(taught), 1) and loss(taught) > 0.5
    # K < N - 1: the best there is by the loss has the worst case 1 all the same
    best = descend(lambda z: RelativeRegression(0.0)(z, graph), randn(samples * views, 3, seed=2))
    assert close(loss(best), 1 / samples, 1e-6) and close(worst(best), 1, 1e-6)


# Appendix B


def orthogonal_min(z: Tensor, y: Tensor, seed: int) -> float:
    """min |ZW - Y|^2 / N over W with orthonormal rows (K <= C) or columns (K > C)."""
    size = max(z.shape[1], y.shape[1])
    mirror = eye(size)
    mirror[0, 0] = (-1) ** seed  # a rotation stays a rotation: try the others as well

    def loss(free: Tensor) -> Tensor:
        turn = mirror @ torch.linalg.matrix_exp(free - free.T)
        return (z @ turn[: z.shape[1], : y.shape[1]] - y).square().sum() / len(z)

    return float(loss(descend(loss, randn(size, size, seed), steps=300)))


def printed_orthogonal(z: Tensor, weights: Tensor) -> float:
    values = torch.linalg.eigvalsh(z.T @ weights @ z)
    # An eigenvalue of 0 is one of 1e-16 here, and its root would be 1e-8.
    roots = values[values > 1e-12 * values[-1]].sqrt().sum()
    return float((z.square().sum() + weights.trace() - 2 * roots) / len(z))


def test_supervised_theory_appendix_b_orthogonal_head() -> None:
    scales = torch.tensor([3.0, 1.0, 0.3], dtype=torch.float64)
    for d, labels in ((2, LABELS), (3, LABELS), (3, torch.arange(N) % 4)):
        graph, y = Graph.from_labels(labels), one_hot(labels)
        z = randn(N, d, seed=d) * scales[:d] + 0.5
        value = OrthogonalHead()(z, graph)
        assert close(value, printed_orthogonal(z, dense(graph)))
        left, _, right = torch.linalg.svd(z.T @ y, full_matrices=False)
        torch.testing.assert_close(left @ right @ (left @ right).T, eye(d))
        assert close(value, (z @ left @ right - y).square().sum() / N)
        assert close(value, min(orthogonal_min(z, y, seed) for seed in range(4)), 1e-6)
        # a graph of pairs, without labels, has the same value
        i, j = dense(graph).triu().nonzero().unbind(dim=1)
        assert close(OrthogonalHead()(z, Graph.from_edges(i, j, n=N)), value)
        # no bias here: the mean counts, which the free head does not see
        assert abs(float(OrthogonalHead()(z + 1, graph) - value)) > 0.1
        assert close(RelativeRegression()(z + 1, graph), RelativeRegression()(z, graph))


def test_supervised_theory_appendix_b_more_dimensions_than_targets() -> None:
    labels = torch.arange(N) % 2
    graph, y = Graph.from_labels(labels), one_hot(labels)
    z = randn(N, 3, seed=0) * torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64)
    printed = printed_orthogonal(z, dense(graph))
    left, _, right = torch.linalg.svd(z.T @ y, full_matrices=False)
    head = left @ right
    torch.testing.assert_close(head.T @ head, eye(2))
    assert float((z @ head).norm()) < float(z.norm()) - 0.1
    # W* itself is below the printed minimum, and W* is not the best either
    at_head = float((z @ head - y).square().sum() / N)
    best = min(orthogonal_min(z, y, seed) for seed in range(4))
    assert best < at_head - 0.01 < printed - 0.02
    with pytest.raises(ValueError, match="at least as many targets as dimensions"):
        OrthogonalHead()(z, graph)
    # targets of zeros make room
    padded = Graph.from_labels(labels, n_classes=3)
    wide = torch.cat([y, torch.zeros(N, 1, dtype=torch.float64)], dim=1)
    assert close(OrthogonalHead()(z, padded), printed)
    assert close(printed, min(orthogonal_min(z, wide, seed) for seed in range(4)), 1e-6)


def test_supervised_theory_appendix_b_needs_a_semidefinite_graph() -> None:
    graph = Graph.identity(N // 2).views(2).without_diagonal()
    z = randn(N, 4, seed=0)
    values = torch.linalg.eigvalsh(z.T @ dense(graph) @ z)
    assert float(values.min()) < -1  # whose square root is not real
    assert close(OrthogonalHead()(z, graph), printed_orthogonal(z, dense(graph)))  # counts as 0


# Label imbalance, the form without singular vectors, and the optimum over V


def test_supervised_theory_label_imbalance() -> None:
    labels = torch.tensor([0] * 5 + [1] * 3 + [2] * 2 + [3] * 2)
    counts = torch.bincount(labels)
    graph, balanced = Graph.from_labels(labels), Graph.from_labels(labels, balance=1.0)
    assert spectrum(graph) == [5, 3, 2, 2] + [0] * 8
    assert spectrum(balanced) == [1] * 4 + [0] * 8
    y = one_hot(labels)
    torch.testing.assert_close(dense(balanced), (y / counts) @ y.T)
    # the objective is another one: between directions that part two classes each
    codes = eye(4)[labels]
    large, small = codes[:, :1] - codes[:, 1:2] * 5 / 3, codes[:, 2:3] - codes[:, 3:]
    values = [float(RelativeRegression(0.0)(z, graph)) for z in (large, small)]
    assert close(values[1] - values[0], (2 * 5 * 3 / 8 - 2) / N) and values[0] < values[1]
    values = [float(RelativeRegression(0.0)(z, balanced)) for z in (large, small)]
    assert close(values[0], values[1])
    # 1 / n_c weighs the regressions on single classes
    z = randn(N, 3, seed=0)
    for objective in (RelativeRegression(0.1), AbsoluteRegression(0.1)):
        single = [objective(z, Graph.from_targets(y[:, c])) for c in range(4)]
        assert close(objective(z, graph), sum(single))
        assert close(
            objective(z, balanced), sum(s / n for s, n in zip(single, counts.tolist(), strict=True))
        )


def weighted_form(z: Tensor, g: Tensor, weight: Tensor, regularization: float, n: float) -> Tensor:
    """lam Tr(H_w S G S H_w (K_w + lam n I)^-1), S = diag(sqrt w)."""
    root = weight.sqrt()
    h = eye(len(z)) - torch.outer(root, root) / weight.sum()
    inner = h @ (root[:, None] * g * root) @ h
    kernel = h @ (root[:, None] * (z @ z.T) * root) @ h
    inverse = torch.linalg.inv(kernel + regularization * n * eye(len(z)))
    return regularization * (inner @ inverse).trace()


def test_supervised_theory_label_imbalance_sample_weights() -> None:
    graph, y = Graph.from_labels(LABELS), one_hot(LABELS)
    z, regularization = randn(N, 3, seed=1) + 1, 0.1
    counts = torch.bincount(LABELS)
    weight = (N / (3 * counts))[LABELS].double()
    # weighted ridge regression with a bias, solved as such
    root = weight.sqrt()[:, None]
    system = torch.cat([root * z, root], dim=1)
    penalty = torch.cat([math.sqrt(regularization * N) * eye(3), torch.zeros(3, 1)], dim=1)
    system, right = torch.cat([system, penalty]), torch.cat([root * y, torch.zeros(3, 3)])
    head = torch.linalg.lstsq(system, right).solution
    least = (system @ head - right).square().sum() / N
    assert close(least, weighted_form(z, dense(graph), weight, regularization, N))
    assert abs(float(least - RelativeRegression(regularization)(z, graph))) > 1e-3
    # equal weights are the plain form; a weight of 2 is a row that occurs twice
    ones = torch.ones(N, dtype=torch.float64)
    plain = RelativeRegression(regularization)(z, graph)
    assert close(weighted_form(z, dense(graph), ones, regularization, N), plain)
    times = torch.tensor([1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 1, 1])
    rows = torch.arange(N).repeat_interleave(times)
    repeated = RelativeRegression(regularization)(z[rows], graph.subset(rows))
    formula = weighted_form(z, dense(graph), times.double(), regularization, len(rows))
    assert close(repeated, formula)


def test_supervised_theory_svd_free_form() -> None:
    def direct(z: Tensor, weights: Tensor, regularization: float) -> Tensor:
        h = centering(N)
        inverse = torch.linalg.inv(h @ z @ z.T @ h + regularization * N * eye(N))
        return regularization * (h @ weights @ h @ inverse).trace()

    mixed = 0.5 * Graph.identity(N // 2).views(2) + Graph.from_edges(
        torch.tensor([0, 3]), torch.tensor([4, 7]), torch.tensor([1.0, -1.0]), n=N
    )
    for graph in (Graph.from_labels(LABELS), mixed):
        weights = dense(graph)
        for regularization in (1e-3, 0.03, 1.0):
            for d in (3, 15):
                z = randn(N, d, seed=d) + 1
                value = direct(z, weights, regularization)
                assert close(value, eq_2(z, weights, regularization) + constant(weights))
                assert close(value, RelativeRegression(regularization)(z, graph))
        # lambda -> 0 is the pseudo-inverse
        z = randn(N, 3, seed=0)
        assert close(direct(z, weights, 1e-9), RelativeRegression(0.0)(z, graph), 1e-6)


def test_supervised_theory_svd_free_form_gradient() -> None:
    graph = Graph.from_labels(LABELS)
    weights, regularization = dense(graph), 0.03

    def by_svd(z: Tensor) -> Tensor:
        vectors, values, _ = torch.linalg.svd(centered(z), full_matrices=False)
        share = values.square() / (values.square() + regularization * N)
        return -(share * (vectors.T @ weights @ vectors).diagonal()).sum() / N

    def gradients(z: Tensor) -> tuple[Tensor, Tensor]:
        z = z.clone().requires_grad_()
        value = RelativeRegression(regularization)(z, graph)
        return torch.autograd.grad(value, z)[0], torch.autograd.grad(by_svd(z), z)[0]

    def measured(z: Tensor) -> Tensor:
        slopes = torch.zeros_like(z)
        for i in range(z.shape[0]):
            for k in range(z.shape[1]):
                step = torch.zeros_like(z)
                step[i, k] = 1e-5
                high, low = (eq_2(z + s * step, weights, regularization) for s in (1, -1))
                slopes[i, k] = (high - low) / 2e-5
        return slopes

    generic = randn(N, 3, seed=0)
    ours, svd = gradients(generic)
    torch.testing.assert_close(ours, svd)
    torch.testing.assert_close(ours, measured(generic), atol=1e-8, rtol=0)
    # whitened: singular vectors are arbitrary, and their derivative is infinite
    blocks = torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]).double()
    whitened = blocks.repeat(3, 1)
    assert torch.equal(whitened.T @ whitened, N * eye(3))
    ours, svd = gradients(whitened)
    torch.testing.assert_close(ours, measured(whitened), atol=1e-8, rtol=0)
    assert not torch.allclose(svd, ours, atol=1e-4)
    # rank-deficient: finite and right
    deficient = torch.cat([generic, torch.zeros(N, 2, dtype=torch.float64)], dim=1)
    ours, _ = gradients(deficient)
    torch.testing.assert_close(ours, measured(deficient), atol=1e-8, rtol=0)


def test_supervised_theory_eq_2_optimum_over_v() -> None:
    labels = torch.tensor([0] * 5 + [1] * 4 + [2] * 2 + [3])
    graph = Graph.from_labels(labels)
    total = constant(dense(graph)) * N
    values, vectors = torch.linalg.eigh(dense(graph.centered()))
    values, vectors = values.flip(0), vectors.flip(1)
    for d in (1, 2, 3, 4):
        # equal D: what is explained is the sum of the top eigenvalues of HGH, and no V has more
        best = (total - float(values[:d].sum())) / N
        assert close(RelativeRegression(0.0)(vectors[:, :d], graph), best)
        for seed in range(20):
            assert float(RelativeRegression(0.0)(randn(N, d, seed), graph)) > best
    found = descend(lambda z: RelativeRegression(0.0)(z, graph), randn(N, 2, seed=0))
    assert close(RelativeRegression(0.0)(found, graph), (total - float(values[:2].sum())) / N, 1e-8)
    span = orthonormal(found)
    projection = vectors[:, :2] @ vectors[:, :2].T
    torch.testing.assert_close(span @ span.T, projection, atol=1e-4, rtol=0)
    # unequal D: the largest belongs to the largest eigenvalue
    sigma = torch.tensor([3.0, 1.5, 0.5], dtype=torch.float64)
    objective = RelativeRegression(0.1)
    share = sigma**2 / (sigma**2 + 0.1 * N)
    best = (total - float((share * values[:3]).sum())) / N
    assert close(objective(vectors[:, :3] * sigma, graph), best)
    assert float(objective(vectors[:, :3] * sigma.flip(0), graph)) > best + 1e-3
    for seed in range(20):
        assert float(objective(orthonormal(randn(N, 3, seed)) * sigma, graph)) > best
    # the centred graph: the top eigenvectors of G itself explain less
    raw = torch.linalg.eigh(dense(graph))[1].flip(1)[:, :2]
    assert float(RelativeRegression(0.0)(raw, graph)) > (total - float(values[:2].sum())) / N + 0.01
