"""baselines/sketching.py: plain twins, the bound of the sketch, any cutting of the stream."""

import pickle

import naive
import numpy as np
import pytest
from scipy.linalg import hadamard
from sklearn.base import clone

from baselines import FROSH, SketchHash, sketching
from hmoh import NotFittedError
from kernels import UnitLength
from metrics import mean_average_precision
from study.datasets import load, split


def make(method, **params):
    """A small model of either method: a sketch of 16 rows, 12 or 40 samples at a time."""
    size = {"sketch_batch": 12} if method is SketchHash else {"block": 40}
    return method(**{"n_bits": 6, "sketch_size": 16, "random_state": 0} | size | params)


def stream(n=230, d=20, seed=0):
    """Rows with a few strong directions, far from the origin, whose mean drifts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(4, 0.5, d) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return (X + 3 + np.linspace(0, 2, n)[:, None]).astype(np.float32)


# ---- the parts and their twins -------------------------------------------------------


SHAPES = [(16, 20), (16, 12), (16, 5), (6, 20), (8, 20), (7, 5), (16, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_shrink_agrees_with_naive(shape):
    B = np.random.default_rng(0).normal(size=shape) * 10.0 ** -np.arange(shape[1])
    ours = sketching._shrink(B, 8)
    expected = naive.shrink(B, 8)
    np.testing.assert_allclose(ours.T @ ours, expected.T @ expected, atol=1e-10)
    assert len(ours) == min(8, len(B))


@pytest.mark.parametrize("shape", SHAPES)
def test_principal_directions_agree_with_a_full_decomposition(shape):
    model = make(SketchHash, n_bits=min(4, shape[1])).fit(stream(d=shape[1]))
    model.sketch_ = np.random.default_rng(0).normal(size=shape)
    _, _, Vt = np.linalg.svd(model.sketch_, full_matrices=False)
    expected = Vt[: model.n_bits].T
    expected *= np.sign(np.take_along_axis(expected, abs(expected).argmax(0)[None], 0))
    np.testing.assert_allclose(model._principal_directions(), expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 20), (16, 12)])
def test_directions_that_the_sketch_does_not_have_are_zero(shape):
    model = make(SketchHash).fit(stream(d=shape[1]))
    A = np.random.default_rng(0).normal(size=(3, shape[1]))
    model.sketch_ = np.zeros(shape)
    model.sketch_[:3] = A
    V = model._principal_directions()
    assert V.shape[1] <= 6
    np.testing.assert_allclose(V[:, :3].T @ V[:, :3], np.eye(3), atol=1e-10)
    assert not V[:, 3:].any()


@pytest.mark.parametrize("batch", [5, 12, 50])
def test_sketch_agrees_with_naive_and_keeps_its_bound(batch):
    X = stream()
    A = naive.inserted_rows(X, batch)
    centred = X - X.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(
        A.T @ A, centred.T @ centred, rtol=1e-8, atol=1e-6
    )  # what the shifts of the mean are for
    model = make(SketchHash, sketch_batch=batch).fit(X)
    B = model.sketch_
    expected = naive.frequent_directions(A, 16)
    np.testing.assert_allclose(B.T @ B, expected.T @ expected, atol=1e-5 * np.linalg.norm(A) ** 2)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    assert len(B) <= 16
    assert np.linalg.norm(A.T @ A - B.T @ B, ord=2) <= np.linalg.norm(A) ** 2 / (16 / 2 + 1)


def test_sketch_that_loses_nothing_gives_principal_directions():
    X = stream(d=6)  # rank 6, and 8 rows survive a shrink
    model = make(SketchHash, n_bits=3).fit(X)
    centred = X - X.mean(axis=0, dtype=np.float64)
    V = np.linalg.svd(centred, full_matrices=False)[2][:3]
    W = model.weights_
    np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-4)
    np.testing.assert_allclose(W @ W.T, V.T @ V, atol=1e-4)  # the same plane, rotated within
    np.testing.assert_allclose(model.decision_function(X), centred @ W, atol=1e-3)


def test_frosh_compresses_as_the_formula_says():
    X = stream(40).astype(np.float64)
    model = make(FROSH).partial_fit(X)
    rng = np.random.default_rng([model._seed, 2, 0])
    D = np.diag(rng.choice([-1.0, 1.0], size=40))
    rows = rng.choice(64, 8, replace=False)
    padded = np.concatenate([D @ (X - X.mean(axis=0)), np.zeros((24, 20))])
    expected = np.sqrt(64 / 8) * (hadamard(64) / np.sqrt(64) @ padded)[rows]
    np.testing.assert_allclose(
        model.sketch_.T @ model.sketch_, expected.T @ expected, rtol=1e-3, atol=1e-3
    )


def test_frosh_is_right_on_average_and_draws_anew():
    X = stream(80)
    centred = X - X.mean(axis=0, dtype=np.float64)
    scatter = centred.T @ centred
    grams = []
    sketches = set()
    for seed in range(300):
        model = make(FROSH, block=80, sketch_size=40, random_state=seed).fit(X)
        grams.append(model.sketch_.T @ model.sketch_)
        sketches.add(model.sketch_.tobytes())
    assert len(sketches) == 300
    assert np.linalg.norm(np.mean(grams, axis=0) - scatter, ord=2) < 0.1 * np.linalg.norm(
        scatter, ord=2
    )
    twice = make(FROSH, block=40, sketch_size=60).fit(
        np.concatenate([X[:40], X[:40]])
    )  # equal blocks, 60 rows kept
    halves = twice.sketch_.T @ twice.sketch_
    once = make(FROSH, block=40, sketch_size=60).fit(X[:40])
    assert not np.allclose(halves, 2 * once.sketch_.T @ once.sketch_, rtol=1e-2)


def test_frosh_leaves_a_small_block_as_it_is():
    X = stream(8)
    model = make(FROSH).fit(X)
    centred = X - X.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(
        model.sketch_.T @ model.sketch_, centred.T @ centred, rtol=1e-3, atol=1e-3
    )


def test_frosh_is_near_sketch_hash():
    X = stream(800)
    centred = X - X.mean(axis=0, dtype=np.float64)
    energy = [
        np.sum((centred @ make(m, sketch_size=40).fit(X).weights_) ** 2)
        for m in (SketchHash, FROSH)
    ]
    assert 0.9 * energy[0] < energy[1] < 1.05 * energy[0]


# ---- the stream ----------------------------------------------------------------------


@pytest.mark.parametrize("method", [SketchHash, FROSH])
@pytest.mark.parametrize("sizes", [[1] * 230, [5, 100, 1, 124], [229, 1]])
def test_any_cutting_of_the_stream_gives_the_same(method, sizes, tmp_path):
    X = stream()
    params = {"feature_map": UnitLength(), "warmup": 30}
    whole = make(method, **params).partial_fit(X)
    model = make(method, **params)
    for k, end in enumerate(np.cumsum(sizes)):
        model.partial_fit(X[end - sizes[k] : end])
        if k == len(sizes) // 2:
            model.save(tmp_path / "model.npz")
            model = method.load(tmp_path / "model.npz", feature_map=UnitLength())
    assert model.n_seen_ == 230
    for name in ("sketch_", "mean_", "weights_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    np.testing.assert_array_equal(model.transform(X), whole.transform(X))


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_an_incomplete_batch_waits_and_fit_learns_from_it(method):
    X = stream()
    waiting = make(method).partial_fit(X)
    complete = make(method).fit(X)
    unit = 12 if method is SketchHash else 40
    np.testing.assert_array_equal(
        waiting.mean_, make(method).partial_fit(X[: 230 // unit * unit]).mean_
    )
    np.testing.assert_allclose(complete.mean_, X.mean(axis=0), rtol=1e-4)
    np.testing.assert_array_equal(
        waiting.partial_fit(X[:10]).mean_,
        make(method).partial_fit(np.concatenate([X, X[:10]])).mean_,
    )


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_codes_before_the_first_batch(method):
    X = stream()
    model = make(method).partial_fit(X[:7])
    with pytest.raises(NotFittedError, match=r"seen 7 of (12|40) samples of the first batch"):
        model.transform(X)
    assert model.partial_fit(X[7:40]).transform(X).shape == (230, 1)


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_codes_follow_what_is_learned_after_they_were_asked_for(method):
    X = stream()
    model = make(method).partial_fit(X[:80])
    model.transform(X)
    np.testing.assert_array_equal(
        model.partial_fit(X[80:]).transform(X), make(method).partial_fit(X).transform(X)
    )


def test_as_published_remembers_one_batch():
    X = stream(60)
    model = make(SketchHash, as_published=True).fit(X)
    np.testing.assert_array_equal(model.weights_, make(SketchHash).fit(X[48:]).weights_)
    np.testing.assert_array_equal(model.mean_, 0)
    assert not np.array_equal(model.weights_, make(SketchHash).fit(X).weights_)


@pytest.mark.parametrize("n_rest", [1, 5, 11])
def test_as_published_a_rest_shorter_than_a_batch_changes_nothing(n_rest):
    X = stream(60 + n_rest)
    whole = make(SketchHash, as_published=True).fit(X[:60])
    model = make(SketchHash, as_published=True).fit(X)
    assert model.n_seen_ == 60 + n_rest
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    np.testing.assert_array_equal(model.sketch_, whole.sketch_)
    # The method as described learns it.
    assert not np.array_equal(
        make(SketchHash).fit(X).weights_, make(SketchHash).fit(X[:60]).weights_
    )


def test_as_published_a_rest_that_is_completed_later_is_learned():
    X = stream(72)
    model = make(SketchHash, as_published=True)
    model.partial_fit(X[:65]).partial_fit(X[65:])
    expected = make(SketchHash, as_published=True).fit(X).weights_
    np.testing.assert_array_equal(model.weights_, expected)


def test_as_published_a_rest_is_learned_if_it_is_all_there_is():
    X = stream(8)
    model = make(SketchHash, as_published=True).fit(X)
    np.testing.assert_array_equal(model.weights_, make(SketchHash).fit(X).weights_)
    np.testing.assert_array_equal(model.mean_, 0)


def test_batch_and_size_follow_the_code_length():
    assert [SketchHash(n_bits=b)._update_size for b in (8, 63, 64, 128)] == [
        50,
        50,
        150,
        150,
    ]
    assert [SketchHash(n_bits=b)._n_rows for b in (8, 100, 128)] == [200, 200, 256]
    assert [FROSH(n_bits=b)._update_size for b in (8, 128)] == [800, 1024]


@pytest.mark.parametrize("method", [SketchHash, FROSH])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_samples_than_bits(method, n):
    X = stream()
    model = make(method).fit(X[:n])
    assert np.isfinite(model.decision_function(X)).all()
    assert np.linalg.matrix_rank(model.weights_, tol=1e-3) == n - 1


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_features_that_are_constant(method):
    X = np.full((100, 8), 5.0)
    assert not make(method).fit(X).decision_function(X).any()


# ---- conventions ---------------------------------------------------------------------


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_labels_do_not_matter(method):
    X = stream()
    expected = make(method).fit(X).weights_
    for y in (np.arange(230), np.full(230, "a"), np.eye(230, dtype=int)):
        np.testing.assert_array_equal(make(method).fit(X, y).weights_, expected)
    assert make(method).partial_fit(X[:120]).partial_fit(X[120:], np.arange(110)).n_seen_ == 230
    assert not make(method).__sklearn_tags__().target_tags.required


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_random_state_decides_everything(method):
    X = stream()
    first, again, other = (
        make(method, random_state=s).fit(X).weights_ for s in (1, np.random.default_rng(1), 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_clone_pickle_and_file(method, tmp_path):
    X = stream()
    model = make(method, feature_map=UnitLength()).fit(X)
    assert not hasattr(clone(model), "n_seen_")
    model.save(tmp_path / "m.npz")
    for other in (
        clone(model).fit(X),
        pickle.loads(pickle.dumps(model)),
        method.load(tmp_path / "m.npz", UnitLength()),
    ):
        np.testing.assert_array_equal(other.transform(X), model.transform(X))


@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_more_bits_than_dimensions(method):
    X = stream()
    model = make(method, n_bits=21)
    with pytest.raises(
        ValueError,
        match=r"n_bits=21 is more than the 20 features; lower n_bits, or pass",
    ):
        model.fit(X)
    assert not hasattr(model, "n_seen_")
    model = make(method, n_bits=21, feature_map=UnitLength(), warmup=50).partial_fit(X[:30])
    before = pickle.dumps(vars(model))
    with pytest.raises(ValueError, match="n_bits=21 is more"):
        model.partial_fit(X[30:])
    assert pickle.dumps(vars(model)) == before


WRONG_VALUES = [
    (
        SketchHash,
        {"sketch_size": 1},
        "sketch_size=1 is too small; pass an int of at least 2",
    ),
    (SketchHash, {"sketch_batch": 0}, "sketch_batch=0"),
    (FROSH, {"block": 0}, "block=0"),
    (FROSH, {"n_bits": -3}, "n_bits=-3"),
]
WRONG_KINDS = [
    (FROSH, {"block": 2.5}, "block=2.5 is not a whole number"),
    (FROSH, {"sketch_size": None}, "sketch_size=None is not a whole number"),
]


@pytest.mark.parametrize(("method", "params", "message"), WRONG_VALUES)
def test_refused_parameters(method, params, message):
    model = make(method, **params)
    with pytest.raises(ValueError, match=message):
        model.fit(stream())
    assert not hasattr(model, "n_seen_")


@pytest.mark.parametrize(("method", "params", "message"), WRONG_KINDS)
def test_refused_parameters_of_the_wrong_kind(method, params, message):
    with pytest.raises(TypeError, match=message):
        make(method, **params).fit(stream())


@pytest.mark.slow
@pytest.mark.parametrize("method", [SketchHash, FROSH])
def test_mnist(method):
    mnist = load("mnist")
    rows, database, queries = split(mnist, seed=0)
    model = method(n_bits=32, feature_map=UnitLength(), random_state=0).fit(mnist.features[rows])
    codes = [model.transform(mnist.features[part]) for part in (queries, database)]
    assert mean_average_precision(*codes, mnist.labels[queries], mnist.labels[database]) > 0.33
