"""LSH, HCOH, OSH, MIHash and BSODH: plain twins, gradients, and what all methods promise."""

from __future__ import annotations

import copy
import os
import pickle
import re

import naive
import numpy as np
import pytest
from sklearn.base import clone

import baselines
from baselines import (
    BEYOND,
    BSODH,
    HCOH,
    LSH,
    METHODS,
    METHODS_AS_PUBLISHED,
    OSH,
    PAPER_DATASETS,
    PUBLISHED_FAULTS,
    HadamardRidge,
    MIHash,
    SketchHash,
    bsodh,
    hcoh,
    information,
    mihash,
    osh,
)
from baselines.linear import number_labels, share_label
from hmoh import HMOH, NotFittedError
from kernels import RBF, UnitLength
from metrics import mean_average_precision
from study import training
from study.features import Part, Parts

SMALL = {
    "LSH": lambda **more: LSH(**{"n_bits": 9} | more),
    "HCOH": lambda **more: HCOH(**{"n_bits": 9} | more),
    "OSH": lambda **more: OSH(**{"n_bits": 9} | more),
    "OSH boost": lambda **more: OSH(**{"n_bits": 9, "loss": "boost"} | more),
    "OSH as published": lambda **more: OSH(**{"n_bits": 9, "as_published": True} | more),
    "MIHash": lambda **more: MIHash(**{"n_bits": 9, "reservoir": 20, "update_every": 7} | more),
    "BSODH": lambda **more: BSODH(**{"n_bits": 9, "batch": 16} | more),
    "HadamardRidge": lambda **more: HadamardRidge(**{"n_bits": 9} | more),
    "HadamardRidge with memory": lambda **more: HadamardRidge(**{"n_bits": 9, "memory": 30} | more),
}
SUPERVISED = [name for name in SMALL if name != "LSH"]


def stream(labels="integers", n=80, seed=0):
    """Four noisy clusters in six dimensions; of several labels, each adds its own direction."""
    rng = np.random.default_rng(seed)
    if labels == "sets":
        y = rng.random((n, 4)) < 0.4
        y[np.arange(n), rng.integers(4, size=n)] = True
        return (y @ np.eye(4, 6) + 0.2 * rng.normal(size=(n, 6))).astype(np.float32), y.astype(int)
    y = rng.integers(4, size=n)
    X = (np.eye(4, 6)[y] - 0.2 + 0.2 * rng.normal(size=(n, 6))).astype(np.float32)
    return X, y if labels == "integers" else np.array(["a", "bb", "ccc", "dddd"])[y]


def rows(seed=0, n=12, d=5):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


# ---- agreement with the twins --------------------------------------------------------


def test_tanh():
    x = np.concatenate([np.linspace(-9, 9, 601), [0, 1e-6, 50, -1e6, 3e38]]).astype(np.float32)
    assert np.abs([mihash._tanh(v) - naive.tanh(v) for v in x]).max() < 1e-6
    assert mihash._tanh(np.float32(0)) == 0


def test_products():
    A = rows(1)
    B = rows(2, n=7)
    G = np.empty((12, 7), np.float32)
    mihash._products(A, B, G)
    np.testing.assert_allclose(G, naive.products(A, B), atol=1e-5)
    # The number of rows, four of which are computed at a time, does not change the rounding.
    for n in (1, 2, 3, 7):
        part = np.empty((n, 7), np.float32)
        mihash._products(A[5 : 5 + n], B, part)
        np.testing.assert_array_equal(part, G[5 : 5 + n])
    assert abs(mihash._dot(A, 3, B, 2) - naive.dot(A, 3, B, 2)) < 1e-5


def test_slopes():
    joint = np.array([[3.0, 0.0, 1.5, 0.5], [0.0, 0.0, 0.25, 4.75]])
    slope = np.empty((2, 3))
    mihash._slopes(joint, 10, 2.5, slope)
    np.testing.assert_allclose(slope, naive.slopes(joint, 2.5), atol=1e-12)


def test_step_and_hash():
    x = rows(1)
    W = rows(2, n=7) / 3
    g = rows(3, n=1, d=7)[0]
    h = np.empty(7, np.float32)
    stepped = W.copy()
    mihash._step_and_hash(x, 2, 5, 3.0, g, stepped, h)
    expected, expected_h = naive.step_and_hash(x[2], x[5], 3.0, g, W)
    np.testing.assert_allclose(stepped, expected, atol=1e-6)
    np.testing.assert_allclose(h, expected_h, atol=1e-5)


def test_step_and_compare():
    P = rows(1, d=7)
    a = rows(2, n=1, d=12)[0]
    g, h = rows(3, n=2, d=7)
    stepped = P.copy()
    H = np.empty_like(P)
    inner = np.empty(12, np.float32)
    mihash._step_and_compare(10, 3.0, a, g, h, stepped, H, inner)
    expected = naive.step_and_compare(3.0, a[:10], g, h, P[:10])
    for array, value in zip((stepped, H, inner), expected, strict=True):
        np.testing.assert_allclose(array[:10], value, atol=1e-5)
    # The places behind the items are left alone.
    np.testing.assert_array_equal(stepped[10:], P[10:])


def items(n_bits, n, seed):
    """Bits (n, n_bits) bool, codes (n, words), and which items are similar, (n, n)."""
    rng = np.random.default_rng(seed)
    bits = rng.random((n, n_bits)) < 0.5
    y = rng.integers(3, size=n)
    return bits, information.pack(bits.astype(float)), y[:, None] == y


@pytest.mark.parametrize("n_bits", [3, 64, 70, 130])
def test_histograms_and_information(n_bits):
    bits, codes, similar = items(n_bits, 15, 0)
    # There is room for more items than there are.
    room = np.zeros((18, 18), bool)
    room[:15, :15] = similar
    counts = information.histograms(codes, room, n_bits)
    np.testing.assert_array_equal(counts[:15], naive.histograms(bits, similar))
    assert not counts[15:].any()
    value = information.mean_information(counts[:15])
    assert abs(value - naive.information(bits, similar)) < 1e-9


@pytest.mark.parametrize("x", [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF])
def test_popcount(x):
    with np.errstate(over="ignore"):
        assert information._popcount(np.uint64(x)) == x.bit_count()


@pytest.mark.parametrize("n_bits", [3, 70])
def test_replacing_items_equals_counting_again(n_bits):
    # Twelve items come to be fifteen. Three come in free places, two in the place of others.
    bits, codes, similar = items(n_bits, 15, 0)
    new = np.array([4, 9, 12, 13, 14])
    _, other_codes, other_similar = items(n_bits, 15, 1)
    old = np.arange(12)
    kept = np.setdiff1d(old, new)
    before_codes = np.zeros_like(codes)
    before_codes[:12] = other_codes[:12]
    before_codes[kept] = codes[kept]
    before_similar = np.zeros_like(similar)
    before_similar[:12, :12] = other_similar[:12, :12]
    before_similar[np.ix_(kept, kept)] = similar[np.ix_(kept, kept)]
    counts = information.histograms(before_codes[:12], before_similar, n_bits)
    information.replace_items(
        new, codes[new], similar[new], 12, before_codes, before_similar, counts
    )
    np.testing.assert_array_equal(counts, naive.histograms(bits, similar))
    np.testing.assert_array_equal(before_codes, codes)
    np.testing.assert_array_equal(before_similar, similar)


@pytest.mark.parametrize("labels", ["integers", "strings", "sets"])
def test_labels_are_shared_and_numbered_as_python_would(labels):
    _, y = stream(labels, n=30)
    keys = [tuple(np.atleast_1d(label).tolist()) for label in y]
    shared = share_label(y[:10], y)
    for i in range(10):
        for j in range(30):
            together = (y[i] & y[j]).any() if labels == "sets" else y[i] == y[j]
            assert shared[i, j] == together
    known, _ = number_labels(y[:12], y[:0])
    names, numbers = number_labels(y[12:], known)
    expected = list(dict.fromkeys(keys))
    assert [tuple(np.atleast_1d(name).tolist()) for name in names] == expected
    assert numbers.tolist() == [expected.index(key) for key in keys[12:]]


@pytest.mark.parametrize("gradient", ["true", "published"])
@pytest.mark.parametrize("labels", ["integers", "sets"])
def test_mihash_equals_recomputing_everything(labels, gradient):
    X, y = stream(labels)
    settings = {"n_bins": 6, "sharpness": 3.0, "learning_rate": 0.3, "update_every": 7}
    model = MIHash(n_bits=9, reservoir=20, gradient=gradient, random_state=0, **settings)
    start = LSH(n_bits=9, random_state=0).fit(X).weights_.T.astype(float)
    model.fit(X, y)
    keys = np.random.Generator(np.random.PCG64([model._seed, 2])).random(len(X))
    related = share_label(y, y)
    W, used = naive.mihash(
        X.astype(float),
        related,
        start,
        keys,
        20,
        **settings,
        published=gradient == "published",
    )
    np.testing.assert_allclose(model._W, W, atol=2e-4)
    np.testing.assert_allclose(model.weights_.T, used, atol=2e-4)
    assert not np.allclose(used, start, atol=0.01)
    np.testing.assert_allclose(model._P, model._items[:20] @ model._W.T, atol=1e-5)
    # What is updated item by item equals what is computed again.
    similar = share_label(model._labels, model._labels)
    np.testing.assert_array_equal(model._similar, similar)
    counts = information.histograms(model._codes, similar, 9)
    np.testing.assert_array_equal(model._counts, counts)


def test_hash_functions_in_use_change_only_if_they_gain_more_than_the_threshold():
    X, y = stream()
    start = LSH(n_bits=9, random_state=0).fit(X).weights_
    model = SMALL["MIHash"](threshold=100.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.weights_, start)
    assert not np.allclose(model._W.T, start)


def test_reservoir_keeps_the_smallest_keys():
    keys = np.random.default_rng(0).random(50)
    K = np.full(8, np.inf)
    slot = mihash._slots(keys, K)
    np.testing.assert_array_equal(np.sort(K), np.sort(keys)[:8])
    np.testing.assert_array_equal(slot[:8], np.arange(8))
    held = {
        s: key for s, key in zip(slot, keys, strict=True) if s >= 0
    }  # the last one to take a slot holds it
    assert [held[s] for s in range(8)] == K.tolist()


def test_reservoir_is_a_uniform_sample_of_the_stream():
    hits = np.zeros(60)
    for seed in range(100):
        slot = mihash._slots(np.random.default_rng(seed).random(60), np.full(12, np.inf))
        hits[[np.flatnonzero(slot == s)[-1] for s in range(12)]] += 1
    assert hits.sum() == 1200 and abs(hits[:30].sum() - 600) < 80  # five standard deviations


def test_delta_rule():
    Z = rows(0)
    W = rows(1, n=7)
    C = np.where(rows(2, d=7) > 0, 1, -1).astype(np.int8)
    learned = W.copy()
    hcoh._delta_rule(Z, C, 0.3, learned)
    np.testing.assert_allclose(learned, naive.delta_rule(Z, C, 0.3, W), atol=1e-5)


@pytest.mark.parametrize("boost", [False, True])
def test_fit_codewords(boost):
    Z = rows(0) / 3
    W = rows(1, n=7)
    C = np.where(rows(2, n=3, d=7) > 0, 1, -1).astype(np.int8)
    sample = np.array([0, 1, 1, 5, 3, 3])
    word = np.array([2, 0, 1, 1, 0, 2])
    learned = W.copy()
    osh._fit_codewords(Z, sample, word, C, 0.3, boost, learned)
    expected = naive.fit_codewords(Z, sample, word, C, 0.3, boost, W)
    np.testing.assert_allclose(learned, expected, rtol=1e-4, atol=1e-4)
    assert not np.allclose(expected, W, atol=0.01)


def test_boosted_weights_stay_finite():
    X, y = stream()
    model = SMALL["OSH boost"](learning_rate=10, random_state=0).fit(100 * X, y)
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize(("similar", "dissimilar"), [(1.25, 0.25), (0.5, 1.25), (1.0, 0.0)])
@pytest.mark.parametrize("labels", ["integers", "strings", "sets"])
def test_bsodh_equals_the_whole_similarity_matrix(labels, similar, dissimilar):
    X, y = stream(labels, n=90)
    if labels == "integers":
        y = np.where(np.arange(90) < 40, y % 2, y)  # two classes come later
    start = LSH(n_bits=9, random_state=0).fit(X).weights_.astype(float)
    model = BSODH(n_bits=9, batch=20, similar=similar, dissimilar=dissimilar, random_state=0).fit(
        X, y
    )
    same = (y[:, None] == y) if y.ndim == 1 else (y[:, None] == y).all(axis=2)
    related = same if y.ndim == 1 else y @ y.T > 0
    expected = naive.bsodh(X.astype(float), same, related, start, 20, 0.9, 0.8, similar, dissimilar)
    np.testing.assert_allclose(model.weights_, expected, atol=1e-5)


def test_both_forms_of_the_ridge_agree():
    X = rows(0, n=8, d=5).astype(float)
    B = rows(1, n=8, d=3).astype(float)
    W = np.linalg.inv(X.T @ X + 0.7 * np.eye(5)) @ X.T @ B
    np.testing.assert_allclose(bsodh._ridge(X, B, 0.7), W)
    wide = np.hstack([X, X])
    W = np.linalg.inv(wide.T @ wide + 0.7 * np.eye(10)) @ wide.T @ B
    np.testing.assert_allclose(bsodh._ridge(wide, B, 0.7), W)


# ---- gradients by finite differences -------------------------------------------------


def differences(objective, W, step=1e-6):
    gradient = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        E = np.zeros_like(W)
        E[place] = step
        gradient[place] = (objective(W + E) - objective(W - E)) / (2 * step)
    return gradient


def test_hcoh_descends_half_the_squared_error():
    z = rows(0, n=1)
    W = rows(1, n=4)
    c = np.array([[1, -1, -1, 1]], np.int8)
    learned = W.copy()
    hcoh._delta_rule(z, c, 1.0, learned)
    gradient = differences(
        lambda V: ((np.tanh(V @ z[0].astype(float)) - c) ** 2).sum() / 2,
        W.astype(float),
    )
    np.testing.assert_allclose(W - learned, gradient, atol=1e-5)


def test_mihash_ascends_the_mutual_information():
    """With the codes of the reservoir held fixed, as in the paper."""
    W = rows(0, n=8) / 3
    items = rows(1, n=15)
    x = rows(2, n=1)
    similar = np.random.default_rng(3).random((1, 16)) < 0.4
    P = (items @ W.T).astype(np.float32)
    learned = W.copy()
    G = np.zeros((1, 16), np.float32)
    mihash._ascend(x, G, similar, np.array([-1]), np.arange(15), 15, 2.0, 1.0, False, 5, learned, P)
    V = W.astype(float)
    x = x[0].astype(float)
    items = items.astype(float)
    gradient = differences(
        lambda U: naive.soft_information(U @ x, items, similar[0, :15], V, 2.0, 5), V
    )
    np.testing.assert_allclose(learned - W, gradient, atol=2e-5)
    assert np.abs(gradient).max() > 0.01


# ---- what all methods promise --------------------------------------------------------


@pytest.mark.parametrize("labels", ["integers", "strings", "sets"])
@pytest.mark.parametrize("name", SMALL)
def test_any_chunking_gives_the_same_model(name, labels, tmp_path):
    X, y = stream(labels)
    whole = SMALL[name](random_state=1).partial_fit(X, y)
    parts = SMALL[name](random_state=1)
    start = 0
    for size in (1, 2, 30, 7, 40):
        parts.partial_fit(X[start : start + size], y[start : start + size])
        start += size
        if start in (3, 33):
            parts.save(tmp_path / "model.npz")
            parts = type(parts).load(tmp_path / "model.npz")
    assert start == len(X) and parts.n_seen_ == 80
    np.testing.assert_array_equal(parts.weights_, whole.weights_)
    np.testing.assert_array_equal(parts.transform(X), whole.transform(X))
    if name not in ("LSH", "OSH as published"):
        assert not np.array_equal(parts.weights_, LSH(n_bits=9, random_state=1).fit(X).weights_)


@pytest.mark.parametrize("name", SMALL)
def test_feature_map_and_warmup(name, tmp_path):
    X, y = stream()
    whole = SMALL[name](feature_map=UnitLength(), warmup=25, random_state=1).partial_fit(X, y)
    parts = SMALL[name](feature_map=UnitLength(), warmup=25, random_state=1).partial_fit(
        X[:10], y[:10]
    )
    with pytest.raises(NotFittedError, match="seen 10 of 25"):
        parts.transform(X)
    for part in (slice(10, 31), slice(31, 80)):  # saved before and after the warm-up
        parts.save(tmp_path / "model.npz")
        parts = (
            type(parts)
            .load(tmp_path / "model.npz", feature_map=UnitLength())
            .partial_fit(X[part], y[part])
        )
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-4)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_random_state_decides(name):
    X, y = stream()
    one, same, other = (SMALL[name](random_state=s).fit(X, y).weights_ for s in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)
    generators = [
        SMALL[name](random_state=np.random.default_rng(5)).fit(X, y).weights_ for _ in range(2)
    ]
    np.testing.assert_array_equal(*generators)


@pytest.mark.parametrize("name", SMALL)
def test_learned_arrays_are_replaced_not_written_into(name):
    X, y = stream()
    model = SMALL[name](random_state=0).partial_fit(X[:40], y[:40])
    before = copy.copy(model)
    state = copy.deepcopy(before._state())
    model.partial_fit(X[40:], y[40:])
    for key, value in before._state().items():
        np.testing.assert_array_equal(value, state[key])


@pytest.mark.parametrize("name", SMALL)
def test_scikit_learn_conventions(name):
    X, y = stream()
    model = SMALL[name](random_state=0)
    twin = clone(model)
    assert twin.get_params() == model.get_params() and repr(twin) == repr(model)
    twin = pickle.loads(pickle.dumps(model.partial_fit(X[:50], y[:50])))
    np.testing.assert_array_equal(
        twin.partial_fit(X[50:], y[50:]).weights_,
        model.partial_fit(X[50:], y[50:]).weights_,
    )
    assert model.decision_function(X).dtype == np.float32 and model.weights_.shape == (
        6,
        9,
    )
    np.testing.assert_array_equal(
        model.transform(X),
        np.packbits(model.decision_function(X) > 0, axis=1, bitorder="little"),
    )
    assert model.__sklearn_tags__().target_tags.required == (name != "LSH")


def test_labels_are_needed_but_for_lsh():
    X, _ = stream()
    assert LSH(n_bits=4).fit(X).partial_fit(X).n_seen_ == 160
    assert (
        LSH(n_bits=4, feature_map=UnitLength(), warmup=100)
        .partial_fit(X, None)
        .partial_fit(X)
        .n_seen_
        == 160
    )
    for name in SUPERVISED:
        for call in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match="y is None"):
                getattr(SMALL[name](), call)(X)


WRONG_VALUES = [
    (LSH(n_bits=0), "n_bits"),
    (HCOH(n_bits=0), "n_bits"),
    (OSH(n_bits=0), "n_bits"),
    (MIHash(n_bits=0), "n_bits"),
    (BSODH(n_bits=0), "n_bits"),
    (HadamardRidge(n_bits=0), "n_bits"),
    (HCOH(codebook="best"), "codebook"),
    (HCOH(fuse="rows"), "fuse"),
    (HCOH(n_classes=0), "n_classes"),
    (HCOH(n_classes=2), "n_classes"),
    (OSH(loss="log"), "loss"),
    (MIHash(reservoir=0), "reservoir"),
    (MIHash(n_bins=0), "n_bins"),
    (MIHash(update_every=0), "update_every"),
    (MIHash(sharpness=0), "sharpness"),
    (MIHash(threshold=-1), "threshold"),
    (MIHash(threshold=np.nan), "threshold"),
    (MIHash(gradient="exact"), "gradient"),
    (BSODH(batch=0), "batch"),
    (BSODH(ridge=0), "ridge"),
    (HadamardRidge(ridge=0), "ridge"),
    (HadamardRidge(memory=0), "memory"),
    (BSODH(fit_weight=0), "fit_weight"),
    (BSODH(similar=-1), "similar"),
]
WRONG_KINDS = [
    (OSH(learning_rate=True), "learning_rate"),
    (MIHash(reservoir=1.5), "reservoir"),
    (BSODH(dissimilar="0"), "dissimilar"),
]


def check_refused(model, error, message):
    X, y = stream()
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert not hasattr(model, "n_seen_")


@pytest.mark.parametrize(("model", "name"), WRONG_VALUES)
def test_parameters_are_refused_with_a_remedy(model, name):
    check_refused(model, ValueError, rf"{name}=.*(pass|raise)")


@pytest.mark.parametrize(("model", "name"), WRONG_KINDS)
def test_parameters_of_the_wrong_kind_are_refused_with_a_remedy(model, name):
    check_refused(model, TypeError, rf"{name}=.*pass")


@pytest.mark.parametrize("rate", [0, -1, np.inf, "1"])
@pytest.mark.parametrize("method", [HCOH, OSH, MIHash])
def test_learning_rate_is_refused_with_a_remedy(method, rate):
    error = TypeError if rate == "1" else ValueError
    check_refused(method(learning_rate=rate), error, "learning_rate=.*pass")


@pytest.mark.parametrize("value", ["no", 1, None])
@pytest.mark.parametrize("method", [OSH, SketchHash])
def test_as_published_is_true_or_false(method, value):
    model = method(n_bits=4, as_published=value)
    check_refused(model, TypeError, f"as_published must be True or False, not {value!r}")


@pytest.mark.parametrize("method", [OSH, SketchHash])
def test_as_published_may_be_a_bool_of_numpy(method):
    X, y = stream()
    expected = method(n_bits=4, as_published=True, random_state=0).fit(X, y)
    model = method(n_bits=4, as_published=np.True_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.weights_, expected.weights_)


@pytest.mark.parametrize("name", [name for name in SUPERVISED if name != "OSH as published"])
def test_learning_beats_random_hyperplanes(name):
    X, y = stream(n=160)
    model = SMALL[name](random_state=0).partial_fit(X, y)
    scores = [
        mean_average_precision(codes[:80], codes[80:], y[:80], y[80:], n_bits=9)
        for codes in (
            model.transform(X),
            LSH(n_bits=9, random_state=0).fit_transform(X),
        )
    ]
    assert scores[0] > scores[1] + 0.05


# ---- each method's own ---------------------------------------------------------------


def test_all_start_as_lsh():
    X, y = stream()
    start = LSH(n_bits=9, random_state=3).fit(X).weights_
    np.testing.assert_allclose(np.linalg.norm(start, axis=0), 1, rtol=1e-6)
    for model in (
        HCOH(9, learning_rate=1e-9),
        OSH(9, learning_rate=1e-9),
        MIHash(9),
        BSODH(9),
    ):
        np.testing.assert_allclose(
            model.set_params(random_state=3).fit(X, y).weights_, start, atol=1e-6
        )


def test_hcoh_has_the_target_codes_of_hmoh():
    for labels in ("strings", "sets"):
        X, y = stream(labels)
        hcoh, hmoh = (model(n_bits=9, random_state=0).fit(X, y) for model in (HCOH, HMOH))
        for one, other in (
            (hcoh.targets_, hmoh.targets_),
            (hcoh.label_set_targets_, hmoh.label_set_targets_),
        ):
            assert list(one) == list(other)
            for label in one:
                np.testing.assert_array_equal(one[label], other[label])


def test_osh_as_published_fits_all_samples_to_one_codeword():
    X, y = stream()
    for loss in ("hinge", "boost"):
        forgetful = OSH(n_bits=9, loss=loss, as_published=True, random_state=0).fit(X, y)
        one_class = OSH(n_bits=9, loss=loss, random_state=0).fit(X, np.zeros(len(X), int))
        np.testing.assert_array_equal(forgetful.weights_, one_class.weights_)


def test_osh_fits_a_sample_to_the_codeword_of_each_label():
    X = rows(0, n=2)
    y = np.array([[0, 1, 1], [1, 0, 1]])
    for as_published, word in ((False, [1, 2, 0, 2]), (True, [0, 1, 0, 1])):
        model = OSH(n_bits=9, as_published=as_published, random_state=0).fit(X, y)
        C = np.where(np.random.default_rng([model._seed, 2]).random((3, 9)) < 0.5, 1, -1)
        start = LSH(n_bits=9, random_state=0).fit(X).weights_.T
        expected = naive.fit_codewords(
            X, np.array([0, 0, 1, 1]), np.array(word), C, 0.1, False, start
        )
        np.testing.assert_allclose(model.weights_.T, expected, atol=1e-6)


def test_mihash_waits_for_a_tenth_of_its_reservoir():
    X, y = stream()
    model = MIHash(n_bits=9, reservoir=300, update_every=10, random_state=0).partial_fit(
        X[:29], y[:29]
    )
    with pytest.raises(NotFittedError, match="seen 29 of 30"):
        model.transform(X)
    assert model.partial_fit(X[29:30], y[29:30]).transform(X).shape == (80, 2)
    both = MIHash(n_bits=9, reservoir=300, feature_map=UnitLength(), warmup=40).partial_fit(
        X[:29], y[:29]
    )
    with pytest.raises(NotFittedError, match="seen 29 of 40"):
        both.transform(X)
    short = MIHash(n_bits=9, reservoir=300, update_every=10, random_state=0).fit(X[:20], y[:20])
    assert not np.allclose(short.weights_, LSH(n_bits=9, random_state=0).fit(X).weights_)


def test_a_stream_shorter_than_the_warm_up_is_learned_in_steps_as_by_fit():
    X, y = stream()
    # The first tenth of the reservoir is more than the 80 samples.
    whole, steps = (
        MIHash(n_bits=9, reservoir=900, update_every=10, random_state=0) for _ in range(2)
    )
    parts = Parts(Part(X, y), Part(X, y), Part(X[:5], y[:5]))
    training.fit(whole, parts)
    _, curve = training.fit_in_steps(steps, parts, [30, 60], "mAP", 1)
    assert curve == [None, None]
    np.testing.assert_array_equal(steps.weights_, whole.weights_)


def test_new_strings_may_be_longer():
    X, y = stream("strings")
    order = np.argsort(y, kind="stable")
    for name in SUPERVISED:
        model = SMALL[name](random_state=0)
        for part in np.array_split(order, 8):  # the width of the strings grows from call to call
            model.partial_fit(X[part], y[part].astype(f"U{max(map(len, y[part]))}"))
        whole = SMALL[name](random_state=0).partial_fit(X[order], y[order])
        np.testing.assert_array_equal(model.weights_, whole.weights_)


def test_bsodh_only_stores_its_first_batch():
    X, y = stream(n=40)
    model = BSODH(n_bits=9, batch=20, random_state=0).partial_fit(X[:39], y[:39])
    start = LSH(n_bits=9, random_state=0).fit(X).weights_
    np.testing.assert_array_equal(model.weights_, start)
    assert not np.allclose(model.partial_fit(X[39:], y[39:]).weights_, start)


# ---- the paper's settings ------------------------------------------------------------


@pytest.mark.parametrize("dataset_name", PAPER_DATASETS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_made_for_every_data_set(name, dataset_name):
    model = METHODS[name](dataset_name, 16, 0)
    assert type(model).__name__ == name and type(model) is getattr(baselines, name)
    assert model.n_bits == 16 and model.random_state == 0
    model._check_params()
    if name == "HMOH":
        expected = {"places205": (800, 10), "mnist": (300, 6)}.get(dataset_name)
        assert (
            model.feature_map and (model.feature_map.n_anchors, model.feature_map.divisor)
        ) == expected
        assert expected is None or isinstance(model.feature_map, RBF)
    else:
        assert isinstance(model.feature_map, UnitLength)
    assert (
        model.feature_map is None
        or model.feature_map is not METHODS[name](dataset_name, 16, 0).feature_map
    )


def test_settings_of_the_paper():
    assert METHODS["BSODH"]("places205", 8, 0).batch == 10_000
    assert METHODS["BSODH"]("nuswide", 8, 0).similar == 0.4
    assert METHODS["MIHash"]("nuswide", 8, 0).sharpness == 1
    assert METHODS["HCOH"]("places205", 8, 0).learning_rate == 0.1
    for model in (
        METHODS[name]("mnist", 32, 0) for name in METHODS if name != "HMOH"
    ):  # defaults are MNIST's
        assert repr(model) == repr(type(model)(32, UnitLength(), random_state=0))
    with pytest.raises(ValueError, match="no data set 'imagenet'; pass one of cifar10"):
        METHODS["LSH"]("imagenet", 8, 0)


@pytest.mark.parametrize("dataset_name", PAPER_DATASETS)
@pytest.mark.parametrize("name", BEYOND)
def test_our_own_methods_have_one_setting_and_are_not_among_the_papers(name, dataset_name):
    assert len(METHODS) == 10 and name not in METHODS
    model = BEYOND[name](dataset_name, 16, 0)
    assert type(model).__name__ == name and type(model) is getattr(baselines, name)
    assert model.n_bits == 16 and model.random_state == 0
    model._check_params()
    other = BEYOND[name]("mnist", 16, 0)
    assert repr(model) == repr(other)
    assert model.feature_map is not other.feature_map
    with pytest.raises(ValueError, match="no data set 'imagenet'"):
        BEYOND[name]("imagenet", 8)


# The parameters of the published benchmark that are not the paper's method.
AS_PUBLISHED = {
    "MIHash": {"gradient": "published"},
    "OSH": {"loss": "boost", "as_published": True},
    "SketchHash": {"as_published": True},
    "OKH": {"bandwidth": "published"},
    "HMOH": {"codebook": "ordered"},
}


@pytest.mark.parametrize("dataset_name", PAPER_DATASETS)
@pytest.mark.parametrize("name", METHODS)
def test_methods_as_published_differ_only_in_the_faults(name, dataset_name):
    described = METHODS[name](dataset_name, 16, 3)
    published = METHODS_AS_PUBLISHED[name](dataset_name, 16, 3)
    assert type(published) is type(described)
    changes = AS_PUBLISHED.get(name, {})
    expected = described.get_params() | changes
    # Two maps of the same kind are compared by their text.
    assert repr(published.get_params()) == repr(expected)
    assert all(described.get_params()[key] != changes[key] for key in changes)


def test_every_fault_of_the_published_code_is_cited_by_file_and_line():
    assert list(METHODS_AS_PUBLISHED) == list(METHODS)
    assert set(PUBLISHED_FAULTS) == set(AS_PUBLISHED)
    for name, sentence in PUBLISHED_FAULTS.items():
        cited = r"\((fcakir/mihash|lmbxmu/mycode), \S+/" + name + r"\.m, lines? \d+"
        assert re.search(cited, sentence), sentence
    with pytest.raises(ValueError, match="no data set 'imagenet'"):
        METHODS_AS_PUBLISHED["OSH"]("imagenet", 8)


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow without the JIT")
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("LSH", 0.22, 0.3),
        ("HCOH", 0.73, 0.79),
        ("OSH", 0.68, 0.77),
        ("MIHash", 0.76, 0.82),
        ("BSODH", 0.67, 0.75),
    ],
)
def test_mnist_at_32_bits(name, least, most):
    from study.datasets import load, split

    mnist = load("mnist")
    X = mnist.features
    y = mnist.labels
    parts = split(mnist, seed=0)
    model = METHODS[name]("mnist", 32, 0).fit(X[parts.stream], y[parts.stream])
    queries = model.transform(X[parts.queries])
    database = model.transform(X[parts.database])
    assert (
        least
        < mean_average_precision(queries, database, y[parts.queries], y[parts.database])
        < most
    )
