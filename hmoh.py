"""Hadamard Matrix Guided Online Hashing (HMOH; Lin et al., IJCV 2020).

Learn binary codes from a labelled stream. Copy this file alone into any project: it needs
numpy (1.26 or newer) and numba (0.61 or newer), nothing else.

Every class gets a column of a Hadamard matrix as its target code. Every bit is a perceptron
that is corrected on the samples it gets wrong. The hash functions are the average of the
perceptron over the stream.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(3, size=200)
>>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(200, 3))
>>> model = HMOH(n_bits=8, random_state=0).partial_fit(X, y)
>>> model.transform(X[:5]).shape                             # 8 bits are packed into one byte
(5, 1)

Reading guide
-------------
1. `_perceptron` is the learning rule. The comment above it is the same loop in a few lines.
   `Perceptrons` holds what it learns.
2. `Codebook` gives every label its target code: Hadamard columns, alignment by LSH, votes.
3. `HMOH`, at the end, puts the two together. Its docstring explains every parameter.
4. `CodebookHasher` is what HMOH shares with its predecessor HCOH: labels become targets.
5. `OnlineHasher` is what all methods share: parameters, stream, feature map, codes, files.
   Skip it at first reading, and the input checks too.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import inspect
import itertools
import json
import math
import operator
import os
import sys
import threading
import uuid
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numba
import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

__all__ = [
    "COUNT",
    "HMOH",
    "Codebook",
    "CodebookHasher",
    "Form",
    "NotFittedError",
    "OnlineHasher",
    "check_bool",
    "check_integer",
    "check_real",
    "compiled",
    "hadamard",
    "hadamard_product",
]

TILE = 8  # bits that are learned together, so that a sample is read once for them
RUN = 1000  # steps after which the sum of W is moved from float32 to float64
PAGE = 4096  # bytes of a memory page
FEW_ROWS = 64  # up to so many samples are learned without a copy of the weights
BLOCK_ROWS = 8192  # samples mapped to features, or encoded, at a time
DRAWS = 2000  # codebooks, or targets, that "spread" chooses from
FAR_PAIRS = 200_000  # distances that "spread" computes for a label of an open stream
FAR_LABELS = 1000  # labels of an open stream after which "spread" is "random"
FREE_TRIES = 16  # random codes that are tried to find one that no label has
# That memory="auto" chooses from: multiples of RUN, because forgetting begins with a run.
HORIZONS = (None, 100_000, 10_000, 1_000)
LOOK = 64  # "auto" looks at one of so many steps
LATELY = 256  # "auto" judges by about so many looks
MOST_BITS = 1 << 16  # of a model in a file that has not started
MOST_ALIGNED = 1 << 26  # entries of the Wlsh of such a model; it may have twice as many
SAVED_VERSION = 3  # of the files that `save` writes; versions 1 and 2 can still be read


class NotFittedError(ValueError, AttributeError):
    """Raised when a model is used before it has learned anything.

    If scikit-learn is in use it is also an error of its class, which its tools catch.
    """

    def __new__(cls, *args):
        theirs = sys.modules.get("sklearn.exceptions")
        if cls is NotFittedError and theirs is not None:
            cls = type(cls.__name__, (cls, theirs.NotFittedError), {})
        return super().__new__(cls, *args)

    def __reduce__(self):
        return NotFittedError, self.args


# ---- the perceptron (Sec. 3.5 and 3.7) -----------------------------------------------


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


def compiled(function):
    """Compile a function on its first call, and cache it on disk where that is possible.

    Sums may be reordered, which lets them run in vector registers. NaN and infinity keep
    their meaning.
    """
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    loop = njit(**options)(function)
    # Without a folder for the cache, as in a read-only install, there is none.
    with contextlib.suppress(RuntimeError):
        loop._cache = _DiskCache(function)
    return loop


# Inlined, because the calls took a twentieth of the time of the loop below.
@njit(inline="always")
def _dots(Z, i, W, k, f):
    """Set f to the products of sample i with the TILE rows of W that start at row k.

    Z (n, m) float32, W (bits, m) float32, f (TILE,) float32.
    """
    f0 = f1 = f2 = f3 = f4 = f5 = f6 = f7 = np.float32(0)
    for j in range(Z.shape[1]):
        z = Z[i, j]
        f0 += z * W[k, j]
        f1 += z * W[k + 1, j]
        f2 += z * W[k + 2, j]
        f3 += z * W[k + 3, j]
        f4 += z * W[k + 4, j]
        f5 += z * W[k + 5, j]
        f6 += z * W[k + 6, j]
        f7 += z * W[k + 7, j]
    f[0] = f0
    f[1] = f1
    f[2] = f2
    f[3] = f3
    f[4] = f4
    f[5] = f5
    f[6] = f6
    f[7] = f7


# What `_perceptron` computes, for one sample per step:
#
#     for t in range(1, len(Z) + 1):           # the samples, in order
#         z = Z[t - 1]
#         for k in range(n_bits):
#             c = C[y[t - 1], k]               # the target bit, +1 or -1
#             if (W[k] @ z > 0) != (c > 0):
#                 W[k] += c * z                # only where the bit is wrong
#         A += (W - A) * max(1 / t, 1 / n)     # the hash functions; n is infinite in the paper
#
# The fast version differs in three ways. It takes TILE bits at a time, and some 64 samples
# that stay in the cache while the tiles take turns. It does not change A at each step, but
# after every `run` steps, because what an update contributes has a closed form.
#
# Uniform average (t <= n). An update made after `age` steps of a run is missing from the first
# `age` terms of the sum of W. So the sum over k steps is k W - V, where V is the sum of
# age * update. S is the total of the finished runs.
#
# Forgetting (t > n). Let g = 1 - 1/n, and let S be the average at the start of the run. After k
# steps of the run A = W + g^k (S - W - V), where V is the sum of (g^-age - 1) * update.
#
# Runs are short because float32 cannot hold larger sums exactly enough. They are placed so that
# one of them ends at step n. If n is no multiple of `run`, the first run is shorter.
#
# Several averages (memory="auto") share W and V. The first is that of all steps. The others forget
# from run to run: with M, the mean of W in a run of k steps, S becomes M + g^k (S - M).
@compiled
def _perceptron(Z, y, C, batch, W, V, S, horizons, wrong, steps, first_bit, last_bit):
    """Learn the bits from first_bit to before last_bit from the samples Z with targets C[y].

    Z (n, m) C (classes, bits) W V (bits, m or more) float32, S (h, bits, m or more) float64,
    y (n,) steps (1,) int64, wrong (tiles, h) float64; `batch` samples per step, `horizons` as
    in `_horizons`. The steps are added to `steps` if these are all bits, else by the caller.
    """
    run, shift, ends, growth, _ = horizons
    f = np.empty(TILE, np.float32)
    update = np.empty((batch, TILE), np.float32)
    n_rows = max(1, 64 // batch) * batch
    for start in range(0, len(Z), n_rows):
        stop = min(start + n_rows, len(Z))
        for k in range(first_bit, last_bit, TILE):
            done = steps[0] + start // batch
            for i0 in range(start, stop, batch):
                i1 = min(i0 + batch, stop)
                if len(ends) > 1 and done % LOOK == 0:
                    _look(Z, i0, C, y[i0], k, S, done, ends, wrong)
                # All samples of a batch meet the W from before the batch.
                for i in range(i0, i1):
                    _dots(Z, i, W, k, f)
                    for q in range(TILE):
                        c = C[y[i], k + q]
                        update[i - i0, q] = c if (f[q] > 0) != (c > 0) else 0
                age = (done + shift) % run
                weight = growth[age]
                if done < ends[0]:
                    weight = np.float32(min(age, done))
                for i in range(i0, i1):
                    for q in range(TILE):
                        c = update[i - i0, q]
                        if c != 0:
                            for j in range(Z.shape[1]):
                                W[k + q, j] += c * Z[i, j]
                                V[k + q, j] += (weight * c) * Z[i, j]
                done += 1
                if age + 1 == run:
                    _end_run(done, W, V, S, horizons, k)
    if last_bit - first_bit == len(W):
        steps[0] += -(-len(Z) // batch)


# Inlined, because it compiles faster so.
@njit(inline="always")
def _end_run(done, W, V, S, horizons, k):
    """Add a run that ends after `done` steps to S, and clear V, for the TILE bits from k on.

    W V (bits, m) float32, S (h, bits, m) float64, horizons as in `_horizons`.
    """
    run, _, ends, _, keep = horizons
    length = min(run, done)
    for q in range(k, k + TILE):
        for j in range(W.shape[1]):
            w = np.float64(W[q, j])
            v = np.float64(V[q, j])
            if done <= ends[0]:
                S[0, q, j] += length * w - v
            else:
                S[0, q, j] = w + keep[0] * (S[0, q, j] - w - v)
            for h in range(len(ends)):
                if done == ends[h]:
                    S[h, q, j] = S[0, q, j] / done  # from here on an average
                elif h > 0 and done > ends[h]:
                    mean = w - v / length
                    S[h, q, j] = mean + keep[h] * (S[h, q, j] - mean)
            V[q, j] = 0


# Inlined, because it compiles faster so.
@njit(inline="always")
def _look(Z, i, C, label, k, S, done, ends, wrong):
    """Count the bits that each average gets wrong on sample i, before it is learned.

    Z (n, m) C (classes, bits) float32, S (h, bits, m) wrong (tiles, h) float64, ends (h,) int64.
    The averages are those at the start of the run. S[0] is a sum, but only its sign is needed. An
    average that does not forget yet is the first one.
    """
    tile = k // TILE
    first = 0
    for h in range(len(ends)):
        count = 0
        if h == 0 or done >= ends[h]:
            for q in range(k, k + TILE):
                f = 0.0
                for j in range(Z.shape[1]):
                    f += S[h, q, j] * Z[i, j]
                if (f > 0) != (C[label, q] > 0):
                    count += 1
        else:
            count = first
        if h == 0:
            first = count
        wrong[tile, h] += (count - wrong[tile, h]) / LATELY


@compiled
def _average(W, V, S, of_S, of_W, of_V, divisor, A):
    """Set A = (of_S S + of_W W - of_V V) / divisor, in one sweep.

    W V (bits or more, m or more) float32, S the same float64, A (bits, m) float32.
    """
    for k in range(A.shape[0]):
        for j in range(A.shape[1]):
            w = np.float64(W[k, j])
            v = np.float64(V[k, j])
            A[k, j] = (of_S * S[k, j] + of_W * w - of_V * v) / divisor


def _horizons(memory) -> tuple:
    """Return what `_perceptron` needs to know of the averages that it keeps.

    Returns
    -------
    run : int
        Steps after which V is moved into S.
    shift : int
        After t steps, (t + shift) % run of them belong to the run that has begun.
    ends : (h,) int64
        The step at which each average begins to forget, its n.
    growth : (run,) float32
        (1 - 1/n)^-age - 1, the weight of an update in V once the first average forgets.
    keep : (h,) float64
        (1 - 1/n)^run, the part of S that remains after a run.
    """
    kept = HORIZONS if memory == "auto" else (memory,)
    never = np.iinfo(np.int64).max
    ends = np.array([never if n is None else min(n, never) for n in kept], np.int64)
    run = int(min(RUN, ends.min()))
    shift = -int(ends[0]) % run if ends[0] < never else 0
    growth = np.expm1(-np.arange(run) * _log_decay(ends[0]))
    keep = np.array([1 - 1 / n for n in ends.tolist()]) ** run
    return run, shift, ends, growth.astype(np.float32), keep


def _log_decay(n: int) -> float:
    """Return log(1 - 1/n), also for n = 1, where it is only ever multiplied by 0."""
    return math.log1p(-1 / max(n, 2))


def _padded(a: np.ndarray, dtype, offset: int = 0) -> np.ndarray:
    """Return a copy with zeros added, which starts `offset` bytes into a memory page.

    Zeros are added up to whole tiles of bits and whole cache lines of 16 values. Rows that
    start at the same offset within a page compete for the same cache sets. So a row of float32
    has an odd number of cache lines.
    """
    n_bits = -(-a.shape[0] // TILE) * TILE
    n_lines = -(-a.shape[1] // 16) | 1
    shape = (n_bits, 16 * n_lines)
    size = n_bits * 16 * n_lines * np.dtype(dtype).itemsize
    memory = np.zeros(size + PAGE, np.uint8)
    start = (offset - memory.ctypes.data) % PAGE
    padded = memory[start : start + size].view(dtype).reshape(shape)
    padded[: a.shape[0], : a.shape[1]] = a
    return padded


class Perceptrons:
    """A perceptron for each bit, and its average over the stream (Sec. 3.5 and 3.7).

    `learn` writes into the arrays. A copy has arrays of its own.

    Parameters
    ----------
    n_bits, n_features : int
    memory : int, "auto" or None
        As in `HMOH`.
    """

    def __init__(self, n_bits: int, n_features: int, memory: int | str | None):
        self.shape = (n_bits, n_features)
        self.memory = memory
        self.horizons = _horizons(memory)
        n_averages = len(self.horizons[2])
        self.W = _padded(np.zeros(self.shape), np.float32)
        # W and V are written in turn, so they start half a page apart.
        self.V = _padded(np.zeros(self.shape), np.float32, offset=PAGE // 2)
        averages = np.zeros((n_averages * len(self.W), n_features))
        self.S = _padded(averages, np.float64).reshape(n_averages, *self.W.shape)
        self.wrong = np.zeros((len(self.W) // TILE, n_averages))
        self.steps = np.zeros(1, np.int64)

    def copy(self) -> Perceptrons:
        """Return a copy that shares no array that `learn` writes into."""
        return Perceptrons.from_state(*self.shape, self.memory, self.get_state())

    def get_state(self) -> dict:
        """Return all that was learned, in arrays without padding that nobody writes into."""
        n_bits, m = self.shape
        return {
            "W": self.W[:n_bits, :m].copy(),
            "V": self.V[:n_bits, :m].copy(),
            "S": self.S[:, :n_bits, :m].copy(),
            "wrong": self.wrong.copy(),
            "steps": int(self.steps[0]),
        }

    @classmethod
    def from_state(cls, n_bits, n_features, memory, state: dict) -> Perceptrons:
        """Return the perceptrons whose `get_state` gave this state."""
        new = cls(n_bits, n_features, memory)
        new.W[:n_bits, :n_features] = state["W"]
        new.V[:n_bits, :n_features] = state["V"]
        new.S[:, :n_bits, :n_features] = state["S"]
        new.wrong[:] = state["wrong"]
        new.steps[0] = state["steps"]
        return new

    def arguments(self, Z, index, C, batch: int) -> tuple:
        """Return the arguments of `_perceptron` to learn all bits from samples Z."""
        # Another version of the loop would be compiled for arrays that are read-only.
        if not Z.flags.writeable:
            Z = Z.copy()
        arrays = (self.W, self.V, self.S, self.horizons, self.wrong, self.steps)
        return (Z, index, C, batch, *arrays, 0, len(self.W))

    def learn(self, Z, index, C, batch: int, n_threads: int = 1) -> None:
        """Learn from samples Z with targets C[index], in place."""

        arguments = self.arguments(Z, index, C, batch)
        n_tiles = len(self.W) // TILE
        n_threads = min(n_threads, n_tiles)
        if n_threads == 1:
            _perceptron(*arguments)
            return

        def learn_tiles(tiles):
            _perceptron(*arguments[:-2], TILE * tiles[0], TILE * (tiles[-1] + 1))

        # The pool is made for this call, so that a later fork is safe. The calling thread only
        # waits. When it worked too, a thread that it started often ran on the same core.
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(learn_tiles, np.array_split(np.arange(n_tiles), n_threads)))
        self.steps[0] += -(-len(Z) // batch)

    def best(self) -> int:
        """Return which average made the fewest wrong bits lately, the longest of equals."""
        return int(self.wrong.sum(axis=0).argmin())

    def average(self) -> np.ndarray:
        """Return the average of W, (n_bits, n_features) float32."""
        run, shift, ends, _, _ = self.horizons
        t = int(self.steps[0])
        age = min((t + shift) % run, t)
        h = self.best()
        if t < ends[h]:
            h = 0  # it does not forget yet
            factors = (1.0, float(age), 1.0, float(t))
        else:
            rest = math.exp(age * _log_decay(ends[h]))
            of_V = rest if h == 0 else (1 - rest) / max(age, 1)
            factors = (rest, 1 - rest, of_V, 1.0)
        A = np.empty(self.shape, np.float32)
        _average(self.W, self.V, self.S[h], *factors, A)
        return A


# ---- target codes (Sec. 3.4 to 3.6) --------------------------------------------------


def hadamard(order: int) -> np.ndarray:
    """Return Sylvester's Hadamard matrix, H_ij = (-1)^popcount(i & j) for i, j from 0.

    The closed form printed in the paper, (-1)^((i-1)(j-1)), is another matrix, of rank 2.
    The paper's recursion is right.

    Parameters
    ----------
    order : int
        A power of two.

    Returns
    -------
    (order, order) int8

    Examples
    --------
    >>> hadamard(4)
    array([[ 1,  1,  1,  1],
           [ 1, -1,  1, -1],
           [ 1,  1, -1, -1],
           [ 1, -1, -1,  1]], dtype=int8)
    """
    check_integer(order, "order")
    if order & (order - 1):
        raise ValueError(f"order={order} is not a power of two; pass 1, 2, 4, 8, ...")
    return _columns(order, np.arange(order))  # the matrix is symmetric


def _columns(order: int, which: np.ndarray) -> np.ndarray:
    """Return columns of the Hadamard matrix as rows, without making the others."""
    common = np.arange(order) & np.asarray(which)[:, None]
    odd = _bit_count(common) & 1
    return 1 - 2 * odd.astype(np.int8)


@compiled
def _walsh_hadamard(A):
    """Multiply A from the left by Sylvester's matrix, in place: log2(n) passes of additions.

    A (n, m) float64, n a power of two.
    """
    half = 1
    while half < len(A):
        for start in range(0, len(A), 2 * half):
            for i in range(start, start + half):
                for j in range(A.shape[1]):
                    first = A[i, j]
                    second = A[i + half, j]
                    A[i, j] = first + second
                    A[i + half, j] = first - second
        half *= 2


def hadamard_product(x: np.ndarray) -> np.ndarray:
    """Return hadamard(len(x)) @ x by the fast Walsh-Hadamard transform, in O(n log n).

    Parameters
    ----------
    x : (n, m) array
        n is a power of two.

    Returns
    -------
    (n, m) float64

    Examples
    --------
    >>> hadamard_product(np.array([[1.0], [2.0]]))
    array([[ 3.],
           [-1.]])
    """
    product = np.array(x, np.float64)
    n = len(product)
    if n & (n - 1):
        raise ValueError(f"x has {n} rows; pass a number of rows that is a power of two.")
    _walsh_hadamard(product)
    return product


def _hamming(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the distances of all rows of A to all rows of B, codes of +1 and -1."""
    packed_a = np.packbits(A > 0, axis=1).T
    packed_b = np.packbits(B > 0, axis=1).T
    distance = np.zeros((len(A), len(B)), np.int64)
    for a, b in zip(packed_a, packed_b, strict=True):
        distance += _bit_count(a[:, None] ^ b)
    return distance


def _bit_count(x: np.ndarray) -> np.ndarray:
    """Return the number of 1 bits of each entry, also with numpy 1.26."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(x)
    bits = np.unpackbits(x[..., None].view(np.uint8), axis=-1)
    return bits.sum(axis=-1, dtype=np.uint8)


def _sign(x: np.ndarray) -> np.ndarray:
    """Return +1 where x is above 0 and -1 elsewhere, as int8."""
    return np.where(x > 0, 1, -1).astype(np.int8)


class Codebook:
    """Target codes: a Hadamard column for every label, aligned to the code length by LSH.

    The order r* is the smallest power of two, from 2 on, that is at least the code length
    and the number of labels (Eq. 10). If r* is not the code length, a column c becomes
    sign(Wlsh^T c) with a Gaussian Wlsh (Eq. 11). When the columns run out, the order doubles:
    new labels get columns of the upper half, with a new Wlsh. If such a label's target is that of
    another label, it is drawn again, as long as there are unused codes. Targets that were given
    never change.

    Parameters
    ----------
    n_bits : int
    kind : {"random", "ordered", "spread"}
    n_labels : int or None
        Number of labels, if it is known.
    seed : int

    Attributes
    ----------
    order : int
        r*.
    n_draws : int
        How many draws "spread" has chosen from, if the number of labels is known. Of many
        labels it compares few draws, because its work is bounded.
    """

    def __init__(self, n_bits: int, kind: str, n_labels: int | None, seed: int):
        _check_kind(kind, "kind")
        self.n_bits = n_bits
        self.kind = kind
        self.n_labels = n_labels
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        least = int(max(n_bits, n_labels or 1))
        self.order = 1 << max(1, (least - 1).bit_length())
        self.grown = False  # whether the columns ran out before
        self.n_draws = 1
        self._clear()
        self._draw(0)
        if kind == "spread" and n_labels and self.order != n_bits:
            self._choose()

    # Targets are only ever added. So `add` returns a codebook that shares the tables with this
    # one, and each of the two knows how many entries are its own. Entries behind them belong to
    # another codebook that was added to, perhaps by a call that failed. The next `add` then
    # works on tables of its own.

    def _clear(self) -> None:
        self.n_targets = 0  # labels, and sets of labels, that have targets
        self.n_columns = 0  # labels that have columns
        self._row_of: dict = {}  # label, or tuple of labels, to its row
        self._columns: list[int] = []  # of the labels, in the order of arrival
        self._given: dict = {}  # target of a label as bytes, to the first row that has it
        n_padded = -(-self.n_bits // TILE) * TILE
        self._table = np.zeros((16, n_padded), np.float32)

    def _branch(self) -> Codebook:
        """Return a codebook that can be added to, while this one is unchanged."""
        n_in_tables = (len(self._row_of), len(self._columns))
        if n_in_tables != (self.n_targets, self.n_columns):
            return self.copy()
        book = copy.copy(self)
        book.rng = copy.deepcopy(self.rng)
        return book

    def copy(self) -> Codebook:
        """Return a codebook that shares no table with this one."""
        return Codebook.from_state(self.n_bits, self.kind, self.seed, self.get_state())

    @property
    def table(self) -> np.ndarray:
        """Return the targets, one in each row, as float32 with zeros up to whole tiles of bits.

        Rows from `n_targets` on belong to nobody, or to a codebook that was added to.
        """
        return self._table

    @property
    def targets(self) -> dict:
        """Return label, or tuple of labels, to its target, (n_bits,) int8 of +1 and -1."""
        keys = list(self._row_of)[: self.n_targets]
        targets = self._table[: len(keys), : self.n_bits].astype(np.int8)
        return dict(zip(keys, targets, strict=True))

    @property
    def columns(self) -> np.ndarray:
        """Return the columns of the Hadamard matrix that the labels have, in order of arrival."""
        return np.array(self._columns[: self.n_columns], np.int64)

    def rows(self, labels: list) -> np.ndarray:
        """Return the rows of `table` that belong to these labels or sets."""
        return np.array([self._row_of[label] for label in labels], np.int64)

    def _new(self, labels: list) -> list:
        """Return those of the labels that have no target, each once."""
        row_of = self._row_of
        n = self.n_targets
        new = [label for label in labels if row_of.get(label, n) >= n]
        return list(dict.fromkeys(new)) if new else new

    def _append(self, label, target: np.ndarray) -> None:
        row = self.n_targets
        if row == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._table[row, : self.n_bits] = target
        self._row_of[label] = row
        self.n_targets += 1
        if not isinstance(label, tuple):
            self._given.setdefault(self._table[row].tobytes(), row)

    def _draw(self, first: int) -> None:
        """Queue the columns from `first` on, and draw the Wlsh that aligns them."""
        self.queue = np.arange(first, self.order)
        if self.kind != "ordered":
            self.queue = self.rng.permutation(self.queue)
        self._set_lsh(np.empty((0, 0)))
        if self.order != self.n_bits:
            self._set_lsh(self.rng.normal(size=(self.order, self.n_bits)))

    def _set_lsh(self, lsh: np.ndarray) -> None:
        self.lsh = lsh
        self._is_used = False  # whether a column was aligned by it
        self._aligned = None  # all columns aligned by it, when a second one is needed

    def _align(self, c: np.ndarray) -> np.ndarray:
        return _sign(c @ self.lsh) if self.lsh.size else c

    def _aligned_column(self, which: int) -> np.ndarray:
        """Return a column, aligned to the code length."""
        if self.lsh.size and self._is_used and self._aligned is None:
            # All columns at once cost little more than some ten of them.
            self._aligned = _sign(hadamard_product(self.lsh))
        if self._aligned is not None:
            return self._aligned[which]
        self._is_used = True
        return self._align(_columns(self.order, np.array([which]))[0])

    def _choose(self) -> None:
        """Keep the best of many draws.

        The best draw has the largest minimum distance between targets. If several have it,
        the sum of squared inner products decides: the smallest is the best.
        """
        n_labels = self.n_labels
        # The number of draws follows from the estimated cost, not from a clock, so that the
        # result can be repeated. It is what an estimated second allows, and at least one.
        size = self.order * self.n_bits
        nanoseconds = 40 * size + 0.5 * n_labels**2 * self.n_bits
        self.n_draws = int(np.clip(1e9 / nanoseconds, 1, DRAWS))
        if self.n_draws == 1:
            self._draw(0)  # as below, but there is nothing to compare
            return
        best_score = None
        for _ in range(self.n_draws):
            self._draw(0)
            targets = _sign(hadamard_product(self.lsh)[self.queue[:n_labels]])
            score = self._score(targets)
            if best_score is None or score > best_score:
                best_score = score
                best_draw = (self.queue, self.lsh)
        self.queue, lsh = best_draw
        self._set_lsh(lsh)

    def _score(self, targets: np.ndarray) -> tuple[int, int]:
        """Return the least distance between targets, and the negative sum of squared products."""
        least = self.n_bits
        crowding = 0
        for start in range(0, len(targets), 1000):  # the memory is bounded
            rows = np.arange(start, min(start + 1000, len(targets)))
            distance = _hamming(targets[rows], targets)
            distance[rows - start, rows] = self.n_bits
            least = min(least, int(distance.min()))
            crowding += int(np.square(self.n_bits - 2 * distance).sum())
        return least, -crowding

    def add(self, labels: list) -> Codebook:
        """Return a codebook that has targets for these labels too; this one is unchanged."""
        new = self._new(labels)
        if not new:
            return self
        book = self._branch()
        for label in new:
            book._assign(label)
        return book

    def _assign(self, label) -> None:
        """Give a label the next column and its target."""
        if not len(self.queue):
            self.order *= 2
            self.grown = True
            self._draw(self.order // 2)
        column = int(self.queue[0])
        target = self._aligned_column(column)
        is_open_stream = not self.n_labels
        if self.kind == "spread" and is_open_stream and self.lsh.size:
            target = self._far_target(target)
        if self.grown and self._is_taken(target):
            target = self._free_target()
        self._columns.append(column)
        self.n_columns += 1
        self.queue = self.queue[1:]
        self._append(label, target)

    def _far_target(self, target: np.ndarray) -> np.ndarray:
        """Return the best of many random codes, measured against the targets already given.

        From 100 targets on there are fewer of them, so that a label costs no more than FAR_PAIRS
        distances. After FAR_LABELS labels the target is the given one.
        """
        n = self.n_targets
        if n == 0 or n > FAR_LABELS:
            return target
        n_candidates = min(DRAWS, FAR_PAIRS // n)
        candidates = self._random_targets(n_candidates)
        distance = _hamming(candidates, self._table[:n, : self.n_bits])
        crowding = np.square(self.n_bits - 2 * distance).sum(axis=1)
        best_first = np.lexsort((crowding, -distance.min(axis=1)))
        return candidates[best_first[0]]

    def _is_taken(self, target: np.ndarray) -> bool:
        """Return whether another label has this target while unused codes exist."""
        room = len(self._given) < 2.0**self.n_bits
        padded = np.zeros(self._table.shape[1], np.float32)
        padded[: self.n_bits] = target
        return room and padded.tobytes() in self._given

    def _random_targets(self, n: int) -> np.ndarray:
        """Return random codes (n, n_bits).

        The signs of a column under a new Wlsh are independent, and +1 or -1 with equal
        probability. So signs are drawn, and no matrices.
        """
        return _sign(self.rng.integers(2, size=(n, self.n_bits)))

    def _free_target(self) -> np.ndarray:
        """Return a random code that no label has, or after some tries the nearest such code."""
        for target in self._random_targets(FREE_TRIES):
            if not self._is_taken(target):
                return target
        bits = self.rng.permutation(self.n_bits)
        for n_flipped in range(1, self.n_bits + 1):
            for which in itertools.combinations(bits, n_flipped):
                code = target.copy()
                code[list(which)] *= -1
                if not self._is_taken(code):
                    return code
        raise AssertionError("there is room, but no code is free")

    def add_sets(self, sets: list[tuple[int, ...]], fuse: str = "columns") -> Codebook:
        """Return a codebook that has targets for these sets of labels 0..L-1 too (Sec. 3.6).

        With "columns" the target is the majority of the labels' columns, aligned. With "codes"
        it is the majority of the labels' targets, which are aligned already. Where nothing is
        aligned, the two are the same.
        """
        new = self._new(sets)
        if not new:
            return self
        book = self._branch()
        for labels in new:
            if fuse == "codes":
                codes = self._table[self.rows(labels), : self.n_bits]
                target = self._majority(codes, labels)
            else:
                which = np.array([self._columns[label] for label in labels])
                columns = _columns(self.order, which)
                target = self._align(self._majority(columns, labels))
            book._append(labels, target)
        return book

    def _majority(self, codes: np.ndarray, labels: tuple[int, ...]) -> np.ndarray:
        """Return the majority of the labels' codes, (k, length) of +1 and -1, in each place.

        Ties are set at random so that the result is as balanced as possible.
        """
        votes = codes.sum(axis=0, dtype=np.int64)
        rng = np.random.default_rng([self.seed, *labels])
        tied = rng.permutation(np.flatnonzero(votes == 0))
        missing = len(votes) // 2 - np.count_nonzero(votes > 0)
        n_plus = np.clip(missing, 0, len(tied))
        votes[tied[:n_plus]] = 1
        return _sign(votes)

    def get_state(self) -> dict:
        """Return everything that `from_state` needs, as arrays, numbers and JSON texts."""
        targets = self.targets
        return {
            "order": self.order,
            "grown": self.grown,
            "n_draws": self.n_draws,
            "columns": self.columns,
            "queue": self.queue,
            "lsh": self.lsh,
            "rng": json.dumps(self.rng.bit_generator.state),
            "n_labels": self.n_labels or 0,
            "labels": json.dumps(list(targets)),
            "targets": np.array(list(targets.values()), np.int8).reshape(-1, self.n_bits),
        }

    @staticmethod
    def forms(n_bits: int) -> dict[str, Form]:
        """Return the forms of what `get_state` returns."""
        return {
            "order": Form("int64", least=2),
            "grown": Form("bool"),
            "n_draws": COUNT,
            "columns": Form("int64", ("columns",), least=0),
            "queue": Form("int64", ("queue",), least=0),
            "lsh": Form("float64", ("lsh", "lsh_bits")),
            "rng": Form("U"),
            "n_labels": COUNT,
            "labels": Form("U"),
            "targets": Form("int8", ("targets", n_bits), -1, 1),
        }

    @staticmethod
    def check_state(state: dict, n_bits: int, text: bool, n_columns: int) -> None:
        """Check what the forms of a saved codebook do not tell.

        The labels are texts, numbers, or with `n_columns` the columns of a 0/1 matrix.
        """
        order = state["order"]
        if order < n_bits or order & (order - 1):
            raise ValueError(f"order {order} is no power of two from {n_bits} up")
        wanted = (0, 0) if order == n_bits else (order, n_bits)
        if state["lsh"].shape != wanted:
            raise ValueError(f"lsh has shape {state['lsh'].shape}, not {wanted}")
        columns = np.concatenate([state["columns"], state["queue"]])
        if not len(np.unique(columns)) == len(columns) == order > columns.max():
            raise ValueError(f"columns and queue are not the {order} of the matrix")
        if not state["targets"].all():
            raise ValueError("targets has values other than 1 and -1")
        keys = json.loads(state["labels"])
        single = [key for key in keys if not isinstance(key, list)]
        sets = [tuple(key) for key in keys if isinstance(key, list)]
        if n_columns:
            is_right = single == list(range(len(single))) and len(single) == n_columns
            is_right &= all(labels and {*labels} <= {*single} for labels in sets)
        else:
            is_right = {type(key) for key in keys} <= {str if text else int}
        is_right &= len({*single, *sets}) == len(keys) == len(state["targets"])
        if not is_right or len(single) != len(state["columns"]):
            raise ValueError("labels do not fit the targets, the columns or each other")
        np.random.PCG64().state = json.loads(state["rng"])  # raises if it is none

    @classmethod
    def from_state(cls, n_bits: int, kind: str, seed: int, state: dict) -> Codebook:
        """Return the codebook whose `get_state` gave this state, without drawing anything."""
        book = cls.__new__(cls)
        book.n_bits = n_bits
        book.kind = kind
        book.seed = seed
        book.n_labels = state["n_labels"] or None
        book.order = state["order"]
        book.grown = state["grown"]
        book.n_draws = state["n_draws"]
        book.queue = state["queue"]
        book._set_lsh(state["lsh"])
        book.rng = np.random.default_rng(seed)
        book.rng.bit_generator.state = json.loads(state["rng"])
        book.set_targets(state["labels"], state["targets"], state["columns"])
        return book

    def set_targets(self, labels: str, targets: np.ndarray, columns: np.ndarray) -> None:
        """Replace all targets; `labels` is a JSON list, in which a set of labels is a list."""
        self._clear()
        self._columns = columns.tolist()
        self.n_columns = len(columns)
        for key, target in zip(json.loads(labels), targets, strict=True):
            self._append(tuple(key) if isinstance(key, list) else key, target)


# ---- input checks --------------------------------------------------------------------


def check_integer(value, name: str, least: int = 1, optional: bool = False) -> None:
    """Check that a parameter is a whole number of at least `least`, or None if optional."""
    if optional and value is None:
        return
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (int, np.integer)):
        need = f"pass an int of at least {least}"
        raise TypeError(f"{name}={value!r} is not a whole number; {need}.")
    if value < least:
        raise ValueError(f"{name}={value} is too small; pass an int of at least {least}.")


def check_real(value, name: str, least: float = 1e-30, most: float = 1e30) -> None:
    """Check that a parameter is a number from `least` to `most`.

    The defaults admit the positive numbers that float32 can multiply safely.
    """
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}={value!r} is not a number; pass a float.")
    if not least <= value <= most:
        need = f"pass a number from {least:g} to {most:g}"
        raise ValueError(f"{name}={value} is out of range; {need}.")


def _check_kind(value, name: str) -> None:
    """Check that a parameter is the name of a kind of codebook."""
    if value not in ("random", "ordered", "spread"):
        way = 'pass "random", "ordered" or "spread"'
        raise ValueError(f"{name}={value!r} is unknown; {way}.")


def check_bool(value, name: str) -> None:
    """Check that a parameter is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {value!r}.")


def check_features(
    X, n_features: int | None = None, name: str = "X", owner: str = "the model"
) -> np.ndarray:
    """Return X as a finite (n, d) float32 array in C order, not copied if it is one.

    `n_features` is what `owner` was fitted on. Some of the words of the errors are those that
    scikit-learn's own checks look for.

    kernels.py has the same function, because each file works alone.
    """
    if hasattr(X, "toarray"):
        need = f"dense features are needed: pass {name}.toarray()"
        raise TypeError(f"{name} is a sparse {type(X).__name__}; {need}.")
    given = np.asarray(X)
    if given.dtype == object:
        given = _as_numbers(given, name)
    if given.dtype.kind == "c":
        reason = f"{name} has dtype {given.dtype}, but Complex data not supported"
        raise ValueError(f"{reason}; pass {name}.real or abs({name}).")
    if given.dtype.kind not in "buif":
        need = f"numbers are needed: pass {name}.astype(np.float32) if they are numbers"
        raise TypeError(f"{name} has dtype {given.dtype}; {need}.")
    if given.ndim != 2:
        way = "x.reshape(1, -1) for one sample"
        if given.ndim > 2:
            way = f"{name}.reshape(len({name}), -1) for images"
        need = "a row of features for each sample is needed"
        raise ValueError(
            f"{name} has shape {given.shape}, but {need}. Reshape your data: pass {way}."
        )
    if given.size == 0:
        what = "feature" if given.shape[1] == 0 else "sample"
        has = f"{name} has 0 {what}(s) (shape={given.shape})"
        raise ValueError(f"{has} while a minimum of 1 is required; pass at least one.")
    if n_features is not None and given.shape[1] != n_features:
        need = f"but {owner} is expecting {n_features} features as input"
        way = "pass the same features as before"
        raise ValueError(f"{name} has {given.shape[1]} features, {need}; {way}.")
    X = given
    if given.dtype != np.float32 or not given.flags.c_contiguous:
        # Values that float32 cannot hold become infinite, and are found below.
        with np.errstate(over="ignore"):
            X = np.ascontiguousarray(given, dtype=np.float32)
    # A sum is the fastest test for NaN and infinity. It may overflow for large values, so a
    # second test decides. For a row or a few, the sum of squares takes a fifth of the time,
    # because vdot gives no warnings that have to be turned off. BLAS would take several
    # threads for more values, and they slow down compiled loops that run after it.
    if X.size <= 8192:
        is_suspect = not math.isfinite(np.vdot(X, X))
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            is_suspect = not math.isfinite(np.einsum("ij->", X))
    if is_suspect and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        need = "NaN, inf and numbers beyond float32 are refused: drop, fill or scale them"
        raise ValueError(f"{name}[{row}, {column}] is {given[row, column]}; {need}.")
    return X


def _as_numbers(given: np.ndarray, name: str) -> np.ndarray:
    """Return an array of objects as float64 if all are numbers, as in some DataFrames."""
    if any(value is None or isinstance(value, str) for value in given.flat):
        return given
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        need = "pass numbers only"
        raise TypeError(f"{name} has dtype object ({error}); {need}.") from None


def column_names(X) -> np.ndarray | None:
    """Return the names of the columns of a DataFrame, if all are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(list(columns))


def check_names(X, known: np.ndarray | None) -> None:
    """Check that the columns of a DataFrame have the known names, in their order."""
    names = column_names(X)
    if names is None or known is None or np.array_equal(names, known):
        return
    way = "pass X[model.feature_names_in_]"
    raise ValueError(
        f"the columns of X are {names.tolist()}, "
        f"but they were {known.tolist()} when learning began; {way}."
    )


def check_labels(y, n_samples: int, name: str = "y") -> np.ndarray:
    """Return labels as (n,) int64 or strings, or as (n, L) uint8 with a 1 in every row."""
    try:
        y = np.asarray(y)
    except ValueError as error:  # rows of different lengths
        way = "pass one label per sample, or a 0/1 matrix with a column for each label"
        raise ValueError(f"{name} cannot become an array ({error}); {way}.") from None
    if y.dtype == object:
        # A column of a DataFrame may have strings or integers as objects.
        kinds = {type(label) for label in y.flat}
        if kinds in ({str}, {int}):
            y = np.array(y.tolist())
    is_text = y.dtype.kind == "U"
    if y.dtype.kind not in "buiU" or (is_text and y.ndim == 2):
        need = "integers, strings or a 0/1 matrix are needed: pass y.astype(int) for numbers"
        raise TypeError(f"{name} has dtype {y.dtype} and shape {y.shape}; {need}.")
    if y.ndim not in (1, 2) or len(y) != n_samples:
        need = "pass a label or a row of 0/1 for each sample"
        raise ValueError(f"{name} has shape {y.shape} for {n_samples} samples; {need}.")
    if y.ndim == 2:
        return _check_label_matrix(y, name)
    if is_text:
        return y
    if y.dtype == np.uint64 and y.max() >= 1 << 63:
        need = "numbers below 2**63 are needed: pass y.astype(str)"
        raise ValueError(f"{name} holds {y.max()}; {need}.")
    return y.astype(np.int64)


def _check_label_matrix(y: np.ndarray, name: str) -> np.ndarray:
    if y.shape[1] < 2:
        need = "2 or more columns of 0/1 are needed: pass y.ravel() for single labels"
        raise ValueError(f"{name} has shape {y.shape}; {need}.")
    wrong = np.argwhere((y != 0) & (y != 1))
    if len(wrong):
        row, column = wrong[0]
        need = "0 and 1 are needed: pass y > 0"
        raise ValueError(f"{name}[{row}, {column}] is {y[row, column]}; {need}.")
    has_label = y.any(axis=1)
    if not has_label.all():
        need = "at least one 1 per row is needed: drop such samples"
        raise ValueError(f"{name}[{has_label.argmin()}] has no label; {need}.")
    return y.astype(np.uint8)


def _label_form(is_text: bool, n_columns: int) -> str:
    """Describe a form of labels for an error message."""
    if n_columns:
        return f"{n_columns} columns of 0/1"
    return "strings" if is_text else "integers"


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sorted distinct rows of y, their first indices, and each row's position."""
    if y.dtype.kind != "i" or int(y.max()) - int(y.min()) >= len(y):
        rows, first, index = np.unique(y, return_index=True, return_inverse=True, axis=0)
        return rows, first, index.ravel()
    # Integers that are close together, such as 0..9, need a table and no sorting. If a place
    # is written several times, the last value remains. So writing in reverse order keeps the
    # first occurrence.
    place = y - y.min()
    first = np.full(place.max() + 1, len(y))
    first[place[::-1]] = np.arange(len(y))[::-1]
    occurs = first < len(y)
    rows = np.flatnonzero(occurs) + y.min()
    index = (np.cumsum(occurs) - 1)[place]
    return rows, first[occurs], index


# ---- feature maps and parameters -----------------------------------------------------


def _named_maps(feature_map) -> dict[str, object]:
    """Return the feature maps by the names under which their parameters are known."""
    if isinstance(feature_map, (list, tuple)):
        return {f"feature_map__{i}": part for i, part in enumerate(feature_map)}
    return {} if feature_map is None else {"feature_map": feature_map}


def _attributes(part) -> list:
    """Return the objects that the attributes of a map, and of maps within it, are now."""
    objects = list(getattr(part, "__dict__", {}).values())
    # `Concat` of kernels.py has a list of maps.
    for inner in _named_maps(getattr(part, "maps", None)).values():
        objects += _attributes(inner)
    return objects


def _check_methods(part, *names: str) -> None:
    if isinstance(part, type):
        way = f"pass an instance, such as {part.__name__}()"
        raise TypeError(f"feature_map {part!r} is a class; {way}.")
    missing = [name for name in names if not hasattr(part, name)]
    if missing:
        lacks = f"lacks {' and '.join(missing)}"
        raise TypeError(f"feature_map {part!r} {lacks}; pass a map such as RBF().")


def _mapped(part, X: np.ndarray) -> np.ndarray:
    """Return the features that a map makes of X; an error names the map, not X."""
    Z = part.transform(X)
    try:
        Z = check_features(Z, name="its output")
    except (TypeError, ValueError) as error:
        reason = f"feature map {part!r} returned unusable features: {error}"
        raise type(error)(reason) from None
    if len(Z) != len(X):
        need = "pass a map that returns one row per sample"
        raise ValueError(f"feature map {part!r} made {len(Z)} rows of {len(X)}; {need}.")
    return Z


def _describe(value) -> str:
    """Return a text that is equal for equal parameters."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    if hasattr(value, "get_params"):
        params = value.get_params().items()
        return f"{type(value).__name__}({', '.join(f'{k}={_describe(v)}' for k, v in params)})"
    if isinstance(value, (str, int, float, np.generic, type(None))):
        return repr(value)
    return type(value).__name__


def _join(parts: list[tuple]) -> tuple:
    """Return one pair of features and labels (or None) from several."""
    features, labels = zip(*parts, strict=True)
    y = None if labels[0] is None else np.concatenate(labels)
    return np.concatenate(features), y


def _are_same(a: list, b: list) -> bool:
    """Return whether two lists hold the same objects."""
    return len(a) == len(b) and all(map(operator.is_, a, b))


# ---- what all methods share ----------------------------------------------------------


class OnlineHasher:
    """Base class of all methods: parameters, stream, feature map, codes and files.

    A method provides `_start(Z)`, `_learn(Z, y)` and `_decide(Z)`. `_start` gets the mapped
    samples of the warm-up. `_saved` has the names of the attributes that are learned.

    The attributes of a model are one dictionary, and one dictionary is one state. `partial_fit`
    works on a shallow copy, whose dictionary takes the place of the model's at the end. So
    `_learn` assigns new arrays and never writes into old ones, unless `_own` has copied them. A
    failed call changes nothing, and another thread that encodes at the same time uses one whole
    state.
    """

    needs_labels = True
    _update_size = 1  # samples of one update; fewer are kept until the next call
    _least_warmup = 1  # samples that `_start` needs
    _saved = (
        "n_features_in_",
        "feature_names_in_",
        "n_seen_",
        "_seed",
        "_classes",
        "_text_labels",
        "_n_columns",
        "_n_warmup",
        "_widths",
        "_waiting",
    )
    _params: tuple[str, ...] = ()  # names of the parameters

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # Looked up once, because it takes longer than to learn from a sample.
        cls._params = tuple(inspect.signature(cls).parameters)

    # Parameters, by the conventions of scikit-learn.

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters; with `deep` also those of the maps (feature_map__n_anchors)."""
        params = {name: getattr(self, name) for name in self._params}
        if deep:
            for prefix, part in _named_maps(self.feature_map).items():
                if hasattr(part, "get_params"):
                    inner = part.get_params()
                    params |= {f"{prefix}__{name}": inner[name] for name in inner}
        return params

    def set_params(self, **params):
        """Set parameters by the names of `get_params`: all of them, or none on an error."""
        # On a copy, because the map may be set together with parameters of it.
        model = self._shallow_copy()
        own = self.get_params(deep=False)
        vars(model).update({name: params[name] for name in params if name in own})
        known = model.get_params()
        for name in params:
            if name not in known:
                way = f"pass one of {', '.join(known)}"
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; {way}.")
        for prefix, part in _named_maps(model.feature_map).items():
            start = f"{prefix}__"
            names = [name for name in params if name.startswith(start)]
            if names:
                part.set_params(**{name.removeprefix(start): params[name] for name in names})
        self.__dict__ = vars(model)
        return self

    def __repr__(self) -> str:
        params = self.get_params(deep=False).items()
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in params)})"

    def __sklearn_tags__(self):
        # Only scikit-learn calls this, so it is installed.
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        target = TargetTags(required=self.needs_labels, two_d_labels=True, multi_output=True)
        # Codes have a type of their own.
        codes = TransformerTags(preserves_dtype=[])
        return Tags(None, target, codes, input_tags=InputTags())

    def set_output(self, *, transform: str | None = None):
        """Accept None and "default", as scikit-learn's pipelines ask for: codes are arrays."""
        if transform not in (None, "default"):
            way = 'pass "default", and make a DataFrame of what transform returns'
            raise ValueError(f"transform={transform!r} is not supported; {way}.")
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_map_")

    def _check_params(self) -> None:
        check_integer(self.n_bits, "n_bits")
        check_integer(self.warmup, "warmup", optional=True)
        if isinstance(self.random_state, np.random.RandomState):
            way = "pass an int, None or a numpy.random.Generator"
            raise TypeError(f"random_state={self.random_state!r} is not supported; {way}.")
        if not isinstance(self.random_state, np.random.Generator):
            check_integer(self.random_state, "random_state", least=0, optional=True)
        for part in _named_maps(self.feature_map).values():
            _check_methods(part, "fit", "transform")

    def _settings(self) -> dict[str, str]:
        """Return the parameters that must not change while a model learns."""
        params = self.get_params(deep=False)
        params.pop("n_threads", None)  # results do not depend on it
        return {name: _describe(value) for name, value in params.items()}

    def _parameter_objects(self) -> list:
        """Return the objects that the parameters, and those of the maps, are now."""
        objects = [getattr(self, name) for name in self._params]
        for part in _named_maps(self.feature_map).values():
            objects += [part, *_attributes(part)]
        return objects

    def _check_unchanged(self) -> None:
        # Nearly always they are the same objects as in the last call.
        objects = self._parameter_objects()
        if _are_same(objects, self._checked):
            return
        self._check_params()
        for name, now in self._settings().items():
            before = self._begun[name]
            if now != before:
                way = "set it back, or start again with fit"
                raise ValueError(
                    f"{name} was {before} when learning began and is {now} now; {way}."
                )
        self._checked = objects

    # States.

    def _shallow_copy(self):
        """Return a model with a dictionary of its own, which shares everything that is in it."""
        model = object.__new__(type(self))
        model.__dict__ = vars(self).copy()
        return model

    def _snapshot(self):
        """Return a model that stays in the present state, to encode with."""
        model = object.__new__(type(self))
        model.__dict__ = vars(self)
        model._check_fitted()
        return model

    def __getstate__(self) -> dict:
        """Return the attributes for `copy` and `pickle`."""
        return vars(self).copy()

    # The stream.

    def partial_fit(self, X, y=None, classes=None):
        """Learn from these samples, in order, in one pass.

        Parameters
        ----------
        X : (n, d) array
        y : (n,) integers or strings, or (n, L) 0/1 with at least one 1 per row
        classes : (n_classes,) labels, optional
            All labels of the stream, if they are known at the first call. Others may still
            come.
        """
        fresh = not hasattr(self, "n_seen_")
        return self._take(X, y, classes, fresh=fresh, last=False)

    def fit(self, X, y=None):
        """Forget everything, then learn from these samples in one pass.

        An incomplete batch or warm-up at the end is learned from too.
        """
        return self._take(X, y, None, fresh=True, last=True)

    def fit_transform(self, X, y=None) -> np.ndarray:
        """Call `fit`, then `transform` on the same samples."""
        return self.fit(X, y).transform(X)

    def _take(self, X, y, classes, fresh: bool, last: bool):
        """Check the input, add the samples that wait, fit the map, and learn."""
        if fresh:
            self._check_params()
        else:
            self._check_unchanged()
        if fresh:
            names = column_names(X)
        else:
            check_names(X, vars(self).get("feature_names_in_"))
        n_features = None if fresh else self.n_features_in_
        X = check_features(X, n_features, owner=type(self).__name__)
        model = self._shallow_copy()
        if fresh:
            model._forget()
            if names is not None:
                model.feature_names_in_ = names
            rng = np.random.default_rng(copy.deepcopy(self.random_state))
            model._seed = int(rng.integers(2**63))
            model.n_features_in_ = X.shape[1]
        y = model._check_y(y, classes, len(X))
        if last and y is not None and y.ndim == 1:
            model._classes = _distinct(y)[0]
        model.n_seen_ += len(X)
        started = hasattr(model, "feature_map_")
        needed = model._update_size if started else model._warmup_size()
        if sum(len(part) for part, _ in model._waiting) + len(X) < needed and not last:
            model._keep(X, y)
        else:
            X, y = model._gather(X, y)
            if not started:
                model._fit_map(X[: model._n_warmup])
            n_learned = len(X) if last else len(X) - len(X) % model._update_size
            if n_learned < len(X):
                model._keep(X[n_learned:], None if y is None else y[n_learned:])
                X = X[:n_learned]
                y = None if y is None else y[:n_learned]
            if started and len(X) <= min(FEW_ROWS, BLOCK_ROWS):
                self._learn_few(model, X, y)
                return self
            if started:
                model._own()
            model._learn_in_blocks(X, y)
        if fresh and isinstance(self.random_state, np.random.Generator):
            # The seed is taken from the generator only if all went well.
            self.random_state.integers(2**63)
        self.__dict__ = vars(model)
        return self

    def _forget(self) -> None:
        for name in (*self._saved, "feature_map_"):
            vars(self).pop(name, None)
        self._begun = self._settings()
        self._checked = self._parameter_objects()
        self._waiting = ()
        self.n_seen_ = 0

    def _keep(self, X: np.ndarray, y: np.ndarray | None) -> None:
        """Keep samples until there are enough for the warm-up, or for an update."""
        waiting = list(self._waiting)
        joined = [(X.copy(), None if y is None else y.copy())]
        # A chunk is joined with the last one, unless that is larger. So there are few chunks, and
        # a sample is copied few times, also if the samples come one by one.
        while waiting and len(waiting[-1][0]) <= sum(len(part) for part, _ in joined):
            joined.insert(0, waiting.pop())
        self._waiting = (*waiting, _join(joined))

    def _gather(self, X: np.ndarray, y: np.ndarray | None) -> tuple:
        """Return all samples that wait and these, and let none wait."""
        if not self._waiting:
            return X, y
        parts = [*self._waiting, (X, y)]
        self._waiting = ()
        return _join(parts)

    def _check_y(self, y, classes, n_samples: int) -> np.ndarray | None:
        if not self.needs_labels:
            return None
        if y is None:
            need = f"{type(self).__name__} requires y to be passed"
            way = "pass a label for each sample"
            raise ValueError(f"{need}, but the target y is None; {way}.")
        y = check_labels(y, n_samples)
        is_text = y.dtype.kind == "U"
        n_columns = y.shape[1] if y.ndim == 2 else 0
        if not hasattr(self, "_n_columns"):
            self._text_labels = is_text
            self._n_columns = n_columns
        if (is_text, n_columns) != (self._text_labels, self._n_columns):
            form = _label_form(is_text, n_columns)
            before = _label_form(self._text_labels, self._n_columns)
            way = "pass labels of that form"
            raise ValueError(f"y holds {form}, but learning began with {before}; {way}.")
        if classes is not None:
            self._check_classes(classes, y)
        return y

    def _check_classes(self, classes, y: np.ndarray) -> None:
        """Check `classes`, and keep them at the first call."""
        if y.ndim == 2:
            reason = "classes are given, but the columns of y are the classes"
            raise ValueError(f"{reason}; leave classes out.")
        if np.ndim(classes) != 1 or np.size(classes) == 0:
            shape = np.shape(classes)
            raise ValueError(f"classes has shape {shape}; pass a 1-D array of labels.")
        classes = np.unique(check_labels(classes, len(classes), "classes"))
        if (classes.dtype.kind == "U") != (y.dtype.kind == "U"):
            reason = f"classes has dtype {classes.dtype}, but y has {y.dtype}"
            raise ValueError(f"{reason}; pass both in one form.")
        if self.n_seen_ == 0:
            self._classes = classes
        elif not np.array_equal(classes, getattr(self, "_classes", None)):
            reason = f"classes {classes.tolist()} are not those of the first call"
            raise ValueError(f"{reason}; pass the same, or none.")

    def _warmup_size(self) -> int:
        """Return the number of samples that the feature map is fitted on.

        A warm-up that began goes on, also from a file, where it may have another length.
        """
        if not hasattr(self, "_n_warmup"):
            maps = _named_maps(self.feature_map).values()
            self._n_warmup = max(self._map_warmup(maps), self._least_warmup)
        return self._n_warmup

    def _fit_map(self, X: np.ndarray) -> None:
        """Fit the feature map on the samples of the warm-up, then start the method."""
        feature_map = copy.deepcopy(self.feature_map)
        Z = X
        widths = []
        for part in _named_maps(feature_map).values():
            part.fit(Z)
            Z = _mapped(part, Z)
            widths.append(Z.shape[1])
        self.feature_map_ = feature_map
        self._widths = np.array(widths, np.int64)
        self._start(Z)

    def _map_warmup(self, maps) -> int:
        """Return the number of samples that the feature maps are fitted on."""
        if not maps:
            return 1
        if self.warmup is not None:
            return self.warmup
        for part in maps:
            if not hasattr(part, "n_warmup"):
                way = "pass the number of samples it needs as warmup"
                raise ValueError(f"warmup=None, but {part!r} has no n_warmup; {way}.")
        return max(part.n_warmup for part in maps)

    def _own(self) -> None:
        """Copy what `_learn` writes into, if a method has such arrays."""

    def _learn_few(self, model, X: np.ndarray, y: np.ndarray | None) -> None:
        """Learn few samples; `model` is a shallow copy for which all else is done."""
        model._learn(model._features(X), y)
        self.__dict__ = vars(model)

    def _learn_in_blocks(self, X: np.ndarray, y: np.ndarray | None) -> None:
        """Learn from complete updates, in blocks that bound the memory for features or copies."""
        n_rows = max(len(X), 1)
        if _named_maps(self.feature_map) or not X.flags.writeable:
            n_rows = max(1, BLOCK_ROWS // self._update_size) * self._update_size
        for start in range(0, len(X), n_rows):
            rows = slice(start, start + n_rows)
            self._learn(self._features(X[rows]), None if y is None else y[rows])

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Return what the fitted feature maps make of X."""
        Z = X
        maps = _named_maps(self.feature_map_).values()
        for part, width in zip(maps, self._widths.tolist(), strict=True):
            Z = _mapped(part, Z)
            if width not in (0, Z.shape[1]):
                need = f"but {width} when it was fitted; pass a map of constant width"
                raise ValueError(f"feature map {part!r} made {Z.shape[1]} features, {need}.")
        return Z

    def _check_X(self, X) -> np.ndarray:
        """Return the features of samples to encode."""
        check_names(X, vars(self).get("feature_names_in_"))
        return check_features(X, self.n_features_in_, owner=type(self).__name__)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_seen_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted; call fit or partial_fit first.")
        if not hasattr(self, "feature_map_"):
            seen = f"seen {self.n_seen_} of {self._n_warmup} warm-up samples"
            raise NotFittedError(f"{seen}; pass more to partial_fit.")

    # Codes.

    def decision_function(self, X) -> np.ndarray:
        """Return the (n, n_bits) float32 values whose signs are the codes."""
        model = self._snapshot()
        X = model._check_X(X)
        return model._decide(model._features(X))

    def transform(self, X) -> np.ndarray:
        """Return packed codes (n, ceil(n_bits / 8)) uint8 of the rows of X.

        Bit k is 1 where hash function k is above 0 (Eq. 1).
        """
        model = self._snapshot()
        X = model._check_X(X)
        if len(X) <= BLOCK_ROWS:
            return model._packed(X)
        blocks = [X[i : i + BLOCK_ROWS] for i in range(0, len(X), BLOCK_ROWS)]
        return np.concatenate([model._packed(block) for block in blocks])

    def _packed(self, X: np.ndarray) -> np.ndarray:
        values = self._decide(self._features(X))
        return np.packbits(values > 0, axis=1, bitorder="little")

    def encode(self, X) -> np.ndarray:
        """Call `transform`; another name for it."""
        return self.transform(X)

    # Files.

    def _state(self) -> dict:
        """Return everything that was learned, as arrays and plain values."""
        state = {name: vars(self)[name] for name in self._saved if name in vars(self)}
        waiting = state.pop("_waiting")
        if waiting:
            state["_X"], state["_y"] = _join(waiting)
        return {name: value for name, value in state.items() if value is not None}

    def _restore(self, state: dict) -> None:
        X = state.pop("_X", ())
        y = state.pop("_y", None)
        self._waiting = ((X, y),) if len(X) else ()
        vars(self).update(state)

    def save(self, path) -> None:
        """Write the model to an .npz file, atomically and without pickle.

        A model that was loaded continues to learn where it stopped.
        """
        if not hasattr(self, "n_seen_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted; there is nothing to save.")
        model = copy.copy(self)  # one whole state, also while another thread learns
        model._check_unchanged()
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            way = "create it, or pass another path"
            raise FileNotFoundError(f"the folder {folder} of {path} does not exist; {way}.")
        arrays = model._arrays()
        try:
            # What is written can be read again, because `load` makes the same checks.
            model._check_state(_model_part(arrays), hasattr(model, "feature_map_"))
        except ValueError as error:
            reason = f"this {type(self).__name__} cannot be saved ({error})"
            way = "learn from features scaled to about 1, or beyond the warm-up"
            raise ValueError(f"{reason}; {way}.") from None
        temporary = f"{os.fspath(path)}.{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "wb") as file:
                np.savez(file, **arrays)
            os.replace(temporary, path)
        except OSError as error:
            reason = f"could not be written and is as before ({error.strerror or error})"
            way = "free space there, or pass another path"
            raise OSError(error.errno, f"{path} {reason}; {way}.") from error
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)

    def _arrays(self) -> dict:
        """Return the contents of a saved file."""
        params = self.get_params(deep=False)
        params["feature_map"] = None  # saved below; a file never names code to import
        if isinstance(self.random_state, np.random.Generator):
            params["random_state"] = None  # the seed drawn from it is saved
        started = hasattr(self, "feature_map_")
        maps = _named_maps(self.feature_map_ if started else self.feature_map)
        head = {"params": params, "maps": list(maps), "started": started}
        arrays = {
            "format": _file_format(type(self), SAVED_VERSION),
            "head": json.dumps(head, default=lambda x: x.item()),
        }
        arrays |= {f"model/{name}": value for name, value in self._state().items()}
        for prefix, part in maps.items():
            _check_methods(part, "get_state", "set_state")
            state = part.get_state()
            arrays |= {f"{prefix}/{name}": value for name, value in state.items()}
        for name, value in arrays.items():
            if np.asarray(value).dtype.hasobject:
                need = "get_state of a map must return arrays: pass another map to save"
                raise TypeError(f"{name} is {value!r}; {need}.")
        return arrays

    @classmethod
    def load(cls, path, feature_map=None):
        """Return a model written by `save`.

        Parameters
        ----------
        path : path of the file
        feature_map : map or list of maps
            If the model had feature maps, new ones of the same kinds. Copies of them are filled
            from the file.
        """
        feature_map = copy.deepcopy(feature_map)
        maps = _named_maps(feature_map)
        for part in maps.values():
            _check_methods(part, "get_state", "set_state")
        with _reading(path, cls):
            arrays = _read_arrays(path)
            head = _read_head(arrays)
            version = _file_version(cls, arrays["format"].item())
        if list(maps) != head["maps"]:
            saved = ", ".join(head["maps"]) or "no feature map"
            given = ", ".join(maps) or "no feature map"
            way = "pass a new map, such as load(path, feature_map=RBF())"
            if "feature_map" not in head["maps"]:
                n = len(head["maps"])
                way = f"pass a list of {n} new maps" if n else "leave feature_map out"
            raise ValueError(f"{path} was saved with {saved}, not with {given}; {way}.")
        with _reading(path, cls):
            state = _model_part(arrays)
            if version == 1:
                _update_from_version_1(cls, head, state)
            if version <= 2:
                _update_from_version_2(state)
            model = cls(**head["params"] | {"feature_map": feature_map})
            model._check_params()
            if version == 1 and head["started"]:
                model._rebuild(state)
            model._check_state(state, head["started"])
        for prefix, part in maps.items():
            part.set_state(_part(arrays, prefix))
        if head["started"]:
            model.feature_map_ = copy.deepcopy(feature_map)
        model._restore(state)
        with _reading(path, cls):
            model._check_maps(head["started"])
        model._begun = model._settings()
        model._checked = model._parameter_objects()
        return model

    def _rebuild(self, state: dict) -> None:
        """Add to the state of a file of version 1 what it lacks, if a method needs it."""

    # What a file holds is checked before any of it is used, because compiled loops do not check
    # their indices.

    def _check_state(self, state: dict, started: bool) -> None:
        """Check names, types, shapes and ranges of all that a file holds of a model."""
        n_maps = len(_named_maps(self.feature_map))
        common = {
            "n_features_in_": POSITIVE,
            "n_seen_": COUNT,
            "_seed": Form("int64", least=0),
            "_n_warmup": replace(POSITIVE, optional=started),
        }
        if self.needs_labels:
            common |= {"_text_labels": Form("bool"), "_n_columns": COUNT}
        if started:
            common["_widths"] = Form("int64", (n_maps,), least=0)
        check_forms({name: state[name] for name in common if name in state}, common)
        # These say what the others have to be.
        n_features = state["n_features_in_"]
        n_columns = state.get("_n_columns", 0)
        if n_columns and state["_text_labels"]:
            raise ValueError(f"its labels are strings and {n_columns} columns of 0/1")
        label = Form("U" if state.get("_text_labels") else "int64", ("n",))
        labels = Form("uint8", ("n", n_columns), 0, 1) if n_columns else label
        forms = {
            "feature_names_in_": Form("U", (n_features,), optional=True),
            "_classes": label.like("_classes", optional=True),
            "_X": Form("float32", ("_X", n_features), optional=True),
        }
        if self.needs_labels and "_X" in state:
            forms["_y"] = labels.like("_X")
        if started:
            m = int(state["_widths"][-1]) if n_maps else n_features
            forms |= self._forms(m, labels)
        else:
            self._check_size(state)
        check_forms({name: state[name] for name in state if name not in common}, forms)
        if "_y" in state:
            check_labels(state["_y"], len(state["_y"]), "_y")

    def _check_size(self, state: dict) -> None:
        """Check that a model of a file would not ask for gigabytes when it starts.

        One that has started has arrays of these sizes in its file.
        """
        if self.n_bits > MOST_BITS:
            raise ValueError(f"n_bits={self.n_bits} is more than {MOST_BITS}")

    def _forms(self, m: int, labels: Form) -> dict[str, Form]:
        """Return the form of everything that was learned from m features, as it is saved.

        `labels` is the form of labels.
        """
        return {}

    def _check_maps(self, started: bool) -> None:
        """Check that the maps of a file are fitted, or will be, as the file says.

        A map that does not tell its numbers of features is checked when it is used.
        """
        maps = _named_maps(self.feature_map).values()
        if not started:
            needed = max(self._map_warmup(maps), self._least_warmup)
            if self._n_warmup < needed:
                raise ValueError(f"_n_warmup is {self._n_warmup}, but needs {needed}")
            return
        n_features = self.n_features_in_
        for part, width in zip(maps, self._widths.tolist(), strict=True):
            tells = hasattr(type(part), "n_features_in_")
            if tells and not hasattr(part, "n_features_in_"):
                raise ValueError(f"{part!r} is not fitted")
            n_in = getattr(part, "n_features_in_", n_features)
            n_out = getattr(part, "n_features_out_", width)
            # In files of version 1 some widths are 0, unknown.
            if n_features not in (0, n_in) or width not in (0, n_out):
                made = f"{part!r} makes {n_out} features of {n_in}"
                raise ValueError(f"{made}, not {width} of {n_features}")
            n_features = width


@dataclass(frozen=True)
class Form:
    """What an entry of a saved model has to be.

    A length in `shape` is a number, or a name that stands for one number in all entries. Numbers
    that are not finite are refused, unless `most` is infinite.
    """

    dtype: str  # "U" for texts of any length
    shape: tuple = ()
    least: float = -sys.float_info.max
    most: float = sys.float_info.max
    optional: bool = False

    def like(self, length: int | str, optional: bool = False) -> Form:
        """Return the form of so many rows of this kind."""
        return replace(self, shape=(length, *self.shape[1:]), optional=optional)


# There is room to count on.
COUNT = Form("int64", least=0, most=2**62)
POSITIVE = Form("int64", least=1)


def check_forms(state: dict, forms: dict[str, Form]) -> None:
    """Check that a state has all entries of these forms, and no others."""
    unknown = [name for name in state if name not in forms]
    if unknown:
        raise ValueError(f"it holds {unknown[0]}, which is unknown")
    sizes: dict = {}
    for name, form in forms.items():
        if name in state:
            _check_form(name, np.asarray(state[name]), form, sizes)
        elif not form.optional:
            raise ValueError(f"it lacks {name}")


def _check_form(name: str, a: np.ndarray, form: Form, sizes: dict) -> None:
    """Check an array; `sizes` has the numbers that names of lengths stand for."""
    kind = "U" if a.dtype.kind == "U" else a.dtype
    if kind != form.dtype:
        raise ValueError(f"{name} has dtype {a.dtype}, not {form.dtype}")
    wanted = form.shape
    if len(wanted) == a.ndim:
        for length, n in zip(wanted, a.shape, strict=True):
            if isinstance(length, str):
                sizes.setdefault(length, n)
        wanted = tuple(sizes.get(length, length) for length in wanted)
    if a.shape != wanted:
        raise ValueError(f"{name} has shape {a.shape}, not {wanted}")
    if a.size and a.dtype.kind in "iuf":
        low = a.min().item()
        high = a.max().item()
        # Comparisons with NaN are false.
        if not (form.least <= low and high <= form.most):
            span = f"from {form.least:g} to {form.most:g}"
            raise ValueError(f"{name} has values from {low} to {high}, not {span}")


def _file_format(cls: type, version: int) -> str:
    return f"hmoh model {version} {cls.__name__}"


def _file_version(cls: type, written: str) -> int:
    """Return the version of a file from its mark; raise if another class wrote it."""
    for version in range(1, SAVED_VERSION + 1):
        if written == _file_format(cls, version):
            return version
    wanted = _file_format(cls, SAVED_VERSION)
    raise ValueError(f"it is marked {written!r}, not {wanted!r}")


@contextlib.contextmanager
def _reading(path, cls: type):
    """Turn everything that a damaged file can raise into one ValueError."""
    try:
        yield
    except Exception as error:  # numpy, zipfile and json raise many kinds
        # Only a damaged file leads to a position before its beginning, an invalid argument.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        reason = f"{path} is not a saved {cls.__name__} ({error})"
        raise ValueError(f"{reason}; pass a file written by save.") from error


def _read_arrays(path) -> dict[str, np.ndarray]:
    """Return the arrays of a saved file by name.

    `save` does not compress. So all arrays together are no larger than the file, and what
    their headers say is compared with that before memory is taken.
    """
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is not a complete .npz file")
        arrays: dict = {}
        n_left = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                n_left -= entry.file_size
                is_stored = entry.compress_type == zipfile.ZIP_STORED
                if not is_stored or entry.file_size != entry.compress_size:
                    raise ValueError(f"{name} is compressed")
                if n_left < 0 or name in arrays:
                    raise ValueError(f"{name} overlaps with another entry")
                with archive.open(entry) as stream:
                    arrays[name] = _read_array(stream, name, entry.file_size)
    return arrays


def _read_array(stream, name: str, n_bytes: int) -> np.ndarray:
    """Return the array of a .npy stream of so many bytes."""
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read_header(stream)
    if dtype.kind not in "biufU":
        raise ValueError(f"{name} has dtype {dtype}, which is never saved")
    needed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or needed != n_bytes - stream.tell():
        raise ValueError(f"{name} has not the {needed} bytes that its shape needs")
    stream.seek(0)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    array = array.astype(dtype.newbyteorder("="), copy=False)
    if dtype.kind == "U" and needed:
        largest = array.reshape(-1).view(np.uint32).max()
        if largest > sys.maxunicode:
            raise ValueError(f"{name} has the number {largest} as a character")
    return array


def _read_head(arrays: dict) -> dict:
    """Return the parameters, the names of the maps, and whether learning has started."""
    head = json.loads(arrays["head"].item())
    params, maps, started = head["params"], head["maps"], head["started"]
    kinds = (type(params), type(maps), type(started))
    if kinds != (dict, list, bool) or {str, *map(type, maps)} != {str}:
        raise ValueError(f"its head is {head!r}")
    prefixes = {name.partition("/")[0] for name in arrays}
    unknown = prefixes - {"format", "head", "model", *maps}
    if unknown:
        raise ValueError(f"it holds {min(unknown)}, which is unknown")
    return head


def _part(arrays: dict, prefix: str) -> dict:
    """Return the arrays whose names are prefix/name, by the second part of their names."""
    return _pop_prefixed(dict(arrays), f"{prefix}/")


def _model_part(arrays: dict) -> dict:
    """Return the state of the model itself, with numbers and texts as plain values."""
    state = {name: np.asarray(value) for name, value in _part(arrays, "model").items()}
    return {name: a.item() if a.ndim == 0 else a for name, a in state.items()}


def _update_from_version_1(cls: type, head: dict, state: dict) -> None:
    """Bring the contents of a file of version 1 to version 2, in place.

    In version 1 every method had n_threads, and the form of the labels was a text.
    """
    if "n_threads" not in inspect.signature(cls).parameters:
        head["params"].pop("n_threads", None)
    # It had only the width of the last map. 0 means unknown.
    width = state.pop("_n_mapped", None)
    if width is not None:
        widths = [0] * len(head["maps"])
        if widths:
            widths[-1] = width
        state["_widths"] = np.array(widths, np.int64)
    form = state.pop("_label_kind", None)
    if form is not None:
        is_matrix = form.endswith("columns of 0/1")
        state["_text_labels"] = form == "strings"
        state["_n_columns"] = int(form.split()[0]) if is_matrix else 0


def _update_from_version_2(state: dict) -> None:
    """Bring the contents of a file of version 2 to version 3, in place.

    In version 2 there was one average, and a run had 1,024 steps. How many draws "spread" had
    compared was not noted.
    """
    if "codebook_order" in state:
        state["codebook_n_draws"] = 1
    if "_W" not in state or "_S" not in state:
        return
    t = state.pop("n_steps_")
    W = state.pop("_W")
    if not W.shape == state["_S"].shape == state["_V"].shape:
        raise ValueError("_W, _V and _S have different shapes")
    # The sum of W over all steps is S + (t % 1024) W - V. With V = 0 and runs of other lengths it
    # has to be S + (t % RUN) W.
    difference = t % 1024 - t % RUN
    S = state.pop("_S") + difference * W.astype(np.float64) - state.pop("_V")
    state["perceptrons_W"] = W
    state["perceptrons_V"] = np.zeros_like(W)
    state["perceptrons_S"] = S[None]
    state["perceptrons_wrong"] = np.zeros((-(-len(W) // TILE), 1))
    state["perceptrons_steps"] = t


def _pop_prefixed(state: dict, prefix: str) -> dict:
    """Remove the entries whose names have the prefix, and return them without it."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}


class CodebookHasher(OnlineHasher):
    """Base class of the methods that learn the target codes of a Hadamard codebook.

    A method has the parameters `codebook` and `n_classes`, and gets targets by `_targets`. It may
    have the parameter `fuse`.
    """

    fuse = "columns"

    def _check_params(self) -> None:
        super()._check_params()
        check_integer(self.n_classes, "n_classes", optional=True)
        _check_kind(self.codebook, "codebook")
        if self.fuse not in ("columns", "codes"):
            way = 'pass "columns" or "codes"'
            raise ValueError(f"fuse={self.fuse!r} is unknown; {way}.")

    def _start(self, Z: np.ndarray) -> None:
        self._book = self._new_codebook()

    def _new_codebook(self) -> Codebook:
        known = list(range(self._n_columns))
        if not known and hasattr(self, "_classes"):
            known = self._classes.tolist()
        if self.n_classes is not None and self.n_classes < len(known):
            reason = f"n_classes={self.n_classes}, but there are {len(known)} classes"
            raise ValueError(f"{reason}; raise it, or leave it out.")
        n_labels = self.n_classes or len(known) or None
        return Codebook(self.n_bits, self.codebook, n_labels, self._seed).add(known)

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return target codes (k, n_bits) int8, and for each sample the row of its target.

        Labels that are new get their targets here, in the order of their arrival.
        """
        rows, index = np.unique(self._target_rows(y), return_inverse=True)
        return self._book.table[rows, : self.n_bits].astype(np.int8), index

    def _target_rows(self, y: np.ndarray) -> np.ndarray:
        """Return for each sample the row of its target in the table of the codebook."""
        if len(y) <= FEW_ROWS:
            return self._add_labels(y)
        _, first, index = _distinct(y if y.ndim == 1 else np.packbits(y, axis=1))
        arrival = np.argsort(first)
        rows = self._add_labels(y[first[arrival]])
        return rows[np.argsort(arrival)[index]]

    def _add_labels(self, y: np.ndarray) -> np.ndarray:
        """Give targets to labels that are new, and return the rows of all."""
        if y.ndim == 1:
            labels = y.tolist()
            self._book = self._book.add(labels)
        else:
            labels = [tuple(np.flatnonzero(row).tolist()) for row in y]
            self._book = self._book.add_sets(labels, self.fuse)
        return self._book.rows(labels)

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        if "_book" in state:
            state["_book"] = state["_book"].copy()
        return state

    @property
    def targets_(self) -> dict:
        """Return label (or column of y) -> target code, (n_bits,) int8 of +1 and -1."""
        self._check_fitted()
        targets = self._book.targets
        return {key: targets[key] for key in targets if not isinstance(key, tuple)}

    @property
    def label_set_targets_(self) -> dict:
        """Return tuple of columns of y -> target code of this set of labels."""
        self._check_fitted()
        targets = self._book.targets
        return {key: targets[key] for key in targets if isinstance(key, tuple)}

    def _state(self) -> dict:
        state = super()._state()
        if hasattr(self, "feature_map_"):
            book = self._book.get_state()
            state |= {f"codebook_{name}": value for name, value in book.items()}
        return state

    def _forms(self, m: int, labels: Form) -> dict[str, Form]:
        forms = Codebook.forms(self.n_bits)
        return super()._forms(m, labels) | {
            f"codebook_{name}": form for name, form in forms.items()
        }

    def _check_state(self, state: dict, started: bool) -> None:
        super()._check_state(state, started)
        if started:
            book = _pop_prefixed(dict(state), "codebook_")
            form = (state["_text_labels"], state["_n_columns"])
            Codebook.check_state(book, self.n_bits, *form)

    def _check_size(self, state: dict) -> None:
        super()._check_size(state)
        n_labels = max(self.n_classes or 1, state["_n_columns"])
        if self.n_bits * max(self.n_bits, n_labels) > MOST_ALIGNED:
            sizes = f"n_bits={self.n_bits} and {n_labels} labels"
            raise ValueError(f"{sizes} need more than a gigabyte")

    def _rebuild(self, state: dict) -> None:
        # Version 1 kept only the targets. The labels get their columns again, in order.
        labels = state.pop("labels")
        targets = state.pop("targets")
        keys = json.loads(labels)
        single = [key for key in keys if not isinstance(key, list)]
        n_labels = max(len(single), len(state.get("_classes", ())), self.n_classes or 0)
        if self.n_bits * max(self.n_bits, n_labels, state["_n_columns"]) > 1 << 23:
            raise ValueError("its codebook is too large for a file of version 1")
        model = self._shallow_copy()
        needed = ("_seed", "_n_columns", "_classes")
        vars(model).update({name: state[name] for name in needed if name in state})
        book = model._new_codebook().add(single)
        book.set_targets(labels, targets, book.columns)
        state |= {f"codebook_{name}": a for name, a in book.get_state().items()}

    def _restore(self, state: dict) -> None:
        book = _pop_prefixed(state, "codebook_")
        super()._restore(state)
        if book:
            self._book = Codebook.from_state(self.n_bits, self.codebook, self._seed, book)


# ---- the method ----------------------------------------------------------------------


class HMOH(CodebookHasher):
    """Hadamard Matrix Guided Online Hashing.

    Parameters
    ----------
    n_bits : int
        Length of the codes, the paper's r.
    feature_map : map, list of maps or None
        Applied in turn before the hash functions, such as ``RBF()`` or
        ``[UnitLength(), RBF()]`` of kernels.py. A copy is fitted on the first samples of the
        stream. The model then learns from these samples too.
    codebook : {"random", "ordered", "spread"}
        How labels get their columns of the Hadamard matrix. "random" is what the paper says.
        "ordered" is what its published code does. "spread" is ours: the best of many random
        draws, where the code length is not the order of the matrix.
    ensemble : bool
        Average the perceptron over the stream (Sec. 3.7), or use its last state.
    memory : int, "auto" or None
        How long the average remembers, in steps. None is the paper's: it weighs all steps of
        the stream equally, so that it learns ever more slowly what comes late. With a number n
        it is uniform over the first n steps. From then on it is exponentially weighted over
        about the last n. "auto" keeps four averages: that of all steps, and three with n = 1,000,
        10,000 and 100,000, which forget after every 1,000 steps. It uses the one that lately
        made the fewest wrong bits on samples before they were learned. Forgetting helps where
        classes or data change. It hurts where classes never come back.
    batch_size : int
        Samples per step, the paper's n_t. An incomplete batch is kept until the next call.
    learning_rate : float
        Scales the weights that are returned. Codes do not depend on it, because learning
        starts at zero.
    n_classes : int, optional
        Number of labels, if it is known and ``classes`` are not.
    warmup : int, optional
        Samples that the feature map is fitted on. By default the largest ``n_warmup`` of
        the maps.
    n_threads : int, optional
        By default all cores. The result does not depend on it.
    random_state : int, numpy.random.Generator or None
    fuse : {"columns", "codes"}
        How a sample with several labels gets its target. "columns" is the paper's: the majority
        of the labels' Hadamard columns, which is then aligned to the code length. "codes" is ours:
        the majority of the labels' own targets. They differ only where the code length is not
        the order of the matrix.

    Notes
    -----
    Products are float32. Features (after the maps) between 1e-20 and 1e15 in size are safe.

    One thread may learn while others encode: each of them uses one whole state, as it was
    between two calls of `partial_fit`. Two threads must not learn at the same time.

    Attributes
    ----------
    weights_ : (m, n_bits) float32
    targets_ : dict
        Label (or column of y) to its target code, (n_bits,) int8 of +1 and -1.
    label_set_targets_ : dict
        The same for sets of several labels, as tuples of columns.
    n_seen_, n_steps_ : int
        Samples received, and updates made.
    memory_ : int or None
        The memory of the average in use, which "auto" has chosen.
    feature_map_ : the fitted map or maps

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 10)
    >>> y = np.array(["cat", "dog"] * 10)
    >>> model = HMOH(n_bits=4, random_state=0).fit(X, y)
    >>> bits = np.unpackbits(model.transform(X[:1]), axis=1, bitorder="little", count=4)
    >>> np.array_equal(2 * bits[0].astype(int) - 1, model.targets_["cat"])
    True
    """

    _saved = (*CodebookHasher._saved, "_perceptrons")

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        codebook: str = "random",
        ensemble: bool = True,
        memory: int | str | None = None,
        batch_size: int = 1,
        learning_rate: float = 1.0,
        n_classes: int | None = None,
        warmup: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
        fuse: str = "columns",
    ):
        self.n_bits = n_bits
        self.feature_map = feature_map
        self.codebook = codebook
        self.ensemble = ensemble
        self.memory = memory
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_classes = n_classes
        self.warmup = warmup
        self.n_threads = n_threads
        self.random_state = random_state
        self.fuse = fuse

    @property
    def _update_size(self) -> int:
        return self.batch_size

    def _check_params(self) -> None:
        super()._check_params()
        check_integer(self.batch_size, "batch_size")
        check_integer(self.n_threads, "n_threads", optional=True)
        check_real(self.learning_rate, "learning_rate")
        check_bool(self.ensemble, "ensemble")
        if isinstance(self.memory, str):
            if self.memory != "auto":
                way = 'pass a number of steps, "auto" or None'
                raise ValueError(f"memory={self.memory!r} is unknown; {way}.")
        else:
            check_integer(self.memory, "memory", optional=True)
        if self.memory is not None and not self.ensemble:
            reason = f"memory={self.memory!r} is for the average, but ensemble=False"
            raise ValueError(f"{reason}; leave one of them out.")

    def _start(self, Z: np.ndarray) -> None:
        super()._start(Z)
        self._perceptrons = Perceptrons(self.n_bits, Z.shape[1], self.memory)
        self._make_lock()

    def _make_lock(self) -> None:
        # Held while the perceptrons are written or read. After `fit` it is still the same, because
        # another thread may have it already. The handler of a signal may interrupt the thread
        # that holds it and ask for it too.
        self._lock = vars(self).get("_lock") or threading.RLock()
        # `ensemble` to the hash functions, from when they are first asked for.
        self._functions = {}

    # The perceptrons are the only arrays that are written in place. Many samples are learned by
    # a copy of them, which takes their place at the end. Few samples are learned in place.

    def _own(self) -> None:
        self._perceptrons = self._perceptrons.copy()

    def _learn(self, Z: np.ndarray, y: np.ndarray) -> None:
        index = self._target_rows(y)
        enough_work = 1 + Z.size * self.n_bits // 1_000_000
        n_threads = min(self.n_threads or _cores(), enough_work)
        samples = (Z, index, self._book.table, self.batch_size)
        self._perceptrons.learn(*samples, n_threads)
        self._functions = {}

    def _learn_few(self, model: HMOH, X: np.ndarray, y: np.ndarray) -> None:
        Z = model._features(X)
        index = model._target_rows(y)
        model._functions = {}
        perceptrons = self._perceptrons
        table = model._book.table
        arguments = perceptrons.arguments(Z, index, table, self.batch_size)
        before = vars(self)
        after = vars(model)
        n_steps = perceptrons.steps[0]
        # What the loop learns and the rest of the state belong together, also for the handler of
        # a signal and after a SIGINT. Python looks for signals after a call, so not between the
        # two lines under `try`, nor in those under `finally`.
        with self._lock:
            try:
                self.__dict__ = after
                _perceptron(*arguments)
            finally:
                if perceptrons.steps[0] == n_steps:
                    self.__dict__ = before

    def _snapshot(self) -> HMOH:
        model = super()._snapshot()
        if model.ensemble not in model._functions:
            with self._lock:
                model = super()._snapshot()
                model._functions[model.ensemble] = model._hash_functions()
        return model

    def _hash_functions(self) -> np.ndarray:
        """Return the weights for steps of size one, (n_bits, m): average or last W."""
        if self.n_steps_ == 0:
            seen = f"seen {self.n_seen_} of {self.batch_size} samples of the first batch"
            raise NotFittedError(f"{seen}; pass more to partial_fit.")
        if self.ensemble:
            return self._perceptrons.average()
        return self._perceptrons.get_state()["W"]

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._functions[self.ensemble].T

    def decision_function(self, X) -> np.ndarray:
        """Return the (n, n_bits) float32 values whose signs are the codes."""
        return np.float32(self.learning_rate) * super().decision_function(X)

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32: the average of W, or the last W."""
        model = self._snapshot()
        return np.float32(model.learning_rate) * model._functions[model.ensemble].T

    @property
    def n_steps_(self) -> int:
        """Return the number of updates made."""
        self._check_fitted()
        return int(self._perceptrons.steps[0])

    @property
    def memory_(self) -> int | None:
        """Return the memory of the average in use."""
        self._check_fitted()
        with self._lock:
            bits = self._perceptrons
            return HORIZONS[bits.best()] if bits.memory == "auto" else bits.memory

    # Copies and files.

    def __getstate__(self) -> dict:
        if "_perceptrons" not in vars(self):
            return super().__getstate__()
        with self._lock:
            state = super().__getstate__()
            state["_perceptrons"] = state["_perceptrons"].copy()
        del state["_lock"], state["_functions"]
        return state

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        if "_perceptrons" in state:
            self._make_lock()

    def _state(self) -> dict:
        state = super()._state()
        if "_perceptrons" in state:
            learned = state.pop("_perceptrons").get_state()
            state |= {f"perceptrons_{name}": value for name, value in learned.items()}
        return state

    def _forms(self, m: int, labels: Form) -> dict[str, Form]:
        shape = (self.n_bits, m)
        n_tiles = -(-self.n_bits // TILE)
        n_averages = len(_horizons(self.memory)[2])
        return super()._forms(m, labels) | {
            "perceptrons_W": Form("float32", shape),
            "perceptrons_V": Form("float32", shape),
            "perceptrons_S": Form("float64", (n_averages, *shape)),
            "perceptrons_wrong": Form("float64", (n_tiles, n_averages), 0, TILE),
            "perceptrons_steps": COUNT,
        }

    def _restore(self, state: dict) -> None:
        learned = _pop_prefixed(state, "perceptrons_")
        if learned:
            shape = learned["W"].shape
            state["_perceptrons"] = Perceptrons.from_state(*shape, self.memory, learned)
            self._make_lock()
        super()._restore(state)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
