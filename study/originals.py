"""The paper's own files, which do not ship: where they come from, and readers for the formats they come in.

Formats are .mat (v5 and v7.3), idx, and NUS-WIDE's text files. Each reader names the file at fault when it cannot read
it; `read_original` adds the remedy. scipy (.mat v5), h5py (.mat v7.3) and pooch (downloads) are imported when needed.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["ORIGINALS", "fetch", "mat_version", "read_idx", "read_mat", "read_nuswide", "read_original"]

DRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
ROWS = 1 << 16  # of a v7.3 matrix read at a time


class Original(NamedTuple):
    """A data set of the paper's that does not ship."""

    title: str
    stand_in: str
    files: tuple[str, ...]  # any of them; the first can be fetched
    features: tuple[str, ...]  # its variables: all rows, or training and test rows
    labels: tuple[str, ...]
    drive: str  # its number at Google Drive, as linked by github.com/fcakir/mihash and by HMOH's authors
    urls: tuple[str, ...] = ()  # tried first

    @property
    def page(self) -> str:
        return f"https://drive.google.com/file/d/{self.drive}/view"


ORIGINALS = {
    "cifar10": Original(
        "CIFAR-10, 60,000 x 4096 VGG16 fc7 features",
        "cifar10_efficientnet",
        ("CIFAR10_VGG16_fc7.mat",),
        ("trainCNN", "testCNN"),
        ("trainLabels", "testLabels"),
        "1uygdJYU5Lnd-Pj6l84_IE_e_6DYgybtF",
        ("http://cs-people.bu.edu/hekun/data/mihash/CIFAR10_VGG16_fc7.mat",),
    ),
    "places205": Original(
        "Places205, 2.5 million x 128 AlexNet fc7 features",
        "udhr205",
        ("Places205_AlexNet_fc7_PCA128.mat",),
        ("pca_feats",),
        ("labels",),
        "1EhE1EbSJyrzNGo-74HyUGls0JrDDuq7c",
        ("http://cs-people.bu.edu/hekun/data/mihash/Places205_AlexNet_fc7_PCA128.mat",),
    ),
    "nuswide": Original(
        "NUS-WIDE, 186,577 x 500 counts of visual words",
        "reuters10",
        ("NUS-WIDE-split.mat", "BoW_int.dat"),  # the second with AllLabels/Labels_<concept>.txt beside it
        ("I_tr", "I_te"),
        ("L_tr", "L_te"),
        "1jJThCuiR2G0cQUfd0QZrKWnlLxy5IiIJ",
    ),
}


def fetch(name: str, folder: Path) -> Path:
    """Download the paper's file of a data set into a folder; return its path.

    It is put in its place only when it is whole and a .mat file. No checksums are published: the file's own is noted
    beside it, and compared when it is read. A file that is there and whole is kept.

    Parameters
    ----------
    name : {"cifar10", "places205", "nuswide"}
    folder : Path
    """
    if name not in ORIGINALS:
        known = ", ".join(f'"{known}"' for known in ORIGINALS)
        raise ValueError(f"{name!r} cannot be fetched; pass {known}. The other sets ship with the project.")
    try:
        import pooch
    except ImportError:
        raise ImportError("downloads need pooch and tqdm; `pip install pooch tqdm`.") from None
    original = ORIGINALS[name]
    target = folder / original.files[0]
    if target.exists() and _is_as_noted(target):
        print(f"{target} is there already; delete it to fetch it again.")
        return target
    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        for url in (*original.urls, DRIVE.format(original.drive)):
            try:
                downloader = pooch.HTTPDownloader(progressbar=True, timeout=60)
                got = Path(pooch.retrieve(url, None, target.name, scratch, downloader=downloader))
                mat_version(got)  # a page that says "not found" or "log in" ends here
            except (OSError, ValueError) as error:  # the network's errors are OSErrors
                failures.append(f"  {url}: {error}")
                Path(scratch, target.name).unlink(missing_ok=True)
                continue
            _note(got).write_text(_sha256(got) + "\n")
            os.replace(_note(got), _note(target))
            os.replace(got, target)
            return target
    raise OSError(
        f"{target} could not be fetched; download {original.page} with a browser and put it there.\n"
        + "\n".join(failures)
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note(path: Path) -> Path:
    """Where `fetch` notes the checksum of what it got."""
    return path.with_name(path.name + ".sha256")


def _is_as_noted(path: Path) -> bool:
    """Whether a file has the checksum noted for it; one put there by hand has none to compare."""
    return not _note(path).exists() or _sha256(path) == _note(path).read_text().strip()


def read_original(name: str, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The paper's features of a data set, as they are, from the files that the published loaders read.

    Parameters
    ----------
    name : str
        A name of `ORIGINALS`.
    path : Path
        Of one of its files.

    Returns
    -------
    features : (n, d) float32
    labels : (n,) int64 or (n, 10) uint8
        Of NUS-WIDE the ten most frequent labels, and the rows that have at least one of them.
    candidates : (k,) integers
        The rows of the test part if there is one, otherwise all.
    """
    original, multi_label = ORIGINALS[name], name == "nuswide"
    try:
        if not _is_as_noted(path):
            raise ValueError(f"{path} is not the file that was fetched (its sha256 differs)")
        if path.suffix == ".mat":
            arrays = read_mat(path, [*original.features, *original.labels])
            parts, labels = arrays[: len(original.features)], arrays[len(original.features) :]
        else:
            X, Y, _ = read_nuswide(path)
            parts, labels = [X], [Y]
        given = np.concatenate(labels if multi_label else [part.ravel() for part in labels])
        with np.errstate(invalid="ignore"):
            labels = given.astype(np.uint8 if multi_label else np.int64)
        if not np.array_equal(given, labels) or (multi_label and labels.max() > 1):
            raise ValueError(f"{path} has labels that are not {'0 or 1' if multi_label else 'whole numbers'}")
        if len(labels) != sum(map(len, parts)) or len({part.shape[1] for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ValueError(f"{path} has features {shapes} but {len(labels)} labels")
    except ValueError as error:
        remedy = f"delete it and run `python datasets.py fetch {name}`, or put a whole copy there."
        raise ValueError(f"{error}; {remedy}") from error
    features = np.empty((len(labels), parts[0].shape[1]), np.float32)
    np.concatenate(parts, out=features, casting="same_kind")
    is_candidate = np.arange(len(labels)) >= (len(parts[0]) if len(parts) > 1 else 0)
    if multi_label:  # the ten most frequent labels, and the rows that have one
        labels = labels[:, np.sort(np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")[:10])]
        kept = labels.any(axis=1)
        features, labels, is_candidate = features[kept], labels[kept], is_candidate[kept]
    return features, labels, np.flatnonzero(is_candidate)


def mat_version(path: Path) -> str:
    """The version of a .mat file, "5" or "7.3", by its first bytes; a ValueError for anything else."""
    with path.open("rb") as file:
        start = file.read(10)
    if start == b"MATLAB 5.0":
        return "5"
    if start == b"MATLAB 7.3" or start.startswith(b"\x89HDF"):
        return "7.3"
    raise ValueError(f"{path} is no .mat file of version 5 or 7.3 (it begins with {start!r})")


def read_mat(path: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Variables of a .mat file, as MATLAB shows them: rows are rows, whatever the version.

    Parameters
    ----------
    path : Path
    names : sequence of str
        The variables wanted; others are not read.
    """
    read = {"5": _read_mat5, "7.3": _read_mat73}[mat_version(path)]
    try:
        found = read(path, names)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # cut or damaged files: scipy and h5py raise nearly anything
        raise ValueError(f"{path} is damaged and cannot be read ({error})") from error
    for name in names:
        if name not in found:
            raise ValueError(f"{path} has no variable {name}; {', '.join(names)} are needed")
        if found[name].dtype.kind not in "biuf" or found[name].ndim != 2:
            raise ValueError(f"{path}: {name} is {found[name].dtype}, but a matrix of numbers is needed")
    return [found[name] for name in names]


def _read_mat5(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    try:
        from scipy.io import loadmat
    except ImportError:
        raise ImportError(f"{path} is a .mat file of version 5; `pip install scipy` to read it.") from None
    return {name: np.asarray(value) for name, value in loadmat(path, variable_names=list(names)).items()}


def _read_mat73(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """HDF5 holds MATLAB's matrices transposed; turned back by blocks of rows, so that only one copy is in memory."""
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{path} is a .mat file of version 7.3; `pip install h5py` to read it.") from None
    found = {}
    with h5py.File(path, "r") as file:
        for name in names:
            stored = file.get(name)
            if isinstance(stored, h5py.Dataset) and stored.ndim == 2:
                found[name] = np.empty(stored.shape[::-1], stored.dtype)
                for start in range(0, stored.shape[1], ROWS):
                    found[name][start : start + ROWS] = stored[:, start : start + ROWS].T
            elif stored is not None:
                found[name] = np.empty(0, object)  # a cell or struct: refused above, by its name
    return found


def read_idx(path: Path) -> np.ndarray:
    """The array of an idx file, MNIST's format, packed with gzip or not.

    Two zero bytes, a byte for the type, one for the number of dimensions; their sizes as big-endian int32; the values.
    """
    raw = path.read_bytes()
    try:
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        dtype = np.dtype(IDX_TYPES[raw[2]])
        shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
        if raw[:2] != b"\0\0" or len(raw) != 4 + 4 * raw[3] + dtype.itemsize * shape.prod(dtype=np.int64):
            raise ValueError(f"its {len(raw)} bytes do not fit its header")
        return np.frombuffer(raw, dtype, offset=4 + 4 * raw[3]).reshape(shape).astype(dtype.newbyteorder("="))
    except (EOFError, IndexError, KeyError, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a whole idx file ({error})") from error


def read_nuswide(path: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """NUS-WIDE as released: `BoW_int.dat`, a line of counts per image, and beside it `AllLabels/Labels_<concept>.txt`,
    a 0 or 1 per line.

    Parameters
    ----------
    path : Path
        Of `BoW_int.dat`.

    Returns
    -------
    counts : (n, d) float32
    labels : (n, L) uint8
    concepts : list of str
        The columns of `labels`, in alphabetical order.
    """
    files = sorted(path.parent.glob("AllLabels/Labels_*.txt"))
    if not files:
        raise ValueError(f"{path.parent / 'AllLabels'} has no files Labels_<concept>.txt, which {path} needs beside it")
    counts = _read_text(path, np.float32)
    labels = np.empty((len(counts), len(files)), np.uint8)
    for column, file in enumerate(files):
        values = _read_text(file, np.int64)
        if values.shape != (len(counts), 1):
            raise ValueError(f"{file} has {values.size} values, but {path} has {len(counts)} lines: one of them is cut")
        if values.min() < 0 or values.max() > 1:
            raise ValueError(f"{file} has values from {values.min()} to {values.max()}, but labels are 0 or 1")
        labels[:, column] = values[:, 0]
    return counts, labels, [file.stem.removeprefix("Labels_") for file in files]


def _read_text(path: Path, dtype: type) -> np.ndarray:
    """A text file of numbers as a matrix."""
    try:
        if path.stat().st_size == 0:
            raise ValueError("it is empty")
        return np.loadtxt(path, dtype=dtype, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path} is damaged and cannot be read ({error})") from error
