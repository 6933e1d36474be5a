"""Run notebooks from clean kernels: python notebooks/run.py [--update] NOTEBOOK.ipynb ...

Each one is executed top to bottom. The run goes to build/notebooks and, as a page, to build/; the outputs of cells
tagged "print" go to the terminal too. The notebooks themselves stay as they are, unless --update keeps the new outputs
in them. A notebook that fails is named with its cell, and the next ones are run all the same.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from notebooks.pages import page  # noqa: E402

BUILD = ROOT / "build"


class NotebookError(RuntimeError):
    """A notebook could not be run to its end; says in which cell it stopped and why."""


def run(path: Path) -> nbformat.NotebookNode:
    """The executed notebook, free of what changes from machine to machine."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    quiet = ["--IPKernelApp.log_level=40"]  # no warning that other users of the machine could listen in
    reached = {}
    client = NotebookClient(
        notebook,
        timeout=3600,
        extra_arguments=quiet,
        resources={"metadata": {"path": path.parent}},
        on_cell_start=lambda cell, cell_index: reached.update(cell=cell, index=cell_index),
    )
    try:
        client.execute()
    except (CellControlSignal, DeadKernelError) as error:  # an error in a cell, too long a cell, or a dead kernel
        why = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error)
        where = f"cell {reached['index']} ({reached['cell'].id})" if reached else "before its first cell"
        raise NotebookError(f"{path.name}, {where}: {why}") from error
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["hmoh_profile"] = os.environ.get("HMOH_PROFILE", "paper")
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps
        if cell.cell_type == "code":
            cell.outputs = joined(lighter(output) for output in map(without_bars, cell.outputs) if output)
    return notebook


def joined(outputs: Iterable[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The outputs with printed text in one piece: where a kernel cuts it depends on how busy the machine is."""
    together = []
    for output in outputs:
        before = together[-1] if together else {}
        if output.output_type == "stream" and before.get("name") == output.name:
            before.text += output.text
        else:
            together.append(output)
    return together


def without_bars(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """The output without progress bars, which are rewritten after a carriage return; None if nothing else is in it."""
    if output.output_type != "stream" or output.name != "stderr":
        return output
    output.text = "\n".join(line for line in output.text.split("\n") if "\r" not in line)
    return output if output.text.strip() else None


def lighter(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The output with its picture in 128 colours: a figure looks the same, in a quarter of the bytes.

    They are chosen by an octree: by Pillow's default thin lines took the colours of other lines.
    """
    if "image/png" in output.get("data", {}):
        picture, file = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))), io.BytesIO()
        if picture.mode != "P":
            few = picture.convert("RGB").quantize(128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            few.save(file, "PNG", optimize=True)
            output.data["image/png"] = base64.b64encode(file.getvalue()).decode()
    return output


def printed(notebook: nbformat.NotebookNode) -> str:
    """The text outputs of the cells tagged "print"."""
    cells = [cell for cell in notebook.cells if "print" in cell.metadata.get("tags", [])]
    return "\n".join(output["text"] for cell in cells for output in cell.outputs if output.output_type == "stream")


def main(arguments: Sequence[str]) -> int:
    """Run the notebooks named; returns the exit code, 1 if any failed."""
    update, begin, failed = "--update" in arguments, time.perf_counter(), []
    (BUILD / "notebooks").mkdir(parents=True, exist_ok=True)
    paths = [Path(name).resolve() for name in arguments if name != "--update"]
    for path in paths:
        start = time.perf_counter()
        print(f"running {path.name} ...", flush=True)
        kept = BUILD / "notebooks" / path.name
        kept.unlink(missing_ok=True)  # so that no older run is taken for this one
        try:
            notebook = run(path)
        except Exception as error:  # whatever it was, the next ones are run
            named = isinstance(error, NotebookError)
            failed.append(str(error) if named else f"{path.name}: {type(error).__name__}: {error}")
            print(f"FAILED {failed[-1]}", flush=True)
            continue
        nbformat.write(notebook, kept)
        target = BUILD / f"{path.stem.lstrip('0123456789_')}.html"
        target.write_text(page(notebook), encoding="utf-8")
        if update:
            nbformat.write(notebook, path)
        if text := printed(notebook):
            print(text)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, build/{target.name}", flush=True)
    if len(paths) > 1:
        print(f"{len(paths)} notebooks: {time.perf_counter() - begin:.0f} s, {len(failed)} failed")
        print(*failed, sep="\n", end="\n" if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
