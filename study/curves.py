"""Draw the curves of records: along the stream, over the ranks, and precision against recall.

`study.plots` hands them on, so notebooks need not know this module.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.statistics import mean_and_interval
from study.style import (
    GREY,
    Records,
    choose,
    few_ticks,
    grey_note,
    group,
    label_ends,
    name_of,
    named_styles,
    over_seeds,
    panels,
    score_name,
    styles_of,
)

__all__ = ["precision_at_k", "precision_at_k_difference", "precision_recall", "stream", "unseen"]

TOP_K_AXIS = "K (items retrieved)"


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
    axes: Axes, runs: list[dict], x: str, y: str, style: dict, band: bool
) -> tuple[float, str]:
    """Draw the mean of several runs, and its 95 % interval as a band. Return its end."""
    xs = _matrix(runs, x).mean(axis=0)
    points = [mean_and_interval(column) for column in _matrix(runs, y).T]
    means, lows, highs = np.transpose(points)
    every = -(-len(xs) // 6)
    axes.plot(xs, means, label=runs[0]["label"], markevery=every, **style)
    if band and len(runs) > 1:
        look = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        axes.fill_between(xs, lows, highs, **look)
    return means[-1], style["color"]


def _draw_curves(
    axes: Axes, runs: list[dict], x: str, y: str, styles: dict[str, dict], band: bool
) -> dict[str, tuple[float, str]]:
    """Draw a curve for each label, and return the ends of those that have a style."""
    ends = {}
    for label, of_label in group(runs, "label").items():
        is_named = label in styles
        end = _curve(axes, of_label, x, y, styles.get(label, GREY), band and is_named)
        if is_named:
            ends[label] = end
    return ends


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
    parts = group(chosen, "dataset" if unseen else "n_bits").values()
    # The best other method of each panel is named.
    styles = [named_styles(part, y) for part in parts]
    title += max(map(grey_note, parts, styles))
    figure, grid = panels(title, len(parts), xlabel, ylabel, sharey=True)
    ends = []
    for axes, part, named in zip(grid, parts, styles, strict=True):
        ends.append(_draw_curves(axes, part, x, y, named, band))
        axes.set_title(name_of(part[0], "\n") if unseen else f"{part[0]['n_bits']} bits")
        axes.set_xlim(0, max(run[x][-1] for run in part))
        few_ticks(axes, ends[-1])
    for axes, at in zip(grid, ends, strict=True):
        label_ends(axes, at)
    return figure


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


def precision_at_k_difference(records: Records, to: str = "HMOH") -> Figure:
    """Draw Precision@K minus that of one method, seed by seed, against K.

    The two methods that are highest are named, and the range of y shows them. The others are grey
    and may leave the panel.

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
    title += "own range of y in each panel; grey: the other methods, partly cut off"
    looks = styles_of(chosen)
    figure, grid = panels(title, len(parts), TOP_K_AXIS, f"difference from {to}")
    for axes, part in zip(grid, parts, strict=True):
        # Without a marker, because it is the unit and no measurement.
        axes.axhline(0, color=looks[to]["color"], zorder=4)
        means = {}
        for label, runs in group(part, "label").items():
            means[label] = _matrix(runs, "P@K").mean(axis=0)
        best = sorted(means, key=lambda label: means[label].mean())[-2:]
        named = {label: looks[label] for label in best}
        ends = _draw_curves(axes, part, "K", "P@K", named, band=True)
        shown = [0.0, *np.concatenate([means[label] for label in best])]
        room = 0.15 * np.ptp(shown) or 0.01
        axes.set(ylim=(min(shown) - room, max(shown) + room), title=f"{part[0]['n_bits']} bits")
        axes.set_xlim(0, max(run["K"][-1] for run in part))
        few_ticks(axes, [to, *ends])
        label_ends(axes, ends | {to: (0.0, looks[to]["color"])})
    return figure
