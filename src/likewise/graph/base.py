"""The similarity graph: a symmetric N x N matrix of who is alike, never stored densely."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from likewise.graph.arrays import Array, as_tensor, floating, in_kind, is_numpy
from likewise.graph.kind import Kind, SymmetricProduct

if TYPE_CHECKING:
    from likewise.graph.pairs import Pairs


class Graph(Kind):
    r"""Who is alike: a symmetric matrix :math:`G \in \mathbb{R}^{N \times N}` in implicit form.

    ``G[i, j] > 0`` says that i and j are alike, ``< 0`` that they are different, and 0 either
    that they are known to be neither or that nobody knows: :meth:`known` tells the two apart.
    Self-supervised, semi-supervised, supervised and active learning differ in G alone
    (``pal`` section 3; ``supervised-theory`` theorem 1).

    Graphs are made by the constructors :meth:`identity`, :meth:`from_labels`,
    :meth:`from_edges`, :meth:`from_matrix`, :meth:`from_neighbors`, :meth:`from_loss` and
    :meth:`from_targets`, and combined by ``+``, ``*`` and :meth:`views`. A graph made from NumPy
    arrays answers in NumPy arrays, one made from tensors in tensors, and one moved by :meth:`to`
    in tensors.

    >>> import torch
    >>> graph = 0.9 * Graph.identity(4) + 0.1 * Graph.from_labels(torch.tensor([0, 0, 1, -1]))
    >>> graph.dense()
    tensor([[1.0000, 0.1000, 0.0000, 0.0000],
            [0.1000, 1.0000, 0.0000, 0.0000],
            [0.0000, 0.0000, 1.0000, 0.0000],
            [0.0000, 0.0000, 0.0000, 0.9000]])
    """

    # --- constructors -----------------------------------------------------------------------

    @staticmethod
    def identity(n: int) -> Graph:
        """Self-supervised: every sample is alike only to itself; ``views(v)`` gives eq. 8 of
        ``pal`` (with its diagonal; sample-major).

        >>> Graph.identity(2).views(2).dense().int().tolist()
        [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
        """
        from likewise.graph.labels import identity

        return identity(n)

    @staticmethod
    def from_labels(
        labels: Array,
        *,
        n_classes: int | None = None,
        balance: float = 0.0,
        class_weights: Array | None = None,
    ) -> Graph:
        """Supervised: :math:`G = Y\\,\\mathrm{diag}(w)\\,Y^\\top`; see
        :func:`likewise.graph.labels.from_labels`."""
        from likewise.graph.labels import from_labels

        return from_labels(
            labels, n_classes=n_classes, balance=balance, class_weights=class_weights
        )

    @staticmethod
    def from_targets(targets: Array, *, centered: bool = False) -> Graph:
        """Regression: :math:`G_{ij} = +y_i^\\top y_j`; see
        :func:`likewise.graph.labels.from_targets`."""
        from likewise.graph.labels import from_targets

        return from_targets(targets, centered=centered)

    @staticmethod
    def from_edges(i: Array, j: Array, weight: Any = 1.0, *, n: int | None = None) -> Graph:
        """Answers: +1 alike, -1 different; see :func:`likewise.graph.edges.from_edges`."""
        from likewise.graph.edges import from_edges

        return from_edges(i, j, weight, n=n)

    @staticmethod
    def from_matrix(matrix: Any) -> Graph:
        """G itself, dense or sparse; see :func:`likewise.graph.matrix.from_matrix`."""
        from likewise.graph.matrix import from_matrix

        return from_matrix(matrix)

    @staticmethod
    def from_neighbors(x: Array, k: int) -> Graph:
        """Nearest neighbours; see :func:`likewise.graph.neighbors.from_neighbors`."""
        from likewise.graph.neighbors import from_neighbors

        return from_neighbors(x, k)

    @staticmethod
    def from_loss(
        labels: Array,
        loss: Literal["zero-one", "squared", "absolute", "kendall"],
        *,
        form: Literal["raw", "shifted", "centered"] = "centered",
    ) -> Graph:
        """A loss between labels: :math:`G_{ij} = -\\ell(y_i, y_j)`; see
        :func:`likewise.graph.losses.from_loss`."""
        from likewise.graph.losses import from_loss

        return from_loss(labels, loss, form=form)

    # --- what the user calls -------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(N, N)."""
        return (self.n, self.n)

    def __len__(self) -> int:
        return self.n

    @property
    def n_views(self) -> int:
        """How many views every sample has (1 unless made by :meth:`views`)."""
        return 1

    @property
    def samples(self) -> Graph:
        """The graph over samples that :meth:`views` was called on (else the graph itself)."""
        return self

    @property
    def class_labels(self) -> Tensor | None:
        """One label a node where the graph is an equivalence relation with entries 0 and 1
        (-1: alike to nobody), else None."""
        return None

    def __matmul__(self, z: Array) -> Any:
        """G z in O(nonzeros) or O(N rank): the N x N matrix is never built.

        >>> import torch
        >>> Graph.from_labels(torch.tensor([0, 1, 0])) @ torch.tensor([1.0, 2.0, 4.0])
        tensor([5., 2., 5.])
        """
        tensor = floating(as_tensor(z, self.device if not isinstance(z, Tensor) else None))
        if tensor.ndim not in (1, 2) or tensor.shape[0] != self.n:
            raise ValueError(
                f"z has shape {tuple(tensor.shape)}, but the graph has {self.n} nodes: give one "
                "row per node (for v views of every sample, use graph.views(v))"
            )
        graph = self if tensor.device == self.device else self.to(tensor.device)
        matrix = tensor if tensor.ndim == 2 else tensor[:, None]
        product = SymmetricProduct.apply(matrix, graph)
        return in_kind(product if tensor.ndim == 2 else product[:, 0], is_numpy(z))

    def block(
        self, rows: Array, columns: Array | None = None, *, dtype: torch.dtype | None = None
    ) -> Any:
        """The dense block ``G[rows][:, columns]`` that a minibatch needs (columns: as rows)."""
        columns = rows if columns is None else columns
        numpy = is_numpy(rows, columns) or self.answers_numpy
        block = self._block(
            self._index("rows", rows),
            self._index("columns", columns),
            dtype or torch.get_default_dtype(),
        )
        return in_kind(block, numpy and not isinstance(rows, Tensor))

    def entries(self, i: Array, j: Array, *, dtype: torch.dtype | None = None) -> Any:
        """The entries ``G[i_k, j_k]`` of a list of pairs."""
        first, second = self._index("i", i), self._index("j", j)
        if first.shape != second.shape:
            raise ValueError(
                f"i has {len(first)} indices and j has {len(second)}: give one j for every i"
            )
        values = self._entries(first, second, dtype or torch.get_default_dtype())
        return in_kind(values, is_numpy(i, j))

    def subset(self, rows: Array) -> Graph:
        """The graph over some of the nodes (repeats allowed), in the order given."""
        graph = self._subset(self._index("rows", rows))
        return self._like(graph)

    def __getitem__(self, rows: Any) -> Graph:
        # scikit-learn slices whatever has a shape as `y[indices, ...]`.
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        if isinstance(rows, slice):
            rows = torch.arange(self.n, device=self.device)[rows]
        return self.subset(rows)

    def known(self) -> Graph:
        """1 where a pair is known (alike, different, or an explicit 0), 0 where it is unknown.

        >>> import torch
        >>> Graph.from_labels(torch.tensor([0, 1, -1])).known().dense().int().tolist()
        [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
        """
        return self._remember(("known",), lambda: self._like(self._known()))

    def degrees(self, *, absolute: bool = False) -> Any:
        """The row sums of G, or of \\|G\\|."""
        return in_kind(self._degrees(absolute, torch.get_default_dtype()), self.answers_numpy)

    def diagonal(self) -> Any:
        """The entries G_ii."""
        return in_kind(self._diagonal(torch.get_default_dtype()), self.answers_numpy)

    def normalized(self) -> Graph:
        """:math:`D^{-1/2} G D^{-1/2}` with absolute degrees; a node of degree 0 stays 0."""
        return self._remember(("normalized",), self._normalized)

    def _normalized(self) -> Graph:
        degrees = self._degrees(True, torch.float64)
        if bool((degrees == 1).all()):
            return self
        scale = torch.where(degrees > 0, degrees.clamp_min(1e-300).rsqrt(), 0.0)
        return self._like(self._scaled(scale))

    def without_diagonal(self) -> Graph:
        """The same graph where nobody is alike to themselves."""
        from likewise.graph.edges import EdgeGraph
        from likewise.graph.sums import SumGraph

        # In float64, so that nothing is left of it in float64 either.
        diagonal = self._diagonal(torch.float64)
        nodes = diagonal.nonzero()[:, 0]
        itself = EdgeGraph(nodes, nodes, -diagonal[nodes], self.n)
        return self._like(
            SumGraph([self, itself], n_views=self.n_views, samples=self._sample_graph())
        )

    def centered(self) -> Graph:
        """H G H with the centring matrix H = I - 11^T/N (over the nodes that are known)."""
        from likewise.graph.factored import FactoredGraph
        from likewise.graph.sums import SumGraph

        known = self._known_nodes().to(torch.float64)
        count = known.sum().clamp_min(1)
        means = self._product(known[:, None])[:, 0] * known / count
        codes = torch.stack([known, means], dim=1)
        total = (means.sum() / count).item()
        middle = torch.tensor([[total, -1.0], [-1.0, 0.0]], dtype=torch.float64)
        shift = FactoredGraph(
            self.n, codes=codes, middle=middle.to(self.device), known_rows=known > 0
        )
        return self._like(SumGraph([self, shift]))

    def __mul__(self, factor: float) -> Graph:
        if not isinstance(factor, Real):
            return NotImplemented
        if not math.isfinite(factor):
            raise ValueError(f"the factor of a graph is {factor}: give a finite number")
        return self._like(self._times(float(factor)))

    __rmul__ = __mul__

    def __neg__(self) -> Graph:
        return self * -1.0

    def __add__(self, other: Graph) -> Graph:
        if not isinstance(other, Graph):
            return NotImplemented
        if other.n != self.n:
            raise ValueError(
                f"graphs over {self.n} and {other.n} nodes cannot be added: build both over the "
                "same samples (and call views(v) on the sum)"
            )
        from likewise.graph.sums import add

        first, second = self, other
        if first.device != second.device:
            # A graph without arrays of its own has no place yet: it goes where the other is.
            if first.placeless:
                first = first._to(second.device)
            elif second.placeless:
                second = second._to(first.device)
            else:
                raise ValueError(
                    f"graphs on {first.device} and {second.device} cannot be added: move one with "
                    "graph.to(device)"
                )
        return self._like(add(first, second), other)

    def __sub__(self, other: Graph) -> Graph:
        return self + (-other)

    def views(self, n_views: int) -> Graph:
        """The same graph over `n_views` views of every sample, sample-major: G kron 11^T."""
        from likewise.graph.views import ViewsGraph

        if not isinstance(n_views, Integral) or isinstance(n_views, bool) or n_views < 1:
            raise ValueError(f"n_views is {n_views!r}: every sample needs at least one view")
        if n_views == 1:
            return self
        if isinstance(self, ViewsGraph):
            return self._like(ViewsGraph(self.samples, self.n_views * int(n_views)))
        return self._like(ViewsGraph(self, int(n_views)))

    def pairs(self, target_views: int | None = None, *, self_pairs: bool = False) -> Pairs:
        """The pairs that an objective compares: rows against (a teacher's) rows."""
        from likewise.graph.pairs import Pairs

        return self._remember(
            ("pairs", target_views, self_pairs),
            lambda: Pairs.of(self, target_views, self_pairs=self_pairs),
        )

    def norm_squared(self) -> float:
        """The squared Frobenius norm of G, without building it."""
        from likewise.graph.inner import inner_product

        return float(self._remember(("norm",), lambda: inner_product(self, self)))

    def trace(self) -> float:
        """The sum of the diagonal."""
        return float(self._diagonal(torch.float64).sum())

    def to(self, device: torch.device | str) -> Graph:
        """The graph on a device; it answers in tensors from there on."""
        if device != self.device:
            # A plain "cuda" and "cuda:0" are the same place but do not compare equal.
            device = torch.empty(0, device=device).device
        if device == self.device and not self.answers_numpy:
            return self
        place = torch.device(device)
        return self._remember(("to", place), lambda: self._to(place))

    def dense(self) -> Any:
        """The N x N matrix; for small N."""
        if self.n > 20_000:
            raise ValueError(
                f"a dense matrix over {self.n} nodes is too large: use `graph @ z` or "
                "`graph.block(rows, columns)`"
            )
        nodes = torch.arange(self.n, device=self.device)
        return in_kind(self._block(nodes, nodes, torch.get_default_dtype()), self.answers_numpy)

    def __repr__(self) -> str:
        views = f", n_views={self.n_views}" if self.n_views > 1 else ""
        return f"{type(self).__name__}(n={self.n}{views})"

    # --- input and output --------------------------------------------------------------------

    def _like(self, graph: Graph, other: Graph | None = None) -> Graph:
        numpy = self.answers_numpy and (other is None or other.answers_numpy)
        if graph.answers_numpy != numpy and graph is not self and graph is not other:
            graph.answers_numpy = numpy
        return graph

    def _index(self, name: str, value: Array) -> Tensor:
        index = as_tensor(value, self.device)
        if index.dtype == torch.bool:
            if index.shape != (self.n,):
                raise ValueError(
                    f"{name} is a mask of shape {tuple(index.shape)}, but the graph has "
                    f"{self.n} nodes: give one flag per node"
                )
            return index.nonzero()[:, 0]
        if index.ndim != 1 or index.is_floating_point():
            raise ValueError(
                f"{name} has shape {tuple(index.shape)} and dtype {index.dtype}: give a list of "
                "node numbers, or a mask"
            )
        index = index.long()
        if len(index) and not (-self.n <= int(index.min()) and int(index.max()) < self.n):
            raise IndexError(
                f"{name} runs from {int(index.min())} to {int(index.max())}, but the graph has "
                f"{self.n} nodes"
            )
        return torch.where(index < 0, index + self.n, index)
