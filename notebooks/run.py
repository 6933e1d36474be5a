"""Run notebooks from a clean kernel: python notebooks/run.py [--update] NOTEBOOK.ipynb ...

Each one is executed top to bottom and written as a page to build/; the outputs of cells tagged "print" go to the
terminal too. The notebooks themselves stay as they are, unless --update keeps the new outputs in them.
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

BUILD = Path(__file__).parents[1] / "build"


def run(path: Path) -> nbformat.NotebookNode:
    """The executed notebook, free of what changes from machine to machine."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    quiet = ["--IPKernelApp.log_level=40"]  # no warning that other users of the machine could listen in
    NotebookClient(
        notebook, timeout=3600, extra_arguments=quiet, resources={"metadata": {"path": path.parent}}
    ).execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps
    return notebook


def printed(notebook: nbformat.NotebookNode) -> str:
    """The text outputs of the cells tagged "print"."""
    cells = [cell for cell in notebook.cells if "print" in cell.metadata.get("tags", [])]
    return "\n".join(output["text"] for cell in cells for output in cell.outputs if output.output_type == "stream")


def main(arguments: list[str]) -> None:
    update = "--update" in arguments
    BUILD.mkdir(exist_ok=True)
    for path in (Path(name).resolve() for name in arguments if name != "--update"):
        start = time.perf_counter()
        print(f"running {path.name} ...", flush=True)
        notebook = run(path)
        page, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": path.stem}})
        target = BUILD / f"{path.stem.lstrip('0123456789_')}.html"
        target.write_text(page, encoding="utf-8")
        if update:
            nbformat.write(notebook, path)
        print(printed(notebook))
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, build/{target.name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
