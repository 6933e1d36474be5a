"""Fuzz models that some threads read while another one learns."""

import copy
import itertools
import sys
import threading
from bisect import bisect_left

import numpy as np
from fuzz_baselines import make_baseline
from fuzz_common import make_stream, same

from hmoh import HMOH

# ---- readers beside a thread that learns ---------------------------------------------

THREADS = {
    "method": ("HMOH", "HMOH", "HMOH", "LSH", "HCOH", "OSH", "SketchHash", "MIHash"),
    "n": range(10, 60),
    "d": (2, 5, 30),
    "n_bits": (2, 9, 24),
    "n_labels": range(1, 12),
    "labels": ("integers", "strings", "sets"),
    "n_rows": (1, 1, 3, 70),
    "n_readers": (1, 2),
    "memory": (None, "auto", 7),
    "ensemble": (True, False),
}
READS = ("transform", "decision_function")


def check_threads(case):
    """Check that whatever is read while a thread learns is one whole state, in their order."""
    rng = np.random.default_rng(case["seed"])
    n_rows = case["n_rows"]
    X, y = make_stream(case | {"n": 10 + n_rows * case["n"]}, rng)
    if case["method"] == "HMOH":
        memory = case["memory"] if case["ensemble"] else None
        options = {"ensemble": case["ensemble"], "memory": memory}
        model = HMOH(case["n_bits"], random_state=0, **options)
    else:
        defaults = {"batch": 2, "variant": 0, "maps": "none"}
        model = make_baseline(case | defaults)
    model.partial_fit(X[:10], y[:10])
    twin = copy.deepcopy(model)
    calls = [slice(i, i + n_rows) for i in range(10, len(X), n_rows)]
    # For each method and answer, the numbers of the states that give it.
    places = {name: {} for name in READS}
    for number in range(len(calls) + 1):
        if number > 0:
            twin.partial_fit(X[calls[number - 1]], y[calls[number - 1]])
        for name in READS:
            answer = getattr(twin, name)(X[:4]).tobytes()
            places[name].setdefault(answer, []).append(number)
    for reads in read_beside(model, X, y, calls, case["n_readers"]):
        now = 0
        for name, answer in reads:
            known = places[name].get(answer, [])
            at = bisect_left(known, now)
            assert at < len(known), f"{name} gave no state after state {now}"
            now = known[at]
            yield
    for name in READS:
        yield same(getattr(model, name)(X[:4]), getattr(twin, name)(X[:4]))


def read_beside(model, X, y, calls, n_readers):
    """Let one thread learn and others read; return what each of them read."""
    barrier = threading.Barrier(n_readers + 1)
    is_done = threading.Event()
    reads = [[] for _ in range(n_readers)]
    errors = []

    def write():
        barrier.wait()
        for rows in calls:
            model.partial_fit(X[rows], y[rows])

    def read(own):
        barrier.wait()
        for name in itertools.cycle(READS):
            is_last = is_done.is_set()
            own.append((name, getattr(model, name)(X[:4]).tobytes()))
            if is_last:
                return

    def run(work, *args):
        try:
            work(*args)
        except Exception as error:
            errors.append(error)
        finally:
            if work is write:
                is_done.set()

    threads = [threading.Thread(target=run, args=(write,))]
    threads += [threading.Thread(target=run, args=(read, own)) for own in reads]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return reads
