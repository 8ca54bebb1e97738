"""Cross-entropy plus matrix cross-entropy over unit token embeddings, as a loss for logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from likewise.information.precision import at_least_float32
from likewise.language.checks import at_least, one_of, share, weights_of
from likewise.language.density import UnitRows
from likewise.language.fused import FusedLoss, Plan, Values, all_positions
from likewise.language.methods import Accuracy, Method

Reduction = Literal["mean", "sum", "none"]
Precision = Literal["auto", "bfloat16", "float32", "float64"]


class MatrixCrossEntropy(nn.Module):
    r"""CE(p, q) + MCE(P, Q) with P = sum_i p_i e_i e_i^T and Q = sum_j q_j e_j e_j^T.

    q is the softmax of the logits, p the target (one token, or smoothed), and e_j the embedding of
    token j scaled to unit length: a wrong token costs less the more its embedding is like that of
    the right one. MCE(P, Q) = tr(-P log Q + Q) and tr Q = 1, so that for one target token t

        MCE = 1 - e_t^T log(Q) e_t,   1 <= MCE <= 1 + CE.

    Q is d x d at every position and is never formed. ``method="lanczos"`` builds a Krylov basis
    from e_t by products Q v = E^T (q o (E v)), and takes the value between a lower and an upper
    quadrature; positions whose two bounds are still apart get more products. The gradient in q_j
    is -e_j^T D e_j with D the derivative of the logarithm at Q along e_t e_t^T (Daleckii-Krein), on
    the same basis and for no further product. Value and gradient are made chunk by chunk in the
    forward pass; what stays is one number a logit. It is differentiable once.

    Paper: matrix-ssl, appendix B, equation 23.
    Errata: with the printed log(0) := 0 a singular Q (fewer tokens than dimensions, or q that
    underflows) would reward wrong tokens. Here e_t lies in the range of Q, and the logarithm is
    taken there; where log q_t is below -30, the value is continued in log q_t along its tangent.
    The order-4 Taylor polynomial about I that the paper uses is ``method="taylor"``: it is far off
    where eigenvalues of Q are small (docs/language.md), and can be below the true value by any
    amount.

    Label smoothing s makes P = (1 - s) e_t e_t^T + s / n sum_j e_j e_j^T. ``"exact"``,
    ``"lanczos"`` and ``"taylor"`` alike estimate the second part through one random vector x a
    position with E[x x^T] equal to it, which is unbiased and as dear as the first part again.

    Args:
        embedding: ``nn.Linear`` (an LM head), ``nn.Embedding``, or a tensor (n, d). It is read at
            every call, not copied and not registered: tied weights stay tied, and the loss adds
            nothing to a checkpoint.
        embedding_gradient: let the gradient reach the embedding through P and Q too. Without it
            the matrix cross-entropy is a function of the logits alone.
        method: ``"lanczos"``, ``"taylor"`` (of `order`, about I), or ``"exact"`` (in float64, by
            singular values; for tests and small d).
        top_k: keep the k most probable tokens (the target always among them) and scale their
            probabilities to sum to 1; None keeps all. Only the matrix term is truncated.
        ignore_index: label of positions that do not count.
        label_smoothing: s, in both terms.
        cross_entropy_weight: factor of CE.
        matrix_weight: factor of MCE.
        reduction: ``"mean"`` over the positions that count, ``"sum"``, or ``"none"`` (0 where a
            position is ignored). If no position counts, the loss is 0 and so is its gradient.
        products: Krylov vectors of a position (``"lanczos"``). Half of them come first.
        max_products: the most that a position may get.
        tolerance: relative error at which a position is done, as estimated; 0 gives every
            position exactly `products`.
        order: order of the Taylor polynomial; the paper's is 4.
        precision: what products with the embedding are computed in. ``"auto"`` is bfloat16 with
            sums in float32 on CUDA where the logits or the embedding are in half precision,
            float64 for float64 logits, and float32 otherwise.
        memory: bytes that a chunk of positions may take up, about.
        seed: of the probes of label smoothing.

    Example:
        >>> import torch
        >>> tokens = torch.eye(4)[[0, 1, 2, 3, 0]]  # token 4 is a synonym of token 0
        >>> logits = torch.tensor([[4.0, 0.0, 0.0, 0.0, 0.0]], requires_grad=True)
        >>> loss = MatrixCrossEntropy(tokens, cross_entropy_weight=0.0)
        >>> loss(logits, torch.tensor([4]))  # 1 - log(q_0 + q_4)
        tensor(1.0526, grad_fn=...)
        >>> loss(logits, torch.tensor([1]))  # 1 - log q_1
        tensor(5.0707, grad_fn=...)
    """

    last: Values | None
    """What the last call found at every position: cross-entropy, matrix cross-entropy and number
    of products, without gradient."""

    def __init__(
        self,
        embedding: nn.Module | Tensor,
        *,
        embedding_gradient: bool = False,
        method: Method = "lanczos",
        top_k: int | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        cross_entropy_weight: float = 1.0,
        matrix_weight: float = 1.0,
        reduction: Reduction = "mean",
        products: int = 10,
        max_products: int = 40,
        tolerance: float = 1e-3,
        order: int = 4,
        precision: Precision = "auto",
        memory: int = 5 * 2**28,
        seed: int = 0,
    ) -> None:
        super().__init__()
        weights_of(embedding)
        # In a tuple, so that torch does not make it a part of this module.
        self._source = (embedding,)
        self.embedding_gradient = embedding_gradient
        self.ignore_index = ignore_index
        self.reduction: Reduction = one_of(reduction, "reduction", get_args(Reduction))
        self.precision: Precision = one_of(precision, "precision", get_args(Precision))
        if embedding_gradient and reduction == "none":
            raise ValueError(
                "embedding_gradient is True with reduction 'none': the embedding's gradient is "
                "made in the forward pass, for one sum; use reduction='sum' or 'mean'."
            )
        method = one_of(method, "method", get_args(Method))
        self.plan = Plan(
            cross_entropy_weight=at_least(cross_entropy_weight, 0.0, "cross_entropy_weight"),
            matrix_weight=at_least(matrix_weight, 0.0, "matrix_weight"),
            label_smoothing=share(label_smoothing, "label_smoothing"),
            top_k=None if top_k is None else at_least(top_k, 1, "top_k"),
            accuracy=Accuracy(
                method=method,
                order=at_least(order, 1, "order"),
                products=at_least(products, 1, "products"),
                max_products=max(at_least(max_products, 1, "max_products"), products),
                tolerance=at_least(tolerance, 0.0, "tolerance"),
            ),
            memory=at_least(memory, 1, "memory"),
        )
        self.seed = seed
        self._generator: torch.Generator | None = None
        self.last = None

    @property
    def embedding(self) -> Tensor:
        """The token embeddings as they are now, (n, d)."""
        return weights_of(self._source[0])

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of `logits` (..., n) for `labels` (...): position i predicts label i.

        A causal language model's logits at position i predict token i + 1: pass
        ``logits[:, :-1]`` and ``labels[:, 1:]``.
        """
        weight = self.embedding
        self._check(logits, labels, weight)
        flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
        kept = torch.nonzero(wanted != self.ignore_index)[:, 0]
        self._check_values(wanted[kept], weight)
        scale = 1 / max(len(kept), 1) if self.reduction == "mean" else 1.0
        job = self._job(flat.detach(), wanted, kept, weight, scale)
        source = weight if self.embedding_gradient else weight.detach()
        loss, entropy, matrix, products = FusedLoss.apply(
            flat, source, job, self.reduction != "none"
        )
        self.last = Values(entropy, matrix, products, None, None)
        result: Tensor = loss.reshape(labels.shape) if self.reduction == "none" else loss
        return result

    def _job(
        self, logits: Tensor, labels: Tensor, kept: Tensor, weight: Tensor, scale: float
    ) -> Callable[[tuple[bool, bool]], tuple[Tensor, Values, Plan]]:
        """What `FusedLoss` runs; autograd tells it which gradients are wanted."""

        def job(gradients: tuple[bool, bool]) -> tuple[Tensor, Values, Plan]:
            with torch.no_grad(), torch.autocast(logits.device.type, enabled=False):
                rows = self._rows(logits, weight)
                shares = torch.zeros(len(labels), dtype=rows.working, device=logits.device)
                shares[kept] = scale
                values = all_positions(
                    logits,
                    labels,
                    kept,
                    shares[kept],
                    rows,
                    self.plan,
                    gradients=gradients,
                    generator=self._probes(logits.device),
                )
                if values.embedding is not None:
                    values.embedding = _through_norm(values.embedding, weight, rows)
            return shares, values, self.plan

        return job

    def _rows(self, logits: Tensor, weight: Tensor) -> UnitRows:
        working = at_least_float32(logits[:0]).dtype
        compute = working
        if self.precision == "auto":
            half = logits.dtype.itemsize == 2 or weight.dtype.itemsize == 2
            if half and logits.is_cuda:
                compute = torch.bfloat16
        else:
            compute = getattr(torch, self.precision)
            working = torch.promote_types(working, compute)
        return UnitRows.of(weight, compute, working, doubled=self.plan.top_k is None)

    def _probes(self, device: torch.device) -> torch.Generator | None:
        if not self.plan.label_smoothing:
            return None
        if self._generator is None or self._generator.device != device:
            self._generator = torch.Generator(device).manual_seed(self.seed)
        return self._generator

    def _check(self, logits: Tensor, labels: Tensor, weight: Tensor) -> None:
        if not logits.is_floating_point():
            raise ValueError(f"logits are {logits.dtype}: give floating-point numbers (..., n).")
        if labels.is_floating_point() or labels.dtype == torch.bool:
            raise ValueError(f"labels are {labels.dtype}: give token numbers, labels.long().")
        if logits.ndim < 1 or logits.shape[:-1] != labels.shape:
            raise ValueError(
                f"logits have shape {tuple(logits.shape)} and labels {tuple(labels.shape)}: "
                "give logits (..., n) and labels (...), both already shifted by one token."
            )
        if logits.shape[-1] != len(weight):
            raise ValueError(
                f"logits are over {logits.shape[-1]} tokens and the embedding has {len(weight)} "
                "rows: give the LM head whose logits these are, and resize both alike "
                "(model.resize_token_embeddings)."
            )

    def _check_values(self, labels: Tensor, weight: Tensor) -> None:
        n = len(weight)
        outside = (labels < 0) | (labels >= n)
        empty = ~weight.detach().any(1)
        # One question to the device for both, as each would make the host wait.
        if not bool(outside.any() | empty.any()):
            return
        if bool(outside.any()):
            label = int(labels[outside][0])
            raise ValueError(
                f"labels hold {label}, and there are {n} tokens: give 0 to {n - 1}, or "
                f"ignore_index ({self.ignore_index}) where a position does not count."
            )
        row = int(torch.nonzero(empty)[0, 0])
        raise ValueError(
            f"embedding has {int(empty.sum())} rows that are zero, the first is {row}: they have "
            "no direction. Give unused tokens a random row, or cut them from logits and embedding."
        )


def _through_norm(gradient: Tensor, weight: Tensor, rows: UnitRows) -> Tensor:
    """The gradient in w of what has the given gradient in w / |w|."""
    inverse = rows.inverse_norm[:, None]
    unit = weight.detach().to(gradient.dtype) * inverse
    along = (unit * gradient).sum(1, keepdim=True)
    return ((gradient - unit * along) * inverse).to(weight.dtype)
