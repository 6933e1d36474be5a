"""What the project claims on MNIST: mean mAP of three seeds."""

from functools import cache

import numpy as np
import pytest

import datasets
from hmoh import HMOH
from kernels import RBF, UnitLength
from metrics import mean_average_precision

pytestmark = pytest.mark.slow


@cache
def mnist():
    return datasets.load("mnist")


def scores(n_bits, codebook="random", feature_map=None):
    X, y = mnist().features, mnist().labels
    result = []
    for seed in range(3):
        stream, database, queries = datasets.split(mnist(), seed)
        model = HMOH(n_bits, feature_map or RBF(300, divisor=6), codebook, random_state=seed).fit(X[stream], y[stream])
        codes = model.transform(X[queries]), model.transform(X[database])
        result.append(mean_average_precision(*codes, y[queries], y[database], n_bits=n_bits))
    return np.array(result)


@pytest.mark.parametrize("n_bits, least", [(16, 0.815), (32, 0.83), (64, 0.84), (128, 0.842)])
def test_random_columns_reach_the_papers_row(n_bits, least):
    assert scores(n_bits).mean() >= least


def test_ordered_columns_give_one_code_repeated():
    short, *longer = (scores(n_bits, "ordered") for n_bits in (16, 32, 64, 128))
    assert short.mean() >= 0.81
    np.testing.assert_allclose(
        longer, [short] * 3, atol=1e-4
    )  # a product of another shape may round a sign the other way


def test_spread_columns_help_at_8_bits():
    assert scores(8, "spread").mean() >= 0.74


def test_centred_features_of_unit_rows_are_better():
    assert scores(32, feature_map=[UnitLength(), RBF(divisor=6, center=True)]).mean() >= 0.87
