"""Test the pictures and animations of the lesson 01_method on small made-up data."""

import io

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image, ImageSequence

from study import animations, pictures, plots
from study.pictures import CROSS, WRONG


@pytest.fixture(autouse=True)
def style():
    with plt.rc_context():
        plots.use_style()
        yield
    plt.close("all")


def texts(figure):
    """Return all texts that can be seen in a figure."""
    found = figure.findobj(matplotlib.text.Text)
    return [t.get_text() for t in found if t.get_text() and t.get_visible()]


def titled(figure, start):
    """Return the panel whose title begins with these words."""
    (axes,) = [a for a in figure.axes if a.get_title().startswith(start)]
    return axes


# ---- the whole method ----------------------------------------------------------------


@pytest.fixture
def drawn():
    """Return what a small pipeline got, and its figure."""
    rng = np.random.default_rng(0)
    given = {
        "image": rng.random(9),
        "values": rng.random(40),
        "outputs": np.array([2.0, -1.0, 0.5, -0.25, 0.0, 3.0]),
        "target": np.array([1, -1, -1, 1, -1, 1]),
        "distances": np.array([0, 1, 1, 4, 3]),
        "is_same": np.array([True, True, False, False, False]),
        "found": rng.random((2, 9)),
        "found_distances": np.array([0, 1]),
    }
    return given, plots.pipeline(**given, shape=(3, 3))


def test_pipeline_shows_the_image_and_its_kernel_values(drawn):
    given, figure = drawn
    shown = titled(figure, "1. image").images[0].get_array()
    assert shown.tolist() == given["image"].reshape(3, 3).tolist()
    cells = np.ma.getdata(titled(figure, "2. kernel values").images[0].get_array())
    assert cells.shape == (3, 15)  # 40 values fill two rows and a part of the third
    assert cells.ravel()[:40].tolist() == given["values"].tolist()
    assert np.isnan(cells.ravel()[40:]).all()


def test_pipeline_marks_the_bits_whose_output_has_the_wrong_sign(drawn):
    given, figure = drawn
    bars = titled(figure, "3. outputs").patches
    assert [bar.get_width() for bar in bars] == given["outputs"].tolist()
    wrong = [to_hex(bar.get_facecolor()).upper() == WRONG for bar in bars]
    # An output of 0 is the bit -1, which is right here.
    assert wrong == [False, False, True, True, False, False]

    axes = titled(figure, "4. code")
    crosses = [t.get_position() for t in axes.texts if t.get_text() == CROSS]
    assert crosses == [(0, 2), (0, 3)]
    code = {}
    for cell in axes.patches:
        x, y = cell.get_xy()
        code[round(x + 0.45), round(y + 0.45)] = to_hex(cell.get_facecolor())
    names = {color: bit for bit, color in pictures.BIT_COLORS.items()}
    assert [names[code[0, i]] for i in range(6)] == [1, -1, 1, -1, -1, 1]
    assert [names[code[1, i]] for i in range(6)] == given["target"].tolist()
    assert axes.get_ylim() == (5.5, -0.5)  # the first bit is at the top, as in the bars
    assert f"{CROSS} wrong bit: 2 of 6" in texts(figure)


def test_pipeline_counts_distances_and_shows_the_nearest(drawn):
    given, figure = drawn
    axes = titled(figure, "5. distances to 5 codes")
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(2, 7)
    assert heights.tolist() == [[1, 1, 0, 0, 0, 0, 0], [0, 1, 0, 1, 1, 0, 0]]
    bottoms = [bar.get_y() for bar in axes.patches[7:]]
    assert bottoms == heights[0].tolist()  # stacked, so that none is hidden
    nearest = [a for a in figure.axes if a.get_xlabel() in ("0", "1")]
    shown = [a.images[0].get_array().ravel().tolist() for a in nearest]
    assert shown == given["found"].tolist()


def test_nothing_overlaps_in_the_pipeline_of_the_notebook():
    figure = plots.pipeline(
        np.zeros(784),
        np.linspace(0, 1, 300),
        np.linspace(-1, 1, 32),
        np.ones(32, int),
        np.arange(33).repeat(3000),
        np.arange(99_000) < 9000,
        np.zeros((5, 784)),
        np.full(5, 32),
    )
    figure.canvas.draw()
    width, height = figure.bbox.size
    boxes = [("panel " + a.get_title(), a.get_tightbbox()) for a in figure.axes]
    boxes += [(t.get_text(), t.get_window_extent()) for t in figure.texts]
    boxes += [("legend", figure.legends[0].get_window_extent())]
    assert len(boxes) == 11 + 8 + 3 + 1  # panels, arrows and their names, other texts
    for i, (name, box) in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= width, name
        assert box.y0 >= 0 and box.y1 <= height, name
        touching = [other for other, place in boxes[:i] if box.overlaps(place)]
        assert touching == [], name


# ---- other pictures ------------------------------------------------------------------


def test_images_have_their_captions():
    pixels = np.arange(12).reshape(3, 4)
    figure = plots.images(pixels, ["a", "b", "c"], "three", shape=(2, 2))
    assert [a.get_xlabel() for a in figure.axes] == ["a", "b", "c"]
    shown = [a.images[0].get_array().ravel().tolist() for a in figure.axes]
    assert shown == pixels.tolist()
    assert "three" in texts(figure)


def test_decisions_are_drawn_where_the_output_is_zero():
    points = np.array([[-2.0, -1.0], [2.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    signs = np.array([-1, 1, 1, -1])
    anchors = np.array([[0.5, 0.5]])
    panels = {
        "first": (lambda p: p[:, 0], None),
        "second": (lambda p: p[:, 1], anchors),
    }
    figure = plots.decisions(points, signs, panels, "two")
    first, second = figure.axes
    for axes, name, feature in ((first, "first", 0), (second, "second", 1)):
        assert axes.get_title() == name
        filled, border, *_ = axes.collections
        (path,) = border.get_paths()
        # Half a cell of the grid, which has 161 points.
        assert np.abs(path.vertices[:, feature]).max() < 4.4 / 160
        colors = [to_hex(c).upper() for c in filled.get_facecolors()]
        assert colors == [pictures.CLASS_COLORS[-1], pictures.CLASS_COLORS[1]]
    negative, positive = first.collections[2:4]
    assert negative.get_offsets().tolist() == points[signs < 0].tolist()
    assert positive.get_offsets().tolist() == points[signs > 0].tolist()
    assert len(first.collections) == 4  # no anchors
    assert second.collections[4].get_offsets().tolist() == anchors.tolist()
    entries = [t.get_text() for t in figure.legends[0].get_texts()]
    assert entries == ["target -1", "target +1", "anchor", "output 0"]


def test_an_output_of_zero_is_the_side_of_minus_one():
    points = np.array([[-1.0, -1.0], [1.0, 1.0]])
    panels = {"nothing": (lambda p: np.zeros(len(p)), None)}
    figure = plots.decisions(points, np.array([-1, 1]), panels, "none")
    (axes,) = figure.axes
    below, above = axes.collections[0].get_paths()
    assert len(below.vertices) > 0
    assert len(above.vertices) == 0
    assert len(axes.collections) == 3  # no border


# ---- animations ----------------------------------------------------------------------


@pytest.fixture
def captured(monkeypatch):
    """Return a function that gives the figure, its draw function and the number of frames."""
    monkeypatch.setattr(animations, "_animated", lambda *arguments: arguments)
    return lambda make, *arguments, **options: make(*arguments, **options)


TARGETS = {3: np.array([1, 1, 1, 1]), 7: np.array([1, -1, 1, -1])}
WALK = {
    "image": np.zeros(4),
    "steps": [1, 10, 2000],
    "codes": np.array([[1, 1, 1, 1], [-1, -1, 1, 1], [1, -1, 1, -1]]),
    "targets": TARGETS,
    "label": 7,
    "shares": [0.5, 0.75, 0.9],
    "title": "walk",
    "shape": (2, 2),
}


def test_walking_code_shows_code_distances_and_share_at_each_moment(captured):
    figure, draw, n_frames = captured(plots.walking_code, **WALK)
    assert n_frames == 3
    left = titled(figure, "distance to the target")
    strip = figure.axes[1]
    crosses = [t for t in strip.texts if t.get_text() == CROSS]
    is_own = [to_hex(bar.get_facecolor()).upper() == WRONG for bar in left.patches]
    assert is_own == [False, True]
    assert [t.get_text() for t in left.get_xticklabels()] == ["3", "7"]
    expected = [
        ("after 1 sample: 2 of 4 bits wrong", [0, 2], [1, 3], "50%"),
        ("after 10 samples: 2 of 4 bits wrong", [2, 2], [0, 3], "75%"),
        ("after 2,000 samples: 0 of 4 bits wrong", [2, 0], [], "90%"),
    ]
    for frame, (counter, distances, wrong, share) in enumerate(expected):
        draw(frame)
        assert counter in texts(figure)
        assert [bar.get_height() for bar in left.patches] == distances
        assert [i for i, t in enumerate(crosses) if t.get_visible()] == wrong
        right = titled(figure, "right bits")
        assert right.get_title().endswith(share)
        behind, curve, dot = right.lines
        assert list(behind.get_xdata()) == WALK["steps"]
        assert list(curve.get_ydata()) == WALK["shares"][: frame + 1]
        assert list(dot.get_xdata()) == [WALK["steps"][frame]]
        # Cells of the code and of the target take turns.
        cells = [to_hex(cell.get_facecolor()) for cell in strip.patches]
        bits = pictures.BIT_COLORS
        assert cells[::2] == [bits[bit] for bit in WALK["codes"][frame].tolist()]
        assert cells[1::2] == [bits[bit] for bit in TARGETS[7].tolist()]


def test_perceptron_player_turns_its_line_at_mistakes_only(captured):
    Z = np.array([[-1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, -1.0]])
    c = np.array([-1, 1, 1, 1])
    states = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 2.0], [2.0, 1.0]])
    figure, draw, n_frames = captured(plots.perceptron_player, Z, c, states, n_frames=3)
    assert n_frames == 4
    (axes,) = figure.axes
    negative, positive, ring, old, line = axes.lines
    (arrow,) = [a for a in axes.collections if hasattr(a, "set_UVC")]
    expected = [
        ("sample 1: right, nothing moves\n0 mistakes so far", None, None),
        ("sample 2: wrong, so the line turns\n1 mistake so far", None, [0, 2]),
        ("sample 3: right, nothing moves\n1 mistake so far", None, [0, 2]),
        ("sample 4: wrong, so the line turns\n2 mistakes so far", [0, 2], [2, 1]),
    ]
    for frame, (title, before, now) in enumerate(expected):
        draw(frame)
        assert axes.get_title() == title
        for drawn, w in ((old, before), (line, now)):
            ends = drawn.get_xydata()
            assert len(ends) == (0 if w is None else 2)
            assert ends @ np.array(w or [0, 0]) == pytest.approx(0)
        assert arrow.get_visible() == (now is not None)
        if now:
            direction = np.array([arrow.U[0], arrow.V[0]])
            assert direction == pytest.approx(np.array(now) / np.linalg.norm(now))
        assert ring.get_xydata().tolist() == [Z[frame].tolist()]
        is_wrong = title.split()[2] == "wrong,"
        assert (to_hex(ring.get_color()).upper() == WRONG) == is_wrong
        assert len(negative.get_xdata()) == 1
        assert len(positive.get_xdata()) == frame


def test_the_last_frame_of_the_player_has_all_samples(captured):
    Z = np.random.default_rng(0).normal(size=(50, 2))
    c = np.where(Z[:, 0] > 0, 1, -1)
    states = np.tile([1.0, 0.0], (50, 1))
    figure, draw, n_frames = captured(plots.perceptron_player, Z, c, states, n_frames=5)
    draw(n_frames - 1)
    negative, positive, *_ = figure.axes[0].lines
    assert len(negative.get_xdata()) + len(positive.get_xdata()) == 50
    draw(0)
    assert len(negative.get_xdata()) + len(positive.get_xdata()) == 1


def test_an_animation_is_a_small_gif_that_repeats_and_rests_on_its_last_frame():
    raw = plots.walking_code(**WALK)
    assert raw == plots.walking_code(**WALK)
    assert len(raw) < 40_000
    assert plt.get_fignums() == []
    with Image.open(io.BytesIO(raw)) as file:
        assert file.format == "GIF" and file.info["loop"] == 0
        frames = []
        durations = []
        for frame in ImageSequence.Iterator(file):
            frames.append(np.asarray(frame.convert("RGB")).astype(int))
            durations.append(frame.info["duration"])
    assert len(frames) == 3
    assert durations == [300, 300, 3000]
    # Few colours, but those that mean something are kept.
    for color in (WRONG, pictures.BIT_COLORS[1], pictures.BIT_COLORS[-1]):
        exact = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(frames[0] - exact).max(axis=2).min() <= 8, color
    # The bar of the own class is gone at the end, and so are the crosses.
    orange = [int(WRONG[i : i + 2], 16) for i in (1, 3, 5)]
    counts = [(np.abs(f - orange).max(axis=2) <= 8).sum() for f in frames]
    assert counts[0] > 10 * counts[2]
