"""Check one function of a student alone: without library calls, and without the other functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pkgutil import resolve_name
from unittest.mock import patch

__all__ = ["few_steps", "replaced", "switched_off"]


@contextmanager
def switched_off(names: dict, *calls: str) -> Iterator[None]:
    """Make library calls raise an error that says to write them.

    Parameters
    ----------
    names : dict
        ``globals()`` of the notebook. A call that it has imported by name is switched off too.
    *calls : str
        Module and name, such as "numpy.packbits" or "hmoh.hadamard", or class and method, such as
        "metrics.HammingHistogram.precision_at_k".

    Examples
    --------
    >>> import numpy as np
    >>> with switched_off(globals(), "numpy.packbits"):
    ...     np.packbits([1, 0])
    Traceback (most recent call last):
        ...
    AssertionError: numpy.packbits does the whole task: write it without this call.
    """
    with ExitStack() as stack:
        # All are found first: a class that is switched off has no methods any more.
        found = []
        for call in calls:
            owner_name, _, name = call.rpartition(".")
            found.append((call, resolve_name(owner_name), name))
        for call, owner, name in found:
            if not hasattr(owner, name):
                continue  # numpy 1.26 has no bitwise_count
            original = getattr(owner, name)
            refusal = _refusal(call)
            stack.enter_context(patch.object(owner, name, refusal))
            for own, value in list(names.items()):
                if value is original:
                    # Not patch.dict, which would also drop what the block assigns.
                    names[own] = refusal
                    stack.callback(names.__setitem__, own, original)
        yield


@contextmanager
def replaced(names: dict, **functions) -> Iterator[None]:
    """Put other functions in the place of the student's, so that a check judges only one of them.

    Parameters
    ----------
    names : dict
        ``globals()`` of the notebook.
    **functions
        Name and function. A name that the notebook does not have is removed at the end.

    Examples
    --------
    >>> def half(x):
    ...     return x / 3
    >>> def quarter(x):
    ...     return half(half(x))
    >>> with replaced(globals(), half=lambda x: x / 2):
    ...     quarter(4)
    1.0
    """
    with ExitStack() as stack:
        for name, function in functions.items():
            if name in names:
                stack.callback(names.__setitem__, name, names[name])
            else:
                stack.callback(names.pop, name, None)
            names[name] = function
        yield


def _refusal(call: str):
    def refuse(*args, **kwargs):
        raise AssertionError(f"{call} does the whole task: write it without this call.")

    return refuse


@contextmanager
def few_steps(n: int, advice: str) -> Iterator[None]:
    """Stop a student's function that loops for too long, with an error instead of a wait.

    Only Python lines are counted. An array that is too large for any memory is stopped too.

    Parameters
    ----------
    n : int
        Lines of Python that may run in the functions that the block calls.
    advice : str
        The message of the AssertionError.

    Examples
    --------
    >>> with few_steps(1000, "a loop over all items: use the closed form."):
    ...     any(i < 0 for i in range(10**15))
    Traceback (most recent call last):
        ...
    AssertionError: a loop over all items: use the closed form.
    """
    n_left = n

    def count(frame, event, argument):
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise AssertionError(advice)
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    except MemoryError:
        raise AssertionError(advice) from None
    finally:
        sys.settrace(before)
