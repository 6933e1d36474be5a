# %% [markdown]
# # Exercise 5: Packed Hamming distance and popcount
#
# **You will learn** how to store a 32-bit code in 4 bytes, how to compute Hamming distances with
# XOR and a bit count, how to count the ones among 64 bits in a handful of operations, and how much
# memory and time this saves.
#
# **Time:** 45 to 60 minutes. **Points:** 10.
#
# **Before you start:** numbers in binary and hexadecimal; `&`, `^` and shifts; the compiled loop
# of exercise 3.
#
# **In the paper:** Sec. 3.1, Eq. 1 (codes are signs) and Sec. 4.1 (the evaluation ranks by Hamming
# distance). The paper does not say how to do this fast; `metrics.py` does it.

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

import time

import numpy as np
from numba import njit

from exercises import references
from exercises.checks import explained, one_line_errors, replaced, returned, switched_off
from metrics import nearest

one_line_errors()

# %%
rng = np.random.default_rng(0)
query_bits = rng.random((50, 128)) < 0.5
db_bits = rng.random((5000, 128)) < 0.5
print("5,000 codes of 128 bits as a bool array:", db_bits.nbytes, "bytes;", end=" ")
print("packed it will be", db_bits.size // 8)

# %% [markdown]
# ## 5.1 Pack
#
# A code is r bits b₀ .. b_(r-1), each 0 or 1 (1 where the hash function is above 0). **Packed**,
# eight of them share a byte. Byte q holds bits 8q to 8q + 7, and bit k of the code is worth 2^(k
# mod 8) in its byte. This is the "little" bit order, the layout of FAISS's binary indexes. If r is
# not a multiple of 8, the rest of the last byte is 0.
#
# Write `pack(bits)`, which turns n codes, given as an array (n, r) of 0/1 (bools or integers), into
# an array (n, ceil(r/8)) of uint8, by shifts or products. The check switches `np.packbits` off.
#
# <details><summary>Hint 1</summary>
#
# Start with zeros of shape (n, ceil(r/8)); `(r + 7) // 8` rounds up. Loop over the r columns of
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
returned(pack, np.ones((2, 8), bool))
cases = []
for r in (12, 1, 7, 8, 128):
    bits = np.random.default_rng(r).random((6, r)) < 0.5
    cases.append((bits, "bool"))
cases.append((cases[0][0].astype(np.int64), "int64"))
for bits, kind in cases:
    r = bits.shape[1]
    need = np.packbits(bits != 0, axis=1, bitorder="little")
    big = np.packbits(bits != 0, axis=1, bitorder="big")
    pad = np.zeros((6, -r % 8), bool)
    in_front = np.packbits(np.hstack([pad, bits != 0]), axis=1, bitorder="little")
    try:
        with switched_off(globals(), "numpy.packbits", "metrics.pack"):
            packed = np.asarray(pack(bits.copy()))
    except TypeError as error:
        raise AssertionError(
            f"bits of type {kind} give a TypeError ({error}): convert them to uint8 first, "
            "bits.astype(np.uint8)."
        ) from error
    assert packed.shape == need.shape, (
        f"6 codes of {r} bits gave shape {packed.shape}, but {need.shape} is needed: a row "
        "for each code, and r / 8 bytes, rounded up."
    )
    assert packed.dtype == np.uint8, (
        f"6 codes of {r} bits of type {kind} gave {packed.dtype}, but uint8 is needed: make "
        "np.zeros(shape, np.uint8)."
    )
    wrong = np.argwhere(packed != need)
    if len(wrong):
        row, byte = wrong[0]
        first_to_last = bits[row, 8 * byte : 8 * byte + 8].astype(int)
        why = "bit k of the code is worth 2**(k % 8) in byte k // 8"
        if (packed == big).all():
            why = 'this is the "big" bit order; the first bit is worth 1, not 128'
        elif (packed == in_front).all():
            why = "the zeros that fill the last byte come after the last bit, not before"
        elif (packed == need[:, ::-1]).all():
            why = "the bytes are in the opposite order; byte 0 holds the first eight bits"
        elif (packed == need & 1).all():
            why = "only the first bit of each byte is there; shift bit k by k % 8"
        elif (packed == ~need).all():
            why = "ones and zeros are swapped"
        raise AssertionError(
            f"r = {r}: byte {byte} of row {row} is {packed[row, byte]}, in binary "
            f"{packed[row, byte]:08b}, but it must be {need[row, byte]}, as its bits, first "
            f"bit first, are {''.join(map(str, first_to_last))}: {why}."
        )
print("pack: correct for 1 to 128 bits")

# %% [markdown]
# ## 5.2 XOR and a table
#
# `a ^ b` (XOR) has a 1 exactly where a and b differ. So the Hamming distance of two packed codes is
# the number of ones in the XOR of their bytes. A byte has only 256 values, so make a table with the
# number of ones of each.
#
# Write two functions:
#
# - `ones_of_bytes()` returns that table as an array of 256 integers.
# - `hamming(Q, D)` returns the distances (n_queries, n_items) between all packed rows of Q and all
#   packed rows of D, as int64.
#
# <details><summary>Hint 1</summary>
#
# With `int.bit_count()` the table takes one line.
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
Q = np.packbits(query_bits, axis=1, bitorder="little")
D = np.packbits(db_bits, axis=1, bitorder="little")[:300]
returned(ones_of_bytes)
with switched_off(globals(), "numpy.bitwise_count"):
    table = np.asarray(ones_of_bytes())
assert table.shape == (256,), (
    f"the table has shape {table.shape}, but (256,) is needed: a byte has 256 values."
)
assert table.dtype.kind in "iu", (
    f"the table is {table.dtype}, but whole numbers are needed: count, do not divide."
)
need = references.ones_of_bytes()
mistakes = {
    "this is the place of the highest one (bit_length), not the number of ones": np.array(
        [byte.bit_length() for byte in range(256)]
    ),
    "this is the number of zeros of a byte": 8 - need,
    "this is whether the number of ones is odd": need % 2,
}
wrong = np.flatnonzero(table != need)
if len(wrong):
    byte = wrong[0]
    why = f"in binary it is {byte:08b}; count the ones of each byte"
    for mistake, numbers in mistakes.items():
        if (table == numbers).all():
            why = mistake
    raise AssertionError(
        f"byte {byte} has {table[byte]} ones in the table, but it has {need[byte]}: {why}."
    )
returned(hamming, Q[:1].copy(), D.copy())
with switched_off(globals(), "numpy.bitwise_count"):
    found = np.asarray(hamming(Q.copy(), D.copy()))
ones = table.astype(int)
need = (query_bits[:, None] != db_bits[None, :300]).sum(axis=2)
assert found.shape != need.T.shape, (
    f"the distances have shape {found.shape}, but {need.shape} is needed: a row for each "
    "query, a column for each item."
)
assert found.shape == need.shape, (
    f"the distances have shape {found.shape}, but {need.shape} is needed: compare all queries "
    "with all items, and sum over the bytes, the last axis."
)
mistakes = {
    "these are the ones that both codes have (&); XOR is ^": (
        ones[Q[:, None] & D[None]].sum(axis=2)
    ),
    "these are the ones that one code or the other has (|); XOR is ^": (
        ones[Q[:, None] | D[None]].sum(axis=2)
    ),
    "the XOR bytes are added as numbers; look each up in the table first": (
        (Q[:, None] ^ D[None]).astype(int).sum(axis=2)
    ),
    "these are the places that are equal": 128 - need,
    "this is the number of bytes that differ, not of bits": ((Q[:, None] != D[None]).sum(axis=2)),
}
wrong = np.argwhere(found != need)
if len(wrong):
    i, j = wrong[0]
    why = "XOR first, then the table, then the sum over all bytes"
    for mistake, distances in mistakes.items():
        if (found == distances).all():
            why = mistake
    raise AssertionError(
        f"query {i}, item {j}: {found[i, j]}, but the bits differ at {need[i, j]} places: {why}."
    )
assert found.dtype == np.int64, (
    f"distances are right, but {found.dtype}, and int64 is needed: end with "
    ".astype(np.int64). (The sum of an array of uint8 is uint64.)"
)
print("ones_of_bytes and hamming: correct")
print("the mean distance of random 128-bit codes here is", found.mean().round(1))

# %% [markdown]
# ## 5.3 Popcount in parallel
#
# A processor works on 64 bits at once. We can count the ones of such a **word** x without any
# table, by adding neighbours in parallel. Think of x as 32 fields of 2 bits. In each field, the
# number of ones (0, 1 or 2) is the field minus its upper bit: 00→0, 01→1, 10→1, 11→2. So the first
# step is
#
#     x = x - ((x >> 1) & 0x5555555555555555)
#
# and then all 32 fields hold their counts. Next, add neighbouring fields to get 16 fields of 4 bits
# (mask 0x3333...), then 8 fields of 8 bits (mask 0x0F0F...). Finally, add up the 8 bytes:
# multiplying by 0x0101...01 leaves their sum in the top byte.
#
# Write `popcount(x)` for a numpy uint64 x. Combine uint64 only with uint64 (`ONE`, `TWO`, ...
# below), because numba turns uint64 and a plain int into a signed number or a float. (A loop over
# the 64 bits passes the check too. The times at the end show what it costs.)
#
# <details><summary>Hint 1</summary>
#
# Step two: `x = (x & M2) + ((x >> TWO) & M2)`. Why is the mask needed on both sides? (Fields of 2
# bits hold up to 2, the sum up to 4.)
#
# </details>
# <details><summary>Hint 2</summary>
#
# Step three: `x = (x + (x >> FOUR)) & M4`. A count of at most 8 fits into 4 bits, so one mask is
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
assert type(popcount) is type(njit(lambda: 0)), (
    "popcount is not compiled, and 5.4 needs it compiled: keep the line @njit above it."
)
plain = getattr(popcount, "py_func", popcount)
advice = (
    "combine x only with uint64, such as ONE, TWO and M1, as a plain number makes it signed or "
    "a float"
)
with explained("popcount", advice):
    try:
        with switched_off(globals(), "numpy.bitwise_count"), np.errstate(over="ignore"):
            plain(np.uint64(0xFF))
    except (TypeError, OverflowError):
        pass  # a mixture of types, which the compiled function may take
random_words = np.random.default_rng(0).integers(2**64, size=500, dtype=np.uint64)
words = [0, 1, 2, 3, 0xFF, 2**63, 2**64 - 1, *random_words.tolist()]
for word in words:
    with explained("popcount", advice):
        found = popcount(np.uint64(word))
    fields = []  # x after the steps of 2, 4 and 8 bits
    for size in (2, 4, 8):
        parts = [word >> place & (2**size - 1) for place in range(0, 64, size)]
        fields.append(sum(n.bit_count() << size * k for k, n in enumerate(parts)))
    steps = ", ".join(f"{field:#x}" for field in fields)
    why = f"after the first three steps x must be {steps}; print yours"
    if found == fields[2]:
        why = "the eight bytes are not added up; the last step is a product and a shift"
    elif found in fields[:2]:
        why = f"a step is missing; x must be {steps}, and then the bytes are added up"
    elif found == (fields[2] * 0x0101010101010101) % 2**64:
        why = "the sum is in the top byte; shift it down by TOP"
    elif found == (word % 2**32).bit_count():
        why = "only the lower 32 bits are counted"
    assert found == word.bit_count(), (
        f"popcount({word:#x}) = {found}, but it has {word.bit_count()} ones: {why}."
    )
print(f"popcount: correct for {len(words)} words, including 0 and all ones")

# %% [markdown]
# ## 5.4 The loop
#
# Now the search. `to_words` (given) reads 8 bytes as one uint64. Write the compiled function
# `hamming_words(Q, D, out)`: for the words Q (n_queries, n_words) and D (n_items, n_words), it
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
assert type(hamming_words) is type(njit(lambda: 0)), (
    "hamming_words is not compiled: keep the line @njit above it."
)
Q = np.packbits(query_bits, axis=1, bitorder="little")
D = np.packbits(db_bits, axis=1, bitorder="little")
Q_words = to_words(Q)
D_words = to_words(D[:300])
need = (query_bits[:, None] != db_bits[None, :300]).sum(axis=2)
plain = getattr(hamming_words, "py_func", hamming_words)
# Compiled code does not notice an index that leaves its array. Plain Python does.
out = np.full((2, 3), -1)
advice = (
    "out has a row for each query and a column for each item, Q and D have a column for each "
    "word, and the sum starts with np.uint64(0)"
)
with (
    explained("hamming_words", advice),
    replaced(globals(), popcount=references.ones),
    np.errstate(over="ignore"),
):
    plain(Q_words[:2], D_words[:3], out)
assert (out != -1).any(), (
    "out is unchanged: write the distances into the given array, out[i, j] = ..."
)
assert (out >= 0).all(), (
    f"2 queries and 3 items give {out.tolist()}, and -1 was never written: loop over all "
    "queries and all items."
)
different = query_bits[:2, None] != db_bits[None, :3]
both = query_bits[:2, None] & db_bits[None, :3]
small = different.sum(axis=2)
mistakes = {
    "only the first word is counted; sum over all words": different[..., :64].sum(axis=2),
    "only the last word is counted; sum over all words": different[..., 64:].sum(axis=2),
    "these are the ones that both have (&); XOR is ^": both.sum(axis=2),
    "the sum must start at 0 for every item": small.ravel().cumsum().reshape(2, 3),
    "the sum must start at 0 for every item, not only for every query": small.cumsum(axis=1),
    "these are the places that are equal": 128 - small,
    "out held -1 before, and you add to that; set out[i, j], or start it at 0": small - 1,
}
why = "sum popcount(Q[i, k] ^ D[j, k]) over the words k"
for mistake, distances in mistakes.items():
    if (out == distances).all():
        why = mistake
assert (out == small).all(), (
    f"2 queries and 3 items give {out.tolist()}, but the distances are {small.tolist()}: {why}."
)
out = np.full((len(Q), 300), -1)
with explained("hamming_words", advice), replaced(globals(), popcount=references.ones):
    njit(plain)(Q_words, D_words, out)
wrong = np.argwhere(out != need)
if len(wrong):
    i, j = wrong[0]
    raise AssertionError(
        f"2 queries and 3 items are right, but of 50 and 300 the distance of query {i} and "
        f"item {j} is {out[i, j]}, not {need[i, j]}: loop over len(Q), len(D) and Q.shape[1]."
    )
least, _ = nearest(Q, D[:300], k=3)
assert (np.sort(out, axis=1)[:, :3] == least).all(), (
    "the three smallest distances differ from metrics.nearest: compare one query by hand."
)
print("hamming_words: correct, and agrees with metrics.nearest")

# %% [markdown]
# **Predict before you run.** There are three ways to compare 50 queries with 500 items: bool arrays
# with `!=`, the table of bytes, and words with popcount. Order them by time. How much faster than
# bool arrays are the other two?


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
Q = np.packbits(query_bits, axis=1, bitorder="little")
few = np.packbits(db_bits[:n_items], axis=1, bitorder="little")
out = np.empty((len(Q), n_items), np.int64)
ways = {
    "bool arrays, != and sum": seconds(compare_bools, query_bits, db_bits[:n_items]),
    "table of bytes": seconds(hamming, Q, few),
    "popcount of words, compiled": seconds(hamming_words, to_words(Q), to_words(few), out),
}
for name, value in ways.items():
    nanoseconds = value / out.size * 1e9
    print(f"{name:<28}{nanoseconds:8.2f} ns for a distance of 128-bit codes")
print("one million codes of 128 bits: 16 MB packed, 128 MB as bool, 512 MB as float32")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The table reads an eighth of the bytes but is not much faster, because numpy writes a large array
# at every step: the XOR, the entries of the table, the sums. The compiled loop keeps all of that in
# registers and takes 64 bits at once. With the parallel popcount, it is more than ten times as fast
# as bool arrays.
#
# </details>
#
# ## 5.5 Near items without comparing all (optional, hard)
#
# Cut a 128-bit code into four parts of 32 bits. If two codes differ in at most 3 bits, then at
# least one part is equal in both. Why? Use this to find all items within distance 3 of a query,
# with a dictionary from (number of the part, its value) to the items that have it. Try it on a
# database to which you have added some copies of the queries with three bits changed. With how many
# items does a query have to be compared?
#
# <details><summary>Hint</summary>
#
# `D.view(np.uint32)` gives four numbers for each packed row of D.
#
# </details>
# <details><summary>Answer</summary>
#
# Three changed bits touch at most three of the four parts.
#
#     bits = db_bits.copy()
#     bits[:50] = query_bits
#     for row in bits[:50]:
#         row[rng.choice(128, size=3, replace=False)] ^= True
#     D = pack(bits)
#     items_with = {}
#     for item, parts in enumerate(D.view(np.uint32).tolist()):
#         for part in enumerate(parts):
#             items_with.setdefault(part, []).append(item)
#     for query, parts in zip(pack(query_bits), pack(query_bits).view(np.uint32).tolist()):
#         candidates = set()
#         for part in enumerate(parts):
#             candidates.update(items_with.get(part, []))
#         candidates = sorted(candidates)
#         distances = hamming(query[None], D[candidates])[0]
#         print([item for item, d in zip(candidates, distances) if d <= 3], len(candidates))
#
# Here every query is compared with its copy alone, because random codes rarely share 32 bits. This
# is multi-index hashing. Learned codes are less evenly spread, so it gains less for them.
#
# </details>
#
# **What you now have.** The inner loop of `metrics.py`. There it does not even keep the distances:
# it counts how many items lie at each distance. Exercise 6 shows that no metric needs more.
