# %% [markdown]
# # Exercise 6: Average precision with ties
#
# **You will learn** what average precision measures, why it is not even defined for Hamming ranking until one says what
# happens to ties, to derive its exact expectation, and to compute it from two histograms without sorting anything.
#
# **Time:** 50 to 60 minutes. **Points:** 10.
#
# **Before you start:** expectation of a sum; exercise 5 for the idea of distances 0 .. r. The derivation needs paper.
#
# **In the paper:** Sec. 4.1 names the metric (mAP) and says nothing about ties. The closed form is in `metrics.py` of
# this clone.

# %%
import sys

sys.path.insert(0, "../../..")  # the clone's folder, where the modules lie

from itertools import combinations, product

import numpy as np

import datasets
from hmoh import HMOH
from kernels import RBF
from metrics import HammingHistogram, hamming_histogram, mean_average_precision

# %% [markdown]
# ## 6.1 Without ties
#
# A query ranks all items by their distance. Some items are **relevant** (of the query's class); let R be their
# number. The **precision** at rank i is the share of relevant items among the first i. **Average precision** (AP) is
# the mean of the precision at the ranks of the relevant items. mAP is its mean over queries. Example: relevant at
# ranks 1 and 3 of 3, AP = (1/1 + 2/3)/2 = 5/6.
#
# Write `average_precision(relevant)` for a list of 0/1 in ranked order with at least one 1.
#
# <details><summary>Hint</summary>
#
# Walk along the ranks, count hits, and at every hit add hits / rank. At the end divide by the number of hits.
#
# </details>


# %% solution ap
def average_precision(relevant):
    """AP of a ranked list of 0/1."""
    ### BEGIN SOLUTION
    hits, total = 0, 0.0
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
    assert value is not None and np.ndim(value) == 0, f"average_precision returns {value!r}: return one number."
    assert abs(value - need) < 1e-12, (
        f"average_precision({ranked}) = {value:.4f}, but by hand it is {need:.4f}: precision at the hits only, "
        "divided by the hits."
    )
print("average_precision: correct")

# %% [markdown]
# ## 6.2 Ties, by brute force
#
# Codes of 8 bits have only 9 distances, so thousands of items **tie**. A sort puts tied items in some order, often
# that of the database, and AP depends on it. The fair value is the **expectation of AP over all orders** within each
# tie.
#
# Let `ties` be a list of pairs (n, n⁺), one for each distance from small to large: n items lie there, n⁺ of them
# relevant. Write `expected_by_enumeration(ties)`: the mean of `average_precision` over all ways to place the relevant
# items within their ties. It is only for tiny cases.
#
# <details><summary>Hint 1</summary>
#
# Orders that put the relevant items into the same places give the same AP, and each choice of places is equally
# likely. So enumerate the places: `combinations(range(n), n_plus)` for each tie.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `product(*lists)` goes through all ways to choose one element of each list. For every choice build the 0/1 list of all
# ranks, tie after tie, and call `average_precision`.
#
# </details>


# %% solution enumerate
def expected_by_enumeration(ties):
    """Mean AP over all placements of the relevant items within ties [(n, n_plus), ...]."""
    ### BEGIN SOLUTION
    values = []
    for places in product(*(list(combinations(range(n), hits)) for n, hits in ties)):
        ranked = [int(i in chosen) for (n, _), chosen in zip(ties, places, strict=True) for i in range(n)]
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
        f"ties {ties} give {value:.4f}, but the mean over all placements is {need:.4f}: write them down by hand."
    )
print("expected_by_enumeration: correct; [(4, 2), (5, 2)] gives", round(expected_by_enumeration([(4, 2), (5, 2)]), 6))

# %% [markdown]
# ## 6.3 Derive
#
# Look at one tie: n items, n⁺ of them relevant, with N items and N⁺ relevant ones *before* it. Its ranks are
# i = N + 1 .. N + n. By linearity, E[AP] is 1/R times the sum over all ranks i of
#
#     P(rank i is relevant) · E[precision at i | rank i is relevant].
#
# Derive both factors for a rank i of this tie (for n > 1), and so the formula with m = (n⁺ - 1)/(n - 1):
#
# $$E[AP] = \frac1R \sum_{\text{ties}} \frac{n^+}{n} \sum_{i=N+1}^{N+n} \frac{N^+ + 1 + (i - N - 1)\, m}{i}$$
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
# Given that rank i is relevant, the other n⁺ - 1 relevant items lie anywhere in the other n - 1 places. How many of
# them are expected among the i - N - 1 places before i?
#
# </details>

# %% [markdown] answer derive 2
# <!-- ### BEGIN SOLUTION -->
# By symmetry rank i holds a relevant item with probability n⁺/n. Given that it does, the other n⁺ - 1 relevant items
# of the tie fill the other n - 1 places at random, so each of these places is relevant with probability m = (n⁺ -
# 1)/(n - 1). Among the first i ranks there are then N⁺ relevant items from before the tie, the one at i itself, and
# in expectation (i - N - 1) m from the places of the tie before i. Dividing by i gives the expected precision; the
# product of the two factors, summed over ranks and ties and divided by R, is the formula. For n = 1 there are no
# other places, and the term with m is 0.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 6.4 The closed form
#
# The inner sum still visits every item. Split it: (N⁺ + 1 + (i - N - 1) m)/i = m + (N⁺ + 1 - (N + 1) m)/i. With the
# **harmonic numbers** H_k = 1 + 1/2 + ... + 1/k, H₀ = 0, the sum over the whole tie is
#
# $$m\,n + (N^+ + 1 - (N + 1)\,m)\,(H_{N+n} - H_N).$$
#
# So AP costs one term for each distance, however many items there are. Write `expected_ap(items, relevant)` for two
# arrays of integers, n and n⁺ at the distances 0 .. r. `harmonic` is given. Empty distances (n = 0) count nothing.
#
# <details><summary>Hint 1</summary>
#
# A loop over distances is fine: keep N and N⁺ up to date. Skip distances with n⁺ = 0 (but still add their n to N).
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take m = 0 if n = 1, so that nothing is divided by 0. Divide the total by the sum of `relevant`.
#
# </details>


# %%
def harmonic(k):
    """H_k: exact for small k, by Euler and Maclaurin's series from 32 on."""
    k = int(k)
    if k < 32:
        return sum(1 / i for i in range(1, k + 1))
    return np.log(k) + np.euler_gamma + 1 / (2 * k) - 1 / (12 * k**2) + 1 / (120 * k**4) - 1 / (252 * k**6)


# %% solution closed
def expected_ap(items, relevant):
    """Expected AP of one query from its histograms over the distance."""
    ### BEGIN SOLUTION
    N = N_hits = 0
    total = 0.0
    for n, hits in zip(items, relevant, strict=True):
        n, hits = int(n), int(hits)
        if hits:
            m = (hits - 1) / (n - 1) if n > 1 else 0.0
            inner = m * n + (N_hits + 1 - (N + 1) * m) * (harmonic(N + n) - harmonic(N))
            total += hits / n * inner
        N, N_hits = N + n, N_hits + hits
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
    value, need = expected_ap(items, relevant), expected_by_enumeration(ties)
    assert abs(value - need) < 1e-9, (
        f"ties {ties}: closed form {value:.6f}, enumeration {need:.6f}: try a single tie first, then "
        "n = 1, then n⁺ = 0."
    )
items, relevant = np.array([10**9, 10**9]), np.array([10**6, 10**8])
value, need = expected_ap(items, relevant), HammingHistogram(items[None], relevant[None]).mean_average_precision()
assert abs(value - need) < 1e-9, (
    f"two ties of a billion items give {value:.7f}, but metrics.py gives {need:.7f}: no loop over items, no 32-bit "
    "integers."
)
print("expected_ap: agrees with enumeration, and takes a billion items")

# %% [markdown]
# ## 6.5 How much it matters
#
# Real codes: 8 bits on a part of MNIST. We evaluate the same codes in five ways that only differ in the order of tied
# items: relevant items last, the expectation, the order of the database (as a stable sort does) when it is shuffled
# and when it is sorted by class, relevant items first. Write `mean_ap(histogram)`: the mean of `expected_ap` over all
# queries; `histogram.items[q]` and `histogram.relevant[q]` are the arrays of query q.
#
# <details><summary>Hint</summary>
#
# `zip(histogram.items, histogram.relevant)` goes through the queries.
#
# </details>

# %%
mnist = datasets.load("mnist")
parts = datasets.split(mnist, seed=0)
queries, database = np.random.default_rng(0).permutation(parts.queries)[:100], parts.database[-10_000:]
model = HMOH(8, feature_map=RBF(100, divisor=6), codebook="spread", random_state=0)
model.fit(mnist.features[parts.stream[:5000]], mnist.labels[parts.stream[:5000]])
codes = model.transform(mnist.features[queries]), model.transform(mnist.features[database])
labels = mnist.labels[queries], mnist.labels[database]
histogram = hamming_histogram(*codes, *labels)


# %% solution mean
def mean_ap(histogram):
    """mAP of all queries, exact in expectation over ties."""
    ### BEGIN SOLUTION
    return float(np.mean([expected_ap(n, hits) for n, hits in zip(histogram.items, histogram.relevant, strict=True)]))
    ### END SOLUTION


# %% check mean 1
value, need = mean_ap(histogram), histogram.mean_average_precision()
assert abs(value - need) < 1e-9, (
    f"mean_ap gives {value:.6f}, the library {need:.6f}: the mean over the {len(histogram.items)} queries is needed."
)
print("mean_ap: agrees with metrics.py")


# %%
def stable(relevant_first):
    """mAP by a stable sort, when the database lists every query's relevant items first (or last)."""
    values = []
    for q in range(len(queries)):
        order = np.argsort((labels[1] == labels[0][q]) != relevant_first, kind="stable")
        one = codes[0][q : q + 1], codes[1][order], labels[0][q : q + 1], labels[1][order]
        values.append(mean_average_precision(*one, ties="stable"))
    return float(np.mean(values))


print("the same codes, 8 bits, 100 queries, 10,000 images of MNIST to search:")
print(f"  relevant items last in every tie   mAP {stable(False):.3f}")
print(f"  expectation over all orders        mAP {mean_ap(histogram):.3f}")
print(f"  as the database lies, shuffled     mAP {mean_average_precision(*codes, *labels, ties='stable'):.3f}")
order = np.argsort(labels[1], kind="stable")
by_class = codes[0], codes[1][order], labels[0], labels[1][order]
print(f"  as it lies when sorted by class    mAP {mean_average_precision(*by_class, ties='stable'):.3f}")
print(f"  relevant items first in every tie  mAP {stable(True):.3f}")
for digit in (0, 9):
    rows = labels[0] == digit
    expected = mean_ap(hamming_histogram(codes[0][rows], codes[1], labels[0][rows], labels[1]))
    sorted_by_class = mean_average_precision(codes[0][rows], by_class[1], labels[0][rows], by_class[3], ties="stable")
    print(f"queries of digit {digit}: expectation {expected:.3f}, database sorted by class {sorted_by_class:.3f}")

# %% [markdown]
# The codes are the same, the scores are not: the order of tied items alone can move mAP by a fifth of the whole scale.
# The shuffled database comes near the expectation. Sorted by class, the mean over all queries hides what happens: the
# first digit in the database wins every tie and the last one loses it. How data lie on disk should not change a score:
# that is why `metrics.py` returns the expectation.
