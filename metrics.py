"""Exact evaluation of binary codes by Hamming ranking: mAP, Precision@K, PR curves.

Copy this file alone into any project: it needs only numpy and numba.

One pass over the database counts all items and the relevant items at each Hamming distance 0..r of
every query. Every metric is a closed form of these two histograms. The histograms of two shards of
a database add up. Hamming ranking ties most of a database, so by default a metric is its
expectation over all orders of the tied items. It depends on no sort order and needs no sampling.

Reading guide, in this order:

1. `HammingHistogram`, section "metrics": the two histograms and the formula of each metric.
2. `hamming_histogram`, section "one pass over the database": how the histograms are counted.
3. `_distance` and `_count`, section "compiled loops": the loops that take nearly all the time.
4. `_DatabaseScan`, section "input checks": which input is accepted and which errors are raised, how
   the database is read in blocks, how the queries are divided among threads.
5. `mean_average_precision` and `nearest`, last section: ranking with ties in database order.

>>> import numpy as np
>>> bits = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
>>> codes = np.packbits(bits, axis=1, bitorder="little")  # the layout of FAISS binary indexes
>>> h = hamming_histogram(codes, codes, ["a", "b", "a"], ["a", "b", "a"], n_bits=3)
>>> round(h.mean_average_precision(), 4)
0.8889
"""

from __future__ import annotations

import contextlib
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

__all__ = [
    "HammingHistogram",
    "area_under_curve",
    "check_integer",
    "hamming_histogram",
    "mean_average_precision",
    "nearest",
]

# How to pack codes of 0 and 1, or of -1 and 1.
PACK = 'np.packbits(codes > 0, axis=1, bitorder="little")'
BLOCK_WORDS = 1 << 17  # words of codes or labels in a block: 1 MB, for a core's cache
SAMPLE = 1024  # rows that are examined to decide whether merging equal codes saves time
PAIRS_PER_THREAD = 100_000  # for fewer pairs, another thread saves no time


# ---- compiled loops ------------------------------------------------------------------


class _DiskCache(FunctionCache):
    """Numba's cache on disk. If it is full, read-only or damaged, it gives one warning."""

    def load_overload(self, *arguments):
        return self._or_warn(super().load_overload, *arguments)

    def save_overload(self, *arguments):
        return self._or_warn(super().save_overload, *arguments)

    def _or_warn(self, action, *arguments):
        try:
            return action(*arguments)
        except Exception as error:  # damaged files raise nearly anything
            # Numba writes the index first. On a full disk, a new one may name old code.
            with contextlib.suppress(OSError):
                os.remove(self._cache_file._index_path)
            # The files of this project that have this class share the mark.
            if not hasattr(numba, "_hmoh_warned"):
                numba._hmoh_warned = True
                reason = f"{self.cache_path} failed ({type(error).__name__}: {error})"
                way = "delete that folder, free space, or set NUMBA_CACHE_DIR to another folder"
                text = f"the cache {reason}, so loops are compiled again; {way}."
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            return None


def _compiled(function):
    """Compile on the first call, and cache the result on disk if a folder can be written."""
    loop = njit(nogil=True)(function)
    # Without a folder for the cache, as in a read-only install, there is none.
    with contextlib.suppress(RuntimeError):
        loop._cache = _DiskCache(function)
    return loop


# Every constant is a uint64, because numba turns uint64 combined with a plain int into float64.
# The masks select every other bit, every other 2 and every other 4 bits, and the lowest of each 8.
_1 = np.uint64(1)
_2 = np.uint64(2)
_4 = np.uint64(4)
_56 = np.uint64(56)
_BITS = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES = np.uint64(0x0101010101010101)


@_compiled
def _popcount(x):
    """Return the number of 1 bits of x uint64 as int64, summed over 2, 4 and 8 bits in parallel."""
    # LLVM turns these lines into one instruction.
    x = x - ((x >> _1) & _BITS)
    x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
    x = (x + (x >> _4)) & _NIBBLES
    return np.int64((x * _ONES) >> _56)


@_compiled
def _distance(x, D, j):
    """Return the Hamming distance of a code x (w,) uint64 and row j of D (m, w) uint64."""
    # The width is the same for all pairs, so the compiler moves these branches out of the loops.
    if D.shape[1] == 1:
        return _popcount(x[0] ^ D[j, 0])
    if D.shape[1] == 2:
        return _popcount(x[0] ^ D[j, 0]) + _popcount(x[1] ^ D[j, 1])
    d = 0
    for k in range(D.shape[1]):
        d += _popcount(x[k] ^ D[j, k])
    return d


@_compiled
def _mark_relevant(Lq, q, Ld, multi, is_hit):
    """Write whether row q of Lq and each column of Ld share a label.

    Lq (n, v) uint64, Ld (v, m) uint64, is_hit (m,) bool.
    """
    # A single label is one word. With multi the words are packed 0/1.
    if not multi:
        label = Lq[q, 0]
        column = Ld[0]
        for j in range(len(column)):
            is_hit[j] = column[j] == label
        return
    is_hit[:] = False
    for k in range(len(Ld)):
        word = Lq[q, k]
        # Most queries have few labels, so most words of a long row are 0.
        if word != 0:
            column = Ld[k]
            for j in range(len(column)):
                is_hit[j] |= (column[j] & word) != 0


@_compiled
def _weigh(is_hit, edges, weight):
    """Count the items edges[u]..edges[u + 1] - 1 of each code u, and the hits among them.

    is_hit (m,) bool, edges (c + 1,) int64, weight (c,) int64. A weight is the number of items plus
    2**32 times the number of hits.
    """
    if len(weight) == len(is_hit):
        # Each code has one item, and a loop without an inner loop is much faster.
        for u in range(len(weight)):
            weight[u] = 1 + (np.int64(is_hit[u]) << 32)
        return
    for u in range(len(weight)):
        part = is_hit[edges[u] : edges[u + 1]]
        n_hits = 0
        for j in range(len(part)):
            n_hits += part[j]
        weight[u] = len(part) + (n_hits << 32)


@_compiled
def _count(order, is_new, Q, D, edges, Lq, Ld, multi, items, relevant):
    """Add the items and the relevant items at distance d of query q to items[q, d], relevant[q, d].

    order (p,) int64, is_new (p,) bool, Q (n, w), D (c, w), Lq (n, v), Ld (v, m) uint64, edges
    (c + 1,) int64, items, relevant (n, r + 1) int64. The queries are taken in ``order``. is_new
    tells whether one has other labels than the last. For the other arrays see `_merge_codes`.
    """
    is_hit = np.empty(Ld.shape[1], np.bool_)
    weight = np.empty(len(D), np.int64)
    # One addition counts both, because a block has fewer than 2**32 items.
    both = np.zeros(items.shape[1], np.int64)
    for i in range(len(order)):
        q = order[i]
        if i == 0 or is_new[i]:
            _mark_relevant(Lq, q, Ld, multi, is_hit)
            _weigh(is_hit, edges, weight)
        x = Q[q]
        for u in range(len(D)):
            both[_distance(x, D, u)] += weight[u]
        for d in range(len(both)):
            items[q, d] += both[d] & 0xFFFFFFFF
            relevant[q, d] += both[d] >> 32
            both[d] = 0


@_compiled
def _expect_over_cut(whole_ties, N, N_hits, size, good, q, harmonic, ap):
    """Set ap to the expected AP over the hits in the first q of a tie that is cut.

    N, N_hits, size, good, q (n,) int64, whole_ties, harmonic, ap (n,) float64. The number h of hits
    among the q is hypergeometric. Given h, every choice of places is equally likely, and the
    precisions at the hits sum up to (h/q) sum_{j=1}^q (N+ + 1 + (j - 1) (h - 1)/(q - 1)) / (N + j).
    """
    for i in range(len(ap)):
        least = max(0, q[i] - (size[i] - good[i]))
        most = min(q[i], good[i])
        if N_hits[i] + most == 0:
            ap[i] = np.nan
            continue
        # P(h) up to a factor, and the sums over h of P and of P times AP.
        p = 1.0
        total = 0.0
        total_ap = 0.0
        for h in range(least, most + 1):
            m = (h - 1) / max(q[i] - 1, 1)
            tie = (N_hits[i] + 1) * harmonic[i] + m * (q[i] - (N[i] + 1) * harmonic[i])
            tie *= h / max(q[i], 1)
            total += p
            total_ap += p * (whole_ties[i] + tie) / max(N_hits[i] + h, 1)
            if h < most:
                p *= (good[i] - h) / (h + 1)
                p *= (q[i] - h) / (size[i] - good[i] - q[i] + h + 1)
                # The factor is changed before p becomes infinite.
                if p > 1e200:
                    p *= 1e-200
                    total *= 1e-200
                    total_ap *= 1e-200
        ap[i] = total_ap / total


@_compiled
def _rank_stable(Q, D, Lq, Ld, multi, top, rank, hits, precision, found):
    """Rank the rows of D in database order, and add up the precisions at the hits in ``top``.

    Q (n, w), D (m, w), Lq (n, v), Ld (v, m) uint64, rank, hits (n, r + 1), precision, found (n,).
    ``precision`` is float64, the other outputs are int64. rank[q, d] and hits[q, d] are the last
    rank given at distance d and the number of hits up to it. The next block continues from there.
    """
    is_hit = np.empty(len(D), np.bool_)
    for q in range(len(Q)):
        x = Q[q]
        _mark_relevant(Lq, q, Ld, multi, is_hit)
        for j in range(len(D)):
            d = _distance(x, D, j)
            rank[q, d] += 1
            if is_hit[j]:
                hits[q, d] += 1
                if rank[q, d] <= top:
                    precision[q] += hits[q, d] / rank[q, d]
                    found[q] += 1


@_compiled
def _select(Q, D, first_row, place, distances, indices):
    """Write the rows of D that are among the k nearest; place[q, d] is the next free place.

    Q (n, w), D (m, w) uint64, place (n, r + 1), distances, indices (n, k) int64, first_row int.
    """
    for q in range(len(Q)):
        x = Q[q]
        for j in range(len(D)):
            d = _distance(x, D, j)
            if place[q, d] < distances.shape[1]:
                distances[q, place[q, d]] = d
                indices[q, place[q, d]] = first_row + j
                place[q, d] += 1


# ---- input checks --------------------------------------------------------------------


def check_integer(value, name: str, least: int = 1) -> int:
    """Return ``value`` as an int, or raise TypeError (no integer) or ValueError (too small)."""
    need = f"pass an int of at least {least}"
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r} is not an integer; {need}.")
    if value < least:
        raise ValueError(f"{name}={value} is too small; {need}.")
    return int(value)


def _check_codes(codes, name):
    """Return packed codes as an array (n, n_bytes) of uint8."""
    codes = np.asarray(codes)
    shape = codes.shape
    if codes.size == 0:
        need = "pass at least one row of at least one byte"
        raise ValueError(f"{name} is empty with shape {shape}; {need}.")
    if codes.ndim != 2:
        need = "pass a 2-D array with one code in each row"
        raise ValueError(f"{name} has shape {shape}; {need}.")
    if codes.dtype != np.uint8:
        raise TypeError(
            f"{name} has dtype {codes.dtype}; packed uint8 codes are needed: "
            f"pass {PACK} if its entries are bits, "
            "codes.astype(np.uint8) if they are bytes of packed codes."
        )
    return codes


def _check_labels(labels, n_rows, name):
    """Return labels as an array: an integer or a string for each row, or a matrix (n, L).

    The entries of a matrix are checked later, block by block.
    """
    need = f"pass a label or a row of 0/1 for each of the {n_rows} codes"
    try:
        labels = np.asarray(labels)
    except ValueError as error:
        raise ValueError(
            f"{name} has rows of different lengths ({error}); "
            "pass one label for each code, "
            "or a matrix of 0 and 1 with one column for each label."
        ) from None
    if labels.dtype == object and all(type(value) is str for value in labels.flat):
        # A pandas column of strings.
        labels = labels.astype(str)
    shape = labels.shape
    kind = labels.dtype.kind
    is_text_matrix = kind == "U" and labels.ndim == 2
    is_wrong_kind = kind not in "buiU" or is_text_matrix
    # An empty list becomes a float array, but its dtype is not the mistake.
    if is_wrong_kind and labels.size > 0:
        raise TypeError(
            f"{name} has dtype {labels.dtype} and shape {shape}; "
            "pass integers, strings or a matrix of 0 and 1, "
            "or labels.astype(int) if they are whole numbers."
        )
    is_wrong_shape = labels.ndim not in (1, 2) or shape[0] != n_rows
    if is_wrong_shape or labels.size == 0:
        raise ValueError(f"{name} has shape {shape}; {need}.")
    if labels.ndim == 2 and shape[1] < 2:
        need = "2 or more columns are needed: pass labels.ravel()"
        raise ValueError(f"{name} has shape {shape}; {need}.")
    return labels


def _check_same_form(queries, database):
    """Check that both are integers, both strings, or both matrices of the same width."""
    query_is_text = queries.dtype.kind == "U"
    db_is_text = database.dtype.kind == "U"
    same_width = queries.shape[1:] == database.shape[1:]
    if query_is_text != db_is_text or not same_width:
        raise ValueError(
            f"query_labels is {queries.dtype} of shape {queries.shape}, "
            f"db_labels is {database.dtype} of shape {database.shape}; "
            "pass both in the same form."
        )


def _as_ids(labels, name):
    """Return integers as int64, because numpy compares int64 with uint64 in float64.

    Strings are returned unchanged.
    """
    if labels.dtype.kind == "U":
        return labels
    if labels.dtype == np.uint64 and labels.max() >= 1 << 63:
        need = "integers must be below 2**63: pass labels.astype(str)"
        raise ValueError(f"{name} contains {labels.max()}; {need}.")
    return labels.astype(np.int64)


def _as_words(rows):
    """Return rows of bytes as rows of uint64, with zeros at the end of the last word."""
    n_rows, n_bytes = rows.shape
    n_words = (n_bytes + 7) // 8
    words = np.zeros((n_rows, n_words), np.uint64)
    words.view(np.uint8)[:, :n_bytes] = rows
    return words


def _check_padding(codes, n_bits, name, first):
    """Check that the bits beyond ``n_bits`` are 0; row 0 is row ``first`` of the whole array."""
    n_used = n_bits % 8
    if n_used == 0:
        return
    is_wrong = codes[:, -1] >> n_used > 0
    if is_wrong.any():
        row = first + int(np.argmax(is_wrong))
        raise ValueError(
            f"{name}[{row}] has bits set beyond n_bits={n_bits}; "
            f"padding bits must be 0: pass {PACK}."
        )


def _pack_labels(labels, name, first):
    """Return a matrix of 0 and 1 (n, L) as words (v, n); row 0 is row ``first`` of all labels."""
    is_set = labels != 0
    is_wrong = labels != is_set
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0]
        given = f"{name}[{first + row}, {column}] is {labels[row, column]}"
        need = "a matrix of labels holds only 0 and 1: pass labels > 0"
        raise ValueError(f"{given}; {need}.")
    n_rows, n_labels = labels.shape
    n_words = (n_labels + 63) // 64
    # With whole words numpy packs all rows at once, which is faster.
    padded = np.zeros((n_rows, 64 * n_words), bool)
    padded[:, :n_labels] = is_set
    words = np.packbits(padded).view(np.uint64)
    return np.ascontiguousarray(words.reshape(n_rows, n_words).T)


class _DatabaseScan:
    """Compare queries with a database: check the input, read blocks, use threads.

    The codes of the queries are ``Q`` (n, w) uint64, and their labels are ``Lq`` (n, v) uint64.
    The database is read block by block, and only one block is copied at a time.
    """

    def __init__(self, query_codes, db_codes, labels=None, n_bits=None, n_threads=None):
        """Check all input except the entries of the database, which `blocks` checks."""
        query_codes = _check_codes(query_codes, "query_codes")
        self.db_codes = _check_codes(db_codes, "db_codes")
        width = query_codes.shape[1]
        db_width = self.db_codes.shape[1]
        if width != db_width:
            raise ValueError(
                f"query_codes has {width} bytes per row, db_codes has {db_width}; "
                "encode both with the same model."
            )
        if n_bits is None:
            n_bits = 8 * width
        self.n_bits = check_integer(n_bits, "n_bits")
        if (self.n_bits + 7) // 8 != width:
            need = f"pass {8 * width - 7} to {8 * width}, or leave it out"
            raise ValueError(f"n_bits={n_bits} does not fit {width} bytes; {need}.")
        if n_threads is None:
            n_threads = _n_cores()
        self.n_threads = check_integer(n_threads, "n_threads")
        _check_padding(query_codes, self.n_bits, "query_codes", 0)
        self.Q = _as_words(query_codes)
        # Without labels, every item is relevant.
        self.multi = False
        self.Lq = np.zeros((len(self.Q), 1), np.uint64)
        self.db_labels = None
        if labels is not None:
            self._set_labels(*labels)

    def _set_labels(self, query_labels, db_labels):
        """Check the labels, and turn those of the queries into words."""
        query_labels = _check_labels(query_labels, len(self.Q), "query_labels")
        self.db_labels = _check_labels(db_labels, len(self.db_codes), "db_labels")
        _check_same_form(query_labels, self.db_labels)
        self.multi = query_labels.ndim == 2
        if not self.multi:
            ids = _as_ids(query_labels, "query_labels")
            self.classes = np.unique(ids)
        words = self._label_words(query_labels, "query_labels", 0)
        self.Lq = np.ascontiguousarray(words.T)

    def _label_words(self, labels, name, first):
        """Return labels as words (v, n): packed rows of a matrix, or positions in ``classes``.

        ``classes`` are the sorted labels of the queries. Any other label becomes len(classes).
        """
        if self.multi:
            return _pack_labels(labels, name, first)
        labels = _as_ids(labels, name)
        n_classes = len(self.classes)
        position = np.searchsorted(self.classes, labels)
        position[position == n_classes] = 0
        is_known = self.classes[position] == labels
        position[~is_known] = n_classes
        return position.astype(np.uint64)[None]

    def blocks(self):
        """Yield first row, code words and label words of each block of the database."""
        n_words = max(self.Q.shape[1], self.Lq.shape[1])
        n_rows = max(1, BLOCK_WORDS // n_words)
        for first in range(0, len(self.db_codes), n_rows):
            rows = slice(first, first + n_rows)
            codes = self.db_codes[rows]
            Ld = np.zeros((1, len(codes)), np.uint64)
            if self.db_labels is not None:
                labels = self.db_labels[rows]
                Ld = self._label_words(labels, "db_labels", first)
            _check_padding(codes, self.n_bits, "db_codes", first)
            yield first, _as_words(codes), Ld

    def run_in_threads(self, loop, n_rows):
        """Call ``loop(p)`` for slices p of the queries, in threads if that saves time.

        Each call writes only the rows of its own queries, so the number of threads does not change
        the result.
        """
        n_queries = len(self.Q)
        n_useful = 1 + n_queries * n_rows // PAIRS_PER_THREAD
        n_threads = min(self.n_threads, n_queries, n_useful)
        edges = np.linspace(0, n_queries, n_threads + 1).astype(int)

        def run_part(k):
            # With the JIT off, numpy warns about the overflow that _popcount relies on.
            with np.errstate(over="ignore"):
                loop(slice(edges[k], edges[k + 1]))

        if n_threads == 1:
            run_part(0)
            return
        # The pool is made for this call only, so that a later fork is safe.
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(run_part, range(n_threads)))


def _n_cores():
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ---- one pass over the database ------------------------------------------------------


def _hash(rows):
    """Mix the words of each row (n, w) uint64 into one; equal rows get equal values."""
    key = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def _sort_equal(rows):
    """Return an order in which equal rows are neighbours, and whether each differs from the last.

    If different rows have the same hash value, some equal rows are apart. Counts stay right.
    """
    key = _hash(rows)
    # Two sorts of 16 bits are several times as fast as one of 64.
    low = (key >> np.uint64(32)).astype(np.uint16)
    high = (key >> np.uint64(48)).astype(np.uint16)
    order = np.lexsort((low, high))
    ordered = rows[order]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, is_new


def _merge_codes(D, Ld, n_queries, n_label_sets):
    """Merge equal codes of a block if that saves time.

    Returns the codes, the labels of all items, and the edges: the items of code u are
    edges[u]..edges[u + 1] - 1.
    """
    sample = _hash(D[:: max(1, len(D) // SAMPLE)])
    spared = 1 - len(np.unique(sample)) / len(sample)
    # Merging costs a sort, and then more work for each label set of the queries.
    if n_queries * D.shape[1] * spared < 200 + n_label_sets / 3:
        return D, Ld, np.arange(len(D) + 1)
    order, is_new = _sort_equal(D)
    first = np.flatnonzero(is_new)
    edges = np.append(first, len(D))
    return D[order[first]], Ld.take(order, axis=1), edges


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
        An item is relevant to a query if it has the same label. In the second form it is relevant
        if it has at least one label in common with the query.
    n_bits : int, optional
        Length of the codes; by default all bits of the packed bytes.
    n_threads : int, optional
        By default all cores. The result does not depend on it.

    Examples
    --------
    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> hamming_histogram(codes[:1], codes, [7], [7, 8, 7], n_bits=3).items
    array([[1, 1, 0, 1]])
    """
    labels = (query_labels, db_labels)
    scan = _DatabaseScan(query_codes, db_codes, labels, n_bits, n_threads)
    return _histogram(scan)


def _histogram(scan):
    """Return the histograms of a `_DatabaseScan`."""
    Q = scan.Q
    Lq = scan.Lq
    shape = (len(Q), scan.n_bits + 1)
    items = np.zeros(shape, np.int64)
    relevant = np.zeros(shape, np.int64)
    # Queries with the same labels follow each other, because they have the same relevant items.
    order, is_new = _sort_equal(Lq)
    for _, D, Ld in scan.blocks():
        D, Ld, edges = _merge_codes(D, Ld, len(Q), is_new.sum())

        def count_part(p):
            block = (D, edges, Lq, Ld, scan.multi)
            _count(order[p], is_new[p], Q, *block, items, relevant)

        scan.run_in_threads(count_part, len(D))
    return HammingHistogram(items, relevant)


# ---- metrics -------------------------------------------------------------------------


def _counts_before(counts):
    """Return the sum of the counts at all smaller distances."""
    return counts.cumsum(axis=-1) - counts


def _harmonic_between(a, b):
    """Return 1/(a + 1) + ... + 1/b for whole numbers a <= b.

    From 64 on it is the series of Euler and Maclaurin. The relative error is below 1e-13. Its terms
    are differences that are written as products. A difference of two harmonic numbers would lose
    all digits where b - a is small beside a.
    """
    small = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 65))])
    head = small[np.minimum(b, 64)] - small[np.minimum(a, 64)]
    a = np.maximum(a, 64).astype(float)
    b = np.maximum(b, 64).astype(float)
    u = 1 / a
    v = 1 / b
    gap = (b - a) * u * v  # u - v
    squares = u**2 + v**2
    # (u - v)/2 - (u^2 - v^2)/12 + (u^4 - v^4)/120 - (u^6 - v^6)/252, with u - v as a factor
    sixth = squares**2 - (u * v) ** 2
    correction = 1 / 2 - (u + v) * (1 / 12 - squares / 120 + sixth / 252)
    return head + np.log1p((b - a) / a) - gap * correction


@dataclass(frozen=True, eq=False, repr=False)
class HammingHistogram:
    """Hold the items and relevant items at every Hamming distance of every query.

    The metrics are methods. ``a + b`` (or ``sum``) joins the histograms of the same queries over
    two shards of a database.

    Attributes
    ----------
    items, relevant : (n_queries, n_bits + 1) int64
    """

    items: np.ndarray
    relevant: np.ndarray

    def __post_init__(self) -> None:
        shape = self.items.shape
        if len(shape) != 2 or shape != self.relevant.shape:
            shapes = f"{shape} and {self.relevant.shape}"
            need = "pass two arrays (n_queries, n_bits + 1)"
            raise ValueError(f"items and relevant have shapes {shapes}; {need}.")
        wrong = (self.relevant < 0) | (self.relevant > self.items)
        if wrong.any():
            q, d = np.argwhere(wrong)[0]
            counts = f"{self.relevant[q, d]} of {self.items[q, d]} items"
            place = f"to query {q} at distance {d}"
            need = "pass relevant from 0 to items"
            raise ValueError(f"{counts} are relevant {place}; {need}.")

    def __repr__(self) -> str:
        totals = self.items.sum(axis=1)
        n_items = totals.min()
        if totals.max() > n_items:
            n_items = f"{n_items}..{totals.max()}"
        sizes = f"n_queries={len(self.items)}, n_bits={self.n_bits}, n_items={n_items}"
        return f"HammingHistogram({sizes})"

    def __add__(self, other: HammingHistogram) -> HammingHistogram:
        if not isinstance(other, HammingHistogram):
            return NotImplemented
        if self.items.shape != other.items.shape:
            need = "pass histograms of the same queries and code length"
            raise ValueError(f"cannot add {self} and {other}; {need}.")
        items = self.items + other.items
        relevant = self.relevant + other.relevant
        return HammingHistogram(items, relevant)

    def __radd__(self, other):
        # sum() starts with 0.
        is_zero = isinstance(other, int) and other == 0
        return self if is_zero else NotImplemented

    @property
    def n_bits(self) -> int:
        """Return the length of the codes."""
        return self.items.shape[1] - 1

    @property
    def n_empty(self) -> int:
        """Return the number of queries with no relevant item, which mAP and PR curves leave out."""
        n_relevant = self.relevant.sum(axis=1)
        return int(np.count_nonzero(n_relevant == 0))

    def _blocks(self):
        """Yield slices of queries. A metric takes several times the memory of the histograms."""
        n_rows = max(1, BLOCK_WORDS // self.items.shape[1])
        for first in range(0, len(self.items), n_rows):
            yield slice(first, first + n_rows)

    def without_self(self) -> HammingHistogram:
        """Remove each query's own item, for a set of codes evaluated against itself."""
        # A query without a label is not even relevant to itself.
        has_relevant = self.relevant.any(axis=1)
        no_item = self.items[:, 0] == 0
        no_relevant = has_relevant & (self.relevant[:, 0] == 0)
        missing = np.flatnonzero(no_item | no_relevant)
        if len(missing):
            raise ValueError(
                f"query {missing[0]} has no item of its own at distance 0; "
                "pass a database that contains it."
            )
        items = self.items.copy()
        items[:, 0] -= 1
        relevant = self.relevant.copy()
        relevant[:, 0] -= has_relevant
        return HammingHistogram(items, relevant)

    def mean_average_precision(
        self,
        top: int | None = None,
        normalize: str = "relevant",
        per_query: bool = False,
    ) -> float | np.ndarray:
        """Return the mean average precision, exact in expectation over the orders of tied items.

        With n items and n+ relevant ones at a distance, N and N+ before it, and
        m = (n+ - 1) / (n - 1),

            E[AP] = 1/R sum_d (n+/n) sum_{i=N+1}^{N+n} (N+ + 1 + (i - N - 1) m) / i .

        The inner sum up to e is m (e - N) + (N+ + 1 - m (N + 1)) (H_e - H_N), with the harmonic
        numbers H.

        Parameters
        ----------
        top : int, optional
            Only the first ``top`` ranks count (mAP@top).
        normalize : {"relevant", "min", "retrieved"}
            Divide by the relevant items R, by min(R, top), or by the relevant items among the first
            ``top``. The last is what most published hashing code does; it can rank [+ - -] above
            [+ - +].
        per_query : bool
            Return the average precision of each query. It is NaN for the queries that are left out.
            These are the queries without a relevant item (for "retrieved": without one that can be
            among the first ``top``).
        """
        _check_options(top, normalize)
        ap = np.empty(len(self.items))
        for p in self._blocks():
            ap[p] = _average_precision(self.items[p], self.relevant[p], top, normalize)
        return ap if per_query else _mean(ap, top)

    def precision_at_radius(
        self, radius: int, per_query: bool = False
    ) -> float | np.ndarray:
        """Return the share of relevant items within Hamming distance ``radius``.

        Radius 2 gives Precision@H2. A query with no item within the radius counts 0.
        """
        radius = check_integer(radius, "radius", least=0)
        n_items = self.items[:, : radius + 1].sum(axis=1)
        n_hits = self.relevant[:, : radius + 1].sum(axis=1)
        precision = n_hits / np.maximum(n_items, 1)
        return precision if per_query else float(precision.mean())

    def precision_at_k(
        self, k: int | list[int], per_query: bool = False
    ) -> float | np.ndarray:
        """Return the expected share of relevant items among the first k.

        It is (N+ + (k - N) n+/n) / k, where n and n+ are the counts at the distance of the k-th
        item, and N and N+ the counts before it. The result has one value per k (a float for a
        single k). With ``per_query`` it has one row per query.
        """
        is_single = np.ndim(k) == 0
        values = [k] if is_single else k
        ks = np.array([check_integer(value, "k") for value in values])
        if len(ks) == 0:
            raise ValueError(f"k={k} is empty; pass at least one k.")
        n_items = int(self.items.sum(axis=1).min())
        if ks.max() > n_items:
            need = f"the database has {n_items} items: pass a smaller k"
            raise ValueError(f"k={ks.max()} is too large; {need}.")
        precision = np.empty((len(self.items), len(ks)))
        for p in self._blocks():
            end = self.items[p].cumsum(axis=1)
            # The distance of the k-th item, one column for each k.
            cut = np.stack([(end < value).sum(axis=1) for value in ks], axis=1)
            n = np.take_along_axis(self.items[p], cut, axis=1)
            n_hits = np.take_along_axis(self.relevant[p], cut, axis=1)
            N = np.take_along_axis(end, cut, axis=1) - n
            hits_end = self.relevant[p].cumsum(axis=1)
            N_hits = np.take_along_axis(hits_end, cut, axis=1) - n_hits
            precision[p] = (N_hits + (ks - N) * (n_hits / n)) / ks
        if is_single:
            precision = precision[:, 0]
        if per_query:
            return precision
        mean = precision.mean(axis=0)
        return float(mean) if is_single else mean

    def precision_recall(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (precision, recall) within each radius 0..n_bits.

        Both are means over the queries that have a relevant item.
        """
        n_relevant = self.relevant.sum(axis=1)
        kept = n_relevant > 0
        _check_any_kept(kept, top=None)
        precision = np.zeros(self.n_bits + 1)
        recall = np.zeros(self.n_bits + 1)
        for p in self._blocks():
            own = kept[p]
            n_items = self.items[p][own].cumsum(axis=1)
            n_hits = self.relevant[p][own].cumsum(axis=1)
            rows = n_hits / np.maximum(n_items, 1)
            # The first row of a sum is the sum so far, so that blocks do not change the rounding.
            precision = np.vstack([precision, rows]).sum(axis=0)
            rows = n_hits / n_relevant[p][own, None]
            recall = np.vstack([recall, rows]).sum(axis=0)
        n_kept = np.count_nonzero(kept)
        return precision / n_kept, recall / n_kept


def _check_options(top, normalize):
    """Check the options of both functions that return the mAP."""
    if top is not None:
        check_integer(top, "top")
    if normalize not in ("relevant", "min", "retrieved"):
        need = 'pass "relevant", "min" or "retrieved"'
        raise ValueError(f"normalize={normalize!r} is unknown; {need}.")


def _check_any_kept(kept, top):
    """Check that at least one query has a relevant item, so that a mean exists."""
    if not kept.any():
        where = "the database"
        if top is not None:
            where = f"the first {top} ranks"
        raise ValueError(
            f"none of the {len(kept)} queries has a relevant item in {where}; "
            "check the labels of queries and database."
        )


def _mean(ap, top):
    """Return the mean over the queries that are not left out; NaN means left out."""
    _check_any_kept(~np.isnan(ap), top)
    return float(np.nanmean(ap))


def _divisor(n_relevant, top, normalize):
    """Return the divisor of each query's sum of precisions; NaN leaves the query out."""
    if normalize == "min":
        n_relevant = np.minimum(n_relevant, top)
    return np.where(n_relevant > 0, n_relevant, np.nan)


def _average_precision(n, n_hits, top, normalize):
    """Return the expected AP of each query. n, n_hits (n_queries, r + 1) int64."""
    last = n.sum(axis=1)
    if top is not None:
        last[:] = top
    sums = _expected_sums(n, n_hits, last)
    if normalize == "retrieved":
        return _retrieved_ap(n, n_hits, sums, last)
    return sums.sum(axis=1) / _divisor(n_hits.sum(axis=1), last, normalize)


def _expected_sums(n, n_hits, last):
    """Return the expected sum of the precisions at the relevant items of each distance.

    These are the terms of the sum over d in `HammingHistogram.mean_average_precision`, clipped at
    rank ``last``. n, n_hits (n_queries, r + 1), last (n_queries,) int64, result float64.
    """
    N = _counts_before(n)
    N_hits = _counts_before(n_hits)
    m = (n_hits - 1) / np.maximum(n - 1, 1)
    # Column d is the last rank used before distance d, and column d + 1 is e.
    ranks = np.insert(n.cumsum(axis=1), 0, 0, axis=1)
    ranks = np.minimum(ranks, last[:, None])
    n_ranks = np.diff(ranks)
    harmonic = _harmonic_between(ranks[:, :-1], ranks[:, 1:])
    inner = m * n_ranks + (N_hits + 1 - m * (N + 1)) * harmonic
    return inner * (n_hits / np.maximum(n, 1))


def _retrieved_ap(n, n_hits, sums, last):
    """Return the expected AP of each query divided by its hits among the first ``last``.

    The ties before the one that ``last`` cuts are whole. Their part is the sum of `_expected_sums`.
    n, n_hits (n_queries, r + 1), last (n_queries,) int64, sums (n_queries, r + 1) float64.
    """
    before = _counts_before(n)
    # The last distance that begins before rank ``last``.
    cut = (before < last[:, None]).sum(axis=1) - 1
    is_whole = np.arange(n.shape[1]) < cut[:, None]
    whole_ties = np.where(is_whole, sums, 0).sum(axis=1)
    at_cut = (np.arange(len(n)), cut)
    N = before[at_cut]
    N_hits = _counts_before(n_hits)[at_cut]
    size = n[at_cut]
    good = n_hits[at_cut]
    q = np.minimum(last - N, size)
    harmonic = _harmonic_between(N, N + q)
    ap = np.empty(len(n))
    _expect_over_cut(whole_ties, N, N_hits, size, good, q, harmonic, ap)
    return ap


# ---- rankings with ties in database order --------------------------------------------


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
    """Return the mean average precision in one call.

    See `hamming_histogram` and `HammingHistogram.mean_average_precision` for the other parameters.

    Parameters
    ----------
    ties : {"expected", "stable"}
        "stable" ranks tied items in database order, as a stable sort does. Use it to compare with
        other code.

    Examples
    --------
    >>> codes = np.array([[0], [1], [1]], np.uint8)
    >>> round(mean_average_precision(codes[:1], codes, [5], [6, 6, 5]), 6)  # 5/12: rank 2 or 3
    0.416667
    >>> round(mean_average_precision(codes[:1], codes, [5], [6, 6, 5], ties="stable"), 6)  # rank 3
    0.333333
    """
    _check_options(top, normalize)
    if ties not in ("expected", "stable"):
        need = 'pass "expected" or "stable"'
        raise ValueError(f"ties={ties!r} is unknown; {need}.")
    labels = (query_labels, db_labels)
    scan = _DatabaseScan(query_codes, db_codes, labels, n_bits)
    histogram = _histogram(scan)
    if ties == "expected":
        return histogram.mean_average_precision(top, normalize)
    Q = scan.Q
    Lq = scan.Lq
    last = len(db_codes) if top is None else top
    # The ranks of a distance continue where those of all smaller distances end.
    rank = _counts_before(histogram.items)
    hits = _counts_before(histogram.relevant)
    sums = np.zeros(len(Q))
    found = np.zeros(len(Q), np.int64)
    for _, D, Ld in scan.blocks():

        def rank_part(p):
            inputs = (Q[p], D, Lq[p], Ld, scan.multi, last)
            _rank_stable(*inputs, rank[p], hits[p], sums[p], found[p])

        scan.run_in_threads(rank_part, len(D))
    n_relevant = histogram.relevant.sum(axis=1)
    if normalize == "retrieved":
        n_relevant = found
    return _mean(sums / _divisor(n_relevant, last, normalize), top)


def nearest(
    query_codes: np.ndarray, db_codes: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest items of every query by Hamming distance, ties in database order.

    It makes two passes over the database and uses no index. It is meant for pictures and small
    searches. For large ones use FAISS, which reads the same codes.

    Returns
    -------
    distances, indices : (n_queries, k) int64

    Examples
    --------
    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> nearest(codes[2:], codes, k=2)
    (array([[0, 2]]), array([[2, 1]]))
    """
    scan = _DatabaseScan(query_codes, db_codes)
    k = check_integer(k, "k")
    n_items = len(scan.db_codes)
    if k > n_items:
        need = f"the database has {n_items} items: pass a smaller k"
        raise ValueError(f"k={k} is too large; {need}.")
    Q = scan.Q
    # Items at distance d take the places after all items at smaller distances.
    place = _counts_before(_histogram(scan).items)
    distances = np.zeros((len(Q), k), np.int64)
    indices = np.zeros((len(Q), k), np.int64)
    for first, D, _ in scan.blocks():

        def select_part(p):
            _select(Q[p], D, first, place[p], distances[p], indices[p])

        scan.run_in_threads(select_part, len(D))
    return distances, indices


def area_under_curve(x: np.ndarray, y: np.ndarray) -> float:
    """Return the area under a curve by the trapezoid rule, divided by the range of x.

    This is the mean height of the curve.

    >>> area_under_curve([0, 10, 20], [0.0, 1.0, 1.0])
    0.75
    """
    x = np.asarray(x, np.float64)
    y = np.asarray(y, np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        need = "pass the coordinates of two or more points"
        raise ValueError(f"x and y have shapes {x.shape} and {y.shape}; {need}.")
    is_finite = np.isfinite(x).all() and np.isfinite(y).all()
    is_increasing = (np.diff(x) > 0).all()
    if not (is_finite and is_increasing):
        need = "pass finite numbers, with x increasing"
        raise ValueError(f"x is {x} and y is {y}; {need}.")
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))
