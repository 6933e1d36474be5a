"""Weights of classes and of samples, for HMOH and HadamardRidge."""

import naive
import numpy as np
import pytest
from helpers import (
    assert_helpful,
    assert_same_state,
    either_stream,
    stream,
    target_rows,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import hmoh
from baselines import HCOH, LSH
from hmoh import HMOH
from ridge import HadamardRidge

RNG = np.random.default_rng(0)
METHODS = HMOH, HadamardRidge


def balanced(y):
    """Return the weights that a stream of labels gets, by definition."""
    labels = [np.flatnonzero(row).tolist() if y.ndim == 2 else [row] for row in y]
    a = np.ones(len(y))
    naive.balance(labels, np.zeros(int(max(map(max, labels))) + 1, int), a)
    return a


@pytest.mark.parametrize("multi", [False, True])
def test_the_weights_of_classes_agree_with_naive(multi):
    counts = RNG.integers(3, size=6)
    labels = RNG.integers(6, size=(40, 1))
    if multi:
        labels = np.where(RNG.random((40, 6)) < 0.4, np.arange(6), -1)
        labels[:, 5] = 5  # every sample has a label
    given = RNG.random(40).astype(np.float32)
    ours, twin, our_counts, twin_counts = given.copy(), given.copy(), counts.copy(), counts.copy()
    hmoh._balance(labels, our_counts, ours)
    naive.balance(labels, twin_counts, twin)
    assert_allclose(ours, twin, rtol=1e-6)
    assert_array_equal(our_counts, twin_counts)


def test_a_class_that_comes_late_is_capped_and_the_first_sample_weighs_one():
    labels = np.array([0] * 99 + [1])
    a = np.ones(100, np.float32)
    hmoh._balance(labels[:, None], np.zeros(2, np.int64), a)
    assert a[0] == a[1] == 1
    assert a[-1] == hmoh.MOST_BALANCE
    assert_allclose(a, balanced(labels), rtol=1e-6)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_hmoh_with_weights_agrees_with_naive(batch_size, multi):
    X, y = either_stream(multi, n=90)
    given = RNG.integers(4, size=90) / 2
    for params, a in (({}, given), ({"class_weight": "balanced"}, given * balanced(y))):
        model = HMOH(5, batch_size=batch_size, random_state=0, **params)
        model.fit(X, y, sample_weight=given)
        _, expected = naive.perceptron(X, *target_rows(model, y), batch_size, a=a)
        assert_allclose(model.weights_, expected.T, rtol=1e-5, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize("multi", [False, True])
def test_the_ridge_with_weights_is_that_of_scikit_learn(multi):
    X, y = either_stream(multi, n=90)
    given = RNG.integers(4, size=90) / 2
    model = HadamardRidge(5, class_weight="balanced", random_state=0).fit(X, y, given)
    rows, C = target_rows(model, y)
    a = given * balanced(y)
    penalty = model.ridge * np.sum(a * np.square(X.astype(float)).sum(axis=1)) / X.shape[1]
    oracle = Ridge(penalty, fit_intercept=False).fit(X.astype(float), C[rows], a)
    assert_allclose(model.weights_.T, oracle.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_one_change_nothing_and_of_zero_only_advance_the_stream(method):
    X, y = stream()
    plain = method(8, random_state=0).fit(X, y)
    assert_same_state(plain, method(8, random_state=0).fit(X, y, sample_weight=np.ones(60)))
    settings = {"ensemble": False} if method is HMOH else {}
    short = method(8, random_state=0, **settings).fit(X[::2], y[::2])
    model = method(8, random_state=0, **settings).fit(X, y, np.arange(60) % 2 == 0)
    assert model.n_seen_ == 60
    assert_allclose(model.weights_, short.weights_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "weights", [[1.0] * 59, [[1.0]] * 60, [-1] + [1] * 59, [np.nan] * 60, [1e16] * 60, ["1"] * 60]
)
@pytest.mark.parametrize("method", METHODS)
def test_wrong_weights_are_explained_and_change_nothing(method, weights):
    X, y = stream()
    model = method(8, class_weight="balanced", random_state=0).partial_fit(X, y)
    same = method(8, class_weight="balanced", random_state=0).partial_fit(X, y)
    for call in (model.partial_fit, model.fit):
        with pytest.raises(ValueError) as caught:
            call(X, y, sample_weight=weights)
        assert_helpful(caught.value, "sample_weight")
    assert_same_state(same, model)


def test_what_weights_cannot_do_is_an_error():
    X, y = stream()
    for method in (LSH, HCOH):
        with pytest.raises(TypeError, match="sample_weight"):
            method(8).partial_fit(X, y, sample_weight=np.ones(60))
    with pytest.raises(ValueError, match="class_weight"):
        HMOH(8, class_weight="rare").fit(X, y)
    a, b = (HadamardRidge(8, class_weight="balanced", random_state=0).fit(X, y) for _ in range(2))
    with pytest.raises(ValueError, match="class_weight"):
        a.merge(b)
    counts = a.recoded(n_bits=16)._state.counts
    assert_array_equal(counts, np.bincount(y))


def test_a_file_that_lacks_the_counts_of_some_labels_is_loaded(tmp_path):
    """`blank` and `merge` once wrote such files."""
    X, y = stream()
    model = HadamardRidge(8, random_state=0).fit(X, y)
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    arrays["model/counts"] = arrays["model/counts"][:0]
    np.savez(tmp_path / "short.npz", **arrays)
    assert_same_state(model, HadamardRidge.load(tmp_path / "short.npz"))
