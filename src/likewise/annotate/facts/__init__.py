"""What people said, as facts that are only ever added, and what these say about pairs."""

from likewise.annotate.facts.fact import (
    QUESTIONS,
    Fact,
    check_id,
    check_key,
    check_keys,
    check_name,
    compact,
    question_of,
    shown,
)
from likewise.annotate.facts.reading import Reading, Said, body_without_secrets, pairs_of

__all__ = [
    "QUESTIONS",
    "Fact",
    "Reading",
    "Said",
    "body_without_secrets",
    "check_id",
    "check_key",
    "check_keys",
    "check_name",
    "compact",
    "pairs_of",
    "question_of",
    "shown",
]
