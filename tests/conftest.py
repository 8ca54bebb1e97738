"""What all tests share: tests marked ``gpu`` run only where there is a CUDA device."""

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings
from threadpoolctl import threadpool_limits

from tests.processes import ProcessPair

# Read when SciPy is first imported: without it scikit-learn skips one of its estimator checks.
os.environ["SCIPY_ARRAY_API"] = "1"

# How long an example takes says nothing about whether it is right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Small matrices on few cores: threads cost more than they bring.
torch.set_num_threads(1)
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of SciPy, and of processes that a test starts
threadpool_limits(1)  # of NumPy, which is loaded already


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if needs_gpu:
        config.hook.pytest_deselected(items=needs_gpu)
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]


@pytest.fixture(scope="session")
def process_pair() -> Iterator[ProcessPair]:
    """Two processes that wait for work; started when a test first asks for them."""
    pair = ProcessPair()
    yield pair
    pair.close()
