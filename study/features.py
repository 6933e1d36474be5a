"""Cut a data set into stream, database and queries, and map their features once for many runs.

A feature map depends on the data, the split and the seed, but not on the method or the code length.
So the runs of one process that have them in common share the mapped features. The map is fitted on
the first samples of the stream only, exactly as a model would fit it. For a method as published it
is fitted as the published programs do it, on data that a stream has not shown yet.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hmoh import OnlineHasher
from kernels import RBF
from study import datasets
from study.datasets import Dataset, Split
from study.keep import plain

__all__ = ["SPLITS", "Map", "Part", "Parts", "prepare"]

BLOCK_ROWS = 8192  # rows that are mapped at a time
MOST_VALUES = 1 << 27  # of mapped features that are kept: half a gigabyte
# Of maps and seeds. `protocol.run_all` runs through one after the other, but notebooks may take two
# in turn.
KEPT = 2
BANDWIDTH_ROWS = 2000  # that the published HMOH sets its bandwidth by


def _test_split(data: Dataset, seed: int) -> Split:
    return datasets.split(data, seed, queries="test")


SPLITS: dict[str, Callable[[Dataset, int], Split]] = {
    "paper": datasets.split,
    "unseen": datasets.unseen_split,
    "test": _test_split,
    "held-out": datasets.held_out_split,
}


class Part(NamedTuple):
    """Hold features and labels of a part of a data set."""

    X: np.ndarray
    y: np.ndarray


class Parts(NamedTuple):
    """Hold the parts of a split.

    If they are `mapped`, a model needs no map. Then `n_warmup` is how many samples of the stream
    the map was fitted on, before which no model can encode, and `seconds` is the time to fit the
    map and to map the stream.
    """

    stream: Part
    database: Part
    queries: Part
    mapped: bool = False
    n_warmup: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Map:
    """Hold a feature map, or several in turn; it equals another of equal classes and parameters."""

    text: str
    classes: tuple[type, ...]
    maps: tuple = field(compare=False)

    @classmethod
    def of(cls, model: OnlineHasher) -> Map:
        """Return the map of a model; it has no maps if the model has none."""
        given = model.feature_map
        maps = given if isinstance(given, (list, tuple)) else [] if given is None else [given]
        return cls(json.dumps(plain(given)), tuple(map(type, maps)), tuple(maps))

    def fitted(
        self, first: np.ndarray, seen: np.ndarray | None = None
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Fit copies of the maps in turn on the first rows, and return the function that maps.

        ``seen`` are other rows, to fit the first of the maps on.
        """
        maps = copy.deepcopy(self.maps)
        for number, part in enumerate(maps):
            rows = seen if seen is not None and number == 0 else first
            first = part.fit(rows).transform(first)

        def through(X: np.ndarray) -> np.ndarray:
            for part in maps:
                X = part.transform(X)
            return X

        return through


def prepare(
    model: OnlineHasher,
    data: Dataset,
    split: str,
    seed: int,
    n_queries: int | None = None,
    published: bool = False,
) -> Parts:
    """Return the parts of a split of `SPLITS`, mapped by the feature map of an untrained model.

    Without its map the model learns from them what it would learn with it, up to the rounding of
    matrix products. If the mapped features would need more than half a gigabyte, the features stay
    as they are, and the model needs its map. ``published`` fits the map as the published programs.

    The published loaders centre on the mean of all rows, later samples and queries included
    (lmbxmu/mycode, .../+Datasets/mnist.m, and fcakir/mihash, online-hashing/+Datasets/cifar.m, line
    41 of both). The published HMOH draws its anchors from the first half of the database, and sets
    the bandwidth by their distances to 2,000 rows of the second half (lmbxmu/mycode, .../HMOH.m,
    lines 26 to 33).
    """
    if split not in SPLITS:
        known = ", ".join(f'"{name}"' for name in SPLITS)
        raise ValueError(f"split={split!r} is unknown; pass one of {known}.")
    case = (data, split, seed, n_queries)
    given = Map.of(model)
    if not given.maps:
        return _raw_parts(*case)
    # The number of samples that the model itself would take.
    parts = _mapped_parts(*case, given, model.n_warmup, published)
    if parts is None and published:
        raise ValueError(
            f"the features of {data.name} are too many to fit a map as published; "
            "raise MOST_VALUES of study/features.py, or take a smaller set."
        )
    return _raw_parts(*case) if parts is None else parts


def _rows(data: Dataset, split: str, seed: int, n_queries: int | None) -> Split:
    if n_queries is not None:
        data = replace(data, n_queries=n_queries)
    return SPLITS[split](data, seed)


def _seen_by_published(part, data: Dataset, rows: Split, n_warmup: int, seed: int) -> np.ndarray:
    """Return the rows that a published program fits its map on."""
    if not isinstance(part, RBF):
        return data.features
    n_half = len(rows.database) // 2
    rng = np.random.default_rng(seed)
    anchors = rng.permutation(n_half)[:n_warmup]
    others = n_half + rng.permutation(n_half)[:BANDWIDTH_ROWS]
    return data.features[rows.database[np.concatenate([anchors, others])]]


# Data sets are told apart by identity, so that two with the same name share nothing.
@lru_cache(maxsize=1)
def _raw_parts(data, split, seed, n_queries) -> Parts:
    rows = _rows(data, split, seed, n_queries)
    return Parts(*(Part(data.features[part], data.labels[part]) for part in rows))


@lru_cache(maxsize=KEPT)
def _mapped_parts(data, split, seed, n_queries, given: Map, n_warmup, published) -> Parts | None:
    """Return the parts with mapped features, or None if they are too large to keep."""
    rows = _rows(data, split, seed, n_queries)
    n_stream = len(rows.stream)

    begin = time.perf_counter()
    seen = None
    if published:
        seen = _seen_by_published(given.maps[0], data, rows, n_warmup, seed)
    through = given.fitted(data.features[rows.stream[:n_warmup]], seen)
    seconds = time.perf_counter() - begin

    width = through(data.features[:1]).shape[1]
    stream_leads = np.array_equal(rows.database[:n_stream], rows.stream)
    n_rows = len(rows.database) + len(rows.queries)
    n_rows += 0 if stream_leads else n_stream
    if n_rows * width > MOST_VALUES:
        return None

    def map_into(Z: np.ndarray, numbers: np.ndarray) -> None:
        for start in range(0, len(numbers), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            Z[block] = through(data.features[numbers[block]])

    stream, database, queries = (np.empty((len(part), width), np.float32) for part in rows)
    if stream_leads:
        stream = database[:n_stream]

    begin = time.perf_counter()
    map_into(stream, rows.stream)
    seconds += time.perf_counter() - begin

    n_done = n_stream if stream_leads else 0
    map_into(database[n_done:], rows.database[n_done:])
    map_into(queries, rows.queries)
    features = (stream, database, queries)
    parts = [Part(Z, data.labels[part]) for Z, part in zip(features, rows, strict=True)]
    return Parts(*parts, True, n_warmup, seconds)
