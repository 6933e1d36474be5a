"""Fuzz files that are damaged: the outcome is a ValueError, or something that works.

The formats are models of all versions (.npz), idx, idx.gz, .mat of versions 5 and 7.3, the text
files of NUS-WIDE, and the files that ship. The bytes of a file are damaged, or a file is written
with other arrays. fuzz.py runs these cases in a process of their own.
"""

import contextlib
import gzip
import hashlib
import io
import json
import tempfile
import warnings
from functools import cache
from pathlib import Path

import data_files
import helpers
import numpy as np
from fuzz_baselines import BASELINES, make_baseline
from fuzz_common import ROOT, make_stream, passed_on, refused, same, same_state, setting

from baselines import HCOH
from hmoh import HMOH, NotFittedError
from kernels import RBF
from study import datasets, originals

OLD = ("spread", "spread_open", "multi_label", "hcoh", "random_rbf", "warming_up")
MODELS = (
    *(name for name in helpers.PHASES if name != "unseeded"),
    *(name for name in BASELINES["method"] if name != "HMOH"),
    *(f"old {name}" for name in OLD),
)
FILE_NAMES = {
    "idx": "images",
    "idx.gz": "images.gz",
    "mat 5": "data.mat",
    "mat 7.3": "data.mat",
    "text": "BoW_int.dat",
    "labels": "Labels_sky.txt",
    "shipped": "reuters10.npz",
}
DATA = tuple(FILE_NAMES)
IN_BYTES = ("cut", "flip", "zero", "insert", "remove")
IN_ARRAYS = ("drop", "swap", "shape", "dtype", "value", "json")
TIMES = (1, 1, 2, 3)
# The arrays of models, and the bytes of data, are damaged more often: there is more to find.
MODEL_FILES = {"file": MODELS, "damage": (*IN_BYTES, *IN_ARRAYS * 2), "times": TIMES}
DATA_FILES = {
    "file": (
        *DATA,
        *(name for name in DATA * 3 if name != "mat 5"),
    ),  # that one is slow
    "damage": (*IN_BYTES * 2, *IN_ARRAYS),
    "times": TIMES,
}
MOST_MEMORY = 4 << 30  # bytes; a damaged size must not take the memory of the machine


def limit_memory():
    """Limit the memory of this process, where the system can."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))


# ---- whole files ---------------------------------------------------------------------


@cache
def whole_model(name):
    """Return the bytes of a saved model, its class, its maps, and samples to learn."""
    if name.startswith("old "):
        name = name.removeprefix("old ")
        files = ROOT / "tests" / "files"
        with np.load(files / f"{name}_expected.npz") as file:
            X, y = file["X"], file["y"]
        kind = HCOH if name == "hcoh" else HMOH
        maps = RBF if name in ("random_rbf", "warming_up") else lambda: None
        return (files / f"{name}.npz").read_bytes(), kind, maps, X, y
    if name in helpers.PHASES:
        model, X, y, classes, maps = helpers.phase(name)
        model.partial_fit(X[:33], y[:33], classes)
    else:
        case = {"method": name, "n_bits": 5, "batch": 4, "variant": 0, "maps": "none"}
        case |= {"n": 60, "d": 5, "n_labels": 4, "labels": "integers", "seed": 0}
        X, y = make_stream(case, np.random.default_rng(0))
        model = make_baseline(case).partial_fit(X[:33], y[:33])
        maps = lambda: None  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        return path.read_bytes(), type(model), maps, X, y


@cache
def whole_data(name):
    """Return the bytes of a small file of data, and its arrays if it has names for them."""
    rng = np.random.default_rng(0)
    if name.startswith("idx"):
        raw = bytes([0, 0, 13, 2, 0, 0, 0, 6, 0, 0, 0, 4])
        raw += rng.normal(size=24).astype(">f4").tobytes()
        return gzip.compress(raw, mtime=0) if name == "idx.gz" else raw, {}
    if name == "text":
        return b"3 0 1\n2 2 0\n0 1 5\n1 1 1\n", {}
    if name == "labels":
        return b"0\n1\n1\n0\n", {}
    if name == "shipped":
        arrays = {"X": np.zeros((9, 3), np.uint8), "Y": np.eye(9, 10, dtype=np.uint8)}
    else:
        arrays = {
            "pca_feats": rng.normal(size=(9, 3)),
            "labels": np.arange(9.0)[:, None],
        }
    return packed(name, arrays), arrays


def packed(name, arrays):
    """Return the bytes of a file with these arrays."""
    if name not in ("mat 5", "mat 7.3"):
        file = io.BytesIO()
        np.savez(file, **arrays)
        return file.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.mat"
        data_files.write_mat(path, arrays, name.removeprefix("mat "))
        return path.read_bytes()


# ---- damage --------------------------------------------------------------------------


def damage_bytes(raw, how, rng):
    """Return the bytes with one place damaged."""
    raw = bytearray(raw)
    at = int(rng.integers(len(raw)))
    length = int(rng.integers(1, 9))
    if how == "cut":
        return bytes(raw[:at])
    if how == "flip":
        raw[at] ^= 1 << int(rng.integers(8))
    elif how == "zero":
        raw[at : at + length] = bytes(len(raw[at : at + length]))
    elif how == "insert":
        raw[at:at] = rng.bytes(length)
    else:
        del raw[at : at + length]
    return bytes(raw)


def damage_arrays(arrays, how, rng):
    """Change one of the arrays, in the dictionary."""
    names = list(arrays)
    name, other = (names[i] for i in rng.integers(len(names), size=2))
    if how == "json":
        texts = [name for name in names if arrays[name].dtype.kind == "U"]
        name = texts[rng.integers(len(texts))] if texts else name
    a = arrays[name]
    if how == "drop":
        del arrays[name]
    elif how == "swap":
        arrays[name], arrays[other] = arrays[other], a
    elif how == "shape":
        arrays[name] = other_shape(a, rng)
    elif how == "dtype":
        kinds = ("f8", "f4", "f2", "i8", "i4", "u1", "?", "U9", "S9", "c8", ">f4", "O")
        arrays[name] = converted(a, kinds[rng.integers(len(kinds))])
    elif how == "value" or a.dtype.kind != "U":
        arrays[name] = other_value(a, rng)
    else:
        arrays[name] = other_json(a, rng)


def other_shape(a, rng):
    """Return the array with another shape."""
    changes = [a[None], a.ravel(), a.T, np.stack([a, a])]
    if a.ndim:
        changes += [a[:-1], a[:0], np.concatenate([a, a]), np.concatenate([a, a[-1:]])]
    if a.ndim > 1:
        changes += [a[..., :-1], a[..., :0], np.repeat(a, 2, axis=-1)]
    return changes[rng.integers(len(changes))]


def converted(a, dtype):
    """Return the array as another dtype, with zeros where that cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return a.astype(dtype)
    except (OverflowError, TypeError, ValueError):
        return np.zeros(a.shape, dtype)


def other_value(a, rng):
    """Return the array with one of its values changed."""
    a = a.copy()
    if a.size == 0:
        return a
    kind = a.dtype.kind
    if kind == "f":
        values = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e10, -0.5]
    elif kind in "iu":
        info = np.iinfo(a.dtype)
        values = [0, 1, 2, 127, info.max, info.min, a.flat[0] ^ 1, a.flat[0] | 1]
    elif kind == "U":
        text = str(a.flat[0])
        values = ["", "x", "null", "[]", "{}", "1", text[:-1], text + " "]
        return np.full(a.shape, values[rng.integers(len(values))])
    else:
        values = [True, False]
    a.flat[rng.integers(a.size)] = values[rng.integers(len(values))]
    return a


def other_json(a, rng):
    """Return a text with one value of its JSON changed."""
    try:
        content = json.loads(str(a.flat[0]))
    except ValueError:
        return np.array(str(a.flat[0]) + "x")
    values = [None, True, False, 0, 1, -1, 3, 10**9, 2**70, 0.5]
    values += ["x", "auto", [], [1], {}]
    value = values[rng.integers(len(values))]
    outer = None
    inner = content
    while isinstance(inner, (dict, list)) and inner:
        outer = inner
        keys = list(outer) if isinstance(outer, dict) else range(len(outer))
        key = keys[rng.integers(len(keys))]
        inner = outer[key]
    if outer is None:
        content = value
    elif rng.random() < 0.2:
        del outer[key]
    else:
        outer[key] = value
    return np.array(json.dumps(content))


def damaged(raw, arrays, case, rng):
    """Return the bytes of the damaged file."""
    if case["damage"] in IN_BYTES or not arrays:
        how = case["damage"] if case["damage"] in IN_BYTES else "flip"
        for _ in range(case["times"]):
            raw = damage_bytes(raw or b"\0", how, rng)
        return raw
    arrays = dict(arrays)
    for _ in range(case["times"]):
        if arrays:
            damage_arrays(arrays, case["damage"], rng)
    try:
        return packed(case["file"], arrays)
    except (TypeError, ValueError):  # .mat has no such arrays
        return raw[:-1]


# ---- models --------------------------------------------------------------------------


def check_models(case):
    """Check that a damaged model is refused, or works."""
    rng = np.random.default_rng(case["seed"])
    raw, kind, maps, X, y = whole_model(case["file"])
    with np.load(io.BytesIO(raw)) as file:
        arrays = dict(file)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        path.write_bytes(damaged(raw, arrays, case, rng))
        try:
            model = kind.load(path, feature_map=maps())
        except ValueError:
            yield "refused"
            return
    check_model(model, maps, X, y)
    yield "works"


def check_model(model, maps, X, y):
    """Check that a model works: it encodes, it is saved, it learns on."""
    same(model.n_features_in_, X.shape[1])
    for _ in range(2):
        with contextlib.suppress(NotFittedError):  # it may need more samples
            check_codes(model, X)
        again = passed_on(model, "save", maps)
        same_state(model, again)
        for start, stop in [(0, 1), (1, 3), (3, 60)]:
            model.partial_fit(X[start:stop], y[start:stop])
        model.partial_fit(np.tile(X, (3, 1)), np.concatenate([y] * 3))


def check_codes(model, X):
    """Check the form of values, codes and targets."""
    values = model.decision_function(X)
    same(values.shape, (len(X), model.n_bits))
    assert values.dtype == np.float32 and np.isfinite(values).all()
    bits = np.packbits(values > 0, axis=1, bitorder="little")
    same(model.transform(X), bits)
    for targets in ("targets_", "label_set_targets_"):
        for code in getattr(model, targets, {}).values():
            assert code.shape == (model.n_bits,) and {*code.tolist()} <= {-1, 1}


# ---- data ----------------------------------------------------------------------------


def check_data(case):
    """Check that damaged data are refused, or have the form of whole ones."""
    rng = np.random.default_rng(case["seed"])
    raw, arrays = whole_data(case["file"])
    raw = damaged(raw, arrays, case, rng)
    with tempfile.TemporaryDirectory() as folder:
        try:
            read_data(case["file"], Path(folder), raw)
        except ValueError:
            yield "refused"
            return
    yield "works"


def read_data(name, folder, raw):
    """Write a file, read it, and check the form of the data."""
    path = folder / FILE_NAMES[name]
    path.write_bytes(raw)
    if name.startswith("idx"):
        array = originals.read_idx(path)
        assert array.dtype.kind in "iuf" and array.dtype.isnative
    elif name == "shipped":
        whole, arrays = whole_data(name)
        sums = {path.name: hashlib.sha256(whole).hexdigest()}
        with setting(datasets, FOLDER=folder, SHA256=sums):
            same(datasets.load("reuters10").labels, arrays["Y"])
    elif name.startswith("mat"):
        check_parts(*originals.read_original("places205", path))
    else:
        read_text(name, folder, raw)


def read_text(name, folder, raw):
    """Read the text files of NUS-WIDE, one of which is damaged."""
    path = folder / "BoW_int.dat"
    labels = folder / "AllLabels" / "Labels_sky.txt"
    labels.parent.mkdir()
    path.write_bytes(raw if name == "text" else whole_data("text")[0])
    labels.write_bytes(raw if name == "labels" else whole_data("labels")[0])
    counts, labels, concepts = originals.read_nuswide(path)
    assert concepts == ["sky"] and set(np.unique(labels)) <= {0, 1}
    check_parts(counts, labels[:, 0].astype(np.int64), np.arange(0))


def check_parts(features, labels, test_rows):
    """Check that there is a row of features for each label, and that they can be learned.

    The reader leaves values as they are. HMOH refuses those that are not finite.
    """
    assert features.dtype == np.float32 and features.ndim == 2
    assert labels.dtype == np.int64 and labels.shape == (len(features),)
    assert test_rows.size == 0
    is_usable = features.size > 0 and np.isfinite(features).all()
    model = HMOH(4, random_state=0)
    if is_usable:
        model.fit(features, labels)
    else:
        refused(lambda: model.fit(features, labels))
