"""scaling.py: shards add up to the last bit, and a killed worker changes nothing."""

import logging
import os
import signal
import time
import uuid
import warnings
from pathlib import Path

import dask
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline

from hmoh import HMOH
from kernels import RBF, UnitLength
from metrics import hamming_histogram, mean_average_precision, nearest
from scaling import ADDED, encode, from_npy, retrieval_score, sharded_histogram

with (
    warnings.catch_warnings()
):  # its SWIG wrapper is deprecated from Python 3.12 on, which is not our business
    warnings.simplefilter("ignore")
    import faiss

SHARDS = [1, 2, 7, 100]
LABELS = ["integers", "strings", "sets"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Two worker processes, each under a nanny."""
    folder = tmp_path_factory.mktemp("workers")
    options = {
        "dashboard_address": ":0",
        "local_directory": folder,
        "silence_logs": logging.CRITICAL,
    }
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def samples(n, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return np.random.default_rng(1).normal(size=(n_classes, 10))[y] + rng.normal(size=(n, 10)), y


def code_case(folder, n_items, labels="integers", n_bits=12, n_queries=9):
    """Random codes of queries and of a database in files, and the histogram in one piece."""
    rng = np.random.default_rng(n_items)
    codes = [
        np.packbits(rng.random((n, n_bits)) < 0.5, axis=1, bitorder="little")
        for n in (n_queries, n_items)
    ]
    y = [rng.integers(3, size=n) for n in (n_queries, n_items)]
    if labels == "strings":
        y = [np.array(["cat", "dog", "zebra"])[part] for part in y]
    if labels == "sets":
        y = [rng.random((n, 5)) < 0.4 for n in (n_queries, n_items)]
    paths = folder / f"codes {labels}.npy", folder / f"labels {labels}.npy"
    for path, array in zip(paths, (codes[1], y[1]), strict=True):
        np.save(path, array)
    return (
        codes[0],
        y[0],
        paths,
        hamming_histogram(codes[0], codes[1], y[0], y[1], n_bits),
    )


def assert_same(ours, expected):
    assert ours.items.dtype == ours.relevant.dtype == np.int64
    assert_array_equal(ours.items, expected.items)
    assert_array_equal(ours.relevant, expected.relevant)
    assert (
        ours.mean_average_precision() == expected.mean_average_precision()
    )  # not nearly: the last bit too


# ---- shards --------------------------------------------------------------------------


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    "n_shards", [*SHARDS, ADDED + 1, ADDED**2 + 1]
)  # at the edges of the tree of sums
def test_shards_add_up_to_the_whole(n_shards, labels, tmp_path):
    query_codes, query_labels, paths, whole = code_case(tmp_path, 230, labels)
    db_codes, db_labels = (from_npy(path, n_shards) for path in paths)
    assert db_codes.numblocks == (n_shards, 1) and np.ptp(db_codes.chunks[0]) <= 1
    total = sharded_histogram(query_codes, db_codes, query_labels, db_labels, n_bits=12)
    assert_same(total.compute(scheduler="synchronous"), whole)


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", SHARDS)
def test_shards_add_up_to_the_whole_in_processes(n_shards, tmp_path, client):
    query_codes, query_labels, paths, whole = code_case(tmp_path, 20_000)
    total = sharded_histogram(
        query_codes,
        from_npy(paths[0], n_shards),
        query_labels,
        from_npy(paths[1], n_shards),
        n_bits=12,
    )
    assert_same(client.compute(total).result(), whole)


def test_an_empty_shard_adds_nothing(tmp_path):
    query_codes, query_labels, paths, whole = code_case(tmp_path, 60)
    db_codes, db_labels = (from_npy(path, 100) for path in paths)
    assert db_codes.chunks[0].count(0) == 40
    total = sharded_histogram(query_codes, db_codes, query_labels, db_labels, n_bits=12)
    assert_same(total.compute(scheduler="synchronous"), whole)


def test_empty_shards_alone_are_an_evaluation_of_nothing(tmp_path):
    np.save(tmp_path / "codes.npy", np.empty((0, 2), np.uint8))
    np.save(tmp_path / "labels.npy", np.empty(0, np.int64))
    database = (from_npy(tmp_path / f"{name}.npy", 3) for name in ("codes", "labels"))
    total = sharded_histogram(
        np.zeros((5, 2), np.uint8), next(database), np.arange(5), next(database)
    )
    histogram = total.compute(scheduler="synchronous")
    assert histogram.items.shape == (5, 17) and not histogram.items.any() and histogram.n_empty == 5
    with pytest.raises(ValueError, match="none of the 5 queries"):
        histogram.mean_average_precision()


def test_a_shard_is_read_when_it_is_computed_and_a_file_written_anew_is_another_array(
    tmp_path,
):
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(6))
    array = from_npy(path, 2)
    path.rename(tmp_path / "gone.npy")
    with pytest.raises(FileNotFoundError):
        array.compute(scheduler="synchronous")
    np.save(path, np.arange(6) + 10)
    again = from_npy(path, 2)
    assert (
        len({again.name, array.name, from_npy(path, 3).name}) == 3
        and from_npy(path, 2).name == again.name
    )
    assert_array_equal(again.compute(scheduler="synchronous"), np.arange(6) + 10)


def test_wrong_cuts_are_refused(tmp_path):
    query_codes, query_labels, paths, _ = code_case(tmp_path, 60, "sets")
    db_codes, db_labels = (from_npy(path, 2) for path in paths)
    for wrong in (
        from_npy(paths[1], 3),
        db_labels.rechunk((30, 2)),
        db_labels.rechunk(((20, 40), 5)),
    ):
        with pytest.raises(
            ValueError,
            match=r"\(2, 1\) and .* cut both into the same blocks of whole rows",
        ):
            sharded_histogram(query_codes, db_codes, query_labels, wrong)
    with pytest.raises(ValueError, match=r"n_shards=0 .* at least 1"):
        from_npy(paths[0], 0)
    with pytest.raises(TypeError, match=r"n_shards=2\.0 .* at least 1"):
        from_npy(paths[0], 2.0)


# ---- encoding ------------------------------------------------------------------------


def fitted(kind, n_bits=12):
    X, y = samples(300)
    if kind == "pipeline":
        model = Pipeline([("rbf", RBF(20)), ("hash", HMOH(n_bits, random_state=0))])
    else:
        model = HMOH(n_bits, feature_map=[UnitLength(), RBF(20, center=True)], random_state=0)
    return model.fit(X, y)


@pytest.mark.parametrize("kind", ["model", "pipeline"])
@pytest.mark.parametrize("n_shards", [1, 7, 100])  # of 90 rows, so some are empty
def test_blocks_are_encoded_as_the_model_encodes_them(n_shards, kind, tmp_path):
    model, (X, _) = fitted(kind), samples(90, seed=2)
    np.save(tmp_path / "X.npy", X)
    codes = encode(model, from_npy(tmp_path / "X.npy", n_shards))
    result = codes.compute(scheduler="synchronous")
    ends = np.cumsum(codes.chunks[0])
    blocks = [
        model.transform(X[end - n : end]) for n, end in zip(codes.chunks[0], ends, strict=True) if n
    ]
    assert codes.shape == result.shape == (90, 2) and codes.dtype == result.dtype == np.uint8
    assert_array_equal(result, np.concatenate(blocks))


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path, client):
    (X, y), model, n_shards = samples(20_000, seed=3), fitted("model"), 60
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    query_codes, runs = model.transform(X[:50]), tmp_path / "runs"
    runs.mkdir()

    def slowly(block):
        Path(runs, uuid.uuid4().hex).touch()
        time.sleep(0.05)
        return block

    shards = from_npy(tmp_path / "X.npy", n_shards).map_blocks(slowly, meta=np.empty((0, 0)))
    codes = encode(model, shards)
    total = sharded_histogram(
        query_codes, codes, y[:50], from_npy(tmp_path / "y.npy", n_shards), n_bits=12
    )
    calm_codes, calm = dask.compute(codes, total)
    assert (
        len(list(runs.iterdir())) == n_shards
    )  # the codes of a shard were made once, for both results
    assert_same(calm, hamming_histogram(query_codes, calm_codes, y[:50], y, n_bits=12))

    pids = client.run(os.getpid)
    futures = client.compute([codes, total])
    while len(list(runs.iterdir())) < n_shards + n_shards // 3:
        time.sleep(0.01)
    held = client.has_what()
    victim = max(held, key=lambda worker: len(held[worker]))
    assert held[victim] and [future.status for future in futures] == [
        "pending",
        "pending",
    ]
    os.kill(pids[victim], signal.SIGKILL)
    killed_codes, killed = client.gather(futures)
    assert (
        len(list(runs.iterdir())) > 2 * n_shards
    )  # what the worker had done was lost, and done again
    assert_array_equal(killed_codes, calm_codes)
    assert_same(killed, calm)
    client.wait_for_workers(2, timeout=30)
    assert (
        len(set(client.run(os.getpid).values()) - set(pids.values())) == 1
    )  # its nanny has started another


# ---- FAISS ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_bits", [12, 64])
def test_faiss_takes_the_codes_finds_what_nearest_finds_and_gives_them_back(n_bits, tmp_path):
    model, (X, _) = fitted("model", n_bits), samples(200, seed=4)
    codes, whole_bytes = model.transform(X), 8 * -(-n_bits // 8)
    index = faiss.IndexBinaryFlat(whole_bytes)
    index.add(codes[20:])
    faiss.write_index_binary(index, str(tmp_path / "codes.faiss"))
    index = faiss.read_index_binary(str(tmp_path / "codes.faiss"))
    assert_array_equal(faiss.vector_to_array(index.xb).reshape(180, -1), codes[20:])
    distances, _ = nearest(codes[:20], codes[20:], 30)
    theirs, found = index.search(codes[:20], 30)  # its order of ties is its own
    assert_array_equal(theirs, distances)
    assert_array_equal(
        np.unpackbits(codes[:20, None] ^ codes[20:][found], axis=2).sum(axis=2),
        distances,
    )


def test_faiss_lists_are_exact_when_all_are_looked_into_and_say_so_when_too_few_are_found():
    rng = np.random.default_rng(5)
    codes = rng.integers(256, size=(400, 4), dtype=np.uint8)
    index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(32), 32, 10)
    index.train(codes)
    index.add(codes)
    exact, _ = nearest(codes[:20], codes, 100)
    index.nprobe = 10
    assert_array_equal(index.search(codes[:20], 100)[0], exact)
    index.nprobe = 1
    distances, found = index.search(codes[:20], 100)
    assert (found == -1).any()  # the trap that the notebook names
    assert ((distances <= exact[:, -1:]) & (found >= 0)).mean() < 1


# ---- scikit-learn --------------------------------------------------------------------


@pytest.mark.parametrize("n_bits", [3, 16])
def test_the_score_is_the_map_of_each_sample_among_the_others(n_bits):
    model, (X, y) = fitted("pipeline", n_bits), samples(40, seed=6)
    codes = model.transform(X)
    each = [
        mean_average_precision(
            codes[i : i + 1], np.delete(codes, i, 0), y[i : i + 1], np.delete(y, i)
        )
        for i in range(len(y))
    ]
    assert_allclose(retrieval_score(model, X, y), np.mean(each), rtol=1e-13)


def test_grid_search_picks_by_the_retrieval_score():
    X, y = samples(240)
    pipeline = Pipeline([("unit", UnitLength()), ("rbf", RBF()), ("hash", HMOH(random_state=0))])
    grid = {"rbf__n_anchors": [2, 20], "hash__n_bits": [1, 8]}
    search = GridSearchCV(pipeline, grid, scoring=retrieval_score, cv=3, error_score="raise").fit(
        X, y
    )

    def by_hand(params):
        scores = []
        for train, test in KFold(3).split(X):
            codes = clone(pipeline).set_params(**params).fit(X[train], y[train]).transform(X[test])
            scores.append(
                hamming_histogram(codes, codes, y[test], y[test])
                .without_self()
                .mean_average_precision()
            )
        return np.mean(scores)

    expected = [by_hand(params) for params in search.cv_results_["params"]]
    assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-13)
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(expected))]
    assert max(expected) > min(expected) + 0.1  # so there was something to choose
    best = search.best_estimator_
    assert (
        best["rbf"].anchors_.shape[0] == search.best_params_["rbf__n_anchors"]
        and best["hash"].n_seen_ == 240
    )
    assert search.transform(X).shape == (240, 1)
