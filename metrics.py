"""Exact evaluation of binary codes by Hamming ranking: mAP, Precision@K, PR curves.

Copy this file alone into any project: it needs only numpy (1.26 or newer) and numba.

One pass over the database counts all items and the relevant items at each Hamming distance 0..r of
every query. Every metric is a closed form of these two histograms. The histograms of two shards of
a database add up. Hamming ranking ties most of a database, so by default a metric is its
expectation over all orders of the tied items. It depends on no sort order and needs no sampling.

Reading guide, in this order:

1. `HammingHistogram`, section "metrics": the two histograms and the formula of each metric.
2. `hamming_histogram`, section "one pass over the database": how the histograms are counted.
3. `_add_distances` and `_count`, section "compiled loops": they take nearly all the time.
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

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

__all__ = [
    "HammingHistogram",
    "area_under_curve",
    "asymmetric_mean_average_precision",
    "check_integer",
    "hamming_histogram",
    "mean_average_precision",
    "nearest",
    "nearest_asymmetric",
]

# How to pack codes of 0 and 1, or of -1 and 1.
PACK = 'np.packbits(codes > 0, axis=1, bitorder="little")'
BLOCK_WORDS = 1 << 17  # words of codes or labels in a block: 1 MB, for a core's cache
TILE = 2048  # items whose distances are computed before they are counted
SMALL_TILE = 256  # the same for the search of the nearest
SAMPLE = 2048  # rows that are examined to decide whether merging equal codes saves time
MOST_CELLS = 20_000  # counters of two queries: more do not fit a core's cache
MANY = 100  # queries, or label sets of queries, for which it saves time to sort a block
PAIRS_PER_THREAD = 100_000  # for fewer pairs, another thread saves no time


# ---- compiled loops ------------------------------------------------------------------


def _compiled(function):
    """Compile on the first call, and cache the result on disk if a folder can be written."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        # There is no such folder, for example in a read-only installation.
        return njit(nogil=True)(function)


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

    x (w,) uint64, D (w, m) uint64, out (t,) uint32.
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

    cells (t,) uint32, tables (2 or 4, c) uint32.
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
def _count(order, is_new, Q, Lq, D, weight, sets, edges, multi, counts):
    """Add the items of grade g at distance d of query q to counts[g, q, d].

    order (p,) int64, is_new (p,) bool, Q (n, w), Lq (n, v), D (w, m), sets (v, s) uint64, weight
    (m,) or (0,) uint32, edges (s + 1,) int64, counts (g, n, r + 1) int64. The queries are taken in
    ``order``. is_new tells whether one has other labels than the last. For D, weight, sets and
    edges see `_prepare`.
    """
    n_items = D.shape[1]
    n_grades, _, n_distances = counts.shape
    step = np.uint32(n_distances)
    set_grade = np.empty(sets.shape[1], np.uint16)
    grade = set_grade
    if len(set_grade) < n_items:
        grade = np.empty(n_items, np.uint16)
    cells = np.empty(TILE, np.uint32)
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
        for first in range(0, n_items, TILE):
            end = min(first + TILE, n_items)
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
def _number(rows, slots, number, first):
    """Number the different rows as they appear; return how many there are.

    rows (m, w) uint64, slots (2**b,) int64 of -1, number, first (m,) int64. number[j] is the number
    of row j, first[u] the first row of number u. ``slots`` is a hash table of numbers.
    """
    last = np.uint64(len(slots) - 1)
    n = 0
    for j in range(len(rows)):
        row = rows[j]
        key = np.uint64(0)
        for k in range(len(row)):
            key = (key ^ row[k]) * _MIX
            key ^= key >> _29
        slot = key & last
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
    is_hit = np.empty(len(D), np.uint16)
    distance = np.empty(len(D), np.uint32)
    words = np.ascontiguousarray(D.T)
    for q in range(len(Q)):
        _grade(Lq[q], Ld, multi, 1, is_hit)
        distance[:] = 0
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
    ends[:] = 0
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
    distance[0, :n] = distance[1, :n]
    row[0, :n] = row[1, :n]
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
        distance[0, :n] = distances[q, :n]
        row[0, :n] = indices[q, :n]
        # Among equal distances the first item counts, so later ones must be nearer than the k-th.
        limit = n_bits + 1
        if n == k:
            limit = distance[0, k - 1]
        for first in range(0, n_items, SMALL_TILE):
            part = buffer[: min(SMALL_TILE, n_items - first)]
            part[:] = 0
            _add_distances(Q[q], D, first, part)
            # Most tiles have no candidate, and counting them takes a few instructions.
            n_near = 0
            for j in range(len(part)):
                n_near += part[j] < limit
            if n_near == 0:
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
        distances[q, :n] = distance[0, :n]
        indices[q, :n] = row[0, :n]


@_compiled
def _score(table, codes, out):
    """Write the sum of table[b, byte b] over the bytes of each code.

    table (n_bytes, 256) float64, codes (m, at least n_bytes) uint8, out (m,) float64.
    """
    for j in range(len(codes)):
        total = 0.0
        for b in range(len(table)):
            total += table[b, codes[j, b]]
        out[j] = total


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
    if n_bytes % 8 == 0 and rows.flags.c_contiguous:
        words = rows.view(np.uint64)
        if words.flags.aligned:
            return words
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


def _number_rows(rows):
    """Return the number of each row, equal rows having the same, and the first row of each."""
    rows = np.ascontiguousarray(rows)
    slots = np.full(2 << len(rows).bit_length(), -1)
    number, first = np.empty((2, len(rows)), np.int64)
    # With the JIT off, numpy warns about the overflow that the hash value relies on.
    with np.errstate(over="ignore"):
        n = _number(rows, slots, number, first)
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
    for _, D, Ld in scan.blocks():
        block = _prepare(D, Ld, merges, sorts)

        def count_part(p):
            _count(order[p], is_new[p], Q, Lq, *block, scan.multi, counts)

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


def _check_k(k, n_items):
    """Return k as an int, at most the number of items."""
    k = check_integer(k, "k")
    if k > n_items:
        need = f"the database has {n_items} items: pass a smaller k"
        raise ValueError(f"k={k} is too large; {need}.")
    return k


def nearest(
    query_codes: np.ndarray, db_codes: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest items of every query by Hamming distance, ties in database order.

    It makes one pass over the database and uses no index.

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


# ---- real-valued queries against stored codes ----------------------------------------
# The sign of an output loses how certain a bit is. Only the stored codes need to be short, so the
# query keeps its outputs f (`HMOH.decision_function`). Items are ranked by the score
# f_1 b_1 + ... + f_r b_r of their bits b, -1 or 1. The part of a byte is looked up in a table.


def _scan_outputs(query_outputs, db_codes, labels=None):
    """Return a `_DatabaseScan` of the signs, and the outputs as float64, 0 for padding bits."""
    outputs = np.asarray(query_outputs)
    if outputs.ndim != 2 or outputs.dtype.kind not in "iuf" or outputs.size == 0:
        need = "pass the real outputs, (n_queries, n_bits), as decision_function gives"
        raise ValueError(
            f"query_outputs is {outputs.dtype} of shape {outputs.shape}; {need}."
        )
    outputs = outputs.astype(np.float64)
    if not np.isfinite(outputs).all():
        row, bit = np.argwhere(~np.isfinite(outputs))[0]
        need = "pass finite outputs"
        raise ValueError(f"query_outputs[{row}, {bit}] is {outputs[row, bit]}; {need}.")
    n_bits = outputs.shape[1]
    signs = np.packbits(outputs > 0, axis=1, bitorder="little")
    scan = _DatabaseScan(signs, db_codes, labels, n_bits)
    return scan, np.pad(outputs, ((0, 0), (0, -n_bits % 8)))


def _byte_scores(outputs):
    """Return the scores (n_bytes, 256) of all bytes, for the outputs (8 n_bytes,) of a query."""
    all_bytes = np.arange(256, dtype=np.uint8)[:, None]
    bits = np.unpackbits(all_bytes, axis=1, bitorder="little")
    return outputs.reshape(-1, 8) @ (2.0 * bits.T - 1)


def nearest_asymmetric(
    query_outputs: np.ndarray, db_codes: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k items with the highest score for every query, ties in database order.

    Parameters
    ----------
    query_outputs : (n_queries, n_bits) real numbers
        ``model.decision_function(X)``.
    db_codes : (n_items, ceil(n_bits / 8)) uint8
        ``model.transform(...)``.

    Returns
    -------
    scores : (n_queries, k) float64
    indices : (n_queries, k) int64

    Examples
    --------
    >>> codes = np.array([[0b00], [0b01], [0b11]], np.uint8)
    >>> nearest_asymmetric([[0.5, -2.0]], codes, k=2)
    (array([[2.5, 1.5]]), array([[1, 0]]))
    """
    scan, outputs = _scan_outputs(query_outputs, db_codes)
    k = _check_k(k, len(scan.db_codes))
    scores = np.full((len(outputs), k), -np.inf)
    indices = np.zeros((len(outputs), k), np.int64)
    for first, D, _ in scan.blocks():
        codes = D.view(np.uint8)

        def search_part(p):
            found = np.empty(len(codes))
            for q in range(p.start, p.stop):
                _score(_byte_scores(outputs[q]), codes, found)
                best = np.flatnonzero(found > scores[q, -1])
                if len(best) > k:
                    least = np.partition(found[best], -k)[-k]
                    best = best[found[best] >= least]
                both = np.append(scores[q], found[best])
                rows = np.append(indices[q], first + best)
                order = np.argsort(-both, kind="stable")[:k]
                scores[q] = both[order]
                indices[q] = rows[order]

        scan.run_in_threads(search_part, len(codes))
    return scores, indices


def asymmetric_mean_average_precision(
    query_outputs: np.ndarray,
    db_codes: np.ndarray,
    query_labels: np.ndarray,
    db_labels: np.ndarray,
    top: int | None = None,
    normalize: str = "relevant",
    per_query: bool = False,
) -> float | np.ndarray:
    """Return the mean average precision of the ranking by score.

    Equal codes tie, and as for the Hamming distance the result is the expectation over the orders
    of the tied items. See `nearest_asymmetric` for the score, and
    `HammingHistogram.mean_average_precision` for the other parameters.
    """
    labels = (query_labels, db_labels)
    scan, outputs = _scan_outputs(query_outputs, db_codes, labels)
    _check_options(top, normalize)
    _, D, Ld = map(list, zip(*scan.blocks(), strict=True))
    D = np.concatenate(D)
    Ld = np.concatenate(Ld, axis=1)
    number, first = _number_rows(np.hstack([D, Ld.T]))
    weight = np.bincount(number)
    codes = D[first].view(np.uint8)
    sets = np.ascontiguousarray(Ld[:, first])
    ap = np.empty(len(outputs))

    def rank_part(p):
        scores = np.empty(len(codes))
        is_hit = np.empty(len(codes), np.uint16)
        for q in range(p.start, p.stop):
            _score(_byte_scores(outputs[q]), codes, scores)
            _grade(scan.Lq[q], sets, scan.multi, 1, is_hit)
            order = np.argsort(-scores)
            starts = np.flatnonzero(np.diff(scores[order], prepend=np.inf))
            items = np.add.reduceat(weight[order], starts)
            relevant = np.add.reduceat((weight * is_hit)[order], starts)
            # Each score takes the place of a distance.
            ranking = HammingHistogram(items[None], relevant[None])
            ap[q] = ranking.mean_average_precision(top, normalize, per_query=True)[0]

    scan.run_in_threads(rank_part, len(codes))
    if per_query:
        return ap
    _check_any_kept(~np.isnan(ap), top)
    return float(np.nanmean(ap))
