"""Prepare the sources for Jupyter Book: the Sphinx extension that `_config.yml` names.

The notebooks and README.md are written for Jupyter and GitHub. While `make site` reads them, four
things change, and no file does: links to code offer the file, links to a notebook or a heading lead
to its place in the book, long code is folded, and the title of a solution says what it is. The
buttons that lead to the repository are those of the clone's remote.
"""

import json
import re
import subprocess
from pathlib import Path

from myst_parser.mdit_to_docutils.base import default_slugify

# The longest code in lines that is shown unfolded.
LONG = 14


def page_link(target: str) -> str:
    """Return the target of a Markdown link, seen from this folder, as the book wants it.

    >>> page_link("01_method.ipynb#Table-4:-mAP"), page_link("../study/claims.py")
    ('01_method.ipynb#table-4-map', 'path:../study/claims.py')
    """
    path, mark, heading = target.removeprefix("../notebooks/").partition("#")
    if path == "../README.md":
        path = "index.md"
    elif path.startswith("../"):
        return f"path:{path}"
    return path + mark + default_slugify(heading)


def with_page_links(text: str, folder: str = "") -> str:
    """Return Markdown with the links of the book; the links of the text start from ``folder``."""

    def moved(match: re.Match) -> str:
        start = "" if match[1].startswith("#") else folder
        return f"]({page_link(start + match[1])})"

    # `make site` puts this page beside the others; it is not a source of the book.
    text = text.replace('href="../build/draw.html"', 'href="draw.html"')
    return re.sub(r"\]\((?!\w+:)([^)\s]+)\)", moved, text)


def read_page(app, docname: str, source: list[str]) -> None:
    """Change the links of a page and a solution's title, and fold long or hidden code."""
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        if docname == "README":
            source[0] = with_page_links(source[0])
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        metadata = cell["metadata"]
        if cell["cell_type"] == "code":
            # What a student has to fill in is never folded.
            is_task = metadata.get("nbgrader", {}).get("solution")
            is_hidden = metadata.get("jupyter", {}).get("source_hidden")
            tags = metadata.setdefault("tags", [])
            is_folded = is_hidden or (len(cell["source"]) > LONG and not is_task)
            if is_folded and "hide-input" not in tags:
                tags.append("hide-input")
        elif docname.startswith("exercises/solution/"):
            text = "".join(cell["source"])
            cell["source"] = re.sub(r"\A# Exercise", "# Solution of exercise", text)
        elif "/" not in docname:
            cell["source"] = with_page_links("".join(cell["source"]))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            page = r'(href="\w+)\.ipynb'
            for lines, change in (
                (data.get("text/html", []), lambda line: re.sub(page, r"\1.html", line)),
                (data.get("text/markdown", []), with_page_links),
            ):
                lines[:] = map(change, lines)
    source[0] = json.dumps(notebook)


def read_readme(app, path, docname: str, content: list[str]) -> None:
    """Change the links of README.md, which `index.md` includes from the folder above."""
    # GitHub reads the height of a picture from HTML, in which Sphinx does not follow a path.
    text = re.sub(r'<img src="([^"]+)" alt="([^"]+)"[^>]*>', r"![\2](\1)", content[0])
    content[0] = with_page_links(text, "../")


def buttons(remote: str) -> dict:
    """Return the options of the theme for the address of a git remote.

    An address of this machine, or none, gives no button. What may stand before @ is not shown.

    >>> buttons("git@github.com:someone/hmoh.git")["repository_url"]
    'https://github.com/someone/hmoh'
    >>> sorted(buttons("https://key@gitlab.com/someone/hmoh"))
    ['repository_url', 'use_repository_button']
    >>> buttons("/home/someone/hmoh"), buttons("")
    ({}, {})
    """
    address = re.fullmatch(r"(?:https://(?:[^/@]*@)?|git@)([^/:@]+)[/:](.+?)(?:\.git)?/?", remote)
    if address is None:
        return {}
    host, path = address.groups()
    options = {"repository_url": f"https://{host}/{path}", "use_repository_button": True}
    if host == "github.com":  # Binder and Colab open notebooks from there
        options |= {
            "repository_branch": "main",
            "path_to_docs": "notebooks",
            "launch_buttons": {
                "binderhub_url": "https://mybinder.org",
                "colab_url": "https://colab.research.google.com",
                "notebook_interface": "jupyterlab",
            },
        }
    return options


def show_buttons(app, config) -> None:
    """Take the address of the repository from git."""
    command = ["git", "remote", "get-url", "origin"]
    try:
        asked = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:  # there is no git
        return
    config.html_theme_options |= {"repository_url": "", **buttons(asked.stdout.strip())}


def setup(app) -> dict:
    app.connect("config-inited", show_buttons)
    app.connect("source-read", read_page)
    app.connect("include-read", read_readme)
    return {"parallel_read_safe": True}
