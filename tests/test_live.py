"""Streams with queries in between, codes that stay as they were made, and a rule to renew them."""

import itertools
import sqlite3
import warnings

import live
import nbformat
import numpy as np
import pytest
from helpers import ROOT

from baselines import HCOH, LSH
from hmoh import HMOH
from kernels import RBF, UnitLength
from metrics import mean_average_precision
from ridge import HadamardRidge
from study.datasets import BENCHMARKS, Dataset, split


def small(n=1200, d=9, n_classes=4, seed=0, spread=0.5):
    """Return a data set of Gaussian classes, 40 queries of it."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    centres = rng.normal(size=(n_classes, d))
    features = (centres[labels] + spread * rng.normal(size=(n, d))).astype(np.float32)
    nothing = np.empty(0, np.int64)
    return Dataset("small", features, labels, nothing, 40, 600, BENCHMARKS["mnist"])


def rows_of(data, X):
    """Return the row numbers of features, which are all different."""
    numbers = {row.tobytes(): i for i, row in enumerate(data.features)}
    return [numbers[row.tobytes()] for row in X]


def bits(codes, n_bits):
    return np.unpackbits(codes, axis=1, bitorder="little", count=n_bits)


# ---- streams -------------------------------------------------------------------------


@pytest.mark.parametrize("stay", [True, False])
def test_a_group_of_classes_joins_in_each_phase(stay):
    data = small()
    groups = [np.array([2]), np.array([0, 3])]
    stream = live.joining(data, 0, 400, groups, stay)
    assert set(stream.y[:200]) == {2}
    assert set(stream.y[200:]) == ({0, 2, 3} if stay else {0, 3})
    assert set(stream.queries(200)[1]) == {2}
    assert set(stream.queries(201)[1]) == {0, 2, 3}


def test_no_row_arrives_twice_and_none_is_asked_or_spare():
    data = small()
    stream = live.joining(data, 3, 500, live.groups_of(data.classes, [2, 2], seed=3))
    arrived = rows_of(data, stream.X)
    assert len(set(arrived)) == 500
    assert np.array_equal(data.labels[arrived], stream.y)
    asked = rows_of(data, stream.Q)
    assert sorted(asked) == sorted(split(data, 3).queries.tolist())
    spare = rows_of(data, stream.spare)
    assert not set(arrived) & set(asked) and not set(spare) & {*arrived, *asked}
    assert set(data.labels[spare]) == set(data.classes)


def test_all_classes_that_are_present_arrive_equally_often():
    data = small(n=12_000)
    stream = live.joining(data, 0, 4000, live.groups_of(data.classes, [1, 3]))
    late = np.bincount(stream.y[2000:], minlength=4)
    # Four standard deviations of a binomial count.
    assert np.abs(late - 500).max() < 4 * np.sqrt(2000 * 0.25 * 0.75)


def test_rare_classes_arrive_so_many_times_less_often():
    data = small(n=12_000)
    stream = live.joining(data, 0, 4000, [data.classes], rare=[1, 3], ratio=9)
    assert set(stream.queries(4000)[1]) == set(data.classes)
    n_rare = np.isin(stream.y, [1, 3]).sum()
    # Four standard deviations of a binomial count.
    assert abs(n_rare - 400) < 4 * np.sqrt(4000 * 0.1 * 0.9)


@pytest.mark.parametrize("learner", [HMOH, HadamardRidge])
def test_balanced_weights_are_the_squares_of_the_root_weights_up_to_ten(learner):
    data = small(spread=1.0)
    stream = live.joining(data, 0, 500, [data.classes], rare=[0, 2], ratio=30)
    weights = live.root_weights(stream.y) ** 2
    assert 1 < (weights > 10).sum() < 20
    balanced = learner(16, class_weight="balanced", random_state=0)
    weighted = learner(16, random_state=0)
    balanced.partial_fit(stream.X, stream.y)
    weighted.partial_fit(stream.X, stream.y, sample_weight=np.minimum(weights, 10))
    assert np.allclose(balanced.weights_, weighted.weights_, rtol=1e-5)


def test_a_stream_that_is_too_long_is_an_error():
    data = small()
    with pytest.raises(ValueError, match=r"too few rows of class 2 .* 1000; lower n"):
        live.joining(data, 0, 1000, [np.array([2])])


def test_groups_keep_all_classes_and_the_seed_draws_their_order():
    classes = np.arange(9)
    groups = live.groups_of(classes, [2, 3, 4], seed=1)
    assert [len(group) for group in groups] == [2, 3, 4]
    assert sorted(np.concatenate(groups)) == list(range(9))
    again = live.groups_of(classes, [2, 3, 4], seed=1)
    other = live.groups_of(classes, [2, 3, 4], seed=2)
    assert np.array_equal(np.concatenate(groups), np.concatenate(again))
    assert not np.array_equal(np.concatenate(groups), np.concatenate(other))


def test_images_turn_in_the_middle_and_queries_with_them():
    data = small()
    upright = live.shuffled(data, 0, 400)
    stream = live.turned(data, 0, 400)
    assert np.array_equal(stream.X[:200], upright.X[:200])
    assert np.array_equal(stream.queries(200)[0], upright.Q)
    for before, after in [
        (upright.X[200], stream.X[200]),
        (upright.Q[5], stream.queries(201)[0][5]),
    ]:
        turned = after.reshape(3, 3)
        # Turned to the left: the last column is the first row.
        assert np.array_equal(turned[0], before.reshape(3, 3)[:, 2])
        assert np.array_equal(np.rot90(turned, 3).ravel(), before)


def test_only_square_images_can_turn():
    with pytest.raises(ValueError, match="rows of 8 features are not square images"):
        live.turned(small(d=8), 0, 100)


@pytest.mark.parametrize("feature_map", [RBF(50), [UnitLength(), RBF(50)]])
def test_a_mapped_stream_teaches_what_the_map_would_have_taught(feature_map):
    stream = live.shuffled(small(), 0, 500)
    model = HMOH(16, feature_map=feature_map, warmup=60, random_state=0)
    without, found = HMOH(16, warmup=60, random_state=0), live.mapped(model, stream)
    assert found.n_warmup == 60
    assert found.X.shape == (500, 50) and found.Q.shape == (40, 50)
    without.partial_fit(found.X, found.y)
    model.partial_fit(stream.X, stream.y)
    assert np.allclose(without.weights_, model.weights_, atol=1e-4)


def test_a_map_can_be_fitted_on_other_rows():
    stream = live.shuffled(small(), 0, 500)
    found = live.mapped(HMOH(16, feature_map=RBF(50)), stream, stream.spare)
    # The first anchor is the first spare row, so its own feature is 1.
    anchors = RBF(50).fit(stream.spare)
    assert found.n_warmup == 0
    for name in ("X", "Q", "spare"):
        assert np.array_equal(getattr(found, name), anchors.transform(getattr(stream, name)))


# ---- one run -------------------------------------------------------------------------


def test_changed_bits_counts_bits():
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 30, 12))
    packed = [np.packbits(x, axis=1, bitorder="little") for x in (a, b)]
    assert live.changed_bits(*packed, 12) == pytest.approx((a != b).mean())


def test_codes_are_made_on_arrival_and_stay():
    stream = live.shuffled(small(spread=1.0), 0, 600)
    model = HMOH(16, random_state=0)
    found = live.follow(model, stream, every=200, check=200)
    # The same in plain steps.
    twin = HMOH(16, random_state=0)
    codes = []
    for start in range(0, 600, live.BLOCK):
        block = slice(start, start + live.BLOCK)
        if start:
            # The first block has waited for the model.
            waiting = slice(0 if start == live.BLOCK else start, block.stop)
            codes.append(twin.transform(stream.X[waiting]))
        twin.partial_fit(stream.X[block], stream.y[block])
    codes = np.concatenate(codes)
    queries = twin.transform(stream.Q)
    for name, database in (("stale", codes), ("fresh", twin.transform(stream.X))):
        score = mean_average_precision(queries, database, stream.q, stream.y)
        assert found[name][-1] == pytest.approx(score)
    differ = bits(codes, 16) != bits(twin.transform(stream.X), 16)
    assert found["changed"][-1] == pytest.approx(differ.mean())
    assert 0 < differ.mean() < 0.5
    assert found["samples"] == [200, 400, 600]


def test_hash_functions_that_never_change_lose_nothing():
    stream = live.shuffled(small(), 0, 600)
    found = live.follow(LSH(16, random_state=0), stream, every=300, check=100)
    assert found["stale"] == found["fresh"] == found["rule"]
    assert found["changed"] == [0, 0]
    assert (found["reencoded"], found["checks"]) == (0, 5)


def test_the_rule_re_encodes_when_bits_change(monkeypatch):
    stream = live.shuffled(small(spread=1.0), 0, 600)

    def followed(threshold):
        monkeypatch.setattr(live, "THRESHOLD", threshold)
        return live.follow(HMOH(16, random_state=0), stream, every=200, check=200)

    always = followed(0.0)
    assert always["rule"] == always["fresh"]
    assert always["reencoded"] == always["checks"] == 3
    never = followed(1.1)
    assert never["rule"] == never["stale"] != never["fresh"]
    assert never["reencoded"] == 0


def test_nothing_is_found_before_a_model_can_encode():
    stream = live.shuffled(small(), 0, 600)
    found = live.mapped(HMOH(16, feature_map=RBF(250)), stream)
    record = live.follow(HMOH(16), found, every=200, check=200)
    assert np.isnan(record["stale"][0]) and np.isnan(record["changed"][0])
    assert np.isfinite(record["stale"][1:]).all()
    assert record["checks"] == 2


@pytest.mark.parametrize("method", [HMOH, HCOH])
def test_redrawn_targets_are_new_ones_and_spoil_old_codes(method):
    data = small(n=4000)
    stream = live.shuffled(data, 0, 3000)
    losses = []
    for target_sets in (1, 3):
        model = method(32, random_state=0)
        if method is HMOH:
            model.set_params(memory=300)
        found = live.follow(model, stream, every=1000, target_sets=target_sets)
        assert len(model.targets_) == 4 * target_sets
        different = {tuple(target) for target in model.targets_.values()}
        assert len(different) == 4 * target_sets
        losses.append(found["fresh"][-1] - found["stale"][-1])
    assert losses[1] > losses[0] + 0.2


def test_run_makes_the_method_with_other_parameters(monkeypatch):
    monkeypatch.setattr(live, "_data", lambda name: small(d=16))
    live._stream.cache_clear()
    live._mapped_stream.cache_clear()
    job = {"seed": 1, "n": 600, "every": 300, "n_bits": 16}
    plain = live.run("HMOH", "classes join", **job)
    assert (plain["label"], plain["method"], plain["seed"]) == ("HMOH", "HMOH", 1)
    params = {"ensemble": False}
    last = live.run("HMOH", "classes join", label="last", params=params, **job)
    assert last["label"] == "last" and last["fresh"] != plain["fresh"]
    # A map of their own, of which the runs that have it share the features.
    maps = [
        live.run("HadamardRidge", "classes join", params={"feature_map": RBF(m)}, **job)
        for m in (20, 20, 30)
    ]
    assert maps[0]["fresh"] == maps[1]["fresh"] != maps[2]["fresh"]
    # The same map, fitted on more samples.
    params = {"feature_map": RBF(30), "warmup": 250}
    longer = live.run("HadamardRidge", "classes join", params=params, **job)
    assert longer["fresh"] != maps[2]["fresh"]
    live._stream.cache_clear()
    live._mapped_stream.cache_clear()


# ---- many runs, and times ------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_find_what_one_does():
    job = {"method": "HMOH", "kind": "stationary", "n": 1000, "every": 500}
    jobs = [job | {"seed": seed} for seed in range(2)]
    assert live.run_all(jobs, 2) == live.run_all(jobs)


def test_single_calls_are_timed_and_learned_from():
    data = small()
    model = HMOH(16, random_state=0)
    arrival, query = live.call_times(model, data.features[:50], data.labels[:50], 20)
    assert arrival.shape == query.shape == (30,)
    assert (arrival > 0).all() and (query > 0).all()
    assert model.n_seen_ == 50


# ---- the page "In production" ----------------------------------------------------------


@pytest.fixture
def production():
    """Return the names that the notebook's own lines define, with a small feature map."""
    cells = nbformat.read(ROOT / "notebooks" / "15_live.ipynb", 4).cells
    [source] = [cell.source for cell in cells if "class Service" in cell.source]
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 40
    names = {"np": np, "itertools": itertools, "HMOH": HMOH, "MAP": RBF(20), "N_BITS": 16}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # FAISS's SWIG wrapper is deprecated from Python 3.12 on
        exec(source, names)
    return names


def test_the_service_finds_what_was_added_and_not_what_was_removed(production, tmp_path):
    data = small()
    X, y = data.features, data.labels
    model = HMOH(16, feature_map=RBF(20), random_state=0).partial_fit(X[:100], y[:100])
    service = production["Service"](tmp_path, model)
    ids = 1000 + 3 * np.arange(60)
    service.add(ids, X[:60])
    service.remove(ids[10:20])
    with pytest.raises(sqlite3.IntegrityError):
        service.add(ids[[30, 59]], X[[30, 59]])
    _, found = service.index.search(service.encoder.transform(X[:60]), 50)
    assert sorted(found[0]) == sorted(np.delete(ids, slice(10, 20)))
    codes, kept = service.stored()
    assert sorted(kept) == sorted(found[0])
    np.testing.assert_array_equal(codes, model.transform(X[(kept - 1000) // 3]))


def test_a_restart_finds_the_same_and_versions_tell_what_encoded_an_item(production, tmp_path):
    data = small()
    X, y = data.features, data.labels
    model = HMOH(16, feature_map=RBF(20), random_state=0).partial_fit(X[:100], y[:100])
    service = production["Service"](tmp_path, model)
    ids = np.arange(50)
    service.add(ids, X[:50])
    old = service.version
    service.learner.partial_fit(X[100:300], y[100:300])
    assert service.version == old
    service.publish()
    assert service.version != old
    service.remove(ids[:5])
    service.re_encode(ids[:20], X[:20])  # five of them are gone
    before = service.index.search(service.encoder.transform(X[:9]), 45)
    service.db.close()
    again = production["Service"](tmp_path)
    assert again.version == service.version
    after = again.index.search(again.encoder.transform(X[:9]), 45)
    np.testing.assert_array_equal(after[0], before[0])
    versions = dict(again.db.execute("select id, version from items"))
    assert versions == {i: again.version if i < 20 else old for i in range(5, 50)}
    again.learner.partial_fit(X[300:], y[300:])
    service.learner.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(again.learner.weights_, service.learner.weights_)
    again.db.close()
