"""Before a long run: how much memory and time it will take, and whether that is there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from likewise.data.available import available_memory
from likewise.data.memory import in_words

MARGIN = 0.9
"""Of what is free, how much may be planned with: the rest is for buffers that come and go."""

STATES = {"sgd": 1, "lars": 1, "adamw": 2}
"""How many numbers an optimiser keeps for every parameter."""


@dataclass(frozen=True)
class Estimate:
    """What a run will take, in bytes and seconds."""

    parameters: int
    """Numbers that are learned."""
    bytes_model: int
    """Weights, gradients, the optimiser's state, and the teacher's weights."""
    bytes_activations: int
    """What the forward keeps for the backward, for one batch."""
    bytes_data: int
    """Images that are held on the device."""
    bytes_available: int | None
    """What is free on the device; None: the system does not say."""
    batch_size: int | None = None
    """The samples that `bytes_activations` is for."""
    device: str = "cpu"
    """Where the run computes."""
    bytes_views: int = 0
    """A batch's images and views while the views are made."""
    processes: int = 1
    """How many processes share what is free, each with a model and a part of the batch."""
    seconds_per_step: float | None = None
    """Measured by timing a few steps."""
    seconds_total: float | None = None
    """The same times the number of steps."""

    @property
    def bytes_total(self) -> int:
        """All of it."""
        of_batch = self.bytes_activations + self.bytes_views
        return self.processes * (self.bytes_model + of_batch) + self.bytes_data

    @property
    def fits(self) -> bool:
        """Whether it takes at most 90 % of what is free."""
        return self.bytes_available is None or self.bytes_total <= MARGIN * self.bytes_available

    @property
    def largest_batch(self) -> int | None:
        """The batch that would fit with the same model and data (0: none); None: not known."""
        if not self.batch_size or not self.bytes_activations or self.bytes_available is None:
            return None
        left = MARGIN * self.bytes_available - self.processes * self.bytes_model - self.bytes_data
        of_batch = self.processes * (self.bytes_activations + self.bytes_views)
        return max(0, int(left * self.batch_size / of_batch))

    def timed(self, seconds_per_step: float, steps: int) -> Estimate:
        """The same with the time, from the seconds that a step took and the steps to go."""
        return replace(
            self, seconds_per_step=seconds_per_step, seconds_total=seconds_per_step * steps
        )

    def text(self) -> str:
        """All of this in a sentence or two; where it does not fit, with what would help."""
        parts = {
            "model": self.bytes_model,
            "activations": self.bytes_activations,
            "views": self.bytes_views,
            "images": self.bytes_data,
        }
        if self.processes > 1:
            parts = {
                f"{self.processes} x {name}" if name != "images" else name: size
                for name, size in parts.items()
            }
        listed = ", ".join(f"{name} {in_words(size)}" for name, size in parts.items() if size)
        free = ""
        if self.bytes_available is not None:
            free = f" of {in_words(self.bytes_available)} free on {self.device}"
        text = (
            f"{_counted(self.parameters)} parameters, about {in_words(self.bytes_total)}{free} "
            f"({listed})"
        )
        if self.seconds_per_step is not None and self.seconds_total is not None:
            whole = in_time(self.seconds_total)
            about = "" if self.seconds_total < 1 else "about "
            text += f"; {_step(self.seconds_per_step)} a step, {about}{whole} in all"
        return text + "." if self.fits else f"{text}. This will not fit: {self.advice()}."

    def advice(self) -> str:
        """What makes a run smaller, with what helps most in front."""
        batch = "give a smaller batch_size"
        if self.largest_batch:
            batch += f" (about {_rounded_down(self.largest_batch):,} would fit)"
        activations = [batch, "embed it in parts with micro_batch", "use precision bf16"]
        stream = "stream the images from disk with stream=True"
        model = self.processes * self.bytes_model
        if self.bytes_available is not None and model > MARGIN * self.bytes_available:
            return "the model alone is too large; give a smaller encoder, or a device with more"
        if self.bytes_views > self.bytes_activations + self.bytes_data:
            ways = [batch, "keep less of every image with canvas"]
        elif not self.bytes_data:
            ways = activations
        elif self.bytes_data > self.bytes_activations:
            ways = [stream, *activations]
        else:
            ways = [*activations, stream]
        return ", ".join(ways[:-1]) + ", or " + ways[-1]


def estimate_memory(
    module: nn.Module,
    *,
    optimizer: str = "sgd",
    bytes_activations: int = 0,
    bytes_views: int = 0,
    bytes_data: int = 0,
    batch_size: int | None = None,
    processes: int = 1,
    device: torch.device | str = "cpu",
) -> Estimate:
    """The memory of a run, before it starts.

    Weights of the module (and of what does not learn in it, such as a teacher) once, and for what
    learns the gradient and the optimiser's state as well.

    Args:
        module: all that is trained.
        optimizer: "sgd" and "lars" keep one number for every parameter, "adamw" two.
        bytes_activations: of one batch, from
            :func:`~likewise.training.activations.estimate_activations`.
        bytes_views: of one batch, while views are made.
        bytes_data: images that are to be put on the device.
        batch_size: the samples in that batch.
        processes: how many share the device's memory.
        device: where the run computes.

    >>> estimate = estimate_memory(nn.Linear(1000, 1000), optimizer="adamw")
    >>> estimate.parameters, estimate.bytes_model == 4 * 4 * 1_001_000
    (1001000, True)
    """
    if optimizer not in STATES:
        raise ValueError(f"optimizer is {optimizer!r}: give one of {', '.join(STATES)}")
    learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
    learned_bytes = sum(_size(parameter) for parameter in learned)
    held = [*module.parameters(), *module.buffers()]
    # The same tensor under two names is there once.
    weights = sum({id(tensor): _size(tensor) for tensor in held}.values())
    return Estimate(
        parameters=sum(parameter.numel() for parameter in learned),
        bytes_model=weights + (1 + STATES[optimizer]) * learned_bytes,
        bytes_activations=bytes_activations,
        bytes_views=bytes_views,
        processes=processes,
        bytes_data=bytes_data,
        bytes_available=available_memory(device),
        batch_size=batch_size,
        device=str(device),
    )


# --- words ----------------------------------------------------------------------------------


def in_time(seconds: float) -> str:
    """Seconds for a reader.

    >>> in_time(0.2), in_time(5.2), in_time(90), in_time(4000), in_time(200_000)
    ('under a second', '5 s', '1 min 30 s', '1 h 6 min', '2 d 7 h')
    """
    if seconds < 1:
        return "under a second"
    whole = round(seconds)
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {name}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def _step(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _counted(number: int) -> str:
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:.1f} {name}"
    return f"{number:,}"


def _rounded_down(number: int) -> int:
    """A power of two, or one and a half: numbers that batches have."""
    power = 1 << (number.bit_length() - 1)
    return power + power // 2 if number >= power + power // 2 else power


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
