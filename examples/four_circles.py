"""Four circles, four graphs, one objective: what you know decides what is learned.

    python examples/four_circles.py --out demo

A small network embeds points of four concentric circles. Only the similarity graph changes: views
of a point, 200 yes/no answers, ten labels a circle, all labels. The error is that of a linear
probe on points that were not seen.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from likewise import Graph
from likewise.objectives import NTXent

CIRCLES, POINTS, STEPS, BATCH = 4, 400, 300, 200
SURFACE, INK = "#ffffff", "#222222"
COLORS = ["#3b6fb6", "#d1495b", "#3a8f5c", "#e0a030"]


def circles(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points on circles of radius 1 to 4 with a little noise, and which circle."""
    labels = torch.arange(n) % CIRCLES
    angle = 2 * torch.pi * torch.rand(n, generator=generator)
    points = (1.0 + labels)[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    return points + 0.1 * torch.randn(n, 2, generator=generator), labels


@dataclass
class Knowledge:
    title: str
    graph: Graph
    """Over the samples; a batch takes its part and lifts it to views."""


def knowledge(labels: Tensor, generator: torch.Generator) -> list[Knowledge]:
    n = len(labels)
    itself = Graph.identity(n)
    pairs = torch.randint(n, (200, 2), generator=generator)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].sort(dim=1).values.unique(dim=0)
    answers = torch.where(labels[pairs[:, 0]] == labels[pairs[:, 1]], 1.0, -1.0)
    some = torch.where(torch.arange(n) < 10 * CIRCLES, labels, -1)
    return [
        Knowledge("views of a point", itself),
        Knowledge(
            f"{len(pairs)} yes/no answers",
            itself + Graph.from_edges(pairs[:, 0], pairs[:, 1], answers, n=n),
        ),
        Knowledge("10 labels a circle", itself + Graph.from_labels(some)),
        Knowledge("all labels", itself + 0.2 * Graph.from_labels(labels)),
    ]


class Encoder(nn.Module):
    """Random Fourier features and two layers: enough to tell circles apart."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", 0.8 * torch.randn(2, 64))
        self.layers = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))

    def forward(self, x: Tensor) -> Tensor:
        phase = x @ self.frequencies
        return self.layers(torch.cat([phase.sin(), phase.cos()], dim=1))


def train(points: Tensor, graph: Graph, seed: int) -> Encoder:
    torch.manual_seed(seed)
    encoder, objective = Encoder(), NTXent(temperature=0.3)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    for _ in range(STEPS):
        rows = torch.randperm(len(points))[:BATCH]
        # Two views of every point: itself, moved a little, twice.
        views = points[rows].repeat_interleave(2, dim=0) + 0.2 * torch.randn(2 * BATCH, 2)
        loss = objective(encoder(views), graph.subset(rows).views(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return encoder


@torch.no_grad()
def evaluate(encoder: Encoder, train_set: tuple, test_set: tuple) -> tuple[float, Tensor]:
    """The error of a linear probe on unseen points, and their directions."""
    fitted, unseen = (nn.functional.normalize(encoder(x), dim=1) for x, _ in (train_set, test_set))
    probe = LogisticRegression(max_iter=1000).fit(fitted.numpy(), train_set[1].numpy())
    return 1 - probe.score(unseen.numpy(), test_set[1].numpy()), unseen


def draw(rows: list[tuple[Knowledge, float, Tensor]], labels: Tensor, seen: Tensor, out: Path):
    figure, axes = plt.subplots(2, len(rows), figsize=(3.1 * len(rows), 6.4), facecolor=SURFACE)
    order = seen.argsort(stable=True)
    for column, (known, error, unseen) in enumerate(rows):
        matrix = known.graph.block(order)
        top, bottom = axes[:, column]
        top.imshow(matrix.sign(), cmap="RdBu", vmin=-1.6, vmax=1.6, interpolation="nearest")
        top.set_title(known.title, fontsize=12, color=INK)
        centred = unseen - unseen.mean(dim=0)
        flat = centred @ torch.linalg.svd(centred, full_matrices=False).Vh[:2].T
        for circle in range(CIRCLES):
            mine = flat[labels == circle]
            bottom.scatter(
                mine[:, 0], mine[:, 1], s=9, color=COLORS[circle], label=f"radius {circle + 1}"
            )
        if column == 0:
            figure.legend(
                *bottom.get_legend_handles_labels(),
                loc="lower center",
                ncols=CIRCLES,
                markerscale=2,
                frameon=False,
            )
        bottom.set_xlabel(f"linear probe: {100 * error:.1f} % error", fontsize=11, color=INK)
        for axis in (top, bottom):
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color("#bbbbbb")
    axes[0, 0].set_ylabel("the graph, sorted by circle", color=INK)
    axes[1, 0].set_ylabel("embedding of unseen points", color=INK)
    figure.suptitle("Same data, same objective: only the graph changes", fontsize=14, color=INK)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    out.mkdir(parents=True, exist_ok=True)
    aside = out / "four_circles.partial.png"
    figure.savefig(aside, dpi=130)
    aside.replace(out / "four_circles.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of the picture")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(arguments.seed)
    train_set, test_set = circles(POINTS, generator), circles(400, generator)
    rows = []
    print(f"{POINTS} points on {CIRCLES} circles, {STEPS} steps, NT-Xent")
    print(f"{'what is known':24s} {'probe error':>12s} {'seconds':>9s}")
    for known in knowledge(train_set[1], generator):
        start = time.perf_counter()
        encoder = train(train_set[0], known.graph, arguments.seed)
        error, unseen = evaluate(encoder, train_set, test_set)
        rows.append((known, error, unseen))
        seconds = time.perf_counter() - start
        print(f"{known.title:24s} {100 * error:11.1f}% {seconds:9.1f}", flush=True)
    draw(rows, test_set[1], train_set[1], arguments.out)
    print(f"picture: {arguments.out / 'four_circles.png'}")


if __name__ == "__main__":
    main()
