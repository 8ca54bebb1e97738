"""All scores of one representation: as a value, as JSON and as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from likewise.evaluation.classification import Classification
from likewise.evaluation.clustering import Clustering
from likewise.evaluation.few_labels import FewLabels
from likewise.evaluation.probe import Probe

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class Evaluation:
    """What :func:`~likewise.evaluation.evaluate_embeddings` found.

    Attributes:
        knn: the nearest-neighbour classifier, by k.
        linear: the linear probe; None if not asked for.
        few_labels: few-label probes, by the number of labels of each class.
        clustering: k-means against the classes of the test rows; None if not asked for.
        rank: `rank_me` (exp of the entropy of the singular values of the training rows, RankMe),
            `effective_rank` (the same of the eigenvalues of their covariance), `dim` and `rows`.
        class_names: the name of each class index, where classes have names.
        settings: what was asked for.
        seconds: how long all took.
        notes: what a reader of the scores should know.
    """

    knn: dict[int, Classification] = field(default_factory=dict)
    linear: Probe | None = None
    few_labels: dict[int, FewLabels] = field(default_factory=dict)
    clustering: Clustering | None = None
    rank: dict[str, float] = field(default_factory=dict)
    class_names: list[str] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """One number a score: "knn-200", "linear", "few-labels-10", "nmi", "rank-me", ..."""
        found = {f"knn-{k}": scores.accuracy for k, scores in self.knn.items()}
        if self.linear is not None:
            found["linear"] = self.linear.accuracy
        found |= {f"few-labels-{n}": scores.mean for n, scores in self.few_labels.items()}
        if self.clustering is not None:
            found |= {
                "nmi": self.clustering.nmi,
                "ari": self.clustering.ari,
                "cluster-accuracy": self.clustering.accuracy,
            }
        return found | {
            "rank-me": self.rank["rank_me"],
            "effective-rank": self.rank["effective_rank"],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries, as JSON has them."""
        return {
            "summary": self.summary(),
            "knn": {str(k): scores.to_dict() for k, scores in self.knn.items()},
            "linear": None if self.linear is None else self.linear.to_dict(),
            "few_labels": {str(n): scores.to_dict() for n, scores in self.few_labels.items()},
            "clustering": None if self.clustering is None else self.clustering.to_dict(),
            "rank": dict(self.rank),
            "class_names": self.class_names,
            "settings": dict(self.settings),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def table(self) -> Table:
        """For a terminal: ``rich.print(evaluation.table())``."""
        from rich.table import Table

        table = Table("score", "value", "detail", caption="\n".join(self.notes) or None)
        for k, scores in self.knn.items():
            detail = "nearest neighbour" if k == 1 else f"{k} nearest, {_top5(scores)}"
            table.add_row(f"kNN, k = {k}", _percent(scores.accuracy), detail.rstrip(", "))
        if (probe := self.linear) is not None:
            how = probe.settings["method"]
            if how == "lbfgs":
                how = f"penalty {probe.settings['penalty']:.2g}"
            detail = ", ".join(filter(None, [how, _top5(probe)]))
            table.add_row("linear probe", _percent(probe.accuracy), detail)
        for n, few in self.few_labels.items():
            detail = f"± {100 * few.deviation:.2f} over {len(few.accuracies)} draws"
            name = "1 label a class" if n == 1 else f"{n} labels a class"
            table.add_row(name, _percent(few.mean), detail)
        if (found := self.clustering) is not None:
            detail = f"NMI {found.nmi:.3f}, ARI {found.ari:.3f}"
            table.add_row(f"k-means, {found.clusters} clusters", _percent(found.accuracy), detail)
        rank = self.rank
        table.add_row("RankMe", f"{rank['rank_me']:.1f}", f"of {rank['dim']}")
        covariance = "of the covariance, centred"
        table.add_row("effective rank", f"{rank['effective_rank']:.1f}", covariance)
        return table


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _top5(scores: Classification) -> str:
    return "" if scores.top5 is None else f"top-5 {_percent(scores.top5)}"
