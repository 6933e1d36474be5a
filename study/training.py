"""Make one run: a model with the paper's parameters learns a stream, encodes, and is measured."""

from __future__ import annotations

import contextlib
import itertools
import time
import warnings
from collections.abc import Sequence
from functools import cache

import numpy as np

import baselines
from hmoh import CodebookHasher, NotFittedError, OnlineHasher
from metrics import HammingHistogram, hamming_histogram
from study import datasets, profile
from study.datasets import Dataset
from study.features import Parts, prepare
from study.keep import plain_values
from study.scores import mean_ap, measure, with_derived

__all__ = ["DATABASES", "code_by_labels", "compile_method", "data_of", "evaluate", "fit"]
__all__ += ["fit_in_steps", "method_of", "name_run", "new_model", "run", "settings_of"]

DATABASES = ("learned", "labelled")


# ---- data and models -----------------------------------------------------------------


def data_of(dataset: str | Dataset) -> Dataset:
    """Return a data set by its name, in the quick profile a small part, or as it is given."""
    if isinstance(dataset, Dataset):
        return dataset
    if not isinstance(dataset, str):
        way = "pass a name, or datasets.Dataset(name, features, labels)"
        raise TypeError(f"the data set is a {type(dataset).__name__}; {way}.")
    return _loaded(dataset)


@cache
def _loaded(name: str) -> Dataset:
    data = datasets.load(name)
    return datasets.small_part(data) if profile.QUICK else data


def method_of(name: str, published: bool = False) -> baselines.Method:
    """Return an entry of `baselines.METHODS`, or the published reading of it if it has one."""
    # Looked up in each call, so that a method that a notebook adds to METHODS is found.
    if name not in baselines.METHODS:
        known = ", ".join(baselines.METHODS)
        way = f"pass one of {known}, or add it to baselines.METHODS"
        raise ValueError(f"there is no method {name!r}; {way}.")
    if published and name in baselines.METHODS_AS_PUBLISHED:
        return baselines.METHODS_AS_PUBLISHED[name]
    return baselines.METHODS[name]


def new_model(
    method: str,
    role: str | None,
    n_bits: int,
    seed: int,
    params: dict | None = None,
    published: bool = False,
    n_threads: int | None = 1,
) -> OnlineHasher:
    """Return an untrained model with the paper's parameters, except those in ``params``.

    A method without a published reading is the described one. Without a role, or with one that the
    paper does not have, the settings are the default ones.
    """
    model = method_of(method, published)(_paper_role(role), n_bits, seed)
    if "n_threads" in model.get_params():
        model.set_params(n_threads=n_threads)
    return model.set_params(**params or {})


def _paper_role(role: str | None) -> str | None:
    return role if role in baselines.PAPER_DATASETS else None


def settings_of(method: str, role: str | None, published: bool = False) -> dict:
    """Return the parameters that `new_model` gives a model, without making one."""
    # A method that a notebook added may be a plain function.
    entry = method_of(method, published)
    return entry.settings_for(_paper_role(role)) if isinstance(entry, baselines.Method) else {}


def name_run(method: str, published: bool) -> str:
    """Return the name of a run in tables and figures, if it was given no other."""
    return f"{method}, as published" if published else method


@cache
def compile_method(method: str, published: bool) -> None:
    """Train on a small stream, so that later training times contain no compilation."""
    rng = np.random.default_rng(0)
    X = rng.random((2500, 10), dtype=np.float32)
    y = rng.integers(3, size=2500)
    new_model(method, "mnist", 8, 0, published=published).fit(X, y)


# ---- one run -------------------------------------------------------------------------


def run(
    method: str,
    dataset: str | Dataset,
    n_bits: int,
    seed: int,
    checkpoints: bool | list[int] = False,
    split: str = "paper",
    params: dict | None = None,
    n_queries: int | None = None,
    n_threads: int | None = 1,
    label: str | None = None,
    published: bool = False,
    database: str = "learned",
) -> dict:
    """Train on the stream, encode, evaluate.

    Parameters
    ----------
    method : str
        A name of `baselines.METHODS`.
    dataset : str or Dataset
        A name that `datasets.load` knows, or data of your own.
    n_bits, seed : int
    checkpoints : bool or list of int
        Also measure the headline metric after these numbers of samples. True means after every
        tenth of the stream (on Places205 the paper's shares, from 5 % on).
    split : {"paper", "unseen", "test", "held-out"}
        `datasets.split`, `datasets.unseen_split` with classes that the stream never shows,
        `datasets.split` with queries from the test part only, or `datasets.held_out_split`.
    params : dict, optional
        Parameters of the model other than the paper's, such as ``{"feature_map": None}`` or
        ``{"batch_size": 2}``. `keep.plain` says which values are allowed.
    n_queries : int, optional
        A number other than the paper's.
    n_threads : int, optional
        Threads for training and evaluation; None means all cores. `protocol.run_all` runs one
        process on each core instead.
    label : str, optional
        The name of this run in tables and figures. By default it is the method's name, followed by
        ", as published" if it is.
    published : bool
        Take the method from `baselines.METHODS_AS_PUBLISHED`: what the published benchmark
        computes, faults included.
    database : {"learned", "labelled"}
        What encodes the database: the learned functions, as in the paper, or its labels, as in some
        later papers; `code_by_labels` says how. These are two protocols, never one comparison.

    Returns
    -------
    dict
        "method", "label", "dataset", "n_bits", "seed", "split", "n_queries", "published" as above;
        "role", "stand_in_for" and "metric" of the data; "n_stream" and "n_database"; and

        - "params" as given and "settings", all parameters of the model by scikit-learn's deep
          names such as "feature_map__n_anchors", both as values of `keep.plain`;
        - "train_seconds" without compilation: to fit the feature map and map the stream, and to
          learn from it. Runs that share a map share the time of mapping, measured once;
        - what `scores.measure` returns: metrics and curves;
        - with checkpoints "samples" and "stream", the headline metric after each of them. It is
          None where a method cannot encode yet;
        - with a labelled database "database", and "n_without_code", the number of its items that
          the functions encode all the same;
        - the derived metrics of `scores.METRICS`, as far as the record has the values for them.
    """
    if database not in DATABASES:
        raise ValueError(f'database={database!r} is unknown; pass "learned" or "labelled".')
    if database == "labelled" and checkpoints:
        way = 'leave them out, or pass database="learned"'
        raise ValueError(f"checkpoints={checkpoints} are for learned databases only; {way}.")
    data = data_of(dataset)
    model = new_model(method, data.role, n_bits, seed, params, published, n_threads)
    settings = plain_values(model.get_params())
    as_published = published and method in baselines.PUBLISHED_FAULTS
    parts = prepare(model, data, split, seed, n_queries, as_published)
    if parts.mapped:
        model.set_params(feature_map=None)
    n_stream = len(parts.stream.X)
    record = {
        "method": method,
        "label": label or name_run(method, published),
        "dataset": data.name,
        "role": data.role,
        "stand_in_for": data.stand_in_for,
        "metric": data.metric,
        "n_bits": n_bits,
        "seed": seed,
        "split": split,
        "published": published,
        "params": plain_values(params or {}),
        "settings": settings,
        "n_stream": n_stream,
        "n_queries": len(parts.queries.X),
        "n_database": len(parts.database.X),
    }
    compile_method(method, published)
    if checkpoints is True:
        shares = data.benchmark.checkpoints if data.benchmark else datasets.TENTHS
        checkpoints = [round(share * n_stream) for share in shares]
    if checkpoints:
        stops = [stop for stop in checkpoints if stop < n_stream]
        seconds, curve = fit_in_steps(model, parts, stops, data.metric, n_threads)
    else:
        seconds = fit(model, parts)
    record["train_seconds"] = parts.seconds + seconds
    codes = None
    if database == "labelled":
        codes, has_code = code_by_labels(model, parts)
        record |= {"database": database, "n_without_code": int((~has_code).sum())}
    histogram = evaluate(model, parts, n_threads, codes)
    record |= measure(histogram, data.metric, len(parts.database.X))
    if checkpoints:
        if len(stops) < len(checkpoints):
            stops.append(checkpoints[len(stops)])
            curve.append(record[data.metric])
        record |= {"samples": stops, "stream": curve}
    return with_derived(record)


def evaluate(
    model: OnlineHasher, parts: Parts, n_threads: int | None, codes: np.ndarray | None = None
) -> HammingHistogram:
    """Encode queries and database, and count the distances between them.

    ``codes`` are those of the database, if the learned functions do not give them.
    """
    queries, database = parts.queries, parts.database
    if codes is None:
        codes = model.transform(database.X)
    asked = model.transform(queries.X)
    return hamming_histogram(asked, codes, queries.y, database.y, model.n_bits, n_threads)


def code_by_labels(model: OnlineHasher, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Return packed codes of the database by its labels, and which items have one, (n,) bool.

    An item gets the code that the method gives to its label, or to exactly its set of labels. This
    is the target code of methods with a codebook. Of others it is what ``label_codes_`` says, a
    dict like `targets_` and `label_set_targets_`, and without it the commonest code of the streamed
    items with these labels. The learned functions encode items whose labels have no code, because
    they were never streamed.
    """
    stream, database = parts.stream, parts.database
    both = np.concatenate([stream.y, database.y])
    labels, number = np.unique(both, axis=0, return_inverse=True)
    of_stream, of_database = np.split(number.ravel(), [len(stream.y)])
    given = _codes_of_labels(model)
    learned = model.transform(stream.X) if given is None else None
    codes = model.transform(database.X)
    has_code = np.zeros(len(codes), bool)
    for k in np.unique(of_stream):
        if given is None:
            distinct, counts = np.unique(learned[of_stream == k], axis=0, return_counts=True)
            code = distinct[counts.argmax()]
        else:
            is_set = labels.ndim == 2
            key = tuple(np.flatnonzero(labels[k]).tolist()) if is_set else labels[k].item()
            if key not in given:
                continue
            code = np.packbits(np.asarray(given[key]) > 0, bitorder="little")
        codes[of_database == k] = code
        has_code |= of_database == k
    return codes, has_code


def _codes_of_labels(model: OnlineHasher) -> dict | None:
    """Return label, or tuple of labels, to its code of +1 and -1; None if the method has none."""
    if isinstance(model, CodebookHasher):
        return model.targets_ | model.label_set_targets_
    return getattr(model, "label_codes_", None)


@contextlib.contextmanager
def _without_advice():
    """Ignore advice on features: the paper's settings stay as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def fit(model: OnlineHasher, parts: Parts) -> float:
    """Fit the model to the stream and return the seconds that it took."""
    start = time.perf_counter()
    with _without_advice():
        model.fit(*parts.stream)
    return time.perf_counter() - start


def fit_in_steps(
    model: OnlineHasher, parts: Parts, stops: Sequence[int], metric: str, n_threads: int | None
) -> tuple[float, list[float | None]]:
    """Fit the model to the stream; return the seconds, and the metric after each of the stops.

    The metric is None while the method still collects its first samples. The stops are before the
    end of the stream.
    """
    X, y = parts.stream
    classes = None
    if model.needs_labels and y.ndim == 1:
        classes = np.unique(y)
    seconds = 0.0
    curve = []
    weights = None
    for start, stop in itertools.pairwise([0, *stops, len(X)]):
        begin = time.perf_counter()
        with _without_advice():
            model.partial_fit(X[start:stop], y[start:stop], classes=classes)
        seconds += time.perf_counter() - begin
        if stop == len(X):
            break
        value = None
        if stop >= parts.n_warmup:
            with contextlib.suppress(NotFittedError):
                before, weights = weights, model.weights_
                # Hash functions that have not changed, as those of LSH, have the same value.
                if np.array_equal(before, weights):
                    value = curve[-1]
                else:
                    value = mean_ap(evaluate(model, parts, n_threads), metric)
        curve.append(value)
    # As `fit` does at its end.
    begin = time.perf_counter()
    model.close()
    return seconds + time.perf_counter() - begin, curve
