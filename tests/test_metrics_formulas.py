"""Every metric of a histogram against its definition, over all orders of tied items."""

from itertools import product

import naive
import numpy as np
import pytest

from metrics import (
    HammingHistogram,
    compare,
    graded_histogram,
    hamming_histogram,
    mean_average_precision,
    pack,
)

N_BITS = 6
# Distances of items to a query: every kind of tie, at most 7 items for the enumeration.
TIES = {
    "none": [3, 0, 5, 1, 4, 2],
    "all": [2] * 6,
    "some": [1, 3, 1, 3, 0, 3, 1],
    "late": [0, 5, 1, 5, 5, 5],
    "one item": [4],
}
GAINS = ["binary", "linear", "exponential"]
all_ties = pytest.mark.parametrize("distances", TIES.values(), ids=TIES)


def assert_near(found, expected):
    """None is NaN."""
    expected = np.array(expected, float)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def make_histogram(distances, patterns):
    """Return the histogram of one query for each pattern of relevances, or of grades."""
    patterns = np.array(patterns)
    items = np.zeros((len(patterns), N_BITS + 1), np.int64)
    grades = np.zeros((patterns.max() + 1, *items.shape), np.int64)
    for j, d in enumerate(distances):
        items[:, d] += 1
        grades[patterns[:, j], np.arange(len(patterns)), d] += 1
    return HammingHistogram(items, grades[1:].sum(axis=0), grades)


def all_relevances(distances):
    """Return every way to be relevant, the empty one included."""
    return list(product([0, 1], repeat=len(distances)))


def some_grades(distances):
    """Return ways to have grades 0 to 3: random ones, none, and one item of the highest grade."""
    rng = np.random.default_rng(len(distances))
    n_items = len(distances)
    last = [0] * (n_items - 1) + [3]
    return [*rng.integers(0, 4, (25, n_items)).tolist(), [0] * n_items, last]


def check(method, expected, options=None):
    """Check the values of all queries, both means, and that NaN is what is left out."""
    options = options or {}
    assert_near(method(per_query=True, **options), expected)
    kept = [value for value in expected if value is not None]
    if kept:
        assert_near(method(**options), float(sum(kept)) / len(kept))
    if len(kept) < len(expected):
        zero = float(sum(kept)) / len(expected)
        assert_near(method(empty="zero", **options), zero)


@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize(
    "name, options",
    [
        ("mean_average_precision", {}),
        ("recall_at_k", {"k": 1}),
        ("r_precision", {}),
        ("ndcg_at_k", {"k": 1}),
        ("reciprocal_rank", {}),
        ("recall_at_radius", {"radius": 1}),
        ("f1_at_radius", {"radius": 1}),
    ],
)
def test_queries_without_a_relevant_item_are_skipped_or_zero_and_nothing_else(
    name, options, per_query
):
    method = getattr(make_histogram([0, 1], [[1, 0], [0, 0]]), name)
    skipped = method(empty="skip", per_query=True, **options)
    counted = method(empty="zero", per_query=True, **options)
    assert np.isnan(skipped).tolist() == [False, True]
    assert counted.tolist() == [skipped[0], 0]
    with pytest.raises(ValueError, match=r'empty=\'none\' .*pass "skip" or "zero"'):
        method(empty="none", per_query=per_query, **options)


@all_ties
def test_ranks(distances):
    patterns = all_relevances(distances)
    h = make_histogram(distances, patterns)

    def exact(score, *options):
        rows = [naive.expected(score, distances, hits, *options) for hits in patterns]
        return rows

    check(h.r_precision, exact(naive.r_precision))
    check(h.reciprocal_rank, exact(naive.reciprocal_rank))
    for k in range(1, len(distances) + 1):
        check(h.recall_at_k, exact(naive.recall_at_k, k), {"k": k})
        check(h.ndcg_at_k, exact(naive.ndcg_at_k, k, "binary"), {"k": k})


@all_ties
def test_radii(distances):
    patterns = all_relevances(distances)
    h = make_histogram(distances, patterns)
    for radius in range(N_BITS + 3):

        def exact(score):
            return [score(distances, hits, radius) for hits in patterns]

        options = {"radius": radius}
        check(h.f1_at_radius, exact(naive.f1_at_radius), options)
        check(h.success_rate, exact(naive.success), options)
        check(h.precision_at_radius, exact(naive.precision_at_radius), options)

        def recall(*query):
            return naive.recall_at_radius(*query) if any(query[1]) else None

        check(h.recall_at_radius, exact(recall), options)


@all_ties
def test_mutual_information(distances):
    patterns = all_relevances(distances)
    h = make_histogram(distances, patterns)
    expected = [naive.mutual_information(distances, hits) for hits in patterns]
    check(h.mutual_information, expected)


def test_mutual_information_of_a_perfect_code_is_the_entropy_of_relevance():
    h = HammingHistogram(np.array([[5, 0, 15]]), np.array([[5, 0, 0]]))
    assert_near(h.mutual_information(), -0.25 * np.log2(0.25) - 0.75 * np.log2(0.75))
    h = HammingHistogram(np.array([[4, 0, 16]]), np.array([[1, 0, 4]]))
    assert_near(h.mutual_information(), 0)


@all_ties
def test_precision_and_recall_by_rank(distances):
    patterns = all_relevances(distances)
    h = make_histogram(distances, patterns)
    ks = list(range(1, len(distances) + 1))
    kept = [hits for hits in patterns if any(hits)]
    for k, *found in zip(ks, *h.precision_recall(ks), strict=True):
        precision = [naive.expected_precision_at_k(distances, hits, k) for hits in kept]
        recall = [naive.expected(naive.recall_at_k, distances, hits, k) for hits in kept]
        assert_near(found, [sum(precision) / len(kept), sum(recall) / len(kept)])
    precision, recall = h.precision_recall(ks, per_query=True)
    is_empty = ~np.array(patterns).any(axis=1)
    assert precision.shape == recall.shape == (len(patterns), len(ks))
    assert np.isnan(precision[is_empty]).all() and np.isnan(recall[is_empty]).all()
    assert_near(precision[~is_empty].mean(axis=0), h.precision_recall(ks)[0])
    precision, _ = h.precision_recall(per_query=True)
    assert precision.shape == (len(patterns), N_BITS + 1)


def test_a_list_of_k_gives_a_column_each():
    distances = TIES["some"]
    h = make_histogram(distances, all_relevances(distances))
    rows = h.recall_at_k([1, 4], per_query=True)
    assert_near(rows[:, 1], h.recall_at_k(4, per_query=True))
    assert_near(h.recall_at_k([1, 4]), [h.recall_at_k(1), h.recall_at_k(4)])
    zeros = [h.recall_at_k(k, empty="zero") for k in (1, 4)]
    assert_near(h.recall_at_k([1, 4], empty="zero"), zeros)
    assert_near(h.acg_at_k([1, 4]), [h.acg_at_k(1), h.acg_at_k(4)])


def test_the_first_hit_of_a_huge_tie():
    # 1 / rank of the first of 3 hits among a million tied items: H_n / n times about 3.
    n = 1_000_000
    h = HammingHistogram(np.array([[10, n]]), np.array([[0, 3]]))
    j = np.arange(n - 2)
    # C(n - 1 - j, 2) / C(n, 3) is the chance that the first hit is at place j + 1.
    chance = 3.0 * (n - 1 - j) / n * ((n - 2 - j) / (n - 1)) / (n - 2)
    assert chance.sum() == pytest.approx(1)
    assert h.reciprocal_rank() == pytest.approx(np.sum(chance / (11 + j)), rel=1e-9)


# ---- grades ----------------------------------------------------------------------------


@all_ties
def test_grades(distances):
    patterns = some_grades(distances)
    h = make_histogram(distances, patterns)

    def exact(score, *options):
        return [naive.expected(score, distances, row, *options) for row in patterns]

    for k in range(1, len(distances) + 1):
        check(h.acg_at_k, exact(naive.acg_at_k, k), {"k": k})
        for gain in GAINS:
            expected = exact(naive.ndcg_at_k, k, gain)
            check(h.ndcg_at_k, expected, {"k": k, "gain": gain})
    for normalize in ("relevant", "min", "retrieved"):
        for top in (None, *range(1, len(distances) + 2)):
            expected = exact(naive.weighted_average_precision, normalize, top)
            options = {"top": top, "normalize": normalize, "weighted": True}
            check(h.mean_average_precision, expected, options)


@all_ties
def test_grades_of_0_and_1_are_relevance(distances):
    h = make_histogram(distances, all_relevances(distances))
    for normalize in ("relevant", "min", "retrieved"):
        found = h.mean_average_precision(3, normalize, per_query=True, weighted=True)
        assert_near(found, h.mean_average_precision(3, normalize, per_query=True))
    k = len(distances)
    for gain in GAINS:
        assert_near(h.ndcg_at_k(k, gain), h.ndcg_at_k(k))
    assert_near(h.acg_at_k(k), h.precision_at_k(k))


@pytest.mark.parametrize("n_labels", [3, 70])
@pytest.mark.parametrize("n_bits", [1, 12, 65])
def test_graded_histogram_counts_the_labels_shared(n_bits, n_labels):
    rng = np.random.default_rng(n_labels)
    codes = [pack(rng.random((n, n_bits)) < 0.5) for n in (5, 40)]
    labels = [rng.random((n, n_labels)) < 8 / n_labels**1.2 for n in (5, 40)]
    labels[0][2] = False
    h = graded_histogram(*codes, *labels, n_bits=n_bits)
    binary = hamming_histogram(*codes, *labels, n_bits=n_bits)
    np.testing.assert_array_equal(h.items, binary.items)
    np.testing.assert_array_equal(h.relevant, binary.relevant)
    assert len(h.grades) == labels[0].sum(axis=1).max() + 1
    for q in range(5):
        distances = naive.hamming(codes[0][q], codes[1])
        shared = (labels[0][q] & labels[1]).sum(axis=1)
        for g in range(len(h.grades)):
            own = [d for d, n in zip(distances, shared, strict=True) if n == g]
            assert h.grades[g, q].tolist() == naive.histogram(own, n_bits)


def test_shards_with_grades_add_up():
    rng = np.random.default_rng(0)
    codes = [pack(rng.random((n, 9)) < 0.5) for n in (4, 30)]
    labels = [rng.random((n, 5)) < 0.4 for n in (4, 30)]
    whole = graded_histogram(*codes, *labels, n_bits=9)
    shards = []
    for rows in (slice(11), slice(11, None)):
        database = (codes[1][rows], labels[0], labels[1][rows])
        shards.append(graded_histogram(codes[0], *database, n_bits=9))
    np.testing.assert_array_equal(sum(shards).grades, whole.grades)
    assert sum(shards).ndcg_at_k(9, "linear") == whole.ndcg_at_k(9, "linear")
    with pytest.raises(ValueError, match="cannot add"):
        shards[0] + HammingHistogram(shards[1].items, shards[1].relevant)


def test_metrics_of_grades_say_what_they_need():
    h = HammingHistogram(np.array([[2, 2]]), np.array([[1, 0]]))
    for call in (
        lambda: h.acg_at_k(1),
        lambda: h.ndcg_at_k(1, "linear"),
        lambda: h.mean_average_precision(weighted=True),
    ):
        with pytest.raises(ValueError, match=r"no grades; pass graded_histogram"):
            call()
    codes = np.zeros((2, 1), np.uint8)
    with pytest.raises(ValueError, match=r"one label.*pass matrices of 0 and 1"):
        graded_histogram(codes, codes, [0, 1], [0, 1])


# ---- uncertainty -----------------------------------------------------------------------


def random_histogram(seed, n_queries=200, shift=0.0):
    """Return queries with 40 items, relevant ones nearer; some queries have none."""
    rng = np.random.default_rng(seed)
    items = np.zeros((n_queries, 9), np.int64)
    relevant = np.zeros((n_queries, 9), np.int64)
    for q in range(n_queries):
        near = rng.binomial(8, 0.35 - shift, rng.integers(0, 12))
        far = rng.binomial(8, 0.5, 40 - len(near))
        relevant[q] = np.bincount(near, minlength=9)
        items[q] = relevant[q] + np.bincount(far, minlength=9)
    return HammingHistogram(items, relevant)


def test_an_interval_is_that_of_the_mean_over_queries():
    h = random_histogram(0)
    found = h.interval("mean_average_precision", top=10)
    ap = h.mean_average_precision(10, per_query=True)
    kept = ap[~np.isnan(ap)]
    assert found.n_queries == len(kept) < 200
    assert found.value == pytest.approx(h.mean_average_precision(10))
    # The bootstrap of a mean is near the normal interval.
    error = kept.std() / np.sqrt(len(kept))
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=error / 4)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=error / 4)
    assert h.interval("mean_average_precision", top=10) == found
    other = h.interval("mean_average_precision", random_state=1, top=10)
    assert other.value == found.value and other != found


def test_intervals_contain_the_truth_about_as_often_as_they_say():
    # The mean over many queries stands for the truth.
    truth = random_histogram(1, n_queries=20_000).r_precision()
    n_inside = 0
    for seed in range(100, 160):
        found = random_histogram(seed, n_queries=60).interval("r_precision")
        n_inside += found.low <= truth <= found.high
    assert 50 <= n_inside <= 60


def test_a_paired_comparison_is_narrower_than_two_intervals():
    a = random_histogram(0)
    # The same queries, a little worse: one hit of each moves to the end.
    relevant, items = a.relevant.copy(), a.items.copy()
    first = np.argmax(relevant > 0, axis=1)
    rows = np.flatnonzero(relevant.any(axis=1))
    for array in (relevant, items):
        array[rows, first[rows]] -= 1
        array[rows, 8] += 1
    b = HammingHistogram(items, relevant)
    difference = compare(a, b)
    apart = a.interval("mean_average_precision")
    assert difference.low > 0
    assert difference.high - difference.low < apart.high - apart.low
    expected = a.mean_average_precision() - b.mean_average_precision()
    assert difference.value == pytest.approx(expected)
    assert difference.n_queries == apart.n_queries
    backwards = compare(b, a)
    assert backwards.value == pytest.approx(-difference.value)
    assert backwards.high < 0
    assert compare(a, a) == (0, 0, 0, apart.n_queries)


def test_errors_of_intervals():
    h = random_histogram(0)
    for call in (
        lambda: h.interval("mAP"),
        lambda: h.interval("n_bits"),
        lambda: h.interval("precision_at_k", k=[1, 2]),
        lambda: h.interval("precision_recall"),
    ):
        with pytest.raises(ValueError, match="no metric; pass the name"):
            call()
    with pytest.raises(ValueError, match="same queries"):
        compare(h, random_histogram(1, n_queries=3))
    empty = HammingHistogram(h.items, 0 * h.relevant)
    with pytest.raises(ValueError, match="relevant item"):
        empty.interval("r_precision")


# ---- metamorphic -----------------------------------------------------------------------

METRICS = {
    "mean_average_precision": {},
    "mean_average_precision at 7": {"top": 7, "normalize": "min"},
    "mean_average_precision retrieved": {"top": 7, "normalize": "retrieved"},
    "mean_average_precision weighted": {"top": 7, "weighted": True},
    "precision_at_k": {"k": [1, 7]},
    "recall_at_k": {"k": [1, 7]},
    "r_precision": {},
    "acg_at_k": {"k": 7},
    "ndcg_at_k": {"k": 7},
    "ndcg_at_k of grades": {"k": 7, "gain": "exponential"},
    "reciprocal_rank": {},
    "precision_at_radius": {"radius": 2},
    "recall_at_radius": {"radius": 2},
    "f1_at_radius": {"radius": 2},
    "success_rate": {"radius": 2},
    "mutual_information": {},
}


def all_metrics(histogram):
    """Return every metric of every query."""
    values = {}
    for name, options in METRICS.items():
        method = getattr(histogram, name.split()[0])
        values[name] = method(per_query=True, **options)
    return values


def assert_all_same(a, b):
    a, b = all_metrics(a), all_metrics(b)
    for name in METRICS:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-12, err_msg=name)


def some_bits(seed, n_bits=12):
    rng = np.random.default_rng(seed)
    bits = [rng.integers(0, 2, (n, 1)) ^ (rng.random((n, n_bits)) < 0.2) for n in (6, 40)]
    labels = [rng.random((n, 4)) < 0.3 for n in (6, 40)]
    return rng, bits, labels


def from_bits(bits, labels):
    n_bits = bits[0].shape[1]
    return graded_histogram(*map(pack, bits), *labels, n_bits=n_bits)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "change", ["mask", "order of bits", "order of items", "shards", "order of labels"]
)
def test_what_changes_no_distance_and_no_relevance_changes_no_metric(seed, change):
    rng, bits, labels = some_bits(seed)
    before = from_bits(bits, labels)
    if change == "mask":
        mask = rng.integers(0, 2, 12)
        bits = [codes ^ mask for codes in bits]
    if change == "order of bits":
        order = rng.permutation(12)
        bits = [codes[:, order] for codes in bits]
    if change == "order of items":
        order = rng.permutation(40)
        bits, labels = [bits[0], bits[1][order]], [labels[0], labels[1][order]]
    if change == "order of labels":
        order = rng.permutation(4)
        labels = [rows[:, order] for rows in labels]
    if change == "shards":
        shard = rng.integers(0, 3, 40)
        parts = [(bits[1][shard == k], labels[1][shard == k]) for k in range(3)]
        after = sum(from_bits([bits[0], b], [labels[0], y]) for b, y in parts)
    else:
        after = from_bits(bits, labels)
    assert_all_same(before, after)


@pytest.mark.parametrize("seed", range(5))
def test_a_bit_that_is_the_same_in_all_codes_changes_no_metric(seed):
    _, bits, labels = some_bits(seed)
    longer = [np.hstack([codes, np.ones((len(codes), 1), int)]) for codes in bits]
    assert_all_same(from_bits(bits, labels), from_bits(longer, labels))


@pytest.mark.parametrize("seed", range(5))
def test_a_code_written_twice_keeps_ranks_and_doubles_radii(seed):
    _, bits, labels = some_bits(seed)
    once = from_bits(bits, labels)
    twice = from_bits([np.hstack([codes, codes]) for codes in bits], labels)
    a, b = all_metrics(once), all_metrics(twice)
    for name, options in METRICS.items():
        if "radius" in options:
            method = getattr(twice, name)
            assert_near(method(2 * options["radius"], per_query=True), a[name])
        else:
            assert_near(b[name], a[name])


@pytest.mark.parametrize("seed", range(5))
def test_a_database_written_twice(seed):
    _, bits, labels = some_bits(seed)
    once = from_bits(bits, labels)
    twice = once + once
    both = [bits[0], np.vstack([bits[1]] * 2)], [labels[0], np.vstack([labels[1]] * 2)]
    assert_all_same(from_bits(*both), twice)
    # Shares within a radius, shares at k and 2k, and information stay.
    for name in ("precision_at_radius", "recall_at_radius", "success_rate"):
        assert_near(getattr(twice, name)(3), getattr(once, name)(3))
    assert_near(twice.f1_at_radius(3), once.f1_at_radius(3))
    assert_near(twice.mutual_information(), once.mutual_information())
    assert_near(twice.r_precision(), once.r_precision())
    for name in ("precision_at_k", "recall_at_k", "acg_at_k"):
        assert_near(getattr(twice, name)([2, 14]), getattr(once, name)([1, 7]))


@pytest.mark.parametrize("seed", range(5))
def test_names_of_classes_and_their_one_hot_rows_are_the_same(seed):
    rng, bits, _ = some_bits(seed)
    labels = [rng.integers(0, 4, len(codes)) for codes in bits]
    codes = [pack(rows) for rows in bits]
    ids = hamming_histogram(*codes, *labels, n_bits=12)
    one_hot = graded_histogram(*codes, *(np.eye(4)[y] for y in labels), n_bits=12)
    ids = HammingHistogram(ids.items, ids.relevant, one_hot.grades)
    assert_all_same(ids, one_hot)
    names = rng.permutation(["ant", "bee", "cat", "dog"])
    renamed = hamming_histogram(*codes, *(names[y] for y in labels), n_bits=12)
    np.testing.assert_array_equal(renamed.relevant, ids.relevant)
    floats = hamming_histogram(*codes, *(y.astype(float) for y in labels), n_bits=12)
    np.testing.assert_array_equal(floats.relevant, ids.relevant)


@pytest.mark.parametrize("ties", ["stable", "argsort"])
def test_order_of_the_database_matters_only_with_ties_in_its_order(ties):
    rng, bits, labels = some_bits(0)
    codes = [pack(rows) for rows in bits]
    expected, given = set(), set()
    for _ in range(20):
        order = rng.permutation(40)
        data = (codes[0], codes[1][order], labels[0], labels[1][order])
        expected.add(round(mean_average_precision(*data, n_bits=12), 12))
        given.add(mean_average_precision(*data, ties=ties, n_bits=12))
    assert len(expected) == 1
    assert len(given) > 10
    # Their mean is near the expectation.
    assert np.mean(list(given)) == pytest.approx(expected.pop(), abs=0.02)
