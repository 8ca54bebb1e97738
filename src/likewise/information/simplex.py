"""The simplex equiangular tight frame: class means that are as far apart as they can be."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def simplex_etf(
    classes: int,
    dim: int | None = None,
    generator: torch.Generator | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    r"""Unit rows with pairwise cosine -1 / (classes - 1) and zero mean.

    For K classes in K dimensions these are the rows of M = sqrt(K / (K - 1)) (I - 1 1^T / K). More
    dimensions are filled with zeros; in K - 1 dimensions M is written in an orthonormal basis of
    the plane that it spans.

    Paper: matrix-ssl, definitions D.1 and D.2.
    Errata: dim >= classes - 1 suffices; the paper asks for dim >= classes.

    Args:
        classes: number of rows K, at least 2.
        dim: number of columns, at least classes - 1; by default `classes`.
        generator: if given, the frame is turned by a random rotation drawn from it.
        dtype: type of the result, by default torch's default type.

    Returns:
        Frame (classes, dim), on the device of the generator.

    Example:
        >>> frame = simplex_etf(3, dim=2)
        >>> frame @ frame.T
        tensor([[ 1.0000, -0.5000, -0.5000],
                [-0.5000,  1.0000, -0.5000],
                [-0.5000, -0.5000,  1.0000]])
    """
    if classes < 2:
        raise ValueError(
            f"classes must be at least 2, got {classes}; one class has no other to be apart from."
        )
    columns = classes if dim is None else dim
    if columns < classes - 1:
        raise ValueError(
            f"dim must be at least classes - 1 = {classes - 1}, got {columns}; "
            "fewer dimensions hold no simplex of that many points."
        )
    device = None if generator is None else generator.device
    frame = torch.zeros(classes, columns, dtype=torch.float64, device=device)
    if columns == classes - 1:
        for k in range(1, classes):  # Helmert's orthonormal contrasts
            frame[:k, k - 1] = 1 / math.sqrt(k * (k + 1))
            frame[k, k - 1] = -k / math.sqrt(k * (k + 1))
    else:
        frame[:, :classes] = torch.eye(classes, dtype=torch.float64, device=device) - 1 / classes
    frame *= math.sqrt(classes / (classes - 1))
    if generator is not None:
        normal = torch.randn(
            columns, columns, generator=generator, dtype=torch.float64, device=device
        )
        rotation, upper = torch.linalg.qr(normal)
        frame = frame @ (rotation * upper.diagonal().sign())
    return frame.to(torch.get_default_dtype() if dtype is None else dtype)
