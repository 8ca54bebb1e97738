"""docs/benchmarks/use.md, from the figures of `use.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from use_figures import PAGE, figures

from likewise.library.duplicates import DETAIL, STRICT
from likewise.runs import write_atomically


def write_page() -> None:
    found = figures()
    lines = ["# Search, cluster, classify, duplicates: figures", ""]
    if "run" in found:
        encoder = found["run"]["encoder"]
        # Figures of another encoder are not those of this page.
        lines += _fashion_lines({n: e for n, e in found.items() if e.get("encoder") == encoder})
    if "search a million" in found:
        lines += _million_lines(found)
    with write_atomically(PAGE) as aside:
        aside.write_text("\n".join(lines) + "\n")


def _fashion_lines(found: dict[str, Any]) -> list[str]:
    run = found["run"]["parts"]["about"]
    config = run["config"]
    size = config["image_size"]
    lines = [
        f"On the {run['images']:,} test images of Fashion-MNIST (Debian's package "
        "`dataset-fashion-mnist`), "
        f"with an encoder that `likewise train` made of `{config['data']}` "
        f"{'without labels' if run['labels'] is None else 'with labels'}: recipe "
        f"`{config['recipe']}`, encoder `{config['encoder']}`, {config['epochs']} epochs, batch "
        f"{config['batch_size']}, {size} x {size} pixels, views `{config['views']}`, seed "
        f"{config['seed']}. Labels serve to score, and to answer where it says so.",
        "",
        "```",
        f"likewise train {config['data']} --out {run['path']} --recipe {config['recipe']} "
        f"--encoder {config['encoder']} --views {config['views']} --epochs {config['epochs']}",
        f"python benchmarks/use.py --run {run['path']} --part fashion",
        "```",
        f"{run['machine']}; load {_loads(found)}, so seconds are upper bounds where others worked. "
        "`--run` takes any other run.",
        "",
    ]
    if "search" in found:
        lines += [
            "## Search: precision at 10",
            "The share of the ten nearest images that have the class of the query, over all images "
            "as queries.",
            "",
            "| rows | precision at 10 |",
            "| --- | ---: |",
            *(f"| {name} | {row['precision']:.3f} |" for name, row in _rows(found, "search")),
            "",
        ]
    if "cluster" in found:
        lines += [
            "## Cluster: adjusted Rand index",
            "Against the ten classes. What HDBSCAN takes for noise counts as one more cluster.",
            "",
            "| method | ARI | clusters | noise | seconds |",
            "| --- | ---: | ---: | ---: | ---: |",
            *(
                f"| {name} | {row['ari']:.3f} | {row['clusters']} | {row['noise']:.1%} | "
                f"{row['seconds']:.1f} |"
                for name, row in _rows(found, "cluster")
            ),
            "",
        ]
    if "classify" in found:
        lines += _classify_lines(found)
    if "duplicates" in found:
        lines += _duplicates_lines(found)
    return lines


def _rows(found: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    return list(found[name]["parts"].items())


def _loads(found: dict[str, Any]) -> str:
    loads = [part["load"] for entry in found.values() for part in entry.get("parts", {}).values()]
    return f"{min(loads):g} to {max(loads):g}"


def _duplicates_lines(found: dict[str, Any]) -> list[str]:
    parts = dict(found["duplicates"]["parts"])
    other = parts.pop("thresholds")
    return [
        "## Duplicates: planted copies",
        "600 copies are added: crops to 85 to 95 % of the side, JPEG of quality 30 to 80, "
        "rotations by 2 to 8 degrees, 200 of each. Precision counts every other pair as wrong, "
        "also those among the originals, of which some are near-duplicates in truth. Thresholds "
        "were chosen on other images, 5,000 of the training set with 600 copies of their own: the "
        f"smallest within 0.002 of the best F1, {other['best_f1']:.3f}, are {other['strict']:g} "
        f"for the whole and {other['detail']:g} for details; the command has {STRICT:g} and "
        f"{DETAIL:g}.",
        "",
        "| compared by | recall | crops | re-encodings | rotations | precision | pairs among "
        "originals | seconds | of a core |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {row['recall']:.3f} | {row['recall_crop']:.3f} | "
            f"{row['recall_re-encoding']:.3f} | {row['recall_rotation']:.3f} | "
            f"{row['precision']:.3f} | {row['pairs_among_originals']} | {row['seconds']:.0f} | "
            f"{row['core_seconds']:.0f} |"
            for name, row in parts.items()
        ),
        "",
    ]


def _classify_lines(found: dict[str, Any]) -> list[str]:
    labels = spread(found["classify"]["parts"])

    def cell(row: dict[str, Any], name: str) -> str:
        return f"{row[name]['mean']:.3f} ± {row[name]['deviation']:.3f}" if name in row else ""

    columns = ("accuracy", "calibration_error", "expected", "accuracy_at_0.8", "kept_at_0.8")
    lines = [
        "## Classify: 300 simulated answers",
        f"Mean and deviation over {labels['seeds']} seeds, on the images without an answer. The "
        'calibration error is over 15 bins. "Inside" is how often the accuracy lay in the 95 % '
        "interval that was given for it, and that interval's mean width.",
        "",
        "| what was answered | accuracy | calibration error | accuracy that was expected | "
        "accuracy at confidence 0.8 | share of that | inside |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = [("the class of 300 random images", labels)]
    for name, rows_of in (
        ("answers", 'by whitened rows (`Probe(metric="whitened")`)'),
        ("plain answers", "by the rows as they are, as `likewise ask` does"),
    ):
        if name in found:
            own = spread(found[name]["parts"])
            words = (
                f"{own['answers']['mean']:.0f} times yes or no, to {own['questions']['mean']:.0f} "
                f"grids that the default sampler asked {rows_of}; {own['placed']['mean']:.0f} "
                f"images placed, {own['classes']['mean']:.1f} classes found"
            )
            rows.append((words, own))
    for words, row in rows:
        cells = " | ".join(cell(row, name) for name in columns)
        share = (
            f"{round(row['inside']['mean'] * row['seeds'])} of {row['seeds']}, "
            f"{row['width']['mean']:.2f} wide"
        )
        lines.append(f"| {words} | {cells} | {share} |")
    logistic = cell(labels, "logistic_accuracy"), cell(labels, "logistic_calibration_error")
    lines += [
        "",
        "scikit-learn's LogisticRegressionCV (columns standardised, C of 13 from 1e-4 to 100 by "
        "the log loss in five folds) on the same 300 random labels: accuracy "
        f"{logistic[0]}, calibration error {logistic[1]}. With 100 more labels: accuracy "
        f'{cell(labels, "accuracy_100_proposed")} where `classify` chose them ("ask next"), '
        f"{cell(labels, 'accuracy_100_random')} where they were drawn.",
        "",
    ]
    return lines


def _million_lines(found: dict[str, Any]) -> list[str]:
    row = found["search a million"]
    lines = [
        "## A million rows",
        "```",
        "python benchmarks/use.py --part million",
        "```",
        f"Search among {row['rows']:,} x {row['dim']} random rows in an index of four files, exact "
        "(the 20 nearest are those of float64 over all rows: "
        f"{'yes' if row['exact'] else 'NO'}): {row['median_seconds']:.2f} s a query (median of 20; "
        f"fastest {row['fastest_seconds']:.2f} s; the first, which reads the disk, "
        f"{row['first_seconds']:.1f} s), {row['core_seconds']:.2f} s of processor time. "
        f"{row['machine']}, load {row['load']:g} by others while it ran.",
    ]
    if "add a thousand" in found:
        more = found["add a thousand"]
        lines += [
            "",
            f"A folder of {more['images'] - 1000:,} files with their index gets 1,000 more: "
            f"{more['embedded']:,} images are embedded, {more['unchanged']:,} are not read (they "
            "are empty files: reading one would find it broken), the old rows "
            f"{'stay untouched' if more['old_rows_untouched'] else 'ARE REWRITTEN'}, "
            f"{more['bytes_of_new_rows'] / 1e6:.1f} MB of rows are written. The update takes "
            f"{more['seconds_of_the_update']:.1f} s, where the 1,000 alone in an index of their "
            f"own take {more['seconds_of_a_thousand_alone']:.1f} s; the difference is comparing "
            "the size and time of a million files and writing their list. Listing the folder takes "
            f"{more['seconds_to_list_the_folder']:.1f} s, opening the index "
            f"{more['seconds_to_open_the_index']:.1f} s (load {more['load']:g}).",
        ]
    return lines


def spread(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    rows = list(parts.values())
    return {
        name: {
            "mean": float(np.mean([row[name] for row in rows])),
            "deviation": float(np.std([row[name] for row in rows])),
        }
        for name in rows[0]
        if isinstance(rows[0][name], float)
    } | {"seeds": len(rows)}
