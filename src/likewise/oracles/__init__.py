"""Whom to ask what: questions, answers, what answers imply, and who answers."""

from likewise.oracles.answers import (
    Answer,
    answers_of,
    append_answers,
    read_answers,
    write_answers,
)
from likewise.oracles.beliefs import Beliefs, Contradiction, ExactBeliefs, NoisyBeliefs, Reask
from likewise.oracles.labelers import Answered, AnswerTime, Labeler, TruthLabeler
from likewise.oracles.questions import (
    Attribute,
    Grid,
    Outliers,
    Pair,
    Question,
    question_from_dict,
)

__all__ = [
    "Answer",
    "AnswerTime",
    "Answered",
    "Attribute",
    "Beliefs",
    "Contradiction",
    "ExactBeliefs",
    "Grid",
    "Labeler",
    "NoisyBeliefs",
    "Outliers",
    "Pair",
    "Question",
    "Reask",
    "TruthLabeler",
    "answers_of",
    "append_answers",
    "question_from_dict",
    "read_answers",
    "write_answers",
]
