import pytest

from tests.objectives.processes import ProcessPair


@pytest.fixture(scope="session")
def process_pair():
    pair = ProcessPair()
    yield pair
    pair.close()


def pytest_generate_tests(metafunc):
    """A contract test runs on the graphs that its objective is defined on, and skips none."""
    if "graph_name" in metafunc.fixturenames:
        metafunc.parametrize("graph_name", metafunc.cls.graphs)
