"""Both protocols from one training, the class number as a code, and late classes."""

import after
import numpy as np
import pytest

from study import datasets, protocol, training
from study.select import values


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Put small sets in the places of two large ones, and keep runs in a folder of the test."""
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=900)
    X = (2 * rng.normal(size=(6, 12))[y] + 2 * rng.normal(size=(900, 12))).astype(np.float32)
    several = np.eye(6, dtype=np.uint8)[y] | np.eye(6, dtype=np.uint8)[(y + 1) % 6]
    sets = {}
    for name, role, labels in [("mnist", "mnist", y), ("reuters10", "nuswide", several)]:
        benchmark = datasets.BENCHMARKS[role]
        sizes = {"n_queries": 60, "stream_size": 400}
        sets[name] = datasets.Dataset(name, X, labels, benchmark=benchmark, **sizes)
    monkeypatch.setattr(training, "_loaded", sets.__getitem__)
    monkeypatch.setattr(training, "compile_method", lambda *method: None)
    monkeypatch.setattr(after, "compile_method", lambda *method: None)
    monkeypatch.setattr(protocol, "RECORDS", tmp_path)
    monkeypatch.setattr(after, "by_profile", lambda paper, quick: quick)
    return sets


UNIT = {"feature_map": after.FEATURES["unit rows"]}


@pytest.mark.parametrize("name", ["mnist", "reuters10"])
@pytest.mark.parametrize("method", ["HMOH", "LEMON", "HadamardRidge"])
def test_both_protocols_are_those_of_two_runs(small, method, name):
    found = after.compare([method], [name], [16], [0], ["unit rows"])
    for database in training.DATABASES:
        expected = training.run(method, name, 16, 0, params=UNIT, database=database)["mAP"]
        case = {"label": method, "database": database}
        assert values(found, "mAP", **case) == pytest.approx([expected], abs=1e-12)


def test_a_published_method_says_so_and_a_kept_run_is_not_repeated(small, monkeypatch):
    first = after.compare(["BSODH"], ["mnist"], [8], [0, 1], ["unit rows"])
    assert {record["label"] for record in first} == {"BSODH, as published"}
    monkeypatch.setitem(after.DOERS, "run", None)
    assert after.compare(["BSODH"], ["mnist"], [8], [0, 1], ["unit rows"]) == first
    with pytest.raises(TypeError):
        after.compare(["BSODH"], ["mnist"], [8], [0], ["unit rows"], params={"batch": 50})


def test_the_class_number_measures_how_often_a_class_is_right(small):
    found = after.compare(["HadamardRidge"], ["mnist"], [16], [0], ["unit rows"])
    (labelled,) = values(found, "mAP", label=after.CLASS_NUMBER, database="labelled")
    rows = datasets.split(small["mnist"], 0)
    model = training.new_model("HadamardRidge", "mnist", 16, 0, UNIT)
    X, y = small["mnist"].features, small["mnist"].labels
    model.fit(X[rows.stream], y[rows.stream])
    right = model.class_scores(X[rows.queries]).argmax(axis=1) == y[rows.queries]
    # A right query finds its class and nothing else; a wrong one finds it in a tie with others.
    assert right.mean() < labelled < right.mean() + 0.3 * (1 - right.mean())


def test_late_classes_miss_the_first_half_and_have_a_score_of_their_own(small):
    job = {"dataset": "mnist", "features": "unit rows", "n_bits": 8, "seed": 0}
    found = after.run_all([job | {"method": "FOH", "n_late": 2, "params": {"batch": 100}}])
    assert all(0 < record["late"] <= 1 for record in found)
    X, y = small["mnist"].features[:300], small["mnist"].labels[:300]
    parts = training.Parts(*[after.Part(X, y)] * 3)
    stream = after._stream(parts, 200, 2)
    n_first = int((y[:100] < 4).sum())
    assert stream.y[:n_first].max() < 4 and len(stream.y) == n_first + 100
    np.testing.assert_array_equal(stream.y[n_first:], y[100:200])


def test_codebooks_come_from_one_pass_and_equal_models_of_their_own(small):
    found = after.codebooks(["reuters10"], ["unit rows"], [0], [8, 16])
    for codebook in after.CODEBOOKS:
        params = UNIT | {"codebook": codebook}
        own = [training.run("HadamardRidge", "reuters10", r, 0, params=params) for r in (8, 16)]
        mine = [values(found, "mAP", label=codebook, n_bits=r)[0] for r in (8, 16)]
        assert mine == pytest.approx([run["mAP"] for run in own], abs=1e-12)


def test_a_method_of_a_notebook_runs_and_is_not_kept(small, monkeypatch, tmp_path):
    make = lambda role, n_bits, seed: after.new_model("LSH", role, n_bits, seed)  # noqa: E731
    monkeypatch.setitem(training.baselines.METHODS, "Own", make)
    found = after.compare(["Own"], ["mnist"], [8], [0], ["unit rows"])
    assert [record["label"] for record in found] == ["Own", "Own"] and not any(tmp_path.iterdir())
