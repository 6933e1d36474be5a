# %% [markdown]
# # Exercise 9 (project): Add a tenth method and put it into the comparison
#
# **You will learn** the contract of an online hashing method, to add one to a library without touching it, to test
# that it keeps its promises, and to compare it fairly.
#
# **Time:** 60 minutes for the guided method below; the rest of the week for one of your own. **Points:** 10.
#
# **Before you start:** exercises 2 and 4; least squares with a ridge; Python classes.
#
# **In the paper:** Sec. 4.1 (protocol and compared methods), Sec. 3.3 (regression to target codes, which HCOH does by
# gradient steps and HMOH argues against). HMOH is compared with nine methods here; yours is the tenth.

# %%
import sys

sys.path.insert(0, "../../..")  # the clone's folder, where the modules lie

import tempfile
from pathlib import Path

import numpy as np

import datasets
import experiments
from baselines import METHODS
from hmoh import HMOH, OnlineHasher
from kernels import RBF

print(len(METHODS), "methods:", ", ".join(METHODS))
mnist = datasets.load("mnist")
stream = datasets.split(mnist, seed=0).stream[:3000]
X, y = mnist.features[stream], mnist.labels[stream]
Z = RBF(100, divisor=6).fit(X).transform(X)

# %% [markdown]
# ## 9.1 The method
#
# The guided method is **RidgeHash**: regress the target codes on the features, exactly, at any time of the stream.
# Letters: z is a sample's feature vector (m numbers), c the target code of its class (r values of +1 and -1, Hadamard
# columns as in HMOH). After n samples the weights W (m x r) minimise
#
# $$\sum_{i=1}^{n} \lVert W^T z_i - c_i \rVert^2 + \lambda \lVert W \rVert^2 ,$$
#
# λ > 0 being the **ridge**. The solution is W = (A + λ I)⁻¹ B with A = Σ z zᵀ (m x m) and B = Σ z cᵀ (m x r). A and B
# are sums, so they can be kept up to date on a stream, and nothing of the past need be stored. Write the two pieces
# as functions first:
#
# - `accumulate(A, B, Z, C)`: new A and B after samples Z (n, m) with targets C (n, r), **without changing** the given
#   arrays, float64;
# - `solve(A, B, ridge)`: W, (m, r).
#
# <details><summary>Hint 1</summary>
#
# With samples as rows, Σ z zᵀ is `Z.T @ Z` and Σ z cᵀ is `Z.T @ C`. Convert Z to float64 first.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `np.linalg.solve(M, B)` is better than an inverse. `A + ...` makes a new array, `A += ...` changes the old one.
#
# </details>


# %% solution pieces
def accumulate(A, B, Z, C):
    """A + sum of z z^T and B + sum of z c^T, as new arrays."""
    ### BEGIN SOLUTION
    Z = Z.astype(np.float64)
    return A + Z.T @ Z, B + Z.T @ C
    ### END SOLUTION


def solve(A, B, ridge):
    """W of the regression, (m, r)."""
    ### BEGIN SOLUTION
    return np.linalg.solve(A + ridge * np.eye(len(A)), B)
    ### END SOLUTION


# %% check pieces 3
rng = np.random.default_rng(0)
Zs, Cs = rng.normal(size=(40, 6)).astype(np.float32), np.where(rng.random((40, 3)) < 0.5, 1, -1).astype(np.int8)
A, B = np.zeros((6, 6)), np.zeros((6, 3))
A1, B1 = accumulate(A, B, Zs[:15], Cs[:15])
assert not A.any() and not B.any(), (
    "accumulate changed the arrays it was given; return new ones: a failed call must leave a model as it was."
)
assert A1.dtype == np.float64, f"A is {A1.dtype}; float64 is needed: sums over long streams lose digits in float32."
A2, B2 = accumulate(A1, B1, Zs[15:], Cs[15:])
W = solve(A2, B2, 0.5)
assert W.shape == (6, 3), f"W has shape {W.shape}; (m, r) = (6, 3) is needed."
gradient = Zs.T.astype(float) @ (Zs.astype(float) @ W - Cs) + 0.5 * W
assert np.abs(gradient).max() < 1e-8, (
    f"the gradient of the loss at your W is {np.abs(gradient).max():.3g}, not 0: A or B is not the sum over both "
    "parts, or the ridge is missing."
)
print("accumulate and solve: the loss is at its minimum, over two parts of a stream")

# %% [markdown]
# ## 9.2 The class
#
# `OnlineHasher` in `hmoh.py` does all that methods share: checks, the feature map, blocks, codes, files. A method
# gives it
#
# - `_start(Z)`: set up what is learned, once the first mapped samples are there;
# - `_learn(Z, y)`: learn from mapped samples, **replacing** arrays and never writing into them;
# - `_decide(Z)`: the values whose signs are the code, (n, r) float32;
# - `_saved`: the names of what was learned, so that `save` and `load` work.
#
# We start from `HMOH`, which also has the targets: `self._targets(y)` returns the target codes that occur, (k, r),
# and for each sample its row in them. Fill in the three methods; `_A` and `_B` are the sums.
#
# <details><summary>Hint 1</summary>
#
# `_start` makes `self._A` (m, m) and `self._B` (m, r) of zeros, m = Z.shape[1], r = self.n_bits.
#
# </details>
# <details><summary>Hint 2</summary>
#
# In `_learn`: `targets, index = self._targets(y)`, and the samples' targets are `targets[index]`.
#
# </details>
# <details><summary>Hint 3</summary>
#
# `_decide` solves and multiplies: `Z @ solve(...)`, as float32.
#
# </details>


# %% solution class
class RidgeHash(HMOH):
    """Ridge regression to Hadamard target codes, exact at any time of the stream."""

    _learned = ("_A", "_B")
    _saved = (*OnlineHasher._saved, *_learned)
    batch_size, learning_rate = 1, 1.0  # parameters of HMOH that have no meaning here

    def __init__(
        self,
        n_bits=32,
        feature_map=None,
        ridge=1.0,
        codebook="random",
        n_classes=None,
        warmup=None,
        n_threads=None,
        random_state=None,
    ):
        self.n_bits, self.feature_map, self.ridge, self.codebook = n_bits, feature_map, ridge, codebook
        self.n_classes, self.warmup, self.n_threads, self.random_state = n_classes, warmup, n_threads, random_state

    def _start(self, Z):
        self._book = self._new_codebook()
        ### BEGIN SOLUTION
        self._A, self._B = np.zeros((Z.shape[1], Z.shape[1])), np.zeros((Z.shape[1], self.n_bits))
        ### END SOLUTION

    def _learn(self, Z, y):
        ### BEGIN SOLUTION
        targets, index = self._targets(y)
        self._A, self._B = accumulate(self._A, self._B, Z, targets[index])
        ### END SOLUTION

    def _decide(self, Z):
        ### BEGIN SOLUTION
        return (Z @ solve(self._A, self._B, self.ridge)).astype(np.float32)
        ### END SOLUTION


# %% check class 4
whole = RidgeHash(16, random_state=0).fit(Z, y)
codes = whole.transform(Z)
C = np.stack([whole.targets_[label] for label in y]).astype(float)
W = np.linalg.solve(Z.T.astype(float) @ Z.astype(float) + np.eye(Z.shape[1]), Z.T.astype(float) @ C)
need = np.packbits(Z @ W > 0, axis=1, bitorder="little")
share = (codes != need).any(axis=1).mean()
assert share < 0.002, (
    f"{share:.1%} of the codes differ from those of one regression on all samples: is B made of each sample's own "
    "target?"
)
pieces = RidgeHash(16, random_state=0)
for part in np.array_split(np.arange(len(Z)), 7):
    pieces.partial_fit(Z[part], y[part], classes=np.arange(10))
share = (codes != pieces.transform(Z)).any(axis=1).mean()
assert share < 0.002, (
    f"{share:.1%} of the codes change if the stream comes in 7 parts: _learn must add to the sums, not start anew."
)
before = pieces._A
pieces.partial_fit(Z[:5], y[:5])
assert pieces._A is not before, (
    "_learn wrote into the old _A; replace it by a new array, so that copies of the model stay as they are."
)
with tempfile.TemporaryDirectory() as folder:
    whole.save(Path(folder) / "model.npz")
    again = RidgeHash.load(Path(folder) / "model.npz")
assert (again.transform(Z) == codes).all(), "a saved and loaded model gives other codes: are all sums in _saved?"
late = RidgeHash(16, random_state=0).partial_fit(Z[y < 5], y[y < 5]).partial_fit(Z[y >= 5], y[y >= 5])
assert len(late.targets_) == 10, (
    f"after ten classes the model knows {len(late.targets_)}; classes may come late: call self._targets in _learn."
)
print("RidgeHash: exact, the same however the stream is cut, saves and loads, takes late classes")

# %% [markdown]
# ## 9.3 Into the comparison
#
# `METHODS` is a plain dict from a name to a function of (dataset_name, n_bits, random_state) that makes a model with
# the settings for that data set. Write `make_ridge` for MNIST: features as HMOH has them in the paper, `RBF(300,
# divisor=6)`, and ridge 1. The cell then enters it. (`experiments.compare` works in new processes, which import
# `baselines.py` afresh and do not know your entry; here we call `experiments.run` in this one. For good, the class
# and its entry belong into `baselines.py`.)
#
# <details><summary>Hint</summary>
#
# One line: `return RidgeHash(n_bits, feature_map=..., random_state=random_state)`.
#
# </details>


# %% solution entry
def make_ridge(dataset_name, n_bits, random_state=None):
    """RidgeHash with the features that HMOH has in the paper on MNIST."""
    ### BEGIN SOLUTION
    return RidgeHash(n_bits, feature_map=RBF(300, divisor=6), ridge=1.0, random_state=random_state)
    ### END SOLUTION


METHODS["RidgeHash"] = make_ridge

# %% check entry 1
model = METHODS["RidgeHash"]("mnist", 24, 5)
settings = model.get_params()
assert settings["n_bits"] == 24 and settings["random_state"] == 5, (
    f"asked for 24 bits and seed 5, got {settings}: pass both on."
)
map_settings = {name: settings.get(f"feature_map__{name}") for name in ("n_anchors", "divisor")}
assert map_settings == {"n_anchors": 300, "divisor": 6}, (
    f"the feature map has {map_settings}; RBF(300, divisor=6) is needed to compare fairly."
)
print("METHODS now has", len(METHODS), "entries; the last is", list(METHODS)[-1])

# %%
records = [
    experiments.run(method, "mnist", n_bits=32, seed=seed, n_threads=None)
    for method in ("HCOH", "HMOH", "RidgeHash")
    for seed in (0, 1)
]
means = {}
for metric in ("mAP", "P@H2"):
    print(f"{metric} on MNIST by the paper's protocol, 32 bits, two seeds")
    for method in ("HCOH", "HMOH", "RidgeHash"):
        values = [record[metric] for record in records if record["method"] == method]
        means[metric, method] = float(np.mean(values))
        print(f"  {method:<10} {values[0]:.3f} {values[1]:.3f}")
gap = {method: round(means["mAP", "RidgeHash"] - means["mAP", method], 3) for method in ("HCOH", "HMOH")}
print("mean mAP of RidgeHash minus that of", gap)

# %% [markdown]
# ## 9.4 Verdict, and a method of your own
#
# What do the numbers say about the paper's argument (Sec. 3.3) that a classifier suits binary targets better than
# regression? What does RidgeHash cost that HMOH does not: memory, time for a sample, time to encode? Which features
# does HCOH use in this comparison, and is it fair to blame regression for its row? (Graded by hand.)
#
# Then, if you have the week: a method of your own. Ideas: the mean feature vector of every class instead of
# regression; forgetting (multiply A and B by .999 at each step); targets of exercise 7; a second-order perceptron.
# The checks of 9.2 are what it should pass.

# %% [markdown] answer verdict 2
# <!-- ### BEGIN SOLUTION -->
# On the same kernel features, with the same targets, exact regression is about .04 better than HMOH at 32 bits on
# MNIST, for both seeds. So regression as such is not what holds HCOH back: in the paper's settings HCOH has linear,
# unit-length features and takes single gradient steps through tanh, and both differ; to blame one, change one at a
# time. The price of RidgeHash: it keeps an m x m matrix (300 x 300 float64 is .7 MB) beside B, needs O(m² + m r)
# operations for each sample where the perceptron needs O(m r), and a solve of O(m³) before encoding. That is little
# at m = 300 and much at m = 10,000. One data set and two seeds do not settle the argument, but "a classifier is
# better" needs more than the comparison with HCOH.
# <!-- ### END SOLUTION -->
