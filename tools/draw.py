"""Write build/draw.html, a page on which one draws digits and teaches a model new symbols.

`make demo` calls it. The page is tools/draw.html, what it does is tools/draw.js.
"""

from __future__ import annotations

import copy
import json
import re
import tempfile
import zlib
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import numpy as np

from hmoh import HMOH, hadamard

FOLDER = Path(__file__).parent


def as_bytes(features: np.ndarray) -> np.ndarray:
    """Return pixels from 0 to 1 as the bytes that they were."""
    return np.rint(255 * features).astype(np.uint8)


def exported(model: HMOH, labels: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray]:
    """Return a model for draw.js: numbers, W (n_bits, m) float32 and anchors (m, d) uint8.

    `labels` are those of the anchors. All labels of the model are numbers from 0 on.
    """
    n_known = len(model.targets_)
    more = np.arange(n_known, model.n_bits)  # the next labels, to learn which columns they get
    future = copy.deepcopy(model).partial_fit(np.zeros((len(more), model.n_features_in_)), more)
    targets = np.stack([future.targets_[label] for label in range(model.n_bits)]).astype(int)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.npz")  # the file has the perceptrons behind the average
        W = np.load(f"{folder}/model.npz")["model/W"]
    rbf = model.feature_map_
    info = {
        "scale": 1 / (2 * rbf.eta2_) / 255**2,
        "steps": model.n_steps_,
        "columns": (targets @ hadamard(model.n_bits)).argmax(axis=1).tolist(),
        "labels": [str(label) for label in range(n_known)],
        "anchorLabels": labels.astype(str).tolist(),
        "replayed": 0,
    }
    return info, W[:, : len(rbf.anchors_)], as_bytes(rbf.anchors_)


def write_page(
    path: Path,
    model: HMOH,
    anchor_labels: np.ndarray,
    weights: list[np.ndarray],
    says: list[str],
    images: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Write the page that searches these images, (n, 784) from 0 to 1, by a model of the digits.

    `weights` are its `weights_` at some checkpoints, of each of which `says` has a sentence, the
    last one now. The anchors of its kernel are the first images of the stream.
    """
    numbers, W, anchors = exported(model, anchor_labels)
    info = {"model": numbers, "says": says, "labels": labels.astype(str).tolist()}
    floats = np.stack([*(A.T for A in weights), W]).astype("<f4")
    arrays = [floats, anchors, as_bytes(images)]
    data = b64encode(zlib.compress(b"".join(a.tobytes() for a in arrays))).decode()
    script = (FOLDER / "draw.js").read_text()
    template = (FOLDER / "draw.html").read_text()
    style = re.search("<style>(.*)</style>", template, re.DOTALL)[1]
    hashes = {
        f"@{name}_HASH@": f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
        for name, text in (("SCRIPT", script), ("STYLE", style))
    }
    parts = hashes | {"@INFO@": json.dumps(info), "@DATA@": data, "@SCRIPT@": script}
    path.parent.mkdir(parents=True, exist_ok=True)
    page = re.sub("@[A-Z_]+@", lambda match: parts[match[0]], template)
    path.write_text(page, encoding="utf-8")
