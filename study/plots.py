"""Draw every figure of the study in one style.

The figures are readable at notebook width, in colours that colour-blind readers can tell apart.
Figures of the paper's experiments take records, as `study.protocol` returns them.
A method looks the same in all of them. Titles name the data that stand in for the paper's.
In a notebook, end the line with a semicolon, because a returned Figure is otherwise shown twice.

This module has the means of records, `study.curves` their curves. Figures that need no records
are in `study.pictures` and `study.animations`, what all share is in `study.style`. All of them can
be called from here.
"""

from __future__ import annotations

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.animations import perceptron_player, walking_code
from study.curves import (
    precision_at_k,
    precision_at_k_difference,
    precision_recall,
    stream,
    unseen,
)
from study.pictures import (
    codebook,
    decisions,
    distributions,
    dots,
    hadamard,
    images,
    neighbours,
    pipeline,
    stream_curves,
    toy_2d,
    two_values,
)
from study.scores import headline
from study.select import paper_value
from study.statistics import mean_and_interval
from study.style import (
    COLORS,
    GREY,
    LINE,
    MARKERS,
    METHOD_STYLE,
    OPEN,
    PUBLISHED,
    ROLES,
    WIDTH,
    Records,
    choose,
    grey_note,
    group,
    label_ends,
    legend,
    name_of,
    named_styles,
    over_seeds,
    panels,
    score_name,
    styles_of,
    use_style,
)

__all__ = [
    "COLORS",
    "METHOD_STYLE",
    "by_bits",
    "codebook",
    "decisions",
    "distributions",
    "dots",
    "ensemble",
    "hadamard",
    "images",
    "longer_codes",
    "name_of",
    "neighbours",
    "perceptron_player",
    "pipeline",
    "precision_at_k",
    "precision_at_k_difference",
    "precision_recall",
    "query_variation",
    "stream",
    "stream_curves",
    "sweep",
    "toy_2d",
    "training_time",
    "two_values",
    "unseen",
    "use_style",
    "walking_code",
]

# A dash is a value that the paper prints. Its white rim keeps it visible on a line.
DASH = {"linestyle": "", "marker": "_", "markersize": 16, "markeredgewidth": 2.5}
# How far at the left of a length its dash is, so that it hides no marker.
DASH_SHIFT = 0.12
RIM = [patheffects.withStroke(linewidth=5, foreground="white")]


# ---- means ---------------------------------------------------------------------------


def _setting(record: dict, name: str) -> float:
    """Return a setting of a run that is a number or a bool."""
    settings = record["settings"]
    value = settings.get(name)
    if not isinstance(value, int | float):
        raise ValueError(
            f"The run {record['label']!r} has no number as setting {name!r}; "
            f"its settings are {', '.join(settings)}."
        )
    return value


def _relabelled(record: dict, label: str) -> dict:
    """Return a record with another label, in which runs as published stay apart."""
    return record | {"label": label + PUBLISHED * bool(record.get("published"))}


def _means(
    axes: Axes,
    records: list[dict],
    x: str,
    metric: str | None,
    styles: dict[str, dict],
    even: bool = True,
) -> dict[str, tuple[float, str]]:
    """Draw means over seeds and their 95 % intervals, a line for each label.

    ``metric`` None is the headline metric. ``even`` puts all values of x at equal distances.
    Labels without a style are grey and have no intervals. Return the ends of the others.
    """
    ticks = list(group(records, x))
    ends = {}
    for label, runs in group(records, "label").items():
        places = []
        points = []
        for value, found in group(runs, x).items():
            scores = [run[metric or headline(run["role"])] for run in found]
            places.append(ticks.index(value) if even else value)
            points.append(mean_and_interval(scores))
        means, lows, highs = np.transpose(points)
        if label not in styles:
            axes.plot(places, means, **GREY)
            continue
        look = {"capsize": 2, "elinewidth": 1} | styles[label]
        bars = [means - lows, highs - means]
        axes.errorbar(places, means, bars, label=label, **look)
        ends[label] = (means[-1], look["color"])
    if even:
        # Of many values every second one has a number, so that these do not touch.
        places = list(range(len(ticks)))[:: -2 if len(ticks) > 6 else -1]
        axes.set_xticks(places, [f"{ticks[i]:,g}" for i in places])
    return ends


def _means_by_bits(
    title: str, chosen: list[dict], styles: dict[str, dict]
) -> tuple[Figure, list[dict]]:
    """Draw the headline metric against the code length, a panel for each data set."""
    parts = group(chosen, "dataset").values()
    title = f"{title}\n{over_seeds(chosen, 'bars')}"
    figure, grid = panels(title, len(parts), "code length (bits)", "")
    ends = []
    for axes, part in zip(grid, parts, strict=True):
        ends.append(_means(axes, part, "n_bits", None, styles))
        axes.set(title=name_of(part[0], "\n"), ylabel=score_name(part))
        axes.margins(0.1)
    return figure, ends


def by_bits(records: Records, metric: str | None = None) -> Figure:
    """Draw a metric against the code length, with the 95 % interval of the mean over seeds.

    If some runs are as published, each method has a panel. A dash is then a value that the paper
    prints, as long as the data are the paper's.

    Parameters
    ----------
    records : iterable of dict
    metric : str, optional
        A field of the records. The default is the headline metric.
    """
    chosen = choose(records, metric or "role", "dataset", "split")
    metric = metric or score_name(chosen)
    title = f"{name_of(chosen[0])}: {metric}\n{over_seeds(chosen, 'bars')}"
    if any(run.get("published") for run in chosen):
        return _by_method(title, chosen, metric)
    styles = named_styles(chosen, metric)
    title += grey_note(chosen, styles)
    figure, [axes] = panels(title, 1, "code length (bits)", metric)
    label_ends(axes, _means(axes, chosen, "n_bits", metric, styles))
    return figure


def _by_method(title: str, chosen: list[dict], metric: str) -> Figure:
    """Draw a metric against the code length: a panel for each method, with both readings."""
    styles = styles_of(chosen)
    parts: dict[str, list[dict]] = {}
    for run in chosen:
        parts.setdefault(run["label"].removesuffix(PUBLISHED), []).append(run)
    figure, grid = panels(title, len(parts), "code length (bits)", metric, 1.9, sharey=True)
    lengths = list(group(chosen, "n_bits"))
    has_dashes = False
    for axes, (name, runs) in zip(grid, parts.items(), strict=True):
        for n_bits, found in group(runs, "n_bits").items():
            printed = paper_value(found[0], metric)
            if printed is not None:
                look = DASH | {"color": styles[found[0]["label"]]["color"], "zorder": 5}
                place = lengths.index(n_bits) - DASH_SHIFT
                axes.plot(place, printed, path_effects=RIM, **look)
                has_dashes = True
        _means(axes, runs, "n_bits", metric, styles)
        axes.set_xticks(range(len(lengths)), lengths)
        axes.set_title(name)
    entry = Line2D([], [], label="dash: printed in the paper", color="0.4", **DASH)
    look = LINE | {"color": "0.4", "marker": "o"}
    entries = [
        Line2D([], [], label="filled: as described", **look),
        Line2D([], [], label="open: as published", **look | OPEN),
        entry,
    ]
    figure.legend(handles=entries[: 2 + has_dashes], loc="outside lower center", ncols=2)
    return figure


def query_variation(records: Records, n_classes: int | None = None) -> Figure:
    """Draw the headline metric against the queries, per class if ``n_classes`` is given."""
    found = choose(records, "n_queries", "dataset", "split", "n_bits")
    chosen = [r | {"x": r["n_queries"] / (n_classes or 1)} for r in found]
    styles = named_styles(chosen, None)
    title = f"{name_of(found[0])}: more queries, {found[0]['n_bits']} bits"
    title += f"\n{over_seeds(chosen, 'bars')}"
    title += grey_note(chosen, styles)
    xlabel = "queries per class" if n_classes else "queries"
    figure, [axes] = panels(title, 1, xlabel, score_name(chosen))
    label_ends(axes, _means(axes, chosen, "x", None, styles))
    return figure


def longer_codes(records: Records) -> Figure:
    """Draw the headline metric by code length. Dotted: saturated at int8, as published."""
    chosen = choose(records, "mAP int8", "split")
    styles = named_styles(chosen, None)
    title = "Longer codes; dotted: int8 saturation"
    title += grey_note(chosen, styles)
    figure, ends = _means_by_bits(title, chosen, styles)
    parts = group(chosen, "dataset").values()
    dots = {"linestyle": ":", "markersize": 3}
    dotted = {label: style | dots for label, style in styles.items()}
    for axes, part, at in zip(figure.axes, parts, ends, strict=True):
        _means(axes, [r for r in part if r["label"] in styles], "n_bits", "mAP int8", dotted)
        label_ends(axes, at)
    return figure


def ensemble(records: Records) -> Figure:
    """Draw the headline metric of one method with ensemble=True and ensemble=False."""
    found = choose(records, "settings", "method", "split")
    names = {True: "average of all states", False: "last state"}
    chosen = [_relabelled(r, names[_setting(r, "ensemble")]) for r in found]
    title = f"{found[0]['method']}, averaged or not"
    return legend(_means_by_bits(title, chosen, styles_of(chosen))[0])


def _times(
    axes: Axes, seconds: dict[str, list[float]], styles: dict[str, dict], width: float
) -> None:
    """Draw mean and interval of each method's seconds, and the ratio to HMOH's mean.

    ``width`` is that of the panel in inches.
    """
    base = np.mean(seconds["HMOH"])
    digits = {"precision": 2, "fractional": False, "trim": "-"}
    left = min(map(min, seconds.values())) / 2
    rows = list(styles)
    last = right = left
    for label, values in seconds.items():
        mean, low, high = mean_and_interval(values)
        # The interval of few seeds can reach below zero, which a logarithmic axis cannot show.
        whiskers = [[mean - max(low, left)], [high - mean]]
        axes.errorbar([mean], [rows.index(label)], xerr=whiskers, **styles[label])
        time = np.format_float_positional(mean, **digits)
        ratio = mean / base
        factor = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
        text = f"  {time} s, {factor} x"
        axes.text(high, rows.index(label), text, va="center", fontsize=10)
        last = max(last, high)
        # The text needs this share of the axis at its right.
        share = min(0.075 * len(text) / width, 0.9)
        right = max(right, left * (high / left) ** (1 / (1 - share)))
    axes.axvline(base, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), rows, fontsize=10)
    axes.set(xscale="log", xlim=(left, right), ylim=(-0.6, len(rows) - 0.4))
    # Powers of ten, and so few that they do not touch.
    powers = np.arange(np.ceil(np.log10(left)), np.floor(np.log10(last)) + 1)
    every = int(np.ceil(0.65 * np.log10(right / left) / width))
    axes.set_xticks(10.0 ** powers[::every])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()


def training_time(records: Records) -> Figure:
    """Draw each method's training time at one code length, compared with HMOH's."""
    chosen = choose(records, "train_seconds", "n_bits", "split")
    styles = styles_of(chosen)
    parts = group(chosen, "dataset").values()
    title = f"Training time in seconds and as a multiple of HMOH's, {chosen[0]['n_bits']} bits"
    title += f"\n{over_seeds(chosen, 'bars')}"
    height = 0.27 * len(styles) + 1
    xlabel = "seconds (log scale)"
    # Without margins and the methods' names.
    width = (WIDTH - 1 - 0.1 * max(map(len, styles))) / min(len(parts), 2)
    figure, grid = panels(title, len(parts), xlabel, "method", height, sharey=True)
    for axes, part in zip(grid, parts, strict=True):
        seconds = {}
        for label, runs in group(part, "label").items():
            seconds[label] = [run["train_seconds"] for run in runs]
        if "HMOH" not in seconds:
            raise ValueError(
                f"No HMOH on {part[0]['dataset']}, but its time is the unit; add its records."
            )
        _times(axes, seconds, styles, width)
        axes.set_title(name_of(part[0], "\n"), fontsize=10)
    return figure


def _styles_of_sets(records: list[dict]) -> dict[str, dict]:
    """Return how each label of a sweep is drawn: a colour and a marker for each data set."""
    roles = list(ROLES)
    places: dict[str, int] = {}
    for record in records:
        place = roles.index(record["role"])
        # A role can have two stand-ins.
        if place in places.values():
            place = max(len(ROLES) - 1, *places.values()) + 1
        places.setdefault(record["dataset"], place)
    styles = {}
    for record in records:
        i = places[record["dataset"]]
        look = LINE | {"color": COLORS[i], "marker": (MARKERS + "vP")[i]}
        styles[record["label"]] = look | OPEN if record.get("published") else look
    return styles


def sweep(
    records: Records,
    x: str,
    xlabel: str,
    log: bool = False,
    seconds: bool = False,
    title: str = "Ablation",
) -> Figure:
    """Draw one method's headline metric against a parameter, a line for each data set.

    Parameters
    ----------
    records : iterable of dict
        Runs of one method at one code length.
    x : str
        The parameter's name in ``record["settings"]``, such as "feature_map__n_anchors".
    xlabel, title : str
    log : bool
        Whether the axis of x is logarithmic.
    seconds : bool
        Whether to add a panel with the training time.
    """
    found = choose(records, "settings", "method", "n_bits", "split")
    chosen = [_relabelled(r, name_of(r)) | {"x": _setting(r, x)} for r in found]
    styles = _styles_of_sets(chosen)
    sets = list(group(chosen, "dataset"))
    where = name_of(chosen[0]) if len(sets) == 1 else f"{len(sets)} data sets"
    what = f"{chosen[0]['method']}, {chosen[0]['n_bits']} bits"
    title = f"{title}, {where}: {what}\n{over_seeds(chosen, 'bars')}"
    metrics = {None: score_name(chosen)}
    if seconds:
        metrics["train_seconds"] = "training time (seconds)"
    figure, grid = panels(title, len(metrics), xlabel, "", height=2.6 + 0.27 * len(styles))
    for axes, (metric, ylabel) in zip(grid, metrics.items(), strict=True):
        _means(axes, chosen, "x", metric, styles, even=False)
        axes.set(xscale="log" if log else "linear", ylabel=ylabel)
        axes.xaxis.set_major_formatter("{x:g}")
    return legend(figure, n_columns=2)
