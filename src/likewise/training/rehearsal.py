"""A few samples through the network before a run, to say how long and how large it will be."""

from __future__ import annotations

import copy
import time

import torch
from torch import Tensor

from likewise.data.views import Views
from likewise.training.activations import estimate_activations
from likewise.training.estimate import Estimate, estimate_memory
from likewise.training.learner import Learner
from likewise.training.machine import Machine
from likewise.training.module import Optimization

REHEARSED = 16
"""Samples that are looked at; what they take is taken to grow with the batch."""
TIMES = 2
"""Steps that are timed: the first one also sets things up."""


def rehearse(
    learner: Learner,
    views: Views,
    pixels: Tensor,
    optimization: Optimization,
    *,
    batch_size: int,
    steps: int,
    bytes_data: int,
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
        batch_size: samples of a batch, over all processes.
        steps: of the whole run.
        bytes_data: images that will be put on the device.
        machine: in which precision, and among how many processes.
        device: where to run.
    """
    share = batch_size // machine.processes
    # In micro-batches the activations of one part are held, whatever the batch.
    held = share if learner.micro_batch is None else learner.micro_batch / views.n_views
    few = pixels[: min(REHEARSED, share)]
    student = copy.deepcopy(learner.student).to(device)
    crops = [
        crop.contiguous(memory_format=torch.channels_last)
        for crop in views(few.to(device), generator=torch.Generator(device).manual_seed(0))
    ]
    half = {"32": None, "bf16": torch.bfloat16, "16": torch.float16}[machine.precision]
    activations = estimate_activations(
        student, crops, max(1, round(held)), samples=len(few), autocast=half
    )
    estimate = estimate_memory(
        learner,
        optimizer=optimization.name,
        bytes_activations=activations,
        bytes_data=bytes_data,
        batch_size=batch_size,
        device=device,
    )
    if not estimate.fits:
        return estimate
    seconds = min(_seconds(student, crops, half, device) for _ in range(TIMES))
    # A momentum teacher adds a forward to a forward and a backward; parts are embedded twice.
    factor = 1 + (learner.teacher is not None) / 3 + (learner.micro_batch is not None) / 3
    return estimate.timed(seconds * factor * share / len(few), steps)


def _seconds(
    student: torch.nn.Module, crops: list[Tensor], half: torch.dtype | None, device: torch.device
) -> float:
    _wait(device)
    started = time.perf_counter()
    with torch.autocast(device.type, half or torch.bfloat16, enabled=half is not None):
        total = torch.stack([student(crop)[1].float().square().mean() for crop in crops]).sum()
    total.backward()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
