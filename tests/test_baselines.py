"""What all methods of baselines/ promise, the three readings, and HCOH, OSH, MIHash and BSODH.

test_pairwise.py has OKH and AdaptHash, test_sketching.py has SketchHash and FROSH.
"""

import itertools
import json
import re
import tracemalloc
from dataclasses import replace

import naive
import numpy as np
import pytest
from helpers import JIT_IS_OFF, assert_helpful, contents, damages, outcome, write
from numpy.testing import assert_allclose, assert_array_equal

import baselines
from baselines import (
    BSODH,
    FOH,
    FROSH,
    HCOH,
    LEMON,
    LSH,
    METHODS,
    METHODS_AS_PUBLISHED,
    OASIS,
    OKH,
    OSH,
    PAPER_DATASETS,
    PUBLISHED_FAULTS,
    AdaptHash,
    MIHash,
    PublishedHMOH,
    SketchHash,
    bsodh,
    mihash,
    named,
)
from baselines.linear import share_label
from hmoh import HMOH, NotFittedError, hadamard
from kernels import RBF, UnitLength
from ridge import HadamardRidge
from study.datasets import load, split
from study.features import prepare

SMALL = {
    "LSH": (LSH, {}),
    "OKH": (OKH, {"n_anchors": 12, "aggressiveness": 0.05}),
    "OKH as published": (OKH, {"n_anchors": 12, "bandwidth": "published"}),
    "SketchHash": (SketchHash, {"n_bits": 5, "sketch_size": 16, "sketch_batch": 12}),
    "SketchHash as published": (SketchHash, {"n_bits": 5, "as_published": True}),
    "FROSH": (FROSH, {"n_bits": 5, "sketch_size": 16, "block": 24}),
    "AdaptHash": (AdaptHash, {}),
    "OSH": (OSH, {}),
    "OSH hinge": (OSH, {"loss": "hinge"}),
    "OSH as published": (OSH, {"as_published": True}),
    "MIHash": (MIHash, {"reservoir": 20, "update_every": 7}),
    "BSODH": (BSODH, {"batch": 16}),
    "BSODH as published": (BSODH, {"batch": 16, "order": "published"}),
    "HCOH": (HCOH, {}),
    "HMOH": (HMOH, {}),
    "LEMON": (LEMON, {"chunk": 16}),
    "OASIS": (OASIS, {"chunk": 16}),
    "FOH": (FOH, {"batch": 16}),
    "HadamardRidge": (HadamardRidge, {}),
}
SUPERVISED = [name for name, (method, _) in SMALL.items() if method.needs_labels]
SEED = int(np.random.default_rng(0).integers(2**63))  # what a model draws from random_state=0

methods = pytest.mark.parametrize("name", SMALL)
label_forms = pytest.mark.parametrize("labels", ["integers", "strings", "sets"])


def make(name, **more):
    """Return a small model: 9 bits, 5 for sketches."""
    method, params = SMALL[name]
    return method(**{"n_bits": 9, "random_state": 0} | params | more)


def stream(labels="integers", n=80, seed=0):
    """Return noisy clusters in six dimensions; of several labels, each adds its own direction."""
    rng = np.random.default_rng(seed)
    if labels == "sets":
        y = rng.random((n, 4)) < 0.4
        y[np.arange(n), rng.integers(4, size=n)] = True
        return (y @ np.eye(4, 6) + 0.2 * rng.normal(size=(n, 6))).astype(np.float32), y.astype(int)
    y = rng.integers(4, size=n)
    X = (np.eye(4, 6)[y] - 0.2 + 0.2 * rng.normal(size=(n, 6))).astype(np.float32)
    return X, y if labels == "integers" else np.array(["a", "bb", "ccc", "dddd"])[y]


def hyperplanes(m, n_bits=9):
    """Return the W (m, n_bits) that a model with random_state=0 starts from."""
    return LSH(n_bits, random_state=0).fit(np.zeros((1, m))).weights_.astype(float)


# ---- what all methods promise --------------------------------------------------------------------


def refused_within(path, model, peak, maps=lambda: None):
    """Return whether a file is refused, and check that this took at most `peak` bytes."""
    tracemalloc.start()
    try:
        type(model).load(path, maps())
    except ValueError as error:
        assert_helpful(error, str(path), "pass a file")
        return True
    finally:
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found < peak
    return False


@pytest.mark.parametrize("has_map", [False, True])
@methods
def test_a_small_file_cannot_ask_for_much_memory(name, has_map, tmp_path):
    X, y = stream()
    maps = UnitLength if has_map else lambda: None
    model = make(name, feature_map=maps(), warmup=25).partial_fit(X, y)
    model.save(tmp_path / "m.npz")
    arrays = contents(model)
    assert not refused_within(tmp_path / "m.npz", model, 4e6, maps)
    n = 3_000_000
    for wrong in (
        {"n_features": n},
        {"n_bits": n},
        {"n_anchors": n},
        {"reservoir": n},
        {"form": ["u", n]},
    ):
        head = json.loads(arrays["head"].item())
        for field, value in wrong.items():
            part = head if field in head else head["params"]
            is_absent = part.get(field) is None
            part[field] = value
        if not is_absent:
            write(tmp_path / "m.npz", arrays | {"head": np.array(json.dumps(head))})
            is_refused = refused_within(tmp_path / "m.npz", model, 4e6, maps)
            assert is_refused or wrong == {"form": ["u", n]}, wrong


@pytest.mark.parametrize("name", SUPERVISED)
def test_labels_of_an_unknown_form_are_refused(name, tmp_path):
    X, y = stream("strings")
    model = make(name).fit(X, y)
    arrays = contents(model)
    head = json.loads(arrays["head"].item())
    unknown = [{"form": form} for form in (["a", "b"], ["U"], ["u", 1], ["u", 2.5], ["i", 3])]
    unknown += [{"classes": classes} for classes in ([], [1, 2], [["a", "b"]], [None], {"a": 1})]
    for wrong in unknown:
        write(tmp_path / "m.npz", arrays | {"head": np.array(json.dumps(head | wrong))})
        assert refused_within(tmp_path / "m.npz", model, 4e6), wrong
    if "model/labels" in arrays:
        labels = arrays["model/labels"]
        codes = np.full((labels.size, labels.itemsize // 4), 0x110000, np.uint32)
        no_text = codes.view(labels.dtype).reshape(labels.shape)
        write(tmp_path / "m.npz", arrays | {"model/labels": no_text})
        assert refused_within(tmp_path / "m.npz", model, 4e6)


@pytest.mark.skipif(JIT_IS_OFF, reason="there is no compiled loop to crash")
@pytest.mark.filterwarnings("ignore")  # of overflow
@pytest.mark.parametrize("labels", ["integers", "sets"])
@methods
def test_a_damaged_file_is_refused_or_does_no_harm(name, labels, tmp_path):
    X, y = stream(labels)
    model = make(name).partial_fit(X[:75], y[:75])
    arrays = contents(model)
    n_refused = 0
    for key in [key for key in arrays if key.startswith("model/")]:
        for _, array in damages(arrays[key]):
            write(tmp_path / "bad.npz", arrays | {key: array})
            n_refused += outcome(tmp_path / "bad.npz", model, X, y, lambda: None) == "refused"
    assert n_refused > 5


@methods
def test_random_state_decides(name):
    X, y = stream()
    seeds = (0, 0, 1, None, None)
    one, same, *others = (make(name, random_state=s).fit(X, y).weights_ for s in seeds)
    assert_array_equal(one, same)
    assert len({weights.tobytes() for weights in (one, *others)}) == 4


@methods
def test_only_supervised_methods_need_labels(name):
    X, y = stream()
    assert make(name).__sklearn_tags__().target_tags.required == (name in SUPERVISED)
    if name in SUPERVISED:
        for call in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match="y is None"):
                getattr(make(name), call)(X)
        return
    expected = make(name).fit(X).weights_
    for labels in (y, np.full(80, "a"), np.eye(80, dtype=int)):
        assert_array_equal(make(name).fit(X, labels).weights_, expected)


REFUSED = {
    LSH: {"n_bits": 0, "warmup": 0, "random_state": -1},
    OKH: {"aggressiveness": -1.0, "alpha": 1.5, "n_anchors": 0, "bandwidth": "median"},
    SketchHash: {"n_bits": 2.5, "sketch_size": 1, "sketch_batch": 0, "as_published": "no"},
    FROSH: {"n_bits": 0, "sketch_size": None, "block": 2.5},
    AdaptHash: {"alpha": np.nan, "ortho": "0.1", "learning_rate": np.inf},
    OSH: {"learning_rate": 0, "loss": "log", "as_published": None},
    MIHash: {"reservoir": 0, "n_bins": 0, "sharpness": 0, "threshold": np.nan}
    | {"learning_rate": "1", "update_every": 1.5, "gradient": "exact"},
    BSODH: {"batch": 0, "ridge": 0, "fit_weight": -1, "similar": -1, "dissimilar": "0"}
    | {"order": "WEB"},
    HCOH: {"learning_rate": True, "codebook": "best", "n_classes": 2},
    LEMON: {"chunk": 0, "similarity": 0, "embedding": np.inf, "embedding_ridge": -1, "ridge": 0},
    OASIS: {"chunk": 2.5, "similarity": "1", "embedding": 0, "embedding_ridge": 0, "ridge": np.nan}
    | {"fit_weight": 0},
    FOH: {"batch": 0, "ridge": 0, "fit_weight": -1, "similar": -1, "dissimilar": "0"}
    | {"new_weight": 0, "old_weight": np.inf, "label_ridge": 0},
    HadamardRidge: {"ridge": 0, "memory": 1.5, "class_weight": "rare"},
}


@pytest.mark.parametrize("method", REFUSED)
def test_parameters_out_of_range_are_refused_with_a_way_out(method):
    X, y = stream()
    for name, value in REFUSED[method].items():
        model = method(**{name: value})
        with pytest.raises((ValueError, TypeError)) as caught:
            model.fit(X, y)
        assert_helpful(caught.value, f"{name}={value!r}")
        assert not hasattr(model, "n_seen_")


# ---- the paper's settings ------------------------------------------------------------------------


@pytest.mark.parametrize("dataset_name", [*PAPER_DATASETS, None])
@pytest.mark.parametrize("name", named("paper"))
def test_every_method_is_made_for_every_data_set(name, dataset_name):
    model = METHODS[name](dataset_name, 16, 0)
    assert type(model) is getattr(baselines, name)
    assert model.n_bits == 16 and model.random_state == 0
    model._check_params()
    expected = UnitLength(1000)
    if name == "HMOH":
        of_set = {"places205": RBF(800, 10.0), "mnist": RBF(300, 6.0), None: RBF(300, 6.0)}
        expected = of_set.get(dataset_name)
    elif dataset_name in ("mnist", None):  # the defaults are those of MNIST
        assert repr(model) == repr(type(model)(16, expected, random_state=0))
    assert repr(model.feature_map) == repr(expected)
    # Two models do not share a map.
    other = METHODS[name](dataset_name, 16, 0).feature_map
    assert other is None or other is not model.feature_map


def test_the_ten_methods_of_the_paper_and_others_are_told_apart_by_origin():
    ten = ["LSH", "OKH", "SketchHash", "FROSH", "AdaptHash", "OSH", "MIHash", "BSODH", "HCOH"]
    assert named("paper") == [*ten, "HMOH"]
    assert named("later") == ["LEMON", "OASIS", "FOH"]
    assert named("ours") == ["HadamardRidge"]
    assert all(method.name == name for name, method in METHODS.items())
    with pytest.raises(ValueError, match=r"origin='papers' is unknown; pass one of paper, later"):
        named("papers")


def test_settings_of_the_paper():
    assert METHODS["BSODH"]("places205", 8, 0).batch == 10_000
    assert METHODS["BSODH"]("nuswide", 8, 0).similar == 0.4
    assert METHODS["MIHash"]("nuswide", 8, 0).sharpness == 1
    assert METHODS["HCOH"]("places205", 8, 0).learning_rate == 0.1
    assert METHODS["OKH"]("places205", 8, 0).aggressiveness == 0.0001
    for make_model in (METHODS["LSH"], METHODS_AS_PUBLISHED["OSH"]):
        with pytest.raises(ValueError, match="imagenet") as caught:
            make_model("imagenet", 8, 0)
        assert_helpful(caught.value, "cifar10")


# The parameters with which MNIST's models as published differ from those as described.
AS_PUBLISHED = {
    "AdaptHash": {},
    "BSODH": {"order": "published", "ridge": 0.3, "fit_weight": 0.5},
    "HCOH": {},
    "HMOH": {"codebook": "ordered"},
    "MIHash": {"gradient": "published"},
    "OSH": {"as_published": True},
    "SketchHash": {"as_published": True},
}


@pytest.mark.parametrize("name", AS_PUBLISHED)
def test_methods_as_published_differ_only_in_the_faults(name):
    described, published = (
        {k: repr(v) for k, v in methods[name]("mnist", 16, 3).get_params(deep=False).items()}
        for methods in (METHODS, METHODS_AS_PUBLISHED)
    )
    changes = {k: repr(v) for k, v in AS_PUBLISHED[name].items()}
    assert published == described | changes
    assert all(described[key] != value for key, value in changes.items())


def test_every_method_has_a_published_reading_or_the_reason_why_not():
    assert set(METHODS_AS_PUBLISHED) == set(PUBLISHED_FAULTS) == set(AS_PUBLISHED)
    reasons = {name for name, method in METHODS.items() if isinstance(method.published, str)}
    assert reasons == set(METHODS) - set(METHODS_AS_PUBLISHED)
    for name, sentence in PUBLISHED_FAULTS.items():
        has_own_fault = name not in ("AdaptHash", "HCOH")
        file = name if has_own_fault else r"\+Datasets/\w+"
        cited = r"\((fcakir/mihash|lmbxmu/mycode), \S+/" + file + r"\.m, lines? \d+"
        assert re.search(cited, sentence), sentence
    # The program swaps the values of two data sets.
    places, mnist = (METHODS_AS_PUBLISHED["BSODH"](name, 8) for name in ("places205", "mnist"))
    assert (places.ridge, places.fit_weight) == (0.9, 0.8)
    assert (mnist.ridge, mnist.fit_weight) == (0.3, 0.5)


@pytest.mark.parametrize("n_bits", [16, 12])  # as they are, and aligned
def test_label_sets_get_the_published_targets(n_bits, tmp_path):
    sets = [s for n in (1, 2, 3, 4) for s in itertools.combinations(range(10), n)]
    y = np.array([[label in s for label in range(10)] for s in sets]).astype(int)
    X = np.zeros((len(sets), 2))
    model = PublishedHMOH(n_bits, random_state=0).partial_fit(X[:5], y[:5])
    model.save(tmp_path / "model.npz")
    model = PublishedHMOH.load(tmp_path / "model.npz").partial_fit(X, y)
    targets = model.label_set_targets_
    H = hadamard(16).tolist()
    whole = {s: naive.published_target([H[label] for label in s]) for s in sets}
    lsh = np.eye(16) if n_bits == 16 else model._fitted().book._lsh
    for s in sets:
        assert_array_equal(targets[s], naive.sign(whole[s] @ lsh))
    pairs = [targets[s].tobytes() for s in itertools.combinations(range(10), 2)]
    assert max(map(pairs.count, pairs)) == 36


def test_as_published_maps_are_fitted_on_rows_that_the_stream_has_not_shown():
    mnist = load("mnist")
    part = {"features": mnist.features[:3000], "labels": mnist.labels[:3000]}
    sizes = {"test_rows": np.arange(2900, 3000), "n_queries": 100, "stream_size": 200}
    data = replace(mnist, **part, **sizes)
    model = METHODS_AS_PUBLISHED["OSH"]("mnist", 8, 0)
    parts = prepare(model, data, "paper", 0, published=True)
    stream_rows = data.features[split(data, 0).stream]
    expected = UnitLength().fit(data.features).transform(stream_rows)
    assert_allclose(parts.stream.X, expected, atol=1e-6)
    assert not np.allclose(UnitLength().fit(stream_rows).transform(stream_rows), expected)
    # The anchors, whose kernel features are 1, are spread over the first half of the database.
    model = METHODS_AS_PUBLISHED["HMOH"]("mnist", 8, 0).set_params(feature_map=RBF(20))
    parts = prepare(model, data, "paper", 0, published=True)
    anchors = parts.database.X.argmax(axis=0)
    assert_allclose(parts.database.X.max(axis=0), 1, atol=1e-5)
    assert 200 < anchors.max() < 1450


def test_single_labels_have_the_same_targets_as_published():
    X, y = stream()
    expected = HMOH(9, codebook="ordered", random_state=0).fit(X, y).weights_
    assert_array_equal(PublishedHMOH(9, random_state=0).fit(X, y).weights_, expected)


# ---- HCOH ----------------------------------------------------------------------------------------


@label_forms
def test_hcoh_learns_the_targets_of_hmoh_as_its_twin_does(labels):
    X, y = stream(labels)
    model = make("HCOH").fit(X, y)
    other = HMOH(9, random_state=0).fit(X, y)
    targets = {}
    for name in ("targets_", "label_set_targets_"):
        targets |= getattr(model, name)
        assert str(getattr(model, name)) == str(getattr(other, name))
    keys = y.tolist() if y.ndim == 1 else [tuple(np.flatnonzero(row).tolist()) for row in y]
    C = np.array([targets[key] for key in keys])
    expected = naive.delta_rule(X, C, 0.2, hyperplanes(6).T).T
    assert_allclose(model.weights_, expected, atol=1e-4)


# ---- OSH -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "boost"])
@label_forms
def test_osh_fits_codewords_as_its_twin_does(labels, loss, as_published):
    X, y = stream(labels, n=30)
    model = make("OSH", loss=loss, as_published=as_published).fit(X, y)
    sample, word = [], []
    names = list(dict.fromkeys(y.tolist())) if y.ndim == 1 else None
    for i, label in enumerate(y.tolist()):
        words = np.flatnonzero(label) if names is None else [names.index(label)]
        sample += [i] * len(words)
        # As published, the i-th label of a sample always gets codeword i.
        word += list(range(len(words)) if as_published else words)
    C = np.where(np.random.default_rng([SEED, 2]).random((4, 9)) < 0.5, 1, -1)
    W = hyperplanes(6).T
    expected = naive.fit_codewords(X, sample, word, C, 0.1, loss == "boost", W).T
    assert_allclose(model.weights_, expected, rtol=1e-3, atol=1e-3)


def test_boosted_weights_stay_finite():
    X, y = stream()
    model = make("OSH", learning_rate=10).fit(100 * X, y)
    assert np.isfinite(model.weights_).all()


# ---- MIHash --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["true", "published"])
@label_forms
def test_mihash_equals_recomputing_everything(labels, gradient):
    X, y = stream(labels)
    settings = {"n_bins": 6, "sharpness": 3.0, "learning_rate": 0.3, "update_every": 7}
    model = MIHash(9, reservoir=20, gradient=gradient, random_state=0, **settings).fit(X, y)
    keys = np.random.Generator(np.random.PCG64([SEED, 2])).random(len(X))
    is_published = gradient == "published"
    start = hyperplanes(6).T
    args = (X.astype(float), share_label(y, y), start, keys, 20)
    _, used = naive.mihash(*args, **settings, published=is_published)
    assert_allclose(model.weights_.T, used, atol=2e-4)
    assert not np.allclose(used, start, atol=0.01)
    # What is updated item by item equals what is computed again.
    state = model._fitted()
    assert_allclose(state.P, state.W @ state.items.T, atol=1e-5)
    similar = share_label(state.labels, state.labels)
    assert_array_equal(state.similar, similar)
    assert_array_equal(state.counts, naive.histograms(state.bits, similar))


def differences(objective, W, step=1e-6):
    """Return the gradient of an objective by finite differences."""
    gradient = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        E = np.zeros_like(W)
        E[place] = step
        gradient[place] = (objective(W + E) - objective(W - E)) / (2 * step)
    return gradient


def test_mihash_ascends_the_mutual_information():
    """With the codes of the reservoir held fixed, as in the paper."""
    rng = np.random.default_rng(0)
    W = (rng.normal(size=(8, 5)) / 3).astype(np.float32)
    items = rng.normal(size=(15, 5)).astype(np.float32)
    x = rng.normal(size=(1, 5)).astype(np.float32)
    similar = rng.random((1, 16)) < 0.4
    learned = W.copy()
    G = np.zeros((1, 16), np.float32)
    places = (np.array([-1]), np.arange(15), 15)
    mihash._ascend(x, G, similar, *places, 2.0, 1.0, False, 5, learned, W @ items.T)
    V = W.astype(float)
    args = (items.astype(float), similar[0, :15], V, 2.0, 5)
    gradient = differences(lambda U: naive.soft_information(U @ x[0], *args), V)
    assert_allclose(learned - W, gradient, atol=2e-5)
    assert np.abs(gradient).max() > 0.01


@pytest.mark.parametrize("n_bits", [3, 64, 70, 130])
def test_histograms_and_information(n_bits):
    rng = np.random.default_rng(0)
    bits = rng.random((15, n_bits)) < 0.5
    y = rng.integers(3, size=15)
    similar = np.zeros((18, 18), bool)  # there is room for more items than there are
    similar[:15, :15] = y[:, None] == y
    counts = mihash.histograms(bits, similar)
    assert_array_equal(counts[:15], naive.histograms(bits, similar[:15, :15]))
    assert not counts[15:].any()
    value = mihash.mean_information(counts[:15])
    assert abs(value - naive.information(bits, similar[:15, :15])) < 1e-9


def test_tanh():
    x = np.concatenate([np.linspace(-9, 9, 601), [0, 1e-6, 50, -1e6, 3e38]]).astype(np.float32)
    assert np.abs([mihash._tanh(v) - np.tanh(np.float64(v)) for v in x]).max() < 1e-6
    assert mihash._tanh(np.float32(0)) == 0


def test_hash_functions_in_use_change_only_if_they_gain_more_than_the_threshold():
    X, y = stream()
    model = make("MIHash", threshold=100.0).fit(X, y)
    assert_allclose(model.weights_, hyperplanes(6), rtol=1e-6)
    assert not np.allclose(make("MIHash").fit(X, y).weights_, model.weights_)


def test_the_reservoir_is_a_uniform_sample_of_the_stream():
    hits = np.zeros(60)
    for seed in range(100):
        keys = np.random.default_rng(seed).random(60)
        K = np.full(12, mihash.FREE)
        slot = mihash._slots(keys, K)
        held = [np.flatnonzero(slot == s)[-1] for s in range(12)]
        assert_array_equal(keys[held], K)
        assert_array_equal(np.sort(K), np.sort(keys)[:12])
        hits[held] += 1
    assert abs(hits[:30].sum() - 600) < 80  # five standard deviations


def test_mihash_waits_for_a_tenth_of_its_reservoir():
    X, y = stream()
    model = MIHash(9, reservoir=300, update_every=10, random_state=0)
    with pytest.raises(NotFittedError, match="29 of 30"):
        model.partial_fit(X[:29], y[:29]).transform(X)
    assert model.partial_fit(X[29:30], y[29:30]).transform(X).shape == (80, 2)
    # `fit` learns from fewer, too.
    assert not np.allclose(model.fit(X[:20], y[:20]).weights_, hyperplanes(6))


@pytest.mark.filterwarnings("ignore")  # of overflow
@pytest.mark.skipif(JIT_IS_OFF, reason="NaN is no int in Python")
def test_weights_that_overflow_do_no_harm():
    X, y = stream()
    model = make("MIHash", sharpness=1e-6, learning_rate=1e30).fit(5e8 * X, y)
    assert not np.isfinite(model._state.P).all()
    assert model.transform(X).shape == (80, 2)


# ---- BSODH ---------------------------------------------------------------------------------------


# The matrix to invert is that of the 6 features, or of the 5 samples.
@pytest.mark.parametrize("batch", [20, 5])
@pytest.mark.parametrize(("similar", "dissimilar"), [(1.25, 0.25), (0.5, 1.25), (1.0, 0.0)])
@pytest.mark.parametrize("order", bsodh.ORDERS)
@label_forms
def test_bsodh_equals_the_whole_similarity_matrix(labels, order, similar, dissimilar, batch):
    X, y = stream(labels, n=90)
    if labels == "integers":
        y = np.where(np.arange(90) < 40, y % 2, y)  # two classes come later
    weights = {"similar": similar, "dissimilar": dissimilar}
    model = make("BSODH", batch=batch, order=order, **weights).fit(X, y)
    same = (y[:, None] == y) if y.ndim == 1 else (y[:, None] == y).all(axis=2)
    settings = (hyperplanes(6), batch, 0.9, 0.8, similar, dissimilar, bsodh.ORDERS[order])
    expected = naive.bsodh(X.astype(float), same, share_label(y, y), *settings)
    assert_allclose(model.weights_, expected, atol=1e-5)


def test_bsodh_only_stores_its_first_batch():
    X, y = stream(n=40)
    model = make("BSODH", batch=20).partial_fit(X[:39], y[:39])
    assert_allclose(model.weights_, hyperplanes(6), rtol=1e-6)
    assert not np.allclose(model.partial_fit(X[39:], y[39:]).weights_, hyperplanes(6))


def test_no_method_of_the_table_is_left_out_here():
    assert {method.make for method in METHODS.values()} <= {make for make, _ in SMALL.values()} | {
        PublishedHMOH
    }
