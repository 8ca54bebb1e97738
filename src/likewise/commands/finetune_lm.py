"""``likewise finetune-lm``: fine-tune a causal language model with the matrix cross-entropy."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from likewise.commands.errors import UsageError


def finetune_lm(
    *,
    model: Path,
    data: Path,
    out: Path = Path("finetuned"),
    loss: Literal["ce", "ce+mce", "mce"] = "ce+mce",
    prompt_field: str = "prompt",
    answer_field: str = "answer",
    template: str = "{prompt}",
    steps: int | None = None,
    epochs: float = 1.0,
    batch_size: int = 8,
    accumulate: int = 1,
    learning_rate: float = 2e-4,
    schedule: str = "cosine",
    warmup_steps: int = 0,
    lora_rank: int = 16,
    lora_targets: str = "all-linear",
    top_k: int | None = None,
    matrix_weight: float = 1.0,
    max_length: int = 1024,
    save_every: int = 500,
    log_every: int = 10,
    seed: int = 0,
    resume: bool = False,
    bf16: bool = False,
    gradient_checkpointing: bool = False,
) -> int:
    """Fine-tune a causal language model on prompts and answers, with LoRA or as a whole.

    The loss is that of the answer alone. Everything is read from disk: nothing is downloaded.
    Checkpoints and the result (adapter or model, and tokenizer) go to `out`.

    Args:
        model: folder of a model and its tokenizer, as save_pretrained writes it.
        data: JSONL file, one object with a prompt and an answer a line.
        out: folder to write to.
        loss: cross-entropy, the sum with the matrix cross-entropy, or the latter alone.
        prompt_field: name of the prompt in the file.
        answer_field: name of the answer in the file.
        template: what is made of a prompt; {prompt} stands for it.
        steps: optimiser steps; epochs count where it is not given.
        epochs: passes over the file.
        batch_size: examples a batch and device.
        accumulate: batches an optimiser step.
        learning_rate: the peak.
        schedule: name of transformers' learning-rate schedule.
        warmup_steps: steps of linear warm-up.
        lora_rank: rank of the adapter; 0 trains all weights.
        lora_targets: layers that get one, separated by commas, or all-linear.
        top_k: tokens that the matrix cross-entropy keeps at a position; all by default.
        matrix_weight: factor of the matrix cross-entropy.
        max_length: tokens of prompt and answer together.
        save_every: steps between checkpoints.
        log_every: steps between lines of the log.
        seed: of the adapter, the order of examples and dropout.
        resume: go on from the last checkpoint in `out`, if there is one.
        bf16: train in bfloat16.
        gradient_checkpointing: recompute activations in the backward pass, for less memory.
    """
    for name, value in (("batch_size", batch_size), ("accumulate", accumulate)):
        if value < 1:
            raise UsageError(f"{name} is {value}: give at least 1")
    if lora_rank < 0:
        raise UsageError(f"lora_rank is {lora_rank}: give a rank, or 0 to train all weights")
    if not model.is_dir():
        raise UsageError(f"model is {model}, which is no folder: give one with config.json")
    if not data.is_file():
        raise UsageError(f"data is {data}, which is no file: give a JSONL file")
    if "{prompt}" not in template:
        raise UsageError(f"template is {template!r}: put {{prompt}} where the prompt goes")
    try:
        from likewise.language import finetuning
    except ImportError as error:
        raise UsageError(str(error)) from None

    job = finetuning.Job(
        model=model,
        data=data,
        out=out,
        fields=(prompt_field, answer_field),
        template=template,
        max_length=max_length,
        lora_rank=lora_rank,
        lora_targets=lora_targets,
        loss_options={
            "top_k": top_k,
            "cross_entropy_weight": 0.0 if loss == "mce" else 1.0,
            "matrix_weight": 0.0 if loss == "ce" else matrix_weight,
        },
        resume=resume,
        bf16=bf16,
        seed=seed,
    )
    try:
        finetuning.run(
            job,
            max_steps=-1 if steps is None else steps,
            num_train_epochs=epochs,
            per_device_train_batch_size=batch_size,
            gradient_accumulation_steps=accumulate,
            learning_rate=learning_rate,
            lr_scheduler_type=schedule,
            warmup_steps=warmup_steps,
            save_steps=save_every,
            logging_steps=log_every,
            gradient_checkpointing=gradient_checkpointing,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    return 0
