"""Graphs of low rank: G = w S Y M Y^T S, with Y the labels or codes of the nodes."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from likewise.graph.base import Graph


class FactoredGraph(Graph):
    """:math:`G = w\\, S Y M Y^\\top S`, with S = diag(scale), never multiplied out.

    Y is one of three: the identity (neither `labels` nor `codes` given), one-hot rows (`labels`,
    where -1 is a row of zeros), or any real matrix (`codes`). M is the identity (None), a
    diagonal (a vector) or a symmetric matrix.

    Labels make every pair of labelled nodes known. Self-supervision does not: of two samples
    nobody has said that they differ (`only_alike_known`).
    """

    def __init__(
        self,
        n: int,
        *,
        labels: Tensor | None = None,
        n_classes: int | None = None,
        codes: Tensor | None = None,
        middle: Tensor | None = None,
        scale: Tensor | None = None,
        weight: float = 1.0,
        known_rows: Tensor | None = None,
        only_alike_known: bool = False,
        device: torch.device | None = None,
    ) -> None:
        self.n = n
        self.labels = labels
        self.codes = codes
        self.middle = middle
        self.scale = scale
        self.weight = weight
        self.known_rows = known_rows
        self.only_alike_known = only_alike_known or (labels is None and codes is None)
        if codes is not None:
            self.rank = codes.shape[1]
        elif labels is not None:
            self.rank = n_classes if n_classes is not None else int(labels.max()) + 1
        else:
            self.rank = n
        source = labels if labels is not None else codes if codes is not None else scale
        self._device = device or (source.device if source is not None else torch.device("cpu"))

    @property
    def device(self) -> torch.device:
        """Where the labels or codes live."""
        return self._device

    @property
    def placeless(self) -> bool:  # type: ignore[override]
        """Whether this is the identity, which holds nothing."""
        return self.labels is None and self.codes is None and self.scale is None

    @property
    def is_identity(self) -> bool:  # type: ignore[override]
        """Whether every sample is alike to itself, with weight 1, and to nobody else."""
        return self.placeless and self.middle is None and self.weight == 1.0

    @cached_property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether no factor is negative."""
        return (
            self.weight >= 0
            and (self.middle is None or bool((self.middle >= 0).all()))
            and (self.codes is None or bool((self.codes >= 0).all()))
        )

    @property
    def class_labels(self) -> Tensor | None:
        """The labels themselves, where nothing weighs them."""
        plain = self.middle is None and self.scale is None and self.weight == 1.0
        if not plain or self.codes is not None:
            return None
        return self.labels if self.labels is not None else torch.arange(self.n, device=self.device)

    def _copy(self, **changes: object) -> FactoredGraph:
        fields: dict[str, object] = {
            "n": self.n,
            "labels": self.labels,
            "n_classes": self.rank,
            "codes": self.codes,
            "middle": self.middle,
            "scale": self.scale,
            "weight": self.weight,
            "known_rows": self.known_rows,
            "only_alike_known": self.only_alike_known,
            "device": self._device,
        }
        return FactoredGraph(**{**fields, **changes})  # type: ignore[arg-type]

    @cached_property
    def _some_unknown(self) -> bool:
        return self.labels is not None and bool((self.labels < 0).any())

    # --- Y^T z, M t, Y t ---------------------------------------------------------------------

    def _encode(self, z: Tensor) -> Tensor:
        """Y^T S z: the sum of z over each class."""
        if self.scale is not None:
            z = z * self.scale.to(z.dtype)[:, None]
        if self.codes is not None:
            return self.codes.to(z.dtype).T @ z
        if self.labels is None:
            return z
        if z.is_cuda and self.rank * self.n <= 1 << 26:
            # A product is deterministic; scattered atomic additions on the GPU are not.
            classes = torch.arange(self.rank, device=z.device)
            return (self.labels == classes[:, None]).to(z.dtype) @ z
        # The slot beyond the last class takes the rows without a label.
        slot = torch.where(self.labels < 0, self.rank, self.labels)
        sums = z.new_zeros(self.rank + 1, z.shape[1])
        return sums.scatter_add_(0, slot[:, None].expand_as(z), z)[: self.rank]

    def _apply_middle(self, t: Tensor) -> Tensor:
        if self.middle is None:
            return t
        middle = self.middle.to(t.dtype)
        return middle[:, None] * t if middle.ndim == 1 else middle @ t

    def _decode(self, t: Tensor) -> Tensor:
        """S Y t: every node receives what belongs to its class."""
        if self.codes is not None:
            z = self.codes.to(t.dtype) @ t
        elif self.labels is not None:
            z = t.index_select(0, self.labels.clamp_min(0))
            if self._some_unknown:
                z = z * (self.labels >= 0).to(t.dtype)[:, None]
        else:
            z = t
        return z if self.scale is None else z * self.scale.to(t.dtype)[:, None]

    @cached_property
    def _compact(self) -> FactoredGraph:
        """The same matrix with the classes that occur: a batch of a graph with a million classes
        must cost a batch."""
        weighted = self.middle is not None and self.middle.ndim == 2
        if self.labels is None or self.rank <= 4 * self.n or weighted:
            return self
        present, labels = torch.unique(self.labels.clamp_min(0), return_inverse=True)
        return self._copy(
            labels=torch.where(self.labels < 0, self.labels, labels),
            n_classes=len(present),
            middle=None if self.middle is None else self.middle[present],
        )

    def _product(self, z: Tensor) -> Tensor:
        if self._compact is not self:
            return self._compact._product(z)
        product = self._decode(self._apply_middle(self._encode(z)))
        return product * self.weight if self.weight != 1.0 else product

    # --- entries -----------------------------------------------------------------------------

    def _labels_at(self, nodes: Tensor) -> Tensor:
        return nodes if self.labels is None else self.labels[nodes]

    def _block(self, rows: Tensor, columns: Tensor, dtype: torch.dtype) -> Tensor:
        if self.codes is not None:
            left = self.codes[rows].to(dtype)
            right = self.codes[columns].to(dtype)
            block = left @ self._apply_middle(right.T)
        else:
            first, second = self._labels_at(rows)[:, None], self._labels_at(columns)[None, :]
            block = self._label_entries(first, second, dtype)
        if self.scale is not None:
            block = block * self.scale[rows, None].to(dtype) * self.scale[columns].to(dtype)
        return block * self.weight if self.weight != 1.0 else block

    def _entries(self, i: Tensor, j: Tensor, dtype: torch.dtype) -> Tensor:
        if self.codes is not None:
            right = self._apply_middle(self.codes[j].to(dtype).T).T
            entries = (self.codes[i].to(dtype) * right).sum(dim=1)
        else:
            entries = self._label_entries(self._labels_at(i), self._labels_at(j), dtype)
        if self.scale is not None:
            entries = entries * self.scale[i].to(dtype) * self.scale[j].to(dtype)
        return entries * self.weight if self.weight != 1.0 else entries

    def _label_entries(self, first: Tensor, second: Tensor, dtype: torch.dtype) -> Tensor:
        if self.middle is not None and self.middle.ndim == 2:
            values = self.middle.to(dtype)[first.clamp_min(0), second.clamp_min(0)]
            return values * ((first >= 0) & (second >= 0)).to(dtype)
        same = ((first == second) & (first >= 0)).to(dtype)
        return same if self.middle is None else same * self.middle.to(dtype)[first.clamp_min(0)]

    # --- algebra -----------------------------------------------------------------------------

    def _subset(self, rows: Tensor) -> Graph:
        changes: dict[str, object] = {"n": len(rows), "n_classes": self.rank}
        if self.scale is not None:
            changes["scale"] = self.scale[rows]
        if self.known_rows is not None:
            changes["known_rows"] = self.known_rows[rows]
        if self.codes is not None:
            changes["codes"] = self.codes[rows]
            return self._copy(**changes)
        if self.labels is None and len(torch.unique(rows)) == len(rows):
            return self._copy(**changes)
        return self._copy(**changes, labels=self._labels_at(rows))

    def _scaled(self, scale: Tensor) -> Graph:
        return self._copy(scale=scale if self.scale is None else self.scale * scale)

    def _times(self, factor: float) -> Graph:
        return self._copy(weight=self.weight * factor)

    def _known(self) -> Graph:
        if self.only_alike_known:
            return self._copy(middle=None, scale=None, weight=1.0)
        return FactoredGraph(self.n, labels=self._known_nodes().long() - 1, n_classes=1)

    def _known_nodes(self) -> Tensor:
        if self.known_rows is not None:
            return self.known_rows
        return super()._known_nodes() if self.labels is None else self.labels >= 0

    def _to(self, device: torch.device) -> Graph:
        moved = {
            name: value.to(device) if value is not None else None
            for name, value in [
                ("labels", self.labels),
                ("codes", self.codes),
                ("middle", self.middle),
                ("scale", self.scale),
                ("known_rows", self.known_rows),
            ]
        }
        return self._copy(**moved, device=device)

    def _degrees(self, absolute: bool, dtype: torch.dtype) -> Tensor:
        if absolute and not self.nonnegative and self.codes is None:
            middle = None if self.middle is None else self.middle.abs()
            return self._copy(middle=middle, weight=abs(self.weight))._degrees(False, dtype)
        return super()._degrees(absolute, dtype)

    # --- energy --------------------------------------------------------------------------------

    def _energy(self, z: Tensor, target: Tensor) -> Tensor:
        """Between classes a and b with memberships y (weights s, centres c, spreads S):
        sum_ij y_ia y_jb |z_i - t_j|^2 = s_b S_a + s_a S'_b + s_a s_b |c_a - c'_b|^2.

        Every part is a sum of squares, so that views 1e-3 apart keep their digits."""
        if self.labels is None and self.codes is None:
            squares = (z - target).square().sum(dim=1)
            return (squares * self._diagonal(z.dtype)).sum()
        if self._compact is not self:
            return self._compact._energy(z, target)
        memberships = self._memberships(z.dtype)
        if memberships is None:
            return self._centered_energy(z, target)
        weights, slots = memberships
        same = target is z
        spread, centre, mass = self._class_moments(z, weights, slots)
        other_spread, other_centre, _ = (
            (spread, centre, mass) if same else self._class_moments(target, weights, slots)
        )
        middle = None if self.middle is None else self.middle.to(z.dtype)
        if middle is not None and middle.ndim == 2:
            across = middle @ mass
            distances = torch.cdist(
                centre, other_centre, compute_mode="donot_use_mm_for_euclid_dist"
            ).square()
            energy = (across * (spread + other_spread)).sum() + (
                middle * mass[:, None] * mass[None, :] * distances
            ).sum()
        else:
            energy = mass * (spread + other_spread) + mass.square() * (
                (centre - other_centre).square().sum(dim=1) if not same else 0.0
            )
            energy = (energy if middle is None else energy * middle).sum()
        return energy * self.weight

    def _memberships(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None] | None:
        """Nonnegative weights y_ia: (N,) with the class of every node, or (N, C); None where
        codes have a sign and a class has no centre."""
        if self.codes is not None:
            if not bool((self.codes >= 0).all()):
                return None
            codes = self.codes.to(dtype)
            return (codes if self.scale is None else codes * self.scale[:, None].to(dtype)), None
        assert self.labels is not None
        weights = (self.labels >= 0).to(dtype)
        if self.scale is not None:
            weights = weights * self.scale.to(dtype)
        return weights, self.labels.clamp_min(0)

    def _class_moments(
        self, z: Tensor, weights: Tensor, slots: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if slots is None:
            mass = weights.sum(dim=0)
            centre = (weights.T @ z) / mass.clamp_min(torch.finfo(z.dtype).tiny)[:, None]
            distances = torch.cdist(z, centre, compute_mode="donot_use_mm_for_euclid_dist")
            return (weights * distances.square()).sum(dim=0), centre, mass
        mass = z.new_zeros(self.rank).index_add(0, slots, weights)
        totals = z.new_zeros(self.rank, z.shape[1]).index_add(0, slots, weights[:, None] * z)
        centre = totals / mass.clamp_min(torch.finfo(z.dtype).tiny)[:, None]
        squares = (z - centre.index_select(0, slots)).square().sum(dim=1)
        spread = z.new_zeros(self.rank).index_add(0, slots, weights * squares)
        return spread, centre, mass


def ones(n: int, device: torch.device) -> FactoredGraph:
    """The graph where everybody is alike."""
    labels = torch.zeros(n, dtype=torch.long, device=device)
    return FactoredGraph(n, labels=labels, n_classes=1)
