"""Pictures that need no records, drawn on small made-up data with matplotlib's own defaults."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from study import pictures
from study.pictures import CROSS, WRONG
from study.statistics import interval

pytestmark = pytest.mark.usefixtures("matplotlib_defaults")


def test_a_codebook_shows_its_signs_with_the_first_row_at_the_top():
    codes = np.array([[-1, 0, 1, 1], [1, -1, 0, -1]])
    axes = pictures.codebook({"cat": codes[0], "dog": codes[1]}, "votes")
    assert (axes.collections[0].get_array() == codes).all()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["cat", "dog"]
    assert axes.get_ylim() == (1.5, -0.5)
    axes.figure.canvas.draw()
    shown = axes.figure.legends[0]
    assert [text.get_text() for text in shown.get_texts()] == ["-1", "0 (tie)", "+1"]
    cells = axes.collections[0].get_facecolors()[:3]
    assert [patch.get_facecolor() for patch in shown.get_patches()] == [tuple(c) for c in cells]


def test_neighbours_of_another_class_are_framed_and_crossed():
    images = np.arange(12).reshape(1, 3, 4)
    wrong = np.array([[False, True]])
    distances = np.array([[3, 5]])
    found = pictures.neighbours(images[:, 0], images[:, 1:], distances, wrong, "t", shape=(2, 2))
    (axes,) = found.axes
    assert [i.get_array().ravel().tolist() for i in axes.images] == images[0].tolist()
    frames = [to_hex(patch.get_edgecolor()).upper() for patch in axes.patches]
    assert frames == ["#000000", "#BFBFBF", WRONG]
    assert [text.get_text() for text in axes.texts][:3] == ["3", "5", CROSS]


def test_dots_are_means_with_their_intervals():
    times = np.array([[1.0, 3.0], [2.0, 5.0], [3.0, 4.0]])
    samples = {"left": {"a": ([10, 20], times)}, "right": {"a": ([10, 20], times + 1)}}
    figure = pictures.dots(samples, "t", "size", "seconds")
    left, right = figure.axes
    assert [left.get_title(), right.get_title()] == ["left", "right"] and not figure.legends
    (container,) = left.containers
    assert list(container.lines[0].get_ydata()) == [2.0, 4.0]
    bar = container.lines[2][0].get_segments()[0]
    assert bar[:, 1] == pytest.approx(interval([1, 2, 3]))
    both = {"one": {"a": ([10, 20], times), "b": ([10, 20], times)}}
    (names,) = pictures.dots(both, "t", "size", "seconds").legends
    assert [text.get_text() for text in names.get_texts()] == ["a", "b"]


def test_a_matrix_is_an_image_of_squares():
    axes = pictures.hadamard(np.array([[1, 1], [1, -1]]))
    assert axes.get_title() == "Hadamard matrix of order 2" and axes.get_aspect() == 1
    axes.figure.canvas.draw()  # warnings are errors here


def test_curves_along_a_stream_are_named_at_their_ends():
    axes = pictures.stream_curves([10, 20], {"a": [0.1, 0.2], "b": [0.3, 0.4]}, "t")
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.texts] == ["a", "b"]
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.1, 0.2], [0.3, 0.4]]
