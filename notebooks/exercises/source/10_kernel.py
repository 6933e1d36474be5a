# %% [markdown]
# # Exercise 10: The kernel, by hand and fast
#
# **You will learn** what the kernel features of HMOH are, how to compute them by a plain loop, a
# compiled loop and a matrix product, what a bandwidth that is too narrow or too wide does, and
# where the fast formula loses digits.
#
# **Time:** 50 to 60 minutes. **Points:** 10.
#
# **Before you start:** exercise 3 (the perceptron and a compiled loop); the exponential function;
# |x - a|² as a sum of squares.
#
# **In the paper:** Sec. 3.2 (kernel features and anchors) and Sec. 4.5, Fig. 27 (the bandwidth).

# %%
import sys

sys.path.insert(0, "../..")  # keep this notebook here: start.py is two folders above
import start

import math

import numpy as np
from numba import njit

from exercises import references
from exercises.checks import explained, one_line_errors, returned, switched_off
from hmoh import HMOH
from kernels import RBF

one_line_errors()

# %%
import warnings

from study import datasets

warnings.filterwarnings("ignore", "the mean makes up")  # advice on the wide kernels of 10.4
mnist = datasets.load("mnist")
parts = datasets.split(mnist, seed=0)
stream = parts.stream[:2000]
X = mnist.features[stream]
labels = mnist.labels[stream]
print("images as rows", X.shape, X.dtype, "with values from", X.min(), "to", X.max())

# %% [markdown]
# ## 10.1 Anchors and the bandwidth
#
# HMOH learns a linear function for each bit, but linear functions of the pixels do not separate
# digits well. So we first describe every image x (a row of p numbers; here p = 784) by **its
# similarity to some fixed images**, the **anchors** a₁ .. a_m. The paper takes the first m images
# of the stream. The new features of x are the m numbers
#
# $$z_j = \exp\left(-\frac{|x - a_j|^2}{2\,\eta^2}\right), \qquad j = 1, \dots, m,$$
#
# where |x - a|² is the sum of the squared differences of the p numbers. A feature is 1 if x is the
# anchor itself, and close to 0 if x is far from it. What counts as far? This is set by η², the
# squared **bandwidth**. It must fit the data, so we compute it from them:
#
# $$\eta^2 = \frac{\text{mean of } |x - a|^2}{\text{divisor}} .$$
#
# The mean is over all pairs of an anchor a and a row x **that is not an anchor**. (On a stream,
# only the anchors are known when learning starts. `kernels.RBF` then uses the pairs of two
# different anchors, as in `01_method`.) We tune the divisor; the published code uses 6 for MNIST.
# (The paper calls this number the bandwidth. A larger one makes the kernel *narrower*.)
#
# Write `bandwidth(X, m, divisor)`, which returns η² if the first m rows of X are the anchors.
#
# <details><summary>Hint 1</summary>
#
# `X[:m]` are the anchors and `X[m:]` the other rows. Loop over the anchors and add up `((others -
# a) ** 2).sum()`. An array of all pairs at once would need too much memory.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Every anchor forms a pair with every other row. Divide by the number of pairs, and then by the
# divisor.
#
# </details>


# %% solution bandwidth
def bandwidth(X, m, divisor):
    """Return eta^2: the mean |x - a|^2 of other rows to the first m rows, over the divisor."""
    ### BEGIN SOLUTION
    anchors = X[:m]
    others = X[m:]
    total = 0.0
    for a in anchors:
        total += ((others - a) ** 2).sum()
    return total / (m * len(others)) / divisor
    ### END SOLUTION


# %% check bandwidth 1
rows = np.array([[0, 0], [0, 3], [4, 0], [4, 3]], np.float32)
with switched_off(globals(), "kernels.RBF"):
    value = bandwidth(rows, 1, 1.0)
    by_two_anchors = bandwidth(rows[:3], 2, 1.0)
    halved = bandwidth(rows, 1, 2.0)
    on_mnist = bandwidth(X[:300], 100, 6.0)
need = 50 / 3
assert value is not None and np.ndim(value) == 0, (
    f"bandwidth returns {value!r}, but one number is needed: the mean over all pairs."
)
for name, wrong in [
    ("the mean over all rows, with the anchor's distance 0 to itself", 50 / 4),
    ("the mean |x - a|, squared: square each distance before the mean", 16.0),
    ("eta, not eta^2: take no root", math.sqrt(need)),
    ("a sum over pairs: divide by their number", 50.0),
    (
        "half of it, because it is divided by p = 2 too: |x - a|^2 is a sum over p",
        need / 2,
    ),
]:
    assert abs(value - wrong) > 1e-4, (
        f"anchor (0, 0), other rows (0, 3), (4, 0), (4, 3), divisor 1: {value:.4f}, but "
        f"(9 + 16 + 25) / 3 = {need:.4f} is needed. Yours is {name}."
    )
assert abs(value - need) < 1e-4, (
    f"anchor (0, 0), other rows (0, 3), (4, 0), (4, 3), divisor 1: {value:.4f}, but "
    f"(9 + 16 + 25) / 3 = {need:.4f} is needed: the mean of |x - a|^2."
)
assert abs(halved - need / 2) < 1e-4, (
    f"with divisor 2 eta^2 is {halved:.4f}, but half of {need:.4f} is needed: divide by it."
)
assert abs(by_two_anchors - 20.5) < 1e-4, (
    f"anchors (0, 0), (0, 3) and one row (4, 0): {by_two_anchors:.4f}, but "
    "(16 + 25) / 2 = 20.5 is needed: every anchor is paired with every other row."
)
need = RBF(100, divisor=6.0).fit(X[:300]).eta2_
assert abs(on_mnist / need - 1) < 1e-3, (
    f"300 images, 100 anchors, divisor 6: {on_mnist:.4f}, but kernels.RBF has {need:.4f}: "
    "divide by the pairs of an anchor and another row, here 100 times 200."
)
print(f"bandwidth: correct; for 300 images, 100 anchors and divisor 6 eta^2 is {need:.2f}")

# %% [markdown]
# ## 10.2 The features, by hand
#
# Let A (m, p) hold the anchors as rows. Write `rbf(X, A, eta2)`: the features Z (n, m) of all n
# rows of X, as float32, by two plain loops over rows and anchors. It is slow, but you can trust it,
# and you will compare the fast versions with it.
#
# <details><summary>Hint</summary>
#
# Make an empty float32 array for Z first. For row i and anchor j you need one number, |x - a|²,
# which numpy computes from the two rows without a third loop. Then insert it into the formula of
# 10.1, where `eta2` is already η². `math.exp` takes a single number.
#
# </details>


# %% solution rbf
def rbf(X, A, eta2):
    """Return (n, m) float32: exp(-|x - a|^2 / (2 eta^2)) for the rows x of X and a of A."""
    ### BEGIN SOLUTION
    Z = np.empty((len(X), len(A)), np.float32)
    for i in range(len(X)):
        for j in range(len(A)):
            squared = ((X[i] - A[j]) ** 2).sum()
            Z[i, j] = math.exp(-squared / (2 * eta2))
    return Z
    ### END SOLUTION


# %% check rbf 2
returned(rbf, X[:2], X[:3], 1.0)
rows = np.array([[0, 0], [3, 4]], np.float32)
some = np.array([[0, 0], [3, 0], [0, 4]], np.float32)
squared = np.array([[0, 9, 16], [25, 16, 9]], float)
eta2 = 8.0
need = np.exp(-squared / 16)
with switched_off(globals(), "kernels.RBF"):
    Z = rbf(rows, some, eta2)
Z = np.asarray(Z)
assert Z.shape == (2, 3), (
    f"2 rows and 3 anchors gave shape {Z.shape}, but (n, m) = (2, 3) is needed: "
    "a row for each row of X, a column for each anchor."
)
assert Z.dtype == np.float32, (
    f"Z is {Z.dtype}, but float32 is needed: half of the memory, and enough digits."
)
for name, wrong in [
    ("the 2 in 2 eta^2 is missing", np.exp(-squared / 8)),
    ("eta2 is eta^2 already and need not be squared", np.exp(-squared / 128)),
    ("the distance must be squared, so take no root", np.exp(-np.sqrt(squared) / 16)),
    ("the minus sign is missing", np.exp(squared / 16)),
    (
        "the root of eta2 is taken, but the formula has eta^2",
        np.exp(-squared / (2 * 8**0.5)),
    ),
    ("a mean over the p numbers, but |x - a|^2 is their sum", np.exp(-squared / 32)),
    ("there is no factor before exp: the feature of an anchor itself is 1", need / 4),
]:
    assert not np.allclose(Z, wrong, rtol=1e-4), (
        f"the feature of row (0, 0) and anchor (3, 0) is {Z[0, 1]:.4f}, but "
        f"exp(-9 / 16) = {need[0, 1]:.4f} is needed with eta^2 = 8: {name}."
    )
assert np.allclose(Z, need, atol=1e-6), (
    f"with eta^2 = 8 the features of (0, 0) and (3, 4) are {Z.round(4).tolist()}, but "
    f"exp(-squared / 16) is {need.round(4).tolist()}: here `squared` is {squared.tolist()}."
)
print("rbf: correct by hand")

# %% [markdown]
# ## 10.3 The same, compiled
#
# Write `rbf_compiled(X, A, eta2, Z)` with three loops (rows, anchors, the numbers of a row). It
# writes the features into the given float32 array Z (n, m) and returns nothing.
#
# <details><summary>Hint</summary>
#
# The sum starts again for every pair, so `squared = np.float32(0)` belongs inside the loop over
# anchors. `math.exp` works in compiled code.
#
# </details>


# %% solution compiled
@njit
def rbf_compiled(X, A, eta2, Z):
    """Set Z to the features of the rows of X."""
    ### BEGIN SOLUTION
    for i in range(len(X)):
        for j in range(len(A)):
            squared = np.float32(0)
            for k in range(X.shape[1]):
                difference = X[i, k] - A[j, k]
                squared += difference * difference
            Z[i, j] = math.exp(-squared / (2 * eta2))
    ### END SOLUTION


# %% check compiled 2
rng = np.random.default_rng(0)
rows = rng.normal(size=(5, 4)).astype(np.float32)
some = rng.normal(size=(3, 4)).astype(np.float32)
squared = references.squared_distances(rows, some)
need = np.exp(-squared / 6)
# First as plain Python: compiled code would read beyond the end of an array without a word.
plain = getattr(rbf_compiled, "py_func", rbf_compiled)
for loop in (plain, rbf_compiled):
    Z = np.full((5, 3), np.nan, np.float32)
    advice = "loop over len(X), len(A) and X.shape[1], and compute with single numbers"
    with explained("rbf_compiled", advice):
        result = loop(rows, some, 3.0, Z)
    assert result is None, (
        f"{type(result).__name__} was returned, but nothing must be: write into the given Z."
    )
    assert not np.isnan(Z).any(), (
        f"{int(np.isnan(Z).sum())} of 15 entries of Z were not written: loop over all rows "
        "and all anchors, and write Z[i, j] = ..., not Z = ..."
    )
    if not np.allclose(Z, need, atol=1e-5):
        i, j = np.argwhere(~np.isclose(Z, need, atol=1e-5))[0]
        reason = "compare with your plain loop"
        if np.allclose(Z.ravel(), np.exp(-squared.ravel().cumsum() / 6), atol=1e-4):
            reason = "the sum goes on from the pair before: begin it with 0 for each pair"
        elif np.allclose(Z, np.exp(-squared.cumsum(axis=1) / 6), atol=1e-4):
            reason = "the sum goes on from the anchor before: begin it with 0 for each anchor"
        elif np.allclose(Z, np.exp(-squared / 3), atol=1e-5):
            reason = "the 2 in 2 eta^2 is missing"
        elif (Z > 1).any():
            reason = "a feature cannot be above 1: see the minus sign and the square"
        raise AssertionError(
            f"row {i}, anchor {j}: {Z[i, j]:.4f}, but {need[i, j]:.4f} is needed: {reason}."
        )
A = X[:100].copy()
eta2 = RBF(100, divisor=6).fit(X).eta2_
Z = np.full((200, 100), np.nan, np.float32)
rbf_compiled(X[:200], A, eta2, Z)
gap = np.abs(Z - RBF(100, divisor=6).fit(X).transform(X[:200])).max()
assert gap < 1e-4, (
    f"on MNIST the largest difference from kernels.RBF is {gap:.3g}, but it must be below "
    "0.0001: is the sum a float32 or float64, and never an integer?"
)
print("rbf_compiled: correct, and agrees with kernels.RBF on MNIST")

# %% [markdown]
# ## 10.4 What the bandwidth does
#
# Too wide or too narrow: which is worse? Write `sweep(divisors)`. For each divisor, fit `RBF(100,
# divisor=...)` on X and train `HMOH(32, random_state=0)` on the features of X and `labels`. Return
# the list of the mAP values computed by `score(model, feature_map)`, which is given below. **mAP**
# measures how well codes find images of the same digit; 1 is perfect. Here, codes that know nothing
# reach about 0.1, because there are ten digits.
#
# <details><summary>Hint</summary>
#
# `feature_map = RBF(100, divisor=divisor).fit(X)` and `feature_map.transform(X)` are the two
# steps of a map. HMOH gets the features, not the images.
#
# </details>

# %%
from metrics import mean_average_precision

queries = np.random.default_rng(0).permutation(parts.queries)[:300]
database = parts.database[-3000:]


def score(model, feature_map):
    """Return the mAP of a model's codes, with images mapped by a fitted feature map."""
    return mean_average_precision(
        model.transform(feature_map.transform(mnist.features[queries])),
        model.transform(feature_map.transform(mnist.features[database])),
        mnist.labels[queries],
        mnist.labels[database],
    )


# %% solution sweep
def sweep(divisors):
    """Return the mAP for each divisor of the bandwidth."""
    ### BEGIN SOLUTION
    scores = []
    for divisor in divisors:
        fitted_map = RBF(n_anchors=100, divisor=divisor).fit(X)
        model = HMOH(32, random_state=0).fit(fitted_map.transform(X), labels)
        scores.append(score(model, fitted_map))
    return scores
    ### END SOLUTION


# %% check sweep 1
found = sweep([1.0, 30.0])
assert isinstance(found, (list, tuple, np.ndarray)) and np.shape(found) == (2,), (
    f"sweep([1, 30]) gives {found!r}, but a list of two numbers is needed: one mAP for each."
)
need = []
for divisor in (1.0, 30.0):
    fitted = RBF(100, divisor=divisor).fit(X)
    need.append(score(HMOH(32, random_state=0).fit(fitted.transform(X), labels), fitted))
assert abs(found[0] - found[1]) > 1e-6, (
    f"both divisors give {found[0]:.4f}: is the divisor passed to RBF, and is the model "
    "trained anew for each?"
)
gap = np.abs(np.subtract(found, need)).max()
reason = "100 anchors, 32 bits, random_state=0, map fitted on X, model trained on features of X"
if np.allclose(found, need[::-1], atol=0.01):
    reason = "the values are in the reverse order"
assert gap < 0.01, (
    f"divisors 1 and 30 give {np.round(found, 3).tolist()}, but {np.round(need, 3).tolist()} "
    f"is needed: {reason}."
)
print(f"sweep: correct; divisor 1 gives {found[0]:.3f}, divisor 30 gives {found[1]:.3f}")

# %% [markdown]
# **Predict before you run.** With divisor 100, the kernel is so narrow that the *largest* feature
# of a typical image is below 0.00001. Will the codes still find anything? And with divisor 100,000?

# %%
import matplotlib.pyplot as plt

DIVISORS = [0.01, 0.1, 0.3, 1, 3, 6, 10, 30, 100, 1000, 100_000]
scores = sweep(DIVISORS)
print("  divisor     eta  typical largest feature  mean feature  different codes    mAP")
for divisor, value in zip(DIVISORS, scores, strict=True):
    feature_map = RBF(100, divisor=divisor).fit(X)
    Z = feature_map.transform(X)
    eta = feature_map.eta2_**0.5
    typical = np.median(Z[100:].max(axis=1))  # of images that are not anchors
    mean = Z[100:].mean()
    codes = HMOH(32, random_state=0).fit(Z, labels).transform(Z)
    n_codes = len(np.unique(codes[100:], axis=0))
    print(f"{divisor:9g}{eta:8.2f}{typical:25.2g}{mean:14.2g}{n_codes:17,}{value:7.3f}")
_, axes = plt.subplots()
axes.plot(DIVISORS, scores, "o-")
axes.set(
    title="MNIST, part of it: mAP of 32-bit codes, 100 anchors",
    xlabel="divisor (left: wide kernel, right: narrow kernel)",
    ylabel="mAP",
    xscale="log",
    ylim=(0, 1),
)

# How much did the model learn from samples that are not anchors?
for divisor in (6, 100):
    Z = RBF(100, divisor=divisor).fit_transform(X)
    bits = []
    for n in (len(X), 100):
        model = HMOH(32, random_state=0)
        model.partial_fit(Z[:n], labels[:n], classes=np.arange(10))
        bits.append(Z[100:] @ model.weights_ > 0)
    same = (bits[0] == bits[1]).mean()
    print(f"divisor {divisor}: {same:.0%} of the bits are the same after the 100 anchors alone")
zeros = (RBF(100, divisor=100_000).fit(X).transform(X[100:]) == 0).mean()
print(f"divisor 100,000: {zeros:.0%} of the features are exactly 0 in float32")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Divisor 100 still works, though less well. A sign ignores a positive factor, so tiny features are
# no problem for a code. But they are a problem for learning, because an update adds c z to the
# weights (exercise 3). The anchors, which are the first samples, have a feature that is 1, and all
# other samples hardly change the weights. So after 2,000 samples the model is nearly what it was
# after 100. With divisor 100,000, the features are too small for float32. They are 0, all bits are
# -1, and every image that is not an anchor gets the same code.
#
# </details>
#
# Explain the curve in four or five sentences. What do the features of two different images look
# like if the kernel is very wide? What does this make hard for a perceptron, which has no constant
# term? From which samples does it learn if the kernel is very narrow? Why does the best divisor lie
# in between? Would you trust this best divisor for other data, or for 1,000 anchors? (Graded by
# hand.)

# %% [markdown] answer width 2
# <!-- ### BEGIN SOLUTION -->
# If the kernel is very wide, all distances are small compared with η, so all features of all images
# are close to 1. Two images differ only in small deviations from the same constant vector. A
# perceptron without a constant term first has to balance this large common part. After 2,000
# samples it has not, and most images get nearly the same code. If the kernel is very narrow, only
# the anchors themselves have features that are not tiny. The weights reflect what 100 samples
# taught, and the other 1,900 are lost. Between the two, an image is close to several anchors, so
# that its features tell where it is, and each sample changes the weights. The best divisor depends
# on how close the anchors are: with 1,000 of them, a narrower kernel can be better. For other data
# it must be chosen again, on data that are not used for the final score.
# <!-- ### END SOLUTION -->

# %% [markdown]
# ## 10.5 A matrix product
#
# The three loops perform n m p times a difference, a square and a sum, one after another. Multiply
# out instead:
#
# $$|x - a|^2 = |x|^2 - 2\,x \cdot a + |a|^2 .$$
#
# The squared lengths |x|² and |a|² need only (n + m) p operations. The products x·a of all pairs
# are one matrix product `X @ A.T`. It performs n m p multiplications as well. But libraries for
# matrix products work on blocks of both matrices that stay in the processor's fastest memory, use
# each loaded number many times, and do eight or more operations at once.
#
# Write `rbf_product(X, A, eta2)` by this formula, with the same float32 result as `rbf`. Use no
# loop over rows or anchors, and no array larger than (n, m) or than X.
#
# <details><summary>Hint 1</summary>
#
# `(X**2).sum(axis=1)` gives the n squared lengths of the rows of X. Written as a column,
# `x_squared[:, None]`, numpy adds it to every column of an (n, m) array.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Give each of the three terms a shape that fits (n, m): a column for |x|², a row for |a|², and the
# product as it is. If the result differs from `rbf`, compare |x - a|² for one pair, term by term.
#
# </details>

# %%
# For the cells below: anchors, a bandwidth, and two functions that judge a result.
A = X[:100].copy()
eta2 = RBF(100, divisor=6).fit(X).eta2_


def exact(X, A, eta2):
    """Return the features in float64, by differences, anchor by anchor."""
    return np.exp(-references.squared_distances(X, A) / (2 * eta2))


def lines_run(function, *arguments):
    """Return how many lines of Python a call runs."""
    n_lines = 0

    def count(frame, event, value):
        nonlocal n_lines
        n_lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return n_lines


# %% solution product
def rbf_product(X, A, eta2):
    """Return the same as rbf, by one matrix product."""
    ### BEGIN SOLUTION
    x_squared = (X**2).sum(axis=1)
    a_squared = (A**2).sum(axis=1)
    squared = x_squared[:, None] - 2 * (X @ A.T) + a_squared
    return np.exp(-squared / (2 * eta2)).astype(np.float32)
    ### END SOLUTION


# %% check product 1
import tracemalloc

A = X[:100].copy()
eta2 = RBF(100, divisor=6).fit(X).eta2_
need = exact(X[:400], A, eta2)
returned(rbf_product, X[:2], A, eta2)
with switched_off(globals(), "kernels.RBF"):
    Z = np.asarray(rbf_product(X[:400], A, eta2))
    n_lines = [lines_run(rbf_product, X[:n], A, eta2) for n in (100, 400)]
    tracemalloc.start()
    rbf_product(X[:400], A, eta2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
assert Z.shape == need.shape and Z.dtype == np.float32, (
    f"400 rows, 100 anchors gave {Z.dtype}{list(Z.shape)}, but float32[400, 100] is needed: "
    "end with .astype(np.float32)."
)
gap = np.abs(Z - need).max()
if gap > 1e-3:
    reason = "compare each of the three terms with one pair by hand"
    for name, squared in references.mistaken_products(X[:400], A).items():
        with np.errstate(over="ignore"):
            if np.allclose(Z, np.exp(-squared / (2 * eta2)), rtol=1e-2):
                reason = name
    raise AssertionError(
        f"the largest difference from |x - a|^2 computed by differences is {gap:.3g}, but it "
        f"must be below 0.001: {reason}."
    )
per_row = (n_lines[1] - n_lines[0]) / 300
assert per_row < 0.2, (
    f"each additional row takes {per_row:.0f} more lines of Python: use one product X @ A.T for "
    "all rows, no loop over rows."
)
whole = X[:400].nbytes
assert peak < 10 * whole, (
    f"{peak / 1e6:.0f} MB were needed for {whole / 1e6:.1f} MB of images: an array of all "
    "n m p differences is too large, so use X @ A.T."
)
print(f"rbf_product: correct, with at most {peak / 1e6:.1f} MB of memory for 400 images")

# %% [markdown]
# **Predict before you run.** How many times as fast as the compiled loop is the product, and how
# many times as fast as the plain loop is the compiled one? All of them perform n m p
# multiplications.


# %%
import time


def seconds(function, *arguments):
    """Return the shortest time of five runs."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


n = len(X)
Z = np.empty((n, 100), np.float32)
rbf_compiled(X[:1], A, eta2, Z)  # the first call compiles; it is not timed
by_hand = seconds(rbf, X[:20], A, eta2) * n / 20
compiled = seconds(rbf_compiled, X, A, eta2, Z)
product = seconds(rbf_product, X, A, eta2)
print(f"{n:,} images, 100 anchors, shortest of five runs:")
print(f"plain loop {by_hand * 1e3:8.1f} ms (from 20 images)")
print(f"compiled   {compiled * 1e3:8.1f} ms, {by_hand / compiled:.0f} times as fast")
print(f"product    {product * 1e3:8.1f} ms, {compiled / product:.0f} times as fast as that")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The plain loop already calls numpy for the 784 numbers of a pair, so compiling gains less than in
# exercise 3. The product gains much more, although it performs the same number of multiplications.
# One reason is that the compiler may not change the order of a sum of floats, which keeps the loop
# from using vector registers. (`kernels.py` allows it: see `compiled` there. For up to 16 rows it
# uses the loop, because the product has to prepare its anchors first.)
#
# </details>
#
# ## 10.6 What can go wrong
#
# Adding the same number to all pixels, of images and anchors alike, does not change distances. So
# the features must not change.
#
# **Predict before you run.** We add 10, 100 and 1,000. float32 has about seven digits. Whose
# features change: those of the compiled loop, or those of the product? Can a feature be above 1?

# %%
print("added to   largest error        largest error   largest feature")
print("each pixel of the compiled loop of your product of your product")
need = exact(X[:200], A, eta2)
Z = np.empty((200, 100), np.float32)
for shift in (0, 10, 100, 1000):
    moved = X[:200] + np.float32(shift)
    moved_anchors = A + np.float32(shift)
    rbf_compiled(moved, moved_anchors, eta2, Z)
    with np.errstate(over="ignore"):
        fast = rbf_product(moved, moved_anchors, eta2)
    errors = [np.abs(found - need).max() for found in (Z, fast)]
    print(f"{shift:10,} {errors[0]:20.1e} {errors[1]:15.1e} {fast.max():15.3g}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# The product. With 1,000 added, |x|² is about 784 million, and float32 numbers of this size are
# 64 apart, while the squared distances between digits are about 100. So the difference of the
# large numbers is almost pure rounding error (**cancellation**), and it can even be negative,
# which makes a feature exceed 1. The loop subtracts first, while the numbers still have their
# digits. (If your product is correct in all lines, you have already found the repair.)
#
# </details>
#
# Write `rbf_stable(X, A, eta2)`: still one matrix product in float32, but correct for all of these
# shifts, and never above 1.
#
# <details><summary>Hint 1</summary>
#
# Moving the origin does not change distances. Where should the origin be, so that rows and anchors
# are short vectors?
#
# </details>
# <details><summary>Hint 2</summary>
#
# The mean of the anchors is a good origin, for X and for A. After the formula, `np.maximum(squared,
# 0)` removes what rounding has made negative.
#
# </details>


# %% solution stable
def rbf_stable(X, A, eta2):
    """Return the same as rbf by a matrix product, also for data far from the origin."""
    ### BEGIN SOLUTION
    origin = A.mean(axis=0)
    X = X - origin
    A = A - origin
    x_squared = (X**2).sum(axis=1)
    a_squared = (A**2).sum(axis=1)
    squared = np.maximum(x_squared[:, None] - 2 * (X @ A.T) + a_squared, 0)
    return np.exp(-squared / (2 * eta2)).astype(np.float32)
    ### END SOLUTION


# %% check stable 1
A = X[:100].copy()
eta2 = RBF(100, divisor=6).fit(X).eta2_
need = exact(X[:200], A, eta2)
returned(rbf_stable, X[:2], A, eta2)
for shift in (0, 100, 1000):
    moved = X[:200] + np.float32(shift)
    moved_anchors = A + np.float32(shift)
    kept = moved.copy(), moved_anchors.copy()
    with switched_off(globals(), "kernels.RBF"), np.errstate(over="ignore"):
        Z = np.asarray(rbf_stable(moved, moved_anchors, eta2))
    assert (moved == kept[0]).all() and (moved_anchors == kept[1]).all(), (
        "the arrays that were given have changed: write X = X - origin, not X -= origin."
    )
    assert Z.shape == need.shape and Z.dtype == np.float32, (
        f"Z is {Z.dtype}{list(Z.shape)}, but float32{list(need.shape)} is needed: "
        "the same as rbf returns."
    )
    gap = np.abs(Z - need).max()
    reason = "move the origin to the mean of the anchors"
    moved_apart = exact(moved - moved.mean(axis=0), A - A.mean(axis=0), eta2)
    if np.allclose(Z, moved_apart, atol=1e-2):
        reason = "X and A must be moved by the same vector, or their distances change"
    elif shift == 0:
        reason = "compare with rbf_product, before anything is moved"
    assert gap < 1e-3, (
        f"with {shift} added to each pixel the largest error is {gap:.3g}, but it must be "
        f"below 0.001: {reason}."
    )
# Anchors against themselves, with a narrow kernel: rounding of squared distances near 0.
narrow = eta2 / 1e4
own = np.asarray(rbf_stable(A, A, narrow))
assert own.max() <= 1, (
    f"the largest feature is {own.max():.5f}, but no feature is above 1: rounding can make "
    "a squared distance negative, so take np.maximum(squared, 0)."
)
with switched_off(globals(), "kernels.RBF"):
    n_lines = [lines_run(rbf_stable, X[:n], A, eta2) for n in (100, 400)]
per_row = (n_lines[1] - n_lines[0]) / 300
assert per_row < 0.2, (
    f"each additional row takes {per_row:.0f} more lines of Python: use one product for all rows."
)
print("rbf_stable: right with 0, 100 and 1,000 added to each pixel, and never above 1")

# %% [markdown]
# ## 10.7 Very wide is linear (optional, hard)
#
# Let η be much larger than all distances. Use exp(-ε) ≈ 1 - ε for small ε, and the formula of 10.5.
# Show that every hash function w·z is then, up to small terms, a **linear function of x** plus a
# constant plus a multiple of |x|². So a very wide kernel amounts to linear hashing. Why does it
# still score so much worse in 10.4 than linear hashing would? (No points.)
#
# <details><summary>Answer</summary>
#
# With z_j ≈ 1 - (|x|² - 2 x·a_j + |a_j|²) / (2η²), the sum over j of w_j z_j is a constant, minus
# |x|² Σ w_j / (2η²), plus x · (Σ w_j a_j) / η². The vector Σ w_j a_j can be any combination of
# anchors, so all linear functions in their span are possible. But the part that depends on x is
# smaller than the constant part by the factor |x|²/η². A perceptron starts at 0 and changes w by
# multiples of z, which is nearly the same vector for all images. It takes very many steps until the
# common part cancels and the small part decides. `RBF(center=True)` subtracts the mean feature,
# which removes the common part from the start.
#
# </details>
#
# **What you now have.** All of `RBF` in `kernels.py`, and the reason for each of its lines: the
# anchors, the bandwidth, the loop for few rows and the product for many, the moved origin and the
# clipped distance.
