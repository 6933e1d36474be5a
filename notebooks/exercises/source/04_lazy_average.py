# %% [markdown]
# # Exercise 4: Averaging lazily
#
# **You will learn** why the average of all weights along the stream beats the last ones, how to
# derive the average without adding up at every step, and how to implement it.
#
# **Time:** 45 to 60 minutes. **Points:** 10.
#
# **Before you start:** exercise 3; changing the order of two sums.
#
# **In the paper:** Sec. 3.7 (ensemble learning), with equal weights 1/T; Algorithm 1, lines 13
# and 15.

# %%
import sys

sys.path.insert(0, "../../..")  # the modules are in the folder of the clone

import numpy as np

from hmoh import HMOH
from kernels import RBF
from metrics import mean_average_precision
from study import datasets, plots

plots.use_style()
mnist = datasets.load("mnist")
parts = datasets.split(mnist, seed=0)
stream = parts.stream[:2000]
feature_map = RBF(60, divisor=6).fit(mnist.features[stream])
features = feature_map.transform(mnist.features[stream])
labels = mnist.labels[stream]
codes = HMOH(16, random_state=0).fit(features, labels).targets_  # target codes by label
BIT = 5  # the bit of this exercise
target = np.array([codes[label][BIT] for label in labels], np.float64)
plus = [digit for digit in range(10) if codes[digit][BIT] > 0]
print("features", features.shape)
print("targets of the bit", target.shape)
print("digits with target +1:", plus)

# %% [markdown]
# ## 4.1 The obvious way
#
# All bits are learned in the same way and independently of each other, so we take one bit. (We do
# not take bit 0. Row 0 of Sylvester's matrix is all +1, so its target is the same for every
# class, and there is nothing to learn.)
#
# **w** are its weights (m numbers), w⁰ = 0. At **step** t = 1 .. T (here: sample t) the
# perceptron of exercise 3 adds δᵗ = c z if it gets the sample wrong and δᵗ = 0 otherwise: wᵗ =
# wᵗ⁻¹ + δᵗ. The **ensemble** is the average
#
# $$\bar w = \frac1T \sum_{t=1}^{T} w^t .$$
#
# Write `average_eager(Z, c)`: the pass for one bit with targets c (one per sample), which adds up
# all wᵗ. Return (average, last w, number of mistakes), weights as float64.
#
# <details><summary>Hint</summary>
#
# After each sample, wrong or not, `total += w`. At the end divide by `len(Z)`.
#
# </details>


# %% solution eager
def average_eager(Z, c):
    """Return the average of w over all steps, the last w, and the mistakes of one bit."""
    ### BEGIN SOLUTION
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    mistakes = 0
    for z, sign in zip(Z.astype(np.float64), c, strict=True):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            mistakes += 1
        total += w
    return total / len(Z), w, mistakes
    ### END SOLUTION


# %% check eager 2
Z = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
c = np.array([1, -1, 1, 1])
average, last, mistakes = average_eager(Z, c)
assert mistakes == 1, (
    f"{mistakes} mistakes on the four samples, but only the first is wrong (w = 0 says "
    "-1, and later w = [1, 0]): count where sign(w·z) differs from c."
)
assert np.allclose(last, [1, 0]), (
    f"the last w is {last}, but it must be [1, 0]: add c z on mistakes only."
)
assert np.allclose(average, [1, 0]), (
    f"the average is {average}, but w is [1, 0] after each of the four steps: "
    "do you add the w of *after* the step?"
)
average, last, mistakes = average_eager(features, target)
model = HMOH(16, random_state=0).fit(features, labels)
gap = np.abs(average - model.weights_[:, BIT]).max()
assert gap < 1e-3, (
    f"the average differs from the library's weights of the bit by {gap:.3g}, but this "
    "must be below 0.001: divide by the number of all samples."
)
print(f"average_eager: agrees with HMOH; {mistakes} mistakes in {len(features)} steps")

# %% [markdown]
# ## 4.2 Derive
#
# The pass above adds m numbers at *every* step, although w changes only at mistakes. Put wᵗ =
# δ¹ + ... + δᵗ into the average and change the order of the two sums. Write down the factor with
# which the update δˢ of step s counts. Then show that
#
# $$\bar w = w^T - \frac{u}{T}, \qquad u = \sum_{s=1}^{T} (s - 1)\,\delta^s .$$
#
# (Graded by hand.)
#
# <details><summary>Hint 1</summary>
#
# δˢ is contained in wˢ, wˢ⁺¹, ..., wᵀ. How many are these?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Write (T - s + 1)/T as 1 - (s - 1)/T.
#
# </details>

# %% [markdown] answer derive 3
# <!-- ### BEGIN SOLUTION -->
# The average is (1/T) Σ_t Σ_{s ≤ t} δˢ. The pair (s, t) is in the sum if s ≤ t ≤ T. If we sum
# over t first, δˢ is counted T - s + 1 times, so the average is Σ_s ((T - s + 1)/T) δˢ. Because
# (T - s + 1)/T = 1 - (s - 1)/T, this is Σ_s δˢ - (1/T) Σ_s (s - 1) δˢ. The first sum is wᵀ, the
# second is u. Both sums change only where δˢ is not zero, that is, at mistakes.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 4.3 Implement
#
# Write `average_lazy(Z, c)` with your result. It does no work on the average where the bit is
# right. Return (average, last w, number of **vector additions**). Count every `+=` on a vector of
# m numbers: w and u each count one.
#
# <details><summary>Hint 1</summary>
#
# Let `i` count from 0. Step s = i + 1, so the factor (s - 1) is just i: the steps done *before*
# this one.
#
# </details>
# <details><summary>Hint 2</summary>
#
# On a mistake: `w += delta`, `u += i * delta`, `additions += 2`. After the loop:
# `w - u / len(Z)`.
#
# </details>


# %% solution lazy
def average_lazy(Z, c):
    """Return the average of w over all steps, the last w, and the vector additions made."""
    ### BEGIN SOLUTION
    w = np.zeros(Z.shape[1])
    u = np.zeros(Z.shape[1])
    additions = 0
    for i, (z, sign) in enumerate(zip(Z.astype(np.float64), c, strict=True)):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            u += i * sign * z
            additions += 2
    return w - u / len(Z), w, additions
    ### END SOLUTION


# %% check lazy 4
Z = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]])
c = np.array([1, -1, 1])
average, last, additions = average_lazy(Z, c)
assert np.allclose(last, [0, 2]), (
    f"the last w is {last}, but by hand: [1, 0] after step 1, the same after step 2, "
    "[0, 2] after step 3."
)
assert np.allclose(average, [2 / 3, 2 / 3]), (
    f"the average of [1, 0], [1, 0], [0, 2] is [2/3, 2/3], but yours is {average}: "
    "is the factor s - 1, so that the first step counts fully?"
)
assert additions == 4, (
    f"{additions} additions counted, but two mistakes make 4: "
    "count w and u, at mistakes only."
)
eager, _, mistakes = average_eager(features, target)
lazy, _, additions = average_lazy(features, target)
gap = np.abs(lazy - eager).max()
assert gap < 1e-9, (
    f"on MNIST the two averages differ by {gap:.3g}, but this must be below 1e-9: "
    "use float64 for w and u."
)
assert additions == 2 * mistakes, (
    f"{additions} additions for {mistakes} mistakes, but {2 * mistakes} are needed: "
    "nothing is added where the bit is right."
)
n = len(features)
print(f"vector additions in {n} steps: eager {n + mistakes}, lazy {additions}")

# %% [markdown]
# ## 4.4 Is it worth it?
#
# The question is about retrieval and about time. **mAP** (mean average precision; exercise 6)
# says how well the codes find images of the same digit; 1 is perfect. We measure it along the
# stream, for the last weights and for the average. We use a small part of MNIST (200 queries,
# 5,000 images to search), which is not the paper's protocol.
#
# Write `compare(n)`. Train `HMOH(16, random_state=0)` on the first n rows of `features` and
# `labels`, once with `ensemble=False` and once with `ensemble=True`. Return the two mAP values
# (last, average) by calling `score(model)`, which is given.
#
# <details><summary>Hint</summary>
#
# `HMOH(16, ensemble=..., random_state=0).fit(features[:n], labels[:n])` is a trained model.
#
# </details>

# %%
rng = np.random.default_rng(0)
queries = rng.permutation(parts.queries)[:200]
database = parts.database[-5000:]
Z_queries = feature_map.transform(mnist.features[queries])
Z_database = feature_map.transform(mnist.features[database])


def score(model):
    """Return the mAP of a model's codes."""
    return mean_average_precision(
        model.transform(Z_queries),
        model.transform(Z_database),
        mnist.labels[queries],
        mnist.labels[database],
    )


# %% solution compare
def compare(n):
    """Return the mAP of the last weights and of the average, after n samples."""
    ### BEGIN SOLUTION
    scores = []
    for ensemble in (False, True):
        model = HMOH(16, ensemble=ensemble, random_state=0)
        model.fit(features[:n], labels[:n])
        scores.append(score(model))
    return scores[0], scores[1]
    ### END SOLUTION


# %% check compare 1
last, average = compare(1500)
for name, value, ensemble in [("last", last, False), ("average", average, True)]:
    reference = HMOH(16, ensemble=ensemble, random_state=0)
    need = score(reference.fit(features[:1500], labels[:1500]))
    assert abs(value - need) < 1e-6, (
        f"the {name} weights give {value:.4f}, but ensemble={ensemble} gives {need:.4f}: "
        "check the order of the two values."
    )
print(f"after 1,500 samples: last {last:.3f}, average {average:.3f}")

# %%
samples = list(range(200, 2001, 200))
scores = np.array([compare(n) for n in samples])
last = scores[:, 0]
average = scores[:, 1]
title = "MNIST, part of it: mAP of 16-bit codes, 60 anchors"
axes = plots.stream_curves(samples, {"last weights": last, "average": average}, title)
axes.set_ylim(0, None)
for name, values in [("last weights", last), ("average", average)]:
    change = np.abs(np.diff(values)).mean()
    print(f"{name}: {values[-1]:.3f} at the end,", end=" ")
    print(f"mean change from one point to the next {change:.3f}")
above = (average > last).sum()
print(f"the average is above the last weights at {above} of {len(samples)} points")

# %% [markdown]
# The last weights have just been changed by the last mistakes, so their mAP jumps. The mAP of the
# average is higher and steadier. The average costs almost nothing: the paper counts one matrix
# addition for each step, and the lazy form needs none where a bit is right. `hmoh.py` does the
# same (`_perceptron`), in runs of 1,000 steps so that float32 numbers stay small.
