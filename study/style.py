"""Hold what all figures share: colours, panels and legends.

A colour and a marker mean a method. A filled marker means "as described", an open marker
"as published". Bands and bars are 95 % intervals of the mean over seeds.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from functools import wraps

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baselines import METHODS

__all__ = ["COLORS", "GREY", "LINE", "MARKERS", "OPEN", "PUBLISHED", "WIDTH", "Records"]
__all__ += ["label_ends", "legend", "look_of", "panels", "rank_of", "styled", "styles_of"]
__all__ += ["use_style"]

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

# Used where a method's own look says nothing else.
LINE = {"linestyle": "-", "linewidth": 1.5, "markersize": 6, "zorder": 3}
# The methods that a figure does not name.
GREY = {"color": "0.78", "linestyle": "-", "linewidth": 1.2, "zorder": 2}
# Replaces a method's own look in runs as published. Its colour and marker stay.
OPEN = {"markerfacecolor": "white", "linestyle": "-.", "linewidth": 1.5}
# The end of the labels of runs as published.
PUBLISHED = ", as published"
# Of every figure, in inches. With letters of 12 points it can be read on a phone.
WIDTH = 6.5
# matplotlib's settings in every figure.
STYLE = {
    "figure.figsize": (WIDTH, 4),
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
Records = Iterable[dict]


def use_style() -> None:
    """Give the figures that a notebook draws itself the look of all others."""
    plt.rcParams.update(STYLE)


def styled(draw: Callable) -> Callable:
    """Decorate a function that draws a figure: it has the common look without `use_style`."""

    # Not plt.rc_context, which would undo what Jupyter sets while the first figure is made, and
    # later figures would not be shown.
    @wraps(draw)
    def draw_in_style(*args, **kwargs):
        before = {name: plt.rcParams[name] for name in STYLE}
        plt.rcParams.update(STYLE)
        try:
            return draw(*args, **kwargs)
        finally:
            plt.rcParams.update(before)

    return draw_in_style


# ---- looks ---------------------------------------------------------------------------


def rank_of(label: str) -> tuple[int, bool]:
    """Return the place of a label in legends: a caller's own labels after the methods."""
    methods = list(METHODS)
    method = label.removesuffix(PUBLISHED)
    rank = methods.index(method) if method in methods else len(methods)
    return rank, label.endswith(PUBLISHED)


def look_of(method: str) -> dict:
    """Return how a method is drawn, as keywords of matplotlib; no colour for other labels."""
    # A notebook may have added a plain function, which has no look.
    return LINE | getattr(METHODS.get(method), "style", {})


def styles_of(records: Records) -> dict[str, dict]:
    """Return how each label is drawn: a method as always, open markers if as published.

    A label that is not a method gets a colour that no other one has.
    """
    kinds: dict[str, set[bool]] = {}
    for run in records:
        kinds.setdefault(run["label"], set()).add(bool(run.get("published")))
    names = dict.fromkeys(label.removesuffix(PUBLISHED) for label in kinds)
    styles = {name: look_of(name) for name in names}
    used = [look.get("color") for look in styles.values()]
    # Yellow, the last one, is hard to see.
    visible = COLORS[:-1]
    spare = [color for color in visible if color not in used] or visible
    others = [look for look in styles.values() if "color" not in look]
    for i, look in enumerate(others):
        look |= {"color": spare[i % len(spare)], "marker": (MARKERS + "v")[i % 5]}
    found = {}
    for label, found_kinds in kinds.items():
        if len(found_kinds) > 1:
            raise ValueError(
                f"The runs {label!r} are partly as described and partly as published, "
                "but a mean over a mixture has no meaning; give them different labels."
            )
        style = styles[label.removesuffix(PUBLISHED)]
        found[label] = style | OPEN if found_kinds == {True} else style
    return found


@styled
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


def legend(figure: Figure, *extra: Artist, n_columns: int = 5) -> Figure:
    """Add one legend below all panels: the methods in their order, then other labels, then extra.

    There are fewer columns if the entries are long.
    """
    entries = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    entries = {label: entries[label] for label in sorted(entries, key=rank_of)}
    entries |= {handle.get_label(): handle for handle in extra}
    # In inches: a line with its gaps, and a letter.
    width = 0.75 + 0.1 * max(map(len, entries))
    fitting = max(1, int(figure.get_figwidth() / width))
    look = {"loc": "outside lower center", "frameon": False}
    figure.legend(entries.values(), entries, ncols=min(n_columns, fitting), **look)
    return figure
