"""MIHash, online hashing with mutual information (Cakir et al., ICCV 2017).

A reservoir holds a random part of the stream. A code is good if the Hamming distances from a
sample to the reservoir tell its similar items from the others. Mutual information measures
this. Every sample moves the hash functions up its gradient.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(3, size=400)
>>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(400, 3))
>>> MIHash(n_bits=8, reservoir=50, random_state=0).fit(X, y).transform(X[:5]).shape
(5, 1)
"""

from __future__ import annotations

import numpy as np

from hmoh import COUNT, Form, check_integer, check_real, compiled

from .information import histograms, mean_information, pack, replace_items
from .linear import LinearHasher, share_label

__all__ = ["MIHash"]

MOST_ITEMS = 1 << 15  # in the reservoir of a model in a file that has not started
BLOCK = 64  # samples whose products with the reservoir are computed at a time
ROUNDING = 1e-9  # a gain in mutual information has to be larger than this


# ---- compiled loops ------------------------------------------------------------------


@compiled
def _tanh(x):
    """Return tanh to 1e-6, by Lambert's continued fraction to its 11th term.

    x float32, result float32. The fraction is x / (1 + x^2 / (3 + x^2 / (5 + ...))). Unlike
    the library's tanh it runs in vector registers. So does np.divide, whereas / would check
    for zero.
    """
    f = np.float32
    x = min(max(x, f(-8)), f(8))
    u = x * x
    a = f(2145) + u
    a = f(675675) + u * a
    a = f(64324260) + u * a
    a = f(1964187225) + u * a
    a = f(13749310575) + u * a
    b = f(45045) + u * f(66)
    b = f(7567560) + u * b
    b = f(413513100) + u * b
    b = f(6547290750) + u * b
    b = f(13749310575) + u * b
    return min(max(np.divide(x * a, b), f(-1)), f(1))


@compiled
def _dot(A, i, B, j):
    """Return the inner product of row i of A and row j of B.

    A (n, m) float32, B (k, m) float32, result float32.
    """
    total = np.float32(0)
    for m in range(A.shape[1]):
        total += A[i, m] * B[j, m]
    return total


@compiled
def _products(A, B, G):
    """Set G = A B^T, every inner product on its own.

    A (n, m) float32, B (k, m) float32, G (n or more, k) float32. The rounding of BLAS depends
    on the shapes of the matrices, so that the cutting of the stream would change the result.
    """
    f = np.float32
    end = len(A) - 1
    # Four rows of A at a time share what is loaded of B. At the end the last row of A is
    # repeated, so that one loop computes every product, with the same rounding.
    for i in range(0, len(A), 4):
        i1 = min(i + 1, end)
        i2 = min(i + 2, end)
        i3 = min(i + 3, end)
        for j in range(len(B)):
            g0 = g1 = g2 = g3 = f(0)
            for m in range(A.shape[1]):
                v = B[j, m]
                g0 += A[i, m] * v
                g1 += A[i1, m] * v
                g2 += A[i2, m] * v
                g3 += A[i3, m] * v
            G[i, j] = g0
            G[i1, j] = g1
            G[i2, j] = g2
            G[i3, j] = g3


@compiled
def _slopes(joint, n, width, slope):
    """Set slope[s, l] = c_r of the items of class s between the centres l and l + 1.

    joint (2, bins + 1) float64, slope (2, bins) float64. Class 0 is dissimilar, class 1 is
    similar. joint[s, l] is the soft number of items of class s at centre l, and n is the number
    of all items.
    """
    for s in range(2):
        n_class = joint[s].sum()
        before = 0.0
        for l in range(joint.shape[1]):
            both = joint[0, l] + joint[1, l]
            T = np.log2(both / n) if both > 0 else 0.0
            T -= np.log2(joint[s, l] / n_class) if joint[s, l] > 0 else 0.0
            if l > 0:
                slope[s, l - 1] = (T - before) / (width * n)
            before = T


@compiled
def _step_and_hash(x, before, now, A, g, W, h):
    """Make the step W += g x_before^T, and set h = 2 phi - 1 of sample `now` by the new W.

    x (k, m) W (b, m) float32, g (b,) h (b,) float32. One pass over W does both.
    """
    f = np.float32
    for k in range(len(W)):
        # In a variable, because the compiler cannot know that a write to W leaves g as it is.
        step = g[k]
        for m in range(W.shape[1]):
            W[k, m] += step * x[before, m]
        h[k] = _tanh(f(A / 2) * _dot(W, k, x, now))


@compiled
def _step_and_compare(n, A, a, g, h, P, H, inner):
    """Make the step P += a g^T, set H = 2 phi - 1 of the n items, and inner = H h.

    a (R,) inner (R,) float32, g (b,) h (b,) float32, P (R, b) H (R, b) float32. One pass over P
    does all this. A pass takes long, because P is larger than the nearest cache.
    """
    f = np.float32
    for r in range(n):
        change = a[r]
        total = f(0)
        for k in range(P.shape[1]):
            p = P[r, k] + change * g[k]
            P[r, k] = p
            t = _tanh(f(A / 2) * p)
            H[r, k] = t
            total += h[k] * t
        inner[r] = total


# P is kept up to date: a step of W along a sample changes P by the sample's products with the
# items. These products are given as G, first those with the n items, then those with the block.
# A step is made together with what the next sample needs, so that W and P are read only once.
@compiled
def _ascend(x, G, similar, slot, row, n, A, rate, published, n_bins, W, P):
    """Make one step for each sample of a block x, and put samples into the reservoir.

    x (k, m) G (k, n+k) W (b, m) P (R, b) float32, similar (k, n+k) bool, slot (k,) row (R,) int64.
    P = (reservoir) W^T. Item r of the reservoir has column row[r] in G and in `similar`. Sample i
    goes into slot[i] of the reservoir, unless that is negative. There are n items before the
    block. Return their number after it.
    """
    f = np.float32
    b = len(W)
    n_before = n
    width = b / n_bins
    # 2 phi - 1 of the sample and of the items, and their inner products.
    h = np.empty(b, f)
    H = np.empty(P.shape, f)
    inner = np.empty(len(P), f)
    # The last step: W += g x^T and P += a g^T. Before the first sample there was none.
    g = np.zeros(b, f)
    a = np.zeros(len(P), f)
    # The bin and the class of each item.
    place = np.empty(len(P), np.int64)
    kind = np.empty(len(P), np.int64)
    joint = np.empty((2, n_bins + 1))
    slope = np.empty((2, n_bins))
    for i in range(len(x) + 1):
        last = max(i - 1, 0)
        # After the last sample only its step is left to be made.
        now = min(i, len(x) - 1)
        _step_and_hash(x, last, now, A, g, W, h)
        # The reservoir.
        if i > 0 and slot[last] >= 0:
            n = max(n, slot[last] + 1)
            row[slot[last]] = n_before + last
            # The products of the new item are those by the W after the step.
            a[slot[last]] = 0
            for k in range(b):
                P[slot[last], k] = _dot(W, k, x, last)
        _step_and_compare(n, A, a, g, h, P, H, inner)
        if i == len(x):
            break
        # The soft histograms of the distances.
        joint[:] = 0
        for r in range(n):
            # The distance in widths of a bin.
            d = min(max((b - inner[r]) / (2 * width), 0.0), float(n_bins))
            place[r] = min(int(d), n_bins - 1)
            kind[r] = similar[i, row[r]]
            joint[kind[r], place[r] + 1] += d - place[r]
            joint[kind[r], place[r]] += 1 - (d - place[r])
        _slopes(joint, n, width, slope)
        # The gradient.
        g[:] = 0
        total = 0.0
        for r in range(n):
            c = f(slope[kind[r], place[r]])
            total += c
            a[r] = G[i, row[r]]
            for k in range(b):
                g[k] += c * H[r, k]
        for k in range(b):
            # The published code has phi_r / 2 in the place of 2 phi_r - 1.
            gradient = (total + g[k]) / 4 if published else g[k]
            # (1 - h^2) / 4 = phi_x (1 - phi_x).
            g[k] = rate * A * (1 - h[k] * h[k]) / 4 * gradient
    return n


def _slots(keys: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the place that each item gets in the reservoir, or -1 for none.

    The reservoir holds the items with the smallest keys, so that it is a uniform sample of the
    stream. K are the keys in its places, infinite where a place is free. They are updated.
    """
    slot = np.full(len(keys), -1)
    for i, key in enumerate(keys):
        last = np.argmax(K)
        if key < K[last]:
            slot[i] = last
            K[last] = key
    return slot


# ---- the method ----------------------------------------------------------------------


class MIHash(LinearHasher):
    """Online hashing with mutual information.

    For every sample x the Hamming distances d_r to the items of a reservoir should tell the
    similar from the dissimilar items. So the mutual information
    I(d; similar) = H(d) - H(d | similar) is maximised. To have a gradient, codes are soft,
    phi(x) = sig(A W^T x), and so are distances and their histograms. The distance

        d_r = (b - (2 phi(x) - 1).(2 phi(x_r) - 1)) / 2

    is shared by the two nearest of K + 1 centres on [0, b], which are Delta = b / K apart. Let
    d_r be between the centres l and l + 1, and let p_s be the histogram of r's class (similar
    to x or not). Then the derivative of -I by d_r is c_r (with log2 0 = 0), and a step is

        c_r = [(log2 p - log2 p_s)_{l+1} - (log2 p - log2 p_s)_l] / (Delta n_r),
        w_k += eta A phi_k (1 - phi_k) sum_r c_r (2 phi_k(x_r) - 1) x .

    The published code has phi(x_r) / 2 in the place of 2 phi(x_r) - 1, which is not the
    gradient. The reservoir is a uniform sample of the stream. Its first tenth is filled before
    learning begins. Every ``update_every`` samples the hash functions in use are compared with
    the current W, by the mutual information of their codes within the reservoir, where every
    item in turn is x. If that of W is higher by more than theta, W replaces them. A sample
    costs O(R d + R b).

    The paper's (theta, R, A), on rows of unit length (`UnitLength`): CIFAR-10 and MNIST
    (0, 1000, 10), Places205 (0, 5000, 10), NUS-WIDE (0, 2000, 1).

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits, here the mean of five seeds:

        the paper                    .664 .741 .744 .780 .713 .681
        here                         .665 .750 .784 .797 .799 .801
        here, gradient="published"   .680 .744 .775 .774 .772 .747

    By the published gradient long codes do worse, as in the paper, but not by as much.

    Parameters
    ----------
    n_bits : int
    reservoir : int
        R, the largest number of items in the reservoir.
    n_bins : int
        K.
    sharpness : float
        A.
    threshold : float
        theta, not below 0.
    learning_rate : float
        eta.
    update_every : int
    gradient : {"true", "published"}
    feature_map, warmup, random_state
        As in `HMOH`.

    Attributes
    ----------
    weights_, n_seen_, feature_map_
        As in `HMOH`. ``weights_`` are the hash functions in use.

    References
    ----------
    F. Cakir, K. He, S. A. Bargal, S. Sclaroff. MIHash: Online Hashing with Mutual Information.
    ICCV 2017.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 100)
    >>> y = np.array(["cat", "dog"] * 100)
    >>> codes = MIHash(n_bits=4, reservoir=20, random_state=0).fit_transform(X, y)
    >>> bool(codes[0] != codes[1])
    True
    """

    _saved = (
        *LinearHasher._saved,
        "_used",
        "_items",
        "_labels",
        "_keys",
        "_P",
        "_codes",
        "_n_steps",
    )
    # Which items are similar to each other, and the histograms of their distances by the codes in
    # use. Both follow from the rest, so a file does not have them.
    _similar = None
    _counts = None

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        reservoir: int = 1000,
        n_bins: int = 16,
        sharpness: float = 10.0,
        threshold: float = 0.0,
        learning_rate: float = 1.0,
        update_every: int = 100,
        gradient: str = "true",
        warmup: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits = n_bits
        self.feature_map = feature_map
        self.reservoir = reservoir
        self.n_bins = n_bins
        self.sharpness = sharpness
        self.threshold = threshold
        self.learning_rate = learning_rate
        self.update_every = update_every
        self.gradient = gradient
        self.warmup = warmup
        self.random_state = random_state

    @property
    def _least_warmup(self) -> int:
        return -(-self.reservoir // 10)

    def _check_params(self) -> None:
        super()._check_params()
        check_integer(self.reservoir, "reservoir")
        check_integer(self.n_bins, "n_bins")
        check_integer(self.update_every, "update_every")
        check_real(self.sharpness, "sharpness")
        check_real(self.learning_rate, "learning_rate")
        check_real(self.threshold, "threshold", least=0)
        if self.gradient not in ("true", "published"):
            way = 'pass "true" or "published"'
            raise ValueError(f"gradient={self.gradient!r} is unknown; {way}.")

    def _start(self, Z: np.ndarray) -> None:
        super()._start(Z)
        self._used = self._W
        self._n_steps = 0
        # Behind the reservoir there is room for a block.
        self._items = np.zeros((self.reservoir + BLOCK, Z.shape[1]), np.float32)
        self._keys = np.full(self.reservoir, np.inf)
        self._P = np.zeros((self.reservoir, self.n_bits), np.float32)
        # The codes of the items by the hash functions in use.
        self._codes = pack(self._P)
        self._similar = None
        self._counts = None

    def _forms(self, m: int, labels: Form) -> dict[str, Form]:
        forms = super()._forms(m, labels)
        items = (self.reservoir, self.n_bits)
        n_words = -(-self.n_bits // 64)
        return forms | {
            "_used": forms["_W"],
            "_items": Form("float32", (self.reservoir + BLOCK, m)),
            "_labels": labels.like("_labels", optional=True),
            "_keys": Form("float64", (self.reservoir,), 0, np.inf),
            "_P": Form("float32", items),
            "_codes": Form("uint64", (self.reservoir, n_words), 0),
            "_n_steps": COUNT,
        }

    def _check_state(self, state: dict, started: bool) -> None:
        super()._check_state(state, started)
        if started:
            n = len(state.get("_labels", ()))
            is_taken = np.arange(self.reservoir) < n
            if n > self.reservoir or (np.isfinite(state["_keys"]) != is_taken).any():
                raise ValueError(f"_keys does not have {n} items, as _labels has")
            # A bit beyond n_bits would make a distance larger than any counter.
            all_ones = pack(np.ones((1, self.n_bits)))
            if (state["_codes"] & ~all_ones).any():
                raise ValueError(f"_codes has bits set beyond n_bits={self.n_bits}")

    def _check_size(self, state: dict) -> None:
        super()._check_size(state)
        if self.reservoir > MOST_ITEMS:
            raise ValueError(f"reservoir={self.reservoir} is more than {MOST_ITEMS}")

    def _learn(self, Z: np.ndarray, y: np.ndarray) -> None:
        # The steps below write into these arrays.
        self._W = self._W.copy()
        self._items = self._items.copy()
        self._keys = self._keys.copy()
        self._P = self._P.copy()
        self._codes = self._codes.copy()

        # The generator continues where it was after the samples before.
        source = np.random.PCG64([self._seed, 2]).advance(self._n_steps)
        keys = np.random.Generator(source).random(len(Z))
        if not hasattr(self, "_labels"):
            self._fill(Z, y, keys)
        if self._counts is None:
            self._compare_items()
        else:
            self._similar = self._similar.copy()
            self._counts = self._counts.copy()
        slot = _slots(keys, self._keys)
        start = 0
        while start < len(Z):
            # A block ends at the latest where the hash functions in use may be replaced.
            n_left = self.update_every - self._n_steps % self.update_every
            stop = min(start + BLOCK, start + n_left, len(Z))
            rows = slice(start, stop)
            self._learn_block(Z[rows], y[rows], slot[rows])
            self._n_steps += stop - start
            if self._n_steps % self.update_every == 0:
                self._replace_used()
            start = stop

    def _fill(self, Z: np.ndarray, y: np.ndarray, keys: np.ndarray) -> None:
        """Put the first samples into the reservoir, and set their keys to infinity."""
        n = min(self._least_warmup, len(Z))
        self._items[:n] = Z[:n]
        self._labels = y[:n]
        self._keys[:n] = keys[:n]
        # A sample with an infinite key is not put into the reservoir a second time.
        keys[:n] = np.inf
        _products(self._items[:n], self._W, self._P)
        self._codes[:n] = pack(self._P[:n])

    def _compare_items(self) -> None:
        """Compute which items are similar, and the histograms of the codes in use."""
        n = len(self._labels)
        self._similar = np.zeros((self.reservoir, self.reservoir), bool)
        self._similar[:n, :n] = share_label(self._labels, self._labels)
        self._counts = histograms(self._codes[:n], self._similar, self.n_bits)

    def _learn_block(self, x: np.ndarray, y: np.ndarray, slot: np.ndarray) -> None:
        """Learn from a block of samples, and put some of them into the reservoir."""
        n = len(self._labels)
        self._items[n : n + len(x)] = x
        labels = np.concatenate([self._labels, y])
        similar = share_label(y, labels)
        G = np.empty((len(x), len(labels)), np.float32)
        _products(x, self._items[: len(labels)], G)
        row = np.arange(self.reservoir)
        settings = (
            float(self.sharpness),
            float(self.learning_rate),
            self.gradient == "published",
            self.n_bins,
        )
        n_now = _ascend(x, G, similar, slot, row, n, *settings, self._W, self._P)

        row = row[:n_now]
        new = np.flatnonzero(row >= n)
        self._items[new] = self._items[row[new]]
        self._labels = labels[row]
        F = np.empty((len(new), self.n_bits), np.float32)
        _products(self._items[new], self._used, F)
        new_similar = similar[row[new] - n][:, row]
        kept = (self._codes, self._similar, self._counts)
        replace_items(new, pack(F), new_similar, n, *kept)

    def _replace_used(self) -> None:
        """Replace the hash functions in use by W, if its codes are better."""
        n = len(self._labels)
        codes = pack(self._P[:n])
        counts = histograms(codes, self._similar, self.n_bits)
        gain = mean_information(counts[:n]) - mean_information(self._counts[:n])
        if gain > self.threshold + ROUNDING:
            self._used = self._W.copy()
            self._codes[:n] = codes
            self._counts = counts

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._used.T

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions in use, (m, n_bits) float32."""
        self._check_fitted()
        return self._used.T.copy()
