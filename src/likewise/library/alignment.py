r"""How alike two pictures are once one is laid over the other: shifted, turned, zoomed, re-lit.

b(x) is compared with gain * a(W x) + offset, W a similarity transform (zoom, angle, shift), found
by Gauss-Newton steps on the squared difference (Lucas and Kanade 1981), from a first guess. What is
compared are small grey pictures; all pairs of a batch move at once.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

STEPS = 6
LARGEST_STEP = 0.1
LARGEST = (0.25, 0.2, 0.2, 0.2)
"""Bounds of log zoom, angle (radians) and shift (halves of the picture)."""


def transform(moves: Tensor) -> Tensor:
    """Moves (m, 4) of log zoom, angle and shift as matrices (m, 2, 3)."""
    zoom, angle = moves[:, 0].exp(), moves[:, 1]
    cosine, sine = zoom * angle.cos(), zoom * angle.sin()
    first = torch.stack([cosine, -sine, moves[:, 2]], dim=1)
    second = torch.stack([sine, cosine, moves[:, 3]], dim=1)
    return torch.stack([first, second], dim=1)


def moved(pictures: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
    """Pictures (m, c, s, s) seen through moves, and where (m, s, s) that is inside of them
    and of the inscribed circle."""
    shape = [len(moves), pictures.shape[1], *pictures.shape[2:]]
    grid = F.affine_grid(transform(moves), shape, align_corners=False)
    seen = F.grid_sample(pictures, grid, padding_mode="border", align_corners=False)
    inside = (grid.abs() <= 1).all(dim=-1) & disc(pictures.shape[-1])
    return seen, inside.to(pictures.dtype)


def disc(size: int) -> Tensor:
    """(size, size) the inscribed circle: turning a picture leaves it full, and corners empty."""
    line = torch.linspace(-1 + 1 / size, 1 - 1 / size, size)
    return line[:, None].square() + line.square() <= 1


def align(a: Tensor, b: Tensor, start: Tensor, steps: int = STEPS) -> Tensor:
    """Moves (m, 4) under which a(W x) comes closest to b(x), from a first guess.

    Args:
        a, b: grey pictures (m, 1, s, s).
        start: (m, 4).
        steps: of Gauss and Newton.
    """
    size = a.shape[-1]
    line = torch.linspace(-1 + 1 / size, 1 - 1 / size, size)
    y, x = torch.meshgrid(line, line, indexing="ij")
    layers = torch.cat([a, *_slopes(a)], dim=1)
    moves, target = start.clone(), b.flatten(1)
    limits = torch.tensor(LARGEST)
    for _ in range(steps):
        seen, inside = moved(layers, moves)
        where = inside.flatten(1)
        value, slope_x, slope_y = seen.flatten(2).mul_(where[:, None]).unbind(dim=1)
        cosine, sine = transform(moves)[:, :, 0].unbind(dim=1)
        at_x = cosine[:, None] * x.flatten() - sine[:, None] * y.flatten()
        at_y = sine[:, None] * x.flatten() + cosine[:, None] * y.flatten()
        light = torch.stack([value, where], dim=1)
        wanted = target * where
        gain = _solve(light, wanted)
        rest = wanted - (gain[:, None] @ light)[:, 0]
        # By the change of zoom, angle and shift; and of light.
        turn = [slope_x * at_x + slope_y * at_y, slope_y * at_x - slope_x * at_y, slope_x, slope_y]
        jacobian = torch.stack([*turn, value, where], dim=1)
        jacobian[:, :4] *= gain[:, :1, None]
        step = _solve(jacobian, rest)[:, :4].clamp(-LARGEST_STEP, LARGEST_STEP)
        moves = torch.maximum(torch.minimum(moves + step, limits), -limits)
    return moves


def correlation(a: Tensor, b: Tensor, moves: Tensor) -> Tensor:
    """(m,) Pearson's correlation of a(W x) and b(x) inside of both; 0 where that is too little."""
    seen, inside = moved(a, moves)
    where, first, second = inside.flatten(1), seen.flatten(1), b.flatten(1)
    count = where.sum(dim=1, keepdim=True).clamp_min(1)
    first = (first - (first * where).sum(dim=1, keepdim=True) / count) * where
    second = (second - (second * where).sum(dim=1, keepdim=True) / count) * where
    lengths = first.norm(dim=1) * second.norm(dim=1)
    flat = lengths < 1e-4 * count[:, 0]
    found = (first * second).sum(dim=1) / lengths.clamp_min(1e-6)
    # The circle is 0.785 of the square.
    return torch.where(flat | (where.mean(dim=1) < 0.5), 0.0, found)


def blurred(pictures: Tensor, width: int = 3) -> Tensor:
    """The mean over squares of `width` pixels."""
    edge = width // 2
    return F.avg_pool2d(F.pad(pictures, (edge,) * 4, mode="replicate"), width, 1)


def details(pictures: Tensor) -> Tensor:
    """What is left when squares of five pixels are evened out: edges and texture."""
    return pictures - blurred(pictures, 5)


def guess(zoom: float, degrees: float, right: float, down: float) -> tuple[float, ...]:
    """A first guess as a move."""
    return (math.log(zoom), math.radians(degrees), right, down)


def _slopes(pictures: Tensor) -> tuple[Tensor, Tensor]:
    size = pictures.shape[-1]
    wide = F.pad(pictures, (1, 1, 0, 0), mode="replicate")
    tall = F.pad(pictures, (0, 0, 1, 1), mode="replicate")
    # A step of one pixel is 2 / size of the coordinates that grids are in.
    return (wide[..., 2:] - wide[..., :-2]) * (size / 4), (tall[..., 2:, :] - tall[..., :-2, :]) * (
        size / 4
    )


def _solve(lines: Tensor, target: Tensor) -> Tensor:
    """Least squares (m, p) of lines (m, p, k), damped a little."""
    square = lines @ lines.transpose(1, 2)
    damped = square + torch.diag_embed(1e-3 * square.diagonal(dim1=1, dim2=2) + 1e-5)
    return torch.linalg.solve(damped, lines @ target[..., None])[..., 0]
