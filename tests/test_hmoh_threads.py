"""HMOH in threads and processes, and through signals: everybody sees one whole state."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import (
    LOOK,
    ROOT,
    assert_same_state,
    contents,
    needs_jit,
    stream,
)
from numpy.testing import assert_array_equal

import hmoh
from hmoh import HMOH, Codebook
from kernels import RBF

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


# ---- threads that learn --------------------------------------------------------------


@needs_jit
@pytest.mark.parametrize("batch_size", [1, 4])
def test_the_result_does_not_depend_on_the_number_of_threads(batch_size, monkeypatch):
    X, y = stream(6000, 8)
    params = {"batch_size": batch_size, "memory": 70, "random_state": 0}
    serial = HMOH(60, n_threads=1, **params).partial_fit(X, y).partial_fit(X, y)
    started = []

    def noted_pool(n):
        started.append(n)
        return ThreadPoolExecutor(n)

    monkeypatch.setattr(hmoh, "ThreadPoolExecutor", noted_pool)
    for n in (2, 3, 8):
        model = HMOH(60, n_threads=n, **params).partial_fit(X, y).partial_fit(X, y)
        assert_same_state(serial, model.set_params(n_threads=1))
    # There is work for 4 threads, in each of the two calls.
    assert started == [2, 2, 3, 3, 4, 4]


def test_the_number_of_cores_need_not_be_known(monkeypatch):
    X, y = stream()
    expected = HMOH(60, n_threads=1, random_state=0).fit(X, y)
    # As on a system that tells neither which cores may be used nor how many there are.
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for n_cores in (None, 2):
        monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
        model = HMOH(60, random_state=0).fit(X, y)
        assert_array_equal(model.weights_, expected.weights_)


def test_models_learn_and_encode_in_several_threads_at_once():
    X, y = stream(200)
    model = HMOH(16, RBF(20), random_state=9).fit(X, y)

    def codes(seed):
        learned = HMOH(16, RBF(20), random_state=seed).fit(X, y).transform(X)
        return np.vstack([learned, model.transform(X[seed:])])

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(codes, range(8)))
    for seed in range(8):
        assert_array_equal(codes(seed), together[seed])


# ---- processes -----------------------------------------------------------------------


def learn(X, y):
    return HMOH(64, n_threads=2, random_state=0).fit(X, y).transform(X)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_learning_and_encoding_after_a_fork_agree():
    X, y = stream(600, 30)
    expected = learn(X, y)  # with threads
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert_array_equal(pool.apply_async(learn, (X, y)).get(timeout=60), expected)


# One thread learns in place, and so holds the model's lock much of the time, while others fork.
FORKED = """
import os, threading
import numpy as np
from hmoh import HMOH
X = np.random.default_rng(0).normal(size=(64, 2000)).astype(np.float32)
y = np.arange(64) % 4
model = HMOH(64, random_state=0).fit(X, y)
is_over = False
def learn():
    while not is_over:
        model.partial_fit(X, y)
thread = threading.Thread(target=learn)
thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        assert np.array_equal(model.transform(X), model.transform(X))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
is_over = True
thread.join()
"""


@needs_jit
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_forks_while_a_thread_learns_can_encode():
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    env = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, env=env, check=True, timeout=300)


def test_a_model_whose_arrays_a_pool_of_processes_shares_read_only_learns_on():
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    buffers = []
    raw = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    shared = pickle.loads(raw, buffers=[bytes(buffer) for buffer in buffers])
    for one in (model, shared):
        one.partial_fit(-X[:1], y[:1]).partial_fit(X, y)
    assert len(buffers) > 3
    assert_same_state(model, shared)


def test_joblib_workers_take_the_file_pasted_into_a_script(tmp_path):
    """As in a notebook cell, a worker has no module to import. All code is sent by cloudpickle."""
    script = """
from joblib import Parallel, delayed

def learn(model):
    return model.partial_fit(np.eye(4), range(4)).weights_

model = HMOH(8, random_state=0).fit(np.eye(4), range(4))
for weights in Parallel(2)([delayed(learn)(model)] * 3):
    assert np.array_equal(weights, learn(HMOH(8, random_state=0).fit(np.eye(4), range(4))))
"""
    (tmp_path / "pasted.py").write_text((ROOT / "hmoh.py").read_text() + script)
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "pasted.py"], cwd=tmp_path, env=env, check=True)
    assert pickle.loads(pickle.dumps(hmoh._locks)) is not hmoh._locks


# ---- readers beside a learner --------------------------------------------------------


def live_calls(n_calls, d):
    """Return the calls of a stream: single samples, some chunks, new labels, and beginnings."""
    X, y = stream(n_calls + 70, d, integer=True)
    calls = []
    for i in range(n_calls):
        n_rows = 70 if i % 97 == 50 else 1
        labels = y[i : i + n_rows].copy()
        if i % 31 == 30:
            labels[0] = i  # a new label
        name = "fit" if i % 100 == 99 else "partial_fit"
        calls.append((name, X[i : i + n_rows], labels))
    return calls


def seen_in_copy(model):
    """Return all that must belong to one state."""
    return (model.n_seen_, model.n_steps_, len(model.targets_), model.weights_.tobytes())


READS = {
    "transform": lambda model, X: model.transform(X).tobytes(),
    "decision_function": lambda model, X: model.decision_function(X).tobytes(),
    "weights": lambda model, X: model.weights_.tobytes(),
    "pickle": lambda model, X: seen_in_copy(pickle.loads(pickle.dumps(model))),
    "copy": lambda model, X: seen_in_copy(copy.copy(model)),
    "targets": lambda model, X: len(model.targets_),
    "file": lambda model, X: pickle.dumps(contents(model)),
}


def assert_reads_are_states(read, n_calls, n_reads, d=24, n_bits=24, **params):
    """Check that what one thread reads while another learns are states between two calls."""
    calls = live_calls(n_calls, d)
    probe = np.concatenate([X for _, X, _ in calls[1:13]])
    begin = HMOH(n_bits, random_state=0, **params).partial_fit(*calls[0][1:])
    twin = copy.copy(begin)
    places = {read(twin, probe): [0]}
    for i, (name, X, y) in enumerate(calls[1:], start=1):
        places.setdefault(read(getattr(twin, name)(X, y), probe), []).append(i)
    model = copy.copy(begin)
    done = [0]  # calls
    errors = []

    def write():
        try:
            for i, (name, X, y) in enumerate(calls[1:], start=1):
                getattr(model, name)(X, y)
                done[0] = i
                # Now and then each waits for the other, so that none is done before the other.
                while i % (n_calls // 20) == 0 and len(reads) < n_reads * i // n_calls:
                    time.sleep(1e-4)
        except BaseException as caught:
            errors.append(caught)
        done[0] = n_calls

    writer = threading.Thread(target=write, daemon=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    reads = []
    try:
        writer.start()
        while done[0] < n_calls or len(reads) < n_reads:
            reads.append(read(model, probe))
            while len(reads) > n_reads * (done[0] / n_calls + 0.1) and done[0] < n_calls:
                time.sleep(1e-4)
        writer.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
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
@pytest.mark.machine
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("params", [{"memory": 7}, {"ensemble": False}], ids=["memory", "last"])
def test_a_reader_sees_the_states_between_calls_in_their_order(read, params):
    n_reads = (40 if read == "file" else 200) * LOOK
    assert_reads_are_states(READS[read], 5 * n_reads, n_reads, **params)


def test_a_reader_that_waits_while_fit_ends_does_not_miss_the_next_writer():
    X, y = stream()
    model = HMOH(8).fit(X, y)
    lock = model._state.lock
    assert model.fit(X, y)._state.lock is lock


@needs_jit
def test_encoding_does_not_wait_for_a_long_call():
    X, y = stream(200_000, 32, integer=True)
    model = HMOH(64, n_threads=1, random_state=0).partial_fit(X[:100], y[:100])
    expected = model.transform(X[:10])
    writer = threading.Thread(target=model.partial_fit, args=(X, y))
    writer.start()
    n_reads = 0
    while writer.is_alive():
        codes = model.transform(X[:10])
        if model.n_seen_ == 100:
            assert_array_equal(codes, expected)
            n_reads += 1
    writer.join()
    assert n_reads > 3


# ---- nothing is half changed ---------------------------------------------------------


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "where", [(Codebook, "add"), (hmoh, "_perceptron"), (hmoh, "check_labels")]
)
@pytest.mark.parametrize("n_rows", [1, 30, 70])
def test_an_error_before_or_in_the_loop_leaves_the_model_as_it_was(
    error, where, n_rows, monkeypatch
):
    X, y = stream(100, n_labels=30)
    params = {"memory": 7, "batch_size": 2, "random_state": 0}
    failed = HMOH(4, **params).partial_fit(X[:29], y[:29])
    spared = HMOH(4, **params).partial_fit(X[:29], y[:29])
    codes = failed.transform(X)

    def fail(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*where, fail)
        with pytest.raises(error):
            failed.partial_fit(X[29 : 29 + n_rows], y[29 : 29 + n_rows] + 1000)  # new labels
    assert_same_state(spared, failed)
    assert_array_equal(failed.transform(X), codes)
    for model in (failed, spared):
        for rows in (slice(29, 30), slice(30, 33), slice(33, 100)):
            model.partial_fit(X[rows], y[rows])
    assert_same_state(spared, failed)


# Send SIGINT at random times, and look for a state between two calls. The calls are single samples
# (which are learned in place), or one with many.
INTERRUPTED = """
import os, pickle, random, signal, sys, threading, time
sys.path[:0] = sys.argv[1:3]
import numpy as np
from helpers import contents
from hmoh import HMOH
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
kind, n_signals = sys.argv[3], int(sys.argv[4])
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 64)).astype(np.float32)
y = np.arange(20_000) // 9 % 300  # new labels all the time
first = HMOH(64, n_threads=2, memory=50, random_state=0).partial_fit(X[:100], y[:100] % 5)
before = pickle.dumps(first)

def calls(model):
    if kind == "fit":
        yield model.fit(X, y)
    elif kind == "block":
        yield model.partial_fit(X, y)
    else:
        for i in range(300):
            yield model.partial_fit(X[i : i + 1], y[i : i + 1])

def state(model):
    return {name: a.tobytes() for name, a in contents(model).items()}

# All states that may be found, by the number of samples; the loops are compiled here.
states = {first.n_seen_: state(first)}
for model in calls(first):
    states[model.n_seen_] = state(model)
start = time.perf_counter()
list(calls(pickle.loads(before)))
duration = time.perf_counter() - start
moments = random.Random(1)
found = []
# On a busy machine all of the first signals may come too early, or too late.
while len(found) < n_signals or (len(set(found)) < 2 and len(found) < 20 * n_signals):
    model = pickle.loads(before)
    # From a fiftieth of the time to twice as long, because the machine may be busy.
    delay = duration * 2 * 100 ** -moments.random()

    def send():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    try:
        thread.start()
        list(calls(model))
        thread.join()
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    thread.join()
    assert state(model) == states[model.n_seen_]
    # It learns on like a copy of it.
    copy = pickle.loads(pickle.dumps(model))
    for part in (model, copy):
        part.partial_fit(X[:7], y[:7])
    assert state(model) == state(copy)
    found.append(copy.n_seen_ - 7)
print(*found)
"""


@needs_jit
@needs_signals
@pytest.mark.machine
@pytest.mark.parametrize("kind, n_signals", [("single", 10), ("block", 5), ("fit", 5)])
def test_a_sigint_finds_the_state_before_or_after_a_call(kind, n_signals):
    arguments = [ROOT, ROOT / "tests", kind, n_signals * LOOK]
    command = [sys.executable, "-W", "ignore", "-c", INTERRUPTED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # How many samples the models had seen after the signals.
    assert len(set(done.stdout.split())) > 1


def test_nothing_is_compiled_at_import():
    script = "import hmoh; print(hmoh._perceptron.signatures, hmoh._average.signatures)"
    env = os.environ | {"NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", script]
    assert subprocess.check_output(command, cwd=ROOT, env=env, text=True) == "[] []\n"
