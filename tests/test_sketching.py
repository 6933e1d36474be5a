"""SketchHash and FROSH: plain twins, the bound of the sketch, batches."""

import naive
import numpy as np
import pytest
from helpers import assert_helpful
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hadamard

from baselines import FROSH, SketchHash, sketching
from hmoh import NotFittedError
from kernels import UnitLength

both = pytest.mark.parametrize("method", [SketchHash, FROSH])
shapes = pytest.mark.parametrize("shape", [(16, 20), (16, 5), (6, 20), (8, 20), (7, 5), (16, 1)])


def make(method, **params):
    """Return a small model: a sketch of 16 rows, 12 or 40 samples at a time."""
    size = {"sketch_batch": 12} if method is SketchHash else {"block": 40}
    return method(**{"n_bits": 6, "sketch_size": 16, "random_state": 0} | size | params)


def stream(n=230, d=20, seed=0):
    """Return rows with a few strong directions, far from the origin, whose mean drifts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(4, 0.5, d) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return (X + 3 + np.linspace(0, 2, n)[:, None]).astype(np.float32)


def centred(X):
    return X - X.mean(axis=0, dtype=np.float64)


def gram(B):
    return B.T @ B


# ---- the sketch ----------------------------------------------------------------------------------


@shapes
def test_shrink_agrees_with_naive(shape):
    B = np.random.default_rng(0).normal(size=shape) * 10.0 ** -np.arange(shape[1])
    ours = sketching._shrink(B, 8)
    assert_allclose(gram(ours), gram(naive.shrink(B, 8)), atol=1e-10)
    assert len(ours) == min(8, len(B))


@shapes
def test_principal_directions_agree_with_a_full_decomposition(shape):
    B = np.random.default_rng(0).normal(size=shape)
    expected = np.linalg.svd(B, full_matrices=False)[2][:4].T
    expected *= np.sign(np.take_along_axis(expected, abs(expected).argmax(0)[None], 0))
    assert_allclose(sketching._principal_directions(B, 4), expected, atol=1e-10)


@pytest.mark.parametrize("batch", [5, 12, 50])
def test_sketch_agrees_with_naive_and_keeps_its_bound(batch):
    X = stream()
    A = naive.inserted_rows(X, batch)
    # What the shifts of the mean are for.
    assert_allclose(gram(A), gram(centred(X)), rtol=1e-8, atol=1e-6)
    model = make(SketchHash, sketch_batch=batch).fit(X)
    size = np.linalg.norm(A) ** 2
    expected = naive.frequent_directions(A, 16)
    assert_allclose(gram(model.sketch_), gram(expected), atol=1e-5 * size)
    assert_allclose(model.mean_, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    assert len(model.sketch_) <= 16
    assert np.linalg.norm(gram(A) - gram(model.sketch_), ord=2) <= size / (16 / 2 + 1)


def test_a_sketch_that_loses_nothing_gives_principal_directions():
    X = stream(d=6)  # rank 6, and 8 rows survive a shrink
    model = make(SketchHash, n_bits=3).fit(X)
    V = np.linalg.svd(centred(X), full_matrices=False)[2][:3]
    W = model.weights_
    assert_allclose(gram(W), np.eye(3), atol=1e-4)
    assert_allclose(gram(W.T), gram(V), atol=1e-4)  # the same plane, rotated within
    assert_allclose(model.decision_function(X), centred(X) @ W, atol=1e-3)


# ---- FROSH ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 64])
def test_the_fast_transform_agrees_with_naive(order):
    x = np.random.default_rng(0).integers(-9, 10, size=(order, 3)).astype(float)
    expected = naive.sylvester(order) @ x
    sketching._walsh_hadamard(x)
    assert_array_equal(x, expected)


def test_frosh_compresses_as_the_formula_says():
    X = stream(40).astype(np.float64)
    model = make(FROSH).partial_fit(X)
    seed = int(np.random.default_rng(0).integers(2**63))
    rng = np.random.default_rng([seed, 2, 0])
    D = np.diag(rng.choice([-1.0, 1.0], size=40))
    rows = rng.choice(64, 8, replace=False)
    padded = np.concatenate([D @ centred(X), np.zeros((24, 20))])
    expected = np.sqrt(64 / 8) * (hadamard(64) / np.sqrt(64) @ padded)[rows]
    assert_allclose(gram(model.sketch_), gram(expected), rtol=1e-3, atol=1e-3)


def test_frosh_is_right_on_average_and_draws_anew():
    X = stream(80)
    scatter = gram(centred(X))
    grams = []
    for seed in range(300):
        model = make(FROSH, block=80, sketch_size=40, random_state=seed).fit(X)
        grams.append(gram(model.sketch_))
    assert len({g.tobytes() for g in grams}) == 300
    error = np.linalg.norm(np.mean(grams, axis=0) - scatter, ord=2)
    assert error < 0.1 * np.linalg.norm(scatter, ord=2)
    # Two equal blocks, of which 60 rows are kept, get different signs and rows.
    model = make(FROSH, block=40, sketch_size=60)
    once = gram(model.fit(X[:40]).sketch_)
    twice = gram(model.fit(np.concatenate([X[:40], X[:40]])).sketch_)
    assert not np.allclose(twice, 2 * once, rtol=1e-2)


def test_frosh_leaves_a_small_block_as_it_is():
    X = stream(8)
    assert_allclose(gram(make(FROSH).fit(X).sketch_), gram(centred(X)), rtol=1e-3, atol=1e-3)


# ---- batches -------------------------------------------------------------------------------------


@both
def test_an_incomplete_batch_waits_and_fit_learns_from_it(method):
    X = stream()
    size = 12 if method is SketchHash else 40
    waiting = make(method).partial_fit(X)
    assert_array_equal(waiting.mean_, make(method).partial_fit(X[: 230 // size * size]).mean_)
    assert_allclose(make(method).fit(X).mean_, X.mean(axis=0), rtol=1e-4)


def test_as_published_remembers_one_whole_batch():
    X = stream(65)
    published = make(SketchHash, as_published=True)
    for n in (60, 61, 65):  # a rest shorter than a batch changes nothing
        model = published.fit(X[:n])
        assert_array_equal(model.weights_, make(SketchHash).fit(X[48:60]).weights_)
        assert_array_equal(model.mean_, 0)
    assert not np.array_equal(model.weights_, make(SketchHash).fit(X).weights_)
    # A rest is learned when it is completed, and by `fit` if it is all there is.
    model = make(SketchHash, as_published=True).partial_fit(X[:55]).partial_fit(X[55:])
    assert_array_equal(model.weights_, published.fit(X[:60]).weights_)
    assert_array_equal(published.fit(X[:8]).weights_, make(SketchHash).fit(X[:8]).weights_)


@pytest.mark.parametrize(
    ("model", "n_needed", "n_rows"),
    [
        (SketchHash(8), 50, 200),
        (SketchHash(64), 150, 200),
        (SketchHash(128), 150, 256),
        (FROSH(8), 800, 100),
        (FROSH(128), 1024, 128),
    ],
)
def test_batch_and_size_follow_the_code_length(model, n_needed, n_rows):
    X = stream(2048, d=130)
    with pytest.raises(NotFittedError, match=f"of {n_needed} samples"):
        model.partial_fit(X[: n_needed - 1]).transform(X)
    model.partial_fit(X[n_needed - 1 :])
    assert n_rows // 2 <= len(model.sketch_) <= n_rows


@both
@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_samples_than_bits_leave_directions_that_are_zero(method, n):
    X = stream()
    model = make(method).fit(X[:n])
    assert np.isfinite(model.decision_function(X)).all()
    assert np.linalg.matrix_rank(model.weights_, tol=1e-3) == n - 1
    same = np.full((100, 8), 5.0)
    assert not make(method).fit(same).decision_function(same).any()


@both
def test_more_bits_than_dimensions_are_refused(method):
    X = stream()
    model = make(method, n_bits=21, feature_map=UnitLength(), warmup=50).partial_fit(X[:30])
    with pytest.raises(ValueError, match="n_bits=21") as caught:
        model.partial_fit(X[30:])
    assert_helpful(caught.value, "20 features")
    assert model.n_seen_ == 30
