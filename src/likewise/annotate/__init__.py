"""People answer: the store of what they said, the desk that hands out questions, the page.

Each of these may import those before it: ``facts`` (what was said), ``store`` (where it is kept),
``exchange`` (in and out of files), ``project`` (what it says about the items of a source), ``mind``
(what to ask next), ``desk`` (who is asked what), ``server`` (over HTTP, with ``page``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.annotate.desk import Asked, Desk, UnknownQuestion
    from likewise.annotate.exchange import export_answers, import_answers
    from likewise.annotate.facts import Fact, Said
    from likewise.annotate.project import ProjectAnswers, answers_of_project
    from likewise.annotate.store import NotSaved, Person, Since, Store

__all__ = [
    "Asked",
    "Desk",
    "Fact",
    "NotSaved",
    "Person",
    "ProjectAnswers",
    "Said",
    "Since",
    "Store",
    "UnknownQuestion",
    "answers_of_project",
    "export_answers",
    "import_answers",
]

_HOMES = {
    "Asked": "desk",
    "Desk": "desk",
    "UnknownQuestion": "desk",
    "export_answers": "exchange",
    "import_answers": "exchange",
    "Fact": "facts",
    "Said": "facts",
    "ProjectAnswers": "project",
    "answers_of_project": "project",
    "NotSaved": "store",
    "Person": "store",
    "Since": "store",
    "Store": "store",
}


def __getattr__(name: str) -> Any:
    # The store needs no PyTorch, which takes seconds to import; the desk does.
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise.annotate' has no attribute {name!r}")
    return getattr(importlib.import_module(f"likewise.annotate.{_HOMES[name]}"), name)
