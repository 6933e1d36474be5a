"""MIHash, online hashing with mutual information (Cakir et al., ICCV 2017).

A reservoir holds a random part of the stream. A code is good if the Hamming distances from a sample
to the reservoir tell its similar items from the others. Mutual information measures this. Every
sample moves the hash functions up its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import State, check_choice, check_number, compiled

from .linear import LinearHasher, no_labels, share_label

__all__ = ["MIHash"]

BLOCK = 64  # samples whose products with the reservoir are computed at a time
FREE = 1.0  # the key of a free place of the reservoir, larger than that of any item
ROUNDING = 1e-9  # a gain in mutual information has to be larger than this

# ---- gradient steps ------------------------------------------------------------------------------


@compiled
def _tanh(x):
    """Return tanh to 1e-6, by Lambert's continued fraction to its 11th term.

    x float32, result float32. The fraction is x / (1 + x^2 / (3 + x^2 / (5 + ...))). Unlike the
    library's tanh it runs in vector registers. So does np.divide, whereas / would check for zero.
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
def _products(A, B):
    """Return A B^T, (n, k) float32, every inner product on its own.

    A (n, m) float32, B (k, m) float32. The rounding of BLAS depends on the shapes of the matrices,
    so that the cutting of the stream would change the result.
    """
    f = np.float32
    G = np.empty((len(A), len(B)), f)
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
    return G


@compiled
def _slopes(joint, n, width, slope):
    """Set slope[s, l] = c_r of the items of class s between the centres l and l + 1.

    joint (2, bins + 1) float64, slope (2, bins) float64. Class 0 is dissimilar, class 1 is similar.
    joint[s, l] is the soft number of items of class s at centre l, and n is that of all items.
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
    """Make the step P += g a^T, set H = 2 phi - 1 of the n items, and inner = H^T h.

    a (R,) inner (R,) float32, g (b,) h (b,) float32, P (b, R) H (b, R) float32. One pass over P
    does all this. Neighbours in memory are items, so that they fill a vector register.
    """
    f = np.float32
    inner[:n] = 0
    for k in range(len(P)):
        step = g[k]
        weight = h[k]
        for r in range(n):
            p = P[k, r] + step * a[r]
            P[k, r] = p
            t = _tanh(f(A / 2) * p)
            H[k, r] = t
            inner[r] += weight * t


# P is kept up to date: a step of W along a sample changes P by the sample's products with the
# items. These products are given as G, first those with the n items, then those with the block.
# A step is made together with what the next sample needs, so that W and P are read only once.
@compiled
def _ascend(x, G, similar, slot, row, n, A, rate, published, n_bins, W, P):
    """Make one step for each sample of a block x, and put samples into the reservoir.

    x (k, m) G (k, n+k) W (b, m) P (b, R) float32, similar (k, n+k) bool, slot (k,) row (R,) int64.
    P = W (reservoir)^T. Item r of the reservoir has column row[r] in G and in `similar`. Sample i
    goes into slot[i] of the reservoir, unless that is negative. There are n items before the block.
    Return their number after it.
    """
    f = np.float32
    b = len(W)
    n_before = n
    width = b / n_bins
    # 2 phi - 1 of the sample and of the items, and their inner products.
    h = np.empty(b, f)
    H = np.empty(P.shape, f)
    inner = np.empty(len(row), f)
    # The last step: W += g x^T and P += g a^T. Before the first sample there was none.
    g = np.zeros(b, f)
    a = np.zeros(len(row), f)
    # The bin, the class and the derivative of each item.
    place = np.empty(len(row), np.int64)
    kind = np.empty(len(row), np.int64)
    c = np.empty(len(row), f)
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
                P[k, slot[last]] = _dot(W, k, x, last)
        _step_and_compare(n, A, a, g, h, P, H, inner)
        if i == len(x):
            break
        # The soft histograms of the distances.
        joint[:] = 0
        for r in range(n):
            # The distance in widths of a bin.
            d = min(max((b - inner[r]) / (2 * width), 0.0), float(n_bins))
            place[r] = min(max(int(d), 0), n_bins - 1)  # also where d is NaN
            kind[r] = similar[i, row[r]]
            joint[kind[r], place[r] + 1] += d - place[r]
            joint[kind[r], place[r]] += 1 - (d - place[r])
        _slopes(joint, n, width, slope)
        # The gradient.
        total = f(0)
        for r in range(n):
            c[r] = slope[kind[r], place[r]]
            total += c[r]
            a[r] = G[i, row[r]]
        for k in range(b):
            gradient = f(0)
            for r in range(n):
                gradient += c[r] * H[k, r]
            # The published code has phi_r / 2 in the place of 2 phi_r - 1.
            if published:
                gradient = (total + gradient) / 4
            # (1 - h^2) / 4 = phi_x (1 - phi_x).
            g[k] = rate * A * (1 - h[k] * h[k]) / 4 * gradient
    return n


def _slots(keys: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return the place that each item gets in the reservoir, or -1 for none.

    The reservoir holds the items with the smallest keys, so that it is a uniform sample of the
    stream. K are the keys in its places, FREE where there is no item. They are updated.
    """
    slot = np.full(len(keys), -1)
    for i, key in enumerate(keys):
        last = np.argmax(K)
        if key < K[last]:
            slot[i] = last
            K[last] = key
    return slot


# ---- mutual information of codes -----------------------------------------------------------------

# Every constant is a uint64, because numba turns uint64 combined with a plain int into float64.
_1 = np.uint64(1)
_2 = np.uint64(2)
_4 = np.uint64(4)
_56 = np.uint64(56)
_BITS = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES = np.uint64(0x0101010101010101)


@compiled
def _popcount(x):
    """Return the number of 1 bits of x uint64, as uint32."""
    # LLVM turns these lines into one instruction, which works on several words at once.
    x = x - ((x >> _1) & _BITS)
    x = (x & _PAIRS) + ((x >> _2) & _PAIRS)
    x = (x + (x >> _4)) & _NIBBLES
    return np.uint32((x * _ONES) >> _56)


@compiled
def _keys(words, q, similar, n_distances, key):
    """Set key[r] to the entry of the histogram of item q that counts item r.

    words (words, n) uint64, similar (n or more,) bool, key (n,) uint32.
    """
    for r in range(len(key)):
        key[r] = np.uint32(n_distances) * np.uint32(similar[r])
    # All items of one word after the other, so that neighbours fill a vector register.
    for w in range(len(words)):
        word = words[w, q]
        for r in range(len(key)):
            key[r] += _popcount(word ^ words[w, r])


@compiled
def _count_rows(words, similar, places, counts):
    """Count all items for each of the items at `places`.

    words (words, n) uint64, similar (k, n or more) bool, places (k,) int64,
    counts (n or more, 2 (b + 1)) int32.
    """
    key = np.empty(words.shape[1], np.uint32)
    for i in range(len(places)):
        _keys(words, places[i], similar[i], counts.shape[1] // 2, key)
        histogram = counts[places[i]]
        histogram[:] = 0
        for r in range(len(key)):
            histogram[key[r]] += 1


@compiled
def _add_items(words, similar, places, number, counts):
    """Count the items at `places` `number` more times for all items; arrays as in `_count_rows`."""
    key = np.empty(words.shape[1], np.uint32)
    for i in range(len(places)):
        # The distance from an item to item r is that from item r to it.
        _keys(words, places[i], similar[i], counts.shape[1] // 2, key)
        for r in range(len(key)):
            counts[r, key[r]] += number


@compiled
def _information(counts, T):
    """Return the mean over n items of the mutual information between distance and similarity.

    counts (n, 2 (b + 1)) int32, T (n + 1,) float64. T[c] = c log2 c, so that the entropy of n
    items, c of them at a distance, is (T[n] - sum of T[c]) / n.
    """
    n = len(counts)
    n_distances = counts.shape[1] // 2
    total = 0.0
    for q in range(n):
        n_similar = 0
        for l in range(n_distances):
            different = counts[q, l]
            same = counts[q, n_distances + l]
            n_similar += same
            # Elsewhere the three terms add up to zero.
            if different > 0 and same > 0:
                total += T[different] + T[same] - T[different + same]
        total += T[n] - T[n_similar] - T[n - n_similar]
    return total / n**2


def _words(bits: np.ndarray) -> np.ndarray:
    """Return codes (n, n_bits) bool as (words, n) uint64."""
    n, n_bits = bits.shape
    codes = np.zeros((n, 8 * -(-n_bits // 64)), np.uint8)
    codes[:, : -(-n_bits // 8)] = np.packbits(bits, axis=1)
    return np.ascontiguousarray(codes.view(np.uint64).T)


def histograms(bits: np.ndarray, similar: np.ndarray) -> np.ndarray:
    """Return for each item how many dissimilar items, then similar items, are at each distance.

    bits (n, n_bits) bool are the codes of the items, and similar (R, R) bool has room for R of
    them. The result is (R, 2 (n_bits + 1)) int32.

    >>> bits = np.array([[1, 1], [1, 1], [0, 1]], bool)
    >>> similar = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
    >>> counts = histograms(bits, similar)
    >>> print(counts[0])
    [0 1 0 2 0 0]
    >>> print(round(mean_information(counts), 4))  # the entropy of two against one
    0.9183
    """
    counts = np.zeros((len(similar), 2 * (bits.shape[1] + 1)), np.int32)
    # With the JIT off, numpy warns about the overflow that _popcount relies on.
    with np.errstate(over="ignore"):
        _count_rows(_words(bits), similar, np.arange(len(bits)), counts)
    return counts


def mean_information(counts: np.ndarray) -> float:
    """Return the mean over all items of the mutual information, in bits."""
    c = np.arange(len(counts) + 1)
    return _information(counts, c * np.log2(np.maximum(c, 1)))


def _copy(state: State, *names: str) -> None:
    """Replace arrays of the state by copies, which may be written into."""
    for name in names:
        setattr(state, name, getattr(state, name).copy())


# ---- the method ----------------------------------------------------------------------------------


@dataclass(eq=False)
class MIHash(LinearHasher):
    """Online hashing with mutual information.

    For every sample x the Hamming distances d_r to the items of a reservoir should tell the similar
    from the dissimilar items. So the mutual information I(d; similar) = H(d) - H(d | similar) is
    maximised. To have a gradient, codes are soft, phi(x) = sig(A W^T x), and so are distances and
    their histograms. The distance

        d_r = (b - (2 phi(x) - 1).(2 phi(x_r) - 1)) / 2

    is shared by the two nearest of K + 1 centres on [0, b], which are Delta = b / K apart. Let d_r
    be between the centres l and l + 1, and let p_s be the histogram of r's class (similar to x or
    not). Then the derivative of -I by d_r is c_r (with log2 0 = 0), and a step is

        c_r = [(log2 p - log2 p_s)_{l+1} - (log2 p - log2 p_s)_l] / (Delta n_r),
        w_k += eta A phi_k (1 - phi_k) sum_r c_r (2 phi_k(x_r) - 1) x .

    The published code has phi(x_r) / 2 in the place of 2 phi(x_r) - 1, which is not the gradient.
    The reservoir is a uniform sample of the stream. Its first tenth is filled before learning
    begins. Every ``update_every`` samples the hash functions in use are compared with the current
    W, by the mutual information of their codes within the reservoir, where every item in turn is x.
    If that of W is higher by more than theta, W replaces them. A sample costs O(R d + R b).

    The paper's (theta, R, A), on rows of unit length (`UnitLength`): CIFAR-10 and MNIST (0, 1000,
    10), Places205 (0, 5000, 10), NUS-WIDE (0, 2000, 1).

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits (mean of ten seeds):

        the paper                    .664 .741 .744 .780 .713 .681
        here                         .676 .749 .785 .793 .798 .801
        as published                 .680 .746 .774 .776 .774 .752

    By the published gradient long codes do worse, as in the paper, but not by as much.

    Parameters
    ----------
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
    n_bits, feature_map, warmup, random_state
        As in `HMOH`.

    Attributes
    ----------
    weights_ : (m, n_bits) float32
        The hash functions in use.

    References
    ----------
    F. Cakir, K. He, S. A. Bargal, S. Sclaroff. MIHash: Online Hashing with Mutual Information. ICCV
    2017.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 100)
    >>> y = np.array(["cat", "dog"] * 100)
    >>> codes = MIHash(n_bits=4, reservoir=20, random_state=0).fit_transform(X, y)
    >>> bool(codes[0] != codes[1])
    True
    """

    n_bits: int = 32
    feature_map: object = None
    reservoir: int = 1000
    n_bins: int = 16
    sharpness: float = 10.0
    threshold: float = 0.0
    learning_rate: float = 1.0
    update_every: int = 100
    gradient: str = "true"
    warmup: int | None = None
    random_state: int | None = None

    # For each place of the reservoir: the item, its key, its products with W, and its code by the
    # hash functions in use. The labels tell how many places are taken.
    _saved = ("W", "used", "n_steps", "labels", "items", "keys", "P", "bits")

    @property
    def _least_warmup(self) -> int:
        return -(-self.reservoir // 10)

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.reservoir, "reservoir")
        check_number(self.n_bins, "n_bins")
        check_number(self.update_every, "update_every")
        check_number(self.sharpness, "sharpness", float, 1e-30, 1e30)
        check_number(self.learning_rate, "learning_rate", float, 1e-30, 1e30)
        check_number(self.threshold, "threshold", float, 0, 1e30)
        check_choice(self.gradient, "gradient", ("true", "published"))

    def _start(self, state: State, Z: np.ndarray) -> None:
        super()._start(state, Z)
        state.used = state.W
        state.n_steps = 0
        state.labels = no_labels(state.form)
        state.items = np.zeros((self.reservoir, Z.shape[1]), np.float32)
        state.keys = np.full(self.reservoir, FREE)
        state.P = np.zeros((self.n_bits, self.reservoir), np.float32)
        state.bits = np.zeros((self.reservoir, self.n_bits), bool)
        # Which items are similar to each other, and the histograms of their distances. A file does
        # not have them, because they follow from the rest.
        state.similar = state.counts = None

    def _sizes(self, state: State) -> dict[str, tuple[int, ...]]:
        return super()._sizes(state) | {"keys": (self.reservoir,)}

    def _fill(self, state: State, arrays: dict[str, np.ndarray]) -> None:
        super()._fill(state, arrays)
        check_number(len(state.labels), "items", least=0, most=self.reservoir)
        state.keys[len(state.labels) :] = FREE

    def _learn(self, state: State, Z: np.ndarray, y: np.ndarray) -> None:
        # The generator continues where it was after the samples before.
        source = np.random.PCG64([state.seed, 2]).advance(state.n_steps)
        keys = np.random.Generator(source).random(len(Z))
        _copy(state, "W", "keys", "P")
        if not len(state.labels):
            self._fill_reservoir(state, Z, y, keys)
        if state.counts is None:
            n = len(state.labels)
            state.similar = np.zeros((self.reservoir, self.reservoir), bool)
            state.similar[:n, :n] = share_label(state.labels, state.labels)
            state.counts = histograms(state.bits[:n], state.similar)
        slot = _slots(keys, state.keys)
        if slot.max() >= 0:
            _copy(state, "items", "bits", "similar", "counts")
        start = 0
        while start < len(Z):
            # A block ends at the latest where the hash functions in use may be replaced.
            n_left = self.update_every - state.n_steps % self.update_every
            stop = min(start + BLOCK, start + n_left, len(Z))
            rows = slice(start, stop)
            self._learn_block(state, Z[rows], y[rows], slot[rows])
            state.n_steps += stop - start
            if state.n_steps % self.update_every == 0:
                self._replace_used(state)
            start = stop

    def _fill_reservoir(self, state: State, Z: np.ndarray, y: np.ndarray, keys: np.ndarray) -> None:
        """Put the first samples into the reservoir, and set their keys to that of a free place."""
        n = min(self._least_warmup, len(Z))
        _copy(state, "items", "bits")
        state.items[:n] = Z[:n]
        state.labels = y[:n].copy()
        state.keys[:n] = keys[:n]
        keys[:n] = FREE  # so that no sample is put into the reservoir a second time
        state.P[:, :n] = _products(state.W, Z[:n])
        state.bits[:n] = state.P[:, :n].T > 0

    def _learn_block(self, state: State, x: np.ndarray, y: np.ndarray, slot: np.ndarray) -> None:
        """Learn from a block of samples, and put some of them into the reservoir."""
        n = len(state.labels)
        labels = np.concatenate([state.labels, y])
        similar = share_label(y, labels)
        G = np.hstack([_products(x, state.items[:n]), _products(x, x)])
        row = np.arange(self.reservoir)
        published = self.gradient == "published"
        settings = (float(self.sharpness), float(self.learning_rate), published, self.n_bins)
        n_now = _ascend(x, G, similar, slot, row, n, *settings, state.W, state.P)
        row = row[:n_now]
        new = np.flatnonzero(row >= n)
        if not len(new):
            return
        # Put the new items into their places, and update the histograms.
        state.labels = labels[row]
        replaced = new[new < n]
        similar = np.ascontiguousarray(similar[row[new] - n][:, row])
        with np.errstate(over="ignore"):  # as in `histograms`
            words = _words(state.bits[:n])
            _add_items(words, state.similar[replaced], replaced, -1, state.counts)
            state.items[new] = x[row[new] - n]
            state.bits[new] = _products(state.items[new], state.used) > 0
            state.similar[new, :n_now] = similar
            state.similar[:n_now, new] = similar.T
            words = _words(state.bits[:n_now])
            _add_items(words, similar, new, 1, state.counts)
            # What the two calls of _add_items did to the histograms of the new items is void.
            _count_rows(words, similar, new, state.counts)

    def _replace_used(self, state: State) -> None:
        """Replace the hash functions in use by W, if its codes are better."""
        n = len(state.labels)
        bits = np.ascontiguousarray(state.P.T > 0)
        counts = histograms(bits[:n], state.similar)
        gain = mean_information(counts[:n]) - mean_information(state.counts[:n])
        if gain > self.threshold + ROUNDING:
            state.used = state.W.copy()
            state.bits = bits
            state.counts = counts

    def _decide(self, state: State, Z: np.ndarray) -> np.ndarray:
        return Z @ state.used.T

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions in use, (m, n_bits) float32."""
        return self._fitted().used.T.copy()
