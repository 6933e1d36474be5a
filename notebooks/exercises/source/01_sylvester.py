# %% [markdown]
# # Exercise 1: Sylvester's construction and its properties
#
# **You will learn** what a Hadamard matrix is, how Sylvester builds one of any order 2, 4, 8, ..., why its columns are
# good target codes for classes, and to test a printed formula before you trust it.
#
# **Time:** 30 to 40 minutes. **Points:** 10.
#
# **Before you start:** matrix products, `numpy` arrays, numbers in binary. Nothing about hashing.
#
# **In the paper:** Sec. 3.4, Eq. 7 (definition), Eq. 8 (closed form) and Eq. 9 (recursion) of *Hadamard Matrix Guided
# Online Hashing* (HMOH; Lin et al., IJCV 2020).
#
# How to work: write your code where it says `YOUR CODE HERE` (delete the line `raise NotImplementedError`), run the
# cell, then run the check below it. A failed check says what it found and what it wanted. Hints are folded; open one
# at a time. The first cell finds the library of this clone and says whether your machine is ready.

# %%
import sys

sys.path.insert(0, "../../..")  # the clone's folder, where the modules lie

import matplotlib.pyplot as plt
import numpy as np

import datasets
import plots
from hmoh import hadamard

plots.use_style()
datasets.load("mnist")  # an error here says what to do
print("OK, ready")

# %% [markdown]
# ## 1.1 The recursion
#
# A **Hadamard matrix** of order n is an n x n matrix H of +1 and -1 whose rows are orthogonal to each other: H Hᵀ is n
# times the identity matrix (Eq. 7). Sylvester's construction (Eq. 9) starts with the 1 x 1 matrix H₁ = [1] and doubles:
#
# $$H_{2n} = \begin{bmatrix} H_n & H_n \\ H_n & -H_n \end{bmatrix}$$
#
# Write `sylvester(k)`, the matrix of order 2ᵏ, as an integer array.
#
# <details><summary>Hint 1</summary>
#
# Start with `np.array([[1]])` and apply the doubling k times in a loop.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `np.block` builds a matrix from a list of lists of blocks, just as the formula is written.
#
# </details>


# %% solution sylvester
def sylvester(k):
    """Sylvester's Hadamard matrix of order 2**k, by the recursion."""
    ### BEGIN SOLUTION
    H = np.array([[1]])
    for _ in range(k):
        H = np.block([[H, H], [H, -H]])
    return H
    ### END SOLUTION


# %% check sylvester 2
for k in range(6):
    H = np.asarray(sylvester(k))
    n = 2**k
    assert H.shape == (n, n), f"sylvester({k}) has shape {H.shape}, but order 2**{k} means {(n, n)}: double k times."
    values = np.unique(H).tolist()
    assert set(values) <= {-1, 1}, (
        f"sylvester({k}) holds {values}; only +1 and -1 are allowed: see the definition in 1.1."
    )
    wrong = np.argwhere(n * np.eye(n) != H @ H.T)
    assert len(wrong) == 0, (
        f"in sylvester({k}) rows {wrong[0][0]} and {wrong[0][1]} have inner product {(H @ H.T)[*wrong[0]]}, not "
        f"{n * (wrong[0][0] == wrong[0][1])}: is the minus sign on the right block, and only there?"
    )
    assert (hadamard(n) == H).all(), (
        f"order {n} is a Hadamard matrix, but not Sylvester's: compare with the blocks of Eq. 9."
    )
print("sylvester: correct up to order 32")

# %% [markdown]
# ## 1.2 An entry without the matrix
#
# Sometimes one column is wanted and the matrix is too large to build. The paper prints a closed form (Eq. 8), with i
# and j counted from 1: H_ij = (-1)^((i-1)(j-1)). We count from 0, so its exponent is the product i j. Look at what
# this gives:

# %%
i = np.arange(8)
printed = (-1) ** (i[:, None] * i)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4))
for ax, matrix, title in zip(
    axes, (printed, hadamard(8)), ("Eq. 8 as printed", "Sylvester's recursion, Eq. 9"), strict=True
):
    ax.imshow(matrix, cmap="Blues", vmin=-1.5, vmax=1)
    ax.set(title=f"{title}\nrank {np.linalg.matrix_rank(matrix)} (dark: +1)", xlabel="column j", ylabel="row i")
    ax.grid(False)

# %% [markdown]
# Eq. 8 is a misprint: its parity looks at the last bit of i and of j only. The right exponent is the number of binary
# places at which i **and** j both have a 1. Write `entry(i, j)` by that rule, for plain integers of any size.
#
# Why it is true, in one line: going from order n to 2n adds a highest binary place to i and to j, and the sign changes
# exactly in the lower right block, where both new places are 1.
#
# <details><summary>Hint 1</summary>
#
# In Python `i & j` keeps the places at which both numbers have a 1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `(i & j).bit_count()` counts the ones of an integer. Only whether the count is even or odd matters.
#
# </details>


# %% solution entry
def entry(i, j):
    """Entry (i, j), counted from 0, of Sylvester's matrix of any order above i and j."""
    ### BEGIN SOLUTION
    return 1 - 2 * ((i & j).bit_count() % 2)
    ### END SOLUTION


# %% check entry 3
H = hadamard(64)
for i in range(64):
    for j in range(64):
        value = entry(i, j)
        assert value == H[i, j], (
            f"entry({i}, {j}) = {value}, but the matrix has {H[i, j]} there: in binary i is {i:b} and j is {j:b}; "
            "count the places where both have a 1."
        )
big = entry(2**40 + 5, 2**40 + 1)
assert big == 1, (
    f"entry(2**40 + 5, 2**40 + 1) = {big}, not 1 (two common ones): use plain integers, not arrays of 32 bits."
)
print("entry: agrees with the recursion at all 4,096 places of order 64")

# %% [markdown]
# ## 1.3 Why these columns are good codes
#
# Give every class a column of the matrix as its **target code**. The **Hamming distance** of two codes is the number
# of places at which they differ. Write `distances(C)`: for a matrix C of +1 and -1 with one code per **column**, the
# matrix of Hamming distances between all pairs of columns. Use one matrix product, no loop over places.
#
# <details><summary>Hint 1</summary>
#
# For two codes of r places that differ at d of them, what is their inner product? Each place gives +1 or -1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The inner product is (r - d) - d. Solve for d.
#
# </details>


# %% solution distances
def distances(C):
    """(n, n) integers: Hamming distances between the n columns of C, a matrix of +1 and -1."""
    ### BEGIN SOLUTION
    C = np.asarray(C).astype(int)  # int8 would overflow from 128 places on
    return (len(C) - C.T @ C) // 2
    ### END SOLUTION


# %% check distances 3
rng = np.random.default_rng(1)
short, square = (np.where(rng.random(shape) < 0.5, 1, -1).astype(np.int8) for shape in [(5, 3), (8, 8)])
opposite = np.ones((100, 2), np.int8) * np.array([1, -1], np.int8)
for C in (short, square, opposite):
    D = np.asarray(distances(C))
    need = (C[:, :, None] != C[:, None, :]).sum(axis=0)
    assert D.shape == need.shape, (
        f"distances of {C.shape[1]} codes has shape {D.shape}, but {need.shape} is needed: codes are columns."
    )
    a, b = np.unravel_index(np.argmax(need != D), D.shape)  # the first that is wrong, if one is
    assert D[a, b] == need[a, b], (
        f"codes of {C.shape[0]} places (int8): the distance of columns {a} and {b} is {D[a, b]}, but they differ at "
        f"{need[a, b]} places: check the formula on paper, and the number type if only long codes are wrong."
    )
H = hadamard(32)
D = distances(H)
off = D[~np.eye(32, dtype=bool)]
print(
    f"columns of order 32: least distance {off.min()}, largest {off.max()}; so any two classes differ in half of "
    "the bits"
)

# %% [markdown]
# Can one do better than half of the bits for **every** pair? For n codes, sum the distances over all pairs: a place
# where a codes have +1 and n - a have -1 adds a (n - a), at most n²/4. So the mean distance over the n (n-1)/2 pairs
# is at most (n²/4) r / (n (n-1)/2) = r n / (2 (n - 1)). This is Plotkin's bound.
#
# Write `plotkin(n, r)`, that bound rounded down to a whole number (the least distance is a whole number and not above
# the mean), and answer: for 16 classes and 16 bits, how far are Hadamard columns from the best that is possible?
#
# <details><summary>Hint</summary>
#
# Use whole-number division `//`, so that no rounding of floats can go wrong.
#
# </details>


# %% solution plotkin
def plotkin(n, r):
    """The largest whole number that the least distance of n codes of r bits can have by the bound on the mean."""
    ### BEGIN SOLUTION
    return r * n // (2 * (n - 1))
    ### END SOLUTION


# %% check plotkin 2
for n, r, need in [(2, 8, 8), (10, 8, 4), (16, 16, 8), (32, 32, 16), (10, 64, 35), (3, 9, 6)]:
    value = plotkin(n, r)
    assert value == need, (
        f"plotkin({n}, {r}) = {value}, but {n} codes of {r} bits allow {need}: round r n / (2 (n - 1)) down."
    )
gap = plotkin(16, 16) - distances(hadamard(16))[0, 1]
print(f"16 classes, 16 bits: bound {plotkin(16, 16)}, Hadamard columns {distances(hadamard(16))[0, 1]}, gap {gap}")
print(
    f"10 classes, 64 bits: bound {plotkin(10, 64)}, Hadamard columns {distances(hadamard(64))[0, 1]}: fewer "
    "classes leave room"
)

# %% [markdown]
# **What you now have.** For as many classes as bits no codebook has a larger least distance than the columns of a
# Hadamard matrix. Exercise 2 asks what happens when the code length is *not* the order of the matrix, and exercise 7
# uses the room that the bound shows.
