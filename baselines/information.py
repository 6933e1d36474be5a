"""Mutual information of Hamming distance and similarity within a set of items.

Every item in turn is the query, and all items are its database. For each query a histogram
counts the items at each distance, the dissimilar and the similar ones apart. The histograms are
kept while the codes stay the same, so that an item that is replaced changes one entry of each.

>>> import numpy as np
>>> codes = pack(np.array([[1, 1], [1, 1], [-1, 1]]))
>>> similar = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
>>> counts = histograms(codes, similar, n_bits=2)
>>> print(counts[0])  # dissimilar items at distance 0, 1, 2, then similar ones
[0 1 0 2 0 0]
>>> print(round(mean_information(counts), 4))  # the entropy of two against one
0.9183
"""

from __future__ import annotations

import numpy as np

from hmoh import compiled

__all__ = ["histograms", "mean_information", "pack", "replace_items"]

# Every constant is a uint64, because numba turns uint64 combined with a plain int into float64.
_1 = np.uint64(1)
_2 = np.uint64(2)
_4 = np.uint64(4)
_56 = np.uint64(56)
_BITS = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES = np.uint64(0x0101010101010101)


# ---- compiled loops ------------------------------------------------------------------


@compiled
def _popcount(x):
    """Return the number of 1 bits of x uint64, as uint32."""
    # LLVM turns these lines into one instruction, which works on several words at once.
    x = x - ((x >> _1) & _BITS)
    x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
    x = (x + (x >> _4)) & _NIBBLES
    return np.uint32((x * _ONES) >> _56)


@compiled
def _keys(codes, q, similar, n_distances, key):
    """Set key[r] to the entry of the histogram of item q that counts item r.

    codes (words, n) uint64, similar (n or more,) bool, key (n,) uint32.
    """
    for r in range(len(key)):
        key[r] = np.uint32(n_distances) * np.uint32(similar[r])
    # All items of one word after the other, so that neighbours fill a vector register.
    for w in range(len(codes)):
        code = codes[w, q]
        for r in range(len(key)):
            key[r] += _popcount(code ^ codes[w, r])


@compiled
def _count_rows(codes, similar, places, counts):
    """Count all items for each of the queries at `places`.

    codes (words, n) uint64, similar (k, n or more) bool, places (k,) int64,
    counts (n or more, 2 (b + 1)) int32.
    """
    key = np.empty(codes.shape[1], np.uint32)
    n_distances = counts.shape[1] // 2
    for i in range(len(places)):
        _keys(codes, places[i], similar[i], n_distances, key)
        histogram = counts[places[i]]
        histogram[:] = 0
        for r in range(len(key)):
            histogram[key[r]] += 1


@compiled
def _add_items(codes, similar, places, number, counts):
    """Count the items at `places` `number` more times for each query.

    codes (words, n) uint64, similar (k, n or more) bool, places (k,) int64,
    counts (n or more, 2 (b + 1)) int32. The distance from a query to an item is that from the
    item to the query.
    """
    key = np.empty(codes.shape[1], np.uint32)
    n_distances = counts.shape[1] // 2
    for i in range(len(places)):
        _keys(codes, places[i], similar[i], n_distances, key)
        for r in range(len(key)):
            counts[r, key[r]] += number


@compiled
def _information(counts, T):
    """Return the mean over n queries of the mutual information.

    counts (n, 2 (b + 1)) int32, T (n + 1,) float64. T[c] = c log2 c, so that the entropy of n
    items, c of them at a distance, is (T[n] - sum of T[c]) / n.
    """
    n = len(counts)
    n_distances = counts.shape[1] // 2
    total = 0.0
    for q in range(n):
        n_similar = 0
        for l in range(n_distances):
            different = counts[q, l]
            same = counts[q, n_distances + l]
            n_similar += same
            # Elsewhere the three terms add up to zero.
            if different > 0 and same > 0:
                total += T[different] + T[same] - T[different + same]
        total += T[n] - T[n_similar] - T[n - n_similar]
    return total / n**2


# ---- parts in numpy ------------------------------------------------------------------


def pack(F: np.ndarray) -> np.ndarray:
    """Return the codes F > 0 as (n, words) uint64."""
    n, n_bits = F.shape
    n_bytes = -(-n_bits // 8)
    n_words = -(-n_bits // 64)
    codes = np.zeros((n, 8 * n_words), np.uint8)
    codes[:, :n_bytes] = np.packbits(F > 0, axis=1)
    return codes.view(np.uint64)


def histograms(codes: np.ndarray, similar: np.ndarray, n_bits: int) -> np.ndarray:
    """Return the histogram of each item.

    Parameters
    ----------
    codes : (n, words) uint64
    similar : (R, R) bool
        Which items are similar, with room for R items.
    n_bits : int

    Returns
    -------
    (R, 2 (n_bits + 1)) int32
        Row q is the histogram of item q: first the numbers of dissimilar items by distance, then
        those of similar items.
    """
    n = len(codes)
    counts = np.zeros((len(similar), 2 * (n_bits + 1)), np.int32)
    # With the JIT off, numpy warns about the overflow that _popcount relies on.
    with np.errstate(over="ignore"):
        words = np.ascontiguousarray(codes.T)
        _count_rows(words, similar, np.arange(n), counts)
    return counts


def replace_items(
    new: np.ndarray,
    new_codes: np.ndarray,
    new_similar: np.ndarray,
    n_before: int,
    codes: np.ndarray,
    similar: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Put k items into the places `new`, and update codes, similarity and histograms.

    Parameters
    ----------
    new : (k,) int64
        A place below n_before had another item.
    new_codes : (k, words) uint64
    new_similar : (k, n) bool
        The similarity of the new items to all n items there are then.
    n_before : int
        The number of items before.
    codes, similar, counts
        As in `histograms`, for R items. They are written into.
    """
    # The loops are compiled for rows that are contiguous.
    new_similar = np.ascontiguousarray(new_similar)
    replaced = new[new < n_before]
    n = new_similar.shape[1]
    with np.errstate(over="ignore"):
        words = np.ascontiguousarray(codes[:n_before].T)
        _add_items(words, similar[replaced, :n_before], replaced, -1, counts)
        codes[new] = new_codes
        similar[new, :n] = new_similar
        similar[:n, new] = new_similar.T
        words = np.ascontiguousarray(codes[:n].T)
        _add_items(words, new_similar, new, 1, counts)
        # What the two lines with _add_items did to the histograms of the new items is void.
        _count_rows(words, new_similar, new, counts)


def mean_information(counts: np.ndarray) -> float:
    """Return the mean over all items of the mutual information, in bits."""
    c = np.arange(len(counts) + 1)
    return _information(counts, c * np.log2(np.maximum(c, 1)))
