# %% [markdown]
# # Exercise 3: The perceptron pass, plain then compiled
#
# **You will learn** the learning rule of HMOH, how to write it as a plain loop that you can step
# through, how to compile the same loop with numba and time both fairly, and why the learning rate
# does not matter here.
#
# **Time:** 45 to 60 minutes. **Points:** 10.
#
# **Before you start:** exercise 2; loops over arrays; the idea of a linear classifier.
#
# **In the paper:** Sec. 3.3 (the loss and the 0/1 vector a), Sec. 3.5 (the update); Algorithm 1,
# line 12.
#
# The next cell loads 3,000 images of MNIST. Each becomes 100 numbers, its **features**: its
# similarity to each of 100 images of the stream (a kernel; exercise 10). `targets` holds the target
# code of each digit. Take both as given here.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

import numpy as np
from numba import njit

from exercises.checks import explained, one_line_errors, replaced, returned
from hmoh import HMOH
from kernels import RBF
from study import datasets

one_line_errors()

# %%
mnist = datasets.load("mnist")
stream = datasets.split(mnist, seed=0).stream[:3000]
X = mnist.features[stream]
labels = mnist.labels[stream]
features = RBF(100, divisor=6).fit(X).transform(X)
reference = HMOH(16, ensemble=False, random_state=0).fit(features, labels)
targets = np.stack([reference.targets_[label] for label in range(10)])
print("features", features.shape, features.dtype)
print("labels", labels.shape)
print("targets", targets.shape, targets.dtype)

# %% [markdown]
# ## 3.1 The rule
#
# The letters:
#
# - **z** is the feature vector of a sample (m numbers; here m = 100).
# - **c** is the target code of its class (r values of +1 and -1; here r = 16).
# - **W** holds the weights, here an array (r, m). Row `W[k]` is the k-th hash function w_k.
#
# All weights start at zero. Bit k of a sample's code is sign(w_k·z), with sign(0) = -1.
#
# Take one sample after another. For every bit k, if sign(w_k·z) differs from c_k, then
#
# $$w_k \leftarrow w_k + \lambda\, c_k\, z .$$
#
# λ is the **learning rate** (`rate` below). The paper defines a 0/1 vector a that is 1 where a bit
# is "correctly classified", and then updates where it is 1. This is an error: as printed, the
# perceptron would never repair a mistake. The published code updates the wrong bits, and so do we.
#
# Write `perceptron(Z, y, C, rate)`: one pass over the samples in order. Row `Z[i]` is the z of
# sample i. Row `C[y[i]]` is its c, because `y[i]` is its class and C has a target in each row.
# Return W as float32 of shape (r, m). Use a loop over samples and a loop over bits. You need no
# other numpy tricks.
#
# The cell below has four samples of three features and two bits. Step through them by hand, because
# the check begins with them.
#
# <details><summary>Hint 1</summary>
#
# Two loops, one inside the other: over the samples i, and over the bits k. Which row of W answers
# for bit k? Which entry of C is its target?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Compare two truth values: whether the product is above 0, and whether the target is. This treats
# 0 as -1, as it must.
#
# </details>
# <details><summary>Hint 3</summary>
#
# W is float32 if you ask for it: `np.zeros(shape, np.float32)`. Only the row of the wrong bit
# changes.
#
# </details>


# %%
small_Z = np.array([[0, 2, 0], [1, 0, 0], [2, 0, 1], [0, 0, 1]], np.float32)
small_y = np.array([0, 1, 2, 1], labels.dtype)
small_C = np.array([[-1, -1], [1, -1], [1, 1], [-1, -1]], np.int8)  # nobody has class 3


# %% solution perceptron
def perceptron(Z, y, C, rate=1.0):
    """Return the weights (r, m) float32 after one pass over Z; targets are the rows y of C."""
    ### BEGIN SOLUTION
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for i in range(len(Z)):
        for k in range(C.shape[1]):
            c = C[y[i], k]
            if (W[k] @ Z[i] > 0) != (c > 0):
                W[k] += np.float32(rate * c) * Z[i]
    return W
    ### END SOLUTION


# %% check perceptron 3
W = perceptron(small_Z.copy(), small_y, small_C)
assert W is not None, "perceptron returns nothing: end with `return W`."
W = np.asarray(W)
assert W.shape == (2, 3), (
    f"W has shape {W.shape}, but (r, m) = (2, 3) is needed: a row for each bit, a column "
    "for each feature."
)
need = [[1, 0, 1], [2, 0, 0]]
mistakes = {
    "you update where the bit is right, as the paper prints it": [
        [0, -2, 0],
        [-1, -2, -1],
    ],
    "you update at every sample, right or wrong": [[3, -2, 2], [1, -2, 0]],
    "you take sign(0) as +1, but it is -1": [[0, -2, 0], [1, -2, 0]],
    "a product of 0 is always wrong in your rule (np.sign(0) is 0, no bit), but sign(0) = -1 "
    "is right where the target is -1": [[1, -2, 1], [1, -2, 0]],
    "you update all bits if one of them is wrong": [[3, 0, 2], [1, 0, 0]],
    "you add z without its factor c": [[1, 0, 1], [2, 0, 2]],
    "you subtract c z, which makes a wrong bit worse": [[-3, 0, -2], [-2, 0, -1]],
    "the last sample is left out": [[1, 0, 0], [2, 0, 1]],
    "you pass over the samples twice": [[1, 0, 1], [1, 0, 0]],
    "all products are taken with W = 0; use the W that the samples before have made": [
        [3, 0, 2],
        [2, 0, 1],
    ],
    "you use C[i], but the target of sample i is C[y[i]]": [[1, 0, 0], [2, 0, 0]],
    "every update is twice as large as it should be": [[2, 0, 2], [4, 0, 0]],
    "you repair only the bits whose target is +1": [[1, 0, 1], [2, 0, 1]],
}
why = (
    "by hand, bit 0 is wrong at samples 1 and 3 (from 0), bit 1 at samples 2 and 3, and each "
    "time c z is added"
)
for mistake, weights in mistakes.items():
    if np.array_equal(W, weights):
        why = mistake
if not np.array_equal(W, need):
    # Features of 0 change no weight, so this is what the pass starts from.
    at_start = np.asarray(perceptron(0 * small_Z, small_y, small_C))
    if at_start.any():
        why = "W is not 0 at the start; begin with np.zeros, not with random or other numbers"
assert np.array_equal(W, need), (
    f"after the four small samples W is {W.tolist()}, but it must be {need}: {why}."
)
assert W.dtype == np.float32, f"W is {W.dtype}, but float32 is needed: np.zeros(shape, np.float32)."
W = np.asarray(perceptron(small_Z.copy(), small_y, small_C, 0.5))
why = "rate is a factor of every update, once; is something rounded to whole numbers?"
if np.array_equal(W, need):
    why = "rate is not used; it is a factor of every update."
assert np.array_equal(2 * W, need), (
    f"with rate 0.5 the four small samples give {W.tolist()}, but it must be half of {need}: {why}"
)
n = 600
W = np.asarray(perceptron(features[:n], labels[:n], targets))
model = HMOH(16, ensemble=False, random_state=0)
model.partial_fit(features[:n], labels[:n], classes=np.arange(10))
gap = np.abs(W - model.weights_.T).max()
assert gap < 1e-3, (
    f"the four small samples are right, but after {n} of MNIST the largest difference from "
    f"the library's weights is {gap:.3g}: do the loops go over all len(Z) samples and all "
    "C.shape[1] bits?"
)
print(f"perceptron: agrees with HMOH(ensemble=False) after {n} samples")

# %% [markdown]
# ## 3.2 The learning rate
#
# The paper reports that HMOH is "insensitive to the learning rate in a large range". Find out how
# insensitive.
#
# Write `wrong_bits(rate)`. With your `perceptron`, learn weights from the first 600 samples, once
# with rate 1 and once with the given rate. Return the number of bits that differ between the two
# sets of codes of the **last** 1,000 samples in `features`: 16,000 bits in all.
#
# **Predict before you run.** How many of the 16,000 bits differ between rate 1 and rate 4? And
# between rate 1 and rate 1/1024?
#
# <details><summary>Hint</summary>
#
# Codes are `features[-1000:] @ W.T > 0`. Compare the two arrays with `!=` and count.
#
# </details>


# %% solution rate
def wrong_bits(rate):
    """Return how many bits of 1,000 codes differ between rate 1 and this rate."""
    ### BEGIN SOLUTION
    codes = []
    for step in (1.0, rate):
        W = perceptron(features[:600], labels[:600], targets, step)
        codes.append(features[-1000:] @ W.T > 0)
    return int((codes[0] != codes[1]).sum())
    ### END SOLUTION


# %% check rate 2
# Features and weights that give other numbers of bits for each way to count them.
marked = np.zeros((3000, 100), np.float32)
for rows in (slice(0, 110), slice(1200, 1250), slice(2000, 2300)):
    marked[rows] = 1
rates = []


def noted(Z, y, C, rate=1.0):
    """Write the rate down; for rates other than 1, five bits of W turn round."""
    same = np.array_equal(Z, marked[:600]) and np.array_equal(y, labels[:600])
    why = "these are other samples, labels or targets"
    if len(Z) > 600:
        why = "the weights are learned from all samples, not from the first 600"
    assert same and np.array_equal(C, targets), (
        f"perceptron is called with {len(Z)} samples: {why}; learn both sets of weights from the "
        "same 600 samples: features[:600], labels[:600] and targets."
    )
    rates.append(float(rate))
    W = np.ones((16, 100), np.float32)
    W[:5] *= 1 if rate == 1 else -1
    return W


with replaced(globals(), perceptron=noted, features=marked):
    returned(wrong_bits, 4.0)
    rates.clear()
    value = wrong_bits(4.0)
assert isinstance(value, (int, np.integer)), (
    f"wrong_bits gives {value!r}, but a whole number is needed: count with sum(), not mean()."
)
if rates:
    why = "compare the codes of features[-1000:] by both sets of weights, bit by bit"
    if 1.0 not in rates:
        why = "both sets of weights have the same rate; one of them needs rate 1"
    if len(rates) < 2:
        why = (
            "only one set of weights was learned: count the bits that differ from the codes of "
            "rate 1, not the number of bits that differ from the targets"
        )
    mistakes = {
        0: "both sets of weights have the same rate, or the same codes are compared twice",
        300: "this counts codes, but a code has 16 bits",
        500: "this is the number of weights that differ; compare the codes, which are signs",
        550: "these are the first 1,000 samples, not the last",
        2300: "the codes of all samples are compared, not those of the last 1,000",
    }
    if len(rates) > 1 and 1.0 in rates:
        why = mistakes.get(int(value), why)
    assert value == 1500, (
        f"with weights made for this check, 1,500 bits differ between the rates 1 and 4, but "
        f"wrong_bits(4.0) = {value}: {why}."
    )
else:  # a perceptron of its own
    assert wrong_bits(4.0) == 0 and wrong_bits(-1.0) != 0, (
        f"wrong_bits(4.0) = {wrong_bits(4.0)} and wrong_bits(-1.0) = {wrong_bits(-1.0)}, but a "
        "positive rate changes no bit, and a negative one does: learn with `perceptron`."
    )


### BEGIN HIDDEN TESTS
def scaled(Z, y, C, rate=1.0):
    learned = HMOH(16, ensemble=False, random_state=0).partial_fit(Z, y, classes=np.arange(10))
    return rate * learned.weights_.T


with replaced(globals(), perceptron=scaled):
    assert wrong_bits(0.25) == 0, (
        f"wrong_bits(0.25) = {wrong_bits(0.25)}, but with right weights no bit differs: count."
    )
### END HIDDEN TESTS
differing = {rate: int(wrong_bits(rate)) for rate in (2**-10, 0.25, 4.0, -1.0)}
print("bits that differ from rate 1, of 16,000, by rate:", differing)

# %% [markdown]
# <details><summary>Answer</summary>
#
# None at all, for any positive rate. "Insensitive" is an understatement. A negative rate
# unlearns.
#
# </details>
#
# Explain why in two sentences. How do the weights after each step with rate λ compare with those
# with rate 1, and what does the sign make of that? Which property of the start is essential?
# (Graded by hand.)

# %% [markdown] answer rate 1
# <!-- ### BEGIN SOLUTION -->
# By induction, the weights with rate λ are λ times those with rate 1. This holds at the start,
# because W = 0. If it holds before a step, then the products have the same signs, the same bits are
# wrong, and both add the same c z, one of them scaled by λ. Signs ignore a positive factor, so all
# codes are the same. It is essential that W starts at zero (and that the rate is fixed).
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 3.3 The same loop, compiled
#
# numba's `@njit` turns a function of loops and arrays into machine code when it is first called.
# Loops over numbers, which are slow in plain Python, then become fast.
#
# Write `perceptron_compiled(Z, y, C, W)`, which changes the given W (float32, (r, m), zeros at
# first) **in place** with rate 1 and returns nothing. Loop over samples, bits and features. If W is
# not zero, the pass continues from there.
#
# Compiled code does not check indices: `W[j, k]` instead of `W[k, j]` reads and writes anywhere in
# memory. So the check first runs your loop as plain Python.
#
# <details><summary>Hint 1</summary>
#
# Copy your plain loop and replace `W[k] @ Z[i]` by a loop over j that sums `W[k, j] * Z[i, j]`. The
# update needs such a loop too.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Start the sum with `f = np.float32(0)`, so that it stays float32. `c = C[y[i], k]` is an int8,
# which you can multiply by a float32.
#
# </details>


# %% solution compiled
@njit
def perceptron_compiled(Z, y, C, W):
    """Make one pass with rate 1 that changes W in place."""
    ### BEGIN SOLUTION
    for i in range(len(Z)):
        for k in range(len(W)):
            f = np.float32(0)
            for j in range(Z.shape[1]):
                f += W[k, j] * Z[i, j]
            c = C[y[i], k]
            if (f > 0) != (c > 0):
                for j in range(Z.shape[1]):
                    W[k, j] += c * Z[i, j]
    ### END SOLUTION


# %% check compiled 4
assert type(perceptron_compiled) is type(njit(lambda: 0)), (
    "perceptron_compiled is not compiled: keep the line @njit above it."
)
plain = getattr(perceptron_compiled, "py_func", perceptron_compiled)
advice = "loop over len(Z), len(W) and Z.shape[1], and compute with single numbers"
W = np.zeros((2, 3), np.float32)
with explained("perceptron_compiled", advice):
    result = plain(small_Z, small_y, small_C, W)
assert result is None, (
    f"perceptron_compiled returns {type(result).__name__}, but it must return nothing: "
    "change the given W in place."
)
assert W.any(), (
    "W is still all 0: `W = ...` makes a new array; change the given one, W[k, j] += ..."
)
need = [[1, 0, 1], [2, 0, 0]]
mistakes = {
    "you update where the bit is right, as the paper prints it": [
        [0, -2, 0],
        [-1, -2, -1],
    ],
    "you update at every sample, right or wrong": [[3, -2, 2], [1, -2, 0]],
    "you take sign(0) as +1, but it is -1": [[0, -2, 0], [1, -2, 0]],
    "you add z without its factor c": [[1, 0, 1], [2, 0, 2]],
    "you subtract c z, which makes a wrong bit worse": [[-3, 0, -2], [-2, 0, -1]],
    "the last sample is left out": [[1, 0, 0], [2, 0, 1]],
    "you use C[i], but the target of sample i is C[y[i]]": [[1, 0, 0], [2, 0, 0]],
    "the sum f must start at 0 for every bit and every sample": [[1, 0, 0], [0, 0, -1]],
    "the sum f must start at 0 for every bit, not only for every sample": [
        [1, 0, 1],
        [0, 0, 0],
    ],
    "the update uses only one feature; it needs a loop over j too": [
        [0, 0, 1],
        [0, 0, 0],
    ],
}
why = "compare with your plain loop, sample by sample"
for mistake, weights in mistakes.items():
    if np.array_equal(W, weights):
        why = mistake
assert np.array_equal(W, need), (
    f"after the four small samples W is {W.tolist()}, but it must be {need}: {why}."
)
W[:] = 0
with explained("perceptron_compiled", advice):
    perceptron_compiled(small_Z, small_y, small_C, W)
assert np.array_equal(W, need), (
    f"compiled, the four small samples give {W.tolist()}, but in plain Python {need}: "
    "does an index leave its array?"
)
W = np.zeros((16, 100), np.float32)
for part in (slice(0, 1000), slice(1000, None)):
    perceptron_compiled(features[part], labels[part], targets, W)
gap = np.abs(W - reference.weights_.T).max()
assert gap < 1e-3, (
    f"the four small samples are right, but after two calls with 1,000 and 2,000 samples of "
    f"MNIST the largest difference from the library's weights is {gap:.3g}: go on from the "
    "given W, do not set it to 0, and loop over all samples, bits and features."
)
print(f"perceptron_compiled: agrees with HMOH after {len(features)} samples")

# %% [markdown]
# **Predict before you run.** Both loops do the same additions and products. How many times as fast
# is the compiled one: twice, ten times, or more? (Your plain loop may use numpy's product for each
# bit, which is compiled too.)

# %%
import time

W = np.zeros((16, 100), np.float32)
start = time.perf_counter()
perceptron_compiled(features, labels, targets, W)  # the check has compiled it
seconds_compiled = time.perf_counter() - start
start = time.perf_counter()
perceptron(features[:600], labels[:600], targets)
seconds_plain = (time.perf_counter() - start) * len(features) / 600
print(f"3,000 samples: plain {seconds_plain * 1e3:.0f} ms (from 600),", end=" ")
print(f"compiled {seconds_compiled * 1e3:.1f} ms, without compilation")

# %% [markdown]
# <details><summary>Answer</summary>
#
# More than ten times, on most machines. Calling numpy from Python costs about a microsecond,
# whatever the size of the arrays. The product of 100 numbers costs a small fraction of that. The
# compiled loop makes no such calls. A fair timing leaves out the first call, which compiles.
#
# </details>
#
# ## 3.4 How many mistakes can it make? (optional, hard)
#
# Take one bit with weights w, and let c be its target for a sample. Let no |z| be larger than ρ.
# Suppose a vector e of length 1 satisfies c (e·z) ≥ γ > 0 for all samples: e gets every sample
# right, with a margin γ. Show that the perceptron makes at most (ρ/γ)² mistakes, however long the
# stream is.
#
# <details><summary>Hint</summary>
#
# By how much does a mistake increase e·w at least, and |w|² at most?
#
# </details>
# <details><summary>Answer</summary>
#
# A mistake adds c z to w, so e·w grows by c (e·z) ≥ γ. And |w + c z|² = |w|² + 2 c (w·z) + |z|²,
# where c (w·z) ≤ 0 because the bit was wrong, so |w|² grows by at most ρ². After M mistakes
# M γ ≤ e·w ≤ |w| ≤ √M ρ, and therefore M ≤ (ρ/γ)². (Novikoff's theorem. The learning rate
# cancels here too.)
#
# </details>

# %% [markdown]
# **What you now have.** The learning rule of HMOH in a dozen lines. The library's `_perceptron` in
# `hmoh.py` is the same loop. It takes eight bits at a time, so that each sample is read once for
# all of them, and it also keeps an average of the weights, which is the subject of exercise 4.
