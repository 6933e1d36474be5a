"""Random hyperplanes: LSH (Charikar, STOC 2002), and what methods share that start with them.

Copy this file with hmoh.py.

>>> import numpy as np
>>> LSH(n_bits=16, random_state=0).fit_transform(np.eye(3)).shape
(3, 2)
"""

from __future__ import annotations

import numpy as np

from hmoh import OnlineHasher

__all__ = ["LSH", "LinearHasher"]


def check_real(value, name: str, positive: bool = True, most: float = float(np.finfo(np.float32).max)) -> None:
    """Refuse anything but numbers above 0, or from 0 on, and up to ``most``."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (real and 0 <= value <= most and (value > 0 or not positive)):
        need = "above 0" if positive else "from 0 to 1" if most == 1 else "from 0 on"
        raise ValueError(f"{name}={value!r} is not possible; pass a number {need}.")


def share_label(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(len(a), len(b)) bool: which of two lists of labels, or rows of 0/1, are the same or share a 1."""
    if a.ndim == 2:
        return a.astype(np.float32) @ b.T.astype(np.float32) > 0
    if a.dtype.kind == "U":  # numbers are compared faster than strings
        number = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
        a, b = number[: len(a)], number[len(a) :]
    return a[:, None] == b


class LinearHasher(OnlineHasher):
    """Hash functions x W > 0 that start as random hyperplanes, W ~ N(0, 1) with columns of unit length."""

    _saved = (*OnlineHasher._saved, "_W")

    def _start(self, Z: np.ndarray) -> None:
        W = np.random.default_rng([self._seed, 1]).normal(size=(Z.shape[1], self.n_bits))
        self._W = np.ascontiguousarray((W / np.linalg.norm(W, axis=0)).T, np.float32)

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._W.T

    @property
    def weights_(self) -> np.ndarray:
        self._check_fitted()
        return self._W.T.copy()


class LSH(LinearHasher):
    """Locality-sensitive hashing: random hyperplanes, never trained, as a reference for all that is learned.

    W ~ N(0, 1), its columns scaled to unit length: two samples at an angle a differ in a share a / pi of their bits.
    LSH, OSH, MIHash, BSODH and HCOH with the same ``random_state`` start at the same W. Labels are not used.

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits, means of three splits as for all methods below: .175 .212 .258 .311
    .318 .378. The paper has no such row.

    Parameters
    ----------
    n_bits : int
    feature_map, warmup, n_threads, random_state
        As in `HMOH`; ``n_threads`` is not used.

    Attributes
    ----------
    weights_, n_seen_, feature_map_
        As in `HMOH`.

    References
    ----------
    M. S. Charikar. Similarity Estimation Techniques from Rounding Algorithms. STOC 2002.

    Examples
    --------
    >>> LSH(n_bits=16, random_state=0).fit_transform(np.eye(3)).shape
    (3, 2)
    """

    _supervised = False

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        warmup: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits, self.feature_map = n_bits, feature_map
        self.warmup, self.n_threads, self.random_state = warmup, n_threads, random_state

    def _learn(self, Z: np.ndarray, y: None) -> None:
        pass
