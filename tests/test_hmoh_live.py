"""HMOH that learns one sample after the other: in place, beside readers, through interrupts."""

import copy
import pickle
import random
import signal
import sys
import threading
import time
import tracemalloc
from bisect import bisect_left

import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    Affine,
    assert_same,
    assert_same_state,
    feed,
    plain,
    stream,
)
from numpy.testing import assert_array_equal

import hmoh
from baselines import HCOH
from hmoh import HMOH, Codebook

needs_jit = pytest.mark.skipif(JIT_IS_OFF, reason="a compiled loop is not interrupted")


# ---- single samples ------------------------------------------------------------------

STRINGS = np.array(["ape", "a longer name", "", "ü"])
FORMS = {
    "int": lambda y: [int(y)],
    "array": lambda y: np.array([y]),
    "uint8": lambda y: np.array([y], np.uint8),
    "bool": lambda y: [bool(y % 2)],
    "str": lambda y: [str(STRINGS[y])],
    "numpy str": lambda y: STRINGS[y : y + 1],
    "objects": lambda y: np.array([str(STRINGS[y])], object),
    "row of a matrix": lambda y: np.eye(4, dtype=int)[y : y + 1],
    "list of a list": lambda y: [[1, 1, 1, int(y > 1)]],
    "bool row": lambda y: np.eye(4, dtype=bool)[y : y + 1],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", [HMOH, HCOH])
def test_labels_of_any_form_come_one_at_a_time(form, method):
    X, y = stream(100, integer=True)
    labels = [FORMS[form](label) for label in y.tolist()]
    whole = method(8, random_state=0).partial_fit(X, np.concatenate(labels))
    single = method(8, random_state=0)
    for x, label in zip(X, labels, strict=True):
        assert single.partial_fit(x[None], label) is single
    assert_same_state(whole, single)
    assert_array_equal(single.transform(X), whole.transform(X))
    assert plain(single.targets_) == plain(whole.targets_)


@pytest.mark.parametrize("n", [hmoh.FEW_ROWS - 1, hmoh.FEW_ROWS, hmoh.FEW_ROWS + 1])
@pytest.mark.parametrize("batch_size", [1, 3, 64, 65])
def test_few_and_many_samples_are_learned_alike(n, batch_size, monkeypatch):
    X, y = stream(4 * n, n_labels=40)
    few = HMOH(9, batch_size=batch_size, random_state=0)
    feed(few, X, y, [1, n, 2 * n, 3 * n])
    monkeypatch.setattr(hmoh, "FEW_ROWS", 0)
    many = HMOH(9, batch_size=batch_size, random_state=0)
    feed(many, X, y, [1, n, 2 * n, 3 * n])
    assert_same_state(many, few)


@pytest.mark.parametrize("n_rows, is_in_place", [(1, True), (64, True), (65, False)])
def test_few_samples_are_learned_in_place(n_rows, is_in_place):
    X, y = stream(200)
    model = HMOH(8, random_state=0).partial_fit(X, y)
    W = model._perceptrons.W
    before = W.copy()
    model.partial_fit(-X[:n_rows], y[:n_rows])  # wrong for sure
    assert (model._perceptrons.W is W) == is_in_place
    assert np.array_equal(W, before) != is_in_place


def test_weights_are_kept_until_the_next_update(monkeypatch):
    X, y = stream()
    computed = []
    average = hmoh.Perceptrons.average

    def noted_average(self):
        computed.append(1)
        return average(self)

    monkeypatch.setattr(hmoh.Perceptrons, "average", noted_average)
    model = HMOH(8, random_state=0).partial_fit(X, y)
    for n, call in enumerate([X[:1], X[:64], np.tile(X, (2, 1))], start=1):
        model.transform(X)
        model.decision_function(X)
        _ = model.weights_
        model.transform(X)
        assert len(computed) == n
        model.partial_fit(call, np.tile(y, 2)[: len(call)])
    assert_same(HMOH(8, random_state=0).fit(X, y), model.fit(X, y), X)


def test_weights_do_not_depend_on_whether_they_were_asked_for_before():
    X, y = stream()
    last = HMOH(8, ensemble=False, random_state=0).fit(X, y)
    model = HMOH(8, random_state=0).fit(X, y)
    average = model.transform(X)
    assert_array_equal(model.set_params(ensemble=False).weights_, last.weights_)
    assert_array_equal(model.transform(X), last.transform(X))
    assert_array_equal(model.set_params(ensemble=True).transform(X), average)


@pytest.mark.parametrize("memory", [None, "auto"])
def test_many_calls_of_one_sample_take_no_memory(memory):
    X, y = stream(1000)
    model = HMOH(16, memory=memory, random_state=0)
    n_calls = 300 if JIT_IS_OFF else 20_000

    def call(n):
        for i in range(n):
            row = slice(i % 1000, i % 1000 + 1)
            model.partial_fit(X[row], y[row])
            if i % 7 == 0:
                model.transform(X[row])

    call(100)
    tracemalloc.start()
    try:
        call(100)
        before, _ = tracemalloc.get_traced_memory()
        call(n_calls)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.n_steps_ == n_calls + 200
    assert after - before < 10_000


# ---- copies share nothing that is written into ---------------------------------------


def pickled(model):
    return pickle.loads(pickle.dumps(model))


METHODS = {
    "HMOH": lambda: HMOH(6, random_state=0),
    "forgetting": lambda: HMOH(6, memory=5, codebook="spread", random_state=0),
    "auto": lambda: HMOH(6, memory="auto", random_state=0),
    "last state": lambda: HMOH(6, ensemble=False, random_state=0),
    "batches": lambda: HMOH(6, batch_size=7, random_state=0),
    "map": lambda: HMOH(6, Affine(5), random_state=0),
    "HCOH": lambda: HCOH(6, random_state=0),
}


@pytest.mark.parametrize("copy_of", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("n_labels", [3, 15, 16])
def test_a_copy_and_its_original_learn_apart(copy_of, name, n_labels):
    X, y = stream(160, integer=True)
    y[:60] = np.arange(60) % n_labels
    # Other labels for each of the two, in single samples and in a chunk.
    one = (X[60:], np.arange(100) % 7 + 100)
    other = (-X[60:], np.arange(100) % 9 + 300)
    cuts = [*range(1, 20), 95]
    original = METHODS[name]().partial_fit(X[:60], y[:60])
    twin = copy_of(original)
    before = pickle.dumps(twin)
    feed(original, *one, cuts)
    assert pickle.dumps(twin) == before
    learned = pickle.dumps(original)
    feed(twin, *other, cuts)
    assert pickle.dumps(original) == learned
    feed(original, *other, cuts)
    feed(twin, *one, cuts)
    orders = {original: (one, other), twin: (other, one)}
    for model, (first, second) in orders.items():
        expected = METHODS[name]().partial_fit(X[:60], y[:60])
        feed(expected, *first, cuts)
        feed(expected, *second, cuts)
        assert_same_state(expected, model)
        assert_array_equal(model.transform(X), expected.transform(X))


def test_a_copy_of_a_model_that_has_not_begun_or_warms_up_learns_apart():
    X, y = stream()
    for n in (0, 4):
        model = HMOH(8, Affine(10), random_state=0)
        if n:
            model.partial_fit(X[:n], y[:n])
        for copy_of in (copy.copy, copy.deepcopy, pickled):
            twin = copy_of(model)
            twin.partial_fit(X[n:], y[n:])
            fresh = HMOH(8, Affine(10), random_state=0).partial_fit(X, y)
            assert_same_state(fresh, twin)
            assert getattr(model, "n_seen_", 0) == n


# ---- nothing is half changed ---------------------------------------------------------

BEFORE_THE_LOOP = {
    "rows of labels": (Codebook, "rows"),
    "labels": (Codebook, "add"),
    "copy": (hmoh.Perceptrons, "copy"),
    "arguments": (hmoh.Perceptrons, "arguments"),
    "loop": (hmoh, "_perceptron"),
    "features": (HMOH, "_features"),
    "check": (hmoh, "check_labels"),
}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("where", BEFORE_THE_LOOP)
@pytest.mark.parametrize("n_rows", [1, 30, 70])
@pytest.mark.parametrize("memory", [None, 7])
def test_an_error_before_the_loop_leaves_the_model_as_it_was(
    error, where, n_rows, memory, monkeypatch
):
    X, y = stream(100, n_labels=30)
    params = {"memory": memory, "batch_size": 2, "random_state": 0}
    failed = HMOH(4, **params).partial_fit(X[:29], y[:29])
    spared = HMOH(4, **params).partial_fit(X[:29], y[:29])
    before = pickle.dumps(failed)
    n_copies = 0 if n_rows <= hmoh.FEW_ROWS else 1
    rows = slice(29, 29 + n_rows)

    def fail(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*BEFORE_THE_LOOP[where], fail)
        if where == "copy" and not n_copies:
            failed.partial_fit(X[rows], y[rows])  # it does not copy
            return
        with pytest.raises(error):
            failed.partial_fit(X[rows], y[rows] + 1000)  # labels that are new
    assert pickle.dumps(failed) == before
    assert_array_equal(failed.transform(X), spared.transform(X))
    for model in (failed, spared):
        feed(model, X[29:], y[29:], [1, 2, 3, 70])
    assert_same_state(spared, failed)


class Timer:
    """Raises KeyboardInterrupt in the main thread, as a SIGINT does, after a random time."""

    def __init__(self, seed, most):
        self.rng = random.Random(seed)
        self.most = most

    def __enter__(self):
        def interrupt(*args):
            raise KeyboardInterrupt

        self.before = signal.signal(signal.SIGALRM, interrupt)
        return self

    def start(self):
        signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-5, self.most))

    def stop(self):
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __exit__(self, *args):
        self.stop()
        signal.signal(signal.SIGALRM, self.before)


def compile_all(**params):
    """Let numba compile all that the interrupted calls use; it does not bear an interrupt."""
    X, _ = stream(100, 4)
    model = HMOH(32, **params)
    feed(model, X, np.arange(100), [1, 2, 3])
    model.partial_fit(X[:3], [1, 2, 3]).transform(X)


def is_free(lock):
    """Return whether another thread gets the lock."""
    found = []

    def try_it():
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return found[0]


# An interrupt that comes while Python removes an object is only reported. The call then goes on.
may_be_ignored = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")


@needs_jit
@needs_timer
@may_be_ignored
@pytest.mark.parametrize("memory", [None, 50, "auto"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_an_interrupt_between_or_in_single_samples_loses_and_doubles_nothing(memory, batch_size):
    X, _ = stream(4000, 40)
    y = np.arange(4000) // 9  # new labels all the time
    params = {"memory": memory, "batch_size": batch_size, "random_state": 0}
    compile_all(**params)
    model = HMOH(32, **params).partial_fit(X[:1], y[:1])
    twin = HMOH(32, **params).partial_fit(X[:1], y[:1])
    n_interrupts = 0
    done = 1
    with Timer(0, 1e-3) as timer:
        while done < 3000:
            seen = done
            try:
                timer.start()
                while done < 3000:
                    model.partial_fit(X[done : done + 1], y[done : done + 1])
                    done += 1
                    if done % 5 == 0:
                        model.transform(X[:1])
                timer.stop()
            except KeyboardInterrupt:
                n_interrupts += 1
            assert model.n_seen_ in (done, done + 1)
            done = model.n_seen_
            if done > seen:
                twin.partial_fit(X[seen:done], y[seen:done])
            assert_same_state(twin, model)
            assert is_free(model._lock)
    assert n_interrupts > 10
    assert_same(twin, model, X)


@needs_jit
@needs_timer
def test_a_handler_of_a_signal_may_copy_and_use_the_model_while_it_learns():
    X, _ = stream(3000, 40)
    y = np.arange(3000) // 9
    compile_all()
    model = HMOH(32, random_state=0).partial_fit(X[:1], y[:1])
    copies = []
    rng = random.Random(0)

    def note(*args):
        copies.append(copy.copy(model))
        model.transform(X[:1])
        if len(copies) < 100:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 2e-3))

    handler = signal.signal(signal.SIGALRM, note)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4)
        for i in range(1, len(X)):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert len(copies) > 10
    twin = HMOH(32, random_state=0)
    done = 0
    for state in copies:
        if state.n_seen_ > done:
            rows = slice(done, state.n_seen_)
            done = state.n_seen_
            twin.partial_fit(X[rows], y[rows])
        assert_same_state(twin, state)


@needs_jit
def test_read_only_samples_need_no_other_loop():
    X, y = stream(100)
    expected = HMOH(8, random_state=0).fit(X, y)
    n_loops = len(hmoh._perceptron.signatures)
    X.flags.writeable = False
    model = HMOH(8, random_state=0).fit(X, y)
    assert_same(expected, model, X)
    model.partial_fit(X[:1], y[:1])
    assert len(hmoh._perceptron.signatures) == n_loops


def test_samples_that_wait_are_kept_in_few_chunks():
    X, y = stream(300)
    model = HMOH(8, batch_size=299, random_state=0)
    for i in range(298):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert len(model._waiting) <= (i + 1).bit_length()
    model.partial_fit(X[298:], y[298:])
    assert_same(HMOH(8, batch_size=299, random_state=0).partial_fit(X, y), model, X)


@needs_jit
@needs_timer
@may_be_ignored
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_in_a_long_call_finds_all_done_or_nothing(n_threads):
    X, y = stream(60_000, 16, n_labels=12)
    model = HMOH(64, Affine(5), n_threads=n_threads, random_state=0)
    model.partial_fit(X[:100], y[:100] % 3)
    compile_all()
    before = pickle.dumps(model)
    n_interrupts = 0
    with Timer(0, 0.03) as timer:
        for _ in range(20):
            twin = pickle.loads(before)
            state = twin._state()
            try:
                timer.start()
                twin.partial_fit(X, y)
                timer.stop()
            except KeyboardInterrupt:
                n_interrupts += 1
            if twin.n_seen_ == 100:
                assert plain(twin.targets_) == plain(model.targets_)
                for name, value in twin._state().items():
                    assert_array_equal(value, state[name])
            else:
                assert twin.n_steps_ == twin.n_seen_ == 60_100
    assert n_interrupts > 3


# ---- readers beside a writer ---------------------------------------------------------


def live_calls(n_calls, d):
    """Return the calls of a stream: single samples, some chunks, new labels."""
    X, y = stream(n_calls + 70, d, integer=True)
    calls = []
    for i in range(n_calls):
        n_rows = 70 if i % 97 == 50 else 1
        labels = y[i : i + n_rows].copy()
        if i % 31 == 30:
            labels[0] = i  # a new label
        calls.append((X[i : i + n_rows], labels))
    return calls


READS = {
    "transform": lambda model, X: model.transform(X).tobytes(),
    "decision_function": lambda model, X: model.decision_function(X).tobytes(),
    "weights": lambda model, X: model.weights_.tobytes(),
    "pickle": lambda model, X: seen_in_copy(pickled(model)),
    "copy": lambda model, X: seen_in_copy(copy.copy(model)),
    "deepcopy": lambda model, X: seen_in_copy(copy.deepcopy(model)),
    "targets": lambda model, X: len(model.targets_),
}


def seen_in_copy(model):
    """Return all that must belong to one state."""
    n_targets = len(model.targets_)
    return (model.n_seen_, model.n_steps_, n_targets, model.weights_.tobytes())


def assert_reads_are_states(read, n_calls, n_reads, d=24, n_bits=24, **params):
    """Check that what one thread reads while another learns are states between two calls."""
    calls = live_calls(n_calls, d)
    probe = np.concatenate([X for X, _ in calls[1:13]])
    begin = HMOH(n_bits, random_state=0, **params).partial_fit(*calls[0])
    twin = copy.copy(begin)
    places = {read(twin, probe): [0]}
    for i, call in enumerate(calls[1:], start=1):
        places.setdefault(read(twin.partial_fit(*call), probe), []).append(i)
    model = copy.copy(begin)
    ends = []
    error = []

    def write():
        try:
            for i, call in enumerate(calls[1:]):
                model.partial_fit(*call)
                # Now and then it waits for the reader, so that none is done before the other.
                while i % (n_calls // 20) == 0 and len(reads) < n_reads * i // n_calls:
                    time.sleep(1e-4)
        except BaseException as caught:
            error.append(caught)
        ends.append(True)

    writer = threading.Thread(target=write, daemon=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    reads = []
    try:
        writer.start()
        while not ends or len(reads) < n_reads:
            reads.append(read(model, probe))
        writer.join()
    finally:
        sys.setswitchinterval(interval)
    assert not error
    # A state may look like another one. So each read is the first state that it can be.
    now = 0
    states = set()
    for one in reads:
        known = places.get(one, [])
        at = bisect_left(known, now)
        assert at < len(known), "this is no state, or one before the last that was read"
        now = known[at]
        states.add(now)
    assert len(states) > 2
    assert_same_state(twin, model)


@needs_jit
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("memory", [7, "auto"])
def test_a_reader_sees_the_states_between_calls_in_their_order(read, memory):
    assert_reads_are_states(READS[read], 1000, 200, memory=memory)


@needs_jit
@pytest.mark.parametrize("params", [{"ensemble": False}, {"memory": 7}])
def test_a_reader_of_other_averages_sees_the_states_between_calls(params):
    assert_reads_are_states(READS["weights"], 2000, 300, d=200, **params)


@needs_jit
@pytest.mark.slow
def test_a_hundred_thousand_reads_beside_as_many_updates():
    read = READS["transform"]
    assert_reads_are_states(read, 100_000, 100_000, d=8, n_bits=32, memory=50)


@needs_jit
def test_a_saved_file_is_a_state_between_calls(tmp_path):
    def read(model, X):
        model.save(tmp_path / "m.npz")
        return seen_in_copy(HMOH.load(tmp_path / "m.npz"))

    assert_reads_are_states(read, 600, 50)


@needs_jit
def test_a_reader_beside_fit_and_single_samples_sees_whole_states():
    X, y = stream(400, 60, integer=True)
    known = set()
    twin = HMOH(64, random_state=0)
    for _ in range(2):
        known.add(twin.fit(X[:100], y[:100]).weights_.tobytes())
        for i in range(100, 400):
            twin.partial_fit(X[i : i + 1], y[i : i + 1])
            known.add(twin.weights_.tobytes())
    model = HMOH(64, random_state=0).fit(X[:100], y[:100])
    lock = model._lock
    reads = set()
    ends = []

    def write():
        for _ in range(20):
            model.fit(X[:100], y[:100])
            for i in range(100, 400):
                model.partial_fit(X[i : i + 1], y[i : i + 1])
        ends.append(True)

    writer = threading.Thread(target=write)
    writer.start()
    while not ends:
        reads.add(model.weights_.tobytes())
    writer.join()
    assert reads <= known and len(reads) > 5
    # A reader that waits for the lock while `fit` ends must not miss the next writer.
    assert model._lock is lock


@needs_jit
def test_encoding_does_not_wait_for_a_long_call():
    X, y = stream(200_000, 32, integer=True)
    model = HMOH(64, n_threads=1, random_state=0).partial_fit(X[:100], y[:100])
    expected = model.transform(X[:10])
    ends = []

    def write():
        model.partial_fit(X, y)
        ends.append(True)

    writer = threading.Thread(target=write)
    writer.start()
    n_reads = 0
    while not ends:
        codes = model.transform(X[:10])
        if model.n_seen_ == 100:
            assert_array_equal(codes, expected)
            n_reads += 1
    writer.join()
    assert n_reads > 3
