"""Before a training: what a rehearsal counts and times."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from likewise.data import StreamedImages, load_images, open_source
from likewise.data.source import BrokenImage
from likewise.data.views import Views
from likewise.models import build_encoder
from likewise.training import Learner, recipe, rehearsal
from likewise.training.estimate import Estimate
from likewise.training.machine import Machine
from likewise.training.module import DRAWN_AT_A_TIME, Optimization
from likewise.training.rehearsal import bytes_of_views, bytes_on
from tests.training.driver import pictures
from tests.training.test_prepared import prepared

PIXELS = torch.from_numpy(pictures(40)).permute(0, 3, 1, 2).contiguous()
IMAGES = load_images(open_source(pictures(40)), 16)


def rehearsed(**changes: Any) -> Estimate:
    arguments: dict[str, Any] = {
        "learner": Learner(recipe("simclr"), build_encoder("tiny"), projector=[16, 8]),
        "views": Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3),
        "pixels": PIXELS,
        "optimization": Optimization("sgd", lr=0.1, weight_decay=0.0, epochs=1, warmup_epochs=0),
        "images": IMAGES,
        "batch_size": 64,
        "steps": 10,
        "machine": Machine(),
        "device": torch.device("cpu"),
    }
    return rehearsal.rehearse(**{**arguments, **changes})


@pytest.mark.parametrize(("devices", "name"), [(1, "sgd"), (2, "adamw")])
def test_a_rehearsal_is_of_one_process_and_its_optimiser(
    devices: int, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "_seconds", lambda *_: 0.25)
    learner = Learner(recipe("simclr"), build_encoder("tiny"), projector=[16, 8])
    settings = Optimization(name, lr=0.1, weight_decay=0.0, epochs=1, warmup_epochs=0)
    found = rehearsed(learner=learner, optimization=settings, machine=Machine(devices=devices))
    learned = 4 * sum(p.numel() for p in learner.parameters())
    buffers = sum(b.nbytes for b in learner.buffers())
    assert found.bytes_model == (4 if name == "adamw" else 3) * learned + buffers
    # 16 samples took a quarter of a second for their views, and one for the network, on all cores:
    # processes have a share of the 64, and of the cores.
    assert found.seconds_per_step == pytest.approx(0.5 * 64 / 16)
    assert found.seconds_total == pytest.approx(10 * found.seconds_per_step)


def test_processes_on_a_cpu_share_its_memory_and_have_images_of_their_own() -> None:
    one, three = rehearsed(batch_size=66), rehearsed(batch_size=66, machine=Machine(devices=3))
    assert (one.bytes_data, three.bytes_data) == (0, 2 * IMAGES.pixels.nbytes)
    of_batch = three.bytes_activations + three.bytes_views
    assert three.bytes_total == 3 * (one.bytes_model + of_batch) + three.bytes_data
    # A third of the batch each.
    assert 3 * of_batch == pytest.approx(one.bytes_activations + one.bytes_views, rel=0.01)
    assert "3 x model" in three.text() and "x" not in one.text().split("(")[1]


def test_making_views_of_large_canvases_takes_memory() -> None:
    """What is live at once, seen from below every operation, and what is said."""
    wide = Views("simclr", 16, 2, mean=(0.5,) * 3, std=(0.25,) * 3, canvas=256)
    pixels = torch.randint(0, 256, (8, 3, 256, 256), dtype=torch.uint8)
    found = rehearsed(views=wide, pixels=pixels, batch_size=8)
    small = rehearsed(batch_size=8)
    with Live() as live:
        wide(pixels, generator=torch.Generator().manual_seed(0))
    taken = live.most + pixels.nbytes
    assert 0.8 * taken < found.bytes_views < 1.5 * taken
    assert found.bytes_views > 20 * small.bytes_views
    assert found.bytes_activations == small.bytes_activations
    crowded = replace(found, bytes_available=found.bytes_model + found.bytes_views)
    assert "keep less of every image with canvas" in crowded.text()


class Live(TorchDispatchMode):
    """The most bytes that results of operations held at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.watch(tensor.untyped_storage())
        return result

    def watch(self, storage: torch.UntypedStorage) -> None:
        place, size = storage._cdata, storage.nbytes()
        if place not in self.seen:
            self.seen.add(place)
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.let_go, place, size)

    def let_go(self, place: int, size: int) -> None:
        self.seen.discard(place)
        self.now -= size


@pytest.mark.parametrize(("workers", "seconds"), [(0, 64 * 0.1 + 2.0), (2, 64 * 0.1 / 2)])
def test_decoding_is_waited_for_where_images_stream(
    workers: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "_seconds", lambda *_: 0.25)
    monkeypatch.setattr(rehearsal, "_decoding_seconds", lambda _: 0.1)
    images = StreamedImages(open_source(pictures(40)), 16)
    found = rehearsed(images=images, machine=Machine(workers=workers))
    assert found.seconds_per_step == pytest.approx(seconds)


def test_images_are_decoded_to_see_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken ones tell nothing, wherever they lie."""
    images = StreamedImages(open_source(pictures(40)), 16)
    read = type(images.source).read
    asked: list[int] = []

    def slow(self: Any, index: int, **options: Any) -> Any:
        asked.append(index)
        if index < 20:
            raise BrokenImage(str(index), "half an image")
        time.sleep(0.01)
        return read(self, index, **options)

    monkeypatch.setattr(type(images.source), "read", slow)
    assert rehearsal._decoding_seconds(images) >= 0.01
    assert asked == [0, 5, 11, 16, 22, 27, 33, 39]
    monkeypatch.setattr(type(images.source), "read", broken)
    assert rehearsal._decoding_seconds(images) >= 0


def broken(self: Any, index: int, **options: Any) -> Any:
    raise BrokenImage(str(index), "half an image")


def test_decoding_is_of_the_own_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_seconds", lambda *_: 0.0)
    monkeypatch.setattr(rehearsal, "_decoding_seconds", lambda _: 0.1)
    images = StreamedImages(open_source(pictures(40)), 16)
    found = rehearsed(images=images, machine=Machine(devices=2, workers=0))
    assert found.seconds_per_step == pytest.approx(32 * 0.1)


def test_a_teacher_and_parts_cost_a_third_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_seconds", lambda *_: 0.3)
    for name, part, expected in (("simclr", None, 0.6), ("byol", None, 0.7), ("byol", 8, 0.8)):
        learner = Learner(recipe(name), build_encoder("tiny"), projector=[16, 8], micro_batch=part)
        assert rehearsed(learner=learner, batch_size=16).seconds_per_step == pytest.approx(expected)


def test_the_noise_of_a_whole_batch_lies_ready() -> None:
    statistics: dict[str, Any] = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
    quiet, noisy = (
        Views({"base": "none", "noise": chance}, 16, 2, **statistics) for chance in (0.0, 1.0)
    )
    drawn = noisy.draw(DRAWN_AT_A_TIME * 12, generator=torch.Generator().manual_seed(0))
    found = bytes_of_views(noisy, 4, drawn=12) - bytes_of_views(quiet, 4, drawn=12)
    assert found == sum(group["noise"].nbytes for group in drawn.groups)


def test_machines_have_memory_of_their_own_and_so_have_gpus() -> None:
    assert rehearsed(machine=Machine(devices=2, nodes=2)).processes == 2
    size, four = IMAGES.pixels.nbytes, Machine(devices=4)
    assert bytes_on(torch.device("cuda"), IMAGES, four) == size
    assert bytes_on(torch.device("cpu"), IMAGES, four) == 3 * size


def test_the_rehearsal_of_parts_counts_a_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[int] = []
    original = rehearsal.estimate_activations

    def estimate(module: Any, crops: Any, batch: int, **options: Any) -> int:
        asked.append(batch)
        return original(module, crops, batch, **options)

    monkeypatch.setattr(rehearsal, "estimate_activations", estimate)
    for place, part in enumerate((None, 8)):
        prepared(pictures(40), tmp_path / str(place), batch_size=32, micro_batch=part)
    assert asked == [32, 4]  # samples: 8 views are those of four
