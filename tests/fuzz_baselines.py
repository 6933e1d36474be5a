"""Fuzz baselines/: every method against its plain twin, and in any cutting of the stream."""

import math

import naive
import numpy as np
from fuzz_common import (
    MAPS,
    WARMUP,
    WAYS,
    edges,
    is_steady,
    make_stream,
    near,
    passed_on,
    rbf_features,
    refused,
    same,
    setting,
)

import kernels
from baselines import BEYOND, METHODS, hadamard_ridge
from hmoh import NotFittedError

# ---- the other methods against their plain twins, and in any cutting -----------------

BASELINES = {
    "method": tuple(METHODS | BEYOND),
    "n": range(1, 40),
    "d": range(2, 7),
    "n_bits": range(1, 10),
    "n_labels": range(1, 6),
    "labels": ("integers", "strings", "sets"),
    "n_cuts": range(0, 6),
    "way": WAYS,
    "maps": ("none", "none", "unit"),
    "batch": range(1, 12),
    "variant": (0, 1),
}


def make_baseline(case):
    """Return a small model with the parameters of the paper where sizes do not matter."""
    name = case["method"]
    variant = case["variant"]
    batch = case["batch"]
    n_bits = case["n_bits"]
    if name in ("SketchHash", "FROSH"):
        n_bits = min(n_bits, case["d"])
    model = (METHODS | BEYOND)[name]("mnist", n_bits, case["seed"])
    params = {
        "OSH": {"loss": ("hinge", "boost")[variant]},
        "OKH": {"n_anchors": batch, "aggressiveness": (0.01, np.inf)[variant]},
        "AdaptHash": {"alpha": (0.8, 0.4)[variant]},
        # Halves and quarters, so that sums of ties are exactly 0.
        "BSODH": {"batch": batch, "similar": 1.25, "dissimilar": (0.25, 0.0)[variant]},
        "SketchHash": {"sketch_size": batch + 3, "sketch_batch": 2 * batch},
        "FROSH": {"sketch_size": batch + 3, "block": 2 * batch},
        "MIHash": {
            "reservoir": 2 * batch,
            "update_every": 5,
            "n_bins": 4,
            "sharpness": 2.0,
            "gradient": ("true", "published")[variant],
        },
        "HMOH": {"batch_size": batch},
        "HadamardRidge": {"ridge": 0.1, "memory": (None, batch)[variant]},
    }
    model.set_params(feature_map=MAPS[case["maps"]](), warmup=WARMUP, **params.get(name, {}))
    return model


def check_baselines(case):
    """Check that the cutting of a stream does not matter, then compare with the twin."""
    rng = np.random.default_rng(case["seed"])
    X, y = make_stream(case, rng)
    X = (X + rng.normal(size=X.shape).astype(np.float32)) / 4
    maps = MAPS[case["maps"]]
    # One way to compute kernel features, because two ways differ in rounding.
    few_rows = setting(kernels, FEW_ROWS=10**6)
    with few_rows, setting(hadamard_ridge, BLOCK=case["batch"]):
        whole = make_baseline(case).partial_fit(X, y)
        model = make_baseline(case)
        start = 0
        for stop in edges(case, rng):
            model.partial_fit(X[start:stop], y[start:stop])
            model = passed_on(model, case["way"], maps, (-X[:1], y[-1:]))
            start = stop
        try:
            expected = whole.transform(X)
        except NotFittedError:
            yield refused(lambda: model.transform(X), NotFittedError)
        else:
            yield same(model.transform(X), expected)
            yield same(model.decision_function(X), whole.decision_function(X))
            yield same(model.weights_, whole.weights_)
        if case["maps"] == "none" and case["method"] in TWINS:
            yield from check_twin(case, X, y)
        if case["maps"] == "none" and case["method"] == "SketchHash":
            yield from check_sketch(make_baseline(case).fit(X), np.float64(X))


def check_twin(case, X, y):
    """Check a model that was fitted at once against its plain twin."""
    model = make_baseline(case)
    if case["method"] == "OKH" and len(X) < max(2, model.n_anchors):
        yield refused(lambda: model.fit(X, y))
        return
    model.fit(X, y)
    labels = np.reshape(y, (len(y), -1))
    is_same = (labels[:, None] == labels).all(axis=2)
    related = is_same if y.ndim == 1 else y @ y.T > 0
    start, learn = TWINS[case["method"]](model, np.float64(X), y, is_same, related)
    W = learn(start)
    if is_steady(learn, start, W):
        yield near(model.weights_, W, 1e-3)
        yield near(model.decision_function(X), features_of(model, X) @ W, 2e-3)


def check_sketch(model, X):
    """Check the sketch of SketchHash against one that is made row by row."""
    rows = naive.inserted_rows(X, model.sketch_batch)
    n_rows = max(model.sketch_size, 2 * model.n_bits)
    B = naive.frequent_directions(rows, n_rows)
    largest = max(1, np.square(rows).sum())
    yield near(model.sketch_.T @ model.sketch_ / largest, B.T @ B / largest, 1e-5)
    yield near(model.mean_, X.mean(axis=0), 1e-5)


def features_of(model, X):
    """Return the features that the hash functions get; OKH makes its own."""
    if not hasattr(model, "n_anchors"):
        return np.float64(X)
    m = model.n_anchors
    eta2 = naive.eta2(X[: max(2, m)], m, 1)
    return np.column_stack([rbf_features(X, X[:m], eta2), np.ones(len(X))])


def hyperplanes(model, m):
    """Return the random W (m, n_bits) that a linear method starts with."""
    W = np.random.default_rng([model._seed, 1]).normal(size=(m, model.n_bits))
    return W / np.sqrt(np.square(W).sum(axis=0))


def pairs_of(Z, related):
    """Return pairs of consecutive samples, and whether each is similar."""
    n = len(Z) // 2
    similar = [bool(related[2 * i, 2 * i + 1]) for i in range(n)]
    return Z[: 2 * n].reshape(n, 2, Z.shape[1]), similar


def lsh_twin(model, X, y, is_same, related):
    return hyperplanes(model, X.shape[1]), lambda W: W


def targets_of(model, y):
    """Return the target code of every sample."""
    if y.ndim == 2:
        rows = [tuple(np.flatnonzero(row).tolist()) for row in y]
        return np.array([model.label_set_targets_[row] for row in rows])
    return np.array([model.targets_[label] for label in y.tolist()])


def hcoh_twin(model, X, y, is_same, related):
    C = targets_of(model, y)
    rate = model.learning_rate
    return hyperplanes(model, X.shape[1]), lambda W: naive.delta_rule(X, C, rate, W.T).T


def osh_twin(model, X, y, is_same, related):
    if y.ndim == 2:
        sample, word = np.nonzero(y)
    else:
        names = list(dict.fromkeys(y.tolist()))
        sample = range(len(y))
        word = [names.index(label) for label in y.tolist()]
    coins = np.random.default_rng([model._seed, 2]).random((max(word) + 1, model.n_bits))
    C = np.where(coins < 0.5, 1, -1)
    options = (model.learning_rate, model.loss == "boost")

    def learn(W):
        return naive.fit_codewords(X, sample, np.array(word), C, *options, W.T).T

    return hyperplanes(model, X.shape[1]), learn


def adapt_twin(model, X, y, is_same, related):
    pairs = pairs_of(X, related)
    far = model.alpha * model.n_bits
    options = (far, model.learning_rate, model.ortho)
    return hyperplanes(model, X.shape[1]), lambda W: naive.adapt_hash(*pairs, *options, W)


def okh_twin(model, X, y, is_same, related):
    Z = features_of(model, X)
    far = math.ceil(round(model.alpha * model.n_bits, 9))

    def learn(W):
        W = W.T.copy()
        naive.passive_aggressive(*pairs_of(Z, related), far, model.aggressiveness, W)
        return W.T

    return hyperplanes(model, Z.shape[1]), learn


def bsodh_twin(model, X, y, is_same, related):
    options = (
        model.batch,
        model.ridge,
        model.fit_weight,
        model.similar,
        model.dissimilar,
    )
    start = hyperplanes(model, X.shape[1])
    return start, lambda W: naive.bsodh(X, is_same, related, W, *options)


def mihash_twin(model, X, y, is_same, related):
    keys = np.random.Generator(np.random.PCG64([model._seed, 2])).random(len(X))
    options = (model.n_bins, model.sharpness, model.learning_rate, model.update_every)
    options += (model.gradient == "published",)

    def learn(W):
        return naive.mihash(X, related, W.T, keys, model.reservoir, *options)[1].T

    return hyperplanes(model, X.shape[1]), learn


def ridge_twin(model, X, y, is_same, related):
    C = targets_of(model, y)
    W = naive.hadamard_ridge(X, C, model.ridge, model.memory)
    # It does not depend on a start.
    return W, lambda start: W


TWINS = {
    "LSH": lsh_twin,
    "HCOH": hcoh_twin,
    "OSH": osh_twin,
    "AdaptHash": adapt_twin,
    "OKH": okh_twin,
    "BSODH": bsodh_twin,
    "MIHash": mihash_twin,
    "HadamardRidge": ridge_twin,
}
