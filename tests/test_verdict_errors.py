"""How often the rule errs, and how often it decides: by simulation with fixed seeds."""

from collections import Counter

import numpy as np
import pytest

from study import statistics
from study.statistics import judge_order, judge_value


@pytest.fixture
def cheap(monkeypatch):
    """Leave out the draws for the probability of a whole order, which no verdict rests on."""
    monkeypatch.setattr(statistics, "DRAWS", 1)


def shares(judge, n=2000):
    """Return verdict -> how often a function of a random generator gives it."""
    rng = np.random.default_rng(0)
    found = Counter(judge(rng).verdict for _ in range(n))
    return Counter({verdict: count / n for verdict, count in found.items()})


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_interval_has_the_mean_in_95_of_100_cases(n):
    rng = np.random.default_rng(n)
    found = [statistics.interval(rng.normal(2, 3, size=n)) for _ in range(2000)]
    assert 0.93 <= np.mean([low <= 2 <= high for low, high in found]) <= 0.97


@pytest.mark.parametrize("n", [3, 10])
def test_without_a_gap_an_order_is_seldom_supported(n, cheap):
    def judge(rng):
        return judge_order([{"a": rng.normal(size=n)}])

    found = shares(judge)
    assert found["supported"] <= 0.05
    assert found["contradicted"] <= 0.05


def test_a_gap_of_one_deviation_is_seen_with_ten_seeds(cheap):
    def judge(rng):
        return judge_order([{"a": rng.normal(1, 1, size=10)}])

    assert shares(judge)["supported"] >= 0.75


@pytest.mark.parametrize("most", [False, True])
@pytest.mark.parametrize("shared", [0, 3])
def test_many_cases_without_a_gap_are_seldom_decided(most, shared, cheap):
    # HMOH over seven rivals at six lengths. What they share makes the gaps dependent.
    def judge(rng):
        gaps = rng.normal(size=(6, 7, 10)) + shared * rng.normal(size=10)
        groups = [dict(enumerate(rows)) for rows in gaps]
        return judge_order(groups, most)

    found = shares(judge, n=250)
    assert found["contradicted"] <= 0.05
    assert found["supported"] <= 0.05


def test_a_claim_about_most_is_seldom_supported_if_half_have_no_gap(cheap):
    # Three of six lengths are clear, four are needed.
    def judge(rng):
        return judge_order([{"a": rng.normal(m, 1, 10)} for m in [9] * 3 + [0] * 3], True)

    assert shares(judge)["supported"] <= 0.05


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("deviation", [0.005, 0.03])
def test_a_value_at_the_widened_margin_is_seldom_reproduced(n, deviation):
    truth = 0.5 + 0.02 + deviation / 3**0.5

    def judge(rng):
        return judge_value(rng.normal(truth, deviation, n), 0.5, 0.02, "precision")

    assert shares(judge, n=1000)["reproduced"] <= 0.05


@pytest.mark.parametrize("n", [3, 10, 200])
@pytest.mark.parametrize("deviation", [0.005, 0.036])
def test_the_papers_own_truth_is_seldom_called_different(n, deviation):
    # The printed value is a mean of three runs, each as noisy as ours.
    def judge(rng):
        printed = rng.normal(0.5, deviation, 3).mean()
        return judge_value(rng.normal(0.5, deviation, n), printed, 0.02, "precision")

    assert shares(judge, n=1000)["different"] <= 0.05


def test_more_seeds_settle_what_few_leave_open(cheap):
    def order(n):
        return lambda rng: judge_order([{"a": rng.normal(0.3, 1, size=n)}])

    assert shares(order(5), n=300)["undecided"] > 0.8
    assert shares(order(200), n=300)["supported"] > 0.95

    def value(n, truth):
        return lambda rng: judge_value(rng.normal(truth, 0.02, n), 0.5, 0.02, "precision")

    assert shares(value(3, 0.51), n=300)["undecided"] > 0.8
    assert shares(value(200, 0.51), n=300)["reproduced"] > 0.95
    assert shares(value(200, 0.54), n=300)["different"] > 0.95
