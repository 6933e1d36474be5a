"""Run notebooks from clean kernels: python -m tools.run_notebooks [--update] NOTEBOOK.ipynb ...

Progress bars are shown while a notebook runs. The executed notebook is written to build/notebooks,
and the text outputs of cells tagged "print" are printed. With --update the notebook itself keeps
the outputs, and the picture of a cell tagged "figure:NAME" is also written to figures/NAME.png
beside it, or to figures/NAME.gif. A notebook that fails is reported with its cell, and the next
ones are run.
"""

import argparse
import base64
import io
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from PIL import Image

from study.keep import write_atomically

__all__ = ["NotebookError", "run"]

BUILD = Path(__file__).resolve().parents[1] / "build"
# As JupyterLab writes it, which would otherwise mark a notebook as changed when it is opened.
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# The kinds of pictures that are written as files, and how the names of these end.
SUFFIXES = {"image/gif": ".gif", "image/png": ".png"}


class NotebookError(RuntimeError):
    """A notebook could not be run to its end; the message names the cell and the reason."""


class LiveClient(NotebookClient):
    """A client that shows the progress bars of the cells: printed text with a carriage return."""

    line_is_open = False

    def process_message(self, msg: dict, cell: NotebookNode, cell_index: int):
        text = msg["content"]["text"] if msg["msg_type"] == "stream" else ""
        if "\r" in text:
            print(text, end="", file=sys.stderr, flush=True)
            self.line_is_open = not text.endswith(("\r", "\n"))
        return super().process_message(msg, cell, cell_index)


def run(path: Path) -> NotebookNode:
    """Return the executed notebook, without what changes from machine to machine."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = {"kernelspec": KERNEL}
    places = ["before its first cell"]

    def remember(cell: NotebookNode, cell_index: int) -> None:
        places.append(f"cell {cell_index} ({cell.id})")

    client = LiveClient(
        notebook,
        timeout=3600,
        record_timing=False,
        store_widget_state=False,
        # No warning that other users of the machine could connect to the kernel.
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": path.parent}},
        on_cell_start=remember,
    )
    try:
        client.execute()
    # An error in a cell, a cell that takes too long, or a kernel that died.
    except (CellControlSignal, DeadKernelError) as error:
        is_error = isinstance(error, CellExecutionError)
        why = f"{error.ename}: {error.evalue}" if is_error else str(error)
        raise NotebookError(f"{path.name}, {places[-1]}: {why}") from error
    finally:
        if client.line_is_open:
            print(file=sys.stderr, flush=True)
    notebook.metadata["hmoh_profile"] = os.environ.get("HMOH_PROFILE", "paper")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = tidy(cell.outputs)
    return notebook


def tidy(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs without progress bars, with pictures compressed and printed text joined.

    Where a kernel divides printed text depends on how busy the machine is.
    """
    kept = []
    for output in outputs:
        if "image/png" in output.get("data", {}):
            output.data["image/png"] = lighter(output.data["image/png"])
        if kept and output.output_type == "stream" and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    # A bar may begin in one part of a text and end in the next.
    for output in kept:
        if output.output_type == "stream":
            output.text = without_bars(output.text)
    return [output for output in kept if output.get("text", "printed").strip()]


def without_bars(text: str) -> str:
    """Return printed text without progress bars, which overwrite their line many times.

    What is printed after a bar that was removed stays.

    >>> without_bars("\\r 50%|#  | 1/2\\r       \\rdone\\n")
    'done\\n'
    """
    lines = []
    for line in text.split("\n"):
        _, overwrites, rest = line.rpartition("\r")
        if not overwrites or (rest.strip() and "%|" not in rest):
            lines.append(rest)
    return "\n".join(lines)


def lighter(png: str) -> str:
    """Return a picture in 128 colours, which looks the same and needs a quarter of the bytes.

    The colours are chosen by an octree, because Pillow's default method gave thin lines the colours
    of other lines.
    """
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    if picture.mode == "P":
        return png
    octree = Image.Quantize.FASTOCTREE
    few = picture.convert("RGB").quantize(128, octree, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def figures(notebook: NotebookNode) -> dict[str, bytes]:
    """Return file name -> contents of the first picture of each cell tagged "figure:NAME"."""
    found = {}
    for cell in notebook.cells:
        data = [output.get("data", {}) for output in cell.get("outputs", [])]
        pictures = [(kind, each[kind]) for each in data for kind in SUFFIXES if kind in each]
        for tag in cell.metadata.get("tags", []):
            if tag.startswith("figure:"):
                if not pictures:
                    raise ValueError(
                        f"cell {cell.id} is tagged {tag!r} but shows no picture; "
                        "remove the tag or let the cell draw one."
                    )
                kind, picture = pictures[0]
                name = tag.removeprefix("figure:") + SUFFIXES[kind]
                found[name] = base64.b64decode(picture)
    return found


def update(path: Path, notebook: NotebookNode) -> None:
    """Replace a notebook by its executed version, and write its tagged figures."""
    pictures = figures(notebook)
    # A process that is killed here leaves the old notebook or the new one, never a part.
    write_atomically(path, nbformat.writes(notebook) + "\n")
    for name, picture in pictures.items():
        write_atomically(path.parent / "figures" / name, picture)


def run_and_write(path: Path, keep_outputs: bool) -> None:
    """Run one notebook, write it to build/, and print its tagged outputs and its time."""
    start = time.perf_counter()
    executed = BUILD / "notebooks" / path.name
    # An older run must not be mistaken for this one if this one fails.
    executed.unlink(missing_ok=True)
    notebook = run(path)
    write_atomically(executed, nbformat.writes(notebook) + "\n")
    if keep_outputs:
        update(path, notebook)
    for cell in notebook.cells:
        if "print" in cell.metadata.get("tags", []):
            for output in cell.outputs:
                print(output.get("text") or output.get("data", {}).get("text/plain", ""))
    seconds = time.perf_counter() - start
    print(f"{path.name}: {seconds:.0f} s, build/notebooks/{path.name}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the notebooks that are named, and return the exit code: 1 if any failed."""
    parser = argparse.ArgumentParser(description="Run notebooks from clean kernels.")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    parser.add_argument("--update", action="store_true", help="keep the outputs in the notebooks")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    failed = []
    for path in options.notebooks:
        print(f"running {path.name} ...", flush=True)
        try:
            run_and_write(path.resolve(), options.update)
        # Whatever the error is, the next notebooks are run.
        except Exception as error:
            is_named = isinstance(error, NotebookError)
            what = str(error) if is_named else f"{path.name}: {type(error).__name__}: {error}"
            failed.append(what)
            print(f"FAILED {what}", flush=True)
    if len(options.notebooks) > 1:
        seconds = time.perf_counter() - start
        print(f"{len(options.notebooks)} notebooks: {seconds:.0f} s, {len(failed)} failed")
        for what in failed:
            print(what)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
