"""Scorecard: judged claims are kept, counted and shown."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from claim_files import BITS, ORDER, VALUE, entry, record, seeds, write
from IPython.core.formatters import DisplayFormatter

from study import claims, profile, scorecard, shipped, statistics
from study.claims import Claim, Exact, Sample
from study.select import PAPER_METHODS
from study.statistics import MARGINS, Judgement

HAND = Sample([0.51, 0.51])


@pytest.fixture(autouse=True)
def paper_profile(monkeypatch, tmp_path):
    monkeypatch.setattr(profile, "PROFILE", "paper")
    monkeypatch.setattr(scorecard, "KEPT", tmp_path / "claims")


@pytest.fixture
def only(monkeypatch, tmp_path):
    """Return a function that makes the given entries the claims file."""
    return lambda *entries: write(tmp_path, monkeypatch, *entries)


def theory(**more):
    return entry(printed=0.5, role=None, **more)


def kept():
    """Return the claims that come back, without the cells of tables."""
    return [claim for claim in scorecard.kept() if claim.kind != "cell"]


def verdicts():
    return [claim.verdict for claim in kept()]


def claim(verdict="supported", n=3, p=0.01, **more):
    """Return a judged claim."""
    found = Judgement(verdict, 0.1, 0.0, 0.2, n, p)
    return Claim(entry(role=None, **more), verdict, described=found)


# ---- keeping -------------------------------------------------------------------------


def test_kept_claims_come_back_and_all_others_are_not_run(only):
    only(theory(), theory(id="y", notebook="m"))
    judged = claims.judge("n", [], {"x": HAND})
    scorecard.keep(judged)
    back = kept()
    assert [c.verdict for c in back] == ["reproduced", "not run here"]
    assert repr(back[0]) == repr(judged[0])
    assert back[1].why == "run notebooks/m.ipynb"
    assert [path.name for path in (scorecard.KEPT / "paper").iterdir()] == ["n.json"]


def test_claims_with_nan_numpy_numbers_or_a_stand_in_come_back(only):
    only(
        theory(),
        entry(id="y", role=None),
        entry(id="z", role=None, kind="exact"),
        entry(id="s", printed=0.3, role="places205"),
    )
    by_hand = {
        "x": Sample(np.float32([0.5])),
        "y": Sample({"a": np.array([0.1, math.nan, 0.2])}),
        "z": Exact(np.True_),
        "s": Sample([0.3, 0.3], "udhr205"),
    }
    judged = claims.judge("n", [], by_hand)
    scorecard.keep(judged)
    assert repr(kept()) == repr(judged)
    assert (judged[3].stand_in, judged[3].there) == (True, "reproduced")


def test_a_second_run_takes_the_place_of_the_first_and_profiles_keep_their_own(only, monkeypatch):
    only(theory())
    scorecard.keep(claims.judge("n", [], {"x": HAND}))
    scorecard.keep(claims.judge("n", [], {"x": Sample([0.7, 0.7])}))
    assert verdicts() == ["different"]
    monkeypatch.setattr(profile, "PROFILE", "quick")
    assert verdicts() == ["not run here"]
    scorecard.keep(claims.judge("n", [], {"x": HAND}))
    monkeypatch.setattr(profile, "PROFILE", "paper")
    assert verdicts() == ["different"]


def test_a_verdict_on_an_older_entry_is_not_shown(only):
    only(theory())
    scorecard.keep(claims.judge("n", [], {"x": HAND}))
    for change in ({"printed": 0.6}, {"unit": "gain"}, {"claim": "B."}, {"notebook": "m"}):
        only(theory() | change)
        assert verdicts() == ["not run here"]
    only(theory())
    assert verdicts() == ["reproduced"]


def test_what_stands_beside_a_verdict_may_change(only):
    only(theory())
    scorecard.keep(claims.judge("n", [], {"x": HAND}))
    only(theory() | {"note": "Read so.", "headline": True})
    assert verdicts() == ["reproduced"]
    assert kept()[0].headline and kept()[0].spec["note"] == "Read so."


def test_a_verdict_by_an_older_rule_is_not_shown(only, monkeypatch):
    only(theory())
    scorecard.keep(claims.judge("n", [], {"x": HAND}))
    [path] = (scorecard.KEPT / "paper").iterdir()
    assert json.loads(path.read_text())[0]["rule"] == statistics.RULE_VERSION
    monkeypatch.setattr(scorecard, "RULE_VERSION", "1-" + scorecard.RULE_VERSION)
    assert verdicts() == ["not run here"]
    # Before 2026-11-19 no version was kept.
    path.write_text(json.dumps([{"id": "x", "data": "theory", "digest": "0"}]))
    assert verdicts() == ["not run here"]


def test_a_verdict_on_other_data_is_not_shown(only, monkeypatch):
    only(entry(printed=0.5))
    scorecard.keep(claims.judge("n", [], {"x": Sample([0.51, 0.51], "mnist")}))
    monkeypatch.setitem(shipped.SHA256, "udhr205.npz", "0" * 64)
    assert verdicts() == ["reproduced"]
    monkeypatch.setitem(shipped.SHA256, "mnist.npz", "0" * 64)
    assert verdicts() == ["not run here"]


def test_claims_and_cells_are_kept_together(only):
    only(entry(VALUE, 0.8, notebook="03_mnist"))
    records = seeds("HMOH", [0.847, 0.847])
    both = claims.judge("03_mnist", records) + claims.cells("mnist", records)
    scorecard.keep(both)
    back = {c.id: c for c in scorecard.kept()}
    assert len(back) == 1 + 4 * 96 + 72
    assert back["x"].verdict == "different"
    assert back["table4-mAP-HMOH-32"].verdict == "reproduced"
    assert back["table4-mAP-OKH-8"].verdict == "not testable here"
    assert back["table2-mAP-OKH-8"].verdict == "not run here"


# ---- counting ------------------------------------------------------------------------


def test_counts_have_all_verdicts():
    found = scorecard.counts([claim(), claim("artefact"), claim()])
    assert found == dict.fromkeys(claims.VERDICTS, 0) | {"supported": 2, "artefact": 1}
    assert list(found) == list(claims.VERDICTS)


def test_checks_by_the_papers_own_numbers_are_counted_apart_from_verdicts():
    judged = [claim("contradicted", id="a", measure=ORDER), claim("not testable here", id="b")]
    judged[0] = replace(judged[0], spec=entry(ORDER))
    assert scorecard.count_checks(judged) == {"agrees": 1, "disagrees": 0, "consistent": 0}
    table = scorecard.checks(judged)
    assert scorecard.checked(judged).startswith(
        "1 of 2 checked by the paper's own numbers: 1 agree,"
    )
    assert [row[3] for row in table.rows] == ["agrees"]
    assert "HMOH 0.847, OKH 0.224 at 32 bits" in str(table)
    assert scorecard.checks(judged, ["disagrees"]).rows == []


def test_rates_are_over_the_claims_that_were_tested_here():
    tested = [claim(id="a", p=0.01), claim("undecided", id="b", p=0.5)]
    tested += [claim("different", id="c", p=0.03)]
    others = [claim("right", id="d", n=0, p=math.nan)]
    others += [claim("not testable here", id="e", p=0.001)]
    others += [claim("not run here", id="f", n=0, p=math.nan)]
    found = scorecard.rates(tested + others)
    assert found == pytest.approx({"a": 0.03, "b": 0.5, "c": 0.045})
    assert scorecard.rates(others) == {}


@pytest.fixture
def cells():
    """Return judged cells of MNIST's table: two of HMOH and one of OKH."""
    noise = np.array([0.004, -0.004, 0.002, -0.002, 0.001, -0.001])
    records = seeds("HMOH", 0.70 + noise) + seeds("HMOH", 0.85 + noise, published=True)
    records += seeds("HMOH", 0.743 + noise, n_bits=8) + seeds("OKH", 0.224 + 20 * noise)
    return claims.cells("mnist", records)


def test_cells_are_counted_in_both_readings_beside_their_ceiling(cells):
    # The noisy cell of OKH, which has no published reading, is beyond a perfect replication too.
    described, published = (scorecard.count_values(cells, p) for p in (False, True))
    assert (described.n, described.reproduced) == (3, 1)
    assert described.ceiling == pytest.approx(2, abs=0.1)
    assert (published.n, published.reproduced) == (1, 1)
    assert published.ceiling == pytest.approx(1, abs=0.1)
    text = scorecard.count_cells(cells)
    assert text.startswith("1 of 3 cells reproduced as described (2 expected")
    assert "1 of 1 cells reproduced as published (1 expected" in text


def test_a_wider_margin_reproduces_more(cells):
    found = [scorecard.count_values(cells, margin=m).reproduced for m in (0.001, 0.02, 0.2)]
    assert found == [0, 1, 3]
    table = scorecard.sensitivity(cells)
    assert [row[0] for row in table.rows] == ["as described", "as published"]
    assert table.rows[0][2] == "1 of 3 (2)"


# ---- showing -------------------------------------------------------------------------


@pytest.fixture
def table(only):
    """Return a table of two claims."""
    only(theory(note="As > meant."), entry(role=None, id="y", by_construction=True))
    hand = {"x": HAND, "y": Sample([-1, -1.1] * 3, data="random <X>")}
    return scorecard.show(claims.judge("n", [], hand))


def test_text_says_the_verdict_in_words(table):
    assert repr(table).splitlines()[:3] == [
        "2 claims: 1 contradicted, 1 reproduced",
        "✓ reproduced: A < B. (Sec. 4)",
        f"    0.510 [0.510, 0.510] of 2 seeds, printed 0.5 within {MARGINS['mAP']}",
    ]
    assert "✗ contradicted: A < B. (Sec. 4)" in repr(table)


def test_html_is_escaped_and_has_notes(table):
    page = table._repr_html_()
    assert "A &lt; B." in page
    assert "A < B" not in page
    assert "As &gt; meant" in page
    assert "random &lt;X&gt;" in page
    assert page.count("true by construction") == 1
    assert "✓&nbsp;reproduced" in page
    assert "✗&nbsp;contradicted" in page
    assert "2 claims: 1 contradicted, 1 reproduced" in page


def test_html_tells_what_was_published_and_what_the_papers_own_numbers_say(only):
    only(entry(ORDER))
    records = seeds("HMOH", [0.4] * 7) + seeds("OKH", [0.5] * 7)
    records += seeds("HMOH", [0.9] * 7, published=True)
    judged = claims.judge("n", records)
    page = scorecard.show(judged)._repr_html_()
    assert "!&nbsp;artefact" in page
    assert "as published: supported" in page
    assert "own numbers: agrees" in page
    assert "<th" in page and ">paper</th>" not in page  # nothing is printed, so no empty column
    turned = judged[0].spec | {"measure": ORDER | {"ranking": ["OKH", "HMOH"]}}
    page = scorecard.show([replace(judged[0], spec=turned)])._repr_html_()
    assert "own numbers: disagrees" in page


def test_claims_that_are_not_testable_here_have_one_line_together():
    listed = [claim(id="a"), claim("not testable here", id="b", claim="Untested.")]
    shown = scorecard.show(listed)
    for text in (repr(shown), shown._repr_html_()):
        assert "Untested" not in text and "1 not testable here" in text
        assert "13_scorecard.ipynb" in text
    whole = scorecard.show(listed, whole=True)
    for text in (repr(whole), whole._repr_html_()):
        assert "Untested" in text and "13_scorecard.ipynb" not in text
    assert "<table" not in scorecard.show(listed[1:])._repr_html_()


def test_what_is_folded_is_behind_a_line_in_html_and_below_it_in_text():
    shown = scorecard.show([claim(claim="A < B.")])
    folded = scorecard.fold("Sec. 1 & more", shown)
    assert repr(folded).splitlines() == ["Sec. 1 & more", *repr(shown).splitlines()]
    page = folded._repr_html_()
    assert page.startswith("<details><summary>Sec. 1 &amp; more</summary>")
    assert shown._repr_html_() in page


def test_every_verdict_is_shown_with_its_symbol_and_colour():
    page = scorecard.show([claim(verdict) for verdict in claims.VERDICTS], whole=True)
    for verdict, (symbol, colour, _) in claims.VERDICTS.items():
        line = f'<b style="color:{colour};white-space:nowrap">{symbol}&nbsp;{verdict}</b>'
        assert line in page._repr_html_()


def test_jupyter_stores_the_table_and_its_text(table):
    data, _ = DisplayFormatter().format(table)
    assert data == {"text/plain": repr(table), "text/html": table._repr_html_()}
    # The counts of the verdicts are in both.
    assert all(table.summary in text for text in data.values())


# ---- tables of cells -----------------------------------------------------------------


def test_a_table_of_cells_has_ours_the_verdict_and_the_papers():
    records = seeds("HMOH", [0.7] * 7) + seeds("HMOH", [0.85] * 7, published=True)
    records += seeds("OKH", [0.224] * 7) + seeds("HMOH", [0.74] * 7, n_bits=8)
    found = scorecard.cell_table(claims.cells("mnist", records), "mAP")
    assert found.title.startswith("Table 4, mAP on mnist: ours, verdict, the paper's; 2 of 3 cells")
    assert found.head == ["bits", *map(str, BITS)]
    assert [row[0] for row in found.rows] == PAPER_METHODS
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["HMOH"][0] == "0.740 ✓ (0.743)"
    assert rows["HMOH"][2] == "0.700 ✗/✓ (0.847)"
    assert rows["OKH"][2] == "0.224 ✓ (0.224)"
    assert rows["OKH"][0] == "- (0.100)"


def test_a_table_of_a_stand_in_says_so_and_shows_the_verdict_there():
    other = {"role": "cifar10", "dataset": "cifar10_vgg16", "stand_in_for": "cifar10"}
    records = seeds("HMOH", [0.733] * 7, "P@H2", **other)
    found = scorecard.cell_table(claims.cells("cifar10", records), "P@H2")
    assert found.title.startswith("Table 2, P@H2 on cifar10_vgg16 (STAND-IN): ours")
    assert found.title.endswith("by a STAND-IN, which decides nothing")
    assert found.rows[-1][3] == "0.733 ✓ (0.743)"


def test_table_6_has_a_column_for_each_number_of_queries():
    more = {"mAP@1000": 0.3, "n_queries": 4100}
    records = [record("HMOH", 32, seed, "places205", **more) for seed in range(2)]
    cells = claims.cells("places205", records, table=6)
    found = scorecard.cell_table(cells, "mAP")
    assert len(found.head) == 1 + 9
    assert found.head[:2] == ["queries", "4100"]
    assert found.rows[-1][1:3] == ["0.300 ✓ (0.305)", "- (0.297)"]


def test_a_table_needs_a_metric_of_the_cells():
    with pytest.raises(ValueError, match=r"no cell has the metric 'AUC'; pass that of"):
        scorecard.cell_table(claims.cells("mnist", []), "AUC")
    found = scorecard.cell_table(claims.cells("mnist", []), "mAP")
    assert found.title.startswith("Table 4, mAP on no data: ")
    assert found.title.endswith("no cell was measured")
