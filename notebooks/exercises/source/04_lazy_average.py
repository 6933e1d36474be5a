# %% [markdown]
# # Exercise 4: Averaging lazily
#
# **You will learn** why the average of all weights along the stream beats the last weights, how to
# derive this average without adding up at every step, and how to implement it.
#
# **Time:** 45 to 60 minutes. **Points:** 10.
#
# **Before you start:** exercise 3; changing the order of two sums.
#
# **In the paper:** Sec. 3.7 (ensemble learning), with equal weights 1/T; Algorithm 1, lines 13
# and 15.
#
# As in exercise 3, the next cell computes features of 2,000 images, here 60 for each. It picks one
# of the 16 bits of the target codes. `target` is +1 or -1 for each image.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

import numpy as np

from exercises import references
from exercises.checks import one_line_errors
from hmoh import HMOH
from kernels import RBF
from metrics import mean_average_precision
from study import datasets, pictures

one_line_errors()

# %%
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
# All bits learn in the same way and independently of each other, so we look at one bit. (We avoid
# bit 0, because row 0 of Sylvester's matrix is all +1: its target is the same for every class, and
# there is nothing to learn.)
#
# Let **w** be its weights (m numbers, one for each feature), and w_t the weights after **step** t
# (here: after sample t), for t = 1 .. T. They start at w_0 = 0. Let z be the features of sample t
# and c its target. The perceptron of exercise 3 adds δ_t = c z if it gets the sample wrong, and δ_t
# = 0 otherwise:
#
# $$w_t = w_{t-1} + \delta_t .$$
#
# The **ensemble** is the average
#
# $$\bar w = \frac1T \sum_{t=1}^{T} w_t .$$
#
# Write `average_eager(Z, c)`: the pass for one bit with targets c (one per sample), which adds up
# all w_t. Return (average, last w, number of mistakes), with the weights as float64. Again, the
# sign of 0 is -1.
#
# The cell below has six samples of two features. Their weights w_1 .. w_6 are easy to find by
# hand.
#
# <details><summary>Hint</summary>
#
# After each sample, wrong or not, add w to a total. At the end, divide by the number of samples.
#
# </details>


# %%
small_Z = np.array([[1, 0], [0, 1], [0, 2], [1, 0], [2, 0], [0, -1]], np.float64)
small_c = np.array([1, 1, 1, -1, -1, -1])


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
result = average_eager(small_Z.copy(), small_c)
assert isinstance(result, (tuple, list)) and len(result) == 3, (
    f"average_eager returns {type(result).__name__}, but three things are needed: "
    "return average, w, mistakes."
)
average, last, mistakes = result
wrong_last = {
    "you take sign(0) as +1, but it is -1": [-1, 1],
    "np.sign(0) is 0, no bit; a product of 0 is right where the target is -1": [-2, 1],
    "you add where the bit is right": [-3, 1],
    "you add at every sample, right or wrong": [-2, 4],
    "you add z without its factor c": [4, 1],
    "you subtract c z": [-1, -4],
}
why = "by hand w is [1, 0], [1, 1], [1, 1], [0, 1], [0, 1], [0, 1]"
for mistake, weights in wrong_last.items():
    if np.allclose(last, weights):
        why = mistake
assert np.allclose(last, [0, 1]), (
    f"after the six small samples the last w is {np.asarray(last).tolist()}, but it must be "
    f"[0, 1]: {why}."
)
wrong_average = {
    "you add w before the update; add the w of *after* the step": [1 / 2, 2 / 3],
    "you add w only at mistakes; add it at every step": [1 / 3, 1 / 3],
    "this is the average over the mistakes; add w at every step and divide by T": [
        2 / 3,
        2 / 3,
    ],
    "divide by the number of steps T, not by the number of mistakes": [1, 5 / 3],
    "divide by T; w_0 does not count": [3 / 7, 5 / 7],
    "divide by T, not by T - 1": [3 / 5, 1],
    "this is the sum; divide it by T": [3, 5],
    "this is the last w; if you keep w in a list, keep w.copy()": [0, 1],
}
why = "by hand w is [1, 0], [1, 1], [1, 1], [0, 1], [0, 1], [0, 1]"
for mistake, weights in wrong_average.items():
    if np.allclose(average, weights):
        why = mistake
assert np.allclose(average, [1 / 2, 5 / 6]), (
    f"the average over the six small samples is {np.asarray(average).tolist()}, but it must "
    f"be [1/2, 5/6]: {why}."
)
assert mistakes == 3, (
    f"{mistakes} mistakes are counted, but w changes at the samples 1, 2 and 4 of the small "
    "ones, so there are 3: count one where you add to w."
)
average, last, mistakes = average_eager(features, target)
model = HMOH(16, random_state=0).fit(features, labels)
gap = np.abs(average - model.weights_[:, BIT]).max()
assert gap < 1e-3, (
    f"the six small samples are right, but on MNIST the average differs from the library's by "
    f"{gap:.3g}: keep w and the sum in float64, and take all samples."
)
print(f"average_eager: agrees with HMOH; {mistakes} mistakes in {len(features)} steps")

# %% [markdown]
# ## 4.2 Derive
#
# The pass above adds m numbers at *every* step, although w changes only at mistakes. Insert w_t =
# δ_1 + ... + δ_t into the average and swap the two sums. Write down the factor with which the
# update δ_s of step s counts. Then show that
#
# $$\bar w = w_T - \frac{u}{T}, \qquad u = \sum_{s=1}^{T} (s - 1)\,\delta_s .$$
#
# (Graded by hand.)
#
# <details><summary>Hint 1</summary>
#
# δ_s is contained in w_s, w_(s+1), ..., w_T. How many states are these?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Write (T - s + 1)/T as 1 - (s - 1)/T.
#
# </details>

# %% [markdown] answer derive 3
# <!-- ### BEGIN SOLUTION -->
# The average is (1/T) Σ_t Σ_{s ≤ t} δ_s. The pair (s, t) occurs in the sum if s ≤ t ≤ T. If we sum
# over t first, δ_s is counted T - s + 1 times, so the average is Σ_s ((T - s + 1)/T) δ_s. Because
# (T - s + 1)/T = 1 - (s - 1)/T, this equals Σ_s δ_s - (1/T) Σ_s (s - 1) δ_s. The first sum is w_T,
# the second is u. Both change only where δ_s is not zero, that is, at mistakes.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 4.3 Implement
#
# Write `average_lazy(Z, c)` using your result, or in another way that does no work on the average
# where the bit is correct. Return (average, last w, number of **vector additions**). Count every
# `+=` on a vector of m numbers in the loop: w and u each count one.
#
# <details><summary>Hint 1</summary>
#
# Let `i` count from 0. Step s = i + 1, so the factor (s - 1) is just i: the steps done *before*
# this one.
#
# </details>
# <details><summary>Hint 2</summary>
#
# On a mistake, w and u each get one addition: w the update itself, u the update times that factor.
# The formula of 4.2 comes after the loop.
#
# </details>
# <details><summary>Hint 3: another way</summary>
#
# Keep the sum of all w_t, but update it only at a mistake, before w changes, because w has been the
# same since the last mistake. Update it once more after the loop; the check allows one more
# addition for this.
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
result = average_lazy(small_Z.copy(), small_c)
assert isinstance(result, (tuple, list)) and len(result) == 3, (
    f"average_lazy returns {type(result).__name__}, but three things are needed: "
    "return average, w, additions."
)
average, last, additions = result
assert np.allclose(last, [0, 1]), (
    f"after the six small samples the last w is {np.asarray(last).tolist()}, but it must be "
    "[0, 1]: w is learned as in average_eager; only the average is new."
)
wrong_average = {
    "every update counts one step too few; its factor in u is s - 1, not s (or the last "
    "stretch of steps is one too short)": [1 / 2, 2 / 3],
    "every update counts two steps too few; its factor in u is s - 1": [1 / 2, 1 / 2],
    "u must be divided by T": [3, 0],
    "u is subtracted, not added": [-1 / 2, 7 / 6],
    "divide u by the number of steps T, not by the number of mistakes": [1, 2 / 3],
    "divide u by T, not by T - 1": [3 / 5, 4 / 5],
    "this is u/T; subtract it from w": [-1 / 2, 1 / 6],
    "this is u/T - w, the opposite": [-1 / 2, -5 / 6],
    "u needs the factor c too: u += (s - 1) c z": [-1 / 2, 5 / 6],
    "the factor in u is the number of steps before, not the number of mistakes before": [
        1 / 3,
        5 / 6,
    ],
    "w is added at mistakes only, once; it must count for all steps until the next one": [
        1 / 3,
        1 / 3,
    ],
    "the steps since the last mistake are missing; bring the sum up to date after the loop too": [
        1 / 2,
        1 / 3,
    ],
    "bring the sum up to date with the old w, before w changes": [1 / 6, 1],
    "this is the sum; divide it by T": [3, 5],
    "this is the last w; subtract u/T": [0, 1],
}
why = "by hand w is [1, 0], [1, 1], [1, 1], [0, 1], [0, 1], [0, 1]"
for mistake, weights in wrong_average.items():
    if np.allclose(average, weights):
        why = mistake
assert np.allclose(average, [1 / 2, 5 / 6]), (
    f"the average over the six small samples is {np.asarray(average).tolist()}, but it must "
    f"be [1/2, 5/6]: {why}."
)
states = references.states(features, labels, 16, BIT)
need = states.mean(axis=0)
mistakes = 1 + int(np.any(np.diff(states, axis=0) != 0, axis=1).sum())  # w_1 is not 0
lazy, _, additions_mnist = average_lazy(features, target)
lazy = np.asarray(lazy)
assert lazy.dtype == np.float64, (
    f"the average is {lazy.dtype}, which loses digits in long sums: use float64 for w and u."
)
gap = np.abs(lazy - need).max()
why = "is something fixed to the six small samples, such as T?"
assert gap < 1e-3, (
    f"the six small samples are right, but on MNIST the average is wrong by {gap:.3g}: {why}."
)
for n_steps, n_mistakes, counted in [
    (6, 3, additions),
    (len(features), mistakes, additions_mnist),
]:
    why = "count w and u, at mistakes only (and one more, if the sum is completed at the end)"
    if counted == n_mistakes:
        why = "this is the number of mistakes; each adds to two vectors, w and u"
    if counted >= n_steps:
        why = "as many as steps are not lazy; add nothing where the bit is right"
    assert counted in (2 * n_mistakes, 2 * n_mistakes + 1), (
        f"{counted} vector additions in {n_steps} steps with {n_mistakes} mistakes, but "
        f"{2 * n_mistakes} are needed: {why}."
    )
n = len(features)
print(f"vector additions in {n} steps: eager {n + mistakes}, lazy {additions_mnist}")

# %% [markdown]
# ## 4.4 Is it worth it?
#
# Does the average improve retrieval, and what does it cost? **mAP** (mean average precision;
# exercise 6) measures how well the codes find images of the same digit; 1 is perfect. We measure it
# along the stream, for the last weights and for the average. We use a small part of MNIST (200
# queries, 5,000 images to search), which is not the paper's protocol.
#
# Write `compare(n)`. Train `HMOH(16, random_state=0)` on the first n rows of `features` and
# `labels`, once with `ensemble=False` and once with `ensemble=True`. Return the two mAP values
# (last, average), computed by `score(model)`, which is given.
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
result = compare(1500)
assert np.shape(result) == (2,), (
    f"compare returns {result!r}, but two numbers are needed: return last, average."
)
needs = {}
for n in (1500, 2000):
    for ensemble in (False, True):
        trained = HMOH(16, random_state=0, ensemble=ensemble)
        needs[n, ensemble] = score(trained.fit(features[:n], labels[:n]))
need = [needs[1500, False], needs[1500, True]]
mistakes = {
    "the order is (last, average), so ensemble=False comes first": need[::-1],
    "both are the last weights; one model needs ensemble=True": [need[0], need[0]],
    "both are the average; one model needs ensemble=False": [need[1], need[1]],
    "both models have learned from all rows; take features[:n] and labels[:n]": [
        needs[2000, False],
        needs[2000, True],
    ],
}
why = "train HMOH(16, ensemble=..., random_state=0) with fit(features[:n], labels[:n])"
for mistake, values in mistakes.items():
    if np.allclose(result, values, atol=1e-6):
        why = mistake
assert np.allclose(result, need, atol=1e-6), (
    f"compare(1500) = ({result[0]:.4f}, {result[1]:.4f}), but ({need[0]:.4f}, "
    f"{need[1]:.4f}) is needed: {why}."
)
last, average = result
print(f"after 1,500 samples: last {last:.3f}, average {average:.3f}")

# %% [markdown]
# **Predict before you run.** The next cell draws both along the stream. Which curve is higher?
# Which one jumps more from point to point, and why?

# %%
samples = list(range(200, 2001, 200))
scores = np.array([compare(n) for n in samples])
last = scores[:, 0]
average = scores[:, 1]
title = "MNIST, part of it: mAP of 16-bit codes, 60 features"
pictures.stream_curves(samples, {"last weights": last, "average": average}, title)
for name, values in [("last weights", last), ("average", average)]:
    change = np.abs(np.diff(values)).mean()
    print(f"{name}: {values[-1]:.3f} at the end,", end=" ")
    print(f"mean change from one point to the next {change:.3f}")
above = (average > last).sum()
print(f"the average is above the last weights at {above} of {len(samples)} points")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The average is higher and steadier. The last mistakes have just changed the last weights, so their
# mAP jumps.
#
# </details>
#
# The average costs almost nothing: the paper counts one matrix addition for each step, but the lazy
# form needs none where a bit is correct. `hmoh.py` (`_perceptron`) does no work there either. It
# needs no u: as in hint 3 of 4.3, it brings the average itself up to date just before the weights
# change. How this works without a sum is the subject of 4.5.
#
# ## 4.5 Forget lazily (optional, hard)
#
# An average that forgets is v_t = (1 - a) v_(t-1) + a w_t with v_0 = 0 and a small number a, such
# as 0.01: newer weights count more. Written like this, it needs vector operations at every step.
# Compute v_T with work only at mistakes, and compare with the plain form.
#
# <details><summary>Hint</summary>
#
# While w does not change, what happens to the difference v - w in one step? And in k steps?
#
# </details>
# <details><summary>Answer</summary>
#
# If w stays the same, then v_t - w = (1 - a) (v_(t-1) - w). After k such steps, the difference has
# shrunk by the factor (1 - a)^k. So update v at a mistake, before w changes, and once at the end:
#
#     def forget_lazily(Z, c, a):
#         w = np.zeros(Z.shape[1])
#         v = np.zeros(Z.shape[1])
#         done = 0  # steps that v contains
#         for i, (z, sign) in enumerate(zip(Z.astype(np.float64), c)):
#             if (w @ z > 0) != (sign > 0):
#                 v = w + (1 - a) ** (i - done) * (v - w)
#                 done = i
#                 w = w + sign * z
#         return w + (1 - a) ** (len(Z) - done) * (v - w)
#
# `hmoh.py` keeps all its averages like this; `_kept` is the factor. `HMOH(memory=n)` forgets from
# step n on, with a = 1/n. Up to there, and always if no memory is given, the average counts all
# states alike: step t has 1/t in place of a, and from step i to step j the difference shrinks by
# the factor i/j.
#
# </details>
