"""A learner under Lightning: views on the device, one optimiser step a batch, nothing drawn from
a state that a resumed run would not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from likewise.data import Images, StreamedImages
from likewise.data.views import Parameters, Views
from likewise.distributed import rank, world_size
from likewise.models import momentum_schedule
from likewise.optimizers import OptimizerName, build_optimizer, warmup_cosine
from likewise.training.batches import BatchPlan
from likewise.training.learner import Learner
from likewise.training.stopping import leave_signals_to_the_trainer

DRAWN_AT_A_TIME = 8
"""Steps whose views are drawn at once."""

_LAST = "likewise_last"


@dataclass(frozen=True)
class Optimization:
    """How weights move: optimiser, learning rate and how long."""

    name: OptimizerName
    lr: float
    weight_decay: float
    epochs: int
    warmup_epochs: float
    momentum: float = 0.9
    trust_coefficient: float = 0.001


class DivergedError(RuntimeError):
    """What is learned is no number any more."""

    def __init__(self, what: str, step: int, lr: float, *, half: bool = False) -> None:
        super().__init__(
            f"{what} at step {step}: start a new run with a lower learning rate (it is {lr:g})"
            + (", or with precision 32" if half else "")
        )


class TrainingModule(L.LightningModule):
    """The training of a learner on images.

    Step k of a run draws its batch and its views from (seed, k) alone, so that a run that stops
    and resumes takes the same steps as one that does not, and several processes draw the same
    global batch, of which each takes its own rows.

    Args:
        learner: what learns.
        images: in memory, or streamed by workers that only decode.
        views: the augmentation.
        plan: which samples make a batch, and their graph.
        optimization: optimiser and schedule.
        seed: of the views.
        workers: processes that decode, where images are streamed.
        log_every: steps between two looks at the loss; the last step of an epoch is looked at, too.
        compile: compile the augmentation and the networks.
    """

    def __init__(
        self,
        learner: Learner,
        images: Images | StreamedImages,
        views: Views,
        plan: BatchPlan,
        optimization: Optimization,
        *,
        seed: int,
        workers: int,
        log_every: int,
        compile: bool,
    ) -> None:
        super().__init__()
        self.learner = learner
        self.images = images
        self.views = views
        self.plan = plan
        self.optimization = optimization
        self.seed = seed
        self.workers = workers
        self.log_every = log_every
        self.last: dict[str, float] = {}
        self._drawn: tuple[int, Parameters] | None = None
        self.make_views = self._views
        self._graphs = compile and torch.cuda.is_available()
        if compile:
            self.make_views = torch.compile(self._views, dynamic=False)
            # CUDA graphs: at these sizes an H200 waits for the host otherwise.
            mode = "reduce-overhead" if self._graphs else "default"
            learner.student.compile(mode=mode, dynamic=False)
            if learner.teacher is not None:
                learner.teacher.module.compile(mode=mode, dynamic=False)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self.optimization.epochs * len(self.plan)

    def train_dataloader(self) -> DataLoader[Any]:
        """Batches of this epoch, from where the run stands."""
        start = self.trainer.global_step - self.current_epoch * len(self.plan)
        order = EpochOrder(self.plan, self.current_epoch, start=max(start, 0))
        if isinstance(self.images, StreamedImages):
            streamed: Dataset[Any] = OwnImages(self.images, rank(), world_size())
            return DataLoader(
                streamed,
                sampler=order,
                batch_size=None,
                num_workers=self.workers,
                worker_init_fn=leave_signals_to_the_trainer,
                pin_memory=torch.cuda.is_available(),
            )
        return DataLoader(IndexOnly(), sampler=order, batch_size=None)

    def configure_optimizers(self) -> Any:
        """The optimiser of the recipe, with warm-up and a cosine to 0, step by step."""
        settings = self.optimization
        optimizer = build_optimizer(
            settings.name,
            self.learner,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            trust_coefficient=settings.trust_coefficient,
        )
        warmup = round(settings.warmup_epochs * len(self.plan))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: warmup_cosine(step, self.steps, warmup=warmup)
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def on_fit_start(self) -> None:
        """Put small data on the device."""
        if isinstance(self.images, Images):
            self.images = self.images.to(self.device)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, *_: Any) -> Any:
        """Pixels go to the device; the numbers of the samples are worked with on the host."""
        index, pixels = batch
        return index, None if pixels is None else pixels.to(device, non_blocking=True)

    def training_step(self, batch: tuple[Tensor, Tensor | None], batch_idx: int) -> Tensor:
        """The loss of one global batch."""
        index, pixels = batch
        step = self.trainer.global_step
        generator = torch.Generator(self.device).manual_seed(mix(self.seed, 1, step))
        # What the encoder itself draws (dropout) is a function of the step, too.
        torch.manual_seed(mix(self.seed, 2, step, rank()))
        if self._graphs:
            torch.compiler.cudagraph_mark_step_begin()
        own = own_rows(len(index))
        if pixels is not None:
            index = agreed(index, own, self.device)
        parameters = self._draw(step, len(index), own)
        if isinstance(self.images, Images):
            pixels = self.images.pixels[index[own].to(self.device, non_blocking=True)]
        assert pixels is not None
        crops = self.make_views(pixels, parameters)
        look = self.looks_at(step)
        terms = self.learner(crops, self.plan.graph(index), generator=generator, parts=look)
        loss = torch.stack(list(terms.values())).sum() if len(terms) > 1 else [*terms.values()][0]
        if look:
            self._look(loss, terms, step)
        return loss

    def looks_at(self, step: int) -> bool:
        """Whether the loss of a step is read back, which waits for the device: every so many steps,
        and at the end of every epoch, so that what is shown is never older than that."""
        return step % self.log_every == 0 or (step + 1) % len(self.plan) == 0

    def _draw(self, step: int, samples: int, own: slice) -> Parameters:
        """The parameters of this rank's views: those of several steps are drawn at a time,
        because a draw is many small launches, whatever its size."""
        block, place = divmod(step, DRAWN_AT_A_TIME)
        if self._drawn is None or self._drawn[0] != block:
            generator = torch.Generator(self.device).manual_seed(mix(self.seed, 0, block))
            drawn = self.views.draw(
                DRAWN_AT_A_TIME * samples, generator=generator, device=self.device
            )
            self._drawn = block, drawn
        first = place * samples
        return self._drawn[1].rows(slice(first + own.start, first + own.stop))

    def _views(self, pixels: Tensor, parameters: Parameters) -> list[Tensor]:
        """The views, with the channels of a pixel side by side, which convolutions prefer."""
        crops = self.views.apply(pixels, parameters)
        return [crop.contiguous(memory_format=torch.channels_last) for crop in crops]

    def _look(self, loss: Tensor, terms: dict[str, Tensor], step: int) -> None:
        values = torch.stack([loss.detach(), *(term.detach() for term in terms.values())]).tolist()
        if not all(value == value and abs(value) != float("inf") for value in values):
            raise self.diverged(f"the loss is {values[0]}", step)
        self.last = {"loss": values[0], **dict(zip(terms, values[1:], strict=True))}
        metrics = {f"train/{name}": value for name, value in self.last.items()}
        metrics["train/lr"] = self.trainer.optimizers[0].param_groups[0]["lr"]
        for logger in self.loggers:
            logger.log_metrics(metrics, step=step)

    def diverged(self, what: str, step: int) -> DivergedError:
        """What is to be raised where `what` is seen at a step."""
        half = str(self.trainer.precision) != "32-true"
        return DivergedError(what, step, self.optimization.lr, half=half)

    def check_finite(self) -> None:
        """Raise where a weight, or a statistic of batch norm, is no number any more: such a state
        is not to replace a good one. One number is read back."""
        held = (*self.learner.parameters(), *self.learner.buffers())
        weights = [one.detach() for one in held if one.is_floating_point()]
        if not bool(torch.stack(torch._foreach_norm(weights)).isfinite().all()):
            raise self.diverged("the weights are not finite", self.trainer.global_step)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the last figures, which a run that is resumed at its very end has to tell."""
        checkpoint[_LAST] = dict(self.last)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take them up again."""
        self.last = dict(checkpoint[_LAST])

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """A step, after which the teacher follows: before a checkpoint can be written."""
        super().optimizer_step(*args, **kwargs)
        step, start = self.trainer.global_step, self.learner.recipe.momentum
        self.learner.follow(momentum_schedule(step, self.steps, start=start))


def mix(*numbers: int) -> int:
    """One seed out of several numbers, such that neighbours have nothing in common.

    >>> mix(0, 1) == mix(1, 0), 0 <= mix(5, 7) < 2**63
    (False, True)
    """
    value = 0x9E3779B97F4A7C15
    for number in numbers:
        # splitmix64
        value = (value + (number + 1) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        value = ((value ^ (value >> 30)) * 0x94D049BB133111EB) & (2**64 - 1)
        value ^= value >> 31
    return value & (2**63 - 1)


def own_rows(samples: int) -> slice:
    """The samples of a global batch that this rank works on."""
    share = samples // world_size()
    return slice(rank() * share, (rank() + 1) * share)


def agreed(index: Tensor, own: slice, device: torch.device) -> Tensor:
    """The numbers of a batch of which every rank knows its own part."""
    if world_size() == 1:
        return index
    mine = index[own].to(device)
    everyone = [torch.empty_like(mine) for _ in range(world_size())]
    torch.distributed.all_gather(everyone, mine)
    return torch.cat(everyone).cpu()


class EpochOrder:
    """The batches of one epoch, from a given step on, with the length of the whole epoch."""

    def __init__(self, plan: BatchPlan, epoch: int, start: int = 0) -> None:
        self.plan, self.epoch, self.start = plan, epoch, start

    def __len__(self) -> int:
        return len(self.plan)

    def __iter__(self) -> Iterator[Tensor]:
        return self.plan.epoch(self.epoch, start=self.start)


class IndexOnly(Dataset[Any]):
    """Images are on the device already: a batch is its numbers."""

    def __getitem__(self, index: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return index, None


class OwnImages(Dataset[Any]):
    """The whole batch's numbers with this rank's images, decoded."""

    def __init__(self, images: StreamedImages, rank: int, world_size: int) -> None:
        self.images, self.rank, self.world_size = images, rank, world_size

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        share = len(index) // self.world_size
        own = range(self.rank * share, (self.rank + 1) * share)
        # Another image takes the place of a broken one, and its number: what is known about the
        # one does not hold for the other.
        pixels, shown = self.images.without_repeats(index.tolist(), own, self.rank, self.world_size)
        index = index.clone()
        index[own.start : own.stop] = shown
        return index, pixels
