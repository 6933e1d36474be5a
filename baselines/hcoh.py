"""HCOH, Hadamard Codebook based Online Hashing (Lin et al., ACM Multimedia 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import CodebookHasher, State, check_number, compiled

from .linear import LinearHasher

__all__ = ["HCOH"]


@compiled
def _delta_rule(Z, y, C, rate, W):
    """Descend half the squared error between tanh(W z) and the target C[y], sample by sample.

    Z (n, m) C (classes, bits or more) W (bits, m) float32, y (n,) int64; rate is a float64.
    """
    for i in range(len(Z)):
        for k in range(len(W)):
            f = np.float32(0)
            for j in range(Z.shape[1]):
                f += W[k, j] * Z[i, j]
            F = np.tanh(f)
            step = np.float32(rate * (C[y[i], k] - F) * (1 - F * F))
            for j in range(Z.shape[1]):
                W[k, j] += step * Z[i, j]


@dataclass(eq=False)
class HCOH(LinearHasher, CodebookHasher):
    """Hadamard Codebook based Online Hashing: the target codes of HMOH, learned by regression.

    It is the predecessor of HMOH. With F = tanh(W^T x) and the target code c of the sample's label
    (or labels, as in HMOH), a step is

        W -= eta x [(F - c) (1 - F^2)]^T ,

    which goes down the gradient of ||F - c||^2 / 2. W starts as LSH. The paper's eta is 0.1 on
    Places205 and 0.2 on the other sets. It has one sample per step, and rows of unit length
    (`UnitLength`).

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits (mean of ten seeds):

        the paper  .536 .708 .756 .772 .759 .771
        here       .534 .721 .753 .740 .775 .783

    At 8 and 48 bits the targets are Hadamard columns aligned at random, and the draw has a large
    effect.

    Parameters
    ----------
    learning_rate : float
        eta.
    n_bits, feature_map, codebook, n_classes, warmup, random_state
        As in `HMOH`.

    References
    ----------
    M. Lin, R. Ji, H. Liu, Y. Wu. Supervised Online Hashing via Hadamard Codebook Learning. ACM
    Multimedia 2018.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> y = np.array(["cat", "dog"] * 50)
    >>> model = HCOH(n_bits=4, random_state=0).fit(X, y)
    >>> np.array_equal(np.sign(model.decision_function(X[:1])[0]), model.targets_["cat"])
    True
    """

    n_bits: int = 32
    feature_map: object = None
    learning_rate: float = 0.2
    codebook: str = "random"
    n_classes: int | None = None
    warmup: int | None = None
    random_state: int | None = None

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.learning_rate, "learning_rate", float, 1e-30, 1e30)

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        rows = self._target_rows(state, y)
        W = state.W.copy()
        _delta_rule(Z, rows, state.book.table, float(self.learning_rate), W)
        state.W = W
