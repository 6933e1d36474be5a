"""What metrics.py takes for codes and labels, and what describe tells of codes."""

import math

import numpy as np
import pytest

from metrics import (
    describe,
    graded_histogram,
    hamming_histogram,
    mean_average_precision,
    nearest,
    pack,
)

BITS = np.random.default_rng(0).random((30, 20)) < 0.5
PACKED = np.packbits(BITS, axis=1, bitorder="little")


class Tensor:
    """Behave as a tensor that numpy can read."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


# ---- pack ------------------------------------------------------------------------------

FORMS = {
    "bool": BITS,
    "list": BITS.astype(int).tolist(),
    "signs": np.where(BITS, 1, -1),
    "float signs": np.where(BITS, 1.0, -1.0),
    "float32 signs": np.where(BITS, 1, -1).astype(np.float32),
    "float16 bits": BITS.astype(np.float16),
    "int8 signs": np.where(BITS, 1, -1).astype(np.int8),
    "uint8 bits": BITS.astype(np.uint8),
    "uint64 bits": BITS.astype(np.uint64),
    "big endian": BITS.astype(">i4"),
    "fortran": np.asfortranarray(BITS),
    "tensor": Tensor(np.where(BITS, 1, -1).astype(np.float32)),
}


@pytest.mark.parametrize("codes", FORMS.values(), ids=FORMS)
def test_pack_takes_bits_and_signs_of_any_type(codes):
    packed = pack(codes)
    assert packed.dtype == np.uint8
    np.testing.assert_array_equal(packed, PACKED)


def test_pack_of_one_value_only():
    assert pack(np.zeros((2, 9))).tolist() == [[0, 0]] * 2
    assert pack(-np.ones((2, 9))).tolist() == [[0, 0]] * 2
    assert pack(np.ones((2, 9))).tolist() == [[255, 1]] * 2


REFUSED = {
    "outputs": (np.array([[0.3, -0.2]]), "codes[0, 0] is 0.3", "codes > 0"),
    "signs with 0": (np.array([[1, -1], [0, 1]]), "codes[1, 0] is 0", "codes > 0"),
    "packed": (PACKED, "codes[0, 0] is", "Packed codes need no packing"),
    "signs as uint8": (np.array([[1, 255]], np.uint8), "255", "pass 0 and 1"),
    "nan": (np.array([[1, np.nan]]), "codes[0, 1] is nan", "pass 0 and 1"),
    "1-D": (np.ones(3), "(3,)", "one code in each row"),
    "empty": (np.ones((0, 3)), "(0, 3)", "one code in each row"),
    "text": (np.array([["0", "1"]]), "<U1", "matrix of numbers"),
    "complex": (np.array([[1j, 0]]), "complex", "matrix of numbers"),
    "objects": (np.array([[None, 1]]), "object", "matrix of numbers"),
}


@pytest.mark.parametrize(("codes", "parts"), [(c, p) for c, *p in REFUSED.values()], ids=REFUSED)
def test_pack_refuses_what_it_cannot_tell(codes, parts):
    with pytest.raises(ValueError) as caught:
        pack(codes)
    assert all(part in str(caught.value) for part in parts), caught.value


# ---- codes that are not packed ---------------------------------------------------------

LABELS = np.arange(30) % 3


@pytest.mark.parametrize("values", [(0, 1), (1, 255)])
def test_bits_as_bytes_are_refused_with_both_ways_out(values):
    codes = np.where(BITS, *values[::-1]).astype(np.uint8)
    for call in (
        lambda: hamming_histogram(codes, codes, LABELS, LABELS),
        lambda: mean_average_precision(codes[:3], codes, LABELS[:3], LABELS),
        lambda: graded_histogram(codes, codes, np.eye(3)[LABELS], np.eye(3)[LABELS]),
        lambda: describe(codes),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        message = str(caught.value)
        for part in (f"{values[0]} or {values[1]}", "pack(codes)", "n_bits=160"):
            assert part in message


def test_the_ways_out_work():
    codes = BITS.astype(np.uint8)
    by_bytes = hamming_histogram(codes, codes, LABELS, LABELS, n_bits=160)
    h = hamming_histogram(pack(codes), pack(codes), LABELS, LABELS, n_bits=20)
    np.testing.assert_array_equal(by_bytes.items[:, :21], h.items)
    assert by_bytes.mean_average_precision() == h.mean_average_precision()


def test_packed_codes_that_resemble_bits_are_accepted():
    labels = [0, 1, 0]
    ones = np.array([[0], [1], [1]], np.uint8)
    # One byte: a short code, as in small examples.
    assert hamming_histogram(ones, ones, labels, labels).n_bits == 8
    # All bits 0: a model that has learned nothing.
    zeros = np.zeros((3, 4), np.uint8)
    assert hamming_histogram(zeros, zeros, labels, labels).n_bits == 32
    # One other byte anywhere in the database, and no matter what the queries are.
    codes = np.zeros((5000, 2), np.uint8)
    codes[:, 1] = 1
    codes[-1, 0] = 2
    h = hamming_histogram(codes[:2], codes, [0, 1], np.arange(5000) % 2)
    assert h.n_bits == 16
    # A search gives the same items either way.
    bits = BITS.astype(np.uint8)
    for a, b in zip(nearest(bits, bits, 5), nearest(PACKED, PACKED, 5), strict=True):
        np.testing.assert_array_equal(a, b)


def test_words_of_packed_codes_are_told_to_view_them_as_bytes():
    words = np.zeros((30, 1), np.uint64)
    words.view(np.uint8)[:, :3] = PACKED
    with pytest.raises(TypeError, match=r"uint64.*codes\.view\(np\.uint8\)"):
        hamming_histogram(words, words, LABELS, LABELS)
    h = hamming_histogram(*[words.view(np.uint8)] * 2, LABELS, LABELS)
    packed = hamming_histogram(PACKED, PACKED, LABELS, LABELS, n_bits=20)
    np.testing.assert_array_equal(h.items[:, :21], packed.items)


# ---- labels ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_labels_that_are_whole_numbers(dtype):
    h = hamming_histogram(PACKED, PACKED, LABELS.astype(dtype), LABELS, n_bits=20)
    expected = hamming_histogram(PACKED, PACKED, LABELS, LABELS, n_bits=20)
    np.testing.assert_array_equal(h.relevant, expected.relevant)
    one_hot = np.eye(3, dtype=dtype)[LABELS]
    h = hamming_histogram(PACKED, PACKED, Tensor(one_hot), one_hot, n_bits=20)
    np.testing.assert_array_equal(h.relevant, expected.relevant)


def test_any_relation_of_queries_and_items():
    rng = np.random.default_rng(1)
    relevance = rng.random((4, 30)) < 0.3
    h = hamming_histogram(PACKED[:4], PACKED, np.eye(4), relevance.T, n_bits=20)
    np.testing.assert_array_equal(h.relevant.sum(axis=1), relevance.sum(axis=1))
    for q in range(4):
        distances = (BITS[q] != BITS[relevance[q]]).sum(axis=1)
        expected = np.bincount(distances, minlength=21)
        np.testing.assert_array_equal(h.relevant[q], expected)


# ---- describe --------------------------------------------------------------------------


def test_describe_against_plain_definitions():
    rng = np.random.default_rng(2)
    bits = rng.random((300, 11)) < 0.4
    bits[:, 3] = bits[:, 2]
    bits[:, 7] = True
    bits[:, 8] = ~bits[:, 2]
    summary = describe(pack(bits), n_bits=11)
    rows, buckets = np.unique(bits, axis=0, return_counts=True)
    varies = [j for j in range(11) if j != 7]
    correlation = np.corrcoef(bits[:, varies].T.astype(float))
    pairs = np.abs(correlation[np.triu_indices(10, 1)])
    entropy = -sum(n / 300 * math.log2(n / 300) for n in buckets.tolist())
    expected = {
        "codes": 300,
        "bits": 11,
        "distinct bits": 10,
        "constant bits": 1,
        "mean |share of ones - 1/2|": np.abs(bits.mean(axis=0) - 0.5).mean(),
        "mean |correlation of two bits|": pairs.mean(),
        "distinct codes": len(rows),
        "items per distinct code": 300 / len(rows),
        "items of the most frequent code": buckets.max(),
        "entropy of the codes in bits": entropy,
    }
    assert dict(summary) == pytest.approx(expected)
    assert list(summary) == list(expected)


def test_describe_sees_a_short_code_repeated():
    bits = np.random.default_rng(3).random((5000, 16)) < 0.5
    short = describe(pack(bits))
    long = describe(pack(np.tile(bits, 4)))
    assert long["bits"] == 64
    assert long["distinct bits"] == 16
    for name in ("distinct codes", "entropy of the codes in bits"):
        assert long[name] == short[name]


def test_describe_shows_a_table():
    summary = describe(PACKED, n_bits=20)
    text = repr(summary)
    html = summary._repr_html_()
    assert len(text.splitlines()) == len(summary) == html.count("<tr>")
    for name, value in summary.items():
        line = next(line for line in text.splitlines() if line.startswith(name + " "))
        assert float(line.split()[-1]) == pytest.approx(value, rel=1e-5)
        assert f"<td>{name}</td>" in html


def test_describe_of_constant_codes():
    summary = describe(np.zeros((4, 2), np.uint8))
    assert summary["constant bits"] == 16
    assert summary["distinct bits"] == 1
    assert summary["mean |correlation of two bits|"] == 0
    assert summary["entropy of the codes in bits"] == 0
    assert describe(np.zeros((1, 1), np.uint8))["codes"] == 1


def test_describe_blocks_do_not_matter(monkeypatch):
    whole = describe(PACKED, n_bits=20)
    monkeypatch.setattr("metrics.BLOCK_WORDS", 7)
    assert describe(PACKED, n_bits=20) == whole
