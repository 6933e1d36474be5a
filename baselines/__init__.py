"""The methods that HMOH is compared with, with the parameters of the paper.

Copy this folder together with hmoh.py and kernels.py. All methods have the interface of `HMOH`:
`fit`, `partial_fit`, `transform`, `decision_function`, `save`, `load`, `weights_`, `n_seen_` and
`feature_map_`.

There are three readings of a method, and they are never mixed.

Described: `METHODS` maps the name of a method to a function. The function makes a model that does
what the method's paper says, with the parameters and features that the HMOH paper gives for one of
its data sets.

Published: `METHODS_AS_PUBLISHED` does the same for what the published program computes, faults
included. `PUBLISHED_FAULTS` says for each what differs, and in which file and line. A method whose
program cannot be read, or does not exist, has no published reading: `NO_PUBLISHED_READING` says
why. The published programs fit centre and kernel on the whole data set, which a stream does not
have. So these models fit them on the first samples as all models do, but `study.protocol` fits
them as published. Two details of MIHash are still ours: its reservoir starts with the first samples
of the stream, not with samples of the whole database, and its trigger has one more bin.

Ours: everything else, such as `OSH(loss="hinge")`. It is chosen by parameters only.

>>> METHODS["LSH"]("mnist", n_bits=32, random_state=0)
LSH(n_bits=32, feature_map=UnitLength(n_warmup=1000), warmup=None, random_state=0)
>>> METHODS_AS_PUBLISHED["MIHash"]("mnist", n_bits=32).gradient
'published'
>>> sorted(METHODS)
['AdaptHash', 'BSODH', 'FROSH', 'HCOH', 'HMOH', 'LSH', 'MIHash', 'OKH', 'OSH', 'SketchHash']

To add a method, write its class in a new file of this folder, with `LinearHasher` of linear.py as
base class and `OSH` as an example. Import it below, and add it to `__all__` and `METHODS`. Then
`study.protocol` and the notebooks run it by its name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from hmoh import HMOH, OnlineHasher
from kernels import RBF, UnitLength

from .bsodh import BSODH
from .hcoh import HCOH
from .linear import LSH
from .mihash import MIHash
from .osh import OSH
from .pairwise import OKH, AdaptHash
from .published import PublishedHMOH
from .sketching import FROSH, SketchHash

__all__ = ["METHODS", "METHODS_AS_PUBLISHED", "NO_PUBLISHED_READING", "PAPER_DATASETS"]
__all__ += ["PUBLISHED_FAULTS", "PublishedHMOH"]
__all__ += ["BSODH", "FROSH", "HCOH", "LSH", "OKH", "OSH", "AdaptHash", "MIHash", "SketchHash"]

PAPER_DATASETS = ("cifar10", "places205", "mnist", "nuswide")


def _of_set(params: dict, dataset_name: str) -> dict:
    """Return copies of parameters for one data set.

    A tuple holds one value for each of PAPER_DATASETS. Any other value is for all of them.
    """
    if dataset_name not in PAPER_DATASETS:
        way = f"pass one of {', '.join(PAPER_DATASETS)}"
        raise ValueError(f"the paper has no data set {dataset_name!r}; {way}.")
    which = PAPER_DATASETS.index(dataset_name)
    chosen = {k: v[which] if isinstance(v, tuple) else v for k, v in params.items()}
    # Copies, because a feature map must not be shared by two models.
    return copy.deepcopy(chosen)


def _as_in_paper(method: type, **params) -> Callable:
    """Return a function that makes models of a method, with parameters as in `_of_set`."""
    params = {"feature_map": UnitLength(n_warmup=1000)} | params

    def make(dataset_name: str, n_bits: int, random_state: int | None = None) -> OnlineHasher:
        chosen = _of_set(params, dataset_name)
        return method(n_bits=n_bits, random_state=random_state, **chosen)

    return make


_HMOH = {
    "feature_map": (
        None,
        RBF(n_anchors=800, divisor=10.0),
        RBF(n_anchors=300, divisor=6.0),
        None,
    ),
    "learning_rate": (0.5, 0.01, 0.1, 0.1),
}

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
    "HMOH": _as_in_paper(HMOH, **_HMOH),
}


def _changed(name: str, **params) -> Callable:
    """Return a function like the one in METHODS whose models have some parameters changed."""

    def make(dataset_name: str, *args, **kwargs) -> OnlineHasher:
        model = METHODS[name](dataset_name, *args, **kwargs)
        return model.set_params(**_of_set(params, dataset_name))

    return make


METHODS_AS_PUBLISHED: dict[str, Callable] = {
    "SketchHash": _changed("SketchHash", as_published=True),
    "AdaptHash": METHODS["AdaptHash"],
    "OSH": _changed("OSH", as_published=True),
    "MIHash": _changed("MIHash", gradient="published"),
    "BSODH": _changed(
        "BSODH",
        order="published",
        ridge=(0.6, 0.9, 0.3, 0.3),
        fit_weight=(0.5, 0.8, 0.5, 0.1),
    ),
    "HCOH": METHODS["HCOH"],
    "HMOH": _as_in_paper(PublishedHMOH, **_HMOH),
}

_CENTRE = "The loader centres on the mean of all rows, later samples and queries included "
_MIHASH = _CENTRE + "(fcakir/mihash, online-hashing/+Datasets/cifar.m, line 41)."
_MYCODE = _CENTRE + "(lmbxmu/mycode, .../+Datasets/mnist.m, line 41)."

# What the published program does otherwise than METHODS. In lmbxmu/mycode, "..." stands for
# ONLINE_HASHING_UTILS/MY_ONLINE_HASHING_METHOD.
PUBLISHED_FAULTS: dict[str, str] = {
    "SketchHash": "train1batch returns the weights but not the object, which is a value class, so "
    "sketch and mean are forgotten after every batch "
    f"(fcakir/mihash, online-hashing/+Methods/SketchHash.m, lines 1, 45 and 69 to 75). {_MIHASH}",
    "AdaptHash": _MIHASH,
    "OSH": "train1batch returns the weights but not the object, which is a value class, so the "
    "codebook is forgotten after every sample and all classes share one codeword "
    f"(fcakir/mihash, online-hashing/+Methods/OSH.m, lines 1, 59 and 122 to 125). {_MIHASH}",
    "MIHash": "The derivative of a distance has -phi/2 in the place of -(2 phi - 1), so the step "
    "does not follow the gradient of the objective "
    f"(fcakir/mihash, online-hashing/+Methods/MIHash.m, line 133). {_MIHASH}",
    "BSODH": "The codes of a batch are found before those of the stored samples are updated, where "
    "Algorithm 1 of its paper has another order (lmbxmu/mycode, .../BSODH.m, lines 104 to 137). "
    "MNIST and Places205 have each other's lambda and sigma (lines 40 and 41). " + _MYCODE,
    "HCOH": _MYCODE,
    "HMOH": "Class i gets row i of the Hadamard matrix, all-ones row first, where the paper says "
    "that columns are drawn at random (lmbxmu/mycode, .../HMOH.m, lines 57 and 60). Most sets of "
    "two labels share one target (lines 62 to 98). Anchors and bandwidth are drawn from the whole "
    "database (lines 26 to 33).",
}

# Nothing is claimed about what these methods compute as published.
NO_PUBLISHED_READING: dict[str, str] = {
    "OKH": "Its learner was only released as an unreadable binary "
    "(fcakir/mihash, online-hashing/+Methods/OKHlearn.p).",
    "LSH": "The published benchmark does not have it.",
    "FROSH": "The published benchmark does not have it.",
}
