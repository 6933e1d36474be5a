# %% [markdown]
# # Exercise 9 (project): Add a method and put it into the comparison
#
# **You will learn** what an online hashing method must provide, how to add one to a library without
# changing the library, how to test that it behaves as promised, and how to compare it fairly.
#
# **Time:** 60 minutes for the guided method below, and the rest of the week for one of your own.
# **Points:** 10.
#
# **Before you start:** exercises 2 and 4; least squares with a ridge; Python classes.
#
# **In the paper:** Sec. 4.1 (protocol and compared methods), Sec. 3.3 (regression to target codes,
# which HCOH does by gradient steps and HMOH argues against). `METHODS` holds HMOH and the nine
# methods that it is compared with, so yours will be the tenth method to compare.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

from dataclasses import dataclass

import numpy as np

from baselines import METHODS, named
from exercises import references
from exercises.checks import one_line_errors, replaced, returned
from hmoh import CodebookHasher
from kernels import RBF

one_line_errors()

# %%
from study import datasets, protocol

METHODS.pop("RidgeHash", None)  # your method, if this cell runs a second time
print(len(named("paper")), "methods:", ", ".join(named("paper")))
mnist = datasets.load("mnist")
stream = datasets.split(mnist, seed=0).stream[:3000]
X = mnist.features[stream]
y = mnist.labels[stream]
Z = RBF(100, divisor=6).fit(X).transform(X)

# %% [markdown]
# ## 9.1 The method
#
# The guided method is **RidgeHash**, which regresses the target codes on the features, exactly, at
# any time of the stream. Let z be a sample's feature vector (m numbers) and c the target code of
# its class (r values of +1 and -1, Hadamard columns as in HMOH). After n samples, the weights W (m
# x r) minimise
#
# $$\sum_{i=1}^{n} \lVert W^\top z_i - c_i \rVert^2 + \lambda \lVert W \rVert^2 ,$$
#
# where λ > 0 is the **ridge**. The solution is W = (A + λ I)⁻¹ B with A = Σ z zᵀ (m x m) and B = Σ
# z cᵀ (m x r), where I is the identity matrix. Because A and B are sums, they can be updated along
# a stream without storing past samples. First write the two pieces as functions. Z holds one sample
# z in each row, and C holds its target c in the same row:
#
# - `accumulate(A, B, Z, C)`: the new A and B after samples Z (n, m) with targets C (n, r), as
#   float64, **without changing** the given arrays;
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
A = np.full((6, 6), 2.0)
B = np.full((6, 3), 3.0)
given = accumulate(A, B, Zs, Cs)
assert (A == 2).all() and (B == 3).all(), (
    "accumulate changed the arrays it was given: return new ones, because a failed call "
    "must leave a model as it was."
)
assert isinstance(given, (tuple, list)) and len(given) == 2, (
    f"accumulate returns {type(given).__name__}, but two arrays are needed: return A, B."
)
Z64 = Zs.astype(float)
for name, value, start in [("A", given[0], A), ("B", given[1], B)]:
    need = references.sums(A, B, Zs, Cs)["AB".index(name)]
    total = need - start
    assert np.shape(value) == need.shape, (
        f"{name} has shape {np.shape(value)}, but {need.shape} is needed: "
        "with samples as rows, the sums are products of Zᵀ with Z and with C."
    )
    assert value.dtype == np.float64, (
        f"{name} is {value.dtype}, but float64 is needed: sums over long streams lose "
        "digits in float32."
    )
    assert np.abs(value - total).max() > 1e-9, (
        f"{name} is the sum over the new samples alone: add it to what was there."
    )
    error = np.abs(value - need).max()
    way = f"{name} is not the old sum plus that of the new samples"
    if error < 1e-3:
        way = "the product was made in float32: convert Z to float64 first"
    assert error < 1e-10, f"{name} is wrong by up to {error:.3g}: {way}."
A, B = np.diag([1.0, 3.0, 7.0]), np.array([[4.0, 8.0], [0.0, 6.0], [8.0, 0.0]])
for ridge, need in [
    (1.0, [[2.0, 4.0], [0.0, 1.5], [1.0, 0.0]]),
    (3.0, [[1.0, 2.0], [0.0, 1.0], [0.8, 0.0]]),
]:
    returned(solve, A, B, ridge)
    W = solve(A, B, ridge)
    assert np.shape(W) == (3, 2), (
        f"W has shape {np.shape(W)}, but (m, r) = (3, 2) is needed: "
        "solve for B, not for its transpose."
    )
    assert np.allclose(W, need, rtol=1e-9), (
        f"A with the diagonal 1, 3, 7 and ridge {ridge}: W is {np.round(W, 3).tolist()}, "
        f"but {need} is needed: add ridge to the diagonal of A and to nothing else."
    )
A = Z64.T @ Z64
W = solve(A.copy(), Z64.T @ Cs, 0.5)
gradient = Z64.T @ (Z64 @ W - Cs) + 0.5 * W
largest = np.abs(gradient).max()
assert largest < 1e-8, (
    f"the gradient of the loss at your W is {largest:.3g}, not 0: "
    "all of A is needed, not only its diagonal."
)
print("accumulate adds to the sums, and at the W of solve the loss is at its minimum")

# %% [markdown]
# ## 9.2 The class
#
# `OnlineHasher` in `hmoh.py` does what all methods share: checks, the feature map, codes, files. A
# method is a dataclass whose fields are its parameters. It keeps what it learns in a **state**, and
# it provides
#
# - `_start(state, Z)`: adds to the state what learning starts from; Z holds the first mapped
#   samples;
# - `_learn(state, Z, y)`: learns from mapped samples by assigning **new** arrays to the state,
#   never by writing into the old ones;
# - `_decide(state, Z)`: returns the values whose signs are the code, (n, r) float32, using the
#   model's own `self.ridge`;
# - `_saved`: names the arrays of the state that a file keeps (given below).
#
# `partial_fit` passes `_learn` a shallow copy of the state, and at the end replaces the state as a
# whole. So a call that fails changes nothing, and a thread that encodes meanwhile uses one complete
# state, provided that nobody writes into the old arrays.
#
# We start from `CodebookHasher`, which also makes the targets. `self._target_rows(state, y)` gives
# new labels a target and then returns, for each sample, the row of its target in
# `state.book.table`. The table is padded with zeros to a multiple of 8 bits, so only its first
# `self.n_bits` columns are targets. Fill in the three methods, and keep the sums in `state.A` and
# `state.B`.
#
# <details><summary>Hint 1</summary>
#
# `_start` fills `state.A` (m, m) and `state.B` (m, r) with zeros, where m = Z.shape[1] and r =
# self.n_bits.
#
# </details>
# <details><summary>Hint 2</summary>
#
# In `_learn`, write `rows = self._target_rows(state, y)` on a line of its own, because it replaces
# `state.book` when labels are new. After it, the samples' targets are `state.book.table[rows, :
# self.n_bits]`.
#
# </details>
# <details><summary>Hint 3</summary>
#
# `_decide` solves and multiplies: `Z @ solve(...)`, as float32.
#
# </details>


# %% solution class
@dataclass(eq=False)
class RidgeHash(CodebookHasher):
    """Ridge regression to Hadamard target codes, exact at any time of the stream."""

    n_bits: int = 32
    feature_map: object = None
    ridge: float = 1.0
    codebook: str = "random"
    n_classes: int | None = None
    warmup: int | None = None
    random_state: int | None = None

    _saved = ("A", "B")

    def _start(self, state, Z):
        super()._start(state, Z)  # makes the codebook
        ### BEGIN SOLUTION
        m = Z.shape[1]
        state.A = np.zeros((m, m))
        state.B = np.zeros((m, self.n_bits))
        ### END SOLUTION

    def _learn(self, state, Z, y):
        ### BEGIN SOLUTION
        rows = self._target_rows(state, y)
        C = state.book.table[rows, : self.n_bits]
        state.A, state.B = accumulate(state.A, state.B, Z, C)
        ### END SOLUTION

    def _decide(self, state, Z):
        ### BEGIN SOLUTION
        W = solve(state.A, state.B, self.ridge)
        return (Z @ W).astype(np.float32)
        ### END SOLUTION


# %% check class 4
import tempfile
from pathlib import Path


def regression(model, Z, y, ridge):
    """Return the codes of one regression on all samples, to the targets of a model."""
    targets = np.stack([model.targets_[label] for label in y.tolist()])
    m = Z.shape[1]
    sums = references.sums(np.zeros((m, m)), np.zeros((m, model.n_bits)), Z, targets)
    W = references.regression(*sums, ridge)
    return np.packbits(Z.astype(float) @ W > 0, axis=1, bitorder="little")


Zs = Z[:1000]
ys = y[:1000]
with replaced(globals(), accumulate=references.sums, solve=references.regression):
    whole = RidgeHash(12, random_state=0)
    try:
        whole.fit(Zs, ys)
    except ValueError as error:
        if "16" not in str(error):
            raise
        raise AssertionError(
            f"12 bits cannot be learned ({error}): the table has 16 columns then, two tiles "
            "of 8, so take its first self.n_bits."
        ) from None
    assert hasattr(whole._state, "A") and hasattr(whole._state, "B"), (
        "the state has no A or no B: assign to state.A and state.B, not to self, because the "
        "state is what is replaced as a whole, and saved."
    )
    A = whole._state.A
    B = whole._state.B
    assert A.dtype == np.float64 and B.dtype == np.float64, (
        f"A and B are {A.dtype} and {B.dtype}, but float64 is needed: "
        "sums over long streams lose digits in float32."
    )
    shapes = (A.shape, B.shape)
    assert shapes == ((100, 100), (100, 12)), (
        f"A and B have shapes {A.shape} and {B.shape}, but (m, m) and "
        "(m, r) = (100, 100) and (100, 12) are needed: see _start."
    )
    values = whole.decision_function(Zs[:5])
    assert values.shape == (5, 12), (
        f"_decide gives 5 samples values of shape {values.shape}, but (n, r) = (5, 12) "
        "is needed: Z @ W."
    )
    assert values.dtype == np.float32, (
        f"_decide returns {values.dtype}, but float32 is needed, as from all methods: "
        "convert the values at the end."
    )
    codes = whole.transform(Zs)
    share = (codes != regression(whole, Zs, ys, 1.0)).any(axis=1).mean()
    way = "is B made of each sample's own target, row _target_rows of the table?"
    for ridge, mistake in [
        (1e-9, "no ridge is added."),
        (2.0, "the ridge is added twice."),
    ]:
        if (codes != regression(whole, Zs, ys, ridge)).any(axis=1).mean() < 0.002:
            way = mistake
    assert share < 0.002, (
        f"{share:.1%} of the codes differ from those of one regression on all samples: {way}"
    )
    strong = RidgeHash(12, ridge=1000.0, random_state=0).fit(Zs, ys)
    share = (strong.transform(Zs) != regression(strong, Zs, ys, 1000.0)).any(axis=1).mean()
    assert share < 0.002, (
        f"with ridge=1000 {share:.1%} of the codes differ from those of a regression with "
        "this ridge: pass self.ridge to solve."
    )
    pieces = RidgeHash(12, random_state=0)
    for part in np.array_split(np.arange(len(Zs)), 7):
        pieces.partial_fit(Zs[part], ys[part], classes=np.arange(10))
    share = (codes != pieces.transform(Zs)).any(axis=1).mean()
    assert share < 0.002, (
        f"{share:.1%} of the codes change if the stream comes in 7 parts: "
        "_learn must add to the sums, not start again."
    )
    before = pieces._state
    copied = before.A.copy(), before.B.copy()
    pieces.partial_fit(Zs[:5], ys[:5])
    assert np.array_equal(before.A, copied[0]) and np.array_equal(before.B, copied[1]), (
        "_learn wrote into the old A or B: assign a new array, because another thread may be "
        "encoding with the old state."
    )
    late = RidgeHash(12, random_state=0)
    try:
        late.partial_fit(Zs[ys < 5], ys[ys < 5])
        late.partial_fit(Zs[ys >= 5], ys[ys >= 5])
    except (IndexError, KeyError) as error:
        raise AssertionError(
            f"classes that come late cannot be learned ({error!r}): call self._target_rows in a "
            "line of its own, because it replaces state.book by one that has targets for them, "
            "and read state.book.table after it."
        ) from None
    assert len(late.targets_) == 10, (
        f"after ten classes the model knows {len(late.targets_)}, but classes may come "
        "late: call self._target_rows in _learn."
    )
    share = (late.transform(Zs) != regression(late, Zs, ys, 1.0)).any(axis=1).mean()
    assert share < 0.002, (
        f"{share:.1%} of the codes are wrong if the classes are not known at the start: the "
        "table is in order of arrival, so take the rows that self._target_rows returns."
    )
    with tempfile.TemporaryDirectory() as folder:
        whole.save(Path(folder) / "model.npz")
        try:
            loaded = RidgeHash.load(Path(folder) / "model.npz")
        except ValueError as error:
            raise AssertionError(
                f"a saved model does not load ({error.__cause__}): a file only fills what _start "
                "makes, so make A and B there with the types and shapes that they keep."
            ) from None
    try:
        again = loaded.transform(Zs)
    except AttributeError as error:
        raise AssertionError(
            f"a loaded model cannot encode ({error}): only A and B are saved, so "
            "compute everything else from them in _decide."
        ) from None
    assert (again == codes).all(), (
        "a saved and loaded model gives other codes: only A and B are saved, so "
        "compute everything else from them in _decide."
    )
print("RidgeHash: exact, the same however the stream is cut,")
print("saves and loads, accepts classes that come late")

# %% [markdown]
# ## 9.3 Into the comparison
#
# `METHODS` is a dict from a name to a `Method`, which is called with (dataset_name, n_bits,
# random_state) and makes a model with the settings for that data set. A function will do too: write
# `make_ridge` for MNIST, with the features that HMOH uses in the paper, `RBF(300, divisor=6)`, and
# ridge 1. The cell then adds it to `METHODS`.
#
# (`protocol.compare` works in new processes, which import `baselines` again and do not know your
# entry, so we call `protocol.run` in this process. To add your method permanently, put the class
# into a file in the folder `baselines` and its entry into `baselines/__init__.py`.)
#
# <details><summary>Hint</summary>
#
# One line is enough. Pass on the code length, the map and the seed: without its seed, a run cannot
# be repeated.
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
assert type(model) is RidgeHash, (
    f"make_ridge returns {type(model).__name__}, but your own class is to be compared: "
    "return RidgeHash(...)."
)
settings = model.get_params()
assert settings["n_bits"] == 24 and settings["random_state"] == 5, (
    f"the check needs 24 bits and seed 5, but the model has {settings['n_bits']} bits and "
    f"seed {settings['random_state']}: pass both on."
)
of_hmoh = METHODS["HMOH"]("mnist", 24, 5).get_params()
for part in ("n_anchors", "divisor", "center", "anchors"):
    place = f"feature_map__{part}"
    assert settings.get(place) == of_hmoh[place], (
        f"{part} of the feature map is {settings.get(place)}, but a fair comparison needs "
        f"that of HMOH, {of_hmoh[place]}: RBF(300, divisor=6)."
    )
assert settings["ridge"] == 1, f"ridge is {settings['ridge']}, but 1 is needed: pass it."
assert settings["codebook"] == of_hmoh["codebook"], (
    f"the codebook is {settings['codebook']!r}, but a fair comparison needs that of HMOH, "
    f"{of_hmoh['codebook']!r}: leave it out."
)
other = METHODS["RidgeHash"]("mnist", 16, 6)
assert other is not model and model.n_bits == 24 and other.n_bits == 16, (
    "two calls return the same model: make a new one in each call."
)
assert not hasattr(model, "n_seen_"), (
    "the model has already learned: return it untrained, the protocol trains it."
)
print("the last entry of METHODS is", list(METHODS)[-1])

# %% [markdown]
# **Predict before you run.** The next cell runs the paper's protocol for HCOH (regression by
# gradient steps on linear features), HMOH (perceptrons on kernel features) and RidgeHash (exact
# regression on the same kernel features and targets as HMOH). The paper says that a classifier
# suits binary targets better than regression. Rank the three by mAP.

# %%
from study.profile import by_profile

NAMES = ["HCOH", "HMOH", "RidgeHash"]
# HMOH_PROFILE=quick, for grading: one seed, and `protocol` takes a small part of the data.
SEEDS = by_profile((0, 1), (0,))
records = {}
for method in NAMES:
    records[method] = []
    for seed in SEEDS:
        record = protocol.run(method, "mnist", n_bits=32, seed=seed, n_threads=None)
        records[method].append(record)
means = {}
for metric in ("mAP", "P@H2"):
    print(f"{metric} on MNIST by the paper's protocol, 32 bits, {len(SEEDS)} seeds")
    for method in NAMES:
        values = [record[metric] for record in records[method]]
        means[metric, method] = float(np.mean(values))
        print(f"  {method:<10}", *[f"{value:.3f}" for value in values])
for method in ("HCOH", "HMOH"):
    gap = means["mAP", "RidgeHash"] - means["mAP", method]
    print(f"mean mAP of RidgeHash minus that of {method}: {gap:+.3f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# RidgeHash comes first, HMOH second and HCOH last, both in mAP and in Precision@H2 (P@H2, the
# precision within distance 2).
#
# </details>
#
# ## 9.4 Verdict, and a method of your own
#
# What do the numbers say about the paper's argument (Sec. 3.3) that a classifier suits binary
# targets better than regression? What does RidgeHash cost that HMOH does not: memory, time per
# sample, time to encode? Which features does HCOH use in this comparison, and is it fair to blame
# regression for its result? (Graded by hand.)
#
# Then, if you have the week, write a method of your own. Ideas: the mean feature vector of every
# class instead of regression; forgetting (multiply A and B by 0.999 at each step); the targets of
# exercise 7; a second-order perceptron. As the check of 9.2 requires, it should not depend on how
# the stream is cut, it should save and load, and it should accept classes that come late.

# %% [markdown] answer verdict 2
# <!-- ### BEGIN SOLUTION -->
# With the same kernel features and the same targets, exact regression beats HMOH by about 0.04 at
# 32 bits on MNIST, for both seeds. So regression as such is not what holds HCOH back. In the
# paper's settings HCOH uses linear, unit-length features and takes single gradient steps through
# tanh. These are two differences, so to blame one of them, change one at a time. RidgeHash costs
# more: it keeps an m x m matrix beside B (300 x 300 float64 take 0.7 MB), it needs O(m² + m r)
# operations per sample where the perceptron needs O(m r), and it solves in O(m³) before it encodes.
# That is little at m = 300 and much at m = 10,000. One data set and two seeds do not settle the
# argument, but "a classifier is better" needs more evidence than the comparison with HCOH.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 9.5 No solve (optional, hard)
#
# RidgeHash solves a system of m equations before it encodes, which takes O(m³) operations. Instead,
# keep P = (A + λ I)⁻¹ and W up to date, with O(m² + m r) operations for each sample z. Start with P
# = I/λ and W = 0. Compare W with that of `solve` after 3,000 samples. Then use float32 for P and W
# from the start, and look again.
#
# <details><summary>Hint</summary>
#
# Use the Sherman-Morrison formula: with g = P z and q = g/(1 + zᵀ g), the new P is P - q gᵀ, and
# the new W is W + q (c - Wᵀ z)ᵀ. This is recursive least squares. Rounding errors accumulate in P:
# look at P - Pᵀ. Inverting A + λ I again removes them.
#
# </details>
#
# **When you are done:** the project uses this idea too. Read `HadamardRidge` in `ridge.py`, which
# builds on the same three methods (its `_learn` also takes a weight for each sample), and compare
# it with yours. It keeps the sum of the features of each class instead of B, so it can change code
# length or codebook after the stream, and two models can be merged. Its ridge is relative to the
# size of the features, and it solves once for each block of samples, not at each call.
