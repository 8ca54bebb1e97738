"""Batch norm over the rows of all ranks, on CPU and GPU, with exact gradients."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from likewise.distributed import gather_rows, world_size
from likewise.information.precision import at_least_float32, without_autocast

_PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class BatchNormOverRanks(_BatchNorm):
    r"""Batch norm whose mean and variance are those of the global batch.

    .. math:: y = \gamma\, \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta, \quad
        \mu = \sum_r \frac{n_r}{n} \mu_r, \quad
        \sigma^2 = \sum_r \frac{n_r}{n} \big(\sigma_r^2 + (\mu_r - \mu)^2\big)

    Ranks may hold different numbers of rows, or none. The gather of :math:`\mu_r, \sigma_r^2, n_r`
    has its exact adjoint as the backward (:mod:`likewise.distributed`): when every rank returns
    the global loss, DDP's averaging leaves the gradient of one process on the global batch.

    On a GPU this is :class:`torch.nn.SyncBatchNorm`, whose backward is the same adjoint; that
    class refuses the CPU. With one process, and in eval mode, it is plain batch norm. Parameters
    and buffers have batch norm's names.
    """

    process_group = None  # read by the forward of torch.nn.SyncBatchNorm: all ranks

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        _keep_collectives_out_of_compiled_graphs()
        # timm's BatchNormAct2d ends with these two.
        self.drop: nn.Module | None = None
        self.act: nn.Module | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Normalise (n, C, ...) over all dimensions but C, and over all ranks."""
        if not self.training or world_size() == 1:
            y = super().forward(input)
        elif input.is_cuda:
            y = nn.SyncBatchNorm.forward(self, input)  # type: ignore[arg-type]
        else:
            y = self._over_ranks(input)
        y = y if self.drop is None else self.drop(y)
        return y if self.act is None else self.act(y)

    @without_autocast
    def _over_ranks(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        x = at_least_float32(input)
        rows = x.numel() // x.shape[1]
        axes = [axis for axis in range(x.ndim) if axis != 1]
        if rows:
            variance, mean = torch.var_mean(x, axes, correction=0)
        else:
            # Zeros that hang on x: the backward of the gather needs every rank.
            variance = mean = x.sum(axes)
        # One collective: a row of 2 C + 1 numbers from every rank.
        summary = torch.cat([mean, variance, mean.new_full((1,), rows)])
        table = gather_rows(summary[None], (1,) * world_size())
        means, variances, counts = table.split([x.shape[1], x.shape[1], 1], dim=1)
        total = int(counts.detach().double().sum())
        if total < 2:
            raise ValueError(
                f"input has {total} value per channel over all ranks: batch norm in training "
                "needs at least 2: give a larger batch"
            )
        share = counts / total
        mean = (share * means).sum(dim=0)
        variance = (share * (variances + (means - mean).square())).sum(dim=0)
        self._track(mean.detach(), variance.detach() * (total / (total - 1)))
        scale = (variance + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        shift = -mean * scale
        shift = shift if self.bias is None else shift + self.bias
        shape = [1, -1] + [1] * (x.ndim - 2)
        return torch.addcmul(shift.view(shape), x, scale.view(shape)).to(input.dtype)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics; the variance is the unbiased one."""
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        # momentum=None is the plain average of all batches.
        step = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), step)
        self.running_var.lerp_(variance.to(self.running_var.dtype), step)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"input has shape {tuple(input.shape)}: give (n, channels, ...)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        """Part of the forward of torch.nn.SyncBatchNorm; no channels cannot be built here."""


@cache
def _keep_collectives_out_of_compiled_graphs() -> None:
    # Not a decorator: it imports torch's compiler, which takes seconds, and only those who have
    # several ranks need it.
    disabled = torch.compiler.disable(BatchNormOverRanks._over_ranks)
    BatchNormOverRanks._over_ranks = disabled  # type: ignore[method-assign]


def convert_batch_norm(module: nn.Module) -> nn.Module:
    """Replace every batch norm by one over all ranks, in place; returns the module.

    Parameters and buffers are handed over, not copied: an optimizer that holds them stays valid,
    and a state dict fits before and after. Call it before wrapping in DDP.

    >>> model = convert_batch_norm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    >>> model[1]
    BatchNormOverRanks(3, eps=1e-05, momentum=0.1, affine=True, ...)
    """
    return _convert(module, {})


def _convert(module: nn.Module, done: dict[nn.Module, nn.Module]) -> nn.Module:
    if module in done:  # the same batch norm in two places stays one
        return done[module]
    result = _replacement(module) if _needs_replacement(module) else module
    done[module] = result
    if result is module:
        for name, child in module._modules.items():  # named_children leaves out repeated ones
            if child is not None:
                module.add_module(name, _convert(child, done))
    return result


def _needs_replacement(module: nn.Module) -> bool:
    return isinstance(module, _BatchNorm) and not isinstance(module, BatchNormOverRanks)


def _replacement(old: nn.Module) -> BatchNormOverRanks:
    assert isinstance(old, _BatchNorm)
    with_activation = hasattr(old, "drop") and hasattr(old, "act")
    if type(old) not in _PLAIN and not with_activation:
        raise ValueError(
            f"module holds a {type(old).__name__}, whose forward is not known here: "
            "convert it yourself, or train in one process"
        )
    new = BatchNormOverRanks(
        old.num_features, old.eps, old.momentum, old.affine, old.track_running_stats
    )
    new.weight, new.bias = old.weight, old.bias
    new.running_mean, new.running_var = old.running_mean, old.running_var
    new.num_batches_tracked = old.num_batches_tracked
    new.training = old.training
    if with_activation:
        for part in ("drop", "act"):
            setattr(new, part, getattr(old, part))
    return new
