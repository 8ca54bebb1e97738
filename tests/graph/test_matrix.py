"""Graphs that someone has as a matrix, dense or sparse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from likewise import Graph
from tests.graph import contract

ENTRIES = [(0, 0, 1.0), (0, 1, -1.0), (1, 3, 0.5), (2, 2, 2.0), (3, 4, 1.0), (2, 4, 0.0)]


def by_hand():
    matrix = np.zeros((5, 5))
    for i, j, weight in ENTRIES:
        matrix[i, j] = matrix[j, i] = weight
    return matrix


def stored():
    """Both directions of every entry, in no order, the explicit 0 among them."""
    mirrored = [(j, i, weight) for i, j, weight in ENTRIES if i != j]
    return sorted(ENTRIES + mirrored, key=lambda entry: (entry[0] * 7 + entry[1] * 3) % 11)


class TestDenseMatrix(contract.GraphContract):
    def make(self):
        return Graph.from_matrix(torch.as_tensor(self.matrix()))

    def matrix(self):
        return by_hand()

    def known_matrix(self):
        return np.ones((5, 5))


class TestRandomMatrix(TestDenseMatrix):
    def matrix(self):
        matrix = np.random.default_rng(0).normal(size=(6, 6))
        return matrix + matrix.T

    def known_matrix(self):
        return np.ones((6, 6))


class TestMatrixOfWholeNumbers(TestDenseMatrix):
    def make(self):
        return Graph.from_matrix(torch.as_tensor(self.matrix()).int())

    def matrix(self):
        return np.sign(by_hand())


class TestSparseMatrix(contract.GraphContract):
    """What is stored is known, and an explicit 0 is stored."""

    layout = "coo"

    def sparse(self):
        i, j, weight = (np.array(column) for column in zip(*stored(), strict=True))
        return sparse.coo_matrix((weight, (i, j)), shape=(5, 5)).asformat(self.layout)

    def make(self):
        # The contract asks for tensors; a graph from SciPy answers in arrays.
        return Graph.from_matrix(self.sparse()).to("cpu")

    def matrix(self):
        return by_hand()

    def known_matrix(self):
        known = np.zeros((5, 5))
        for i, j, _ in ENTRIES:
            known[i, j] = known[j, i] = 1.0
        return known


class TestCompressedRows(TestSparseMatrix):
    layout = "csr"


class TestCompressedColumns(TestSparseMatrix):
    layout = "csc"


class TestSparseArray(TestSparseMatrix):
    def sparse(self):
        return sparse.csr_array(super().sparse())


class TestRepeatedEntries(TestSparseMatrix):
    """SciPy adds what is stored twice."""

    def sparse(self):
        i, j, weight = (np.array(column) for column in zip(*stored(), strict=True))
        twice = (np.tile(weight / 2, 2), (np.tile(i, 2), np.tile(j, 2)))
        return sparse.coo_matrix(twice, shape=(5, 5))


def test_a_matrix_answers_in_its_kind():
    assert isinstance(Graph.from_matrix(by_hand()).degrees(), np.ndarray)
    assert isinstance(Graph.from_matrix(sparse.csr_matrix(by_hand())).degrees(), np.ndarray)
    assert isinstance(Graph.from_matrix(torch.eye(3)).degrees(), torch.Tensor)


def test_a_graph_keeps_its_own_entries():
    for matrix, values in [(m := by_hand(), m), (s := sparse.csr_matrix(by_hand()), s.data)]:
        graph = Graph.from_matrix(matrix)
        values[:] = 9.0
        np.testing.assert_array_equal(graph.dense(), by_hand())


def test_a_conversion_leaves_the_sparse_matrix_alone():
    given = TestRepeatedEntries().sparse()
    before = given.nnz
    Graph.from_matrix(given)
    assert given.nnz == before


def test_an_empty_sparse_matrix_is_a_graph_of_which_nothing_is_known():
    graph = Graph.from_matrix(sparse.csr_matrix((4, 4)))
    assert graph.n == 4 and graph.norm_squared() == 0 and graph.known().norm_squared() == 0


def test_round_off_is_no_asymmetry():
    matrix = by_hand()
    matrix[0, 1] *= 1 + 1e-9
    assert Graph.from_matrix(matrix).entries([0], [1])[0] == pytest.approx(-1.0)


def test_a_product_is_symmetric_enough():
    z = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    gram = z @ np.diag(np.arange(7.0, dtype=np.float32)) @ z.T
    np.testing.assert_allclose(Graph.from_matrix(gram).dense(), gram, atol=1e-4)


def test_sparse_and_edges_agree():
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(40)
    kept = rng.random(len(i)) < 0.1
    weight = rng.normal(size=kept.sum())
    edges = Graph.from_edges(i[kept], j[kept], weight, n=40)
    upper = sparse.coo_matrix((weight, (i[kept], j[kept])), shape=(40, 40))
    whole = upper + upper.T - sparse.diags(upper.diagonal())
    graph = Graph.from_matrix(whole)
    np.testing.assert_allclose(graph.dense(), edges.dense(), atol=1e-6)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"shape \(2, 3\).*\(N, N\)"),
        (np.ones(4), r"shape \(4,\).*\(N, N\)"),
        (np.ones((0, 0)), r"shape \(0, 0\)"),
        (sparse.csr_matrix((2, 3)), r"shape \(2, 3\).*\(N, N\)"),
        (np.array([[1.0, 2.0], [3.0, 1.0]]), r"\(0, 1\) is 2 and \(1, 0\) is 3.*\(G \+ G.T\) / 2"),
        (np.array([[1.0, 0.0], [1e-3, 1.0]]), r"\(0, 1\) is 0 and \(1, 0\) is 0.001"),
        (sparse.csr_matrix(np.array([[0.0, 2.0], [3.0, 0.0]])), r"is 2 and \(1, 0\) is 3"),
        (sparse.csr_matrix(np.array([[0.0, 2.0], [0.0, 0.0]])), r"one of \(0, 1\) and \(1, 0\)"),
        (sparse.csr_matrix(np.array([[0.0, 0.0], [2.0, 0.0]])), r"one of \(0, 1\) and \(1, 0\)"),
        (
            sparse.csr_matrix(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])),
            r"one of \(0, 1\) and \(1, 0\) is stored",
        ),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), r"NaN or infinity.*unknown|nothing is known"),
        (sparse.csr_matrix(np.array([[0.0, np.inf], [np.inf, 0.0]])), r"NaN or infinity"),
        (torch.tensor([[0.0, 1.0], [2.0, 0.0]]), r"not symmetric"),
    ],
)
def test_bad_input(matrix, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_matrix(matrix)
