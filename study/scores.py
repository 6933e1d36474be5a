"""The one table of metrics: what a run measures, and what is derived from what it kept.

A run measures the metrics that need its histogram of distances, and keeps curves for the others.
Histograms are not kept: those of all runs would take about 1 GB, and measuring them again 0.03 to
0.2 seconds a run.

A new metric is one entry. If its function of a record is decorated with `derived`, all records have
it, kept ones too, and no run is made again: `keep.code_version` leaves such functions out. An entry
of `METRICS` that needs a histogram makes all kept runs invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metrics import HammingHistogram

__all__ = ["METRICS", "Metric", "area_under_curve", "int8_saturated", "mean_ap", "measure"]
__all__ += ["with_derived"]

# The K of the Precision@K curves.
TOP_K = [1, 5, *range(10, 101, 10)]


def mean_ap(
    histogram: HammingHistogram, metric: str, per_query: bool = False
) -> float | np.ndarray:
    """Return "mAP" or "mAP@1000" (divided by the hits), or the average precision of every query."""
    options = {}
    if metric == "mAP@1000":
        options = {"top": 1000, "normalize": "retrieved"}
    return histogram.mean_average_precision(per_query=per_query, **options)


def int8_saturated(histogram: HammingHistogram) -> HammingHistogram:
    """Return the histogram that the published evaluation sees: similarities r - 2 d cast to int8.

    MATLAB's cast saturates at -128 and 127. In a code longer than 128 bits, all near distances
    become one tie, and all far distances become another. Each tie is counted at the first of its
    distances here.
    """
    similarity = histogram.n_bits - 2 * np.arange(histogram.n_bits + 1)
    cast = np.clip(similarity, -128, 127)
    _, first, tie = np.unique(-cast, return_index=True, return_inverse=True)
    items = np.zeros_like(histogram.items)
    relevant = np.zeros_like(histogram.relevant)
    for distance, first_of_tie in enumerate(first[tie]):
        items[:, first_of_tie] += histogram.items[:, distance]
        relevant[:, first_of_tie] += histogram.relevant[:, distance]
    return HammingHistogram(items, relevant)


class Metric(NamedTuple):
    """Describe a metric: its name in titles, which way is better, and how it is computed.

    `measured` is a function of a histogram and of the headline metric's name, `derived` one of a
    record. The run itself notes what has neither.
    """

    title: str
    measured: Callable[[HammingHistogram, str], float] | None = None
    derived: Callable[[dict], float | None] | None = None
    lower_is_better: bool = False


METRICS: dict[str, Metric] = {
    "mAP": Metric("mAP", lambda h, headline: mean_ap(h, "mAP")),
    "mAP@1000": Metric("mAP@1000", lambda h, headline: mean_ap(h, "mAP@1000")),
    "mAP int8": Metric("mAP int8", lambda h, headline: mean_ap(int8_saturated(h), headline)),
    "P@H2": Metric("P@H2", lambda h, headline: h.precision_at_radius(2)),
    "train_seconds": Metric("training seconds", lower_is_better=True),
}


def derived(name: str, **options) -> Callable[[Callable], Callable]:
    """Enter a function of a record into `METRICS`. It returns None where there is no value."""

    def enter(compute: Callable) -> Callable:
        METRICS[name] = Metric(name, derived=compute, **options)
        return compute

    return enter


def with_derived(record: dict) -> dict:
    """Return a record with all derived metrics that it has the values for."""
    found = {name: metric.derived(record) for name, metric in METRICS.items() if metric.derived}
    return record | {name: value for name, value in found.items() if value is not None}


@derived("P@100")
def _precision_at_100(record: dict) -> float | None:
    return dict(zip(record.get("K", []), record.get("P@K", []), strict=True)).get(100)


@derived("AUC P@K")
def _area_under_precision_at_k(record: dict) -> float | None:
    return area_under_curve(record["K"], record["P@K"]) if len(record.get("K", [])) > 1 else None


@derived("AUC PR")
def _area_under_precision_recall(record: dict) -> float | None:
    if "recall" not in record:
        return None
    # The first point's precision counts for all smaller recalls.
    heights = np.array([record["precision"][0], *record["precision"]])
    return float((np.diff([0.0, *record["recall"]]) * (heights[1:] + heights[:-1]) / 2).sum())


@derived("AUC mAP")
def _area_under_stream(record: dict) -> float | None:
    points = zip(record.get("samples", []), record.get("stream", []), strict=True)
    known = [(n, value) for n, value in points if value is not None]
    return area_under_curve(*zip(*known, strict=True)) if len(known) > 1 else None


def area_under_curve(x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean height of a curve: its area by the trapezoid rule, by the range of x.

    >>> area_under_curve([0, 10, 20], [0.0, 1.0, 1.0])
    0.75
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.shape != y.shape or len(x) < 2 or not (np.diff(x) > 0).all() or not np.isfinite(y).all():
        need = "pass two or more points with increasing x and finite y"
        raise ValueError(f"x is {x} and y is {y}; {need}.")
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) / (x[-1] - x[0]))


def measure(histogram: HammingHistogram, headline: str, n_database: int) -> dict:
    """Return what a run keeps of its histogram: the measured metrics by name, and curves.

    "K" and "P@K" are the Precision@K curve; "precision" and "recall" are within each radius;
    "per_query" has the headline metric and P@H2 of every query, rounded to six digits.
    """
    found = {k: m.measured(histogram, headline) for k, m in METRICS.items() if m.measured}
    top_k = [k for k in TOP_K if k <= n_database]
    precision, recall = histogram.precision_recall()
    found |= {"K": top_k, "P@K": histogram.precision_at_k(top_k).tolist()}
    found |= {"precision": precision.tolist(), "recall": recall.tolist()}
    per_query = {
        headline: mean_ap(histogram, headline, per_query=True),
        "P@H2": histogram.precision_at_radius(2, per_query=True),
    }
    return found | {"per_query": {name: _rounded(each) for name, each in per_query.items()}}


def _rounded(values: np.ndarray) -> list[float | None]:
    """Return the values with six digits for a JSON file, None instead of nan."""
    return [None if np.isnan(value) else round(float(value), 6) for value in values]
