"""The paper's claims (Sec. 3 and 4), each settled by what is measured here.

data/paper_claims.json lists them: what the paper says and where, its number, and how to measure it, either from records
of `experiments.run` ("measure") or in a notebook ("by_hand"). Verdicts are computed, never typed:

    holds              a value within .02 or two standard deviations of the printed one (a gain of the same sign too);
                       a gap above two of its own standard deviations
    fails              it does not
    artefact           it does not, but does with the named fault of the published benchmark switched on
    not testable here  the data are a STAND-IN for the paper's, or the profile is "quick"; `why` says what they show
    not run here       its notebook has not been run (in `kept` only)

The kinds of "measure" ("mAP" is mAP@1000 on Places205, as in the paper's tables; the least training time is the best):

    value   the metric of a method at a code length; with "samples", at that share of the stream
    gain    mean over the lengths of a/b - 1, where b is the best of "over" at the length
    order   at every length each of "ranking" is better than the next; "*" is all of `METHODS` not named, "HMOH@0.1" is
            HMOH after a tenth of the stream; the worst case decides, with "most" the middle length, and "slack" is
            what the better one may be behind where the paper says "similar"
    change  the metric of a method (of several: of each, with "most" of more than half) rises, or with "sign" -1 falls,
            from one length to the next; the worst step decides
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

__all__ = ["METHODS", "VERDICTS", "Claim", "Measured", "counts", "judge", "keep", "kept", "show", "specs"]

HERE = Path(__file__).parent
CLAIMS = HERE / "data" / "paper_claims.json"
KEPT = HERE / "build" / "claims"
METHODS = ["OKH", "SketchHash", "AdaptHash", "OSH", "MIHash", "BSODH", "HCOH", "HMOH"]  # those of the paper's tables
TOLERANCE = 0.02  # what another split or implementation may change; also the gap that a single seed has to show
VERDICTS = {  # symbol and colour
    "holds": ("✓", "#00664b"),
    "fails": ("✗", "#a63c00"),
    "artefact": ("!", "#8a5a00"),
    "not testable here": ("?", "#00507d"),
    "not run here": ("-", "#555555"),
}


@dataclass(frozen=True)
class Measured:
    """A measurement of one claim, made by hand in a notebook or from records.

    Attributes
    ----------
    value : float
        What to compare with the printed value; for a claim without one, a gap in the direction of the claim.
    spread : float
        Standard deviation of ``value``: 0 for an exact fact, nan if there is a single seed.
    data : str
        The data set's name. Other data than the claim's own are a stand-in, whatever ``stand_in`` says.
    fault : Measured, optional
        The same with the claim's fault of the published benchmark switched on.
    why : str
        What was measured; the numbers are put behind it.
    """

    value: float
    spread: float = math.nan
    data: str = "theory"
    stand_in: bool = False
    fault: Measured | None = None
    why: str = ""

    def strength(self, slack: float = 0.0) -> float:
        """The gap, ``value`` plus ``slack``, in units of its spread; with a single seed .02 counts as two.

        >>> Measured(0.05, spread=0.01).strength(), Measured(0.03).strength(), Measured(-1, spread=0).strength()
        (5.0, 3.0, -inf)
        """
        if math.isnan(self.value):
            return -math.inf
        gap, spread = self.value + slack, TOLERANCE / 2 if math.isnan(self.spread) else self.spread
        return gap / spread if spread else math.copysign(math.inf, gap) if gap else 0.0

    def __str__(self) -> str:
        return f"{self.value:.3f}" + (" (one seed)" if math.isnan(self.spread) else f" ±{self.spread:.3f}")


NOTHING = Measured(math.nan, data="")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its verdict and, in one line, what decided it."""

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


def specs(notebook: str | None = None) -> dict[str, dict]:
    """id -> entry of data/paper_claims.json, of all notebooks or of one, in the order of the paper."""
    found = {spec["id"]: spec for spec in json.loads(CLAIMS.read_text()) if notebook in (None, spec["notebook"])}
    if not found:
        raise ValueError(f"no claims belong to notebook {notebook!r}; pass its name without .ipynb, like '02_mnist'.")
    return found


# ---- measuring from records ---------------------------------------------------------------------------------------


class _Missing(LookupError):
    """A record that a claim needs is not there."""


class _Runs:
    """The records for one claim: of one data set and split, by the methods as the paper sets them."""

    def __init__(self, spec: dict, records: Iterable[dict], faulty: Iterable[dict] = ()):
        self.role, split = spec["role"], spec["measure"].get("split", "paper")
        plain = [r for r in records if r["role"] == self.role and r["label"] == r["method"] and not r["params"]]
        if not plain:
            raise _Missing(f"no records of {self.role} with the paper's settings")
        first = min(plain, key=lambda r: r["stand_in_for"] is not None)  # the paper's data before a stand-in
        self.data, self.stand_in = first["dataset"], first["stand_in_for"] is not None
        faulty = [r for r in faulty if (r["dataset"], r["split"]) == (self.data, split)]
        replaced = {(r["method"], r["n_bits"]) for r in faulty}
        plain = [r for r in plain if (r["dataset"], r["split"]) == (self.data, split)]
        self.records = [r for r in plain if (r["method"], r["n_bits"]) not in replaced] + faulty

    def values(self, name: str, n_bits: int, metric: str, queries: bool = False) -> dict[int, np.ndarray]:
        """Seed -> value as an array of one; with ``queries`` the values of all queries where the record has them."""
        method, _, share = name.partition("@")
        metric = "mAP@1000" if (metric, self.role) == ("mAP", "places205") else metric
        found = {}
        for r in self.records:
            if (r["method"], r["n_bits"]) != (method, n_bits):
                continue
            if share:
                if "stream" in r:
                    nearest = np.argmin(np.abs(np.array(r["samples"]) - float(share) * r["n_stream"]))
                    found[r["seed"]] = np.array([r["stream"][nearest]], float)  # None, cannot encode yet, becomes nan
            elif queries and metric in r.get("per_query", {}):
                found[r["seed"]] = np.array(r["per_query"][metric], float)
            elif metric in r:
                found[r["seed"]] = np.array([r[metric]], float)
        if not found:
            raise _Missing(f"no record of {method} at {n_bits} bits with {'checkpoints' if share else repr(metric)}")
        return found

    def gap(self, metric: str, better: tuple[str, int], worse: tuple[str, int], why: str) -> Measured:
        """The paired difference of two (method, length); of training times, the share that the worse takes longer.

        A seed gives the mean over the queries that both have. The spread is the larger of the standard deviation of
        these over seeds and their standard error over queries.
        """
        a, b = self.values(*better, metric, queries=True), self.values(*worse, metric, queries=True)
        seeds = _common(a, b)
        longer = metric == "train_seconds"
        pairs = [b[s] / a[s] - 1 if longer else a[s] - b[s] for s in seeds]
        pairs = [pair[~np.isnan(pair)] if len(pair) > 1 else pair for pair in pairs]
        over_queries = np.mean([_sd(pair) / math.sqrt(len(pair)) for pair in pairs])
        means = [pair.mean() for pair in pairs]
        spread = float(np.fmax(_sd(means), over_queries))
        return Measured(float(np.mean(means)), spread, self.data, self.stand_in, why=why)


def _common(*seeds: Iterable[int]) -> list[int]:
    common = set.intersection(*map(set, seeds))
    if not common:
        raise _Missing("no seed that all its records share")
    return sorted(common)


def _sd(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _expand(ranking: list) -> list[list[str]]:
    """Lists of methods, "*" replaced by those that are not named."""
    ranking = [entry if isinstance(entry, list) else [entry] for entry in ranking]
    named = {name.partition("@")[0] for entry in ranking for name in entry}
    return [[m for m in METHODS if m not in named] if entry == ["*"] else entry for entry in ranking]


def _measure(measure: dict, metric: str, runs: _Runs) -> Measured:
    """One measurement as the module's docstring explains them."""
    method, bits = measure.get("method"), np.atleast_1d(measure["bits"]).tolist()
    if measure["is"] == "value":
        name = f"{method}@{measure['samples']}" if "samples" in measure else method
        means = np.concatenate(list(runs.values(name, bits[0], metric).values()))
        why = "it cannot encode yet" if np.isnan(means).any() else ""
        return Measured(float(means.mean()), _sd(means), runs.data, runs.stand_in, why=why)
    if measure["is"] == "gain":
        gains = []  # for each length a dict seed -> gain
        for n in bits:
            own = runs.values(method, n, metric)
            over = [runs.values(m, n, metric) for entry in _expand([method, *measure["over"]])[1:] for m in entry]
            best = max(over, key=lambda values: np.mean(list(values.values())))
            gains.append({s: float(own[s][0] / best[s][0]) - 1 for s in _common(own, best)})
        means = [np.mean([gain[s] for gain in gains]) for s in _common(*gains)]
        return Measured(float(np.mean(means)), _sd(means), runs.data, runs.stand_in)
    groups = []  # of which each has to hold, or with "most" more than half of them
    if measure["is"] == "order":
        steps = [(a, b) for above, below in pairwise(_expand(measure["ranking"])) for a in above for b in below]
        for n in bits:
            groups.append([runs.gap(metric, (a, n), (b, n), f"at {n} bits {a} over {b}") for a, b in steps])
    else:
        verb = "rises" if measure["sign"] > 0 else "falls"
        for m in np.atleast_1d(method).tolist():
            ends = [((m, longer), (m, n))[:: measure["sign"]] for n, longer in pairwise(bits)]
            names = [f"{m} {verb} from {n} to {longer} bits by" for n, longer in pairwise(bits)]
            groups.append([runs.gap(metric, *pair, name) for pair, name in zip(ends, names, strict=True)])

    def strength(case: Measured) -> tuple[float, float]:
        return case.strength(measure.get("slack", 0)), case.value

    worst = sorted((min(group, key=strength) for group in groups), key=strength)
    case = worst[(len(worst) - 1) // 2 if measure.get("most") else 0]  # with those behind it more than half
    return replace(case, why=f"{'middle' if measure.get('most') else 'worst'} case: {case.why}")


# ---- judging ------------------------------------------------------------------------------------------------------


def judge(
    notebook: str,
    records: Sequence[dict],
    by_hand: Mapping[str, Measured] | None = None,
    fault_records: Mapping[str, Sequence[dict]] | None = None,
) -> list[Claim]:
    """Settle all claims of a notebook; it is an error to leave one out.

    Parameters
    ----------
    notebook : str
        Its name, like "02_mnist".
    records : sequence of dict
        What `experiments.run` returns, of any data sets; a claim picks those of its role that were made with the
        paper's settings (no "params").
    by_hand : mapping, optional
        Claim's id -> `Measured`, for the claims that have "by_hand".
    fault_records : mapping, optional
        Name of a fault ("fault" of a claim) -> records made with it. They take the place of the same method's at the
        same length.
    """
    by_hand, fault_records, claims, errors = by_hand or {}, fault_records or {}, [], []
    wanted = specs(notebook)
    hand, faults = {n for n in wanted if "by_hand" in wanted[n]}, {spec.get("fault") for spec in wanted.values()}
    errors += [f"{name}: not a claim to be measured by hand here" for name in by_hand.keys() - hand]
    errors += [f"{name}: not a fault of these claims" for name in fault_records.keys() - faults]
    for name, spec in wanted.items():
        try:
            if "by_hand" in spec and name not in by_hand:
                raise _Missing(f"by_hand has no entry: {spec['by_hand']}")
            measured = by_hand[name] if "by_hand" in spec else _from_records(spec, records, fault_records)
            claims.append(_settle(spec, measured))
        except _Missing as missing:
            if _profile() == "quick" and "measure" in spec:
                claims.append(_claim(spec, NOTHING, "not testable here", f"quick profile: {missing}"))
            else:
                errors.append(f"{name}: {missing}")
    if errors:
        raise ValueError(f"the claims of {notebook} cannot be settled.\n  " + "\n  ".join(errors))
    return claims


def _from_records(spec: dict, records: Sequence[dict], fault_records: Mapping[str, Sequence[dict]]) -> Measured:
    measure = spec["measure"]
    measured = _measure(measure, measure["metric"], _Runs(spec, records))
    if "fault_metric" in measure:
        return replace(measured, fault=_measure(measure, measure["fault_metric"], _Runs(spec, records)))
    if spec.get("fault") in fault_records:
        runs = _Runs(spec, records, fault_records[spec["fault"]])
        return replace(measured, fault=_measure(measure, measure["metric"], runs))
    return measured


def _holds(spec: dict, m: Measured) -> bool:
    measure, printed = spec.get("measure", {}), spec["printed"]
    if printed is None:
        return m.strength(measure.get("slack", 0)) > 2
    near = abs(m.value - printed) <= max(TOLERANCE, 0 if math.isnan(m.spread) else 2 * m.spread)
    return near and (measure.get("is") != "gain" or m.value * printed > 0)  # no gain is not a gain of 1 %


def _claim(spec: dict, m: Measured, verdict: str, why: str) -> Claim:
    fields = {name: spec[name] for name in ("id", "section", "role", "notebook", "claim", "printed")}
    return Claim(**fields, data=m.data, measured=float(m.value), spread=float(m.spread), verdict=verdict, why=why)


def _settle(spec: dict, m: Measured) -> Claim:
    verdict = "holds" if _holds(spec, m) else "fails"
    why = f"{m.why} {m}".strip() + ("" if spec["printed"] is None else f", printed {spec['printed']:g}")
    if verdict == "fails" and m.fault:
        verdict = "artefact" if _holds(spec, m.fault) else "fails"
        why += f"; with {spec.get('fault', 'the fault')}: {m.fault}"
    there = f"{verdict} there, {why}"
    if math.isnan(m.value):
        there = why = f"no value: {m.why}".removesuffix(": ")
    if m.stand_in or spec["role"] not in (None, m.data):
        return _claim(spec, m, "not testable here", f"STAND-IN {m.data}: {there}")
    if _profile() == "quick" and spec["role"] is not None:
        return _claim(spec, m, "not testable here", f"quick profile: {there}")
    return _claim(spec, m, verdict, why)


# ---- keeping and showing ------------------------------------------------------------------------------------------


def _profile() -> str:
    return os.environ.get("HMOH_PROFILE", "paper")


def _digest(spec: dict) -> str:
    """A name for what a kept verdict depends on: the claim's entry, and the data by the checksums in datasets.py."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode() + (HERE / "datasets.py").read_bytes()).hexdigest()


def keep(claims: Sequence[Claim]) -> None:
    """Write judged claims to build/claims, for `kept`; a notebook's earlier ones are replaced."""
    listed, folder = specs(), KEPT / _profile()
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in {claim.notebook for claim in claims}:
        rows = [{"digest": _digest(listed[c.id]), **asdict(c)} for c in claims if c.notebook == notebook]
        temporary = folder / f"{notebook}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps(rows, indent=1))
        os.replace(temporary, folder / f"{notebook}.json")  # so that a killed process leaves no half-written file


def kept() -> list[Claim]:
    """All claims of the paper: as last kept, or "not run here", also where the claim's entry has changed since."""
    rows = {}
    for path in (KEPT / _profile()).glob("*.json"):
        rows |= {(row["id"], row.pop("digest")): Claim(**row) for row in json.loads(path.read_text())}
    claims = []
    for spec in specs().values():
        blank = _claim(spec, NOTHING, "not run here", f"run notebooks/{spec['notebook']}.ipynb")
        claims.append(rows.get((spec["id"], _digest(spec)), blank))
    return claims


def counts(claims: Iterable[Claim]) -> dict[str, int]:
    """How many claims have each verdict, in the order of `VERDICTS`.

    >>> counts([])
    {'holds': 0, 'fails': 0, 'artefact': 0, 'not testable here': 0, 'not run here': 0}
    """
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


class show:
    """Claims as a table: HTML in Jupyter, plain text elsewhere."""

    def __init__(self, claims: Sequence[Claim]):
        self.claims = claims
        found = ", ".join(f"{n} {verdict}" for verdict, n in counts(claims).items() if n)
        self.summary = f"{len(claims)} claims: {found}"

    def __repr__(self) -> str:
        lines = [self.summary]
        for c in self.claims:
            lines += [f"{VERDICTS[c.verdict][0]} {c.verdict}: {c.claim} (Sec. {c.section})", f"    {c.why}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = "Sec.", "claim", "printed", "measured", "data", "verdict", "why"
        rows = ["<tr>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"]
        listed = specs()
        for c in self.claims:
            symbol, colour = VERDICTS[c.verdict]
            cells = [c.section, html.escape(c.claim), "" if c.printed is None else f"{c.printed:g}",
                     "" if math.isnan(c.measured) else f"{c.measured:.3f}", c.data,
                     f'<b style="color:{colour}">{symbol}&nbsp;{c.verdict}</b>', html.escape(c.why)]  # fmt: skip
            if "note" in listed.get(c.id, {}):  # on a slip of the paper, or on how its words are taken
                cells[1] += f"<br><small>{html.escape(listed[c.id]['note'])}</small>"
            rows.append("<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>")
        return f"<p><b>{self.summary}</b></p><table>{''.join(rows)}</table>"
