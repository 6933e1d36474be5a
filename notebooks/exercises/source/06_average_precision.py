# %% [markdown]
# # Exercise 6: Average precision with ties
#
# **You will learn** what average precision measures, and why it is not even defined for Hamming
# ranking until one says what happens to ties. You will derive its exact expectation and compute
# it from two histograms without sorting anything.
#
# **Time:** 50 to 60 minutes. **Points:** 10.
#
# **Before you start:** expectation of a sum; exercise 5 for the idea of distances 0 .. r. The
# derivation needs paper.
#
# **In the paper:** Sec. 4.1 names the metric (mAP) and says nothing about ties. The closed form
# is in `metrics.py` of this clone.

# %%
import sys

sys.path.insert(0, "../../..")  # the modules are in the folder of the clone

from itertools import combinations, product

import numpy as np

from hmoh import HMOH
from kernels import RBF
from metrics import HammingHistogram, hamming_histogram, mean_average_precision
from study import datasets

# %% [markdown]
# ## 6.1 Without ties
#
# A query ranks all items by their distance. Some items are **relevant** (of the query's class).
# Let R be their number. The **precision** at rank i is the share of relevant items among the
# first i. **Average precision** (AP) is the mean of the precision at the ranks of the relevant
# items. mAP is its mean over queries. Example: with relevant items at ranks 1 and 3 of 3, AP =
# (1/1 + 2/3)/2 = 5/6.
#
# Write `average_precision(relevant)` for a list of 0/1 in ranked order with at least one 1.
#
# <details><summary>Hint</summary>
#
# Go along the ranks, count hits, and at every hit add hits / rank. At the end divide by the
# number of hits.
#
# </details>


# %% solution ap
def average_precision(relevant):
    """Return the AP of a ranked list of 0/1."""
    ### BEGIN SOLUTION
    hits = 0
    total = 0.0
    for rank, hit in enumerate(relevant, 1):
        if hit:
            hits += 1
            total += hits / rank
    return total / hits
    ### END SOLUTION


# %% check ap 1
for ranked, need in [
    ([1], 1),
    ([1, 0, 1], 5 / 6),
    ([0, 1], 1 / 2),
    ([0, 0, 1, 1], (1 / 3 + 2 / 4) / 2),
    ([1, 1, 0, 0], 1),
]:
    value = average_precision(ranked)
    assert value is not None and np.ndim(value) == 0, (
        f"average_precision returns {value!r}, but one number is needed: return the mean."
    )
    assert abs(value - need) < 1e-12, (
        f"average_precision({ranked}) = {value:.4f}, but by hand it is {need:.4f}: "
        "take the precision at the hits only, and divide by the hits."
    )
print("average_precision: correct")

# %% [markdown]
# ## 6.2 Ties, by brute force
#
# Codes of 8 bits have only 9 distances, so thousands of items **tie**. A sort puts tied items in
# some order, often that of the database, and AP depends on it. The fair value is the
# **expectation of AP over all orders** within each tie.
#
# Let `ties` be a list of pairs (n, n⁺), one for each distance from small to large: n items are
# there, n⁺ of them relevant. Write `expected_by_enumeration(ties)`: the mean of
# `average_precision` over all ways to place the relevant items within their ties. It is only for
# tiny cases.
#
# <details><summary>Hint 1</summary>
#
# Orders that put the relevant items into the same places give the same AP, and each choice of
# places is equally likely. So enumerate the places: `combinations(range(n), n_plus)` for each
# tie.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `product(*lists)` goes through all ways to choose one element of each list. For every choice
# build the 0/1 list of all ranks, tie after tie, and call `average_precision`.
#
# </details>


# %% solution enumerate
def expected_by_enumeration(ties):
    """Return the mean AP over all placements of relevant items in ties [(n, n_plus), ...]."""
    ### BEGIN SOLUTION
    choices = [list(combinations(range(n), n_plus)) for n, n_plus in ties]
    values = []
    for places in product(*choices):
        ranked = []
        for (n, _), chosen in zip(ties, places, strict=True):
            ranked += [int(i in chosen) for i in range(n)]
        values.append(average_precision(ranked))
    return float(np.mean(values))
    ### END SOLUTION


# %% check enumerate 2
for ties, need in [
    ([(2, 1)], 0.75),
    ([(1, 0), (2, 1)], 5 / 12),
    ([(3, 3), (4, 0)], 1.0),
    ([(1, 1), (0, 0), (2, 1)], (1 + 5 / 6) / 2),
]:
    value = expected_by_enumeration(ties)
    assert abs(value - need) < 1e-12, (
        f"ties {ties} give {value:.4f}, but the mean over all placements is {need:.4f}: "
        "write them down by hand."
    )
example = expected_by_enumeration([(4, 2), (5, 2)])
print(f"expected_by_enumeration: correct; [(4, 2), (5, 2)] gives {example:.6f}")

# %% [markdown]
# ## 6.3 Derive
#
# Take one tie: n items, n⁺ of them relevant, with N items and N⁺ relevant ones *before* it. Its
# ranks are i = N + 1 .. N + n. By linearity, E[AP] is 1/R times the sum over all ranks i of
#
#     P(rank i is relevant) · E[precision at i | rank i is relevant].
#
# Derive both factors for a rank i of this tie (for n > 1), and from them the formula with m =
# (n⁺ - 1)/(n - 1):
#
# $$E[AP] = \frac1R \sum_{\text{ties}} \frac{n^+}{n} \sum_{i=N+1}^{N+n}
# \frac{N^+ + 1 + (i - N - 1)\, m}{i}$$
#
# (Graded by hand.)
#
# <details><summary>Hint 1</summary>
#
# All places of the tie are alike, so P(rank i is relevant) does not depend on i.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Given that rank i is relevant, the other n⁺ - 1 relevant items are anywhere in the other n - 1
# places. How many of them are expected among the i - N - 1 places before i?
#
# </details>

# %% [markdown] answer derive 2
# <!-- ### BEGIN SOLUTION -->
# By symmetry rank i holds a relevant item with probability n⁺/n. Given that it does, the other
# n⁺ - 1 relevant items of the tie fill the other n - 1 places at random. So each of these places
# is relevant with probability m = (n⁺ - 1)/(n - 1). The first i ranks then hold N⁺ relevant items
# from before the tie, the one at i itself, and in expectation (i - N - 1) m from the places of
# the tie before i. Dividing by i gives the expected precision. The product of the two factors,
# summed over ranks and ties and divided by R, is the formula. For n = 1 there are no other
# places, and the term with m is 0.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 6.4 The closed form
#
# The inner sum still visits every item. Split it: (N⁺ + 1 + (i - N - 1) m)/i =
# m + (N⁺ + 1 - (N + 1) m)/i. With the **harmonic numbers** H_k = 1 + 1/2 + ... + 1/k, H₀ = 0, the
# sum over the whole tie is
#
# $$m\,n + (N^+ + 1 - (N + 1)\,m)\,(H_{N+n} - H_N).$$
#
# So AP costs one term for each distance, however many items there are. Write
# `expected_ap(items, relevant)` for two arrays of integers, n and n⁺ at the distances 0 .. r.
# `harmonic` is given. Empty distances (n = 0) count nothing.
#
# <details><summary>Hint 1</summary>
#
# A loop over distances is fine: keep N and N⁺ up to date. Skip distances with n⁺ = 0 (but still
# add their n to N).
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take m = 0 if n = 1, so that nothing is divided by 0. Divide the total by the sum of `relevant`.
#
# </details>


# %%
def harmonic(k):
    """Return H_k: exact for small k, by Euler and Maclaurin's series from 32 on."""
    k = int(k)
    if k < 32:
        return sum(1 / i for i in range(1, k + 1))
    series = 1 / (2 * k) - 1 / (12 * k**2) + 1 / (120 * k**4) - 1 / (252 * k**6)
    return np.log(k) + np.euler_gamma + series


# %% solution closed
def expected_ap(items, relevant):
    """Return the expected AP of one query from its histograms over the distance."""
    ### BEGIN SOLUTION
    items = np.asarray(items).tolist()
    relevant = np.asarray(relevant).tolist()
    N = 0
    N_hits = 0
    total = 0.0
    for n, hits in zip(items, relevant, strict=True):
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0.0
            factor = N_hits + 1 - (N + 1) * m
            inner = m * n + factor * (harmonic(N + n) - harmonic(N))
            total += hits / n * inner
        N += n
        N_hits += hits
    return total / N_hits
    ### END SOLUTION


# %% check closed 4
rng = np.random.default_rng(0)
for _ in range(60):
    items = rng.integers(0, 5, size=3)
    relevant = rng.integers(0, items + 1)
    if relevant.sum() == 0:
        continue
    ties = list(zip(items.tolist(), relevant.tolist(), strict=True))
    value = expected_ap(items, relevant)
    need = expected_by_enumeration(ties)
    assert abs(value - need) < 1e-9, (
        f"ties {ties}: closed form {value:.6f}, enumeration {need:.6f}: "
        "try a single tie first, then n = 1, then n⁺ = 0."
    )
items = np.array([10**9, 10**9])
relevant = np.array([10**6, 10**8])
value = expected_ap(items, relevant)
need = HammingHistogram(items[None], relevant[None]).mean_average_precision()
assert abs(value - need) < 1e-9, (
    f"two ties of a billion items give {value:.7f}, but metrics.py gives {need:.7f}: "
    "no loop over items, no 32-bit integers."
)
print("expected_ap: agrees with enumeration, and works for a billion items")

# %% [markdown]
# ## 6.5 How much it matters
#
# Real codes: 8 bits on a part of MNIST. We evaluate the same codes in five ways that differ only
# in the order of tied items:
#
# - relevant items last;
# - the expectation;
# - the order of the database (as a stable sort keeps it) when it is shuffled;
# - the order of the database when it is sorted by class;
# - relevant items first.
#
# Write `mean_ap(histogram)`: the mean of `expected_ap` over all queries. `histogram.items[q]` and
# `histogram.relevant[q]` are the arrays of query q.
#
# <details><summary>Hint</summary>
#
# `zip(histogram.items, histogram.relevant)` goes through the queries.
#
# </details>

# %%
mnist = datasets.load("mnist")
parts = datasets.split(mnist, seed=0)
stream = parts.stream[:5000]
queries = np.random.default_rng(0).permutation(parts.queries)[:100]
database = parts.database[-10_000:]
model = HMOH(8, feature_map=RBF(100, divisor=6), codebook="spread", random_state=0)
model.fit(mnist.features[stream], mnist.labels[stream])
query_codes = model.transform(mnist.features[queries])
db_codes = model.transform(mnist.features[database])
query_labels = mnist.labels[queries]
db_labels = mnist.labels[database]
histogram = hamming_histogram(query_codes, db_codes, query_labels, db_labels)


# %% solution mean
def mean_ap(histogram):
    """Return the mAP of all queries, exact in expectation over ties."""
    ### BEGIN SOLUTION
    values = []
    for items, relevant in zip(histogram.items, histogram.relevant, strict=True):
        values.append(expected_ap(items, relevant))
    return float(np.mean(values))
    ### END SOLUTION


# %% check mean 1
value = mean_ap(histogram)
need = histogram.mean_average_precision()
assert abs(value - need) < 1e-9, (
    f"mean_ap gives {value:.6f}, the library {need:.6f}: "
    f"the mean over the {len(histogram.items)} queries is needed."
)
print("mean_ap: agrees with metrics.py")


# %%
def stable(queries, order):
    """Return the mAP of some queries by a stable sort of the database in this order."""
    return mean_average_precision(
        query_codes[queries],
        db_codes[order],
        query_labels[queries],
        db_labels[order],
        ties="stable",
    )


def relevant_at(place):
    """Return the mAP if the database lists each query's relevant items first or last."""
    values = []
    for q in range(len(query_codes)):
        is_relevant = db_labels == query_labels[q]
        comes_later = ~is_relevant if place == "first" else is_relevant
        order = np.argsort(comes_later, kind="stable")
        values.append(stable([q], order))
    return float(np.mean(values))


everything = np.arange(len(query_codes))
as_it_is = np.arange(len(db_codes))
by_class = np.argsort(db_labels, kind="stable")
ways = {
    "relevant items last in every tie": relevant_at("last"),
    "expectation over all orders": mean_ap(histogram),
    "database in its order, shuffled": stable(everything, as_it_is),
    "database sorted by class": stable(everything, by_class),
    "relevant items first in every tie": relevant_at("first"),
}
print("the same codes, 8 bits, 100 queries, 10,000 images of MNIST to search:")
for name, value in ways.items():
    print(f"  {name:<34} mAP {value:.3f}")
for digit in (0, 9):
    some = np.flatnonzero(query_labels == digit)
    rows = HammingHistogram(histogram.items[some], histogram.relevant[some])
    print(f"queries of digit {digit}: expectation {mean_ap(rows):.3f},", end=" ")
    print(f"database sorted by class {stable(some, by_class):.3f}")

# %% [markdown]
# The codes are the same, but the scores are not: the order of tied items alone can change mAP by
# a fifth of the whole scale. The shuffled database comes near the expectation. If the database is
# sorted by class, the mean over all queries hides what happens: the first digit in the database
# wins every tie, and the last one loses it. The order of data on disk should not change a score.
# That is why `metrics.py` returns the expectation.
