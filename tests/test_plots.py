"""Test study/plots.py, and the modules behind it, on made-up records.

Every figure is complete, names stand-in data, and draws a method in the same colour.
"""

import itertools

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from baselines import METHODS
from study import pictures, plots, protocol
from study.protocol import headline
from study.statistics import interval
from study.style import styles_of
from study.training import BEYOND

SETS = {
    "mnist": "mnist",
    "cifar10_vgg16": "cifar10",
    "udhr205": "places205",
    "mediamill10": "nuswide",
}
PUBLISHED = ["OKH", "SketchHash", "OSH", "MIHash", "HMOH"]
FEW = ["LSH", "HCOH", "HMOH"]


def record(method="HMOH", dataset="mnist", n_bits=32, seed=0, **changes) -> dict:
    """What protocol.run returns, with numbers that tell methods, lengths and seeds apart."""
    role = SETS[dataset]
    value = 0.1 + 0.07 * list(METHODS).index(method) - 1 / n_bits + 0.01 * seed
    # HCOH cannot encode at the first checkpoint.
    first = None if method == "HCOH" else value / 2
    return {
        "method": method,
        "published": False,
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


def grid(methods=FEW, datasets=("mnist",), bits=(8, 32), seeds=(0, 1), **changes) -> list[dict]:
    return [
        record(m, d, b, s, **changes)
        for m in methods
        for d in datasets
        for b in bits
        for s in seeds
    ]


def published(
    methods=PUBLISHED, datasets=("mnist",), bits=(8, 32), seeds=(0, 1), **changes
) -> list[dict]:
    """Runs as published, which are a tenth worse."""
    found = grid(methods, datasets, bits, seeds, **changes)
    runs = []
    for run in found:
        worse = {key: run[key] - 0.1 for key in ("mAP", "mAP@1000", "P@H2")}
        # Times of many orders of magnitude.
        worse["train_seconds"] = 100.0 ** (list(METHODS).index(run["method"]) / 3 - 1)
        worse["P@K"] = [value - 0.1 for value in run["P@K"]]
        label = f"{run['label']}, as published"
        runs.append(run | worse | {"published": True, "label": label})
    return runs


def ten_seeds(methods=METHODS, datasets=("mnist",), bits=(8, 32), **changes):
    """Runs with ten seeds, five of MIHash, and curves over a long stream for three seeds."""
    runs = []
    for run in grid(methods, datasets, bits, range(10), **changes):
        if run["seed"] > 2:
            run = {key: run[key] for key in run if key not in ("stream", "AUC mAP")}
        else:
            run["samples"] = [5000, 10_000, 100_000]
        if run["method"] != "MIHash" or run["seed"] < 5:
            runs.append(run)
    return runs


def swept(runs=grid) -> list[dict]:
    """Runs with 100 and with 300 anchors, whose labels do not contain the numbers."""
    few = runs(["HMOH"], SETS, [32], label="few", settings={"feature_map__n_anchors": 100})
    many = runs(["HMOH"], SETS, [32], label="many", settings={"feature_map__n_anchors": 300})
    return few + many


def both(methods, sets, *args, **changes) -> list[dict]:
    """Ten seeds as described, and two as published."""
    as_published = [method for method in methods if method in PUBLISHED]
    found = ten_seeds(methods, sets, *args, **changes)
    return found + published(as_published, sets, *args, **changes)


def averaged(runs, sets) -> list[dict]:
    return runs(["HMOH"], sets) + runs(["HMOH"], sets, settings={"ensemble": False})


# Each function takes the data sets, and the function that makes the records.
FIGURES = {
    "stream": lambda sets=("mnist",), runs=grid: plots.stream(runs(METHODS, sets)),
    "precision_at_k": lambda sets=("mnist",), runs=grid: plots.precision_at_k(runs(METHODS, sets)),
    "precision_at_k_difference": lambda sets=("mnist",), runs=grid: plots.precision_at_k_difference(
        runs(METHODS, sets)
    ),
    "precision_recall": lambda sets=("mnist",), runs=grid: plots.precision_recall(
        runs(METHODS, sets)
    ),
    "by_bits": lambda sets=("mnist",), runs=grid: plots.by_bits(runs(METHODS, sets), "P@H2"),
    "query_variation": lambda sets=("mnist",), runs=grid: plots.query_variation(
        [r for n in (100, 500) for r in runs(METHODS, sets, [32], n_queries=n)],
        n_classes=10,
    ),
    "unseen": lambda sets=SETS, runs=grid: plots.unseen(runs(METHODS, sets, [64], split="unseen")),
    "longer_codes": lambda sets=SETS, runs=grid: plots.longer_codes(
        runs(METHODS, sets, [8, 128, 256])
    ),
    "training_time": lambda sets=SETS, runs=grid: plots.training_time(runs(METHODS, sets, [32])),
    "ensemble": lambda sets=SETS, runs=grid: plots.ensemble(averaged(runs, sets)),
    "sweep": lambda sets=SETS, runs=grid: plots.sweep(
        [r for r in swept(runs) if r["dataset"] in sets],
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
        parts + [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    )


def legend(figure) -> list[str]:
    (only,) = figure.legends
    return [text.get_text() for text in only.get_texts()]


def label_boxes(axis) -> list:
    """The boxes of the labels that are shown along an axis, in order."""
    low, high = sorted(axis.get_view_interval())
    labels = []
    for tick in axis.get_major_ticks():
        if tick.label1.get_visible() and low <= tick.get_loc() <= high:
            labels.append((tick.get_loc(), tick.label1.get_window_extent()))
    return [box for _, box in sorted(labels, key=lambda pair: pair[0])]


@pytest.mark.parametrize("runs", [grid, ten_seeds, both])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_labelled_and_nothing_overlaps(name, runs):
    figure = FIGURES[name](runs=runs)
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
    for axes in figure.axes:
        for one, next_one in itertools.pairwise(label_boxes(axes.xaxis)):
            assert one.x1 + 5 < next_one.x0
        for one, next_one in itertools.pairwise(label_boxes(axes.yaxis)):
            assert not one.overlaps(next_one)
        # A label is not longer than its axis.
        height = axes.yaxis.label.get_window_extent().height
        assert height <= 1.1 * axes.get_window_extent().height
    assert all(axes.get_xlabel() and axes.has_data() for axes in figure.axes)
    assert figure.axes[0].get_ylabel()


@pytest.mark.parametrize("name", OF_METHODS)
def test_a_method_looks_the_same_in_every_figure(name):
    figure = FIGURES[name]()
    assert legend(figure)[: len(METHODS)] == list(plots.METHOD_STYLE)[: len(METHODS)]
    for axes in figure.axes:
        found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        for method in METHODS:
            style = plots.METHOD_STYLE[method]
            # Error bars are a container of lines.
            line = getattr(found[method], "lines", [found[method]])[0]
            assert (to_hex(line.get_color()).upper(), line.get_marker()) == (
                style["color"],
                style["marker"],
            )
            assert (line.get_linestyle() == "--") == (method == "LSH")
            assert method == "HMOH" or line.get_zorder() < 4  # HMOH is on top


def test_styles_cover_the_methods_and_differ():
    methods = METHODS | BEYOND
    assert set(plots.METHOD_STYLE) == set(methods)
    for key in ("color", "marker"):
        looks = {style[key] for style in plots.METHOD_STYLE.values()}
        assert len(looks) == len(methods)
    runs = [{"label": label} for label in ("OSH", "OSH, boosted", "spread", "HMOH")]
    styles = styles_of(runs)
    assert len({look["color"] for look in styles.values()}) == 4
    # Open markers have one meaning.
    assert not any("markerfacecolor" in look for look in styles.values())


def test_runs_as_published_have_open_markers_in_the_colour_of_the_method():
    runs = both(["HMOH", "OSH"], ["mnist"])
    runs += [run | {"label": "spread"} for run in grid(["HMOH"])]
    runs += published(["HMOH"], label="spread")
    looks = styles_of(runs)
    for name in ("HMOH", "OSH", "spread"):
        described, as_published = looks[name], looks[f"{name}, as published"]
        assert "markerfacecolor" not in described
        assert as_published["markerfacecolor"] == "white"
        for key in ("color", "marker"):
            assert described[key] == as_published[key]
    shown = legend(plots.by_bits(runs))
    meanings = ["filled: as described", "open: as published"]
    assert shown == ["OSH", "HMOH", "spread", *meanings]
    # Without the other kind, nothing needs to be told apart.
    assert legend(plots.by_bits(grid(["OSH"]))) == ["OSH"]
    assert legend(plots.by_bits(published(["OSH"]))) == ["OSH, as published"]


@pytest.mark.parametrize("name", FIGURES)
def test_described_and_published_runs_are_not_mixed(name):
    figure = FIGURES[name](runs=both)
    alone = FIGURES[name](runs=ten_seeds)
    for axes, other in zip(figure.axes, alone.axes, strict=True):
        found, expected = ([tuple(l.get_ydata()) for l in a.lines] for a in (axes, other))
        if name != "training_time":
            assert set(map(str, expected)) <= set(map(str, found))
            assert len(found) > len(expected)
    if name == "training_time":
        rows = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
        assert rows[-2:] == ["HMOH", "HMOH, as published"]


def test_one_label_for_both_kinds_and_one_seed_twice_are_errors():
    runs = [record(), record(seed=1, published=True)]
    message = "'HMOH' are partly as described and partly as published.*different labels"
    with pytest.raises(ValueError, match=message):
        plots.by_bits(runs)
    message = r"'HMOH' on mnist at 32 bits have the same seed \(seeds \[0, 0\]\).*each run once"
    for draw in (plots.by_bits, plots.stream, plots.training_time, plots.ensemble):
        with pytest.raises(ValueError, match=message.replace("'HMOH'", ".*")):
            draw([record(), record()])


def test_two_stand_ins_for_one_role_look_different(monkeypatch):
    monkeypatch.setitem(SETS, "reuters10", "nuswide")
    figure = plots.sweep(swept(), "feature_map__n_anchors", "m")
    lines = [container.lines[0] for container in figure.axes[0].containers]
    assert len(lines) == 5
    assert len({line.get_color() for line in lines}) == 5
    assert len({line.get_marker() for line in lines}) == 5


@pytest.mark.parametrize("name", FIGURES)
def test_stand_ins_are_named(name):
    shown = texts(FIGURES[name](["udhr205"]))
    assert "udhr205" in shown and "(STAND-IN for Places205)" in shown
    assert "STAND-IN" not in texts(FIGURES[name](["mnist"])) and "MNIST" in texts(
        FIGURES[name](["mnist"])
    )


def test_curves_are_means_over_seeds_with_their_interval():
    figure = plots.stream(grid(["HMOH"], bits=[8], seeds=[0, 1, 2]))
    (axes,) = figure.axes
    runs = np.array([record("HMOH", n_bits=8, seed=s)["stream"] for s in range(3)], dtype=float)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), runs.mean(axis=0))
    band = axes.collections[0].get_paths()[0].vertices
    ends = [interval(column) for column in runs.T]
    assert band[:, 1].min() == pytest.approx(min(low for low, _ in ends))
    assert band[:, 1].max() == pytest.approx(max(high for _, high in ends))
    assert "band: 95 % interval of the mean over 3 seeds" in figure.get_suptitle()
    one = plots.stream(grid(["HMOH"], bits=[8], seeds=[0]))
    assert "1 seed" in one.get_suptitle() and "band" not in one.get_suptitle()
    waiting = plots.stream(grid(["HCOH"], bits=[8])).axes[0].lines[0].get_ydata()
    assert np.isnan(waiting[0]) and np.isfinite(waiting[1:]).all()


@pytest.mark.parametrize("name", ["precision_recall", "unseen"])
def test_figures_without_bands_do_not_announce_them(name):
    figure = FIGURES[name](runs=ten_seeds)
    # Recall differs between seeds, and a band at its mean would mislead.
    assert not any(axes.collections for axes in figure.axes)
    assert figure.get_suptitle().endswith("\nmean over 5 to 10 seeds")


def test_titles_say_what_bands_and_bars_are():
    n_seeds = {"stream": "3 seeds", "ensemble": "10 seeds", "sweep": "10 seeds"}
    for name in FIGURES.keys() - {"precision_recall", "unseen"}:
        mark = "band" if name.startswith(("stream", "precision")) else "bars"
        number = n_seeds.get(name, "5 to 10 seeds")
        expected = f"{mark}: 95 % interval of the mean over {number}"
        assert expected in FIGURES[name](runs=ten_seeds).get_suptitle(), name


def test_differences_are_paired_over_the_common_seeds():
    hmoh = [record(seed=s, **{"P@K": [0.5 + 0.1 * s, 0.6, 0.7]}) for s in range(4)]
    # Without pairs the interval would be wide, and seed 7 would count.
    rival = [record("HCOH", seed=s, **{"P@K": [0.4 + 0.1 * s, 0.6, 0.8]}) for s in (1, 2, 3, 7)]
    figure = plots.precision_at_k_difference(hmoh + rival)
    (axes,) = figure.axes
    zero, line = axes.lines
    assert list(zero.get_ydata()) == [0, 0]
    np.testing.assert_allclose(line.get_ydata(), [-0.1, 0, 0.1], atol=1e-12)
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(-0.1)
    assert band.max() == pytest.approx(0.1)
    assert legend(figure) == ["HCOH", "HMOH (zero)"]
    assert "over 3 seeds" in figure.get_suptitle()
    other = plots.precision_at_k_difference(hmoh + rival, to="HCOH")
    assert legend(other) == ["HMOH", "HCOH (zero)"]
    with pytest.raises(ValueError, match=r"No run has the label 'OSH' at 32 bits.*add"):
        plots.precision_at_k_difference(hmoh, to="OSH")
    with pytest.raises(ValueError, match=r"All runs have the label 'HMOH'.*add"):
        plots.precision_at_k_difference(hmoh)
    with pytest.raises(ValueError, match="HCOH and HMOH have no seed in common"):
        plots.precision_at_k_difference([*hmoh, rival[-1]])


def test_differences_show_the_close_methods_and_name_the_others():
    gaps = {"LSH": -0.7, "OKH": -0.6, "OSH": -0.02, "MIHash": 0.01, "HCOH": -0.01}
    runs = grid(["HMOH"], bits=[8])
    for method, gap in gaps.items():
        for run in grid(["HMOH"], bits=[8]):
            curve = [value + gap for value in run["P@K"]]
            runs.append(run | {"method": method, "label": method, "P@K": curve})
    figure = plots.precision_at_k_difference(runs)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert -0.04 < low < -0.02 and 0.01 < high < 0.03
    assert axes.get_xlabel().endswith("\nbelow: LSH; OKH")
    assert "curves beyond it are cut off" in figure.get_suptitle()


@pytest.mark.parametrize("dataset", SETS)
def test_the_headline_metric_is_the_default(dataset):
    metric, records = (
        headline(SETS[dataset]),
        grid(["HMOH"], [dataset], bits=[8, 16, 64]),
    )
    axes = plots.by_bits(records).axes[0]
    means = [np.mean([r[metric] for r in records if r["n_bits"] == b]) for b in (8, 16, 64)]
    np.testing.assert_allclose(axes.lines[0].get_ydata(orig=False), means)
    assert axes.get_ylabel() == metric and [t.get_text() for t in axes.get_xticklabels()] == [
        "8",
        "16",
        "64",
    ]
    bars = axes.containers[0].lines[2][0].get_segments()
    low, high = interval([r[metric] for r in records if r["n_bits"] == 8])
    assert bars[0][:, 1] == pytest.approx([low, high])


def test_the_papers_values_only_beside_the_papers_data():
    paper = {
        "HMOH": {"8": 0.743, "32": 0.847, "512": 0.5},
        "OKH": {"8": 0.1},
    }  # neither 512 bits nor OKH was run
    paper["LSH"] = {"8": None}
    axes = plots.by_bits(grid() + published(["HMOH"]), "mAP", paper).axes[0]
    dashes = [line for line in axes.lines if line.get_marker() == "_" and line.get_path_effects()]
    shown = [line.get_xydata().tolist() for line in dashes]
    # At the left of the markers, which they would hide.
    shift = plots.DASH_SHIFT
    assert shown == [[[0 - shift, 0.743]], [[1 - shift, 0.847]]]
    assert legend(axes.figure)[-3:] == [
        "filled: as described",
        "open: as published",
        "dash: printed in the paper",
    ]
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
        record(settings={"batch_size": n, "memory": None}, label="m 300") for n in (50, 1, 2)
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
    records = [record(settings=settings | {"ensemble": ensemble}) for ensemble in (True, False)]
    for name in (
        "feature_map__n_anchors",
        "feature_map__divisor",
        "batch_size",
        "learning_rate",
    ):
        axes = plots.sweep(records[:1], name, name).axes[0]
        assert list(axes.lines[0].get_xdata()) == [model.get_params()[name]]
    assert legend(plots.ensemble(records)) == ["average of all states", "last state"]


def test_ensemble_tells_the_two_apart():
    last = [record(settings={"ensemble": False}, mAP=0.1)]
    figure = plots.ensemble([record(mAP=0.3), *last])
    values = [container.lines[0].get_ydata()[0] for container in figure.axes[0].containers]
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
    faster = [record("LSH", train_seconds=0.012), record("HMOH", train_seconds=1.0)]
    texts = plots.training_time(faster).axes[0].texts
    assert texts[0].get_text().strip() == "0.012 s, 0.012 x HMOH"
    # The interval of two seeds reaches below zero, which the axis cannot show.
    wide = [record(seed=s, train_seconds=t) for s, t in enumerate([1.0, 9.0])]
    axes = plots.training_time(wide).axes[0]
    (bar,) = axes.containers[0].lines[2][0].get_segments()
    assert bar[0, 0] == pytest.approx(axes.get_xlim()[0]) == 0.5
    axes.figure.canvas.draw()
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
        plots.stream([{key: value for key, value in record().items() if key != "stream"}])
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
    assert [patch.get_facecolor() for patch in patches] == [tuple(color) for color in colors[:3]]
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
        assert w @ first == pytest.approx(0) and w @ (second - first) == pytest.approx(0)
    assert legend(axes.figure) == [
        "class -1",
        "class 1",
        "after sample 230, the last mistake",
        "average",
    ]
    box = axes.figure.legends[0].get_window_extent()
    assert (
        box.x0 >= 0 and box.x1 <= axes.figure.bbox.width and box.y1 <= axes.get_tightbbox().y0 + 1
    )
    assert axes.get_title() == "toy" and axes.get_xlabel() and axes.get_ylabel()


def test_stream_curves_and_neighbours_of_the_quickstart():
    axes = plots.stream_curves([100, 200], {"8 bits": [0.1, 0.2], "32 bits": [0.3, 0.4]}, "MNIST")
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
    assert written[:3] == ["3", "5", pictures.CROSS]
    assert written[-1] == f"{pictures.CROSS} wrong class"


def test_the_neighbours_fit_the_width_of_a_readme():
    distances = np.full((10, 10), 32)
    wrong = np.ones((10, 10), dtype=bool)
    figure = plots.neighbours(np.zeros((10, 784)), np.zeros((10, 10, 784)), distances, wrong, "ten")
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
