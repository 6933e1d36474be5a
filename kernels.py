"""Feature maps for hash functions: RBF kernel features on anchors, and rows of unit length.

`Concat` sets the features of several maps side by side. Copy this file alone into any project:
it needs numpy (1.26 or newer) and numba (0.61 or newer), nothing else. The maps follow the
conventions of scikit-learn and work in its pipelines.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(100, 5))
>>> RBF(n_anchors=20).fit(X).transform(X).shape
(100, 20)
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import os
import sys
import warnings

import numba
import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

__all__ = ["RBF", "Concat", "NotFittedError", "UnitLength"]

BLOCK_VALUES = 1 << 20  # values of an intermediate result in memory at a time (4 MB)
# Anchors, and eta^2, within these limits: no distance in units of eta is infinity times zero.
LARGEST = 1e33
BANDWIDTHS = (1e-66, 1e66)
FEW_ROWS = 16  # up to so many rows a loop is faster than a product, see `_exponents`
ROWS_PER_ANCHOR = 5  # that k-means looks at
LLOYD_STEPS = 3  # more of them move the centres little
MOST_DRAWN = 256  # rows that k-means++ draws at a time


class NotFittedError(ValueError, AttributeError):
    """Raised when a map is used before it is fitted.

    If scikit-learn is in use it is also an error of its class, which its tools catch.
    """

    def __new__(cls, *args):
        theirs = sys.modules.get("sklearn.exceptions")
        if cls is NotFittedError and theirs is not None:
            cls = type(cls.__name__, (cls, theirs.NotFittedError), {})
        return super().__new__(cls, *args)

    def __reduce__(self):
        return NotFittedError, self.args


# ---- input checks --------------------------------------------------------------------


def check_integer(value, name: str, least: int = 1) -> None:
    """Check that a parameter is a whole number of at least `least`."""
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (int, np.integer)):
        need = f"pass an int of at least {least}"
        raise TypeError(f"{name}={value!r} is not a whole number; {need}.")
    if value < least:
        raise ValueError(f"{name}={value} is too small; pass an int of at least {least}.")


def check_real(value, name: str, least: float = 1e-30, most: float = 1e30) -> None:
    """Check that a parameter is a number from `least` to `most`."""
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}={value!r} is not a number; pass a float.")
    if not least <= value <= most:
        need = f"pass a number from {least:g} to {most:g}"
        raise ValueError(f"{name}={value} is out of range; {need}.")


def check_features(
    X, n_features: int | None = None, name: str = "X", owner: str = "the model"
) -> np.ndarray:
    """Return X as a finite (n, d) float32 array in C order, not copied if it is one.

    `n_features` is what `owner` was fitted on. Some of the words of the errors are those that
    scikit-learn's own checks look for.

    hmoh.py has the same function, because each file works alone.
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


# ---- distances to anchors ------------------------------------------------------------


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
    their meaning. hmoh.py has the same function, because each file works alone.
    """
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    loop = njit(**options)(function)
    # Without a folder for the cache, as in a read-only install, there is none.
    with contextlib.suppress(RuntimeError):
        loop._cache = _DiskCache(function)
    return loop


# For few rows. A product needs scaled anchors, and to scale them takes longer than the loop.
# So there are none to be kept, which could get out of step with the anchors. For one row the
# loop is no slower than a product would be with scaled anchors: both wait for the anchors to
# come from memory. Time of `RBF.transform` with the product, in times of the loop:
#
#     anchors x features    1 row    8 rows    16 rows    32 rows    64 rows
#             300 x 784       8.3       2.7        1.5        1.0        0.7
#           1,000 x 784       9.5       2.9        1.5        1.0        0.7
#             300 x 128       7.8       3.2        1.9        1.3        0.9
#           1,000 x 128       9.0       2.7        1.6        1.1        0.7
#
# The product had one thread. With two, 1,000 x 784 gave 1.2 for 16 rows and 0.9 for 24.
@compiled
def _exponents(X, A, unit, Z):
    """Set Z to -||(x - a) * unit||^2 for the rows x of X and a of A.

    X (n, d) float32, A (m, d) float32, unit float32, Z (n, m) float32.
    """
    for i in range(len(X)):
        for k in range(len(A)):
            total = np.float32(0)
            for j in range(X.shape[1]):
                # Subtracted first, so that no digits are lost far from the origin. Scaled
                # before it is squared, so that no square overflows or vanishes.
                difference = (X[i, j] - A[k, j]) * unit
                total += difference * difference
            Z[i, k] = -total


# ---- anchors by k-means --------------------------------------------------------------

# Rows are centred and of mean squared length one, so float32 is exact enough for distances and
# cannot overflow. Sums over the rows of a centre are float64, because there may be many rows.


def _nearest(X: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row of X the nearest row of A, int64, and its squared distance, float32."""
    nearest = np.empty(len(X), np.int64)
    distance = _squared_lengths(X)
    a_squared = _squared_lengths(A)
    doubled = 2 * A
    n_rows = max(1, BLOCK_VALUES // len(A))
    for start in range(0, len(X), n_rows):
        rows = slice(start, start + n_rows)
        # ||x - a||^2 = ||x||^2 - (2 x.a - ||a||^2)
        nearness = X[rows] @ doubled.T
        nearness -= a_squared
        nearest[rows] = nearness.argmax(axis=1)
        distance[rows] -= nearness.max(axis=1)
    return nearest, np.maximum(distance, 0)  # rounding can make it negative


def _spread_rows(X: np.ndarray, n: int, rng: np.random.Generator) -> list[int]:
    """Return the numbers of n rows of X, drawn by k-means++.

    Each row is drawn with a probability in proportion to its squared distance to the nearest row
    that was drawn before. One row at a time, X would be read n times. So a block of rows is drawn
    by the distances from before the block. Each of them is kept with the probability now / then,
    where `now` and `then` are its distances at its turn and before the block. Those that are kept
    are distributed as if they were drawn one by one.
    """
    chosen = [int(rng.integers(len(X)))]
    _, then = _nearest(X, X[chosen])
    n_kept = 1
    while len(chosen) < n:
        n_missing = n - len(chosen)
        total = then.sum(dtype=np.float64)
        if total == 0:
            # All other rows are equal to one that was drawn.
            return chosen + rng.integers(len(X), size=n_missing).tolist()
        size = min(2 * n_kept, n_missing, MOST_DRAWN)
        drawn = rng.choice(len(X), size, p=then.astype(np.float64) / total)
        now = then[drawn]
        least = now * rng.random(size)
        x = X[drawn]
        squared = _squared_lengths(x)
        between = squared[:, None] + squared - 2 * (x @ x.T)
        kept = []
        for i, row in enumerate(drawn.tolist()):
            if now[i] >= least[i]:
                kept.append(row)
                np.minimum(now, between[i], out=now)
        n_kept = len(kept)
        chosen += kept
        np.minimum(then, _nearest(X, X[kept])[1], out=then)
    return chosen


@compiled
def _add_rows(X, nearest, sums, counts):
    """Add each row of X to the sum of the centre that is nearest to it, and count it there.

    X (n, d) float32, nearest (n,) int64, sums (m, d) float64, counts (m,) int64.
    """
    for i in range(len(X)):
        k = nearest[i]
        counts[k] += 1
        for j in range(X.shape[1]):
            sums[k, j] += X[i, j]


def _k_means(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n centres of the rows of X, (n, d) float32: k-means++, then some steps of Lloyd."""
    centres = X[_spread_rows(X, n, rng)]
    for _ in range(LLOYD_STEPS):
        nearest, distance = _nearest(X, centres)
        sums = np.zeros(centres.shape)
        counts = np.zeros(n, np.int64)
        _add_rows(X, nearest, sums, counts)
        # A centre without rows moves to one of the rows that are farthest from their centres.
        empty = np.flatnonzero(counts == 0)
        sums[empty] = X[np.argsort(-distance)[: len(empty)]]
        counts[empty] = 1
        centres = (sums / counts[:, None]).astype(np.float32)
    return centres


# ---- the maps ------------------------------------------------------------------------


class _Map:
    """Base class of the maps: parameters as in scikit-learn, and the state of a saved model."""

    _fitted: tuple[str, ...] = ()  # names of the fitted arrays
    _added: tuple[str, ...] = ()  # parameters that the states of older files lack

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters by name."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params):
        """Set parameters by name: all of them, or none on an error."""
        self._check_known(params)
        vars(self).update(params)
        return self

    def _check_known(self, params: dict) -> None:
        """Check that these are names of parameters."""
        known = self.get_params()
        for name in params:
            if name not in known:
                way = f"pass one of {', '.join(known) or 'no parameters'}"
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; {way}.")

    def __repr__(self) -> str:
        params = self.get_params(deep=False).items()
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in params)})"

    def __sklearn_tags__(self):
        # Only scikit-learn calls this, so it is installed.
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        target = TargetTags(required=False)
        features = TransformerTags(preserves_dtype=["float32"])
        return Tags(None, target, features, input_tags=InputTags())

    def set_output(self, *, transform: str | None = None):
        """Accept None and "default", as scikit-learn's pipelines ask for: features are arrays."""
        if transform not in (None, "default"):
            way = 'pass "default", and make a DataFrame of what transform returns'
            raise ValueError(f"transform={transform!r} is not supported; {way}.")
        return self

    # The first of the fitted arrays has a column for each feature that comes in, and a row, or an
    # entry, for each that comes out.

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of a row."""
        return getattr(self, self._fitted[0]).shape[-1]

    @property
    def n_features_out_(self) -> int:
        """Return the number of features that `transform` makes of a row."""
        return len(getattr(self, self._fitted[0]))

    def _keep_names(self, names: np.ndarray | None) -> None:
        """Keep the names of the columns, or forget earlier ones if there are none."""
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def _check_X(self, X) -> np.ndarray:
        """Return the features of rows to transform."""
        if not hasattr(self, self._fitted[0]):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted; call fit(X) first.")
        check_names(X, vars(self).get("feature_names_in_"))
        return check_features(X, self.n_features_in_, owner=type(self).__name__)

    def fit_transform(self, X, y=None) -> np.ndarray:
        """Call `fit`, then `transform` on the same rows."""
        return self.fit(X).transform(X)

    def get_state(self) -> dict[str, np.ndarray]:
        """Return parameters and fitted arrays: all that `set_state` needs.

        A parameter that is None, which no array can hold, is left out.
        """
        names = list(self.get_params())
        names += [name for name in self._fitted if hasattr(self, name)]
        state = {name: getattr(self, name) for name in names}
        return {name: np.asarray(a) for name, a in state.items() if a is not None}

    def set_state(self, state: dict[str, np.ndarray]):
        """Make this map equal to the one whose `get_state` gave the state.

        A parameter that was added later, and that the state lacks, gets its default.
        """
        names = list(self.get_params())
        fitted = list(self._fitted)
        way = "pass a map of the kind that was saved, and a file written by save"
        signature = inspect.signature(type(self)).parameters
        defaults = {name: np.asarray(signature[name].default) for name in self._added}
        state = defaults | state
        if set(state) not in (set(names), {*names, *fitted}):
            kind = type(self).__name__
            reason = f"a state of {sorted(state)} does not belong to {kind}"
            raise ValueError(f"{reason}; {way}.")
        values = {name: a.item() if a.ndim == 0 else a for name, a in state.items()}
        new = copy.copy(self)
        for name in fitted:
            vars(new).pop(name, None)
        vars(new).update(values)
        try:
            new._check_params()
            if fitted[0] in values:
                new._check_arrays()
        except (TypeError, ValueError) as error:
            raise ValueError(f"the state is wrong ({error}); {way}.") from None
        self.__dict__ = vars(new)
        return self

    def _check_params(self) -> None:
        """Check the parameters."""

    def _check_arrays(self) -> None:
        """Check the fitted arrays of a state from a file."""


def _check_array(a, name: str, n_dimensions: int) -> None:
    """Check an array of a saved map."""
    a = np.asarray(a)
    if a.dtype != np.float32 or a.ndim != n_dimensions or a.size == 0:
        need = f"float32 with {n_dimensions} dimensions is needed"
        raise ValueError(f"{name} is {a.dtype} of shape {a.shape}, but {need}")
    if not np.abs(a).max() <= LARGEST:
        raise ValueError(f"{name} has values that are not from -1e33 to 1e33")


class RBF(_Map):
    """Gaussian kernel features, z(x)_j = exp(-||x - a_j||^2 / (2 eta^2)) (paper, Sec. 3.2).

    The anchors a_j are the first rows given to `fit`, because the paper takes the first points
    of the stream. eta^2 is a mean squared distance, divided by ``divisor``: that of the other
    rows to the anchors or, if there are no other rows, that between different anchors. The
    published code shows that this divisor is what the paper calls the bandwidth.

    On a stream there are no other rows: the paper starts to learn when the anchors are in.

    With ``anchors="kmeans"`` (ours, not the paper's) the anchors are centres of the first
    5 * n_anchors rows: k-means++ and three steps of Lloyd, whose cost grows with n_anchors^2 and
    with the number of features, not with the stream. An anchor is then no row. So eta^2 is the
    mean squared distance of all rows given to `fit` to the anchors, divided by ``divisor``.

    Few rows are mapped by a compiled loop, many by a matrix product. The features of a row agree
    up to the rounding of float32.

    Parameters
    ----------
    n_anchors : int
        The paper's m, the number of features that come out.
    divisor : float
        In the paper's ablation 6 for MNIST, 8 for CIFAR-10 and 10 for the other sets.
    center : bool
        Subtract the mean feature (ours, not the paper's). The perceptron has no bias, and
        kernel features are all positive. The mean is estimated from the kernel values
        between different anchors or, with k-means, from the rows that it looked at.
    anchors : {"first", "kmeans"}
        The first rows, or centres of five times as many.
    random_state : int, optional
        For k-means. The same number and rows give the same anchors. None draws others each time.

    Attributes
    ----------
    anchors_ : (n_anchors, d) float32
    eta2_ : float
    mean_ : (n_anchors,) float32
        Zero without ``center``.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [1.0], [1.0]])
    >>> RBF(n_anchors=2, divisor=1).fit(X).transform([[0.0]]).round(3)
    array([[1.   , 0.135]], dtype=float32)
    """

    _fitted = ("anchors_", "eta2_", "mean_")
    _added = ("anchors", "random_state")

    def __init__(
        self,
        n_anchors: int = 300,
        divisor: float = 10.0,
        center: bool = False,
        anchors: str = "first",
        random_state: int | None = None,
    ):
        self.n_anchors = n_anchors
        self.divisor = divisor
        self.center = center
        self.anchors = anchors
        self.random_state = random_state

    @property
    def n_warmup(self) -> int:
        """Return how many samples of a stream to fit on: those it takes anchors from, and two."""
        self._check_params()
        if self.anchors == "kmeans":
            return ROWS_PER_ANCHOR * self.n_anchors
        return max(2, self.n_anchors)

    def _check_params(self) -> None:
        if not isinstance(self.center, (bool, np.bool_)):
            raise TypeError(f"center must be True or False, not {self.center!r}.")
        # The mean leaves out the kernel value of an anchor with itself, so it needs two.
        check_integer(self.n_anchors, "n_anchors", least=2 if self.center else 1)
        check_real(self.divisor, "divisor")
        if not isinstance(self.anchors, str) or self.anchors not in ("first", "kmeans"):
            way = 'pass "first" or "kmeans"'
            raise ValueError(f"anchors={self.anchors!r} is unknown; {way}.")
        if self.random_state is not None:
            check_integer(self.random_state, "random_state", least=0)
            check_real(self.random_state, "random_state", 0, 2**63 - 1)  # a file holds it

    def _check_arrays(self) -> None:
        _check_array(self.anchors_, "anchors_", 2)
        _check_array(self.mean_, "mean_", 1)
        if not len(self.anchors_) == len(self.mean_) == self.n_anchors:
            sizes = f"{len(self.anchors_)} and {len(self.mean_)}"
            need = f"n_anchors is {self.n_anchors}"
            raise ValueError(f"anchors_ and mean_ have length {sizes}, but {need}")
        check_real(self.eta2_, "eta2_", *BANDWIDTHS)

    def fit(self, X, y=None) -> RBF:
        """Take the anchors and the bandwidth from the rows of X."""
        self._check_params()
        names = column_names(X)
        X = check_features(X)
        if len(X) < self.n_anchors:
            reason = f"{len(X)} samples are too few for {self.n_anchors} anchors"
            raise ValueError(f"{reason}; pass more, or lower n_anchors.")
        if len(X) == 1:
            reason = "1 sample has no distance to another, so there is no bandwidth"
            raise ValueError(f"{reason}; pass at least 2.")
        if self.anchors == "kmeans":
            anchors = self._centres(X)
            others = X
        else:
            anchors = X[: self.n_anchors].copy()
            others = X[self.n_anchors :]
        # The mean of ||x - a||^2 over all pairs is the mean of ||x - o||^2 plus the mean of
        # ||a - o||^2, where o is the mean anchor.
        origin = anchors.mean(axis=0, dtype=np.float64)
        if len(others):
            mean_squared = _mean_square(others, origin) + _mean_square(anchors, origin)
        else:
            # Of the n^2 pairs of anchors, n pair an anchor with itself, at distance 0.
            n = len(anchors)
            mean_squared = 2 * _mean_square(anchors, origin) * n / (n - 1)
        if not mean_squared > 0:
            reason = f"all {len(X)} samples are equal, so there is no bandwidth"
            raise ValueError(f"{reason}; pass samples that differ.")
        eta2 = float(mean_squared / self.divisor)
        largest = float(np.abs(anchors).max())
        if largest > LARGEST or not BANDWIDTHS[0] <= eta2 <= BANDWIDTHS[1]:
            reason = f"anchors up to {largest:.3g} with eta^2 = {eta2:.3g} exceed float32"
            raise ValueError(f"{reason}; pass features scaled to about 1.")
        self._keep_names(names)
        self.anchors_ = anchors
        self.eta2_ = eta2
        self.mean_ = np.zeros(len(anchors), np.float32)
        if self.center and self.anchors == "kmeans":
            # Centres are nearer to each other than rows are to them, so their own mean feature is
            # 1.5 times too large on MNIST, 1.9 times on cifar10_vgg16. It would cost .010 and .028
            # of mAP there (unit rows, 32 bits, 300 anchors, three seeds).
            Z = self.transform(X[: self.n_warmup])
            self.mean_ = Z.mean(axis=0, dtype=np.float64).astype(np.float32)
        elif self.center:
            own = self.transform(anchors).astype(np.float64)
            others_sum = own.sum(axis=0) - own.diagonal()
            self.mean_ = (others_sum / (len(own) - 1)).astype(np.float32)
        return self

    def _centres(self, X: np.ndarray) -> np.ndarray:
        """Return the anchors that k-means finds in the first rows of X."""
        X = X[: self.n_warmup]
        mean = X.mean(axis=0, dtype=np.float64)
        scale = math.sqrt(_mean_square(X, mean))
        if scale == 0:
            return X[: self.n_anchors].copy()  # all rows are equal
        rows = X - mean
        rows /= scale
        rng = np.random.default_rng(self.random_state)
        centres = _k_means(rows.astype(np.float32), self.n_anchors, rng)
        return (centres * scale + mean).astype(np.float32)

    def transform(self, X) -> np.ndarray:
        """Return the (n, n_anchors) float32 features of the rows of X."""
        X = self._check_X(X)
        Z = np.empty((len(X), len(self.anchors_)), np.float32)
        unit = np.float32(1 / math.sqrt(2 * self.eta2_))
        if len(X) > FEW_ROWS:
            self._transform_many(X, unit, Z)
            return Z
        _exponents(X, self.anchors_, unit, Z)
        np.exp(Z, out=Z)
        if self.center:
            Z -= self.mean_
        return Z

    def _transform_many(self, X: np.ndarray, unit: np.float32, Z: np.ndarray) -> None:
        """Set Z to the features of the rows of X, with one matrix product for a block of rows."""
        # Distances do not change when the origin moves. Near the data and in units of eta,
        # float32 loses fewer digits.
        origin = self.anchors_.mean(axis=0)
        a = self.anchors_ - origin
        a *= unit
        a_squared = _squared_lengths(a)
        a *= 2
        n_rows = max(1, BLOCK_VALUES // max(a.shape))
        for start in range(0, len(X), n_rows):
            z = Z[start : start + n_rows]
            with np.errstate(over="ignore"):
                x = X[start : start + n_rows] - origin
                x *= unit
                x_squared = _squared_lengths(x)
            # These rows are so far away that only x_squared matters. They are set to 0,
            # because their products could overflow.
            x[x_squared > 1e30] = 0
            # -||x - a||^2 = 2 x.a - ||a||^2 - ||x||^2, and a is doubled already
            np.matmul(x, a.T, out=z)
            z -= a_squared
            z -= x_squared[:, None]
            np.minimum(z, 0, out=z)  # rounding can make a squared distance negative
            np.exp(z, out=z)
            if self.center:
                z -= self.mean_


def _squared_lengths(X: np.ndarray) -> np.ndarray:
    """Return the squared length of each row, also with numpy 1.26."""
    return np.vecdot(X, X) if hasattr(np, "vecdot") else np.einsum("ij,ij->i", X, X)


def _mean_square(X: np.ndarray, origin: np.ndarray) -> float:
    """Return the mean squared distance of the rows of X to the origin."""
    n_rows = max(1, BLOCK_VALUES // X.shape[1])
    total = 0
    for start in range(0, len(X), n_rows):
        total += np.square(X[start : start + n_rows] - origin).sum()
    return total / len(X)


class UnitLength(_Map):
    """Subtract the mean row of the fitted data, then scale every row to length one.

    A zero row stays zero. The published code of the compared methods takes such features unless
    told otherwise (fcakir/mihash, online-hashing/+Datasets/cifar.m, lines 25 and 40 to 42).

    Attributes
    ----------
    mean_ : (d,) float32

    Examples
    --------
    >>> UnitLength().fit([[0.0, 0.0], [2.0, 0.0]]).transform([[4.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """

    _fitted = ("mean_",)
    n_warmup = 1000

    def _check_arrays(self) -> None:
        _check_array(self.mean_, "mean_", 1)

    def fit(self, X, y=None) -> UnitLength:
        """Take the mean from the rows of X."""
        names = column_names(X)
        X = check_features(X)
        self.mean_ = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._keep_names(names)
        return self

    def transform(self, X) -> np.ndarray:
        """Return the centred rows of X at unit length, float32."""
        Z = self._check_X(X) - self.mean_
        # Divided by the largest value first, so that no square overflows or vanishes.
        largest = np.maximum(Z.max(axis=1), -Z.min(axis=1))
        largest[largest == 0] = 1
        Z /= largest[:, None]
        length = np.sqrt(_squared_lengths(Z))
        # One value is 1 or -1 now, so only a zero row is shorter than 1.
        Z /= np.maximum(length, 1)[:, None]
        return Z


class Concat(_Map):
    """Set the features of several maps side by side.

    ``[UnitLength(), Concat([None, RBF()])]`` gives `HMOH` rows of unit length and their kernel
    features.

    Parameters
    ----------
    maps : list of maps of this file
        None stands for the features as they are. The parameters of the maps have names such as
        ``maps__1__n_anchors``.

    Attributes
    ----------
    maps_ : list
        Copies of the maps, fitted.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0]])
    >>> Concat([None, RBF(n_anchors=3)]).fit(X).transform(X).shape
    (3, 5)
    """

    _fitted = ("maps_",)

    def __init__(self, maps: list):
        self.maps = maps

    @property
    def n_features_in_(self) -> int:
        """Return the number of features of a row."""
        return next(part.n_features_in_ for part in self.maps_ if part is not None)

    @property
    def n_features_out_(self) -> int:
        """Return the number of features that `transform` makes of a row."""
        given = self.n_features_in_
        return sum(given if part is None else part.n_features_out_ for part in self.maps_)

    @property
    def n_warmup(self) -> int:
        """Return how many samples of a stream to fit on: the most that a map needs."""
        self._check_params()
        return max(part.n_warmup for part in _named(self.maps).values())

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters; with `deep` also those of the maps."""
        params = {"maps": self.maps}
        for prefix, part in _named(self.maps).items() if deep else ():
            inner = part.get_params()
            params |= {f"{prefix}{name}": inner[name] for name in inner}
        return params

    def set_params(self, **params):
        """Set parameters by the names of `get_params`: all of them, or none on an error."""
        new = copy.copy(self)
        new.maps = params.pop("maps", self.maps)
        new._check_known(params)
        for prefix, part in _named(new.maps).items():
            part.set_params(**_pop_prefixed(params, prefix))
        self.maps = new.maps
        return self

    def _check_params(self) -> None:
        named = _named(self.maps)
        if not named or not all(isinstance(part, _Map | None) for part in self.maps):
            way = "pass a list of RBF, UnitLength or None, and at least one map"
            raise TypeError(f"maps={self.maps!r} cannot be set side by side; {way}.")

    def fit(self, X, y=None) -> Concat:
        """Fit copies of the maps on the rows of X."""
        self._check_params()
        names = column_names(X)
        X = check_features(X)
        maps = copy.deepcopy(self.maps)
        for part in _named(maps).values():
            part.fit(X)
        self._keep_names(names)
        self.maps_ = maps
        return self

    def transform(self, X) -> np.ndarray:
        """Return the features that the maps make of the rows of X, side by side, float32."""
        X = self._check_X(X)
        parts = [X if part is None else part.transform(X) for part in self.maps_]
        return np.concatenate(parts, axis=1)

    def get_state(self) -> dict[str, np.ndarray]:
        """Return the states of the maps: all that `set_state` needs."""
        state = {}
        for prefix, part in _named(getattr(self, "maps_", self.maps)).items():
            inner = part.get_state()
            state |= {f"{prefix}{name}": inner[name] for name in inner}
        return state

    def set_state(self, state: dict[str, np.ndarray]):
        """Make this map equal to the one whose `get_state` gave the state."""
        self._check_params()
        new = copy.copy(self)
        new.maps = copy.deepcopy(self.maps)
        vars(new).pop("maps_", None)
        parts = _named(new.maps)
        rest = dict(state)
        for prefix, part in parts.items():
            part.set_state(_pop_prefixed(rest, prefix))
        fitted = [part for part in parts.values() if hasattr(part, "n_features_in_")]
        widths = {part.n_features_in_ for part in fitted}
        if rest or len(widths) > 1:
            reason = f"its maps have {[*widths]} features and it has {[*rest]} too"
            way = "pass maps of the kinds that were saved, and a file written by save"
            raise ValueError(f"the state is wrong ({reason}); {way}.")
        if len(fitted) == len(parts):
            new.maps_ = copy.deepcopy(new.maps)
        self.__dict__ = vars(new)
        return self


def _named(maps) -> dict[str, _Map]:
    """Return the maps in a list by the prefixes of the names of their parameters."""
    if not isinstance(maps, (list, tuple)):
        return {}
    return {f"maps__{i}__": part for i, part in enumerate(maps) if isinstance(part, _Map)}


def _pop_prefixed(state: dict, prefix: str) -> dict:
    """Remove the entries whose names have the prefix, and return them without it."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}
