"""Download and read the paper's own files, which do not ship with the project.

There are readers for .mat files (v5 and v7.3), for idx files, and for the text files of NUS-WIDE.
If a reader fails, its error names the file; `read_original` adds what to do. scipy (.mat v5), h5py
(.mat v7.3) and pooch (downloads) are imported only when they are needed.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from study.keep import write_atomically

__all__ = [
    "ORIGINALS",
    "fetch",
    "fingerprint",
    "mat_version",
    "read_idx",
    "read_mat",
    "read_nuswide",
    "read_original",
]

DRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"
BOSTON = "cs-people.bu.edu/hekun/data/mihash/"
# The first bytes of a .mat file tell its version.
MAT_STARTS = {b"MATLAB 5.0": "5", b"MATLAB 7.3": "7.3", b"\x89HDF": "7.3"}
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
# After this time, a .mat file of version 5 counts as damaged. A file of 234 MB took 3 seconds.
SECONDS = 900
# A v7.3 matrix is read in blocks of this many rows.
ROWS = 1 << 16
# The paper uses the most frequent labels of NUS-WIDE.
N_LABELS = 10


class Original(NamedTuple):
    """Describe a data set of the paper that does not ship.

    Any one of `files` is enough; `fetch` downloads the first. `features` and `labels` name the
    variables of the .mat file: one for all rows, or two for training and test rows. `drive` is the
    file's number at Google Drive, which github.com/fcakir/mihash and the authors of HMOH link to.
    `mirror` is the address of another copy, without https://.
    """

    title: str
    stand_in: str
    files: tuple[str, ...]
    features: tuple[str, ...]
    labels: tuple[str, ...]
    drive: str
    mirror: str | None = None

    def addresses(self, checksum_is_known: bool) -> list[str]:
        """Return the addresses to download from, in the order in which they are tried.

        Anyone on the way can change what is sent by http. So http comes last, and only if the
        file can be compared with a checksum.
        """
        found = [DRIVE.format(self.drive)]
        if self.mirror is not None:
            found.insert(0, f"https://{self.mirror}")
            if checksum_is_known:
                found.append(f"http://{self.mirror}")
        return found

    @property
    def page(self) -> str:
        """Return the address of the page to download the file from with a browser."""
        return f"https://drive.google.com/file/d/{self.drive}/view"


ORIGINALS = {
    "cifar10": Original(
        title="CIFAR-10, 60,000 x 4096 VGG16 fc7 features",
        stand_in="cifar10_vgg16",
        files=("CIFAR10_VGG16_fc7.mat",),
        features=("trainCNN", "testCNN"),
        labels=("trainLabels", "testLabels"),
        drive="1uygdJYU5Lnd-Pj6l84_IE_e_6DYgybtF",
        mirror=BOSTON + "CIFAR10_VGG16_fc7.mat",
    ),
    "places205": Original(
        title="Places205, 2.5 million x 128 AlexNet fc7 features",
        stand_in="udhr205",
        files=("Places205_AlexNet_fc7_PCA128.mat",),
        features=("pca_feats",),
        labels=("labels",),
        drive="1EhE1EbSJyrzNGo-74HyUGls0JrDDuq7c",
        mirror=BOSTON + "Places205_AlexNet_fc7_PCA128.mat",
    ),
    "nuswide": Original(
        title="NUS-WIDE, 186,577 x 500 counts of visual words",
        stand_in="mediamill10",
        # The second file needs AllLabels/Labels_<concept>.txt beside it.
        files=("NUS-WIDE-split.mat", "BoW_int.dat"),
        features=("I_tr", "I_te"),
        labels=("L_tr", "L_te"),
        drive="1jJThCuiR2G0cQUfd0QZrKWnlLxy5IiIJ",
    ),
}


def fetch(name: str, folder: Path) -> Path:
    """Download the paper's file of a data set into a folder; return its path.

    The file is moved into the folder only when the download is complete and is a .mat file. No
    checksums are published. So sha256 and size of the first download are noted in FILE.sha256
    beside it. They are compared when the file is read, and with a later download. An intact file
    that exists already is kept.

    Parameters
    ----------
    name : {"cifar10", "places205", "nuswide"}
    folder : Path
    """
    if name not in ORIGINALS:
        known = ", ".join(f'"{known}"' for known in ORIGINALS)
        raise ValueError(
            f"{name!r} cannot be fetched; pass {known}. The other sets ship with the project."
        )
    original = ORIGINALS[name]
    target = folder / original.files[0]
    note = _note(target)
    noted = _noted(note)
    if target.exists() and (noted is None or _measured(target).sha256 == noted.sha256):
        print(f"{target} exists already; delete it to fetch it again.")
        return target

    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        path = Path(scratch, target.name)
        for url in original.addresses(checksum_is_known=noted is not None):
            try:
                _download(url, path)
                _check_note(path, note)
            # The errors of the network are OSErrors.
            except (OSError, ValueError) as error:
                failures.append(f"  {url}: {error}")
                path.unlink(missing_ok=True)
                continue
            # The note comes first: a file without one could not be checked.
            write_atomically(note, f"{_measured(path)}\n")
            os.replace(path, target)
            return target
    tried = "\n".join(failures)
    raise OSError(
        f"{target.name} could not be fetched; download {original.page} with a browser "
        f"and save it as {target}. These addresses were tried:\n{tried}"
    )


def _download(url: str, path: Path) -> None:
    """Download a .mat file; raise a ValueError if the server sends something else."""
    try:
        import pooch
    except ImportError:
        raise ImportError("downloads need pooch and tqdm; `pip install pooch tqdm`.") from None
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=60)
    pooch.retrieve(url, None, path.name, path.parent, downloader=downloader)
    # A server may send a web page instead of the file, such as "not found" or "log in".
    start = _start(path)
    if not start.startswith(tuple(MAT_STARTS)):
        raise ValueError(f"the server sent no .mat file (it begins with {start!r})")


class Measured(NamedTuple):
    """Hold what is noted about a file."""

    sha256: str
    size: str

    def __str__(self) -> str:
        return f"{self.sha256} {self.size} bytes"


def _measured(path: Path) -> Measured:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Measured(sha256, str(path.stat().st_size))


def _note(path: Path) -> Path:
    """Return where `fetch` notes sha256 and size of a file."""
    return path.with_name(path.name + ".sha256")


def _noted(note: Path) -> Measured | None:
    """Return what is noted about a file; None if there is no note, as for a copied file."""
    if not note.exists():
        return None
    # Older notes have no size.
    sha256, size, *_ = [*note.read_text().split(), "?", "?"]
    return Measured(sha256, size)


def _check_note(path: Path, note: Path) -> None:
    """Raise a ValueError if there is a note, and the file is not the one that was noted."""
    noted = _noted(note)
    if noted is None:
        return
    found = _measured(path)
    if found.sha256 != noted.sha256:
        raise ValueError(
            f"{path.name} is not the file that was first downloaded, because its sha256 differs: "
            f"{note} has {noted}, the file now has {found}; if the change is right, delete the note"
        )


def fingerprint(path: Path) -> str:
    """Return a text that changes when an original changes, without reading all of it.

    It is the sha256 that `fetch` noted. Without a note, it is the sha256 of path, size and time of
    change of the file. For NUS-WIDE's text files, it covers the files of labels too.

    Parameters
    ----------
    path : Path
        Of a file of `ORIGINALS`, which exists.
    """
    noted = _noted(_note(path))
    if path.suffix == ".mat":
        files = [path]
        if noted is not None:
            return noted.sha256
    else:
        files = [path, *_label_files(path)]
    digest = hashlib.sha256()
    for file in files:
        status = file.stat()
        line = f"{file.resolve()} {status.st_size} {status.st_mtime_ns}\n"
        digest.update(line.encode())
    return digest.hexdigest()


def read_original(name: str, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the paper's features of a data set, unchanged, from the file of the published loaders.

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
        For NUS-WIDE, the ten most frequent labels; rows that have none of them are left out.
    test_rows : (k,) integers
        The rows of the file's test part; empty if the file has none. `datasets.split` says how
        the published loaders use it.
    """
    multi_label = name == "nuswide"
    try:
        _check_note(path, _note(path))
        parts, labels = _read_parts(ORIGINALS[name], path)
        labels = _join_labels(labels, multi_label, path)
        _check_shapes(parts, labels, path)
    except ValueError as error:
        raise ValueError(
            f"{error}; delete {path.name} and run `python -m study.datasets fetch {name}`, "
            "or put a complete copy there."
        ) from error

    features = np.empty((len(labels), parts[0].shape[1]), np.float32)
    np.concatenate(parts, out=features, casting="same_kind")
    # The first part is the training part, or has all rows.
    is_test = np.arange(len(labels)) >= len(parts[0])
    if multi_label:
        counts = labels.sum(axis=0, dtype=np.int64)
        by_count = np.argsort(-counts, kind="stable")
        most_frequent = np.sort(by_count[:N_LABELS])
        labels = labels[:, most_frequent]
        kept = labels.any(axis=1)
        features = features[kept]
        labels = labels[kept]
        is_test = is_test[kept]
    return features, labels, np.flatnonzero(is_test)


def _read_parts(original: Original, path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return features and labels as stored: one array of all rows, or training and test rows."""
    if path.suffix != ".mat":
        counts, labels, _ = read_nuswide(path)
        return [counts], [labels]
    arrays = read_mat(path, [*original.features, *original.labels])
    n_parts = len(original.features)
    return arrays[:n_parts], arrays[n_parts:]


def _join_labels(parts: list[np.ndarray], multi_label: bool, path: Path) -> np.ndarray:
    """Return the labels of all rows as integers, after a check of their values."""
    if not multi_label:
        parts = [part.ravel() for part in parts]
    given = np.concatenate(parts)
    # A label that is NaN gives a warning here and an error below.
    with np.errstate(invalid="ignore"):
        labels = given.astype(np.uint8 if multi_label else np.int64)
    if not np.array_equal(given, labels) or (multi_label and labels.max() > 1):
        need = "0 or 1" if multi_label else "whole numbers"
        raise ValueError(f"{path} has labels that are not {need}")
    return labels


def _check_shapes(parts: list[np.ndarray], labels: np.ndarray, path: Path) -> None:
    n_rows = sum(len(part) for part in parts)
    widths = {part.shape[1] for part in parts}
    if n_rows != len(labels) or len(widths) > 1:
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ValueError(f"{path} has features {shapes} but {len(labels)} labels")


def _start(path: Path) -> bytes:
    """Return the first bytes of a file."""
    with path.open("rb") as file:
        return file.read(10)


def mat_version(path: Path) -> str:
    """Return the version of a .mat file, "5" or "7.3"; raise a ValueError for other files."""
    start = _start(path)
    for known, version in MAT_STARTS.items():
        if start.startswith(known):
            return version
    raise ValueError(f"{path} is no .mat file of version 5 or 7.3 (it begins with {start!r})")


def read_mat(path: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Read variables of a .mat file, with rows and columns as in MATLAB for both versions.

    Parameters
    ----------
    path : Path
    names : sequence of str
        The variables to read; others are skipped.
    """
    version = mat_version(path)
    read = _read_mat5 if version == "5" else _read_mat73
    try:
        found = read(path, names)
    except (ImportError, MemoryError, NoRoomError):
        raise
    # scipy and h5py raise nearly any exception for cut or damaged files.
    except Exception as error:
        raise ValueError(f"{path} is damaged and cannot be read ({error})") from error
    for name in names:
        if name not in found:
            needed = ", ".join(names)
            raise ValueError(f"{path} has no variable {name}; {needed} are needed")
        array = found[name]
        if array.dtype.kind not in "biuf" or array.ndim != 2:
            raise ValueError(f"{path}: {name} is {array.dtype}, but a matrix of numbers is needed")
    return [found[name] for name in names]


# Write variables to NUMBER.npy, and print the numbers of those that are no plain arrays.
READ_MAT5 = """
import sys
import numpy as np
from scipy.io import loadmat
path, *names = sys.argv[1:]
found = loadmat(path, variable_names=names)
for number, name in enumerate(names):
    array = np.asarray(found.get(name))
    if name in found and array.dtype.hasobject:
        print(number)
    elif name in found:
        try:
            np.save(f"{number}.npy", array, allow_pickle=False)
        except OSError as error:
            print(error, file=sys.stderr)
            sys.exit(FULL)
"""
FULL = 3  # the exit code of READ_MAT5 if its files cannot be written


class NoRoomError(OSError):
    """The temporary folder has no room for the content of a .mat file."""


def _read_mat5(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read variables with scipy, in another process, because damaged files can crash it."""
    if importlib.util.find_spec("scipy") is None:
        raise ImportError(f"{path} is a .mat file of version 5; `pip install scipy` to read it.")
    script = READ_MAT5.replace("FULL", str(FULL))
    command = [sys.executable, "-c", script, path.resolve(), *names]
    found = {}
    with tempfile.TemporaryDirectory(prefix="hmoh-") as folder:
        options = {"cwd": folder, "capture_output": True, "timeout": SECONDS}
        try:
            done = subprocess.run(command, **options, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            raise ValueError(f"reading took more than {SECONDS} seconds") from None
        last_line = done.stderr.strip().rpartition("\n")[-1]
        if done.returncode == FULL:
            raise NoRoomError(
                f"{folder} has no room for the content of {path} ({last_line}); "
                "free space, or set TMPDIR to another folder."
            )
        if done.returncode != 0:
            # A signal, such as a segmentation fault, has a code below 0 and leaves no line.
            raise ValueError(last_line or f"scipy stopped with code {done.returncode}")
        for number, name in enumerate(names):
            file = Path(folder, f"{number}.npy")
            if str(number) in done.stdout.split():
                # A cell or struct: `read_mat` refuses this array by its name.
                found[name] = np.empty(0, object)
            elif file.exists():
                found[name] = np.load(file, allow_pickle=False)
    return found


def _read_mat73(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read variables from HDF5, which stores the matrices of MATLAB transposed.

    They are transposed back in blocks of rows, so that memory holds only one copy.
    """
    try:
        import h5py
    except ImportError:
        raise ImportError(
            f"{path} is a .mat file of version 7.3; `pip install h5py` to read it."
        ) from None
    found = {}
    with h5py.File(path, "r") as file:
        for name in names:
            stored = file.get(name)
            if stored is None:
                continue
            if not isinstance(stored, h5py.Dataset) or stored.ndim != 2:
                # A cell or struct: `read_mat` refuses this array by its name.
                found[name] = np.empty(0, object)
                continue
            n_columns, n_rows = stored.shape
            array = np.empty((n_rows, n_columns), stored.dtype)
            for start in range(0, n_rows, ROWS):
                stop = start + ROWS
                array[start:stop] = stored[:, start:stop].T
            found[name] = array
    return found


# What gzip and the parser raise for damaged files.
DAMAGE = (EOFError, IndexError, KeyError, OSError, ValueError, zlib.error)


def read_idx(path: Path) -> np.ndarray:
    """Read the array of an idx file, the format of MNIST, compressed with gzip or not.

    The file has two zero bytes, one byte for the type, and one for the number of dimensions. Their
    sizes follow as big-endian int32, then the values.
    """
    raw = path.read_bytes()
    try:
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return _parse_idx(raw)
    except DAMAGE as error:
        raise ValueError(f"{path} is not a complete idx file ({error})") from error


def _parse_idx(raw: bytes) -> np.ndarray:
    dtype = np.dtype(IDX_TYPES[raw[2]])
    n_dimensions = raw[3]
    shape = np.frombuffer(raw, ">i4", count=n_dimensions, offset=4)
    start = 4 + 4 * n_dimensions
    n_bytes = start + dtype.itemsize * math.prod(shape.tolist())
    if raw[:2] != b"\0\0" or len(raw) != n_bytes:
        raise ValueError(f"its {len(raw)} bytes do not fit its header")
    values = np.frombuffer(raw, dtype, offset=start)
    return values.reshape(shape).astype(dtype.newbyteorder("="))


def read_nuswide(path: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Read NUS-WIDE from its released text files.

    `BoW_int.dat` has a line of counts per image. The files `AllLabels/Labels_<concept>.txt` beside
    it have a 0 or 1 per line.

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
    files = _label_files(path)
    if not files:
        folder = path.parent / "AllLabels"
        raise ValueError(
            f"{folder} has no files Labels_<concept>.txt, which {path} needs beside it"
        )
    counts = _read_text(path, np.float32)
    labels = np.empty((len(counts), len(files)), np.uint8)
    for column, file in enumerate(files):
        values = _read_text(file, np.int64)
        if values.shape != (len(counts), 1):
            raise ValueError(
                f"{file} has {values.size} values, but {path} has {len(counts)} lines: "
                "one of them is cut"
            )
        least = values.min()
        most = values.max()
        if least < 0 or most > 1:
            raise ValueError(f"{file} has values from {least} to {most}, but labels are 0 or 1")
        labels[:, column] = values[:, 0]
    concepts = [file.stem.removeprefix("Labels_") for file in files]
    return counts, labels, concepts


def _label_files(path: Path) -> list[Path]:
    """Return the files of labels beside `BoW_int.dat`, in alphabetical order."""
    return sorted(path.parent.glob("AllLabels/Labels_*.txt"))


def _read_text(path: Path, dtype: type) -> np.ndarray:
    """Read a text file of numbers as a matrix."""
    try:
        with warnings.catch_warnings():
            # Of a file without numbers numpy only warns.
            warnings.simplefilter("error")
            return np.loadtxt(path, dtype=dtype, ndmin=2)
    except (ValueError, UserWarning) as error:
        raise ValueError(f"{path} is damaged and cannot be read ({error})") from error
