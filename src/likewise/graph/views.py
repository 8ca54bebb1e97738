"""The same graph over several views of every sample."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.graph.base import Graph


class ViewsGraph(Graph):
    """:math:`G \\otimes 1_V 1_V^\\top`, lazily: row i * V + v is view v of sample i."""

    def __init__(self, samples: Graph, n_views: int) -> None:
        self._samples = samples
        self._n_views = n_views
        self.n = samples.n * n_views

    @property
    def device(self) -> torch.device:
        """Where the sample graph lives."""
        return self._samples.device

    @property
    def nonnegative(self) -> bool:
        """As the sample graph."""
        return self._samples.nonnegative

    @property
    def n_views(self) -> int:
        """The number of views V."""
        return self._n_views

    @property
    def samples(self) -> Graph:
        """The graph over samples."""
        return self._samples

    def _sample_graph(self) -> Graph | None:
        return self._samples

    @property
    def class_labels(self) -> Tensor | None:
        """The sample's label, for each of its views."""
        labels = self._samples.class_labels
        return None if labels is None else labels.repeat_interleave(self._n_views)

    def _product(self, z: Tensor) -> Tensor:
        totals = z.reshape(self._samples.n, self._n_views, -1).sum(dim=1)
        return self._samples._product(totals).repeat_interleave(self._n_views, dim=0)

    def _block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        return self._samples._block(self._sample(rows), self._sample(columns), dtype)

    def _entries(self, i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor:
        return self._samples._entries(self._sample(i), self._sample(j), dtype)

    def _sample(self, nodes: Tensor) -> Tensor:
        return torch.div(nodes, self._n_views, rounding_mode="floor")

    def _subset(self, rows: Tensor) -> Graph:
        whole = whole_samples(rows, self._n_views)
        if whole is not None:
            return ViewsGraph(self._samples._subset(whole), self._n_views)
        return self._samples._subset(self._sample(rows))

    def centered(self) -> Graph:
        """H (G kron 11^T) H = (H G H) kron 11^T."""
        return self._like(ViewsGraph(self._samples.centered(), self._n_views))

    def _scaled(self, scale: Tensor) -> Graph:
        grouped = scale.reshape(-1, self._n_views)
        if bool((grouped == grouped[:, :1]).all()):
            return ViewsGraph(self._samples._scaled(grouped[:, 0]), self._n_views)
        return self._expanded()._scaled(scale)

    def _expanded(self) -> Graph:
        """The same matrix as a graph over nodes that forgets what a sample is."""
        return self._samples._subset(self._sample(torch.arange(self.n, device=self.device)))

    def _times(self, factor: float) -> Graph:
        return ViewsGraph(self._samples._times(factor), self._n_views)

    def _known(self) -> Graph:
        return ViewsGraph(self._samples._known(), self._n_views)

    def _known_nodes(self) -> Tensor:
        return self._samples._known_nodes().repeat_interleave(self._n_views)

    def _to(self, device: torch.device) -> Graph:
        return ViewsGraph(self._samples.to(device), self._n_views)

    def _degrees(self, absolute: bool, dtype: torch.dtype) -> Tensor:
        degrees = self._samples._degrees(absolute, dtype) * self._n_views
        return degrees.repeat_interleave(self._n_views)

    def _negative_entries(self) -> tuple[Tensor, Tensor]:
        i, j = self._samples._negative_entries()
        return across_views(i, j, self._n_views, self._n_views)

    def _energy(self, z: Tensor, target: Tensor) -> Tensor:
        return views_energy(self._samples, z, target, self._n_views, self._n_views)


def whole_samples(rows: Tensor, views: int) -> Tensor | None:
    """The samples whose views are all in `rows`, in order and side by side; else None."""
    if len(rows) % views:
        return None
    grouped = rows.reshape(-1, views)
    first = grouped[:, :1] - grouped[:, :1] % views
    if not bool((grouped == first + torch.arange(views, device=rows.device)).all()):
        return None
    return torch.div(grouped[:, 0], views, rounding_mode="floor")


def share_views(first: Graph, second: Graph) -> bool:
    """Whether both are lazy Kronecker products over the same number of views."""
    return (
        isinstance(first, ViewsGraph)
        and isinstance(second, ViewsGraph)
        and first.n_views == second.n_views
    )


def across_views(i: Tensor, j: Tensor, views: int, target_views: int) -> tuple[Tensor, Tensor]:
    """Every view of sample i with every view of sample j."""
    view = torch.arange(views, device=i.device)
    other = torch.arange(target_views, device=i.device)
    rows = (i[:, None, None] * views + view[None, :, None]).expand(-1, -1, target_views)
    columns = (j[:, None, None] * target_views + other[None, None, :]).expand(-1, views, -1)
    return rows.reshape(-1), columns.reshape(-1)


def views_energy(
    samples: Graph, z: Tensor, target: Tensor, views: int, target_views: int
) -> Tensor:
    """sum over samples and views of G_ij |z_iu - t_jv|^2 from the means m, mu and the spreads S
    of every sample: U sum_i d_i S_i + V sum_j d_j S'_j + V U sum_ij G_ij |m_i - mu_j|^2."""
    degrees = samples._remembered_degrees(z.dtype)
    means, spread = _sample_moments(z, views)
    if target is z:
        other_means, other_spread = means, spread
    else:
        other_means, other_spread = _sample_moments(target, target_views)
    within = target_views * (degrees * spread).sum() + views * (degrees * other_spread).sum()
    return within + views * target_views * samples._energy(means, other_means)


def _sample_moments(z: Tensor, views: int) -> tuple[Tensor, Tensor]:
    if views == 1:
        return z, z.new_zeros(len(z))
    grouped = z.reshape(-1, views, z.shape[1])
    means = grouped.mean(dim=1)
    return means, (grouped - means[:, None]).square().sum(dim=(1, 2))
