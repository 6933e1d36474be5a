"""The protocol: kept records, curves, the int8 fault, the command that prints tables."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kernels import RBF, UnitLength
from metrics import HammingHistogram, hamming_histogram
from study import datasets, protocol, records

ROOT = Path(__file__).parents[1]
JOB = {"method": "LSH", "dataset": "mnist", "n_bits": 8, "seed": 0}


@pytest.fixture
def small(monkeypatch):
    """Put three small sets in the places of large ones; one has several labels per row.

    They are small enough to run with the JIT off.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=2600)
    centers = 3 * rng.normal(size=(8, 12))
    X = (centers[y] + rng.normal(size=(2600, 12))).astype(np.float32)
    one_hot = np.eye(8, dtype=np.uint8)
    several = one_hot[y] | one_hot[(y + 1) % 8]
    sets = {}
    for name, role, labels in [
        ("mnist", "mnist", y),
        ("udhr205", "places205", y),
        ("reuters10", "nuswide", several),
    ]:
        sets[name] = datasets.Dataset(
            name,
            X,
            labels,
            candidates=np.arange(2600),
            n_queries=40,
            stream_size=1200,
            role=role,
            stand_in_for=None if name == role else role,
            notes="made up",
        )
    monkeypatch.setattr(protocol, "_data", sets.__getitem__)
    monkeypatch.setattr(protocol, "_compile", lambda method: None)
    return sets


@pytest.fixture
def runs(tmp_path, monkeypatch, small):
    """Replace `run` by a function that only notes its calls, and return the list of them."""
    calls = []

    def note(**job):
        calls.append(job)
        return {"mAP": 0.5, **{name: job[name] for name in JOB}}

    monkeypatch.setattr(protocol, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(protocol, "run", note)
    return calls


# ---- one run -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnist", "udhr205", "reuters10"])
def test_a_record_holds_what_a_plain_evaluation_gives(small, name):
    record = protocol.run("HCOH", name, 16, seed=1)
    data = small[name]
    metric = protocol.headline(data.role)
    parts = datasets.split(data, 1)
    model = protocol.METHODS["HCOH"](data.role, 16, 1)
    model.fit(data.features[parts.stream], data.labels[parts.stream])
    h = hamming_histogram(
        model.transform(data.features[parts.queries]),
        model.transform(data.features[parts.database]),
        data.labels[parts.queries],
        data.labels[parts.database],
    )
    assert record["mAP"] == h.mean_average_precision()
    assert record["mAP@1000"] == h.mean_average_precision(1000, "retrieved")
    assert record["P@H2"] == h.precision_at_radius(2)
    assert record["P@K"] == h.precision_at_k(record["K"]).tolist()
    assert record["K"][-1] == 100
    assert (record["stand_in_for"] is None) == (name == "mnist")
    per_query = record["per_query"]
    for key in (metric, "P@H2"):
        np.testing.assert_allclose(np.mean(per_query[key]), record[key], atol=1e-6)
    assert min(per_query[metric]) >= 0
    # 16 bits do not saturate.
    assert record["mAP int8"] == pytest.approx(record[metric], abs=1e-12)
    assert 0 < record["AUC PR"] < 1
    assert json.loads(json.dumps(record)) == record


def test_curve_on_the_way_ends_where_a_whole_run_does(small):
    record = protocol.run("HCOH", "mnist", 16, 0, checkpoints=True)
    assert record["samples"] == [120 * i for i in range(1, 11)]
    assert len(record["stream"]) == 10
    # UnitLength collects 1,000 samples before HCOH can encode.
    assert record["stream"][:8] == [None] * 8
    assert record["stream"][-1] == record["mAP"]
    assert 0 < record["AUC mAP"] <= 1


def test_a_curve_may_stop_before_the_end_of_the_stream(small):
    job = ("HMOH", "reuters10", 16, 0)
    params = {"codebook": "spread"}
    listed = protocol.run(*job, checkpoints=[100, 600], params=params)
    plain = protocol.run(*job, params=params)
    # The stream has 1,200 samples.
    assert listed["samples"] == [100, 600]
    first, second = listed["stream"]
    assert first != second
    assert listed["mAP"] == plain["mAP"]


def test_parameters_queries_and_unseen_classes_reach_the_run(small):
    plain = protocol.run("HMOH", "reuters10", 16, 0)
    other = protocol.run("HMOH", "reuters10", 16, 0, params={"ensemble": False})
    assert plain["mAP"] != other["mAP"]
    assert protocol.run("LSH", "mnist", 8, 0, n_queries=80)["n_queries"] == 80
    unseen = protocol.run("LSH", "mnist", 8, 0, split="unseen")
    assert unseen["split"] == "unseen"
    assert unseen["n_queries"] == 10
    assert unseen["n_database"] < 800


def test_a_record_holds_parameters_as_values_and_not_as_texts(small):
    params = {
        "ensemble": False,
        "feature_map": RBF(n_anchors=20, divisor=np.float32(2)),
    }
    record = protocol.run("HMOH", "mnist", 16, 0, params=params, n_threads=2)
    rbf = {"name": "RBF", "n_anchors": 20, "divisor": 2.0, "center": False}
    assert record["params"] == {"ensemble": False, "feature_map": rbf}
    settings = record["settings"]
    assert settings["ensemble"] is False
    assert settings["feature_map"] == rbf
    assert settings["feature_map__n_anchors"] == 20
    assert settings["n_bits"] == 16
    assert settings["n_threads"] == 2
    assert json.loads(json.dumps(record)) == record


def test_threads_are_set_only_where_a_model_has_them(small):
    settings = protocol.run("LSH", "mnist", 8, 0, n_threads=2)["settings"]
    assert "n_threads" not in settings
    assert settings["feature_map"] == {"name": "UnitLength"}


def test_unknown_methods_splits_and_parameters_are_refused(small):
    with pytest.raises(ValueError, match=r"no method 'HMOOH'; pass one of LSH, OKH,"):
        protocol.run("HMOOH", "mnist", 8, 0)
    with pytest.raises(ValueError, match=r"split='seen' is unknown; pass .paper. or"):
        protocol.run("LSH", "mnist", 8, 0, split="seen")
    with pytest.raises(TypeError, match=r"is a Generator.*; pass a number, a text"):
        rng = np.random.default_rng(0)
        protocol.run("LSH", "mnist", 8, 0, params={"random_state": rng})


@pytest.mark.parametrize("n_bits", [8, 128, 129, 256, 512])
def test_int8_saturation_is_that_of_matlab(n_bits):
    rng = np.random.default_rng(n_bits)
    items = rng.integers(3, size=(4, n_bits + 1))
    relevant = rng.integers(items + 1)
    h = HammingHistogram(items, relevant)
    merged = protocol.int8_saturated(h)
    similarity = np.clip(n_bits - 2 * np.arange(n_bits + 1), -128, 127)
    # Every tie of the cast similarities is one distance, and the ranks are kept.
    for value in np.unique(similarity):
        at = np.flatnonzero(similarity == value)
        for given, found in [(h.items, merged.items), (h.relevant, merged.relevant)]:
            assert np.array_equal(found[:, at[0]], given[:, at].sum(axis=1))
            assert not found[:, at[1:]].any()
    changed = not np.array_equal(merged.items, h.items)
    assert changed == (n_bits > 128)


# ---- what a kept run depends on ------------------------------------------------------


MODULE = '''"""A module."""

LIMIT = 1


def double(x):
    """Return 2 x."""
    return 2 * x


class Counter:
    """A class."""

    step = 1
'''


@pytest.fixture
def tree(tmp_path):
    """Return a folder with the same modules as the project, each with a few lines of code."""
    for pattern in [*records.MODULES, "study/plots.py"]:
        for path in ROOT.glob(pattern):
            stub = tmp_path / path.relative_to(ROOT)
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.write_text(MODULE)
    return tmp_path


def modules_of(root):
    """Return the paths of all modules that runs depend on."""
    return [path for pattern in records.MODULES for path in root.glob(pattern)]


def test_files_that_runs_do_not_depend_on_leave_kept_runs_valid(tree):
    version = records.code_version(tree)
    (tree / "scratch.py").write_text("x = 1\n")
    (tree / "study/plots.py").write_text("x = 1\n")
    assert records.code_version(tree) == version


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 1\n", "# Why.\nLIMIT = 1  # and where\n"),
        ("A module.", "Another text.\n\nOf three lines."),
        ("Return 2 x.", "Return twice x."),
        ("A class.", "A kind of class."),
        ('    """Return 2 x."""\n', ""),
        ("return 2 * x", "\n    return (2  *  x)"),
    ],
)
def test_comments_docstrings_and_formatting_leave_kept_runs_valid(tree, old, new):
    version = records.code_version(tree)
    for path in modules_of(tree):
        changed = path.read_text().replace(old, new)
        assert changed != path.read_text()
        path.write_text(changed)
    assert records.code_version(tree) == version


@pytest.mark.parametrize(
    ("old", "new"),
    [("LIMIT = 1", "LIMIT = 2"), ("2 * x", "3 * x"), ("step = 1", "step = 1.0")],
)
def test_a_changed_constant_in_any_module_makes_kept_runs_invalid(tree, old, new):
    versions = {records.code_version(tree)}
    modules = modules_of(tree)
    for path in modules:
        path.write_text(MODULE.replace(old, new))
        versions.add(records.code_version(tree))
    assert len(modules) >= 15
    assert len(versions) == 1 + len(modules)


def test_a_missing_module_is_reported(tree):
    (tree / "kernels.py").unlink()
    with pytest.raises(FileNotFoundError, match=r"kernels.py is missing.*; restore it"):
        records.code_version(tree)


def imported_files(path):
    """Return the files of the project that a module imports at its top level."""
    names = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                package = ".".join(path.parent.relative_to(ROOT).parts)
                module = f"{package}.{module}".rstrip(".")
            names.append(module)
            names += [f"{module}.{alias.name}" for alias in node.names]
    files = set()
    for name in names:
        place = ROOT / name.replace(".", "/")
        files |= {place.with_suffix(".py"), place / "__init__.py"}
    return {file for file in files if file.exists()}


def test_all_modules_that_a_run_imports_are_listed():
    modules = set(modules_of(ROOT))
    # study/__init__.py has only a docstring.
    allowed = modules | {ROOT / "study/__init__.py"}
    for path in modules:
        assert imported_files(path) <= allowed, path
    assert {ROOT / "hmoh.py", ROOT / "kernels.py"} <= imported_files(
        ROOT / "baselines/__init__.py"
    )


class Projection:
    """A feature map with an array parameter."""

    def __init__(self, matrix):
        self.matrix = matrix

    def get_params(self, deep=True):
        return {"matrix": self.matrix}


def key_of(**params):
    return records.run_key(JOB | {"params": params}, "version")


def test_maps_that_differ_in_the_middle_of_a_large_array_have_different_keys():
    matrix = np.zeros((2000, 8))
    other = matrix.copy()
    other[1000, 4] = 1e-9
    # The repr of numpy shows neither.
    assert repr(matrix) == repr(other)
    keys = {key_of(feature_map=Projection(array)) for array in (matrix, other)}
    assert len(keys) == 2
    assert key_of(feature_map=Projection(matrix.copy())) in keys
    for changed in (matrix.astype(np.float32), matrix.reshape(8, 2000)):
        assert key_of(feature_map=Projection(changed)) not in keys


def test_values_are_told_apart_by_content():
    given = [None, True, 1, 1.0, "1", [1], [[1]], RBF(1), RBF(2), UnitLength(), "RBF"]
    assert len({key_of(x=value) for value in given}) == len(given)
    assert key_of(x=RBF(np.int64(3))) == key_of(x=RBF(3))
    assert key_of(x=(1, 2)) == key_of(x=[1, 2])
    assert key_of(x=1, y=2) == key_of(y=2, x=1)
    assert records.run_key(JOB, "other") != records.run_key(JOB, "version")


@pytest.mark.parametrize(
    "value",
    [object(), {1}, 1j, RBF, np.array([None]), np.longdouble(1), lambda x: x],
    ids=lambda value: type(value).__name__,
)
def test_values_without_comparable_content_are_refused(value):
    with pytest.raises(TypeError, match=r"cannot be compared; pass a number, a text,"):
        records.plain([value])


def test_a_file_is_written_completely_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "a.json"
    records.write_atomically(path, "old")

    def fail(*paths):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(KeyboardInterrupt):
            records.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["a.json"]
    records.write_atomically(path, "newer")
    assert path.read_text() == "newer"


# ---- many runs -----------------------------------------------------------------------


def test_a_finished_run_is_not_repeated(runs):
    assert protocol._kept_run(JOB) == protocol._kept_run(JOB)
    assert len(runs) == 1
    assert protocol._kept_run(JOB | {"label": "floor"})["label"] == "floor"
    assert len(runs) == 1


def test_a_record_is_not_taken_for_another(runs, monkeypatch):
    changes = [
        {},
        {"method": "HMOH"},
        {"n_bits": 16},
        {"seed": 1},
        {"split": "unseen"},
        {"checkpoints": [100, 200]},
        {"params": {"warmup": 1}},
        {"params": {"warmup": 2}},
    ]
    for change in changes:
        protocol._kept_run(JOB | change)
    monkeypatch.setattr(protocol, "_version", lambda: "the code has changed")
    protocol._kept_run(JOB)
    monkeypatch.setattr(protocol, "PROFILE", "other")
    protocol._kept_run(JOB)
    monkeypatch.setattr(datasets, "fingerprint", lambda name: "the data have changed")
    protocol._kept_run(JOB)
    assert len(runs) == len(changes) + 3


def test_a_run_that_fails_leaves_no_record(runs, monkeypatch):
    def fail(**job):
        raise KeyboardInterrupt

    monkeypatch.setattr(protocol, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        protocol._kept_run(JOB)
    assert not protocol.RECORDS.exists() or not os.listdir(protocol.RECORDS)


@pytest.fixture
def in_this_process(monkeypatch):
    """Let comparisons start no other processes, where `run` is not replaced."""
    run_all = partial(protocol.run_all, n_workers=1)
    monkeypatch.setattr(protocol, "run_all", run_all)


def test_a_comparison_runs_every_case_once(runs, in_this_process):
    found = protocol.compare(["LSH", "HMOH"], "mnist", [8, 16], [0, 1])
    assert len(found) == len(runs) == 8
    assert len({(r["method"], r["n_bits"], r["seed"]) for r in found}) == 8


def test_a_sweep_runs_the_variants_in_order(runs, in_this_process):
    variants = {"one": {"batch_size": 1}, "two": {"batch_size": 2}}
    swept = protocol.sweep(variants, "mnist", seeds=[1, 0])
    order = [(r["label"], r["seed"]) for r in swept]
    assert order == [("one", 1), ("one", 0), ("two", 1), ("two", 0)]
    assert [job["params"]["batch_size"] for job in runs] == [1, 1, 2, 2]
    assert {job["n_bits"] for job in runs} == {32}
    assert {job["method"] for job in runs} == {"HMOH"}


def test_a_sweep_goes_through_data_sets_lengths_variants_and_seeds(
    runs, in_this_process
):
    def variants(role):
        return {"plain": {}, role: {"warmup": 1}}

    names = ["udhr205", "mnist"]
    options = {"method": "LSH", "split": "unseen"}
    swept = protocol.sweep(variants, names, [16, 8], iter([0, 1]), **options)
    order = [(r["dataset"], r["n_bits"], r["label"], r["seed"]) for r in swept]
    expected = []
    for name, role in [("udhr205", "places205"), ("mnist", "mnist")]:
        for n_bits in (16, 8):
            for label in ("plain", role):
                expected += [(name, n_bits, label, 0), (name, n_bits, label, 1)]
    assert order == expected
    assert {(job["method"], job["split"]) for job in runs} == {("LSH", "unseen")}


# Run a comparison with its records in a folder, and print its table.
COMPARISON = """
from pathlib import Path
from study import protocol, tables
if __name__ == "__main__":
    protocol.RECORDS = Path({folder!r})
    jobs = []
    for method in ("LSH", "HCOH", "BSODH"):
        for n_bits in (16, 32):
            for seed in (0, 1):
                case = dict(dataset="reuters10", n_bits=n_bits, seed=seed)
                jobs.append(dict(method=method, **case))
    print(tables.table(protocol.run_all(jobs, n_workers=1), "mAP"))
"""


@pytest.mark.slow
def test_a_killed_comparison_goes_on_to_the_same_table(tmp_path):
    commands = {}
    for name in ("whole", "killed"):
        script = tmp_path / f"{name}.py"
        script.write_text(COMPARISON.format(folder=str(tmp_path / name)))
        commands[name] = [sys.executable, script]
    environment = os.environ | {"HMOH_PROFILE": "quick", "PYTHONPATH": str(ROOT)}
    options = {"cwd": ROOT, "env": environment, "text": True}
    complete = options | {"check": True, "capture_output": True}
    whole = subprocess.run(commands["whole"], **complete).stdout
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    victim = subprocess.Popen(commands["killed"], **silent, **options)
    folder = tmp_path / "killed"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(folder.glob("*.json"))) < 3:
        time.sleep(0.005)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    finished = {path: path.read_bytes() for path in folder.glob("*.json")}
    assert 3 <= len(finished) < 12
    assert all(json.loads(raw) for raw in finished.values())
    again = subprocess.run(commands["killed"], **complete).stdout
    assert again == whole
    assert all(path.read_bytes() == raw for path, raw in finished.items())


@pytest.mark.slow
def test_one_command_makes_the_tables():
    command = [sys.executable, "-m", "study.protocol", "mnist", "--bits", "8"]
    command += ["--methods", "LSH", "HMOH"]
    options = {"check": True, "capture_output": True, "text": True, "cwd": ROOT}
    printed = subprocess.run(command, **options).stdout
    found = {}
    for line in printed.splitlines():
        words = line.replace("¹", " ").replace("²", " ").split()
        # The table of mAP is the first.
        if words and words[0] in ("LSH", "HMOH"):
            found.setdefault(words[0], float(words[1]))
    assert 0.1 < found["LSH"] < 0.3
    assert 0.6 < found["HMOH"] < 0.8
    paper = json.loads((ROOT / "data" / "paper_results.json").read_text())["results"]
    expected = paper["mnist"]["HMOH"]["mAP"]["8"]
    assert f"({expected:.3f})".replace("0.", ".") in printed
