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
