"""The first line of every notebook: `import start`.

It finds the modules of the project, wherever Jupyter was started, gives matrix products one core,
and sets the looks of figures.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["all_cores"]

HERE = Path(__file__).resolve().parent
# The project's modules, and those beside the notebooks. Worker processes get these folders too.
sys.path[:0] = [str(HERE.parent), str(HERE)]
for package in ("numba", "matplotlib"):
    if find_spec(package) is None:
        raise ImportError(
            f"{package} is not found: start JupyterLab as README.md says (`make lab` in a clone)."
        )

# The number of cores changes rounding, and times are compared. Libraries read these variables when
# they are loaded, so numpy comes after them; worker processes inherit them.
ONE_CORE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
os.environ.update(dict.fromkeys(ONE_CORE, "1"))

from study.style import use_style  # noqa: E402

use_style()


def all_cores() -> None:
    """Give matrix products all cores, as they have them without this project."""
    from threadpoolctl import threadpool_limits

    for name in ONE_CORE:
        os.environ.pop(name, None)
    threadpool_limits(os.cpu_count())
