"""Compiled loops whose cache on disk is full, cannot be written, is damaged or is out of date."""

import ast
import os
import shutil
import subprocess
import sys

import pytest
from helpers import JIT_IS_OFF, ROOT

needs_jit = pytest.mark.skipif(JIT_IS_OFF, reason="plain Python has no cache")
needs_limits = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no limit for the size of a file"
)
# Two loops, one of which calls the other. The number is another one in a newer version.
LOOPS = """
from kernels import compiled

@compiled
def inner(x):
    return x + {number}

@compiled
def outer(x):
    return 2 * inner(x)
"""
# Do something between import and first call, then print the results, how many of the two loops came
# from the cache, and the warnings.
CALL = """
import os, shutil, signal, sys, warnings
import loops
folder = "__pycache__"
{prepare}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(loops.outer(10), loops.inner(10.0))
print(sum(sum(loop.stats.cache_hits.values()) for loop in (loops.outer, loops.inner)))
for warning in caught:
    print(warning.category.__name__, warning.message)
"""
FULL = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""
# Files written by Python itself would fall under the limit too.
ENVIRONMENT = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}


def run(folder, script):
    """Run a script in a folder, and return the lines that it printed."""
    env = dict(ENVIRONMENT)
    env.pop("PYTHONPATH", None)
    env.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.splitlines()


def call(folder, prepare=""):
    """Call the loops in a new process: return results, number of loops from the cache, warnings."""
    results, n_hits, *warnings = run(folder, CALL.format(prepare=prepare))
    return results, int(n_hits), warnings


def assert_one_warning(warnings, folder):
    assert len(warnings) == 1
    assert warnings[0].startswith("RuntimeWarning")
    for part in (str(folder / "__pycache__"), "delete", "space", "NUMBA_CACHE_DIR"):
        assert part in warnings[0]


@pytest.fixture
def fresh(tmp_path):
    """Give a folder with the two loops, without a cache."""
    shutil.copy(ROOT / "kernels.py", tmp_path)
    (tmp_path / "loops.py").write_text(LOOPS.format(number=1))
    return tmp_path


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """Give a folder with the two loops and their cache."""
    folder = tmp_path_factory.mktemp("warm")
    shutil.copy(ROOT / "kernels.py", folder)
    (folder / "loops.py").write_text(LOOPS.format(number=1))
    assert call(folder) == ("22 11.0", 0, [])
    return folder


def source_of(path, name):
    tree = ast.parse(path.read_text())
    found = [node for node in tree.body if getattr(node, "name", "") == name]
    assert len(found) == 1
    return ast.get_source_segment(path.read_text(), found[0])


def test_two_files_have_the_same_cache():
    paths = [ROOT / file for file in ("hmoh.py", "kernels.py")]
    assert len({source_of(path, "_DiskCache") for path in paths}) == 1


@needs_jit
def test_a_cache_is_used_without_a_word(warm):
    # `outer(10)` and `inner(10.0)`; the code of `outer` contains that of `inner`.
    assert call(warm) == ("22 11.0", 2, [])


DAMAGES = {
    "empty": lambda raw: b"",
    "cut": lambda raw: raw[: len(raw) // 2],
}


@needs_jit
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_cost_one_warning(damage, kind, warm, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(warm, folder)
    # The code of `inner` for an integer is never read, because that of `outer` contains it.
    for path in folder.glob(f"__pycache__/loops.*.{kind}"):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    results, n_hits, warnings = call(folder)
    assert results == "22 11.0"
    assert n_hits == 0
    assert_one_warning(warnings, folder)


@needs_jit
@needs_limits
@pytest.mark.parametrize("size", [0, 3000])
def test_full_disk_costs_one_warning(size, fresh):
    # The larger size leaves room for the index, but not for the code.
    results, n_hits, warnings = call(fresh, FULL.format(size=size))
    assert results == "22 11.0"
    assert n_hits == 0
    assert_one_warning(warnings, fresh)
    names = [path.name for path in fresh.glob("__pycache__/*")]
    assert not [name for name in names if ".tmp." in name]
    assert call(fresh) == ("22 11.0", 0, [])


@needs_jit
def test_folder_that_cannot_be_used_any_more_costs_one_warning(fresh):
    # root may write into a read-only folder, but nobody can write into a file as into a folder.
    prepare = "shutil.rmtree(folder); open(folder, 'w').close()"
    results, n_hits, warnings = call(fresh, prepare)
    assert results == "22 11.0"
    assert n_hits == 0
    assert_one_warning(warnings, fresh)


@needs_jit
@needs_limits
def test_code_of_an_older_source_is_never_run(warm, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(warm, folder)
    (folder / "loops.py").write_text(LOOPS.format(number=5))
    # The new index has room, the new code has not. So the index would name the old code.
    results, _, warnings = call(folder, FULL.format(size=3000))
    assert results == "30 15.0"
    assert_one_warning(warnings, folder)
    assert call(folder) == ("30 15.0", 0, [])
    assert call(folder) == ("30 15.0", 2, [])


@needs_jit
def test_all_files_together_give_one_warning(tmp_path):
    for name in ("hmoh.py", "kernels.py", "metrics.py"):
        shutil.copy(ROOT / name, tmp_path)
    script = """
import shutil, warnings
import numpy as np
from hmoh import HMOH
from kernels import RBF
from metrics import mean_average_precision
shutil.rmtree("__pycache__")
open("__pycache__", "w").close()
y = np.arange(40) % 4
X = np.eye(4)[y]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = HMOH(8, feature_map=RBF(n_anchors=20), random_state=0).fit(X, y)
    model.partial_fit(X[:1], y[:1])
    codes = model.transform(X)
    print(mean_average_precision(codes, codes, y, y))
for warning in caught:
    print(warning.category.__name__, warning.message)
"""
    result, *warnings = run(tmp_path, script)
    assert result == "1.0"
    assert_one_warning(warnings, tmp_path)


@needs_jit
def test_a_warning_that_is_an_error_leaves_loops_that_work(fresh):
    script = """
import shutil, warnings
import loops
shutil.rmtree("__pycache__")
open("__pycache__", "w").close()
warnings.simplefilter("error")
try:
    loops.outer(10)
except RuntimeWarning as warning:
    print(warning)
print(loops.outer(10))
"""
    warning, result = run(fresh, script)
    assert "NUMBA_CACHE_DIR" in warning
    assert result == "22"
