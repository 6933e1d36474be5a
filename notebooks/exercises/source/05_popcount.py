# %% [markdown]
# # Exercise 5: Packed Hamming distance and popcount
#
# **You will learn** to store a code of 32 bits in 4 bytes, to compute Hamming distances with XOR
# and a bit count, to count the ones of 64 bits in a handful of operations, and how much memory
# and time this saves.
#
# **Time:** 45 to 60 minutes. **Points:** 10.
#
# **Before you start:** numbers in binary and hexadecimal; `&`, `^` and shifts; the compiled loop
# of exercise 3.
#
# **In the paper:** Sec. 3.1, Eq. 1 (codes are signs) and Sec. 4.1 (the evaluation ranks by
# Hamming distance). The paper does not say how to do it fast; `metrics.py` of this clone does it.

# %%
import sys

sys.path.insert(0, "../../..")  # the modules are in the folder of the clone

import time

import numpy as np
from numba import njit

from metrics import nearest

rng = np.random.default_rng(0)
query_bits = rng.random((50, 128)) < 0.5
db_bits = rng.random((5000, 128)) < 0.5
print("as a bool array,", db_bits.nbytes, "bytes; packed it will be", db_bits.size // 8)

# %% [markdown]
# ## 5.1 Pack
#
# A code is r bits b₀ .. b_(r-1), each 0 or 1 (1 where the hash function is above 0). **Packed**,
# eight of them share a byte. Byte q holds bits 8q to 8q + 7, and bit k of the code is worth 2^(k
# mod 8) in its byte. This is "little" bit order, the layout of FAISS's binary indexes. If r is
# not a multiple of 8, the rest of the last byte is 0.
#
# Write `pack(bits)`: from (n, r) of 0/1 to (n, ceil(r/8)) uint8, with shifts or products, without
# `np.packbits`.
#
# <details><summary>Hint 1</summary>
#
# Let bytes be zeros of shape (n, ceil(r/8)). `(r + 7) // 8` rounds up. Loop over the r columns of
# `bits`, not over the rows.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Column k adds `bits[:, k] << (k % 8)` to byte `k // 8`. Convert the column to uint8 first.
#
# </details>


# %% solution pack
def pack(bits):
    """Return (n, ceil(r / 8)) uint8: bit k of a row is bit k % 8 of byte k // 8."""
    ### BEGIN SOLUTION
    bits = np.asarray(bits).astype(np.uint8)
    n, r = bits.shape
    packed = np.zeros((n, (r + 7) // 8), np.uint8)
    for k in range(r):
        packed[:, k // 8] |= bits[:, k] << np.uint8(k % 8)
    return packed
    ### END SOLUTION


# %% check pack 2
for r in (1, 7, 8, 12, 128):
    bits = np.random.default_rng(r).random((6, r)) < 0.5
    packed = np.asarray(pack(bits))
    shape = (6, (r + 7) // 8)
    assert packed.shape == shape and packed.dtype == np.uint8, (
        f"6 codes of {r} bits gave {packed.dtype}{list(packed.shape)}, but "
        f"uint8{list(shape)} is needed: round r / 8 up."
    )
    wrong = np.argwhere(packed != np.packbits(bits, axis=1, bitorder="little"))
    if len(wrong):
        row, byte = wrong[0]
        first_to_last = bits[row, 8 * byte : 8 * byte + 8].astype(int)
        raise AssertionError(
            f"r = {r}: byte {byte} of row {row} is {packed[row, byte]:08b}, but its "
            f"bits, first bit first, are {''.join(map(str, first_to_last))}: "
            "the first bit is worth 1."
        )
print("pack: correct for 1 to 128 bits")

# %% [markdown]
# ## 5.2 XOR and a table
#
# `a ^ b` (XOR) has a 1 exactly where a and b differ. So the Hamming distance of two packed codes
# is the number of ones in the XOR of their bytes. A byte has only 256 values: make a table with
# the number of ones of each.
#
# Write two functions:
#
# - `ones_of_bytes()` returns that table as an array of 256 integers.
# - `hamming(Q, D)` returns the distances (n_queries, n_items) of all packed rows of Q to all
#   packed rows of D, as int64.
#
# <details><summary>Hint 1</summary>
#
# `int.bit_count()` makes the table in one line.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `Q[:, None] ^ D[None]` has shape (n_queries, n_items, bytes). Index the table with it and sum
# over the last axis.
#
# </details>


# %% solution table
def ones_of_bytes():
    """Return (256,) integers: how many ones each byte has."""
    ### BEGIN SOLUTION
    return np.array([value.bit_count() for value in range(256)])
    ### END SOLUTION


def hamming(Q, D):
    """Return (n_queries, n_items) int64: distances of packed codes, by a table of bytes."""
    ### BEGIN SOLUTION
    different = Q[:, None] ^ D[None]
    return ones_of_bytes()[different].sum(axis=2)
    ### END SOLUTION


# %% check table 3
table = np.asarray(ones_of_bytes())
assert table.shape == (256,), (
    f"the table has shape {table.shape}, but (256,) is needed: a byte has 256 values."
)
assert table[0] == 0 and table[255] == 8, (
    f"bytes 0 and 255 have {table[0]} and {table[255]} ones in the table, but 0 and 8 "
    "are needed: count the ones of each byte."
)
Q = np.packbits(query_bits, axis=1, bitorder="little")
D = np.packbits(db_bits, axis=1, bitorder="little")
found = np.asarray(hamming(Q, D[:300]))
need = (query_bits[:, None] != db_bits[None, :300]).sum(axis=2)
assert found.shape == need.shape, (
    f"the distances have shape {found.shape}, but {need.shape} is needed: "
    "a row for each query."
)
assert found.dtype.kind == "i" and found.dtype.itemsize == 8, (
    f"distances are {found.dtype}, but int64 is needed: small types overflow (exercise 8)."
)
assert (found == need).all(), (
    f"query 0, item 0: {found[0, 0]}, but the bits differ at {need[0, 0]} places: "
    "XOR first, then the table, then the sum."
)
print("hamming: correct")
print("the mean distance of random 128-bit codes here is", found.mean().round(1))

# %% [markdown]
# ## 5.3 Popcount in parallel
#
# A processor works on 64 bits at once. One can count the ones of such a **word** x without any
# table, by adding neighbours in parallel. Think of x as 32 fields of 2 bits. In each field the
# number of ones (0, 1 or 2) is the field minus its upper bit: 00→0, 01→1, 10→1, 11→2. So the
# first step is
#
#     x = x - ((x >> 1) & 0x5555555555555555)
#
# and all 32 fields hold their counts. Next add neighbouring fields to 16 fields of 4 bits (mask
# 0x3333...), then to 8 fields of 8 bits (mask 0x0F0F...). Last add up the 8 bytes: a product with
# 0x0101...01 leaves their sum in the top byte.
#
# Write `popcount(x)` for a numpy uint64 x. Note: combine uint64 only with uint64 (`ONE`, `TWO`,
# ... below), because numba turns uint64 with a plain int into a float.
#
# <details><summary>Hint 1</summary>
#
# Step two: `x = (x & M2) + ((x >> TWO) & M2)`. Why is the mask needed on both sides? (Fields of 2
# bits hold up to 2, the sum up to 4.)
#
# </details>
# <details><summary>Hint 2</summary>
#
# Step three: `x = (x + (x >> FOUR)) & M4`. A count of at most 8 fits 4 bits, so one mask is
# enough. Step four: `(x * BYTES) >> TOP`. The product is meant to overflow.
#
# </details>

# %%
ONE = np.uint64(1)
TWO = np.uint64(2)
FOUR = np.uint64(4)
TOP = np.uint64(56)
M1 = np.uint64(0x5555555555555555)
M2 = np.uint64(0x3333333333333333)
M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES = np.uint64(0x0101010101010101)


# %% solution popcount
@njit
def popcount(x):
    """Return the number of ones of a uint64."""
    ### BEGIN SOLUTION
    x = x - ((x >> ONE) & M1)
    x = (x & M2) + ((x >> TWO) & M2)
    x = (x + (x >> FOUR)) & M4
    return (x * BYTES) >> TOP
    ### END SOLUTION


# %% check popcount 3
random_words = np.random.default_rng(0).integers(2**64, size=500, dtype=np.uint64)
words = [0, 1, 2, 3, 0xFF, 2**63, 2**64 - 1, *random_words.tolist()]
for word in words:
    found = int(popcount(np.uint64(word)))
    assert found == word.bit_count(), (
        f"popcount({word:#x}) = {found}, but it has {word.bit_count()} ones: "
        "print x after each step and check its fields."
    )
print(f"popcount: correct for {len(words)} words, including 0 and all ones")

# %% [markdown]
# ## 5.4 The loop
#
# Now the search. `to_words` (given) reads 8 bytes as one uint64. Write
# `hamming_words(Q, D, out)`, compiled. For the words Q (n_queries, w) and D (n_items, w) it
# writes the distances into `out` (n_queries, n_items), an int64 array.
#
# <details><summary>Hint</summary>
#
# Three loops: queries, items, words. Sum `popcount(Q[i, k] ^ D[j, k])` over k. Start the sum with
# `np.uint64(0)`.
#
# </details>


# %%
def to_words(codes):
    """Return packed codes as rows of uint64; the bytes of a code are a multiple of 8 here."""
    return np.ascontiguousarray(codes).view(np.uint64)


# %% solution words
@njit
def hamming_words(Q, D, out):
    """Set out[i, j] to the distance of query i and item j."""
    ### BEGIN SOLUTION
    for i in range(len(Q)):
        for j in range(len(D)):
            d = np.uint64(0)
            for k in range(Q.shape[1]):
                d += popcount(Q[i, k] ^ D[j, k])
            out[i, j] = d
    ### END SOLUTION


# %% check words 2
Q = np.packbits(query_bits, axis=1, bitorder="little")
D = np.packbits(db_bits, axis=1, bitorder="little")
out = np.full((len(Q), len(D)), -1)
hamming_words(to_words(Q), to_words(D), out)  # the first call compiles; it is not timed
assert (out >= 0).all(), (
    "some entries of out were never written: loop over all queries and all items."
)
query_signs = 2 * query_bits.astype(np.float32) - 1
db_signs = 2 * db_bits.astype(np.float32) - 1
need = (128 - query_signs @ db_signs.T) / 2
wrong = np.argwhere(out != need)
if len(wrong):
    i, j = wrong[0]
    raise AssertionError(
        f"query {i}, item {j}: {out[i, j]}, but the distance is {need[i, j]:.0f}: "
        "sum over both words."
    )
distances, _ = nearest(Q, D, k=3)
assert (np.sort(out, axis=1)[:, :3] == distances).all(), (
    "the three least distances differ from metrics.nearest: compare one query by hand."
)
print("hamming_words: correct, and agrees with metrics.nearest")


# %%
def seconds(function, *arguments):
    """Return the best time of five runs."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def compare_bools(query_bits, db_bits):
    return (query_bits[:, None] != db_bits[None]).sum(axis=2)


n_items = 500
few = D[:n_items]
out = np.empty((len(Q), n_items), np.int64)
ways = {
    "bool arrays, != and sum": seconds(compare_bools, query_bits, db_bits[:n_items]),
    "table of bytes": seconds(hamming, Q, few),
    "popcount of words, compiled": seconds(
        hamming_words, to_words(Q), to_words(few), out
    ),
}
for name, value in ways.items():
    nanoseconds = value / out.size * 1e9
    print(f"{name:<28}{nanoseconds:8.2f} ns for a distance of 128-bit codes")
print("one million codes of 128 bits: 16 MB packed, 128 MB as bool, 512 MB as float32")

# %% [markdown]
# **What you now have.** The inner loop of `metrics.py`. There it does not even keep the
# distances: it counts how many items are at each distance. Exercise 6 shows that no metric needs
# more.
