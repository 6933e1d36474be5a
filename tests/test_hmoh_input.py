"""The door: errors that help and change nothing, and the conventions of scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
from helpers import (
    BAD_CALLS,
    BAD_FEATURES,
    M0,
    X0,
    Y0,
    Affine,
    Frame,
    Shift,
    Sparse,
    assert_helpful,
    assert_same,
    assert_same_arrays,
    assert_same_state,
    changed,
    contents,
    stream,
)
from numpy.testing import assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import hmoh
from hmoh import HMOH, NotFittedError
from kernels import RBF, Concat, UnitLength

# ---- bad samples ---------------------------------------------------------------------

PHASES = {
    "unfitted": {},
    "fitted": {},
    "warm-up": {"feature_map": RBF(70)},
    "mid-batch": {"batch_size": 7},
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_samples_are_explained_and_leave_the_model_as_it_was(name, phase):
    X, y, error, words = BAD_CALLS[name]
    model = HMOH(8, random_state=0, **PHASES[phase])
    if phase != "unfitted":
        model.partial_fit(X0, M0 if np.ndim(y) == 2 else Y0)
    before = contents(model)
    for call in (model.partial_fit, model.fit):
        with pytest.raises(error) as caught:
            call(X, y)
        assert_helpful(caught.value, *words)
        assert_same_arrays(contents(model), before)


@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_cannot_be_encoded(name):
    X, error, words = BAD_FEATURES[name]
    model = HMOH(8, random_state=0).fit(X0, Y0)
    for use in (model.transform, model.decision_function):
        with pytest.raises(error) as caught:
            use(X)
        assert_helpful(caught.value, *words)


LARGE = hmoh.MOST_FEATURE


@pytest.mark.parametrize("maps", [None, [], Affine()], ids=["none", "no map", "map"])
def test_features_whose_products_could_overflow_are_refused_after_the_maps(maps):
    X, y = stream()
    model = HMOH(8, maps, batch_size=7, random_state=0).partial_fit(X, y)
    before = contents(model) if not maps else None
    for value in (1.1 * LARGE, -1e30):
        for call in (lambda X: model.partial_fit(X, y), model.transform, model.decision_function):
            with pytest.raises(ValueError) as caught:
                call(changed(X, (3, 1), value))
            assert_helpful(caught.value, "feature_map" if maps else "X[3, 1]", "1e+09")
    assert maps or assert_same_arrays(contents(model), before) is None
    model.fit(np.where(X > 0, LARGE / 4, -LARGE / 4), y)


def test_maps_may_take_what_learning_may_not():
    X, y = stream()
    X = 2.0**60 * X
    assert_array_equal(
        HMOH(8, UnitLength(), random_state=0).fit(X, y).transform(X),
        HMOH(8, random_state=0)
        .fit(*[UnitLength().fit(X).transform(X), y])
        .transform(UnitLength().fit(X).transform(X)),
    )


def test_the_largest_features_and_weights_together_learn_what_small_ones_do():
    X, y = stream(integer=True)
    scale = 2.0 ** np.floor(np.log2(LARGE / abs(X).max()))
    weight = 2.0 ** np.floor(np.log2(hmoh.MOST_WEIGHT))
    small = HMOH(8, random_state=0).fit(X, y)
    large = HMOH(8, random_state=0).fit(scale * X, y, np.full(60, weight))
    assert_array_equal(large.weights_, small.weights_ * scale * weight)
    assert_array_equal(large.transform(scale * X), small.transform(X))


def test_a_data_frame_must_keep_its_columns(tmp_path):
    X, y = stream()
    names = list("abcde")
    model = HMOH(8, random_state=0).partial_fit(Frame(X, names), y)
    assert list(model.feature_names_in_) == names
    model.save(tmp_path / "model.npz")
    copies = HMOH.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))
    swapped = Frame(X[:, [1, 0, 2, 3, 4]], list("bacde"))
    for each in (model, *copies):
        assert list(each.feature_names_in_) == names
        for use in (lambda X: each.partial_fit(X, y), each.transform, each.decision_function):
            with pytest.raises(ValueError) as caught:
                use(swapped)
            assert_helpful(caught.value, "'b', 'a'", "feature_names_in_")
    assert_array_equal(model.transform(X), model.transform(Frame(X, names)))
    assert_same_state(model.partial_fit(X, y), copies[0].partial_fit(Frame(X, names), y))


@pytest.mark.parametrize("columns", [(), [0, 1, 2, 3, 4]])
def test_features_without_names_may_come_in_any_form(columns):
    X, y = stream()
    model = HMOH(8, random_state=0).partial_fit(Frame(X, columns), y)
    model.partial_fit(X, y).transform(Frame(X, list("abcde")))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.filterwarnings("error")
def test_two_labels_with_one_target_are_told_once(tmp_path):
    """Of two codes of one bit, one goes to two labels."""
    X, y = np.eye(3), np.array(["ape", "bee", "cat"])
    with pytest.warns(UserWarning) as caught:
        model = HMOH(1, random_state=0).fit(X, y)
    assert len(caught) == 1 and caught[0].filename == __file__
    twins = [label for label in y if f"'{label}'" in str(caught[0].message)]
    assert len(twins) == 2 and len({model.targets_[label].tobytes() for label in twins}) == 1
    model.partial_fit(X, y).save(tmp_path / "model.npz")
    loaded = HMOH.load(tmp_path / "model.npz")
    for each in (loaded, pickle.loads(pickle.dumps(model))):
        each.partial_fit([*X, X[0]], [*y, "dog"])
    with pytest.warns(UserWarning, match="share one target"):
        model.fit(X, y)


@pytest.mark.parametrize("kind", ["random", "spread"])
def test_labels_that_share_no_target_are_not_told_of(kind):
    found = 0
    for seed in range(30):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = HMOH(5, codebook=kind, random_state=seed).fit(np.eye(6), np.arange(6))
        shared = len({target.tobytes() for target in model.targets_.values()}) < 6
        assert len(caught) == shared
        found += shared
        assert not caught or "spread" in str(caught[0].message)
    assert found > 0 if kind == "random" else found == 0


def test_features_far_from_zero_are_warned_of_once_at_the_start():
    X, y = stream(100)
    with pytest.warns(UserWarning, match="UnitLength") as caught:
        model = HMOH(8, random_state=0).partial_fit(X + 100, y)
    assert caught[0].filename == __file__
    model.partial_fit(X + 100, y)
    HMOH(8, UnitLength(), random_state=0).partial_fit(X + 100, y)
    HMOH(8, random_state=0).partial_fit(X[:1] + 100, y[:1])


# The first call, a second one that does not fit it, and words of the error.
SECOND = {
    "strings": ((X0, Y0), (X0, Y0.astype(str)), ["strings", "integers"]),
    "integers": ((X0, Y0.astype(str)), (X0, Y0), ["strings", "integers"]),
    "matrix": ((X0, Y0), (X0, M0), ["6", "integers"]),
    "no matrix": ((X0, M0), (X0, Y0), ["6", "integers"]),
    "wider matrix": ((X0, M0), (X0, np.pad(M0, ((0, 0), (0, 1)))), ["6", "7"]),
    "fewer features": ((X0, Y0), (X0[:, :4], Y0), ["4", "5"]),
    "late classes": ((X0, Y0), (X0, Y0, [0, 1, 2, 3]), ["classes"]),
    "other classes": ((X0, Y0, [0, 1, 2, 3]), (X0, Y0, [0, 1, 2, 9]), ["classes", "9"]),
    "fewer classes": ((X0, Y0, [0, 1, 2, 3]), (X0, Y0, [0, 1, 2]), ["classes"]),
}


@pytest.mark.parametrize("maps", [None, RBF(70)], ids=["learning", "warm-up"])
@pytest.mark.parametrize("name", SECOND)
def test_a_call_that_does_not_fit_the_first_is_an_error(name, maps):
    first, second, words = SECOND[name]
    model = HMOH(8, maps, random_state=0).partial_fit(*first)
    before = contents(model)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(*second)
    assert_helpful(caught.value, *words)
    assert_same_arrays(contents(model), before)
    if name == "fewer features" and maps is None:
        for use in (model.transform, model.decision_function):
            with pytest.raises(ValueError) as caught:
                use(X0[:, :4])
            assert_helpful(caught.value, "4", "5")


@pytest.mark.parametrize("y", [Y0, M0], ids=["one", "several"])
def test_impossible_classes_are_an_error(y):
    for classes in ([0.0, 1.0], [[0, 1], [2, 3]], 4, [], ["a", "b"], *([[0, 1]] * (y is M0))):
        model = HMOH(8, random_state=0)
        with pytest.raises((TypeError, ValueError)) as caught:
            model.partial_fit(X0, y, classes)
        assert_helpful(caught.value, "classes")
        assert contents(model) is None


# ---- bad parameters ------------------------------------------------------------------

IMPOSSIBLE = {
    "n_bits": [True, 2.5, 8.0, "8", None, np.nan, 0, -1],
    "batch_size": [True, 1.5, None, "1", 0],
    "memory": [True, 1.5, np.nan, [10], np.inf, 0, -1, "auto", "10"],
    "learning_rate": ["1", None, 1j, 0, -1, np.nan, np.inf, 1e-31, 1e31, True],
    "codebook": ["best", None, 3, ["random"], "Random"],
    "n_classes": [2.5, True, "4", 0, 3],
    "warmup": [2.5, True, 0],
    "n_threads": [1.5, 0, -1],
    "feature_map": [RBF, "rbf", 3, [RBF(), UnitLength]],
    "ensemble": ["no", None, 2, 1],
    "random_state": ["a", 1.5, np.random.RandomState(0), -1],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_parameters_are_explained_and_nothing_is_begun(name):
    for value in IMPOSSIBLE[name]:
        model = HMOH(**{name: value})
        for call in (model.fit, model.partial_fit):
            if call == model.partial_fit and value == 3 and name == "n_classes":
                continue  # more may come than were announced
            with pytest.raises((TypeError, ValueError)) as caught:
                call(X0, Y0)
            bad = value[1] if isinstance(value, list) and name == "feature_map" else value
            assert_helpful(caught.value, name, repr(bad))
        assert not hasattr(model, "n_seen_")


@pytest.mark.parametrize(
    "params, y, words",
    [
        ({"memory": 50, "ensemble": False}, Y0, ["memory=50", "ensemble=False"]),
        ({"n_classes": 3}, Y0, ["n_classes=3", "4"]),
        ({"n_classes": 5}, M0, ["n_classes=5", "6"]),
        ({"feature_map": RBF(61)}, Y0, ["60 samples", "61 anchors"]),
    ],
)
def test_parameters_that_do_not_fit_together_or_the_data_are_an_error(params, y, words):
    model = HMOH(8, random_state=0, **params)
    with pytest.raises(ValueError) as caught:
        model.fit(X0, y)
    assert_helpful(caught.value, *words)
    assert not hasattr(model, "n_seen_")


ATTRIBUTES = ["weights_", "targets_", "label_set_targets_", "n_steps_", "feature_map_"]
ATTRIBUTES += ["feature_names_in_"]


def test_unfitted_use_is_an_error_that_says_what_to_do():
    model = HMOH(8)
    uses = [model.transform, model.decision_function]
    uses += [lambda X, name=name: getattr(model, name) for name in ATTRIBUTES]
    uses += [lambda X: model.n_seen_, lambda X: model.n_features_in_]
    for use in uses:
        with pytest.raises(NotFittedError) as caught:
            use(X0)
        assert_helpful(caught.value, "HMOH", "fit")
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, AttributeError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ValueError):
        check_is_fitted(model)
    check_is_fitted(model.fit(X0, Y0))


def test_a_batch_may_be_longer_than_any_stream():
    model = HMOH(8, batch_size=10**12, random_state=0).fit(X0, Y0)
    assert_same(HMOH(8, batch_size=60, random_state=0).fit(X0, Y0), model, X0)


# ---- bad feature maps ----------------------------------------------------------------


class Odd(Shift):
    """A map that makes what it should, or what `output` makes of it after some calls."""

    output = None
    calls_left = 0

    def transform(self, X):
        Z = super().transform(X)
        if Odd.output is None or Odd.calls_left:
            Odd.calls_left -= 1
            return Z
        return Odd.output(Z)

    def __repr__(self):
        return "Odd()"


def fail(Z):
    raise KeyboardInterrupt


ODD = {
    "nan": (lambda Z: changed(Z, (2, 1), np.nan), ValueError, ["[2, 1]", "nan"]),
    "infinity": (lambda Z: Z + np.inf, ValueError, ["[0, 0]", "inf"]),
    "one axis": (lambda Z: np.ones(len(Z)), ValueError, ["shape"]),
    "complex": (lambda Z: Z.astype(complex), ValueError, ["complex128"]),
    "nothing": (lambda Z: None, (TypeError, ValueError), ["object"]),
    "no features": (lambda Z: Z[:, :0], ValueError, ["shape"]),
    # The compiled loop would not notice that a row is missing.
    "a row too few": (lambda Z: Z[1:], ValueError, ["Odd()"]),
    "a row too many": (lambda Z: Z[[0, *range(len(Z))]], ValueError, ["Odd()"]),
    "another width": (lambda Z: Z[:, :4], ValueError, ["4", "5"]),
    "sparse": (lambda Z: Sparse(), TypeError, ["Sparse"]),
    "interrupt": (fail, KeyboardInterrupt, None),
}


@pytest.mark.parametrize("n_calls", [0, 1, 2])
@pytest.mark.parametrize("begun", [0, 5, 30])  # unfitted, in the warm-up, learning
@pytest.mark.parametrize("name", ODD)
def test_a_map_that_fails_leaves_the_model_as_it_was(name, begun, n_calls, monkeypatch):
    output, error, words = ODD[name]
    # Blocks, so that some were learned from when the map fails.
    monkeypatch.setattr(hmoh, "BLOCK_ROWS", 14)
    monkeypatch.setattr(hmoh, "FEW_ROWS", 4)
    X, y = stream(integer=True, n_labels=12)
    maps = [Odd(10)] if n_calls else Odd(10)
    failed = HMOH(3, maps, batch_size=7, random_state=0)
    spared = HMOH(3, maps, batch_size=7, random_state=0)
    if begun:
        failed.partial_fit(X[:begun], y[:begun])
        spared.partial_fit(X[:begun], y[:begun])
    monkeypatch.setattr(Odd, "output", staticmethod(output))
    monkeypatch.setattr(Odd, "calls_left", n_calls)
    if name == "another width" and begun < 10 and n_calls == 0:
        return  # from the start this width is the width of the map
    with pytest.raises(error) as caught:
        failed.partial_fit(X, y)
    if words:
        assert_helpful(caught.value, "feature_map", *words)
    assert_same_arrays(contents(failed), contents(spared))
    if begun == 30:
        monkeypatch.setattr(Odd, "calls_left", 0)
        with pytest.raises(error):
            failed.transform(X)
    monkeypatch.setattr(Odd, "output", None)
    failed.partial_fit(X[begun:], y[begun:])
    assert_same_state(spared.partial_fit(X[begun:], y[begun:]), failed)


# ---- scikit-learn --------------------------------------------------------------------


# Checks that may fail, and why. Every other check passes.
DECLARED = {
    "check_estimators_nan_inf": "its labels are floats, which are refused",
    "check_dtype_object": "its features are objects, which are refused",
    "check_estimators_unfitted": "NotFittedError is not scikit-learn's class",
    "check_n_features_in_after_fitting": "it compares words",
    "check_estimators_empty_data_messages": "it compares words",
    "check_sample_weight_equivalence_on_dense_data": "a repeated sample is two steps of a stream",
    "check_all_zero_sample_weights_error": "samples that count may follow",
}


def test_the_checks_of_scikit_learn_pass_but_for_the_declared():
    with warnings.catch_warnings():
        # The class does not inherit from scikit-learn's, so that its file does not need it.
        warnings.simplefilter("ignore")
        results = check_estimator(HMOH(8, random_state=0), on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert len(results) >= 40
    assert set(failed) <= set(DECLARED), failed


def test_parameters_are_only_stored():
    marker = object()
    for name in HMOH().get_params():
        assert getattr(HMOH(**{name: marker}), name) is marker
    assert " ".join(HMOH().get_params()) == (
        "n_bits feature_map codebook ensemble memory batch_size learning_rate n_classes"
        " class_weight warmup n_threads random_state"
    )
    maps = [UnitLength(), RBF(7, center=True)]
    model = HMOH(9, maps, "spread", True, 50, 2, 0.5, 7, None, 20, 1, 5)
    assert repr(eval(repr(model))) == repr(model)


@pytest.mark.parametrize(
    "maps, name, n_features",
    [
        (RBF(8), "feature_map__n_anchors", 7),
        ([UnitLength(), RBF(8)], "feature_map__1__n_anchors", 7),
        ([Concat([None, RBF(8)])], "feature_map__0__maps__1__n_anchors", 12),
        (Pipeline([("s", StandardScaler()), ("k", RBF(8))]), "feature_map__k__n_anchors", 7),
    ],
    ids=["map", "list", "concat", "pipeline"],
)
def test_nested_parameters_are_seen_and_set(maps, name, n_features):
    model = HMOH(feature_map=maps, warmup=20)
    assert model.get_params()[name] == 8
    assert name not in model.get_params(deep=False)
    assert model.set_params(**{name: 7}, n_bits=5) is model
    assert model.fit(X0, Y0).weights_.shape == (n_features, 5)
    model.set_params(feature_map=RBF(), feature_map__n_anchors=9)
    assert model.feature_map.n_anchors == 9


@pytest.mark.parametrize(
    "name",
    ["bits", "feature_map__n_anchor", "feature_map__0__n_anchors", "feature_map__", "_state"],
)
def test_an_unknown_parameter_is_an_error_and_sets_nothing(name):
    model = HMOH(feature_map=RBF(8))
    with pytest.raises(ValueError) as caught:
        model.set_params(n_bits=5, feature_map__divisor=3, **{name: 3})
    assert_helpful(caught.value, repr(name))
    assert repr(model) == repr(HMOH(feature_map=RBF(8)))


def test_scikit_learn_is_told_that_labels_are_needed_and_may_be_a_matrix():
    tags = get_tags(HMOH())
    assert tags.target_tags.required
    assert tags.target_tags.two_d_labels and tags.target_tags.multi_output
    assert tags.transformer_tags is not None and tags.estimator_type is None


def agreement(model, X, y):
    """Return the share of bits that equal the targets."""
    targets = np.stack([model.targets_[label] for label in y.tolist()])
    return np.mean((model.decision_function(X) > 0) == (targets > 0))


def test_works_in_a_pipeline_and_a_grid_search():
    X, y = stream(90)
    pipeline = Pipeline([("map", RBF(8)), ("hash", HMOH(8, random_state=0))]).fit(X, y)
    Z = RBF(8).fit(X).transform(X)
    assert_array_equal(pipeline.transform(X), HMOH(8, random_state=0).fit(Z, y).transform(Z))
    weight = np.arange(90) % 2
    expected = HMOH(8, random_state=0).fit(Z, y, weight).transform(Z)
    assert_array_equal(pipeline.fit(X, y, hash__sample_weight=weight).transform(X), expected)
    assert_array_equal(pipeline.fit_transform(X, y, hash__sample_weight=weight), expected)
    grid = {"n_bits": [4, 8], "feature_map__n_anchors": [3, 10], "learning_rate": [0.1, 1]}
    model = HMOH(feature_map=RBF(), random_state=0)
    search = GridSearchCV(model, grid, scoring=agreement, cv=3, error_score="raise").fit(X, y)
    # The axes are n_anchors, learning_rate, n_bits.
    scores = search.cv_results_["mean_test_score"].reshape(2, 2, 2)
    assert_array_equal(scores[:, 0], scores[:, 1])
    assert scores.max() > 0.7
    n_anchors = search.best_params_["feature_map__n_anchors"]
    assert search.best_estimator_.feature_map_.anchors_.shape == (n_anchors, 5)


def test_a_copied_model_whose_map_has_a_nan_parameter_learns_on():
    X, y = stream()
    model = HMOH(8, SimpleImputer(), warmup=10, random_state=0).fit(X, y)
    assert_same(model.partial_fit(X, y), pickle.loads(pickle.dumps(model)), X)
    pickle.loads(pickle.dumps(model)).partial_fit(X, y)
