"""Faults on purpose for what the study and the notebooks write: kills, and a full disk.

Those of models are in tests/test_hmoh_files.py and tests/test_hmoh_threads.py, those of numba's
cache in tests/test_standalone.py, and tests/test_scaling.py kills a worker of Dask.
"""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

SCRIPT = """
import os, random, resource, signal, sys, time
from pathlib import Path
from study.keep import write_atomically
path = Path(sys.argv[1]) / "record.json"
texts = ["a" * 300_000, "b" * 200_000]
write_atomically(path, texts[0])
rng = random.Random(0)
for _ in range(20):
    child = os.fork()
    while child == 0:
        for text in texts:
            write_atomically(path, text)
    time.sleep(rng.uniform(0.001, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.read_text() in texts
write_atomically(path, texts[0])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # it would kill the process
for size in (0, 1000, 150_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    before = set(path.parent.iterdir())
    try:
        write_atomically(path, texts[1])
    except OSError as error:
        print(error)
    assert path.read_text() == texts[0] and set(path.parent.iterdir()) == before
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither these signals nor limits")
def test_a_file_is_the_old_or_the_new_one_after_a_kill_or_on_a_full_disk(tmp_path):
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(str(tmp_path / "record.json")) == 3
    assert done.stdout.count("too large") == 3
