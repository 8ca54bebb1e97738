"""A recipe around an encoder gives the loss of its paper, for any graph."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise import Graph
from likewise.models import build_encoder
from likewise.training import RECIPES, Learner, Recipe, recipe
from likewise.training.named_objective import build_objective, objective_class

SAMPLES = 24


class Flat(nn.Module):
    """An encoder without batch statistics, in float64: what comes out is a function of a row."""

    dim = 6

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 4 * 4, self.dim)

    def forward(self, images: Tensor) -> Tensor:
        rows: Tensor = self.layer(images.flatten(1)).tanh()
        return rows


def crops_of(samples: int, views: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(samples * views, 3, 32, 32, generator=generator)


def graphs(n: int) -> dict[str, Graph]:
    labels = torch.arange(n) % 3
    partial = torch.where(torch.arange(n) % 2 == 0, labels, -1)
    edges = Graph.from_edges(
        torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5]), torch.tensor([1.0, -1.0, 1.0]), n=n
    )
    return {
        "identity": Graph.identity(n),
        "labels": 0.5 * Graph.identity(n) + 0.5 * Graph.from_labels(labels),
        "partial": 0.9 * Graph.identity(n) + 0.1 * Graph.from_labels(partial),
        "edges": 0.5 * Graph.identity(n) + 0.5 * edges,
    }


def learner_of(name: str, **changes: Any) -> Learner:
    torch.manual_seed(0)
    small: dict[str, Any] = {"projector": [16, 8]}
    if name == "w-mse":
        small["options"] = {"slice_size": 12}
    if name == "swav":
        small["options"] = {"prototypes": 5}
    if RECIPES[name].objective == "ClassRegression":
        small = {"classes": 3, "projector": [16]}
    return Learner(recipe(name), build_encoder("tiny", seed=0), **{**small, **changes})


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("kind", ["identity", "labels", "partial", "edges"])
def test_every_recipe_takes_every_graph_and_learns(name: str, kind: str) -> None:
    graph = graphs(SAMPLES)[kind]
    if RECIPES[name].objective == "ClassRegression":
        graph = Graph.from_labels(torch.arange(SAMPLES) % 3)
    learner = learner_of(name)
    views = min(RECIPES[name].n_views, 4)
    generator = torch.Generator().manual_seed(0)
    terms = learner([crops_of(SAMPLES, views)], graph, generator=generator)
    loss = torch.stack(list(terms.values())).sum()
    assert torch.isfinite(loss)
    loss.backward()
    gradients = [p.grad for p in learner.encoder.parameters()]
    assert all(g is not None and torch.isfinite(g).all() for g in gradients)
    assert max(float(g.abs().max()) for g in gradients if g is not None) > 0


@pytest.mark.parametrize("name", [name for name in RECIPES if not RECIPES[name].needs_labels])
def test_labels_do_not_multiply_the_step(name: str) -> None:
    """A learning rate is for self-supervision. With 80 images a class in the batch, a sum over
    those alike is 160 times what it was, and trainings with labels collapse."""
    n, sizes = 160, {}
    crops = crops_of(n, 2)
    for kind, graph in {
        "views": Graph.identity(n),
        "labels": 0.5 * Graph.identity(n) + 0.5 * Graph.from_labels(torch.arange(n) % 2),
    }.items():
        learner = learner_of(name)
        terms = learner([crops], graph, generator=torch.Generator().manual_seed(0), parts=False)
        torch.stack([*terms.values()]).sum().backward()
        gradients = [p.grad for p in learner.student.projector.parameters() if p.grad is not None]
        sizes[kind] = float(torch.stack([g.square().sum() for g in gradients]).sum().sqrt())
    assert sizes["labels"] < 4 * sizes["views"]


@pytest.mark.parametrize("name", RECIPES)
def test_total_is_the_sum_of_the_parts(name: str) -> None:
    labels = Graph.from_labels(torch.arange(SAMPLES) % 3)
    graph = labels if RECIPES[name].needs_labels else Graph.identity(SAMPLES)
    totals = []
    for parts in (True, False):
        learner = learner_of(name)
        generator = torch.Generator().manual_seed(0)
        terms = learner([crops_of(SAMPLES, 2)], graph, generator=generator, parts=parts)
        totals.append(float(torch.stack([*terms.values()]).detach().sum()))
    assert totals[0] == pytest.approx(totals[1], rel=1e-4, abs=1e-5)


def naive_nt_xent(z: Tensor, temperature: float) -> float:
    z = z / z.norm(dim=1, keepdim=True)
    total = 0.0
    for i in range(len(z)):
        positive = i ^ 1
        scores = [float(z[i] @ z[k]) / temperature for k in range(len(z)) if k != i]
        total += -float(z[i] @ z[positive]) / temperature
        total += math.log(sum(math.exp(score) for score in scores))
    return total / len(z)


def test_simclr_is_nt_xent_of_the_projected_views() -> None:
    torch.manual_seed(0)
    learner = Learner(recipe("simclr"), Flat(), projector=[5]).double()
    crops = torch.randn(10, 3, 4, 4, dtype=torch.float64)
    z = learner.student.projector(learner.encoder(crops))
    value = sum(float(term) for term in learner([crops], Graph.identity(5)).values())
    assert value == pytest.approx(naive_nt_xent(z.detach(), 0.2), rel=1e-9)


def test_byol_compares_the_predictor_with_the_teacher_across_views() -> None:
    torch.manual_seed(0)
    learner = Learner(recipe("byol"), Flat(), projector=[5]).double().eval()
    with torch.no_grad():
        for parameter in learner.teacher.parameters():
            parameter.add_(0.1)
    crops = torch.randn(8, 3, 4, 4, dtype=torch.float64)
    p = learner.student(crops)[1].detach()
    t = learner.teacher(crops)[0]
    expected = 0.0
    for i in range(8):
        a, b = p[i] / p[i].norm(), t[i ^ 1] / t[i ^ 1].norm()
        expected += float((a - b).square().sum())
    value = sum(float(term) for term in learner([crops], Graph.identity(4)).values())
    assert value == pytest.approx(expected / 8, rel=1e-9)


def test_nnclr_compares_with_the_nearest_row_of_the_queue() -> None:
    torch.manual_seed(0)
    learner = Learner(recipe("nnclr"), Flat(), projector=[5]).double().eval()
    crops = torch.randn(8, 3, 4, 4, dtype=torch.float64)
    rows = learner.queue.rows().double()
    z, p = (rows_.detach() for rows_ in learner.student(crops))
    z, p = z / z.norm(dim=1, keepdim=True), p / p.norm(dim=1, keepdim=True)
    near = torch.stack([rows[int((rows @ row).argmax())] for row in z])
    near = near / near.norm(dim=1, keepdim=True)
    expected = 0.0
    for i in range(8):
        positive = i ^ 1
        scores = p[i] @ near.T / 0.1
        others = [float(scores[k]) for k in range(8) if k != i]
        expected += -float(scores[positive]) + math.log(sum(math.exp(s) for s in others))
    value = sum(float(term) for term in learner([crops], Graph.identity(4)).values())
    assert value == pytest.approx(expected / 8, rel=1e-5)


def test_queue_takes_one_view_of_every_sample() -> None:
    learner = learner_of("moco-v2")
    before = learner.queue.rows()
    learner([crops_of(SAMPLES, 2)], Graph.identity(SAMPLES))
    changed = (learner.queue.rows() != before).any(dim=1)
    assert int(changed.sum()) == SAMPLES


def test_teacher_follows_the_student() -> None:
    learner = learner_of("byol")
    with torch.no_grad():
        for parameter in learner.student.parameters():
            parameter.add_(1.0)
    before = [p.clone() for p in learner.teacher.parameters()]
    learner.follow(0.75)
    for old, new in zip(before, learner.teacher.parameters(), strict=True):
        assert torch.allclose(new, old + 0.25)
    assert not any(p.requires_grad for p in learner.teacher.parameters())


def test_crops_of_several_sizes_are_brought_into_sample_major_order() -> None:
    torch.manual_seed(0)
    learner = Learner(recipe("simclr"), build_encoder("tiny", seed=0), projector=[8]).eval()
    large, small = torch.rand(3 * 2, 3, 32, 32), torch.rand(3 * 4, 3, 16, 16)
    z, _ = learner.embed([large, small], samples=3)
    first, second = learner.student(large)[0], learner.student(small)[0]
    for sample in range(3):
        for view in range(6):
            row = first[sample * 2 + view] if view < 2 else second[sample * 4 + view - 2]
            assert torch.allclose(z[sample * 6 + view], row, atol=1e-6)


def test_supervised_mse_is_the_squared_error_of_one_hot_labels() -> None:
    torch.manual_seed(0)
    learner = Learner(recipe("supervised-mse"), Flat(), projector=[], classes=3).double()
    crops = torch.randn(8, 3, 4, 4, dtype=torch.float64)
    labels = torch.tensor([2, 0, -1, 1])
    z = learner.student(crops)[0].detach()
    expected, count = 0.0, 0
    for row in range(8):
        label = int(labels[row // 2])
        if label < 0:
            continue
        count += 1
        expected += sum((float(z[row, c]) - (c == label)) ** 2 for c in range(3))
    value = learner([crops], Graph.from_labels(labels, n_classes=3))["regression"]
    assert float(value) == pytest.approx(expected / count, rel=1e-9)


def test_supervised_mse_refuses_a_graph_that_is_not_of_labels() -> None:
    learner = Learner(recipe("supervised-mse"), Flat(), projector=[], classes=3).double()
    crops = torch.randn(8, 3, 4, 4, dtype=torch.float64)
    mixed = 0.5 * Graph.identity(4) + 0.5 * Graph.from_labels(torch.tensor([0, 1, 2, 0]))
    with pytest.raises(ValueError, match="not one of labels"):
        learner([crops], mixed)


def test_unknown_names_are_refused_with_what_is_near() -> None:
    with pytest.raises(ValueError, match="did you mean 'simclr'"):
        recipe("simcrl")
    with pytest.raises(ValueError, match="give a class of likewise.objectives"):
        objective_class("NTXend")
    with pytest.raises(ValueError, match="it takes temperature"):
        build_objective(objective_class("NTXent"), {"temprature": 0.1})


def test_a_recipe_that_regresses_on_labels_needs_them() -> None:
    with pytest.raises(ValueError, match="give labels"):
        Learner(recipe("supervised-mse"), Flat())


def test_adding_a_method_is_adding_a_value() -> None:
    mine = Recipe(title="Mine", paper="me", objective="VIC2", projector=(4,))
    learner = Learner(mine, Flat())
    assert learner.dim == 4
    assert torch.isfinite(
        torch.stack([*learner([torch.randn(8, 3, 4, 4)], Graph.identity(4)).values()]).sum()
    )


def test_micro_batches_give_the_loss_and_gradient_of_the_whole_batch() -> None:
    # dcl: a head of one layer has no batch norm, which would see the parts.
    results = []
    for micro_batch in (None, 3):
        torch.manual_seed(0)
        learner = Learner(recipe("dcl"), Flat(), projector=[5], micro_batch=micro_batch)
        learner.double()
        crops = torch.randn(16, 3, 4, 4, dtype=torch.float64)
        loss = torch.stack([*learner([crops], Graph.identity(8)).values()]).sum()
        loss.backward()
        results.append([loss.detach(), *(p.grad for p in learner.student.parameters())])
    for whole, parts in zip(*results, strict=True):
        assert torch.allclose(whole, parts, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["simclr", "byol"])
def test_no_part_of_a_batch_holds_two_views_of_a_sample(name: str) -> None:
    """Batch norm would drive them apart: student and teacher see the same parts."""
    learner = learner_of(name, micro_batch=4)
    branches = [learner.student, *([learner.teacher.module] if learner.teacher else [])]
    seen: list[list[list[int]]] = [[] for _ in branches]
    for branch, parts in zip(branches, seen, strict=True):
        branch.encoder.register_forward_pre_hook(
            lambda module, given, parts=parts: parts.append(given[0][:, 0, 0, 0].int().tolist())
        )
    crops = crops_of(SAMPLES, 2)
    numbers = torch.arange(SAMPLES).repeat_interleave(2)
    crops[:, 0, 0, 0] = numbers.to(crops)
    learner([crops], Graph.identity(SAMPLES))
    for parts in seen:
        assert sorted(sum(parts, [])) == numbers.tolist()
        assert all(len(set(part)) == len(part) <= 4 for part in parts)


@pytest.mark.parametrize("name", ["simclr", "byol"])
def test_parts_come_back_in_the_order_of_the_rows(name: str) -> None:
    whole, parts = learner_of(name), learner_of(name, micro_batch=4)
    for learner in (whole, parts):
        learner.eval()  # batch norms that do not see the batch
    crops = crops_of(SAMPLES, 2)
    for expected, found in zip(
        whole.embed([crops], SAMPLES), parts.embed([crops], SAMPLES), strict=True
    ):
        assert torch.allclose(expected, found, atol=1e-6)
    expected, found = (learner([crops], Graph.identity(SAMPLES)) for learner in (whole, parts))
    assert {name: float(term) for name, term in found.items()} == pytest.approx(
        {name: float(term) for name, term in expected.items()}, rel=1e-5
    )


def test_micro_batches_count_once_in_the_running_statistics() -> None:
    learner = learner_of("simclr", micro_batch=SAMPLES * 2)
    whole = learner_of("simclr")
    for each in (learner, whole):
        loss = torch.stack([*each([crops_of(SAMPLES, 2)], Graph.identity(SAMPLES)).values()]).sum()
        loss.backward()
    for name, value in whole.state_dict().items():
        if "running" in name:
            assert torch.allclose(value, learner.state_dict()[name], atol=1e-6), name


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].dimension_power])
def test_the_loss_is_divided_by_the_width_as_the_recipe_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    classes = 4 if recipe(name).needs_labels else None
    learner = Learner(recipe(name), build_encoder("tiny"), projector=[16, 8], classes=classes)
    seen: list[dict[str, torch.Tensor]] = []
    terms = learner.objective.terms

    def told(*arguments: Any, **options: Any) -> dict[str, torch.Tensor]:
        seen.append(terms(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(learner.objective, "terms", told)
    graph = Graph.identity(16) if classes is None else Graph.from_labels(torch.arange(16) % 4)
    found = learner([torch.rand(32, 3, 16, 16)], graph)
    factor = {-1: 1 / learner.dim, 1: learner.dim}[recipe(name).dimension_power]
    assert {part: float(value) for part, value in found.items()} == pytest.approx(
        {part: factor * float(value) for part, value in seen[0].items()}
    )
