"""What the README and the docs show runs, word for word."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
PAGES = [README, *DOCS.rglob("*.md")]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_python_blocks_run(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks
    shared: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), shared)


def test_every_objective_is_listed():
    from likewise import objectives

    listed = set(re.findall(r"^\| `([A-Z]\w+)` \|", README.read_text(), flags=re.MULTILINE))
    assert listed == set(objectives.__all__) - {"Batch", "Objective"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+?)\)", page.read_text()):
        assert (page.parent / target).exists(), target
