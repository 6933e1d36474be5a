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

from baselines import METHODS, named
from study import plots
from study.protocol import headline
from study.statistics import interval
from study.style import styles_of

TEN = named("paper")
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
    value = 0.1 + 0.07 * TEN.index(method) - 1 / n_bits + 0.01 * seed
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
        worse["train_seconds"] = 100.0 ** (TEN.index(run["method"]) / 3 - 1)
        worse["P@K"] = [value - 0.1 for value in run["P@K"]]
        label = f"{run['label']}, as published"
        runs.append(run | worse | {"published": True, "label": label})
    return runs


def ten_seeds(methods=TEN, datasets=("mnist",), bits=(8, 32), **changes):
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


def drawn(name, sets=("mnist",), runs=grid):
    """Draw a figure of all methods on these data sets, from the records that a function makes."""
    if name == "query_variation":
        few = runs(TEN, sets, [32], n_queries=100)
        return plots.query_variation(few + runs(TEN, sets, [32], n_queries=500), n_classes=10)
    if name == "unseen":
        return plots.unseen(runs(TEN, sets, [64], split="unseen"))
    if name == "ensemble":
        return plots.ensemble(averaged(runs, sets))
    if name == "sweep":
        found = [run for run in swept(runs) if run["dataset"] in sets]
        return plots.sweep(found, "feature_map__n_anchors", "kernel size", seconds=True)
    bits = {"longer_codes": [8, 128, 256], "training_time": [32]}.get(name, [8, 32])
    return getattr(plots, name)(runs(TEN, sets, bits))


OF_ONE_SET = ["stream", "precision_at_k", "precision_at_k_difference", "precision_recall"]
OF_ONE_SET += ["by_bits", "query_variation"]
OF_MANY_SETS = ["unseen", "longer_codes", "training_time", "ensemble", "sweep"]
FIGURES = OF_ONE_SET + OF_MANY_SETS


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
    figure = drawn(name, SETS if name in OF_MANY_SETS else ["mnist"], runs)
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
    assert all(axes.has_data() for axes in figure.axes)
    assert figure.axes[-1].get_xlabel() and figure.axes[0].get_ylabel()
    assert figure.get_figwidth() == 6.5  # one width, so that letters have one size on a page


def labels(axes) -> list[str]:
    """The texts at the ends of the lines of a panel, from below."""
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", ["stream", "precision_recall", "by_bits", "longer_codes"])
def test_hmoh_the_best_other_method_and_lsh_are_named_and_the_rest_is_grey(name):
    figure = drawn(name)
    assert "grey: the other methods" in figure.get_suptitle()
    for axes in figure.axes:
        # In made-up records a method is better than all that come before it.
        assert labels(axes) == ["LSH", "HCOH", "HMOH"]
        for text in axes.texts:
            assert to_hex(text.get_color()).upper() == plots.METHOD_STYLE[text.get_text()]["color"]
        colors = [to_hex(line.get_color()).upper() for line in axes.get_lines()]
        assert colors.count(to_hex("0.78").upper()) == len(TEN) - 3
        named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        for method in labels(axes):
            # Error bars are a container of lines.
            line = getattr(named[method], "lines", [named[method]])[0]
            style = plots.METHOD_STYLE[method]
            assert to_hex(line.get_color()).upper() == style["color"]
            assert line.get_marker() == style["marker"]
            assert method == "HMOH" or line.get_zorder() < 4  # HMOH is on top


def test_few_methods_are_all_named_apart_from_each_other():
    figure = plots.by_bits([run | {"mAP": 0.5} for run in grid(["OKH", "OSH", "HCOH", "HMOH"])])
    assert "grey" not in figure.get_suptitle()
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_styles_cover_the_methods_and_differ():
    assert set(plots.METHOD_STYLE) == set(METHODS)
    for key in ("color", "marker"):
        looks = {style[key] for style in plots.METHOD_STYLE.values()}
        assert len(looks) == len(METHODS)
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
    figure = plots.by_bits(runs)
    assert [axes.get_title() for axes in figure.axes] == ["OSH", "HMOH", "spread"]
    assert legend(figure) == ["filled: as described", "open: as published"]
    # Without the other kind, nothing needs to be told apart.
    assert labels(plots.by_bits(grid(["OSH"])).axes[0]) == ["OSH"]


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
    shown = texts(drawn(name, ["udhr205"]))
    assert "udhr205" in shown and "(STAND-IN for Places205)" in shown
    shown = texts(drawn(name, ["mnist"]))
    assert "MNIST" in shown and "STAND-IN" not in shown


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
    figure = drawn(name, runs=ten_seeds)
    # Recall differs between seeds, and a band at its mean would mislead.
    assert not any(axes.collections for axes in figure.axes)
    assert "\nmean over 5 to 10 seeds" in figure.get_suptitle()


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
    assert labels(axes) == ["HMOH", "HCOH"]
    assert "over 3 seeds" in figure.get_suptitle()
    other = plots.precision_at_k_difference(hmoh + rival, to="HCOH")
    assert labels(other.axes[0]) == ["HMOH", "HCOH"]
    with pytest.raises(ValueError, match=r"No run has the label 'OSH' at 32 bits.*add"):
        plots.precision_at_k_difference(hmoh, to="OSH")
    with pytest.raises(ValueError, match=r"All runs have the label 'HMOH'.*add"):
        plots.precision_at_k_difference(hmoh)
    with pytest.raises(ValueError, match="HCOH and HMOH have no seed in common"):
        plots.precision_at_k_difference([*hmoh, rival[-1]])


def test_differences_show_and_name_the_two_highest():
    gaps = {"LSH": -0.7, "OKH": -0.6, "OSH": -0.02, "MIHash": 0.01, "HCOH": -0.01}
    runs = grid(["HMOH"], bits=[8])
    for method, gap in gaps.items():
        for run in grid(["HMOH"], bits=[8]):
            curve = [value + gap for value in run["P@K"]]
            runs.append(run | {"method": method, "label": method, "P@K": curve})
    figure = plots.precision_at_k_difference(runs)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert -0.02 < low < -0.01 and 0.01 < high < 0.02
    assert labels(axes) == ["HCOH", "HMOH", "MIHash"]
    assert "partly cut off" in figure.get_suptitle()


@pytest.mark.parametrize("dataset", SETS)
def test_the_headline_metric_is_the_default(dataset):
    metric, records = (
        headline(SETS[dataset]),
        grid(["HMOH"], [dataset], bits=[8, 16, 64]),
    )
    axes = plots.by_bits(records).axes[0]
    means = [np.mean([r[metric] for r in records if r["n_bits"] == b]) for b in (8, 16, 64)]
    np.testing.assert_allclose(axes.lines[0].get_ydata(orig=False), means)
    numbers = {t.get_text() for t in axes.get_xticklabels()}
    assert axes.get_ylabel() == metric and numbers == {"8", "16", "64"}
    bars = axes.containers[0].lines[2][0].get_segments()
    low, high = interval([r[metric] for r in records if r["n_bits"] == 8])
    assert bars[0][:, 1] == pytest.approx([low, high])


def test_the_papers_values_only_beside_the_papers_data():
    def dashes(*sets):
        runs = grid(["HMOH"], sets, [8, 32], n_queries=None)
        figure = plots.by_bits(runs + published(["HMOH"], sets, [8, 32], n_queries=None))
        lines = [line for line in figure.axes[0].lines if line.get_path_effects()]
        return legend(figure), [line.get_xydata().tolist() for line in lines]

    names, shown = dashes("mnist")
    # At the left of the markers, which they would hide.
    shift = plots.DASH_SHIFT
    assert shown == [[[0 - shift, 0.743]], [[1 - shift, 0.847]]]
    assert names[-1] == "dash: printed in the paper"
    names, shown = dashes("udhr205")
    assert not shown and names == ["filled: as described", "open: as published"]


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


def test_ensemble_and_longer_codes_tell_their_two_lines_apart():
    figure = plots.ensemble([record(mAP=0.3), record(settings={"ensemble": False}, mAP=0.1)])
    values = [container.lines[0].get_ydata()[0] for container in figure.axes[0].containers]
    shown = dict(zip(legend(figure), values, strict=True))
    assert shown == {"average of all states": 0.3, "last state": 0.1}
    figure = plots.longer_codes(grid(["HMOH"], bits=[128, 256], seeds=[0]))
    right, saturated = (container.lines[0] for container in figure.axes[0].containers)
    assert right.get_ydata()[0] == saturated.get_ydata()[0]
    assert right.get_ydata()[1] > saturated.get_ydata()[1]


def test_a_sweep_is_drawn_over_a_setting_that_is_a_number():
    runs = [record(settings={"batch_size": n, "memory": None}) for n in (50, 1, 2)]
    axes = plots.sweep(runs, "batch_size", "samples", log=True).axes[0]
    assert list(axes.lines[0].get_xdata()) == [1, 2, 50]
    assert axes.get_xscale() == "log"
    for missing in ("feature_map__divisor", "memory"):
        with pytest.raises(ValueError, match=f"'HMOH' has no number as setting '{missing}'"):
            plots.sweep(runs, missing, "x")


def test_training_time_is_compared_with_hmoh():
    runs = [record("HCOH", train_seconds=143), record("HMOH", train_seconds=0.00478)]
    axes = plots.training_time(runs).axes[0]
    shown = [text.get_text().strip() for text in axes.texts]
    assert shown == ["140 s, 29,916 x", "0.0048 s, 1 x"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["HCOH", "HMOH"]
    # The interval of two seeds reaches below zero, which a logarithmic axis cannot show.
    wide = [record(seed=s, train_seconds=t) for s, t in enumerate([1.0, 9.0])]
    axes = plots.training_time(wide).axes[0]
    (bar,) = axes.containers[0].lines[2][0].get_segments()
    assert bar[0, 0] == pytest.approx(axes.get_xlim()[0]) == 0.5
    with pytest.raises(ValueError, match="No HMOH on mnist"):
        plots.training_time([record("HCOH")])


@pytest.mark.parametrize("name", FIGURES)
def test_no_records_is_an_error(name):
    with pytest.raises(ValueError, match=r"No record has .* needs it; pass records of protocol"):
        getattr(plots, name)([], *(["x", "x"] if name == "sweep" else []))
