"""Make tables of records: means and deviations over seeds, with marks for the best two.

In all functions the metric "headline" means the headline metric of each record. The paper's values
appear only where the data are the paper's. Data that replace them are called STAND-IN.

>>> run = {"method": "HMOH", "dataset": "mnist", "role": "mnist", "stand_in_for": None}
>>> run |= {"metric": "mAP", "n_bits": 8}
>>> records = [run | {"seed": 1, "mAP": 0.8}, run | {"seed": 0, "mAP": 0.7}]
>>> print(table(records, "headline"))
mAP on MNIST; mean ± sd of 2 seeds, ¹ best, ² second, the paper's in brackets
bits  8
HMOH  0.750¹ ±0.071 (0.743)
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from typing import NamedTuple

import numpy as np

from study.datasets import BENCHMARKS, Dataset, load, small_part, title_of
from study.keep import plain
from study.profile import QUICK
from study.scores import METRICS
from study.select import (
    database_of,
    label_of,
    lower_is_better,
    metric_of,
    paper_value,
    summary,
)
from study.statistics import mean_and_interval

__all__ = ["Table", "features_by_method", "features_of", "features_text", "gap_text"]
__all__ += ["load_data", "mean_text", "name_of"]
__all__ += ["name_of_metric", "names_of", "number", "number_of_seeds", "table", "with_interval"]

# Of a stream, whose mean the protocol subtracts before it scales rows to unit length.
PROTOCOL_ROWS = 1000


def load_data(name: str) -> Dataset:
    """Return a data set for a notebook; in the quick profile a small part of it.

    `datasets.load` reports on stderr that it uses a STAND-IN, which JupyterLab would show as an
    error. Here the report is printed.
    """
    with redirect_stderr(sys.stdout):
        data = load(name)
    return small_part(data) if QUICK else data


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


# ---- features as text ----------------------------------------------------------------


def features_text(feature_map) -> str:
    """Return in words which features a map makes, read off the map itself.

    The features in a label or title come from here, so that they are those of the model.

    Parameters
    ----------
    feature_map : object
        A map, several in turn, None, or what a record's "settings" keep of them.

    >>> from kernels import RBF, Concat, UnitLength
    >>> features_text(None), features_text([UnitLength(), RBF(300, 6.0)])
    ('raw features', 'unit rows, RBF(300, 6)')
    >>> features_text([UnitLength(), Concat([None, RBF(50, 5.0, center=True, anchors="kmeans")])])
    'unit rows beside their RBF(50, 5, k-means, centred)'

    Alone, unit rows are not the same if their centre is the mean of fewer rows than in the
    protocol:

    >>> features_text(UnitLength(n_warmup=1000)), features_text(UnitLength())
    ('unit rows', 'unit rows (mean of 100)')
    """
    maps = feature_map if isinstance(feature_map, (list, tuple)) else [feature_map]
    found = [each if isinstance(each, dict) else plain(each) for each in maps if each]
    text = ""
    for part in found:
        text = _after(text, part)
    if text == "unit rows" and found[0]["n_warmup"] != PROTOCOL_ROWS:
        text += f" (mean of {found[0]['n_warmup']})"
    return text or "raw features"


def _after(text: str, found: dict) -> str:
    """Return the features of a map that gets the features of this text, "" for raw ones."""
    if found["name"] == "Concat":
        parts = [_after("", part) if part else text or "raw features" for part in found["maps"]]
        return (" beside their " if text else " beside ").join(parts)
    words = "unit rows" if found["name"] == "UnitLength" else found["name"]
    if found["name"] == "RBF":
        inside = [str(found["n_anchors"]), f"{found['divisor']:g}"]
        inside += ["k-means"] if found["anchors"] == "kmeans" else []
        inside += ["centred"] if found["center"] else []
        words += f"({', '.join(inside)})"
    return f"{text}, {words}" if text else words


def features_of(record: dict) -> str:
    """Return in words which features the model of a record learned from."""
    settings = record["settings"]
    text = features_text(settings.get("feature_map"))
    # Only a method with a kernel of its own, OKH, has anchors that are not those of its map.
    return f"{text} and a kernel of its own" if "n_anchors" in settings else text


def features_by_method(records: Iterable[dict]) -> str:
    """Return which methods stand on which features, such as "HMOH on RBF(300, 6); LSH on ..."."""
    methods: dict = {}
    for record in records:
        methods.setdefault(features_of(record), {})[label_of(record)] = None
    return "; ".join(f"{', '.join(labels)} on {text}" for text, labels in methods.items())


# ---- titles --------------------------------------------------------------------------


def name_of(record: dict) -> str:
    """Return the data set's name: "MNIST", "udhr205 (STAND-IN for Places205)" or its own."""
    return title_of(record["dataset"], BENCHMARKS.get(record["role"]))


def names_of(records: Iterable[dict]) -> str:
    """Return the names of the data sets of records."""
    return ", ".join(dict.fromkeys(map(name_of, records)))


def name_of_metric(records: Iterable[dict], metric: str) -> str:
    """Return the metric's name, such as "mAP (udhr205: mAP@1000)" if it differs between sets."""
    sets: dict = {}
    for record in records:
        name = metric_of(record, metric)
        title = METRICS[name].title if name in METRICS else name
        sets.setdefault(title, {})[record["dataset"]] = None
    first, *others = sorted(sets)
    return f"{first} ({', '.join(sets[others[0]])}: {others[0]})" if others else first


def number_of_seeds(records: Iterable[dict], what: str, metric: str) -> str:
    """Return over how many seeds the rows are means, such as "mean of 5 to 10 seeds"."""
    seeds: dict = {}
    for record in records:
        if metric_of(record, metric) in record:
            seeds.setdefault(label_of(record), set()).add(record["seed"])
    counts = sorted({len(found) for found in seeds.values()})
    if counts == [1]:
        return "one seed"
    return f"{what} of {' to '.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} seeds"


def _title(records: list[dict], metric: str) -> str:
    """Return what is measured, on which data and over how many seeds."""
    spread = number_of_seeds(records, "mean ± sd", metric)
    text = f"{name_of_metric(records, metric)} on {names_of(records)}"
    if database_of(records[0]) == "labelled":
        text += ", labelled database"
    text += f"; {spread}, ¹ best, ² second"
    if any(paper_value(record, metric) is not None for record in records):
        text += ", the paper's in brackets"
    return text


# ---- the table itself ----------------------------------------------------------------


class Table(NamedTuple):
    """A table of text that prints plainly and that Jupyter shows as HTML.

    In HTML and LaTeX a number with the mark ¹ is bold instead, and one with ² is underlined. So are
    the words that explain the marks in the title, such as "¹ best".
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
        caption = _marked(html.escape(self.title), "<b>{}</b>", "<u>{}</u>")
        lines = ["".join(_html_cell(text, "th") for text in self.head)]
        for label, *cells in self.rows:
            found = "".join(_html_cell(text, "td") for text in cells)
            lines.append(_html_cell(label, "th") + found)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f'<table><caption style="text-align:left">{caption}</caption>{body}</table>'

    def to_latex(self) -> str:
        r"""Return the table for a paper; it needs no package.

        >>> print(Table("On A_1", ["bits", "8"], [["HMOH", "0.750¹ ±0.071"]]).to_latex())
        \begin{table}
        \caption{On A\_1}
        \begin{tabular}{ll}
        \hline
        bits & 8 \\
        \hline
        HMOH & \textbf{0.750} $\pm$0.071 \\
        \hline
        \end{tabular}
        \end{table}
        """
        head, *rows = (
            " & ".join(map(_latex_cell, row)) + r" \\" for row in (self.head, *self.rows)
        )
        columns = "l" * len(self.head)
        begin = [r"\begin{table}", rf"\caption{{{_latex_cell(self.title)}}}"]
        begin += [rf"\begin{{tabular}}{{{columns}}}", r"\hline", head, r"\hline"]
        return "\n".join([*begin, *rows, r"\hline", r"\end{tabular}", r"\end{table}"])


LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {sign: rf"\{sign}" for sign in "&%$#_{}"}
LATEX |= {"±": r"$\pm$", "✓": r"$\surd$", "✗": r"$\times$"}
# A number before its mark in a cell, and a word after it in a title.
MARKED = {mark: re.compile(rf"(\S+){mark}|{mark} (\w+)") for mark in "¹²"}


def _marked(text: str, best: str, second: str) -> str:
    """Return a text in which a form stands in the place of each mark and of what it marks."""
    for mark, form in zip("¹²", (best, second), strict=True):
        text = MARKED[mark].sub(lambda found, f=form: f.format(found[1] or found[2]), text)
    return text


def _latex_cell(text: str) -> str:
    return _marked(text.translate(str.maketrans(LATEX)), r"\textbf{{{}}}", r"\underline{{{}}}")


def _html_cell(text: str, tag: str) -> str:
    # A mean and its deviation stay on one line.
    found = html.escape(text).replace(" ±", "&nbsp;±")
    found = _marked(found, "<b>{}</b>", "<u>{}</u>")
    return f'<{tag} style="text-align:left">{found}</{tag}>'


# ---- tables of records ---------------------------------------------------------------


def _check_records(records: list[dict], metric: str) -> None:
    if not records:
        raise ValueError("there are no records; pass records of protocol.compare or run_all.")
    if not any(metric_of(record, metric) in record for record in records):
        known = ", ".join(name for name in METRICS if name in records[0])
        raise ValueError(f"no record has {metric!r}; pass one of {known}, or another field.")


def _marks(cells: dict[tuple, tuple[float, float]], metric: str) -> dict[tuple, str]:
    """Return ¹ for the best cell of each column and ² for the second."""
    sign = 1 if lower_is_better(metric) else -1
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
    _check_records(records, metric)
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
    return Table(_title(records, metric), head, rows)
