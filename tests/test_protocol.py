"""The protocol: runs, shared features, curves, kept records, comparisons, the command."""

import itertools
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

import baselines
from baselines import LSH, METHODS, PUBLISHED_FAULTS, Method
from hmoh import HMOH
from kernels import RBF, UnitLength
from metrics import HammingHistogram, hamming_histogram
from study import datasets, features, keep, profile, protocol, scores, select, tables, training
from study.measures import Missing, from_records

ROOT = Path(__file__).parents[1]
JOB = {"method": "LSH", "dataset": "mnist", "n_bits": 8, "seed": 0}


@pytest.fixture
def small(monkeypatch):
    """Put three small sets in the places of large ones; one has several labels per row."""
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=700)
    X = (3 * rng.normal(size=(8, 12))[y] + rng.normal(size=(700, 12))).astype(np.float32)
    one_hot = np.eye(8, dtype=np.uint8)
    several = one_hot[y] | one_hot[(y + 1) % 8]
    sizes = {"test_rows": np.arange(300, 700), "n_queries": 40, "stream_size": 300}
    sets = {}
    for name, role, labels in [
        ("mnist", "mnist", y),
        ("udhr205", "places205", y),
        ("reuters10", "nuswide", several),
    ]:
        benchmark = datasets.BENCHMARKS[role]
        sets[name] = datasets.Dataset(name, X, labels, benchmark=benchmark, **sizes)
    monkeypatch.setattr(training, "_loaded", sets.__getitem__)
    monkeypatch.setattr(training, "compile_method", lambda *method: None)
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


def kept_run(job):
    return protocol.run_all([job], n_workers=1)[0]


# ---- one run -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mnist", "udhr205", "reuters10"])
def test_a_record_holds_what_a_plain_evaluation_gives(small, name):
    record = training.run("HCOH", name, 16, seed=1, checkpoints=True)
    data = small[name]
    metric = record["metric"]
    h = plain_evaluation(METHODS["HCOH"](data.role, 16, 1), data, datasets.split(data, 1))
    assert record["mAP"] == h.mean_average_precision()
    assert record["mAP@1000"] == h.mean_average_precision(1000, "retrieved")
    assert record["P@H2"] == h.precision_at_radius(2)
    assert record["P@K"] == h.precision_at_k(record["K"]).tolist()
    assert record["K"][-1] == 100
    assert (record["stand_in_for"] is None) == (name == "mnist")
    for key in (metric, "P@H2"):
        np.testing.assert_allclose(np.mean(record["per_query"][key]), record[key], atol=1e-6)
    # 16 bits do not saturate.
    assert record["mAP int8"] == record[metric]
    assert 0 < record["AUC PR"] < 1
    # UnitLength waits for more samples than there are, and then takes what is there.
    assert record["samples"][-1] == 300 and set(record["stream"][:-1]) == {None}
    assert record["stream"][-1] == record[metric]
    assert json.loads(json.dumps(record)) == record


# What only a run with checkpoints has, and what no two runs have in common.
OF_CURVES = {"samples", "stream", "AUC mAP", "train_seconds"}


def assert_same_run(a, b):
    """Check that two records are equal, but for training times and curves."""
    a = {key: value for key, value in a.items() if key not in OF_CURVES}
    b = {key: value for key, value in b.items() if key not in OF_CURVES}
    assert a == b


# Parameters for a stream of 300 samples with 12 features.
SHORT = {
    "OKH": {"n_anchors": 20},
    "FROSH": {"sketch_size": 16, "block": 64},
    "SketchHash": {"sketch_size": 12},
    "MIHash": {"reservoir": 40},
    "BSODH": {"batch": 64},
}


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("name", ["mnist", "reuters10"])
@pytest.mark.parametrize("method", METHODS)
def test_a_run_with_checkpoints_learns_the_same(small, method, name, published):
    params = SHORT.get(method, {}) | {"warmup": 60}
    if method == "HadamardRidge" or (method, name) == ("HMOH", "mnist"):
        params["feature_map"] = RBF(20)
    options = {"params": params, "published": published}
    whole = training.run(method, name, 8, 3, **options)
    record = training.run(method, name, 8, 3, checkpoints=[59, 151, 300], **options)
    assert_same_run(record, whole)
    # On nuswide HMOH has no map, so it encodes after the first sample.
    assert (record["stream"][0] is None) == ((method, name) != ("HMOH", "reuters10"))
    assert record["stream"][-1] == whole["mAP"]


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_the_rest_of_a_batch_is_learned_as_by_fit(small, batch_size):
    params = {"batch_size": batch_size, "feature_map": None}
    whole = training.run("HMOH", "mnist", 8, 0, params=params)
    record = training.run("HMOH", "mnist", 8, 0, params=params, checkpoints=[50, 200])
    # Of 300 samples, 7 leave 6 over.
    assert_same_run(record, whole)
    assert (record["stream"][0] is None) == (batch_size == 100)
    # A mean height needs two points.
    assert ("AUC mAP" in record) == (batch_size != 100)


def test_a_point_of_a_curve_is_what_a_model_with_its_own_map_gives(small):
    options = {"params": {"warmup": 60}, "checkpoints": [90, 180]}
    record = training.run("HCOH", "mnist", 8, 0, **options)
    data = small["mnist"]
    parts = datasets.split(data, 0)
    classes = np.unique(data.labels[parts.stream])
    model = METHODS["HCOH"]("mnist", 8, 0).set_params(warmup=60)
    for stop, value in zip([90, 180], record["stream"], strict=True):
        rows = parts.stream[stop - 90 : stop]
        model.partial_fit(data.features[rows], data.labels[rows], classes=classes)
        assert value == evaluate(model, data, parts).mean_average_precision()


def evaluate(model, data, parts):
    """Return the histogram of a model that has its own feature map."""
    queries, database = parts.queries, parts.database
    codes = (model.transform(data.features[rows]) for rows in (queries, database))
    return hamming_histogram(*codes, data.labels[queries], data.labels[database], model.n_bits)


def plain_evaluation(model, data, parts):
    """Return the histogram of a model after the whole stream."""
    return evaluate(model.fit(data.features[parts.stream], data.labels[parts.stream]), data, parts)


def test_parameters_queries_and_unseen_classes_reach_the_run(small):
    plain = training.run("HMOH", "reuters10", 16, 0)
    other = training.run("HMOH", "reuters10", 16, 0, params={"ensemble": False})
    assert plain["mAP"] != other["mAP"]
    assert training.run("LSH", "mnist", 8, 0, n_queries=80)["n_queries"] == 80
    unseen = training.run("LSH", "mnist", 8, 0, split="unseen")
    # 2 of 8 classes are unseen, with 5 queries each.
    assert (unseen["split"], unseen["n_queries"]) == ("unseen", 10)
    assert unseen["n_database"] < 250


@pytest.mark.parametrize("method", METHODS)
def test_methods_run_as_published(small, method):
    params = SHORT.get(method, {}) | {"warmup": 60, "feature_map": UnitLength()}
    runs = [
        training.run(method, "mnist", 8, 0, params=params, published=published)
        for published in (False, True)
    ]
    assert [record["published"] for record in runs] == [False, True]
    assert [record["label"] for record in runs] == [method, f"{method}, as published"]
    # HMOH's targets, or the steps of the others, differ only where a fault is known.
    differs = runs[0]["per_query"] != runs[1]["per_query"]
    assert differs == (method in PUBLISHED_FAULTS)


def test_a_record_holds_parameters_as_values_and_not_as_texts(small):
    params = {"ensemble": False, "feature_map": RBF(n_anchors=20, divisor=np.float32(2))}
    record = training.run("HMOH", "mnist", 16, 0, params=params, n_threads=2)
    rbf = {"name": "RBF", "n_anchors": 20, "divisor": 2.0, "center": False}
    rbf |= {"anchors": "first", "random_state": None}
    assert record["params"] == {"ensemble": False, "feature_map": rbf}
    expected = {"ensemble": False, "feature_map": rbf, "feature_map__n_anchors": 20}
    expected |= {"n_bits": 16, "n_threads": 2}
    assert expected.items() <= record["settings"].items()
    assert json.loads(json.dumps(record)) == record


def test_unknown_methods_splits_and_parameters_are_refused(small):
    with pytest.raises(ValueError, match=r"no method 'HMOOH'; pass one of LSH, OKH,"):
        training.run("HMOOH", "mnist", 8, 0)
    with pytest.raises(ValueError, match=r"split='seen' is unknown; pass one of .paper"):
        training.run("LSH", "mnist", 8, 0, split="seen")
    with pytest.raises(TypeError, match=r"is a Generator.*; pass a number, a text"):
        rng = np.random.default_rng(0)
        training.run("LSH", "mnist", 8, 0, params={"random_state": rng})


@pytest.mark.parametrize("n_bits", [8, 128, 129, 256, 512])
def test_int8_saturation_is_that_of_matlab(n_bits):
    rng = np.random.default_rng(n_bits)
    items = rng.integers(3, size=(4, n_bits + 1))
    relevant = rng.integers(items + 1)
    h = HammingHistogram(items, relevant)
    merged = scores.int8_saturated(h)
    similarity = np.clip(n_bits - 2 * np.arange(n_bits + 1), -128, 127)
    # Every tie of the cast similarities is one distance, and the ranks are kept.
    for value in np.unique(similarity):
        at = np.flatnonzero(similarity == value)
        for given, found in [(h.items, merged.items), (h.relevant, merged.relevant)]:
            assert np.array_equal(found[:, at[0]], given[:, at].sum(axis=1))
            assert not found[:, at[1:]].any()
    changed = not np.array_equal(merged.items, h.items)
    assert changed == (n_bits > 128)


# ---- a labelled database -------------------------------------------------------------


def codes_by_labels(model, data, rows):
    """Return codes of the database by its labels, item by item, and how many have none."""
    keys = [str(data.labels[row]) for row in range(len(data.labels))]
    streamed = {}
    for row in rows.stream:
        streamed.setdefault(keys[row], []).append(row)
    codes, n_without = [], 0
    for row in rows.database:
        same = streamed.get(keys[row])
        if same is None:
            n_without += 1
            codes.append(model.transform(data.features[[row]])[0])
        elif hasattr(model, "targets_"):
            y = data.labels[row]
            targets = model.label_set_targets_ if y.ndim else model.targets_
            target = targets[tuple(np.flatnonzero(y)) if y.ndim else y.item()]
            codes.append(np.packbits(target > 0, bitorder="little"))
        else:
            found = Counter(map(bytes, model.transform(data.features[same])))
            best = min(code for code in found if found[code] == max(found.values()))
            codes.append(np.frombuffer(best, np.uint8))
    return np.stack(codes), n_without


@pytest.mark.parametrize("name", ["mnist", "reuters10"])
@pytest.mark.parametrize("method", ["HMOH", "HadamardRidge", "BSODH"])
def test_an_item_of_a_labelled_database_has_the_code_of_its_labels(small, method, name):
    noise = np.random.default_rng(1).normal(size=small[name].features.shape)
    data = replace(small[name], features=small[name].features + 4 * noise)
    if data.multi_label:
        data.labels[::40] = np.eye(8, dtype=np.uint8)[np.arange(18) % 8]  # rare sets
    params = SHORT.get(method, {}) | {"feature_map": None}
    record = training.run(method, data, 16, 0, params=params, database="labelled")
    rows = datasets.split(data, 0)
    model = METHODS[method](data.role, 16, 0).set_params(**params)
    model.fit(data.features[rows.stream], data.labels[rows.stream])
    codes, n_without = codes_by_labels(model, data, rows)
    queries = model.transform(data.features[rows.queries])
    y = data.labels[rows.queries], data.labels[rows.database]
    h = hamming_histogram(queries, codes, *y, 16)
    assert record["mAP"] == h.mean_average_precision()
    assert (record["database"], record["n_without_code"]) == ("labelled", n_without)
    assert (n_without > 0) == data.multi_label
    plain = training.run(method, data, 16, 0, params=params)
    assert plain["mAP"] < record["mAP"] and "database" not in plain


def test_items_whose_labels_were_never_streamed_are_encoded_by_the_functions(small):
    options = {"split": "unseen", "params": {"feature_map": None}}
    records = [
        training.run("HMOH", "mnist", 16, 0, database=database, **options)
        for database in training.DATABASES
    ]
    assert records[1]["n_without_code"] == records[1]["n_database"]
    assert records[0]["per_query"] == records[1]["per_query"]


class _Coded(LSH):
    """A method that says which codes its labels have, but not for label 0."""

    @property
    def label_codes_(self):
        return {y: 2 * np.unpackbits(np.uint8([y])) - 1.0 for y in range(1, 8)}


def test_a_method_may_say_which_codes_its_labels_have(small):
    model = _Coded(8, random_state=0)
    parts = features.prepare(model, small["mnist"], "paper", 0)
    training.fit(model, parts)
    codes, has_code = training.code_by_labels(model, parts)
    y = parts.database.y
    np.testing.assert_array_equal(has_code, y != 0)
    # Bit k of a code is bit k of its byte; `unpackbits` begins with the highest.
    reversed_bits = [int(f"{label:08b}"[::-1], 2) for label in y[has_code]]
    assert codes[has_code, 0].tolist() == reversed_bits
    own = model.transform(parts.database.X)
    np.testing.assert_array_equal(codes[~has_code], own[~has_code])


def test_a_labelled_database_is_never_taken_for_a_learned_one(runs):
    both = [kept_run(JOB | {"database": name}) for name in training.DATABASES]
    kept_run(JOB)
    assert [call.get("database") for call in runs] == [None, "labelled"]
    both[1]["database"] = "labelled"  # as `run` notes it, which is replaced here
    by_database = select.samples(both, "mAP", "database")
    assert by_database == {"learned": {0: 0.5}, "labelled": {0: 0.5}}
    for compared in (lambda: select.samples(both, "mAP"), lambda: tables.table(both, "mAP")):
        with pytest.raises(ValueError, match="labelled database, others have not; pass one kind"):
            compared()
    facts = {"dataset": "mnist", "role": "mnist", "metric": "mAP", "stand_in_for": None}
    assert select.paper_value(JOB | facts | {"method": "HMOH"}, "mAP")
    assert select.paper_value(both[1] | facts | {"method": "HMOH", "label": "HMOH"}, "mAP") is None
    assert "labelled database" in str(tables.table([both[1] | facts], "mAP"))


def test_unknown_databases_and_curves_of_labelled_ones_are_refused(small):
    with pytest.raises(ValueError, match=r"database='codes' is unknown; pass .learned. or"):
        training.run("LSH", "mnist", 8, 0, database="codes")
    with pytest.raises(ValueError, match=r"checkpoints=True are for learned databases only; leave"):
        training.run("LSH", "mnist", 8, 0, database="labelled", checkpoints=True)


# ---- shared features -----------------------------------------------------------------


@pytest.mark.parametrize("split", ["paper", "unseen", "test"])
@pytest.mark.parametrize("method", METHODS)
def test_models_learn_from_shared_features_what_they_would_from_their_own(small, method, split):
    params = SHORT.get(method, {}) | {"feature_map": UnitLength(), "warmup": 60}
    data = small["mnist"]
    own = METHODS[method]("mnist", 8, 1).set_params(**params)
    parts = features.prepare(own, data, split, 1)
    assert parts.mapped and isinstance(own.feature_map, UnitLength)
    model = METHODS[method]("mnist", 8, 1).set_params(**params | {"feature_map": None})
    training.fit(model, parts)
    rows = features.SPLITS[split](data, 1)
    expected = plain_evaluation(own, data, rows)
    mapped = own.feature_map_.transform(data.features[rows.stream])
    np.testing.assert_allclose(parts.stream.X, mapped, atol=1e-6)
    # Sums over a row may be rounded by its place in memory, which these methods amplify.
    if method not in ("MIHash", "OKH", "AdaptHash"):
        found = training.evaluate(model, parts, 1)
        np.testing.assert_array_equal(found.items, expected.items)
        np.testing.assert_array_equal(found.relevant, expected.relevant)


class Counted(UnitLength):
    """A map that counts how often it is fitted, and keeps the rows."""

    fitted = ()

    def fit(self, X, y=None):
        Counted.fitted = (*Counted.fitted, X)
        return super().fit(X)


class Other(Counted):
    """A map of another class, with the same name and parameters in a record."""


Other.__name__ = "Counted"


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(Counted, "fitted", ())
    features._mapped_parts.cache_clear()


def run_with(feature_map, seed=0, n_bits=8, method="LSH", name="mnist", **options):
    params = {"feature_map": feature_map, "warmup": 60} | options.pop("params", {})
    return training.run(method, name, n_bits, seed, params=params, **options)


def test_a_map_is_fitted_once_for_many_runs(small, counted):
    for n_bits, method in itertools.product([8, 16], ["LSH", "HMOH", "OSH"]):
        record = run_with(Counted(), n_bits=n_bits, method=method, checkpoints=[100, 200])
        assert record["settings"]["feature_map"]["name"] == "Counted"
    (X,) = Counted.fitted
    data = small["mnist"]
    first = datasets.split(data, 0).stream[:60]
    np.testing.assert_array_equal(X, data.features[first])


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"split": "unseen"},
        {"split": "test"},
        {"n_queries": 80},
        {"name": "udhr205"},
        {"params": {"warmup": 61}},
        {"feature_map": [Counted(), RBF(20)]},
        {"feature_map": Other()},
    ],
    ids=str,
)
def test_runs_that_differ_in_the_features_share_none(small, counted, change):
    run_with(Counted())
    changed = run_with(**{"feature_map": Counted()} | change)
    assert len(Counted.fitted) == 2
    features._mapped_parts.cache_clear()
    assert_same_run(run_with(**{"feature_map": Counted()} | change), changed)


def test_maps_may_be_nested_and_lists(small):
    data = small["mnist"]
    rows = datasets.split(data, 0)
    for params in [
        {"feature_map__n_anchors": 20, "feature_map__divisor": 2.0},
        {"feature_map": [UnitLength(), RBF(20)]},
        {"feature_map": RBF(20), "feature_map__divisor": 3.0},
    ]:
        record = training.run("HMOH", "mnist", 32, 0, params=params)
        model = METHODS["HMOH"]("mnist", 32, 0).set_params(**params)
        expected = plain_evaluation(model, data, rows).mean_average_precision()
        assert record["mAP"] == pytest.approx(expected, abs=1e-3)
        settings = keep.plain_values(model.set_params(n_threads=1).get_params())
        assert record["settings"] == settings


def test_training_time_holds_the_time_of_mapping(small, monkeypatch):
    clock = [0]

    class Slow(UnitLength):
        def transform(self, X):
            clock[0] += 10
            return super().transform(X)

    def fit(model, X, y):
        clock[0] += 1
        return own_fit(model, X, y)

    own_fit = HMOH.fit
    monkeypatch.setattr(HMOH, "fit", fit)
    ticking = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr(features, "time", ticking)
    monkeypatch.setattr(training, "time", ticking)
    # The stream is two blocks; the rest of the database and the queries do not count.
    monkeypatch.setattr(features, "BLOCK_ROWS", 200)
    slow = Slow()
    seconds = [run_with(slow, method="HMOH")["train_seconds"] for _ in range(2)]
    # Once the rows of the warm-up, twice a block of the stream, once fitting the model.
    assert seconds == [31, 31]


# ---- what a kept run depends on ------------------------------------------------------


MODULE = '''"""A module."""

LIMIT = 1


def double(x):
    """Return 2 x."""
    return 2 * x


class Counter:
    """A class."""

    step = 1


@derived("half")
def _half(record):
    return record["mAP"] / 2
'''
IMPORTS = {
    "start.py": "import core\nfrom study import one\nfrom folder.method import Method\n",
    "study/one.py": "from study.two import two\n",
    "folder/method.py": "from .base import Base\n",
}
IMPORTED = [*IMPORTS, "core.py", "study/two.py", "folder/base.py"]


@pytest.fixture
def tree(tmp_path):
    """Return a folder of modules with a few lines of code; some import others."""
    for name in [*IMPORTED, "other.py", "folder/other.py"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MODULE + IMPORTS.get(name, ""))
    return tmp_path


def test_a_damaged_record_is_named(runs, tmp_path):
    kept_run(JOB)
    (path,) = (tmp_path / "records").iterdir()
    path.write_text(path.read_text()[:-5])
    with pytest.raises(ValueError, match="is damaged") as caught:
        kept_run(JOB)
    assert str(path) in str(caught.value) and "delete it" in str(caught.value)
    path.unlink()
    assert kept_run(JOB)["mAP"] == 0.5
    assert len(runs) == 2


def test_comments_docstrings_derived_metrics_and_other_files_leave_kept_runs_valid(tree):
    version = keep.code_version(tree, "start.py")
    for name in ("scratch.py", "other.py", "folder/other.py"):
        (tree / name).write_text("x = 1\n")
    other = MODULE.replace("LIMIT = 1\n", "# Why.\nLIMIT = 1  # and where\n")
    other = other.replace("A module.", "Another text.\n\nOf three lines.")
    other = other.replace('    """Return 2 x."""\n', "").replace("A class.", "A kind of class.")
    other = other.replace("return 2 * x", "\n    return (2  *  x)").replace("/ 2", "/ 3")
    other += '\n\n@derived("new", lower_is_better=True)\ndef _new(record):\n    return 1\n'
    for name in IMPORTED:
        (tree / name).write_text(other + IMPORTS.get(name, ""))
    assert keep.code_version(tree, "start.py") == version


def test_a_changed_constant_in_any_module_or_library_makes_kept_runs_invalid(tree, monkeypatch):
    versions = {keep.code_version(tree, "start.py")}
    changes = [("LIMIT = 1", "LIMIT = 2"), ("2 * x", "3 * x"), ("step = 1", "step = 1.0")]
    for name in IMPORTED:
        for old, new in changes:
            (tree / name).write_text(MODULE.replace(old, new) + IMPORTS.get(name, ""))
            versions.add(keep.code_version(tree, "start.py"))
    assert len(versions) == 1 + 3 * len(IMPORTED)
    for library in ("numpy", "numba", "scikit-learn"):
        installed = keep.importlib.metadata.version
        changed = lambda name, new=library, old=installed: f"{old(name)}{name == new}"  # noqa: E731
        monkeypatch.setattr(keep.importlib.metadata, "version", changed)
        versions.add(keep.code_version(tree, "start.py"))
    assert len(versions) == 4 + 3 * len(IMPORTED)


def test_all_modules_that_a_run_imports_count_and_no_other_method():
    script = "import sys, study.training\n"
    script += "print(*(getattr(m, '__file__', None) for m in [*sys.modules.values()]), sep='\\n')"
    options = {"cwd": ROOT, "check": True, "capture_output": True, "text": True}
    printed = subprocess.run([sys.executable, "-c", script], **options).stdout
    files = {Path(line) for line in printed.splitlines()}
    used = {file for file in files if file.parent in (ROOT, ROOT / "study")}
    found = keep.code_files(ROOT, "study/training.py")
    others = {ROOT / name for name in ("study/__init__.py", "study/profile.py", "ridge.py")}
    assert used == {*found, *others}
    method = {*keep.code_files(ROOT, "study/training.py", "baselines/osh.py")} - {*found}
    assert method == {ROOT / "baselines/osh.py", ROOT / "baselines/linear.py"}


def test_a_new_method_or_colour_makes_no_run_invalid_and_new_settings_those_of_the_method(
    runs, monkeypatch
):
    others = [JOB, JOB | {"method": "HMOH"}]
    for job in others:
        kept_run(job)
    table = dict(METHODS) | {"new": replace(METHODS["LSH"], name="new")}
    table["LSH"] = replace(METHODS["LSH"], style={"color": "red"})
    monkeypatch.setattr(baselines, "METHODS", table)
    for job in others:
        kept_run(job)
    assert len(runs) == 2
    table["LSH"] = replace(METHODS["LSH"], settings={"warmup": 7})
    for job in others:
        kept_run(job)
    assert [job["method"] for job in runs] == ["LSH", "HMOH", "LSH"]


def key_of(**params):
    return keep.run_key(JOB | {"params": params}, "version")


def test_parameters_are_told_apart_by_content():
    given = [None, True, 1, 1.0, "1", [1], [[1]], RBF(1), RBF(2), UnitLength(), "RBF"]
    matrix = np.zeros((2000, 8))
    given += [matrix, matrix.astype(np.float32), matrix.reshape(8, 2000), matrix.copy()]
    given[-1][1000, 4] = 1e-9  # the repr of numpy does not show it
    assert len({key_of(x=value) for value in given}) == len(given)
    assert key_of(x=matrix.copy()) == key_of(x=matrix)
    assert key_of(x=RBF(np.int64(3))) == key_of(x=RBF(3))
    assert key_of(x=(1, 2)) == key_of(x=[1, 2])
    assert key_of(x=1, y=2) == key_of(y=2, x=1)
    assert keep.run_key(JOB, "other") != keep.run_key(JOB, "version")


@pytest.mark.parametrize(
    "value",
    [object(), {1}, 1j, RBF, np.array([None]), np.longdouble(1), lambda x: x],
    ids=lambda value: type(value).__name__,
)
def test_values_without_comparable_content_are_refused(value):
    with pytest.raises(TypeError, match=r"cannot be compared; pass a number, a text,"):
        keep.plain([value])


# ---- many runs -----------------------------------------------------------------------


def test_a_finished_run_is_not_repeated(runs):
    assert kept_run(JOB) == kept_run(JOB)
    assert len(runs) == 1
    assert kept_run(JOB | {"label": "floor"})["label"] == "floor"
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
        {"method": "HMOH", "published": True},
        {"method": "HMOH", "published": True, "n_bits": 16},
    ]
    for change in changes:
        kept_run(JOB | change)
    monkeypatch.setattr(protocol, "_version", lambda *files: "the code has changed")
    kept_run(JOB)
    monkeypatch.setattr(profile, "PROFILE", "other")
    kept_run(JOB)
    monkeypatch.setattr(datasets, "fingerprint", lambda name: "the data have changed")
    kept_run(JOB)
    assert len(runs) == len(changes) + 3


def test_a_method_without_a_fault_is_run_once_for_both_forms(runs):
    forms = [kept_run(JOB | {"published": value}) for value in (False, True)]
    assert len(runs) == 1
    assert [form["published"] for form in forms] == [False, True]
    assert [form["label"] for form in forms] == ["LSH", "LSH, as published"]
    job = JOB | {"method": "OSH"}
    for value in (False, True, True):
        kept_run(job | {"published": value})
    kept_run(job)
    assert [call.get("published", False) for call in runs[1:]] == [False, True]


@pytest.fixture
def in_this_process(monkeypatch):
    """Let comparisons start no other processes, where `run` is not replaced."""
    run_all = partial(protocol.run_all, n_workers=1)
    monkeypatch.setattr(protocol, "run_all", run_all)


def test_a_comparison_runs_every_case_once(runs, in_this_process):
    found = protocol.compare(["LSH", "HMOH"], "mnist", [8, 16], [0, 1])
    cases = [(r["n_bits"], r["method"], r["seed"]) for r in found]
    assert cases == list(itertools.product([8, 16], ["LSH", "HMOH"], [0, 1]))
    assert len(runs) == 8


def test_only_stand_ins_have_fewer_seeds_and_curves(runs, in_this_process):
    seeds = range(10)
    for dataset, expected in [("mnist", (10, 10, 10)), ("udhr205", (6, 3, 3))]:
        runs.clear()
        protocol.compare(["OSH", "MIHash"], dataset, [8], iter(seeds), checkpoints=True)
        osh = [job for job in runs if job["method"] == "OSH"]
        mihash = [job for job in runs if job["method"] == "MIHash"]
        n_curves = sum("checkpoints" in job for job in osh)
        assert (len(osh), len(mihash), n_curves) == expected
    runs.clear()
    protocol.sweep({"a": {}, "b": {"warmup": 9}}, ["mnist", "udhr205"], 8, iter(seeds))
    assert len(runs) == 2 * (10 + 6)


def test_a_sweep_goes_through_data_sets_lengths_variants_and_seeds(runs, in_this_process):
    def variants(role):
        return {"plain": {}, role: {"warmup": 1}}

    options = {"method": "LSH", "split": "unseen"}
    swept = protocol.sweep(variants, ["udhr205", "mnist"], [16, 8], iter([0, 1]), **options)
    order = [(r["dataset"], r["n_bits"], r["label"], r["seed"]) for r in swept]
    expected = []
    for name, role in [("udhr205", "places205"), ("mnist", "mnist")]:
        expected += itertools.product([name], [16, 8], ["plain", role], [0, 1])
    assert order == expected
    assert {(job["method"], job["split"]) for job in runs} == {("LSH", "unseen")}


# ---- data of one's own ---------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.mark.parametrize("n_queries", [None, 1000])
def test_own_data_stand_under_their_own_name_beside_nothing_of_the_paper(
    digits, n_queries, tmp_path, monkeypatch
):
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    data = datasets.Dataset("digits", *digits, n_queries=n_queries)
    records = protocol.run_all(
        [{"method": m, "dataset": data, "n_bits": 32, "seed": s} for m in PAIR for s in (0, 1)], 1
    )
    assert {r["n_queries"] for r in records} == {n_queries or 170}
    assert {(r["dataset"], r["role"], r["stand_in_for"]) for r in records} == {
        ("digits", None, None)
    }
    shown = str(tables.table(records, "mAP")) + str(tables.table(records, "headline"))
    assert "on digits" in shown and "(" not in shown and "STAND-IN" not in shown
    for metric in ("mAP", "P@H2", "train_seconds"):
        assert all(select.paper_value(record, metric) is None for record in records)
    better = select.differences(records, "headline", *({"method": m} for m in PAIR))
    assert (better > 0.2).all()
    with pytest.raises(Missing, match="no records of mnist"):
        from_records({"role": "mnist", "measure": {"is": "value"}}, records)


PAIR = ("HMOH", "LSH")


def test_own_data_are_run_in_other_processes_and_known_by_their_content(
    digits, tmp_path, monkeypatch
):
    monkeypatch.setattr(protocol, "BUILD", tmp_path)
    monkeypatch.setattr(protocol, "RECORDS", tmp_path / "records")
    X, y = (array[:400] for array in digits)
    data = datasets.Dataset("a/b", X, y.astype(str))
    jobs = [{"method": m, "dataset": data, "n_bits": 16, "seed": 0} for m in ("HCOH", "LSH")]
    pooled = protocol.run_all(jobs, n_workers=2)
    # The arrays for the processes are gone, the records are there.
    assert [path.name for path in tmp_path.iterdir()] == ["records"]
    kept = sorted(path.name for path in (tmp_path / "records").iterdir())
    assert len(kept) == 2 and kept[0].startswith("HCOH-a_b-16-0-")
    for job, record in zip(jobs, pooled, strict=True):
        assert_same_run(record, training.run(**job))
    changed = datasets.Dataset("a/b", np.where(X == 16, 15, X), y.astype(str))
    protocol.run_all([jobs[0] | {"dataset": changed}], 1)
    assert len(list((tmp_path / "records").iterdir())) == 3


def test_unknown_names_are_refused_before_anything_runs(runs):
    for case, message in [
        ((["LSH", "HMOOH"], "mnist"), "no method 'HMOOH'; pass one of LSH, .* or add it to"),
        ((["LSH"], np.eye(3)), "the data set is a ndarray; pass a name, or datasets.Dataset"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            protocol.compare(*case, [8], [0])
    assert runs == []


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
    assert f"({expected:.3f})" in printed


class _Own(LSH):
    """A method that no module of the project defines."""


class _Changed(LSH):
    """The same method after an edit."""

    _least_warmup = 2


def test_the_code_of_a_method_that_a_script_defines_is_part_of_the_key(monkeypatch):
    def place(method):
        entry = Method("Own", method, "later", {}, "no program")
        monkeypatch.setitem(METHODS, "Own", entry)
        return protocol._place(JOB | {"method": "Own"}, "data")[1]

    assert place(_Own) == place(_Own) != place(_Changed)
    names = {"LSH": LSH, "__name__": "__main__"}
    exec("class Typed(LSH):\n    pass", names)
    # Its source cannot be read, so it may be another one each time.
    assert place(names["Typed"]) != place(names["Typed"])


def test_a_method_that_a_script_defines_runs_in_its_process(monkeypatch, tmp_path):
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    monkeypatch.setitem(METHODS, "Own", Method("Own", _Own, "later", {}, "no program"))
    rng = np.random.default_rng(0)
    data = datasets.Dataset("own", rng.normal(size=(300, 8)), rng.integers(3, size=300))
    jobs = [{"method": "Own", "dataset": data, "n_bits": 8, "seed": seed} for seed in (0, 1)]
    assert [run["method"] for run in protocol.run_all(jobs, n_workers=2)] == ["Own", "Own"]
