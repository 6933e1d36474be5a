"""Draw the curves of the paper's experiments: over the stream, over K, and over recall.

`study.plots` hands them on, so notebooks need not know this module.
"""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.style import (
    Records,
    choose,
    few_ticks,
    group,
    legend,
    mean_and_interval,
    name_of,
    over_seeds,
    panels,
    score_name,
    styles_of,
)

__all__ = [
    "precision_at_k",
    "precision_at_k_difference",
    "precision_recall",
    "stream",
    "unseen",
]

TOP_K_AXIS = "K (items retrieved)"


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
