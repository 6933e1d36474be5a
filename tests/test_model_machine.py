"""Random calls on models of every method: after each, what saves loads, and learns on alike.

`HYPOTHESIS_PROFILE=nightly pytest -m machine` looks for long.
"""

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    KINDS,
    Shift,
    assert_helpful,
    assert_same_state,
    multi_stream,
    stream,
)
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import baselines
import ridge
from hmoh import HMOH, CodebookHasher, NotFittedError
from ridge import HadamardRidge

pytestmark = pytest.mark.machine
METHODS = {m.make.__name__: m.make for m in baselines.METHODS.values()}
METHODS["PublishedHMOH"] = baselines.PublishedHMOH
# So that few rows are enough to begin with.
SMALL = {
    "OKH": {"n_anchors": 12},
    "SketchHash": {"sketch_size": 40, "sketch_batch": 12},
    "FROSH": {"sketch_size": 40, "block": 44},
    "MIHash": {"reservoir": 20, "update_every": 7},
    "BSODH": {"batch": 16},
}
ROWS = st.one_of(st.just(1), st.integers(1, 40))
WAYS = [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]


class Calls(RuleBasedStateMachine):
    """A model of one method, and a stream that brings new labels again and again."""

    method = HMOH

    @initialize(
        seed=st.integers(0, 99),
        n_bits=st.integers(2, 17),
        multi=st.booleans(),
        is_mapped=st.booleans(),
        kind=st.sampled_from(KINDS),
        balanced=st.booleans(),
        known=st.booleans(),
    )
    def begin(self, seed, n_bits, multi, is_mapped, kind, balanced, known):
        self.rng = np.random.default_rng(seed)
        self.make_rows = multi_stream if multi else stream
        params = {"n_bits": n_bits, "random_state": seed} | SMALL.get(self.method.__name__, {})
        if is_mapped:
            params |= {"feature_map": Shift(12), "warmup": 12}
        if issubclass(self.method, CodebookHasher):
            params |= {"codebook": kind}
        if balanced and self.method.takes_weights:
            params |= {"class_weight": "balanced"}
        self.maps = params.get("feature_map")
        self.model = self.method(**params)
        self.classes = np.arange(3) if known and not multi and self.method.needs_labels else None
        self.learn(self.model, 5)

    def learn(self, model, n, weighted=False):
        """Pass n rows to `partial_fit`. The more were seen, the more labels there are."""
        seen = getattr(model, "n_seen_", 0)
        n_labels = 7 if self.make_rows is multi_stream else 2 + seen // 12
        X, y = self.make_rows(n, d=18, n_labels=n_labels, seed=int(self.rng.integers(1000)))
        weights = {"sample_weight": self.rng.integers(3, size=n)} if weighted else {}
        classes = None if seen else self.classes
        model.partial_fit(X, y, classes, **weights)

    @rule(n=ROWS, weighted=st.booleans())
    def learn_rows(self, n, weighted):
        self.learn(self.model, n, weighted and self.model.takes_weights)

    @rule(way=st.sampled_from(WAYS))
    def go_on_with_a_copy(self, way):
        other, self.model = self.model, way(self.model)
        self.learn(other, 3)

    @rule()
    def close(self):
        try:
            self.model.close()
        except ValueError as error:  # a map or a method needs more rows
            assert_helpful(error)

    @precondition(lambda self: hasattr(self.model, "blank"))
    @rule(n=ROWS, keep=st.booleans())
    def blank(self, n, keep):
        try:
            part = self.model.blank()
        except NotFittedError:
            return
        self.learn(part, n)
        if keep or self.model.class_weight:
            self.model = part
        else:
            try:
                self.model.merge(part)
            except ValueError as error:
                assert "labels came as" in str(error)

    @precondition(lambda self: hasattr(self.model, "recoded"))
    @rule(n_bits=st.integers(2, 17), kind=st.sampled_from(KINDS))
    def recode(self, n_bits, kind):
        try:
            self.model = self.model.recoded(n_bits=n_bits, codebook=kind)
        except NotFittedError:
            return

    @invariant()
    def what_saves_loads_and_goes_on(self):
        if not hasattr(self, "model"):
            return
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(Path(folder) / "model.npz")
            loaded = self.method.load(Path(folder) / "model.npz", feature_map=self.maps)
        assert_same_state(self.model, loaded)
        twin, state = copy.deepcopy(self.model), self.rng.bit_generator.state
        for model in (twin, loaded):
            self.rng.bit_generator.state = state
            self.learn(model, 7)
        assert_same_state(twin, loaded)


few = settings(
    max_examples=settings().max_examples // (4 if JIT_IS_OFF else 1),
    stateful_step_count=8,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.filterwarnings("ignore:the mean makes up")
@pytest.mark.parametrize("name", METHODS)
def test_after_any_calls_the_saved_model_loads_and_goes_on_alike(name, monkeypatch):
    monkeypatch.setattr(ridge, "BLOCK", 16)
    monkeypatch.setattr(HadamardRidge, "_update_size", 16)
    machine = type("Calls", (Calls,), {"method": METHODS[name]})
    run_state_machine_as_test(machine, settings=few)
