"""The methods that HMOH is compared with, with the parameters of the paper.

Copy this folder together with hmoh.py, kernels.py and ridge.py. All methods have the interface of
`HMOH`: `fit`, `partial_fit`, `transform`, `decision_function`, `save`, `load`, `weights_`,
`n_seen_` and `feature_map_`.

`METHODS` is the one table of methods. An entry, a `Method`, makes models with the parameters and
features that the HMOH paper gives for one of its data sets, or with those for MNIST for data that
the paper does not have. `named` lists methods by their origin.

There are three readings of a method, and they are never mixed.

Described: `METHODS` does what the method's paper says.

Published: `METHODS_AS_PUBLISHED` does what the published program computes, faults included.
`PUBLISHED_FAULTS` says for each what differs, and in which file and line. A method whose program
cannot be read, or does not exist, has no published reading, and its entry says why. The published
programs fit centre and kernel on the whole data set, which a stream does not have. So these models
fit them on the first samples as all models do, but `study.protocol` fits them as published. Two
details of MIHash are still ours: its reservoir starts with the first samples of the stream, not
with samples of the whole database, and its trigger has one more bin.

Ours: everything else, such as `OSH(loss="hinge")`. It is chosen by parameters only.

The methods of origin "later" were published after HMOH. Their papers say less than their programs,
so `METHODS` has their published reading: on the same random draws they compute the bits of their
programs (data/results/published_runs.json).

>>> METHODS["LSH"]("mnist", n_bits=32, random_state=0)
LSH(n_bits=32, feature_map=UnitLength(n_warmup=1000), warmup=None, random_state=0)
>>> METHODS_AS_PUBLISHED["MIHash"]("mnist", n_bits=32).gradient
'published'
>>> named("paper")  # doctest: +NORMALIZE_WHITESPACE
['LSH', 'OKH', 'SketchHash', 'FROSH', 'AdaptHash', 'OSH', 'MIHash', 'BSODH', 'HCOH', 'HMOH']

To add a method, write its class in a new file of this folder, with `LinearHasher` of linear.py as
base class and `OSH` as an example. Import it below, and add it to `__all__` and `METHODS`. Then
`study.protocol` runs it by its name, and tables and figures show it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

from hmoh import HMOH, OnlineHasher
from kernels import RBF, UnitLength
from ridge import HadamardRidge

from .bsodh import BSODH
from .discrete import LEMON, OASIS
from .foh import FOH
from .hcoh import HCOH
from .linear import LSH
from .mihash import MIHash
from .osh import OSH
from .pairwise import OKH, AdaptHash
from .published import PublishedHMOH
from .sketching import FROSH, SketchHash

__all__ = ["METHODS", "METHODS_AS_PUBLISHED", "ORIGINS", "PAPER_DATASETS", "PUBLISHED_FAULTS"]
__all__ += ["Method", "Published", "PublishedHMOH", "named"]
__all__ += ["BSODH", "FROSH", "HCOH", "LSH", "OKH", "OSH", "AdaptHash", "MIHash", "SketchHash"]
__all__ += ["FOH", "LEMON", "OASIS"]

PAPER_DATASETS = ("mnist", "cifar10", "places205", "nuswide")
ORIGINS = ("paper", "later", "ours", "rival")


@dataclass(frozen=True)
class Published:
    """Say what a published program computes otherwise than `METHODS`.

    `fault` cites file and line; in lmbxmu/mycode, "..." stands for
    ONLINE_HASHING_UTILS/MY_ONLINE_HASHING_METHOD. `make` is None if the class is that of the
    method. `settings` and `by_benchmark` hold the parameters that differ from those of the method.
    """

    fault: str
    make: type[OnlineHasher] | None = None
    settings: dict = field(default_factory=dict)
    by_benchmark: dict[str, dict] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """Describe a method, and make its models.

    Attributes
    ----------
    name : str
    make : type
        The class of its models.
    origin : str
        "paper": one of the ten that the paper's experiments are repeated with. "later": published
        after them. "ours": of this project. "rival": no online hashing.
    style : dict
        Colour, marker and the like of its lines, as matplotlib's keywords.
    published : Published or str
        What the published program computes otherwise, or why nothing is claimed about it.
    settings : dict
        Parameters of its models: those for MNIST, used for data that the paper does not have too.
    by_benchmark : dict
        The parameters that differ from `settings`, by the name of the paper's data set.
    """

    name: str
    make: type[OnlineHasher]
    origin: str
    style: dict
    published: Published | str
    settings: dict = field(default_factory=dict)
    by_benchmark: dict[str, dict] = field(default_factory=dict)

    def __call__(
        self, benchmark: str | None = None, n_bits: int = 32, random_state: int | None = None
    ) -> OnlineHasher:
        """Return an untrained model with the paper's parameters for one of its data sets.

        Parameters
        ----------
        benchmark : {"mnist", "cifar10", "places205", "nuswide"}, optional
            None is for data that the paper does not have.
        n_bits : int
        random_state : int, optional
        """
        chosen = self.settings_for(benchmark)
        # Copies, because a feature map must not be shared by two models.
        return self.make(n_bits=n_bits, random_state=random_state, **copy.deepcopy(chosen))

    def settings_for(self, benchmark: str | None) -> dict:
        """Return the parameters of its models for one of the paper's data sets, or the default."""
        if benchmark not in (None, *PAPER_DATASETS):
            way = f"pass one of {', '.join(PAPER_DATASETS)}, or None for the default settings"
            raise ValueError(f"the paper has no data set {benchmark!r}; {way}.")
        chosen = {"feature_map": UnitLength(n_warmup=1000)} | self.settings
        return chosen | self.by_benchmark.get(benchmark, {})

    def as_published(self) -> Method:
        """Return the method with what its published program computes otherwise."""
        changes = self.published
        names = {*self.by_benchmark, *changes.by_benchmark}
        both = (self.by_benchmark, changes.by_benchmark)
        return replace(
            self,
            make=changes.make or self.make,
            settings=self.settings | changes.settings,
            by_benchmark={k: both[0].get(k, {}) | both[1].get(k, {}) for k in names},
        )


_CENTRE = "The loader centres on the mean of all rows, later samples and queries included "
_MIHASH = _CENTRE + "(fcakir/mihash, online-hashing/+Datasets/cifar.m, line 41)."
_MYCODE = _CENTRE + "(lmbxmu/mycode, .../+Datasets/mnist.m, line 41)."

_BSODH = {"batch": 2000, "ridge": 0.9, "fit_weight": 0.8, "similar": 1.2, "dissimilar": 0.2}
_BSODH_PLACES205 = {"batch": 10_000, "ridge": 0.3, "fit_weight": 0.5}
_BSODH_PLACES205 |= {"similar": 1.0, "dissimilar": 0.0}

_TABLE = (
    Method(
        "LSH",
        LSH,
        "paper",
        {"color": "#777777", "marker": "X", "linestyle": "--"},
        published="The published benchmark does not have it.",
    ),
    Method(
        "OKH",
        OKH,
        "paper",
        {"color": "#56B4E9", "marker": "v"},
        published="Its learner was only released as an unreadable binary "
        "(fcakir/mihash, online-hashing/+Methods/OKHlearn.p).",
        settings={"aggressiveness": 0.001, "alpha": 0.3},
        by_benchmark={
            "places205": {"aggressiveness": 0.0001, "alpha": 0.7},
            "nuswide": {"alpha": 0.5},
        },
    ),
    Method(
        "SketchHash",
        SketchHash,
        "paper",
        {"color": "#E69F00", "marker": "s"},
        published=Published(
            "train1batch returns the weights but not the object, which is a value class, so "
            "sketch and mean are forgotten after every batch "
            "(fcakir/mihash, online-hashing/+Methods/SketchHash.m, lines 1, 45 and 69 to 75). "
            + _MIHASH,
            settings={"as_published": True},
        ),
        settings={"sketch_size": 200},
        by_benchmark={"places205": {"sketch_size": 100}},
    ),
    Method(
        "FROSH",
        FROSH,
        "paper",
        {"color": "#999933", "marker": "d"},
        published="The published benchmark does not have it.",
        settings={"sketch_size": 200},
        by_benchmark={"places205": {"sketch_size": 100}},
    ),
    Method(
        "AdaptHash",
        AdaptHash,
        "paper",
        {"color": "#CC79A7", "marker": "<"},
        published=Published(_MIHASH),
        settings={"alpha": 0.8, "ortho": 0.01, "learning_rate": 0.2},
        by_benchmark={
            "cifar10": {"alpha": 0.9, "learning_rate": 0.1},
            "places205": {"alpha": 0.9, "learning_rate": 0.1},
            "nuswide": {"alpha": 1.0, "learning_rate": 0.5},
        },
    ),
    Method(
        "OSH",
        OSH,
        "paper",
        {"color": "#009E73", "marker": "P"},
        published=Published(
            "train1batch returns the weights but not the object, which is a value class, so the "
            "codebook is forgotten after every sample and all classes share one codeword "
            "(fcakir/mihash, online-hashing/+Methods/OSH.m, lines 1, 59 and 122 to 125). "
            + _MIHASH,
            settings={"as_published": True},
        ),
        settings={"learning_rate": 0.1},
    ),
    Method(
        "MIHash",
        MIHash,
        "paper",
        {"color": "#D55E00", "marker": "^"},
        published=Published(
            "The derivative of a distance has -phi/2 in the place of -(2 phi - 1), so the step "
            "does not follow the gradient of the objective "
            "(fcakir/mihash, online-hashing/+Methods/MIHash.m, line 133). " + _MIHASH,
            settings={"gradient": "published"},
        ),
        settings={"reservoir": 1000, "sharpness": 10.0, "threshold": 0.0},
        by_benchmark={
            "places205": {"reservoir": 5000},
            "nuswide": {"reservoir": 2000, "sharpness": 1.0},
        },
    ),
    Method(
        "BSODH",
        BSODH,
        "paper",
        {"color": "#0072B2", "marker": "D"},
        published=Published(
            "The codes of a batch are found before those of the stored samples are updated, where "
            "Algorithm 1 of its paper has another order "
            "(lmbxmu/mycode, .../BSODH.m, lines 104 to 137). "
            "MNIST and Places205 have each other's lambda and sigma (lines 40 and 41). " + _MYCODE,
            settings={"order": "published", "ridge": 0.3, "fit_weight": 0.5},
            by_benchmark={"places205": {"ridge": 0.9, "fit_weight": 0.8}},
        ),
        settings=_BSODH,
        by_benchmark={
            "cifar10": {"ridge": 0.6, "fit_weight": 0.5},
            "places205": _BSODH_PLACES205,
            "nuswide": {"ridge": 0.3, "fit_weight": 0.1, "similar": 0.4, "dissimilar": 1.2},
        },
    ),
    Method(
        "HCOH",
        HCOH,
        "paper",
        {"color": "#7A0000", "marker": "o"},
        published=Published(_MYCODE),
        settings={"learning_rate": 0.2},
        by_benchmark={"places205": {"learning_rate": 0.1}},
    ),
    Method(
        "HMOH",
        HMOH,
        "paper",
        {"color": "#000000", "marker": "*", "linewidth": 2.6, "markersize": 10, "zorder": 4},
        published=Published(
            "Class i gets row i of the Hadamard matrix, all-ones row first, where the paper says "
            "that columns are drawn at random (lmbxmu/mycode, .../HMOH.m, lines 57 and 60). Most "
            "sets of two labels share one target (lines 62 to 98). Anchors and bandwidth are drawn "
            "from the whole database (lines 26 to 33).",
            make=PublishedHMOH,
        ),
        settings={"feature_map": RBF(n_anchors=300, divisor=6.0), "learning_rate": 0.1},
        by_benchmark={
            "cifar10": {"feature_map": None, "learning_rate": 0.5},
            "places205": {"feature_map": RBF(n_anchors=800, divisor=10.0), "learning_rate": 0.01},
            "nuswide": {"feature_map": None},
        },
    ),
    Method(
        "LEMON",
        LEMON,
        "later",
        {"color": "#332288", "marker": "p"},
        published="`METHODS` has what its program computes "
        "(yxinwang/LEMON-MM2020, codes/LEMON/train_LEMON.m).",
        by_benchmark={"nuswide": {"chunk": 10_000}},
    ),
    Method(
        "OASIS",
        OASIS,
        "later",
        {"color": "#44AA99", "marker": "8"},
        published="`METHODS` has what its program computes (DravenALG/OASIS, train_OASIS.m).",
        by_benchmark={"nuswide": {"chunk": 10_000}},
    ),
    Method(
        "FOH",
        FOH,
        "later",
        {"color": "#66A61E", "marker": "H"},
        published="`METHODS` has what its program computes "
        "(caoyuan57/FOH, MY_ONLINE_HASHING/FOH.m).",
    ),
    Method(
        "HadamardRidge",
        HadamardRidge,
        "ours",
        {"color": "#882255", "marker": "h"},
        published="It is ours, and its program is this one.",
        settings={"feature_map": [UnitLength(), RBF(n_anchors=1000, center=True)]},
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
METHODS_AS_PUBLISHED: dict[str, Method] = {
    method.name: method.as_published()
    for method in _TABLE
    if isinstance(method.published, Published)
}
PUBLISHED_FAULTS: dict[str, str] = {
    name: METHODS[name].published.fault for name in METHODS_AS_PUBLISHED
}


def named(origin: str) -> list[str]:
    """Return the names of the methods of an origin, in the order of `METHODS`."""
    if origin not in ORIGINS:
        raise ValueError(f"origin={origin!r} is unknown; pass one of {', '.join(ORIGINS)}.")
    # A notebook may have added a plain function, which has no origin.
    found = METHODS.items()
    return [name for name, method in found if getattr(method, "origin", None) == origin]
