"""Records as `study.protocol` returns them, with made-up numbers, for tables and figures."""

import numpy as np

from baselines import named
from study.datasets import BENCHMARKS

METHODS = named("paper")
SETS = {
    "mnist": "mnist",
    "cifar10_vgg16": "cifar10",
    "udhr205": "places205",
    "mediamill10": "nuswide",
}
FEW = ["LSH", "HCOH", "HMOH"]


def record(method="HMOH", dataset="mnist", n_bits=32, seed=0, **changes) -> dict:
    """Return a run with numbers that tell methods, lengths and seeds apart."""
    role = SETS.get(dataset)
    value = 0.1 + 0.07 * METHODS.index(method) - 1 / n_bits + 0.01 * seed
    # HCOH cannot encode at the first checkpoint.
    first = None if method == "HCOH" else value / 2
    return {
        "method": method,
        "published": False,
        "label": method,
        "dataset": dataset,
        "role": role,
        "metric": BENCHMARKS[role].metric if role else "mAP",
        "stand_in_for": None if dataset == role else role,
        "n_bits": n_bits,
        "seed": seed,
        "split": "paper",
        "params": {},
        "settings": {"n_bits": n_bits, "ensemble": True},
        "n_stream": 300,
        "n_database": 1000,
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
    """Return a run for each method, data set, length and seed."""
    return [
        record(method, dataset, n_bits, seed, **changes)
        for method in methods
        for dataset in datasets
        for n_bits in bits
        for seed in seeds
    ]


def ten_seeds(methods=METHODS, datasets=("mnist",), bits=(8, 32), **changes) -> list[dict]:
    """Return runs with ten seeds, five of MIHash; three have curves, over a long stream."""
    runs = []
    for run in grid(methods, datasets, bits, range(10), **changes):
        if run["seed"] > 2:
            run = {key: run[key] for key in run if key not in ("stream", "AUC mAP")}
        else:
            run["samples"] = [5000, 10_000, 100_000]
        if run["method"] != "MIHash" or run["seed"] < 5:
            runs.append(run)
    return runs


def as_published(runs) -> list[dict]:
    """Return the same runs as published, which are a tenth worse."""
    found = []
    for run in runs:
        worse = {key: run[key] - 0.1 for key in ("mAP", "mAP@1000", "P@H2")}
        label = f"{run['label']}, as published"
        found.append(run | worse | {"published": True, "label": label})
    return found
