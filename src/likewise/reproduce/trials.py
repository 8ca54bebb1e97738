"""Many trials, on several processes, with the same result whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from likewise.reproduce.findings import Samples, Trial


def run_trials(
    trial: Trial,
    trials: int,
    *,
    seed: int = 0,
    jobs: int = 1,
    advance: Callable[[], object] | None = None,
) -> Samples:
    """Run a trial many times and stack what it measures, in the order of the trials.

    Every trial has a generator of its own, made from the seed and the trial's number: neither
    `jobs` nor the order in which trials end changes anything.

    Args:
        trial: takes a generator, returns arrays by name.
        trials: how many.
        seed: from which the generators are made.
        jobs: processes; each keeps to one thread, since small matrices do not gain from more.
        advance: called after each trial (a progress bar).

    >>> samples = run_trials(lambda generator: {"one": np.ones(2)}, 3)
    >>> samples["one"].shape
    (3, 2)
    """
    if trials < 1:
        raise ValueError(f"trials is {trials}: give at least 1 (the papers use 100)")
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}: give the number of processes, at least 1")
    sources = np.random.SeedSequence(seed).spawn(trials)
    results: list[Samples] = []
    for result in _results(trial, sources, min(jobs, trials)):
        results.append(result)
        if advance is not None:
            advance()
    return {name: np.stack([result[name] for result in results]) for name in results[0]}


def _results(trial: Trial, sources: list[np.random.SeedSequence], jobs: int) -> Iterator[Samples]:
    if jobs == 1:
        with one_thread():
            for source in sources:
                yield _one(trial, source)
        return
    from joblib import (  # type: ignore[import-untyped]
        Parallel,
        delayed,
        parallel_config,
    )

    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator")(
            delayed(_one)(trial, source) for source in sources
        )


def _one(trial: Trial, source: np.random.SeedSequence) -> Samples:
    return trial(np.random.default_rng(source))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra, in NumPy and in PyTorch, and afterwards as many as before."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    threads = torch.get_num_threads()
    with threadpool_limits(1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
