"""Check one function of a student alone: without library calls, and without the other functions."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pkgutil import resolve_name
from unittest.mock import patch

__all__ = [
    "explained",
    "explanation",
    "few_steps",
    "one_line_errors",
    "replaced",
    "returned",
    "switched_off",
]


class OneLine(Exception):
    """An error of which Jupyter shows the message instead of a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [" ".join(str(self).split())]


def one_line_errors() -> None:
    """Let Jupyter show what a check finds in one line, without a traceback.

    A student's cell raises NotImplementedError until it is answered, and its check then fails deep
    inside of folded code. Cells without an assert, such as a student's own, keep their tracebacks.
    """
    from IPython import get_ipython  # only notebooks need it

    def show(shell, kind, error, trace, tb_offset=None):
        frames = traceback.extract_tb(trace)
        cells = [frame for frame in frames if _is_cell(frame.filename)]
        message = explanation(error, cells, shell.user_ns["In"][-1])
        shown = error if message is None else OneLine(message)
        shell.showtraceback((kind, shown, trace))

    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((Exception,), show)


def _is_cell(filename: str) -> bool:
    """Tell whether this is the file that IPython names for a cell."""
    return "ipykernel" in filename or filename.startswith("<ipython-input")


def explanation(error: Exception, frames: list, cell: str) -> str | None:
    """Return what to tell a student of an error, or None if its traceback says it best.

    Parameters
    ----------
    error : Exception
        What was raised.
    frames : list of traceback.FrameSummary
        The lines of notebook cells on the way to it, the outermost first.
    cell : str
        The code of the cell that was run.

    Examples
    --------
    >>> explanation(AssertionError("k is 2, but 3 is needed"), [], "assert k == 3")
    'k is 2, but 3 is needed'
    >>> frames = [traceback.FrameSummary("cell 5", 2, "<module>", line="assert half(4) == 2")]
    >>> frames.append(traceback.FrameSummary("cell 4", 3, "half", line="return x / too"))
    >>> explanation(NameError("name 'too' is not defined"), frames, "assert half(4) == 2")
    "`half` stops at `return x / too`: NameError: name 'too' is not defined."
    >>> explanation(NameError("name 'too' is not defined"), frames, "half(4)") is None
    True
    """
    if isinstance(error, NotImplementedError):
        name = frames[-1].name if frames else "<module>"
        task = "This task" if name.startswith("<") else f"`{name}`"
        return (
            f"{task} is not answered yet: write your code where it says YOUR CODE HERE, delete "
            "the line `raise NotImplementedError`, run that cell, and run this one again."
        )
    if isinstance(error, AssertionError) and str(error):
        return str(error)
    if "assert " not in cell or not frames:
        return None
    said = f"{type(error).__name__}: {error}".rstrip(".: ")
    last = frames[-1]
    if last.filename != frames[0].filename:
        return f"`{last.name}` stops at `{last.line}`: {said}."
    return (
        f"the check stops at `{last.line}`: {said}: "
        "does your function return what its docstring says, for all arguments?"
    )


def returned(function: Callable, *arguments) -> None:
    """Call a student's function, and say so if it returns nothing.

    Examples
    --------
    >>> def half(x):
    ...     x / 2
    >>> returned(half, 4)
    Traceback (most recent call last):
        ...
    AssertionError: half returns nothing (None): end it with `return` and the result.
    """
    assert function(*arguments) is not None, (
        f"{function.__name__} returns nothing (None): end it with `return` and the result."
    )


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
    AssertionError: numpy.packbits does the whole task: build it yourself, without this call.
    """
    with ExitStack() as stack:
        # All are found first: a class that is switched off has no methods any more.
        found = []
        for call in calls:
            owner_name, _, name = call.rpartition(".")
            try:
                found.append((call, resolve_name(owner_name), name))
            except ImportError:
                continue  # a student without this package cannot call it
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
    >>> with replaced(globals(), half=lambda x: x / 2, other=abs):
    ...     quarter(4), other(-1)
    (1.0, 1)
    >>> half(9), "other" in globals()
    (3.0, False)
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
        raise AssertionError(f"{call} does the whole task: build it yourself, without this call.")

    return refuse


@contextmanager
def explained(function: str, advice: str) -> Iterator[None]:
    """Turn an error inside of a student's compiled function into one line that names it.

    numba reports a typo in dozens of lines, or as a TypeError without a place.

    Parameters
    ----------
    function : str
        The name of the student's function.
    advice : str
        What to do if numba cannot compile it, or if an index leaves its array.

    Examples
    --------
    >>> def half(x):
    ...     return x / too
    >>> with explained("half", "use numbers only"):
    ...     half(4)
    Traceback (most recent call last):
        ...
    AssertionError: half stops at `return x / too`: NameError: name 'too' is not defined.
    """
    try:
        yield
    except Exception as error:
        if type(error) is NotImplementedError or (type(error) is AssertionError and str(error)):
            raise  # not answered yet, or explained already
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.name == function]
        code = frames[-1].line if frames else ""
        said = [line.strip() for line in str(error).splitlines() if line.strip()] or ["?"]
        start = f"{function} stops"
        end = f"{type(error).__name__}: {said[0]}"
        place = getattr(error, "loc", None)
        if place is not None:  # of numba, which names its step first, and then the cause
            code = linecache.getline(place.filename, place.line).strip()
            start = f"numba cannot compile {function}"
            end = " ".join(said[1:3] if ">>>" in " ".join(said[2:3]) else said[1:2])
        end = end.rstrip(".")
        if place is not None or isinstance(error, IndexError):
            end += f": {advice}"
        start += f" at `{code}`" if code else ""
        raise AssertionError(f"{start}: {end}.") from None


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
