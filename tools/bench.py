"""Speed, side by side with plain peers in one run: make bench

Compilation is excluded (each call is made once before it is timed), features are float32, calls to be compared take
turns, and the least time of each counts. Slow peers run on a part of the work and are scaled up, as they say.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import datasets
from hmoh import HMOH
from kernels import RBF
from metrics import hamming_histogram

HERE = Path(__file__).parent


def seconds(*calls: Callable, turns: int = 12) -> list[float]:
    """Least seconds of each call, taken over some time: neighbours on the machine only ever add to its own."""
    times = [[] for _ in calls]
    for _ in range(turns):
        for call, own in zip(calls, times, strict=True):
            time.sleep(0.3)  # right after a product of numpy's, compiled loops were up to twice as slow
            call()
            for _ in range(3):
                start = time.perf_counter()
                call()
                own.append(time.perf_counter() - start)
    return [min(own) for own in times]


def line(what: str, ours: float, peer: str, theirs: float, unit: float = 1e3) -> None:
    ratio = theirs / ours
    faster = f"{ratio:8.1f}x faster" if ratio > 1 else f"{1 / ratio:8.2f}x the time"
    print(f"{what:<46} {ours * unit:10.2f} ms   {peer:<44} {theirs * unit:10.2f} ms  {faster}", flush=True)


# ---- training -------------------------------------------------------------------------------------------------------


def numpy_perceptron(Z: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The usual way to write it: one sample at a time, all bits at once, the sum of W taken at each step."""
    W = np.zeros((Z.shape[1], C.shape[1]), np.float32)
    total = np.zeros_like(W)
    for z, c in zip(Z, C, strict=True):
        wrong = np.where(z @ W > 0, 1, -1) != c
        if wrong.any():
            W[:, wrong] += np.outer(z, c[wrong])
        total += W
    return total / len(Z)


def sklearn_perceptron(Z: np.ndarray, C: np.ndarray) -> None:
    """scikit-learn's averaged perceptron, one for each bit."""
    from sklearn.linear_model import SGDClassifier

    for c in C.T:
        SGDClassifier(
            loss="perceptron", average=True, learning_rate="constant", eta0=1.0, penalty=None, fit_intercept=False,
            shuffle=False, max_iter=1, tol=None,
        ).fit(Z, c)  # fmt: skip


def training(X: np.ndarray, y: np.ndarray) -> None:
    print("\nTraining: one pass over 20,000 MNIST samples with RBF features (features are not counted)")
    for m in (300, 4096):
        Z = RBF(m, divisor=6).fit(X[: 2 * m]).transform(X)
        for n_bits in (32, 128):
            W = np.random.default_rng(0).normal(size=(m, n_bits)).astype(np.float32)
            model = HMOH(n_bits, random_state=0)
            ours, product = seconds(lambda: model.fit(Z, y), lambda: Z @ W)
            C = np.stack([model.targets_[label] for label in y.tolist()])
            (loop,) = (10 * t for t in seconds(lambda: numpy_perceptron(Z[:2000], C[:2000]), turns=1))
            (sklearn,) = (n_bits / 2 * t for t in seconds(lambda: sklearn_perceptron(Z, C[:, 1:3]), turns=1))
            what = f"HMOH.fit, {m} features, {n_bits} bits"
            line(what, ours, "one product Z @ W of the same shape", product)
            line("", ours, "numpy loop (2,000 samples, times 10)", loop)
            line("", ours, f"scikit-learn, a model per bit (2 bits, times {n_bits // 2})", sklearn)


# ---- evaluation -----------------------------------------------------------------------------------------------------


def numpy_map(queries: np.ndarray, database: np.ndarray, query_labels: np.ndarray, labels: np.ndarray) -> float:
    """The usual way to write it, on +-1 codes: a product, argsort, cumulated precision; ties as they fall."""
    precisions = []
    for query, label in zip(queries, query_labels, strict=True):
        distance = (len(query) - database @ query) / 2
        relevant = labels[np.argsort(distance)] == label
        hits = np.cumsum(relevant)
        precisions.append((hits / np.arange(1, len(hits) + 1))[relevant].mean())
    return float(np.mean(precisions))


def evaluation(mnist: datasets.Dataset) -> None:
    print("\nEvaluation: exact tie-aware mAP of 1,000 queries in 69,000 codes of MNIST")
    X, y, parts = mnist.features, mnist.labels, datasets.split(mnist, 0)
    for n_bits in (32, 64, 128):
        model = HMOH(n_bits, feature_map=RBF(300, divisor=6), random_state=0).fit(X[parts.stream], y[parts.stream])
        queries, database = model.transform(X[parts.queries]), model.transform(X[parts.database])
        signs = [2 * np.unpackbits(c, axis=1, bitorder="little").astype(np.float32) - 1 for c in (queries, database)]
        labels = y[parts.queries], y[parts.database]
        (ours,) = seconds(lambda: hamming_histogram(queries, database, *labels).mean_average_precision())
        some = slice(None, None, 20)
        (loop,) = seconds(lambda: numpy_map(signs[0][some], signs[1], labels[0][some], labels[1]), turns=1)
        line(f"mAP, {n_bits} bits", ours, "numpy loop (50 queries, times 20)", 20 * loop)
    rng = np.random.default_rng(0)
    print("\nHistograms of random codes, 1,000 queries in 1,000,000: no two codes are equal, nothing can be merged")
    for n_bits in (64, 128, 256):
        codes, labels = (
            rng.integers(256, size=(1_000_000, n_bits // 8), dtype=np.uint8),
            rng.integers(10, size=1_000_000),
        )
        (ours,) = seconds(lambda: hamming_histogram(codes[:1000], codes, labels[:1000], labels), turns=1)
        print(f"{n_bits} bits: {ours:.3f} s, {ours:.2f} ns for a pair of codes")


# ---- features and first calls ---------------------------------------------------------------------------------------


def features(X: np.ndarray) -> None:
    print("\nRBF features of 20,000 MNIST images")
    rbf = RBF(300).fit(X[:600])
    anchors = np.ascontiguousarray(rbf.anchors_.T)
    ours, product = seconds(lambda: rbf.transform(X), lambda: X @ anchors)
    line("RBF(300).transform", ours, "one product X @ anchors", product)


FIRST = {
    "numba imported": "import numba",
    "hmoh, kernels, metrics imported": "import hmoh, kernels, metrics",
    "HMOH fitted and codes made": "import numpy as np, hmoh; X = np.eye(8); hmoh.HMOH(8).fit(X, range(8)).transform(X)",
    "mAP, single labels": "import numpy as np, metrics as m; c = np.eye(8, dtype='u1'); y = range(8);"
    "m.mean_average_precision(c, c, y, y)",
    "mAP, label sets": "import numpy as np, metrics as m; c = np.eye(8, dtype='u1');"
    "m.mean_average_precision(c, c, c, c)",
    "mAP, stable ties": "import numpy as np, metrics as m; c = np.eye(8, dtype='u1'); y = range(8);"
    "m.mean_average_precision(c, c, y, y, ties='stable')",
    "nearest": "import numpy as np, metrics as m; c = np.eye(8, dtype='u1'); m.nearest(c, c, 3)",
}


def first_calls() -> None:
    print("\nA new process, until it has: seconds without and with compiled code on disk (import included)")
    for what, code in FIRST.items():
        with tempfile.TemporaryDirectory() as cache:
            times = []
            for _ in range(4):
                start = time.perf_counter()
                subprocess.run(
                    [sys.executable, "-c", code], check=True, cwd=HERE, env=os.environ | {"NUMBA_CACHE_DIR": cache}
                )
                times.append(time.perf_counter() - start)
        print(f"{what:<40} {times[0]:6.2f} {min(times[1:]):6.2f}", flush=True)


if __name__ == "__main__":
    mnist = datasets.load("mnist")
    stream = datasets.split(mnist, 0).stream
    print(f"{os.cpu_count()} cores, numpy {np.__version__}")
    training(mnist.features[stream], mnist.labels[stream])
    evaluation(mnist)
    features(mnist.features[stream])
    first_calls()
