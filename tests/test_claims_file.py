"""Files in data/: entries of claims have the form that is needed, pickles hold arrays only."""

import importlib.util
import itertools
import json
import os
import pickle
import re

import numpy as np
import pytest
from claim_files import BITS
from helpers import ROOT
from scipy.stats import t as student

from study import claims
from study.datasets import BENCHMARKS
from study.measures import EVALUATION_FAULTS
from study.select import PAPER_METHODS
from study.statistics import ALPHA_FOR, MARGINS, RULE_VERSION, judge_summary, margin_of

ALL = claims.specs()


def test_ids_are_unique_and_every_notebook_has_its_claims():
    entries = json.loads(claims.CLAIMS.read_text())
    assert len({spec["id"] for spec in entries}) == len(entries) == len(ALL)
    for notebook in {spec["notebook"] for spec in entries}:
        assert (ROOT / "notebooks" / f"{notebook}.ipynb").is_file()
        assert claims.specs(notebook)
    with pytest.raises(ValueError, match=r"'13_none'.*'03_mnist'"):
        claims.specs("13_none")


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
def test_entry_is_well_formed(spec):
    needed = {"id", "section", "role", "notebook", "claim", "printed", "kind"}
    optional = {"headline", "by_construction", "note", "published", "table"}
    if spec["kind"] == "value":
        needed |= {"unit"}
        assert spec["unit"] in MARGINS
    how = {"measure", "by_hand", "untestable"} & set(spec)
    assert len(how) == 1
    assert set(spec) - optional - how == needed
    assert spec["kind"] in ("exact", "order", "value", "time")
    assert spec["role"] in (None, *BENCHMARKS)
    assert re.fullmatch(r"abstract|[13-5](\.\d+)*", spec["section"])
    assert spec["claim"].endswith(".") and spec.get("note", ".").endswith(".")
    assert spec.get("headline", True) is spec.get("by_construction", True) is True
    assert spec["kind"] != "order" or spec["printed"] is None
    assert spec["kind"] != "exact" or "measure" not in spec


MEASURED = {name: spec for name, spec in ALL.items() if "measure" in spec}


@pytest.mark.parametrize("spec", MEASURED.values(), ids=MEASURED)
def test_measure_is_well_formed(spec):
    measure = spec["measure"]
    fields = {
        "value": {"method", "samples"},
        "gain": {"method", "over"},
        "order": {"ranking", "slack", "most"},
        "change": {"method", "sign", "slack", "most"},
        "peak": {"method", "at", "most"},
        "stream": {"method", "from", "sign", "slack", "most"},
    }[measure["is"]]
    assert set(measure) - fields - {"split", "queries"} == {"is", "metric", "bits"}
    assert spec["kind"] == ("value" if measure["is"] in ("value", "gain") else "order")
    if spec["kind"] == "value":
        unit = "gain" if measure["is"] == "gain" else "precision"
        assert spec["unit"] == ("mAP" if unit != "gain" and measure["metric"] == "mAP" else unit)
    assert spec["role"] is not None
    metrics = ("mAP", "P@H2", "AUC mAP", "AUC P@K", "AUC PR", "train_seconds")
    assert measure["metric"] in metrics
    assert {*np.atleast_1d(measure["bits"]).tolist()} <= {*BITS, 256, 512}
    named = json.dumps([measure.get(key, []) for key in ("method", "over", "ranking")])
    assert {*re.findall(r"[A-Za-z]+", named)} - {"null"} <= {*PAPER_METHODS}
    assert spec.get("published", {}).keys() <= {"metric"}
    assert {*spec.get("published", {}).values()} <= EVALUATION_FAULTS.keys()


def test_no_entry_tells_its_verdict():
    verdicts = {*claims.VERDICTS, "holds", "fails", "confirmed", "refuted", "disproved"}
    verdicts |= {"support", "contradict", "contradicts", "reproduce", "reproduces"}
    # These are also said of columns, signs and predictions.
    verdicts -= {"different", "right", "wrong"}
    pattern = re.compile(rf"\b({'|'.join(verdicts)})\b", re.IGNORECASE)
    for spec in ALL.values():
        for field in ("claim", "note", "by_hand"):
            assert not pattern.search(spec.get(field, "")), (spec["id"], field)
        assert not {"fault", "verdict"} & set(spec)
        assert "fault_metric" not in spec.get("measure", {})


# ---- what was judged -----------------------------------------------------------------


def judged_again(spec, mean, sd):
    """Return the verdicts that ten seeds with this mean and deviation may have."""
    if spec["kind"] != "order":
        margin = margin_of(spec["unit"], spec["printed"])
        return {judge_summary(mean, max(sd, 0), 10, spec["printed"], margin).verdict}
    t = (mean + spec["measure"].get("slack", 0)) / max(sd / 10**0.5, 1e-15)
    # What contradicts an order, or supports most of it, depends on values that are not kept.
    others = {"undecided", "contradicted"}
    if spec["measure"].get("most"):
        return {"supported"} | others
    return {"supported"} if student.sf(t, 9) <= ALPHA_FOR else others


def test_verdicts_with_fresh_seeds_are_those_of_the_rule():
    found = json.loads((ROOT / "data" / "results" / "fresh_seeds.json").read_text())
    listed = claims.all_specs()
    stale = []
    if found["rule"] != RULE_VERSION:
        stale.append(f"judged by rule {found['rule']}, and the rule is now {RULE_VERSION}")
    for row in found["rows"]:
        # Its row is about the claim as it was then.
        if row["id"] in found["changed_later"]:
            continue
        for seeds in ("first", "fresh"):
            verdict, mean, sd = row[seeds]
            # What is kept has four digits, so a verdict at the edge may be either.
            near = itertools.product((mean - 5e-5, mean + 5e-5), (sd - 5e-5, sd + 5e-5))
            if verdict not in set().union(*(judged_again(listed[row["id"]], *at) for at in near)):
                stale.append(f"{row['id']} as {row['reading']} is {verdict} with {seeds} seeds")
    assert not stale, "run data/make/fresh_seeds.py:\n" + "\n".join(stale)
    for move in ("moved", "reversed"):
        assert found[move] == sum(row["move"] == move for row in found["rows"])


def test_every_claim_that_runs_decide_has_fresh_seeds_or_is_listed_as_later():
    found = json.loads((ROOT / "data" / "results" / "fresh_seeds.json").read_text())
    listed = claims.all_specs()
    wanted = {k for k, s in listed.items() if s["role"] == "mnist" and "measure" in s}
    judged = {row["id"] for row in found["rows"]}
    assert wanted - judged == {*found["added_later"]}
    assert {*found["changed_later"]} <= judged <= wanted


def test_the_protocol_has_the_margin_of_every_unit():
    text = (ROOT / "study" / "PROTOCOL.md").read_text()
    for unit, margin in MARGINS.items():
        assert re.search(rf"^\| {unit} \| {margin}\b", text, re.MULTILINE), unit


# ---- data/make -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def common():
    """Return the module data/make/common.py, which is in no package."""
    path = ROOT / "data" / "make" / "common.py"
    spec = importlib.util.spec_from_file_location("make_common", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Call:
    """Something whose pickle calls a function when it is read."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def test_a_pickle_of_arrays_is_read(common):
    raw = pickle.dumps({"data": np.arange(6).reshape(2, 3)}, protocol=3)
    # Older versions of numpy, which wrote the files, have this name.
    found = common.unpickle(raw.replace(b"numpy._core", b"numpy.core"))
    np.testing.assert_array_equal(found["data"], [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_names_anything_else_is_refused_and_runs_nothing(common, protocol, tmp_path):
    made = tmp_path / "made"
    raw = pickle.dumps({"data": Call(os.mkdir, str(made))}, protocol)
    with pytest.raises(pickle.UnpicklingError, match="mkdir is not part of an array"):
        common.unpickle(raw)
    assert not made.exists()
    for other in (eval, np.fromfile, np.matrix):
        with pytest.raises(pickle.UnpicklingError, match=other.__name__):
            common.unpickle(pickle.dumps(other, protocol))
