"""Error, time and memory of the matrix cross-entropy for language models.

    PYTHONPATH=src python benchmarks/language.py --part errors --out build/language   # CPU, 2 min
    PYTHONPATH=src python benchmarks/language.py --part cost --out build/language     # GPU, 1 min
    PYTHONPATH=src python benchmarks/language.py --part profile --out build/language  # its stages
    PYTHONPATH=src python benchmarks/language_finetune.py --out build/language        # CPU, minutes
    PYTHONPATH=src python benchmarks/language.py --part page --out build/language

Each part writes a JSON file into --out; the last line makes docs/benchmarks/language.md of those
that are there.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from likewise.language import MatrixCrossEntropy, stages

# --- error against the number of products ---------------------------------------------------------

SIZES = [(8, 5), (8, 50), (64, 40), (64, 1000), (256, 150), (256, 2000)]
KINDS = ["random", "peaked", "wide"]
PRODUCTS = [2, 4, 6, 8, 10, 20]
ORDERS = [4, 16]
POSITIONS = 40


def draw(kind: str, n: int, d: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Embeddings (n, d) and logits (POSITIONS, n)."""
    embedding = torch.randn(n, d, generator=generator, dtype=torch.float64)
    logits = torch.randn(POSITIONS, n, generator=generator, dtype=torch.float64)
    if kind == "peaked":
        best = torch.randint(n, (POSITIONS, 1), generator=generator)
        logits.scatter_add_(1, best, torch.full((POSITIONS, 1), 12.0, dtype=torch.float64))
    elif kind == "wide":
        logits *= 3
    return embedding, logits


def targets(logits: Tensor, rule: str, generator: torch.Generator) -> Tensor:
    """Targets with a cross-entropy of at most 10: as the model predicts them, or any of these."""
    log_q = logits.log_softmax(1)
    weight = log_q.exp() if rule == "from q" else torch.ones_like(log_q)
    weight = torch.where(log_q >= -10, weight, 0.0)
    return torch.multinomial(weight, 1, generator=generator)[:, 0]


def matrix_part(embedding: Tensor, logits: Tensor, labels: Tensor, **options: object) -> dict:
    logits = logits.clone().requires_grad_()
    loss = MatrixCrossEntropy(embedding, cross_entropy_weight=0.0, reduction="sum", **options)
    loss(logits, labels).backward()
    return {
        "value": loss.last.matrix_cross_entropy,
        "gradient": logits.grad,
        "products": loss.last.products.double().mean().item(),
    }


def errors() -> dict:
    rows = []
    for rule in ("from q", "any with CE <= 10"):
        for kind in KINDS:
            for d, n in SIZES:
                generator = torch.Generator().manual_seed(0)
                embedding, logits = draw(kind, n, d, generator)
                labels = targets(logits, rule, generator)
                truth = matrix_part(embedding, logits, labels, method="exact")

                def compare(truth: dict = truth, args: tuple = (embedding, logits, labels), **kw):
                    found = matrix_part(*args, **kw)
                    value = (found["value"] - truth["value"]).abs() / truth["value"]
                    size = truth["gradient"].norm(dim=1).clamp_min(1e-300)
                    gradient = (found["gradient"] - truth["gradient"]).norm(dim=1) / size
                    return {
                        "value": value.max().item(),
                        "gradient": gradient.median().item(),
                        "products": found["products"],
                    }

                row = {"targets": rule, "q": kind, "d": d, "n": n}
                for k in PRODUCTS:
                    row[f"lanczos {k}"] = compare(products=k, max_products=k, tolerance=0.0)
                row["adaptive"] = compare()
                for order in ORDERS:
                    row[f"taylor {order}"] = compare(method="taylor", order=order)
                rows.append(row)
                print(row["targets"], kind, d, n, f"{row['lanczos 10']['value']:.0e}", flush=True)
    return {"machine": machine(), "positions": POSITIONS, "rows": rows}


# --- time and memory ------------------------------------------------------------------------------


def machine() -> str:
    name = platform.processor() or platform.machine()
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
    return f"{name} (torch {torch.__version__})"


def clock(step: Callable[[], None], seconds: float) -> tuple[float, int]:
    """Median milliseconds of `step`, and how often it ran."""
    step()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < seconds and len(times) < 50):
        if torch.cuda.is_available():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            step()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        else:
            now = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - now))
    return statistics.median(times), len(times)


def peak(step: Callable[[], None]) -> float | None:
    """GiB that `step` takes at most, beside what is there before it."""
    if not torch.cuda.is_available():
        return None
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**30


def cost(
    vocabulary: int, width: int, positions: int, seconds: float, profile: Path | None = None
) -> dict:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device).manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, device=device)

    head = torch.nn.Linear(width, vocabulary, bias=False, device=device, dtype=torch.bfloat16)
    head.weight.data = (0.02 * normal(vocabulary, width)).to(torch.bfloat16)
    hidden = normal(positions, width).to(torch.bfloat16).requires_grad_()
    labels = torch.randint(vocabulary, (positions,), generator=generator, device=device)
    # Wide logits whose target stands out by more or less: from sure to badly wrong.
    logits = 2 * normal(positions, vocabulary)
    raised = 4 + 12 * torch.rand(positions, 1, generator=generator, device=device)
    logits.scatter_add_(1, labels[:, None], raised)
    logits = logits.to(torch.bfloat16).requires_grad_()
    upstream = torch.randn_like(logits)

    def lm_head() -> None:
        hidden.grad = head.weight.grad = None
        head(hidden).backward(upstream)

    def plain() -> None:
        logits.grad = None
        F.cross_entropy(logits.float(), labels).backward()

    def ours(**options: object) -> Callable[[], None]:
        loss = MatrixCrossEntropy(head, **options)

        def step() -> None:
            logits.grad = None
            loss(logits, labels).backward()

        step.loss = loss  # type: ignore[attr-defined]
        return step

    entries: list[tuple[str, Callable[[], None]]] = [
        ("LM head, forward and backward", lm_head),
        ("cross-entropy (PyTorch)", plain),
        ("CE + MCE, top 128", ours(top_k=128)),
        ("CE + MCE, top 128, 10 products", ours(top_k=128, tolerance=0.0)),
        ("CE + MCE, full vocabulary", ours()),
        ("CE + MCE, full vocabulary, 10 products", ours(tolerance=0.0)),
        ("CE + MCE, Taylor of order 4", ours(method="taylor")),
        ("CE + MCE, top 128, with embedding gradient", ours(top_k=128, embedding_gradient=True)),
    ]
    rows, base = [], None
    if profile is not None:
        entries = entries[:1] + entries[2:6]
    for name, step in entries:
        try:
            milliseconds, repeats = clock(step, seconds)
            head.weight.grad = hidden.grad = logits.grad = None
            row = {"name": name, "ms": milliseconds, "repeats": repeats, "GiB": peak(step)}
        except RuntimeError as error:  # one entry that fails must not cost the others
            rows.append({"name": name, "error": str(error)[:300]})
            print(name, "failed:", str(error)[:300], flush=True)
            continue
        base = base or milliseconds
        row["ratio"] = milliseconds / base
        if hasattr(step, "loss"):
            used = step.loss.last.products.double()
            row["products"] = [used.mean().item(), used.max().item()]
            row["ce"] = step.loss.last.cross_entropy.mean().item()
            row["mce"] = step.loss.last.matrix_cross_entropy.mean().item()
        head.weight.grad = hidden.grad = logits.grad = None
        rows.append(row)
        print(json.dumps(row), flush=True)
    if profile is not None:
        lines = [json.dumps(row) for row in rows]
        for part in (
            lambda: [stage_times(name, step) for name, step in entries[1:]],
            lambda: [json.dumps(fast_accuracy(head.weight, logits, labels))],
            lambda: [kernels(name, step) for name, step in entries[1:4:2]],
        ):
            try:
                lines += part()
            except RuntimeError as error:  # what was measured before is kept
                lines.append(f"failed: {str(error)[:600]}")
                print(lines[-1])
            write(profile, "\n".join(lines))
        return {}
    return {
        "machine": machine(),
        "vocabulary": vocabulary,
        "width": width,
        "positions": positions,
        "rows": rows,
        "accuracy": fast_accuracy(head.weight, logits, labels),
    }


@contextmanager
def timed(name: str, into: list) -> Iterator[None]:
    """The device's time from the first to the last command of a stage."""
    if not torch.cuda.is_available():
        now = time.perf_counter()
        yield
        into.append((name, now, time.perf_counter()))
        return
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    yield
    end.record()
    into.append((name, start, end))


def stage_times(name: str, step: Callable[[], None], repeats: int = 5) -> str:
    """Milliseconds of every stage of a step (mean), and how often it runs."""
    step()
    marks: list = []
    stages.watch.append(lambda title: timed(title, marks))
    try:
        for _ in range(repeats):
            with timed("whole step", marks):
                step()
    finally:
        stages.watch.clear()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    total: dict[str, list[float]] = {}
    for title, start, end in marks:
        length = start.elapsed_time(end) if hasattr(start, "elapsed_time") else 1e3 * (end - start)
        total.setdefault(title, []).append(length)
    lines = [f"{name}: stages, ms a step (times a step)"]
    for title, each in total.items():
        lines.append(f"    {title:20} {sum(each) / repeats:8.3f} ({len(each) / repeats:.0f})")
    rest = 2 * sum(total["whole step"]) - sum(sum(each) for each in total.values())
    lines.append(f"    {'elsewhere':20} {rest / repeats:8.3f}")
    print("\n".join(lines), flush=True)
    return "\n".join(lines)


def kernels(name: str, step: Callable[[], None]) -> str:
    """Which kernels take the time, how many there are, and how long the host takes for them."""
    from torch.profiler import ProfilerActivity, profile

    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    host = 1e3 * (time.perf_counter() - begin)
    if on_gpu:
        torch.cuda.synchronize()
    whole = 1e3 * (time.perf_counter() - begin)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        step()
    events = found.key_averages()

    def own(event: object) -> float:
        if on_gpu:
            return event.self_device_time_total  # type: ignore[attr-defined]
        return event.self_cpu_time_total  # type: ignore[attr-defined]

    launches = sum(e.count for e in events if "LaunchKernel" in e.key)
    lines = [f"{name}: host {host:.2f} ms, device {whole:.2f} ms, {launches} launches; ms, calls:"]
    for event in sorted(events, key=own, reverse=True)[:14]:
        lines.append(f"    {own(event) / 1e3:8.3f} {event.count:5} {event.key[:70]}")
    print("\n".join(lines), flush=True)
    return "\n".join(lines)


def fast_accuracy(weight: Tensor, logits: Tensor, labels: Tensor, count: int = 32) -> dict:
    """Error of the fast products on some positions, against float64 with many products."""
    logits, labels = logits.detach()[:count], labels[:count]
    out = {}
    for title, kept in (("", None), ("top 128, ", 128)):
        # 60 products for all tokens, whose exact values would take too long.
        truth = MatrixCrossEntropy(
            weight,
            precision="float64",
            method="lanczos" if kept is None else "exact",
            top_k=kept,
            products=60,
            max_products=60,
            tolerance=0.0,
            memory=2**31,
        )
        truth(logits.double(), labels)
        exact = truth.last.matrix_cross_entropy
        for name, options in {
            "adaptive": {},
            "10 products": {"tolerance": 0.0},
            "adaptive, float32": {"precision": "float32"},
        }.items():
            loss = MatrixCrossEntropy(weight, top_k=kept, **options)
            loss(logits, labels)
            error = (loss.last.matrix_cross_entropy - exact).abs() / exact
            out[title + name] = error.max().item()
    print(json.dumps(out), flush=True)
    return out


# --- the page -------------------------------------------------------------------------------------


def short(x: float) -> str:
    return "< 1e-12" if x < 1e-12 else f"{x:.0e}"


def error_tables(found: dict) -> list[str]:
    lines = [
        "## Error against the number of products",
        "",
        f"Relative error of the matrix cross-entropy against the exact value in float64, the worst "
        f"of {found['positions']} positions, on {found['machine']}. *random* q is the softmax of "
        "standard normal logits, *wide* of three times that, *peaked* of standard normal logits "
        "with one token raised by 12; embeddings are normal. `python benchmarks/language.py "
        "--part errors`.",
    ]
    for rule in ("from q", "any with CE <= 10"):
        columns = [
            *(f"{k}" for k in PRODUCTS),
            "adaptive (mean products)",
            *(f"Taylor {order}" for order in ORDERS),
        ]
        title = "drawn from q" if rule == "from q" else "any token with cross-entropy <= 10"
        lines += ["", f"### Targets: {title}", ""]
        lines += ["| q | d | n | " + " | ".join(columns) + " |"]
        lines += ["| --- | ---: | ---: |" + " ---: |" * len(columns)]
        for row in found["rows"]:
            if row["targets"] != rule:
                continue
            cells = [short(row[f"lanczos {k}"]["value"]) for k in PRODUCTS]
            adaptive = row["adaptive"]
            cells.append(f"{short(adaptive['value'])} ({adaptive['products']:.1f})")
            cells += [short(row[f"taylor {order}"]["value"]) for order in ORDERS]
            lines.append(f"| {row['q']} | {row['d']} | {row['n']} | " + " | ".join(cells) + " |")
    lines += ["", "### Gradient in the logits, targets drawn from q", ""]
    lines += ["Relative error in the norm, the median over positions.", ""]
    lines += ["| q | d | n | " + " | ".join(columns) + " |"]
    lines += ["| --- | ---: | ---: |" + " ---: |" * len(columns)]
    for row in found["rows"]:
        if row["targets"] == "from q":
            cells = [short(row[f"lanczos {k}"]["gradient"]) for k in PRODUCTS]
            adaptive = row["adaptive"]
            cells.append(f"{short(adaptive['gradient'])} ({adaptive['products']:.1f})")
            cells += [short(row[f"taylor {order}"]["gradient"]) for order in ORDERS]
            lines.append(f"| {row['q']} | {row['d']} | {row['n']} | " + " | ".join(cells) + " |")
    return lines


def cost_table(found: dict) -> list[str]:
    lines = [
        "## Time and memory",
        "",
        f"Vocabulary {found['vocabulary']:,}, d = {found['width']:,}, {found['positions']:,} "
        f"positions, bfloat16 logits and head, on {found['machine']}. Loss and gradient in the "
        "logits, median of repeated runs; GiB is the most that a step takes beside the logits and "
        "the head. `python benchmarks/language.py --part cost`.",
        "",
        "| | ms | / LM head | GiB | products a position: mean, most |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in found["rows"]:
        if "error" in row:
            lines.append(f"| {row['name']} | failed | | | |")
            continue
        memory = "" if row["GiB"] is None else f"{row['GiB']:.2f}"
        used = "" if "products" not in row else "{:.1f}, {:.0f}".format(*row["products"])
        cells = (row["name"], f"{row['ms']:.2f}", f"{row['ratio']:.2f}", memory, used)
        lines.append("| " + " | ".join(cells) + " |")
    parts = ", ".join(f"{name} {short(x)}" for name, x in found["accuracy"].items())
    lines += [
        "",
        f"Worst relative error of the matrix cross-entropy on 32 of these positions, against 60 "
        f"products (top 128: the exact method) in float64: {parts}.",
    ]
    return lines


def page(out: Path) -> str:
    lines = ["# Language: error, time, memory and training", ""]
    for name, table in (("cost", cost_table), ("errors", error_tables)):
        path = out / f"{name}.json"
        if path.exists():
            lines += [*table(json.loads(path.read_text())), ""]
    sys.path.insert(0, str(Path(__file__).parent))
    from language_finetune import tables

    lines += tables(out)
    return "\n".join(lines).rstrip() + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.rename(path)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["errors", "cost", "profile", "page"], required=True)
    parser.add_argument("--out", type=Path, default=Path("build/language"))
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/language.md"))
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--positions", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each entry, at most")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    if given.part == "errors":
        write(given.out / "errors.json", json.dumps(errors(), indent=1))
    elif given.part == "profile":
        cost(given.vocabulary, given.width, given.positions, 0.4, given.out / "profile.txt")
    elif given.part == "cost":
        found = cost(given.vocabulary, given.width, given.positions, given.seconds)
        write(given.out / "cost.json", json.dumps(found, indent=1))
    else:
        write(given.page, page(given.out))


if __name__ == "__main__":
    main()
