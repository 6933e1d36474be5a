"""Hadamard Matrix Guided Online Hashing (HMOH; Lin et al., IJCV 2020).

Learn binary codes from a labelled stream. Copy this file alone into any project: it needs
numpy and numba, nothing else.

Every class gets a column of a Hadamard matrix as its target code. Every bit is a perceptron
that is corrected on the samples it gets wrong. The hash functions are the average of the
perceptron over the whole stream.

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
2. `Codebook` gives every label its target code: Hadamard columns, alignment by LSH, votes.
3. `HMOH`, at the end, puts the two together. Its docstring explains every parameter.
4. `CodebookHasher` is what HMOH shares with its predecessor HCOH: labels become targets.
5. `OnlineHasher` is what all methods share: parameters, stream, feature map, codes, files.
   Skip it at first reading, and the input checks too.
"""

from __future__ import annotations

import copy
import inspect
import json
import os
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

__all__ = [
    "HMOH",
    "Codebook",
    "CodebookHasher",
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
RUN = 1024  # steps after which the sum of W is moved from float32 to float64
PAGE = 4096  # bytes of a memory page
BLOCK_ROWS = 8192  # samples mapped to features, or encoded, at a time
DRAWS = 2000  # codebooks that "spread" chooses from
SAVED_VERSION = 2  # of the files that `save` writes; version 1 can still be read


class NotFittedError(ValueError, AttributeError):
    """Raised when a model is used before it has learned anything."""


# ---- the perceptron (Sec. 3.5 and 3.7) -----------------------------------------------


def compiled(function):
    """Compile a function on its first call, and cache it on disk where that is possible.

    Sums may be reordered, which lets them run in vector registers. NaN and infinity keep
    their meaning.
    """
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder for the cache, as in a read-only install
        return njit(**options)(function)


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
#     for i in range(len(Z)):                  # the samples, in order
#         for k in range(n_bits):
#             c = C[y[i], k]                   # the target bit, +1 or -1
#             if (W[k] @ Z[i] > 0) != (c > 0):
#                 W[k] += c * Z[i]             # only where the bit is wrong
#         total += W
#     average = total / len(Z)                 # the hash functions
#
# The fast version differs in three ways. It takes TILE bits at a time, and some 64 samples
# that stay in the cache while the tiles take turns. It does not add W to the total at each
# step. An update made after `age` steps is missing from the first `age` terms of the sum. So
# the sum over n steps is n W - V, where V is the sum of age * update. It starts a new sum
# after every RUN steps, because float32 cannot hold larger sums exactly enough. S is the
# total of the finished sums.
@compiled
def _perceptron(Z, y, C, batch, t, W, V, S, first_bit, last_bit):
    """Learn the bits from first_bit to before last_bit from the samples Z with targets C[y].

    Z (n, m) float32, y (n,) int64, C (classes, bits) float32, W V (bits, m or more) float32,
    S (bits, m or more) float64; `batch` samples per step, t steps made before.
    """
    f = np.empty(TILE, np.float32)
    update = np.empty((batch, TILE), np.float32)
    n_rows = max(1, 64 // batch) * batch
    for start in range(0, len(Z), n_rows):
        stop = min(start + n_rows, len(Z))
        for k in range(first_bit, last_bit, TILE):
            done = t + start // batch
            for i0 in range(start, stop, batch):
                i1 = min(i0 + batch, stop)
                # All samples of a batch meet the W from before the batch.
                for i in range(i0, i1):
                    _dots(Z, i, W, k, f)
                    for q in range(TILE):
                        c = C[y[i], k + q]
                        update[i - i0, q] = c if (f[q] > 0) != (c > 0) else 0
                age = np.float32(done % RUN)
                for i in range(i0, i1):
                    for q in range(TILE):
                        c = update[i - i0, q]
                        if c != 0:
                            for j in range(Z.shape[1]):
                                W[k + q, j] += c * Z[i, j]
                                V[k + q, j] += (age * c) * Z[i, j]
                done += 1
                if done % RUN == 0:
                    for q in range(k, k + TILE):
                        for j in range(Z.shape[1]):
                            S[q, j] += RUN * np.float64(W[q, j]) - np.float64(V[q, j])
                            V[q, j] = 0


def _padded(a: np.ndarray, dtype, offset: int = 0) -> np.ndarray:
    """Return a copy with zeros added, which starts `offset` bytes into a memory page.

    Zeros are added up to whole tiles of bits and whole cache lines of 16 values. Rows that
    start at the same offset within a page compete for the same cache sets. So a row has an
    odd number of cache lines, and W and V, which are written in turn, start half a page
    apart.
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
    odd = np.bitwise_count(common) & 1
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
        raise ValueError(
            f"x has {n} rows; pass a number of rows that is a power of two."
        )
    _walsh_hadamard(product)
    return product


def _hamming(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the distances of all rows of A to all rows of B, codes of +1 and -1."""
    packed_a = np.packbits(A > 0, axis=1).T
    packed_b = np.packbits(B > 0, axis=1).T
    distance = np.zeros((len(A), len(B)), np.int64)
    for a, b in zip(packed_a, packed_b, strict=True):
        distance += np.bitwise_count(a[:, None] ^ b)
    return distance


def _sign(x: np.ndarray) -> np.ndarray:
    """Return +1 where x is above 0 and -1 elsewhere, as int8."""
    return np.where(x > 0, 1, -1).astype(np.int8)


class Codebook:
    """Target codes: a Hadamard column for every label, aligned to the code length by LSH.

    The order r* is the smallest power of two, from 2 on, that is at least the code length
    and the number of labels (Eq. 10). If r* is not the code length, a column c becomes
    sign(Wlsh^T c) with a Gaussian Wlsh (Eq. 11). When the columns run out, the order doubles:
    new labels get columns of the upper half, with a new Wlsh. Targets that were given never
    change.

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
    targets : dict
        Label, or tuple of labels, to its target code, (n_bits,) int8 of +1 and -1.
    """

    def __init__(self, n_bits: int, kind: str, n_labels: int | None, seed: int):
        self.n_bits = n_bits
        self.kind = kind
        self.n_labels = n_labels
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        least = int(max(n_bits, n_labels or 1))
        self.order = 1 << max(1, (least - 1).bit_length())
        self.grown = False  # whether the columns ran out before
        self.targets: dict = {}
        self.given: set = set()  # targets of single labels as bytes, to find equal ones
        self.columns = np.empty(0, np.int64)  # of the labels, in the order of arrival
        self._draw(0)
        if kind == "spread" and n_labels and self.order != n_bits:
            self._choose()

    def _draw(self, first: int) -> None:
        """Queue the columns from `first` on, and draw the Wlsh that aligns them."""
        self.queue = np.arange(first, self.order)
        if self.kind != "ordered":
            self.queue = self.rng.permutation(self.queue)
        self.lsh = np.empty((0, 0))
        if self.order != self.n_bits:
            self.lsh = self.rng.normal(size=(self.order, self.n_bits))

    def _align(self, c: np.ndarray) -> np.ndarray:
        return _sign(c @ self.lsh) if self.lsh.size else c

    def _choose(self) -> None:
        """Keep the best of many draws.

        The best draw has the largest minimum distance between targets. If several have it,
        the sum of squared inner products decides: the smallest is the best.
        """
        n_labels = self.n_labels
        # The number of draws follows from the estimated cost, not from a clock, so that the
        # result can be repeated. The estimate is a second at most, if one draw takes less.
        size = self.order * self.n_bits
        nanoseconds = 40 * size + 0.5 * n_labels**2 * self.n_bits
        n_draws = int(np.clip(1e9 / nanoseconds, 1, DRAWS))
        best_score = None
        for _ in range(n_draws):
            self._draw(0)
            targets = _sign(hadamard_product(self.lsh)[self.queue[:n_labels]])
            distance = _hamming(targets, targets)
            np.fill_diagonal(distance, self.n_bits)
            crowding = np.square(self.n_bits - 2 * distance).sum()
            score = (distance.min(), -crowding)
            if best_score is None or score > best_score:
                best_score = score
                best_draw = (self.queue, self.lsh)
        self.queue, self.lsh = best_draw

    def add(self, labels: list) -> Codebook:
        """Return a codebook that has targets for these labels too; this one is unchanged."""
        new = [label for label in labels if label not in self.targets]
        if not new:
            return self
        book = copy.copy(self)
        book.rng = copy.deepcopy(self.rng)
        book.targets = dict(self.targets)
        book.given = set(self.given)
        for label in new:
            book._assign(label)
        return book

    def _assign(self, label) -> None:
        """Give a label the next column and its target."""
        if not len(self.queue):
            self.order *= 2
            self.grown = True
            self._draw(self.order // 2)
        column = _columns(self.order, self.queue[:1])[0]
        target = self._align(column)
        is_open_stream = not self.n_labels
        if self.kind == "spread" and is_open_stream and self.lsh.size and self.targets:
            target = self._far_target()
        while self.grown and self._is_taken(target):
            self.lsh = self.rng.normal(size=self.lsh.shape)
            target = self._align(column)
        self.columns = np.append(self.columns, self.queue[0])
        self.queue = self.queue[1:]
        self.targets[label] = target
        self.given.add(target.tobytes())

    def _far_target(self) -> np.ndarray:
        """Return the best of many candidates, measured against the targets already given.

        The signs of a column under a new Wlsh are independent, and +1 or -1 with equal
        probability. So random signs are drawn instead of whole matrices.
        """
        candidates = _sign(self.rng.integers(2, size=(DRAWS, self.n_bits)))
        distance = _hamming(candidates, np.stack(list(self.targets.values())))
        crowding = np.square(self.n_bits - 2 * distance).sum(axis=1)
        best_first = np.lexsort((crowding, -distance.min(axis=1)))
        return candidates[best_first[0]]

    def _is_taken(self, target: np.ndarray) -> bool:
        """Return whether another label has this target while unused codes exist."""
        room = len(self.given) < 2.0**self.n_bits
        return room and target.tobytes() in self.given

    def add_sets(self, sets: list[tuple[int, ...]]) -> Codebook:
        """Return a codebook that has targets for these sets of labels 0..L-1 too (Sec. 3.6).

        The target is the majority of the labels' columns. Ties are set at random so that
        the code is as balanced as possible.
        """
        book = copy.copy(self)
        book.targets = dict(self.targets)
        for labels in sets:
            if labels not in book.targets:
                book.targets[labels] = self._align(_sign(self._votes(labels)))
        return book

    def _votes(self, labels: tuple[int, ...]) -> np.ndarray:
        """Return the sum of the labels' columns, with some of the ties set to 1."""
        columns = _columns(self.order, self.columns[list(labels)])
        votes = columns.sum(axis=0, dtype=np.int64)
        rng = np.random.default_rng([self.seed, *labels])
        tied = rng.permutation(np.flatnonzero(votes == 0))
        missing = self.order // 2 - np.count_nonzero(votes > 0)
        n_plus = np.clip(missing, 0, len(tied))
        votes[tied[:n_plus]] = 1
        return votes

    def get_state(self) -> dict:
        """Return everything that `from_state` needs, as arrays, numbers and JSON texts."""
        targets = np.array(list(self.targets.values()), np.int8)
        return {
            "order": self.order,
            "grown": self.grown,
            "columns": self.columns,
            "queue": self.queue,
            "lsh": self.lsh,
            "rng": json.dumps(self.rng.bit_generator.state),
            "n_labels": self.n_labels or 0,
            "labels": json.dumps(list(self.targets)),
            "targets": targets.reshape(-1, self.n_bits),
        }

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
        book.columns = state["columns"]
        book.queue = state["queue"]
        book.lsh = state["lsh"]
        book.rng = np.random.default_rng(seed)
        book.rng.bit_generator.state = json.loads(state["rng"])
        book.set_targets(state["labels"], state["targets"])
        return book

    def set_targets(self, labels: str, targets: np.ndarray) -> None:
        """Replace all targets; `labels` is a JSON list, in which a set of labels is a list."""
        listed = json.loads(labels)
        keys = [tuple(key) if isinstance(key, list) else key for key in listed]
        self.targets = dict(zip(keys, targets, strict=True))
        single = [key for key in keys if not isinstance(key, tuple)]
        self.given = {self.targets[key].tobytes() for key in single}


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
        raise ValueError(
            f"{name}={value} is too small; pass an int of at least {least}."
        )


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


def check_bool(value, name: str) -> None:
    """Check that a parameter is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {value!r}.")


def check_features(X, n_features: int | None = None, name: str = "X") -> np.ndarray:
    """Return X as a finite (n, d) float32 array in C order, not copied if it is one.

    kernels.py has the same function, because each file works alone.
    """
    if hasattr(X, "toarray"):
        need = f"dense features are needed: pass {name}.toarray()"
        raise TypeError(f"{name} is a sparse {type(X).__name__}; {need}.")
    given = np.asarray(X)
    if given.dtype.kind not in "buif":
        need = f"numbers are needed: pass {name}.astype(np.float32) if they are numbers"
        raise TypeError(f"{name} has dtype {given.dtype}; {need}.")
    if given.ndim != 2:
        way = "x.reshape(1, -1) for one sample"
        if given.ndim > 2:
            way = f"{name}.reshape(len({name}), -1) for images"
        need = f"a row of features for each sample is needed: pass {way}"
        raise ValueError(f"{name} has shape {given.shape}; {need}.")
    if given.size == 0:
        need = "pass at least one sample with one feature"
        raise ValueError(f"{name} has shape {given.shape}, so it is empty; {need}.")
    if n_features is not None and given.shape[1] != n_features:
        need = f"but the model was fitted on {n_features}; pass the same features as before"
        raise ValueError(f"{name} has {given.shape[1]} features, {need}.")
    # Values that float32 cannot hold become infinite, and are found below.
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(given, dtype=np.float32)
    # The sum is the fastest test for NaN and infinity. It may overflow for large values, so
    # a second test decides.
    with np.errstate(over="ignore", invalid="ignore"):
        is_suspect = not np.isfinite(np.einsum("ij->", X))
    if is_suspect and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        need = "finite numbers within float32 are needed: drop, fill or scale them"
        raise ValueError(f"{name}[{row}, {column}] is {given[row, column]}; {need}.")
    return X


def check_labels(y, n_samples: int, name: str = "y") -> np.ndarray:
    """Return labels as (n,) int64 or strings, or as (n, L) uint8 with a 1 in every row."""
    try:
        y = np.asarray(y)
    except ValueError as error:  # rows of different lengths
        way = "pass one label per sample, or a 0/1 matrix with a column for each label"
        raise ValueError(f"{name} cannot become an array ({error}); {way}.") from None
    if y.dtype == object and {type(label) for label in y.flat} <= {str}:
        y = y.astype(str)  # a pandas column of strings
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
        rows, first, index = np.unique(
            y, return_index=True, return_inverse=True, axis=0
        )
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
        raise ValueError(
            f"feature map {part!r} made {len(Z)} rows of {len(X)}; {need}."
        )
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


# ---- what all methods share ----------------------------------------------------------


class OnlineHasher:
    """Base class of all methods: parameters, stream, feature map, codes and files.

    A method provides `_start(Z)`, `_learn(Z, y)` and `_decide(Z)`. `_start` gets the mapped
    samples of the warm-up. `_saved` has the names of the attributes that are learned.
    `partial_fit` works on a shallow copy that replaces the model at the end. So `_learn`
    assigns new arrays and never writes into old ones, and a failed call changes nothing.
    """

    needs_labels = True
    _update_size = 1  # samples of one update; fewer are kept until the next call
    _least_warmup = 1  # samples that `_start` needs
    _saved = (
        "n_features_in_",
        "n_seen_",
        "_seed",
        "_classes",
        "_text_labels",
        "_n_columns",
        "_n_warmup",
        "_widths",
        "_X",
        "_y",
    )

    # Parameters, by the conventions of scikit-learn.

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters; with `deep` also those of the maps (feature_map__n_anchors)."""
        names = inspect.signature(type(self)).parameters
        params = {name: getattr(self, name) for name in names}
        if deep:
            for prefix, part in _named_maps(self.feature_map).items():
                if hasattr(part, "get_params"):
                    inner = part.get_params()
                    params |= {f"{prefix}__{name}": inner[name] for name in inner}
        return params

    def set_params(self, **params):
        """Set parameters by the names of `get_params`: all of them, or none on an error."""
        # On a copy, because the map may be set together with parameters of it.
        model = copy.copy(self)
        own = self.get_params(deep=False)
        vars(model).update({name: params[name] for name in params if name in own})
        known = model.get_params()
        for name in params:
            if name not in known:
                way = f"pass one of {', '.join(known)}"
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; {way}."
                )
        for prefix, part in _named_maps(model.feature_map).items():
            start = f"{prefix}__"
            names = [name for name in params if name.startswith(start)]
            if names:
                part.set_params(
                    **{name.removeprefix(start): params[name] for name in names}
                )
        self.__dict__ = vars(model)
        return self

    def __repr__(self) -> str:
        params = self.get_params(deep=False).items()
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in params)})"

    def __sklearn_tags__(self):
        # Only scikit-learn calls this, so it is installed.
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        target = TargetTags(
            required=self.needs_labels, two_d_labels=True, multi_output=True
        )
        return Tags(None, target, TransformerTags(), input_tags=InputTags())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_map_")

    def _check_params(self) -> None:
        check_integer(self.n_bits, "n_bits")
        check_integer(self.warmup, "warmup", optional=True)
        if isinstance(self.random_state, np.random.RandomState):
            way = "pass an int, None or a numpy.random.Generator"
            raise TypeError(
                f"random_state={self.random_state!r} is not supported; {way}."
            )
        if not isinstance(self.random_state, np.random.Generator):
            check_integer(self.random_state, "random_state", least=0, optional=True)
        for part in _named_maps(self.feature_map).values():
            _check_methods(part, "fit", "transform")

    def _settings(self) -> dict[str, str]:
        """Return the parameters that must not change while a model learns."""
        params = self.get_params(deep=False)
        params.pop("n_threads", None)  # results do not depend on it
        return {name: _describe(value) for name, value in params.items()}

    def _check_unchanged(self) -> None:
        for name, now in self._settings().items():
            before = self._begun[name]
            if now != before:
                way = "set it back, or start again with fit"
                raise ValueError(
                    f"{name} was {before} when learning began and is {now} now; {way}."
                )

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
        """Check the input, add the samples kept from before, fit the map, and learn."""
        self._check_params()
        model = copy.copy(self)
        if fresh:
            model._forget()
        else:
            model._check_unchanged()
        X = check_features(X, None if fresh else self.n_features_in_)
        y = model._check_y(y, classes, len(X))
        if last and y is not None and y.ndim == 1:
            model._classes = _distinct(y)[0]
        model.n_features_in_ = X.shape[1]
        model.n_seen_ += len(X)
        if fresh:
            rng = np.random.default_rng(copy.deepcopy(self.random_state))
            model._seed = int(rng.integers(2**63))
        elif len(self._X):
            X = np.concatenate([self._X, X])
            y = None if y is None else np.concatenate([self._y, y])
        can_learn = model._fit_map(X, last)
        n_learned = model._learn_from(X, y, last) if can_learn else 0
        model._X = X[n_learned:].copy()
        model._y = None if y is None else y[n_learned:].copy()
        if fresh and isinstance(self.random_state, np.random.Generator):
            # The seed is taken from the generator only if all went well.
            self.random_state.integers(2**63)
        self.__dict__ = vars(model)
        return self

    def _forget(self) -> None:
        for name in (*self._saved, "feature_map_"):
            vars(self).pop(name, None)
        self._begun = self._settings()
        self.n_seen_ = 0

    def _check_y(self, y, classes, n_samples: int) -> np.ndarray | None:
        if not self.needs_labels:
            return None
        if y is None:
            need = f"{type(self).__name__} learns from labels: pass one for each sample"
            raise TypeError(f"y is missing; {need}.")
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
            raise ValueError(
                f"y holds {form}, but learning began with {before}; {way}."
            )
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

    def _fit_map(self, X: np.ndarray, last: bool) -> bool:
        """Fit the feature map when enough samples have arrived; return whether they have.

        It is fitted on exactly the first `warmup` samples of the stream.
        """
        if hasattr(self, "feature_map_"):
            return True
        feature_map = copy.deepcopy(self.feature_map)
        maps = _named_maps(feature_map).values()
        # A warm-up that began goes on, also from a file, where it may have another length.
        if not hasattr(self, "_n_warmup"):
            self._n_warmup = max(self._map_warmup(maps), self._least_warmup)
        if len(X) < self._n_warmup and not last:
            return False
        Z = X[: self._n_warmup]
        widths = []
        for part in maps:
            part.fit(Z)
            Z = _mapped(part, Z)
            widths.append(Z.shape[1])
        self.feature_map_ = feature_map
        self._widths = np.array(widths, np.int64)
        self._start(Z)
        return True

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

    def _learn_from(self, X: np.ndarray, y: np.ndarray | None, last: bool) -> int:
        """Learn from complete updates, in `fit` from all samples; return how many were used."""
        size = self._update_size
        n_learned = len(X) if last else len(X) // size * size
        n_rows = max(n_learned, 1)
        if _named_maps(self.feature_map):
            n_rows = max(1, BLOCK_ROWS // size) * size
        for start in range(0, n_learned, n_rows):
            rows = slice(start, min(start + n_rows, n_learned))
            self._learn(self._features(X[rows]), None if y is None else y[rows])
        return n_learned

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Return what the fitted feature maps make of X."""
        Z = X
        maps = _named_maps(self.feature_map_).values()
        for part, width in zip(maps, self._widths.tolist(), strict=True):
            Z = _mapped(part, Z)
            if width not in (0, Z.shape[1]):
                need = f"but {width} when it was fitted; pass a map of constant width"
                raise ValueError(
                    f"feature map {part!r} made {Z.shape[1]} features, {need}."
                )
        return Z

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_seen_"):
            name = type(self).__name__
            raise NotFittedError(
                f"this {name} is not fitted; call fit or partial_fit first."
            )
        if not hasattr(self, "feature_map_"):
            seen = f"seen {self.n_seen_} of {self._n_warmup} warm-up samples"
            raise NotFittedError(f"{seen}; pass more to partial_fit.")

    # Codes.

    def decision_function(self, X) -> np.ndarray:
        """Return the (n, n_bits) float32 values whose signs are the codes."""
        self._check_fitted()
        X = check_features(X, self.n_features_in_)
        return self._decide(self._features(X))

    def transform(self, X) -> np.ndarray:
        """Return packed codes (n, ceil(n_bits / 8)) uint8 of the rows of X.

        Bit k is 1 where hash function k is above 0 (Eq. 1).
        """
        self._check_fitted()
        X = check_features(X, self.n_features_in_)
        codes = []
        for start in range(0, len(X), BLOCK_ROWS):
            values = self._decide(self._features(X[start : start + BLOCK_ROWS]))
            codes.append(np.packbits(values > 0, axis=1, bitorder="little"))
        return np.concatenate(codes)

    def encode(self, X) -> np.ndarray:
        """Call `transform`; another name for it."""
        return self.transform(X)

    # Files.

    def _state(self) -> dict:
        """Return everything that was learned, as arrays and plain values."""
        state = {name: getattr(self, name, None) for name in self._saved}
        return {name: value for name, value in state.items() if value is not None}

    def _restore(self, state: dict) -> None:
        vars(self).update(state)

    def save(self, path) -> None:
        """Write the model to an .npz file, atomically and without pickle.

        A model that was loaded continues to learn where it stopped.
        """
        if not hasattr(self, "n_seen_"):
            name = type(self).__name__
            raise NotFittedError(
                f"this {name} is not fitted; there is nothing to save."
            )
        self._check_unchanged()
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            way = "create it, or pass another path"
            raise FileNotFoundError(
                f"the folder {folder} of {path} does not exist; {way}."
            )
        arrays = self._arrays()
        temporary = f"{os.fspath(path)}.{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "wb") as file:
                np.savez(file, **arrays)
            os.replace(temporary, path)
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
            If the model had feature maps, new ones of the same kinds. They are filled from
            the file.
        """
        maps = _named_maps(feature_map)
        for part in maps.values():
            _check_methods(part, "get_state", "set_state")
        try:
            parts = _read_parts(path)
            head = json.loads(parts["head"][""].item())
            if _file_version(cls, parts["format"][""].item()) == 1:
                _update_from_version_1(cls, head, parts["model"])
            model = cls(**head["params"] | {"feature_map": feature_map})
            if head["started"]:
                model.feature_map_ = feature_map
            model._restore(parts["model"])
            for name in ("n_features_in_", "n_seen_", "_seed", "_X"):
                getattr(model, name)  # raises if the file lacks it
        except OSError:
            raise
        except (
            Exception
        ) as error:  # numpy and zipfile raise many kinds for damaged files
            reason = f"{path} is not a saved {cls.__name__} ({error})"
            raise ValueError(f"{reason}; pass a file written by save.") from error
        if list(maps) != head["maps"]:
            saved = ", ".join(head["maps"]) or "no feature map"
            given = ", ".join(maps) or "no feature map"
            way = "pass a new map, such as load(path, feature_map=RBF())"
            if "feature_map" not in head["maps"]:
                n = len(head["maps"])
                way = f"pass a list of {n} new maps" if n else "leave feature_map out"
            raise ValueError(f"{path} was saved with {saved}, not with {given}; {way}.")
        for prefix, part in maps.items():
            part.set_state(parts.get(prefix, {}))
        if head["started"]:
            model.feature_map_ = copy.deepcopy(feature_map)
        model._begun = model._settings()
        return model


def _file_format(cls: type, version: int) -> str:
    return f"hmoh model {version} {cls.__name__}"


def _file_version(cls: type, written: str) -> int:
    """Return the version of a file from its mark; raise if another class wrote it."""
    for version in range(1, SAVED_VERSION + 1):
        if written == _file_format(cls, version):
            return version
    wanted = _file_format(cls, SAVED_VERSION)
    raise ValueError(f"it is marked {written!r}, not {wanted!r}")


def _read_parts(path) -> dict[str, dict]:
    """Return the arrays of a saved file by the two parts of their names, prefix/name."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is not a complete .npz file")
        file.seek(0)
        arrays = dict(np.load(file, allow_pickle=False))
    parts: dict = {}
    for full_name, value in arrays.items():
        prefix, _, name = full_name.partition("/")
        if prefix == "model" and value.ndim == 0:
            value = value.item()
        parts.setdefault(prefix, {})[name] = value
    return parts


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


class CodebookHasher(OnlineHasher):
    """Base class of the methods that learn the target codes of a Hadamard codebook.

    A method has the parameters `codebook` and `n_classes`, and gets targets by `_targets`.
    """

    _learned: tuple[str, ...] = ()  # attributes that a saved model must have

    def _check_params(self) -> None:
        super()._check_params()
        check_integer(self.n_classes, "n_classes", optional=True)
        if self.codebook not in ("random", "ordered", "spread"):
            way = 'pass "random", "ordered" or "spread"'
            raise ValueError(f"codebook={self.codebook!r} is unknown; {way}.")

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
        """Return target codes (k, n_bits), and for each sample the row of its target.

        Labels that are new get their targets here, in the order of their arrival.
        """
        _, first, index = _distinct(y if y.ndim == 1 else np.packbits(y, axis=1))
        arrival = np.argsort(first)
        if y.ndim == 1:
            labels = y[first[arrival]].tolist()
            self._book = self._book.add(labels)
        else:
            rows = y[first[arrival]]
            labels = [tuple(np.flatnonzero(row).tolist()) for row in rows]
            self._book = self._book.add_sets(labels)
        targets = np.stack([self._book.targets[label] for label in labels])
        return targets, np.argsort(arrival)[index]

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

    def _restore(self, state: dict) -> None:
        prefix = "codebook_"
        names = [name for name in state if name.startswith(prefix)]
        book = {name.removeprefix(prefix): state.pop(name) for name in names}
        labels = state.pop("labels", None)  # in files of version 1
        targets = state.pop("targets", None)
        super()._restore(state)
        if not hasattr(self, "feature_map_"):
            return
        if book:
            self._book = Codebook.from_state(
                self.n_bits, self.codebook, self._seed, book
            )
        else:
            # Version 1 kept only the targets. The labels get their columns again, in order.
            keys = json.loads(labels)
            single = [key for key in keys if not isinstance(key, list)]
            self._book = self._new_codebook().add(single)
            self._book.set_targets(labels, targets)
        for name in self._learned:
            getattr(self, name)  # raises if the file lacks it


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

    Notes
    -----
    Products are float32. Features (after the maps) between 1e-20 and 1e15 in size are safe.

    Attributes
    ----------
    weights_ : (m, n_bits) float32
    targets_ : dict
        Label (or column of y) to its target code, (n_bits,) int8 of +1 and -1.
    label_set_targets_ : dict
        The same for sets of several labels, as tuples of columns.
    n_seen_, n_steps_ : int
        Samples received, and updates made.
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

    _learned = ("_W", "_V", "_S", "n_steps_")
    _saved = (*CodebookHasher._saved, *_learned)

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        codebook: str = "random",
        ensemble: bool = True,
        batch_size: int = 1,
        learning_rate: float = 1.0,
        n_classes: int | None = None,
        warmup: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits = n_bits
        self.feature_map = feature_map
        self.codebook = codebook
        self.ensemble = ensemble
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_classes = n_classes
        self.warmup = warmup
        self.n_threads = n_threads
        self.random_state = random_state

    @property
    def _update_size(self) -> int:
        return self.batch_size

    def _check_params(self) -> None:
        super()._check_params()
        check_integer(self.batch_size, "batch_size")
        check_integer(self.n_threads, "n_threads", optional=True)
        check_real(self.learning_rate, "learning_rate")
        check_bool(self.ensemble, "ensemble")

    def _start(self, Z: np.ndarray) -> None:
        super()._start(Z)
        shape = (self.n_bits, Z.shape[1])
        self._W = np.zeros(shape, np.float32)
        self._V = np.zeros(shape, np.float32)
        self._S = np.zeros(shape)
        self.n_steps_ = 0

    def _learn(self, Z: np.ndarray, y: np.ndarray) -> None:
        targets, index = self._targets(y)
        # Targets in the type of the products, so that comparing them needs no conversion.
        C = _padded(targets, np.float32)
        W = _padded(self._W, np.float32)
        V = _padded(self._V, np.float32, offset=PAGE // 2)
        S = _padded(self._S, np.float64)

        def learn_tiles(tiles):
            first_bit = TILE * tiles[0]
            last_bit = TILE * (tiles[-1] + 1)
            state = (W, V, S, first_bit, last_bit)
            _perceptron(Z, index, C, self.batch_size, self.n_steps_, *state)

        n_tiles = len(W) // TILE
        enough_work = 1 + Z.size * self.n_bits // 1_000_000
        n_threads = min(self.n_threads or _cores(), n_tiles, enough_work)
        shares = np.array_split(np.arange(n_tiles), n_threads)
        if n_threads == 1:
            learn_tiles(shares[0])
        else:
            # The pool is made for this call, so that a later fork is safe. The calling
            # thread only waits. When it worked too, a thread that it started often ran on
            # the same core.
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(learn_tiles, shares))
        unpadded = np.s_[: self.n_bits, : Z.shape[1]]
        self._W = W[unpadded]
        self._V = V[unpadded]
        self._S = S[unpadded]
        self.n_steps_ += -(-len(Z) // self.batch_size)

    def _unit_weights(self) -> np.ndarray:
        """Return the weights for steps of size one, (n_bits, m): average or last W."""
        if self.n_steps_ == 0:
            seen = (
                f"seen {self.n_seen_} of {self.batch_size} samples of the first batch"
            )
            raise NotFittedError(f"{seen}; pass more to partial_fit.")
        if not self.ensemble:
            return self._W
        n_last = self.n_steps_ % RUN
        last_run = n_last * self._W.astype(np.float64)
        average = (self._S + last_run - self._V) / self.n_steps_
        return average.astype(np.float32)

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._unit_weights().T

    def decision_function(self, X) -> np.ndarray:
        """Return the (n, n_bits) float32 values whose signs are the codes."""
        return np.float32(self.learning_rate) * super().decision_function(X)

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32: the average of W, or the last W."""
        self._check_fitted()
        return np.float32(self.learning_rate) * self._unit_weights().T


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
