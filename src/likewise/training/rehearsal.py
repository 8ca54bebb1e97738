"""A few samples through the network before a run, to say how long and how large it will be."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from likewise.data import Images, StreamedImages
from likewise.data.resizing import DETAIL
from likewise.data.source import BrokenImage
from likewise.data.views import Views
from likewise.training.activations import estimate_activations
from likewise.training.estimate import Estimate, estimate_memory
from likewise.training.learner import Learner
from likewise.training.machine import Machine
from likewise.training.module import DRAWN_AT_A_TIME, Optimization

REHEARSED = 16
"""Samples that are looked at; what they take is taken to grow with the batch."""
REHEARSED_ON_GPU = 256
"""Where few samples would leave the device waiting for the host, which a batch does not."""
DECODED = 8
"""Images that are read, where they stream."""
TIMES = range(2, 6)
"""How often a step is timed, the quickest of which counts: the first one also sets things up."""
TIMED_SECONDS = 0.5
"""After which nothing is timed more often than has to be."""


def rehearse(
    learner: Learner,
    views: Views,
    pixels: Tensor,
    optimization: Optimization,
    *,
    images: Images | StreamedImages,
    batch_size: int,
    steps: int,
    machine: Machine,
    device: torch.device,
) -> Estimate:
    """Memory and time of a run, from a few samples of it.

    The network that is run is a copy: nothing of the learner changes. Compilation, which makes
    steps quicker and the first one slower, is not rehearsed.

    Args:
        learner: what will learn.
        views: the augmentation.
        pixels: images of the run, at least two.
        optimization: the optimiser, for what it keeps.
        images: all images, which are decoded in every epoch anew where they stream.
        batch_size: samples of a batch, over all processes.
        steps: of the whole run.
        machine: in which precision, and among how many processes.
        device: where to run.
    """
    share = batch_size // machine.processes
    # In micro-batches the activations of one part are held, whatever the batch.
    held = share if learner.micro_batch is None else learner.micro_batch / views.n_views
    few = pixels[: min(REHEARSED, share)]
    student = copy.deepcopy(learner.student).to(device)
    half = {"32": None, "bf16": torch.bfloat16, "16": torch.float16}[machine.precision]
    activations = estimate_activations(
        student,
        _crops(views, few.to(device)),
        max(1, round(held)),
        samples=len(few),
        autocast=half,
    )
    estimate = estimate_memory(
        learner,
        optimizer=optimization.name,
        bytes_activations=activations,
        bytes_views=bytes_of_views(views, share, drawn=batch_size),
        bytes_data=bytes_on(device, images, machine),
        batch_size=batch_size,
        # A GPU is one process's own; a CPU's memory is that of all processes of the machine.
        processes=machine.devices if device.type == "cpu" else 1,
        device=device,
    )
    if not estimate.fits:
        return estimate
    if device.type == "cuda":
        # No more than what fits, which in micro-batches is a part.
        few = pixels[: min(REHEARSED_ON_GPU, share, max(REHEARSED, round(held)))]
    few = few.to(device)
    for_views = _quickest(lambda: _crops(views, few), device)
    crops = _crops(views, few)
    of_network = _quickest(lambda: _step(student, crops, half), device)
    # A momentum teacher adds a forward to a forward and a backward; parts are embedded twice.
    factor = 1 + (learner.teacher is not None) / 3 + (learner.micro_batch is not None) / 3
    # What is timed has all cores, which processes on a CPU share.
    samples = batch_size // machine.nodes if device.type == "cpu" else share
    of_step = (for_views + of_network * factor) * samples / len(few)
    if isinstance(images, StreamedImages):
        decoding = _decoding_seconds(images) * share
        if machine.workers:
            # Workers decode while the step is computed: the slower of the two is waited for.
            of_step = max(of_step, decoding / machine.workers)
        else:
            of_step += decoding
    return estimate.timed(of_step, steps)


def bytes_of_views(views: Views, samples: int, *, drawn: int) -> int:
    """What a batch takes while its views are made.

    Per sample: the image in bytes, and twice in float32 (as it is, and as the crops read it); for
    each crop size the rows that are resized before the columns are, and the views four times
    (before and after an operation, the mask's other side, and what the network gets). The noise of
    the steps that are drawn together is that of the whole batch.

    Args:
        views: the augmentation.
        samples: of the batch, those of this process.
        drawn: all of them.

    >>> views = Views("none", 32, 1, mean=(0.5,) * 3, std=(0.25,) * 3, canvas=64)
    >>> image, rows, view = 64 * 64, 32 * 64, 32 * 32
    >>> bytes_of_views(views, 1, drawn=1) == 3 * (image * (1 + 2 * 4) + rows * 4 + view * 4 * 4)
    True
    """
    height, width = views.canvas
    image = 3 * height * width * (1 + 2 * 4)
    crops = sum(3 * n * side * 4 * (width + 4 * side) for n, side in views.crops)
    noise = sum(3 * n * side * side * 4 for n, side in views.crops) if views.policy.noise else 0
    return samples * (image + crops) + DRAWN_AT_A_TIME * drawn * noise


def bytes_on(device: torch.device, images: Images | StreamedImages, machine: Machine) -> int:
    """What the images add to the memory of a device. On a CPU this process has them already, and
    every other one of the machine will have its own."""
    if not isinstance(images, Images):
        return 0
    copies = machine.devices - 1 if device.type == "cpu" else 1
    return copies * images.pixels.nbytes


def _crops(views: Views, pixels: Tensor) -> list[Tensor]:
    generator = torch.Generator(pixels.device).manual_seed(0)
    return [
        crop.contiguous(memory_format=torch.channels_last)
        for crop in views(pixels, generator=generator)
    ]


def _decoding_seconds(images: StreamedImages) -> float:
    """Of one image, on one core; those that are broken are decoded by nobody."""
    places = np.unique(np.linspace(0, len(images) - 1, DECODED, dtype=int))
    read = 0
    started = time.perf_counter()
    for place in places.tolist():
        with suppress(BrokenImage):
            images.source.read(place, enough=DETAIL * images.size)
            read += 1
    return (time.perf_counter() - started) / max(1, read)


def _step(student: torch.nn.Module, crops: list[Tensor], half: torch.dtype | None) -> None:
    device = crops[0].device.type
    with torch.autocast(device, half or torch.bfloat16, enabled=half is not None):
        total = torch.stack([student(crop)[1].float().square().mean() for crop in crops]).sum()
    total.backward()


def _quickest(action: Callable[[], object], device: torch.device) -> float:
    seconds: list[float] = []
    for times in TIMES:
        while len(seconds) < times:
            seconds.append(_seconds(action, device))
        if sum(seconds) > TIMED_SECONDS:
            break
    return min(seconds)


def _seconds(action: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    started = time.perf_counter()
    action()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
