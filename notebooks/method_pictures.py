"""Draw the pictures and animations of the lesson 01_method.

An animation is returned as the bytes of a GIF file. It plays in Jupyter, on the static pages and
in a README, without a script. Equal arguments give equal bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from PIL import Image

from study.pictures import CROSS, WRONG
from study.style import COLORS, MARKERS, WIDTH, legend, styled

__all__ = ["decisions", "images", "perceptron_player", "pipeline", "toy_2d", "walking_code"]

# The colours of the bits -1 and +1, and of the classes.
BIT_COLORS = {-1: "#d0e1f2", 1: "#08306b"}
CLASS_COLORS = {-1: COLORS[0], 1: COLORS[4]}
# How long a frame of an animation is shown, and the last one.
FRAME_MILLISECONDS = 300
PAUSE_MILLISECONDS = 3000
N_COLORS = 64  # of an animation


# ---- parts of pictures ---------------------------------------------------------------


def _free_figure(width: float, height: float, dpi: float | None = None) -> Figure:
    """Return a figure whose panels stay where they are put.

    With no layout engine at all, savefig would take that of the style.
    """
    figure = plt.figure(figsize=(width, height), dpi=dpi)
    engine = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=False)
    figure.set_layout_engine(engine)
    return figure


def _show_image(axes: Axes, image: np.ndarray, shape: tuple[int, int]) -> None:
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


@styled
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
    figure = _free_figure(10, 4.6)

    def panel(x: float, y: float, width: float, height: float, title: str) -> Axes:
        axes = figure.add_axes((x, y, width, height))
        axes.set_title(title, fontsize=10.5)
        return axes

    def arrow(x: float, text: str) -> None:
        figure.text(x, 0.5, "\N{RIGHTWARDS ARROW}", ha="center", va="center", size=20)
        figure.text(x, 0.56, text, ha="center", fontsize=9, color="0.35")

    axes = panel(0.01, 0.36, 0.142, 0.29, f"1. image\n{len(image)} pixels")
    _show_image(axes, image, shape)

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
        _show_image(axes, other, shape)
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


@styled
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
        _show_image(axes, picture, shape)
        axes.set_xlabel(caption, fontsize=10)
    return figure


@styled
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


@styled
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


# ---- animations ----------------------------------------------------------------------


def _counted(n: int, what: str) -> str:
    """Return a number and what it counts: "1 sample", "2,000 samples"."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def _animated(figure: Figure, draw: Callable[[int], None], n_frames: int) -> bytes:
    """Return a GIF that shows the figure after draw(0), draw(1), ... again and again.

    All frames have the same few colours, which makes the file a third as large.
    """
    # With a layout engine every frame would be drawn twice.
    figure.set_layout_engine("none")
    canvas = FigureCanvasAgg(figure)
    frames = []
    for frame in range(n_frames):
        draw(frame)
        canvas.draw()
        frames.append(np.array(canvas.buffer_rgba())[..., :3])
    plt.close(figure)
    # Colours are chosen from all frames together, as `tools.run_notebooks` does it for pictures.
    octree = Image.Quantize.FASTOCTREE
    together = Image.fromarray(np.concatenate(frames))
    together = together.quantize(N_COLORS, octree, dither=Image.Dither.NONE)
    height, width = frames[0].shape[:2]
    few = []
    for i in range(n_frames):
        few.append(together.crop((0, i * height, width, (i + 1) * height)))
    milliseconds = [FRAME_MILLISECONDS] * (n_frames - 1) + [PAUSE_MILLISECONDS]
    file = io.BytesIO()
    options = {"duration": milliseconds, "loop": 0, "optimize": True}
    few[0].save(file, "GIF", save_all=True, append_images=few[1:], **options)
    return file.getvalue()


@styled
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
    figure = _free_figure(5, 5.9, dpi=72)
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


@styled
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
    figure = _free_figure(8, 4.3, dpi=72)
    figure.text(0.5, 0.945, title, ha="center", fontsize=12)
    _show_image(figure.add_axes((0.02, 0.6, 0.15, 0.28)), image, shape)
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
