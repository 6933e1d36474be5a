"""Which values do the runs have? Select them by case and seed; what the paper prints for them.

In all functions a metric is the name of a field of the records. Two names mean more: "headline" is
the headline metric of each run's benchmark, and "stream@0.1" is that metric after a tenth of the
stream, at the nearest checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from study import profile
from study.datasets import BENCHMARKS
from study.scores import METRICS
from study.statistics import sd

__all__ = ["PAPER_METHODS", "best_rival", "database_of", "differences", "label_of"]
__all__ += ["lower_is_better", "metric_of", "paper_results", "paper_value", "printed_records"]
__all__ += ["samples", "summary", "values"]

RESULTS = Path(__file__).parents[1] / "data" / "paper_results.json"


def metric_of(record: dict, metric: str) -> str:
    """Return the metric's own name, which "headline" has for each benchmark."""
    return record["metric"] if metric == "headline" else metric


def lower_is_better(metric: str) -> bool:
    """Return whether less of a metric is better, as of "train_seconds"."""
    return metric in METRICS and METRICS[metric].lower_is_better


def label_of(record: dict) -> str:
    """Return the name of a run in tables, by default its method."""
    return record["label"] if "label" in record else record["method"]


def database_of(record: dict) -> str:
    """Return what encoded the database: "learned" functions, or labels ("labelled")."""
    return record.get("database", "learned")


def _field(record: dict, name: str):
    own = {"label": label_of, "database": database_of}
    return own[name](record) if name in own else record.get(name)


def _value(record: dict, metric: str):
    """Return the value of a metric, nan if the method could not encode yet; None without one."""
    field, _, share = metric.partition("stream@")
    name = metric_of(record, field or "stream")
    if name not in record:
        return None
    value = record[name]
    if share:
        wanted = float(share) * record["n_stream"]
        value = value[np.argmin(np.abs(np.array(record["samples"]) - wanted))]
    return np.nan if value is None else value


def samples(records: Iterable[dict], metric: str, *by: str, **fields) -> dict:
    """Return {case: {seed: value}}: one value for each seed of each case.

    Everything that is compared over seeds is selected here. Records without the metric, such as
    those without a curve, are left out. The two protocols of `training.run` are not mixed.

    Parameters
    ----------
    records : iterable of dict
    metric : str
        Such as "mAP", "headline" or "stream@0.1". "stream" gives whole curves.
    *by : str
        The fields that make a case, such as "label". A case is the value of the field, a tuple of
        the values if there are several fields, and () if there is none.
    **fields
        The values that other fields must have, such as ``method="HMOH", n_bits=32``.

    >>> runs = [{"method": "HMOH", "n_bits": 8, "seed": s, "mAP": v} for s, v in enumerate([3, 4])]
    >>> samples(runs, "mAP", "label", n_bits=8)
    {'HMOH': {0: 3, 1: 4}}
    """
    cases: dict = {}
    databases = set()
    for record in records:
        if any(_field(record, name) != value for name, value in fields.items()):
            continue
        value = _value(record, metric)
        if value is None:
            continue
        databases.add(database_of(record))
        if len(databases) > 1 and "database" not in (*by, *fields):
            way = 'pass one kind, or database="learned" or "labelled"'
            raise ValueError(f"some records have a labelled database, others have not; {way}.")
        case = tuple(_field(record, name) for name in by)
        by_seed = cases.setdefault(case[0] if len(by) == 1 else case, {})
        seed = record["seed"]
        if seed in by_seed:
            named = ", ".join(f"{name} {_field(record, name)}" for name in ("label", "n_bits"))
            raise ValueError(
                f"two records of {named} have seed {seed}; pass each run once, "
                f"or more fields than {[*by, *fields]}, such as label or n_bits."
            )
        by_seed[seed] = value
    return cases


def _only(records: Iterable[dict], metric: str, fields: dict) -> dict[int, float]:
    """Return seed -> value of the one case that has these fields."""
    found = samples(records, metric, **fields)
    if not found:
        raise ValueError(f"no record with {metric!r} has {fields}; pass fields that records have.")
    return found[()]


def values(
    records: Iterable[dict], metric: str, seeds: Sequence[int] | None = None, **fields
) -> np.ndarray:
    """Return the `samples` of one case as an array: one value per seed, in order of seeds.

    With ``seeds``, one value for each of these, nan where there is none. The metric "stream" gives
    a row for each seed and a column for each checkpoint, with nan where the method could not encode
    yet.
    """
    if seeds is None:
        found = _only(records, metric, fields)
        seeds = sorted(found)
    else:
        found = samples(records, metric, **fields).get((), {})
    return np.array([found.get(seed, np.nan) for seed in seeds], dtype=np.float64)


def differences(records: Iterable[dict], metric: str, better: dict, worse: dict) -> np.ndarray:
    """Return one difference per seed that both have, in order of seeds.

    ``better`` and ``worse`` are the fields of the two runs: {"method": "HMOH", "n_bits": 8}.
    """
    records = list(records)
    a, b = (_only(records, metric, fields) for fields in (better, worse))
    common = sorted(a.keys() & b.keys())
    if not common:
        raise ValueError(f"{better} and {worse} share no seed; run both with the same.")
    return np.array([a[seed] - b[seed] for seed in common], dtype=np.float64)


def best_rival(
    records: Iterable[dict],
    metric: str,
    n_bits: int,
    among: Iterable[str] | None = None,
    to: str = "HMOH",
) -> str:
    """Return the best method but ``to``, by its mean over seeds.

    ``among`` are names of methods, by default all of the records. Those without codes of this
    length are left out.
    """
    found = samples(records, metric, "method", n_bits=n_bits)
    means = {}
    for method in found if among is None else among:
        if method != to and method in found:
            means[method] = np.mean([*found[method].values()])
    if not means:
        raise ValueError(f"there is no method but {to}; add records of other methods.")
    best = min if lower_is_better(metric) else max
    return best(means, key=means.get)


def summary(
    records: Iterable[dict], metric: str, column: str = "n_bits"
) -> dict[tuple, tuple[float, float]]:
    """Return mean and standard deviation over seeds by (label, column); nan for one seed."""
    cells = {}
    for case, by_seed in samples(records, metric, "label", column).items():
        found = [*by_seed.values()]
        cells[case] = float(np.mean(found)), sd(found)
    return cells


# ---- what the paper prints -----------------------------------------------------------


@cache
def paper_results() -> dict:
    """Return data/paper_results.json: the numbers of the paper's tables."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


# The methods that the paper's tables have, in their order.
PAPER_METHODS = list(paper_results()["training_seconds_32bit"])


@cache
def printed_records(role: str | None) -> dict[tuple[str, int], dict]:
    """Return (method, bits) -> the paper's values as a record of a run; {} without a benchmark."""
    found = {}
    plain = {"dataset": "the paper's tables", "role": role, "stand_in_for": None}
    plain |= {"split": "paper", "published": False, "params": {}, "seed": 0}
    for method, by_metric in paper_results()["results"].get(role, {}).items():
        # The paper prints training times for 32 bits only.
        seconds = {"32": paper_results()["training_seconds_32bit"][method][role]}
        for metric, by_bits in [*by_metric.items(), ("train_seconds", seconds)]:
            for n_bits, value in by_bits.items():
                case = {"method": method, "n_bits": int(n_bits), "metric": BENCHMARKS[role].metric}
                found.setdefault((method, int(n_bits)), plain | case)[metric] = value
    return found


def paper_value(record: dict, metric: str) -> float | None:
    """Return what the paper prints for such a run, None where data or protocol are not the paper's.

    Runs of data without a benchmark have none, whatever they are called.
    """
    role = record["role"]
    if role is None or record["stand_in_for"] or profile.PROFILE == "quick":
        return None
    if record.get("params") or record.get("split", "paper") != "paper":
        return None
    if database_of(record) != "learned":
        return None
    if record.get("n_queries") not in (None, BENCHMARKS[role].n_queries):
        return None
    method = record["method"]
    if label_of(record) not in (method, f"{method}, as published"):
        return None
    printed = printed_records(role).get((method, record["n_bits"]), {})
    return printed.get(metric_of(record, metric))
