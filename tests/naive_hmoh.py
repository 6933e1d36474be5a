"""Plain twins of hmoh.py and kernels.py: the textbook line for every fast one, in float64 and Python loops."""

from __future__ import annotations

import numpy as np


def dots(Z, i, W, k, f):
    """f = the products of sample i with the rows of W from k on, as many as f holds."""
    for q in range(len(f)):
        f[q] = sum(float(z) * float(w) for z, w in zip(Z[i], W[k + q], strict=True))


def perceptron(Z, y, C, batch=1):
    """(W, average of W over the steps), both (n_bits, m); one step per batch, with the W from before it."""
    Z = np.asarray(Z, np.float64)
    W = np.zeros((C.shape[1], Z.shape[1]))
    total, n_steps = np.zeros_like(W), 0
    for start in range(0, len(Z), batch):
        before = W.copy()
        for z, label in zip(Z[start : start + batch], y[start : start + batch], strict=True):
            for k, c in enumerate(C[label].tolist()):
                sign = 1 if before[k] @ z > 0 else -1
                if sign != c:
                    W[k] += c * z
        total += W
        n_steps += 1
    return W, total / n_steps


def order(n_bits, n_labels):
    """r* of Eq. 10, where k starts at 1."""
    g = 2
    while g < n_bits or g < n_labels:
        g *= 2
    return g


def sylvester(n):
    """H_1 = [1], H_2n = [[H, H], [H, -H]]."""
    if n == 1:
        return np.ones((1, 1), int)
    H = sylvester(n // 2)
    return np.block([[H, H], [H, -H]])


def is_majority(code, columns):
    """Whether a multi-label code keeps every majority of the columns and its ties bring its sum as near 0 as can be."""
    votes = np.sum(columns, axis=0, dtype=int)
    if not np.array_equal(code[votes != 0], np.sign(votes[votes != 0])):
        return False
    n_tied = np.count_nonzero(votes == 0)
    fixed = np.sign(votes).sum()
    reachable = range(fixed - n_tied, fixed + n_tied + 1, 2)  # each tie adds +1 or -1
    return set(np.unique(code)) <= {-1, 1} and abs(np.sum(code, dtype=int)) == min(abs(s) for s in reachable)


def eta2(X, n_anchors, divisor):
    """Mean squared distance of the rest to the anchors (of the anchors to each other if there is no rest) / divisor."""
    X = np.asarray(X, np.float64)
    anchors, rest = X[:n_anchors], X[n_anchors:] if len(X) > n_anchors else X
    return np.mean([np.sum((x - a) ** 2) for x in rest for a in anchors]) / divisor


def rbf(X, anchors, eta2):
    X, anchors = np.asarray(X, np.float64), np.asarray(anchors, np.float64)
    return np.array([[np.exp(-np.sum((x - a) ** 2) / (2 * eta2)) for a in anchors] for x in X])
