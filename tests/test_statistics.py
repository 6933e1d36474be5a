"""Statistics: Student's t, several tests at once, the rule for orders and for values."""

import math

import numpy as np
import pytest
import scipy.stats
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from study import statistics
from study.statistics import judge_order, judge_value

NAN = math.nan
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


# ---- Student's t ---------------------------------------------------------------------


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 10, 99, 100, 999, 1000])
def test_the_tail_of_t_is_that_of_scipy(df):
    t = np.array([-50, -3, -1, -0.1, 0, 1e-9, 0.5, 2, 4.3, 12.7, 60, 1e6])
    found = [statistics.t_tail(value, df) for value in t]
    np.testing.assert_allclose(found, scipy.stats.t.sf(t, df), rtol=1e-9, atol=1e-13)
    assert min(found) >= 0


@pytest.mark.parametrize("tail", [0.4, 0.025, 0.025 / 42, 1e-6])
def test_the_quantile_of_t_is_that_of_scipy(tail):
    for df in [*range(1, 40), 100, 333, 1000]:
        expected = scipy.stats.t.isf(tail, df)
        assert statistics.t_quantile(tail, df) == pytest.approx(expected, rel=1e-8)


def test_interval_and_p_value_are_those_of_scipys_t_test():
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 51):
        samples = rng.normal(0.3, 2, size=n)
        test = scipy.stats.ttest_1samp(samples, 0)
        expected = test.confidence_interval(0.95)
        assert statistics.interval(samples) == pytest.approx(tuple(expected))
        one_sided = scipy.stats.ttest_1samp(samples, 0.1, alternative="greater")
        assert statistics.p_above(samples, 0.1) == pytest.approx(one_sided.pvalue)


def test_the_deviation_is_that_of_a_sample_and_unknown_for_one_value():
    assert statistics.sd([1, 2, 3]) == 1
    assert statistics.sd(np.array([0.1, 0.3])) == pytest.approx(0.02**0.5)
    assert np.isnan(statistics.sd([1]))
    assert statistics.standard_error([1, 2, 3]) == pytest.approx(3**-0.5)


def test_seeds_that_are_missing_are_left_out():
    known = [0.1, 0.4, 0.3]
    assert statistics.interval([NAN, *known, NAN]) == statistics.interval(known)
    assert statistics.p_above([NAN, *known]) == statistics.p_above(known)


def test_one_sample_decides_nothing():
    for samples in ([], [1.0], [1.0, NAN]):
        assert statistics.interval(samples) == (-math.inf, math.inf)
        assert statistics.p_above(samples) == 1


def test_equal_samples_are_known_without_error():
    assert statistics.interval([0.25, 0.25, 0.25]) == (0.25, 0.25)
    # Three times .1 does not have exactly the mean .1.
    assert statistics.p_above([0.1] * 3) == 0
    assert statistics.p_above([-0.1] * 3) == 1
    assert statistics.p_above([0.0] * 3) == 1


# ---- several tests at once -----------------------------------------------------------


@quick
@given(P_VALUES, st.data())
def test_at_least_n_is_bonferroni_over_the_statements_that_may_be_left(p_values, data):
    k = len(p_values)
    n = data.draw(st.integers(1, k))
    # Leave out the n - 1 smallest. One of the others has to be true.
    others = list(p_values)
    for _ in range(n - 1):
        others.remove(min(others))
    expected = min(1, len(others) * min(others))
    assert statistics.at_least(p_values, n) == expected
    assert statistics.at_least(p_values, k) == max(p_values)
    assert statistics.at_least(p_values, 1) == min(1, k * min(p_values))


@quick
@given(P_VALUES)
def test_false_discovery_rates_are_those_of_the_definition(p_values):
    m = len(p_values)
    expected = []
    for p in p_values:
        # The least m q / #(p-values up to q) over all thresholds q from p on.
        rates = [m * q / sum(x <= q for x in p_values) for q in p_values if q >= p]
        expected.append(min(1, *rates, 1))
    found = statistics.false_discovery_rates(p_values)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    by_scipy = scipy.stats.false_discovery_control(p_values)
    np.testing.assert_allclose(found, by_scipy, rtol=1e-12)


def test_no_p_values_have_no_rates():
    assert statistics.false_discovery_rates([]).shape == (0,)


# ---- orders --------------------------------------------------------------------------

CLEAR = [0.10, 0.11, 0.12, 0.09]
NARROW = [0.01, 0.03, 0.02, 0.04]
MIXED = [0.10, -0.12, 0.05, -0.02]
BEHIND = [-0.10, -0.11, -0.12, -0.09]


@pytest.mark.parametrize(
    "gaps, verdict",
    [
        (CLEAR, "supported"),
        (NARROW, "supported"),
        (MIXED, "undecided"),
        (BEHIND, "contradicted"),
    ],
)
def test_the_interval_of_the_gap_decides_an_order(gaps, verdict):
    found = judge_order([{"case": gaps}])
    assert found.verdict == verdict
    decided = verdict != "undecided"
    assert decided == (found.p <= 0.05) == (found.low * found.high > 0)
    assert (found.estimate, found.n) == (pytest.approx(np.mean(gaps)), 4)
    assert (found.low, found.high) == statistics.interval(gaps)


def test_an_order_is_as_good_as_its_weakest_case():
    found = judge_order([{"a": CLEAR, "b": NARROW}, {"c": CLEAR}])
    assert (found.verdict, found.case) == ("supported", "b")
    found = judge_order([{"a": CLEAR}, {"b": NARROW, "c": MIXED}])
    assert (found.verdict, found.case) == ("undecided", "c")
    assert found.estimate == pytest.approx(np.mean(MIXED))
    found = judge_order([{"a": CLEAR, "b": BEHIND}, {"c": CLEAR}])
    assert (found.verdict, found.case) == ("contradicted", "b")


def test_the_weakest_case_is_not_that_of_the_least_gap_but_of_the_least_certain():
    found = judge_order([{"small": NARROW, "large": [0.1, 0.3, 0.02, 0.5]}])
    assert (found.case, found.verdict) == ("large", "undecided")


def test_many_cases_make_a_contradiction_harder_but_not_a_support():
    # The p-value is .012: enough for one case (.025) and for two, not for three.
    gaps = [-0.016, -0.05, -0.03, -0.04, -0.006]
    assert 0.025 / 3 < statistics.p_above(np.negative(gaps)) < 0.025 / 2
    assert judge_order([{"a": gaps}]).verdict == "contradicted"
    assert judge_order([{"a": gaps, "b": CLEAR}]).verdict == "contradicted"
    assert judge_order([{"a": gaps, "b": CLEAR, "c": CLEAR}]).verdict == "undecided"
    apart = [{"a": gaps}, {"b": CLEAR}, {"c": CLEAR}]
    assert judge_order(apart).verdict == "undecided"
    ahead = np.negative(gaps)
    assert judge_order([{"a": ahead, "b": CLEAR, "c": CLEAR}]).verdict == "supported"


def test_most_are_more_than_half_of_the_groups():
    def judge(n_good, n_bad):
        groups = [{f"good {i}": CLEAR} for i in range(n_good)]
        groups += [{f"bad {i}": BEHIND} for i in range(n_bad)]
        return judge_order(groups, most=True)

    assert judge(4, 2).verdict == "supported"
    assert judge(4, 2).case.startswith("good")
    assert judge(3, 3).verdict == "contradicted"
    assert judge(3, 3).case.startswith("bad")
    assert judge(2, 1).verdict == "supported"
    # One failing case is enough to lose a group.
    groups = [{"a": CLEAR, "b": BEHIND}, {"c": CLEAR, "d": BEHIND}, {"e": CLEAR}]
    assert judge_order(groups, most=True).verdict == "contradicted"


def test_slack_is_a_deficit_that_the_order_allows():
    gaps = [-0.010, -0.012, -0.008, -0.011]
    assert judge_order([{"a": gaps}]).verdict == "contradicted"
    found = judge_order([{"a": gaps}], slack=0.02)
    assert found.verdict == "supported"
    assert found.estimate == pytest.approx(np.mean(gaps))
    assert judge_order([{"a": gaps}], slack=0.005).verdict == "contradicted"


def test_a_seed_that_is_missing_in_one_case_counts_in_the_others():
    found = judge_order([{"a": [*CLEAR, NAN], "b": [0.01, 0.03, NAN, 0.02, 0.02]}])
    assert (found.verdict, found.case, found.n) == ("supported", "b", 4)
    # Three seeds are shared.
    assert 0.9 < found.whole < 1


def test_one_sample_leaves_an_order_undecided():
    found = judge_order([{"a": [5.0], "b": [-5.0]}])
    assert (found.verdict, found.case, found.n, found.p) == ("undecided", "b", 1, 1)
    assert found.whole is None


def test_a_case_without_a_value_leaves_an_order_undecided():
    for cases in ({"a": [NAN] * 4, "b": CLEAR}, {"b": CLEAR, "a": [NAN] * 4}):
        found = judge_order([cases])
        assert (found.verdict, found.case, found.n) == ("undecided", "a", 0)
        assert math.isnan(found.estimate)
        assert found.whole is None


def test_what_contradicts_is_named_even_if_another_case_has_no_value():
    found = judge_order([{"a": [NAN] * 4, "b": BEHIND}, {"c": CLEAR}])
    assert (found.verdict, found.case, found.n) == ("contradicted", "b", 4)


def test_equal_gaps_need_no_test():
    assert judge_order([{"a": [0.1, 0.1, 0.1]}]).verdict == "supported"
    assert judge_order([{"a": [-0.1, -0.1, -0.1]}]).verdict == "contradicted"
    found = judge_order([{"a": [0.0, 0.0, 0.0]}])
    assert (found.verdict, found.low, found.high) == ("undecided", 0, 0)


# ---- the probability that an order is whole ------------------------------------------


def test_a_clear_order_is_whole_and_a_clear_contrary_is_not():
    rng = np.random.default_rng(0)
    gaps = {str(i): rng.normal(1, 0.1, size=10) for i in range(7)}
    assert judge_order([gaps]).whole > 0.999
    assert judge_order([gaps | {"x": -gaps["0"]}]).whole < 0.001


def test_the_probability_of_one_gap_is_that_of_its_t_test():
    rng = np.random.default_rng(0)
    for n in (3, 10):
        gaps = rng.normal(0.2, 1, size=n)
        expected = 1 - statistics.p_above(gaps)
        assert judge_order([{"a": gaps}]).whole == pytest.approx(expected, abs=0.02)


def test_one_zero_gap_is_whole_with_probability_one_half_on_average(monkeypatch):
    monkeypatch.setattr(statistics, "DRAWS", 500)
    rng = np.random.default_rng(0)
    found = [judge_order([{"a": rng.normal(size=5)}]).whole for _ in range(500)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.04)
    # It is even between 0 and 1.
    assert np.mean(np.array(found) < 0.1) == pytest.approx(0.1, abs=0.04)


def test_gaps_that_move_together_are_whole_together():
    rng = np.random.default_rng(0)
    gaps = rng.normal(0.1, 1, size=20)
    one = judge_order([{"a": gaps}]).whole
    assert judge_order([{"a": gaps, "b": gaps}, {"c": gaps}]).whole == one
    against = judge_order([{"a": gaps - gaps.mean(), "b": gaps.mean() - gaps}])
    assert against.whole == pytest.approx(0, abs=1e-9)


def test_most_of_the_groups_are_likelier_than_all():
    rng = np.random.default_rng(0)
    groups = [{str(i): rng.normal(size=8)} for i in range(5)]
    everything = judge_order(groups).whole
    most = judge_order(groups, most=True).whole
    assert 0 <= everything < most <= 1


# ---- values --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, verdict",
    [
        ([0.50, 0.51, 0.50, 0.49], "reproduced"),
        ([0.60, 0.61, 0.60, 0.59], "different"),
        ([0.52, 0.53, 0.52, 0.51], "undecided"),
        ([0.50], "undecided"),
        ([0.51, 0.51, NAN], "reproduced"),
        ([0.53, 0.53], "different"),
    ],
)
def test_a_value_needs_its_whole_interval_within_the_margin(values, verdict):
    found = judge_value(values, 0.5, 0.02, "precision")
    assert found.verdict == verdict
    assert (found.verdict != "undecided") == (found.p <= 0.05)
    known = np.array(values)[~np.isnan(values)]
    assert (found.estimate, found.n) == (pytest.approx(known.mean()), len(known))
    assert (found.low, found.high) == pytest.approx(statistics.interval(values))


def test_the_verdict_is_where_the_interval_is():
    rng = np.random.default_rng(0)
    for _ in range(200):
        found = judge_value(rng.normal(0.5, 0.02, size=5), 0.52, 0.02, "precision")
        low, high = 0.52 - found.margin, 0.52 + found.margin
        if low <= found.low and found.high <= high:
            expected = "reproduced"
        elif found.high < low or found.low > high:
            expected = "different"
        else:
            expected = "undecided"
        assert found.verdict == expected


def test_the_margin_is_widened_by_the_error_of_a_mean_of_three_runs():
    values = [0.4, 0.5, 0.6]
    found = judge_value(values, 0.5, 0.02, "precision")
    assert found.margin == pytest.approx(0.02 + 0.1 / 3**0.5)
    assert judge_value([0.5], 0.5, 0.02, "precision").margin == 0.02
    assert judge_value(values, 0.5, 0.1, "exponent").margin == 0.1


def test_an_exponent_is_not_given_the_papers_noise():
    values = [1.10, 1.12, 1.13, 1.12, 1.11, 1.15]
    assert judge_value(values, 1.0, 0.1, "precision").verdict == "undecided"
    assert judge_value(values, 1.0, 0.1, "exponent").verdict == "different"


def test_a_gain_must_have_the_printed_sign():
    loss = [-0.004, -0.005, -0.006]
    assert judge_value(loss, 0.01, 0.02, "precision").verdict == "reproduced"
    assert judge_value(loss, 0.01, 0.02, "gain").verdict == "different"
    gain = np.negative(loss)
    assert judge_value(gain, 0.01, 0.02, "gain").verdict == "reproduced"
    assert judge_value(gain, -0.01, 0.02, "gain").verdict == "different"
    assert judge_value(loss, -0.01, 0.02, "gain").verdict == "reproduced"


def test_a_printed_gain_of_zero_has_no_sign():
    for values in ([0.010, 0.011, 0.012], [-0.010, -0.011, -0.012]):
        assert judge_value(values, 0.0, 0.02, "gain").verdict == "reproduced"


def test_a_factor_is_judged_on_a_logarithmic_scale():
    values = np.array([4.0, 4.1, 4.2, 3.9])
    found = judge_value(values, 5.0, 1.5, "factor")
    assert found.verdict == "reproduced"
    assert found.estimate == pytest.approx(scipy.stats.gmean(values))
    wider = math.exp(statistics.sd(np.log(values)) / 3**0.5)
    assert found.margin == pytest.approx(1.5 * wider)
    assert found.low < found.estimate < found.high
    # A factor and its inverse are equally far from one.
    for factor, verdict in [(1.4, "reproduced"), (1.7, "different")]:
        slower = judge_value(5 * factor * values / values.mean(), 5, 1.5, "factor")
        faster = judge_value(5 / factor * values / values.mean(), 5, 1.5, "factor")
        assert slower.verdict == faster.verdict == verdict


def test_no_value_is_undecided():
    found = judge_value([NAN, NAN], 0.5, 0.02, "precision")
    assert (found.verdict, found.n, found.p) == ("undecided", 0, 1)
    assert math.isnan(found.estimate)


def test_the_queries_of_one_seed_do_not_widen_the_margin():
    queries = np.random.default_rng(0).choice([0.0, 1.0], size=1000)
    over = {"printed": queries.mean() + 0.2, "margin": 0.02, "unit": "precision"}
    assert statistics.judge_value(queries, **over, over_queries=True).margin == 0.02
    assert statistics.judge_value(queries, **over, over_queries=True).verdict == ("different")
