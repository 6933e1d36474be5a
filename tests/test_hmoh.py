"""HMOH against its plain-Python twins, scikit-learn and SciPy, and properties of every stream."""

import itertools
import pickle

import naive
import numba
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from helpers import (
    KINDS,
    assert_helpful,
    assert_same,
    either_stream,
    feed,
    multi_stream,
    plain,
    quick,
    stream,
    target_rows,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import SGDClassifier

import hmoh
from hmoh import HMOH, hadamard, hadamard_product
from kernels import RBF


def run_loop(Z, y, C, batch=1, cuts=(), tiles=None, memory=None):
    """Return W and the average of W of the compiled loop.

    ``tiles`` holds the first bits of the tiles in the order in which they are run, one
    call for each. By default one call runs all.
    """
    n_extra = -C.shape[1] % hmoh.TILE
    C = np.ascontiguousarray(np.pad(C, ((0, 0), (0, n_extra))), np.float32)
    n_bits = C.shape[1]
    parts = [(0, n_bits)]
    if tiles is not None:
        parts = [(k, k + hmoh.TILE) for k in tiles]
    bits = hmoh.Perceptrons(n_bits, Z.shape[1], memory)
    for start, stop in itertools.pairwise([0, *cuts, len(Z)]):
        for first, last in parts:
            samples = (Z[start:stop], y[start:stop], C, batch)
            state = (bits.W, bits.V, bits.S, bits.horizons, bits.wrong, bits.steps)
            hmoh._perceptron(*samples, *state, first, last)
        if len(parts) > 1:
            bits.steps[0] += -(-(stop - start) // batch)
    return bits.get_state()["W"], bits.average()


def random_targets(n_labels, n_bits, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice([-1, 1], size=(n_labels, n_bits)).astype(np.int8)


# ---- agrees with naive ---------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3, 16, 33])
@pytest.mark.parametrize("integer", [True, False])
def test_dots_agree_with_naive(m, integer):
    Z, _ = stream(4, m, integer=integer)
    W, _ = stream(24, m, seed=1, integer=integer)
    for i, k in itertools.product(range(4), (0, 8, 16)):
        f = np.empty(8, np.float32)
        hmoh._dots(Z, i, W, k, f)
        expected = np.empty(8)
        naive.dots(Z, i, W, k, expected)
        if integer:
            assert_array_equal(f, expected)
        else:
            assert_allclose(f, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 65, 1000])
@pytest.mark.parametrize("m", [1, 5, 17])
def test_perceptron_agrees_with_naive_exactly_on_integers(batch, m):
    Z, y = stream(150, m, integer=True)
    C = random_targets(4, 16, seed=batch)
    W, average = run_loop(Z, y, C, batch)
    expected_W, expected_average = naive.perceptron(Z, y, C, batch)
    assert_array_equal(W, expected_W)
    assert_array_equal(average, expected_average.astype(np.float32), strict=True)


@pytest.mark.parametrize("batch", [1, 5])
def test_perceptron_agrees_with_naive_up_to_rounding_on_reals(batch):
    Z, y = stream(150, 6)
    C = random_targets(4, 8)
    W, average = run_loop(Z, y, C, batch)
    expected_W, expected_average = naive.perceptron(Z, y, C, batch)
    assert_allclose(W, expected_W, rtol=1e-4, atol=1e-4)
    assert_allclose(average, expected_average, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cuts", [(), (1000,), (5, 999, 1001, 2000)])
def test_average_is_exact_across_runs_of_steps(cuts):
    assert hmoh.RUN == 1000  # the cuts lie around its multiples
    Z, y = stream(2100, 2, integer=True)
    C = random_targets(4, 8)
    W, average = run_loop(Z, y, C, cuts=cuts)
    expected_W, expected_average = naive.perceptron(Z, y, C)
    assert_array_equal(W, expected_W)
    assert_array_equal(average, expected_average.astype(np.float32), strict=True)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("n_bits", [3, 8, 12])
def test_model_agrees_with_naive(ensemble, batch_size, n_bits):
    X, y = stream(integer=True)
    model = HMOH(n_bits, ensemble=ensemble, batch_size=batch_size, random_state=0)
    model.fit(X, y)
    last, average = naive.perceptron(X, *target_rows(model, y), batch_size)
    expected = average if ensemble else last
    assert_array_equal(model.weights_, expected.T.astype(np.float32), strict=True)
    values = model.decision_function(X)
    assert_allclose(values, X @ model.weights_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_multi_label_model_agrees_with_naive(batch_size):
    X, Y = multi_stream(integer=True)
    model = HMOH(8, batch_size=batch_size, random_state=0).fit(X, Y)
    sets = [tuple(np.flatnonzero(row).tolist()) for row in Y]
    C = np.stack([model.label_set_targets_[labels] for labels in sets])
    _, average = naive.perceptron(X, range(len(X)), C, batch_size)
    assert_array_equal(model.weights_, average.T.astype(np.float32))


@pytest.mark.parametrize("order", [1, 2, 4, 8, 64])
def test_hadamard_agrees_with_naive_and_scipy(order):
    H = hadamard(order)
    assert H.dtype == np.int8
    assert_array_equal(H, naive.sylvester(order))
    assert_array_equal(H, scipy.linalg.hadamard(order))


@pytest.mark.parametrize("order", [1, 2, 8, 64])
def test_hadamard_product_is_a_product_with_the_matrix(order):
    x = np.random.default_rng(0).integers(-9, 10, size=(order, 3)).astype(float)
    before = x.copy()
    assert_array_equal(hadamard_product(x), naive.sylvester(order) @ x)
    assert_array_equal(x, before)


@pytest.mark.parametrize("order", [1, 2, 8, 64])
def test_walsh_hadamard_agrees_with_naive(order):
    A = np.random.default_rng(1).normal(size=(order, 3))
    expected = naive.walsh_hadamard(A)
    hmoh._walsh_hadamard(A)
    assert_array_equal(A, expected)


@pytest.mark.parametrize("n_rows", [3, 6, 7])
def test_hadamard_product_refuses_other_numbers_of_rows(n_rows):
    with pytest.raises(ValueError, match=rf"x has {n_rows} rows; pass .* power of two"):
        hadamard_product(np.ones((n_rows, 2)))


@pytest.mark.parametrize(
    "order, error",
    [
        (0, ValueError),
        (3, ValueError),
        (-4, ValueError),
        (2.0, TypeError),
        (True, TypeError),
        ("4", TypeError),
        (None, TypeError),
    ],
)
def test_hadamard_refuses_other_orders(order, error):
    with pytest.raises(error) as caught:
        hadamard(order)
    assert_helpful(caught.value, repr(order))


# ---- independent oracle --------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 6])
def test_bits_are_the_averaged_perceptrons_of_scikit_learn(d):
    X, y = stream(200, d, n_labels=8)
    # "ordered" gives the first class all +1. With a target of -1, scikit-learn would
    # also update at f = 0.
    y[0] = 0
    model = HMOH(8, codebook="ordered").fit(X, y)
    assert (model.targets_[0] == 1).all()
    rows, C = target_rows(model, y)
    for k in range(8):
        oracle = SGDClassifier(
            loss="perceptron",
            average=True,
            learning_rate="constant",
            eta0=1,
            penalty=None,
            fit_intercept=False,
            shuffle=False,
            max_iter=1,
            tol=None,
        )
        # partial_fit makes one pass, and also accepts a bit that has one class only.
        oracle.partial_fit(X.astype(float), C[rows, k], classes=[-1, 1])
        assert_allclose(model.weights_[:, k], oracle.coef_[0], rtol=1e-4, atol=1e-5)


# ---- properties ----------------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 7])
@quick
@given(
    st.sets(st.integers(1, 59), max_size=12),
    st.sampled_from(KINDS),
    st.integers(0, 2**31),
    st.integers(1, 12),
)
def test_any_cutting_of_a_stream_gives_the_same_bits(
    multi, batch_size, cuts, codebook, seed, n_bits
):
    X, y = either_stream(multi, seed=seed)
    if multi:
        # With known labels the codebook is drawn before the stream, whatever its kind.
        codebook = "random"
    params = {"codebook": codebook, "batch_size": batch_size, "random_state": seed}
    whole = HMOH(n_bits, **params).partial_fit(X, y)
    cut = feed(HMOH(n_bits, **params), X, y, cuts)
    assert_same(whole, cut, X)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7])
# Derandomized because a sum within rounding of 0 could flip a bit, though this is rare.
@settings(quick, derandomize=True)
@given(st.sets(st.integers(1, 59), max_size=12))
def test_with_a_map_any_cutting_gives_the_same_up_to_rounding(multi, batch_size, cuts):
    X, y = either_stream(multi)
    params = {"batch_size": batch_size, "random_state": 0}
    whole = HMOH(8, RBF(n_anchors=6), **params).partial_fit(X, y)
    cut = feed(HMOH(8, RBF(n_anchors=6), **params), X, y, cuts)
    assert_allclose(cut.weights_, whole.weights_, rtol=1e-4, atol=1e-5)
    assert_array_equal(cut.feature_map_.anchors_, whole.feature_map_.anchors_)


@quick
@given(st.floats(1e-6, 1e6), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_learning_rate_scales_the_weights_and_leaves_the_codes_alone(
    learning_rate, integer, ensemble, seed
):
    X, y = stream(integer=integer, seed=seed)
    params = {"ensemble": ensemble, "random_state": seed}
    one = HMOH(8, learning_rate=1, **params).fit(X, y)
    scaled = HMOH(8, learning_rate=learning_rate, **params).fit(X, y)
    assert_array_equal(scaled.transform(X), one.transform(X), strict=True)
    rate = np.float32(learning_rate)
    assert_array_equal(scaled.weights_, rate * one.weights_, strict=True)
    values = rate * one.decision_function(X)
    assert_array_equal(scaled.decision_function(X), values, strict=True)


@pytest.mark.parametrize("learning_rate", [1e-30, 1e30])
def test_learning_rates_from_1e_minus_30_to_1e30_are_possible(learning_rate):
    X, y = stream()
    weights = HMOH(8, random_state=0).fit(X, y).weights_
    model = HMOH(8, learning_rate=learning_rate, random_state=0).fit(X, y)
    assert_allclose(model.weights_, weights * learning_rate, rtol=1e-6)
    params = {"learning_rate": learning_rate * (1.01 if learning_rate > 1 else 0.99)}
    with pytest.raises(ValueError, match=r"learning_rate=.* from 1e-30 to 1e\+30"):
        model.set_params(**params).fit(X, y)


@pytest.mark.parametrize("learning_rate", [1e-60, 1e60])
def test_a_learning_rate_beyond_float32_is_refused_or_works(learning_rate):
    X, y = stream()
    model = HMOH(8, learning_rate=learning_rate, random_state=0)
    try:
        model.fit(X, y)
    except ValueError as error:
        assert_helpful(error, str(learning_rate))
    else:
        bits = model.decision_function(X) > 0
        codes = np.packbits(bits, axis=1, bitorder="little")
        assert_array_equal(codes, model.transform(X))


@quick
@given(st.sampled_from([-1, 0.25, -8, 2**20]), st.integers(1, 9), st.integers(0, 2**31))
def test_scaling_the_samples_by_a_power_of_two_scales_the_weights(factor, n_bits, seed):
    X, y = stream(seed=seed)
    model = HMOH(n_bits, random_state=seed).fit(X, y)
    scaled = HMOH(n_bits, random_state=seed).fit(factor * X, y)
    assert_array_equal(scaled.weights_, np.float32(factor) * model.weights_)


def test_tiles_can_run_in_any_order():
    Z, y = stream(200, 5)
    C = random_targets(4, 32)
    expected_W, expected_average = run_loop(Z, y, C)
    W, average = run_loop(Z, y, C, tiles=[16, 0, 24, 8])
    assert_array_equal(W, expected_W)
    assert_array_equal(average, expected_average.astype(np.float32), strict=True)


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("n_bits", range(1, 21))
def test_a_bit_does_not_depend_on_its_place(n_bits, batch_size):
    X, y = stream(70)
    model = HMOH(n_bits, batch_size=batch_size, random_state=n_bits).fit(X, y)
    rows, C = target_rows(model, y)
    for k in range(n_bits):
        # Alone, the bit is the first of its tile.
        _, average = run_loop(X, rows, C[:, k : k + 1], batch_size)
        assert_array_equal(model.weights_[:, k], average[0].astype(np.float32))


@pytest.mark.parametrize("codebook", KINDS)
@quick
@given(st.permutations(range(6)), st.integers(-(2**60), 2**60), st.booleans())
def test_names_of_labels_do_not_matter_on_an_open_stream(codebook, names, offset, strings):
    X, y = stream(n_labels=6)
    names = np.array([offset + 1000 * name for name in names])
    names = names.astype(str) if strings else names
    model = HMOH(4, codebook=codebook, random_state=1).partial_fit(X, y)
    renamed = HMOH(4, codebook=codebook, random_state=1).partial_fit(X, names[y])
    assert_array_equal(renamed.weights_, model.weights_)
    targets = plain(model.targets_)
    expected = {names[label]: target for label, target in targets.items()}
    assert plain(renamed.targets_) == expected


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("names", [np.array([-7, 0, 5, 10**12]), np.array(["a", "ab", "b", "ä"])])
def test_names_of_labels_do_not_matter_to_fit_if_their_order_stays(codebook, names):
    X, y = stream()
    model = HMOH(6, codebook=codebook, random_state=1).fit(X, y)
    renamed = HMOH(6, codebook=codebook, random_state=1).fit(X, names[y])
    assert_array_equal(renamed.weights_, model.weights_)
    assert list(renamed.targets_) == names.tolist()


far_apart = st.integers(-(2**63), 2**63 - 1)
close = st.integers(-3, 9)


@quick
@given(st.lists(far_apart | close, min_size=1, max_size=40))
def test_distinct_labels_are_those_of_numpy_whether_far_apart_or_close(labels):
    integers = np.array(labels)
    for y in (integers, integers % 7 - 3, integers.astype(str)):
        ours = hmoh._distinct(y)
        numpys = np.unique(y, return_index=True, return_inverse=True)
        for one, other in zip(ours, numpys, strict=True):
            assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("labels", [[0, 2**63], [2**64 - 1, 2**64 - 2]])
def test_unsigned_labels_beyond_int64_are_refused(labels):
    X, y = stream(n_labels=2)
    y = np.array(labels, np.uint64)[y]
    message = r"y holds \d+; numbers below 2\*\*63 .* pass y.astype\(str\)"
    with pytest.raises(ValueError, match=message):
        HMOH(8, random_state=0).fit(X, y)


def test_fit_is_one_pass_with_known_classes():
    X, y = stream()
    fitted = HMOH(8, random_state=0).fit(X, y)
    known = HMOH(8, random_state=0).partial_fit(X, y, classes=[3, 1, 0, 2])
    assert_same(fitted, known, X)


def test_fit_forgets_what_was_before():
    X, y = stream()
    model = HMOH(8, RBF(n_anchors=5), batch_size=7, random_state=0)
    model.partial_fit(X[:, :3], ["a"] * 60)
    fresh = HMOH(8, RBF(n_anchors=5), batch_size=7, random_state=0)
    assert_same(fresh.fit(X, y), model.fit(X, y), X)


def test_seeds_make_models():
    X, y = stream()
    weights = [HMOH(32, random_state=seed).fit(X, y).weights_ for seed in (0, 0, 1)]
    assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
    first = HMOH(32, random_state=np.random.default_rng(5)).fit(X, y)
    second = HMOH(32, random_state=np.random.default_rng(5)).fit(X, y)
    assert_array_equal(first.weights_, second.weights_)
    first = HMOH(32).fit(X, y)
    second = HMOH(32).fit(X, y)
    assert not np.array_equal(first.weights_, second.weights_)


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
    assert_array_equal(model.encode(X), codes, strict=True)
    again = HMOH(n_bits, random_state=0).fit_transform(X, y)
    assert_array_equal(again, codes, strict=True)
    assert model.weights_.shape == (5, n_bits) and model.weights_.dtype == np.float32
    assert (model.n_seen_, model.n_steps_, model.n_features_in_) == (60, 60, 5)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 10])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_blocks_do_not_change_the_result(monkeypatch, call, batch_size, multi):
    X, y = either_stream(multi, integer=True, n_labels=12)
    models = [HMOH(5, batch_size=batch_size, random_state=0) for _ in range(2)]
    codes = getattr(models[0], call)(X, y).transform(X)
    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 7)
    assert_same(models[0], getattr(models[1], call)(X, y), X)
    assert_array_equal(models[0].transform(X), codes)


def test_encoding_leaves_the_model_alone():
    X, y = stream()
    model = HMOH(8, RBF(n_anchors=6), batch_size=7, random_state=0).partial_fit(X, y)
    before = pickle.dumps(model)
    model.transform(X)
    model.decision_function(X)
    _ = model.weights_
    _ = model.targets_
    repr(model)
    model.get_params()
    assert pickle.dumps(model) == before


def test_results_handed_out_are_not_the_models_own():
    X, y = stream()
    model = HMOH(8, ensemble=False, random_state=0).fit(X, y)
    before = pickle.dumps(model)
    model.weights_[:] = 7
    model.targets_.clear()
    assert pickle.dumps(model) == before


def test_samples_that_wait_are_the_models_own():
    X, y = stream(integer=True)
    expected = HMOH(8, batch_size=50, random_state=0).fit(X[:50], y[:50])
    model = HMOH(8, batch_size=50, random_state=0)
    given_X = X[:30].copy()
    given_y = y[:30].copy()
    model.partial_fit(given_X, given_y, classes=np.unique(y))
    # A user reuses the arrays.
    given_X[:] = 9
    given_y[:] = 3
    assert_same(expected, model.partial_fit(X[30:50], y[30:50]), X)


@numba.njit
def summed_up(X, y, C, W, total):
    """Run the perceptron in whole numbers and add up W at every step."""
    for i in range(len(X)):
        for k in range(C.shape[1]):
            f = 0
            for j in range(X.shape[1]):
                f += X[i, j] * W[k, j]
            for j in range(X.shape[1]):
                if (f > 0) != (C[y[i], k] > 0):
                    W[k, j] += C[y[i], k] * X[i, j]
                total[k, j] += W[k, j]


@pytest.mark.slow
def test_average_of_millions_of_steps_is_exact():
    rng = np.random.default_rng(0)
    n = 5_000_000
    y = rng.integers(6, size=n)
    # The classes overlap, so that there are mistakes to the end.
    centers = rng.integers(-9, 10, size=(6, 4))
    X = centers[y] + rng.integers(-20, 21, size=(n, 4))
    cuts = [1_234_567, 3_000_001]
    model = feed(HMOH(8, random_state=0), X, y, cuts, classes=np.arange(6))
    _, C = target_rows(model, y)
    W = np.zeros((8, 4), np.int64)
    total = np.zeros((8, 4), np.int64)
    summed_up(X, y, C.astype(np.int64), W, total)
    assert abs(total).max() > 2**24  # float32 could not have counted so far
    assert_array_equal(model.weights_, (total / n).T.astype(np.float32))
    assert model.n_steps_ == model.n_seen_ == n
