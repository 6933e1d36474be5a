"""Fuzz kernels.py against formulas in float64, and hmoh.py against the plain perceptron."""

import naive
import numpy as np
from fuzz_common import (
    MAPS,
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
        yield same(
            RBF(m, case["divisor"], case["center"]).fit_transform(X), rbf.transform(X)
        )
    unit = UnitLength().fit(X)
    yield near(
        unit.mean_ / case["scale"], np.float64(X).mean(axis=0) / case["scale"], 1e-6
    )
    expected = unit_rows(new, np.float64(unit.mean_))
    yield near(unit.transform(new), expected, 1e-5)
    twin = UnitLength().set_state(unit.get_state())
    yield same(twin.transform(new), unit.transform(new))
    same(X, given)


# ---- HMOH against the plain perceptron -----------------------------------------------

HMOH_CASES = {
    "n": (*range(1, 60), 300),
    "d": range(1, 6),
    "n_bits": range(1, 20),
    "n_labels": range(1, 12),
    "labels": ("integers", "strings", "sets"),
    "n_cuts": range(0, 6),
    "way": WAYS,
    "batch_size": (1, 1, 2, 3, 7),
    "codebook": ("ordered", "random", "spread"),
    "ensemble": (True, True, False),
    "memory": (None, "auto", 1, 2, 7, 20),
    "known": (None, "classes", "n_classes"),
    "maps": ("none", "none", *MAPS),
    "run": (hmoh.RUN, 3, 10),
    "few_rows": (hmoh.FEW_ROWS, 0, 4),
    "block_rows": (hmoh.BLOCK_ROWS, 5),
}
HORIZONS = (None, 40, 20, 10)
SPREAD_DRAWS = 20  # fewer than in use, because they take long


def check_hmoh(case):
    rng = np.random.default_rng(case["seed"])
    X, y = make_stream(case, rng)
    maps = MAPS[case["maps"]]
    is_multi = y.ndim == 2
    names = ("n_bits", "codebook", "ensemble", "batch_size")
    params = {name: case[name] for name in names}
    params["memory"] = case["memory"] if case["ensemble"] else None
    params["n_classes"] = None
    classes = None
    n_known = y.shape[1] if is_multi else len(np.unique(y))
    if case["known"] == "n_classes":
        params["n_classes"] = n_known
    elif case["known"] == "classes" and not is_multi:
        classes = np.unique(y)
    elif not is_multi:
        n_known = 1
    warmup = 5 if maps() else 1
    params |= {"random_state": case["seed"], "warmup": warmup}
    constants = {
        "RUN": case["run"],
        "HORIZONS": HORIZONS,
        "DRAWS": SPREAD_DRAWS,
        "FEW_ROWS": case["few_rows"],
        "BLOCK_ROWS": case["block_rows"],
    }
    with setting(hmoh, **constants):
        model = HMOH(feature_map=maps(), **params)
        start = 0
        known = {}
        for stop in edges(case, rng):
            model.partial_fit(
                X[start:stop], y[start:stop], classes if start == 0 else None
            )
            before = model
            model = passed_on(model, case["way"], maps)
            if before is not model:
                # A copy learns apart from its original.
                before.partial_fit(-X[:1], y[-1:])
            start = stop
            yield same(model.n_seen_, stop)
            if stop < warmup:
                yield refused(lambda: model.transform(X), NotFittedError)
                continue
            given = (y[:stop], case, classes, n_known, known)
            known = yield from check_targets(model, *given)
            n_learned = stop - stop % case["batch_size"]
            if n_learned == 0:
                yield refused(lambda: model.transform(X), NotFittedError)
                continue
            yield from check_weights(model, X, y, n_learned, case)
        if case["maps"] in ("none", "shift"):
            whole = HMOH(feature_map=maps(), **params).partial_fit(X, y, classes)
            yield same_state(whole, model)


def check_targets(model, y, case, classes, n_known, before):
    """Check the target codes by what they must be; return them."""
    n_bits = case["n_bits"]
    targets = {key: tuple(code.tolist()) for key, code in model.targets_.items()}
    assert all(len(c) == n_bits and {*c} <= {-1, 1} for c in targets.values())
    assert before.items() <= targets.items(), "a target has changed"
    learned = y[: len(y) - len(y) % case["batch_size"]]
    labels = list(range(y.shape[1])) if y.ndim == 2 else learned.tolist()
    if y.ndim == 1 and classes is not None:
        labels = classes.tolist()
    labels = list(dict.fromkeys(labels))
    yield same(list(targets), labels)
    order = naive.order(n_bits, n_known)
    first = [targets[label] for label in labels[:order]]
    if order == n_bits and first:
        columns = [tuple(column) for column in naive.sylvester(order).T.tolist()]
        if case["codebook"] == "ordered":
            same(first, columns[: len(first)])
        assert {*first} <= {*columns} and len({*first}) == len(first)
    given = {*first}
    for label in labels[order:]:
        assert targets[label] not in given or len(given) == 2**n_bits
        given.add(targets[label])
    if y.ndim == 2 and order == n_bits:
        for labels, code in model.label_set_targets_.items():
            assert naive.is_majority(code, [targets[label] for label in labels])
    return targets


def plain_features(X, kind):
    """Return what the maps make of X, in float64."""
    Z = np.float64(X)
    if kind == "shift":
        return 2 * Z - Z[0]
    if kind in ("unit", "list"):
        Z = unit_rows(Z, np.float32(Z[:5].mean(axis=0)))
    if kind in ("rbf", "list"):
        eta2 = naive.eta2(Z[:5], 5, 10)
        mean = 0
        if kind == "list":
            own = rbf_features(Z[:5], Z[:5], eta2)
            mean = (own.sum(axis=0) - 1) / 4
        Z = rbf_features(Z, Z[:5], eta2) - mean
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

    def learn(Z):
        if not case["ensemble"]:
            return naive.perceptron(Z, *samples, batch)[0]
        if case["memory"] != "auto":
            return naive.perceptron(Z, *samples, batch, case["memory"])[1]
        settings = (HORIZONS, hmoh._horizons("auto")[0], hmoh.LOOK, hmoh.LATELY)
        averages, wrong = naive.perceptron_auto(Z, *samples, batch, *settings)
        chosen = HORIZONS.index(model.memory_)
        assert wrong[chosen] <= min(wrong) + 1e-9
        return averages[chosen]

    Z = plain_features(X, case["maps"])
    W = learn(Z[:n_learned])
    tolerance = 1e-6
    if case["maps"] not in ("none", "shift"):
        tolerance = 1e-3
        if not is_steady(learn, Z[:n_learned], W):
            return
    yield same(model.n_steps_, -(-n_learned // batch))
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
