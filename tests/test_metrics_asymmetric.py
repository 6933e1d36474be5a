"""Search and mAP by real-valued outputs of the queries against stored codes."""

import naive
import numpy as np
import pytest
from test_metrics import make_bits, make_labels, pack

import metrics
from hmoh import HMOH
from metrics import (
    asymmetric_mean_average_precision,
    mean_average_precision,
    nearest,
    nearest_asymmetric,
)

N_BITS = [1, 7, 8, 20, 64, 130]


def make_case(n_bits, kind="integers", n_queries=5, n_items=60):
    """Return outputs and labels of queries, bits and labels of items.

    The outputs are whole numbers, so that scores are exact and some of them tie.
    """
    rng = np.random.default_rng(n_bits)
    outputs = rng.integers(-3, 4, (n_queries, n_bits)).astype(float)
    bits = make_bits(rng, n_items, n_bits)
    labels = make_labels(rng, n_queries, kind), make_labels(rng, n_items, kind)
    return outputs, bits, labels


def scores_by_definition(outputs, bits):
    return outputs @ np.where(bits, 1, -1).T


@pytest.mark.parametrize("n_bytes, width", [(1, 8), (3, 8), (11, 16)])
def test_scores_agree_with_naive(n_bytes, width):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n_bytes, 256))
    codes = rng.integers(256, size=(30, width), dtype=np.uint8)
    ours, theirs = np.empty((2, 30))
    metrics._score(table, codes, ours)
    naive.score(table, codes, theirs)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_words", [1, 7, 1 << 17])
@pytest.mark.parametrize("n_bits", N_BITS)
def test_the_highest_scores_are_found_with_ties_in_database_order(
    monkeypatch, n_bits, n_words
):
    monkeypatch.setattr(metrics, "BLOCK_WORDS", n_words)
    outputs, bits, _ = make_case(n_bits)
    expected = scores_by_definition(outputs, bits)
    for k in (1, 7, 60):
        scores, indices = nearest_asymmetric(outputs, pack(bits), k)
        for q, row in enumerate(expected):
            ranking = naive.stable_ranking(-row)[:k]
            assert indices[q].tolist() == ranking
            assert scores[q].tolist() == row[ranking].tolist()


@pytest.mark.parametrize("n_bits", N_BITS)
def test_signs_as_outputs_rank_as_the_hamming_distance_does(n_bits):
    outputs, bits, labels = make_case(n_bits)
    signs = np.where(outputs > 0, 1, -1)
    codes = pack(outputs > 0), pack(bits)
    distances, indices = nearest(*codes, 60)
    scores, by_score = nearest_asymmetric(signs, codes[1], 60)
    np.testing.assert_array_equal(by_score, indices)
    np.testing.assert_array_equal(scores, n_bits - 2 * distances)
    found = asymmetric_mean_average_precision(signs, codes[1], *labels)
    hamming = mean_average_precision(*codes, *labels, n_bits=n_bits)
    assert found == pytest.approx(hamming, abs=1e-12)


@pytest.mark.parametrize("top", [None, 3, 20])
@pytest.mark.parametrize("normalize", ["relevant", "min", "retrieved"])
@pytest.mark.parametrize("kind", ["integers", "strings", "sets", "many"])
def test_the_map_is_the_expectation_over_the_orders_of_equal_scores(
    monkeypatch, kind, normalize, top
):
    monkeypatch.setattr(metrics, "BLOCK_WORDS", 9)
    outputs, bits, labels = make_case(6, kind, n_items=7)
    if kind == "many":
        # Few items share one of 70 labels.
        labels[0][0, 5] = labels[1][0, 5] = 1
    scores = scores_by_definition(outputs, bits)
    expected = []
    for row, label in zip(scores, labels[0], strict=True):
        hits = naive.relevances(label, labels[1])
        ap = naive.expected_average_precision(list(-row), hits, normalize, top)
        expected.append(np.nan if ap is None else float(ap))
    options = {"top": top, "normalize": normalize}
    found = asymmetric_mean_average_precision(
        outputs, pack(bits), *labels, per_query=True, **options
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    mean = asymmetric_mean_average_precision(outputs, pack(bits), *labels, **options)
    assert mean == pytest.approx(np.nanmean(expected), abs=1e-12)


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr(metrics, "PAIRS_PER_THREAD", 1)
    outputs, bits, labels = make_case(20, n_queries=30, n_items=200)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(metrics, "_n_cores", lambda: n_threads)
        ap = asymmetric_mean_average_precision(outputs, pack(bits), *labels)
        found = nearest_asymmetric(outputs, pack(bits), 9, n_threads=n_threads)
        results.append((ap, *found))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_outputs_of_a_model_search_its_codes():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    X = rng.normal(size=(4, 10))[y] + rng.normal(size=(400, 10))
    model = HMOH(8, random_state=0).fit(X, y)
    outputs = model.decision_function(X)
    codes = model.transform(X)
    ours = asymmetric_mean_average_precision(outputs, codes, y, y)
    assert ours > mean_average_precision(codes, codes, y, y)


GOOD = np.ones((2, 8)), np.zeros((3, 1), np.uint8)
ERRORS = {
    "no matrix": ((np.ones(8), GOOD[1], 1), ["(8,)", "n_bits"]),
    "bits": ((GOOD[0] > 0, GOOD[1], 1), ["bool", "decision_function"]),
    "empty": ((GOOD[0][:0], GOOD[1], 1), ["(0, 8)", "decision_function"]),
    "NaN": ((np.where(np.eye(2, 8), np.nan, 1.0), GOOD[1], 1), ["[0, 0]", "finite"]),
    "other length": ((np.ones((2, 9)), GOOD[1], 1), ["2 bytes", "1;", "same model"]),
    "large k": ((*GOOD, 4), ["k=4", "3 items", "smaller"]),
    "padding": ((np.ones((2, 3)), GOOD[1] + 8, 1), ["db_codes[0]", "n_bits=3"]),
}


@pytest.mark.parametrize("arguments, parts", ERRORS.values(), ids=ERRORS)
def test_errors_name_the_value_the_need_and_the_way_out(arguments, parts):
    with pytest.raises(ValueError) as caught:
        nearest_asymmetric(*arguments)
    for part in parts:
        assert part in str(caught.value)


def test_without_a_hit_there_is_no_mean():
    with pytest.raises(ValueError, match="none of the 2 queries has a relevant item"):
        asymmetric_mean_average_precision(*GOOD, [1, 1], [2, 3, 4])
