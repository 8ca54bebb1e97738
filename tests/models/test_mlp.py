"""Projectors and predictors have the layers that the papers say."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likewise.models import MLP


def layers(mlp: MLP) -> list[str]:
    described = []
    for layer in mlp.layers:
        if isinstance(layer, nn.Linear):
            bias = "with" if layer.bias is not None else "without"
            described.append(f"{layer.in_features}->{layer.out_features} {bias} bias")
        elif isinstance(layer, nn.BatchNorm1d):
            described.append(f"norm {layer.num_features}" + ("" if layer.affine else " fixed"))
        else:
            described.append(type(layer).__name__)
    return described


@pytest.mark.parametrize(
    ("mlp", "expected"),
    [
        (lambda: MLP([4]), []),
        (lambda: MLP([4, 2]), ["4->2 with bias"]),
        (lambda: MLP([4, 3, 2]), ["4->3 without bias", "norm 3", "ReLU", "3->2 with bias"]),
        (lambda: MLP([4, 3, 2], norm=False), ["4->3 with bias", "ReLU", "3->2 with bias"]),
        (
            lambda: MLP([4, 3, 2], last_norm=True, last_affine=False),
            ["4->3 without bias", "norm 3", "ReLU", "3->2 without bias", "norm 2 fixed"],
        ),
        (
            lambda: MLP([4, 3, 2], bias=True, last_bias=False, activation="gelu"),
            ["4->3 with bias", "norm 3", "GELU", "3->2 without bias"],
        ),
    ],
)
def test_layers(mlp, expected):
    assert layers(mlp()) == expected


def test_the_value_is_that_of_the_formula():
    torch.manual_seed(0)
    mlp = MLP([4, 6, 5, 3], activation="relu").double()
    x = torch.randn(7, 4, dtype=torch.float64)
    y = x
    for place in (0, 3):
        y = y @ mlp.layers[place].weight.T
        y = (y - y.mean(0)) / (y.var(0, correction=0) + 1e-5).sqrt()
        y = y.clamp(min=0)
    y = y @ mlp.layers[6].weight.T + mlp.layers[6].bias
    torch.testing.assert_close(mlp(x), y)


def test_no_layer_is_the_identity():
    x = torch.randn(3, 4)
    assert MLP([4])(x) is x
    assert (MLP([4]).in_dim, MLP([4, 2]).out_dim) == (4, 2)


@pytest.mark.parametrize("dims", [[], 512, [512, 0], [512, 2.5], [True, 2], "512"])
def test_bad_widths(dims):
    with pytest.raises(ValueError, match="dims is .*give the widths"):
        MLP(dims)


def test_bad_activation():
    with pytest.raises(ValueError, match="activation is 'rleu'"):
        MLP([4, 2], activation="rleu")
