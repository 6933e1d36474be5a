"""Answers of students to the checks of 11_drift. The format is in test_exercises.py."""


# %% wrong prequential: was learned before it was predicted
def prequential(model, X, y, block):
    accuracy = []
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        model.learn(X[rows], y[rows])
        if start > 0:
            accuracy.append(np.mean(model.predict(X[rows]) == y[rows]))
    return np.array(accuracy)


# %% wrong prequential: was learned before it was predicted
def prequential(model, X, y, block):
    model.learn(X, y)
    starts = range(block, len(X), block)
    return np.array([(model.predict(X[s : s + block]) == y[s : s + block]).mean() for s in starts])


# %% wrong prequential: before anything was learned: learn it first
def prequential(model, X, y, block):
    accuracy = []
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        accuracy.append(np.mean(model.predict(X[rows]) == y[rows]))
        model.learn(X[rows], y[rows])
    return np.array(accuracy)


# %% wrong prequential: the short last one too
def prequential(model, X, y, block):
    accuracy = []
    model.learn(X[:block], y[:block])
    for b in range(1, len(X) // block):
        rows = slice(b * block, (b + 1) * block)
        accuracy.append(np.mean(model.predict(X[rows]) == y[rows]))
        model.learn(X[rows], y[rows])
    return np.array(accuracy)


# %% wrong prequential: learn every block once, right after it is predicted
def prequential(model, X, y, block):
    model.learn(X[:block], y[:block])
    accuracy = []
    for start in range(block, len(X), block):
        rows = slice(start, start + block)
        accuracy.append(np.mean(model.predict(X[rows]) == y[rows]))
    return np.array(accuracy)


# %% wrong prequential: learn every block once
def prequential(model, X, y, block):
    accuracy = []
    for start in range(0, len(X), block):
        stop = start + block
        if start > 0:
            accuracy.append(np.mean(model.predict(X[start:stop]) == y[start:stop]))
        model.learn(X[:stop], y[:stop])  # everything again
    return np.array(accuracy)


# %% wrong prequential: 4 accuracies are needed
def prequential(model, X, y, block):
    right = 0
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        if start > 0:
            right += np.sum(model.predict(X[rows]) == y[rows])
        model.learn(X[rows], y[rows])
    return right / (len(X) - block)


# %% wrong prequential: divide by 3
def prequential(model, X, y, block):
    accuracy = []
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        if start > 0:
            # The last block is shorter than this.
            accuracy.append(np.sum(model.predict(X[rows]) == y[rows]) / block)
        model.learn(X[rows], y[rows])
    return np.array(accuracy)


# %% wrong prequential: this is the share of wrong answers
def prequential(model, X, y, block):
    errors = []
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        if start > 0:
            errors.append(np.mean(model.predict(X[rows]) != y[rows]))
        model.learn(X[rows], y[rows])
    return np.array(errors)


# %% wrong prequential: use the same slice for X and y
def prequential(model, X, y, block):
    accuracy = []
    for start in range(0, len(X), block):
        if start > 0:
            accuracy.append(
                np.mean(model.predict(X[start : start + block]) == y[start : start + block])
            )
        model.learn(X[start : start + block], y[:block])
    return np.array(accuracy)


# %% right prequential: a while loop, and a list
def prequential(model, X, y, block):
    model.learn(X[:block], y[:block])
    scores = []
    start = block
    while start < len(X):
        stop = min(start + block, len(X))
        predicted = model.predict(X[start:stop])
        scores.append(sum(int(a == b) for a, b in zip(predicted, y[start:stop])) / (stop - start))
        model.learn(X[start:stop], y[start:stop])
        start = stop
    return scores


# %% right prequential: the last block is not learned, nobody asks for it
def prequential(model, X, y, block):
    cuts = np.arange(block, len(X), block)
    parts = list(zip(np.split(X, cuts), np.split(y, cuts)))
    scores = np.empty(len(parts) - 1)
    for b in range(1, len(parts)):
        model.learn(*parts[b - 1])
        scores[b - 1] = (model.predict(parts[b][0]) == parts[b][1]).mean()
    return scores


# %% wrong weights: up to step n divide by t, not by n
def weights_of_steps(T, n):
    if n is None:
        return np.full(T, 1 / T)
    return 1 / n * (1 - 1 / n) ** np.arange(T)[::-1]


# %% wrong weights: a window of the last n states
def weights_of_steps(T, n):
    weights = np.zeros(T)
    k = T if n is None else min(n, T)
    weights[T - k :] = 1 / k
    return weights


# %% right weights: what the next ones change
def weights_of_steps(T, n):
    weights = np.zeros(T)
    for t in range(1, T + 1):
        k = t if n is None else min(t, n)
        weights *= 1 - 1 / k
        weights[t - 1] = 1 / k
    return weights


# %% wrong weights: the order is reversed
swap("return weights", "return weights[::-1]")

# %% wrong weights: but an average needs 1
swap("weights *= 1 - 1 / k", "")


# %% wrong weights: up to step n it is the average of all states
def weights_of_steps(T, n):
    if n is None:
        return np.full(T, 1 / T)
    weights = (1 - 1 / n) ** np.arange(T)[::-1]
    return weights / weights.sum()


# %% wrong weights: forgetting begins one step too late
def weights_of_steps(T, n):
    # The average begins to forget one step too late.
    weights = np.zeros(T)
    for t in range(1, T + 1):
        k = t if n is None else min(t, n + 1)
        weights *= 1 - 1 / k
        weights[t - 1] = 1 / k
    return weights


# %% wrong weights: a number for each step
def weights_of_steps(T, n):
    return 1 / T if n is None else 1 / min(T, n)


# %% right weights: in closed form
def weights_of_steps(T, n):
    if n is None or T <= n:
        return np.full(T, 1 / T)
    old = np.full(n, (1 - 1 / n) ** (T - n) / n)
    new = [(1 - 1 / n) ** (T - s) / n for s in range(n + 1, T + 1)]
    return np.concatenate([old, new])


# %% right weights: the average of unit vectors, as a list
def weights_of_steps(T, n):
    average = [0.0] * T
    for t in range(T):
        k = min(t + 1, n or T)
        average = [a + ((s == t) - a) / k for s, a in enumerate(average)]
    return average


# %% right average: what the next ones change
def forgetting_average(Z, y, C, memory):
    W = np.zeros((C.shape[1], Z.shape[1]))
    average = np.zeros_like(W)
    for t in range(1, len(Z) + 1):
        z = Z[t - 1]
        c = C[y[t - 1]]
        wrong = (W @ z > 0) != (c > 0)
        if wrong.any():
            W[wrong] += np.outer(c[wrong], z)
        average += (W - average) / (t if memory is None else min(t, memory))
    return average


# %% wrong average: move the average after every sample
swap("average +=", "    average +=")

# %% wrong average: is every bit updated by its own target, and only if it is wrong
swap("W[wrong] += np.outer(c[wrong], z)", "W += np.outer(c, z)  # the right bits too")


# %% wrong average: moved before the update of the same sample
def forgetting_average(Z, y, C, memory):
    W = np.zeros((C.shape[1], Z.shape[1]))
    average = np.zeros_like(W)
    for t in range(1, len(Z) + 1):
        z = Z[t - 1]
        c = C[y[t - 1]]
        average += (W - average) / (t if memory is None else min(t, memory))
        wrong = (W @ z > 0) != (c > 0)
        W[wrong] += np.outer(c[wrong], z)
    return average


# %% right average: what the next ones change
def forgetting_average(Z, y, C, memory):
    W = np.zeros((C.shape[1], Z.shape[1]))
    average = np.zeros_like(W)
    for t in range(1, len(Z) + 1):
        z = Z[t - 1]
        c = C[y[t - 1]]
        wrong = (W @ z > 0) != (c > 0)
        W[wrong] += np.outer(c[wrong], z)
        average += (W - average) / (t if memory is None else min(t, memory))
    return average


# %% wrong average: up to step n divide by t, not by n
swap("t if memory is None else min(t, memory)", "memory or t")

# %% wrong average: a row for each bit
swap("return average", "return average[0]")


# %% wrong average: the memory is ignored
def forgetting_average(Z, y, C, memory):
    W = np.zeros((C.shape[1], Z.shape[1]))
    total = np.zeros_like(W)
    for z, label in zip(Z, y):
        c = C[label]
        wrong = (W @ z > 0) != (c > 0)
        W[wrong] += np.outer(c[wrong], z)
        total += W
    return total / len(Z)


# %% wrong average: the mean of the last states only
swap("total = np.zeros_like(W)", "states = []")
swap("total += W", "states.append(W.copy())")
swap("return total / len(Z)", "return np.mean(states[-(memory or len(Z)) :], axis=0)")

# %% wrong average: the last state
swap("total = np.zeros_like(W)", "")
swap("    total += W\n    return total / len(Z)", "return W")


# %% right average: bit by bit, with a factor for the old part
def forgetting_average(Z, y, C, memory):
    r = C.shape[1]
    W = [np.zeros(Z.shape[1]) for _ in range(r)]
    average = [np.zeros(Z.shape[1]) for _ in range(r)]
    for i, z in enumerate(Z):
        rate = 1 / (i + 1)
        if memory is not None and i + 1 > memory:
            rate = 1 / memory
        for k in range(r):
            c = int(C[y[i], k])
            if (W[k] @ z > 0) != (c > 0):
                W[k] = W[k] + c * z
            average[k] = (1 - rate) * average[k] + rate * W[k]
    return np.array(average)


# %% right average: updates by a product with 0, +1 and -1, transposed
def forgetting_average(Z, y, C, memory):
    W = np.zeros((Z.shape[1], C.shape[1]))
    mean = W.copy()
    for t, (z, label) in enumerate(zip(Z.astype(float), y), start=1):
        c = C[label].astype(float)
        W += z[:, None] * (c * ((z @ W > 0) != (c > 0)))
        mean += (W - mean) / min(t, memory if memory else t)
    return mean.T


# %% wrong choose: may use the blocks before it, and no other
def choose(accuracy, window):
    return accuracy.argmax(axis=0)


# %% wrong choose: may use the blocks before it, and no other
def choose(accuracy, window):
    chosen = np.zeros(accuracy.shape[1], int)
    for b in range(accuracy.shape[1]):
        past = accuracy[:, max(0, b - window + 1) : b + 1]
        chosen[b] = past.mean(axis=1).argmax()
    return chosen


# %% wrong choose: may use the blocks before it, and no other
def choose(accuracy, window):
    best = accuracy.mean(axis=1).argmax()
    return np.full(accuracy.shape[1], best)


# %% wrong choose: the window is 1 block here, not 2
def choose(accuracy, window):
    chosen = accuracy[:, :-1].argmax(axis=0)
    return np.concatenate([[0], chosen])


# %% right choose: what the next ones change
def choose(accuracy, window):
    chosen = [0]
    for b in range(1, accuracy.shape[1]):
        chosen.append(accuracy[:, max(0, b - window) : b].mean(axis=1).argmax())
    return np.array(chosen)


# %% wrong choose: the whole past is used here
swap("max(0, b - window) : ", ":")

# %% wrong choose: one row for each of 5 blocks
swap("chosen = [0]", "chosen = []")


# %% right choose: what the next ones change
def choose(accuracy, window):
    chosen = np.zeros(accuracy.shape[1], int)
    for b in range(1, accuracy.shape[1]):
        chosen[b] = accuracy[:, max(0, b - window) : b].mean(axis=1).argmax()
    return chosen


# %% wrong choose: row 0 for the first block
swap("zeros(accuracy.shape[1], int", "full(accuracy.shape[1], len(accuracy) - 1")

# %% wrong choose: use the parameter `window`
swap("b - window", "b - 2")

# %% wrong choose: integers are needed
swap("chosen = np.zeros(accuracy.shape[1], int)", "chosen = np.zeros(accuracy.shape[1])")


# %% wrong choose: ties go to row 0
def choose(accuracy, window):
    chosen = np.zeros(accuracy.shape[1], int)
    for b in range(1, accuracy.shape[1]):
        mean = accuracy[:, max(0, b - window) : b].mean(axis=1)
        chosen[b] = np.argsort(mean, kind="stable")[-1]
    return chosen


# %% right choose: a list, and a window by negative numbers
def choose(accuracy, window):
    chosen = [0]
    for b in range(1, accuracy.shape[1]):
        past = accuracy[:, :b][:, -window:]
        chosen.append(int(np.argmax(past.sum(axis=1))))
    return chosen


# %% right choose: by running sums
def choose(accuracy, window):
    sums = np.cumsum(np.pad(accuracy, ((0, 0), (1, 0))), axis=1)
    b = np.arange(accuracy.shape[1])
    start = np.maximum(b - window, 0)
    return (sums[:, b] - sums[:, start]).round(12).argmax(axis=0)


# %% wrong prequential: returns nothing
def prequential(model, X, y, block):
    model.learn(X[:block], y[:block])
    for start in range(block, len(X), block):
        print((model.predict(X[start : start + block]) == y[start : start + block]).mean())
        model.learn(X[start : start + block], y[start : start + block])


# %% wrong weights: n is ignored
def weights_of_steps(T, n):
    return np.full(T, 1 / T)


# %% wrong weights: right for all T and n
def weights_of_steps(T, n):
    known = {(3, 2): [1, 1, 2], (4, 2): [1, 1, 2, 4], (5, 3): [4, 4, 4, 6, 9], (3, 1): [0, 0, 1]}
    return np.array(known.get((T, n), [1] * T)) / sum(known.get((T, n), [1] * T))


# %% wrong choose: may use the blocks before it, and no other
def choose(accuracy, window):
    # The block's own future is in the window.
    blocks = accuracy.shape[1]
    return np.array(
        [0] + [accuracy[:, b : b + window].mean(axis=1).argmax() for b in range(1, blocks)]
    )


# %% wrong choose: may use the blocks before it, and no other
def choose(accuracy, window):
    chosen = [0]
    for b in range(1, accuracy.shape[1]):
        chosen.append(accuracy[:, max(0, b - window + 1) : b + 2].sum(axis=1).argmax())
    return np.array(chosen)


# %% wrong choose: may use the blocks before it, and no other
def choose(accuracy, window):
    chosen = [0]
    for b in range(1, accuracy.shape[1]):
        chosen.append(np.median(accuracy[:, max(0, b - window) : b + 1], axis=1).argmax())
    return np.array(chosen)
