"""LEMON and OASIS: codes of a chunk by discrete optimisation, then a regression to all codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import State, check_number

from .linear import LinearHasher, no_labels, number_labels

__all__ = ["LEMON", "OASIS", "ridge_solution", "sgn"]

ITERATIONS = 5  # of the steps for a chunk
# A singular value below this share of the largest is a rounding error in both programs.
RANK = 1e-7


def sgn(x: np.ndarray) -> np.ndarray:
    """Return the sign, where that of 0 is 1."""
    return np.where(x >= 0, 1.0, -1.0)


def ridge_solution(gram: np.ndarray, sums: np.ndarray, ridge: float) -> np.ndarray:
    """Return (gram + ridge I)^-1 sums."""
    try:
        return np.linalg.solve(gram + ridge * np.eye(len(gram)), sums)
    except np.linalg.LinAlgError as error:
        reason = f"the features are so large that rounding hides a ridge of {ridge:.2g}"
        way = "pass features scaled to about 1, for example by UnitLength()"
        raise ValueError(f"{reason}; {way}.") from error


def _nearest_balanced(Z: np.ndarray) -> np.ndarray:
    """Return the V (n, b) nearest to Z whose columns have sum zero, with V^T V = n I.

    If the rank of Z is lower, so is that of V.
    """
    U, s, Vt = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    is_kept = s > RANK * s[0]
    return np.sqrt(len(Z)) * (U[:, is_kept] @ Vt[is_kept])


class _Chunk:
    """A chunk of samples, and the sums over all chunks before it.

    A sum is named by its factors: "GB" is G^T B over all samples. X (n, m) has the features, L (n,
    labels) the labels as 0/1, G the rows of L at unit length, J (n, 1) ones, B (n, b) the codes,
    and V (n, b) their real-valued counterparts.
    """

    def __init__(self, before: dict[str, np.ndarray], X: np.ndarray, L: np.ndarray, B: np.ndarray):
        self.before = before
        self.X, self.L, self.B = X, L, B
        self.G = L / np.linalg.norm(L, axis=1, keepdims=True)
        self.J = np.ones((len(X), 1))

    def total(self, name: str) -> np.ndarray:
        """Return a sum over all samples up to this chunk's last one."""
        a, b = (getattr(self, letter) for letter in name)
        return self.before[name] + a.T @ b


class _ChunkHasher(LinearHasher):
    """Base class of both methods: chunks, labels, and the sums that are kept.

    A method provides `_sums`, their names, `_positive`, the parameters that are weights, and
    `_alternate(chunk, rng)`, which finds B and V of a chunk and returns W.
    """

    _sums: tuple[str, ...]
    _positive: tuple[str, ...]

    @property
    def _saved(self) -> tuple[str, ...]:
        return ("W", "labels", "n_chunks", *self._sums)

    @property
    def _update_size(self) -> int:
        return self.chunk

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.chunk, "chunk")
        for name in self._positive:
            check_number(getattr(self, name), name, float, 1e-30, 1e30)

    def _start(self, state: State, Z: np.ndarray) -> None:
        super()._start(state, Z)
        state.labels = no_labels(state.form)  # of a 0/1 matrix it stays empty
        state.n_chunks = 0
        n_rows = {"X": Z.shape[1], "J": 1, "G": 0, "L": 0}
        for name in self._sums:
            a, b = (n_rows.get(letter, self.n_bits) for letter in name)
            setattr(state, name, np.zeros((a, b)))

    def _sizes(self, state: State) -> dict[str, tuple[int, ...]]:
        return super()._sizes(state) | {"XX": (state.n_mapped, state.n_mapped)}

    def _fill(self, state: State, arrays: dict[str, np.ndarray]) -> None:
        super()._fill(state, arrays)
        check_number(state.n_chunks, "n_chunks", least=0, most=2**62)
        found = {len(getattr(state, name)) for name in self._sums if name[0] in "GL"}
        n_labels = (state.form[1] if state.n_chunks else 0) or len(state.labels)
        if found != {n_labels}:
            raise ValueError(f"it has {n_labels} labels, but sums of {sorted(found)}")

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        for start in range(0, len(Z), self.chunk):
            rows = slice(start, start + self.chunk)
            self._learn_chunk(state, Z[rows].astype(np.float64), y[rows])

    def _learn_chunk(self, state: State, X: np.ndarray, y: np.ndarray) -> None:
        L = y
        if y.ndim == 1:
            state.labels, number = number_labels(y, state.labels)
            L = number[:, None] == np.arange(len(state.labels))
        before = {name: getattr(state, name) for name in self._sums}
        for name in self._sums:
            if name[0] in "GL":
                n_new = L.shape[1] - len(before[name])
                before[name] = np.pad(before[name], ((0, n_new), (0, 0)))
        rng = np.random.default_rng([state.seed, 2, state.n_chunks])
        chunk = _Chunk(before, X, L.astype(np.float64), sgn(rng.normal(size=(len(X), self.n_bits))))
        W = self._alternate(chunk, rng)
        vars(state).update({name: chunk.total(name) for name in self._sums})
        state.W = np.ascontiguousarray(W.T, np.float32)
        state.n_chunks += 1


@dataclass(eq=False)
class LEMON(_ChunkHasher):
    """Label Embedding Online Hashing, as its program computes it.

    It finds codes of a chunk of samples that suit their labels and the codes of all chunks before,
    and then fits all codes by ridge regression. Let L (n x c) be the labels of a chunk as 0/1, and
    G the same with rows of unit length. Codes B (n x b), V (n x b) and a rotation R start at
    random. Then five times

        P = (V^T V + gamma I)^-1 V^T L
        Z = B R^T + beta L P^T + alpha b (2 G G^T - 1 1^T) B
        V = sqrt(n) U Q^T,   where U S Q^T = Z - mean of its rows
        R = the rotation that brings V nearest to B
        B = sgn(alpha b (2 G G^T - 1 1^T) V + V R)

    and in the end W = (X^T X + xi I)^-1 X^T B. All products over samples (V^T V, V^T L, G^T B,
    1^T B, B^T V, G^T V, 1^T V, X^T X, X^T B) are sums over the chunks so far
    (yxinwang/LEMON-MM2020, codes/LEMON/train_LEMON.m: P is line 27, Z 30 to 32, V 34 to 40, R 44
    and 45, B 48 and 49, the sums 52 to 74, W 79). The features of the second modality have no
    effect on W, so they are left out.

    The rank of Z decides the codes. Line 36 keeps the directions whose singular values in the
    centred Z^T Z exceed 1e-6, but on MNIST the largest is 8e20, so rounding lifts all of them above
    it. Directions that are nothing but rounding are then nearly zero in V. An exact decomposition
    gives them full length, which changes 21 to 26 % of the codes' bits and lowers mAP from 0.736
    to 0.667 (32 bits, three seeds). So directions below 1e-7 of the largest singular value of Z are
    dropped.

    The program puts a short last chunk into the one before (main_demo.m, lines 31 and 41). A stream
    does not know its end, so here it is a chunk of its own.

    The program's (alpha, beta, gamma, xi) are (10,000, 10,000, 0.1, 1) on all its sets
    (main_demo.m, lines 110 and 111). Its chunks have 2,000 samples, on NUS-WIDE 10,000 (lines 24,
    49 and 72).

    mAP on MNIST at 16, 32 and 64 bits is .715 .739 .766 (mean of three seeds).

    Parameters
    ----------
    chunk : int
        Samples per chunk. An incomplete chunk is kept until the next call.
    similarity, embedding, embedding_ridge, ridge : float
        alpha, beta, gamma, xi.
    n_bits, feature_map, warmup, random_state
        As in `HMOH`. Until the first chunk is complete, codes are those of `LSH`.

    References
    ----------
    Y. Wang, X. Luo, X.-S. Xu. Label Embedding Online Hashing for Cross-Modal Retrieval. ACM
    Multimedia 2020.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> y = np.array(["cat", "dog"] * 50)
    >>> codes = LEMON(n_bits=8, chunk=20, random_state=0).fit_transform(X, y)
    >>> bool(codes[0] != codes[1])
    True
    """

    n_bits: int = 32
    feature_map: object = None
    chunk: int = 2000
    similarity: float = 10_000.0
    embedding: float = 10_000.0
    embedding_ridge: float = 0.1
    ridge: float = 1.0
    warmup: int | None = None
    random_state: int | None = None

    _positive = ("similarity", "embedding", "embedding_ridge", "ridge")
    _sums = ("XX", "XB", "VV", "LV", "GB", "JB", "BV", "GV", "JV")

    def _alternate(self, chunk: _Chunk, rng: np.random.Generator) -> np.ndarray:
        c = chunk
        similar = self.n_bits * self.similarity
        c.V = rng.normal(size=c.B.shape)
        R = np.linalg.svd(rng.normal(size=(self.n_bits, self.n_bits)))[0]
        for _ in range(ITERATIONS):
            P = ridge_solution(c.total("VV"), c.total("LV").T, self.embedding_ridge)  # (b, labels)
            Z = c.B @ R.T + self.embedding * c.L @ P.T
            Z += similar * (2 * c.G @ c.total("GB") - c.total("JB"))
            c.V = _nearest_balanced(Z)
            left, _, right = np.linalg.svd(c.total("BV"))
            R = (left @ right).T
            c.B = sgn(similar * (2 * c.G @ c.total("GV") - c.total("JV")) + c.V @ R)
        return ridge_solution(c.total("XX"), c.total("XB"), self.ridge)


@dataclass(eq=False)
class OASIS(_ChunkHasher):
    """Online Enhanced Semantic Hashing, as its program computes it.

    It works as `LEMON` does, but the hash functions have a say in the codes, and there is no
    rotation. Codes B and U (c x b) start at random, and then five times

        Z = alpha b G G^T B + beta G U + B
        V = sqrt(n) U' Q^T,   where U' S Q^T = Z - mean of its rows
        U = G^T V (V^T V + theta I)^-1
        W = (X^T X + delta I)^-1 X^T B
        B = sgn(alpha b G G^T V + V + gamma X W)

    The W of the last round, made before its B, is returned (DravenALG/OASIS, train_OASIS.m: Z is
    lines 27 to 29, V 31 to 38, U 42, W 45, B 52 to 54).

    In the program G has the sums of the word vectors of a sample's labels, at unit length
    (evaluate_OASIS.m, lines 13 and 14). Word vectors are made ahead and belong to English labels.
    Here they are one-hot vectors, so that G is that of `LEMON`. A sample without a label divides by
    zero there and is refused here. Where a chunk has fewer samples than a code has bits, the
    program may stop with an error (train_OASIS.m, line 38).

    Models with the same random_state start from the same codes. Then OASIS and `LEMON` find the
    same ones, bit for bit, at 32 bits on mnist, cifar10_vgg16, mediamill10 and reuters10.

    The program's (alpha, beta, gamma, theta, delta) are (10, 1, 1, 1, 1) on all its sets (MAIN.m,
    lines 18 to 22). Its chunks have 2,000 samples, on NUS-WIDE 10,000 (load_dataset.m, lines 12 and
    187).

    mAP on MNIST at 16, 32 and 64 bits is .715 .739 .766 (mean of three seeds).

    Parameters
    ----------
    chunk : int
        Samples per chunk. An incomplete chunk is kept until the next call.
    similarity, embedding, fit_weight, embedding_ridge, ridge : float
        alpha, beta, gamma, theta, delta.
    n_bits, feature_map, warmup, random_state
        As in `HMOH`. Until the first chunk is complete, codes are those of `LSH`.

    References
    ----------
    X.-M. Wu, X. Luo, Y.-W. Zhan, C.-L. Ding, Z.-D. Chen, X.-S. Xu. Online Enhanced Semantic
    Hashing: Towards Effective and Efficient Retrieval for Streaming Multi-Modal Data. AAAI 2022.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> y = np.array(["cat", "dog"] * 50)
    >>> codes = OASIS(n_bits=8, chunk=20, random_state=0).fit_transform(X, y)
    >>> bool(codes[0] != codes[1])
    True
    """

    n_bits: int = 32
    feature_map: object = None
    chunk: int = 2000
    similarity: float = 10.0
    embedding: float = 1.0
    fit_weight: float = 1.0
    embedding_ridge: float = 1.0
    ridge: float = 1.0
    warmup: int | None = None
    random_state: int | None = None

    _positive = ("similarity", "embedding", "fit_weight", "embedding_ridge", "ridge")
    _sums = ("XX", "XB", "VV", "GB", "GV")

    def _alternate(self, chunk: _Chunk, rng: np.random.Generator) -> np.ndarray:
        c = chunk
        similar = self.n_bits * self.similarity
        U = rng.normal(size=(c.L.shape[1], self.n_bits))
        gram = c.total("XX")
        for _ in range(ITERATIONS):
            c.V = _nearest_balanced(c.G @ (similar * c.total("GB") + self.embedding * U) + c.B)
            U = ridge_solution(c.total("VV"), c.total("GV").T, self.embedding_ridge).T
            W = ridge_solution(gram, c.total("XB"), self.ridge)
            c.B = sgn(similar * c.G @ c.total("GV") + c.V + self.fit_weight * c.X @ W)
        return W
