# %% [markdown]
# # Exercise 7: Design a better codebook for 8 bits
#
# **You will learn** to state what a good codebook is, to bound what is possible, to construct one that reaches the
# bound and beats 2,000 random draws, and to find out honestly whether retrieval follows.
#
# **Time:** 50 to 60 minutes. **Points:** 10.
#
# **Before you start:** exercises 1 (distances, Plotkin's bound) and 2 (why alignment is random).
#
# **In the paper:** Sec. 3.4 asks for columns far from each other; Sec. 3.5 aligns by LSH where lengths differ; Table
# of mAP on MNIST, row HMOH, 8 bits.

# %%
import sys

sys.path.insert(0, "../../..")  # the clone's folder, where the modules lie

import json

import matplotlib.pyplot as plt
import numpy as np

import datasets
import plots
from hmoh import HMOH, Codebook, hadamard
from kernels import RBF
from metrics import hamming_histogram

plots.use_style()

# %% [markdown]
# ## 7.1 The criterion
#
# A **codebook** T has a row of r bits (+1 and -1) for each of L classes; here L = 10 and r = 8. The library's
# `spread` draws 2,000 aligned codebooks and keeps the one that is best by two numbers, the first deciding:
#
# 1. the **least distance**, the smallest Hamming distance of two different rows: larger is better;
# 2. the **crowding**, the sum over all ordered pairs of different rows of their squared inner product: smaller is
#    better.
#
# Write `criterion(T)`, the pair (least distance, crowding) as two Python integers.
#
# <details><summary>Hint</summary>
#
# With `G = T @ T.T` (convert T to `int` first: int8 overflows when you square) the distance of rows i and j is (r -
# G[i, j])/2. Leave out the diagonal: `~np.eye(len(T), dtype=bool)`.
#
# </details>


# %% solution criterion
def criterion(T):
    """(least distance, crowding) of a codebook, one row of +1 and -1 for each class."""
    ### BEGIN SOLUTION
    T = np.asarray(T).astype(int)
    inner = (T @ T.T)[~np.eye(len(T), dtype=bool)]
    return int((T.shape[1] - inner.max()) // 2), int((inner**2).sum())
    ### END SOLUTION


# %% check criterion 2
for T, need in [
    (np.array([[1, 1], [1, -1]]), (1, 0)),
    (np.array([[1, 1, 1], [-1, -1, -1]]), (3, 18)),
    (np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, -1, -1]]), (0, 32)),
    (hadamard(128)[:20], (64, 0)),
]:
    value = tuple(criterion(T))
    assert value == need, (
        f"a codebook {T.dtype}{list(T.shape)} gives {value}, need {need}: distance first; ordered pairs, no "
        "diagonal; mind int8."
    )
print("criterion: correct")


# %%
def targets(book):
    return np.stack([book.targets[label] for label in range(10)])


spread = [targets(Codebook(8, "spread", n_labels=10, seed=seed).add(list(range(10)))) for seed in range(5)]
print("(least distance, crowding) of spread, five seeds:", [criterion(T) for T in spread])
print("Plotkin's bound on the least distance of 10 codes of 8 bits:", 8 * 10 // (2 * 9))

# %% [markdown]
# ## 7.2 Design
#
# The best of 2,000 random draws has a least distance of 2 or 3; the bound allows 4. Write `design()`: a codebook (10,
# 8) of +1 and -1 that beats `spread` by the criterion. The first check asks that it beats all five seeds above, the
# second that it reaches the bound.
#
# Ways to go, all of which work if you think a little; take one:
#
# - **Greedy** (a "lexicode"): go through all 256 codes in order and take each one that is far enough from all taken
#   so far.
# - **Search**: start at random, change one bit of one code, keep what improves the criterion, start again when stuck.
# - **Algebra**: there are only 8 columns in the Hadamard matrix of order 8, two too few. What else is at distance 4
#   from most of them?
#
# <details><summary>Hint 1 (greedy)</summary>
#
# Code number v has bits `(v >> np.arange(8)) & 1`. Start with v = 0 and ask for distance 4. More than 10 codes come
# out, so you can choose among them to lower the crowding.
#
# </details>
# <details><summary>Hint 2 (algebra)</summary>
#
# If c is at distance 4 from d, how far is -c from d? And from c?
#
# </details>
# <details><summary>Hint 3 (either)</summary>
#
# The greedy codes are 16 in 8 opposite pairs, and so are the columns with their negatives. Ten of them must contain
# opposite pairs; their inner product is -8, the others' 0. As few such pairs as possible is best.
#
# </details>


# %% solution design
def design():
    """(10, 8) codes of +1 and -1 that beat spread by the criterion."""
    ### BEGIN SOLUTION
    H = hadamard(8).astype(int)
    return np.concatenate([H, -H[:2]])  # eight columns (the matrix is symmetric), and the opposites of two
    ### END SOLUTION


# %% check design 2
T = np.asarray(design())
assert T.shape == (10, 8), f"design() has shape {T.shape}; (10, 8) is needed, a row for each class."
assert set(np.unique(T).tolist()) <= {-1, 1}, (
    f"design() holds {np.unique(T)[:5]}; only +1 and -1 are codes: 2 * bits - 1."
)
least, crowding = criterion(T)
best = max((distance, -crowd) for distance, crowd in map(criterion, spread))
assert (least, -crowding) > best, (
    f"your codebook has least distance {least} and crowding {crowding}; the best spread of five seeds has "
    f"{best[0]} and {-best[1]}: a larger distance is needed, or the same and less crowding."
)
print(f"better than spread: least distance {least} (spread {best[0]}), crowding {crowding} (spread {-best[1]})")

# %% check bound 2
least, crowding = criterion(np.asarray(design()))
assert least >= 4, f"the least distance is {least}; Plotkin's bound is 4 and can be reached: see the hints of 7.2."
print(f"the least distance {least} is the largest possible; crowding {crowding}")

# %% [markdown]
# ## 7.3 Does retrieval follow?
#
# By the paper's protocol: MNIST, 20,000 streamed, 69,000 to search, 1,000 queries, 300 anchors. The class below is
# HMOH with target codes that we give it; everything else is the same. For each of three seeds (queries, order of the
# stream, codebook) we measure the mAP of a random codebook, of `spread`, and of yours, with its rows given to the
# digits at random.
#
# Write `shuffled(T, seed)`: a dict from the digits 0 .. 9 to the rows of T in random order, drawn by
# `np.random.default_rng(seed)`.
#
# <details><summary>Hint</summary>
#
# `rng.permutation(T)` shuffles rows; `dict(enumerate(...))` numbers them.
#
# </details>


# %% solution shuffled
def shuffled(T, seed):
    """{digit: row of T}, rows in random order."""
    ### BEGIN SOLUTION
    return dict(enumerate(np.random.default_rng(seed).permutation(np.asarray(T))))
    ### END SOLUTION


# %% check shuffled 1
T = np.arange(80).reshape(10, 8)
given = shuffled(T, 3)
assert sorted(given) == list(range(10)), f"the keys are {sorted(given)}; the digits 0 to 9 are needed."
assert sorted(row[0] for row in given.values()) == list(range(0, 80, 8)), "every row of T must be given exactly once."
assert any(given[digit][0] != 8 * digit for digit in range(10)), "the rows are still in order: shuffle them."
assert all((given[digit] == shuffled(T, 3)[digit]).all() for digit in range(10)), (
    "the same seed gave another order: make a fresh default_rng(seed)."
)
print("shuffled: correct")


# %%
class GivenTargets(HMOH):
    """HMOH with the target codes of `given`, label -> code, instead of drawn ones."""

    given: dict | None = None

    def _new_codebook(self):
        book = super()._new_codebook()
        book.targets.update({label: np.asarray(code, np.int8) for label, code in self.given.items()})
        return book


mnist = datasets.load("mnist")
features, labels = mnist.features, mnist.labels
mAP = {"random": [], "spread": [], "designed": []}
points = []  # (kind, least distance, mAP) of every codebook measured
for seed in range(3):
    parts = datasets.split(mnist, seed)
    feature_map = RBF(300, divisor=6).fit(features[parts.stream[:600]])
    Z = [feature_map.transform(features[rows]) for rows in parts]  # stream, database, queries
    models = {f"random {i}": HMOH(8, random_state=100 * seed + i) for i in range(3)}
    models["spread"] = HMOH(8, codebook="spread", random_state=seed)
    for i in range(4):
        models[f"designed {i}"] = GivenTargets(8, random_state=seed)
        models[f"designed {i}"].given = shuffled(design(), 100 * seed + i)
    for name, model in models.items():
        model.fit(Z[0], labels[parts.stream])
        result = hamming_histogram(
            model.transform(Z[2]), model.transform(Z[1]), labels[parts.queries], labels[parts.database]
        )
        kind = name.split()[0]
        mAP[kind].append(result.mean_average_precision())
        points.append((kind, criterion(np.stack(list(model.targets_.values())))[0], mAP[kind][-1]))
paper = json.loads((datasets.FOLDER / "paper_results.json").read_text())["results"]["mnist"]["HMOH"]["mAP"]["8"]
print(f"mAP on MNIST, 8 bits, three seeds; the paper's HMOH: {paper:.3f}")
for kind, values in mAP.items():
    print(
        f"  {kind:<9} mean {np.mean(values):.3f}, least {min(values):.3f}, largest {max(values):.3f}, "
        f"{len(values)} runs"
    )

# %%
_, axes = plt.subplots()
for kind in mAP:
    where, values = zip(*[(d, value) for k, d, value in points if k == kind], strict=True)
    axes.plot(where, values, "o", label=kind)
axes.axhline(paper, color="black", linewidth=1, linestyle="--", label="the paper's HMOH")
axes.set(
    title=f"MNIST, 8 bits: {len(points)} codebooks",
    xlabel="least Hamming distance of two targets (bits)",
    ylabel="mAP",
    xticks=range(5),
)
axes.legend(loc="lower right")
correlation = np.corrcoef([d for _, d, _ in points], [value for *_, value in points])[0, 1]
gain = np.mean(mAP["designed"]) - np.mean(mAP["spread"])
print(f"correlation of least distance and mAP {correlation:.2f}; designed minus spread {gain:+.3f} in the mean")
for seed in range(3):
    designed = mAP["designed"][4 * seed : 4 * seed + 4]
    print(f"seed {seed}: spread {mAP['spread'][seed]:.3f}, designed {', '.join(f'{value:.3f}' for value in designed)}")
print("every designed run above every spread run of any seed:", min(mAP["designed"]) > max(mAP["spread"]))

# %% [markdown]
# ## 7.4 Verdict
#
# Write three or four sentences: does mAP follow the criterion, by how much, and how sure can one be? What else,
# besides the least distance, might matter? How do you explain the spread among your own codebooks, which all have the
# same criterion? (Graded by hand.)

# %% [markdown] answer verdict 3
# <!-- ### BEGIN SOLUTION -->
# In these runs mAP follows: the correlation of least distance and mAP over all codebooks is about .9, and the
# designed codebooks are .03 better than `spread` in the mean, and every run of them is above `spread` of its own
# seed. But the ranges touch: the worst designed run is below the best spread run of another seed. It is one data set,
# one code length and three seeds, and the codebooks of a seed share queries and stream, so it is evidence and not
# proof. The designed codebooks differ only in which digit has which code, and their mAP still varies by .04 over all
# runs, part of it from the split, part from the assignment: a bit divides the digits into two groups, and some
# divisions are easier for a linear function of the features than others. The criterion never looks at the data.
# <!-- ### END SOLUTION -->

# %% [markdown]
# **Going further.** The ten rows come from a famous code: the 16 words of the extended Hamming code (or first-order
# Reed-Muller code) of length 8. No 17 words of 8 bits have least distance 4. What would you do for 20 classes and 8
# bits?
