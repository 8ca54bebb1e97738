"""A small convolutional encoder of our own, for small images on a CPU."""

from __future__ import annotations

from torch import Tensor, nn


class TinyConvNet(nn.Module):
    """Five 3x3 convolutions with batch norm and ReLU, then the average over places.

    278,000 parameters. The map shrinks at the first convolution already: full resolution is where
    a CPU spends its time.

    >>> import torch
    >>> TinyConvNet()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 128])
    """

    num_features = 128

    def __init__(self, in_channels: int = 3) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            _block(in_channels, 32, stride=2),
            _block(32, 64, stride=2),
            _block(64, 64, stride=1),
            _block(64, 128, stride=2),
            _block(128, self.num_features, stride=1),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, channels, s, s) to pooled features (n, 128)."""
        pooled: Tensor = self.blocks(x).mean(dim=(2, 3))
        return pooled


def _block(before: int, after: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )
