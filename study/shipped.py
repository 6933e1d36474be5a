"""Read the data sets that ship with the project: MNIST, and stand-ins for the other benchmarks."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["FOLDER", "SHA256", "SHIPPED", "Shipped", "is_intact", "read", "read_shipped"]

FOLDER = Path(__file__).parents[1] / "data"
SHA256 = {
    "mnist.npz": "98c0021459d2a7d1b4d8db7db8acdab8ae40e37779558df3291e22ed155a5f6d",
    "cifar10_vgg16.npz": "a55fa993f55e3ed4ec5728909315368e104ab716a2d765e80f83e9ddc552af13",
    "udhr205.npz": "47a928ca02870abe21796660a2a528fba459900387608c5d1576df5d56616406",
    "mediamill10.npz": "4887b19bf39fbfbcf3c360b081f8fa0e05337abbee87d4e7e57952c39c20ba4c",
    "reuters10.npz": "110a9721f9795c9b63699b0685bd3433ee1dd6952589d55b5fdfb34e654d5573",
    "reuters10_wordllama.npz": "31082782c63c8f7f6d219fc5f5c11eea452658ad5b3c046a8cb9874b4f4a9c53",
}


class Shipped(NamedTuple):
    """Describe a data set that ships with the project.

    `role` is the benchmark of the paper that the set is or replaces. `notes` say how the features
    were made. `n_train` counts the rows before the test part; it is None if there is no test part.
    `n_queries` is None if it is that of the benchmark.
    """

    role: str
    title: str
    notes: str
    n_train: int | None = None
    n_queries: int | None = None


SHIPPED = {
    "mnist": Shipped(
        role="mnist",
        title="MNIST, as in the paper",
        notes="Pixels / 255.",
        n_train=60_000,
    ),
    "cifar10_vgg16": Shipped(
        role="cifar10",
        title="CIFAR-10 by the convolutions of VGG16, STAND-IN for cifar10",
        notes="VGG16's last pooling at 64 px, centred, PCA to 256, int8. "
        "The paper has fc7 features of VGG16. The sizes are the paper's.",
        n_train=50_000,
    ),
    "udhr205": Shipped(
        role="places205",
        title="The Declaration of Human Rights in 205 languages, STAND-IN for places205",
        notes="Fragments of text: hashed character 1-3-grams, TF-IDF, SVD to 128, int8. "
        "There are 20 queries per class, as in the paper, from separate articles. "
        "The stream is half of the database, not 100K.",
    ),
    "mediamill10": Shipped(
        role="nuswide",
        title="Key frames of TV news with ten concepts, STAND-IN for nuswide",
        notes="120 visual features of MediaMill, uint8. There are 2,000 queries, as in the paper. "
        "The stream is half of the database, not 40K.",
        n_train=27_017,
    ),
    "reuters10": Shipped(
        role="nuswide",
        title="Reuters news on ten topics, STAND-IN for nuswide",
        notes="log(1 + count) of 500 words. There are 1,000 queries, not 2,000. "
        "The stream is half of the database, not 40K.",
        n_queries=1000,
    ),
}


def read(file_name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file that ships, after a check of its sha256."""
    path = FOLDER / file_name
    remedy = f"restore it with `git checkout data/{file_name}`."
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; {remedy}")
    raw = path.read_bytes()
    if not _is_intact(raw, file_name):
        raise ValueError(
            f"{path} is not the file that ships with the project (its sha256 differs); {remedy}"
        )
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def is_intact(file_name: str) -> bool | None:
    """Tell whether a file that ships has its sha256; None if it is missing."""
    path = FOLDER / file_name
    return _is_intact(path.read_bytes(), file_name) if path.exists() else None


def _is_intact(raw: bytes, file_name: str) -> bool:
    return hashlib.sha256(raw).hexdigest() == SHA256[file_name]


def read_shipped(name: str) -> dict[str, np.ndarray | None]:
    """Return features, labels, test_rows and groups of a data set that ships."""
    arrays = read(f"{name}.npz")
    features = arrays["X"].astype(np.float32)
    if name == "mnist":
        features /= 255
    elif name == "reuters10":
        np.log1p(features, out=features)
    else:
        features *= arrays["scale"].astype(np.float32)
    n_train = SHIPPED[name].n_train
    first_test_row = len(features) if n_train is None else n_train
    return {
        "features": features,
        "labels": arrays["Y"] if "Y" in arrays else arrays["y"],
        "test_rows": np.arange(first_test_row, len(features)),
        "groups": arrays.get("article"),
    }
