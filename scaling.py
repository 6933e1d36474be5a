"""More data than fits in memory: read, encode and evaluate it in shards by Dask, on one machine or on a cluster.

Every shard is read from its file inside the task that uses it, and every task gives the same result whenever it is
run: if a worker dies, Dask runs its tasks again elsewhere, and nothing changes in the result. Histograms of shards are
whole numbers that add up, so an evaluation in shards is that of the whole database to the last bit.
"""

from __future__ import annotations

import os
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from metrics import HammingHistogram, hamming_histogram

__all__ = ["encode", "from_npy", "retrieval_score", "sharded_histogram"]

ADDED = 8  # histograms that one task adds up


def from_npy(path: str | os.PathLike, n_shards: int) -> da.Array:
    """An .npy file as a Dask array of ``n_shards`` blocks of rows, as equal as possible.

    Only the path travels to a worker, which must find the file under it (on a cluster: in a shared folder). With more
    shards than rows some are empty.
    """
    if n_shards < 1:
        raise ValueError(f"n_shards={n_shards} is not possible; pass a whole number of at least 1.")
    path = Path(path).resolve()
    array = np.load(path, mmap_mode="r")  # reads the header only
    edges = np.linspace(0, len(array), n_shards + 1).astype(int)
    chunks = (tuple(np.diff(edges).tolist()), *((n,) for n in array.shape[1:]))
    version = dask.base.tokenize(str(path), path.stat().st_mtime_ns)  # so that a file written anew is read anew
    meta = np.empty((0,) * array.ndim, array.dtype)
    return da.map_blocks(_read, path=str(path), chunks=chunks, dtype=array.dtype, meta=meta, token=version)


def _read(path: str, block_info: dict) -> np.ndarray:
    (start, stop), *_ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop])  # a copy: the file is open no longer than needed


def encode(model, X: da.Array) -> da.Array:
    """The packed codes of the rows of X, block by block, by anything fitted that has ``transform``."""
    empty = model.transform(np.zeros((1, X.shape[1]), X.dtype))[:0]  # any row tells how wide the codes are
    chunks = X.chunks[0], (empty.shape[1],)
    model = dask.delayed(model)  # sent once, not with every shard
    return X.map_blocks(_encode, model=model, empty=empty, chunks=chunks, dtype=empty.dtype, meta=empty)


def _encode(X: np.ndarray, model, empty: np.ndarray) -> np.ndarray:
    return model.transform(X) if len(X) else empty


def sharded_histogram(
    query_codes: np.ndarray,
    db_codes: da.Array,
    query_labels: np.ndarray,
    db_labels: da.Array,
    n_bits: int | None = None,
) -> Delayed:
    """`metrics.hamming_histogram` over the blocks of a database, to be computed by Dask; an empty block adds nothing.

    Parameters
    ----------
    query_codes, query_labels : arrays, as for `hamming_histogram`
    db_codes, db_labels : Dask arrays
        Cut into the same blocks of rows.
    n_bits : int, optional
        By default all bits of the packed bytes.

    Returns
    -------
    Delayed
        Its ``compute()`` gives the HammingHistogram.
    """
    cuts = [(array.chunks[0], array.numblocks[1:]) for array in (db_codes, db_labels)]
    if cuts[0][0] != cuts[1][0] or any(n > 1 for _, columns in cuts for n in columns):
        blocks = f"{db_codes.numblocks} and {db_labels.numblocks} blocks"
        raise ValueError(f"db_codes and db_labels are in {blocks}; cut both into the same blocks of whole rows.")
    queries = dask.delayed(query_codes), dask.delayed(query_labels)
    codes, labels = (array.to_delayed().ravel() for array in (db_codes, db_labels))
    count = dask.delayed(_count, pure=False)
    parts = [count(*queries, *shard, n_bits) for shard in zip(codes, labels, strict=True)]
    while len(parts) > 1:  # a tree: no worker holds more than a few histograms
        parts = [dask.delayed(sum)(parts[i : i + ADDED]) for i in range(0, len(parts), ADDED)]
    return parts[0]


def _count(query_codes, query_labels, db_codes, db_labels, n_bits) -> HammingHistogram:
    if not len(db_codes):  # which hamming_histogram takes for a mistake
        n_bits = n_bits or 8 * query_codes.shape[1]
        return HammingHistogram(*np.zeros((2, len(query_codes), n_bits + 1), np.int64))
    return hamming_histogram(query_codes, db_codes, query_labels, db_labels, n_bits, n_threads=1)  # a worker per core


def retrieval_score(model, X: np.ndarray, y: np.ndarray) -> float:
    """A scorer for scikit-learn's searches: mAP of the rows of X in search of each other, each left out for itself."""
    codes = model.transform(X)
    return hamming_histogram(codes, codes, y, y).without_self().mean_average_precision()
