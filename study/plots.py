"""Draw every figure of the study in one style.

The figures are readable at notebook width, in colours that colour-blind readers can tell apart.
Figures of the paper's experiments take records, as `study.protocol` returns them.
A method looks the same in all of them. Titles name the data that stand in for the paper's.
In a notebook, end the line with a semicolon, because a returned Figure is otherwise shown twice.

This module has the figures of records: means and curves. Those that need none are in
`study.pictures` and `study.animations`, what all share is in `study.style`. All of them can be
called from here.
"""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.animations import perceptron_player, walking_code
from study.evaluation import headline
from study.pictures import (
    codebook,
    decisions,
    distributions,
    hadamard,
    images,
    neighbours,
    pipeline,
    stream_curves,
    toy_2d,
)
from study.style import (
    COLORS,
    LINE,
    MARKERS,
    METHOD_STYLE,
    OPEN,
    PUBLISHED,
    ROLES,
    Records,
    choose,
    few_ticks,
    group,
    legend,
    name_of,
    over_seeds,
    panels,
    score_name,
    styles_of,
    use_style,
)
from study.tables import mean_and_interval

__all__ = [
    "COLORS",
    "METHOD_STYLE",
    "by_bits",
    "codebook",
    "decisions",
    "distributions",
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
    "unseen",
    "use_style",
    "walking_code",
]

# A dash is a value that the paper prints. Its white rim keeps it visible on a line.
DASH = {"linestyle": "", "marker": "_", "markersize": 16, "markeredgewidth": 2.5}
# How far at the left of a length its dash is, so that it hides no marker.
DASH_SHIFT = 0.12
RIM = [patheffects.withStroke(linewidth=5, foreground="white")]
TOP_K_AXIS = "K (items retrieved)"


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
) -> None:
    """Draw means over seeds and their 95 % intervals, a line for each label.

    ``metric`` None is the headline metric. ``even`` puts all values of x at equal distances.
    """
    ticks = list(group(records, x))
    for label, runs in group(records, "label").items():
        places = []
        points = []
        for value, found in group(runs, x).items():
            scores = [run[metric or headline(run["role"])] for run in found]
            places.append(ticks.index(value) if even else value)
            points.append(mean_and_interval(scores))
        means, lows, highs = np.transpose(points)
        look = {"capsize": 2, "elinewidth": 1} | styles[label]
        bars = [means - lows, highs - means]
        axes.errorbar(places, means, bars, label=label, **look)
    if even:
        axes.set_xticks(range(len(ticks)), [f"{value:,g}" for value in ticks])


def _means_by_bits(title: str, chosen: list[dict], styles: dict) -> Figure:
    """Draw the headline metric against the code length, a panel for each data set."""
    parts = group(chosen, "dataset").values()
    title = f"{title}, {over_seeds(chosen, 'bars')}"
    figure, grid = panels(title, len(parts), "code length (bits)", "")
    for axes, part in zip(grid, parts, strict=True):
        _means(axes, part, "n_bits", None, styles)
        axes.set(title=name_of(part[0], "\n"), ylabel=score_name(part))
        axes.margins(0.1)
    return figure


def by_bits(
    records: Records,
    metric: str | None = None,
    paper: dict[str, dict] | None = None,
) -> Figure:
    """Draw a metric against the code length, with the 95 % interval of the mean over seeds.

    Parameters
    ----------
    records : iterable of dict
    metric : str, optional
        A field of the records. The default is the headline metric.
    paper : dict, optional
        {method: {bits: printed value}}, drawn as dashes. An error for stand-in data.
    """
    chosen = choose(records, metric or "role", "dataset", "split")
    metric = metric or score_name(chosen)
    name = name_of(chosen[0])
    if paper and chosen[0]["stand_in_for"]:
        raise ValueError(
            f"{name} is not the paper's data, so the paper's values do not apply; "
            "leave out `paper`."
        )
    styles = styles_of(chosen)
    title = f"{name}: {metric}, {over_seeds(chosen, 'bars')}"
    figure, [axes] = panels(title, 1, "code length (bits)", metric)
    _means(axes, chosen, "n_bits", metric, styles)
    if not paper:
        return legend(figure)
    lengths = [str(n_bits) for n_bits in group(chosen, "n_bits")]
    for method, values in paper.items():
        style = styles.get(method) or styles.get(method + PUBLISHED)
        for n_bits, value in values.items():
            if style and value is not None and str(n_bits) in lengths:
                look = DASH | {"color": style["color"], "zorder": 5}
                place = lengths.index(str(n_bits)) - DASH_SHIFT
                axes.plot(place, value, path_effects=RIM, **look)
    entry = Line2D([], [], label="dash: printed in the paper", color="0.4", **DASH)
    return legend(figure, entry)


def query_variation(records: Records, n_classes: int | None = None) -> Figure:
    """Draw the headline metric against the queries, per class if ``n_classes`` is given."""
    found = choose(records, "n_queries", "dataset", "split", "n_bits")
    chosen = [r | {"x": r["n_queries"] / (n_classes or 1)} for r in found]
    title = f"{name_of(found[0])}: more queries, {found[0]['n_bits']} bits"
    title += f"\n{over_seeds(chosen, 'bars')}"
    xlabel = "queries per class" if n_classes else "queries"
    figure, [axes] = panels(title, 1, xlabel, score_name(chosen))
    _means(axes, chosen, "x", None, styles_of(chosen))
    return legend(figure)


def longer_codes(records: Records) -> Figure:
    """Draw the headline metric by code length. Dotted: saturated at int8, as published."""
    chosen = choose(records, "mAP int8", "split")
    styles = styles_of(chosen)
    figure = _means_by_bits("Longer codes", chosen, styles)
    parts = group(chosen, "dataset").values()
    dots = {"linestyle": ":", "markersize": 3}
    # matplotlib leaves labels with an underscore out of the legend.
    dotted = {f"_{label}": style | dots for label, style in styles.items()}
    for axes, part in zip(figure.axes, parts, strict=True):
        hidden = [record | {"label": f"_{record['label']}"} for record in part]
        _means(axes, hidden, "n_bits", "mAP int8", dotted)
    entry = Line2D([], [], color="0.4", linestyle=":")
    entry.set_label("dotted: int8 saturation")
    return legend(figure, entry, n_columns=6)


def ensemble(records: Records) -> Figure:
    """Draw the headline metric of one method with ensemble=True and ensemble=False."""
    found = choose(records, "settings", "method", "split")
    names = {True: "average of all states", False: "last state"}
    chosen = [_relabelled(r, names[_setting(r, "ensemble")]) for r in found]
    title = f"{found[0]['method']}, averaged or not"
    return legend(_means_by_bits(title, chosen, styles_of(chosen)))


def _times(axes: Axes, seconds: dict[str, list[float]], styles: dict, width: float) -> None:
    """Draw mean and interval of each method's seconds, and the ratio to HMOH's mean.

    ``width`` is that of the panel in inches, with the methods' names.
    """
    base = np.mean(seconds["HMOH"])
    digits = {"precision": 2, "fractional": False, "trim": "-"}
    left = min(map(min, seconds.values())) / 2
    # The numbers are inches: margins, and letters.
    width -= 0.65 + 0.08 * max(map(len, seconds))
    right = left
    for row, (label, values) in enumerate(seconds.items()):
        mean, low, high = mean_and_interval(values)
        # The interval of few seeds can reach below zero, which a logarithmic axis cannot show.
        whiskers = [[mean - max(low, left)], [high - mean]]
        axes.errorbar([mean], [row], xerr=whiskers, **styles[label])
        time = np.format_float_positional(mean, **digits)
        ratio = mean / base
        factor = f"{ratio:,.1f}" if ratio >= 1 else f"{ratio:.2g}"
        text = f"   {time} s, {factor} x HMOH"
        axes.text(high, row, text, va="center", fontsize=9)
        # The text needs this share of the axis at its right.
        share = min(0.068 * len(text) / width, 0.8)
        right = max(right, left * (high / left) ** (1 / (1 - share)))
    axes.axvline(base, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(seconds)), seconds)
    axes.set(xscale="log", xlim=(left, right))
    # Powers of ten, not those beside the texts, and so few that they do not touch.
    decades = np.log10(right / left)
    last = np.floor(np.log10(max(map(max, seconds.values())))) + 2
    powers = np.arange(np.ceil(np.log10(left)), last)
    every = int(np.ceil(0.55 * decades / width))
    axes.set_xticks(10.0 ** powers[::every])
    axes.xaxis.set_major_formatter("{x:g}")


def training_time(records: Records) -> Figure:
    """Draw each method's training time at one code length, compared with HMOH's."""
    chosen = choose(records, "train_seconds", "n_bits", "split")
    styles = styles_of(chosen)
    parts = group(chosen, "dataset").values()
    title = f"Training time, {chosen[0]['n_bits']} bits, {over_seeds(chosen, 'bars')}"
    height = 0.3 * len(styles) + 1
    xlabel = "seconds (log scale)"
    figure, grid = panels(title, len(parts), xlabel, "method", height=height)
    for axes, part in zip(grid, parts, strict=True):
        seconds = {}
        for label, runs in group(part, "label").items():
            seconds[label] = [run["train_seconds"] for run in runs]
        if "HMOH" not in seconds:
            raise ValueError(
                f"No HMOH on {part[0]['dataset']}, but its time is the unit; add its records."
            )
        _times(axes, seconds, styles, figure.get_figwidth() / min(len(parts), 2))
        axes.set_title(name_of(part[0], "\n"))
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
    figure, grid = panels(title, len(metrics), xlabel, "")
    for axes, (metric, ylabel) in zip(grid, metrics.items(), strict=True):
        _means(axes, chosen, "x", metric, styles, even=False)
        axes.set(xscale="log" if log else "linear", ylabel=ylabel)
        axes.xaxis.set_major_formatter("{x:g}")
    return legend(figure, n_columns=2)


# ---- curves --------------------------------------------------------------------------


def _matrix(runs: list[dict], field: str) -> np.ndarray:
    """Return the curves of several runs as rows. nan: the method could not encode yet."""
    lengths = {len(run[field]) for run in runs}
    if len(lengths) > 1:
        raise ValueError(
            f"The curves of {runs[0]['label']} differ in length ({sorted(lengths)} points); "
            "pass runs of one profile and protocol."
        )
    return np.array([run[field] for run in runs], dtype=float)


def _curve(
    axes: Axes,
    runs: list[dict],
    x: str,
    y: str,
    style: dict,
    band: bool,
) -> None:
    """Draw the mean of several runs, and its 95 % interval as a band."""
    xs = _matrix(runs, x).mean(axis=0)
    points = [mean_and_interval(column) for column in _matrix(runs, y).T]
    means, lows, highs = np.transpose(points)
    every = -(-len(xs) // 12)
    axes.plot(xs, means, label=runs[0]["label"], markevery=every, **style)
    if band and len(runs) > 1:
        look = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        axes.fill_between(xs, lows, highs, **look)


def _share_x(records: list[dict], x: str) -> bool:
    """Return whether the seeds of each curve have the same values of x."""
    for panel in group(records, "dataset").values():
        for of_length in group(panel, "n_bits").values():
            for runs in group(of_length, "label").values():
                xs = _matrix(runs, x)
                if (xs != xs[0]).any():
                    return False
    return True


def _curves(
    records: Records,
    x: str,
    y: str,
    xlabel: str,
    ylabel: str | None = None,
    unseen: str = "",
) -> Figure:
    """Draw mean curves of one data set by code length, or of ``unseen`` by data set."""
    same = ["split"] if unseen else ["split", "dataset"]
    chosen = choose(records, y, *same)
    ylabel = ylabel or score_name(chosen)
    name = unseen or name_of(chosen[0])
    # Unseen classes differ between seeds, and ten wide bands hide the curves.
    # Where seeds differ in x, a band at the mean of x would mislead.
    band = not unseen and _share_x(chosen, x)
    seeds = over_seeds(chosen, "band" if band else "")
    title = f"{name}: {ylabel} against {xlabel}\n{seeds}"
    styles = styles_of(chosen)
    parts = group(chosen, "dataset" if unseen else "n_bits").values()
    columns = 2 if unseen else 3
    figure, grid = panels(title, len(parts), xlabel, ylabel, columns, sharey=True)
    for axes, part in zip(grid, parts, strict=True):
        for label, runs in group(part, "label").items():
            _curve(axes, runs, x, y, styles[label], band)
        bits = f"{part[0]['n_bits']} bits"
        axes.set_title(name_of(part[0], "\n") if unseen else bits)
        axes.set_xlim(0, None)
        few_ticks(axes, min(columns, len(parts)))
    return legend(figure)


def stream(records: Records) -> Figure:
    """Draw the headline metric against the samples seen. Needs runs with checkpoints."""
    return _curves(records, "samples", "stream", "samples seen")


def precision_at_k(records: Records) -> Figure:
    """Draw the precision among the K nearest items against K."""
    return _curves(records, "K", "P@K", TOP_K_AXIS, "Precision@K")


def precision_recall(records: Records) -> Figure:
    """Draw precision against recall within each radius.

    A query without items within the radius has precision 0. So the curves of long codes start low.
    """
    return _curves(records, "recall", "precision", "recall", "precision")


def unseen(records: Records, n_bits: int = 64) -> Figure:
    """Draw Precision@K on classes that the stream never showed (split="unseen")."""
    found = [r for r in records if r["split"] == "unseen" and r["n_bits"] == n_bits]
    name = f"Unseen classes, {n_bits} bits"
    return _curves(found, "K", "P@K", TOP_K_AXIS, "Precision@K", name)


# ---- differences ---------------------------------------------------------------------


def _differences(runs: list[dict], to: str) -> list[dict]:
    """Return the other runs of one length with P@K minus that of ``to`` with the same seed."""
    base = {run["seed"]: run for run in runs if run["label"] == to}
    if not base:
        raise ValueError(
            f"No run has the label {to!r} at {runs[0]['n_bits']} bits, "
            "but all curves are compared with it; add its records."
        )
    _matrix(runs, "P@K")
    found = []
    for label, others in group(runs, "label").items():
        if label == to:
            continue
        pairs = [run for run in others if run["seed"] in base]
        if not pairs:
            raise ValueError(
                f"{label} and {to} have no seed in common at {runs[0]['n_bits']} bits, "
                "but they are compared seed by seed; add runs with the same seeds."
            )
        for run in pairs:
            gap = np.subtract(run["P@K"], base[run["seed"]]["P@K"])
            found.append(run | {"P@K": gap.tolist()})
    return found


def _range_of_close(gaps: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return a range of y that shows zero and the nearer half of the mean curves.

    Farther curves count too if they are at most a quarter farther than that half.
    """
    far = {label: np.abs(gap).max() for label, gap in gaps.items()}
    half = sorted(far.values())[(len(far) - 1) // 2]
    shown = [gap for label, gap in gaps.items() if far[label] <= 1.25 * half]
    low = min(0.0, np.min(shown))
    high = max(0.0, np.max(shown))
    room = 0.15 * (high - low) or 0.01
    return low - room, high + room


def _out_of_range(gaps: dict[str, np.ndarray], low: float, high: float) -> str:
    """Return a line that names the curves no part of which is in the range."""
    lines = []
    below = [label for label, gap in gaps.items() if gap.max() < low]
    above = [label for label, gap in gaps.items() if gap.min() > high]
    for place, labels in (("above", above), ("below", below)):
        if labels:
            # A label may contain a comma.
            lines += textwrap.wrap(f"{place}: {'; '.join(labels)}", 40)
    return "\n".join(lines)


def precision_at_k_difference(records: Records, to: str = "HMOH") -> Figure:
    """Draw Precision@K minus that of one method, seed by seed, against K.

    The range of y shows the methods that are close to it. Curves farther away leave the panel, and
    a line below the panel names those that are outside altogether.

    Parameters
    ----------
    records : iterable of dict
        Runs on one data set. A method and ``to`` are compared over the seeds that both have.
    to : str
        The label of the method that is the zero line.
    """
    chosen = choose(records, "P@K", "split", "dataset")
    over_seeds(chosen)  # refuses several runs with one seed
    parts = [_differences(runs, to) for runs in group(chosen, "n_bits").values()]
    if not any(parts):
        raise ValueError(
            f"All runs have the label {to!r}, so there is nothing to compare it with; "
            "add records of other methods."
        )
    parts = [part for part in parts if part]
    seeds = over_seeds([run for part in parts for run in part], "band")
    name = name_of(chosen[0])
    title = f"{name}: Precision@K minus that of {to} with the same seed\n{seeds}\n"
    title += "each panel has its own range of y; curves beyond it are cut off"
    styles = styles_of(chosen)
    ylabel = f"difference from {to}"
    size = {"n_columns": 3, "height": 3.4}
    figure, grid = panels(title, len(parts), TOP_K_AXIS, ylabel, **size)
    for axes, part in zip(grid, parts, strict=True):
        # Without a marker, because it is the unit and no measurement.
        axes.axhline(0, color=styles[to]["color"], label=f"{to} (zero)", zorder=4)
        gaps = {}
        for label, runs in group(part, "label").items():
            _curve(axes, runs, "K", "P@K", styles[label], band=True)
            gaps[label] = _matrix(runs, "P@K").mean(axis=0)
        low, high = _range_of_close(gaps)
        axes.set(xlim=(0, None), ylim=(low, high))
        few_ticks(axes, min(3, len(parts)))
        axes.set_title(f"{part[0]['n_bits']} bits")
        names = _out_of_range(gaps, low, high)
        axes.set_xlabel(f"{TOP_K_AXIS}\n{names}" if names else TOP_K_AXIS)
    return legend(figure)
