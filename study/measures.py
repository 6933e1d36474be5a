"""What do the runs say about a claim of the paper? Its sample, from records of `protocol.run`.

"measure" in the claim's entry of data/paper_claims.json has one of the kinds below. "mAP" is
mAP@1000 on Places205, as in the paper's tables.

    value   the metric of a method at a code length; with "samples", after that share of the stream
    gain    the mean over code lengths of a/b - 1, where b is the best of "over" at that length
    order   at every length, each entry of "ranking" is better than the next. "*" means all of
            `PAPER_METHODS` that are not named. "HMOH@0.1" is HMOH after a tenth of the stream.
            With "most" it is said of more than half of the lengths. "slack" is the deficit that
            the better method may have, where the paper says "similar".
    change  the metric of a method rises from each length to the next, or falls with "sign" -1.
            With several methods it is said of each, with "most" of more than half.
    peak    the metric of a method is higher with "at" bits than with each of the other lengths;
            with several methods as for "change"
    stream  the metric of a method is higher at the end of the stream than after the share "from"
            of it, or lower with "sign" -1; with several methods as for "change". A "slack" below 0
            is the least difference that counts.

A claim is measured twice: as described, with `baselines.METHODS`, and as published, with
`baselines.METHODS_AS_PUBLISHED` and the changes to "measure" that "published" of its entry lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from baselines import PUBLISHED_FAULTS
from study.select import PAPER_METHODS, samples

__all__ = ["CASES", "EVALUATION_FAULTS", "KINDS", "Missing", "Sample", "from_records"]
__all__ += ["order_cases"]

# What the published evaluation does, by the change in "published" of a claim.
EVALUATION_FAULTS = {
    "mAP int8": "similarities are cast to int8, which saturates above 127 "
    "(lmbxmu/mycode, ONLINE_HASHING_UTILS/evaluate.m, lines 97 to 106)",
}


@dataclass(frozen=True)
class Sample:
    """Measurements of one claim: one for each seed, made in a notebook or from records.

    Attributes
    ----------
    values : (n_seeds,) numbers, dict, or list of dict
        For a printed value: the value for each seed. For an order: the gap in the direction of
        the claim for each seed, or a dict of such gaps by case, which must all be positive, or a
        list of such dicts, one for each code length. nan stands for a seed that is missing.
    data : str
        Name of the data set. "theory" is a simulation; random features are described in words.
    published : as `values`, optional
        The same with `baselines.METHODS_AS_PUBLISHED`. None if that was not run, and `values`
        itself if the published code has no fault that matters.
    why : str
        What was measured, in words.
    faults : tuple of str
        What the published code does that `published` has and `values` has not.
    """

    values: Sequence[float] | Mapping[str, Sequence[float]] | list[dict]
    data: str = "theory"
    published: Sequence[float] | Mapping[str, Sequence[float]] | list[dict] | None = None
    why: str = ""
    faults: tuple[str, ...] = ()


class Missing(LookupError):
    """A record that a claim needs does not exist."""


# ---- where values come from ----------------------------------------------------------


class _Runs:
    """The records for one claim: of one data set and split, with the paper's settings."""

    def __init__(self, spec: dict, records: Iterable[dict], published: bool = False):
        measure = spec["measure"]
        plain = [r for r in records if r["role"] == spec["role"] and not r["params"]]
        if not plain:
            raise Missing(f"no records of {spec['role']} with the paper's settings")
        # The paper's own data are preferred to a stand-in.
        first = min(plain, key=lambda r: r["stand_in_for"] is not None)
        self.data = first["dataset"]
        same = {"dataset": self.data, "split": measure.get("split", "paper")}
        if "queries" in measure:
            same["n_queries"] = measure["queries"]
        self.records = [r for r in plain if all(r.get(name) == same[name] for name in same)]
        self.published = published
        # The methods, among those asked for, that ran as published.
        self.used = set()

    def values(self, name: str, n_bits: int, metric: str) -> dict[int, float]:
        """Return seed -> the value. Not all seeds have curves."""
        method, _, share = name.partition("@")
        # A method without a published reading is taken as described.
        as_published = self.published and method in PUBLISHED_FAULTS
        fields = {"method": method, "n_bits": n_bits, "published": as_published}
        own = f"stream@{share}" if share else {"mAP": "headline"}.get(metric, metric)
        found = samples(self.records, own, **fields)
        if not found:
            needed = "checkpoints" if share else repr(metric)
            how = " as published" if as_published else ""
            raise Missing(f"no record of {method}{how} at {n_bits} bits with {needed}")
        if as_published:
            self.used.add(method)
        return found[()]

    def lacks(self, name: str, n_bits: int) -> bool:
        """Tell whether other methods have records of this length, but this one only of others.

        It cannot have such codes then: SketchHash has no more bits than features.
        """
        method, _, _ = name.partition("@")
        methods = {r["method"] for r in self.records if r["n_bits"] == n_bits}
        known = {r["method"] for r in self.records}
        return bool(methods) and method in known - methods


def _paired(a: dict[int, float], b: dict[int, float]) -> dict[int, tuple[float, float]]:
    """Return seed -> the pair of values, for the seeds that both have."""
    common = sorted(a.keys() & b.keys())
    if not common:
        raise Missing("no seed that all its records share")
    return {seed: (a[seed], b[seed]) for seed in common}


def _in_columns(by_seed: Sequence[dict[int, float]]) -> list[np.ndarray]:
    """Return the dicts as arrays with one place for each seed of any of them, nan if missing."""
    seeds = sorted(set().union(*by_seed))
    return [np.array([found.get(seed, np.nan) for seed in seeds]) for found in by_seed]


# ---- the kinds of measurement --------------------------------------------------------


def _lengths(measure: dict) -> list[int]:
    return np.atleast_1d(measure["bits"]).tolist()


def _value(measure: dict, runs) -> np.ndarray:
    name = measure["method"]
    if "samples" in measure:
        name = f"{name}@{measure['samples']}"
    found = runs.values(name, _lengths(measure)[0], measure["metric"])
    return _in_columns([found])[0]


def _gain(measure: dict, runs) -> np.ndarray:
    """Return the mean over lengths of a/b - 1, one value for each seed.

    Their mean over the seeds is the ratio of the means, as in the paper's tables. The mean of the
    seeds' own ratios would be too large where b varies. Each value is the ratio of the means plus
    the linear effect of its seed.
    """
    gains = []
    for a, b in _gain_pairs(measure, runs):
        known = ~np.isnan(a + b)
        ratio = a[known].mean() / b[known].mean()
        gains.append(ratio - 1 + (a - ratio * b) / b[known].mean())
    return np.mean(gains, axis=0)


def _gain_pairs(measure: dict, runs) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each length the values of the method and of the best rival, seed by seed."""
    method = measure["method"]
    # The first group is the method itself, so that "*" does not include it.
    groups = _expand([method, *measure["over"]])[1:]
    rivals = list(chain.from_iterable(groups))
    pairs = []
    for n_bits in _lengths(measure):
        own = runs.values(method, n_bits, measure["metric"])
        able = [rival for rival in rivals if not runs.lacks(rival, n_bits)]
        over = [runs.values(rival, n_bits, measure["metric"]) for rival in able]
        best = max(over, key=lambda found: np.nanmean([*found.values()]))
        pairs.append(_paired(own, best))
    common = sorted(set.intersection(*(set(pair) for pair in pairs)))
    if not common:
        raise Missing("no seed that all its records share")
    columns = []
    for pair in pairs:
        a, b = zip(*(pair[seed] for seed in common), strict=True)
        columns.append((np.array(a), np.array(b)))
    return columns


def _expand(ranking: list) -> list[list[str]]:
    """Return lists of methods; "*" is replaced by the methods that are not named."""
    groups = [entry if isinstance(entry, list) else [entry] for entry in ranking]
    named = {name.partition("@")[0] for group in groups for name in group}
    others = [method for method in PAPER_METHODS if method not in named]
    return [others if group == ["*"] else group for group in groups]


def order_cases(ranking: list) -> list[tuple[str, str]]:
    """Return the pairs (better, worse) that a ranking claims.

    >>> order_cases([["HMOH", "HCOH"], "LSH"])
    [('HMOH', 'LSH'), ('HCOH', 'LSH')]
    """
    pairs = []
    for above, below in pairwise(_expand(ranking)):
        for better in above:
            pairs += [(better, worse) for worse in below]
    return pairs


def _gaps(cases: dict[str, tuple], metric: str, runs) -> dict[str, np.ndarray]:
    """Return the paired differences of each case, (name, bits) minus (name, bits)."""
    gaps = []
    for better, worse in cases.values():
        pairs = _paired(runs.values(*better, metric), runs.values(*worse, metric))
        if metric == "train_seconds":
            gaps.append({seed: np.log(b / a) for seed, (a, b) in pairs.items()})
        else:
            gaps.append({seed: a - b for seed, (a, b) in pairs.items()})
    return dict(zip(cases, _in_columns(gaps), strict=True))


Case = tuple[tuple[str, int], tuple[str, int]]  # the better run and the worse, each (name, bits)


def _order_groups(measure: dict, runs) -> list[dict[str, Case]]:
    groups = []
    for n in _lengths(measure):
        cases = {}
        for better, worse in order_cases(measure["ranking"]):
            if runs.lacks(worse, n):
                continue
            cases[f"at {n} bits {better} over {worse}"] = (better, n), (worse, n)
        groups.append(cases)
    return groups


def _methods(measure: dict) -> list[str]:
    return np.atleast_1d(measure["method"]).tolist()


def _change_groups(measure: dict, runs) -> list[dict[str, Case]]:
    groups = []
    for method in _methods(measure):
        cases = {}
        for n, n_next in pairwise(_lengths(measure)):
            if runs.lacks(method, n_next):
                continue
            short = (method, n)
            long = (method, n_next)
            if measure["sign"] > 0 and measure.get("slack"):
                cases[f"{method} does not fall from {n} to {n_next} bits"] = long, short
            elif measure["sign"] > 0:
                cases[f"{method} rises from {n} to {n_next} bits"] = long, short
            else:
                cases[f"{method} falls from {n} to {n_next} bits"] = short, long
        groups.append(cases)
    return groups


def _peak_groups(measure: dict, runs) -> list[dict[str, Case]]:
    top = measure["at"]
    groups = []
    for method in _methods(measure):
        cases = {}
        for n in _lengths(measure):
            if n != top and not runs.lacks(method, n):
                cases[f"{method} at {top} over {n} bits"] = (method, top), (method, n)
        groups.append(cases)
    return groups


def _stream_groups(measure: dict, runs) -> list[dict[str, Case]]:
    groups = []
    for method in _methods(measure):
        cases = {}
        for n in _lengths(measure):
            early, late = (f"{method}@{measure['from']}", n), (f"{method}@1", n)
            if measure["sign"] > 0:
                cases[f"{method} gains at {n} bits"] = late, early
            else:
                cases[f"{method} loses at {n} bits"] = early, late
        groups.append(cases)
    return groups


# What an order compares, by its kind: a dict of cases for each group, which must all hold.
CASES = {
    "order": _order_groups,
    "change": _change_groups,
    "peak": _peak_groups,
    "stream": _stream_groups,
}


def _compared(measure: dict, runs) -> list[dict[str, np.ndarray]]:
    groups = CASES[measure["is"]](measure, runs)
    return [_gaps(cases, measure["metric"], runs) for cases in groups]


KINDS = {"value": _value, "gain": _gain} | dict.fromkeys(CASES, _compared)


# ---- what claims.py calls ------------------------------------------------------------


def from_records(spec: dict, records: Sequence[dict]) -> Sample:
    """Return the measurements of a claim, as described and as published.

    Parameters
    ----------
    spec : dict
        An entry of data/paper_claims.json with "measure".
    records : list of dict
        Those with "published" take the place of the others in the measurement as published, for
        the methods of `PUBLISHED_FAULTS`. It is None if one of them is missing. `Missing` is
        raised if a record for the measurement as described does not exist.
    """
    measure = spec["measure"]
    runs = _Runs(spec, records)
    values = KINDS[measure["is"]](measure, runs)
    why = _why(measure, values)
    changes = spec.get("published", {})
    measure = measure | changes
    runs_published = _Runs(spec, records, published=True)
    try:
        published = KINDS[measure["is"]](measure, runs_published)
    except Missing:
        published = None
    faulty = sorted(runs_published.used)
    faults = [f"{method}: {PUBLISHED_FAULTS[method]}" for method in faulty]
    faults += [EVALUATION_FAULTS[value] for value in changes.values()]
    if not faults:
        published = None  # only methods without a published reading
    return Sample(values, runs.data, published, why, tuple(faults))


def _why(measure: dict, values) -> str:
    if measure["is"] == "value" and np.isnan(values).all():
        return "it cannot encode yet"
    if measure["is"] in CASES:
        return "middle case" if measure.get("most") else "weakest case"
    return ""
