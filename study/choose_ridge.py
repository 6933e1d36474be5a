"""Choose the default ridge of HadamardRidge on held-out halves: python -m study.choose_ridge

A model learns from the first half of a stream. In the second half, 1,000 samples are queries, and
the others are the database. The queries and the rest of the database of the paper's protocol have
no part in it. Of udhr205, parts of one article may be in both halves.

A line of the table is a case: a data set, a seed and the features. It has the headline metric at
32 bits for every ridge, and that of HMOH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hmoh import HMOH, OnlineHasher
from kernels import RBF, UnitLength
from metrics import hamming_histogram
from ridge import HadamardRidge
from study import datasets
from study.datasets import Dataset
from study.evaluation import headline, mean_ap

__all__ = ["cases", "held_out_scores"]

DATASETS = ("mnist", "cifar10_vgg16", "udhr205", "mediamill10")
SEEDS = (0, 1)
RIDGES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
FEATURES: dict[str, Callable] = {
    "linear": UnitLength,
    "kernel": lambda: [UnitLength(), RBF(n_anchors=1000, center=True)],
}
N_BITS = 32
N_QUERIES = 1000


def held_out_scores(
    data: Dataset,
    seed: int,
    make_maps: Callable,
    ridges: tuple[float, ...] = RIDGES,
    n_queries: int = N_QUERIES,
) -> tuple[float, list[float]]:
    """Return the score of HMOH, and that of HadamardRidge for each ridge.

    Parameters
    ----------
    data : Dataset
    seed : int
        Of the split and of the models.
    make_maps : function that returns new feature maps
    ridges : tuple of float
    n_queries : int
        Samples of the second half that are queries.
    """
    stream = datasets.split(data, seed).stream
    half = len(stream) // 2
    learned = stream[:half]
    queries = stream[half : half + n_queries]
    database = stream[half + n_queries :]
    samples = (data.features[learned], data.labels[learned])

    def score(model: OnlineHasher) -> float:
        histogram = hamming_histogram(
            model.transform(data.features[queries]),
            model.transform(data.features[database]),
            data.labels[queries],
            data.labels[database],
            n_bits=N_BITS,
        )
        return mean_ap(histogram, headline(data.role))

    hmoh = HMOH(N_BITS, make_maps(), random_state=seed).fit(*samples)
    model = HadamardRidge(N_BITS, make_maps(), random_state=seed).fit(*samples)
    # The sums do not depend on the ridge.
    return score(hmoh), [score(model.recoded(ridge=ridge)) for ridge in ridges]


def cases() -> Iterator[tuple[str, float, list[float]]]:
    """Yield the name of each case, and its scores."""
    for name in DATASETS:
        data = datasets.load(name)
        for seed in SEEDS:
            for features, make_maps in FEATURES.items():
                scores = held_out_scores(data, seed, make_maps)
                yield f"{name}, seed {seed}, {features}", *scores


def _print_row(label: str, values: list) -> None:
    print(f"{label:30}", *(f"{value:>6}" for value in values), flush=True)


def main() -> None:
    """Print the table, the mean over the cases, and the most that a ridge loses in one of them."""
    _print_row("ridge", [*(f"{ridge:g}" for ridge in RIDGES), "HMOH"])
    rows = []
    for label, hmoh, scores in cases():
        _print_row(label, [f"{value:.3f}" for value in [*scores, hmoh]])
        rows.append([*scores, hmoh])
    table = np.array(rows)
    for features in FEATURES:
        part = table[list(FEATURES).index(features) :: len(FEATURES)]
        _print_row(f"mean, {features}", [f"{v:.4f}" for v in part.mean(axis=0)])
    _print_row("mean", [f"{value:.4f}" for value in table.mean(axis=0)])
    ours = table[:, :-1]
    lost = (ours.max(axis=1, keepdims=True) - ours).max(axis=0)
    _print_row("lost at most", [f"{value:.3f}" for value in lost])


if __name__ == "__main__":
    main()
