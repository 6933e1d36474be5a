"""Measure training time on random features of the paper's shapes.

The time depends on the shape of the features and, where a method learns from mistakes, on how many
it makes. It hardly depends on what the features mean.
"""

from __future__ import annotations

import time
from unittest.mock import patch

import numpy as np

from hmoh import HMOH, OnlineHasher

__all__ = ["cpu_seconds", "random_features", "wrong_bits"]

# The dimensions in which classes are Gaussian. All features are linear in them.
DIMENSIONS = 30


def random_features(
    n: int, d: int, n_classes: int, distance: float, multi_label: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d) of Gaussian classes that overlap, and labels; always the same ones.

    Parameters
    ----------
    n, d, n_classes : int
    distance : float
        Typical distance between the means of two classes, in standard deviations.
    multi_label : bool
        Give each row one or two labels, as 0/1, and the sum of the means of its classes.

    Examples
    --------
    >>> X, y = random_features(20, 5, n_classes=3, distance=4.0)
    >>> X.shape, y.shape
    ((20, 5), (20,))
    """
    rng = np.random.default_rng(0)
    # The difference of two means has 2 DIMENSIONS independent parts.
    scale = np.float32(distance / np.sqrt(2 * DIMENSIONS))
    centres = scale * rng.standard_normal((n_classes, DIMENSIONS), dtype=np.float32)
    Y = np.zeros((n, n_classes), np.uint8)
    # Two draws can be the same label.
    for _ in range(1 + multi_label):
        y = rng.integers(n_classes, size=n)
        Y[np.arange(n), y] = 1
    Z = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    Z += Y.astype(np.float32) @ centres
    X = Z @ rng.standard_normal((DIMENSIONS, d), dtype=np.float32)
    return X, Y if multi_label else y


def wrong_bits(model: HMOH, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fit a model, and return for each sample how many bits are wrong when it arrives."""
    model.fit(X, y)
    Z = X if model.feature_map is None else model.feature_map_.transform(X)
    if y.ndim == 1:
        C = [model.targets_[label] for label in y]
    else:
        sets = [tuple(np.flatnonzero(row).tolist()) for row in y]
        C = [model.label_set_targets_[labels] for labels in sets]
    W = np.zeros((model.n_bits, Z.shape[1]), np.float32)
    counts = []
    for z, c in zip(Z, C, strict=True):
        wrong = (W @ z > 0) != (c > 0)
        W[wrong] += np.outer(c[wrong], z)
        counts.append(wrong.sum())
    return np.array(counts)


def cpu_seconds(model: OnlineHasher, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the CPU seconds of `fit` on one thread: with the feature map, and learning alone.

    Learning alone is the time inside `_learn`, which gets mapped features.
    """
    if "n_threads" in model.get_params():
        model.set_params(n_threads=1)
    kind = type(model)
    learn = kind._learn
    times = []

    def clocked(*arguments):
        start = time.process_time()
        learn(*arguments)
        times.append(time.process_time() - start)

    with patch.object(kind, "_learn", clocked):
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
    if not times:  # else a time of 0 would be believed
        raise RuntimeError(f"{kind.__name__}.fit did not call _learn; clock what it calls instead.")
    return seconds, sum(times)
