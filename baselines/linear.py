"""What linear methods share: hash functions that start as random hyperplanes, and labels."""

from __future__ import annotations

import numpy as np

from hmoh import Form, OnlineHasher

__all__ = ["LinearHasher", "check_distinct", "number_labels", "share_label"]


class LinearHasher(OnlineHasher):
    """Base class of hash functions x W > 0 that start as random hyperplanes.

    W ~ N(0, 1), and its columns are scaled to unit length. `_W` is the transpose of W.
    """

    _saved = (*OnlineHasher._saved, "_W")

    def _start(self, Z: np.ndarray) -> None:
        rng = np.random.default_rng([self._seed, 1])
        W = rng.normal(size=(Z.shape[1], self.n_bits))
        W /= np.linalg.norm(W, axis=0)
        self._W = np.ascontiguousarray(W.T, np.float32)

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._W.T

    def _forms(self, m: int, labels: Form) -> dict[str, Form]:
        W = Form("float32", (self.n_bits, m))
        return super()._forms(m, labels) | {"_W": W}

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32."""
        self._check_fitted()
        return self._W.T.copy()


def share_label(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell which samples of two lists have a label in common.

    Parameters
    ----------
    a, b : (n,) and (k,) labels, or (n, L) and (k, L) 0/1

    Returns
    -------
    (n, k) bool

    Examples
    --------
    >>> share_label(np.array(["cat", "dog"]), np.array(["dog", "dog", "cat"]))
    array([[False, False,  True],
           [ True,  True, False]])
    """
    if a.ndim == 2:
        return a.astype(np.float32) @ b.T.astype(np.float32) > 0
    if a.dtype.kind == "U":
        # Numbers are compared faster than strings.
        _, number = np.unique(np.concatenate([a, b]), return_inverse=True)
        n = len(a)
        a = number[:n]
        b = number[n:]
    return a[:, None] == b


def check_distinct(labels: np.ndarray) -> None:
    """Check that no label, or row of 0/1, occurs twice in a file."""
    if len(set(_keys(labels))) < len(labels):
        raise ValueError("_labels has an entry twice")


def number_labels(y: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct labels, first the known ones, then new ones in order of arrival.

    Parameters
    ----------
    y : (n,) labels, or (n, L) 0/1
        Of a 0/1 matrix, the distinct rows are numbered.
    known : (k,) or (k, L)
        The labels that have the numbers 0 to k - 1.

    Returns
    -------
    labels : (number of distinct labels,) or (number of distinct labels, L)
    numbers : (n,) int64
        The number of each sample's label.

    Examples
    --------
    >>> labels, numbers = number_labels(np.array([7, 5, 7, 3]), known=np.array([5]))
    >>> print(labels, numbers)
    [5 7 3] [1 0 1 2]
    """
    number_of = {key: number for number, key in enumerate(_keys(known))}
    keys = _keys(y)
    for key in keys:
        number_of.setdefault(key, len(number_of))
    labels = np.array(list(number_of))
    numbers = np.array([number_of[key] for key in keys])
    return labels, numbers


def _keys(y: np.ndarray) -> list:
    """Return labels, or rows of 0/1 as tuples, as keys of a dictionary."""
    if y.ndim == 1:
        return y.tolist()
    return [tuple(row) for row in y.tolist()]
