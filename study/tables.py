"""Select values from records of `protocol.run`, summarise them over seeds, and make tables of them.

In all functions the metric "headline" means the headline metric of each record's role. A table has
means and deviations over seeds, and marks the best two. The paper's values appear only where the
data are the paper's. Other data are called STAND-IN in the title.

>>> run = {"method": "HMOH", "dataset": "mnist", "role": "mnist", "stand_in_for": None, "n_bits": 8}
>>> run["metric"] = "mAP"
>>> records = [run | {"seed": 1, "mAP": 0.8}, run | {"seed": 0, "mAP": 0.7}]
>>> values(records, "mAP", method="HMOH", n_bits=8)
array([0.7, 0.8])
>>> print(table(records, "headline"))
mAP on mnist; mean ± sd of 2 seeds, ¹ best, ² second, the paper's in brackets
bits  8
HMOH  0.750¹ ±0.071 (0.743)
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from typing import NamedTuple

import numpy as np

from study.datasets import Dataset, load, small_part
from study.profile import by_profile
from study.scores import headline
from study.select import (
    LOWER_IS_BETTER,
    best_rival,
    differences,
    label_of,
    metric_of,
    paper_value,
    summary,
    values,
)
from study.statistics import interval, mean_and_interval

__all__ = ["Table", "early", "gap_text", "gap_verdict", "lead", "load_data", "mean_text"]
__all__ += ["number", "step", "table", "title", "untrained", "with_interval"]

# What the paper calls the state of the art.
BEST = ("MIHash", "BSODH", "HCOH", "HMOH")


def load_data(name: str) -> Dataset:
    """Return a data set for a notebook; in the quick profile a small part of it.

    `datasets.load` reports on stderr that it uses a STAND-IN, which JupyterLab would show as an
    error. Here the report is printed.
    """
    with redirect_stderr(sys.stdout):
        data = load(name)
    return by_profile(data, small_part(data))


# ---- values of records ---------------------------------------------------------------


# ---- numbers as text -----------------------------------------------------------------


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with three digits after the point, fewer from one on; a dash for none.

    >>> number(0.8471), number(-0.02), number(12.345), number(float("nan"))
    ('0.847', '-0.020', '12.3', '-')
    """
    if value is None or np.isnan(value):
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    if abs(value) >= 1:
        return f"{value:.{digits - 1}f}"
    return f"{value:.{digits}f}"


def with_interval(samples: Sequence[float | None]) -> str:
    """Return a mean difference with its sign, and both ends of its 95 % interval.

    Values that are None or nan do not count. One value has no interval.

    >>> with_interval([0.01, 0.03, float("nan")]), with_interval([0.01]), with_interval([])
    ('+0.020 [-0.107, +0.147]', '+0.010', '-')
    """
    mean, low, high = mean_and_interval(samples)
    n_values = np.isfinite(np.array(samples, dtype=float)).sum()
    if n_values < 2:
        return f"{mean:+.3f}" if n_values else "-"
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def mean_text(values: Sequence[float]) -> str:
    """Return the mean of a sample with its 95 % interval; one value has none.

    >>> mean_text([0.80, 0.82, 0.84]), mean_text([0.8])
    ('0.820 ±0.050', '0.800')
    """
    mean, low, high = mean_and_interval(values)
    if len(values) < 2:
        return number(mean)
    return f"{number(mean)} ±{number((high - low) / 2)}"


def gap_text(gaps: Sequence[float]) -> str:
    """Return a mean difference with its sign and its 95 % interval.

    >>> gap_text([0.01, 0.03])
    '+0.020 ±0.127'
    """
    return mean_text(gaps) if np.mean(gaps) < 0 else f"+{mean_text(gaps)}"


def gap_verdict(gaps: Sequence[float]) -> str:
    """Return what paired differences show: "above zero", "below zero" or "undecided".

    >>> gap_verdict([0.01, 0.03]), gap_verdict([-0.02, -0.03, -0.02])
    ('undecided', 'below zero')
    """
    low, high = interval(gaps)
    if low > 0 or high < 0:
        return "above zero" if low > 0 else "below zero"
    return "undecided"


# ---- the paper's values --------------------------------------------------------------


# ---- titles and the table itself -----------------------------------------------------


def _names_of_data(records: Iterable[dict]) -> str:
    """Return the names of the data sets, with STAND-IN where they are not the paper's."""
    names = {}
    for record in records:
        name = record["dataset"]
        role = record["stand_in_for"]
        names[name] = f"{name} (STAND-IN for {role})" if role else name
    return ", ".join(names.values())


def _name_of_metric(records: Iterable[dict], metric: str) -> str:
    """Return the metric's name in a title, such as "mAP (mAP@1000)" if it differs between sets."""
    if metric == "train_seconds":
        return "training seconds"
    first, *others = sorted({metric_of(record, metric) for record in records})
    return f"{first} ({others[0]})" if others else first


def _number_of_seeds(records: Iterable[dict], what: str, metric: str) -> str:
    """Return over how many seeds the rows are means, such as "mean of 5 to 10 seeds"."""
    seeds = {}
    for record in records:
        if metric_of(record, metric) in record:
            seeds.setdefault(label_of(record), set()).add(record["seed"])
    numbers = sorted({len(found) for found in seeds.values()})
    if numbers == [1]:
        return "one seed"
    return f"{what} of {' to '.join(map(str, {numbers[0]: 0, numbers[-1]: 0}))} seeds"


def title(records: list[dict], metric: str) -> str:
    """Return what is measured, on which data and over how many seeds."""
    what = _name_of_metric(records, metric)
    spread = _number_of_seeds(records, "mean ± sd", metric)
    text = f"{what} on {_names_of_data(records)}; {spread}, ¹ best, ² second"
    if any(paper_value(record, metric) is not None for record in records):
        text += ", the paper's in brackets"
    return text


class Table(NamedTuple):
    """A table of text that prints plainly and that Jupyter shows as HTML.

    In HTML, cells with the mark ¹ are bold and cells with ² are underlined.
    """

    title: str
    head: list[str]
    rows: list[list[str]]

    def __str__(self) -> str:
        columns = zip(self.head, *self.rows, strict=True)
        widths = [max(len(cell) for cell in column) for column in columns]
        lines = [self.title]
        for row in (self.head, *self.rows):
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)

    # For a console, and for the plain form that a notebook keeps.
    __repr__ = __str__

    def _repr_html_(self) -> str:
        caption = html.escape(self.title)
        lines = ["".join(_html_cell(text, "th") for text in self.head)]
        for label, *cells in self.rows:
            found = "".join(_html_cell(text, "td") for text in cells)
            lines.append(_html_cell(label, "th") + found)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f'<table><caption style="text-align:left">{caption}</caption>{body}</table>'


def _html_cell(text: str, tag: str) -> str:
    style = "text-align:left;"
    if "¹" in text:
        style += "font-weight:bold"
    elif "²" in text:
        style += "text-decoration:underline"
    return f'<{tag} style="{style}">{html.escape(text)}</{tag}>'


# ---- tables of records ---------------------------------------------------------------


def _check_records(records: list[dict]) -> None:
    if not records:
        raise ValueError("there are no records; pass records of protocol.compare or run_all.")


def _marks(cells: dict[tuple, tuple[float, float]], metric: str) -> dict[tuple, str]:
    """Return ¹ for the best cell of each column and ² for the second."""
    sign = 1 if metric in LOWER_IS_BETTER else -1
    labels = list(dict.fromkeys(label for label, _ in cells))
    marks = {}
    for column in dict.fromkeys(column for _, column in cells):
        ranked = [label for label in labels if (label, column) in cells]
        ranked.sort(key=lambda label: sign * cells[label, column][0])
        for label, mark in zip(ranked, "¹²", strict=False):
            marks[label, column] = mark
    return marks


def table(records: list[dict], metric: str, column: str = "n_bits") -> Table:
    """Return one metric of all records: a row for each label, a column for each code length.

    Parameters
    ----------
    records : list of dict
        Records of `protocol.run`.
    metric : str
        "headline" stands for the headline metric of each record's role.
    column : str
        The entry of the records that the columns stand for, such as "dataset".
    """
    _check_records(records)
    cells = summary(records, metric, column)
    marks = _marks(cells, metric)
    printed = {}
    for record in records:
        printed[label_of(record), record[column]] = paper_value(record, metric)

    def text(key: tuple) -> str:
        if key not in cells:
            return "-"
        mean, deviation = cells[key]
        found = number(mean) + marks.get(key, "")
        if not np.isnan(deviation):
            found += f" ±{number(deviation)}"
        if printed[key] is not None:
            found += f" ({number(printed[key])})"
        return found

    labels = list(dict.fromkeys(label for label, _ in cells))
    columns = list(dict.fromkeys(of_column for _, of_column in cells))
    first = column
    if column == "n_bits":
        columns.sort()
        first = "bits"
    head = [first, *map(str, columns)]
    rows = [[str(label), *(text((label, key)) for key in columns)] for label in labels]
    return Table(title(records, metric), head, rows)


def lead(records: list[dict], metric: str) -> Table:
    """Return HMOH's mean, that of the best other method and their difference, for each length.

    The difference is the mean over the seeds that both have, with its 95 % interval.
    """
    _check_records(records)
    rows = []
    for n_bits in sorted({record["n_bits"] for record in records}):
        rival = best_rival(records, metric, n_bits)
        ours = values(records, metric, method="HMOH", n_bits=n_bits).mean()
        theirs = values(records, metric, method=rival, n_bits=n_bits).mean()
        gaps = differences(
            records,
            metric,
            {"method": "HMOH", "n_bits": n_bits},
            {"method": rival, "n_bits": n_bits},
        )
        rows.append([str(n_bits), number(ours), rival, number(theirs), with_interval(gaps)])
    what = f"{_name_of_metric(records, metric)} on {_names_of_data(records)}"
    seeds = _number_of_seeds(records, "mean", metric)
    head = ["bits", "HMOH", "best other method", "its value", "difference"]
    text = f"{what}; {seeds}, HMOH, the best other method, and 95 % intervals"
    return Table(text, head, rows)


def early(records: list[dict], n_bits: int, metric: str = "headline") -> Table:
    """Return each method's value early in the stream, and when it has the early value of HMOH.

    Early means the first checkpoint at which HMOH can encode. It is a tenth of the stream (on
    Places205 a twentieth), if the feature map needs no more samples.

    Parameters
    ----------
    records : list of dict
        Records of `protocol.compare` with ``checkpoints=True``, of one data set.
    n_bits : int
    metric : str
        The headline metric, because only it is measured at the checkpoints.
    """
    _check_records(records)
    records = [r for r in records if "stream" in r]
    if not records:
        raise ValueError(
            "the records have no checkpoints; pass checkpoints=True to protocol.compare."
        )
    first = records[0]
    measured = headline(first["role"])
    if metric not in ("headline", measured):
        raise ValueError(
            f"{metric} is not measured at checkpoints; pass {measured!r} or 'headline'."
        )
    means = {}
    for method in dict.fromkeys(record["method"] for record in records):
        curves = values(records, "stream", method=method, n_bits=n_bits)
        means[method] = curves.mean(axis=0)
    shares = [f"{n / first['n_stream']:.0%}" for n in first["samples"]]
    at = int(np.isfinite(means["HMOH"]).argmax())
    goal = means["HMOH"][at]
    rows = []
    for method, mean in means.items():
        reached = "never"
        if (mean >= goal).any():
            reached = shares[int((mean >= goal).argmax())]
        rows.append([method, number(mean[at]), number(mean[-1]), reached])
    when = f"after {shares[at]}"
    head = ["method", when, "at the end", f"has HMOH's value {when} at"]
    where = f"{measured} on {_names_of_data(records)}, {n_bits} bits"
    seeds = _number_of_seeds(records, "mean", "stream")
    return Table(f"{where}, stream of {first['n_stream']:,}; {seeds}", head, rows)


def step(
    records: list[dict], published: list[dict], metric: str, lengths: tuple[int, int]
) -> Table:
    """Return how much the best methods change from one code length to another, in both readings.

    Parameters
    ----------
    records, published : list of dict
        Runs as described and as published, of one data set.
    metric : str
    lengths : the shorter and the longer length
    """
    shorter, longer = lengths
    has_other = {record["method"] for record in published}
    rows = []
    for method in BEST:
        after = {"method": method, "n_bits": longer}
        before = {"method": method, "n_bits": shorter}
        row = [method, with_interval(differences(records, metric, after, before)), "the same"]
        if method in has_other:
            row[-1] = with_interval(differences(published, metric, after, before))
        rows.append(row)
    what = f"{metric} on {_names_of_data(records)}, {longer} minus {shorter} bits"
    return Table(
        f"{what}; mean and 95 % interval", ["method", "as described", "as published"], rows
    )


def untrained(records: list[dict], n_bits: int) -> Table:
    """Return the best methods early in the stream, compared with LSH, the untrained start.

    Early is as in `early`.
    """
    first = next(record for record in records if "stream" in record)
    curves = {}
    for method in ("LSH", *BEST):
        curves[method] = values(records, "stream", method=method, n_bits=n_bits)
    at = int(np.isfinite(curves["HMOH"]).all(axis=0).argmax())
    starts = {method: found[:, at] for method, found in curves.items()}
    rows = []
    for method in BEST:
        gap = starts[method] - starts["LSH"]
        text = "exactly the same" if not gap.any() else with_interval(gap)
        rows.append([method, number(starts[method].mean()), text])
    when = f"after {first['samples'][at] / first['n_stream']:.0%}"
    what = f"{headline(first['role'])} on {_names_of_data(records)}, {n_bits} bits"
    head = ["method", when, "minus LSH, the untrained start"]
    return Table(f"{what}; mean and 95 % interval", head, rows)
