# %% [markdown]
# # Exercise 9 (project): Add a tenth method and put it into the comparison
#
# **You will learn** what an online hashing method must provide, to add one to a library without
# changing it, to test that it behaves as promised, and to compare it fairly.
#
# **Time:** 60 minutes for the guided method below; the rest of the week for one of your own.
# **Points:** 10.
#
# **Before you start:** exercises 2 and 4; least squares with a ridge; Python classes.
#
# **In the paper:** Sec. 4.1 (protocol and compared methods), Sec. 3.3 (regression to target
# codes, which HCOH does by gradient steps and HMOH argues against). HMOH is compared with nine
# methods here; yours is the tenth.

# %%
import sys

sys.path.insert(0, "../../..")  # the modules are in the folder of the clone

import tempfile
from pathlib import Path

import numpy as np

from baselines import METHODS
from hmoh import CodebookHasher, Form
from kernels import RBF
from study import datasets, protocol

print(len(METHODS), "methods:", ", ".join(METHODS))
mnist = datasets.load("mnist")
stream = datasets.split(mnist, seed=0).stream[:3000]
X = mnist.features[stream]
y = mnist.labels[stream]
Z = RBF(100, divisor=6).fit(X).transform(X)

# %% [markdown]
# ## 9.1 The method
#
# The guided method is **RidgeHash**: regress the target codes on the features, exactly, at any
# time of the stream. z is a sample's feature vector (m numbers). c is the target code of its
# class (r values of +1 and -1, Hadamard columns as in HMOH). After n samples the weights W (m x
# r) minimise
#
# $$\sum_{i=1}^{n} \lVert W^T z_i - c_i \rVert^2 + \lambda \lVert W \rVert^2 ,$$
#
# where λ > 0 is the **ridge**. The solution is W = (A + λ I)⁻¹ B with A = Σ z zᵀ (m x m) and B =
# Σ z cᵀ (m x r). A and B are sums, so they can be kept up to date on a stream, and no past sample
# need be stored. Write the two pieces as functions first:
#
# - `accumulate(A, B, Z, C)`: new A and B after samples Z (n, m) with targets C (n, r), **without
#   changing** the given arrays, float64;
# - `solve(A, B, ridge)`: W, (m, r).
#
# <details><summary>Hint 1</summary>
#
# With samples as rows, Σ z zᵀ is `Z.T @ Z` and Σ z cᵀ is `Z.T @ C`. Convert Z to float64 first.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `np.linalg.solve(M, B)` is better than an inverse. `A + ...` makes a new array, `A += ...`
# changes the old one.
#
# </details>


# %% solution pieces
def accumulate(A, B, Z, C):
    """Return A + sum of z z^T and B + sum of z c^T, as new arrays."""
    ### BEGIN SOLUTION
    Z = Z.astype(np.float64)
    return A + Z.T @ Z, B + Z.T @ C
    ### END SOLUTION


def solve(A, B, ridge):
    """Return W of the regression, (m, r)."""
    ### BEGIN SOLUTION
    return np.linalg.solve(A + ridge * np.eye(len(A)), B)
    ### END SOLUTION


# %% check pieces 3
rng = np.random.default_rng(0)
Zs = rng.normal(size=(40, 6)).astype(np.float32)
Cs = np.where(rng.random((40, 3)) < 0.5, 1, -1).astype(np.int8)
A = np.zeros((6, 6))
B = np.zeros((6, 3))
A1, B1 = accumulate(A, B, Zs[:15], Cs[:15])
assert not A.any() and not B.any(), (
    "accumulate changed the arrays it was given: return new ones, because a failed call "
    "must leave a model as it was."
)
assert A1.dtype == np.float64, (
    f"A is {A1.dtype}, but float64 is needed: sums over long streams lose digits in float32."
)
A2, B2 = accumulate(A1, B1, Zs[15:], Cs[15:])
W = solve(A2, B2, 0.5)
assert W.shape == (6, 3), (
    f"W has shape {W.shape}, but (m, r) = (6, 3) is needed: solve for B, not for its transpose."
)
residual = Zs.astype(float) @ W - Cs
gradient = Zs.T.astype(float) @ residual + 0.5 * W
largest = np.abs(gradient).max()
assert largest < 1e-8, (
    f"the gradient of the loss at your W is {largest:.3g}, not 0: A or B is not the sum "
    "over both parts, or the ridge is missing."
)
print("accumulate and solve: the loss is at its minimum, over two parts of a stream")

# %% [markdown]
# ## 9.2 The class
#
# `OnlineHasher` in `hmoh.py` does all that methods share: checks, the feature map, blocks, codes,
# files. A method provides
#
# - `_start(Z)`: set up what is learned, when the first mapped samples have arrived;
# - `_learn(Z, y)`: learn from mapped samples, **replacing** arrays and never writing into them;
# - `_decide(Z)`: the values whose signs are the code, (n, r) float32;
# - `_saved` and `_forms`: the names of what was learned, and its types and shapes, so that `save`
#   and `load` work. `load` checks a file before it uses it. Both are given below.
#
# We start from `CodebookHasher`, which also has the targets. `self._targets(y)` returns the
# target codes that occur, (k, r), and for each sample its row in them. Fill in the three methods;
# `_A` and `_B` are the sums.
#
# <details><summary>Hint 1</summary>
#
# `_start` makes `self._A` (m, m) and `self._B` (m, r) of zeros, with m = Z.shape[1] and r =
# self.n_bits.
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
class RidgeHash(CodebookHasher):
    """Ridge regression to Hadamard target codes, exact at any time of the stream."""

    _saved = (*CodebookHasher._saved, "_A", "_B")

    def __init__(
        self,
        n_bits=32,
        feature_map=None,
        ridge=1.0,
        codebook="random",
        n_classes=None,
        warmup=None,
        random_state=None,
    ):
        self.n_bits = n_bits
        self.feature_map = feature_map
        self.ridge = ridge
        self.codebook = codebook
        self.n_classes = n_classes
        self.warmup = warmup
        self.random_state = random_state

    def _forms(self, m, labels):
        sums = {"_A": Form("float64", (m, m)), "_B": Form("float64", (m, self.n_bits))}
        return super()._forms(m, labels) | sums

    def _start(self, Z):
        super()._start(Z)  # makes the codebook
        ### BEGIN SOLUTION
        m = Z.shape[1]
        self._A = np.zeros((m, m))
        self._B = np.zeros((m, self.n_bits))
        ### END SOLUTION

    def _learn(self, Z, y):
        ### BEGIN SOLUTION
        targets, index = self._targets(y)
        self._A, self._B = accumulate(self._A, self._B, Z, targets[index])
        ### END SOLUTION

    def _decide(self, Z):
        ### BEGIN SOLUTION
        W = solve(self._A, self._B, self.ridge)
        return (Z @ W).astype(np.float32)
        ### END SOLUTION


# %% check class 4
whole = RidgeHash(16, random_state=0).fit(Z, y)
codes = whole.transform(Z)
C = np.stack([whole.targets_[label] for label in y]).astype(float)
Z64 = Z.astype(float)
W = np.linalg.solve(Z64.T @ Z64 + np.eye(Z.shape[1]), Z64.T @ C)
need = np.packbits(Z @ W > 0, axis=1, bitorder="little")
share = (codes != need).any(axis=1).mean()
assert share < 0.002, (
    f"{share:.1%} of the codes differ from those of one regression on all samples: "
    "is B made of each sample's own target?"
)
pieces = RidgeHash(16, random_state=0)
for part in np.array_split(np.arange(len(Z)), 7):
    pieces.partial_fit(Z[part], y[part], classes=np.arange(10))
share = (codes != pieces.transform(Z)).any(axis=1).mean()
assert share < 0.002, (
    f"{share:.1%} of the codes change if the stream comes in 7 parts: "
    "_learn must add to the sums, not start again."
)
before = pieces._A
pieces.partial_fit(Z[:5], y[:5])
assert pieces._A is not before, (
    "_learn wrote into the old _A: replace it by a new array, so that copies of the model "
    "stay as they are."
)
with tempfile.TemporaryDirectory() as folder:
    whole.save(Path(folder) / "model.npz")
    again = RidgeHash.load(Path(folder) / "model.npz")
assert (again.transform(Z) == codes).all(), (
    "a saved and loaded model gives other codes: are all sums in _saved?"
)
late = RidgeHash(16, random_state=0)
late.partial_fit(Z[y < 5], y[y < 5])
late.partial_fit(Z[y >= 5], y[y >= 5])
assert len(late.targets_) == 10, (
    f"after ten classes the model knows {len(late.targets_)}, but classes may come late: "
    "call self._targets in _learn."
)
print("RidgeHash: exact, the same however the stream is cut,")
print("saves and loads, accepts classes that come late")

# %% [markdown]
# ## 9.3 Into the comparison
#
# `METHODS` is a plain dict from a name to a function of (dataset_name, n_bits, random_state) that
# makes a model with the settings for that data set. Write `make_ridge` for MNIST: the features
# that HMOH has in the paper, `RBF(300, divisor=6)`, and ridge 1. The cell then adds it to
# `METHODS`.
#
# (`protocol.compare` works in new processes. They import `baselines` again and do not know your
# entry, so we call `protocol.run` in this process. To add it permanently, put the class into a
# file of the folder `baselines` and its entry into `baselines/__init__.py`.)
#
# <details><summary>Hint</summary>
#
# One line: `return RidgeHash(n_bits, feature_map=..., random_state=random_state)`.
#
# </details>


# %% solution entry
def make_ridge(dataset_name, n_bits, random_state=None):
    """Return RidgeHash with the features that HMOH has in the paper on MNIST."""
    ### BEGIN SOLUTION
    feature_map = RBF(300, divisor=6)
    return RidgeHash(n_bits, feature_map, ridge=1.0, random_state=random_state)
    ### END SOLUTION


METHODS["RidgeHash"] = make_ridge

# %% check entry 1
model = METHODS["RidgeHash"]("mnist", 24, 5)
settings = model.get_params()
assert settings["n_bits"] == 24 and settings["random_state"] == 5, (
    f"the check needs 24 bits and seed 5, but the model has {settings}: pass both on."
)
anchors = settings.get("feature_map__n_anchors")
divisor = settings.get("feature_map__divisor")
assert anchors == 300 and divisor == 6, (
    f"the feature map has {anchors} anchors and divisor {divisor}, but a fair comparison "
    "needs those of HMOH: RBF(300, divisor=6)."
)
print("METHODS now has", len(METHODS), "entries; the last is", list(METHODS)[-1])

# %%
NAMES = ["HCOH", "HMOH", "RidgeHash"]
records = {}
for method in NAMES:
    records[method] = []
    for seed in (0, 1):
        record = protocol.run(method, "mnist", n_bits=32, seed=seed, n_threads=None)
        records[method].append(record)
means = {}
for metric in ("mAP", "P@H2"):
    print(f"{metric} on MNIST by the paper's protocol, 32 bits, two seeds")
    for method in NAMES:
        values = [record[metric] for record in records[method]]
        means[metric, method] = float(np.mean(values))
        print(f"  {method:<10} {values[0]:.3f} {values[1]:.3f}")
for method in ("HCOH", "HMOH"):
    gap = means["mAP", "RidgeHash"] - means["mAP", method]
    print(f"mean mAP of RidgeHash minus that of {method}: {gap:+.3f}")

# %% [markdown]
# ## 9.4 Verdict, and a method of your own
#
# What do the numbers say about the paper's argument (Sec. 3.3) that a classifier suits binary
# targets better than regression? What does RidgeHash cost that HMOH does not: memory, time for a
# sample, time to encode? Which features does HCOH use in this comparison, and is it fair to blame
# regression for its row? (Graded by hand.)
#
# Then, if you have the week, write a method of your own. Ideas: the mean feature vector of every
# class instead of regression; forgetting (multiply A and B by .999 at each step); targets of
# exercise 7; a second-order perceptron. It should pass the checks of 9.2.

# %% [markdown] answer verdict 2
# <!-- ### BEGIN SOLUTION -->
# On the same kernel features, with the same targets, exact regression is about .04 better than
# HMOH at 32 bits on MNIST, for both seeds. So regression as such is not what holds HCOH back. In
# the paper's settings HCOH has linear, unit-length features and takes single gradient steps
# through tanh. Both differ; to blame one, change one at a time. The price of RidgeHash: it keeps
# an m x m matrix (300 x 300 float64 is .7 MB) beside B. It needs O(m² + m r) operations for each
# sample where the perceptron needs O(m r), and a solve of O(m³) before encoding. That is little
# at m = 300 and much at m = 10,000. One data set and two seeds do not settle the argument, but "a
# classifier is better" needs more than the comparison with HCOH.
# <!-- ### END SOLUTION -->
