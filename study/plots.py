"""Every figure, in one style: readable at notebook width, colours that colour-blind readers can tell apart.

Those of the paper's experiments take records of `experiments.run`. A method looks the same everywhere, and data that
stand in for the paper's say so. In a notebook, end the line with a semicolon: a returned Figure is shown twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np

from experiments import headline

__all__ = [
    "COLORS", "METHOD_STYLE", "by_bits", "codebook", "distributions", "ensemble", "hadamard", "longer_codes", "name_of",
    "neighbours", "precision_at_k", "precision_recall", "query_variation", "stream", "stream_curves", "sweep", "toy_2d",
    "training_time", "unseen", "use_style",
]  # fmt: skip

COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]  # Okabe and Ito
# In order of legends. Olive and dark red, as yellow is hard to see on white; LSH, never trained, is the floor.
METHOD_STYLE = {
    "LSH": {"color": "#777777", "marker": "X", "linestyle": "--"}, "OKH": {"color": "#56B4E9", "marker": "v"},
    "SketchHash": {"color": "#E69F00", "marker": "s"}, "FROSH": {"color": "#999933", "marker": "d"},
    "AdaptHash": {"color": "#CC79A7", "marker": "<"}, "OSH": {"color": "#009E73", "marker": "P"},
    "MIHash": {"color": "#D55E00", "marker": "^"}, "BSODH": {"color": "#0072B2", "marker": "D"},
    "HCOH": {"color": "#7A0000", "marker": "o"},
    "HMOH": {"color": "#000000", "marker": "*", "linewidth": 2.6, "markersize": 10, "zorder": 4},
}  # fmt: skip
LINE = {"linestyle": "-", "linewidth": 1.5, "markersize": 6, "zorder": 3}  # where METHOD_STYLE says nothing else
OPEN = {"linestyle": "", "markerfacecolor": "white", "markersize": 8, "zorder": 5}
Array = np.ndarray
ROLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "places205": "Places205", "nuswide": "NUS-WIDE"}


def use_style() -> None:
    """Set matplotlib up; call it once, at the top of a notebook."""
    plt.rcParams.update({
        "figure.figsize": (7, 4), "figure.dpi": 100, "figure.constrained_layout.use": True,
        "axes.prop_cycle": plt.cycler(color=COLORS), "axes.grid": True, "grid.alpha": 0.3,
        "axes.spines.top": False, "axes.spines.right": False,
        "font.size": 11, "legend.frameon": False, "lines.linewidth": 2,
    })  # fmt: skip


def name_of(record: dict, between: str = " ") -> str:
    """The data set's name for titles: "MNIST", or "udhr205 (STAND-IN for Places205)"."""
    role = ROLES[record["role"]]
    return f"{record['dataset']}{between}(STAND-IN for {role})" if record["stand_in_for"] else role


def _choose(records: Iterable[dict], need: str, *one: str) -> list[dict]:
    """The records that have ``need``, sorted, if they agree in ``one``: a mean over a mixture would mean nothing."""
    found = [record for record in records if need in record]
    if not found:
        way = "experiments.compare" + ("(..., checkpoints=True)" if need in ("stream", "AUC mAP") else "")
        raise ValueError(f"No record has {need!r}, but the figure needs some that do; pass those of {way}.")
    for key in one:
        if len(values := list(_by(found, key))) > 1:
            way = f"pass [r for r in records if r[{key!r}] == {values[0]!r}]"
            raise ValueError(f"The records have {key} {values}, but the figure shows one; {way}.")
    order = {name: place for place, name in enumerate([*ROLES, *METHOD_STYLE])}  # a caller's own labels come last
    return sorted(found, key=lambda record: (order[record["role"]], order.get(record["label"], len(order))))


def _by(records: Iterable[dict], key: str | Callable) -> dict:
    """Records in groups: numbers in their order, other values as they come."""
    groups: dict = {}
    for record in records:
        groups.setdefault(key(record) if callable(key) else record[key], []).append(record)
    return dict(sorted(groups.items())) if all(isinstance(value, int | float) for value in groups) else groups


def _styles(labels: Iterable[str]) -> dict[str, dict]:
    """How labels are drawn: a method as always, any other name in a colour left over, with open markers."""
    styles = {label: LINE | METHOD_STYLE.get(label, {}) for label in labels}
    visible = COLORS[:-1]  # not yellow
    spare = [c for c in visible if c not in [style.get("color") for style in styles.values()]] or visible
    for i, style in enumerate(style for style in styles.values() if "color" not in style):
        style |= {"color": spare[i % len(spare)], "marker": "oD^vs"[i % 5], "markerfacecolor": "white"}
    return styles


def _score_name(records: Iterable[dict]) -> str:
    """The headline metric's name for an axis, where it may differ between data sets."""
    names = _by(records, lambda record: headline(record["role"]))
    return next(iter(names)) if len(names) == 1 else f"mAP ({names['mAP@1000'][0]['dataset']}: mAP@1000)"


def _seeds(records: Iterable[dict], what: str = "mean ± sd") -> str:
    """Over how many seeds the figure's points are means."""
    shared = _by(records, lambda r: (r["dataset"], r["label"], r["n_bits"], r["n_queries"], r.get("x")))
    least, most = min(map(len, shared.values())), max(map(len, shared.values()))
    return "1 seed" if most == 1 else f"{what} of {f'{least} to ' if least < most else ''}{most} seeds"


def _grid(title: str, panels: Iterable, xlabel: str, ylabel: str, columns=2, height=2.9, **options) -> tuple:
    """A figure as wide as a notebook, and (axes, panel) for each panel."""
    panels = list(panels)
    rows, columns = -(-len(panels) // columns), min(len(panels), columns)
    size = (10, rows * height + 1.4 if rows > 1 else 5)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)
    figure.suptitle(title)
    plt.setp(grid, xlabel=xlabel)
    plt.setp(grid[:, 0], ylabel=ylabel)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    return figure, list(zip(grid.flat, panels, strict=False))


def _legend(figure: plt.Figure, *extra: plt.Line2D, columns: int = 5) -> plt.Figure:
    """One legend below all panels, where it hides no curve; methods in the order of METHOD_STYLE."""
    entries = {label: h for axes in figure.axes for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    entries |= {line.get_label(): line for line in extra}
    labels = [m for m in METHOD_STYLE if m in entries] + [label for label in entries if label not in METHOD_STYLE]
    figure.legend([entries[n] for n in labels], labels, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _curves(records: Iterable[dict], x: str, y: str, xlabel: str, ylabel: str | None = None, unseen="") -> plt.Figure:
    """Mean curves in panels by code length (``unseen``: by data set); a band from least to most where seeds share x.

    There is none on unseen classes: seeds have other classes there, and ten wide bands hide the curves.
    """
    chosen = _choose(records, y, "split", *([] if unseen else ["dataset"]))
    ylabel, styles = ylabel or _score_name(chosen), _styles(_by(chosen, "label"))
    title = f"{unseen or name_of(chosen[0])}: {ylabel} against {xlabel}, {_seeds(chosen, 'mean')}"
    panels, columns = _by(chosen, "dataset" if unseen else "n_bits").values(), 2 if unseen else 3
    figure, grid = _grid(title, panels, xlabel, ylabel, columns, sharey=True)
    for axes, panel in grid:
        for label, runs in _by(panel, "label").items():
            if len({len(run[x]) for run in runs}) > 1:
                raise ValueError(f"The curves of {label} differ in length; pass runs of one profile and protocol.")
            xs = np.array([run[x] for run in runs], dtype=float)
            ys = np.ma.masked_invalid(np.array([run[y] for run in runs], dtype=float))  # None: cannot encode yet
            means, every = ys.mean(axis=0).filled(np.nan), -(-xs.shape[1] // 12)
            axes.plot(xs.mean(axis=0), means, label=label, markevery=every, **styles[label])
            if not unseen and len(runs) > 1 and (xs == xs[0]).all():
                axes.fill_between(xs[0], ys.min(0), ys.max(0), color=styles[label]["color"], alpha=0.15, linewidth=0)
        axes.set(title=name_of(panel[0], "\n") if unseen else f"{panel[0]['n_bits']} bits", xlim=(0, None))
        axes.xaxis.set_major_formatter("{x:,g}")
    return _legend(figure)


def _means(axes: plt.Axes, records: list[dict], x: str, y: str | None, styles: dict, even=True, name=None) -> None:
    """Means and standard deviations over seeds, a line for each label; ``even``: the values of x have equal room."""
    ticks = list(_by(records, x))
    for label, runs in _by(records, "label").items():
        groups = {at: [run[y or headline(run["role"])] for run in group] for at, group in _by(runs, x).items()}
        at = [ticks.index(value) if even else value for value in groups]
        means = [np.mean(v) for v in groups.values()]
        deviations = [np.std(v, ddof=1) if len(v) > 1 else 0.0 for v in groups.values()]
        axes.errorbar(at, means, deviations, label=name or label, capsize=2, elinewidth=1, **styles[label])
    if even:
        axes.set_xticks(range(len(ticks)), [f"{value:,g}" for value in ticks])


def stream(records: Iterable[dict]) -> plt.Figure:
    """The headline metric against the samples seen, a panel for each code length; needs runs with checkpoints."""
    return _curves(records, "samples", "stream", "samples seen")


def precision_at_k(records: Iterable[dict]) -> plt.Figure:
    """Precision among the K nearest against K, a panel for each code length."""
    return _curves(records, "K", "P@K", "K (items retrieved)", "Precision@K")


def precision_recall(records: Iterable[dict]) -> plt.Figure:
    """Precision against recall within each radius, as above; an empty ball counts 0, so long codes start low."""
    return _curves(records, "recall", "precision", "recall", "precision")


def unseen(records: Iterable[dict], n_bits: int = 64) -> plt.Figure:
    """Precision@K on classes that the stream never showed (runs with split="unseen"), a panel for each data set."""
    chosen = [record for record in records if record["split"] == "unseen" and record["n_bits"] == n_bits]
    return _curves(chosen, "K", "P@K", "K (items retrieved)", "Precision@K", f"Unseen classes, {n_bits} bits")


def by_bits(records: Iterable[dict], metric: str | None = None, paper: dict[str, dict] | None = None) -> plt.Figure:
    """A metric (by default the headline one) against the code length, with the standard deviation over seeds.

    ``paper`` is method -> {bits: value printed}, drawn as open markers; an error where the data are not the paper's.
    """
    chosen = _choose(records, metric or "role", "dataset", "split")
    metric, styles = metric or _score_name(chosen), _styles(_by(chosen, "label"))
    if paper and chosen[0]["stand_in_for"]:
        raise ValueError(f"{name_of(chosen[0])} is not the paper's data, its values are no match; leave out `paper`.")
    figure, [(axes, _)] = _grid(f"{name_of(chosen[0])}: {metric}, {_seeds(chosen)}", [0], "code length (bits)", metric)
    _means(axes, chosen, "n_bits", metric, styles)
    if not paper:
        return _legend(figure)
    places = {str(n_bits): place for place, n_bits in enumerate(_by(chosen, "n_bits"))}
    for method, style in styles.items():
        printed = {places[str(b)]: value for b, value in paper.get(method, {}).items() if str(b) in places}
        axes.plot(list(printed), list(printed.values()), **style | OPEN)
    return _legend(figure, plt.Line2D([], [], color="black", marker="o", label="open: the paper's", **OPEN), columns=6)


def query_variation(records: Iterable[dict], n_classes: int | None = None) -> plt.Figure:
    """The headline metric and its deviation against the queries (per class, if ``n_classes`` is given)."""
    found = _choose(records, "n_queries", "dataset", "split", "n_bits")
    chosen = [record | {"x": record["n_queries"] / (n_classes or 1)} for record in found]
    title = f"{name_of(chosen[0])}: more queries, {chosen[0]['n_bits']} bits, {_seeds(chosen)}"
    figure, [(axes, _)] = _grid(title, [0], "queries per class" if n_classes else "queries", _score_name(chosen))
    _means(axes, chosen, "x", None, _styles(_by(chosen, "label")))
    return _legend(figure)


def _sets_by_bits(title: str, chosen: list[dict], styles: dict) -> tuple:
    """The headline metric against the code length, a panel for each data set."""
    figure, grid = _grid(f"{title}, {_seeds(chosen)}", _by(chosen, "dataset").values(), "code length (bits)", "")
    for axes, panel in grid:
        _means(axes, panel, "n_bits", None, styles)
        axes.set(title=name_of(panel[0], "\n"), ylabel=_score_name(panel))
        axes.margins(0.1)
    return figure, grid


def longer_codes(records: Iterable[dict]) -> plt.Figure:
    """The headline metric by code length, a panel for each data set; dotted: saturated at int8, as published."""
    chosen = _choose(records, "mAP int8", "split")
    styles = _styles(_by(chosen, "label"))
    dotted = {label: style | {"linestyle": ":", "markersize": 3} for label, style in styles.items()}
    figure, grid = _sets_by_bits("Longer codes", chosen, styles)
    for axes, panel in grid:
        _means(axes, panel, "n_bits", "mAP int8", dotted, name="_not in the legend")
    return _legend(figure, plt.Line2D([], [], color="black", linestyle=":", label="dotted: int8 saturation"), columns=6)


def ensemble(records: Iterable[dict]) -> plt.Figure:
    """The headline metric with and without (``{"ensemble": False}``) averaging, a panel for each data set."""
    names = {"True": "average of all states", "False": "last state"}
    chosen = _choose(records, "params", "method", "split")
    chosen = [record | {"label": names[record["params"].get("ensemble", "True")]} for record in chosen]
    figure, _ = _sets_by_bits(f"{chosen[0]['method']}, averaged or not", chosen, _styles(names.values()))
    return _legend(figure)


def training_time(records: Iterable[dict]) -> plt.Figure:
    """Training seconds of each method at one code length, and their ratio to HMOH's, a panel for each data set."""
    chosen = _choose(records, "train_seconds", "n_bits", "split")
    panels, styles = _by(chosen, "dataset").values(), _styles(_by(chosen, "label"))
    title, height = f"Training time, {chosen[0]['n_bits']} bits, {_seeds(chosen, 'mean')}", 0.3 * len(styles) + 1
    figure, grid = _grid(title, panels, "seconds (log scale)", "method", height=height)
    for axes, panel in grid:
        seconds = {label: [run["train_seconds"] for run in runs] for label, runs in _by(panel, "label").items()}
        if "HMOH" not in seconds:
            raise ValueError(f"No HMOH on {panel[0]['dataset']}, but times are compared with its; add its records.")
        base, least, most = np.mean(seconds["HMOH"]), min(map(min, seconds.values())), max(map(max, seconds.values()))
        for row, (label, values) in enumerate(seconds.items()):
            mean = np.mean(values)
            axes.errorbar([mean], [row], xerr=[[mean - min(values)], [max(values) - mean]], **styles[label])
            time = np.format_float_positional(mean, precision=2, fractional=False, trim="-")
            axes.text(max(values), row, f"   {time} s, {mean / base:,.1f} x HMOH", va="center", fontsize=9)
        axes.axvline(base, color="black", linewidth=0.8, linestyle=":")
        axes.set(title=name_of(panel[0], "\n"), xscale="log", xlim=(least / 2, most * 4 * (most / least) ** 0.6))
        axes.set_yticks(range(len(seconds)), seconds)
        axes.xaxis.set_major_formatter("{x:g}")
    return figure


def sweep(records: Iterable[dict], x: str, xlabel: str, log=False, seconds=False, title="Ablation") -> plt.Figure:
    """The headline metric against a parameter, of one method at one code length, a line for each data set.

    ``x`` names the parameter in ``record["params"]``; where it is not there, the last word of the label counts, as in
    "m 300". ``log`` is for its axis; ``seconds`` adds a panel with the training time.
    """

    def value(record: dict) -> float:
        try:
            return float(record["params"].get(x, record["label"].split()[-1]))
        except ValueError:
            raise ValueError(f"{record['label']!r} has no number for {x!r}; label it as in 'm 300'.") from None

    chosen = [r | {"x": value(r), "label": name_of(r)} for r in _choose(records, "params", "method", "n_bits", "split")]
    looks = {role: {"color": COLORS[i], "marker": "os^D"[i]} for i, role in enumerate(ROLES)}
    styles = {record["label"]: LINE | looks[record["role"]] for record in chosen}
    measures = {None: _score_name(chosen)} | ({"train_seconds": "training time (seconds)"} if seconds else {})
    where = next(iter(styles)) if len(styles) == 1 else f"{len(styles)} data sets"
    title = f"{title}, {where}: {chosen[0]['method']}, {chosen[0]['n_bits']} bits, {_seeds(chosen)}"
    figure, grid = _grid(title, measures, xlabel, "")
    for axes, measure in grid:
        _means(axes, chosen, "x", measure, styles, even=False)
        axes.set(xscale="log" if log else "linear", ylabel=measures[measure])
        axes.xaxis.set_major_formatter("{x:g}")
    return _legend(figure, columns=2)


def stream_curves(samples: list[int], curves: dict[str, list[float]], title: str) -> plt.Axes:
    """mAP against the samples seen, a line for each entry of ``curves``."""
    figure, axes = plt.subplots(layout="constrained")
    for name, values in curves.items():
        axes.plot(samples, values, marker="o", markersize=4, label=name)
    axes.set(title=title, xlabel="samples seen", ylabel="mAP", xlim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return _legend(figure).axes[0]


def neighbours(queries: Array, found: Array, distances: Array, wrong: Array, title: str, shape=(28, 28)) -> plt.Figure:
    """Query images (n, pixels) and their nearest (n, k, pixels) under their ``distances`` (n, k); wrong ones framed."""
    n, k = distances.shape
    figure, grid = plt.subplots(n, k + 1, figsize=(0.72 * (k + 1), 0.86 * n), squeeze=False, layout="constrained")
    for (row, column), axes in np.ndenumerate(grid):
        axes.imshow((found[row, column - 1] if column else queries[row]).reshape(shape), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{distances[row, column - 1]}" if column else "query", fontsize=8, pad=2)
        framed = column > 0 and wrong[row, column - 1]
        look = {"color": COLORS[1], "linewidth": 3} if framed else {"color": "black", "linewidth": 1}
        plt.setp(axes.spines.values(), visible=column == 0 or framed, **look)
    figure.suptitle(title)
    return figure


def codebook(targets: dict, title: str, xlabel="bit", ylabel="class", aspect="auto") -> plt.Axes:
    """Target codes as an image, one row for each label: dark is +1, light is -1."""
    codes, names = np.stack(list(targets.values())), list(targets) if len(targets) <= 32 else []
    _, axes = plt.subplots(figsize=(7, min(0.5 + 0.22 * len(codes), 7)), layout="constrained")
    axes.imshow(codes, cmap="Blues", vmin=-1.5, vmax=1, aspect=aspect, interpolation="nearest")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, yticks=range(len(names)), yticklabels=names)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(False)
    return axes


def hadamard(matrix: Array) -> plt.Axes:
    """A Hadamard matrix as an image: dark is +1, light is -1."""
    title = f"Hadamard matrix of order {len(matrix)} (dark: +1)"
    return codebook(dict(enumerate(matrix)), title, "column", "row", "equal")


def distributions(simulated: Array, theory: dict[str, tuple], title: str, xlabel: str) -> plt.Axes:
    """How often integers came up in a simulation, beside formulas: ``theory`` is name -> (numbers, probabilities)."""
    figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    numbers, counts = np.unique(simulated, return_counts=True)
    axes.bar(numbers, counts / counts.sum(), color="0.75", label=f"{counts.sum():,} simulated")
    for i, (name, (numbers, probabilities)) in enumerate(theory.items()):
        axes.plot(numbers, probabilities, marker="os^D"[i % 4], linewidth=1.5, color=COLORS[i % 6], label=name)
    axes.set(title=title, xlabel=xlabel, ylabel="probability")
    return _legend(figure).axes[0]


def toy_2d(points: Array, labels: Array, weights: Array, names: Sequence[str], title="Toy example") -> plt.Axes:
    """Points (n, 2) of several classes, and for each row w of ``weights`` the line w[0] x + w[1] y = 0."""
    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    for i, label in enumerate(np.unique(labels)):
        look = {"marker": "os^D"[i % 4], "color": COLORS[(0, 4, 2, 5)[i % 4]]}
        axes.scatter(*points[labels == label].T, s=20, alpha=0.6, label=f"class {label}", **look)
    limits = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim()}  # a line far out must not squeeze the points
    for i, (w, name) in enumerate(zip(weights, names, strict=True)):
        look = {"color": COLORS[(1, 6, 3, 2)[i % 4]], "linestyle": ("--", "-", ":", "-.")[i % 4]}
        axes.axline((0, 0), (-w[1], w[0]), label=name, **look)
    axes.set(title=title, xlabel="first feature", ylabel="second feature", **limits)
    return _legend(figure, columns=2).axes[0]
