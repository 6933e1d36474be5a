"""Notebooks as pages to read without Jupyter: python notebooks/pages.py [NOTEBOOK.ipynb ...] writes build/site/.

Open build/site/index.html. Nothing is executed: of each notebook the last run in build/notebooks is shown, if it ran
the notebook as it is now, and otherwise the outputs that the notebook itself holds.

The pages need no network. They have no scripts, the style is in them, and formulas are drawn by matplotlib.
"""

from __future__ import annotations

import base64
import html
import io
import os
import re
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import nbformat
from jinja2 import pass_context
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from PIL import Image
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from claims import VERDICTS  # noqa: E402

RUNS, SITE = ROOT / "build" / "notebooks", ROOT / "build" / "site"
THUMBNAIL = 640, 400  # pixels, twice what the index shows, for sharp screens

STYLE = """
body { margin: 0; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: #222; }
main, nav { max-width: 66rem; margin: 0 auto; padding: 0 1rem; box-sizing: border-box; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding-top: .8rem; font-size: .9rem; }
a { color: #00507d; }
h1 { line-height: 1.2; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #ddd; }
a.anchor-link { visibility: hidden; margin-left: .3em; text-decoration: none; }
:hover > a.anchor-link { visibility: visible; }
pre, code { font: .8rem/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { margin: 0; overflow-x: auto; } :not(pre) > code { background: #f3f3f3; padding: .1em .25em; }
.prompt { display: none; } .code_cell { margin: 1rem 0; }
.input_area { background: #f6f8fa; border-left: 3px solid #c8d1da; padding: .6rem .8rem; }
.output_area { padding: .5rem .8rem; overflow-x: auto; } .output_stderr { background: #fff3ee; }
img { max-width: 100%; height: auto; } img.formula { max-width: none; }
.display { display: block; margin: .8rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; } .rendered_html { overflow-x: auto; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: 1.2rem; }
.cards { padding: 0; list-style: none; }
.cards li { border: 1px solid #ddd; border-radius: 6px; overflow: hidden; }
.cards a { display: block; height: 100%; color: inherit; text-decoration: none; }
.cards a:hover { background: #f6f8fa; }
.thumbnail { display: flex; align-items: center; justify-content: center; height: 12.5rem; }
.thumbnail { background: #fff; border-bottom: 1px solid #eee; color: #888; }
.thumbnail img { max-height: 100%; } .card { padding: .2rem 1rem .8rem; }
.card p { margin: .4rem 0; font-size: .92rem; }
.card h2 { margin: .6rem 0 .3rem; border: 0; font-size: 1.05rem; line-height: 1.3; }
.verdict { display: inline-block; margin-right: .8em; font-weight: 600; white-space: nowrap; }
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

# ---- one page -----------------------------------------------------------------------------------------------------

DRAWN = [  # what matplotlib knows by another name
    (r"\\(le|ge)(?![A-Za-z])", r"\\\1q"),
    (r"\\[lr]vert(?![A-Za-z])", "|"),
    (r"\\[lr]Vert(?![A-Za-z])", r"\\|"),
    (r"\\[td]?frac *(\w) *(\w)", r"\\frac{\1}{\2}"),
    (r"\\[td]frac", r"\\frac"),
    (r"(?<!\\)&", r"\\;\\;"),  # between the columns of a matrix
    (r"\\&", "&"),
    (r"\\begin\{[a-z]*matrix\}", r"\\substack{"),
    (r"\\end\{[a-z]*matrix\}", "}"),
]
FONT = FontProperties(size=100, math_fontfamily="stix")  # so that a point is a hundredth of an em


@cache
def formula(tex: str) -> str:
    """A formula as an image that needs neither fonts nor scripts; one that matplotlib cannot draw stays as text.

    >>> formula("r^*")[:31], formula(r"\\unheard{of}")
    ('<img class="formula" alt="r^*" ', '<code>\\\\unheard{of}</code>')
    """
    drawn = " ".join(tex.split())
    for pattern, other in DRAWN:
        drawn = re.sub(pattern, other, drawn)
    try:
        width, height, depth, *_ = MathTextParser("path").parse(f"${drawn}$", dpi=72, prop=FONT)
    except ValueError:
        return f"<code>{html.escape(tex)}</code>"
    figure, file = Figure(figsize=(width / 72, height / 72)), io.BytesIO()
    figure.text(0, depth / height, f"${drawn}$", fontproperties=FONT)
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    size = f"width:{width / 100:.2f}em;height:{height / 100:.2f}em;vertical-align:{-depth / 100:.2f}em"
    source = base64.b64encode(file.getvalue()).decode()
    return f'<img class="formula" alt="{html.escape(tex)}" style="{size}" src="data:image/svg+xml;base64,{source}"/>'


class Renderer(IPythonRenderer):
    """Markdown to HTML, with formulas drawn."""

    def inline_math(self, body: str) -> str:
        return formula(body)

    def block_math(self, body: str) -> str:
        return f'<span class="display">{formula(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(body if name.startswith("equation") else rf"\begin{{{name}}}{body}\end{{{name}}}")


def markdown(source: str) -> str:
    return MarkdownWithMath(renderer=Renderer(escape=False)).render(source)


class Exporter(HTMLExporter):
    """The cells as plain HTML: the template "basic" has neither head nor scripts."""

    template_name = "basic"

    @pass_context
    def markdown2html(self, context, source):
        return markdown(source)


def page(notebook: nbformat.NotebookNode, navigation: str = "") -> str:
    """A notebook with its outputs as one HTML file."""
    notebook = nbformat.from_dict(notebook)  # a copy
    heading, count = "", 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = (re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE) or [heading])[-1]
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):  # a text for those who cannot see it
                count += 1
                output.setdefault("metadata", {}).setdefault("image/png", {})["alt"] = f"Figure {count}: {heading}"
    body, _ = Exporter().from_notebook_node(notebook)
    style = STYLE + HtmlFormatter(style="default").get_style_defs(".highlight")
    return PAGE.format(title=html.escape(title(notebook)), style=style, navigation=navigation, body=body)


# ---- what the index says of a notebook ----------------------------------------------------------------------------


def title(notebook: nbformat.NotebookNode) -> str:
    """Its first heading."""
    found = (re.search(r"^# +(.+)$", cell.source, re.MULTILINE) for cell in notebook.cells)
    return next((match[1] for match in found if match), "Notebook")


def sentence(notebook: nbformat.NotebookNode) -> str:
    """The first sentence of its first paragraph, which ends where a capital follows: "Sec. 4" is no end."""
    text = re.sub(r"^#.*$", "", notebook.cells[0].source if notebook.cells else "", flags=re.MULTILINE).strip()
    first = " ".join(text.split("\n\n")[0].split())
    return re.sub(r":$", " ...", re.split(r"(?<=[.!?]) +(?=[A-Z*`$])", first)[0])


def first_figure(notebook: nbformat.NotebookNode) -> Image.Image | None:
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            return Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"])))
    return None


def verdicts(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """The counts as the notebook's own table of claims gives them, so that index and page never disagree."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
        if match := re.search(r"^\d+ claims: (.+)$", text, re.MULTILINE):
            pairs = (part.split(" ", 1) for part in match[1].split(", "))
            return {verdict: int(n) for n, verdict in pairs if verdict in VERDICTS}
    return {}


# ---- the site -----------------------------------------------------------------------------------------------------


def card(name: str, notebook: nbformat.NotebookNode, folder: Path) -> str:
    """A notebook's place in the index; its thumbnail is written to the folder."""
    picture, shown = first_figure(notebook), html.escape(name.split("_")[0])
    if picture:
        picture = picture.convert("RGBA")
        picture.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
        picture.save(folder / f"{name}.png", optimize=True)
        shown = f'<img src="{name}.png" alt=""/>'
    found = "".join(
        f'<span class="verdict" style="color:{VERDICTS[verdict][1]}">{VERDICTS[verdict][0]} {n} {verdict}</span>'
        for verdict, n in verdicts(notebook).items()
    )
    state = {"paper": "", "quick": "Run in the quick profile."}.get(notebook.metadata.get("hmoh_profile", "paper"), "")
    if not any(cell.get("execution_count") for cell in notebook.cells):
        state = "Not run yet."
    notes = "".join(f"<p>{note}</p>" for note in (found, state) if note)
    text = re.sub(r"</?a\b[^>]*>", "", markdown(sentence(notebook)))  # the whole card is a link
    return (
        f'<li><a href="{name}.html"><div class="thumbnail">{shown}</div><div class="card">'
        f"<h2>{name[:2]} {html.escape(title(notebook))}</h2>{text}{notes}</div></a></li>"
    )


def links(text: str, names: Sequence[str], folder: Path) -> str:
    """Links between notebooks lead to their pages, those to other files of the clone to the file."""

    def moved(match: re.Match) -> str:
        target, _, anchor = match[1].partition("#")
        target = Path(target)
        if target.suffix == ".ipynb" and target.stem in names:
            target = f"{target.stem}.html"
        elif (ROOT / "notebooks" / target).exists():
            target = Path(os.path.relpath(ROOT / "notebooks" / target, folder)).as_posix()
        return f'href="{target}{"#" + anchor if anchor else ""}"'

    return re.sub(r'href="(?![a-z]+:|#)([^"]+)"', moved, text)


def build(notebooks: dict[str, nbformat.NotebookNode], folder: Path = SITE) -> None:
    """Write the index, and each notebook with links to its neighbours; what was in the folder goes.

    Parameters
    ----------
    notebooks : dict
        Name, like "02_mnist" -> executed notebook, in the order of the index.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = list(notebooks)
    for i, (name, notebook) in enumerate(notebooks.items()):
        around = [("index", "All notebooks")]
        around += [(other, f"← {title(notebooks[other])}") for other in names[max(i - 1, 0) : i]]
        around += [(other, f"{title(notebooks[other])} →") for other in names[i + 1 : i + 2]]
        navigation = " ".join(f'<a href="{other}.html">{html.escape(text)}</a>' for other, text in around)
        (folder / f"{name}.html").write_text(links(page(notebook, navigation), names, folder), encoding="utf-8")
    cards = "\n".join(card(name, notebook, folder) for name, notebook in notebooks.items())
    signs = {"holds": "as the paper says", "fails": "not so here", "artefact": "only with a fault of the published "
             "benchmark", "not testable here": "the paper's data are not here, others stand in"}  # fmt: skip
    legend = "; ".join(f"<b>{VERDICTS[verdict][0]} {verdict}</b>: {meaning}" for verdict, meaning in signs.items())
    body = (
        "<h1>hmoh: the paper, section by section</h1>\n"
        "<p><em>Hadamard Matrix Guided Online Hashing</em> (Lin et al., IJCV 2020), recomputed. A notebook that "
        f"takes up a part of the paper ends with a verdict on every claim in it. {legend}.</p>\n"
        f'<ul class="cards">\n{cards}\n</ul>'
    )
    text = PAGE.format(title="hmoh notebooks", style=STYLE, navigation="", body=body)
    (folder / "index.html").write_text(text, encoding="utf-8")


def latest(path: Path) -> nbformat.NotebookNode:
    """The last run of a notebook if it ran these very cells, else the notebook with the outputs it holds."""
    notebook = nbformat.read(path, as_version=4)
    if (RUNS / path.name).exists():
        ran = nbformat.read(RUNS / path.name, as_version=4)
        if [cell.source for cell in ran.cells] == [cell.source for cell in notebook.cells]:
            return ran
    return notebook


def main(arguments: Sequence[str]) -> None:
    paths = [Path(name) for name in arguments] or sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    build({path.stem: latest(path) for path in paths})
    print(f"{len(paths)} notebooks: {os.path.relpath(SITE / 'index.html')}")


if __name__ == "__main__":
    main(sys.argv[1:])
