"""Show what no test notices, with cosmic-ray: python -m tools.mutants [NUMBER [SEED]]"""

import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cosmic_ray.config import load_config
from cosmic_ray.work_db import use_db

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "tools/cosmic-ray.toml"
BUILD = ROOT / "build/mutants"


def cosmic_ray(*args, folder=ROOT):
    env = os.environ | {"PYTHON": sys.executable, "MODULE": folder.name}
    command = [sys.executable, "-m", "cosmic_ray.cli", *args]
    subprocess.run(command, cwd=folder, env=env, check=True)


def results(file, sample):
    """Test the mutants of one file in its own copy of the project, after a run without any."""
    folder = BUILD / Path(file).stem
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"))
    cosmic_ray("baseline", CONFIG, folder=folder)
    with use_db(folder / "mutants.sqlite") as session:
        session.add_work_items(mutant for name, *_, mutant in sample if name == file)
        cosmic_ray("exec", CONFIG, session.name(), folder=folder)
        return [result for _, result in session.results]


def main(number=200, seed=0):
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    cosmic_ray("init", CONFIG, BUILD / "all.sqlite")
    config = load_config(CONFIG)
    kept = re.compile("core/(" + "|".join(config["sample"]["operators"]) + ")")
    with use_db(BUILD / "all.sqlite") as session:
        found = [(*mutant.mutations, mutant) for mutant in session.work_items]
    # Identifiers are random, so the order is that of file, operator and place.
    order = [(str(m.module_path), m.operator_name, m.occurrence, mutant) for m, mutant in found]
    mutants = sorted(row for row in order if kept.fullmatch(row[1]))
    sample = random.Random(seed).sample(mutants, number)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        lists = pool.map(lambda file: results(file, sample), config["module-path"])
        done = [result for found in lists for result in found]
    survivors = [result.diff for result in done if not result.is_killed]
    slow = sum(result.output == "timeout" for result in done)
    odd = sum(result.worker_outcome != "normal" for result in done)
    print(*survivors, f"{len(done)} of {len(mutants)} mutants:", sep="\n\n")
    print(f"{len(survivors)} survived, {slow} ran out of time, {odd} could not be tested.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
