"""Every figure, in one style: readable at notebook width, colours that colour-blind readers can tell apart."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["COLORS", "codebook", "neighbours", "stream_curves", "use_style"]

# Okabe and Ito's palette.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]


def use_style() -> None:
    """Set matplotlib up; call it once, at the top of a notebook."""
    plt.rcParams.update(
        {
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
    )


def stream_curves(samples: list[int], curves: dict[str, list[float]], title: str) -> Axes:
    """mAP against the samples seen, a line for each entry of ``curves``."""
    _, axes = plt.subplots()
    for name, values in curves.items():
        axes.plot(samples, values, marker="o", markersize=4, label=name)
    axes.set(title=title, xlabel="samples seen", ylabel="mAP", xlim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="lower right")
    return axes


def neighbours(
    queries: np.ndarray, found: np.ndarray, distances: np.ndarray, wrong: np.ndarray, title: str, shape=(28, 28)
) -> Figure:
    """Query images in the first column, their nearest items beside them; wrong ones are framed.

    Parameters
    ----------
    queries : (n, pixels), found : (n, k, pixels)
    distances : (n, k) integers
        Hamming distances, printed above the images.
    wrong : (n, k) bool
    """
    n, k = distances.shape
    figure, grid = plt.subplots(n, k + 1, figsize=(0.72 * (k + 1), 0.86 * n))
    for row in range(n):
        for column in range(k + 1):
            axes = grid[row, column]
            image = queries[row] if column == 0 else found[row, column - 1]
            axes.imshow(image.reshape(shape), cmap="gray_r")
            axes.set(xticks=[], yticks=[])
            framed = column > 0 and wrong[row, column - 1]
            for spine in axes.spines.values():
                spine.set(
                    visible=column == 0 or framed, color=COLORS[1] if framed else "black", linewidth=3 if framed else 1
                )
            axes.set_title("query" if column == 0 else f"{distances[row, column - 1]}", fontsize=8, pad=2)
    figure.suptitle(title)
    return figure


def codebook(targets: dict, title: str) -> Axes:
    """Target codes as an image, one row for each label: dark is +1, light is -1."""
    codes = np.stack(list(targets.values()))
    _, axes = plt.subplots(figsize=(7, 0.5 + 0.22 * len(codes)))
    axes.imshow(codes, cmap="Blues", vmin=-1.5, vmax=1, aspect="auto", interpolation="nearest")
    axes.set(title=title, xlabel="bit", ylabel="class", yticks=range(len(codes)), yticklabels=list(targets))
    axes.grid(False)
    return axes
