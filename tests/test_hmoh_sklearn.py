"""HMOH with scikit-learn (parameters, clone, pipelines, grid search), and copies by pickle."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from helpers import PHASES, Affine, assert_helpful, assert_same, phase, stream
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from baselines import HadamardRidge
from hmoh import HMOH
from kernels import RBF, Concat, UnitLength

# ---- scikit-learn --------------------------------------------------------------------

# Checks that fail, and why. Every other check passes.
DECLARED = {
    "HMOH": {"check_estimators_nan_inf": "its labels are floats, which HMOH refuses"},
    "HadamardRidge": {"check_estimators_nan_inf": "as for HMOH"},
    "RBF": {},
    "UnitLength": {},
}


@pytest.mark.parametrize(
    "estimator",
    [HMOH(8, random_state=0), HadamardRidge(8, random_state=0), RBF(2), UnitLength()],
)
def test_the_checks_of_scikit_learn_pass_but_for_the_declared(estimator):
    with warnings.catch_warnings():
        # The classes do not inherit from scikit-learn's, so that their files do not need it.
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert len(results) >= 40
    assert set(failed) == set(DECLARED[type(estimator).__name__]), failed
    for error in failed.values():
        assert "y has dtype float64" in str(error)


class Frame:
    """What a DataFrame of pandas or polars has, as far as it matters here."""

    def __init__(self, X, columns):
        self.columns = columns
        self._X = X

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._X, dtype)


@pytest.mark.parametrize("make", [lambda: HMOH(8, random_state=0), lambda: RBF(8), UnitLength])
def test_columns_in_another_order_are_refused(make):
    X, y = stream(d=3)
    model = make().fit(Frame(X, ["a", "b", "c"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = model.transform(X)
    assert_array_equal(model.transform(Frame(X, ["a", "b", "c"])), expected)
    assert_array_equal(model.transform(Frame(X, [0, 1, 2])), expected)
    with pytest.raises(ValueError) as caught:
        model.transform(Frame(X[:, ::-1], ["c", "b", "a"]))
    assert_helpful(caught.value, "['c', 'b', 'a']", "['a', 'b', 'c']")
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_columns_in_another_order_are_refused_while_learning_goes_on(tmp_path):
    X, y = stream(d=3)
    model = HMOH(8, random_state=0).partial_fit(Frame(X, ["a", "b", "c"]), y)
    model.save(tmp_path / "model.npz")
    for same in (model, HMOH.load(tmp_path / "model.npz")):
        with pytest.raises(ValueError, match="when learning began"):
            same.partial_fit(Frame(X, ["b", "a", "c"]), y)
        assert same.n_seen_ == len(X)
        same.partial_fit(Frame(X, ["a", "b", "c"]), y)


def test_outputs_of_a_pipeline_are_arrays():
    pipeline = Pipeline([("rbf", RBF(8)), ("hmoh", HMOH(8, random_state=0))])
    X, y = stream()
    codes = pipeline.set_output(transform="default").fit_transform(X, y)
    assert codes.dtype == np.uint8
    for part in (HMOH(), RBF(), UnitLength()):
        assert part.set_output() is part
        with pytest.raises(ValueError) as caught:
            part.set_output(transform="pandas")
        assert_helpful(caught.value, "pandas")


def test_an_unfitted_model_raises_the_error_of_scikit_learn():
    for model in (HMOH(), RBF(), UnitLength()):
        with pytest.raises(SklearnNotFittedError) as caught:
            model.transform(np.eye(3))
        again = pickle.loads(pickle.dumps(caught.value))
        assert isinstance(again, SklearnNotFittedError)
        assert str(again) == str(caught.value)


def test_numbers_that_are_objects_are_numbers():
    X, y = stream(integer=True)
    expected = HMOH(8, random_state=0).fit(X, y).weights_
    model = HMOH(8, random_state=0).fit(X.astype(object), y.astype(object))
    assert_array_equal(model.weights_, expected)
    assert_array_equal(RBF(8).fit_transform(X.astype(object)), RBF(8).fit_transform(X))
    wrong = X.astype(object)
    for value in ("1.5", {"a": 1}, None):
        wrong[0, 0] = value
        with pytest.raises(TypeError) as caught:
            model.partial_fit(wrong, y)
        assert_helpful(caught.value, "object")
    for label, error in [(2**63, ValueError), (2**70, TypeError)]:
        labels = np.full(len(X), label, object)
        with pytest.raises(error) as caught:
            model.partial_fit(X, labels)
        assert_helpful(caught.value, "y")


def test_parameters_are_only_stored():
    marker = object()
    for name in HMOH().get_params():
        assert getattr(HMOH(**{name: marker}), name) is marker
    assert list(HMOH().get_params()) == [
        "n_bits",
        "feature_map",
        "codebook",
        "ensemble",
        "memory",
        "batch_size",
        "learning_rate",
        "n_classes",
        "warmup",
        "n_threads",
        "random_state",
        "fuse",
    ]


def test_clone_gives_an_unfitted_equal():
    X, y = stream()
    for maps in (None, RBF(8), [UnitLength(), RBF(8)], Concat([None, RBF(8)])):
        model = HMOH(12, maps, codebook="spread", batch_size=3, random_state=4)
        model.fit(X, y)
        twin = clone(model)
        assert repr(twin) == repr(model)
        assert not hasattr(twin, "n_seen_")
        assert maps is None or twin.feature_map is not model.feature_map
        assert_same(model, twin.fit(X, y), X)


def test_nested_parameters_are_seen_and_set():
    model = HMOH(feature_map=RBF(8))
    assert model.get_params()["feature_map__n_anchors"] == 8
    assert "feature_map__n_anchors" not in model.get_params(deep=False)
    assert model.set_params(feature_map__n_anchors=9, n_bits=5) is model
    assert (model.feature_map.n_anchors, model.n_bits) == (9, 5)
    model = HMOH(feature_map=[UnitLength(), RBF(8)])
    assert model.get_params()["feature_map__1__divisor"] == 10
    model.set_params(feature_map__1__divisor=6, feature_map__1__center=True)
    assert repr(model.feature_map[1]) == repr(RBF(8, 6, center=True))
    model = HMOH(feature_map=[UnitLength(), Concat([None, RBF(8)])], warmup=20)
    assert model.get_params()["feature_map__1__maps__1__divisor"] == 10
    model.set_params(feature_map__1__maps__1__n_anchors=5)
    X, y = stream()
    assert model.fit(X, y).weights_.shape == (X.shape[1] + 5, 32)


def test_a_parameter_of_a_map_within_a_map_must_not_change_while_a_model_learns():
    X, y = stream()
    maps = [Concat([None, Concat([RBF(8)])])]
    model = HMOH(8, maps).partial_fit(X, y).partial_fit(X, y)
    maps[0].maps[1].maps[0].divisor = 3
    with pytest.raises(ValueError, match="feature_map was"):
        model.partial_fit(X, y)
    maps[0].maps[1].maps[0].divisor = 10.0
    model.partial_fit(X, y)


def test_parameters_of_a_pipeline_as_map_are_seen_and_set():
    pipeline = Pipeline([("scale", StandardScaler()), ("rbf", RBF(8))])
    model = HMOH(feature_map=pipeline, warmup=20)
    assert model.get_params()["feature_map__rbf__n_anchors"] == 8
    model.set_params(feature_map__rbf__n_anchors=7)
    assert model.feature_map["rbf"].n_anchors == 7
    X, y = stream()
    assert model.fit(X, y).weights_.shape == (7, 32)


def test_a_map_and_its_parameters_can_be_set_in_one_call():
    model = HMOH().set_params(feature_map=RBF(), feature_map__n_anchors=9)
    assert model.feature_map.n_anchors == 9


@pytest.mark.parametrize(
    "name",
    ["bits", "feature_map__n_anchor", "feature_map__0__n_anchors", "feature_map__"],
)
def test_an_unknown_parameter_is_an_error_and_sets_nothing(name):
    model = HMOH(feature_map=RBF(8))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        model.set_params(n_bits=5, **{name: 3})
    assert pickle.dumps(model) == before


def test_scikit_learn_is_told_that_labels_are_needed_and_may_be_a_matrix():
    tags = get_tags(HMOH())
    assert tags.target_tags.required
    assert tags.target_tags.two_d_labels
    assert tags.target_tags.multi_output
    assert tags.transformer_tags is not None
    assert tags.estimator_type is None


def test_works_in_a_pipeline():
    X, y = stream()
    steps = [("map", RBF(n_anchors=8)), ("hash", HMOH(8, random_state=0))]
    pipeline = Pipeline(steps).fit(X, y)
    Z = RBF(n_anchors=8).fit(X).transform(X)
    expected = HMOH(8, random_state=0).fit(Z, y)
    assert_array_equal(pipeline.transform(X), expected.transform(Z))
    pipeline.set_params(hash__n_bits=16, map__n_anchors=5)
    assert clone(pipeline).fit_transform(X, y).shape == (60, 2)


def agreement(model, X, y):
    """Return the share of bits that equal the targets."""
    targets = np.stack([model.targets_[label] for label in y.tolist()])
    bits = np.unpackbits(model.transform(X), axis=1, bitorder="little")
    return np.mean(bits[:, : model.n_bits] == (targets > 0))


def test_works_in_a_grid_search():
    X, y = stream(90)
    grid = {
        "n_bits": [4, 8],
        "feature_map__n_anchors": [3, 10],
        "learning_rate": [0.1, 1],
    }
    model = HMOH(feature_map=RBF(), random_state=0)
    search = GridSearchCV(model, grid, scoring=agreement, cv=3, error_score="raise")
    search.fit(X, y)
    # The axes are n_anchors, learning_rate, n_bits.
    scores = search.cv_results_["mean_test_score"].reshape(2, 2, 2)
    assert_array_equal(scores[:, 0], scores[:, 1])
    assert scores.max() > 0.7
    best = search.best_estimator_
    assert best.n_seen_ == 90
    n_anchors = search.best_params_["feature_map__n_anchors"]
    assert best.feature_map_.anchors_.shape == (n_anchors, 5)


def test_repr_makes_the_model_again():
    maps = [UnitLength(), RBF(7, center=True)]
    model = HMOH(9, maps, "spread", True, "auto", 2, 0.5, 7, 20, 1, 5)
    assert repr(eval(repr(model))) == repr(model)


# ---- copies --------------------------------------------------------------------------


def pickled(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("copy_of", [pickled, copy.deepcopy])
@pytest.mark.parametrize("n", [10, 25])
@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "mid-batch",
        "memory",
        "auto",
        "growing spread",
        "multi",
        "list",
        "generator",
        "affine",
    ],
)
def test_a_copy_goes_on_like_the_original(name, n, copy_of, monkeypatch):
    monkeypatch.setitem(PHASES, "affine", {"maps": Affine, "warmup": 15})
    model, X, y, classes, _ = phase(name)
    model.partial_fit(X[:n], y[:n], classes)
    twin = copy_of(model)
    assert_same(model, twin, X)
    twin.partial_fit(X[n:], y[n:])
    assert_same(model.partial_fit(X[n:], y[n:]), twin, X)
