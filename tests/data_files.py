"""Small data files for tests, in the forms of the shipped and of the paper's files."""

import hashlib

import h5py
import numpy as np
import scipy.io

from study import originals, shipped


def use_folder(folder, monkeypatch):
    """Make an empty folder the only data folder; return it."""
    monkeypatch.setattr(shipped, "FOLDER", folder)
    monkeypatch.delenv("HMOH_DATA", raising=False)
    monkeypatch.setattr(shipped, "SHA256", dict(shipped.SHA256))
    return folder


def made(name, rng):
    """Return arrays as in the shipped file, with few features."""
    if name in ("mediamill10", "reuters10"):
        n = 900 if name == "reuters10" else 32_000
        Y = rng.random((n, 10)) < 0.08
        Y[np.arange(n), rng.integers(10, size=n)] = True
        X = rng.integers(9, size=(n, 7), dtype=np.uint8)
        arrays = {"X": X, "Y": Y.astype(np.uint8)}
        if name == "mediamill10":
            arrays["scale"] = np.float32(0.125)
        return arrays
    if name == "udhr205":
        y = np.repeat(np.arange(205, dtype=np.uint8), 80)
        article = rng.integers(1, 31, size=len(y), dtype=np.uint8)
        X = rng.integers(-128, 128, (len(y), 3), np.int8)
        return {"X": X, "y": y, "scale": np.float64(0.5), "article": article}
    n = 70_000 if name == "mnist" else 60_000
    X = rng.integers(-128, 128, (n, 2), np.int8)
    y = rng.integers(10, size=n, dtype=np.uint8)
    if name == "mnist":
        return {"X": X.view(np.uint8), "y": y}
    return {"X": X, "y": y, "scale": np.float32(0.25)}


def ship(name, folder):
    """Write a small file of a shipped set with its checksum; return its arrays."""
    arrays = made(name, np.random.default_rng(0))
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)
    shipped.SHA256[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return arrays


def write_mat(path, arrays, version):
    """Write a .mat file as MATLAB does.

    Version 7.3 is HDF5 after 512 bytes of header, with transposed matrices.
    """
    if version == "5":
        scipy.io.savemat(path, arrays, do_compression=True)
        return
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = array.T
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM"
    with path.open("r+b") as file:
        file.write(header)


def write_original(name, version, folder):
    """Write a small file in the form of the paper's; return all features and labels."""
    rng = np.random.default_rng(1)
    path = folder / originals.ORIGINALS[name].file
    if name == "nuswide":
        X = rng.integers(5, size=(600, 6))
        Y = rng.random((600, 12)) < np.linspace(0.5, 0.05, 12)
        Y = Y.astype(np.uint8)
        arrays = {"I_tr": X[:500], "I_te": X[500:], "L_tr": Y[:500], "L_te": Y[500:]}
        write_mat(path, arrays, version)
        return X, Y
    n = 205 * 25
    X = rng.normal(size=(n, 4))
    if name == "cifar10":
        Y = np.arange(n)[:, None] % 10 + 1
        arrays = {"trainCNN": X[:3000], "testCNN": X[3000:]}
        arrays |= {"trainLabels": Y[:3000], "testLabels": Y[3000:]}
    else:
        Y = np.arange(n)[:, None] % 205
        arrays = {"pca_feats": X.astype(np.float32), "labels": Y.astype(float), "other": X[:3]}
    write_mat(path, arrays, version)
    return X, Y


def assert_no_leak(dataset, parts, unseen):
    """Check that no query is in another part, and that the parts are as documented."""
    stream, database, queries = parts
    for part in parts:
        assert len(part) and len(np.unique(part)) == len(part)
    assert not np.intersect1d(queries, database).size
    assert not np.intersect1d(queries, stream).size
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
        seen = classes_of(dataset, stream)
        searched = classes_of(dataset, np.concatenate([database, queries]))
        assert not np.intersect1d(seen, searched).size
        n_unseen = {10: 3, 205: 51}[len(dataset.classes)]
        assert len(seen) == len(dataset.classes) - n_unseen
        assert len(searched) == n_unseen
    else:
        assert np.array_equal(stream, database[: len(stream)])
        assert len(stream) == min(dataset.stream_size, len(database) // 2)
        if dataset.groups is None:
            all_rows = np.arange(len(dataset.labels))
            assert np.array_equal(np.sort(database), np.setdiff1d(all_rows, queries))


def classes_of(dataset, rows):
    """Return the classes that some rows have."""
    if dataset.multi_label:
        return np.flatnonzero(dataset.labels[rows].any(axis=0))
    return np.unique(dataset.labels[rows])
