"""What to start from on data of your own: features, learners, and how to choose among them.

None of it is the paper's. The notebook 14_beyond shows what each recipe is worth, on data that had
no part in choosing it.

    from beyond import choose, recipes
    scores = choose(X, y, n_bits=32)  # held-out mAP by name, the best first
    best = recipes()[next(iter(scores))]
    model = best.model(n_bits=32, n_samples=len(X)).fit(X, y)
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hmoh import HMOH, OnlineHasher, check_features, check_labels, check_number
from kernels import RBF, Concat, UnitLength
from metrics import mean_average_precision
from ridge import HadamardRidge
from study.select import values

__all__ = ["CANDIDATES", "Recipe", "by_case", "choose", "chosen_without", "recipes"]

LEARNERS: dict[str, type[OnlineHasher]] = {"HMOH": HMOH, "HadamardRidge": HadamardRidge}
N_QUERIES = 1000  # of a held-out trial, at most
LEAST_SAMPLES = 40  # of a held-out trial: four queries, and 18 samples to learn from
# What `choose` compares: the best three of 14_beyond on held-out parts of five sets.
CANDIDATES = (
    "HadamardRidge .001, side by side",
    "HadamardRidge .001, k-means kernel",
    "HadamardRidge .03, side by side",
)


class Recipe(NamedTuple):
    """Hold the name of a method and its parameters, as `study.protocol.run` takes them."""

    method: str
    params: dict

    def model(
        self,
        n_bits: int = 32,
        random_state: int | None = 0,
        n_samples: int | None = None,
    ) -> OnlineHasher:
        """Return an untrained model.

        Parameters
        ----------
        n_bits : int
        random_state : int, optional
        n_samples : int, optional
            How many samples `fit` will get, if it is known. A kernel then has no more anchors than
            that. Otherwise `fit` refuses fewer samples than anchors.
        """
        params = copy.deepcopy(self.params)
        if n_samples is not None:
            check_number(n_samples, "n_samples", least=2)
            _limit_anchors(params.get("feature_map"), n_samples)
        make = LEARNERS[self.method]
        return make(n_bits=n_bits, random_state=random_state, **params)


def _limit_anchors(feature_map, most: int) -> None:
    """Lower the number of anchors of all kernels to `most`, in place."""
    if isinstance(feature_map, RBF):
        feature_map.n_anchors = min(feature_map.n_anchors, most)
        return
    parts = feature_map.maps if isinstance(feature_map, Concat) else feature_map
    for part in parts if isinstance(parts, (list, tuple)) else ():
        _limit_anchors(part, most)


def recipes(n_anchors: int = 1000) -> dict[str, Recipe]:
    """Return all recipes by name: each of four feature maps with each of three learners.

    Parameters
    ----------
    n_anchors : int
        Of the kernels. With k-means a model that learns by `partial_fit` cannot encode before five
        times as many samples.
    """
    unit = UnitLength()
    first = RBF(n_anchors, center=True)
    means = RBF(n_anchors, 5.0, center=True, anchors="kmeans", random_state=0)
    features = {
        "unit rows": unit,
        "kernel": [unit, first],
        "k-means kernel": [unit, means],
        "side by side": [unit, Concat([None, means])],
    }
    learners = {
        "HMOH": ("HMOH", {}),
        "HadamardRidge .001": ("HadamardRidge", {"ridge": 0.001}),
        "HadamardRidge .03": ("HadamardRidge", {"ridge": 0.03}),
    }
    found = {}
    for learner, (method, settings) in learners.items():
        for name, feature_map in features.items():
            params = {"feature_map": feature_map, "codebook": "spread"} | settings
            found[f"{learner}, {name}"] = Recipe(method, copy.deepcopy(params))
    return found


def choose(
    X: np.ndarray,
    y: np.ndarray,
    candidates: Mapping[str, Recipe] | None = None,
    n_bits: int = 32,
    random_state: int | None = 0,
) -> dict[str, float]:
    """Return the held-out mAP of recipes on labelled samples, the best first.

    A tenth of the samples, at most 1,000, are queries. The others are the database, and models
    learn from half of it. Which samples these are is drawn at random. So if the last samples differ
    from the first, the trial does not show it. If samples come in groups, such as parts of one
    document, a query may have others of its group in the database. Queries whose labels no other
    sample has are left out.

    Kernels have no more anchors than there are samples to learn from. Models learn from fewer than
    half of the samples, which favours a large ridge if there are few.

    Parameters
    ----------
    X : (n, d) array
        40 samples or more.
    y : (n,) integers or strings, or (n, L) 0/1
    candidates : dict of str to Recipe, optional
        By default the three of `CANDIDATES`.
    n_bits : int
    random_state : int, optional
        Of the draw and of the models. None draws others each time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> X = rng.normal(size=(600, 5)) + 2 * np.eye(5)[y]
    >>> some = {name: recipes(50)[name] for name in CANDIDATES}
    >>> scores = choose(X, y, some, n_bits=16)
    >>> list(scores) == sorted(scores, key=scores.get, reverse=True)
    True
    """
    # Checked as a whole, so that an error names the row that the caller knows.
    X = check_features(X)
    y = check_labels(y, len(X))
    if len(X) < LEAST_SAMPLES:
        raise ValueError(
            f"{len(X)} samples are too few to hold some out; pass {LEAST_SAMPLES} or more."
        )
    if (y == y[0]).all():
        raise ValueError(
            f"all {len(X)} samples have the label {y[0]}, so no recipe is better than "
            "another; pass samples of two classes or more."
        )
    if candidates is None:
        candidates = {name: recipes()[name] for name in CANDIDATES}
    if not isinstance(candidates, Mapping) or not candidates:
        way = "pass a dict such as {name: recipes()[name]}"
        raise TypeError(f"candidates={candidates!r} are no recipes by name; {way}.")
    check_number(random_state, "random_state", least=0, optional=True)
    rows = np.random.default_rng(random_state).permutation(len(X))
    n_queries = min(N_QUERIES, len(X) // 10)
    queries = rows[:n_queries]
    database = rows[n_queries:]
    learned = database[: len(database) // 2]
    scores = {}
    for name, recipe in candidates.items():
        model = recipe.model(n_bits, random_state, len(learned))
        model.fit(X[learned], y[learned])
        scores[name] = mean_average_precision(
            model.transform(X[queries]),
            model.transform(X[database]),
            y[queries],
            y[database],
        )
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def by_case(records: list[dict], metric: str, rows: str = "n_bits") -> dict[tuple, np.ndarray]:
    """Return a matrix by (data set, label): a row for each value of a field, a column per seed.

    All cases need the same values of the field, which are in ascending order, and the same number
    of seeds.
    """
    cases = dict.fromkeys((record["dataset"], record["label"]) for record in records)
    in_order = sorted({record[rows] for record in records})
    matrices = {}
    for dataset, label in cases:
        own = {"dataset": dataset, "label": label}
        lines = [values(records, metric, **own, **{rows: row}) for row in in_order]
        matrices[dataset, label] = np.array(lines)
    return matrices


def chosen_without(
    scores: Mapping[tuple[str, str], np.ndarray], dataset: str, baseline: str
) -> str:
    """Return the recipe with the best mean gain over all data sets but one.

    Parameters
    ----------
    scores : dict
        By data set and label, such as `by_case` returns.
    dataset : str
        The data set that has no part in the choice.
    baseline : str
        The label that gains are measured from. It can be chosen itself.
    """
    others = dict.fromkeys(name for name, _ in scores if name != dataset)
    if not others:
        raise ValueError(f"there is no data set but {dataset}; pass scores of others.")
    labels = dict.fromkeys(label for _, label in scores)
    if baseline not in labels:
        known = ", ".join(labels)
        raise ValueError(f"baseline={baseline!r} has no scores; pass one of {known}.")
    gains = {}
    for label in labels:
        differences = [scores[name, label] - scores[name, baseline] for name in others]
        gains[label] = np.mean([np.mean(values) for values in differences])
    return max(gains, key=gains.get)
