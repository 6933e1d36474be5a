"""Exact evaluation of binary codes by Hamming ranking: mAP, Precision@K, PR curves.

Copy this file alone into any project: it needs only numpy and numba. Tested with numpy 1.26 and
numba 0.60, and with numpy 2.4 and numba 0.68.

One pass over the database counts all items and the relevant items at each Hamming distance 0..r of
every query. Every metric is a closed form of these two histograms. The histograms of two shards of
a database add up. Hamming ranking ties most of a database, so by default a metric is its
expectation over all orders of the tied items. It depends on no sort order and needs no sampling.

Reading guide, in this order:

1. `HammingHistogram`, section "metrics": the two histograms and the formula of each metric, then
   `mean_average_precision`: the conventions of published evaluators, in a table.
2. `hamming_histogram`, section "one pass over the database": how the histograms are counted.
3. `_add_distances` and `_count`, section "compiled loops": they take nearly all the time.
4. `_DatabaseScan`, section "input checks": which input is accepted and which errors are raised, how
   the database is read in blocks, how the queries are divided among threads.
5. `pack`, `graded_histogram`, `compare`, `describe` and `nearest`, which need no guide.

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
from typing import NamedTuple

import numba
import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

__all__ = [
    "CodeSummary",
    "Estimate",
    "HammingHistogram",
    "area_under_curve",
    "check_integer",
    "compare",
    "describe",
    "graded_histogram",
    "hamming_histogram",
    "mean_average_precision",
    "nearest",
    "pack",
]

BLOCK_WORDS = 100_000  # words of codes or labels in a block: 0.8 MB, for a core's cache
TILE = 2048  # items whose distances are computed before they are counted
SMALL_TILE = 512  # the same for the search of the nearest
SAMPLE = 2048  # rows that are examined to decide whether merging equal codes saves time
MOST_CELLS = 20_000  # counters of two queries: more do not fit a core's cache
MANY = 100  # queries, or label sets of queries, for which it saves time to sort a block
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
# For a hash value of the words of a row.
_29 = np.uint64(29)
_MIX = np.uint64(0x9E3779B97F4A7C15)


@_compiled
def _popcount(x):
    """Return the number of 1 bits of x uint64 as int64, summed over 2, 4 and 8 bits in parallel."""
    # LLVM turns these lines into one instruction.
    x = x - ((x >> _1) & _BITS)
    x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
    x = (x + (x >> _4)) & _NIBBLES
    return np.int64((x * _ONES) >> _56)


@_compiled
def _add_distances(x, D, first, out):
    """Add to ``out`` the distances of the code x to the codes first, first + 1, ... of D.

    x (w,) uint64, D (w, m) uint64, out (t,) uint16 or uint32.
    """
    # Row k of D is word k of all codes, so that the compiler counts the bits of several codes at
    # once. Four words are added together, because reading and writing ``out`` takes time too.
    end = first + len(out)
    n_fours = len(D) // 4
    for k in range(0, 4 * n_fours, 4):
        a = D[k][first:end]
        b = D[k + 1][first:end]
        c = D[k + 2][first:end]
        d = D[k + 3][first:end]
        for j in range(len(out)):
            ab = _popcount(x[k] ^ a[j]) + _popcount(x[k + 1] ^ b[j])
            cd = _popcount(x[k + 2] ^ c[j]) + _popcount(x[k + 3] ^ d[j])
            out[j] += np.uint32(ab + cd)
    for k in range(4 * n_fours, len(D)):
        a = D[k][first:end]
        for j in range(len(out)):
            out[j] += np.uint32(_popcount(x[k] ^ a[j]))


@_compiled
def _grade(labels, Ld, multi, most, grade):
    """Write how many labels a query shares with each column of Ld, at most ``most``.

    labels (v,) uint64, Ld (v, m) uint64, grade (m,) uint16.
    """
    # A single label is one word. With multi the words are packed 0/1.
    if not multi:
        label = labels[0]
        column = Ld[0]
        for j in range(len(column)):
            grade[j] = np.uint16(column[j] == label)
        return
    grade[:] = 0
    for k in range(len(Ld)):
        word = labels[k]
        # Most queries have few labels, so most words of a long row are 0.
        if word != 0:
            column = Ld[k]
            for j in range(len(column)):
                grade[j] += np.uint16(_popcount(column[j] & word))
    for j in range(len(grade)):
        grade[j] = min(grade[j], most)


@_compiled
def _add_ones(cells, tables):
    """Count the items in each cell, in 2 or 4 tables whose sum is the result.

    cells (t,) uint16 or uint32, tables (2 or 4, c) uint32.
    """
    # A counter that was just written is slow to read, so neighbours use different tables.
    a = tables[0]
    b = tables[1]
    c = tables[2 % len(tables)]
    d = tables[3 % len(tables)]
    n_fours = len(cells) // 4
    for j in range(0, 4 * n_fours, 4):
        a[cells[j]] += 1
        b[cells[j + 1]] += 1
        c[cells[j + 2]] += 1
        d[cells[j + 3]] += 1
    for j in range(4 * n_fours, len(cells)):
        a[cells[j]] += 1


@_compiled
def _add_weights(cells, weight, tables):
    """Do the same where item j counts weight[j] times; weight (t,) uint32."""
    a = tables[0]
    b = tables[1]
    n_twos = len(cells) // 2
    for j in range(0, 2 * n_twos, 2):
        a[cells[j]] += weight[j]
        b[cells[j + 1]] += weight[j + 1]
    for j in range(2 * n_twos, len(cells)):
        a[cells[j]] += weight[j]


@_compiled
def _add_pairs(tables, first, n_first, n_second):
    """Add the counts of two queries that were counted together.

    tables (2, c) uint32, n_first, n_second (r + 1,) int64. Cell (first + d) * (r + 1) + e counts
    the items at distance d of the first query and e of the second.
    """
    n = len(n_first)
    for d in range(n):
        begin = (first + d) * n
        for k in range(len(tables)):
            row = tables[k, begin : begin + n]
            total = 0
            for e in range(n):
                total += row[e]
                n_second[e] += row[e]
            n_first[d] += total


@_compiled
def _count(order, is_new, Q, Lq, D, weight, sets, edges, multi, cells, counts):
    """Add the items of grade g at distance d of query q to counts[g, q, d].

    order (p,) int64, is_new (p,) bool, Q (n, w), Lq (n, v), D (w, m), sets (v, s) uint64, weight
    (m,) or (0,) uint32, edges (s + 1,) int64, counts (g, n, r + 1) int64. The queries are taken in
    ``order``. is_new tells whether one has other labels than the last. For D, weight, sets and
    edges see `_prepare`. ``cells`` is scratch, uint16 where that holds g * (r + 1) cells.
    """
    n_items = D.shape[1]
    n_grades, _, n_distances = counts.shape
    step = np.uint32(n_distances)
    set_grade = np.empty(sets.shape[1], np.uint16)
    grade = set_grade
    if len(set_grade) < n_items:
        grade = np.empty(n_items, np.uint16)
    single = np.zeros((4, n_grades * n_distances), np.uint32)
    n_double = n_grades * n_distances**2
    if n_double > MOST_CELLS:
        n_double = 0
    double = np.zeros((2, n_double), np.uint32)
    i = 0
    while i < len(order):
        q = order[i]
        if i == 0 or is_new[i]:
            _grade(Lq[q], sets, multi, n_grades - 1, set_grade)
            if len(set_grade) < n_items:
                for s in range(len(set_grade)):
                    grade[edges[s] : edges[s + 1]] = set_grade[s]
        # Two queries with the same labels are counted together, with half the additions. The cell
        # of an item is step * grade + d, for two queries step * (step * grade + d) + e.
        is_pair = n_double > 0 and i + 1 < len(order) and not is_new[i + 1]
        tables = double if is_pair else single
        tables[:] = 0
        for first in range(0, n_items, len(cells)):
            end = min(first + len(cells), n_items)
            part = cells[: end - first]
            grade_part = grade[first:end]
            for j in range(len(part)):
                part[j] = np.uint32(grade_part[j]) * step
            _add_distances(Q[q], D, first, part)
            if is_pair:
                for j in range(len(part)):
                    part[j] *= step
                _add_distances(Q[order[i + 1]], D, first, part)
            if len(weight) == 0:
                _add_ones(part, tables)
            else:
                _add_weights(part, weight[first:end], tables)
        for g in range(n_grades):
            first = g * n_distances
            if is_pair:
                _add_pairs(tables, first, counts[g, q], counts[g, order[i + 1]])
            else:
                total = counts[g, q]
                for k in range(len(tables)):
                    table = tables[k, first : first + n_distances]
                    for d in range(n_distances):
                        total[d] += table[d]
        i += 1 + is_pair


@_compiled
def _number(rows, slots, shift, number, first):
    """Number the different rows as they appear; return how many there are.

    rows (m, w) uint64, slots (2**b,) int32 of -1, number, first (m,) int64, shift uint64 64 - b.
    number[j] is the number of row j, first[u] the first row of number u. ``slots`` is a hash table
    of the numbers.
    """
    last = np.uint64(len(slots) - 1)
    n = 0
    for j in range(len(rows)):
        row = rows[j]
        key = np.uint64(0)
        for k in range(len(row)):
            key = (key ^ row[k]) * _MIX
            key ^= key >> _29
        # The highest bits of a product depend on all bits of its factors.
        slot = key >> shift
        while slots[slot] >= 0:
            other = rows[first[slots[slot]]]
            k = 0
            while k < len(row) and row[k] == other[k]:
                k += 1
            if k == len(row):
                break
            slot = (slot + _1) & last
        if slots[slot] < 0:
            slots[slot] = n
            first[n] = j
            n += 1
        number[j] = slots[slot]
    return n


@_compiled
def _expect_over_cut(whole_ties, N, N_hits, gains, size, good, q, harmonic, ap):
    """Set ap to the expected AP over the hits in the first q of a tie that is cut.

    N, N_hits, size, good, q (n,) int64, gains (2, n), whole_ties, harmonic, ap (n,) float64. The
    number h of hits among the q is hypergeometric. Given h, every choice of places is equally
    likely, and with the gains G before the tie and g of one hit (N+ and 1 if not weighted), the
    sum at the hits is (h/q) sum_{j=1}^q (G + g (1 + (j - 1) (h - 1)/(q - 1))) / (N + j).
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
            own = harmonic[i] + m * (q[i] - (N[i] + 1) * harmonic[i])
            tie = (gains[0, i] * harmonic[i] + gains[1, i] * own) * (h / max(q[i], 1))
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
    is_hit = np.empty(len(D), np.uint16)
    distance = np.empty(len(D), np.uint32)
    words = np.empty((D.shape[1], len(D)), np.uint64)
    for j in range(len(D)):
        for k in range(D.shape[1]):
            words[k, j] = D[j, k]
    for q in range(len(Q)):
        _grade(Lq[q], Ld, multi, 1, is_hit)
        for j in range(len(D)):
            distance[j] = 0
        _add_distances(Q[q], words, 0, distance)
        for j in range(len(D)):
            d = distance[j]
            rank[q, d] += 1
            if is_hit[j]:
                hits[q, d] += 1
                if rank[q, d] <= top:
                    precision[q] += hits[q, d] / rank[q, d]
                    found[q] += 1


@_compiled
def _sort_near(distance, row, n, k, ends):
    """Sort the first n candidates by distance, ties as they are, and return how many are kept.

    distance, row (2, c), ends (r + 2,) int64. At most k are kept. The second rows are scratch.
    """
    # Loops instead of slices: copies of slices would double the time to compile.
    for d in range(len(ends)):
        ends[d] = 0
    for i in range(n):
        ends[distance[0, i] + 1] += 1
    for d in range(1, len(ends)):
        ends[d] += ends[d - 1]
    for i in range(n):
        place = ends[distance[0, i]]
        ends[distance[0, i]] += 1
        distance[1, place] = distance[0, i]
        row[1, place] = row[0, i]
    n = min(n, k)
    for i in range(n):
        distance[0, i] = distance[1, i]
        row[0, i] = row[1, i]
    return n


@_compiled
def _select(Q, D, first_row, n_bits, distances, indices):
    """Update the k nearest items of every query by the codes of D, the rows from first_row on.

    Q (n, w), D (w, m) uint64, distances, indices (n, k) int64.
    """
    k = distances.shape[1]
    n_items = D.shape[1]
    n_before = min(k, first_row)
    candidates = 2 * k + 64
    distance = np.empty((2, candidates), np.int64)
    row = np.empty((2, candidates), np.int64)
    ends = np.empty(n_bits + 2, np.int64)
    buffer = np.empty(SMALL_TILE, np.uint32)
    for q in range(len(Q)):
        n = n_before
        for i in range(n):
            distance[0, i] = distances[q, i]
            row[0, i] = indices[q, i]
        # Among equal distances the first item counts, so later ones must be nearer than the k-th.
        limit = n_bits + 1
        if n == k:
            limit = distance[0, k - 1]
        for first in range(0, n_items, SMALL_TILE):
            part = buffer[: min(SMALL_TILE, n_items - first)]
            for j in range(len(part)):
                part[j] = 0
            _add_distances(Q[q], D, first, part)
            # Most tiles have no candidate. To find the lowest distance takes few instructions.
            lowest = part[0]
            for j in range(len(part)):
                lowest = min(lowest, part[j])
            if lowest >= limit:
                continue
            for j in range(len(part)):
                if part[j] < limit:
                    distance[0, n] = part[j]
                    row[0, n] = first_row + first + j
                    n += 1
                    if n == candidates:
                        n = _sort_near(distance, row, n, k, ends)
                        limit = distance[0, k - 1]
        n = _sort_near(distance, row, n, k, ends)
        for i in range(n):
            distances[q, i] = distance[0, i]
            indices[q, i] = row[0, i]


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
        need = "pass pack(codes) if its entries are bits"
        if codes.dtype.kind == "u":
            need += ", codes.view(np.uint8) if they are words of packed codes"
        if codes.dtype.kind == "i":
            need += ", codes.astype(np.uint8) if they are bytes of packed codes"
        raise TypeError(f"{name} has dtype {codes.dtype}, not uint8; {need}.")
    return codes


def _refuse_unpacked(*arrays):
    """Refuse rows of several bytes that are all 0 or 1, or all 1 or 255 (which is -1).

    So are codes before packing. Codes of one byte and codes without a 1 are accepted.
    """
    width = arrays[0].shape[1]
    for values in ((0, 1), (1, 255)):
        # The first rows tell nearly always.
        parts = (*(codes[:SAMPLE] for codes in arrays), *arrays)
        is_bits = width > 1 and all(np.isin(part, values).all() for part in parts)
        if is_bits and any(codes.any() for codes in arrays):
            raise ValueError(
                f"all bytes of the codes are {values[0]} or {values[1]}, as before packing; "
                f"pass pack(codes) of the bits, or n_bits={8 * width} if they are packed."
            )


def pack(codes: np.ndarray) -> np.ndarray:
    """Return codes with one entry for each bit as packed codes, (n, ceil(n_bits / 8)) uint8.

    The entries are bool, or 0 and 1, or -1 and 1, of any type. A torch tensor on the CPU will do.
    Other entries are refused, because their bits are not certain.

    >>> pack([[-1.0, 1.0, 1.0], [1.0, -1.0, -1.0]])
    array([[6],
           [1]], dtype=uint8)
    """
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.size == 0 or codes.dtype.kind not in "buif":
        need = "pass a matrix of numbers with one code in each row"
        raise ValueError(f"codes is {codes.dtype} of shape {codes.shape}; {need}.")
    is_one = codes == 1
    lowest = -1 if (codes == -1).any() else 0
    is_wrong = ~is_one & (codes != lowest)
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0]
        raise ValueError(
            f"codes[{row}, {column}] is {codes[row, column]} and others are {lowest}; "
            "pass 0 and 1, or -1 and 1: codes > 0 if these are outputs or signs with 0. "
            "Packed codes need no packing."
        )
    return np.packbits(is_one, axis=1, bitorder="little")


def _check_labels(labels, n_rows, name):
    """Return labels as an array: a whole number or a string for each row, or a matrix (n, L).

    The entries of a matrix are checked later, block by block.
    """
    try:
        labels = np.asarray(labels)
    except ValueError as error:
        need = "pass one label for each code, or a matrix of 0 and 1 with one column for each"
        raise ValueError(f"{name} has rows of different lengths ({error}); {need}.") from None
    if labels.dtype == object and all(type(value) is str for value in labels.flat):
        # A pandas column of strings.
        labels = labels.astype(str)
    shape = labels.shape
    kind = labels.dtype.kind
    is_right_kind = kind in "buif" or (kind == "U" and labels.ndim != 2)
    if kind == "f" and labels.ndim == 1:
        # Above 2**53 a float stands for several whole numbers.
        values = labels.astype(np.float64)
        is_whole = (values == np.floor(values)) & (np.abs(values) <= 2.0**53)
        is_right_kind = is_whole.all()
    # An empty list becomes a float array, but its dtype is not the mistake.
    if not is_right_kind and labels.size > 0:
        need = "pass integers, floats that are whole numbers, strings or a matrix of 0 and 1"
        raise TypeError(f"{name} has dtype {labels.dtype} and shape {shape}; {need}.")
    is_wrong_shape = labels.ndim not in (1, 2) or shape[0] != n_rows
    if is_wrong_shape or labels.size == 0:
        need = f"pass a label or a row of 0/1 for each of the {n_rows} codes"
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
    # Only what the loops cannot read as it is becomes a copy.
    return np.require(labels, np.int64, "CAW")


def _as_words(rows):
    """Return rows of bytes as rows of uint64, with zeros at the end of the last word."""
    n_rows, n_bytes = rows.shape
    n_words = (n_bytes + 7) // 8
    if n_bytes % 8 == 0 and rows.flags.c_contiguous:
        # Only what the loops cannot read as it is becomes a copy.
        return np.require(rows.view(np.uint64), requirements="AW")
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
            "padding bits must be 0: pass pack(codes) of the bits."
        )


def _pack_labels(labels, name, first):
    """Return a matrix of 0 and 1 (n, L) as words (v, n); row 0 is row ``first`` of all labels."""
    # The lowest and the highest tell whole numbers several times as fast.
    is_whole = labels.dtype.kind in "bui"
    if not (is_whole and labels.min() >= 0 and labels.max() <= 1):
        is_wrong = labels != (labels != 0)
        if is_wrong.any():
            row, column = np.argwhere(is_wrong)[0]
            given = f"{name}[{first + row}, {column}] is {labels[row, column]}"
            need = "a matrix of labels holds only 0 and 1: pass labels > 0"
            raise ValueError(f"{given}; {need}.")
    n_rows, n_labels = labels.shape
    n_words = (n_labels + 63) // 64
    # With whole words numpy packs all rows at once, which is faster.
    padded = np.zeros((n_rows, 64 * n_words), bool)
    padded[:, :n_labels] = labels
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
            if labels is not None:
                _refuse_unpacked(query_codes, self.db_codes)
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
        if query_labels.dtype.kind == "U":
            self.classes = np.unique(query_labels)
        words = self._label_words(query_labels, "query_labels", 0)
        self.Lq = np.ascontiguousarray(words.T)

    def _label_words(self, labels, name, first):
        """Return labels as words (v, n): packed rows of a matrix, integers, or numbers of strings.

        The number of a string is its position in ``classes``, the sorted strings of the queries.
        Any other string has the number len(classes).
        """
        if self.multi:
            return _pack_labels(labels, name, first)
        labels = _as_ids(labels, name)
        if labels.dtype.kind != "U":
            return labels.view(np.uint64)[None]
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
            if self.db_labels is None:
                Ld = np.zeros((1, len(codes)), np.uint64)
            else:
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


def _number_rows(rows):
    """Return the number of each row, equal rows having the same, and the first row of each."""
    rows = np.ascontiguousarray(rows)
    n_slot_bits = 1 + len(rows).bit_length()
    slots = np.full(1 << n_slot_bits, -1, np.int32)
    shift = np.uint64(64 - n_slot_bits)
    number, first = np.empty((2, len(rows)), np.int64)
    # With the JIT off, numpy warns about the overflow that the hash value relies on.
    with np.errstate(over="ignore"):
        n = _number(rows, slots, shift, number, first)
    return number, first[:n]


def _prepare(D, Ld, merges, sorts):
    """Return a block of codes D (m, w) and labels Ld (v, m) as `_count` needs it.

    Returns
    -------
    D : (w, m) codes
    weight : (m,) numbers of items with this code and these labels, or (0,) if all are 1
    sets : (v, s) label sets
    edges : (s + 1,): the codes edges[k]..edges[k + 1] - 1 have set k; or (0,) if s = m
    """
    weight = np.empty(0, np.uint32)
    edges = np.empty(0, np.int64)
    if merges:
        number, first = _number_rows(np.hstack([D, Ld.T]))
        weight = np.bincount(number).astype(np.uint32)
        D = D[first]
        Ld = Ld[:, first]
    if sorts:
        number, first = _number_rows(Ld.T)
        # Many short runs are slower than no runs.
        if 4 * len(first) < len(D):
            # numpy sorts small integers several times as fast.
            number = number.astype(np.min_scalar_type(len(first)))
            order = np.argsort(number, kind="stable")
            edges = np.append(0, np.bincount(number).cumsum())
            D = D[order]
            weight = weight[order] if merges else weight
            Ld = Ld[:, first]
    return np.ascontiguousarray(D.T), weight, np.ascontiguousarray(Ld), edges


def _has_equal(codes):
    """Return whether a sample of the codes contains two equal ones."""
    sample = _as_words(codes[:: 1 + len(codes) // SAMPLE])
    in_order = sample[np.lexsort(sample.T)]
    return bool((in_order[1:] == in_order[:-1]).all(axis=1).any())


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
        if it has at least one label in common with the query. Any 0/1 matrix ``relevance`` of
        queries and items can be given by ``np.eye(n_queries)`` and ``relevance.T``.
    n_bits : int, optional
        Length of the codes; by default all bits of the packed bytes.
    n_threads : int, optional
        By default all cores. The result does not depend on it.

    Examples
    --------
    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> hamming_histogram(codes[:1], codes, [7], [7, 8, 7], n_bits=3).items
    array([[1, 1, 0, 1]])
    >>> relevance = np.array([[1, 0, 1], [0, 1, 1]])  # two queries, three items
    >>> hamming_histogram(codes[:2], codes, np.eye(2), relevance.T, n_bits=3).relevant
    array([[1, 0, 0, 1],
           [1, 0, 1, 0]])
    """
    labels = (query_labels, db_labels)
    scan = _DatabaseScan(query_codes, db_codes, labels, n_bits, n_threads)
    return _histogram(scan)


def _histogram(scan):
    """Return the histograms of a `_DatabaseScan`."""
    other, relevant = _count_grades(scan, n_grades=2)
    return HammingHistogram(other + relevant, relevant)


def _count_grades(scan, n_grades):
    """Return counts (n_grades, n_queries, n_bits + 1) int64 of the items of each grade.

    The grade is the number of labels shared with the query, at most n_grades - 1.
    """
    Q = scan.Q
    Lq = scan.Lq
    counts = np.zeros((n_grades, len(Q), scan.n_bits + 1), np.int64)
    # Queries with the same labels follow each other, because they have the same relevant items.
    order = np.lexsort(Lq.T)
    is_new = np.ones(len(Q), bool)
    is_new[1:] = (Lq[order[1:]] != Lq[order[:-1]]).any(axis=1)
    merges = len(Q) >= MANY and _has_equal(scan.db_codes)
    sorts = scan.multi and is_new.sum() >= MANY
    n_cells = max(MOST_CELLS, n_grades * (scan.n_bits + 1))
    cell_type = np.uint16 if n_cells <= 1 << 16 else np.uint32
    for _, D, Ld in scan.blocks():
        block = _prepare(D, Ld, merges, sorts)

        def count_part(p):
            cells = np.empty(TILE, cell_type)
            _count(order[p], is_new[p], Q, Lq, *block, scan.multi, cells, counts)

        scan.run_in_threads(count_part, block[0].shape[1])
    return counts


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


Values = float | np.ndarray  # a mean over queries, or the value of each


def _ratio(a, b):
    """Return a / b, and NaN where b is 0."""
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return np.divide(a, b, out=np.full(shape, np.nan), where=b > 0)


@dataclass(frozen=True, eq=False, repr=False)
class HammingHistogram:
    """Hold the items and relevant items at every Hamming distance of every query.

    The metrics are methods. ``a + b`` (or ``sum``) joins the histograms of the same queries over
    two shards of a database.

    A metric is its expectation over all orders of the items at the same distance. In the formulas
    n and n+ are the items and relevant items at a distance, N and N+ those at all smaller ones, R
    the relevant items of the query. With ``per_query`` a metric returns the value of each query.
    Where R = 0 it may be undefined. Then it is NaN, and the mean leaves the query out; with
    empty="zero" it counts as 0.

    Attributes
    ----------
    items, relevant : (n_queries, n_bits + 1) int64
    grades : (n_grades, n_queries, n_bits + 1) int64, optional
        grades[g] are the items that share exactly g labels with the query; see `graded_histogram`.
    """

    items: np.ndarray
    relevant: np.ndarray
    grades: np.ndarray | None = None

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
        forms = [np.shape(h.items) + np.shape(h.grades) for h in (self, other)]
        if forms[0] != forms[1]:
            need = "pass histograms of the same queries and code length"
            raise ValueError(f"cannot add {self} and {other}; {need}.")
        grades = None if self.grades is None else self.grades + other.grades
        relevant = self.relevant + other.relevant
        return HammingHistogram(self.items + other.items, relevant, grades)

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
        """Return the number of queries with no relevant item (R = 0)."""
        return int(np.count_nonzero(self._R == 0))

    @property
    def _R(self):
        return self.relevant.sum(axis=1)

    def without_self(self) -> HammingHistogram:
        """Remove each query's own item, for a set of codes evaluated against itself.

        The result has no grades.
        """
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

    def _mean(self, values, per_query, empty="skip", top=None):
        """Return the values of the queries, or their mean. NaN is a query without a value."""
        _check_choice(empty, "empty", "skip", "zero")
        if empty == "zero":
            values = np.nan_to_num(values)
        if per_query:
            return values
        _check_any_kept(~np.isnan(values), top)
        mean = np.nanmean(values, axis=0)
        return float(mean) if values.ndim == 1 else mean

    def _by_blocks(self, formula):
        """Return formula(p) for all queries; blocks p of queries need less memory."""
        n_rows = max(1, BLOCK_WORDS // self.items.shape[1])
        starts = range(0, len(self.items), n_rows)
        return np.concatenate([formula(slice(a, a + n_rows)) for a in starts])

    def _gain(self):
        """Return the sum of the grades of the items at every distance."""
        if self.grades is None:
            raise ValueError("the histogram has no grades; pass graded_histogram(...).")
        return np.tensordot(np.arange(len(self.grades)), self.grades, 1)

    def mean_average_precision(
        self,
        top: int | None = None,
        normalize: str = "relevant",
        empty: str = "skip",
        per_query: bool = False,
        weighted: bool = False,
    ) -> Values:
        """Return the mean average precision.

        With m = (n+ - 1) / (n - 1),

            E[AP] = 1/R sum_d (n+/n) sum_{i=N+1}^{N+n} (N+ + 1 + (i - N - 1) m) / i .

        The inner sum up to e is m (e - N) + (N+ + 1 - m (N + 1)) (H_e - H_N), with the harmonic
        numbers H.

        Parameters
        ----------
        top : int, optional
            Only the first ``top`` ranks count (mAP@top).
        normalize : {"relevant", "min", "retrieved"}
            Divide by R, by min(R, top), or by the relevant items among the first ``top``. The last
            is what most published hashing code does; it can rank [+ - -] above [+ - +].
        empty : {"skip", "zero"}
            Leave out the queries without a relevant item, or count them as 0. For "retrieved" these
            are the queries of which none can be among the first ``top``; of any other query, orders
            without one count as 0.
        per_query : bool
            Return the average precision of each query. It is NaN for those that are left out, so
            that ``np.isnan`` counts them.
        weighted : bool
            Take the mean grade of the first i items in place of the precision at i. This needs
            grades.
        """
        _check_options(top, normalize)
        gain = self._gain() if weighted else self.relevant

        def formula(p):
            counts = self.items[p], self.relevant[p], gain[p]
            return _average_precision(*counts, top, normalize)

        return self._mean(self._by_blocks(formula), per_query, empty, top)

    def _sum_at(self, gain, k):
        """Return the expected gain of the first k items, and k; columns if k is a list."""
        is_single = np.ndim(k) == 0
        values = [k] if is_single else k
        ks = np.array([check_integer(value, "k") for value in values])
        if len(ks) == 0:
            raise ValueError(f"k={k} is empty; pass at least one k.")
        n_items = int(self.items.sum(axis=1).min())
        if ks.max() > n_items:
            need = f"the database has {n_items} items: pass a smaller k"
            raise ValueError(f"k={ks.max()} is too large; {need}.")
        sums = self._by_blocks(lambda p: _expected_sum(self.items[p], gain[p], ks))
        return (sums[:, 0], ks[0]) if is_single else (sums, ks)

    def precision_at_k(self, k: int | list[int], per_query: bool = False) -> Values:
        """Return the share of relevant items among the first k, (N+ + (k - N) n+/n) / k.

        n, n+, N and N+ are those at the distance of the k-th item. A list gives a value for each k.
        """
        hits, ks = self._sum_at(self.relevant, k)
        return self._mean(hits / ks, per_query)

    def recall_at_k(
        self, k: int | list[int], empty: str = "skip", per_query: bool = False
    ) -> Values:
        """Return the share of the R relevant items among the first k, (N+ + (k - N) n+/n) / R."""
        hits, _ = self._sum_at(self.relevant, k)
        return self._mean(_ratio(hits.T, self._R).T, per_query, empty)

    def r_precision(self, empty: str = "skip", per_query: bool = False) -> Values:
        """Return the precision at k = R."""
        hits = _expected_sum(self.items, self.relevant, self._R[:, None])[:, 0]
        return self._mean(_ratio(hits, self._R), per_query, empty)

    def acg_at_k(self, k: int | list[int], per_query: bool = False) -> Values:
        """Return the mean grade of the first k items; it needs grades."""
        gain, ks = self._sum_at(self._gain(), k)
        return self._mean(gain / ks, per_query)

    def ndcg_at_k(
        self, k: int, gain: str = "binary", empty: str = "skip", per_query: bool = False
    ) -> Values:
        """Return DCG@k divided by the DCG@k of the best order.

        DCG@k = sum_{i<=k} gain_i / log2(1 + i). The gain of an item is 1 if it is relevant, and
        with grades g it is g ("linear") or 2^g - 1 ("exponential"). In expectation it is
        sum_d (gain/n) sum_{i=N+1}^{min(N+n, k)} 1 / log2(1 + i).
        """
        _check_choice(gain, "gain", "binary", "linear", "exponential")
        self._sum_at(self.relevant, check_integer(k, "k"))
        grades, gains = self.relevant[None], np.ones(1)
        if gain != "binary":
            self._gain()
            grades, gains = self.grades[1:], np.arange(1.0, len(self.grades))
        if gain == "exponential":
            gains = 2**gains - 1
        ndcg = self._by_blocks(lambda p: _ndcg(self.items[p], grades[:, p], gains, k))
        return self._mean(ndcg, per_query, empty)

    def reciprocal_rank(self, empty: str = "skip", per_query: bool = False) -> Values:
        """Return 1 / rank of the first relevant item (MRR).

        In the first tie that has one, its rank is N + j with probability
        n+ / (n - j + 1) prod_{i<j} (1 - n+ / (n - i + 1)).
        """
        return self._mean(_first_hit(self.items, self.relevant), per_query, empty)

    def _within(self, radius):
        """Return the numbers of items and of relevant items within Hamming distance ``radius``."""
        radius = check_integer(radius, "radius", least=0)
        ball = slice(radius + 1)
        return self.items[:, ball].sum(axis=1), self.relevant[:, ball].sum(axis=1)

    def precision_at_radius(self, radius: int, per_query: bool = False) -> Values:
        """Return the share of relevant items within Hamming distance ``radius``.

        Radius 2 gives Precision@H2. A query with no item within the radius counts 0.
        """
        n_items, n_hits = self._within(radius)
        return self._mean(n_hits / np.maximum(n_items, 1), per_query)

    def recall_at_radius(self, radius: int, empty: str = "skip", per_query: bool = False) -> Values:
        """Return the share of the R relevant items within Hamming distance ``radius``."""
        _, n_hits = self._within(radius)
        return self._mean(_ratio(n_hits, self._R), per_query, empty)

    def f1_at_radius(self, radius: int, empty: str = "skip", per_query: bool = False) -> Values:
        """Return 2 hits / (items within + R), the harmonic mean of precision and recall."""
        n_items, n_hits = self._within(radius)
        f1 = _ratio(2 * n_hits, np.where(self._R > 0, n_items + self._R, 0))
        return self._mean(f1, per_query, empty)

    def success_rate(self, radius: int, per_query: bool = False) -> Values:
        """Return the share of queries with any item within Hamming distance ``radius``."""
        n_items, _ = self._within(radius)
        return self._mean((n_items > 0).astype(float), per_query)

    def mutual_information(self, per_query: bool = False) -> Values:
        """Return the mutual information of distance and relevance of an item, in bits.

        sum_d sum_y p(d, y) log2(p(d, y) / (p(d) p(y))), y relevant or not. It is 0 where R = 0.
        """
        n_other = self.items - self.relevant
        total = self.items.sum(axis=1)
        joint = _x_log_x(self.relevant) + _x_log_x(n_other) - _x_log_x(self.items)
        relevance = _x_log_x(self._R) + _x_log_x(total - self._R) - _x_log_x(total)
        information = np.maximum(joint.sum(axis=1) - relevance, 0) / total
        return self._mean(information, per_query)

    def precision_recall(
        self, k: list[int] | None = None, per_query: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (precision, recall) within each radius 0..n_bits, or among the first k for each k.

        Queries with R = 0 are left out. An empty ball has precision 0.
        """
        if k is None:
            hits = self.relevant.cumsum(axis=1)
            size = np.maximum(self.items.cumsum(axis=1), 1)
        else:
            hits, size = self._sum_at(self.relevant, list(k))
        precision = np.where(self._R[:, None] > 0, hits / size, np.nan)
        recall = _ratio(hits.T, self._R).T
        return self._mean(precision, per_query), self._mean(recall, per_query)

    def interval(self, metric: str, random_state: int = 0, **options) -> Estimate:
        """Return a metric and its 95 % interval by bootstrap over the queries.

        ``h.interval("mean_average_precision", top=1000)``. It tells how much the mean depends on
        the choice of queries, not how much it depends on the training.
        """
        return _bootstrap(_values(self, metric, options), random_state)


class Estimate(NamedTuple):
    """Hold a mean over ``n_queries`` queries, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    n_queries: int


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
    method = getattr(histogram, metric, None)
    values = method(per_query=True, **options) if callable(method) else None
    if np.shape(values) != (len(histogram.items),):
        need = "pass the name of a method with one value for each query"
        raise ValueError(f"metric={metric!r} with {options} is no metric; {need}.")
    return values


def _bootstrap(values, random_state):
    """Return the mean of the values that are not NaN, and its percentiles over resamples."""
    kept = ~np.isnan(values)
    _check_any_kept(kept, None)
    values = values[kept]
    n = len(values)
    rng = np.random.default_rng(random_state)
    means = [values[rng.integers(0, n, n)].mean() for _ in range(2000)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(values.mean()), float(low), float(high), n)


def _check_choice(value, name, *choices):
    """Check that an option has one of the values in ``choices``."""
    if value not in choices:
        *some, last = (f'"{choice}"' for choice in choices)
        need = f"pass {', '.join(some)} or {last}"
        raise ValueError(f"{name}={value!r} is unknown; {need}.")


def _check_options(top, normalize):
    """Check the options of both functions that return the mAP."""
    if top is not None:
        check_integer(top, "top")
    _check_choice(normalize, "normalize", "relevant", "min", "retrieved")


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


def _x_log_x(x):
    """Return x log2(x), and 0 for 0. x is int64."""
    return x * np.log2(np.maximum(x, 1))


def _ranks(n, last):
    """Return the last rank before each distance, and after all of them, but at most ``last``."""
    return np.minimum(np.insert(n.cumsum(axis=1), 0, 0, axis=1), last)


def _expected_sum(n, gain, k):
    """Return the expected sum of the gains of the first k items, G + (k - N) g/n.

    n, gain (n_queries, r + 1), k (n_ks,) or (n_queries, n_ks) int64, result (n_queries, n_ks). g is
    the gain of all items at the distance of the k-th, and G the gain of those before it.
    """
    end = n.cumsum(axis=1)
    k = np.broadcast_to(k, (len(n), np.shape(k)[-1]))
    cut = np.stack([(end < column[:, None]).sum(axis=1) for column in k.T], axis=1)
    size, own = (np.take_along_axis(counts, cut, axis=1) for counts in (n, gain))
    N = np.take_along_axis(end, cut, axis=1) - size
    G = np.take_along_axis(gain.cumsum(axis=1), cut, axis=1) - own
    return G + (k - N) * (own / np.maximum(size, 1))


def _average_precision(n, n_hits, gain, top, normalize):
    """Return the expected AP of each query. n, n_hits, gain (n_queries, r + 1) int64.

    The gain of a relevant item is 1, or its grade for the weighted AP.
    """
    last = n.sum(axis=1)
    if top is not None:
        last[:] = top
    sums = _expected_sums(n, n_hits, gain, last)
    if normalize == "retrieved":
        return _retrieved_ap(n, n_hits, gain, sums, last)
    R = n_hits.sum(axis=1)
    return _ratio(sums.sum(axis=1), np.minimum(R, last) if normalize == "min" else R)


def _expected_sums(n, n_hits, gain, last):
    """Return the expected sum of the precisions at the relevant items of each distance.

    These are the terms of the sum over d in `HammingHistogram.mean_average_precision`, clipped at
    rank ``last``. With gains g and G they are ((n+/n) G + (g/n) (1 + (i - N - 1) m)) / i.
    n, n_hits, gain (n_queries, r + 1), last (n_queries,) int64, result float64.
    """
    N = _counts_before(n)
    m = (n_hits - 1) / np.maximum(n - 1, 1)
    ranks = _ranks(n, last[:, None])
    harmonic = _harmonic_between(ranks[:, :-1], ranks[:, 1:])
    own = m * np.diff(ranks) + (1 - m * (N + 1)) * harmonic
    sums = n_hits * (_counts_before(gain) * harmonic) + gain * own
    return sums / np.maximum(n, 1)


def _retrieved_ap(n, n_hits, gain, sums, last):
    """Return the expected AP of each query divided by its hits among the first ``last``.

    The ties before the one that ``last`` cuts are whole. Their part is the sum of `_expected_sums`.
    n, n_hits, gain (n_queries, r + 1), last (n_queries,) int64, sums (n_queries, r + 1) float64.
    """
    before = _counts_before(n)
    # The last distance that begins before rank ``last``.
    cut = (before < last[:, None]).sum(axis=1) - 1
    is_whole = np.arange(n.shape[1]) < cut[:, None]
    whole_ties = np.where(is_whole, sums, 0).sum(axis=1)
    at_cut = (np.arange(len(n)), cut)
    N = before[at_cut]
    N_hits, G = (_counts_before(counts)[at_cut] for counts in (n_hits, gain))
    size = n[at_cut]
    good = n_hits[at_cut]
    q = np.minimum(last - N, size)
    # The gain before the tie, and that of one hit in it.
    gains = np.stack([G, gain[at_cut] / np.maximum(good, 1)])
    harmonic = _harmonic_between(N, N + q)
    ap = np.empty(len(n))
    _expect_over_cut(whole_ties, N, N_hits, gains, size, good, q, harmonic, ap)
    return ap


def _ndcg(n, grades, gains, k):
    """Return the expected DCG@k over the best. n (n_queries, r + 1) int64, gains (n_grades,).

    grades (n_grades, n_queries, r + 1) int64. The gains increase.
    """
    discounts = np.insert(np.cumsum(1 / np.log2(np.arange(2, k + 2))), 0, 0)
    gain = np.tensordot(gains, grades, 1) / np.maximum(n, 1)
    dcg = (gain * np.diff(discounts[_ranks(n, k)])).sum(axis=1)
    # The best order begins with the items of the highest grade.
    best = _ranks(grades.sum(axis=2).T[:, ::-1], k)
    return _ratio(dcg, np.diff(discounts[best]) @ gains[::-1])


def _first_hit(n, n_hits):
    """Return the expected 1 / rank of the first hit of each query. n, n_hits (n_queries, r + 1)."""
    result = np.full(len(n), np.nan)
    for q in np.flatnonzero(n_hits.any(axis=1)):
        d = np.argmax(n_hits[q] > 0)
        size = n[q, d]
        good = n_hits[q, d]
        # All further places together have a probability below exp(-40).
        place = np.arange(min(size - good, 40 * size // good) + 1)
        chance = good / (size - place)
        none_before = np.insert(np.cumprod(1 - chance)[:-1], 0, 1)
        rank = n[q, :d].sum() + 1 + place
        result[q] = np.sum(none_before * chance / rank)
    return result


def graded_histogram(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    n_bits: int | None = None,
    n_threads: int | None = None,
) -> HammingHistogram:
    """Count the items that share 0, 1, 2, ... labels with a query at every Hamming distance.

    The parameters are those of `hamming_histogram`, with labels in matrices of 0 and 1.
    """
    labels = (query_labels, db_labels)
    scan = _DatabaseScan(query_codes, db_codes, labels, n_bits, n_threads)
    if not scan.multi:
        need = "pass matrices of 0 and 1, with a column for each label"
        raise ValueError(f"each query has one label, so no grades; {need}.")
    # No item shares more labels than a query has.
    most = int(np.unpackbits(scan.Lq.view(np.uint8), axis=1).sum(axis=1).max())
    grades = _count_grades(scan, most + 1)
    return HammingHistogram(grades.sum(axis=0), grades[1:].sum(axis=0), grades)


# ---- rankings in a given order of ties -----------------------------------------------


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

    See `hamming_histogram` and `HammingHistogram.mean_average_precision` for the other parameters.
    What published evaluators compute:

    ===========================  =======  ========  ==========  =====  =====
    evaluator                    top      ties      normalize   empty  notes
    ===========================  =======  ========  ==========  =====  =====
    DeepHash-pytorch             topK     argsort   retrieved   zero   [1]
    CSQ                          R        argsort   retrieved   zero   [2]
    HashNet, PyTorch             R        argsort   retrieved   skip
    HashNet, Caffe               R        argsort   retrieved   zero   [3]
    OrthoHash                    R        (none)    retrieved   zero   [4]
    MIHash, HMOH: mAP            None     stable    relevant    skip   [5]
    MIHash, HMOH: mAP_1000       1000     stable    retrieved   skip   [5]
    OASIS                        None     stable    relevant    zero
    torchmetrics RetrievalMAP    top_k    (none)    retrieved   zero   [4]
    ranx map@k                   k        (none)    relevant    zero   [4]
    trec_eval map, map_cut_k     None, k  stable    relevant    zero   [6]
    ===========================  =======  ========  ==========  =====  =====

    [1] topK = -1 is top = n_items - 1: it drops the last item. [2] Queries without a label are left
    out: pass the others. [3] Queries with R = 0 are left out: pass the others. [4] torch.topk and
    numba order ties in ways that no option gives; where nothing ties the numbers are equal.
    [5] MATLAB, with similarities cast to int8. Up to 128 bits this changes nothing; beyond, no
    option gives it. [6] Ties by name, descending: sort the database so.

    Parameters
    ----------
    ties : {"expected", "stable", "argsort"}
        "stable" ranks tied items in database order, as a stable sort does. "argsort" ranks them as
        ``np.argsort`` of float32 distances does. That depends on the machine and on numpy's
        version, and exists only to reproduce a number.
    empty : {"skip", "zero"}
        In a given order a query may have no hit among the first ``top``. With "retrieved", "skip"
        then leaves it out of the mean, but the expectation counts such an order as 0. So these are
        means over different queries. With "zero" the expectation is the mean over all orders.

    Examples
    --------
    Four items tie. All are relevant to one query, and the last one to another query. Over the
    orders, "stable" gives 1/2, 1/2, 1/2 and 1 with "zero", and always 1 with "skip".

    >>> codes = np.zeros((4, 1), np.uint8)
    >>> data = codes[:2], codes, [[1, 0], [0, 1]], [[1, 0], [1, 0], [1, 0], [1, 1]]
    >>> for ties in "expected", "stable":
    ...     skip = mean_average_precision(*data, 1, ties, "retrieved", "skip")
    ...     zero = mean_average_precision(*data, 1, ties, "retrieved", "zero")
    ...     print(ties, skip, zero)
    expected 0.625 0.625
    stable 1.0 0.5
    """
    _check_options(top, normalize)
    _check_choice(ties, "ties", "expected", "stable", "argsort")
    _check_choice(empty, "empty", "skip", "zero")
    labels = (query_labels, db_labels)
    scan = _DatabaseScan(query_codes, db_codes, labels, n_bits)
    histogram = _histogram(scan)
    if ties == "expected":
        return histogram.mean_average_precision(top, normalize, empty, per_query)
    last = len(scan.db_codes) if top is None else top
    rank = _rank_in_database_order if ties == "stable" else _rank_by_argsort
    sums, found = rank(scan, histogram, last)
    R = histogram._R
    divisors = {"relevant": R, "min": np.minimum(R, last), "retrieved": found}
    return histogram._mean(_ratio(sums, divisors[normalize]), per_query, empty, top)


def _rank_in_database_order(scan, histogram, last):
    """Return the sum of the precisions at the hits up to rank ``last``, and their number."""
    Q = scan.Q
    Lq = scan.Lq
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
    return sums, found


def _rank_by_argsort(scan, histogram, last):
    """Return the same for the order of np.argsort."""
    codes, labels = zip(*(block[1:] for block in scan.blocks()), strict=True)
    D = np.ascontiguousarray(np.concatenate(codes).T)
    Ld = np.concatenate(labels, axis=1)
    sums = np.zeros(len(scan.Q))
    found = np.zeros(len(scan.Q), np.int64)
    # Queries with the same code have the same order.
    number, first = _number_rows(scan.Q)
    for u in range(len(first)):
        distances = np.zeros(D.shape[1], np.uint32)
        with np.errstate(over="ignore"):
            _add_distances(scan.Q[first[u]], D, 0, distances)
        order = np.argsort(distances.astype(np.float32))[:last]
        for q in np.flatnonzero(number == u):
            own = scan.Lq[q][:, None]
            is_hit = (Ld & own > 0).any(axis=0) if scan.multi else (Ld == own)[0]
            ranks = np.flatnonzero(is_hit[order]) + 1
            found[q] = len(ranks)
            sums[q] = np.sum(np.arange(1, len(ranks) + 1) / ranks)
    return sums, found


def _as_signs(words, n_bits):
    """Return codes (n, w) uint64 as -1 and 1, (n, n_bits) float32."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, count=n_bits, bitorder="little")
    return 2 * bits.astype(np.float32) - 1


# ---- codes by themselves -------------------------------------------------------------


class CodeSummary(dict):
    """Hold the numbers that `describe` returns, and show them as a table."""

    def __repr__(self) -> str:
        return "\n".join(f"{name:38}{value:>12.6g}" for name, value in self.items())

    def _repr_html_(self) -> str:
        cells = (f"<td>{name}</td><td>{value:.6g}</td>" for name, value in self.items())
        return f"<table><tr>{'</tr><tr>'.join(cells)}</tr></table>"


def describe(codes: np.ndarray, n_bits: int | None = None) -> CodeSummary:
    """Return how much of their length packed codes use.

    Constant bits have no correlation. A code of 16 bits that is repeated to 64 has 16 distinct
    bits. The entropy is that of the codes, at most log2 of their number.
    """
    codes = _check_codes(codes, "codes")
    if n_bits is None:
        _refuse_unpacked(codes)
    scan = _DatabaseScan(codes[:1], codes, n_bits=n_bits)
    n, n_bits = len(codes), scan.n_bits
    # both[i, j] are the codes with a 1 in bits i and j.
    both = np.zeros((n_bits, n_bits))
    for _, D, _ in scan.blocks():
        signs = _as_signs(D, n_bits)
        both += ((signs + 1).T @ (signs + 1)) / 4
    ones = both.diagonal()
    is_same = (both == ones) & (both == ones[:, None])
    spread = np.sqrt(ones * (n - ones))
    correlation = _ratio(n * both - np.outer(ones, ones), np.outer(spread, spread))
    pairs = np.abs(correlation[np.triu_indices(n_bits, 1)])
    pairs = pairs[~np.isnan(pairs)]
    _, buckets = np.unique(codes, axis=0, return_counts=True)
    share = buckets / n
    return CodeSummary(
        {
            "codes": n,
            "bits": n_bits,
            "distinct bits": int(np.count_nonzero(~np.tril(is_same, -1).any(axis=1))),
            "constant bits": int(np.count_nonzero(spread == 0)),
            "mean |share of ones - 1/2|": float(np.abs(ones / n - 0.5).mean()),
            "mean |correlation of two bits|": float(pairs.sum() / max(1, len(pairs))),
            "distinct codes": len(buckets),
            "items per distinct code": n / len(buckets),
            "items of the most frequent code": int(buckets.max()),
            "entropy of the codes in bits": float(np.sum(share * np.log2(1 / share))),
        }
    )


# ---- nearest items -------------------------------------------------------------------


def _check_k(k, n_items):
    """Return k as an int, at most the number of items."""
    k = check_integer(k, "k")
    if k > n_items:
        need = f"the database has {n_items} items: pass a smaller k"
        raise ValueError(f"k={k} is too large; {need}.")
    return k


def nearest(
    query_codes: np.ndarray,
    db_codes: np.ndarray,
    k: int,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest items of every query by Hamming distance, ties in database order.

    It makes one pass over the database and uses no index. The default is a thread per core.

    Returns
    -------
    distances, indices : (n_queries, k) int64

    Examples
    --------
    >>> codes = np.array([[0b000], [0b001], [0b111]], np.uint8)
    >>> nearest(codes[2:], codes, k=2)
    (array([[0, 2]]), array([[2, 1]]))
    """
    scan = _DatabaseScan(query_codes, db_codes, n_threads=n_threads)
    k = _check_k(k, len(scan.db_codes))
    Q = scan.Q
    distances = np.zeros((len(Q), k), np.int64)
    indices = np.zeros((len(Q), k), np.int64)
    for first, D, _ in scan.blocks():
        D = np.ascontiguousarray(D.T)

        def select_part(p):
            _select(Q[p], D, first, scan.n_bits, distances[p], indices[p])

        scan.run_in_threads(select_part, D.shape[1])
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
    area = np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)
    return float(area / (x[-1] - x[0]))
