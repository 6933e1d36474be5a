"""Share what 03_mnist, 04_cifar10, 05_places205 and 06_nuswide do alike, one for each benchmark.

`records` are runs as described, `published` are runs as published; both are of one data set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from IPython.display import display
from matplotlib.figure import Figure

from baselines import PUBLISHED_FAULTS
from hmoh import hadamard
from study import claims, figures, scorecard, tables
from study.datasets import Dataset, split
from study.profile import BITS, SEEDS
from study.select import PAPER_METHODS, best_rival, differences, metric_of, values
from study.tables import Table, number, with_interval

__all__ = ["BEST", "advantage", "as_published", "both_readings", "cells"]
__all__ += ["describe_data", "describe_runs", "early", "early_curves", "gain_at_low_bits", "lead"]
__all__ += ["of_method", "precision_at_k", "precision_recall", "repeated_columns", "sample"]
__all__ += ["step", "stream", "too_early", "untrained"]

# What the paper calls the state of the art.
BEST = ("MIHash", "BSODH", "HCOH", "HMOH")


# ---- data and runs -------------------------------------------------------------------


def describe_data(data: Dataset, items: str = "images") -> None:
    """Print the sizes of the classes, and how many queries are from the source's test part."""
    _, counts = np.unique(data.labels, return_counts=True)
    print(f"{data.notes} {len(counts)} classes of {counts.min():,} to {counts.max():,} {items}")
    if len(data.test_rows):
        queries = split(data, seed=0).queries
        of_queries = np.isin(queries, data.test_rows).mean()
        of_all = len(data.test_rows) / len(data.labels)
        print(
            f"from the source's test part: {of_queries:.0%} of the queries, "
            f"{of_all:.0%} of all {items}"
        )


def describe_runs(records: list[dict]) -> None:
    """Print the sizes, the seeds, the features and the precision of a random order."""
    run = records[0]
    print(
        f"{run['n_stream']:,} streamed, {run['n_database']:,} to search, "
        f"{run['n_queries']:,} queries"
    )
    case = {"method": "HMOH", "n_bits": BITS[0]}
    n_seeds = len(values(records, "headline", **case))
    n_curves = len(values(records, "stream", **case))
    n_mihash = len(values(records, "headline", **case | {"method": "MIHash"}))
    if n_seeds == n_curves == n_mihash:
        print(f"seeds {SEEDS[:n_seeds]} for every method and every curve")
    else:
        print(f"{n_seeds} seeds; MIHash has {n_mihash} of them, the curves have {n_curves}")
    n_methods = len({record["method"] for record in records})
    print(f"{len(records)} runs: {n_methods} methods, {BITS} bits")
    print(f"features: {tables.features_by_method(records)}")
    chance = run["precision"][-1]
    print(f"relevant in the database, so the precision of a random order: {chance:.3f}")


def too_early(records: list[dict]) -> dict[str, int]:
    """Return by method at how many checkpoints it cannot encode yet."""
    missing = {}
    for record in records:
        n_missing = record.get("stream", []).count(None)
        if n_missing:
            missing[record["method"]] = n_missing
    return missing


def both_readings(records: list[dict], published: list[dict]) -> list[dict]:
    """Return the runs of the published methods, both readings of one after the other."""
    shown = []
    for method in PUBLISHED_FAULTS:
        shown += [record for record in records + published if record["method"] == method]
    return shown


def as_published(records: list[dict], published: list[dict]) -> list[dict]:
    """Return what the published code computes: its methods replace those as described."""
    return [run for run in records if run["method"] not in PUBLISHED_FAULTS] + published


# ---- tables --------------------------------------------------------------------------


def lead(records: list[dict], metric: str) -> Table:
    """Return HMOH's mean, that of the best other method and their difference, for each length.

    The difference is the mean over the seeds that both have, with its 95 % interval. The title
    names the features of both, which the published benchmark chooses for each method.
    """
    rows = []
    compared = {"HMOH": None}
    for n_bits in sorted({record["n_bits"] for record in records}):
        rival = best_rival(records, metric, n_bits)
        compared[rival] = None
        ours = {"method": "HMOH", "n_bits": n_bits}
        theirs = {"method": rival, "n_bits": n_bits}
        row = [str(n_bits), number(values(records, metric, **ours).mean())]
        row += [rival, number(values(records, metric, **theirs).mean())]
        rows.append([*row, with_interval(differences(records, metric, ours, theirs))])
    what = f"{tables.name_of_metric(records, metric)} on {tables.names_of(records)}"
    seeds = tables.number_of_seeds(records, "mean", metric)
    head = ["bits", "HMOH", "best other method", "its value", "difference"]
    text = f"{what}; {seeds}, HMOH, the best other method, and 95 % intervals; "
    text += tables.features_by_method(r for r in records if r["method"] in compared)
    return Table(text, head, rows)


def early_curves(records: list[dict], n_bits: int) -> tuple[dict[str, np.ndarray], int, str]:
    """Return the curves of all methods, and the first checkpoint at which HMOH can encode.

    It is a tenth of the stream (on Places205 a twentieth), if the feature map needs no more
    samples. The text says when it is, such as "after 10%".
    """
    records = [record for record in records if "stream" in record]
    if not records:
        raise ValueError(
            "the records have no checkpoints; pass checkpoints=True to protocol.compare."
        )
    curves = {}
    for method in dict.fromkeys(record["method"] for record in records):
        curves[method] = values(records, "stream", method=method, n_bits=n_bits)
    at = int(np.isfinite(curves["HMOH"]).all(axis=0).argmax())
    return curves, at, f"after {records[0]['samples'][at] / records[0]['n_stream']:.0%}"


def _where(records: list[dict], n_bits: int) -> str:
    """Return the headline metric, the data and the code length, for a title."""
    metric = metric_of(records[0], "headline")
    return f"{metric} on {tables.names_of(records)}, {n_bits} bits"


def early(records: list[dict], n_bits: int) -> Table:
    """Return each method's headline metric early in the stream, and when it has HMOH's early value.

    Early is the checkpoint of `early_curves`.
    """
    curves, at, when = early_curves(records, n_bits)
    first = next(record for record in records if "stream" in record)
    shares = [f"{n / first['n_stream']:.0%}" for n in first["samples"]]
    means = {method: curve.mean(axis=0) for method, curve in curves.items()}
    goal = means["HMOH"][at]
    rows = []
    for method, mean in means.items():
        reached = "never"
        if (mean >= goal).any():
            reached = shares[int((mean >= goal).argmax())]
        rows.append([method, number(mean[at]), number(mean[-1]), reached])
    head = ["method", when, "at the end", f"has HMOH's value {when} at"]
    seeds = tables.number_of_seeds(records, "mean", "stream")
    title = f"{_where(records, n_bits)}, stream of {first['n_stream']:,}; {seeds}"
    return Table(title, head, rows)


def untrained(records: list[dict], n_bits: int) -> Table:
    """Return the best methods early in the stream, compared with LSH, the untrained start."""
    curves, at, when = early_curves(records, n_bits)
    rows = []
    for method in BEST:
        gap = curves[method][:, at] - curves["LSH"][:, at]
        text = "exactly the same" if not gap.any() else with_interval(gap)
        rows.append([method, number(curves[method][:, at].mean()), text])
    head = ["method", when, "minus LSH, the untrained start"]
    return Table(f"{_where(records, n_bits)}; mean and 95 % interval", head, rows)


def step(records: list[dict], published: list[dict], metric: str) -> Table:
    """Return how much the best methods change between the two longest codes, in both readings."""
    shorter, longer = BITS[-2:]
    rows = []
    for method in BEST:
        after = {"method": method, "n_bits": longer}
        before = {"method": method, "n_bits": shorter}
        row = [method, with_interval(differences(records, metric, after, before)), "the same"]
        if any(record["method"] == method for record in published):
            row[-1] = with_interval(differences(published, metric, after, before))
        rows.append(row)
    what = f"{metric} on {tables.names_of(records)}, {longer} minus {shorter} bits"
    return Table(
        f"{what}; mean and 95 % interval", ["method", "as described", "as published"], rows
    )


def cells(data: Dataset, runs: list[dict]) -> list[claims.Claim]:
    """Return the judged cells of the paper's table, and show them if the data are the paper's.

    They are shown as two tables and as a figure.
    """
    found = claims.cells(data.role, runs)
    if data.stand_in_for:
        print(
            f"the {len(found)} cells of Table {data.benchmark.table} are not testable on a STAND-IN"
        )
    else:
        display(scorecard.cell_table(found, metric_of(runs[0], "headline")))
        display(scorecard.cell_table(found, "P@H2"))
        print(scorecard.count_cells(found))
        outcomes = [f"{n} {verdict}" for verdict, n in scorecard.counts(found).items() if n]
        print(f"outcomes of the {len(found)} cells: {', '.join(outcomes)}")
        both = [cell for cell in found if cell.published.n > 1]
        ours = [scorecard.count_values(both, published).reproduced for published in (False, True)]
        print(
            f"of the {len(both)} with both readings, {ours[0]} as described, {ours[1]} as published"
        )
        figures.minus_printed(found)
    return found


def repeated_columns(published: list[dict], count_rows: bool = True) -> None:
    """Print by how much HMOH's mAP as published differs between the powers of two.

    ``count_rows``: also how many different rows the first ten columns of each matrix have.
    """
    powers = [n_bits for n_bits in BITS if n_bits in (16, 32, 64, 128)]
    same = [values(published, "headline", method="HMOH", n_bits=n_bits) for n_bits in powers]
    largest = np.ptp(same, axis=0).max()
    print(f"HMOH as published: mAP at {powers} bits differs by {largest:.1e} at most")
    for n_bits in powers if count_rows else []:
        distinct = np.unique(hadamard(n_bits)[:, :10], axis=0)
        print(f"{n_bits:>3} bits: the first ten columns have {len(distinct)} different rows")


# ---- figures -------------------------------------------------------------------------


def stream(records: list[dict]) -> Figure:
    """Draw the headline metric against the samples seen. Needs runs with checkpoints."""
    metric = tables.name_of_metric(records, "headline")
    return figures.curves(records, "samples", "stream", "samples seen", metric)


def precision_at_k(records: list[dict]) -> Figure:
    """Draw the precision among the K nearest items against K."""
    return figures.curves(records, "K", "P@K", "K (items retrieved)", "Precision@K")


def precision_recall(records: list[dict]) -> Figure:
    """Draw precision against recall within each radius.

    A query without items within the radius has precision 0. So the curves of long codes start low.
    """
    return figures.curves(records, "recall", "precision", "recall", "precision")


# ---- claims measured by hand ---------------------------------------------------------


def sample(
    measure: Callable, records: list[dict], published: list[dict], *arguments
) -> claims.Sample:
    """Return a sample of measure(runs, *arguments) on the runs as described and as published."""
    described = measure(records, *arguments)
    other = measure(as_published(records, published), *arguments)
    return claims.Sample(described, records[0]["dataset"], published=other)


def of_method(runs: list[dict], metric: str, method: str, n_bits: int) -> np.ndarray:
    """Return one value for each seed, nan for a seed that the method does not have."""
    return values(runs, metric, SEEDS, method=method, n_bits=n_bits)


def gain_at_low_bits(runs: list[dict], metric: str) -> np.ndarray:
    """Return HMOH's gain over HCOH up to 16 bits minus that at longer codes, for each seed."""
    gains: dict[bool, list] = {True: [], False: []}
    for n_bits in BITS:
        ours = of_method(runs, metric, "HMOH", n_bits)
        gains[n_bits <= 16].append(ours / of_method(runs, metric, "HCOH", n_bits) - 1)
    return np.mean(gains[True], axis=0) - np.mean(gains[False], axis=0)


def advantage(runs: list[dict], metric: str, n_bits: int) -> np.ndarray:
    """Return HMOH's value minus that of the best other method of the paper, for each seed."""
    rival = best_rival(runs, metric, n_bits, PAPER_METHODS)
    return of_method(runs, metric, "HMOH", n_bits) - of_method(runs, metric, rival, n_bits)
