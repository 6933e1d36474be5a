"""Is this machine ready for the exercises? python notebooks/exercises/check_environment.py prints OK or what to do."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def problems() -> list[str]:
    """What is missing, each with the way out; empty if all is well."""
    if sys.version_info < (3, 11):  # noqa: UP036, it is here for whoever has an older one
        version = ".".join(map(str, sys.version_info[:2]))
        return [f"this is Python {version}, but 3.11 or newer is needed; run `make lab PYTHON=python3.11`, or newer."]
    found = []
    for name in ("numpy", "numba", "matplotlib", "tqdm", "jupyterlab"):
        if importlib.util.find_spec(name) is None:
            found.append(f"{name} is missing; run `make lab` in {ROOT.name}/ once and use .venv/bin/python.")
    if found:
        return found
    sys.path.insert(0, str(ROOT))
    try:
        import datasets
        import hmoh
        import metrics

        datasets.load("mnist")
        codes = hmoh.HMOH(n_bits=8, random_state=0).fit_transform([[1.0, 0.0], [0.0, 1.0]] * 5, [0, 1] * 5)
        score = metrics.mean_average_precision(codes, codes, [0, 1] * 5, [0, 1] * 5)
        if score != 1:
            found.append(f"two classes that are easy to tell give mAP {score}, not 1; run `make test` for the cause.")
    except Exception as error:  # whatever it is, the student should read it and not a traceback
        found.append(f"{type(error).__name__}: {error}")
    return found


if __name__ == "__main__":
    missing = problems()
    print("\n".join(missing) or "OK: Python, packages, modules and MNIST are all there.")
    sys.exit(bool(missing))
