"""Is it as the paper says? Its claims (Sec. 3 and 4), each with a verdict computed from runs.

data/paper_claims.json lists the claims: what the paper says and where, the number it prints, and
how to measure it: from records of `protocol.run` ("measure", see measures.py) or in a notebook
("by_hand"); or why it cannot be measured here ("untestable"). The "unit" of a number decides its
margin. Every cell of the paper's tables is a claim too, see `cells`.
Verdicts are computed, never typed. `statistics` has the rule.

    right, wrong        an exact fact (algebra, a proof), decided without statistics
    supported,          an order: something is better, rises or falls
    contradicted
    reproduced,         a printed value
    different
    undecided           the measurements allow both
    reported            a time of an implementation, which is never judged
    artefact            contradicted or different as described, but supported or reproduced with
                        what the published code computes (`baselines.METHODS_AS_PUBLISHED`)
    not testable here   the data are a STAND-IN for the paper's, or the profile is "quick";
                        `Claim.there` has the verdict that these data would give
    not run here        the notebook has not been run since the claim, the data or the rule
                        changed (only `scorecard.kept` returns this)

Beside its verdict a claim has `Claim.own`: what the paper's own numbers say about it, see printed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study import datasets, profile
from study.datasets import BENCHMARKS
from study.measures import Missing, Sample, from_records
from study.printed import Check, check
from study.select import paper_results
from study.statistics import Judgement, interval, judge_order, judge_value, margin_of

__all__ = ["BAD", "CLAIMS", "GOOD", "VERDICTS", "Claim", "Exact", "Sample", "all_specs", "cells"]
__all__ += ["judge", "judge_sample", "specs"]

CLAIMS = Path(__file__).parents[1] / "data" / "paper_claims.json"


class Verdict(NamedTuple):
    """How a verdict is shown, and what it means."""

    symbol: str
    colour: str
    meaning: str


VERDICTS = {
    "right": Verdict("✓", "#00664b", "an exact fact, as the paper says"),
    "wrong": Verdict("✗", "#a63c00", "an exact fact, not as the paper says"),
    "supported": Verdict("✓", "#00664b", "the order is as the paper says"),
    "contradicted": Verdict("✗", "#a63c00", "the order is not as the paper says"),
    "reproduced": Verdict("✓", "#00664b", "the printed value, within its margin"),
    "different": Verdict("✗", "#a63c00", "another value than the printed one"),
    "undecided": Verdict("~", "#555555", "the measurements allow both"),
    "reported": Verdict("=", "#555555", "a time, which is reported and not judged"),
    "artefact": Verdict("!", "#8a5a00", "only with a fault of the published code"),
    "not testable here": Verdict("?", "#00507d", "not measured on the paper's data"),
    "not run here": Verdict("-", "#555555", "its notebook has not been run"),
}
GOOD = ("right", "supported", "reproduced")
BAD = ("wrong", "contradicted", "different")

# The table of the numbers of queries on Places205, and the notebook that measures it.
QUERIES_TABLE = (6, "10_query_variation")


@dataclass(frozen=True)
class Exact:
    """An exact fact, checked in a notebook without statistics.

    Attributes
    ----------
    value : bool or float
        Whether it is true, or a number that must be equal to the printed one (to 1e-9).
    why : str
        What was computed, in words.
    """

    value: bool | float
    why: str = ""


NOTHING = Judgement("", math.nan, math.nan, math.nan, n=0, p=math.nan)


def _of_entry(name: str, default: Any = None) -> property:
    return property(lambda claim: claim.spec.get(name, default))


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its verdict.

    Attributes
    ----------
    spec : dict
        Its entry in data/paper_claims.json, whose fields are attributes too. The kind of a cell of
        a table is "cell".
    verdict : str
        One of `VERDICTS`.
    why : str
        One line that tells a reader what decided the verdict.
    data : str
        Name of the data set that was measured, "theory", or "" if nothing was measured.
    described : Judgement
        What the rule says of the measurements as described.
    published : Judgement
        The same with what the published code computes. Its verdict is "" if that was not run, or
        if the published program cannot be read.
    there : str or None
        For a claim that is not testable here: the verdict that the stand-in or the quick profile
        would give, or None if there is no value.
    """

    spec: dict
    verdict: str = "not run here"
    why: str = ""
    data: str = ""
    described: Judgement = NOTHING
    published: Judgement = NOTHING
    there: str | None = None

    id, section, role, notebook = map(_of_entry, ("id", "section", "role", "notebook"))
    kind, claim, printed = map(_of_entry, ("kind", "claim", "printed"))
    headline, by_construction = (_of_entry(name, False) for name in ("headline", "by_construction"))

    @property
    def stand_in(self) -> bool:
        """Whether the data stand in for the paper's. The verdict is then "not testable here"."""
        if self.data.startswith("random features") or self.kind == "time":
            return False
        return self.data != "" and self.role not in (None, self.data)

    @property
    def own(self) -> Check | None:
        """What the paper's own numbers say, which is not a verdict; None if they do not have it."""
        return None if self.kind == "cell" else check(self.spec)


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
            "pass its name without .ipynb, like '03_mnist'."
        )
    return found


# ---- judging -------------------------------------------------------------------------


def judge(
    notebook: str,
    records: Sequence[dict],
    by_hand: Mapping[str, Sample | Exact] | None = None,
) -> list[Claim]:
    """Return all claims of a notebook with their verdicts; none may be left out.

    Parameters
    ----------
    notebook : str
        Name of the notebook, like "03_mnist".
    records : sequence of dict
        Results of `protocol.run`, of any data sets. A claim uses those of its role that were made
        with the paper's settings (no "params"). Those with "published" are used for the judgement
        as published.
    by_hand : mapping, optional
        Id of a claim -> `Sample` or `Exact`, for the claims that have "by_hand".
    """
    by_hand = by_hand or {}
    wanted = specs(notebook)
    claims = []
    errors = []
    hand = {name for name, spec in wanted.items() if "by_hand" in spec}
    for name in by_hand.keys() - hand:
        errors.append(f"{name}: not a claim to be measured by hand here")
    for name, spec in wanted.items():
        try:
            claims.append(_measured_claim(spec, records, by_hand))
        except Missing as missing:
            if profile.PROFILE == "quick" and "measure" in spec:
                claims.append(Claim(spec, "not testable here", f"quick profile: {missing}"))
            else:
                errors.append(f"{name}: {missing}")
    if errors:
        listed = "\n  ".join(errors)
        raise ValueError(f"the claims of {notebook} cannot be settled.\n  {listed}")
    return claims


def cells(role: str, records: Sequence[dict], table: int | None = None) -> list[Claim]:
    """Return every cell of a table of the paper as a judged claim of kind "cell".

    Parameters
    ----------
    role : {"mnist", "cifar10", "places205", "nuswide"}
    records : sequence of dict
        As in `judge`. Cells that the records do not have are "not testable here".
    table : int, optional
        6 for the numbers of queries on Places205. By default the table of mAP and Precision@H2.
    """
    claims = []
    for spec in _cell_specs(role, table).values():
        try:
            claims.append(_settle(spec, from_records(spec, records)))
        except Missing as missing:
            claims.append(Claim(spec, "not testable here", str(missing)))
    return claims


def _cell_specs(role: str, table: int | None = None) -> dict[str, dict]:
    """Return id -> entry of every cell of a table, of the form of data/paper_claims.json."""
    benchmark = BENCHMARKS[role]
    number, notebook = benchmark.table, benchmark.notebook
    if table == QUERIES_TABLE[0]:
        number, notebook = QUERIES_TABLE
    common = {"section": f"Table {number}", "role": role, "notebook": notebook, "kind": "cell"}
    found = {}

    def add(name: str, words: str, printed: float, metric: str, method: str, **more) -> None:
        measure = {"is": "value", "metric": metric, "method": method, **more}
        own = {"id": f"table{number}-{name}", "claim": f"{method}, {words}."}
        unit = "mAP" if metric.startswith("mAP") else "precision"
        found[own["id"]] = common | own | {"printed": printed, "unit": unit, "measure": measure}

    if table == QUERIES_TABLE[0]:
        for n, row in paper_results()["variation_places205_32bit_mAP@1000"].items():
            for method, (printed, _) in row.items():
                words = f"32 bits, {n} queries per class: mAP@1000"
                more = {"bits": 32, "queries": int(n) * 205}
                add(f"{n}-{method}", words, printed, "mAP", method, **more)
        return found
    for method, metrics in paper_results()["results"][role].items():
        for metric, by_length in metrics.items():
            for n_bits, printed in by_length.items():
                name = f"{metric}-{method}-{n_bits}"
                add(name, f"{n_bits} bits: {metric}", printed, metric, method, bits=int(n_bits))
    return found


def _measured_claim(spec: dict, records: Sequence[dict], by_hand: Mapping) -> Claim:
    """Return a claim with its verdict; `Missing` is raised if it was not measured."""
    name = spec["id"]
    if "untestable" in spec:
        return Claim(spec, "not testable here", spec["untestable"])
    if "measure" in spec:
        return _settle(spec, from_records(spec, records))
    if name not in by_hand:
        raise Missing(f"by_hand has no entry: {spec['by_hand']}")
    measured = by_hand[name]
    if isinstance(measured, Exact) != (spec["kind"] == "exact"):
        need = "Exact" if spec["kind"] == "exact" else "Sample"
        raise Missing(f"kind {spec['kind']!r} needs claims.{need}, not {measured!r}")
    if isinstance(measured, Exact):
        return _settle_exact(spec, measured)
    if spec["kind"] == "time":
        return _report_time(spec, measured)
    if spec["role"] is not None and not _is_data(measured.data):
        need = 'pass Sample(data=...), the name of a data set or "random features, ..."'
        raise Missing(f"the claim is about {spec['role']}, not {measured.data}; {need}")
    return _settle(spec, measured)


def _settle_exact(spec: dict, exact: Exact) -> Claim:
    value = exact.value
    why = exact.why
    described = NOTHING
    if isinstance(value, (bool, np.bool_)):
        is_right = bool(value)
    elif spec["printed"] is None:
        raise Missing(f"the paper prints no number, so {value!r} must be True or False")
    else:
        is_right = abs(value - spec["printed"]) <= 1e-9
        why = f"{why} {value:g}, printed {spec['printed']:g}".strip()
        described = replace(NOTHING, estimate=float(value))
    return Claim(spec, "right" if is_right else "wrong", why, "theory", described)


def _report_time(spec: dict, sample: Sample) -> Claim:
    """Return a claim about times with what was measured: ratios, or powers of a size.

    A time depends on how each method is written and on the machine, so it decides nothing.
    """
    why = f"{sample.why} {_times(sample.values)}".strip()
    if sample.published is not None:
        why += f"; as published {_times(sample.published)}"
    return Claim(spec, "reported", why, sample.data)


def _times(values) -> str:
    """Return in words the means of the cases: the least and the largest."""
    cases = values if isinstance(values, Mapping) else {"": values}
    means = {name: float(np.nanmean(ratios)) for name, ratios in cases.items()}
    ends = dict.fromkeys([min(means, key=means.get), max(means, key=means.get)])
    texts = []
    for name in ends:
        low, high = interval(cases[name])
        texts.append(f"{name} {means[name]:.2f} [{low:.2f}, {high:.2f}]".strip())
    return " to ".join(texts)


def judge_sample(spec: dict, values) -> Judgement:
    """Return what a sample shows about a claim."""
    if spec["kind"] != "order":
        return judge_value(values, spec["printed"], margin_of(spec["unit"], spec["printed"]))
    if not isinstance(values, list) or not isinstance(values[0], Mapping):
        values = [values if isinstance(values, Mapping) else {"": values}]
    measure = spec.get("measure", {})
    return judge_order(values, measure.get("most", False), measure.get("slack", 0))


def _settle(spec: dict, sample: Sample) -> Claim:
    """Return the claim with the verdict that the measurements give."""
    described = judge_sample(spec, sample.values)
    verdict = described.verdict
    why = _words(spec, described, sample)
    published = NOTHING
    if sample.published is not None:
        published = judge_sample(spec, sample.published)
        why += f"; as published: {published.verdict}, {_numbers(published)}"
        if verdict in BAD and published.verdict in GOOD:
            verdict = "artefact"
            # Of an order, the methods of the case that decides.
            named = [f for f in sample.faults if f.partition(":")[0] in described.case.split()]
            why += f" ({'; '.join(named or sample.faults)})"
    claim = Claim(spec, verdict, why, sample.data, described, published)
    if not claim.stand_in and (profile.PROFILE == "paper" or claim.role is None):
        return claim
    source = f"STAND-IN {sample.data}" if claim.stand_in else "quick profile"
    there = None
    if described.n > 0:
        why = f"{verdict} there, {why}"
        there = verdict
    return replace(claim, verdict="not testable here", why=f"{source}: {why}", there=there)


def _is_data(name: str) -> bool:
    """Tell whether this names a data set, or random features of the paper's shape."""
    is_data_set = name in datasets.NAMES
    return is_data_set or name.startswith("random features")


def _words(spec: dict, judged: Judgement, sample: Sample) -> str:
    """Return in words what decided."""
    if judged.n == 0:
        reason = ": ".join(filter(None, [sample.why, judged.case]))
        return f"no value: {reason}" if reason else "no value"
    parts = [sample.why]
    if judged.case:
        parts.append(f"{':' if sample.why else ''} {judged.case}")
    samples = f"{judged.n} seeds" if judged.n > 1 else "one seed"
    parts.append(f" {_numbers(judged)} of {samples}")
    if spec["printed"] is not None:
        margin = margin_of(spec["unit"], spec["printed"])
        parts.append(f", printed {spec['printed']:g} within {margin:.3g}")
    if judged.reason:
        parts.append(f", {judged.reason}")
    return "".join(parts).strip()


def _numbers(judged: Judgement) -> str:
    if judged.n < 2:
        return f"{judged.estimate:.3f}"
    return f"{judged.estimate:.3f} [{judged.low:.3f}, {judged.high:.3f}]"


def all_specs() -> dict[str, dict]:
    """Return the entries of all claims, those of the tables' cells last."""
    found = specs()
    for benchmark in sorted(BENCHMARKS.values(), key=lambda known: known.table):
        found |= _cell_specs(benchmark.name)
    return found | _cell_specs("places205", QUERIES_TABLE[0])
