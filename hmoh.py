"""Hadamard Matrix Guided Online Hashing (Lin et al., IJCV 2020): binary codes learned from a labelled stream.

Copy this file alone into any project: it needs numpy and numba, nothing else.

Every class is given a column of a Hadamard matrix as target code, every bit is a perceptron that is corrected on the
samples it gets wrong, and the hash functions are the average of the perceptron over the whole stream.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(3, size=200)
>>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(200, 3))
>>> model = HMOH(n_bits=8, random_state=0).partial_fit(X, y)
>>> model.transform(X[:5]).shape                             # packed: 8 bits are one byte
(5, 1)
"""

from __future__ import annotations

import copy
import inspect
import json
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

__all__ = ["HMOH", "Codebook", "NotFittedError", "OnlineHasher", "hadamard"]

TILE = 8  # bits that share one reading of a sample
AVERAGED = 1024  # steps after which the running average is brought up to date in float64
PAGE = 4096  # bytes, of memory
BLOCK_ROWS = 8192  # samples mapped to features, or to codes, at a time
DRAWS = 2000  # codebooks that "spread" chooses from
FORMAT = "hmoh model 1"  # of saved files


class NotFittedError(ValueError, AttributeError):
    """A model is used before it has learned anything."""


# ---- the perceptron pass (Sec. 3.5 and 3.7) -----------------------------------------------------------------------


def _compiled(function):
    """Compile on first call, cached on disk where there is a folder to write to.

    A sum may be reordered (so that it runs in vector registers), but NaN and infinity keep their meaning.
    """
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no such folder, for example a read-only install
        return njit(**options)(function)


@njit(inline="always")  # a part of the loop below, where the calls took a twentieth of the time
def _dots(Z, i, W, k, f):
    """f = the products of sample i with the TILE rows of W from k on."""
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
    f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7] = f0, f1, f2, f3, f4, f5, f6, f7


@_compiled
def _perceptron(Z, y, C, batch, t, W, V, S, first_bit, last_bit):
    """Pass over the samples Z, whose target codes are the rows y of C, for the bits first_bit..last_bit.

    One step for each batch: w_k += c_k z for its samples that w_k of before the step gets wrong. The sum of W over all
    steps is not added up at each step. Within the current run of AVERAGED steps it is a W - V for a steps done, V the
    sum of (steps done before) * (update), which costs nothing where a bit is right; S holds it for the runs before.
    """
    f = np.empty(TILE, np.float32)
    update = np.empty((batch, TILE), np.float32)
    n_rows = max(1, 64 // batch) * batch  # so few samples stay in cache while the tiles take their turns
    for start in range(0, len(Z), n_rows):
        stop = min(start + n_rows, len(Z))
        for k in range(first_bit, last_bit, TILE):
            done = t + start // batch
            for i0 in range(start, stop, batch):
                i1 = min(i0 + batch, stop)
                for i in range(i0, i1):
                    _dots(Z, i, W, k, f)
                    for q in range(TILE):
                        c = C[y[i], k + q]
                        update[i - i0, q] = c if (f[q] > 0) != (c > 0) else 0
                age = np.float32(done % AVERAGED)
                for i in range(i0, i1):
                    for q in range(TILE):
                        c = update[i - i0, q]
                        if c != 0:
                            for j in range(Z.shape[1]):
                                W[k + q, j] += c * Z[i, j]
                                V[k + q, j] += (age * c) * Z[i, j]
                done += 1
                if done % AVERAGED == 0:
                    for q in range(k, k + TILE):
                        for j in range(Z.shape[1]):
                            S[q, j] += AVERAGED * np.float64(W[q, j]) - np.float64(V[q, j])
                            V[q, j] = 0


def _padded(a: np.ndarray, dtype, place: int = 0) -> np.ndarray:
    """A copy with zeros added to whole tiles of bits and whole cache lines, beginning ``place`` bytes into a page.

    Caches tell addresses apart by their place in a page. So the lines of a row are odd in number (the rows of a tile
    would get into each other's way if they were a power of two), and W and V, written in turn, begin half a page apart.
    """
    shape = -(-a.shape[0] // TILE) * TILE, (-(-a.shape[1] // 16) | 1) * 16
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    memory = np.zeros(size + PAGE, np.uint8)
    offset = (place - memory.ctypes.data) % PAGE
    padded = memory[offset : offset + size].view(dtype).reshape(shape)
    padded[: a.shape[0], : a.shape[1]] = a
    return padded


# ---- target codes (Sec. 3.4 to 3.6) -------------------------------------------------------------------------------


def hadamard(order: int) -> np.ndarray:
    """Sylvester's Hadamard matrix, H_ij = (-1)^popcount(i & j) for i, j from 0.

    The closed form printed in the paper, (-1)^((i-1)(j-1)), is another matrix, of rank 2; its recursion is right.

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
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 1 or order & (order - 1):
        raise ValueError(f"order={order!r} is not a power of two; pass 1, 2, 4, 8, ...")
    return _columns(order, np.arange(order))  # it is symmetric


def _columns(order: int, which: np.ndarray) -> np.ndarray:
    """Columns of the Hadamard matrix as rows, without making the others."""
    return 1 - 2 * (np.bitwise_count(np.arange(order) & np.asarray(which)[:, None]) & 1).astype(np.int8)


def _hadamard_product(x: np.ndarray) -> np.ndarray:
    """hadamard(len(x)) @ x by the fast transform: in O(n log n), and without waiting for threads of a busy machine."""
    half = 1
    while half < len(x):
        pairs = x.reshape(-1, 2, half, x.shape[1])
        x = np.concatenate([pairs[:, :1] + pairs[:, 1:], pairs[:, :1] - pairs[:, 1:]], axis=1).reshape(x.shape)
        half *= 2
    return x


def _hamming(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Distances of all rows of A to all rows of B, codes of +1 and -1."""
    A, B = (np.packbits(codes > 0, axis=1).T for codes in (A, B))
    return sum(np.bitwise_count(a[:, None] ^ b).astype(np.int64) for a, b in zip(A, B, strict=True))


def _sign(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, 1, -1).astype(np.int8)


class Codebook:
    """Target codes: a Hadamard column for every label, aligned to the code length by LSH where the lengths differ.

    The order r* is the least power of two that is not below the code length and the number of labels (Eq. 10). If r* is
    not the code length, a column c becomes sign(Wlsh^T c) with a Gaussian Wlsh (Eq. 11). When the columns run out, the
    order doubles and new labels take columns of the upper half, with a new Wlsh; targets once given never change.

    Parameters
    ----------
    n_bits : int
    kind : {"random", "ordered", "spread"}
    n_labels : int or None
        Number of labels if it is known.
    seed : int
    """

    def __init__(self, n_bits: int, kind: str, n_labels: int | None, seed: int):
        self.n_bits, self.kind, self.n_labels, self.seed = n_bits, kind, n_labels, seed
        self.rng = np.random.default_rng(seed)
        self.order = 1 << max(1, int(max(n_bits, n_labels or 1) - 1).bit_length())
        self.grown = False  # whether the columns have run out before
        self.targets: dict = {}  # label, or tuple of labels, -> target code
        self.given: set = set()  # the same codes, to find equal ones
        self.columns = np.empty(0, np.int64)  # of the labels, in the order of their arrival
        self._draw(0)
        if kind == "spread" and n_labels and self.order != n_bits:
            self._choose()

    def _draw(self, first: int) -> None:
        """Queue up the columns from ``first`` on, and draw the Wlsh that aligns them."""
        columns = np.arange(first, self.order)
        self.queue = columns if self.kind == "ordered" else self.rng.permutation(columns)
        self.lsh = self.rng.normal(size=(self.order, self.n_bits)) if self.order != self.n_bits else np.empty((0, 0))

    def _align(self, c: np.ndarray) -> np.ndarray:
        return _sign(c @ self.lsh) if self.lsh.size else c

    def _choose(self) -> None:
        """Of many draws keep the one with the largest least distance, then the least sum of squared inner products."""
        L, size = self.n_labels, self.order * self.n_bits
        nanoseconds = 40 * size + 0.5 * L**2 * self.n_bits  # of a draw, roughly; not timed, to be repeatable
        best = None
        for _ in range(int(np.clip(1e9 / nanoseconds, 1, DRAWS))):
            self._draw(0)
            T = _sign(_hadamard_product(self.lsh)[self.queue[:L]])
            distance = _hamming(T, T)
            np.fill_diagonal(distance, self.n_bits)
            score = distance.min(), -np.square(self.n_bits - 2 * distance).sum()
            if best is None or score > best[0]:
                best = score, self.queue, self.lsh
        _, self.queue, self.lsh = best

    def add(self, labels: list) -> Codebook:
        """A codebook that has targets for these labels too; this one stays as it is."""
        new = [label for label in labels if label not in self.targets]
        if not new:
            return self
        book = copy.copy(self)
        book.rng, book.targets, book.given = copy.deepcopy(self.rng), dict(self.targets), set(self.given)
        for label in new:
            book._assign(label)
        return book

    def _assign(self, label) -> None:
        if not len(self.queue):
            self.order, self.grown = 2 * self.order, True
            self._draw(self.order // 2)
        column = _columns(self.order, self.queue[:1])[0]
        target = self._align(column)
        if self.kind == "spread" and not self.n_labels and self.lsh.size and self.targets:
            # The signs of a column under a fresh Wlsh are fair coins: throw these instead of drawing whole matrices.
            candidates = _sign(self.rng.integers(2, size=(DRAWS, self.n_bits)))
            distance = _hamming(candidates, np.stack(list(self.targets.values())))
            crowding = np.square(self.n_bits - 2 * distance).sum(axis=1)
            target = candidates[np.lexsort((crowding, -distance.min(axis=1)))[0]]
        while self.grown and target.tobytes() in self.given and len(self.given) < 2.0**self.n_bits:
            self.lsh = self.rng.normal(size=self.lsh.shape)
            target = self._align(column)
        self.columns, self.queue = np.append(self.columns, self.queue[0]), self.queue[1:]
        self.targets[label] = target
        self.given.add(target.tobytes())

    def add_sets(self, sets: list[tuple[int, ...]]) -> Codebook:
        """The same for sets of labels 0..L-1: majority of their columns, ties set to balance the code (Sec. 3.6)."""
        new = [labels for labels in sets if labels not in self.targets]
        book = copy.copy(self)
        book.targets = dict(self.targets)
        for labels in new:
            votes = _columns(self.order, self.columns[list(labels)]).sum(axis=0, dtype=np.int64)
            tied = np.random.default_rng([self.seed, *labels]).permutation(np.flatnonzero(votes == 0))
            n_plus = np.clip(self.order // 2 - np.count_nonzero(votes > 0), 0, len(tied))
            votes[tied[:n_plus]] = 1
            book.targets[labels] = self._align(_sign(votes))
        return book


# ---- the doors ----------------------------------------------------------------------------------------------------


def check_features(X, n_features: int | None = None) -> np.ndarray:
    """X as a finite (n, d) float32 array in C order, not copied if it is one. Also in kernels.py: each stands alone."""
    if hasattr(X, "toarray"):
        raise TypeError(f"X is a sparse {type(X).__name__}; dense features are needed: pass X.toarray().")
    given = np.asarray(X)
    if given.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {given.dtype}; numbers are needed: pass X.astype(np.float32) if they are.")
    if given.ndim != 2 or 0 in given.shape:
        way = "x.reshape(1, -1) for one row" if given.ndim < 2 else "X.reshape(len(X), -1) for images, or more samples"
        raise ValueError(f"X has shape {given.shape}; rows of features are needed: pass {way}.")
    if n_features not in (None, given.shape[1]):
        needed = f"but the model was fitted on {n_features}; pass the same features as before."
        raise ValueError(f"X has {given.shape[1]} features, {needed}")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes inf and is found below
        X = np.ascontiguousarray(given, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = not np.isfinite(np.einsum("ij->", X))  # a sum, the fastest look at all of X; it may overflow
    if doubtful and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        value = f"X[{row}, {column}] is {given[row, column]}"
        raise ValueError(f"{value}; finite numbers within float32 are needed: drop, fill or scale them.")
    return X


def check_labels(y, n_samples: int, name: str = "y") -> np.ndarray:
    """Labels as (n,) int64 or strings, or as (n, L) uint8 of 0 and 1 with a 1 in every row."""
    try:
        y = np.asarray(y)
    except ValueError as error:  # rows of different lengths
        way = "a label for each sample, or a matrix of 0 and 1 with a column for each label"
        raise ValueError(f"{name} is not a whole array ({error}); pass {way}.") from None
    if y.dtype == object and {type(label) for label in y.flat} <= {str}:  # a pandas column of strings
        y = y.astype(str)
    if y.dtype.kind not in "buiU" or (y.ndim == 2 and y.dtype.kind == "U"):
        kinds = "integers, strings or a 0/1 matrix are needed: pass such, or y.astype(int) for whole numbers"
        raise TypeError(f"{name} has dtype {y.dtype} and shape {y.shape}; {kinds}.")
    if y.ndim not in (1, 2) or len(y) != n_samples:
        raise ValueError(f"{name} has shape {y.shape} for {n_samples} samples; pass a label or a row of 0/1 for each.")
    if y.ndim == 1 and y.dtype == np.uint64 and y.max() >= 1 << 63:
        raise ValueError(f"{name} holds {y.max()}; numbers below 2**63 are needed: pass y.astype(str).")
    if y.ndim == 1:
        return y if y.dtype.kind == "U" else y.astype(np.int64)
    if y.shape[1] < 2:
        raise ValueError(f"{name} has shape {y.shape}; 2 or more columns of 0/1 are needed: pass y.ravel() for labels.")
    wrong = np.argwhere((y != 0) & (y != 1))
    if len(wrong):
        raise ValueError(f"{name}[{wrong[0][0]}, {wrong[0][1]}] is {y[*wrong[0]]}; 0 and 1 are needed: pass y > 0.")
    if not y.any(axis=1).all():
        row = np.argmin(y.any(axis=1))
        raise ValueError(f"{name}[{row}] has no label; at least one 1 per row is needed: drop such samples.")
    return y.astype(np.uint8)


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows of y in order, where each comes first, and the place among them of every row of y."""
    if y.dtype.kind != "i" or int(y.max()) - int(y.min()) >= len(y):
        rows, first, index = np.unique(y, return_index=True, return_inverse=True, axis=0)
        return rows, first, index.ravel()
    place = y - y.min()  # integers close together, such as 0..9, need no sorting: a table will do
    first = np.full(place.max() + 1, len(y))
    first[place[::-1]] = np.arange(len(y))[::-1]  # what is written last stays: the first of its kind in y
    there = first < len(y)
    return np.flatnonzero(there) + y.min(), first[there], (np.cumsum(there) - 1)[place]


def check_number(value, name: str, least: int = 1, optional: bool = False) -> None:
    """Refuse anything but whole numbers from ``least`` on (or None)."""
    if optional and value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={value!r} is not possible; pass a whole number of at least {least}.")


# ---- the interface ------------------------------------------------------------------------------------------------


def _named_maps(feature_map) -> dict[str, object]:
    """A feature map, or the maps of a list, by the names under which their parameters are known."""
    if isinstance(feature_map, (list, tuple)):
        return {f"feature_map__{i}": part for i, part in enumerate(feature_map)}
    return {} if feature_map is None else {"feature_map": feature_map}


def _need_methods(part, *names: str) -> None:
    if isinstance(part, type):
        raise TypeError(f"feature_map {part!r} is a class; pass a map made by it, such as {part.__name__}().")
    if not all(hasattr(part, name) for name in names):
        raise TypeError(f"feature_map {part!r} has no {' and '.join(names)}; pass one that has, such as RBF().")


def _describe(value) -> str:
    """A parameter in words that are the same for a copy of it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    if hasattr(value, "get_params"):
        return f"{type(value).__name__}({', '.join(f'{k}={_describe(v)}' for k, v in value.get_params().items())})"
    return repr(value) if isinstance(value, (str, int, float, np.generic, type(None))) else type(value).__name__


class OnlineHasher:
    """What every online hashing method shares: the stream, the feature map, codes, parameters and files.

    A method gives `_start(Z)`, which sees the mapped samples of the warm-up, `_learn(Z, y)` and `_decide(Z)`, and
    `_saved`, the names of what it has learned. Calls work on a shallow copy that takes the model's place when all went
    well: what was learned is replaced, never written into, and a failed call changes nothing.
    """

    _supervised = True  # whether labels are needed
    _unit = 1  # samples of an update; a rest that is smaller waits for more
    _least_warmup = 1  # samples that `_start` wants to see
    _saved = ("n_features_in_", "n_seen_", "_seed", "_classes", "_label_kind", "_n_warmup", "_n_mapped", "_X", "_y")

    # Parameters, as scikit-learn wants them.

    def get_params(self, deep: bool = True) -> dict:
        """Parameters by name; with ``deep`` those of the feature maps too, as feature_map__n_anchors."""
        params = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        for prefix, part in _named_maps(self.feature_map).items() if deep else ():
            if hasattr(part, "get_params"):
                params |= {f"{prefix}__{name}": value for name, value in part.get_params().items()}
        return params

    def set_params(self, **params):
        """Set parameters by the names of `get_params`; all of them, or none if one is unknown."""
        model = copy.copy(self)  # the map may be set along with parameters of it
        vars(model).update({name: value for name, value in params.items() if name in self.get_params(deep=False)})
        for name in params:
            if name not in model.get_params():
                names = ", ".join(model.get_params())
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; pass some of {names}.")
        for prefix, part in _named_maps(model.feature_map).items():
            inner = {name[len(prefix) + 2 :]: value for name, value in params.items() if name.startswith(f"{prefix}__")}
            if inner:
                part.set_params(**inner)
        self.__dict__ = vars(model)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_params(deep=False).items())})"

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags  # only scikit-learn itself calls this

        target = TargetTags(required=self._supervised, two_d_labels=True, multi_output=True)
        return Tags(None, target, TransformerTags(), input_tags=InputTags())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_map_")

    def _check_params(self) -> None:
        check_number(self.n_bits, "n_bits")
        check_number(self.warmup, "warmup", optional=True)
        check_number(self.n_threads, "n_threads", optional=True)
        if isinstance(self.random_state, np.random.RandomState):
            kinds = "an int, None or a numpy.random.Generator"
            raise TypeError(f"random_state={self.random_state!r} is of another kind; pass {kinds}.")
        if not isinstance(self.random_state, np.random.Generator):
            check_number(self.random_state, "random_state", least=0, optional=True)
        for part in _named_maps(self.feature_map).values():
            _need_methods(part, "fit", "transform")

    def _settings(self) -> dict[str, str]:
        return {name: _describe(value) for name, value in self.get_params(deep=False).items() if name != "n_threads"}

    def _check_unchanged(self) -> None:
        for name, now in self._settings().items():
            if now != self._begun[name]:
                began = f"{name} was {self._begun[name]} when learning began and is {now} now"
                raise ValueError(f"{began}; set it back, or start anew with fit.")

    # The stream.

    def partial_fit(self, X, y=None, classes=None):
        """Learn from these samples, in order, in one pass.

        Parameters
        ----------
        X : (n, d) array
        y : (n,) integers or strings, or (n, L) 0/1 with at least one 1 per row
        classes : (n_classes,) labels, optional
            All labels the stream will have, if they are known at the first call; others may still come.
        """
        return self._take(X, y, classes, fresh=not hasattr(self, "n_seen_"), last=False)

    def fit(self, X, y=None):
        """Forget everything, then learn from these samples in one pass, an incomplete batch or warm-up too."""
        return self._take(X, y, None, fresh=True, last=True)

    def fit_transform(self, X, y=None) -> np.ndarray:
        """`fit`, then `transform` of the same samples."""
        return self.fit(X, y).transform(X)

    def _take(self, X, y, classes, fresh: bool, last: bool):
        """Check everything, join the samples that wait, fit the feature map once enough are in, and learn."""
        self._check_params()
        model = copy.copy(self)
        if fresh:
            for name in (*self._saved, "feature_map_"):
                vars(model).pop(name, None)
            model._begun, model.n_seen_ = self._settings(), 0
        else:
            model._check_unchanged()
        X = check_features(X, None if fresh else self.n_features_in_)
        y = model._check_y(y, classes, len(X))
        if last and np.ndim(y) == 1:
            model._classes = _distinct(y)[0]
        model.n_features_in_, model.n_seen_ = X.shape[1], model.n_seen_ + len(X)
        if fresh:
            model._seed = int(np.random.default_rng(copy.deepcopy(self.random_state)).integers(2**63))
        elif len(self._X):
            X, y = np.concatenate([self._X, X]), None if y is None else np.concatenate([self._y, y])
        stop = 0
        if model._fit_map(X, last):
            stop = len(X) if last else len(X) // self._unit * self._unit
            n_rows = max(1, BLOCK_ROWS // self._unit) * self._unit if self.feature_map else max(stop, 1)
            for start in range(0, stop, n_rows):
                rows = slice(start, min(start + n_rows, stop))
                model._learn(model._features(X[rows]), None if y is None else y[rows])
        model._X, model._y = X[stop:].copy(), None if y is None else y[stop:].copy()
        if fresh and isinstance(self.random_state, np.random.Generator):
            self.random_state.integers(2**63)  # now that all went well, take the seed from it
        self.__dict__ = vars(model)
        return self

    def _check_y(self, y, classes, n_samples: int) -> np.ndarray | None:
        if not self._supervised:
            return None
        if y is None:
            raise TypeError(f"y is missing; {type(self).__name__} learns from labels: pass one for each sample.")
        y = check_labels(y, n_samples)
        kind = f"{y.shape[1]} columns of 0/1" if y.ndim == 2 else "strings" if y.dtype.kind == "U" else "integers"
        if kind != vars(self).setdefault("_label_kind", kind):
            raise ValueError(f"y holds {kind}, but learning began with {self._label_kind}; pass labels of that kind.")
        if classes is not None:
            if y.ndim == 2:
                raise ValueError("classes are given, but the columns of y are the classes; leave classes out.")
            if np.ndim(classes) != 1 or np.size(classes) == 0:
                raise ValueError(f"classes has shape {np.shape(classes)}; pass a 1-D array of labels.")
            classes = np.unique(check_labels(classes, len(classes), "classes"))
            if (classes.dtype.kind == "U") != (y.dtype.kind == "U"):
                raise ValueError(f"classes has dtype {classes.dtype}, but y holds {kind}; pass both in one form.")
            if self.n_seen_ == 0:
                self._classes = classes
            elif not np.array_equal(classes, getattr(self, "_classes", None)):
                raise ValueError(f"classes {classes.tolist()} are not those of the first call; pass the same or none.")
        return y

    def _fit_map(self, X: np.ndarray, last: bool) -> bool:
        """Fit the feature map on exactly the first samples, as soon as they are in; whether learning can begin."""
        if not hasattr(self, "feature_map_"):
            feature_map = copy.deepcopy(self.feature_map)
            maps = _named_maps(feature_map).values()
            for part in maps if self.warmup is None else ():
                if not hasattr(part, "n_warmup"):
                    raise ValueError(f"warmup=None, but {part!r} has no n_warmup; pass the samples it needs as warmup.")
            of_maps = (self.warmup or max(part.n_warmup for part in maps)) if maps else 1
            self._n_warmup = max(of_maps, self._least_warmup)
            if len(X) < self._n_warmup and not last:
                return False
            Z = X[: self._n_warmup]
            for part in maps:
                part.fit(Z)
                Z = check_features(part.transform(Z))
            self.feature_map_ = feature_map
            self._n_mapped = Z.shape[1]
            self._start(Z)
        return True

    def _features(self, X: np.ndarray) -> np.ndarray:
        Z = X
        for part in _named_maps(self.feature_map_).values():
            Z = check_features(part.transform(Z))
        if Z.shape != (len(X), self._n_mapped):
            raise ValueError(f"feature_map_ made {Z.shape} of {X.shape}; pass one that keeps rows and its own width.")
        return Z

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_seen_"):
            raise NotFittedError(f"this {type(self).__name__} has not been fitted; call fit or partial_fit first.")
        if not hasattr(self, "feature_map_"):
            raise NotFittedError(f"seen {self.n_seen_} of {self._n_warmup} warm-up samples; pass more to partial_fit.")

    # Codes.

    def decision_function(self, X) -> np.ndarray:
        """(n, n_bits) float32 values of the hash functions, whose signs are the codes."""
        self._check_fitted()
        return self._decide(self._features(check_features(X, self.n_features_in_)))

    def transform(self, X) -> np.ndarray:
        """Codes (n, ceil(n_bits / 8)) uint8 of the rows of X: bit k is 1 where hash function k is above 0 (Eq. 1)."""
        self._check_fitted()
        X = check_features(X, self.n_features_in_)
        parts = (self._decide(self._features(X[i : i + BLOCK_ROWS])) for i in range(0, len(X), BLOCK_ROWS))
        return np.concatenate([np.packbits(part > 0, axis=1, bitorder="little") for part in parts])

    def encode(self, X) -> np.ndarray:
        """Another name for `transform`."""
        return self.transform(X)

    # Files.

    def _state(self) -> dict:
        """All that was learned, as arrays and plain values."""
        return {name: getattr(self, name) for name in self._saved if getattr(self, name, None) is not None}

    def _restore(self, state: dict) -> None:
        vars(self).update(state)

    def save(self, path) -> None:
        """Write the model to an .npz file, atomically and without pickle; after `load` learning goes on from here."""
        if not hasattr(self, "n_seen_"):
            raise NotFittedError(f"this {type(self).__name__} has not been fitted; there is nothing to save.")
        self._check_unchanged()
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"{path} is in {folder}, which is not a folder; make it, or pass another path.")
        params = self.get_params(deep=False) | {"feature_map": None}
        if isinstance(self.random_state, np.random.Generator):
            params["random_state"] = None  # a generator is not stored, but the seed drawn from it is
        maps = _named_maps(getattr(self, "feature_map_", self.feature_map))
        head = {"params": params, "maps": list(maps), "started": hasattr(self, "feature_map_")}
        arrays = {"format": f"{FORMAT} {type(self).__name__}", "head": json.dumps(head, default=lambda x: x.item())}
        arrays |= {f"model/{name}": value for name, value in self._state().items()}
        for prefix, part in maps.items():
            _need_methods(part, "get_state", "set_state")
            arrays |= {f"{prefix}/{name}": value for name, value in part.get_state().items()}
        for name, value in arrays.items():
            if np.asarray(value).dtype.hasobject:
                raise TypeError(f"{name} is {value!r}; get_state of a map must give arrays: pass another map to save.")
        temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb") as file:
                np.savez(file, **arrays)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)

    @classmethod
    def load(cls, path, feature_map=None):
        """Read a model written by `save`; if it had a feature map, pass a fresh one of the same kind to be filled."""
        maps, parts = _named_maps(feature_map), {}
        for part in maps.values():
            _need_methods(part, "get_state", "set_state")
        try:
            with open(path, "rb") as file:
                if not zipfile.is_zipfile(file):
                    raise ValueError("it is not a whole .npz file")
                file.seek(0)
                arrays = dict(np.load(file, allow_pickle=False))
            for name, value in arrays.items():
                prefix, _, inner = name.partition("/")
                plain = prefix == "model" and value.ndim == 0
                parts.setdefault(prefix, {})[inner] = value.item() if plain else value
            written = parts["format"][""].item()
            if written != f"{FORMAT} {cls.__name__}":
                raise ValueError(f"it is marked {written!r}, not '{FORMAT} {cls.__name__}'")
            head = json.loads(parts["head"][""].item())
            model = cls(**head["params"] | {"feature_map": feature_map})
            if head["started"]:
                model.feature_map_ = feature_map
            model._restore(parts["model"])
            for name in ("n_features_in_", "n_seen_", "_seed", "_X"):  # all must be there
                getattr(model, name)
        except OSError:
            raise
        except Exception as error:  # numpy and zipfile raise a dozen kinds of errors for a cut or foreign file
            raise ValueError(f"{path} is not a saved {cls.__name__} ({error}); pass a file written by save.") from error
        if list(maps) != head["maps"]:
            had, given = (", ".join(names) or "no feature map" for names in (head["maps"], maps))
            way = "pass fresh maps, alone or in a list as at the start: load(path, feature_map=RBF())"
            raise ValueError(f"{path} was saved with {had}, but {given} was given; {way}.")
        for prefix, part in maps.items():
            part.set_state(parts.get(prefix, {}))
        if head["started"]:
            model.feature_map_ = copy.deepcopy(feature_map)
        model._begun = model._settings()
        return model


class HMOH(OnlineHasher):
    """Hadamard Matrix Guided Online Hashing.

    Parameters
    ----------
    n_bits : int
        Length of the codes, the paper's r.
    feature_map : map, list of maps or None
        Applied in turn before the hash functions, such as ``RBF()`` or ``[UnitLength(), RBF()]`` of kernels.py. A copy
        is fitted on the first samples of the stream, which are then learned from too.
    codebook : {"random", "ordered", "spread"}
        How labels get their columns of the Hadamard matrix: at random, as the paper says; in order, as its published
        code does; or, ours, the best of many random draws where the code length is not the order.
    ensemble : bool
        Average the perceptron over the stream (Sec. 3.7), or keep its last state.
    batch_size : int
        Samples per step, the paper's n_t; an incomplete batch waits for more samples.
    learning_rate : float
        Scales the weights that are handed out. Codes do not depend on it, as learning starts at zero.
    n_classes : int, optional
        Number of labels, where it is known and ``classes`` are not.
    warmup : int, optional
        Samples that the feature map is fitted on; by default the largest ``n_warmup`` of the maps.
    n_threads : int, optional
        By default all cores. The result does not depend on it.
    random_state : int, numpy.random.Generator or None

    Notes
    -----
    Products are float32: features (after the maps) of a size between 1e-20 and 1e15 are safe.

    Attributes
    ----------
    weights_ : (m, n_bits) float32
    targets_ : dict
        Label (or column of y) to its target code, (n_bits,) int8 of +1 and -1.
    label_set_targets_ : dict
        The same for the sets of several labels seen, as tuples of columns.
    n_seen_, n_steps_ : int
        Samples taken in, and updates made of them.
    feature_map_ : the fitted map or maps

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]] * 10), np.array(["cat", "dog"] * 10)
    >>> model = HMOH(n_bits=4, random_state=0).fit(X, y)
    >>> bits = np.unpackbits(model.transform(X[:1]), axis=1, bitorder="little", count=4)
    >>> np.array_equal(2 * bits[0].astype(int) - 1, model.targets_["cat"])
    True
    """

    _learned = ("_W", "_V", "_S", "n_steps_")
    _saved = (*OnlineHasher._saved, *_learned)

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
        self.n_bits, self.feature_map, self.codebook, self.ensemble = n_bits, feature_map, codebook, ensemble
        self.batch_size, self.learning_rate, self.n_classes = batch_size, learning_rate, n_classes
        self.warmup, self.n_threads, self.random_state = warmup, n_threads, random_state

    @property
    def _unit(self) -> int:
        return self.batch_size

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.batch_size, "batch_size")
        check_number(self.n_classes, "n_classes", optional=True)
        if getattr(self, "ensemble", True) not in (True, False):  # HCOH has none
            raise ValueError(f"ensemble={self.ensemble!r} is neither yes nor no; pass True or False.")
        if self.codebook not in ("random", "ordered", "spread"):
            raise ValueError(f'codebook={self.codebook!r} is unknown; pass "random", "ordered" or "spread".')
        if not (isinstance(self.learning_rate, (int, float, np.number)) and 1e-30 < self.learning_rate < 1e30):
            raise ValueError(
                f"learning_rate={self.learning_rate!r} is not possible; pass a positive number, such as 1."
            )

    def _start(self, Z: np.ndarray) -> None:
        self._book = self._new_codebook()
        self._W, self._V = np.zeros((2, self.n_bits, Z.shape[1]), np.float32)
        self._S = np.zeros((self.n_bits, Z.shape[1]))
        self.n_steps_ = 0

    def _new_codebook(self) -> Codebook:
        known = getattr(self, "_classes", np.empty(0)).tolist()
        if self._label_kind.endswith("columns of 0/1"):
            known = list(range(int(self._label_kind.split()[0])))
        if self.n_classes is not None and self.n_classes < len(known):
            raise ValueError(
                f"n_classes={self.n_classes}, but there are {len(known)} classes; raise it, or leave it out."
            )
        return Codebook(self.n_bits, self.codebook, self.n_classes or len(known) or None, self._seed).add(known)

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The target codes of the labels of y, new ones among them, and each sample's row in these."""
        _, first, index = _distinct(y if y.ndim == 1 else np.packbits(y, axis=1))
        arrival = np.argsort(first)
        if y.ndim == 1:
            labels = y[first[arrival]].tolist()
            self._book = self._book.add(labels)
        else:
            labels = [tuple(np.flatnonzero(row).tolist()) for row in y[first[arrival]]]
            self._book = self._book.add_sets(labels)
        return np.stack([self._book.targets[label] for label in labels]), np.argsort(arrival)[index]

    def _learn(self, Z: np.ndarray, y: np.ndarray) -> None:
        C, index = self._targets(y)
        C = _padded(C, np.float32)  # the type of the products: comparing with them takes no conversions
        W, V = _padded(self._W, np.float32), _padded(self._V, np.float32, PAGE // 2)
        S = _padded(self._S, np.float64)

        def run(tiles):
            bits = TILE * tiles[0], TILE * (tiles[-1] + 1)
            _perceptron(Z, index, C, self.batch_size, self.n_steps_, W, V, S, *bits)

        n_tiles = len(W) // TILE
        n_threads = min(
            self.n_threads or _cores(), n_tiles, 1 + Z.size * self.n_bits // 1_000_000
        )  # few for little work
        shares = np.array_split(np.arange(n_tiles), n_threads)
        if n_threads == 1:
            run(shares[0])
        else:
            # A pool made for the call, so that a later fork is safe. This thread takes no share: it waits, as otherwise
            # the one that it starts was often put on the same core, for a time as long as the whole work.
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(run, shares))
        self._W, self._V, self._S = (a[: self.n_bits, : Z.shape[1]] for a in (W, V, S))
        self.n_steps_ += -(-len(Z) // self.batch_size)

    def _unit_weights(self) -> np.ndarray:
        """Weights learned with steps of size one, (n_bits, m): the average of W over all steps, or the last W."""
        if self.n_steps_ == 0:
            raise NotFittedError(f"seen {self.n_seen_} of {self.batch_size} samples of the first batch; pass more.")
        if not self.ensemble:
            return self._W
        since = self.n_steps_ % AVERAGED
        return ((self._S + since * self._W.astype(np.float64) - self._V) / self.n_steps_).astype(np.float32)

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._unit_weights().T

    def decision_function(self, X) -> np.ndarray:
        return np.float32(self.learning_rate) * super().decision_function(X)

    @property
    def weights_(self) -> np.ndarray:
        self._check_fitted()
        return np.float32(self.learning_rate) * self._unit_weights().T

    @property
    def targets_(self) -> dict:
        self._check_fitted()
        return {label: target for label, target in self._book.targets.items() if not isinstance(label, tuple)}

    @property
    def label_set_targets_(self) -> dict:
        self._check_fitted()
        return {label: target for label, target in self._book.targets.items() if isinstance(label, tuple)}

    def _state(self) -> dict:
        if not hasattr(self, "_book"):
            return super()._state()
        targets = np.array(list(self._book.targets.values()), np.int8).reshape(-1, self.n_bits)
        return super()._state() | {"labels": json.dumps(list(self._book.targets)), "targets": targets}

    def _restore(self, state: dict) -> None:
        labels, targets = state.pop("labels", None), state.pop("targets", None)
        super()._restore(state)
        if hasattr(self, "feature_map_"):  # the columns are given out as before, the targets taken from the file
            labels = [tuple(label) if isinstance(label, list) else label for label in json.loads(labels)]
            self._book = self._new_codebook().add([label for label in labels if not isinstance(label, tuple)])
            self._book.targets = dict(zip(labels, targets, strict=True))
            for name in self._learned:  # all must be there
                getattr(self, name)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
