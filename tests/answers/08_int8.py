"""Answers of students to the checks of 08_int8. The format is in test_exercises.py."""


# %% right cast: the shortest
def similarity_as_published(d, r):
    return np.clip(r - 2 * d, -128, 127).astype(np.int8)


# %% wrong cast: is outside -128 .. 127 and saturates: clip before you cast
swap("return np.clip(r - 2 * d, -128, 127).astype(np.int8)", "return (r - 2 * d).astype(np.int8)")

# %% wrong cast: clip before you cast
swap("r - 2 * d, -128, 127).astype(np.int8", "(r - 2 * d).astype(np.int8), -128, 127")

# %% wrong cast: but int8 is needed to show the fault
swap("return np.clip(r - 2 * d, -128, 127).astype(np.int8)", "return np.clip(r - 2 * d, -128, 127)")

# %% wrong cast: the similarity is r - 2d
swap("2 * d, -128", "d, -128")

# %% wrong cast: the similarity is r - 2d
swap("r - 2 * d,", "2 * d - r,")

# %% wrong cast: return a similarity for each distance
swap("clip(r - 2 * d, -128, 127).astype(np.int8", "int8(max(-128, min(127, r - 2 * d[0]))")


# %% right cast: minimum and maximum in float, as MATLAB's single
def similarity_as_published(d, r):
    s = np.float32(r) - np.float32(2) * d
    return np.minimum(np.maximum(s, -128), 127).astype(np.int8)


# %% wrong cast: -128 is inside the range of int8
swap("s = np.float32(r) - np.float32(2) * d", "# An int8 has no -128, has it?")
swap("minimum(np.maximum(s, -128)", "clip(r - 2 * d, -127")

# %% wrong cast: returns None
swap("s = np.float32(r) - np.float32(2) * d", "s = np.clip(r - 2 * d, -128, 127).astype(np.int8)")
swap("return np.minimum(np.maximum(s, -128), 127).astype(np.int8)", "print(s[:0])")


# %% right cast: a list, one distance after the other
def similarity_as_published(d, r):
    limits = np.iinfo(np.int8)
    values = []
    for distance in d:
        s = r - 2 * int(distance)
        if s > limits.max:
            s = limits.max
        elif s < limits.min:
            s = limits.min
        values.append(s)
    return np.array(values, dtype="int8")


# %% right tied: without the cast, by algebra
def tied_at_the_top(r):
    # r - 2d >= 127 for d <= (r - 127)/2
    return max(1, (r - 127) // 2 + 1)


# %% wrong tied: its similarity is 8 here, not 127
swap("# r - 2d >= 127 for d <= (r - 127)/2", "s = similarity_as_published(np.arange(r + 1), r)")
swap("return max(1, (r - 127) // 2 + 1)", "return int((s == 127).sum())")

# %% wrong tied: distance 0 counts itself
swap("# r - 2d >= 127 for d <= (r - 127)/2", "s = similarity_as_published(np.arange(r + 1), r)")
swap("return max(1, (r - 127) // 2 + 1)", "return int((s[1:] == s[0]).sum())")

# %% wrong tied: distance 0 itself is one of them
swap("# r - 2d >= 127 for d <= (r - 127)/2", "# r - 2d > 127 for d < (r - 127)/2")
swap("return max(1, (r - 127) // 2 + 1)", "return max(1, (r - 127) // 2)")

# %% wrong tied: one number is needed
swap("# r - 2d >= 127 for d <= (r - 127)/2", "s = similarity_as_published(np.arange(r + 1), r)")
swap("return max(1, (r - 127) // 2 + 1)", "return np.flatnonzero(s == s.max())")


# %% wrong tied: its similarity is 8 here, not 127
def tied_at_the_top(r):
    return (r - 127) // 2 + 1


# %% wrong tied: leave out the far distances
def tied_at_the_top(r):
    s = similarity_as_published(np.arange(r + 1), r)
    _, counts = np.unique(s, return_counts=True)
    return counts[0] + counts[-1]


# %% wrong tied: count how often the maximum occurs
def tied_at_the_top(r):
    # One too many, because the far end has ties too.
    return r + 2 - len(np.unique(similarity_as_published(np.arange(r + 1), r)))


# %% wrong tied: count how often the maximum occurs
def tied_at_the_top(r):
    return max(1, r - 127)  # forgets that the similarity goes down in twos


# %% right tied: by counting with a loop, also after a wrong cast
def similarity_as_published(d, r):
    return (r - 2 * d).astype(np.int8)


def tied_at_the_top(r):
    s = list(similarity_as_published(np.arange(r + 1), r))
    n = 1
    while n <= r and s[n] == s[0]:
        n += 1
    return n


# %% right tied: by np.unique
def tied_at_the_top(r):
    _, counts = np.unique(similarity_as_published(np.arange(r + 1), r), return_counts=True)
    return counts[-1]


# %% wrong saturate: columns are left, but int8 leaves 129
def saturate(h):
    r = h.n_bits
    n = tied_at_the_top(r)
    # Only the near end.
    items = np.hstack([h.items[:, :n].sum(axis=1, keepdims=True), h.items[:, n:]])
    relevant = np.hstack([h.relevant[:, :n].sum(axis=1, keepdims=True), h.relevant[:, n:]])
    return HammingHistogram(items, relevant)


# %% wrong saturate: leave no empty column
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    items = np.zeros_like(h.items)
    relevant = np.zeros_like(h.relevant)
    for d in range(h.n_bits + 1):
        first = np.flatnonzero(s == s[d])[0]
        items[:, first] += h.items[:, d]
        relevant[:, first] += h.relevant[:, d]
    return HammingHistogram(items, relevant)


# %% wrong saturate: the columns are backwards
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    values = np.unique(s)
    items = np.stack([h.items[:, s == v].sum(axis=1) for v in values], axis=1)
    relevant = np.stack([h.relevant[:, s == v].sum(axis=1) for v in values], axis=1)
    return HammingHistogram(items, relevant)


# %% wrong saturate: of `relevant` is
def saturate(h):
    # The sums and the first columns are right. All other relevant items are in a wrong column.
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    first = np.flatnonzero(np.append(True, s[1:] != s[:-1]))
    items = np.add.reduceat(h.items, first, axis=1)
    relevant = np.add.reduceat(h.relevant, first, axis=1)
    spare = items.copy()
    left = h.relevant.sum(axis=1)
    for q in range(len(items)):
        rest = left[q] - relevant[q, 0]
        for k in range(1, items.shape[1]):
            relevant[q, k] = min(spare[q, k], rest)
            rest -= relevant[q, k]
    return HammingHistogram(items, relevant)


# %% right saturate: what the next ones change
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    first = np.flatnonzero(np.append(True, s[1:] != s[:-1]))
    items = np.add.reduceat(h.items, first, axis=1)
    return HammingHistogram(items, np.add.reduceat(h.relevant, first, axis=1))


# %% wrong saturate: of `relevant` is
swap("add.reduceat(h.relevant, first, axis=1", "minimum(h.relevant[:, first], items")

# %% wrong saturate: int8 leaves 129 different similarities
swap("] != s[:-1]", "] < 127")


# %% wrong saturate: every column must be part of exactly one new column
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    _, first = np.unique(s, return_index=True)
    first = np.sort(first)
    return HammingHistogram(h.items[:, first], h.relevant[:, first])


# %% wrong saturate: saturate changed the histogram it was given
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    kept = []
    for d in range(h.n_bits + 1):
        if d and s[d] == s[d - 1]:
            h.items[:, kept[-1]] += h.items[:, d]
            h.relevant[:, kept[-1]] += h.relevant[:, d]
        else:
            kept.append(d)
    return HammingHistogram(h.items[:, kept], h.relevant[:, kept])


# %% wrong saturate: but a histogram is needed
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    first = np.flatnonzero(np.append(True, s[1:] != s[:-1]))
    return (
        np.add.reduceat(h.items, first, axis=1),
        np.add.reduceat(h.relevant, first, axis=1),
    )


# %% wrong saturate: int8_saturated does the whole task
def saturate(h):
    from study import scores

    return scores.int8_saturated(h)


# %% right saturate: a loop over the different similarities
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    items = []
    relevant = []
    for value in sorted(set(s.tolist()), reverse=True):
        items.append(h.items[:, s == value].sum(axis=1))
        relevant.append(h.relevant[:, s == value].sum(axis=1))
    return HammingHistogram(np.array(items).T, np.array(relevant).T)


# %% right saturate: both ends by slices
def saturate(h):
    r = h.n_bits
    if r <= 128:
        return h
    near = (r - 127) // 2 + 1
    far = -((-r - 128) // 2)

    def merge(a):
        return np.concatenate(
            [a[:, :near].sum(1)[:, None], a[:, near:far], a[:, far:].sum(1)[:, None]],
            axis=1,
        )

    return HammingHistogram(merge(h.items), merge(h.relevant))


# %% right saturate: differences of cumulated counts
def saturate(h):
    s = similarity_as_published(np.arange(h.n_bits + 1), h.n_bits)
    last = np.append(s[1:] != s[:-1], True)
    counts = [np.cumsum(a, axis=1)[:, last] for a in (h.items, h.relevant)]
    return HammingHistogram(*[np.diff(c, axis=1, prepend=0) for c in counts])
