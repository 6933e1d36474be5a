"""Switch library calls off while an exercise is checked, so that a student writes them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

__all__ = ["switched_off"]


@contextmanager
def switched_off(names: dict, *calls: str) -> Iterator[None]:
    """Make library calls raise an error that says to write them.

    Parameters
    ----------
    names : dict
        ``globals()`` of the notebook. A call that it has imported by name is switched off too.
    *calls : str
        Module and name, such as "numpy.packbits" or "hmoh.hadamard".

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
        for call in calls:
            module_name, _, name = call.rpartition(".")
            module = importlib.import_module(module_name)
            original = getattr(module, name)
            refusal = _refusal(call)
            stack.enter_context(patch.object(module, name, refusal))
            for own, value in list(names.items()):
                if value is original:
                    # Not patch.dict, which would also drop what the block assigns.
                    names[own] = refusal
                    stack.callback(names.__setitem__, own, original)
        yield


def _refusal(call: str):
    def refuse(*args, **kwargs):
        raise AssertionError(f"{call} does the whole task: write it without this call.")

    return refuse
