"""The size of all runs: the paper's, or small ones to try things out.

The environment variable HMOH_PROFILE chooses it. "paper" (the default) is the paper's protocol with
ten seeds. "quick" uses small parts of the same data sets, two code lengths and one seed.
"""

import os
from typing import TypeVar

__all__ = ["BITS", "PROFILE", "QUICK", "SEEDS", "by_profile"]

Size = TypeVar("Size")

PROFILE = os.environ.get("HMOH_PROFILE", "paper")
if PROFILE not in ("paper", "quick"):
    raise ValueError(
        f'HMOH_PROFILE={PROFILE!r} is unknown; set it to "paper" or "quick", or unset it.'
    )
QUICK = PROFILE == "quick"


def by_profile(paper: Size, quick: Size) -> Size:
    """Return the first value in the paper profile, the second in the quick one."""
    return quick if QUICK else paper


BITS = by_profile([8, 16, 32, 48, 64, 128], [16, 64])
SEEDS = by_profile(list(range(10)), [0])
