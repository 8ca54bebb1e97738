"""What a prediction looks like among the token embeddings: entropy, rank, mass near the target."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from likewise.information.precision import at_least_float32, without_autocast
from likewise.language.checks import at_least, weights_of


@without_autocast
def predictive_spectrum(
    logits: Tensor, embedding: nn.Module | Tensor, *, top_k: int | None = None
) -> Tensor:
    """Eigenvalues of Q = sum_j q_j e_j e_j^T that may be non-zero, (..., r), ascending.

    Q and the Gram matrix diag(sqrt q) E E^T diag(sqrt q) share their non-zero eigenvalues; the
    smaller of the two is decomposed, position by position. They sum to 1.

    Args:
        logits: (..., n).
        embedding: an LM head, an ``nn.Embedding`` or a tensor (n, d).
        top_k: keep the k most probable tokens and scale their probabilities to sum to 1, so that
            a position costs k^2 d; None keeps all.
    """
    weight = weights_of(embedding).detach()
    if logits.shape[-1] != len(weight):
        raise ValueError(
            f"logits are over {logits.shape[-1]} tokens and the embedding has {len(weight)} rows: "
            "give the LM head whose logits these are."
        )
    z = at_least_float32(logits.detach()).reshape(-1, logits.shape[-1])
    rows = torch.nn.functional.normalize(weight.to(z.dtype), dim=1)
    kept = len(weight) if top_k is None else min(at_least(top_k, 1, "top_k"), len(weight))
    values = []
    for position in z:
        chosen, tokens = position.topk(kept)
        b = rows[tokens] * chosen.log_softmax(0).div(2).exp()[:, None]
        matrix = b @ b.mT if kept <= rows.shape[1] else b.mT @ b
        values.append(torch.linalg.eigvalsh(matrix).clamp_min(0))
    return torch.stack(values).reshape(*logits.shape[:-1], -1)


def predictive_entropy(
    logits: Tensor, embedding: nn.Module | Tensor, *, top_k: int | None = None
) -> Tensor:
    """Matrix entropy ME(Q) = tr(-Q log Q + Q) of every prediction, (...).

    It is 1 + the von Neumann entropy, from 1 (one direction) to 1 + log min(n, d), and at most
    1 + the entropy of q: tokens that are alike count as one.

    Paper: matrix-ssl, definition 3.2 and appendix B.

    Example:
        >>> import torch
        >>> synonyms = torch.eye(2)[[0, 0, 1]]
        >>> predictive_entropy(torch.tensor([0.0, 0.0, -100.0]), synonyms)  # sure up to synonyms
        tensor(1.)
    """
    values = predictive_spectrum(logits, embedding, top_k=top_k)
    return values.sum(-1) - torch.xlogy(values, values).sum(-1)


def predictive_rank(
    logits: Tensor, embedding: nn.Module | Tensor, *, top_k: int | None = None
) -> Tensor:
    """Effective rank exp(ME(Q) - 1) of every prediction: in how many directions it points, (...).

    Paper: matrix-ssl, proposition 3.6.

    Example:
        >>> import torch
        >>> predictive_rank(torch.zeros(4), torch.eye(4))
        tensor(4.)
    """
    return (predictive_entropy(logits, embedding, top_k=top_k) - 1).exp()


@without_autocast
def synonym_mass(
    logits: Tensor,
    labels: Tensor,
    embedding: nn.Module | Tensor,
    *,
    similarity: Sequence[float] = (0.3, 0.5, 0.7, 0.99),
) -> Tensor:
    """Probability of the tokens whose cosine similarity to the target is at least so much.

    The target itself counts, so that the last column is close to the usual probability of the
    target and the others say how much of the rest is near it.

    Args:
        logits: (..., n).
        labels: (...), each in 0 .. n - 1.
        embedding: an LM head, an ``nn.Embedding`` or a tensor (n, d).
        similarity: thresholds.

    Returns:
        (..., len(similarity)).

    Example:
        >>> import torch
        >>> synonyms = torch.eye(2)[[0, 0, 1]]
        >>> synonym_mass(torch.zeros(3), torch.tensor(0), synonyms, similarity=[0.5])
        tensor([0.6667])
    """
    weight = weights_of(embedding).detach()
    n = len(weight)
    if logits.shape[-1] != n or logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)}, labels {tuple(labels.shape)} and the "
            f"embedding {n} rows: give logits (..., n), labels (...) and n rows."
        )
    if labels.numel() and (int(labels.min()) < 0 or int(labels.max()) >= n):
        raise ValueError(
            f"labels reach from {int(labels.min())} to {int(labels.max())}: give 0 "
            f"to {n - 1}, and leave out positions that do not count."
        )
    z = at_least_float32(logits.detach()).reshape(-1, n)
    rows = torch.nn.functional.normalize(weight.to(z.dtype), dim=1)
    found = z.new_empty(len(z), len(similarity))
    for i, label in enumerate(labels.reshape(-1).tolist()):
        q, near = z[i].softmax(0), rows @ rows[label]
        for j, least in enumerate(similarity):
            found[i, j] = q[near >= least].sum()
    return found.reshape(*labels.shape, len(similarity))
