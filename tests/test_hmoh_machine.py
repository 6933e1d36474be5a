"""Random streams: whatever happens between its calls, a model learns what one call would teach.

`HYPOTHESIS_PROFILE=nightly pytest -m machine` looks for long.
"""

import copy
import pickle
import tempfile
from pathlib import Path

import naive
import numpy as np
import pytest
from helpers import (
    KINDS,
    Shift,
    assert_same,
    assert_same_arrays,
    assert_same_state,
    contents,
    target_rows,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from numpy.testing import assert_allclose, assert_array_equal

import hmoh
from hmoh import HMOH, NotFittedError

pytestmark = pytest.mark.machine
N_ROWS = 400
MAPS = {"none": lambda: None, "map": lambda: Shift(7), "list": lambda: [Shift(3), Shift(9)]}


def make_stream(rng, labels, n_labels, integer):
    """Return X and y in which new labels come again and again."""
    X = rng.integers(-4, 5, size=(N_ROWS, 3)).astype(np.float32)
    if not integer:
        X += rng.normal(size=X.shape).astype(np.float32)
    known = 1 + np.arange(N_ROWS) * n_labels // N_ROWS
    y = rng.integers(known)
    if labels == "sets":
        Y = rng.random((N_ROWS, n_labels + 1)) < 0.3
        Y[np.arange(N_ROWS), y] = True
        return X, Y.astype(int)
    if labels == "strings":
        return X, np.array([f"{'x' * (label % 3)}{label}" for label in y])
    return X, 10**labels * (y - 5)


def loaded(model, maps):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        return HMOH.load(Path(folder) / "model.npz", feature_map=maps())


WAYS = {
    "file": loaded,
    "copy": lambda model, maps: copy.copy(model),
    "deepcopy": lambda model, maps: copy.deepcopy(model),
    "pickle": lambda model, maps: pickle.loads(pickle.dumps(model)),
}
# Each is given X, y and the number of labels, and returns a call that must fail.
BAD = {
    "nan": lambda X, y: (np.where(X == X[-1], np.nan, X), y),
    "width": lambda X, y: (X[:, :2], y),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "one axis": lambda X, y: (X[0], y[:1]),
    "strings": lambda X, y: (X.astype(str), y),
    "too few labels": lambda X, y: (X, y[1:]),
    "no labels": lambda X, y: (X, None),
    "float labels": lambda X, y: (X, np.ones(len(X))),
    "other labels": lambda X, y: (X, [[0, 1]] * len(X) if y.ndim == 1 else y[:, 0]),
    "other strings": lambda X, y: (X, np.arange(len(X)).astype(str if y.dtype.kind == "i" else int)),
    "other columns": lambda X, y: (X, np.ones((len(X), 40), int)),
    "classes": lambda X, y: (X, y, [["a"], ["b"]]),
    "other classes": lambda X, y: (X, y, [-99, 99]),
}


class Streams(RuleBasedStateMachine):
    """A model that is fed, copied, saved, misused, and asked; and what it has been fed."""

    @initialize(
        seed=st.integers(0, 2**32),
        labels=st.sampled_from([0, 0, 9, "strings", "sets"]),
        n_labels=st.integers(1, 20),
        integer=st.booleans(),
        known=st.sampled_from([None, "classes", "n_classes"]),
        maps=st.sampled_from(sorted(MAPS)),
        n_bits=st.integers(1, 17),
        codebook=st.sampled_from(KINDS),
        memory=st.sampled_from([None, None, False, 1, 2, 7, 20, 300]),
        batch_size=st.sampled_from([1, 1, 2, 7, 70]),
        constants=st.fixed_dictionaries(
            {
                "RUN": st.sampled_from([1000, 10, 7, 3]),
                "FEW_ROWS": st.sampled_from([64, 4, 0]),
                "BLOCK_ROWS": st.sampled_from([8192, 65]),
                "DRAWS": st.just(20),
                "FAR_LABELS": st.sampled_from([1000, 8]),
            }
        ),
    )
    def begin(self, seed, labels, n_labels, integer, known, maps, constants, memory, **params):
        self.patch = pytest.MonkeyPatch()
        for name, value in constants.items():
            self.patch.setattr(hmoh, name, value)
        rng = np.random.default_rng(seed)
        self.X, self.y = make_stream(rng, labels, n_labels, integer)
        self.maps = MAPS[maps]
        self.is_exact = integer
        self.classes = None
        is_multi = self.y.ndim == 2
        if known == "classes" and not is_multi:
            self.classes = np.unique(self.y)
        if known == "n_classes":
            params["n_classes"] = self.y.shape[1] if is_multi else n_labels
        if memory is False:
            params["ensemble"] = False
        else:
            params["memory"] = memory
        self.params = params | {"random_state": seed}
        self.model = self.make()
        self.n_fitted = 0  # rows that `fit` has learned
        self.n = 0  # rows that the model has seen

    def make(self):
        return HMOH(feature_map=self.maps(), **self.params)

    def learn(self, model, start, stop):
        """Pass some rows of the stream to `partial_fit`, and classes in the first call."""
        classes = self.classes if start == 0 else None
        model.partial_fit(self.X[start:stop], self.y[start:stop], classes)

    @rule(n=st.one_of(st.just(1), st.integers(1, 80)))
    def learn_rows(self, n):
        if self.n < N_ROWS:
            self.learn(self.model, self.n, self.n + n)
            self.n = min(self.n + n, N_ROWS)
            assert self.model.n_seen_ == self.n

    @rule(n=st.integers(10, 90))
    def start_again(self, n):
        self.model.fit(self.X[:n], self.y[:n])
        self.n_fitted = self.n = n

    @rule(way=st.sampled_from(sorted(WAYS)))
    def pass_on(self, way):
        if self.n == 0 and way == "file":
            return
        original = self.model
        self.model = WAYS[way](original, self.maps)
        # What the original goes on to learn does not reach the other one.
        if self.n:
            original.partial_fit(-self.X[:3], self.y[-3:])

    @rule(how=st.sampled_from(sorted(BAD)), n=st.integers(2, 70))
    def misuse(self, how, n):
        if how == "width" and not self.n:
            return  # the first call sets the width
        rows = slice(self.n % 100, self.n % 100 + n)
        call = BAD[how](self.X[rows], self.y[rows])
        if how.startswith("other ") and not self.n and how != "other classes":
            return  # the first call sets the form of the labels
        if how == "other classes" and not self.n and self.y.dtype.kind == "i" and self.y.ndim == 1:
            return  # they may be so
        before = contents(self.model)
        with pytest.raises((TypeError, ValueError)):
            self.model.partial_fit(*call)
        assert_same_arrays(contents(self.model), before)

    @rule()
    def encode(self):
        try:
            codes = self.model.transform(self.X[:20])
        except NotFittedError:
            return
        assert codes.shape == (20, -(-self.model.n_bits // 8))

    @rule()
    def compare(self):
        if not self.n:
            return
        whole = self.make()
        if self.n_fitted:
            whole.fit(self.X[: self.n_fitted], self.y[: self.n_fitted])
        if self.n > self.n_fitted:
            start = self.n_fitted
            classes = self.classes if start == 0 else None
            whole.partial_fit(self.X[start : self.n], self.y[start : self.n], classes)
        assert_same_state(whole, self.model)
        assert_same(whole, self.model, self.X)

    def teardown(self):
        if not hasattr(self, "model"):
            return
        try:
            self.compare()
            # `fit` closes a batch, which the twin does not know.
            if self.is_exact and self.n and not (self.n_fitted and self.model.batch_size > 1):
                self.compare_with_naive()
        finally:
            self.patch.undo()

    def compare_with_naive(self):
        try:
            weights = self.model.weights_
        except NotFittedError:
            return
        Z = self.X.copy()
        maps = self.model.feature_map_ or []
        for part in maps if isinstance(maps, list) else [maps]:
            Z = 2 * Z - part.rows_[0]
        batch = self.model.batch_size
        n = self.n - self.n % batch
        rows, C = target_rows(self.model, self.y[:n])
        W, average = naive.perceptron(Z[:n], rows, C, batch, self.model.memory)
        expected = (average if self.model.ensemble else W).T
        assert_allclose(weights, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())
        if self.model.memory is None:
            assert_array_equal(weights, expected.astype(np.float32))


TestStreams = Streams.TestCase
TestStreams.settings = settings(TestStreams.settings, max_examples=3 * settings().max_examples)
