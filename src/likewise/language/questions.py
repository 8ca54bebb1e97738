"""GSM8K and MATH: ask a model, find its answers, and count those that are right."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

# Before transformers is imported: what is not on disk is an error here, and never a download.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from likewise.language.answers import boxed_in, number_in, same_expression, same_number
from likewise.language.examples import read_examples
from likewise.runs.files import write_atomically


@dataclass(frozen=True)
class Task:
    """Where question and answer stand in a file, and how answers are found and compared."""

    question: str
    answer: str
    find: Callable[[str], str | None]
    same: Callable[[str | None, str | None], bool]


TASKS = {
    "gsm8k": Task("question", "answer", number_in, same_number),
    "math": Task("problem", "solution", boxed_in, same_expression),
}


@dataclass
class Answered:
    """One question: what was expected, what was said, and whether that is right."""

    question: str
    expected: str | None
    found: str | None
    right: bool
    text: str


@dataclass
class Score:
    """How many of the questions were answered rightly."""

    task: str
    answered: list[Answered]

    @property
    def right(self) -> int:
        """Number of right answers."""
        return sum(x.right for x in self.answered)

    def __str__(self) -> str:
        n = len(self.answered)
        low, high = wilson(self.right, n)
        return (
            f"{self.task}: {100 * self.right / n:.1f} % of {n} are right "
            f"(95 % interval {100 * low:.1f} to {100 * high:.1f})"
        )

    def write(self, path: Path) -> None:
        """Write all answers to a JSON file, by way of a temporary name."""
        content = {
            "task": self.task,
            "right": self.right,
            "count": len(self.answered),
            "answers": [asdict(x) for x in self.answered],
        }
        with write_atomically(path) as aside:
            aside.write_text(json.dumps(content, indent=1))


def wilson(right: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    Example:
        >>> low, high = wilson(50, 100)
        >>> round(low, 3), round(high, 3)
        (0.404, 0.596)
    """
    z = 1.959964
    share = right / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    half /= 1 + z * z / count
    return max(0.0, centre - half), min(1.0, centre + half)


def score(
    task: Literal["gsm8k", "math"], entries: Sequence[dict[str, str]], texts: Sequence[str]
) -> Score:
    """Compare the model's `texts` with the answers of a file's `entries`.

    Example:
        >>> entries = [{"question": "1 + 1?", "answer": "1 + 1 = 2 #### 2"}]
        >>> print(score("gsm8k", entries, ["One and one are 2. The answer is: 2"]))
        gsm8k: 100.0 % of 1 are right (95 % interval 20.7 to 100.0)
    """
    rule = TASKS[task]
    answered = []
    for entry, text in zip(entries, texts, strict=True):
        expected, found = rule.find(entry[rule.answer]), rule.find(text)
        right = rule.same(expected, found)
        answered.append(Answered(entry[rule.question], expected, found, right, text))
    return Score(task, answered)


def evaluate(
    model: Path,
    data: Path,
    task: Literal["gsm8k", "math"],
    *,
    adapter: Path | None,
    template: str,
    limit: int | None,
    batch_size: int,
    max_new_tokens: int,
    bf16: bool,
) -> Score:
    """Answer the questions of a file greedily."""
    rule = TASKS[task]
    entries = read_examples(data, (rule.question, rule.answer))[:limit]
    prompts = [template.format(prompt=entry[rule.question]) for entry in entries]
    network, tokenizer = _load(model, adapter, bf16)
    # Longest first: a batch of like lengths has little padding, and too little memory shows early.
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    texts = [""] * len(prompts)
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        found = _generate(network, tokenizer, [prompts[i] for i in chosen], max_new_tokens)
        for i, text in zip(chosen, found, strict=True):
            texts[i] = text
    return score(task, entries, texts)


def _load(model: Path, adapter: Path | None, bf16: bool) -> tuple[Any, Any]:
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise ValueError(
            "transformers is missing: pip install '.[language]' in the checkout"
        ) from error
    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    network: Any = AutoModelForCausalLM.from_pretrained(
        model, local_files_only=True, dtype=torch.bfloat16 if bf16 else torch.float32
    )
    if adapter is not None:
        from peft import PeftModel

        network = PeftModel.from_pretrained(network, str(adapter))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return network.to(device).eval(), tokenizer


def _generate(network: Any, tokenizer: Any, prompts: list[str], longest: int) -> list[str]:
    batch = tokenizer(prompts, return_tensors="pt", padding=True).to(network.device)
    batch.pop("token_type_ids", None)
    with torch.inference_mode():
        tokens = network.generate(
            **batch,
            max_new_tokens=longest,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
        )
    answers = tokens[:, batch["input_ids"].shape[1] :]
    decoded: list[str] = tokenizer.batch_decode(answers, skip_special_tokens=True)
    return decoded
