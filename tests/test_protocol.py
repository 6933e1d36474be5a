"""The protocol: records kept and not repeated, curves on the way, the int8 fault, the command that prints tables."""

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

import datasets
import experiments
from metrics import HammingHistogram, hamming_histogram

ROOT = Path(__file__).parents[1]
JOB = {"method": "LSH", "dataset": "mnist", "n_bits": 8, "seed": 0}


@pytest.fixture
def small(monkeypatch):
    """Three sets small enough to run with the JIT off, in the places of large ones; one has several labels per row."""
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=2600)
    X = (3 * rng.normal(size=(8, 12))[y] + rng.normal(size=(2600, 12))).astype(np.float32)
    sets = {
        name: datasets.Dataset(
            name, X, labels, np.arange(2600), 40, 1200, role, None if name == role else role, "made up"
        )
        for name, role, labels in [
            ("mnist", "mnist", y),
            ("udhr205", "places205", y),
            ("reuters10", "nuswide", np.eye(8, dtype=np.uint8)[y] | np.eye(8, dtype=np.uint8)[(y + 1) % 8]),
        ]
    }
    monkeypatch.setattr(experiments, "_data", sets.__getitem__)
    monkeypatch.setattr(experiments, "_compile", lambda method: None)
    return sets


@pytest.fixture
def runs(tmp_path, monkeypatch, small):
    """Every call of `run`, which only notes it."""
    calls = []
    monkeypatch.setattr(experiments, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(experiments, "run", lambda **job: calls.append(job) or {"mAP": 0.5, **job})
    return calls


@pytest.mark.parametrize("name", ["mnist", "udhr205", "reuters10"])
def test_a_record_holds_what_a_plain_evaluation_gives(small, name):
    record = experiments.run("HCOH", name, 16, seed=1)
    data, metric = small[name], experiments.headline(small[name].role)
    parts = datasets.split(data, 1)
    model = experiments.METHODS["HCOH"](data.role, 16, 1).fit(data.features[parts.stream], data.labels[parts.stream])
    codes = (model.transform(data.features[part]) for part in (parts.queries, parts.database))
    h = hamming_histogram(*codes, data.labels[parts.queries], data.labels[parts.database])
    assert record["mAP"] == h.mean_average_precision() and record["P@H2"] == h.precision_at_radius(2)
    assert record["mAP@1000"] == h.mean_average_precision(1000, "retrieved")
    assert record["P@K"] == h.precision_at_k(record["K"]).tolist() and record["K"][-1] == 100
    assert (record["stand_in_for"] is None) == (name == "mnist")
    np.testing.assert_allclose(np.mean(record["per_query"][metric]), record[metric], atol=1e-6)
    np.testing.assert_allclose(np.mean(record["per_query"]["P@H2"]), record["P@H2"], atol=1e-6)
    assert record["mAP int8"] == pytest.approx(record[metric], abs=1e-12)  # 16 bits do not saturate
    assert min(record["per_query"][metric]) >= 0 and 0 < record["AUC PR"] < 1
    assert json.loads(json.dumps(record)) == record


def test_curve_on_the_way_ends_where_a_whole_run_does(small):
    record = experiments.run("HCOH", "mnist", 16, 0, checkpoints=True)
    assert record["samples"] == [120 * i for i in range(1, 11)] and len(record["stream"]) == 10
    assert record["stream"][:8] == [None] * 8  # UnitLength waits for 1,000 samples
    assert record["stream"][-1] == record["mAP"] and 0 < record["AUC mAP"] <= 1
    listed = experiments.run("HMOH", "reuters10", 16, 0, checkpoints=[100, 600], params={"codebook": "spread"})
    half = experiments.run("HMOH", "reuters10", 16, 0, params={"codebook": "spread"})
    assert listed["samples"] == [100, 600] and len(listed["stream"]) == 2  # not to the end: the stream has 1,200
    assert listed["stream"][0] != listed["stream"][1] and listed["mAP"] == half["mAP"]


def test_parameters_queries_and_unseen_classes_reach_the_run(small):
    plain, other = (
        experiments.run("HMOH", "reuters10", 16, 0, params=params) for params in (None, {"ensemble": False})
    )
    assert plain["mAP"] != other["mAP"] and other["params"] == {"ensemble": "False"}
    assert experiments.run("LSH", "mnist", 8, 0, n_queries=80)["n_queries"] == 80
    unseen = experiments.run("LSH", "mnist", 8, 0, split="unseen")
    assert unseen["split"] == "unseen" and unseen["n_queries"] == 10 and unseen["n_database"] < 800
    with pytest.raises(ValueError, match=r"there is no method 'HMOOH'; pass one of LSH, OKH,"):
        experiments.run("HMOOH", "mnist", 8, 0)
    with pytest.raises(ValueError, match=r"split='seen' is unknown; pass .paper. or .unseen."):
        experiments.run("LSH", "mnist", 8, 0, split="seen")


@pytest.mark.parametrize("n_bits", [8, 128, 129, 256, 512])
def test_int8_saturation_is_that_of_matlab(n_bits):
    rng = np.random.default_rng(n_bits)
    items = rng.integers(3, size=(4, n_bits + 1))
    relevant = rng.integers(items + 1)
    h = HammingHistogram(items, relevant)
    merged = experiments.int8_saturated(h)
    similarity = np.clip(n_bits - 2 * np.arange(n_bits + 1), -128, 127)
    for value in np.unique(similarity):  # every tie of the cast similarities is one distance, and ranks are kept
        at = np.flatnonzero(similarity == value)
        for a, b in [(h.items, merged.items), (h.relevant, merged.relevant)]:
            assert np.array_equal(b[:, at[0]], a[:, at].sum(axis=1)) and not b[:, at[1:]].any()
    assert (n_bits > 128) == (not np.array_equal(merged.items, h.items))


def test_a_finished_run_is_not_repeated(runs):
    assert experiments._kept_run(JOB) == experiments._kept_run(JOB)
    assert len(runs) == 1
    assert experiments._kept_run(JOB | {"label": "floor"})["label"] == "floor" and len(runs) == 1


def test_a_record_is_not_taken_for_another(runs, monkeypatch):
    jobs = [JOB | change for change in ({}, {"method": "HMOH"}, {"n_bits": 16}, {"seed": 1}, {"split": "unseen"})]
    jobs += [JOB | {"params": params} for params in ({"warmup": 1}, {"warmup": 2})]
    for job in jobs:
        experiments._kept_run(job)
    monkeypatch.setattr(experiments, "_version", lambda: "the code has changed")
    experiments._kept_run(JOB)
    monkeypatch.setattr(experiments, "PROFILE", "other")
    experiments._kept_run(JOB)
    assert len(runs) == len(jobs) + 2


def test_a_run_that_fails_leaves_no_record(runs, monkeypatch):
    def fail(**job):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        experiments._kept_run(JOB)
    assert not experiments.RECORDS.exists() or not os.listdir(experiments.RECORDS)


def test_comparisons_and_sweeps_run_every_case_once_and_in_order(runs, monkeypatch):
    monkeypatch.setattr(experiments, "run_all", partial(experiments.run_all, n_workers=1))
    found = experiments.compare(["LSH", "HMOH"], "mnist", [8, 16], [0, 1])
    assert len(found) == len(runs) == 8 and len({(r["method"], r["n_bits"], r["seed"]) for r in found}) == 8
    swept = experiments.sweep({"one": {"batch_size": 1}, "two": {"batch_size": 2}}, "mnist", seeds=[1, 0])
    assert [(r["label"], r["seed"]) for r in swept] == [("one", 1), ("one", 0), ("two", 1), ("two", 0)]


def quick_comparison(folder: Path) -> str:
    """A script that runs a comparison with its records in a folder, and prints its table."""
    return (
        "import sys; from pathlib import Path; import experiments, tables\n"
        "if __name__ == '__main__':\n"
        f"    experiments.RECORDS = Path({str(folder)!r})\n"
        "    jobs = [{'method': m, 'dataset': 'reuters10', 'n_bits': b, 'seed': s} for m in ('LSH', 'HCOH', 'BSODH') "
        "for b in (16, 32) for s in (0, 1)]\n"
        "    print(tables.table(experiments.run_all(jobs, n_workers=1), 'mAP'))\n"
    )


@pytest.mark.slow
def test_a_killed_comparison_goes_on_to_the_same_table(tmp_path):
    scripts = {name: tmp_path / f"{name}.py" for name in ("whole", "killed")}
    for name, path in scripts.items():
        path.write_text(quick_comparison(tmp_path / name))
    options = {"cwd": ROOT, "env": os.environ | {"HMOH_PROFILE": "quick", "PYTHONPATH": str(ROOT)}, "text": True}
    whole = subprocess.run([sys.executable, scripts["whole"]], check=True, capture_output=True, **options).stdout
    victim = subprocess.Popen(
        [sys.executable, scripts["killed"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    records = tmp_path / "killed"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(records.glob("*.json"))) < 3:
        time.sleep(0.005)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    finished = {path: path.read_bytes() for path in records.glob("*.json")}
    assert 3 <= len(finished) < 12 and all(json.loads(raw) for raw in finished.values())
    again = subprocess.run([sys.executable, scripts["killed"]], check=True, capture_output=True, **options).stdout
    assert again == whole and all(path.read_bytes() == raw for path, raw in finished.items())


@pytest.mark.slow
def test_one_command_makes_the_tables(tmp_path):
    command = [sys.executable, ROOT / "experiments.py", "mnist", "--bits", "8", "--methods", "LSH", "HMOH"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    rows = [line.replace("¹", " ").replace("²", " ").split() for line in printed.splitlines()]
    found = {row[0]: float(row[1]) for row in reversed(rows) if row and row[0] in ("LSH", "HMOH")}  # mAP comes first
    assert 0.1 < found["LSH"] < 0.3 and 0.6 < found["HMOH"] < 0.8
    paper = json.loads((ROOT / "data" / "paper_results.json").read_text())["results"]["mnist"]["HMOH"]["mAP"]["8"]
    assert f"({paper:.3f})".replace("0.", ".") in printed
