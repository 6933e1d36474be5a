# %% [markdown]
# # Exercise 6: Average precision with ties
#
# **You will learn** what average precision measures, and why it is undefined for Hamming ranking
# until we say what happens to ties. You will derive its exact expectation and compute it from two
# histograms without sorting anything.
#
# **Time:** 50 to 60 minutes. **Points:** 10.
#
# **Before you start:** expectation of a sum; exercise 5 for the idea of distances 0 .. r. You will
# need paper for the derivation.
#
# **In the paper:** Sec. 4.1 names the metric (mAP) and says nothing about ties. The closed form is
# in `metrics.py`.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

from itertools import combinations, product

import numpy as np

from exercises import references
from exercises.checks import few_steps, one_line_errors, replaced, switched_off
from metrics import HammingHistogram, hamming_histogram, mean_average_precision

one_line_errors()

# %%
# These calls are switched off while your functions are checked.
LIBRARY = (
    "metrics.HammingHistogram",
    "metrics.HammingHistogram.mean_average_precision",
    "metrics.hamming_histogram",
    "metrics.mean_average_precision",
)

# %% [markdown]
# ## 6.1 Without ties
#
# A query ranks all items by their distance. Some items are **relevant**: they have the query's
# class. Let R be their number. The **precision** at rank i is the share of relevant items among the
# first i. **Average precision** (AP) is the mean of the precision at the ranks of the relevant
# items. mAP is its mean over queries. For example, with relevant items at ranks 1 and 3 of 3, AP =
# (1/1 + 2/3)/2 = 5/6. Ranks count from 1.
#
# Write `average_precision(relevant)` for a list of 0/1 in ranked order with at least one relevant
# item.
#
# <details><summary>Hint</summary>
#
# Go along the ranks, count hits, and at every hit add hits / rank. At the end, divide by the number
# of hits.
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
# What other rules give for this list, and what is wrong with them.
mistakes = [
    (53 / 30, "divide the sum by the number of hits"),
    (53 / 150, "divide by the number of hits, not by the length of the list"),
    (34 / 75, "take the precision at the hits only, not at every rank"),
    (31 / 90, "the precision at a rank is hits/rank, not 1/rank"),
    (11 / 12, "ranks count from 1, so the first item has rank 1: enumerate(relevant, 1)"),
    (11 / 45, "the item at rank i counts among the first i: count a hit before you divide"),
    (1 / 2, "go on after the first hit"),
    (3 / 5, "take the precision at every hit, not only at the last one"),
]
with switched_off(globals(), *LIBRARY):
    for ranked in [[0, 1, 1, 0, 1], [1], [1, 0, 1], [0, 1], [0, 0, 1, 1], [1, 1, 0, 0]]:
        need = references.average_precision(ranked)
        value = average_precision(ranked)
        assert value is not None and np.ndim(value) == 0, (
            f"average_precision returns {value!r}, but one number is needed: return the mean."
        )
        way = "take the precision at the hits only, and divide by the hits"
        if ranked == [0, 1, 1, 0, 1]:
            for other, mistake in mistakes:
                if abs(value - other) < 1e-9:
                    way = mistake
        if abs(value - need) < 1e-3:
            way = "near, but not exact: do not round, and compute in float64"
        assert abs(value - need) < 1e-9, (
            f"average_precision({ranked}) = {float(value):.4f}, but by hand it is "
            f"{need:.4f}: {way}."
        )
### BEGIN HIDDEN TESTS
rng = np.random.default_rng(0)
for n in range(1, 60):
    ranked = [*rng.integers(0, 2, n).tolist(), 1]
    assert abs(average_precision(ranked) - references.average_precision(ranked)) < 1e-9, (
        f"average_precision({ranked}) = {average_precision(ranked)}: wrong for this list."
    )
### END HIDDEN TESTS
print("average_precision: correct")

# %% [markdown]
# ## 6.2 Ties, by brute force
#
# 8-bit codes have only 9 distances, so thousands of items **tie**. Sorting puts tied items in some
# order, often that of the database, and AP depends on it. The fair value is the **expectation of AP
# over all orders** within each tie.
#
# Let `ties` be a list of pairs (n, n⁺), one for each distance from small to large: n items at this
# distance, n⁺ of them relevant. Write `expected_by_enumeration(ties)`: the mean of
# `average_precision` over all ways to place the relevant items within their ties. This is feasible
# only for tiny cases.
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
# `product(*lists)` goes through all ways to choose one element from each list. For every choice,
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
# Only your enumeration is judged: 6.1 is right here, whatever yours does.
right_ap = references.average_precision
with switched_off(globals(), *LIBRARY), replaced(globals(), average_precision=right_ap):
    for ties in [
        [(1, 1)],
        [(3, 3), (4, 0)],
        [(2, 1)],
        [(3, 1)],
        [(4, 2)],
        [(3, 1), (2, 1)],
        [(1, 0), (2, 1)],
        [(1, 1), (0, 0), (2, 1)],
        [(4, 2), (5, 2)],
    ]:
        need = references.expected_ap(*zip(*ties, strict=True))
        value = expected_by_enumeration(ties)
        assert value is not None and np.ndim(value) == 0, (
            f"expected_by_enumeration returns {value!r}, but one number is needed: "
            "return the mean over the placements."
        )
        way = "write the placements down by hand"
        if ties == [(2, 1)]:
            way = "the two placements have AP 1 and 1/2; keep the values of both"
        elif ties == [(3, 1)]:
            way = "the three placements have AP 1, 1/2 and 1/3; take the mean of all three"
            if abs(value - 2 / 3) < 1e-9:
                way = "the mean of the best and the worst placement leaves the others out"
            elif abs(value - 1 / 2) < 1e-9:
                way = "that is the median of the placements, not their mean"
        elif len(ties) == 2:
            way = "combine every choice of the first tie with every choice of the second"
            if ties[0][1] == 0:
                way = "the items of a tie without relevant ones take ranks too"
        if 1e-9 < abs(value - need) < 0.03:
            way = "near, but not exact: go through all placements instead of drawing some"
        if abs(value - need) < 1e-4:
            way = "near, but not exact: do not round, and compute in float64"
        assert abs(value - need) < 1e-9, (
            f"ties {ties} give {float(value):.4f}, but the mean over all placements is "
            f"{need:.4f}: {way}."
        )
    ### BEGIN HIDDEN TESTS
    rng = np.random.default_rng(0)
    for _ in range(20):
        ties = [(int(n), int(rng.integers(0, n + 1))) for n in rng.integers(1, 4, 3)] + [(2, 1)]
        need = references.expected_ap(*zip(*ties, strict=True))
        assert abs(expected_by_enumeration(ties) - need) < 1e-9, (
            f"ties {ties} give {expected_by_enumeration(ties):.4f}: it must be right for all ties."
        )
    ### END HIDDEN TESTS
print(f"expected_by_enumeration: correct; {ties} gives {value:.6f}")

# %% [markdown]
# ## 6.3 Derive
#
# Take one tie of n items, n⁺ of them relevant, with N items and N⁺ relevant ones *before* it. Its
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
# Given that rank i is relevant, the other n⁺ - 1 relevant items lie anywhere in the other n - 1
# places. How many of them do we expect among the i - N - 1 places before i?
#
# </details>

# %% [markdown] answer derive 2
# <!-- ### BEGIN SOLUTION -->
# By symmetry, rank i holds a relevant item with probability n⁺/n. Given that it does, the remaining
# n⁺ - 1 relevant items are spread at random over the remaining n - 1 places of the tie, so each of
# these is relevant with probability m = (n⁺ - 1)/(n - 1). The first i ranks then hold N⁺ relevant
# items from before the tie, the one at i itself, and in expectation (i - N - 1) m from the places
# of the tie before i. Dividing by i gives the expected precision. The product of the two factors,
# summed over ranks and ties and divided by R, is the formula. For n = 1 there are no other places,
# and the term with m is 0.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 6.4 The closed form
#
# The inner sum still visits every item. Split its terms: (N⁺ + 1 + (i - N - 1) m)/i = m + (N⁺ + 1 -
# (N + 1) m)/i. With the **harmonic numbers** H_k = 1 + 1/2 + ... + 1/k, H₀ = 0, the sum over the
# whole tie is
#
# $$m\,n + (N^+ + 1 - (N + 1)\,m)\,(H_{N+n} - H_N).$$
#
# So AP costs one term for each distance, however many items there are. Write `expected_ap(items,
# relevant)` for two arrays of integers, n and n⁺ at the distances 0, 1, ... The function `harmonic`
# is given. Empty distances (n = 0) contribute nothing.
#
# <details><summary>Hint 1</summary>
#
# A loop over distances is fine. Keep N and N⁺ up to date. Skip distances with n⁺ = 0, but still add
# their n to N.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take m = 0 if n = 1, to avoid a division by 0. Divide the total by the sum of `relevant`.
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
# What other formulas give for three distances, and what is wrong with them.
mistakes = [
    (0.7580988, "the bracket has N + 1, not N, before m"),
    (0.2883160, "the bracket begins with N⁺ + 1, not N⁺"),
    (0.6184149, "the harmonic numbers are H_(N+n) - H_N, with N and not N - 1"),
    (0.5907381, "both harmonic numbers are one too early; they are H_(N+n) - H_N"),
    (0.5514149, "both harmonic numbers are one too late; they are H_(N+n) - H_N"),
    (0.5297482, "the harmonic numbers are H_(N+n) - H_N, with N and not N + 1"),
    (0.5787381, "the first harmonic number is H_(N+n), not H_(N+n-1)"),
    (0.6280815, "the first harmonic number is H_(N+n), not H_(N+n+1)"),
    (0.7016111, "items at a distance with n⁺ = 0 still count in N"),
    (1.1992222, "N is the number of items before the tie: add n to it after each tie"),
    (0.4591061, "N⁺ is the number of relevant items before the tie: add n⁺ to it after each tie"),
    (0.5725832, "N and N⁺ count the items *before* the tie: bring them up to date after it"),
    (0.6481481, "m is (n⁺ - 1)/(n - 1), not n⁺/n"),
    (0.5699507, "m is (n⁺ - 1)/(n - 1), not (n⁺ - 1)/n"),
    (0.7158074, "m is (n⁺ - 1)/(n - 1), not n⁺/(n - 1)"),
    (0.4654076, "m is (n⁺ - 1)/(n - 1), not 0"),
    (0.1664149, "the term m n is missing"),
    (1.2044004, "(N + 1) m is subtracted, not added"),
    (1.0517186, "each tie has the factor n⁺/n"),
    (1.8617706, "the factor of a tie is n⁺/n, not n/n⁺"),
    (2.6718225, "the factor of a tie is n⁺/n, not n⁺"),
    (3.0320743, "divide the total by R, the number of relevant items"),
    (0.2756431, "divide the total by R, the number of relevant items, not by that of all items"),
    (1.0106914, "divide the total by R, not by the number of distances"),
]
probe = (np.array([3, 2, 6]), np.array([2, 0, 3]))
cases = [  # items, relevant, what the case is about
    (
        [1],
        [1],
        "for n = 1 take m = 0, and the harmonic numbers are those of the last rank of the "
        "tie, N + n = 1, minus those of the last rank before it, N = 0",
    ),
    (
        [3],
        [3],
        "every item is relevant: divide the total by R, the sum of `relevant`",
    ),
    (
        [2],
        [1],
        "the two orders give 1 and 1/2; m = (n⁺ - 1)/(n - 1) is 0 here, "
        "and the sum over the tie has the factor n⁺/n",
    ),
    ([4], [2], "in one tie of four m = (n⁺ - 1)/(n - 1) is 1/3"),
    ([1, 2], [0, 1], "items at a distance with n⁺ = 0 still count in N"),
    ([2, 3], [1, 2], "the second tie has N = 2 and N⁺ = 1 before it"),
    ([1, 0, 2], [1, 0, 1], "the second distance is empty, and adds nothing"),
]
rng = np.random.default_rng(0)
for _ in range(50):
    items = rng.integers(0, 2000, size=9)
    relevant = rng.integers(0, items + 1)
    cases.append((items, relevant, "nine ties, some of them large"))
huge = [10**15, 10**15]
way = "no loop and no array over items (use `harmonic`), and no 32-bit integers"
cases.append((huge, [10**12, 10**14], way))
with switched_off(globals(), *LIBRARY), np.errstate(all="ignore"):
    for items, relevant, about in cases:
        need = references.expected_ap(items, relevant)
        items = np.array(items)
        relevant = np.array(relevant)
        counts = f"items {items.tolist()}, relevant {relevant.tolist()}"
        too_long = f"{counts}: your function visits every item: {way}."
        try:
            with few_steps(100_000, too_long):
                value = expected_ap(items, relevant)
        except ZeroDivisionError:
            value = float("nan")
        assert value is not None and np.ndim(value) == 0, (
            f"expected_ap returns {value!r}, but one number is needed: return the total "
            "divided by R."
        )
        if abs(value - need) > 1e-9:
            try:
                with few_steps(100_000, too_long):
                    probed = float(expected_ap(*probe))
            except (TypeError, ValueError, ArithmeticError, LookupError):
                probed = float("nan")
            for other, mistake in mistakes:
                if abs(probed - other) < 1e-6:
                    about = mistake
        if abs(value - need) < 1e-4:
            about = "near, but not exact: do not round, and compute in float64"
        assert abs(value - need) < 1e-9, (
            f"{counts}: your closed form gives {float(value):.6f}, but the mean over all "
            f"orders is {need:.6f}: {about}."
        )
print("expected_ap: correct, also for two ties of 10^15 items")

# %% [markdown]
# ## 6.5 How much it matters
#
# Now we take real 8-bit codes of a part of MNIST, and evaluate the same codes in five ways that
# differ only in the order of tied items:
#
# - relevant items last;
# - the expectation;
# - the order of a shuffled database, as a stable sort keeps it;
# - the order of a database sorted by class;
# - relevant items first.
#
# Write `mean_ap(histogram)`: the mean of `expected_ap` over all queries. `histogram.items[q]` and
# `histogram.relevant[q]` are the arrays of query q (0, 1, ...).
#
# <details><summary>Hint</summary>
#
# `zip(histogram.items, histogram.relevant)` goes through the queries.
#
# </details>

# %%
from hmoh import HMOH
from kernels import RBF
from study import datasets

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
single = histogram.mean_average_precision(per_query=True)
pooled = HammingHistogram(
    histogram.items.sum(axis=0, keepdims=True),
    histogram.relevant.sum(axis=0, keepdims=True),
).mean_average_precision()
mistakes = [
    (single.sum(), "that is the sum over the queries: divide by their number"),
    (single.max(), "that is the best query: take the mean"),
    (np.median(single), "that is the median of the queries: take the mean"),
    (single[0], "that is the first query alone: go through all of them"),
    (single[-1], "that is the last query alone: keep the values of all of them"),
    (
        pooled,
        "that is the AP of all queries' counts added up: average after expected_ap",
    ),
]
few = HammingHistogram(histogram.items[:7], histogram.relevant[:7])
counts = np.hstack([histogram.items, histogram.relevant])
known = {tuple(row): value for row, value in zip(counts.tolist(), single, strict=True)}


def checked_ap(items, relevant):
    """Return what 6.4 asks for, so that only your mean is judged."""
    return known.get((*np.asarray(items).tolist(), *np.asarray(relevant).tolist()), pooled)


with switched_off(globals(), *LIBRARY), replaced(globals(), expected_ap=checked_ap):
    value = mean_ap(histogram)
    value_of_few = mean_ap(few)
need = single.mean()
assert value is not None and np.ndim(value) == 0, (
    f"mean_ap returns {value!r}, but one number is needed: the mean over the queries."
)
way = "average expected_ap over the queries, and do not round"
for other, mistake in mistakes:
    if abs(value - other) < 1e-9:
        way = mistake
assert abs(value - need) < 1e-9, (
    f"mean_ap gives {value:.6f}, but the mean over the {len(single)} queries is {need:.6f}: {way}."
)
need = single[:7].mean()
assert abs(value_of_few - need) < 1e-9, (
    f"for a histogram of 7 queries mean_ap gives {value_of_few:.6f}, but {need:.6f} is "
    "needed: use the histogram that is passed, and its number of queries."
)
print("mean_ap: agrees with metrics.py")

# %% [markdown]
# **Predict before you run.** The next cell prints the five values. How far apart are the first and
# the last, for exactly the same codes? Compared with the expectation, does sorting the database by
# class raise the mean over all queries, lower it, or hardly change it? And for queries of digit 0
# alone, or of digit 9 alone?


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
# <details><summary>Answer</summary>
#
# The order of tied items alone can change mAP by a fifth of the whole scale. The shuffled database
# comes close to the expectation. If the database is sorted by class, the mean over all queries
# hardly changes and hides what happens: the first digit in the database wins every tie, and the
# last one loses every tie. The order of data on disk should not change a score, so `metrics.py`
# returns the expectation.
#
# </details>
#
# ## 6.6 Only the first K ranks (optional, hard)
#
# Large benchmarks stop after K ranks and ignore the hits beyond them. Some divide by R
# ("relevant"), others by the number of hits among the first K ("retrieved"). Extend `expected_ap`
# to the first kind. Compare it with `histogram.mean_average_precision(top=K)`. Then explain why the
# second kind needs more than linearity of expectation.
#
# <details><summary>Hint</summary>
#
# Only the inner sum changes. It ends at rank e = min(N + n, K), and there is nothing to add if e ≤
# N. The sum is m (e - N) + (N⁺ + 1 - (N + 1) m) (H_e - H_N). The second kind divides by the number
# of hits among the first K. This number is random if rank K lies inside a tie, and the expectation
# of a ratio is not the ratio of the expectations. `metrics.py` sums over its hypergeometric
# distribution.
#
# </details>
