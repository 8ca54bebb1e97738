"""``likewise evaluate-lm``: the accuracy of a language model on GSM8K or MATH."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError

METAMATH = (
    "Below is an instruction that describes a task. Write a response that appropriately "
    "completes the request.\n\n### Instruction:\n{prompt}\n\n### Response: Let's think step by "
    "step."
)


def evaluate_lm(
    *,
    model: Path,
    data: Path,
    task: Literal["gsm8k", "math"] = "gsm8k",
    adapter: Path | None = None,
    template: str = METAMATH,
    limit: int | None = None,
    batch_size: int = 16,
    max_new_tokens: int = 512,
    bf16: bool = False,
    out: Path | None = None,
) -> int:
    """Answer questions greedily, and say which share is right, with a 95 % interval.

    Table 3 of matrix-ssl is this on the test files of GSM8K and MATH, which you bring along:
    nothing is downloaded.

    Args:
        model: folder of a model and its tokenizer.
        data: JSONL file; gsm8k has question and answer a line, math has problem and solution.
        task: how answers are found and compared.
        adapter: folder of a LoRA adapter to put on the model.
        template: what is made of a question; {prompt} stands for it. By default MetaMath's.
        limit: answer only the first so many.
        batch_size: questions at a time.
        max_new_tokens: the longest answer.
        bf16: run in bfloat16.
        out: also write a JSON file with every answer.
    """
    if not model.is_dir():
        raise UsageError(f"model is {model}, which is no folder: give one with config.json")
    if not data.is_file():
        raise UsageError(f"data is {data}, which is no file: give a JSONL file")
    if "{prompt}" not in template:
        raise UsageError(f"template is {template!r}: put {{prompt}} where the question goes")
    for name, value in (("batch_size", batch_size), ("max_new_tokens", max_new_tokens)):
        if value < 1:
            raise UsageError(f"{name} is {value}: give at least 1")
    try:
        from likewise.language import questions
    except ImportError as error:
        raise UsageError(str(error)) from None

    try:
        score = questions.evaluate(
            model,
            data,
            task,
            adapter=adapter,
            template=template,
            limit=limit,
            batch_size=batch_size,
            max_new_tokens=max_new_tokens,
            bf16=bf16,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    print(score)
    if out is not None:
        score.write(out)
        print(f"wrote {out}")
    return 0
