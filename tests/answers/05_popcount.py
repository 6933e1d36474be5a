"""Answers of students to the checks of 05_popcount. The format is in test_exercises.py."""


# %% right pack: what the next ones change
def pack(bits):
    n, r = bits.shape
    packed = np.zeros((n, (r + 7) // 8), np.uint8)
    for k in range(r):
        packed[:, k // 8] |= bits[:, k].astype(np.uint8) << np.uint8(k % 8)
    return packed


# %% wrong pack: the first bit is worth 1, not 128
swap("n, r = bits.shape", "bits = np.asarray(bits).astype(np.uint8)\n    n, r = bits.shape")
swap(".astype(np.uint8) << np.uint8(", " << np.uint8(7 - ")

# %% wrong pack: r / 8 bytes, rounded up
swap("(r + 7) // 8", "r // 8 + 1")

# %% wrong pack: uint8 is needed
swap("packed = np.zeros((n, (r + 7) // 8), np.uint8)", "packed = np.zeros((n, (r + 7) // 8))")
swap("|= bits[:, k].astype(np.uint8) << np.uint8", "+= bits[:, k] * 2 ** ")

# %% wrong pack: bits of type int64 give a TypeError.*convert them to uint8 first
swap(".astype(np.uint8)", "")

# %% wrong pack: bit k of the code is worth
swap("uint8(k % 8", "uint8(k % 7")


# %% wrong pack: numpy.packbits does the whole task
def pack(bits):
    return np.packbits(bits, axis=1, bitorder="little")


# %% wrong pack: numpy.packbits does the whole task
from numpy import packbits


def pack(bits):
    return packbits(bits, axis=1, bitorder="little")


# %% wrong pack: metrics.pack does the whole task
import metrics


def pack(bits):
    return metrics.pack(bits)


# %% right pack: what the next ones change
def pack(bits):
    n, r = bits.shape
    padded = np.concatenate([bits, np.zeros((n, -r % 8))], axis=1)
    groups = padded.reshape(n, -1, 8)
    return (groups @ 2 ** np.arange(8)).astype(np.uint8)


# %% wrong pack: come after the last bit, not before
swap("bits, np.zeros((n, -r % 8))", "np.zeros((n, -r % 8)), bits")

# %% wrong pack: the bytes are in the opposite order
swap("(np.uint8)", "(np.uint8)[:, ::-1]")


# %% right pack: product with powers of two
def pack(bits):
    bits = np.asarray(bits, int)
    n, r = bits.shape
    padded = np.zeros((n, 8 * ((r + 7) // 8)), int)
    padded[:, :r] = bits
    return (padded.reshape(n, -1, 8) * 2 ** np.arange(8)).sum(axis=2).astype(np.uint8)


# %% right pack: text in binary
def pack(bits):
    rows = []
    for row in np.asarray(bits, int).tolist():
        groups = [row[k : k + 8] for k in range(0, len(row), 8)]
        rows.append([int("".join(map(str, group[::-1])), 2) for group in groups])
    return np.array(rows, np.uint8)


# %% right pack: large integers of Python
def pack(bits):
    n_bytes = -(-bits.shape[1] // 8)
    packed = np.empty((len(bits), n_bytes), np.uint8)
    for i, row in enumerate(bits.tolist()):
        number = sum(int(bit) << k for k, bit in enumerate(row))
        packed[i] = list(number.to_bytes(n_bytes, "little"))
    return packed


# %% wrong table: the place of the highest one \(bit_length\)
def ones_of_bytes():
    # Right for 0 and 255.
    return np.array([value.bit_length() for value in range(256)])


# %% wrong table: byte 2 has 0 ones in the table, but it has 1
def ones_of_bytes():
    table = np.zeros(256, int)
    table[1] = 1
    table[255] = 8
    return table


# %% wrong table: a byte has 256 values
def ones_of_bytes():
    return np.array([value.bit_count() for value in range(255)])


# %% wrong table: the number of zeros of a byte
def ones_of_bytes():
    return np.array([format(value, "08b").count("0") for value in range(256)])


# %% wrong table: numpy.bitwise_count does the whole task
def ones_of_bytes():
    if not hasattr(np, "bitwise_count"):
        raise AssertionError("numpy.bitwise_count does the whole task: not in 1.26.")
    return np.bitwise_count(np.arange(256, dtype=np.uint8)).astype(int)


# %% wrong table: the number of bytes that differ, not of bits
def hamming(Q, D):
    return (Q[:, None] != D[None]).sum(axis=2)


# %% wrong table: these are the ones that both codes have \(&\)
swap("(Q[:, None] != D[None])", "ones_of_bytes()[Q[:, None] & D[None]]")

# %% wrong table: \(\|\); XOR is \^
swap("(Q[:, None] != D[None])", "ones_of_bytes()[Q[:, None] | D[None]]")

# %% wrong table: look each up in the table first
swap("!= D[None]).sum(axis=2", "^ D[None]).sum(axis=2).astype(np.int64")

# %% wrong table: a row for each query, a column for each item
swap("(Q[:, None] != D[None])", "ones_of_bytes()[D[:, None] ^ Q[None]]")

# %% wrong table: sum over the bytes, the last axis
swap("(Q[:, None] != D[None]).sum(axis=2", "ones_of_bytes()[Q[:, None] ^ D[None]].sum(axis=1")


# %% wrong table: uint64, and int64 is needed.*The sum of an array of uint8
def hamming(Q, D):
    table = ones_of_bytes().astype(np.uint8)
    return table[Q[:, None] ^ D[None]].sum(axis=2)


# %% wrong table: query 0, item 1: .*XOR first, then the table, then the sum
def hamming(Q, D):
    # Right only for the first item, which the old check printed.
    distances = ones_of_bytes()[Q[:, None] ^ D[None]].sum(axis=2)
    distances[:, 1:] += 1
    return distances


# %% right table: strings, and a loop over queries
def ones_of_bytes():
    return [bin(value).count("1") for value in range(256)]


def hamming(Q, D):
    table = np.array(ones_of_bytes())
    return np.array([table[query ^ D].sum(axis=1) for query in Q])


# %% right table: doubling, and small types inside
def ones_of_bytes():
    table = np.zeros(1, np.uint8)
    while len(table) < 256:
        table = np.concatenate([table, table + 1])
    return table.astype(np.uint8)


def hamming(Q, D):
    different = np.bitwise_xor(Q[:, np.newaxis, :], D)
    return np.take(ones_of_bytes(), different).sum(axis=-1, dtype=np.int64)


# %% right table: the bits again, no table
def hamming(Q, D):
    different = np.unpackbits(Q[:, None] ^ D[None], axis=2)
    return different.sum(axis=2, dtype=int)


# %% right popcount: what the next ones change
@njit
def popcount(x):
    x = x - ((x >> ONE) & M1)
    x = (x & M2) + ((x >> TWO) & M2)
    x = (x + (x >> FOUR)) & M4
    return (x * BYTES) >> TOP


# %% wrong popcount: after the first three steps x must be
swap("x = (x & M2) + ((x >> TWO) & M2)", "x = (x + (x >> TWO)) & M2")

# %% wrong popcount: the sum is in the top byte; shift it down by TOP
swap("return (x * BYTES) >> TOP", "return x * BYTES")

# %% wrong popcount: the eight bytes are not added up
swap("x = (x + (x >> FOUR)) & M4\n    return (x * BYTES) >> TOP", "return (x + (x >> FOUR)) & M4")


# %% wrong popcount: combine x only with uint64
@njit
def popcount(x):
    n = 0
    while x:
        x = x & (x - 1)
        n += 1
    return n


# %% wrong popcount: is not compiled, and 5.4 needs it compiled
def popcount(x):
    return int(x).bit_count()


# %% wrong popcount: only the lower 32 bits are counted
@njit
def popcount(x):
    n = 0
    for k in range(32):
        n += (x >> np.uint64(k)) & ONE
    return n


# %% wrong popcount: stops.*NameError: name 'M3' is not defined
@njit
def popcount(x):
    return x - ((x >> ONE) & M3)


# %% wrong popcount: stops: TypeError: not enough arguments
swap("def popcount(x):", "def popcount(x, M3):")


# %% right popcount: remove the last one
@njit
def popcount(x):
    n = np.uint64(0)
    while x > 0:
        x = x & (x - ONE)
        n += ONE
    return n


# %% right popcount: add the fields until one is left
@njit
def popcount(x):
    x = (x & M1) + ((x >> ONE) & M1)
    x = (x & M2) + ((x >> TWO) & M2)
    x = (x & M4) + ((x >> FOUR) & M4)
    x = x + (x >> np.uint64(8))
    x = x + (x >> np.uint64(16))
    x = x + (x >> np.uint64(32))
    return x & np.uint64(0x7F)


# %% wrong words: only the first word is counted
@njit
def hamming_words(Q, D, out):
    for i in range(len(Q)):
        for j in range(len(D)):
            out[i, j] = popcount(Q[i, 0] ^ D[j, 0])


# %% wrong words: only the last word is counted
@njit
def hamming_words(Q, D, out):
    for i in range(len(Q)):
        for j in range(len(D)):
            for k in range(Q.shape[1]):
                out[i, j] = popcount(Q[i, k] ^ D[j, k])


# %% wrong words: -1 was never written
@njit
def hamming_words(Q, D, out):
    for i in range(len(Q)):
        for j in range(len(Q)):
            d = np.uint64(0)
            for k in range(Q.shape[1]):
                d += popcount(Q[i, k] ^ D[j, k])
            out[i, j] = d


# %% wrong words: the sum must start at 0 for every item, not only for every query
swap("for j in range(len(Q)):", "d = np.uint64(0)")
swap("         d = np.uint64(0)", "     for j in range(len(D)):")

# %% wrong words: the ones that both have \(&\); XOR is \^
swap("for j in range(len(Q)):", "for j in range(len(D)):")
swap("d += popcount(Q[i, k] ^ D[j, k])", "d += popcount(Q[i, k] & D[j, k])")

# %% wrong words: out has a row for each query and a column for each
swap("for j in range(len(Q)):", "for j in range(len(D)):")
swap("out[i, j] = d", "out[j, i] = d")


# %% wrong words: numba cannot compile hamming_words.*Q and D have a column for each
swap("for j in range(len(Q)):", "for j in range(len(D)):")
swap("out[i, j] = d", "out[i, j] = sum(popcount(a ^ b) for a, b in zip(Q[i], D[j]))")


# %% wrong words: out is unchanged
@njit
def hamming_words(Q, D, out):
    out = np.zeros((len(Q), len(D)), np.int64)
    for i in range(len(Q)):
        for j in range(len(D)):
            d = np.uint64(0)
            for k in range(Q.shape[1]):
                d += popcount(Q[i, k] ^ D[j, k])
            out[i, j] = d


# %% wrong words: out held -1 before, and you add to that
@njit
def hamming_words(Q, D, out):
    for i in range(len(Q)):
        for j in range(len(D)):
            for k in range(Q.shape[1]):
                out[i, j] += np.int64(popcount(Q[i, k] ^ D[j, k]))


# %% right words: after a wrong popcount
@njit
def popcount(x):
    return x


@njit
def hamming_words(Q, D, out):
    n, w = Q.shape
    for j in range(len(D)):
        for i in range(n):
            out[i, j] = 0
            for k in range(w):
                out[i, j] += np.int64(popcount(Q[i, k] ^ D[j, k]))


# %% right words: two words, written out
@njit
def hamming_words(Q, D, out):
    for i in range(out.shape[0]):
        a = Q[i, 0]
        b = Q[i, 1]
        for j in range(out.shape[1]):
            out[i, j] = popcount(a ^ D[j, 0]) + popcount(b ^ D[j, 1])


# %% wrong table: hamming returns nothing
def hamming(Q, D):
    ones_of_bytes()[Q[:, None] ^ D[None]].sum(axis=2)
