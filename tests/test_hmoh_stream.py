"""Streams: warm-up, batches, and every form of arrays and labels that must work."""

import copy
import pickle

import naive
import numpy as np
import pytest
from helpers import (
    Affine,
    assert_helpful,
    assert_same,
    either_stream,
    feed,
    multi_stream,
    stream,
    target_rows,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from hmoh import HMOH, NotFittedError
from kernels import RBF

# ---- warm-up and batches -------------------------------------------------------------


# A map need not return itself from fit.
@pytest.mark.parametrize("returns_self", [True, False])
@pytest.mark.parametrize("warmup, used", [(None, 10), (4, 4), (25, 25)])
@pytest.mark.parametrize("parts", [[60], [3, 57], [1] * 60])
def test_map_is_fitted_on_exactly_the_first_samples_and_nothing_is_lost(
    returns_self, warmup, used, parts
):
    X, y = stream(integer=True)
    given = Affine(10, returns_self)
    cuts = np.cumsum(parts)[:-1].tolist()
    model = feed(HMOH(8, given, warmup=warmup, random_state=0), X, y, cuts)
    assert not hasattr(given, "rows_")  # a copy is fitted
    assert_array_equal(model.feature_map_.rows_, X[:used])
    expected = HMOH(8, random_state=0).partial_fit(2 * X - X[0], y)
    assert_array_equal(model.weights_, expected.weights_)
    assert model.n_seen_ == model.n_steps_ == 60


def test_a_scikit_learn_transformer_is_a_map():
    X, y = stream()
    model = HMOH(8, StandardScaler(), warmup=30, random_state=0).fit(X, y)
    Z = StandardScaler().fit(X[:30]).transform(X)
    expected = HMOH(8, random_state=0).fit(Z, y)
    assert_array_equal(model.transform(X), expected.transform(Z))


@pytest.mark.parametrize(
    "maps",
    [[], (), (Affine(5), Affine(10)), [Affine(5), Affine(10)]],
    ids=["[]", "()", "tuple", "list"],
)
def test_maps_are_applied_in_turn(maps):
    X, y = stream(integer=True)
    Z = X
    for mapping in maps:
        Z = copy.deepcopy(mapping).fit(Z[:10]).transform(Z)
    model = HMOH(8, maps, random_state=0).partial_fit(X, y)
    expected = HMOH(8, random_state=0).partial_fit(Z, y)
    assert_array_equal(model.weights_, expected.weights_)
    assert_array_equal(model.transform(X), expected.transform(Z))


def test_until_the_warm_up_is_in_nothing_can_be_encoded():
    X, y = stream(700)
    model = HMOH(8, RBF(n_anchors=300), random_state=0)
    for start, n in [(0, 120), (120, 299)]:
        model.partial_fit(X[start:n], y[start:n])
        for use in (model.transform, model.encode, model.decision_function):
            message = f"seen {n} of 300 warm-up samples"
            with pytest.raises(NotFittedError, match=message):
                use(X)
        for name in ("weights_", "targets_", "feature_map_"):
            assert not hasattr(model, name)
    model.partial_fit(X[299:300], y[299:300])
    assert model.transform(X).shape == (700, 1)
    assert_array_equal(model.feature_map_.anchors_, X[:300])


def test_warm_up_is_the_longest_of_the_maps():
    X, y = stream(50)
    model = HMOH(8, [Affine(7), RBF(n_anchors=20), Affine(12)])
    with pytest.raises(NotFittedError, match="seen 19 of 20 warm-up samples"):
        model.partial_fit(X[:19], y[:19]).transform(X)
    model.partial_fit(X[19:], y[19:])
    first, rbf, last = model.feature_map_
    assert_array_equal(first.rows_, X[:20])
    assert_array_equal(rbf.anchors_, first.transform(X[:20]))
    assert_allclose(last.rows_, rbf.transform(first.transform(X[:20])), rtol=1e-6)


def test_fit_uses_what_there_is_and_fewer_than_anchors_is_an_error():
    X, y = stream()
    model = HMOH(8, RBF(n_anchors=50), random_state=0).fit(X, y)
    assert_array_equal(model.feature_map_.anchors_, X[:50])
    assert model.feature_map_.eta2_ == pytest.approx(naive.eta2(X[:50], 50, 10))
    before = pickle.dumps(model)
    with pytest.raises(ValueError) as caught:
        model.fit(X[:49], y[:49])
    assert_helpful(caught.value, "50", "49")
    assert pickle.dumps(model) == before


def test_rest_of_a_batch_waits_and_fit_learns_from_it():
    X, y = stream(integer=True)
    classes = np.unique(y)
    model = HMOH(8, batch_size=25, random_state=0)
    with pytest.raises(NotFittedError, match="24 of 25"):
        model.partial_fit(X[:24], y[:24], classes).transform(X)
    model.partial_fit(X[24:], y[24:])
    assert (model.n_seen_, model.n_steps_) == (60, 2)
    whole = HMOH(8, batch_size=25, random_state=0).fit(X[:50], y[:50])
    assert_array_equal(model.weights_, whole.weights_)
    fitted = HMOH(8, batch_size=25, random_state=0).fit(X, y)
    assert (fitted.n_seen_, fitted.n_steps_) == (60, 3)
    _, average = naive.perceptron(X, *target_rows(fitted, y), 25)
    assert_array_equal(fitted.weights_, average.T.astype(np.float32))
    assert model.partial_fit(X[:15], y[:15]).n_steps_ == 3


def test_learning_goes_on_after_fit():
    X, y = stream(integer=True)
    whole = HMOH(8, random_state=0).fit(X, y)
    model = HMOH(8, random_state=0).fit(X[:30], y[:30])
    assert_same(whole, model.partial_fit(X[30:], y[30:]), X)


def test_a_map_that_does_not_say_what_it_needs_wants_a_warmup():
    X, y = stream()
    message = r"warmup=None, but StandardScaler\(\) has no n_warmup; pass"
    with pytest.raises(ValueError, match=message):
        HMOH(8, StandardScaler()).fit(X, y)
    HMOH(8, StandardScaler(), warmup=len(X)).fit(X, y)


# ---- arrays that simply work ---------------------------------------------------------


class Frame:
    """The part of a DataFrame that numpy uses."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)

    def __len__(self):
        return len(self.values)


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(a.tobytes(), np.uint8)
    return memory.view(a.dtype).reshape(a.shape)


FORMS = {
    **{np.dtype(t).name: lambda X, t=t: X.astype(t) for t in (*"BbHhIiLlQq", *"efdg")},
    "big endian": lambda X: X.astype(">f8"),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "unaligned": unaligned,
    "list": lambda X: X.tolist(),
    "list of rows": list,
    "frame": Frame,
    "matrix": lambda X: np.ma.array(X),
}


@pytest.mark.parametrize("form", FORMS)
def test_features_of_any_form_work(form):
    X, y = stream(integer=True)
    X -= X.min()
    given = FORMS[form](X)
    expected = HMOH(8, batch_size=7, random_state=0).fit(X, y)
    model = HMOH(8, batch_size=7, random_state=0).partial_fit(given, y, np.unique(y))
    assert_array_equal(model.fit(given, y).weights_, expected.weights_)
    assert_array_equal(model.transform(given), expected.transform(X))


def test_bool_features_work():
    X, y = stream()
    bools = HMOH(8, random_state=0).fit(X > 0, y)
    floats = HMOH(8, random_state=0).fit((X > 0).astype(float), y)
    assert_same(bools, floats, X)


LABEL_FORMS = {
    "list": list,
    "ints": lambda y: y.tolist(),
    **{np.dtype(t).name: lambda y, t=t: y.astype(t) for t in "BbHIQq"},
    "read-only": read_only,
    "strided": lambda y: np.repeat(y, 2, axis=0)[::2],
    "big endian": lambda y: y.astype(">i4"),
    "frame": Frame,
}


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("form", LABEL_FORMS)
def test_labels_of_any_form_work(form, multi):
    X, y = either_stream(multi)
    y = abs(y)
    expected = HMOH(8, random_state=0).fit(X, y)
    model = HMOH(8, random_state=0).fit(X, LABEL_FORMS[form](y))
    assert_same(expected, model, X)


def test_bool_and_string_labels_work():
    X, y = stream(n_labels=2)
    assert set(HMOH(8).fit(X, y > 0).targets_) == {0, 1}
    names = np.array(["no", "yes"])[y]
    expected = HMOH(8, random_state=0).fit(X, names)
    objects = names.astype(object)
    for form in (names.tolist(), objects, Frame(objects), list(names)):
        assert_same(expected, HMOH(8, random_state=0).fit(X, form), X)
    assert {type(label) for label in expected.targets_} == {str}
    X, Y = multi_stream()
    expected = HMOH(8, random_state=0).fit(X, Y)
    assert_same(expected, HMOH(8, random_state=0).fit(X, Y.astype(bool)), X)


def test_strings_may_grow_longer_along_the_stream():
    X, _ = stream(9)
    model = HMOH(8, batch_size=4)
    model.partial_fit(X[:3], ["a", "b", "a"])
    model.partial_fit(X[3:], ["a longer one"] * 6)
    assert list(model.targets_) == ["a", "b", "a longer one"]


def test_a_pipeline_of_one_sample_one_feature_one_class_works():
    model = HMOH(1, random_state=0).fit([[2.0]], [7])
    assert list(model.targets_) == [7]
    assert model.transform([[2.0]]).shape == (1, 1)
