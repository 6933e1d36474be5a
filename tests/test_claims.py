"""Claims: verdicts from records and by hand, as published, on stand-ins; cells of tables."""

import math

import numpy as np
import pytest
from claim_files import GAIN, ORDER, VALUE, entry, record, seeds, write

from study import claims, profile, select
from study.claims import Exact, Sample
from study.datasets import BENCHMARKS

ALL = claims.specs()
NAN = math.nan
STAND_IN = {"role": "cifar10", "dataset": "cifar10_vgg16", "stand_in_for": "cifar10"}


@pytest.fixture(autouse=True)
def paper_profile(monkeypatch):
    monkeypatch.setattr(profile, "PROFILE", "paper")


@pytest.fixture
def judge(monkeypatch, tmp_path):
    """Return a function that judges one entry from records, or from a measurement by hand."""

    def judge_one(spec, records=(), hand=None):
        write(tmp_path, monkeypatch, spec)
        by_hand = {} if hand is None else {"x": hand}
        (claim,) = claims.judge("n", list(records), by_hand)
        return claim

    return judge_one


# ---- verdicts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ours, verdict",
    [
        ([0.60, 0.61, 0.62] * 3, "supported"),
        ([0.40, 0.41, 0.42] * 3, "contradicted"),
        ([0.60, 0.40, 0.50] * 3, "undecided"),
        ([0.60], "undecided"),
    ],
)
def test_an_order_is_judged_by_its_gaps(ours, verdict, judge):
    claim = judge(entry(ORDER), seeds("HMOH", ours) + seeds("OKH", [0.5] * len(ours)))
    assert (claim.verdict, claim.data, claim.described.n) == (verdict, "mnist", len(ours))
    assert claim.described.estimate == pytest.approx(np.mean(ours) - 0.5)
    assert claim.why.startswith("weakest case: at 32 bits HMOH over OKH ")
    assert (claim.stand_in, claim.there, claim.published.verdict) == (False, None, "")


@pytest.mark.parametrize(
    "ours, verdict",
    [
        ([0.80, 0.81, 0.80], "reproduced"),
        ([0.90, 0.91, 0.90], "different"),
        ([0.81, 0.83, 0.82], "undecided"),
    ],
)
def test_a_value_is_judged_by_its_margin(ours, verdict, judge):
    claim = judge(entry(VALUE, 0.8), seeds("HMOH", ours))
    assert claim.verdict == verdict
    found = claim.described
    assert found.low < found.estimate < found.high


def test_the_margin_is_that_of_the_unit(judge):
    records = seeds("HMOH", [0.715] * 3) + seeds("OKH", [0.5] * 3)
    assert judge(entry(GAIN, 0.4), records).verdict == "reproduced"  # a tenth of what is printed
    assert judge(entry(GAIN, 0.35), records).verdict == "different"
    assert judge(entry(VALUE, 0.68), records).verdict == "different"
    assert judge(entry(VALUE, 0.68, unit="exponent"), records).verdict == "reproduced"


def test_most_and_slack_of_the_entry_are_used(judge):
    records = []
    for n_bits, value in [(8, 0.6), (16, 0.6), (32, 0.4)]:
        records += seeds("HMOH", [value] * 7, n_bits=n_bits)
        records += seeds("OKH", [0.5] * 7, n_bits=n_bits)
    measure = ORDER | {"bits": [8, 16, 32]}
    assert judge(entry(measure), records).verdict == "contradicted"
    assert judge(entry(measure | {"most": True}), records).verdict == "supported"
    assert judge(entry(measure | {"slack": 0.2}), records).verdict == "supported"


# ---- by hand -------------------------------------------------------------------------


def test_a_sample_by_hand_is_a_gap_cases_or_a_value(judge):
    for values, verdict, why in [
        ([0.1, 0.2, 0.15], "supported", "0.150 ["),
        ({"a": [0.1, 0.2] * 3, "b": np.array([-0.14, -0.16] * 3)}, "contradicted", "b -0.150 ["),
        ([{"a": [0.1, 0.1]}, {"b": [0.2, 0.2]}], "supported", "a 0.100 ["),
    ]:
        claim = judge(entry(role=None), hand=Sample(values))
        assert (claim.verdict, claim.data) == (verdict, "theory")
        assert claim.why.startswith(why)
    hand = Sample([0.50, 0.52, 0.49], why="the gap is")
    claim = judge(entry(printed=0.5, role=None), hand=hand)
    assert claim.described.n == 3 and claim.why.startswith("the gap is 0.503 [")


def test_a_time_is_reported_and_never_judged(judge):
    hand = Sample({"a over b": [0.5, 0.6], "a over c": [9.0, 9.2]}, published=[1.0, 1.0])
    claim = judge(entry(role=None, kind="time"), hand=hand)
    assert (claim.verdict, claim.described.n, claim.published.n) == ("reported", 0, 0)
    assert claim.why.startswith("a over b 0.55 [")
    assert "to a over c 9.10 [" in claim.why
    assert "as published 1.00" in claim.why


def test_what_cannot_be_tested_says_why(judge):
    spec = entry(role=None, untestable="it is about data that do not ship")
    del spec["by_hand"]
    claim = judge(spec)
    assert (claim.verdict, claim.why) == ("not testable here", spec["untestable"])


def test_an_exact_fact_is_true_or_equal_to_the_printed_number(judge):
    truth = entry(role=None, kind="exact")
    number = entry(printed=256, role=None, kind="exact")
    for spec, value, verdict in [
        (truth, True, "right"),
        (truth, np.False_, "wrong"),
        (number, 256, "right"),
        (number, 255.9, "wrong"),
        (number, True, "right"),
    ]:
        claim = judge(spec, hand=Exact(value, "counted"))
        assert (claim.verdict, claim.described.n) == (verdict, 0)
        assert math.isnan(claim.described.p)
        assert claim.why.startswith("counted")
    with pytest.raises(ValueError, match=r"prints no number, so 0.5 must be True or False"):
        judge(truth, hand=Exact(0.5))


def test_a_measurement_of_the_wrong_kind_is_refused(judge):
    with pytest.raises(ValueError, match=r"x: kind 'exact' needs claims.Exact"):
        judge(entry(role=None, kind="exact"), hand=Sample([0.1, 0.2]))
    with pytest.raises(ValueError, match=r"x: kind 'order' needs claims.Sample"):
        judge(entry(role=None), hand=Exact(True))
    with pytest.raises(ValueError, match=r"about mnist, not theory; pass Sample\(data="):
        judge(entry(), hand=Sample([0.1, 0.2]))


def test_claims_that_cannot_be_settled_are_all_named(monkeypatch, tmp_path):
    entries = [entry(id="hand"), entry(ORDER, id="order"), entry(VALUE, 0.5, "nuswide", id="role")]
    write(tmp_path, monkeypatch, *entries)
    by_hand = {"order": Sample([1, 2]), "typo": Sample([1, 2])}
    with pytest.raises(ValueError) as error:
        claims.judge("n", seeds("HMOH", [0.5]), by_hand)
    for words in (
        "hand: by_hand has no entry: measure it",
        "order: no record of OKH at 32 bits with 'mAP'",
        "role: no records of nuswide",
        "typo: not a claim",
        "order: not a claim",
    ):
        assert words in str(error.value)


# ---- as published --------------------------------------------------------------------


@pytest.mark.parametrize(
    "described, published, verdict, as_published",
    [
        (0.4, 0.9, "artefact", "supported"),
        (0.4, 0.45, "contradicted", "contradicted"),
        (0.4, 0.5, "contradicted", "undecided"),
        (0.6, 0.9, "supported", "supported"),
        (0.6, 0.4, "supported", "contradicted"),
        (0.5, 0.9, "undecided", "supported"),
    ],
)
def test_what_is_supported_only_as_published_is_an_artefact(
    described, published, verdict, as_published, judge
):
    noise = np.array([0.01, -0.01, 0, 0.005, -0.005, 0.002, -0.002])
    records = seeds("HMOH", described + noise) + seeds("OKH", [0.5] * 7)
    records += seeds("HMOH", published + noise, published=True)
    claim = judge(entry(ORDER), records)
    assert (claim.verdict, claim.published.verdict) == (verdict, as_published)
    # The numbers are those as described.
    assert claim.described.estimate == pytest.approx(described + noise.mean() - 0.5)
    assert f"; as published: {as_published}, " in claim.why
    assert ("HMOH.m" in claim.why) == (verdict == "artefact")


def test_a_value_by_hand_can_be_an_artefact(judge):
    hand = Sample([0.1, 0.1], "mnist", published=[0.8, 0.8], faults=("a slip in x.m",))
    claim = judge(entry(printed=0.8), hand=hand)
    assert (claim.verdict, claim.published.verdict) == ("artefact", "reproduced")
    assert claim.why.endswith("(a slip in x.m)")


# ---- not the paper's data ------------------------------------------------------------


@pytest.mark.parametrize("value", [0.1, 0.9])
@pytest.mark.parametrize("measure", [VALUE, ORDER])
def test_a_stand_in_is_never_a_verdict_on_the_paper(measure, value, judge):
    records = seeds("HMOH", [value] * 7, **STAND_IN) + seeds("OKH", [0.5] * 7, **STAND_IN)
    spec = entry(measure, printed=0.9 if measure is VALUE else None, role="cifar10")
    claim = judge(spec, records)
    good, bad = ("reproduced", "different") if measure is VALUE else ("supported", "contradicted")
    shows = good if value == 0.9 else bad
    assert (claim.verdict, claim.data) == ("not testable here", "cifar10_vgg16")
    assert (claim.stand_in, claim.there) == (True, shows)
    assert claim.why.startswith(f"STAND-IN cifar10_vgg16: {shows} there, ")
    own = seeds("HMOH", [value] * 7, role="cifar10") + seeds("OKH", [0.5] * 7, role="cifar10")
    claim = judge(spec, records + own)
    assert (claim.verdict, claim.stand_in, claim.there) == (shows, False, None)
    if measure is ORDER and value == 0.1:
        records += seeds("HMOH", [0.9] * 7, published=True, **STAND_IN)
        claim = judge(spec, records)
        assert (claim.verdict, claim.there) == ("not testable here", "artefact")


def test_a_stand_in_by_hand_is_known_by_its_name(judge):
    for data, value, there in [
        ("udhr205", 0.3, "reproduced"),
        ("udhr205", NAN, None),
        ("mnist", 0.3, "reproduced"),
        ("places205", 0.3, None),
        ("random features of the same size", 0.3, None),
    ]:
        is_stand_in = data in ("udhr205", "mnist")
        claim = judge(entry(printed=0.3, role="places205"), hand=Sample([value, value], data))
        assert claim.verdict == ("not testable here" if is_stand_in else "reproduced")
        assert (claim.data, claim.stand_in, claim.there) == (data, is_stand_in, there)


def test_data_without_a_benchmark_have_no_verdict_on_the_paper(judge):
    own = {"role": None, "dataset": "digits", "n_queries": 1000}
    records = seeds("HMOH", [0.847] * 7, **own)
    cells = claims.cells("mnist", records)
    assert {(cell.verdict, cell.data, cell.stand_in) for cell in cells} == {
        ("not testable here", "", False)
    }
    with pytest.raises(ValueError, match="no records of mnist"):
        judge(entry(VALUE, 0.847), records)
    with pytest.raises(ValueError, match="about mnist, not digits"):
        judge(entry(printed=0.847), hand=Sample([0.847] * 7, "digits"))


def test_the_quick_profile_is_no_verdict_and_lacks_nothing(judge, monkeypatch):
    monkeypatch.setattr(profile, "PROFILE", "quick")
    for n_bits, there in [(32, "reproduced"), (16, None)]:
        claim = judge(entry(VALUE, 0.8), seeds("HMOH", [0.8, 0.8], n_bits=n_bits))
        assert (claim.verdict, claim.stand_in) == ("not testable here", False)
        assert claim.there == there and claim.why.startswith("quick profile: ")
    theory = entry(printed=0.5, role=None)
    assert judge(theory, hand=Sample([0.5, 0.5])).verdict == "reproduced"
    with pytest.raises(ValueError, match="x: by_hand has no entry"):
        judge(theory)


# ---- cells ---------------------------------------------------------------------------


@pytest.mark.parametrize("role", BENCHMARKS)
def test_every_cell_of_a_table_is_judged(role):
    records = []
    for run in select.printed_records(role).values():
        records += [run | {"dataset": role, "seed": seed} for seed in range(2)]
    cells = claims.cells(role, records)
    assert len(cells) == len({cell.id for cell in cells}) == 8 * 2 * 6
    benchmark = BENCHMARKS[role]
    for cell in cells:
        assert (cell.verdict, cell.kind, cell.role) == ("reproduced", "cell", role)
        assert (cell.section, cell.notebook) == (f"Table {benchmark.table}", benchmark.notebook)
        assert cell.described.estimate == pytest.approx(cell.printed)
    changed = claims.cells(role, [run | {"P@H2": 2} for run in records])
    found = [cell.verdict for cell in changed]
    assert (found.count("reproduced"), found.count("different")) == (48, 48)


def test_the_cells_of_table_6_have_a_number_of_queries():
    printed = select.paper_results()["variation_places205_32bit_mAP@1000"]
    records = []
    for n, row in printed.items():
        for method, (value, _) in row.items():
            more = {"mAP@1000": value, "n_queries": 205 * int(n)}
            records += [record(method, 32, s, "places205", **more) for s in range(2)]
    cells = claims.cells("places205", records, table=6)
    assert len(cells) == 9 * 8
    assert {(c.verdict, c.section) for c in cells} == {("reproduced", "Table 6")}
    assert {c.notebook for c in cells} == {"10_query_variation"}


def test_cells_need_records_and_can_be_artefacts():
    records = seeds("HMOH", [0.7] * 7) + seeds("HMOH", [0.85] * 7, published=True)
    # No published program of OKH can be read.
    records += seeds("OKH", [0.3] * 7) + seeds("OKH", [0.224] * 7, published=True)
    cells = {cell.id: cell for cell in claims.cells("mnist", records)}
    assert len(cells) == 96
    tested = {
        name: (cell.verdict, cell.published.verdict)
        for name, cell in cells.items()
        if cell.verdict != "not testable here"
    }
    assert tested == {
        "table4-mAP-OKH-32": ("different", ""),
        "table4-mAP-HMOH-32": ("artefact", "reproduced"),
    }
    assert cells["table4-mAP-OKH-8"].why == "no record of OKH at 8 bits with 'mAP'"


def test_what_the_papers_own_numbers_say_is_part_of_a_claim(judge):
    records = seeds("HMOH", [0.847] * 2)
    for printed, outcome in [(0.847, "agrees"), (0.9, "disagrees")]:
        assert judge(entry(VALUE, printed), records).own.outcome == outcome
    assert judge(entry(role=None), hand=Sample([1, 2])).own is None
