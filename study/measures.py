"""Measure a claim of the paper from records of `protocol.run`.

"measure" in the claim's entry of data/paper_claims.json has one of the kinds below. "mAP" is
mAP@1000 on Places205, as in the paper's tables. The shortest training time is the best.

    value   the metric of a method at a code length; with "samples", after that share of the stream
    gain    the mean over code lengths of a/b - 1, where b is the best of "over" at that length
    order   at every length, each entry of "ranking" is better than the next. "*" means all of
            `PAPER_METHODS` that are not named. "HMOH@0.1" is HMOH after a tenth of the stream.
            The worst case decides; with "most" the middle length decides. "slack" is the
            deficit that the better method may have, where the paper says "similar".
    change  the metric of a method rises from each length to the next, or falls with "sign" -1.
            The worst step decides. With several methods it is true of each, with "most" of more
            than half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from study.evaluation import headline
from study.statistics import sd

__all__ = ["PAPER_METHODS", "TOLERANCE", "Measured", "Missing", "from_records"]

# The methods of the paper's tables.
PAPER_METHODS = ["OKH", "SketchHash", "AdaptHash", "OSH",
                 "MIHash", "BSODH", "HCOH", "HMOH"]  # fmt: skip
# Another split or implementation may change a value by this much. A gap measured with
# a single seed must exceed it.
TOLERANCE = 0.02


@dataclass(frozen=True)
class Measured:
    """A measurement of one claim, made by hand in a notebook or from records.

    Attributes
    ----------
    value : float
        The value to compare with the printed one. For a claim without a printed value, a gap that
        is positive in the direction of the claim.
    spread : float
        Standard deviation of ``value``: 0 for an exact fact, nan for a single seed.
    data : str
        Name of the data set, or "theory" for algebra and simulations. Data other than the claim's
        own are a stand-in, even if ``stand_in`` is False.
    fault : Measured, optional
        The same measurement with the claim's fault of the published benchmark switched on.
    why : str
        What was measured, in words. The numbers are added after it.
    """

    value: float
    spread: float = math.nan
    data: str = "theory"
    stand_in: bool = False
    fault: Measured | None = None
    why: str = ""

    def strength(self, slack: float = 0.0) -> float:
        """Return ``value`` plus ``slack`` in units of the spread.

        With a single seed, `TOLERANCE` counts as two standard deviations.

        >>> Measured(0.05, spread=0.01).strength(), Measured(0.03).strength()
        (5.0, 3.0)
        >>> Measured(-1, spread=0).strength()
        -inf
        """
        if math.isnan(self.value):
            return -math.inf
        gap = self.value + slack
        spread = TOLERANCE / 2 if math.isnan(self.spread) else self.spread
        if spread:
            return gap / spread
        return math.copysign(math.inf, gap) if gap else 0.0

    def __str__(self) -> str:
        if math.isnan(self.spread):
            return f"{self.value:.3f} (one seed)"
        return f"{self.value:.3f} ±{self.spread:.3f}"


class Missing(LookupError):
    """A record that a claim needs does not exist."""


class _Runs:
    """The records for one claim: of one data set and split, with the paper's settings."""

    def __init__(
        self, spec: dict, records: Iterable[dict], faulty: Iterable[dict] = ()
    ):
        self.role = spec["role"]
        split = spec["measure"].get("split", "paper")
        plain = [r for r in records if r["role"] == self.role and _has_no_changes(r)]
        if not plain:
            raise Missing(f"no records of {self.role} with the paper's settings")
        # The paper's own data are preferred to a stand-in.
        first = min(plain, key=lambda r: r["stand_in_for"] is not None)
        self.data = first["dataset"]
        self.stand_in = first["stand_in_for"] is not None

        def matches(record: dict) -> bool:
            return record["dataset"] == self.data and record["split"] == split

        # Records with a fault replace those of the same method and length.
        faulty = [r for r in faulty if matches(r)]
        replaced = {(r["method"], r["n_bits"]) for r in faulty}
        self.records = faulty
        for record in plain:
            key = record["method"], record["n_bits"]
            if matches(record) and key not in replaced:
                self.records.append(record)

    def values(
        self, name: str, n_bits: int, metric: str, queries: bool = False
    ) -> dict[int, np.ndarray]:
        """Return seed -> array with one value.

        With ``queries`` the array has the values of all queries, if the record has them.
        """
        method, _, share = name.partition("@")
        if metric == "mAP":
            metric = headline(self.role)
        found = {}
        for record in self.records:
            if record["method"] != method or record["n_bits"] != n_bits:
                continue
            values = _read(record, metric, share, queries)
            if values is not None:
                # None in a record (the method cannot encode yet) becomes nan.
                found[record["seed"]] = np.array(values, float)
        if not found:
            needed = "checkpoints" if share else repr(metric)
            raise Missing(f"no record of {method} at {n_bits} bits with {needed}")
        return found

    def gap(
        self, metric: str, better: tuple[str, int], worse: tuple[str, int], why: str
    ) -> Measured:
        """Return the paired difference of two (method, length).

        For training times it is the share by which the worse one takes longer. Each seed gives the
        mean over the queries that both have. The spread is the larger of two numbers: the standard
        deviation of these means over seeds, and their standard error over queries.
        """
        a = self.values(*better, metric, queries=True)
        b = self.values(*worse, metric, queries=True)
        is_time = metric == "train_seconds"
        means = []
        errors = []
        for seed in _common_seeds([a, b]):
            pairs = b[seed] / a[seed] - 1 if is_time else a[seed] - b[seed]
            if len(pairs) > 1:
                pairs = pairs[~np.isnan(pairs)]
            means.append(pairs.mean())
            errors.append(sd(pairs) / math.sqrt(len(pairs)))
        spread = float(np.fmax(sd(means), np.mean(errors)))
        return self.measured(np.mean(means), spread, why)

    def measured(self, value: float, spread: float, why: str = "") -> Measured:
        """Return a measurement on the data of these records."""
        return Measured(float(value), spread, self.data, self.stand_in, why=why)


def _has_no_changes(record: dict) -> bool:
    """Return whether a method ran with the paper's settings, under its own name."""
    return record["label"] == record["method"] and not record["params"]


def _read(record: dict, metric: str, share: str, queries: bool) -> list | None:
    """Return the values of a metric in a record, or None if it has none.

    ``share`` of the stream, if not "", selects the value at the nearest checkpoint.
    """
    if share:
        if "stream" not in record:
            return None
        wanted = float(share) * record["n_stream"]
        nearest = np.argmin(np.abs(np.array(record["samples"]) - wanted))
        return [record["stream"][nearest]]
    if queries and metric in record.get("per_query", {}):
        return record["per_query"][metric]
    if metric in record:
        return [record[metric]]
    return None


def _common_seeds(by_seed: Iterable[Mapping[int, object]]) -> list[int]:
    common = set.intersection(*map(set, by_seed))
    if not common:
        raise Missing("no seed that all its records share")
    return sorted(common)


def _expand(ranking: list) -> list[list[str]]:
    """Return lists of methods; "*" is replaced by the methods that are not named."""
    groups = [entry if isinstance(entry, list) else [entry] for entry in ranking]
    named = {name.partition("@")[0] for group in groups for name in group}
    others = [method for method in PAPER_METHODS if method not in named]
    return [others if group == ["*"] else group for group in groups]


def _measure(measure: dict, metric: str, runs: _Runs) -> Measured:
    """Return one measurement, of a kind that the docstring of the module explains."""
    kind = measure["is"]
    if kind == "value":
        return _measure_value(measure, metric, runs)
    if kind == "gain":
        return _measure_gain(measure, metric, runs)
    if kind == "order":
        return _worst_case(_order_cases(measure, metric, runs), measure)
    return _worst_case(_change_cases(measure, metric, runs), measure)


def _lengths(measure: dict) -> list[int]:
    return np.atleast_1d(measure["bits"]).tolist()


def _measure_value(measure: dict, metric: str, runs: _Runs) -> Measured:
    name = measure["method"]
    if "samples" in measure:
        name = f"{name}@{measure['samples']}"
    by_seed = runs.values(name, _lengths(measure)[0], metric)
    values = np.concatenate(list(by_seed.values()))
    why = "it cannot encode yet" if np.isnan(values).any() else ""
    return runs.measured(values.mean(), sd(values), why)


def _measure_gain(measure: dict, metric: str, runs: _Runs) -> Measured:
    method = measure["method"]
    # The first group is the method itself, so that "*" does not include it.
    groups = _expand([method, *measure["over"]])[1:]
    rivals = list(chain.from_iterable(groups))
    gains = []
    for n_bits in _lengths(measure):
        own = runs.values(method, n_bits, metric)
        over = [runs.values(rival, n_bits, metric) for rival in rivals]
        best = max(over, key=lambda values: np.mean(list(values.values())))
        seeds = _common_seeds([own, best])
        gains.append({s: float(own[s][0] / best[s][0]) - 1 for s in seeds})
    means = []
    for seed in _common_seeds(gains):
        means.append(np.mean([gain[seed] for gain in gains]))
    return runs.measured(np.mean(means), sd(means))


def _order_cases(measure: dict, metric: str, runs: _Runs) -> list[list[Measured]]:
    """Return for each code length the gaps between all that must be in order."""
    steps = []
    for above, below in pairwise(_expand(measure["ranking"])):
        for better in above:
            steps += [(better, worse) for worse in below]
    groups = []
    for n in _lengths(measure):
        gaps = []
        for better, worse in steps:
            why = f"at {n} bits {better} over {worse}"
            gaps.append(runs.gap(metric, (better, n), (worse, n), why))
        groups.append(gaps)
    return groups


def _change_cases(measure: dict, metric: str, runs: _Runs) -> list[list[Measured]]:
    """Return for each method the changes from one code length to the next."""
    groups = []
    for method in np.atleast_1d(measure["method"]).tolist():
        changes = []
        for n, n_next in pairwise(_lengths(measure)):
            short = (method, n)
            long = (method, n_next)
            if measure["sign"] > 0:
                why = f"{method} rises from {n} to {n_next} bits by"
                changes.append(runs.gap(metric, long, short, why))
            else:
                why = f"{method} falls from {n} to {n_next} bits by"
                changes.append(runs.gap(metric, short, long, why))
        groups.append(changes)
    return groups


def _worst_case(groups: list[list[Measured]], measure: dict) -> Measured:
    """Return the case that decides: every group must hold, or more than half of them."""
    slack = measure.get("slack", 0)

    def strength(case: Measured) -> tuple[float, float]:
        return case.strength(slack), case.value

    worst = [min(group, key=strength) for group in groups]
    worst.sort(key=strength)
    if measure.get("most"):
        # If this case holds, it and the stronger ones are more than half.
        case = worst[(len(worst) - 1) // 2]
        return replace(case, why=f"middle case: {case.why}")
    return replace(worst[0], why=f"worst case: {worst[0].why}")


def from_records(
    spec: dict, records: Sequence[dict], fault_records: Mapping[str, Sequence[dict]]
) -> Measured:
    """Return the measurement of a claim, with its fault if that was measured too.

    `claims.judge` explains the arguments. `Missing` is raised if a record does not exist.
    """
    measure = spec["measure"]
    metric = measure["metric"]
    runs = _Runs(spec, records)
    measured = _measure(measure, metric, runs)
    if "fault_metric" in measure:
        metric = measure["fault_metric"]
    elif spec.get("fault") in fault_records:
        runs = _Runs(spec, records, fault_records[spec["fault"]])
    else:
        return measured
    return replace(measured, fault=_measure(measure, metric, runs))
