"""Draw pictures that need no records: images, target codes, distributions, and toy examples.

`study.plots` hands them on, so notebooks need not know this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from study.statistics import mean_and_interval
from study.style import COLORS, MARKERS, WIDTH, label_ends, legend, panels

__all__ = [
    "BIT_COLORS",
    "CLASS_COLORS",
    "CROSS",
    "WRONG",
    "codebook",
    "decisions",
    "distributions",
    "dots",
    "free_figure",
    "hadamard",
    "images",
    "neighbours",
    "pipeline",
    "show_image",
    "stream_curves",
    "toy_2d",
    "two_values",
]

WRONG = COLORS[1]
CROSS = "\N{MULTIPLICATION SIGN}"
# The colours of the cells -1 and +1 of `codebook`.
BIT_COLORS = {-1: "#d0e1f2", 1: "#08306b"}
CLASS_COLORS = {-1: COLORS[0], 1: COLORS[4]}


# ---- parts of pictures ---------------------------------------------------------------


def free_figure(width: float, height: float, dpi: float | None = None) -> Figure:
    """Return a figure whose panels stay where they are put.

    With no layout engine at all, savefig would take that of the style.
    """
    figure = plt.figure(figsize=(width, height), dpi=dpi)
    engine = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=False)
    figure.set_layout_engine(engine)
    return figure


def show_image(axes: Axes, image: np.ndarray, shape: tuple[int, int]) -> None:
    """Draw a grey image in a frame, without numbers at its sides."""
    axes.imshow(image.reshape(shape), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("0.75")


def _show_bits(axes: Axes, codes: np.ndarray, wrong: np.ndarray) -> list[Rectangle]:
    """Draw codes as columns of cells; frames and crosses mark the wrong bits.

    ``codes`` and ``wrong`` have a row for each bit and a column for each code.
    """
    n_bits, n_codes = codes.shape
    cells = []
    for i in range(n_bits):
        for j in range(n_codes):
            color = BIT_COLORS[int(codes[i, j])]
            cell = Rectangle((j - 0.45, i - 0.45), 0.9, 0.9, color=color, linewidth=0)
            cells.append(axes.add_patch(cell))
            if wrong[i, j]:
                look = {"color": WRONG, "weight": "bold", "fontsize": 9}
                axes.text(j, i, CROSS, ha="center", va="center_baseline", **look)
    axes.set(xlim=(-0.5, n_codes - 0.5), ylim=(n_bits - 0.5, -0.5), yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return cells


def _bit_entries() -> list[Patch]:
    """Return the entries of a legend that say what the colours of bits mean."""
    names = {-1: "bit -1", 1: "bit +1"}
    return [Patch(color=BIT_COLORS[bit], label=names[bit]) for bit in (-1, 1)]


# ---- pictures ------------------------------------------------------------------------


def stream_curves(
    samples: Sequence[int],
    curves: dict[str, Sequence[float]],
    title: str,
) -> Axes:
    """Draw mAP against the samples seen, a line for each entry of ``curves``."""
    _, axes = plt.subplots()
    ends = {}
    for name, values in curves.items():
        (line,) = axes.plot(samples, values, marker="o", markersize=4)
        ends[name] = (values[-1], line.get_color())
    axes.set(title=title, xlabel="samples seen", ylabel="mAP", xlim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    label_ends(axes, ends)
    return axes


def dots(
    samples: Mapping[str, Mapping[str, tuple[Sequence[float], np.ndarray]]],
    title: str,
    xlabel: str,
    ylabel: str,
    sharey: bool = False,
) -> Figure:
    """Draw means as dots with their 95 % intervals, a panel for each entry.

    Parameters
    ----------
    samples : mapping
        {title of a panel: {label: (x, values)}}, with a row of values for each repetition and a
        column for each x. Several labels of a panel are told apart by a legend.
    title, xlabel, ylabel : str
    sharey : bool
        Whether all panels have the same range of y.
    """
    n_labels = max(map(len, samples.values()))
    # The legend of several labels is below the panels.
    height = 2.3 if n_labels == 1 else 2.6 + 0.27 * n_labels
    figure, grid = panels(title, len(samples), xlabel, ylabel, height, sharey)
    for axes, (name, series) in zip(grid, samples.items(), strict=True):
        for i, (label, (x, values)) in enumerate(series.items()):
            points = [mean_and_interval(column) for column in np.transpose(values)]
            means, lows, highs = np.transpose(points)
            look = {"fmt": MARKERS[i % 4], "color": COLORS[i % 6], "capsize": 2}
            axes.errorbar(x, means, [means - lows, highs - means], label=label, **look)
        axes.set_title(name)
    return legend(figure, n_columns=2) if n_labels > 1 else figure


def two_values(
    rows: Mapping[str, Sequence[float]], names: Sequence[str], title: str, xlabel: str
) -> Figure:
    """Draw two values between 0 and 1 for each row, the first filled and the second open.

    Parameters
    ----------
    rows : mapping from str to two numbers
        A text is written above its values. The second line of it is grey.
    names : the two names in the legend
    title, xlabel : str
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 0.75 * len(rows) + 1.4))
    figure.suptitle(title)
    looks = [{"color": COLORS[0], "markersize": 7}, {"color": COLORS[1], "markersize": 12}]
    looks[1] |= {"markerfacecolor": "none", "markeredgewidth": 2}
    for place, (text, values) in enumerate(rows.items()):
        axes.plot(values, [place, place], color="0.6", linewidth=1.5)
        for value, look in zip(values, looks, strict=True):
            axes.plot(value, place, marker="o", zorder=3, **look)
        numbers = [f"{value:.3f}" for value in dict.fromkeys(np.round(values, 3))]
        axes.text(max(values) + 0.03, place, " and ".join(numbers), va="center")
        name, _, choices = text.partition("\n")
        axes.text(0, place - 0.5, name, weight="bold", va="center")
        axes.text(1.1, place - 0.5, choices, va="center", ha="right", color="0.35", fontsize=10)
    axes.set(xlim=(0, 1.1), ylim=(len(rows) - 0.5, -0.9), xlabel=xlabel, yticks=[])
    axes.spines["left"].set_visible(False)
    entries = []
    for name, look in zip(names, looks, strict=True):
        entries.append(Line2D([], [], linestyle="", marker="o", label=name, **look))
    return legend(figure, *entries, n_columns=2)


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
    figure, axes = plt.subplots(figsize=(8, height), dpi=100, layout="constrained")

    def draw(image: np.ndarray, x: float, y: float, color: str, linewidth: float) -> None:
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
    size = (WIDTH, min(1.2 + 0.24 * n, 6.5))
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
    legend(figure, *entries)
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
    figure, axes = plt.subplots(figsize=(WIDTH, 4.2), layout="constrained")
    numbers, counts = np.unique(simulated, return_counts=True)
    total = counts.sum()
    axes.bar(numbers, counts / total, color="0.75", label=f"{total:,} simulated")
    for i, (name, (numbers, probabilities)) in enumerate(theory.items()):
        look = {"marker": MARKERS[i % 4], "color": COLORS[i % 6], "linewidth": 1.5}
        axes.plot(numbers, probabilities, label=name, **look)
    axes.set(title=title, xlabel=xlabel, ylabel="probability")
    legend(figure)
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
    figure, axes = plt.subplots(figsize=(WIDTH, 6), layout="constrained")
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
    legend(figure, n_columns=2)
    return axes


# ---- of the lesson 01_method ---------------------------------------------------------


def pipeline(
    image: np.ndarray,
    values: np.ndarray,
    outputs: np.ndarray,
    target: np.ndarray,
    distances: np.ndarray,
    is_same: np.ndarray,
    found: np.ndarray,
    found_distances: np.ndarray,
    shape: tuple[int, int] = (28, 28),
) -> Figure:
    """Draw one image on its way through the method, up to the nearest images.

    Parameters
    ----------
    image : (pixels,) array
    values : (m,) array
        Its kernel values, one for each anchor.
    outputs : (r,) array
        Its outputs, one for each bit. The signs are its code.
    target : (r,) array of -1 and 1
        The target code of its class.
    distances : (n,) array of int
        The Hamming distances of its code to those of the database.
    is_same : (n,) array of bool
        Whether an image of the database is of the same class.
    found : (k, pixels) array
        The nearest images of the database.
    found_distances : (k,) array of int
    shape : tuple of int
        Height and width of an image in pixels.
    """
    n_bits = len(outputs)
    code = np.where(outputs > 0, 1, -1)
    is_wrong = code != target
    figure = free_figure(10, 4.6)

    def panel(x: float, y: float, width: float, height: float, title: str) -> Axes:
        axes = figure.add_axes((x, y, width, height))
        axes.set_title(title, fontsize=10.5)
        return axes

    def arrow(x: float, text: str) -> None:
        figure.text(x, 0.5, "\N{RIGHTWARDS ARROW}", ha="center", va="center", size=20)
        figure.text(x, 0.56, text, ha="center", fontsize=9, color="0.35")

    axes = panel(0.01, 0.36, 0.142, 0.29, f"1. image\n{len(image)} pixels")
    show_image(axes, image, shape)

    axes = panel(0.21, 0.3, 0.125, 0.41, f"2. kernel values\n{len(values)} anchors")
    n_columns = 15
    grid = np.full(-(-len(values) // n_columns) * n_columns, np.nan)
    grid[: len(values)] = values
    shown = axes.imshow(grid.reshape(-1, n_columns), cmap="Greens", vmin=0)
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    bar = figure.add_axes((0.21, 0.25, 0.125, 0.025))
    figure.colorbar(shown, cax=bar, orientation="horizontal")
    bar.tick_params(labelsize=9, length=2)
    bar.grid(False)

    top, bottom = 0.88, 0.13
    tall = (bottom, top - bottom)
    axes = panel(0.4, tall[0], 0.125, tall[1], f"3. outputs\n{n_bits} perceptrons")
    colors = [WRONG if wrong else "0.5" for wrong in is_wrong]
    axes.barh(np.arange(n_bits), outputs, color=colors)
    axes.axvline(0, color="black", linewidth=1)
    axes.set(ylim=(n_bits - 0.5, -0.5), yticks=[])
    axes.set_xticks([0], ["0"])
    axes.spines["left"].set_visible(False)
    axes.grid(False)

    n_wrong = int(is_wrong.sum())
    axes = panel(0.572, tall[0], 0.083, tall[1], f"4. code\n{n_bits} bits")
    both = np.stack([code, target], axis=1)
    _show_bits(axes, both, np.stack([is_wrong, is_wrong & False], axis=1))
    axes.set_xticks([0, 1], ["code", "target"], fontsize=9)

    title = f"5. distances to {len(distances):,} codes"
    axes = panel(0.767, 0.57, 0.223, 0.31, title)
    numbers = np.arange(n_bits + 1)
    bottoms = np.zeros(n_bits + 1)
    kinds = {"same class": (is_same, COLORS[0]), "other class": (~is_same, "0.7")}
    for name, (chosen, color) in kinds.items():
        counts = np.bincount(distances[chosen], minlength=n_bits + 1)
        axes.bar(numbers, counts, 1, bottoms, color=color, label=name)
        bottoms += counts
    axes.set_xlim(-0.7, n_bits + 0.5)
    axes.set_xlabel("Hamming distance (bits)", fontsize=10)
    axes.tick_params(labelsize=9)
    axes.yaxis.set_major_locator(plt.MaxNLocator(3))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(fontsize=9, handlelength=1, borderaxespad=0)

    side = 0.245 / len(found)
    figure.text(0.8675, 0.34, f"6. the {len(found)} nearest", ha="center", size=10.5)
    for i, (other, distance) in enumerate(zip(found, found_distances, strict=True)):
        axes = figure.add_axes((0.745 + i * side, 0.2, side * 0.92, side * 2))
        show_image(axes, other, shape)
        axes.set_xlabel(f"{distance}", fontsize=10, labelpad=2)
    figure.text(0.8675, 0.1, "their distances (bits)", ha="center", size=9, color="0.35")

    arrow(0.181, "kernel")
    arrow(0.367, "weights")
    arrow(0.547, "sign")
    arrow(0.684, "search")
    mark = f"{CROSS} wrong bit: {n_wrong} of {n_bits}"
    figure.text(0.01, 0.03, mark, color=WRONG, fontsize=10, weight="bold")
    look = {"ncols": 2, "fontsize": 10, "handlelength": 1.4, "columnspacing": 1.2}
    place = {"loc": "lower left", "bbox_to_anchor": (0.19, -0.01)}
    figure.legend(handles=_bit_entries(), **place, **look)
    return figure


def images(
    pictures: np.ndarray,
    captions: Sequence[str],
    title: str,
    shape: tuple[int, int] = (28, 28),
) -> Figure:
    """Draw images in a row, each with its caption below."""
    n = len(pictures)
    figure, grid = plt.subplots(1, n, figsize=(WIDTH, WIDTH / n + 0.65), squeeze=False)
    figure.suptitle(title)
    for axes, picture, caption in zip(grid[0], pictures, captions, strict=True):
        show_image(axes, picture, shape)
        axes.set_xlabel(caption, fontsize=10)
    return figure


def decisions(
    points: np.ndarray,
    signs: np.ndarray,
    panels: Mapping[str, tuple[Callable, np.ndarray | None]],
    title: str,
) -> Figure:
    """Draw points of two classes, and where several functions are above and below 0.

    Parameters
    ----------
    points : (n, 2) array
    signs : (n,) array of -1 and 1
        The class of each point.
    panels : mapping from str to (function, anchors)
        A panel for each entry, with the name as its title. The function takes an (n, 2) array and
        returns n outputs. Anchors are an (m, 2) array, or None.
    title : str
    """
    n_rows = -(-len(panels) // 2)
    look = {"sharex": True, "sharey": True, "squeeze": False}
    figure, grid = plt.subplots(n_rows, 2, figsize=(WIDTH, 2.6 * n_rows + 0.9), **look)
    figure.suptitle(title)
    low = points.min(axis=0) - 0.2
    high = points.max(axis=0) + 0.2
    first, second = (np.linspace(low[i], high[i], 161) for i in (0, 1))
    plane = np.stack(np.meshgrid(first, second), axis=-1)  # (161, 161, 2)
    colors = [CLASS_COLORS[-1], CLASS_COLORS[1]]
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    places = grid.flat[: len(panels)]
    for axes, (name, (outputs, anchors)) in zip(places, panels.items(), strict=True):
        f = outputs(plane.reshape(-1, 2)).reshape(plane.shape[:2])
        # sign(0) is -1, so 0 belongs to the lower level.
        is_above = (f > 0).astype(float)
        levels = [-0.5, 0.5, 1.5]
        axes.contourf(first, second, is_above, levels, colors=colors, alpha=0.2)
        if np.ptp(is_above) > 0:
            axes.contour(first, second, is_above, [0.5], colors="black", linewidths=1.5)
        for sign, marker in ((-1, MARKERS[0]), (1, MARKERS[1])):
            x, y = points[signs == sign].T
            look = {"marker": marker, "color": CLASS_COLORS[sign], "linewidth": 0}
            axes.scatter(x, y, s=12, label=f"target {sign:+d}", **look)
        if anchors is not None:
            look = {"marker": "x", "color": "black", "linewidth": 1.2}
            axes.scatter(*anchors.T, s=28, label="anchor", **look)
        axes.set(title=name)
        axes.grid(False)
    for axes in grid[-1]:
        axes.set_xlabel("first feature")
    for axes in grid[:, 0]:
        axes.set_ylabel("second feature")
    border = Line2D([], [], color="black", linewidth=1.5, label="output 0")
    return legend(figure, border)
