"""Batches that bring known pairs together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from likewise.graph import Graph
from likewise.training.batches.draws import EdgeDraw, LabelDraw
from likewise.training.batches.inclusion import Inclusion
from likewise.training.batches.knowledge import Knowledge, in_figures, read_knowledge
from likewise.training.batches.parts import Parts
from likewise.training.batches.plan import PLACES, BatchPlan, stream
from likewise.training.batches.weights import weighted_terms

SMALLEST_BATCH = 8


class GraphAwareBatches(BatchPlan):
    r"""Batches in which known pairs meet, weighted so that their sums stay unbiased.

    1,000 answers over 50,000 samples put 0.1 known pairs into a random batch of 512. Here, part
    of every batch is drawn from what is known: edges with both ends (those of -1, "different", and
    of 0, "neither", as well), and labelled samples, in teams of classmates where classes are
    many. The other samples are those of a plain shuffled batch. They are the sets I and J of
    ``pal`` (section 4, eq. 9-11), put into one batch. No sample is in a batch twice.

    **What is unbiased.** The batch's graph has the entries

    .. math::
        \tilde G_{ij} = G_{ij}\, \pi^0_{ij} / \pi_{ij},

    where :math:`\pi_{ij}` is the probability that i and j are both in such a batch, and
    :math:`\pi^0_{ij}` that they are in a uniformly random one (on the diagonal, the same for
    one sample). For any :math:`\ell_{ij}`, the sum over the batch of
    :math:`\tilde G_{ij} \ell_{ij}` then has the mean that the sum of :math:`G_{ij} \ell_{ij}`
    has over random batches: the attraction of alike samples, the repulsion of pairs of -1, and
    the pull between the views of one sample. The probabilities are exact for labels that are
    drawn one by one and for edges that share no ends, and right to about 1 % in the smallest
    batches for all other edges and for teams, with an error that falls as batches grow. For two
    labelled samples that edges touch without joining them, they are right to about
    :math:`1/(4g^2) + 1/E`, where g labelled samples and some of E edges are drawn. (See
    :class:`~likewise.training.batches.inclusion.Inclusion`; the tests compare them with
    enumerations and with frequencies.)

    **What is not.** Terms that look at the batch as a whole see the mixture that
    :attr:`mixture` reports, in which known samples are over-represented: variances and
    covariances, whitening, batch norm, and the denominators of contrastive objectives. An
    objective that normalises the graph by its degrees, or takes the mean over the positives of a
    row, takes the weights out again in part.

    **Variance.** The term of the known pairs gets much steadier (its variance falls by about
    :math:`\pi_{ij} / \pi^0_{ij}`, a factor of 1,000 for the answers above). The
    self-supervised term pays for it: known samples weigh little, the others more, as if the
    batch had only the uniform part of its samples. An epoch still has n // batch_size steps, and
    shows about that part of the samples.

    Args:
        graph: what is known about the n samples.
        batch_size: samples in a batch, over all ranks; at least 8.
        seed: where the randomness starts.
        known_share: the part of a batch that known pairs are drawn for, on average.

    >>> import torch
    >>> from likewise import Graph
    >>> answers = Graph.from_edges(torch.tensor([0, 5]), torch.tensor([700, 9]), n=1000)
    >>> plan = GraphAwareBatches(Graph.identity(1000) + answers, batch_size=8, seed=0)
    >>> [{0, 700, 5, 9} <= set(index.tolist()) for index in plan.epoch(0)][:3]
    [True, True, True]
    >>> plan.mixture["known"]
    0.5
    """

    def __init__(
        self, graph: Graph, batch_size: int, seed: int = 0, *, known_share: float = 0.5
    ) -> None:
        super().__init__(graph, batch_size, seed)
        if not 0.0 < known_share < 1.0:
            raise ValueError(
                f"known_share is {known_share!r}: give a share between 0 and 1 (0.5 is usual)"
            )
        if self.batch_size < SMALLEST_BATCH:
            raise ValueError(
                f"batch_size is {self.batch_size}, too small to bring known pairs beside others: "
                f"give at least {SMALLEST_BATCH}, or use sampler='shuffled'"
            )
        knowledge = read_knowledge(graph)
        if knowledge.empty:
            raise ValueError(
                "graph knows no pair of two samples, so that there is nothing to bring together: "
                "use sampler='shuffled'"
            )
        self.known_share = float(known_share)
        self._edges, self._labels = self._draws(knowledge)
        inclusion = Inclusion(self.n, self.batch_size, self._edges, self._labels)
        self._parts = Parts(weighted_terms(knowledge, inclusion)).to(graph.device)
        self.mixture = self._mixture(knowledge, inclusion)
        self.reason = (
            f"known pairs are brought together: {in_figures(self.mixture['known_pairs'])} in a "
            f"batch of {self.batch_size:,}, where a random one would hold "
            f"{in_figures(self.mixture['known_pairs_if_random'])}"
        )

    mixture: dict[str, float]
    """What a batch is made of, on average: the share of samples brought because they are "known",
    that of "uniform" ones, the "known_pairs" in it (edges and classmates), and
    "known_pairs_if_random"."""

    def _draws(self, knowledge: Knowledge) -> tuple[EdgeDraw | None, LabelDraw | None]:
        """How many edges and labelled samples come, within the share and in any case within the
        batch."""
        places = max(round(self.known_share * self.batch_size), 2)
        room = self.batch_size - 1
        labels = None
        if len(knowledge.labelled) > 1:
            share = places if not len(knowledge.i) else max(places // 2, 2)
            labels = LabelDraw(knowledge.labelled, knowledge.classes, share, room - 2)
            if labels.team == 1 and len(knowledge.labelled) == self.n:
                labels = None  # a uniform sample does as well
            else:
                places, room = places - share, room - labels.largest
        if not len(knowledge.i):
            return None, labels
        return EdgeDraw(self.n, knowledge.i, knowledge.j, max(places, 2), room), labels

    def _mixture(self, knowledge: Knowledge, inclusion: Inclusion) -> dict[str, float]:
        known = inclusion.known_samples / self.batch_size
        i, j = knowledge.i, knowledge.j
        pairs = float(inclusion.pair(i, j, np.ones_like(i)).sum())
        return {
            "known": known,
            "uniform": 1 - known,
            "known_pairs": pairs + inclusion.labelled_pairs(knowledge.labelled_pairs),
            "known_pairs_if_random": knowledge.pairs_in_random_batch(self.batch_size),
        }

    def _batches(self, epoch: int, start: int) -> Iterator[np.ndarray]:
        order = self._shuffled(epoch)
        draws = [
            draw.steps(self.seed, epoch, start)
            for draw in (self._edges, self._labels)
            if draw is not None
        ]
        nobody = np.zeros(0, dtype=np.int64)
        is_known = np.zeros(self.n, dtype=bool)
        for step in range(start, len(self)):
            known = np.concatenate([nobody, *(next(draw) for draw in draws)])
            known = known[np.unique(known, return_index=True)[1]]
            shuffled = order[step * self.batch_size : (step + 1) * self.batch_size]
            is_known[known] = True
            others = shuffled[~is_known[shuffled]][: self.batch_size - len(known)]
            is_known[known] = False
            # Ranks take neighbouring rows: each is to get its share of both parts.
            places = stream(self.seed, epoch, PLACES, step).permutation(self.batch_size)
            yield np.concatenate([known, others])[places]
