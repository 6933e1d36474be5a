"""LSH, locality-sensitive hashing by random hyperplanes (Charikar, STOC 2002).

>>> import numpy as np
>>> LSH(n_bits=16, random_state=0).fit_transform(np.eye(3)).shape
(3, 2)
"""

from __future__ import annotations

import numpy as np

from .linear import LinearHasher

__all__ = ["LSH"]


class LSH(LinearHasher):
    """Locality-sensitive hashing: random hyperplanes that are never trained.

    It is the reference for all methods that learn. W ~ N(0, 1), and its columns are scaled to
    unit length. Two samples at an angle a then differ in a share a / pi of their bits. LSH,
    OSH, MIHash, BSODH and HCOH with the same ``random_state`` start at the same W. Labels are
    not used.

    mAP on MNIST at 8, 16, 32, 48, 64 and 128 bits is .179 .208 .260 .293 .321 .370. These are
    means of ten seeds, as for all methods of this folder but MIHash. The paper has no such row.

    Parameters
    ----------
    n_bits : int
    feature_map, warmup, random_state
        As in `HMOH`.

    Attributes
    ----------
    weights_, n_seen_, feature_map_
        As in `HMOH`.

    References
    ----------
    M. S. Charikar. Similarity Estimation Techniques from Rounding Algorithms. STOC 2002.

    Examples
    --------
    >>> LSH(n_bits=16, random_state=0).fit_transform(np.eye(3)).shape
    (3, 2)
    """

    needs_labels = False

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        warmup: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits = n_bits
        self.feature_map = feature_map
        self.warmup = warmup
        self.random_state = random_state

    def _learn(self, Z: np.ndarray, y: None) -> None:
        """Do nothing, because the hyperplanes stay as they were drawn."""
