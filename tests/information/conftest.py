"""Small matrices gain nothing from threads, which wait for one another on a busy machine."""

from collections.abc import Iterator

import pytest
import torch
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):  # NumPy's and scipy's
        yield
    torch.set_num_threads(threads)
