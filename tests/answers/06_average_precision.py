"""Answers of students to the checks of 06_average_precision; see test_exercises.py."""


# %% wrong ap: not 1/rank
def average_precision(relevant):
    total = 0
    for rank, hit in enumerate(relevant, 1):
        if hit:
            total += 1 / rank
    return total / sum(relevant)


# %% wrong ap: not by the length of the list
def average_precision(relevant):
    hits = np.cumsum(relevant)
    ranks = np.arange(1, len(relevant) + 1)
    return np.mean(hits / ranks * relevant)


# %% wrong ap: not at every rank
def average_precision(relevant):
    precisions = []
    for i in range(1, len(relevant) + 1):
        precisions.append(sum(relevant[:i]) / i)
    return sum(precisions) / len(precisions)


# %% wrong ap: divide the sum by the number of hits
def average_precision(relevant):
    return sum(sum(relevant[:i]) / i for i in range(1, len(relevant) + 1) if relevant[i - 1])


# %% wrong ap: go on after the first hit
def average_precision(relevant):
    for rank, hit in enumerate(relevant, 1):
        if hit:
            return 1 / rank


# %% wrong ap: ranks count from 1, so the first item has rank 1
def average_precision(relevant):
    hits = 0
    total = 0
    for rank, hit in enumerate(relevant):
        if hit:
            hits += 1
            total += hits / rank
    return total / hits


# %% wrong ap: count a hit before you divide
swap("enumerate(relevant)", "enumerate(relevant, 1)")
swap(
    "            hits += 1\n            total += hits / rank",
    "            total += hits / rank\n            hits += 1",
)


# %% wrong ap: one number is needed
def average_precision(relevant):
    relevant = np.array(relevant)
    ranks = np.flatnonzero(relevant) + 1
    return np.cumsum(relevant)[relevant == 1] / ranks


# %% wrong ap: metrics.mean_average_precision does the whole task
def average_precision(relevant):
    n = len(relevant)
    db = (2 ** np.arange(n, dtype=np.uint8)[:, None]).astype(np.uint8)
    labels = np.array(relevant)
    return mean_average_precision(db[:1], db, [1], labels, ties="stable")


# %% wrong ap: do not round
def average_precision(relevant):
    ranks = np.flatnonzero(relevant) + 1
    return round(np.mean(np.arange(1, len(ranks) + 1) / ranks), 4)


# %% right ap: with numpy, only at the hits
def average_precision(relevant):
    ranks = np.flatnonzero(relevant) + 1
    return np.mean(np.arange(1, len(ranks) + 1) / ranks)


# %% right ap: exact fractions
def average_precision(relevant):
    from fractions import Fraction

    ranks = [i for i, hit in enumerate(relevant, 1) if hit]
    total = sum((Fraction(k, i) for k, i in enumerate(ranks, 1)), Fraction(0))
    return total / len(ranks)


# %% wrong enumerate: keep the values of both
def expected_by_enumeration(ties):
    choices = [list(combinations(range(n), k)) for n, k in ties]
    for places in product(*choices):
        ranked = []
        for (n, _), chosen in zip(ties, places):
            ranked += [int(i in chosen) for i in range(n)]
        values = [average_precision(ranked)]  # begins again every time
    return float(np.mean(values))


# %% wrong enumerate: mean of the best and the worst placement leaves the others out
def expected_by_enumeration(ties):
    best = []
    worst = []
    for n, k in ties:
        best += [1] * k + [0] * (n - k)
        worst += [0] * (n - k) + [1] * k
    return (average_precision(best) + average_precision(worst)) / 2


# %% wrong enumerate: that is the median of the placements
def expected_by_enumeration(ties):
    choices = [list(combinations(range(n), k)) for n, k in ties]
    values = []
    for places in product(*choices):
        ranked = []
        for (n, _), chosen in zip(ties, places):
            ranked += [int(i in chosen) for i in range(n)]
        values.append(average_precision(ranked))
    return np.median(values)


# %% wrong enumerate: instead of drawing some
def expected_by_enumeration(ties):
    rng = np.random.default_rng(0)
    values = []
    for _ in range(500):
        ranked = []
        for n, k in ties:
            ranked += rng.permutation([1] * k + [0] * (n - k)).tolist()
        values.append(average_precision(ranked))
    return np.mean(values)


# %% wrong enumerate: the items of a tie without relevant ones take ranks too
def expected_by_enumeration(ties):
    ties = [(n, k) for n, k in ties if k]
    choices = [list(combinations(range(n), k)) for n, k in ties]
    values = []
    for places in product(*choices):
        ranked = []
        for (n, _), chosen in zip(ties, places):
            ranked += [int(i in chosen) for i in range(n)]
        values.append(average_precision(ranked))
    return np.mean(values)


# %% wrong enumerate: every choice of the first tie with every choice of the second
def expected_by_enumeration(ties):
    choices = [list(combinations(range(n), k)) for n, k in ties]
    values = []
    # zip stops at the shortest list of choices, and pairs them off.
    for places in zip(*choices):
        ranked = []
        for (n, _), chosen in zip(ties, places):
            ranked += [int(i in chosen) for i in range(n)]
        values.append(average_precision(ranked))
    return np.mean(values)


# %% wrong enumerate: metrics.HammingHistogram does the whole task
def expected_by_enumeration(ties):
    items, relevant = np.array(ties).T
    return HammingHistogram(items[None], relevant[None]).mean_average_precision()


# %% right enumerate: all orders of the items, by permutations
def expected_by_enumeration(ties):
    from itertools import permutations

    orders = []
    for n, k in ties:
        # The same order of 0 and 1 comes as often as any other.
        orders.append(sorted(set(permutations([1] * k + [0] * (n - k)))))
    values = [average_precision(sum(order, ())) for order in product(*orders)]
    return sum(values) / len(values)


# %% right enumerate: recursive
def expected_by_enumeration(ties, before=()):
    if not ties:
        return average_precision(before)
    (n, k), *rest = ties
    values = []
    for chosen in combinations(range(n), k):
        tie = tuple(int(i in chosen) for i in range(n))
        values.append(expected_by_enumeration(rest, before + tie))
    return sum(values) / len(values)


# %% right enumerate: also after a wrong average_precision
def average_precision(relevant):
    return sum(relevant) / len(relevant)


def expected_by_enumeration(ties):
    choices = [list(combinations(range(n), k)) for n, k in ties]
    values = []
    for places in product(*choices):
        ranked = []
        for (n, _), chosen in zip(ties, places):
            ranked += [int(i in chosen) for i in range(n)]
        values.append(average_precision(ranked))
    return np.mean(values)


# %% wrong closed: items at a distance with n⁺ = 0 still count in N
def expected_ap(items, relevant):
    N = N_hits = total = 0
    for n, hits in zip(items.tolist(), relevant.tolist()):
        if hits == 0:
            continue
        m = (hits - 1) / (n - 1) if n > 1 else 0
        inner = m * n + (N_hits + 1 - (N + 1) * m) * (harmonic(N + n) - harmonic(N))
        total += hits / n * inner
        N += n
        N_hits += hits
    return total / N_hits


# %% right closed: what the next ones change
def expected_ap(items, relevant):
    N = N_hits = total = 0
    for n, hits in zip(items.tolist(), relevant.tolist()):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0
            inner = m * n + (N_hits + 1 - (N + 1) * m) * (harmonic(N + n) - harmonic(N))
            total += hits / n * inner
        N += n
        N_hits += hits
    return total / N_hits


# %% wrong closed: m is \(n⁺ - 1\)/\(n - 1\), not n⁺/n
swap("m = (hits - 1) / (n - 1) if n > 1 else 0", "m = hits / n")

# %% wrong closed: divide the total by R
swap("return total / N_hits", "return total")

# %% wrong closed: for n = 1 take m = 0
swap("m = (hits - 1) / (n - 1) if n > 1 else 0", "m = (hits - 1) / (n - 1)")

# %% wrong closed: add n⁺ to it after each tie
swap("    N_hits += hits\n    return total / N_hits", "return total / relevant.sum()")


# %% wrong closed: with N and not N \+ 1
def expected_ap(items, relevant):
    N = N_hits = total = 0
    for n, hits in zip(items.tolist(), relevant.tolist()):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0
            steps = harmonic(N + n) - harmonic(N + 1)
            total += hits / n * (m * n + (N_hits + 1 - (N + 1) * m) * steps)
        N += n
        N_hits += hits
    return total / N_hits


# %% wrong closed: visits every item: no loop and no array
swap("steps = harmonic(N + n) - harmonic(N + 1)", "i = np.arange(N + 1, N + n + 1)")
swap("(m * n + (N_hits + 1 - (N + 1) * m) * steps", "np.sum((N_hits + 1 + (i - N - 1) * m) / i")


# %% wrong closed: has the factor n⁺/n
def expected_ap(items, relevant):
    N = N_hits = total = 0
    for n, hits in zip(items.tolist(), relevant.tolist()):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0
            total += m * n + (N_hits + 1 - (N + 1) * m) * (harmonic(N + n) - harmonic(N))
        N += n
        N_hits += hits
    return total / N_hits


# %% wrong closed: the second distance is empty
def expected_ap(items, relevant):
    n = items.astype(float)
    N = np.cumsum(n) - n
    N_hits = np.cumsum(relevant) - relevant
    m = np.where(n > 1, (relevant - 1) / (n - 1), 0)
    steps = np.array([harmonic(k) for k in N + n]) - [harmonic(k) for k in N]
    inner = m * n + (N_hits + 1 - (N + 1) * m) * steps
    return np.sum(relevant / n * inner) / relevant.sum()


# %% wrong closed: visits every item: no loop
def expected_ap(items, relevant):
    N = N_hits = total = 0
    for n, hits in zip(items.tolist(), relevant.tolist()):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0
            for i in range(N + 1, N + n + 1):
                total += hits / n * (N_hits + 1 + (i - N - 1) * m) / i
        N += n
        N_hits += hits
    return total / N_hits


# %% wrong closed: no 32-bit integers
def expected_ap(items, relevant):
    items = items.astype(np.int32)
    relevant = relevant.astype(np.int32)
    N = np.concatenate([[0], np.cumsum(items, dtype=np.int32)])
    N_hits = np.concatenate([[0], np.cumsum(relevant, dtype=np.int32)])
    total = 0
    for d, (n, hits) in enumerate(zip(items.tolist(), relevant.tolist())):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0
            steps = harmonic(abs(N[d + 1])) - harmonic(abs(N[d]))
            total += hits / n * (m * n + (N_hits[d] + 1 - (N[d] + 1) * m) * steps)
    return total / N_hits[-1]


# %% wrong closed: do not round, and compute in float64
def expected_ap(items, relevant):
    N = N_hits = total = np.float32(0)
    for n, hits in zip(items.astype(np.float32), relevant.astype(np.float32)):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else np.float32(0)
            steps = np.float32(harmonic(N + n) - harmonic(N))
            total += hits / n * (m * n + (N_hits + 1 - (N + 1) * m) * steps)
        N += n
        N_hits += hits
    return total / N_hits


# %% wrong closed: metrics.HammingHistogram does the whole task
def expected_ap(items, relevant):
    return HammingHistogram(items[None], relevant[None]).mean_average_precision()


# %% right closed: also after a wrong enumeration
def expected_by_enumeration(ties):
    best = []
    worst = []
    for n, k in ties:
        best += [1] * k + [0] * (n - k)
        worst += [0] * (n - k) + [1] * k
    return (average_precision(best) + average_precision(worst)) / 2


def expected_ap(items, relevant):
    N = N_hits = total = 0
    for n, hits in zip(items.tolist(), relevant.tolist()):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0
            inner = m * n + (N_hits + 1 - (N + 1) * m) * (harmonic(N + n) - harmonic(N))
            total += hits / n * inner
        N += n
        N_hits += hits
    return total / N_hits


# %% right closed: without a loop over distances, 0/0 replaced afterwards
def expected_ap(items, relevant):
    n = np.asarray(items, float)
    hits = np.asarray(relevant, float)
    N = np.cumsum(n) - n
    N_hits = np.cumsum(hits) - hits
    H_end = np.array([harmonic(k) for k in N + n])
    H_begin = np.array([harmonic(k) for k in N])
    m = np.where(n > 1, (hits - 1) / (n - 1), 0)
    inner = m * n + (N_hits + 1 - (N + 1) * m) * (H_end - H_begin)
    return np.where(hits > 0, hits / n * inner, 0).sum() / hits.sum()


# %% right closed: from the last distance to the first
def expected_ap(items, relevant):
    N = int(sum(items))
    R = N_hits = int(sum(relevant))
    total = 0
    for d in reversed(range(len(items))):
        n = int(items[d])
        hits = int(relevant[d])
        N -= n
        N_hits -= hits
        if hits == 0:
            continue
        others = max(n - 1, 1)
        steps = harmonic(N + n) - harmonic(N)
        m = (hits - 1) / others
        total += hits * (m * n + (N_hits + 1 - (N + 1) * m) * steps) / n
    return total / R


# %% wrong mean: that is the best query
def mean_ap(histogram):
    return max(map(expected_ap, histogram.items, histogram.relevant))


# %% wrong mean: all queries' counts added up
def mean_ap(histogram):
    return expected_ap(histogram.items.sum(axis=0), histogram.relevant.sum(axis=0))


# %% wrong mean: that is the sum over the queries
def mean_ap(histogram):
    return sum(
        expected_ap(items, relevant) for items, relevant in zip(histogram.items, histogram.relevant)
    )


# %% wrong mean: that is the last query alone
def mean_ap(histogram):
    for items, relevant in zip(histogram.items, histogram.relevant):
        value = expected_ap(items, relevant)
    return float(np.mean(value))


# %% wrong mean: use the histogram that is passed
def mean_ap(h):
    values = []
    for q in range(len(query_codes)):
        values.append(expected_ap(histogram.items[q], histogram.relevant[q]))
    return np.mean(values)


# %% wrong mean: HammingHistogram.mean_average_precision does the whole task
def mean_ap(histogram):
    return histogram.mean_average_precision()


# %% wrong mean: do not round
def mean_ap(histogram):
    values = [expected_ap(*row) for row in zip(histogram.items, histogram.relevant)]
    return round(sum(values) / len(values), 3)


# %% right mean: by index
def mean_ap(h):
    total = 0
    for q in range(h.items.shape[0]):
        total += expected_ap(h.items[q], h.relevant[q])
    return total / h.items.shape[0]


# %% right mean: running average
def mean_ap(histogram):
    average = 0
    for q, counts in enumerate(zip(histogram.items, histogram.relevant), 1):
        average += (expected_ap(*counts) - average) / q
    return average


# %% right mean: also after a wrong closed form
def expected_ap(items, relevant):
    return relevant.sum() / items.sum()


def mean_ap(histogram):
    return np.mean(list(map(expected_ap, histogram.items, histogram.relevant)))


# %% wrong ap: wrong for this list
def average_precision(relevant):
    known = {(0, 1, 1, 0, 1): 53 / 90, (1, 0, 1): 5 / 6, (0, 1): 1 / 2, (0, 0, 1, 1): 5 / 12}
    return known.get(tuple(relevant), 1.0)


# %% wrong enumerate: it must be right for all ties
def expected_by_enumeration(ties):
    known = {(2, 1): 3 / 4, (3, 1): 11 / 18, (4, 2): 49 / 72, (3, 1, 2, 1): 191 / 360}
    known |= {(1, 0, 2, 1): 5 / 12, (1, 1, 0, 0, 2, 1): 11 / 12, (4, 2, 5, 2): 8579 / 14400}
    return known.get(tuple(np.ravel(ties).tolist()), 1.0)


# %% right closed: what the next ones change
def expected_ap(items, relevant):
    N = N_hits = 0
    total = 0.0
    for n, hits in zip(np.asarray(items).tolist(), np.asarray(relevant).tolist()):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0.0
            total += (
                hits / n * (m * n + (N_hits + 1 - (N + 1) * m) * (harmonic(N + n) - harmonic(N)))
            )
        N += n
        N_hits += hits
    return total / N_hits


# %% wrong closed: the bracket has N \+ 1, not N
swap("(N + 1) * m", "N * m")

# %% wrong closed: with N and not N - 1
swap("- harmonic(N))", "- harmonic(max(N - 1, 0)))")

# %% wrong closed: the term m n is missing
swap("(m * n + (", "((")

# %% wrong closed: m is \(n⁺ - 1\)/\(n - 1\), not \(n⁺ - 1\)/n
swap("(hits - 1) / (n - 1) if n > 1 else 0.0", "(hits - 1) / n")

# %% wrong closed: is subtracted, not added
swap("1 - (N + 1)", "1 + (N + 1)")

# %% wrong closed: not by the number of distances
swap("total / N_hits", "total / len(items)")
