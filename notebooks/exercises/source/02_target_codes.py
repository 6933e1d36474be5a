# %% [markdown]
# # Exercise 2: Target codes and LSH alignment
#
# **You will learn** how HMOH gives every class its target code, what it does when the code length
# does not match the matrix, and what this costs. You will find out what the aligned codes really
# are.
#
# **Time:** 40 to 50 minutes. **Points:** 10.
#
# **Before you start:** exercise 1; the Gaussian distribution; what it means for two Gaussian
# variables to be uncorrelated.
#
# **In the paper:** Sec. 3.4, Eq. 10 (the order of the matrix) and Sec. 3.5, Eq. 11 (alignment),
# Theorem 1.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

from math import comb, erf, exp, pi, prod, sqrt

import matplotlib.pyplot as plt
import numpy as np

from exercises import references
from exercises.checks import one_line_errors, returned
from hmoh import Codebook, hadamard

one_line_errors()

# %% [markdown]
# ## 2.1 The order of the matrix
#
# Let r be the **code length** (the bits of a hash code) and L the number of **classes**. Every
# class needs a column of its own, and every column needs at least r places. So HMOH takes the
# Hadamard matrix of order
#
# $$r^* = \min\{2^k : 2^k \ge r,\ 2^k \ge L,\ k = 1, 2, \dots\} \quad \text{(Eq. 10)}$$
#
# Write `order(r, L)`.
#
# <details><summary>Hint</summary>
#
# A loop that doubles is enough. Note that k starts at 1, so the smallest order is 2.
#
# </details>


# %% solution order
def order(r, L):
    """Return r*, the order of the Hadamard matrix for codes of r bits and L classes (Eq. 10)."""
    ### BEGIN SOLUTION
    n = 2
    while n < r or n < L:
        n *= 2
    return n
    ### END SOLUTION


# %% check order 2
returned(order, 8, 10)
for r, L, need in [
    (8, 10, 16),
    (16, 10, 16),
    (48, 10, 64),
    (64, 10, 64),
    (8, 205, 256),
    (128, 205, 256),
    (16, 17, 32),
    (100, 100, 128),
    (1, 1, 2),
]:
    value = order(r, L)
    why = f"it must be the least of 2, 4, 8, ... that is not below {r} and not below {L}"
    if value < r:
        why = f"a column of {value} places is too short for {r} bits"
    elif value < L:
        why = f"{value} columns are too few for {L} classes"
    elif value not in [2**k for k in range(1, 12)]:
        why = "only 2, 4, 8, ... are orders here, as k starts at 1"
    elif value > need:
        why = f"{need} is smaller and large enough for both"
    if value == need.bit_length() - 1 and need > 2:
        why = f"this is k; the order is 2**k = {need}"
    assert value == need, f"order({r}, {L}) = {value}, but {need} is needed: {why}; see Eq. 10."
### BEGIN HIDDEN TESTS
for r in range(1, 70):
    for L in range(1, 70):
        need = max(2, 1 << (max(r, L) - 1).bit_length())
        assert order(r, L) == need, (
            f"order({r}, {L}) = {order(r, L)}, but {need} is needed: Eq. 10."
        )
### END HIDDEN TESTS
orders = {r: order(r, 10) for r in (8, 16, 32, 48, 64, 128)}
print("order: correct; MNIST (10 classes) needs", orders)

# %% [markdown]
# ## 2.2 Alignment
#
# If r* = r, a column c of the matrix serves directly as the target code. Otherwise its length is
# wrong, and HMOH **aligns** it by LSH (locality-sensitive hashing with random hyperplanes): draw
# one matrix W̃ of size r* x r with independent Gaussian entries (mean 0, variance 1), the same for
# all classes, and take
#
# $$\tilde c = \mathrm{sign}(\tilde W^T c) \quad \text{(Eq. 11)}$$
#
# where sign(x) is +1 if x > 0 and -1 otherwise, so sign(0) = -1.
#
# Write `align(C, W)` for all classes at once. C (r* x L) holds one column for each class, and W is
# W̃. Return the targets as a matrix (L, r) of +1 and -1, one **row** for each class.
#
# <details><summary>Hint 1</summary>
#
# (W̃ᵀ C) has one column for each class. You want one row for each class.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `np.sign(0)` is 0, which is not a bit. Use `np.where(x > 0, 1, -1)`. `C` may be int8; its product
# with floats is fine.
#
# </details>


# %% solution align
def align(C, W):
    """Return (L, r) targets of +1 and -1: the signs of W^T c for every column c of C."""
    ### BEGIN SOLUTION
    return np.where(C.T @ W > 0, 1, -1)
    ### END SOLUTION


# %% check align 2
rng = np.random.default_rng(0)
C = hadamard(16)[:, rng.permutation(16)[:10]]
W = rng.normal(size=(16, 8))
returned(align, C.copy(), W.copy())
T = np.asarray(align(C.copy(), W.copy()))
assert T.shape == (10, 8), (
    f"align gave shape {T.shape} for 10 classes and 8 bits, but (10, 8) is needed: "
    "a row for each class; (W̃ᵀ C) has a column for each class."
)
values = np.unique(T).tolist()
assert set(values) <= {-1, 0, 1} and -1 in values, (
    f"the targets hold {values[:4]}, but only +1 and -1 are allowed: take the sign, "
    "with -1 for the negative ones."
)
outputs = references.projections(C, W)
need = 2 * (outputs > 0) - 1
assert not (need.T.reshape(10, 8) == T).all(), (
    "the rows mix the bits of several classes: reshape does not turn columns into rows; "
    "transpose with .T."
)
assert not (need == -T).all(), "all signs are the opposite of Eq. 11: +1 is for x > 0."
wrong = np.argwhere(need != T)
if len(wrong):
    label, k = wrong[0]
    raise AssertionError(
        f"bit {k} of class {label} is {T[label, k]}, but column {k} of W̃ times column "
        f"{label} of C is {outputs[label, k]:.3f}, so it must be {need[label, k]}: "
        "take the sign of W̃ᵀ c as in Eq. 11, without rounding."
    )
zero = np.asarray(align(np.array([[1], [1]]), np.array([[1.0], [-1.0]])))[0, 0]
assert zero == -1, f"sign(0) is {zero}, but here it must be -1: see the line below Eq. 11."
print("align: correct")

# %% [markdown]
# ## 2.3 How balanced is an aligned code?
#
# Theorem 1 says that every bit of an aligned code is +1 with probability 1/2. Let M be the number
# of +1 among its bits. The paper then writes M ~ B(r*, 1/2), the binomial distribution of r* fair
# coins. But how many bits does the aligned code have?
#
# Write `probability_of_balance(r)`: the probability that exactly half of the bits of an aligned
# code are +1, for even r and with the correct number of bits. (`comb(n, k)` is the binomial
# coefficient.)
#
# <details><summary>Hint</summary>
#
# The aligned code has r bits, whatever r* was. Each bit is a fair coin, and the r columns of W̃
# are independent.
#
# </details>


# %% solution balance
def probability_of_balance(r):
    """Return the probability that an aligned code of r bits (r even) has as many +1 as -1."""
    ### BEGIN SOLUTION
    return comb(r, r // 2) / 2**r
    ### END SOLUTION


# %% check balance 2
returned(probability_of_balance, 8)
fixed = {2: 0.5, 4: 0.375, 8: 0.2734375, 24: 0.1611802577972412}
for r, need in fixed.items():
    value = probability_of_balance(r)
    r_star = 32 if r == 24 else 16
    mistakes = {
        f"these are {r_star} bits, r* of ten classes, but the aligned code has r bits": comb(
            r_star, r_star // 2
        )
        / 2**r_star,
        "this is the density of the Gaussian that approximates it; the binomial "
        "distribution is exact": sqrt(2 / (pi * r)),
        "this is the Gaussian that approximates it, between -1/2 and 1/2; the binomial "
        "distribution is exact": erf(1 / sqrt(2 * r)),
        "this counts codes; divide by the number of all codes": comb(r, r // 2),
        "this is at most half of the bits, not exactly half": (1 + need) / 2,
        "this is the probability of one code; multiply by the number of balanced codes": 2.0**-r,
    }
    why = "count the balanced codes among all codes of r bits"
    for mistake, number in mistakes.items():
        if abs(value - number) < 1e-9 * number:
            why = mistake
    assert abs(value - need) < 1e-9, (
        f"probability_of_balance({r}) = {value:.6g}, but it is {need:.6g}: {why}."
    )
### BEGIN HIDDEN TESTS
for r in range(2, 60, 2):
    need = prod((2 * i - 1) / (2 * i) for i in range(1, r // 2 + 1))
    assert abs(probability_of_balance(r) - need) < 1e-9, (
        f"probability_of_balance({r}) = {probability_of_balance(r)}: it must be right for all r."
    )
### END HIDDEN TESTS
values = {r: round(probability_of_balance(r), 3) for r in (8, 24, 48)}
print("an aligned code is exactly balanced with probability", values)

# %% [markdown]
# Now test the theory on the codes themselves. The next cell uses your `align`.


# %%
def draw_aligned(rng, r, L, r_star):
    """Return targets of r bits for L classes: random columns of order r*, aligned."""
    columns = hadamard(r_star)[:, rng.permutation(r_star)[:L]]
    return align(columns, rng.normal(size=(r_star, r)))


rng = np.random.default_rng(0)
for r, r_star in [(8, 16), (24, 32)]:
    balanced = [draw_aligned(rng, r, 1, r_star).sum() == 0 for _ in range(4000)]
    print(f"{r} bits: {np.mean(balanced):.3f} of 4,000 drawn codes are balanced,", end=" ")
    print(f"by the formula {probability_of_balance(r):.3f}")

# %% [markdown]
# Every Hadamard column except the first is exactly balanced: the first column is all +1, and every
# other column differs from it in half of its places (exercise 1). So alignment loses something. How
# much do we lose in the *distances*, which are what retrieval needs?
#
# ## 2.4 What the aligned codes really are
#
# Take one column w of W̃ and two classes with columns c and c', and look at the two numbers w·c and
# w·c'. They are jointly Gaussian, and their covariance is c·c' = 0 because Hadamard columns are
# orthogonal. Uncorrelated *jointly Gaussian* variables are independent, so the bits of different
# classes are independent fair coins: **aligned targets are a purely random codebook.** This
# independence is all that remains of the Hadamard matrix.
#
# Test it. Two codes **collide** if they are equal. Write `collision(r, L)`, the probability that
# among L independent, fair random codes of r bits at least two collide.
#
# <details><summary>Hint 1</summary>
#
# This is the birthday problem with 2ʳ days.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The probability that all differ is the product of (2ʳ - i)/2ʳ for i = 0 .. L-1.
#
# </details>


# %% solution collision
def collision(r, L):
    """Return the probability that of L random codes of r bits at least two are equal."""
    ### BEGIN SOLUTION
    all_differ = prod((2**r - i) / 2**r for i in range(L))
    return 1 - all_differ
    ### END SOLUTION


# %% check collision 2
returned(collision, 3, 4)
fixed = [
    (3, 4, 0.58984375),  # 8 codes, and 1 - 8 * 7 * 6 * 5 / 8**4
    (2, 2, 0.25),
    (1, 3, 1),
    (3, 8, 0.9975967407226562),
    (8, 10, 0.16305487791028817),
]
for r, L, need in fixed:
    value = collision(r, L)
    pairs = L * (L - 1) / 2
    mistakes = {
        "this is the sum over all pairs (the union bound), which counts a codebook with "
        "two collisions twice": min(1, pairs / 2**r),
        "this is an approximation (1 - e^(-pairs/2ʳ)); multiply the exact factors": (
            1 - exp(-pairs / 2**r)
        ),
        "this takes the pairs as independent, but three pairs of three codes are not": (
            1 - (1 - 2.0**-r) ** pairs
        ),
        "this is the probability that all differ; subtract it from 1": 1 - need,
        "this is for two codes; there are L": 2.0**-r,
        "there are 2**r codes, not 2 r": 1 - prod(1 - i / (2 * r) for i in range(L)),
        "there are 2**r codes, not r**2": 1 - prod(1 - i / r**2 for i in range(L)),
        "one factor is missing: i runs from 0 to L - 1": (
            1 - prod(1 - i / 2**r for i in range(L - 1))
        ),
        "one factor is too many: i runs from 0 to L - 1": (
            1 - prod(1 - i / 2**r for i in range(L + 1))
        ),
    }
    why = "it is the birthday problem with L people and 2**r days"
    for mistake, number in mistakes.items():
        if abs(value - number) < 1e-9:
            why = mistake
    assert abs(value - need) < 1e-9, (
        f"collision({r}, {L}) = {value:.6g}, but {L} codes of {r} bits collide with "
        f"probability {need:.6g}: {why}."
    )
### BEGIN HIDDEN TESTS
for r in range(1, 9):
    for L in range(1, 20):
        need = 1 - (comb(2**r, L) * prod(range(1, L + 1)) / 2 ** (r * L))
        assert abs(collision(r, L) - need) < 1e-9, (
            f"collision({r}, {L}) = {collision(r, L)}: it must be right for all r and L."
        )
### END HIDDEN TESTS
print("collision: correct")

# %% [markdown]
# **Predict before you run.** With 8 bits there are 256 codes for only ten classes. How many of
# 4,000 aligned codebooks give two classes the same code: about 15, 150 or 600?

# %%
rng = np.random.default_rng(0)
drawn = [len(np.unique(draw_aligned(rng, 8, 10, 16), axis=0)) < 10 for _ in range(4000)]
print(f"{np.sum(drawn)} of 4,000 aligned codebooks give two classes one code:", end=" ")
print(f"{np.mean(drawn):.3f}; random codes {collision(8, 10):.3f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# More than 600. Ten codes are few, but they form 45 pairs, and each pair is equal with probability
# 1/256. So on MNIST with 8 bits, about one run in six gives two digits the same target, and then no
# learning can tell them apart.
#
# </details>
#
# The next cell compares the minimum distance between targets for aligned Hadamard columns and for
# coin tosses.
#
# **Predict before you run.** Which of the two has the larger minimum distance on average, and by
# how much?

# %%
rng = np.random.default_rng(0)
n_draws = 2000
aligned = [references.spread(draw_aligned(rng, 8, 10, 16))[0] for _ in range(n_draws)]
coins = []
for _ in range(n_draws):
    tossed = np.where(rng.random((10, 8)) < 0.5, 1, -1)
    coins.append(references.spread(tossed)[0])
_, axes = plt.subplots()
places = np.arange(5)
shares = np.bincount(aligned, minlength=5)[:5] / n_draws
axes.bar(places - 0.2, shares, 0.4, label="aligned Hadamard columns")
shares = np.bincount(coins, minlength=5)[:5] / n_draws
axes.bar(places + 0.2, shares, 0.4, label="coin tosses")
axes.set(
    title="Ten 8-bit targets: the closest pair",
    xlabel="minimum Hamming distance (bits)",
    ylabel="share of 2,000 codebooks",
)
axes.legend()
print(f"mean minimum distance: aligned {np.mean(aligned):.3f}, coins {np.mean(coins):.3f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Neither. The two agree up to random fluctuation, as they must, because aligned targets are coin
# tosses.
#
# </details>
#
# ## 2.5 In your words
#
# MNIST needs no alignment at 16, 32, 64 and 128 bits, but it does at 8 and 48. Explain in three or
# four sentences what this means for the 8-bit row of a table of retrieval results, and what you
# would try instead. (Graded by hand.)

# %% [markdown] answer words 2
# <!-- ### BEGIN SOLUTION -->
# Where r* = r, all pairs of targets differ in exactly r/2 bits, and every draw is equally good. At
# 8 bits the targets are random: the closest pair differs in one bit on average, and one codebook in
# six has a collision. So the result depends on the luck of the draw. A single run at 8 bits says
# little, and the spread over seeds must be shown. Instead, one can draw many codebooks and keep the
# one with the largest minimum distance, or construct one: class by class, as the library's
# `codebook="spread"` does, or by algebra, as in exercise 7.
# <!-- ### END SOLUTION -->

# %% [markdown]
# The library does the same: `Codebook` draws columns and W̃. Only `spread` aligns nothing where r*
# differs from r: each class in turn gets the one of 2,000 random codes that is farthest from the
# targets already given.

# %%
for kind in ("random", "spread"):
    values = []
    for seed in range(8):
        book = Codebook(8, kind, n_labels=10, seed=seed).add(list(range(10)))
        T = np.stack(list(book.targets.values())).astype(int)
        values.append(references.spread(T)[0])
    print(f"{kind}: minimum distances over eight seeds {values}")

# %% [markdown]
# ## 2.6 Coins instead of Gaussians (optional, hard)
#
# Let the entries of W̃ be fair coins, +1 or -1, instead of Gaussian. For two orthogonal columns c
# and c', the numbers w·c and w·c' are still uncorrelated. Are the bits of two classes still
# independent, and is each still +1 with probability 1/2? Take r* = 2 and go through all four w by
# hand. Then let the computer go through all w for r* = 4.
#
# <details><summary>Hint</summary>
#
# The columns of order 2 are c = (1, 1) and c' = (1, -1). Make a table of w, w·c, w·c' and the two
# signs, with sign(0) = -1.
#
# </details>
# <details><summary>Answer</summary>
#
# No. For r* = 2 the pair (w·c, w·c') is (2, 0), (0, 2), (0, -2) or (-2, 0). So each bit is +1 with
# probability 1/4, and both are never +1, although two independent bits would be with probability
# 1/16. Uncorrelated variables are independent if they are *jointly Gaussian*, not in general. For
# r* = 4, list all w with `itertools.product([-1, 1], repeat=4)`: a bit is +1 in 5 of 16 cases (a
# sum of four coins is positive), and two bits are both +1 in 2 of 16 cases instead of 25 of 256.
#
# </details>
