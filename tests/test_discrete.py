"""LEMON, OASIS and FOH: plain twins that keep every sample, the programs' bits, and chunks."""

import naive
import numpy as np
import pytest
from helpers import assert_helpful
from numpy.testing import assert_allclose, assert_array_equal

from baselines import FOH, LEMON, LSH, OASIS
from baselines.linear import share_label

SEED = int(np.random.default_rng(0).integers(2**63))  # what a model draws from random_state=0
SIZE = {LEMON: "chunk", OASIS: "chunk", FOH: "batch"}

methods = pytest.mark.parametrize("method", SIZE)
label_forms = pytest.mark.parametrize("labels", ["integers", "strings", "sets"])


def stream(labels="integers", n=90, seed=0):
    """Return X, y, and y as 0/1; labels arrive in their order, two of them late."""
    rng = np.random.default_rng(seed)
    y = rng.integers(np.where(np.arange(n) < 42, 2, 4))
    y[[0, 1, 42, 43]] = range(4)
    L = np.eye(4)[y]
    if labels == "sets":
        L = np.maximum(L, rng.random((n, 4)) < 0.3)
    X = (L @ np.eye(4, 6) - 0.2 + 0.3 * rng.normal(size=(n, 6))).astype(np.float32)
    names = {"integers": y, "strings": np.array(["a", "bb", "ccc", "d"])[y], "sets": L.astype(int)}
    return X, names[labels], L


def chunks(L, size, is_single):
    """Yield for each chunk its length, the number of known labels, and its random numbers."""
    for start in range(0, len(L), size):
        known = int(L[: start + size].any(axis=0).sum()) if is_single else 4
        rng = np.random.default_rng([SEED, 2, start // size])
        yield len(L[start : start + size]), known, rng


# The last chunk is as long as the others, or shorter.
@pytest.mark.parametrize("size", [15, 20, 8])
@label_forms
def test_lemon_equals_keeping_every_sample(labels, size):
    X, y, L = stream(labels)
    weights = {"similarity": 0.01, "embedding": 0.3, "embedding_ridge": 0.2, "ridge": 2.0}
    draws = []
    for n, _, rng in chunks(L, size, y.ndim == 1):
        B, V = np.sign(rng.normal(size=(n, 5))), rng.normal(size=(n, 5))
        draws.append((B, V, np.linalg.svd(rng.normal(size=(5, 5)))[0]))
    model = LEMON(5, chunk=size, random_state=0, **weights).fit(X, y)
    W, codes = naive.lemon(X.astype(float), L, draws, **weights)
    assert_allclose(model.weights_, W, atol=1e-4)
    assert len(np.unique(codes, axis=0)) > 4


@pytest.mark.parametrize("size", [15, 20, 4])
@label_forms
def test_oasis_equals_keeping_every_sample(labels, size):
    X, y, L = stream(labels)
    # With these, the last round changes codes after it made W.
    weights = {"similarity": 0.003, "embedding": 3.0, "fit_weight": 0.5}
    weights |= {"embedding_ridge": 0.2, "ridge": 2.0}
    draws = []
    for n, known, rng in chunks(L, size, y.ndim == 1):
        B, U = np.sign(rng.normal(size=(n, 5))), np.zeros((4, 5))
        U[:known] = rng.normal(size=(known, 5))
        draws.append((B, U))
    model = OASIS(5, chunk=size, random_state=0, **weights).fit(X, y)
    W, codes = naive.oasis(X.astype(float), L, draws, **weights)
    assert_allclose(model.weights_, W, atol=1e-4)
    assert len(np.unique(codes, axis=0)) > 4


@pytest.mark.parametrize("size", [30, 20, 4])
@label_forms
def test_foh_equals_the_whole_similarity_matrix(labels, size):
    X, y, L = stream(labels)
    weights = {"ridge": 0.7, "fit_weight": 5.0, "similar": 1.25, "dissimilar": 0.25}
    weights |= {"new_weight": 3.0, "old_weight": 2.0, "label_ridge": 0.5}
    model = FOH(5, batch=size, random_state=0, **weights)
    known = 4 if y.ndim == 2 else int(L[: 2 * size].any(axis=0).sum())
    P = np.random.default_rng([SEED, 2]).normal(size=(known, 5))
    P = np.pad(P / np.linalg.norm(P, axis=1, keepdims=True), ((0, 4 - known), (0, 0)))
    W = LSH(5, random_state=0).fit(np.zeros((1, 6))).weights_.astype(float)
    expected = naive.foh(X.astype(float), L, share_label(y, y), W, P.T, size, *weights.values())
    assert_allclose(model.fit(X, y).weights_, expected, atol=1e-5)


@methods
def test_codes_are_those_of_lsh_until_the_first_chunk_is_complete(method):
    X, y, _ = stream()
    model = method(9, random_state=0, **{SIZE[method]: 20}).partial_fit(X[:19], y[:19])
    untrained = LSH(9, random_state=0).fit(X).transform(X)
    assert_array_equal(model.transform(X), untrained)
    model.partial_fit(X[19:40], y[19:40])
    assert (model.transform(X) != untrained).any()


@methods
def test_a_chunk_of_one_sample_is_learned(method):
    X, y, _ = stream()
    model = method(9, random_state=0, **{SIZE[method]: 1}).fit(X, y)
    assert np.isfinite(model.weights_).all()


@methods
def test_features_that_hide_the_ridge_are_explained(method):
    X = np.full((40, 3), 1e9)
    model = method(9, random_state=0, **{SIZE[method]: 20})
    with pytest.raises(ValueError, match="so large") as caught:
        model.fit(X, np.arange(40) % 2)
    assert_helpful(caught.value, "a ridge of", "UnitLength")


# The codes of the first 16 samples below by the programs themselves in Octave, with the same
# random numbers. LEMON and OASIS find the same codes, because they start from the same ones.
BY_PROGRAM = {
    LEMON: "bac5afbac5d0c0d0c0bfbfd0bfc5d03f",
    OASIS: "bac5afbac5d0c0d0c0bfbfd0bfc5d03f",
    FOH: "312eb8f12e21272129b8b831b82e21d8",
}


class Frozen:
    """A generator whose numbers stay the same in every version of numpy."""

    def __init__(self, seed):
        self.state = np.random.RandomState(seed)

    def normal(self, size):
        return self.state.normal(size=size)


@methods
def test_codes_are_those_of_the_published_programs(method, monkeypatch):
    rng = np.random.RandomState(1)
    y = rng.randint(4, size=80)
    X = np.eye(4, 6)[y] - 0.2 + 0.4 * rng.normal(size=(80, 6))
    X = X.astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    draw = np.random.default_rng
    monkeypatch.setattr(
        np.random, "default_rng", lambda s: Frozen(s[1:]) if isinstance(s, list) else draw(s)
    )
    # In a chunk as small as this, the program of OASIS fills V at random unless alpha is large.
    more = {"batch": 20} if method is FOH else {"chunk": 20, "similarity": 1e4}
    codes = method(8, random_state=0, **more).fit_transform(X, y)
    assert codes[:16].tobytes().hex() == BY_PROGRAM[method]
