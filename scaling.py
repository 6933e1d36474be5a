"""Learn, encode and evaluate more data than fits in memory, in shards, by Dask.

It runs on one machine or on a cluster. Copy this file with hmoh.py, ridge.py and metrics.py.

Every shard is read from its file inside the task that uses it. A task gives the same result each
time it is run. If a worker dies, Dask runs its tasks again elsewhere, and the result does not
change. The histograms of shards are integers that add up. So an evaluation in shards is equal to
that of the whole database to the last bit. Learning adds up floats: it is equal up to rounding.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import tempfile
import zipfile
from collections import Counter
from functools import partial, reduce
from importlib.util import find_spec
from operator import add
from pathlib import Path

import numpy as np

from hmoh import MOST_BALANCE

try:
    import dask
    import dask.array as da
    import distributed
    from dask.delayed import Delayed
    from dask.diagnostics import ProgressBar
except ImportError as error:
    raise ImportError(
        'scaling needs Dask, the extra "scale" of hmoh; pip install "dask[distributed]>=2025.1".'
    ) from error

if __package__:  # installed, as hmoh.scaling
    from .metrics import HammingHistogram, check_number, hamming_histogram
else:
    from metrics import HammingHistogram, check_number, hamming_histogram

__all__ = ["encode", "from_npy", "learn", "sharded_histogram"]

ADDED = 8  # histograms, or models, that one task adds up
MODULES = ("__init__", "hmoh", "kernels", "metrics", "ridge", "scaling")  # what tasks import


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


def learn(model, X, y, classes=None):
    """Return a HadamardRidge that has learned from X and y, partition by partition.

    It is the model of ``partial_fit(X, y, classes).close()`` in one process, up to rounding: the
    maps are fitted on the same first rows, a `blank` model learns from each partition, and these
    are merged in a tree. The given model does not change. Dask's own bar shows the progress.

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
    """
    if not hasattr(model, "blank"):
        reason = f"what a {type(model).__name__} learns depends on the order of samples"
        raise TypeError(f"{reason} and cannot be merged; pass a HadamardRidge.")
    X_parts, y_parts = _partitions(X=X, y=y)
    counts = None
    if not hasattr(model, "n_seen_"):
        if classes is None and y.ndim == 1:
            reason = "classes is None, but partitions must agree on all labels and their targets"
            raise ValueError(f"{reason}; pass classes, such as da.unique(y).compute().")
        if model.class_weight is not None:
            model = copy.copy(model).set_params(class_weight=None)
            count = dask.delayed(_count_labels, pure=False)
            counts = _compute(_tree(add, [count(part) for part in y_parts]))
        model = _warmed_up(model, X_parts, y_parts, classes)
    elif model.n_seen_:
        raise ValueError(f"the model has seen {model.n_seen_} samples; pass model.blank().")
    copy.copy(model).merge(model)  # an error now, not after the pass, if models cannot be merged
    blank = dask.delayed(model, traverse=False)
    learned = dask.delayed(_learned, pure=False)
    pairs = zip(X_parts, y_parts, strict=True)
    return _compute(_tree(_merged, [learned(blank, *pair, counts) for pair in pairs]))


def _warmed_up(model, X_parts: list[Delayed], y_parts: list[Delayed], classes):
    """Return a blank model whose maps are fitted on the first rows."""
    first_rows = dask.delayed(lambda part, n: np.asarray(part)[:n], pure=False)
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


def _rows(X) -> np.ndarray:
    """Return a partition as (n, d); that of a series holds n vectors."""
    X = np.asarray(X)
    return np.stack(X) if X.ndim == 1 else X


def _learned(blank, X, y, counts: dict | None):
    """Return what a blank model learns from one partition."""
    y = np.asarray(y)
    if len(X) == len(y) == 0:
        return blank
    weights = None if counts is None else _weights(y, counts)
    # Learning replaces the state of the copy, so blank does not change.
    model = copy.copy(blank).partial_fit(_rows(X), y, sample_weight=weights).close()
    others = [*model.targets_][len(blank.targets_) :]
    if others:
        raise ValueError(f"y holds {others[:5]}, which classes lacks; pass all labels as classes.")
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


def encode(model, X: da.Array) -> da.Array:
    """Return the packed codes of X, by any fitted model that has ``transform``."""
    _cluster()
    # The code of any row shows the width and dtype of all codes.
    row = np.zeros((1, X.shape[1]), X.dtype)
    empty = model.transform(row)[:0]
    return X.map_blocks(
        _encode,
        # A delayed model is sent once, not with every shard.
        model=dask.delayed(model),
        empty=empty,
        chunks=(X.chunks[0], (empty.shape[1],)),
        dtype=empty.dtype,
        meta=empty,
    )


def _encode(X: np.ndarray, model, empty: np.ndarray) -> np.ndarray:
    return model.transform(X) if len(X) else empty


def sharded_histogram(
    query_codes: np.ndarray,
    db_codes: da.Array,
    query_labels: np.ndarray,
    db_labels: da.Array,
    n_bits: int | None = None,
) -> Delayed:
    """Return `hamming_histogram` of a database in blocks; ``compute()`` gives its value.

    Parameters
    ----------
    query_codes, query_labels : arrays, as for `hamming_histogram`
    db_codes, db_labels : Dask arrays
        Cut into the same blocks of rows. A block may be empty.
    n_bits : int, optional
        By default all bits of the packed bytes.
    """
    code_blocks, label_blocks = _partitions(db_codes=db_codes, db_labels=db_labels)
    _cluster()
    count = dask.delayed(_count, pure=False)
    query_codes = dask.delayed(query_codes)
    query_labels = dask.delayed(query_labels)
    pairs = zip(code_blocks, label_blocks, strict=True)
    return _tree(add, [count(query_codes, a, query_labels, b, n_bits) for a, b in pairs])


def _count(query_codes, db_codes, query_labels, db_labels, n_bits):
    """Return the histogram of one shard, all zeros for an empty one."""
    if len(db_codes) == 0:
        n_bits = n_bits or 8 * query_codes.shape[1]
        zeros = np.zeros((len(query_codes), n_bits + 1), np.int64)
        return HammingHistogram(zeros, zeros.copy())
    # One thread, because Dask runs one worker per core.
    return hamming_histogram(query_codes, db_codes, query_labels, db_labels, n_bits, n_threads=1)


def _partitions(**pair) -> list[list[Delayed]]:
    """Return the blocks of rows of two Dask arrays or dataframes that are cut alike."""
    parts = []
    for name, rows in pair.items():
        if hasattr(rows, "simplify"):
            # A dataframe. Optimised further, few columns would be read in fewer partitions.
            parts.append(rows.simplify().to_delayed(optimize_graph=False))
        else:
            pair[name] = da.asarray(rows)
            parts.append(pair[name].to_delayed().ravel().tolist())
    # The partitions of a dataframe have unknown lengths.
    a, b = (getattr(rows, "chunks", ((np.nan,) * rows.npartitions,)) for rows in pair.values())
    same_rows = a[0] == b[0] or (len(a[0]) == len(b[0]) and np.isnan(a[0] + b[0]).any())
    if not same_rows or any(len(columns) > 1 for columns in a[1:] + b[1:]):
        blocks = " and ".join(str(tuple(map(len, cut))) for cut in (a, b))
        reason = f"{' and '.join(pair)} are in {blocks} blocks"
        raise ValueError(f"{reason}; cut both into the same blocks of whole rows.")
    return parts


def _tree(function, parts: list[Delayed]) -> Delayed:
    """Return the sum of the parts, as a tree, so that no worker holds more than a few of them."""
    total = dask.delayed(partial(reduce, function), pure=False)
    while len(parts) > 1:
        parts = [total(parts[i : i + ADDED]) for i in range(0, len(parts), ADDED)]
    return parts[0]


def _compute(task: Delayed):
    """Return the value of a task, and show Dask's own bar on stderr meanwhile."""
    client = _cluster()
    if client is None:
        with ProgressBar(out=sys.stderr):
            return task.compute()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        future = client.compute(task)  # the graph holds the blank model, which no death can take
    with contextlib.redirect_stdout(sys.stderr):
        distributed.progress(future, notebook=False)
    return future.result()


def _cluster() -> distributed.Client | None:
    """Return the client that Dask would use now, after sending modules that its cluster lacks."""
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    if not isinstance(client, distributed.Client):
        return None
    name = __name__.partition(".")[0]

    def is_there() -> bool:  # inside, so that it is sent as code and not by its name
        return find_spec(name) is not None

    if not all([client.run_on_scheduler(is_there), *client.run(is_there).values()]):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder, "hmoh_modules.zip")
            with zipfile.ZipFile(archive, "w") as file:
                for path in Path(__file__).parent.glob("*.py"):
                    if path.stem in MODULES:
                        file.write(path, Path(__package__ or "", path.name))
            client.upload_file(str(archive))
    return client
