"""OKH and AdaptHash: plain twins, the bounds of a step, pairs, and the kernel of OKH."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from baselines import LSH, OKH, AdaptHash, pairwise
from hmoh import NotFittedError
from kernels import RBF, UnitLength

both = pytest.mark.parametrize("method", [OKH, AdaptHash])


def make(method, **params):
    """Return a small model of either method."""
    small = {"n_anchors": 12, "aggressiveness": 0.05} if method is OKH else {}
    return method(**{"n_bits": 10, "random_state": 0} | small | params)


def stream(n=90, d=7, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n_classes, d))[y] + 0.5 * rng.normal(size=(n, d))
    return X.astype(np.float32), y


def pairs_of(Z, y):
    """Return the pairs, and whether each is similar."""
    return Z.reshape(-1, 2, Z.shape[1]), y[0::2] == y[1::2]


def hyperplanes(m, n_bits):
    """Return the W (m, n_bits) that a model with random_state=0 starts from."""
    return LSH(n_bits, random_state=0).fit(np.zeros((1, m))).weights_.astype(float)


# ---- both ----------------------------------------------------------------------------------------


@both
def test_an_odd_sample_waits_and_fit_drops_it(method):
    X, y = stream(31)
    even = make(method, alpha=1.0).fit(X[:30], y[:30]).weights_
    assert_allclose(make(method, alpha=1.0).fit(X, y).weights_, even, atol=1e-5)
    waiting = make(method, alpha=1.0).partial_fit(X, y)
    assert_allclose(waiting.weights_, even, atol=1e-5)
    assert not np.allclose(waiting.partial_fit(X[:1], y[-1:] + 1).weights_, even)


@both
def test_a_shared_label_makes_a_pair_similar(method):
    X, y = stream()
    expected = make(method).fit(X, y).weights_
    assert_array_equal(make(method).fit(X, np.eye(4, dtype=bool)[y]).weights_, expected)
    rng = np.random.default_rng(5)
    Y = (rng.random((90, 4)) < 0.1).astype(int)
    Y[np.arange(90), rng.integers(4, size=90)] = 1
    share = [bool(set(np.flatnonzero(a)) & set(np.flatnonzero(b))) for a, b in Y.reshape(45, 2, 4)]
    assert 5 < sum(share) < 40
    # Single labels of the same pairs.
    single = np.stack([np.zeros(45, int), np.where(share, 0, 1)], axis=1).ravel()
    assert_array_equal(make(method).fit(X, Y).weights_, make(method).fit(X, single).weights_)


# ---- OKH -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("C", [1e-3, np.inf])
def test_okh_agrees_with_the_formula(C, alpha):
    X, y = stream(60)
    model = make(OKH, n_bits=9, aggressiveness=C, alpha=alpha).fit(X, y)
    # The features are its own, and only the anchors set the bandwidth.
    rbf = RBF(12, divisor=1).fit(X[:12])
    Z = np.column_stack([rbf.transform(X), np.ones(60)]).astype(float)
    expected = hyperplanes(13, 9).T.copy()
    naive.passive_aggressive(*pairs_of(Z, y), int(np.ceil(alpha * 9)), C, expected)
    assert_allclose(model.weights_.T, expected, atol=1e-3 * max(1, abs(expected).max()))
    assert_allclose(model.decision_function(X), Z @ model.weights_, rtol=1e-3, atol=1e-3)


def okh_step(C, seed, similar):
    """Return margins of a pair before and after a step, its codes H, G, R, and the change of W."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(1, 2, 8)).astype(np.float32)
    W = rng.normal(size=(12, 8)).astype(np.float32)
    Z[..., -1] = 1
    before = Z[0] @ W.T
    changed = W.copy()
    pairwise._passive_aggressive(Z, np.array([similar]), 9, C, changed)
    return before, Z[0] @ changed.T, naive.okh_target(before, similar, 9), changed - W


@pytest.mark.parametrize("similar", [True, False])
def test_an_unbounded_step_reaches_the_target_margin(similar):
    for seed in range(20):
        before, after, (H, G, R), change = okh_step(np.inf, seed, similar)
        if R:
            assert np.sum((G - H) * before) <= 0
            assert_allclose(np.sum((G - H) * after), np.sqrt(R), rtol=1e-3)
        else:
            assert not change.any()


def test_published_bandwidth_squares_the_mean_squared_distance():
    X, y = stream()
    mean, published = (make(OKH, bandwidth=b).fit(4 * X, y) for b in ("mean", "published"))
    assert published.kernel_.eta2_ == pytest.approx(mean.kernel_.eta2_**2)
    assert mean.kernel_.eta2_ > 1
    assert_array_equal(mean.kernel_.anchors_, 4 * X[:12])


@pytest.mark.parametrize(
    ("params", "n"),
    [
        ({"feature_map": RBF(5)}, 12),  # the map needs 5 samples, the anchors 12
        ({"n_anchors": 1}, 2),
        ({"feature_map": UnitLength(), "warmup": 30}, 30),
    ],
)
def test_okh_waits_for_the_map_and_for_its_anchors(params, n):
    X, y = stream()
    model = make(OKH, **params).partial_fit(X[: n - 1], y[: n - 1])
    with pytest.raises(NotFittedError, match=f"{n - 1} of {n}"):
        model.transform(X)
    assert model.partial_fit(X[n - 1 : n], y[n - 1 : n]).transform(X).shape == (90, 2)


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (5, 3, 2), (4, 12, 50)])
def test_squared_distances_agree_with_naive(n, m, d):
    rng = np.random.default_rng(0)
    X, A = (rng.normal(size=(rows, d)).astype(np.float32) for rows in (n, m))
    D = np.full((n, m + 1), -1, np.float32)
    pairwise._squared_distances(X, A, D)
    assert_allclose(D[:, :m], naive.squared_distances(X, A), rtol=1e-5)
    assert (D[:, m] == -1).all()


# Up to 16 rows RBF takes another path, and products round by their shape.
@pytest.mark.parametrize("d", [1, 7, 50, 300])
@pytest.mark.parametrize("bandwidth", ["mean", "published"])
def test_kernel_features_of_a_row_are_the_same_whatever_rows_it_comes_with(d, bandwidth):
    X = stream(90, d)[0] + 100
    kernel = pairwise.AnchorKernel(12, bandwidth).fit(X)
    Z = kernel.transform(X)
    for size in (1, 3, 16, 17, 64):
        parts = [kernel.transform(X[start : start + size]) for start in range(0, 90, size)]
        assert_array_equal(np.concatenate(parts), Z)
    exact = X.astype(float)[:, None] - kernel.anchors_
    exact = np.exp(-np.square(exact).sum(axis=2) / (2 * kernel.eta2_))
    assert_allclose(Z[:, :-1], exact, atol=1e-5)
    assert (Z[:, -1] == 1).all()


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_kernel_features_of_extreme_samples_are_finite(size):
    X, _ = stream()
    Z = pairwise.AnchorKernel(12).fit(X).transform(np.float32(size) * X)
    assert np.isfinite(Z).all()
    assert Z[:, :-1].any() == (size < 1)


def test_the_kernel_of_okh_is_applied_after_its_map_and_outside_learning(monkeypatch):
    X, y = stream()
    model = make(OKH, feature_map=UnitLength()).fit(X, y)
    Z = model.kernel_.transform(model.feature_map_.transform(X))
    assert_array_equal(model.decision_function(X), Z @ model._state.W.T)
    assert isinstance(model.feature_map_, UnitLength)
    given = []
    monkeypatch.setattr(OKH, "_learn", lambda self, state, Z, y: given.append(Z))
    make(OKH, feature_map=UnitLength()).fit(X, y)
    assert_array_equal(np.concatenate(given), Z)


# ---- AdaptHash -----------------------------------------------------------------------------------


# From 129 bits up the products are computed in parts.
@pytest.mark.parametrize("n_bits", [1, 5, 16, 140])
@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.0])
def test_adapt_hash_agrees_with_the_formula(n_bits, alpha):
    X, y = stream()
    start = hyperplanes(7, n_bits)
    args = (*pairs_of(X, y), alpha * n_bits, 0.2, 0.01, start)
    model = make(AdaptHash, n_bits=n_bits, alpha=alpha).fit(X, y)
    assert_allclose(model.weights_, naive.adapt_hash(*args), atol=1e-3)
    assert_allclose(np.linalg.norm(model.weights_, axis=0), 1, rtol=1e-5)


def test_of_equal_margins_the_first_bits_are_corrected():
    # Six bits agree in a dissimilar pair, and four or two of them have to change.
    margins = np.array([1, 3, 2, 2, 2, 1], np.float32)
    for far, kept in ((3.5, [1, 2, 3, 4]), (2.0, [1, 2])):
        G = np.zeros((6, 8), np.float32)
        G[:, 6:] = margins[:, None]
        assert pairwise._gradient(G, np.bool_(False), far, 0.2)
        assert np.flatnonzero(G[:, 6]).tolist() == kept
        assert naive.wrong_bits(margins, margins, False, far) == kept


def test_zero_and_vanishing_weights_become_zero():
    W = np.array([[2, 0], [3, 1e-35]], np.float32)
    V = np.array([[2, 0], [0, 0]], np.float32)
    pairwise._descend(V, W)
    assert_array_equal(W, [[0, 0], [1, 0]])
