"""Streams, comparisons and feature maps that several test files share."""

import itertools
import re
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import settings
from numpy.testing import assert_array_equal

from hmoh import HMOH, NotFittedError
from kernels import RBF, Concat, UnitLength

ROOT = Path(__file__).parents[1]
JIT_IS_OFF = bool(numba.config.DISABLE_JIT)
KINDS = "random", "ordered", "spread"
# There is no deadline because the first call compiles.
quick = settings(max_examples=20, deadline=None)


# ---- streams -------------------------------------------------------------------------


def stream(n=60, d=5, n_labels=4, seed=0, integer=False):
    """Return X and y of classes that overlap, so that mistakes never stop.

    With integer features every float32 sum is exact.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    centers = rng.integers(-3, 4, size=(n_labels, d))
    X = centers[y] + rng.integers(-2, 3, size=(n, d))
    if not integer:
        X = X + rng.normal(size=(n, d))
    return X.astype(np.float32), y


def multi_stream(n=60, d=5, n_labels=6, seed=0, **kwargs):
    """Return X and a 0/1 matrix of several labels per sample."""
    X, y = stream(n, d, n_labels, seed, **kwargs)
    Y = np.random.default_rng(seed).random((n, n_labels)) < 0.3
    Y[np.arange(n), y] = True
    return X, Y.astype(int)


def either_stream(multi, **kwargs):
    return multi_stream(**kwargs) if multi else stream(**kwargs)


def feed(model, X, y, cuts=(), **kwargs):
    """Pass the stream to `partial_fit` in the parts between the cuts."""
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(X)]):
        model.partial_fit(X[start:stop], y[start:stop], **kwargs)
    return model


# ---- comparisons ---------------------------------------------------------------------


def plain(targets):
    """Return the target codes as lists, which can be compared with ==."""
    return {label: target.tolist() for label, target in targets.items()}


def target_rows(model, y):
    """Return the row of every sample and the target codes, as the compiled loop needs them."""
    labels = sorted(model.targets_)
    codes = np.stack([model.targets_[label] for label in labels])
    return np.searchsorted(labels, y), codes


def assert_same(a, b, X):
    """Check that everything a user can see of two models is equal to the last bit."""
    assert a.n_seen_ == b.n_seen_
    try:
        expected = a.weights_
    except NotFittedError as error:
        with pytest.raises(NotFittedError, match=re.escape(str(error))):
            _ = b.weights_
        return
    assert_array_equal(b.weights_, expected, strict=True)
    assert plain(b.targets_) == plain(a.targets_)
    assert plain(b.label_set_targets_) == plain(a.label_set_targets_)
    assert b.n_steps_ == a.n_steps_
    assert_array_equal(b.transform(X), a.transform(X), strict=True)


def assert_same_state(a, b):
    """Check that all that two models have learned is equal to the last bit."""
    expected = a._state()
    given = b._state()
    assert list(given) == list(expected)
    for name, value in expected.items():
        if name in ("_X", "_y"):
            assert_array_equal(given[name], value)
        else:
            assert_array_equal(given[name], value, err_msg=name, strict=True)


def assert_helpful(error, *words):
    """Check that an error states the value (these words) and a way out."""
    message = str(error)
    for word in words:
        assert word in message
    way_out = r"\b(pass|drop|raise|leave|set|start|lower|call|create|fill|must be)\b"
    assert re.search(way_out, message), message


# ---- feature maps --------------------------------------------------------------------


class Affine:
    """The smallest possible map: fit and transform, no parameters, no state to save.

    It is exact on integers.
    """

    def __init__(self, n_warmup=10, returns_self=True):
        self.n_warmup = n_warmup
        self.returns_self = returns_self

    def fit(self, X):
        self.rows_ = np.array(X)
        return self if self.returns_self else None

    def transform(self, X):
        return 2 * X - self.rows_[0]


# ---- models in every phase of learning -----------------------------------------------

STRINGS = np.array(["ape", "a longer name", "", "ü"])
PHASES = {
    "plain": {},
    "mid-batch": {"batch_size": 7},
    "last state": {"ensemble": False},
    "memory": {"memory": 20},
    "short memory, mid-batch": {"memory": 1, "batch_size": 7, "multi": True},
    "memory as numpy scalar": {"memory": np.int64(7), "batch_size": 2},
    "auto": {"memory": "auto", "batch_size": 2},
    "generator": {"random_state": np.random.default_rng(3)},
    "unseeded": {"random_state": None},
    "numpy scalars": {
        "n_bits": np.int64(8),
        "batch_size": np.int32(7),
        "n_classes": np.uint8(4),
        "random_state": np.int64(3),
        "learning_rate": np.float32(0.5),
        "ensemble": np.True_,
        "n_threads": np.int64(1),
        "warmup": np.uint16(3),
    },
    "growing": {"n_bits": 3, "labels": 12},
    "growing spread": {"n_bits": 3, "labels": 12, "codebook": "spread"},
    "growing ordered": {"n_bits": 4, "labels": 12, "codebook": "ordered"},
    "known": {"n_bits": 5, "codebook": "spread", "classes": np.arange(4)},
    "number known": {"n_bits": 5, "codebook": "spread", "n_classes": 4},
    "strings": {"labels": STRINGS},
    "known strings": {"labels": STRINGS, "classes": STRINGS, "batch_size": 7},
    "multi": {"multi": True, "n_bits": 8},
    "multi aligned mid-batch": {
        "multi": True,
        "n_bits": 6,
        "batch_size": 7,
        "codebook": "spread",
    },
    "multi aligned, codes": {"multi": True, "n_bits": 6, "fuse": "codes"},
    "rbf": {"maps": lambda: RBF(n_anchors=8)},
    "rbf k-means": {"maps": lambda: RBF(3, 6.0, True, "kmeans", random_state=2)},
    "rbf centred, strings": {
        "maps": lambda: RBF(8, 6.0, center=True),
        "labels": STRINGS,
        "batch_size": 3,
    },
    "rbf, known": {
        "maps": lambda: RBF(n_anchors=8),
        "n_bits": 5,
        "codebook": "spread",
        "classes": np.arange(4),
    },
    "unit length": {"maps": UnitLength, "warmup": 15},
    "list": {"maps": lambda: [UnitLength(), RBF(n_anchors=8)], "warmup": 15},
    "concat": {
        "maps": lambda: [UnitLength(), Concat([None, RBF(n_anchors=8)])],
        "warmup": 15,
    },
    "list of one, multi": {"maps": lambda: [RBF(n_anchors=8)], "multi": True},
}


def phase(name):
    """Return model, X, y, classes and the function that makes its maps, of one of PHASES."""
    params = {"n_bits": 8, "random_state": 3} | PHASES[name]
    labels = params.pop("labels", 4)
    classes = params.pop("classes", None)
    maps = params.pop("maps", lambda: None)
    multi = params.pop("multi", False)
    model = HMOH(feature_map=maps(), **params)
    if isinstance(labels, int):
        X, y = either_stream(multi, n_labels=labels)
    else:
        X, y = stream(n_labels=len(labels))
        y = labels[y]
    return model, X, y, classes, maps
