"""Make the notebooks of all exercises from their sources.

    python notebooks/exercises/generate.py [--run] [NN ...]
    python notebooks/exercises/generate.py --zip

Edit only source/NN_name.py. It has task, hints, solution and checks in cells. A cell begins with
one of these lines:

    # %% [markdown]                  text, every line a comment
    # %%                             code that is given
    # %% solution NAME               code to write
    # %% check NAME POINTS           code that tests it, for points
    # %% [markdown] answer NAME POINTS    text to write, graded by hand

A solution or an answer is hidden between ### BEGIN SOLUTION and ### END SOLUTION. In text these
markers are <!-- comments -->.

A source makes two notebooks: student/NN_name.ipynb without the solutions, and
solution/NN_name.ipynb, executed. Both have nbgrader's cell metadata. The second is what nbgrader
takes as source. A solution whose cells did not change keeps its outputs, so that a second run
changes no file. --run executes all of them again.

--zip writes build/student.zip, which students unpack and work in without the clone.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
TO_WRITE = ("solution", "answer")
GRADED = ("check", "answer")
HEADER = re.compile(
    r"# %%(?P<text> \[markdown\])?"
    r"(?: (?P<kind>solution|check|answer) (?P<name>[\w-]+)(?: (?P<points>\d+))?)?"
)

# What students get beside their notebooks and the modules that these import.
DATA = ("data/mnist.npz", "data/paper_results.json", "LICENSE")
ZIP_README = """# Exercises: online hashing

You need Python 3.11 or newer. In this folder:

    python -m venv .venv
    .venv/bin/pip install -r requirements.txt       # on Windows: .venv\\Scripts\\pip
    .venv/bin/python notebooks/exercises/check_environment.py       # prints OK, or what to do
    .venv/bin/jupyter lab

With conda: `conda env create -f environment.yml`, `conda activate hmoh-exercises`, `jupyter lab`.

Open `notebooks/exercises/student/01_sylvester.ipynb`, and leave the notebooks in that folder.
Where a text mentions other notebooks or the clone, it means the whole project. You can do all
exercises without it. Open `draw.html` in a browser to draw a digit, see its code, and teach the
model a symbol.
"""


class Cell(NamedTuple):
    """A cell of a source. ``kind`` is "" for text that is only read and code that is given."""

    is_text: bool
    kind: str
    name: str
    points: int
    source: str


def read_source(path: Path) -> list[Cell]:
    """Return the cells of a source in percent format."""
    cells: list[Cell] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        place = f"{path.name}, line {number}: {line!r}"
        if line.startswith("# %%"):
            cells.append(_new_cell(line, place))
            continue
        if not cells:
            raise ValueError(f"{place} stands before the first cell; begin with `# %%`.")
        last = cells[-1]
        if last.is_text:
            if line not in ("", "#") and not line.startswith("# "):
                raise ValueError(f"{place} is text; begin it with `# `.")
            line = line[2:]
        cells[-1] = last._replace(source=last.source + line + "\n")
    return [cell._replace(source=cell.source.strip("\n")) for cell in cells]


def _new_cell(line: str, place: str) -> Cell:
    header = HEADER.fullmatch(line)
    if header is None:
        raise ValueError(f"{place} is not a header; see the top of generate.py.")
    return Cell(
        is_text=bool(header["text"]),
        kind=header["kind"] or "",
        name=header["name"] or "",
        points=int(header["points"] or 0),
        source="",
    )


def without_solution(cell: Cell) -> Cell:
    """Return the cell as a student gets it."""
    stub = ["# YOUR CODE HERE", 'raise NotImplementedError("not answered yet")']
    if cell.is_text:
        stub = ["*Your answer here.*"]
    kept = []
    inside = False
    n_hidden = 0
    for line in cell.source.split("\n"):
        if BEGIN in line:
            if inside or cell.kind not in TO_WRITE:
                raise ValueError(
                    f"{line!r} stands inside another solution, or in a cell that is not one; "
                    f"put it into a cell of kind solution or answer, after {END}."
                )
            inside = True
            n_hidden += 1
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + part for part in stub]
        elif END in line:
            inside = False
        elif not inside:
            kept.append(line)
    if inside or (cell.kind in TO_WRITE and n_hidden == 0):
        raise ValueError(f"cell {cell.name!r} needs {BEGIN} and {END}.")
    return cell._replace(source="\n".join(kept))


def notebook(number: str, cells: list[Cell]) -> dict:
    """Return a notebook (nbformat 4.5) of these cells, not executed."""
    made = []
    for place, cell in enumerate(cells):
        entry = {
            "cell_type": "markdown" if cell.is_text else "code",
            "id": f"exercise-{number}-{place:02d}",
            "metadata": {},
            "source": cell.source.splitlines(keepends=True),
        }
        if cell.kind:
            entry["metadata"]["nbgrader"] = _grading(number, cell)
        if cell.kind == "check":
            # Folded. A check is long, and may tell how the task can be solved.
            entry["metadata"]["jupyter"] = {"source_hidden": True}
        if not cell.is_text:
            entry["execution_count"] = None
            entry["outputs"] = []
        made.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _grading(number: str, cell: Cell) -> dict:
    """Return nbgrader's metadata of a cell."""
    grading = {
        "cell_type": "markdown" if cell.is_text else "code",
        "grade": cell.kind in GRADED,
        "grade_id": f"{number}-{cell.kind}-{cell.name}",
        "locked": cell.kind == "check",
        "schema_version": 3,
        "solution": cell.kind in TO_WRITE,
        "task": False,
    }
    if cell.kind in GRADED:
        grading["points"] = cell.points
    return grading


def without_outputs(given: dict) -> dict:
    """Return the same notebook before it is executed."""
    cells = []
    for cell in given["cells"]:
        if cell["cell_type"] == "code":
            cell = cell | {"outputs": [], "execution_count": None}
        cells.append(cell)
    return given | {"cells": cells}


def is_executed(path: Path, solution: dict) -> bool:
    """Tell whether a file holds this notebook with the outputs of a complete run."""
    if not path.exists():
        return False
    kept = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    if any(cell["execution_count"] is None for cell in code):
        return False
    return without_outputs(kept) == solution


def to_text(made: dict) -> str:
    """Return the notebook as the text of its file."""
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def generate(path: Path) -> tuple[dict, dict]:
    """Return the student's notebook and the solution of a source, not executed."""
    number = path.name[:2]
    cells = read_source(path)
    visible = [without_solution(cell) for cell in cells]
    return notebook(number, visible), notebook(number, cells)


def execute(path: Path, solution: dict) -> None:
    """Write the solution, run it, and write it again with its outputs."""
    # Only this function needs Jupyter, and the folder of the clone on the path.
    sys.path.insert(0, str(ROOT))
    import nbformat

    from tools.run_notebooks import run

    path.write_text(to_text(solution), encoding="utf-8")
    executed = json.loads(nbformat.writes(run(path)))
    executed["metadata"] = solution["metadata"]
    path.write_text(to_text(executed), encoding="utf-8")


def imported(source: str, package: str = "") -> set[Path]:
    """Return the files of the clone that a module's source imports, each with its package."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = f"{package}.{node.module}" if node.level else node.module
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    folders = (ROOT, ROOT / "notebooks")
    places = [folder / name.replace(".", "/") for folder in folders for name in names]
    files = [place.with_suffix(".py") for place in places]
    files += [folder / "__init__.py" for place in places for folder in (place, place.parent)]
    return {file for file in files if file.is_file()}


def write_zip(path: Path) -> None:
    """Write all that students need: notebooks, the modules that these import, data, packages."""
    sources = sorted((HERE / "source").glob("*.py"))
    new = set().union(*(imported(source.read_text(encoding="utf-8")) for source in sources))
    modules = set()
    while new:
        modules |= new
        found = (imported(file.read_text(encoding="utf-8"), file.parent.name) for file in new)
        new = set().union(*found) - modules
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = project["dependencies"] + project["optional-dependencies"]["notebooks"]
    lines = ["name: hmoh-exercises", "channels: [conda-forge]", "dependencies:"]
    lines += [f"  - {package}" for package in ["python>=3.11", *packages]]
    texts = {
        "README.md": ZIP_README,
        "requirements.txt": "\n".join(packages) + "\n",
        "environment.yml": "\n".join(lines) + "\n",
    }
    files = [*modules, *(HERE / "student").glob("*.ipynb"), HERE / "check_environment.py"]
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted([*files, *(ROOT / name for name in DATA)]):
            archive.write(file, f"hmoh-exercises/{file.relative_to(ROOT).as_posix()}")
        for name, text in texts.items():
            archive.writestr(f"hmoh-exercises/{name}", text)
        page = ROOT / "build" / "draw.html"
        if page.exists():  # `make student-zip` makes it first
            archive.write(page, "hmoh-exercises/draw.html")


def main(arguments: list[str]) -> None:
    """Make the notebooks of the exercises that are named, or of all; or the students' zip."""
    if arguments == ["--zip"]:
        path = ROOT / "build" / "student.zip"
        write_zip(path)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
        return
    run_all = "--run" in arguments
    wanted = [name for name in arguments if name != "--run"]
    for folder in ("student", "solution"):
        (HERE / folder).mkdir(exist_ok=True)
    for path in sorted((HERE / "source").glob("[0-9][0-9]_*.py")):
        if wanted and path.name[:2] not in wanted:
            continue
        student, solution = generate(path)
        student_path = HERE / "student" / f"{path.stem}.ipynb"
        student_path.write_text(to_text(student), encoding="utf-8")
        solution_path = HERE / "solution" / f"{path.stem}.ipynb"
        if run_all or not is_executed(solution_path, solution):
            print(f"running {path.stem} ...", flush=True)
            execute(solution_path, solution)
        print(f"{path.stem}: student and solution are up to date", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
