"""What a forward keeps for its backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn


def estimate_activations(
    module: nn.Module,
    example_input: Tensor | Sequence[Tensor],
    batch_size: int,
    *,
    samples: int | None = None,
    autocast: torch.dtype | None = None,
) -> int:
    """The bytes that a forward of `batch_size` samples keeps for its backward.

    Measured with the example and with the example twice, and extrapolated along the line through
    both: what is kept grows with the rows. Storages count once, parameters not at all. Buffers,
    the mode and the random state are as before.

    Args:
        module: what is run.
        example_input: rows of a few samples, at least 2; several tensors (crops of several sizes)
            go through the module one by one, and all are kept.
        batch_size: the samples of a batch on one device.
        samples: how many samples the example holds (default: its rows).
        autocast: run in this precision, as the training will.

    >>> network = nn.Sequential(nn.Linear(10, 100), nn.ReLU(), nn.Linear(100, 5))
    >>> estimate_activations(network, torch.zeros(2, 10), 1000)  # 1000 x (10 + 100) x 4 bytes
    440000
    """
    inputs = [example_input] if isinstance(example_input, Tensor) else list(example_input)
    samples = len(inputs[0]) if samples is None and inputs else samples
    if not inputs or not samples or samples < 2:
        raise ValueError(
            f"example_input holds {samples or 0} samples: give at least 2 (batch norm needs them)"
        )
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size!r}: give a whole number, 1 or more")
    once = _kept(module, inputs, autocast)
    twice = _kept(module, [torch.cat([rows, rows]) for rows in inputs], autocast)
    slope = (twice - once) / samples
    return max(0, round(once + slope * (batch_size - samples)))


def _kept(module: nn.Module, inputs: list[Tensor], autocast: torch.dtype | None) -> int:
    """Bytes of the storages that autograd saves, those of the module itself left out."""
    own = {
        tensor.untyped_storage().data_ptr()
        for tensor in (*module.parameters(), *module.buffers())
        if tensor.layout == torch.strided
    }
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: Tensor) -> None:
        # Nothing is saved in the tensor's place: its storage is counted. The tensor itself would
        # leak where it is the output of a step: it holds that step, which would hold it.
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                # Kept until the end: a place that is freed is given to another tensor.
                storages[storage.data_ptr()] = storage

    device = inputs[0].device
    cast: Any = nullcontext()
    if autocast is not None:
        cast = torch.autocast(device.type, dtype=autocast)
    with (
        _unchanged(module, device),
        torch.enable_grad(),
        cast,
        torch.autograd.graph.saved_tensors_hooks(pack, _no_backward),
    ):
        outputs = [module(rows) for rows in inputs]
    del outputs
    return sum(storage.nbytes() for storage in storages.values())


def _no_backward(_: None) -> Tensor:
    raise RuntimeError("a forward whose activations are counted has no backward")


@contextmanager
def _unchanged(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Train for a moment: buffers (batch norm), modes and random numbers are put back."""
    modes = {part: part.training for part in module.modules()}
    buffers = [
        (part, name, buffer, buffer.clone())
        for part in module.modules()
        for name, buffer in part._buffers.items()
        if buffer is not None
    ]
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        module.train()
        try:
            yield
        finally:
            with torch.no_grad():
                for part, name, buffer, value in buffers:
                    part._buffers[name] = buffer.copy_(value)
            for part, mode in modes.items():
                part.training = mode
