"""Random calls on models of every method: whatever happens, a model knows what its calls taught.

A model is fed, closed, started again, copied, saved, misused and asked, in any order. Another one,
which gets the same stream in as few calls as possible, must be equal to the last bit.

`HYPOTHESIS_PROFILE=nightly pytest -m machine` looks for long.
"""

import copy
import pickle
import random
import tempfile
from pathlib import Path

import hypothesis
import naive
import numpy as np
import pytest
from helpers import (
    KINDS,
    LOOK,
    Shift,
    assert_helpful,
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
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_allclose, assert_array_equal

import baselines
import hmoh
import ridge
from hmoh import HMOH, CodebookHasher, NotFittedError
from ridge import HadamardRidge

pytestmark = pytest.mark.machine
METHODS = {m.make.__name__: m.make for m in baselines.METHODS.values()}
METHODS["PublishedHMOH"] = baselines.PublishedHMOH
N_ROWS = 400
CASES = {
    "labels": ["near", "far", "strings", "sets"],
    "n_labels": range(1, 21),
    "integer": [True, False],
    "weighted": [True, False],
    "known": [None, None, "classes", "n_classes"],
    "maps": ["none", "none", "map", "list"],
    "n_bits": range(1, 18),
    "codebook": KINDS,
    "class_weight": [None, None, "balanced"],
    "memory": [None, None, "last state", 1, 2, 7, 20, 300],
    "batch_size": [1, 1, 2, 7, 70],
    "FEW_ROWS": [64, 4, 0],
    "BLOCK_ROWS": [8192, 65],
    "FAR_PAIRS": [200_000, 8],
}
MAPS = {"none": lambda: None, "map": lambda: Shift(7), "list": lambda: [Shift(3), Shift(9)]}
# So that few rows are enough to begin with.
SMALL = {
    "OKH": {"n_anchors": 12},
    "SketchHash": {"sketch_size": 40, "sketch_batch": 12},
    "FROSH": {"sketch_size": 40, "block": 44},
    "MIHash": {"reservoir": 20, "update_every": 7},
    "BSODH": {"batch": 16},
    "LEMON": {"chunk": 16},
    "OASIS": {"chunk": 16},
    "FOH": {"batch": 16},
}
ROWS = st.one_of(st.just(1), st.integers(1, 80))


def make_stream(rng, labels, n_labels, integer):
    """Return X and y in which new labels come again and again."""
    X = rng.integers(-4, 5, size=(N_ROWS, 18)).astype(np.float32)
    if not integer:
        X += rng.normal(size=X.shape).astype(np.float32)
    known = np.minimum(1 + np.arange(N_ROWS) * n_labels // (N_ROWS // 2), n_labels)
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
        return type(model).load(Path(folder) / "model.npz", feature_map=maps())


WAYS = {
    "file": loaded,
    "copy": lambda model, maps: copy.copy(model),
    "deepcopy": lambda model, maps: copy.deepcopy(model),
    "pickle": lambda model, maps: pickle.loads(pickle.dumps(model)),
}
# Each makes of X and y a call that must fail, the second ones where labels are needed.
BAD_LABELS = {
    "floats": lambda X, y: (X, np.ones(len(X))),
    "another form": lambda X, y: (X, [[0, 1]] * len(X) if y.ndim == 1 else y[:, 0]),
    "other classes": lambda X, y: (X, y, [-99, 99]),
}
BAD = BAD_LABELS | {
    "nan": lambda X, y: (np.where(X[-1] == X, np.nan, X), y),
    "width": lambda X, y: (X[:, :2], y),
}


def shown(model, X):
    """Return what a model makes of X, or why it makes nothing."""
    try:
        return model.decision_function(X)
    except NotFittedError as error:
        return str(error)


class Calls(RuleBasedStateMachine):
    """A model, what it has been fed, and the calls that another one needs to know as much."""

    def __init__(self, method, seed):
        super().__init__()
        self.method = method
        rng = random.Random(seed)
        case = {name: rng.choice(CASES[name]) for name in CASES}
        note(case)
        self.patch = pytest.MonkeyPatch()
        for name in ("FEW_ROWS", "BLOCK_ROWS", "FAR_PAIRS"):
            self.patch.setattr(hmoh, name, case[name])
        self.patch.setattr(hmoh, "DRAWS", 20)
        self.patch.setattr(ridge, "BLOCK", 16)
        self.patch.setattr(HadamardRidge, "_update_size", 16)
        self.is_exact = case["integer"]
        self.maps = MAPS[case["maps"]]
        rows = np.random.default_rng(seed)
        self.X, self.y = make_stream(rows, case["labels"], case["n_labels"], case["integer"])
        is_weighted = case["weighted"] and method.takes_weights
        self.weights = rows.integers(3, size=N_ROWS) if is_weighted else None
        is_multi = self.y.ndim == 2
        is_told = case["known"] == "classes" and not is_multi and method.needs_labels
        self.classes = np.unique(self.y) if is_told else None
        self.params = {"n_bits": case["n_bits"], "random_state": seed}
        self.params |= SMALL.get(method.__name__, {})
        if issubclass(method, CodebookHasher):
            self.params["codebook"] = case["codebook"]
            if case["known"] == "n_classes":
                self.params["n_classes"] = case["n_labels"] + is_multi
        if method.takes_weights:
            self.params["class_weight"] = case["class_weight"]
            self.params["memory"] = case["memory"] if case["memory"] != "last state" else None
        if method is HMOH:
            self.params["ensemble"] = case["memory"] != "last state"
            self.params["batch_size"] = case["batch_size"]
        self.model = self.make()
        self.calls = []  # names of methods, and the rows that they get
        self.is_known = True  # whether these calls teach all that the model knows
        self.n = 0  # rows that the model has seen

    def make(self):
        return self.method(feature_map=self.maps(), **self.params)

    def call(self, model, name, start, stop):
        """Pass some rows of the stream to `fit` or `partial_fit`, and classes in the first call."""
        known = {"classes": self.classes} if name == "partial_fit" and start == 0 else {}
        if self.weights is not None:
            known["sample_weight"] = self.weights[start:stop]
        getattr(model, name)(self.X[start:stop], self.y[start:stop], **known)

    def go_on(self, models):
        """Let models learn rows that they have not seen in this order."""
        for rows in (slice(0, 1), slice(0, 70)):
            for model in models:
                model.partial_fit(-self.X[rows], self.y[::-1][rows])

    @initialize(n=ROWS)
    def begin(self, n):
        self.learn_rows(n)

    @rule(n=ROWS)
    def learn_rows(self, n):
        start, self.n = self.n, min(self.n + n, N_ROWS)
        if start == self.n:
            return
        self.call(self.model, "partial_fit", start, self.n)
        if self.calls and self.calls[-1][0] == "partial_fit":
            start = self.calls.pop()[1]
        self.calls.append(("partial_fit", start, self.n))

    @rule(n=st.integers(1, 90))
    def start_again(self, n):
        try:
            self.call(self.model, "fit", 0, n)
        except ValueError as error:  # a map or a method needs more rows
            assert_helpful(error)
            return
        self.n = n
        self.calls = [("fit", 0, n)]
        self.is_known = True

    @rule()
    def close(self):
        try:
            self.model.close()
        except ValueError as error:
            assert_helpful(error)
            return
        self.calls.append(("close",))

    @rule(way=st.sampled_from(sorted(WAYS)), is_swapped=st.booleans())
    def pass_on(self, way, is_swapped):
        pair = [self.model, WAYS[way](self.model, self.maps)]
        assert_same_state(*pair)
        # What the one goes on to learn does not reach the other.
        other, self.model = pair[::-1] if is_swapped else pair
        before = copy.deepcopy(self.model)
        self.go_on([other])
        assert_same_state(before, self.model)
        self.go_on([before])
        assert_same_state(before, other)

    @rule(how=st.sampled_from(sorted(BAD)), n=st.integers(2, 70))
    def misuse(self, how, n):
        if how in BAD_LABELS and not self.method.needs_labels:
            return
        rows = slice(self.n % 100, self.n % 100 + n)
        before = contents(self.model)
        with pytest.raises((TypeError, ValueError)):
            self.model.partial_fit(*BAD[how](self.X[rows], self.y[rows]))
        assert_same_arrays(contents(self.model), before)

    @precondition(lambda self: hasattr(self.model, "blank"))
    @rule(n=ROWS, keep=st.booleans())
    def blank(self, n, keep):
        try:
            part = self.model.blank()
        except NotFittedError:
            return
        self.call(part, "partial_fit", N_ROWS - n, N_ROWS)
        if keep:
            self.model = part
        else:
            try:
                self.model.merge(part)
            except ValueError as error:
                assert_helpful(error)
        self.is_known = False

    @precondition(lambda self: hasattr(self.model, "recoded"))
    @rule(n_bits=st.integers(2, 17), kind=st.sampled_from(KINDS))
    def recode(self, n_bits, kind):
        params = {"n_bits": n_bits, "codebook": kind}
        try:
            self.model = self.model.recoded(**params)
        except NotFittedError:
            return
        self.params |= params
        self.is_known = False

    @rule()
    def compare(self):
        values = shown(self.model, self.X[:20])  # whoever asks changes nothing
        if not self.is_known:
            return
        whole = self.make()
        for name, *rows in self.calls:
            self.call(whole, name, *rows) if rows else whole.close()
        assert_same_state(whole, self.model)
        assert_array_equal(values, shown(whole, self.X[:20]), strict=True)

    def teardown(self):
        try:
            self.compare()
            is_one_call = self.is_known and [call[0] for call in self.calls] == ["partial_fit"]
            if self.method is HMOH and is_one_call and self.is_exact:
                self.compare_with_naive()
        finally:
            self.patch.undo()

    def compare_with_naive(self):
        if isinstance(shown(self.model, self.X), str) or self.model.class_weight:
            return  # it has not begun
        Z = self.X.copy()
        maps = self.model.feature_map_ or []
        for part in maps if isinstance(maps, list) else [maps]:
            Z = 2 * Z - part.rows_[0]
        batch = self.model.batch_size
        n = self.n - self.n % batch
        rows, C = target_rows(self.model, self.y[:n])
        W, average = naive.perceptron(Z[:n], rows, C, batch, self.model.memory, self.weights)
        expected = (average if self.model.ensemble else W).T
        assert_allclose(self.model.weights_, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


# Few examples of many cases: hypothesis alone would try neighbours of the same few cases.
few = settings(max_examples=3, suppress_health_check=list(HealthCheck))
LOOKS = {"HMOH": 50, "HadamardRidge": 12}
SEEDS = [(name, seed) for name in METHODS for seed in range(LOOKS.get(name, 2) * LOOK)]


@pytest.mark.filterwarnings("ignore:the mean makes up")
@pytest.mark.parametrize("name, seed", SEEDS)
def test_after_any_calls_a_model_knows_what_they_taught(name, seed):
    # With a seed of their own, because derandomized examples are the same for every case.
    machine = hypothesis.seed(seed)(lambda: Calls(METHODS[name], seed))
    run_state_machine_as_test(machine, settings=few)
