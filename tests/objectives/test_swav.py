import math

import pytest
import torch

from likewise import Graph
from likewise.objectives.swav import SwAV, balanced_codes
from tests.objectives import contract
from tests.objectives.contract import dense

PROTOTYPES = 5


def rows(n, dim=4, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(z):
    return z / z.norm(dim=1, keepdim=True)


def sinkhorn(scores, epsilon=0.05, iterations=3):
    """facebookresearch/swav, line by line; scores (rows, prototypes)."""
    q = torch.exp(scores / epsilon).T
    k, b = q.shape
    q /= q.sum()
    for _ in range(iterations):
        q /= q.sum(dim=1, keepdim=True)
        q /= k
        q /= q.sum(dim=0, keepdim=True)
        q /= b
    q *= b
    return q.T


class TestSwAV(contract.TwoViewForm, contract.PreventsCollapse):
    def make(self, **changes):
        return SwAV(self.dim, PROTOTYPES, temperature=0.2, seed=4, **changes)

    def prototypes(self):
        return unit(self.make().prototypes.detach().double())

    def naive(self, z, graph, target=None, negatives=None):
        prototypes, entries, views = self.prototypes(), dense(graph), graph.n_views
        scores = unit(z) @ prototypes.T
        other = scores if target is None else unit(target) @ prototypes.T
        codes = torch.zeros_like(other)
        for v in range(views):
            view = other[v::views]
            if negatives is not None:
                view = torch.cat([unit(negatives) @ prototypes.T, view])
            codes[v::views] = sinkhorn(view)[-len(z) // views :]
        total = weights = 0.0
        for i in range(graph.n):
            exponentials = [math.exp(float(score) / 0.2) for score in scores[i]]
            for j in range(graph.n):
                if i == j:
                    continue
                weight = float(entries[i, j])
                weights += abs(weight)
                for k in range(PROTOTYPES):
                    likelihood = math.log(exponentials[k] / sum(exponentials))
                    total -= weight * float(codes[j, k]) * likelihood
        return total / weights

    def original(self, z1, z2):
        """The loop of facebookresearch/swav over two crops."""
        prototypes = self.prototypes()
        outputs = [unit(z1) @ prototypes.T, unit(z2) @ prototypes.T]
        loss = 0.0
        for crop in range(2):
            q = sinkhorn(outputs[crop])
            p = (outputs[1 - crop] / 0.2).log_softmax(dim=1)
            loss -= (q * p).sum(dim=1).mean()
        return loss / 2

    def test_gradient(self, graph):
        """The codes are constants: the gradient is that with the same rows as a fixed target."""
        z, arguments = self.rows(graph).requires_grad_(), self.arguments(graph)
        objective = self.make().double()
        fixed = {"target": z.detach().clone(), **arguments}
        assert torch.autograd.gradcheck(lambda r: objective(r, graph, **fixed), (z,), atol=1e-6)
        parameters = (z, objective.prototypes)
        own = torch.autograd.grad(objective(z, graph, **arguments), parameters)
        expected = torch.autograd.grad(objective(z, graph, **fixed), parameters)
        torch.testing.assert_close(own, expected)


class TestSwAVOfATeacher(TestSwAV):
    teacher = True


class TestSwAVWithAQueue(TestSwAV):
    queue = True


def test_multi_crop():
    """The codes of 2 global views are predicted by 4 views, as the public code does it."""
    z, t = rows(12), rows(6, seed=1)
    objective = SwAV(4, PROTOTYPES).double()
    prototypes = unit(objective.prototypes.detach())
    loss = 0.0
    for crop in range(2):
        q = sinkhorn(unit(t[crop::2]) @ prototypes.T)
        parts = []
        for view in range(4):
            if view != crop:
                p = (unit(z[view::4]) @ prototypes.T / 0.1).log_softmax(dim=1)
                parts.append(-(q * p).sum(dim=1).mean())
        loss += sum(parts) / len(parts)
    value = objective(z, Graph.identity(3).views(4), target=t)
    torch.testing.assert_close(value, loss / 2)


def test_gradient_of_the_prototypes():
    z, t, graph = rows(12), rows(12, seed=1), contract.signed_graph()
    objective = SwAV(4, PROTOTYPES, epsilon=1e6).double()  # codes that do not depend on them

    def value(prototypes):
        return torch.func.functional_call(
            objective, {"prototypes": prototypes}, (z, graph), {"target": t}
        )

    start = objective.prototypes.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(value, (start,), atol=1e-5)


def test_no_gradient_reaches_the_target():
    z, t = rows(12), rows(12, seed=1).requires_grad_()
    objective = SwAV(4, PROTOTYPES).double()
    value = objective(z, Graph.identity(6).views(2), target=t)
    assert torch.autograd.grad(value, t, allow_unused=True) == (None,)


def test_codes_are_balanced_and_do_not_overflow():
    scores = rows(40, 8)
    codes = balanced_codes(scores, epsilon=0.5, iterations=200)
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(40).double())
    torch.testing.assert_close(codes.sum(dim=0), torch.full((8,), 5.0).double())
    sharp = balanced_codes(scores.float(), epsilon=1e-4, iterations=3)
    assert torch.isfinite(sharp).all()


def test_first_prototypes_come_from_the_seed():
    first, second, other = SwAV(4, 6), SwAV(4, 6), SwAV(4, 6, seed=1)
    assert torch.equal(first.prototypes, second.prototypes)
    assert not torch.equal(first.prototypes, other.prototypes)
    torch.testing.assert_close(first.prototypes.norm(dim=1), torch.ones(6))
    assert "prototypes" in first.state_dict()


def test_the_scale_of_rows_and_prototypes_does_not_matter():
    z, graph = rows(12), contract.mixed_graph()
    objective = SwAV(4, PROTOTYPES).double()
    before = objective(z, graph)
    with torch.no_grad():
        objective.prototypes *= 3.0
    torch.testing.assert_close(objective(5.0 * z, graph), before)


def test_sum_is_the_mean_times_the_weight_of_the_pairs():
    z, graph = rows(12), contract.signed_graph()
    weight = (dense(graph) - torch.diag(dense(graph).diagonal())).abs().sum()
    mean, total = (SwAV(4, 5, reduction=r).double()(z, graph) for r in ("mean", "sum"))
    torch.testing.assert_close(total, weight * mean)


def test_nothing_compared_costs_nothing():
    z = rows(6).requires_grad_()
    value = SwAV(4, 5).double()(z, Graph.identity(6))
    value.backward()
    assert value.item() == 0
    assert torch.equal(z.grad, torch.zeros_like(z))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_gradient_is_finite_at_collapse(value):
    z = torch.full((12, 4), value, requires_grad=True)
    objective = SwAV(4, 5)
    objective(z, contract.signed_graph()).backward()
    assert torch.isfinite(z.grad).all() and torch.isfinite(objective.prototypes.grad).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "dim is 0"),
        ({"prototypes": 1}, "prototypes is 1.*at least 2"),
        ({"sinkhorn_iterations": 0}, "sinkhorn_iterations is 0"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
    ],
)
def test_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SwAV(**{"dim": 4, **arguments})


def test_rows_must_have_the_dimensions_of_the_prototypes():
    with pytest.raises(ValueError, match=r"z has 3 dimensions.*have 4.*SwAV\(dim=3\)"):
        SwAV(4, 5)(torch.randn(4, 3), Graph.identity(2).views(2))
