"""Batch norm on two real processes, each with its own data, equals one on the global batch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.distributed import gather_rows, world_size
from likewise.models import BatchNormOverRanks, build_encoder, convert_batch_norm

ROWS = {"uneven": (5, 2), "one row": (1, 4), "empty": (6, 0)}


def network() -> nn.Module:
    """Batch norm over images, over rows, without affine, and with a plain average."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.BatchNorm2d(2),  # its input has no gradient in training
        nn.Conv2d(2, 3, 3, padding=1, bias=False),
        nn.BatchNorm2d(3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(3 * 4 * 4, 6, bias=False),
        nn.BatchNorm1d(6, affine=False, momentum=None),
        nn.Tanh(),
        nn.Linear(6, 3, bias=False),
        nn.BatchNorm1d(3, track_running_stats=False),
    ).double()
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return network


def global_images(case: str) -> Tensor:
    n = sum(ROWS[case])
    generator = torch.Generator().manual_seed(1)
    # Rows of different place and scale: the statistics of one rank are not those of all.
    x = torch.randn(n, 2, 4, 4, generator=generator, dtype=torch.float64)
    return x * torch.linspace(0.5, 3, n).view(-1, 1, 1, 1) + torch.arange(n).view(-1, 1, 1, 1)


def objective(z: Tensor) -> Tensor:
    """A loss that couples all rows, and returns the global value on every rank."""
    everyone = gather_rows(z)
    gram = everyone @ everyone.T
    weights = torch.linspace(-1, 1, gram.numel(), dtype=z.dtype, device=z.device).view_as(gram)
    return (gram * weights).tanh().sum() / len(everyone)


def train(
    case: str, rank: int, world: int, device: str = "cpu", *, compiled: bool = False
) -> dict[str, Any]:
    """Two steps; what came out, and the gradients of the last one."""
    images = global_images(case).to(device)
    first = sum(ROWS[case][:rank])
    own = slice(first, first + ROWS[case][rank]) if world > 1 else slice(None)
    module = network().to(device)
    if world > 1:
        module = convert_batch_norm(module)
    wrapped = nn.parallel.DistributedDataParallel(module) if world > 1 else module
    if compiled:
        wrapped = torch.compile(wrapped, backend="eager")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    outputs = []
    for _ in range(2):
        x = images[own].clone().requires_grad_()
        optimizer.zero_grad()
        z = wrapped(x)
        loss = objective(z)
        loss.backward()
        optimizer.step()
        outputs.append(z.detach().cpu())
    module.eval()
    return {
        "outputs": outputs,
        "loss": loss.detach().cpu(),
        "input": x.grad.cpu(),
        "gradients": {name: p.grad.cpu() for name, p in module.named_parameters()},
        "state": {name: v.cpu().clone() for name, v in module.state_dict().items()},
        "evaluated": module(images).detach().cpu(),
        "own": own,
        "world": world_size(),
    }


def uneven(rank: int) -> dict[str, Any]:
    return train("uneven", rank, 2)


def uneven_and_compiled(rank: int) -> dict[str, Any]:
    return train("uneven", rank, 2, compiled=True)


def one_row(rank: int) -> dict[str, Any]:
    return train("one row", rank, 2)


def empty(rank: int) -> dict[str, Any]:
    return train("empty", rank, 2)


def uneven_on_a_gpu(rank: int) -> dict[str, Any]:
    return train("uneven", rank, 2, "cuda")


@pytest.mark.gpu
def test_two_processes_on_one_gpu_equal_one_on_the_cpu(process_pair):
    test_two_processes_equal_one(process_pair, "uneven", uneven_on_a_gpu)


@pytest.mark.parametrize(
    ("case", "job"),
    [
        ("uneven", uneven),
        ("uneven", uneven_and_compiled),
        ("one row", one_row),
        ("empty", empty),
    ],
)
def test_two_processes_equal_one(process_pair, case, job):
    single = train(case, 0, 1)
    close = {"rtol": 1e-9, "atol": 1e-11}
    for result in process_pair.call(job):
        assert result["world"] == 2
        own = result["own"]
        for actual, expected in zip(result["outputs"], single["outputs"], strict=True):
            torch.testing.assert_close(actual, expected[own], **close)
        torch.testing.assert_close(result["loss"], single["loss"], **close)
        # Both ranks return the loss: a row holds the gradient of their sum, before averaging.
        torch.testing.assert_close(result["input"], 2 * single["input"][own], **close)
        assert result["gradients"].keys() == single["gradients"].keys()
        for name, expected in single["gradients"].items():
            assert expected.abs().max() > 1e-6
            torch.testing.assert_close(result["gradients"][name], expected, **close)
        assert result["state"].keys() == single["state"].keys()
        for name, expected in single["state"].items():
            torch.testing.assert_close(result["state"][name], expected, **close)
        torch.testing.assert_close(result["evaluated"], single["evaluated"], **close)


def half_precision(rank: int) -> dict[str, Any]:
    norm = convert_batch_norm(nn.BatchNorm2d(2))
    x = global_images("uneven")[rank * 3 : rank * 3 + 3].bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = norm(x)
    y.float().square().sum().backward()
    return {"y": y.detach(), "grad": x.grad, "mean": norm.running_mean}


def test_bfloat16_rows_have_float32_statistics(process_pair):
    images = global_images("uneven")[:6].bfloat16()
    norm = nn.BatchNorm2d(2)
    expected = norm(images.float())
    for rank, result in enumerate(process_pair.call(half_precision)):
        assert result["y"].dtype == result["grad"].dtype == torch.bfloat16
        own = expected[rank * 3 : rank * 3 + 3]
        torch.testing.assert_close(result["y"].float(), own.detach(), rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(result["mean"], norm.running_mean, rtol=1e-5, atol=1e-6)


def one_value(rank: int) -> list[str]:
    norm = convert_batch_norm(nn.BatchNorm1d(2))
    try:
        norm(torch.ones(1 - rank, 2))
    except ValueError as error:
        return [str(error)]
    return []


def test_one_row_over_all_ranks_is_refused_on_both(process_pair):
    for (message,) in process_pair.call(one_value):
        assert message.startswith("input has 1 value per channel over all ranks")


# --- conversion -------------------------------------------------------------------------------


def test_conversion_hands_over_parameters_and_names():
    encoder = build_encoder("resnet10t", seed=0)
    names = list(encoder.state_dict())
    parameters = dict(encoder.named_parameters())
    encoder.model.layer1.eval()
    assert convert_batch_norm(encoder) is encoder
    assert list(encoder.state_dict()) == names
    assert all(parameters[name] is p for name, p in encoder.named_parameters())
    norms = [m for m in encoder.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert norms and all(isinstance(m, BatchNormOverRanks) for m in norms)
    assert not encoder.model.layer1[0].bn1.training and encoder.model.bn1.training


@pytest.mark.parametrize("name", ["tiny", "resnet10t", "efficientnet_lite0"])
def test_one_process_is_plain_batch_norm(name):
    """EfficientNet's norms end with an activation, which a conversion may lose."""
    plain = build_encoder(name, seed=0)
    converted = convert_batch_norm(copy.deepcopy(plain))
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        torch.manual_seed(0)  # of EfficientNet's stochastic depth
        expected = plain(x)
        torch.manual_seed(0)
        assert torch.equal(converted(x), expected)
        plain.eval()
        converted.eval()


def test_a_converted_encoder_compiles_into_one_graph():
    encoder = convert_batch_norm(build_encoder("tiny", seed=0))
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(encoder, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), encoder(x), rtol=1e-4, atol=1e-5)


def test_a_shared_norm_stays_shared_and_conversion_is_idempotent():
    norm = nn.BatchNorm1d(3)
    module = convert_batch_norm(nn.ModuleDict({"a": norm, "b": nn.Sequential(norm)}))
    assert module["a"] is module["b"][0]
    once = module["a"]
    assert convert_batch_norm(module)["a"] is once
    assert isinstance(convert_batch_norm(nn.BatchNorm2d(3)), BatchNormOverRanks)


def test_strangers_are_refused():
    class Stranger(nn.BatchNorm2d):
        def forward(self, input: Tensor) -> Tensor:
            return -super().forward(input)

    with pytest.raises(ValueError, match="module holds a Stranger"):
        convert_batch_norm(nn.Sequential(Stranger(3)))


def test_bad_shape():
    with pytest.raises(ValueError, match=r"input has shape \(3,\)"):
        convert_batch_norm(nn.BatchNorm1d(3))(torch.ones(3))
