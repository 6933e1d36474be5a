"""Answers of students to the checks of 03_perceptron. The format is in test_exercises.py."""


# %% right perceptron: what the next ones change
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for i in range(len(Z)):
        for k in range(C.shape[1]):
            c = C[y[i], k]
            if (W[k] @ Z[i] > 0) != (c > 0):
                W[k] += rate * c * Z[i]
    return W


# %% wrong perceptron: where the bit is right, as the paper prints it
swap("if (W[k] @ Z[i] > 0) != (c > 0):", "if (W[k] @ Z[i] > 0) == (c > 0):")

# %% wrong perceptron: np.sign\(0\) is 0, no bit
swap("if (W[k] @ Z[i] > 0) != (c > 0):", "if np.sign(W[k] @ Z[i]) != c:")

# %% wrong perceptron: you subtract c z
swap("W[k] += rate * c * Z[i]", "W[k] -= rate * c * Z[i]")

# %% wrong perceptron: the last sample is left out
swap("for i in range(len(Z)):", "for i in range(len(Z) - 1):")

# %% wrong perceptron: the target of sample i is C\[y\[i\]\]
swap("c = C[y[i], k]", "c = C[i, k]")

# %% wrong perceptron: loops go over all len\(Z\) samples and all
swap("for k in range(C.shape[1]):", "for k in range(2):")


# %% wrong perceptron: at every sample, right or wrong
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for z, label in zip(Z, y):
        W += rate * np.outer(C[label], z)
    return W


# %% wrong perceptron: you take sign\(0\) as \+1
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for i in range(len(Z)):
        for k in range(C.shape[1]):
            c = C[y[i], k]
            bit = 1 if W[k] @ Z[i] >= 0 else -1
            if bit != c:
                W[k] += rate * c * Z[i]
    return W


# %% right perceptron: all bits of a sample at once
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for z, label in zip(Z, y):
        c = C[label]
        wrong = (W @ z > 0) != (c > 0)
        W[wrong] += rate * np.outer(c, z)[wrong]
    return W


# %% wrong perceptron: all bits if one of them is wrong
swap("wrong = (W @ z > 0) != (c > 0)", "if ((W @ z > 0) != (c > 0)).any():")
swap("W[wrong] += rate * np.outer(c, z)[wrong]", "    W += rate * np.outer(c, z)")


# %% wrong perceptron: without its factor c
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for i in range(len(Z)):
        for k in range(C.shape[1]):
            if (W[k] @ Z[i] > 0) != (C[y[i], k] > 0):
                W[k] += rate * Z[i]
    return W


# %% wrong perceptron: all products are taken with W = 0
def perceptron(Z, y, C, rate=1.0):
    wrong = C[y] > 0
    return (rate * (C[y] * wrong).T @ Z).astype(np.float32)


# %% right perceptron: what the next ones change
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for z, label in zip(Z, y):
        c = C[label]
        W += rate * np.outer(c * ((W @ z > 0) != (c > 0)), z)
    return W


# %% wrong perceptron: \(r, m\) = \(2, 3\) is needed
swap("C.shape[1], Z", "Z.shape[1], C")
swap("c * ((W @ z > 0) != (c > 0)), z", "z, c * ((z @ W > 0) != (c > 0))")

# %% wrong perceptron: returns nothing
swap("return W", "")

# %% wrong perceptron: float32 is needed
swap("W = np.zeros((C.shape[1], Z.shape[1]), np.float32)", "W = np.zeros((C.shape[1], Z.shape[1]))")

# %% wrong perceptron: rate is not used
swap("rate * np.", "np.")


# %% wrong perceptron: rounded to whole numbers
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for z, label in zip(Z, y):
        c = C[label]
        f = (W @ z).astype(int)
        W += np.float32(rate) * np.outer(c * ((f > 0) != (c > 0)), z)
    return W


# %% right perceptron: one bit after the other, in float64
def perceptron(Z, y, C, rate=1.0):
    rows = []
    for k in range(C.shape[1]):
        w = np.zeros(Z.shape[1])
        for z, c in zip(Z, C[y, k]):
            output = 1 if np.dot(w, z) > 0 else -1
            if output * c < 0:
                w = w + rate * c * z
        rows.append(w)
    return np.array(rows, np.float32)


# %% right perceptron: half the difference of target and output
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((Z.shape[1], C.shape[1]), np.float32)
    for i in range(Z.shape[0]):
        error = (C[y[i]] - np.where(Z[i] @ W > 0, 1, -1)) / 2
        W += rate * np.outer(Z[i], error)
    return W.T


# %% right perceptron: compiled at once
@njit
def perceptron(Z, y, C, rate=1.0):
    W = np.zeros((C.shape[1], Z.shape[1]), np.float32)
    for i in range(len(Z)):
        for k in range(C.shape[1]):
            c = C[y[i], k]
            f = 0.0
            for j in range(Z.shape[1]):
                f += W[k, j] * Z[i, j]
            if (f > 0) != (c > 0):
                for j in range(Z.shape[1]):
                    W[k, j] += rate * c * Z[i, j]
    return W


# %% wrong rate: both sets of weights have the same rate
def wrong_bits(rate):
    codes = []
    for step in (rate, rate):
        W = perceptron(features[:600], labels[:600], targets, step)
        codes.append(features[-1000:] @ W.T > 0)
    return int((codes[0] != codes[1]).sum())


# %% wrong rate: the number of weights that differ
def wrong_bits(rate):
    W1 = perceptron(features[:600], labels[:600], targets, 1.0)
    W2 = perceptron(features[:600], labels[:600], targets, rate)
    return (W1 != W2).sum()


# %% wrong rate: count with sum\(\), not mean\(\)
swap("targets, 1.0", "targets")
swap("(W1 != W2).sum(", "np.mean((features[-1000:] @ W1.T > 0) != (features[-1000:] @ W2.T > 0)")

# %% wrong rate: the first 1,000 samples, not the last
swap("targets, 1.0", "targets")
swap("(W1 != W2)", "((features[:1000] @ W1.T > 0) != (features[:1000] @ W2.T > 0))")

# %% wrong rate: the codes of all samples are compared
swap("targets, 1.0", "targets")
swap("return (W1 != W2).sum()", "return np.sum((features @ W1.T > 0) != (features @ W2.T > 0))")


# %% wrong rate: the number of bits that differ from the targets
def wrong_bits(rate):
    W = perceptron(features[:600], labels[:600], targets, rate)
    codes = features[-1000:] @ W.T > 0
    return (codes != (targets[labels[-1000:]] > 0)).sum()


# %% wrong rate: this counts codes, but a code has 16 bits
def wrong_bits(rate):
    W1 = perceptron(features[:600], labels[:600], targets)
    W2 = perceptron(features[:600], labels[:600], targets, rate)
    differ = (features[-1000:] @ W1.T > 0) != (features[-1000:] @ W2.T > 0)
    return int(differ.any(axis=1).sum())


# %% wrong rate: learned from all samples, not from the first 600
def wrong_bits(rate):
    W1 = perceptron(features, labels, targets)
    W2 = perceptron(features, labels, targets, rate)
    return ((features[-1000:] @ W1.T > 0) != (features[-1000:] @ W2.T > 0)).sum()


# %% wrong rate: learn both sets of weights from the same 600 samples
def wrong_bits(rate):
    W1 = perceptron(features[:600], labels[:600], targets)
    W2 = perceptron(features[600:1200], labels[600:1200], targets, rate)
    return np.sum((features[-1000:] @ W1.T > 0) != (features[-1000:] @ W2.T > 0))


# %% right rate: keyword, XOR, after a perceptron that is wrong
def perceptron(Z, y, C, rate=1.0):
    return np.ones((C.shape[1], Z.shape[1]), np.float32)


def wrong_bits(rate):
    def bits(step):
        W = perceptron(features[:600], labels[:600], C=targets, rate=step)
        return features[-1000:] @ W.T > 0

    return np.count_nonzero(bits(1) ^ bits(rate))


# %% right rate: signs, and half of the differences
def wrong_bits(rate):
    signs = []
    for step in [1, rate]:
        W = perceptron(features[:600], labels[:600], targets, step)
        signs.append(np.where(W @ features[2000:].T > 0, 1, -1))
    return int(np.abs(signs[0] - signs[1]).sum() // 2)


# %% right rate: a loop of its own
def wrong_bits(rate):
    codes = []
    for step in (1, rate):
        W = np.zeros((16, 100), np.float32)
        for z, label in zip(features[:600], labels[:600]):
            c = targets[label]
            W += step * np.outer(c * ((W @ z > 0) != (c > 0)), z)
        codes.append(features[-1000:] @ W.T > 0)
    return sum(a != b for a, b in zip(codes[0].ravel().tolist(), codes[1].ravel().tolist()))


# %% wrong compiled: without its factor c
@njit
def perceptron_compiled(Z, y, C, W):
    for i in range(len(Z)):
        for k in range(len(W)):
            f = np.float32(0)
            for j in range(Z.shape[1]):
                f += W[k, j] * Z[i, j]
            if (f > 0) != (C[y[i], k] > 0):
                for j in range(Z.shape[1]):
                    W[k, j] += Z[i, j]


# %% wrong compiled: stops.*IndexError.*loop over len\(Z\), len\(W\) and Z.shape
swap("if (f > 0) != (C[y[i], k] > 0):", "if (f > 0) != (C[k, y[i]] > 0):")

# %% wrong compiled: stops.*TypeError: 'tuple' object is not callable
swap(
    "                f += W[k, j] * Z[i, j]", "                f += W[k, j] * Z[i, j] / Z.shape(1)"
)

# %% wrong compiled: numba cannot compile perceptron_compiled.*compute with single numbers
swap("f = np.float32(0)", "f = -sum(-w * z for w, z in zip(W[k], Z[i]))\n            f -= f")
swap("W[k, j] += Z[i, j]", "W[k, j] += C[y[i], k] * Z[i, j]")

# %% wrong compiled: returns ndarray, but it must return nothing
swap("if (f > 0) != (C[y[i], k] > 0):", "c = C[y[i], k]\n            if (f > 0) != (c > 0):")
swap("W[k, j] += Z[i, j]", "W[k, j] += c * Z[i, j]\n    return W")

# %% wrong compiled: makes a new array; change the given one
swap("for i in range(len(Z)):", "W = np.zeros_like(W)\n    for i in range(len(Z)):")
swap("if (f > 0) != (C[y[i], k] > 0):", "c = C[y[i], k]\n            if (f > 0) != (c > 0):")
swap("W[k, j] += Z[i, j]", "W[k, j] += c * Z[i, j]")

# %% wrong compiled: go on from the given W, do not set it to 0
swap("for i in range(len(Z)):", "W[:] = 0\n    for i in range(len(Z)):")
swap("if (f > 0) != (C[y[i], k] > 0):", "c = C[y[i], k]\n            if (f > 0) != (c > 0):")
swap("W[k, j] += Z[i, j]", "W[k, j] += c * Z[i, j]")


# %% wrong compiled: is not compiled: keep the line @njit
def perceptron_compiled(Z, y, C, W):
    for z, label in zip(Z, y):
        c = C[label]
        W += np.outer(c * ((W @ z > 0) != (c > 0)), z)


# %% wrong compiled: f must start at 0 for every bit and every sample
@njit
def perceptron_compiled(Z, y, C, W):
    f = np.float32(0)
    for i in range(len(Z)):
        for k in range(len(W)):
            for j in range(Z.shape[1]):
                f += W[k, j] * Z[i, j]
            c = C[y[i], k]
            if (f > 0) != (c > 0):
                for j in range(Z.shape[1]):
                    W[k, j] += c * Z[i, j]


# %% wrong compiled: f must start at 0 for every bit, not only
swap("f = np.float32(0)", "")
swap("for k in range(len(W)):", "f = np.float32(0)\n        for k in range(len(W)):")


# %% wrong compiled: the update uses only one feature
@njit
def perceptron_compiled(Z, y, C, W):
    for i in range(len(Z)):
        for k in range(len(W)):
            f = np.float32(0)
            for j in range(Z.shape[1]):
                f += W[k, j] * Z[i, j]
            c = C[y[i], k]
            if (f > 0) != (c > 0):
                W[k, j] += c * Z[i, j]


# %% right compiled: a bit after the other, sum in float64, after a wrong perceptron
def perceptron(Z, y, C, rate=1.0):
    return np.ones((C.shape[1], Z.shape[1]), np.float32)


@njit
def perceptron_compiled(Z, y, C, W):
    n, m = Z.shape
    for k in range(C.shape[1]):
        for i in range(n):
            f = 0.0
            for j in range(m):
                f += W[k, j] * Z[i, j]
            c = C[y[i]][k]
            if f > 0 and c < 0:
                for j in range(m):
                    W[k, j] -= Z[i, j]
            if f <= 0 and c > 0:
                for j in range(m):
                    W[k, j] += Z[i, j]


# %% right compiled: the number of the wrong sign as a factor
@njit
def perceptron_compiled(Z, y, C, W):
    for i in range(Z.shape[0]):
        for k in range(W.shape[0]):
            f = np.float32(0.0)
            for j in range(W.shape[1]):
                f += Z[i, j] * W[k, j]
            sign = 1 if f > 0 else -1
            error = np.float32((C[y[i], k] - sign) // 2)
            for j in range(W.shape[1]):
                W[k, j] += error * Z[i, j]


# %% wrong perceptron: W is not 0 at the start
def perceptron(Z, y, C, rate=1.0):
    W = np.random.default_rng().normal(size=(C.shape[1], Z.shape[1])).astype(np.float32)
    for i in range(len(Z)):
        for k in range(C.shape[1]):
            c = C[y[i], k]
            if (W[k] @ Z[i] > 0) != (c > 0):
                W[k] += np.float32(rate * c) * Z[i]
    return W


# %% wrong perceptron: W is not 0 at the start
swap(
    "np.random.default_rng().normal(size=(C.shape[1], Z.shape[1])).astype(np.float32)",
    "np.ones((C.shape[1], Z.shape[1]), np.float32)",
)


# %% wrong rate: returns nothing
def wrong_bits(rate):
    W1 = perceptron(features[:600], labels[:600], targets)
    W2 = perceptron(features[:600], labels[:600], targets, rate)
    n = ((features[-1000:] @ W1.T > 0) != (features[-1000:] @ W2.T > 0)).sum()


# %% wrong rate: with right weights no bit differs
def wrong_bits(rate):
    perceptron(features[:600], labels[:600], targets, 1)
    perceptron(features[:600], labels[:600], targets, rate)
    return 1500
