"""The maps: formulas, k-means, scikit-learn, extreme data, states, pipelines, bad input."""

import copy
import itertools
import pickle

import naive
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import normalize
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import kernels
from kernels import RBF, Concat, NotFittedError, UnitLength

quick = settings(max_examples=25, deadline=None)
MAPS = [
    RBF(n_anchors=6),
    RBF(n_anchors=6, divisor=3, center=True),
    RBF(n_anchors=5, center=True, anchors="kmeans", random_state=0),
    UnitLength(),
    Concat([None, RBF(n_anchors=6), UnitLength()]),
]
X0 = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


def samples(n=30, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def blank(mapping):
    """Return a new map of the same kind with other parameters."""
    if isinstance(mapping, Concat):
        return Concat([part and blank(part) for part in mapping.maps])
    return type(mapping)()


def assert_helpful(error, *words):
    message = str(error)
    assert all(word in message for word in words), message
    assert any(word in message for word in ("pass", "drop", "lower", "call")), message


# ---- agrees with naive ---------------------------------------------------------------


@pytest.mark.parametrize("n_anchors, divisor", [(1, 10.0), (7, 6), (29, 0.5), (30, np.float32(2))])
@pytest.mark.parametrize("d", [1, 4, 33])
def test_rbf_agrees_with_naive(n_anchors, divisor, d):
    X, new = samples(30, d), samples(20, d, seed=1)
    rbf = RBF(n_anchors, divisor).fit(X)
    assert_array_equal(rbf.anchors_, X[:n_anchors])
    assert rbf.eta2_ == pytest.approx(naive.eta2(X, n_anchors, divisor), rel=1e-6)
    Z = rbf.transform(new)
    assert Z.dtype == np.float32 and Z.shape == (20, n_anchors) and Z.flags.c_contiguous
    assert_allclose(Z, naive.rbf(new, X[:n_anchors], rbf.eta2_), rtol=1e-4, atol=1e-6)
    assert not rbf.mean_.any()


@pytest.mark.parametrize("n_anchors", [2, 9, 30])
def test_center_subtracts_the_anchors_mean_feature_of_each_other(n_anchors):
    X, new = samples(), samples(seed=1)
    rbf = RBF(n_anchors, center=True).fit(X)
    K = naive.rbf(X[:n_anchors], X[:n_anchors], naive.eta2(X, n_anchors, 10))
    mean = [np.mean(np.delete(K[:, j], j)) for j in range(n_anchors)]
    assert_allclose(rbf.mean_, mean, rtol=1e-4, atol=1e-6)
    assert_allclose(
        rbf.transform(new),
        naive.rbf(new, X[:n_anchors], rbf.eta2_) - mean,
        rtol=1e-4,
        atol=1e-6,
    )


def test_bandwidth_comes_from_different_anchors_if_there_is_no_rest():
    X = samples()
    squared = np.square(X[:, None] - X).sum(axis=2)
    different = squared[~np.eye(30, dtype=bool)]
    assert RBF(30, 1).fit(X).eta2_ == pytest.approx(different.mean(), rel=1e-5)
    assert RBF(10, 1).fit(X).eta2_ == pytest.approx(squared[:10, 10:].mean())
    assert RBF(2, 4).fit([[0.0], [6.0]]).eta2_ == 9


def test_a_single_sample_gives_no_bandwidth():
    with pytest.raises(ValueError, match="1 sample has no distance") as caught:
        RBF(1).fit(X0[:1])
    assert_helpful(caught.value, "at least 2")
    assert RBF(1, divisor=1).fit([[1.0], [3.0]]).eta2_ == 4


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (1, 300, 3), (5, 17, 33), (16, 2, 100)])
@pytest.mark.parametrize(
    "scale, offset, unit",
    [(1, 0, 1), (1, -3000, 0.2), (1e30, 0, 1e-30), (1e-30, 0, 1e30)],
)
def test_exponents_agree_with_naive(n, m, d, scale, offset, unit):
    X = (samples(n, d) * scale + offset).astype(np.float32)
    A = (samples(m, d, seed=1) * scale + offset).astype(np.float32)
    unit = np.float32(unit)
    Z = np.full((n, m), np.nan, np.float32)
    expected = np.empty((n, m))
    kernels._exponents(X, A, unit, Z)
    naive.exponents(X, A, unit, expected)
    assert_allclose(Z, expected, rtol=1e-5)


# ---- k-means -------------------------------------------------------------------------


def blobs(n_blobs=6, n_each=5, d=4):
    """Return rows in tight groups that are far apart, shuffled, and the means of the groups."""
    rng = np.random.default_rng(0)
    groups = 100 * rng.normal(size=(n_blobs, 1, d)) + rng.normal(size=(n_blobs, n_each, d))
    groups = groups.astype(np.float32)
    return rng.permutation(groups.reshape(-1, d)), groups.mean(axis=1)


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (40, 7, 3), (25, 25, 33)])
@pytest.mark.parametrize("values", [1, 60, 1 << 20])
def test_the_nearest_agrees_with_naive(n, m, d, values, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK_VALUES", values)
    X = samples(n, d)
    A = samples(m, d, seed=1)
    A[: m // 2] = X[: m // 2]
    nearest, distance = kernels._nearest(X, A)
    expected = naive.squared_distances(X, A)
    assert nearest.dtype == np.int64 and distance.dtype == np.float32
    assert_array_equal(nearest, expected.argmin(axis=1))
    assert distance.min() >= 0
    assert_allclose(distance, expected.min(axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (40, 7, 3), (5, 9, 33)])
def test_added_rows_agree_with_naive(n, m, d):
    X = samples(n, d)
    nearest = np.random.default_rng(1).integers(m, size=n)
    sums = np.zeros((m, d))
    counts = np.zeros(m, np.int64)
    expected = np.zeros((m, d)), np.zeros(m, np.int64)
    kernels._add_rows(X, nearest, sums, counts)
    naive.add_rows(X, nearest, *expected)
    assert_allclose(sums, expected[0], rtol=1e-12, atol=1e-12)
    assert_array_equal(counts, expected[1])


@pytest.mark.parametrize("n_drawn, most", [(2, 256), (4, 256), (4, 1)])
def test_blocks_of_rows_are_drawn_as_k_means_plus_plus_draws_them(n_drawn, most, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_DRAWN", most)
    # Two rows are near each other. If the first of them is kept, the second hardly is.
    X = np.array([[0, 0], [0.2, 0], [2, 0], [0, 3], [1, 1]], np.float32)
    n_trials = 3000
    rng = np.random.default_rng(0)
    counts = {}
    for _ in range(n_trials):
        rows = tuple(kernels._spread_rows(X, n_drawn, rng))
        counts[rows] = counts.get(rows, 0) + 1
    orders = list(itertools.permutations(range(5), n_drawn))
    p = np.array([naive.spread_probability(X, rows) for rows in orders])
    assert p.sum() == pytest.approx(1)
    found = np.array([counts.get(rows, 0) for rows in orders])
    assert found.sum() == n_trials
    # Within five standard deviations, or few of a rare order.
    bound = 5 * np.sqrt(n_trials * p * (1 - p)) + 3
    assert (np.abs(found - n_trials * p) < bound).all()


class NotedDraws:
    """Draw from a generator, and note rows, probabilities and chances of each block."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.integers = self.rng.integers
        self.blocks = []

    def choice(self, n, size, p):
        self.drawn = self.rng.choice(n, size, p=p)
        self.p = p
        return self.drawn

    def random(self, size):
        chances = self.rng.random(size)
        self.blocks.append((self.drawn.tolist(), self.p, chances.tolist()))
        return chances


@pytest.mark.parametrize("most", [3, 256])
@pytest.mark.parametrize("seed", range(8))
def test_a_row_of_a_block_is_kept_by_its_distances_now_and_before(seed, most, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_DRAWN", most)
    X = samples(40, 2)
    draws = NotedDraws(seed)
    chosen = kernels._spread_rows(X, 20, draws)
    D = naive.squared_distances(X, X)
    expected = chosen[:1]
    n_kept = 1
    for drawn, p, chances in draws.blocks:
        assert len(drawn) == min(2 * n_kept, 20 - len(expected), most)
        before = D[:, expected].min(axis=1)
        assert_allclose(p, before / before.sum(), atol=1e-5)
        n_before = len(expected)
        for row, chance in zip(drawn, chances, strict=True):
            if D[row, expected].min() >= before[row] * chance:
                expected.append(row)
        n_kept = len(expected) - n_before
    assert chosen == expected
    assert len(chosen) == 20


@pytest.mark.parametrize("start", [[0, 1, 2, 3], [0, 0, 0, 7], [5, 5, 5, 5]])
@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_steps_of_lloyd_agree_with_naive_also_where_centres_have_no_rows(
    start, n_steps, monkeypatch
):
    X = samples(20, 3)
    monkeypatch.setattr(kernels, "LLOYD_STEPS", n_steps)
    monkeypatch.setattr(kernels, "_spread_rows", lambda X, n, rng: start)
    expected = X[start]
    for _ in range(n_steps):
        expected = naive.lloyd_step(X, expected)
    centres = kernels._k_means(X, len(start), None)
    assert centres.dtype == np.float32
    assert len(np.unique(centres, axis=0)) == len(start)
    assert_allclose(centres, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale, offset", [(1, 0), (1, 3000), (1e-30, 0), (1e25, 0)])
def test_k_means_finds_the_means_of_groups(seed, scale, offset):
    X, means = blobs()
    X = (X * np.float64(scale) + offset).astype(np.float32)
    rbf = RBF(6, anchors="kmeans", random_state=seed).fit(X)
    found = (rbf.anchors_.astype(np.float64) - offset) / scale
    order = naive.squared_distances(means, found).argmin(axis=1)
    assert sorted(order) == list(range(6))
    assert_allclose(found[order], means, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("n_rows, n_anchors", [(30, 1), (30, 4), (30, 30), (100, 7)])
def test_with_k_means_bandwidth_and_mean_come_from_the_rows(n_rows, n_anchors):
    X = samples(n_rows)
    center = n_anchors > 1
    rbf = RBF(n_anchors, 3.0, center, anchors="kmeans", random_state=0).fit(X)
    assert rbf.anchors_.shape == (n_anchors, 4)
    D = naive.squared_distances(X, rbf.anchors_)
    assert rbf.eta2_ == pytest.approx(D.mean() / 3, rel=1e-5)
    mean = naive.rbf(X[: 5 * n_anchors], rbf.anchors_, rbf.eta2_).mean(axis=0)
    assert_allclose(rbf.mean_, mean * center, rtol=1e-4, atol=1e-6)
    expected = naive.rbf(X, rbf.anchors_, rbf.eta2_) - rbf.mean_
    assert_allclose(rbf.transform(X), expected, rtol=1e-4, atol=1e-6)


def test_k_means_is_seeded_and_looks_at_five_rows_for_an_anchor():
    X = samples(100)

    def anchors(random_state, rows=X, **params):
        rbf = RBF(8, anchors="kmeans", random_state=random_state, **params)
        return rbf.fit(rows).anchors_.tolist()

    assert anchors(3) == anchors(3) == anchors(3, X[:40]) == anchors(3, center=True)
    assert anchors(3) != anchors(4)
    assert anchors(None) != anchors(None)
    assert anchors(3) != anchors(3, X[:39])
    first = RBF(8, random_state=3).fit(X)
    assert_array_equal(first.anchors_, X[:8])


@pytest.mark.parametrize("n_distinct", [2, 3, 20])
def test_k_means_of_fewer_different_rows_than_anchors_takes_some_twice(n_distinct):
    X = np.repeat(samples(n_distinct), 20, axis=0)
    rbf = RBF(30, anchors="kmeans", random_state=0).fit(np.random.default_rng(0).permutation(X))
    nearest = naive.squared_distances(rbf.anchors_, X[::20]).min(axis=1)
    if n_distinct < 20:
        assert_allclose(nearest, 0, atol=1e-10)
    assert np.isfinite(rbf.transform(X)).all()


# ---- side by side --------------------------------------------------------------------


def test_concat_sets_features_side_by_side():
    X, new = samples(), samples(seed=1)
    both = Concat([None, RBF(6, center=True), UnitLength()])
    Z = both.fit(X).transform(new)
    rbf = RBF(6, center=True).fit(X)
    assert_array_equal(Z[:, :4], new)
    assert_array_equal(Z[:, 4:10], rbf.transform(new))
    assert_array_equal(Z[:, 10:], UnitLength().fit(X).transform(new))
    assert Z.dtype == np.float32 and Z.flags.c_contiguous
    assert (both.n_features_in_, both.n_features_out_) == (4, 14)
    assert not hasattr(both.maps[1], "anchors_")  # copies are fitted


def test_parameters_of_maps_side_by_side_have_names():
    both = Concat([None, RBF(6), Concat([RBF(3)])])
    params = both.get_params()
    assert params["maps__1__n_anchors"] == 6
    assert params["maps__2__maps__0__n_anchors"] == 3
    assert list(both.get_params(deep=False)) == ["maps"]
    both.set_params(maps__1__n_anchors=5, maps__2__maps__0__divisor=2)
    assert both.maps[1].n_anchors == 5 and both.maps[2].maps[0].divisor == 2
    with pytest.raises(ValueError, match="maps__0__n_anchors"):
        both.set_params(maps__1__n_anchors=4, maps__0__n_anchors=4)
    assert both.maps[1].n_anchors == 5
    both.set_params(maps=[RBF(2)], maps__0__n_anchors=8)
    assert repr(both) == f"Concat(maps=[{RBF(8)!r}])"


@pytest.mark.parametrize(
    "maps",
    [[], None, 3, RBF(), [None], [RBF], [RBF(), "unit"], [[RBF()]], {"a": RBF()}],
)
def test_what_cannot_be_set_side_by_side_is_explained(maps):
    both = Concat([RBF(3)]).fit(X0).set_params(maps=maps)
    before = pickle.dumps(both)
    for use in (
        lambda: both.fit(X0),
        lambda: both.n_warmup,
        lambda: both.set_state({}),
    ):
        with pytest.raises(TypeError) as caught:
            use()
        assert_helpful(caught.value, f"maps={maps!r}")
    assert pickle.dumps(both) == before


def test_a_map_that_cannot_be_fitted_leaves_the_others_as_they_were():
    both = Concat([UnitLength(), RBF(6)]).fit(X0)
    before = pickle.dumps(both)
    with pytest.raises(ValueError, match="too few"):
        both.fit(X0[:5] + 1)
    assert pickle.dumps(both) == before


# ---- independent oracles -------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 50])
def test_rbf_is_scikit_learns_kernel(d):
    X, new = samples(60, d), samples(200, d, seed=1)
    rbf = RBF(25).fit(X)
    expected = rbf_kernel(new.astype(float), X[:25].astype(float), gamma=1 / (2 * rbf.eta2_))
    assert_allclose(rbf.transform(new), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("offset", [0, 5, 1000])
def test_unit_length_is_scikit_learns_normalize_of_centred_rows(offset):
    X, new = samples() + np.float32(offset), samples(seed=1) + np.float32(offset)
    Z = UnitLength().fit(X).transform(new)
    assert Z.dtype == np.float32
    expected = normalize(new.astype(float) - X.astype(float).mean(axis=0))
    # The mean is stored as float32.
    atol = 2e-4 if offset == 1000 else 1e-6
    assert_allclose(Z, expected, rtol=1e-5, atol=atol)


# ---- properties ----------------------------------------------------------------------


@quick
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 8), st.floats(0.1, 100))
def test_features_lie_between_0_and_1_and_are_1_at_the_anchor(seed, n_anchors, d, divisor):
    X = samples(15, d, seed)
    rbf = RBF(n_anchors, divisor).fit(X)
    Z = rbf.transform(X)
    assert Z.min() >= 0 and Z.max() <= 1
    assert_allclose(Z[:n_anchors].diagonal(), 1, atol=1e-3 if divisor > 10 else 1e-4)


@pytest.mark.parametrize("divisor", [1, 100])
def test_rounding_makes_no_feature_of_many_rows_larger_than_1(divisor):
    # Products round. Without care the squared distance of a row to itself can be below 0.
    X = samples(200, 60)
    Z = RBF(200, divisor).fit(X).transform(X)
    assert Z.max() == 1


@quick
@given(
    st.permutations(range(4)),
    st.permutations(range(6)),
    st.sampled_from([0.5, -1, -64, 1024]),
)
def test_rbf_does_not_depend_on_the_order_sign_or_unit_of_the_features(columns, anchors, factor):
    X = samples()
    Z = RBF(6).fit(X).transform(X)
    turned = X.copy()
    turned[:6] = X[anchors]
    factor = np.float32(factor)
    rbf = RBF(6).fit(factor * turned[:, columns])
    assert_allclose(rbf.transform(factor * X[:, columns]), Z[:, anchors], atol=1e-5)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("offset", [1000, -3000])
def test_far_from_the_origin_no_digits_are_lost(offset, center):
    X, new = (
        samples(60, 20) + np.float32(offset),
        samples(200, 20, seed=1) + np.float32(offset),
    )
    rbf = RBF(25, center=center).fit(X)
    assert rbf.eta2_ == pytest.approx(naive.eta2(X, 25, 10), rel=1e-6)
    assert_allclose(rbf.transform(new), naive.rbf(new, X[:25], rbf.eta2_) - rbf.mean_, atol=1e-5)


@pytest.mark.parametrize("offset", [0, 10, 1000])
def test_far_from_each_other_the_features_differ(offset):
    X = np.concatenate([samples(20, 3), samples(20, 3, seed=1) + np.float32(offset)])
    Z = RBF(20, divisor=1).fit(X).transform(X)
    assert_allclose(Z, naive.rbf(X, X[:20], naive.eta2(X, 20, 1)), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
@pytest.mark.parametrize("anchors", ["first", "kmeans"])
def test_rbf_of_tiny_or_huge_features_is_right_or_an_error(scale, anchors):
    X = samples()
    scaled = X.astype(float) * scale
    rbf = RBF(6, anchors=anchors, random_state=0)
    try:
        Z = rbf.fit(scaled).transform(scaled)
    except ValueError as error:
        assert_helpful(error)
    else:
        assert_allclose(Z, rbf.fit(X).transform(X), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_unit_length_of_tiny_or_huge_features_is_right_or_an_error(scale):
    X = samples()
    scaled = X.astype(float) * scale
    try:
        Z = UnitLength().fit(scaled).transform(scaled)
    except ValueError as error:
        assert_helpful(error)
    else:
        assert_allclose(Z, UnitLength().fit(X).transform(X), atol=1e-5)


# Compiled code gives no warnings. With the JIT off, the loop over numbers does.
overflow_in_the_loop = pytest.mark.filterwarnings("ignore:overflow encountered in scalar")


@overflow_in_the_loop
@pytest.mark.parametrize("value", [1e10, 1e20, 1e38, np.finfo(np.float32).max])
@pytest.mark.parametrize("divisor", [0.1, 10, 1000])
@pytest.mark.parametrize("n_rows", [1, 20])
def test_an_outlier_is_like_no_anchor(value, divisor, n_rows):
    rows = np.array([[0, value, 0, -value]] * n_rows)
    Z = RBF(6, divisor).fit(X0).transform(rows)
    assert_array_equal(Z, np.zeros((n_rows, 6)))


def by_loop_and_by_product(rbf, X, monkeypatch):
    """Return the features of X as few rows are made, and as many are."""
    few = np.concatenate([rbf.transform(row[None]) for row in X])
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "FEW_ROWS", len(X))
        assert_array_equal(rbf.transform(X), few)
        patch.setattr(kernels, "FEW_ROWS", 0)
        return few, rbf.transform(X)


@pytest.mark.parametrize("n_anchors, center", [(1, False), (9, False), (30, True)])
@pytest.mark.parametrize("d", [1, 7, 784])
@pytest.mark.parametrize(
    "scale, offset", [(1, 0), (1, -3000), (1e-30, 0), (1e-30, 1e-29), (1e30, 0)]
)
def test_few_rows_have_the_features_of_many(n_anchors, center, d, scale, offset, monkeypatch):
    X = (samples(40, d) * scale + offset).astype(np.float32)
    rbf = RBF(n_anchors, center=center).fit(X)
    few, many = by_loop_and_by_product(rbf, X[:20], monkeypatch)
    assert np.ptp(few) > 0.1
    assert_allclose(few, many, rtol=1e-4, atol=1e-5)


@overflow_in_the_loop
@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
@pytest.mark.parametrize("center", [False, True])
def test_few_rows_have_the_features_of_many_far_away(scale, center, monkeypatch):
    X = samples()
    rbf = RBF(6, center=center).fit(X.astype(float) * scale)
    values = [0, 1e-45, 1e-30, 3, 1e15, 1e20, 1e30, 1e38, np.finfo(np.float32).max]
    rows = [[value, -value, x, 0] for value in values for x in (0, *values)]
    few, many = by_loop_and_by_product(rbf, np.array(rows), monkeypatch)
    assert_allclose(few, many, rtol=1e-4, atol=1e-5)
    assert_array_equal(few[-1], -rbf.mean_)


@pytest.mark.parametrize("scale", [1e-43, 1e-36, 1e35, 3e38])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("anchors", ["first", "kmeans"])
def test_features_at_the_limits_of_float32_are_an_error(scale, offset, anchors):
    X = np.random.default_rng(0).uniform(-1, 1, size=(30, 4)) * 0.5 + offset * 0.5
    rbf = RBF(6, anchors=anchors).fit(X0)
    before = pickle.dumps(rbf)
    with pytest.raises(ValueError) as caught:
        rbf.fit(X * scale)
    assert_helpful(caught.value, "float32", "scaled")
    assert pickle.dumps(rbf) == before


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("values", [1, 40, 100, 10**9])
def test_blocks_do_not_change_the_features(values, center, monkeypatch):
    X = samples(50, 7)
    rbf = RBF(9, center=center).fit(X)
    expected = rbf.transform(X)
    monkeypatch.setattr(kernels, "BLOCK_VALUES", values)
    assert_allclose(rbf.transform(X), expected, rtol=1e-5, atol=1e-6)
    assert_allclose(RBF(9, center=center).fit(X).mean_, rbf.mean_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_rows_do_not_depend_on_each_other(mapping):
    X = samples(20)
    mapping = clone(mapping).fit(X)
    rows = np.concatenate([mapping.transform(row[None]) for row in X])
    assert_allclose(rows, mapping.transform(X), rtol=1e-4, atol=1e-6)


@quick
@given(st.integers(0, 2**31), st.floats(-100, 100), st.integers(1, 6))
def test_unit_length_rows_have_length_one(seed, offset, d):
    X = samples(10, d, seed) + np.float32(offset)
    assert_allclose(np.linalg.norm(UnitLength().fit(X).transform(X), axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("value", [0.5, -0.5, 1e-30, -1e30])
def test_a_row_with_one_value_besides_zeros_has_length_one(value):
    unit = UnitLength().fit([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])  # the mean is 0
    Z = unit.transform([[0, value, 0]])
    assert_array_equal(Z, [[0, np.sign(value), 0]])


def test_zero_rows():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 3.0]])
    Z = UnitLength().fit(X).transform(X)
    assert_array_equal(Z[2], [0, 0])  # the mean itself
    assert_allclose(np.linalg.norm(Z[:2], axis=1), 1, rtol=1e-6)
    Z = UnitLength().fit(np.zeros((3, 2))).transform(np.zeros((2, 2)))
    assert_array_equal(Z, np.zeros((2, 2)))
    X = np.concatenate([np.zeros((3, 4)), samples()])
    expected = naive.rbf(X, X[:8], naive.eta2(X, 8, 10))
    assert_allclose(RBF(8).fit(X).transform(X), expected, atol=1e-5)


def test_equal_anchors_are_fine_if_the_rest_differs():
    X = np.concatenate([np.ones((3, 2)), np.zeros((3, 2))])
    Z = RBF(3, divisor=1).fit(X).transform(X[2:4])
    assert_allclose(Z, [[1, 1, 1], [np.exp(-0.5)] * 3], rtol=1e-5)


@quick
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=5),
    st.integers(1, 7),
    st.integers(0, 5),
)
def test_equal_samples_are_an_error(row, n_anchors, n_more):
    n_rows = max(2, n_anchors + n_more)
    for anchors in ("first", "kmeans"):
        with pytest.raises(ValueError) as caught:
            RBF(n_anchors, anchors=anchors).fit([row] * n_rows)
        assert_helpful(caught.value, f"all {n_rows} samples are equal")


def test_waiting_times():
    assert RBF().n_warmup == 300
    assert RBF(7).set_params(n_anchors=9).n_warmup == 9
    # One anchor alone gives no bandwidth.
    assert RBF(1).n_warmup == 2
    assert RBF(7, anchors="kmeans").n_warmup == 35
    assert UnitLength().n_warmup == 1000
    assert Concat([None, RBF(7), RBF(9)]).n_warmup == 9
    assert Concat([UnitLength(), RBF(300, anchors="kmeans")]).n_warmup == 1500


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_nothing_given_is_changed_or_kept(mapping):
    X = samples()
    given = X.copy()
    mapping = clone(mapping).fit(given)
    expected = mapping.transform(given)
    assert_array_equal(given, X)
    given[:] = 7
    assert_array_equal(mapping.transform(X), expected)


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda X: X.tolist(),
        lambda X: X.astype(np.float64),
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(">f4"),
    ],
)
@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_features_of_any_form_work(form, mapping):
    X = samples()
    given = form(X)
    assert_array_equal(
        clone(mapping).fit(given).transform(given), clone(mapping).fit(X).transform(X)
    )


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_features_that_can_become_an_array_work(mapping):
    X = samples()
    expected = clone(mapping).fit(X).transform(X)
    assert_array_equal(clone(mapping).fit(memoryview(X)).transform(memoryview(X)), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, bool])
@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_features_of_any_type_work(dtype, mapping):
    X = np.random.default_rng(0).integers(2, size=(30, 4)).astype(dtype)
    expected = clone(mapping).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert_array_equal(clone(mapping).fit(X).transform(X), expected)


# ---- states --------------------------------------------------------------------------


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_a_state_makes_another_map_equal(mapping, fitted, tmp_path):
    X = samples()
    mapping = clone(mapping)
    if fitted:
        mapping.fit(X)
    state = mapping.get_state()
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in state.values())
    np.savez(tmp_path / "state.npz", **state)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        twin = blank(mapping)
        assert twin.set_state(dict(file)) is twin
    assert repr(twin) == repr(mapping)
    kinds = {int, float, bool, str, type(None), list, RBF, UnitLength}
    assert {type(value) for value in twin.get_params().values()} <= kinds
    if fitted:
        assert_array_equal(twin.transform(X), mapping.transform(X))
    assert_array_equal(twin.fit(X).transform(X), clone(mapping).fit(X).transform(X))


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_the_state_of_an_unfitted_map_unfits(mapping):
    fitted = clone(mapping).fit(samples())
    with pytest.raises(NotFittedError):
        fitted.set_state(clone(mapping).get_state()).transform(samples())


def without(name, state):
    return {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(
    "mapping, state",
    [
        (RBF(), UnitLength().fit(X0).get_state()),
        (UnitLength(), RBF(6).fit(X0).get_state()),
        (RBF(), {}),
        (RBF(), {"n_anchors": np.array(3)}),
        (UnitLength(), {"mean_": np.zeros(3), "other": np.zeros(3)}),
        (RBF(), without("eta2_", RBF(6).fit(X0).get_state())),
        (RBF(), without("divisor", RBF(6).fit(X0).get_state())),
        (RBF(), RBF(6).get_state() | {"anchors": np.array("last")}),
        (RBF(), RBF(6).get_state() | {"anchors": np.array(["first"])}),
        (RBF(), RBF(6).get_state() | {"random_state": np.array(-1)}),
        (RBF(), RBF(6).get_state() | {"random_state": np.array(1.5)}),
        (Concat([None, RBF()]), RBF(6).fit(X0).get_state()),
        (Concat([RBF()]), Concat([RBF(6), None, RBF(6)]).fit(X0).get_state()),
        (
            Concat([RBF(), UnitLength()]),
            {
                **Concat([RBF(6), UnitLength()]).fit(X0).get_state(),
                "maps__1__mean_": np.zeros(3, np.float32),
            },
        ),
    ],
)
def test_a_foreign_state_is_an_error(mapping, state):
    before = pickle.dumps(mapping)
    with pytest.raises(ValueError) as caught:
        mapping.set_state(state)
    assert_helpful(caught.value, "state")
    assert pickle.dumps(mapping) == before


def test_a_state_of_an_older_file_gets_the_defaults_of_new_parameters():
    rbf = RBF(6, 3.0, center=True).fit(X0)
    state = rbf.get_state()
    assert set(state) == {"n_anchors", "divisor", "center", "anchors", *RBF._fitted}
    twin = RBF(4, anchors="kmeans", random_state=3).set_state(without("anchors", state))
    assert repr(twin) == repr(rbf)
    assert_array_equal(twin.transform(X0), rbf.transform(X0))


def test_a_concat_of_maps_of_which_one_is_not_fitted_is_not_fitted():
    state = Concat([RBF(6), UnitLength()]).fit(X0).get_state()
    twin = Concat([RBF(), UnitLength()]).set_state(without("maps__1__mean_", state))
    assert not hasattr(twin, "n_features_in_")
    with pytest.raises(NotFittedError):
        twin.transform(X0)


@pytest.mark.parametrize(
    "name, value",
    [
        ("anchors_", np.zeros((6, 4))),  # float64
        ("anchors_", np.zeros(6, np.float32)),
        ("anchors_", np.zeros((6, 0), np.float32)),
        ("anchors_", np.zeros((5, 4), np.float32)),
        ("anchors_", np.full((6, 4), 2e33, np.float32)),
        ("anchors_", np.full((6, 4), np.nan, np.float32)),
        ("mean_", np.zeros((6, 1), np.float32)),
        ("mean_", np.zeros(5, np.float32)),
        ("eta2_", np.array(0.0)),
        ("eta2_", np.array(2e66)),
        ("n_anchors", np.array(7)),
    ],
)
def test_a_state_with_a_wrong_array_is_an_error_and_changes_nothing(name, value):
    mapping = RBF(6).fit(X0)
    before = pickle.dumps(mapping)
    with pytest.raises(ValueError) as caught:
        mapping.set_state(mapping.get_state() | {name: value})
    assert_helpful(caught.value, name)
    assert pickle.dumps(mapping) == before


class Table:
    """Rows with names of columns, as a DataFrame has them."""

    def __init__(self, rows, names):
        self.rows = rows
        self.columns = list(names)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype)


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_columns_in_another_order_are_an_error(mapping):
    mapping = clone(mapping).fit(Table(X0, "abcd"))
    expected = clone(mapping).fit(X0).transform(X0)
    assert_array_equal(mapping.transform(Table(X0, "abcd")), expected)
    with pytest.raises(ValueError) as caught:
        mapping.transform(Table(X0, "abdc"))
    assert_helpful(caught.value, "['a', 'b', 'd', 'c']", "['a', 'b', 'c', 'd']")


def assign(rbf):
    rbf.anchors_ = samples(6, seed=1)
    rbf.eta2_ = 3.0
    rbf.mean_ = np.full(6, 0.5, np.float32)
    return rbf


def assign_another_form(rbf):
    rbf.anchors_ = np.asfortranarray(samples(6, seed=1).astype(np.float64))
    return rbf


def write(rbf):
    rbf.anchors_[2:] += 1
    rbf.mean_ /= 2
    return rbf


def refit(rbf):
    return rbf.fit(samples(seed=1))


def set_state(rbf):
    return rbf.set_state(RBF(4, 3, center=True).fit(samples(seed=1)).get_state())


def repickle(rbf):
    return pickle.loads(pickle.dumps(rbf))


CHANGES = [
    assign,
    assign_another_form,
    write,
    refit,
    set_state,
    copy.copy,
    copy.deepcopy,
    repickle,
]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("n_rows", [1, 20])
def test_features_follow_from_the_attributes_of_the_moment(change, n_rows, center):
    X = samples(n_rows, seed=2)
    rbf = RBF(6, center=center).fit(X0)
    before = rbf.transform(X)
    changed = change(rbf)
    mean = changed.mean_ if changed.center else 0
    expected = naive.rbf(X, changed.anchors_, changed.eta2_) - mean
    assert_allclose(changed.transform(X), expected, rtol=1e-4, atol=1e-5)
    # A copy that changes leaves the first map as it was.
    if changed is not rbf:
        assign(changed)
        assert_array_equal(rbf.transform(X), before)


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_pickling(mapping):
    mapping = clone(mapping).fit(X0)
    assert_array_equal(pickle.loads(pickle.dumps(mapping)).transform(X0), mapping.transform(X0))


# ---- scikit-learn --------------------------------------------------------------------


def test_maps_work_in_a_pipeline():
    X, new = samples(), samples(seed=1)
    pipeline = Pipeline([("unit", UnitLength()), ("rbf", RBF(6))]).fit(X)
    unit = UnitLength().fit(X)
    expected = RBF(6).fit(unit.transform(X)).transform(unit.transform(new))
    assert_array_equal(pipeline.transform(new), expected)
    assert clone(pipeline).set_params(rbf__n_anchors=4).fit_transform(X, None).shape == (30, 4)
    union = FeatureUnion([("unit", UnitLength()), ("rbf", RBF(6))]).fit(X, np.zeros(30))
    assert union.transform(new).shape == (30, 10)


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_scikit_learn_conventions(mapping):
    twin = clone(mapping)
    assert repr(twin) == repr(mapping) == repr(eval(repr(mapping)))
    with pytest.raises(ValueError):
        check_is_fitted(twin)
    assert twin.fit(X0, np.zeros(30)) is twin
    check_is_fitted(twin)
    assert_array_equal(clone(mapping).fit_transform(X0, np.zeros(30)), twin.transform(X0))


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_scikit_learn_is_told_that_no_labels_are_needed(mapping):
    tags = get_tags(mapping)
    assert not tags.target_tags.required
    assert tags.transformer_tags is not None


def test_unknown_parameters_are_an_error():
    for mapping in (RBF(), UnitLength(), Concat([RBF()])):
        with pytest.raises(ValueError, match="'gamma'"):
            mapping.set_params(gamma=3)
    rbf = RBF(5)
    with pytest.raises(ValueError, match="'gamma'"):
        rbf.set_params(n_anchors=3, gamma=3)
    assert rbf.n_anchors == 5


# ---- bad input -----------------------------------------------------------------------


def with_value(value):
    X = X0.astype(float)
    X[3, 1] = value
    return X


BAD_FEATURES = {
    "nan": (with_value(np.nan), ValueError, ["X[3, 1]", "nan"]),
    "inf": (with_value(-np.inf), ValueError, ["X[3, 1]", "-inf"]),
    "too large": (with_value(1e39), ValueError, ["X[3, 1]", "1e+39"]),
    "no rows": (X0[:0], ValueError, ["(0, 4)", "0 sample(s)"]),
    "no columns": (X0[:, :0], ValueError, ["(30, 0)", "0 feature(s)"]),
    "one row alone": (X0[0], ValueError, ["(4,)", "reshape(1, -1)"]),
    "strings": (X0.astype(str), TypeError, ["<U"]),
    "objects": (X0.astype(str).astype(object), TypeError, ["object"]),
    "complex": (X0.astype(complex), ValueError, ["complex128", "X.real"]),
    "sparse": (scipy.sparse.csr_array(X0), TypeError, ["csr_array", "toarray()"]),
}


@pytest.mark.parametrize("use", ["fit", "transform", "fit_transform"])
@pytest.mark.parametrize("mapping", MAPS, ids=repr)
@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_are_explained_and_leave_the_map_as_it_was(name, mapping, use):
    X, error, words = BAD_FEATURES[name]
    mapping = clone(mapping).fit(X0)
    before = pickle.dumps(mapping)
    with pytest.raises(error) as caught:
        getattr(mapping, use)(X)
    assert_helpful(caught.value, *words)
    assert "images" not in str(caught.value)
    assert pickle.dumps(mapping) == before


# A test of few values and one of many look for NaN and infinity.
FEW_AND_MANY = [(1, 1), (1, 784), (2, 4096), (1, 8193), (40, 784)]


@pytest.mark.parametrize("shape", FEW_AND_MANY)
def test_good_features_are_not_copied_however_large(shape):
    largest = np.finfo(np.float32).max
    for value in (0, 1e-45, 1e15, -1e30, largest):
        X = np.full(shape, value, np.float32)
        X[:, ::2] *= -1
        with np.errstate(all="raise"):
            assert kernels.check_features(X, shape[1]) is X


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", FEW_AND_MANY)
def test_one_bad_value_is_found_among_few_and_many(shape, value):
    for place in {0, shape[0] * shape[1] // 2, shape[0] * shape[1] - 1}:
        X = np.zeros(shape, np.float32)
        X.flat[place] = value
        row, column = divmod(place, shape[1])
        with pytest.raises(ValueError) as caught:
            kernels.check_features(X)
        assert_helpful(caught.value, f"X[{row}, {column}] is {value}")


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_images_are_told_to_reshape(mapping):
    with pytest.raises(ValueError) as caught:
        clone(mapping).fit(np.zeros((30, 2, 2)))
    assert_helpful(caught.value, "(30, 2, 2)", "X.reshape(len(X), -1)", "images")


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_another_width_is_an_error(mapping):
    mapping = clone(mapping).fit(X0)
    with pytest.raises(ValueError) as caught:
        mapping.transform(X0[:, :3])
    assert_helpful(caught.value, "3", "4")


@pytest.mark.parametrize(
    "params, error",
    [
        *[({"n_anchors": value}, ValueError) for value in (0, -1)],
        *[({"n_anchors": value}, TypeError) for value in (True, 2.5, "3", None)],
        ({"n_anchors": 1, "center": True}, ValueError),
        *[({"divisor": value}, ValueError) for value in (0, -1, np.nan, np.inf)],
        *[({"divisor": value}, TypeError) for value in ("10", None, [1.0], 1j)],
        *[({"anchors": value}, ValueError) for value in ("last", None, 3)],
        *[({"random_state": value}, ValueError) for value in (-1, 2**63)],
        *[({"random_state": value}, TypeError) for value in (1.5, True, "0")],
    ],
)
def test_impossible_parameters_are_explained_and_leave_the_map_as_it_was(params, error):
    rbf = RBF(5).fit(X0).set_params(**params)
    before = pickle.dumps(rbf)
    name = next(iter(params))
    with pytest.raises(error) as caught:
        rbf.fit(X0)
    assert_helpful(caught.value, f"{name}={params[name]!r}")
    assert pickle.dumps(rbf) == before


@pytest.mark.parametrize("divisor", [1e-30, 1e30, np.float64(1e30), 1, np.int32(3)])
def test_divisors_from_1e_minus_30_to_1e30_are_possible(divisor):
    eta2 = RBF(6, divisor).fit(X0).eta2_
    assert eta2 == pytest.approx(RBF(6, 1).fit(X0).eta2_ / float(divisor))
    assert eta2 > 0


@pytest.mark.parametrize("divisor", [0.99e-30, 1.01e30])
def test_divisors_beyond_1e_minus_30_and_1e30_are_an_error(divisor):
    with pytest.raises(ValueError) as caught:
        RBF(6, divisor).fit(X0)
    assert_helpful(caught.value, f"divisor={divisor}", "from 1e-30 to 1e+30")


@pytest.mark.parametrize("largest, is_possible", [(0.9e33, True), (1.1e33, False)])
def test_anchors_up_to_1e33_are_possible(largest, is_possible):
    X = np.array([[largest], [0], [largest / 2]])
    rbf = RBF(2, divisor=1)
    if is_possible:
        # In units of the bandwidth, the data are those of any other scale.
        expected = RBF(2, divisor=1).fit(X / largest).transform(X / largest)
        assert_allclose(rbf.fit(X).transform(X), expected, rtol=1e-4)
    else:
        with pytest.raises(ValueError, match=r"anchors up to 1\.1e"):
            rbf.fit(X)


@pytest.mark.parametrize("limit, outside", [(1e66, 1.01), (1e-66, 0.99)])
def test_bandwidths_up_to_the_limits_are_possible_and_none_beyond(limit, outside):
    # Two anchors whose squared distance, divided by the divisor, is the limit itself.
    X = np.array([[0], [1.5e32 if limit > 1 else 3 * 2.0**-78]], np.float32)
    squared = float(X[1, 0]) ** 2
    divisor = squared / limit
    assert squared / divisor == limit
    assert RBF(2, divisor).fit(X).eta2_ == limit
    with pytest.raises(ValueError, match=r"eta\^2 = .* exceed float32"):
        RBF(2, divisor / outside).fit(X)


@pytest.mark.parametrize("center", [1, 0, None, "yes"])
def test_center_is_true_or_false(center):
    with pytest.raises(TypeError) as caught:
        RBF(6, center=center).fit(X0)
    assert f"center must be True or False, not {center!r}" in str(caught.value)


@pytest.mark.parametrize("n_anchors, error", [(0, ValueError), ("3", TypeError)])
def test_impossible_parameters_have_no_waiting_time(n_anchors, error):
    with pytest.raises(error) as caught:
        _ = RBF(n_anchors).n_warmup
    assert_helpful(caught.value, f"n_anchors={n_anchors!r}")


def test_fewer_samples_than_anchors_are_an_error():
    with pytest.raises(ValueError) as caught:
        RBF(31).fit(X0)
    assert_helpful(caught.value, "31", "30", "n_anchors")


@pytest.mark.parametrize("mapping", MAPS, ids=repr)
def test_unfitted_use_is_an_error(mapping):
    with pytest.raises(NotFittedError) as caught:
        clone(mapping).transform(X0)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, AttributeError)
    assert_helpful(caught.value, type(mapping).__name__, "fit")
