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
from likewise.oracles.pal import PAL, History, Step
from likewise.oracles.probe import Probe
from likewise.oracles.questions import (
    Attribute,
    Grid,
    Outliers,
    Pair,
    Question,
    question_from_dict,
)
from likewise.oracles.samplers import SAMPLERS, Sampler, build_sampler
from likewise.oracles.updates import FineTune, KernelUpdate, Update

__all__ = [
    "PAL",
    "SAMPLERS",
    "Answer",
    "AnswerTime",
    "Answered",
    "Attribute",
    "Beliefs",
    "Contradiction",
    "ExactBeliefs",
    "FineTune",
    "Grid",
    "History",
    "KernelUpdate",
    "Labeler",
    "NoisyBeliefs",
    "Outliers",
    "Pair",
    "Probe",
    "Question",
    "Reask",
    "Sampler",
    "Step",
    "TruthLabeler",
    "Update",
    "answers_of",
    "append_answers",
    "build_sampler",
    "question_from_dict",
    "read_answers",
    "write_answers",
]
