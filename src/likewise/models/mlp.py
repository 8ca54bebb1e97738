"""Projectors and predictors: linear layers with batch norm between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from likewise.objectives.base import one_of

Activation = Literal["relu", "gelu", "silu"]
_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}


class MLP(nn.Module):
    """Linear - batch norm - activation, as often as there are hidden widths, then Linear.

    One class for all heads of this literature; ``MLP([512, 128])`` is the linear projector, and
    ``MLP([512])`` has no layer and passes its input on.

    ===================  ====================================================================
    SimCLR projector     ``MLP([512, 512, 128])``; its code ends with ``last_norm=True``
    MoCo v2 projector    ``MLP([512, 512, 128], norm=False)``
    BYOL projector       ``MLP([512, 4096, 256], bias=True, last_bias=False)``
    BYOL predictor       ``MLP([256, 4096, 256], bias=True, last_bias=False)``
    SimSiam projector    ``MLP([512, 2048, 2048, 2048], last_norm=True, last_affine=False)``
    SimSiam predictor    ``MLP([2048, 512, 2048])``
    VICReg expander      ``MLP([512, 8192, 8192, 8192], bias=True, last_bias=False)``
    Barlow Twins         ``MLP([512, 8192, 8192, 8192], last_bias=False)``
    ===================  ====================================================================

    Args:
        dims: the widths from input to output.
        norm: whether a batch norm follows every hidden Linear.
        last_norm: whether a batch norm follows the last Linear, too.
        last_affine: whether that last batch norm learns a scale and a shift.
        bias: whether a Linear in front of a batch norm has a bias, which that norm takes away
            again (VICReg's code has it).
        last_bias: whether a last Linear without batch norm has a bias.
        activation: "relu", "gelu" or "silu".

    >>> projector = MLP([512, 2048, 128])
    >>> projector
    MLP(
      512 -> 128
      (layers): Sequential(
        (0): Linear(in_features=512, out_features=2048, bias=False)
        (1): BatchNorm1d(2048, ...)
        (2): ReLU(inplace=True)
        (3): Linear(in_features=2048, out_features=128, bias=True)
      )
    )
    >>> import torch
    >>> projector(torch.zeros(4, 512)).shape
    torch.Size([4, 128])
    """

    def __init__(
        self,
        dims: Sequence[int],
        *,
        norm: bool = True,
        last_norm: bool = False,
        last_affine: bool = True,
        bias: bool = False,
        last_bias: bool = True,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        one_of("activation", activation, tuple(_ACTIVATIONS))
        self.dims = _widths(dims)
        layers: list[nn.Module] = []
        for place, (before, after) in enumerate(zip(self.dims, self.dims[1:], strict=False)):
            last = place == len(self.dims) - 2
            normed = last_norm if last else norm
            # A hidden Linear without a norm needs its bias.
            with_bias = bias if normed else last_bias if last else True
            layers.append(nn.Linear(before, after, bias=with_bias))
            if normed:
                layers.append(nn.BatchNorm1d(after, affine=last_affine if last else True))
            if not last:
                layers.append(_activation(activation))
        self.layers = nn.Sequential(*layers)

    @property
    def in_dim(self) -> int:
        """The width of the input."""
        return self.dims[0]

    @property
    def out_dim(self) -> int:
        """The width of the output."""
        return self.dims[-1]

    def forward(self, x: Tensor) -> Tensor:
        """Map rows (n, in_dim) to rows (n, out_dim)."""
        rows: Tensor = self.layers(x)
        return rows

    def extra_repr(self) -> str:
        """The widths at both ends."""
        return f"{self.in_dim} -> {self.out_dim}"


def _widths(dims: Sequence[int]) -> tuple[int, ...]:
    """`dims`, or an error that names it."""
    sound = not isinstance(dims, (int, str)) and len(dims) > 0
    if not sound or any(isinstance(d, bool) or not isinstance(d, int) or d < 1 for d in dims):
        raise ValueError(
            f"dims is {dims!r}: give the widths from input to output, such as [512, 2048, 128]"
        )
    return tuple(dims)


def _activation(name: Activation) -> nn.Module:
    # In place: what a batch norm or Linear gave is needed by nobody else.
    return nn.GELU() if name == "gelu" else _ACTIVATIONS[name](inplace=True)
