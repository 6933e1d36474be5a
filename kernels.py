"""Feature maps in front of the hash functions: RBF kernel features on anchors, and rows of unit length.

Copy this file alone into any project: it needs numpy, nothing else. Both maps follow scikit-learn's conventions
and work in its pipelines.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(100, 5))
>>> RBF(n_anchors=20).fit(X).transform(X).shape
(100, 20)
"""

from __future__ import annotations

import inspect
from numbers import Integral, Real

import numpy as np

__all__ = ["RBF", "NotFittedError", "UnitLength"]

BLOCK_VALUES = 1 << 20  # values of an intermediate result held at a time (4 MB)


class NotFittedError(ValueError, AttributeError):
    """A map or model is used before it has been fitted."""


def check_features(X, n_features: int | None = None) -> np.ndarray:
    """X as a finite (n, d) float32 array in C order, not copied if it is one. Also in hmoh.py: each stands alone."""
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


class _Map:
    """What the maps share: parameters as scikit-learn wants them, and the state that a saved model keeps."""

    _fitted: tuple[str, ...] = ()  # names of the fitted arrays

    def get_params(self, deep: bool = True) -> dict:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params):
        unknown = set(params) - set(self.get_params())
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {sorted(unknown)[0]!r}; it has {sorted(self.get_params())}."
            )
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_params().items())})"

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags  # only scikit-learn itself calls this

        return Tags(None, TargetTags(required=False), TransformerTags(), input_tags=InputTags())

    def _check_fitted(self) -> None:
        if not hasattr(self, self._fitted[0]):
            raise NotFittedError(f"this {type(self).__name__} has not been fitted; call fit(X) first.")

    def fit_transform(self, X, y=None) -> np.ndarray:
        return self.fit(X).transform(X)

    def get_state(self) -> dict[str, np.ndarray]:
        """Parameters and fitted arrays, all that `set_state` needs to make another map equal to this one."""
        names = [*self.get_params(), *(name for name in self._fitted if hasattr(self, name))]
        return {name: np.asarray(getattr(self, name)) for name in names}

    def set_state(self, state: dict[str, np.ndarray]):
        params, fitted = set(self.get_params()), set(self._fitted)
        if set(state) not in (params, params | fitted):
            raise ValueError(
                f"a state of {sorted(state)} is not one of {type(self).__name__}; pass the map it came from."
            )
        for name in params | fitted:
            vars(self).pop(name, None)
        vars(self).update({name: value.item() if value.ndim == 0 else value for name, value in state.items()})
        return self


def _mean_square(X: np.ndarray, origin: np.ndarray) -> float:
    """Mean squared distance of the rows of X to the origin."""
    n_rows = max(1, BLOCK_VALUES // X.shape[1])
    return sum(np.square(X[i : i + n_rows] - origin).sum() for i in range(0, len(X), n_rows)) / len(X)


class RBF(_Map):
    """Gaussian kernel features on anchors, z(x)_j = exp(-||x - a_j||^2 / (2 eta^2)) (paper, Sec. 3.2).

    The anchors are the first rows given to `fit`, as the paper takes the first points of the stream, and
    eta^2 is the mean squared distance of the other rows to them divided by ``divisor``: what the paper calls the
    bandwidth is this divisor in its published code.

    Parameters
    ----------
    n_anchors : int
        The paper's m, the number of features that come out.
    divisor : float
        6 for MNIST and 10 for the other sets in the paper's ablation.
    center : bool
        Subtract the mean feature (ours, not the paper's): the perceptron has no bias, and kernel features are all
        positive. The mean is estimated from the anchors' features of each other.

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

    def __init__(self, n_anchors: int = 300, divisor: float = 10.0, center: bool = False):
        self.n_anchors, self.divisor, self.center = n_anchors, divisor, center

    @property
    def n_warmup(self) -> int:
        """How many samples of a stream to wait for before fitting: the anchors and as many to set the bandwidth."""
        self._check_params()
        return 2 * self.n_anchors

    def _check_params(self) -> None:
        least = 2 if self.center else 1  # the mean leaves out each anchor's feature of itself
        if not isinstance(self.n_anchors, Integral) or self.n_anchors < least or self.n_anchors is True:
            raise ValueError(f"n_anchors={self.n_anchors!r} is not possible; pass a whole number of at least {least}.")
        if not isinstance(self.divisor, Real) or not 0 < self.divisor < np.inf:
            raise ValueError(f"divisor={self.divisor!r} is not possible; pass a positive number, such as 10.")

    def fit(self, X, y=None) -> RBF:
        """Take the anchors and the bandwidth from the rows of X."""
        self._check_params()
        X = check_features(X)
        if len(X) < self.n_anchors:
            raise ValueError(
                f"{len(X)} samples are too few for {self.n_anchors} anchors; pass more, or lower n_anchors."
            )
        anchors, rest = X[: self.n_anchors].copy(), X[self.n_anchors :]
        rest = rest if len(rest) else anchors
        # Over all pairs the mean of ||x - a||^2 is that of ||x - o||^2 plus that of ||a - o||^2, o the mean anchor.
        origin = anchors.mean(axis=0, dtype=np.float64)
        mean_squared = _mean_square(rest, origin) + _mean_square(anchors, origin)
        if not mean_squared > 0:
            raise ValueError(f"all {len(X)} samples are equal, so there is no bandwidth; pass samples that differ.")
        self.anchors_, self.eta2_ = anchors, float(mean_squared / self.divisor)
        self.mean_ = np.zeros(len(anchors), np.float32)
        if self.center:
            own = self.transform(anchors).astype(np.float64)
            self.mean_ = ((own.sum(axis=0) - own.diagonal()) / (len(own) - 1)).astype(np.float32)
        return self

    def transform(self, X) -> np.ndarray:
        """The (n, n_anchors) float32 features of the rows of X."""
        self._check_fitted()
        X = check_features(X, self.anchors_.shape[1])
        Z = np.empty((len(X), len(self.anchors_)), np.float32)
        # Distances do not change if the origin moves; near the data, and in units of eta, float32 loses no digits.
        origin, unit = self.anchors_.mean(axis=0), np.float32(1 / np.sqrt(2 * self.eta2_))
        a = (self.anchors_ - origin) * unit
        n_rows = max(1, BLOCK_VALUES // max(a.shape))
        for start in range(0, len(X), n_rows):
            x, z = X[start : start + n_rows] - origin, Z[start : start + n_rows]
            with np.errstate(over="ignore"):
                x *= unit
                x_squared = np.vecdot(x, x)
            x[x_squared > 1e30] = 0  # so far away that only x_squared matters
            np.matmul(x, 2 * a.T, out=z)  # - ||x - a||^2 = 2 x.a - ||a||^2 - ||x||^2
            z -= np.vecdot(a, a)
            z -= x_squared[:, None]
            np.minimum(z, 0, out=z)  # a squared distance is not negative, but its rounding can be
            np.exp(z, out=z)
            if self.center:
                z -= self.mean_
        return Z


class UnitLength(_Map):
    """Rows minus the mean row of what it was fitted on, scaled to length one; a zero row stays zero.

    The paper's competitors were run on such features.

    Examples
    --------
    >>> UnitLength().fit([[0.0, 0.0], [2.0, 0.0]]).transform([[4.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """

    _fitted = ("mean_",)
    n_warmup = 1000

    def fit(self, X, y=None) -> UnitLength:
        """Take the mean from the rows of X."""
        self.mean_ = check_features(X).mean(axis=0, dtype=np.float64).astype(np.float32)
        return self

    def transform(self, X) -> np.ndarray:
        """The centred rows of X at unit length, float32."""
        self._check_fitted()
        Z = check_features(X, len(self.mean_)) - self.mean_
        largest = np.maximum(Z.max(axis=1), -Z.min(axis=1))
        Z /= np.where(largest > 0, largest, 1)[:, None]  # first, so that no square is too large or small for float32
        length = np.sqrt(np.vecdot(Z, Z))
        Z /= np.where(length > 0, length, 1)[:, None]
        return Z
