"""The one table of metrics: what a run measures, and what is derived from what it kept.

A run measures the metrics that need its histogram of distances, and keeps curves for the others.
Histograms themselves are not kept: those of all runs would take about 1 GB, and measuring them
again 0.03 to 0.2 seconds a run.

A new metric is one function with a decorator. `derived` computes it from a record. Every record
then has it, kept ones too: no run is made again, because `keep.code_version` leaves these functions
out. They call nothing of this project that does not count. `measured` computes a metric from a
histogram, and all runs are made again.
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


class Metric(NamedTuple):
    """Describe a metric.

    Attributes
    ----------
    title : str
        Its name in titles.
    compute : callable or None
        From a histogram and the name of the headline metric, or from a record if it is derived.
        None if the run itself notes it, such as its training time.
    derived : bool
    lower_is_better : bool
    """

    title: str
    compute: Callable | None = None
    derived: bool = False
    lower_is_better: bool = False


METRICS: dict[str, Metric] = {
    "train_seconds": Metric("training seconds", lower_is_better=True),
}


def measured(name: str, title: str | None = None, **options) -> Callable[[Callable], Callable]:
    """Enter a function of a histogram and the headline metric's name into `METRICS`."""

    def enter(compute: Callable) -> Callable:
        METRICS[name] = Metric(title or name, compute, **options)
        return compute

    return enter


def derived(name: str, title: str | None = None, **options) -> Callable[[Callable], Callable]:
    """Enter a function of a record into `METRICS`. It returns None where there is no value."""
    return measured(name, title, derived=True, **options)


# ---- measured by a run ---------------------------------------------------------------


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


@measured("mAP")
def _map(histogram: HammingHistogram, headline: str) -> float:
    return mean_ap(histogram, "mAP")


@measured("mAP@1000")
def _map_1000(histogram: HammingHistogram, headline: str) -> float:
    return mean_ap(histogram, "mAP@1000")


@measured("mAP int8")
def _map_int8(histogram: HammingHistogram, headline: str) -> float:
    # Up to 128 bits the cast joins no two distances.
    if histogram.n_bits > 128:
        histogram = int8_saturated(histogram)
    return mean_ap(histogram, headline)


@measured("P@H2")
def _precision_at_radius_2(histogram: HammingHistogram, headline: str) -> float:
    return histogram.precision_at_radius(2)


def measure(histogram: HammingHistogram, headline: str, n_database: int) -> dict:
    """Return what a run keeps of its histogram: the measured metrics by name, and curves.

    "K" and "P@K" are the Precision@K curve; "precision" and "recall" are within each radius;
    "per_query" has the headline metric and P@H2 of every query, rounded to six digits.
    """
    found = {}
    for name, metric in METRICS.items():
        if metric.compute is not None and not metric.derived:
            found[name] = metric.compute(histogram, headline)
    top_k = [k for k in TOP_K if k <= n_database]
    precision, recall = histogram.precision_recall()
    return found | {
        "K": top_k,
        "P@K": histogram.precision_at_k(top_k).tolist(),
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "per_query": {
            headline: _rounded(mean_ap(histogram, headline, per_query=True)),
            "P@H2": _rounded(histogram.precision_at_radius(2, per_query=True)),
        },
    }


def _rounded(values: np.ndarray) -> list[float | None]:
    """Return the values with six digits for a JSON file, None instead of nan."""
    return [None if np.isnan(value) else round(float(value), 6) for value in values]


# ---- derived from a record -----------------------------------------------------------


def area_under_curve(x: np.ndarray, y: np.ndarray) -> float:
    """Return the area under a curve by the trapezoid rule, divided by the range of x.

    This is the mean height of the curve. x increases.

    >>> area_under_curve([0, 10, 20], [0.0, 1.0, 1.0])
    0.75
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.shape != y.shape or len(x) < 2 or not (np.diff(x) > 0).all() or not np.isfinite(y).all():
        need = "pass two or more points with increasing x and finite y"
        raise ValueError(f"x is {x} and y is {y}; {need}.")
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) / (x[-1] - x[0]))


def with_derived(record: dict) -> dict:
    """Return a record with all derived metrics that it has the values for."""
    found = {}
    for name, metric in METRICS.items():
        value = metric.compute(record) if metric.derived else None
        if value is not None:
            found[name] = value
    return record | found


@derived("P@100")
def _precision_at_100(record: dict) -> float | None:
    return dict(zip(record.get("K", []), record.get("P@K", []), strict=True)).get(100)


@derived("AUC P@K")
def _area_under_precision_at_k(record: dict) -> float | None:
    """Return the mean height of the Precision@K curve."""
    return area_under_curve(record["K"], record["P@K"]) if len(record.get("K", [])) > 1 else None


@derived("AUC PR")
def _area_under_precision_recall(record: dict) -> float | None:
    """Return the area under the curve; the first point's precision counts for smaller recalls."""
    if "recall" not in record:
        return None
    heights = np.array([record["precision"][0], *record["precision"]])
    return float((np.diff([0.0, *record["recall"]]) * (heights[1:] + heights[:-1]) / 2).sum())


@derived("AUC mAP")
def _area_under_stream(record: dict) -> float | None:
    """Return the mean height of the headline metric along the stream, from the first known one."""
    points = zip(record.get("samples", []), record.get("stream", []), strict=True)
    known = [(n, value) for n, value in points if value is not None]
    return area_under_curve(*zip(*known, strict=True)) if len(known) > 1 else None
