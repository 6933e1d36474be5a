"""The claims of the paper (Sec. 3 and 4), each with a verdict computed from measurements.

data/paper_claims.json lists the claims: what the paper says and where, the number it prints, and
how to measure it. A claim is measured from records of `protocol.run` ("measure", see measures.py)
or in a notebook ("by_hand"). Verdicts are computed, never typed:

    holds              a printed value is met within .02 or two standard deviations (a gain must
                       also have the same sign); a gap is above two of its standard deviations
    fails              the claim does not hold
    artefact           the claim fails, but it holds with the named fault of the published
                       benchmark switched on
    not testable here  the data are a STAND-IN for the paper's, or the profile is "quick";
                       `Claim.there` has the verdict that these data would give
    not run here       the notebook has not been run since the claim or the data changed (only
                       `kept` returns this)
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from study import datasets
from study.measures import PAPER_METHODS, TOLERANCE, Measured, Missing, from_records
from study.records import write_atomically

__all__ = [
    "COUNTS_TYPE",
    "PAPER_METHODS",
    "VERDICTS",
    "Claim",
    "Measured",
    "counts",
    "judge",
    "keep",
    "kept",
    "show",
    "specs",
]

ROOT = Path(__file__).parents[1]
CLAIMS = ROOT / "data" / "paper_claims.json"
KEPT = ROOT / "build" / "claims"

# The mime type of the counts in the outputs of a notebook.
COUNTS_TYPE = "application/vnd.hmoh.verdicts+json"


class Verdict(NamedTuple):
    """How a verdict is shown, and what it means."""

    symbol: str
    colour: str
    meaning: str


VERDICTS = {
    "holds": Verdict("✓", "#00664b", "as the paper says"),
    "fails": Verdict("✗", "#a63c00", "not as the paper says"),
    "artefact": Verdict("!", "#8a5a00", "only with a fault of the published benchmark"),
    "not testable here": Verdict("?", "#00507d", "not measured on the paper's data"),
    "not run here": Verdict("-", "#555555", "its notebook has not been run"),
}
NOTHING = Measured(math.nan, data="")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its verdict.

    Attributes
    ----------
    id, section, role, notebook, claim, printed
        As in data/paper_claims.json.
    data : str
        Name of the data set that was measured, "theory", or "" if nothing was measured.
    measured, spread : float
        As in `Measured`; nan if nothing was measured.
    verdict : str
        One of `VERDICTS`.
    why : str
        One line that tells a reader what decided the verdict.
    stand_in : bool
        Whether the data stand in for the paper's. The verdict is then "not testable here".
    there : str or None
        For a claim that is not testable here: the verdict that the stand-in or the quick profile
        would give, or None if there is no value.
    """

    id: str
    section: str
    role: str | None
    notebook: str
    claim: str
    printed: float | None
    data: str
    measured: float
    spread: float
    verdict: str
    why: str
    stand_in: bool = False
    there: str | None = None


def specs(notebook: str | None = None) -> dict[str, dict]:
    """Return id -> entry of data/paper_claims.json, in the order of the paper.

    ``notebook`` selects the claims of one notebook; by default all are returned.
    """
    found = {}
    for spec in json.loads(CLAIMS.read_text(encoding="utf-8")):
        if notebook in (None, spec["notebook"]):
            found[spec["id"]] = spec
    if not found:
        raise ValueError(
            f"no claims belong to notebook {notebook!r}; "
            "pass its name without .ipynb, like '02_mnist'."
        )
    return found


# ---- judging -------------------------------------------------------------------------


def judge(
    notebook: str,
    records: Sequence[dict],
    by_hand: Mapping[str, Measured] | None = None,
    fault_records: Mapping[str, Sequence[dict]] | None = None,
) -> list[Claim]:
    """Return all claims of a notebook with their verdicts; none may be left out.

    Parameters
    ----------
    notebook : str
        Name of the notebook, like "02_mnist".
    records : sequence of dict
        Results of `protocol.run`, of any data sets. A claim uses those of its role that were made
        with the paper's settings (no "params").
    by_hand : mapping, optional
        Id of a claim -> `Measured`, for the claims that have "by_hand".
    fault_records : mapping, optional
        Name of a fault ("fault" of a claim) -> records made with it. They replace the records of
        the same method at the same code length.
    """
    by_hand = by_hand or {}
    fault_records = fault_records or {}
    wanted = specs(notebook)
    claims = []
    errors = []
    hand = {name for name, spec in wanted.items() if "by_hand" in spec}
    for name in by_hand.keys() - hand:
        errors.append(f"{name}: not a claim to be measured by hand here")
    faults = {spec.get("fault") for spec in wanted.values()}
    for name in fault_records.keys() - faults:
        errors.append(f"{name}: not a fault of these claims")
    for name, spec in wanted.items():
        try:
            if "measure" in spec:
                measured = from_records(spec, records, fault_records)
            elif name in by_hand:
                measured = by_hand[name]
            else:
                raise Missing(f"by_hand has no entry: {spec['by_hand']}")
        except Missing as missing:
            if _profile() == "quick" and "measure" in spec:
                why = f"quick profile: {missing}"
                claims.append(
                    _claim(spec, NOTHING, verdict="not testable here", why=why)
                )
            else:
                errors.append(f"{name}: {missing}")
        else:
            claims.append(_settle(spec, measured))
    if errors:
        listed = "\n  ".join(errors)
        raise ValueError(f"the claims of {notebook} cannot be settled.\n  {listed}")
    return claims


def _holds(spec: dict, m: Measured) -> bool:
    measure = spec.get("measure", {})
    printed = spec["printed"]
    if printed is None:
        return m.strength(measure.get("slack", 0)) > 2
    allowed = TOLERANCE
    if not math.isnan(m.spread):
        allowed = max(TOLERANCE, 2 * m.spread)
    if measure.get("is") == "gain" and not m.value * printed > 0:
        # A small loss is not a gain of 1 %, although the two are close.
        return False
    return abs(m.value - printed) <= allowed


def _claim(spec: dict, m: Measured, **judged) -> Claim:
    """Return a claim with the fields of its entry, of its measurement, and as judged."""
    names = ("id", "section", "role", "notebook", "claim", "printed")
    fields = {name: spec[name] for name in names}
    value = float(m.value)
    spread = float(m.spread)
    return Claim(**fields, data=m.data, measured=value, spread=spread, **judged)


def _settle(spec: dict, m: Measured) -> Claim:
    """Return the claim with the verdict that the measurement gives."""
    verdict = "holds" if _holds(spec, m) else "fails"
    why = f"{m.why} {m}".strip()
    if spec["printed"] is not None:
        why += f", printed {spec['printed']:g}"
    if verdict == "fails" and m.fault is not None:
        if _holds(spec, m.fault):
            verdict = "artefact"
        why += f"; with {spec.get('fault', 'the fault')}: {m.fault}"
    has_value = not math.isnan(m.value)
    if not has_value:
        why = f"no value: {m.why}" if m.why else "no value"

    stand_in = m.stand_in or spec["role"] not in (None, m.data)
    small = _profile() == "quick" and spec["role"] is not None
    if not stand_in and not small:
        return _claim(spec, m, verdict=verdict, why=why)
    if has_value:
        why = f"{verdict} there, {why}"
    source = f"STAND-IN {m.data}" if stand_in else "quick profile"
    return _claim(
        spec,
        m,
        verdict="not testable here",
        why=f"{source}: {why}",
        stand_in=stand_in,
        there=verdict if has_value else None,
    )


# ---- keeping and showing -------------------------------------------------------------


def _profile() -> str:
    return os.environ.get("HMOH_PROFILE", "paper")


def _digest(spec: dict, data: str) -> str:
    """Return a text that changes with the entry of a claim or with the data it rests on."""
    fingerprint = ""
    if data not in ("", "theory"):
        fingerprint = datasets.fingerprint(data)
    text = json.dumps([spec, fingerprint], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def keep(claims: Sequence[Claim]) -> None:
    """Write judged claims to build/claims, where `kept` reads them.

    They replace the claims that were kept for the same notebook before.
    """
    listed = specs()
    rows = {}
    for claim in claims:
        row = asdict(claim)
        row["digest"] = _digest(listed[claim.id], claim.data)
        rows.setdefault(claim.notebook, []).append(row)
    for notebook, own in rows.items():
        path = KEPT / _profile() / f"{notebook}.json"
        write_atomically(path, json.dumps(own, indent=1))


def kept() -> list[Claim]:
    """Return all claims of the paper as they were last kept.

    A claim is "not run here" if it was never kept, or if its entry in data/paper_claims.json or the
    data that it rests on have changed since.
    """
    listed = specs()
    valid = {}
    for path in (KEPT / _profile()).glob("*.json"):
        for row in json.loads(path.read_text(encoding="utf-8")):
            spec = listed.get(row["id"])
            if spec and row.pop("digest") == _digest(spec, row["data"]):
                valid[row["id"]] = Claim(**row)
    claims = []
    for name, spec in listed.items():
        why = f"run notebooks/{spec['notebook']}.ipynb"
        blank = _claim(spec, NOTHING, verdict="not run here", why=why)
        claims.append(valid.get(name, blank))
    return claims


def counts(claims: Iterable[Claim]) -> dict[str, int]:
    """Return how many claims have each verdict, in the order of `VERDICTS`.

    >>> counts([])
    {'holds': 0, 'fails': 0, 'artefact': 0, 'not testable here': 0, 'not run here': 0}
    """
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


class show:
    """Claims as a table: HTML in Jupyter, plain text elsewhere.

    Jupyter also stores the counts of the verdicts in the notebook, as `COUNTS_TYPE`.
    """

    def __init__(self, claims: Sequence[Claim]):
        self.claims = claims

    @property
    def summary(self) -> str:
        """One line with the counts that are not 0."""
        found = [f"{n} {verdict}" for verdict, n in counts(self.claims).items() if n]
        return f"{len(self.claims)} claims: {', '.join(found)}"

    def __repr__(self) -> str:
        lines = [self.summary]
        for c in self.claims:
            symbol = VERDICTS[c.verdict].symbol
            lines.append(f"{symbol} {c.verdict}: {c.claim} (Sec. {c.section})")
            lines.append(f"    {c.why}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = ["Sec.", "claim", "printed", "measured", "data", "verdict", "why"]
        rows = ["".join(f"<th>{name}</th>" for name in names)]
        listed = specs()
        for claim in self.claims:
            note = listed.get(claim.id, {}).get("note", "")
            rows.append(_html_row(claim, note))
        table = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<p><b>{self.summary}</b></p><table>{table}</table>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            COUNTS_TYPE: counts(self.claims),
        }


def _html_row(c: Claim, note: str) -> str:
    """Return the cells of one claim.

    The note is about an error of the paper, or says how its words are read.
    """
    words = html.escape(c.claim)
    if note:
        words += f"<br><small>{html.escape(note)}</small>"
    printed = "" if c.printed is None else f"{c.printed:g}"
    measured = "" if math.isnan(c.measured) else f"{c.measured:.3f}"
    symbol, colour, _ = VERDICTS[c.verdict]
    verdict = f'<b style="color:{colour}">{symbol}&nbsp;{c.verdict}</b>'
    why = html.escape(c.why)
    cells = [c.section, words, printed, measured, c.data, verdict, why]
    return "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)
