"""The methods that HMOH is compared with, with the parameters of the paper.

Copy this folder together with hmoh.py and kernels.py. All methods have the interface of `HMOH`:
`fit`, `partial_fit`, `transform`, `decision_function`, `save`, `load`, `weights_`, `n_seen_` and
`feature_map_`.

`METHODS` maps the name of a method to a function. The function makes a model with the paper's
parameters and features for one of its data sets. Faults of the published benchmark are corrected;
the docstring of each method says which.

`METHODS_AS_PUBLISHED` has the same names. Its models have the faults of the published benchmark.
They differ from `METHODS` in the five methods of `PUBLISHED_FAULTS`, which says what the published
code does, and in which file and line. In both, anchors, bandwidths and means come from the first
samples of the stream, where the published code takes them from the whole data set.

>>> METHODS["LSH"]("mnist", n_bits=32, random_state=0)
LSH(n_bits=32, feature_map=UnitLength(), warmup=None, random_state=0)
>>> METHODS_AS_PUBLISHED["MIHash"]("mnist", n_bits=32).gradient
'published'
>>> sorted(METHODS)
['AdaptHash', 'BSODH', 'FROSH', 'HCOH', 'HMOH', 'LSH', 'MIHash', 'OKH', 'OSH', 'SketchHash']

To add a method, write its class in a new file of this folder, with `LinearHasher` of linear.py as
base class and `OSH` as an example. Import it below, and add it to `__all__` and `METHODS`.
`METHODS_AS_PUBLISHED` then has it too, and `study.protocol` and the notebooks run it by its name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from hmoh import HMOH, OnlineHasher
from kernels import RBF, UnitLength

from .bsodh import BSODH
from .hcoh import HCOH
from .linear import LSH
from .mihash import MIHash
from .osh import OSH
from .pairwise import OKH, AdaptHash
from .sketching import FROSH, SketchHash

__all__ = ["METHODS", "METHODS_AS_PUBLISHED", "PAPER_DATASETS", "PUBLISHED_FAULTS"]
__all__ += ["BSODH", "FROSH", "HCOH", "LSH", "OKH", "OSH", "AdaptHash", "MIHash", "SketchHash"]

PAPER_DATASETS = ("cifar10", "places205", "mnist", "nuswide")


def _as_in_paper(method: type, **params) -> Callable:
    """Return a function that makes models of a method with these parameters.

    A tuple holds one value for each of PAPER_DATASETS. Any other value is for all of them.
    """
    params = {"feature_map": UnitLength()} | params

    def make(
        dataset_name: str, n_bits: int, random_state: int | np.random.Generator | None = None
    ) -> OnlineHasher:
        if dataset_name not in PAPER_DATASETS:
            way = f"pass one of {', '.join(PAPER_DATASETS)}"
            raise ValueError(f"the paper has no data set {dataset_name!r}; {way}.")
        which = PAPER_DATASETS.index(dataset_name)
        chosen = {k: v[which] if isinstance(v, tuple) else v for k, v in params.items()}
        # A copy, because a feature map must not be shared by two models.
        return method(n_bits=n_bits, random_state=random_state, **copy.deepcopy(chosen))

    return make


METHODS: dict[str, Callable] = {
    "LSH": _as_in_paper(LSH),
    "OKH": _as_in_paper(
        OKH,
        aggressiveness=(0.001, 0.0001, 0.001, 0.001),
        alpha=(0.3, 0.7, 0.3, 0.5),
    ),
    "SketchHash": _as_in_paper(SketchHash, sketch_size=(200, 100, 200, 200)),
    "FROSH": _as_in_paper(FROSH, sketch_size=(200, 100, 200, 200)),
    "AdaptHash": _as_in_paper(
        AdaptHash,
        alpha=(0.9, 0.9, 0.8, 1.0),
        ortho=0.01,
        learning_rate=(0.1, 0.1, 0.2, 0.5),
    ),
    "OSH": _as_in_paper(OSH, learning_rate=0.1),
    "MIHash": _as_in_paper(
        MIHash,
        reservoir=(1000, 5000, 1000, 2000),
        sharpness=(10.0, 10.0, 10.0, 1.0),
        threshold=0.0,
    ),
    "BSODH": _as_in_paper(
        BSODH,
        batch=(2000, 10_000, 2000, 2000),
        ridge=(0.6, 0.3, 0.9, 0.3),
        fit_weight=(0.5, 0.5, 0.8, 0.1),
        similar=(1.2, 1.0, 1.2, 0.4),
        dissimilar=(0.2, 0.0, 0.2, 1.2),
    ),
    "HCOH": _as_in_paper(HCOH, learning_rate=(0.2, 0.1, 0.2, 0.2)),
    "HMOH": _as_in_paper(
        HMOH,
        feature_map=(
            None,
            RBF(n_anchors=800, divisor=10.0),
            RBF(n_anchors=300, divisor=6.0),
            None,
        ),
        learning_rate=(0.5, 0.01, 0.1, 0.1),
    ),
}


def _changed(name: str, **params) -> Callable:
    """Return a function like the one in METHODS whose models have some parameters changed."""

    def make(*args, **kwargs) -> OnlineHasher:
        return METHODS[name](*args, **kwargs).set_params(**params)

    return make


METHODS_AS_PUBLISHED: dict[str, Callable] = METHODS | {
    "MIHash": _changed("MIHash", gradient="published"),
    "OSH": _changed("OSH", loss="boost", as_published=True),
    "SketchHash": _changed("SketchHash", as_published=True),
    "OKH": _changed("OKH", bandwidth="published"),
    "HMOH": _changed("HMOH", codebook="ordered"),
}

# What the published code does where METHODS_AS_PUBLISHED differs from METHODS. The code of HMOH is
# in the repository lmbxmu/mycode, that of the other methods in fcakir/mihash.
PUBLISHED_FAULTS: dict[str, str] = {
    "MIHash": "The derivative of a distance has -phi/2 in the place of -(2 phi - 1), so the step "
    "does not follow the gradient of the objective "
    "(fcakir/mihash, online-hashing/+Methods/MIHash.m, line 133).",
    "OSH": "train1batch returns the weights but not the object, which is a value class, so the "
    "codebook is forgotten after every sample and all classes share one codeword "
    "(fcakir/mihash, online-hashing/+Methods/OSH.m, lines 1, 59 and 122 to 125). The loss is the "
    "boosted one (demo_online.m, line 123), where METHODS has the hinge loss.",
    "SketchHash": "train1batch returns the weights but not the object, which is a value class, so "
    "sketch and mean are forgotten after every batch "
    "(fcakir/mihash, online-hashing/+Methods/SketchHash.m, lines 1, 45 and 69 to 75).",
    "OKH": "sigma is the mean of squared distances, and the kernel divides by its square "
    "(fcakir/mihash, online-hashing/+Methods/OKH.m, lines 43, 44 and 49).",
    "HMOH": "Class i gets row i of the Hadamard matrix, all-ones row first, where the paper says "
    "that columns are drawn at random (lmbxmu/mycode, "
    "ONLINE_HASHING_UTILS/MY_ONLINE_HASHING_METHOD/HMOH.m, lines 57 and 60).",
}
