"""Read, encode and evaluate more data than fits in memory, in shards, by Dask.

It runs on one machine or on a cluster. Copy this file together with metrics.py.

Every shard is read from its file inside the task that uses it. A task gives the same result each
time it is run. If a worker dies, Dask runs its tasks again elsewhere, and the result does not
change. The histograms of shards are integers that add up. So an evaluation in shards is equal to
that of the whole database to the last bit.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

try:
    import dask
    import dask.array as da
    from dask.delayed import Delayed
except ImportError as error:
    raise ImportError(
        'scaling needs Dask, the extra "scale" of hmoh; pip install "dask[distributed]>=2024.5".'
    ) from error

if __package__:  # installed, as hmoh.scaling
    from .metrics import HammingHistogram, check_integer, hamming_histogram
else:
    from metrics import HammingHistogram, check_integer, hamming_histogram

__all__ = ["encode", "from_npy", "retrieval_score", "sharded_histogram"]

ADDED = 8  # histograms that one task adds up


def from_npy(path: str | os.PathLike, n_shards: int) -> da.Array:
    """Return an .npy file as a Dask array of ``n_shards`` blocks of rows, as equal as possible.

    Only the path is sent to a worker, which must find the file there (on a cluster: in a shared
    folder). With more shards than rows, some shards are empty.
    """
    n_shards = check_integer(n_shards, "n_shards")
    path = Path(path).resolve()
    # With mmap_mode only the header is read.
    array = np.load(path, mmap_mode="r")
    edges = np.linspace(0, len(array), n_shards + 1).astype(int)
    rows = tuple(np.diff(edges).tolist())
    columns = tuple((n,) for n in array.shape[1:])
    # The time of writing is part of the name, so that a file written again is read again.
    version = dask.base.tokenize(str(path), path.stat().st_mtime_ns)
    return da.map_blocks(
        _read,
        path=str(path),
        chunks=(rows, *columns),
        dtype=array.dtype,
        meta=np.empty((0,) * array.ndim, array.dtype),
        token=version,
    )


def _read(path: str, block_info: dict) -> np.ndarray:
    start, stop = block_info[None]["array-location"][0]
    array = np.load(path, mmap_mode="r")
    # A copy, so that the file is not open longer than needed.
    return np.array(array[start:stop])


def encode(model, X: da.Array) -> da.Array:
    """Return the packed codes of X, by any fitted model that has ``transform``."""
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
    same_rows = db_codes.chunks[0] == db_labels.chunks[0]
    column_blocks = db_codes.numblocks[1:] + db_labels.numblocks[1:]
    if not same_rows or any(n > 1 for n in column_blocks):
        blocks = f"{db_codes.numblocks} and {db_labels.numblocks} blocks"
        need = "cut both into the same blocks of whole rows"
        raise ValueError(f"db_codes and db_labels are in {blocks}; {need}.")
    count = dask.delayed(_count, pure=False)
    query_codes = dask.delayed(query_codes)
    query_labels = dask.delayed(query_labels)
    code_blocks = db_codes.to_delayed().ravel()
    label_blocks = db_labels.to_delayed().ravel()
    parts = []
    for codes, labels in zip(code_blocks, label_blocks, strict=True):
        parts.append(count(query_codes, codes, query_labels, labels, n_bits))
    # The sums form a tree, so that no worker holds more than a few histograms.
    add = dask.delayed(sum)
    while len(parts) > 1:
        starts = range(0, len(parts), ADDED)
        parts = [add(parts[i : i + ADDED]) for i in starts]
    return parts[0]


def _count(query_codes, db_codes, query_labels, db_labels, n_bits):
    """Return the histogram of one shard; an empty shard adds nothing."""
    if len(db_codes) == 0:
        # hamming_histogram refuses an empty database.
        n_bits = n_bits or 8 * query_codes.shape[1]
        zeros = np.zeros((len(query_codes), n_bits + 1), np.int64)
        return HammingHistogram(zeros, zeros.copy())
    # One thread, because Dask runs one worker per core.
    return hamming_histogram(query_codes, db_codes, query_labels, db_labels, n_bits, n_threads=1)


def retrieval_score(model, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mAP of each row of X against the others, as a scorer for scikit-learn."""
    codes = model.transform(X)
    histogram = hamming_histogram(codes, codes, y, y)
    return histogram.without_self().mean_average_precision()
