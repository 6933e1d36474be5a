"""Download and read the paper's own .mat files, which do not ship with the project.

If a reader fails, its error names the file; `read_original` adds what to do. scipy (.mat v5), h5py
(.mat v7.3) and pooch (downloads) are imported only when they are needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from study import shipped
from study.keep import write_atomically

__all__ = ["ORIGINALS", "Original", "fetch", "find", "fingerprint", "folders", "read_mat"]
__all__ += ["read_original"]

BOSTON = "https://cs-people.bu.edu/hekun/data/mihash/"
# The first bytes of a .mat file tell its version.
MAT_STARTS = {b"MATLAB 5.0": "5", b"MATLAB 7.3": "7.3", b"\x89HDF": "7.3"}
# After this time, a .mat file of version 5 counts as damaged. A file of 234 MB took 3 seconds.
SECONDS = 900
# A v7.3 matrix is read in blocks of this many rows.
ROWS = 1 << 16
# The paper uses the most frequent labels of NUS-WIDE.
N_LABELS = 10


class Original(NamedTuple):
    """Describe a data set of the paper that does not ship.

    `features` and `labels` name the variables of the file: one for all rows, or two for training
    and test rows. `drive` is the file's number at Google Drive, which github.com/fcakir/mihash and
    the authors of HMOH link to. `mirror` is the address of another copy, which is tried first.
    """

    title: str
    stand_in: str
    file: str
    features: tuple[str, ...]
    labels: tuple[str, ...]
    drive: str
    mirror: str | None = None

    @property
    def addresses(self) -> list[str]:
        """Return the addresses to download from, in the order in which they are tried."""
        drive = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"
        return [*([self.mirror] if self.mirror else []), drive.format(self.drive)]

    @property
    def page(self) -> str:
        """Return the address of the page to download the file from with a browser."""
        return f"https://drive.google.com/file/d/{self.drive}/view"


ORIGINALS = {
    "cifar10": Original(
        "CIFAR-10, 60,000 x 4096 VGG16 fc7 features",
        "cifar10_vgg16",
        "CIFAR10_VGG16_fc7.mat",
        features=("trainCNN", "testCNN"),
        labels=("trainLabels", "testLabels"),
        drive="1uygdJYU5Lnd-Pj6l84_IE_e_6DYgybtF",
        mirror=BOSTON + "CIFAR10_VGG16_fc7.mat",
    ),
    "places205": Original(
        "Places205, 2.5 million x 128 AlexNet fc7 features",
        "udhr205",
        "Places205_AlexNet_fc7_PCA128.mat",
        features=("pca_feats",),
        labels=("labels",),
        drive="1EhE1EbSJyrzNGo-74HyUGls0JrDDuq7c",
        mirror=BOSTON + "Places205_AlexNet_fc7_PCA128.mat",
    ),
    "nuswide": Original(
        "NUS-WIDE, 186,577 x 500 counts of visual words",
        "mediamill10",
        "NUS-WIDE-split.mat",
        features=("I_tr", "I_te"),
        labels=("L_tr", "L_te"),
        drive="1jJThCuiR2G0cQUfd0QZrKWnlLxy5IiIJ",
    ),
}


# ---- downloads -----------------------------------------------------------------------


def folders() -> list[Path]:
    """Return the folders to search for the paper's files; downloads go to the first one."""
    own = os.environ.get("HMOH_DATA")
    return [Path(own), shipped.FOLDER] if own else [shipped.FOLDER]


def find(name: str) -> Path | None:
    """Return the path of the paper's file of a data set, or None if it is missing."""
    paths = (folder / ORIGINALS[name].file for folder in folders())
    return next((path for path in paths if path.exists()), None)


def fetch(name: str) -> Path:
    """Download "cifar10", "places205" or "nuswide" into the first of `folders`; return its path.

    The file is moved there only when the download is complete and is a .mat file. No checksums are
    published. So the sha256 of the first download is noted in FILE.sha256 beside it. It is compared
    when the file is read, and with a later download. An intact file that exists already is kept.
    """
    if name not in ORIGINALS:
        known = ", ".join(f'"{known}"' for known in ORIGINALS)
        raise ValueError(
            f"{name!r} cannot be fetched; pass {known}. The other sets ship with the project."
        )
    original, folder = ORIGINALS[name], folders()[0]
    target = folder / original.file
    note = _note(target)
    if target.exists():
        with contextlib.suppress(ValueError):
            _checked_sha256(target, note)
            print(f"{target} exists already; delete it to fetch it again.")
            return target

    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        path = Path(scratch, target.name)
        for url in original.addresses:
            try:
                _download(url, path)
                # The note comes first: a file without one could not be checked.
                write_atomically(note, f"{_checked_sha256(path, note)}\n")
                os.replace(path, target)
                return target
            # The errors of the network are OSErrors.
            except (OSError, ValueError) as error:
                failures.append(f"  {url}: {error}")
                path.unlink(missing_ok=True)
    tried = "\n".join(failures)
    raise OSError(
        f"{target.name} could not be fetched; download {original.page} with a browser "
        f"and save it as {target}. These addresses were tried:\n{tried}"
    )


def _download(url: str, path: Path) -> None:
    """Download a .mat file; raise a ValueError if the server sends something else, as a page."""
    try:
        import pooch
    except ImportError:
        raise ImportError("downloads need pooch and tqdm; `pip install pooch tqdm`.") from None
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=60)
    pooch.retrieve(url, None, path.name, path.parent, downloader=downloader)
    _mat_version(path)


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _noted(note: Path) -> str | None:
    """Return what is noted about a file; None if there is no note, as for a copied file."""
    return note.read_text().strip() if note.exists() else None


def _checked_sha256(path: Path, note: Path) -> str:
    """Return a file's sha256; raise a ValueError if another one is noted."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if _noted(note) not in (None, found):
        raise ValueError(
            f"{path.name} is not the file that was first downloaded, because its sha256 differs: "
            f"{note} has {_noted(note)}, the file now has {found}; "
            "if the change is right, delete the note"
        )
    return found


def fingerprint(path: Path) -> str:
    """Return a text that changes when an original changes, without reading all of it.

    It is the sha256 that `fetch` noted. Without a note, it is the sha256 of path, size and time of
    change of the file, which exists.
    """
    noted = _noted(_note(path))
    if noted is not None:
        return noted
    status = path.stat()
    line = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}\n"
    return hashlib.sha256(line.encode()).hexdigest()


# ---- reading -------------------------------------------------------------------------


def read_original(name: str, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the paper's features of a data set, unchanged, from the file of the published loaders.

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
    original = ORIGINALS[name]
    try:
        if _note(path).exists():
            _checked_sha256(path, _note(path))
        arrays = read_mat(path, [*original.features, *original.labels])
        n_parts = len(original.features)
        parts = arrays[:n_parts]
        labels = _join_labels(arrays[n_parts:], multi_label, path)
        if sum(map(len, parts)) != len(labels) or len({part.shape[1] for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ValueError(f"{path} has features {shapes} but {len(labels)} labels")
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
        most_frequent = np.sort(np.argsort(-counts, kind="stable")[:N_LABELS])
        labels = labels[:, most_frequent]
        kept = labels.any(axis=1)
        features, labels, is_test = features[kept], labels[kept], is_test[kept]
    return features, labels, np.flatnonzero(is_test)


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


def _mat_version(path: Path) -> str:
    """Return the version of a .mat file, "5" or "7.3"; raise a ValueError for other files."""
    with path.open("rb") as file:
        start = file.read(10)
    for known, version in MAT_STARTS.items():
        if start.startswith(known):
            return version
    raise ValueError(f"{path} is no .mat file of version 5 or 7.3 (it begins with {start!r})")


def read_mat(path: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Read variables of a .mat file, with rows and columns as in MATLAB for both versions."""
    read = _read_mat5 if _mat_version(path) == "5" else _read_mat73
    try:
        found = read(path, names)
    except (ImportError, MemoryError, NoRoomError):
        raise
    # scipy and h5py raise nearly any exception for cut or damaged files.
    except Exception as error:
        raise ValueError(f"{path} is damaged and cannot be read ({error})") from error
    for name in names:
        if name not in found or found[name].dtype.kind not in "biuf" or found[name].ndim != 2:
            needed = ", ".join(names)
            raise ValueError(f"{path} has no matrix of numbers {name}; {needed} are needed")
    return [found[name] for name in names]


# Write variables to NAME.npy, without those that are not plain arrays.
READ_MAT5 = """
import sys
import numpy as np
from scipy.io import loadmat
path, *names = sys.argv[1:]
found = loadmat(path, variable_names=names)
for name in names:
    if name in found and not np.asarray(found[name]).dtype.hasobject:
        try:
            np.save(name, found[name], allow_pickle=False)
        except OSError as error:
            sys.exit(f"no room: {error}")
"""


class NoRoomError(OSError):
    """The temporary folder has no room for the content of a .mat file."""


def _need(library: str, path: Path, version: str) -> None:
    if importlib.util.find_spec(library) is None:
        way = f"`pip install {library}` to read it"
        raise ImportError(f"{path} is a .mat file of version {version}; {way}.")


def _read_mat5(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read variables with scipy, in another process, because damaged files can crash it.

    Of 3,000 small files that were damaged at random, 11 ended scipy 1.17 by a segmentation fault.
    """
    _need("scipy", path, "5")
    command = [sys.executable, "-c", READ_MAT5, path.resolve(), *names]
    with tempfile.TemporaryDirectory(prefix="hmoh-") as folder:
        options = {"cwd": folder, "capture_output": True, "timeout": SECONDS}
        try:
            done = subprocess.run(command, **options, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            raise ValueError(f"reading took more than {SECONDS} seconds") from None
        last_line = done.stderr.strip().rpartition("\n")[-1]
        if last_line.startswith("no room"):
            raise NoRoomError(
                f"{folder} has {last_line}; it needs the content of {path}: "
                "free space, or set TMPDIR to another folder."
            )
        if done.returncode != 0:
            # A signal, such as a segmentation fault, has a code below 0 and leaves no line.
            raise ValueError(last_line or f"scipy stopped with code {done.returncode}")
        paths = Path(folder).glob("*.npy")
        return {file.stem: np.load(file, allow_pickle=False) for file in paths}


def _read_mat73(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read variables from HDF5, which stores the matrices of MATLAB transposed.

    They are transposed back in blocks of rows, so that memory holds only one copy.
    """
    _need("h5py", path, "7.3")
    import h5py

    found = {}
    with h5py.File(path, "r") as file:
        for name in names:
            stored = file.get(name)
            # A cell or struct is not a matrix.
            if not isinstance(stored, h5py.Dataset) or stored.ndim != 2:
                continue
            n_columns, n_rows = stored.shape
            array = np.empty((n_rows, n_columns), stored.dtype)
            for start in range(0, n_rows, ROWS):
                array[start : start + ROWS] = stored[:, start : start + ROWS].T
            found[name] = array
    return found
