"""data/results/published_runs.json: what the published programs compute on MNIST."""

import json
import re

import nbformat
import pytest
from helpers import ROOT

from baselines import METHODS, named

FILE = json.loads((ROOT / "data" / "results" / "published_runs.json").read_text())
LATER = FILE["later"]


def by_case(runs):
    return {(run["method"], run["n_bits"], run["seed"]): run for run in runs}


RUNS = by_case(FILE["runs"])
LATER_RUNS = by_case(LATER["runs"])


def test_every_method_of_the_paper_is_run_or_has_a_reason_why_not():
    printed = json.loads((ROOT / "data" / "paper_results.json").read_text())["results"]["mnist"]
    assert FILE["methods"].keys() | FILE["not_run"].keys() == printed.keys()
    assert FILE["methods"].keys().isdisjoint(FILE["not_run"])


@pytest.mark.parametrize("part", [FILE, LATER], ids=["paper", "later"])
def test_a_run_names_its_program_and_every_case_occurs_once(part):
    for program in part["programs"].values():
        assert re.fullmatch("[0-9a-f]{40}", program["commit"])
    assert {method["repository"] for method in part["methods"].values()} == part["programs"].keys()
    runs = by_case(part["runs"])
    assert len(part["runs"]) == len(runs)
    cases = {(name, b, seed) for name in part["methods"] for b in (16, 32, 64) for seed in range(3)}
    if part is LATER:  # all have 32 bits, and other lengths only as far as they were run
        assert {case for case in cases if case[1] == 32} <= runs.keys() <= cases
    else:
        assert runs.keys() == cases


def test_the_later_methods_are_those_of_the_table():
    assert list(LATER["methods"]) == named("later")
    for name, method in LATER["methods"].items():
        assert f"{method['repository']}, {method['file']}" in METHODS[name].published


@pytest.mark.parametrize("case", LATER_RUNS, ids=str)
def test_later_methods_encode_as_their_programs_do(case):
    run = LATER_RUNS[case]
    assert run["bits"] == 70_000 * run["n_bits"]
    # What differs is the rounding of our weights to float32.
    assert 0 <= run["other_bits"] <= 3e-6 * run["bits"]
    assert run["our_mAP"] == pytest.approx(run["mAP"], abs=2e-5)
    assert 0 < run["P@H2"] < 1 and 0 < run["own_mAP"] < 1


@pytest.mark.parametrize("case", RUNS, ids=str)
def test_the_program_prints_the_same_map_up_to_the_order_of_ties(case):
    run = RUNS[case]
    assert run["mAP"] == pytest.approx(run["printed_mAP"], abs=0.002)
    assert 0 < run["P@H2"] < 1
    assert run["seconds"] > 0


@pytest.mark.parametrize("seed", range(3))
def test_long_codes_of_the_published_hmoh_rank_as_its_short_ones(seed):
    # Its ordered columns make a long code one code of 16 bits, repeated.
    values = {RUNS["HMOH", n_bits, seed]["mAP"] for n_bits in (16, 32, 64)}
    assert len(values) == 1


# ---- what the texts say of a program -------------------------------------------------


def results_of_programs():
    """Return the results of the runs, and their means over seeds."""
    found = []
    for metric in ("mAP", "P@H2"):
        for method in FILE["methods"]:
            for n_bits in (16, 32, 64):
                of_seeds = [RUNS[method, n_bits, seed][metric] for seed in range(3)]
                found += [*of_seeds, sum(of_seeds) / 3]
    return found


def clauses_on_programs(text):
    """Return the parts of sentences that give a result of a program: its words have a number."""
    found = []
    # A comma between digits is part of a list of lengths.
    for clause in re.split(r"(?<=[.!?;:])\s|(?<!\d),\s|\n\n", text):
        if re.search(r"\bprograms?\b", clause) and not re.search(r"\bports?\b|\.m\b", clause):
            results = [float(number) for number in re.findall(r"(?<![\d.])0?\.\d{3}\b", clause)]
            if results:
                found.append((" ".join(clause.split()), results))
    return found


def unknown_results(text):
    known = results_of_programs()
    wrong = []
    for clause, results in clauses_on_programs(text):
        lengths = re.findall(r"(\d+)(?=(?:, \d+)*(?: and \d+)? bits)", clause)
        is_known = all(any(abs(x - other) <= 0.00051 for other in known) for x in results)
        if not is_known or not {*lengths} <= {"16", "32", "64"}:
            wrong.append(clause)
    return wrong


def texts():
    """Return path -> READMEs, and the words of the notebooks, written or computed."""
    found = {p: p.read_text() for p in (ROOT / "README.md", *ROOT.glob("*/README.md"))}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        words = []
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                words.append(cell.source)
            words += [o.get("data", {}).get("text/markdown", "") for o in cell.get("outputs", [])]
        found[path] = "\n\n".join(words)
    return found


def test_a_result_of_a_program_is_of_its_runs():
    found = texts()
    wrong = {path.name: unknown_results(text) for path, text in found.items()}
    assert {name: clauses for name, clauses in wrong.items() if clauses} == {}
    assert sum(len(clauses_on_programs(text)) for text in found.values()) >= 1


def test_a_result_that_no_program_gave_is_found():
    hmoh = sum(RUNS["HMOH", 32, seed]["mAP"] for seed in range(3)) / 3
    assert unknown_results(f"The program gives {hmoh:.3f} at 16, 32 and 64 bits.") == []
    assert unknown_results(f"The programs give {hmoh:.3f} at 128 bits.") != []
    assert unknown_results("The published program reaches 0.999 at 32 bits.") != []
    assert unknown_results("By our ports of the programs it is 0.999 at 128 bits.") == []
