"""The method: loops and models against plain Python, scikit-learn, and what must not matter."""

import itertools

import naive
import numba
import numpy as np
import pytest
import scipy.linalg
from helpers import (
    KINDS,
    assert_helpful,
    assert_same,
    assert_same_state,
    either_stream,
    feed,
    plain,
    quick,
    stream,
    target_rows,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import hmoh
from hmoh import HMOH, hadamard

RNG = np.random.default_rng(0)


def expected_weights(model, X, y):
    """Return what the plain perceptron learns from the model's targets, (m, n_bits)."""
    W, average = naive.perceptron(X, *target_rows(model, y), model.batch_size, model.memory)
    return (average if model.ensemble else W).T


def assert_near(weights, expected):
    """Check equality up to the rounding of float32 sums of the size of the weights."""
    assert weights.dtype == np.float32
    assert_allclose(weights, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


# ---- loops and their twins -----------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3, 33])
def test_dots_agree_with_naive(m):
    Z, _ = stream(4, m)
    W, _ = stream(24, m, seed=1)
    for i, k in itertools.product(range(4), (0, 8, 16)):
        f = np.empty(8, np.float32)
        expected = np.empty(8)
        hmoh._dots(Z, i, W, k, f)
        naive.dots(Z, i, W, k, expected)
        assert_allclose(f, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n", [1, 7, 25, np.inf])
def test_what_is_kept_of_an_average_agrees_with_naive(n):
    steps = [0, 1, 6, 7, 8, 24, 25, 26, 60]
    for a, b in itertools.combinations_with_replacement(steps, 2):
        assert_allclose(hmoh._kept(a, b, float(n)), naive.kept(a, b, n), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 30, np.inf])
@pytest.mark.parametrize("t", [20, 31, 90])
def test_an_average_agrees_with_naive(t, n):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(16, 5)).astype(np.float32)
    A = rng.normal(size=(16, 5))
    since = rng.integers(t + 1, size=16)
    ours, twin = np.empty((2, 13, 4), np.float32)
    hmoh._average(W, A, since, t, float(n), ours)
    naive.average(W, A, since, t, n, twin)
    assert_allclose(ours, twin, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("order", [1, 2, 8, 64])
def test_hadamard_matrices_agree_with_naive_and_scipy(order):
    H = hadamard(order)
    assert H.dtype == np.int8
    assert_array_equal(H, naive.sylvester(order))
    assert_array_equal(H, scipy.linalg.hadamard(order))
    columns = [order - 1, 0, order // 2]
    assert_array_equal(hadamard(order, columns), H[:, columns])


@pytest.mark.parametrize("order", [0, 3, 12, -4, 2.0, True, "4", None])
def test_hadamard_matrices_of_other_orders_are_refused(order):
    with pytest.raises((TypeError, ValueError)) as caught:
        hadamard(order)
    assert_helpful(caught.value, str(order))


def run_loop(Z, y, C, batch=1, cuts=(), tiles=((0, 32),)):
    """Return W, A and since of the compiled loop, called once for each tile of bits."""
    learned = np.zeros((32, Z.shape[1]), "f"), np.zeros((32, Z.shape[1])), np.zeros(32, int)
    steps = np.zeros(1, np.int64)
    a = np.linspace(0.5, 2, len(Z), dtype=np.float32)
    for start, stop in itertools.pairwise([0, *cuts, len(Z)]):
        t = int(steps[0])
        for first, last in tiles:
            samples = (Z[start:stop], y[start:stop], a[start:stop], C, batch, t)
            hmoh._perceptron(*samples, 45.0, *learned, steps, first, last)
        assert steps[0] == t + -(-(stop - start) // batch)
    return learned


@pytest.mark.parametrize("batch", [1, 3])
def test_neither_the_place_of_a_bit_nor_the_order_of_the_tiles_nor_cuts_matter(batch):
    Z, y = stream(150)
    C = RNG.choice([-1, 1], size=(4, 32)).astype(np.float32)
    expected = run_loop(Z, y, C, batch)
    tiles = [(16, 32), (8, 16), (0, 8)]
    for a, b in zip(expected, run_loop(Z, y, C, batch, [3, 60, 141], tiles), strict=True):
        assert_array_equal(b, a, strict=True)
    place = RNG.permutation(32)
    for a, b in zip(expected, run_loop(Z, y, C[:, place], batch), strict=True):
        assert_array_equal(b, a[place], strict=True)


# ---- models and their twins ----------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 64, 65])
@pytest.mark.parametrize("n_bits", [3, 8, 12])
def test_a_model_agrees_with_naive(n_bits, batch_size, multi):
    X, y = either_stream(multi, n=150, integer=True)
    for ensemble in (True, False):
        model = HMOH(n_bits, ensemble=ensemble, batch_size=batch_size, random_state=0).fit(X, y)
        assert_near(model.weights_, expected_weights(model, X, y))
        values = model.decision_function(X)
        assert_allclose(values, X @ model.weights_, rtol=1e-4, atol=1e-4)
        assert (model.n_seen_, model.n_steps_) == (150, -(-150 // batch_size))


@pytest.mark.parametrize("memory", [None, 1, 2, 7, 10, 11, 25, 60])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_every_average_agrees_with_naive_after_any_number_of_steps(memory, batch_size):
    X, y = stream(90)
    model = HMOH(5, memory=memory, batch_size=batch_size, random_state=0)
    for start in range(0, 90, batch_size * 3):
        rows = slice(start, start + batch_size * 3)
        model.partial_fit(X[rows], y[rows])
        n = model.n_steps_ * batch_size
        assert_near(model.weights_, expected_weights(model, X[:n], y[:n]))


@numba.njit
def remembered(X, y, C, n, W, total, A):
    """Run the perceptron in whole numbers; add up W, and let the average A of W forget."""
    for i in range(len(X)):
        rate = max(1 / (i + 1), 1 / n)
        for k in range(C.shape[1]):
            f = 0
            for j in range(X.shape[1]):
                f += X[i, j] * W[k, j]
            for j in range(X.shape[1]):
                if (f > 0) != (C[y[i], k] > 0):
                    W[k, j] += C[y[i], k] * X[i, j]
                total[k, j] += W[k, j]
                A[k, j] += (W[k, j] - A[k, j]) * rate


@pytest.mark.slow
@pytest.mark.parametrize("memory", [None, 34_567])
def test_averages_of_a_long_stream_are_exact(memory):
    n = 5_000_000 if memory is None else 300_000
    X, y = stream(n, 4, 6, integer=True)
    X = 5 * X  # so that float32 could not count so far
    model = HMOH(8, memory=memory, random_state=0)
    feed(model, X, y, [777, 100_001], classes=np.arange(6))
    _, C = target_rows(model, y)
    W, total = np.zeros((2, 8, 4), np.int64)
    A = np.zeros((8, 4))
    remembered(X.astype(np.int64), y, C.astype(np.int64), memory or n, W, total, A)
    if memory is None:
        assert abs(total).max() > 2**24
        assert_array_equal(model.weights_, (total / n).T.astype(np.float32))
    else:
        assert_near(model.weights_, A.T)


@pytest.mark.parametrize("memory", [60, 61, 10**6, 2**63, 10**30])
def test_a_memory_longer_than_the_stream_is_the_paper_s_average(memory):
    X, y = stream()
    whole = HMOH(8, random_state=0).fit(X, y)
    model = HMOH(8, memory=memory, random_state=0).fit(X, y)
    assert_array_equal(model.weights_, whole.weights_, strict=True)
    forgetting = HMOH(8, memory=59, random_state=0).fit(X, y)
    assert not np.array_equal(forgetting.weights_, whole.weights_)


# ---- codes ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 20])
def test_codes_are_packed_signs_with_empty_padding(n_bits):
    X, y = stream(integer=True)
    X[0] = 0  # sign(0) = -1
    model = HMOH(n_bits, random_state=0).fit(X, y)
    codes = model.transform(X)
    assert codes.dtype == np.uint8 and codes.shape == (60, -(-n_bits // 8))
    values = model.decision_function(X)
    assert values.dtype == np.float32 and values.shape == (60, n_bits)
    bits = np.unpackbits(codes, axis=1, bitorder="little")
    assert_array_equal(bits[:, :n_bits], values > 0)
    assert not bits[:, n_bits:].any()
    assert not codes[0].any()
    again = HMOH(n_bits, random_state=0).fit_transform(X, y)
    assert_array_equal(again, codes, strict=True)
    assert model.weights_.shape == (5, n_bits) and model.weights_.dtype == np.float32
    assert model.n_features_in_ == 5


def test_encoding_and_what_is_handed_out_leave_the_model_alone():
    X, y = stream()
    for ensemble in (True, False):
        model = HMOH(8, ensemble=ensemble, random_state=0).fit(X, y)
        spared = HMOH(8, ensemble=ensemble, random_state=0).fit(X, y)
        model.weights_[:] = 7
        model.decision_function(X)[:] = 7
        for target in model.targets_.values():
            target[:] = 0
        model.targets_.clear()
        model.label_set_targets_[0] = 1
        assert_same_state(spared, model)
        assert_same(spared, model, X)


# ---- what must not matter ------------------------------------------------------------


@quick
@given(st.floats(1e-30, 1e30), st.booleans(), st.integers(0, 2**31))
def test_the_learning_rate_scales_the_weights_and_leaves_the_codes_alone(rate, ensemble, seed):
    X, y = stream(seed=seed)
    params = {"ensemble": ensemble, "random_state": seed}
    one = HMOH(8, **params).fit(X, y)
    scaled = HMOH(8, learning_rate=rate, **params).fit(X, y)
    assert_array_equal(scaled.transform(X), one.transform(X), strict=True)
    rate = np.float32(rate)
    assert_array_equal(scaled.weights_, rate * one.weights_, strict=True)
    assert_array_equal(scaled.decision_function(X), rate * one.decision_function(X), strict=True)


@pytest.mark.parametrize("codebook", KINDS)
@quick
@given(st.permutations(range(6)), st.integers(-(2**60), 2**60), st.sampled_from([1, 1000]))
def test_the_names_of_labels_do_not_matter_on_an_open_stream(codebook, names, offset, factor):
    X, y = stream(70, n_labels=6)
    model = HMOH(4, codebook=codebook, random_state=1).partial_fit(X, y)
    whole = np.array([offset + factor * name for name in names])
    for names in (whole, whole.astype(str)):
        renamed = HMOH(4, codebook=codebook, random_state=1).partial_fit(X, names[y])
        assert_array_equal(renamed.weights_, model.weights_)
        targets = {names[label]: target for label, target in plain(model.targets_).items()}
        assert plain(renamed.targets_) == targets


def test_the_extremes_of_integers_are_labels():
    X, _ = stream(70)
    y = np.array([-(2**63), 2**63 - 1] * 35)
    model = HMOH(8, random_state=0).partial_fit(X, y).partial_fit(X[:2], y[:2])
    assert list(model.targets_) == [-(2**63), 2**63 - 1]
    single = feed(HMOH(8, random_state=0), X, y, range(1, 70)).partial_fit(X[:2], y[:2])
    assert_same(model, single, X)
