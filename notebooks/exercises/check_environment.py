"""Check that this machine is ready for the exercises.

python notebooks/exercises/check_environment.py prints OK, or what to do.
"""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "numba", "matplotlib", "tqdm", "jupyterlab")


def problems() -> list[str]:
    """Return what is missing, each with the way out; the list is empty if all is well."""
    if sys.version_info < (3, 11):  # noqa: UP036, for those who have an older one
        version = ".".join(map(str, sys.version_info[:2]))
        return [
            f"this is Python {version}, but 3.11 or newer is needed; "
            "install it, and set up again (in a clone, `make lab PYTHON=python3.11`)."
        ]
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        way = "run `make lab` in a clone, or `pip install -r requirements.txt` in the unpacked zip"
        way += ", and use .venv/bin/python"
        return [f"{name} is missing; {way}." for name in missing]
    sys.path.insert(0, str(ROOT))
    try:
        score = easy_score()
    # The student should read any error as one line, without a traceback.
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    if score != 1:
        return [
            f"two classes that are easy to separate give mAP {score}, not 1; "
            "run `make test` to find the cause."
        ]
    return []


def easy_score() -> float:
    """Load MNIST, and return the mAP of a model of two classes that are easy to separate."""
    # They can be imported only after ROOT is on the path.
    import hmoh
    import metrics
    from study import datasets

    datasets.load("mnist")
    X = [[1.0, 0.0], [0.0, 1.0]] * 5
    y = [0, 1] * 5
    codes = hmoh.HMOH(n_bits=8, random_state=0).fit_transform(X, y)
    return metrics.mean_average_precision(codes, codes, y, y)


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or "OK: Python, packages, modules and MNIST are ready.")
    sys.exit(bool(found))
