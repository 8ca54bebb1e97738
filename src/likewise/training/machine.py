"""What a training runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Precision = Literal["32", "bf16", "16"]


@dataclass(frozen=True)
class Machine:
    """What a training runs on.

    Args:
        device: "cpu" or "cuda".
        devices: how many processes of a node, one a device.
        nodes: how many machines; start the command on each (docs/training.md).
        precision: "bf16" and "16" keep weights and all that objectives compute in float32; on a
            GPU, factors of products in float32 are rounded to TF32 while training, but for
            similarities.
        compile: compile the networks and the augmentation.
        workers: processes that decode images which do not fit in memory.
        deterministic: refuse operations whose result differs from run to run.
    """

    device: Literal["cpu", "cuda"] = "cpu"
    devices: int = 1
    nodes: int = 1
    precision: Precision = "32"
    compile: bool = False
    workers: int = 0
    deterministic: bool = False

    @property
    def processes(self) -> int:
        """How many processes train together, on all machines."""
        return self.devices * self.nodes
