"""Exact evaluation of binary codes by Hamming ranking: mAP, Precision@K, precision within a radius, PR curves.

Copy this file alone into any project: it needs numpy and numba, nothing else.

One pass over the database counts, for every query, how many items and how many relevant items lie at each
Hamming distance 0..r. Every metric is a closed form of these two histograms, and the histograms of two shards
of a database simply add up. Hamming ranking ties most of a database, so by default a metric is its expectation
over all orders of the tied items: no sort order to depend on, nothing to sample.

>>> import numpy as np
>>> bits = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
>>> codes = np.packbits(bits, axis=1, bitorder="little")         # the layout of FAISS binary indexes
>>> h = hamming_histogram(codes, codes, ["a", "b", "a"], ["a", "b", "a"], n_bits=3)
>>> round(h.mean_average_precision(), 4)
0.8889
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

__all__ = ["HammingHistogram", "area_under_curve", "hamming_histogram", "mean_average_precision", "nearest"]

PACK = 'np.packbits(codes > 0, axis=1, bitorder="little")'  # of 0 and 1, or -1 and 1
BLOCK_WORDS = 1 << 17  # 64-bit words of database codes held at a time: 1 MB, which stays in a core's cache
SAMPLE = 1024  # rows looked at to decide whether equal items are worth merging


# ---- compiled loops --------------------------------------------------------------------------------------------


def _compiled(function):
    """Compile on first call, cached on disk where there is a folder to write to."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no such folder, for example a read-only install
        return njit(nogil=True)(function)


# Every constant is a uint64: numba turns uint64 combined with a plain int into float64.
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_PAIRS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_BYTES, _ONES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@_compiled
def _popcount(x):
    """Number of 1 bits of a uint64, summed in parallel over 2, 4 and 8 bits; LLVM makes it one instruction."""
    x = x - ((x >> _1) & _PAIRS)
    x = (x & _NIBBLES) + ((x >> _2) & _NIBBLES)
    return np.int64((((x + (x >> _4)) & _BYTES) * _ONES) >> _56)


@_compiled
def _distance(x, D, j):
    """Hamming distance of a code x and row j of D."""
    if D.shape[1] == 1:  # the same for all pairs: the compiler moves these branches out of the loops below
        return _popcount(x[0] ^ D[j, 0])
    if D.shape[1] == 2:
        return _popcount(x[0] ^ D[j, 0]) + _popcount(x[1] ^ D[j, 1])
    d = 0
    for k in range(D.shape[1]):
        d += _popcount(x[k] ^ D[j, k])
    return d


@_compiled
def _is_relevant(Lq, q, Ld, j, multi):
    """Whether two items share a label: the same id, or a common 1 in the words of a label set."""
    if not multi:
        return Lq[q, 0] == Ld[j, 0]
    common = Lq[q, 0] & Ld[j, 0]
    for k in range(1, Ld.shape[1]):
        common |= Lq[q, k] & Ld[j, k]
    return common != 0


@_compiled
def _count(Q, D, weight, start, stop, counts):
    """counts[q, d] += weight of the rows start[q]..stop[q] of D at distance d of query q."""
    for q in range(len(Q)):
        x, row = Q[q], counts[q]
        part, w = D[start[q] : stop[q]], weight[start[q] : stop[q]]  # an index that starts at 0 needs no sign check
        for j in range(len(part)):
            row[_distance(x, part, j)] += w[j]


@_compiled
def _count_multi(Q, D, weight, Lq, Ld, items, relevant):
    """The same over all of D for label sets, where relevant rows are scattered."""
    for q in range(len(Q)):
        x, all_row, relevant_row = Q[q], items[q], relevant[q]
        for j in range(len(D)):
            d = _distance(x, D, j)
            all_row[d] += weight[j]
            relevant_row[d] += weight[j] * _is_relevant(Lq, q, Ld, j, True)


@_compiled
def _rank_stable(Q, D, Lq, Ld, multi, top, rank, hits, precision, found):
    """Go on ranking with the rows of D, in database order: rank[q, d] and hits[q, d] are the last ones given."""
    for q in range(len(Q)):
        x = Q[q]
        for j in range(len(D)):
            d = _distance(x, D, j)
            rank[q, d] += 1
            if _is_relevant(Lq, q, Ld, j, multi):
                hits[q, d] += 1
                if rank[q, d] <= top:
                    precision[q] += hits[q, d] / rank[q, d]
                    found[q] += 1


@_compiled
def _select(Q, D, first_row, place, distances, indices):
    """Put the rows of D into the places of the k best; place[q, d] is the next one for distance d."""
    for q in range(len(Q)):
        x = Q[q]
        for j in range(len(D)):
            d = _distance(x, D, j)
            if place[q, d] < distances.shape[1]:
                distances[q, place[q, d]] = d
                indices[q, place[q, d]] = first_row + j
                place[q, d] += 1


# ---- the doors -------------------------------------------------------------------------------------------------


def _as_codes(codes, name: str) -> np.ndarray:
    codes = np.asarray(codes)
    if codes.ndim != 2 or 0 in codes.shape:
        raise ValueError(f"{name} has shape {codes.shape}; pass a 2-D array, each row a code of at least a byte.")
    if codes.dtype != np.uint8:
        ways = f"{PACK} if its entries are bits, codes.astype(np.uint8) if they are bytes of packed codes"
        raise TypeError(f"{name} has dtype {codes.dtype}; packed uint8 codes are needed: pass {ways}.")
    return codes


def _as_count(value, name: str, least: int = 1) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r} is not a whole number; pass an int of at least {least}.")
    if value < least:
        raise ValueError(f"{name}={value} is too small; pass an int of at least {least}.")
    return int(value)


def _as_labels(labels, n_rows: int, name: str) -> np.ndarray:
    """One integer or string per row, or a matrix (n, L) whose 0/1 are checked block by block."""
    try:
        labels = np.asarray(labels)
    except ValueError as error:  # rows of different lengths
        way = "a label for each code, or a matrix of 0 and 1 with a column for each label"
        raise ValueError(f"{name} is not a whole array ({error}); pass {way}.") from None
    if labels.dtype == object and {type(value) for value in labels.flat} <= {str}:  # a pandas column of strings
        labels = labels.astype(str)
    if labels.dtype.kind not in "buiU" or (labels.ndim == 2 and labels.dtype.kind == "U"):
        ways = "integers, strings or a matrix of 0 and 1, such as labels.astype(int) for whole numbers"
        raise TypeError(f"{name} has dtype {labels.dtype} and shape {labels.shape}; pass {ways}.")
    if labels.ndim not in (1, 2) or len(labels) != n_rows:
        raise ValueError(
            f"{name} has shape {labels.shape}; pass a label or a row of 0/1 for each of the {n_rows} codes."
        )
    if labels.ndim == 2 and labels.shape[1] < 2:
        raise ValueError(f"{name} has shape {labels.shape}; 2 or more columns of 0/1 are needed: pass labels.ravel().")
    return labels


def _as_ids(labels: np.ndarray, name: str) -> np.ndarray:
    """Integers as int64, as numpy compares int64 with uint64 in float64; strings as they are."""
    if labels.dtype == np.uint64 and labels.max() >= 1 << 63:
        raise ValueError(f"{name} hold {labels.max()}; numbers below 2**63 are needed: pass labels.astype(str).")
    return labels if labels.dtype.kind == "U" else labels.astype(np.int64)


def _as_words(rows: np.ndarray) -> np.ndarray:
    """Rows of bytes as rows of uint64, the last word filled up with zeros."""
    words = np.zeros((len(rows), -(-rows.shape[1] // 8)), np.uint64)
    words.view(np.uint8)[:, : rows.shape[1]] = rows
    return words


class _Pass:
    """Queries against a database, both checked, the database read block by block: only a block is ever copied."""

    def __init__(self, query_codes, db_codes, labels=None, n_bits=None, n_threads=None):
        query_codes, self.db_codes = _as_codes(query_codes, "query_codes"), _as_codes(db_codes, "db_codes")
        width, other = query_codes.shape[1], self.db_codes.shape[1]
        if width != other:
            raise ValueError(f"query_codes have {width} bytes, but db_codes {other}; encode both with one model.")
        self.n_bits = 8 * width if n_bits is None else _as_count(n_bits, "n_bits")
        if -(-self.n_bits // 8) != width:
            fitting = f"pass n_bits from {8 * width - 7} to {8 * width}, or leave it out"
            raise ValueError(f"n_bits={n_bits} does not fit codes of {width} bytes; {fitting}.")
        self.n_threads = _cores() if n_threads is None else _as_count(n_threads, "n_threads")
        self.Q = self._code_words(query_codes, "query_codes", 0)
        self.labelled = labels is not None
        if self.labelled:
            query_labels = _as_labels(labels[0], len(self.Q), "query_labels")
            self.db_labels = _as_labels(labels[1], len(self.db_codes), "db_labels")
            forms = [(a.shape[1:], a.dtype.kind == "U") for a in (query_labels, self.db_labels)]
            if forms[0] != forms[1]:
                given = " and ".join(f"{a.dtype}{list(a.shape)}" for a in (query_labels, self.db_labels))
                raise ValueError(f"query_labels and db_labels are {given}; pass both in one form.")
            self.multi = query_labels.ndim == 2
            self.classes = None if self.multi else np.unique(_as_ids(query_labels, "query_labels"))
            self.Lq = self._label_words(query_labels, "query_labels", 0)

    def _code_words(self, codes, name, first):
        used = self.n_bits % 8
        if used and (codes[:, -1] >> used).any():
            row = first + int(np.argmax(codes[:, -1] >> used > 0))
            raise ValueError(f"{name}[{row}] has bits set beyond n_bits={self.n_bits}; these must be 0: pass {PACK}.")
        return _as_words(codes)

    def _label_words(self, labels, name, first):
        """The place of a label among the queries' labels (one past the end for any other), or packed 0/1 rows."""
        if self.multi:
            wrong = np.argwhere((labels != 0) & (labels != 1))
            if len(wrong):
                row, column = wrong[0]
                value = f"{name}[{first + row}, {column}] is {labels[row, column]}"
                raise ValueError(f"{value}; 0 and 1 are needed in a matrix of labels: pass labels > 0.")
            return _as_words(np.packbits(labels != 0, axis=1))
        labels = _as_ids(labels, name)
        place = np.searchsorted(self.classes, labels)
        place[place == len(self.classes)] = 0
        return np.where(self.classes[place] == labels, place, len(self.classes)).astype(np.uint64)[:, None]

    def blocks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """(first row, code words, label words) of one block of the database after the other."""
        n_rows = max(1, BLOCK_WORDS // self.Q.shape[1])
        for first in range(0, len(self.db_codes), n_rows):
            rows = slice(first, first + n_rows)
            labels = self._label_words(self.db_labels[rows], "db_labels", first) if self.labelled else None
            yield first, self._code_words(self.db_codes[rows], "db_codes", first), labels

    def run(self, loop: Callable[[slice], None], n_rows: int) -> None:
        """Call a loop for slices of the queries in threads; each writes its own rows, so their number is no matter."""
        n_threads = min(self.n_threads, len(self.Q), 1 + len(self.Q) * n_rows // 100_000)  # none for a little work
        edges = np.linspace(0, len(self.Q), n_threads + 1).astype(int)

        def run_part(k):
            with np.errstate(over="ignore"):  # with the JIT off, numpy warns where popcount wraps on purpose
                loop(slice(edges[k], edges[k + 1]))

        if n_threads == 1:
            return run_part(0)
        with ThreadPoolExecutor(n_threads) as pool:  # made for the call, so that a later fork is safe
            list(pool.map(run_part, range(n_threads)))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- one pass over the database --------------------------------------------------------------------------------


def _group(D: np.ndarray, Ld: np.ndarray, multi: bool, n_queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order a block by label, and merge equal items into one with a weight where that is worth the sorting."""
    label = Ld[:, 0] if not multi else np.zeros(len(Ld), np.uint64)
    key = np.zeros(len(D), np.uint64)
    for column in [*D.T, *(Ld.T if multi else [])]:  # mix all words into one; a collision only merges less
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    sample = key[:: max(1, len(key) // SAMPLE)]
    spared = 1 - len(np.unique(sample)) / len(sample)
    if n_queries * D.shape[1] * spared < 200 or label.max() >= 1 << 16:
        order = np.argsort(label, kind="stable") if not multi else slice(None)
        return D[order], Ld[order], np.ones(len(D), np.int32)
    order = np.argsort((label << np.uint64(48)) | (key >> np.uint64(16)))
    D, Ld = D[order], Ld[order]
    new = np.ones(len(D) + 1, bool)
    new[1:-1] = (D[1:] != D[:-1]).any(axis=1) | (Ld[1:] != Ld[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    return D[first[:-1]], Ld[first[:-1]], np.diff(first).astype(np.int32)


def hamming_histogram(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    n_bits: int | None = None,
    n_threads: int | None = None,
) -> HammingHistogram:
    """Count items and relevant items at every Hamming distance of every query.

    Parameters
    ----------
    query_codes, db_codes : (n, ceil(n_bits / 8)) uint8
        Packed codes, ``np.packbits(bits, axis=1, bitorder="little")``; padding bits are 0.
    query_labels, db_labels : (n,) integers or strings, or (n, L) 0/1
        An item is relevant to a query if it has the same label, or in the second form at least one common label.
    n_bits : int, optional
        Length of the codes; by default all bits of the packed bytes.
    n_threads : int, optional
        By default all cores. The result does not depend on it.

    Returns
    -------
    HammingHistogram

    Examples
    --------
    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> hamming_histogram(codes[:1], codes, [7], [7, 8, 7], n_bits=3).items
    array([[1, 1, 0, 1]])
    """
    todo = _Pass(query_codes, db_codes, (query_labels, db_labels), n_bits, n_threads)
    Q, Lq, multi = todo.Q, todo.Lq, todo.multi
    items, relevant = np.zeros((2, len(Q), todo.n_bits + 1), np.int64)
    for _, D, Ld in todo.blocks():
        D, Ld, weight = _group(D, Ld, multi, len(Q))

        def loop(part):
            if multi:
                return _count_multi(Q[part], D, weight, Lq[part], Ld, items[part], relevant[part])
            # In a block ordered by label the relevant rows of a query are a slice: count before, in and after it.
            low, high = (np.searchsorted(Ld[:, 0], Lq[part, 0], side) for side in ("left", "right"))
            for start, stop, counts in ((0 * low, low, items), (low, high, relevant), (high, 0 * high + len(D), items)):
                _count(Q[part], D, weight, start, stop, counts[part])

        todo.run(loop, len(D))
    return HammingHistogram(items if multi else items + relevant, relevant)


# ---- the metrics -----------------------------------------------------------------------------------------------


def _harmonic(n: np.ndarray) -> np.ndarray:
    """H_n = 1 + 1/2 + ... + 1/n, by Euler and Maclaurin's series from 32 on (error below 1e-15)."""
    small = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 32))])
    u = 1 / np.maximum(n, 32)
    series = np.euler_gamma - np.log(u) + u * (1 / 2 - u * (1 / 12 - u**2 * (1 / 120 - u**2 / 252)))
    return np.where(n < 32, small[np.minimum(n, 31)], series)


@dataclass(frozen=True, eq=False, repr=False)
class HammingHistogram:
    """Items and relevant items of every query at every Hamming distance, and the metrics that follow from them.

    ``a + b`` (or ``sum``) joins the histograms of the same queries over two shards of a database.

    Attributes
    ----------
    items, relevant : (n_queries, n_bits + 1) int64
    """

    items: np.ndarray
    relevant: np.ndarray

    def __post_init__(self) -> None:
        if self.items.ndim != 2 or self.items.shape != self.relevant.shape:
            shapes = f"{self.items.shape} and {self.relevant.shape}"
            raise ValueError(f"items and relevant have shapes {shapes}; pass two arrays (n_queries, n_bits + 1).")
        wrong = (self.relevant < 0) | (self.relevant > self.items)
        if wrong.any():
            q, d = np.argwhere(wrong)[0]
            value = f"{self.relevant[q, d]} of {self.items[q, d]} items are relevant to query {q} at distance {d}"
            raise ValueError(f"{value}; pass relevant from 0 to items.")

    def __repr__(self) -> str:
        n_items = self.items[0].sum()
        return f"HammingHistogram(n_queries={len(self.items)}, n_bits={self.n_bits}, n_items={n_items})"

    def __add__(self, other: HammingHistogram) -> HammingHistogram:
        if not isinstance(other, HammingHistogram):
            return NotImplemented
        if self.items.shape != other.items.shape:
            raise ValueError(
                f"{self} and {other} cannot be added; pass histograms of the same queries and code length."
            )
        return HammingHistogram(self.items + other.items, self.relevant + other.relevant)

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    @property
    def n_bits(self) -> int:
        return self.items.shape[1] - 1

    @property
    def n_empty(self) -> int:
        """Number of queries with no relevant item in the database; mAP and PR curves leave them out."""
        return int(np.count_nonzero(self.relevant.sum(axis=1) == 0))

    def without_self(self) -> HammingHistogram:
        """The histogram with each query's own item removed, for a set of codes evaluated against itself."""
        own = self.relevant.any(axis=1)  # a query without a label is not even relevant to itself
        missing = np.flatnonzero((self.items[:, 0] == 0) | (own & (self.relevant[:, 0] == 0)))
        if len(missing):
            need = "pass codes against a database that contains them"
            raise ValueError(f"query {missing[0]} has no item of its own at distance 0; {need}.")
        items, relevant = self.items.copy(), self.relevant.copy()
        items[:, 0] -= 1
        relevant[:, 0] -= own
        return HammingHistogram(items, relevant)

    def mean_average_precision(
        self, top: int | None = None, normalize: str = "relevant", per_query: bool = False
    ) -> float | np.ndarray:
        """Mean average precision, exact in expectation over the orders of tied items.

        With n items and n+ relevant ones at a distance, N and N+ before it, and m = (n+ - 1) / (n - 1),

            E[AP] = 1/R sum_d (n+/n) sum_{i=N+1}^{N+n} (N+ + 1 + (i - N - 1) m) / i ,

        whose inner sum up to e is m (e - N) + (N+ + 1 - m (N + 1)) (H_e - H_N), H the harmonic numbers.

        Parameters
        ----------
        top : int, optional
            Only the first ``top`` ranks count (mAP@top).
        normalize : {"relevant", "min", "retrieved"}
            Divide by the relevant items R, by min(R, top), or by the relevant items among the first ``top``. The
            last is what most published hashing code does; it can rank [+ - -] above [+ - +].
        per_query : bool
            Return the average precision of each query, NaN for those left out: queries without a relevant item
            (for "retrieved": none that can be among the first ``top``).
        """
        _check_options(top, normalize)
        last = int(self.items[0].sum()) if top is None else top
        n, hits = self.items, self.relevant
        end = n.cumsum(axis=1)
        before, hits_before = end - n, hits.cumsum(axis=1) - hits
        ranks = np.minimum(np.insert(end, 0, 0, axis=1), last)  # the last rank used before each distance
        slope = (hits - 1) / np.maximum(n - 1, 1)
        sums = slope * np.diff(ranks) + (hits_before + 1 - slope * (before + 1)) * np.diff(_harmonic(ranks))
        sums *= hits / np.maximum(n, 1)
        if normalize == "retrieved":
            ap = np.array([_retrieved_ap(*rows, last) for rows in zip(n, hits, before, hits_before, sums, strict=True)])
        else:
            ap = sums.sum(axis=1) / _divisor(hits.sum(axis=1), last, normalize)
        return ap if per_query else _mean(ap, top)

    def precision_at_radius(self, radius: int, per_query: bool = False) -> float | np.ndarray:
        """Share of relevant items within Hamming distance ``radius`` (Precision@H2 for 2); an empty ball counts 0."""
        radius = _as_count(radius, "radius", least=0)
        items, hits = (h[:, : radius + 1].sum(axis=1) for h in (self.items, self.relevant))
        precision = hits / np.maximum(items, 1)
        return precision if per_query else float(precision.mean())

    def precision_at_k(self, k: int | list[int], per_query: bool = False) -> float | np.ndarray:
        """Expected share of relevant items among the first k: (N+ + (k - N) n+/n) / k, the k-th item's tie being cut.

        One value per k (a float for a single k); with ``per_query`` one row per query.
        """
        ks = np.array([_as_count(value, "k") for value in (k if np.ndim(k) else [k])])
        n_items = int(self.items[0].sum())
        if not len(ks):
            raise ValueError(f"k={k} holds no number; pass at least one.")
        if ks.max() > n_items:
            raise ValueError(f"k={ks.max()} is more than the {n_items} items of the database; pass a smaller k.")
        end = self.items.cumsum(axis=1)
        cut = np.stack([(end < value).sum(axis=1) for value in ks], axis=1)  # the distance of the k-th item
        n, n_hits, N, N_hits = (
            np.take_along_axis(h, cut, axis=1)
            for h in (self.items, self.relevant, end - self.items, self.relevant.cumsum(axis=1) - self.relevant)
        )
        precision = (N_hits + (ks - N) * (n_hits / n)) / ks
        if np.ndim(k) == 0:
            precision = precision[:, 0]
        if per_query:
            return precision
        return precision.mean(axis=0) if np.ndim(k) else float(precision.mean())

    def precision_recall(self) -> tuple[np.ndarray, np.ndarray]:
        """(precision, recall) within each radius 0..n_bits, means over the queries that have a relevant item."""
        total = self.relevant.sum(axis=1)
        some = total > 0
        _mean(np.where(some, 0.0, np.nan), None)  # an error if there is no such query
        items, hits = self.items[some].cumsum(axis=1), self.relevant[some].cumsum(axis=1)
        return (hits / np.maximum(items, 1)).mean(axis=0), (hits / total[some, None]).mean(axis=0)


def _check_options(top, normalize: str) -> None:
    if top is not None:
        _as_count(top, "top")
    if normalize not in ("relevant", "min", "retrieved"):
        raise ValueError(f'normalize={normalize!r} is unknown; pass "relevant", "min" or "retrieved".')


def _divisor(n_relevant: np.ndarray, top: int, normalize: str) -> np.ndarray:
    """What a query's sum of precisions is divided by; NaN leaves the query out."""
    divisor = np.minimum(n_relevant, top) if normalize == "min" else n_relevant
    return np.where(divisor > 0, divisor, np.nan)


def _retrieved_ap(n, hits, before, hits_before, sums, top: int) -> float:
    """Expected AP of one query divided by its hits among the first ``top``.

    The number h of hits in the first q places of the tie that ``top`` cuts is hypergeometric. Given h they lie anywhere
    in these places, and their precisions sum up to (h/q) sum_{j=1}^q (N+ + 1 + (j - 1) (h - 1)/(q - 1)) / (N + j).
    """
    cut = int(np.searchsorted(before, top, side="left")) - 1  # the last distance that begins before rank ``top``
    whole, N, N_hits = sums[:cut].sum(), int(before[cut]), int(hits_before[cut])
    size, good = int(n[cut]), int(hits[cut])
    q = min(top - N, size)
    h = np.arange(max(0, q - (size - good)), min(q, good) + 1)
    ratio = (good - h[:-1]) * (q - h[:-1]) / (h[1:] * (size - good - q + h[1:]))  # P(h + 1) / P(h)
    log_p = np.concatenate([[0.0], np.cumsum(np.log(ratio))])
    p = np.exp(log_p - log_p.max())
    H = float(np.diff(_harmonic(np.array([N, N + q])))[0])
    part = h / max(q, 1) * ((N_hits + 1) * H + (h - 1) / max(q - 1, 1) * (q - (N + 1) * H))
    if N_hits + h[-1] == 0:
        return np.nan
    return float((p * (whole + part) / np.maximum(N_hits + h, 1)).sum() / p.sum())


def _mean(ap: np.ndarray, top: int | None) -> float:
    """Mean over the queries not left out."""
    if np.isnan(ap).all():
        where = "the database" if top is None else f"the first {top} ranks"
        raise ValueError(
            f"none of the {len(ap)} queries has a relevant item in {where}; check the labels of both sides."
        )
    return float(np.nanmean(ap))


def mean_average_precision(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    top: int | None = None,
    ties: str = "expected",
    normalize: str = "relevant",
    n_bits: int | None = None,
) -> float:
    """Mean average precision in one line; see `hamming_histogram` and `HammingHistogram.mean_average_precision`.

    Parameters
    ----------
    ties : {"expected", "stable"}
        "stable" ranks tied items in database order, as a stable sort does, to compare with other code.

    Examples
    --------
    >>> codes = np.array([[0], [1], [1]], np.uint8)
    >>> round(mean_average_precision(codes[:1], codes, [5], [6, 6, 5]), 6), round(5 / 12, 6)  # rank 2 or 3
    (0.416667, 0.416667)
    >>> round(mean_average_precision(codes[:1], codes, [5], [6, 6, 5], ties="stable"), 6)  # rank 3
    0.333333
    """
    _check_options(top, normalize)
    if ties not in ("expected", "stable"):
        raise ValueError(f'ties={ties!r} is unknown; pass "expected" or "stable".')
    histogram = hamming_histogram(query_codes, db_codes, query_labels, db_labels, n_bits)
    if ties == "expected":
        return histogram.mean_average_precision(top, normalize)
    todo = _Pass(query_codes, db_codes, (query_labels, db_labels), n_bits)
    last = len(db_codes) if top is None else top
    rank, hits = (h.cumsum(axis=1) - h for h in (histogram.items, histogram.relevant))
    precision, found = np.zeros(len(todo.Q)), np.zeros(len(todo.Q), np.int64)
    for _, D, Ld in todo.blocks():

        def loop(p):
            _rank_stable(todo.Q[p], D, todo.Lq[p], Ld, todo.multi, last, rank[p], hits[p], precision[p], found[p])

        todo.run(loop, len(D))
    n_relevant = found if normalize == "retrieved" else histogram.relevant.sum(axis=1)
    return _mean(precision / _divisor(n_relevant, last, normalize), top)


def nearest(query_codes: np.ndarray, db_codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest items of every query by Hamming distance, ties in database order.

    Two passes over the database and no index: meant for pictures and small searches; FAISS reads the same codes.

    Returns
    -------
    distances, indices : (n_queries, k) int64

    Examples
    --------
    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> nearest(codes[2:], codes, k=2)
    (array([[0, 2]]), array([[2, 1]]))
    """
    todo = _Pass(query_codes, db_codes)
    k = _as_count(k, "k")
    if k > len(db_codes):
        raise ValueError(f"k={k} is more than the {len(db_codes)} items of the database; pass a smaller k.")
    Q, items = todo.Q, np.zeros((len(todo.Q), todo.n_bits + 1), np.int64)
    distances, indices = np.zeros((2, len(Q), k), np.int64)
    for _, D, _ in todo.blocks():
        weight, start, stop = np.ones(len(D), np.int32), np.zeros(len(Q), np.int64), np.full(len(Q), len(D))
        todo.run(lambda p: _count(Q[p], D, weight, start[p], stop[p], items[p]), len(D))
    place = items.cumsum(axis=1) - items
    for first, D, _ in todo.blocks():
        todo.run(lambda p: _select(Q[p], D, first, place[p], distances[p], indices[p]), len(D))
    return distances, indices


def area_under_curve(x: np.ndarray, y: np.ndarray) -> float:
    """Area under a curve by the trapezoid rule, divided by the range of x: the curve's mean height.

    >>> area_under_curve([0, 10, 20], [0.0, 1.0, 1.0])
    0.75
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError(f"x and y have shapes {x.shape} and {y.shape}; pass the coordinates of two or more points.")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (np.diff(x) > 0).all()):
        raise ValueError(f"x is {x} and y is {y}; pass finite numbers, with x increasing.")
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))
