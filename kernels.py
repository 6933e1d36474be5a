"""Feature maps for hash functions: RBF kernel features, rows of unit length, maps side by side.

Copy this file alone into any project: it needs numpy (1.26 or newer) and numba (0.61 or newer),
nothing else. The maps follow the conventions of scikit-learn and work in its pipelines.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
from dataclasses import dataclass

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

__all__ = ["RBF", "Concat", "NotFittedError", "UnitLength"]

FEW_ROWS = 16  # up to which a loop is faster than a product, which has to scale the anchors first
BLOCK_VALUES = 1 << 20  # values of an intermediate result in memory at a time (4 MB)


class NotFittedError(ValueError, AttributeError):
    """Raised when a map is used before it is fitted."""


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


def compiled(function):
    """Compile a function on its first call; its sums may be reordered, to run in vectors."""
    loop = njit(nogil=True, fastmath={"reassoc", "contract"})(function)
    with contextlib.suppress(RuntimeError):  # there is no folder to write to
        loop._cache = _Cache(function)
    return loop


# ---- kernel features (Sec. 3.2) ------------------------------------------------------------------


def _kernel(X: np.ndarray, A: np.ndarray, eta2: float) -> np.ndarray:
    """Return exp(-||x - a||^2 / (2 eta^2)) for the rows x of X and a of A, (n, m) float32."""
    Z = np.empty((len(X), len(A)), np.float32)
    unit = np.float32(1 / math.sqrt(2 * eta2))
    if len(X) <= FEW_ROWS:
        _exponents(X, A, unit, Z)
        return np.exp(Z, out=Z)
    origin = A.mean(axis=0)  # near the data float32 loses fewer digits
    A = (A - origin) * unit
    a_squared = _squared_lengths(A)
    A *= 2
    n_rows = max(1, BLOCK_VALUES // max(A.shape))
    for start in range(0, len(X), n_rows):
        z = Z[start : start + n_rows]
        with np.errstate(over="ignore"):
            x = X[start : start + n_rows] - origin
            x *= unit
            x_squared = _squared_lengths(x)
        x[x_squared > 1e30] = 0  # so far from all anchors that a product could overflow
        np.matmul(x, A.T, out=z)  # -||x - a||^2 = 2 x.a - ||a||^2 - ||x||^2
        z -= a_squared
        z -= x_squared[:, None]
        np.minimum(z, 0, out=z)  # rounding can make a squared distance negative
    return np.exp(Z, out=Z)


@compiled
def _exponents(X, A, unit, Z):  # (n, d) (m, d) () (n, m), all float32
    """Set Z to -||(x - a) * unit||^2 for the rows x of X and a of A."""
    for i in range(len(X)):
        for k in range(len(A)):
            total = np.float32(0)
            for j in range(X.shape[1]):
                # In this order no digits are lost far from the origin, and no square overflows.
                difference = (X[i, j] - A[k, j]) * unit
                total += difference * difference
            Z[i, k] = -total


def _squared_lengths(X: np.ndarray) -> np.ndarray:
    """Return the squared length of each row, also with numpy 1.26."""
    return np.vecdot(X, X) if hasattr(np, "vecdot") else np.einsum("ij,ij->i", X, X)


def _mean_square(X: np.ndarray, origin: np.ndarray) -> float:
    """Return the mean squared distance of the rows of X to the origin."""
    n_rows = max(1, BLOCK_VALUES // X.shape[1])
    blocks = (X[start : start + n_rows] for start in range(0, len(X), n_rows))
    return sum(np.square(x - origin).sum() for x in blocks) / len(X)


def _k_means(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n centres of the rows of X, (n, d) float32: k-means++ and steps of Lloyd (ours)."""
    mean = X.mean(axis=0, dtype=np.float64)
    scale = math.sqrt(_mean_square(X, mean)) or 1.0
    X = ((X - mean) / scale).astype(np.float32)  # whose distances float32 holds well
    centres = X[_spread_rows(X, n, rng)]
    for _ in range(3):  # more steps move the centres little
        nearest, distance = _nearest(X, centres)
        farthest = iter(np.argsort(-distance))
        for k in range(n):
            own = X[nearest == k]
            centres[k] = own.mean(axis=0, dtype=np.float64) if len(own) else X[next(farthest)]
    return (centres * scale + mean).astype(np.float32)


def _spread_rows(X: np.ndarray, n: int, rng: np.random.Generator) -> list[int]:
    """Return the numbers of n rows of X, drawn by k-means++.

    The probability of a row is its squared distance to the nearest row drawn before, over the sum
    of all. To read X less often, a block is drawn by the distances `then`, before the block. Each
    of its rows is kept with probability now / then, as if the rows were drawn one by one.
    """
    chosen = []
    kept = [int(rng.integers(len(X)))]
    then = np.full(len(X), np.inf, np.float32)
    while True:
        chosen += kept
        np.minimum(then, _nearest(X, X[kept])[1], out=then)
        n_missing = n - len(chosen)
        total = then.sum(dtype=np.float64)
        if n_missing == 0 or total == 0:  # it is 0 if all other rows are equal to chosen ones
            return chosen + rng.integers(len(X), size=n_missing).tolist()
        size = min(2 * len(kept), n_missing, 256)
        drawn = rng.choice(len(X), size, p=then.astype(np.float64) / total)
        now = then[drawn]
        least = now * rng.random(size)
        squared = _squared_lengths(X[drawn])
        between = squared[:, None] + squared - 2 * (X[drawn] @ X[drawn].T)
        kept = []
        for i, row in enumerate(drawn.tolist()):
            if now[i] >= least[i]:
                kept.append(row)
                np.minimum(now, between[i], out=now)


def _nearest(X: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row of X the nearest row of A, int64, and its squared distance, float32."""
    nearest = np.empty(len(X), np.int64)
    distance = _squared_lengths(X)
    n_rows = max(1, BLOCK_VALUES // len(A))
    for start in range(0, len(X), n_rows):
        rows = slice(start, start + n_rows)
        nearness = X[rows] @ (2 * A.T) - _squared_lengths(A)  # ||x||^2 - ||x - a||^2
        nearest[rows] = nearness.argmax(axis=1)
        distance[rows] -= nearness.max(axis=1)
    return nearest, np.maximum(distance, 0)  # rounding can make it negative


# hmoh.py and metrics.py have the same checks, because each file works alone.
def check_number(value, name: str, kind=int, least=1, most=math.inf, optional=False) -> None:
    """Check that a parameter is an int, or with kind=float any number, from least to most."""
    if optional and value is None:
        return
    kinds = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
    need = f"pass {'an int' if kind is int else 'a number'} from {least:g} to {most:g}"
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} has the wrong type; {need}.")
    if not least <= value <= most:
        raise ValueError(f"{name}={value} is out of range; {need}.")


def check_choice(value, name: str, choices: tuple) -> None:
    """Check that a parameter is one of some strings, or a bool."""
    if not isinstance(value, (str, bool, np.bool_)) or value not in choices:
        raise ValueError(f"{name}={value!r} is unknown; pass one of {choices}.")


def _as_array(values, name: str) -> np.ndarray:
    """Return values as an array, unless a mask would be lost or numpy cannot read a tensor."""
    if np.ma.is_masked(values):
        raise TypeError(f"{name} has masked entries; drop or fill them: {name}.filled(0).")
    try:
        return np.asarray(values)
    except (RuntimeError, TypeError) as error:  # what PyTorch raises
        way = f"pass {name}.detach().float().cpu().numpy()"
        raise TypeError(f"numpy cannot read {name} ({error}); {way}.") from None


def check_features(X, n_features: int | None = None) -> np.ndarray:
    """Return X as a finite (n, n_features) float32 array in C order, not copied if it is one."""
    given = _as_array(X, "X")
    if given.dtype.kind not in "buif":
        raise TypeError(f"X has dtype {given.dtype}; pass X.astype(np.float32) or X.toarray().")
    if given.ndim != 2 or given.size == 0 or n_features not in (None, given.shape[1]):
        need = f"(n, {n_features or 'n_features'})"
        raise ValueError(f"X has shape {given.shape}, not {need}; pass a row for each sample.")
    with np.errstate(over="ignore"):  # values that become infinite are refused below
        X = np.ascontiguousarray(given, np.float32)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(f"X[{row}, {column}] is {given[row, column]}; drop, fill or scale it.")
    return X


def _check_array(a, name: str, shape: tuple) -> None:
    a = np.asarray(a)
    if a.dtype != np.float32 or a.shape != shape or not a.size or not np.isfinite(a).all():
        raise ValueError(f"{name} is {a.dtype} {a.shape}, not float32 {shape} and finite")


# ---- the maps ------------------------------------------------------------------------------------


class _Map:
    """Base class of the maps: dataclasses whose fields are the parameters."""

    def _check_params(self) -> None: ...

    def _leaves(self) -> dict[str, _Map]:
        """Return the maps that do the work, by the prefixes of the names of their parameters."""
        return {"": self}

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of a row."""
        leaf = next(iter(self._leaves().values()))
        if not hasattr(leaf, leaf._fitted[0]):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")
        return getattr(leaf, leaf._fitted[0]).shape[-1]

    def fit(self, X, y=None):
        """Fit the map on the rows of X."""
        new = copy.copy(self)
        new._check_params()
        new._fit(check_features(X))
        self.__dict__ = vars(new)
        return self

    def transform(self, X) -> np.ndarray:
        """Return the features that the map makes of the rows of X, (n, m) float32."""
        return self._transform(check_features(X, self.n_features_in_))

    def fit_transform(self, X, y=None) -> np.ndarray:
        """Call `fit`, then `transform` on the same rows."""
        return self.fit(X).transform(X)

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters; with `deep` also those of maps inside (maps__1__n_anchors)."""
        params = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for prefix, leaf in self._leaves().items() if deep else ():
            params |= {prefix + name: getattr(leaf, name) for name in leaf.__dataclass_fields__}
        return params

    def set_params(self, **params):
        """Set parameters by the names of `get_params`: all of them, or none on an error."""
        new = copy.copy(self)
        vars(new).update({name: params[name] for name in vars(self) if name in params})
        unknown = set(params) - set(new.get_params())
        if unknown:
            raise ValueError(f"no parameter {min(unknown)!r}; pass one of {[*new.get_params()]}.")
        for name, value in params.items():
            prefix, joint, last = name.rpartition("__")
            setattr(new._leaves().get(prefix + joint, new), last, value)
        self.__dict__ = vars(new)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags  # the only caller

        features = TransformerTags(preserves_dtype=["float32"])
        return Tags(None, TargetTags(required=False), features, input_tags=InputTags())

    def get_state(self) -> dict[str, np.ndarray]:
        """Return parameters and fitted arrays, for a file. What is None is left out."""
        leaves = self._leaves().items()
        state = {prefix + name: a for prefix, leaf in leaves for name, a in vars(leaf).items()}
        return {name: np.asarray(a) for name, a in state.items() if a is not None}

    def set_state(self, state: dict[str, np.ndarray]):
        """Make this map equal to the one whose `get_state` gave the state, or change nothing."""
        new = copy.deepcopy(self)
        rest = {name: a.item() if a.ndim == 0 else a for name, a in state.items()}
        try:
            for prefix, leaf in new._leaves().items():
                names = [*leaf.__dataclass_fields__, *leaf._fitted]
                given = {name: rest.pop(prefix + name) for name in names if prefix + name in rest}
                leaf.__dict__ = dict.fromkeys(leaf.__dataclass_fields__) | given
                leaf._check_params()
                if not given.keys().isdisjoint(leaf._fitted):
                    leaf._check_fitted()
            widths = {getattr(leaf, "n_features_in_", None) for leaf in new._leaves().values()}
            if rest or len(widths) > 1:
                raise ValueError(f"it has {sorted(rest)} too, or maps of {widths} features")
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"not a state of {self} ({error}); pass one of get_state.") from None
        self.__dict__ = vars(new)
        return self


@dataclass
class RBF(_Map):
    """Gaussian kernel features, z(x)_j = exp(-||x - a_j||^2 / (2 eta^2)) (paper, Sec. 3.2).

    The anchors a_j are the first rows given to `fit`, as the paper takes the first points of the
    stream. eta^2 is the mean squared distance of the other rows to the anchors (on a stream there
    are no other rows, so of the anchors to each other), divided by ``divisor``. The published code
    shows that this divisor is what the paper calls the bandwidth.

    Parameters
    ----------
    n_anchors : int
        The paper's m, the number of features that come out.
    divisor : float
        In the paper's ablation 6 for MNIST, 8 for CIFAR-10 and 10 for the other sets.
    center : bool
        Subtract the mean feature (ours), because kernel features are all positive and the
        perceptron has no bias.
    anchors : {"first", "kmeans"}
        "kmeans" (ours) takes centres of the first 5 * n_anchors rows, and eta^2 from all rows.
    random_state : int, optional
        For k-means.

    Attributes
    ----------
    anchors_, mean_, eta2_ : (n_anchors, d) float32, (n_anchors,) float32, float

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [1.0], [1.0]])
    >>> RBF(n_anchors=2, divisor=1).fit(X).transform([[0.0]]).round(3)
    array([[1.   , 0.135]], dtype=float32)
    """

    n_anchors: int = 300
    divisor: float = 10.0
    center: bool = False
    anchors: str = "first"
    random_state: int | None = None

    _fitted = ("anchors_", "eta2_", "mean_")  # the first has a column for every feature

    @property
    def n_warmup(self) -> int:
        """Return how many samples of a stream to fit on: those it takes anchors from, and two."""
        self._check_params()
        return max(2, self.n_anchors * (5 if self.anchors == "kmeans" else 1))

    def _check_params(self) -> None:
        check_choice(self.anchors, "anchors", ("first", "kmeans"))
        check_choice(self.center, "center", (True, False))
        # The mean leaves out the kernel value of an anchor with itself, so it needs two.
        check_number(self.n_anchors, "n_anchors", least=2 if self.center else 1)
        check_number(self.divisor, "divisor", float, 1e-30, 1e30)
        check_number(self.random_state, "random_state", least=0, most=2**63 - 1, optional=True)

    def _check_fitted(self) -> None:
        _check_array(self.anchors_, "anchors_", (self.n_anchors, *np.shape(self.anchors_)[-1:]))
        _check_array(self.mean_, "mean_", (self.n_anchors,))
        check_number(self.eta2_, "eta2_", float, 0)
        # Within these limits no distance in units of eta is infinity times zero.
        if np.abs(self.anchors_).max() > 1e33 or not 1e-66 <= self.eta2_ <= 1e66:
            way = "pass samples that differ, scaled to about 1"
            raise ValueError(f"the anchors, or eta2_={self.eta2_:.3g}, exceed float32; {way}.")

    def _fit(self, X: np.ndarray) -> None:
        n = self.n_anchors
        if len(X) < max(2, n):
            raise ValueError(f"{len(X)} samples are too few for {n} anchors; lower n_anchors.")
        self.anchors_, others = X[:n].copy(), X[n:]
        if self.anchors == "kmeans":
            seen, others = X[: self.n_warmup], X
            self.anchors_ = _k_means(seen, n, np.random.default_rng(self.random_state))
        # The mean of ||x - a||^2 over all pairs is the mean of ||x - o||^2 plus the mean of
        # ||a - o||^2, where o is the mean anchor. Without other rows x is an anchor too, and n of
        # the n^2 pairs do not count, because they pair an anchor with itself.
        origin = self.anchors_.mean(axis=0, dtype=np.float64)
        spread = _mean_square(self.anchors_, origin)
        squared = _mean_square(others, origin) + spread if len(others) else 2 * spread * n / (n - 1)
        self.eta2_ = float(squared / self.divisor)
        self.mean_ = np.zeros(n, np.float32)
        self._check_fitted()
        if self.center and self.anchors == "kmeans":
            # Not from the centres, which are nearer to each other than rows are to them.
            self.mean_ = self._transform(seen).mean(axis=0, dtype=np.float64).astype(np.float32)
        elif self.center:
            Z = self._transform(self.anchors_).astype(np.float64)
            self.mean_ = ((Z.sum(axis=0) - Z.diagonal()) / (n - 1)).astype(np.float32)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        Z = _kernel(X, self.anchors_, self.eta2_)
        if self.center:
            Z -= self.mean_
        return Z


@dataclass
class UnitLength(_Map):
    """Subtract the mean row of the fitted data, then scale every row to length one.

    A zero row stays zero. The published code of the compared methods takes such features unless
    told otherwise (fcakir/mihash, online-hashing/+Datasets/cifar.m, lines 25 and 40 to 42).

    On a stream it is fitted on ``n_warmup`` samples; more gave no better codes on five data sets.

    >>> UnitLength().fit([[0.0, 0.0], [2.0, 0.0]]).transform([[4.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """

    n_warmup: int = 100
    _fitted = ("mean_",)

    def _check_params(self) -> None:
        check_number(self.n_warmup, "n_warmup")

    def _check_fitted(self) -> None:
        _check_array(self.mean_, "mean_", (np.size(self.mean_),))

    def _fit(self, X: np.ndarray) -> None:
        self.mean_ = X.mean(axis=0, dtype=np.float64).astype(np.float32)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        Z = X - self.mean_
        # Divided by the largest value first, so that no square overflows or vanishes.
        largest = np.maximum(Z.max(axis=1), -Z.min(axis=1))
        largest[largest == 0] = 1
        Z /= largest[:, None]
        Z /= np.maximum(np.sqrt(_squared_lengths(Z)), 1)[:, None]  # only a zero row is shorter
        return Z


@dataclass
class Concat(_Map):
    """Set the features of several maps side by side.

    None stands for the features as they are. `fit` puts fitted copies in the places of the maps.

    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0]])
    >>> Concat([None, RBF(n_anchors=3)]).fit(X).transform(X).shape
    (3, 5)
    """

    maps: list

    def _leaves(self) -> dict[str, _Map]:
        if not any(self.maps) or not all(isinstance(part, _Map | None) for part in self.maps):
            raise TypeError(f"maps={self.maps!r} are no maps; pass a list such as [None, RBF()].")
        parts = {f"maps__{i}__": part._leaves() for i, part in enumerate(self.maps) if part}
        return {outer + inner: leaf for outer in parts for inner, leaf in parts[outer].items()}

    @property
    def n_warmup(self) -> int:
        """Return how many samples of a stream to fit on: the most that a map needs."""
        return max(leaf.n_warmup for leaf in self._leaves().values())

    def _fit(self, X: np.ndarray) -> None:
        self._leaves()  # checks them
        self.maps = [part and copy.deepcopy(part).fit(X) for part in self.maps]

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate([part.transform(X) if part else X for part in self.maps], axis=1)
