"""HadamardRidge: its definition, blocks, forgetting, models from models, files and threads."""

import copy
import itertools
import pickle
import threading
import time

import naive
import numpy as np
import pytest
from helpers import STRINGS, Affine, assert_helpful, either_stream, multi_stream, plain, stream
from numpy.testing import assert_allclose, assert_array_equal

import ridge
from hmoh import HMOH, NotFittedError
from kernels import RBF, UnitLength
from ridge import HadamardRidge

X1, Y1 = stream(seed=1)


@pytest.fixture
def block_of_16(monkeypatch):
    set_block(monkeypatch, 16)


def set_block(patch, size):
    patch.setattr(ridge, "BLOCK", size)
    patch.setattr(HadamardRidge, "_update_size", size)


def targets_of(model, y):
    """Return the target code of every sample."""
    if y.ndim == 1:
        return np.array([model.targets_[label] for label in y.tolist()])
    sets = [tuple(np.flatnonzero(row).tolist()) for row in y]
    return np.array([model.label_set_targets_[labels] for labels in sets])


def assert_near(a, b, X, rtol=1e-5):
    """Check that the weights of two models are near, and nearly all bits equal."""
    expected = b.weights_
    assert_allclose(a.weights_, expected, rtol=0, atol=rtol * abs(expected).max())
    bits = [np.unpackbits(model.transform(X), axis=1) for model in (a, b)]
    assert (bits[0] == bits[1]).mean() >= 0.999


def assert_equal_models(a, b, X):
    assert (a.n_seen_, a.n_learned_) == (b.n_seen_, b.n_learned_)
    assert plain(a.targets_) == plain(b.targets_)
    assert_array_equal(a.weights_, b.weights_, strict=True)
    assert_array_equal(a.transform(X), b.transform(X))


# ---- the solution --------------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("strength", [1e-8, 1e-3, 0.3, 100])
def test_gradient_of_the_loss_is_zero(strength, multi):
    X, y = either_stream(multi)
    model = HadamardRidge(9, ridge=strength, random_state=0).fit(X, y)
    Z = X.astype(np.float64)
    W = model.weights_.astype(np.float64)
    penalty = strength * np.square(Z).sum() / Z.shape[1]
    gradient = Z.T @ (Z @ W - targets_of(model, y)) + penalty * W
    assert abs(gradient).max() < 1e-6 * max(np.square(Z).sum(), penalty)
    assert_allclose(model.decision_function(X), Z @ W, atol=1e-5)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("memory", [None, 1, 2, 7, 16, 25, 60, 10**6])
def test_agrees_with_naive_after_every_block(memory, multi, block_of_16):
    X, y = either_stream(multi)
    model = HadamardRidge(5, ridge=0.1, memory=memory, random_state=0)
    for start, stop in itertools.pairwise([0, 1, 3, 15, 16, 17, 33, 60]):
        model.partial_fit(X[start:stop], y[start:stop])
        n = stop if stop < 16 else stop - stop % 16  # the first block counts from its start on
        assert (model.n_seen_, model.n_learned_) == (stop, n)
        expected = naive.hadamard_ridge(X[:n], targets_of(model, y[:n]), 0.1, memory)
        assert_allclose(model.weights_, expected, rtol=1e-5, atol=1e-6 * abs(expected).max())
    expected = naive.hadamard_ridge(X, targets_of(model.close(), y), 0.1, memory)
    assert_allclose(model.weights_, expected, rtol=1e-5, atol=1e-6 * abs(expected).max())
    assert model.n_learned_ == 60


def test_codes_depend_neither_on_the_scale_nor_on_the_order_nor_on_a_repetition():
    X, y = stream()
    model = HadamardRidge(16, random_state=0).fit(X, y)
    # A power of two changes no rounding.
    scaled = HadamardRidge(16, random_state=0).fit(2.0**20 * X, y)
    assert_array_equal(2.0**20 * scaled.weights_, model.weights_)
    extreme = HadamardRidge(16, random_state=0).fit(1e-20 * X, y)
    assert_allclose(extreme.decision_function(1e-20 * X), model.decision_function(X), atol=1e-4)
    order = np.tile(np.argsort(y, kind="stable"), 2)
    other = HadamardRidge(16, random_state=0).fit(X[order], y[order])
    assert_near(other, model, X, rtol=1e-6)


def test_features_that_are_zero_give_weights_that_are_zero():
    X, y = stream()
    model = HadamardRidge(8, random_state=0).fit(0 * X, y)
    assert not model.weights_.any() and not model.transform(X).any()
    X[:, 2] = 0
    assert not model.fit(X, y).weights_[2].any()


def test_targets_are_those_of_hmoh():
    for X, y in (stream(), multi_stream()):
        ours = HadamardRidge(9, codebook="spread", random_state=3).fit(X, y)
        theirs = HMOH(9, codebook="spread", random_state=3).fit(X, y)
        assert plain(ours.targets_) == plain(theirs.targets_)
        assert plain(ours.label_set_targets_) == plain(theirs.label_set_targets_)


# ---- a learned codebook --------------------------------------------------------------


def sets_stream(n=400, n_labels=5, seed=0):
    """Return samples whose features are sums of prototypes of their labels, with noise."""
    rng = np.random.default_rng(seed)
    y = (rng.random((n, n_labels)) < 0.35).astype(np.uint8)
    y[~y.any(axis=1), 0] = 1
    X = y @ rng.normal(size=(n_labels, 12)) + 0.3 * rng.normal(size=(n, 12))
    return X.astype(np.float32), y


def learned(X, y, n_bits=16, **params):
    return HadamardRidge(n_bits, codebook="learned", random_state=0, **params).fit(X, y)


def loss_of(targets, X, y):
    """Return the loss of a learned codebook as its docstring has it, by a sum over pairs."""
    sums = {
        key: X[(y == np.isin(np.arange(y.shape[1]), key)).all(axis=1)].sum(0) for key in targets
    }
    size = {key: np.linalg.norm(sums[key].astype(np.float64)) for key in targets}
    total = 0.0
    for k, l in itertools.permutations(targets, 2):
        common = len({*k} & {*l})
        cos = common / np.sqrt(len(k) * len(l)) if common else 0.0
        product = targets[k].astype(float) @ targets[l] / len(targets[k])
        total += size[k] * size[l] * (product - 1.5 * cos + 0.5) ** 2
    return total / sum(size.values()) ** 2


def test_no_flip_of_a_bit_improves_a_learned_codebook():
    X, y = sets_stream()
    model = learned(X, y)
    targets = model.label_set_targets_
    loss = loss_of(targets, X, y)
    assert loss < 0.7 * loss_of(model.recoded(codebook="random").label_set_targets_, X, y)
    for key, bit in itertools.product(targets, range(16)):
        targets[key][bit] *= -1
        assert loss_of(targets, X, y) > loss - 1e-6
        targets[key][bit] *= -1
    # A column has the target of the set of this label alone.
    assert all((model.targets_[j] == targets[j,]).all() for j in range(5))


def test_a_learned_codebook_depends_on_neither_order_nor_cuts_and_survives_merge_and_file(tmp_path):
    X, y = sets_stream()
    model = learned(X, y)
    parts = [HadamardRidge(16, codebook="learned", random_state=0) for _ in range(2)]
    first, second = (part.partial_fit(X[i::2], y[i::2]) for i, part in enumerate(parts))
    model.save(tmp_path / "model.npz")
    half = learned(X[:150], y[:150])
    assert half.targets_ and half.weights_.any()  # which changes nothing later
    others = {
        "order": learned(X[::-1], y[::-1]),
        "merged": first.merge(second),
        "file": HadamardRidge.load(tmp_path / "model.npz"),
        "recoded": HadamardRidge(8, random_state=0)
        .fit(X, y)
        .recoded(n_bits=16, codebook="learned"),
        "later": half.partial_fit(X[150:], y[150:]).close(),
    }
    for other in others.values():
        assert plain(other.label_set_targets_) == plain(model.label_set_targets_)
        assert_near(other, model, X)


def test_a_learned_codebook_keeps_sets_and_single_labels_apart():
    X, y = sets_stream()
    codes = learned(X, y, 32).label_set_targets_
    near = [codes[k] @ codes[l] for k, l in itertools.combinations(codes, 2) if {*k} & {*l}]
    far = [codes[k] @ codes[l] for k, l in itertools.combinations(codes, 2) if not {*k} & {*l}]
    assert np.mean(near) > np.mean(far) + 8
    X, y = stream()
    model = learned(X, y, 8)
    C = np.stack([*model.targets_.values()]).astype(int)
    assert (C @ C.T - 8 * np.eye(len(C)) <= 0).all() and model.label_set_targets_ == {}


# ---- class scores --------------------------------------------------------------------


def one_hot(model, y):
    if y.ndim == 2:
        return y.astype(np.float64)
    return (y[:, None] == model.classes_).astype(np.float64)


def one_hot_ridge(Z, T, a=1.0, ridge=1e-3):
    """Return the weights of a weighted ridge regression, solved as least squares by numpy."""
    a = np.broadcast_to(a, len(Z)).astype(np.float64)
    Z = Z.astype(np.float64)
    penalty = ridge * (a[:, None] * Z**2).sum() / Z.shape[1]
    rows = np.concatenate([np.sqrt(a)[:, None] * Z, np.sqrt(penalty) * np.eye(Z.shape[1])])
    targets = np.concatenate([np.sqrt(a)[:, None] * T, np.zeros((Z.shape[1], T.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]


@pytest.mark.parametrize("maps", [None, [UnitLength(), RBF(12)]])
@pytest.mark.parametrize("multi", [False, True])
def test_class_scores_are_a_one_hot_ridge_regression(multi, maps, block_of_16):
    X, y = either_stream(multi)
    model = HadamardRidge(9, feature_map=maps, warmup=20, random_state=0)
    for start, stop in itertools.pairwise([0, 20, 33, 60]):  # the rest of a block waits
        model.partial_fit(X[start:stop], y[start:stop])
        n = model.n_learned_
        Z = X
        for part in model.feature_map_ if maps else []:
            Z = part.transform(Z)
        expected = Z @ one_hot_ridge(Z[:n], one_hot(model, y[:n]))
        scores = model.class_scores(X)
        assert scores.dtype == np.float32 and scores.shape == (60, len(model.classes_))
        assert_allclose(scores, expected, atol=2e-5)


@pytest.mark.parametrize("multi", [False, True])
def test_class_scores_follow_weights_merges_files_and_other_codes(multi, tmp_path):
    X, y = either_stream(multi, n=200)
    a = np.random.default_rng(0).integers(0, 4, 200).astype(float)
    known = None if multi else np.unique(y)
    first = HadamardRidge(9, random_state=0)
    first.partial_fit(X[:90], y[:90], classes=known, sample_weight=a[:90]).close()
    second = first.blank().partial_fit(X[90:], y[90:], sample_weight=a[90:])
    second.class_scores(X)  # a solution that the merged model must not keep
    first.class_scores(X)
    first.merge(second)
    expected = X @ one_hot_ridge(X, one_hot(first, y), a)
    assert_allclose(first.class_scores(X), expected, atol=2e-5)
    first.save(tmp_path / "model.npz")
    loaded = HadamardRidge.load(tmp_path / "model.npz")
    assert_array_equal(loaded.class_scores(X), first.class_scores(X), strict=True)
    assert_array_equal(loaded.classes_, first.classes_, strict=True)
    # The code length does not matter.
    assert_array_equal(first.recoded(n_bits=33).class_scores(X), first.class_scores(X))
    stronger = X @ one_hot_ridge(X, one_hot(first, y), a, ridge=0.5)
    assert_allclose(first.recoded(ridge=0.5).class_scores(X), stronger, atol=2e-5)


@pytest.mark.parametrize("multi", [False, True])
def test_class_scores_of_balanced_classes_and_of_a_memory(multi, block_of_16):
    X, y = either_stream(multi)
    model = HadamardRidge(9, class_weight="balanced", random_state=0).fit(X, y)
    labels = y if multi else np.searchsorted(model.classes_, y)
    counts, weights = np.zeros(len(model.classes_)), []
    for row in labels:
        own = np.flatnonzero(row) if multi else [row]
        counts[own] += 1
        balance = counts.sum() / np.count_nonzero(counts) / counts[own]
        weights.append(np.minimum(10, balance).mean())
    expected = X @ one_hot_ridge(X, one_hot(model, y), np.array(weights))
    assert_allclose(model.class_scores(X), expected, atol=2e-5)
    model = HadamardRidge(9, memory=20, random_state=0).fit(X, y)
    ages = 60 - np.maximum(np.arange(1, 61), 20)
    expected = X @ one_hot_ridge(X, one_hot(model, y), (1 - 1 / 20.0) ** ages)
    assert_allclose(model.class_scores(X), expected, atol=2e-5)


def test_classes_are_the_labels_in_the_order_of_the_columns():
    X, y = stream(400, n_labels=4)
    model = HadamardRidge(16, random_state=0).partial_fit(X[:50], STRINGS[y[:50] % 3])
    model.close()
    assert sorted(model.classes_) == sorted(STRINGS[:3].tolist())
    model.partial_fit(X[50:], STRINGS[y[50:]]).close()
    assert model.classes_[3] == STRINGS[3] and list(model.targets_) == model.classes_.tolist()
    likely = model.classes_[model.class_scores(X).argmax(axis=1)]
    assert (likely == STRINGS[y]).mean() > 0.6
    # A label that was announced and has not come yet scores 0.
    waiting = HadamardRidge(16, random_state=0)
    waiting.partial_fit(X[:50], y[:50] % 3, classes=[0, 1, 2, 3])
    scores = waiting.class_scores(X[:5])
    assert waiting.classes_.tolist() == [0, 1, 2, 3] and not scores[:, 3].any()


def test_class_scores_of_a_model_that_has_learned_nothing_are_refused():
    X, y = stream()
    with pytest.raises(NotFittedError):
        HadamardRidge().class_scores(X)
    model = HadamardRidge(random_state=0).fit(X, y)
    with pytest.raises(NotFittedError) as caught:
        model.blank().class_scores(X)
    assert_helpful(caught.value, "no sample", "pass")
    with pytest.raises(ValueError):
        model.class_scores(X[:, :3])


# ---- blocks --------------------------------------------------------------------------


# ---- models from models --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "strings", "sets"])
def test_seven_shards_merged_equal_one_stream(kind, tmp_path):
    X, y = multi_stream(3000, 12) if kind == "sets" else stream(3000, 12)
    y = STRINGS[y] if kind == "strings" else y
    classes = None if kind == "sets" else np.unique(y)
    whole = HadamardRidge(32, random_state=0).partial_fit(X, y, classes).close()
    merged = None
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        shard = HadamardRidge(32, random_state=0).partial_fit(X[rows], y[rows], classes)
        shard.transform(X[:1])  # a solution that is kept must not outlive the merge
        with pytest.raises(NotFittedError, match="no sample"):
            shard.blank().transform(X)
        merged = shard if merged is None else merged.merge(shard)
    assert merged.n_seen_ == merged.n_learned_ == 3000
    assert plain(merged.targets_) == plain(whole.targets_)
    assert plain(merged.label_set_targets_) == plain(whole.label_set_targets_)
    assert_near(merged, whole, X)
    merged.save(tmp_path / "merged.npz")
    for model in (merged, HadamardRidge.load(tmp_path / "merged.npz"), whole):
        model.partial_fit(X[:1024] + 1, y[:1024])
        assert_near(model, merged, X)


def test_labels_that_one_model_alone_knows_are_taken_if_they_came_last():
    X, y = stream(200, n_labels=12)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    few = HadamardRidge(5, random_state=0).partial_fit(X[:40], y[:40])
    more = HadamardRidge(5, random_state=0).partial_fit(X, y)
    expected = HadamardRidge(5, random_state=0).partial_fit(X, y).partial_fit(X[:40], y[:40])
    before = pickle.dumps(more)
    for merged in (copy.copy(few).merge(more), copy.deepcopy(more).merge(few)):
        assert plain(merged.targets_) == plain(expected.targets_)
        assert_near(merged, expected.close(), X)
    assert pickle.dumps(more) == before  # the other model is not changed
    assert_near(more.merge(more), HadamardRidge(5, random_state=0).partial_fit(X, y), X)


def pair(ours=None, theirs=None, maps=(None, None), streams=None, classes=(None, None)):
    """Return two models with other parameters, maps, streams or classes."""
    models = []
    for params, part, (X, y), known in zip(
        (ours, theirs), maps, streams or [(X1, Y1)] * 2, classes, strict=True
    ):
        params = {"n_bits": 8, "warmup": 20, "random_state": 0} | (params or {})
        models.append(HadamardRidge(feature_map=part, **params).partial_fit(X, y, known))
    return models


NOT_MERGEABLE = {
    "memory": lambda: (pair(*[{"memory": 9}] * 2), "memory"),
    "bits": lambda: (pair({"n_bits": 16}), "'n_bits': 16"),
    "ridge": lambda: (pair({"ridge": 0.5}), "'ridge': 0.5"),
    "codebook": lambda: (pair({"codebook": "spread"}), "spread"),
    "number of classes": lambda: (pair({"n_classes": 4}), "n_classes"),
    "seed": lambda: (pair({"random_state": 1}), "random_state"),
    "no seed": lambda: (pair(*[{"random_state": None}] * 2), "random_state"),
    "order": lambda: (pair(streams=[(X1, Y1), (X1[::-1], Y1[::-1])]), "classes"),
    "classes in one": lambda: (pair(classes=(None, np.arange(4))), "classes"),
    "strings": lambda: (pair(streams=[(X1, Y1), (X1, STRINGS[Y1])]), "form"),
    "columns": lambda: (pair(streams=[multi_stream(), multi_stream(n_labels=5)]), "form"),
    "width": lambda: (pair(streams=[(X1, Y1), (X1[:, 1:], Y1)]), "features"),
    "maps on other samples": lambda: (
        pair(maps=(RBF(8), RBF(8)), streams=[(X1, Y1), (X1[5:], Y1[5:])]),
        "blank()",
    ),
    "a map in one": lambda: (pair(maps=(None, UnitLength())), "features"),
    "maps without get_state": lambda: (
        pair(maps=(Affine(), Affine()), streams=[(X1, Y1), (X1 + 1, Y1)]),
        "blank()",
    ),
}


@pytest.mark.parametrize("case", NOT_MERGEABLE)
def test_models_that_cannot_be_merged_are_refused_with_the_reason(case):
    (ours, theirs), word = NOT_MERGEABLE[case]()
    before = [pickle.dumps(model) for model in (ours, theirs)]
    with pytest.raises(ValueError) as caught:
        ours.merge(theirs)
    assert_helpful(caught.value, word)
    assert [pickle.dumps(model) for model in (ours, theirs)] == before


def test_only_a_fitted_model_of_this_kind_is_merged():
    ours, _ = pair()
    with pytest.raises(TypeError) as caught:
        ours.merge(HMOH(8).fit(X1, Y1))
    assert_helpful(caught.value, "HMOH")
    for other in (HadamardRidge(8), HadamardRidge(8, RBF(90)).partial_fit(X1, Y1)):
        with pytest.raises(NotFittedError):
            ours.merge(other)
        with pytest.raises(NotFittedError):
            other.merge(ours)


def test_equal_maps_of_any_kind_are_merged():
    for make in (UnitLength, lambda: RBF(8), lambda: [Affine(), RBF(8)]):
        ours, theirs = pair(maps=(make(), make()))
        expected = ours.weights_
        assert_allclose(ours.merge(theirs).weights_, expected, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize("kind", ["labels", "known", "sets", "maps"])
def test_recoded_models_are_those_of_the_same_stream(kind, block_of_16):
    X, y = multi_stream() if kind == "sets" else stream(n_labels=6)
    classes = np.arange(6) if kind == "known" else None
    common = {"feature_map": UnitLength() if kind == "maps" else None}
    common |= {"memory": 40, "warmup": 20, "random_state": 3}
    model = HadamardRidge(8, **common).partial_fit(X, y, classes)
    before = pickle.dumps(model)
    ways = [{"n_bits": 3}, {"n_bits": 5, "codebook": "spread"}, {"ridge": 0.5}, {}]
    for params in [*ways, {"codebook": "learned"}]:
        expected = HadamardRidge(**{"n_bits": 8} | params, **common).partial_fit(X, y, classes)
        recoded = model.recoded(**params)
        assert_equal_models(expected, recoded, X)
        for one in (expected, recoded):
            one.partial_fit(X[:20] + 1, y[::-1][:20])
        assert_equal_models(expected, recoded, X)
    for params in ({"n_bits": 0}, {"ridge": 0}, {"codebook": "best"}, {"memory": 3}):
        with pytest.raises(ValueError) as caught:
            model.recoded(**params)
        assert_helpful(caught.value, *params)
    assert pickle.dumps(model) == before


# ---- files, threads, input -----------------------------------------------------------


def test_others_encode_while_one_learns(block_of_16):
    """Every answer is that of a whole block, and earlier blocks are never seen after later ones."""
    X, y = stream(800, 8)
    model = HadamardRidge(16, random_state=0).partial_fit(X[:16], y[:16], np.arange(4))
    allowed = {}
    twin = copy.deepcopy(model)
    for n in range(16, 801, 16):
        allowed[twin.decision_function(X[:3]).tobytes()] = n
        twin.partial_fit(X[n : n + 16], y[n : n + 16]) if n < 800 else None
    found = []
    done = threading.Event()

    def encode():
        while not done.is_set():
            found.append(model.decision_function(X[:3]).tobytes())

    reader = threading.Thread(target=encode)
    reader.start()
    for i in range(16, 800):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        n_found = len(found)
        while i % 16 == 0 and len(found) == n_found and reader.is_alive():
            time.sleep(0)  # until the other thread has had its turn
    done.set()
    reader.join()
    seen = [allowed[answer] for answer in found]
    assert seen == sorted(seen) and len(seen) >= 49


# ---- numbers -------------------------------------------------------------------------
