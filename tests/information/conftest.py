"""NumPy's and SciPy's threads, too, cost more than they bring on small matrices."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield
