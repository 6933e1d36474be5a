"""Streams: any cutting, batches, warm-up, copies, parameters that change, and forms of arrays."""

import copy
import tracemalloc

import naive
import numpy as np
import pytest
from helpers import (
    ANY,
    JIT_IS_OFF,
    M0,
    STRINGS,
    X0,
    Y0,
    Affine,
    Frame,
    Shift,
    assert_helpful,
    assert_same,
    assert_same_state,
    contents,
    either_stream,
    feed,
    multi_stream,
    stream,
    target_rows,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from hmoh import HMOH, NotFittedError
from kernels import RBF, Concat, UnitLength

# ---- any cutting (more in tests/test_model_machine.py) --------------------------------


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("maps", [RBF(6), [UnitLength(), Concat([None, RBF(6)])]], ids=str)
def test_with_a_map_any_cutting_gives_the_same_up_to_rounding(maps, multi):
    X, y = either_stream(multi)
    params = {"batch_size": 3, "warmup": 9, "random_state": 0}
    whole = HMOH(8, maps, **params).partial_fit(X, y)
    for cuts in ([1, 2, 30], [8, 10], range(1, 60)):
        cut = feed(HMOH(8, maps, **params), X, y, cuts)
        assert_allclose(cut.weights_, whole.weights_, rtol=1e-4, atol=1e-5)


def test_many_calls_of_one_sample_take_no_memory():
    X, y = stream(1000)
    model = HMOH(16, memory=7, random_state=0)
    n_calls = 300 if JIT_IS_OFF else 5000

    def call(n):
        for i in range(n):
            row = slice(i % 1000, i % 1000 + 1)
            model.partial_fit(X[row], y[row])
            if i % 7 == 0:
                model.transform(X[row])

    call(100)
    tracemalloc.start()
    try:
        call(100)
        before, _ = tracemalloc.get_traced_memory()
        call(n_calls)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.n_steps_ == n_calls + 200
    assert after - before < 10_000


# ---- batches and fit -----------------------------------------------------------------


def test_the_rest_of_a_batch_waits_and_fit_learns_from_it():
    X, y = stream(integer=True)
    model = HMOH(8, batch_size=25, random_state=0)
    with pytest.raises(NotFittedError, match="24 of 25"):
        model.partial_fit(X[:24], y[:24], np.unique(y)).transform(X)
    model.partial_fit(X[24:], y[24:])
    assert (model.n_seen_, model.n_steps_) == (60, 2)
    whole = HMOH(8, batch_size=25, random_state=0).fit(X[:50], y[:50])
    assert_array_equal(model.weights_, whole.weights_)
    fitted = HMOH(8, batch_size=25, random_state=0).fit(X, y)
    assert (fitted.n_seen_, fitted.n_steps_) == (60, 3)
    _, average = naive.perceptron(X, *target_rows(fitted, y), 25)
    assert_array_equal(fitted.weights_, average.T.astype(np.float32))
    assert model.partial_fit(X[:15], y[:15]).n_steps_ == 3


@pytest.mark.parametrize("params", [{"batch_size": 50}, {"feature_map": Affine(50)}], ids=str)
def test_samples_that_wait_are_the_model_s_own(params):
    X, y = stream(integer=True)
    model = HMOH(8, random_state=0, **params)
    given_X = np.empty((10, 5), np.float32)
    given_y = np.empty(10, int)
    for start in range(0, 50, 10):  # a user reuses the arrays
        given_X[:] = X[start : start + 10]
        given_y[:] = y[start : start + 10]
        model.partial_fit(given_X, given_y)
    assert_same(HMOH(8, random_state=0, **params).partial_fit(X[:50], y[:50]), model, X)


def test_fit_is_one_pass_with_known_classes_that_forgets_what_was_before():
    X, y = stream()
    fitted = HMOH(8, random_state=0).fit(X, y)
    known = HMOH(8, random_state=0).partial_fit(X, y, classes=[3, 1, 0, 2])
    assert_same_state(fitted, known)
    model = HMOH(8, random_state=0).partial_fit(X[:, :3], ["a"] * 60)
    assert_same_state(fitted, model.fit(X, y))
    # Learning goes on after it.
    half = HMOH(8, random_state=0).fit(X[:30], y[:30])
    assert set(y[:30]) == set(y)
    assert_same(fitted, half.partial_fit(X[30:], y[30:]), X)


# ---- warm-up and maps ----------------------------------------------------------------


# A map need not return itself from fit.
@pytest.mark.parametrize("returns_self", [True, False])
@pytest.mark.parametrize("warmup, used", [(None, 10), (4, 4), (25, 25)])
@pytest.mark.parametrize("cuts", [[], [3], range(1, 60)])
def test_a_map_is_fitted_on_exactly_the_first_samples_and_nothing_is_lost(
    returns_self, warmup, used, cuts
):
    X, y = stream(integer=True)
    given = Affine(10, returns_self)
    model = feed(HMOH(8, given, warmup=warmup, random_state=0), X, y, cuts)
    assert not hasattr(given, "rows_")  # a copy is fitted
    assert_array_equal(model.feature_map_.rows_, X[:used])
    expected = HMOH(8, random_state=0).partial_fit(2 * X - X[0], y)
    assert_array_equal(model.weights_, expected.weights_)
    assert model.n_seen_ == model.n_steps_ == 60


def test_until_the_longest_warm_up_is_in_nothing_can_be_encoded():
    X, y = stream(50)
    model = HMOH(8, [Affine(7), RBF(20), Affine(12)])
    for n in (5, 19):
        rows = slice(getattr(model, "n_seen_", 0), n)
        model.partial_fit(X[rows], y[rows])
        for use in (model.transform, model.decision_function):
            with pytest.raises(NotFittedError, match=f"seen {n} of 20 warm-up samples"):
                use(X)
        for name in ("weights_", "targets_", "label_set_targets_", "feature_map_", "n_steps_"):
            assert not hasattr(model, name)
        with pytest.raises(ValueError):
            check_is_fitted(model)
    check_is_fitted(model.partial_fit(X[19:], y[19:]))
    first, rbf, last = model.feature_map_
    assert_array_equal(first.rows_, X[:20])
    assert_array_equal(rbf.anchors_, first.transform(X[:20]))
    assert_allclose(last.rows_, rbf.transform(first.transform(X[:20])), rtol=1e-6)


def test_fit_uses_what_there_is_and_fewer_than_anchors_is_an_error():
    X, y = stream()
    model = HMOH(8, RBF(50), warmup=100, random_state=0).fit(X, y)
    assert_array_equal(model.feature_map_.anchors_, X[:50])
    assert model.feature_map_.eta2_ == pytest.approx(naive.eta2(X, 50, 10))
    before = contents(model)
    with pytest.raises(ValueError) as caught:
        model.fit(X[:49], y[:49])
    assert_helpful(caught.value, "50", "49")
    assert contents(model)["head"] == before["head"]


def test_a_scikit_learn_transformer_is_a_map_and_wants_a_warmup():
    X, y = stream()
    with pytest.raises(ValueError) as caught:
        HMOH(8, StandardScaler()).fit(X, y)
    assert_helpful(caught.value, "warmup=None", "StandardScaler()")
    pipeline = Pipeline([("scale", StandardScaler()), ("rbf", RBF(8))])
    for maps in (StandardScaler(), pipeline):
        model = HMOH(8, maps, warmup=30, random_state=0).fit(X, y)
        Z = maps.fit(X[:30]).transform(X)
        expected = HMOH(8, random_state=0).fit(Z, y)
        assert_array_equal(model.transform(X), expected.transform(Z))


# ---- parameters that change ----------------------------------------------------------


@pytest.mark.parametrize(
    "name, value",
    [
        ("n_bits", 16),
        ("codebook", "ordered"),
        ("ensemble", False),
        ("memory", 50),
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
def test_a_parameter_changed_on_the_way_is_an_error_and_fit_starts_anew(name, value, n, tmp_path):
    params = {"warmup": 20, "random_state": 0}
    model = HMOH(8, RBF(8), **params).partial_fit(X0[:n], Y0[:n])
    spared = HMOH(8, RBF(8), **params).partial_fit(X0[:n], Y0[:n])
    old = model.get_params()[name]
    model.set_params(**{name: value})
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0)
    assert_helpful(caught.value, name.partition("__")[0], "fit")
    # Nor can it slip through a file.
    with pytest.raises(ValueError):
        model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
    twin = copy.deepcopy(model).fit(X0, Y0)
    assert twin.n_seen_ == 60
    model.set_params(**{name: old}).partial_fit(X0, Y0)
    assert_same_state(spared.partial_fit(X0, Y0), model)


@pytest.mark.parametrize(
    "maps, change",
    [
        ([UnitLength()], lambda maps: maps.append(UnitLength())),
        ([UnitLength()], list.clear),
        ([Affine(20)], lambda maps: maps.insert(0, Shift(maps.pop().n_warmup))),
        (
            [Concat([None, Concat([RBF(8)])])],
            lambda m: m[0].set_params(maps__1__maps__0__divisor=3),
        ),
    ],
    ids=["added", "cleared", "replaced", "nested"],
)
def test_a_list_of_maps_that_is_changed_on_the_way_is_an_error(maps, change):
    model = HMOH(8, maps, warmup=20, random_state=0).partial_fit(X0, Y0).partial_fit(X0, Y0)
    change(maps)
    with pytest.raises(ValueError) as caught:
        model.partial_fit(X0, Y0)
    assert_helpful(caught.value, "feature_map")


@pytest.mark.parametrize(
    "name, value",
    [
        ("ensemble", False),
        ("memory", 5),
        ("batch_size", 7),
        ("codebook", "spread"),
        ("n_bits", 100_000),
        ("learning_rate", 0.5),
    ],
)
def test_a_parameter_changed_after_learning_does_not_change_what_was_learned(name, value):
    model = HMOH(8, random_state=0).fit(X0, Y0).set_params(**{name: value})
    assert_same(HMOH(8, random_state=0).fit(X0, Y0), model, X0)


def test_the_number_of_threads_may_change_on_the_way():
    model = HMOH(8, random_state=0).partial_fit(X0, Y0).set_params(n_threads=1)
    expected = HMOH(8, random_state=0).partial_fit(X0, Y0).partial_fit(X0, Y0)
    assert_same(expected, model.partial_fit(X0, Y0), X0)


# ---- arrays that simply work ---------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the mean makes up")  # some forms have no negative numbers
@pytest.mark.parametrize("form", [*ANY, *"efdg"])
def test_features_of_any_form_work(form):
    X, y = stream(integer=True)
    X -= X.min()
    given = ANY[form](X) if form in ANY else X.astype(form)
    expected = HMOH(8, batch_size=7, random_state=0).fit(X, y)
    model = HMOH(8, batch_size=7, random_state=0).partial_fit(given, y, np.unique(y))
    assert_array_equal(model.fit(given, y).weights_, expected.weights_)
    assert_array_equal(model.transform(given), expected.transform(X))
    assert_same_state(
        HMOH(8, random_state=0).fit(X > 2, y), HMOH(8, random_state=0).fit((X > 2).astype(int), y)
    )


@pytest.mark.parametrize("y", [Y0, M0], ids=["one", "several"])
@pytest.mark.parametrize("form", ANY)
def test_labels_of_any_form_work_at_once_and_one_at_a_time(form, y):
    expected = HMOH(8, random_state=0).partial_fit(X0, y)
    model = HMOH(8, random_state=0).partial_fit(X0, ANY[form](y))
    assert_same_state(expected, model)
    single = HMOH(8, random_state=0)
    for i in range(len(y)):
        single.partial_fit(X0[i : i + 1], ANY[form](y[i : i + 1]))
    assert_same_state(expected, single)


def test_bool_and_string_labels_work():
    assert set(HMOH(8).fit(X0, Y0 > 1).targets_) == {0, 1}
    names = STRINGS[Y0]
    expected = HMOH(8, random_state=0).fit(X0, names)
    assert {type(label) for label in expected.targets_} == {str}
    objects = names.astype(object)
    for form in (names.tolist(), objects, Frame(objects), list(names), np.array([*names], object)):
        assert_same_state(expected, HMOH(8, random_state=0).fit(X0, form))
    assert_same_state(
        HMOH(8, random_state=0).fit(X0, Y0), HMOH(8, random_state=0).fit(X0, Y0.astype(object))
    )
    X, Y = multi_stream()
    assert_same_state(HMOH(8, random_state=0).fit(X, Y), HMOH(8, random_state=0).fit(X, Y > 0))


def test_one_sample_with_one_feature_and_one_class_works():
    model = HMOH(1, random_state=0).fit([[2.0]], [7])
    assert list(model.targets_) == [7]
    assert model.transform([[2.0]]).shape == (1, 1)
