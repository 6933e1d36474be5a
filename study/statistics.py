"""Decide what measurements show: one rule for all claims of the paper.

A seed draws split, queries, stream and codebook anew from one data set. Given that data set, the
values of the seeds are independent.
Two methods are compared by their differences, seed by seed. The rule is the 95 % interval of the
mean by Student's t:

    order   "supported" if the interval of the gap is above zero, "contradicted" if it is below
    value   "reproduced" if the interval is within the margin about the printed value, "different"
            if it is outside, see `judge_value`

and "undecided" otherwise. More seeds make the interval shorter, so in the end they decide every
claim that is not exactly on the border.

An order of several cases (code lengths, rivals) is supported if every case is. It is contradicted
if a case is, at the level 2.5 % divided by the number of cases (Bonferroni). An order that is
claimed for most lengths is tested by Benjamini and Heller (Biometrics 2008), see `at_least`.

>>> judge_order([{"HMOH over LSH": [0.02, 0.03, 0.05, 0.02]}]).verdict
'supported'
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

__all__ = [
    "RULE_VERSION",
    "Judgement",
    "at_least",
    "false_discovery_rates",
    "interval",
    "judge_order",
    "judge_value",
    "p_above",
    "sd",
    "standard_error",
    "t_quantile",
    "t_tail",
]

# Verdicts that were kept are valid only for the rule that made them. Count up when it changes.
RULE_VERSION = 1
# One side of a 95 % interval.
ALPHA = 0.025
# Draws for the probability that an order is whole.
DRAWS = 10_000
# Runs behind a number that the paper prints.
PAPER_RUNS = 3


# ---- Student's t ---------------------------------------------------------------------


def t_tail(t: float, df: int) -> float:
    """Return P(T > t) for Student's t with a whole number of degrees of freedom.

    With theta = arctan(t / sqrt(df)) it is a finite sum of powers of cos(theta)
    (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> round(t_tail(2.262, 9), 4)
    0.025
    """
    theta = math.atan(t / math.sqrt(df))
    cosine2 = math.cos(theta) ** 2
    is_odd = df % 2 == 1
    # The first power is cos(theta) for odd df, 1 for even df. Each next term has two more.
    term = math.cos(theta) if is_odd else 1.0
    total = 0.0
    for k in range(df // 2):
        total += term
        term *= cosine2 * ((2 * k + 2) / (2 * k + 3) if is_odd else (2 * k + 1) / (2 * k + 2))
    within = math.sin(theta) * total
    if is_odd:
        within = 2 / math.pi * (theta + within)
    # Far out, rounding can leave a little less than nothing.
    return max(0.0, (1 - within) / 2)


@cache
def t_quantile(tail: float, df: int) -> float:
    """Return the t with P(T > t) = tail, for a tail below one half.

    >>> round(t_quantile(0.025, 9), 3)
    2.262
    """
    high = 1.0
    while t_tail(high, df) > tail:
        high *= 2
    low = 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if t_tail(middle, df) > tail:
            low = middle
        else:
            high = middle
    return high


def _known(samples: Sequence[float]) -> np.ndarray:
    """Return the samples that are not nan. A seed that a method was not run with is nan."""
    samples = np.asarray(samples, dtype=np.float64)
    return samples[~np.isnan(samples)]


def sd(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample, nan for one value.

    >>> sd([1.0, 2.0, 3.0]), sd([1.0])
    (1.0, nan)
    """
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1))


def standard_error(samples: Sequence[float]) -> float:
    """Return the standard error of the mean of a sample, nan for one value.

    >>> round(standard_error([1.0, 2.0, 3.0, 2.0]), 3)
    0.408
    """
    return sd(samples) / math.sqrt(len(samples))


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of independent samples, by Student's t.

    It is infinite for fewer than two samples. nan are left out.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    samples = _known(samples)
    if len(samples) < 2:
        return -math.inf, math.inf
    reach = t_quantile(ALPHA, len(samples) - 1) * standard_error(samples)
    mean = samples.mean()
    return float(mean - reach), float(mean + reach)


def p_above(samples: Sequence[float], bound: float = 0.0) -> float:
    """Return the p-value of the t-test that the mean is above a bound; 1 if it cannot be tested.

    >>> round(p_above([1.0, 2.0, 3.0]), 3)
    0.037
    """
    samples = _known(samples)
    if len(samples) < 2:
        return 1.0
    gap = samples.mean() - bound
    error = standard_error(samples)
    # Exact equality of all samples: the mean is known without error.
    if error <= 1e-15 * abs(samples).max():
        return 0.0 if gap > 0 else 1.0
    return t_tail(gap / error, len(samples) - 1)


def _p_below(samples: Sequence[float], bound: float = 0.0) -> float:
    return p_above(np.negative(samples), -bound)


def at_least(p_values: Sequence[float], n: int) -> float:
    """Return the p-value that at least n of several statements are true, given the p-value of each.

    It is (k - n + 1) p_(n) for k statements, with p_(n) the n-th smallest (Benjamini and Heller,
    Biometrics 2008). For n = k this is the largest p-value: the intersection-union test. For n = 1
    it is Bonferroni's test.

    >>> at_least([0.01, 0.02, 0.5], 3), at_least([0.01, 0.02, 0.5], 1)
    (0.5, 0.03)
    """
    k = len(p_values)
    return min(1.0, (k - n + 1) * sorted(p_values)[n - 1])


def false_discovery_rates(p_values: Sequence[float]) -> np.ndarray:
    """Return for each p-value the false-discovery rate at which it is significant.

    This is the step-up rule of Benjamini and Hochberg (1995): of all claims with a rate up to q,
    a share of q at most is expected to be decided wrongly. It needs tests that are independent or
    positively dependent, such as those that share their seeds.

    >>> false_discovery_rates([0.01, 0.04, 0.03, 0.5]).round(3)
    array([0.04 , 0.053, 0.053, 0.5  ])
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values)
    scaled = p_values[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    # A larger p-value has no smaller rate.
    rates = np.minimum.accumulate(scaled[::-1])[::-1]
    result = np.empty_like(rates)
    result[order] = np.minimum(rates, 1)
    return result


# ---- the rule ------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """What a sample shows about one claim.

    Attributes
    ----------
    verdict : str
        "supported", "contradicted", "reproduced", "different" or "undecided".
    estimate, low, high : float
        Mean and 95 % interval of the value, or of the gap in the case that decides. An order of
        several cases is tested at a smaller level than this interval has, so it can be undecided
        although the interval is below zero.
    n : int
        The number of samples behind them.
    p : float
        Two-sided p-value of the decision: it is at most .05 if and only if there is one.
    case : str
        The case that decides an order, such as "at 8 bits HMOH over MIHash".
    whole : float or None
        For an order: the probability that all its cases are true, see `judge_order`.
    margin : float or None
        For a value: the margin that was used.
    """

    verdict: str
    estimate: float
    low: float
    high: float
    n: int
    p: float
    case: str = ""
    whole: float | None = None
    margin: float | None = None


Groups = Sequence[Mapping[str, Sequence[float]]]


def judge_order(groups: Groups, most: bool = False, slack: float = 0.0) -> Judgement:
    """Judge whether all gaps are above zero.

    Parameters
    ----------
    groups : list of dict
        A dict for each code length: name of a case -> its gaps, one for each seed, nan for a
        seed that is missing.
    most : bool
        The claim is about more than half of the groups, not all of them.
    slack : float
        The deficit that the claim allows: a gap has to be above -slack.

    Notes
    -----
    The probability that the order is whole treats what is unknown about the mean gaps as
    multivariate t, with the covariance that the gaps have over the seeds that all cases share. It
    is the share of 10,000 draws (of a fixed seed) in which the order is as claimed.
    """
    n_needed = len(groups) // 2 + 1 if most else len(groups)
    # The claim is false if so many groups fail that fewer than n_needed are left.
    n_failing = len(groups) - n_needed + 1
    weakest = []
    failing = []
    for number, group in enumerate(groups):
        above = []
        below = []
        for name, gaps in group.items():
            mean = _mean(gaps)
            # A case without a value is the weakest of all.
            above.append((p_above(gaps, -slack), math.inf if math.isnan(mean) else -mean, name))
            below.append((_p_below(gaps, -slack), mean, name))
        p, deficit, name = max(above)
        weakest.append((p, deficit, number, name))
        p, mean, name = min(below)
        failing.append((min(1.0, p * len(group)), mean, number, name))
    weakest.sort()
    failing.sort()
    p_for = at_least([p for p, *_ in weakest], n_needed)
    p_against = at_least([p for p, *_ in failing], n_failing)
    verdict = _verdict(p_for, p_against, "supported", "contradicted")
    # The last of the groups that are needed decides.
    deciding = weakest[n_needed - 1]
    if verdict == "contradicted":
        deciding = failing[n_failing - 1]
    *_, number, name = deciding
    gaps = groups[number][name]
    low, high = interval(gaps)
    return Judgement(
        verdict,
        _mean(gaps),
        low,
        high,
        n=len(_known(gaps)),
        p=min(1.0, 2 * min(p_for, p_against)),
        case=name,
        whole=_probability_whole(groups, n_needed, slack),
    )


def judge_value(
    samples: Sequence[float],
    printed: float,
    margin: float,
    unit: str,
    over_queries: bool = False,
) -> Judgement:
    """Judge whether the mean of the samples is the printed value, within a margin.

    Two one-sided tests (TOST): "reproduced" needs the whole interval within the margin. The
    margin is widened by the standard error of the printed value. That is a mean of three runs, so
    its error is taken as our standard deviation over root three.

    Parameters
    ----------
    samples : one value for each seed
    printed : float
    margin : float
        The difference that has no meaning; for "factor" the factor that has none.
    unit : {"precision", "gain", "factor", "exponent"}
        A "gain" must also have the printed sign: the range of values that reproduce it ends at
        zero. A "factor" is judged on a logarithmic scale. An "exponent" comes from theory, so its
        margin is not widened.
    over_queries : bool
        The samples are the queries of a single seed. They do not show how much runs differ, so
        the margin is not widened.

    Notes
    -----
    If our runs and the paper's have the same distribution, "different" is wrong in at most 5 % of
    cases for any number of seeds, as long as the standard deviation is below 1.8 margins.
    """
    samples = _known(samples)
    if len(samples) == 0:
        return Judgement("undecided", math.nan, math.nan, math.nan, 0, 1.0)
    mean = samples.mean()
    low, high = interval(samples)
    if unit == "factor":
        samples = np.log(samples)
        mean = np.exp(samples.mean())
        low, high = np.exp(interval(samples))
        printed = math.log(printed)
        margin = math.log(margin)
    if unit != "exponent" and len(samples) > 1 and not over_queries:
        margin += sd(samples) / math.sqrt(PAPER_RUNS)
    least = printed - margin
    most = printed + margin
    if unit == "gain" and printed > 0:
        least = max(least, 0.0)
    elif unit == "gain" and printed < 0:
        most = min(most, 0.0)
    p_for = max(p_above(samples, least), _p_below(samples, most))
    p_against = min(p_above(samples, most), _p_below(samples, least))
    return Judgement(
        _verdict(p_for, p_against, "reproduced", "different"),
        float(mean),
        float(low),
        float(high),
        n=len(samples),
        p=min(1.0, 2 * min(p_for, p_against)),
        margin=math.exp(margin) if unit == "factor" else margin,
    )


def _mean(samples: Sequence[float]) -> float:
    known = _known(samples)
    return float(known.mean()) if len(known) else math.nan


def _verdict(p_for: float, p_against: float, true: str, false: str) -> str:
    if p_for <= ALPHA:
        return true
    return false if p_against <= ALPHA else "undecided"


def _probability_whole(groups: Groups, n_needed: int, slack: float) -> float | None:
    """Return the probability that so many groups have all their gaps above -slack."""
    columns = [g for group in groups for g in group.values()]
    if len({len(column) for column in columns}) > 1:
        return None
    gaps = np.array(columns, dtype=np.float64)
    gaps = gaps[:, ~np.isnan(gaps).any(axis=0)]
    n = gaps.shape[1]
    if n < 2:
        return None
    mean = gaps.mean(axis=1)
    rng = np.random.default_rng(0)
    # Random sums of the deviations have the covariance of the mean; the last factor turns
    # normal into t with n - 1 degrees of freedom.
    weights = rng.normal(size=(DRAWS, n)) / math.sqrt(n * (n - 1))
    weights *= np.sqrt((n - 1) / rng.chisquare(n - 1, size=(DRAWS, 1)))
    draws = mean + weights @ (gaps - mean[:, None]).T
    holds = np.zeros(DRAWS, np.int64)
    start = 0
    for group in groups:
        stop = start + len(group)
        holds += (draws[:, start:stop] > -slack).all(axis=1)
        start = stop
    return float((holds >= n_needed).mean())
