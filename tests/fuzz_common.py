"""What the targets of fuzz.py share: comparisons, streams, and ways to pass a model on."""

import contextlib
import copy
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from kernels import RBF, Concat, UnitLength  # noqa: E402

# ---- comparisons ---------------------------------------------------------------------


def same(got, expected):
    """Check that two arrays, or values, are equal."""
    assert np.array_equal(got, expected), f"{got}\nis not\n{expected}"


def near(got, expected, tolerance=1e-12):
    """Check numbers up to rounding; None stands for NaN."""
    got = np.asarray(got, np.float64)
    expected = np.array(expected, np.float64)
    assert got.shape == expected.shape, f"shape {got.shape} is not {expected.shape}"
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    close = np.abs(got - expected) <= tolerance * largest
    close |= np.isnan(got) & np.isnan(expected)
    assert close.all(), f"{got}\nis not near\n{expected}"


def refused(call, error=ValueError):
    """Check that a call raises this error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__} was raised")


@contextlib.contextmanager
def setting(module, **values):
    """Change constants of a module for some time, so that a small case has many blocks."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def is_steady(learn, start, learned, size=1e-5, tolerance=1e-4):
    """Tell whether small changes of the start change little of what is learned.

    Where a sign hangs on rounding, float32 and float64 may learn different things.
    """
    rng = np.random.default_rng(0)
    for _ in range(2):
        change = size * rng.normal(size=start.shape)
        for nearby in (start + change, start - change):
            difference = np.abs(learn(nearby) - learned).max()
            if not difference <= tolerance * max(1, np.abs(learned).max()):
                return False
    return True


# ---- formulas in float64 -------------------------------------------------------------


def rbf_features(X, anchors, eta2):
    """Return exp(-||x - a||^2 / (2 eta^2)) in float64."""
    difference = np.float64(X)[:, None] - np.float64(anchors)
    return np.exp(-np.square(difference).sum(axis=2) / (2 * eta2))


def unit_rows(X, mean):
    """Return the rows of X - mean at length one in float64."""
    Z = np.float64(X) - mean
    length = np.sqrt(np.square(Z).sum(axis=1, keepdims=True))
    return Z / np.where(length > 0, length, 1)


# ---- streams that are cut, kept and copied -------------------------------------------


class Shift:
    """A map that is exact on integers, and can be saved."""

    n_warmup = 1

    def fit(self, X):
        self.row_ = np.array(X[0])
        return self

    def transform(self, X):
        return 2 * X - self.row_

    def get_state(self):
        return {"row_": self.row_} if hasattr(self, "row_") else {}

    def set_state(self, state):
        vars(self).update(state)


WARMUP = 5  # samples that the maps are fitted on
MAPS = {
    "none": lambda: None,
    "shift": Shift,
    "rbf": lambda: RBF(WARMUP),
    "unit": UnitLength,
    "list": lambda: [UnitLength(), RBF(WARMUP, center=True)],
    "concat": lambda: Concat([None, UnitLength()]),
}
WAYS = ("none", "save", "pickle", "copy", "deepcopy")


def make_stream(case, rng):
    """Return integer features of classes that overlap, and labels of the wanted form."""
    n = case["n"]
    y = rng.integers(case["n_labels"], size=n)
    centers = rng.integers(-3, 4, size=(case["n_labels"], case["d"]))
    X = centers[y] + rng.integers(-2, 3, size=(n, case["d"]))
    if case.get("drift"):
        # In the second half the classes lie elsewhere.
        X[n // 2 :] = -X[n // 2 :]
    # Two samples differ, because equal ones give no bandwidth.
    X[1:2, 0] = X[:1, 0] + 1
    X = X.astype(np.float32)
    if case["labels"] == "strings":
        return X, np.array([f"label {label}" for label in y.tolist()])
    if case["labels"] == "sets":
        Y = rng.random((n, case["n_labels"] + 1)) < 0.3
        Y[np.arange(n), y] = True
        return X, Y.astype(int)
    return X, 3 * y - 4


def edges(case, rng):
    """Return the ends of the chunks of a stream."""
    cuts = rng.integers(1, case["n"] + 1, size=case["n_cuts"])
    return sorted({*cuts.tolist(), case["n"]})


def passed_on(model, way, maps, sample=None):
    """Return the model after a file, a pickle or a copy; the original then learns a sample."""
    if way == "none":
        return model
    if way == "save":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            model.save(path)
            new = type(model).load(path, feature_map=maps())
    elif way == "pickle":
        new = pickle.loads(pickle.dumps(model))
    else:
        new = copy.copy(model) if way == "copy" else copy.deepcopy(model)
    if sample is not None:
        model.partial_fit(*sample)
    return new


def same_state(a, b):
    """Check that two models have learned the same, to the last bit."""
    expected = a._state()
    given = b._state()
    assert list(given) == list(expected), f"{list(given)} is not {list(expected)}"
    for name, value in expected.items():
        assert np.array_equal(given[name], value), f"{name} differs"
