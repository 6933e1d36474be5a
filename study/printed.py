"""What do the paper's own numbers say about a claim? No run is needed, so no data are.

A sentence may agree with the numbers that the paper prints elsewhere, or not, or be consistent with
them without following from them. This is never a verdict: the numbers themselves may not be
reproducible. "table" in the claim's entry of data/paper_claims.json says what to look up, or else
"measure", whose kinds (see measures.py) also work on printed values. Other kinds of "table":

    numbers        all comparisons of printed numbers hold, like "a/b >= c/d" with two paths in
                   data/paper_results.json. "words" shows the numbers. With "partly" the sentence
                   does not follow from them
    marks          bold is the best value of each column, underlined the second ("of" a table)
    best-cells     HMOH is the best in all cells of a metric, on all four sets
    lead-grows     the lead of the first method over the second grows with every length
    keeps-most     the method loses least from one length to another, in shares and in points
    queries-sd, queries-range, queries-best, queries-ends
                   the table of the numbers of queries on Places205

>>> check({"id": "x", "role": "mnist", "kind": "value", "printed": 0.104,
...        "measure": {"is": "gain", "metric": "mAP", "method": "HMOH", "over": ["HCOH"],
...                    "bits": [8, 16]}})
Check(outcome='disagrees', why='27.926 % by the tables, printed 10.400 %')
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

from study.datasets import BENCHMARKS
from study.measures import CASES, KINDS, Missing
from study.select import PAPER_METHODS, paper_results, printed_records

__all__ = ["OUTCOMES", "Check", "check", "wrong_marks"]

OUTCOMES = {
    "agrees": "it follows from the numbers that the paper prints",
    "disagrees": "the paper's numbers say something else",
    "consistent": "the paper's numbers allow it, but do not prove it",
}
# Half a unit of the last digit: of the paper's tables, and of the gains in its text. The paper
# computed its gains from the rounded values of its tables, and most agree to the last digit, so the
# rounding of the tables excuses none.
ROUNDING = {"value": 0.0005, "gain": 0.000005}
COMPARED = {">": operator.gt, ">=": operator.ge, "==": operator.eq}
# The number of queries of the paper's other tables.
USUAL_QUERIES = "20"


class Check(NamedTuple):
    """What the paper's own numbers say: one of `OUTCOMES`, and what was computed, in words."""

    outcome: str
    why: str


class _Printed:
    """The paper's values of one set, in the place of runs: see `measures`."""

    def __init__(self, role: str):
        self.role = role
        self.records = printed_records(role)

    def values(self, name: str, n_bits: int, metric: str) -> dict[int, float]:
        """Return {0: the printed value}."""
        method, _, share = name.partition("@")
        record = self.records.get((method, n_bits), {})
        found = record.get(record.get("metric") if metric == "mAP" else metric)
        if share not in ("", "1"):
            found = self._early(method, n_bits, metric, float(share))
        if found is None:
            raise Missing(f"the paper prints no {metric} of {name} at {n_bits} bits")
        return {0: found}

    def _early(self, method: str, n_bits: int, metric: str, share: float) -> float | None:
        """Return mAP after a part of the stream, which the text has for some methods."""
        early = paper_results()["text"]["after_a_part_of_the_stream_48bit_mAP"][self.role]
        is_printed = early["samples"] == share * BENCHMARKS[self.role].stream_size
        return early.get(method) if is_printed and (n_bits, metric) == (48, "mAP") else None

    def lacks(self, name: str, n_bits: int) -> bool:
        """Tell whether the paper has such codes of other methods only."""
        return False

    def value(self, run: tuple[str, int], metric: str) -> float:
        return self.values(*run, metric)[0]


def check(spec: dict) -> Check | None:
    """Return what the paper's own numbers say about a claim; None if they do not have it.

    A printed value cannot check itself.
    """
    table = spec.get("table", spec.get("measure"))
    if table is None:
        return None
    if table["is"] in SPECIAL:
        return SPECIAL[table["is"]](spec["role"], table)
    if spec["role"] is None or "split" in table or "samples" in table:
        return None
    printed = _Printed(spec["role"])
    try:
        if table["is"] in CASES:
            return _check_order(table, printed)
        found = KINDS[table["is"]](table, printed)[0]
    except Missing:
        return None
    is_gain = table["is"] == "gain"
    agrees = abs(found - spec["printed"]) <= ROUNDING[table["is"]] + 1e-9
    texts = [
        f"{x:.3%}".replace("%", " %") if is_gain else f"{x:g}" for x in (found, spec["printed"])
    ]
    return _outcome(agrees, "{} by the tables, printed {}".format(*texts))


def _outcome(agrees: bool, why: str, partly: bool = False) -> Check:
    if not agrees:
        return Check("disagrees", why)
    return Check("consistent" if partly else "agrees", why)


def _check_order(table: dict, printed: _Printed) -> Check:
    """Return the check of an order, with the values of its weakest or of its failing cases."""
    metric = table["metric"]
    sign = -1 if metric == "train_seconds" else 1
    gaps: dict[tuple, float] = {}
    holds = []
    for cases in CASES[table["is"]](table, printed):
        of_group = {}
        for better, worse in cases.values():
            gap = sign * (printed.value(better, metric) - printed.value(worse, metric))
            of_group[better, worse] = round(gap + table.get("slack", 0), 9)
        holds.append(all(gap > 0 for gap in of_group.values()))
        gaps |= of_group
    n_needed = len(holds) // 2 + 1 if table.get("most") else len(holds)
    failing = [pair for pair, gap in gaps.items() if gap <= 0]
    shown = failing or [min(gaps, key=gaps.get)]
    texts = [_pair(better, worse, metric, printed) for better, worse in shown]
    why = f"{'fails' if failing else 'closest'}: {', '.join(texts)}"
    if table.get("most"):
        why = f"in {sum(holds)} of {len(holds)} groups; {why}"
    return _outcome(sum(holds) >= n_needed, why)


def _pair(better: tuple[str, int], worse: tuple[str, int], metric: str, printed: _Printed) -> str:
    """Return both values of a case, such as "HMOH 0.348, HCOH 0.333 at 8 bits"."""
    digits = 2 if metric == "train_seconds" else 3
    a, b = (f"{run[0]} {printed.value(run, metric):.{digits}f}" for run in (better, worse))
    if better[1] == worse[1]:
        return f"{a}, {b} at {better[1]} bits"
    return f"{a} at {better[1]} bits, {b} at {worse[1]}"


# ---- other numbers of the paper ------------------------------------------------------


def _number(path: str) -> float:
    """Return a number of data/paper_results.json by its path, such as "text/database/mnist"."""
    if path == "0":
        return 0
    found = paper_results()
    for name in path.split("/"):
        found = found[name]
    return found


def _numbers(role: str | None, table: dict) -> Check:
    holds = []
    shown = []
    for comparison in table["compare"]:
        left, sign, right = comparison.split()
        a, b = _number(left), _number(right)
        holds.append(COMPARED[sign](a, b))
        shown += [a, b]
    return _outcome(all(holds), table["words"].format(*shown), table.get("partly", False))


def _best_cells(role: str | None, table: dict) -> Check:
    """Return whether HMOH is the best in all cells of mAP; P@H2 is told beside it."""
    counts = {}
    for role in BENCHMARKS:
        for (method, n_bits), record in printed_records(role).items():
            if method != "HMOH":
                continue
            for name, metric in (("mAP", record["metric"]), ("Precision@H2", "P@H2")):
                others = [printed_records(role)[m, n_bits][metric] for m in PAPER_METHODS]
                counts.setdefault(name, []).append(record[metric] == max(others))
    texts = [f"{sum(found)} of {len(found)} cells in {name}" for name, found in counts.items()]
    partly = not all(all(found) for found in counts.values())
    return _outcome(all(counts["mAP"]), f"HMOH is the best in {' and in '.join(texts)}", partly)


def _lead_grows(role: str, table: dict) -> Check:
    printed = _Printed(role)
    first, second = table["methods"]
    leads = []
    for n in table["bits"]:
        gap = printed.value((first, n), "mAP") - printed.value((second, n), "mAP")
        leads.append(round(gap, 9))
    grows = all(a < b for a, b in pairwise(leads))
    return _outcome(grows, f"leads {', '.join(f'{lead:.3f}' for lead in leads)}")


def _keeps_most(role: str, table: dict) -> Check:
    """Return the check of a loss, which holds only in part if shares and points differ."""
    printed = _Printed(role)
    short, long = table["bits"]
    shares, points = {}, {}
    for method in table["methods"]:
        a, b = (printed.value((method, n), table["metric"]) for n in (short, long))
        shares[method], points[method] = b / a, round(b - a, 9)
    best = max(PAPER_METHODS, key=lambda method: printed.value((method, long), table["metric"]))
    own, *_ = table["methods"]
    of_share, of_points = (max(found, key=found.get) for found in (shares, points))
    why = (
        f"as a share {of_share} keeps most ({shares[of_share]:.1%}), in points {of_points} loses "
        f"least ({-points[of_points]:.3f}, {own} {-points[own]:.3f}); best at {long} bits: {best}"
    ).replace("%", " %")
    return _outcome(own == best and own in (of_share, of_points), why, of_share != of_points)


# ---- the table of the numbers of queries ---------------------------------------------


def _by_queries() -> dict[str, dict[str, tuple[float, float]]]:
    """Return number of queries per class -> method -> mean and standard deviation."""
    return paper_results()["variation_places205_32bit_mAP@1000"]


def _queries_sd(role: str, table: dict) -> Check:
    found = {}
    for n, row in _by_queries().items():
        for method in table["methods"]:
            found[method, n] = row[method][1]
    method, n = max(found, key=found.get)
    largest = found[method, n]
    why = f"largest standard deviation {largest:.3f}, {method} with {n} queries per class"
    return _outcome(largest < table["below"], why)


def _queries_range(role: str, table: dict) -> Check:
    ranges = {}
    for method in PAPER_METHODS:
        means = [row[method][0] for row in _by_queries().values()]
        ranges[method] = round(max(means) - min(means), 9)
    few = [method for method in ranges if ranges[method] <= table["at_most"]]
    most = max(ranges, key=ranges.get)
    why = f"{len(few)} of {len(ranges)} methods change by at most {table['at_most']}; "
    return _outcome(2 * len(few) > len(ranges), f"{why}{most} by {ranges[most]:.3f}")


def _queries_best(role: str, table: dict) -> Check:
    leads = {}
    for n, row in _by_queries().items():
        rival = max((m for m in row if m != "HMOH"), key=lambda method: row[method][0])
        leads[n] = round(row["HMOH"][0] - row[rival][0], 9), rival
    n = min(leads, key=leads.get)
    why = f"closest: {leads[n][0]:+.3f} over {leads[n][1]} with {n} queries per class"
    return _outcome(leads[n][0] > 0, why)


def _queries_ends(role: str, table: dict) -> Check:
    rows = _by_queries()
    most = max(rows, key=int)
    a, b = rows[USUAL_QUERIES]["HMOH"][0], rows[most]["HMOH"][0]
    why = f"{a:.3f} with {USUAL_QUERIES}, {b:.3f} with {most} queries per class"
    return _outcome(abs(a - b) <= table["at_most"] + 1e-9, why)


# ---- bold and underlined values ------------------------------------------------------


def _columns(role: str, of: str) -> dict[str, tuple[dict[str, float], dict]]:
    """Return column -> the values of the methods, and the methods that the paper marks."""
    marks = paper_results()["marks"][role] if of == "results" else None
    found = {}
    if marks is None:
        for n, of_column in paper_results()["variation_marks"].items():
            values = {method: mean for method, (mean, _) in _by_queries()[n].items()}
            found[f"{n} queries per class"] = values, of_column
        return found
    for metric, by_bits in marks.items():
        for n, of_column in by_bits.items():
            by_method = paper_results()["results"][role]
            values = {method: by_method[method][metric][n] for method in by_method}
            found[f"{metric} at {n} bits"] = values, of_column
    return found


def _ranked(values: Mapping[str, float]) -> dict[str, list[str]]:
    """Return the best and the second best methods; those that tie for the first have no second."""
    first, second, *_ = sorted(set(values.values()), reverse=True)
    best = [method for method in values if values[method] == first]
    seconds = [method for method in values if values[method] == second]
    return {"bold": best, "underlined": [] if len(best) > 1 else seconds}


def wrong_marks(role: str, of: str = "results") -> list[str]:
    """Return the columns of a table whose bold or underlined values are not the best two.

    ``of`` is "results", or "queries" for the table of the numbers of queries.
    """
    wrong = []
    for column, (values, marks) in _columns(role, of).items():
        right = _ranked(values)
        if marks != right:
            texts = []
            for mark in marks:
                is_so = ", ".join(f"{m} {values[m]:.3f}" for m in right[mark]) or "none"
                printed = ", ".join(f"{m} {values[m]:.3f}" for m in marks[mark]) or "none"
                texts.append(f"{mark} {printed}, should be {is_so}")
            wrong.append(f"{column}: {'; '.join(texts)}")
    return wrong


def _marks(role: str, table: dict) -> Check:
    wrong = wrong_marks(role, table["of"])
    n = len(_columns(role, table["of"]))
    why = f"{n - len(wrong)} of {n} columns are marked right"
    return _outcome(not wrong, "; ".join([why, *wrong]))


SPECIAL: dict[str, Callable[[str | None, dict], Check]] = {
    "numbers": _numbers,
    "marks": _marks,
    "best-cells": _best_cells,
    "lead-grows": _lead_grows,
    "keeps-most": _keeps_most,
    "queries-sd": _queries_sd,
    "queries-range": _queries_range,
    "queries-best": _queries_best,
    "queries-ends": _queries_ends,
}
