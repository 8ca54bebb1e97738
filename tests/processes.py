"""Two real gloo processes that stay alive for the whole test session."""

from __future__ import annotations

import importlib
import os
import socket
import traceback
from typing import Any

import torch
import torch.multiprocessing as mp
from torch import nn


class Trained(nn.Module):
    """An encoder and its objective in one module, as DDP wants it."""

    def __init__(self, encoder: nn.Module, objective: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.objective = objective

    def forward(self, x: torch.Tensor, graph: Any, arguments: dict[str, Any]) -> torch.Tensor:
        arguments = dict(arguments)
        if "target" in arguments:
            arguments["target"] = arguments["target"] @ arguments.pop("projection")
        loss: torch.Tensor = self.objective(self.encoder(x), graph, **arguments)
        return loss


def train(case: Any, rank: int, world: int) -> dict[str, Any]:
    """Three optimiser steps on this rank's share of the case's data."""
    torch.manual_seed(0)
    x, graph, arguments = case.distributed_data()
    encoder = nn.Sequential(nn.Linear(x.shape[1], 12), nn.Tanh(), nn.Linear(12, case.dim))
    module: nn.Module = Trained(encoder, case.make()).double()
    parameters = list(module.parameters())
    wrapped = nn.parallel.DistributedDataParallel(module) if world > 1 else module
    optimizer = torch.optim.SGD(parameters, lr=case.learning_rate)
    share = case.split(graph.n // graph.n_views, rank, world)
    own = slice(share.start * graph.n_views, share.stop * graph.n_views)
    if "target" in arguments:
        per_sample = len(arguments["target"]) // (graph.n // graph.n_views)
        rows = slice(share.start * per_sample, share.stop * per_sample)
        arguments = {**arguments, "target": arguments["target"][rows]}
        torch.manual_seed(1)
        arguments["projection"] = torch.randn(x.shape[1], case.dim, dtype=torch.float64)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        if case.random:
            arguments = {**arguments, "generator": torch.Generator().manual_seed(step)}
        loss = wrapped(x[own], graph, arguments)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    state = {name: value.detach().clone() for name, value in module.state_dict().items()}
    return {"losses": losses, "state": state}


def _serve(rank: int, port: int, jobs: Any, results: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    while True:
        job = jobs.get()
        if job is None:
            torch.distributed.destroy_process_group()
            return
        try:
            module, name = job
            target = getattr(importlib.import_module(module), name)
            result = train(target(), rank, 2) if isinstance(target, type) else target(rank)
            results.put((rank, result))
        except Exception:
            results.put((rank, traceback.format_exc()))


class ProcessPair:
    """Runs `train` of a contract class, or any function of the rank, in two processes."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context = mp.get_context("spawn")
        self.jobs = [context.Queue() for _ in range(2)]
        self.results = context.Queue()
        self.workers = [
            context.Process(target=_serve, args=(rank, port, jobs, self.results), daemon=True)
            for rank, jobs in enumerate(self.jobs)
        ]
        for worker in self.workers:
            worker.start()

    def train(self, case: Any) -> list[dict[str, Any]]:
        """The results of rank 0 and rank 1."""
        return self.call(type(case))

    def call(self, target: Any) -> list[Any]:
        """What a module-level class or function gives on rank 0 and rank 1."""
        for jobs in self.jobs:
            jobs.put((target.__module__, target.__qualname__))
        received = dict(self.results.get(timeout=120) for _ in range(2))
        for result in received.values():
            assert not isinstance(result, str), result
        return [received[0], received[1]]

    def close(self) -> None:
        """End both processes."""
        for jobs in self.jobs:
            jobs.put(None)
        for worker in self.workers:
            worker.join(timeout=30)
