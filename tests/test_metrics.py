"""metrics.py against plain Python, against other people's code, and against bad input."""

import math
import multiprocessing
import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import joblib
import naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

import metrics
from metrics import (
    HammingHistogram,
    area_under_curve,
    hamming_histogram,
    mean_average_precision,
    nearest,
)

with (
    warnings.catch_warnings()
):  # its SWIG wrapper is deprecated from Python 3.12 on, which is not our business
    warnings.simplefilter("ignore")
    import faiss

N_BITS = [1, 3, 8, 12, 64, 65, 128, 300]
KINDS = ["integers", "strings", "sets", "many"]
NORMALIZE = ["relevant", "min", "retrieved"]


class Case(NamedTuple):
    """The arguments of hamming_histogram, in its order."""

    query_codes: np.ndarray
    db_codes: np.ndarray
    query_labels: np.ndarray
    db_labels: np.ndarray
    n_bits: int


def pack(bits):
    return np.packbits(bits, axis=1, bitorder="little")


def make_bits(rng, n_rows, n_bits):
    """Return noisy copies of two codes that differ in every bit: near and far items, and ties."""
    return rng.integers(0, 2, (n_rows, 1)) ^ (rng.random((n_rows, n_bits)) < 0.1)


def make_labels(rng, n_rows, kind):
    if kind == "integers":
        return rng.choice([-5, 0, 7, 10**12], n_rows)
    if kind == "strings":
        return rng.choice(["", "ant", "bee", "camel"], n_rows)
    n_labels, share = (3, 0.4) if kind == "sets" else (70, 0.05)  # 70 do not fit one word
    labels = (rng.random((n_rows, n_labels)) < share).astype(int)
    labels[-1] = 0  # an item may have no label at all
    return labels


def make_case(n_bits=12, kind="integers", n_queries=4, n_items=30, seed=0):
    rng = np.random.default_rng([seed, n_bits])
    codes = [pack(make_bits(rng, n_rows, n_bits)) for n_rows in (n_queries, n_items)]
    labels = [make_labels(rng, n_rows, kind) for n_rows in (n_queries, n_items)]
    return Case(*codes, *labels, n_bits)


def relevance_case(distances, relevances, n_bits):
    """Return one query per row of relevances, all at the same distances to the items."""
    distances, relevances = np.asarray(distances), np.asarray(relevances)
    n_queries, n_items = relevances.shape
    items = pack(np.arange(n_bits) < distances[:, None])
    queries = pack(np.zeros((n_queries, n_bits), int))
    return Case(
        queries, items, relevances, np.eye(n_items, dtype=int), n_bits
    )  # item j has the label j alone


def naive_queries(case):
    """(distances, relevances) of every query."""
    return [
        (naive.hamming(code, case.db_codes), naive.relevances(label, case.db_labels))
        for code, label in zip(case.query_codes, case.query_labels, strict=True)
    ]


def stable_map(case, **options):
    return mean_average_precision(*case[:4], n_bits=case.n_bits, ties="stable", **options)


def assert_same(a, b):
    np.testing.assert_array_equal(a.items, b.items)
    np.testing.assert_array_equal(a.relevant, b.relevant)


def assert_near(a, b):
    np.testing.assert_allclose(
        np.asarray(a, float), np.asarray(b, float), rtol=0, atol=1e-12
    )  # None becomes NaN


# ---- agrees with naive ---------------------------------------------------------------


every_case = pytest.mark.parametrize(
    ("n_bits", "kind"),
    [*product(N_BITS, KINDS), (4096, "integers")],
    ids=lambda value: str(value),
)


@every_case
def test_histogram_agrees_with_naive(n_bits, kind):
    case = make_case(n_bits, kind)
    h = hamming_histogram(*case)
    for q, (distances, relevances) in enumerate(naive_queries(case)):
        assert h.items[q].tolist() == naive.histogram(distances, n_bits)
        hits = [d for d, hit in zip(distances, relevances, strict=True) if hit]
        assert h.relevant[q].tolist() == naive.histogram(hits, n_bits)
    assert h.items.dtype == h.relevant.dtype == np.int64
    assert h.n_bits == n_bits


@every_case
def test_stable_map_agrees_with_naive(n_bits, kind):
    case = make_case(n_bits, kind)
    ranked = [[hits[j] for j in naive.stable_ranking(d)] for d, hits in naive_queries(case)]
    for normalize, top in product(NORMALIZE, (None, 1, 5, 1000)):
        scores = [naive.average_precision(hits, normalize, top) for hits in ranked]
        if all(score is None for score in scores):
            with pytest.raises(ValueError, match="relevant"):
                stable_map(case, normalize=normalize, top=top)
        else:
            assert_near(stable_map(case, normalize=normalize, top=top), naive.mean(scores))


@every_case
def test_nearest_agrees_with_naive(n_bits, kind):
    case = make_case(n_bits, kind)
    for k in (1, 7, 30):
        distances, indices = nearest(case.query_codes, case.db_codes, k)
        assert distances.shape == indices.shape == (4, k)
        for q, (d, _) in enumerate(naive_queries(case)):
            ranking = naive.stable_ranking(d)[:k]
            assert indices[q].tolist() == ranking
            assert distances[q].tolist() == [d[j] for j in ranking]


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


# ---- agrees with independent oracles -------------------------------------------------

TIES = {
    "none": [3, 0, 5, 1, 4, 2],
    "all": [2] * 6,
    "some": [1, 3, 1, 3, 0, 3, 1],
    "late": [0, 5, 1, 5, 5, 5],
}


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("distances", TIES.values(), ids=TIES)
def test_expected_map_is_the_mean_over_all_tie_orders(distances, normalize):
    patterns = list(
        product([0, 1], repeat=len(distances))
    )  # every way to be relevant, the empty one included
    h = hamming_histogram(*relevance_case(distances, patterns, n_bits=6))
    for top in [None, *range(1, len(distances) + 2)]:
        scores = [
            naive.expected_average_precision(distances, hits, normalize, top) for hits in patterns
        ]
        assert_near(h.mean_average_precision(top, normalize, per_query=True), scores)
        assert_near(h.mean_average_precision(top, normalize), naive.mean(scores))


@pytest.mark.parametrize("distances", TIES.values(), ids=TIES)
def test_expected_precision_at_k_is_the_mean_over_all_tie_orders(distances):
    patterns = list(product([0, 1], repeat=len(distances)))
    h = hamming_histogram(*relevance_case(distances, patterns, n_bits=6))
    ks = range(1, len(distances) + 1)
    scores = [[naive.expected_precision_at_k(distances, hits, k) for k in ks] for hits in patterns]
    assert_near(h.precision_at_k(list(ks), per_query=True), scores)
    assert_near(h.precision_at_k(list(ks)), np.mean(scores, axis=0))
    assert_near(h.precision_at_k(2, per_query=True), [row[1] for row in scores])
    assert_near(h.precision_at_k(2), naive.mean(row[1] for row in scores))


def written_out(n, hits, top):
    """Return numerators of the expected AP: the docstring's formula, rank by rank."""
    terms, N, N_hits = [], 0, 0
    for size, good in zip(n, hits, strict=True):
        m = (good - 1) / (size - 1) if size > 1 else 0
        terms += [
            good / size * (N_hits + 1 + j * m) / (N + j + 1) for j in range(min(size, top - N))
        ]
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


def test_hits_that_tie_at_the_end_of_a_huge_database_have_a_small_positive_ap():
    items = np.array([[10**9, 3]])
    relevant = np.array([[0, 2]])
    histogram = metrics.HammingHistogram(items, relevant)
    # The two hits are at two of the last three ranks.
    ap = Fraction(0)
    for i, j in [(1, 2), (1, 3), (2, 3)]:
        ap += Fraction(1, 10**9 + i) + Fraction(2, 10**9 + j)
    found = histogram.mean_average_precision()
    assert found == pytest.approx(float(ap / 6), rel=1e-6)


def test_the_expectation_over_a_cut_tie_agrees_with_naive():
    cases = []
    for size, good, q in product(range(1, 7), range(7), range(1, 7)):
        if good <= size and q <= size:
            cases += [
                (5, 2, size, good, q),
                (0, 0, size, good, q),
                (4, 0, size, good, q),
            ]
    N, N_hits, size, good, q = np.array(cases).T
    whole_ties = 0.75 * (N_hits > 0)
    harmonic = metrics._harmonic_between(N, N + q)
    ap = np.empty(len(cases))
    # Without weights, and with grades of 7 before the tie and 1.5 in it.
    for gains in ([N_hits, 1 + 0 * N], [7 * (N_hits > 0), 1.5 + 0 * N]):
        gains = np.stack(gains).astype(float)
        inputs = (whole_ties, N, N_hits, gains, size, good, q, harmonic)
        metrics._expect_over_cut(*inputs, ap)
        for i, (n, n_hits, *rest) in enumerate(cases):
            if n_hits + min(rest[1], rest[2]) == 0:
                assert np.isnan(ap[i])
                continue
            exact = [Fraction(gain) for gain in gains[:, i].tolist()]
            whole = whole_ties[i].item()
            expected = naive.expect_over_cut(whole, n, n_hits, exact, *rest)
            assert ap[i] == pytest.approx(float(expected), rel=1e-12)


def test_retrieved_stays_exact_for_a_huge_cut_tie():
    size, good, q = 20_000, 7_000, 300  # 100 hits out of 100 before it
    expected = 0.0
    for h in range(q + 1):
        chance = math.comb(good, h) * math.comb(size - good, q - h) / math.comb(size, q)
        expected += (
            chance * written_out([100, q], [100, h], 100 + q) / (100 + h)
        )  # h hits anywhere in q places
    h = HammingHistogram(np.array([[100, size]]), np.array([[100, good]]))
    assert_near(h.mean_average_precision(100 + q, "retrieved"), expected)


@pytest.mark.parametrize("size", [600, 664, 668, 672, 680, 700])
def test_retrieved_stays_exact_where_the_weights_of_a_cut_tie_pass_1e200(size):
    # Half of the items are hits, and half of them are retrieved. The number h of hits among
    # these has a weight of binomial(q, h)^2, which begins at 1 and ends below or above 1e200.
    q = size // 2
    h = HammingHistogram(np.array([[size]]), np.array([[q]]))
    harmonic = sum(Fraction(1, j) for j in range(1, q + 1))
    total = Fraction(0)
    for n_hits in range(1, q + 1):
        # Given their number, the hits are anywhere among the first q.
        m = Fraction(n_hits - 1, q - 1)
        total += math.comb(q, n_hits) ** 2 * ((1 - m) * harmonic + m * q) / q
    expected = total / math.comb(size, q)
    value = h.mean_average_precision(top=q, normalize="retrieved")
    assert value == pytest.approx(float(expected), rel=1e-12)


def test_map_agrees_with_scikit_learn_where_nothing_ties():
    rng = np.random.default_rng(1)
    distances, relevances = rng.permutation(65), rng.integers(0, 2, (8, 65))
    case = relevance_case(distances, relevances, n_bits=64)
    scores = [average_precision_score(hits, -distances) for hits in relevances]
    assert_near(hamming_histogram(*case).mean_average_precision(per_query=True), scores)
    assert_near(mean_average_precision(*case[:4]), np.mean(scores))
    assert_near(stable_map(case), np.mean(scores))


def stable_argsort_map(case, normalize, top):
    """What published evaluation code does: sort, look up, divide."""
    bits = [
        np.unpackbits(codes, axis=1, count=case.n_bits, bitorder="little") for codes in case[:2]
    ]
    order = np.argsort((bits[0][:, None] != bits[1]).sum(axis=2), axis=1, kind="stable")
    hits = case.db_labels[order] == case.query_labels[:, None]
    first = hits[:, :top]
    precision = first.cumsum(axis=1) / np.arange(1, first.shape[1] + 1)
    found, total = first.sum(axis=1), hits.sum(axis=1)
    divisor = {
        "relevant": total,
        "min": np.minimum(total, top or len(order[0])),
        "retrieved": found,
    }[normalize]
    kept = divisor > 0
    return np.mean((precision * first).sum(axis=1)[kept] / divisor[kept])


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("top", [None, 1, 3, 100, 400])
@pytest.mark.parametrize("n_bits", [8, 65])
def test_stable_map_agrees_with_a_stable_argsort(n_bits, top, normalize):
    case = make_case(n_bits, n_queries=12, n_items=400)
    # A rare label: with a small top some queries have no hit. "retrieved" leaves them out.
    case.query_labels[:4], case.db_labels[:3] = 99, 99
    assert_near(
        stable_map(case, normalize=normalize, top=top),
        stable_argsort_map(case, normalize, top),
    )


def test_retrieved_with_stable_ties_leaves_out_queries_without_a_hit_in_the_top():
    case = relevance_case(
        [1, 1, 2, 2], [[1, 0, 0, 1], [0, 0, 0, 1]], n_bits=8
    )  # the second hits at rank 4 only
    assert stable_map(case, normalize="retrieved", top=3) == 1.0
    assert_near(stable_map(case, normalize="retrieved", top=4), (0.75 + 0.25) / 2)
    assert_near(stable_map(case, normalize="relevant", top=3), (0.5 + 0.0) / 2)


@pytest.mark.parametrize("n_bits", [8, 64, 512])
def test_faiss_reads_the_same_codes(n_bits):
    case = make_case(n_bits, n_items=100)
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(case.db_codes)
    theirs, _ = index.search(
        case.query_codes, 20
    )  # its order of ties is its own, so only the distances compare
    ours, _ = nearest(case.query_codes, case.db_codes, 20)
    np.testing.assert_array_equal(ours, theirs)
    h = hamming_histogram(*case)
    for radius in (0, 2, n_bits // 8, n_bits):
        limits, _, found = index.range_search(
            case.query_codes, radius + 1
        )  # FAISS: strictly below; ours: within
        np.testing.assert_array_equal(
            np.diff(limits.astype(int)), h.items[:, : radius + 1].sum(axis=1)
        )
        hits = [
            np.mean(case.db_labels[found[a:b]] == label) if b > a else 0.0
            for a, b, label in zip(limits[:-1], limits[1:], case.query_labels, strict=True)
        ]
        assert_near(h.precision_at_radius(radius), np.mean(hits))


# ---- properties ----------------------------------------------------------------------

quick = settings(max_examples=40, deadline=None)  # a first call compiles, so no deadline
cases = st.builds(
    make_case,
    n_bits=st.integers(1, 70),
    kind=st.sampled_from(KINDS),
    n_queries=st.integers(1, 4),
    n_items=st.integers(1, 25),
    seed=st.integers(0, 2**32),
)
seeds = st.integers(0, 2**32).map(np.random.default_rng)


@quick
@given(cases, st.integers(1, 5), seeds)
def test_shards_add_up(case, n_shards, rng):
    shard = rng.integers(0, n_shards, len(case.db_codes))
    parts = [
        hamming_histogram(
            case.query_codes,
            case.db_codes[own],
            case.query_labels,
            case.db_labels[own],
            case.n_bits,
        )
        for own in (shard == k for k in np.unique(shard))
    ]
    whole = hamming_histogram(*case)
    assert_same(sum(parts), whole)
    assert_same(sum(parts[1:], parts[0]), whole)


@quick
@given(cases, seeds)
def test_order_of_the_database_does_not_matter(case, rng):
    order = rng.permutation(len(case.db_codes))
    mixed = case._replace(db_codes=case.db_codes[order], db_labels=case.db_labels[order])
    assert_same(hamming_histogram(*mixed), hamming_histogram(*case))


@quick
@given(cases, seeds)
def test_order_of_the_bits_does_not_matter(case, rng):
    order = rng.permutation(case.n_bits)
    codes = (np.unpackbits(codes, axis=1, bitorder="little")[:, order] for codes in case[:2])
    assert_same(hamming_histogram(*map(pack, codes), *case[2:]), hamming_histogram(*case))


@quick
@given(cases, seeds)
def test_names_of_the_labels_do_not_matter(case, rng):
    if case.query_labels.ndim == 2:
        order = rng.permutation(case.query_labels.shape[1])
        new = [labels[:, order] for labels in case[2:4]]
    else:
        old = np.unique(np.concatenate(case[2:4]))
        names = rng.permutation([f"class {k}" for k in range(len(old))])
        new = [names[np.searchsorted(old, labels)] for labels in case[2:4]]
    assert_same(hamming_histogram(*case[:2], *new, case.n_bits), hamming_histogram(*case))


@quick
@given(cases, st.none() | st.integers(1, 30))
def test_expected_map_is_a_mean_so_lies_between_best_and_worst_order(case, top):
    one = case._replace(query_codes=case.query_codes[:1], query_labels=case.query_labels[:1])
    hits = np.array(naive.relevances(one.query_labels[0], one.db_labels))
    assume(hits.any())
    best, worst = (
        stable_map(
            one._replace(db_codes=one.db_codes[order], db_labels=one.db_labels[order]),
            top=top,
        )
        for order in (np.argsort(-hits, kind="stable"), np.argsort(hits, kind="stable"))
    )
    expected = mean_average_precision(*one[:4], n_bits=one.n_bits, top=top)
    assert worst - 1e-12 <= expected <= best + 1e-12


def test_retrieved_can_rank_a_worse_list_higher_and_the_default_cannot():
    # [+ - -] and [+ - +]: the reason given for the default.
    case = relevance_case([0, 1, 2, 3], [[1, 0, 0, 1], [1, 0, 1, 0]], n_bits=3)
    h = hamming_histogram(*case)
    worse, better = h.mean_average_precision(3, "retrieved", per_query=True)
    assert worse > better
    worse, better = h.mean_average_precision(3, per_query=True)
    assert worse < better


# ---- blocks and merged items ---------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [12, 300])
def test_blocks_do_not_matter(monkeypatch, n_bits, kind):
    case = make_case(n_bits, kind)

    def results():
        h = hamming_histogram(*case)
        return (
            h.items,
            h.relevant,
            *nearest(*case[:2], 7),
            stable_map(case, top=9),
            stable_map(case, normalize="min"),
        )

    whole = results()
    for n_words in (1, 7, 12):
        monkeypatch.setattr(metrics, "BLOCK_WORDS", n_words)
        for a, b in zip(results(), whole, strict=True):
            assert_near(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bits", [3, 65])
def test_merging_equal_items_does_not_matter(n_bits, kind):
    case = make_case(n_bits, kind, n_queries=4, n_items=8)
    case = case._replace(
        db_codes=np.tile(case.db_codes, (20, 1)),
        db_labels=np.concatenate([case.db_labels] * 20),
    )
    few = hamming_histogram(*case)  # a few queries are not worth the sorting that finds equal items
    many = case._replace(
        query_codes=np.tile(case.query_codes, (100, 1)),
        query_labels=np.concatenate([case.query_labels] * 100),
    )
    many = hamming_histogram(*many)
    assert_same(
        many,
        HammingHistogram(np.tile(few.items, (100, 1)), np.tile(few.relevant, (100, 1))),
    )
    one = hamming_histogram(
        case.query_codes,
        case.db_codes[:8],
        case.query_labels,
        case.db_labels[:8],
        n_bits,
    )
    assert_same(few, HammingHistogram(20 * one.items, 20 * one.relevant))


def test_more_classes_than_fit_two_bytes():
    n_classes = (1 << 16) + 2
    labels = np.array([n_classes - 1, 0, n_classes - 1, 1, n_classes - 2, 0])
    codes = np.array([[0], [1], [0], [1], [3], [1]], np.uint8)
    queries = np.zeros((n_classes, 1), np.uint8)
    h = hamming_histogram(queries, codes, np.arange(n_classes), labels, n_bits=2)
    assert (h.items == [2, 3, 1]).all()
    np.testing.assert_array_equal(h.relevant.sum(axis=1), np.bincount(labels))
    assert h.relevant[[0, -2, -1]].tolist() == [[0, 2, 0], [0, 0, 1], [2, 0, 0]]


# ---- the histogram as an object ------------------------------------------------------


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
    case = relevance_case([0, 1, 2], [[1, 0, 0], [0, 0, 0], [0, 1, 1]], n_bits=2)
    h = hamming_histogram(*case)
    assert h.n_empty == 1
    assert np.isnan(h.mean_average_precision(per_query=True)).tolist() == [
        False,
        True,
        False,
    ]
    assert_near(h.mean_average_precision(), (1 + (1 / 2 + 2 / 3) / 2) / 2)
    assert_near(h.precision_recall(), [[1 / 2, 1 / 2, 1 / 2], [1 / 2, 3 / 4, 1]])
    assert_near(
        h.precision_at_radius(0), 1 / 3
    )  # precisions do not need a relevant item: the query counts 0
    assert_near(h.precision_at_k(1), 1 / 3)


def test_precision_at_k_of_a_single_query_is_a_share_of_its_first_items():
    # Distances 0 1 1 1 3 3 with hits at 0, at two of the three 1s, and at one of the two 3s.
    case = relevance_case([0, 1, 1, 1, 3, 3], [[1, 1, 0, 1, 1, 0]], 4)
    h = hamming_histogram(*case)
    shares = [1, (1 + 2 / 3) / 2, (1 + 4 / 3) / 3, 3 / 4, (3 + 1 / 2) / 5, 4 / 6]
    for k, share in enumerate(shares, start=1):
        value = h.precision_at_k(k)
        assert type(value) is float
        assert_near(value, share)
        rows = h.precision_at_k(k, per_query=True)
        assert rows.shape == (1,)
        assert_near(rows, [share])
    several = h.precision_at_k([6, 2])
    assert several.shape == (2,)
    assert_near(several, [shares[5], shares[1]])
    rows = h.precision_at_k([6, 2], per_query=True)
    assert rows.shape == (1, 2)
    assert_near(rows, [[shares[5], shares[1]]])
    # A list with one k keeps its axis.
    assert h.precision_at_k([2]).shape == (1,)
    assert h.precision_at_k([2], per_query=True).shape == (1, 1)


def test_empty_queries_are_those_without_a_relevant_item_and_no_others():
    items = np.array([[2, 1, 0]] * 4)
    relevant = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [2, 1, 0]])
    assert HammingHistogram(items, relevant).n_empty == 2
    assert HammingHistogram(items[1:2], relevant[1:2]).n_empty == 0


@pytest.mark.parametrize("n_bits", [8, 64, 65, 128, 129, 200])
def test_a_database_of_one_item_is_compared_in_all_bits(n_bits):
    item = pack(np.ones((1, n_bits), int))
    queries = pack(np.tril(np.ones((n_bits + 1, n_bits), int), -1))
    # Query q has its first q bits set, so it is at distance n_bits - q.
    expected = np.fliplr(np.eye(n_bits + 1, dtype=int))
    h = hamming_histogram(queries, item, np.zeros(n_bits + 1, int), [0], n_bits)
    np.testing.assert_array_equal(h.items, expected)
    np.testing.assert_array_equal(h.relevant, expected)
    distances, _ = nearest(queries, item, 1)
    np.testing.assert_array_equal(distances[:, 0], n_bits - np.arange(n_bits + 1))


def test_empty_ball_counts_zero():
    h = hamming_histogram(*relevance_case([2, 3], [[1, 1]], n_bits=4))
    assert h.precision_at_radius(1) == 0.0
    assert_near(h.precision_recall(), [[0, 0, 1, 1, 1], [0, 0, 0.5, 1, 1]])


def test_histograms_pickle():
    h = hamming_histogram(*make_case())
    copy = pickle.loads(pickle.dumps(h))
    assert_same(copy, h)
    assert copy.mean_average_precision() == h.mean_average_precision()


def test_a_histogram_shows_its_size():
    assert (
        repr(hamming_histogram(*make_case(12)))
        == "HammingHistogram(n_queries=4, n_bits=12, n_items=30)"
    )


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("top", [None, 4])
def test_rows_of_different_totals_do_not_affect_each_other(normalize, top):
    items = np.array([[1, 2, 0], [3, 0, 4], [9, 0, 20]])
    relevant = np.array([[0, 1, 0], [2, 0, 3], [3, 0, 19]])
    alone = []
    for q in range(3):
        row = slice(q, q + 1)
        one = HammingHistogram(items[row], relevant[row])
        alone.append(one.mean_average_precision(top, normalize))
    for order in ([0, 1, 2], [2, 1, 0]):
        h = HammingHistogram(items[order], relevant[order])
        ap = h.mean_average_precision(top, normalize, per_query=True)
        np.testing.assert_array_equal(ap, np.array(alone)[order])
        assert repr(h).endswith("n_items=3..29)")
        # The first k items exist for all queries, or for none.
        assert h.precision_at_k(3, per_query=True).shape == (3,)
        with pytest.raises(ValueError, match="k=4 is too large"):
            h.precision_at_k(4)


def test_blocks_of_queries_do_not_matter(monkeypatch):
    case = make_case(65, n_queries=20)
    # Some queries have no relevant item.
    case.query_labels[3:7] = 99
    h = hamming_histogram(*case)

    def results():
        for normalize, top in product(NORMALIZE, (None, 5)):
            yield h.mean_average_precision(top, normalize, per_query=True)
        yield h.precision_at_k([1, 9], per_query=True)
        yield h.precision_recall()

    whole = list(results())
    # Blocks of 3 queries, and of 1.
    for n_words in (200, 1):
        monkeypatch.setattr(metrics, "BLOCK_WORDS", n_words)
        for a, b in zip(results(), whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_one_liner_is_the_histograms_map():
    case = make_case()
    for normalize, top in product(NORMALIZE, (None, 5)):
        one_liner = mean_average_precision(*case[:4], top=top, normalize=normalize, n_bits=12)
        assert one_liner == hamming_histogram(*case).mean_average_precision(top, normalize)


def test_no_distance_saturates():
    # r - 2d held in int8 makes one tie of the distances below (512 - 127) / 2 of a 512-bit code.
    n_bits = 512
    distances = np.arange(n_bits + 1)[::-1]  # the farthest first in the database
    case = relevance_case(distances, [distances % 2 == 0], n_bits)
    np.testing.assert_array_equal(nearest(*case[:2], n_bits + 1)[0], [distances[::-1]])
    assert (hamming_histogram(*case).items == 1).all()
    hits = np.arange(1, 258)  # at ranks 1, 3, 5, ...
    assert_near(stable_map(case), np.mean(hits / (2 * hits - 1)))
    assert_near(mean_average_precision(*case[:4]), np.mean(hits / (2 * hits - 1)))


@pytest.mark.parametrize(
    ("x", "y", "area"),
    [
        ([0, 10, 20], [0.0, 1.0, 1.0], 0.75),
        ([1, 2, 10], [2, 2, 2], 2),
        ([0, 1, 4], [0, 1, 4], 2),
        ([-1, 3], [1, 0], 0.5),
    ],
)
def test_area_under_curve_is_the_mean_height(x, y, area):
    assert_near(area_under_curve(x, y), area)
    assert_near(area_under_curve(np.array(x) * 1000, y), area)


@pytest.mark.parametrize("x", [[0, 2, 1], [0, 0, 1], [2, 1, 3], [0, 1, 1]])
def test_a_curve_needs_x_that_increases_at_every_point(x):
    with pytest.raises(ValueError, match="x increasing"):
        area_under_curve(x, [0.5, 0.5, 0.5])


# ---- arrays that simply work ---------------------------------------------------------


def strided(array, _):
    return np.repeat(array, 2, axis=-1)[..., ::2]


def reversed_rows(array, _):
    return array[::-1].copy()[::-1]


def read_only(array, _):
    array = array.copy()
    array.flags.writeable = False
    return array


def fortran(array, _):
    return np.asfortranarray(array)


def memory_map(array, folder):
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("kind", ["integers", "many"])
@pytest.mark.parametrize("form", [strided, reversed_rows, read_only, fortran, memory_map])
def test_any_memory_layout_works(tmp_path, form, kind):
    case = make_case(65, kind)
    other = Case(*(form(array, tmp_path) for array in case[:4]), 65)
    assert_same(hamming_histogram(*other), hamming_histogram(*case))
    assert stable_map(other) == stable_map(case)
    for a, b in zip(nearest(*other[:2], 5), nearest(*case[:2], 5), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.uint64, ">i4", list])
@pytest.mark.parametrize("shape", [(30,), (30, 70)], ids=["ids", "sets"])
def test_any_form_of_integer_labels_works(shape, dtype):
    codes, labels = make_case().db_codes, np.random.default_rng(0).integers(0, 2, shape)
    other = labels.tolist() if dtype is list else labels.astype(dtype)
    expected = hamming_histogram(codes, codes, labels, labels, 12)
    assert_same(hamming_histogram(codes, codes, other, labels, 12), expected)
    assert_same(hamming_histogram(codes, codes, labels, other, 12), expected)


def test_strings_of_any_length_and_as_objects_work():
    case = make_case(kind="strings")
    short = case._replace(
        query_labels=case.query_labels[:2].astype("U9"),
        query_codes=case.query_codes[:2],
    )
    objects = short._replace(
        query_labels=short.query_labels.astype(object),
        db_labels=case.db_labels.tolist(),
    )
    h = hamming_histogram(*case)
    for other in (
        short,
        objects,
    ):  # objects are what a pandas column of strings becomes
        assert_same(hamming_histogram(*other), HammingHistogram(h.items[:2], h.relevant[:2]))


@pytest.mark.parametrize("query_type", [np.int64, np.uint64])
@pytest.mark.parametrize("db_type", [np.int64, np.uint64])
def test_huge_labels_are_compared_exactly(query_type, db_type):
    # Hashes and database keys: neighbours above 2**53 are one number in float64.
    codes = np.zeros((4, 1), np.uint8)
    labels = np.arange(4) + 2**60
    h = hamming_histogram(codes, codes, labels.astype(query_type), labels.astype(db_type))
    assert h.relevant[:, 0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("label", [2**63, 2**64 - 1])
def test_labels_that_int64_cannot_hold_are_an_error(label):
    codes = np.zeros((2, 1), np.uint8)
    large = np.array([1, label], np.uint64)
    small = np.array([1, 2**63 - 1], np.uint64)
    assert hamming_histogram(codes, codes, small, small).relevant.sum() == 2
    for labels in [(large, small), (small, large)]:
        with pytest.raises(ValueError, match=rf"_labels contains {label}; .*2\*\*63"):
            hamming_histogram(codes, codes, *labels)


def test_input_is_left_as_it_was():
    case = make_case(12, "many")
    before = [array.copy() for array in case[:4]]
    hamming_histogram(*case)
    stable_map(case)
    nearest(*case[:2], 3)
    for a, b in zip(case[:4], before, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- awkward input -------------------------------------------------------------------

CODES = np.array([[0], [1], [3], [7]], np.uint8)
LABELS = [0, 1, 0, 1]
SETS = np.eye(4, dtype=int)


def histogram(query_codes=CODES, db_codes=CODES, query_labels=LABELS, db_labels=LABELS, **options):
    return hamming_histogram(query_codes, db_codes, query_labels, db_labels, **options)


def one_line(query_labels=LABELS, **options):
    return mean_average_precision(CODES, CODES, query_labels, LABELS, **options)


# what is wrong: (call, error, what the message names: the value, and the need or the way out)
ERRORS = {
    "float codes": (
        lambda: histogram(CODES / 2),
        TypeError,
        "query_codes",
        "float64",
        "uint8",
        "pack(codes)",
    ),
    "bool codes": (
        lambda: histogram(db_codes=CODES > 0),
        TypeError,
        "db_codes",
        "bool",
        "uint8",
        "pack(codes)",
    ),
    "codes as a list": (
        lambda: histogram(CODES.tolist()),
        TypeError,
        "int64",
        "uint8",
        "codes.astype(np.uint8)",
    ),
    "signs": (
        lambda: histogram(np.where(CODES > 1, 1, -1)),
        TypeError,
        "int64",
        "pack(codes)",
    ),
    "an empty list": (
        lambda: histogram([]),
        ValueError,
        "query_codes",
        "empty",
        "(0,)",
        "row",
    ),
    "1-D codes": (
        lambda: histogram(CODES[:, 0]),
        ValueError,
        "query_codes",
        "(4,)",
        "row",
    ),
    "3-D codes": (
        lambda: nearest(CODES[None], CODES, 1),
        ValueError,
        "query_codes",
        "(1, 4, 1)",
        "row",
    ),
    "no codes": (
        lambda: histogram(db_codes=CODES[:0], db_labels=[]),
        ValueError,
        "db_codes",
        "(0, 1)",
        "row",
    ),
    "codes of no bytes": (
        lambda: histogram(CODES[:, :0]),
        ValueError,
        "query_codes",
        "(4, 0)",
        "byte",
    ),
    "two widths": (
        lambda: histogram(db_codes=CODES.repeat(3, 1)),
        ValueError,
        "1 bytes",
        "3",
        "encode both",
    ),
    "n_bits too large": (lambda: histogram(n_bits=9), ValueError, "n_bits=9", "1 to 8"),
    "n_bits too small": (
        lambda: histogram(CODES.repeat(2, 1), CODES.repeat(2, 1), n_bits=8),
        ValueError,
        "9 to 16",
    ),
    "n_bits zero": (lambda: histogram(n_bits=0), ValueError, "n_bits=0", "at least 1"),
    "n_bits a float": (lambda: histogram(n_bits=8.0), TypeError, "n_bits=8.0", "int"),
    "n_bits a bool": (lambda: histogram(n_bits=True), TypeError, "n_bits=True", "int"),
    "padding bits": (
        lambda: histogram(CODES, CODES, n_bits=2),
        ValueError,
        "query_codes",
        "3",
        "n_bits=2",
        "pack(codes)",
    ),
    "padding bits in the database": (
        lambda: histogram(CODES[:1], CODES, [0], n_bits=1),
        ValueError,
        "db_codes",
        "2",
    ),
    "n_threads zero": (
        lambda: histogram(n_threads=0),
        ValueError,
        "n_threads=0",
        "at least 1",
    ),
    "too few labels": (
        lambda: histogram(query_labels=[0, 1]),
        ValueError,
        "query_labels",
        "(2,)",
        "4 codes",
    ),
    "too many labels": (
        lambda: histogram(db_labels=[0] * 5),
        ValueError,
        "db_labels",
        "(5,)",
        "4 codes",
    ),
    "one label": (
        lambda: histogram(query_labels=1),
        ValueError,
        "query_labels",
        "()",
        "4 codes",
    ),
    "an empty list of labels": (
        lambda: histogram(query_labels=[]),
        ValueError,
        "query_labels",
        "(0,)",
        "4 codes",
    ),
    "labels of no columns": (
        lambda: histogram(db_labels=SETS[:, :0]),
        ValueError,
        "db_labels",
        "(4, 0)",
        "4 codes",
    ),
    "no labels": (lambda: histogram(query_labels=None), TypeError, "query_labels"),
    "no labels for the database": (
        lambda: histogram(db_labels=None),
        TypeError,
        "db_labels",
    ),
    "float labels": (
        lambda: histogram(query_labels=[0.5, 1, 0, 1]),
        TypeError,
        "query_labels",
        "float64",
        "whole numbers",
    ),
    "float labels with NaN": (
        lambda: histogram(db_labels=[0, 1, np.nan, 1]),
        TypeError,
        "db_labels",
        "float64",
        "whole numbers",
    ),
    "infinite labels": (
        lambda: histogram(db_labels=[0, 1, np.inf, 1]),
        TypeError,
        "db_labels",
        "float64",
        "whole numbers",
    ),
    "float labels beyond 2**53": (
        lambda: histogram(db_labels=[0, 1, 2.0**54, 1]),
        TypeError,
        "db_labels",
        "float64",
        "whole numbers",
    ),
    "a half in a matrix": (
        lambda: histogram(CODES, CODES, SETS, SETS / 2),
        ValueError,
        "db_labels[0, 0]",
        "0.5",
        "> 0",
    ),
    "objects": (
        lambda: histogram(query_labels=[0, None, 0, 1]),
        TypeError,
        "query_labels",
        "object",
        "integers",
    ),
    "a column of labels": (
        lambda: histogram(query_labels=[[0], [1], [0], [1]]),
        ValueError,
        "(4, 1)",
        "ravel()",
    ),
    "a matrix of strings": (
        lambda: histogram(query_labels=SETS.astype(str)),
        TypeError,
        "<U21",
        "(4, 4)",
        "0 and 1",
    ),
    "lists of labels": (
        lambda: histogram(query_labels=[[0, 1], [0]] * 2),
        ValueError,
        "inhomogeneous",
        "0 and 1",
    ),
    "a 2 in a matrix": (
        lambda: histogram(CODES, CODES, SETS, 2 * SETS),
        ValueError,
        "db_labels[0, 0]",
        "2",
        "> 0",
    ),
    "a -1 in a matrix": (
        lambda: histogram(CODES, CODES, -SETS, SETS),
        ValueError,
        "query_labels[0, 0]",
        "-1",
        "> 0",
    ),
    "ids against sets": (
        lambda: histogram(db_labels=SETS),
        ValueError,
        "4, 4",
        "same form",
    ),
    "sets of other width": (
        lambda: histogram(CODES, CODES, SETS, SETS[:, :3]),
        ValueError,
        "4, 4",
        "4, 3",
        "same form",
    ),
    "strings against integers": (
        lambda: histogram(query_labels=list("abab")),
        ValueError,
        "<U1",
        "int64",
        "same form",
    ),
    "k zero": (lambda: histogram().precision_at_k(0), ValueError, "k=0", "at least 1"),
    "k a float": (lambda: histogram().precision_at_k([1.5]), TypeError, "k=1.5", "int"),
    "k a float among others": (
        lambda: histogram().precision_at_k([1, 2.5]),
        TypeError,
        "k=2.5",
        "int",
    ),
    "k too large": (
        lambda: histogram().precision_at_k([1, 5]),
        ValueError,
        "k=5",
        "4 items",
        "smaller",
    ),
    "no k": (lambda: histogram().precision_at_k([]), ValueError, "k="),
    "nearest k zero": (
        lambda: nearest(CODES, CODES, 0),
        ValueError,
        "k=0",
        "at least 1",
    ),
    "nearest k too large": (
        lambda: nearest(CODES, CODES, 5),
        ValueError,
        "k=5",
        "4 items",
        "smaller",
    ),
    "radius negative": (
        lambda: histogram().precision_at_radius(-1),
        ValueError,
        "radius=-1",
        "at least 0",
    ),
    "top zero": (
        lambda: histogram().mean_average_precision(top=0),
        ValueError,
        "top=0",
        "at least 1",
    ),
    "stable top zero": (
        lambda: one_line(top=0, ties="stable"),
        ValueError,
        "top=0",
        "at least 1",
    ),
    "top a float": (
        lambda: histogram().mean_average_precision(top=2.0),
        TypeError,
        "top=2.0",
        "int",
    ),
    "normalize": (
        lambda: histogram().mean_average_precision(normalize="max"),
        ValueError,
        "'max'",
        '"min"',
    ),
    "stable normalize": (
        lambda: one_line(normalize="max", ties="stable"),
        ValueError,
        "'max'",
        '"min"',
    ),
    "ties": (lambda: one_line(ties="random"), ValueError, "'random'", '"stable"'),
    "all queries empty": (lambda: one_line([5] * 4), ValueError, "4 queries", "labels"),
    "all queries empty, stable": (
        lambda: one_line([5] * 4, ties="stable"),
        ValueError,
        "4 queries",
        "labels",
    ),
    "no curve": (
        lambda: histogram(query_labels=[5] * 4).precision_recall(),
        ValueError,
        "4 queries",
        "labels",
    ),
    "no hit in the top": (
        lambda: one_line(LABELS[::-1], top=1, normalize="retrieved"),
        ValueError,
        "first 1 rank",
    ),
    "other queries": (
        lambda: histogram() + histogram(CODES[:1], query_labels=[0]),
        ValueError,
        "n_queries=1",
        "same",
    ),
    "other lengths": (
        lambda: histogram() + histogram(n_bits=3),
        ValueError,
        "n_bits=3",
        "same",
    ),
    "not a self-histogram": (
        lambda: histogram(db_codes=CODES + 8).without_self(),
        ValueError,
        "query 0",
        "database",
    ),
    "own item of another label": (
        lambda: histogram(query_labels=LABELS[::-1]).without_self(),
        ValueError,
        "query 0",
    ),
    "curve of one point": (
        lambda: area_under_curve([1], [1]),
        ValueError,
        "(1,)",
        "two or more",
    ),
    "curve of two lengths": (
        lambda: area_under_curve([1, 2], [1, 2, 3]),
        ValueError,
        "(2,)",
        "(3,)",
    ),
    "x not increasing": (
        lambda: area_under_curve([1, 1], [1, 2]),
        ValueError,
        "[1. 1.]",
        "increasing",
    ),
    "y not finite": (
        lambda: area_under_curve([0, 1], [np.nan, 2]),
        ValueError,
        "[nan  2.]",
        "finite",
    ),
    "other shapes": (
        lambda: HammingHistogram(np.ones((2, 3)), np.ones((2, 2))),
        ValueError,
        "(2, 3)",
        "(2, 2)",
    ),
    "too many relevant": (
        lambda: HammingHistogram(np.eye(2), np.ones((2, 2))),
        ValueError,
        "query 0",
        "distance 1",
    ),
    "relevant below zero": (
        lambda: HammingHistogram(np.eye(2), -np.eye(2)),
        ValueError,
        "-1.0 of 1.0",
        "from 0",
    ),
}


@pytest.mark.parametrize(
    ("call", "error", "parts"), [(c, e, p) for c, e, *p in ERRORS.values()], ids=ERRORS
)
def test_errors_name_the_value_the_need_and_the_way_out(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    message = str(caught.value)
    assert all(part in message for part in parts), message
    assert any(verb in message for verb in ("pass", "check", "encode")), (
        message
    )  # the way out is something to do


def test_errors_count_rows_from_the_start_of_the_database(monkeypatch):
    monkeypatch.setattr(metrics, "BLOCK_WORDS", 2)
    codes = np.zeros((9, 1), np.uint8)
    codes[7] = 8
    with pytest.raises(ValueError, match=r"db_codes\D*7"):
        histogram(codes[:1], codes, [0], [0] * 9, n_bits=3)
    sets = np.zeros((9, 2), int)
    sets[5, 1] = 3
    with pytest.raises(ValueError, match=r"db_labels\D*5, 1\D*3"):
        histogram(codes[:1], codes, sets[:1], sets)


def test_a_histogram_adds_to_histograms_only():
    for other in (1, None, np.zeros(3)):
        with pytest.raises(TypeError):
            histogram() + other
    with pytest.raises(TypeError):
        1 + histogram()


# ---- threads and processes -----------------------------------------------------------


def large_case(kind="integers"):
    """Enough pairs for more than one thread, few enough for plain Python."""
    return make_case(64, kind, n_queries=50, n_items=4200)


@pytest.mark.parametrize("kind", ["integers", "sets"])
def test_number_of_threads_does_not_matter(kind):
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


def test_several_python_threads_agree():
    case = large_case()
    alone = hamming_histogram(*case, n_threads=1)
    with ThreadPoolExecutor(4) as pool:
        for h in pool.map(lambda _: hamming_histogram(*case, n_threads=2), range(4)):
            assert_same(h, alone)


def test_joblib_workers_agree():
    case = large_case()
    odd = np.arange(len(case.db_codes)) % 2 == 1
    shards = [
        case._replace(db_codes=case.db_codes[own], db_labels=case.db_labels[own])
        for own in (odd, ~odd)
    ]
    with joblib.parallel_config("loky"):
        parts = joblib.Parallel(n_jobs=2)(
            joblib.delayed(hamming_histogram)(*shard) for shard in shards
        )
    joblib.externals.loky.get_reusable_executor().shutdown()
    assert_same(sum(parts), hamming_histogram(*case))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="no fork on this system",
)
@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # Python 3.12 on, in a process that has threads
def test_works_after_a_fork():
    case = large_case()
    parent = hamming_histogram(*case, n_threads=2)  # threads have run before the fork
    with multiprocessing.get_context("fork").Pool(1) as pool:
        child = pool.apply_async(hamming_histogram, case, {"n_threads": 2}).get(
            timeout=60
        )  # hangs no longer
    assert_same(child, parent)
