"""What the checks of the exercises compare with, out of a student's sight.

A check that shows the right values, or computes them beside the task, is a solution. So the cells
of the students hold neither: they ask here. Where our library does a task, it is the reference.
Everything here is bound when it is imported, so that a check can switch the library off.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numba import njit

from hmoh import HMOH
from metrics import HammingHistogram, nearest, pack

_mean_ap = HammingHistogram.mean_average_precision
_histogram = HammingHistogram


# ---- codes and targets ---------------------------------------------------------------


def distances(C: np.ndarray) -> np.ndarray:
    """Return the (L, L) Hamming distances of the columns of C, by `metrics.nearest`."""
    codes = pack(np.asarray(C).T > 0)
    found, order = nearest(codes, codes, k=len(codes))
    return np.take_along_axis(found, order.argsort(axis=1), axis=1)


def projections(C: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the (L, r) numbers whose signs align the columns of C."""
    return np.einsum("ol,or->lr", C, W)


def draw(order: int, r: int, L: int, rng: np.random.Generator) -> np.ndarray:
    """Return (L, r) targets: columns of a Hadamard matrix of this order, aligned to r bits."""
    from hmoh import hadamard  # a check may have replaced it

    columns = hadamard(order)[:, rng.permutation(order)[:L]]
    return np.where(projections(columns, rng.normal(size=(order, r))) > 0, 1, -1)


def spread(T: np.ndarray) -> tuple[int, int]:
    """Return the minimum distance of the rows of T, and minus their crowding, by bit counts."""
    rows = np.asarray(T)
    words = [int("".join("01"[value > 0] for value in row), 2) for row in rows.tolist()]
    found = [(a ^ b).bit_count() for a, b in permutations(words, 2)]
    return min(found), -sum((rows.shape[1] - 2 * d) ** 2 for d in found)


# ---- learning ------------------------------------------------------------------------


def states(features: np.ndarray, labels: np.ndarray, n_bits: int, bit: int) -> np.ndarray:
    """Return the weights of one bit after each step, (T, m): HMOH, sample by sample."""
    model = HMOH(n_bits, ensemble=False, random_state=0)
    kept = []
    for z, label in zip(features, labels, strict=True):
        model.partial_fit(z[None], [label], classes=np.unique(labels))
        kept.append(model.weights_[:, bit].copy())
    return np.array(kept)


def sums(A: np.ndarray, B: np.ndarray, Z: np.ndarray, C: np.ndarray) -> tuple:
    """Return the sums of the regression, which go on from A and B, in float64."""
    wide = np.asarray(Z, float)
    products = np.einsum("ni,nj->ij", wide, np.hstack([wide, C]), optimize=True)
    return np.add(A, products[:, : len(A)]), np.add(B, products[:, len(A) :])


def regression(A: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    """Return the weights (m, r) of the ridge regression with these sums."""
    values, vectors = np.linalg.eigh(A)
    return vectors @ ((vectors.T @ B) / (values + ridge)[:, None])


# ---- evaluation ----------------------------------------------------------------------


@njit
def ones(x):
    """Return the number of ones of a uint64: removes the last one until none is left."""
    n = np.uint64(0)
    while x != np.uint64(0):
        x = x & (x - np.uint64(1))
        n += np.uint64(1)
    return n


def ones_of_bytes() -> np.ndarray:
    """Return how many ones each of the 256 bytes has: its distance to the byte 0."""
    found, _ = nearest(np.arange(256, dtype=np.uint8)[:, None], np.zeros((1, 1), np.uint8), k=1)
    return found[:, 0]


def average_precision(ranked: list) -> float:
    """Return the AP of a ranked list of 0/1: a histogram with one item at each distance."""
    return expected_ap(np.ones(len(ranked), int), ranked)


def expected_ap(items: np.ndarray, relevant: np.ndarray) -> float:
    """Return the AP that is expected over all orders of ties, by `metrics.HammingHistogram`."""
    return float(_mean_ap(_histogram(np.array([items]), np.array([relevant]))))


def saturated(d: np.ndarray, r: int) -> np.ndarray:
    """Return the similarity of codes of r bits at these distances, as int8 in MATLAB."""
    return np.minimum(127, np.maximum(-128, r - 2 * np.asarray(d, int))).astype("b")


# ---- the kernel ----------------------------------------------------------------------


def squared_distances(X: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the (n, m) squared distances of the rows of X and A, from their differences."""
    return np.stack([((X - a.astype(float)) ** 2).sum(axis=1) for a in A], axis=1)


def mistaken_products(X: np.ndarray, A: np.ndarray) -> dict[str, np.ndarray]:
    """Return {mistake: what takes the place of the squared distances with it}."""
    inner = X @ A.T
    x = (X**2).sum(axis=1)[:, None]
    a = (A**2).sum(axis=1)
    return {
        "the factor 2 of x.a is missing": x - inner + a,
        "the sign of 2 x.a must be minus": x + 2 * inner + a,
        "|a|^2 is missing": x - 2 * inner,
        "|x|^2 is missing": a - 2 * inner,
        "the squared lengths need no root": x**0.5 - 2 * inner + a**0.5,
        "the 2 in 2 eta^2 is missing": 2 * (x - 2 * inner + a),
    }
