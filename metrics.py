"""Exact evaluation and search of binary codes: mAP, precision, recall, NDCG, neighbours.

Copy this file alone into any project: it needs numpy (1.26 or newer) and numba (0.61 or newer).

One pass over the database counts, for every query, all items and the relevant items at each Hamming
distance 0..r. Every metric is a closed form of these two histograms, and the histograms of two
shards of a database add up. Hamming ranking ties most of a database, so a metric is by default its
expectation over all orders of the tied items. Below: formulas, the pass, search, loops, input.

>>> import numpy as np
>>> bits = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
>>> h = hamming_histogram(pack(bits), pack(bits), ["a", "b", "a"], ["a", "b", "a"], n_bits=3)
>>> h.items[0], h.relevant[0], round(h.mean_average_precision(), 4)
(array([1, 1, 0, 1]), array([1, 0, 0, 1]), 0.8889)

Codes are rows of packed bits, (n, ceil(n_bits / 8)) uint8. The order of the bits within a byte does
not matter, as long as queries and database share it. Codes from elsewhere:

=====================================  =====================================================
bits or signs, a row per code          ``pack(bits)``
sentence-transformers, "ubinary"       as they are
sentence-transformers, "binary"        ``codes.view(np.uint8) ^ 128``, only where the dtype is int8
FAISS ``IndexBinaryFlat``              ``faiss.vector_to_array(index.xb).reshape(index.ntotal, -1)``
USearch, dtype "b1"                    ``np.vstack(index.get(keys))``
pgvector ``bit(n)``, as text           ``pack(np.array([list(row) for row in rows]) == "1")``
sqlite-vec ``bit[n]``, Milvus bytes    ``np.frombuffer(b"".join(rows), np.uint8).reshape(n, -1)``
=====================================  =====================================================
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

__all__ = ["HammingHistogram", "check_number", "hamming_histogram", "judged_histogram"]
__all__ += ["mean_average_precision", "nearest", "nearest_by_value", "pack", "within"]

BLOCK_BYTES = 800_000  # codes or labels in a block, so that they stay in a core's cache
TILE = 4096  # items that are compared before they are counted; for few queries, 8 times as many
FEW = 16  # for fewer queries, transposing the codes costs more time than it saves
MANY = 100  # for fewer queries, merging equal codes costs more time than it saves
SAMPLE = 2048  # rows that are examined to decide whether to merge
MOST_CELLS = 40_000  # counters of two queries: more do not fit a core's cache, or 16 bits
CHUNK = 128  # items among which a nearer one is looked for
ROW_BITS = 40  # of an item's row number, which is stored below its distance
PAIRS_PER_THREAD = 1_000_000  # for fewer pairs, another thread saves no time
MOST_COPIED = 10_000_000  # cells in the results of all threads
MOST_HITS = 100_000_000  # items within a radius, of 16 bytes each
PLANES = 5  # binary digits of the values of a query
CLIP = 2.5  # times their root mean square: larger values are cut, so that others keep digits
MARGIN = 2.0**-40  # of a sum of values, far more than its rounding
MOST_LIMIT = 2.0**40  # of estimates
MOST_GRADE = 960  # 2**960 of as many items as int64 can count are still a float64

Values = float | np.ndarray  # a mean over queries, or the value of each


# ---- metrics -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class HammingHistogram:
    """Hold the items and relevant items at every Hamming distance of every query.

    ``a + b`` (or ``sum``) joins the histograms of the same queries over two shards of a database.
    A metric is its expectation over all orders of the items at the same distance. In the formulas
    n and n+ are the items and relevant items at a distance, N and N+ those at all smaller
    distances, and R the relevant items of the query. With ``per_query`` a metric returns the value
    of each query. Where R = 0 it may be undefined: then it is NaN and the mean leaves the query
    out, or with empty="zero" counts it as 0.

    Attributes
    ----------
    items, relevant : (n_queries, n_bits + 1) int64
    grades : (n_grades, n_queries, n_bits + 1) int64, optional; grades[g] are the items of grade g
    """

    items: np.ndarray
    relevant: np.ndarray
    grades: np.ndarray | None = None

    def __repr__(self) -> str:
        totals = self.items.sum(axis=1)
        n_items = "..".join(str(n) for n in sorted({totals.min(), totals.max()}))
        return f"HammingHistogram(n_queries={len(totals)}, n_bits={self.n_bits}, n_items={n_items})"

    def __add__(self, other: HammingHistogram) -> HammingHistogram:
        if not isinstance(other, HammingHistogram):
            return NotImplemented
        if self.items.shape != other.items.shape:
            need = "pass histograms of the same queries and code length"
            raise ValueError(f"cannot add {self} and {other}; {need}.")
        grades = None
        if self.grades is not None and other.grades is not None:
            # The highest grade may be missing in a shard.
            long, short = sorted((self.grades, other.grades), key=len, reverse=True)
            grades = long.copy()
            grades[: len(short)] += short
        relevant = self.relevant + other.relevant
        return HammingHistogram(self.items + other.items, relevant, grades)

    def __radd__(self, other):  # sum() starts with 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @property
    def n_bits(self) -> int:
        return self.items.shape[1] - 1

    @property
    def n_empty(self) -> int:
        """Return the number of queries with no relevant item (R = 0)."""
        return int(np.count_nonzero(self._R == 0))

    @property
    def _R(self):
        return self.relevant.sum(axis=1)

    def without_self(self) -> HammingHistogram:
        """Remove each query's own item, for a set evaluated against itself; grades are lost."""
        items, relevant = self.items.copy(), self.relevant.copy()
        items[:, 0] -= 1
        # A query without a label is not even relevant to itself.
        relevant[:, 0] -= self.relevant.any(axis=1)
        missing = np.flatnonzero(np.minimum(items, relevant)[:, 0] < 0)
        if len(missing):
            raise ValueError(f"query {missing[0]} has no item of its own; pass a database with it.")
        return HammingHistogram(items, relevant)

    def _mean(self, values, per_query, empty="skip"):
        """Return the values of the queries, or their mean. NaN marks a query without one."""
        check_choice(empty, "empty", ("skip", "zero"))
        if empty == "zero":
            values = np.nan_to_num(values)
        if per_query:
            return values
        if np.isnan(values).all():
            given = f"none of the {len(values)} queries has a relevant item in the ranks that count"
            raise ValueError(f"{given}; check the labels of queries and database.")
        mean = np.nanmean(values, axis=0)
        return float(mean) if values.ndim == 1 else mean

    def mean_average_precision(
        self,
        top: int | None = None,
        normalize: str = "relevant",
        empty: str = "skip",
        per_query: bool = False,
    ) -> Values:
        """Return the mean average precision.

        E[AP] = 1/R sum_d (n+/n) sum_{i=N+1}^{N+n} (N+ + 1 + (i - N - 1) m) / i, where
        m = (n+ - 1) / (n - 1). The inner sum up to e is
        m (e - N) + (N+ + 1 - m (N + 1)) (H_e - H_N), with the harmonic numbers H.

        Parameters
        ----------
        top : int, optional
            Only the first ``top`` ranks count (mAP@top).
        normalize : {"relevant", "min", "retrieved"}
            Divide by R, by min(R, top), or by the relevant items among the first ``top``. The last
            is what most published hashing code does; it can rank [+ - -] above [+ - +].
        empty : {"skip", "zero"}
            Skip queries without a relevant item ("retrieved": in ``top``), or count them as 0.
        """
        if top is not None:
            check_number(top, "top")
        check_choice(normalize, "normalize", ("relevant", "min", "retrieved"))
        n_rows = max(1, BLOCK_BYTES // 16 // (self.n_bits + 1))
        parts = [slice(first, first + n_rows) for first in range(0, len(self.items), n_rows)]
        ap = [_average_precision(self.items[p], self.relevant[p], top, normalize) for p in parts]
        return self._mean(np.concatenate(ap), per_query, empty)

    def _hits_at(self, k):
        """Return N+ + (k - N) n+/n at the distance of the k-th item; a column for each k."""
        n_items = int(self.items.sum(axis=1).min())
        share = self.relevant / np.maximum(self.items, 1)
        ks = [check_number(value, "k", most=n_items) for value in (k if np.ndim(k) else [k])]
        if not ks:
            raise ValueError(f"k={k} is empty; pass an int, or a list with at least one.")
        hits = [(np.diff(_ranks(self.items, value)) * share).sum(axis=1) for value in ks]
        return np.stack(hits, axis=1) if np.ndim(k) else hits[0]

    def precision_at_k(self, k: int | list[int], per_query: bool = False) -> Values:
        """Return the share of relevant items among the first k, (N+ + (k - N) n+/n) / k.

        The counts are those at the distance of the k-th item. A list gives a value for each k.
        """
        return self._mean(self._hits_at(k) / np.asarray(k), per_query)

    def recall_at_k(
        self, k: int | list[int], empty: str = "skip", per_query: bool = False
    ) -> Values:
        """Return the share of the R relevant items among the first k, (N+ + (k - N) n+/n) / R."""
        return self._mean(_ratio(self._hits_at(k).T, self._R).T, per_query, empty)

    def ndcg_at_k(
        self, k: int, gain: str = "binary", empty: str = "skip", per_query: bool = False
    ) -> Values:
        """Return DCG@k divided by the DCG@k of the best order.

        DCG@k = sum_{i<=k} gain_i / log2(1 + i). The gain of an item is 1 if it is relevant, and
        with grades g it is g ("linear", as in scikit-learn) or 2^g - 1 ("exponential"). In
        expectation it is sum_d (gain/n) sum_{i=N+1}^{min(N+n, k)} 1 / log2(1 + i).
        """
        check_choice(gain, "gain", ("binary", "linear", "exponential"))
        check_number(k, "k", most=int(self.items.sum(axis=1).min()))
        grades, gains = self.relevant[None], np.ones(1)
        if gain != "binary":
            if self.grades is None:
                need = "pass graded=True to hamming_histogram, or grades to judged_histogram"
                raise ValueError(f"gain={gain!r} needs grades, there are none; {need}.")
            grades, gains = self.grades[1:], np.arange(1.0, len(self.grades))
        if gain == "exponential":
            if len(gains) > MOST_GRADE:
                need = f'pass gain="linear", or grades up to {MOST_GRADE}'
                raise ValueError(f"a grade of {len(gains)} has a gain beyond float64; {need}.")
            gains = 2**gains - 1
        return self._mean(_ndcg(self.items, grades, gains, k), per_query, empty)

    def precision_at_radius(self, radius: int, per_query: bool = False) -> Values:
        """Return the share of relevant items within distance ``radius``; an empty ball counts 0."""
        ball = slice(check_number(radius, "radius", least=0) + 1)
        n_items, n_hits = (counts[:, ball].sum(axis=1) for counts in (self.items, self.relevant))
        return self._mean(n_hits / np.maximum(n_items, 1), per_query)

    def recall_at_radius(self, radius: int, empty: str = "skip", per_query: bool = False) -> Values:
        """Return the share of the R relevant items within distance ``radius``."""
        ball = slice(check_number(radius, "radius", least=0) + 1)
        return self._mean(_ratio(self.relevant[:, ball].sum(axis=1), self._R), per_query, empty)

    def reciprocal_rank(self, empty: str = "skip", per_query: bool = False) -> Values:
        """Return 1 / rank of the first relevant item (MRR).

        In the first tie that has one, its rank is N + j with probability
        n+ / (n - j + 1) prod_{i<j} (1 - n+ / (n - i + 1)).
        """
        values = np.full(len(self.items), np.nan)
        for q in np.flatnonzero(self._R):
            d = np.argmax(self.relevant[q] > 0)
            n, n_hits = self.items[q, d], self.relevant[q, d]
            # All further places together have a probability below exp(-40).
            place = np.arange(min(n - n_hits, 40 * n // n_hits) + 1)
            chance = n_hits / (n - place)
            none_before = np.insert(np.cumprod(1 - chance)[:-1], 0, 1)
            values[q] = np.sum(none_before * chance / (self.items[q, :d].sum() + 1 + place))
        return self._mean(values, per_query, empty)

    def precision_recall(self, per_query: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return (precision, recall) within each radius 0..n_bits, over the queries with R > 0."""
        hits = self.relevant.cumsum(axis=1)
        share = hits / np.maximum(self.items.cumsum(axis=1), 1)
        precision = np.where(self._R[:, None] > 0, share, np.nan)
        recall = _ratio(hits.T, self._R).T
        return self._mean(precision, per_query), self._mean(recall, per_query)


# The formulas. n and n_hits are items and relevant items (n_queries, r + 1) int64.


def _ranks(n, last):
    """Return the last rank before each distance, and after all of them, but at most ``last``."""
    return np.minimum(np.insert(n.cumsum(axis=1), 0, 0, axis=1), last)


def _ratio(a, b):
    """Return a / b, and NaN where b is 0."""
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return np.divide(a, b, out=np.full(shape, np.nan), where=b > 0)


def _harmonic_between(a, b):
    """Return 1/(a + 1) + ... + 1/b for whole numbers a <= b, with a relative error below 1e-13.

    From 64 on it is the series of Euler and Maclaurin, whose terms are differences written as
    products: a difference of two harmonic numbers would lose all digits where b - a is small.
    """
    small = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 65))])
    head = small[np.minimum(b, 64)] - small[np.minimum(a, 64)]
    a, b = (np.maximum(rank, 64).astype(float) for rank in (a, b))
    u, v = 1 / a, 1 / b
    gap = (b - a) * u * v  # u - v
    squares = u**2 + v**2
    # (u - v)/2 - (u^2 - v^2)/12 + (u^4 - v^4)/120 - (u^6 - v^6)/252, with u - v as a factor
    sixth = squares**2 - (u * v) ** 2
    correction = 1 / 2 - (u + v) * (1 / 12 - squares / 120 + sixth / 252)
    return head + np.log1p((b - a) / a) - gap * correction


def _average_precision(n, n_hits, top, normalize):
    """Return the expected AP of each query; see `HammingHistogram.mean_average_precision`."""
    last = n.sum(axis=1) if top is None else np.full(len(n), top)
    N, N_hits = (counts.cumsum(axis=1) - counts for counts in (n, n_hits))
    m = (n_hits - 1) / np.maximum(n - 1, 1)
    ranks = _ranks(n, last[:, None])
    harmonic = _harmonic_between(ranks[:, :-1], ranks[:, 1:])
    inner = m * np.diff(ranks) + (N_hits + 1 - m * (N + 1)) * harmonic
    sums = n_hits / np.maximum(n, 1) * inner
    if normalize != "retrieved":
        R = n_hits.sum(axis=1)
        return _ratio(sums.sum(axis=1), np.minimum(R, last) if normalize == "min" else R)
    # The tie that ``last`` cuts is at the last distance that begins before it.
    cut = (last[:, None] > N).sum(axis=1) - 1
    whole = np.where(np.arange(n.shape[1]) < cut[:, None], sums, 0).sum(axis=1)
    N, N_hits, size, good = (x[np.arange(len(n)), cut] for x in (N, N_hits, n, n_hits))
    return _over_cut_tie(whole, N, N_hits, size, good, np.minimum(last - N, size))


def _over_cut_tie(whole, N, N_hits, size, good, q):
    """Return the expected AP, divided by hits, of queries of which only q items of a tie count.

    The number h of hits among the q is hypergeometric. Given h, every choice of places is equally
    likely, and they add (h/q) sum_{j=1}^q (N+ + 1 + (j - 1) (h - 1)/(q - 1)) / (N + j) to the sum
    ``whole`` of the ties before. All arguments have shape (n_queries,).
    """
    harmonic = _harmonic_between(N, N + q)[:, None]
    whole, N, N_hits, size, good, q = (x[:, None] for x in (whole, N, N_hits, size, good, q))
    least, most = np.maximum(0, q - (size - good)), np.minimum(q, good)
    # P(h) up to a factor, from its mode in both directions: (n_queries, 2 * width + 1). By
    # Hoeffding's inequality, h is further away with a probability below exp(-2 * 5**2).
    width = min(int(5 * np.sqrt(q.max())) + 2, int((most - least).max()))
    h = (q + 1) * (good + 1) // (size + 2) + np.arange(-width, width + 1)
    exists = (h > least) & (h <= most)
    up = np.where(exists, (good - h + 1.0) * (q - h + 1.0), 0)  # P(h) / P(h - 1) = up / down
    down = np.where(exists, h * (size - good - q + h + 0.0), 0)
    above = np.divide(up, down, out=np.zeros(h.shape), where=exists)[:, width + 1 :]
    below = np.divide(down, up, out=np.zeros(h.shape), where=exists)[:, width:0:-1]
    P = np.ones(h.shape)
    P[:, width + 1 :] = above.cumprod(axis=1)
    P[:, :width] = below.cumprod(axis=1)[:, ::-1]
    m = (h - 1) / np.maximum(q - 1, 1)
    inner = m * q + (N_hits + 1 - m * (N + 1)) * harmonic
    ap = (whole + h / np.maximum(q, 1) * inner) / np.maximum(N_hits + h, 1)
    expected = (P * ap).sum(axis=1) / P.sum(axis=1)
    return np.where((N_hits + most)[:, 0] > 0, expected, np.nan)


def _ndcg(n, grades, gains, k):
    """Return the expected DCG@k over the best. grades (n_grades, n_queries, r + 1), gains rise."""
    discounts = np.insert(np.cumsum(1 / np.log2(np.arange(2, k + 2))), 0, 0)
    gain = np.tensordot(gains, grades, 1) / np.maximum(n, 1)
    dcg = (gain * np.diff(discounts[_ranks(n, k)])).sum(axis=1)
    # The best order begins with the items of the highest grade.
    best = _ranks(grades.sum(axis=2).T[:, ::-1], k)
    return _ratio(dcg, np.diff(discounts[best]) @ gains[::-1])


# ---- one pass over the database ------------------------------------------------------


def hamming_histogram(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    n_bits: int | None = None,
    n_threads: int | None = None,
    graded: bool = False,
) -> HammingHistogram:
    """Count items and relevant items at every Hamming distance of every query.

    Parameters
    ----------
    query_codes, db_codes : (n, ceil(n_bits / 8)) uint8
        Packed codes; the top of this file lists where they may come from.
    query_labels, db_labels : (n,) integers or strings, or (n, L) 0/1
        An item is relevant to a query if it has the same label, or in the second form at least one
        label in common. For any other relation see `judged_histogram`.
    n_bits : int, optional
        Length of the codes; by default all bits of the packed bytes. Bits beyond it must be 0.
    n_threads : int, optional
        By default all cores. The result does not depend on it.
    graded : bool
        Also count the items that share exactly 0, 1, 2, ... labels with a query: their grades.
    """
    scan = _Scan(query_codes, db_codes, n_bits, n_threads, labels=True)
    labels = _label_words(query_labels, db_labels, len(scan.queries), len(scan.database))
    n_grades = 2
    if graded and _is_multi(labels[0]):
        # No item shares more labels than a query has.
        n_grades = 1 + int(np.unpackbits(labels[0], axis=1).sum(axis=1).max())
    counts = _count_grades(scan, labels, n_grades)
    relevant = counts[1:].sum(axis=0)
    return HammingHistogram(counts[0] + relevant, relevant, counts if graded else None)


def judged_histogram(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    queries: np.ndarray,
    items: np.ndarray,
    grades: np.ndarray | None = None,
    n_bits: int | None = None,
    n_threads: int | None = None,
) -> HammingHistogram:
    """Count items by relevance that is given pair by pair: TREC judgements, or true neighbours.

    Parameters
    ----------
    queries, items, grades : (n_pairs,) int
        Row of the query and row of the item of each judged pair, and its grade: 0 is not relevant,
        1 and more are relevant. By default all are 1. Other pairs are not relevant. The codes,
        n_bits and n_threads are as in `hamming_histogram`.

    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> neighbours = np.array([[0, 2], [1, 2]])  # the nearest of two queries by float vectors
    >>> judged_histogram(codes[:2], codes, [0, 0, 1, 1], neighbours.ravel(), n_bits=3).relevant
    array([[1, 0, 0, 1],
           [1, 0, 1, 0]])
    """
    scan = _Scan(query_codes, db_codes, n_bits, n_threads)
    grades = np.ones(np.shape(queries), int) if grades is None else grades
    pairs = _check_pairs(queries, items, grades, len(scan.queries), len(scan.database))
    counts = np.zeros((1 + pairs[2].max(initial=1), len(scan.queries), scan.n_bits + 1), np.int64)
    for first in range(0, pairs.shape[1], BLOCK_BYTES // 8):
        q, j, g = pairs[:, first : first + BLOCK_BYTES // 8]
        d = np.unpackbits(scan.queries[q] ^ scan.database[j], axis=1).sum(axis=1)
        np.add.at(counts, (g, q, d), 1)
    [n_items] = _count_grades(scan, None, n_grades=1)
    counts[0] = n_items - counts[1:].sum(axis=0)
    return HammingHistogram(n_items, n_items - counts[0], counts)


def _count_grades(scan, labels, n_grades):
    """Return counts (n_grades, n_queries, n_bits + 1) int64 of the items of each grade.

    The grade is the number of labels shared with the query, at most n_grades - 1. ``labels`` are
    words (n, v) of queries and items, or None: then no item shares one.
    """
    if labels is None:
        n_rows = len(scan.queries), len(scan.database)
        labels = [np.broadcast_to(np.uint64(i), (n, 1)) for i, n in enumerate(n_rows)]
    # Queries with the same labels follow each other, because they have the same relevant items.
    order = np.lexsort(labels[0].T)
    Lq = labels[0][order]
    is_new = np.ones(len(Lq), bool)
    is_new[1:] = (Lq[1:] != Lq[:-1]).any(axis=1)
    counts = scan.results((n_grades, len(Lq), scan.n_bits + 1))
    cell_type = np.uint16 if n_grades * (scan.n_bits + 1) <= 1 << 16 else np.uint32

    def count_part(s, p, Q, first, D, Ld, weight, distance):
        cells = np.empty(TILE * (1 if scan.layout == "columns" else 8), cell_type)
        own = counts[s, :, p]
        _count(is_new[p], Q, Lq[p], D, Ld, _is_multi(Lq), weight, distance, cells, own)

    # If even a sample has equal codes, the whole database has many.
    sample = scan.database[:: 1 + len(scan.database) // SAMPLE]
    merges = len(Lq) >= MANY and len(_merged(sample)[0]) < len(sample)
    scan.run(count_part, len(counts), order, labels[1], merges)
    return sum(counts[1:], start=counts[0])[:, np.argsort(order)]


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
) -> Values:
    """Return the mean average precision in one call.

    ties="stable" ranks tied items in database order, as a stable sort does. With "retrieved" and
    "skip" it leaves out queries without a hit in ``top``, where the expectation counts such orders
    as 0. For the rest see `hamming_histogram` and `HammingHistogram.mean_average_precision`.
    """
    check_choice(ties, "ties", ("expected", "stable"))
    scan = _Scan(query_codes, db_codes, n_bits, labels=True)
    Lq, Ld = _label_words(query_labels, db_labels, len(scan.queries), len(scan.database))
    other, relevant = _count_grades(scan, (Lq, Ld), n_grades=2)
    histogram = HammingHistogram(other + relevant, relevant)
    expected = histogram.mean_average_precision(top, normalize, empty, per_query)
    if ties == "expected":
        return expected
    R, last = histogram._R, min(top or np.inf, len(scan.database))
    sums, n_hits = np.zeros(len(R)), np.zeros(len(R), np.int64)
    for q, labels in enumerate(Lq):
        _, [order] = nearest(scan.queries[q : q + 1], scan.database, last)
        items = Ld[order]
        is_hit = (items & labels).any(axis=1) if _is_multi(Lq) else items[:, 0] == labels
        ranks = 1 + np.flatnonzero(is_hit)
        n_hits[q] = len(ranks)
        sums[q] = np.sum(np.arange(1, len(ranks) + 1) / ranks)
    divisors = {"relevant": R, "min": np.minimum(R, last), "retrieved": n_hits}
    return histogram._mean(_ratio(sums, divisors[normalize]), per_query, empty)


# ---- search --------------------------------------------------------------------------


def nearest(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    k: int,
    mask: np.ndarray | None = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and indices (n_queries, k) int64 of the k nearest items of every query.

    Ties are in database order. It makes one pass over the database and uses no index. ``mask``
    (n_items,) bool is True for the items that may be found; k is at most their number.

    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> nearest(codes[2:], codes, k=2)
    (array([[0, 2]]), array([[2, 1]]))
    """
    scan = _Scan(query_codes, db_codes, n_threads=n_threads, mask=mask)
    _check_k(k, scan)
    keys = scan.results((len(scan.Q), 2 * (k + CHUNK)), (scan.n_bits + 1) << ROW_BITS)

    def select_part(s, p, Q, first, D, Ld, weight, distance):
        _select(Q, D, first, k, distance, np.empty(scan.n_bits + 2, np.int64), keys[s, p])

    scan.run(select_part, len(keys))
    keys = np.sort(np.concatenate(keys[:, :, :k], axis=1), axis=1)[:, :k]
    return keys >> ROW_BITS, scan.rows(keys & ((1 << ROW_BITS) - 1))


def within(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    radius: int,
    mask: np.ndarray | None = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return offsets, distances and indices of all items within a radius, itself included.

    The hits of query q are ``distances[offsets[q] : offsets[q + 1]]``, and ``indices`` likewise:
    nearest first, ties in database order. FAISS's ``range_search`` excludes the radius, so pass it
    radius + 1. Learned codes put whole classes at distance 0, so hits are counted first, and more
    than 100 million (1.6 GB) are refused. ``mask`` is as in `nearest`.

    Near-duplicates in a set without labels, by the signs of its centred features:

    >>> X = np.random.default_rng(0).normal(size=(500, 256))
    >>> X[7] = X[3] + 0.1 * X[4]
    >>> codes = pack(X > X.mean(axis=0))
    >>> offsets, distances, indices = within(codes, codes, radius=25)
    >>> queries = np.repeat(np.arange(500), np.diff(offsets))
    >>> np.stack([queries, indices])[:, queries < indices].T
    array([[3, 7]])

    The largest radius with a precision of at least 0.9, measured on items with labels:

    >>> y = np.arange(500) % 5
    >>> codes = pack(X + np.random.default_rng(1).normal(size=(5, 256))[y] > 0)
    >>> h = hamming_histogram(codes[:100], codes[100:], y[:100], y[100:])
    >>> precision, recall = h.precision_recall()
    >>> radius = int(np.flatnonzero(precision >= 0.9).max())
    >>> radius, round(precision[radius].item(), 3), round(recall[radius].item(), 3)
    (112, 0.916, 0.999)
    """
    scan = _Scan(query_codes, db_codes, n_threads=n_threads, mask=mask)
    n_distances = 1 + min(check_number(radius, "radius", least=0), scan.n_bits)
    counts = scan.results((len(scan.Q), n_distances))

    def collect(places, indices):
        def collect_part(s, p, Q, first, D, Ld, weight, distance):
            _collect(Q, D, first, n_distances - 1, distance, places[s, p], indices)

        scan.run(collect_part, len(places))
        return indices

    collect(counts, np.empty(0, np.int64))
    n_hits = int(counts.sum())
    if n_hits > MOST_HITS:
        given = f"{n_hits:,} items are within radius={radius}, more than {MOST_HITS:,}"
        raise ValueError(f"{given}; pass fewer queries at a time, a smaller radius, or a mask.")
    # By query, distance and share, which is the order of the hits.
    ordered = np.moveaxis(counts, 0, -1)
    ends = ordered.cumsum().reshape(ordered.shape)
    places = np.moveaxis(ends - ordered, -1, 0).copy()
    indices = collect(places, np.empty(n_hits, np.int64))
    total = counts.sum(axis=0)
    distances = np.repeat(np.tile(np.arange(n_distances), len(total)), total.ravel())
    return np.insert(ends[:, -1, -1], 0, 0), distances, scan.rows(indices)


def nearest_by_value(
    query_values: np.ndarray,
    db_codes: np.ndarray,
    k: int,
    candidates: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    bitorder: str = "little",
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and indices (n_queries, k) of the k best items of float queries.

    The score of an item is the product of the query's values and its bits as +1 and -1; the field
    says asymmetric distance. Such values are `HMOH.decision_function`, and embeddings whose signs
    the codes are. Highest first, ties in database order. At 32 bits this raised the mAP of
    HMOH and HadamardRidge by 0.042 and 0.032 on udhr205, 0.012 and 0.011 on cifar10_vgg16, 0.004
    and 0.003 on mnist, 0.002 and 0.004 on mediamill10, not significantly on reuters10 (ten seeds,
    300 queries, up to 20,000 items).

    Scores are float64 sums in one order: the values of a byte from the lowest bit on, then the
    bytes. Items that rounded values exclude are not summed, and the result does not show it.

    Parameters
    ----------
    query_values : (n_queries, n_bits) float32
    db_codes : (n_items, ceil(n_bits / 8)) uint8
        Bits beyond n_bits do not matter.
    candidates : (n_queries, c) int, optional
        Rows that `nearest` or an index found: only these are ranked, each once. Skipped are -1
        (FAISS's "none") and masked rows. Places that stay empty are -1, with the score -inf.
    mask : (n_items,) bool, optional
        True for the items that may be found. Without candidates, k is at most their number.
    bitorder : {"little", "big"}
        Of the codes, as in ``np.packbits``; "ubinary" of sentence-transformers is "big". The wrong
        order gives no error, but a useless ranking.

    >>> codes = pack([[1, 1, -1], [1, -1, -1], [-1, 1, 1]])
    >>> nearest_by_value([[0.5, -2.0, 0.25]], codes, k=2)
    (array([[ 2.25, -1.75]]), array([[1, 0]]))
    >>> nearest_by_value([[0.5, -2.0, 0.25]], codes, k=2, candidates=[[2, 2, -1]])
    (array([[-2.25,  -inf]]), array([[ 2, -1]]))
    """
    codes = _check_codes(db_codes, "db_codes")
    values = _check_values(query_values, codes.shape[1], bitorder)
    signs = np.packbits(values > 0, axis=1, bitorder="little")
    scan = _Scan(signs, codes, n_threads=n_threads, mask=mask, by_value=True)
    sums = np.zeros((scan.Q.itemsize * scan.Q.shape[1], 256))
    if candidates is None:
        _check_k(k, scan)
        rows = scan.results((len(values), 2 * (k + CHUNK)), -1)
        scores = np.full(rows.shape, -np.inf)
        planes, bounds = _rounded(values)
        planes = scan.as_words(planes).reshape(len(values), PLANES, -1)

        def select_part(s, p, Q, first, D, Ld, weight, estimate):
            parts = values[p], Q, planes[p], bounds[p], D[0]
            _select_by_value(*parts, first, k, estimate, sums.copy(), scores[s, p], rows[s, p])

        scan.run(select_part, len(rows))
        scores, rows = (np.concatenate(found[:, :, :k], axis=1) for found in (scores, rows))
        rows = scan.rows(rows)
    else:
        n_none = check_number(k, "k", most=len(codes))
        rows = _check_candidates(candidates, len(values), scan)
        rows = np.pad(rows, ((0, 0), (0, n_none)), constant_values=-1)
        scores = np.full(rows.shape, -np.inf)
        for q in range(len(rows)):
            own = codes[rows[q, rows[q] >= 0]]
            found = np.empty(len(own))
            _score_all(values[q], own[None], sums, found)
            scores[q, rows[q] >= 0] = found
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _rounded(values):
    """Return the binary digits of rounded absolute values, and what the estimates are worth.

    The digits are bytes (n * PLANES, width). Bounds (n, 4) are the score ``top`` of the query's
    own signs, the unit of the estimates, and how far they may be above and below, in all.
    """
    a = np.abs(values, dtype=np.float64)
    n_steps = 2**PLANES - 1
    unit = np.minimum(a.max(axis=1), CLIP * np.sqrt(np.square(a).mean(axis=1))) / n_steps
    unit[unit == 0] = 1
    steps = np.minimum(a / unit[:, None] + 0.5, n_steps).astype(np.uint8)
    rest = a - steps * unit[:, None]
    # As scores are summed.
    top = a.reshape(len(a), -1, 8).cumsum(axis=2)[:, :, -1].cumsum(axis=1)[:, -1]
    slack, excess = (np.maximum(part, 0).sum(axis=1) + top * MARGIN for part in (-rest, rest))
    digits = steps[:, None] >> np.arange(PLANES, dtype=np.uint8)[:, None] & 1
    planes = np.packbits(digits, axis=2, bitorder="little").reshape(-1, values.shape[1] // 8)
    return planes, np.stack([top, unit, slack, excess], axis=1)


class _Scan:
    """Compare queries with blocks of a database, as words in one of three layouts.

    =========  =================  =================  ===========================================
    layout     queries Q          items D of blocks  for
    =========  =================  =================  ===========================================
    "columns"  (n, w)             (1, w, m)          many queries, w a multiple of four; float
                                                     queries, any w
    "known"    tuples of w words  (m * w,)           few queries, w <= 4: the compiler knows it
    "rows"     (n, w)             (m, w)             few queries, other w
    =========  =================  =================  ===========================================

    The compiler counts the bits of many items at once in all but the last.
    """

    def __init__(
        self,
        queries,
        database,
        n_bits=None,
        n_threads=None,
        mask=None,
        labels=False,
        by_value=False,
    ):
        self.queries = _check_codes(queries, "query_codes")
        self.database = _check_codes(database, "db_codes")
        self.n_bits = _check_n_bits(self.queries, self.database, n_bits, labels)
        self.mask = None if mask is None else _check_mask(mask, len(self.database))
        self.n_items = len(self.database) if mask is None else np.count_nonzero(self.mask)
        if n_threads is None:
            tells = hasattr(os, "sched_getaffinity")
            n_threads = len(os.sched_getaffinity(0)) if tells else os.cpu_count() or 1
        self.n_threads = check_number(n_threads, "n_threads")
        width = self.queries.shape[1]
        self.word = np.dtype(next(f"u{size}" for size in (8, 4, 1) if width % size == 0))
        self.n_together = 1  # words: w is a multiple of it
        self.layout = "known" if width <= 4 * self.word.itemsize else "rows"
        if by_value or len(self.queries) >= FEW:
            self.layout = "columns"
            if not by_value:  # short codes are fastest as bytes
                self.word, self.n_together = np.dtype("u1" if width <= 16 else "u8"), 4
        most = self.n_bits * (2**PLANES - 1 if by_value else 1)
        self.scratch_type = np.min_scalar_type(most)  # of distances or costs
        self.Q = self.as_words(self.queries)

    def as_words(self, codes):
        """Return rows of bytes as rows of words."""
        n_missing = -codes.shape[1] % (self.n_together * self.word.itemsize)
        if n_missing:
            codes = np.pad(codes, ((0, 0), (0, n_missing)))
        return np.require(np.ascontiguousarray(codes).view(self.word), requirements="AW")

    def _blocks(self, start, stop, Ld, merges):
        """Yield number of the first item, codes, labels and weights, of some rows.

        With ``merges``, equal items become one, and the weights say how many it stands for.
        """
        n_bytes = max(8, self.queries.shape[1], 0 if Ld is None else Ld.itemsize * Ld.shape[1])
        n_rows = max(1, BLOCK_BYTES // n_bytes)
        # A block stays in a core's cache for all queries; a single query needs it once.
        if self.layout != "columns":
            n_rows *= FEW
        elif merges:
            n_rows *= 4
        n_before = start if self.mask is None else np.count_nonzero(self.mask[:start])
        for first in range(start, stop, n_rows):
            own = slice(first, min(first + n_rows, stop))
            if self.mask is not None:
                own = first + np.flatnonzero(self.mask[own])
            codes = self.database[own]
            labels = None if Ld is None else Ld[own]
            n_items = len(codes)
            if n_items == 0:
                continue
            weight = np.empty(0, np.uint32)
            if merges:
                kept, weight = _merged(codes, np.ascontiguousarray(labels).view(np.uint8))
                codes, labels = codes[kept], labels[kept]
            D = self.as_words(codes)
            if self.layout != "rows":
                D = D.ravel() if self.layout == "known" else D.T.copy()[None]
            yield n_before, D, labels if Ld is None else np.ascontiguousarray(labels.T), weight
            n_before += n_items

    def results(self, shape, value=0):
        """Return arrays of int64 (n_shares, *shape) for shares of the database scanned at once.

        The shares have results of their own, which take memory and are joined in the end.
        """
        n_cells = math.prod(shape)
        n_useful = 1 + len(self.Q) * len(self.database) // (PAIRS_PER_THREAD + 8 * n_cells)
        n_shares = max(1, min(self.n_threads, n_useful, MOST_COPIED // n_cells))
        return np.full((n_shares, *shape), value, np.int64)

    def run(self, loop, n_shares, order=slice(None), Ld=None, merges=False):
        """Call ``loop(s, p, Q[p], *block, scratch)`` for each block of each share s of the items.

        Where shares are fewer than threads, the queries are parted too, into slices p.
        """
        Q = self.Q[order]
        n_useful = 1 + len(Q) * len(self.database) // PAIRS_PER_THREAD
        n_parts = min(max(1, min(self.n_threads, n_useful) // n_shares), len(Q))
        bounds = [i * len(self.database) // n_shares for i in range(n_shares + 1)]
        is_stopped = threading.Event()

        def run_part(i):
            s, part = divmod(i, n_parts)
            start, stop = part * len(Q) // n_parts, (part + 1) * len(Q) // n_parts
            step = stop - start if self.layout == "columns" else 1
            scratch = np.empty(TILE, self.scratch_type)
            for block in self._blocks(bounds[s], bounds[s + 1], Ld, merges):
                for first in range(start, stop, step):
                    if is_stopped.is_set():
                        return
                    p = slice(first, first + step)
                    x = tuple(map(tuple, Q[p])) if self.layout == "known" else Q[p]
                    with np.errstate(over="ignore"):  # numpy warns, with the JIT off
                        loop(s, p, x, *block, scratch)

        # The pool is made for this call only, so that a later fork is safe.
        n = n_shares * n_parts
        with ThreadPoolExecutor(n) as pool:
            try:
                list((map if n == 1 else pool.map)(run_part, range(n)))
            finally:
                is_stopped.set()  # after Ctrl-C or an error, the other threads need not go on

    def rows(self, numbers):
        """Return the rows in the database of items, given their numbers among those not masked."""
        return numbers if self.mask is None else np.flatnonzero(self.mask)[numbers]


def _merged(*parts):
    """Return the first of each kind of equal rows of bytes, and how many rows are of that kind."""
    width = sum(part.shape[1] for part in parts)
    rows = np.zeros((len(parts[0]), -(-width // 8)), np.uint64)
    np.concatenate(parts, axis=1, out=rows.view(np.uint8)[:, :width])
    slots = np.full(2 << len(rows).bit_length(), -1, np.int32)
    first = np.empty(len(rows), np.int64)
    weight = np.zeros(len(rows), np.uint32)
    with np.errstate(over="ignore"):  # numpy warns, with the JIT off
        n = _merge(rows, slots, np.uint64(65 - len(slots).bit_length()), first, weight)
    return first[:n], weight[:n]


# ---- compiled loops ------------------------------------------------------------------
# Numba compiles them for each layout of the codes; see `_Scan`.


class _Cache(FunctionCache):
    """Numba's cache on disk; where it fails, the loop is simply compiled again."""

    def load_overload(self, *args):
        with contextlib.suppress(Exception):  # a damaged file raises nearly anything
            return super().load_overload(*args)

    def save_overload(self, *args):
        try:
            super().save_overload(*args)
        except Exception:  # the index is written first, and may now name code of an older source
            with contextlib.suppress(OSError):
                os.remove(self._cache_file._index_path)


def _compiled(function):
    """Compile on the first call, and keep the result on disk if a folder can be written."""
    loop = njit(nogil=True)(function)
    with contextlib.suppress(RuntimeError):
        loop._cache = _Cache(function)
    return loop


# Every constant is a uint64, because numba turns uint64 combined with a plain int into float64.
_1, _2, _4, _29, _56 = (np.uint64(n) for n in (1, 2, 4, 29, 56))
_ONES = np.uint64(0x0101010101010101)
_BITS, _PAIRS, _NIBBLES = (np.uint64(byte) * _ONES for byte in (0x55, 0x33, 0x0F))
_MIX = np.uint64(0x9E3779B97F4A7C15)  # for hash values


@_compiled
def _popcount(x):
    """Return the number of 1 bits of an unsigned x, summed over 2, 4 and 8 bits in parallel."""
    x = x - ((x >> _1) & _BITS)
    x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
    x = (x + (x >> _4)) & _NIBBLES
    return np.int64((x * _ONES) >> _56)


@_compiled
def _distance(x, rows, j):
    """Return the distance of the code x (w,) to row j of ``rows``, (m, w) or (m * w,)."""
    n_differing = np.uint64(0)
    for k in range(len(x)):
        word = rows[j, k] if rows.ndim == 2 else rows[j * len(x) + k]
        n_differing += np.uint64(_popcount(x[k] ^ word))
    return n_differing


@_compiled
def _distances(x, D, first, out):
    """Write the distances of the code x to the codes first, first + 1, ... of D to out (t,)."""
    end = first + len(out)
    if D.ndim < 3:
        width = len(x) if D.ndim == 1 else 1  # of a row in D
        rows = D[width * first : width * end]
        for j in range(len(out)):
            out[j] = _distance(x, rows, j)
        return
    out[:] = 0
    # Four words at a time, because reading and writing ``out`` takes time too.
    for k in range(0, len(x), 4):
        a, b, c, d = D[0, k], D[0, k + 1], D[0, k + 2], D[0, k + 3]
        a, b, c, d = a[first:end], b[first:end], c[first:end], d[first:end]
        for j in range(len(out)):
            ab = _popcount(x[k] ^ a[j]) + _popcount(x[k + 1] ^ b[j])
            cd = _popcount(x[k + 2] ^ c[j]) + _popcount(x[k + 3] ^ d[j])
            out[j] += ab + cd


@_compiled
def _grade(labels, Ld, first, multi, most, step, out):
    """Write ``step`` times the number of labels that the items first, ... share with a query.

    labels (v,), Ld (v, m), out (t,) unsigned. With multi they are bytes of packed 0/1, and the
    number is at most ``most``. Else v = 1, and the number is 1 for the same label.
    """
    end = first + len(out)
    if not multi:
        column = Ld[0][first:end]
        for j in range(len(out)):
            out[j] = step if column[j] == labels[0] else 0
        return
    out[:] = 0
    for k in range(len(Ld)):
        # Most queries have few labels, so most bytes of a long row are 0.
        if labels[k] != 0:
            column = Ld[k][first:end]
            for j in range(len(out)):
                out[j] += _popcount(column[j] & labels[k])
    for j in range(len(out)):
        out[j] = min(out[j], most) * step


@_compiled
def _count(is_new, Q, Lq, D, Ld, multi, weight, distance, cells, counts):
    """Add the items of grade g at distance d of query q to counts[g, q, d].

    is_new (n,) bool, Q (n, w), Lq (n, v), Ld (v, m), counts (g, n, r + 1) int64. is_new tells
    whether a query has other labels than the last. Item j counts weight[j] times; where weight is
    (0,), and for few queries, once. distance and cells (t,) are scratch for a tile of items.
    """
    n_items = Ld.shape[1]
    n_grades, n_queries, n_distances = counts.shape
    step = np.uint32(n_distances)
    base = np.empty(n_items if D.ndim == 3 else 0, cells.dtype)  # step * grade
    single = np.zeros(n_grades * n_distances, np.uint32)
    n_double = n_grades * n_distances**2
    double = np.zeros(n_double if n_double <= min(MOST_CELLS, 2 * len(base)) else 0, np.uint32)
    q = 0
    while q < n_queries:
        # Two queries with the same labels are counted together, with half the additions. The cell
        # of an item is step * grade + d, for two queries step * (step * grade + d) + e.
        is_pair = len(double) > 0 and q + 1 < n_queries and not is_new[q + 1]
        for first in range(0, n_items, len(cells)):
            end = min(first + len(cells), n_items)
            d = distance[: end - first]
            cell = cells[: end - first]
            if D.ndim < 3:
                _grade(Lq[q], Ld, first, multi, n_grades - 1, step, cell)
                width = len(Q[q]) if D.ndim == 1 else 1  # of a row in D
                rows = D[width * first : width * end]
                for j in range(len(cell)):
                    cell[j] += _distance(Q[q], rows, j)
                for j in range(len(cell)):
                    single[cell[j]] += 1
                continue
            base_part = base[first:end]
            if q == 0 or is_new[q]:
                _grade(Lq[q], Ld, first, multi, n_grades - 1, step, base_part)
            _distances(Q[q], D, first, d)
            for j in range(len(cell)):
                cell[j] = base_part[j] + d[j]
            if is_pair:
                _distances(Q[q + 1], D, first, d)
                for j in range(len(cell)):
                    cell[j] = np.uint32(cell[j]) * step + d[j]
            table = double if is_pair else single
            weight_part = weight[first:end]
            if len(weight) == 0:
                for j in range(len(cell)):
                    table[cell[j]] += 1
            else:
                for j in range(len(cell)):
                    table[cell[j]] += weight_part[j]
        for g in range(n_grades):
            if not is_pair:
                row = single[g * n_distances : (g + 1) * n_distances]
                for d in range(n_distances):
                    counts[g, q, d] += row[d]
                    row[d] = 0
                continue
            for d in range(n_distances):
                row = double[(g * n_distances + d) * n_distances :][:n_distances]
                total = np.uint32(0)
                for e in range(n_distances):
                    total += row[e]
                counts[g, q, d] += total
                for e in range(n_distances if total > 0 else 0):
                    counts[g, q + 1, e] += row[e]
                    row[e] = 0
        q += 1 + is_pair


@_compiled
def _merge(rows, slots, shift, first, weight):
    """Number the different rows as they appear, count each, and return how many there are.

    rows (m, w) uint64, slots (2**b,) int32 of -1, shift uint64 64 - b, first (m,) int64, weight
    (m,) uint32 of 0. first[u] is the first row of number u, weight[u] tells how many are equal to
    it. ``slots`` is a hash table of the numbers.
    """
    last = np.uint64(len(slots) - 1)
    n = 0
    for j in range(len(rows)):
        key = np.uint64(0)
        for k in range(rows.shape[1]):
            key = (key ^ rows[j, k]) * _MIX
            key ^= key >> _29
        # The highest bits of a product depend on all bits of its factors.
        slot = key >> shift
        while slots[slot] >= 0:
            n_differing = 0
            for k in range(rows.shape[1]):
                n_differing += rows[first[slots[slot]], k] != rows[j, k]
            if n_differing == 0:
                break
            slot = (slot + _1) & last
        if slots[slot] < 0:
            slots[slot] = n
            first[n] = j
            n += 1
        weight[slots[slot]] += 1
    return n


@_compiled
def _lowest(distance):
    """Return the lowest distance."""
    lowest = distance[0]
    for j in range(len(distance)):
        lowest = min(lowest, distance[j])
    return lowest


@_compiled
def _keep_nearest(keys, k, counts):
    """Move the first k keys in order to the front, and return the highest distance among them."""
    counts[:] = 0
    for i in range(len(keys)):
        counts[keys[i] >> ROW_BITS] += 1
    limit, room = 0, k
    while counts[limit] < room:
        room -= counts[limit]
        limit += 1
    n = 0
    for i in range(len(keys)):
        d = keys[i] >> ROW_BITS
        keys[n] = keys[i]  # the next one overwrites it if it is not kept; a branch takes longer
        n += (d < limit) | ((d == limit) & (room > 0))
        room -= d == limit
    return limit


@_compiled
def _select(Q, D, first_row, k, distance, counts, keys):
    """Update the k nearest items of every query by those of D, the rows from first_row on.

    distance (t,) and counts (r + 2,) are scratch. keys (n, u) int64 are items: a distance above
    ROW_BITS bits of a row. The first k are the nearest so far, at the beginning of distance r + 1.
    """
    n_items = D.size // len(Q[0])
    for q in range(len(Q)):
        found, n = keys[q], k
        limit = _keep_nearest(found[:n], k, counts)
        for first in range(0, n_items, len(distance)):
            d = distance[: min(len(distance), n_items - first)]
            _distances(Q[q], D, first, d)
            # Of equal distances the first counts, so later ones must be nearer. Few tiles have one.
            for start in range(0, len(d) if _lowest(d) < limit else 0, CHUNK):
                chunk = d[start : start + CHUNK]
                for j in range(len(chunk) if _lowest(chunk) < limit else 0):
                    if chunk[j] < limit:
                        found[n] = (np.int64(chunk[j]) << ROW_BITS) + first_row + first + start + j
                        n += 1
                if n > len(found) - CHUNK:
                    limit = _keep_nearest(found[:n], k, counts)
                    n = k
        _keep_nearest(found[:n], k, counts)


@_compiled
def _collect(Q, D, first_row, radius, distance, places, indices):
    """Write the rows of the items within a radius to ``indices``, by query and distance.

    distance (t,) is scratch. places (n, radius + 1) int64 are those of the next items, and grow
    with each item. Where ``indices`` is (0,), items are only counted.
    """
    n_items = D.size // len(Q[0])
    for q in range(len(Q)):
        place = places[q]
        for first in range(0, n_items, len(distance)):
            d = distance[: min(len(distance), n_items - first)]
            _distances(Q[q], D, first, d)
            for start in range(0, len(d), CHUNK):
                chunk = d[start : start + CHUNK]
                for j in range(len(chunk) if _lowest(chunk) <= radius else 0):
                    if chunk[j] <= radius:
                        if len(indices) > 0:
                            indices[place[chunk[j]]] = first_row + first + start + j
                        place[chunk[j]] += 1


# Float queries. No code scores more than the query's own signs, ``top``. Each bit in which an item
# differs costs twice its absolute value. The sum of these values is estimated by a popcount for
# each binary digit of the values, rounded to multiples of a unit.


@_compiled
def _sum_bytes(v, sums):
    """Write the score of every byte at every place to sums (width or more, 256)."""
    for t in range(len(v) // 8):
        row = sums[t]
        row[0] = 0.0
        for i in range(8):
            x = np.float64(v[8 * t + i])
            for byte in range(1 << i):
                row[byte + (1 << i)] = row[byte] + x
                row[byte] -= x


@_compiled
def _score(sums, D, j):
    """Return the score of item j. D (w, m, size) are the bytes of words."""
    score = 0.0
    for k in range(len(D)):
        for i in range(D.shape[2]):
            score += sums[k * D.shape[2] + i, D[k, j, i]]
    return score


@_compiled
def _score_all(v, D, sums, out):
    """Write the scores of all items of D to out (m,)."""
    _sum_bytes(v, sums)
    for j in range(len(out)):
        out[j] = _score(sums, D, j)


@_compiled
def _estimate(x, planes, D, first, out):
    """Write the estimates for the items first, first + 1, ... of D (w, m) to out (t,)."""
    out[:] = 0
    for k in range(len(x)):
        column = D[k, first : first + len(out)]
        a, b, c, d, e = planes[0, k], planes[1, k], planes[2, k], planes[3, k], planes[4, k]
        for j in range(len(out)):
            y = x[k] ^ column[j]
            low = _popcount(y & a) + 2 * _popcount(y & b) + 4 * _popcount(y & c)
            out[j] += low + 8 * _popcount(y & d) + 16 * _popcount(y & e)


@_compiled
def _keep_best(scores, rows, k):
    """Move the k best in order to the front, and return the lowest score among them."""
    n = len(scores)
    least = np.partition(scores, n - k)[n - k]
    room = k
    for i in range(n):
        room -= scores[i] > least
    kept = 0
    for i in range(n):
        is_tie = scores[i] == least
        is_better = scores[i] > least
        scores[kept], rows[kept] = scores[i], rows[i]
        kept += is_better | (is_tie & (room > 0))
        room -= is_tie
    return least


@_compiled
def _select_by_value(v, Q, planes, bounds, D, first_row, k, estimate, sums, scores, rows):
    """Update the k best items of every query by those of D (w, m), the rows from first_row on.

    v (n, 8 * width) float32, Q (n, w) their signs, planes (n, PLANES, w) and bounds (n, 4) as
    `_rounded` returns them. estimate (t,) and sums (bytes of w words, 256) are scratch. The first k
    of scores and rows (n, u) are the best so far, at the beginning -inf and -1.
    """
    n_items = D.shape[1]
    D_bytes = D.view(np.uint8).reshape(len(D), n_items, D.itemsize)
    for q in range(len(Q)):
        top, unit, slack, excess = bounds[q]
        best, best_rows, n = scores[q], rows[q], k
        least = _keep_best(best[:n], best_rows[:n], k)
        limit = 1 + int(min(((top - least) / 2 + slack) / unit, MOST_LIMIT))
        _sum_bytes(v[q], sums)
        for first in range(0, n_items, len(estimate)):
            if least >= top:
                break
            e = estimate[: min(len(estimate), n_items - first)]
            _estimate(Q[q], planes[q], D, first, e)
            if limit > MOST_LIMIT and len(e) >= k:
                # The k lowest of some exclude items that certainly cost more.
                limit = 2 + int(np.partition(e[: 8 * k], k - 1)[k - 1] + (slack + excess) / unit)
            for start in range(0, len(e), CHUNK):
                chunk = e[start : start + CHUNK]
                for j in range(len(chunk) if _lowest(chunk) < limit else 0):
                    if chunk[j] < limit:
                        best[n] = _score(sums, D_bytes, first + start + j)
                        best_rows[n] = first_row + first + start + j
                        n += best[n] > least
                if n > len(best) - CHUNK:
                    least = _keep_best(best[:n], best_rows[:n], k)
                    limit = 1 + int(min(((top - least) / 2 + slack) / unit, MOST_LIMIT))
                    n = k
        _keep_best(best[:n], best_rows[:n], k)


# ---- input ---------------------------------------------------------------------------


def pack(codes: np.ndarray, bitorder: str = "little") -> np.ndarray:
    """Return codes with one entry for each bit as packed codes, (n, ceil(n_bits / 8)) uint8.

    The entries are bool, 0 and 1, or -1 and 1, of any type; others are refused, because their bits
    would be a guess. ``bitorder`` is as in ``np.packbits``; sentence-transformers uses "big".

    >>> pack([[-1.0, 1.0, 1.0]])
    array([[6]], dtype=uint8)
    """
    codes = _as_array(codes, "codes")
    if codes.ndim != 2 or codes.size == 0 or codes.dtype.kind not in "buif":
        need = "pass a matrix of numbers with one code in each row"
        raise ValueError(f"codes is {codes.dtype} of shape {codes.shape}; {need}.")
    is_one = codes == 1
    lowest = -1 if (codes == -1).any() else 0
    is_wrong = ~is_one & (codes != lowest)
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0]
        need = "pass 0 and 1, or -1 and 1: codes > 0 if these are outputs or signs with 0"
        given = f"codes[{row}, {column}] is {codes[row, column]} and others are {lowest}"
        raise ValueError(f"{given}; {need}. Packed codes need no packing.")
    return np.packbits(is_one, axis=1, bitorder=bitorder)


# hmoh.py and kernels.py have the same checks, because each file works alone.
def check_number(value, name: str, *, least=1, most=np.inf) -> int:
    """Return ``value`` as an int, or raise TypeError (no integer) or ValueError (out of range)."""
    need = f"pass an int of at least {least}" + (f", at most {most}" if most < np.inf else "")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r} is not an integer; {need}.")
    if not least <= value <= most:
        raise ValueError(f"{name}={value} is out of range; {need}.")
    return int(value)


def check_choice(value, name: str, choices: tuple) -> None:
    """Check that an option is one of some strings."""
    if not isinstance(value, str) or value not in choices:
        *some, last = (f'"{choice}"' for choice in choices)
        raise ValueError(f"{name}={value!r} is unknown; pass {', '.join(some)} or {last}.")


def _as_array(values, name: str) -> np.ndarray:
    """Return values as an array, unless a mask would be lost or numpy cannot read a tensor."""
    if np.ma.is_masked(values):
        raise TypeError(f"{name} has masked entries; drop them, or pass {name}.filled(...).")
    try:
        return np.asarray(values)
    except (RuntimeError, TypeError) as error:  # what PyTorch raises
        way = f"pass {name}.detach().cpu().numpy(), of bfloat16 {name}.detach().float().cpu()"
        raise TypeError(f"numpy cannot read {name} ({error}); {way}.") from None


def _check_codes(codes, name):
    """Return packed codes as an array (n, n_bytes) of uint8."""
    codes = _as_array(codes, name)
    if codes.ndim != 2 or codes.size == 0:
        need = "pass a 2-D array with one code in each row, of at least one byte"
        raise ValueError(f"{name} has shape {codes.shape}; {need}.")
    if codes.dtype != np.uint8:
        need = "pass pack(codes) if its entries are bits or signs"
        if codes.dtype == np.int8:
            need += ", codes.view(np.uint8) ^ 128 if they are packed; convert only what is int8"
        elif codes.dtype.kind in "ui":
            need += ", codes.view(np.uint8) or codes.astype(np.uint8) if they are words or bytes"
        raise TypeError(f"{name} has dtype {codes.dtype}, not uint8; {need}.")
    return codes


def _check_n_bits(queries, database, n_bits, has_labels):
    """Return the length of the codes, after comparing it with their bytes."""
    width = queries.shape[1]
    if database.shape[1] != width:
        widths = f"query_codes has {width} bytes per row, db_codes has {database.shape[1]}"
        raise ValueError(f"{widths}; encode both with the same model.")
    if n_bits is None:
        # Unpacked bits are 0 and 1, or 1 and 255 (-1). The first rows nearly always decide.
        for values in [(0, 1), (1, 255)] if has_labels and width > 1 else []:
            parts = (queries[:1], database[:1], queries, database)
            if all(((x == values[0]) | (x == values[1])).all() for x in parts) and database.any():
                need = f"pass pack(codes) of the bits, or n_bits={8 * width} if they are packed"
                raise ValueError(f"all bytes of the codes are {values[0]} or {values[1]}; {need}.")
        return 8 * width
    if (check_number(n_bits, "n_bits") + 7) // 8 != width:
        need = f"pass {8 * width - 7} to {8 * width}, or leave it out"
        raise ValueError(f"n_bits={n_bits} does not fit {width} bytes; {need}.")
    for codes, name in ((queries, "query_codes"), (database, "db_codes")):
        is_wrong = codes[:, -1] >> (1 + (n_bits - 1) % 8) > 0
        if is_wrong.any():
            need = "pass pack(codes) of the bits, or leave n_bits out if queries and database "
            need += "are both in big bit order (np.packbits, sentence-transformers)"
            row = np.argmax(is_wrong)
            raise ValueError(f"{name}[{row}] has bits set beyond n_bits={n_bits}; {need}.")
    return int(n_bits)


def _check_k(k, scan):
    """Check that there are k items to be found."""
    if scan.n_items == 0:
        n_items = len(scan.database)
        raise ValueError(f"mask is False for all {n_items} items; pass True for some.")
    check_number(k, "k", most=scan.n_items)


def _check_mask(mask, n_items):
    """Return a mask as an array (n_items,) of bool."""
    mask = _as_array(mask, "mask")
    if mask.dtype != bool or mask.shape != (n_items,):
        need = f"pass True or False for each of the {n_items} items, such as labels == 3"
        kind = ValueError if mask.dtype == bool else TypeError
        raise kind(f"mask has dtype {mask.dtype} and shape {mask.shape}; {need}.")
    return mask


def _check_values(values, width, bitorder):
    """Return float queries as (n, 8 * width) float32, in the order of the bits in the codes."""
    check_choice(bitorder, "bitorder", ("little", "big"))
    values = _as_array(values, "query_values")
    given = f"query_values has dtype {values.dtype} and shape {values.shape}"
    if values.dtype.kind not in "if":
        raise TypeError(f"{given}; pass floats, such as model.decision_function(X).")
    if values.ndim != 2 or values.size == 0 or -(-values.shape[1] // 8) != width:
        need = f"pass a row of {8 * width - 7} to {8 * width} values for each query"
        raise ValueError(f"{given}, but db_codes has {width} bytes per row; {need}.")
    padded = np.zeros((len(values), 8 * width), np.float32)
    with np.errstate(over="ignore"):
        padded[:, : values.shape[1]] = values
    is_finite = np.isfinite(padded)
    if not is_finite.all():
        at = tuple(np.argwhere(~is_finite)[0].tolist())
        raise ValueError(f"query_values[{at}] is {values[at]}; pass numbers within float32.")
    if bitorder == "big":
        padded = padded.reshape(-1, width, 8)[:, :, ::-1].reshape(padded.shape)
    return padded


def _check_candidates(candidates, n_queries, scan):
    """Return candidates as sorted rows (n_queries, c) int64, each once, and -1 for the others."""
    rows = _as_array(candidates, "candidates")
    n_items = len(scan.database)
    if rows.dtype.kind not in "ui" or rows.ndim != 2 or len(rows) != n_queries:
        need = f"pass whole numbers, a row for each of the {n_queries} queries"
        raise ValueError(f"candidates is {rows.dtype} of shape {rows.shape}; {need}.")
    if rows.min(initial=0) < -1 or rows.max(initial=0) >= n_items:
        need = f"pass rows of db_codes, below {n_items}, or -1 for none"
        raise ValueError(f"candidates go from {rows.min()} to {rows.max()}; {need}.")
    rows = np.sort(rows.astype(np.int64), axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    return rows if scan.mask is None else np.where(scan.mask[rows], rows, -1)


def _check_labels(labels, n_rows, name):
    """Return a label for each row as int64 or str (n,), or a matrix (n, L) of bool."""
    try:
        labels = _as_array(labels, name)
    except ValueError as error:
        need = "pass one label for each code, or a matrix of 0 and 1 with one column for each"
        raise ValueError(f"{name} has rows of different lengths ({error}); {need}.") from None
    if labels.dtype.kind in "OT" and all(isinstance(value, str) for value in labels.flat):
        labels = np.array(labels.tolist())  # a pandas column of strings, or numpy's StringDType
    given = f"{name} has dtype {labels.dtype} and shape {labels.shape}"
    if labels.ndim not in (1, 2) or len(labels) != n_rows or labels.size == 0:
        raise ValueError(f"{given}; pass a label or a row of 0/1 for each of the {n_rows} codes.")
    is_right_kind = labels.dtype.kind in ("buifU" if labels.ndim == 1 else "buif")
    if labels.dtype.kind == "f" and labels.ndim == 1:
        # Above 2**53 a float stands for several whole numbers.
        values = labels.astype(np.float64)
        is_right_kind = ((values == np.floor(values)) & (np.abs(values) <= 2.0**53)).all()
    if not is_right_kind:
        need = "pass integers, floats that are whole numbers, strings or a matrix of 0 and 1"
        if labels.dtype.kind == "S":
            need = f"bytes are no text: pass {name}.astype(str)"
        raise TypeError(f"{given}; {need}.")
    if labels.dtype == np.uint64 and labels.max() >> np.uint64(63):
        raise ValueError(f"{given} and goes up to {labels.max()}; pass labels.astype(str), both.")
    if labels.ndim == 1:
        return labels if labels.dtype.kind == "U" else np.require(labels, np.int64, "CAW")
    if labels.shape[1] == 1:
        need = "pass labels.ravel(), or judged_histogram(...) if it is relevance to one query"
        raise ValueError(f"{given}, a single column; {need}.")
    is_one = labels != 0
    if not (labels == is_one).all():
        row, column = np.argwhere(labels != is_one)[0]
        need = "a matrix of labels holds 0 and 1: pass labels > 0, or grades to judged_histogram"
        raise ValueError(f"{name}[{row}, {column}] is {labels[row, column]}; {need}.")
    return is_one


def _label_words(query_labels, db_labels, n_queries, n_items):
    """Return labels (n, v) of queries and database: integers as uint64, rows of 0/1 as bytes."""
    queries = _check_labels(query_labels, n_queries, "query_labels")
    items = _check_labels(db_labels, n_items, "db_labels")
    if queries.dtype.kind != items.dtype.kind or queries.shape[1:] != items.shape[1:]:
        forms = [f"{labels.dtype} of shape {labels.shape}" for labels in (queries, items)]
        raise ValueError(f"the labels are {forms[0]} and {forms[1]}; pass both in the same form.")
    if queries.ndim == 2:
        return np.packbits(queries, axis=1), np.packbits(items, axis=1)
    if queries.dtype.kind == "U":
        # A string becomes its place among those of the queries, any other string the next number.
        classes, queries = np.unique(queries, return_inverse=True)
        places = np.searchsorted(classes, items)
        is_known = classes[np.minimum(places, len(classes) - 1)] == items
        items = np.where(is_known, places, len(classes))
    return queries.view(np.uint64)[:, None], items.view(np.uint64)[:, None]


def _is_multi(labels):
    """Return whether words of labels are packed rows of 0/1."""
    return labels.dtype == np.uint8


def _check_pairs(queries, items, grades, n_queries, n_items):
    """Return judged pairs as (3, n_pairs) int64."""
    limits = {"queries": n_queries, "items": n_items, "grades": np.inf}
    pairs = [_as_array(*given) for given in zip((queries, items, grades), limits, strict=True)]
    for values, (name, n) in zip(pairs, limits.items(), strict=True):
        need = f"pass whole numbers from 0, below {n}, one for each pair"
        if values.dtype.kind not in "ui" or values.shape != (pairs[0].size,):
            raise ValueError(f"{name} is {values.dtype} of shape {values.shape}; {need}.")
        if values.min(initial=0) < 0 or values.max(initial=0) >= n:
            raise ValueError(f"{name} is from {values.min()} to {values.max()}; {need}.")
    pairs = np.array(pairs, np.int64)
    numbers, n_times = np.unique(pairs[0] * n_items + pairs[1], return_counts=True)
    if n_times.max(initial=0) > 1:
        q, j = divmod(int(numbers[np.argmax(n_times)]), n_items)
        raise ValueError(f"query {q} and item {j} are judged twice; pass each pair once.")
    return pairs
