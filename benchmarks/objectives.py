"""Time and memory of every objective, forward and backward, beside other libraries.

    python benchmarks/objectives.py                       # here, with what is installed
    python benchmarks/objectives.py --out docs/benchmarks/objectives.md

Peers (lightly, pytorch-metric-learning, inf-cl) are measured where they can be imported: the same
rows, the same run, the same clock. A ratio is a peer's figure over ours: above 1, ours is better.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from likewise import Graph
from likewise import objectives as lw

Loss = Callable[[], Tensor]
WARM_UP = 5 if torch.cuda.is_available() else 1
CPU_SECONDS = 10
"""How long one entry is repeated on a CPU, at most."""


# --- measuring ---------------------------------------------------------------------------------


@dataclass
class Figure:
    milliseconds: float
    gibibytes: float
    note: str = ""


class Step:
    """Loss and gradient of one entry, on rows of its own."""

    def __init__(self, case: Case, make: Callable[[Tensor, Graph], Loss], device: str) -> None:
        torch.manual_seed(0)
        size = (case.samples * case.views, case.dim)
        self.rows = torch.randn(size, device=device, requires_grad=True)
        self.loss = make(self.rows, case.graph(case.samples, device))
        self.times: list[float] = []

    def __call__(self) -> None:
        self.rows.grad = None
        self.loss().backward()
        if self.rows.is_cuda:
            torch.backends.cuda.matmul.allow_tf32 = False

    def timed(self) -> None:
        if not self.rows.is_cuda:
            start = time.perf_counter()
            self()
            self.times.append(1e3 * (time.perf_counter() - start))
            return
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self()
        end.record()
        torch.cuda.synchronize()
        self.times.append(start.elapsed_time(end))

    def gibibytes(self) -> float:
        """The most memory that a step takes beside its rows."""
        if not self.rows.is_cuda:
            with _ResidentMemory() as memory:
                self()
            return memory.peak / 2**30
        self()
        self.rows.grad = None
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self()
        return (torch.cuda.max_memory_allocated() - before) / 2**30


class _ResidentMemory:
    """The growth of this process's memory, sampled (Linux)."""

    def __enter__(self) -> _ResidentMemory:
        self.start, self.peak, self.running = self._now(), 0, True
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()

    def _watch(self) -> None:
        while self.running:
            self.peak = max(self.peak, self._now() - self.start)
            time.sleep(0.001)

    @staticmethod
    def _now() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


# --- peers -------------------------------------------------------------------------------------


def peer(module: str) -> object | None:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def dense_ntxent(z: Tensor, temperature: float) -> Tensor:
    """NT-Xent as one writes it by hand: the whole matrix of similarities."""
    z = torch.nn.functional.normalize(z, dim=1)
    logits = z @ z.T / temperature
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    partner = torch.arange(len(z), device=z.device) ^ 1
    return torch.nn.functional.cross_entropy(logits.masked_fill(itself, -torch.inf), partner)


def with_tf32(loss: Loss) -> Loss:
    """TF32 products, in the backward as well: a step turns it off when it is done."""

    def step() -> Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        return loss()

    return step


# --- cases ---------------------------------------------------------------------------------------


@dataclass
class Case:
    title: str
    samples: int
    dim: int
    entries: dict[str, Callable[[Tensor, Graph], Loss]]
    repeats: int = 20
    rounds: int = 4
    """How often the entries take turns: the shorter a turn, the less a drifting host matters."""
    graph: Callable[[int, str], Graph] = field(
        default=lambda n, device: Graph.identity(n).views(2).to(device)
    )
    views: int = 2
    remark: str = ""
    cuda_only: bool = False


def ours(objective: torch.nn.Module) -> Callable[[Tensor, Graph], Loss]:
    def make(z: Tensor, graph: Graph) -> Loss:
        module = objective.to(z.device)
        generator = torch.Generator().manual_seed(0)
        return lambda: module(z, graph, generator=generator)

    return make


def two_views(build: Callable[[], Callable[[Tensor, Tensor], Tensor]]):
    def make(z: Tensor, graph: Graph) -> Loss:
        loss = build()
        return lambda: loss(z[0::2], z[1::2])

    return make


def with_labels(build: Callable[[], Callable[..., Tensor]]):
    def make(z: Tensor, graph: Graph) -> Loss:
        labels = torch.arange(len(z) // 2, device=z.device).repeat_interleave(2)
        loss = build()
        return lambda: loss(z, labels)

    return make


def pair_inputs(build: Callable[[], Callable[..., Tensor]]):
    def make(z: Tensor, graph: Graph) -> Loss:
        loss = build()
        return lambda: loss(z[0::2], ref_emb=z[1::2])

    return make


def inf_cl(z: Tensor, graph: Graph) -> Loss:
    """inf-cl's Triton tiles on a matrix of the same size: rows against all rows, self included."""
    module = peer("inf_cl")

    def loss() -> Tensor:
        unit = torch.nn.functional.normalize(z, dim=1)
        scale = torch.tensor(2.0, device=z.device)
        return module.cal_flash_loss(unit, unit, scale=scale).mean()

    return loss


def swav_peer(z: Tensor, graph: Graph) -> Loss:
    loss = peer("lightly.loss").SwaVLoss()
    prototypes = torch.nn.functional.normalize(torch.randn(300, z.shape[1], device=z.device))

    def step() -> Tensor:
        scores = torch.nn.functional.normalize(z, dim=1) @ prototypes.T
        return loss([scores[0::2], scores[1::2]], [])

    return step


def cases(lightly: object | None, metric: object | None) -> Iterable[Case]:
    def of_lightly(build: Callable) -> dict:
        return {"lightly": build} if lightly else {}

    def of_metric(build: Callable) -> dict:
        return {"pytorch-metric-learning": build} if metric else {}

    ntxent_peers = {
        **of_lightly(two_views(lambda: lightly.NTXentLoss(temperature=0.5))),
    }
    yield Case(
        "NT-Xent, 2 x 32,768 x 256, float32",
        32768,
        256,
        {
            "likewise": ours(lw.NTXent(0.5)),
            "likewise, IEEE products": ours(lw.NTXent(0.5, precision="ieee")),
            **ntxent_peers,
            "plain dense": lambda z, g: lambda: dense_ntxent(z, 0.5),
            **({"inf-cl (Triton)": inf_cl} if peer("inf_cl") else {}),
            "plain dense, TF32": lambda z, g: with_tf32(lambda: dense_ntxent(z, 0.5)),
        },
        repeats=5,
        cuda_only=True,
        remark="TF32 stands apart: its products keep 10 bits. inf-cl multiplies in its own "
        "precision (Triton's default for float32 is TF32).",
    )
    yield Case(
        "NT-Xent, 2 x 512 x 128, float32",
        512,
        128,
        {
            "likewise": ours(lw.NTXent(0.5)),
            "likewise, check_finite=False": ours(unchecked(lw.NTXent(0.5))),
            "plain dense": lambda z, g: lambda: dense_ntxent(z, 0.5),
            **ntxent_peers,
            **of_metric(with_labels(lambda: metric.NTXentLoss(temperature=0.5))),
        },
        repeats=200,
        rounds=50,
        remark="Bound by the host's launches. The plain form does not look for NaN: its like is "
        "check_finite=False.",
    )
    yield Case(
        "NT-Xent, 2 x 1,024 x 128, float32",
        1024,
        128,
        {
            "likewise": ours(lw.NTXent(0.5)),
            "plain dense": lambda z, g: lambda: dense_ntxent(z, 0.5),
            **ntxent_peers,
            **of_metric(with_labels(lambda: metric.NTXentLoss(temperature=0.5))),
        },
        repeats=60,
        rounds=20,
        cuda_only=True,
    )
    yield Case(
        "VICReg, 2 x 2,048 x 8,192, float32",
        2048,
        8192,
        {
            "likewise": ours(lw.VICReg()),
            **of_lightly(two_views(lambda: lightly.VICRegLoss())),
            **of_metric(pair_inputs(lambda: metric.VICRegLoss())),
        },
        repeats=10,
    )
    yield Case(
        "VIC2 on a label graph, N = 1,000,000, d = 64",
        1_000_000,
        64,
        {"likewise": ours(lw.VIC2())},
        repeats=3,
        graph=lambda n, device: Graph.from_labels(torch.arange(n) % 1000).to(device),
        views=1,
        remark="1,000 classes. The matrix that it stands for has 10^12 entries.",
    )
    d = 128
    identity: dict[str, tuple[torch.nn.Module, dict]] = {
        "NTXent": (lw.NTXent(0.5), ntxent_peers),
        "DecoupledContrastive": (
            lw.DecoupledContrastive(0.1),
            of_lightly(two_views(lambda: lightly.DCLLoss(temperature=0.1))),
        ),
        "InfoNCE": (lw.InfoNCE(2.0), {}),
        "BalancedContrastive": (lw.BalancedContrastive(), {}),
        "GeneralizedNTXent": (lw.GeneralizedNTXent(), {}),
        "PrototypeContrast": (lw.PrototypeContrast(), {}),
        "VIC2": (lw.VIC2(), {}),
        "SpectralContrastive": (lw.SpectralContrastive(), {}),
        "PairwiseVIC2": (lw.PairwiseVIC2(), {}),
        "VICReg": (lw.VICReg(), of_lightly(two_views(lambda: lightly.VICRegLoss()))),
        "BarlowTwins": (
            lw.BarlowTwins(),
            of_lightly(two_views(lambda: lightly.BarlowTwinsLoss())),
        ),
        "WhiteningMSE": (
            lw.WhiteningMSE(slice_size=256),
            of_lightly(whitening(lightly, d)) if lightly else {},
        ),
        "NegativeCosine": (
            lw.NegativeCosine(),
            of_lightly(two_views(lambda: lightly.NegativeCosineSimilarity())),
        ),
        "BYOLRegression": (lw.BYOLRegression(), {}),
        "SwAV": (lw.SwAV(d, prototypes=300), of_lightly(swav_peer)),
        "TotalCodingRate": (lw.TotalCodingRate(), {}),
        "MaximalCodingRateReduction": (lw.MaximalCodingRateReduction(), {}),
        "EMPSSL": (
            lw.EMPSSL(),
            of_lightly(two_views(lambda: _as_list(lightly.EMPSSLLoss()))),
        ),
        "MaximumEntropyCoding": (lw.MaximumEntropyCoding(), {}),
        "CorInfoMax": (lw.CorInfoMax(), {}),
        "MatrixUniformity": (lw.MatrixUniformity(), {}),
        "MatrixAlignment": (lw.MatrixAlignment(), {}),
        "MatrixSSL": (lw.MatrixSSL(), {}),
        "UniformityMCE": (lw.UniformityMCE(), {}),
        "UniformityMKL": (lw.UniformityMKL(), {}),
        "AbsoluteRegression": (lw.AbsoluteRegression(), {}),
        "RelativeRegression": (lw.RelativeRegression(), {}),
        "TraceObjective": (lw.TraceObjective(), {}),
        "OrthogonalHead": (lw.OrthogonalHead(), {}),
    }
    for name, (objective, peers) in identity.items():
        yield Case(f"all/{name}", 512, d, {"likewise": ours(objective), **peers}, repeats=20)


def unchecked(objective: lw.Objective) -> lw.Objective:
    objective.check_finite = False
    return objective


def whitening(lightly: object, dim: int):
    def make(z: Tensor, graph: Graph) -> Loss:
        # lightly wants views one after the other.
        loss = lightly.WMSELoss(embedding_dim=dim, w_size=256).to(z.device)
        return lambda: loss(torch.cat([z[0::2], z[1::2]]))

    return make


def _as_list(loss: Callable) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda first, second: loss([first, second])


# --- running -----------------------------------------------------------------------------------


def run(case: Case, device: str) -> dict[str, Figure]:
    """Every entry in turn, again and again: what slows the machine down slows all of them."""
    figures: dict[str, Figure] = {}
    steps: dict[str, Step] = {}
    for name, make in case.entries.items():
        if device == "cuda":
            torch.cuda.empty_cache()
        try:
            step = Step(case, make, device)
            memory = step.gibibytes()
            steps[name] = step
            figures[name] = Figure(float("nan"), memory)
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            figures[name] = Figure(float("nan"), float("nan"), str(error).splitlines()[0][:120])
    gc.collect()
    gc.disable()  # as timeit does
    rounds = case.rounds if device == "cuda" else 2  # some peers take many seconds on a CPU
    for _ in range(rounds):
        for step in steps.values():
            for _ in range(WARM_UP):
                step()  # the first after another entry pay for what that one left behind
            for _ in range(-(-case.repeats // rounds)):
                if device == "cuda" or sum(step.times) < 1e3 * CPU_SECONDS:
                    step.timed()
    gc.enable()
    for name, figure in figures.items():
        if name in steps:
            figure.milliseconds = statistics.median(steps[name].times)
        print(
            f"{case.title:48s} {name:32s} {figure.milliseconds:10.2f} ms "
            f"{figure.gibibytes:8.3f} GiB {figure.note}",
            flush=True,
        )
    return figures


def accuracy(device: str) -> list[tuple[str, float, float]]:
    """Relative errors against float64 of the value and the gradient, 2 x 8,192 x 256."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(16384, 256, generator=generator).to(device)
    graph = Graph.identity(8192).views(2).to(device)

    def gradient(rows: Tensor, loss: Callable[[Tensor], Tensor]) -> tuple[float, Tensor]:
        rows = rows.clone().requires_grad_()
        value = loss(rows)
        value.backward()
        return value.item(), rows.grad.double()

    exact, slope = gradient(z.double(), lambda rows: dense_ntxent(rows, 0.1))
    results = []
    for name, loss in (
        ("likewise", lambda rows: lw.NTXent(0.1)(rows, graph)),
        ("likewise, IEEE products", lambda rows: lw.NTXent(0.1, precision="ieee")(rows, graph)),
        ("plain dense", lambda rows: dense_ntxent(rows, 0.1)),
        ("plain dense, TF32", lambda rows: with_tf32(lambda: dense_ntxent(rows, 0.1))()),
    ):
        value, found = gradient(z, loss)
        torch.backends.cuda.matmul.allow_tf32 = False
        error = (found - slope).norm() / slope.norm()
        results.append((name, abs(value - exact) / abs(exact), float(error)))
    return results


def table(title: str, figures: dict[str, Figure], remark: str) -> str:
    lines = [
        f"## {title}",
        "",
        "| | ms | GiB | time / ours | memory / ours |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    base = figures["likewise"]
    for name, figure in figures.items():
        if figure.note:
            lines.append(f"| {name} | failed: {figure.note} | | | |")
            continue
        lines.append(
            f"| {name} | {figure.milliseconds:.2f} | {figure.gibibytes:.3f} | "
            f"{figure.milliseconds / base.milliseconds:.2f} | {memory_ratio(figure, base)} |"
        )
    return "\n".join([*lines, "", *([remark, ""] if remark else [])])


def memory_ratio(figure: Figure, base: Figure) -> str:
    """Below a page or two, memory sampled from outside says nothing."""
    return f"{figure.gibibytes / base.gibibytes:.2f}" if base.gibibytes > 5e-4 else ""


def summary(rows: dict[str, dict[str, Figure]]) -> str:
    lines = [
        "## Every objective, 2 x 512 x 128, float32",
        "",
        "| objective | ms | GiB | peer | peer's ms | time / ours | memory / ours |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: |",
    ]
    for name, figures in rows.items():
        base = figures["likewise"]
        start = f"| {name} | {base.milliseconds:.2f} | {base.gibibytes:.3f} "
        if base.note:
            start = f"| {name} | failed: {base.note} | "
        peers = {k: v for k, v in figures.items() if k != "likewise"}
        if not peers:
            lines.append(start + "| | | | |")
        for other, figure in peers.items():
            time_ratio = figure.milliseconds / base.milliseconds
            lines.append(
                start + f"| {other} | {figure.milliseconds:.2f} | {time_ratio:.2f} | "
                f"{memory_ratio(figure, base)} |"
            )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write the tables to this Markdown file")
    parser.add_argument("--only", default="", help="run the cases whose title holds this text")
    arguments = parser.parse_args()
    device = arguments.device
    lightly, metric = peer("lightly.loss"), peer("pytorch_metric_learning.losses")
    machine = torch.cuda.get_device_name() if device == "cuda" else f"CPU ({platform.machine()})"
    if device == "cpu":
        machine += f", {torch.get_num_threads()} threads"
    parts, rows = [], {}
    for case in cases(lightly, metric):
        if arguments.only not in case.title or (case.cuda_only and device == "cpu"):
            continue
        figures = run(case, device)
        if case.title.startswith("all/"):
            rows[case.title.removeprefix("all/")] = figures
        else:
            parts.append(table(case.title, figures, case.remark))
    if rows:
        parts.append(summary(rows))
    if device == "cuda" and not arguments.only:
        lines = [
            "## Accuracy of NT-Xent in float32 against float64, 2 x 8,192 x 256, temperature 0.1",
            "",
            "| | relative error of the value | of the gradient |",
            "| --- | ---: | ---: |",
        ]
        for name, value, gradient in accuracy(device):
            print(f"accuracy {name:32s} {value:.1e} {gradient:.1e}", flush=True)
            lines.append(f"| {name} | {value:.1e} | {gradient:.1e} |")
        parts.append("\n".join([*lines, ""]))
    if arguments.out:
        versions = ", ".join(
            f"{name} {module.__version__}"
            for name in ("torch", "lightly", "pytorch_metric_learning", "triton")
            if (module := peer(name)) is not None
        )
        text = "\n".join(
            [
                "# Objectives: time and memory",
                "",
                f"Forward and backward, median of repeated runs, on {machine} ({versions}). Made "
                f"by `python benchmarks/objectives.py --out {arguments.out}`; peers run in the "
                "same process on the same rows. A ratio above 1 means that ours is faster or "
                "leaner.",
                "",
                *parts,
            ]
        )
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        aside = arguments.out.with_suffix(".partial")
        aside.write_text(text)
        aside.replace(arguments.out)


if __name__ == "__main__":
    main()
