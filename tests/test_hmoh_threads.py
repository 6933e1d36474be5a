"""HMOH in threads and processes, and when its loops are compiled."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from helpers import ROOT, assert_same, stream
from numpy.testing import assert_array_equal

import hmoh
from hmoh import HMOH
from kernels import RBF

# ---- threads -------------------------------------------------------------------------


def assert_threads_agree(monkeypatch, X, y, n_bits, counts):
    serial = HMOH(n_bits, n_threads=1, random_state=0).fit(X, y)
    started = []

    def noted_pool(n):
        started.append(n)
        return ThreadPoolExecutor(n)

    monkeypatch.setattr(hmoh, "ThreadPoolExecutor", noted_pool)
    for n in counts:
        model = HMOH(n_bits, n_threads=n, random_state=0).fit(X, y)
        assert_same(serial, model, X)
    # With less work there would be fewer threads.
    assert started == counts


def test_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    X, y = stream(2100, 8)
    assert_threads_agree(monkeypatch, X, y, 60, [2])


@pytest.mark.slow
def test_result_does_not_depend_on_a_large_number_of_threads(monkeypatch):
    X, y = stream(8000, 16)
    assert_threads_agree(monkeypatch, X, y, 60, [2, 3, 5, 8])


@pytest.mark.parametrize("n_threads", [1, 2, 3, 9])
@pytest.mark.parametrize("batch", [1, 4])
def test_steps_are_counted_once_however_many_threads_learn(batch, n_threads):
    Z, y = stream(10, 3)
    C = np.random.default_rng(0).choice([-1, 1], size=(4, 24)).astype(np.float32)
    samples = (Z, y, C, batch)
    bits = hmoh.Perceptrons(24, 3, None)
    bits.learn(*samples, n_threads)
    # 10 samples are 10 steps, or 2 full batches of 4 and one of 2.
    assert bits.get_state()["steps"] == (10 if batch == 1 else 3)
    serial = hmoh.Perceptrons(24, 3, None)
    serial.learn(*samples)
    assert_array_equal(bits.average(), serial.average())
    assert np.ptp(bits.average()) > 0


def test_the_number_of_cores_is_not_needed(monkeypatch):
    X, y = stream()
    expected = HMOH(60, n_threads=1, random_state=0).fit(X, y)
    # As on a system that tells neither which cores may be used nor how many there are.
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for n_cores in (None, 2):
        monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
        assert_same(HMOH(60, random_state=0).fit(X, y), expected, X)


def test_encoding_from_several_threads_at_once_agrees():
    X, y = stream(500)
    model = HMOH(32, RBF(n_anchors=20), random_state=0).fit(X, y)
    parts = [X[start:] for start in range(32)]
    expected = [model.transform(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(model.transform, parts))
    for codes, alone in zip(together, expected, strict=True):
        assert_array_equal(codes, alone)


def test_models_learn_in_several_threads_at_once():
    X, y = stream(200)

    def weights(seed):
        return HMOH(16, random_state=seed).fit(X, y).weights_

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(weights, range(8)))
    for seed in range(8):
        assert_array_equal(weights(seed), together[seed])


# ---- processes -----------------------------------------------------------------------


def test_joblib_workers_agree():
    X, y = stream()
    model = HMOH(16, RBF(n_anchors=8), random_state=0).fit(X, y)
    with joblib.parallel_config("loky", n_jobs=2):
        codes = joblib.Parallel()(joblib.delayed(model.transform)(X) for _ in range(3))
    for part in codes:
        assert_array_equal(part, model.transform(X))


def test_joblib_workers_take_the_file_pasted_into_a_script(tmp_path):
    """As in a notebook cell, a worker has no module to import. All code is sent by cloudpickle."""
    script = """
from joblib import Parallel, delayed

def learn(seed):
    return HMOH(8, random_state=seed).fit(np.eye(4), range(4)).weights_

for weights in Parallel(2)([delayed(learn)(0)] * 3):
    assert np.array_equal(weights, learn(0))
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


# ---- compilation ---------------------------------------------------------------------


def test_nothing_is_compiled_at_import():
    script = "import hmoh; print(hmoh._perceptron.signatures, hmoh._dots.signatures)"
    env = dict(os.environ)
    env.pop("NUMBA_DISABLE_JIT", None)
    command = [sys.executable, "-c", script]
    output = subprocess.check_output(command, cwd=ROOT, env=env, text=True)
    assert output == "[] []\n"
