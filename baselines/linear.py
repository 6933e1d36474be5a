"""LSH, and what the linear methods share: random hyperplanes to start from, and labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import OnlineHasher, State

__all__ = ["LSH", "LinearHasher", "no_labels", "number_labels", "share_label"]


class LinearHasher(OnlineHasher):
    """Base class of hash functions x W > 0 that start as random hyperplanes.

    W ~ N(0, 1), and its columns are scaled to unit length. The state has the transpose of W.
    """

    _saved = ("W",)

    def _start(self, state: State, Z: np.ndarray) -> None:
        super()._start(state, Z)
        rng = np.random.default_rng([state.seed, 1])
        W = rng.normal(size=(Z.shape[1], self.n_bits))
        W /= np.linalg.norm(W, axis=0)
        state.W = np.ascontiguousarray(W.T, np.float32)

    def _sizes(self, state: State) -> dict[str, tuple[int, ...]]:
        return super()._sizes(state) | {"W": (self.n_bits, state.n_mapped)}

    def _decide(self, state: State, Z: np.ndarray) -> np.ndarray:
        return Z @ state.W.T

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32."""
        return self._fitted().W.T.copy()


@dataclass(eq=False)
class LSH(LinearHasher):
    """Locality-sensitive hashing: random hyperplanes that are never trained.

    It is the reference for all methods that learn. W ~ N(0, 1), and its columns are scaled to unit
    length. Two samples at an angle a then differ in a share a / pi of their bits. LSH, OSH, MIHash,
    BSODH and HCOH with the same ``random_state`` start at the same W. Labels are not used.

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits is .179 .208 .260 .293 .321 .370. These are means
    of ten seeds, as for all methods of this folder. The paper has no such row.

    Parameters
    ----------
    n_bits, feature_map, warmup, random_state
        As in `HMOH`.

    References
    ----------
    M. S. Charikar. Similarity Estimation Techniques from Rounding Algorithms. STOC 2002.

    Examples
    --------
    >>> LSH(n_bits=16, random_state=0).fit_transform(np.eye(3)).shape
    (3, 2)
    """

    n_bits: int = 32
    feature_map: object = None
    warmup: int | None = None
    random_state: int | None = None

    needs_labels = False

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        """Do nothing, because the hyperplanes stay as they were drawn."""


# ---- labels --------------------------------------------------------------------------------------


def no_labels(form: tuple[str, int]) -> np.ndarray:
    """Return an empty list of labels of a stream's form, the `form` of its `State`."""
    kind, n_columns = form
    if n_columns:
        return np.empty((0, n_columns), np.uint8)
    return np.empty(0, np.int64 if kind == "i" else np.str_)


def share_label(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell which samples of two lists have a label in common, (n, k) bool.

    a (n,) and b (k,) are labels, or a (n, L) and b (k, L) are 0/1.

    >>> share_label(np.array(["cat", "dog"]), np.array(["dog", "dog", "cat"]))
    array([[False, False,  True],
           [ True,  True, False]])
    """
    if a.ndim == 2:
        return a.astype(np.float32) @ b.T.astype(np.float32) > 0
    if a.dtype.kind == "U":
        # Numbers are compared faster than strings.
        _, number = np.unique(np.concatenate([a, b]), return_inverse=True)
        a, b = number[: len(a)], number[len(a) :]
    return a[:, None] == b


def number_labels(y: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct labels, first the known ones, then new ones in order of arrival.

    Of a 0/1 matrix, the distinct rows are numbered. Return all labels, and for each sample the
    number of its label, (n,) int64.

    >>> labels, numbers = number_labels(np.array([7, 5, 7, 3]), known=np.array([5]))
    >>> print(labels, numbers)
    [5 7 3] [1 0 1 2]
    """
    number_of = {key: number for number, key in enumerate(_keys(known))}
    keys = _keys(y)
    new = []
    for i, key in enumerate(keys):
        if key not in number_of:
            number_of[key] = len(known) + len(new)
            new.append(i)
    return np.concatenate([known, y[new]]), np.array([number_of[key] for key in keys])


def _keys(y: np.ndarray) -> list:
    """Return labels, or rows of 0/1 as tuples, as keys of a dictionary."""
    return y.tolist() if y.ndim == 1 else [tuple(row) for row in y.tolist()]
