"""HadamardRidge: its twin, any cutting and merging of streams, forgetting, and its files."""

import copy
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    STRINGS,
    Affine,
    assert_helpful,
    assert_same_state,
    either_stream,
    feed,
    multi_stream,
    plain,
    quick,
    stream,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_crafted_files import assert_refused, contents, with_value, write
from test_hmoh_input import BAD_CALLS, BAD_FEATURES, M0, X0, Y0
from test_hmoh_sklearn import Frame

from baselines import HadamardRidge, hadamard_ridge
from hmoh import HMOH, NotFittedError
from kernels import RBF, UnitLength
from metrics import mean_average_precision
from study.choose_ridge import held_out_scores
from study.datasets import Dataset, load, split

MEMORIES = [None, 1, 2, 7, 16, 25, 60, 10**6, 10**30]


@pytest.fixture
def short_blocks(monkeypatch):
    """Make the blocks short, so that a short stream has many."""
    monkeypatch.setattr(hadamard_ridge, "BLOCK", 16)


def targets_of(model, y):
    """Return the target code of every sample."""
    if y.ndim == 1:
        return np.array([model.targets_[label] for label in y.tolist()])
    sets = [tuple(np.flatnonzero(row).tolist()) for row in y]
    return np.array([model.label_set_targets_[labels] for labels in sets])


def assert_near(a, b, X, rtol=1e-5, least=0.999):
    """Check that the weights of two models are near, and nearly all bits equal."""
    expected = b.weights_
    assert_allclose(a.weights_, expected, rtol=0, atol=rtol * abs(expected).max())
    bits = [np.unpackbits(model.transform(X), axis=1) for model in (a, b)]
    assert (bits[0] == bits[1]).mean() >= least


# ---- the solution --------------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("ridge", [1e-8, 1e-3, 0.3, 100])
def test_gradient_of_the_loss_is_zero(ridge, multi, short_blocks):
    X, y = either_stream(multi)
    model = HadamardRidge(9, ridge=ridge, random_state=0).partial_fit(X, y)
    Z = X.astype(np.float64)
    penalty = ridge * np.square(Z).sum() / Z.shape[1]
    W = model._solve()
    gradient = Z.T @ (Z @ W - targets_of(model, y)) + penalty * W
    assert abs(gradient).max() < 1e-9 * np.square(Z).sum()
    assert_array_equal(model.weights_, W.astype(np.float32), strict=True)
    assert_allclose(model.decision_function(X), Z @ W, atol=1e-5)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("block", [1, 16, 512])
def test_agrees_with_naive_at_any_time(memory, multi, block, monkeypatch):
    monkeypatch.setattr(hadamard_ridge, "BLOCK", block)
    X, y = either_stream(multi)
    model = HadamardRidge(5, ridge=0.1, memory=memory, random_state=0)
    for start, stop in itertools.pairwise([0, 1, 3, 15, 16, 17, 33, 60]):
        model.partial_fit(X[start:stop], y[start:stop])
        C = targets_of(model, y[:stop])
        expected = naive.hadamard_ridge(X[:stop], C, 0.1, memory)
        atol = 1e-6 * abs(expected).max()
        assert_allclose(model.weights_, expected, rtol=1e-5, atol=atol)
    assert model.n_seen_ == 60


def test_plain_elimination_solves():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    A[0, 0] = 0  # needs another pivot
    B = rng.normal(size=(6, 2))
    assert_allclose(naive.solve(A, B), np.linalg.solve(A, B))


def test_forgetting_differs_from_the_uniform_sums():
    X, y = stream(200)
    all_alike, last = (HadamardRidge(8, memory=n, random_state=0) for n in (None, 50))
    first = slice(0, 50)
    all_alike.partial_fit(X[first], y[first])
    last.partial_fit(X[first], y[first])
    assert_array_equal(last.weights_, all_alike.weights_)
    rest = slice(50, 200)
    all_alike.partial_fit(X[rest], y[rest])
    last.partial_fit(X[rest], y[rest])
    assert abs(last.weights_ - all_alike.weights_).max() > 0.01


def test_what_was_forgotten_is_learned_again():
    """The labels of the features change. With a memory, the new ones win."""
    X, y = stream(600, 8)
    changed = np.where(np.arange(600) < 400, y, (y + 1) % 4)
    new = slice(500, 600)
    scores = []
    for memory in (None, 50):
        model = HadamardRidge(16, memory=memory, random_state=0)
        model.partial_fit(X[:500], changed[:500])
        right = targets_of(model, changed[new])
        scores.append((np.sign(model.decision_function(X[new])) == right).mean())
    assert scores[1] > 0.8 > scores[0] + 0.1


def test_codes_depend_neither_on_the_scale_nor_on_a_repetition_of_the_stream():
    X, y = stream()
    model = HadamardRidge(16, random_state=0).fit(X, y)
    # A power of two changes no rounding.
    scaled = HadamardRidge(16, random_state=0).fit(2.0**30 * X, y)
    assert_array_equal(2.0**30 * scaled.weights_, model.weights_)
    twice = HadamardRidge(16, random_state=0).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert_near(twice, model, X, rtol=1e-6, least=1)


@pytest.mark.parametrize("scale", [1e-20, 1e15])
def test_features_of_extreme_size_are_safe(scale):
    X, y = stream()
    model = HadamardRidge(16, random_state=0).fit(X, y)
    extreme = HadamardRidge(16, random_state=0).fit(scale * X, y)
    assert_allclose(extreme.decision_function(scale * X), model.decision_function(X), atol=1e-4)


def test_features_that_are_zero_give_weights_that_are_zero():
    X, y = stream()
    model = HadamardRidge(8, random_state=0).fit(0 * X, y)
    assert not model.weights_.any()
    assert not model.transform(X).any()
    # One feature that is never there is no reason to fail.
    X[:, 2] = 0
    assert not model.fit(X, y).weights_[2].any()


def test_targets_are_those_of_hmoh():
    for X, y in (stream(), multi_stream()):
        ours = HadamardRidge(9, codebook="spread", random_state=3).fit(X, y)
        theirs = HMOH(9, codebook="spread", random_state=3).fit(X, y)
        assert plain(ours.targets_) == plain(theirs.targets_)
        assert plain(ours.label_set_targets_) == plain(theirs.label_set_targets_)


def test_a_solution_is_computed_when_asked_for_and_kept_until_the_next_sample(
    monkeypatch,
):
    solve = HadamardRidge._solve
    solved = []
    monkeypatch.setattr(HadamardRidge, "_solve", lambda self: solved.append(1) or solve(self))
    X, y = stream()
    model = HadamardRidge(8, random_state=0)
    for i in range(30):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert not solved
    for _ in range(3):
        model.transform(X)
        model.decision_function(X)
        _ = model.weights_
    assert len(solved) == 1
    model.partial_fit(X[30:], y[30:]).transform(X)
    assert len(solved) == 2
    # Nobody can write into what is kept.
    model.weights_[:] = 0
    assert model.weights_.any()


# ---- cutting the stream --------------------------------------------------------------


@quick
@given(
    cuts=st.sets(st.integers(1, 59)),
    memory=st.sampled_from([None, 1, 5, 20]),
    multi=st.booleans(),
    block=st.sampled_from([1, 7, 16, 512]),
)
def test_any_cutting_gives_the_same_model_to_the_last_bit(cuts, memory, multi, block):
    X, y = either_stream(multi)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hadamard_ridge, "BLOCK", block)
        models = [HadamardRidge(8, memory=memory, random_state=0) for _ in range(2)]
        whole = models[0].partial_fit(X, y)
        parts = feed(models[1], X, y, cuts)
        assert_same_state(whole, parts)
        assert_array_equal(parts.weights_, whole.weights_)


@pytest.mark.parametrize("memory", [None, 700])
def test_cutting_before_feature_maps_changes_only_the_rounding(memory):
    X, y = stream(3000, 12)
    models = []
    for n_parts in (1, 13, 300):
        maps = [UnitLength(), RBF(100, center=True)]
        model = HadamardRidge(32, maps, memory=memory, warmup=300, random_state=0)
        cuts = np.linspace(0, len(X), n_parts + 1).astype(int)[1:-1]
        models.append(feed(model, X, y, cuts))
    for model in models[1:]:
        assert_near(model, models[0], X)


def test_the_order_of_the_stream_has_no_effect():
    X, y = stream(700)
    classes = np.arange(4)
    model = HadamardRidge(16, random_state=0).partial_fit(X, y, classes)
    order = np.argsort(y, kind="stable")
    sorted_ = HadamardRidge(16, random_state=0).partial_fit(X[order], y[order], classes)
    assert_near(sorted_, model, X, rtol=1e-6)


def test_new_classes_come_at_any_time(short_blocks):
    X, y = stream(120, n_labels=8)
    order = np.argsort(y, kind="stable")
    X = X[order]
    y = y[order]
    model = HadamardRidge(5, ridge=0.1, random_state=0)
    for stop in (10, 50, 120):  # the codebook grows on the way
        start = model.n_seen_ if hasattr(model, "n_seen_") else 0
        model.partial_fit(X[start:stop], y[start:stop])
        assert set(model.targets_) == set(y[:stop].tolist())
        expected = naive.hadamard_ridge(X[:stop], targets_of(model, y[:stop]), 0.1)
        assert_allclose(model.weights_, expected, rtol=1e-4, atol=1e-5)


def test_the_array_of_the_caller_may_change_afterwards(short_blocks):
    X, y = stream()
    expected = HadamardRidge(8, random_state=0).partial_fit(X, y).weights_
    model = HadamardRidge(8, random_state=0).partial_fit(X, y)
    X[:] = 7
    y[:] = 0
    assert_array_equal(model.weights_, expected)


# ---- merging -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "strings", "sets"])
def test_seven_shards_merged_equal_one_stream(kind, tmp_path):
    X, y = multi_stream(3000, 12) if kind == "sets" else stream(3000, 12)
    if kind == "strings":
        y = STRINGS[y]
    classes = None if kind == "sets" else np.unique(y)
    whole = HadamardRidge(32, random_state=0).partial_fit(X, y, classes)
    merged = None
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        shard = HadamardRidge(32, random_state=0).partial_fit(X[rows], y[rows], classes)
        shard.transform(X[:1])  # a solution that is kept must not outlive the merge
        merged = shard if merged is None else merged.merge(shard)
    assert merged.n_seen_ == 3000
    merged.save(tmp_path / "merged.npz")
    assert_same_state(HadamardRidge.load(tmp_path / "merged.npz"), merged)
    assert plain(merged.targets_) == plain(whole.targets_)
    assert plain(merged.label_set_targets_) == plain(whole.label_set_targets_)
    assert_near(merged, whole, X)
    # It learns on like the whole.
    merged.partial_fit(X[:700] + 1, y[:700])
    whole.partial_fit(X[:700] + 1, y[:700])
    assert_near(merged, whole, X)


def test_seven_shards_with_maps_are_merged_by_blank_models(tmp_path):
    X, y = stream(3000, 12)
    maps = [UnitLength(), RBF(100, center=True)]
    whole, merged = (HadamardRidge(32, maps, warmup=300, random_state=0) for _ in range(2))
    whole.partial_fit(X, y, np.arange(4))
    merged.partial_fit(X[:300], y[:300], np.arange(4))
    shards = [merged.blank() for _ in range(6)]
    parts = np.array_split(np.arange(300, 3000), 6)
    for shard, rows in zip(shards, parts, strict=True):
        shard.partial_fit(X[rows], y[rows])
        shard.save(tmp_path / "shard.npz")
        given_maps = [UnitLength(), RBF()]
        shard = HadamardRidge.load(tmp_path / "shard.npz", feature_map=given_maps)
        merged.merge(shard)
    assert merged.n_seen_ == 3000
    assert_near(merged, whole, X)


def test_merging_leaves_the_other_model_as_it_was():
    X, y = multi_stream(90)
    ours, theirs = (HadamardRidge(8, random_state=0) for _ in range(2))
    ours.partial_fit(X[:50], y[:50])
    theirs.partial_fit(X[50:], y[50:])
    state = copy.deepcopy(theirs._state())
    merged = copy.copy(ours).merge(theirs)
    for name, value in theirs._state().items():
        assert_array_equal(value, state[name])
    assert ours.n_seen_ == 50 and merged.n_seen_ == 90
    # The two orders differ in rounding, and in the order of the sets of labels.
    assert_near(theirs.merge(ours), merged, X, rtol=1e-6)


def test_labels_of_one_model_only_are_taken_if_they_came_after_all_others(short_blocks):
    X, y = stream(200, n_labels=12)
    order = np.argsort(y, kind="stable")
    X = X[order]
    y = y[order]
    whole = HadamardRidge(5, random_state=0).partial_fit(X, y)
    few = HadamardRidge(5, random_state=0).partial_fit(X[:40], y[:40])
    assert len(few.targets_) < 5
    # The same first labels in the same order, then others, for which the codebook grows.
    more = HadamardRidge(5, random_state=0)
    more.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    expected = feed(copy.copy(whole), X[:40], y[:40])
    for merged in (copy.copy(few).merge(more), copy.copy(more).merge(few)):
        assert plain(merged.targets_) == plain(whole.targets_)
        assert_near(merged, expected, X)
        # New labels get the targets that they would have got.
        later = [copy.copy(model).partial_fit(X[:1], [99]) for model in (merged, whole)]
        assert plain(later[0].targets_) == plain(later[1].targets_)


def pair(ours=None, theirs=None, maps=(None, None), streams=None, classes=(None, None)):
    """Return two models with other parameters, maps, streams or classes."""
    streams = streams or [stream(seed=1), stream(seed=1)]
    models = []
    for params, part, (X, y), known in zip((ours, theirs), maps, streams, classes, strict=True):
        params = {"n_bits": 8, "warmup": 20, "random_state": 0} | (params or {})
        model = HadamardRidge(feature_map=part, **params)
        models.append(model.partial_fit(X, y, known))
    return models


X1, Y1 = stream(seed=1)
NOT_MERGEABLE = {
    "memory here": (pair({"memory": 9}), ["memory=9", "order"]),
    "memory there": (pair(None, {"memory": 9}), ["memory=9", "order"]),
    "bits": (pair({"n_bits": 16}), ["n_bits", "16", "8"]),
    "ridge": (pair({"ridge": 0.5}), ["ridge", "0.5", "0.001"]),
    "codebook": (pair({"codebook": "spread"}), ["codebook", "spread", "random"]),
    "number of classes": (pair({"n_classes": 4}), ["n_classes", "4", "None"]),
    "seed": (pair({"random_state": 1}), ["random_state is 1", "0", "same int"]),
    "no seed": (pair(*[{"random_state": None}] * 2), ["random_state is None"]),
    "order of labels": (
        pair(streams=[(X1, Y1), (X1[::-1], Y1[::-1])]),
        ["different orders", "classes"],
    ),
    "other labels": (
        pair(streams=[(X1, Y1), (X1, Y1 + 7)]),
        ["different orders", "classes"],
    ),
    "classes in one": (pair(classes=(None, np.arange(4))), ["orders", "classes"]),
    "other classes": (
        pair(classes=(np.arange(5), np.arange(4))),
        ["orders", "classes"],
    ),
    "strings": (pair(streams=[(X1, Y1), (X1, STRINGS[Y1])]), ["different forms"]),
    "sets": (pair(streams=[(X1, Y1), multi_stream()]), ["different forms"]),
    "columns": (pair(streams=[multi_stream(), multi_stream(n_labels=5)]), ["forms"]),
    "width": (pair(streams=[(X1, Y1), (X1[:, 1:], Y1)]), ["are 5 here and 4"]),
    "maps on other samples": (
        pair(maps=(RBF(8), RBF(8)), streams=[(X1, Y1), (X1[5:], Y1[5:])]),
        ["different samples", "blank()"],
    ),
    "a map in one": (pair(maps=(None, UnitLength())), ["feature maps"]),
    "other maps": (pair(maps=(Affine(), UnitLength())), ["feature maps"]),
    "maps without get_state": (
        pair(maps=(Affine(), Affine()), streams=[(X1, Y1), (X1 + 1, Y1)]),
        ["feature maps"],
    ),
}


@pytest.mark.parametrize("case", NOT_MERGEABLE)
def test_models_that_cannot_be_merged_are_refused_with_the_reason(case):
    (ours, theirs), words = NOT_MERGEABLE[case]
    before = [pickle.dumps(model) for model in (ours, theirs)]
    with pytest.raises(ValueError) as caught:
        ours.merge(theirs)
    assert_helpful(caught.value, *words)
    assert [pickle.dumps(model) for model in (ours, theirs)] == before


def test_targets_of_a_file_that_differ_are_not_merged(tmp_path):
    ours, theirs = pair()
    arrays = contents(theirs, tmp_path)
    name = "model/codebook_targets"
    write(tmp_path / "other.npz", arrays | {name: -arrays[name]})
    with pytest.raises(ValueError) as caught:
        ours.merge(HadamardRidge.load(tmp_path / "other.npz"))
    assert_helpful(caught.value, "target codes differ")


def test_columns_of_other_names_are_not_merged():
    frames = [Frame(X1, list(names)) for names in ("abcde", "abcdf")]
    ours, theirs = pair(streams=[(frame, Y1) for frame in frames])
    with pytest.raises(ValueError) as caught:
        ours.merge(theirs)
    assert_helpful(caught.value, "names")


def test_equal_maps_of_any_kind_are_merged():
    for make in (UnitLength, lambda: RBF(8), lambda: [Affine(), RBF(8)], lambda: None):
        ours, theirs = pair(maps=(make(), make()))
        expected = ours.weights_
        ours.merge(theirs)
        assert_allclose(ours.weights_, expected, atol=1e-5 * abs(expected).max())
        assert ours.n_seen_ == 120


def test_only_a_fitted_model_of_this_kind_is_merged():
    (ours, _) = pair()
    for other in (HMOH(8).fit(X1, Y1), None, ours._gram):
        with pytest.raises(TypeError) as caught:
            ours.merge(other)
        assert_helpful(caught.value, type(other).__name__)
    warming_up = HadamardRidge(8, RBF(90), random_state=0).partial_fit(X1, Y1)
    for other in (HadamardRidge(8), warming_up):
        with pytest.raises(NotFittedError) as caught:
            ours.merge(other)
        assert_helpful(caught.value)
        with pytest.raises(NotFittedError):
            other.merge(ours)
    theirs = copy.copy(ours).set_params(ridge=0.5)
    with pytest.raises(ValueError, match=r"ridge was .* when learning began"):
        ours.merge(theirs)


def test_a_model_merged_with_itself_has_seen_its_stream_twice():
    ours, theirs = pair()
    ours.merge(ours)
    theirs.partial_fit(X1, Y1)
    assert ours.n_seen_ == 120
    assert_near(ours, theirs, X1, rtol=1e-6)


def test_a_blank_model_has_seen_nothing_and_learns_apart():
    X, y = stream()
    model = HadamardRidge(8, RBF(8), memory=20, random_state=0).partial_fit(X, y)
    before = pickle.dumps(model)
    blank = model.blank()
    assert blank.n_seen_ == 0
    with pytest.raises(NotFittedError) as caught:
        blank.transform(X)
    assert_helpful(caught.value, "no sample")
    assert plain(blank.targets_) == plain(model.targets_)
    blank.partial_fit(X, y).partial_fit(X[:1], [9])
    assert pickle.dumps(model) == before
    assert blank.feature_map is not model.feature_map
    with pytest.raises(NotFittedError):
        HadamardRidge(8).blank()


# ---- other codes from the same sums --------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "known", "late", "sets", "maps"])
def test_recoded_models_are_those_of_the_same_stream(kind, short_blocks):
    X, y = multi_stream() if kind == "sets" else stream(n_labels=6)
    classes = np.arange(4) if kind in ("known", "late") else None
    maps = UnitLength() if kind == "maps" else None
    if kind == "known":
        y = y % 4
    model = HadamardRidge(8, maps, memory=40, warmup=20, random_state=3)
    model.partial_fit(X, y, classes)
    before = pickle.dumps(model)
    for params in (
        {"n_bits": 3},
        {"n_bits": 5 if JIT_IS_OFF else 40, "codebook": "spread"},
        {"ridge": 0.5},
        {},
    ):
        expected = HadamardRidge(**{"n_bits": 8, "feature_map": maps} | params)
        expected.set_params(memory=40, warmup=20, random_state=3).partial_fit(X, y, classes)
        recoded = model.recoded(**params)
        assert_same_state(expected, recoded)
        assert_array_equal(recoded.weights_, expected.weights_)
        recoded = pickle.loads(pickle.dumps(recoded))
        for one in (expected, recoded):
            one.partial_fit(X[:20] + 1, y[::-1][:20])
        assert_same_state(expected, recoded)
    assert pickle.dumps(model) == before


def test_impossible_codes_are_refused():
    ours, _ = pair()
    before = pickle.dumps(ours)
    for params, error in [
        ({"n_bits": 0}, ValueError),
        ({"n_bits": 2.5}, TypeError),
        ({"ridge": 0}, ValueError),
        ({"codebook": "best"}, ValueError),
    ]:
        with pytest.raises(error) as caught:
            ours.recoded(**params)
        assert_helpful(caught.value, *params)
    with pytest.raises(NotFittedError):
        HadamardRidge(8).recoded(n_bits=4)
    assert pickle.dumps(ours) == before


# ---- copies and files ----------------------------------------------------------------


PHASES = {
    "plain": {},
    "memory": {"memory": 20},
    "numpy scalars": {
        "memory": np.int64(7),
        "n_bits": np.int8(8),
        "ridge": np.float32(1),
    },
    "sets": {"multi": True},
    "growing": {"n_bits": 3, "n_labels": 12},
    "known": {"codebook": "spread", "n_classes": 4},
    "map": {"feature_map": RBF(8)},
    "maps": {"feature_map": [UnitLength(), RBF(8)], "warmup": 15},
}


@pytest.mark.parametrize("n", [4, 16, 40])  # in the warm-up, at the end of a block, in one
@pytest.mark.parametrize("name", PHASES)
def test_files_and_copies_learn_on(name, n, tmp_path, short_blocks):
    params = {"n_bits": 8, "random_state": 3} | PHASES[name]
    size = {"n_labels": params.pop("n_labels", 4)}
    X, y = either_stream(params.pop("multi", False), **size)
    model = HadamardRidge(**params).partial_fit(X[:n], y[:n])
    model.save(tmp_path / "model.npz")
    new_maps = copy.deepcopy(model.feature_map)
    twins = {
        "file": HadamardRidge.load(tmp_path / "model.npz", feature_map=new_maps),
        "pickle": pickle.loads(pickle.dumps(model)),
        "copy": copy.copy(model),
        "deepcopy": copy.deepcopy(model),
    }
    for twin in twins.values():
        assert_same_state(model, twin)
        feed(twin, X[n:], y[n:], [3, 9])
    feed(model, X[n:], y[n:], [3, 9])
    for twin in twins.values():
        assert_same_state(model, twin)
        assert_array_equal(twin.weights_, model.weights_)
        assert_array_equal(twin.transform(X), model.transform(X))


@pytest.mark.parametrize("n", [10, 16, 60])
def test_learned_arrays_are_replaced_not_written_into(n, short_blocks):
    X, y = stream(150)
    model = HadamardRidge(8, memory=9, random_state=0).partial_fit(X[:n], y[:n])
    before = vars(model).copy()
    state = copy.deepcopy(before)
    for start in range(n, 110):
        model.partial_fit(X[start : start + 1], y[start : start + 1])
    model.partial_fit(X[110:], y[110:])
    for name in ("_gram", "_sums", "_recent", "_recent_rows"):
        assert_array_equal(before[name], state[name])


def test_a_model_that_has_encoded_is_pickled_like_one_that_has_not():
    X, y = stream()
    model = HadamardRidge(8, random_state=0).partial_fit(X, y)
    before = pickle.dumps(model)
    codes = model.transform(X)
    assert pickle.dumps(model) == before
    assert_array_equal(pickle.loads(before).transform(X), codes)


# Learned from 60 samples in blocks of 16: 48 are in the sums, and 12 wait.
WRONG_ENTRIES = {
    "not symmetric": ("_gram", with_value((0, 1), 1e3)),
    "a square that is negative": ("_gram", with_value((1, 1), -1.0)),
    "a sum beyond all features": ("_gram", with_value((1, 1), 1e200)),
    "a sum of a class beyond all features": ("_sums", with_value((0, 0), -1e200)),
    "one class less": ("_sums", lambda a: a[:-1]),
    "a row that the codebook has not": ("_recent_rows", with_value(0, 4)),
    "a row that is negative": ("_recent_rows", with_value(0, -1)),
    "another number of samples": ("_n_summed", lambda a: a + 1),
    "a negative number of samples": ("_n_summed", lambda a: a * 0 - 1),
    "a number that cannot go on": ("_n_summed", lambda a: a * 0 + (2**63 - 1)),
    "samples seen": ("n_seen_", lambda a: a + 1),
    "samples that are not finite": ("_recent", with_value((0, 0), np.inf)),
}


@pytest.mark.parametrize("case", WRONG_ENTRIES)
def test_wrong_sums_in_a_file_are_refused(case, tmp_path, short_blocks):
    model = HadamardRidge(8, random_state=0).fit(*stream())
    arrays = contents(model, tmp_path)
    name, change = WRONG_ENTRIES[case]
    bad = change(arrays[f"model/{name}"])
    write(tmp_path / "bad.npz", arrays | {f"model/{name}": bad})
    assert_refused(tmp_path / "bad.npz", HadamardRidge)


def test_a_whole_block_that_waits_is_refused(tmp_path, monkeypatch):
    arrays = contents(HadamardRidge(8, random_state=0).fit(*stream()), tmp_path)
    write(tmp_path / "bad.npz", arrays)
    HadamardRidge.load(tmp_path / "bad.npz")
    monkeypatch.setattr(hadamard_ridge, "BLOCK", 60)
    assert_refused(tmp_path / "bad.npz", HadamardRidge)


# ---- threads -------------------------------------------------------------------------


def test_encoding_from_several_threads_at_once_agrees():
    X, y = stream(500)
    model = HadamardRidge(32, RBF(20), random_state=0).fit(X, y)
    parts = [X[start:] for start in range(16)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(model.transform, parts))
    for codes, part in zip(together, parts, strict=True):
        assert_array_equal(codes, model.transform(part))


def test_one_thread_learns_while_another_encodes(short_blocks):
    X, y = stream(300)
    model = HadamardRidge(8, random_state=0).partial_fit(X[:1], y[:1])
    twin = copy.copy(model)
    states = {model.weights_.tobytes()}
    for i in range(1, 300):
        states.add(twin.partial_fit(X[i : i + 1], y[i : i + 1]).weights_.tobytes())
    seen = []
    done = threading.Event()

    def look():
        while not done.is_set():
            seen.append(model.weights_.tobytes())

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        for i in range(1, 300):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        done.set()
        looking.result()
    assert seen and set(seen) <= states


# ---- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["partial_fit", "fit"])
@pytest.mark.parametrize("phase", ["unfitted", "fitted", "warm-up"])
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_samples_are_explained_and_leave_the_model_as_it_was(name, phase, call):
    X, y, error, words = BAD_CALLS[name]
    maps = RBF(100) if phase == "warm-up" else None
    model = HadamardRidge(8, maps, random_state=0)
    if phase != "unfitted":
        model.partial_fit(X0, M0 if np.ndim(y) == 2 else Y0)
    before = pickle.dumps(model)
    with pytest.raises(error) as caught:
        getattr(model, call)(X, y)
    assert_helpful(caught.value, *words)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_cannot_be_encoded(name):
    X, error, words = BAD_FEATURES[name]
    model = HadamardRidge(8, random_state=0).fit(X0, Y0)
    with pytest.raises(error) as caught:
        model.transform(X)
    assert_helpful(caught.value, *words)


IMPOSSIBLE = [
    ("n_bits", 0, ValueError),
    ("n_bits", 8.0, TypeError),
    ("ridge", 0, ValueError),
    ("ridge", 1e-9, ValueError),
    ("ridge", -1, ValueError),
    ("ridge", np.nan, ValueError),
    ("ridge", np.inf, ValueError),
    ("ridge", "1", TypeError),
    ("ridge", True, TypeError),
    ("ridge", None, TypeError),
    ("memory", 0, ValueError),
    ("memory", 1.5, TypeError),
    ("memory", "auto", TypeError),
    ("memory", True, TypeError),
    ("codebook", "best", ValueError),
    ("n_classes", 0, ValueError),
    ("n_classes", 2, ValueError),
    ("warmup", 0, ValueError),
    ("feature_map", RBF, TypeError),
    ("random_state", -1, ValueError),
]


@pytest.mark.parametrize("name, value, error", IMPOSSIBLE)
def test_impossible_parameters_are_explained_and_nothing_is_begun(name, value, error):
    model = HadamardRidge(**{name: value})
    with pytest.raises(error) as caught:
        model.fit(X0, Y0)
    assert_helpful(caught.value, name, repr(value))
    assert vars(model) == vars(HadamardRidge(**{name: value}))


@pytest.mark.parametrize(
    "name, value",
    [("ridge", 0.5), ("memory", 9), ("n_bits", 16), ("codebook", "spread")],
)
def test_a_parameter_changed_on_the_way_is_an_error(name, value):
    model = HadamardRidge(8, random_state=0).partial_fit(X0, Y0)
    model.set_params(**{name: value})
    for use in (
        lambda: model.partial_fit(X0, Y0),
        lambda: model.recoded(),
        model.blank,
    ):
        with pytest.raises(ValueError) as caught:
            use()
        assert_helpful(caught.value, name, repr(value))


# ---- the choice of the ridge ---------------------------------------------------------


def test_the_ridge_is_chosen_on_the_stream_alone():
    X, y = stream(400, 8)
    data = Dataset("small", X, y, np.arange(0), 40, 160, "mnist")
    parts = split(data, seed=0)
    assert len(parts.stream) == 160
    # Whoever looks at another sample gets an error.
    X[np.setdiff1d(np.arange(400), parts.stream)] = np.nan
    with pytest.raises(ValueError, match="nan"):
        HadamardRidge(32).fit(X[parts.queries], y[parts.queries])
    ridges = (1e-3, 1e6)
    hmoh, scores = held_out_scores(data, 0, lambda: RBF(20), ridges, n_queries=30)
    assert 0.25 < hmoh < 1
    learned, queries, database = np.split(parts.stream, [80, 110])
    for ridge, score in zip(ridges, scores, strict=True):
        model = HadamardRidge(32, RBF(20), ridge=ridge, random_state=0)
        model.fit(X[learned], y[learned])
        codes = [model.transform(X[rows]) for rows in (queries, database)]
        expected = mean_average_precision(*codes, y[queries], y[database])
        assert score == pytest.approx(expected)
    assert scores[0] != scores[1]


# ---- MNIST ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mnist():
    data = load("mnist")
    return data.features, data.labels, split(data, seed=0)


def score(model, mnist):
    X, y, parts = mnist
    codes = [model.transform(X[rows]) for rows in (parts.queries, parts.database)]
    return mean_average_precision(*codes, y[parts.queries], y[parts.database])


@pytest.mark.slow
@pytest.mark.skipif(JIT_IS_OFF, reason="the feature map is slow without the JIT")
def test_mnist_at_32_bits(mnist):
    X, y, parts = mnist
    model = HadamardRidge(32, RBF(300, divisor=6.0), random_state=0)
    model.fit(X[parts.stream], y[parts.stream])
    assert 0.87 < score(model, mnist) < 0.91


@pytest.mark.slow
@pytest.mark.skipif(JIT_IS_OFF, reason="the feature map is slow without the JIT")
def test_five_digits_of_mnist_that_come_late_are_learned_with_a_memory(mnist):
    X, y, parts = mnist
    few = parts.database[y[parts.database] < 5][:10_000]
    ten = parts.database[~np.isin(parts.database, few)][-10_000:]
    scores = []
    for memory in (None, 3000):
        maps = RBF(300, divisor=6.0)
        model = HadamardRidge(32, maps, memory=memory, random_state=0)
        model.partial_fit(X[few], y[few]).partial_fit(X[ten], y[ten])
        scores.append(score(model, mnist))
    assert scores[1] > 0.8
    assert scores[1] > scores[0] + 0.02
