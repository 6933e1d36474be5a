"""Streams, comparisons, feature maps and bad input that several test files share."""

import contextlib
import itertools
import re
import tempfile
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import settings
from numpy.testing import assert_array_equal

from hmoh import NotFittedError

ROOT = Path(__file__).parents[1]
JIT_IS_OFF = bool(numba.config.DISABLE_JIT)
KINDS = "random", "ordered", "spread"
STRINGS = np.array(["ape", "a longer name", "", "ü"])
needs_jit = pytest.mark.skipif(JIT_IS_OFF, reason="plain Python is slow, and can be interrupted")
# The profile of tests/conftest.py, or of the environment, and how much longer it looks.
quick = settings()
LOOK = 1 if quick.max_examples < 100 else 20


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
    if np.ndim(y) == 2:
        keys = [tuple(np.flatnonzero(row).tolist()) for row in y]
        targets = model.label_set_targets_
    else:
        keys = y.tolist()
        targets = model.targets_
    place = {key: row for row, key in enumerate(targets)}
    return [place[key] for key in keys], np.stack(list(targets.values()))


def contents(model):
    """Return the arrays of the file that a model is saved to, or None if it has not begun."""
    if not hasattr(model, "n_seen_"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        with np.load(Path(folder) / "model.npz") as file:
            return dict(file)


def assert_same_arrays(given, expected):
    """Check that two dictionaries of arrays are equal to the last bit."""
    assert (given is None) == (expected is None)
    assert list(given or ()) == list(expected or ())
    for name in given or ():
        assert_array_equal(given[name], expected[name], err_msg=name, strict=True)


def assert_same_state(a, b):
    """Check that all that two models have learned is equal to the last bit."""
    assert_same_arrays(contents(b), contents(a))


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


def assert_helpful(error, *words):
    """Check that an error states the value (these words) and a way out."""
    message = str(error)
    for word in words:
        assert word in message
    way_out = r"\b(pass|learn|drop|raise|leave|set|start|lower|call|create|fill|must be)\b"
    assert re.search(way_out, message), message


# ---- feature maps --------------------------------------------------------------------


class Affine:
    """The smallest possible map: fit and transform, no parameters, no state to save.

    It is exact on integers.
    """

    def __init__(self, n_warmup=10, returns_self=True):
        self.n_warmup = n_warmup
        self.returns_self = returns_self

    def __repr__(self):
        return "Affine()"  # the same in all processes, for the names of tests

    def fit(self, X):
        self.rows_ = np.array(X)
        return self if self.returns_self else None

    def transform(self, X):
        return 2 * X - self.rows_[0]


class Shift(Affine):
    """The same with a state."""

    def get_state(self):
        return {"rows": self.rows_} if hasattr(self, "rows_") else {}

    def set_state(self, state):
        if state:
            self.rows_ = state["rows"]


# ---- damaged files -------------------------------------------------------------------


def outcome(path, model, X, y, maps):
    """Load a damaged file: return "refused" or "works"; any other outcome is an error."""
    given = maps()
    before = repr(given)
    try:
        loaded = type(model).load(path, feature_map=given)
    except ValueError as error:
        assert_helpful(error, str(path))
        assert repr(given) == before
        return "refused"
    has_begun = hasattr(loaded, "targets_")
    with np.errstate(all="ignore"):
        try:
            loaded.partial_fit(X[:1], y[:1])
            with contextlib.suppress(NotFittedError):
                loaded.transform(X)
            loaded.partial_fit(X, y).transform(X)
        except ValueError:
            assert not has_begun  # a map may refuse its parameters when it is fitted
    return "works"


def write(path, arrays):
    with open(path, "wb") as file:
        np.savez(file, **{name: a for name, a in arrays.items() if a is not None})


def converted(a, dtype):
    """Return the array as another dtype, with zeros where that cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return a.astype(dtype)
    except (OverflowError, TypeError, ValueError):
        return np.zeros(a.shape, dtype)


def damages(a):
    """Yield what may be done to an array, and what becomes of it."""
    yield "gone", None
    for dtype in ("f2", "f4", "f8", ">f4", "i1", "i8", "u1", "?", "U9", "S9", "c8", "M8[s]", "O"):
        if dtype != a.dtype:
            yield dtype, converted(a, dtype)
    yield "one dimension more", a[None]
    yield "two", np.stack([a, a])
    if a.ndim:
        yield "no rows", a[:0]
        yield "one row less", a[:-1]
        yield "rows twice", np.concatenate([a, a])
    if a.ndim > 1:
        yield "one column less", a[:, 1:]
        yield "columns twice", np.tile(a, 2)
        yield "transposed", a.T
        yield "Fortran", np.asfortranarray(a)
    kind = a.dtype.kind
    values = {"f": [np.nan, np.inf, -np.inf, 1e38, 0], "U": ["", "{}", "[" * 10**5, "x", "9" * 99]}
    if kind in "iu":
        values[kind] = [np.iinfo(a.dtype).max, np.iinfo(a.dtype).min, 1, 0]
    for value in values.get(kind, []):
        if kind == "U":
            yield f"{value[:9]!r}", np.full(a.shape, value)
        elif a.size:
            b = a.copy()
            b.flat[-1] = value
            yield f"{value}", b
            yield f"all {value}", np.full_like(a, value)


# ---- what is no array of numpy, and arrays that simply work ---------------------------


class Tensor:
    """What numpy uses of a tensor: its values, or the error with which it keeps them."""

    ndim = 1

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.values, Exception):
            raise self.values
        return np.asarray(self.values, dtype)


# What PyTorch says of a tensor that requires a gradient, and of one of bfloat16.
WITH_GRADIENT = Tensor(RuntimeError("Can't call numpy() on Tensor that requires grad."))
BFLOAT16 = Tensor(TypeError("Got unsupported ScalarType BFloat16"))


class Sparse:
    """The part of a sparse matrix by which it is known."""

    def toarray(self):
        raise AssertionError("nobody asked for so much memory")


class Frame:
    """The part of a DataFrame that numpy uses, and the names of its columns."""

    def __init__(self, values, columns=()):
        self.values = values
        self.columns = columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)

    def __len__(self):
        return len(self.values)


def read_only(a):
    a = np.array(a)
    a.flags.writeable = False
    return a


def unaligned(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(a.tobytes(), np.uint8)
    return memory.view(a.dtype).reshape(a.shape)


ANY = {
    **{np.dtype(t).name: lambda a, t=t: a.astype(t) for t in "bBHIq"},
    "big endian": lambda a: a.astype(">i4"),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "backwards": lambda a: np.flip(np.flip(a).copy()),
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "unaligned": unaligned,
    "list": lambda a: a.tolist(),
    "list of rows": list,
    "frame": Frame,
    "masked": np.ma.array,
}


# ---- bad input -----------------------------------------------------------------------


def changed(a, at, value, dtype=None):
    """Return a copy of an array in which one value is changed."""
    a = np.array(a, dtype)
    a[at] = value
    return a


X0, Y0 = stream()
M0 = multi_stream()[1]
# By name: the value, the error, and words that the error contains.
BAD_FEATURES = {
    "nan": (changed(X0, (3, 1), np.nan), ValueError, ["X[3, 1]", "nan"]),
    "inf": (changed(X0, (59, 4), np.inf), ValueError, ["X[59, 4]", "inf"]),
    "minus inf": (changed(X0, (0, 0), -np.inf), ValueError, ["X[0, 0]", "-inf"]),
    "too large": (changed(X0, (3, 1), 1e39, float), ValueError, ["X[3, 1]", "1e+39"]),
    "no rows": (X0[:0], ValueError, ["(0, 5)"]),
    "no columns": (X0[:, :0], ValueError, ["(60, 0)"]),
    "one row alone": (X0[0], ValueError, ["(5,)", "reshape(1, -1)"]),
    "three axes": (X0[None], ValueError, ["(1, 60, 5)", "reshape(len(X), -1)"]),
    "a number": (5.0, ValueError, ["()"]),
    "strings": (X0.astype(str), (TypeError, ValueError), ["<U"]),
    "objects": (X0.astype(object), (TypeError, ValueError), ["object"]),
    "none": (None, (TypeError, ValueError), ["object"]),
    "complex": (X0.astype(complex), ValueError, ["complex128"]),
    "dates": (X0.astype("M8[s]"), (TypeError, ValueError), ["datetime64"]),
    "sparse": (Sparse(), TypeError, ["toarray()", "Sparse"]),
    "masked": (np.ma.masked_equal(changed(X0, (3, 1), 7), 7), ValueError, ["X", "masked"]),
    "tensor": (WITH_GRADIENT, TypeError, ["requires grad", "detach()"]),
    "bfloat16": (BFLOAT16, TypeError, ["BFloat16", "float()"]),
}
BAD_LABELS = {
    "too few": (Y0[:59], ValueError, ["(59,)", "60"]),
    "too many": (np.append(Y0, 0), ValueError, ["(61,)", "60"]),
    "missing": (None, ValueError, ["y is None"]),
    "one missing": (changed(Y0, 7, None, object), TypeError, ["y[7]", "None"]),
    "one NaN": (changed(Y0, 7, np.nan, object), TypeError, ["y[7]", "nan"]),
    "a number": (3, ValueError, ["()", "60"]),
    "floats": (Y0.astype(float), TypeError, ["float64", "astype(int)"]),
    "masked": (np.ma.masked_equal(Y0, 3), ValueError, ["y", "masked"]),
    "tensor": (WITH_GRADIENT, TypeError, ["requires grad", "detach()"]),
    "bytes": (Y0.astype("S"), TypeError, ["S", "astype(str)"]),
    "mixed": (np.array([0, "a"] * 30, object), TypeError, ["object"]),
    "beyond int64": (Y0.astype(np.uint64) + 2**63, ValueError, ["92233720368547758"]),
    "one column": (Y0[:, None], ValueError, ["(60, 1)"]),
    "three axes": (np.zeros((60, 2, 2), int), ValueError, ["(60, 2, 2)"]),
    "matrix of strings": (M0.astype(str), TypeError, ["<U"]),
    "matrix of floats": (M0.astype(float), TypeError, ["float64"]),
    "no label": (changed(M0, 7, 0), ValueError, ["y[7]"]),
    "a 2": (changed(M0, (3, 1), 2), ValueError, ["3, 1", "2"]),
    "a -1": (changed(M0, (3, 1), -1), ValueError, ["3, 1", "-1"]),
    "matrix too short": (M0[:59], ValueError, ["(59, 6)", "60"]),
}
BAD_CALLS = {f"X {name}": (X, Y0, *rest) for name, (X, *rest) in BAD_FEATURES.items()}
BAD_CALLS |= {f"y {name}": (X0, y, *rest) for name, (y, *rest) in BAD_LABELS.items()}
