"""What every objective promises. A test class inherits `ObjectiveContract` and says what is its
own: `make` and a naive reference `naive`; it inherits `TwoViewForm` as well where its paper has a
two-view form, and `PreventsCollapse` where it claims to prevent collapse.
"""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise import Graph
from likewise.objectives.base import Objective
from tests.processes import ProcessPair, train

N, DIM = 6, 4


def mixed_graph() -> Graph:
    labels = torch.tensor([0, 1, 0, 2, -1, 1])
    return (0.7 * Graph.identity(N) + 0.3 * Graph.from_labels(labels)).views(2)


def signed_graph() -> Graph:
    """Answers: alike, different, and an explicit 0 (known to be neither)."""
    i, j = torch.tensor([0, 0, 2, 3]), torch.tensor([1, 3, 5, 4])
    answers = Graph.from_edges(i, j, torch.tensor([1.0, -1.0, -1.0, 0.0]), n=N)
    return (Graph.identity(N) + 0.5 * answers).views(2)


GRAPHS = {
    "self-supervised": lambda: Graph.identity(N).views(2),
    "three-views": lambda: Graph.identity(4).views(3),
    "labels": lambda: Graph.from_labels(torch.tensor([0, 1, 0, 2, 2, 1, 0, 1, 0, 2, 0, 1])),
    "labels-views": lambda: Graph.from_labels(torch.tensor([0, 1, 0, 2, 1, 1])).views(2),
    "partial": lambda: Graph.from_labels(torch.tensor([0, 1, 0, -1, 1, -1])).views(2),
    "mixed": mixed_graph,
    "signed": signed_graph,
}


def dense(graph: Graph) -> Tensor:
    """G entry by entry, in float64, through its definition (not through `block`)."""
    nodes = torch.arange(graph.n)
    columns = [torch.full_like(nodes, j) for j in nodes]
    return torch.stack([graph.entries(nodes, j, dtype=torch.float64) for j in columns])


class ObjectiveContract:
    """Inherit, and override what is said in capitals in the comments."""

    dim = DIM
    graphs: tuple[str, ...] = tuple(GRAPHS)  # THE GRAPHS the objective is defined on
    teacher = False  # WHETHER to test with a target
    queue = False  # WHETHER to test with extra negatives
    random = False  # WHETHER a generator drives it
    learning_rate = 0.05
    rows_per_sample = 2  # views in the distributed data
    distributed_samples = 7  # an odd number: the ranks hold different numbers of rows
    float32_tolerance = 1e-4
    autocast_tolerance = 0.05
    scale = 1.0

    # --- what a subclass gives --------------------------------------------------------------

    def make(self, **changes: Any) -> Objective:
        """The OBJECTIVE under test; deterministic parameters."""
        raise NotImplementedError

    def naive(self, z: Tensor, graph: Graph, **arguments: Any) -> float:
        """THE VALUE by loops over the printed formula, in float64, from `dense(graph)`."""
        raise NotImplementedError

    # --- data ---------------------------------------------------------------------------------

    def rows(self, graph: Graph, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return self.scale * torch.randn(graph.n, self.dim, generator=generator, dtype=torch.float64)

    def arguments(self, graph: Graph, seed: int = 1) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        arguments: dict[str, Any] = {}
        if self.teacher:
            arguments["target"] = torch.randn(
                graph.n, self.dim, generator=generator, dtype=torch.float64
            )
        if self.queue:
            arguments["negatives"] = torch.randn(
                5, self.dim, generator=generator, dtype=torch.float64
            )
        return arguments

    def randomness(self) -> dict[str, Any]:
        return {"generator": torch.Generator().manual_seed(3)} if self.random else {}

    def value(self, objective: Objective, z: Tensor, graph: Graph, **arguments: Any) -> Tensor:
        return objective(z, graph, **arguments, **self.randomness())

    def distributed_data(self) -> tuple[Tensor, Graph, dict[str, Any]]:
        n, views = self.distributed_samples, self.rows_per_sample
        generator = torch.Generator().manual_seed(5)
        x = torch.randn(n * views, 5, generator=generator, dtype=torch.float64)
        labels = torch.arange(n) % 3
        graph = (0.5 * Graph.identity(n) + 0.5 * Graph.from_labels(labels)).views(views)
        arguments: dict[str, Any] = {}
        if self.teacher:
            arguments["target"] = torch.randn(
                n * views, 5, generator=generator, dtype=torch.float64
            )
        if self.queue:
            arguments["negatives"] = torch.randn(
                5, self.dim, generator=generator, dtype=torch.float64
            )
        return x, graph, arguments

    def split(self, samples: int, rank: int, world: int) -> slice:
        """Rank 0 takes the larger half."""
        if world == 1:
            return slice(0, samples)
        half = (samples + 1) // 2
        return slice(0, half) if rank == 0 else slice(half, samples)

    @pytest.fixture
    def graph(self, graph_name: str) -> Graph:
        return GRAPHS[graph_name]()

    # --- promises -------------------------------------------------------------------------------

    def test_agrees_with_naive_reference(self, graph: Graph) -> None:
        z, arguments = self.rows(graph), self.arguments(graph)
        value = self.value(self.make().double(), z, graph, **arguments)
        expected = self.naive(z, graph, **arguments)
        assert value.item() == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def test_gradient(self, graph: Graph) -> None:
        z, arguments = self.rows(graph).requires_grad_(), self.arguments(graph)
        objective = self.make().double().eval()
        assert torch.autograd.gradcheck(
            lambda rows: self.value(objective, rows, graph, **arguments), (z,), atol=1e-6
        )

    def test_gradient_to_be_differentiated_again_is_the_same(self, graph: Graph) -> None:
        """It often has a formula of its own, which a check of the gradient does not reach."""
        z, arguments = self.rows(graph).requires_grad_(), self.arguments(graph)
        objective = self.make().double().eval()
        value = self.value(objective, z, graph, **arguments)
        again = torch.autograd.grad(value, z, retain_graph=True, create_graph=True)
        torch.testing.assert_close(again, torch.autograd.grad(value, z))

    def test_terms_sum_to_the_value(self, graph: Graph) -> None:
        z, arguments = self.rows(graph), self.arguments(graph)
        objective = self.make().double()
        terms = copy.deepcopy(objective).terms(z, graph, **arguments, **self.randomness())
        value = self.value(objective, z, graph, **arguments)
        assert sum(term.item() for term in terms.values()) == pytest.approx(value.item())

    def test_order_of_samples_does_not_matter(self, graph: Graph) -> None:
        z, arguments = self.rows(graph), self.arguments(graph)
        views = graph.n_views
        order = torch.randperm(graph.n // views, generator=torch.Generator().manual_seed(9))
        rows = (order[:, None] * views + torch.arange(views)).reshape(-1)
        moved = {k: v[rows] if k == "target" else v for k, v in arguments.items()}
        first = self.value(self.make().double(), z, graph, **arguments)
        second = self.value(self.make().double(), z[rows], graph.subset(rows), **moved)
        assert second.item() == pytest.approx(first.item(), rel=1e-9)

    def test_float32_is_close(self, graph: Graph) -> None:
        z, arguments = self.rows(graph), self.arguments(graph)
        exact = self.value(self.make().double(), z, graph, **arguments).item()
        single = {k: v.float() for k, v in arguments.items()}
        value = self.value(self.make().float(), z.float(), graph, **single)
        assert value.dtype == torch.float32
        tolerance = self.float32_tolerance
        assert value.item() == pytest.approx(exact, rel=tolerance, abs=tolerance)

    def test_bfloat16_autocast_is_finite_and_close(self) -> None:
        graph = Graph.identity(N).views(2)
        z = self.rows(graph).bfloat16()
        arguments = {k: v.bfloat16() for k, v in self.arguments(graph).items()}
        wide = {k: v.double() for k, v in arguments.items()}
        exact = self.value(self.make().double(), z.double(), graph, **wide).item()
        rows = z.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = self.value(self.make().float(), rows, graph, **arguments)
        value.backward()
        assert rows.grad is not None and torch.isfinite(rows.grad).all()
        tolerance = self.autocast_tolerance
        assert value.item() == pytest.approx(exact, rel=tolerance, abs=tolerance)

    @pytest.mark.gpu
    def test_cuda_agrees_with_the_cpu(self, graph: Graph) -> None:
        z, arguments = self.rows(graph), self.arguments(graph)
        gradients = []
        for device in ("cpu", "cuda"):
            rows = z.detach().to(device, copy=True).requires_grad_()
            there = {name: value.to(device) for name, value in arguments.items()}
            value = self.value(self.make().double().to(device), rows, graph, **there)
            value.backward()
            gradients.append((value.detach().cpu(), rows.grad.cpu()))
        (first, slope), (second, other) = gradients
        torch.testing.assert_close(second, first, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(other, slope, rtol=1e-6, atol=1e-8)

    def test_two_processes_equal_one(self, process_pair: ProcessPair) -> None:
        single = train(self, 0, 1)
        for result in process_pair.train(self):
            assert result["losses"] == pytest.approx(single["losses"], rel=1e-6, abs=1e-9)
            for name, value in single["state"].items():
                torch.testing.assert_close(result["state"][name], value, rtol=1e-6, atol=1e-9)

    def test_state_survives_a_checkpoint(self) -> None:
        graph = Graph.identity(N).views(2)
        z, arguments = self.rows(graph), self.arguments(graph)
        objective = self.make().double()
        self.value(objective, z, graph, **arguments)
        file = io.BytesIO()
        torch.save(objective.state_dict(), file)
        file.seek(0)
        restored = self.make().double()
        restored.load_state_dict(torch.load(file))
        expected = self.value(objective, z, graph, **arguments)
        assert self.value(restored, z, graph, **arguments).item() == pytest.approx(expected.item())

    # --- bad input --------------------------------------------------------------------------------

    def test_rejects_nan(self) -> None:
        graph = Graph.identity(N).views(2)
        z = self.rows(graph)
        z[1, 2] = torch.nan
        with pytest.raises(ValueError, match="z holds NaN"):
            self.value(self.make().double(), z, graph, **self.arguments(graph))

    def test_rejects_rows_that_do_not_match_the_graph(self) -> None:
        graph = Graph.identity(N).views(2)
        with pytest.raises(ValueError, match=r"z has 10 rows.*12 nodes.*views"):
            self.value(self.make().double(), self.rows(graph)[:10], graph)

    def test_rejects_a_single_row(self) -> None:
        with pytest.raises(ValueError, match="at least 2"):
            self.value(self.make().double(), torch.ones(1, self.dim).double(), Graph.identity(1))

    def test_rejects_a_matrix_in_place_of_a_graph(self) -> None:
        z = torch.ones(4, self.dim).double()
        with pytest.raises(TypeError, match=r"graph is a Tensor.*Graph.identity"):
            self.value(self.make().double(), z, torch.eye(4))  # type: ignore[arg-type]

    def test_rejects_wrong_shape(self) -> None:
        with pytest.raises(ValueError, match=r"z has shape \(4, 2, 4\)"):
            self.value(self.make().double(), torch.ones(4, 2, 4).double(), Graph.identity(4))

    def test_rejects_an_unknown_reduction(self) -> None:
        with pytest.raises(ValueError, match="reduction is 'average'"):
            self.make(reduction="average")


class TwoViewForm(ObjectiveContract):
    """The graph form equals the two-view form of the method's own paper."""

    def original(self, z1: Tensor, z2: Tensor) -> float:
        """The TWO-VIEW FORM."""
        raise NotImplementedError

    def test_original_two_view_form(self) -> None:
        graph = Graph.identity(N).views(2)
        z = self.rows(graph)
        value = self.value(self.make().double(), z, graph)
        assert value.item() == pytest.approx(float(self.original(z[0::2], z[1::2])), rel=1e-9)


class PreventsCollapse(ObjectiveContract):
    """Rows in one place score worse than rows that fill the space."""

    def test_collapse_scores_worse_than_spread(self) -> None:
        graph = Graph.identity(4 * self.dim).views(2)
        # The two views of a sample agree, and samples fill the sphere (+-e_k).
        corners = torch.cat([torch.eye(self.dim), -torch.eye(self.dim)]).repeat(2, 1)
        spread = self.spread(corners.double()).repeat_interleave(2, dim=0)
        generator = torch.Generator().manual_seed(2)
        noise = torch.randn(spread.shape, generator=generator, dtype=spread.dtype)
        collapsed = spread[:1].expand_as(spread) + 1e-3 * noise
        objective = self.make().double()
        assert self.value(objective, collapsed, graph) > self.value(objective, spread, graph)

    def spread(self, corners: Tensor) -> Tensor:
        """Rows that fill the space, at the scale that the objective wants."""
        return corners
