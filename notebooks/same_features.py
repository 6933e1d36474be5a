"""Compare two methods on the same features, beside the pair of the paper's protocol.

The protocol gives each method features of its own: on MNIST HMOH gets a kernel, and the others get
unit rows. So a difference between two methods may be one between their features. Here a pair names
the features of both, as the models that ran report them. 07, 12, 14 and the report share it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from beyond import recipes

from baselines import METHODS
from kernels import RBF, UnitLength
from study import tables
from study.profile import SEEDS, by_profile
from study.protocol import run_all
from study.select import samples, values
from study.tables import Table, number, with_interval

__all__ = ["KERNEL", "MAPS", "OTHER_SEEDS", "UNIT_ROWS", "chosen", "mihash", "on", "pair_row"]
__all__ += ["trials", "unseen", "unseen_table"]

# The features that the protocol gives HMOH on MNIST, and those that it gives the others.
KERNEL = METHODS["HMOH"].settings_for("mnist")["feature_map"]
UNIT_ROWS = METHODS["MIHash"].settings_for("mnist")["feature_map"]
K_MEANS = recipes(by_profile(1000, 50))["HMOH, k-means kernel"].params["feature_map"]

# What is chosen for a method is chosen on these seeds, which no comparison uses.
OTHER_SEEDS = by_profile([20, 21, 22], [20])
DIVISORS = by_profile([6.0, 8.0, 10.0, 12.0, 16.0], [6.0, 12.0])
# Of MIHash. The paper's is 1. Each range is wide enough that the best one is inside.
STEPS = {"unit rows, RBF": [1.0, 3.0, 10.0, 30.0, 100.0], "RBF": [0.01, 0.03, 0.1, 0.3, 1.0]}
STEPS |= {"unit rows": [0.1, 0.3, 1.0, 3.0, 10.0], "k-means": [0.03, 0.1, 0.3, 1.0, 3.0]}
MAPS = {"RBF": [KERNEL], "unit rows": [UNIT_ROWS], "k-means": [K_MEANS]}
MAPS["unit rows, RBF"] = [[UnitLength(n_warmup=1000), RBF(300, d)] for d in DIVISORS]


# ---- runs ----------------------------------------------------------------------------


def on(
    method: str,
    feature_map,
    bits: Sequence[int] = (32,),
    seeds: Sequence[int] = SEEDS,
    params: dict | None = None,
    **options,
) -> list[dict]:
    """Return the records of a method on MNIST with these features, labelled by those that it had.

    ``options`` are those of `study.training.run`, such as ``split="unseen"``.
    """
    case = {"method": method, "dataset": "mnist", "params": {"feature_map": feature_map}}
    case["params"] |= params or {}
    records = run_all(case | options | {"n_bits": b, "seed": s} for b in bits for s in seeds)
    return [run | {"label": f"{method} on {tables.features_of(run)}"} for run in records]


def pair_row(ours: list[dict], theirs: list[dict], metric: str, n_bits: int = 32) -> list[str]:
    """Return both labels, both means, the difference, and in how many seeds ours is above."""
    a, b = (values(runs, metric, n_bits=n_bits) for runs in (ours, theirs))
    names = [runs[0]["label"] for runs in (ours, theirs)]
    means = [number(a.mean()), number(b.mean())]
    return [*names, *means, with_interval(a - b), f"{(a > b).sum()} of {len(a)}"]


# ---- HMOH and LSH, for classes that were never labelled ------------------------------


def unseen(bits: Sequence[int]) -> list[tuple[list[dict], list[dict]]]:
    """Return three pairs of records of HMOH and LSH: the protocol's own pair first."""
    maps = (KERNEL, UNIT_ROWS)
    ours, theirs = ([on(m, f, bits, split="unseen") for f in maps] for m in ("HMOH", "LSH"))
    return [(ours[0], theirs[1]), (ours[0], theirs[0]), (ours[1], theirs[1])]


def unseen_table(n_bits: int, metrics: Sequence[str] = ("AUC P@K", "mAP")) -> Table:
    """Return the three pairs of `unseen`, by each metric."""
    pairs = unseen([n_bits])
    rows = []
    for metric in metrics:
        for what, pair in zip(("protocol's own", "same", "same"), pairs, strict=True):
            title = tables.name_of_metric(pair[0], metric)
            rows.append([title, what, *pair_row(*pair, metric, n_bits)])
    head = ["metric", "features", "HMOH", "LSH", "HMOH's", "LSH's", "HMOH minus LSH", "seeds above"]
    title = f"Unseen classes of MNIST, {n_bits} bits, {len(SEEDS)} seeds; paired differences"
    return Table(f"{title} with 95 % intervals", head, rows)


# ---- HMOH and MIHash -----------------------------------------------------------------


def trials(kind: str) -> dict[tuple[int, float | None], float]:
    """Return (number of the map, step) -> mean mAP on `OTHER_SEEDS`; None is HMOH, without a step.

    The maps are those of a kind of `MAPS`.
    """
    jobs = []
    steps = [None, *STEPS[kind]]
    for i, step, seed in itertools.product(range(len(MAPS[kind])), steps, OTHER_SEEDS):
        case = {"dataset": "mnist", "n_bits": 32, "seed": seed, "label": (i, step)}
        case["params"] = {"feature_map": MAPS[kind][i]}
        if step is None:
            jobs.append(case | {"method": "HMOH"})
        else:
            case["params"]["learning_rate"] = step
            jobs.append(case | {"method": "MIHash"})
    found = samples(run_all(jobs), "mAP", "label")
    return {case: float(np.mean([*by_seed.values()])) for case, by_seed in found.items()}


def chosen(kind: str) -> tuple[object, float, object]:
    """Return MIHash's best map and step on `OTHER_SEEDS`, and the best map of HMOH."""
    found = trials(kind)
    i, step = max((case for case in found if case[1] is not None), key=found.get)
    j, _ = max((case for case in found if case[1] is None), key=found.get)
    return MAPS[kind][i], step, MAPS[kind][j]


def mihash(n_bits: int = 32) -> Table:
    """Return HMOH against MIHash: the protocol's own pair, then pairs on the same features."""
    paper = METHODS["MIHash"].make().learning_rate
    rows = []

    def add(what: str, ours, theirs, step: float) -> None:
        params = {} if step == paper else {"learning_rate": step}
        runs = on("HMOH", ours, [n_bits])
        others = on("MIHash", theirs, [n_bits], params=params)
        first, second, *rest = pair_row(runs, others, "mAP", n_bits)
        rows.append([what, f"{step:g}", first, second, *rest])

    add("protocol's own pair", KERNEL, UNIT_ROWS, paper)
    # The unit rows of the recipes in 14 have another centre, which matters to HMOH.
    add("same features", UnitLength(), UnitLength(), paper)
    for kind in ("RBF", "unit rows", "k-means"):
        feature_map, step, _ = chosen(kind)
        add("same features", feature_map, feature_map, paper)
        if step != paper:
            add("same features, step chosen", feature_map, feature_map, step)
    best, step, ours = chosen("unit rows, RBF")
    add("same features, MIHash's bandwidth and step chosen", best, best, step)
    add("each with its bandwidth chosen", ours, best, step)
    head = ["pair", "MIHash's step", "HMOH", "MIHash", "HMOH's mAP", "MIHash's mAP"]
    head += ["HMOH minus MIHash", "seeds above"]
    title = f"mAP on MNIST, {n_bits} bits, {len(SEEDS)} seeds; 95 % intervals of paired differences"
    return Table(title, head, rows)
