"""The maps: formulas, k-means, maps side by side, states, scikit-learn, bad input."""

import copy
import itertools
import pickle
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from helpers import BAD_FEATURES, assert_helpful, needs_jit
from helpers import X0 as GOOD
from numba.core.caching import FunctionCache
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import hmoh
import kernels
import metrics
from kernels import RBF, Concat, NotFittedError, UnitLength

LARGEST = np.finfo(np.float32).max
MAPS = [
    RBF(n_anchors=6),
    RBF(n_anchors=5, divisor=3, center=True, anchors="kmeans", random_state=0),
    UnitLength(),
    Concat([None, RBF(n_anchors=6, center=True), Concat([UnitLength()])]),
]
every_map = pytest.mark.parametrize("mapping", MAPS, ids=repr)
# Compiled code gives no warnings. With the JIT off, the loop over numbers does.
overflow_in_the_loop = pytest.mark.filterwarnings("ignore:overflow encountered in scalar")


def samples(n=30, d=4, seed=0, scale=1, offset=0):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * scale + offset
    return rows.astype(np.float32)


X0 = samples()


# ---- kernel features -------------------------------------------------------------------


@pytest.mark.parametrize("n_anchors, divisor", [(1, 10.0), (7, 6), (29, 0.5), (30, np.float32(2))])
@pytest.mark.parametrize("d", [1, 33])
@pytest.mark.parametrize("offset", [0, -3000])
def test_rbf_agrees_with_naive(n_anchors, divisor, d, offset):
    X, new = samples(30, d, 0, 1, offset), samples(20, d, 1, 1, offset)
    rbf = RBF(n_anchors, divisor).fit(X)
    assert_array_equal(rbf.anchors_, X[:n_anchors])
    assert rbf.eta2_ == pytest.approx(naive.eta2(X, n_anchors, divisor), rel=1e-6)
    Z = rbf.transform(new)
    assert Z.dtype == np.float32 and Z.shape == (20, n_anchors) and Z.flags.c_contiguous
    assert_allclose(Z, naive.rbf(new, X[:n_anchors], rbf.eta2_), rtol=1e-4, atol=1e-5)
    gamma = 1 / (2 * rbf.eta2_)
    assert_allclose(Z, rbf_kernel(new - offset, X[:n_anchors] - offset, gamma), atol=1e-5)
    assert not rbf.mean_.any()
    if n_anchors > 1:
        # Centred, the mean feature of different anchors is subtracted.
        centred = RBF(n_anchors, divisor, center=True).fit(X)
        K = naive.rbf(X[:n_anchors], X[:n_anchors], rbf.eta2_)
        mean = [np.mean(np.delete(K[:, j], j)) for j in range(n_anchors)]
        assert_allclose(centred.mean_, mean, rtol=1e-4, atol=1e-6)
        assert_allclose(centred.transform(new), Z - mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (1, 300, 3), (5, 17, 33), (16, 2, 100)])
@pytest.mark.parametrize(
    "scale, offset, unit", [(1, 0, 1), (1, -3000, 0.2), (1e30, 0, 1e-30), (1e-30, 0, 1e30)]
)
def test_exponents_agree_with_naive(n, m, d, scale, offset, unit):
    X, A = samples(n, d, 0, scale, offset), samples(m, d, 1, scale, offset)
    Z = np.full((n, m), np.nan, np.float32)
    expected = np.empty((n, m))
    kernels._exponents(X, A, np.float32(unit), Z)
    naive.exponents(X, A, np.float32(unit), expected)
    assert_allclose(Z, expected, rtol=1e-5)


@overflow_in_the_loop
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("scale, offset", [(1, 0), (1, -3000), (1e-30, 1e-29), (1e30, 0)])
def test_few_rows_have_the_features_of_many_also_far_away(center, scale, offset):
    X = samples(40, 4, 0, scale, offset)
    rbf = RBF(9, center=center).fit(X)
    values = [0, 1e-45, 1e-30, 3, 1e15, 1e20, 1e30, 1e38, LARGEST]
    far = [[value, -value, x, 0] for value in values for x in (0, *values)]
    rows = np.concatenate([X, np.array(far, np.float32)])
    few = np.concatenate([rbf.transform(row[None]) for row in rows])
    assert np.ptp(few[:40]) > 0.1
    assert_allclose(few, rbf.transform(rows), rtol=1e-4, atol=1e-5)
    assert_array_equal(few[-1], -rbf.mean_)  # an outlier is like no anchor


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("values", [1, 100, 10**9])
def test_blocks_do_not_change_the_features(values, center, monkeypatch):
    X = samples(50, 7)
    params = {"n_anchors": 9, "center": center, "anchors": "kmeans", "random_state": 0}
    expected = RBF(**params).fit(X).transform(X)
    monkeypatch.setattr(kernels, "BLOCK_VALUES", values)
    assert_allclose(RBF(**params).fit(X).transform(X), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("anchors", ["first", "kmeans"])
def test_tiny_or_huge_features_are_like_any_others_or_an_error(anchors):
    rbf = RBF(6, anchors=anchors, random_state=0)
    expected = rbf.fit_transform(X0)
    for scale in (1e-30, 1e30):
        scaled = X0.astype(float) * scale
        assert_allclose(rbf.fit_transform(scaled), expected, atol=1e-4)
    for scale in (1e-43, 3e37):
        with pytest.raises(ValueError) as caught:
            rbf.fit(X0.astype(float) * scale)
        assert_helpful(caught.value, "float32", "scaled")
    assert_allclose(rbf.transform(scaled), expected, atol=1e-4)  # as before the errors


@pytest.mark.parametrize("anchors", ["first", "kmeans"])
@pytest.mark.parametrize("n_anchors", [1, 7, 9])
def test_equal_samples_are_an_error(n_anchors, anchors):
    with pytest.raises(ValueError) as caught:
        RBF(n_anchors, anchors=anchors).fit([[0.1, -3e5]] * 9)
    assert_helpful(caught.value, "eta2_=0", "differ")


# ---- k-means -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_drawn", [2, 4])
def test_blocks_of_rows_are_drawn_as_k_means_plus_plus_draws_them(n_drawn):
    # Two rows are near each other. If the first of them is kept, the second hardly is.
    X = np.array([[0, 0], [0.2, 0], [2, 0], [0, 3], [1, 1]], np.float32)
    n_trials = 3000
    rng = np.random.default_rng(0)
    orders = list(itertools.permutations(range(5), n_drawn))
    counts = dict.fromkeys(orders, 0)
    for _ in range(n_trials):
        counts[tuple(kernels._spread_rows(X, n_drawn, rng))] += 1
    p = np.array([naive.spread_probability(X, rows) for rows in orders])
    found = np.array(list(counts.values()))
    # Within five standard deviations, or few of a rare order.
    assert (np.abs(found - n_trials * p) < 5 * np.sqrt(n_trials * p * (1 - p)) + 3).all()


@pytest.mark.parametrize("seed", range(3))
def test_k_means_makes_three_steps_of_lloyd_from_rows_that_are_spread(seed):
    X = samples(40, 3)
    X -= X.mean(axis=0)
    X /= np.sqrt(np.square(X).sum(axis=1).mean())
    expected = X[kernels._spread_rows(X, 9, np.random.default_rng(seed))]
    for _ in range(3):
        expected = naive.lloyd_step(X, expected)
    centres = kernels._k_means(X, 9, np.random.default_rng(seed))
    assert_allclose(centres, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale, offset", [(1, 0), (1, 3000), (1e-30, 0), (1e25, 0)])
def test_k_means_finds_the_means_of_groups(scale, offset):
    rng = np.random.default_rng(0)
    groups = 100 * rng.normal(size=(6, 1, 4)) + rng.normal(size=(6, 5, 4))
    X = (rng.permutation(groups.reshape(-1, 4)) * scale + offset).astype(np.float32)
    rbf = RBF(6, anchors="kmeans", random_state=1).fit(X)
    found = (rbf.anchors_.astype(np.float64) - offset) / scale
    order = naive.squared_distances(groups.mean(axis=1), found).argmin(axis=1)
    assert sorted(order) == list(range(6))
    assert_allclose(found[order], groups.mean(axis=1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("n_rows, n_anchors", [(30, 1), (30, 30), (100, 7)])
def test_with_k_means_bandwidth_and_mean_come_from_the_rows(n_rows, n_anchors):
    X = samples(n_rows)
    center = n_anchors > 1
    rbf = RBF(n_anchors, 3.0, center, anchors="kmeans", random_state=0).fit(X)
    D = naive.squared_distances(X, rbf.anchors_)
    assert rbf.eta2_ == pytest.approx(D.mean() / 3, rel=1e-5)
    mean = naive.rbf(X[: 5 * n_anchors], rbf.anchors_, rbf.eta2_).mean(axis=0)
    assert_allclose(rbf.mean_, mean * center, rtol=1e-4, atol=1e-6)


def test_k_means_is_seeded_and_looks_at_five_rows_for_an_anchor():
    def anchors(random_state, n_rows=100, **params):
        rbf = RBF(8, anchors="kmeans", random_state=random_state, **params)
        return rbf.fit(samples(100)[:n_rows]).anchors_.tolist()

    assert anchors(3) == anchors(3) == anchors(3, n_rows=40) == anchors(3, center=True)
    assert anchors(3) != anchors(4)
    assert anchors(None) != anchors(None)
    assert anchors(3) != anchors(3, n_rows=39)


def test_k_means_of_fewer_different_rows_than_anchors_takes_some_twice():
    distinct = samples(3)
    rbf = RBF(30, anchors="kmeans", random_state=0).fit(np.repeat(distinct, 20, axis=0))
    nearest = naive.squared_distances(rbf.anchors_, distinct).min(axis=1)
    assert_allclose(nearest, 0, atol=1e-10)


# ---- unit length and maps side by side ---------------------------------------------------


@pytest.mark.parametrize("scale, offset", [(1, 0), (1, 5), (1e-30, 0), (1e30, 0)])
def test_unit_length_is_scikit_learns_normalize_of_centred_rows(scale, offset):
    X, new = samples(30, 4, 0, scale, offset), samples(30, 4, 1, scale, offset)
    Z = UnitLength().fit(X).transform(new)
    assert Z.dtype == np.float32
    expected = normalize((new - X.astype(float).mean(axis=0)) / scale)
    assert_allclose(Z, expected, rtol=1e-5, atol=1e-6)


def test_a_zero_row_stays_zero_and_a_single_value_becomes_1():
    unit = UnitLength().fit([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])  # the mean is 0
    Z = unit.transform([[0, 0, 0], [0, 1e-30, 0], [-1e30, 0, 0]])
    assert_array_equal(Z, [[0, 0, 0], [0, 1, 0], [-1, 0, 0]])


def test_concat_sets_features_side_by_side_and_fits_copies():
    rbf = RBF(6, center=True)
    new = samples(seed=1)
    both = Concat([None, rbf, UnitLength()]).fit(X0)
    Z = both.transform(new)
    assert not hasattr(rbf, "anchors_")
    expected = [new, rbf.fit(X0).transform(new), UnitLength().fit(X0).transform(new)]
    assert_array_equal(Z, np.concatenate(expected, axis=1))
    assert Z.dtype == np.float32 and Z.flags.c_contiguous and both.n_features_in_ == 4


def test_parameters_of_maps_side_by_side_have_names():
    both = Concat([None, RBF(6), Concat([RBF(3)])])
    assert both.get_params()["maps__1__n_anchors"] == 6
    assert both.get_params()["maps__2__maps__0__n_anchors"] == 3
    assert list(both.get_params(deep=False)) == ["maps"]
    both.set_params(maps__1__n_anchors=5, maps__2__maps__0__divisor=2)
    assert both == Concat([None, RBF(5), Concat([RBF(3, 2)])])
    with pytest.raises(ValueError, match="maps__0__n_anchors"):
        both.set_params(maps__1__n_anchors=4, maps__0__n_anchors=4)
    assert both.maps[1].n_anchors == 5


@pytest.mark.parametrize("maps", [[], [None], [RBF], [RBF(), "unit"]])
def test_what_cannot_be_set_side_by_side_is_an_error(maps):
    both = Concat(maps)
    for use in (lambda: both.fit(X0), lambda: both.n_warmup, both.get_params):
        with pytest.raises(TypeError) as caught:
            use()
        assert_helpful(caught.value, repr(maps))


def test_waiting_times():
    assert RBF().n_warmup == 300
    assert RBF(1).n_warmup == 2  # one sample alone gives no bandwidth
    assert RBF(7, anchors="kmeans").n_warmup == 35
    assert UnitLength().n_warmup == 100
    assert Concat([None, RBF(7), Concat([RBF(9)])]).n_warmup == 9


# ---- any map: rows, states, scikit-learn -------------------------------------------------


@every_map
def test_rows_do_not_depend_on_each_other_and_nothing_given_is_changed_or_kept(mapping):
    given = X0.copy()
    mapping = clone(mapping).fit(given)
    expected = mapping.transform(given)
    assert_array_equal(given, X0)
    given[:] = 7
    rows = np.concatenate([mapping.transform(row[None]) for row in X0])
    assert_allclose(rows, expected, rtol=1e-4, atol=1e-6)


FORMS = [np.asfortranarray, np.ndarray.tolist, memoryview, lambda X: np.repeat(X, 2, axis=0)[::2]]
FORMS += [lambda X, kind=kind: X.astype(kind) for kind in ("u1", "i8", "f2", "f8", ">f4", "?")]


@pytest.mark.parametrize("form", FORMS)
def test_features_of_any_form_and_type_work(form):
    X = np.random.default_rng(0).integers(2, size=(30, 4)).astype(np.float32)
    for mapping in MAPS:
        expected = clone(mapping).fit(X).transform(X)
        assert_array_equal(clone(mapping).fit(form(X)).transform(form(X)), expected)


@pytest.mark.parametrize("fitted", [True, False])
@every_map
def test_a_state_makes_another_map_equal(mapping, fitted, tmp_path):
    mapping = clone(mapping).fit(X0) if fitted else clone(mapping)
    np.savez(tmp_path / "state.npz", **mapping.get_state())
    others = {RBF: RBF().fit(X0[:, :3].repeat(10, axis=0)), UnitLength: UnitLength()}
    twin = others.get(type(mapping), Concat([None, RBF(), Concat([UnitLength()])]))
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        assert twin.set_state(dict(file)) is twin
    assert twin == mapping and repr(twin) == repr(mapping)
    assert hasattr(twin, "n_features_in_") == fitted
    if fitted:
        assert_array_equal(twin.transform(X0), mapping.transform(X0))
    assert_array_equal(twin.fit(X0).transform(X0), clone(mapping).fit(X0).transform(X0))


RBF_STATE = RBF(6).fit(X0).get_state()
SIDES = Concat([RBF(3), UnitLength()])
SIDES_STATE = Concat([RBF(6), UnitLength()]).fit(X0).get_state()
WRONG_STATES = [
    (RBF(3), UnitLength().fit(X0).get_state()),
    (UnitLength(), RBF_STATE),
    (RBF(3), {}),
    (Concat([None, RBF(3)]), RBF_STATE),
    (Concat([RBF(3)]), SIDES_STATE),
    (SIDES, SIDES_STATE | {"maps": np.zeros(3)}),
    (SIDES, SIDES_STATE | {"maps__1__mean_": np.zeros(3, np.float32)}),  # two widths
    (SIDES, {name: SIDES_STATE[name] for name in SIDES_STATE if name != "maps__1__mean_"}),
    *[(UnitLength(), {"mean_": np.zeros(shape, np.float32)}) for shape in (0, (1, 4), ())],
]
for lost in ("eta2_", "divisor"):
    WRONG_STATES += [(RBF(3), {name: RBF_STATE[name] for name in RBF_STATE if name != lost})]
WRONG_VALUES = {
    "anchors_": [np.zeros((6, 4)), *[np.zeros(n, np.float32) for n in (6, (), (6, 0), (5, 4))]],
    "mean_": [np.zeros((6, 1), np.float32), np.full(6, np.inf, np.float32), np.zeros(6)],
    "eta2_": [0.0, 2e66, -1.0, np.nan, [1.0], "1"],
    "n_anchors": [7, -6, 6.0, [6]],
    "divisor": [0.0, np.nan, "1"],
    "anchors": ["last", ["first"], 3],
    "center": ["yes", 2, [True]],
    "random_state": [-1, 1.5],
}
WRONG_VALUES["anchors_"] += [np.full((6, 4), value, np.float32) for value in (2e33, np.nan)]
for name, values in WRONG_VALUES.items():
    WRONG_STATES += [(RBF(3), RBF_STATE | {name: np.asarray(value)}) for value in values]


@pytest.mark.parametrize("mapping, state", WRONG_STATES)
def test_a_wrong_state_is_an_error_and_changes_nothing(mapping, state):
    mapping = clone(mapping).fit(X0)
    before = pickle.dumps(mapping)
    with pytest.raises(ValueError) as caught:
        mapping.set_state(state)
    assert_helpful(caught.value, "state", type(mapping).__name__)
    assert pickle.dumps(mapping) == before


@every_map
def test_copies_are_equal_and_independent(mapping):
    mapping = clone(mapping).fit(X0)
    expected = mapping.transform(X0)
    for twin in (copy.copy(mapping), copy.deepcopy(mapping), pickle.loads(pickle.dumps(mapping))):
        assert_array_equal(twin.transform(X0), expected)
        twin.fit(samples(seed=1))
        assert_array_equal(mapping.transform(X0), expected)


def test_maps_work_in_a_pipeline():
    pipeline = Pipeline([("unit", UnitLength()), ("sides", Concat([None, RBF(6)]))]).fit(X0)
    U = UnitLength().fit(X0).transform(X0)
    assert_array_equal(pipeline.transform(X0), np.hstack([U, RBF(6).fit(U).transform(U)]))
    smaller = clone(pipeline).set_params(sides__maps__1__n_anchors=4)
    assert smaller.fit_transform(X0, None).shape == (30, 8)


@every_map
def test_scikit_learn_conventions(mapping):
    twin = clone(mapping)
    assert twin == mapping == eval(repr(mapping))
    with pytest.raises(ValueError):
        check_is_fitted(twin)
    with pytest.raises(NotFittedError) as caught:
        twin.transform(X0)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, AttributeError)
    assert_helpful(caught.value, type(mapping).__name__, "fit")
    assert twin.fit(X0, np.zeros(30)) is twin
    check_is_fitted(twin)
    assert_array_equal(clone(twin).fit_transform(X0, np.zeros(30)), twin.transform(X0))
    tags = get_tags(mapping)
    assert not tags.target_tags.required and tags.transformer_tags is not None
    with pytest.raises(ValueError) as caught:
        twin.set_params(**twin.get_params(), gamma=3)
    assert_helpful(caught.value, "gamma")


# ---- bad input -----------------------------------------------------------------------------


@every_map
@pytest.mark.parametrize("name", BAD_FEATURES)
def test_bad_features_are_explained_and_leave_the_map_as_it_was(name, mapping):
    X, _, words = BAD_FEATURES[name]
    mapping = clone(mapping).fit(GOOD)
    before = pickle.dumps(mapping)
    for use in (mapping.fit, mapping.transform, mapping.fit_transform):
        with pytest.raises((TypeError, ValueError)) as caught:
            use(X)
        assert_helpful(caught.value, words[0])
    with pytest.raises(ValueError) as caught:
        mapping.transform(GOOD[:, :3])
    assert_helpful(caught.value, "(60, 3)", "(n, 5)")
    assert pickle.dumps(mapping) == before


@pytest.mark.parametrize("shape", [(1, 1), (1, 784), (2, 4096), (1, 8193)])
def test_good_features_are_not_copied(shape):
    for value in (0, 1e-45, -1e30, LARGEST):
        X = np.full(shape, value, np.float32)
        with np.errstate(all="raise"):
            assert kernels.check_features(X, shape[1]) is X


BAD_PARAMS = [
    *[({"n_anchors": value}, ValueError) for value in (0, -1)],
    *[({"n_anchors": value}, TypeError) for value in (True, 2.5, "3", None)],
    ({"n_anchors": 1, "center": True}, ValueError),
    *[({"divisor": value}, ValueError) for value in (0, 0.99e-30, 1.01e30, np.nan, np.inf)],
    *[({"divisor": value}, TypeError) for value in ("10", None, [1.0], 1j)],
    *[({"anchors": value}, ValueError) for value in ("last", None, 3)],
    *[({"center": value}, ValueError) for value in (None, "yes")],
    *[({"random_state": value}, ValueError) for value in (-1, 2**63)],
    *[({"random_state": value}, TypeError) for value in (1.5, "0")],
]


@pytest.mark.parametrize("params, error", BAD_PARAMS)
def test_impossible_parameters_are_explained_and_leave_the_map_as_it_was(params, error):
    rbf = RBF(5).fit(X0).set_params(**params)
    before = pickle.dumps(rbf)
    name = next(iter(params))
    for use in (lambda: rbf.fit(X0), lambda: rbf.n_warmup, lambda: Concat([rbf]).fit(X0)):
        with pytest.raises(error) as caught:
            use()
        assert_helpful(caught.value, f"{name}={params[name]!r}")
    assert pickle.dumps(rbf) == before


@pytest.mark.parametrize("n_anchors, n_samples", [(31, 30), (1, 1)])
def test_too_few_samples_are_an_error_and_leave_the_map_as_it_was(n_anchors, n_samples):
    both = Concat([UnitLength(), RBF(3)]).fit(X0).set_params(maps__1__n_anchors=n_anchors)
    before = pickle.dumps(both)
    with pytest.raises(ValueError) as caught:
        both.fit(X0[:n_samples])
    assert_helpful(caught.value, f"{n_samples} samples", f"{n_anchors} anchors")
    assert pickle.dumps(both) == before


# tests/test_standalone.py has the whole story, in processes of their own.
@needs_jit
@pytest.mark.parametrize("module", [hmoh, kernels, metrics])
def test_a_cache_that_cannot_be_written_loses_its_index(module, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    index = tmp_path / "index"
    index.touch()
    cache = object.__new__(module._Cache)
    cache._cache_file = SimpleNamespace(_index_path=index)
    cache.save_overload("signature", "code")
    assert not index.exists()
