"""Train an encoder on cluttered digits without labels, and look at what it has learned.

    python examples/digits.py --out demo

Prints the kNN accuracy of raw pixels, of the untrained and of the trained encoder on digits that
training has not seen, and draws nearest neighbours and the embedding. Labels are used for the
scores and for the colours, and not in training.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.manifold import TSNE

import likewise
from likewise.data import Images, load_images, open_source
from likewise.evaluation import knn_accuracy
from likewise.models import build_encoder
from likewise.runs import Preparation, embed_images

NEIGHBORS = 20


def pixels_of(images: Images) -> torch.Tensor:
    return images.pixels.flatten(1).float() / 255


def rows_of(encoder: torch.nn.Module, images: Images, preparation: Preparation) -> torch.Tensor:
    return embed_images(
        encoder, images, size=preparation.size, mean=preparation.mean, std=preparation.std
    )


def draw_neighbors(path: Path, train: Images, test: Images, spaces: dict[str, tuple]) -> None:
    """Test digits with the six nearest training digits in each space, framed green where right."""
    queries = [int(np.flatnonzero(test.labels == digit)[0]) for digit in range(10)]
    widths = [1.0] + [0.4, *[1.0] * 6] * len(spaces)
    grid = {"width_ratios": widths, "wspace": 0.06, "hspace": 0.06}
    height = 0.62 * len(queries)
    figure, axes = plt.subplots(
        len(queries), len(widths), figsize=(0.62 * sum(widths), height + 0.4), gridspec_kw=grid
    )
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=height / (height + 0.4))
    for axis in axes.flat:
        axis.axis("off")
    for row, query in enumerate(queries):
        axes[row, 0].imshow(test.pixels[query].permute(1, 2, 0))
        for place, (title, (bank, rows)) in enumerate(spaces.items()):
            first = 2 + place * 7
            similarity = torch.nn.functional.cosine_similarity(rows[query][None], bank)
            for column, near in enumerate(similarity.topk(6).indices.tolist()):
                axis = axes[row, first + column]
                axis.imshow(train.pixels[near].permute(1, 2, 0))
                right = train.labels[near] == test.labels[query]
                color = "#2a9d4a" if right else "#c23b3b"
                frame = plt.Rectangle((-0.5, -0.5), 32, 32, fill=False, lw=3, ec=color)
                axis.add_patch(frame)
            if row == 0:
                axes[0, first].set_title(f"nearest by {title}", loc="left", fontsize=10)
    axes[0, 0].set_title("digit", fontsize=10)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def draw_embedding(path: Path, test: Images, spaces: dict[str, torch.Tensor]) -> None:
    """The test digits in two dimensions, coloured by their class."""
    figure, axes = plt.subplots(1, len(spaces), figsize=(4 * len(spaces) + 0.6, 4))
    for axis, (title, rows) in zip(axes, spaces.items(), strict=True):
        flat = TSNE(init="pca", random_state=0, perplexity=30).fit_transform(rows.numpy())
        points = axis.scatter(*flat.T, c=test.labels, cmap="tab10", s=7)
        axis.set(title=title, xticks=[], yticks=[])
    figure.tight_layout(rect=(0, 0, 0.96, 1))
    figure.legend(*points.legend_elements(), loc="center right", frameon=False, title="digit")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"))
    parser.add_argument("--epochs", type=int, default=28)
    given = parser.parse_args()
    run_folder = given.out / "digits"
    shutil.rmtree(run_folder, ignore_errors=True)
    run = likewise.train(
        "digits",
        out=run_folder,
        recipe="simclr",
        objective={"temperature": 0.1},
        projector=[64],
        optimizer="adamw",
        lr=0.01,
        weight_decay=1e-4,
        batch_size=64,
        epochs=given.epochs,
        device="cpu",
        logger=["csv"],
    )
    encoder, preparation = run.encoder()
    untrained = build_encoder(**encoder.config, seed=0).eval()
    train = load_images(open_source("digits"), preparation.size)
    test = load_images(open_source("digits:test"), preparation.size)
    spaces = {
        "raw pixels": (pixels_of(train), pixels_of(test)),
        "untrained encoder": tuple(rows_of(untrained, x, preparation) for x in (train, test)),
        "trained encoder": tuple(rows_of(encoder, x, preparation) for x in (train, test)),
    }
    titles = {}
    for title, (bank, rows) in spaces.items():
        accuracy = knn_accuracy(bank, train.labels, rows, test.labels, k=NEIGHBORS)
        print(f"kNN accuracy, {title:18} {accuracy:6.1%}")
        titles[title] = f"{title} (kNN {accuracy:.0%})"
    shown = {name: spaces[name] for name in ("raw pixels", "trained encoder")}
    draw_neighbors(given.out / "neighbors.png", train, test, shown)
    rows_of_test = {titles[title]: rows for title, (_, rows) in spaces.items()}
    draw_embedding(given.out / "embedding.png", test, rows_of_test)
    print(f"look at {given.out / 'neighbors.png'} and {given.out / 'embedding.png'}")


if __name__ == "__main__":
    main()
