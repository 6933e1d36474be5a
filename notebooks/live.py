"""Use online hashing as it is meant: items are encoded on arrival, and queries come in between.

A `Stream` holds the arrivals in order, and the queries that are asked at each time. `follow` feeds
it to a model. It keeps the codes that were made on arrival (stale codes), compares them with fresh
codes of the current model, and tries a rule that says when to re-encode everything.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from hmoh import NotFittedError, OnlineHasher
from metrics import hamming_histogram
from study import datasets
from study.datasets import Dataset
from study.features import Map
from study.keep import make_all
from study.scores import mean_ap
from study.training import new_model

__all__ = ["STREAMS", "Stream", "call_times", "changed_bits", "follow", "groups_of", "joining"]
__all__ += ["mapped", "root_weights", "run", "run_all", "score", "shuffled", "turn", "turned"]

# The rule: re-encode everything when this share of the bits of a sample of the database differs.
THRESHOLD = 0.03
SAMPLE = 1000
# Arrivals that are learned together, and then encoded. They stand for single arrivals.
BLOCK = 100


# ---- streams -------------------------------------------------------------------------


class Stream(NamedTuple):
    """Hold arrivals in order, and the queries that are asked in between.

    Attributes
    ----------
    X, y : features and labels of the arrivals
    Q, q : features and labels of all queries
    asked : list of (int, rows)
        After more than this number of arrivals, these rows of Q are asked. They are drawn like
        the arrivals of that time, from all classes that have arrived.
    spare : (k, d) array
        Rows of all classes that do not arrive and are not asked, to take anchors from.
    metric : {"mAP", "mAP@1000"}
    n_warmup : int
        Arrivals that a feature map was fitted on. Nothing can be encoded before them.
    """

    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    q: np.ndarray
    asked: list[tuple[int, np.ndarray]]
    spare: np.ndarray
    metric: str = "mAP"
    n_warmup: int = 0

    def queries(self, n_arrived: int) -> tuple[np.ndarray, np.ndarray]:
        """Return features and labels of the queries that are asked after some arrivals."""
        rows = [rows for start, rows in self.asked if start < n_arrived][-1]
        return self.Q[rows], self.q[rows]


def groups_of(classes: Sequence, sizes: Iterable[int], seed: int | None = None) -> list:
    """Return the classes in groups of these sizes, in random order unless the seed is None.

    >>> groups_of([3, 1, 4, 5], [1, 3])
    [array([3]), array([1, 4, 5])]
    """
    classes = np.asarray(classes)
    if seed is not None:
        classes = np.random.default_rng(seed).permutation(classes)
    return np.split(classes, np.cumsum(list(sizes))[:-1])


def joining(
    data: Dataset,
    seed: int,
    n: int,
    groups: Sequence[np.ndarray],
    stay: bool = True,
    rare: Sequence = (),
    ratio: float = 1.0,
) -> Stream:
    """Return a stream in equal phases; in each phase a group of classes arrives for the first time.

    The classes that are present arrive in random order, and equally often unless they are rare.

    Parameters
    ----------
    data : Dataset
    seed : int
        Draws the queries, as `datasets.split` does, and the order.
    n : int
        Arrivals in all.
    groups : list of arrays of labels
    stay : bool
        The classes of earlier groups go on. Otherwise only the newest group arrives.
    rare : array of labels
        Classes that arrive ``ratio`` times less often than the others.
    ratio : float
    """
    rng = np.random.default_rng(seed)
    parts = datasets.split(data, seed)
    labels = data.labels[parts.database]
    # Class -> its rows that have not arrived yet.
    left = {c: parts.database[labels == c].tolist() for c in data.classes.tolist()}
    bounds = np.linspace(0, n, len(groups) + 1).astype(int)
    arrivals = []
    asked = []
    for number, (start, stop) in enumerate(itertools.pairwise(bounds.tolist())):
        known = np.concatenate(groups[: number + 1])
        present = known if stay else groups[number]
        odds = np.where(np.isin(present, rare), 1 / ratio, 1.0) if len(rare) else None
        shares = None if odds is None else odds / odds.sum()
        for label in rng.choice(present, stop - start, p=shares).tolist():
            if not left[label]:
                raise ValueError(
                    f"{data.name} has too few rows of class {label} for a stream of {n}; lower n."
                )
            arrivals.append(left[label].pop())
        wanted = np.isin(data.labels[parts.queries], known)
        asked.append((start, np.flatnonzero(wanted)))
    spare = rng.permutation(list(itertools.chain(*left.values())))[:SAMPLE]
    return Stream(
        data.features[arrivals],
        data.labels[arrivals],
        data.features[parts.queries],
        data.labels[parts.queries],
        asked,
        data.features[spare],
        data.metric,
    )


def shuffled(data: Dataset, seed: int, n: int) -> Stream:
    """Return a stationary stream."""
    return joining(data, seed, n, [data.classes])


def turn(X: np.ndarray) -> np.ndarray:
    """Return square images, a row each, turned to the left by 90 degrees."""
    side = math.isqrt(X.shape[1])
    if side**2 != X.shape[1]:
        raise ValueError(f"rows of {X.shape[1]} features are not square images; pass mnist.")
    return np.rot90(X.reshape(-1, side, side), axes=(1, 2)).reshape(len(X), -1)


def turned(data: Dataset, seed: int, n: int) -> Stream:
    """Return a stream in whose second half all images are turned by 90 degrees, queries too."""
    stream = shuffled(data, seed, n)
    half = n // 2
    upright = np.arange(len(stream.Q))
    return stream._replace(
        X=np.concatenate([stream.X[:half], turn(stream.X[half:])]),
        Q=np.concatenate([stream.Q, turn(stream.Q)]),
        q=np.concatenate([stream.q, stream.q]),
        asked=[(0, upright), (half, upright + len(upright))],
    )


def _one_by_one(data: Dataset, seed: int, n: int) -> Stream:
    """Return a stream that begins with two classes; the others join one after the other."""
    n_classes = len(data.classes)
    groups = groups_of(data.classes, [2] + [1] * (n_classes - 2), seed)
    return joining(data, seed, n, groups)


STREAMS: dict[str, Callable[[Dataset, int, int], Stream]] = {
    "stationary": shuffled,
    "classes join": _one_by_one,
    "images turn": turned,
}


def root_weights(y: np.ndarray) -> np.ndarray:
    """Return the square root of N / (L n_j), a milder form of ``class_weight="balanced"``.

    n_j counts the samples of the class up to and including this one, the N-th, when L classes have
    been seen.

    >>> root_weights(np.array([7, 7, 7, 9])).round(2)
    array([1.  , 1.  , 1.  , 1.41])
    """
    is_of_class = y[:, None] == np.unique(y)
    counts = is_of_class.cumsum(axis=0)
    n_classes = (counts > 0).sum(axis=1)
    return np.sqrt(np.arange(1, len(y) + 1) / (n_classes * counts[is_of_class]))


def mapped(model: OnlineHasher, stream: Stream, first: np.ndarray | None = None) -> Stream:
    """Return the stream that the feature map of an untrained model has mapped.

    Parameters
    ----------
    model : OnlineHasher
        It is not changed. Without its map it learns from the mapped stream.
    stream : Stream
    first : (k, d) array, optional
        Rows to fit the map on. By default the first arrivals, as the model would do it.
    """
    return _through(Map.of(model), model.n_warmup if first is None else 0, stream, first)


def _through(given: Map, n_warmup: int, stream: Stream, first: np.ndarray | None = None) -> Stream:
    if not given.maps:
        return stream
    through = given.fitted(stream.X[:n_warmup] if first is None else first)
    X, Q, spare = map(through, (stream.X, stream.Q, stream.spare))
    return stream._replace(X=X, Q=Q, spare=spare, n_warmup=n_warmup)


# ---- one run -------------------------------------------------------------------------


def changed_bits(a: np.ndarray, b: np.ndarray, n_bits: int) -> float:
    """Return the share of bits that differ between packed codes of the same items.

    >>> changed_bits(np.array([[1]], np.uint8), np.array([[3]], np.uint8), 8)
    0.125
    """
    return int(np.unpackbits(a ^ b).sum()) / (len(a) * n_bits)


def score(model: OnlineHasher, codes: np.ndarray, stream: Stream, n_arrived: int) -> float:
    """Return the mAP of the queries of this time among the first arrivals with these codes."""
    Q, q = stream.queries(n_arrived)
    labels = stream.y[:n_arrived]
    found = hamming_histogram(model.transform(Q), codes, q, labels, model.n_bits, 1)
    return mean_ap(found, stream.metric)


def follow(
    model: OnlineHasher,
    stream: Stream,
    every: int = 2000,
    check: int = 1000,
    target_sets: int = 1,
    seed: int = 0,
) -> dict:
    """Feed a stream to a model, encode every item on arrival, and search in between.

    An item is encoded before it is learned from, so its code does not know its label. Items that
    arrive before the model can encode get their codes as soon as it can.

    Parameters
    ----------
    model : OnlineHasher
    stream : Stream
    every : int
        Search after so many arrivals.
    check : int
        Apply the rule after so many arrivals: compare the codes of 1,000 random items with those
        that the model would give them now, and re-encode everything if 3 % of the bits differ.
    target_sets : int
        A control. The stream is cut into so many equal parts, and in each of them every class gets
        a new target: the model learns from other labels. Searches know the true labels.
    seed : int
        Draws the items of the rule.

    Returns
    -------
    dict
        Lists with a value for each search: "samples" arrived, the mAP of "stale" codes (made on
        arrival), of "fresh" ones (everything re-encoded by the current model) and by the "rule",
        and "changed", the share of bits in which stale and fresh codes differ. A value is nan while
        the model cannot encode. "reencoded" counts how often the rule re-encoded everything,
        "checks" how often it could have.
    """
    n = len(stream.X)
    rng = np.random.default_rng(seed)
    step = int(stream.y.max()) + 1
    labels = stream.y + step * (np.arange(n) * target_sets // n)
    stale = np.zeros((n, -(-model.n_bits // 8)), np.uint8)
    ruled = stale.copy()
    names = ("samples", "stale", "fresh", "rule", "changed")
    curves: dict = {name: [] for name in names}
    reencoded = checks = n_coded = 0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        if stop > stream.n_warmup:
            with contextlib.suppress(NotFittedError):
                stale[n_coded:stop] = model.transform(stream.X[n_coded:stop])
                ruled[n_coded:stop] = stale[n_coded:stop]
                n_coded = stop
        model.partial_fit(stream.X[start:stop], labels[start:stop])
        if n_coded and stop % check == 0:
            checks += 1
            rows = rng.choice(stop, size=min(SAMPLE, stop), replace=False)
            now = model.transform(stream.X[rows])
            if changed_bits(ruled[rows], now, model.n_bits) >= THRESHOLD:
                ruled[:stop] = model.transform(stream.X[:stop])
                reencoded += 1
        if stop % every == 0:
            values = [math.nan] * 4
            if n_coded:
                fresh = model.transform(stream.X[:stop])
                kinds = (stale[:stop], fresh, ruled[:stop])
                values = [score(model, codes, stream, stop) for codes in kinds]
                values.append(changed_bits(stale[:stop], fresh, model.n_bits))
            for name, value in zip(names, [stop, *values], strict=True):
                curves[name].append(value)
    return {**curves, "reencoded": reencoded, "checks": checks}


@cache
def _data(name: str) -> Dataset:
    return datasets.load(name)


@lru_cache(maxsize=1)
def _stream(dataset: str, kind: str, seed: int, n: int) -> Stream:
    return STREAMS[kind](_data(dataset), seed, n)


@lru_cache(maxsize=2)
def _mapped_stream(given: Map, n_warmup: int, *case) -> Stream:
    """Return a mapped stream, which models with the same maps and warm-up share."""
    return _through(given, n_warmup, _stream(*case))


def run(
    method: str,
    kind: str,
    seed: int,
    label: str = "",
    params: dict | None = None,
    dataset: str = "mnist",
    n: int = 20_000,
    n_bits: int = 32,
    **options,
) -> dict:
    """Return the record of a method with the paper's parameters on one of `STREAMS`.

    ``label`` is the name in tables, by default the method. ``params`` replace parameters of the
    model. The stream has n arrivals. The other options are those of `follow`.
    """
    role = _data(dataset).role
    model = new_model(method, role, n_bits, seed, params)
    stream = _mapped_stream(Map.of(model), model.n_warmup, dataset, kind, seed, n)
    record = {"method": method, "label": label or method, "stream": kind, "seed": seed}
    model.set_params(feature_map=None)
    return record | follow(model, stream, seed=seed, **options)


# ---- many runs, and times ------------------------------------------------------------


def run_all(jobs: list[dict], n_workers: int = 1) -> list[dict]:
    """Return the records of `run` with these arguments, in order, made by so many processes."""
    return make_all(_run, jobs, n_workers)


def _run(job: dict) -> dict:
    return run(**job)


def call_times(
    model: OnlineHasher, X: np.ndarray, y: np.ndarray, n_warm: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the microseconds of single calls: `partial_fit` of a row, and `transform` of a row.

    Parameters
    ----------
    model : OnlineHasher
        It learns from the first n_warm rows in one call. Each other row is then learned from and
        encoded, one after the other.
    X, y : features and labels
    n_warm : int
    """
    model.partial_fit(X[:n_warm], y[:n_warm])
    model.transform(X[:1])
    arrival = []
    query = []
    for i in range(n_warm, len(X)):
        begin = time.perf_counter_ns()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        middle = time.perf_counter_ns()
        model.transform(X[i : i + 1])
        end = time.perf_counter_ns()
        arrival.append(middle - begin)
        query.append(end - middle)
    return np.array(arrival) / 1000, np.array(query) / 1000
