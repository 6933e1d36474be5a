"""Answers of students to the checks of 10_kernel. The format is in test_exercises.py."""


# %% wrong bandwidth: is a sum over p
def bandwidth(X, m, divisor):
    return np.mean((X[m:, None] - X[None, :m]) ** 2) / divisor


# %% wrong bandwidth: with the anchor's distance 0 to itself
swap("(X[m:, None] - X[None, :m]) ** 2", "[((X - a) ** 2).sum(axis=1) for a in X[:m]]")

# %% wrong bandwidth: divide by their number
swap("np.mean((X[m:, None] - X[None, :m]) ** 2", "sum(((X[m:] - a) ** 2).sum() for a in X[:m]")

# %% wrong bandwidth: with divisor 2 .* divide by it
swap("(X[m:, None] - X[None, :m]) ** 2) /", "[((X[m:] - a) ** 2).sum(axis=1) for a in X[:m]]) *")

# %% wrong bandwidth: every anchor is paired with every other row
swap("np.mean((X[m:, None] - X[None, :m]) ** 2", "((X[m:] - X[0]) ** 2).sum(axis=1).mean(")

# %% wrong bandwidth: kernels.RBF does the whole task
swap("np.mean((X[m:, None] - X[None, :m]) ** 2) / divisor", "RBF(m, divisor=divisor).fit(X).eta2_")


# %% wrong bandwidth: take no root
def bandwidth(X, m, divisor):
    squared = [((X[m:] - a) ** 2).sum(axis=1) for a in X[:m]]
    return np.sqrt(np.mean(squared) / divisor)


# %% wrong bandwidth: square each distance before the mean
def bandwidth(X, m, divisor):
    lengths = [np.linalg.norm(X[m:] - a, axis=1) for a in X[:m]]
    return np.mean(lengths) ** 2 / divisor


# %% wrong bandwidth: every anchor is paired with every other row
def bandwidth(X, m, divisor):
    # The distance to the mean anchor leaves out how the anchors differ.
    return ((X[m:] - X[:m].mean(axis=0)) ** 2).sum(axis=1).mean() / divisor


# %% wrong bandwidth: one number is needed
def bandwidth(X, m, divisor):
    return np.array([((X[m:] - a) ** 2).sum(axis=1).mean() for a in X[:m]]) / divisor


# %% right bandwidth: all pairs at once
def bandwidth(X, m, divisor):
    return ((X[m:, None] - X[None, :m]) ** 2).sum(axis=2).mean() / divisor


# %% right bandwidth: two means, by the theorem of Huygens and Steiner
def bandwidth(X, m, divisor):
    X = X.astype(float)
    origin = X[:m].mean(axis=0)
    of_rows = ((X[m:] - origin) ** 2).sum(axis=1).mean()
    of_anchors = ((X[:m] - origin) ** 2).sum(axis=1).mean()
    return (of_rows + of_anchors) / divisor


# %% right bandwidth: plain loops over everything
def bandwidth(X, m, divisor):
    total = 0
    pairs = 0
    for x in X[m:]:
        for a in X[:m]:
            total += float(np.dot(x - a, x - a))
            pairs += 1
    return total / pairs / divisor


# %% right rbf: what the next ones change
def rbf(X, A, eta2):
    squared = ((X[:, None] - A[None]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * eta2)).astype(np.float32)


# %% wrong rbf: the 2 in 2 eta\^2 is missing
swap("(2 * eta2)", "eta2")

# %% wrong rbf: need not be squared
swap("/ (2 * eta2", "/ (2 * eta2**2")

# %% wrong rbf: the minus sign is missing
swap("-squared /", "squared /")

# %% wrong rbf: but \|x - a\|\^2 is their sum
swap(") ** 2).sum", ") ** 2).mean")

# %% wrong rbf: the root of eta2 is taken
swap("/ (2 * eta2", "/ (2 * math.sqrt(eta2)")


# %% wrong rbf: take no root
def rbf(X, A, eta2):
    return np.exp(-np.linalg.norm(X[:, None] - A[None], axis=2) / (2 * eta2)).astype(np.float32)


# %% wrong rbf: a column for each anchor
def rbf(X, A, eta2):
    Z = np.empty((len(A), len(X)), np.float32)
    for i in range(len(X)):
        for j in range(len(A)):
            Z[j, i] = np.exp(-((X[i] - A[j]) ** 2).sum() / (2 * eta2))
    return Z


# %% wrong rbf: float32 is needed
def rbf(X, A, eta2):
    Z = np.empty((len(X), len(A)))
    for i in range(len(X)):
        for j in range(len(A)):
            Z[i, j] = math.exp(-((X[i] - A[j]) ** 2).sum() / (2 * eta2))
    return Z


# %% wrong rbf: no factor before exp
def rbf(X, A, eta2):
    # The constant of a density does not belong here; with eta^2 = 8 it is 1/4 or near it.
    squared = ((X[:, None] - A[None]) ** 2).sum(axis=2)
    return (np.exp(-squared / (2 * eta2)) / (2 * eta2) ** 0.5).astype(np.float32)


# %% right rbf: one row at a time
def rbf(X, A, eta2):
    rows = [np.exp(-((x - A) ** 2).sum(axis=1) / (2 * eta2)) for x in X]
    return np.array(rows, np.float32)


# %% right rbf: a product of exponentials
def rbf(X, A, eta2):
    Z = np.ones((len(X), len(A)))
    for k in range(X.shape[1]):
        Z *= np.exp(-((X[:, None, k] - A[None, :, k]) ** 2) / (2 * eta2))
    return Z.astype(np.float32)


# %% wrong compiled: IndexError.*loop over len\(X\), len\(A\) and X.shape\[1\]
@njit
def rbf_compiled(X, A, eta2, Z):
    for i in range(len(X)):
        for j in range(X.shape[1]):
            squared = np.float32(0)
            for k in range(X.shape[1]):
                squared += (X[i, k] - A[j, k]) ** 2
            Z[i, j] = math.exp(-squared / (2 * eta2))


# %% wrong compiled: the sum goes on from the pair before
swap("for i in range(len(X)):", "squared = np.float32(0)\n    for i in range(len(X)):")
swap("for j in range(X.shape[1]):\n            squared = np.float32(0)", "for j in range(len(A)):")

# %% wrong compiled: the sum goes on from the anchor before
swap("for j in range(X.shape[1]):", "squared = np.float32(0)")
swap("         squared = np.float32(0)", "     for j in range(len(A)):")

# %% wrong compiled: see the minus sign
swap("for j in range(X.shape[1]):", "for j in range(len(A)):")
swap("squared += (X[i, k] - A[j, k]) ** 2", "squared -= (X[i, k] - A[j, k]) ** 2")

# %% wrong compiled: the 2 in 2 eta\^2 is missing
swap("for j in range(X.shape[1]):", "for j in range(len(A)):")
swap("Z[i, j] = math.exp(-squared / (2 * eta2))", "Z[i, j] = math.exp(-squared / eta2)")


# %% wrong compiled: nothing must be
@njit
def rbf_compiled(X, A, eta2, Z):
    Z = np.empty((len(X), len(A)), np.float32)
    for i in range(len(X)):
        for j in range(len(A)):
            squared = np.float32(0)
            for k in range(X.shape[1]):
                squared += (X[i, k] - A[j, k]) ** 2
            Z[i, j] = math.exp(-squared / (2 * eta2))
    return Z


# %% wrong compiled: 15 of 15 entries of Z were not written
@njit
def rbf_compiled(X, A, eta2, Z):
    Z = np.zeros((len(X), len(A)), np.float32)
    for i in range(len(X)):
        for j in range(len(A)):
            squared = ((X[i] - A[j]) ** 2).sum()
            Z[i, j] = math.exp(-squared / (2 * eta2))


# %% right compiled: rows and sums, by numpy inside the loop
@njit
def rbf_compiled(X, A, eta2, Z):
    for i in range(len(X)):
        for j in range(len(A)):
            Z[i, j] = np.exp(-np.sum((X[i] - A[j]) ** 2) / (2 * eta2))


# %% right compiled: anchors outside, a factor computed once
@njit(fastmath=True)
def rbf_compiled(X, A, eta2, Z):
    factor = -0.5 / eta2
    for j in range(A.shape[0]):
        for i in range(X.shape[0]):
            total = 0.0
            for k in range(A.shape[1]):
                total += (A[j, k] - X[i, k]) ** 2
            Z[i, j] = math.exp(factor * total)


# %% right sweep: what the next ones change
def sweep(divisors):
    scores = []
    for divisor in divisors:
        feature_map = RBF(100, divisor=divisor).fit(X)
        model = HMOH(32, random_state=0).fit(feature_map.transform(X), labels)
        scores.append(score(model, feature_map))
    return scores


# %% wrong sweep: is the divisor passed to RBF
swap("feature_map = RBF(100, divisor=divisor).fit(X)", "feature_map = RBF(100).fit(X)")

# %% wrong sweep: 100 anchors, 32 bits
swap("100, divisor", "300, divisor")
swap("32, random_state", "16, random_state")

# %% wrong sweep: in the reverse order
swap("scores.append(score(model, feature_map))", "scores.insert(0, score(model, feature_map))")


# %% wrong sweep: a list of two numbers is needed
def sweep(divisors):
    for divisor in divisors:
        feature_map = RBF(100, divisor=divisor).fit(X)
        model = HMOH(32, random_state=0).fit(feature_map.transform(X), labels)
        return score(model, feature_map)


# %% right sweep: an array from a comprehension, with fit_transform
def sweep(divisors):
    def one(divisor):
        feature_map = RBF(n_anchors=100, divisor=divisor)
        Z = feature_map.fit_transform(X)
        return score(
            HMOH(n_bits=32, random_state=0).partial_fit(Z, labels, range(10)),
            feature_map,
        )

    return np.array([one(divisor) for divisor in divisors])


# %% right product: what the next ones change
def rbf_product(X, A, eta2):
    squared = (X**2).sum(axis=1)[:, None] - 2 * X @ A.T + (A**2).sum(axis=1)
    return np.exp(-squared / (2 * eta2)).astype(np.float32)


# %% wrong product: the factor 2 of x.a is missing
swap("None] - 2 *", "None] -")

# %% wrong product: the sign of 2 x.a must be minus
swap("None] - 2 *", "None] + 2 *")

# %% wrong product: \|a\|\^2 is missing
swap(" + (A**2).sum(axis=1)", "")

# %% wrong product: float32\[400, 100\] is needed
swap(" / (2 * eta2)).astype(np.float32", ".astype(float) / (2 * eta2)")


# %% wrong product: need no root
def rbf_product(X, A, eta2):
    lengths = np.linalg.norm(X, axis=1)
    squared = lengths[:, None] - 2 * X @ A.T + np.linalg.norm(A, axis=1)
    return np.exp(-squared / (2 * eta2)).astype(np.float32)


# %% wrong product: no loop over rows
def rbf_product(X, A, eta2):
    Z = np.empty((len(X), len(A)), np.float32)
    for i, x in enumerate(X):
        Z[i] = np.exp(-((x - A) ** 2).sum(axis=1) / (2 * eta2))
    return Z


# %% wrong product: all n m p differences is too large
def rbf_product(X, A, eta2):
    return np.exp(-((X[:, None] - A) ** 2).sum(axis=2) / (2 * eta2))


# %% wrong product: kernels.RBF does the whole task
def rbf_product(X, A, eta2):
    feature_map = RBF(len(A))
    feature_map.fit(A)
    feature_map.eta2_ = eta2
    return feature_map.transform(X)


# %% right product: in blocks of rows, with einsum
def rbf_product(X, A, eta2):
    Z = np.empty((len(X), len(A)), np.float32)
    a_squared = np.einsum("jk,jk->j", A, A)
    for start in range(0, len(X), 100):
        x = X[start : start + 100]
        squared = np.einsum("ik,ik->i", x, x)[:, None] + a_squared - 2 * np.dot(x, A.T)
        Z[start : start + 100] = np.exp(squared / (-2 * eta2))
    return Z


# %% right product: one product of longer rows
def rbf_product(X, A, eta2):
    ones_x = np.ones((len(X), 1), np.float32)
    ones_a = np.ones((len(A), 1), np.float32)
    left = np.hstack([-2 * X, (X * X).sum(1, keepdims=True), ones_x])
    right = np.hstack([A, ones_a, (A * A).sum(1, keepdims=True)])
    return np.exp(-(left @ right.T) / np.float32(2 * eta2))


# %% right product: three factors
def rbf_product(X, A, eta2):
    of_x = np.exp(-(X**2).sum(axis=1, dtype=float) / (2 * eta2))
    of_a = np.exp(-(A**2).sum(axis=1, dtype=float) / (2 * eta2))
    return (of_x[:, None] * np.exp((X @ A.T) / eta2) * of_a).astype(np.float32)


# %% wrong stable: move the origin to the mean of the anchors
def rbf_stable(X, A, eta2):
    squared = (X**2).sum(axis=1)[:, None] - 2 * X @ A.T + (A**2).sum(axis=1)
    return np.exp(-np.maximum(squared, 0) / (2 * eta2)).astype(np.float32)


# %% right stable: what the next ones change
def rbf_stable(X, A, eta2):
    origin = A.mean(axis=0)
    X = X - origin
    A = A - origin
    squared = (X**2).sum(axis=1)[:, None] - 2 * X @ A.T + (A**2).sum(axis=1)
    return np.exp(-np.maximum(squared, 0) / (2 * eta2)).astype(np.float32)


# %% wrong stable: so take np.maximum
swap("np.maximum(squared, 0)", "squared")

# %% wrong stable: not X -= origin
swap("X = X - origin", "X -= origin")
swap("A = A - origin", "A -= origin")


# %% wrong stable: must be moved by the same vector
def rbf_stable(X, A, eta2):
    # Each is centred by its own mean, which changes the distances.
    X = X - X.mean(axis=0)
    A = A - A.mean(axis=0)
    squared = (X**2).sum(axis=1)[:, None] - 2 * X @ A.T + (A**2).sum(axis=1)
    return np.exp(-np.maximum(squared, 0) / (2 * eta2)).astype(np.float32)


# %% wrong stable: use one product for all rows
def rbf_stable(X, A, eta2):
    return np.array([np.exp(-((x - A) ** 2).sum(axis=1) / (2 * eta2)) for x in X])


# %% right stable: float64 for the product
def rbf_stable(X, A, eta2):
    X = X.astype(np.float64)
    A = A.astype(np.float64)
    squared = (X**2).sum(axis=1)[:, None] - 2 * X @ A.T + (A**2).sum(axis=1)
    return np.exp(-squared.clip(min=0) / (2 * eta2)).astype(np.float32)


# %% right stable: the mean of the rows is the origin, and exp is clipped
def rbf_stable(X, A, eta2):
    origin = X.mean(axis=0)
    x = X - origin
    a = A - origin
    squared = (x * x).sum(1)[:, None] + (a * a).sum(1) - 2 * (x @ a.T)
    return np.minimum(1, np.exp(-squared / (2 * eta2))).astype(np.float32)


# %% wrong product: returns nothing
def rbf_product(X, A, eta2):
    np.exp(-((X**2).sum(1)[:, None] - 2 * X @ A.T + (A**2).sum(1)) / (2 * eta2))
