"""The average of HMOH that forgets: `memory` against its twins, in any cutting, and its choice."""

import itertools
import pickle

import naive
import numba
import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    assert_same,
    assert_same_state,
    feed,
    quick,
    stream,
    target_rows,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import hmoh
from hmoh import HMOH

HORIZONS = (None, 160, 80, 10)


@pytest.fixture
def short_runs(monkeypatch):
    """Make the runs of the averages short, so that a short stream has many.

    Both values reach the compiled loop as arguments.
    """
    monkeypatch.setattr(hmoh, "RUN", 10)
    monkeypatch.setattr(hmoh, "HORIZONS", HORIZONS)


def assert_near(weights, expected):
    """Check equality up to the rounding of float32 sums of the size of the weights."""
    assert weights.dtype == np.float32
    assert_allclose(weights, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


# ---- agrees with naive ---------------------------------------------------------------


@pytest.mark.parametrize("memory", [1, 2, 7, 999, 1000, 1001, 2500, 10**6, "auto", None])
def test_every_average_begins_to_forget_at_the_end_of_a_run(memory):
    run, shift, ends, growth, keep = hmoh._horizons(memory)
    expected = hmoh.HORIZONS if memory == "auto" else [memory]
    assert len(ends) == len(keep) == len(expected)
    for n, end, kept in zip(expected, ends.tolist(), keep.tolist(), strict=True):
        if n is None:
            assert end == 2**63 - 1 and kept == 1
        else:
            assert end == n and (n + shift) % run == 0
            assert kept == pytest.approx((1 - 1 / n) ** run)
    assert 1 <= run <= hmoh.RUN and 0 <= shift < run
    n = expected[0] or np.inf
    decay = max(1 - 1 / n, 1e-9)
    expected = [decay**-age - 1 for age in range(run)]
    assert_allclose(growth, expected, rtol=1e-5, atol=1e-12)


def perceptrons(memory, n_bits=16, m=5, seed=0):
    """Return perceptrons in the middle of a stream, with arrays of any values."""
    rng = np.random.default_rng(seed)
    bits = hmoh.Perceptrons(n_bits, m, memory)
    for a in (bits.W, bits.V, bits.S):
        a[...] = rng.integers(-9, 10, size=a.shape)
    bits.wrong[:] = rng.random(bits.wrong.shape)
    return bits


@pytest.mark.parametrize("memory, n_averages", [(None, 1), (25, 1), ("auto", 4)])
@pytest.mark.parametrize("n_bits, n_tiles", [(1, 1), (8, 1), (9, 2), (20, 3)])
def test_a_state_has_no_padding(memory, n_averages, n_bits, n_tiles):
    state = hmoh.Perceptrons(n_bits, 5, memory).get_state()
    assert state["W"].shape == state["V"].shape == (n_bits, 5)
    assert state["S"].shape == (n_averages, n_bits, 5)
    assert state["wrong"].shape == (n_tiles, n_averages)


@pytest.mark.parametrize("memory", [None, 7, 25, "auto"])
@pytest.mark.parametrize("done", [5, 10, 25, 80, 90, 160, 170])
def test_end_of_a_run_agrees_with_naive(memory, done, short_runs):
    ours = perceptrons(memory)
    twin = perceptrons(memory)
    for k in (0, 8):
        hmoh._end_run(done, ours.W, ours.V, ours.S, ours.horizons, k)
        naive.end_run(done, twin.W, twin.V, twin.S, twin.horizons, k)
    assert_allclose(ours.S, twin.S, rtol=1e-12, atol=1e-12)
    assert_array_equal(ours.W, twin.W)
    assert not ours.V.any()


@pytest.mark.parametrize("done", [0, 9, 10, 79, 80, 159, 160, 1000])
@pytest.mark.parametrize("k", [0, 8])
def test_looks_agree_with_naive(done, k, short_runs):
    ours = perceptrons("auto", m=16)
    twin = perceptrons("auto", m=16)
    Z, y = stream(20, ours.W.shape[1], integer=True)
    C = np.random.default_rng(1).choice([-1, 1], size=(4, 16)).astype(np.float32)
    for i in range(20):
        hmoh._look(Z, i, C, y[i], k, ours.S, done, ours.horizons[2], ours.wrong)
        naive.look(Z, i, C, y[i], k, twin.S, done, twin.horizons[2], twin.wrong)
    assert_allclose(ours.wrong, twin.wrong, rtol=1e-12)
    assert not np.array_equal(ours.wrong, perceptrons("auto", m=16).wrong)


def test_weighted_sum_agrees_with_naive():
    bits = perceptrons(None)
    factors = (0.25, 3.0, -2.0, 7.0)
    ours = np.empty((13, 4), np.float32)
    twin = np.empty((13, 4), np.float32)
    hmoh._average(bits.W, bits.V, bits.S[0], *factors, ours)
    naive.average(bits.W, bits.V, bits.S[0], *factors, twin)
    assert_allclose(ours, twin, rtol=1e-6)


@pytest.mark.parametrize("memory", [1, 2, 3, 7, 9, 10, 11, 19, 25, 59, 60, 61])
@pytest.mark.parametrize("batch_size", [1, 2, 7])
@pytest.mark.parametrize("integer", [True, False])
def test_forgetting_agrees_with_naive(memory, batch_size, integer, short_runs):
    X, y = stream(integer=integer)
    model = HMOH(5, memory=memory, batch_size=batch_size, random_state=0)
    for n in range(1, 61):
        last = X[n - 1 : n], y[n - 1 : n]
        model.partial_fit(*last)
        n_full = n - n % batch_size
        if n < batch_size or n % 4:
            continue
        rows, C = target_rows(model, y[:n_full])
        W, average = naive.perceptron(X[:n_full], rows, C, batch_size, memory)
        assert_near(model.weights_, average.T)
        # These sums are exact: the uniform average, and the last W.
        if integer and model.n_steps_ <= memory:
            assert_array_equal(model.weights_, average.T.astype(np.float32))
        if integer and memory == 1:
            assert_array_equal(model.weights_, W.T.astype(np.float32))
    assert model.memory_ == memory


@pytest.mark.skipif(JIT_IS_OFF, reason="the loop is slow without the JIT")
@pytest.mark.parametrize("memory", [1, 2, 7, 999, 1000, 1001, 2500])
def test_forgetting_over_runs_of_full_length_agrees_with_naive(memory):
    X, y = stream(3100, 2, integer=True)
    # The stream ends in the middle of a run.
    model = HMOH(8, memory=memory, random_state=0).fit(X, y)
    _, average = naive.perceptron(X, *target_rows(model, y), memory=memory)
    assert_near(model.weights_, average.T)
    uniform = HMOH(8, random_state=0).fit(X, y)
    assert abs(model.weights_ - uniform.weights_).max() > 1e-3


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("n", [9, 10, 75, 160, 165, 400])
def test_averages_of_auto_agree_with_naive(n, batch_size, short_runs):
    X, y = stream(n * batch_size, 3, integer=True)
    # From the half on the labels are others, so that the averages differ.
    y[n * batch_size // 2 :] = (y[n * batch_size // 2 :] + 1) % 4
    model = HMOH(11, memory="auto", batch_size=batch_size, random_state=0).fit(X, y)
    options = (batch_size, HORIZONS, 10, hmoh.LOOK, hmoh.LATELY)
    rows, C = target_rows(model, y)
    averages, wrong = naive.perceptron_auto(X, rows, C, *options)
    bits = model._perceptrons
    assert_allclose(bits.wrong.sum(axis=0), wrong, rtol=1e-9)
    for h, average in enumerate(averages):
        bits.wrong[:] = 1
        bits.wrong[:, h] = 0  # it is now the best
        twin = pickle.loads(pickle.dumps(model))
        assert_near(twin.weights_, average.T)
        assert twin.memory_ == HORIZONS[h]
    if n == 400:
        assert len({a.tobytes() for a in averages}) == 4


@pytest.mark.skipif(JIT_IS_OFF, reason="the loop is slow without the JIT")
@pytest.mark.parametrize("n", [999, 1000, 1001, 2500])
def test_averages_of_auto_over_runs_of_full_length_agree_with_naive(n):
    X, y = stream(n, 2, integer=True)
    y[n // 2 :] = (y[n // 2 :] + 1) % 4
    model = HMOH(8, memory="auto", random_state=0).fit(X, y)
    options = (1, hmoh.HORIZONS, hmoh.RUN, hmoh.LOOK, hmoh.LATELY)
    averages, wrong = naive.perceptron_auto(X, *target_rows(model, y), *options)
    assert_allclose(model._perceptrons.wrong.sum(axis=0), wrong, rtol=1e-9)
    best = int(np.argmin(wrong))
    assert model.memory_ == hmoh.HORIZONS[best]
    assert_near(model.weights_, averages[best].T)


@numba.njit
def remembered(X, y, C, n, W, A):
    """Run the perceptron, and let the average A of W forget at every step."""
    for i in range(len(X)):
        rate = max(1 / (i + 1), 1 / n)
        for k in range(C.shape[1]):
            f = 0
            for j in range(X.shape[1]):
                f += X[i, j] * W[k, j]
            for j in range(X.shape[1]):
                if (f > 0) != (C[y[i], k] > 0):
                    W[k, j] += C[y[i], k] * X[i, j]
                A[k, j] += (W[k, j] - A[k, j]) * rate


@pytest.mark.slow
@pytest.mark.parametrize("memory", [1, 2, 10, 1000, 1001, 34_567, 299_999])
def test_forgetting_on_a_long_stream_is_exact_and_nothing_overflows(memory):
    n = 300_000
    X, y = stream(n, 4, 6, integer=True)
    whole = X.astype(np.int64)
    model = HMOH(8, memory=memory, random_state=0)
    feed(model, X, y, [777, 100_001], classes=np.arange(6))
    W = np.zeros((8, 4), np.int64)
    A = np.zeros((8, 4))
    remembered(whole, y, target_rows(model, y)[1].astype(np.int64), memory, W, A)
    assert_near(model.weights_, A.T)
    for array in (model._perceptrons.V, model._perceptrons.S):
        assert abs(array).max() < 1e9
    assert model.n_steps_ == n


# ---- any cutting, any threads, any way to keep it ------------------------------------

MEMORIES = [1, 2, 7, 10, 11, 25, "auto"]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("batch_size", [1, 2, 7])
@quick
@given(st.sets(st.integers(1, 199), max_size=12), st.integers(0, 2**31))
def test_any_cutting_of_a_stream_gives_the_same_state(memory, batch_size, cuts, seed):
    X, y = stream(200, seed=seed)
    params = {"memory": memory, "batch_size": batch_size, "random_state": seed}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hmoh, "RUN", 10)
        patch.setattr(hmoh, "HORIZONS", HORIZONS)
        whole = HMOH(9, **params).partial_fit(X, y)
        cut = feed(HMOH(9, **params), X, y, cuts)
        assert_same(whole, cut, X)
        # Samples that wait may be kept in other parts, but the state is one.
        assert_same_state(whole, cut)


@pytest.mark.parametrize("memory", [None, *MEMORIES])
@pytest.mark.parametrize("n_bits", [3, 20])
def test_single_samples_give_the_same_state_as_all_at_once(memory, n_bits, short_runs):
    X, y = stream(200)
    whole = HMOH(n_bits, memory=memory, random_state=0).partial_fit(X, y)
    single = feed(HMOH(n_bits, memory=memory, random_state=0), X, y, range(1, 200))
    assert_same(whole, single, X)
    assert_same_state(whole, single)
    assert single.memory_ == whole.memory_


@pytest.mark.skipif(JIT_IS_OFF, reason="the loop is slow without the JIT")
@pytest.mark.parametrize("memory", [999, 1000, 1001, 2500, "auto"])
def test_single_samples_over_runs_of_full_length_give_the_same_state(memory):
    X, y = stream(3100, 3)
    whole = HMOH(8, memory=memory, random_state=0).partial_fit(X, y)
    single = feed(HMOH(8, memory=memory, random_state=0), X, y, range(1, 3100))
    assert_same_state(whole, single)


@pytest.mark.skipif(JIT_IS_OFF, reason="the loop is slow without the JIT")
@pytest.mark.parametrize("memory", [7, 1001, "auto"])
def test_threads_give_the_same_state(memory):
    X, y = stream(2600, 8)
    one = HMOH(60, memory=memory, n_threads=1, random_state=0).fit(X, y)
    for n_threads in (2, 3, 8):
        model = HMOH(60, memory=memory, n_threads=n_threads, random_state=0).fit(X, y)
        assert_same_state(one, model)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("n", [9, 10, 25, 85, 199])
def test_a_saved_average_goes_on_in_the_middle_of_a_run(memory, n, short_runs, tmp_path):
    X, y = stream(200)
    model = HMOH(9, memory=memory, random_state=0).partial_fit(X[:n], y[:n])
    model.save(tmp_path / "m.npz")
    others = [
        HMOH.load(tmp_path / "m.npz"),
        pickle.loads(pickle.dumps(model)),
    ]
    model.partial_fit(X[n:], y[n:])
    for other in others:
        other.partial_fit(X[n:], y[n:])
        assert_same(model, other, X)
        assert_same_state(model, other)
        assert other.memory_ == model.memory_


# ---- which memory is used ------------------------------------------------------------


def changing_stream(n, at):
    """Return samples of four classes that exchange their places at sample `at`."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=n)
    place = y.copy()
    place[at:] = (y[at:] + 1) % 4
    X = 4 * np.eye(4)[place] + rng.normal(size=(n, 4))
    return X.astype(np.float32), y


def test_auto_takes_a_short_memory_after_a_change_and_none_before(short_runs):
    X, y = changing_stream(1000, 500)
    model = HMOH(8, memory="auto", random_state=0).partial_fit(X[:500], y[:500])
    assert model.memory_ is None
    model.partial_fit(X[500:], y[500:])
    assert model.memory_ == 10
    every = HMOH(8, random_state=0).partial_fit(X, y)

    def agreement(model):
        C = np.stack([model.targets_[label] for label in y[500:].tolist()])
        return np.mean((model.decision_function(X[500:]) > 0) == (C > 0))

    assert agreement(model) > agreement(every) + 0.1


def test_auto_takes_the_longest_of_equals(short_runs):
    # All averages are wrong where the features are 0 and the target is +1.
    X = np.zeros((400, 3), np.float32)
    y = np.arange(400) % 4
    model = HMOH(8, memory="auto", random_state=0).fit(X, y)
    wrong = model._perceptrons.wrong.sum(axis=0)
    assert wrong.min() > 0 and (wrong == wrong[0]).all()
    assert model.memory_ is None
    bits = model._perceptrons
    bits.wrong[:] = [3, 2, 1, 1]
    assert model.memory_ == HORIZONS[2]


def test_memory_in_use_is_told():
    X, y = stream()
    for memory in (None, 1, 50, 1000):
        assert HMOH(8, memory=memory).fit(X, y).memory_ == memory
    model = HMOH(8, memory="auto")
    assert not hasattr(model, "memory_")
    assert model.fit(X, y).memory_ is None


def test_memory_in_use_is_that_of_the_average_when_the_parameter_is_changed():
    X, y = stream()
    model = HMOH(8, memory=50, random_state=0).fit(X, y)
    for memory in (None, 7, "auto"):
        assert model.set_params(memory=memory).memory_ == 50
    model = HMOH(8, memory="auto", random_state=0).fit(X, y)
    assert model.set_params(memory=7).memory_ is None


def test_memory_longer_than_the_stream_is_the_paper_s_average():
    X, y = stream()
    whole = HMOH(8, random_state=0).fit(X, y)
    for memory in (60, 61, 10**6, 2**62, 2**63, 10**30, "auto"):
        model = HMOH(8, memory=memory, random_state=0).fit(X, y)
        assert_array_equal(model.weights_, whole.weights_, strict=True)
    forgetting = HMOH(8, memory=59, random_state=0).fit(X, y)
    assert not np.array_equal(forgetting.weights_, whole.weights_)


def test_averages_of_several_horizons_do_not_change_the_perceptron():
    X, y = stream(300)
    W = [
        HMOH(8, memory=memory, random_state=0).fit(X, y)._perceptrons.get_state()["W"]
        for memory in (None, 5, "auto")
    ]
    for one, other in itertools.pairwise(W):
        assert_array_equal(one, other)
