"""Test study/plots.py on made-up records.

Every figure is complete, names stand-in data, and draws a method in the same colour.
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from baselines import METHODS
from study import plots, protocol
from study.protocol import headline

SETS = {
    "mnist": "mnist",
    "cifar10_efficientnet": "cifar10",
    "udhr205": "places205",
    "reuters10": "nuswide",
}
FEW = ["LSH", "HCOH", "HMOH"]


def record(method="HMOH", dataset="mnist", n_bits=32, seed=0, **changes) -> dict:
    """What protocol.run returns, with numbers that tell methods, lengths and seeds apart."""
    role = SETS[dataset]
    value = 0.1 + 0.07 * list(METHODS).index(method) - 1 / n_bits + 0.01 * seed
    # HCOH cannot encode at the first checkpoint.
    first = None if method == "HCOH" else value / 2
    return {
        "method": method,
        "label": method,
        "dataset": dataset,
        "role": role,
        "stand_in_for": None if dataset == role else role,
        "n_bits": n_bits,
        "seed": seed,
        "split": "paper",
        "params": {},
        "settings": {"n_bits": n_bits, "ensemble": True},
        "n_stream": 300,
        "n_queries": 100,
        "mAP": value,
        "mAP@1000": value + 0.05,
        "P@H2": value / 2,
        "mAP int8": value if n_bits < 200 else value / 2,
        "AUC mAP": value / 3,
        "AUC P@K": value / 4,
        "AUC PR": value / 5,
        "train_seconds": 0.1 + value,
        "K": [1, 5, 10],
        "P@K": [value, value - 0.01, value - 0.02],
        "recall": list(np.linspace(0, 1, n_bits + 1) ** (1 + seed)),
        "precision": [value] * (n_bits + 1),
        "samples": [100, 200, 300],
        "stream": [first, value * 0.8, value],
    } | changes


def grid(
    methods=FEW, datasets=("mnist",), bits=(8, 32), seeds=(0, 1), **changes
) -> list[dict]:
    return [
        record(m, d, b, s, **changes)
        for m in methods
        for d in datasets
        for b in bits
        for s in seeds
    ]


def swept() -> list[dict]:
    """Runs with 100 and with 300 anchors, whose labels do not contain the numbers."""
    few = grid(
        ["HMOH"], SETS, [32], label="few", settings={"feature_map__n_anchors": 100}
    )
    many = grid(
        ["HMOH"], SETS, [32], label="many", settings={"feature_map__n_anchors": 300}
    )
    return few + many


FIGURES = {
    "stream": lambda sets=("mnist",): plots.stream(grid(METHODS, sets)),
    "precision_at_k": lambda sets=("mnist",): plots.precision_at_k(grid(METHODS, sets)),
    "precision_recall": lambda sets=("mnist",): plots.precision_recall(
        grid(METHODS, sets)
    ),
    "by_bits": lambda sets=("mnist",): plots.by_bits(grid(METHODS, sets), "P@H2"),
    "query_variation": lambda sets=("mnist",): plots.query_variation(
        [r for n in (100, 500) for r in grid(METHODS, sets, [32], n_queries=n)],
        n_classes=10,
    ),
    "unseen": lambda sets=SETS: plots.unseen(grid(METHODS, sets, [64], split="unseen")),
    "longer_codes": lambda sets=SETS: plots.longer_codes(
        grid(METHODS, sets, [8, 128, 256])
    ),
    "training_time": lambda sets=SETS: plots.training_time(grid(METHODS, sets, [32])),
    "ensemble": lambda sets=SETS: plots.ensemble(
        grid(["HMOH"], sets) + grid(["HMOH"], sets, settings={"ensemble": False})
    ),
    "sweep": lambda sets=SETS: plots.sweep(
        [r for r in swept() if r["dataset"] in sets],
        "feature_map__n_anchors",
        "kernel size (anchors)",
        seconds=True,
    ),
}
OF_METHODS = [
    "stream",
    "precision_at_k",
    "precision_recall",
    "by_bits",
    "query_variation",
    "unseen",
    "longer_codes",
]


@pytest.fixture(autouse=True)
def close_figures():
    with matplotlib.rc_context():
        plots.use_style()
        yield
    plt.close("all")


def texts(figure) -> str:
    """All titles, and the legend."""
    parts = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    return "\n".join(
        parts
        + [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    )


def legend(figure) -> list[str]:
    (only,) = figure.legends
    return [text.get_text() for text in only.get_texts()]


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_labelled_and_nothing_overlaps(name):
    figure = FIGURES[name]()
    figure.canvas.draw()  # warnings are errors here
    assert plt.get_fignums() == [figure.number]
    assert figure.get_suptitle() and figure.axes
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes += [legend.get_window_extent() for legend in figure.legends] + [
        figure._suptitle.get_window_extent()
    ]
    for i, box in enumerate(boxes):
        assert (
            box.x0 >= -1
            and box.y0 >= -1
            and box.x1 <= figure.bbox.width + 1
            and box.y1 <= figure.bbox.height + 1
        )
        for other in boxes[:i]:
            shared = np.minimum(box.max, other.max) - np.maximum(box.min, other.min)
            assert (shared < 1).any()
    assert all(axes.get_xlabel() and axes.has_data() for axes in figure.axes)
    assert figure.axes[0].get_ylabel()


@pytest.mark.parametrize("name", OF_METHODS)
def test_a_method_looks_the_same_in_every_figure(name):
    figure = FIGURES[name]()
    assert legend(figure)[: len(METHODS)] == list(plots.METHOD_STYLE)
    for axes in figure.axes:
        found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        for method, style in plots.METHOD_STYLE.items():
            line = getattr(found[method], "lines", [found[method]])[
                0
            ]  # errorbar: a container
            assert (to_hex(line.get_color()).upper(), line.get_marker()) == (
                style["color"],
                style["marker"],
            )
            assert (line.get_linestyle() == "--") == (method == "LSH")
            assert method == "HMOH" or line.get_zorder() < 4  # HMOH is on top


def test_styles_cover_the_methods_and_differ():
    assert set(plots.METHOD_STYLE) == set(METHODS)
    for key in ("color", "marker"):
        assert len({style[key] for style in plots.METHOD_STYLE.values()}) == len(
            METHODS
        )
    styles = plots._styles(["OSH", "OSH as published", "spread", "HMOH"])
    assert len({style["color"] for style in styles.values()}) == 4


@pytest.mark.parametrize("name", FIGURES)
def test_stand_ins_are_named(name):
    shown = texts(FIGURES[name](["udhr205"]))
    assert "udhr205" in shown and "(STAND-IN for Places205)" in shown
    assert "STAND-IN" not in texts(FIGURES[name](["mnist"])) and "MNIST" in texts(
        FIGURES[name](["mnist"])
    )


def test_curves_are_means_over_seeds_with_their_range():
    figure = plots.stream(grid(["HMOH"], bits=[8], seeds=[0, 1, 2]))
    (axes,) = figure.axes
    runs = np.array(
        [record("HMOH", n_bits=8, seed=s)["stream"] for s in range(3)], dtype=float
    )
    np.testing.assert_allclose(axes.lines[0].get_ydata(), runs.mean(axis=0))
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == runs.min() and band[:, 1].max() == runs.max()
    assert "mean of 3 seeds" in figure.get_suptitle()
    assert "1 seed" in plots.stream(grid(["HMOH"], bits=[8], seeds=[0])).get_suptitle()
    waiting = plots.stream(grid(["HCOH"], bits=[8])).axes[0].lines[0].get_ydata()
    assert np.isnan(waiting[0]) and np.isfinite(waiting[1:]).all()
    assert (
        not plots.precision_recall(grid(["HMOH"])).axes[0].collections
    )  # recall differs, a band would mislead


@pytest.mark.parametrize("dataset", SETS)
def test_the_headline_metric_is_the_default(dataset):
    metric, records = (
        headline(SETS[dataset]),
        grid(["HMOH"], [dataset], bits=[8, 16, 64]),
    )
    axes = plots.by_bits(records).axes[0]
    means = [
        np.mean([r[metric] for r in records if r["n_bits"] == b]) for b in (8, 16, 64)
    ]
    np.testing.assert_allclose(axes.lines[0].get_ydata(orig=False), means)
    assert axes.get_ylabel() == metric and [
        t.get_text() for t in axes.get_xticklabels()
    ] == ["8", "16", "64"]
    bars = axes.containers[0].lines[2][0].get_segments()
    spread = np.std([r[metric] for r in records if r["n_bits"] == 8], ddof=1)
    assert np.ptp(bars[0][:, 1]) == pytest.approx(2 * spread)


def test_the_papers_values_only_beside_the_papers_data():
    paper = {
        "HMOH": {"8": 0.743, "32": 0.847, "512": 0.5},
        "OKH": {"8": 0.1},
    }  # neither 512 bits nor OKH was run
    axes = plots.by_bits(grid(), "mAP", paper).axes[0]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xydata().tolist() for line in hollow] == [
        [[0, 0.743]],
        [[1, 0.847]],
    ]
    assert "open: the paper's" in legend(axes.figure)
    with pytest.raises(
        ValueError,
        match=r"STAND-IN for Places205\) is not the paper's data.*leave out `paper`",
    ):
        plots.by_bits(grid(datasets=["udhr205"]), "mAP", paper)


def test_longer_codes_shows_both_evaluations():
    axes = plots.longer_codes(grid(["HMOH"], bits=[128, 256], seeds=[0])).axes[0]
    right, saturated = (container.lines[0] for container in axes.containers)
    assert (right.get_linestyle(), saturated.get_linestyle()) == ("-", ":")
    assert (
        right.get_ydata()[0] == saturated.get_ydata()[0]
        and right.get_ydata()[1] > saturated.get_ydata()[1]
    )


def test_sweep_reads_the_setting():
    figure = plots.sweep(swept(), "feature_map__n_anchors", "m (anchors)", seconds=True)
    assert [list(axes.lines[0].get_xdata()) for axes in figure.axes] == [[100, 300]] * 2
    assert figure.axes[0].get_ylabel() == "mAP (udhr205: mAP@1000)"
    assert figure.axes[1].get_ylabel() == "training time (seconds)"
    records = [
        record(settings={"batch_size": n, "memory": None}, label="m 300")
        for n in (50, 1, 2)
    ]
    axes = plots.sweep(records, "batch_size", "samples", log=True).axes[0]
    assert list(axes.lines[0].get_xdata()) == [1, 2, 50]
    assert axes.get_xscale() == "log"
    for missing in ("feature_map__divisor", "memory"):
        message = f"'m 300' has no number as setting '{missing}'; "
        message += "its settings are batch_size, memory"
        with pytest.raises(ValueError, match=message):
            plots.sweep(records, missing, "x")


def test_sweep_and_ensemble_understand_records_of_the_protocol():
    model = METHODS["HMOH"]("mnist", 32, 0)
    settings = protocol.plain_values(model.get_params())
    records = [
        record(settings=settings | {"ensemble": ensemble}) for ensemble in (True, False)
    ]
    for name in (
        "feature_map__n_anchors",
        "feature_map__divisor",
        "batch_size",
        "learning_rate",
    ):
        axes = plots.sweep(records, name, name).axes[0]
        assert list(axes.lines[0].get_xdata()) == [model.get_params()[name]]
    assert legend(plots.ensemble(records)) == ["average of all states", "last state"]


def test_ensemble_tells_the_two_apart():
    last = [record(settings={"ensemble": False}, mAP=0.1)]
    figure = plots.ensemble([record(mAP=0.3), *last])
    values = [
        container.lines[0].get_ydata()[0] for container in figure.axes[0].containers
    ]
    assert dict(zip(legend(figure), values, strict=True)) == {
        "average of all states": 0.3,
        "last state": 0.1,
    }
    with pytest.raises(
        ValueError,
        match="'LSH' has no number as setting 'ensemble'; its settings are n_bits",
    ):
        plots.ensemble([record("LSH", settings={"n_bits": 32})])


def test_training_time_is_compared_with_hmoh():
    axes = plots.training_time(
        [record("HCOH", train_seconds=143), record("HMOH", train_seconds=0.00478)]
    ).axes[0]
    assert [text.get_text().strip() for text in axes.texts] == [
        "140 s, 29,916.3 x HMOH",
        "0.0048 s, 1.0 x HMOH",
    ]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "HCOH",
        "HMOH",
    ] and axes.get_xscale() == "log"
    with pytest.raises(ValueError, match="No HMOH on mnist"):
        plots.training_time([record("HCOH")])


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "sweep"])
def test_no_records_is_an_error(name):
    with pytest.raises(
        ValueError,
        match=r"No record has '.*', but the figure needs it; pass records of protocol",
    ):
        getattr(plots, name)([])
    with pytest.raises(ValueError, match="No record"):
        plots.sweep([], "x", "x")


def test_mixtures_and_missing_curves_are_errors():
    with pytest.raises(
        ValueError, match=r"dataset \['mnist', 'udhr205'\].*r\['dataset'\] == 'mnist'\]"
    ):
        plots.by_bits(grid(datasets=["mnist", "udhr205"]))
    with pytest.raises(ValueError, match="split"):
        plots.stream([record(), record(split="unseen")])
    with pytest.raises(ValueError, match="n_bits"):
        plots.training_time(grid())
    with pytest.raises(ValueError, match=r"'stream'.*checkpoints=True"):
        plots.stream(
            [{key: value for key, value in record().items() if key != "stream"}]
        )
    with pytest.raises(ValueError, match="HMOH differ in length"):
        plots.stream([record(), record(seed=1, samples=[300], stream=[0.5])])


def test_hadamard_and_codebook_are_images_of_the_signs():
    matrix = np.array([[1, 1], [1, -1]])
    axes = plots.hadamard(matrix)
    assert (axes.collections[0].get_array() == matrix).all()
    assert "order 2" in axes.get_title()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("column", "row")
    axes = plots.codebook({"cat": matrix[0], "dog": matrix[1]}, "targets")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["cat", "dog"]
    # The first row is at the top.
    assert axes.get_ylim() == (1.5, -0.5)
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        "targets",
        "bit",
        "class",
    )


def test_the_legend_of_a_codebook_shows_the_colours_of_its_cells():
    codes = np.array([[-1, 0, 1, 1], [1, -1, 0, -1]])
    axes = plots.codebook(dict(enumerate(codes)), "votes")
    axes.figure.canvas.draw()
    colors = axes.collections[0].get_facecolors()
    patches = axes.figure.legends[0].get_patches()
    assert legend(axes.figure) == ["-1", "0 (tie)", "+1"]
    assert [patch.get_facecolor() for patch in patches] == [
        tuple(color) for color in colors[:3]
    ]
    assert legend(plots.hadamard(np.array([[1, 1], [1, -1]])).figure) == ["-1", "+1"]


def test_large_codebooks_have_neither_names_nor_lines_between_cells():
    axes = plots.codebook(dict(enumerate(np.ones((33, 8)))), "many")
    assert not axes.get_yticklabels()
    assert axes.collections[0].get_linewidth() == [0]


def test_distributions_shows_shares_and_formulas():
    axes = plots.distributions(
        np.array([0, 1, 1, 2]),
        {"B(2, 1/2)": ([0, 1, 2], [0.25, 0.5, 0.25])},
        "t",
        "successes",
    )
    assert [bar.get_height() for bar in axes.patches] == [0.25, 0.5, 0.25]
    assert list(axes.lines[0].get_ydata()) == [0.25, 0.5, 0.25]
    assert set(legend(axes.figure)) == {"4 simulated", "B(2, 1/2)"}
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        "t",
        "successes",
        "probability",
    )


def test_toy_2d_draws_lines_at_right_angles_to_the_weights():
    points, labels = (
        np.array([[1.0, 1.0], [2.0, 1.0], [-1.0, -1.0]]),
        np.array([1, 1, -1]),
    )
    weights = np.array([[1.0, 0.0], [3.0, 4.0]])
    axes = plots.toy_2d(
        points,
        labels,
        weights,
        ["after sample 230, the last mistake", "average"],
        "toy",
    )
    axes.figure.canvas.draw()
    for line, w in zip(axes.lines, weights, strict=True):
        first, second = (np.array(p) for p in (line.get_xy1(), line.get_xy2()))
        assert w @ first == pytest.approx(0) and w @ (second - first) == pytest.approx(
            0
        )
    assert legend(axes.figure) == [
        "class -1",
        "class 1",
        "after sample 230, the last mistake",
        "average",
    ]
    box = axes.figure.legends[0].get_window_extent()
    assert (
        box.x0 >= 0
        and box.x1 <= axes.figure.bbox.width
        and box.y1 <= axes.get_tightbbox().y0 + 1
    )
    assert axes.get_title() == "toy" and axes.get_xlabel() and axes.get_ylabel()


def test_stream_curves_and_neighbours_of_the_quickstart():
    axes = plots.stream_curves(
        [100, 200], {"8 bits": [0.1, 0.2], "32 bits": [0.3, 0.4]}, "MNIST"
    )
    assert legend(axes.figure) == ["8 bits", "32 bits"] and (
        axes.get_title(),
        axes.get_ylabel(),
    ) == ("MNIST", "mAP")
    wrong = np.array([[False, True]])
    images = np.arange(12).reshape(1, 3, 4)
    figure = plots.neighbours(
        images[:, 0], images[:, 1:], np.array([[3, 5]]), wrong, "found", shape=(2, 2)
    )
    (axes,) = figure.axes
    assert axes.get_title() == "found"
    shown = [image.get_array().ravel().tolist() for image in axes.images]
    assert shown == images[0].tolist()
    lefts = [image.get_extent()[0] for image in axes.images]
    assert lefts[1] - lefts[0] > lefts[2] - lefts[1]  # a gap behind the query
    frames = [to_hex(patch.get_edgecolor()).upper() for patch in axes.patches]
    assert frames == ["#000000", "#BFBFBF", plots.COLORS[1]]
    written = [text.get_text() for text in axes.texts]
    # One cross beside the wrong neighbour, one in the explanation.
    assert written[:3] == ["3", "5", plots.CROSS]
    assert written[-1] == f"{plots.CROSS} wrong class"


def test_the_neighbours_fit_the_width_of_a_readme():
    distances = np.full((10, 10), 32)
    wrong = np.ones((10, 10), dtype=bool)
    figure = plots.neighbours(
        np.zeros((10, 784)), np.zeros((10, 10, 784)), distances, wrong, "ten"
    )
    figure.canvas.draw()
    assert figure.bbox.width == 800
    assert figure.bbox.height < 650
    texts = figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts]
    boxes += [patch.get_window_extent() for patch in figure.axes[0].patches]
    for i, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.x1 <= 800
        assert not any(box.overlaps(other) for other in boxes[:i])
