"""How it learns: LARS, an optimizer by name, and the learning rate over a run."""

from likewise.optimizers.build import OPTIMIZERS, OptimizerName, build_optimizer
from likewise.optimizers.lars import LARS
from likewise.optimizers.schedule import scaled_lr, warmup_cosine, warmup_cosine_schedule

__all__ = [
    "LARS",
    "OPTIMIZERS",
    "OptimizerName",
    "build_optimizer",
    "scaled_lr",
    "warmup_cosine",
    "warmup_cosine_schedule",
]
