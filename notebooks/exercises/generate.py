"""Make the notebooks of all exercises from their sources: python notebooks/exercises/generate.py [--run] [NN ...]

source/NN_name.py is the one place to edit: task, hints, solution and checks in cells that begin with a line `# %%`,

    # %% [markdown]                  text, every line a comment
    # %%                             code that is given
    # %% solution NAME               code to write; what is between ### BEGIN SOLUTION and ### END SOLUTION is hidden
    # %% check NAME POINTS           code that tests it, for points
    # %% [markdown] answer NAME POINTS    text to write, graded by hand; the markers stand in <!-- comments -->

Two notebooks are made of it: student/NN_name.ipynb without the solutions, and solution/NN_name.ipynb, executed. Both
carry nbgrader's cell metadata, and the second is what nbgrader takes as source. A solution whose cells did not change
keeps its outputs, so that a second run changes no file; --run executes all of them again.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
HEADER = re.compile(
    r"# %%(?P<text> \[markdown\])?(?: (?P<kind>solution|check|answer) (?P<name>[\w-]+)(?: (?P<points>\d+))?)?"
)


class Cell(NamedTuple):
    """A cell of a source: text or code, what it is for (kind is "" for what is only read or run), and its points."""

    is_text: bool
    kind: str
    name: str
    points: int
    source: str


def read_source(path: Path) -> list[Cell]:
    """The cells of a source in percent format."""
    cells: list[Cell] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# %%"):
            header = HEADER.fullmatch(line)
            if header is None:
                raise ValueError(f"{path.name}, line {number}: {line!r} is no header; see the top of generate.py.")
            points = int(header["points"] or 0)
            cells.append(Cell(bool(header["text"]), header["kind"] or "", header["name"] or "", points, ""))
        elif not cells:
            raise ValueError(f"{path.name}, line {number}: {line!r} stands before the first cell; begin with `# %%`.")
        else:
            if cells[-1].is_text:
                if line not in ("", "#") and not line.startswith("# "):
                    raise ValueError(f"{path.name}, line {number}: {line!r} is text; begin it with `# `.")
                line = line[2:]
            cells[-1] = cells[-1]._replace(source=cells[-1].source + line + "\n")
    return [cell._replace(source=cell.source.strip("\n")) for cell in cells]


def without_solution(cell: Cell) -> Cell:
    """The cell as a student gets it."""
    lines, inside = [], False
    for line in cell.source.split("\n"):
        if BEGIN in line:
            if inside or cell.kind not in ("solution", "answer"):
                raise ValueError(f"{line!r} stands inside another solution, or in a cell that is none.")
            inside = True
            indent = line[: len(line) - len(line.lstrip())]
            stub = ["# YOUR CODE HERE", "raise NotImplementedError"] if not cell.is_text else ["*Your answer here.*"]
            lines += [indent + part for part in stub]
        elif END in line:
            inside = False
        elif not inside:
            lines.append(line)
    if inside or (cell.kind in ("solution", "answer") and lines == cell.source.split("\n")):
        raise ValueError(f"cell {cell.name!r} needs {BEGIN} and {END}.")
    return cell._replace(source="\n".join(lines))


def notebook(number: str, cells: list[Cell]) -> dict:
    """A notebook (nbformat 4.5) of these cells, not executed."""
    made = []
    for place, cell in enumerate(cells):
        metadata = {}
        if cell.kind:
            metadata["nbgrader"] = {
                "cell_type": "markdown" if cell.is_text else "code",
                "grade": cell.kind in ("check", "answer"),
                "grade_id": f"{number}-{cell.kind}-{cell.name}",
                "locked": cell.kind == "check",
                "schema_version": 3,
                "solution": cell.kind in ("solution", "answer"),
                "task": False,
            } | ({"points": cell.points} if cell.kind in ("check", "answer") else {})
        entry = {"cell_type": "markdown" if cell.is_text else "code", "id": f"exercise-{number}-{place:02d}"}
        entry |= {"metadata": metadata, "source": cell.source.splitlines(keepends=True)}
        made.append(entry if cell.is_text else entry | {"execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def without_outputs(given: dict) -> dict:
    """The same notebook before it is executed."""
    fresh = {"outputs": [], "execution_count": None}
    cells = [cell | fresh if cell["cell_type"] == "code" else cell for cell in given["cells"]]
    return given | {"cells": cells}


def is_executed(path: Path, solution: dict) -> bool:
    """Whether a file holds this notebook with the outputs of a whole run."""
    if not path.exists():
        return False
    kept = json.loads(path.read_text(encoding="utf-8"))
    counts = [cell["execution_count"] for cell in kept["cells"] if cell["cell_type"] == "code"]
    return None not in counts and without_outputs(kept) == solution


def to_text(made: dict) -> str:
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def generate(path: Path) -> tuple[dict, dict]:
    """The student's notebook and the solution, not executed, of a source."""
    number, cells = path.name[:2], read_source(path)
    return notebook(number, [without_solution(cell) for cell in cells]), notebook(number, cells)


def main(arguments: list[str]) -> None:
    wanted = [name for name in arguments if name != "--run"]
    for path in sorted((HERE / "source").glob("[0-9][0-9]_*.py")):
        if wanted and path.name[:2] not in wanted:
            continue
        student, solution = generate(path)
        targets = [HERE / folder / f"{path.stem}.ipynb" for folder in ("student", "solution")]
        for target in targets:
            target.parent.mkdir(exist_ok=True)
        targets[0].write_text(to_text(student), encoding="utf-8")
        if "--run" in arguments or not is_executed(targets[1], solution):
            print(f"running {path.stem} ...", flush=True)
            targets[1].write_text(to_text(solution), encoding="utf-8")
            sys.path.insert(0, str(HERE.parent))
            import nbformat  # these two need Jupyter, which nothing else here does
            from run import run

            executed = json.loads(nbformat.writes(run(targets[1]))) | {"metadata": solution["metadata"]}
            targets[1].write_text(to_text(executed), encoding="utf-8")
        print(f"{path.stem}: student and solution are up to date", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
