"""Fuzz kernels.py against formulas in float64, and hmoh.py against the plain perceptron."""

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
    same_state,
    setting,
    unit_rows,
)

import hmoh
import kernels
from hmoh import HMOH, NotFittedError
from kernels import RBF, UnitLength

# ---- kernels against formulas in float64 ---------------------------------------------

KERNELS = {
    "n": range(2, 40),
    "n_new": (1, 5, kernels.FEW_ROWS, kernels.FEW_ROWS + 1, 60),
    "d": range(1, 12),
    "n_anchors": range(1, 12),
    "divisor": (1.0, 10.0, 0.3, 6),
    "center": (False, True),
    "scale": (1.0, 100.0, 1e-3, 1e-20, 1e20),
    "offset": (0.0, 0.0, 3.0, -1000.0),
    "block_values": (kernels.BLOCK_VALUES, 1, 40),
}


def check_kernels(case):
    """Check both maps: what they fit, what they return, and their states."""
    rng = np.random.default_rng(case["seed"])
    n = max(case["n"], case["n_anchors"])
    rows = rng.normal(size=(n + case["n_new"], case["d"])) + case["offset"]
    rows = (case["scale"] * rows).astype(np.float32)
    X, new = rows[:n], rows[n:]
    given = X.copy()
    m = max(case["n_anchors"], 1 + case["center"])
    with setting(kernels, BLOCK_VALUES=case["block_values"]):
        rbf = RBF(m, case["divisor"], case["center"]).fit(X)
        eta2 = naive.eta2(X, m, case["divisor"])
        yield near(rbf.eta2_ / eta2, 1, 1e-6)
        yield same(rbf.anchors_, X[:m])
        mean = np.zeros(m)
        if case["center"]:
            own = rbf_features(X[:m], X[:m], eta2)
            mean = (own.sum(axis=0) - 1) / (m - 1)
        yield near(rbf.mean_, mean, 1e-5)
        # Far from the origin, float32 has fewer digits for the distances.
        expected = rbf_features(new, X[:m], eta2) - mean
        yield near(rbf.transform(new), expected, 1e-4)
        twin = RBF().set_state(rbf.get_state())
        yield same(twin.transform(new), rbf.transform(new))
        again = RBF(m, case["divisor"], case["center"])
        yield same(again.fit_transform(X), rbf.transform(X))
        params = {"anchors": "kmeans", "random_state": case["seed"]}
        means = RBF(m, case["divisor"], **params).fit(X)
        within = np.clip(means.anchors_, X.min(axis=0), X.max(axis=0))
        yield near(means.anchors_ / case["scale"], within / case["scale"], 1e-4)
        D = naive.squared_distances(X / case["scale"], means.anchors_ / case["scale"])
        eta2 = D.mean() * case["scale"] ** 2 / case["divisor"]
        yield near(means.eta2_ / eta2, 1, 1e-4)
        expected = rbf_features(new, means.anchors_, means.eta2_)
        yield near(means.transform(new), expected, 1e-4)
    unit = UnitLength().fit(X)
    mean = np.float64(X).mean(axis=0)
    yield near(unit.mean_ / case["scale"], mean / case["scale"], 1e-6)
    expected = unit_rows(new, np.float64(unit.mean_))
    yield near(unit.transform(new), expected, 1e-5)
    twin = UnitLength().set_state(unit.get_state())
    yield same(twin.transform(new), unit.transform(new))
    same(X, given)


# ---- HMOH against the plain perceptron -----------------------------------------------

HMOH_CASES = {
    "n": (*range(1, 60), 150, 300, 300),
    "drift": (False, True),
    "d": range(1, 6),
    "n_bits": range(1, 20),
    "n_labels": range(1, 12),
    "labels": ("integers", "strings", "sets"),
    "n_cuts": range(0, 6),
    "way": WAYS,
    "batch_size": (1, 1, 2, 3, 7),
    "codebook": ("ordered", "random", "spread"),
    "fuse": ("columns", "codes"),
    "ensemble": (True, True, False),
    "memory": (None, "auto", 1, 2, 7, 20),
    "known": (None, "classes", "n_classes"),
    "maps": ("none", "none", *MAPS),
    "real": (False, False, True),
    "run": (hmoh.RUN, 5, 10),  # HORIZONS are multiples of them
    "few_rows": (hmoh.FEW_ROWS, 0, 4),
    "block_rows": (hmoh.BLOCK_ROWS, 5),
}
HORIZONS = (None, 40, 20, 10)
SPREAD_DRAWS = 20  # fewer than in use, because they take long


def check_hmoh(case):
    """Check HMOH after each part of a stream, after the whole of it, and after `fit`."""
    rng = np.random.default_rng(case["seed"])
    X, y = make_stream(case, rng)
    if case["real"]:
        X = (X + rng.normal(size=X.shape)).astype(np.float32)
    constants = {
        "RUN": case["run"],
        "HORIZONS": HORIZONS,
        "DRAWS": SPREAD_DRAWS,
        "FEW_ROWS": case["few_rows"],
        "BLOCK_ROWS": case["block_rows"],
    }
    with setting(hmoh, **constants):
        model = yield from check_stream(case, X, y, edges(case, rng))
        new, classes = make_hmoh(case, y)
        if case["maps"] == "none" or is_exact(case):
            yield same_state(new.partial_fit(X, y, classes), model)
        if len(X) < WARMUP and case["maps"] in ("rbf", "list"):
            yield refused(lambda: new.fit(X, y))  # too few for the anchors
        else:
            # It learns an incomplete batch too.
            yield from check_weights(new.fit(X, y), X, y, len(X), case)


def is_exact(case):
    """Tell whether all features are integers, so that float32 has no rounding."""
    return case["maps"] in ("none", "shift") and not case["real"]


def make_hmoh(case, y):
    """Return a new model, and the classes to tell it, or None."""
    names = ("n_bits", "codebook", "fuse", "ensemble", "batch_size")
    params = {name: case[name] for name in names}
    params |= {"random_state": case["seed"], "warmup": WARMUP}
    if case["ensemble"]:
        params["memory"] = case["memory"]
    if case["known"] == "n_classes":
        params["n_classes"] = y.shape[1] if y.ndim == 2 else len(np.unique(y))
    model = HMOH(feature_map=MAPS[case["maps"]](), **params)
    is_told = case["known"] == "classes" and y.ndim == 1
    return model, np.unique(y) if is_told else None


def check_stream(case, X, y, stops):
    """Check the model after each part of a stream; return the last one."""
    model, classes = make_hmoh(case, y)
    targets = {}
    start = 0
    for stop in stops:
        model.partial_fit(X[start:stop], y[start:stop], None if start else classes)
        model = passed_on(model, case["way"], MAPS[case["maps"]], (-X[:1], y[-1:]))
        start = stop
        yield same(model.n_seen_, stop)
        n_learned = stop - stop % case["batch_size"]
        is_started = stop >= WARMUP or case["maps"] == "none"
        if is_started:
            targets = yield from check_targets(model, y, n_learned, case, targets)
        if is_started and n_learned > 0:
            yield from check_weights(model, X, y, n_learned, case)
        else:
            yield refused(lambda: model.transform(X), NotFittedError)
    return model


def check_targets(model, y, n_learned, case, before):
    """Check the target codes by what the paper says of them; return them."""
    n_bits = case["n_bits"]
    targets = {key: tuple(code.tolist()) for key, code in model.targets_.items()}
    assert all(len(code) == n_bits for code in targets.values())
    assert all({*code} <= {-1, 1} for code in targets.values())
    assert before.items() <= targets.items(), "a target has changed"
    is_multi = y.ndim == 2
    all_labels = range(y.shape[1]) if is_multi else np.unique(y).tolist()
    is_known = is_multi or case["known"] == "classes"
    labels = all_labels if is_known else y[:n_learned].tolist()
    labels = list(dict.fromkeys(labels))
    yield same(list(targets), labels)
    n_known = len(all_labels) if is_known or case["known"] else 1
    order = naive.order(n_bits, n_known)
    first = [targets[label] for label in labels[:order]]
    if order == n_bits and first:
        columns = [tuple(column) for column in naive.sylvester(order).T.tolist()]
        if case["codebook"] == "ordered":
            same(first, columns[: len(first)])
        assert {*first} <= {*columns} and len({*first}) == len(first)
    given = {*first}
    # When the columns have run out, no target is given twice while there are others.
    for label in labels[order:]:
        assert targets[label] not in given or len(given) == 2**n_bits
        given.add(targets[label])
    if is_multi and (order == n_bits or case["fuse"] == "codes"):
        for labels, code in model.label_set_targets_.items():
            assert naive.is_majority(code, [targets[label] for label in labels])
    return targets


def plain_features(X, kind):
    """Return what the maps make of X, in float64."""
    Z = np.float64(X)
    if kind == "shift":
        return 2 * Z - Z[0]
    if kind == "concat":
        return np.hstack([Z, plain_features(X, "unit")])
    if kind in ("unit", "list"):
        Z = unit_rows(Z, np.float32(Z[:WARMUP].mean(axis=0)))
    if kind in ("rbf", "list"):
        eta2 = naive.eta2(Z[:WARMUP], WARMUP, 10)
        mean = 0
        if kind == "list":
            own = rbf_features(Z[:WARMUP], Z[:WARMUP], eta2)
            mean = (own.sum(axis=0) - 1) / (WARMUP - 1)
        Z = rbf_features(Z, Z[:WARMUP], eta2) - mean
    return Z


def check_weights(model, X, y, n_learned, case):
    """Check the hash functions and the codes against the plain perceptron."""
    if y.ndim == 2:
        keys = [tuple(np.flatnonzero(row).tolist()) for row in y[:n_learned]]
        targets = model.label_set_targets_
    else:
        keys = y[:n_learned].tolist()
        targets = model.targets_
    index = {key: number for number, key in enumerate(targets)}
    samples = ([index[key] for key in keys], np.array(list(targets.values())))
    batch = case["batch_size"]
    memory = case["memory"] if case["ensemble"] else None
    n_steps = -(-n_learned // batch)
    yield same(model.n_steps_, n_steps)

    def learn(Z):
        if memory == "auto":
            settings = (HORIZONS, hmoh._horizons("auto")[0], hmoh.LOOK, hmoh.LATELY)
            averages, wrong = naive.perceptron_auto(Z, *samples, batch, *settings)
            chosen = HORIZONS.index(model.memory_)
            if is_exact(case):
                assert wrong[chosen] <= min(wrong) + 1e-9, f"{wrong}: {chosen} was chosen"
            return averages[chosen]
        W, average = naive.perceptron(Z, *samples, batch, memory)
        return average if case["ensemble"] else W

    Z = plain_features(X, case["maps"])
    W = learn(Z[:n_learned])
    tolerance = 3e-6
    if not is_exact(case):
        tolerance = 1e-3
        if not is_steady(learn, Z[:n_learned], W):
            return
    elif memory is None or (memory != "auto" and n_steps <= memory):
        same(model.weights_, W.T.astype(np.float32))
    yield near(model.weights_, W.T, tolerance)
    values = Z @ W.T
    scale = max(1, np.abs(Z).max() * np.abs(W).max() * Z.shape[1])
    yield near(model.decision_function(X), values, tolerance * scale)
    yield check_codes(model.transform(X), values, 2 * tolerance * scale)


def check_codes(codes, values, tolerance):
    """Check the packed signs of the values that are clearly not 0."""
    bits = np.unpackbits(codes, axis=1, bitorder="little")
    n_bits = values.shape[1]
    assert not bits[:, n_bits:].any()
    is_clear = np.abs(values) > tolerance
    same(bits[:, :n_bits][is_clear], values[is_clear] > 0)
