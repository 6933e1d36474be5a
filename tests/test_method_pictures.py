"""Pictures and animations of the lesson, drawn on small data with matplotlib's own defaults."""

import io

import matplotlib.pyplot as plt
import method_pictures
import numpy as np
import pytest
from matplotlib.colors import to_hex
from method_pictures import BIT_COLORS
from PIL import Image, ImageSequence

from study.pictures import CROSS, WRONG

pytestmark = pytest.mark.usefixtures("matplotlib_defaults")


def color(artist):
    return to_hex(artist.get_facecolor()).upper()


def titled(figure, start):
    """Return the panel whose title begins with these words."""
    (axes,) = [a for a in figure.axes if a.get_title().startswith(start)]
    return axes


# ---- pictures ------------------------------------------------------------------------


def test_lines_of_a_toy_are_at_right_angles_to_the_weights():
    points = np.array([[1.0, 1.0], [2.0, 1.0], [-1.0, -1.0]])
    weights = np.array([[1.0, 0.0], [3.0, 4.0]])
    axes = method_pictures.toy_2d(points, np.array([1, 1, -1]), weights, ["last", "average"])
    for line, w in zip(axes.lines, weights, strict=True):
        first, second = (np.array(p) for p in (line.get_xy1(), line.get_xy2()))
        assert w @ first == pytest.approx(0) and w @ (second - first) == pytest.approx(0)


def test_the_pipeline_marks_the_bits_whose_output_has_the_wrong_sign():
    outputs = np.array([2.0, -1.0, 0.5, -0.25, 0.0, 3.0])
    target = np.array([1, -1, -1, 1, -1, 1])
    is_same = np.array([True, True, False, False, False])
    image = np.zeros(9)
    distances = np.array([0, 1, 1, 4, 3])
    found = (np.zeros((2, 9)), np.array([0, 1]))
    figure = method_pictures.pipeline(
        image, np.zeros(40), outputs, target, distances, is_same, *found, shape=(3, 3)
    )
    bars = titled(figure, "3. outputs").patches
    # An output of 0 is the bit -1, which is right here.
    assert [color(bar) == WRONG for bar in bars] == [False, False, True, True, False, False]
    axes = titled(figure, "4. code")
    assert [t.get_position() for t in axes.texts if t.get_text() == CROSS] == [(0, 2), (0, 3)]
    heights = [bar.get_height() for bar in titled(figure, "5. distances").patches]
    assert heights == [1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0]


def test_nothing_overlaps_in_the_pipeline_of_the_notebook():
    figure = method_pictures.pipeline(
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
    boxes = [("panel " + a.get_title(), a.get_tightbbox()) for a in figure.axes]
    boxes += [(t.get_text(), t.get_window_extent()) for t in figure.texts]
    boxes += [("legend", figure.legends[0].get_window_extent())]
    for i, (name, box) in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width, name
        assert box.y0 >= 0 and box.y1 <= figure.bbox.height, name
        assert [other for other, place in boxes[:i] if box.overlaps(place)] == [], name


def test_decisions_are_drawn_where_the_output_is_zero():
    points = np.array([[-2.0, -1.0], [2.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    panels = {
        "first": (lambda p: p[:, 0], None),
        "second": (lambda p: p[:, 1], points[:1]),
        "nothing": (lambda p: np.zeros(len(p)), None),
    }
    figure = method_pictures.decisions(points, np.array([-1, 1, 1, -1]), panels, "three")
    *drawn, nothing = figure.axes
    for feature, axes in enumerate(drawn):
        (path,) = axes.collections[1].get_paths()
        # Half a cell of the grid, which has 161 points.
        assert np.abs(path.vertices[:, feature]).max() < 4.4 / 160
    # sign(0) is -1 everywhere, so there is no border.
    below, above = nothing.collections[0].get_paths()
    assert len(below.vertices) > 0 and len(above.vertices) == 0


def test_images_have_their_captions():
    figure = method_pictures.images(np.zeros((2, 4)), ["a", "b"], "t", shape=(2, 2))
    figure.canvas.draw()  # warnings are errors here
    assert [axes.get_xlabel() for axes in figure.axes] == ["a", "b"]


# ---- animations ----------------------------------------------------------------------


@pytest.fixture
def captured(monkeypatch):
    """Let animations return the figure, its draw function and the number of frames."""
    monkeypatch.setattr(method_pictures, "_animated", lambda *arguments: arguments)


WALK = {
    "image": np.zeros(4),
    "steps": [1, 10, 2000],
    "codes": np.array([[1, 1, 1, 1], [-1, -1, 1, 1], [1, -1, 1, -1]]),
    "targets": {3: np.array([1, 1, 1, 1]), 7: np.array([1, -1, 1, -1])},
    "label": 7,
    "shares": [0.5, 0.75, 0.9],
    "title": "walk",
    "shape": (2, 2),
}


def test_a_walking_code_shows_bits_and_distances_at_each_moment(captured):
    figure, draw, n_frames = method_pictures.walking_code(**WALK)
    left = titled(figure, "distance to the target")
    strip = figure.axes[1]
    crosses = [t for t in strip.texts if t.get_text() == CROSS]
    assert [color(bar) == WRONG for bar in left.patches] == [False, True]
    expected = [([0, 2], [1, 3]), ([2, 2], [0, 3]), ([2, 0], [])]
    assert n_frames == len(expected)
    for frame, (distances, wrong) in enumerate(expected):
        draw(frame)
        assert [bar.get_height() for bar in left.patches] == distances
        assert [i for i, t in enumerate(crosses) if t.get_visible()] == wrong
        # Cells of the code and of the target take turns.
        cells = [to_hex(cell.get_facecolor()) for cell in strip.patches[::2]]
        assert cells == [BIT_COLORS[bit] for bit in WALK["codes"][frame].tolist()]


def test_a_perceptron_turns_its_line_at_mistakes_only(captured):
    Z = np.array([[-1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, -1.0]])
    c = np.array([-1, 1, 1, 1])
    states = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 2.0], [2.0, 1.0]])
    figure, draw, n_frames = method_pictures.perceptron_player(Z, c, states, n_frames=3)
    assert n_frames == 4
    (axes,) = figure.axes
    negative, positive, ring, old, line = axes.lines
    # The weights before a mistake, and now.
    expected = [(None, None), (None, [0, 2]), (None, [0, 2]), ([0, 2], [2, 1])]
    for frame, (before, now) in enumerate(expected):
        draw(frame)
        for drawn, w in ((old, before), (line, now)):
            ends = drawn.get_xydata()
            assert len(ends) == (0 if w is None else 2)
            assert ends @ np.array(w or [0, 0]) == pytest.approx(0)
        assert ring.get_xydata().tolist() == [Z[frame].tolist()]
        assert len(negative.get_xdata()) == 1 and len(positive.get_xdata()) == frame


def test_an_animation_is_a_small_gif_that_repeats_and_rests_on_its_last_frame():
    raw = method_pictures.walking_code(**WALK)
    assert raw == method_pictures.walking_code(**WALK)
    assert len(raw) < 40_000
    assert plt.get_fignums() == []
    with Image.open(io.BytesIO(raw)) as file:
        assert file.format == "GIF" and file.info["loop"] == 0
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(file)]
    assert durations == [300, 300, 3000]
