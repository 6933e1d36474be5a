"""Answers of students to the checks of 02_target_codes. The format is in test_exercises.py."""


# %% wrong order: 8 columns are too few for 10 classes
def order(r, L):
    n = 2
    while n < r:
        n *= 2
    return n


# %% wrong order: 8 columns are too few for 10 classes
swap("while n < r:", "while n < r and n < L:")

# %% wrong order: a column of 16 places is too short for 48 bits
swap("while n < r:", "while n < L:")

# %% wrong order: 16 is smaller and large enough
swap("while n < r:", "while n <= r or n <= L:")


# %% right order: bit length
def order(r, L):
    return max(2, 1 << (max(r, L) - 1).bit_length())


# %% wrong order: only 2, 4, 8, ... are orders
swap("return max(2, 1 << (max(r, L) - 1).bit_length())", "return max(r, L)")

# %% wrong order: order\(1, 1\) = 1.*only 2, 4, 8, ... are orders here, as k starts at 1
swap("max(2, 1 << (max(r, L) - 1).bit_length(", "2 ** int(np.ceil(np.log2(max(r, L))")

# %% right order: logarithm
swap("max(2, 1 << (max(r, L) - 1).bit_length(", "2 ** max(1, int(np.ceil(np.log2(max(r, L)))")


# %% wrong order: this is k; the order is 2\*\*k = 16
def order(r, L):
    k = 1
    while 2**k < max(r, L):
        k += 1
    return k


# %% right order: first that fits
def order(r, L):
    return next(2**k for k in range(1, 100) if r <= 2**k >= L)


# %% right order: recursion
def order(r, L, n=2):
    return n if n >= max(r, L) else order(r, L, 2 * n)


# %% right align: the transposed product
def align(C, W):
    return np.where((W.T @ C).T > 0, 1, -1).astype(np.int8)


# %% wrong align: sign\(0\) is 0
swap("return np.where((W.T @ C).T > 0, 1, -1).astype(np.int8)", "return np.sign(C.T @ W)")

# %% wrong align: sign\(0\) is 1
swap("(W.T @ C).T > 0, 1, -1).astype(np.int8", "C.T @ W >= 0, 1, -1")

# %% wrong align: shape \(8, 10\).*a row for each class
swap("(W.T @ C).T > 0, 1, -1).astype(np.int8", "W.T @ C > 0, 1, -1")

# %% wrong align: only \+1 and -1 are allowed
swap("return np.where((W.T @ C).T > 0, 1, -1).astype(np.int8)", "return C.T @ W > 0")

# %% wrong align: only \+1 and -1 are allowed
swap("return np.where((W.T @ C).T > 0, 1, -1).astype(np.int8)", "return C.T @ W")

# %% wrong align: the opposite of Eq. 11
swap("(W.T @ C).T > 0, 1, -1).astype(np.int8", "C.T @ W > 0, -1, 1")

# %% wrong align: without rounding
swap("W.T @ C).T > 0, 1, -1).astype(np.int8", "C.T @ W).astype(int) > 0, 1, -1")


# %% wrong align: reshape does not turn columns into rows
def align(C, W):
    T = np.where(W.T @ C > 0, 1, -1)
    return T.reshape(C.shape[1], W.shape[1])


# %% right align: loops
def align(C, W):
    T = -np.ones((C.shape[1], W.shape[1]))
    for label in range(C.shape[1]):
        for k in range(W.shape[1]):
            if W[:, k] @ C[:, label] > 0:
                T[label, k] = 1
    return T


# %% right align: arithmetic with bools
def align(C, W):
    return 2 * (np.einsum("il,ik->lk", C, W) > 0) - 1


# %% right align: lists
def align(C, W):
    return [[1 if x > 0 else -1 for x in c @ W] for c in C.T]


# %% wrong balance: r\* of ten classes, but the aligned code has r bits
def probability_of_balance(r):
    n = order(r, 10)
    return comb(n, n // 2) / 2**n


# %% right balance: product of odd over even
def probability_of_balance(r):
    return prod((2 * k - 1) / (2 * k) for k in range(1, r // 2 + 1))


# %% wrong balance: the Gaussian that approximates it; the binomial
swap("prod((2 * k - 1) / (2 * k) for k in range(1, r // 2 + 1)", "1 / np.sqrt(2 * np.pi * r / 4")

# %% wrong balance: divide by the number of all codes
swap("return prod((2 * k - 1) / (2 * k) for k in range(1, r // 2 + 1))", "return comb(r, r // 2)")

# %% wrong balance: the probability of one code; multiply
swap("prod((2 * k - 1) / (2 * k) for k in range(1, r // 2 + 1)", "0.5 ** (r // 2) * 0.5 ** (r // 2")

# %% wrong balance: count the balanced codes among all codes
swap("return prod((2 * k - 1) / (2 * k) for k in range(1, r // 2 + 1))", "return 0.5")


# %% wrong balance: the Gaussian that approximates it, between
def probability_of_balance(r):
    from statistics import NormalDist

    sums = NormalDist(r / 2, np.sqrt(r) / 2)
    return sums.cdf(r / 2 + 0.5) - sums.cdf(r / 2 - 0.5)


# %% wrong balance: at most half of the bits, not exactly half
def probability_of_balance(r):
    return sum(comb(r, k) for k in range(r // 2 + 1)) / 2**r


# %% wrong balance: count the balanced codes among all codes
def probability_of_balance(r):
    rng = np.random.default_rng(0)
    return np.mean((rng.random((4000, r)) < 0.5).sum(axis=1) == r // 2)


# %% right balance: logarithms of factorials
def probability_of_balance(r):
    from math import exp, lgamma, log

    return exp(lgamma(r + 1) - 2 * lgamma(r / 2 + 1) - r * log(2))


# %% right balance: the walk of a sum, step by step
def probability_of_balance(r):
    share = np.array([1.0])
    for _ in range(r):
        share = np.convolve(share, [0.5, 0.5])
    return share[r // 2]


# %% right balance: after a wrong order and a wrong align
def order(r, L):
    return 3


def align(C, W):
    return np.ones((C.shape[1], W.shape[1]))


def probability_of_balance(r):
    return comb(r, r // 2) * 0.5**r


# %% wrong collision: the sum over all pairs \(the union bound\)
def collision(r, L):
    return min(1, L * (L - 1) / 2 / 2**r)


# %% wrong collision: the sum over all pairs \(the union bound\)
swap("return min(1, L * (L - 1) / 2 / 2**r)", "return sum(range(L)) / 2**r")

# %% wrong collision: an approximation
swap("return min(1, L * (L - 1) / 2 / 2**r)", "return 1 - np.exp(-L * (L - 1) / 2 ** (r + 1))")

# %% wrong collision: takes the pairs as independent
swap("return min(1, L * (L - 1) / 2 / 2**r)", "return 1 - (1 - 1 / 2**r) ** comb(L, 2)")

# %% wrong collision: the probability that all differ
swap("return min(1, L * (L - 1) / 2 / 2**r)", "return prod((2**r - i) / 2**r for i in range(L))")

# %% wrong collision: one factor is missing
swap("min(1, L * (L - 1) / 2 / 2**r", "1 - prod((2**r - i) / 2**r for i in range(1, L - 1)")

# %% wrong collision: one factor is too many
swap("min(1, L * (L - 1) / 2 / 2**r", "1 - prod((2**r - i) / 2**r for i in range(L + 1)")

# %% wrong collision: there are 2\*\*r codes, not 2 r
swap("min(1, L * (L - 1) / 2 / 2**r", "1 - prod((2 * r - i) / (2 * r) for i in range(L)")

# %% wrong collision: there are 2\*\*r codes, not r\*\*2
swap("min(1, L * (L - 1) / 2 / 2**r", "1 - prod((r**2 - i) / r**2 for i in range(L)")

# %% wrong collision: this is for two codes
swap("return min(1, L * (L - 1) / 2 / 2**r)", "return 1 / 2**r")

# %% wrong collision: the birthday problem
swap("min(1, L * (L - 1) / 2 / 2**r", "1 - prod((2**r - i) / 2**r for i in range(L - 4)")


# %% right collision: factorials
def collision(r, L):
    from math import perm

    return 1 - perm(2**r, L) / 2 ** (r * L)


# %% right collision: first collision at code i
def collision(r, L):
    different = 1.0
    collides = 0.0
    for i in range(L):
        collides += different * i / 2**r
        different *= 1 - i / 2**r
    return collides


# %% right collision: numpy, after a wrong align
def align(C, W):
    return np.ones((C.shape[1], W.shape[1]))


def collision(r, L):
    return 1 - np.prod(1 - np.arange(L) / 2**r)


# %% wrong order: returns nothing
def order(r, L):
    n = 2
    while n < max(r, L):
        n *= 2


# %% wrong collision: right for all r and L
def collision(r, L):
    known = {(3, 4): 0.58984375, (2, 2): 0.25, (1, 3): 1, (3, 8): 0.9975967407226562}
    return known.get((r, L), 0.16305487791028817)


# %% wrong balance: returns nothing
def probability_of_balance(r):
    comb(r, r // 2) / 2**r
