"""Measure a trained model as the paper does, compare two, and describe codes by themselves."""

from __future__ import annotations

import numpy as np

from metrics import HammingHistogram

__all__ = ["area_under_curve", "headline", "int8_saturated", "mean_ap", "measure"]

# The K of the Precision@K curves.
TOP_K = [1, 5, *range(10, 101, 10)]


def headline(role: str) -> str:
    """Return the metric that the paper's tables call mAP.

    It is mAP over all ranks, except on Places205: there it is mAP over the first 1,000 ranks.
    """
    return "mAP@1000" if role == "places205" else "mAP"


def mean_ap(
    histogram: HammingHistogram, metric: str, per_query: bool = False
) -> float | np.ndarray:
    """Return "mAP" or "mAP@1000", or the average precision of every query."""
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


def _rounded(values: np.ndarray) -> list[float | None]:
    """Return the values with six digits for a JSON file, None instead of nan."""
    return [None if np.isnan(value) else round(float(value), 6) for value in values]


def measure(histogram: HammingHistogram, metric: str, n_database: int) -> dict:
    """Return all metrics of a trained model, by name."""
    mean = {name: mean_ap(histogram, name) for name in ("mAP", "mAP@1000")}
    saturated = mean[metric]
    # Up to 128 bits the cast joins no two distances.
    if histogram.n_bits > 128:
        saturated = mean_ap(int8_saturated(histogram), metric)
    top_k = [k for k in TOP_K if k <= n_database]
    precision_at_k = histogram.precision_at_k(top_k)
    precision, recall = histogram.precision_recall()
    per_query = {
        metric: _rounded(mean_ap(histogram, metric, per_query=True)),
        "P@H2": _rounded(histogram.precision_at_radius(2, per_query=True)),
    }
    # The first point's precision counts for all smaller recalls.
    heights = np.array([precision[0], *precision])
    area = (np.diff([0.0, *recall]) * (heights[1:] + heights[:-1]) / 2).sum()
    return {
        **mean,
        "mAP int8": saturated,
        "P@H2": histogram.precision_at_radius(2),
        "AUC P@K": area_under_curve(top_k, precision_at_k),
        "AUC PR": float(area),
        "K": top_k,
        "P@K": precision_at_k.tolist(),
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "per_query": per_query,
    }


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
