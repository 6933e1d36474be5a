"""Hold what all figures share: colours, panels, legends, and the choice of records.

A colour and a marker mean a method. A filled marker means "as described", an open marker
"as published". Bands and bars are 95 % intervals of the mean over seeds. Where lines are many, a
figure names HMOH, the best other method and LSH at the ends of their lines; the others are grey.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from study.scores import headline

__all__ = [
    "COLORS",
    "GREY",
    "LINE",
    "MARKERS",
    "METHOD_STYLE",
    "OPEN",
    "PUBLISHED",
    "ROLES",
    "WIDTH",
    "Records",
    "choose",
    "few_ticks",
    "grey_note",
    "group",
    "label_ends",
    "legend",
    "name_of",
    "named_styles",
    "over_seeds",
    "panels",
    "score_name",
    "styles_of",
    "use_style",
]

# The palette of Okabe and Ito.
COLORS = [
    "#0072B2",  # blue
    "#D55E00",  # vermillion
    "#009E73",  # green
    "#CC79A7",  # purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#000000",  # black
    "#F0E442",  # yellow
]
MARKERS = "os^D"

# In the order of legends. Olive and dark red replace yellow, which is hard to see on white.
METHOD_STYLE = {
    "LSH": {"color": "#777777", "marker": "X", "linestyle": "--"},
    "OKH": {"color": "#56B4E9", "marker": "v"},
    "SketchHash": {"color": "#E69F00", "marker": "s"},
    "FROSH": {"color": "#999933", "marker": "d"},
    "AdaptHash": {"color": "#CC79A7", "marker": "<"},
    "OSH": {"color": "#009E73", "marker": "P"},
    "MIHash": {"color": "#D55E00", "marker": "^"},
    "BSODH": {"color": "#0072B2", "marker": "D"},
    "HCOH": {"color": "#7A0000", "marker": "o"},
    "HMOH": {"color": "#000000", "marker": "*"},
    "HadamardRidge": {"color": "#882255", "marker": "h"},
}
METHOD_STYLE["HMOH"] |= {"linewidth": 2.6, "markersize": 10, "zorder": 4}
# Used where METHOD_STYLE says nothing else.
LINE = {"linestyle": "-", "linewidth": 1.5, "markersize": 6, "zorder": 3}
# The methods that a figure does not name.
GREY = {"color": "0.78", "linestyle": "-", "linewidth": 1.2, "zorder": 2}
# Replaces a method's own look in runs as published. Its colour and marker stay.
OPEN = {"markerfacecolor": "white", "linestyle": "-.", "linewidth": 1.5}
# The end of the labels of runs as published.
PUBLISHED = ", as published"
# Of every figure, in inches. With letters of 12 points it can be read on a phone.
WIDTH = 6.5
ROLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "places205": "Places205",
    "nuswide": "NUS-WIDE",
}
Records = Iterable[dict]


def use_style() -> None:
    """Set matplotlib's defaults. Call it once at the top of a notebook."""
    style = {
        "figure.figsize": (WIDTH, 4),
        "figure.dpi": 100,
        "figure.titlesize": "medium",
        "figure.constrained_layout.use": True,
        "axes.prop_cycle": plt.cycler(color=COLORS),
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": "medium",
        "grid.alpha": 0.3,
        "font.size": 12,
        "legend.frameon": False,
        "lines.linewidth": 2,
    }
    plt.rcParams.update(style)


# ---- records -------------------------------------------------------------------------


def name_of(record: dict, between: str = " ") -> str:
    """Return the data set's name: "MNIST" or "udhr205 (STAND-IN for Places205)"."""
    role = ROLES[record["role"]]
    if record["stand_in_for"]:
        return f"{record['dataset']}{between}(STAND-IN for {role})"
    return role


def group(records: Records, key: str) -> dict:
    """Return {value: records}: numbers in ascending order, other values as they come."""
    groups: dict = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    if all(isinstance(value, int | float) for value in groups):
        return dict(sorted(groups.items()))
    return groups


def choose(records: Records, need: str, *same: str) -> list[dict]:
    """Return the records that have the field ``need``, sorted by data set and method.

    They must agree in the fields ``same``, because a mean over a mixture has no meaning.
    """
    found = [record for record in records if need in record]
    if not found:
        source = "protocol.compare"
        if need in ("stream", "AUC mAP"):
            source += "(..., checkpoints=True)"
        raise ValueError(
            f"No record has {need!r}, but the figure needs it; pass records of {source}."
        )
    for key in same:
        values = list(group(found, key))
        if len(values) > 1:
            raise ValueError(
                f"The records have {key} {values}, but the figure shows one; "
                f"pass [r for r in records if r[{key!r}] == {values[0]!r}]."
            )
    roles = list(ROLES)
    found.sort(key=lambda record: _rank(record["label"]))
    found.sort(key=lambda record: roles.index(record["role"]))
    return found


def _rank(label: str) -> tuple[int, bool]:
    """Return the place of a label in legends: a caller's own labels after the methods."""
    methods = list(METHOD_STYLE)
    method = label.removesuffix(PUBLISHED)
    rank = methods.index(method) if method in methods else len(methods)
    return rank, label.endswith(PUBLISHED)


def score_name(records: Records) -> str:
    """Return the headline metric's name for an axis. Data sets may differ in it."""
    metrics = {headline(record["role"]): record["dataset"] for record in records}
    if len(metrics) == 1:
        return next(iter(metrics))
    return f"mAP ({metrics['mAP@1000']}: mAP@1000)"


# ---- seeds ---------------------------------------------------------------------------


def over_seeds(records: Records, mark: str = "") -> str:
    """Return for a title over how many seeds the points of a figure are means.

    Parameters
    ----------
    records : iterable of dict
        The field "x", if there is one, tells points of the same label apart.
    mark : {"", "band", "bars"}
        What shows the 95 % interval of the mean.
    """
    seeds: dict = {}
    for record in records:
        point = tuple(record.get(f) for f in ("dataset", "label", "n_bits", "x"))
        seeds.setdefault(point, []).append(record["seed"])
    for (dataset, label, n_bits, _), found in seeds.items():
        if len(set(found)) < len(found):
            raise ValueError(
                f"Several runs of {label!r} on {dataset} at {n_bits} bits have the same seed "
                f"(seeds {sorted(found)}), but a point is a mean over different seeds; "
                "give different runs different labels, or pass each run once."
            )
    counts = [len(found) for found in seeds.values()]
    least = min(counts)
    most = max(counts)
    if most == 1:
        return "1 seed"
    number = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    if not mark:
        return f"mean over {number}"
    return f"{mark}: 95 % interval of the mean over {number}"


# ---- looks ---------------------------------------------------------------------------


def styles_of(records: Records) -> dict[str, dict]:
    """Return how each label is drawn: a method as always, open markers if as published."""
    labels = group(records, "label")
    styles = {}
    for label in labels:
        name = label.removesuffix(PUBLISHED)
        styles[name] = LINE | METHOD_STYLE.get(name, {})
    used = [style.get("color") for style in styles.values()]
    # Yellow, the last one, is hard to see.
    visible = COLORS[:-1]
    spare = [color for color in visible if color not in used] or visible
    others = [style for style in styles.values() if "color" not in style]
    for i, style in enumerate(others):
        style["color"] = spare[i % len(spare)]
        style["marker"] = "oD^vs"[i % 5]
    found = {}
    for label, runs in labels.items():
        kinds = {bool(run.get("published")) for run in runs}
        if len(kinds) > 1:
            raise ValueError(
                f"The runs {label!r} are partly as described and partly as published, "
                "but a mean over a mixture has no meaning; give them different labels."
            )
        style = styles[label.removesuffix(PUBLISHED)]
        found[label] = style | OPEN if kinds == {True} else style
    return found


def named_styles(records: Records, field: str | None) -> dict[str, dict]:
    """Return how the labels are drawn that a figure names. The other methods are grey.

    Up to four labels are all named. Of more, HMOH is, the best other one by its mean, and LSH.
    ``field`` None is the headline metric. A field may be a curve.
    """
    styles = styles_of(records)
    labels = group(records, "label")
    if len(labels) <= 4:
        return styles
    height = {}
    for label, runs in labels.items():
        found = [run[field or headline(run["role"])] for run in runs]
        height[label] = np.nanmean(np.array(found, dtype=float))
    named = [label for label in ("HMOH", "LSH") if label in labels]
    others = [label for label in labels if label not in named]
    return {label: styles[label] for label in [*named, max(others, key=height.get)]}


def grey_note(records: Records, styles: dict[str, dict]) -> str:
    """Return the end of a title: what grey lines are, if there are any."""
    return "; grey: the other methods" if group(records, "label").keys() - styles else ""


def panels(
    title: str,
    n_panels: int,
    xlabel: str,
    ylabel: str,
    height: float = 2.3,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of the one width, and the axes of its panels, two in a row."""
    n_columns = min(n_panels, 2)
    n_rows = -(-n_panels // 2)
    lines = []
    for line in title.split("\n"):
        lines += textwrap.wrap(line, 70)
    size = (WIDTH, n_rows * height + 0.25 * len(lines) + 0.5 if n_panels > 1 else 4.2)
    figure, grid = plt.subplots(n_rows, n_columns, squeeze=False, figsize=size, sharey=sharey)
    # The last number of an axis must not touch the first one of the next panel.
    figure.get_layout_engine().set(w_pad=0.08)
    figure.suptitle("\n".join(lines))
    plt.setp(grid[:, 0], ylabel=ylabel)
    for axes in grid.flat[n_panels:]:
        axes.remove()
    shown = list(grid.flat[:n_panels])
    # Below the last panel of each column.
    plt.setp(shown[-n_columns:], xlabel=xlabel)
    return figure, shown


def label_ends(axes: Axes, ends: dict[str, tuple[float, str]]) -> None:
    """Write labels at the right of a panel, each beside the end of its line and in its colour.

    Call it when everything is drawn. ``ends`` is {label: (y, colour)}.
    """
    low, high = axes.get_ylim()
    spec = axes.get_subplotspec()
    # A line of text with a gap, as a share of the panel without its title and numbers; in inches.
    step = 0.19 / (axes.figure.get_figheight() / spec.get_gridspec().nrows - 0.9)
    labels = sorted(ends, key=lambda label: ends[label][0])
    places = [(ends[label][0] - low) / (high - low) for label in labels]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + step)
    # From above, if they were pushed out of the panel.
    limit = 1.0
    for i in reversed(range(len(places))):
        places[i] = limit = min(places[i], limit)
        limit -= step
    for label, place in zip(labels, places, strict=True):
        look = {"color": ends[label][1], "va": "center", "fontsize": 11}
        axes.text(1.03, place, label, transform=axes.transAxes, **look)


def few_ticks(axes: Axes, labels: Iterable[str]) -> None:
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


def legend(figure: Figure, *extra: Artist, n_columns: int = 5) -> Figure:
    """Add one legend below all panels, methods in the order of METHOD_STYLE.

    A method that is drawn as described and as published has one entry. Two more entries then say
    what filled and open markers mean. There are fewer columns if the entries are long.
    """
    entries = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    labels = sorted(entries, key=_rank)
    short = []
    for label in labels:
        name = label.removesuffix(PUBLISHED)
        if name == label or name not in entries:
            short.append(label)
    if len(short) < len(labels):
        look = LINE | {"color": "0.4", "marker": "o"}
        described = Line2D([], [], label="filled: as described", **look)
        published = Line2D([], [], label="open: as published", **look | OPEN)
        extra = (described, published, *extra)
    for handle in extra:
        entries[handle.get_label()] = handle
        short.append(handle.get_label())
    handles = [entries[label] for label in short]
    # In inches: a line with its gaps, and a letter.
    width = 0.75 + 0.1 * max(len(label) for label in short)
    fitting = max(1, int(figure.get_figwidth() / width))
    look = {"loc": "outside lower center", "frameon": False}
    figure.legend(handles, short, ncols=min(n_columns, fitting), **look)
    return figure
