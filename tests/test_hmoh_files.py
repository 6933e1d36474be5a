"""Files: learning continues exactly, damaged files are refused, and a fault leaves the old file."""

import contextlib
import copy
import gc
import json
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from helpers import (
    JIT_IS_OFF,
    LOOK,
    ROOT,
    STRINGS,
    Affine,
    Shift,
    assert_helpful,
    assert_same,
    assert_same_state,
    contents,
    damages,
    either_stream,
    needs_jit,
    outcome,
    stream,
    write,
)
from numpy.testing import assert_array_equal

import hmoh
from hmoh import HMOH, NotFittedError
from kernels import RBF, Concat, UnitLength

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
SCALARS = {
    "n_bits": np.int64(8),
    "batch_size": np.int32(7),
    "n_classes": np.uint8(4),
    "random_state": np.int64(3),
    "learning_rate": np.float32(0.5),
    "ensemble": np.True_,
    "n_threads": np.int64(1),
    "warmup": np.uint16(3),
    "memory": np.int64(7),
}
# Parameters of a model; and `labels`, `classes`, whether `multi`, and what makes the `maps`.
PHASES = {
    "plain": {},
    "mid-batch": {"batch_size": 7},
    "growing": {"n_bits": 3, "labels": np.arange(12), "memory": 20},
    "known strings": {"labels": STRINGS, "classes": STRINGS, "batch_size": 7},
    "balanced": {"class_weight": "balanced", "labels": STRINGS},
    "multi aligned": {"multi": True, "n_bits": 6, "batch_size": 7, "codebook": "spread"},
    "shift": {"maps": Shift, "classes": [0, 1, 2, 3]},
    "rbf": {"maps": lambda: RBF(8, center=True), "labels": STRINGS, "batch_size": 3},
    "list": {"maps": lambda: [UnitLength(), Concat([None, RBF(8)])], "warmup": 15},
}


def phase(name):
    """Return a model, its stream X and y, the classes, and the function that makes its maps."""
    params = {"n_bits": 8, "random_state": 3} | PHASES[name]
    labels = params.pop("labels", np.arange(4))
    classes = params.pop("classes", None)
    maps = params.pop("maps", lambda: None)
    multi = params.pop("multi", False)
    X, y = either_stream(multi, n_labels=len(labels))
    return HMOH(feature_map=maps(), **params), X, y if multi else labels[y], classes, maps


# ---- learning continues (more in tests/test_model_machine.py) ------------------------


def test_a_loaded_model_has_the_same_parameters_and_can_start_again(tmp_path):
    X, y = stream()
    model = HMOH(9, RBF(8, 3.0, True), "ordered", True, 50, 2, 0.5, 7, None, 20, 1, 5).fit(X, y)
    model.save(str(tmp_path / "model"))
    assert os.listdir(tmp_path) == ["model"]  # a file keeps its name
    loaded = HMOH.load(tmp_path / "model", feature_map=RBF())
    assert repr(loaded) == repr(model)
    assert_same(model.fit(X, y), loaded.fit(X, y), X)
    model = HMOH(**SCALARS).fit(X, y)
    model.save(tmp_path / "scalars")
    loaded = HMOH.load(tmp_path / "scalars")
    assert loaded.get_params() == model.get_params()
    assert_same(model.partial_fit(X, y), loaded.partial_fit(X, y), X)


@pytest.mark.parametrize("multi", [False, True])
def test_targets_are_those_of_the_file_also_where_numpy_draws_others(multi, tmp_path, monkeypatch):
    X, y = either_stream(multi, n_labels=8)
    model = HMOH(6, random_state=0).partial_fit(X, y)
    model.save(tmp_path / "m.npz")
    default_rng = np.random.default_rng

    def another(seed=None):
        return default_rng(seed + 1 if isinstance(seed, int) else [99, *seed])

    with monkeypatch.context() as patch:
        patch.setattr(np.random, "default_rng", another)
        loaded = HMOH.load(tmp_path / "m.npz")
    assert_same(model, loaded, X)
    assert_same(model.partial_fit(X, y), loaded.partial_fit(X, y), X)
    if not multi:
        # New labels get targets that are not used yet.
        loaded.partial_fit(X[:24], np.arange(8, 32))
        assert len({target.tobytes() for target in loaded.targets_.values()}) == 32


# ---- damaged files -------------------------------------------------------------------


# Where these say "works", the array may have another form.
FREE = {"head", "X", "y", "model/labels", "model/counts"}
DAMAGED = [name for name in PHASES if name != "plain"]


@pytest.mark.filterwarnings("ignore:the mean makes up")
@pytest.mark.parametrize("n", [2, 33])
@pytest.mark.parametrize("name", DAMAGED)
def test_every_damaged_array_is_refused_or_leaves_a_model_that_works(
    name, n, tmp_path, monkeypatch
):
    monkeypatch.setattr(hmoh, "DRAWS", 5)  # each file that is loaded draws again
    model, X, y, classes, maps = phase(name)
    model.partial_fit(X[:n], y[:n], classes)
    arrays = contents(model)
    path = tmp_path / "bad.npz"
    for full_name, a in arrays.items():
        for what, b in damages(a):
            write(path, arrays | {full_name: b})
            found = outcome(path, model, X, y, maps)
            is_other = b is None or (b.dtype, b.shape) != (a.dtype, a.shape)
            is_infinite = b is not None and b.dtype.kind == "f" and not np.isfinite(b).all()
            is_fixed = full_name.startswith("model/") and full_name not in FREE
            if (is_fixed and is_other) or (is_infinite and not full_name.startswith("map")):
                assert found == "refused", (full_name, what)
    for extra in ("x", "model/x", "model/transform", "map9/x", "__class__"):
        write(path, arrays | {extra: np.arange(3)})
        assert outcome(path, model, X, y, maps) == "refused", extra


@pytest.mark.parametrize(
    "name, values",
    [
        ("n_bits", [0, -8, 7, 9, 1 << 60, "8", True, None, [8]]),
        ("batch_size", [0, 1.5]),
        ("memory", ["auto", "ever", 0]),
        ("codebook", ["plotkin", ["random"], None]),
        ("learning_rate", [float("nan"), "1", 0]),
        ("ensemble", [1, None]),
        ("n_threads", [-1, "2"]),
        ("warmup", [0, 2.5]),
        ("n_classes", [0, 1, 1 << 60]),
        ("random_state", [-1, {"a": 1}]),
        ("feature_maps", [None]),
        ("fuse", ["codes"]),
        ("n_features", [0, 40, 1 << 60, None, "5", 5.0]),
        ("n_seen", [-1, None, "5", 1.5, 1 << 70]),
        ("seed", [-1, None, 0.5]),
        ("form", [["U", 0], ["u", 4], ["i", 1], ["u", 1 << 60], "i0", 7]),
        ("classes", [{"a": 1}, [[0]], [0, 1, 2, 3.5, 4], "abcd", 7]),
        ("n_maps", [1, None]),
        ("names", ["abcde", ["a"], [1, 2, 3, 4, 5]]),
        ("params", [[], {}, None]),
    ],
)
def test_a_wrong_value_in_the_head_of_a_file_is_refused(name, values, tmp_path):
    model, X, y, _, maps = phase("plain")
    arrays = contents(model.fit(X, y))
    for value in values:
        head = json.loads(arrays["head"].item())
        if name in head:
            head[name] = value
        else:
            head["params"][name] = value
        write(tmp_path / "bad.npz", arrays | {"head": np.array(json.dumps(head))})
        assert outcome(tmp_path / "bad.npz", model, X, y, maps) == "refused", value


def test_a_file_of_another_version_or_class_is_refused_by_name(tmp_path):
    class Other(HMOH):
        pass

    model = HMOH(8).fit(*stream())
    arrays = contents(model)
    head = json.loads(arrays["head"].item()) | {"format": "hmoh model 3 HMOH"}
    write(tmp_path / "m.npz", arrays | {"head": np.array(json.dumps(head))})
    with pytest.raises(ValueError) as caught:
        HMOH.load(tmp_path / "m.npz")
    assert_helpful(caught.value, "hmoh model 3 HMOH", "hmoh model 7 HMOH")
    model.save(tmp_path / "m.npz")
    with pytest.raises(ValueError) as caught:
        Other.load(tmp_path / "m.npz")
    assert_helpful(caught.value, "hmoh model 7 HMOH", "hmoh model 7 Other")


def damaged_bytes(raw, rng):
    """Return the bytes with one place damaged."""
    at = int(rng.integers(len(raw)))
    length = int(rng.integers(1, 9))
    how = rng.integers(5)
    new = [b"", bytes(length), rng.bytes(length), rng.bytes(length), raw[at : at + 1]][how]
    if how == 4:  # a single bit
        new = bytes([raw[at] ^ 1 << int(rng.integers(8))])
        length = 1
    return raw[:at] if how == 0 and rng.random() < 0.3 else raw[:at] + new + raw[at + length :]


def damaged_array(arrays, rng):
    """Return the arrays, with a valid checksum, but some bytes of one of them damaged."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    a = arrays[name]
    raw = damaged_bytes(a.tobytes(), rng)[: a.nbytes].ljust(a.nbytes, b"\0") if a.nbytes else b""
    return arrays | {name: np.frombuffer(raw, a.dtype).reshape(a.shape)}


@pytest.mark.machine
def test_damaged_bytes_are_refused_or_leave_a_model_that_works(tmp_path):
    n = (80 if JIT_IS_OFF else 400) * LOOK
    rng = np.random.default_rng(n)
    counts = {"refused": 0, "works": 0}
    saved = []
    for name in DAMAGED:
        model, X, y, classes, maps = phase(name)
        model.partial_fit(X[:33], y[:33], classes).save(tmp_path / "good.npz")
        raw = (tmp_path / "good.npz").read_bytes()
        saved.append((raw, contents(model), (model, X, y, maps)))
    path = tmp_path / "bad.npz"
    for i in range(n):
        raw, arrays, rest = saved[i % len(saved)]
        if rng.random() < 0.5:
            path.write_bytes(damaged_bytes(raw, rng))
        else:
            write(path, damaged_array(arrays, rng))
        try:
            counts[outcome(path, *rest)] += 1
        except Exception as error:
            raise AssertionError(f"damage {i} of {n}") from error
    assert counts["refused"] > n / 2
    assert counts["works"] > 0


ARCHIVES = {
    "empty": lambda raw: b"",
    "text": lambda raw: b"n_bits: 8\n",
    "pickle": lambda raw: pickle.dumps({"a": 1}),
    "array": lambda raw: b"\x93NUMPY" + raw,
    "half": lambda raw: raw[: len(raw) // 2],
    "without its beginning": lambda raw: raw[1000:],
    "another shape": lambda raw: raw.replace(b"(8, 16)", b"(9**9)"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_foreign_or_broken_archive_is_a_value_error(name, tmp_path):
    model, X, y, _, maps = phase("plain")
    path = tmp_path / "bad.npz"
    model.fit(X, y).save(path)
    raw = path.read_bytes()
    path.write_bytes(ARCHIVES[name](raw))
    assert path.read_bytes() != raw
    assert outcome(path, model, X, y, maps) == "refused"


class Harm:
    """What a pickle of it runs when it is read."""

    def __reduce__(self):
        return os.mkdir, (Harm.path,)


@pytest.mark.parametrize("name", ["head", "model/W", "extra"])
def test_code_in_a_file_is_not_run(name, tmp_path):
    model, X, y, _, maps = phase("plain")
    Harm.path = str(tmp_path / "harm")
    write(tmp_path / "bad.npz", contents(model.fit(X, y)) | {name: np.array([Harm()], object)})
    assert outcome(tmp_path / "bad.npz", model, X, y, maps) == "refused"
    assert not os.path.exists(Harm.path)


def test_a_memory_error_while_a_file_is_read_is_a_value_error(tmp_path, monkeypatch):
    HMOH(8).fit(*stream()).save(tmp_path / "m.npz")

    def fail(*args, **kwargs):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(ValueError) as caught:
        HMOH.load(tmp_path / "m.npz")
    assert_helpful(caught.value, "MemoryError", "9 TiB")


def test_arrays_of_a_file_that_a_loop_could_not_use_are_refused(tmp_path):
    model, X, y, classes, maps = phase("known strings")
    arrays = contents(model.partial_fit(X[:2], y[:2], classes))
    labels = arrays["y"]
    raw = np.zeros((2, labels.itemsize // 4), np.uint32)
    raw[:, 0] = 1 << 30  # no character
    bad = {"y": [raw.view(labels.dtype)[:, 0]]}
    bad["model/steps"] = [np.array([steps]) for steps in (-1, -(2**63), 2**63 - 1)]
    bad["model/since"] = [np.full(8, step) for step in (-1, 1, 2**62)]
    bad["model/counts"] = [np.array([-1]), np.zeros(99, int)]
    bad["model/labels"] = [np.array('["ape", 1]')]
    for name, values in bad.items():
        for value in values:
            write(tmp_path / "bad.npz", arrays | {name: value})
            assert outcome(tmp_path / "bad.npz", model, X, y, maps) == "refused", name


def test_a_file_that_is_no_archive_is_closed(tmp_path):
    path = tmp_path / "bad.npz"
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.suppress(ValueError):
            HMOH.load(path)
        gc.collect()
    assert not caught


# ---- maps ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "saved_with, loaded_with",
    [
        (RBF(8), None),
        (RBF(8), RBF),
        (RBF(8), Affine()),
        (RBF(8), [UnitLength(), RBF(8)]),
        (RBF(8), UnitLength()),
        (None, RBF(8)),
        ([UnitLength(), RBF(8)], RBF(8)),
        ([UnitLength(), RBF(8)], [RBF(8), UnitLength()]),
    ],
    ids=str,
)
def test_maps_that_do_not_fit_the_file_are_an_error(saved_with, loaded_with, tmp_path):
    HMOH(8, saved_with, warmup=20).fit(*stream()).save(tmp_path / "m.npz")
    with pytest.raises(ValueError) as caught:
        HMOH.load(tmp_path / "m.npz", feature_map=loaded_with)
    assert_helpful(caught.value, str(tmp_path / "m.npz"), "feature_map")


def test_a_loaded_model_does_not_share_the_map_it_was_given(tmp_path):
    X, y = stream()
    HMOH(8, RBF(8)).fit(X, y).save(tmp_path / "m.npz")
    given = RBF()
    loaded = HMOH.load(tmp_path / "m.npz", feature_map=given)
    assert vars(given) == vars(RBF())
    codes = loaded.transform(X)
    given.set_params(n_anchors=8).fit(-X)
    assert_array_equal(loaded.transform(X), codes)


class Odd(Shift):
    """A map whose state no file can keep."""

    def get_state(self):
        return {"inner": None}


@pytest.mark.parametrize("part", [Affine(), Odd()], ids=["no state", "an object"])
@pytest.mark.parametrize("n", [5, 60])
def test_a_map_that_cannot_be_saved_is_an_error_and_writes_nothing(part, n, tmp_path):
    X, y = stream()
    model = HMOH(8, [UnitLength(), part], warmup=20).partial_fit(X[:n], y[:n])
    with pytest.raises((TypeError, ValueError)) as caught:
        model.save(tmp_path / "m.npz")
    assert_helpful(caught.value)
    assert os.listdir(tmp_path) == []


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        HMOH().save(tmp_path / "m.npz")
    X, y = stream()
    model = HMOH(8, random_state=0).fit(X, y)
    model._state.W[0, 0] = np.inf
    with pytest.raises(ValueError) as caught:
        model.save(tmp_path / "m.npz")
    assert_helpful(caught.value, "model/", "learn from")
    assert os.listdir(tmp_path) == []


# ---- writing -------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [(np, "savez"), (os, "replace")], ids=["write", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, MemoryError])
def test_a_failing_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, broken, error):
    path = tmp_path / "model.npz"
    X, y = stream()
    model = HMOH(8).fit(X, y)
    model.save(path)
    before = path.read_bytes()

    def fail(file, *args, **kwargs):
        raise error(28, "disk full")

    monkeypatch.setattr(*broken, fail)
    with pytest.raises(error) as caught:
        model.partial_fit(X, y).save(path)
    if error is OSError:
        assert_helpful(caught.value, str(path), "disk full", "space")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]


def test_a_missing_file_or_folder_is_named_not_the_temporary_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        HMOH(8).fit(*stream()).save(tmp_path / "none" / "model.npz")
    assert_helpful(caught.value, str(tmp_path / "none"), "model.npz")
    assert ".tmp" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        HMOH.load(tmp_path / "none.npz")


@needs_posix
def test_an_existing_file_keeps_its_mode_and_a_link_leads_to_the_file(tmp_path):
    model = HMOH(8, random_state=0).fit(*stream())
    path, link = tmp_path / "model.npz", tmp_path / "link.npz"
    path.write_bytes(b"")
    path.chmod(0o600)
    link.symlink_to("model.npz")
    model.save(os.fsencode(link))
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o600
    assert_same_state(model, HMOH.load(path))
    assert sorted(os.listdir(tmp_path)) == ["link.npz", "model.npz"]
    path.unlink()
    model.save(link)  # now it leads to a file that is not there yet
    assert link.is_symlink() and path.is_file()


@needs_posix
def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    fifo, folder, circle = (tmp_path / name for name in ("fifo", "folder", "circle"))
    os.mkfifo(fifo)
    folder.mkdir()
    circle.symlink_to("circle")
    for path in (fifo, folder, circle):
        with pytest.raises(OSError) as caught:
            HMOH(8).fit(*stream()).save(path)
        reason = "symbolic link" if path == circle else "regular file"
        assert_helpful(caught.value, str(path), reason)
    assert fifo.is_fifo() and folder.is_dir() and circle.is_symlink()
    assert len(os.listdir(tmp_path)) == 3


@needs_posix
def test_the_reason_why_a_file_cannot_be_written_is_not_hidden(tmp_path):
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(NotADirectoryError) as caught:
        HMOH(8).fit(*stream()).save(tmp_path / "file.txt" / "model.npz")
    assert_helpful(caught.value, "model.npz", "Not a directory")


def test_the_error_names_the_call_that_loads_a_file(tmp_path):
    maps = [UnitLength(), RBF(20)]
    HMOH(8, maps).fit(*stream()).save(tmp_path / "model.npz")
    with pytest.raises(ValueError) as caught:
        HMOH.load(tmp_path / "model.npz")
    call = re.search(r"HMOH\.load\(path, .*\)(?=\.)", str(caught.value))[0]
    assert repr(eval(call, globals() | {"path": tmp_path / "model.npz"}).feature_map) == repr(maps)


# A process that saves two models in turn is killed again and again.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from hmoh import HMOH
folder = Path(sys.argv[1])
path = folder / "model.npz"
X = np.random.default_rng(0).normal(size=(8, 400))
models = [HMOH(64, random_state=0).fit(X[:n], np.arange(n) % 4) for n in (4, 8)]
weights = {model.n_seen_: model.weights_ for model in models}
models[0].save(path)
rng = random.Random(0)
found = set()
cut = []
# On a busy machine, many kills may come before or after a save.
for i in range(500):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                model.save(path)
    time.sleep(rng.uniform(0.001, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    loaded = HMOH.load(path)
    assert np.array_equal(loaded.weights_, weights[loaded.n_seen_])
    found.add(loaded.n_seen_)
    cut += [file for file in folder.glob("*.tmp") if file not in cut]
    if i >= 25 and cut and len(found) == 2:
        break
assert [file.name for file in folder.glob("*.npz")] == ["model.npz"]
print(len(found), len(cut))
"""


@needs_jit
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_save_that_is_killed_leaves_the_old_or_the_new_model(tmp_path):
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Both models were found. Some kills came in the middle of a file.
    n_models, n_cut = map(int, done.stdout.split())
    assert n_models == 2 and n_cut > 0


@pytest.mark.parametrize("passed_on", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_model_that_has_seen_nothing_can_be_passed_on(passed_on):
    model = HMOH(12, feature_map=[UnitLength(), RBF(5)], random_state=3)
    other = passed_on(model)
    assert repr(other) == repr(model) and other.feature_map is not model.feature_map
    with pytest.raises(NotFittedError):
        other.transform(np.eye(3))
