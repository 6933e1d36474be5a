"""The comparison: records kept and not repeated, tables with the paper's row, and the command that makes them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import experiments

ROOT = Path(__file__).parents[1]
JOB = ("LSH", "mnist", 8, 0, 1)


def record(method, n_bits, seed, value):
    return {"method": method, "dataset": "mnist", "n_bits": n_bits, "seed": seed, "mAP": value}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Every call of `run`, which only notes it."""
    calls = []
    monkeypatch.setattr(experiments, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(experiments, "run", lambda *job: calls.append(job) or record(*job[:1], *job[2:4], 0.5))
    return calls


def test_a_finished_run_is_not_repeated(runs):
    assert experiments._kept_run(*JOB) == experiments._kept_run(*JOB)
    assert runs == [JOB]


def test_a_record_is_not_taken_for_another(runs, monkeypatch):
    experiments._kept_run(*JOB)
    for job in [("HMOH", *JOB[1:]), (*JOB[:2], 16, 0, 1), (*JOB[:3], 1, 1)]:
        experiments._kept_run(*job)
    monkeypatch.setattr(experiments, "_version", lambda: "the code has changed")
    experiments._kept_run(*JOB)
    assert len(runs) == 5


def test_a_run_that_fails_leaves_no_record(runs, monkeypatch):
    def fail(*job):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        experiments._kept_run(*JOB)
    assert not experiments.RECORDS.exists() or not os.listdir(experiments.RECORDS)


def test_table_has_means_spreads_and_the_papers_row():
    records = [record("HMOH", 8, 0, 0.7), record("HMOH", 8, 1, 0.8), record("LSH", 8, 0, 0.2), record("LSH", 8, 1, 0.2)]
    assert experiments.summary(records, "mAP")["HMOH", 8] == pytest.approx((0.75, 0.0707), abs=1e-4)
    lines = experiments.table(records, "mAP", {"HMOH": {"8": 0.743}}).splitlines()
    assert [line.split() for line in lines] == [
        ["bits", "8"],
        ["HMOH", "0.750", "±0.071"],
        ["the", "paper", "0.743"],
        ["LSH", "0.200", "±0.000"],
    ]


@pytest.mark.slow
def test_one_command_makes_the_tables(tmp_path):
    command = [sys.executable, ROOT / "experiments.py", "mnist", "--bits", "8", "--methods", "LSH", "HMOH"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    rows = [line.split() for line in printed.splitlines()]
    found = {row[0]: float(row[1]) for row in reversed(rows) if row and row[0] in ("LSH", "HMOH")}  # mAP comes first
    assert 0.1 < found["LSH"] < 0.3 and 0.6 < found["HMOH"] < 0.8
    paper = json.loads((ROOT / "data" / "paper_results.json").read_text())["results"]["mnist"]["HMOH"]["mAP"]["8"]
    assert f"{paper:.3f}" in printed
