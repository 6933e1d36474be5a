"""Keep finished runs: a key for what a run depends on, and files that are never half written.

A kept run is valid while nothing that it depends on has changed: the code of the modules below, the
data, and its arguments. Comments, docstrings and formatting of the code do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import tempfile
from pathlib import Path

import numpy as np

__all__ = [
    "MODULES",
    "code_version",
    "plain",
    "plain_values",
    "run_key",
    "write_atomically",
]

# The modules that a run depends on. A change of their code makes all kept runs invalid.
MODULES = (
    "hmoh.py",
    "kernels.py",
    "metrics.py",
    "ridge.py",
    "baselines/*.py",
    "study/datasets.py",
    "study/scores.py",
    "study/features.py",
    "study/originals.py",
    "study/protocol.py",
    "study/keep.py",
    "study/training.py",
)


def code_version(root: Path) -> str:
    """Return a hash of the code of `MODULES` in a folder, without comments and docstrings."""
    digest = hashlib.sha256()
    for pattern in MODULES:
        paths = sorted(root.glob(pattern))
        if not paths:
            raise FileNotFoundError(
                f"{root / pattern} is missing, but runs depend on it; "
                "restore it, or correct keep.MODULES."
            )
        for path in paths:
            code = _without_docstrings(path.read_text(encoding="utf-8"))
            digest.update(f"{path.relative_to(root).as_posix()}\n{code}\n".encode())
    return digest.hexdigest()


def _without_docstrings(source: str) -> str:
    """Return the syntax tree of a module as text; it has no comments and no line numbers."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


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
