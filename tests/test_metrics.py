"""Every metric of metrics.py against its definition, against other programs, and in pieces."""

import math
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

import metrics
from metrics import (
    HammingHistogram,
    hamming_histogram,
    judged_histogram,
    mean_average_precision,
    nearest,
    pack,
)

N_BITS = [1, 3, 8, 12, 32, 64, 65, 128, 300]
KINDS = ["integers", "strings", "sets", "many"]
NORMALIZE = ["relevant", "min", "retrieved"]
GAINS = ["binary", "linear", "exponential"]


class Case(NamedTuple):
    """The arguments of hamming_histogram, in its order."""

    query_codes: np.ndarray
    db_codes: np.ndarray
    query_labels: np.ndarray
    db_labels: np.ndarray
    n_bits: int


def make_labels(rng, n_rows, kind):
    if kind == "integers":
        return rng.choice([-5, 0, 7, 10**12], n_rows)
    if kind == "strings":
        return rng.choice(["", "ant", "bee", "camel"], n_rows)
    n_labels, share = (3, 0.4) if kind == "sets" else (70, 0.05)
    labels = (rng.random((n_rows, n_labels)) < share).astype(int)
    labels[-1] = 0  # an item may have no label at all
    return labels


def make_case(n_bits=12, kind="integers", n_queries=4, n_items=30, seed=0):
    """Return noisy copies of two codes that differ in every bit: near and far items, and ties."""
    rng = np.random.default_rng([seed, n_bits])
    codes = []
    for n in (n_queries, n_items):
        codes.append(pack(rng.integers(0, 2, (n, 1)) ^ (rng.random((n, n_bits)) < 0.1)))
    labels = [make_labels(rng, n_rows, kind) for n_rows in (n_queries, n_items)]
    return Case(*codes, *labels, n_bits)


def naive_queries(case):
    """Return (distances, relevances) of every query."""
    pairs = zip(case.query_codes, case.query_labels, strict=True)
    return [
        (naive.hamming(code, case.db_codes), naive.relevances(label, case.db_labels))
        for code, label in pairs
    ]


def stable_map(case, **options):
    return mean_average_precision(*case[:4], n_bits=case.n_bits, ties="stable", **options)


def assert_same(a, b):
    np.testing.assert_array_equal(a.items, b.items)
    np.testing.assert_array_equal(a.relevant, b.relevant)


def assert_near(a, b):
    """None is NaN."""
    np.testing.assert_allclose(np.asarray(a, float), np.array(b, float), rtol=0, atol=1e-12)


# ---- counting against plain Python -----------------------------------------------------

every_case = pytest.mark.parametrize("n_bits, kind", [*product(N_BITS, KINDS), (4096, "integers")])


@pytest.mark.parametrize("n_queries", [4, 20])
@every_case
def test_counts_and_neighbours_agree_with_naive(n_bits, kind, n_queries):
    """Few queries read the rows as they are, many read transposed codes."""
    case = make_case(n_bits, kind, n_queries)
    h = hamming_histogram(*case)
    found = nearest(*case[:2], 7)
    for q, (distances, relevances) in enumerate(naive_queries(case)):
        assert h.items[q].tolist() == naive.histogram(distances, n_bits)
        hits = [d for d, hit in zip(distances, relevances, strict=True) if hit]
        assert h.relevant[q].tolist() == naive.histogram(hits, n_bits)
        ranking = naive.stable_ranking(distances)[:7]
        assert found[1][q].tolist() == ranking
        assert found[0][q].tolist() == [distances[j] for j in ranking]
    assert h.items.dtype == h.relevant.dtype == np.int64
    assert h.n_bits == n_bits


@pytest.mark.parametrize("n_bits, kind", [*product([1, 12, 65, 300], KINDS)])
def test_stable_map_agrees_with_naive(n_bits, kind):
    case = make_case(n_bits, kind)
    ranked = [[hits[j] for j in naive.stable_ranking(d)] for d, hits in naive_queries(case)]
    for normalize, top in product(NORMALIZE, (None, 1, 5, 1000)):
        scores = [naive.average_precision(hits, normalize, top) for hits in ranked]
        options = {"normalize": normalize, "top": top}
        zeros = [score or 0 for score in scores]
        assert_near(stable_map(case, empty="zero", per_query=True, **options), zeros)
        if any(score is not None for score in scores):
            assert_near(stable_map(case, per_query=True, **options), scores)
            assert_near(stable_map(case, **options), naive.mean(scores))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [1, 12, 65])
def test_radius_and_curve_agree_with_naive(n_bits, kind):
    case = make_case(n_bits, kind)
    h, queries = hamming_histogram(*case), naive_queries(case)
    for radius in (0, 1, 2, n_bits, n_bits + 5):
        scores = [naive.precision_at_radius(*query, radius) for query in queries]
        assert_near(h.precision_at_radius(radius, per_query=True), scores)
        assert_near(h.precision_at_radius(radius), naive.mean(scores))
    assert_near(h.precision_recall(), naive.precision_recall(queries, n_bits))
    precision, recall = h.precision_recall(per_query=True)
    assert precision.shape == recall.shape == h.items.shape


@pytest.mark.parametrize(("n", "n_hits"), [(10_000, 1), (10_000, 3), (10_000, 5_000)])
def test_reciprocal_rank_in_a_large_tie(n, n_hits):
    """Its terms are added until all others together are below rounding."""
    h = HammingHistogram(np.array([[7, n]]), np.array([[0, n_hits]]))
    none_before, expected = Fraction(1), 0.0
    for j in range(n - n_hits + 1):
        chance = Fraction(n_hits, n - j)
        expected += float(none_before * chance) / (8 + j)
        none_before = Fraction(float(none_before * (1 - chance)))
    assert h.reciprocal_rank() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_labels", [3, 70])
@pytest.mark.parametrize("n_bits", [1, 12, 65])
def test_grades_are_the_numbers_of_labels_shared(n_bits, n_labels):
    rng = np.random.default_rng(n_labels)
    codes = [pack(rng.random((n, n_bits)) < 0.5) for n in (5, 40)]
    labels = [rng.random((n, n_labels)) < 8 / n_labels**1.2 for n in (5, 40)]
    labels[0][2] = False
    h = hamming_histogram(*codes, *labels, n_bits, graded=True)
    assert_same(h, hamming_histogram(*codes, *labels, n_bits))
    assert len(h.grades) == labels[0].sum(axis=1).max() + 1
    for q, g in product(range(5), range(len(h.grades))):
        shared = (labels[0][q] & labels[1]).sum(axis=1)
        own = naive.hamming(codes[0][q], codes[1][shared == g])
        assert h.grades[g, q].tolist() == naive.histogram(own, n_bits)


# ---- metrics against all orders of the tied items --------------------------------------

# Distances of items to a query: every kind of tie, at most 7 items for the enumeration.
TIES = {
    "none": [3, 0, 5, 1, 4, 2],
    "all": [2] * 6,
    "some": [1, 3, 1, 3, 0, 3, 1],
    "late": [0, 5, 1, 5, 5, 5],
    "one item": [4],
}
all_ties = pytest.mark.parametrize("distances", TIES.values(), ids=TIES)


def make_histogram(distances, patterns, n_bits=6):
    """Return the histogram of one query for each pattern of relevances, or of grades."""
    patterns = np.array(patterns)
    items = np.zeros((len(patterns), n_bits + 1), np.int64)
    grades = np.zeros((patterns.max() + 1, *items.shape), np.int64)
    for j, d in enumerate(distances):
        items[:, d] += 1
        grades[patterns[:, j], np.arange(len(patterns)), d] += 1
    return HammingHistogram(items, grades[1:].sum(axis=0), grades)


def check(method, expected, **options):
    """Check the values of all queries, both means, and that NaN is what is left out."""
    assert_near(method(per_query=True, **options), expected)
    kept = [value for value in expected if value is not None]
    assert_near(method(**options), float(sum(kept)) / len(kept))
    if len(kept) < len(expected):
        assert_near(method(empty="zero", **options), float(sum(kept)) / len(expected))


@all_ties
def test_a_metric_is_the_mean_over_all_orders(distances):
    patterns = list(product([0, 1], repeat=len(distances)))  # the empty one included
    h = make_histogram(distances, patterns)

    def exact(score, *options):
        return [naive.expected(score, distances, hits, *options) for hits in patterns]

    for normalize in NORMALIZE:
        for top in [None, *range(1, len(distances) + 2)]:
            scores = exact(naive.average_precision, normalize, top)
            check(h.mean_average_precision, scores, top=top, normalize=normalize)
    ks = list(range(1, len(distances) + 1))
    shares = []
    for k in ks:
        check(h.recall_at_k, exact(naive.recall_at_k, k), k=k)
        check(h.ndcg_at_k, exact(naive.ndcg_at_k, k, "binary"), k=k)
        shares.append([naive.expected_precision_at_k(distances, hits, k) for hits in patterns])
        check(h.precision_at_k, shares[-1], k=k)
    check(h.reciprocal_rank, exact(naive.reciprocal_rank))
    for radius in range(max(distances) + 2):
        recalls = [naive.recall_at_radius(distances, hits, radius) for hits in patterns]
        check(h.recall_at_radius, recalls, radius=radius)
    # A list of k gives a column for each.
    assert_near(h.precision_at_k(ks, per_query=True).T, shares)
    assert_near(h.precision_at_k(ks), [h.precision_at_k(k) for k in ks])
    zeros = [h.recall_at_k(k, empty="zero") for k in ks]
    assert_near(h.recall_at_k(ks, empty="zero"), zeros)
    assert type(h.precision_at_k(1)) is float


@all_ties
def test_graded_ndcg_is_the_mean_over_all_orders(distances):
    rng = np.random.default_rng(len(distances))
    n = len(distances)
    patterns = [*rng.integers(0, 4, (25, n)).tolist(), [0] * n, [0] * (n - 1) + [3]]
    h = make_histogram(distances, patterns)
    for k, gain in product(range(1, n + 1), GAINS):
        options = (k, gain)
        expected = [naive.expected(naive.ndcg_at_k, distances, row, *options) for row in patterns]
        check(h.ndcg_at_k, expected, k=k, gain=gain)


def written_out(n, hits, top):
    """Return numerators of the expected AP: the docstring's formula, rank by rank."""
    terms, N, N_hits = [], 0, 0
    for size, good in zip(n, hits, strict=True):
        m = (good - 1) / (size - 1) if size > 1 else 0
        places = range(min(size, top - N))
        terms += [good / size * (N_hits + 1 + j * m) / (N + j + 1) for j in places]
        N, N_hits = N + size, N_hits + good
    return math.fsum(terms)


@pytest.mark.parametrize(
    ("n", "hits"),
    [
        ([10, 10**5, 5], [3, 20_000, 5]),
        ([10**6, 1, 1], [0, 1, 0]),
        ([10**5] * 3, [9, 700, 90_000]),
    ],
)
def test_expected_map_stays_exact_for_huge_ties(n, hits):
    h = HammingHistogram(np.array([n]), np.array([hits]))
    for top in (50, 60_000, sum(n)):
        assert_near(h.mean_average_precision(top), written_out(n, hits, top) / sum(hits))


@pytest.mark.parametrize("a", [0, 1, 30, 62, 63, 64, 65, 1000, 10**6, 10**9, 10**15])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 40, 500])
def test_parts_of_the_harmonic_series_keep_their_digits(a, n):
    exact = sum((Fraction(1, i) for i in range(a + 1, a + n + 1)), Fraction(0))
    found = metrics._harmonic_between(np.array([a]), np.array([a + n]))
    assert found[0] == pytest.approx(float(exact), rel=1e-13, abs=0)


@pytest.mark.parametrize("size, good, q", [(20_000, 7_000, 300), (2000, 1000, 1000), (700, 3, 350)])
def test_retrieved_stays_exact_for_a_huge_cut_tie(size, good, q):
    total = Fraction(0)  # 100 hits out of 100 before it
    for h in range(max(0, q - (size - good)), min(q, good) + 1):
        chance = Fraction(math.comb(good, h) * math.comb(size - good, q - h), math.comb(size, q))
        total += chance * Fraction(written_out([100, q], [100, h], 100 + q)) / (100 + h)
    h = HammingHistogram(np.array([[100, size]]), np.array([[100, good]]))
    assert_near(h.mean_average_precision(100 + q, "retrieved"), float(total))


def test_rows_of_different_totals_do_not_affect_each_other():
    items = np.array([[1, 2, 0], [3, 0, 4], [9, 0, 20]])
    relevant = np.array([[0, 1, 0], [2, 0, 3], [3, 0, 19]])
    h = HammingHistogram(items, relevant)
    for normalize, top in product(NORMALIZE, (None, 4)):
        rows = [HammingHistogram(items[q : q + 1], relevant[q : q + 1]) for q in range(3)]
        alone = [one.mean_average_precision(top, normalize) for one in rows]
        assert_near(h.mean_average_precision(top, normalize, per_query=True), alone)
    assert repr(h).endswith("n_items=3..29)")
    # The first k items exist for all queries, or for none.
    assert h.precision_at_k(3, per_query=True).shape == (3,)
    with pytest.raises(ValueError, match="k=4"):
        h.precision_at_k(4)


# ---- other people's programs -----------------------------------------------------------


def test_map_agrees_with_scikit_learn_where_nothing_ties():
    rng = np.random.default_rng(1)
    distances, relevances = rng.permutation(65), rng.integers(0, 2, (8, 65))
    scores = [average_precision_score(hits, -distances) for hits in relevances]
    h = make_histogram(distances, relevances, n_bits=64)
    assert_near(h.mean_average_precision(per_query=True), scores)


@pytest.mark.parametrize("n_queries", [1, 6])
def test_judged_pairs_give_the_graded_ndcg_of_scikit_learn(n_queries):
    rng = np.random.default_rng(2)
    case = make_case(20, n_queries=n_queries, n_items=80)
    judged = rng.random((n_queries, 80)) < 0.3
    grades = np.where(judged, rng.integers(0, 5, judged.shape), 0)
    grades[0, 3] = 4
    q, j = np.nonzero(judged)
    h = judged_histogram(*case[:2], q, j, grades[q, j], n_bits=20)
    scores = [[-d for d in distances] for distances, _ in naive_queries(case)]
    for k in (1, 10, 80):
        theirs = ndcg_score(grades, scores, k=k)
        assert h.ndcg_at_k(k, "linear", empty="zero") == pytest.approx(theirs, abs=1e-12)
    assert_near(h.relevant.sum(axis=1), (grades > 0).sum(axis=1))


def test_judged_pairs_of_equal_labels_are_the_labels():
    case = make_case(12, n_queries=7)
    q, j = np.nonzero(case.query_labels[:, None] == case.db_labels)
    assert_same(judged_histogram(*case[:2], q, j, n_bits=12), hamming_histogram(*case))


# ---- properties ------------------------------------------------------------------------

quick = settings(max_examples=40, deadline=None)  # a first call compiles, so no deadline
cases = st.builds(
    make_case,
    n_bits=st.integers(1, 70),
    kind=st.sampled_from(KINDS),
    n_queries=st.integers(1, 20),
    n_items=st.integers(1, 25),
    seed=st.integers(0, 2**32),
)
seeds = st.integers(0, 2**32).map(np.random.default_rng)


@quick
@given(cases, st.integers(1, 5), seeds)
def test_what_changes_no_distance_and_no_relevance_changes_no_count(case, n_shards, rng):
    whole = hamming_histogram(*case)
    queries, database, query_labels, db_labels, n_bits = case
    shard = rng.integers(0, n_shards, len(database))
    parts = []
    for own in (shard == k for k in np.unique(shard)):
        part = (queries, database[own], query_labels, db_labels[own], n_bits)
        parts.append(hamming_histogram(*part))
    assert_same(sum(parts), whole)
    order = rng.permutation(len(database))
    mixed = (queries, database[order], query_labels, db_labels[order], n_bits)
    assert_same(hamming_histogram(*mixed), whole)
    bits = [np.unpackbits(codes, axis=1, bitorder="little")[:, :n_bits] for codes in case[:2]]
    order, mask = rng.permutation(n_bits), rng.integers(0, 2, n_bits)
    bitorder = rng.choice(["big", "little"])
    codes = [pack(b[:, order] ^ mask, bitorder) for b in bits]
    found = hamming_histogram(*codes, query_labels, db_labels)
    assert not found.items[:, n_bits + 1 :].any()
    np.testing.assert_array_equal(found.relevant[:, : n_bits + 1], whole.relevant)
    if query_labels.ndim == 2:
        order = rng.permutation(query_labels.shape[1])
        new = [labels[:, order] for labels in case[2:4]]
    else:
        old = np.unique(np.concatenate(case[2:4]))
        names = rng.permutation([f"class {k}" for k in range(len(old))])
        new = [names[np.searchsorted(old, labels)] for labels in case[2:4]]
    assert_same(hamming_histogram(queries, database, *new, n_bits), whole)


# ---- blocks, merged items, long codes --------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_queries", [4, 20])
@pytest.mark.parametrize("n_bits", [12, 300])
def test_blocks_do_not_matter(monkeypatch, n_bits, kind, n_queries):
    case = make_case(n_bits, kind, n_queries)

    def results():
        h = hamming_histogram(*case)
        stable = [stable_map(case, top=9), stable_map(case, normalize="min")]
        return (h.items, h.relevant, *nearest(*case[:2], 7), *stable)

    whole = results()
    monkeypatch.setattr(metrics, "TILE", 5)
    for n_bytes in (1, 100):
        monkeypatch.setattr(metrics, "BLOCK_BYTES", n_bytes)
        for a, b in zip(results(), whole, strict=True):
            assert_near(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [3, 65, 300])
def test_merging_equal_items_does_not_matter(n_bits, kind):
    few = make_case(n_bits, kind, n_queries=4, n_items=8)
    one = hamming_histogram(*few)
    # A hundred queries are worth looking for equal items.
    many = [np.concatenate([part] * 25) for part in (few.query_codes, few.query_labels)]
    items = [np.concatenate([part] * 20) for part in (few.db_codes, few.db_labels)]
    h = hamming_histogram(many[0], items[0], many[1], items[1], n_bits)
    np.testing.assert_array_equal(h.items, np.tile(20 * one.items, (25, 1)))
    np.testing.assert_array_equal(h.relevant, np.tile(20 * one.relevant, (25, 1)))


def test_codes_with_more_cells_than_two_bytes_number():
    distances = np.array([0, 5, 32_000, 40_000, 40_000])
    items = pack(np.arange(40_000) < distances[:, None])
    h = hamming_histogram(items[:1], items, [1], [1, 0, 1, 0, 1])
    assert h.items[0].nonzero()[0].tolist() == [0, 5, 32_000, 40_000]
    assert h.items[0, 40_000] == 2
    assert h.relevant[0].nonzero()[0].tolist() == [0, 32_000, 40_000]
    # 16 grades at 4,097 distances are 65,552 cells.
    codes = pack(np.repeat([[0], [1], [1]], 4096, axis=1))
    labels = np.ones((3, 15), int)
    h = hamming_histogram(codes[:1], codes[1:], labels[:1], labels[1:], graded=True)
    assert np.argwhere(h.grades).tolist() == [[15, 0, 4096]]


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
@pytest.mark.parametrize("k", [1, 2, 40, 600])
def test_nearest_finds_ties_in_database_order_in_any_database(monkeypatch, order, k):
    """In a descending database every item is nearer than all before it."""
    monkeypatch.setattr(metrics, "BLOCK_BYTES", 2000)
    distances = np.random.default_rng(k).integers(0, 65, 600)
    if order != "random":
        distances.sort()
    if order == "descending":
        distances = distances[::-1]
    items = pack(np.arange(64) < distances[:, None])
    found, indices = nearest(pack(np.zeros((20, 64))), items, k, n_threads=2)
    ranking = naive.stable_ranking(distances)[:k]
    assert indices.tolist() == [ranking] * 20
    assert found.tolist() == [distances[ranking].tolist()] * 20


# ---- the histogram as an object --------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_without_self_leaves_each_query_out_of_its_own_database(kind):
    case = make_case(3, kind, n_queries=15)
    codes, labels = case.query_codes, case.query_labels
    h = hamming_histogram(codes, codes, labels, labels, 3)
    others = h.without_self()
    for q in range(len(codes)):
        rest = np.arange(len(codes)) != q
        one = hamming_histogram(codes[[q]], codes[rest], labels[[q]], labels[rest], 3)
        np.testing.assert_array_equal(others.items[q], one.items[0])
        np.testing.assert_array_equal(others.relevant[q], one.relevant[0])
    assert (h.items.sum(axis=1) == len(codes)).all()  # the original is left as it was


def test_empty_queries_are_counted_and_left_out_of_map_and_curve():
    h = make_histogram([0, 1, 2], [[1, 0, 0], [0, 0, 0], [0, 1, 1]], n_bits=2)
    assert h.n_empty == 1
    assert np.isnan(h.mean_average_precision(per_query=True)).tolist() == [False, True, False]
    assert_near(h.mean_average_precision(), (1 + (1 / 2 + 2 / 3) / 2) / 2)
    assert_near(h.precision_recall(), [[1 / 2, 1 / 2, 1 / 2], [1 / 2, 3 / 4, 1]])
    # Precisions need no relevant item: the query counts 0.
    assert_near(h.precision_at_radius(0), 1 / 3)
    assert_near(h.precision_at_k(1), 1 / 3)


def test_histograms_pickle_show_their_size_and_add_to_histograms_only():
    h = hamming_histogram(*make_case(12))
    assert repr(h) == "HammingHistogram(n_queries=4, n_bits=12, n_items=30)"
    assert_same(pickle.loads(pickle.dumps(h)), h)
    for other in (1, None, np.zeros(3)):
        with pytest.raises(TypeError):
            h + other
    with pytest.raises(TypeError):
        1 + h


def test_shards_with_grades_add_up_even_if_one_lacks_the_highest():
    case = make_case(9, "sets", n_queries=4)
    labels = np.array(case.db_labels)
    labels[:11, 1:] = 0
    shards = []
    queries = np.ones((4, 3), int)
    for rows in (slice(11), slice(11, None)):
        q, j = np.nonzero(queries @ labels[rows].T)
        grades = (queries @ labels[rows].T)[q, j]
        shards.append(judged_histogram(case[0], case[1][rows], q, j, grades, n_bits=9))
    assert len(shards[0].grades) < len(shards[1].grades)
    whole = hamming_histogram(case[0], case[1], queries, labels, 9, graded=True)
    np.testing.assert_array_equal(sum(shards).grades, whole.grades[: len(shards[1].grades)])
    assert sum(shards).ndcg_at_k(9, "linear") == pytest.approx(whole.ndcg_at_k(9, "linear"))


def test_a_shard_without_judged_pairs_adds_its_items():
    case = make_case(9, n_queries=4)
    none = np.empty(0, int)
    shard = judged_histogram(*case[:2], none, none, n_bits=9)
    assert shard.n_empty == 4
    np.testing.assert_array_equal(shard.items, hamming_histogram(*case).items)


# ---- threads and processes -------------------------------------------------------------


@pytest.fixture
def large_case(monkeypatch):
    """Make cases with pairs for more than one thread, few enough for plain Python."""
    monkeypatch.setattr(metrics, "PAIRS_PER_THREAD", 1)
    return lambda kind="integers": make_case(64, kind, n_queries=50, n_items=4200)


@pytest.mark.parametrize("most_copied", [1, metrics.MOST_COPIED])
@pytest.mark.parametrize("kind", ["integers", "sets"])
def test_number_of_threads_does_not_matter(monkeypatch, large_case, kind, most_copied):
    monkeypatch.setattr(metrics, "MOST_COPIED", most_copied)  # 1: they part the queries
    case = large_case(kind)
    one = hamming_histogram(*case, n_threads=1)
    for n_threads in (2, 3, None):
        assert_same(hamming_histogram(*case, n_threads=n_threads), one)


def test_the_number_of_cores_is_not_needed(monkeypatch):
    case = make_case()
    expected = hamming_histogram(*case, n_threads=1)
    # As on a system that tells neither which cores may be used nor how many there are.
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for n_cores in (None, 2):
        monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
        assert_same(hamming_histogram(*case), expected)


def test_several_python_threads_agree(large_case):
    case = large_case()
    alone = hamming_histogram(*case, n_threads=1)
    with ThreadPoolExecutor(4) as pool:
        for h in pool.map(lambda _: hamming_histogram(*case, n_threads=2), range(4)):
            assert_same(h, alone)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system"
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_works_after_a_fork(large_case):
    case = large_case()
    parent = hamming_histogram(*case, n_threads=2)  # threads have run before the fork
    with multiprocessing.get_context("fork").Pool(1) as pool:
        call = pool.apply_async(hamming_histogram, case, {"n_threads": 2})
        assert_same(call.get(timeout=60), parent)
