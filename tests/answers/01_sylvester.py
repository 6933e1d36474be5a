"""Answers of students to the checks of 01_sylvester. The format is in test_exercises.py."""


# %% right sylvester: Kronecker products
def sylvester(k):
    H = np.array([[1]])
    for _ in range(k):
        H = np.kron([[1, 1], [1, -1]], H)
    return H


# %% wrong sylvester: sylvester\(1\) is \[\[1, 1\], \[-1, 1\]\].*only the lower right block
swap("H = np.kron([[1, 1], [1, -1]], H)", "H = np.block([[H, H], [-H, H]])")

# %% wrong sylvester: k is the number of doublings, not the order
swap("for _ in range(k):", "while len(H) < k:")
swap("H = np.kron([[1, 1], [1, -1]], H)", "H = np.block([[H, H], [H, -H]])")

# %% wrong sylvester: integer array is needed
swap("H = np.array([[1]])", "H = np.ones((1, 1))")
swap("H = np.kron([[1, 1], [1, -1]], H)", "H = np.block([[H, H], [H, -H]])")

# %% wrong sylvester: only \+1 and -1 are allowed
swap("H = np.kron([[1, 1], [1, -1]], H)", "H = np.block([[H, H], [H, 1 - H]])")

# %% wrong sylvester: a Hadamard matrix, but not Sylvester's
swap("for _ in range(k):", "for step in range(k):")
swap("kron([[1, 1], [1, -1]], H", "block([[H, H], [H, -H]] if step == 0 else [[H, -H], [H, H]]")


# %% wrong sylvester: only the lower right block has a minus sign
def sylvester(k):
    return np.ones((2**k, 2**k), int)


# %% wrong sylvester: every block is the whole matrix of the step before
def sylvester(k):
    H = np.array([[1]])
    for _ in range(k):
        size = len(H)
        H = np.block([[H, H], [H, H]])
        H[size, size] *= -1
    return H


# %% wrong sylvester: hmoh.hadamard does the whole task
def sylvester(k):
    return hadamard(2**k)


# %% wrong sylvester: scipy.linalg.hadamard does the whole task: build it yourself
def sylvester(k):
    from scipy.linalg import hadamard as of_scipy

    return of_scipy(2**k)


# %% right sylvester: recursion, bytes
def sylvester(k):
    if k == 0:
        return np.ones((1, 1), np.int8)
    half = sylvester(k - 1)
    upper = np.hstack([half, half])
    lower = np.hstack([half, -half])
    return np.vstack([upper, lower])


# %% right sylvester: nested lists
def sylvester(k):
    rows = [[1]]
    for _ in range(k):
        rows = [row + row for row in rows] + [row + [-x for x in row] for row in rows]
    return rows


# %% right entry: text of the binary number
def entry(i, j):
    return (-1) ** format(i & j, "b").count("1")


# %% wrong entry: the exponent is i j, the misprint of Eq. 8
swap('return (-1) ** format(i & j, "b").count("1")', "return (-1) ** (i * j)")

# %% wrong entry: it is i & j itself, whose ones are not counted
swap('format(i & j, "b").count("1"', "(i & j")

# %% wrong entry: bit_count is a method, so call it with brackets
swap('format(i & j, "b").count("1"', "((i & j).bit_count % 2")

# %% wrong entry: counts the ones of j first. Put i & j in brackets
swap('format(i & j, "b").count("1"', "(i & j.bit_count()")

# %% wrong entry: Python computes 2 \* n first
swap('(-1) ** format(i & j, "b").count("1")', "1 - 2 * (i & j).bit_count() % 2")

# %% wrong entry: = 0, but an entry is \+1 or -1: the number of common places.*matters.$
swap('return (-1) ** format(i & j, "b").count("1")', "return (i & j).bit_count() % 2")

# %% wrong entry: where i or j has a 1
swap('return (-1) ** format(i & j, "b").count("1")', "return (-1) ** (i | j).bit_count()")

# %% wrong entry: the places where they differ
swap('return (-1) ** format(i & j, "b").count("1")', 'return (-1) ** bin(i ^ j).count("1")')

# %% wrong entry: the number of ones of i by that of j
swap('format(i & j, "b").count("1"', "(i.bit_count() * j.bit_count()")

# %% wrong entry: the opposite
swap('return (-1) ** format(i & j, "b").count("1")', "return 1 if (i & j).bit_count() % 2 else -1")

# %% wrong entry: counted from 0, so subtract nothing
swap('format(i & j, "b").count("1"', "((i - 1) & (j - 1)).bit_count(")

# %% wrong entry: hmoh.hadamard does the whole task
swap('(-1) ** format(i & j, "b").count("1")', "hadamard(2 ** max(i, j).bit_length())[i, j]")


# %% wrong entry: = 255, but an entry is \+1 or -1: 255 is what 1 - 2 gives
def entry(i, j):
    odd = np.array([(i & j).bit_count() % 2], np.uint8)
    return (1 - 2 * odd)[0]


# %% wrong entry: right below 64.*count all places, however many
def entry(i, j):
    common = sum((i >> place & 1) * (j >> place & 1) for place in range(6))
    return (-1) ** common


# %% wrong entry: entry builds a matrix
def entry(i, j):
    k = max(i, j).bit_length()
    return sylvester(k)[i, j]


# %% wrong entry: in binary i is 10 and j is 11; number of places with a 1 in both: 1
def entry(i, j):
    return -1 if i & j & 1 or (i == j != 0 and (i & j).bit_count() % 2) else 1


# %% right entry: recursion on the last place
def entry(i, j):
    if i == 0 or j == 0:
        return 1
    sign = -1 if i % 2 and j % 2 else 1
    return sign * entry(i // 2, j // 2)


# %% right entry: clear the last one
def entry(i, j):
    sign = 1
    common = i & j
    while common:
        common &= common - 1
        sign = -sign
    return sign


# %% right entry: a float
def entry(i, j):
    return float(np.prod([-1.0 if digit == "1" else 1.0 for digit in bin(i & j)[2:]]))


# %% right distances: floats
def distances(C):
    C = C.astype(float)
    return (C.shape[0] - C.T @ C) / 2


# %% wrong distances: overflow: int8 holds at most 127
swap("C = C.astype(float)\n    return (C.shape[0] - C.T @ C) / 2", "return (len(C) - C.T @ C) // 2")

# %% wrong distances: overflow: int8 holds at most 127
swap("C = C.astype(float)", "# Overflows only from 128 places on.")
swap("return (C.shape[0] - C.T @ C) / 2", "return (len(C) - (C.T @ C).astype(int)) // 2")

# %% wrong distances: overflow: int8 holds at most 127
swap("C = C.astype(float)", "ones = (C > 0).astype(np.uint8)")
swap("return (C.shape[0] - C.T @ C) / 2", "return ones.T @ (1 - ones) + (1 - ones).T @ ones")

# %% wrong distances: codes are the columns
swap("C = C.astype(float)", "C = C.astype(int)")
swap("return (C.shape[0] - C.T @ C) / 2", "return (C.shape[1] - C @ C.T) // 2")

# %% wrong distances: these are inner products
swap("C = C.astype(float)\n    return (C.shape[0] - C.T @ C) / 2", "return C.T.astype(int) @ C")

# %% wrong distances: twice the distance
swap("C = C.astype(float)", "C = C.astype(int)")
swap("return (C.shape[0] - C.T @ C) / 2", "return len(C) - C.T @ C")

# %% wrong distances: counts the places that are equal
swap("C = C.astype(float)", "C = C.astype(int)")
swap("return (C.shape[0] - C.T @ C) / 2", "return (len(C) + C.T @ C) // 2")

# %% right distances: squared Euclidean distance
swap("C = C.astype(float)", "points = C.T.astype(int)")
swap("C.shape[0] - C.T @ C) / 2", "(points[:, None] - points[None]) ** 2).sum(axis=2) // 4")

# %% right distances: einsum
swap("C = C.astype(float)", 'inner = np.einsum("ka,kb->ab", C, C, dtype=np.int64)')
swap("return (C.shape[0] - C.T @ C) / 2", "return (C.shape[0] - inner) // 2")


# %% right distances: comparison, no product
def distances(C):
    return (C[:, :, None] != C[:, None, :]).sum(axis=0)


# %% wrong distances: has shape \(3, 5\)
swap("[:, :, None] != C[:, None, :]).sum(axis=0", ".T[:, :, None] != C.T[:, None, :]).sum(axis=1")


# %% right distances: loops and lists
def distances(C):
    columns = C.T.tolist()
    return [[sum(x != y for x, y in zip(a, b)) for b in columns] for a in columns]


# %% right plotkin: what the next ones change
def plotkin(L, r):
    return r * L // (2 * (L - 1))


# %% wrong plotkin: this is the bound itself; round it down
swap("return r * L // (2 * (L - 1))", "return r * L / (2 * (L - 1))")

# %% wrong plotkin: the number of pairs has L - 1, not L
swap("return r * L // (2 * (L - 1))", "return r * L // (2 * L)")

# %% wrong plotkin: this is rounded up
swap("return r * L // (2 * (L - 1))", "return -(-r * L // (2 * (L - 1)))")

# %% wrong plotkin: rounded up or to the nearest
swap("return r * L // (2 * (L - 1))", "return round(r * L / (2 * (L - 1)))")

# %% wrong plotkin: the first argument is the number of codes
swap("def plotkin(L, r):", "def plotkin(r, L):")

# %% wrong plotkin: note the brackets
swap("return r * L // (2 * (L - 1))", "return r * L // 2 * (L - 1)")

# %% wrong plotkin: round r L / \(2 \(L - 1\)\) down
swap("return r * L // (2 * (L - 1))", "return r // 2 * L // (L - 1)")


# %% right plotkin: floor of a float
def plotkin(n, r):
    return np.floor(r * n / (2 * (n - 1)))


# %% right plotkin: sharper for an odd number of codes
def plotkin(L, r):
    # One place adds at most this. For even L it is L**2 / 4.
    most = (L // 2) * (L - L // 2)
    return r * most // (L * (L - 1) // 2)


# %% right plotkin: mean over pairs
def plotkin(L, r):
    pairs = L * (L - 1) // 2
    return int(r * L**2 / 4 / pairs)


# %% wrong sylvester: returns nothing
def sylvester(k):
    H = np.array([[1]])
    for _ in range(k):
        H = np.block([[H, H], [H, -H]])


# %% wrong distances: returns nothing
def distances(C):
    print((len(C) - C.T @ C) // 2)


# %% wrong plotkin: right for all L and r
def plotkin(L, r):
    known = {(10, 64): 35, (10, 8): 4, (2, 8): 8, (16, 16): 8, (32, 32): 16, (3, 9): 6, (2, 7): 7}
    return known.get((L, r), 0)
