"""Measure speed beside numpy, scikit-learn and FAISS in one run: python -m tools.bench

Except for the first calls at the end, compilation is excluded: each call is made once before it is
timed. Features are float32. The shortest of several times counts. HMOH and the matrix product take
turns. Slow alternatives run on a part of the work. Their times are scaled up, and lines say so.
"""

from __future__ import annotations

import copy
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import kernels
from hmoh import HMOH
from kernels import RBF, UnitLength
from metrics import hamming_histogram, nearest, nearest_by_value, within
from study import datasets

__all__ = [
    "numpy_codes",
    "numpy_features",
    "numpy_map",
    "numpy_perceptron",
    "numpy_update",
    "product_search",
    "shortest",
    "sklearn_perceptron",
]

ROOT = Path(__file__).resolve().parents[1]
SINGLE_CALLS = 300  # calls with one row each that are timed together


def shortest(*calls: Callable, turns: int = 12) -> list[float]:
    """Return the shortest seconds of each call, over turns that are spread in time.

    Other programs on the machine can only add to the time of a call.
    """
    times = [[] for _ in calls]
    for _ in range(turns):
        for call, own in zip(calls, times, strict=True):
            # Directly after a product of numpy, compiled loops were up to twice as slow.
            time.sleep(0.3)
            call()
            for _ in range(3):
                own.append(duration(call))
    return [min(own) for own in times]


def duration(call: Callable) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def line(what: str, ours: float, peer: str, theirs: float) -> None:
    """Print our time, the time of a peer (both given in seconds), and their ratio."""
    ratio = theirs / ours
    compared = f"{ratio:8.1f}x faster"
    if ratio <= 1:
        compared = f"{1 / ratio:8.2f}x the time"
    left = f"{what:<46} {1e3 * ours:10.2f} ms"
    right = f"{peer:<44} {1e3 * theirs:10.2f} ms"
    print(f"{left}   {right}  {compared}", flush=True)


# ---- training ------------------------------------------------------------------------


def numpy_perceptron(Z: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Train as a plain loop: one sample at a time, all bits at once.

    Z (n, m) are features and C (n, r) target codes. The sum of W is updated at each step. Returns
    the average (m, r).
    """
    W = np.zeros((Z.shape[1], C.shape[1]), np.float32)
    total = np.zeros_like(W)
    for z, c in zip(Z, C, strict=True):
        numpy_update(z, c, W, total)
    return total / len(Z)


def numpy_update(z: np.ndarray, c: np.ndarray, W: np.ndarray, total: np.ndarray) -> None:
    """Correct the wrong bits of one sample, and add W to the running sum, both (m, r)."""
    wrong = np.where(z @ W > 0, 1, -1) != c
    if wrong.any():
        W[:, wrong] += np.outer(z, c[wrong])
    total += W


def sklearn_perceptron(Z: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Train scikit-learn's averaged perceptron, one for each bit, and return the weights."""
    weights = [sklearn_bit().fit(Z, c).coef_[0] for c in C.T]
    return np.stack(weights, axis=1)


def sklearn_bit():
    """Return scikit-learn's averaged perceptron of one bit, untrained."""
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        loss="perceptron",
        average=True,
        learning_rate="constant",
        eta0=1.0,
        penalty=None,
        fit_intercept=False,
        shuffle=False,
        max_iter=1,
        tol=None,
    )


def training(X: np.ndarray, y: np.ndarray) -> None:
    print("\nTraining: one pass over 20,000 MNIST samples with RBF features")
    print("(the time to make the features is not counted)")
    for m in (300, 4096):
        Z = RBF(m, divisor=6).fit(X[: 2 * m]).transform(X)
        for n_bits in (32, 128):
            compare_training(Z, y, n_bits)


def compare_training(Z: np.ndarray, y: np.ndarray, n_bits: int) -> None:
    m = Z.shape[1]
    rng = np.random.default_rng(0)
    W = rng.normal(size=(m, n_bits)).astype(np.float32)
    model = HMOH(n_bits, random_state=0)
    ours, product = shortest(lambda: model.fit(Z, y), lambda: Z @ W)

    C = np.stack([model.targets_[label] for label in y.tolist()])
    few = slice(2000)
    [loop] = shortest(lambda: numpy_perceptron(Z[few], C[few]), turns=1)
    two_bits = C[:, 1:3]
    [sklearn] = shortest(lambda: sklearn_perceptron(Z, two_bits), turns=1)

    what = f"HMOH.fit, {m} features, {n_bits} bits"
    line(what, ours, "one product Z @ W of the same shape", product)
    line("", ours, "numpy loop (2,000 samples, times 10)", 10 * loop)
    times = n_bits // 2
    peer = f"scikit-learn, a model per bit (2 bits, times {times})"
    line("", ours, peer, times * sklearn)


# ---- one at a time -------------------------------------------------------------------


def numpy_features(x: np.ndarray, maps: list) -> np.ndarray:
    """Return the features (m,) of one sample x (d,) by the formulas of the maps."""
    for part in maps:
        if isinstance(part, UnitLength):
            x = x - part.mean_
            x /= np.linalg.norm(x)
        else:
            squared = np.square(x - part.anchors_).sum(axis=1)
            x = np.exp(squared / np.float32(-2 * part.eta2_))
    return x


def numpy_codes(z: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the packed code of one sample z (m,) by the hash functions W (m, r)."""
    return np.packbits(z @ W > 0, bitorder="little")


def singly(call: Callable, numbers: Iterable[int]) -> Callable:
    """Return a function that makes many calls, each with the number of the next sample."""
    upcoming = itertools.cycle(numbers)

    def calls():
        for _ in range(SINGLE_CALLS):
            call(next(upcoming))

    return calls


def one_at_a_time(X: np.ndarray, y: np.ndarray) -> None:
    print("\nOne at a time: microseconds per sample of MNIST, one sample per call")
    print("(numpy makes the features too; scikit-learn has them, and its time for")
    print("one bit is multiplied by the bits; in bulk, HMOH has all in one call)")
    heads = ["HMOH", "numpy", "/ HMOH", "sklearn", "/ HMOH", "in bulk", "HMOH /"]
    print(" " * 43 + "".join(f"{head:>10}" for head in heads))
    X = X[:10_000]
    y = y[:10_000]
    for m, n_bits in ((300, 32), (4096, 128)):
        Z = RBF(m, divisor=6).fit(X[:m]).transform(X)
        compare_singly(f"{m} features, {n_bits} bits", Z, y, n_bits, [])
    compare_singly("RBF(300), 32 bits", X, y, 32, [RBF(300)])
    both = [UnitLength(), RBF(1000)]
    compare_singly("UnitLength, RBF(1000), 64 bits", X, y, 64, both)


def compare_singly(what: str, X: np.ndarray, y: np.ndarray, n_bits: int, maps: list) -> None:
    """Print how long it takes to learn, and to make codes, one sample at a time."""
    # Everyone has learned from the first samples, and goes on with new ones.
    first = slice(2000)
    rest = slice(2000, None)
    numbers = range(2000, len(X))
    model = HMOH(n_bits, feature_map=maps or None, random_state=0)
    model.partial_fit(X[first], y[first])
    fitted = model.feature_map_ if maps else []
    C = np.stack([model.targets_[label] for label in y.tolist()])

    Z = X
    for part in fitted:
        Z = part.transform(Z)
    W = np.zeros((Z.shape[1], n_bits), np.float32)
    total = np.zeros_like(W)
    for z, c in zip(Z[first], C[first], strict=True):
        numpy_update(z, c, W, total)
    bit = sklearn_bit()
    bit.partial_fit(Z[first], C[first, 1], classes=[-1, 1])

    learner = copy.deepcopy(model)
    weights = np.ascontiguousarray(model.weights_, np.float32)
    ours, theirs, one_bit, bulk = shortest(
        singly(lambda i: learner.partial_fit(X[i : i + 1], y[i : i + 1]), numbers),
        singly(
            lambda i: numpy_update(numpy_features(X[i], fitted), C[i], W, total),
            numbers,
        ),
        singly(lambda i: bit.partial_fit(Z[i : i + 1], C[i : i + 1, 1]), numbers),
        lambda: copy.deepcopy(model).partial_fit(X[rest], y[rest]),
        turns=4,
    )
    per_call = 1e6 / SINGLE_CALLS
    per_row = 1e6 / len(numbers)
    times = (ours, theirs, n_bits * one_bit)
    single_line(f"{what}: partial_fit", [per_call * t for t in times], per_row * bulk)
    ours, theirs, bulk = shortest(
        singly(lambda i: model.transform(X[i : i + 1]), numbers),
        singly(lambda i: numpy_codes(numpy_features(X[i], fitted), weights), numbers),
        lambda: model.transform(X[rest]),
        turns=4,
    )
    times = (ours, theirs)
    single_line(f"{what}: transform", [per_call * t for t in times], per_row * bulk)


def single_line(what: str, times: list[float], bulk: float) -> None:
    """Print times of HMOH, numpy and perhaps scikit-learn, and of HMOH in bulk, with ratios."""
    ours, *peers = times
    cells = [f"{ours:.1f}"]
    for theirs in peers:
        cells += [f"{theirs:.1f}", f"{theirs / ours:.2f}"]
    cells += ["", ""] * (2 - len(peers))
    cells += [f"{bulk:.1f}", f"{ours / bulk:.1f}"]
    print(f"{what:<43}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


# ---- evaluation ----------------------------------------------------------------------


def numpy_map(
    queries: np.ndarray,
    database: np.ndarray,
    query_labels: np.ndarray,
    labels: np.ndarray,
) -> float:
    """Return mAP as a plain loop computes it: a product, argsort, cumulated precision.

    Codes are rows of +1 and -1. Items at equal distance stay in the order that argsort gives.
    """
    precisions = []
    for query, label in zip(queries, query_labels, strict=True):
        distance = (len(query) - database @ query) / 2
        relevant = labels[np.argsort(distance)] == label
        hits = np.cumsum(relevant)
        ranks = np.arange(1, len(hits) + 1)
        precisions.append((hits / ranks)[relevant].mean())
    return float(np.mean(precisions))


def as_signs(codes: np.ndarray) -> np.ndarray:
    """Return packed codes as float32 rows of +1 and -1."""
    bits = np.unpackbits(codes, axis=1, bitorder="little")
    return 2 * bits.astype(np.float32) - 1


def evaluation(mnist: datasets.Dataset) -> None:
    print("\nEvaluation: exact tie-aware mAP of 1,000 queries in 69,000 codes of MNIST")
    X = mnist.features
    y = mnist.labels
    parts = datasets.split(mnist, 0)
    query_labels = y[parts.queries]
    labels = y[parts.database]
    for n_bits in (32, 64, 128):
        model = HMOH(n_bits, feature_map=RBF(300, divisor=6), random_state=0)
        model.fit(X[parts.stream], y[parts.stream])
        queries = model.transform(X[parts.queries])
        database = model.transform(X[parts.database])

        def exact():
            histogram = hamming_histogram(queries, database, query_labels, labels)
            return histogram.mean_average_precision()

        some_queries = as_signs(queries[::20])
        some_labels = query_labels[::20]
        signs = as_signs(database)

        def loop():
            return numpy_map(some_queries, signs, some_labels, labels)

        [ours] = shortest(exact)
        [theirs] = shortest(loop, turns=1)
        peer = "numpy loop (50 queries, times 20)"
        line(f"mAP, {n_bits} bits", ours, peer, 20 * theirs)


def several_labels() -> None:
    """Compare the label sets of mediamill10 with one label of each set, for the same codes."""
    data = datasets.load("mediamill10")
    X = data.features
    Y = data.labels
    parts = datasets.split(data, 0)
    n_queries = len(parts.queries)
    n_items = len(parts.database)
    print(f"\nThe same of {n_queries:,} queries in {n_items:,} codes of mediamill10,")
    print("by label sets and by the first label of each")
    first = Y.argmax(axis=1)
    for n_bits in (8, 32, 64, 128, 512):
        model = HMOH(n_bits, feature_map=RBF(300, divisor=10), random_state=0)
        model.fit(X[parts.stream], Y[parts.stream])
        queries = model.transform(X[parts.queries])
        database = model.transform(X[parts.database])

        def exact(labels):
            query_labels = labels[parts.queries]
            db_labels = labels[parts.database]
            histogram = hamming_histogram(queries, database, query_labels, db_labels)
            return histogram.mean_average_precision()

        sets, single = shortest(lambda: exact(Y), lambda: exact(first), turns=4)
        line(f"mAP, {n_bits} bits, label sets", sets, "single labels", single)


def random_codes() -> None:
    rng = np.random.default_rng(0)
    n = 500_000
    labels = rng.integers(10, size=n)
    print(f"\nHistograms of {n:,} random codes, one thread: ns for a pair of codes, ours / FAISS")
    print("IndexBinaryFlat.search(k=1) on one thread too; medians of turns, in one process")
    print("(FAISS_SIMD_LEVEL=AVX2 NUMBA_CPU_NAME=znver3 NUMBA_CPU_FEATURES= is without AVX-512)")
    print(instructions())
    print(f"{'bits':>5}" + "".join(f"{f'{q:,} queries':>20}" for q in QUERIES))
    for n_bits in (32, 64, 128, 256, 512):
        codes = rng.integers(256, size=(n, n_bits // 8), dtype=np.uint8)
        index = binary_index(codes)
        cells = [pair_times(codes, labels, index, n_queries) for n_queries in QUERIES]
        texts = [f"{ours:.2f} / {theirs:.2f} {theirs / ours:4.1f}x" for ours, theirs in cells]
        print(f"{n_bits:>5}" + "".join(f"{text:>20}" for text in texts), flush=True)
    print("\nThe nearest of 1,000 queries among the same codes, one thread")
    for n_bits in (64, 128, 256, 512):
        codes = rng.integers(256, size=(n, n_bits // 8), dtype=np.uint8)
        compare_nearest(codes)
        if n_bits == 64:
            label_sets(codes, labels)


QUERIES = (1, 10, 100, 1000)


def instructions() -> str:
    """Return the processor that numba compiles for, and the instructions that FAISS uses."""
    from faiss import SIMDConfig
    from llvmlite import binding
    from numba import config

    name = config.CPU_NAME or binding.get_host_cpu_name()
    flags = config.CPU_FEATURES
    if flags is None:
        flags = binding.get_host_cpu_features().flatten()
    wide = "with" if "+avx512f" in flags else "without"
    return f"numba: {name}, {wide} AVX-512; FAISS: {SIMDConfig.get_level_name()}"


def pair_times(
    codes: np.ndarray, labels: np.ndarray, index, n_queries: int, turns: int = 5
) -> tuple[float, float]:
    """Return the nanoseconds for a pair of codes of our histogram and of FAISS, medians."""
    own = slice(n_queries)
    calls = (
        lambda: hamming_histogram(codes[own], codes, labels[own], labels, n_threads=1),
        lambda: index.search(codes[own], 1),
    )
    times = [[] for _ in calls]
    for _ in range(turns if n_queries >= 100 else 3 * turns):
        for call, own_times in zip(calls, times, strict=True):
            call()
            own_times.append(duration(call))
    ours, theirs = (1e9 * statistics.median(t) / (n_queries * len(codes)) for t in times)
    return ours, theirs


def binary_index(codes: np.ndarray):
    """Return an exact FAISS index of the codes, which searches by one thread."""
    index = quiet_faiss().IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    return index


def quiet_faiss():
    """Return the module of FAISS, set to one thread."""
    with warnings.catch_warnings():
        # Its wrapper uses what Python 3.12 deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        import faiss
    faiss.omp_set_num_threads(1)
    return faiss


def compare_nearest(codes: np.ndarray) -> None:
    index = binary_index(codes)
    queries = codes[:1000]
    for k in (10, 100):
        ours, theirs = shortest(
            lambda: nearest(queries, codes, k, n_threads=1),
            lambda: index.search(queries, k),
            turns=1,
        )
        what = f"nearest, {8 * codes.shape[1]} bits, k={k}"
        line(what, ours, f"FAISS IndexBinaryFlat, k={k}", theirs)


def label_sets(codes: np.ndarray, labels: np.ndarray) -> None:
    """Compare 1,000 different sets of about 2 in 80 labels with single labels."""
    rng = np.random.default_rng(0)
    sets = rng.random((1000, 80)) < 2 / 80
    several = sets[rng.integers(1000, size=len(codes))]
    own = slice(1000)

    def histogram(labels):
        hamming_histogram(codes[own], codes, labels[own], labels, n_threads=1)

    sets, single = shortest(lambda: histogram(several), lambda: histogram(labels), turns=2)
    line("histogram, 64 bits, sets of 80 labels", sets, "single labels", single)


# ---- search --------------------------------------------------------------------------


def product_search(values: np.ndarray, codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k highest products of float queries and signs, and their rows, by plain numpy.

    Codes are unpacked in tiles. Rows that cannot change the k best so far are not sorted.
    """
    scores = np.full((len(values), k), -np.inf, np.float32)
    rows = np.full((len(values), k), -1)
    for first in range(0, len(codes), 4096):
        products = values @ as_signs(codes[first : first + 4096]).T
        for q in np.flatnonzero(products.max(axis=1) > scores.min(axis=1)):
            new = np.flatnonzero(products[q] > scores[q].min())
            both = np.concatenate([scores[q], products[q, new]])
            best = np.argpartition(-both, k - 1)[:k]
            scores[q] = both[best]
            rows[q] = np.concatenate([rows[q], first + new])[best]
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def float_queries(mnist: datasets.Dataset) -> None:
    print("\nThe 100 best of 300 float queries among 69,000 codes, one thread: ns for a pair")
    print("(FAISS IndexPQ has the same bytes, and tables for eight values each)")
    names = ("nearest", "by value", "numpy product", "IndexPQ")
    print(f"{'':<24}" + "".join(f"{name:>15}" for name in names))
    X = mnist.features
    parts = datasets.split(mnist, 0)
    rng = np.random.default_rng(0)
    for n_bits in (32, 64, 128, 256, 512):
        model = HMOH(n_bits, feature_map=RBF(300, divisor=6), random_state=0)
        model.fit(X[parts.stream], mnist.labels[parts.stream])
        learned = model.decision_function(X[parts.queries[:300]])
        compare_by_value(f"{n_bits} bits, learned", learned, model.transform(X[parts.database]))
        values = rng.normal(size=(300, n_bits)).astype(np.float32)
        codes = rng.integers(256, size=(69_000, n_bits // 8), dtype=np.uint8)
        compare_by_value(f"{n_bits} bits, random", values, codes)
    texts = datasets.read("reuters10_wordllama.npz")
    for n_bits in (64, 256):
        vectors, headlines = (texts[name][:, :n_bits].astype("f4") for name in ("X", "headlines"))
        codes = np.packbits(vectors > 0, axis=1, bitorder="little")
        compare_by_value(f"{n_bits} signs of 8,599 texts", headlines[:300], codes)


def compare_by_value(what: str, values: np.ndarray, codes: np.ndarray, k: int = 100) -> None:
    faiss = quiet_faiss()
    signs = np.packbits(values > 0, axis=1, bitorder="little")
    index = faiss.IndexPQ(values.shape[1], codes.shape[1], 8, faiss.METRIC_INNER_PRODUCT)
    items = as_signs(codes)
    index.pq.cp.min_points_per_centroid = 1  # it would warn of few texts
    index.train(items[:10_000])
    index.add(items)
    times = shortest(
        lambda: nearest(signs, codes, k, n_threads=1),
        lambda: nearest_by_value(values, codes, k, n_threads=1),
        lambda: product_search(values, codes, k),
        lambda: index.search(values, k),
        turns=1,
    )
    per_pair = 1e9 / (len(values) * len(codes))
    print(f"{what:<24}" + "".join(f"{per_pair * t:>15.2f}" for t in times), flush=True)


def radius_and_mask() -> None:
    print("\nItems within a radius, and the nearest of a masked half: 200 queries, one thread")
    faiss = quiet_faiss()
    rng = np.random.default_rng(0)
    for n_bits, radius in ((64, 16), (256, 100)):
        codes = rng.integers(256, size=(200_000, n_bits // 8), dtype=np.uint8)
        index = binary_index(codes)
        queries = codes[:200]
        ours, theirs = shortest(
            lambda: within(queries, codes, radius, n_threads=1),
            lambda: index.range_search(queries, radius + 1),
            turns=1,
        )
        line(f"within {radius} of {n_bits} bits", ours, "FAISS range_search", theirs)
        mask = rng.random(len(codes)) < 0.5
        selector = faiss.SearchParameters(
            sel=faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        )
        ours, theirs = shortest(
            lambda: nearest(queries, codes, 10, mask=mask, n_threads=1),
            lambda: index.search(queries, 10, params=selector),
            turns=1,
        )
        line(f"nearest under a mask, {n_bits} bits", ours, "FAISS IDSelectorBitmap", theirs)


# ---- features and first calls --------------------------------------------------------


def features(X: np.ndarray) -> None:
    print("\nRBF features of 20,000 MNIST images, and of 300 in calls with one image each")
    for n_anchors in (300, 1000):
        compare_features(X, RBF(n_anchors).fit(X[: 2 * n_anchors]))


def compare_features(X: np.ndarray, rbf: RBF) -> None:
    what = f"RBF({rbf.n_anchors}).transform"
    anchors = np.ascontiguousarray(rbf.anchors_.T)
    ours, product = shortest(lambda: rbf.transform(X), lambda: X @ anchors)
    line(what, ours, "one product X @ anchors", product)

    unit = np.float32(1 / np.sqrt(2 * rbf.eta2_))
    z = np.empty((1, rbf.n_anchors), np.float32)

    def bare(i):
        kernels._exponents(X[i : i + 1], rbf.anchors_, unit, z)
        np.exp(z, out=z)

    numbers = range(len(X))
    single, loop = shortest(
        singly(lambda i: rbf.transform(X[i : i + 1]), numbers), singly(bare, numbers)
    )
    line(f"{what}, one by one", single, "the bare loops", loop)
    share = SINGLE_CALLS / len(X)
    line("", single, "its share of the time above", share * ours)


PREPARE = "import numpy as np, metrics as m; c = np.arange(8, dtype='u1')[:, None]; y = range(8); "
FIT = "import numpy as np, hmoh; X = np.eye(8); hmoh.HMOH(8).fit(X, range(8)).transform(X)"
FIRST_CALLS = {
    "numba imported": "import numba",
    "hmoh, kernels, metrics imported": "import hmoh, kernels, metrics",
    "HMOH fitted and codes made": FIT,
    "mAP, single labels": PREPARE + "m.mean_average_precision(c, c, y, y)",
    "mAP, label sets": PREPARE + "m.mean_average_precision(c, c, np.eye(8), np.eye(8))",
    "mAP, stable ties": PREPARE + "m.mean_average_precision(c, c, y, y, ties='stable')",
    "nearest": PREPARE + "m.nearest(c, c, 3)",
    "within": PREPARE + "m.within(c, c, 3)",
    "nearest by value": PREPARE + "m.nearest_by_value(np.eye(8), c, 3)",
}


def first_calls() -> None:
    print("\nSeconds of a new process until it has done a first call, with imports:")
    print("without compiled code on disk, and with it")
    for what, code in FIRST_CALLS.items():
        command = [sys.executable, "-c", code]
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}

            def call():
                subprocess.run(command, check=True, cwd=ROOT, env=environment)

            first = duration(call)
            later = min(duration(call) for _ in range(3))
        print(f"{what:<40} {first:6.2f} {later:6.2f}", flush=True)


def main() -> None:
    mnist = datasets.load("mnist")
    stream = datasets.split(mnist, 0).stream
    X = mnist.features[stream]
    y = mnist.labels[stream]
    print(f"{os.cpu_count()} cores, numpy {np.__version__}")
    training(X, y)
    one_at_a_time(X, y)
    evaluation(mnist)
    several_labels()
    random_codes()
    float_queries(mnist)
    radius_and_mask()
    features(X)
    first_calls()


if __name__ == "__main__":
    main()
