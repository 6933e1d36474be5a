"""Make the animations of the lesson `notebooks/01_method`.

An animation is returned as the bytes of a GIF file. It plays in Jupyter, on the static pages and
in a README, without a script. Equal arguments give equal bytes.

`study.plots` hands them on, so notebooks need not know this module.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from PIL import Image, ImageSequence

from study.pictures import BIT_COLORS, CLASS_COLORS, CROSS, WRONG, free_figure, show_image
from study.style import COLORS, MARKERS

__all__ = ["perceptron_player", "walking_code"]

# How long a frame of an animation is shown, and the last one.
FRAME_MILLISECONDS = 300
PAUSE_MILLISECONDS = 3000
N_COLORS = 64  # of an animation


def _counted(n: int, what: str) -> str:
    """Return a number and what it counts: "1 sample", "2,000 samples"."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def _animated(figure: Figure, draw: Callable[[int], None], n_frames: int) -> bytes:
    """Return a GIF that shows the figure after draw(0), draw(1), ... again and again.

    All frames have the same few colours, which makes the file a third as large.
    """
    # With a layout engine every frame would be drawn twice.
    figure.set_layout_engine("none")
    no_engine = plt.rc_context({"figure.constrained_layout.use": False})
    with tempfile.TemporaryDirectory() as folder, no_engine:
        path = Path(folder) / "animation.gif"
        writer = PillowWriter()
        with writer.saving(figure, path, figure.dpi):
            for frame in range(n_frames):
                draw(frame)
                writer.grab_frame()
        plt.close(figure)
        with Image.open(path) as file:
            frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(file)]
    # Colours are chosen from all frames together, as `tools.run_notebooks` does it for pictures.
    width, height = frames[0].size
    together = Image.new("RGB", (width, height * len(frames)))
    for i, frame in enumerate(frames):
        together.paste(frame, (0, i * height))
    octree = Image.Quantize.FASTOCTREE
    together = together.quantize(N_COLORS, octree, dither=Image.Dither.NONE)
    few = []
    for i in range(len(frames)):
        few.append(together.crop((0, i * height, width, (i + 1) * height)))
    milliseconds = [FRAME_MILLISECONDS] * (len(few) - 1) + [PAUSE_MILLISECONDS]
    file = io.BytesIO()
    options = {"duration": milliseconds, "loop": 0, "optimize": True}
    few[0].save(file, "GIF", save_all=True, append_images=few[1:], **options)
    return file.getvalue()


def perceptron_player(
    Z: np.ndarray,
    c: np.ndarray,
    states: np.ndarray,
    n_frames: int = 30,
) -> bytes:
    """Return a GIF of a perceptron in the plane, sample by sample.

    The first ``n_frames`` samples have a frame each. The last frame shows all samples.

    Parameters
    ----------
    Z : (n, 2) array
        The samples.
    c : (n,) array of -1 and 1
        Their targets.
    states : (n, 2) array
        The weights after each sample.
    """
    before = np.vstack([np.zeros(2), states[:-1]])
    is_wrong = (states != before).any(axis=1)
    figure = free_figure(5, 5.9, dpi=72)
    axes = figure.add_axes((0.13, 0.25, 0.84, 0.67))
    limit = 1.05 * np.abs(Z).max()
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axes.set(xlabel="first feature", ylabel="second feature")
    axes.grid(False)
    heading = axes.set_title("", fontsize=11)
    seen = {}
    for sign, marker in ((-1, MARKERS[0]), (1, MARKERS[1])):
        look = {"marker": marker, "color": CLASS_COLORS[sign], "linestyle": ""}
        (seen[sign],) = axes.plot([], [], markersize=5, label=f"target {sign:+d}", **look)
    look = {"marker": "o", "linestyle": "", "markersize": 15, "fillstyle": "none"}
    (ring,) = axes.plot([], [], markeredgewidth=2, **look)
    (old,) = axes.plot([], [], color="0.6", linestyle="--", label="line before")
    (line,) = axes.plot([], [], color="black", label="line")
    look = {"color": COLORS[2], "angles": "xy", "scale_units": "xy", "scale": 1}
    arrow = axes.quiver(0, 0, 1, 0, width=0.012, zorder=4, **look)
    entry = Patch(color=COLORS[2], label="direction of the weights")
    handles = [*axes.get_legend_handles_labels()[0], entry]
    figure.legend(handles=handles, loc="lower center", ncols=2)

    def ends(w: np.ndarray) -> tuple[list[float], list[float]]:
        """Return two far points of the line of all z with w . z = 0; none for w = 0."""
        if not w.any():
            return [], []
        x, y = 3 * limit * np.array([-w[1], w[0]]) / np.linalg.norm(w)
        return [-x, x], [-y, y]

    def draw(frame: int) -> None:
        last = frame if frame < n_frames else len(Z) - 1
        for sign, points in seen.items():
            points.set_data(*Z[: last + 1][c[: last + 1] == sign].T)
        old.set_data(*(ends(before[last]) if is_wrong[last] else ([], [])))
        line.set_data(*ends(states[last]))
        ring.set_data(*Z[[last]].T)
        ring.set_color(WRONG if is_wrong[last] else "0.5")
        word = "wrong, so the line turns" if is_wrong[last] else "right, nothing moves"
        n_mistakes = int(is_wrong[: last + 1].sum())
        mistakes = _counted(n_mistakes, "mistake")
        heading.set_text(f"sample {last + 1}: {word}\n{mistakes} so far")
        w = states[last]
        arrow.set_visible(bool(w.any()))
        arrow.set_UVC(*(w / max(np.linalg.norm(w), 1e-9)))

    return _animated(figure, draw, n_frames + 1)


def walking_code(
    image: np.ndarray,
    steps: Sequence[int],
    codes: np.ndarray,
    targets: Mapping[int, np.ndarray],
    label: int,
    shares: Sequence[float],
    title: str,
    shape: tuple[int, int] = (28, 28),
) -> bytes:
    """Return a GIF of the code of one image while the model learns from a stream.

    Parameters
    ----------
    image : (pixels,) array
    steps : sequence of int
        How many samples had passed; a frame for each.
    codes : (frames, r) array of -1 and 1
        The code of the image at these moments.
    targets : mapping from label to (r,) array
    label : int
        The label of the image.
    shares : sequence of float
        The share of right bits of many images at these moments.
    title : str
    shape : tuple of int
        Height and width of an image in pixels.
    """
    n_bits = codes.shape[1]
    labels = sorted(targets)
    table = np.stack([targets[other] for other in labels])  # (labels, r)
    apart = (codes[:, None] != table).sum(axis=2)  # (frames, labels)
    figure = free_figure(8, 4.3, dpi=72)
    figure.text(0.5, 0.945, title, ha="center", fontsize=12)
    show_image(figure.add_axes((0.02, 0.6, 0.15, 0.28)), image, shape)
    counter = figure.text(0.58, 0.85, "", ha="center", fontsize=12, weight="bold")

    strip = figure.add_axes((0.25, 0.6, 0.72, 0.2))
    strip.set(xlim=(-0.5, n_bits - 0.5), ylim=(1.6, -0.5), xticks=[])
    strip.set_yticks([0, 1.1], ["code", "target"])
    strip.grid(False)
    strip.spines[:].set_visible(False)
    strip.tick_params(length=0)
    cells = []
    crosses = []
    for i, bit in enumerate(targets[label]):
        for y, value in ((0, -1), (1.1, int(bit))):
            look = {"color": BIT_COLORS[value], "linewidth": 0}
            cell = strip.add_patch(Rectangle((i - 0.45, y - 0.45), 0.9, 0.9, **look))
            if y == 0:
                cells.append(cell)
        look = {"color": WRONG, "weight": "bold", "ha": "center", "fontsize": 14}
        crosses.append(strip.text(i, 0, CROSS, va="center_baseline", **look))

    left = figure.add_axes((0.09, 0.13, 0.36, 0.34))
    colors = [WRONG if other == label else "0.7" for other in labels]
    bars = left.bar(range(len(labels)), apart[0], color=colors)
    left.set_xticks(range(len(labels)), labels)
    own = labels.index(label)
    left.get_xticklabels()[own].set(color=WRONG, weight="bold")
    look = {"color": WRONG, "weight": "bold", "ha": "center", "va": "bottom"}
    height = left.text(own, 0, "", **look)
    left.set(ylim=(0, n_bits * 0.8), xlabel="class", ylabel="bits")
    left.set_title("distance to the target of each class", fontsize=11)
    right = figure.add_axes((0.58, 0.13, 0.39, 0.34))
    right.set_xscale("log")
    right.plot(steps, shares, color="0.8")
    (curve,) = right.plot([], [], color="black")
    (dot,) = right.plot([], [], color="black", marker="o")
    right.set(xlabel="samples passed", ylim=(0.45, 1))
    right.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    right.xaxis.set_major_formatter("{x:,.0f}")
    right.minorticks_off()
    heading = right.set_title("", fontsize=11)

    def draw(frame: int) -> None:
        is_wrong = codes[frame] != targets[label]
        for bit, wrong, cell, cross in zip(codes[frame], is_wrong, cells, crosses, strict=True):
            cell.set_color(BIT_COLORS[int(bit)])
            cross.set_visible(bool(wrong))
        for bar, distance in zip(bars, apart[frame], strict=True):
            bar.set_height(distance)
        n_wrong = int(apart[frame, own])
        height.set(text=str(n_wrong), y=n_wrong)
        curve.set_data(steps[: frame + 1], shares[: frame + 1])
        dot.set_data(steps[frame : frame + 1], shares[frame : frame + 1])
        samples = _counted(steps[frame], "sample")
        counter.set_text(f"after {samples}: {n_wrong} of {n_bits} bits wrong")
        heading.set_text(f"right bits of all held-out images: {shares[frame]:.0%}")

    return _animated(figure, draw, len(steps))
