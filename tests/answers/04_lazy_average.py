"""Answers of students to the checks of 04_lazy_average. The format is in test_exercises.py."""


# %% wrong eager: this is the sum; divide it by T
def average_eager(Z, c):
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    mistakes = 0
    for z, sign in zip(Z, c):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            mistakes += 1
        total += w
    return total, w, mistakes


# %% wrong eager: you add w only at mistakes; add it at every step
swap("total += w", "    total += w")
swap("return total, w, mistakes", "return total / len(Z), w, mistakes")

# %% wrong eager: add the w of \*after\* the step
swap("if (w @ z > 0) != (sign > 0):", "total += w\n        if (w @ z > 0) != (sign > 0):")
swap("    total += w\n    return total, w, mistakes", "return total / len(Z), w, mistakes")

# %% wrong eager: keep w.copy\(\)
swap("total = np.zeros(Z.shape[1])", "states = []")
swap("total += w", "states.append(w)")
swap("return total, w, mistakes", "return np.mean(states, axis=0), w, mistakes")

# %% wrong eager: not by the number of mistakes
swap("return total, w, mistakes", "return total / mistakes, w, mistakes")

# %% wrong eager: np.sign\(0\) is 0, no bit
swap("if (w @ z > 0) != (sign > 0):", "if np.sign(w @ z) != sign:")
swap("return total, w, mistakes", "return total / len(Z), w, mistakes")

# %% wrong eager: 6 mistakes are counted, but w changes at
swap("    mistakes += 1", "mistakes += 1")
swap("return total, w, mistakes", "return total / len(Z), w, mistakes")

# %% wrong eager: without its factor c
swap("w += sign * z", "w += z")
swap("return total, w, mistakes", "return total / len(Z), w, mistakes")

# %% wrong eager: three things are needed
swap("mistakes = 0", "")
swap("mistakes += 1", "")
swap("return total, w, mistakes", "return total / len(Z)")


# %% right eager: a list of states
def average_eager(Z, c):
    states = [np.zeros(Z.shape[1])]
    for z, sign in zip(Z, c):
        wrong = (states[-1] @ z > 0) != (sign > 0)
        states.append(states[-1] + wrong * sign * z)
    changes = np.any(np.diff(states, axis=0) != 0, axis=1).sum()
    return np.mean(states[1:], axis=0), states[-1], changes


# %% wrong eager: w_0 does not count
swap("for z, sign in zip(Z, c):", "mistakes = 0\n    for z, sign in zip(Z, c):")
swap("changes = np.any(np.diff(states, axis=0) != 0, axis=1).sum()", "    mistakes += wrong")
swap("[1:], axis=0), states[-1], changes", ", axis=0), states[-1], mistakes")


# %% right eager: running mean
def average_eager(Z, c):
    mean = 0.0
    w = np.zeros(Z.shape[1])
    mistakes = 0
    for t in range(1, len(Z) + 1):
        output = 1 if np.dot(Z[t - 1], w) > 0 else -1
        if output != c[t - 1]:
            w = w + c[t - 1] * Z[t - 1]
            mistakes = mistakes + 1
        mean = mean + (w - mean) / t
    return mean, w, mistakes


# %% right lazy: what the next ones change
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    u = np.zeros(Z.shape[1])
    additions = 0
    for i, (z, sign) in enumerate(zip(Z.astype(np.float64), c)):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            u += i * sign * z
            additions += 2
    return w - u / len(Z), w, additions


# %% wrong lazy: its factor in u is s - 1, not s
swap("u += i * sign * z", "u += (i + 1) * sign * z")

# %% wrong lazy: u is subtracted, not added
swap("return w - u / len(Z), w, additions", "return w + u / len(Z), w, additions")

# %% wrong lazy: u must be divided by T
swap("return w - u / len(Z), w, additions", "return w - u, w, additions")

# %% wrong lazy: not by the number of mistakes
swap("additions = 0", "mistakes = 0")
swap("additions += 2", "mistakes += 1")
swap("return w - u / len(Z), w, additions", "return w - u / mistakes, w, 2 * mistakes")

# %% wrong lazy: u needs the factor c too
swap("u += i * sign * z", "u += i * z")

# %% wrong lazy: this is the number of mistakes; each adds to two vectors
swap("additions += 2", "additions += 1")

# %% wrong lazy: fixed to the six small samples, such as T
swap("return w - u / len(Z), w, additions", "return w - u / 6, w, additions")


# %% wrong lazy: not the number of mistakes before
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    u = np.zeros(Z.shape[1])
    i = 0
    for z, sign in zip(Z.astype(np.float64), c):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            u += i * sign * z
            i += 1
    return w - u / len(Z), w, 2 * i


# %% right lazy: catch up at a mistake
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    additions = 0
    last = 0
    for i, (z, sign) in enumerate(zip(Z.astype(np.float64), c)):
        if (w @ z > 0) != (sign > 0):
            total += (i - last) * w
            w += sign * z
            last = i
            additions += 2
    total += (len(Z) - last) * w
    additions += 1
    return total / len(Z), w, additions


# %% wrong lazy: the steps since the last mistake are missing
swap("additions = 0\n    last = 0", "additions = last = 0")
swap("total += (len(Z) - last) * w", "")
swap("additions += 1", "")


# %% wrong lazy: with the old w, before w changes
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    additions = last = 0
    for i, (z, sign) in enumerate(zip(Z.astype(np.float64), c)):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            total += (i - last) * w
            last = i
            additions += 2
    total += (len(Z) - last) * w
    return total / len(Z), w, additions + 1


# %% wrong lazy: w is added at mistakes only, once
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    additions = 0
    for z, sign in zip(Z.astype(np.float64), c):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            total += w
            additions += 2
    return total / len(Z), w, additions


# %% wrong lazy: as many as steps are not lazy
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    additions = 0
    for z, sign in zip(Z.astype(np.float64), c):
        if (w @ z > 0) != (sign > 0):
            w += sign * z
            additions += 1
        total += w
        additions += 1
    return total / len(Z), w, additions


# %% wrong lazy: use float64 for w and u
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1], np.float32)
    u = np.zeros(Z.shape[1], np.float32)
    additions = 0
    for i, (z, sign) in enumerate(zip(Z, c)):
        if (w @ z > 0) != (sign > 0):
            w += np.float32(sign) * z
            u += np.float32(i * sign) * z
            additions += 2
    return w - u / len(Z), w, additions


# %% wrong lazy: w is learned as in average_eager; only the average is new
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    u = np.zeros(Z.shape[1])
    additions = 0
    for i, (z, sign) in enumerate(zip(Z.astype(np.float64), c)):
        w += sign * z
        u += i * sign * z
        additions += 2
    return w - u / len(Z), w, additions


# %% right lazy: catch up, and the addition at the end is not counted
def average_lazy(Z, c):
    T = len(Z)
    w = np.zeros(Z.shape[1])
    total = np.zeros(Z.shape[1])
    since = 0
    additions = 0
    for z, sign in zip(Z.astype(np.float64), c):
        if (w @ z > 0) != (sign > 0):
            total = total + since * w
            w = w + sign * z
            additions += 2
            since = 0
        since += 1
    return (total + since * w) / T, w, additions


# %% right lazy: weights that count down, after a wrong average_eager
def average_eager(Z, c):
    return np.ones(Z.shape[1]), np.ones(Z.shape[1]), 7


def average_lazy(Z, c):
    T = len(Z)
    w = np.zeros(Z.shape[1])
    average = np.zeros(Z.shape[1])
    mistakes = 0
    for t in range(T):
        z = Z[t].astype(float)
        if (w @ z > 0) != (c[t] > 0):
            w += c[t] * z
            average += (T - t) / T * c[t] * z
            mistakes += 1
    return average, w, 2 * mistakes


# %% right lazy: a list is returned, and the first mistake needs no addition to the sum
def average_lazy(Z, c):
    w = total = None
    last = additions = 0
    for i, (z, sign) in enumerate(zip(Z.astype(float), c)):
        output = 0.0 if w is None else w @ z
        if (output > 0) != (sign > 0):
            if w is None:
                w = sign * z
                total = 0 * z
            else:
                total = total + (i - last) * w
                w = w + sign * z
            additions += 2
            last = i
    return [(total + (len(Z) - last) * w) / len(Z), w, additions]


# %% right lazy: list of mistakes, summed at the end
def average_lazy(Z, c):
    w = np.zeros(Z.shape[1])
    when = []
    for i, (z, sign) in enumerate(zip(Z.astype(float), c)):
        if (w @ z > 0) != (sign > 0):
            w = w + sign * z
            when.append(i)
    updates = c[when, None] * Z[when].astype(float)
    factors = (len(Z) - np.array(when)) / len(Z)
    return factors @ updates, w, 2 * len(when)


# %% wrong compare: the order is \(last, average\)
def compare(n):
    scores = []
    for ensemble in (True, False):
        model = HMOH(16, ensemble=ensemble, random_state=0)
        scores.append(score(model.fit(features[:n], labels[:n])))
    return tuple(scores)


# %% wrong compare: both are the average; one model needs ensemble=False
def compare(n):
    model = HMOH(16, random_state=0).fit(features[:n], labels[:n])
    return score(model), score(model)


# %% wrong compare: both are the last weights; one model needs ensemble=True
def compare(n):
    model = HMOH(16, ensemble=False, random_state=0).fit(features[:n], labels[:n])
    return score(model), score(model)


# %% wrong compare: both models have learned from all rows
def compare(n):
    last = HMOH(16, ensemble=False, random_state=0).fit(features, labels)
    average = HMOH(16, ensemble=True, random_state=0).fit(features, labels)
    return score(last), score(average)


# %% wrong compare: train HMOH\(16, ensemble=..., random_state=0\) with fit
def compare(n):
    last = HMOH(32, ensemble=False, random_state=0).fit(features[:n], labels[:n])
    average = HMOH(32, ensemble=True, random_state=0).fit(features[:n], labels[:n])
    return score(last), score(average)


# %% wrong compare: two numbers are needed
def compare(n):
    model = HMOH(16, ensemble=True, random_state=0).fit(features[:n], labels[:n])
    return score(model)


# %% right compare: a list, models cloned
def compare(n):
    models = [HMOH(16, ensemble=kept, random_state=0) for kept in (False, True)]
    return [score(model.fit(features[:n], labels[:n])) for model in models]


# %% right compare: an array, positional arguments of fit
def compare(n):
    last = HMOH(n_bits=16, ensemble=False, random_state=0)
    last.fit(features[0:n, :], labels[0:n])
    average = HMOH(n_bits=16, random_state=0)
    average.fit(features[0:n, :], labels[0:n])
    return np.array([score(last), score(average)])


# %% right compare: sample by sample
def compare(n):
    scores = []
    for ensemble in (False, True):
        model = HMOH(16, ensemble=ensemble, random_state=0)
        model.partial_fit(features[:500], labels[:500], classes=np.arange(10))
        model.partial_fit(features[500:n], labels[500:n])
        scores.append(score(model))
    return scores[0], scores[1]
