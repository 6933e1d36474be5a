"""HMOH against its plain twins, scikit-learn and SciPy; its codebooks, streams, files, manners and bad input."""

import copy
import gc
import itertools
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import naive
import numba
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import hmoh
from hmoh import HMOH, Codebook, NotFittedError, hadamard
from kernels import RBF, UnitLength

ROOT = Path(__file__).parents[1]
KINDS = "random", "ordered", "spread"
quick = settings(max_examples=20, deadline=None)  # the first call compiles


# ---- helpers -------------------------------------------------------------------------------------------------------


def stream(n=60, d=5, n_labels=4, seed=0, integer=False):
    """Overlapping classes, so that mistakes never stop; integers make every float32 sum exact."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    X = rng.integers(-3, 4, size=(n_labels, d))[y] + rng.integers(-2, 3, size=(n, d))
    return (X if integer else X + rng.normal(size=(n, d))).astype(np.float32), y


def multi_stream(n=60, d=5, n_labels=6, seed=0, **kwargs):
    X, y = stream(n, d, n_labels, seed, **kwargs)
    Y = np.random.default_rng(seed).random((n, n_labels)) < 0.3
    Y[np.arange(n), y] = True
    return X, Y.astype(int)


def either_stream(multi, **kwargs):
    return multi_stream(**kwargs) if multi else stream(**kwargs)


def feed(model, X, y, cuts=(), **kwargs):
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(X)]):
        model.partial_fit(X[start:stop], y[start:stop], **kwargs)
    return model


def plain(targets):
    return {label: target.tolist() for label, target in targets.items()}


def assert_same(a, b, X):
    """Everything a user can see of two models is equal, to the last bit."""
    assert a.n_seen_ == b.n_seen_
    try:
        expected = a.weights_
    except NotFittedError as error:
        with pytest.raises(NotFittedError, match=re.escape(str(error))):
            _ = b.weights_
        return
    assert_array_equal(b.weights_, expected, strict=True)
    assert plain(b.targets_) == plain(a.targets_)
    assert plain(b.label_set_targets_) == plain(a.label_set_targets_)
    assert b.n_steps_ == a.n_steps_
    assert_array_equal(b.transform(X), a.transform(X), strict=True)


def target_rows(model, y):
    """(row of every sample, target codes), as the compiled loop wants them."""
    labels = sorted(model.targets_)
    return np.searchsorted(labels, y), np.stack([model.targets_[label] for label in labels])


def run_loop(Z, y, C, batch=1, cuts=(), order=None):
    """(W, average of W) of the compiled loop; ``order`` is the order in which the tiles are run."""
    n_bits = -(-C.shape[1] // hmoh.TILE) * hmoh.TILE
    C = np.ascontiguousarray(np.pad(C, ((0, 0), (0, n_bits - C.shape[1]))), np.float32)
    W, V, S = (np.zeros((n_bits, Z.shape[1]), dtype) for dtype in (np.float32, np.float32, np.float64))
    t = 0
    for start, stop in itertools.pairwise([0, *cuts, len(Z)]):
        for k in order or range(0, n_bits, hmoh.TILE):
            last = n_bits if order is None else k + hmoh.TILE
            hmoh._perceptron(Z[start:stop], y[start:stop], C, batch, t, W, V, S, k, last)
            if order is None:
                break
        t += -(-(stop - start) // batch)
    return W, (S + t % hmoh.AVERAGED * W.astype(np.float64) - V) / t


def min_distance(targets):
    T = np.stack(list(targets.values())).astype(int)
    return min(np.count_nonzero(a != b) for a, b in itertools.combinations(T, 2))


def assert_helpful(error, *words):
    """An error states the value and the way out."""
    message = str(error)
    for word in words:
        assert word in message
    assert re.search(r"\b(pass|drop|raise|leave|set|start|lower|call|fill)\b", message), message


class Affine:
    """A map of the least kind: fit and transform, no parameters, nothing to save; exact on integers."""

    def __init__(self, n_warmup=10, returns_self=True):
        self.n_warmup, self.returns_self = n_warmup, returns_self

    def fit(self, X):
        self.rows_ = np.array(X)
        return self if self.returns_self else None

    def transform(self, X):
        return 2 * X - self.rows_[0]


class Fused(Affine):
    """Blows at its n-th transform from now on; the fuse is outside, so that the map itself never changes."""

    fuse = None

    def transform(self, X):
        if Fused.fuse:
            error, left = Fused.fuse
            Fused.fuse = (error, left - 1) if left else None
            if not left:
                raise error("blown")
        return super().transform(X)


# ---- agrees with naive ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3, 16, 33])
@pytest.mark.parametrize("integer", [True, False])
def test_dots_agree_with_naive(m, integer):
    Z, _ = stream(4, m, integer=integer)
    W, _ = stream(24, m, seed=1, integer=integer)
    for i, k in itertools.product(range(4), (0, 8, 16)):
        f, expected = np.empty(8, np.float32), np.empty(8)
        hmoh._dots(Z, i, W, k, f)
        naive.dots(Z, i, W, k, expected)
        assert_allclose(f, expected, rtol=0 if integer else 1e-5, atol=0 if integer else 1e-4)


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 65, 1000])
@pytest.mark.parametrize("m", [1, 5, 17])
def test_perceptron_agrees_with_naive_exactly_on_integers(batch, m):
    Z, y = stream(150, m, integer=True)
    C = np.random.default_rng(batch).choice([-1, 1], size=(4, 16)).astype(np.int8)
    W, average = run_loop(Z, y, C, batch)
    expected_W, expected_average = naive.perceptron(Z, y, C, batch)
    assert_array_equal(W, expected_W)
    assert_array_equal(average, expected_average)


@pytest.mark.parametrize("batch", [1, 5])
def test_perceptron_agrees_with_naive_up_to_rounding_on_reals(batch):
    Z, y = stream(150, 6)
    C = np.random.default_rng(0).choice([-1, 1], size=(4, 8)).astype(np.int8)
    for fast, slow in zip(run_loop(Z, y, C, batch), naive.perceptron(Z, y, C, batch), strict=True):
        assert_allclose(fast, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cuts", [(), (1024,), (5, 1023, 1025, 2048)])
def test_average_is_exact_across_runs_of_steps(cuts):
    assert hmoh.AVERAGED == 1024  # the cuts lie around the ends of its runs
    Z, y = stream(2100, 2, integer=True)
    C = np.random.default_rng(0).choice([-1, 1], size=(4, 8)).astype(np.int8)
    W, average = run_loop(Z, y, C, cuts=cuts)
    expected_W, expected_average = naive.perceptron(Z, y, C)
    assert_array_equal(W, expected_W)
    assert_array_equal(average, expected_average)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("n_bits", [3, 8, 12])
def test_model_agrees_with_naive(ensemble, batch_size, n_bits):
    X, y = stream(integer=True)
    model = HMOH(n_bits, ensemble=ensemble, batch_size=batch_size, random_state=0).fit(X, y)
    last, average = naive.perceptron(X, *target_rows(model, y), batch_size)
    assert_array_equal(model.weights_, (average if ensemble else last).T.astype(np.float32), strict=True)
    assert_allclose(model.decision_function(X), X @ model.weights_, rtol=1e-4, atol=1e-4)


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


@pytest.mark.parametrize("order", [0, 3, -4, 2.0, True, "4", None])
def test_hadamard_refuses_other_orders(order):
    with pytest.raises(ValueError) as caught:
        hadamard(order)
    assert_helpful(caught.value, repr(order))


# ---- independent oracle --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 6])
def test_bits_are_the_averaged_perceptrons_of_scikit_learn(d):
    X, y = stream(200, d, n_labels=8)
    y[0] = 0  # "ordered" gives the first class all +1: scikit-learn also updates at f = 0 when the target is -1
    model = HMOH(8, codebook="ordered").fit(X, y)
    assert (model.targets_[0] == 1).all()
    rows, C = target_rows(model, y)
    for k in range(8):
        oracle = SGDClassifier(
            loss="perceptron", average=True, learning_rate="constant", eta0=1, penalty=None, fit_intercept=False,
            shuffle=False, max_iter=1, tol=None,
        )  # fmt: skip
        oracle.partial_fit(X.astype(float), C[rows, k], classes=[-1, 1])  # one pass; a bit may have one class only
        assert_allclose(model.weights_[:, k], oracle.coef_[0], rtol=1e-4, atol=1e-5)


# ---- properties ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 7])
@quick
@given(st.sets(st.integers(1, 59), max_size=12), st.sampled_from(KINDS), st.integers(0, 2**31), st.integers(1, 12))
def test_any_cutting_of_a_stream_gives_the_same_bits(multi, batch_size, cuts, codebook, seed, n_bits):
    X, y = either_stream(multi, seed=seed)
    codebook = "random" if multi else codebook  # with known labels it is drawn before the stream
    models = [HMOH(n_bits, codebook=codebook, batch_size=batch_size, random_state=seed) for _ in range(2)]
    assert_same(models[0].partial_fit(X, y), feed(models[1], X, y, cuts), X)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7])
@settings(quick, derandomize=True)  # a sum within rounding of 0 could flip a bit: rare, but not impossible
@given(st.sets(st.integers(1, 59), max_size=12))
def test_with_a_map_any_cutting_gives_the_same_up_to_rounding(multi, batch_size, cuts):
    X, y = either_stream(multi)
    models = [HMOH(8, RBF(n_anchors=6), batch_size=batch_size, random_state=0) for _ in range(2)]
    whole, cut = models[0].partial_fit(X, y), feed(models[1], X, y, cuts)
    assert_allclose(cut.weights_, whole.weights_, rtol=1e-4, atol=1e-5)
    assert_array_equal(cut.feature_map_.anchors_, whole.feature_map_.anchors_)


@quick
@given(st.floats(1e-6, 1e6), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_learning_rate_scales_the_weights_and_leaves_the_codes_alone(learning_rate, integer, ensemble, seed):
    X, y = stream(integer=integer, seed=seed)
    one, scaled = (
        HMOH(8, ensemble=ensemble, learning_rate=rate, random_state=seed).fit(X, y) for rate in (1, learning_rate)
    )
    assert_array_equal(scaled.transform(X), one.transform(X), strict=True)
    assert_array_equal(scaled.weights_, np.float32(learning_rate) * one.weights_, strict=True)
    assert_array_equal(scaled.decision_function(X), np.float32(learning_rate) * one.decision_function(X), strict=True)


@pytest.mark.parametrize("learning_rate", [1e-60, 1e60])
def test_a_learning_rate_beyond_float32_is_refused_or_works(learning_rate):
    X, y = stream()
    model = HMOH(8, learning_rate=learning_rate, random_state=0)
    try:
        model.fit(X, y)
    except ValueError as error:
        assert_helpful(error, str(learning_rate))
    else:
        assert_array_equal(np.packbits(model.decision_function(X) > 0, axis=1, bitorder="little"), model.transform(X))


@quick
@given(st.sampled_from([-1, 0.25, -8, 2**20]), st.integers(1, 9), st.integers(0, 2**31))
def test_scaling_the_samples_by_a_power_of_two_scales_the_weights(factor, n_bits, seed):
    X, y = stream(seed=seed)
    model, scaled = (HMOH(n_bits, random_state=seed).fit(Z, y) for Z in (X, factor * X))
    assert_array_equal(scaled.weights_, np.float32(factor) * model.weights_)


def assert_threads_agree(X, y, n_bits, counts):
    serial = HMOH(n_bits, n_threads=1, random_state=0).fit(X, y)
    pool, started = hmoh.ThreadPoolExecutor, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hmoh, "ThreadPoolExecutor", lambda n, *args: started.append(n) or pool(n, *args))
        for n in counts:
            assert_same(serial, HMOH(n_bits, n_threads=n, random_state=0).fit(X, y), X)
    assert started == counts  # little work gets fewer threads


def test_result_does_not_depend_on_the_number_of_threads():
    assert_threads_agree(*stream(2100, 8), 60, [2])


@pytest.mark.slow
def test_result_does_not_depend_on_a_large_number_of_threads():
    assert_threads_agree(*stream(8000, 16), 60, [2, 3, 5, 8])


def test_tiles_can_run_in_any_order():
    Z, y = stream(200, 5)
    C = np.random.default_rng(0).choice([-1, 1], size=(4, 32)).astype(np.int8)
    expected = run_loop(Z, y, C)
    for fast, slow in zip(run_loop(Z, y, C, order=[16, 0, 24, 8]), expected, strict=True):
        assert_array_equal(fast, slow)


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("n_bits", range(1, 21))
def test_a_bit_does_not_depend_on_its_place(n_bits, batch_size):
    X, y = stream(70)
    model = HMOH(n_bits, batch_size=batch_size, random_state=n_bits).fit(X, y)
    rows, C = target_rows(model, y)
    for k in range(n_bits):
        _, average = run_loop(X, rows, C[:, k : k + 1], batch_size)  # alone, first of its tile
        assert_array_equal(model.weights_[:, k], average[0].astype(np.float32))


@pytest.mark.parametrize("codebook", KINDS)
@quick
@given(st.permutations(range(6)), st.integers(-(2**60), 2**60), st.booleans())
def test_names_of_labels_do_not_matter_on_an_open_stream(codebook, names, offset, strings):
    X, y = stream(n_labels=6)
    names = np.array([offset + 1000 * name for name in names])
    names = names.astype(str) if strings else names
    model, renamed = (HMOH(4, codebook=codebook, random_state=1).partial_fit(X, z) for z in (y, names[y]))
    assert_array_equal(renamed.weights_, model.weights_)
    assert plain(renamed.targets_) == {names[label]: target for label, target in plain(model.targets_).items()}


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("names", [np.array([-7, 0, 5, 10**12]), np.array(["a", "ab", "b", "ä"])])
def test_names_of_labels_do_not_matter_to_fit_if_their_order_stays(codebook, names):
    X, y = stream()
    model, renamed = (HMOH(6, codebook=codebook, random_state=1).fit(X, z) for z in (y, names[y]))
    assert_array_equal(renamed.weights_, model.weights_)
    assert list(renamed.targets_) == names.tolist()


@quick
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 9), min_size=1, max_size=40))
def test_distinct_labels_are_those_of_numpy_whether_far_apart_or_close(labels):
    for y in (np.array(labels), np.array(labels) % 7 - 3, np.array(labels).astype(str)):
        ours, numpys = hmoh._distinct(y), np.unique(y, return_index=True, return_inverse=True)
        for one, other in zip(ours, numpys, strict=True):
            assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("labels", [[0, 2**63], [2**64 - 1, 2**64 - 2]])
def test_unsigned_labels_beyond_int64_are_refused(labels):
    X, y = stream(n_labels=2)
    with pytest.raises(ValueError, match=r"y holds \d+; numbers below 2\*\*63 .* pass y.astype\(str\)"):
        HMOH(8, random_state=0).fit(X, np.array(labels, np.uint64)[y])


def test_fit_is_one_pass_with_known_classes():
    X, y = stream()
    assert_same(HMOH(8, random_state=0).fit(X, y), HMOH(8, random_state=0).partial_fit(X, y, classes=[3, 1, 0, 2]), X)


def test_fit_forgets_what_was_before():
    X, y = stream()
    model = HMOH(8, RBF(n_anchors=5), batch_size=7, random_state=0).partial_fit(X[:, :3], ["a"] * 60)
    assert_same(HMOH(8, RBF(n_anchors=5), batch_size=7, random_state=0).fit(X, y), model.fit(X, y), X)


def test_seeds_make_models():
    X, y = stream()
    weights = [HMOH(32, random_state=seed).fit(X, y).weights_ for seed in (0, 0, 1)]
    assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
    generators = np.random.default_rng(5), np.random.default_rng(5)
    first, second = (HMOH(32, random_state=rng).fit(X, y).weights_ for rng in generators)
    assert_array_equal(first, second)
    assert not np.array_equal(HMOH(32).fit(X, y).weights_, HMOH(32).fit(X, y).weights_)


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 20])
def test_codes_are_packed_signs_with_empty_padding(n_bits):
    X, y = stream(integer=True)
    X[0] = 0  # sign(0) = -1
    model = HMOH(n_bits, random_state=0).fit(X, y)
    codes = model.transform(X)
    assert codes.dtype == np.uint8 and codes.shape == (60, -(-n_bits // 8))
    values = model.decision_function(X)
    assert values.dtype == np.float32 and values.shape == (60, n_bits)
    assert_array_equal(np.unpackbits(codes, axis=1, bitorder="little", count=n_bits), values > 0)
    assert not np.unpackbits(codes, axis=1, bitorder="little")[:, n_bits:].any()
    assert not codes[0].any()
    assert_array_equal(model.encode(X), codes, strict=True)
    assert_array_equal(HMOH(n_bits, random_state=0).fit_transform(X, y), codes, strict=True)
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
    model.transform(X), model.decision_function(X), model.weights_, model.targets_, repr(model), model.get_params()
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
    given_X, given_y = X[:30].copy(), y[:30].copy()
    model.partial_fit(given_X, given_y, classes=np.unique(y))
    given_X[:], given_y[:] = 9, 3  # a user reuses the arrays
    assert_same(expected, model.partial_fit(X[30:50], y[30:50]), X)


@numba.njit
def summed_up(X, y, C, W, total):
    """The perceptron in whole numbers, W added up at every step."""
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
    X = rng.integers(-9, 10, size=(6, 4))[y] + rng.integers(-20, 21, size=(n, 4))  # overlap: mistakes to the end
    model = feed(HMOH(8, random_state=0), X, y, [1_234_567, 3_000_001], classes=np.arange(6))
    W, total = np.zeros((2, 8, 4), np.int64)
    summed_up(X, y, target_rows(model, y)[1].astype(np.int64), W, total)
    assert abs(total).max() > 2**24  # what float32 could not have counted
    assert_array_equal(model.weights_, (total / n).T.astype(np.float32))
    assert model.n_steps_ == model.n_seen_ == n


# ---- codebook ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bits", [*range(1, 18), 31, 32, 33, 64])
@pytest.mark.parametrize("n_labels", [None, 1, 2, 8, 9, 40])
def test_order_is_the_least_power_of_two_not_below_bits_and_labels(n_bits, n_labels):
    assert Codebook(n_bits, "random", n_labels, 0).order == naive.order(n_bits, n_labels or 1)


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits", [4, 5])
def test_every_label_has_its_own_column_and_growth_uses_the_upper_half(codebook, n_bits):
    book = Codebook(n_bits, codebook, None, 0)
    first = book.order
    for label in range(40):
        book = book.add([label])
    assert book.order == 64
    assert len(set(book.columns.tolist())) == 40
    assert set(book.columns[:first].tolist()) == set(range(first))
    order = first
    while order < 32:
        assert set(book.columns[order : 2 * order].tolist()) == set(range(order, 2 * order))
        order *= 2


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("known", [True, False])
def test_targets_are_distinct_hadamard_columns_where_the_lengths_agree(codebook, known):
    X, y = stream(n_labels=10)
    targets = HMOH(16, codebook=codebook, random_state=0).partial_fit(X, y, np.arange(10) if known else None).targets_
    columns = {tuple(column) for column in naive.sylvester(16).T}
    assert set(targets) == set(range(10))
    assert {target.dtype for target in targets.values()} == {np.dtype(np.int8)}
    given = {tuple(target.tolist()) for target in targets.values()}
    assert len(given) == 10 and given <= columns


@pytest.mark.parametrize("n_bits, n_labels", [(5, 3), (8, 10), (12, 10), (3, 4), (1, 2)])
def test_targets_are_signs_of_projected_columns_where_the_lengths_differ(n_bits, n_labels):
    book = Codebook(n_bits, "random", n_labels, 7).add(list(range(n_labels)))
    H = naive.sylvester(book.order)
    assert book.order != n_bits and book.lsh.shape == (book.order, n_bits)
    for label, column in zip(range(n_labels), book.columns, strict=True):
        assert_array_equal(book.targets[label], np.where(book.lsh.T @ H[:, column] > 0, 1, -1))


def test_projections_are_standard_normal():
    lsh = Codebook(60, "random", 64, 0).lsh
    assert abs(lsh.mean()) < 0.05 and abs(lsh.std() - 1) < 0.05


def test_random_columns_are_any_columns():
    targets = [tuple(Codebook(4, "random", 3, seed).add([0]).targets[0].tolist()) for seed in range(200)]
    counts = [targets.count(tuple(column)) for column in naive.sylvester(4).T.tolist()]
    assert sum(counts) == 200 and min(counts) > 25


@pytest.mark.parametrize("n_bits", [16, 32, 64, 128])
def test_ordered_codes_of_ten_classes_repeat_every_16_bits(n_bits):
    X, y = stream(n_labels=10)
    targets = HMOH(n_bits, codebook="ordered").fit(X, y).targets_
    for label, column in enumerate(naive.sylvester(16)[:, :10].T):
        assert_array_equal(targets[label], np.tile(column, n_bits // 16))


def test_ordered_goes_by_sorted_order_if_classes_are_known_and_by_arrival_otherwise():
    X, y = np.eye(4), np.array([30, -10, 20, 10])
    H = naive.sylvester(4).T.tolist()
    by_order = dict(zip([-10, 10, 20, 30], H, strict=True))
    by_arrival = dict(zip(y.tolist(), H, strict=True))
    assert plain(HMOH(4, codebook="ordered").fit(X, y).targets_) == by_order
    assert plain(HMOH(4, codebook="ordered").partial_fit(X, y, classes=y).targets_) == by_order
    assert plain(HMOH(4, codebook="ordered").partial_fit(X, y).targets_) == by_arrival
    assert plain(HMOH(4, codebook="ordered", n_classes=4).partial_fit(X, y).targets_) == by_arrival


@pytest.mark.parametrize("known", [True, False])
def test_spread_is_random_where_the_lengths_agree(known):
    X, y = stream(n_labels=10)
    random, spread = (
        HMOH(16, codebook=kind, random_state=3).partial_fit(X, y, np.arange(10) if known else None)
        for kind in ("random", "spread")
    )
    assert plain(spread.targets_) == plain(random.targets_)


@pytest.mark.parametrize("seed", range(10))
def test_spread_is_never_worse_than_random(seed):
    X, y = stream(n_labels=10)
    random, spread = (HMOH(8, codebook=kind, random_state=seed).fit(X, y).targets_ for kind in ("random", "spread"))
    assert min_distance(spread) >= min_distance(random)
    assert min_distance(spread) >= 2  # the best of 2,000; a random draw mostly has 0 or 1


@pytest.mark.parametrize("n_bits, n_labels", [(4, 5), (12, 6)])  # with 4 bits many draws reach the best distance
def test_spread_takes_the_smaller_sum_of_squared_inner_products_among_equals(n_bits, n_labels):
    def score(kind, seed):
        targets = Codebook(n_bits, kind, n_labels, seed).add(list(range(n_labels))).targets
        T = np.stack(list(targets.values())).astype(int)
        return min_distance(targets), -np.square(T @ T.T).sum()

    assert score("spread", 0) >= max(score("random", seed) for seed in range(300))


@pytest.mark.parametrize("n_bits", [5, 6])
def test_spread_gives_every_new_label_of_an_open_stream_the_best_target_there_is(n_bits):
    codes = np.array(list(itertools.product([-1, 1], repeat=n_bits)))  # 2,000 draws see all of them
    book = Codebook(n_bits, "spread", None, 0).add(["first"])
    for label in range(20):
        T = np.stack(list(book.targets.values())).astype(int)
        book = book.add([label])
        inner = codes @ T.T
        best = min(zip(inner.max(axis=1).tolist(), np.square(inner).sum(axis=1).tolist(), strict=True))
        inner = book.targets[label] @ T.T
        assert (inner.max(), np.square(inner).sum()) == best


@pytest.mark.slow
def test_spread_of_many_classes_stays_quick():
    script = "import time, hmoh; t = time.time(); hmoh.Codebook(500, 'spread', 1000, 0); assert time.time() - t < 10"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_targets_do_not_depend_on_the_samples():
    X, y = stream()
    a, b = (HMOH(6, codebook="spread", random_state=0).fit(Z, y) for Z in (X, X[:, :2] ** 2))
    assert plain(a.targets_) == plain(b.targets_)


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(3, 8), (4, 16), (2, 4), (7, 30)])
def test_growth_keeps_old_targets_and_gives_new_ones_while_there_is_room(codebook, n_bits, n_labels):
    first = naive.order(n_bits, 1)
    for seed in range(5):
        model = HMOH(n_bits, codebook=codebook, random_state=seed)
        before = {}
        for label in range(n_labels):
            model.partial_fit([[1.0, label]], [label])
            targets = plain(model.targets_)
            assert {old: targets[old] for old in before} == before
            if label >= first:  # LSH may let two of the first labels agree, as the paper's does
                assert targets[label] not in before.values()
            before = targets


@pytest.mark.parametrize("codebook", KINDS)
def test_open_stream_of_more_labels_than_codes_goes_on(codebook):
    X, y = stream(100, n_labels=20)
    model = HMOH(2, codebook=codebook, random_state=0).partial_fit(X, y)
    assert len(model.targets_) == len(set(y.tolist()))
    assert len({tuple(target) for target in plain(model.targets_).values()}) == 4


def test_spread_finds_a_free_target_on_a_nearly_full_open_stream(monkeypatch):
    monkeypatch.setattr(hmoh, "DRAWS", 20)  # which miss the last free codes, as 2,000 do those of 10 bits or more
    book = Codebook(6, "spread", None, 0).add(list(range(64)))
    assert len({target.tobytes() for target in book.targets.values()}) == 64


@pytest.mark.parametrize("codebook", KINDS)
def test_number_of_classes_sets_the_order_from_the_start(codebook):
    X = np.ones((10, 2))
    known = HMOH(8, codebook=codebook, random_state=0).partial_fit(X, range(10), classes=range(10))
    counted = HMOH(8, codebook=codebook, n_classes=10, random_state=0).partial_fit(X, range(10))
    assert plain(known.targets_) == plain(counted.targets_)
    counted.partial_fit(X[:6], range(10, 16))
    assert {label: plain(counted.targets_)[label] for label in range(10)} == plain(known.targets_)
    assert len(counted.targets_) == 16


@pytest.mark.parametrize("codebook", KINDS)
def test_classes_get_targets_before_they_come_and_others_may_still_come(codebook):
    X = np.ones((2, 3))
    model = HMOH(4, codebook=codebook, random_state=0).partial_fit(X, ["b", "c"], classes=["a", "b", "c"])
    assert list(model.targets_) == ["a", "b", "c"]
    before = plain(model.targets_)
    model.partial_fit(X, ["z", "y"]).partial_fit(X, ["a", "b"], classes=["c", "a", "b"])
    assert list(model.targets_) == ["a", "b", "c", "z", "y"]
    assert {label: plain(model.targets_)[label] for label in "abc"} == before


# ---- several labels per sample -------------------------------------------------------------------------------------


@pytest.mark.parametrize("codebook", KINDS)
@pytest.mark.parametrize("n_bits, n_labels", [(8, 6), (16, 10), (64, 10)])
def test_multi_label_targets_keep_majorities_and_balance_by_their_ties(codebook, n_bits, n_labels):
    X, Y = multi_stream(200, n_labels=n_labels)
    model = HMOH(n_bits, codebook=codebook, random_state=0).fit(X, Y)
    assert list(model.targets_) == list(range(n_labels))
    sets = {tuple(np.flatnonzero(row).tolist()) for row in Y}
    assert set(model.label_set_targets_) == sets and len(sets) > 30
    for labels, target in model.label_set_targets_.items():
        assert target.dtype == np.int8
        assert naive.is_majority(target, [model.targets_[label] for label in labels])


@pytest.mark.parametrize("n_bits", [8, 16, 20])
@pytest.mark.parametrize("codebook", KINDS)
def test_target_of_a_single_label_is_the_labels_own(n_bits, codebook):
    X, Y = multi_stream(200, n_labels=10)
    model = HMOH(n_bits, codebook=codebook, random_state=0).fit(X, Y)
    singles = {labels[0]: target for labels, target in model.label_set_targets_.items() if len(labels) == 1}
    assert singles and all(plain(model.targets_)[label] == target for label, target in plain(singles).items())


def test_multi_label_targets_are_aligned_as_single_ones():
    book = Codebook(5, "random", 6, 0).add(list(range(6))).add_sets([(1, 4), (0, 1, 2), (0, 1, 2, 3)])
    H = naive.sylvester(8)[:, book.columns]
    for labels in [(1, 4), (0, 1, 2), (0, 1, 2, 3)]:
        codes = [np.array(code) for code in itertools.product([-1, 1], repeat=8)]
        codes = [code for code in codes if naive.is_majority(code, H[:, list(labels)].T)]
        assert tuple(book.targets[labels]) in {tuple(np.where(book.lsh.T @ code > 0, 1, -1)) for code in codes}


@quick
@given(st.permutations(range(60)), st.sets(st.integers(1, 59), max_size=5))
def test_ties_are_drawn_once_per_set_whatever_the_order_of_arrival(order, cuts):
    X, Y = multi_stream(n_labels=10)
    model = HMOH(16, random_state=0).fit(X, Y)
    other = feed(HMOH(16, random_state=0), X[order], Y[order], cuts)
    assert plain(other.label_set_targets_) == plain(model.label_set_targets_)


def test_ties_are_random():
    X, Y = multi_stream(n_labels=10)
    sets = [HMOH(16, codebook="ordered", random_state=seed).fit(X, Y).label_set_targets_ for seed in (0, 1)]
    assert plain(sets[0]) != plain(sets[1])
    pairs = np.array([[i in pair for i in range(10)] for pair in itertools.combinations(range(10), 2)])
    targets = HMOH(64, random_state=0).fit(np.ones((45, 2)), pairs).label_set_targets_
    assert len({target.tobytes() for target in targets.values()}) == 45  # the published code gives 36 of them one


def test_targets_seen_stay_when_other_sets_come():
    X, Y = multi_stream(n_labels=10)
    model = HMOH(12, random_state=0).partial_fit(X[:10], Y[:10])
    before = plain(model.label_set_targets_)
    after = plain(model.partial_fit(X, Y).label_set_targets_)
    assert {labels: after[labels] for labels in before} == before and len(after) > len(before)


# ---- warm-up and batches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("returns_self", [True, False])  # nothing says that fit returns the map
@pytest.mark.parametrize("warmup, used", [(None, 10), (4, 4), (25, 25)])
@pytest.mark.parametrize("parts", [[60], [3, 57], [1] * 60])
def test_map_is_fitted_on_exactly_the_first_samples_and_nothing_is_lost(returns_self, warmup, used, parts):
    X, y = stream(integer=True)
    given = Affine(10, returns_self)
    model = feed(HMOH(8, given, warmup=warmup, random_state=0), X, y, np.cumsum(parts)[:-1].tolist())
    assert not hasattr(given, "rows_")  # a copy is fitted
    assert_array_equal(model.feature_map_.rows_, X[:used])
    expected = HMOH(8, random_state=0).partial_fit(2 * X - X[0], y)
    assert_array_equal(model.weights_, expected.weights_)
    assert model.n_seen_ == model.n_steps_ == 60


def test_a_scikit_learn_transformer_is_a_map():
    X, y = stream()
    model = HMOH(8, StandardScaler(), warmup=30, random_state=0).fit(X, y)
    expected = HMOH(8, random_state=0).fit(StandardScaler().fit(X[:30]).transform(X), y)
    assert_array_equal(model.transform(X), expected.transform(StandardScaler().fit(X[:30]).transform(X)))


@pytest.mark.parametrize(
    "maps", [[], (), (Affine(5), Affine(10)), [Affine(5), Affine(10)]], ids=["[]", "()", "tuple", "list"]
)
def test_maps_are_applied_in_turn(maps):
    X, y = stream(integer=True)
    Z = X
    for mapping in maps:
        Z = copy.deepcopy(mapping).fit(Z[:10]).transform(Z)
    model = HMOH(8, maps, random_state=0).partial_fit(X, y)
    assert_array_equal(model.weights_, HMOH(8, random_state=0).partial_fit(Z, y).weights_)
    assert_array_equal(model.transform(X), HMOH(8, random_state=0).partial_fit(Z, y).transform(Z))


def test_until_the_warm_up_is_in_nothing_can_be_encoded():
    X, y = stream(700)
    model = HMOH(8, RBF(n_anchors=300), random_state=0)
    for start, n in [(0, 120), (120, 599)]:
        model.partial_fit(X[start:n], y[start:n])
        for use in (model.transform, model.encode, model.decision_function):
            with pytest.raises(NotFittedError, match=f"seen {n} of 600 warm-up samples"):
                use(X)
        assert not hasattr(model, "weights_") and not hasattr(model, "targets_") and not hasattr(model, "feature_map_")
    assert model.partial_fit(X[599:600], y[599:600]).transform(X).shape == (700, 1)
    assert_array_equal(model.feature_map_.anchors_, X[:300])


def test_warm_up_is_the_longest_of_the_maps():
    X, y = stream(50)
    model = HMOH(8, [Affine(7), RBF(n_anchors=10), Affine(12)])
    with pytest.raises(NotFittedError, match="seen 19 of 20 warm-up samples"):
        model.partial_fit(X[:19], y[:19]).transform(X)
    model.partial_fit(X[19:], y[19:])
    first, rbf, last = model.feature_map_
    assert_array_equal(first.rows_, X[:20])
    assert_array_equal(rbf.anchors_, first.transform(X[:10]))
    assert_allclose(last.rows_, rbf.transform(first.transform(X[:20])), rtol=1e-6)


def test_fit_uses_what_there_is_and_fewer_than_anchors_is_an_error():
    X, y = stream()
    model = HMOH(8, RBF(n_anchors=50), random_state=0).fit(X, y)
    assert_array_equal(model.feature_map_.anchors_, X[:50])
    assert model.feature_map_.eta2_ == pytest.approx(naive.eta2(X, 50, 10))
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.fit(X[:49], y[:49])
    assert_helpful(caught.value, "50", "49")
    assert pickle.dumps(model) == before


def test_rest_of_a_batch_waits_and_fit_learns_from_it():
    X, y = stream(integer=True)
    classes = np.unique(y)
    model = HMOH(8, batch_size=25, random_state=0)
    with pytest.raises(NotFittedError, match="24 of 25"):
        model.partial_fit(X[:24], y[:24], classes).transform(X)
    model.partial_fit(X[24:], y[24:])
    assert (model.n_seen_, model.n_steps_) == (60, 2)
    whole = HMOH(8, batch_size=25, random_state=0).fit(X[:50], y[:50])
    assert_array_equal(model.weights_, whole.weights_)
    fitted = HMOH(8, batch_size=25, random_state=0).fit(X, y)
    assert (fitted.n_seen_, fitted.n_steps_) == (60, 3)
    _, average = naive.perceptron(X, *target_rows(fitted, y), 25)
    assert_array_equal(fitted.weights_, average.T.astype(np.float32))
    assert_array_equal(model.partial_fit(X[:15], y[:15]).n_steps_, 3)


def test_learning_goes_on_after_fit():
    X, y = stream(integer=True)
    model = HMOH(8, random_state=0).fit(X[:30], y[:30])
    assert_same(HMOH(8, random_state=0).fit(X, y), model.partial_fit(X[30:], y[30:]), X)


# ---- files ---------------------------------------------------------------------------------------------------------

STRINGS = np.array(["ape", "a longer name", "", "ü"])
PHASES = {
    "plain": {},
    "mid-batch": {"batch_size": 7},
    "last state": {"ensemble": False},
    "generator": {"random_state": np.random.default_rng(3)},
    "unseeded": {"random_state": None},
    "numpy scalars": {
        **{"n_bits": np.int64(8), "batch_size": np.int32(7), "n_classes": np.uint8(4), "random_state": np.int64(3)},
        **{"learning_rate": np.float32(0.5), "ensemble": np.True_, "n_threads": np.int64(1), "warmup": np.uint16(3)},
    },
    "growing": {"n_bits": 3, "labels": 12},
    "growing spread": {"n_bits": 3, "labels": 12, "codebook": "spread"},
    "growing ordered": {"n_bits": 4, "labels": 12, "codebook": "ordered"},
    "known": {"n_bits": 5, "codebook": "spread", "classes": np.arange(4)},
    "number known": {"n_bits": 5, "codebook": "spread", "n_classes": 4},
    "strings": {"labels": STRINGS},
    "known strings": {"labels": STRINGS, "classes": STRINGS, "batch_size": 7},
    "multi": {"multi": True, "n_bits": 8},
    "multi aligned mid-batch": {"multi": True, "n_bits": 6, "batch_size": 7, "codebook": "spread"},
    "rbf": {"maps": lambda: RBF(n_anchors=8)},
    "rbf centred, strings": {"maps": lambda: RBF(8, 6.0, center=True), "labels": STRINGS, "batch_size": 3},
    "rbf, known": {"maps": lambda: RBF(n_anchors=8), "n_bits": 5, "codebook": "spread", "classes": np.arange(4)},
    "unit length": {"maps": UnitLength, "warmup": 15},
    "list": {"maps": lambda: [UnitLength(), RBF(n_anchors=8)], "warmup": 15},
    "list of one, multi": {"maps": lambda: [RBF(n_anchors=8)], "multi": True},
}


def phase(name):
    """(model, X, y, classes, maker of maps) of a phase of learning."""
    params = {"n_bits": 8, "random_state": 3} | PHASES[name]
    labels, classes, maps = params.pop("labels", 4), params.pop("classes", None), params.pop("maps", lambda: None)
    X, y = either_stream(params.pop("multi", False), n_labels=labels if isinstance(labels, int) else len(labels))
    return HMOH(feature_map=maps(), **params), X, y if isinstance(labels, int) else labels[y], classes, maps


@pytest.mark.parametrize("n", [1, 10, 25, 59])
@pytest.mark.parametrize("name", PHASES)
def test_learning_goes_on_from_a_file_exactly_where_it_stopped(name, n, tmp_path):
    model, X, y, classes, maps = phase(name)
    model.partial_fit(X[:n], y[:n], classes)
    before = pickle.dumps(model)
    model.save(tmp_path / "model.npz")
    assert pickle.dumps(model) == before
    assert os.listdir(tmp_path) == ["model.npz"]
    loaded = HMOH.load(tmp_path / "model.npz", feature_map=maps())
    assert_same(model, loaded, X)
    for start, stop in [(n, n + 1), (n + 1, 60), (0, 60)]:
        if start < stop:
            model.partial_fit(X[start:stop], y[start:stop])
            loaded.partial_fit(X[start:stop], y[start:stop])
        assert_same(model, loaded, X)
    loaded.save(tmp_path / "again.npz")
    assert_same(model, HMOH.load(tmp_path / "again.npz", feature_map=maps()), X)


def test_a_loaded_model_has_the_same_parameters(tmp_path):
    X, y = stream()
    model = HMOH(9, RBF(8, 3.0, True), "spread", False, 2, 0.5, 7, 20, 1, 5).fit(X, y)
    model.save(tmp_path / "m.npz")
    loaded = HMOH.load(tmp_path / "m.npz", feature_map=RBF())
    assert repr(loaded) == repr(model)
    assert_same(model.fit(X, y), loaded.fit(X, y), X)


def test_classes_named_late_do_not_change_what_a_file_gives_back(tmp_path):
    X, y = stream(n_labels=12)
    model = HMOH(5, random_state=0).partial_fit(X[:2], y[:2])
    try:
        model.partial_fit(X[2:4], y[2:4], classes=np.arange(12))
    except ValueError as error:  # refusing them is as good
        assert_helpful(error, "classes")
    model.save(tmp_path / "m.npz")
    loaded = HMOH.load(tmp_path / "m.npz")
    assert_same(model.partial_fit(X, y), loaded.partial_fit(X, y), X)


@pytest.mark.parametrize("name, value", [("n_bits", 16), ("n_bits", 4), ("codebook", "ordered"), ("batch_size", 2)])
def test_a_parameter_changed_on_the_way_cannot_slip_through_a_file(name, value, tmp_path):
    X, y = stream(n_labels=12)
    model = HMOH(8, random_state=0).partial_fit(X, y).set_params(**{name: value})
    try:
        model.save(tmp_path / "m.npz")
    except ValueError as error:  # refusing it at once is as good
        assert_helpful(error, name)
        assert os.listdir(tmp_path) == []
    else:
        loaded = HMOH.load(tmp_path / "m.npz")
        assert_array_equal(loaded.transform(X), model.transform(X))
        with pytest.raises(ValueError, match=name):
            loaded.partial_fit(X, y)


def test_a_file_holds_no_pickle_and_keeps_its_name(tmp_path):
    X, y = stream()
    HMOH(8, RBF(n_anchors=8)).fit(X, y).save(str(tmp_path / "model"))
    assert os.listdir(tmp_path) == ["model"]
    with np.load(tmp_path / "model", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
        assert json.loads(file["head"].item())["params"]["n_bits"] == 8
        assert file["format"].item().startswith("hmoh")


def saved(tmp_path, **params):
    X, y = stream()
    HMOH(8, random_state=0, **params).fit(X, y).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def assert_not_loaded(path, kind=HMOH):
    def load():
        with pytest.raises(ValueError) as caught:
            kind.load(path)
        assert_helpful(caught.value, str(path))

    load()
    gc.collect()  # a file left open warns here


@pytest.mark.parametrize("share", [0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
def test_a_cut_file_is_a_value_error(tmp_path, share):
    path = saved(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert_not_loaded(path)


def test_a_damaged_file_is_a_value_error(tmp_path):
    path = saved(tmp_path)
    content = bytearray(path.read_bytes())
    at = content.index("hmoh".encode("utf-32-le"))  # in the stored format, whose checksum fails now
    content[at] ^= 1
    path.write_bytes(content)
    assert_not_loaded(path)


def test_a_foreign_file_is_a_value_error(tmp_path):
    path = tmp_path / "foreign"
    path.write_text("n_bits: 8\n")
    assert_not_loaded(path)
    with open(path, "wb") as file:
        np.save(file, np.arange(10))
    assert_not_loaded(path)
    with open(path, "wb") as file:
        np.savez(file, a=np.arange(10))
    assert_not_loaded(path)
    with open(path, "wb") as file:
        np.savez(file, format=np.array([{"a": 1}], object))
    assert_not_loaded(path)
    with open(path, "wb") as file:
        pickle.dump({"a": 1}, file)
    assert_not_loaded(path)


def test_a_file_of_another_version_or_class_is_a_value_error(tmp_path):
    class Other(HMOH):
        pass

    path = saved(tmp_path)
    assert_not_loaded(path, Other)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["format"] = np.array(str(arrays["format"]).replace("1", "2"))
    np.savez(path, **arrays)
    assert_not_loaded(path)


@pytest.mark.parametrize("gone", ["head", "model/n_seen_", "model/_W", "model/targets"])
def test_a_file_that_lacks_something_is_a_value_error(tmp_path, gone):
    path = saved(tmp_path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays.pop(gone)
    np.savez(path, **arrays)
    assert_not_loaded(path)


def test_a_missing_file_is_reported_as_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        HMOH.load(tmp_path / "none.npz")


@pytest.mark.parametrize(
    "saved_with, loaded_with",
    [
        (RBF(8), None),
        ([UnitLength(), RBF(8)], RBF(8)),
        (RBF(8), [UnitLength(), RBF(8)]),
        (None, RBF(8)),
        (RBF(8), UnitLength()),
        ([UnitLength(), RBF(8)], [RBF(8), UnitLength()]),
    ],
)
def test_maps_that_do_not_fit_the_file_are_an_error(tmp_path, saved_with, loaded_with):
    path = saved(tmp_path, feature_map=saved_with)
    with pytest.raises(ValueError) as caught:
        HMOH.load(path, feature_map=loaded_with)
    assert_helpful(caught.value)
    if loaded_with is None:
        assert "feature_map=RBF()" in str(caught.value)


@pytest.mark.parametrize("loaded_with", [RBF, Affine(), StandardScaler()])
def test_a_map_that_cannot_be_filled_is_an_error(tmp_path, loaded_with):
    path = saved(tmp_path, feature_map=RBF(8))
    with pytest.raises(TypeError) as caught:
        HMOH.load(path, feature_map=loaded_with)
    assert_helpful(caught.value, "set_state" if loaded_with is not RBF else "RBF()")


def test_a_map_and_a_list_of_one_are_told_apart_in_words(tmp_path):
    path = saved(tmp_path, feature_map=[RBF(8)])
    with pytest.raises(ValueError) as caught:
        HMOH.load(path, feature_map=RBF(8))
    assert_helpful(caught.value, "list")


class Stateless:
    n_warmup = 1

    def fit(self, X):
        return self

    def transform(self, X):
        return 2 * X

    def get_state(self):
        return {}

    def set_state(self, state):
        assert not state


def test_a_map_that_does_not_say_what_it_needs_wants_a_warmup():
    X, y = stream()
    with pytest.raises(ValueError, match=r"warmup=None, but StandardScaler\(\) has no n_warmup; pass"):
        HMOH(8, StandardScaler()).fit(X, y)
    HMOH(8, StandardScaler(), warmup=len(X)).fit(X, y)


def test_a_map_without_state_can_be_saved(tmp_path):
    X, y = stream()
    model = HMOH(8, Stateless(), random_state=0).fit(X, y)
    model.save(tmp_path / "m.npz")
    assert_same(model, HMOH.load(tmp_path / "m.npz", feature_map=Stateless()), X)


def test_a_map_that_cannot_be_saved_is_a_type_error_and_writes_nothing(tmp_path):
    X, y = stream()
    model = HMOH(8, [UnitLength(), Affine()], warmup=20).fit(X, y)
    with pytest.raises(TypeError, match="get_state"):
        model.save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_a_state_that_needs_pickle_is_refused(tmp_path):
    class Odd(Stateless):
        def get_state(self):
            return {"inner": None}

    X, y = stream()
    model = HMOH(8, Odd()).fit(X, y)
    with pytest.raises((TypeError, ValueError)):
        model.save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        HMOH().save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("broken", [(np, "savez"), (os, "replace")])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failing_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, broken, error):
    path = saved(tmp_path)
    before = path.read_bytes()

    def fail(file, *args, **kwargs):
        if hasattr(file, "write"):
            file.write(b"half")
        raise error("disk full")

    X, y = stream(seed=1)
    model = HMOH(8).fit(X, y)
    monkeypatch.setattr(*broken, fail)
    with pytest.raises(error, match="disk full"):
        model.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]


def test_a_missing_folder_is_named_not_the_temporary_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        HMOH(8).fit(*stream()).save(tmp_path / "none" / "model.npz")
    assert_helpful(caught.value, str(tmp_path / "none"), "model.npz")
    assert ".tmp" not in str(caught.value)


def test_a_loaded_model_does_not_share_the_map_it_was_given(tmp_path):
    path = saved(tmp_path, feature_map=RBF(8))
    given = RBF()
    a = HMOH.load(path, feature_map=given)
    codes = a.transform(stream()[0])
    given.fit(stream(seed=5)[0])
    assert_array_equal(a.transform(stream()[0]), codes)


# ---- scikit-learn, pickle ------------------------------------------------------------------------------------------


def test_parameters_are_only_stored():
    marker = object()
    for name in HMOH().get_params():
        assert getattr(HMOH(**{name: marker}), name) is marker
    assert list(HMOH().get_params()) == [
        "n_bits", "feature_map", "codebook", "ensemble", "batch_size", "learning_rate", "n_classes", "warmup",
        "n_threads", "random_state",
    ]  # fmt: skip


def test_clone_gives_an_unfitted_equal():
    X, y = stream()
    for maps in (None, RBF(8), [UnitLength(), RBF(8)]):
        model = HMOH(12, maps, codebook="spread", batch_size=3, random_state=4).fit(X, y)
        twin = clone(model)
        assert repr(twin) == repr(model) and not hasattr(twin, "n_seen_")
        assert maps is None or twin.feature_map is not model.feature_map
        assert_same(model, twin.fit(X, y), X)


def test_nested_parameters_are_seen_and_set():
    model = HMOH(feature_map=RBF(8))
    assert model.get_params()["feature_map__n_anchors"] == 8
    assert "feature_map__n_anchors" not in model.get_params(deep=False)
    assert model.set_params(feature_map__n_anchors=9, n_bits=5) is model
    assert (model.feature_map.n_anchors, model.n_bits) == (9, 5)
    model = HMOH(feature_map=[UnitLength(), RBF(8)])
    assert model.get_params()["feature_map__1__divisor"] == 10
    model.set_params(feature_map__1__divisor=6, feature_map__1__center=True)
    assert repr(model.feature_map[1]) == "RBF(n_anchors=8, divisor=6, center=True)"


def test_parameters_of_a_pipeline_as_map_are_seen_and_set():
    model = HMOH(feature_map=Pipeline([("scale", StandardScaler()), ("rbf", RBF(8))]), warmup=20)
    assert model.get_params()["feature_map__rbf__n_anchors"] == 8
    model.set_params(feature_map__rbf__n_anchors=7)
    assert model.feature_map["rbf"].n_anchors == 7
    X, y = stream()
    assert model.fit(X, y).weights_.shape == (7, 32)


def test_a_map_and_its_parameters_can_be_set_in_one_call():
    model = HMOH().set_params(feature_map=RBF(), feature_map__n_anchors=9)
    assert model.feature_map.n_anchors == 9


@pytest.mark.parametrize("name", ["bits", "feature_map__n_anchor", "feature_map__0__n_anchors", "feature_map__"])
def test_an_unknown_parameter_is_an_error_and_sets_nothing(name):
    model = HMOH(feature_map=RBF(8))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        model.set_params(n_bits=5, **{name: 3})
    assert pickle.dumps(model) == before


def test_works_in_a_pipeline():
    X, y = stream()
    pipeline = Pipeline([("map", RBF(n_anchors=8)), ("hash", HMOH(8, random_state=0))]).fit(X, y)
    Z = RBF(n_anchors=8).fit(X).transform(X)
    assert_array_equal(pipeline.transform(X), HMOH(8, random_state=0).fit(Z, y).transform(Z))
    pipeline.set_params(hash__n_bits=16, map__n_anchors=5)
    assert clone(pipeline).fit_transform(X, y).shape == (60, 2)


def agreement(model, X, y):
    bits = np.unpackbits(model.transform(X), axis=1, bitorder="little", count=model.n_bits)
    return np.mean(bits == np.stack([model.targets_[label] for label in y.tolist()] > np.int8(0)))


def test_works_in_a_grid_search():
    X, y = stream(90)
    grid = {"n_bits": [4, 8], "feature_map__n_anchors": [3, 10], "learning_rate": [0.1, 1]}
    search = GridSearchCV(HMOH(feature_map=RBF(), random_state=0), grid, scoring=agreement, cv=3, error_score="raise")
    search.fit(X, y)
    scores = search.cv_results_["mean_test_score"].reshape(2, 2, 2)  # n_anchors, learning_rate, n_bits
    assert_array_equal(scores[:, 0], scores[:, 1])
    assert scores.max() > 0.7
    assert search.best_estimator_.n_seen_ == 90
    assert search.best_estimator_.feature_map_.anchors_.shape == (search.best_params_["feature_map__n_anchors"], 5)


def test_repr_makes_the_model_again():
    model = HMOH(9, [UnitLength(), RBF(7, center=True)], "spread", False, 2, 0.5, 7, 20, 1, 5)
    assert repr(eval(repr(model))) == repr(model)


@pytest.mark.parametrize("copy_of", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
@pytest.mark.parametrize("n", [10, 25])
@pytest.mark.parametrize("name", ["plain", "mid-batch", "growing spread", "multi", "list", "generator", "affine"])
def test_a_copy_goes_on_like_the_original(name, n, copy_of, monkeypatch):
    monkeypatch.setitem(PHASES, "affine", {"maps": Affine, "warmup": 15})
    model, X, y, classes, _ = phase(name)
    model.partial_fit(X[:n], y[:n], classes)
    twin = copy_of(model)
    assert_same(model, twin, X)
    twin.partial_fit(X[n:], y[n:])
    assert_same(model.partial_fit(X[n:], y[n:]), twin, X)


# ---- bad input -----------------------------------------------------------------------------------------------------


def changed(a, at, value, dtype=None):
    a = np.array(a, dtype)
    a[at] = value
    return a


X0, Y0 = stream()
M0 = multi_stream()[1]
BAD_FEATURES = {
    "nan": (changed(X0, (3, 1), np.nan), ValueError, ["X[3, 1]", "nan"]),
    "inf": (changed(X0, (59, 4), np.inf), ValueError, ["X[59, 4]", "inf"]),
    "minus inf": (changed(X0, (0, 0), -np.inf), ValueError, ["X[0, 0]", "-inf"]),
    "too large": (changed(X0, (3, 1), 1e39, float), ValueError, ["X[3, 1]", "1e+39", "float32"]),
    "no rows": (X0[:0], ValueError, ["(0, 5)", "more samples"]),
    "no columns": (X0[:, :0], ValueError, ["(60, 0)"]),
    "one row alone": (X0[0], ValueError, ["(5,)", "reshape(1, -1)"]),
    "three axes": (X0[None], ValueError, ["(1, 60, 5)", "reshape(len(X), -1)"]),
    "a number": (5.0, ValueError, ["()"]),
    "strings": (X0.astype(str), TypeError, ["<U"]),
    "objects": (X0.astype(object), TypeError, ["object"]),
    "none": (None, TypeError, ["object"]),
    "complex": (X0.astype(complex), TypeError, ["complex128"]),
    "dates": (X0.astype("M8[s]"), TypeError, ["datetime64"]),
    "sparse array": (scipy.sparse.csr_array(X0), TypeError, ["csr_array", "toarray()"]),
    "sparse matrix": (scipy.sparse.csc_matrix(X0), TypeError, ["csc_matrix", "toarray()"]),
}
BAD_LABELS = {
    "too few": (Y0[:59], ValueError, ["(59,)", "60"]),
    "too many": (np.append(Y0, 0), ValueError, ["(61,)", "60"]),
    "missing": (None, TypeError, ["y"]),
    "a number": (3, ValueError, ["()", "60"]),
    "floats": (Y0.astype(float), TypeError, ["float64", "astype(int)"]),
    "objects": (np.array([0, "a"] * 30, object), TypeError, ["object"]),
    "complex": (Y0.astype(complex), TypeError, ["complex128"]),
    "one column": (Y0[:, None], ValueError, ["(60, 1)", "ravel()"]),
    "three axes": (np.zeros((60, 2, 2), int), ValueError, ["(60, 2, 2)"]),
    "matrix of strings": (M0.astype(str), TypeError, ["<U"]),
    "matrix of floats": (M0.astype(float), TypeError, ["float64"]),
    "no label": (changed(M0, 7, 0), ValueError, ["y[7]"]),
    "a 2": (changed(M0, (3, 1), 2), ValueError, ["y[3, 1]", "2"]),
    "a -1": (changed(M0, (3, 1), -1), ValueError, ["y[3, 1]", "-1"]),
    "matrix too short": (M0[:59], ValueError, ["(59, 6)", "60"]),
}
BAD_CALLS = {f"X {name}": (X, Y0, *rest) for name, (X, *rest) in BAD_FEATURES.items()}
BAD_CALLS |= {f"y {name}": (X0, y, *rest) for name, (y, *rest) in BAD_LABELS.items()}


@pytest.mark.parametrize("call", ["partial_fit", "fit"])
@pytest.mark.parametrize("phase", ["unfitted", "fitted", "warm-up", "mid-batch"])
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_samples_are_explained_and_leave_the_model_as_it_was(name, phase, call):
    X, y, error, words = BAD_CALLS[name]
    good = M0 if np.ndim(y) == 2 else Y0
    maps = RBF(n_anchors=40) if phase == "warm-up" else None
    model = HMOH(8, maps, batch_size=7 if phase == "mid-batch" else 1, random_state=0)
    if phase != "unfitted":
        model.partial_fit(X0, good)
    before = pickle.dumps(model)
    with pytest.raises(error) as caught:
        getattr(model, call)(X, y)
    assert_helpful(caught.value, *words)
    assert pickle.dumps(model) == before


def test_lists_of_labels_are_told_of_the_matrix():
    with pytest.raises(ValueError) as caught:
        HMOH(8).fit(X0, [[0, 1], [2]] * 30)
    assert_helpful(caught.value, "y is not", "inhomogeneous", "matrix of 0 and 1")


def test_an_impossible_map_is_explained_before_its_samples_are_counted():
    with pytest.raises(ValueError) as caught:
        HMOH(8, RBF("20")).partial_fit(X0, Y0)
    assert_helpful(caught.value, "n_anchors='20'", "whole number")


@pytest.mark.parametrize("use", ["transform", "encode", "decision_function"])
@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_cannot_be_encoded(name, use):
    X, error, words = BAD_FEATURES[name]
    model = HMOH(8, random_state=0).fit(X0, Y0)
    with pytest.raises(error) as caught:
        getattr(model, use)(X)
    assert_helpful(caught.value, *words)


@pytest.mark.parametrize(
    "use, maps",
    [
        *itertools.product(["partial_fit", "transform", "decision_function"], [None, RBF(8)]),
        ("partial_fit", RBF(40)),  # in its warm-up
    ],
)
def test_another_width_is_an_error(use, maps):
    model = HMOH(8, maps, random_state=0).partial_fit(X0, Y0)
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        getattr(model, use)(X0[:, :4], *([Y0] if use == "partial_fit" else []))
    assert_helpful(caught.value, "4", "5")
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    "first, then, words",
    [
        (Y0, Y0.astype(str), ["strings", "integers"]),
        (Y0.astype(str), Y0, ["strings", "integers"]),
        (Y0, M0, ["6 columns", "integers"]),
        (M0, Y0, ["6 columns", "integers"]),
        (M0, np.pad(M0, ((0, 0), (0, 1))), ["6 columns", "7 columns"]),
    ],
)
@pytest.mark.parametrize("maps", [None, RBF(40)])
def test_another_kind_of_labels_is_an_error(first, then, words, maps):
    model = HMOH(8, maps, random_state=0).partial_fit(X0, first)
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, then)
    assert_helpful(caught.value, *words)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("classes", [[0, 1, 2], [0, 1, 2, 9], [0, 1, 2, 3, 4]])
def test_other_classes_than_at_first_are_an_error(classes):
    model = HMOH(8, random_state=0).partial_fit(X0, Y0, classes=[0, 1, 2, 3])
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0, classes)
    assert_helpful(caught.value, "classes", str(classes[-1]))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(
    "classes, words",
    [
        ([0.0, 1.0], ["float64"]),
        ([[0, 1], [2, 3]], ["(2, 2)"]),
        (4, ["()"]),
        ([], []),
        (["a", "b", "c", "d"], []),
    ],
)
def test_impossible_classes_are_an_error(begun, classes, words):
    model = HMOH(8, random_state=0)
    if begun:
        model.partial_fit(X0, Y0, classes=[0, 1, 2, 3])
    before = pickle.dumps(model)
    with pytest.raises((TypeError, ValueError)) as caught:
        model.partial_fit(X0, Y0, classes)
    assert_helpful(caught.value, "classes", *words)
    assert pickle.dumps(model) == before


def test_classes_of_a_matrix_are_its_columns():
    with pytest.raises(ValueError, match="classes"):
        HMOH(8).partial_fit(X0, M0, classes=np.arange(6))


@pytest.mark.parametrize(
    "params, error",
    [
        *[({"n_bits": value}, ValueError) for value in (0, -1, True, 2.5, 8.0, "8", None, np.nan)],
        *[({"batch_size": value}, ValueError) for value in (0, True, 1.5, None, "1")],
        *[({"learning_rate": value}, ValueError) for value in (0, -1, np.nan, np.inf, "1", None, 1j)],
        *[({"codebook": value}, ValueError) for value in ("best", None, 3, ["random"], "Random")],
        *[({"n_classes": value}, ValueError) for value in (0, 2.5, True, "4")],
        *[({"warmup": value}, ValueError) for value in (0, 2.5, True)],
        *[({"n_threads": value}, ValueError) for value in (0, -1, 1.5)],
        *[({"feature_map": value}, TypeError) for value in (RBF, "rbf", object(), [RBF(), UnitLength], 3)],
        *[({"ensemble": value}, ValueError) for value in ("no", None, 2)],
        *[({"random_state": value}, (TypeError, ValueError)) for value in ("a", -1, 1.5, np.random.RandomState(0))],
    ],
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_impossible_parameters_are_explained_and_nothing_is_begun(params, error, call):
    model = HMOH(**params)
    with pytest.raises(error) as caught:
        getattr(model, call)(X0, Y0)
    ((name, value),) = params.items()
    assert_helpful(caught.value, name, repr(value[1] if isinstance(value, list) and name == "feature_map" else value))
    assert vars(model) == vars(HMOH(**params))


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("y", [Y0, M0])
def test_too_small_a_number_of_classes_is_an_error(n_classes, y):
    model = HMOH(8, n_classes=n_classes)
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.fit(X0, y)
    assert_helpful(caught.value, f"n_classes={n_classes}", "4" if y is Y0 else "6")
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("maps", [None, RBF(8)])
def test_unfitted_use_is_an_error(maps):
    model = HMOH(feature_map=maps)
    with pytest.raises(ValueError):
        check_is_fitted(model)
    check_is_fitted(HMOH(feature_map=maps).fit(X0, Y0))
    for use in (model.transform, model.encode, model.decision_function):
        with pytest.raises(NotFittedError) as caught:
            use(X0)
        assert isinstance(caught.value, (ValueError, AttributeError))
        assert_helpful(caught.value, "HMOH", "fit")
    for name in ("weights_", "targets_", "label_set_targets_", "n_seen_", "feature_map_"):
        assert not hasattr(model, name)


@pytest.mark.parametrize(
    "name, value",
    [
        ("n_bits", 16),
        ("codebook", "ordered"),
        ("ensemble", False),
        ("batch_size", 2),
        ("learning_rate", 0.5),
        ("n_classes", 20),
        ("warmup", 30),
        ("random_state", 1),
        ("feature_map__n_anchors", 9),
        ("feature_map", None),
    ],
)
@pytest.mark.parametrize("n", [5, 60])  # in the warm-up and after
def test_a_parameter_changed_on_the_way_is_an_error(name, value, n):
    model = HMOH(8, RBF(8), warmup=20, random_state=0).partial_fit(X0[:n], Y0[:n])
    old = model.get_params()[name]
    model.set_params(**{name: value})
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0)
    assert_helpful(caught.value, name.partition("__")[0], "fit")
    assert pickle.dumps(model) == before
    twin = copy.deepcopy(model).fit(X0, Y0)
    assert twin.get_params()[name] == value and twin.n_seen_ == 60
    assert model.set_params(**{name: old}).partial_fit(X0, Y0).n_seen_ == n + 60


def test_number_of_threads_may_change_on_the_way():
    a, b = (HMOH(8, random_state=0).partial_fit(X0, Y0) for _ in range(2))
    assert_same(a.partial_fit(X0, Y0), b.set_params(n_threads=1).partial_fit(X0, Y0), X0)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("begun", [0, 5, 30])  # unfitted, in the warm-up, learning
@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("call", ["partial_fit", "fit"])
def test_a_map_that_fails_midway_leaves_the_model_as_it_was(monkeypatch, error, begun, left, call):
    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 14)  # so that blocks have been learned from when it fails
    X, y = stream(integer=True, n_labels=12)
    models = [HMOH(3, Fused(10), batch_size=7, random_state=0) for _ in range(2)]
    for model in models if begun else ():
        model.partial_fit(X[:begun], y[:begun])
    failed, spared = models
    before = pickle.dumps(failed)
    monkeypatch.setattr(Fused, "fuse", (error, left))
    with pytest.raises(error, match="blown"):
        getattr(failed, call)(X, y)
    monkeypatch.setattr(Fused, "fuse", None)
    assert pickle.dumps(failed) == before
    assert_same(spared.partial_fit(X[begun:], y[begun:]), failed.partial_fit(X[begun:], y[begun:]), X)


@pytest.mark.parametrize("fault", ["labels", "n_classes", "map"])
def test_a_failed_call_takes_nothing_from_a_generator(fault, monkeypatch):
    failed, spared = (HMOH(8, Fused(10), random_state=np.random.default_rng(0)) for _ in range(2))
    if fault == "n_classes":
        failed.n_classes = 2
    if fault == "map":
        monkeypatch.setattr(Fused, "fuse", (ValueError, 1))
    with pytest.raises(ValueError):
        failed.fit(X0, Y0[:5] if fault == "labels" else Y0)
    failed.n_classes = None
    assert_same(spared.fit(X0, Y0), failed.fit(X0, Y0), X0)


@pytest.mark.parametrize(
    "output",
    [
        lambda X: np.full(X.shape, np.nan),
        lambda X: np.ones(len(X)),
        lambda X: X.astype(complex),
        lambda X: X[1:],  # a row too few; the compiled loop would not notice
        lambda X: X[:, : 1 + len(X) % 3],  # as many features as the block pleases
    ],
)
def test_bad_output_of_a_map_is_an_error(output, monkeypatch):
    class Bad(Affine):
        def transform(self, X):
            return output(X)

    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 7)
    model = HMOH(8, Bad(9))
    before = pickle.dumps(vars(model) | {"feature_map": None})
    with pytest.raises((TypeError, ValueError)):
        model.partial_fit(X0, Y0)
    assert pickle.dumps(vars(model) | {"feature_map": None}) == before


# ---- arrays that simply work ---------------------------------------------------------------------------------------


class Frame:
    """What numpy sees of a DataFrame."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)

    def __len__(self):
        return len(self.values)


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(a.tobytes(), np.uint8)
    return memory.view(a.dtype).reshape(a.shape)


FORMS = {
    **{np.dtype(t).name: lambda X, t=t: X.astype(t) for t in (*"BbHhIiLlQq", *"efdg")},
    "big endian": lambda X: X.astype(">f8"),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "unaligned": unaligned,
    "list": lambda X: X.tolist(),
    "list of rows": list,
    "frame": Frame,
    "matrix": lambda X: np.ma.array(X),
}


@pytest.mark.parametrize("form", FORMS)
def test_features_of_any_form_work(form):
    X, y = stream(integer=True)
    X -= X.min()
    given = FORMS[form](X)
    expected = HMOH(8, batch_size=7, random_state=0).fit(X, y)
    model = HMOH(8, batch_size=7, random_state=0).partial_fit(given, y, np.unique(y))
    assert_array_equal(model.fit(given, y).weights_, expected.weights_)
    assert_array_equal(model.transform(given), expected.transform(X))


def test_bool_features_work():
    X, y = stream()
    assert_same(HMOH(8, random_state=0).fit(X > 0, y), HMOH(8, random_state=0).fit((X > 0).astype(float), y), X)


LABEL_FORMS = {
    "list": list,
    "ints": lambda y: y.tolist(),
    **{np.dtype(t).name: lambda y, t=t: y.astype(t) for t in "BbHIQq"},
    "read-only": read_only,
    "strided": lambda y: np.repeat(y, 2, axis=0)[::2],
    "big endian": lambda y: y.astype(">i4"),
    "frame": Frame,
}


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("form", LABEL_FORMS)
def test_labels_of_any_form_work(form, multi):
    X, y = either_stream(multi)
    y = abs(y)
    assert_same(HMOH(8, random_state=0).fit(X, y), HMOH(8, random_state=0).fit(X, LABEL_FORMS[form](y)), X)


def test_bool_and_string_labels_work():
    X, y = stream(n_labels=2)
    assert set(HMOH(8).fit(X, y > 0).targets_) == {0, 1}
    names = np.array(["no", "yes"])[y]
    expected = HMOH(8, random_state=0).fit(X, names)
    for form in (names.tolist(), names.astype(object), Frame(names.astype(object)), list(names)):
        assert_same(expected, HMOH(8, random_state=0).fit(X, form), X)
    assert {type(label) for label in expected.targets_} == {str}
    X, Y = multi_stream()
    assert_same(HMOH(8, random_state=0).fit(X, Y), HMOH(8, random_state=0).fit(X, Y.astype(bool)), X)


def test_strings_may_grow_longer_along_the_stream():
    X, _ = stream(9)
    model = HMOH(8, batch_size=4).partial_fit(X[:3], ["a", "b", "a"]).partial_fit(X[3:], ["a longer one"] * 6)
    assert list(model.targets_) == ["a", "b", "a longer one"]


def test_a_pipeline_of_one_sample_one_feature_one_class_works():
    model = HMOH(1, random_state=0).fit([[2.0]], [7])
    assert list(model.targets_) == [7] and model.transform([[2.0]]).shape == (1, 1)


# ---- threads, processes, compilation -------------------------------------------------------------------------------


def test_encoding_from_several_threads_at_once_agrees():
    X, y = stream(500)
    model = HMOH(32, RBF(n_anchors=20), random_state=0).fit(X, y)
    parts = [X[start:] for start in range(32)]
    expected = [model.transform(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for codes, alone in zip(pool.map(model.transform, parts), expected, strict=True):
            assert_array_equal(codes, alone)


def test_models_learn_in_several_threads_at_once():
    X, y = stream(200)
    with ThreadPoolExecutor(4) as pool:
        weights = list(pool.map(lambda seed: HMOH(16, random_state=seed).fit(X, y).weights_, range(8)))
    for seed, expected in enumerate(weights):
        assert_array_equal(HMOH(16, random_state=seed).fit(X, y).weights_, expected)


def test_joblib_workers_agree():
    X, y = stream()
    model = HMOH(16, RBF(n_anchors=8), random_state=0).fit(X, y)
    with joblib.parallel_config("loky", n_jobs=2):
        codes = joblib.Parallel()(joblib.delayed(model.transform)(X) for _ in range(3))
    for part in codes:
        assert_array_equal(part, model.transform(X))


def test_joblib_workers_take_the_file_pasted_into_a_script(tmp_path):
    """As in a notebook cell: there is no module that a worker could import, all of it must go through cloudpickle."""
    script = """
def learn(seed):
    return HMOH(8, random_state=seed).fit(np.eye(4), range(4)).weights_

from joblib import Parallel, delayed
assert all(np.array_equal(weights, learn(0)) for weights in Parallel(2)([delayed(learn)(0)] * 3))
"""
    (tmp_path / "pasted.py").write_text((ROOT / "hmoh.py").read_text() + script)
    subprocess.run([sys.executable, "pasted.py"], cwd=tmp_path, check=True)


def learn(X, y):
    return HMOH(64, n_threads=2, random_state=0).fit(X, y).transform(X)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_learning_and_encoding_after_a_fork_agree():
    X, y = stream(2000, 8)
    expected = learn(X, y)  # with threads
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert_array_equal(pool.apply_async(learn, (X, y)).get(timeout=60), expected)


def test_nothing_is_compiled_at_import():
    script = "import hmoh; print(hmoh._perceptron.signatures, hmoh._dots.signatures)"
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert run.stdout == "[] []\n"
