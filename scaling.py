"""Learn, encode, search and evaluate more data than fits in memory, in shards, by Dask.

It runs on one machine or on a cluster. Copy this file with hmoh.py, ridge.py and metrics.py.

A task gives the same result each time it is run. If a worker dies, Dask runs its tasks again
elsewhere, and the result does not change. Histograms and neighbours of shards are equal to those of
the whole database to the last bit. Learning adds up floats: it is equal up to rounding.

From Parquet files with a column of ids to codes beside these ids (dd is dask.dataframe):

    rows = dd.read_parquet("items", index="id")
    X, y = rows.drop(columns="label"), rows["label"]
    classes = y.unique().compute()
    model = learn(HadamardRidge(n_bits=32), X, y, classes)
    encode(model, X).to_parquet("codes")

A partition costs Dask some milliseconds, and its model of 8 m^2 bytes is added to others. So let
partitions have 10,000 to 1,000,000 rows, some 100 MB, and still be more than the workers.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib.util
import os
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections import Counter
from functools import partial, reduce
from operator import add
from pathlib import Path

import numpy as np

from hmoh import MOST_BALANCE, CodebookHasher

try:
    import dask
    import dask.array as da
    import distributed
    from dask.delayed import Delayed
    from dask.diagnostics import ProgressBar
    from dask.optimization import cull
    from dask.sizeof import sizeof
    from distributed.diagnostics.plugin import SchedulerUploadFile, UploadFile
    from distributed.protocol.pickle import dumps
except ImportError as error:
    raise ImportError(
        'scaling needs Dask, the extra "scale" of hmoh; pip install "dask[distributed]>=2025.1".'
    ) from error

if __package__:  # installed, as hmoh.scaling
    from .metrics import (
        HammingHistogram,
        check_number,
        hamming_histogram,
        nearest,
        nearest_by_value,
    )
else:
    from metrics import HammingHistogram, check_number, hamming_histogram, nearest, nearest_by_value

__all__ = ["encode", "from_npy", "learn", "send_modules", "sharded_histogram", "sharded_nearest"]

ADDED = 3  # histograms, or models, that one task adds up
MANY = 1000  # partitions: for fewer, what Dask needs for each does not matter
FEW_ROWS = 5000  # in a partition; learning them takes as long as what Dask needs


def _read_sources() -> dict[str, bytes]:
    """Return the source of each file that tasks import."""
    found = {}
    for name in ("__init__", "hmoh", "kernels", "metrics", "ridge", "scaling"):
        # By the loader, because the file may be in an archive that was sent.
        with contextlib.suppress(OSError):
            file = Path(__file__).parent / f"{name}.py"
            found[file.name] = __spec__.loader.get_data(str(file))
    return found


SOURCES = _read_sources()  # as they were when this process imported them


def send_modules(client: distributed.Client, replace: bool = False) -> None:
    """Send our modules to a cluster that lacks them, and refuse one that has others.

    All functions of this file call it. Call it before anything else runs our models there, such as
    ``ParallelPostFit`` of dask-ml. Workers that start later get the modules too. With ``replace``
    all processes of the cluster change to our sources, whoever uses them, and models that they hold
    may be lost.
    """
    if _read_sources() != SOURCES:
        reason = "our modules were edited after this process had imported them"
        raise RuntimeError(f"{reason}; restart Python, so that the cluster gets what you run.")
    here, package = Path(__file__).parent, __package__
    digests = {file: hashlib.sha256(source).digest() for file, source in SOURCES.items()}

    # A function inside of a function is sent as code, and not by its name.
    def compare(forgets: bool) -> tuple[list[str], bool]:
        """Return the files of a process that differ from ours, and whether it lacks any."""
        names = {file: ".".join(filter(None, [package, file[:-3]])) for file in digests}
        names = {file: name.removesuffix(".__init__") for file, name in names.items()}
        for name in names.values() if forgets else ():
            sys.modules.pop(name, None)
        loaded = getattr(sys.modules.get(names["scaling.py"]), "SOURCES", {})
        others, lacks = [], False
        for file, name in names.items():
            spec = None
            with contextlib.suppress(ModuleNotFoundError):
                spec = importlib.util.find_spec(name)
            if spec is None or not spec.has_location:
                lacks = True
            else:
                source = loaded.get(file) or spec.loader.get_data(spec.origin)
                if hashlib.sha256(source).digest() != digests[file]:
                    others.append(spec.origin)
        for name in () if others or lacks else names.values():
            importlib.import_module(name)  # now, before somebody edits the file
        return others, lacks

    def ask(forgets: bool) -> dict[str, tuple]:
        answers = {"the scheduler": client.run_on_scheduler(compare, forgets)}
        return answers | client.run(compare, forgets)

    answers = ask(False)
    others = [f"{files[0]} of {process}" for process, (files, _) in answers.items() if files]
    if others and not replace:
        way = "use another cluster, or send_modules(client, replace=True) if nobody else uses this"
        raise RuntimeError(f"{others[0]} differs from the file of this process in {here}; {way}.")
    if others or any(lacks for _, lacks in answers.values()):
        with tempfile.TemporaryDirectory() as folder:
            # A new name, so that it comes first in sys.path.
            archive = Path(folder, f"hmoh_{uuid.uuid4().hex}.zip")
            with zipfile.ZipFile(archive, "w") as zipped:
                for file, source in SOURCES.items():
                    zipped.writestr(f"{package}/{file}" if package else file, source)
            if any(answers["the scheduler"]):
                client.register_plugin(SchedulerUploadFile(str(archive)), name=archive.stem)
            # One name for all, because a later worker installs plugins in any order.
            client.register_plugin(UploadFile(str(archive)), name="hmoh")
        ask(bool(others))


def _cluster() -> distributed.Client | None:
    """Return the client that Dask would use now, after `send_modules`."""
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    if not isinstance(client, distributed.Client):
        return None
    send_modules(client)
    return client


@sizeof.register(CodebookHasher)
def _size(model) -> int:
    """Return the bytes of a model, by which Dask places tasks and spills results to disk."""
    buffers = []
    rest = dumps(model, buffer_callback=buffers.append)
    return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)


def from_npy(path: str | os.PathLike, n_shards: int) -> da.Array:
    """Return an .npy file as a Dask array of ``n_shards`` blocks of rows, as equal as possible.

    Only the path is sent to a worker, which must find the file there (on a cluster: in a shared
    folder). With more shards than rows, some shards are empty.
    """
    n_shards = check_number(n_shards, "n_shards")
    if "://" in str(path):
        way = 'read Zarr or Parquet by Dask: da.from_zarr("s3://..."), dd.read_parquet("s3://...")'
        raise ValueError(f"{path} is not a local file, whose rows can be mapped; {way}.")
    _cluster()
    path = Path(path).resolve()
    # With mmap_mode only the header is read.
    array = np.load(path, mmap_mode="r")
    edges = np.linspace(0, len(array), n_shards + 1).astype(int)
    rows = tuple(np.diff(edges).tolist())
    return da.map_blocks(
        _read,
        path=str(path),
        chunks=(rows, *((n,) for n in array.shape[1:])),
        dtype=array.dtype,
        meta=np.empty((0,) * array.ndim, array.dtype),
        # The time of writing is part of the name, so that a file written again is read again.
        name="from_npy-" + dask.base.tokenize(str(path), path.stat().st_mtime_ns, n_shards),
    )


def _read(path: str, block_info: dict) -> np.ndarray:
    start, stop = block_info[None]["array-location"][0]
    array = np.load(path, mmap_mode="r")
    # A copy, so that the file is not open longer than needed.
    return np.array(array[start:stop])


def learn(model, X, y, classes=None, progress: bool = True):
    """Return a HadamardRidge that has learned from X and y, partition by partition.

    It is the model of ``partial_fit(X, y, classes).close()`` in one process, up to rounding: the
    maps are fitted on the same first rows, a `blank` model learns from each partition, and these
    are merged in a tree. A partition is read inside the task that learns it. The given model does
    not change. Ctrl-C ends the tasks on the cluster too.

    Parameters
    ----------
    model : HadamardRidge
        One that has seen no sample: a new one, or a `blank` one, whose maps are used as they are.
        To learn on, call ``model.merge(learn(model.blank(), X, y))``. With `class_weight` a first
        pass counts all labels, where one process uses the counts so far; the result has none.
    X, y : Dask arrays, dataframes or series, in the same partitions
        For instance `from_npy`, or columns of ``dask.dataframe.read_parquet("s3://bucket/x")``. X
        may be a series of vectors, and y may have columns of 0/1. Partitions may be empty.
    classes : array, optional
        All labels. Columns of 0/1 need none, nor does a blank model, which has them.
    progress : bool
        Show Dask's own bar on stdout.

    Files are often sorted by class. Anchors of `RBF`, which are the first rows, then show one class
    (18_scaling_out: what this costs). Fit the maps on a sample of all rows:

        first = model.partial_fit(X[::1000].compute(), y[::1000].compute(), classes).close()
        model = learn(first.blank(), X, y)

    How a long run continues after an exit is in 18_scaling_out.
    """
    if not hasattr(model, "blank"):
        reason = f"what a {type(model).__name__} learns depends on the order of samples"
        way = "call its partial_fit for one block after the other, or pass a HadamardRidge"
        raise TypeError(f"{reason} and cannot be merged; {way}.")
    _check_cuts(X=X, y=y)
    X_parts, y_parts = _parts(X), _parts(y)
    counts = None
    if not hasattr(model, "n_seen_"):
        if classes is None and y.ndim == 1:
            reason = "classes is None, but partitions must agree on all labels and their targets"
            way = "da.unique(y).compute()" if hasattr(y, "chunks") else "y.unique().compute()"
            raise ValueError(f"{reason}; pass classes, such as {way}.")
        if model.class_weight is not None:
            model = copy.copy(model).set_params(class_weight=None)
            count = dask.delayed(_count_labels, pure=False)
            counts = _compute(_tree(add, [count(part) for part in y_parts]), progress)
        model = _warmed_up(model, X_parts, y_parts, classes)
    elif model.n_seen_:
        raise ValueError(f"the model has seen {model.n_seen_} samples; pass model.blank().")
    copy.copy(model).merge(model)  # an error now, not after the pass, if models cannot be merged
    blank = dask.delayed(model, traverse=False)
    learned = dask.delayed(_learned, pure=False)
    pairs = list(zip(X_parts, y_parts, strict=True))
    reads = _reads(pairs, is_persisted=bool(distributed.futures_of([X, y])))
    sizes = X.chunks[0] if hasattr(X, "chunks") else []  # those of a dataframe are unknown
    firsts = [*(np.cumsum(sizes) - sizes), *[None] * (len(reads) - len(sizes))]
    tasks = [learned(blank, read, counts, i, firsts[i]) for i, read in enumerate(reads)]
    return _compute(_tree(_merged, tasks), progress)


def _warmed_up(model, X_parts: list[Delayed], y_parts: list[Delayed], classes):
    """Return a blank model whose maps are fitted on the first rows."""
    first_rows = dask.delayed(lambda part, n: part[:n], pure=False)
    seed = copy.deepcopy(model)
    for pair in zip(X_parts, y_parts, strict=True):
        X, y = dask.compute(*(first_rows(part, model.n_warmup) for part in pair))
        if len(X):
            if classes is not None:  # maps need no labels, and a codebook needs the classes only
                y = np.resize(classes, len(X))
            seed.partial_fit(_rows(X), y, classes)
            if seed.__sklearn_is_fitted__():
                break
    # What it has learned stays behind, so that no row counts twice.
    return seed.close().blank()


def _rows(X):
    """Return a partition as (n, d); that of a series holds n vectors."""
    return np.stack(X) if X.ndim == 1 else X


def _reads(pairs: list[tuple[Delayed, Delayed]], is_persisted: bool) -> list:
    """Return what gives the values of each pair, inside of the task that uses them.

    As tasks of their own they might be read on one worker and learned on another. They remain such
    tasks if pairs share a part of their graph, as after a shuffle, or if they are on the cluster.
    """
    if is_persisted:
        return pairs
    graph = {}
    for part in {id(part.dask): part for pair in pairs for part in pair}.values():
        graph.update(part.dask)
    keys = [[part.key for part in pair] for pair in pairs]
    own = [cull(graph, both)[0] for both in keys]
    if len(set().union(*own)) < sum(map(len, own)):
        return pairs
    return [partial(dask.get, *both) for both in zip(own, keys, strict=True)]


@contextlib.contextmanager
def _at(number: int, first: int | None):
    """Add to an error in which partition it was, and where that begins, if this is known."""
    try:
        yield
    except Exception as error:
        is_known = first is not None and np.isfinite(first)
        row = f", whose row 0 is row {first} of all" if is_known else ""
        error.add_note(f"This is partition {number}{row}.")
        raise


def _learned(blank, pair, counts: dict | None, number: int, first: int | None):
    """Return what a blank model learns from one partition."""
    with _at(number, first):
        X, y = pair() if callable(pair) else pair
        y = np.asarray(y)
        if len(X) == len(y) == 0:
            return blank
        weights = None if counts is None else _weights(y, counts)
        # Learning replaces the state of the copy, so blank does not change.
        model = copy.copy(blank).partial_fit(_rows(X), y, sample_weight=weights).close()
        others = [*model.targets_][len(blank.targets_) :]
        if others:
            reason = f"y[{y.tolist().index(others[0])}] is {others[0]!r}, which classes lacks"
            raise ValueError(f"{reason}; pass all labels as classes.")
        return model


def _merged(a, b):
    return copy.copy(a).merge(b)  # a copy, because another task may use a


def _count_labels(y) -> Counter:
    y = np.asarray(y)
    return Counter((y if y.ndim == 1 else np.nonzero(y)[1]).tolist())


def _weights(y: np.ndarray, counts: dict) -> np.ndarray:
    """Return the weights of `class_weight`, from the counts of all samples, not of those so far."""
    mean_count = sum(counts.values()) / len(counts)
    if y.ndim == 1:
        means = [mean_count / counts[label] for label in y.tolist()]
    else:
        weights = [mean_count / counts.get(j, np.inf) for j in range(y.shape[1])]
        means = y @ weights / y.sum(axis=1)
    return np.minimum(means, MOST_BALANCE)


def encode(model, X):
    """Return the packed codes of X, by any fitted model that has ``transform``.

    The codes of a Dask array are an array. Those of a dataframe, or of a series of vectors, are a
    dataframe with the same index and a column of uint8 for each byte: code_0, code_1, ...
    """
    _check_cuts(X=X)
    _cluster()
    is_array = hasattr(X, "chunks")
    row = np.zeros((1, X.shape[1] if X.ndim == 2 else model.n_features_in_), np.float32)
    if X.ndim == 2 and not is_array:
        row = type(X._meta)(row, columns=X.columns)  # the model may know other columns
    # The code of any row shows the width and dtype of all codes.
    empty = model.transform(row)[:0]
    # A delayed model is sent once, not with every shard.
    sent = dask.delayed(model, traverse=False)
    if is_array:
        known = {"chunks": (X.chunks[0], (empty.shape[1],)), "dtype": empty.dtype, "meta": empty}
        return X.map_blocks(_encode, sent, empty, **known)
    return X.map_partitions(_encode, sent, empty, meta=_frame(empty, X._meta.index))


def _encode(X, model, empty, block_info=None, partition_info=None):
    """Return the codes of one shard. Dask tells which it is, by another name for each kind."""
    if block_info:
        place = block_info[0]["chunk-location"][0], block_info[0]["array-location"][0][0]
    else:
        place = partition_info and partition_info["number"], None
    with _at(*place):
        codes = model.transform(_rows(X)) if len(X) else empty
    return _frame(codes, X.index) if hasattr(X, "index") else codes


def _frame(codes: np.ndarray, index):
    import pandas as pd  # only dataframes need it

    return pd.DataFrame(codes, index, [f"code_{j}" for j in range(codes.shape[1])])


def sharded_histogram(
    query_codes: np.ndarray,
    db_codes,
    query_labels: np.ndarray,
    db_labels,
    n_bits: int | None = None,
) -> Delayed:
    """Return `hamming_histogram` of a database in blocks; ``compute()`` gives its value.

    Parameters
    ----------
    query_codes, query_labels : arrays, as for `hamming_histogram`
    db_codes, db_labels : Dask arrays or dataframes
        Cut into the same blocks of rows. A block may be empty.
    n_bits : int, optional
        By default all bits of the packed bytes.
    """
    _check_cuts(db_codes=db_codes, db_labels=db_labels)
    _cluster()
    count = dask.delayed(_count, pure=False)
    query_codes = dask.delayed(query_codes)
    query_labels = dask.delayed(query_labels)
    pairs = zip(_parts(db_codes), _parts(db_labels), strict=True)
    return _tree(add, [count(query_codes, a, query_labels, b, n_bits) for a, b in pairs])


def _count(query_codes, db_codes, query_labels, db_labels, n_bits):
    """Return the histogram of one shard, all zeros for an empty one."""
    if len(db_codes) == 0:
        n_bits = n_bits or 8 * query_codes.shape[1]
        zeros = np.zeros((len(query_codes), n_bits + 1), np.int64)
        return HammingHistogram(zeros, zeros.copy())
    database = np.asarray(db_codes), query_labels, np.asarray(db_labels)
    # One thread, because Dask runs one worker per core.
    return hamming_histogram(query_codes, *database, n_bits, n_threads=1)


def sharded_nearest(queries: np.ndarray, db_codes: da.Array, k: int) -> Delayed:
    """Return `nearest` of a database in blocks; ``compute()`` gives distances and rows.

    Float queries are values, and the result is that of `nearest_by_value`. Both are equal to those
    of one process, ties in database order. A block may be empty, or have fewer than k rows.
    """
    _check_cuts(db_codes=db_codes)
    sizes = db_codes.chunks[0]
    if np.isnan(sizes).any():
        way = "call compute_chunk_sizes() first, or to_dask_array(lengths=True) of a dataframe"
        raise ValueError(f"db_codes has blocks of unknown lengths, so rows have no number; {way}.")
    check_number(k, "k", most=sum(sizes))
    _cluster()
    search = dask.delayed(_search, pure=False)
    queries = dask.delayed(np.asarray(queries))
    shards = zip(_parts(db_codes), sizes, np.cumsum(sizes) - sizes, strict=True)
    found = [search(queries, part, min(k, n), first) for part, n, first in shards if n]
    return _tree(partial(_nearer, k=k), found)


def _search(queries, db_codes, k: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances, or scores, and rows in the whole database of the best of one shard."""
    function = nearest_by_value if queries.dtype.kind == "f" else nearest
    values, rows = function(queries, db_codes, k, n_threads=1)
    return values, rows + first


def _nearer(a, b, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best of two results, ties in their order."""
    values, rows = (np.concatenate(pair, axis=1) for pair in zip(a, b, strict=True))
    costs = -values if values.dtype.kind == "f" else values
    order = np.argsort(costs, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _check_cuts(**given) -> None:
    """Raise an error unless these Dask collections are cut into the same blocks of whole rows."""
    cuts = []
    for name, rows in given.items():
        if not hasattr(rows, "to_delayed"):
            way = "pass da.from_array(array, chunks), or da.from_delayed of each part"
            raise TypeError(f"{name} is a {type(rows).__name__}, not of Dask; {way}.")
        # The partitions of a dataframe have unknown lengths.
        cuts.append(rows.chunks if hasattr(rows, "chunks") else ((np.nan,) * rows.npartitions,))
    first, last = cuts[0][0], cuts[-1][0]
    same_rows = first == last or (len(first) == len(last) and np.isnan(np.add(first, last)).any())
    if not same_rows or any(len(columns) > 1 for cut in cuts for columns in cut[1:]):
        blocks = " and ".join(str(tuple(map(len, cut))) for cut in cuts)
        reason = f"{' and '.join(given)} are in {blocks} blocks"
        raise ValueError(f"{reason}; cut both into the same blocks of whole rows.")
    if len(first) > MANY and sum(first) < FEW_ROWS * len(first):
        reason = f"{len(first):,} partitions have {np.mean(first):,.0f} rows on average"
        way = "rechunk to 10,000 to 1,000,000, because each partition costs some milliseconds"
        warnings.warn(f"{reason}; {way}.", stacklevel=3)


def _parts(rows) -> list[Delayed]:
    """Return the partitions of a Dask array or dataframe."""
    if hasattr(rows, "simplify"):
        # A dataframe. Optimised further, few columns would be read in fewer partitions.
        return rows.simplify().to_delayed(optimize_graph=False)
    return rows.to_delayed().ravel().tolist()


def _tree(function, parts: list[Delayed]) -> Delayed:
    """Return the sum of the parts, as a tree, so that no worker holds more than a few of them."""
    total = dask.delayed(partial(reduce, function), pure=False)
    while len(parts) > 1:
        parts = [total(parts[i : i + ADDED]) for i in range(0, len(parts), ADDED)]
    return parts[0]


def _compute(task: Delayed, progress: bool):
    """Return the value of a task, and show Dask's own bar meanwhile."""
    client = _cluster()
    if client is None:
        with ProgressBar() if progress else contextlib.nullcontext():
            return task.compute()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        future = client.compute(task)  # the graph holds the blank model, which no death can take
    try:
        if progress:
            distributed.progress(future, notebook=False)
        return future.result()
    finally:
        # Also after Ctrl-C: IPython keeps the error, and the error would keep the tasks running.
        future.cancel()
