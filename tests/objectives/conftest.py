"""A contract test runs on the graphs that its objective is defined on, and skips none."""


def pytest_generate_tests(metafunc):
    if "graph_name" in metafunc.fixturenames:
        metafunc.parametrize("graph_name", metafunc.cls.graphs)
