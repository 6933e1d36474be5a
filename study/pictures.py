"""Draw pictures that need no records: curves, dots, images, and target codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from study.statistics import mean_and_interval
from study.style import COLORS, MARKERS, WIDTH, label_ends, legend, panels, styled

__all__ = ["CROSS", "WRONG", "codebook", "dots", "hadamard", "neighbours", "stream_curves"]

WRONG = COLORS[1]
CROSS = "\N{MULTIPLICATION SIGN}"


@styled
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
    # Five labels of up to six digits have room side by side.
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    label_ends(axes, ends)
    return axes


@styled
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


@styled
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


@styled
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
