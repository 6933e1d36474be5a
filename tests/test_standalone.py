"""hmoh.py, kernels.py and metrics.py, each copied alone into an empty folder and used there."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OTHERS = {path.stem for path in ROOT.glob("*.py")}
SCRIPTS = {
    "hmoh": """
        import numpy as np
        from hmoh import HMOH
        X, y = np.eye(4)[np.arange(40) % 4], np.arange(40) % 4
        model = HMOH(n_bits=4, random_state=0).fit(X, y)
        bits = np.unpackbits(model.transform(X[:4]), axis=1, bitorder="little", count=4)
        assert np.array_equal(2 * bits.astype(int) - 1, [model.targets_[label] for label in range(4)])
        model.save("model.npz")
        assert np.array_equal(HMOH.load("model.npz").partial_fit(X, y).weights_, model.partial_fit(X, y).weights_)
        """,
    "kernels": """
        import numpy as np
        from kernels import RBF, UnitLength
        X = np.random.default_rng(0).normal(size=(50, 4))
        Z = RBF(n_anchors=5, center=True).fit_transform(UnitLength().fit_transform(X))
        assert Z.shape == (50, 5) and np.isfinite(Z).all()
        """,
    "metrics": """
        import numpy as np
        from metrics import hamming_histogram, mean_average_precision, nearest
        codes, labels = np.array([[0], [1], [7]], np.uint8), np.array([0, 0, 1])
        assert hamming_histogram(codes, codes, labels, labels, n_bits=8).items.sum() == 9
        assert mean_average_precision(codes, codes, labels, labels) == 1
        assert nearest(codes[:1], codes, 2)[1].tolist() == [[0, 1]]
        """,
}


def run(folder, script):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    script = "\n".join(line[8:] for line in script.splitlines())
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def imports(tree, inside=""):
    """(top-level module, name of the function around) of every import."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "").split(".")[0], inside
        else:
            yield from imports(node, node.name if isinstance(node, ast.FunctionDef) else inside)


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_numpy_numba_and_the_standard_library_only(name):
    found = set(imports(ast.parse((ROOT / f"{name}.py").read_text())))
    assert "numpy" in {module for module, _ in found}
    found -= {("sklearn", "__sklearn_tags__")}  # which only scikit-learn calls
    assert {module for module, _ in found} <= {"numpy", "numba"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize("name", SCRIPTS)
def test_works_alone_in_an_empty_folder(name, tmp_path):
    shutil.copy(ROOT / f"{name}.py", tmp_path)
    alone = f"""
        import importlib.util
        for other in {sorted(OTHERS - {name})}:
            assert importlib.util.find_spec(other) is None, other
        """
    run(tmp_path, alone + SCRIPTS[name])


@pytest.mark.parametrize("name", ["hmoh", "metrics"])
def test_works_where_numba_finds_no_folder_for_its_cache(name, tmp_path):
    # Code of no file has no cache folder: numba really refuses, as it does in a read-only install.
    load = f"""
        import os, sys, types, numba
        code = compile(open({str(ROOT / name) + ".py"!r}).read(), "<nowhere>", "exec")
        probe = {{}}
        exec(compile("def f(x): return x", "<nowhere>", "exec"), probe)
        try:
            numba.njit(cache=True)(probe["f"])
        except RuntimeError:
            pass
        else:
            assert os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", "numba has found a place for its cache"
        sys.modules[{name!r}] = module = types.ModuleType({name!r})
        exec(code, vars(module))
        """
    run(tmp_path, load + SCRIPTS[name])
    assert not list(tmp_path.glob("**/*.nbi"))
