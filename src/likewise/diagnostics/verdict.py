"""Is it collapsing, and why? A plain-language verdict with the figures behind it.

The thresholds are the constants below. They are judgements, chosen so that each fires on the
constructed case that it is named after and stays silent on the others (tests/diagnostics), and
looked at on small trained runs (benchmarks/verdict.py; docs/diagnostics.md has the table); move
them by passing `thresholds`. A rule whose figures are undefined does not fire, and is listed under
`not_examined`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

from likewise.diagnostics.evidence import Evidence
from likewise.diagnostics.figures import Figures

FULL_COLLAPSE_SPREAD = 0.01
"""Full collapse: 1 - |mean of unit rows|^2 below this. All rows point (nearly) the same way; rows
with independent directions have 1 - 1/n, encoders that end in a ReLU keep 0.1 or more."""

DIMENSIONAL_COLLAPSE_SHARE = 0.1
"""Dimensional collapse: the centred effective rank, of what the loss sees or of the encoder's
output, is below this share of the dimensions that could be used, min(d, n - 1). The encoder is
asked, too, because noise in a collapsed projector has full rank: VICReg without variance and
covariance terms ends with 33 of 256 directions behind the projector and 2.7 of 128 in front."""

DIMENSIONAL_COLLAPSE_MOST = 8.0
"""... but no more than so many directions are asked for, however wide the projector: a share of
thousands of dimensions says nothing (VICReg in 256 dimensions uses 11 on digits, and is not
collapsed; collapsed runs use 1 to 2)."""

DIMENSIONAL_COLLAPSE_LEAST = 1.5
"""... or below this many directions, however few dimensions there are (at least 3)."""

ABSORPTION_RATIO = 4.0
"""The projector absorbs the augmentation: the share of variance between views of one sample is
this many times smaller behind the projector than in front of it."""

ABSORPTION_NOISE = 0.1
"""... while in front of it that share is at least this."""

WEAK_NOISE = 0.02
"""Augmentation too weak: views of one sample make less than this share of the variance ..."""

WEAK_CONFUSION = 0.01
"""... and a view's nearest other view is another sample's less often than this ..."""

WEAK_LIFT = 0.5
"""... and, where labels are known, nearest negatives share the label no more often than this way
from chance (0) to always (1): an encoder that is invariant because it is good is not blamed."""

STRONG_NOISE = 0.7
"""Augmentation too strong (or training too short): views of one sample make more than this share
of the variance; 1 is where they are strangers."""

IMBALANCE_RATIO = 10.0
"""Class imbalance: the largest class is this many times the smallest, or more."""


@dataclass(frozen=True)
class Thresholds:
    """The constants of this module, to be changed together."""

    full_collapse_spread: float = FULL_COLLAPSE_SPREAD
    dimensional_collapse_share: float = DIMENSIONAL_COLLAPSE_SHARE
    dimensional_collapse_most: float = DIMENSIONAL_COLLAPSE_MOST
    dimensional_collapse_least: float = DIMENSIONAL_COLLAPSE_LEAST
    absorption_ratio: float = ABSORPTION_RATIO
    absorption_noise: float = ABSORPTION_NOISE
    weak_noise: float = WEAK_NOISE
    weak_confusion: float = WEAK_CONFUSION
    weak_lift: float = WEAK_LIFT
    strong_noise: float = STRONG_NOISE
    imbalance_ratio: float = IMBALANCE_RATIO

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{entry.name} is {value!r}: give a finite number from 0")


@dataclass(frozen=True)
class Finding(Figures):
    """One thing that is the case.

    Attributes:
        name: "full collapse", "dimensional collapse", ...
        sentence: what was found, in words.
        figures: the numbers behind it, with the thresholds.
        remedies: what to try, the likeliest first.
    """

    name: str
    sentence: str
    figures: dict[str, float]
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Verdict(Figures):
    """What :func:`verdict` says.

    Attributes:
        healthy: whether nothing was found.
        findings: what was found, the gravest first; "healthy" alone where nothing was.
        not_examined: rules that could not be applied, and why.
        evidence: all figures.
    """

    healthy: bool
    findings: tuple[Finding, ...]
    not_examined: tuple[str, ...]
    evidence: Evidence

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the findings."""
        return tuple(finding.name for finding in self.findings)

    def text(self) -> str:
        """The verdict for a terminal."""
        lines = []
        for finding in self.findings:
            lines.append(f"{finding.name.capitalize()}: {finding.sentence}")
            lines += [f"  try: {remedy}" for remedy in finding.remedies]
        lines += [f"Not examined: {reason}" for reason in self.not_examined]
        return "\n".join(lines)


def verdict(evidence: Evidence, thresholds: Thresholds | None = None) -> Verdict:
    """Healthy or not, why, and what to try.

    ===============================  ============================================================
    full collapse                    `spread` < 0.01, or every row is zero
    dimensional collapse             `effective_rank` < max(min(0.1 min(d, n - 1), 8), 1.5), d >= 3;
                                     or the same of `encoder_rank`
    augmentation too strong          `noise` > 0.7
    augmentation too weak            `noise` < 0.02, `confusion` < 0.01 and `label_lift` < 0.5
    projector absorbs augmentation   `encoder_noise` >= 0.1 and >= 4 times `projector_noise`
    class imbalance                  `imbalance` >= 10
    healthy                          none of these
    ===============================  ============================================================

    After a full collapse nothing else is asked of the embeddings. `noise` is that of the
    projector's output (which the loss sees) where there is one. What an absorbing projector means
    (geometry, sections 4 and 5): the encoder still knows what the projector threw away.

    Args:
        evidence: see :func:`likewise.diagnostics.gather_evidence`.
        thresholds: others than the defaults.

    >>> import torch
    >>> from likewise.diagnostics import gather_evidence
    >>> same = torch.ones(50, 8)
    >>> verdict(gather_evidence(same, same)).names
    ('full collapse',)
    """
    limits = thresholds or Thresholds()
    findings: list[Finding] = []
    skipped: list[str] = []
    for rule in RULES:
        found = rule(evidence, limits)
        if isinstance(found, Finding):
            findings.append(found)
        elif found is not None:
            skipped.append(found)
        if rule is _full_collapse and isinstance(found, Finding):
            imbalance = _imbalance(evidence, limits)
            findings += [imbalance] if isinstance(imbalance, Finding) else []
            break
    healthy = not findings
    if healthy:
        findings.append(_healthy(evidence))
    return Verdict((), healthy, tuple(findings), tuple(skipped), evidence)


def _full_collapse(e: Evidence, t: Thresholds) -> Finding | str | None:
    if e.spread >= t.full_collapse_spread:
        return None
    what = f"all embeddings point the same way (spread {e.spread:.2g}, of at most 1)."
    if math.isnan(e.spread):
        what = "every embedding is zero."
    return Finding(
        (),
        "full collapse",
        what,
        {"spread": e.spread, "threshold": t.full_collapse_spread},
        (
            "check that gradients are stopped on one branch (SimSiam, BYOL), or that negatives or "
            "a variance term are in the loss",
            "lower the learning rate, and look for NaN or a dead ReLU before the output",
            "use batch norm in the projector",
        ),
    )


def _dimensional_collapse(e: Evidence, t: Thresholds) -> Finding | str | None:
    if math.isnan(e.effective_rank):
        return "dimensional collapse: the rows do not vary"
    usable = min(e.dim, e.rows - 1)
    if usable < 3:
        return f"dimensional collapse: {e.rows} rows of {e.dim} numbers have no dimensions to lose"
    figures: dict[str, float] = {}
    sentences = []
    least = _least_rank(usable, t)
    if e.effective_rank < least:
        sentences.append(f"of {usable} dimensions about {e.effective_rank:.1f} are in use.")
        figures |= {"effective_rank": e.effective_rank, "usable": usable, "threshold": least}
        if e.classes > 1 and e.effective_rank > 0.5 * (e.classes - 1):
            sentences.append(
                f"That is about one direction less than there are classes ({e.classes})."
            )
    inner = min(e.encoder_dim, e.rows - 1)
    if inner >= 3 and e.encoder_rank < _least_rank(inner, t):
        sentences.append(
            f"of {inner} dimensions of the encoder's output about {e.encoder_rank:.1f} are in use."
        )
        figures |= {
            "encoder_rank": e.encoder_rank,
            "encoder_usable": inner,
            "encoder_threshold": _least_rank(inner, t),
        }
    if not sentences:
        return None
    return Finding(
        (),
        "dimensional collapse",
        " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences),
        figures,
        (
            "weigh the repulsion or covariance term more, or lower the temperature",
            "use larger batches: the rank of a batch bounds what the loss can see",
            "use weaker augmentation: directions that views move along are given up first",
            "train longer: rank grows during training",
        ),
    )


def _least_rank(usable: int, t: Thresholds) -> float:
    """The directions that are asked for where `usable` could be used."""
    asked = min(t.dimensional_collapse_share * usable, t.dimensional_collapse_most)
    return max(asked, t.dimensional_collapse_least)


def _too_strong(e: Evidence, t: Thresholds) -> Finding | str | None:
    if math.isnan(e.noise):
        return "augmentation strength: needs two views of every sample"
    if e.noise <= t.strong_noise:
        return None
    what = (
        f"two views of one sample are hardly more alike than strangers: views make "
        f"{100 * e.noise:.0f} % of the variance (or training has only begun)."
    )
    if isinstance(_dimensional_collapse(e, t), Finding):
        # Measured: without stopped gradients 95 % (SimSiam), with slivers for views 82 %.
        what = (
            f"views make {100 * e.noise:.0f} % of the variance that the collapse has left. Too "
            "strong an augmentation may be its cause; so may a loss that holds nothing apart, or "
            "a training that has only begun."
        )
    return Finding(
        (),
        "augmentation too strong",
        what,
        {"noise": e.noise, "confusion": e.confusion, "threshold": t.strong_noise},
        (
            "train longer, and look at this figure again",
            "use milder crops and colours (the policies moderate and small)",
            "weigh the attraction more (smaller lambda, larger temperature)",
        ),
    )


def _too_weak(e: Evidence, t: Thresholds) -> Finding | str | None:
    if math.isnan(e.noise) or math.isnan(e.confusion):
        return None  # said by _too_strong
    weak = e.noise < t.weak_noise and e.confusion < t.weak_confusion
    if not weak or (not math.isnan(e.label_lift) and e.label_lift >= t.weak_lift):
        return None
    known = ""
    if not math.isnan(e.label_lift):
        known = (
            f", and nearest negatives share the label {100 * e.label_lift:.0f} % of the way from "
            "chance to always"
        )
    return Finding(
        (),
        "augmentation too weak",
        f"views make {100 * e.noise:.1f} % of the variance and are never confused{known}: the task "
        "is solved without learning what samples have in common.",
        {
            "noise": e.noise,
            "confusion": e.confusion,
            "label_lift": e.label_lift,
            "threshold": t.weak_noise,
        },
        (
            "use stronger crops and colours (the policies large or simclr)",
            "add known relations (labels or answers) to the graph",
        ),
    )


def _absorbs(e: Evidence, t: Thresholds) -> Finding | str | None:
    if math.isnan(e.encoder_noise) or math.isnan(e.projector_noise):
        return "projector: needs encoder and projector outputs of two views"
    strong = e.encoder_noise >= t.absorption_noise
    if not strong or e.encoder_noise < t.absorption_ratio * e.projector_noise:
        return None
    return Finding(
        (),
        "projector absorbs the augmentation",
        f"views make {100 * e.encoder_noise:.0f} % of the variance in front of the projector and "
        f"{100 * e.projector_noise:.1f} % behind it: the projector, not the encoder, is invariant.",
        {
            "encoder_noise": e.encoder_noise,
            "projector_noise": e.projector_noise,
            "threshold": t.absorption_ratio,
        },
        (
            "use the encoder's output, never the projector's, for search and classification",
            "use a shallower or narrower projector if the encoder itself should be invariant",
            "use weaker augmentation if the projector's rank is low",
        ),
    )


def _imbalance(e: Evidence, t: Thresholds) -> Finding | str | None:
    if math.isnan(e.imbalance):
        return "class imbalance: needs labels of at least two classes"
    if e.imbalance < t.imbalance_ratio:
        return None
    return Finding(
        (),
        "class imbalance",
        f"the largest of {e.classes} classes has {e.imbalance:.0f} times the samples of the "
        "smallest: rare classes tend to merge.",
        {"imbalance": e.imbalance, "classes": e.classes, "threshold": t.imbalance_ratio},
        (
            "balance the graph: Graph.from_labels(labels, balance=1.0)",
            "sample batches by class, or ask for answers about rare classes first",
            "report scores averaged over classes, not over samples",
        ),
    )


def _healthy(e: Evidence) -> Finding:
    return Finding(
        (),
        "healthy",
        f"about {e.effective_rank:.1f} of {min(e.dim, e.rows - 1)} dimensions are in use and no "
        "sign of collapse was found.",
        {"spread": e.spread, "effective_rank": e.effective_rank, "noise": e.noise},
        (),
    )


RULES: tuple[Callable[[Evidence, Thresholds], Finding | str | None], ...] = (
    _full_collapse,
    _dimensional_collapse,
    _too_strong,
    _too_weak,
    _absorbs,
    _imbalance,
)
"""In the order of gravity."""
