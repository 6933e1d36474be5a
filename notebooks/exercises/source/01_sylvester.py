# %% [markdown]
# # Exercise 1: Sylvester's construction and its properties
#
# **You will learn** what a Hadamard matrix is, how Sylvester builds one of any order 2, 4, 8,
# ..., and why its columns are good target codes for classes. You will also learn to test a
# printed formula before you trust it.
#
# **Time:** 30 to 40 minutes. **Points:** 10.
#
# **Before you start:** matrix products, `numpy` arrays, numbers in binary. Nothing about hashing.
#
# **In the paper:** Sec. 3.4, Eq. 7 (definition), Eq. 8 (closed form) and Eq. 9 (recursion) of
# *Hadamard Matrix Guided Online Hashing* (HMOH; Lin et al., IJCV 2020).
#
# How to work: write your code where it says `YOUR CODE HERE` and delete the line
# `raise NotImplementedError`. Run the cell, then run the check below it. A failed check says what
# it found and what it needs. Hints are folded. Open one at a time. The first cell finds the
# library of this clone and says whether your machine is ready.

# %%
import sys

sys.path.insert(0, "../../..")  # the modules are in the folder of the clone

import numpy as np

from hmoh import hadamard
from study import datasets, plots

plots.use_style()
datasets.load("mnist")  # an error here says what to do
print("OK, ready")

# %% [markdown]
# ## 1.1 The recursion
#
# A **Hadamard matrix** of order n is an n x n matrix H of +1 and -1 whose rows are orthogonal to
# each other: H Hᵀ is n times the identity matrix (Eq. 7). Sylvester's construction (Eq. 9) starts
# with the 1 x 1 matrix H₁ = [1] and doubles:
#
# $$H_{2n} = \begin{bmatrix} H_n & H_n \\ H_n & -H_n \end{bmatrix}$$
#
# Write `sylvester(k)`, which returns the matrix of order 2ᵏ as an integer array.
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
    """Return Sylvester's Hadamard matrix of order 2**k, by the recursion."""
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
    assert H.shape == (n, n), (
        f"sylvester({k}) has shape {H.shape}, but order 2**{k} means {(n, n)}: "
        "double k times."
    )
    values = np.unique(H).tolist()
    assert set(values) <= {-1, 1}, (
        f"sylvester({k}) holds {values}, but only +1 and -1 are allowed: "
        "see the definition in 1.1."
    )
    products = H @ H.T
    wrong = np.argwhere(n * np.eye(n) != products)
    if len(wrong):
        i, j = wrong[0]
        raise AssertionError(
            f"in sylvester({k}) rows {i} and {j} have inner product {products[i, j]}, "
            f"not {n if i == j else 0}: is the minus sign on the right block, "
            "and only there?"
        )
    assert (hadamard(n) == H).all(), (
        f"order {n} is a Hadamard matrix, but not Sylvester's: "
        "compare with the blocks of Eq. 9."
    )
print("sylvester: correct up to order 32")

# %% [markdown]
# ## 1.2 An entry without the matrix
#
# Sometimes one column is wanted and the matrix is too large to build. The paper prints a closed
# form (Eq. 8), with i and j counted from 1: H_ij = (-1)^((i-1)(j-1)). We count from 0, so its
# exponent is the product i j. See what this gives:

# %%
i = np.arange(8)
printed = (-1) ** (i[:, None] * i)
plots.hadamard(printed).set(title="Eq. 8 as printed")
plots.hadamard(hadamard(8)).set(title="Sylvester's recursion, Eq. 9")
print("rank of Eq. 8 as printed:", np.linalg.matrix_rank(printed))
print("rank of the recursion's matrix:", np.linalg.matrix_rank(hadamard(8)))

# %% [markdown]
# Eq. 8 is a misprint: its parity depends only on the last bit of i and of j. The right exponent
# is the number of binary places at which i **and** j both have a 1. Write `entry(i, j)` by that
# rule, for plain integers of any size.
#
# Here is why it is true. The step from order n to 2n adds a highest binary place to i and to j.
# The sign changes exactly in the lower right block, where both new places are 1.
#
# <details><summary>Hint 1</summary>
#
# In Python `i & j` keeps the places at which both numbers have a 1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `(i & j).bit_count()` counts the ones of an integer. Only whether the count is even or odd
# matters.
#
# </details>


# %% solution entry
def entry(i, j):
    """Return entry (i, j), counted from 0, of any Sylvester matrix that is large enough."""
    ### BEGIN SOLUTION
    return 1 - 2 * ((i & j).bit_count() % 2)
    ### END SOLUTION


# %% check entry 3
H = hadamard(64)
for i in range(64):
    for j in range(64):
        value = entry(i, j)
        assert value == H[i, j], (
            f"entry({i}, {j}) = {value}, but the matrix has {H[i, j]} there: "
            f"in binary i is {i:b} and j is {j:b}; count the places where both have a 1."
        )
big = entry(2**40 + 5, 2**40 + 1)
assert big == 1, (
    f"entry(2**40 + 5, 2**40 + 1) = {big}, not 1 (two common ones): "
    "use plain integers, not arrays of 32 bits."
)
print("entry: agrees with the recursion at all 4,096 places of order 64")

# %% [markdown]
# ## 1.3 Why these columns are good codes
#
# Give every class a column of the matrix as its **target code**. The **Hamming distance** of two
# codes is the number of places at which they differ.
#
# Write `distances(C)`. C is a matrix of +1 and -1 with one code per **column**. Return the matrix
# of Hamming distances between all pairs of columns. Use one matrix product, no loop over places.
#
# <details><summary>Hint 1</summary>
#
# For two codes of r places that differ at d of them, what is their inner product? Each place
# gives +1 or -1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The inner product is (r - d) - d. Solve for d.
#
# </details>


# %% solution distances
def distances(C):
    """Return the (n, n) Hamming distances between the n columns of C, which are +1 and -1."""
    ### BEGIN SOLUTION
    C = np.asarray(C).astype(int)  # int8 would overflow from 128 places on
    return (len(C) - C.T @ C) // 2
    ### END SOLUTION


# %% check distances 3
rng = np.random.default_rng(1)
short = np.where(rng.random((5, 3)) < 0.5, 1, -1).astype(np.int8)
square = np.where(rng.random((8, 8)) < 0.5, 1, -1).astype(np.int8)
opposite = np.ones((100, 2), np.int8) * np.array([1, -1], np.int8)
for C in (short, square, opposite):
    D = np.asarray(distances(C))
    need = (C[:, :, None] != C[:, None, :]).sum(axis=0)
    assert D.shape == need.shape, (
        f"distances of {C.shape[1]} codes has shape {D.shape}, but {need.shape} "
        "is needed: codes are columns."
    )
    wrong = np.argwhere(need != D)
    if len(wrong):
        a, b = wrong[0]
        raise AssertionError(
            f"codes of {C.shape[0]} places (int8): the distance of columns {a} and {b} "
            f"is {D[a, b]}, but they differ at {need[a, b]} places: check the formula "
            "on paper, and the number type if only long codes are wrong."
        )
D = distances(hadamard(32))
different = D[~np.eye(32, dtype=bool)]
print(
    f"columns of order 32: least distance {different.min()}, "
    f"largest {different.max()}; so any two classes differ in half of the bits"
)

# %% [markdown]
# Can one do better than half of the bits for **every** pair? For n codes, sum the distances over
# all pairs. A place where a codes have +1 and n - a have -1 adds a (n - a), at most n²/4. So the
# mean distance over the n (n-1)/2 pairs is at most (n²/4) r / (n (n-1)/2) = r n / (2 (n - 1)).
# This is Plotkin's bound.
#
# Write `plotkin(n, r)`, which returns that bound rounded down to a whole number. (The least
# distance is a whole number, and it is not above the mean.) Then answer: for 16 classes and 16
# bits, how far are Hadamard columns from the best that is possible?
#
# <details><summary>Hint</summary>
#
# Use whole-number division `//`, so that no rounding of floats can go wrong.
#
# </details>


# %% solution plotkin
def plotkin(n, r):
    """Return the largest least distance that the bound on the mean allows n codes of r bits."""
    ### BEGIN SOLUTION
    return r * n // (2 * (n - 1))
    ### END SOLUTION


# %% check plotkin 2
cases = [(2, 8, 8), (10, 8, 4), (16, 16, 8), (32, 32, 16), (10, 64, 35), (3, 9, 6)]
for n, r, need in cases:
    value = plotkin(n, r)
    assert value == need, (
        f"plotkin({n}, {r}) = {value}, but {n} codes of {r} bits allow {need}: "
        "round r n / (2 (n - 1)) down."
    )
bound = plotkin(16, 16)
found = distances(hadamard(16))[0, 1]
print(
    f"16 classes, 16 bits: bound {bound}, Hadamard columns {found}, gap {bound - found}"
)
bound = plotkin(10, 64)
found = distances(hadamard(64))[0, 1]
print(f"10 classes, 64 bits: bound {bound}, Hadamard columns {found}")
print("fewer classes leave room for larger distances")

# %% [markdown]
# **What you now have.** For as many classes as bits, no codebook has a larger least distance than
# the columns of a Hadamard matrix. Exercise 2 asks what happens when the code length is *not* the
# order of the matrix. Exercise 7 uses the room that the bound shows.
