"""Random streams: whatever happens between its calls, a model learns what one call would teach.

`HYPOTHESIS_PROFILE=nightly pytest -m machine` looks for long.
"""

import copy
import pickle
import random
import tempfile
from pathlib import Path

import naive
import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    KINDS,
    Shift,
    assert_same,
    assert_same_arrays,
    assert_same_state,
    contents,
    target_rows,
)
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_allclose

import hmoh
from hmoh import HMOH, NotFittedError

pytestmark = pytest.mark.machine
N_ROWS = 400
CASES = {
    "labels": ["near", "far", "strings", "sets"],
    "n_labels": range(1, 21),
    "integer": [True, False],
    "known": [None, None, "classes", "n_classes"],
    "maps": ["none", "none", "map", "list"],
    "n_bits": range(1, 18),
    "codebook": KINDS,
    "memory": [None, None, "last state", 1, 2, 7, 20, 300],
    "batch_size": [1, 1, 2, 7, 70],
    "FEW_ROWS": [64, 4, 0],
    "BLOCK_ROWS": [8192, 65],
    "FAR_PAIRS": [200_000, 8],
}
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
    return X, (y - 5) * (1 if labels == "near" else 10**9)


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
# Each makes of X and y a call that must fail.
BAD = {
    "nan": lambda X, y: (np.where(X[-1] == X, np.nan, X), y),
    "width": lambda X, y: (X[:, :2], y),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "one axis": lambda X, y: (X[0], y[:1]),
    "strings": lambda X, y: (X.astype(str), y),
    "too few labels": lambda X, y: (X, y[1:]),
    "no labels": lambda X, y: (X, None),
    "float labels": lambda X, y: (X, np.ones(len(X))),
    "other labels": lambda X, y: (X, [[0, 1]] * len(X) if y.ndim == 1 else y[:, 0]),
    "other strings": lambda X, y: (
        X,
        np.arange(len(X)).astype("U" if y.dtype.kind == "i" else int),
    ),
    "other columns": lambda X, y: (X, np.ones((len(X), 40), int)),
    "classes": lambda X, y: (X, y, [["a"], ["b"]]),
    "other classes": lambda X, y: (X, y, [-99, 99]),
}


class Streams(RuleBasedStateMachine):
    """A model that is fed, copied, saved, misused, and asked; and what it has been fed."""

    def __init__(self, seed):
        super().__init__()
        rng = random.Random(seed)
        case = {name: rng.choice(CASES[name]) for name in CASES}
        note(case)
        self.patch = pytest.MonkeyPatch()
        for name in ("FEW_ROWS", "BLOCK_ROWS", "FAR_PAIRS"):
            self.patch.setattr(hmoh, name, case[name])
        self.patch.setattr(hmoh, "DRAWS", 20)
        self.is_exact = case["integer"]
        self.maps = MAPS[case["maps"]]
        shape = (case["labels"], case["n_labels"], case["integer"])
        self.X, self.y = make_stream(np.random.default_rng(seed), *shape)
        is_multi = self.y.ndim == 2
        is_told = case["known"] == "classes" and not is_multi
        self.classes = np.unique(self.y) if is_told else None
        self.params = {name: case[name] for name in ("n_bits", "codebook", "batch_size")}
        self.params["random_state"] = seed
        if case["known"] == "n_classes":
            self.params["n_classes"] = case["n_labels"] + is_multi
        if case["memory"] == "last state":
            self.params["ensemble"] = False
        else:
            self.params["memory"] = case["memory"]
        self.model = self.make()
        self.n_fitted = 0  # rows that `fit` has learned
        self.n = 0  # rows that the model has seen

    def make(self):
        return HMOH(feature_map=self.maps(), **self.params)

    def learn(self, model, start, stop):
        """Pass some rows of the stream to `partial_fit`, and classes in the first call."""
        classes = self.classes if start == 0 else None
        model.partial_fit(self.X[start:stop], self.y[start:stop], classes)

    @initialize(n=st.integers(1, 80))
    def begin(self, n):
        self.learn_rows(n)

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

    @rule(way=st.sampled_from(sorted(WAYS)), is_swapped=st.booleans())
    def pass_on(self, way, is_swapped):
        pair = [self.model, WAYS[way](self.model, self.maps)]
        # What the one goes on to learn does not reach the other.
        other, self.model = pair[::-1] if is_swapped else pair
        for rows in (slice(0, 1), slice(0, 70)):
            other.partial_fit(-self.X[rows], self.y[::-1][rows])

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
            self.learn(whole, self.n_fitted, self.n)
        assert_same_state(whole, self.model)
        assert_same(whole, self.model, self.X)

    def teardown(self):
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


# Few examples of many cases: hypothesis alone would try neighbours of the same few cases.
few = settings(max_examples=6, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("seed", range(settings().max_examples * (1 if JIT_IS_OFF else 6) // 2))
def test_a_stream_is_learned_as_in_one_call_whatever_happens_on_the_way(seed):
    run_state_machine_as_test(lambda: Streams(seed), settings=few)
