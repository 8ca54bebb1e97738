"""Prompts and answers from a JSONL file, with labels on the answers only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

IGNORED = -100
"""The label of positions that do not count: the prompt and the padding."""


def read_examples(path: Path, fields: Sequence[str]) -> list[dict[str, str]]:
    """The lines of a JSONL file, each with the text `fields`."""
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{path}, line {number} is not JSON ({error.msg}): give one object a line."
                ) from None
            for field in fields:
                if not isinstance(entry, dict) or not isinstance(entry.get(field), str):
                    there = ", ".join(entry) if isinstance(entry, dict) else type(entry).__name__
                    raise ValueError(
                        f"{path}, line {number} has no text {field!r}, but {there}: name the "
                        "fields of this file."
                    )
            found.append(entry)
    if not found:
        raise ValueError(f"{path} holds no example: give one JSON object a line.")
    return found


def encode(tokenizer: Any, prompt: str, answer: str, max_length: int) -> dict[str, list[int]]:
    """Token numbers of prompt, answer and end; the labels are those of the answer and end.

    What is too long loses the beginning of its prompt first, and then the end of its answer.
    """
    before = tokenizer(prompt)["input_ids"]
    end = tokenizer.eos_token_id
    # Some tokenizers close every text with the end token: a prompt goes on.
    if before and end is not None and before[-1] == end:
        before = before[:-1]
    after = tokenizer(answer, add_special_tokens=False)["input_ids"]
    after = (after + ([] if end is None else [end]))[: max_length - 1]
    before = before[-(max_length - len(after)) :]
    return {"input_ids": before + after, "labels": [IGNORED] * len(before) + after}


@dataclass
class Pad:
    """Puts examples of different length into one batch, padded on the right."""

    token: int = 0

    def __call__(self, examples: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
        """Token numbers, attention mask and labels, (batch, longest)."""
        longest = max(len(x["input_ids"]) for x in examples)

        def padded(name: str, value: int) -> Tensor:
            rows = [x[name] + [value] * (longest - len(x[name])) for x in examples]
            return torch.tensor(rows)

        lengths = torch.tensor([len(x["input_ids"]) for x in examples])
        return {
            "input_ids": padded("input_ids", self.token),
            "attention_mask": (torch.arange(longest) < lengths[:, None]).long(),
            "labels": padded("labels", IGNORED),
        }
