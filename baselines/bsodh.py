"""BSODH, Balanced Similarity for Online Discrete Hashing (Lin et al., AAAI 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import State, check_choice, check_number

from .linear import LinearHasher, no_labels, number_labels, share_label

__all__ = ["BSODH"]

# The steps for a batch, by the letters of the class's docstring.
ORDERS = {"described": "WEB", "published": "BEW"}


@dataclass(eq=False)
class BSODH(LinearHasher):
    """Balanced Similarity for Online Discrete Hashing.

    It finds binary codes of a batch that suit the codes of all samples before it. Let E (b x n_e)
    be the codes of all samples before, and B (b x n) those of a new batch X (d x n). Their inner
    products should be b S, where S is b eta_s for similar and -b eta_d for dissimilar pairs, and
    W^T X should be near B. The first batch is only stored, with E = sgn(W^T X) by LSH. For every
    other batch, B_i starts as the code of the first stored sample of the same class, else as
    sgn(W^T x_i). Then there are three steps, with sgn(0) = 1,

        W   = sigma (sigma X X^T + lambda I)^-1 X B^T
        E   = sgn(B S)
        B_r = sgn(P_r - sum_{k != r} (E E^T)_{rk} B_k),   one bit r after the other,
              where P = b E S^T + W^T X

    and the columns of B are appended to E. The method's program takes the steps in the opposite
    order, and says that this is not the order of its paper's Algorithm 1 (lmbxmu/mycode,
    .../BSODH.m, lines 104 to 137). On MNIST only one thing matters: codes are better if B comes
    before E. The place of W changes nothing (32 bits, three seeds).

    S is never built: sgn(B S) gives all stored samples of a class the same code. So only the number
    of samples, the code and the sum of codes are kept for each class. With several labels per
    sample, the distinct label sets are the classes, and sets with a label in common are similar.

    The paper's (lambda, sigma, eta_s, eta_d), on rows of unit length (`UnitLength`): CIFAR-10 (0.6,
    0.5, 1.2, 0.2), Places205 (0.3, 0.5, 1, 0), MNIST (0.9, 0.8, 1.2, 0.2), NUS-WIDE (0.3, 0.1, 0.4,
    1.2). Batches have 2,000 samples, on Places205 10,000. Of lambda and sigma only the ratio has an
    effect.

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits (mean of ten seeds):

        the paper                .593 .700 .747 .743 .766 .760
        here                     .517 .630 .679 .707 .720 .736
        as published             .572 .659 .707 .726 .740 .754

    Parameters
    ----------
    batch : int
        Samples per batch. An incomplete batch is kept until the next call.
    ridge, fit_weight : float
        lambda and sigma.
    similar, dissimilar : float
        eta_s and eta_d.
    order : {"described", "published"}
        Of the three steps: W, E, B, or B, E, W.
    n_bits, feature_map, warmup, random_state
        As in `HMOH`. Matrix products run on the threads of numpy's BLAS.

    References
    ----------
    M. Lin, R. Ji, H. Liu, X. Sun, Y. Wu, Y. Wu. Towards Optimal Discrete Online Hashing with
    Balanced Similarity. AAAI 2019.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> y = np.array(["cat", "dog"] * 50)
    >>> codes = BSODH(n_bits=8, batch=10, random_state=0).fit_transform(X, y)
    >>> bool(codes[0] != codes[1])
    True
    """

    n_bits: int = 32
    feature_map: object = None
    batch: int = 2000
    ridge: float = 0.9
    fit_weight: float = 0.8
    similar: float = 1.2
    dissimilar: float = 0.2
    order: str = "described"
    warmup: int | None = None
    random_state: int | None = None

    _saved = ("W", "gram", "labels", "count", "code", "sum")

    @property
    def _update_size(self) -> int:
        return self.batch

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.batch, "batch")
        check_number(self.ridge, "ridge", float, 1e-30, 1e30)
        check_number(self.fit_weight, "fit_weight", float, 1e-30, 1e30)
        check_number(self.similar, "similar", float, 0, 1e30)
        check_number(self.dissimilar, "dissimilar", float, 0, 1e30)
        check_choice(self.order, "order", tuple(ORDERS))

    def _start(self, state: State, Z: np.ndarray) -> None:
        super()._start(state, Z)
        # For each class of the stored samples: their number, the first code, the sum of all.
        state.labels = no_labels(state.form)
        state.count = np.zeros(0)
        state.code = np.zeros((0, self.n_bits))
        state.sum = np.zeros((0, self.n_bits))
        state.gram = np.zeros((self.n_bits, self.n_bits))  # E E^T

    def _fill(self, state: State, arrays: dict[str, np.ndarray]) -> None:
        super()._fill(state, arrays)
        lengths = {len(state.labels), len(state.count), len(state.code), len(state.sum)}
        if len(lengths) > 1:
            raise ValueError(f"it has labels, counts and codes of {sorted(lengths)} classes")

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        for start in range(0, len(Z), self.batch):
            rows = slice(start, start + self.batch)
            self._learn_batch(state, Z[rows].astype(np.float64), y[rows])

    def _learn_batch(self, state: State, X: np.ndarray, y: np.ndarray) -> None:
        labels, number = number_labels(y, state.labels)
        n_new = len(labels) - len(state.count)
        count = _with_zeros(state.count, n_new)
        code = _with_zeros(state.code, n_new)
        total = _with_zeros(state.sum, n_new)
        is_stored = count[:, None] > 0
        # (classes, n), 1 where a sample is of a class.
        member = (number == np.arange(len(labels))[:, None]).astype(np.float64)

        B = np.where(is_stored[number], code[number], _sgn(X @ state.W.T))
        gram = state.gram
        related = np.eye(len(labels))
        if labels.ndim == 2:
            related = share_label(labels, labels).astype(np.float64)
        for step in ORDERS[self.order] if count.any() else "":
            if step == "W":
                W = _ridge(X, B, self.ridge / self.fit_weight)
                state.W = np.ascontiguousarray(W.T, np.float32)
            elif step == "E":
                code = _sgn(self._balanced(member @ B, related))
                total = count[:, None] * code
                gram = (code.T * count) @ code
            else:
                P = self.n_bits * self._balanced(total, related)[number] + X @ state.W.T
                for r in range(self.n_bits):
                    others = B @ gram[r]
                    itself = B[:, r] * gram[r, r]
                    B[:, r] = _sgn(P[:, r] - others + itself)

        state.gram = gram + B.T @ B
        state.sum = total + member @ B
        # A class that is new gets the code of its first sample.
        state.code = np.where(is_stored, code, B[member.argmax(axis=1)])
        state.count = count + member.sum(axis=1)
        state.labels = labels

    def _balanced(self, sums: np.ndarray, related: np.ndarray) -> np.ndarray:
        """Return codes times S for every class, from the sums of the codes of every class."""
        near = related @ sums
        far = sums.sum(axis=0) - near
        return self.n_bits * (self.similar * near - self.dissimilar * far)


def _sgn(x: np.ndarray) -> np.ndarray:
    """Return the sign, where that of 0 is 1."""
    return np.where(x >= 0, 1.0, -1.0)


def _with_zeros(a: np.ndarray, n_new: int) -> np.ndarray:
    """Return a copy with `n_new` rows of zeros added."""
    return np.concatenate([a, np.zeros((n_new, *a.shape[1:]))])


def _ridge(X: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    """Return (X^T X + ridge I)^-1 X^T B, which is X^T (X X^T + ridge I)^-1 B.

    The smaller of the two matrices is inverted.
    """
    n, d = X.shape
    if d <= n:
        return np.linalg.solve(X.T @ X + ridge * np.eye(d), X.T @ B)
    return X.T @ np.linalg.solve(X @ X.T + ridge * np.eye(n), B)
