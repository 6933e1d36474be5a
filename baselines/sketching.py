"""Unsupervised online hashing from a sketch: SketchHash (Leng et al., CVPR 2015), FROSH (Chen et al., UAI 2017).

Copy this file with hmoh.py. The hash functions are the principal directions of all samples seen, rotated at random.
They come from a few hundred rows B, whose B^T B stays near the scatter matrix of the stream while the samples are
forgotten (Frequent Directions: Liberty, KDD 2013).

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(400, 20))
>>> SketchHash(n_bits=8, random_state=0).fit(X).transform(X[:5]).shape
(5, 1)
"""

from __future__ import annotations

import numpy as np

from hmoh import NotFittedError, OnlineHasher, _compiled, check_number

__all__ = ["FROSH", "SketchHash"]


def _singular(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared singular values of B, largest first, and the left singular vectors, from the small matrix B B^T."""
    values, U = np.linalg.eigh(B @ B.T)
    return np.maximum(values[::-1], 0), U[:, ::-1]


def _shrink(B: np.ndarray, n_rows: int) -> np.ndarray:
    """The first ``n_rows`` rows of sqrt(max(S^2 - theta, 0)) V^T for B = U S V^T, theta the next one's S^2.

    As S V^T = U^T B, no V is needed, and nothing is divided by a small number.
    """
    S2, U = _singular(B)
    theta = S2[n_rows] if n_rows < len(S2) else 0.0
    S2, U = S2[:n_rows], U[:, :n_rows]
    shrunk = np.sqrt(1 - np.divide(theta, S2, out=np.ones_like(S2), where=theta < S2))
    return (U * shrunk).T @ B


class _Sketch(OnlineHasher):
    """What both methods share: the sketch of the stream about its mean, and the hash functions it gives."""

    _saved = (*OnlineHasher._saved, "sketch_", "mean_", "_n", "_rotation")
    _supervised = False
    _hashing = None  # made of the sketch when a code is asked for

    @property
    def _n_rows(self) -> int:
        return max(self.sketch_size, 2 * self.n_bits)

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.sketch_size, "sketch_size", least=2)

    def _start(self, Z: np.ndarray) -> None:
        if self.n_bits > Z.shape[1]:
            reason = f"n_bits={self.n_bits} is more than the {Z.shape[1]} dimensions of the features"
            raise ValueError(f"{reason}; lower n_bits, or pass a feature map that makes more, such as RBF().")
        Q, R = np.linalg.qr(np.random.default_rng([self._seed, 1]).normal(size=(self.n_bits, self.n_bits)))
        self._rotation = Q * np.sign(R.diagonal())  # so that every rotation is equally likely
        self._clear(Z.shape[1])

    def _clear(self, n_features: int) -> None:
        self.sketch_, self.mean_, self._n = np.empty((0, n_features)), np.zeros(n_features), 0

    def _learn(self, Z: np.ndarray, y: None) -> None:
        for start in range(0, len(Z), self._unit):
            self._enter(Z[start : start + self._unit])
        self._hashing = None

    def _enter(self, batch: np.ndarray) -> None:
        """Sketch the batch about its own mean, and the shift of the mean as one more row."""
        n, m = self._n, len(batch)
        mean = batch.mean(axis=0, dtype=np.float64)
        shift = mean - self.mean_
        self._insert(batch - mean, np.sqrt(n * m / (n + m)) * shift[None] if n else np.empty((0, len(shift))))
        self.mean_, self._n = self.mean_ + m / (n + m) * shift, n + m

    def _hash_functions(self) -> tuple[np.ndarray, np.ndarray]:
        """W and mu W."""
        if self._n == 0:
            raise NotFittedError(f"seen {self.n_seen_} of {self._unit} samples of the first batch; pass more.")
        if self._hashing is None:
            S2, U = (a[..., : self.n_bits] for a in _singular(self.sketch_))
            noise = len(self.sketch_) * np.finfo(float).eps * S2[0]  # fewer samples than bits have fewer directions
            V = self.sketch_.T @ (U * np.divide(1, np.sqrt(S2), out=np.zeros_like(S2), where=noise < S2))
            V *= np.sign(np.take_along_axis(V, np.abs(V).argmax(axis=0)[None], axis=0))  # a direction has no sign
            W = V @ self._rotation[: len(S2)]
            self._hashing = W.astype(np.float32), (self.mean_ @ W).astype(np.float32)
        return self._hashing

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        W, offset = self._hash_functions()
        return Z @ W - offset

    @property
    def weights_(self) -> np.ndarray:
        self._check_fitted()
        return self._hash_functions()[0].copy()


class SketchHash(_Sketch):
    """Online Sketching Hashing: principal directions of the stream, kept in a sketch of a few hundred rows.

    A batch of m samples with mean c enters the sketch B as its centred rows x - c and, for n samples before it with
    mean mu, as one row sqrt(n m / (n + m)) (c - mu): all rows together have the scatter matrix of the stream about its
    mean. When the l rows of B are taken and another comes, with B = U S V^T,

        B = sqrt(max(S^2 - theta, 0)) V^T,  theta = the square of singular value l/2 + 1 ,

    so that half the rows are free again. For the rows A that went in, ||A^T A - B^T B||_2 <= ||A||_F^2 / (l/2 + 1). Now

        W = (the first b columns of V) R,   code(x) = (x - mu) W > 0

    with a random rotation R, drawn once. After a shrink B has rank l/2, so l is at least 2 b. The paper's l is 100 on
    Places205 and 200 on CIFAR-10, MNIST and NUS-WIDE, its batches have 50 samples, 150 from 64 bits up, of unit length
    (`UnitLength`).

    On MNIST, mAP at 8, 16, 32, 48, 64 and 128 bits (mean of 3 splits, sd .01, at 8 bits .03):

        the paper          .257 .312 .348 .369 .376 .399
        here               .284 .333 .353 .370 .379 .409
        as_published=True  .272 .322 .352 .376 .391 .423

    The last batch alone gives codes as good as the whole stream: 50 samples show the leading directions, and the others
    tell little about the labels. At 8 bits the rotation that is drawn matters most, .24 to .33.

    Parameters
    ----------
    n_bits : int
        Not more than the features have dimensions.
    sketch_size : int
        l, raised to 2 ``n_bits`` if it is less.
    sketch_batch : int, optional
        Samples per batch; an incomplete batch waits for more. By default 50, from 64 bits up 150.
    as_published : bool
        Forget sketch and mean after every batch, as the published benchmark does: its methods are MATLAB value
        classes, whose changes are lost. W then comes from the last batch alone, and mu is 0.
    feature_map, warmup, n_threads, random_state
        As in `HMOH`; ``n_threads`` is not used, matrix products run on the threads of numpy's BLAS.

    Attributes
    ----------
    weights_ : (m, n_bits) float32
    mean_ : (m,) float64
        mu.
    sketch_ : (at most l, m) float64
    n_seen_, feature_map_
        As in `HMOH`.

    References
    ----------
    C. Leng, J. Wu, J. Cheng, X. Bai, H. Lu. Online Sketching Hashing. CVPR 2015.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 10)) + 7
    >>> model = SketchHash(n_bits=4, random_state=0).fit(X)
    >>> np.allclose(model.mean_, X.mean(axis=0))
    True
    """

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        sketch_size: int = 200,
        sketch_batch: int | None = None,
        as_published: bool = False,
        warmup: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits, self.feature_map = n_bits, feature_map
        self.sketch_size, self.sketch_batch, self.as_published = sketch_size, sketch_batch, as_published
        self.warmup, self.n_threads, self.random_state = warmup, n_threads, random_state

    @property
    def _unit(self) -> int:
        return self.sketch_batch or (50 if self.n_bits < 64 else 150)

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.sketch_batch, "sketch_batch", optional=True)

    def _enter(self, batch: np.ndarray) -> None:
        if self.as_published:
            self._clear(batch.shape[1])
        super()._enter(batch)
        if self.as_published:
            self.mean_ = np.zeros(batch.shape[1])

    def _insert(self, A: np.ndarray, shift: np.ndarray) -> None:
        rows = np.concatenate([A, shift])
        while len(rows):
            if len(self.sketch_) == self._n_rows:
                self.sketch_ = _shrink(self.sketch_, self._n_rows // 2)
            room = self._n_rows - len(self.sketch_)
            self.sketch_, rows = np.concatenate([self.sketch_, rows[:room]]), rows[room:]


@_compiled
def _walsh_hadamard(A):
    """Multiply A from the left by Sylvester's Hadamard matrix, in place, in M log2(M) additions of rows."""
    h = 1
    while h < len(A):
        for start in range(0, len(A), 2 * h):
            for i in range(start, start + h):
                for j in range(A.shape[1]):
                    A[i, j], A[i + h, j] = A[i, j] + A[i + h, j], A[i, j] - A[i + h, j]
        h *= 2


class FROSH(_Sketch):
    """FasteR Online Sketching Hashing: SketchHash whose samples are compressed before they are sketched.

    As `SketchHash`, with blocks of hundreds of samples for batches. The m centred rows A of a block, filled up with
    zeros to M, a power of two, become the q = l/2 rows

        sqrt(M / q) S (H / sqrt(M)) D A

    of a subsampled randomized Hadamard transform: random signs on the diagonal of D, Sylvester's matrix H, and a choice
    S of q rows, drawn anew for every block (one of at most q rows stays as it is). They and the shift of the mean are
    stacked under the l/2 rows of the sketch, and all are shrunk to l/2: one small decomposition for a whole block.

    The paper only names the method. On MNIST (l = 200, mean of 3 splits) mAP is .296 .325 .355 .370 .378 .409 at 8, 16,
    32, 48, 64 and 128 bits, as SketchHash's, in a third of its time.

    Parameters
    ----------
    n_bits : int
        Not more than the features have dimensions.
    sketch_size : int
        l, raised to 2 ``n_bits`` if it is less.
    block : int, optional
        Samples per block; an incomplete block waits for more. By default 4 l.
    feature_map, warmup, n_threads, random_state
        As in `SketchHash`.

    Attributes
    ----------
    weights_, mean_, sketch_, n_seen_, feature_map_
        As in `SketchHash`.

    References
    ----------
    X. Chen, I. King, M. R. Lyu. FROSH: FasteR Online Sketching Hashing. UAI 2017.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 10))
    >>> FROSH(n_bits=4, random_state=0).fit(X).sketch_.shape
    (100, 10)
    """

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        sketch_size: int = 200,
        block: int | None = None,
        warmup: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits, self.feature_map, self.sketch_size, self.block = n_bits, feature_map, sketch_size, block
        self.warmup, self.n_threads, self.random_state = warmup, n_threads, random_state

    @property
    def _unit(self) -> int:
        return self.block or 4 * self._n_rows

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.block, "block", optional=True)

    def _insert(self, A: np.ndarray, shift: np.ndarray) -> None:
        q = self._n_rows // 2
        if len(A) > q:
            rng = np.random.default_rng([self._seed, 2, self._n])
            mixed = np.zeros((1 << (len(A) - 1).bit_length(), A.shape[1]))
            mixed[: len(A)] = rng.choice([-1.0, 1.0], size=(len(A), 1)) * A
            _walsh_hadamard(mixed)
            A = mixed[rng.choice(len(mixed), q, replace=False)] / np.sqrt(q)
        self.sketch_ = _shrink(np.concatenate([self.sketch_, A, shift]), q)
