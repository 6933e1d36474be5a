# %% [markdown]
# # Exercise 1: Sylvester's construction and its properties
#
# **You will learn** what a Hadamard matrix is, how Sylvester's construction builds one of any order
# 2, 4, 8, ..., and why its columns make good target codes for classes. You will also learn to test
# a printed formula before you trust it.
#
# **Time:** 35 to 45 minutes. **Points:** 10.
#
# **Before you start:** matrix products, `numpy` arrays, numbers in binary. Nothing about hashing.
#
# **In the paper:** Sec. 3.4, Eq. 7 (definition), Eq. 8 (closed form) and Eq. 9 (recursion) of
# *Hadamard Matrix Guided Online Hashing* (HMOH; Lin et al., IJCV 2020).
#
# How to work: write your code where it says `YOUR CODE HERE` and delete the line `raise
# NotImplementedError(...)`. Run the cell, then run the check below it. A failed check says what it
# found and what it needs. Its code is folded, and you need not read it. Hints are folded too, so
# open one at a time. Where it says **Predict before you run**, write down your guess first. The
# first cell finds the library and says whether your machine is ready.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

from math import ceil

import numpy as np

from exercises import references
from exercises.checks import one_line_errors, replaced, returned, switched_off
from hmoh import hadamard
from study import datasets, pictures

one_line_errors()

# %%
# These calls are switched off while your functions are checked.
LIBRARY = ("hmoh.hadamard", "scipy.linalg.hadamard")
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
# Write `sylvester(k)`, which doubles k times. It returns the matrix of order n = 2ᵏ as an integer
# array. Our library and scipy provide this matrix too (`hadamard`), but you should build it
# yourself, so the check switches both off.
#
# <details><summary>Hint 1</summary>
#
# Start with `np.array([[1]])` and double k times in a loop.
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
returned(sylvester, 1)
needs = [hadamard(2**k).astype(int) for k in range(6)]
with switched_off(globals(), *LIBRARY):
    made = [np.asarray(sylvester(k)) for k in range(6)]
for k, (H, need) in enumerate(zip(made, needs, strict=True)):
    n = 2**k
    assert H.shape == (n, n), (
        f"sylvester({k}) has shape {H.shape}, but k = {k} doublings of a 1 x 1 matrix make "
        f"{(n, n)}: k is the number of doublings, not the order."
    )
    values = np.unique(H).tolist()
    assert set(values) <= {-1, 1}, (
        f"sylvester({k}) holds {values}, but only +1 and -1 are allowed: see the definition in 1.1."
    )
    assert H.dtype.kind == "i", (
        f"sylvester({k}) is {H.dtype}, but an integer array is needed: "
        "start with np.array([[1]]), without a decimal point."
    )
    if k < 2:
        assert (need == H).all(), (
            f"sylvester({k}) is {H.tolist()}, but H of order {n} is {need.tolist()}: "
            "only the lower right block has a minus sign."
        )
    inner = H.astype(int) @ H.T.astype(int)
    wrong = np.argwhere(inner != n * np.eye(n))
    if len(wrong):
        a, b = wrong[0]
        raise AssertionError(
            f"sylvester(1) is right, but in sylvester({k}) rows {a} and {b} have inner "
            f"product {inner[a, b]}, not {n if a == b else 0}: every block is the "
            "whole matrix of the step before, and the last one has the minus sign."
        )
    assert (need == H).all(), (
        f"sylvester({k}) is a Hadamard matrix, but not Sylvester's: its rows have another "
        f"order or sign; put the blocks where Eq. 9 has them. Yours is {H.tolist()}."
    )
print("sylvester: correct up to order 32")

# %% [markdown]
# ## 1.2 An entry without the matrix
#
# Sometimes we want one column of a matrix that is too large to build. The paper prints a closed
# form (Eq. 8), with row i and column j counted from 1: H_ij = (-1)^((i-1)(j-1)). We count from 0,
# so the exponent is the product i j. The next cell draws this matrix and Sylvester's for n = 8.
#
# **Predict before you run.** How many different rows does the matrix of Eq. 8 have? What is its
# rank?

# %%
i = np.arange(8)
printed = (-1) ** (i[:, None] * i)
pictures.hadamard(printed).set(title="Eq. 8 as printed")
pictures.hadamard(hadamard(8)).set(title="Sylvester's recursion, Eq. 9")
print("rank of Eq. 8 as printed:", np.linalg.matrix_rank(printed))
print("rank of the recursion's matrix:", np.linalg.matrix_rank(hadamard(8)))

# %% [markdown]
# <details><summary>Answer</summary>
#
# Two, and the rank is 2. The product i j is odd only if i and j are both odd, so all even rows are
# equal, and all odd rows are equal. But eight rows that are orthogonal to each other have rank 8,
# so this is not a Hadamard matrix.
#
# </details>
#
# Eq. 8 is a misprint: its sign depends only on the last binary digits of i and j. The correct
# exponent is the number of binary places in which i **and** j both have a 1. Write `entry(i, j)` by
# that rule, for plain integers of any size.
#
# Here is why this is true. The step from order n to 2n puts a new highest binary place in front of
# i and j. The sign changes exactly in the lower right block, where both new places hold a 1.
#
# <details><summary>Hint 1</summary>
#
# In Python, `i & j` keeps the places in which both numbers have a 1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The method `bit_count()` of an integer counts its ones. Only whether the count is even or odd
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
def no_matrix(*arguments):
    raise AssertionError(
        "entry builds a matrix, but the one for i = 2**40 does not fit into any memory: "
        "count binary places of i and j instead."
    )


H = hadamard(64).astype(int)
large = [(2**40 + 5, 2**40 + 1, 1), (2**62 + 1, 2**62, -1)]
try:
    returned(entry, 1, 2)
    with switched_off(globals(), *LIBRARY), replaced(globals(), sylvester=no_matrix):
        found = [[entry(i, j) for j in range(64)] for i in range(64)]
        found_large = [entry(i, j) for i, j, _ in large]
except TypeError as error:
    if "builtin_function_or_method" not in str(error):
        raise
    raise AssertionError(
        f"entry stops ({error}): bit_count is a method, so call it with brackets: "
        "(i & j).bit_count()."
    ) from None
for i in range(64):
    for j in range(64):
        way = "the number of common places is the exponent of -1, so only even or odd matters"
        if found[i][j] == 255:
            way = "255 is what 1 - 2 gives in numpy's unsigned bytes; use plain integers"
        assert found[i][j] in (1, -1), (
            f"entry({i}, {j}) = {found[i][j]}, but an entry is +1 or -1: {way}."
        )
found = np.array(found, int)
i = np.arange(64)[:, None]
j = np.arange(64)
sign = H[63]  # -1 where a number below 64 has an odd number of ones
ones = np.array([n.bit_count() for n in range(64)])
last_place = 1 - 2 * (i & j & 1)
mistakes = {
    "the sign depends only on the last binary places. Either the exponent is i j, the misprint "
    "of Eq. 8, or it is i & j itself, whose ones are not counted (bit_count)": last_place,
    "`i & j.bit_count()` counts the ones of j first. Put i & j in brackets": 1 - 2 * (i & ones & 1),
    "all entries are +1. In `1 - 2 * n % 2` Python computes 2 * n first; write 2 * (n % 2)": H**2,
    "you count the places where i or j has a 1, with |": sign[i | j],
    "you count the ones of i and those of j, or the places where they differ": sign[i ^ j],
    "you multiply the number of ones of i by that of j": np.maximum(sign[i], sign[j]),
    "all signs are the opposite, so an even count must give +1": -H,
}
for mistake, matrix in mistakes.items():
    assert not (found == matrix).all(), (
        f"entry is wrong: {mistake}; count the places where both have a 1, with &."
    )
assert not (found[1:, 1:] == H[:-1, :-1]).all(), (
    "entry(i, j) is the entry at i - 1 and j - 1: here i and j are counted from 0, "
    "so subtract nothing."
)
wrong = np.argwhere(found != H)
if len(wrong):
    i, j = wrong[0].tolist()
    raise AssertionError(
        f"entry({i}, {j}) = {found[i, j]}, but the matrix has {H[i, j]} there: in binary "
        f"i is {i:b} and j is {j:b}; number of places with a 1 in both: {(i & j).bit_count()}."
    )
for (i, j, need), value in zip(large, found_large, strict=True):
    assert value == need, (
        f"entry is right below 64, but entry({i}, {j}) = {value}, not {need}: in binary i "
        f"is {i:b} and j is {j:b}; count all places, however many there are."
    )
print("entry: agrees with the recursion in all 4,096 places of order 64")

# %% [markdown]
# ## 1.3 Why these columns are good codes
#
# A **code** is a list of bits, each +1 or -1. Give every class a column of the matrix as its
# **target code**. The **Hamming distance** d between two codes is the number of places in which
# they differ.
#
# Write `distances(C)`. C is a matrix of +1 and -1 with one code per **column**: r places, L codes.
# Return the (L, L) matrix of Hamming distances between all pairs of columns. Use one matrix product
# and no loop over places.
#
# <details><summary>Hint 1</summary>
#
# What is the inner product of two codes of r places that differ in d of them? Each place
# contributes +1 or -1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The inner product is (r - d) - d. Solve for d.
#
# </details>
# <details><summary>Hint 3</summary>
#
# C may be int8, which only holds numbers from -128 to 127. Convert it before the product.
#
# </details>


# %% solution distances
def distances(C):
    """Return the (L, L) Hamming distances between the L columns of C, which are +1 and -1."""
    ### BEGIN SOLUTION
    C = np.asarray(C).astype(int)  # int8 would overflow from 128 places on
    return (len(C) - C.T @ C) // 2
    ### END SOLUTION


# %% check distances 3
returned(distances, np.ones((4, 2), int))
rng = np.random.default_rng(1)
tosses = {r: rng.random((r, L)) < 0.5 for r, L in [(5, 3), (8, 8), (200, 4)]}
cases = [np.where(tossed, 1, -1) for tossed in tosses.values()]
for r in (200, 300):
    cases.append(np.ones((r, 2), int) * [1, -1])  # a code and its opposite
overflow = (
    "short codes are right, so this is overflow: int8 holds at most 127; "
    "convert C to int before the product"
)
for C in cases:
    r, L = C.shape
    need = references.distances(C)
    try:
        D = np.asarray(distances(C.astype(np.int8)))
    except OverflowError as error:
        raise AssertionError(f"codes of {r} places, int8: {error}: {overflow}.") from error
    assert D.shape == need.shape, (
        f"distances of {L} codes of {r} places has shape {D.shape}, but {need.shape} is "
        "needed: codes are the columns of C."
    )
    if r < 100:
        mistakes = {
            "these are inner products; subtract from r and halve": C.T @ C,
            "this is twice the distance; a place that differs changes the inner product by 2": 2
            * need,
            "this counts the places that are equal": r - need,
        }
        if r == L:
            mistakes["these are the distances of rows, but codes are columns"] = (
                C[:, None] != C[None]
            ).sum(axis=2)
        for mistake, matrix in mistakes.items():
            assert not (matrix == D).all(), (
                f"codes of {r} places: the first two columns have {D[0, 1]}, but differ "
                f"in {need[0, 1]} places: {mistake}."
            )
    wrong = np.argwhere(need != D)
    if len(wrong):
        a, b = wrong[0]
        why = "check the formula on paper for these two columns"
        if r > 100:
            why = overflow
        raise AssertionError(
            f"codes of {r} places, int8: the distance of columns {a} and {b} is "
            f"{D[a, b]}, but they differ in {need[a, b]} places: {why}."
        )
D = np.asarray(distances(hadamard(32)))
different = D[~np.eye(32, dtype=bool)]
print(
    f"columns of order 32: minimum distance {different.min()}, "
    f"largest {different.max()}; so any two classes differ in half of the bits"
)

# %% [markdown]
# ## 1.4 Can we do better?
#
# Can **every** pair differ in more than half of the bits? Take L codes of r places and sum the
# distances over all pairs. A place where p codes have +1 and L - p have -1 contributes p (L - p),
# at most L²/4. There are r places and L (L - 1)/2 pairs, so the mean distance is at most
#
# $$\frac{r\,L^2/4}{L\,(L-1)/2} = \frac{r\,L}{2\,(L-1)} .$$
#
# This is Plotkin's bound. The minimum distance cannot exceed the mean, and it is a whole number.
# Write `plotkin(L, r)`, which returns the bound rounded down to a whole number.
#
# <details><summary>Hint</summary>
#
# Use integer division `//`, so that no rounding of floats can go wrong.
#
# </details>


# %% solution plotkin
def plotkin(L, r):
    """Return the largest minimum distance that the bound on the mean allows L codes of r bits."""
    ### BEGIN SOLUTION
    return r * L // (2 * (L - 1))
    ### END SOLUTION


# %% check plotkin 2
returned(plotkin, 10, 64)
cases = [
    (10, 64, 35),
    (10, 8, 4),
    (2, 8, 8),
    (16, 16, 8),
    (32, 32, 16),
    (3, 9, 6),
    (2, 7, 7),
]
for L, r, need in cases:
    value = plotkin(L, r)
    bound = r * L / (2 * (L - 1))
    mistakes = {
        "this is the bound itself; round it down": bound,
        "the number of pairs has L - 1, not L": r * L // (2 * L),
        "this is rounded up or to the nearest; round down": ceil(bound),
        "the first argument is the number of codes, the second the bits": (L * r // (2 * (r - 1))),
        "divide by the whole product 2 (L - 1); note the brackets": r * L // 2 * (L - 1),
    }
    why = "round r L / (2 (L - 1)) down"
    for mistake, number in mistakes.items():
        if value == number != need:
            why = mistake
    assert value == need, (
        f"plotkin({L}, {r}) = {value}, but {L} codes of {r} bits allow {need}: {why}."
    )
### BEGIN HIDDEN TESTS
for L in range(2, 40, 2):  # for an odd L there is a sharper bound
    for r in range(1, 90):
        assert plotkin(L, r) == int(r * L / (2 * (L - 1)) + 1e-9), (
            f"plotkin({L}, {r}) = {plotkin(L, r)}: it must be right for all L and r."
        )
### END HIDDEN TESTS
print("plotkin: correct")

# %% [markdown]
# **Predict before you run.** For 16 classes and 16 bits, how far are Hadamard columns from the
# bound? And for 10 classes and 64 bits?

# %%
for L, r in [(16, 16), (10, 64)]:
    inner = hadamard(r)[:, 0].astype(int) @ hadamard(r)[:, 1]
    print(f"{L} classes, {r} bits: bound {plotkin(L, r)},", end=" ")
    print(f"Hadamard columns {(r - inner) // 2}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# With as many classes as bits, the gap is 0: no codebook has a larger minimum distance than the
# columns of a Hadamard matrix. Fewer classes leave room: the bound lets ten codes of 64 bits differ
# in 35 places, but Hadamard columns differ in 32.
#
# </details>
#
# ## 1.5 A product without the matrix (optional, hard)
#
# Multiplying the matrix H of order n by a vector x takes about n² additions. Write `transform(x)`,
# which returns the same vector with n log₂ n additions or subtractions and never builds H. Compare
# it with `hadamard(1024) @ x` for a random x, and time both.
#
# <details><summary>Hint</summary>
#
# Let x₁ be the first half of x and x₂ the second. Multiply Eq. 9 by them. Two products of half the
# size remain.
#
# </details>
# <details><summary>Answer</summary>
#
# Eq. 9 says: the first half of the result is H x₁ + H x₂, the second half is H x₁ - H x₂, where H
# has order n/2. So
#
#     def transform(x):
#         if len(x) == 1:
#             return x
#         half = len(x) // 2
#         first = transform(x[:half])
#         second = transform(x[half:])
#         return np.concatenate([first + second, first - second])
#
# This is the fast Walsh-Hadamard transform. `_walsh_hadamard` in `baselines/sketching.py` is a
# compiled loop for it, without recursion.
#
# </details>

# %% [markdown]
# **What you now have.** The target codes of HMOH, and a bound that says how good they are.
# Exercise 2 asks what happens when the code length is *not* the order of the matrix. Exercise 7
# uses the room that the bound leaves.
