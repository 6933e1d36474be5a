"""Plain twins of mihash.py and baselines.py: the formulas of the docstrings, in float64, with nothing kept or saved."""

from __future__ import annotations

import numpy as np


def tanh(x):
    return np.tanh(np.float64(x))


def dot(A, i, B, j):
    return sum(float(a) * float(b) for a, b in zip(A[i], B[j], strict=True))


def products(A, B):
    return np.array([[dot(A, i, B, j) for j in range(len(B))] for i in range(len(A))])


# ---- MIHash -------------------------------------------------------------------------------------------------------


def entropy(p):
    return -sum(q * np.log2(q) for q in p if q > 0)


def soft_histogram(d, n_bits, n_bins):
    """Shares of the distances d by triangular pulses around n_bins + 1 centres on [0, n_bits]."""
    width = n_bits / n_bins
    pulses = [[max(0.0, 1 - abs(x - l * width) / width) for l in range(n_bins + 1)] for x in d]
    return np.sum(pulses, axis=0) / len(d)


def soft_information(w_x, items, similar, W, A, n_bins):
    """I(distance; similar) of a sample with products w_x to the items, by soft codes."""
    b = len(w_x)
    phi_x, phi = 1 / (1 + np.exp(-A * w_x)), 1 / (1 + np.exp(-A * (items @ W.T)))
    d = [(b - (2 * phi_x - 1) @ (2 * row - 1)) / 2 for row in phi]
    information = entropy(soft_histogram(d, b, n_bins))
    for s in (False, True):
        part = [x for x, same in zip(d, similar, strict=True) if same == s]
        if part:
            information -= len(part) / len(d) * entropy(soft_histogram(part, b, n_bins))
    return information


def slopes(joint, width):
    """c_r by class and bin: the change of -I when an item of the class moves right by a unit of distance."""

    def log(p):
        return np.log2(p) if p > 0 else 0.0

    n = joint.sum()
    T = np.array([[log(joint[:, l].sum() / n) - log(row[l] / row.sum()) for l in range(len(row))] for row in joint])
    return np.diff(T, axis=1) / (width * n)


def ascent(x, items, similar, W, A, rate, published, n_bins):
    """W after one step for the sample x."""
    b, width = len(W), len(W) / n_bins
    phi_x, phi = 1 / (1 + np.exp(-A * (W @ x))), 1 / (1 + np.exp(-A * (items @ W.T)))
    d = (b - (2 * phi - 1) @ (2 * phi_x - 1)) / 2
    joint = np.array([(similar == s).sum() * np.nan_to_num(soft(d[similar == s], b, n_bins)) for s in (False, True)])
    with np.errstate(invalid="ignore"):
        c = slopes(joint, width)[similar.astype(int), np.minimum(d // width, n_bins - 1).astype(int)]
    g = -sum(c_r * (row / 2 if published else 2 * row - 1) for c_r, row in zip(c, phi, strict=True))
    return W - rate * A * (phi_x * (1 - phi_x) * g)[:, None] * x


def soft(d, n_bits, n_bins):
    return soft_histogram(d, n_bits, n_bins) if len(d) else np.zeros(n_bins + 1)


def information(codes, similar):
    """Mean over items of I(Hamming distance; similar), codes (n, b) bool."""
    total, b = 0.0, codes.shape[1]
    for code, same in zip(codes, similar, strict=True):
        d = (code != codes).sum(axis=1)
        total += entropy(np.bincount(d, minlength=b + 1) / len(d))
        for s in (False, True):
            part = d[same == s]
            if len(part):
                total -= len(part) / len(d) * entropy(np.bincount(part, minlength=b + 1) / len(part))
    return total / len(codes)


def mihash(X, related, W, keys, R, n_bins, sharpness, learning_rate, update_every, published):
    """(W, W in use) after the samples X, related[i, j] whether two are similar; the reservoir is a list of samples."""
    first = -(-R // 10)
    reservoir, used = list(range(min(first, len(X)))), W
    for i, x in enumerate(X):
        W = ascent(x, X[reservoir], related[i, reservoir], W, sharpness, learning_rate, published, n_bins)
        if i >= first and len(reservoir) < R:
            reservoir.append(i)
        elif i >= first:
            last = max(range(R), key=lambda r: keys[reservoir[r]])
            if keys[i] < keys[reservoir[last]]:
                reservoir[last] = i
        if (i + 1) % update_every == 0:
            similar = related[np.ix_(reservoir, reservoir)]
            new, old = (information(X[reservoir] @ V.T > 0, similar) for V in (W, used))
            used = W if new - old > 1e-9 else used  # more than rounding
    return W, used


# ---- HCOH, OSH ----------------------------------------------------------------------------------------------------


def delta_rule(Z, C, rate, W):
    W = np.array(W, np.float64)
    for z, c in zip(np.asarray(Z, np.float64), C, strict=True):
        F = np.tanh(W @ z)
        W -= rate * np.outer((F - c) * (1 - F**2), z)
    return W


def fit_codewords(Z, sample, word, C, rate, boost, W):
    W, Z = np.array(W, np.float64), np.asarray(Z, np.float64)
    for i, c in zip(sample, C[word], strict=True):
        for k in range(len(W)):
            if boost:
                before = sum(c[j] * W[j] @ Z[i] for j in range(k))  # by the w_j already updated
                W[k] += rate * np.exp(-before) * np.exp(-c[k] * W[k] @ Z[i]) * c[k] * Z[i]
            elif c[k] * W[k] @ Z[i] < 1:
                W[k] += rate * c[k] * Z[i]
    return W


# ---- BSODH --------------------------------------------------------------------------------------------------------


def bsodh(X, same, related, W, batch, ridge, fit_weight, similar, dissimilar):
    """W (d x b) after the samples X in batches, with every code and the whole of S; same[i, j]: of one class."""

    def sgn(x):
        return np.where(x >= 0, 1.0, -1.0)

    b = W.shape[1]
    stored, Be, last = [], None, None
    for start in range(0, len(X), batch):
        new = list(range(start, min(start + batch, len(X))))
        Xs = X[new].T
        if Be is None:
            stored, Be = new, sgn(W.T @ Xs)
            continue
        if last is not None:
            stored, Be = stored + last[0], np.hstack([Be, last[1]])
        S = b * np.where(related[np.ix_(new, stored)], similar, -dissimilar)
        Bs = sgn(W.T @ Xs)
        for place, i in enumerate(new):
            first = [q for q, j in enumerate(stored) if same[i, j]][:1]
            if first:
                Bs[:, place] = Be[:, first[0]]
        P = b * Be @ S.T + W.T @ Xs
        for r in range(b):
            others = [k for k in range(b) if k != r]
            Bs[r] = sgn(P[r] - (Be @ Be.T)[r, others] @ Bs[others])
        Be = sgn(Bs @ S)
        W = fit_weight * np.linalg.inv(fit_weight * Xs @ Xs.T + ridge * np.eye(len(Xs))) @ Xs @ Bs.T
        last = new, Bs
    return W
