"""A training as a value, and what is left of it: the network at several times."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise.data.views import Policy, Views
from likewise.diagnostics import long_tail_subset, uniform_subset
from likewise.graph import Graph
from likewise.models import build_encoder, momentum_schedule
from likewise.optimizers import build_optimizer, scaled_lr, warmup_cosine
from likewise.reproduce.setting import Pictures, Setting, pictures
from likewise.training import Learner, Recipe, recipe

Weights = dict[str, Tensor]
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises."""


@dataclass(frozen=True)
class Training:
    """What to train. Equal values are trained once in a session.

    Args:
        recipe: of :data:`likewise.training.RECIPES`.
        views: the policy.
        epochs: passes over the training images.
        changes: fields of the recipe that differ, as (name, value).
        options: arguments of the objective that differ, as (name, value).
        snapshots: shares of the training at which the network is kept; the end always is.
        subset: which training images: "all", "uniform" or "long-tail" (as many).
        stop_gradient: False lets SimSiam's gradient into both branches.
        seed: of weights, batches and views.
    """

    recipe: str
    views: Policy | str
    epochs: int
    changes: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    snapshots: tuple[float, ...] = ()
    subset: str = "all"
    stop_gradient: bool = True
    seed: int = 0

    @property
    def method(self) -> Recipe:
        """The recipe with its changes; another objective does not get its options."""
        changes = dict(self.changes)
        if "objective" in changes:
            changes["options"] = {}
        if self.recipe == "simclr":
            # The papers' projectors end with a linear layer, as those that it is compared with.
            changes.setdefault("projector_ends_normalized", False)
        return replace(recipe(self.recipe), **changes)


@dataclass
class Trained:
    """What a training left: encoder and projector at several times, and the losses."""

    training: Training
    setting: Setting
    weights: dict[float, Weights]
    """By the share of the training after which they were taken, 0 to 1."""
    losses: np.ndarray = field(repr=False)
    seconds: float = 0.0

    @property
    def times(self) -> list[float]:
        """The shares of the training that there are weights of."""
        return sorted(self.weights)

    def network(self, at: float = 1.0) -> nn.Module:
        """Encoder and projector at a time, in evaluation."""
        student = _learner(self.training, self.setting).student
        student.predictor = None
        student.load_state_dict(self.weights[at])
        return student.to(self.setting.device).eval()

    def projector_weight(self, at: float = 1.0) -> Tensor:
        """The weight (d_proj, d_enc) of a linear projector."""
        (name,) = [
            key for key in self.weights[at] if key.startswith("projector.") and "weig" in key
        ]
        return self.weights[at][name].float()


class WithoutStopGradient(Learner):
    """SimSiam whose gradient flows into both branches: nothing keeps it from collapse."""

    def _other_branch(
        self, crops: Sequence[Tensor], z: Tensor, samples: int
    ) -> tuple[Tensor | None, Tensor | None]:
        return z, None


def _learner(training: Training, setting: Setting) -> Learner:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        encoder = build_encoder(setting.encoder, image_size=setting.size, seed=training.seed)
        kind = Learner if training.stop_gradient else WithoutStopGradient
        return kind(training.method, encoder, options=dict(training.options), seed=training.seed)


def training_rows(training: Training, labels: np.ndarray) -> np.ndarray:
    """The numbers of the images that are trained on."""
    if training.subset == "all":
        return np.arange(len(labels))
    tail = long_tail_subset(labels, smallest=5, seed=training.seed)
    if training.subset == "long-tail":
        return np.asarray(tail)
    return np.asarray(uniform_subset(labels, len(tail), seed=training.seed))


def train(training: Training, setting: Setting) -> Trained:
    """Train, with the recipe's optimiser, warm-up and a cosine to 0.

    On a GPU in bfloat16 and compiled; on a CPU as it is. Batches and views are functions of the
    seed alone.
    """
    started = time.perf_counter()
    images = pictures(setting)
    cuda = setting.device == "cuda"
    device = torch.device(setting.device)
    learner = _learner(training, setting).to(device).to(memory_format=torch.channels_last).train()
    views = Views(
        training.views, setting.size, training.method.n_views, mean=images.mean, std=images.std
    )
    rows = torch.from_numpy(training_rows(training, images.labels()))
    batch = min(setting.batch_size, len(rows))
    steps_an_epoch = len(rows) // batch
    steps = training.epochs * steps_an_epoch
    method = training.method
    optimizer = build_optimizer(
        method.optimizer,
        learner,
        lr=scaled_lr(method.lr, batch),
        weight_decay=method.weight_decay,
        trust_coefficient=method.trust_coefficient,
    )
    base = [group["lr"] for group in optimizer.param_groups]
    if cuda:
        torch.set_float32_matmul_precision("high")
        learner.student.compile(dynamic=False)
    make = torch.compile(views.apply, dynamic=False) if cuda else views.apply
    generator = torch.Generator().manual_seed(training.seed)
    drawing = torch.Generator(device).manual_seed(training.seed)
    graph = Graph.identity(batch).to(device)
    shares = {*training.snapshots, 1.0}
    kept: dict[float, Weights] = {}
    losses: list[Tensor] = []
    for step in range(steps + 1):
        # In a short training several times may fall on one step.
        if due := [share for share in shares if round(share * steps) == step]:
            state = _weights(learner, views, images, rows, calibrate=step == 0)
            kept.update(dict.fromkeys(due, state))
        if step == steps:
            break
        if step % steps_an_epoch == 0:
            order = rows[torch.randperm(len(rows), generator=generator)]
        at = step % steps_an_epoch * batch
        pixels = images.train.pixels[order[at : at + batch].to(device)]
        drawn = views.draw(batch, generator=drawing, device=device)
        crops = [crop.contiguous(memory_format=torch.channels_last) for crop in make(pixels, drawn)]
        with torch.autocast("cuda", torch.bfloat16) if cuda else nullcontext():
            terms = learner(crops, graph, generator=drawing, parts=False)
        loss = torch.stack(list(terms.values())).sum()
        factor = warmup_cosine(step + 1, steps + 1, warmup=math.ceil(WARM_UP * steps))
        for group, lr in zip(optimizer.param_groups, base, strict=True):
            group["lr"] = lr * factor
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        learner.follow(momentum_schedule(step + 1, steps, start=method.momentum))
        losses.append(loss.detach())
    curve = torch.stack(losses).float().cpu().numpy() if losses else np.zeros(0)
    return Trained(training, setting, kept, curve, time.perf_counter() - started)


@torch.no_grad()
def _weights(
    learner: Learner, views: Views, images: Pictures, rows: Tensor, *, calibrate: bool
) -> Weights:
    """Encoder and projector, on the CPU.

    Before the first step batch norm has seen nothing: its running statistics are made from views
    of 512 images, so that the network at that time can be looked at in evaluation, too.
    """
    student = learner.student
    if calibrate:
        student = copy.deepcopy(student)
        for module in student.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.reset_running_stats()
                module.momentum = None
        pixels = images.train.pixels[rows[:512].to(images.train.pixels.device)]
        drawing = torch.Generator(pixels.device).manual_seed(0)
        student.train()(views(pixels, generator=drawing)[0])
    return {
        name: value.detach().to("cpu", copy=True)
        for name, value in student.state_dict().items()
        if not name.startswith("predictor.")
    }
