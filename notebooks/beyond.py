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
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

from baselines import LSH
from baselines.linear import share_label
from hmoh import HMOH, Codebook, OnlineHasher, check_features, check_labels, check_number, compiled
from kernels import RBF, Concat, UnitLength
from metrics import HammingHistogram, hamming_histogram, mean_average_precision, pack
from ridge import HadamardRidge
from study import datasets, profile, protocol
from study.features import prepare
from study.keep import code_version, kept, make_all, run_key
from study.profile import by_profile
from study.scores import mean_ap
from study.select import values

__all__ = ["CANDIDATES", "Recipe", "by_case", "choose", "chosen_without", "compare"]
__all__ += ["cosine_search", "fit_rivals", "itq", "recipes"]

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


# ---- rivals ----------------------------------------------------------------------------

N_BITS = 32
N_ITERATIONS = 50  # of ITQ, as in its paper, and of logistic regression at most
LEVELS = 1 << 20  # cosines that agree to a millionth are a tie, as those of equal items must be
BLOCK_CELLS = 1 << 24  # queries times items that are ranked at a time
_load = cache(datasets.load)


def itq(V: np.ndarray, seed: int) -> np.ndarray:
    """Return a rotation R that brings centred rows V near to their signs (Gong, CVPR 2011).

    The signs B of V R and the best R for them, U W^T of V^T B = U S W^T, alternate.
    """
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=(V.shape[1], V.shape[1])))[0]
    for _ in range(N_ITERATIONS):
        U, _, Wt = np.linalg.svd(V.T @ np.where(V @ R > 0, 1.0, -1.0))
        R = U @ Wt
    return R


def fit_rivals(
    X: np.ndarray, y: np.ndarray, seed: int, supervised: bool = False
) -> Iterator[tuple[str, int, float, Callable]]:
    """Learn from a stream; yield the name, bytes per item, CPU seconds and encoder of each method.

    Of several labels, logistic regression learns each against the rest, and LDA takes a row once
    for each. ``supervised`` leaves out LDA, slow with many features, and what uses no labels.
    """
    n_bytes = N_BITS // 8
    for make, settings in ((HMOH, {}), (HadamardRidge, {"ridge": 0.001})):
        begin = time.process_time()
        model = make(N_BITS, codebook="spread", random_state=seed, **settings).fit(X, y)
        model.transform(X[:1])  # here the ridge solves its equations
        yield make.__name__, n_bytes, time.process_time() - begin, model.transform

    begin = time.process_time()
    logistic = LogisticRegression(C=10, max_iter=N_ITERATIONS)
    if y.ndim == 2:
        logistic = OneVsRestClassifier(logistic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more steps take long and gain little
        logistic.fit(X, y if y.ndim == 1 else y[:, y.any(axis=0)])
    seconds = time.process_time() - begin
    L = len(logistic.classes_)
    book = Codebook(N_BITS, "spread", n_labels=L, seed=seed).add(range(L))
    targets = np.array([book.targets[label] for label in range(L)])
    # A bit for each class ties the items of a class, as comparing a byte with its number does.
    proba = logistic.predict_proba
    yield "logistic, class", 1, seconds, lambda Z: pack(np.eye(L) > 0)[proba(Z).argmax(axis=1)]
    yield "logistic, probabilities", L, seconds, lambda Z: np.rint(255 * proba(Z))
    yield "logistic, Hadamard signs", n_bytes, seconds, lambda Z: pack(proba(Z) @ targets > 0)
    if supervised:
        return
    yield "LSH", n_bytes, 0.0, LSH(N_BITS, random_state=seed).fit(X).transform
    begin = time.process_time()
    pca = PCA(N_BITS, svd_solver="covariance_eigh").fit(X)
    seconds = time.process_time() - begin
    yield "PCA, signs", n_bytes, seconds, lambda Z: pack(pca.transform(Z) > 0)
    yield "PCA, floats", 4 * N_BITS, seconds, pca.transform
    begin = time.process_time() - seconds
    R = itq(pca.transform(X), seed)
    yield "ITQ", n_bytes, time.process_time() - begin, lambda Z: pack(pca.transform(Z) @ R > 0)
    begin = time.process_time()
    rows, labels = (np.arange(len(y)), y) if y.ndim == 1 else np.nonzero(y)
    # Some pixels are constant, so LDA needs a little shrinkage.
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.001).fit(X[rows], labels)
    A = lda.scalings_[:, : L - 1].astype(np.float32)
    yield "LDA, floats", 4 * A.shape[1], time.process_time() - begin, lambda Z: Z @ A


def cosine_search(Q: np.ndarray, D: np.ndarray, y: np.ndarray, db_y: np.ndarray, metric="mAP"):
    """Return the average precision and P@100 of each row of Q in a search of D, (n, 2) float64.

    They are expectations over all orders of ties, as for codes; nan for a query without relevant.
    """
    Q, D = (normalize(A).astype(np.float32) for A in (Q, D))  # a row of zeros stays zero
    found = []
    for part in np.array_split(np.arange(len(Q)), -(-len(Q) * len(D) // BLOCK_CELLS)):
        shared = share_label(y[part], db_y)
        keys = 2 * np.rint((1 - Q[part] @ D.T) * LEVELS).astype(np.int32) + shared
        keys.sort(axis=1)
        # Each tie with a relevant item, and those between them.
        shape = (len(keys), 2 * int(shared.sum(axis=1).max()) + 1)
        ties = HammingHistogram(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
        found.append(_count_ties(keys, ties.items, ties.relevant))
        if metric != "mAP":
            found[-1][:, 0] = mean_ap(ties, metric, per_query=True)
    return np.concatenate(found)


@compiled
def _count_ties(keys, items, relevant):
    """Count items by ties of sorted keys, 2 * rank + relevance; return expected AP and P@100."""
    values = np.zeros((len(keys), 2))
    for q in range(len(keys)):
        tie, start, hits = -1, 0, 0
        while start < keys.shape[1]:
            end, good = start, 0
            while end < keys.shape[1] and keys[q, end] >> 1 == keys[q, start] >> 1:
                good += keys[q, end] & 1
                end += 1
            n = end - start
            for i in range(n if good else 0):
                inner = hits + 1 + i * (good - 1) / max(n - 1, 1)
                values[q, 0] += good / n * inner / (start + i + 1)
            values[q, 1] += good / n * max(0, min(end, 100) - start) / 100
            if tie < 0 or good or relevant[q, tie]:
                tie += 1
            items[q, tie] += n
            relevant[q, tie] += good
            start = end
            hits += good
        values[q, 0] = values[q, 0] / hits if hits else np.nan
    return values


def _run(place: tuple[dict, Path]) -> list[dict]:
    """Return a record of each method on one split, read from build/records or written there."""
    job, path = place
    return kept(path, lambda: _measured(**job))


def _measured(dataset: str, seed: int, features: str, split: str, n_anchors: int) -> list[dict]:
    job = {"dataset": dataset, "seed": seed, "features": features, "split": split}
    data = _load(dataset)
    model = recipes(n_anchors)[f"HMOH, {features}"].model(N_BITS, seed)
    parts = prepare(model, data, split, seed)
    n = by_profile(None, 1500)
    (X, y), (D, db_y), (Q, query_y) = ((part.X[:n], part.y[:n]) for part in parts[:3])
    records = []
    for method, n_bytes, seconds, encode in fit_rivals(X, y, seed, features != "unit rows"):
        codes, db_codes = encode(Q), encode(D)
        if codes.dtype == np.uint8:
            histogram = hamming_histogram(codes, db_codes, query_y, db_y, n_threads=1)
            ap, p100 = mean_ap(histogram, data.metric), histogram.precision_at_k(100)
        else:
            found = cosine_search(codes, db_codes, query_y, db_y, data.metric)
            ap, p100 = np.nanmean(found, axis=0).tolist()
        record = job | {"n_anchors": n_anchors, "role": data.role, "metric": data.metric}
        record |= {"method": method, "label": f"{method}, {features}", "bytes": n_bytes}
        records.append(record | {"seconds": seconds, data.metric: ap, "P@100": p100})
    return records


def compare(sets: Iterable[str], seeds: Iterable[int], split="paper", n_anchors=1000) -> list[dict]:
    """Return a record of each method on all sets, seeds and features; finished runs are kept.

    Splits are those of `protocol.run`, features those of `recipes`. Quick takes 1,500 rows of each.
    """
    code = code_version(protocol.ROOT, "notebooks/beyond.py", "study/training.py")
    places = []
    for name, seed, kind in itertools.product(sets, seeds, ("unit rows", "side by side")):
        job = {"dataset": name, "seed": seed, "features": kind, "split": split}
        job |= {"n_anchors": n_anchors}
        key = run_key(job, profile.PROFILE, datasets.fingerprint(name), code)
        places.append((job, protocol.RECORDS / f"rivals-{name}-{seed}-{key}.json"))
    found = make_all(_run, places, by_profile(None, 1))
    return list(itertools.chain.from_iterable(found))
