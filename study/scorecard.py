"""How many claims hold? Keep judged claims of all notebooks, count them, and show them."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from scipy.stats import false_discovery_control

from study import datasets, profile
from study.claims import VERDICTS, Claim, all_specs
from study.datasets import BENCHMARKS
from study.keep import write_atomically
from study.printed import OUTCOMES
from study.select import PAPER_METHODS
from study.statistics import RULE_VERSION, Judgement, expected_verdicts, judge_summary, margin_of
from study.tables import Table, number

__all__ = [
    "cell_table",
    "checked",
    "checks",
    "count_cells",
    "count_checks",
    "count_values",
    "counts",
]
__all__ += ["fold", "keep", "kept", "rates", "sensitivity", "show"]

KEPT = Path(__file__).parents[1] / "build" / "claims"
LEFT = 'style="text-align:left;vertical-align:top"'
# What of a claim's entry decides no verdict.
BESIDE = ("headline", "note", "table")


# ---- keeping -------------------------------------------------------------------------


def _basis(data: str) -> dict:
    """Return what a verdict rests on beside its entry: the rule, and the version of the data."""
    is_data_set = data in datasets.NAMES
    return {"rule": RULE_VERSION, "version": datasets.fingerprint(data) if is_data_set else ""}


def keep(claims: Sequence[Claim]) -> None:
    """Write judged claims to build/claims, where `kept` reads them.

    They replace the claims and cells that were kept for the same notebook before.
    """
    rows = {}
    for claim in claims:
        rows.setdefault(claim.notebook, []).append(asdict(claim) | _basis(claim.data))
    for notebook, own in rows.items():
        path = KEPT / profile.PROFILE / f"{notebook}.json"
        write_atomically(path, json.dumps(own, indent=1))


def kept() -> list[Claim]:
    """Return all claims of the paper and all cells of its tables, as they were last kept.

    A claim is "not run here" if it was never kept, or if its entry, the data that it rests on or
    the rule have changed since. `BESIDE` of its entry may change.
    """
    valid = {}
    for path in (KEPT / profile.PROFILE).glob("*.json"):
        for row in json.loads(path.read_text(encoding="utf-8")):
            basis = {name: row.pop(name, None) for name in ("rule", "version")}
            if basis != _basis(row["data"]):
                continue
            for reading in ("described", "published"):
                row[reading] = Judgement(**row[reading])
            valid[row["spec"]["id"]] = Claim(**row)
    claims = []
    for name, spec in all_specs().items():
        blank = Claim(spec, why=f"run notebooks/{spec['notebook']}.ipynb")
        claim = valid.get(name, blank)
        claims.append(replace(claim, spec=spec) if _tested(claim.spec) == _tested(spec) else blank)
    return claims


def _tested(spec: dict) -> dict:
    """Return what of an entry a verdict rests on."""
    return {name: spec[name] for name in spec if name not in BESIDE}


# ---- counting ------------------------------------------------------------------------


def counts(claims: Iterable[Claim]) -> dict[str, int]:
    """Return how many claims have each verdict, in the order of `VERDICTS`.

    >>> counts([])["undecided"]
    0
    """
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def rates(claims: Sequence[Claim]) -> dict[str, float]:
    """Return id -> false-discovery rate, over all claims that were tested here.

    Of the claims with a rate up to q, a share of q at most is expected to be decided wrongly
    (Benjamini and Hochberg, 1995). Exact facts and claims that are not testable here have no rate.
    """
    tested = [c for c in claims if c.described.n > 0 and c.verdict != "not testable here"]
    found = false_discovery_control([c.described.p for c in tested]) if tested else []
    return dict(zip((c.id for c in tested), map(float, found), strict=True))


def count_checks(claims: Iterable[Claim]) -> dict[str, int]:
    """Return how many claims the paper's own numbers check, by outcome. No verdict is counted.

    >>> count_checks([])
    {'agrees': 0, 'disagrees': 0, 'consistent': 0}
    """
    outcomes = [claim.own.outcome for claim in claims if claim.own]
    return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}


class Count(NamedTuple):
    """How many values are reproduced at a margin, and how many could be.

    ``ceiling`` is the expected number if every one of them were a perfect replication: by
    simulation of the rule, with the standard deviation that was measured.
    """

    n: int
    reproduced: int
    ceiling: float


def count_values(
    values: Sequence[Claim], published: bool = False, margin: float | None = None
) -> Count:
    """Count printed values that are reproduced, as described or as published.

    Parameters
    ----------
    values : claims with a printed value
        Those without a measurement in this reading are not counted.
    margin : float, optional
        Another margin than that of the claim, to see how much the count depends on it.
    """
    n = reproduced = 0
    ceiling = 0.0
    for claim in values:
        found = claim.published if published else claim.described
        if found.n < 2:
            continue
        limit = margin_of(claim.spec["unit"], claim.printed) if margin is None else margin
        judged = judge_summary(found.estimate, found.sd, found.n, claim.printed, limit)
        n += 1
        reproduced += judged.verdict == "reproduced"
        ceiling += expected_verdicts(found.sd, found.n, margin=limit, draws=2000)[0]
    return Count(n, reproduced, ceiling)


def count_cells(cells: Sequence[Claim]) -> str:
    """Return in words how many cells of a table are reproduced, beside the ceiling."""
    texts = []
    for reading in ("described", "published"):
        found = count_values(cells, reading == "published")
        if found.n:
            text = f"{found.reproduced} of {found.n} cells reproduced as {reading}"
            texts.append(f"{text} ({found.ceiling:.0f} expected of a perfect replication)")
    if any(cell.stand_in for cell in cells):
        texts.append("by a STAND-IN, which decides nothing")
    return ", ".join(texts) or "no cell was measured"


def sensitivity(cells: Sequence[Claim], margins: Sequence[float] = (0.01, 0.02, 0.03, 0.04)):
    """Return a table of the counts of reproduced values, and their ceilings, at several margins."""
    rows = []
    for reading in ("described", "published"):
        row = [f"as {reading}"]
        for margin in margins:
            found = count_values(cells, reading == "published", margin)
            row.append(f"{found.reproduced} of {found.n} ({found.ceiling:.0f})")
        rows.append(row)
    title = "Reproduced values by margin; in brackets the number expected of a perfect replication"
    return Table(title, ["reading", *map(str, margins)], rows)


# ---- showing -------------------------------------------------------------------------


class show:
    """Claims as a table, below the counts of their verdicts: HTML in Jupyter, else plain text.

    Claims that are not testable here have one line together, which points to the scorecard.
    ``whole=True`` lists them too.
    """

    def __init__(self, claims: Sequence[Claim], whole: bool = False):
        self.claims = claims
        self.listed = [c for c in claims if whole or c.verdict != "not testable here"]

    @property
    def summary(self) -> str:
        """One line with the counts that are not 0."""
        found = [f"{n} {verdict}" for verdict, n in counts(self.claims).items() if n]
        return f"{len(self.claims)} claims: {', '.join(found)}"

    @property
    def folded(self) -> str:
        """A line about the claims that are not listed, with a gap for the scorecard's name."""
        n = len(self.claims) - len(self.listed)
        return f"{n} claims that cannot be tested on these data are listed in {{}}." if n else ""

    def __repr__(self) -> str:
        lines = [self.summary]
        for c in self.listed:
            symbol = VERDICTS[c.verdict].symbol
            lines.append(f"{symbol} {c.verdict}: {c.claim} (Sec. {c.section})")
            lines.append(f"    {c.why}")
        return "\n".join([*lines, self.folded.format("13_scorecard.ipynb")]).rstrip()

    def _repr_html_(self) -> str:
        names = {"verdict": 15, "claim": 40}
        # A column that would be empty is left out.
        if any(c.printed is not None for c in self.listed):
            names["paper"] = 10
        if any(map(_ours, self.listed)):
            names["ours"] = 25
        heads = [f'<th {LEFT} width="{share}%">{name}</th>' for name, share in names.items()]
        rows = ["".join(heads)]
        for claim in self.listed:
            rows += _html_rows(claim, names)
        table = "".join(f"<tr>{row}</tr>" for row in rows)
        page = f"<p><b>{self.summary}</b></p>"
        if self.listed:
            page += f'<table style="width:100%">{table}</table>'
        link = '<a href="13_scorecard.ipynb">13_scorecard</a>'
        return page + (f"<p>{self.folded.format(link)}</p>" if self.folded else "")


class fold:
    """Things that Jupyter shows when a line is clicked; as plain text, below this line."""

    def __init__(self, line: str, *things):
        self.line = line
        self.things = things

    def __repr__(self) -> str:
        return "\n".join([self.line, *map(repr, self.things)])

    def _repr_html_(self) -> str:
        inner = "".join(thing._repr_html_() for thing in self.things)
        return f"<details><summary>{html.escape(self.line)}</summary>{inner}</details>"


def _verdict_html(verdict: str) -> str:
    """Return a verdict with its symbol, in its colour."""
    symbol, colour, _ = VERDICTS[verdict]
    style = f"color:{colour};white-space:nowrap"
    return f'<b style="{style}">{symbol}&nbsp;{verdict}</b>'


def _ours(c: Claim) -> str:
    """Return our mean and its interval. A value of a stand-in is not set beside the paper's."""
    found = c.described
    if math.isnan(found.estimate) or c.stand_in:
        return ""
    interval = f" [{found.low:.3f}, {found.high:.3f}]" if math.isfinite(found.low) else ""
    return f"{found.estimate:.3f}{interval}"


def _html_rows(c: Claim, names: Iterable[str]) -> tuple[str, str]:
    """Return the cells of one claim, and a line below them with what decided and where.

    The note of its entry is about an error of the paper, or says how its words are read.
    """
    cells = {"verdict": _verdict_html(c.verdict)}
    cells["claim"] = f"Sec. {c.section}: {html.escape(c.claim)}"
    cells["paper"] = "" if c.printed is None else f"{c.printed:g}"
    cells["ours"] = _ours(c)
    above = "".join(f"<td {LEFT}>{cells[name]}</td>" for name in names)
    remarks = [c.why, c.spec.get("note", "")]
    remarks += [f"by the paper's own numbers: {c.own.outcome}, {c.own.why}"] if c.own else []
    remarks += ["true by construction" if c.by_construction else "", c.data]
    line = "; ".join(html.escape(text.rstrip(".")) for text in remarks if text)
    width = above.count("<td") - 1
    return above, f"<td></td><td colspan={width} {LEFT}><small>{line}</small></td>"


def checked(claims: Sequence[Claim]) -> str:
    """Return in words how many claims the paper's own numbers check, and what they say."""
    agrees, disagrees, consistent = count_checks(claims).values()
    n = agrees + disagrees + consistent
    return (
        f"{n} of {len(claims)} checked by the paper's own numbers: {agrees} agree, "
        f"{disagrees} disagree, {consistent} are consistent but not proven"
    )


def checks(claims: Sequence[Claim], outcomes: Sequence[str] = tuple(OUTCOMES)) -> Table:
    """Return a table of the claims that the paper's own numbers check, with what was computed."""
    rows = []
    for claim in claims:
        if claim.own and claim.own.outcome in outcomes:
            data = BENCHMARKS[claim.role].title if claim.role else "all"
            rows.append([claim.section, data, claim.claim, claim.own.outcome, claim.own.why])
    title = f"What the paper's own numbers say about {len(rows)} claims: {' or '.join(outcomes)}"
    return Table(title, ["Sec.", "data", "the paper says", "its numbers", "which are"], rows)


def cell_table(cells: Sequence[Claim], metric: str) -> Table:
    """Return the judged cells of one of the paper's tables: a row per method, a column per length.

    A cell has our mean, as described, and the verdict's symbol; then the printed value in
    brackets. A second symbol, after a stroke, is the verdict as published where that differs. Table
    6 has a column for each number of queries.
    """
    by_place = {}
    for cell in cells:
        measure = cell.spec["measure"]
        if measure["metric"] == metric:
            corner = "queries" if "queries" in measure else "bits"
            by_place[measure["method"], measure[corner]] = cell
    if not by_place:
        raise ValueError(
            f"no cell has the metric {metric!r}; pass that of the table, such as 'mAP' or 'P@H2'."
        )
    columns = sorted({column for _, column in by_place})
    rows = []
    for method in PAPER_METHODS:
        row = [method]
        for column in columns:
            row.append(_cell_text(by_place[method, column]))
        rows.append(row)
    # Cells without a record have no data.
    first = max(cells, key=lambda cell: cell.described.n > 0)
    data = first.data or "no data"
    if first.stand_in:
        data += " (STAND-IN)"
    title = f"{first.section}, {metric} on {data}: ours, verdict, the paper's; "
    title += count_cells(list(by_place.values()))
    return Table(title, [corner, *map(str, columns)], rows)


def _cell_text(cell: Claim) -> str:
    printed = f"({number(cell.printed)})"
    if not cell.described.n:
        return f"- {printed}"
    verdict = cell.there or cell.verdict
    symbols = VERDICTS["different" if verdict == "artefact" else verdict].symbol
    if cell.published.n and VERDICTS[cell.published.verdict].symbol != symbols:
        symbols += f"/{VERDICTS[cell.published.verdict].symbol}"
    return f"{number(cell.described.estimate)} {symbols} {printed}"
