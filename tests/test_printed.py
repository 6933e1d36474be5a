"""The paper's own numbers: what they say about its sentences, and which marks are wrong."""

import copy

import pytest
from claim_files import BITS, GAIN, ORDER, VALUE, entry

from study import claims, printed, select
from study.measures import CASES
from study.printed import OUTCOMES, check
from study.select import paper_results

ALL = claims.specs()
HCOH_FIRST = ORDER | {"ranking": ["HCOH", "BSODH"], "bits": BITS}
HCOH_LAST = ORDER | {"ranking": ["BSODH", "HCOH"], "bits": [16]}


def outcome(spec):
    found = check(spec)
    return found and found.outcome


@pytest.mark.parametrize(
    "spec, expected",
    [
        (entry(HCOH_FIRST), "disagrees"),
        (entry(HCOH_FIRST | {"most": True}), "agrees"),  # at 16, 32, 48 and 128 bits
        (entry(HCOH_LAST), "disagrees"),
        (entry(HCOH_LAST | {"slack": 0.01}), "agrees"),
        (entry(ORDER | {"metric": "train_seconds", "ranking": ["HMOH", "HCOH"]}), "agrees"),
        # A value agrees to the last digit of the tables.
        (entry(VALUE, 0.847), "agrees"),
        (entry(VALUE, 0.8466), "agrees"),
        (entry(VALUE, 0.846), "disagrees"),
        (entry(VALUE, 0.305, role="places205"), "agrees"),  # of the first 1,000 ranks
        # A claim measured by hand can name its place in the tables.
        (entry(printed=0.847, table=VALUE), "agrees"),
        (entry(printed=0.5, table=VALUE), "disagrees"),
        # After a tenth of the stream the text prints values of some methods.
        (entry(ORDER | {"ranking": ["HMOH@0.1", "HCOH@1"], "bits": [48]}), "agrees"),
        (entry(ORDER | {"ranking": ["HCOH@0.1", "HMOH@1"], "bits": [48]}), "disagrees"),
        # What is not printed neither agrees nor disagrees, and a value does not check itself.
        (entry(ORDER | {"ranking": ["HMOH@0.1", "OKH@1"]}), None),
        (entry(ORDER | {"ranking": ["HMOH@0.9", "HCOH@0.1"], "bits": [48]}), None),
        (entry(VALUE | {"metric": "AUC PR"}, 0.5), None),
        (entry(VALUE | {"samples": 0.1}, 0.5), None),
        (entry(VALUE | {"bits": 256}, 0.5), None),
        (entry(VALUE | {"split": "unseen"}, 0.5), None),
        (entry(VALUE | {"metric": "train_seconds", "bits": 64}, 0.5), None),
        (entry(printed=0.5, role=None), None),
        (entry(), None),
    ],
)
def test_claims_agree_with_the_papers_numbers_or_not(spec, expected):
    assert outcome(spec) == expected


def test_what_disagrees_shows_the_right_value():
    gain = check(entry(GAIN | {"over": ["HCOH"], "bits": BITS}, 0.1))
    assert gain.why == "15.595 % by the tables, printed 10.000 %"
    order = check(entry(HCOH_LAST))
    assert order.why == "fails: BSODH 0.700, HCOH 0.708 at 16 bits"


def test_comparisons_of_printed_numbers_hold_all_or_prove_only_a_part():
    path = "results/mnist/{}/mAP/32"
    table = {"is": "numbers", "words": "{0:.3f}, then {1:.3f}"}
    holds = f"{path.format('HMOH')} > {path.format('HCOH')}"
    fails = f"{path.format('HCOH')} > {path.format('HMOH')}"
    for compare, partly, expected in [
        ([holds], False, "agrees"),
        ([holds], True, "consistent"),
        ([holds, fails], True, "disagrees"),
        ([f"{path.format('HMOH')} > 0"], False, "agrees"),
    ]:
        found = check(entry(table=table | {"compare": compare, "partly": partly}))
        assert found.outcome == expected
    assert check(entry(table=table | {"compare": [holds]})).why == "0.847, then 0.756"
    with pytest.raises(KeyError, match="none"):
        check(entry(table=table | {"compare": ["results/none > 0"]}))


def test_the_slips_of_the_papers_text_are_found():
    # On CIFAR-10 the table gives .10562 where the text says .10440, and on MNIST HCOH is said to
    # be behind BSODH, but has .708 to .700 at 16 bits.
    slips = {"cifar10-ph2-gain", "cifar10-ph2-gain-hcoh", "places205-map-gain", "mnist-ph2-gain"}
    slips |= {"places205-map-gain-hcoh", "places205-ph2-8", "places205-ph2-best"}
    slips |= {"mnist-map-hcoh-behind", "mnist-ph2-gain-hcoh", "nuswide-map-second"}
    # BSODH never reaches what HMOH has early; .645 is printed with and without the kernel.
    slips |= {"cifar10-catch-up-bsodh", "places205-catch-up-bsodh", "cifar10-bandwidth-map"}
    slips |= {"cifar10-kernel-hurts", "places205-bandwidth-best", "mnist-bandwidth-best"}
    assert slips <= {name for name, spec in ALL.items() if outcome(spec) == "disagrees"}
    # The other gains of the text are those of the tables, to the last digit.
    gains = [spec for spec in ALL.values() if spec.get("measure", {}).get("is") == "gain"]
    assert sum(outcome(spec) == "agrees" for spec in gains) >= 15


def test_one_column_of_five_tables_is_marked_wrong():
    found = {role: printed.wrong_marks(role) for role in paper_results()["marks"]}
    assert [role for role, wrong in found.items() if wrong] == ["places205"]
    [column] = found["places205"]
    assert column.startswith("P@H2 at 64 bits: bold HMOH 0.223, should be SketchHash 0.274")
    assert printed.wrong_marks("places205", "queries") == []


def test_a_wrong_mark_is_found_and_a_tie_for_the_second_place_is_none(monkeypatch):
    monkeypatch.setattr(printed, "_columns", lambda role, of: columns)
    values = {"A": 0.3, "B": 0.2, "C": 0.2}
    columns = {"x": (values, {"bold": ["A"], "underlined": ["B", "C"]})}
    assert printed.wrong_marks("mnist") == []
    for marks in ({"bold": ["B"], "underlined": ["A"]}, {"bold": ["A"], "underlined": ["B"]}):
        columns = {"x": (values, marks)}
        assert len(printed.wrong_marks("mnist")) == 1
    columns = {"x": (values | {"B": 0.3}, {"bold": ["A", "B"], "underlined": []})}
    assert printed.wrong_marks("mnist") == []


def test_the_numbers_of_the_text_are_those_of_the_claims():
    early = paper_results()["text"]["after_a_part_of_the_stream_48bit_mAP"]
    for role, values in early.items():
        for method in values.keys() - {"samples"}:
            assert ALL[f"{role}-start-{method.lower()}"]["printed"] == values[method]
    for role, values in paper_results()["text"]["batches_32bit_mAP"].items():
        assert ALL[f"{role}-batch-2"]["printed"] == values["2"]


QUERIES = "variation_places205_32bit_mAP@1000"


@pytest.mark.parametrize(
    "name, before, path, value, after",
    [
        ("places205-variation-small", "agrees", f"{QUERIES}/20/MIHash/1", 0.02, "disagrees"),
        ("places205-variation-small", "agrees", f"{QUERIES}/20/OKH/1", 0.02, "agrees"),
        ("places205-variation-size", "agrees", f"{QUERIES}/20/HMOH/0", 0.4, "agrees"),
        ("places205-variation-best", "agrees", f"{QUERIES}/50/HCOH/0", 0.4, "disagrees"),
        ("places205-variation-500", "agrees", f"{QUERIES}/500/HMOH/0", 0.28, "disagrees"),
        ("nuswide-map-advantage-grows", "agrees", "results/nuswide/HMOH/mAP/64", 0.44, "disagrees"),
        (
            "places205-ph2-drops-least",
            "consistent",
            "results/places205/HCOH/P@H2/64",
            0.2,
            "agrees",
        ),
        (
            "places205-ph2-drops-least",
            "consistent",
            "results/places205/HCOH/P@H2/128",
            0.3,
            "disagrees",
        ),
        ("abstract-accuracy", "consistent", "results/mnist/OKH/mAP/8", 0.8, "disagrees"),
        ("table4-marks", "agrees", "results/mnist/OKH/mAP/8", 0.8, "disagrees"),
        ("table6-marks", "agrees", f"{QUERIES}/50/HCOH/0", 0.4, "disagrees"),
    ],
)
def test_another_printed_number_changes_what_it_says(name, before, path, value, after, monkeypatch):
    assert outcome(ALL[name]) == before
    changed = copy.deepcopy(paper_results())
    *folders, last = path.split("/")
    place = changed
    for folder in folders:
        place = place[folder]
    if isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    for module in (select, printed):
        monkeypatch.setattr(module, "paper_results", lambda: changed)
    monkeypatch.setattr(printed, "printed_records", select.printed_records.__wrapped__)
    assert outcome(ALL[name]) == after


def test_every_table_of_an_entry_can_be_looked_up():
    looked_up = {name: spec for name, spec in ALL.items() if "table" in spec}
    assert len(looked_up) > 30
    for name, spec in looked_up.items():
        assert outcome(spec) in OUTCOMES, name
        assert spec["table"]["is"] in {*CASES, *printed.SPECIAL}
