"""Every data set: loaded as stated, split without leaks, refused when damaged; the paper's files in all formats."""

import dataclasses
import doctest
import functools
import gzip
import hashlib
import http.server
import threading

import h5py
import numpy as np
import pytest
import scipy.io

import datasets
import readers

SEEDS = range(5)
SPLITS = [datasets.split, datasets.unseen_split]


def made(name, rng):
    """Arrays as in the shipped file, with few features."""
    if name == "reuters10":
        Y = rng.random((900, 10)) < 0.08
        Y[np.arange(900), rng.integers(10, size=900)] = True
        return {"X": rng.integers(9, size=(900, 7), dtype=np.uint8), "Y": Y.astype(np.uint8)}
    if name == "udhr205":
        y = np.repeat(np.arange(205, dtype=np.uint8), 80)
        article = rng.integers(1, 31, size=len(y), dtype=np.uint8)
        return {
            "X": rng.integers(-128, 128, (len(y), 3), np.int8),
            "y": y,
            "scale": np.float64(0.5),
            "article": article,
        }
    n = 70_000 if name == "mnist" else 60_000
    X = rng.integers(-128, 128, (n, 2), np.int8)
    y = rng.integers(10, size=n, dtype=np.uint8)
    return {"X": X.view(np.uint8), "y": y} if name == "mnist" else {"X": X, "y": y, "scale": np.float32(0.25)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder, and no other."""
    monkeypatch.setattr(datasets, "FOLDER", tmp_path)
    monkeypatch.delenv("HMOH_DATA", raising=False)
    monkeypatch.setattr(datasets, "SHA256", dict(datasets.SHA256))
    return tmp_path


def ship(name, folder):
    """Put a made file into the folder, with its checksum; give back its arrays."""
    arrays = made(name, np.random.default_rng(0))
    np.savez(folder / f"{name}.npz", **arrays)
    datasets.SHA256[f"{name}.npz"] = hashlib.sha256((folder / f"{name}.npz").read_bytes()).hexdigest()
    return arrays


def assert_no_leak(dataset, parts, unseen):
    stream, database, queries = parts
    for part in parts:
        assert len(part) and len(np.unique(part)) == len(part)
    assert not np.intersect1d(queries, database).size and not np.intersect1d(queries, stream).size
    assert np.isin(queries, dataset.candidates).all()
    if dataset.groups is not None:
        outside = dataset.groups[np.concatenate([stream, database])]
        assert not np.intersect1d(dataset.groups[queries], outside).size
    if not dataset.multi_label:
        wanted = dataset.n_queries // len(dataset.classes)
        values, counts = np.unique(dataset.labels[queries], return_counts=True)
        assert (counts == wanted).all()
        assert np.array_equal(values, np.unique(dataset.labels[database]))
    if unseen:
        assert not np.intersect1d(stream, database).size
        labels = [
            np.flatnonzero(dataset.labels[part].any(axis=0)) if dataset.multi_label else np.unique(dataset.labels[part])
            for part in parts
        ]
        assert not np.intersect1d(labels[0], np.concatenate(labels[1:])).size
        n_unseen = {10: 2, 205: 51}[len(dataset.classes)]
        assert len(labels[0]) == len(dataset.classes) - n_unseen and len(np.union1d(*labels[1:])) == n_unseen
    else:
        assert np.array_equal(stream, database[: len(stream)])
        assert len(stream) == min(dataset.stream_size, len(database) // 2)
        if dataset.groups is None:
            assert len(database) + len(queries) == len(dataset.labels)


@pytest.mark.parametrize("name", datasets.SHIPPED)
def test_shipped_sets_are_loaded_as_stated(name, folder):
    arrays = ship(name, folder)
    dataset = datasets.load(name)
    X = arrays["X"].astype(np.float64)
    wanted = X / 255 if name == "mnist" else np.log1p(X) if name == "reuters10" else X * arrays["scale"]
    assert dataset.features.dtype == np.float32 and dataset.features.flags.c_contiguous
    np.testing.assert_allclose(dataset.features, wanted, rtol=1e-6)
    assert np.array_equal(dataset.labels, arrays.get("Y", arrays.get("y")))
    assert dataset.name == name and dataset.notes and dataset.role in ("mnist", "cifar10", "places205", "nuswide")
    assert dataset.stand_in_for == (None if name == "mnist" else dataset.role)
    assert ("STAND-IN" in repr(dataset)) == (name != "mnist")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "other"


@pytest.mark.parametrize("cut", SPLITS)
@pytest.mark.parametrize("name", datasets.SHIPPED)
def test_no_split_of_a_made_set_leaks(name, cut, folder):
    ship(name, folder)
    dataset = datasets.load(name)
    for seed in SEEDS:
        assert_no_leak(dataset, cut(dataset, seed), unseen=cut is datasets.unseen_split)
    first, again, other = (cut(dataset, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.stream, other.stream) and not np.array_equal(first.queries, other.queries)


@functools.cache
def real(name):
    if datasets.SHA256[f"{name}.npz"] == "0" * 64:
        pytest.skip(f"data/{name}.npz is not made yet")
    return datasets.load(name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cut", SPLITS)
@pytest.mark.parametrize("name", datasets.SHIPPED)
def test_no_split_of_a_shipped_set_leaks(name, cut, seed):
    assert_no_leak(real(name), cut(real(name), seed), unseen=cut is datasets.unseen_split)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape", "n_classes", "n_queries"),
    [
        ("mnist", (70_000, 784), 10, 1000),
        ("cifar10_efficientnet", (60_000, 128), 10, 1000),
        ("udhr205", (None, 128), 205, 4100),
        ("reuters10", (None, 500), 10, 1000),
    ],
)
def test_shipped_sets_have_the_shape_of_their_role(name, shape, n_classes, n_queries):
    dataset = real(name)
    n, d = dataset.features.shape
    assert (shape[0] or n, shape[1]) == (n, d) == (len(dataset.labels), d) and np.isfinite(dataset.features).all()
    assert len(dataset.classes) == n_classes and len(datasets.split(dataset, 0).queries) == n_queries
    if dataset.multi_label:
        assert dataset.labels.max() == 1 and dataset.labels.any(axis=1).all()


@pytest.mark.slow
def test_examples_in_docstring_run():
    failed, tried = doctest.testmod(datasets)
    assert tried > 0 and failed == 0


def test_mnist_split_is_the_one_it_always_was(folder):
    """A plain twin of the split for one label per row and no groups; its numbers are in the README."""
    y = ship("mnist", folder)["y"]
    rng = np.random.default_rng(7)
    drawn = rng.permutation(np.arange(60_000, 70_000))
    queries = np.concatenate([drawn[y[drawn] == label][:100] for label in range(10)])
    database = rng.permutation(np.setdiff1d(np.arange(70_000), queries))
    parts = datasets.split(datasets.load("mnist"), 7)
    assert np.array_equal(parts.queries, queries)
    assert np.array_equal(parts.database, database) and np.array_equal(parts.stream, database[:20_000])


def test_every_class_keeps_rows_on_its_side(folder):
    """A label that comes only with another (corn with grain) is on the same side as the other."""
    ship("reuters10", folder)
    dataset = datasets.load("reuters10")
    dataset.labels[:, 9] = dataset.labels[:, 0] & (np.arange(900) % 2)
    for seed in range(30):
        stream, database, queries = datasets.unseen_split(dataset, seed)
        seen, unseen = (dataset.labels[part].sum(axis=0) for part in (stream, np.concatenate([database, queries])))
        assert ((seen == 0) != (unseen == 0)).all() and (seen + unseen).min() >= datasets.FEWEST
        assert (seen[9] == 0) == (seen[0] == 0)
    halves = np.tile(np.eye(2, dtype=np.uint8).repeat(5, axis=1), (450, 1))  # five labels always come together
    with pytest.raises(ValueError, match=r"classes of reuters10 .* fewer than 20 rows .*take a larger"):
        datasets.unseen_split(dataclasses.replace(dataset, labels=halves), 0)


def test_too_few_rows_for_the_queries_is_an_error(folder):
    ship("cifar10_efficientnet", folder)
    dataset = datasets.load("cifar10_efficientnet")
    few = dataclasses.replace(dataset, candidates=np.flatnonzero(dataset.labels == 3)[:40])
    with pytest.raises(ValueError, match=r"class 3 of cifar10_efficientnet has 40 rows.*100 are needed.*n_queries=400"):
        datasets.split(few, 0)
    assert len(datasets.split(dataclasses.replace(few, n_queries=400), 0).queries) == 40
    with pytest.raises(ValueError, match=r"0 queries.*another seed or a larger"):
        datasets.split(dataclasses.replace(dataset, candidates=np.arange(0)), 0)


def test_one_article_cannot_be_split(folder):
    ship("udhr205", folder)
    dataset = datasets.load("udhr205")
    with pytest.raises(ValueError, match=r"udhr205 leaves 4100 queries and 0 rows to search"):
        datasets.split(dataclasses.replace(dataset, groups=np.zeros_like(dataset.groups)), 0)


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
@pytest.mark.parametrize("name", datasets.SHIPPED)
def test_damaged_shipped_file_is_named_with_the_remedy(name, damage, folder):
    ship(name, folder)
    path = folder / f"{name}.npz"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw[:-10] if damage == "cut" else raw)
    if damage == "missing":
        path.unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=rf"{name}\.npz.*git checkout data/{name}\.npz"):
        datasets.load(name)


def test_available_lists_everything_with_remedies(folder, capsys):
    for name in datasets.SHIPPED:
        ship(name, folder)
    found = datasets.available()
    assert [name for name, status in found.items() if status.ready] == list(datasets.SHIPPED)
    assert [name for name, status in found.items() if not status.ready] == ["cifar10", "places205", "nuswide"]
    printed = capsys.readouterr().out
    for name, original in readers.ORIGINALS.items():
        assert (
            f"python datasets.py fetch {name}" in printed and original.files[0] in printed and original.page in printed
        )
    (folder / "mnist.npz").unlink()
    (folder / "udhr205.npz").write_bytes(b"cut")
    write_original("nuswide", "text", folder)
    datasets.main([])
    assert "missing: restore it with `git checkout data/mnist.npz`" in capsys.readouterr().out
    found = datasets.available()
    assert found["udhr205"].remedy.startswith("damaged") and not found["udhr205"].ready
    assert found["nuswide"] == (True, readers.ORIGINALS["nuswide"].title, "")


# The paper's own files


def write_mat(path, arrays, version):
    """A .mat file as MATLAB writes it: v7.3 is HDF5 behind 512 bytes of header, matrices transposed."""
    if version == "5":
        scipy.io.savemat(path, arrays, do_compression=True)
        return
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = array.T
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")


def write_original(name, version, folder):
    """A small file in the form of the paper's; gives back all features and labels."""
    rng = np.random.default_rng(1)
    if name == "nuswide":
        X = rng.integers(5, size=(600, 6))
        Y = (rng.random((600, 12)) < np.linspace(0.5, 0.05, 12)).astype(np.uint8)
    else:
        X = rng.normal(size=(205 * 25, 4))
        Y = np.arange(205 * 25)[:, None] % (10 if name == "cifar10" else 205)
    path = folder / readers.ORIGINALS[name].files[0]
    if version == "text":
        np.savetxt(folder / "BoW_int.dat", X, fmt="%d")
        (folder / "AllLabels").mkdir()
        for column in range(12):
            np.savetxt(folder / "AllLabels" / f"Labels_c{column:02}.txt", Y[:, column], fmt="%d")
    elif name == "cifar10":
        arrays = {"trainCNN": X[:3000], "testCNN": X[3000:], "trainLabels": Y[:3000] + 1, "testLabels": Y[3000:] + 1}
        write_mat(path, arrays, version)
        Y = Y + 1
    elif name == "places205":
        write_mat(path, {"pca_feats": X.astype(np.float32), "labels": Y.astype(np.float64), "other": X[:3]}, version)
    else:
        write_mat(path, {"I_tr": X[:500], "I_te": X[500:], "L_tr": Y[:500], "L_te": Y[500:]}, version)
    return X, Y


FORMS = [(name, version) for name in readers.ORIGINALS for version in ("5", "7.3")] + [("nuswide", "text")]


@pytest.mark.parametrize(("name", "version"), FORMS)
def test_the_papers_files_are_used_if_they_are_there(name, version, folder, capsys, monkeypatch):
    monkeypatch.setattr(readers, "ROWS", 64)  # so that v7.3 is read in several blocks
    own = folder / "own"
    own.mkdir()
    X, Y = write_original(name, version, own)
    monkeypatch.setenv("HMOH_DATA", str(own))
    dataset = datasets.load(name)
    assert capsys.readouterr().err == ""
    assert (dataset.name, dataset.role, dataset.stand_in_for) == (name, name, None) and dataset.notes
    assert dataset.features.dtype == np.float32 and dataset.features.flags.c_contiguous
    rows = np.arange(len(X))
    if name == "nuswide":
        labels = Y[:, :10]  # made with falling frequency
        rows = np.flatnonzero(labels.any(axis=1))
        assert np.array_equal(dataset.labels, labels[rows])
    else:
        assert np.array_equal(dataset.labels, Y.ravel())
    np.testing.assert_allclose(dataset.features, X[rows], rtol=1e-6)
    first = {"cifar10": 3000, "places205": 0, "nuswide": 0 if version == "text" else 500}[name]
    assert np.array_equal(dataset.candidates, np.flatnonzero(rows >= first))
    for seed in SEEDS:
        assert_no_leak(dataset, datasets.split(dataset, seed), unseen=False)
    if name != "nuswide":
        assert_no_leak(dataset, datasets.unseen_split(dataset, 0), unseen=True)


@pytest.mark.parametrize("name", readers.ORIGINALS)
def test_the_stand_in_is_announced_in_one_line(name, folder, capsys):
    stand_in = readers.ORIGINALS[name].stand_in
    ship(stand_in, folder)
    assert datasets.load(name).name == stand_in
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "STAND-IN" in line and f"python datasets.py fetch {name}" in line
    datasets.load(stand_in)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", ["cut", "other", "page", "shape", "label"])
@pytest.mark.parametrize("version", ["5", "7.3"])
def test_damaged_original_is_named_with_the_remedy(version, damage, folder):
    ship("udhr205", folder)  # never used in its place
    path = folder / "Places205_AlexNet_fc7_PCA128.mat"
    X, y = np.random.default_rng(0).normal(size=(500, 8)), np.arange(500.0)[:, None] % 5
    if damage == "label":
        y[3] = np.nan
    arrays = {"pca_feats": X[:-1] if damage == "shape" else X, "wrong" if damage == "other" else "labels": y}
    write_mat(path, arrays, version)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-700])
    if damage == "page":
        path.write_text("<!DOCTYPE html>")
    with pytest.raises(ValueError, match=rf"(?s){path.name}.*delete it and run `python datasets.py fetch places205`"):
        datasets.load("places205")


def test_text_and_cells_in_a_mat_file_are_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"x": "text", "y": np.array(["cell", 1], object)})
    for name in "xy":
        with pytest.raises(ValueError, match=rf"a\.mat: {name} is .*matrix of numbers"):
            readers.read_mat(tmp_path / "a.mat", [name])
    with h5py.File(tmp_path / "b.mat", "w") as file:
        file.create_group("x")
    with pytest.raises(ValueError, match=r"b\.mat: x is .*matrix of numbers"):
        readers.read_mat(tmp_path / "b.mat", ["x"])


@pytest.mark.parametrize("damage", ["line", "lines", "label", "letter", "empty", "none"])
def test_damaged_nuswide_text_is_named(damage, folder):
    write_original("nuswide", "text", folder)
    bow, labels = folder / "BoW_int.dat", folder / "AllLabels" / "Labels_c03.txt"
    if damage == "line":
        bow.write_text(bow.read_text()[:-4])
    elif damage == "lines":
        bow.write_text("".join(bow.read_text().splitlines(keepends=True)[:-9]))
    elif damage == "label":
        labels.write_text("2\n" * 600)
    elif damage == "letter":
        labels.write_text("x\n" * 600)
    elif damage == "empty":
        bow.write_text("")
    else:
        for file in (folder / "AllLabels").iterdir():
            file.unlink()
    with pytest.raises(ValueError, match=r"(BoW_int\.dat|Labels_c\d\d\.txt).*delete it and run"):
        datasets.load("nuswide")


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files(dtype, pack, tmp_path):
    array = np.random.default_rng(0).integers(100, size=(5, 3, 2)).astype(dtype)
    code = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}[dtype]
    raw = bytes([0, 0, code, 3]) + np.array(array.shape, ">i4").tobytes() + array.astype(f">{dtype}").tobytes()
    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(pack(raw))
    read = readers.read_idx(path)
    assert read.dtype == array.dtype and read.dtype.isnative and np.array_equal(read, array)
    for damaged in (
        pack(raw)[:-1],
        pack(raw[:-1]),
        pack(raw + b"\0"),
        pack(b"\1" + raw[1:]),
        pack(raw[:6]),
        b"",
        raw[:3],
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"images-idx3-ubyte is not a whole idx file"):
            readers.read_idx(path)


# Downloads, from a server on this machine


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder, and the address under which it is served."""
    served = tmp_path / "served"
    served.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def end_headers(self):
            if self.path.startswith("/cut"):  # promises more than it sends
                self._headers_buffer = [
                    b"Content-Length: 999999\r\n" if line.startswith(b"Content-Length") else line
                    for line in self._headers_buffer
                ]
            super().end_headers()

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=served)) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield served, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def point_to(monkeypatch, name, *urls):
    monkeypatch.setattr(readers, "DRIVE", urls[-1])
    monkeypatch.setitem(readers.ORIGINALS, name, readers.ORIGINALS[name]._replace(urls=urls[:-1]))


def test_fetch_takes_the_first_address_that_has_the_file(folder, server, monkeypatch, capsys):
    served, address = server
    X, _ = write_original("cifar10", "5", served)
    (served / "page.mat").write_text("<!DOCTYPE html> log in, please")
    file_name = "CIFAR10_VGG16_fc7.mat"
    point_to(monkeypatch, "cifar10", address + "gone.mat", address + "page.mat", address + file_name)
    monkeypatch.setenv("HMOH_DATA", str(folder / "new"))
    datasets.main(["fetch", "cifar10"])
    path = folder / "new" / file_name
    printed = capsys.readouterr()
    assert str(path) in printed.out and "100%" in printed.err
    assert path.read_bytes() == (served / file_name).read_bytes()
    assert sorted(path.parent.iterdir()) == [path, path.with_name(file_name + ".sha256")]
    assert datasets.load("cifar10").features.shape == X.shape
    monkeypatch.setattr(readers, "DRIVE", address + "gone.mat")
    assert datasets.fetch("cifar10") == path and "there already" in capsys.readouterr().out

    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=rf"{file_name} .*sha256 differs.*fetch cifar10"):
        datasets.load("cifar10")
    point_to(monkeypatch, "cifar10", address + file_name)
    assert datasets.fetch("cifar10") == path  # a damaged file is replaced
    assert datasets.load("cifar10").features.shape == X.shape


def test_failed_fetch_leaves_nothing_and_says_what_to_do(folder, server, monkeypatch):
    served, address = server
    write_original("places205", "7.3", served)
    (served / "Places205_AlexNet_fc7_PCA128.mat").rename(served / "cut.mat")
    point_to(monkeypatch, "places205", address + "gone.mat", address + "cut.mat")
    target = folder / "target"
    target.mkdir()
    monkeypatch.setenv("HMOH_DATA", str(target))
    with pytest.raises(
        OSError, match=r"(?s)fc7_PCA128\.mat could not be fetched; download https.*gone\.mat: 404.*cut\.mat: "
    ):
        datasets.fetch("places205")
    assert list(target.iterdir()) == []
    with pytest.raises(SystemExit, match=r"could not be fetched"):
        datasets.main(["fetch", "places205"])


def test_only_the_papers_files_can_be_fetched():
    with pytest.raises(ValueError, match=r"'mnist' cannot be fetched; pass .cifar10., .places205., .nuswide."):
        datasets.fetch("mnist")
