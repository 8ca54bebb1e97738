"""Collectives are linear maps with their exact adjoints, on two real processes."""

from __future__ import annotations

import pytest
import torch

from likewise import Graph
from likewise.distributed import gather_rows, sum_over_ranks
from likewise.objectives import NTXent, VICReg
from tests.objectives.test_contrastive import TestNTXent as NTXentContract
from tests.objectives.test_covariance import TestVICReg as VICRegContract

ROWS = {0: 3, 1: 1}


def own_rows(rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(ROWS[rank], 2, generator=generator, dtype=torch.float64)


def global_rows() -> torch.Tensor:
    return torch.cat([own_rows(0), own_rows(1)])


def gather_and_differentiate_twice(rank: int) -> dict[str, torch.Tensor]:
    rows = own_rows(rank).requires_grad_()
    value = gather_rows(rows).pow(3).sum()
    (first,) = torch.autograd.grad(value, rows, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), rows)
    return {"value": value.detach(), "first": first.detach(), "second": second}


def sum_and_differentiate_twice(rank: int) -> dict[str, torch.Tensor]:
    rows = own_rows(rank).requires_grad_()
    value = sum_over_ranks(rows.pow(2).sum()).pow(2)
    (first,) = torch.autograd.grad(value, rows, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), rows)
    return {"value": value.detach(), "first": first.detach(), "second": second}


def nan_on_one_rank(rank: int) -> list[str]:
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(rank))
    if rank == 1:
        z[2, 0] = torch.nan
    messages = []
    for objective in (NTXent(), VICReg()):
        try:
            objective(z, Graph.identity(4).views(2))
        except ValueError as error:
            messages.append(str(error))
    return messages


class RankWithoutRows:
    """Everything on rank 0."""

    def split(self, samples: int, rank: int, world: int) -> slice:
        return slice(0, samples) if rank == 0 else slice(samples, samples)


class EmptyRankNTXent(RankWithoutRows, NTXentContract):
    pass


class EmptyRankVICReg(RankWithoutRows, VICRegContract):
    pass


@pytest.mark.parametrize("case", [EmptyRankNTXent, EmptyRankVICReg])
def test_a_rank_may_hold_no_rows(process_pair, case):
    case().test_two_processes_equal_one(process_pair)


def test_gather_has_its_exact_adjoint_at_every_order(process_pair):
    """Both ranks return f of all rows: each row receives the derivative of the sum, 2 f."""
    everything = global_rows()
    for rank, result in enumerate(process_pair.call(gather_and_differentiate_twice)):
        torch.testing.assert_close(result["value"], everything.pow(3).sum())
        torch.testing.assert_close(result["first"], 2 * 3 * own_rows(rank).pow(2))
        torch.testing.assert_close(result["second"], 2 * 6 * own_rows(rank))


def test_sum_has_its_exact_adjoint_at_every_order(process_pair):
    total = global_rows().pow(2).sum()
    everyone = global_rows().sum()
    for rank, result in enumerate(process_pair.call(sum_and_differentiate_twice)):
        own = own_rows(rank)
        torch.testing.assert_close(result["value"], total.pow(2))
        # 2 ranks return s^2: d/dz 2 s^2 = 8 s z.
        torch.testing.assert_close(result["first"], 8 * total * own)
        # The sum over ranks of sum 8 s z: d/dz = 8 (s + 2 z sum of all z).
        torch.testing.assert_close(result["second"], 8 * (total + 2 * own * everyone))


def test_nan_on_one_rank_is_refused_on_both(process_pair):
    for messages in process_pair.call(nan_on_one_rank):
        assert len(messages) == 2
        assert all("z holds NaN or infinity, first in row 6" in each for each in messages)
