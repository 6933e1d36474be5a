"""Save and load: learning continues exactly, old files load, damaged files are refused."""

import copy
import gc
import json
import os
import pickle

import numpy as np
import pytest
from helpers import (
    PHASES,
    ROOT,
    Affine,
    assert_helpful,
    assert_same,
    assert_same_state,
    phase,
    plain,
    stream,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from baselines import BEYOND, HCOH, METHODS
from hmoh import HMOH, Codebook, NotFittedError
from kernels import RBF, UnitLength

FILES = ROOT / "tests" / "files"

# ---- learning continues --------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 10, 25, 59])
@pytest.mark.parametrize("name", PHASES)
def test_learning_goes_on_from_a_file_exactly_where_it_stopped(name, n, tmp_path):
    model, X, y, classes, maps = phase(name)
    model.partial_fit(X[:n], y[:n], classes)
    before = pickle.dumps(model)
    model.save(tmp_path / "model.npz")
    assert pickle.dumps(model) == before
    assert os.listdir(tmp_path) == ["model.npz"]
    loaded = HMOH.load(tmp_path / "model.npz", feature_map=maps())
    assert_same(model, loaded, X)
    for start, stop in [(n, n + 1), (n + 1, 60), (0, 60)]:
        if start < stop:
            model.partial_fit(X[start:stop], y[start:stop])
            loaded.partial_fit(X[start:stop], y[start:stop])
        assert_same(model, loaded, X)
    loaded.save(tmp_path / "again.npz")
    assert_same(model, HMOH.load(tmp_path / "again.npz", feature_map=maps()), X)


def test_a_loaded_model_has_the_same_parameters(tmp_path):
    X, y = stream()
    model = HMOH(9, RBF(8, 3.0, True), "spread", True, 50, 2, 0.5, 7, 20, 1, 5).fit(X, y)
    model.save(tmp_path / "m.npz")
    loaded = HMOH.load(tmp_path / "m.npz", feature_map=RBF())
    assert repr(loaded) == repr(model)
    assert_same(model.fit(X, y), loaded.fit(X, y), X)


def test_classes_named_late_do_not_change_what_a_file_gives_back(tmp_path):
    X, y = stream(n_labels=12)
    model = HMOH(5, random_state=0).partial_fit(X[:2], y[:2])
    try:
        model.partial_fit(X[2:4], y[2:4], classes=np.arange(12))
    except ValueError as error:  # an error is accepted too
        assert_helpful(error, "classes")
    model.save(tmp_path / "m.npz")
    loaded = HMOH.load(tmp_path / "m.npz")
    assert_same(model.partial_fit(X, y), loaded.partial_fit(X, y), X)


@pytest.mark.parametrize(
    "name, value",
    [
        ("n_bits", 16),
        ("n_bits", 4),
        ("codebook", "ordered"),
        ("batch_size", 2),
        ("memory", 9),
    ],
)
def test_a_parameter_changed_on_the_way_cannot_slip_through_a_file(name, value, tmp_path):
    X, y = stream(n_labels=12)
    model = HMOH(8, random_state=0).partial_fit(X, y).set_params(**{name: value})
    try:
        model.save(tmp_path / "m.npz")
    except ValueError as error:  # an error at once is accepted too
        assert_helpful(error, name)
        assert os.listdir(tmp_path) == []
    else:
        loaded = HMOH.load(tmp_path / "m.npz")
        assert_array_equal(loaded.transform(X), model.transform(X))
        with pytest.raises(ValueError, match=name):
            loaded.partial_fit(X, y)


def test_a_file_holds_no_pickle_and_keeps_its_name(tmp_path):
    X, y = stream()
    HMOH(8, RBF(n_anchors=8)).fit(X, y).save(str(tmp_path / "model"))
    assert os.listdir(tmp_path) == ["model"]
    with np.load(tmp_path / "model", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
        assert json.loads(file["head"].item())["params"]["n_bits"] == 8
        assert file["format"].item().startswith("hmoh")


# ---- nothing is forgotten ------------------------------------------------------------

# Attributes that are neither parameters nor saved under their names.
NOT_SAVED = {
    "feature_map_",  # saved by the maps themselves
    "_book",  # saved by the codebook itself
    "_begun",  # of the parameters, which are saved
    "_checked",
    "_lock",
    "_functions",  # computed from what is saved
    "_hashing",
    "_similar",
    "_counts",
}


SMALL = {
    "SketchHash": {"sketch_size": 20},
    "FROSH": {"sketch_size": 20},
    "MIHash": {"reservoir": 50},
    "BSODH": {"batch": 50},
    "HMOH": {"feature_map": RBF(8)},
    "HadamardRidge": {"feature_map": RBF(8)},
}


@pytest.mark.parametrize("n", [1, 130])  # before anything is learned, and after
@pytest.mark.parametrize("name", METHODS | BEYOND)
def test_every_attribute_of_a_model_is_a_parameter_or_saved(name, n, tmp_path):
    X, y = stream(400, 20)
    model = (METHODS | BEYOND)[name]("mnist", n_bits=8, random_state=0)
    model.set_params(warmup=100, **SMALL.get(name, {}))
    model.partial_fit(X[:n], y[:n])
    known = {*model.get_params(deep=False), *model._saved, *NOT_SAVED}
    assert set(vars(model)) <= known
    model.save(tmp_path / "m.npz")
    new_map = copy.deepcopy(model.feature_map)
    loaded = type(model).load(tmp_path / "m.npz", feature_map=new_map)
    computed = {"_hashing", "_similar", "_counts"}
    assert set(vars(loaded)) >= set(vars(model)) - computed
    for part in (slice(n, n + 1), slice(n + 1, 370), slice(370, 371)):
        model.partial_fit(X[part], y[part])
        loaded.partial_fit(X[part], y[part])
    assert set(vars(model)) <= known
    assert_same_state(model, loaded)
    assert_array_equal(loaded.transform(X), model.transform(X))


def test_every_attribute_of_perceptrons_and_codebook_is_saved():
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    bits = model._perceptrons
    assert {*bits.get_state(), "shape", "memory", "horizons"} == set(vars(bits))
    book = model._book
    params = {"n_bits", "kind", "seed"}
    # All that follows from the targets, the labels, the columns and Wlsh.
    tables = {"_row_of", "_table", "_given", "_columns", "n_targets", "n_columns"}
    aligned = {"_is_used", "_aligned"}
    saved = set(book.get_state()) - {"labels", "targets", "columns"}
    assert params | tables | aligned | saved == set(vars(book))


# ---- files of the version before -----------------------------------------------------

# Written by the code of commit a4996ed, format "hmoh model 1", after 30 samples. Beside
# each is what that code gave then, and after the other 30 samples. The value is a
# function that makes the maps.
OLD = {
    "random_rbf": lambda: RBF(),
    "spread": lambda: None,
    "spread_open": lambda: None,
    "multi_label": lambda: None,
    "warming_up": lambda: RBF(),
    "hcoh": lambda: None,
}


# The targets of the labels that came last were taken. Since then, such targets are replaced in
# another way.
OTHER_NEW_TARGETS = ["spread"]


def load_old(name):
    """Return the model of an old file, and what the old code gave."""
    method = HCOH if name == "hcoh" else HMOH
    model = method.load(FILES / f"{name}.npz", feature_map=OLD[name]())
    with np.load(FILES / f"{name}_expected.npz", allow_pickle=False) as file:
        return model, dict(file)


def assert_as_old(model, expected, when):
    """Check targets, weights and codes.

    Another processor may round sums in another way. So weights are compared up to
    rounding, and the bits whose sum is not near 0.
    """
    targets = model.targets_ | model.label_set_targets_
    labels = json.loads(expected[f"{when}_labels"].item())
    labels = [tuple(key) if isinstance(key, list) else key for key in labels]
    assert list(targets) == labels
    assert_array_equal(list(targets.values()), expected[f"{when}_targets"])
    weights = expected[f"{when}_weights"]
    assert model.weights_.dtype == weights.dtype
    assert_allclose(model.weights_, weights, rtol=1e-4, atol=1e-4)
    X = expected["X"]
    values = model.decision_function(X)
    is_clear = abs(values) > 1e-4
    assert is_clear.mean() > 0.8
    codes = [model.transform(X), expected[f"{when}_codes"]]
    bits, old_bits = np.unpackbits(codes, axis=2, bitorder="little", count=model.n_bits)
    assert_array_equal(bits[is_clear], old_bits[is_clear])


@pytest.mark.parametrize("name", OLD)
def test_a_file_of_the_version_before_loads_and_learning_goes_on(name):
    model, expected = load_old(name)
    with np.load(FILES / f"{name}.npz") as file:
        assert file["format"].item().startswith("hmoh model 1 ")
    X = expected["X"]
    y = expected["y"]
    assert model.n_seen_ == 30
    if name == "warming_up":
        with pytest.raises(NotFittedError, match="seen 30 of 40 warm-up samples"):
            model.transform(X)
    else:
        assert_as_old(model, expected, "saved")
    model.partial_fit(X[30:], y[30:])
    if name not in OTHER_NEW_TARGETS:
        assert_as_old(model, expected, "continued")


@pytest.mark.parametrize("name", ["spread", "spread_open", "multi_label"])
def test_integer_features_of_an_old_file_give_the_same_weights_exactly(name):
    model, expected = load_old(name)
    assert_array_equal(model.weights_, expected["saved_weights"], strict=True)
    model.partial_fit(expected["X"][30:], expected["y"][30:])
    if name not in OTHER_NEW_TARGETS:
        weights = expected["continued_weights"]
        assert_array_equal(model.weights_, weights, strict=True)


@pytest.mark.parametrize("name", OLD)
def test_an_old_file_that_is_saved_again_is_a_new_one(name, tmp_path):
    model, expected = load_old(name)
    model.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        assert file["format"].item() == f"hmoh model 3 {type(model).__name__}"
    again = type(model).load(tmp_path / "new.npz", feature_map=OLD[name]())
    model.partial_fit(expected["X"][30:], expected["y"][30:])
    again.partial_fit(expected["X"][30:], expected["y"][30:])
    assert_same_state(model, again)


@pytest.mark.parametrize("name", ["spread", "spread_open"])
def test_old_labels_keep_the_form_they_had(name):
    model, expected = load_old(name)
    with pytest.raises(ValueError, match=r"strings.*began with integers"):
        model.partial_fit(expected["X"], expected["y"].astype(str))
    with pytest.raises(ValueError, match=r"12 columns.*began with integers"):
        model.partial_fit(expected["X"], np.eye(12, dtype=int)[expected["y"]])


# ---- codebooks in files --------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"classes": np.arange(4)},
        {"n_classes": 4},
        {"feature_map": RBF(8), "classes": np.arange(4)},
        {"multi": True},
    ],
    ids=["classes", "n_classes", "rbf", "multi"],
)
def test_loading_a_spread_model_does_not_draw_again(params, tmp_path, monkeypatch):
    params = dict(params)
    classes = params.pop("classes", None)
    X, y = stream(n_labels=12, integer=True)
    if params.pop("multi", False):
        y = np.eye(12, dtype=int)[y]
    else:
        y[:30] %= 4
    model = HMOH(6, codebook="spread", random_state=0, **params)
    model.partial_fit(X[:30], y[:30], classes)
    model.save(tmp_path / "m.npz")

    def fail(self):
        raise AssertionError("the search for a spread codebook ran again")

    monkeypatch.setattr(Codebook, "_choose", fail)
    given = params.get("feature_map")
    loaded = HMOH.load(tmp_path / "m.npz", feature_map=given and RBF())
    assert_same(model, loaded, X)
    n_before = len(model.targets_)
    # New labels now, more than the columns that are left.
    model.partial_fit(X[30:], y[30:])
    loaded.partial_fit(X[30:], y[30:])
    assert y.ndim == 2 or len(model.targets_) > n_before
    assert_same(model, loaded, X)


@pytest.mark.parametrize("n_bits", [4, 6])
@pytest.mark.parametrize("kind", ["random", "ordered", "spread"])
def test_a_new_class_after_loading_gets_the_target_it_would_have_got(kind, n_bits, tmp_path):
    X = np.eye(20)
    y = np.arange(20)
    for n in range(1, 20):
        model = HMOH(n_bits, codebook=kind, random_state=0).partial_fit(X[:n], y[:n])
        model.save(tmp_path / "m.npz")
        loaded = HMOH.load(tmp_path / "m.npz")
        new = model.partial_fit(X[n:], y[n:]).targets_
        assert plain(loaded.partial_fit(X[n:], y[n:]).targets_) == plain(new)


# ---- damaged and foreign files -------------------------------------------------------


def saved(tmp_path, **params):
    X, y = stream()
    HMOH(8, random_state=0, **params).fit(X, y).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def assert_not_loaded(path, kind=HMOH):
    def load():
        with pytest.raises(ValueError) as caught:
            kind.load(path)
        assert_helpful(caught.value, str(path))

    load()
    gc.collect()  # a file left open warns here


@pytest.mark.parametrize("share", [0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
def test_a_cut_file_is_a_value_error(tmp_path, share):
    path = saved(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert_not_loaded(path)


def test_a_damaged_file_is_a_value_error(tmp_path):
    path = saved(tmp_path)
    content = bytearray(path.read_bytes())
    # The text of the format, whose checksum is then wrong.
    at = content.index("hmoh".encode("utf-32-le"))
    content[at] ^= 1
    path.write_bytes(content)
    assert_not_loaded(path)


def test_a_foreign_file_is_a_value_error(tmp_path):
    path = tmp_path / "foreign"
    path.write_text("n_bits: 8\n")
    assert_not_loaded(path)
    with open(path, "wb") as file:
        np.save(file, np.arange(10))
    assert_not_loaded(path)
    with open(path, "wb") as file:
        np.savez(file, a=np.arange(10))
    assert_not_loaded(path)
    with open(path, "wb") as file:
        np.savez(file, format=np.array([{"a": 1}], object))
    assert_not_loaded(path)
    with open(path, "wb") as file:
        pickle.dump({"a": 1}, file)
    assert_not_loaded(path)


def test_a_file_of_another_version_or_class_is_a_value_error(tmp_path):
    class Other(HMOH):
        pass

    path = saved(tmp_path)
    assert_not_loaded(path, Other)
    with np.load(path) as file:
        arrays = dict(file)
    for version in ("0", "4", "33"):
        changed = str(arrays["format"]).replace("3", version)
        np.savez(path, **arrays | {"format": np.array(changed)})
        assert_not_loaded(path)


@pytest.mark.parametrize(
    "gone",
    [
        "head",
        "model/n_seen_",
        "model/perceptrons_W",
        "model/codebook_targets",
        "model/codebook_rng",
    ],
)
def test_a_file_that_lacks_something_is_a_value_error(tmp_path, gone):
    path = saved(tmp_path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays.pop(gone)
    np.savez(path, **arrays)
    assert_not_loaded(path)


def test_a_missing_file_is_reported_as_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        HMOH.load(tmp_path / "none.npz")


# ---- maps in files -------------------------------------------------------------------


@pytest.mark.parametrize(
    "saved_with, loaded_with",
    [
        (RBF(8), None),
        ([UnitLength(), RBF(8)], RBF(8)),
        (RBF(8), [UnitLength(), RBF(8)]),
        (None, RBF(8)),
        (RBF(8), UnitLength()),
        ([UnitLength(), RBF(8)], [RBF(8), UnitLength()]),
    ],
)
def test_maps_that_do_not_fit_the_file_are_an_error(tmp_path, saved_with, loaded_with):
    path = saved(tmp_path, feature_map=saved_with)
    with pytest.raises(ValueError) as caught:
        HMOH.load(path, feature_map=loaded_with)
    assert_helpful(caught.value)
    if loaded_with is None:
        assert "feature_map=RBF()" in str(caught.value)


@pytest.mark.parametrize("loaded_with", [RBF, Affine(), StandardScaler()])
def test_a_map_that_cannot_be_filled_is_an_error(tmp_path, loaded_with):
    path = saved(tmp_path, feature_map=RBF(8))
    with pytest.raises(TypeError) as caught:
        HMOH.load(path, feature_map=loaded_with)
    assert_helpful(caught.value, "RBF()" if loaded_with is RBF else "set_state")


@pytest.mark.parametrize(
    "saved_with, way",
    [
        (None, "leave feature_map out."),
        ([RBF(8)], "pass a list of 1 new maps."),
        ([UnitLength(), RBF(8)], "pass a list of 2 new maps."),
    ],
)
def test_a_file_without_a_map_or_with_a_list_says_what_to_pass(tmp_path, saved_with, way):
    path = saved(tmp_path, feature_map=saved_with)
    with pytest.raises(ValueError) as caught:
        HMOH.load(path, feature_map=RBF(8))
    assert str(caught.value).endswith(way)


class Stateless:
    """A map that has nothing to save."""

    n_warmup = 1

    def fit(self, X):
        return self

    def transform(self, X):
        return 2 * X

    def get_state(self):
        return {}

    def set_state(self, state):
        assert not state


def test_a_map_without_state_can_be_saved(tmp_path):
    X, y = stream()
    model = HMOH(8, Stateless(), random_state=0).fit(X, y)
    model.save(tmp_path / "m.npz")
    assert_same(model, HMOH.load(tmp_path / "m.npz", feature_map=Stateless()), X)


def test_a_map_that_cannot_be_saved_is_a_type_error_and_writes_nothing(tmp_path):
    X, y = stream()
    model = HMOH(8, [UnitLength(), Affine()], warmup=20).fit(X, y)
    with pytest.raises(TypeError, match="get_state"):
        model.save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_a_state_that_needs_pickle_is_refused(tmp_path):
    class Odd(Stateless):
        def get_state(self):
            return {"inner": None}

    X, y = stream()
    model = HMOH(8, Odd()).fit(X, y)
    with pytest.raises((TypeError, ValueError)):
        model.save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        HMOH().save(tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


# ---- writing -------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [(np, "savez"), (os, "replace")])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failing_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, broken, error):
    path = saved(tmp_path)
    before = path.read_bytes()

    def fail(file, *args, **kwargs):
        if hasattr(file, "write"):
            file.write(b"half")
        raise error("disk full")

    X, y = stream(seed=1)
    model = HMOH(8).fit(X, y)
    monkeypatch.setattr(*broken, fail)
    with pytest.raises(error, match="disk full"):
        model.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]


def test_a_missing_folder_is_named_not_the_temporary_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        HMOH(8).fit(*stream()).save(tmp_path / "none" / "model.npz")
    assert_helpful(caught.value, str(tmp_path / "none"), "model.npz")
    assert ".tmp" not in str(caught.value)


def test_a_sample_may_have_all_labels_before_its_model_is_saved(tmp_path):
    X = np.eye(3)
    Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]])
    model = HMOH(8, random_state=0).partial_fit(X, Y)
    model.save(tmp_path / "model.npz")
    loaded = HMOH.load(tmp_path / "model.npz")
    assert plain(loaded.label_set_targets_) == plain(model.label_set_targets_)
    assert (0, 1, 2) in loaded.label_set_targets_


def test_a_loaded_model_does_not_share_the_map_it_was_given(tmp_path):
    path = saved(tmp_path, feature_map=RBF(8))
    given = RBF()
    a = HMOH.load(path, feature_map=given)
    codes = a.transform(stream()[0])
    assert vars(given) == vars(RBF())
    given.set_params(n_anchors=8).fit(stream(seed=5)[0])
    assert_array_equal(a.transform(stream()[0]), codes)
