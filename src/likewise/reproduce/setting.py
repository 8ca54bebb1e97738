"""At what size a reproduction that trains is run: digits on a CPU, or CIFAR-10 on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from likewise.data import Images, channel_statistics, load_images, open_source
from likewise.reproduce.plain import plain_digits

Split = Literal["train", "test"]

VEHICLES = ("airplane", "automobile", "ship", "truck")
CIFAR_10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
LOOPED = (0, 6, 8, 9)
"""Digits that are written with a closed loop: the coarse label of the built-in data."""


@dataclass(frozen=True)
class Setting:
    """Data, encoder and length of the trainings behind a reproduction.

    Args:
        name: "fast" or "full", as it stands in the results.
        data: "digits", or a folder with train.parquet and test.parquet (CIFAR-10).
        size: pixels a side.
        encoder: of :func:`likewise.models.build_encoder`.
        epochs: of an ordinary training; shorter ones are shares of it.
        batch_size: samples a step.
        wide: hidden and output width of the heads that papers make 2048 wide.
        linear: output width of a linear projector.
        trials: seeds, unless told otherwise.
        samples: at most so many training images; None for all.
        device: "cpu" or "cuda".
    """

    name: str = "fast"
    data: str = "digits"
    size: int = 8
    encoder: str = "tiny"
    epochs: int = 30
    batch_size: int = 88
    wide: int = 128
    linear: int = 32
    trials: int = 2
    samples: int | None = None
    device: str = "cpu"

    @property
    def is_digits(self) -> bool:
        """Whether the data are the built-in ones, on which nothing may be mirrored."""
        return self.data == "digits"

    def part(self, share: float) -> int:
        """A share of the epochs, at least 1.

        >>> Setting(epochs=20).part(0.5)
        10
        """
        return max(1, round(share * self.epochs))

    def describe(self) -> dict[str, Any]:
        """What a reader needs in order to repeat it."""
        data = "built-in digits" if self.is_digits else "CIFAR-10 (JPEG copy)"
        return {
            "data": f"{data}, {self.size} x {self.size} pixels",
            **({"training images": self.samples} if self.samples else {}),
            "encoder": self.encoder,
            "epochs": self.epochs,
            "batch": self.batch_size,
        }


FAST = Setting()
FULL = Setting(
    name="full",
    size=32,
    encoder="resnet18",
    epochs=100,
    batch_size=512,
    wide=2048,
    linear=128,
    trials=1,
    device="cuda",
)


def full_setting(data: Path | None, *, device: str = "cuda", **changes: Any) -> Setting:
    """The full setting on a copy of CIFAR-10, or an error that says what is missing.

    Args:
        data: a folder with train.parquet and test.parquet, or the former file.
        device: "cuda", or "cpu" for those who have days.
        **changes: other fields of :class:`Setting`.
    """
    if data is None:
        raise ValueError("--full needs --data: give the folder of CIFAR-10's Parquet files")
    folder = data.parent if data.name == "train.parquet" else data
    for split in ("train", "test"):
        if not (folder / f"{split}.parquet").is_file():
            raise ValueError(
                f"data is {data}: there is no {split}.parquet in {folder}; give a folder with "
                "train.parquet and test.parquet (columns img and label, as Hugging Face has them)"
            )
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--full trains on a GPU, and there is none here: give --device cpu")
    return replace(FULL, data=str(folder), device=device, **changes)


@dataclass(frozen=True)
class Pictures:
    """The images of a setting, with labels, coarse labels and channel statistics."""

    train: Images
    test: Images
    mean: tuple[float, ...]
    std: tuple[float, ...]
    coarse: np.ndarray
    """The coarse class of every class."""

    def split(self, name: Split) -> Images:
        """The training or the test images."""
        return self.train if name == "train" else self.test

    def labels(self, name: Split = "train") -> np.ndarray:
        """Class indices."""
        labels = self.split(name).labels
        assert labels is not None
        return labels


@lru_cache(maxsize=2)
def pictures(setting: Setting) -> Pictures:
    """The images of a setting, on its device.

    >>> found = pictures(Setting(samples=100))
    >>> found.train.pixels.shape, found.coarse[[0, 1, 8]].tolist()
    (torch.Size([100, 3, 8, 8]), [1, 0, 1])
    """
    if setting.is_digits:
        train, test = (
            load_images(plain_digits(split, size=setting.size), setting.size)
            for split in ("train", "test")
        )
        coarse = np.isin(np.arange(10), LOOPED).astype(np.int64)
    else:
        train, test = (
            load_images(open_source(f"{setting.data}/{split}.parquet"), setting.size)
            for split in ("train", "test")
        )
        names = [str(name) for name in train.class_names or CIFAR_10]
        if train.labels is None or test.labels is None:
            raise ValueError(f"{setting.data} has no labels: give CIFAR-10 with a column label")
        names = names if set(VEHICLES) <= set(names) else [*CIFAR_10]
        coarse = np.isin(names, VEHICLES).astype(np.int64)
    if setting.samples is not None and setting.samples < len(train):
        order = np.random.default_rng(0).permutation(len(train))[: setting.samples]
        train = train.subset(np.sort(order))
    mean, std = channel_statistics(train.pixels[:4096])
    device = setting.device
    return Pictures(train.to(device), test.to(device), mean, std, coarse)
