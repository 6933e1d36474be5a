"""study/scores.py: areas, intervals over queries, and what describe tells of codes."""

import math

import numpy as np
import pytest
from published_evaluators import compare, describe, interval

from metrics import HammingHistogram, pack
from study.scores import area_under_curve


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
    assert area_under_curve(x, y) == pytest.approx(area)
    assert area_under_curve(np.array(x) * 1000, y) == pytest.approx(area)


@pytest.mark.parametrize("x", [[0, 2, 1], [0, 0, 1], [0, 1, 1], [0, 1], [0, np.nan, 1]])
def test_a_curve_needs_x_that_increases_at_every_point(x):
    with pytest.raises(ValueError, match="pass two or more points with increasing x"):
        area_under_curve(x, [0.5, 0.5, 0.5])


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
    found = interval(h, top=10)
    ap = h.mean_average_precision(10, per_query=True)
    kept = ap[~np.isnan(ap)]
    assert found.n_queries == len(kept) < 200
    assert found.value == pytest.approx(h.mean_average_precision(10))
    # The bootstrap of a mean is near the normal interval.
    error = kept.std() / np.sqrt(len(kept))
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=error / 4)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=error / 4)
    assert interval(h, top=10) == found
    other = interval(h, random_state=1, top=10)
    assert other.value == found.value and other != found


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
    apart = interval(a)
    assert difference.low > 0
    assert difference.high - difference.low < apart.high - apart.low
    expected = a.mean_average_precision() - b.mean_average_precision()
    assert difference.value == pytest.approx(expected)
    assert difference.n_queries == apart.n_queries
    assert compare(b, a).value == pytest.approx(-difference.value)
    assert compare(a, a) == (0, 0, 0, apart.n_queries)


def test_errors_of_intervals():
    h = random_histogram(0)
    with pytest.raises(ValueError, match=r"precision_at_k.*pass a metric with one value"):
        interval(h, "precision_at_k", k=[1, 2])
    with pytest.raises(ValueError, match="same queries"):
        compare(h, random_histogram(1, n_queries=3))


def test_describe_against_plain_definitions():
    rng = np.random.default_rng(2)
    bits = rng.random((300, 11)) < 0.4
    bits[:, 3] = bits[:, 2]
    bits[:, 7] = True
    bits[:, 8] = ~bits[:, 2]
    summary = describe(pack(bits), n_bits=11)
    rows, buckets = np.unique(bits, axis=0, return_counts=True)
    varies = [j for j in range(11) if j != 7]
    correlation = np.corrcoef(bits[:, varies].T.astype(float))
    pairs = np.abs(correlation[np.triu_indices(10, 1)])
    entropy = -sum(n / 300 * math.log2(n / 300) for n in buckets.tolist())
    expected = {
        "codes": 300,
        "bits": 11,
        "distinct bits": 10,
        "constant bits": 1,
        "mean |share of ones - 1/2|": np.abs(bits.mean(axis=0) - 0.5).mean(),
        "mean |correlation of two bits|": pairs.mean(),
        "distinct codes": len(rows),
        "items per distinct code": 300 / len(rows),
        "items of the most frequent code": buckets.max(),
        "entropy of the codes in bits": entropy,
    }
    assert dict(summary) == pytest.approx(expected)
    assert list(summary) == list(expected)


def test_describe_sees_short_codes_repeated_and_constant_bits():
    bits = np.random.default_rng(3).random((5000, 16)) < 0.5
    short = describe(pack(bits))
    long = describe(pack(np.tile(bits, 4)))
    assert long["bits"] == 64
    assert long["distinct bits"] == 16
    for name in ("distinct codes", "entropy of the codes in bits"):
        assert long[name] == short[name]
    constant = describe(np.zeros((4, 2), np.uint8))
    assert (constant["constant bits"], constant["distinct bits"]) == (16, 1)
    assert constant["mean |correlation of two bits|"] == 0
    assert constant["entropy of the codes in bits"] == 0
