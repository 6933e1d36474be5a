"""Draw every figure of the study in one style.

The figures are readable at notebook width, in colours that colour-blind readers can tell apart.
Figures of the paper's experiments take records, as `study.protocol` returns them.
A method looks the same in all of them. Titles name the data that stand in for the paper's.
In a notebook, end the line with a semicolon, because a returned Figure is otherwise shown twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from study.protocol import headline

__all__ = [
    "COLORS",
    "METHOD_STYLE",
    "by_bits",
    "codebook",
    "distributions",
    "ensemble",
    "hadamard",
    "longer_codes",
    "name_of",
    "neighbours",
    "precision_at_k",
    "precision_recall",
    "query_variation",
    "stream",
    "stream_curves",
    "sweep",
    "toy_2d",
    "training_time",
    "unseen",
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
WRONG = COLORS[1]
CROSS = "\N{MULTIPLICATION SIGN}"

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
}
METHOD_STYLE["HMOH"] |= {"linewidth": 2.6, "markersize": 10, "zorder": 4}
# Used where METHOD_STYLE says nothing else.
LINE = {"linestyle": "-", "linewidth": 1.5, "markersize": 6, "zorder": 3}
OPEN = {"linestyle": "", "markerfacecolor": "white", "markersize": 8, "zorder": 5}
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
        "figure.figsize": (7, 4),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "axes.prop_cycle": plt.cycler(color=COLORS),
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.alpha": 0.3,
        "font.size": 11,
        "legend.frameon": False,
        "lines.linewidth": 2,
    }
    plt.rcParams.update(style)


def name_of(record: dict, between: str = " ") -> str:
    """Return the data set's name: "MNIST" or "udhr205 (STAND-IN for Places205)"."""
    role = ROLES[record["role"]]
    if record["stand_in_for"]:
        return f"{record['dataset']}{between}(STAND-IN for {role})"
    return role


def _group(records: Records, key: str) -> dict:
    """Return {value: records}: numbers in ascending order, other values as they come."""
    groups: dict = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    if all(isinstance(value, int | float) for value in groups):
        return dict(sorted(groups.items()))
    return groups


def _choose(records: Records, need: str, *same: str) -> list[dict]:
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
        values = list(_group(found, key))
        if len(values) > 1:
            raise ValueError(
                f"The records have {key} {values}, but the figure shows one; "
                f"pass [r for r in records if r[{key!r}] == {values[0]!r}]."
            )
    ranks = {name: rank for rank, name in enumerate([*ROLES, *METHOD_STYLE])}
    # A caller's own labels come after the methods.
    found.sort(key=lambda record: ranks.get(record["label"], len(ranks)))
    found.sort(key=lambda record: ranks[record["role"]])
    return found


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


def _score_name(records: Records) -> str:
    """Return the headline metric's name for an axis. Data sets may differ in it."""
    metrics = {headline(record["role"]): record["dataset"] for record in records}
    if len(metrics) == 1:
        return next(iter(metrics))
    return f"mAP ({metrics['mAP@1000']}: mAP@1000)"


def _seeds(records: Records, statistic: str = "mean ± sd") -> str:
    """Return over how many seeds the points of a figure are means."""
    fields = ("dataset", "label", "n_bits", "n_queries", "x")
    points = [tuple(record.get(field) for field in fields) for record in records]
    counts = Counter(points).values()
    least = min(counts)
    most = max(counts)
    if most == 1:
        return "1 seed"
    if least == most:
        return f"{statistic} of {most} seeds"
    return f"{statistic} of {least} to {most} seeds"


def _styles(labels: Iterable[str]) -> dict[str, dict]:
    """Return how each label is drawn: a method as always, another with open markers."""
    styles = {label: LINE | METHOD_STYLE.get(label, {}) for label in labels}
    used = [style.get("color") for style in styles.values()]
    # Yellow, the last one, is hard to see.
    visible = COLORS[:-1]
    spare = [color for color in visible if color not in used] or visible
    others = [style for style in styles.values() if "color" not in style]
    for i, style in enumerate(others):
        style["color"] = spare[i % len(spare)]
        style["marker"] = "oD^vs"[i % 5]
        style["markerfacecolor"] = "white"
    return styles


def _grid(
    title: str,
    n_panels: int,
    xlabel: str,
    ylabel: str,
    n_columns: int = 2,
    height: float = 2.9,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure as wide as a notebook, and the axes of its panels."""
    n_rows = -(-n_panels // n_columns)
    n_columns = min(n_panels, n_columns)
    size = (10, n_rows * height + 1.4 if n_rows > 1 else 5)
    look = {"figsize": size, "layout": "constrained", "sharey": sharey}
    figure, grid = plt.subplots(n_rows, n_columns, squeeze=False, **look)
    figure.suptitle(title)
    plt.setp(grid, xlabel=xlabel)
    plt.setp(grid[:, 0], ylabel=ylabel)
    for axes in grid.flat[n_panels:]:
        axes.remove()
    return figure, list(grid.flat[:n_panels])


def _legend(figure: Figure, *extra: Artist, n_columns: int = 5) -> Figure:
    """Add one legend below all panels, methods in the order of METHOD_STYLE."""
    entries = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    for handle in extra:
        entries[handle.get_label()] = handle
    labels = [name for name in METHOD_STYLE if name in entries]
    labels += [name for name in entries if name not in METHOD_STYLE]
    handles = [entries[label] for label in labels]
    look = {"loc": "outside lower center", "frameon": False}
    figure.legend(handles, labels, ncols=n_columns, **look)
    return figure


def _curve(
    axes: Axes,
    runs: list[dict],
    x: str,
    y: str,
    style: dict,
    band: bool,
) -> None:
    """Draw the mean of several runs and, where all share x, their range as a band."""
    label = runs[0]["label"]
    if len({len(run[x]) for run in runs}) > 1:
        raise ValueError(
            f"The curves of {label} differ in length; "
            "pass runs of one profile and protocol."
        )
    xs = np.array([run[x] for run in runs], dtype=float)
    ys = np.array([run[y] for run in runs], dtype=float)
    # None in a record means that the method could not encode yet.
    ys = np.ma.masked_invalid(ys)
    means = ys.mean(axis=0).filled(np.nan)
    every = -(-xs.shape[1] // 12)
    axes.plot(xs.mean(axis=0), means, label=label, markevery=every, **style)
    if band and len(runs) > 1 and (xs == xs[0]).all():
        look = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        axes.fill_between(xs[0], ys.min(axis=0), ys.max(axis=0), **look)


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
    chosen = _choose(records, y, *same)
    ylabel = ylabel or _score_name(chosen)
    name = unseen or name_of(chosen[0])
    title = f"{name}: {ylabel} against {xlabel}, {_seeds(chosen, 'mean')}"
    styles = _styles(_group(chosen, "label"))
    panels = _group(chosen, "dataset" if unseen else "n_bits").values()
    columns = 2 if unseen else 3
    figure, grid = _grid(title, len(panels), xlabel, ylabel, columns, sharey=True)
    for axes, panel in zip(grid, panels, strict=True):
        for label, runs in _group(panel, "label").items():
            # Unseen classes differ between seeds, and ten wide bands hide the curves.
            _curve(axes, runs, x, y, styles[label], band=not unseen)
        bits = f"{panel[0]['n_bits']} bits"
        axes.set_title(name_of(panel[0], "\n") if unseen else bits)
        axes.set_xlim(0, None)
        axes.xaxis.set_major_formatter("{x:,g}")
    return _legend(figure)


def _means(
    axes: Axes,
    records: list[dict],
    x: str,
    metric: str | None,
    styles: dict[str, dict],
    even: bool = True,
) -> None:
    """Draw means and standard deviations over seeds, a line for each label.

    ``metric`` None is the headline metric. ``even`` puts all values of x at equal distances.
    """
    ticks = list(_group(records, x))
    for label, runs in _group(records, "label").items():
        places = []
        means = []
        deviations = []
        for value, group in _group(runs, x).items():
            scores = [run[metric or headline(run["role"])] for run in group]
            places.append(ticks.index(value) if even else value)
            means.append(np.mean(scores))
            deviations.append(np.std(scores, ddof=1) if len(scores) > 1 else 0.0)
        look = {"capsize": 2, "elinewidth": 1} | styles[label]
        axes.errorbar(places, means, deviations, label=label, **look)
    if even:
        axes.set_xticks(range(len(ticks)), [f"{value:,g}" for value in ticks])


def _means_by_bits(title: str, chosen: list[dict], styles: dict) -> Figure:
    """Draw the headline metric against the code length, a panel for each data set."""
    panels = _group(chosen, "dataset").values()
    title = f"{title}, {_seeds(chosen)}"
    figure, grid = _grid(title, len(panels), "code length (bits)", "")
    for axes, panel in zip(grid, panels, strict=True):
        _means(axes, panel, "n_bits", None, styles)
        axes.set(title=name_of(panel[0], "\n"), ylabel=_score_name(panel))
        axes.margins(0.1)
    return figure


def stream(records: Records) -> Figure:
    """Draw the headline metric against the samples seen. Needs runs with checkpoints."""
    return _curves(records, "samples", "stream", "samples seen")


def precision_at_k(records: Records) -> Figure:
    """Draw the precision among the K nearest items against K."""
    return _curves(records, "K", "P@K", "K (items retrieved)", "Precision@K")


def precision_recall(records: Records) -> Figure:
    """Draw precision against recall within each radius.

    A query without items within the radius has precision 0. So the curves of long codes start low.
    """
    return _curves(records, "recall", "precision", "recall", "precision")


def unseen(records: Records, n_bits: int = 64) -> Figure:
    """Draw Precision@K on classes that the stream never showed (split="unseen")."""
    found = [r for r in records if r["split"] == "unseen" and r["n_bits"] == n_bits]
    name = f"Unseen classes, {n_bits} bits"
    return _curves(found, "K", "P@K", "K (items retrieved)", "Precision@K", name)


def by_bits(
    records: Records,
    metric: str | None = None,
    paper: dict[str, dict] | None = None,
) -> Figure:
    """Draw a metric against the code length, with the standard deviation over seeds.

    Parameters
    ----------
    records : iterable of dict
    metric : str, optional
        A field of the records. The default is the headline metric.
    paper : dict, optional
        {method: {bits: printed value}}, drawn as open markers. An error for stand-in data.
    """
    chosen = _choose(records, metric or "role", "dataset", "split")
    metric = metric or _score_name(chosen)
    name = name_of(chosen[0])
    if paper and chosen[0]["stand_in_for"]:
        raise ValueError(
            f"{name} is not the paper's data, so the paper's values do not apply; "
            "leave out `paper`."
        )
    styles = _styles(_group(chosen, "label"))
    title = f"{name}: {metric}, {_seeds(chosen)}"
    figure, [axes] = _grid(title, 1, "code length (bits)", metric)
    _means(axes, chosen, "n_bits", metric, styles)
    if not paper:
        return _legend(figure)
    lengths = [str(n_bits) for n_bits in _group(chosen, "n_bits")]
    for method, style in styles.items():
        for n_bits, value in paper.get(method, {}).items():
            if str(n_bits) in lengths:
                axes.plot(lengths.index(str(n_bits)), value, **style | OPEN)
    look = {"color": "black", "marker": "o"} | OPEN
    entry = plt.Line2D([], [], label="open: the paper's", **look)
    return _legend(figure, entry, n_columns=6)


def query_variation(records: Records, n_classes: int | None = None) -> Figure:
    """Draw the headline metric against the queries, per class if ``n_classes`` is given."""
    found = _choose(records, "n_queries", "dataset", "split", "n_bits")
    chosen = [r | {"x": r["n_queries"] / (n_classes or 1)} for r in found]
    n_bits = found[0]["n_bits"]
    title = f"{name_of(found[0])}: more queries, {n_bits} bits, {_seeds(chosen)}"
    xlabel = "queries per class" if n_classes else "queries"
    figure, [axes] = _grid(title, 1, xlabel, _score_name(chosen))
    _means(axes, chosen, "x", None, _styles(_group(chosen, "label")))
    return _legend(figure)


def longer_codes(records: Records) -> Figure:
    """Draw the headline metric by code length. Dotted: saturated at int8, as published."""
    chosen = _choose(records, "mAP int8", "split")
    styles = _styles(_group(chosen, "label"))
    figure = _means_by_bits("Longer codes", chosen, styles)
    panels = _group(chosen, "dataset").values()
    dots = {"linestyle": ":", "markersize": 3}
    # matplotlib leaves labels with an underscore out of the legend.
    dotted = {f"_{label}": style | dots for label, style in styles.items()}
    for axes, panel in zip(figure.axes, panels, strict=True):
        hidden = [record | {"label": f"_{record['label']}"} for record in panel]
        _means(axes, hidden, "n_bits", "mAP int8", dotted)
    entry = plt.Line2D([], [], color="black", linestyle=":")
    entry.set_label("dotted: int8 saturation")
    return _legend(figure, entry, n_columns=6)


def ensemble(records: Records) -> Figure:
    """Draw the headline metric of one method with ensemble=True and ensemble=False."""
    found = _choose(records, "settings", "method", "split")
    names = {True: "average of all states", False: "last state"}
    chosen = [r | {"label": names[_setting(r, "ensemble")]} for r in found]
    title = f"{found[0]['method']}, averaged or not"
    return _legend(_means_by_bits(title, chosen, _styles(names.values())))


def _times(axes: Axes, seconds: dict[str, list[float]], styles: dict) -> None:
    """Draw mean and range of each method's seconds, and the ratio to HMOH's mean."""
    base = np.mean(seconds["HMOH"])
    digits = {"precision": 2, "fractional": False, "trim": "-"}
    for row, (label, values) in enumerate(seconds.items()):
        mean = np.mean(values)
        whiskers = [[mean - min(values)], [max(values) - mean]]
        axes.errorbar([mean], [row], xerr=whiskers, **styles[label])
        time = np.format_float_positional(mean, **digits)
        text = f"   {time} s, {mean / base:,.1f} x HMOH"
        axes.text(max(values), row, text, va="center", fontsize=9)
    axes.axvline(base, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(seconds)), seconds)
    least = min(map(min, seconds.values()))
    most = max(map(max, seconds.values()))
    # The texts need room at the right, and more of it on a longer axis.
    right = most * 4 * (most / least) ** 0.6
    axes.set(xscale="log", xlim=(least / 2, right))
    axes.xaxis.set_major_formatter("{x:g}")


def training_time(records: Records) -> Figure:
    """Draw each method's training time at one code length, compared with HMOH's."""
    chosen = _choose(records, "train_seconds", "n_bits", "split")
    styles = _styles(_group(chosen, "label"))
    panels = _group(chosen, "dataset").values()
    n_bits = chosen[0]["n_bits"]
    title = f"Training time, {n_bits} bits, {_seeds(chosen, 'mean')}"
    height = 0.3 * len(styles) + 1
    xlabel = "seconds (log scale)"
    figure, grid = _grid(title, len(panels), xlabel, "method", height=height)
    for axes, panel in zip(grid, panels, strict=True):
        seconds = {}
        for label, runs in _group(panel, "label").items():
            seconds[label] = [run["train_seconds"] for run in runs]
        if "HMOH" not in seconds:
            raise ValueError(
                f"No HMOH on {panel[0]['dataset']}, but its time is the unit; "
                "add its records."
            )
        _times(axes, seconds, styles)
        axes.set_title(name_of(panel[0], "\n"))
    return figure


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
    found = _choose(records, "settings", "method", "n_bits", "split")
    chosen = [r | {"x": _setting(r, x), "label": name_of(r)} for r in found]
    roles = list(ROLES)
    styles = {}
    for record in chosen:
        i = roles.index(record["role"])
        styles[record["label"]] = LINE | {"color": COLORS[i], "marker": MARKERS[i]}
    where = chosen[0]["label"] if len(styles) == 1 else f"{len(styles)} data sets"
    what = f"{chosen[0]['method']}, {chosen[0]['n_bits']} bits"
    title = f"{title}, {where}: {what}, {_seeds(chosen)}"
    metrics = {None: _score_name(chosen)}
    if seconds:
        metrics["train_seconds"] = "training time (seconds)"
    figure, grid = _grid(title, len(metrics), xlabel, "")
    for axes, (metric, ylabel) in zip(grid, metrics.items(), strict=True):
        _means(axes, chosen, "x", metric, styles, even=False)
        axes.set(xscale="log" if log else "linear", ylabel=ylabel)
        axes.xaxis.set_major_formatter("{x:g}")
    return _legend(figure, n_columns=2)


def stream_curves(
    samples: Sequence[int],
    curves: dict[str, Sequence[float]],
    title: str,
) -> Axes:
    """Draw mAP against the samples seen, a line for each entry of ``curves``."""
    figure, axes = plt.subplots(layout="constrained")
    for name, values in curves.items():
        axes.plot(samples, values, marker="o", markersize=4, label=name)
    axes.set(title=title, xlabel="samples seen", ylabel="mAP", xlim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _legend(figure)
    return axes


def neighbours(
    queries: np.ndarray,
    found: np.ndarray,
    distances: np.ndarray,
    wrong: np.ndarray,
    title: str,
    shape: tuple[int, int] = (28, 28),
) -> Figure:
    """Draw query images, each with its nearest neighbours at its right.

    A frame and a cross mark the neighbours of another class.

    Parameters
    ----------
    queries : (n, pixels) array
    found : (n, k, pixels) array
        The neighbours of each query, nearest first.
    distances : (n, k) array of int
        Their Hamming distances, written at the right of the images.
    wrong : (n, k) array of bool
        Whether a neighbour is of another class than its query.
    title : str
    shape : tuple of int
        Height and width of an image in pixels.
    """
    n, k = distances.shape
    # Lengths are in units of an image's side. Each image has its distance at its right.
    step_x = 1.5
    step_y = 1.16
    first_x = 1.65
    width = first_x + k * step_x
    inches_per_unit = 8 / width
    # The titles need 1.1 units.
    height = (n * step_y + 1.1) * inches_per_unit
    figure, axes = plt.subplots(figsize=(8, height), layout="constrained")

    def draw(
        image: np.ndarray, x: float, y: float, color: str, linewidth: float
    ) -> None:
        extent = (x, x + 1, y + 1, y)
        axes.imshow(image.reshape(shape), cmap="gray_r", extent=extent)
        frame = {"edgecolor": color, "linewidth": linewidth}
        axes.add_patch(Rectangle((x, y), 1, 1, fill=False, **frame))

    for row in range(n):
        y = row * step_y
        draw(queries[row], 0, y, "black", 2)
        for column in range(k):
            x = first_x + column * step_x
            is_wrong = wrong[row, column]
            color = WRONG if is_wrong else "0.75"
            linewidth = 2.5 if is_wrong else 0.8
            draw(found[row, column], x, y, color, linewidth)
            axes.text(x + 1.07, y + 1, distances[row, column], fontsize=9)
            if is_wrong:
                look = {"color": WRONG, "weight": "bold", "fontsize": 14}
                axes.text(x + 1.07, y + 0.5, CROSS, **look)
    axes.text(0, -0.15, "query")
    axes.text(first_x, -0.15, "nearest neighbours and their Hamming distances")
    axes.text(width, -0.15, f"{CROSS} wrong class", color=WRONG, ha="right")
    axes.set(xlim=(-0.1, width), ylim=(n * step_y, -0.6), title=title)
    axes.axis("off")
    return figure


def codebook(
    targets: dict,
    title: str,
    xlabel: str = "bit",
    ylabel: str = "class",
    aspect: str = "auto",
) -> Axes:
    """Draw target codes as rows of cells, one row for each label.

    Parameters
    ----------
    targets : dict
        {label: (n_bits,) array of -1, +1, or 0 for a tie}.
    title, xlabel, ylabel : str
    aspect : {"auto", "equal"}
        Whether cells fill the figure or are squares.
    """
    codes = np.stack(list(targets.values()))
    n, n_bits = codes.shape
    # White lines and row names would fill the picture if there were more rows.
    is_small = n <= 32
    size = (8, min(1.2 + 0.22 * n, 7))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    cells = axes.pcolormesh(
        range(n_bits),
        range(n),
        codes,
        cmap="Blues",
        vmin=-1.5,
        vmax=1,
        edgecolors="white" if is_small else "none",
        linewidth=1 if is_small else 0,
    )
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, aspect=aspect)
    axes.set_yticks(range(n) if is_small else [])
    if is_small:
        axes.set_yticklabels(targets)
    axes.invert_yaxis()
    locator = axes.xaxis.get_major_locator()
    locator.set_params(integer=True, steps=[1, 2, 4, 8, 10])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(False)
    names = {-1: "-1", 0: "0 (tie)", 1: "+1"}
    entries = []
    for value in np.unique(codes):
        entries.append(Patch(color=cells.to_rgba(value), label=names[value]))
    _legend(figure, *entries)
    return axes


def hadamard(matrix: np.ndarray) -> Axes:
    """Draw a Hadamard matrix as an image."""
    title = f"Hadamard matrix of order {len(matrix)}"
    return codebook(dict(enumerate(matrix)), title, "column", "row", "equal")


def distributions(
    simulated: np.ndarray,
    theory: dict[str, tuple],
    title: str,
    xlabel: str,
) -> Axes:
    """Draw the frequencies of simulated integers, and formulas beside them.

    ``theory`` is {name: (integers, probabilities)}.
    """
    figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    numbers, counts = np.unique(simulated, return_counts=True)
    total = counts.sum()
    axes.bar(numbers, counts / total, color="0.75", label=f"{total:,} simulated")
    for i, (name, (numbers, probabilities)) in enumerate(theory.items()):
        look = {"marker": MARKERS[i % 4], "color": COLORS[i % 6], "linewidth": 1.5}
        axes.plot(numbers, probabilities, label=name, **look)
    axes.set(title=title, xlabel=xlabel, ylabel="probability")
    _legend(figure)
    return axes


def toy_2d(
    points: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    names: Sequence[str],
    title: str = "Toy example",
) -> Axes:
    """Draw points of several classes, and lines through the origin.

    Parameters
    ----------
    points : (n, 2) array
    labels : (n,) array
    weights : (m, 2) array
        Each row w gives the line w[0] x + w[1] y = 0.
    names : sequence of m str
        The lines' names in the legend.
    title : str
    """
    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    class_colors = [COLORS[i] for i in (0, 4, 2, 5)]
    for i, label in enumerate(np.unique(labels)):
        x, y = points[labels == label].T
        look = {"marker": MARKERS[i % 4], "color": class_colors[i % 4]}
        axes.scatter(x, y, s=20, alpha=0.6, label=f"class {label}", **look)
    # A line far away must not change the limits that show the points.
    limits = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim()}
    line_colors = [COLORS[i] for i in (1, 6, 3, 2)]
    for i, (w, name) in enumerate(zip(weights, names, strict=True)):
        dashes = ("--", "-", ":", "-.")[i % 4]
        look = {"color": line_colors[i % 4], "linestyle": dashes}
        axes.axline((0, 0), (-w[1], w[0]), label=name, **look)
    axes.set(title=title, xlabel="first feature", ylabel="second feature", **limits)
    _legend(figure, n_columns=2)
    return axes
