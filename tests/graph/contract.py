"""What every graph promises, against the dense matrix written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise import Graph


class GraphContract:
    """Inherit, and give the graph and its matrix by definition (loops are fine)."""

    known_everywhere = False

    def make(self) -> Graph:
        raise NotImplementedError

    def matrix(self) -> np.ndarray:
        """G, entry by entry, without the library."""
        raise NotImplementedError

    def known_matrix(self) -> np.ndarray:
        """1 where a pair is known."""
        raise NotImplementedError

    @pytest.fixture
    def graph(self) -> Graph:
        return self.make()

    @pytest.fixture
    def dense(self) -> torch.Tensor:
        return torch.as_tensor(np.asarray(self.matrix(), dtype=np.float64))

    def features(self, rows: int, columns: int = 3) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(rows, columns, generator=generator, dtype=torch.float64)

    def test_dense(self, graph, dense):
        assert graph.shape == tuple(dense.shape)
        torch.testing.assert_close(graph.dense().double(), dense, rtol=1e-5, atol=1e-6)

    def test_product(self, graph, dense):
        z = self.features(graph.n)
        torch.testing.assert_close(graph @ z, dense @ z, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(graph @ z[:, 0], dense @ z[:, 0], rtol=1e-6, atol=1e-6)

    def test_product_gradient(self, graph):
        z = self.features(graph.n).requires_grad_()
        assert torch.autograd.gradcheck(lambda rows: (graph @ rows).sin(), (z,))
        assert torch.autograd.gradgradcheck(lambda rows: (graph @ rows).sin(), (z,))

    def test_product_answers_in_kind(self, graph, dense):
        z = self.features(graph.n).numpy()
        product = graph @ z
        assert isinstance(product, np.ndarray)
        np.testing.assert_allclose(product, dense.numpy() @ z, rtol=1e-6, atol=1e-6)

    def test_block_with_repeats(self, graph, dense):
        rows, columns = torch.tensor([2, 0, 2]), torch.tensor([1, 2, 2, 0])
        block = graph.block(rows, columns, dtype=torch.float64)
        torch.testing.assert_close(block, dense[rows][:, columns], rtol=1e-6, atol=1e-6)

    def test_entries(self, graph, dense):
        i, j = torch.tensor([0, 2, 1, 0]), torch.tensor([1, 2, 0, 0])
        entries = graph.entries(i, j).double()
        torch.testing.assert_close(entries, dense[i, j], rtol=1e-6, atol=1e-6)

    def test_subset_with_repeats(self, graph, dense):
        for rows in (torch.tensor([3, 0, 3, 1, 3]), torch.arange(graph.n).flip(0)):
            subset = graph.subset(rows)
            expected = dense[rows][:, rows]
            torch.testing.assert_close(subset.dense().double(), expected, rtol=1e-5, atol=1e-6)
            z = self.features(len(rows))
            torch.testing.assert_close(subset @ z, expected @ z, rtol=1e-6, atol=1e-6)
            known = torch.as_tensor(np.asarray(self.known_matrix(), dtype=np.float64))
            known = known[rows][:, rows]
            torch.testing.assert_close(subset.known().dense().double(), known)

    def test_negative_node_numbers_count_from_the_end(self, graph, dense):
        rows = torch.tensor([-1, 0, -graph.n])
        block = graph.block(rows, dtype=torch.float64)
        torch.testing.assert_close(block, dense[rows][:, rows], rtol=1e-6, atol=1e-6)

    def test_slicing_as_scikit_learn_does(self, graph, dense):
        sliced = graph[np.array([0, 2]), ...]
        expected = dense[[0, 2]][:, [0, 2]]
        torch.testing.assert_close(
            torch.as_tensor(sliced.dense()).double(), expected, atol=1e-6, rtol=1e-5
        )
        mask = np.arange(graph.n) < 2
        assert graph[mask].n == 2
        assert graph[:3].n == 3

    def test_degrees_and_diagonal(self, graph, dense):
        torch.testing.assert_close(graph.degrees().double(), dense.sum(1), rtol=1e-5, atol=1e-5)
        absolute = graph.degrees(absolute=True).double()
        torch.testing.assert_close(absolute, dense.abs().sum(1), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(
            graph.diagonal().double(), dense.diagonal(), rtol=1e-5, atol=1e-6
        )
        assert graph.trace() == pytest.approx(dense.trace().item(), abs=1e-6)

    def test_nonnegative_is_never_claimed_wrongly(self, graph, dense):
        if graph.nonnegative:
            assert dense.min() >= 0

    def test_class_labels_are_only_given_for_what_they_say(self, graph):
        for made in (graph, 2 * graph, graph.normalized(), graph.views(2)):
            labels = made.class_labels
            if labels is not None:
                alike = (labels[:, None] == labels) & (labels >= 0)
                torch.testing.assert_close(made.dense(), alike.to(made.dense().dtype))

    def test_normalized(self, graph, dense):
        degrees = dense.abs().sum(1)
        scale = torch.where(degrees > 0, degrees.clamp_min(1e-30).rsqrt(), 0.0)
        expected = scale[:, None] * dense * scale
        normalized = graph.normalized()
        torch.testing.assert_close(normalized.dense().double(), expected, rtol=1e-5, atol=1e-6)
        z = self.features(graph.n)
        torch.testing.assert_close(normalized @ z, expected @ z, rtol=1e-6, atol=1e-6)

    def test_centered(self, graph, dense):
        known = torch.as_tensor(np.asarray(self.known_nodes(), dtype=np.float64))
        h = torch.diag(known) - torch.outer(known, known) / known.sum()
        expected = h @ dense @ h
        torch.testing.assert_close(
            graph.centered().dense().double(), expected, rtol=1e-5, atol=1e-5
        )

    def known_nodes(self) -> np.ndarray:
        """1 for the nodes that a centring counts."""
        return np.ones(len(self.matrix()))

    def test_known(self, graph):
        expected = torch.as_tensor(np.asarray(self.known_matrix(), dtype=np.float64))
        known = graph.known()
        torch.testing.assert_close(known.dense().double(), expected)
        z = self.features(graph.n)
        torch.testing.assert_close(known @ z, expected @ z)

    def test_algebra(self, graph, dense):
        other = Graph.from_edges(torch.tensor([0, 1]), torch.tensor([2, 1]), n=graph.n)
        matrix = torch.zeros_like(dense)
        matrix[0, 2] = matrix[2, 0] = matrix[1, 1] = 1.0
        mixed = 0.25 * graph + other * 2 - graph
        expected = 0.25 * dense + 2 * matrix - dense
        torch.testing.assert_close(mixed.dense().double(), expected, rtol=1e-5, atol=1e-6)
        z = self.features(graph.n)
        torch.testing.assert_close(mixed @ z, expected @ z, rtol=1e-6, atol=1e-6)
        assert mixed.norm_squared() == pytest.approx(expected.square().sum().item(), rel=1e-5)

    def test_norm(self, graph, dense):
        assert graph.norm_squared() == pytest.approx(dense.square().sum().item(), rel=1e-6)

    def test_without_diagonal(self, graph, dense):
        expected = dense - torch.diag(dense.diagonal())
        bare = graph.without_diagonal()
        torch.testing.assert_close(bare.dense().double(), expected, rtol=1e-5, atol=1e-6)
        assert bare.n_views == graph.n_views

    def test_views(self, graph, dense):
        viewed = graph.views(3)
        expected = torch.kron(dense, torch.ones(3, 3, dtype=torch.float64))
        assert viewed.n_views == 3 * graph.n_views and viewed.samples.n == graph.samples.n
        torch.testing.assert_close(viewed.dense().double(), expected, rtol=1e-5, atol=1e-6)
        z = self.features(viewed.n)
        torch.testing.assert_close(viewed @ z, expected @ z, rtol=1e-6, atol=1e-6)
        rows = torch.tensor([3, 4, 5, 0, 1, 2])
        torch.testing.assert_close(
            viewed.subset(rows).dense().double(), expected[rows][:, rows], rtol=1e-5, atol=1e-6
        )
        # Views of several samples, which are not whole samples: in any order, and in a row.
        for scattered in (torch.tensor([4, 0, 8]), torch.tensor([1, 2, 3])):
            torch.testing.assert_close(
                viewed.subset(scattered).dense().double(),
                expected[scattered][:, scattered],
                rtol=1e-5,
                atol=1e-6,
            )
        assert (2 * viewed + viewed).n_views == 3 * graph.n_views

    @pytest.mark.parametrize(("views", "others"), [(1, 1), (2, 2), (3, 2), (2, 3)])
    @pytest.mark.parametrize("self_pairs", [True, False])
    def test_pairs(self, graph, dense, views, others, self_pairs):
        if graph.n_views > 1:
            graph, dense = graph.samples, dense[:: graph.n_views, :: graph.n_views]
        n = graph.n
        expected = torch.kron(dense, torch.ones(views, others, dtype=torch.float64))
        if not self_pairs:
            for sample in range(n):
                for view in range(min(views, others)):
                    expected[sample * views + view, sample * others + view] = 0.0
        pairs = graph.views(views).pairs(others, self_pairs=self_pairs)
        z, t = self.features(n * views), self.features(n * others, 3).flip(0)
        torch.testing.assert_close(pairs @ t, expected @ t, rtol=1e-6, atol=1e-6)
        rows, columns = torch.arange(n * views), torch.arange(n * others)
        torch.testing.assert_close(
            pairs.block(rows, columns, torch.float64), expected, rtol=1e-6, atol=1e-6
        )
        for absolute in (False, True, False):
            sums = (expected.abs() if absolute else expected).sum(1)
            given = pairs.row_sums(torch.float64, absolute=absolute)
            torch.testing.assert_close(given, sums, rtol=1e-6, atol=1e-6)
        up, down = expected.clamp_min(0), (-expected).clamp_min(0)
        assert pairs.total_weight == pytest.approx((up + down).sum().item(), rel=1e-6, abs=1e-6)
        torch.testing.assert_close(pairs.positive_sums(t), up @ t, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(
            pairs.positive_row_sums(torch.float64), up.sum(1), rtol=1e-6, atol=1e-6
        )
        i, j, weight = pairs.negative_pairs(torch.float64)
        found = torch.zeros_like(expected).index_put((i, j), weight, accumulate=True)
        assert bool((weight > 0).all())
        torch.testing.assert_close(found, down, rtol=1e-6, atol=1e-6)
        distances = (z[:, None] - t[None]).square().sum(-1)
        energy = pairs.energy(z, t).item()
        assert energy == pytest.approx((expected * distances).sum().item(), rel=1e-6, abs=1e-6)
        pull, push = pairs.attraction(z, t, margin=2.0)
        assert pull.item() == pytest.approx((up * distances).sum().item(), rel=1e-6, abs=1e-6)
        hinge = (2.0 - distances.sqrt()).clamp_min(0).square()
        assert push.item() == pytest.approx((down * hinge).sum().item(), rel=1e-6, abs=1e-6)

    def test_energy_of_one_branch_and_its_gradient(self, graph, dense):
        z = self.features(graph.n).requires_grad_()
        distances = (z[:, None] - z[None]).square().sum(-1)
        expected = (dense * distances).sum().item()
        pairs = graph.pairs()
        assert pairs.energy(z, z).item() == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert torch.autograd.gradcheck(lambda rows: pairs.energy(rows, rows), (z,), atol=1e-4)
        assert torch.autograd.gradgradcheck(lambda rows: pairs.energy(rows, rows), (z,), atol=1e-4)

    def test_energy_gradient_of_two_branches(self, graph):
        """Also the gradient that is to be differentiated again, which has another formula."""
        z, t = self.features(graph.n).requires_grad_(), self.features(graph.n).flip(0)
        t.requires_grad_()
        energy = graph.pairs().energy
        assert torch.autograd.gradcheck(energy, (z, t), atol=1e-4)
        first = torch.autograd.grad(energy(z, t), (z, t))
        again = torch.autograd.grad(energy(z, t), (z, t), create_graph=True)
        torch.testing.assert_close(again, first)
