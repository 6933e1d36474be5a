"""Tables of experiments: mean and spread over seeds, the best two marked, the paper's values beside ours.

The paper's values appear only where the data are the paper's; a stand-in is called STAND-IN in the title.

>>> run = {"method": "HMOH", "dataset": "mnist", "role": "mnist", "stand_in_for": None, "n_bits": 8}
>>> print(table([run | {"seed": 0, "mAP": 0.7}, run | {"seed": 1, "mAP": 0.8}], "mAP"))
mAP on mnist; mean ± sd of 2 seeds, ¹ best, ² second, the paper's in brackets
bits  8
HMOH  .750¹ ±.071 (.743)
"""

from __future__ import annotations

import html
import json
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Table", "number", "paper_value", "summary", "table", "title"]

HERE = Path(__file__).parent
LOWER_IS_BETTER = ("train_seconds",)


def number(value: float, digits: int = 3) -> str:
    """A number as the paper prints them: .847, but 12.3 from ten on; a dash for none.

    >>> number(0.8471), number(-0.02), number(12.345), number(float("nan"))
    ('.847', '-.020', '12.3', '-')
    """
    if value is None or np.isnan(value):
        return "-"
    if abs(value) >= 10:
        return f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits - 1}f}"


@cache
def _paper() -> dict:
    return json.loads((HERE / "data" / "paper_results.json").read_text())


def paper_value(record: dict, metric: str) -> float | None:
    """What the paper's tables print for this run, where the data are the paper's and the protocol is the paper's."""
    others = record.get("params") or record.get("split") == "unseen" or os.environ.get("HMOH_PROFILE") == "quick"
    if record["stand_in_for"] or others or record.get("label", record["method"]) != record["method"]:
        return None
    if metric == "train_seconds":
        seconds = _paper()["training_seconds_32bit"].get(record["method"], {})
        return seconds.get(record["role"]) if record["n_bits"] == 32 else None
    return _paper()["results"][record["role"]].get(record["method"], {}).get(metric, {}).get(str(record["n_bits"]))


def summary(records: list[dict], metric: str, column: str = "n_bits") -> dict[tuple, tuple[float, float]]:
    """(label, column) -> mean and standard deviation over seeds (nan for one)."""
    values: dict = {}
    for record in records:
        values.setdefault((record.get("label", record["method"]), record[column]), []).append(record[metric])
    return {key: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else np.nan) for key, v in values.items()}


def title(records: list[dict], metric: str) -> str:
    """What is measured, on what, over how many seeds; STAND-IN where the data are not the paper's."""
    sets = dict.fromkeys((record["dataset"], record["stand_in_for"]) for record in records)
    names = ", ".join(f"{name} (STAND-IN for {role})" if role else name for name, role in sets)
    n_seeds = len({record["seed"] for record in records})
    spread = f"mean ± sd of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    what = "training seconds" if metric == "train_seconds" else metric
    paper = any(paper_value(record, metric) is not None for record in records)
    return f"{what} on {names}; {spread}, ¹ best, ² second" + (", the paper's in brackets" if paper else "")


class Table(NamedTuple):
    """A table of text that prints plainly and that Jupyter shows as HTML; marks ¹ and ² are bold and underlined."""

    title: str
    head: list[str]
    rows: list[list[str]]

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = ("  ".join(f"{cell:<{w}}" for cell, w in zip(r, widths, strict=True)) for r in (self.head, *self.rows))
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    __repr__ = __str__  # for a console, and the plain form that a notebook keeps

    def _repr_html_(self) -> str:
        def cell(text: str, tag: str) -> str:
            style = "font-weight:bold" if "¹" in text else "text-decoration:underline" if "²" in text else ""
            return f'<{tag} style="text-align:left;white-space:nowrap;{style}">{html.escape(text)}</{tag}>'

        rows = [[cell(text, "th") for text in self.head]]
        rows += [[cell(row[0], "th"), *(cell(text, "td") for text in row[1:])] for row in self.rows]
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        return f'<table><caption style="text-align:left">{html.escape(self.title)}</caption>{body}</table>'


def table(records: list[dict], metric: str, column: str = "n_bits") -> Table:
    """One metric of all records: a row for each method or label, a column for each code length.

    Parameters
    ----------
    records : list of dict
        Of `experiments.run`.
    metric : str
    column : str
        The entry of the records that the columns stand for, such as "dataset" instead of "n_bits".
    """
    if not records:
        raise ValueError("there are no records; pass what experiments.compare or run_all gives.")
    cells = summary(records, metric, column)
    labels, columns = list(dict.fromkeys(label for label, _ in cells)), list(dict.fromkeys(c for _, c in cells))
    columns = sorted(columns) if column == "n_bits" else columns
    printed = {(r.get("label", r["method"]), r[column]): paper_value(r, metric) for r in records}
    marks: dict = {}
    for c in columns:
        sign = 1 if metric in LOWER_IS_BETTER else -1
        ranked = sorted((label for label in labels if (label, c) in cells), key=lambda label: sign * cells[label, c][0])
        marks |= {(label, c): mark for label, mark in zip(ranked, "¹²", strict=False)}

    def cell(key: tuple) -> str:
        if key not in cells:
            return "-"
        mean, sd = cells[key]
        spread = "" if np.isnan(sd) else f" ±{number(sd)}"
        paper = "" if printed[key] is None else f" ({number(printed[key])})"
        return f"{number(mean)}{marks.get(key, '')}{spread}{paper}"

    head = ["bits" if column == "n_bits" else column, *map(str, columns)]
    rows = [[str(label), *(cell((label, c)) for c in columns)] for label in labels]
    return Table(title(records, metric), head, rows)
