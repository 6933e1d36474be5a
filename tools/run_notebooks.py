"""Run notebooks from clean kernels: python -m tools.run_notebooks [--update] NOTEBOOK.ipynb ...

Each notebook is executed from top to bottom. While it runs, the progress bars of its cells are
shown. The executed notebook is written to build/notebooks, and as a page to build/. The text
outputs of cells tagged "print" are also printed.

The notebooks themselves stay as they are. With --update they keep the new outputs, and the picture
of a cell tagged "figure:NAME" is also written to figures/NAME.png beside its notebook, or to
figures/NAME.gif if it is an animation.

A notebook that fails is reported with the cell that failed, and the next ones are run.
"""

from __future__ import annotations

import argparse
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
from nbformat import NotebookNode
from PIL import Image

from study.records import write_atomically
from tools.make_pages import links
from tools.page import page

__all__ = ["NotebookError", "run"]

BUILD = Path(__file__).resolve().parents[1] / "build"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
FIGURE = "figure:"
# The kinds of pictures that are written as files, and how the names of these end.
SUFFIXES = {"image/gif": ".gif", "image/png": ".png"}


class NotebookError(RuntimeError):
    """A notebook could not be run to its end; the message names the cell and the reason."""


# ---- running -------------------------------------------------------------------------


class LiveClient(NotebookClient):
    """A client that shows the progress bars of the cells while they run.

    A bar is text on stderr with a carriage return, as tqdm writes it.
    """

    line_is_open = False

    def process_message(
        self, msg: dict, cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        content = msg["content"]
        if msg["msg_type"] == "stream" and content["name"] == "stderr":
            text = content["text"]
            if "\r" in text:
                print(text, end="", file=sys.stderr, flush=True)
                self.line_is_open = not text.endswith(("\r", "\n"))
        return super().process_message(msg, cell, cell_index)

    def end_line(self) -> None:
        """End the line of the last bar, so that other output begins on a new line."""
        if self.line_is_open:
            print(file=sys.stderr, flush=True)
            self.line_is_open = False


def run(path: Path) -> NotebookNode:
    """Return the executed notebook, without what changes from machine to machine."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = {"kernelspec": KERNEL}
    reached = {}

    def remember(cell: NotebookNode, cell_index: int) -> None:
        reached["place"] = f"cell {cell_index} ({cell.id})"

    client = LiveClient(
        notebook,
        timeout=3600,
        # No warning that other users of the machine could connect to the kernel.
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": path.parent}},
        on_cell_start=remember,
    )
    try:
        client.execute()
    # An error in a cell, a cell that takes too long, or a kernel that died.
    except (CellControlSignal, DeadKernelError) as error:
        why = str(error)
        if isinstance(error, CellExecutionError):
            why = f"{error.ename}: {error.evalue}"
        place = reached.get("place", "before its first cell")
        raise NotebookError(f"{path.name}, {place}: {why}") from error
    finally:
        client.end_line()

    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["hmoh_profile"] = os.environ.get("HMOH_PROFILE", "paper")
    for cell in notebook.cells:
        # Time stamps.
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = tidy(cell.outputs)
    return notebook


# ---- outputs -------------------------------------------------------------------------


def tidy(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return outputs without progress bars, with text joined and pictures compressed."""
    kept = []
    for output in outputs:
        output = without_bars(output)
        if output is not None:
            kept.append(lighter(output))
    return joined(kept)


def joined(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return the outputs with consecutive printed text in one piece.

    Where a kernel divides printed text depends on how busy the machine is.
    """
    together = []
    for output in outputs:
        before = together[-1] if together else {}
        if output.output_type == "stream" and before.get("name") == output.name:
            before.text += output.text
        else:
            together.append(output)
    return together


def without_bars(output: NotebookNode) -> NotebookNode | None:
    """Return the output without progress bars, or None if nothing else is in it."""
    if output.output_type != "stream" or output.name != "stderr":
        return output
    lines = output.text.split("\n")
    output.text = "\n".join(line for line in lines if "\r" not in line)
    return output if output.text.strip() else None


def lighter(output: NotebookNode) -> NotebookNode:
    """Return the output with its picture in 128 colours.

    A figure looks the same and needs a quarter of the bytes. The colours are chosen by an octree,
    because Pillow's default method gave thin lines the colours of other lines.
    """
    if "image/png" not in output.get("data", {}):
        return output
    raw = base64.b64decode(output.data["image/png"])
    picture = Image.open(io.BytesIO(raw))
    if picture.mode == "P":
        return output
    octree = Image.Quantize.FASTOCTREE
    few = picture.convert("RGB").quantize(128, octree, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, "PNG", optimize=True)
    output.data["image/png"] = base64.b64encode(file.getvalue()).decode()
    return output


def printed(notebook: NotebookNode) -> str:
    """Return the text outputs of the cells tagged "print"."""
    texts = []
    for cell in notebook.cells:
        if "print" in cell.metadata.get("tags", []):
            streams = [o for o in cell.outputs if o.output_type == "stream"]
            texts += [output.text for output in streams]
    return "\n".join(texts)


def figures(notebook: NotebookNode) -> dict[str, bytes]:
    """Return file name -> contents of the pictures of the cells tagged "figure:NAME"."""
    found = {}
    for cell in notebook.cells:
        for tag in cell.metadata.get("tags", []):
            if tag.startswith(FIGURE):
                suffix, picture = picture_of(cell, tag)
                found[tag.removeprefix(FIGURE) + suffix] = picture
    return found


def picture_of(cell: NotebookNode, tag: str) -> tuple[str, bytes]:
    """Return the first picture of a cell, and how the name of its file ends."""
    for output in cell.get("outputs", []):
        for kind, suffix in SUFFIXES.items():
            if kind in output.get("data", {}):
                return suffix, base64.b64decode(output.data[kind])
    raise ValueError(
        f"cell {cell.id} is tagged {tag!r} but shows no picture; "
        "remove the tag or let the cell draw one."
    )


# ---- the command ---------------------------------------------------------------------


def update(path: Path, notebook: NotebookNode) -> None:
    """Replace a notebook by its executed version, and write its tagged figures."""
    pictures = figures(notebook)
    text = nbformat.writes(notebook)
    # A process that is killed here leaves the old notebook or the new one, never a part.
    write_atomically(path, text + "\n")
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
    target = BUILD / f"{path.stem.lstrip('0123456789_')}.html"
    pages = {path.stem: page(notebook, folder=path.parent)}
    write_atomically(target, links(path.stem, pages, BUILD, path.parent))
    if keep_outputs:
        update(path, notebook)
    text = printed(notebook)
    if text:
        print(text)
    seconds = time.perf_counter() - start
    print(f"{path.name}: {seconds:.0f} s, build/{target.name}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks that are named, and return the exit code: 1 if any failed."""
    parser = argparse.ArgumentParser(description="Run notebooks from clean kernels.")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    parser.add_argument(
        "--update", action="store_true", help="keep the new outputs in the notebooks"
    )
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    failed = []
    (BUILD / "notebooks").mkdir(parents=True, exist_ok=True)
    for path in options.notebooks:
        print(f"running {path.name} ...", flush=True)
        try:
            run_and_write(path.resolve(), options.update)
        # Whatever the error is, the next notebooks are run.
        except Exception as error:
            what = str(error)
            if not isinstance(error, NotebookError):
                what = f"{path.name}: {type(error).__name__}: {error}"
            failed.append(what)
            print(f"FAILED {what}", flush=True)
    n = len(options.notebooks)
    if n > 1:
        seconds = time.perf_counter() - start
        print(f"{n} notebooks: {seconds:.0f} s, {len(failed)} failed")
        for what in failed:
            print(what)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
