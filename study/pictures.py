"""Draw pictures that need no records: images, target codes, distributions, and toy examples.

`study.plots` hands them on, so notebooks need not know this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from study.style import COLORS, MARKERS, legend

__all__ = [
    "CROSS",
    "WRONG",
    "codebook",
    "distributions",
    "hadamard",
    "neighbours",
    "stream_curves",
    "toy_2d",
]

WRONG = COLORS[1]
CROSS = "\N{MULTIPLICATION SIGN}"


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
    legend(figure)
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
    figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
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
    legend(figure, n_columns=2)
    return axes
