"""Estimates of memory and time, against closed forms and against what really happens."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn

from likewise.data.available import total_memory
from likewise.training.activations import estimate_activations
from likewise.training.estimate import (
    Estimate,
    available_memory,
    estimate_memory,
    in_time,
)

GIB = 1 << 30


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


# --- activations ------------------------------------------------------------------------------


def test_a_layer_that_saves_its_input_and_output():
    """Linear saves its input; ReLU its output, which is the next one's input: once."""
    model = nn.Sequential(nn.Linear(7, 13), nn.ReLU(), nn.Linear(13, 2))
    assert estimate_activations(model, torch.zeros(3, 7), 50) == 50 * (7 + 13) * 4


def test_parameters_and_frozen_layers_do_not_count():
    frozen = nn.Linear(7, 1000).requires_grad_(False)
    assert estimate_activations(frozen, torch.zeros(2, 7), 100) == 0
    # The input of a frozen layer is not needed, the weight is, but is no activation.
    model = nn.Sequential(nn.Linear(7, 5), nn.Linear(5, 3).requires_grad_(False))
    assert estimate_activations(model, torch.zeros(2, 7), 100) == 100 * 7 * 4


def test_a_view_counts_as_what_it_keeps_alive():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(10))

        def forward(self, x):
            return x[:, ::2] * self.weight  # saves a view, and with it all of x

    assert estimate_activations(Half(), torch.zeros(2, 20), 30) == 30 * 20 * 4


def test_the_line_meets_what_a_large_batch_keeps():
    """Extrapolated from 2 and 4 to 24, and measured there (from 24, to 24)."""
    model = network()
    small, large = torch.rand(2, 3, 8, 8), torch.rand(24, 3, 8, 8)
    assert estimate_activations(model, small, 24) == estimate_activations(model, large, 24)


def test_what_does_not_grow_is_counted_once():
    """Batch norm keeps a mean and a scale for every channel, whatever the batch."""
    model = nn.BatchNorm1d(16)
    sizes = [estimate_activations(model, torch.rand(4, 16), n) for n in (4, 1004)]
    assert sizes[1] - sizes[0] == 1000 * 16 * 4
    assert sizes[0] == 4 * 16 * 4 + 2 * 16 * 4


def test_half_precision_keeps_less():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    full = estimate_activations(model, torch.zeros(2, 64), 10_000)
    half = estimate_activations(model, torch.zeros(2, 64), 10_000, autocast=torch.bfloat16)
    assert half == pytest.approx(full / 2, rel=0.01)


def test_several_crops_of_a_sample():
    """Two large and three small views of each of two samples."""
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(4))
    model(torch.zeros(1, 6))
    crops = [torch.zeros(4, 6), torch.zeros(6, 6)]
    assert estimate_activations(model, crops, 100, samples=2) == 100 * 5 * 6 * 4


def test_nothing_is_held_afterwards():
    """ReLU saves its own output, which a ring of tensors could keep for good."""
    seen = []

    class Watched(nn.ReLU):
        def forward(self, x):
            found = super().forward(x)
            seen.append(weakref.ref(found))
            return found

    model = nn.Sequential(nn.Linear(4, 4), Watched(), nn.Linear(4, 2), Watched())
    estimate_activations(model, torch.rand(4, 4), 8)
    gc.collect()
    assert len(seen) == 4
    assert [output() for output in seen] == [None] * 4


def test_nothing_is_changed():
    model = nn.Sequential(network(), nn.Dropout(0.5)).eval()
    model[0][1].train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    rows = torch.rand(4, 3, 8, 8) + 3
    state = torch.get_rng_state()
    modes = [part.training for part in model.modules()]
    estimate_activations(model, rows, 100)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert [part.training for part in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_nothing_is_changed_by_a_forward_that_fails():
    class Failing(nn.BatchNorm1d):
        def forward(self, x):
            super().forward(x)
            raise RuntimeError("no")

    model = Failing(3).eval()
    with pytest.raises(RuntimeError, match="no"):
        estimate_activations(model, torch.rand(4, 3), 8)
    assert torch.equal(model.running_mean, torch.zeros(3)) and not model.training


def test_works_without_gradients_around_it():
    with torch.no_grad():
        assert estimate_activations(nn.Linear(3, 2), torch.zeros(2, 3), 10) == 120


def test_rejects_too_few_samples():
    with pytest.raises(ValueError, match="example_input holds 1 samples: give at least 2"):
        estimate_activations(nn.Linear(3, 2), torch.zeros(1, 3), 10)
    with pytest.raises(ValueError, match="example_input holds 0 samples"):
        estimate_activations(nn.Linear(3, 2), [], 10)
    with pytest.raises(ValueError, match="batch_size is 0"):
        estimate_activations(nn.Linear(3, 2), torch.zeros(2, 3), 0)


@pytest.mark.gpu
def test_the_estimate_is_near_what_a_gpu_takes():
    model = nn.Sequential(*(nn.Conv2d(3 if k == 0 else 64, 64, 3, padding=1) for k in range(12)))
    model = model.to("cuda")
    rows = torch.rand(256, 3, 32, 32, device="cuda")
    expected = estimate_activations(model, rows[:4], 256)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    output = model(rows)
    kept = torch.cuda.memory_allocated() - before
    # The input was there before, and the output is kept by us.
    kept += rows.numel() * 4 - output.numel() * 4
    assert kept == pytest.approx(expected, rel=0.02)


# --- the model --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_the_model_is_what_a_step_of_training_holds(name):
    """Weights, gradients and the optimiser's state, summed up after a real step."""
    model = network()
    make = {"sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), "adamw": torch.optim.AdamW}
    optimizer = make[name](model.parameters())
    model(torch.rand(4, 3, 8, 8)).sum().backward()
    optimizer.step()
    held = [*model.parameters(), *model.buffers()]
    held += [parameter.grad for parameter in model.parameters()]
    for state in optimizer.state.values():
        # AdamW also counts its steps, in one number for every tensor.
        held += [value for value in state.values() if torch.is_tensor(value) and value.ndim]
    expected = sum(tensor.numel() * tensor.element_size() for tensor in held)
    assert estimate_memory(model, optimizer=name).bytes_model == expected


def test_what_does_not_learn_is_held_once():
    model = nn.Linear(10, 10, bias=False)
    alone = estimate_memory(model, optimizer="sgd")
    assert alone.parameters == 100 and alone.bytes_model == 3 * 400
    frozen = nn.ModuleList([model, nn.Linear(10, 10, bias=False).requires_grad_(False)])
    assert estimate_memory(frozen).bytes_model == 4 * 400
    twice = nn.ModuleList([model, model])
    assert estimate_memory(twice).bytes_model == 3 * 400


def test_rejects_an_unknown_optimizer():
    with pytest.raises(ValueError, match="optimizer is 'adam': give one of sgd, lars, adamw"):
        estimate_memory(nn.Linear(2, 2), optimizer="adam")


# --- the verdict ------------------------------------------------------------------------------


def estimate(**changes) -> Estimate:
    fields = {
        "parameters": 11_200_000,
        "bytes_model": GIB,
        "bytes_activations": 4 * GIB,
        "bytes_data": 2 * GIB,
        "bytes_available": 16 * GIB,
        "batch_size": 512,
        "device": "cuda:0",
    }
    return Estimate(**{**fields, **changes})


def test_text():
    assert estimate().timed(0.0142, 19_400).text() == (
        "11.2 million parameters, about 7.0 GiB of 16.0 GiB free on cuda:0 (model 1.0 GiB, "
        "activations 4.0 GiB, images 2.0 GiB); 14.2 ms a step, about 4 min 35 s in all."
    )
    assert estimate(bytes_data=0, bytes_available=None, parameters=950).text() == (
        "950 parameters, about 5.0 GiB (model 1.0 GiB, activations 4.0 GiB)."
    )


def test_fits_with_a_margin():
    assert estimate(bytes_available=8 * GIB).fits
    assert not estimate(bytes_available=7 * GIB).fits
    assert estimate(bytes_available=None).fits


def test_what_does_not_fit_says_what_would():
    small = estimate(bytes_available=6 * GIB)
    assert "This will not fit: " in small.text()
    assert small.advice() == (
        "give a smaller batch_size (about 256 would fit), embed it in parts with micro_batch, "
        "use precision bf16, or stream the images from disk with stream=True"
    )
    assert small.largest_batch == int((0.9 * 6 - 3) * 512 / 4)
    assert small.largest_batch >= 256
    smaller = estimate(bytes_available=6 * GIB, bytes_activations=2 * GIB, batch_size=256)
    assert smaller.fits


def test_processes_share_what_is_free():
    small = {"bytes_model": 100, "bytes_activations": 300, "bytes_views": 100, "bytes_data": 50}
    shared = estimate(**small, bytes_available=2500, batch_size=64, processes=2)
    # 0.9 * 2500 - 2 * 100 - 50 = 2000, of 2 * 400 for 64
    assert shared.largest_batch == 160
    assert "model alone is too large" in replace(shared, bytes_model=1200).text()
    crowded = replace(shared, bytes_model=1000, bytes_activations=2000)
    assert "model alone" not in crowded.text()


def test_advice_begins_with_what_takes_most():
    assert estimate(bytes_data=20 * GIB).advice().startswith("stream the images")
    # No batch is small enough while the images are there.
    assert "would fit" not in estimate(bytes_data=20 * GIB).advice()
    assert "stream" not in estimate(bytes_data=0, bytes_available=3 * GIB).advice()
    assert "smaller encoder" in estimate(bytes_model=20 * GIB).advice()


def test_time_in_words():
    assert in_time(0.2) == "under a second" and in_time(1.0) == "1 s"
    assert in_time(59.6) == "1 min 0 s" and in_time(86_400) == "1 d 0 h"


# --- what is there ----------------------------------------------------------------------------


def machine(folder, *, free_kib=8_000, own="0::/job/1\n", files=None):
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(
        f"MemTotal: 9000 kB\nMemAvailable:  {free_kib} kB\nBuffers: 1 kB\n"
    )
    (folder / "proc" / "self" / "cgroup").write_text(own)
    for name, text in (files or {}).items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"proc": folder / "proc", "groups": folder / "groups"}


def test_what_the_machine_has(tmp_path):
    assert available_memory(**machine(tmp_path)) == 8_000 * 1024


def test_what_there_is_does_not_depend_on_what_is_used(tmp_path):
    assert total_memory(**machine(tmp_path / "a")) == 9_000 * 1024
    files = {
        "job/memory.max": "5000000",
        "job/memory.current": "4000000",
        "job/1/memory.max": "max",
    }
    assert total_memory(**machine(tmp_path / "b", files=files)) == 5_000_000
    assert total_memory(proc=tmp_path / "c", groups=tmp_path / "c") is None


def test_what_the_group_or_one_above_it_leaves(tmp_path):
    files = {
        "job/memory.max": "5000000",
        "job/memory.current": "3000000",
        "job/memory.stat": "anon 7\ninactive_file 1000000\n",
        "job/1/memory.max": "max",
        "job/1/memory.current": "5",
    }
    assert available_memory(**machine(tmp_path, files=files)) == 3_000_000


def test_the_first_version_of_groups(tmp_path):
    own = "5:devices:/x\n4:cpu,memory:/job/1\n1:name=systemd:/\n0::/\n"
    files = {
        "memory/job/1/memory.limit_in_bytes": "4000000",
        "memory/job/1/memory.usage_in_bytes": "1500000",
        "memory/job/1/memory.stat": "inactive_file 3\ntotal_inactive_file 500000\n",
        "memory/memory.limit_in_bytes": str(2**63 - 4096),
        "memory/memory.usage_in_bytes": "0",
    }
    assert available_memory(**machine(tmp_path, own=own, files=files)) == 3_000_000


def test_a_container_that_does_not_see_its_own_path(tmp_path):
    files = {"memory.max": "2000000", "memory.current": "2500000"}
    assert available_memory(**machine(tmp_path, files=files)) == 0


def test_a_system_that_does_not_say(tmp_path):
    assert available_memory(proc=tmp_path, groups=tmp_path) is None


def test_this_machine():
    free = available_memory("cpu")
    assert free is None or free > 0
