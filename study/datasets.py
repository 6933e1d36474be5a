"""Load the data sets, and split them into stream, database and queries.

    python -m study.datasets               # list the data sets, and say how to get missing ones
    python -m study.datasets fetch NAME    # download the paper's cifar10, places205 or nuswide

>>> parts = split(load("mnist"), seed=0)
>>> len(parts.stream), len(parts.database), len(parts.queries)
(20000, 69000, 1000)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hmoh import check_features, check_labels
from study import originals, shipped
from study.keep import plain_values

__all__ = ["BENCHMARKS", "NAMES", "TENTHS", "Benchmark", "Dataset", "Split", "available"]
__all__ += ["fingerprint", "held_out_split", "load", "small_part", "split", "title_of"]
__all__ += ["unseen_split"]

# Of all sets that `load` knows.
NAMES = (*shipped.SHIPPED, *originals.ORIGINALS)
TENTHS = tuple(i / 10 for i in range(1, 11))
# Where rows have several labels, `unseen_split` leaves every class at least this many rows.
FEWEST = 20


class Benchmark(NamedTuple):
    """Say what the paper did with a data set and printed about it.

    `name` is the role of the data, by which methods have settings and the paper has values. `title`
    is for figures. `table` is the number of the paper's table, which `notebook` repeats. `metric`
    is the headline metric: what the table calls mAP. It is measured along the stream after the
    shares in `checkpoints`.
    """

    name: str
    title: str
    n_queries: int
    stream_size: int
    table: int
    notebook: str
    metric: str = "mAP"
    checkpoints: tuple[float, ...] = TENTHS

    @property
    def original(self) -> originals.Original | None:
        """Return the paper's own file; None if it ships."""
        return originals.ORIGINALS.get(self.name)


_OF_PLACES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_LISTED = (
    Benchmark("mnist", "MNIST", 1000, 20_000, 4, "03_mnist"),
    Benchmark("cifar10", "CIFAR-10", 1000, 20_000, 2, "04_cifar10"),
    Benchmark("places205", "Places205", 4100, 100_000, 3, "05_places205", "mAP@1000", _OF_PLACES),
    Benchmark("nuswide", "NUS-WIDE", 2000, 40_000, 5, "06_nuswide"),
)
BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _LISTED}


def title_of(name: str, benchmark: Benchmark | None) -> str:
    """Return the name of a data set in tables and figures; without a benchmark its own.

    >>> title_of("udhr205", BENCHMARKS["places205"])
    'udhr205 (STAND-IN for Places205)'
    """
    if benchmark is not None and name != benchmark.name:
        return f"{name} (STAND-IN for {benchmark.title})"
    return benchmark.title if benchmark else name


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold the features and labels of a data set: one of `load`, or one of your own.

    Attributes
    ----------
    name : str
    features : (n, d) float32
        Other numbers are converted. What is float32 in C order already is not copied, so do not
        change it while the data set is in use.
    labels : (n,) integers or strings, or (n, L) 0/1 if a row may have several labels
    test_rows : (k,) integers
        The rows of the source's test part, for `split(dataset, seed, queries="test")`.
    n_queries, stream_size : int
        By default those of the benchmark; without one a tenth of the rows, at most 1,000, and all.
        Every class gets as many queries as another where rows have one label.
    benchmark : Benchmark, optional
        That of the paper that this is or replaces. It decides the settings of methods, the headline
        metric and the printed values to compare with. Data without one have none of these.
    notes : str
        How the features were made, and which sizes differ from the paper's.
    groups : (n,) integers, optional
        With single labels, rows of a group (an article of `udhr205`) are on one side of a split.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = Dataset("mine", rng.random((500, 8)), rng.integers(5, size=500))
    >>> data, data.n_queries, data.title, data.metric
    (Dataset('mine', 500 x 8 features, 5 classes), 50, 'mine', 'mAP')
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    test_rows: np.ndarray = field(default_factory=lambda: np.arange(0))
    n_queries: int | None = None
    stream_size: int | None = None
    benchmark: Benchmark | None = None
    notes: str = ""
    groups: np.ndarray | None = None

    def __post_init__(self) -> None:
        fill = partial(object.__setattr__, self)
        fill("features", check_features(self.features, name="features"))
        fill("labels", check_labels(self.labels, len(self.features), "labels"))
        paper = self.benchmark
        if self.n_queries is None:
            fill("n_queries", paper.n_queries if paper else _default_queries(self))
        if self.stream_size is None:
            fill("stream_size", paper.stream_size if paper else len(self.labels))

    @property
    def role(self) -> str | None:
        """Return the name of the benchmark; None for data of your own."""
        return self.benchmark.name if self.benchmark else None

    @property
    def stand_in_for(self) -> str | None:
        """Return the name of the original, if this is a stand-in."""
        return None if self.name == self.role else self.role

    @property
    def metric(self) -> str:
        """Return the name of the headline metric."""
        return self.benchmark.metric if self.benchmark else "mAP"

    @property
    def title(self) -> str:
        """Return the name in tables and figures."""
        return title_of(self.name, self.benchmark)

    @property
    def multi_label(self) -> bool:
        """Tell whether a row may have several labels."""
        return self.labels.ndim == 2

    @property
    def classes(self) -> np.ndarray:
        """Return the classes: label values, or column numbers if rows may have several labels."""
        return np.arange(self.labels.shape[1]) if self.multi_label else np.unique(self.labels)

    def __repr__(self) -> str:
        n, d = self.features.shape
        what = f", STAND-IN for {self.stand_in_for}" if self.stand_in_for else ""
        return f"Dataset({self.name!r}, {n} x {d} features, {len(self.classes)} classes{what})"


def _default_queries(data: Dataset) -> int:
    """Return a tenth of the rows, at most 1,000, and not more than half of any class."""
    n = max(1, min(1000, len(data.labels) // 10))
    if data.multi_label:
        return n
    _, counts = np.unique(data.labels, return_counts=True)
    return max(1, min(n // len(counts), int(counts.min()) // 2)) * len(counts)


class Split(NamedTuple):
    """Hold the row numbers of the three parts of a data set.

    The stream is the first part of the database, except in `unseen_split`.
    """

    stream: np.ndarray
    database: np.ndarray
    queries: np.ndarray


def load(name: str) -> Dataset:
    """Read a data set of `NAMES`, and check its file.

    The paper's names "cifar10", "places205" and "nuswide" give the paper's features if their file
    is in $HMOH_DATA or data/. Otherwise they give the stand-in, and a line on stderr says so: a log
    is silent by default, and a warning can be turned into an error.
    """
    source, path = _resolve(name)
    if path is not None:
        arrays = originals.read_original(name, path)
        return Dataset(name, *arrays, benchmark=BENCHMARKS[name], notes="Features as they are.")
    if source != name:
        print(
            f"{name}: {originals.ORIGINALS[name].file} is missing; using the STAND-IN {source}. "
            f"`python -m study.datasets fetch {name}` downloads the paper's features.",
            file=sys.stderr,
        )
    of_set = shipped.SHIPPED[source]
    return Dataset(
        source,
        **shipped.read_shipped(source),
        n_queries=of_set.n_queries,
        benchmark=BENCHMARKS[of_set.role],
        notes=of_set.notes,
    )


def fingerprint(dataset: str | Dataset) -> str:
    """Return a text that changes when the content of a data set changes.

    Runs and verdicts that are kept on disk are stored under it. For a set that ships it is the
    sha256 that its file must have, for an original see `originals.fingerprint`; an original that is
    missing has that of its stand-in. For data of your own it is a hash of all arrays and sizes.
    """
    if isinstance(dataset, Dataset):
        content = vars(dataset) | {"benchmark": dataset.role}
        return hashlib.sha256(json.dumps(plain_values(content)).encode()).hexdigest()
    source, path = _resolve(dataset)
    if path is not None:
        return originals.fingerprint(path)
    return shipped.SHA256[f"{source}.npz"]


def _resolve(name: str) -> tuple[str, Path | None]:
    """Return the set that `load` reads for a name, and the path of the original if there is one."""
    if name in shipped.SHIPPED:
        return name, None
    if name not in originals.ORIGINALS:
        known = ", ".join(f'"{known}"' for known in NAMES)
        raise ValueError(f"there is no data set {name!r}; pass {known}.")
    path = originals.find(name)
    return (originals.ORIGINALS[name].stand_in, None) if path is None else (name, path)


def small_part(data: Dataset) -> Dataset:
    """Return a part of a data set for the quick profile, with a short stream and few queries."""
    n_classes = len(data.classes)
    n_queries = 10 * n_classes if n_classes < 100 else data.n_queries // 5
    if data.multi_label:
        n_queries = 200
    notes = "A small part, for the quick profile."
    data = replace(data, n_queries=n_queries, stream_size=2500, notes=notes)
    if len(data.labels) <= 30_000:
        return data
    is_test = np.isin(np.arange(len(data.labels)), data.test_rows)
    train, test = np.flatnonzero(~is_test)[:5000], np.flatnonzero(is_test)[:1000]
    rows = np.concatenate([train, test])
    return _take(data, rows, test_rows=np.arange(len(train), len(rows)))


def _take(data: Dataset, rows: np.ndarray, **changes) -> Dataset:
    groups = None if data.groups is None else data.groups[rows]
    arrays = {"features": data.features[rows], "labels": data.labels[rows], "groups": groups}
    return replace(data, **arrays, **changes)


def split(dataset: Dataset, seed: int, queries: str = "all") -> Split:
    """Split a data set into parts of the paper's sizes (Sec. 4.1).

    Queries are drawn first, from all rows. The other rows, shuffled, are the database. The first
    part of the database is the stream: at most half of it, as in `udhr205`, `mediamill10` and
    `reuters10`. The queries of `udhr205` come from articles that are drawn first and are in no
    other part, so no sentence is on both sides. The other rows of these articles are not used.

    Parameters
    ----------
    dataset : Dataset
    seed : int
        Decides the queries and the order of the stream.
    queries : {"all", "test"}
        Where queries are drawn from: all rows, or only `dataset.test_rows`. Where rows have
        several labels, fewer test rows than `n_queries` give fewer queries.

    Notes
    -----
    The published loaders are in github.com/lmbxmu/mycode, in the folder
    ONLINE_HASHING_UTILS/MY_ONLINE_HASHING_METHOD/+Datasets. Those of MNIST and CIFAR-10 join
    training and test rows, and draw 100 queries of each class from all of them (`mnist.m` and
    `cifar.m`, lines 31 to 46). That of Places205 draws 20 of each class (`places.m`, lines 33 to
    43). That of NUS-WIDE takes the file's fixed test part I_te (`nuswide.m`, lines 29 to 36), but
    the paper says only that 2,000 images are chosen. Here they are drawn from all rows too.
    """
    rng = np.random.default_rng(seed)
    n_rows = len(dataset.labels)
    if queries == "all":
        candidates = np.arange(n_rows)
    elif queries == "test":
        candidates = dataset.test_rows
        if len(candidates) == 0:
            raise ValueError(
                f'{dataset.name} has no test part to draw queries from; pass queries="all".'
            )
    else:
        raise ValueError(f'queries={queries!r} is unknown; pass "all" or "test".')
    all_rows = np.ones(n_rows, bool)
    drawn, free = _draw_queries(dataset, candidates, all_rows, rng)
    database = rng.permutation(np.flatnonzero(free))
    n_stream = min(dataset.stream_size, len(database) // 2)
    return Split(database[:n_stream], database, drawn)


def unseen_split(dataset: Dataset, seed: int) -> Split:
    """Split a data set by classes: the stream has some classes, database and queries the others.

    This is the paper's experiment on unseen classes: 25 % of them, drawn at random and rounded half
    up, are unseen, 3 of 10 or 51 of 205. The stream has rows with only seen labels, database and
    queries rows with only unseen ones. Rows with both kinds are not used.

    Where rows have several labels, at most half of the rows are queries, and the classes are drawn
    again while one class, seen or unseen, has fewer than 20 rows left. In `reuters10` this puts
    grain, wheat and corn on one side, because wheat and corn hardly ever occur without grain.
    Otherwise a single unseen class could remain, and a search among the rows of one class is
    perfect for any codes. In `mediamill10`, only 16 of the 120 ways to choose three remain.

    Parameters
    ----------
    dataset : Dataset
    seed : int
        Decides the classes, the queries and the order of the stream.

    Notes
    -----
    The paper says 75 % and 25 %, and ten classes cannot be split so. The published loaders
    round as here, and draw the queries from all rows of the unseen classes (`mnist_zs.m` and
    `cifar_zs.m`, lines 31 and 44 to 67, and `places_zs.m`, lines 43 to 48; `split` names their
    folder).
    """
    rng = np.random.default_rng(seed)
    only_seen, only_unseen = _divide_classes(dataset, rng)
    candidates = np.flatnonzero(only_unseen)
    queries, free = _draw_queries(dataset, candidates, only_unseen, rng)
    database = rng.permutation(np.flatnonzero(free & only_unseen))
    stream = rng.permutation(np.flatnonzero(free & only_seen))
    return Split(stream[: dataset.stream_size], database, queries)


def held_out_split(dataset: Dataset, seed: int) -> Split:
    """Split the stream of `split` as `split` would, to choose parameters without its queries.

    A tenth of the stream are queries, but not more than in `split`. The other rows of the stream
    are the database. The seed is that of `split`, and also draws the held-out queries.
    """
    rows = split(dataset, seed).stream
    n_queries = min(dataset.n_queries, len(rows) // 10)
    sizes = {"n_queries": n_queries, "stream_size": len(rows)}
    part = _take(dataset, rows, test_rows=np.arange(0), **sizes)
    return Split(*(rows[held_out] for held_out in split(part, seed)))


def _divide_classes(dataset: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw the unseen classes; mark the rows with only seen and those with only unseen labels."""
    n_unseen = int(0.25 * len(dataset.classes) + 0.5)
    for _ in range(1000):
        classes = rng.permutation(dataset.classes)
        unseen = _has_any(dataset, classes[:n_unseen])
        seen = _has_any(dataset, classes[n_unseen:])
        only_seen = seen & ~unseen
        only_unseen = unseen & ~seen
        if not dataset.multi_label:
            return only_seen, only_unseen
        used = dataset.labels[only_seen | only_unseen]
        if used.sum(axis=0).min() >= FEWEST:
            return only_seen, only_unseen
    raise ValueError(
        f"the classes of {dataset.name} were divided in 1,000 ways, and each way left "
        f"a class with fewer than {FEWEST} rows that do not have both seen and unseen "
        "labels; take a larger data set."
    )


def _has_any(dataset: Dataset, classes: np.ndarray) -> np.ndarray:
    """Mark the rows that have at least one of these labels."""
    labels = dataset.labels
    return labels[:, classes].any(axis=1) if labels.ndim == 2 else np.isin(labels, classes)


def _draw_queries(
    dataset: Dataset, candidates: np.ndarray, searched: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw queries among the candidates; mark the rows left for stream and database.

    `candidates` are row numbers. `searched` marks the rows that are a query or in the database.
    """
    drawn = rng.permutation(candidates)
    free = np.ones(len(dataset.labels), bool)
    if dataset.multi_label:
        n_queries = min(dataset.n_queries, searched.sum() // 2)
        queries = drawn[:n_queries]
    else:
        each = dataset.n_queries // len(dataset.classes)
        if dataset.groups is not None:
            held_out = _hold_out(dataset, drawn, each, rng)
            drawn = drawn[held_out[drawn]]
            free = ~held_out
        queries = _first_of_each_class(dataset, drawn, each)
    free[queries] = False

    n_left = (free & searched).sum()
    if len(queries) == 0 or n_left == 0:
        raise ValueError(
            f"{dataset.name} leaves {len(queries)} queries and {n_left} rows to search, "
            "but both need one or more; take another seed or a larger data set."
        )
    return queries, free


def _first_of_each_class(dataset: Dataset, drawn: np.ndarray, each: int) -> np.ndarray:
    """Return the first `each` of the drawn rows of every class, class by class."""
    by_class = drawn[np.argsort(dataset.labels[drawn], kind="stable")]
    labels = dataset.labels[by_class]
    classes, starts, counts = np.unique(labels, return_index=True, return_counts=True)
    if len(counts) and counts.min() < each:
        fewest = counts.argmin()
        n_possible = counts[fewest] * len(dataset.classes)
        raise ValueError(
            f"class {classes[fewest]} of {dataset.name} has {counts[fewest]} rows to draw "
            f"queries from, but {each} are needed; pass "
            f"dataclasses.replace(dataset, n_queries={n_possible}) or fewer."
        )
    places = starts[:, None] + np.arange(each)
    return by_class[places].ravel()


def _hold_out(dataset: Dataset, drawn: np.ndarray, each: int, rng) -> np.ndarray:
    """Mark the rows of the groups that queries come from.

    Groups are taken in random order until every class has `each` of the drawn rows in them.
    """
    groups, group = np.unique(dataset.groups, return_inverse=True)
    classes, label = np.unique(dataset.labels[drawn], return_inverse=True)
    counts = np.zeros((len(groups), len(classes)), np.int64)
    np.add.at(counts, (group[drawn], label), 1)
    order = rng.permutation(len(groups))
    too_few = (counts[order].cumsum(axis=0) < each).any(axis=1)
    return np.isin(group, order[: too_few.sum() + 1])


def available() -> dict[str, str]:
    """Print which data sets are ready, and how to get the others; return "" or the way by name."""
    found, titles = {}, {}
    for name, of_set in shipped.SHIPPED.items():
        titles[name] = of_set.title
        way = f"restore it with `git checkout data/{name}.npz`"
        states = {None: f"missing: {way}", False: f"damaged: {way}", True: ""}
        found[name] = states[shipped.is_intact(f"{name}.npz")]
    folder = originals.folders()[0]
    for name, original in originals.ORIGINALS.items():
        titles[name] = original.title
        way = f"missing: `python -m study.datasets fetch {name}`, or put {original.file} into "
        found[name] = "" if originals.find(name) else f"{way}{folder}; {original.page}"
    for name, way in found.items():
        print(f"{'-----' if way else 'ready'}  {name:<22}{titles[name]}")
        if way:
            print(" " * 29 + way)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: `python -m study.datasets [fetch NAME]`."""
    text = "List the data sets, or download the paper's features."
    parser = argparse.ArgumentParser(prog="python -m study.datasets", description=text)
    commands = parser.add_subparsers(dest="command")
    command = commands.add_parser("fetch", help="download the paper's features")
    command.add_argument("name", choices=originals.ORIGINALS)
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        available()
        return
    try:
        print(originals.fetch(chosen.name))
    except (OSError, ImportError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
