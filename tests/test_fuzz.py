"""Run some cases of every target of fuzz.py, and check the tool itself."""

import ast
import io
import itertools
import json
import os
import re
import subprocess
import sys

import fuzz
import fuzz_files
import fuzz_metrics
import naive
import numpy as np
import pytest
from helpers import JIT_IS_OFF

import metrics

SECONDS = 3  # per target
# With the JIT off there are fewer cases, because the loops are slow.
N_CASES = {
    "metrics": 12,
    "hmoh": 6,
    "baselines": 8,
    "kernels": 20,
    "threads": 2,
    "models": 10 if JIT_IS_OFF else 200,
    "data": 20 if JIT_IS_OFF else 150,
}
ISOLATED = [target.name for target in fuzz.LISTED if target.is_isolated]
any_jit = pytest.mark.skipif(JIT_IS_OFF, reason="runs with the JIT on")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Keep the place in an empty folder, and make a failing case smaller for a short time."""
    monkeypatch.setattr(fuzz, "FOLDER", tmp_path)
    monkeypatch.setattr(fuzz, "SHRINKING", 2.0)
    return tmp_path


# ---- the project ---------------------------------------------------------------------


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_no_case_fails(name, capsys):
    limit = ["--minutes", str(SECONDS / 60)]
    if JIT_IS_OFF or name in ISOLATED:
        limit = ["--cases", str(N_CASES[name])]
    code = fuzz.main(["--target", name, *limit])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert re.search(rf"^{name} +[1-9]", printed, re.MULTILINE)


# ---- the answers ---------------------------------------------------------------------


@pytest.mark.parametrize("normalize", fuzz_metrics.NORMALIZE)
@pytest.mark.parametrize("top", [None, 1, 3, 5, 9])
def test_the_expected_metrics_are_means_over_all_orders(normalize, top):
    rng = np.random.default_rng(0)
    for _ in range(10):
        distances = rng.integers(3, size=6).tolist()
        relevances = rng.integers(2, size=6).tolist()
        ties = fuzz_metrics.Query(distances, relevances).ties
        expected = naive.expected_average_precision(distances, relevances, normalize, top)
        assert fuzz_metrics.expected_ap(ties, normalize, top) == expected
        k = 4 if top is None else min(top, 6)
        expected = naive.expected_precision_at_k(distances, relevances, k)
        assert fuzz_metrics.expected_precision(ties, k) == expected


@pytest.mark.parametrize("name", fuzz_files.MODELS)
def test_whole_models_work(name):
    case = {"file": name, "damage": "flip", "times": 0, "seed": 0}
    assert list(fuzz_files.check_models(case)) == ["works"]


@pytest.mark.parametrize("name", fuzz_files.DATA)
def test_whole_data_work(name):
    case = {"file": name, "damage": "flip", "times": 0, "seed": 0}
    assert list(fuzz_files.check_data(case)) == ["works"]


@pytest.mark.parametrize("damage", [*fuzz_files.IN_BYTES, *fuzz_files.IN_ARRAYS])
def test_every_damage_changes_the_file(damage):
    raw, *_ = fuzz_files.whole_model("rbf")
    case = {"file": "rbf", "damage": damage, "times": 1}
    with np.load(io.BytesIO(raw)) as file:
        arrays = dict(file)
    changed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        changed += fuzz_files.damaged(raw, arrays, case, rng) != raw
    assert changed > 10


# ---- the tool ------------------------------------------------------------------------


def test_a_case_is_a_function_of_seed_target_and_number():
    numbers = itertools.product((0, 1), fuzz.LISTED, (0, 1, 10**9))
    cases = [fuzz.draw(target, seed, number) for seed, target, number in numbers]
    numbers = itertools.product((0, 1), fuzz.LISTED, (0, 1, 10**9))
    again = [fuzz.draw(target, seed, number) for seed, target, number in numbers]
    assert cases == again
    assert len({case["seed"] for case in cases}) == len(cases)


def plant_bug(monkeypatch):
    """Make a metric wrong for two or more queries and codes of four or more bits."""
    right = metrics.HammingHistogram.precision_at_radius

    def wrong(self, radius, per_query=False):
        error = 1e-9 * (len(self.items) >= 2 and self.n_bits >= 4)
        return right(self, radius, per_query) + error

    monkeypatch.setattr(metrics.HammingHistogram, "precision_at_radius", wrong)


def test_a_planted_bug_is_found_shrunk_and_repeated(monkeypatch, capsys, folder):
    monkeypatch.setattr(fuzz, "SHRINKING", 60.0)
    plant_bug(monkeypatch)
    options = ["--seed", "5", "--target", "metrics", "--cases", "50"]
    assert fuzz.main(options) == 1
    printed = capsys.readouterr().out
    number = re.search(r"FAILED: target metrics, seed 5, case (\d+)", printed)[1]
    shrunk = ast.literal_eval(re.search(r"shrunk: +(.*)", printed)[1])
    plainest = {name: values[0] for name, values in fuzz_metrics.METRICS.items()}
    seed = fuzz.draw(fuzz.TARGETS["metrics"], 5, int(number))["seed"]
    assert shrunk == plainest | {"n_queries": 2, "n_bits": 4, "seed": seed}
    assert "is not near" in printed

    # The command that is printed repeats the case.
    command = re.search(r"repeat: +(.*)", printed)[1].split()
    assert command[1] == fuzz.__file__
    assert fuzz.main(command[2:]) == 1
    assert f"seed 5, case {number}" in capsys.readouterr().out

    # The next run begins with the case that failed.
    kept = json.loads((folder / "fuzz_5.json").read_text())
    assert kept["targets"]["metrics"]["cases"] == int(number)
    assert fuzz.main(options) == 1
    assert f"seed 5, case {number}" in capsys.readouterr().out
    monkeypatch.undo()
    assert fuzz.main(command[2:]) == 0
    assert "passed" in capsys.readouterr().out


def test_a_run_goes_on_where_the_last_one_stopped(monkeypatch, capsys, folder):
    numbers = []
    draw = fuzz.draw

    def noted_draw(target, seed, number):
        numbers.append((target.name, seed, number))
        return draw(target, seed, number)

    monkeypatch.setattr(fuzz, "draw", noted_draw)
    kernels = ["--target", "kernels", "--cases", "2"]
    fuzz.main(kernels)
    fuzz.main([*kernels, "--target", "metrics"])
    fuzz.main([*kernels, "--seed", "1"])
    fuzz.main([*kernels, "--restart"])
    expected = [("kernels", 0, i) for i in range(4)]
    expected += [("metrics", 0, 0), ("metrics", 0, 1)]
    expected += [("kernels", 1, 0), ("kernels", 1, 1)]
    expected += [("kernels", 0, 0), ("kernels", 0, 1)]
    assert sorted(numbers[:6]) == sorted(expected[:6])
    assert numbers[6:] == expected[6:]
    kept = json.loads((folder / "fuzz_0.json").read_text())
    assert kept["seed"] == 0
    assert kept["targets"]["kernels"]["cases"] == 2
    assert kept["targets"]["kernels"]["calls"] >= 10
    assert sorted(os.listdir(folder)) == ["fuzz_0.json", "fuzz_1.json"]
    # Two targets, and the calls of all runs.
    assert re.search(r"(?m)^all +4 ", capsys.readouterr().out)


def test_plainer_choices_come_plainest_first():
    assert fuzz.plainer(range(1, 100), 9) == [1, 5, 7, 8]
    assert fuzz.plainer(range(1, 100), 1) == []
    assert fuzz.plainer((None, None, "auto", 3), 3) == [None, "auto"]
    assert fuzz.plainer((None, None, "auto", 3), None) == []


@any_jit
def test_the_command_works_in_any_folder(tmp_path):
    command = [sys.executable, fuzz.__file__, "--target", "kernels", "--case", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "target kernels, seed 0, case 0: passed\n"
    assert done.returncode == 0 and done.stderr == ""


@any_jit
def test_a_process_that_dies_is_a_failure_and_not_the_end():
    target = fuzz.TARGETS["data"]
    case = {"file": "idx", "damage": "cut", "times": 1, "seed": 0}
    try:
        assert fuzz.count_calls(target, case) == 1
        assert "KeyError: 'file'" in fuzz.failure(target, {"seed": 0})
        fuzz.WORKER.process.kill()
        assert "the process died with exit code" in fuzz.failure(target, case)
        assert fuzz.count_calls(target, case) == 1
    finally:
        fuzz.WORKER.stop()
