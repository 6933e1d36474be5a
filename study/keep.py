"""Keep finished runs: what a run depends on, its file, and the processes that make many.

A kept run is valid while nothing that it depends on has changed: the code that it imports, the
versions of the libraries that compute it, the data, the settings of its method, and its arguments.
Comments, docstrings and formatting of the code do not count, nor do other methods, or metrics that
are derived from a kept record.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

__all__ = ["code_files", "code_version", "kept", "make_all", "plain", "plain_values", "run_key"]
__all__ += ["write_atomically"]

LIBRARIES = ("numpy", "numba", "scikit-learn")
# Their content belongs to the key: the settings of a method, and the profile.
LEFT_OUT = ("study/__init__.py", "study/profile.py", "baselines/__init__.py")


# ---- what a run depends on -----------------------------------------------------------


def code_files(root: Path, *starts: str) -> list[Path]:
    """Return modules of a folder, and all that they import from it at the top, but `LEFT_OUT`."""
    found: set[Path] = set()
    waiting = [root / start for start in starts]
    while waiting:
        path = waiting.pop()
        if path in found or path.relative_to(root).as_posix() in LEFT_OUT:
            continue
        found.add(path)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{name}" for name in names)]
            folder = path.parent if getattr(node, "level", 0) else root
            files = (folder / f"{name.replace('.', '/')}.py" for name in names)
            waiting += [file for file in files if file.exists()]
    return sorted(found)


def code_version(root: Path, *starts: str) -> str:
    """Return a hash of the versions of `LIBRARIES`, and of the code of `code_files`."""
    digest = hashlib.sha256()
    for name in LIBRARIES:
        # A library that is not there cannot have computed anything.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{name} {importlib.metadata.version(name)}\n".encode())
    for path in code_files(root, *starts):
        code = _without_docstrings(path.read_text(encoding="utf-8"))
        digest.update(f"{path.relative_to(root).as_posix()}\n{code}\n".encode())
    return digest.hexdigest()


def _without_docstrings(source: str) -> str:
    """Return the syntax tree of a module as text; it has no comments and no line numbers.

    What is decorated with `scores.derived` is left out, because it is computed from kept records.
    """
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _is_derived(node)]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def _is_derived(node: ast.stmt) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(ast.unparse(decorator).startswith("derived(") for decorator in decorators)


def plain(value):
    """Return a parameter as JSON values that say all of its content.

    Texts, numbers, True, False and None stay as they are. A numpy number becomes a Python number,
    and a tuple becomes a list. An array becomes its dtype, its shape and the sha256 of its bytes.
    An object with `get_params`, such as a feature map, becomes its class name and its parameters.

    >>> from kernels import RBF
    >>> plain((RBF(n_anchors=50), np.float32(0.5)))  # doctest: +NORMALIZE_WHITESPACE
    [{'name': 'RBF', 'n_anchors': 50, 'divisor': 10.0, 'center': False, 'anchors': 'first',
      'random_state': None}, 0.5]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "sha256": hashlib.sha256(value.tobytes()).hexdigest(),
        }
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {
            "name": type(value).__name__,
            **plain_values(value.get_params(deep=False)),
        }
    raise TypeError(
        f"{value!r} is a {type(value).__name__}, whose content cannot be compared; "
        "pass a number, a text, True, False, None, an array of numbers, "
        "an object with get_params, or a list of these."
    )


def plain_values(params: dict) -> dict:
    """Return parameters by name as `plain` values."""
    return {name: plain(value) for name, value in params.items()}


def run_key(job: dict, *versions: str) -> str:
    """Return a short hash of the arguments of a run, and of the versions it depends on."""
    arguments = plain_values(job | {"params": None})
    arguments["params"] = plain_values(job.get("params") or {})
    text = json.dumps([arguments, *versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


# ---- files and processes -------------------------------------------------------------


def kept(path: Path, make: Callable[[], dict | list]) -> dict | list:
    """Return what a file keeps as JSON; if it is missing, what `make` gives, which is written."""
    if not path.exists():
        made = make()
        write_atomically(path, json.dumps(made))
        return made
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        way = "delete it, and it is made again"
        raise ValueError(f"{path} is damaged ({error}); {way}.") from None


def make_all(
    make: Callable,
    jobs: Sequence,
    n_workers: int | None = 1,
    order: Iterable[int] | None = None,
    text: str = "",
) -> list:
    """Return what a function gives for every job, in order, behind a progress bar.

    They are begun in the order of these numbers, in this process or by new ones, each with one
    thread. ``n_workers=None`` starts a process for each core. ``text`` stands before the bar.
    """
    from tqdm import tqdm  # README loads MNIST with numpy and numba alone

    order = range(len(jobs)) if order is None else order
    n_workers = min(len(jobs), os.cpu_count() if n_workers is None else n_workers)
    # JupyterLab shows what goes to stderr as an error. A command's tables go to stdout alone.
    file = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    bar = {"total": len(jobs), "desc": text, "unit": "run", "leave": False, "file": file}
    if n_workers <= 1:
        found = {number: make(jobs[number]) for number in tqdm(order, **bar)}
        return [found[number] for number in range(len(jobs))]
    # The new processes read these variables.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        futures = {number: pool.submit(make, jobs[number]) for number in order}
        for future in tqdm(as_completed(futures.values()), **bar):
            if future.exception():
                pool.shutdown(wait=False, cancel_futures=True)
                raise future.exception()
    return [futures[number].result() for number in range(len(jobs))]


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that it is the old one or the new one, also if the process is killed.

    Processes that write the same file at the same time do not disturb each other, because each
    writes into a temporary folder of its own beside the file. If there is no room for the new file,
    the old one stays.
    """
    raw = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing-") as folder:
            temporary = Path(folder) / path.name
            temporary.write_bytes(raw)
            os.replace(temporary, path)
    except OSError as error:
        text = (
            f"{path} could not be written and is as before ({error.strerror or error}); "
            f"free {len(raw):,} bytes there, or make its folder writable."
        )
        raise OSError(error.errno, text) from error
