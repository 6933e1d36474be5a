"""Answers of students to the checks of 07_codebook. The format is in test_exercises.py."""


# %% wrong criterion: count ordered pairs
def criterion(T):
    T = T.astype(int)
    inner = (T @ T.T)[np.triu_indices(len(T), k=1)]
    return int((T.shape[1] - inner.max()) // 2), int((inner**2).sum())


# %% wrong criterion: count ordered pairs
def criterion(T):
    T = np.asarray(T).astype(int)
    inner = (T @ T.T)[~np.eye(len(T), dtype=bool)]
    return int(T.shape[1] - inner.max()) // 2, int((inner**2).sum() // 2)


# %% wrong criterion: leave out the diagonal
def criterion(T):
    T = T.astype(int)
    G = T @ T.T
    distances = (T.shape[1] - G) // 2
    return int(distances[distances > 0].min(initial=9)), int((G**2).sum())


# %% wrong criterion: two different rows may be equal
def criterion(T):
    T = T.astype(int)
    distances = (T[:, None] != T[None]).sum(axis=2)
    different = distances > 0
    inner = T.shape[1] - 2 * distances
    return int(distances[different].min()), int((inner[different] ** 2).sum())


# %% wrong criterion: of which the least is 1
def criterion(T):
    T = T.astype(int)
    inner = (T @ T.T)[~np.eye(len(T), dtype=bool)]
    # Backwards: the smallest inner product belongs to the largest distance.
    return int((T.shape[1] - inner.min()) // 2), int((inner**2).sum())


# %% wrong criterion: the minimum distance comes first
def criterion(T):
    T = T.astype(int)
    inner = (T @ T.T)[~np.eye(len(T), dtype=bool)]
    return int((inner**2).sum()), int((T.shape[1] - inner.max()) // 2)


# %% wrong criterion: convert T to int first
def criterion(T):
    inner = (T @ T.T)[~np.eye(len(T), dtype=bool)]
    return int((T.shape[1] - int(inner.max())) // 2), int((inner**2).sum())


# %% wrong criterion: a pair of integers is needed
def criterion(T):
    T = T.astype(int)
    return int((T.shape[1] - (T @ T.T)[~np.eye(len(T), dtype=bool)].max()) // 2)


# %% right criterion: plain loops over pairs, numpy integers
def criterion(T):
    r = len(T[0])
    least = r
    crowding = 0
    for i in range(len(T)):
        for j in range(len(T)):
            if i != j:
                d = (T[i] != T[j]).sum()
                least = min(least, d)
                crowding += (r - 2 * d) ** 2
    return least, crowding


# %% right criterion: the diagonal subtracted, a list returned
def criterion(T):
    T = np.array(T, dtype=float)
    n, r = T.shape
    G = T @ T.T
    crowding = (G**2).sum() - n * r**2
    np.fill_diagonal(G, -r)
    return [(r - G.max()) / 2, crowding]


# %% wrong design: a larger distance is needed, or the same and less crowding
def design():
    return drawn[1]


# %% wrong design: two rows of design\(\) are equal
swap("return drawn[1]", "H = hadamard(8)\n    return np.concatenate([H, H[:2]])")

# %% wrong design: a row for each class
swap("return drawn[1]", "H = hadamard(8)\n    return np.concatenate([H, -H[:2]]).T")

# %% wrong design: a row for each class
swap("return drawn[1]", "H = hadamard(8)\n    return np.concatenate([H, -H])  # all 16")

# %% right design: columns of order 16 cut to 8 places, the last two negated
swap("return drawn[1", "return hadamard(16)[:10, :8] * np.where(np.arange(10) < 8, 1, -1)[:, None")

# %% wrong design: design\(\) returns None
swap("return drawn[1]", "H = hadamard(8)\n    np.concatenate([H, -H[:2]])")


# %% wrong design: only \+1 and -1 are codes
def design():
    codes = []
    for v in range(256):
        bits = (v >> np.arange(8)) & 1
        if all((bits != other).sum() >= 4 for other in codes):
            codes.append(bits)
    return np.array(codes[:10])


# %% wrong design: a larger distance is needed, or the same and less crowding
def design():
    # A search that starts again is promising, but fifty draws are too few.
    rng = np.random.default_rng(0)
    draws = [rng.choice([-1, 1], size=(10, 8)) for _ in range(50)]
    return max(draws, key=criterion)


# %% wrong design: hmoh.Codebook.add does the whole task
def design():
    book = Codebook(8, "spread", n_labels=10, seed=0).add(list(range(10)))
    return np.stack(list(book.targets.values()))


# %% wrong design: hmoh.Codebook.add does the whole task
def design():
    model = HMOH(8, codebook="spread", random_state=0).fit(np.eye(10), np.arange(10))
    return [model.targets_[digit] for digit in range(10)]


# %% right design: better crowding only, at the distance of the drawn ones
def design():
    H = hadamard(8).astype(int)
    T = np.concatenate([H, -H[:2]])
    T[0, 0] = -T[0, 0]
    return T


# %% right design: hill climbing from a random start, float entries
def design():
    rng = np.random.default_rng(1)
    best = None
    for _ in range(40):
        T = rng.choice([-1.0, 1.0], size=(10, 8))
        score = (-9, 0)
        stuck = 0
        while stuck < 250:
            i, k = rng.integers(10), rng.integers(8)
            T[i, k] *= -1
            d = (T[:, None] != T[None]).sum(axis=2) + 8 * np.eye(10)
            new = (d.min(), -np.square(8 - 2 * d).sum())
            if new > score:
                score = new
                stuck = 0
            else:
                T[i, k] *= -1
                stuck += 1
        if best is None or score > best[0]:
            best = (score, T)
    return best[1]


# %% wrong bound: the minimum distance is 3, but Plotkin's bound is 4
def design():
    H = hadamard(8).astype(int)
    T = np.concatenate([H, -H[:2]])
    T[0, 0] = -T[0, 0]
    return T


# %% wrong bound: the minimum distance is 2, but Plotkin's bound is 4
def design():
    # Nine of ten rows of the bound, and one that is only at distance 2.
    H = hadamard(8).astype(int)
    near = H[7].copy()
    near[:2] *= -1
    return np.concatenate([H, -H[:1], near[None]])


# %% wrong bound: hmoh.Codebook.add does the whole task
def design():
    return list(Codebook(8, "spread", seed=1).add(list(range(10))).targets.values())


# %% wrong bound: see the check above
def design():
    return np.eye(10, 8)


# %% right bound: greedy, opposite pairs left out as far as possible, as lists
def design():
    codes = []
    for v in range(256):
        if all((v ^ other).bit_count() >= 4 for other in codes):
            codes.append(v)
    low = [v for v in codes if v < 128]
    chosen = low + [255 - v for v in low[:2]]
    return [[1 if v >> k & 1 else -1 for k in range(8)] for v in chosen]


# %% right bound: another Hadamard matrix, columns shuffled and negated
def design():
    rng = np.random.default_rng(4)
    H = hadamard(8)[:, rng.permutation(8)] * rng.choice([-1, 1], size=8)
    return np.vstack([H, -H[5], -H[6]]).astype(np.int8)


# %% right shuffled: what the next ones change
def shuffled(T, seed):
    rng = np.random.default_rng(seed)
    return dict(enumerate(rng.permutation(T)))


# %% wrong shuffled: make a new default_rng\(seed\) in each call
swap("rng = np.random.default_rng(seed)", "rng = np.random.default_rng()")

# %% wrong shuffled: pass `seed` to default_rng
swap("rng = np.random.default_rng(seed)", "rng = np.random.default_rng(0)")

# %% wrong shuffled: shuffle whole rows
swap("permutation(T", "permutation(T, axis=1")

# %% wrong shuffled: every row of T must be given exactly once
swap("dict(enumerate(rng.permutation(T)))", "{digit: T[rng.integers(10)] for digit in range(10)}")

# %% wrong shuffled: use enumerate
swap("rng = np.random.default_rng(seed)", "rows = np.random.default_rng(seed).permutation(T)")
swap("return dict(enumerate(rng.permutation(T)))", "return dict(enumerate(rows, 1))")

# %% right shuffled: sorted by random numbers
swap("rng = np.random.default_rng(seed)", "keys = np.random.default_rng(seed).random(len(T))")
swap("enumerate(rng.permutation(T)", "zip(range(10), T[np.argsort(keys)], strict=True")


# %% wrong shuffled: rng.shuffle works in place
def shuffled(T, seed):
    rng = np.random.default_rng(seed)
    rng.shuffle(T)
    return {digit: T[digit] for digit in range(10)}


# %% wrong shuffled: the rows are still in order
def shuffled(T, seed):
    rng = np.random.default_rng(seed)
    rng.permutation(T)
    return dict(enumerate(T))


# %% wrong shuffled: a dict is needed
def shuffled(T, seed):
    return np.random.default_rng(seed).permutation(T)


# %% right shuffled: the digits are shuffled instead of the rows
def shuffled(T, seed):
    digits = np.random.default_rng(seed).permutation(10)
    return {int(digit): list(row) for digit, row in zip(digits, T)}
