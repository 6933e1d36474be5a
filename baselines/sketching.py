"""SketchHash (Leng et al., CVPR 2015) and FROSH (Chen et al., UAI 2017).

Both are unsupervised and learn from a sketch of the stream. The hash functions are the principal
directions of all samples seen, rotated at random. They come from a few hundred rows B. The samples
are forgotten, but B^T B stays near the scatter matrix of the stream (Frequent Directions: Liberty,
KDD 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import NotFittedError, OnlineHasher, State, check_choice, check_number, compiled

__all__ = ["FROSH", "SketchHash"]


def _singular(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared singular values of B, largest first, and the left singular vectors.

    They come from the small matrix B B^T. Those of B^T are the right singular vectors of B.
    """
    values, U = np.linalg.eigh(B @ B.T)
    return np.maximum(values[::-1], 0), U[:, ::-1]


def _shrink(B: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the first `n_rows` rows of sqrt(max(S^2 - theta, 0)) V^T for B = U S V^T.

    theta is the S^2 of the row after them. The decomposition is that of the smaller of B B^T and
    B^T B. Because S V^T = U^T B, U is as good as V, and nothing is divided by a small number.
    """
    is_tall = len(B) > B.shape[1]
    S2, vectors = _singular(B.T if is_tall else B)
    theta = S2[n_rows] if n_rows < len(S2) else 0.0
    S2 = S2[:n_rows]
    vectors = vectors[:, :n_rows]
    if is_tall:
        # There may be fewer directions than rows. The other rows are zero.
        rows = np.zeros((min(n_rows, len(B)), B.shape[1]))
        rows[: len(S2)] = (vectors * np.sqrt(np.maximum(S2 - theta, 0))).T
        return rows
    lost_share = np.divide(theta, S2, out=np.ones_like(S2), where=theta < S2)
    return (vectors * np.sqrt(1 - lost_share)).T @ B


def _principal_directions(B: np.ndarray, n: int) -> np.ndarray:
    """Return the first right singular vectors of B, (m, n or fewer)."""
    is_tall = len(B) > B.shape[1]
    S2, vectors = _singular(B.T if is_tall else B)
    S2 = S2[:n]
    vectors = vectors[:, :n]
    # Fewer samples than bits have fewer directions. The others are left at zero.
    noise = len(B) * np.finfo(float).eps * S2[0]
    if is_tall:
        V = vectors * (noise < S2)
    else:
        scale = np.divide(1, np.sqrt(S2), out=np.zeros_like(S2), where=noise < S2)
        V = B.T @ (vectors * scale)
    # A direction has no sign, so its largest entry is made positive.
    largest = np.abs(V).argmax(axis=0)
    return V * np.sign(V[largest, np.arange(V.shape[1])])


class _SketchHasher(OnlineHasher):
    """Base class of both methods: the sketch about the mean, and its hash functions.

    A method provides `_insert(state, A, shift)`, which adds rows to the sketch.
    """

    needs_labels = False
    _saved = ("sketch", "mean", "n", "rotation")

    @property
    def _n_rows(self) -> int:
        return max(self.sketch_size, 2 * self.n_bits)

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.sketch_size, "sketch_size", least=2)

    def _start(self, state: State, Z: np.ndarray) -> None:
        super()._start(state, Z)
        n_features = Z.shape[1]
        if self.n_bits > n_features:
            reason = f"n_bits={self.n_bits} is more than the {n_features} features"
            way = "lower n_bits, or pass a feature map that makes more, such as RBF()"
            raise ValueError(f"{reason}; {way}.")
        rng = np.random.default_rng([state.seed, 1])
        Q, R = np.linalg.qr(rng.normal(size=(self.n_bits, self.n_bits)))
        # With these signs every rotation is equally likely.
        state.rotation = Q * np.sign(R.diagonal())
        self._clear(state, n_features)

    def _clear(self, state: State, n_features: int) -> None:
        """Forget the sketch and the mean."""
        state.sketch = np.empty((0, n_features))
        state.mean = np.zeros(n_features)
        state.n = 0  # samples in them
        state.functions = None  # W and mean W, from when they are first asked for

    def _sizes(self, state: State) -> dict[str, tuple[int, ...]]:
        return {"rotation": (self.n_bits, self.n_bits), "mean": (state.n_mapped,)}

    def _fill(self, state: State, arrays: dict[str, np.ndarray]) -> None:
        super()._fill(state, arrays)
        n_rows = len(state.sketch)
        if min(state.n, 1) != min(n_rows, 1):
            raise ValueError(f"it has {state.n} samples in a sketch of {n_rows} rows")

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        for start in range(0, len(Z), self._update_size):
            self._learn_batch(state, Z[start : start + self._update_size])
        state.functions = None

    def _learn_batch(self, state: State, batch: np.ndarray) -> None:
        """Sketch the batch about its own mean, and the shift of the mean as one more row."""
        n = state.n
        m = len(batch)
        mean = batch.mean(axis=0, dtype=np.float64)
        shift = mean - state.mean
        shift_rows = np.sqrt(n * m / (n + m)) * shift[None]
        # Before the first batch there was no mean.
        self._insert(state, batch - mean, shift_rows if n > 0 else shift_rows[:0])
        state.mean = state.mean + m / (n + m) * shift
        state.n = n + m

    def _functions(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return W (m, n_bits) and mu W (n_bits,), both float32."""
        if not len(state.sketch):
            seen = f"seen {state.n_seen} of {self._update_size} samples of the first batch"
            raise NotFittedError(f"{seen}; pass more to partial_fit.")
        if state.functions is None:
            V = _principal_directions(state.sketch, self.n_bits)
            W = V @ state.rotation[: V.shape[1]]
            offset = state.mean @ W
            state.functions = (W.astype(np.float32), offset.astype(np.float32))
        return state.functions

    def _decide(self, state: State, Z: np.ndarray) -> np.ndarray:
        W, offset = self._functions(state)
        return Z @ W - offset

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32."""
        return self._functions(self._fitted())[0].copy()

    @property
    def mean_(self) -> np.ndarray:
        """Return the mean of the samples in the sketch, (m,) float64."""
        return self._fitted().mean.copy()

    @property
    def sketch_(self) -> np.ndarray:
        """Return the rows of the sketch, (at most l, m) float64."""
        return self._fitted().sketch.copy()


@dataclass(eq=False)
class SketchHash(_SketchHasher):
    """Online Sketching Hashing: principal directions of the stream, from a sketch.

    The sketch B has a few hundred rows. A batch of m samples with mean c enters it as its centred
    rows x - c. If n samples with mean mu came before, one row sqrt(n m / (n + m)) (c - mu) enters
    too. All rows together then have the scatter matrix of the stream about its mean. When all l
    rows of B are in use and another row comes, with B = U S V^T,

        B = sqrt(max(S^2 - theta, 0)) V^T,  theta = the square of singular value l/2 + 1 ,

    so that half of the rows are free again. For the rows A that entered,
    ||A^T A - B^T B||_2 <= ||A||_F^2 / (l/2 + 1). The hash functions are

        W = (the first b columns of V) R,   code(x) = (x - mu) W > 0

    with a random rotation R, which is drawn once. After a shrink B has rank l/2, so l is at least
    2 b. The paper's l is 100 on Places205 and 200 on CIFAR-10, MNIST and NUS-WIDE. Its batches have
    50 samples, 150 from 64 bits up, of unit length (`UnitLength`).

    On MNIST, mAP at 8, 16, 32, 48, 64 and 128 bits (mean of ten seeds, sd 0.02 or less):

        the paper          .257 .312 .348 .369 .376 .399
        here               .291 .326 .354 .369 .379 .403
        as published       .286 .314 .357 .379 .389 .410

    The last batch alone gives codes as good as the whole stream. 50 samples show the leading
    directions, and the other directions tell little about the labels. The rotation that is drawn
    has the largest effect at 8 bits.

    Parameters
    ----------
    n_bits : int
        Not more than the features have dimensions.
    sketch_size : int
        l, raised to 2 ``n_bits`` if it is less.
    sketch_batch : int, optional
        Samples per batch. An incomplete batch is kept until the next call. By default 50, from 64
        bits up 150.
    as_published : bool
        Forget sketch and mean after every batch, as the published benchmark does: its methods are
        MATLAB value classes, whose changes are lost. W then comes from the last whole batch alone,
        and mu is 0.
    feature_map, warmup, random_state
        As in `HMOH`. Matrix products run on the threads of numpy's BLAS.

    Attributes
    ----------
    mean_ : (m,) float64
        mu.
    sketch_ : (at most l, m) float64

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

    n_bits: int = 32
    feature_map: object = None
    sketch_size: int = 200
    sketch_batch: int | None = None
    as_published: bool = False
    warmup: int | None = None
    random_state: int | None = None

    @property
    def _update_size(self) -> int:
        return self.sketch_batch or (50 if self.n_bits < 64 else 150)

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.sketch_batch, "sketch_batch", optional=True)
        check_choice(self.as_published, "as_published", (True, False))

    def _learn_batch(self, state: State, batch: np.ndarray) -> None:
        n_features = batch.shape[1]
        if self.as_published:
            if len(state.sketch) and len(batch) < self._update_size:
                # Only whole batches are learned. A rest would replace all that came before.
                return
            self._clear(state, n_features)
        super()._learn_batch(state, batch)
        if self.as_published:
            state.mean = np.zeros(n_features)

    def _insert(self, state: State, A: np.ndarray, shift: np.ndarray) -> None:
        rows = np.concatenate([A, shift])
        while len(rows) > 0:
            if len(state.sketch) >= self._n_rows:
                state.sketch = _shrink(state.sketch, self._n_rows // 2)
            n_free = self._n_rows - len(state.sketch)
            state.sketch = np.concatenate([state.sketch, rows[:n_free]])
            rows = rows[n_free:]


@dataclass(eq=False)
class FROSH(_SketchHasher):
    """FasteR Online Sketching Hashing: SketchHash with samples compressed before the sketch.

    It works as `SketchHash`, with blocks of hundreds of samples as batches. The m centred rows A of
    a block are padded with zeros to M rows, where M is a power of two. They become the q = l/2 rows

        sqrt(M / q) S (H / sqrt(M)) D A

    of a subsampled randomized Hadamard transform. D has random signs on its diagonal, H is
    Sylvester's matrix, and S chooses q rows. D and S are drawn anew for every block. A block of at
    most q rows is not changed. These rows and the shift of the mean are stacked under the l/2 rows
    of the sketch, and all are shrunk to l/2. So a whole block needs one small decomposition.

    The paper only names the method. On MNIST (l = 200, mean of ten seeds) mAP is .287 .321 .355
    .368 .378 .404 at 8, 16, 32, 48, 64 and 128 bits, like that of SketchHash, in less than a third
    of its time.

    Parameters
    ----------
    block : int, optional
        Samples per block. An incomplete block is kept until the next call. By default 4 l.
    n_bits, feature_map, sketch_size, warmup, random_state
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

    n_bits: int = 32
    feature_map: object = None
    sketch_size: int = 200
    block: int | None = None
    warmup: int | None = None
    random_state: int | None = None

    @property
    def _update_size(self) -> int:
        return self.block or 4 * self._n_rows

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.block, "block", optional=True)

    def _insert(self, state: State, A: np.ndarray, shift: np.ndarray) -> None:
        q = self._n_rows // 2
        if len(A) > q:
            A = _compressed(A, q, np.random.default_rng([state.seed, 2, state.n]))
        state.sketch = _shrink(np.concatenate([state.sketch, A, shift]), q)


def _compressed(A: np.ndarray, q: int, rng: np.random.Generator) -> np.ndarray:
    """Return q rows by a subsampled randomized Hadamard transform of A."""
    n, n_features = A.shape
    order = 1 << (n - 1).bit_length()
    padded = np.zeros((order, n_features))
    padded[:n] = rng.choice([-1.0, 1.0], size=(n, 1)) * A
    chosen = rng.choice(order, q, replace=False)
    _walsh_hadamard(padded)
    return padded[chosen] / np.sqrt(q)


@compiled
def _walsh_hadamard(A):
    """Multiply A (n, m) float64 from the left by Sylvester's matrix of order n, in place."""
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
