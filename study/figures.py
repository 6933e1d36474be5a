"""Draw records, as `study.protocol` returns them: means over seeds, and mean curves.

The figures are readable at notebook width, in colours that colour-blind readers can tell apart.
A method looks the same in all of them. Titles name the data, and say STAND-IN where these replace
the paper's. In a notebook, end the line with a semicolon, because a returned Figure is otherwise
shown twice.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.select import samples
from study.statistics import mean_and_interval
from study.style import (
    GREY,
    Records,
    choose,
    few_ticks,
    grey_note,
    group,
    label_ends,
    legend,
    named_styles,
    over_seeds,
    panels,
    styled,
)
from study.tables import name_of, name_of_metric

__all__ = ["curves", "draw_means", "means", "means_by_set"]

# Longer labels do not fit beside the ends of their lines.
LONGEST_LABEL = 14
DOTTED = {"linestyle": ":", "markersize": 3}


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
    styles = named_styles(chosen, metric)
    title = title or f"{name_of(chosen[0])}: {ylabel}"
    title += f"\n{over_seeds(chosen, metric, 'bars', x)}{grey_note(chosen, styles)}"
    figure, [axes] = panels(title, 1, xlabel, ylabel)
    ends = draw_means(axes, chosen, metric, styles, x, even)
    return _named(figure, [ends])


@styled
def means_by_set(records: Records, title: str, dotted: str | None = None) -> Figure:
    """Draw the headline metric against the code length, with a panel for each data set.

    ``dotted`` is a metric that is drawn too, with dotted lines in the same colours.
    """
    chosen = choose(records, dotted or "headline", "split")
    styles = named_styles(chosen, "headline")
    title += f"{grey_note(chosen, styles)}\n{over_seeds(chosen, 'headline', 'bars')}"
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
    title = f"{title or name_of(chosen[0])}: {ylabel} against {xlabel}\n{seeds}"
    parts = group(chosen, panel).values()
    # The best other method of each panel is named.
    styles = [named_styles(part, y) for part in parts]
    title += max(map(grey_note, parts, styles))
    figure, grid = panels(title, len(parts), xlabel, ylabel, sharey=True)
    ends = []
    for axes, part, named in zip(grid, parts, styles, strict=True):
        ends.append(_draw_curves(axes, part, x, y, named, band))
        axes.set_title(f"{part[0]['n_bits']} bits" if by_length else _panel_name(part))
        axes.set_xlim(0, max(run[x][-1] for run in part))
        few_ticks(axes, ends[-1])
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
