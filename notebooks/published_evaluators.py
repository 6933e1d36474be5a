"""What other people's programs call mAP, by name: their ranks, ties, divisors and empty queries.

A convention is four choices: how many ranks count, in which order tied items are ranked, what the
sum of precisions is divided by, and what a query without a hit counts. The lines of each program
are cited in tests/evaluators.py, which has a small twin of each.

=====================================================  ==========================================
DeepHash-pytorch                                       topK = -1 drops the last item: pass
                                                       top=n_items - 1
CSQ                                                    queries without a label are left out
HashNet (Caffe)                                        queries without a relevant item are left out
OrthoHash, torchmetrics, ranx                          torch.topk and numba order ties in ways that
                                                       we cannot repeat; without ties all agree
MIHash and HMOH (MATLAB)                               similarities are cast to int8, which changes
                                                       numbers beyond 128 bits:
                                                       study.scores.int8_saturated
trec_eval                                              ties by name, descending: here row numbers
                                                       are the names
=====================================================  ==========================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import metrics
from metrics import HammingHistogram

__all__ = ["EVALUATORS", "Convention", "Estimate", "compare", "describe", "evaluate", "interval"]
__all__ += ["mean_average_precision"]


class Convention(NamedTuple):
    """Hold the choices of one program."""

    top: str  # "all" ranks, or the first "k"
    ties: str  # "expected", "stable", "argsort", "by name", or an order that we cannot repeat
    normalize: str
    empty: str

    @property
    def is_repeatable(self) -> bool:
        """Return whether the order of ties can be repeated."""
        return self.ties not in ("torch.topk", "numba")


# The first two are sound: no order of the database changes them, and a relevant item that moves to
# a better rank never lowers them.
EVALUATORS = {
    "sound, all ranks": Convention("all", "expected", "relevant", "skip"),
    "sound, first k": Convention("k", "expected", "min", "skip"),
    "MIHash and HMOH (MATLAB), mAP": Convention("all", "stable", "relevant", "skip"),
    "OASIS (MATLAB)": Convention("all", "stable", "relevant", "zero"),
    "trec_eval, map": Convention("all", "by name", "relevant", "zero"),
    "trec_eval, map_cut_k": Convention("k", "by name", "relevant", "zero"),
    "ranx, map@k": Convention("k", "numba", "relevant", "zero"),
    "MIHash and HMOH (MATLAB), mAP_k": Convention("k", "stable", "retrieved", "skip"),
    "DeepHash-pytorch": Convention("k", "argsort", "retrieved", "zero"),
    "CSQ": Convention("k", "argsort", "retrieved", "zero"),
    "HashNet (PyTorch)": Convention("k", "argsort", "retrieved", "skip"),
    "HashNet (Caffe)": Convention("k", "argsort", "retrieved", "zero"),
    "OrthoHash": Convention("k", "torch.topk", "retrieved", "zero"),
    "torchmetrics, RetrievalMAP": Convention("k", "torch.topk", "retrieved", "zero"),
}


def evaluate(
    name: str,
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    k: int | None = None,
    n_bits: int | None = None,
) -> float:
    """Return the mAP of a program of `EVALUATORS`, over the first k ranks where it has a cut.

    If its order of ties cannot be repeated, this is the expectation over all orders.

    >>> codes = np.array([[0b000], [0b001], [0b001]], np.uint8)
    >>> round(evaluate("OASIS (MATLAB)", codes[:1], codes, [1], [1, 0, 1]), 4)
    0.8333
    """
    if name not in EVALUATORS:
        raise ValueError(f"name={name!r} is unknown; pass one of {', '.join(EVALUATORS)}.")
    convention = EVALUATORS[name]
    top = k if convention.top == "k" else None
    ties = convention.ties if convention.is_repeatable else "expected"
    data = query_codes, db_codes, query_labels, db_labels
    options = convention.normalize, convention.empty, False, n_bits
    return mean_average_precision(*data, top, ties, *options)


def mean_average_precision(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    top: int | None = None,
    ties: str = "expected",
    normalize: str = "relevant",
    empty: str = "skip",
    per_query: bool = False,
    n_bits: int | None = None,
) -> float | np.ndarray:
    """Return `metrics.mean_average_precision` with two more orders of ties.

    ties="by name" is "stable" in the reversed database, as in trec_eval. "argsort" ranks tied items
    as ``np.argsort`` of float32 distances does. That depends on the machine and on numpy's version,
    and exists only to repeat a number.
    """
    db_codes, db_labels = np.asarray(db_codes), np.asarray(db_labels)
    if ties == "by name":
        db_codes, db_labels, ties = db_codes[::-1], db_labels[::-1], "stable"
    data = query_codes, db_codes, query_labels, db_labels
    if ties != "argsort":
        return metrics.mean_average_precision(*data, top, ties, normalize, empty, per_query, n_bits)
    sums, n_hits, R = _rank_by_argsort(*data, top, n_bits)
    last = len(db_codes) if top is None else top
    divisors = {"relevant": R, "min": np.minimum(R, last), "retrieved": n_hits}
    divisor = divisors[normalize]
    ap = np.divide(sums, divisor, out=np.full(len(R), np.nan), where=divisor > 0)
    if empty == "zero":
        ap = np.nan_to_num(ap)
    if per_query:
        return ap
    if np.isnan(ap).all():
        raise ValueError(f"none of the {len(ap)} queries has a hit; check the labels.")
    return float(np.nanmean(ap))


def _rank_by_argsort(query_codes, db_codes, query_labels, db_labels, top, n_bits):
    """Return the sum of the precisions at the hits, the hits, and the relevant items of a query."""
    queries, database = (_as_signs(codes, n_bits) for codes in (query_codes, db_codes))
    query_labels = np.asarray(query_labels)
    # Queries with the same code have the same order.
    different, number = np.unique(queries, axis=0, return_inverse=True)
    sums = np.zeros(len(queries))
    n_hits, R = np.zeros((2, len(queries)), np.int64)
    for u, query in enumerate(different):
        order = np.argsort(0.5 * (len(query) - database @ query))
        for q in np.flatnonzero(number.ravel() == u):
            if query_labels.ndim == 2:
                is_relevant = (db_labels != 0) @ (query_labels[q] != 0)
            else:
                is_relevant = db_labels == query_labels[q]
            ranks = 1 + np.flatnonzero(is_relevant[order[:top]])
            sums[q] = np.sum(np.arange(1, len(ranks) + 1) / ranks)
            n_hits[q] = len(ranks)
            R[q] = np.count_nonzero(is_relevant)
    return sums, n_hits, R


def _as_signs(codes, n_bits):
    """Return packed codes as float32 rows of -1 and 1."""
    bits = np.unpackbits(codes, axis=1, count=n_bits, bitorder="little")
    return 2 * bits.astype(np.float32) - 1


# ---- uncertainty -----------------------------------------------------------------------


class Estimate(NamedTuple):
    """Hold a mean over ``n_queries`` queries, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    n_queries: int


def interval(
    histogram: HammingHistogram,
    metric: str = "mean_average_precision",
    random_state: int = 0,
    **options,
) -> Estimate:
    """Return a metric and its 95 % interval by bootstrap over the queries.

    ``interval(h, "mean_average_precision", top=1000)`` tells how much the mean depends on the
    choice of queries, not how much it depends on the training.
    """
    return _bootstrap(_values(histogram, metric, options), random_state)


def compare(
    a: HammingHistogram,
    b: HammingHistogram,
    metric: str = "mean_average_precision",
    random_state: int = 0,
    **options,
) -> Estimate:
    """Return the metric of ``a`` minus that of ``b`` with its 95 % interval, paired by query.

    Both have the same queries in the same order. If the interval is above 0, ``a`` is better on
    such queries. Queries that one of them leaves out are left out.
    """
    if len(a.items) != len(b.items):
        raise ValueError(f"{a} and {b} differ; pass histograms of the same queries.")
    difference = _values(a, metric, options) - _values(b, metric, options)
    return _bootstrap(difference, random_state)


def _values(histogram, metric, options):
    """Return the metric of that name for each query."""
    values = getattr(histogram, metric)(per_query=True, **options)
    if np.shape(values) != (len(histogram.items),):
        need = "pass a metric with one value for each query"
        raise ValueError(f"metric={metric!r} with {options} has several; {need}.")
    return values


def _bootstrap(values, random_state):
    """Return the mean of the values that are not NaN, and its percentiles over resamples."""
    values = values[~np.isnan(values)]
    n = len(values)
    rng = np.random.default_rng(random_state)
    means = [values[rng.integers(0, n, n)].mean() for _ in range(2000)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(values.mean()), float(low), float(high), n)


def describe(codes: np.ndarray, n_bits: int | None = None) -> dict[str, float]:
    """Return how much of their length packed codes use.

    Constant bits have no correlation. A code of 16 bits that is repeated to 64 has 16 distinct
    bits. The entropy is that of the codes, at most log2 of their number.
    """
    bits = np.unpackbits(codes, axis=1, count=n_bits, bitorder="little").astype(np.float64)
    n, n_bits = bits.shape
    both = bits.T @ bits  # codes with a 1 in bits i and j
    ones = both.diagonal()
    is_same = (both == ones) & (both == ones[:, None])
    varies = (ones > 0) & (ones < n)
    spread = np.sqrt(ones * (n - ones))[varies]
    covariance = (n * both - np.outer(ones, ones))[np.ix_(varies, varies)]
    correlation = np.abs(covariance / np.outer(spread, spread))
    pairs = correlation[np.triu_indices(len(spread), 1)]
    _, buckets = np.unique(codes, axis=0, return_counts=True)
    share = buckets / n
    return {
        "codes": n,
        "bits": n_bits,
        "distinct bits": int(np.count_nonzero(~np.tril(is_same, -1).any(axis=1))),
        "constant bits": int(np.count_nonzero(~varies)),
        "mean |share of ones - 1/2|": float(np.abs(ones / n - 0.5).mean()),
        "mean |correlation of two bits|": float(pairs.sum() / max(1, len(pairs))),
        "distinct codes": len(buckets),
        "items per distinct code": n / len(buckets),
        "items of the most frequent code": int(buckets.max()),
        "entropy of the codes in bits": float(np.sum(share * np.log2(1 / share))),
    }
