"""Plain twins of pairwise.py and sketching.py: the formulas of the docstrings in float64, one row at a time."""

from __future__ import annotations

import numpy as np


def sign(x):
    return np.where(np.asarray(x) > 0, 1, -1)


# ---- pairwise.py --------------------------------------------------------------------------------------------------


def okh_target(f, similar, far):
    """(codes H, target codes G) of a pair, both (2, n_bits), from its margins f; R, the bits to change."""
    H = sign(f)
    n_different = int((H[0] != H[1]).sum())
    R = n_different if similar else max(0, far - n_different)
    candidates = [k for k in range(f.shape[1]) if (H[0, k] != H[1, k]) == similar]
    G = H.copy()
    for k in sorted(candidates, key=lambda k: abs(f[:, k]).min())[:R]:
        G[abs(f[:, k]).argmin(), k] *= -1
    return H, G, R


def passive_aggressive(Z, similar, far, C, W):
    """Correct W (n_bits, m) in place by one pair after the other."""
    for pair, same in zip(np.asarray(Z, np.float64), similar, strict=True):
        f = pair @ W.T
        H, G, R = okh_target(f, same, far)
        if R:
            update = (G - H).T @ pair
            loss = np.sqrt(R) + np.sum((H - G) * f)
            W += min(C, loss / np.sum(update**2)) * update


def wrong_bits(v, u, similar, far):
    """The bits that AdaptHash corrects for a pair with the projections v and u."""
    b = len(v)
    different = sign(v) != sign(u)
    loss = max(0, different.sum() - (b - far)) if similar else max(0, far - different.sum())
    wrong = [k for k in range(b) if different[k] == similar]
    return sorted(wrong, key=lambda k: -max(abs(v[k]), abs(u[k])))[: int(np.ceil(loss))]


def gradient(G, similar, far, learning_rate, ortho):
    """The coefficients of W -= G [W; x_i; x_j] for G = W [W; x_i; x_j]^T, or None if there is no step to make."""
    b = len(G)
    sigmoid = 1 / (1 + np.exp(-np.asarray(G[:, b:], np.float64)))
    w, z = (2 * sigmoid - 1).T
    kept = wrong_bits(G[:, b], G[:, b + 1], similar, far)
    if not kept:
        return None
    slope = (sigmoid * (1 - sigmoid)).T
    coefficients = np.zeros(G.shape)
    coefficients[:, :b] = ortho * (G[:, :b] - np.eye(b))
    error = 2 * (w @ z - (b if similar else -b))
    for k in kept:
        coefficients[k, b:] = (
            learning_rate * error * 2 * z[k] * slope[0, k],
            learning_rate * error * 2 * w[k] * slope[1, k],
        )
    return coefficients


def to_unit_length(W):
    """Scale the rows of W to length one, in place."""
    for row in W:
        row /= np.sqrt(sum(w * w for w in row))


def adapt_hash(X, similar, far, learning_rate, ortho, W):
    """Correct W (d, n_bits) by the pairs X, as the paper writes it; the result."""
    W = np.array(W, np.float64)
    b = W.shape[1]
    for (xi, xj), same in zip(np.asarray(X, np.float64), similar, strict=True):
        v, u = W.T @ xi, W.T @ xj
        kept = wrong_bits(v, u, same, far)
        if not kept:
            continue
        w, z = np.tanh(v / 2), np.tanh(u / 2)
        step = ortho * W @ (W.T @ W - np.eye(b))
        for k in kept:
            inner = w @ z - (b if same else -b)
            step[:, k] += learning_rate * inner * (z[k] * (1 - w[k] ** 2) * xi + w[k] * (1 - z[k] ** 2) * xj)
        W = W - step
        W /= np.linalg.norm(W, axis=0)
    return W


# ---- sketching.py -------------------------------------------------------------------------------------------------


def shrink(B, n_rows):
    """sqrt(max(S^2 - theta, 0)) V^T by a full decomposition of B."""
    _, S, Vt = np.linalg.svd(B, full_matrices=False)
    theta = S[n_rows] ** 2 if n_rows < len(S) else 0.0
    return (np.sqrt(np.maximum(S**2 - theta, 0))[:, None] * Vt)[:n_rows]


def inserted_rows(X, batch):
    """Rows that enter the sketch of X: batch after batch, centred, each but the first with the shift of the mean."""
    X, rows = np.asarray(X, np.float64), []
    for start in range(0, len(X), batch):
        part, before = X[start : start + batch], X[:start]
        rows.append(part - part.mean(axis=0))
        if start:
            n, m = len(before), len(part)
            rows.append(np.sqrt(n * m / (n + m)) * (part.mean(axis=0) - before.mean(axis=0))[None])
    return np.concatenate(rows)


def frequent_directions(A, n_rows):
    """The sketch of A, one row at a time."""
    B = np.empty((0, A.shape[1]))
    for row in A:
        if len(B) >= n_rows:
            B = shrink(B, n_rows // 2)
            B = np.concatenate([B, np.zeros((n_rows // 2 - len(B), A.shape[1]))])
        B = np.concatenate([B, row[None]])
    return B


def walsh_hadamard(A):
    """H A by the recursion H_2n = [[H, H], [H, -H]]; the result."""
    if len(A) == 1:
        return A
    top, bottom = walsh_hadamard(A[: len(A) // 2]), walsh_hadamard(A[len(A) // 2 :])
    return np.concatenate([top + bottom, top - bottom])
