"""Check that data sets load as documented, split without leaks, and are refused when damaged."""

import dataclasses
import functools
import os

import numpy as np
import pytest
from data_files import assert_no_leak, ship, use_folder, write_original

from study import datasets, originals, shipped

SEEDS = range(5)
SPLITS = [datasets.split, datasets.unseen_split]
WITH_TEST_PART = {"mnist": 60_000, "cifar10_vgg16": 50_000, "mediamill10": 27_017}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return use_folder(tmp_path, monkeypatch)


def assert_follows_the_seed(dataset, cut, seed, other_seed):
    first = cut(dataset, seed)
    again = cut(dataset, seed)
    other = cut(dataset, other_seed)
    for part, same_part in zip(first, again, strict=True):
        assert np.array_equal(part, same_part)
    assert not np.array_equal(first.stream, other.stream)
    assert not np.array_equal(first.queries, other.queries)


# Loading


@pytest.mark.parametrize("name", shipped.SHIPPED)
def test_shipped_sets_are_loaded_as_stated(name, folder):
    arrays = ship(name, folder)
    dataset = datasets.load(name)
    X = arrays["X"].astype(np.float64)
    if name == "mnist":
        wanted = X / 255
    elif name == "reuters10":
        wanted = np.log1p(X)
    else:
        wanted = X * arrays["scale"]
    assert dataset.features.dtype == np.float32
    assert dataset.features.flags.c_contiguous
    np.testing.assert_allclose(dataset.features, wanted, rtol=1e-6)
    assert np.array_equal(dataset.labels, arrays.get("Y", arrays.get("y")))
    assert dataset.name == name and dataset.notes
    assert dataset.role in ("mnist", "cifar10", "places205", "nuswide")
    n_rows = len(dataset.labels)
    n_train = WITH_TEST_PART.get(name, n_rows)
    assert np.array_equal(dataset.test_rows, np.arange(n_train, n_rows))
    assert dataset.stand_in_for == (None if name == "mnist" else dataset.role)
    assert ("STAND-IN" in repr(dataset)) == (name != "mnist")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "other"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape", "n_classes", "n_queries"),
    [
        ("mnist", (70_000, 784), 10, 1000),
        ("cifar10_vgg16", (60_000, 256), 10, 1000),
        ("udhr205", (28_700, 128), 205, 4100),
        ("mediamill10", (38_013, 120), 10, 2000),
        ("reuters10", (8_599, 500), 10, 1000),
    ],
)
def test_shipped_sets_have_the_shape_of_their_role_and_no_split_leaks(
    name, shape, n_classes, n_queries
):
    dataset = datasets.load(name)
    assert dataset.features.shape == shape
    assert len(dataset.labels) == shape[0]
    assert np.isfinite(dataset.features).all()
    assert len(dataset.classes) == n_classes
    if dataset.multi_label:
        assert dataset.labels.max() == 1 and dataset.labels.any(axis=1).all()
    parts = datasets.split(dataset, 1)
    assert len(parts.queries) == n_queries
    assert_no_leak(dataset, parts, unseen=False)
    assert_no_leak(dataset, datasets.unseen_split(dataset, 1), unseen=True)
    # A held-out split takes the stream apart and nothing else.
    held_out = datasets.held_out_split(dataset, 1)
    if dataset.groups is not None:
        groups = [set(dataset.groups[rows].tolist()) for rows in held_out[1:]]
        assert not groups[0] & groups[1]
    used = np.concatenate([held_out.database, held_out.queries])
    assert len(np.unique(used)) == len(used)
    assert np.isin(used, parts.stream).all()
    # Some rows of udhr205 are of articles that queries come from.
    assert name == "udhr205" or len(used) == len(parts.stream)
    half = len(held_out.database) // 2
    assert np.array_equal(held_out.stream, held_out.database[:half])
    n_most = min(len(parts.stream) // 10, n_queries)
    assert n_most - n_classes < len(held_out.queries) <= n_most


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
@pytest.mark.parametrize("name", shipped.SHIPPED)
def test_damaged_shipped_file_is_named_with_the_remedy(name, damage, folder):
    ship(name, folder)
    path = folder / f"{name}.npz"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw[:-10] if damage == "cut" else raw)
    if damage == "missing":
        path.unlink()
    message = rf"{name}\.npz.*git checkout data/{name}\.npz"
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        datasets.load(name)


@pytest.mark.parametrize("name", originals.ORIGINALS)
def test_the_stand_in_is_announced_in_one_line(name, folder, capsys):
    stand_in = originals.ORIGINALS[name].stand_in
    ship(stand_in, folder)
    assert datasets.load(name).name == stand_in
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "STAND-IN" in line
    assert f"python -m study.datasets fetch {name}" in line
    datasets.load(stand_in)
    assert capsys.readouterr().err == ""


# Splits


@pytest.mark.parametrize("cut", SPLITS)
@pytest.mark.parametrize("name", shipped.SHIPPED)
def test_no_split_of_a_made_set_leaks_and_queries_come_from_all_rows(name, cut, folder):
    ship(name, folder)
    dataset = datasets.load(name)
    unseen = cut is datasets.unseen_split
    share = WITH_TEST_PART.get(name, len(dataset.labels)) / len(dataset.labels)
    for seed in SEEDS:
        parts = cut(dataset, seed)
        assert_no_leak(dataset, parts, unseen)
        # The paper draws queries from all rows, not from the test part.
        deviation = (share * (1 - share) / len(parts.queries)) ** 0.5
        n_train = share * len(dataset.labels)
        assert abs((parts.queries < n_train).mean() - share) <= 4 * deviation
    assert_follows_the_seed(dataset, cut, 1, 2)


@pytest.mark.parametrize("name", shipped.SHIPPED)
def test_queries_can_be_drawn_from_the_test_part_only(name, folder):
    ship(name, folder)
    dataset = datasets.load(name)
    cut = functools.partial(datasets.split, queries="test")
    if name not in WITH_TEST_PART:
        message = rf'{name} has no test part to draw queries from; pass queries="all"'
        with pytest.raises(ValueError, match=message):
            cut(dataset, 0)
        return
    for seed in SEEDS:
        parts = cut(dataset, seed)
        assert parts.queries.min() >= WITH_TEST_PART[name]
        assert len(parts.queries) == dataset.n_queries
        assert_no_leak(dataset, parts, unseen=False)
    assert_follows_the_seed(dataset, cut, 1, 2)
    with pytest.raises(ValueError, match=r"queries='train' is unknown; pass \"all\" or \"test\""):
        datasets.split(dataset, 0, queries="train")


@pytest.mark.parametrize(("n_classes", "n_seen"), [(4, 3), (10, 7), (12, 9), (14, 10), (205, 154)])
def test_a_quarter_of_the_classes_rounded_half_up_is_unseen(n_classes, n_seen, folder):
    ship("mnist", folder)
    labels = np.arange(70_000) % n_classes
    dataset = dataclasses.replace(datasets.load("mnist"), labels=labels)
    for seed in SEEDS:
        stream, database, queries = datasets.unseen_split(dataset, seed)
        seen = np.unique(labels[stream])
        unseen = np.unique(labels[database])
        assert len(seen) == n_seen
        assert np.array_equal(unseen, np.setdiff1d(np.arange(n_classes), seen))
        values, counts = np.unique(labels[queries], return_counts=True)
        assert np.array_equal(values, unseen)
        assert (counts == 1000 // n_classes).all()


def test_mnist_split_agrees_with_plain_code(folder):
    """Compare with plain code for one label per row and no groups, on which all results rest."""
    y = ship("mnist", folder)["y"]
    rng = np.random.default_rng(7)
    drawn = rng.permutation(70_000)
    queries = np.concatenate([drawn[y[drawn] == label][:100] for label in range(10)])
    database = rng.permutation(np.setdiff1d(np.arange(70_000), queries))
    parts = datasets.split(datasets.load("mnist"), 7)
    assert np.array_equal(parts.queries, queries)
    assert np.array_equal(parts.database, database)
    assert np.array_equal(parts.stream, database[:20_000])


def test_every_class_keeps_rows_on_its_side(folder):
    """A label that occurs only with another (corn with grain) is on the same side as the other."""
    ship("reuters10", folder)
    dataset = datasets.load("reuters10")
    dataset.labels[:, 9] = dataset.labels[:, 0] & (np.arange(900) % 2)
    for seed in range(30):
        stream, database, queries = datasets.unseen_split(dataset, seed)
        searched = np.concatenate([database, queries])
        seen = dataset.labels[stream].sum(axis=0)
        unseen = dataset.labels[searched].sum(axis=0)
        assert ((seen == 0) != (unseen == 0)).all()
        assert (seen + unseen).min() >= datasets.FEWEST
        assert (seen[9] == 0) == (seen[0] == 0)

    # Five labels always occur together, and so do the other five.
    halves = np.tile(np.eye(2, dtype=np.uint8).repeat(5, axis=1), (450, 1))
    message = r"classes of reuters10 .* fewer than 20 rows .*take a larger"
    with pytest.raises(ValueError, match=message):
        datasets.unseen_split(dataclasses.replace(dataset, labels=halves), 0)


def test_too_few_rows_for_the_queries_is_an_error(folder):
    ship("cifar10_vgg16", folder)
    dataset = datasets.load("cifar10_vgg16")
    rows = np.flatnonzero(dataset.labels == 3)[:40]
    few = dataclasses.replace(dataset, test_rows=rows)
    message = r"class 3 of cifar10_vgg16 has 40 rows.*100 are needed.*n_queries=400"
    with pytest.raises(ValueError, match=message):
        datasets.split(few, 0, queries="test")
    assert len(datasets.split(few, 0).queries) == 1000
    fewer = dataclasses.replace(few, n_queries=400)
    assert len(datasets.split(fewer, 0, queries="test").queries) == 40

    ship("mediamill10", folder)
    data = datasets.load("mediamill10")
    ones = np.ones((1, 10), np.uint8)
    one_row = dataclasses.replace(data, features=data.features[:1], labels=ones)
    with pytest.raises(ValueError, match=r"0 queries.*another seed or a larger"):
        datasets.split(one_row, 0)


# Fingerprints


def test_fingerprint_of_a_shipped_set_is_its_checksum(folder):
    for name in shipped.SHIPPED:
        assert datasets.fingerprint(name) == shipped.SHA256[f"{name}.npz"]
    before = datasets.fingerprint("udhr205")
    ship("udhr205", folder)
    assert datasets.fingerprint("udhr205") != before
    for use in (datasets.load, datasets.fingerprint):
        with pytest.raises(ValueError, match=r"no data set .minst.; pass .mnist"):
            use("minst")


@pytest.mark.parametrize("name", originals.ORIGINALS)
def test_fingerprint_of_a_missing_original_is_that_of_its_stand_in(name, folder):
    stand_in = datasets.fingerprint(originals.ORIGINALS[name].stand_in)
    assert datasets.fingerprint(name) == stand_in
    write_original(name, "5", folder)
    assert datasets.fingerprint(name) != stand_in


@pytest.mark.parametrize("change", ["size", "time", "place"])
def test_fingerprint_follows_a_file_without_checksum(change, folder, monkeypatch):
    write_original("places205", "5", folder)
    path = folder / originals.ORIGINALS["places205"].file
    before = datasets.fingerprint("places205")
    assert datasets.fingerprint("places205") == before
    time = path.stat().st_mtime_ns
    if change == "size":
        path.write_bytes(path.read_bytes() + b"\0")
        os.utime(path, ns=(time, time))
    elif change == "time":
        os.utime(path, ns=(time, time + 1_000_000))
    else:
        own = folder / "own"
        own.mkdir()
        path.rename(own / path.name)
        monkeypatch.setenv("HMOH_DATA", str(own))
    assert datasets.fingerprint("places205") != before


def test_fingerprint_of_own_data_follows_every_array_and_size():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 3)), np.arange(60) % 3
    data = datasets.Dataset("own", X, y)
    assert datasets.fingerprint(datasets.Dataset("own", X.copy(), y.astype("u1"))) == (
        datasets.fingerprint(data)
    )
    changed = X.copy()
    changed[7, 1] += 1e-3
    others = [{"features": changed}, {"labels": y[::-1]}, {"test_rows": np.arange(3)}]
    others += [{"groups": y}, {"n_queries": 9}, {"stream_size": 20}, {"name": "other"}]
    others += [{"benchmark": datasets.BENCHMARKS["mnist"]}]
    found = {datasets.fingerprint(dataclasses.replace(data, **change)) for change in others}
    assert len(found | {datasets.fingerprint(data)}) == len(others) + 1


# Data of one's own


def test_own_data_have_no_role_and_sizes_that_every_class_has_rows_for():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 4))
    y = np.array(["a", "b", "c"])[rng.choice(3, 2000, p=[0.5, 0.49, 0.01])]
    data = datasets.Dataset("mnist", X, y)  # the name alone makes no benchmark
    assert (data.role, data.stand_in_for, data.title, data.metric) == (None, None, "mnist", "mAP")
    assert "STAND-IN" not in repr(data)
    fewest = (y == "c").sum()
    assert data.n_queries == 3 * min(200 // 3, fewest // 2)
    assert_no_leak(data, datasets.split(data, 0), unseen=False)
    several = datasets.Dataset("many", X, rng.random((2000, 5)) < 0.99)
    assert several.n_queries == 200 and several.labels.dtype == np.uint8
    with pytest.raises(ValueError, match=r"labels has shape \(9,\) for 2000 samples"):
        datasets.Dataset("short", X, y[:9])
    with pytest.raises(ValueError, match=r"features\[3, 2\] is nan"):
        X[3, 2] = np.nan
        datasets.Dataset("damaged", X, y)


# Embeddings


def test_embeddings_are_those_of_the_news_of_reuters10():
    news, file = shipped.read("reuters10.npz"), shipped.read("reuters10_wordllama.npz")
    assert np.array_equal(file["Y"], news["Y"])
    assert np.array_equal(file["topics"], news["topics"])
    X, headlines = (file[name].astype(np.float64) for name in ("X", "headlines"))
    assert X.shape == (8599, 256) and headlines.shape == (1075, 256)
    for rows in (X, headlines):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    # Headline i belongs to the body in row 8 i: no shift of the rows fits better.
    similarity = [np.sum(headlines * np.roll(X, -shift, axis=0)[::8]) for shift in range(8)]
    assert np.argmax(similarity) == 0


# The list of data sets


def test_available_lists_everything_with_remedies(folder, capsys):
    for name in shipped.SHIPPED:
        ship(name, folder)
    found = datasets.available()
    assert [name for name, way in found.items() if not way] == list(shipped.SHIPPED)
    assert [name for name, way in found.items() if way] == ["cifar10", "places205", "nuswide"]
    printed = capsys.readouterr().out
    for name, original in originals.ORIGINALS.items():
        assert f"python -m study.datasets fetch {name}" in printed
        assert original.file in printed
        assert original.page in printed

    (folder / "mnist.npz").unlink()
    (folder / "udhr205.npz").write_bytes(b"cut")
    write_original("nuswide", "5", folder)
    datasets.main([])
    printed = capsys.readouterr().out
    assert "missing: restore it with `git checkout data/mnist.npz`" in printed
    found = datasets.available()
    assert found["udhr205"].startswith("damaged")
    assert found["nuswide"] == ""
