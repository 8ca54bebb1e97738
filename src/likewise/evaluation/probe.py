"""The linear probe: how well a linear classifier on frozen embeddings does."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from likewise.evaluation.classification import Classification, classification
from likewise.evaluation.minibatch import train_linear
from likewise.evaluation.penalty import PENALTIES, fit_logistic
from likewise.evaluation.task import (
    Task,
    embedding_rows,
    labelled_task,
    number,
    positive_integer,
)
from likewise.graph.arrays import Array, in_kind, is_numpy
from likewise.information.precision import without_autocast
from likewise.pairwise.products import product

Method = Literal["lbfgs", "sgd", "lars"]
Scaling = Literal["feature", "global", "none"]

SMALL = 2**20
"""Numbers in the rows below which a CPU is done before a GPU has launched its kernels."""

TRUST_COEFFICIENT = 0.001
FAR_ENOUGH = 5.0

DEFAULTS: dict[Method, dict[str, Any]] = {
    "lbfgs": {"penalty": None, "tolerance": 1e-7, "iterations": 500},
    "sgd": {
        "epochs": 100,
        "learning_rate": 0.01,
        "batch_size": 256,
        "momentum": 0.9,
        "weight_decay": 0.0,
    },
    "lars": {
        "epochs": 100,
        "learning_rate": 0.03,
        "batch_size": 4096,
        "momentum": 0.9,
        "weight_decay": 0.0,
    },
}


@dataclass(eq=False)
class Probe(Classification):
    """A linear classifier and its scores (see :class:`Classification`).

    Attributes:
        weight: (classes of training, d).
        bias: (classes of training,); the scores of rows z are z @ weight.T + bias.
        trained_classes: the class index of each row of `weight`.
    """

    weight: Any = None
    bias: Any = None
    trained_classes: Any = None

    def scores(self, z: Array) -> Any:
        """Logits (n, classes of training) of rows z, in kind."""
        rows = embedding_rows(z, "z")
        weight = torch.as_tensor(self.weight, device=rows.device)
        if rows.shape[1] != weight.shape[1]:
            raise ValueError(
                f"z has rows of {rows.shape[1]} numbers: the probe was fitted to rows of "
                f"{weight.shape[1]}"
            )
        bias = torch.as_tensor(self.bias, device=rows.device)
        return in_kind(product(rows, weight) + bias, is_numpy(z))

    def predict(self, z: Array) -> Any:
        """The class index of rows z, in kind."""
        best = torch.as_tensor(self.scores(z)).argmax(dim=1)
        classes = torch.as_tensor(self.trained_classes, device=best.device)
        return in_kind(classes[best], is_numpy(z))


@torch.no_grad()
@without_autocast
def linear_probe(
    train: Array,
    train_labels: Any,
    test: Array,
    test_labels: Any,
    *,
    method: Method = "lbfgs",
    scaling: Scaling = "feature",
    seed: int = 0,
    device: torch.device | str | None = None,
    **options: Any,
) -> Probe:
    r"""Fit a linear classifier to labelled training rows, and score it on test rows.

    ``"lbfgs"`` minimises, over all rows at once,

    .. math::
        \frac1n \sum_i -\log \mathrm{softmax}(W x_i + b)_{y_i} + \frac\lambda2 |W|_F^2

    to its unique minimum (scikit-learn's ``C`` is :math:`1 / (n \lambda)`). lambda is the one
    that makes the fewest mistakes on rows held out of training (a tenth of them; below 5,000
    rows, five fifths in turn), equal ones in favour of the larger, and the fit is then repeated
    with all rows. ``"sgd"`` and ``"lars"`` train on minibatches with a cosine schedule as the
    papers do; ``"lars"`` has the settings of ``matrix-ssl`` appendix F.

    Args:
        train, test: (n, d) rows: tensors on any device, or arrays.
        train_labels, test_labels: class indices; rows with -1 are left out and counted.
        method: "lbfgs", "sgd" or "lars".
        scaling: "feature" gives every column mean 0 and deviation 1 on the training rows;
            "global" subtracts the mean and divides by one number, so that a rotation of the
            embeddings changes nothing; "none" only subtracts the mean, which the offset b undoes.
        seed: draws the held-out rows, or the minibatches.
        device: where to compute; default: where `train` is.
        **options: for "lbfgs" `penalty` (lambda, or several to choose from), `tolerance` (how
            far the loss may be above its minimum) and `iterations`; for "sgd" and "lars"
            `epochs`, `learning_rate` (for a batch of 256; it grows with the batch), `batch_size`,
            `momentum` and `weight_decay`.

    >>> z = torch.tensor([[0.0, 1.0], [0.2, 1.0], [1.0, 0.1], [1.0, 0.0]])
    >>> probe = linear_probe(z, [0, 0, 1, 1], z, [0, 0, 1, 1], penalty=0.1)
    >>> probe.accuracy, probe.predict(torch.tensor([[0.0, 2.0]])).tolist()
    (1.0, [0])
    """
    chosen = checked_options(method, scaling, options)
    task = labelled_task(train, train_labels, test, test_labels, device=device)
    return probe_on(task, method, scaling, seed, chosen, numpy=is_numpy(train, test))


def probe_on(
    task: Task,
    method: Method,
    scaling: Scaling,
    seed: int,
    options: dict[str, Any],
    numpy: bool = False,
) -> Probe:
    """:func:`linear_probe` on a task that has been checked already."""
    start = time.perf_counter()
    notes: list[str] = []
    rows, labels = task.train, task.train_labels
    if method == "lbfgs" and rows.numel() <= SMALL:
        rows, labels = rows.cpu(), labels.cpu()
    mean = rows.mean(dim=0, dtype=torch.float64).float()
    inverse = _inverse_scale(rows, mean, scaling)
    standard = (rows - mean).mul_(inverse)
    settings: dict[str, Any] = {"method": method, "scaling": scaling, "seed": seed, **options}
    if method == "lbfgs":
        weight, bias, found = fit_logistic(standard, labels, task.n_classes, seed, options)
        settings.update(found)
        if not found["converged"]:
            notes.append(
                f"the probe had not converged after {found['steps']} iterations (the loss is about "
                f"{found['gap']:.1g} above its minimum): raise iterations or penalty"
            )
    else:
        weight, bias = train_linear(
            standard, labels, task.n_classes, optimizer=method, seed=seed, **options
        )
        if method == "lars":
            notes += _short_of_steps(len(rows), options)
    weight = weight * inverse
    bias = (bias.double() - weight.double() @ mean.double()).float()
    weight, bias = weight.to(task.test.device), bias.to(task.test.device)
    fields = classification(product(task.test, weight) + bias, task, settings, 0.0, notes)
    fields["seconds"] = time.perf_counter() - start
    return Probe(
        **fields,
        weight=in_kind(weight, numpy),
        bias=in_kind(bias, numpy),
        trained_classes=in_kind(task.classes, numpy),
    )


def _inverse_scale(rows: Tensor, mean: Tensor, scaling: Scaling) -> Tensor:
    """1 / deviation, and 0 for columns that are constant but for round-off."""
    if scaling == "none":
        return torch.ones_like(mean)
    centred = rows - mean
    # Divided by their greatest first: squares would overflow or vanish in float32.
    greatest = centred.abs().amax(dim=0)
    if scaling == "global":
        greatest = greatest.amax().expand_as(greatest)
    shares = centred.div_(greatest.clamp_min(torch.finfo(rows.dtype).tiny)).square_()
    variance = shares.mean(dim=0, dtype=torch.float64)
    if scaling == "global":
        variance = variance.mean().expand_as(variance)
    deviation = greatest.double() * variance.sqrt()
    varies = deviation > 4 * torch.finfo(rows.dtype).eps * mean.abs()
    return torch.where(varies, 1 / deviation, 0.0).float()


def _short_of_steps(n: int, options: dict[str, Any]) -> list[str]:
    """LARS moves weights by a share of their length: a note where that leaves them near the start.

    The paper's setting takes 31,000 steps on ImageNet, and weights travel 75 times their length;
    on 12,000 rows, 0.7 times gave 49 % where 7 times gave 61 %.
    """
    batch = min(options["batch_size"], n)
    steps = options["epochs"] * -(-n // batch)
    highest = options["learning_rate"] * batch / 256
    travel = steps * highest / 2 * TRUST_COEFFICIENT / (1 - options["momentum"])
    if travel >= FAR_ENOUGH:
        return []
    return [
        f"LARS took {steps} steps, in which weights move {travel:.1g} times their length at most, "
        "and may have stopped early: raise learning_rate or epochs, or use method='lbfgs'"
    ]


def checked_options(method: str, scaling: str, options: dict[str, Any]) -> dict[str, Any]:
    """The defaults of a method and what was given, checked before anything is computed."""
    if method not in get_args(Method):
        raise ValueError(f"method is {method!r}: give 'lbfgs', 'sgd' or 'lars'")
    if scaling not in get_args(Scaling):
        raise ValueError(f"scaling is {scaling!r}: give 'feature', 'global' or 'none'")
    known = DEFAULTS[method]  # type: ignore[index]
    for name in options:
        if name not in known:
            raise ValueError(f"{name} is no option of method={method!r}: it has {', '.join(known)}")
    chosen = {**known, **{name: value for name, value in options.items() if value is not None}}
    for name, value in chosen.items():
        if name == "penalty":
            given = PENALTIES if value is None else value
            several = [given] if isinstance(given, float | int | np.number) else list(given)
            if not several:
                raise ValueError("penalty is empty: give a number, or several to choose from")
            values = {number("penalty", one, zero=True) for one in several}
            chosen[name] = sorted(values, reverse=True)
        elif name in ("epochs", "batch_size", "iterations"):
            chosen[name] = positive_integer(name, value)
        else:
            chosen[name] = number(name, value, zero=name in ("weight_decay", "momentum"))
    return chosen
