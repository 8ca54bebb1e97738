"""InfoNCE, its upper bound and its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from likewise.diagnostics.figures import Figures
from likewise.diagnostics.given import pair_of, positive, unit_rows
from likewise.graph.arrays import Array

SIMILARITIES_AT_ONCE = 2**21
"""How many similarities are held at a time, in float64."""


@dataclass(frozen=True)
class InfoNCEParts(Figures):
    """What :func:`info_nce_parts` found.

    Attributes:
        info_nce: the loss, equation 1.
        upper_bound: beta (invariance + repulsion) + log 2(N - 1), equation 3.
        gap: upper_bound - info_nce, between 0 and log 2(N - 1).
        invariance: -mean Sim(f1, f2), equation 4.
        repulsion: mean Sim(f1, f*), equation 5.
        expected_similarity: mean f1 . E_D[f], with D the softmax over negatives.
        entropy: mean H(D); exp of it is how many negatives take part.
        decomposition: -beta mean f1.f2 + beta expected_similarity + entropy, which is info_nce.
        inverse_temperature: beta.
        samples: N.
    """

    info_nce: float
    upper_bound: float
    gap: float
    invariance: float
    repulsion: float
    expected_similarity: float
    entropy: float
    decomposition: float
    inverse_temperature: float
    samples: int


@torch.no_grad()
def info_nce_parts(z1: Array, z2: Array, *, inverse_temperature: float = 2.0) -> InfoNCEParts:
    r"""InfoNCE against its upper bound, and its entropy decomposition.

    With unit rows f, the 2(N - 1) negatives :math:`B_{-i}` (both views of all other samples), and
    D_i the softmax of :math:`\beta f_i^1 \cdot f_l` over them:

    .. math::
        \mathcal L = -\tfrac1N \sum_i \log \frac{e^{\beta f_i^1 \cdot f_i^2}}
            {\sum_{l \in B_{-i}} e^{\beta f_i^1 \cdot f_l}}
        = \tfrac1N \sum_i \bigl[-\beta f_i^1 \cdot f_i^2 + \beta f_i^1 \cdot E_{D_i}[f] + H(D_i)
            \bigr] \le \beta \mathcal L_{inv} + \beta \mathcal L_{rep} + \log 2(N-1)

    Paper: geometry, equations 1 and 3 to 5, propositions 3.1 and C.1. Errata: the middle term of
    C.1 has a plus; the nearest negative of the bound is that of the cosine; the bound holds for
    any projector. In float64, a block of samples against all at a time.

    Args:
        z1: projector outputs of the first view (N, d), N >= 2.
        z2: of the second view.
        inverse_temperature: beta; the paper uses 2 and calls it temperature.

    >>> z = torch.ones(3, 2)  # full collapse: the bound is reached
    >>> found = info_nce_parts(z, z)
    >>> round(found.info_nce, 4), round(found.upper_bound, 4), round(math.exp(found.entropy), 4)
    (1.3863, 1.3863, 4.0)
    """
    first, second = pair_of(z1, z2, "z1", "z2", at_least=2)
    beta = positive("inverse_temperature", inverse_temperature, "geometry uses 2")
    one, two = unit_rows(first.double()), unit_rows(second.double())
    n = len(one)
    bank = torch.cat([one, two])
    partition, nearest, expected, entropy = [], [], [], []
    step = max(SIMILARITIES_AT_ONCE // (2 * n), 1)
    for start in range(0, n, step):
        similarities = one[start : start + step] @ bank.T
        block = torch.arange(len(similarities), device=one.device)
        for own in (start + block, n + start + block):
            similarities[block, own] = -torch.inf
        logits = beta * similarities
        log_sum = torch.logsumexp(logits, dim=1)
        share = (logits - log_sum[:, None]).exp()
        partition.append(log_sum)
        nearest.append(similarities.amax(dim=1))
        expected.append((share * similarities.masked_fill(similarities.isinf(), 0)).sum(dim=1))
        entropy.append(torch.special.entr(share).sum(dim=1))
    alike = float((one * two).sum(dim=1).mean())
    means = [float(torch.cat(x).mean()) for x in (partition, nearest, expected, entropy)]
    log_sum_mean, repulsion, expected_mean, entropy_mean = means
    loss = log_sum_mean - beta * alike
    bound = beta * (repulsion - alike) + math.log(2 * (n - 1))
    notes = []
    if zero := int((bank == 0).all(dim=1).sum()):
        notes.append(f"{zero} rows are zero: they are similar to nothing (0)")
    return InfoNCEParts(
        notes=tuple(notes),
        info_nce=loss,
        upper_bound=bound,
        gap=bound - loss,
        invariance=-alike,
        repulsion=repulsion,
        expected_similarity=expected_mean,
        entropy=entropy_mean,
        decomposition=-beta * alike + beta * expected_mean + entropy_mean,
        inverse_temperature=beta,
        samples=n,
    )
