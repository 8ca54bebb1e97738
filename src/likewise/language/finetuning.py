"""Fine-tuning from a folder and a file: what ``likewise finetune-lm`` runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before transformers is imported: what is not on disk is an error here, and never a download.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from likewise.language.examples import Pad, encode, read_examples
from likewise.language.trainer import MatrixTrainer


@dataclass(frozen=True)
class Job:
    """What is trained on what, and where it goes."""

    model: Path
    data: Path
    out: Path
    fields: tuple[str, str]
    """Names of the prompt and of the answer."""
    template: str
    max_length: int
    lora_rank: int
    lora_targets: str
    loss_options: dict[str, Any]
    resume: bool
    bf16: bool
    seed: int


def run(job: Job, **arguments: Any) -> MatrixTrainer:
    """Train, and save model and tokenizer; `arguments` are those of ``TrainingArguments``."""
    from transformers import AutoTokenizer, TrainingArguments, set_seed

    tokenizer = AutoTokenizer.from_pretrained(job.model, local_files_only=True)
    prompt, answer = job.fields
    examples = [
        encode(tokenizer, job.template.format(prompt=entry[prompt]), entry[answer], job.max_length)
        for entry in read_examples(job.data, job.fields)
    ]
    checkpoint = _last_checkpoint(job)
    set_seed(job.seed)
    padding = tokenizer.pad_token_id
    trainer = MatrixTrainer(
        model=_model(job),
        args=TrainingArguments(
            output_dir=str(job.out),
            seed=job.seed,
            bf16=job.bf16,
            report_to="none",
            save_total_limit=2,
            remove_unused_columns=False,
            use_cpu=not torch.cuda.is_available(),
            dataloader_pin_memory=torch.cuda.is_available(),
            **arguments,
        ),
        train_dataset=examples,
        data_collator=Pad(0 if padding is None else padding),
        loss_options=job.loss_options,
    )
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model(str(job.out))
    tokenizer.save_pretrained(job.out)
    return trainer


def _model(job: Job) -> Any:
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if job.bf16 and job.lora_rank else torch.float32
    model = AutoModelForCausalLM.from_pretrained(job.model, local_files_only=True, dtype=dtype)
    if not job.lora_rank:
        return model
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise ValueError(
            f"lora_rank is {job.lora_rank} and peft is missing: pip install '.[language]' in the "
            "checkout, or give lora_rank 0 to train all weights"
        ) from None
    targets = job.lora_targets
    config = LoraConfig(
        r=job.lora_rank,
        lora_alpha=2 * job.lora_rank,
        target_modules=targets if targets == "all-linear" else targets.split(","),
        task_type="CAUSAL_LM",
    )
    if hasattr(model, "enable_input_require_grads"):
        model.enable_input_require_grads()  # else checkpointing finds nothing to differentiate
    return get_peft_model(model, config)


def _last_checkpoint(job: Job) -> str | None:
    """The folder to resume from; without `resume`, an `out` that was used is an error."""
    from transformers.trainer_utils import get_last_checkpoint

    last: str | None = get_last_checkpoint(str(job.out)) if job.out.is_dir() else None
    if last is not None and not job.resume:
        raise ValueError(
            f"out is {job.out}, which holds {Path(last).name}: resume it, or give another folder"
        )
    return last
