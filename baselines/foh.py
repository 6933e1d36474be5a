"""FOH, Fast Online Hashing with Multi-Label Projection (Jia et al., AAAI 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import State, check_number

from .discrete import ridge_solution, sgn
from .linear import LinearHasher, no_labels, number_labels, share_label

__all__ = ["FOH"]


@dataclass(eq=False)
class FOH(LinearHasher):
    """Fast Online Hashing with Multi-Label Projection, as its program computes it.

    It is `BSODH` with a projection of the labels, and other rules for the stored codes. Let E (b x
    n_e) be the codes of all samples before, B (b x n) those of a new batch X (d x n), V_e and V
    their labels as 0/1, P (b x c) the projection, and S eta_s for similar and -eta_d for dissimilar
    pairs. The first batch is only stored, with E = sgn(W^T X), where W and P are random with
    columns of unit length. For every other batch, B_i starts as the code of the first stored sample
    with its label, else as sgn(W^T x_i). Then, with sgn(0) = 1,

        B_r = sgn(G_r - sum_{k != r} (E E^T)_{rk} B_k),   one bit r after the other,
              where G = b E S^T + sigma W^T X + theta P V
        E   = sgn(2 (b B S - mu P V_e) - B B^T E)
        P   = (mu E V_e^T + theta B V^T) (theta V V^T + mu V_e V_e^T + tau I)^-1
        W   = sigma (sigma X X^T + lambda I)^-1 X B^T

    and the columns of B are appended to E (caoyuan57/FOH, MY_ONLINE_HASHING/FOH.m: the start of B
    is lines 141 to 146, B 152 to 168, E 171 to 174, P 178, W 182). Codes are made by the mean of
    all W, the random one included (lines 108, 197 and 202).

    Stored samples are kept in groups of one label and one code, so nothing grows with the stream
    but the number of different codes. The program draws P for all labels before the stream begins.
    Here it has a random column for each label of the first two batches. A later one starts at
    zero, as it does in the program, where P has lost such a column by then.

    Three things of the program are left out. It needs more samples than it learns from, and on a
    set of fewer than 22,000 its last batch is skipped (lines 113 to 115). It keeps queries and
    searches only among their neighbours, which changes what is evaluated and not W. And its variant
    for several labels calls a product of arrays that do not fit (FOHmultilabel.m, line 159), so for
    several labels this class is ours: sets with a label in common are similar.

    The program's (lambda, sigma, eta_d, eta_s, theta, mu, tau) are (0.6, 0.8, 0.2, 1.6, 1.2, 0.5,
    0.6), and batches have 2,000 samples (lines 49 to 58). Rows have unit length (lines 20 and 24).

    mAP on MNIST at 16, 32 and 64 bits is .723 .753 .779 (mean of three seeds).

    Parameters
    ----------
    batch : int
        Samples per batch. An incomplete batch is kept until the next call.
    ridge, fit_weight : float
        lambda and sigma.
    similar, dissimilar : float
        eta_s and eta_d.
    new_weight, old_weight, label_ridge : float
        theta, mu and tau.
    n_bits, feature_map, warmup, random_state
        As in `HMOH`. Matrix products run on the threads of numpy's BLAS.

    References
    ----------
    W. Jia, Y. Cao, J. Liu, J. Gui. Fast Online Hashing with Multi-Label Projection. AAAI 2023.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> y = np.array(["cat", "dog"] * 50)
    >>> codes = FOH(n_bits=8, batch=10, random_state=0).fit_transform(X, y)
    >>> bool(codes[0] != codes[1])
    True
    """

    n_bits: int = 32
    feature_map: object = None
    batch: int = 2000
    ridge: float = 0.6
    fit_weight: float = 0.8
    similar: float = 1.6
    dissimilar: float = 0.2
    new_weight: float = 1.2
    old_weight: float = 0.5
    label_ridge: float = 0.6
    warmup: int | None = None
    random_state: int | None = None

    _positive = ("ridge", "fit_weight", "new_weight", "old_weight", "label_ridge")
    _saved = ("W", "total", "n_batches", "P", "labels", "count", "code")

    @property
    def _update_size(self) -> int:
        return self.batch

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.batch, "batch")
        for name in self._positive:
            check_number(getattr(self, name), name, float, 1e-30, 1e30)
        check_number(self.similar, "similar", float, 0, 1e30)
        check_number(self.dissimilar, "dissimilar", float, 0, 1e30)

    def _start(self, state: State, Z: np.ndarray) -> None:
        super()._start(state, Z)
        state.total = state.W.astype(np.float64)  # the sum of all W, the random one included
        state.n_batches = 0
        state.P = np.zeros((0, self.n_bits))  # a row for each label, in the order of arrival
        # Stored samples of one label, or set of labels, and one code are a group. Groups are in
        # the order of their first samples.
        state.labels = no_labels(state.form)
        state.count = np.zeros(0)
        state.code = np.zeros((0, self.n_bits))

    def _fill(self, state: State, arrays: dict[str, np.ndarray]) -> None:
        super()._fill(state, arrays)
        check_number(state.n_batches, "n_batches", least=0, most=2**62)
        lengths = {len(state.labels), len(state.count), len(state.code)}
        n_labels = state.form[1] or len(set(state.labels.tolist()))
        if len(lengths) > 1 or len(state.P) > n_labels:
            found = f"groups of lengths {sorted(lengths)}, and P of {len(state.P)} labels"
            raise ValueError(f"it has {found}, not {n_labels}")

    def _decide(self, state: State, Z: np.ndarray) -> np.ndarray:
        return Z @ self._functions(state)

    def _functions(self, state: State) -> np.ndarray:
        """Return the mean of all W, (m, n_bits) float32."""
        return (state.total.T / max(1, state.n_batches)).astype(np.float32)

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32."""
        return self._functions(self._fitted())

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        for start in range(0, len(Z), self.batch):
            rows = slice(start, start + self.batch)
            self._learn_batch(state, Z[rows].astype(np.float64), y[rows])

    def _learn_batch(self, state: State, X: np.ndarray, y: np.ndarray) -> None:
        known = np.concatenate([state.labels, y])
        labels, number = number_labels(known, no_labels(state.form))
        E, B = state.code, sgn(X @ state.W.T)
        if len(E):
            E, B = self._learn_codes(state, X, B, labels, *np.split(number, [len(E)]))
            W = _ridge(X, B, self.ridge / self.fit_weight)
            state.W = np.ascontiguousarray(W.T, np.float32)
            state.total = state.total + W.T
        state.n_batches += 1
        codes = np.concatenate([E, B])
        count = np.concatenate([state.count, np.ones(len(B))])
        keys = np.column_stack([number, codes])
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        state.labels, state.code = known[first[order]], codes[first[order]]
        state.count = np.bincount(group.ravel(), count)[order]

    def _learn_codes(self, state, X, B, labels, old, new) -> tuple[np.ndarray, np.ndarray]:
        """Return new codes of the groups (groups, b) and of the batch (n, b), and replace P.

        labels are all distinct ones, X (n, m) and B (n, b) the batch and its codes by W, old
        (groups,) and new (n,) the labels' numbers of both.
        """
        E = state.code
        n_old = np.bincount(old, state.count, len(labels))  # samples of each label
        n_new = np.bincount(new, minlength=len(labels))
        related = share_label(labels, labels)
        V = labels.astype(np.float64) if labels.ndim == 2 else np.eye(len(labels))
        P = np.pad(state.P, ((0, V.shape[1] - len(state.P)), (0, 0)))
        if state.n_batches == 1:
            P = np.random.default_rng([state.seed, 2]).normal(size=P.shape)
            P /= np.linalg.norm(P, axis=1, keepdims=True)

        # Where a stored sample is similar, B starts from the code of the first one.
        is_similar = related[:, old]  # (labels, groups)
        first = E[is_similar.argmax(axis=1)]
        B = np.where(is_similar.any(axis=1)[new, None], first[new], B)

        sums = _sums(E * state.count[:, None], old, len(labels))
        gram = (E.T * state.count) @ E
        target = self.n_bits * self._balanced(sums, related) + self.new_weight * V @ P
        target = target[new] + self.fit_weight * X @ state.W.T
        for r in range(self.n_bits):
            B[:, r] = sgn(target[:, r] - B @ gram[r] + B[:, r] * gram[r, r])

        new_sums = _sums(B, new, len(labels))
        Z = self.n_bits * self._balanced(new_sums, related) - self.old_weight * V @ P
        E = sgn(2 * Z[old] - E @ (B.T @ B))

        weight = self.new_weight * n_new + self.old_weight * n_old
        sums = _sums(E * state.count[:, None], old, len(labels))
        sums = self.new_weight * new_sums + self.old_weight * sums
        state.P = ridge_solution((V.T * weight) @ V, V.T @ sums, self.label_ridge)
        return E, B

    def _balanced(self, sums: np.ndarray, related: np.ndarray) -> np.ndarray:
        """Return codes times S for every label, from the sums of the codes of every label."""
        near = related @ sums
        return self.similar * near - self.dissimilar * (sums.sum(axis=0) - near)


def _sums(codes: np.ndarray, number: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the sum of the codes of every label, (n_labels, b)."""
    return (number == np.arange(n_labels)[:, None]).astype(np.float64) @ codes


def _ridge(X: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    """Return (X^T X + ridge I)^-1 X^T B by the smaller of X^T X and X X^T."""
    if X.shape[1] <= len(X):
        return ridge_solution(X.T @ X, X.T @ B, ridge)
    return X.T @ ridge_solution(X @ X.T, B, ridge)
