"""Cross-entropy against cross-entropy + matrix cross-entropy on word problems with synonyms.

    PYTHONPATH=src python benchmarks/language_finetune.py --out build/language            # CPU
    PYTHONPATH=src python benchmarks/language_finetune.py --part finetune-large --out build/language

A small language model is made from a config and trained from scratch, for each seed once with each
loss: same initial weights, same batches, same number of steps. Problems and answers are generated;
verbs and nouns have synonyms, and a right answer may use any of them. The test asks for sums and
differences of pairs of numbers that were never seen in training. Runs that --out holds already are
not repeated, so that an interrupted comparison goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import statistics
import time
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from likewise.language import CausalMatrixLoss

LOSSES = {"CE": 0.0, "CE + MCE": 1.0}
SYNONYMS = {
    "has": ["has", "owns", "holds", "possesses", "keeps"],
    "gets": ["gets", "receives", "obtains", "acquires", "gains"],
    "loses": ["loses", "misplaces", "drops", "forfeits", "surrenders"],
    "more": ["more", "additional", "extra", "further"],
    "finally": ["finally", "eventually", "ultimately", "lastly"],
    "apples": ["apples", "fruits"],
    "coins": ["coins", "pennies"],
    "books": ["books", "volumes"],
    "stones": ["stones", "rocks", "pebbles"],
}
NAMES = ["ann", "ben", "cleo", "dan", "eva", "finn", "gus", "ida"]
THINGS = ["apples", "coins", "books", "stones"]
GLUE = ["<pad>", "<end>", ".", "?", "how", "many", "does", "now"]
IGNORED = -100


@dataclass(frozen=True)
class Size:
    largest: int
    """Numbers in a problem go from 1 to this."""
    width: int
    layers: int
    heads: int
    batch: int
    steps: int
    learning_rate: float
    seeds: int
    test: int


SIZES = {
    "finetune": Size(20, 64, 2, 4, 64, 700, 4e-3, 5, 1000),
    "finetune-large": Size(100, 512, 6, 8, 256, 800, 5e-4, 5, 4000),
}


class Corpus:
    """Problems over held-in and held-out pairs of numbers, as token numbers of one length."""

    def __init__(self, largest: int) -> None:
        words = [*GLUE, *NAMES, *(w for group in SYNONYMS.values() for w in group)]
        self.words = [*dict.fromkeys(words), *(str(i) for i in range(2 * largest + 1))]
        self.number = {word: i for i, word in enumerate(self.words)}
        pairs = [
            (a, b, s)
            for a in range(1, largest + 1)
            for b in range(1, largest + 1)
            for s in (1, -1)
            if a + s * b >= 0
        ]
        random.Random(0).shuffle(pairs)
        cut = len(pairs) // 5
        self.test, self.train = pairs[:cut], pairs[cut:]

    def problem(self, pair: tuple[int, int, int], rng: random.Random) -> tuple[list, list, int]:
        """Words of a prompt, words of an answer, and the number that is right."""
        a, b, sign = pair
        name, thing = rng.choice(NAMES), rng.choice(THINGS)

        def any_of(word: str) -> str:
            return rng.choice(SYNONYMS[word])

        prompt = [name, any_of("has"), str(a), any_of(thing), ".", name]
        prompt += [any_of("gets" if sign > 0 else "loses"), str(b)]
        prompt += [any_of("more") if sign > 0 else any_of(thing), "."]
        prompt += ["how", "many", any_of(thing), "does", name, any_of("has"), "?"]
        answer = [any_of("finally"), name, any_of("has"), str(a + sign * b), any_of(thing), "<end>"]
        return prompt, answer, a + sign * b

    def batch(self, pairs: list, count: int, rng: random.Random) -> tuple[Tensor, Tensor]:
        """Token numbers (count, length) and labels, which stand on the answers only."""
        rows, labels = [], []
        for _ in range(count):
            prompt, answer, _ = self.problem(rng.choice(pairs), rng)
            after = [self.number[w] for w in answer]
            rows.append([self.number[w] for w in prompt] + after)
            labels.append([IGNORED] * len(prompt) + after)
        return torch.tensor(rows), torch.tensor(labels)


def make_model(size: Size, vocabulary: int, seed: int) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=size.width,
        intermediate_size=3 * size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=32,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
        use_cache=False,
    )
    return LlamaForCausalLM(config)


@torch.no_grad()
def test(model: torch.nn.Module, corpus: Corpus, size: Size, device: str) -> dict[str, float]:
    """Share of problems whose number is right, greedily decoded; mean cross-entropy of answers."""
    model.eval()
    rng = random.Random(1)
    tokens, labels = corpus.batch(corpus.test, size.test, rng)
    begin = int((labels[0] == IGNORED).sum())
    right, entropy = 0, 0.0
    for rows, wanted in zip(tokens.split(500), labels.split(500), strict=True):
        rows, wanted = rows.to(device), wanted.to(device)
        logits = model(input_ids=rows).logits.float()
        entropy += torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), wanted[:, 1:].flatten(), reduction="sum"
        ).item()
        text = rows[:, :begin]
        for _ in range(4):  # finally, name, has, number
            text = torch.cat([text, model(input_ids=text).logits[:, -1].argmax(-1)[:, None]], 1)
        right += int((text[:, -1] == rows[:, begin + 3]).sum())
    model.train()
    return {"accuracy": right / size.test, "ce": entropy / int((labels != IGNORED).sum())}


def train(size: Size, weight: float, seed: int, device: str) -> dict:
    corpus = Corpus(size.largest)
    model = make_model(size, len(corpus.words), seed).to(device)
    loss = CausalMatrixLoss(model, matrix_weight=weight)
    optimiser = torch.optim.AdamW(model.parameters(), lr=size.learning_rate, weight_decay=0.01)
    rng = random.Random(1000 + seed)
    begin = time.perf_counter()
    for step in range(size.steps):
        warm = min(1.0, (step + 1) / 50)
        decay = 0.5 * (1 + math.cos(math.pi * step / size.steps))
        for group in optimiser.param_groups:
            group["lr"] = size.learning_rate * warm * decay
        tokens, labels = (x.to(device) for x in corpus.batch(corpus.train, size.batch, rng))
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            outputs = model(input_ids=tokens)
        value = loss(outputs, labels)
        optimiser.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    seconds = time.perf_counter() - begin
    return {**test(model, corpus, size, device), "train": loss.means(), "seconds": seconds}


def run(part: str, out: Path, seeds: int, steps: int | None, limit: float, jobs: int) -> None:
    size = SIZES[part]
    if steps is not None:
        size = Size(**{**asdict(size), "steps": steps})
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    path = out / f"{part}.json"
    found = {"size": asdict(size), "machine": f"{name} (torch {torch.__version__})", "runs": []}
    if path.exists() and json.loads(path.read_text())["size"] == asdict(size):
        found = json.loads(path.read_text())
    out.mkdir(parents=True, exist_ok=True)
    there = {(x["seed"], x["loss"]) for x in found["runs"]}
    missing = [
        (seed, loss) for seed in range(seeds) for loss in LOSSES if (seed, loss) not in there
    ]
    end = time.time() + limit
    work = partial(one_run, size, device, jobs, end)
    with get_context("spawn").Pool(jobs) as pool:
        for result in pool.imap_unordered(work, missing):
            if result is None:
                print("out of time: call again to go on")
                continue
            found["runs"].append(result)
            print(json.dumps(result), flush=True)
            temporary = path.with_name(path.name + ".tmp")
            temporary.write_text(json.dumps(found, indent=1))
            temporary.rename(path)


def one_run(size: Size, device: str, jobs: int, end: float, which: tuple[int, str]) -> dict | None:
    """One training in a process of its own, unless time is over."""
    if time.time() > end:
        return None
    if device == "cpu":
        torch.set_num_threads(1)
    seed, loss = which
    return {"seed": seed, "loss": loss, "jobs": jobs, **train(size, LOSSES[loss], seed, device)}


# --- the tables -----------------------------------------------------------------------------------


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half-width of the 95 % interval (Student's t)."""
    from scipy.stats import t

    n = len(values)
    if n < 2:
        return statistics.mean(values), math.nan
    return statistics.mean(values), t.ppf(0.975, n - 1) * statistics.stdev(values) / n**0.5


def tables(out: Path) -> list[str]:
    lines = []
    for part in SIZES:
        path = out / f"{part}.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text())
        size, runs = found["size"], found["runs"]
        seeds = [
            s
            for s in sorted({x["seed"] for x in runs})
            if {x["loss"] for x in runs if x["seed"] == s} == set(LOSSES)
        ]
        if not seeds:
            continue
        lines += [
            f"## Training: {size['layers']} layers, d = {size['width']}",
            "",
            f"A Llama-style model from scratch on generated word problems with synonyms (numbers "
            f"to {size['largest']}), {size['steps']} steps of {size['batch']} problems, "
            f"{len(seeds)} seeds, same initial weights and batches for both losses, on "
            f"{found['machine']}. Accuracy: the number is right, on {size['test']} problems "
            "whose pairs of numbers were never seen. Intervals: 95 %, over seeds. `python "
            f"benchmarks/language_finetune.py --part {part}`.",
            "",
            "| loss | accuracy, % | cross-entropy a token | seconds a run |",
            "| --- | ---: | ---: | ---: |",
        ]
        by_loss = {
            loss: [next(x for x in runs if x["seed"] == s and x["loss"] == loss) for s in seeds]
            for loss in LOSSES
        }
        for loss, chosen in by_loss.items():
            right = interval([100 * x["accuracy"] for x in chosen])
            entropy = interval([x["ce"] for x in chosen])
            seconds = statistics.mean(x["seconds"] for x in chosen)
            beside = max(x.get("jobs", 1) for x in chosen)
            lines.append(
                f"| {loss} | {right[0]:.1f} ± {right[1]:.1f} | {entropy[0]:.3f} ± "
                f"{entropy[1]:.3f} | {seconds:.0f}{f' ({beside} at once)' if beside > 1 else ''} |"
            )
        pairs = zip(by_loss["CE"], by_loss["CE + MCE"], strict=True)
        gain = interval([100 * (b["accuracy"] - a["accuracy"]) for a, b in pairs])
        lines += [
            "",
            f"CE + MCE minus CE, seed by seed: {gain[0]:+.1f} ± {gain[1]:.1f} points of accuracy.",
            "",
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*SIZES], default="finetune")
    parser.add_argument("--out", type=Path, default=Path("build/language"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--limit", type=float, default=math.inf, help="start no run after seconds")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    given = parser.parse_args()
    seeds = SIZES[given.part].seeds if given.seeds is None else given.seeds
    run(given.part, given.out, seeds, given.steps, given.limit, given.jobs)


if __name__ == "__main__":
    main()
