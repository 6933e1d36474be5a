"""Random features of a shape, the mistakes made on them, and the time to learn them."""

import numpy as np
import pytest

from baselines import LSH, OKH
from hmoh import HMOH
from kernels import RBF, UnitLength
from study import timing


def test_features_have_the_shape_and_are_always_the_same():
    X, y = timing.random_features(50, 7, 4, distance=3.0)
    again, _ = timing.random_features(50, 7, 4, distance=3.0)
    assert X.shape == (50, 7) and X.dtype == np.float32
    assert set(y) <= set(range(4))
    assert np.array_equal(X, again)


def test_rows_may_have_one_or_two_labels():
    _, Y = timing.random_features(200, 7, 4, distance=3.0, multi_label=True)
    assert Y.shape == (200, 4)
    assert set(Y.sum(axis=1)) == {1, 2}


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("feature_map", [None, RBF(20)])
def test_mistakes_are_those_that_the_model_learns_from(feature_map, multi_label):
    X, y = timing.random_features(300, 6, 4, distance=2.0, multi_label=multi_label)
    model = HMOH(8, feature_map=feature_map, ensemble=False, random_state=0)
    counts = timing.wrong_bits(model, X, y)
    assert counts.shape == (300,) and counts.min() >= 0 and counts.max() <= 8
    # Where nothing is wrong, the weights stay as they are.
    n = int(np.flatnonzero(counts == 0)[-1])
    shorter = HMOH(8, feature_map=model.feature_map_, ensemble=False, random_state=0)
    shorter.set_params(feature_map=None)
    Z = X if feature_map is None else model.feature_map_.transform(X)
    classes = None if multi_label else np.unique(y)
    shorter.partial_fit(Z[:n], y[:n], classes=classes)
    before = shorter.weights_
    after = shorter.partial_fit(Z[n : n + 1], y[n : n + 1]).weights_
    assert np.array_equal(before, after)


@pytest.mark.parametrize(
    "model", [HMOH(8, feature_map=RBF(50)), OKH(8, feature_map=UnitLength(), warmup=60)]
)
def test_learning_alone_is_a_part_of_the_time_and_classes_are_left_as_they_were(model):
    X, y = timing.random_features(2000, 50, 4, distance=2.0)
    kind = type(model)
    learn = kind._learn
    total, learning = timing.cpu_seconds(model.set_params(random_state=0), X, y)
    assert 0 < learning < total
    assert kind._learn is learn
    assert model.n_seen_ == 2000


def test_mapping_features_is_no_part_of_learning_alone_and_neither_is_the_kernel_of_okh():
    X, y = timing.random_features(4000, 1000, 4, distance=2.0)
    for model in (LSH(8, feature_map=RBF(300)), OKH(8, random_state=0)):
        timing.cpu_seconds(model, X[:400], y[:400])  # compiles
        total, learning = timing.cpu_seconds(model, X, y)
        assert learning < 0.3 * total  # the kernel takes nearly all of it


def test_a_method_whose_learning_has_another_name_is_an_error():
    class Renamed(LSH):
        def _learn_waiting(self, state, is_last):
            state.waiting = ()
            self._fit_maps(state, np.eye(3, dtype=np.float32))

    X, y = timing.random_features(50, 7, 4, distance=3.0)
    with pytest.raises(RuntimeError, match="_learn"):
        timing.cpu_seconds(Renamed(8), X, y)
