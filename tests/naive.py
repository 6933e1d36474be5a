"""Plain-Python twins of the compiled loops, under the same names, and plain definitions.

They are slow and obvious on purpose. There is one section per module.
"""

from fractions import Fraction
from itertools import chain, combinations, permutations, product
from math import log2

import numpy as np

# ---- metrics.py: twins of the compiled loops -----------------------------------------


def popcount(x):
    """Return the number of 1 bits."""
    return bin(int(x)).count("1")


def distance(x, rows, j):
    """Return the number of bits in which a code x and row j differ."""
    return sum(popcount(int(a) ^ int(b)) for a, b in zip(x, rows[j], strict=True))


def as_rows(D, x):
    """Return codes as long as x as rows: D (m, w), the parts of D (m * w,), or D.T of (1, w, m)."""
    return D[0].T if D.ndim == 3 else D.reshape(-1, len(x))


def distances(x, D, first, out):
    """Write the distances of x to the codes of D from `first` on."""
    for j in range(len(out)):
        out[j] = distance(x, as_rows(D, x), first + j)


def grade(labels, Ld, first, multi, most, step, out):
    """Write how many labels the columns of Ld share with the query: 0 or 1 without multi."""
    for j in range(len(out)):
        column = [int(word) for word in Ld[:, first + j]]
        shared = int(column == [int(word) for word in labels])
        if multi:
            words = zip(labels, column, strict=True)
            shared = min(most, sum(popcount(int(a) & b) for a, b in words))
        out[j] = step * shared


def count(is_new, Q, Lq, D, Ld, multi, weight, distance_, cells, counts):
    """Count the items of every code at its distance and grade, query by query."""
    for q in range(len(Q)):
        for j in range(Ld.shape[1]):
            shared = [0]
            grade(Lq[q], Ld, j, multi, len(counts) - 1, 1, shared)
            d = distance(Q[q], as_rows(D, Q[q]), j)
            counts[shared[0], q, d] += weight[j] if len(weight) else 1


def merge(rows, slots, shift, first, weight):
    """Number the different rows as they appear, count each, and return how many there are."""
    seen = []
    for j, row in enumerate(rows.tolist()):
        if row not in seen:
            first[len(seen)] = j
            seen.append(row)
        weight[seen.index(row)] += 1
    return len(seen)


def lowest(distance):
    """Return the lowest distance."""
    return min(distance.tolist())


def keep_nearest(keys, k, counts):
    """Move the first k keys in order to the front, and return the highest distance among them."""
    lowest_keys = sorted(keys.tolist())[:k]
    # Keys that stand for no item are equal, and before all others.
    keys[:k] = [key for key in keys.tolist() if key in lowest_keys][-k:]
    return lowest_keys[-1] >> 40


def select(Q, D, first_row, k, distance_, counts, keys):
    """Keep the k nearest of those found so far and the codes of D, in database order."""
    for q in range(len(Q)):
        rows = as_rows(D, Q[q])
        new = [(distance(Q[q], rows, j) << 40) + first_row + j for j in range(len(rows))]
        found = np.concatenate([keys[q, :k], new])
        keep_nearest(found, k, counts)
        keys[q, :k] = found[:k]


def collect(Q, D, first_row, radius, distance_, places, indices):
    """Write the row of every item within the radius to the next place of its distance.

    Without indices, the places only count.
    """
    for q in range(len(Q)):
        rows = as_rows(D, Q[q])
        for j in range(len(rows)):
            d = distance(Q[q], rows, j)
            if d <= radius:
                if len(indices):
                    indices[places[q, d]] = first_row + j
                places[q, d] += 1


def signed_sum(values, byte):
    """Return the sum of up to 8 values with the bits of a byte as signs, from the lowest on."""
    total = 0.0
    for i, value in enumerate(values):
        total += float(value) if int(byte) >> i & 1 else -float(value)
    return total


def value_score(values, code):
    """Return the score of a packed code for a float query: byte by byte, in order."""
    total = 0.0
    for t, byte in enumerate(code):
        total += signed_sum(values[8 * t : 8 * t + 8], byte)
    return total


def sum_bytes(v, sums):
    """Write the score of every byte at every place."""
    for t, byte in product(range(len(v) // 8), range(256)):
        sums[t, byte] = signed_sum(v[8 * t : 8 * t + 8], byte)


def score(sums, D, j):
    """Return the sum over the bytes of item j, in order."""
    total = 0.0
    for t, byte in enumerate(D[:, j].ravel()):
        total += float(sums[t, byte])
    return total


def score_all(v, D, sums, out):
    """Write the scores of all items."""
    for j in range(len(out)):
        out[j] = value_score(v, D[:, j].ravel()[: len(v) // 8])


def estimate(x, planes, D, first, out):
    """Write the sum of the rounded values of the bits in which items differ from the query."""
    for j in range(len(out)):
        out[j] = sum(
            popcount((int(x[k]) ^ int(D[k, first + j])) & int(digit)) << p
            for p, digits in enumerate(planes)
            for k, digit in enumerate(digits)
        )


def keep_best(scores, rows, k):
    """Move the k best in order to the front, and return the lowest score among them."""
    best = sorted(sorted(range(len(scores)), key=lambda i: -scores[i])[:k])
    scores[:k], rows[:k] = scores[best], rows[best]
    return min(scores[:k])


def select_by_value(v, Q, planes, bounds, D, first_row, k, estimate_, sums, scores, rows):
    """Keep the k best of those found so far and all items of D, in database order."""
    for q in range(len(Q)):
        new = np.empty(D.shape[1])
        D_bytes = D.view(np.uint8).reshape(*D.shape, D.itemsize)
        score_all(v[q], D_bytes, sums, new)
        all_scores = np.concatenate([scores[q, :k], new])
        all_rows = np.concatenate([rows[q, :k], first_row + np.arange(len(new))])
        keep_best(all_scores, all_rows, k)
        scores[q, :k], rows[q, :k] = all_scores[:k], all_rows[:k]


# ---- metrics.py: definitions ---------------------------------------------------------
# For one query at a time, in exact fractions: `distances` and `relevances` (0/1) of all
# items in database order.


def hamming(code, codes):
    """Return the Hamming distances of one packed code to the rows of others."""
    return [distance(code, codes, j) for j in range(len(codes))]


def relevances(label, labels):
    """Return 1 for every item with the query's label, or with a label in common, else 0."""
    if np.ndim(label) == 0:
        return [int(other == label) for other in labels]
    return [int(any(x and y for x, y in zip(label, other, strict=True))) for other in labels]


def histogram(distances, n_bits):
    """Return the number of items at each distance 0..n_bits."""
    return [list(distances).count(d) for d in range(n_bits + 1)]


def stable_ranking(distances):
    """Return the items by distance, in database order at the same distance."""
    return sorted(range(len(distances)), key=lambda j: distances[j])


def average_precision(ranked, normalize="relevant", top=None):
    """Return the AP of relevances in order of rank, or None for a query that is left out."""
    top = len(ranked) if top is None else top
    ranks = [i for i, hit in enumerate(ranked[:top], start=1) if hit]
    divisors = {"relevant": sum(ranked), "min": min(sum(ranked), top), "retrieved": len(ranks)}
    divisor = divisors[normalize]
    if not divisor:
        return None
    precisions = [Fraction(k, i) for k, i in enumerate(ranks, start=1)]
    return sum(precisions) / Fraction(divisor)


def tie_orders(distances, relevances):
    """Yield relevances in order of rank, for every distinct order of the tied items.

    All orders are equally likely.
    """
    orders = []
    for tie in sorted(set(distances)):
        pairs = zip(distances, relevances, strict=True)
        tied = [hit for d, hit in pairs if d == tie]
        orders.append(set(permutations(tied)))
    for order in product(*orders):
        yield list(chain(*order))


def expected_precision_at_k(distances, relevances, k):
    """Return the mean share of relevant items among the first k over all orders."""
    orders = tie_orders(distances, relevances)
    shares = [Fraction(sum(ranked[:k]), k) for ranked in orders]
    return sum(shares) / len(shares)


def within(distances, relevances, radius):
    """Return the relevances of the items within a distance."""
    pairs = zip(distances, relevances, strict=True)
    return [hit for d, hit in pairs if d <= radius]


def precision_at_radius(distances, relevances, radius):
    """Return the share of relevant items within a distance, or 0 if there is no item."""
    ball = within(distances, relevances, radius)
    return Fraction(sum(ball), max(len(ball), 1))


def recall_at_radius(distances, relevances, radius):
    """Return the share of the relevant items that lie within a distance, or None without any."""
    if not any(relevances):
        return None
    return Fraction(sum(within(distances, relevances, radius)), sum(relevances))


def precision_recall(queries, n_bits):
    """Return precision and recall within each radius.

    Both are means over the queries, pairs (distances, relevances), with a relevant item.
    """
    some = [query for query in queries if sum(query[1])]
    return [
        [sum(score(*query, radius) for query in some) / len(some) for radius in range(n_bits + 1)]
        for score in (precision_at_radius, recall_at_radius)
    ]


def expected(score, distances, grades, *options):
    """Return the mean of score(ranked, *options) over all orders of the tied items.

    It is None if no order has a score. An order without a score counts as 0.
    """
    scores = [score(ranked, *options) for ranked in tie_orders(distances, grades)]
    if all(one is None for one in scores):
        return None
    return sum(one or 0 for one in scores) / len(scores)


# Scores of one order: `ranked` are the relevances (0/1) or grades (0, 1, 2, ...) by rank.


def recall_at_k(ranked, k):
    """Return the share of the relevant items that are among the first k."""
    return Fraction(sum(ranked[:k]), sum(ranked)) if any(ranked) else None


def reciprocal_rank(ranked):
    """Return 1 / rank of the first relevant item."""
    return Fraction(1, 1 + ranked.index(1)) if any(ranked) else None


def dcg(ranked, k, gain):
    """Return the discounted sum of the gains of the first k items, as a float."""
    gains = {"binary": lambda g: g > 0, "linear": lambda g: g}
    gains["exponential"] = lambda g: 2**g - 1
    terms = enumerate(ranked[:k], start=1)
    return sum(gains[gain](grade) / log2(1 + rank) for rank, grade in terms)


def ndcg_at_k(ranked, k, gain):
    """Return the DCG over that of the items by decreasing grade."""
    best = dcg(sorted(ranked, reverse=True), k, gain)
    return dcg(ranked, k, gain) / best if best else None


def mean(scores):
    """Return the mean of the scores that are not None, as a float."""
    scores = [score for score in scores if score is not None]
    return float(sum(scores) / len(scores))


# ---- hmoh.py and kernels.py ----------------------------------------------------------


def dots(Z, i, W, k, f):
    """Set f to the products of sample i with the rows of W from k on."""
    for q in range(len(f)):
        f[q] = sum(float(z) * float(w) for z, w in zip(Z[i], W[k + q], strict=True))


def balance(labels, counts, a):
    """Multiply weights by min(10, N / (L n_j)), its mean over the labels j of a sample."""
    for i, row in enumerate(labels):
        own = [j for j in row if j >= 0]
        for j in own:
            counts[j] += 1
        seen = [n for n in counts if n > 0]
        a[i] *= min(10, sum(sum(seen) / (len(seen) * counts[j]) for j in own) / len(own))


def perceptron_steps(Z, y, C, batch=1, a=None):
    """Yield the rows of a batch, and W (n_bits, m) after the step.

    There is one step per batch, with the W from before it. Sample i has the weight a[i].
    """
    Z = np.asarray(Z, np.float64)
    a = np.ones(len(Z)) if a is None else a
    W = np.zeros((C.shape[1], Z.shape[1]))
    for start in range(0, len(Z), batch):
        rows = range(start, min(start + batch, len(Z)))
        before = W.copy()
        for i in rows:
            for k, c in enumerate(C[y[i]].tolist()):
                if sign(before[k] @ Z[i]) != c:
                    W[k] += a[i] * c * Z[i]
        yield rows, W.copy()


def perceptron(Z, y, C, batch=1, memory=None, a=None):
    """Return W and the average of W over the steps, both (n_bits, m).

    With a memory of n, the average forgets from step n on.
    """
    n_steps = 0
    for _, W in perceptron_steps(Z, y, C, batch, a):
        n_steps += 1
        if n_steps == 1:
            total = np.zeros_like(W)
            A = np.zeros_like(W)
        total += W
        A += (W - A) * max(1 / n_steps, 1 / (memory or n_steps))
    # Without forgetting the sum is exact on integers.
    uniform = memory is None or n_steps <= memory
    return W, total / n_steps if uniform else A


def kept(a, b, n):
    """Return the product of 1 - max(1/t, 1/n) over the steps t after a and up to b."""
    share = 1
    for t in range(a + 1, b + 1):
        share *= 1 - max(1 / t, 1 / n)
    return share


def average(W, A, since, t, n, functions):
    """Let every A[k] follow W[k] from step since[k] to step t, and write the result."""
    n_bits, m = functions.shape
    for k in range(n_bits):
        row = [float(a) for a in A[k, :m]]
        for step in range(since[k] + 1, t + 1):
            rate = max(1 / step, 1 / n)
            row = [a + (float(w) - a) * rate for w, a in zip(W[k, :m], row, strict=True)]
        functions[k] = row


def order(n_bits, n_labels):
    """Return r* of Eq. 10, where k starts at 1."""
    g = 2
    while g < n_bits or g < n_labels:
        g *= 2
    return g


def sylvester(n):
    """Return H_n by H_1 = [1], H_2n = [[H, H], [H, -H]]."""
    if n == 1:
        return np.ones((1, 1), int)
    H = sylvester(n // 2)
    return np.block([[H, H], [H, -H]])


def is_majority(code, columns):
    """Tell whether a multi-label code keeps every majority of the columns.

    Its ties must also bring its sum as near to 0 as possible.
    """
    votes = np.sum(columns, axis=0, dtype=int)
    if not np.array_equal(code[votes != 0], np.sign(votes[votes != 0])):
        return False
    n_tied = np.count_nonzero(votes == 0)
    fixed = np.sign(votes).sum()
    if not set(np.unique(code)) <= {-1, 1}:
        return False
    # Each tie adds +1 or -1.
    reachable = range(fixed - n_tied, fixed + n_tied + 1, 2)
    return abs(np.sum(code, dtype=int)) == min(abs(s) for s in reachable)


def eta2(X, n_anchors, divisor):
    """Return the mean squared distance of the rest to the anchors / divisor.

    If there is no rest, the distances are those between different anchors.
    """
    X = np.asarray(X, np.float64)
    anchors = X[:n_anchors]
    if len(X) > n_anchors:
        return squared_distances(X[n_anchors:], anchors).mean() / divisor
    pairs = combinations(anchors, 2)
    return np.mean([np.sum((a - b) ** 2) for a, b in pairs]) / divisor


def spread_probability(X, rows):
    """Return the probability that k-means++ draws these rows of X, in this order."""
    D = squared_distances(X, X)
    probability = 1 / len(X)
    for i in range(1, len(rows)):
        weights = D[:, rows[:i]].min(axis=1)
        probability *= weights[rows[i]] / weights.sum()
    return probability


def lloyd_step(X, centres):
    """Return each centre moved to the mean of the rows that are nearest to it.

    Centres without rows move to the rows that are farthest from their centres.
    """
    D = squared_distances(X, centres)
    nearest = D.argmin(axis=1)
    far = sorted(range(len(X)), key=lambda i: -D[i].min())
    moved = []
    for k in range(len(centres)):
        own = X[nearest == k]
        moved.append(own.mean(axis=0) if len(own) else X[far.pop(0)])
    return np.array(moved)


def exponents(X, A, unit, Z):
    """Set Z[i, k] to -||(x_i - a_k) unit||^2."""
    for i, x in enumerate(X.tolist()):
        for k, a in enumerate(A.tolist()):
            pairs = zip(x, a, strict=True)
            Z[i, k] = -sum(((p - q) * float(unit)) ** 2 for p, q in pairs)


def rbf(X, anchors, eta2):
    """Return the features exp(-||x - a||^2 / (2 eta^2))."""
    return np.exp(-squared_distances(X, anchors) / (2 * eta2))


def squared_distances(A, B):
    """Return ||a - b||^2 for all rows a of A and b of B."""
    A = np.asarray(A, np.float64)
    B = np.asarray(B, np.float64)
    return np.array([[np.sum((a - b) ** 2) for b in B] for a in A])


def sign(x):
    """Return +1 where x is above 0 and -1 elsewhere."""
    return np.where(np.asarray(x) > 0, 1, -1)


# ---- baselines/pairwise.py -----------------------------------------------------------


def okh_target(f, similar, far):
    """Return codes H and target codes G of a pair, both (2, n_bits), from its margins f.

    R is the number of bits to change.
    """
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
    """Return the bits that AdaptHash corrects for a pair with the projections v and u."""
    b = len(v)
    different = sign(v) != sign(u)
    n_different = different.sum()
    loss = max(0, n_different - (b - far) if similar else far - n_different)
    wrong = [k for k in range(b) if different[k] == similar]
    return sorted(wrong, key=lambda k: -max(abs(v[k]), abs(u[k])))[: int(np.ceil(loss))]


def adapt_hash(X, similar, far, learning_rate, ortho, W):
    """Return W (d, n_bits) after the corrections by the pairs X, as the paper writes it."""
    W = np.array(W, np.float64)
    b = W.shape[1]
    for (xi, xj), same in zip(np.asarray(X, np.float64), similar, strict=True):
        v = W.T @ xi
        u = W.T @ xj
        kept = wrong_bits(v, u, same, far)
        if not kept:
            continue
        w = np.tanh(v / 2)
        z = np.tanh(u / 2)
        step = ortho * W @ (W.T @ W - np.eye(b))
        for k in kept:
            inner = w @ z - (b if same else -b)
            slope = z[k] * (1 - w[k] ** 2) * xi + w[k] * (1 - z[k] ** 2) * xj
            step[:, k] += learning_rate * inner * slope
        W = W - step
        W /= np.linalg.norm(W, axis=0)
    return W


# ---- baselines/sketching.py ----------------------------------------------------------


def shrink(B, n_rows):
    """Return sqrt(max(S^2 - theta, 0)) V^T by a full decomposition of B."""
    _, S, Vt = np.linalg.svd(B, full_matrices=False)
    theta = S[n_rows] ** 2 if n_rows < len(S) else 0.0
    return (np.sqrt(np.maximum(S**2 - theta, 0))[:, None] * Vt)[:n_rows]


def inserted_rows(X, batch):
    """Return the rows that enter the sketch of X, batch after batch.

    They are the centred rows of the batch, and the shift of the mean after the first.
    """
    X = np.asarray(X, np.float64)
    rows = []
    for start in range(0, len(X), batch):
        part = X[start : start + batch]
        before = X[:start]
        rows.append(part - part.mean(axis=0))
        if start:
            n = len(before)
            m = len(part)
            shift = part.mean(axis=0) - before.mean(axis=0)
            rows.append(np.sqrt(n * m / (n + m)) * shift[None])
    return np.concatenate(rows)


def frequent_directions(A, n_rows):
    """Return the sketch of A, made one row at a time."""
    B = np.empty((0, A.shape[1]))
    for row in A:
        if len(B) >= n_rows:
            B = shrink(B, n_rows // 2)
            B = np.concatenate([B, np.zeros((n_rows // 2 - len(B), A.shape[1]))])
        B = np.concatenate([B, row[None]])
    return B


# ---- baselines/mihash.py -------------------------------------------------------------


def entropy(p):
    """Return the entropy of shares p in bits."""
    return -sum(q * np.log2(q) for q in p if q > 0)


def soft_histogram(d, n_bits, n_bins):
    """Return the shares of the distances d by triangular pulses.

    Their n_bins + 1 centres divide [0, n_bits] evenly.
    """
    width = n_bits / n_bins
    pulses = np.empty((len(d), n_bins + 1))
    for i, x in enumerate(d):
        for l in range(n_bins + 1):
            pulses[i, l] = max(0.0, 1 - abs(x - l * width) / width)
    return np.sum(pulses, axis=0) / len(d)


def soft_information(w_x, items, similar, W, A, n_bins):
    """Return I(distance; similar) of a sample with products w_x to the items, by soft codes."""
    b = len(w_x)
    phi_x = 1 / (1 + np.exp(-A * w_x))
    phi = 1 / (1 + np.exp(-A * (items @ W.T)))
    d = [(b - (2 * phi_x - 1) @ (2 * row - 1)) / 2 for row in phi]
    information = entropy(soft_histogram(d, b, n_bins))
    for s in (False, True):
        part = [x for x, same in zip(d, similar, strict=True) if same == s]
        if part:
            information -= len(part) / len(d) * entropy(soft_histogram(part, b, n_bins))
    return information


def slopes(joint, width):
    """Return c_r by class and bin.

    It is the change of -I when an item of the class moves right by a unit of distance.
    """

    def log(p):
        return np.log2(p) if p > 0 else 0.0

    n = joint.sum()
    T = np.empty(joint.shape)
    for s, row in enumerate(joint):
        for l in range(len(row)):
            T[s, l] = log(joint[:, l].sum() / n) - log(row[l] / row.sum())
    return np.diff(T, axis=1) / (width * n)


def ascent(x, items, similar, W, A, rate, published, n_bins):
    """Return W after one step for the sample x."""
    b = len(W)
    width = b / n_bins
    phi_x = 1 / (1 + np.exp(-A * (W @ x)))
    phi = 1 / (1 + np.exp(-A * (items @ W.T)))
    d = (b - (2 * phi - 1) @ (2 * phi_x - 1)) / 2
    joint = np.zeros((2, n_bins + 1))
    for s in (0, 1):
        part = d[similar == s]
        if len(part):
            joint[s] = len(part) * soft_histogram(part, b, n_bins)
    bins = np.minimum(d // width, n_bins - 1).astype(int)
    with np.errstate(invalid="ignore"):
        c = slopes(joint, width)[similar.astype(int), bins]
    factors = phi / 2 if published else 2 * phi - 1
    g = -(c @ factors)
    return W - rate * A * (phi_x * (1 - phi_x) * g)[:, None] * x


def histograms(codes, similar):
    """Return for each item the numbers of dissimilar, then of similar items by distance."""
    n, b = codes.shape
    counts = np.zeros((n, 2, b + 1), int)
    for q in range(n):
        for r in range(n):
            distance = (codes[q] != codes[r]).sum()
            counts[q, int(similar[q, r]), distance] += 1
    return counts.reshape(n, -1)


def information(codes, similar):
    """Return the mean over items of I(Hamming distance; similar), codes (n, b) bool."""
    total = 0.0
    for code, same in zip(codes, similar, strict=True):
        d = (code != codes).sum(axis=1)
        total += entropy(np.bincount(d) / len(d))
        for s in (False, True):
            part = d[same == s]
            if len(part):
                share = len(part) / len(d)
                total -= share * entropy(np.bincount(part) / len(part))
    return total / len(codes)


def mihash(X, related, W, keys, R, n_bins, sharpness, learning_rate, update_every, published):
    """Return W, and the W in use, after the samples X.

    related[i, j] tells whether two samples are similar. The reservoir is a list of samples.
    """
    first = -(-R // 10)
    reservoir = list(range(min(first, len(X))))
    used = W
    options = (sharpness, learning_rate, published, n_bins)
    for i, x in enumerate(X):
        W = ascent(x, X[reservoir], related[i, reservoir], W, *options)
        if i >= first and len(reservoir) < R:
            reservoir.append(i)
        elif i >= first:
            last = max(range(R), key=lambda r: keys[reservoir[r]])
            if keys[i] < keys[reservoir[last]]:
                reservoir[last] = i
        if (i + 1) % update_every == 0:
            similar = related[np.ix_(reservoir, reservoir)]
            new = information(X[reservoir] @ W.T > 0, similar)
            old = information(X[reservoir] @ used.T > 0, similar)
            # A difference above rounding.
            used = W if new - old > 1e-9 else used
    return W, used


# ---- baselines/hcoh.py and baselines/osh.py ------------------------------------------


def delta_rule(Z, C, rate, W):
    """Return W after one step of HCOH per sample."""
    W = np.array(W, np.float64)
    for z, c in zip(np.asarray(Z, np.float64), C, strict=True):
        F = np.tanh(W @ z)
        W -= rate * np.outer((F - c) * (1 - F**2), z)
    return W


def fit_codewords(Z, sample, word, C, rate, boost, W):
    """Return W after steps of OSH, by the boosted exponential or the hinge loss."""
    W = np.array(W, np.float64)
    Z = np.asarray(Z, np.float64)
    for i, c in zip(sample, C[word], strict=True):
        for k in range(len(W)):
            if boost:
                # The w_j before k are already updated.
                before = sum(c[j] * W[j] @ Z[i] for j in range(k))
                weight = np.exp(-before) * np.exp(-c[k] * W[k] @ Z[i])
                W[k] += rate * weight * c[k] * Z[i]
            elif c[k] * W[k] @ Z[i] < 1:
                W[k] += rate * c[k] * Z[i]
    return W


# ---- baselines/published.py ----------------------------------------------------------


def published_target(columns):
    """Return the target of a label set from its labels' columns, as the published HMOH does it.

    columns is a list of lists of +1 and -1.
    """
    sums = [sum(bits) for bits in zip(*columns, strict=True)]
    n_plus = sum(s > 0 for s in sums)
    n_minus = sum(s < 0 for s in sums)
    n_tied = len(sums) - n_plus - n_minus
    if n_tied and n_plus == n_minus:
        n_first = n_tied // 2 + n_tied % 2
        return [1 if k < n_first else -1 for k in range(len(sums))]
    tie = -1 if n_plus > n_minus else 1
    return [1 if s > 0 else -1 if s < 0 else tie for s in sums]


# ---- baselines/bsodh.py --------------------------------------------------------------


def bsodh(X, same, related, W, batch, ridge, fit_weight, similar, dissimilar, order):
    """Return W (d x b) after the samples X in batches, with every code and the whole of S.

    same[i, j] tells whether two samples are of one class; order is that of the steps, as "WEB".
    """

    def sgn(x):
        return np.where(x >= 0, 1.0, -1.0)

    b = W.shape[1]
    stored = []
    Be = None
    last = None
    for start in range(0, len(X), batch):
        new = list(range(start, min(start + batch, len(X))))
        Xs = X[new].T
        if Be is None:
            stored = new
            Be = sgn(W.T @ Xs)
            continue
        if last is not None:
            last_rows, last_codes = last
            stored = stored + last_rows
            Be = np.hstack([Be, last_codes])
        S = b * np.where(related[np.ix_(new, stored)], similar, -dissimilar)
        Bs = sgn(W.T @ Xs)
        for place, i in enumerate(new):
            first = [q for q, j in enumerate(stored) if same[i, j]][:1]
            if first:
                Bs[:, place] = Be[:, first[0]]
        for step in order:
            if step == "W":
                inverse = np.linalg.inv(fit_weight * Xs @ Xs.T + ridge * np.eye(len(Xs)))
                W = fit_weight * inverse @ Xs @ Bs.T
            if step == "E":
                Be = sgn(Bs @ S)
            if step == "B":
                P = b * Be @ S.T + W.T @ Xs
                for r in range(b):
                    others = [k for k in range(b) if k != r]
                    Bs[r] = sgn(P[r] - (Be @ Be.T)[r, others] @ Bs[others])
        last = new, Bs
    return W


# ---- baselines/discrete.py -----------------------------------------------------------


def polar(M):
    """Return the factor of M nearest to it with orthonormal columns, on the rank of M."""
    values, vectors = np.linalg.eigh(M.T @ M)
    roots = [0 if v < 1e-10 * values[-1] else v**-0.5 for v in values]
    return M @ (vectors * roots) @ vectors.T


def balanced(Z):
    """Return the V nearest to Z whose columns have sum zero and are orthogonal."""
    return len(Z) ** 0.5 * polar(Z - np.full(len(Z), 1 / len(Z)) @ Z)


def lemon(X, L, draws, similarity, embedding, embedding_ridge, ridge):
    """Return W and all codes from every sample so far; draws are (B, V, R) of each chunk."""
    G = L / np.sqrt((L**2).sum(axis=1))[:, None]
    B_all, V_all = (np.zeros((0, len(draws[0][2]))) for _ in range(2))
    for B, V, R in draws:
        new = range(len(B_all), len(B_all) + len(B))
        stop = new[-1] + 1
        b = B.shape[1]
        S = b * similarity * (2 * G[new] @ G[:stop].T - 1)  # (chunk, samples so far)
        for _ in range(5):
            both = np.vstack([V_all, V])
            inverse = np.linalg.inv(both.T @ both + embedding_ridge * np.eye(b))
            P = inverse @ both.T @ L[:stop]
            V = balanced(B @ R.T + embedding * L[new] @ P.T + S @ np.vstack([B_all, B]))
            both = np.vstack([V_all, V])
            R = polar(np.vstack([B_all, B]).T @ both).T
            B = np.where(S @ both + V @ R >= 0, 1, -1)
        B_all, V_all = np.vstack([B_all, B]), np.vstack([V_all, V])
    return np.linalg.inv(X.T @ X + ridge * np.eye(X.shape[1])) @ X.T @ B_all, B_all


def oasis(X, L, draws, similarity, embedding, fit_weight, embedding_ridge, ridge):
    """Return W and all codes from every sample so far; draws are (B, U) of each chunk."""
    G = L / np.sqrt((L**2).sum(axis=1))[:, None]
    B_all, V_all = (np.zeros((0, draws[0][0].shape[1])) for _ in range(2))
    for B, U in draws:
        new = range(len(B_all), len(B_all) + len(B))
        stop = new[-1] + 1
        b = B.shape[1]
        S = b * similarity * G[new] @ G[:stop].T
        for _ in range(5):
            V = balanced(S @ np.vstack([B_all, B]) + embedding * G[new] @ U + B)
            both = np.vstack([V_all, V])
            U = G[:stop].T @ both @ np.linalg.inv(both.T @ both + embedding_ridge * np.eye(b))
            inverse = np.linalg.inv(X[:stop].T @ X[:stop] + ridge * np.eye(X.shape[1]))
            W = inverse @ X[:stop].T @ np.vstack([B_all, B])
            B = np.where(S @ both + V + fit_weight * X[new] @ W >= 0, 1, -1)
        B_all, V_all = np.vstack([B_all, B]), np.vstack([V_all, V])
    return W, B_all


# ---- baselines/foh.py ----------------------------------------------------------------


def foh(X, V, related, W, P, batch, ridge, sigma, similar, dissimilar, theta, mu, tau):
    """Return the mean of all W (d x b), with every code and the whole of S; P is (b x labels)."""

    def sgn(x):
        return np.where(x >= 0, 1.0, -1.0)

    b = W.shape[1]
    total, E = W, sgn(W.T @ X[:batch].T)
    starts = range(batch, len(X), batch)
    for start in starts:
        new, old = range(start, min(start + batch, len(X))), range(start)
        Xs, Vs, Ve = X[new].T, V[new].T, V[:start].T
        S = np.where(related[np.ix_(new, old)], similar, -dissimilar)
        B = sgn(W.T @ Xs)
        for place, i in enumerate(new):
            first = [j for j in old if related[i, j]][:1]
            if first:
                B[:, place] = E[:, first[0]]
        G = b * E @ S.T + sigma * W.T @ Xs + theta * P @ Vs
        for r in range(b):
            others = [k for k in range(b) if k != r]
            B[r] = sgn(G[r] - E[r] @ E[others].T @ B[others])
        E = sgn(2 * (b * B @ S - mu * P @ Ve) - B @ B.T @ E)
        inverse = np.linalg.inv(theta * Vs @ Vs.T + mu * Ve @ Ve.T + tau * np.eye(len(Vs)))
        P = (mu * E @ Ve.T + theta * B @ Vs.T) @ inverse
        W = sigma * np.linalg.inv(sigma * Xs @ Xs.T + ridge * np.eye(len(Xs))) @ Xs @ B.T
        total, E = total + W, np.hstack([E, B])
    return total / (1 + len(starts))


# ---- ridge.py -----------------------------------------------------


def solve(A, B):
    """Return X with A X = B by Gaussian elimination, as lists of rows."""
    n = len(A)
    rows = [list(map(float, [*A[i], *B[i]])) for i in range(n)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [[value / rows[k][k] for value in rows[k][n:]] for k in range(n)]


def hadamard_ridge(Z, C, ridge, memory=None):
    """Return W (m, n_bits) from samples Z with targets C, one for each sample.

    G and B are the averages of z z^T and z c^T, which forget from sample `memory` on.
    """
    m = len(Z[0])
    G = np.zeros((m, m))
    B = np.zeros((m, len(C[0])))
    for t in range(1, len(Z) + 1):
        z = np.asarray(Z[t - 1], np.float64)
        rate = max(1 / t, 1 / (memory or t))
        G += (np.outer(z, z) - G) * rate
        B += (np.outer(z, C[t - 1]) - B) * rate
    mean_square = sum(G[j, j] for j in range(m)) / m
    for j in range(m):
        G[j, j] += ridge * mean_square
    return np.array(solve(G, B))
