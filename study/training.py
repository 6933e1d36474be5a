"""Make a model with the paper's parameters, train it on a stream, encode and count distances."""

from __future__ import annotations

import contextlib
import itertools
import time
import warnings
from functools import cache

import numpy as np

import baselines
from hmoh import NotFittedError, OnlineHasher
from metrics import HammingHistogram, hamming_histogram
from study.features import Parts
from study.scores import mean_ap

__all__ = ["compile_method", "evaluate", "fit", "fit_in_steps", "new_model"]


def new_model(
    method, role, n_bits, seed, params=None, published=False, n_threads=1
) -> OnlineHasher:
    """Return an untrained model with the paper's parameters, except those in ``params``.

    A method without a published reading is the described one. Without a role, or with one that the
    paper does not have, the settings are the default ones.
    """
    # Looked up in each call, so that a method that a notebook adds to METHODS is found.
    methods = baselines.METHODS
    if method not in methods:
        raise ValueError(f"there is no method {method!r}; pass one of {', '.join(methods)}.")
    if published:
        methods = methods | baselines.METHODS_AS_PUBLISHED
    if role not in baselines.PAPER_DATASETS:
        role = None
    model = methods[method](role, n_bits, seed)
    if "n_threads" in model.get_params():
        model.set_params(n_threads=n_threads)
    return model.set_params(**params or {})


@cache
def compile_method(method: str, published: bool) -> None:
    """Train on a small stream, so that later training times contain no compilation."""
    rng = np.random.default_rng(0)
    X = rng.random((2500, 10), dtype=np.float32)
    y = rng.integers(3, size=2500)
    new_model(method, "mnist", 8, 0, published=published).fit(X, y)


def evaluate(model, parts: Parts, n_threads) -> HammingHistogram:
    """Encode queries and database, and count the distances between them."""
    queries = model.transform(parts.queries.X)
    database = model.transform(parts.database.X)
    return hamming_histogram(
        queries,
        database,
        parts.queries.y,
        parts.database.y,
        model.n_bits,
        n_threads,
    )


@contextlib.contextmanager
def _without_advice():
    """Ignore advice on features: the paper's settings stay as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def fit(model, parts: Parts) -> float:
    """Fit the model to the stream and return the seconds that it took."""
    start = time.perf_counter()
    with _without_advice():
        model.fit(*parts.stream)
    return time.perf_counter() - start


def fit_in_steps(model, parts: Parts, stops: list[int], metric, n_threads):
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
