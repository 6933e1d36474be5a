# %% [markdown]
# # Exercise 3: The perceptron pass, plain then compiled
#
# **You will learn** the learning rule of HMOH, to write it as a plain loop that you can step
# through, to compile the same loop with numba, to time both fairly, and why the learning rate
# does not matter here.
#
# **Time:** 45 to 60 minutes. **Points:** 10.
#
# **Before you start:** exercise 2; loops over arrays; the idea of a linear classifier.
#
# **In the paper:** Sec. 3.3 (the loss and the 0/1 vector a), Sec. 3.5 (the update); Algorithm 1,
# line 12.

# %%
import sys

sys.path.insert(0, "../../..")  # the modules are in the folder of the clone

import time

import numpy as np
from numba import njit

from hmoh import HMOH
from kernels import RBF
from study import datasets

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
# - **W** are the weights, here an array (r, m). Row `W[k]` is the k-th hash function w_k.
#
# All weights start at zero. Bit k of a sample's code is sign(w_k·z), with sign(0) = -1.
#
# For one sample after the other, and for every bit k: if sign(w_k·z) differs from c_k, then
#
# $$w_k \leftarrow w_k + \lambda\, c_k\, z .$$
#
# λ is the **learning rate** (`rate` below). The paper defines a 0/1 vector a that is 1 where a
# bit is "correctly classified", and then updates where it is 1. That is an error: as printed, a
# perceptron would never repair a mistake. The published code updates the wrong bits, and we do
# the same.
#
# Write `perceptron(Z, y, C, rate)`: one pass over the rows of Z in order. `y[i]` is the row of C
# that holds the target of sample i. Return W as float32 of shape (r, m). Use a loop over samples
# and a loop over bits. No other numpy tricks are needed.
#
# <details><summary>Hint 1</summary>
#
# `for i in range(len(Z)):` and in it `for k in range(C.shape[1]):`. The product is `W[k] @ Z[i]`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A bit is wrong if `(W[k] @ Z[i] > 0) != (c > 0)` for its target `c = C[y[i], k]`. This treats 0
# as -1, as it must.
#
# </details>
# <details><summary>Hint 3</summary>
#
# Let `W = np.zeros((C.shape[1], Z.shape[1]), np.float32)`, and update with
# `W[k] += np.float32(rate * c) * Z[i]`.
#
# </details>


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
Z = np.array([[1, 0], [1, 1], [2, -1]], np.float32)
C = np.array([[1, -1], [-1, -1]], np.int8)
W = np.asarray(perceptron(Z, np.array([0, 1, 0]), C))
assert W.shape == (2, 2), (
    f"W has shape {W.shape}, but (r, m) = (2, 2) is needed: a row for each bit."
)
assert W[1].tolist() == [0, 0], (
    f"the weights of bit 1 are {W[1]}, but they must stay 0: "
    "its target is always -1, and sign(0) = -1 is right."
)
assert W[0].tolist() == [0, -1], (
    f"bit 0 ended at {W[0]}, but by hand: [1, 0] after sample 0 (0 is wrong for +1), "
    "[0, -1] after sample 1, and sample 2 is right."
)
n = 600
W = np.asarray(perceptron(features[:n], labels[:n], targets))
model = HMOH(16, ensemble=False, random_state=0)
model.partial_fit(features[:n], labels[:n], classes=np.arange(10))
gap = np.abs(W - model.weights_.T).max()
assert gap < 1e-3, (
    f"after {n} samples the largest difference from the library's weights is {gap:.3g}, "
    "but it must be below 0.001: step through a few samples."
)
print(f"perceptron: agrees with HMOH(ensemble=False) after {n} samples")

# %% [markdown]
# ## 3.2 The learning rate
#
# The paper reports that HMOH is "insensitive to the learning rate in a large range". Find out how
# insensitive.
#
# Write `wrong_bits(rate)`. Learn weights from the first 600 samples with rate 1 and with the
# given rate. Return the number of bits that differ between the two sets of codes of the last
# 1,000 samples in `features`.
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
half = np.abs(perceptron(features[:50], labels[:50], targets, 0.5)).max()
full = np.abs(perceptron(features[:50], labels[:50], targets, 1.0)).max()
assert half > 0 and half == full / 2, (
    f"the largest weight is {half} with rate 0.5 and {full} with rate 1, but it must be "
    "half of it: is rate a factor of every update?"
)
differing = {rate: wrong_bits(rate) for rate in (2**-10, 0.25, 4.0)}
for value in differing.values():
    assert isinstance(value, (int, np.integer)), (
        f"wrong_bits gives {differing}, but whole numbers are needed: count with sum()."
    )
assert not any(differing.values()), (
    f"{differing} bits differ, but with W = 0 at the start none can: "
    "is the first product 0?"
)
backwards = wrong_bits(-1.0)
assert backwards > 1000, (
    f"with rate -1, which unlearns, only {backwards} of 16,000 bits differ: "
    "do you compare the codes of two different weights?"
)
print("bits that differ from rate 1, of 16,000:", differing)
print("with rate -1:", backwards)

# %% [markdown]
# The codes are not only *insensitive*: they do not change at all. Say why, in two sentences. What
# do the weights look like after each step with rate λ, compared with rate 1, and what does sign
# do with that? Which property of the start is essential? (Graded by hand.)

# %% [markdown] answer rate 1
# <!-- ### BEGIN SOLUTION -->
# By induction the weights with rate λ are λ times those with rate 1. It is so at the start,
# because W = 0. If it is so before a step, then the products have the same signs, the same bits
# are wrong, and both sides add the same z, scaled by λ. Signs ignore a positive factor, so all
# codes are the same. It is essential that W starts at zero (and that the step is fixed).
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 3.3 The same loop, compiled
#
# numba's `@njit` turns a function of loops and arrays into machine code when it is first called.
# Code that is slow in plain Python is then fast, if it is written as loops over numbers.
#
# Write `perceptron_compiled(Z, y, C, W)`, which changes the given W (float32, (r, m), zeros at
# first) **in place** with rate 1 and returns nothing. Loop over samples, bits and features.
#
# <details><summary>Hint 1</summary>
#
# Copy your plain loop and replace `W[k] @ Z[i]` by a loop over j that adds up
# `W[k, j] * Z[i, j]`. The update needs such a loop too.
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
W = np.zeros((16, 100), np.float32)
# The first call compiles, so it is not timed.
result = perceptron_compiled(features[:20], labels[:20], targets, W)
assert result is None and W.any(), (
    "W is still all 0, or something was returned: change the given W in place, "
    "W[k, j] += ..."
)
W[:] = 0
start = time.perf_counter()
perceptron_compiled(features, labels, targets, W)
seconds_compiled = time.perf_counter() - start
gap = np.abs(W - reference.weights_.T).max()
assert gap < 1e-3, (
    f"after {len(features)} samples the largest difference from the library is "
    f"{gap:.3g}, but it must be below 0.001: compare with your plain loop."
)
start = time.perf_counter()
perceptron(features[:600], labels[:600], targets)
seconds_plain = (time.perf_counter() - start) * len(features) / 600
speedup = seconds_plain / seconds_compiled
assert speedup > 5, (
    f"only {speedup:.1f} times as fast as the plain loop, but 5 times is needed: "
    "is @njit still there, and are all loops inside the function?"
)
print(
    f"3,000 samples: plain {seconds_plain * 1e3:.0f} ms (from 600), "
    f"compiled {seconds_compiled * 1e3:.1f} ms, without compilation"
)

# %% [markdown]
# **What you now have.** The learning rule of HMOH in a dozen lines. The library's `_perceptron`
# in `hmoh.py` is the same loop. It takes eight bits at a time, so that a sample is read once for
# all of them. It also computes the average, which is exercise 4.
