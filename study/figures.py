"""Draw records, as `study.protocol` returns them: means over seeds, and mean curves.

The figures are readable at notebook width, in colours that colour-blind readers can tell apart.
A method looks the same in all of them. Where lines are many, a figure names HMOH, the best other
method and LSH at the ends of their lines; the others are grey. Titles name the data, and say
STAND-IN where these replace the paper's. In a notebook, end the line with a semicolon, because a
returned Figure is otherwise shown twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from study.claims import Claim
from study.datasets import BENCHMARKS
from study.select import PAPER_METHODS, lower_is_better, metric_of, samples
from study.statistics import margin_of, mean_and_interval
from study.style import (
    COLORS,
    GREY,
    WIDTH,
    Records,
    label_ends,
    legend,
    panels,
    rank_of,
    styled,
    styles_of,
)
from study.tables import name_of, name_of_metric, names_of

__all__ = ["choose", "curves", "draw_means", "group", "means", "means_by_set"]
__all__ += ["minus_printed", "over_seeds"]

# Longer labels do not fit beside the ends of their lines.
LONGEST_LABEL = 14
DOTTED = {"linestyle": ":", "markersize": 3}
# How a reading of a cell is drawn, and how far above the middle of its row.
READINGS = {
    "described": ({"color": "black"}, 0.17),
    "published": ({"color": COLORS[1], "fillstyle": "none"}, -0.17),
}


# ---- records -------------------------------------------------------------------------


def group(records: Records, key: str) -> dict:
    """Return {value: records}: numbers in ascending order, other values as they come."""
    groups: dict = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    if all(isinstance(value, int | float) for value in groups):
        return dict(sorted(groups.items()))
    return groups


def choose(records: Records, metric: str, *same: str) -> list[dict]:
    """Return the records that have the metric, sorted by data set and method.

    Those of one label must agree in the fields ``same``, because a mean over a mixture has no
    meaning.
    """
    found = [record for record in records if metric_of(record, metric) in record]
    if not found:
        source = "protocol.compare"
        if metric in ("stream", "AUC mAP"):
            source += "(..., checkpoints=True)"
        raise ValueError(
            f"No record has {metric!r}, but the figure needs it; pass records of {source}."
        )
    for label, runs in group(found, "label").items():
        for key in same:
            values = list(group(runs, key))
            if len(values) > 1:
                raise ValueError(
                    f"The runs {label!r} have {key} {values}, but a line shows one; "
                    f"pass [r for r in records if r[{key!r}] == {values[0]!r}]."
                )
    benchmarks = list(BENCHMARKS)
    found.sort(key=lambda record: rank_of(record["label"]))
    found.sort(key=lambda r: benchmarks.index(r["role"]) if r["role"] else len(benchmarks))
    return found


def over_seeds(records: Records, metric: str, mark: str = "", x: str = "n_bits") -> str:
    """Return for a title over how many seeds the points of a figure are means.

    ``mark`` is what shows the 95 % interval of the mean, "band" or "bars". ``x`` tells points of
    the same label apart.
    """
    points = samples(records, metric, "dataset", "label", "n_bits", x)
    counts = [len(found) for found in points.values()]
    least = min(counts)
    most = max(counts)
    if most == 1:
        return "1 seed"
    number = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    if not mark:
        return f"mean over {number}"
    return f"{mark}: 95 % interval of the mean over {number}"


def _named_styles(records: Records, metric: str) -> dict[str, dict]:
    """Return how the labels are drawn that a figure names. The other methods are grey.

    Up to four labels are all named. Of more, HMOH is, the best other one by its mean, and LSH.
    The metric may be a curve.
    """
    styles = styles_of(records)
    labels = group(records, "label")
    if len(labels) <= 4:
        return styles
    height = {}
    for label, runs in labels.items():
        found = [run[metric_of(run, metric)] for run in runs]
        height[label] = np.nanmean(np.array(found, dtype=float))
    named = [label for label in ("HMOH", "LSH") if label in labels]
    others = [label for label in labels if label not in named]
    best = min if lower_is_better(metric) else max
    return {label: styles[label] for label in [*named, best(others, key=height.get)]}


def _grey_note(records: Records, styles: dict[str, dict]) -> str:
    """Return the end of a title: what grey lines are, if there are any."""
    return "; grey: the other methods" if group(records, "label").keys() - styles else ""


# ---- means ---------------------------------------------------------------------------


@styled
def means(
    records: Records,
    metric: str = "headline",
    x: str = "n_bits",
    xlabel: str = "code length (bits)",
    title: str = "",
    even: bool = True,
) -> Figure:
    """Draw a metric against the code length, with the 95 % interval of the mean over seeds.

    Parameters
    ----------
    records : list of dict
        The runs of a label, by default the method, make one line. They are of one data set.
    metric : str
        "headline" is the headline metric.
    x : str
        The field on the axis, such as "n_queries".
    xlabel : str
    title : str
        The first line of the title. By default it is the data set and the metric.
    even : bool
        Put all values of x at equal distances.
    """
    chosen = choose(records, metric, "dataset", "split")
    ylabel = name_of_metric(chosen, metric)
    styles = _named_styles(chosen, metric)
    title = title or f"{names_of(chosen)}: {ylabel}"
    title += f"\n{over_seeds(chosen, metric, 'bars', x)}{_grey_note(chosen, styles)}"
    figure, [axes] = panels(title, 1, xlabel, ylabel)
    ends = draw_means(axes, chosen, metric, styles, x, even)
    return _named(figure, [ends])


@styled
def means_by_set(records: Records, title: str, dotted: str | None = None) -> Figure:
    """Draw the headline metric against the code length, with a panel for each data set.

    ``dotted`` is a metric that is drawn too, with dotted lines in the same colours.
    """
    chosen = choose(records, dotted or "headline", "split")
    styles = _named_styles(chosen, "headline")
    title += f"{_grey_note(chosen, styles)}\n{over_seeds(chosen, 'headline', 'bars')}"
    parts = group(chosen, "dataset").values()
    figure, grid = panels(title, len(parts), "code length (bits)", "")
    ends = []
    for axes, part in zip(grid, parts, strict=True):
        ends.append(draw_means(axes, part, "headline", styles))
        axes.set(title=_panel_name(part), ylabel=name_of_metric(part, "headline"))
        axes.margins(0.1)
        if dotted:
            named = [run for run in part if run["label"] in styles]
            looks = {label: style | DOTTED for label, style in styles.items()}
            draw_means(axes, named, dotted, looks)
    return _named(figure, ends)


def _named(figure: Figure, ends: list[dict]) -> Figure:
    """Name the lines of each panel at their ends, or in a legend if a name is too long."""
    labels = {label for of_panel in ends for label in of_panel}
    if max(map(len, labels)) > LONGEST_LABEL:
        figure.set_figheight(figure.get_figheight() + 0.2 * len(labels))
        return legend(figure, n_columns=2)
    for axes, of_panel in zip(figure.axes, ends, strict=True):
        label_ends(axes, of_panel)
    return figure


def _panel_name(records: list[dict]) -> str:
    """Return the data set's name in two lines if it is a STAND-IN."""
    return name_of(records[0]).replace(" (", "\n(")


def draw_means(
    axes: Axes,
    records: list[dict],
    metric: str,
    styles: dict[str, dict],
    x: str = "n_bits",
    even: bool = True,
) -> dict[str, tuple[float, str]]:
    """Draw means over seeds and their 95 % intervals, a line for each label.

    Labels without a style are grey and have no intervals. Return the ends of the others, as
    `style.label_ends` takes them. ``even`` is as in `means`.
    """
    ticks = list(group(records, x))
    ends = {}
    for label, runs in group(records, "label").items():
        found = samples(runs, metric, x)
        places = sorted(found)
        points = [mean_and_interval([*found[value].values()]) for value in places]
        middles, lows, highs = np.transpose(points)
        if even:
            places = [ticks.index(value) for value in places]
        if label not in styles:
            axes.plot(places, middles, **GREY)
            continue
        look = {"capsize": 2, "elinewidth": 1} | styles[label]
        bars = [middles - lows, highs - middles]
        axes.errorbar(places, middles, bars, label=label, **look)
        ends[label] = (middles[-1], look["color"])
    if even:
        # Of many values every second one has a number, so that these do not touch.
        places = list(range(len(ticks)))[:: -2 if len(ticks) > 6 else -1]
        axes.set_xticks(places, [f"{ticks[i]:,g}" for i in places])
    else:
        axes.xaxis.set_major_formatter("{x:g}")
    return ends


# ---- curves --------------------------------------------------------------------------


@styled
def curves(
    records: Records,
    x: str,
    y: str,
    xlabel: str,
    ylabel: str,
    panel: str = "n_bits",
    title: str = "",
) -> Figure:
    """Draw mean curves: a panel for each code length, or for each data set.

    Parameters
    ----------
    records : list of dict
    x, y : str
        The fields of the records that are lists, such as "K" and "P@K".
    xlabel, ylabel : str
    panel : {"n_bits", "dataset"}
    title : str
        Begins the title; by default the name of the data set.
    """
    by_length = panel == "n_bits"
    chosen = choose(records, y, "split", "dataset" if by_length else "n_bits")
    # Data sets need not agree in what differs between seeds, and many wide bands hide the curves.
    # Where seeds differ in x, a band at the mean of x would mislead.
    band = by_length and _share_x(chosen, x)
    seeds = over_seeds(chosen, y, "band" if band else "")
    title = f"{title or names_of(chosen)}: {ylabel} against {xlabel}\n{seeds}"
    parts = group(chosen, panel).values()
    # The best other method of each panel is named.
    styles = [_named_styles(part, y) for part in parts]
    title += max(map(_grey_note, parts, styles))
    figure, grid = panels(title, len(parts), xlabel, ylabel, sharey=True)
    ends = []
    for axes, part, named in zip(grid, parts, styles, strict=True):
        ends.append(_draw_curves(axes, part, x, y, named, band))
        axes.set_title(f"{part[0]['n_bits']} bits" if by_length else _panel_name(part))
        axes.set_xlim(0, max(run[x][-1] for run in part))
        _few_ticks(axes, ends[-1])
    for axes, of_panel in zip(grid, ends, strict=True):
        label_ends(axes, of_panel)
    return figure


def _draw_curves(
    axes: Axes, records: list[dict], x: str, y: str, styles: dict[str, dict], band: bool
) -> dict[str, tuple[float, str]]:
    """Draw the mean curve of each label, and its 95 % interval as a band.

    Return the ends of those that have a style.
    """
    ends = {}
    for label, runs in group(records, "label").items():
        style = styles.get(label, GREY)
        xs = _matrix(runs, x).mean(axis=0)
        points = [mean_and_interval(column) for column in _matrix(runs, y).T]
        middles, lows, highs = np.transpose(points)
        axes.plot(xs, middles, label=label, markevery=-(-len(xs) // 6), **style)
        if label in styles:
            ends[label] = (middles[-1], style["color"])
            if band and len(runs) > 1:
                look = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                axes.fill_between(xs, lows, highs, **look)
    return ends


def _matrix(runs: list[dict], field: str) -> np.ndarray:
    """Return the curves of several runs as rows. nan: the method could not encode yet."""
    lengths = {len(run[field]) for run in runs}
    if len(lengths) > 1:
        raise ValueError(
            f"The curves of {runs[0]['label']} differ in length ({sorted(lengths)} points); "
            "pass runs of one profile and protocol."
        )
    return np.array([run[field] for run in runs], dtype=float)


def _share_x(records: list[dict], x: str) -> bool:
    """Return whether the seeds of each curve have the same values of x."""
    for found in samples(records, x, "dataset", "n_bits", "label").values():
        first, *others = found.values()
        if any(other != first for other in others):
            return False
    return True


def _few_ticks(axes: Axes, labels: Iterable[str]) -> None:
    """Label so few values of x that numbers such as 100,000 do not touch each other.

    Call it when everything is drawn. ``labels`` are those at the right of the panel.
    """
    longest = max(3, len(f"{axes.get_xlim()[1]:,.0f}"))
    n_columns = axes.get_subplotspec().get_gridspec().ncols
    # In inches: a panel without its margins and labels, and a number with a gap.
    room = WIDTH / n_columns - 0.7 - 0.1 * max(map(len, labels))
    n_numbers = int(room / (0.1 * longest + 0.15))
    locator = MaxNLocator(max(2, min(n_numbers, 8)), steps=[1, 2, 2.5, 5, 10])
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter("{x:,g}")


# ---- judged cells --------------------------------------------------------------------


@styled
def minus_printed(cells: Sequence[Claim]) -> Figure:
    """Draw the judged cells of a table, as `claims.cells` returns them: ours minus the printed.

    A panel is a metric, a row a method, a dot a code length. Cells that were not measured have no
    dot. Where a reading has no dot in a row, its program cannot be read.
    """
    by_metric: dict[str, list[Claim]] = {}
    for cell in cells:
        if cell.described.n:
            by_metric.setdefault(cell.spec["measure"]["metric"], []).append(cell)
    if not by_metric:
        raise ValueError("no cell was measured; pass cells that claims.cells judged by records.")
    title = f"{cells[0].section}, cell by cell: our mean minus the printed value"
    title += "\na dot for each code length"
    figure, grid = panels(title, len(by_metric), "ours minus printed", "", 3.4, sharey=True)
    for axes, (metric, found) in zip(grid, by_metric.items(), strict=True):
        margin = margin_of(found[0].spec["unit"], found[0].printed)
        axes.axvspan(-margin, margin, color="0.85")
        for cell in found:
            row = PAPER_METHODS.index(cell.spec["measure"]["method"])
            for reading, (look, shift) in READINGS.items():
                gap = getattr(cell, reading).estimate - cell.printed
                axes.plot(gap, row + shift, "o", markersize=5, **look)
        axes.set_title(metric)
        axes.set_yticks(range(len(PAPER_METHODS)), PAPER_METHODS)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    entries = [Patch(color="0.85", label=f"margin of the rule, ±{margin:g}")]
    for reading, (look, _) in READINGS.items():
        entries.append(Line2D([], [], linestyle="", marker="o", label=f"as {reading}", **look))
    figure.legend(handles=entries, loc="outside lower center", ncols=3, columnspacing=1)
    return figure
