"""Bad input: every error states the value and a way out, and leaves the model as it was."""

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from helpers import Affine, assert_helpful, assert_same, multi_stream, stream
from numpy.testing import assert_array_equal
from sklearn.utils.validation import check_is_fitted

import hmoh
from hmoh import HMOH, NotFittedError
from kernels import RBF, UnitLength

# ---- bad samples ---------------------------------------------------------------------


def changed(a, at, value, dtype=None):
    """Return a copy of an array in which one value is changed."""
    a = np.array(a, dtype)
    a[at] = value
    return a


X0, Y0 = stream()
M0 = multi_stream()[1]
BAD_FEATURES = {
    "nan": (changed(X0, (3, 1), np.nan), ValueError, ["X[3, 1]", "nan"]),
    "inf": (changed(X0, (59, 4), np.inf), ValueError, ["X[59, 4]", "inf"]),
    "minus inf": (changed(X0, (0, 0), -np.inf), ValueError, ["X[0, 0]", "-inf"]),
    "too large": (
        changed(X0, (3, 1), 1e39, float),
        ValueError,
        ["X[3, 1]", "1e+39", "float32"],
    ),
    "no rows": (X0[:0], ValueError, ["(0, 5)", "0 sample(s)", "at least one"]),
    "no columns": (X0[:, :0], ValueError, ["(60, 0)", "0 feature(s)"]),
    "one row alone": (X0[0], ValueError, ["(5,)", "reshape(1, -1)"]),
    "three axes": (X0[None], ValueError, ["(1, 60, 5)", "reshape(len(X), -1)"]),
    "a number": (5.0, ValueError, ["()"]),
    "strings": (X0.astype(str), TypeError, ["<U"]),
    "objects": (X0.astype(str).astype(object), TypeError, ["object"]),
    "none": (None, TypeError, ["object"]),
    "complex": (X0.astype(complex), ValueError, ["complex128", "X.real"]),
    "dates": (X0.astype("M8[s]"), TypeError, ["datetime64"]),
    "sparse array": (scipy.sparse.csr_array(X0), TypeError, ["csr_array", "toarray()"]),
    "sparse matrix": (
        scipy.sparse.csc_matrix(X0),
        TypeError,
        ["csc_matrix", "toarray"],
    ),
}
BAD_LABELS = {
    "too few": (Y0[:59], ValueError, ["(59,)", "60"]),
    "too many": (np.append(Y0, 0), ValueError, ["(61,)", "60"]),
    "missing": (None, ValueError, ["y is None"]),
    "a number": (3, ValueError, ["()", "60"]),
    "floats": (Y0.astype(float), TypeError, ["float64", "astype(int)"]),
    "objects": (np.array([0, "a"] * 30, object), TypeError, ["object"]),
    "complex": (Y0.astype(complex), TypeError, ["complex128"]),
    "one column": (Y0[:, None], ValueError, ["(60, 1)", "ravel()"]),
    "three axes": (np.zeros((60, 2, 2), int), ValueError, ["(60, 2, 2)"]),
    "matrix of strings": (M0.astype(str), TypeError, ["<U"]),
    "matrix of floats": (M0.astype(float), TypeError, ["float64"]),
    "no label": (changed(M0, 7, 0), ValueError, ["y[7]"]),
    "a 2": (changed(M0, (3, 1), 2), ValueError, ["y[3, 1]", "2"]),
    "a -1": (changed(M0, (3, 1), -1), ValueError, ["y[3, 1]", "-1"]),
    "matrix too short": (M0[:59], ValueError, ["(59, 6)", "60"]),
}
BAD_CALLS = {f"X {name}": (X, Y0, *rest) for name, (X, *rest) in BAD_FEATURES.items()}
BAD_CALLS |= {f"y {name}": (X0, y, *rest) for name, (y, *rest) in BAD_LABELS.items()}


@pytest.mark.parametrize("call", ["partial_fit", "fit"])
@pytest.mark.parametrize("phase", ["unfitted", "fitted", "warm-up", "mid-batch"])
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_samples_are_explained_and_leave_the_model_as_it_was(name, phase, call):
    X, y, error, words = BAD_CALLS[name]
    good = M0 if np.ndim(y) == 2 else Y0
    maps = RBF(n_anchors=40) if phase == "warm-up" else None
    batch_size = 7 if phase == "mid-batch" else 1
    model = HMOH(8, maps, batch_size=batch_size, random_state=0)
    if phase != "unfitted":
        model.partial_fit(X0, good)
    before = pickle.dumps(model)
    with pytest.raises(error) as caught:
        getattr(model, call)(X, y)
    assert_helpful(caught.value, *words)
    assert pickle.dumps(model) == before


def test_lists_of_labels_are_told_of_the_matrix():
    with pytest.raises(ValueError) as caught:
        HMOH(8).fit(X0, [[0, 1], [2]] * 30)
    assert_helpful(caught.value, "y cannot become", "inhomogeneous", "0/1 matrix")


@pytest.mark.parametrize("use", ["fit", "partial_fit", "transform"])
@pytest.mark.parametrize("shape", [(0, 5), (0, 0), (60, 0)])
def test_empty_samples_are_not_told_to_reshape(shape, use):
    model = HMOH(8, random_state=0).fit(X0, Y0)
    labels = [] if use == "transform" else [Y0[: shape[0]]]
    with pytest.raises(ValueError) as caught:
        getattr(model, use)(np.zeros(shape), *labels)
    assert_helpful(caught.value, f"shape={shape}", "X has 0")
    assert "eshape your" not in str(caught.value)
    assert "reshape" not in str(caught.value)
    assert "images" not in str(caught.value)


@pytest.mark.parametrize("use", ["transform", "encode", "decision_function"])
@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_cannot_be_encoded(name, use):
    X, error, words = BAD_FEATURES[name]
    model = HMOH(8, random_state=0).fit(X0, Y0)
    with pytest.raises(error) as caught:
        getattr(model, use)(X)
    assert_helpful(caught.value, *words)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (100, 7), (149, 63)])
def test_one_bad_value_is_found_among_many(value, place):
    # Few values and many, here 9,600, are looked at in two ways.
    X = np.random.default_rng(0).normal(size=(150, 64)).astype(np.float32)
    y = np.arange(150) % 4
    model = HMOH(8, random_state=0).fit(X, y)
    bad = changed(X, place, value)
    for call in (lambda: HMOH(8).fit(bad, y), lambda: model.transform(bad)):
        with pytest.raises(ValueError) as caught:
            call()
        assert_helpful(caught.value, f"X[{place[0]}, {place[1]}] is {value}")


def test_many_values_may_be_so_large_that_their_sum_overflows():
    X = np.full((150, 64), 3e38, np.float32)
    X[::2] *= -1
    y = np.arange(150) % 2
    model = HMOH(8, random_state=0).fit(X / 3e38, y)
    with np.errstate(over="ignore", invalid="ignore"):
        assert model.transform(X).shape == (150, 1)


@pytest.mark.parametrize(
    "use, maps",
    [
        ("partial_fit", None),
        ("partial_fit", RBF(8)),
        ("partial_fit", RBF(40)),  # in its warm-up
        ("transform", None),
        ("transform", RBF(8)),
        ("decision_function", None),
        ("decision_function", RBF(8)),
    ],
)
def test_another_width_is_an_error(use, maps):
    model = HMOH(8, maps, random_state=0).partial_fit(X0, Y0)
    before = pickle.dumps(model)
    labels = [Y0] if use == "partial_fit" else []
    with pytest.raises(ValueError) as caught:
        getattr(model, use)(X0[:, :4], *labels)
    assert_helpful(caught.value, "4", "5")
    assert pickle.dumps(model) == before


# ---- bad labels and classes ----------------------------------------------------------


@pytest.mark.parametrize(
    "first, then, words",
    [
        (Y0, Y0.astype(str), ["strings", "integers"]),
        (Y0.astype(str), Y0, ["strings", "integers"]),
        (Y0, M0, ["6 columns", "integers"]),
        (M0, Y0, ["6 columns", "integers"]),
        (M0, np.pad(M0, ((0, 0), (0, 1))), ["6 columns", "7 columns"]),
    ],
)
@pytest.mark.parametrize("maps", [None, RBF(40)])
def test_another_kind_of_labels_is_an_error(first, then, words, maps):
    model = HMOH(8, maps, random_state=0).partial_fit(X0, first)
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, then)
    assert_helpful(caught.value, *words)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("classes", [[0, 1, 2], [0, 1, 2, 9], [0, 1, 2, 3, 4]])
def test_other_classes_than_at_first_are_an_error(classes):
    model = HMOH(8, random_state=0).partial_fit(X0, Y0, classes=[0, 1, 2, 3])
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0, classes)
    assert_helpful(caught.value, "classes", str(classes[-1]))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(
    "classes, words",
    [
        ([0.0, 1.0], ["float64"]),
        ([[0, 1], [2, 3]], ["(2, 2)"]),
        (4, ["()"]),
        ([], []),
        (["a", "b", "c", "d"], []),
    ],
)
def test_impossible_classes_are_an_error(begun, classes, words):
    model = HMOH(8, random_state=0)
    if begun:
        model.partial_fit(X0, Y0, classes=[0, 1, 2, 3])
    before = pickle.dumps(model)
    with pytest.raises((TypeError, ValueError)) as caught:
        model.partial_fit(X0, Y0, classes)
    assert_helpful(caught.value, "classes", *words)
    assert pickle.dumps(model) == before


def test_a_matrix_of_two_labels_has_a_target_for_each_and_for_both():
    Y = np.array([[1, 0], [0, 1], [1, 1]] * 20)
    model = HMOH(8, random_state=0).fit(X0, Y)
    assert list(model.targets_) == [0, 1]
    assert set(model.label_set_targets_) == {(0,), (1,), (0, 1)}


def test_classes_of_a_matrix_are_its_columns():
    with pytest.raises(ValueError, match="classes"):
        HMOH(8).partial_fit(X0, M0, classes=np.arange(6))


# ---- bad parameters ------------------------------------------------------------------

# By name of the parameter: values of the wrong kind, and values that are not possible.
WRONG_KINDS = {
    "n_bits": [True, 2.5, 8.0, "8", None, np.nan],
    "batch_size": [True, 1.5, None, "1"],
    "memory": [True, 1.5, np.nan, [10], np.inf],
    "learning_rate": ["1", None, 1j],
    "n_classes": [2.5, True, "4"],
    "warmup": [2.5, True],
    "n_threads": [1.5],
    "feature_map": [RBF, "rbf", object(), 3],
    "ensemble": ["no", None, 2],
    "random_state": ["a", 1.5, np.random.RandomState(0)],
}
WRONG_VALUES = {
    "n_bits": [0, -1],
    "batch_size": [0],
    "memory": [0, -1, "all", "Auto", "10", ""],
    "learning_rate": [0, -1, np.nan, np.inf],
    "codebook": ["best", None, 3, ["random"], "Random"],
    "n_classes": [0],
    "warmup": [0],
    "n_threads": [0, -1],
    "random_state": [-1],
}
IMPOSSIBLE = []
for table, error in [(WRONG_KINDS, TypeError), (WRONG_VALUES, ValueError)]:
    for name, values in table.items():
        IMPOSSIBLE += [(name, value, error) for value in values]


@pytest.mark.parametrize("name, value, error", IMPOSSIBLE)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_impossible_parameters_are_explained_and_nothing_is_begun(name, value, error, call):
    model = HMOH(**{name: value})
    with pytest.raises(error) as caught:
        getattr(model, call)(X0, Y0)
    assert_helpful(caught.value, name, repr(value))
    assert vars(model) == vars(HMOH(**{name: value}))


@pytest.mark.parametrize("memory", [1, 50, "auto"])
def test_memory_without_an_average_is_an_error(memory):
    model = HMOH(8, ensemble=False, memory=memory)
    with pytest.raises(ValueError) as caught:
        model.fit(X0, Y0)
    assert_helpful(caught.value, f"memory={memory!r}", "ensemble=False")
    model.set_params(memory=None).fit(X0, Y0)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_an_impossible_map_of_a_list_is_named(call):
    maps = [RBF(), UnitLength]
    model = HMOH(feature_map=maps)
    with pytest.raises(TypeError) as caught:
        getattr(model, call)(X0, Y0)
    assert_helpful(caught.value, "feature_map", repr(UnitLength))
    assert vars(model) == vars(HMOH(feature_map=maps))


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("y", [Y0, M0])
def test_too_small_a_number_of_classes_is_an_error(n_classes, y):
    model = HMOH(8, n_classes=n_classes)
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.fit(X0, y)
    assert_helpful(caught.value, f"n_classes={n_classes}", "4" if y is Y0 else "6")
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("maps", [None, RBF(8)])
def test_unfitted_use_is_an_error(maps):
    model = HMOH(feature_map=maps)
    with pytest.raises(ValueError):
        check_is_fitted(model)
    check_is_fitted(HMOH(feature_map=maps).fit(X0, Y0))
    for use in (model.transform, model.encode, model.decision_function):
        with pytest.raises(NotFittedError) as caught:
            use(X0)
        assert isinstance(caught.value, (ValueError, AttributeError))
        assert_helpful(caught.value, "HMOH", "fit")
    fitted = ["weights_", "targets_", "label_set_targets_", "n_seen_", "feature_map_"]
    for name in fitted:
        assert not hasattr(model, name)


@pytest.mark.parametrize(
    "name, value",
    [
        ("n_bits", 16),
        ("codebook", "ordered"),
        ("ensemble", False),
        ("memory", 50),
        ("memory", "auto"),
        ("batch_size", 2),
        ("learning_rate", 0.5),
        ("n_classes", 20),
        ("warmup", 30),
        ("random_state", 1),
        ("feature_map__n_anchors", 9),
        ("feature_map", None),
    ],
)
@pytest.mark.parametrize("n", [5, 60])  # during the warm-up, and after it
def test_a_parameter_changed_on_the_way_is_an_error(name, value, n):
    model = HMOH(8, RBF(8), warmup=20, random_state=0).partial_fit(X0[:n], Y0[:n])
    old = model.get_params()[name]
    model.set_params(**{name: value})
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0)
    assert_helpful(caught.value, name.partition("__")[0], "fit")
    assert pickle.dumps(model) == before
    twin = copy.deepcopy(model).fit(X0, Y0)
    assert twin.get_params()[name] == value and twin.n_seen_ == 60
    assert model.set_params(**{name: old}).partial_fit(X0, Y0).n_seen_ == n + 60


def test_a_map_added_to_the_list_on_the_way_is_an_error():
    model = HMOH(8, [UnitLength()], warmup=20, random_state=0).partial_fit(X0, Y0)
    model.feature_map.append(RBF(5))
    before = model.weights_
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0)
    assert_helpful(caught.value, "feature_map was [UnitLength()]", "RBF(")
    assert_array_equal(model.weights_, before)


ATTRIBUTES = ["weights_", "targets_", "label_set_targets_", "n_steps_", "memory_"]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_what_is_learned_can_be_asked_for_when_something_is_learned(name):
    with pytest.raises(NotFittedError) as caught:
        getattr(HMOH(8), name)
    assert_helpful(caught.value, "HMOH", "call fit")
    # In the warm-up of a map, nothing is learned yet.
    model = HMOH(8, RBF(40), random_state=0).partial_fit(X0[:30], Y0[:30])
    with pytest.raises(NotFittedError) as caught:
        getattr(model, name)
    assert_helpful(caught.value, "seen 30 of 40 warm-up samples")


def test_number_of_threads_may_change_on_the_way():
    a = HMOH(8, random_state=0).partial_fit(X0, Y0)
    b = HMOH(8, random_state=0).partial_fit(X0, Y0)
    b.set_params(n_threads=1)
    assert_same(a.partial_fit(X0, Y0), b.partial_fit(X0, Y0), X0)


# ---- bad feature maps ----------------------------------------------------------------


class Fused(Affine):
    """A map that fails once, after a number of calls of transform.

    The fuse is an attribute of the class, so that the map itself never changes.
    """

    fuse = None

    def transform(self, X):
        if Fused.fuse:
            error, left = Fused.fuse
            Fused.fuse = (error, left - 1) if left else None
            if not left:
                raise error("blown")
        return super().transform(X)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("begun", [0, 5, 30])  # unfitted, in the warm-up, learning
@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("call", ["partial_fit", "fit"])
def test_a_map_that_fails_midway_leaves_the_model_as_it_was(monkeypatch, error, begun, left, call):
    # Small blocks, so that some were learned from when the map fails.
    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 14)
    X, y = stream(integer=True, n_labels=12)
    failed = HMOH(3, Fused(10), batch_size=7, random_state=0)
    spared = HMOH(3, Fused(10), batch_size=7, random_state=0)
    if begun:
        failed.partial_fit(X[:begun], y[:begun])
        spared.partial_fit(X[:begun], y[:begun])
    before = pickle.dumps(failed)
    monkeypatch.setattr(Fused, "fuse", (error, left))
    with pytest.raises(error, match="blown"):
        getattr(failed, call)(X, y)
    monkeypatch.setattr(Fused, "fuse", None)
    assert pickle.dumps(failed) == before
    spared.partial_fit(X[begun:], y[begun:])
    failed.partial_fit(X[begun:], y[begun:])
    assert_same(spared, failed, X)


@pytest.mark.parametrize("fault", ["labels", "n_classes", "map"])
def test_a_failed_call_takes_nothing_from_a_generator(fault, monkeypatch):
    failed = HMOH(8, Fused(10), random_state=np.random.default_rng(0))
    spared = HMOH(8, Fused(10), random_state=np.random.default_rng(0))
    if fault == "n_classes":
        failed.n_classes = 2
    if fault == "map":
        monkeypatch.setattr(Fused, "fuse", (ValueError, 1))
    with pytest.raises(ValueError):
        failed.fit(X0, Y0[:5] if fault == "labels" else Y0)
    failed.n_classes = None
    assert_same(spared.fit(X0, Y0), failed.fit(X0, Y0), X0)


def test_an_impossible_map_is_explained_before_its_samples_are_counted():
    with pytest.raises(TypeError) as caught:
        HMOH(8, RBF("20")).partial_fit(X0, Y0)
    assert_helpful(caught.value, "n_anchors='20'", "whole number")


class Bad(Affine):
    """A map that returns what it should, or else one of BAD_OUTPUTS."""

    output = None

    def transform(self, X):
        return Bad.output(X) if Bad.output else X

    def __repr__(self):
        return "Bad()"


def with_nan(X):
    return changed(X, (2, 1), np.nan)


BAD_OUTPUTS = {
    "nan": (with_nan, ValueError, ["[2, 1]", "nan"]),
    "infinity": (lambda X: X + np.inf, ValueError, ["[0, 0]", "inf"]),
    "one axis": (lambda X: np.ones(len(X)), ValueError, ["shape"]),
    "complex": (lambda X: X.astype(complex), ValueError, ["complex128"]),
    "strings": (lambda X: X.astype(str), TypeError, ["<U"]),
    "nothing": (lambda X: None, TypeError, ["object"]),
    "no features": (lambda X: X[:, :0], ValueError, ["shape", "0 feature(s)"]),
    # The compiled loop would not notice that a row is missing.
    "a row too few": (lambda X: X[1:], ValueError, ["6 rows of 7"]),
    "a row too many": (lambda X: X[[0, *range(7)]], ValueError, ["8 rows of 7"]),
    "another width": (lambda X: X[:, :4], ValueError, ["4", "5"]),
    "sparse": (scipy.sparse.csr_array, TypeError, ["csr_array"]),
}


def assert_blames_the_map(error, *words):
    assert_helpful(error, "Bad()", *words)
    assert not re.search(r"\bX\b", str(error)), str(error)


@pytest.mark.parametrize("maps", [Bad(7), [Affine(7), Bad(7)]], ids=["map", "list"])
@pytest.mark.parametrize("use", ["partial_fit", "fit", "transform"])
@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_bad_output_of_a_map_is_an_error(name, use, maps, monkeypatch):
    output, error, words = BAD_OUTPUTS[name]
    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 7)
    model = HMOH(8, maps, random_state=0).partial_fit(X0[:14], Y0[:14])
    before = pickle.dumps(model)
    monkeypatch.setattr(Bad, "output", staticmethod(output))
    if use == "fit" and name == "another width":
        # From the start this width is the width of the map.
        model.fit(X0[:14], Y0[:14])
        return
    labels = [] if use == "transform" else [Y0[:14]]
    with pytest.raises(error) as caught:
        getattr(model, use)(X0[:14], *labels)
    assert_blames_the_map(caught.value, *words)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("use", ["partial_fit", "transform"])
def test_a_changing_width_is_not_blamed_on_the_next_map(use, monkeypatch):
    model = HMOH(8, [Bad(16), UnitLength()], warmup=16).partial_fit(X0, Y0)
    monkeypatch.setattr(Bad, "output", staticmethod(lambda X: X[:, :4]))
    labels = [Y0] if use == "partial_fit" else []
    with pytest.raises(ValueError) as caught:
        getattr(model, use)(X0, *labels)
    assert_blames_the_map(caught.value, "4", "5")


def test_a_width_that_changes_from_block_to_block_is_an_error(monkeypatch):
    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 7)
    monkeypatch.setattr(Bad, "output", staticmethod(lambda X: X[:, : 1 + len(X) % 3]))
    model = HMOH(8, Bad(9))
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0)
    assert_blames_the_map(caught.value)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("change", [lambda maps: maps.append(UnitLength()), list.clear])
def test_a_list_of_maps_that_is_changed_on_the_way_is_an_error(change):
    maps = [UnitLength()]
    model = HMOH(8, maps, warmup=20, random_state=0).partial_fit(X0, Y0)
    change(maps)
    with pytest.raises(ValueError, match="feature_map was"):
        model.partial_fit(X0, Y0)
