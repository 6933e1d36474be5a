"""HadamardRidge, ridge regression to the target codes of HMOH.

It is ours. Neither the paper nor its benchmark has it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hmoh import (
    COUNT,
    CodebookHasher,
    Form,
    NotFittedError,
    check_integer,
    check_real,
)

__all__ = ["HadamardRidge"]

BLOCK = 512  # samples that are added to the sums at a time
LEAST_RIDGE = 1e-8  # a smaller one is lost in the rounding of the sums
NEVER = 2**62  # a memory that no stream reaches
LARGEST = 1e100  # of a sum in a file; the square of float32 times any count is smaller


class HadamardRidge(CodebookHasher):
    """Ridge regression to the target codes of HMOH, exact at any time of the stream.

    This method is ours, not the paper's. Let z_i be the features of sample i, m of them, and c_i
    the target code of its label (or labels, as in HMOH). The hash functions W (m x r) minimise

        sum_i ||W^T z_i - c_i||^2 + lambda ||W||^2,    lambda = ridge trace(G) / m ,

    so that W solves the normal equations

        (G + lambda I) W = S^T C,    G = sum_i z_i z_i^T,    S_k = the sum of z_i of class k ,

    where row k of C is the target code of class k. Of several labels, each distinct set is a
    class. trace(G) / m is the sum over the samples of the mean square of a feature. So the effect
    of the ridge depends neither on the length of the stream nor on the scale of the features.

    Only G and S are kept. They do not depend on target codes or code length, so `recoded` gives
    the model of another length or codebook without the stream. They are sums, so the order of the
    samples has no effect, and `merge` adds two models. A new class starts with a sum of zero.

    With memory n, all samples have the weight 1 up to sample n. From then on G becomes
    (1 - 1/n) G + z z^T with every sample, and S likewise. Then G / min(t, n) is after t samples
    the average that HMOH defines: A += (z z^T - A) max(1/t, 1/n). The factor min(t, n) has no
    effect on W.

    Samples enter the sums in blocks of 512, counted from the start of the stream. Those of the
    last, incomplete block are kept, and are added when W is asked for. So the cuts between calls
    have no effect, not even on the rounding. Only a feature map may round differently in calls of
    few samples, as `RBF` does up to 16.

    The default ridge was chosen on four sets that ship with the project (MNIST and three
    stand-ins), at 32 bits, with two seeds, for `UnitLength` alone and before a centred `RBF` of
    1,000 anchors. Models learned from the first half of a stream, and the second half was searched.
    The queries of the protocol had no part in it. Of nine values from 1e-4 to 1 the default has
    the best mean, and smaller ones are nearly as good. Kernel features want it small. Linear
    features would rather have .03 to .1. With them the method is about as good as HMOH, and worse
    on MNIST. `python -m study.choose_ridge` prints the table. The notebook 12_beyond compares
    it with all methods, also on a set that had no part in the choice.

    Cost: m^2 / 2 multiplications per sample, in matrix products of float64. The perceptron of
    HMOH needs m r to 3 m r, of float32. A solution needs about m^3 / 3 + m^2 r more. It is computed
    when a code is asked for, and kept until the next sample. The state has 8 m (m + classes) bytes,
    and the last block up to 2,048 m, where HMOH has 16 m r.

    Parameters
    ----------
    n_bits : int
        r.
    ridge : float
        lambda, relative to the mean square of the features.
    memory : int, optional
        How many samples are remembered, as in `HMOH`: all alike by default, else about the last
        n. "auto" is not supported.
    codebook, n_classes
        As in `HMOH`.
    feature_map, warmup, random_state
        As in `HMOH`. Matrix products run on the threads of numpy's BLAS.

    Attributes
    ----------
    weights_ : (m, n_bits) float32
    targets_, label_set_targets_, n_seen_, feature_map_
        As in `HMOH`.

    Notes
    -----
    Features (after the maps) between 1e-20 and 1e15 in size are safe. One thread may learn while
    others encode, as in `HMOH`.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> y = np.array(["cat", "dog"] * 50)
    >>> model = HadamardRidge(n_bits=4, random_state=0).fit(X, y)
    >>> np.array_equal(np.sign(model.decision_function(X[:1])[0]), model.targets_["cat"])
    True

    Two models learn from two parts of a stream. Together they are the model of the whole:

    >>> parts = [HadamardRidge(n_bits=4, random_state=0) for _ in range(2)]
    >>> for part, rows in zip(parts, (slice(0, 30), slice(30, 100))):
    ...     _ = part.partial_fit(X[rows], y[rows], classes=["cat", "dog"])
    >>> np.allclose(parts[0].merge(parts[1]).weights_, model.weights_)
    True
    """

    _saved = (
        *CodebookHasher._saved,
        "_gram",
        "_sums",
        "_n_summed",
        "_recent",
        "_recent_rows",
    )

    def __init__(
        self,
        n_bits: int = 32,
        feature_map=None,
        ridge: float = 1e-3,
        memory: int | None = None,
        codebook: str = "random",
        n_classes: int | None = None,
        warmup: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.n_bits = n_bits
        self.feature_map = feature_map
        self.ridge = ridge
        self.memory = memory
        self.codebook = codebook
        self.n_classes = n_classes
        self.warmup = warmup
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_real(self.ridge, "ridge", least=LEAST_RIDGE, most=1e8)
        check_integer(self.memory, "memory", optional=True)

    # Learning.

    def _start(self, Z: np.ndarray) -> None:
        super()._start(Z)
        self._clear(Z.shape[1])

    def _clear(self, m: int) -> None:
        """Forget all samples."""
        # G, and S with a row for each target of the codebook. New targets may have none yet.
        self._gram = np.zeros((m, m))
        self._sums = np.zeros((0, m))
        self._n_summed = 0
        # The samples of the last block, and the rows of their targets.
        self._recent = np.zeros((0, m), np.float32)
        self._recent_rows = np.zeros(0, np.int64)
        # W, from when it is first asked for. Every other state has a dictionary of its own.
        self._hashing = {}

    def _learn(self, Z: np.ndarray, y: np.ndarray) -> None:
        rows = self._target_rows(y)
        gram = None
        for block, block_rows in self._blocks(Z, rows):
            if len(block) < BLOCK:
                # A copy, because Z may be the array of the caller.
                self._recent = block.copy()
                self._recent_rows = block_rows.copy()
                break
            if gram is None:
                gram, sums = self._copied_sums()
            self._add(gram, sums, block, block_rows)
            self._n_summed += BLOCK
        if gram is not None:
            self._gram = gram
            self._sums = sums
        self._hashing = {}

    def _blocks(self, Z: np.ndarray, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the whole blocks of samples, and then the incomplete one, which may be empty."""
        n = min(BLOCK - len(self._recent), len(Z))
        first = np.concatenate([self._recent, Z[:n]])
        yield first, np.concatenate([self._recent_rows, rows[:n]])
        if len(first) == BLOCK:
            # One more start, so that the last block is incomplete.
            for start in range(n, len(Z) + BLOCK, BLOCK):
                block = slice(start, start + BLOCK)
                yield Z[block], rows[block]

    def _copied_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return copies of G and S, with a row of S for each target of the codebook."""
        sums = np.zeros((self._book.n_targets, len(self._gram)))
        sums[: len(self._sums)] = self._sums
        return self._gram.copy(), sums

    def _add(self, gram, sums, Z: np.ndarray, rows: np.ndarray) -> None:
        """Add samples that follow those in the sums to G and S, in place."""
        Z = Z.astype(np.float64)
        targets, index = np.unique(rows, return_inverse=True)
        member = (index == np.arange(len(targets))[:, None]).astype(np.float64)
        if self.memory is not None:
            keep, root = self._weights(len(Z))
            gram *= keep
            sums *= keep
            Z *= root[:, None]
            member *= root
        # A product of a matrix with its own transpose takes half the time of another one.
        gram += Z.T @ Z
        sums[targets] += member @ Z

    def _weights(self, n: int) -> tuple[float, np.ndarray]:
        """Return the weight of the sums, and the roots of the weights of n samples after them."""
        decay = 1 - 1 / self.memory
        # The age of a sample counts from sample `memory` on, where forgetting begins.
        position = self._n_summed + np.arange(n + 1)
        position = np.maximum(position, min(int(self.memory), NEVER))
        age = position[-1] - position
        weight = decay ** age.astype(np.float64)
        return float(weight[0]), np.sqrt(weight[1:])

    # Hash functions.

    def _hash_functions(self) -> np.ndarray:
        """Return W, (m, n_bits) float32."""
        if self._n_summed + len(self._recent) == 0:
            reason = "this model has learned from no sample"
            raise NotFittedError(f"{reason}; pass some to partial_fit.")
        if "W" not in self._hashing:
            # Another thread may do the same for the same state. The results are equal.
            self._hashing["W"] = self._solve().astype(np.float32)
        return self._hashing["W"]

    def _solve(self) -> np.ndarray:
        """Return the solution of the normal equations, (m, n_bits) float64."""
        gram, sums = self._copied_sums()
        self._add(gram, sums, self._recent, self._recent_rows)
        C = self._book.table[: len(sums), : self.n_bits]
        m = len(gram)
        mean_square = np.trace(gram) / m
        if mean_square == 0:
            return np.zeros((m, self.n_bits))
        gram[np.diag_indices(m)] += self.ridge * mean_square
        return np.linalg.solve(gram, sums.T @ C.astype(np.float64))

    def _decide(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self._hash_functions()

    @property
    def weights_(self) -> np.ndarray:
        """Return the hash functions, (m, n_bits) float32."""
        return self._snapshot()._hash_functions().copy()

    # Models from models.

    def recoded(
        self,
        n_bits: int | None = None,
        codebook: str | None = None,
        ridge: float | None = None,
    ) -> HadamardRidge:
        """Return the model that the same stream would have given with other parameters.

        It learns on from here, apart from this one. What is None stays as it is.

        Examples
        --------
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
        >>> y = np.array(["cat", "dog"] * 50)
        >>> short, long = (HadamardRidge(n, random_state=0).fit(X, y) for n in (4, 16))
        >>> np.array_equal(short.recoded(n_bits=16).weights_, long.weights_)
        True
        """
        model = self._branched()
        given = {"n_bits": n_bits, "codebook": codebook, "ridge": ridge}
        vars(model).update({k: value for k, value in given.items() if value is not None})
        model._check_params()
        model._begun = model._settings()
        model._checked = model._parameter_objects()
        keys = list(model._book.targets)
        book = model._new_codebook()
        book = book.add([key for key in keys if not isinstance(key, tuple)])
        model._book = book.add_sets([key for key in keys if isinstance(key, tuple)])
        model._hashing = {}
        return model

    def blank(self) -> HadamardRidge:
        """Return a model with the same fitted maps and codebook that has seen no sample.

        Models for the parts of a stream need equal maps to be merged. So let one model see the
        first samples, make a blank one for each part, and merge these into the first one.
        """
        model = self._branched()
        model._clear(len(model._gram))
        model.n_seen_ = 0
        return model

    def _branched(self) -> HadamardRidge:
        """Return a model that learns apart from this one."""
        model = self._snapshot()._shallow_copy()
        model._check_unchanged()
        # The two may learn in two threads, so they share no table.
        model._book = model._book.copy()
        model.feature_map = copy.deepcopy(model.feature_map)
        model.feature_map_ = copy.deepcopy(model.feature_map_)
        return model

    def merge(self, other: HadamardRidge) -> HadamardRidge:
        """Add what another model has learned from another stream.

        The result is the model of both streams, up to rounding. Both need the same parameters and
        seed, equal fitted maps (see `blank`), and the same target codes. Targets follow the order
        in which labels arrive. So pass all labels as ``classes`` at the first call of both, where
        they are not columns of 0/1. Labels known to one of the two only are accepted if those of
        the other one are the first of them, in the same order. Their targets are then the same as
        in one stream. A model with `memory` cannot be merged, because what it has forgotten
        depends on the order of the samples.

        Parameters
        ----------
        other : HadamardRidge
            It is not changed.
        """
        if not isinstance(other, HadamardRidge):
            kind = type(other).__name__
            raise TypeError(f"other is a {kind}; pass a HadamardRidge.")
        other = other._shallow_copy()  # one state, also while another thread learns
        for one in (self, other):
            one._check_fitted()
            one._check_unchanged()
        self._check_mergeable(other)
        model = self._shallow_copy()
        if other._book.n_targets > self._book.n_targets and not self._n_columns:
            model._book = other._book.copy()
        model._book = model._book.add_sets(list(other.label_set_targets_))
        gram, sums = model._copied_sums()
        their_gram, their_sums = other._copied_sums()
        other._add(their_gram, their_sums, other._recent, other._recent_rows)
        gram += their_gram
        sums[model._book.rows(list(other._book.targets))] += their_sums
        model._gram = gram
        model._sums = sums
        model._n_summed += other._n_summed + len(other._recent)
        model.n_seen_ += other.n_seen_
        model._hashing = {}
        self.__dict__ = vars(model)
        return self

    def _check_mergeable(self, other: HadamardRidge) -> None:
        """Raise an error with the reason if the models of two streams cannot become one."""
        for one in (self, other):
            if one.memory is not None:
                reason = f"memory={one.memory} depends on the order of one stream"
                raise ValueError(f"{reason}; leave memory out to merge models.")
        for name, now in self._begun.items():
            theirs = other._begun[name]
            if name not in ("feature_map", "warmup", "random_state") and now != theirs:
                raise ValueError(
                    f"{name} is {now} here and {theirs} in the other model; pass the same to both."
                )
        form = (self._text_labels, self._n_columns)
        if form != (other._text_labels, other._n_columns):
            reason = "the labels of the two models have different forms"
            raise ValueError(f"{reason}; pass both integers, strings or as many columns.")
        widths = (self.n_features_in_, len(self._gram))
        theirs = (other.n_features_in_, len(other._gram))
        names = [vars(one).get("feature_names_in_") for one in (self, other)]
        if widths != theirs or not _are_equal(*names):
            reason = f"the features are {widths[0]} here and {theirs[0]} in the other model"
            if widths == theirs:
                reason = "the columns of the two models have different names"
            raise ValueError(f"{reason}; pass the same features to both.")
        if not _are_equal(*(_fitted(one.feature_map_) for one in (self, other))):
            reason = "the feature maps of the two models were fitted on different samples"
            way = "create both by blank() of one model, or pass features that are mapped"
            raise ValueError(f"{reason}; {way}.")
        self._check_same_targets(other)

    def _check_same_targets(self, other: HadamardRidge) -> None:
        if self._seed != other._seed:
            reason = f"random_state is {self.random_state} here and {other.random_state} in"
            reason += " the other model, so their seeds differ"
            raise ValueError(f"{reason}; pass the same int to both.")
        ours, theirs = (list(one.targets_) for one in (self, other))
        n = min(len(ours), len(theirs))
        same_first = ours[:n] == theirs[:n]
        same_number = self._book.n_labels == other._book.n_labels
        known, given = self._book.targets, other._book.targets
        same_codes = all(_are_equal(known[key], given[key]) for key in known if key in given)
        if not (same_first and same_number and same_codes):
            reason = "the target codes differ, because labels arrived in different orders"
            way = "pass all labels as classes at the first call of both"
            raise ValueError(f"{reason} ({ours[:5]} and {theirs[:5]} first); {way}.")

    # Copies and files.

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        if "_hashing" in state:
            # Another thread may write into the other one.
            state["_hashing"] = {}
        return state

    def _state(self) -> dict:
        state = super()._state()
        if "_gram" in state:
            _, state["_sums"] = self._copied_sums()
        return state

    def _restore(self, state: dict) -> None:
        super()._restore(state)
        self._hashing = {}

    def _forms(self, m: int, labels: Form) -> dict[str, Form]:
        total = Form("float64", (m, m), -LARGEST, LARGEST)
        return super()._forms(m, labels) | {
            "_gram": total,
            # "targets" is the number of targets of the codebook.
            "_sums": replace(total, shape=("targets", m)),
            "_n_summed": COUNT,
            "_recent": Form("float32", ("recent", m)),
            "_recent_rows": Form("int64", ("recent",), least=0),
        }

    def _check_state(self, state: dict, started: bool) -> None:
        super()._check_state(state, started)
        if not started:
            return
        gram = state["_gram"]
        if gram.diagonal().min() < 0 or not np.array_equal(gram, gram.T):
            raise ValueError("_gram is not the product of a matrix with its transpose")
        n = len(state["_recent"])
        if n >= BLOCK:
            raise ValueError(f"_recent has {n} rows, not fewer than {BLOCK}")
        if n and state["_recent_rows"].max() >= len(state["_sums"]):
            raise ValueError("_recent_rows has rows that the codebook has not")
        n_waiting = len(state.get("_X", ()))
        if state["n_seen_"] != state["_n_summed"] + n + n_waiting:
            raise ValueError(f"n_seen_ is {state['n_seen_']}, but the sums say otherwise")


def _fitted(feature_map) -> list:
    """Return the kinds of fitted maps, and what they have learned."""
    if feature_map is None:
        return []
    maps = feature_map if isinstance(feature_map, (list, tuple)) else [feature_map]
    found = []
    for part in maps:
        state = part.get_state() if hasattr(part, "get_state") else vars(part)
        found.append([type(part), list(state), *state.values()])
    return found


def _are_equal(a, b) -> bool:
    """Return whether two values, arrays or lists of them are equal."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return type(a) is type(b) and a == b
