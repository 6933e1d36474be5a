"""The claims file: every entry has the form that claims.py and measures.py need."""

import json
import re

import numpy as np
import pytest
from claim_files import BITS
from helpers import ROOT

from study import claims

ALL = claims.specs()
ROLES = ("mnist", "cifar10", "places205", "nuswide")


def test_ids_are_unique_and_every_notebook_has_its_claims():
    entries = json.loads(claims.CLAIMS.read_text())
    assert len({spec["id"] for spec in entries}) == len(entries) == len(ALL)
    for notebook in {spec["notebook"] for spec in entries}:
        assert (ROOT / "notebooks" / f"{notebook}.ipynb").is_file()
        assert claims.specs(notebook)
    with pytest.raises(ValueError, match=r"'13_none'.*'02_mnist'"):
        claims.specs("13_none")


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
def test_entry_is_well_formed(spec):
    needed = {"id", "section", "role", "notebook", "claim", "printed", "kind"}
    optional = {"headline", "by_construction", "note", "published", "table"}
    if spec["kind"] == "value":
        needed |= {"unit", "margin"}
    how = {"measure", "by_hand"} & set(spec)
    assert len(how) == 1
    assert set(spec) - optional - how == needed
    assert spec["kind"] in ("exact", "order", "value")
    assert spec["role"] in (None, *ROLES)
    assert re.fullmatch(r"[13-5](\.\d+)*", spec["section"])
    assert spec["claim"].endswith(".")
    assert spec.get("note", ".").endswith(".")
    assert spec.get("headline", True) is True
    assert spec.get("by_construction", True) is True
    if spec["kind"] == "value":
        assert spec["printed"] is not None
    if spec["kind"] == "order":
        assert spec["printed"] is None
    if spec["kind"] == "exact":
        assert "by_hand" in spec


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
def test_the_margin_is_that_of_the_unit(spec):
    if spec["kind"] != "value":
        return
    margins = {"precision": 0.02, "factor": 1.5, "exponent": 0.1}
    margins["gain"] = max(0.02, abs(spec["printed"]) / 10)
    assert spec["margin"] == pytest.approx(margins[spec["unit"]], rel=0.01)
    if spec.get("measure", {}).get("is") == "gain":
        assert spec["unit"] == "gain"


MEASURED = {name: spec for name, spec in ALL.items() if "measure" in spec}


@pytest.mark.parametrize("spec", MEASURED.values(), ids=MEASURED)
def test_measure_is_well_formed(spec):
    measure = spec["measure"]
    fields = {
        "value": {"method", "samples"},
        "gain": {"method", "over"},
        "order": {"ranking", "slack", "most"},
        "change": {"method", "sign", "slack", "most"},
    }[measure["is"]]
    assert set(measure) - fields - {"split", "queries"} == {"is", "metric", "bits"}
    is_value = measure["is"] in ("value", "gain")
    assert spec["kind"] == ("value" if is_value else "order")
    assert spec["role"] is not None
    metrics = ("mAP", "P@H2", "AUC mAP", "AUC P@K", "AUC PR", "train_seconds")
    assert measure["metric"] in metrics
    assert {*np.atleast_1d(measure["bits"]).tolist()} <= {*BITS, 256, 512}
    named = re.findall(
        r"[A-Za-z]+", json.dumps([measure.get("method"), measure.get("over")])
    )
    named += re.findall(r"[A-Za-z]+", json.dumps(measure.get("ranking", [])))
    assert {*named} - {"null"} <= {*claims.PAPER_METHODS}
    assert set(spec.get("published", {})) <= {"metric", "method"}


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
