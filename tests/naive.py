"""Plain-Python twins of the compiled loops, under the same names, and the definitions written out as one reads them.

Slow and obvious on purpose. One section per module.
"""

from fractions import Fraction
from itertools import chain, permutations, product

import numpy as np

# ---- metrics.py: twins of the compiled loops -------------------------------------------------------------------


def popcount(x):
    """Number of 1 bits."""
    return bin(int(x)).count("1")


def distance(x, D, j):
    """Number of bits in which a code x and row j of D differ."""
    return sum(popcount(int(a) ^ int(b)) for a, b in zip(x, D[j], strict=True))


def is_relevant(Lq, q, Ld, j, multi):
    """Whether the two ids are equal, or the two label sets share a 1."""
    return any(int(a) & int(b) for a, b in zip(Lq[q], Ld[j], strict=True)) if multi else int(Lq[q, 0]) == int(Ld[j, 0])


def count(Q, D, weight, start, stop, counts):
    """counts[q, d] += weight of the rows start[q]..stop[q] of D at distance d of query q."""
    for q in range(len(Q)):
        for j in range(start[q], stop[q]):
            counts[q, distance(Q[q], D, j)] += weight[j]


def count_multi(Q, D, weight, Lq, Ld, items, relevant):
    """The same over all rows for label sets, all items and relevant ones."""
    for q in range(len(Q)):
        for j in range(len(D)):
            items[q, distance(Q[q], D, j)] += weight[j]
            if is_relevant(Lq, q, Ld, j, True):
                relevant[q, distance(Q[q], D, j)] += weight[j]


def rank_stable(Q, D, Lq, Ld, multi, top, rank, hits, precision, found):
    """Give every row its rank, in database order within a distance, and add up the precisions at hits up to top."""
    for q in range(len(Q)):
        for j in range(len(D)):
            d = distance(Q[q], D, j)
            hit = is_relevant(Lq, q, Ld, j, multi)
            rank[q, d] += 1
            hits[q, d] += hit
            if hit and rank[q, d] <= top:
                precision[q] += hits[q, d] / rank[q, d]
                found[q] += 1


def select(Q, D, first_row, place, distances, indices):
    """Put every row into the next free place of its distance, if that is among the k best."""
    k = distances.shape[1]
    for q in range(len(Q)):
        for j in range(len(D)):
            d = distance(Q[q], D, j)
            if place[q, d] < k:
                distances[q, place[q, d]], indices[q, place[q, d]] = d, first_row + j
                place[q, d] += 1


# ---- metrics.py: definitions -----------------------------------------------------------------------------------
# One query at a time: `distances` and `relevances` (0/1) of all items in database order. Exact fractions.


def hamming(code, codes):
    """Hamming distances of one packed code to the rows of others."""
    return [sum(popcount(a ^ b) for a, b in zip(code.tolist(), row, strict=True)) for row in codes.tolist()]


def relevances(label, labels):
    """1 for every item with the query's label, or, for rows of 0/1, with a label in common."""
    if np.ndim(label) == 0:
        return [int(other == label) for other in labels]
    return [int(any(x and y for x, y in zip(label, other, strict=True))) for other in labels]


def histogram(distances, n_bits):
    """Number of items at each distance 0..n_bits."""
    return [list(distances).count(d) for d in range(n_bits + 1)]


def stable_ranking(distances):
    """Items by distance, in database order within one."""
    return sorted(range(len(distances)), key=lambda j: distances[j])


def average_precision(ranked, normalize="relevant", top=None):
    """AP of relevances in order of rank; None for a query that is left out."""
    top = len(ranked) if top is None else top
    ranks = [i for i, hit in enumerate(ranked[:top], start=1) if hit]
    divisor = {"relevant": sum(ranked), "min": min(sum(ranked), top), "retrieved": len(ranks)}[normalize]
    return sum(Fraction(k, i) for k, i in enumerate(ranks, start=1)) / Fraction(divisor) if divisor else None


def tie_orders(distances, relevances):
    """Relevances in order of rank, for every distinct order of the tied items; all are equally likely."""
    ties = [[hit for d, hit in zip(distances, relevances, strict=True) if d == tie] for tie in sorted(set(distances))]
    for order in product(*(set(permutations(tie)) for tie in ties)):
        yield list(chain(*order))


def expected_average_precision(distances, relevances, normalize="relevant", top=None):
    """Mean AP over all orders, one without a score counting 0; None if no order has one."""
    scores = [average_precision(ranked, normalize, top) for ranked in tie_orders(distances, relevances)]
    if all(score is None for score in scores):
        return None
    return sum(score or 0 for score in scores) / Fraction(len(scores))


def expected_precision_at_k(distances, relevances, k):
    """Mean share of relevant items among the first k over all orders."""
    shares = [Fraction(sum(ranked[:k]), k) for ranked in tie_orders(distances, relevances)]
    return sum(shares) / len(shares)


def precision_at_radius(distances, relevances, radius):
    """Share of relevant items within a distance; 0 if there is no item."""
    ball = [hit for d, hit in zip(distances, relevances, strict=True) if d <= radius]
    return Fraction(sum(ball), max(len(ball), 1))


def recall_at_radius(distances, relevances, radius):
    """Share of the relevant items that lie within a distance."""
    return Fraction(sum(hit for d, hit in zip(distances, relevances, strict=True) if d <= radius), sum(relevances))


def precision_recall(queries, n_bits):
    """(precision, recall) within each radius, means over the (distances, relevances) that have a relevant item."""
    some = [query for query in queries if sum(query[1])]
    return tuple(
        [sum(share(*query, radius) for query in some) / len(some) for radius in range(n_bits + 1)]
        for share in (precision_at_radius, recall_at_radius)
    )


def mean(scores):
    """Mean of the scores that are not None, as a float."""
    scores = [score for score in scores if score is not None]
    return float(sum(scores) / len(scores))


# ---- hmoh.py and kernels.py -----------------------------------------------------------------------------------


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


# ---- mihash.py and baselines.py -------------------------------------------------------------------------------------


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
