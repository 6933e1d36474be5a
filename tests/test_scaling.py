"""scaling.py: shards give what one process gives, and a killed worker changes nothing."""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from dask.sizeof import sizeof
from helpers import ROOT
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline

import scaling
from hmoh import HMOH, MOST_BALANCE
from kernels import RBF, UnitLength
from metrics import hamming_histogram, nearest, nearest_by_value
from ridge import HadamardRidge
from scaling import (
    ADDED,
    encode,
    from_npy,
    learn,
    send_modules,
    sharded_histogram,
    sharded_nearest,
)

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
    return codes[0], y[0], paths, hamming_histogram(codes[0], codes[1], y[0], y[1], n_bits)


def assert_same(ours, expected):
    assert ours.items.dtype == ours.relevant.dtype == np.int64
    assert_array_equal(ours.items, expected.items)
    assert_array_equal(ours.relevant, expected.relevant)
    # Not nearly: the last bit too.
    assert ours.mean_average_precision() == expected.mean_average_precision()


# ---- shards --------------------------------------------------------------------------


# At the edges of the tree of sums too, and with empty shards.
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("n_shards", [*SHARDS, ADDED + 1, ADDED**2 + 1, 300])
def test_shards_add_up_to_the_whole(n_shards, labels, tmp_path):
    query_codes, query_labels, paths, whole = code_case(tmp_path, 230, labels)
    db_codes, db_labels = (from_npy(path, n_shards) for path in paths)
    assert db_codes.numblocks == (n_shards, 1) and np.ptp(db_codes.chunks[0]) <= 1
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


def test_a_shard_is_read_when_computed_and_a_file_written_anew_is_another_array(tmp_path):
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
    need = r"\(2, 1\) and .* cut both into the same blocks of whole rows"
    others = from_npy(paths[1], 3), db_labels.rechunk((30, 2)), db_labels.rechunk(((20, 40), 5))
    for wrong in others:
        with pytest.raises(ValueError, match=need):
            sharded_histogram(query_codes, db_codes, query_labels, wrong)
    with pytest.raises(ValueError, match=r"n_shards=0 .* at least 1"):
        from_npy(paths[0], 0)
    with pytest.raises(TypeError, match=r"n_shards=2\.0 .* at least 1"):
        from_npy(paths[0], 2.0)
    with pytest.raises(ValueError, match=r"s3://bucket/X\.npy is not a local file.*read_parquet"):
        from_npy("s3://bucket/X.npy", 2)


@pytest.mark.parametrize("chunks", [300, (0, 5, 0, 290, 5), (30,) * 10])
def test_the_nearest_of_shards_are_those_of_the_whole(chunks):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=(300, 2), dtype=np.uint8)  # many ties
    values = rng.normal(size=(3, 16)).astype(np.float32)
    database = da.from_array(codes, chunks=(chunks, 2))
    for search, queries in [(nearest, codes[:5]), (nearest_by_value, values)]:
        for k in (1, 40, 300):
            found = sharded_nearest(queries, database, k).compute(scheduler="synchronous")
            for ours, one in zip(found, search(queries, codes, k), strict=True):
                assert ours.dtype == one.dtype
                assert_array_equal(ours, one)
    with pytest.raises(ValueError, match=r"k=301 .* 300"):
        sharded_nearest(codes[:5], database, 301)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        sharded_nearest(codes[:5], database[database[:, 0] > 1], 3)


def test_partitions_that_are_too_small_are_told():
    tiny = da.zeros((20_000, 10), chunks=(10, 10))
    with pytest.warns(UserWarning, match=r"2,000 partitions have 10 rows .* rechunk"):
        encode(fitted("model"), tiny)


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


@pytest.mark.parametrize("form", ["columns", "vectors"])
def test_the_codes_of_a_dataframe_keep_its_index(form, tmp_path):
    X, y, classes = labelled()
    frame, labels = shards(X, y, tmp_path, form)
    model = learn(ridge(), frame, labels, classes)
    codes = encode(model, frame)
    ours, rows = codes.compute(), frame.compute()
    assert list(ours.columns) == ["code_0", "code_1"]
    assert set(ours.dtypes) == set(codes.dtypes) == {np.dtype(np.uint8)}
    assert_array_equal(ours.index, rows.index)
    assert_array_equal(ours, model.transform(np.stack(rows) if form == "vectors" else rows))
    whole = hamming_histogram(ours.to_numpy()[:9], ours.to_numpy(), y[:9], y)
    assert_same(sharded_histogram(ours.to_numpy()[:9], codes, y[:9], labels).compute(), whole)
    if form == "columns":
        with pytest.raises(ValueError, match="other columns"):
            encode(model, frame[["f1", "f0", *frame.columns[2:]]])


@pytest.mark.filterwarnings("ignore:.*inplace keyword")  # of Dask with pandas 3.1
def test_the_lines_from_parquet_to_codes_run(tmp_path, monkeypatch):
    X, y, _ = labelled()
    ids = pd.Index(np.arange(N) * 7 + 10**6, name="id")
    frame = pd.DataFrame(X, ids).add_prefix("f").assign(label=y)
    monkeypatch.chdir(tmp_path)
    Path("items").mkdir()
    for i in range(3):
        frame[i * 1000 : (i + 1) * 1000].to_parquet(f"items/{i}.parquet")
    lines = [line for line in scaling.__doc__.splitlines() if line.startswith("    ")]
    assert len(lines) == 5
    names = {"dd": dd, "HadamardRidge": HadamardRidge, "learn": learn, "encode": encode}
    exec(textwrap.dedent("\n".join(lines)), names)
    codes = pd.read_parquet("codes")
    assert_array_equal(codes.index, ids)
    assert_array_equal(codes, names["model"].transform(frame.drop(columns="label")))


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
    # The codes of a shard were made once, for both results.
    assert len(list(runs.iterdir())) == n_shards
    assert_same(calm, hamming_histogram(query_codes, calm_codes, y[:50], y, n_bits=12))

    pids = client.run(os.getpid)
    futures = client.compute([codes, total])
    while len(list(runs.iterdir())) < n_shards + n_shards // 3:
        time.sleep(0.01)
    held = client.has_what()
    victim = max(held, key=lambda worker: len(held[worker]))
    assert held[victim] and {future.status for future in futures} == {"pending"}
    os.kill(pids[victim], signal.SIGKILL)
    killed_codes, killed = client.gather(futures)
    # What the worker had done was lost, and done again.
    assert len(list(runs.iterdir())) > 2 * n_shards
    assert_array_equal(killed_codes, calm_codes)
    assert_same(killed, calm)
    client.wait_for_workers(2, timeout=30)
    # Its nanny has started another.
    assert len(set(client.run(os.getpid).values()) - set(pids.values())) == 1


# ---- learning ------------------------------------------------------------------------

N = 3000
CUTS = (0, 100, 0, 90, *[20] * (2 * ADDED), N - 190 - 40 * ADDED)  # some shards are empty


def ridge(**params):
    maps = [UnitLength(), RBF(30)]  # 1,000 rows of warm-up
    return HadamardRidge(12, maps, random_state=0, **params)


def labelled(labels="integers"):
    """Return samples and labels whose first shards lack classes, and `classes`."""
    X, y = samples(N, seed=7)
    y[:150] = 0
    if labels == "strings":
        return X, np.array(["cat", "dog", "owl", "zebra"])[y], ["cat", "dog", "owl", "zebra"]
    if labels == "sets":
        also = np.random.default_rng(8).random((N, 4)) < 0.1
        return X, np.eye(4, dtype=bool)[y] | also, None
    return X, y, range(4)


def shards(X, y, folder=None, form="arrays"):
    """Return both as Dask reads them."""
    if form == "arrays":
        return [da.from_array(a, chunks=(CUTS, *a.shape[1:])) for a in (X, y)]
    frame = pd.DataFrame(X.astype(np.float32)).add_prefix("f").assign(y=y, vector=list(X))
    for i, start in enumerate(range(0, N, N // 10)):
        frame[start : start + N // 10].to_parquet(folder / f"{i}.parquet")
    frame = dd.read_parquet(folder)
    return (frame["vector"] if form == "vectors" else frame[[f"f{i}" for i in range(10)]]), frame.y


def assert_same_model(ours, one):
    assert (ours.n_seen_, ours.n_learned_) == (one.n_seen_, one.n_learned_)
    for a, b in zip(ours.feature_map_, one.feature_map_, strict=True):
        assert all(np.array_equal(a.get_state()[name], v) for name, v in b.get_state().items())
    assert_allclose(ours.weights_, one.weights_, rtol=1e-4, atol=1e-5 * abs(one.weights_).max())


@pytest.mark.parametrize(
    "form, labels",
    [*[("arrays", kind) for kind in LABELS], ("columns", "integers"), ("vectors", "strings")],
)
def test_shards_teach_what_one_process_learns(form, labels, tmp_path, capsys):
    X, y, classes = labelled(labels)
    model = ridge()
    ours = learn(model, *shards(X, y, tmp_path, form), classes)
    assert_same_model(ours, ridge().partial_fit(X, y, classes).close())
    assert not hasattr(model, "n_seen_")
    bar = capsys.readouterr()
    assert "100% Completed" in bar.out and not bar.err


@pytest.mark.parametrize("labels", ["integers", "sets"])
def test_balanced_classes_have_weights_by_the_counts_of_all_samples(labels):
    X, y, classes = labelled(labels)
    if labels == "integers":
        y = np.where((y == 3) & (np.arange(N) % 40 > 0), 0, y)  # so the cap matters
    member = np.eye(4)[y] if labels == "integers" else y.astype(float)
    weights = member @ (member.sum() / (4 * member.sum(axis=0))) / member.sum(axis=1)
    assert labels == "sets" or weights.max() > MOST_BALANCE
    one = ridge().partial_fit(X, y, classes, np.minimum(weights, MOST_BALANCE)).close()
    ours = learn(ridge(class_weight="balanced"), *shards(X, y), classes)
    assert ours.class_weight is None
    assert_same_model(ours, one)


def test_fewer_rows_than_the_warm_up_and_what_comes_later():
    X, y, classes = labelled()
    parts = shards(X, y)
    early = learn(ridge(), *(part[:200] for part in parts), classes)
    one = ridge().partial_fit(X[:200], y[:200], classes).close()
    assert_same_model(early, one)
    early.merge(learn(early.blank(), *(part[200:] for part in parts)))
    assert_same_model(early, one.partial_fit(X[200:], y[200:]).close())


def test_what_would_learn_something_else_is_refused():
    X, y, classes = labelled()
    parts = shards(X, y)
    late = da.from_array(np.append(y[:-1], 9), chunks=parts[1].chunks)  # the last row of all
    seen = ridge().partial_fit(X[:40], y[:40], classes)
    for model, *given, reason in [
        (seen, *parts, classes, "seen 40 samples"),
        (ridge().fit(X[:40], y[:40]), *parts, "seen 40 samples"),
        (ridge(), *parts, "pass classes"),
        (ridge(), *parts, range(3), r"is 3, which"),
        (ridge(), parts[0], late, classes, r"is 9, which"),
        (ridge(memory=50), *parts, classes, "memory"),
        (ridge(), parts[0], parts[1].rechunk(300), classes, "same blocks of whole rows"),
        (ridge(), *(part[:0] for part in parts), classes, "seen no sample"),
    ]:
        with pytest.raises(ValueError, match=reason):
            learn(model, *given)
    with pytest.raises(TypeError, match="HadamardRidge"):
        learn(HMOH(), *parts, classes)
    for wrong in (y, parts[1].to_delayed().tolist()):
        with pytest.raises(TypeError, match=r"y is a \w+, .*from_delayed"):
            learn(ridge(), parts[0], wrong, classes)


def test_an_error_says_where():
    X, y, classes = labelled()
    X[1234, 7] = np.nan
    parts = [da.from_array(a, chunks=(1000, *a.shape[1:])) for a in (X, y)]
    where = r"X\[234, 7\] is nan(.|\n)*partition 1, whose row 0 is row 1000 of all"
    with pytest.raises(ValueError, match=where):
        learn(ridge(), *parts, classes)
    with pytest.raises(ValueError, match=where):
        encode(fitted("model"), parts[0]).compute()
    with pytest.raises(ValueError, match=r"is 3, which classes lacks(.|\n)*partition 0"):
        learn(ridge(), parts[0][:1000], parts[1][:1000], range(3))


def test_the_bar_can_be_left_out_and_two_threads_keep_stdout(capsys):
    X, y, classes = labelled()
    out = sys.stdout

    def quietly():
        learn(ridge(), *shards(X, y), classes, progress=False)

    threads = [threading.Thread(target=quietly) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.stdout is out
    assert capsys.readouterr() == ("", "")


def test_dask_knows_the_size_of_a_model():
    X, y, classes = labelled()
    model = ridge(n_classes=4).partial_fit(X, y, classes)
    arrays = 8 * 30 * (30 + 4) + 4 * 30 * 10  # G, S and the anchors
    assert arrays < sizeof(model) < 10 * arrays


@pytest.mark.slow
def test_a_partition_is_read_where_it_is_learned(client):
    X, y, classes = labelled()
    parts = [a.map_blocks(lambda block: block, dtype=a.dtype) for a in shards(X, y)]
    learn(ridge(), *parts, classes)

    def sent(dask_worker):
        return [str(key) for entry in dask_worker.transfer_outgoing_log for key in entry["keys"]]

    keys = [key for worker in client.run(sent).values() for key in worker]
    assert not [key for key in keys if any(part.name in key for part in parts)]
    calm = learn(ridge(), *shards(X, y), classes)
    for others in (client.persist(parts), [part.rechunk((700, -1)[: part.ndim]) for part in parts]):
        assert_allclose(learn(ridge(), *others, classes).weights_, calm.weights_, rtol=1e-4)


@pytest.mark.slow
def test_an_interrupt_leaves_no_task_on_the_cluster(client, tmp_path):
    X, y, classes = labelled()

    def slowly(block):
        (tmp_path / "begun").touch()
        time.sleep(3)
        return block

    def n_pending(dask_scheduler):  # an earlier test may have left results
        states = [task.state for task in dask_scheduler.tasks.values()]
        return sum(state not in ("memory", "released", "forgotten") for state in states)

    def interrupt():
        for _ in range(600):
            if (tmp_path / "begun").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.1)

    slow = shards(X, y)[0].map_blocks(slowly, meta=np.empty((0, 0)))
    model = ridge().partial_fit(X, y, classes).close().blank()
    thread = threading.Thread(target=interrupt)
    thread.start()
    # The caught error is kept with its traceback, as IPython does.
    with pytest.raises(KeyboardInterrupt) as kept:
        learn(model, slow, shards(X, y)[1])
    thread.join()
    for _ in range(600):  # also on a busy machine
        if client.run_on_scheduler(n_pending) == 0:
            break
        time.sleep(0.1)
    assert client.run_on_scheduler(n_pending) == 0 and kept.tb is not None


@pytest.mark.slow
def test_a_worker_killed_while_learning_changes_nothing(client):
    X, y, classes = labelled()

    def slowly(block):
        time.sleep(0.05)
        return block

    parts = shards(X, y)
    calm = learn(ridge(), *parts, classes)
    slow = parts[0].map_blocks(slowly, meta=np.empty((0, 0)))
    pids = client.run(os.getpid)
    kill = threading.Timer(0.5, os.kill, (min(pids.values()), signal.SIGKILL))
    kill.start()
    assert_array_equal(learn(ridge(), slow, parts[1], classes).weights_, calm.weights_)
    client.wait_for_workers(2, timeout=30)
    assert len(set(client.run(os.getpid).values()) - set(pids.values())) == 1


KEPT = """
import importlib, sys
from pathlib import Path
import dask.array as da
sys.path[:0] = ["{root}"]
from scaling import from_npy, learn
from ridge import HadamardRidge
folder = Path("{folder}")
X, y = from_npy(folder / "X.npy", 200), from_npy(folder / "y.npy", 200)
first = HadamardRidge(12, random_state=0).partial_fit(X[::9].compute(), y[::9].compute(), range(4))
{recipe}
"""


@pytest.mark.slow
def test_a_client_killed_while_learning_continues_to_the_same_model(tmp_path):
    """The recipe of 18_scaling_out."""
    cells = json.loads((ROOT / "notebooks" / "18_scaling_out.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    [recipe] = [source for source in sources if source.startswith("def learn_and_keep")]
    call = "learn_and_keep(first.close().blank(), X, y, folder / sys.argv[1])"
    recipe = recipe.partition("\n\n\n")[0] + f"\n{call}"
    script = KEPT.format(root=ROOT, folder=tmp_path, recipe=recipe)
    X, y, _ = labelled()
    for name, array in (("X", X), ("y", y)):
        np.save(tmp_path / f"{name}.npy", array)
    names = {}
    for folder in ("calm", "killed"):
        (tmp_path / folder).mkdir()
        if folder == "killed":
            process = subprocess.Popen([sys.executable, "-c", script, folder])
            while len(list((tmp_path / folder).glob("*.npz"))) < 2:
                time.sleep(0.001)
            process.kill()
            process.wait()
            assert len(list((tmp_path / folder).glob("*.npz"))) < 20
        command = [sys.executable, "-c", script, folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        names[folder] = sorted((tmp_path / folder).glob("*.npz"))
    calm, killed = (HadamardRidge.load(files[-1]) for files in names.values())
    assert killed.n_seen_ == N
    assert_array_equal(killed.weights_, calm.weights_)


@contextlib.contextmanager
def processes(folder):
    """Start a scheduler and, for each name that is sent, a worker in a folder of this name."""
    started = []

    def start(name, *options, inside="scheduler"):
        (folder / inside).mkdir(exist_ok=True)
        command = [sys.executable, "-m", f"distributed.cli.{name}", *options]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, cwd=folder / inside, env=env, **quiet))

    file = str(folder / "scheduler.json")
    to = ("--scheduler-file", file)
    local = ("--host", "127.0.0.1", "--dashboard-address", ":0")
    start("dask_scheduler", *to, *local, "--port", "0")
    try:
        while not Path(file).exists():
            time.sleep(0.05)
        with Client(scheduler_file=file, timeout=30) as client:
            # Without a nanny, so that a worker needs one process.
            options = ("--nthreads", "1", "--no-nanny")
            yield client, partial(start, "dask_worker", *to, *local, *options)
    finally:
        for process in started[::-1]:
            process.terminate()
            process.wait()


@pytest.mark.slow
def test_processes_started_in_another_folder_get_the_modules(tmp_path):
    X, y, classes = labelled()
    array = da.from_array(X, chunks=(1000, 10))
    with processes(tmp_path) as (client, start_worker):
        start_worker(inside="empty")
        client.wait_for_workers(1, timeout=30)
        ours = learn(ridge(), *shards(X, y), classes)
        # A later worker gets them too, even one that has another module of the name.
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "scaling.py").write_text("raise RuntimeError('imported')")
        start_worker(inside="other")
        client.wait_for_workers(2, timeout=30)
        assert_array_equal(encode(ours, array).compute(), ours.transform(X))
    assert_same_model(ours, ridge().partial_fit(X, y, classes).close())


@pytest.mark.slow
def test_other_sources_on_a_cluster_are_refused_and_replaced_on_request(tmp_path):
    # The codes of the edited source are inverted.
    (tmp_path / "edited").mkdir()
    for name in scaling.SOURCES:
        shutil.copy(ROOT / name, tmp_path / "edited")
    with open(tmp_path / "edited" / "ridge.py", "a") as file:
        file.write(
            "\nold = HadamardRidge.transform\n"
            "HadamardRidge.transform = lambda model, X: ~old(model, X)\n"
        )
    script = (
        "import sys, numpy as np, dask.array as da\n"
        "from distributed import Client\n"
        "from ridge import HadamardRidge\n"
        "from scaling import encode, send_modules\n"
        "client = Client(scheduler_file=sys.argv[1])\n"
        "X, y = np.eye(8), np.arange(8)\n"
        "model = HadamardRidge(8, random_state=0).fit(X, y)\n"
        "try:\n"
        "    encode(model, da.from_array(X))\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "send_modules(client, replace=True)\n"
        "codes = encode(model, da.from_array(X)).compute()\n"
        "assert (codes == model.transform(X)).all()\n"
    )
    (tmp_path / "unrelated").mkdir()
    (tmp_path / "unrelated" / "scaling.py").write_text("raise RuntimeError('imported')")
    array = da.from_array(np.eye(8))
    model = HadamardRidge(8, random_state=0).fit(np.eye(8), np.arange(8))
    with processes(tmp_path) as (client, start_worker):
        start_worker(inside="unrelated")
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(RuntimeError, match=r"unrelated.scaling\.py .*replace=True"):
            encode(model, array)
        send_modules(client, replace=True)
        assert_array_equal(encode(model, array).compute(), model.transform(np.eye(8)))

        command = [sys.executable, "-c", script, str(tmp_path / "scheduler.json")]
        edited = subprocess.run(command, cwd=tmp_path / "edited", capture_output=True, text=True)
        assert edited.returncode == 0, edited.stderr
        assert "ridge.py" in edited.stdout and "replace=True" in edited.stdout
        # Now the cluster's sources are others than ours.
        with pytest.raises(RuntimeError, match=r"ridge\.py .*replace=True"):
            encode(model, array)
