"""data/results/published_runs.json: what the published programs compute on MNIST."""

import json
import re

import pytest
from helpers import ROOT

FILE = json.loads((ROOT / "data" / "results" / "published_runs.json").read_text())
RUNS = {(run["method"], run["n_bits"], run["seed"]): run for run in FILE["runs"]}


def test_every_method_of_the_paper_is_run_or_has_a_reason_why_not():
    printed = json.loads((ROOT / "data" / "paper_results.json").read_text())["results"]["mnist"]
    assert FILE["methods"].keys() | FILE["not_run"].keys() == printed.keys()
    assert FILE["methods"].keys().isdisjoint(FILE["not_run"])


def test_a_run_names_its_program_and_every_case_occurs_once():
    for program in FILE["programs"].values():
        assert re.fullmatch("[0-9a-f]{40}", program["commit"])
    assert {method["repository"] for method in FILE["methods"].values()} == FILE["programs"].keys()
    cases = {(name, b, seed) for name in FILE["methods"] for b in (16, 32, 64) for seed in range(3)}
    assert RUNS.keys() == cases
    assert len(FILE["runs"]) == len(cases)


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
