"""Select values from records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from study.datasets import BENCHMARKS
from study.scores import headline
from study.statistics import interval, sd

__all__ = ["LOWER_IS_BETTER", "best_rival", "by_case", "differences", "label_of"]
__all__ += ["mean_and_interval", "metric_of", "paper_value", "per_seed", "printed_values"]
__all__ += ["summary", "values"]

ROOT = Path(__file__).parents[1]
LOWER_IS_BETTER = ("train_seconds",)


def label_of(record: dict) -> str:
    """Return the name of a run in tables, by default its method."""
    return record.get("label", record["method"])


def metric_of(record: dict, metric: str) -> str:
    """Return the metric's own name, which "headline" has for each role."""
    return headline(record["role"]) if metric == "headline" else metric


def values(records: Iterable[dict], metric: str, **fields) -> np.ndarray:
    """Return one value per seed, in order of seeds, of the records whose fields are equal to these.

    Records that do not have the metric, such as those without a curve, are left out.

    Parameters
    ----------
    records : list of dict
    metric : str
        A name such as "mAP" or "headline". "stream" gives a row for each seed and a column for
        each checkpoint, with nan where the method could not encode yet.
    **fields
        Such as ``method="HMOH", n_bits=32``. They must leave one record for each seed.
    """
    by_seed = _by_seed(records, metric, fields)
    return np.array([by_seed[seed] for seed in sorted(by_seed)], dtype=np.float64)


def differences(records: Iterable[dict], metric: str, better: dict, worse: dict) -> np.ndarray:
    """Return one difference per seed that both have, in order of seeds.

    Parameters
    ----------
    records : list of dict
    metric : str
    better, worse : dict
        The fields of the two runs, such as ``{"method": "HMOH", "n_bits": 32}``.
    """
    records = list(records)
    a = _by_seed(records, metric, better)
    b = _by_seed(records, metric, worse)
    common = sorted(a.keys() & b.keys())
    if not common:
        raise ValueError(f"{better} and {worse} share no seed; run both with the same.")
    return np.array([a[seed] - b[seed] for seed in common], dtype=np.float64)


def _by_seed(records: Iterable[dict], metric: str, fields: dict) -> dict[int, float]:
    """Return seed -> value of the records whose fields are equal to these."""
    found = {}
    for record in records:
        if any(record.get(name) != value for name, value in fields.items()):
            continue
        name = metric_of(record, metric)
        if name not in record:
            continue
        seed = record["seed"]
        if seed in found:
            raise ValueError(
                f"two records with {fields} have seed {seed}; "
                "pass more fields, such as label or n_bits."
            )
        found[seed] = record[name]
    if not found:
        raise ValueError(f"no record with {metric!r} has {fields}; pass fields that records have.")
    return found


def per_seed(
    records: Iterable[dict], metric: str, method: str, n_bits: int, seeds: Sequence[int]
) -> np.ndarray:
    """Return one value for each of these seeds, nan for a seed that the method has no value for."""
    found = {}
    for record in records:
        if (record["method"], record["n_bits"]) == (method, n_bits):
            found[record["seed"]] = record.get(metric, np.nan)
    return np.array([found.get(seed, np.nan) for seed in seeds])


def best_rival(
    records: list[dict],
    metric: str,
    n_bits: int,
    among: Iterable[str] | None = None,
    to: str = "HMOH",
) -> str:
    """Return the name of the best other method, by its mean over seeds.

    Parameters
    ----------
    records : list of dict
    metric : str
        The least "train_seconds" is the best, of all others the greatest.
    n_bits : int
    among : names of methods, optional
        By default all methods of the records. Those without records of this length are left out.
    to : str
        The method that is left out.
    """
    if among is None:
        among = dict.fromkeys(record["method"] for record in records)
    # A method may be unable to make codes of this length.
    measured = set()
    for record in records:
        if record["n_bits"] == n_bits and metric_of(record, metric) in record:
            measured.add(record["method"])
    means = {}
    for method in among:
        if method != to and method in measured:
            found = values(records, metric, method=method, n_bits=n_bits)
            means[method] = found.mean()
    if not means:
        raise ValueError(f"there is no method but {to}; add records of other methods.")
    best = min if metric in LOWER_IS_BETTER else max
    return best(means, key=means.get)


def summary(
    records: Iterable[dict], metric: str, column: str = "n_bits"
) -> dict[tuple, tuple[float, float]]:
    """Return mean and standard deviation over seeds by (label, column); nan for one seed."""
    groups: dict = {}
    for record in records:
        name = metric_of(record, metric)
        if name in record:
            key = (label_of(record), record[column])
            groups.setdefault(key, []).append(record[name])
    return {key: (float(np.mean(group)), sd(group)) for key, group in groups.items()}


def by_case(
    records: list[dict],
    metric: str,
    case: tuple[str, ...] = ("role", "label"),
    rows: str = "n_bits",
) -> dict[tuple, np.ndarray]:
    """Return a matrix for each case: a row for each code length, a column for each seed.

    Parameters
    ----------
    records : list of dict
        All cases need the same code lengths and the same number of seeds.
    metric : str
    case : tuple of str
        The fields that make a case. Their values are the keys of the result.
    rows : str
        The field that the rows stand for, in ascending order.
    """
    cases = dict.fromkeys(tuple(record[name] for name in case) for record in records)
    row_values = sorted({record[rows] for record in records})
    matrices = {}
    for key in cases:
        fields = dict(zip(case, key, strict=True))
        lines = []
        for row in row_values:
            fields[rows] = row
            lines.append(values(records, metric, **fields))
        matrices[key] = np.array(lines)
    return matrices


def mean_and_interval(samples: Sequence[float | None]) -> tuple[float, float, float]:
    """Return the mean, and both ends of its 95 % interval; without None and nan.

    One sample has no interval, so both ends are the sample.
    """
    values = np.array(samples, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return np.nan, np.nan, np.nan
    mean = float(values.mean())
    if len(values) == 1:
        return mean, mean, mean
    return mean, *interval(values)


@cache
def _paper() -> dict:
    path = ROOT / "data" / "paper_results.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _is_as_in_paper(record: dict) -> bool:
    """Return whether the data and the protocol of a run are those of the paper."""
    if record["stand_in_for"] or os.environ.get("HMOH_PROFILE") == "quick":
        return False
    if record.get("params") or record.get("split", "paper") != "paper":
        return False
    if record.get("n_queries") not in (None, BENCHMARKS[record["role"]].n_queries):
        return False
    method = record["method"]
    return label_of(record) in (method, f"{method}, as published")


def paper_value(record: dict, metric: str) -> float | None:
    """Return the value in the paper's tables, or None if it has none for such a run.

    There is none where the data or the protocol are not the paper's.
    """
    if not _is_as_in_paper(record):
        return None
    method = record["method"]
    role = record["role"]
    if metric == "train_seconds":
        # The paper prints training times for 32 bits only.
        if record["n_bits"] != 32:
            return None
        return _paper()["training_seconds_32bit"].get(method, {}).get(role)
    by_metric = _paper()["results"][role].get(method, {})
    by_bits = by_metric.get(metric_of(record, metric), {})
    return by_bits.get(str(record["n_bits"]))


def printed_values(records: Iterable[dict], metric: str) -> dict[str, dict[int, float]]:
    """Return method -> bits -> value in the paper's tables, of the runs that have one."""
    found: dict = {}
    for record in records:
        printed = paper_value(record, metric)
        if printed is not None:
            found.setdefault(record["method"], {})[record["n_bits"]] = printed
    return found
