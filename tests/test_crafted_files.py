"""Files made to do harm: `load` refuses every one with a ValueError, and takes little memory."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from helpers import ROOT, assert_helpful, multi_stream, stream

from baselines import BEYOND, METHODS
from hmoh import HMOH
from kernels import RBF, Concat, UnitLength

MOST_MEMORY = 200e6  # bytes that a refused file may cost


# ---- making files --------------------------------------------------------------------


def contents(model, tmp_path):
    """Return the arrays of the file that a model is saved to."""
    model.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        return dict(file)


def npy(array, shape=None):
    """Return the bytes of a .npy file, whose header may state another shape."""
    array = np.asarray(array)
    header = np.lib.format.header_data_from_array_1_0(array)
    if shape is not None:
        header["shape"] = shape
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def write(path, arrays, compression=zipfile.ZIP_STORED, **raw):
    """Write an .npz file; `raw` replaces whole entries by bytes."""
    entries = {name: npy(array) for name, array in arrays.items()} | raw
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)


def changed_head(arrays, **changes):
    """Return the arrays with other parameters, or another head."""
    head = json.loads(arrays["head"].item())
    for name, value in changes.items():
        if name in head:
            head[name] = value
        else:
            head["params"][name] = value
    return arrays | {"head": np.array(json.dumps(head))}


def assert_refused(path, kind=HMOH, feature_map=None):
    """Check that the file is refused with little memory, and that the map stays as it is."""
    before = repr(feature_map)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            kind.load(path, feature_map=feature_map)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert_helpful(caught.value)
    assert peak < MOST_MEMORY
    assert repr(feature_map) == before
    assert not hasattr(feature_map, "anchors_")


# ---- every entry of every method, damaged in every way --------------------------------

ALL = METHODS | BEYOND
SMALL = {
    "HMOH": {"batch_size": 7},
    "SketchHash": {"sketch_size": 20, "sketch_batch": 25},
    "FROSH": {"sketch_size": 20, "block": 25},
    "MIHash": {"reservoir": 50},
    "BSODH": {"batch": 25},
    "OKH": {"n_anchors": 6},
}
# Entries that a model need not have, or whose number of rows is free.
OPTIONAL = {"_classes", "_X", "_n_warmup"}
FREE = {"_classes", "_X", "sketch_"}


def learned(name, multi=False):
    """Return a model that has learned, and in which samples wait if the method lets them."""
    X, y = multi_stream(n=61, d=6) if multi else stream(n=61, d=6)
    model = ALL[name]("mnist", 5, random_state=0)
    model.set_params(feature_map=None, **SMALL.get(name, {}))
    return model.partial_fit(X, y if model.needs_labels else None)


def damages(name, a):
    """Yield what is done to an entry, and what becomes of it."""
    yield "one dimension more", a[None]
    if a.dtype.kind == "U":
        yield "a number", np.array(7)
        yield "no JSON, or other labels", np.array("{" * a.size).reshape(a.shape)
        return
    yield "a text", np.array("7")
    yield "complex", a.astype(complex)
    if a.dtype.kind == "b":
        yield "an integer", a.astype(np.int64)
        return
    if a.ndim:
        yield "another width", a.astype(np.int16 if a.dtype.kind == "i" else np.float16)
    if a.ndim and name not in FREE:
        yield "one row more", np.concatenate([a, a[-1:] if len(a) else a])
        yield "no rows", a[:0]
    if a.ndim > 1:
        yield "one column less", a[..., 1:]
        yield "transposed and longer", np.concatenate([a.T, a.T])
    if a.dtype.kind == "f" and a.size:
        for value in (np.nan, -np.inf):
            b = a.copy()
            b.flat[-1] = value
            yield f"{value}", b


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_every_damaged_entry_of_every_method_is_refused(name, multi, tmp_path):
    model = learned(name, multi)
    if multi and not model.needs_labels:
        pytest.skip("it has no labels")
    arrays = contents(model, tmp_path)
    entries = {n: a for n, a in arrays.items() if n.startswith("model/")}
    n_cases = 0
    for full_name, a in entries.items():
        short = full_name.removeprefix("model/")
        cases = dict(damages(short, a))
        if short not in OPTIONAL:
            cases["gone"] = None
        if (name, short) == ("OSH", "_labels"):
            del cases["no rows"], cases["gone"]
        for what, b in cases.items():
            if b is not None and b.shape == a.shape and b.dtype == a.dtype and not b.size:
                continue  # an empty array of free length stays as it is
            rest = {n: arrays[n] for n in arrays if n != full_name}
            write(tmp_path / "bad.npz", rest | ({} if b is None else {full_name: b}))
            try:
                assert_refused(tmp_path / "bad.npz", type(model))
            except BaseException:
                print(name, full_name, what)
                raise
            n_cases += 1
    assert n_cases >= 25


@pytest.mark.parametrize("name", ALL)
def test_what_a_method_saves_is_what_its_forms_name(name, tmp_path):
    model = learned(name)
    arrays = contents(model, tmp_path)
    again = type(model).load(tmp_path / "good.npz")
    for extra in (
        "transform",
        "_forms",
        "__class__",
        "_begun",
        "_book",
        "feature_map_",
    ):
        write(tmp_path / "bad.npz", arrays | {f"model/{extra}": np.arange(3)})
        assert_refused(tmp_path / "bad.npz", type(model))
    X, _ = stream(n=61, d=6)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


# ---- parameters ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"n_bits": 0},
        {"n_bits": -8},
        {"n_bits": 7},
        {"n_bits": 9},
        {"n_bits": 1 << 40},
        {"n_bits": "8"},
        {"n_bits": True},
        {"n_bits": None},
        {"n_bits": [8]},
        {"batch_size": 0},
        {"batch_size": 1.5},
        {"memory": "auto"},
        {"memory": "ever"},
        {"codebook": "plotkin"},
        {"codebook": ["random"]},
        {"fuse": "rows"},
        {"fuse": None},
        {"fuse": ["codes"]},
        {"learning_rate": float("nan")},
        {"learning_rate": "1"},
        {"ensemble": 1},
        {"n_threads": -1},
        {"warmup": 0},
        {"n_classes": 0},
        {"random_state": -1},
        {"random_state": {"a": 1}},
        {"path": "/etc/passwd"},
        {"params": []},
        {"params": {}},
        {"maps": None},
        {"maps": ["feature_map"]},
        {"maps": [1]},
        {"maps": {}},
        {"started": False},
        {"started": 1},
        {"started": None},
    ],
    ids=str,
)
def test_a_wrong_parameter_in_a_file_is_refused(changes, tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    write(tmp_path / "bad.npz", changed_head(arrays, **changes))
    assert_refused(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    "head", ["", "[]", "null", "{}", "[" * 100_000, '{"params": 1}', "9" * 10_000]
)
def test_a_head_that_is_no_head_is_refused(head, tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    write(tmp_path / "bad.npz", arrays | {"head": np.array(head)})
    assert_refused(tmp_path / "bad.npz")


# ---- the codebook --------------------------------------------------------------------


def with_value(at, value):
    def change(a):
        a = a.copy()
        a[at] = value
        return a

    return change


CODEBOOK = {
    "order no power of two": ("order", lambda a: a + 1),
    "order too large": ("order", lambda a: a * 2),
    "order that would ask for terabytes": ("order", lambda a: a * 0 + (1 << 40)),
    "order negative": ("order", lambda a: -a),
    "column beyond the matrix": ("columns", with_value(0, 1 << 20)),
    "column negative": ("columns", with_value(0, -1)),
    "column given twice": ("columns", lambda a: a * 0),
    "column in the queue": ("queue", lambda a: a * 0),
    "queue beyond the matrix": ("queue", with_value(-1, 8)),
    "target 0": ("targets", with_value((0, 0), 0)),
    "target 3": ("targets", with_value((0, 0), 3)),
    "number of labels negative": ("n_labels", lambda a: a * 0 - 1),
    "labels no list": ("labels", lambda a: np.array("3")),
    "too few labels": ("labels", lambda a: np.array("[0, 1]")),
    "a label twice": ("labels", lambda a: np.array("[0, 1, 2, 2]")),
    "a label of another type": ("labels", lambda a: np.array('[0, 1, 2, "3"]')),
    "a label that is a number with a point": (
        "labels",
        lambda a: np.array("[0, 1, 2, 3.5]"),
    ),
    "a set without a matrix of labels": (
        "labels",
        lambda a: np.array("[0, 1, 2, [1, 2]]"),
    ),
    "a dictionary as label": ("labels", lambda a: np.array("[0, 1, 2, {}]")),
    "no generator": ("rng", lambda a: np.array("{}")),
    "another generator": ("rng", lambda a: np.array('{"bit_generator": "MT19937"}')),
    "a generator with a negative word": (
        "rng",
        lambda a: np.array(a.item().replace('"uinteger": ', '"uinteger": -1')),
    ),
}


@pytest.mark.parametrize("case", CODEBOOK)
def test_a_wrong_codebook_is_refused(case, tmp_path):
    arrays = contents(HMOH(5, random_state=0).fit(*stream()), tmp_path)
    name, change = CODEBOOK[case]
    full_name = f"model/codebook_{name}"
    write(tmp_path / "bad.npz", arrays | {full_name: change(arrays[full_name])})
    assert_refused(tmp_path / "bad.npz")


@pytest.mark.parametrize("labels", ["[[0], [1]]", "[0, 1, 2, 3, 4, [9]]", "[0, 1, 2, 3, 4, 5, []]"])
def test_wrong_sets_of_labels_are_refused(labels, tmp_path):
    model = HMOH(8, random_state=0).fit(*multi_stream())
    arrays = contents(model, tmp_path)
    n = len(json.loads(labels))
    write(tmp_path / "bad.npz", arrays | {"model/_n_columns": np.array(1 << 40)})
    assert_refused(tmp_path / "bad.npz")
    targets = arrays["model/codebook_targets"][:n]
    changes = {"labels": np.array(labels), "targets": targets}
    changes = {f"model/codebook_{name}": value for name, value in changes.items()}
    write(tmp_path / "bad.npz", arrays | changes)
    assert_refused(tmp_path / "bad.npz")


# ---- samples that wait ---------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True])
def test_wrong_samples_that_wait_are_refused(multi, tmp_path):
    X, y = multi_stream() if multi else stream()
    arrays = contents(HMOH(8, batch_size=100, random_state=0).partial_fit(X, y), tmp_path)
    X = arrays["model/_X"]
    y = arrays["model/_y"]
    wrong = [
        {"_X": X[:, :-1]},
        {"_X": X[:-1]},
        {"_y": y[:-1]},
        {"_y": y.astype(str)},
        {"_y": y.astype(float)},
        {"_y": y.astype(np.uint8) * 2 if multi else y[:, None]},
        {"_y": y * 0 if multi else y.astype(np.uint8)},
        {"_n_columns": np.array(3)},
        {"_n_columns": np.array(-1)},
        {"_text_labels": np.array(True)} if not multi else {"_n_columns": np.array(0)},
        {"n_features_in_": np.array(1 << 40)},
        {"n_seen_": np.array(-1)},
    ]
    for changes in wrong:
        changes = {f"model/{name}": value for name, value in changes.items()}
        write(tmp_path / "bad.npz", arrays | changes)
        assert_refused(tmp_path / "bad.npz")


# ---- feature maps --------------------------------------------------------------------

MAPS = {
    "anchors of one dimension": ("anchors_", lambda a: a[0]),
    "anchors float64": ("anchors_", lambda a: a.astype(float)),
    "anchors of another width": ("anchors_", lambda a: a[:, :-1]),
    "an anchor less": ("anchors_", lambda a: a[:-1]),
    "anchors NaN": ("anchors_", with_value((0, 0), np.nan)),
    "anchors infinite": ("anchors_", with_value((0, 0), -np.inf)),
    "anchors beyond float32": ("anchors_", with_value((0, 0), 1e38)),
    "no anchors": ("anchors_", lambda a: a[:0]),
    "eta 0": ("eta2_", lambda a: a * 0),
    "eta negative": ("eta2_", lambda a: -a),
    "eta NaN": ("eta2_", lambda a: a * np.nan),
    "eta an array": ("eta2_", lambda a: np.array([a, a])),
    "eta a text": ("eta2_", lambda a: np.array("1")),
    "mean too long": ("mean_", lambda a: np.tile(a, 2)),
    "mean of two dimensions": ("mean_", lambda a: a[:, None]),
    "n_anchors another": ("n_anchors", lambda a: a + 1),
    "n_anchors an array": ("n_anchors", lambda a: np.array([8])),
    "divisor 0": ("divisor", lambda a: a * 0),
    "center a number": ("center", lambda a: np.array(1)),
    "anchors of no kind": ("anchors", lambda a: np.array("last")),
    "anchors a list": ("anchors", lambda a: np.array(["first", "kmeans"])),
    "anchors a number": ("anchors", lambda a: np.array(3)),
    "random_state negative": ("random_state", lambda a: np.array(-1)),
    "random_state a text": ("random_state", lambda a: np.array("1")),
    "a name that is a method": ("transform", lambda a: np.arange(3)),
}


@pytest.mark.parametrize("case", MAPS)
def test_a_wrong_map_is_refused(case, tmp_path):
    X, y = stream()
    model = HMOH(8, RBF(8, center=True), random_state=0).fit(X, y)
    arrays = contents(model, tmp_path)
    name, change = MAPS[case]
    full_name = f"feature_map/{name}"
    bad = change(arrays.get(full_name))
    write(tmp_path / "bad.npz", arrays | {full_name: bad})
    assert_refused(tmp_path / "bad.npz", feature_map=RBF())


@pytest.mark.parametrize(
    "name, value",
    [
        ("feature_map__0/mean_", np.zeros(4, np.float32)),
        ("feature_map__0/mean_", np.zeros((1, 5), np.float32)),
        ("feature_map__0/mean_", np.full(5, np.nan, np.float32)),
        ("feature_map__1/anchors_", np.zeros((8, 4), np.float32)),
        ("feature_map__1/eta2_", np.array(-1.0)),
        ("feature_map__7/mean_", np.zeros(5, np.float32)),
        ("model/_widths", np.array([5, 9])),
        ("model/_widths", np.array([4, 8])),
        ("model/_widths", np.array([5, 1 << 40])),
        ("model/_widths", np.array([8])),
        ("model/n_features_in_", np.array(4)),
    ],
    ids=str,
)
def test_maps_that_do_not_fit_each_other_are_refused(name, value, tmp_path):
    maps = [UnitLength(), RBF(8)]
    model = HMOH(8, maps, warmup=20, random_state=0).fit(*stream())
    arrays = contents(model, tmp_path)
    write(tmp_path / "bad.npz", arrays | {name: value})
    given = [UnitLength(), RBF()]
    assert_refused(tmp_path / "bad.npz", feature_map=given)
    assert not hasattr(given[0], "mean_")


@pytest.mark.parametrize(
    "name, value",
    [
        ("maps__1__mean_", np.zeros(4, np.float32)),
        ("maps__1__mean_", np.zeros((1, 5), np.float32)),
        ("maps__1__mean_", None),
        ("maps__2__anchors_", np.zeros((8, 4), np.float32)),
        ("maps__2__anchors_", np.full((8, 5), np.nan, np.float32)),
        ("maps__2__anchors_", None),
        ("maps__2__n_anchors", np.array(9)),
        ("maps__2__n_anchors", None),
        ("maps__2__eta2_", np.array(-1.0)),
        ("maps__0__mean_", np.zeros(5, np.float32)),
        ("maps__7__mean_", np.zeros(5, np.float32)),
        ("maps", np.zeros(3)),
        ("maps_", np.zeros(3)),
    ],
    ids=str,
)
def test_a_wrong_map_among_maps_side_by_side_is_refused(name, value, tmp_path):
    maps = Concat([None, UnitLength(), RBF(8)])
    model = HMOH(8, maps, warmup=20, random_state=0).fit(*stream())
    arrays = contents(model, tmp_path)
    full_name = f"feature_map/{name}"
    if value is None:
        del arrays[full_name]
    else:
        arrays[full_name] = value
    write(tmp_path / "bad.npz", arrays)
    given = Concat([None, UnitLength(), RBF()])
    assert_refused(tmp_path / "bad.npz", feature_map=given)
    assert not hasattr(given.maps[1], "mean_")


# ---- archives ------------------------------------------------------------------------


def test_a_header_that_asks_for_more_than_the_file_holds_is_refused(tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    W = arrays["model/perceptrons_W"]
    for shape in [(8, 5 << 27), (1 << 40,), (1 << 62, 1 << 62), (-8, -5), (-1,), (39,)]:
        write(tmp_path / "bad.npz", arrays, **{"model/perceptrons_W": npy(W, shape)})
        assert_refused(tmp_path / "bad.npz")


def test_arrays_that_unpack_to_gigabytes_are_refused(tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    big = np.zeros((8, 8_000_000), np.float32)  # 256 MB, compressed to 250 KB
    bomb = arrays | {"model/perceptrons_W": big}
    write(tmp_path / "bad.npz", bomb, compression=zipfile.ZIP_DEFLATED)
    del big, bomb
    assert (tmp_path / "bad.npz").stat().st_size < 1e6
    assert_refused(tmp_path / "bad.npz")


def test_entries_that_share_their_bytes_are_refused(tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array))
        archive.writestr("model/big.npy", npy(np.zeros(1_000_000)))
        big = archive.getinfo("model/big.npy")
        for i in range(500):  # 4 GB in 8 MB
            again = zipfile.ZipInfo(f"model/big{i}.npy")
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(again, field, getattr(big, field))
            archive.filelist.append(again)
    assert_refused(path)


def test_two_entries_of_one_name_are_refused(tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    write(tmp_path / "bad.npz", arrays)
    with (
        zipfile.ZipFile(tmp_path / "bad.npz", "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("head.npy", npy(arrays["head"]))
    assert_refused(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3, [("a", "f4")]),
        np.zeros(3, "M8[s]"),
        np.zeros(3, "V8"),
        np.zeros(3, "S8"),
        np.array([b"x"], object),
    ],
    ids=lambda value: str(value.dtype),
)
def test_types_that_are_never_saved_are_refused(value, tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    write(tmp_path / "bad.npz", arrays | {"model/perceptrons_W": value})
    assert_refused(tmp_path / "bad.npz")


def test_texts_that_are_no_characters_are_refused(tmp_path):
    X, y = stream()
    arrays = contents(HMOH(8, random_state=0).fit(X, y.astype(str)), tmp_path)
    classes = arrays["model/_classes"]
    raw = np.full(classes.nbytes // 4, 1 << 30, np.uint32).view(classes.dtype)
    write(tmp_path / "bad.npz", arrays | {"model/_classes": raw})
    assert_refused(tmp_path / "bad.npz")


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00" + b"x" * 99])
def test_entries_that_are_no_arrays_are_refused(data, tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    write(tmp_path / "bad.npz", arrays, **{"model/perceptrons_W": data})
    assert_refused(tmp_path / "bad.npz")


# ---- files of older versions ---------------------------------------------------------


def version_1():
    """Return the arrays of a file that an older version wrote."""
    with np.load(ROOT / "tests" / "files" / "spread.npz") as file:
        return dict(file)


def version_2(model, tmp_path):
    """Return what version 2 would have written: one average, and nothing on draws."""
    arrays = contents(model, tmp_path)
    arrays["format"] = np.array("hmoh model 2 HMOH")
    del arrays["model/codebook_n_draws"], arrays["model/perceptrons_wrong"]
    arrays["model/_W"] = arrays.pop("model/perceptrons_W")
    arrays["model/_V"] = arrays.pop("model/perceptrons_V")
    arrays["model/_S"] = arrays.pop("model/perceptrons_S")[0]
    arrays["model/n_steps_"] = arrays.pop("model/perceptrons_steps")
    return arrays


def test_an_old_file_cannot_ask_for_a_large_codebook(tmp_path):
    arrays = version_1()
    write(tmp_path / "good.npz", arrays)
    HMOH.load(tmp_path / "good.npz")
    for n_classes in (1 << 24, 1 << 40):
        write(tmp_path / "bad.npz", changed_head(arrays, n_classes=n_classes))
        assert_refused(tmp_path / "bad.npz")


def test_arrays_of_an_old_file_cannot_be_multiplied_by_their_shapes(tmp_path):
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    arrays = version_2(model, tmp_path)
    write(tmp_path / "good.npz", arrays)
    again = HMOH.load(tmp_path / "good.npz").partial_fit(X, y)
    expected = model.partial_fit(X, y).weights_
    np.testing.assert_allclose(again.weights_, expected, rtol=1e-5)
    tall = {"model/_S": np.zeros((100_000, 1)), "model/_V": np.zeros((1, 100_000))}
    write(tmp_path / "bad.npz", arrays | tall)
    assert_refused(tmp_path / "bad.npz")


def test_a_codebook_of_an_old_file_is_saved_as_a_new_model_saves_it(tmp_path):
    # "random" compares nothing, so that one draw is the number which the old file lacks.
    model = HMOH(8, codebook="random", random_state=0).fit(*stream())
    write(tmp_path / "old.npz", version_2(model, tmp_path))
    expected = contents(model, tmp_path)
    found = contents(HMOH.load(tmp_path / "old.npz"), tmp_path)
    assert expected["model/codebook_n_draws"] == 1
    for name in expected:
        if name.startswith("model/codebook_"):
            np.testing.assert_array_equal(found[name], expected[name])


# ---- what fuzzing found --------------------------------------------------------------


def test_an_archive_whose_entries_begin_before_the_file_is_refused(tmp_path):
    HMOH(8, random_state=0).fit(*stream()).save(tmp_path / "bad.npz")
    content = (tmp_path / "bad.npz").read_bytes()
    (tmp_path / "bad.npz").write_bytes(content[1000:])
    assert_refused(tmp_path / "bad.npz")


@pytest.mark.parametrize("name", ["n_seen_", "perceptrons_steps", "codebook_n_labels"])
def test_a_count_that_cannot_go_on_is_refused(name, tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*stream()), tmp_path)
    most = np.array(np.iinfo(np.int64).max)
    write(tmp_path / "bad.npz", arrays | {f"model/{name}": most})
    assert_refused(tmp_path / "bad.npz")


def test_labels_that_are_strings_and_columns_are_refused(tmp_path):
    arrays = contents(HMOH(8, random_state=0).fit(*multi_stream()), tmp_path)
    write(tmp_path / "bad.npz", arrays | {"model/_text_labels": np.array(True)})
    assert_refused(tmp_path / "bad.npz")


def test_a_map_that_is_not_fitted_is_refused(tmp_path):
    model = HMOH(8, UnitLength(), warmup=20, random_state=0).fit(*stream())
    arrays = contents(model, tmp_path)
    del arrays["feature_map/mean_"]
    write(tmp_path / "bad.npz", arrays)
    assert_refused(tmp_path / "bad.npz", feature_map=UnitLength())


def test_a_warm_up_that_is_too_short_for_its_map_is_refused(tmp_path):
    X, y = stream()
    arrays = contents(HMOH(8, RBF(30), random_state=0).partial_fit(X[:9], y[:9]), tmp_path)
    write(tmp_path / "bad.npz", arrays | {"feature_map/n_anchors": np.array(31)})
    assert_refused(tmp_path / "bad.npz", feature_map=RBF())


@pytest.mark.parametrize(
    "name, params",
    [
        ("HMOH", {"n_bits": 10**9}),
        ("HMOH", {"n_bits": (1 << 16) - 1}),
        ("HMOH", {"n_classes": 10**9}),
        ("HCOH", {"n_classes": 1 << 30}),
        ("LSH", {"n_bits": 1 << 17}),
        ("MIHash", {"reservoir": 10**9}),
    ],
    ids=str,
)
def test_a_model_that_would_take_gigabytes_when_it_starts_is_refused(name, params, tmp_path):
    X, y = stream()
    model = METHODS[name]("mnist", 8, random_state=0)
    model.set_params(feature_map=UnitLength(), warmup=100)
    arrays = contents(model.partial_fit(X, y), tmp_path)
    kind = type(model)
    again = kind.load(tmp_path / "good.npz", feature_map=UnitLength())
    assert again.n_seen_ == len(X)
    write(tmp_path / "bad.npz", changed_head(arrays, **params))
    assert_refused(tmp_path / "bad.npz", kind, feature_map=UnitLength())


# ---- what can be saved can be loaded -------------------------------------------------


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    model._perceptrons.W[0, 0] = np.inf
    with pytest.raises(ValueError) as caught:
        model.save(tmp_path / "model.npz")
    assert "perceptrons_W" in str(caught.value)
    assert "learn from" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_the_other_byte_order_are_read(tmp_path):
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    arrays = contents(model, tmp_path)
    swapped = {name: a.astype(a.dtype.newbyteorder()) for name, a in arrays.items()}
    write(tmp_path / "swapped.npz", swapped)
    again = HMOH.load(tmp_path / "swapped.npz").partial_fit(X, y)
    np.testing.assert_array_equal(again.weights_, model.partial_fit(X, y).weights_)
