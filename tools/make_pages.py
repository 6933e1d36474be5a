"""Make HTML pages of the notebooks: python -m tools.make_pages [NOTEBOOK.ipynb ...]

Open build/site/index.html to read the notebooks without Jupyter. Nothing is executed. A page shows
the last run in build/notebooks if its cells are those of the notebook now. Otherwise it shows the
outputs that are stored in the notebook.

The pages need no network: they have no scripts, they contain their style, and their formulas are
pictures drawn by matplotlib.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import nbformat
from jinja2 import pass_context
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from PIL import Image
from pygments.formatters import HtmlFormatter

from study.claims import VERDICTS
from study.records import write_atomically
from study.scorecard import COUNTS_TYPE

__all__ = ["build", "page"]

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
RUNS = ROOT / "build" / "notebooks"
SITE = ROOT / "build" / "site"
# In pixels, twice the size that the index shows, for screens of high resolution.
THUMBNAIL = (640, 400)

STYLE = """
body {
  margin: 0;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  color: #222;
}
main, nav {
  max-width: 66rem; margin: 0 auto; padding: 0 1rem; box-sizing: border-box;
}
nav {
  display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding-top: .8rem;
  font-size: .9rem;
}
a { color: #00507d; }
h1 { line-height: 1.2; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid #ddd; }
a.anchor-link { visibility: hidden; margin-left: .3em; text-decoration: none; }
:hover > a.anchor-link { visibility: visible; }
pre, code {
  font: .8rem/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
pre { margin: 0; overflow-x: auto; }
:not(pre) > code { background: #f3f3f3; padding: .1em .25em; }
.prompt { display: none; }
.code_cell { margin: 1rem 0; }
.input_area {
  background: #f6f8fa; border-left: 3px solid #c8d1da; padding: .6rem .8rem;
}
.output_area { padding: .5rem .8rem; overflow-x: auto; }
.output_stderr { background: #fff3ee; }
img { max-width: 100%; height: auto; }
img.formula { max-width: none; }
.display { display: block; margin: .8rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; }
.rendered_html { overflow-x: auto; }
th, td {
  padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left;
  vertical-align: top;
}
.cards {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr));
  gap: 1.2rem; padding: 0; list-style: none;
}
.cards li { border: 1px solid #ddd; border-radius: 6px; overflow: hidden; }
.cards a { display: block; height: 100%; color: inherit; text-decoration: none; }
.cards a:hover { background: #f6f8fa; }
.thumbnail {
  display: flex; align-items: center; justify-content: center; height: 12.5rem;
  background: #fff; border-bottom: 1px solid #eee; color: #888;
}
.thumbnail img { max-height: 100%; }
.card { padding: .2rem 1rem .8rem; }
.card p { margin: .4rem 0; font-size: .92rem; }
.card h2 { margin: .6rem 0 .3rem; border: 0; font-size: 1.05rem; line-height: 1.3; }
.verdict {
  display: inline-block; margin-right: .8em; font-weight: 600; white-space: nowrap;
}
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<nav>{navigation}</nav>
<main>
{body}
</main>
</body>
</html>
"""
INTRODUCTION = """<h1>hmoh: the paper, section by section</h1>
<p><em>Hadamard Matrix Guided Online Hashing</em> (Lin et al., IJCV 2020), recomputed.
A notebook on a part of the paper ends with a verdict on every claim in it. {legend}.</p>
"""
CARD = """<li><a href="{name}.html"><div class="thumbnail">{shown}</div>
<div class="card"><h2>{number} {title}</h2>{text}{notes}</div></a></li>"""


# ---- formulas ------------------------------------------------------------------------

# LaTeX commands that matplotlib spells differently: pattern and replacement.
REWRITTEN = [
    (r"\\(le|ge)(?![A-Za-z])", r"\\\1q"),
    (r"\\[lr]vert(?![A-Za-z])", "|"),
    (r"\\[lr]Vert(?![A-Za-z])", r"\\|"),
    (r"\\[td]?frac *(\w) *(\w)", r"\\frac{\1}{\2}"),
    (r"\\[td]frac", r"\\frac"),
    # Between the columns of a matrix.
    (r"(?<!\\)&", r"\\;\\;"),
    (r"\\&", "&"),
    (r"\\begin\{[a-z]*matrix\}", r"\\substack{"),
    (r"\\end\{[a-z]*matrix\}", "}"),
]
# At this size a point is a hundredth of an em.
FONT = FontProperties(size=100, math_fontfamily="stix")


@cache
def formula(tex: str) -> str:
    """Return a formula as an image that needs neither fonts nor scripts.

    A formula that matplotlib cannot draw stays as text.

    >>> formula("r^*")[:31], formula(r"\\unheard{of}")
    ('<img class="formula" alt="r^*" ', '<code>\\\\unheard{of}</code>')
    """
    drawn = " ".join(tex.split())
    for pattern, other in REWRITTEN:
        drawn = re.sub(pattern, other, drawn)
    drawn = f"${drawn}$"
    try:
        box = MathTextParser("path").parse(drawn, dpi=72, prop=FONT)
    except ValueError:
        return f"<code>{html.escape(tex)}</code>"
    width, height, depth, *_ = box
    figure = Figure(figsize=(width / 72, height / 72))
    figure.text(0, depth / height, drawn, fontproperties=FONT)
    file = io.BytesIO()
    # Without the date, equal formulas give equal files.
    metadata = {"Date": None, "Creator": None}
    figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    source = base64.b64encode(file.getvalue()).decode()
    style = (
        f"width:{width / 100:.2f}em;"
        f"height:{height / 100:.2f}em;"
        f"vertical-align:{-depth / 100:.2f}em"
    )
    return (
        f'<img class="formula" alt="{html.escape(tex)}" style="{style}" '
        f'src="data:image/svg+xml;base64,{source}"/>'
    )


class Renderer(IPythonRenderer):
    """Convert Markdown to HTML, with formulas as images."""

    def inline_math(self, body: str) -> str:
        return formula(body)

    def block_math(self, body: str) -> str:
        return f'<span class="display">{formula(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        if not name.startswith("equation"):
            body = rf"\begin{{{name}}}{body}\end{{{name}}}"
        return self.block_math(body)


def markdown(source: str) -> str:
    """Return Markdown as HTML."""
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(source)


# ---- one page ------------------------------------------------------------------------


class Exporter(HTMLExporter):
    """Convert cells to plain HTML: the template "basic" has neither head nor scripts."""

    template_name = "basic"

    @pass_context
    def markdown2html(self, context, source):
        return markdown(source)


def page(notebook: NotebookNode, navigation: str = "") -> str:
    """Return a notebook with its outputs as one HTML file."""
    # A copy, because the pictures get descriptions.
    notebook = nbformat.from_dict(notebook)
    describe_pictures(notebook)
    body, _ = Exporter().from_notebook_node(notebook)
    highlighting = HtmlFormatter(style="default").get_style_defs(".highlight")
    return PAGE.format(
        title=html.escape(title(notebook)),
        style=STYLE + highlighting,
        navigation=navigation,
        body=body,
    )


def describe_pictures(notebook: NotebookNode) -> None:
    """Give every picture a text for readers who cannot see it: number and last heading."""
    heading = ""
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE)
            heading = headings[-1] if headings else heading
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                count += 1
                metadata = output.setdefault("metadata", {})
                picture = metadata.setdefault("image/png", {})
                picture["alt"] = f"Figure {count}: {heading}"


# ---- what the index shows of a notebook ----------------------------------------------


def title(notebook: NotebookNode) -> str:
    """Return the first heading."""
    for cell in notebook.cells:
        match = re.search(r"^# +(.+)$", cell.source, re.MULTILINE)
        if match:
            return match[1]
    return "Notebook"


def sentence(notebook: NotebookNode) -> str:
    """Return the first sentence of the first paragraph.

    A sentence ends where a capital letter follows, so "Sec. 4" does not end it.
    """
    source = notebook.cells[0].source if notebook.cells else ""
    text = re.sub(r"^#.*$", "", source, flags=re.MULTILINE).strip()
    paragraph = " ".join(text.split("\n\n")[0].split())
    first = re.split(r"(?<=[.!?]) +(?=[A-Z*`$])", paragraph)[0]
    return re.sub(r":$", " ...", first)


def results(notebook: NotebookNode, mime_type: str) -> Iterator:
    """Yield the outputs of a notebook that have this type."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if mime_type in data:
                yield data[mime_type]


def first_figure(notebook: NotebookNode) -> Image.Image | None:
    """Return the first picture, or None."""
    for source in results(notebook, "image/png"):
        return Image.open(io.BytesIO(base64.b64decode(source)))
    return None


def verdicts(notebook: NotebookNode) -> dict[str, int]:
    """Return verdict -> count as the table of claims in the notebook stored them."""
    counts = next(results(notebook, COUNTS_TYPE), {})
    return {verdict: counts[verdict] for verdict in VERDICTS if counts.get(verdict)}


def state(notebook: NotebookNode) -> str:
    """Return what the index says about the run: nothing if it is complete."""
    if not any(cell.get("execution_count") for cell in notebook.cells):
        return "Not run yet."
    if notebook.metadata.get("hmoh_profile") == "quick":
        return "Run in the quick profile."
    return ""


# ---- the site ------------------------------------------------------------------------


def card(name: str, notebook: NotebookNode, folder: Path) -> str:
    """Return the entry of a notebook in the index; its thumbnail is written to the folder."""
    number = name.split("_")[0]
    shown = html.escape(number)
    picture = first_figure(notebook)
    if picture:
        picture = picture.convert("RGBA")
        picture.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
        picture.save(folder / f"{name}.png", optimize=True)
        shown = f'<img src="{name}.png" alt=""/>'
    found = ""
    for verdict, n in verdicts(notebook).items():
        symbol, colour, _ = VERDICTS[verdict]
        style = f"color:{colour}"
        found += f'<span class="verdict" style="{style}">{symbol} {n} {verdict}</span>'
    notes = [note for note in (found, state(notebook)) if note]
    # The whole card is a link, so its text must not contain links.
    text = re.sub(r"</?a\b[^>]*>", "", markdown(sentence(notebook)))
    return CARD.format(
        name=name,
        shown=shown,
        number=html.escape(number),
        title=html.escape(title(notebook)),
        text=text,
        notes="".join(f"<p>{note}</p>" for note in notes),
    )


def links(text: str, names: Sequence[str], folder: Path) -> str:
    """Return a page whose links work from the folder of the site.

    Links between notebooks lead to their pages, and links to other files of the clone to the file.
    """

    def moved(match: re.Match) -> str:
        target, mark, anchor = match[1].partition("#")
        path = Path(target)
        if path.suffix == ".ipynb" and path.stem in names:
            target = f"{path.stem}.html"
        elif (NOTEBOOKS / path).exists():
            target = Path(os.path.relpath(NOTEBOOKS / path, folder)).as_posix()
        return f'href="{target}{mark}{anchor}"'

    return re.sub(r'href="(?![a-z]+:|#)([^"]+)"', moved, text)


def navigation(notebooks: dict[str, NotebookNode], name: str) -> str:
    """Return links to the index and to the notebooks before and after this one."""
    names = list(notebooks)
    place = names.index(name)
    targets = [("index", "All notebooks")]
    if place > 0:
        before = names[place - 1]
        targets.append((before, f"← {title(notebooks[before])}"))
    if place + 1 < len(names):
        after = names[place + 1]
        targets.append((after, f"{title(notebooks[after])} →"))
    shown = []
    for target, text in targets:
        shown.append(f'<a href="{target}.html">{html.escape(text)}</a>')
    return " ".join(shown)


def index(notebooks: dict[str, NotebookNode], folder: Path) -> str:
    """Return the page that lists the notebooks; their thumbnails are written to the folder."""
    meanings = []
    for verdict, (symbol, _, meaning) in VERDICTS.items():
        meanings.append(f"<b>{symbol} {verdict}</b>: {meaning}")
    introduction = INTRODUCTION.format(legend="; ".join(meanings))
    cards = [card(name, notebook, folder) for name, notebook in notebooks.items()]
    listed = "\n".join(cards)
    return PAGE.format(
        title="hmoh notebooks",
        style=STYLE,
        navigation="",
        body=f'{introduction}<ul class="cards">\n{listed}\n</ul>',
    )


def build(notebooks: dict[str, NotebookNode], folder: Path = SITE) -> None:
    """Write the index, and a page for each notebook; the folder is emptied first.

    Parameters
    ----------
    notebooks : dict
        Name, like "02_mnist" -> executed notebook, in the order of the index.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = list(notebooks)
    for name, notebook in notebooks.items():
        text = page(notebook, navigation(notebooks, name))
        text = links(text, names, folder)
        write_atomically(folder / f"{name}.html", text)
    text = index(notebooks, folder)
    write_atomically(folder / "index.html", text)


def latest(path: Path) -> NotebookNode:
    """Return the last run of a notebook if its cells are the same, else the notebook itself."""
    notebook = nbformat.read(path, as_version=4)
    if not (RUNS / path.name).exists():
        return notebook
    ran = nbformat.read(RUNS / path.name, as_version=4)
    sources = [cell.source for cell in notebook.cells]
    same = sources == [cell.source for cell in ran.cells]
    return ran if same else notebook


def main() -> None:
    parser = argparse.ArgumentParser(description="Make HTML pages of the notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK.ipynb")
    paths = parser.parse_args().notebooks
    if not paths:
        paths = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
    build({path.stem: latest(path) for path in paths})
    print(f"{len(paths)} notebooks: {os.path.relpath(SITE / 'index.html')}")


if __name__ == "__main__":
    main()
