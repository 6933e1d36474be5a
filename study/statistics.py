"""What does a sample show? One rule for every claim, cell, table and sentence.

A seed draws split, queries, stream and codebook anew from one data set, so given that data set the
values of the seeds are independent. Two methods are compared by their differences, seed by seed.

    value   d is our mean minus the printed value, which is a mean of three runs. Its standard error
            is s sqrt(1/n + 1/3), where s is our standard deviation over n seeds, and its intervals
            are Student's with n - 1 degrees of freedom. "reproduced" if the 90 % interval is within
            the margin on both sides of zero, "different" if the 95 % interval is outside it.
            `margin_of` has the margin of each unit
    order   "supported" if every comparison is significant in its direction (one-sided 5 %).
            "contradicted" if "all hold" is rejected at 2.5 %: by the largest t in the other
            direction, against its distribution under all sign flips of the seeds. With fewer than
            six seeds this cannot happen, because one of 2^n flips is more than 2.5 %

and "undecided" otherwise, which says why.

>>> judge_order([{"HMOH over LSH": [0.02, 0.03, 0.05, 0.02]}]).verdict
'supported'
>>> judge_value([0.84, 0.85, 0.84, 0.85], printed=0.847, margin=0.02).verdict
'reproduced'
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

__all__ = ["MARGINS", "RULE_VERSION", "Judgement", "expected_verdicts", "interval"]
__all__ += ["judge_order", "judge_summary", "judge_value", "margin_of", "mean_and_interval"]
__all__ += ["sd"]

# A difference that matters, by unit; another split or implementation may cause less. study/PROTOCOL
# says the same. That of a gain is at least this, and a tenth of what is printed.
MARGINS = {"mAP": 0.02, "precision": 0.02, "gain": 0.02, "exponent": 0.1}
GAIN_SHARE = 0.1
# Runs behind a number that the paper prints.
PAPER_RUNS = 3
# The level of "supported" and "reproduced", and that of "contradicted" and of one side of
# "different". False agreement and false disagreement then both have 5 %.
ALPHA_FOR, ALPHA_AGAINST = 0.05, 0.025
# Seeds up to which all sign flips are tried; of more seeds, as many random ones.
MOST_FLIPPED = 14
# A verdict is valid only for the rule that made it. Count up when the rule's code changes; its
# numbers count by themselves.
_NUMBERS = [MARGINS, GAIN_SHARE, PAPER_RUNS, ALPHA_FOR, ALPHA_AGAINST, MOST_FLIPPED]
RULE_VERSION = f"2-{hashlib.sha256(json.dumps(_NUMBERS).encode()).hexdigest()[:8]}"


def margin_of(unit: str, printed: float) -> float:
    """Return the difference from a printed value that matters.

    >>> margin_of("mAP", 0.847), margin_of("gain", 0.104), round(margin_of("gain", 0.386), 4)
    (0.02, 0.02, 0.0386)
    """
    return max(MARGINS[unit], GAIN_SHARE * abs(printed) if unit == "gain" else 0)


@dataclass(frozen=True)
class Judgement:
    """What a sample shows about one claim.

    Attributes
    ----------
    verdict : str
        "supported", "contradicted", "reproduced", "different" or "undecided".
    estimate, low, high, sd, n : float
        Mean, 95 % interval and standard deviation over n seeds: of our value, as the rule compares
        it with the printed one, or of the gap in the case that decides an order.
    p : float
        At most 0.05 if and only if there is a decision: the p-value for agreement or twice that
        against it, whichever is smaller.
    case : str
        The case that decides an order, such as "at 8 bits HMOH over MIHash".
    reason : str
        Why it is undecided: "too few seeds" or "too noisy" if the interval reaches farther than an
        effect that matters, else "too close".
    """

    verdict: str
    estimate: float
    low: float
    high: float
    n: int
    p: float
    sd: float = math.nan
    case: str = ""
    reason: str = ""


def _known(samples: Sequence[float]) -> np.ndarray:
    """Return the samples that are not nan. A seed that a method was not run with is nan."""
    samples = np.asarray(samples, dtype=np.float64)
    return samples[~np.isnan(samples)]


def sd(samples: Sequence[float]) -> float:
    """Return the standard deviation of a sample, nan for fewer than two values.

    >>> sd([1.0, 2.0, 3.0]), sd([1.0])
    (1.0, nan)
    """
    known = _known(samples)
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of independent samples, by Student's t.

    It is infinite for fewer than two samples. nan are left out.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    known = _known(samples)
    if len(known) < 2:
        return -math.inf, math.inf
    reach = student.isf(ALPHA_AGAINST, len(known) - 1) * sd(known) / math.sqrt(len(known))
    return float(known.mean() - reach), float(known.mean() + reach)


def mean_and_interval(samples: Sequence[float | None]) -> tuple[float, float, float]:
    """Return the mean and both ends of its 95 % interval; without None and nan.

    One sample has no interval, so both ends are the sample.
    """
    known = _known(samples)
    mean = _mean(known)
    return (mean, *interval(known)) if len(known) > 1 else (mean, mean, mean)


# ---- values --------------------------------------------------------------------------


def judge_value(
    samples: Sequence[float], printed: float, margin: float = MARGINS["mAP"]
) -> Judgement:
    """Judge whether the mean of the samples, one for each seed, is the printed value."""
    known = _known(samples)
    mean = float(known.mean()) if len(known) else math.nan
    return judge_summary(mean, sd(known), len(known), printed, margin)


def judge_summary(
    mean: float, deviation: float, n: int, printed: float, margin: float = MARGINS["mAP"]
) -> Judgement:
    """Judge a value by the mean and the standard deviation of its n seeds.

    >>> judge_summary(0.828, 0.006, 10, 0.847).verdict, judge_summary(0.8, 0.006, 10, 0.847).verdict
    ('undecided', 'different')
    """
    if n < 2:
        return Judgement("undecided", mean, -math.inf, math.inf, n, 1.0, reason="too few seeds")
    # Without any deviation the intervals are points; 1e-15 keeps the quotients finite.
    error = max(deviation, 1e-15) * math.sqrt(1 / n + 1 / PAPER_RUNS)
    d = mean - printed
    p_for = float(student.sf((margin - abs(d)) / error, n - 1))
    p_against = float(student.sf((abs(d) - margin) / error, n - 1))
    verdict = _verdict(p_for, p_against, "reproduced", "different")
    reach = float(student.isf(ALPHA_AGAINST, n - 1)) * error
    reason = ""
    if verdict == "undecided":
        reason = "too noisy" if reach > margin else "too close"
    p = min(1.0, p_for, 2 * p_against)
    return Judgement(verdict, mean, mean - reach, mean + reach, n, p, deviation, reason=reason)


def expected_verdicts(
    deviation: float,
    n: int,
    difference: float = 0.0,
    margin: float = MARGINS["mAP"],
    draws: int = 20_000,
) -> tuple[float, float]:
    """Return how often the rule says "reproduced" and "different", for normal values.

    ``difference`` is the true one; 0 is a perfect replication. Both our n seeds and the paper's
    three runs have the standard deviation given.

    >>> [round(expected_verdicts(s, n=10)[0], 1) for s in (0.006, 0.01, 0.02)]
    [1.0, 0.8, 0.1]
    """
    rng = np.random.default_rng(0)
    factor = math.sqrt(1 / n + 1 / PAPER_RUNS)
    d = abs(difference + deviation * factor * rng.normal(size=draws))
    error = deviation * factor * np.sqrt(rng.chisquare(n - 1, size=draws) / (n - 1))
    is_reproduced = d + student.isf(ALPHA_FOR, n - 1) * error <= margin
    is_different = d - student.isf(ALPHA_AGAINST, n - 1) * error > margin
    return float(is_reproduced.mean()), float(is_different.mean())


# ---- orders --------------------------------------------------------------------------

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
    The sign of a seed is flipped in all cases at once, so that cases which vary together cost
    little. A claim about most groups is supported if enough groups are, by the p-value
    (k - m + 1) p_(m) of Benjamini and Heller (Biometrics 2008) for m of k groups. It is
    contradicted if "all hold" is, for every choice of as many groups as the claim needs.
    """
    n_needed = len(groups) // 2 + 1 if most else len(groups)
    n_failing = len(groups) - n_needed + 1  # the claim is false if so many groups fail
    cases = [(number, name) for number, group in enumerate(groups) for name in group]
    gaps = [np.asarray(groups[number][name], dtype=np.float64) for number, name in cases]
    p_case = [_p_above(values, -slack) for values in gaps]
    worst = []  # for each group its weakest case
    for number in range(len(groups)):
        own = [(p_case[i], -_mean(gaps[i]), i) for i, case in enumerate(cases) if case[0] == number]
        # A case without a value is the weakest of all.
        worst.append(max((p, math.inf if math.isnan(d) else d, i) for p, d, i in own))
    p_for, _, decisive = sorted(worst)[n_needed - 1]
    p_for = min(1.0, n_failing * p_for)

    t, t_flipped = _flipped(gaps, slack)
    group_of = np.array([number for number, _ in cases])
    p_against = 0.0
    for chosen in itertools.combinations(range(len(groups)), n_needed):
        own = np.isin(group_of, chosen)
        # Rounding must not make a flip differ from itself.
        is_as_large = -t_flipped[:, own].min(axis=1) >= -t[own].min() - 1e-9
        if is_as_large.mean() >= p_against:
            p_against = float(is_as_large.mean())
            against = np.flatnonzero(own)[t[own].argmin()]
    verdict = _verdict(p_for, p_against, "supported", "contradicted")
    if verdict == "contradicted":
        decisive = against
    known = _known(gaps[decisive])
    low, high = interval(known)
    reason = ""
    if verdict == "undecided":
        reason = "too few seeds" if high - low > 2 * MARGINS["mAP"] else "too close"
    p = min(1.0, p_for, 2 * p_against)
    name = cases[decisive][1]
    return Judgement(verdict, _mean(known), low, high, len(known), p, sd(known), name, reason)


def _p_above(samples: np.ndarray, bound: float) -> float:
    """Return the p-value of the t-test that the mean is above a bound; 1 if it cannot be tested."""
    known = _known(samples)
    if len(known) < 2:
        return 1.0
    gap = known.mean() - bound
    error = max(sd(known) / math.sqrt(len(known)), 1e-15 * max(1e-9, abs(known).max()))
    return float(student.sf(gap / error, len(known) - 1))


def _flipped(gaps: list[np.ndarray], slack: float) -> tuple[np.ndarray, np.ndarray]:
    """Return t of the cases (c,), and of the cases with signs of seeds flipped (f, c)."""
    n = max(len(values) for values in gaps)
    G = np.full((len(gaps), n), np.nan)
    for row, values in zip(G, gaps, strict=True):
        row[: len(values)] = values + slack
    counts = (~np.isnan(G)).sum(axis=1)
    G = np.nan_to_num(G)
    if n <= MOST_FLIPPED:
        signs = np.array(list(itertools.product([1.0, -1.0], repeat=n)))
    else:
        signs = np.random.default_rng(0).choice([1.0, -1.0], size=(1 << MOST_FLIPPED, n))
        signs[0] = 1  # the seeds as they are
    # The sum of squares does not change with signs: t depends on r = sum / sqrt(n sum of squares).
    r = signs @ G.T / np.sqrt(np.maximum(counts * (G**2).sum(axis=1), 1e-300))
    t = r * np.sqrt(np.maximum(counts - 1, 0) / np.maximum(1 - r**2, 1e-12))
    return t[0], t


def _mean(samples: Sequence[float]) -> float:
    known = _known(samples)
    return float(known.mean()) if len(known) else math.nan


def _verdict(p_for: float, p_against: float, true: str, false: str) -> str:
    if p_for <= ALPHA_FOR:
        return true
    return false if p_against <= ALPHA_AGAINST else "undecided"
