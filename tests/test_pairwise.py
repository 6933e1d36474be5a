"""baselines/pairwise.py: plain twins, the bounds of a step, any cutting of the stream."""

import pickle

import naive
import numpy as np
import pytest
from sklearn.base import clone

from baselines import OKH, AdaptHash, pairwise
from hmoh import NotFittedError
from kernels import RBF, UnitLength
from metrics import hamming_histogram, mean_average_precision
from study import training
from study.datasets import load, split
from study.features import Part, Parts

SMALL_OKH = {"n_anchors": 12, "aggressiveness": 0.05}


def make(method, **params):
    """A small model of either method."""
    defaults = SMALL_OKH if method is OKH else {}
    return method(**{"n_bits": 10, "random_state": 0} | defaults | params)


def classes(n=90, d=7, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return (rng.normal(size=(n_classes, d))[y] + 0.5 * rng.normal(size=(n, d))).astype(
        np.float32
    ), y


def codes_differ(f):
    return (f[0] > 0) != (f[1] > 0)


# ---- the compiled loops and their twins ----------------------------------------------


@pytest.mark.parametrize("far", [0, 3, 9])
@pytest.mark.parametrize("C", [1e-3, np.inf])
def test_passive_aggressive_agrees_with_naive(far, C):
    rng = np.random.default_rng(far)
    Z = rng.normal(size=(25, 2, 6)).astype(np.float32)
    similar = rng.random(25) < 0.5
    W = rng.normal(size=(9, 6)).astype(np.float32)
    expected = W.astype(np.float64)
    naive.passive_aggressive(Z, similar, far, C, expected)
    pairwise._passive_aggressive(Z, similar, far, C, W)
    np.testing.assert_allclose(W, expected, atol=1e-4 * max(1, abs(expected).max()))


@pytest.mark.parametrize("similar", [True, False])
@pytest.mark.parametrize("far", [0.0, 4.8, 12.0])
def test_gradient_agrees_with_naive(similar, far):
    rng = np.random.default_rng(3)
    n_steps = 0
    for _ in range(20):
        W = rng.normal(size=(12, 5)).astype(np.float32)
        pair = rng.normal(size=(2, 5)).astype(np.float32)
        G = W @ np.concatenate([W, pair]).T
        before = G.copy()
        expected = naive.gradient(G[:, 12], G[:, 13], similar, far, 0.2)
        made = pairwise._gradient(G, np.bool_(similar), far, 0.2)
        assert made == (expected is not None)
        n_steps += made
        np.testing.assert_array_equal(G[:, :12], before[:, :12])
        if made:
            np.testing.assert_allclose(G[:, 12:], expected, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(G, before)
    assert n_steps == 0 if far == 0 else far < 12 or n_steps > 15


def test_of_equal_margins_the_first_bits_are_corrected():
    # Six bits agree in a dissimilar pair, and four of them have to change.
    margins = np.array([1, 3, 2, 2, 2, 1], np.float32)
    G = np.zeros((6, 8), np.float32)
    G[:, 6] = margins
    G[:, 7] = margins
    assert pairwise._gradient(G, np.bool_(False), 3.5, 0.2)
    assert naive.wrong_bits(margins, margins, False, 3.5) == [1, 2, 3, 4]
    np.testing.assert_array_equal(G[:, 6] != 0, [0, 1, 1, 1, 1, 0])
    G[:, 6] = margins
    G[:, 7] = margins
    assert pairwise._gradient(G, np.bool_(False), 2.0, 0.2)
    np.testing.assert_array_equal(G[:, 6] != 0, [0, 1, 1, 0, 0, 0])


def test_penalty_agrees_with_naive():
    G = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    expected = naive.penalty(G[:, :4], 0.3)
    last = G[:, 4:].copy()
    pairwise._penalty(G, 0.3)
    np.testing.assert_allclose(G[:, :4], expected, atol=1e-6)
    np.testing.assert_array_equal(G[:, 4:], last)


def test_descend_agrees_with_naive():
    W, V = np.random.default_rng(0).normal(size=(2, 4, 30)).astype(np.float32)
    expected = naive.descend(V, W)
    pairwise._descend(V, W)
    np.testing.assert_allclose(W, expected, rtol=1e-4, atol=1e-6)


def test_zero_and_vanishing_weights_become_zero():
    W = np.array([[2, 0], [3, 1e-35]], np.float32)
    V = np.array([[2, 0], [0, 0]], np.float32)
    pairwise._descend(V, W)
    np.testing.assert_array_equal(W, [[0, 0], [1, 0]])


@pytest.mark.parametrize("n_columns", [1, 64, 65, 150])
def test_columns_of_a_symmetric_product_are_completed(n_columns):
    W = np.random.default_rng(0).normal(size=(160, 9)).astype(np.float32)
    expected = np.full((160, 162), np.float32(7))
    expected[:, :160] = W @ W.T
    G = np.full((160, 162), np.float32(7))
    G[:, n_columns:160] = expected[:, n_columns:160]
    pairwise._complete(W, n_columns, G)
    np.testing.assert_allclose(G, expected, atol=1e-4)


# From 129 bits up the products are computed in parts.
@pytest.mark.parametrize("n_bits", [1, 5, 16, 140])
def test_adapt_hash_agrees_with_the_formula(n_bits):
    X, y = classes()
    start = make(AdaptHash, n_bits=n_bits).fit(X[:1], y[:1]).weights_  # one sample makes no pair
    np.testing.assert_allclose(np.linalg.norm(start, axis=0), 1, rtol=1e-6)
    similar = y[0::2] == y[1::2]
    expected = naive.adapt_hash(
        X.reshape(-1, 2, X.shape[1]), similar, 0.8 * n_bits, 0.2, 0.01, start
    )
    np.testing.assert_allclose(
        make(AdaptHash, n_bits=n_bits).fit(X, y).weights_, expected, atol=1e-3
    )


# ---- OKH -----------------------------------------------------------------------------


def okh_step(C, seed, similar):
    """Margins of a pair before and after one step, the codes asked for, and the change of W."""
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
            np.testing.assert_allclose(np.sum((G - H) * after), np.sqrt(R), rtol=1e-3)
        else:
            assert not change.any()


@pytest.mark.parametrize("C", [1e-4, 1e-2])
def test_a_step_is_bounded(C):
    for seed in range(20):
        _, _, (H, G, _), change = okh_step(C, seed, similar=True)
        moved = (H != G).any(axis=0)
        assert not change[~moved].any()
        assert (
            abs(change[:, -1]) <= 2 * C * (1 + 1e-3)
        ).all()  # the last feature is 1, and G - H is 2 at most


def test_okh_features_are_its_own():
    X, y = classes(seed=1)
    model = make(OKH, feature_map=UnitLength(), warmup=40).fit(X, y)
    Z = UnitLength().fit(X[:40]).transform(X)
    # Only the anchors set the bandwidth, not the other samples of the warm-up.
    rbf = RBF(12, divisor=1).fit(Z[:12])
    kernel = np.column_stack([rbf.transform(Z), np.ones(len(Z))])
    np.testing.assert_allclose(model.decision_function(X), kernel @ model.weights_, atol=1e-5)


def test_published_bandwidth_squares_the_mean_squared_distance():
    X, y = classes()
    models = [make(OKH, bandwidth=kind).fit(4 * X, y) for kind in ("mean", "published")]
    assert models[1]._eta2 == pytest.approx(models[0]._eta2 ** 2) and models[0]._eta2 > 1


def test_okh_waits_for_the_map_and_for_its_anchors():
    X, y = classes()
    model = make(OKH, feature_map=RBF(5))  # the map wants 5 samples, the anchors 12
    with pytest.raises(NotFittedError, match="seen 10 of 12 warm-up"):
        model.partial_fit(X[:10], y[:10]).transform(X)
    assert model.partial_fit(X[10:12], y[10:12]).transform(X).shape == (90, 2)
    alone = make(OKH, n_anchors=1)
    with pytest.raises(NotFittedError, match="seen 1 of 2 warm-up"):
        alone.partial_fit(X[:1], y[:1]).transform(X)
    assert alone.partial_fit(X[1:2], y[1:2]).transform(X).shape == (90, 2)
    model = make(OKH, feature_map=UnitLength(), warmup=30)  # the other way round
    with pytest.raises(NotFittedError, match="seen 26 of 30 warm-up"):
        model.partial_fit(X[:26], y[:26]).transform(X)
    assert model.partial_fit(X[26:30], y[26:30]).transform(X).shape == (90, 2)


@pytest.mark.parametrize("feature_map", [None, RBF(5)])
def test_okh_is_saved_while_it_waits(feature_map, tmp_path):
    X, y = classes()
    model = make(OKH, feature_map=feature_map).partial_fit(X[:9], y[:9])
    model.save(tmp_path / "m.npz")
    model = OKH.load(tmp_path / "m.npz", feature_map=clone(feature_map, safe=False)).partial_fit(
        X[9:], y[9:]
    )
    expected = make(OKH, feature_map=feature_map).partial_fit(X, y)
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=1e-5)


def test_okh_encodes_kernel_features_as_it_encodes_samples():
    # More rows than one block.
    X, y = classes(9000)
    model = make(OKH, feature_map=UnitLength()).fit(X[:90], y[:90])
    blocks = model.kernel_blocks(X)
    assert [Z.shape for Z in blocks] == [(8192, 13), (808, 13)]
    np.testing.assert_array_equal(model.transform_blocks(blocks), model.transform(X))
    # They stay the same while the model learns.
    model.partial_fit(X[90:300], y[90:300])
    np.testing.assert_array_equal(model.transform_blocks(blocks), model.transform(X))
    with pytest.raises(NotFittedError, match="seen 5 of 12 warm-up"):
        make(OKH).partial_fit(X[:5], y[:5]).kernel_blocks(X)


def test_kernel_features_are_computed_once_for_the_same_anchors(monkeypatch):
    X, y = classes()
    calls = []
    kernel = OKH._kernel

    def counted(self, Z):
        calls.append(len(Z))
        return kernel(self, Z)

    def evaluate(parts, **params):
        """Return how many features evaluation computed, and check the histogram."""
        model = make(OKH, **params).fit(*parts.stream)
        expected = hamming_histogram(
            model.transform(parts.queries.X),
            model.transform(parts.database.X),
            parts.queries.y,
            parts.database.y,
            model.n_bits,
        )
        calls.clear()
        found = training.evaluate(model, parts, 1)
        np.testing.assert_array_equal(found.items, expected.items)
        np.testing.assert_array_equal(found.relevant, expected.relevant)
        return sum(calls)

    monkeypatch.setattr(OKH, "_kernel", counted)
    monkeypatch.setattr(training, "_last_kernel", None)
    parts = Parts(Part(X, y), Part(X[20:], y[20:]), Part(X[:20], y[:20]))
    assert evaluate(parts) == 90
    assert evaluate(parts) == 0
    assert evaluate(parts, n_bits=17, random_state=3) == 0
    assert evaluate(parts, bandwidth="published") == 90
    assert evaluate(parts, bandwidth="published", n_anchors=11) == 90
    others = Parts(parts.stream, Part(X[20:80], y[20:80]), parts.queries)
    assert evaluate(others, bandwidth="published", n_anchors=11) == 80
    # With its own map the model gets other features.
    assert evaluate(others, feature_map=UnitLength()) == 80
    assert evaluate(others, feature_map=UnitLength()) == 80


def test_okh_needs_as_many_samples_as_anchors():
    X, y = classes(11)
    with pytest.raises(ValueError, match="11 samples are too few for 12 anchors"):
        make(OKH).fit(X, y)


# ---- the stream ----------------------------------------------------------------------


@pytest.mark.parametrize("method", [OKH, AdaptHash])
@pytest.mark.parametrize("sizes", [[1] * 90, [7, 1, 40, 42], [89, 1]])
def test_any_cutting_of_the_stream_gives_the_same(method, sizes, tmp_path):
    X, y = classes()
    whole = make(method, feature_map=UnitLength(), warmup=20).partial_fit(X, y)
    model = make(method, feature_map=UnitLength(), warmup=20)
    for k, end in enumerate(np.cumsum(sizes)):
        model.partial_fit(X[end - sizes[k] : end], y[end - sizes[k] : end])
        if k == len(sizes) // 2:
            model.save(tmp_path / "model.npz")
            model = method.load(tmp_path / "model.npz", feature_map=UnitLength())
    assert model.n_seen_ == 90
    # Bit for bit, but kernel features come from matrix products, which round by their shape.
    np.testing.assert_allclose(
        model.weights_, whole.weights_, rtol=0, atol=1e-5 if method is OKH else 0
    )
    np.testing.assert_array_equal(model.transform(X), whole.transform(X))


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_an_odd_sample_waits_and_fit_drops_it(method):
    X, y = classes(31)
    odd = make(method, alpha=1.0).fit(X, y)
    even = make(method, alpha=1.0).fit(X[:30], y[:30])
    np.testing.assert_allclose(odd.weights_, even.weights_, atol=1e-5)
    waiting = make(method, alpha=1.0).partial_fit(X, y)
    np.testing.assert_allclose(waiting.weights_, even.weights_, atol=1e-5)
    before = waiting.weights_
    assert not np.array_equal(waiting.partial_fit(X[:1], y[-1:] + 1).weights_, before)


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_label_forms_agree(method):
    X, y = classes()
    expected = make(method).fit(X, y).weights_
    names = np.array(["ox", "ant", "bee", "cat"])[y]
    columns = np.eye(4, dtype=int)[y]
    for labels in (names, names.astype(object), columns, columns.astype(bool), y - 7):
        np.testing.assert_array_equal(make(method).fit(X, labels).weights_, expected)


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_a_shared_label_makes_a_pair_similar(method):
    X, _ = classes()
    rng = np.random.default_rng(5)
    Y = (rng.random((90, 4)) < 0.4).astype(int)
    Y[np.arange(90), rng.integers(4, size=90)] = 1
    share = np.array(
        [set(np.flatnonzero(a)) & set(np.flatnonzero(b)) != set() for a, b in Y.reshape(45, 2, 4)]
    )
    assert share.any() and not share.all()
    same = np.stack(
        [np.zeros(45, int), np.where(share, 0, 1)], axis=1
    ).ravel()  # single labels of the same pairs
    np.testing.assert_array_equal(
        make(method).fit(X, Y).weights_, make(method).fit(X, same).weights_
    )


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_learning_helps(method):
    X, y = classes(600, d=12, n_classes=4 if method is OKH else 2)
    params = {"n_bits": 16, "feature_map": UnitLength(), "warmup": 100}
    model = make(method, **params).fit(X, y)
    untrained = (
        make(method, **params).fit(X[:24], y[:24])
        if method is OKH
        else make(method, **params).fit(X[:1], y[:1])
    )
    scores = [
        mean_average_precision(m.transform(X), m.transform(X), y, y) for m in (untrained, model)
    ]
    assert scores[1] > scores[0] + 0.05


# ---- conventions ---------------------------------------------------------------------


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_random_state_decides_everything(method):
    X, y = classes()
    first, again, other = (
        make(method, random_state=s).fit(X, y).weights_ for s in (1, np.random.default_rng(1), 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_clone_pickle_and_file(method, tmp_path):
    X, y = classes()
    model = make(method, feature_map=UnitLength()).fit(X, y)
    assert not hasattr(clone(model), "n_seen_")
    model.save(tmp_path / "m.npz")
    for other in (
        clone(model).fit(X, y),
        pickle.loads(pickle.dumps(model)),
        method.load(tmp_path / "m.npz", UnitLength()),
    ):
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
        np.testing.assert_array_equal(
            other.partial_fit(X[:20], y[:20]).weights_.shape, model.weights_.shape
        )


@pytest.mark.parametrize("method", [OKH, AdaptHash])
def test_a_failed_call_changes_nothing(method):
    X, y = classes()
    model = make(method).partial_fit(X, y)
    before = pickle.dumps(vars(model))
    with pytest.raises(ValueError, match="expecting 7 features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="y is None"):
        model.partial_fit(X)
    assert pickle.dumps(vars(model)) == before


WRONG_VALUES = [
    (
        OKH,
        {"aggressiveness": -1.0},
        "aggressiveness=-1.0 is out of range; .* from 0 to inf",
    ),
    (OKH, {"alpha": 1.5}, "alpha=1.5 is out of range; pass a number from 0 to 1"),
    (OKH, {"n_anchors": 0}, "n_anchors=0"),
    (
        OKH,
        {"bandwidth": "median"},
        'bandwidth=.median. is unknown; pass "mean" or "published"',
    ),
    (AdaptHash, {"alpha": np.nan}, "alpha=nan"),
    (AdaptHash, {"learning_rate": np.inf}, "learning_rate=inf"),
    (AdaptHash, {"n_bits": 0}, "n_bits=0"),
]
WRONG_KINDS = [
    (OKH, {"n_anchors": 2.5}, "n_anchors=2.5 is not a whole number"),
    (AdaptHash, {"ortho": "0.1"}, "ortho='0.1' is not a number"),
    (AdaptHash, {"learning_rate": True}, "learning_rate=True is not a number"),
]


@pytest.mark.parametrize(("method", "params", "message"), WRONG_VALUES)
def test_refused_parameters(method, params, message):
    X, y = classes()
    model = make(method, **params)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "n_seen_")


@pytest.mark.parametrize(("method", "params", "message"), WRONG_KINDS)
def test_refused_parameters_of_the_wrong_kind(method, params, message):
    X, y = classes()
    with pytest.raises(TypeError, match=message):
        make(method, **params).fit(X, y)


def test_defaults_are_the_mnist_values():
    assert OKH().get_params() == {
        "n_bits": 32,
        "feature_map": None,
        "aggressiveness": 0.001,
        "alpha": 0.3,
        "n_anchors": 300,
        "bandwidth": "mean",
        "warmup": None,
        "random_state": None,
    }
    params = AdaptHash().get_params()
    assert (params["alpha"], params["ortho"], params["learning_rate"]) == (
        0.8,
        0.01,
        0.2,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("method", "least"), [(OKH, 0.23), (AdaptHash, 0.26)])
def test_mnist(method, least):
    mnist = load("mnist")
    stream, database, queries = split(mnist, seed=0)
    model = method(n_bits=32, feature_map=UnitLength(), random_state=0).fit(
        mnist.features[stream], mnist.labels[stream]
    )
    codes = [model.transform(mnist.features[rows]) for rows in (queries, database)]
    assert mean_average_precision(*codes, mnist.labels[queries], mnist.labels[database]) > least
