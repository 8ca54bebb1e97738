"""The queue beside a Python deque."""

from __future__ import annotations

import io
from collections import deque

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.models import Queue
from likewise.models import queue as module


def rows(n: int, start: int = 0) -> torch.Tensor:
    """Rows that tell who they are."""
    return torch.stack([torch.arange(start, start + n), -torch.arange(start, start + n)], 1).float()


def held(queue: Queue) -> set[tuple[float, float, int]]:
    payload = queue.samples[: len(queue)]
    return {(a, b, s) for (a, b), s in zip(queue.rows().tolist(), payload.tolist(), strict=True)}


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 7), pushes=st.lists(st.integers(0, 17), max_size=6), cut=st.integers(0))
def test_it_holds_what_a_deque_holds(size, pushes, cut):
    queue, expected, count = Queue(2, size), deque(maxlen=size), 0
    for place, n in enumerate(pushes):
        if place == cut % (len(pushes) + 1):  # saved and restored in between
            restored = Queue(2, size)
            restored.load_state_dict(queue.state_dict())
            queue = restored
        new = rows(n, count)
        queue.push(new, torch.arange(count, count + n))
        expected.extend((a, b, int(a)) for a, b in new.tolist())
        count += n
    assert held(queue) == set(expected)
    assert len(queue) == int(queue.filled) == min(count, size)
    assert int(queue.position) == count % size


def test_samples_are_unknown_where_not_given():
    queue = Queue(2, 3)
    queue.push(rows(3), torch.tensor([5, 6, 7]))
    queue.push(rows(1, 9))
    assert queue.samples.tolist() == [-1, 6, 7]


def test_a_seed_fills_it_with_unit_rows():
    queue, same, other = Queue(4, 10, seed=0), Queue(4, 10, seed=0), Queue(4, 10, seed=1)
    assert queue.rows().shape == (10, 4)
    torch.testing.assert_close(queue.rows().norm(dim=1), torch.ones(10))
    assert torch.equal(queue.rows(), same.rows()) and not torch.equal(queue.rows(), other.rows())
    queue.push(torch.ones(3, 4))
    assert (queue.rows()[:3] == 1).all() and torch.equal(queue.rows()[3:], same.rows()[3:])


def test_a_push_leaves_the_gradient_of_an_earlier_loss_alone():
    queue = Queue(2, 4, seed=0)
    z = torch.ones(3, 2, requires_grad=True)
    negatives = queue.rows()
    expected = negatives.sum(0).expand(3, 2).clone()
    loss = (z @ negatives.T).sum()
    queue.push(z)
    loss.backward()
    torch.testing.assert_close(z.grad, expected)
    assert not queue.rows().requires_grad


def test_nearest_is_the_largest_cosine(monkeypatch):
    monkeypatch.setattr(module, "_TILE", 60)  # several tiles
    generator = torch.Generator().manual_seed(0)
    bank = torch.randn(20, 5, generator=generator) * torch.rand(20, 1, generator=generator)
    queries = torch.randn(13, 5, generator=generator)
    queue = Queue(5, 30)
    queue.push(bank, torch.arange(100, 120))
    found = queue.nearest(queries)
    for i, query in enumerate(queries):
        cosines = [F.cosine_similarity(query, row, dim=0).item() for row in bank]
        best = max(range(20), key=cosines.__getitem__)
        assert torch.equal(found.rows[i], bank[best])
        assert found.samples[i] == 100 + best
        assert found.similarity[i].item() == pytest.approx(cosines[best], rel=1e-5)


def test_zeros_and_empty_slots_are_never_nearest():
    queue = Queue(2, 5)
    queue.push(torch.tensor([[-1.0, 0.0]]))  # the empty slots are zeros: cosine 0, above -1
    found = queue.nearest(torch.tensor([[1.0, 0.0]]))
    assert found.rows.tolist() == [[-1.0, 0.0]]
    assert torch.isfinite(queue.nearest(torch.zeros(1, 2)).similarity).all()


def test_half_precision_is_compared_in_float32():
    queue = Queue(64, 8)
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(64, generator=generator)
    near = torch.stack([base + 2e-3 * k * torch.randn(64, generator=generator) for k in range(8)])
    queue.push(near)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = queue.nearest(near)
    assert found.similarity.dtype == torch.float32
    assert torch.equal(found.rows, near)


def test_state_survives_a_file_and_moves_on():
    queue = Queue(2, 5)
    queue.push(rows(7), torch.arange(7))
    file = io.BytesIO()
    torch.save(queue.state_dict(), file)
    file.seek(0)
    restored = Queue(2, 5, seed=3)
    restored.load_state_dict(torch.load(file))
    for each in (queue, restored):
        each.push(rows(2, 50), torch.arange(50, 52))
    assert torch.equal(restored.buffer, queue.buffer)
    assert torch.equal(restored.samples, queue.samples)


def test_bad_input():
    with pytest.raises(ValueError, match="size is 0"):
        Queue(2, 0)
    with pytest.raises(ValueError, match="dim is 2.0"):
        Queue(2.0, 4)
    queue = Queue(2, 4)
    with pytest.raises(ValueError, match="the queue is empty"):
        queue.nearest(torch.ones(1, 2))
    with pytest.raises(ValueError, match=r"rows has shape \(3, 5\): give \(n, 2\)"):
        queue.push(torch.ones(3, 5))
    with pytest.raises(ValueError, match=r"samples has shape \(2,\)"):
        queue.push(torch.ones(3, 2), torch.arange(2))
    with pytest.raises(ValueError, match=r"queries has shape \(2,\)"):
        queue.nearest(torch.ones(2))
