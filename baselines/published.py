"""HMOH as its published program computes it, where a parameter of `HMOH` cannot say it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hmoh import HMOH, Codebook

__all__ = ["PublishedHMOH"]


class _PublishedCodebook(Codebook):
    """A codebook whose targets of label sets are those of the published program."""

    def _majority(self, votes: np.ndarray, labels: tuple[int, ...]) -> np.ndarray:
        votes = np.sign(votes)
        tied = votes == 0
        lead = votes.sum()
        if lead:
            # All ties, even if fewer would balance the code. Where there are fewer ties than the
            # lead, the program stops with an index error.
            votes[tied] = -np.sign(lead)
        elif tied.any():
            votes[:] = -1
            votes[: (tied.sum() + 1) // 2] = 1
        return votes.astype(np.int8)


@dataclass(eq=False)
class PublishedHMOH(HMOH):
    """HMOH with the published targets: columns in order, and the published rule for label sets.

    The target of a label set is the sign of the sum of its labels' columns. If more bits are +1
    than -1, all tied bits become -1, and the other way round. If they are equally many, the
    program overwrites the whole code: half as many bits as there are ties become +1, from the first
    bit on, and all others -1, whatever the labels are (lmbxmu/mycode,
    ONLINE_HASHING_UTILS/MY_ONLINE_HASHING_METHOD/HMOH.m, lines 62 to 98). Of the 45 pairs of ten
    labels, 36 thus share one target. Single labels get the targets of `HMOH`.

    Parameters and attributes are those of `HMOH`.

    Examples
    --------
    >>> y = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]])
    >>> model = PublishedHMOH(n_bits=4, random_state=0).fit(np.eye(3), y)
    >>> for labels, target in model.label_set_targets_.items():
    ...     print(labels, target)
    (0, 1) [ 1 -1  1 -1]
    (1, 2) [ 1 -1 -1 -1]
    (1, 3) [ 1 -1 -1 -1]
    """

    codebook: str = "ordered"

    _codebook_class = _PublishedCodebook
