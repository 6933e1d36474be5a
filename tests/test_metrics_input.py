"""What metrics.py takes for codes, labels and judgements, and how it refuses the rest."""

import warnings

import numpy as np
import pytest
from helpers import ANY, BFLOAT16, WITH_GRADIENT, Tensor

from metrics import (
    HammingHistogram,
    hamming_histogram,
    judged_histogram,
    mean_average_precision,
    nearest,
    pack,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its SWIG wrapper is deprecated from Python 3.12 on
    import faiss

BITS = np.random.default_rng(0).random((30, 20)) < 0.5
PACKED = np.packbits(BITS, axis=1, bitorder="little")
IDS = np.arange(30) % 3

# ---- pack ------------------------------------------------------------------------------

FORMS = {
    "bool": BITS,
    "list": BITS.astype(int).tolist(),
    "float16 bits": BITS.astype(np.float16),
    "int8 signs": np.where(BITS, 1, -1).astype(np.int8),
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
    np.testing.assert_array_equal(pack(codes, bitorder="big"), np.packbits(BITS, axis=1))


def test_pack_of_one_value_only():
    assert pack(np.zeros((2, 9))).tolist() == [[0, 0]] * 2
    assert pack(-np.ones((2, 9))).tolist() == [[0, 0]] * 2
    assert pack(np.ones((2, 9))).tolist() == [[255, 1]] * 2


# ---- formats of other programs ---------------------------------------------------------


def binary_embeddings(n, n_dimensions):
    """Return the codes that sentence-transformers makes of random vectors, "ubinary" and "binary".

    UKPLab/sentence-transformers, util/quantization.py, quantize_embeddings:
    ``np.packbits(embeddings > 0).reshape(n, -1)``, for "binary" minus 128 as int8.
    """
    vectors = np.random.default_rng(n_dimensions).normal(size=(n, n_dimensions))
    ubinary = np.packbits(vectors > 0, axis=-1)
    return vectors > 0, ubinary, (ubinary.astype(int) - 128).astype(np.int8)


@pytest.mark.parametrize("n_dimensions", [300, 384])
def test_binary_embeddings(n_dimensions):
    bits, ubinary, binary = binary_embeddings(40, n_dimensions)
    labels = np.arange(40) % 4
    expected = hamming_histogram(*[pack(bits)] * 2, labels, labels).mean_average_precision()
    found = mean_average_precision(ubinary, ubinary, labels, labels)
    assert found == pytest.approx(expected, abs=1e-12)
    # The remedy for signed bytes holds for the int8 side only: uint8 codes stay as they are.
    for pair in [(binary, binary), (binary, ubinary), (ubinary, binary)]:
        with pytest.raises(TypeError, match=r"codes\.view\(np\.uint8\) \^ 128 .*only what is int8"):
            mean_average_precision(*pair, labels, labels)
        codes = [c.view(np.uint8) ^ 128 if c.dtype == np.int8 else c for c in pair]
        assert mean_average_precision(*codes, labels, labels) == found


def test_big_bit_order_with_unused_bits_is_told_to_leave_n_bits_out():
    bits, ubinary, _ = binary_embeddings(40, 300)
    labels = np.arange(40) % 4
    with pytest.raises(ValueError, match=r"n_bits=300.*leave n_bits out.*both in big bit order"):
        hamming_histogram(ubinary, ubinary, labels, labels, n_bits=300)
    h = hamming_histogram(ubinary, ubinary, labels, labels)
    little = hamming_histogram(*[pack(bits)] * 2, labels, labels, n_bits=300)
    np.testing.assert_array_equal(h.relevant[:, :301], little.relevant)


@pytest.mark.parametrize("n_bits", [12, 64, 512])
def test_faiss_takes_the_codes_finds_what_nearest_finds_and_gives_them_back(n_bits, tmp_path):
    codes = pack(np.random.default_rng(1).random((120, n_bits)) < 0.5)
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes[20:])
    faiss.write_index_binary(index, str(tmp_path / "codes.faiss"))
    index = faiss.read_index_binary(str(tmp_path / "codes.faiss"))
    returned = faiss.vector_to_array(index.xb).reshape(index.ntotal, -1)
    np.testing.assert_array_equal(returned, codes[20:])
    # Its order of ties is its own, so only the distances compare.
    theirs, _ = index.search(codes[:20], 30)
    np.testing.assert_array_equal(theirs, nearest(codes[:20], codes[20:], 30)[0])
    h = hamming_histogram(codes[:20], codes[20:], np.zeros(20, int), np.zeros(100, int))
    for radius in (0, 2, n_bits // 2):
        # FAISS counts strictly below the radius.
        limits, _, _ = index.range_search(codes[:20], radius + 1)
        within = h.items[:, : radius + 1].sum(axis=1)
        np.testing.assert_array_equal(np.diff(limits.astype(int)), within)


def test_sqlite_vec_takes_the_codes_finds_what_nearest_finds_and_gives_them_back():
    apsw = pytest.importorskip("apsw")  # many builds of Python have an sqlite3 without extensions
    sqlite_vec = pytest.importorskip("sqlite_vec")
    codes = pack(np.random.default_rng(1).random((110, 64)) < 0.5)
    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.execute("create virtual table items using vec0(code bit[64])")
    insert = "insert into items(rowid, code) values (?, vec_bit(?))"
    db.executemany(insert, ((i, code.tobytes()) for i, code in enumerate(codes[10:])))
    rows = [row for (row,) in db.execute("select code from items order by rowid")]
    returned = np.frombuffer(b"".join(rows), np.uint8).reshape(100, -1)
    np.testing.assert_array_equal(returned, codes[10:])
    select = "select distance from items where code match vec_bit(?) and k = 20 order by distance"
    found = [[d for (d,) in db.execute(select, (code.tobytes(),))] for code in codes[:10]]
    np.testing.assert_array_equal(found, nearest(codes[:10], codes[10:], 20)[0])


def test_usearch_returns_packed_codes():
    usearch = pytest.importorskip("usearch.index")
    codes = pack(np.random.default_rng(1).random((30, 64)) < 0.5)
    index = usearch.Index(ndim=64, metric="hamming", dtype="b1")
    keys = np.arange(30)
    index.add(keys, codes)
    np.testing.assert_array_equal(np.vstack(index.get(keys)), codes)


# ---- codes that are not packed ---------------------------------------------------------


@pytest.mark.parametrize("values", [(0, 1), (1, 255)])
def test_bits_as_bytes_are_refused_with_both_ways_out(values):
    codes = np.where(BITS, *values[::-1]).astype(np.uint8)
    with pytest.raises(ValueError) as caught:
        hamming_histogram(codes, codes, IDS, IDS)
    for part in (f"{values[0]} or {values[1]}", "pack(codes)", "n_bits=160"):
        assert part in str(caught.value)
    bits = BITS.astype(np.uint8)
    by_bytes = hamming_histogram(bits, bits, IDS, IDS, n_bits=160)
    h = hamming_histogram(pack(bits), pack(bits), IDS, IDS, n_bits=20)
    np.testing.assert_array_equal(by_bytes.items[:, :21], h.items)


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
    assert hamming_histogram(codes[:2], codes, [0, 1], np.arange(5000) % 2).n_bits == 16
    # A search gives the same items either way.
    bits = BITS.astype(np.uint8)
    for a, b in zip(nearest(bits, bits, 5), nearest(PACKED, PACKED, 5), strict=True):
        np.testing.assert_array_equal(a, b)


# ---- arrays that simply work -----------------------------------------------------------


LAYOUTS = ["strided", "backwards", "read-only", "fortran", "unaligned"]


@pytest.mark.parametrize("n_queries", [4, 20])
@pytest.mark.parametrize("form", LAYOUTS)
def test_any_memory_layout_works_and_input_is_left_as_it_was(form, n_queries):
    rng = np.random.default_rng(0)
    codes = rng.integers(256, size=(50, 16), dtype=np.uint8)
    labels = rng.integers(0, 3, 50)
    case = [codes[:n_queries], codes, labels[:n_queries], labels]
    other = [ANY[form](array) for array in case]
    results = []
    for data in (case, other):
        h = hamming_histogram(*data)
        stable = mean_average_precision(*data, ties="stable")
        results.append([h.items, h.relevant, *nearest(*data[:2], 5), stable])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(case, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.uint64, ">i4", list, Tensor])
@pytest.mark.parametrize("shape", [(30,), (30, 70)], ids=["ids", "sets"])
def test_any_form_of_labels_that_are_whole_numbers_works(shape, dtype):
    labels = np.random.default_rng(0).integers(0, 2, shape)
    forms = {list: labels.tolist(), Tensor: Tensor(labels)}
    other = forms[dtype] if dtype in forms else labels.astype(dtype)
    expected = hamming_histogram(PACKED, PACKED, labels, labels, 20).relevant
    for pair in ((other, labels), (labels, other)):
        found = hamming_histogram(PACKED, PACKED, *pair, 20).relevant
        np.testing.assert_array_equal(found, expected)


def test_strings_of_any_length_and_as_objects_work():
    names = np.array(["ant", "bee", "camel"])[IDS]
    expected = hamming_histogram(PACKED[:2], PACKED, IDS[:2], IDS, 20).relevant
    numpy_strings = np.empty(30, object)
    numpy_strings[:] = list(names)
    for queries, items in (
        (names.astype("U9"), names),
        (names.astype(object), names.tolist()),
        (numpy_strings, names),
    ):
        found = hamming_histogram(PACKED[:2], PACKED, queries[:2], items, 20).relevant
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("query_type", [np.int64, np.uint64])
@pytest.mark.parametrize("db_type", [np.int64, np.uint64])
def test_huge_labels_are_compared_exactly(query_type, db_type):
    # Hashes and database keys: neighbours above 2**53 are one number in float64.
    codes = np.zeros((4, 1), np.uint8)
    labels = np.arange(4) + 2**60
    h = hamming_histogram(codes, codes, labels.astype(query_type), labels.astype(db_type))
    assert h.relevant[:, 0].tolist() == [1, 1, 1, 1]


# ---- errors ----------------------------------------------------------------------------

CODES = np.array([[0], [1], [3], [7]], np.uint8)
LABELS = [0, 1, 0, 1]
SETS = np.eye(4, dtype=int)


def histogram(query_codes=CODES, db_codes=CODES, query_labels=LABELS, db_labels=LABELS, **options):
    return hamming_histogram(query_codes, db_codes, query_labels, db_labels, **options)


def one_line(query_labels=LABELS, **options):
    return mean_average_precision(CODES, CODES, query_labels, LABELS, **options)


def judged(queries=(0, 1), items=(2, 3), grades=None):
    return judged_histogram(CODES, CODES, queries, items, grades)


# What is wrong: the call, the error, and what the message names: the value, and the way out.
ERRORS = {
    "outputs": (lambda: pack([[0.3, -0.2]]), ValueError, "0.3", "codes > 0"),
    "signs with 0": (lambda: pack([[1, -1], [0, 1]]), ValueError, "codes[1, 0] is 0", "codes > 0"),
    "packed twice": (lambda: pack(PACKED), ValueError, "codes[0, 0]", "need no packing"),
    "NaN as a bit": (lambda: pack([[1, np.nan]]), ValueError, "nan", "0 and 1"),
    "1-D bits": (lambda: pack(np.ones(3)), ValueError, "(3,)", "row"),
    "no bits": (lambda: pack(np.ones((0, 3))), ValueError, "(0, 3)", "row"),
    "text bits": (lambda: pack(np.array([["0"]])), ValueError, "<U1", "numbers"),
    "float codes": (lambda: histogram(CODES / 2), TypeError, "float64", "pack(codes)"),
    "bool codes": (lambda: histogram(db_codes=CODES > 0), TypeError, "bool", "pack(codes)"),
    "list of codes": (lambda: histogram(CODES.tolist()), TypeError, "int64", "astype(np.uint8)"),
    "labels beyond int64": (
        lambda: histogram(query_labels=np.arange(4, dtype=np.uint64) + np.uint64(2**63)),
        ValueError,
        "query_labels",
        "astype(str)",
    ),
    "words": (lambda: histogram(CODES.astype("u8")), TypeError, "uint64", "view(np.uint8)"),
    "an empty list": (lambda: histogram([]), ValueError, "(0,)", "row"),
    "1-D codes": (lambda: histogram(CODES[:, 0]), ValueError, "query_codes", "(4,)", "row"),
    "3-D codes": (lambda: nearest(CODES[None], CODES, 1), ValueError, "(1, 4, 1)", "row"),
    "no codes": (lambda: histogram(db_codes=CODES[:0]), ValueError, "db_codes", "(0, 1)"),
    "no bytes": (lambda: histogram(CODES[:, :0]), ValueError, "(4, 0)", "byte"),
    "two widths": (lambda: histogram(db_codes=CODES.repeat(3, 1)), ValueError, "1 bytes", "3"),
    "n_bits too large": (lambda: histogram(n_bits=9), ValueError, "n_bits=9", "1 to 8"),
    "n_bits zero": (lambda: histogram(n_bits=0), ValueError, "n_bits=0", "at least 1"),
    "n_bits a float": (lambda: histogram(n_bits=8.0), TypeError, "n_bits=8.0", "int"),
    "n_bits a bool": (lambda: histogram(n_bits=True), TypeError, "n_bits=True", "int"),
    "unused bits": (lambda: histogram(n_bits=2), ValueError, "query_codes[3]", "n_bits=2", "pack"),
    "unused bits of the database": (
        lambda: histogram(CODES[:1], query_labels=[0], n_bits=1),
        ValueError,
        "db_codes[2]",
    ),
    "n_threads zero": (lambda: histogram(n_threads=0), ValueError, "n_threads=0", "int"),
    "few labels": (lambda: histogram(query_labels=[0, 1]), ValueError, "(2,)", "4 codes"),
    "many labels": (lambda: histogram(db_labels=[0] * 5), ValueError, "db_labels", "4 codes"),
    "one label": (lambda: histogram(query_labels=1), ValueError, "query_labels", "4 codes"),
    "no label": (lambda: histogram(query_labels=[]), ValueError, "(0,)", "4 codes"),
    "no columns": (lambda: histogram(db_labels=SETS[:, :0]), ValueError, "(4, 0)", "4 codes"),
    "None": (lambda: histogram(query_labels=None), ValueError, "query_labels", "label"),
    "halves": (lambda: histogram(query_labels=[0.5, 1, 0, 1]), TypeError, "float64", "whole"),
    "NaN": (lambda: histogram(db_labels=[0, 1, np.nan, 1]), TypeError, "db_labels", "whole"),
    "infinity": (lambda: histogram(db_labels=[0, 1, np.inf, 1]), TypeError, "db_labels", "whole"),
    "beyond 2**53": (lambda: histogram(db_labels=[0, 1, 2.0**54, 1]), TypeError, "float64"),
    "objects": (lambda: histogram(query_labels=[0, None, 0, 1]), TypeError, "object", "integers"),
    "a column": (
        lambda: histogram(query_labels=[[0], [1], [0], [1]]),
        ValueError,
        "(4, 1)",
        "ravel()",
        "judged_histogram",
    ),
    "a matrix of strings": (
        lambda: histogram(query_labels=SETS.astype(str)),
        TypeError,
        "(4, 4)",
        "0 and 1",
    ),
    "lists of labels": (
        lambda: histogram(query_labels=[[0, 1], [0]] * 2),
        ValueError,
        "query_labels",
        "0 and 1",
    ),
    "a half in a matrix": (
        lambda: histogram(CODES, CODES, SETS, SETS / 2),
        ValueError,
        "db_labels[0, 0] is 0.5",
        "> 0",
    ),
    "grades in a matrix": (
        lambda: histogram(CODES, CODES, SETS, 2 * SETS),
        ValueError,
        "db_labels[0, 0] is 2",
        "judged_histogram",
    ),
    "ids against sets": (lambda: histogram(db_labels=SETS), ValueError, "(4, 4)", "same form"),
    "two widths of sets": (
        lambda: histogram(CODES, CODES, SETS, SETS[:, :3]),
        ValueError,
        "(4, 3)",
        "same form",
    ),
    "strings against integers": (
        lambda: histogram(query_labels=list("abab")),
        ValueError,
        "<U1",
        "int64",
        "same form",
    ),
    "bytes": (
        lambda: histogram(db_labels=np.array(list("abab"), "S")),
        TypeError,
        "|S1",
        "db_labels.astype(str)",
    ),
    "a gradient": (lambda: pack(WITH_GRADIENT), TypeError, "requires grad", "codes.detach()"),
    "bfloat16": (lambda: pack(BFLOAT16), TypeError, "BFloat16", "float()"),
    "labels as tensors": (
        lambda: histogram(query_labels=BFLOAT16),
        TypeError,
        "BFloat16",
        "query_labels.detach()",
    ),
    "masked bits": (lambda: pack(np.ma.masked_equal([[0, 1]], 1)), TypeError, "codes", "filled"),
    "masked codes": (
        lambda: nearest(np.ma.masked_equal(CODES, 1), CODES, 1),
        TypeError,
        "query_codes",
        "filled",
    ),
    "masked labels": (
        lambda: histogram(db_labels=np.ma.masked_equal(LABELS, 1)),
        TypeError,
        "db_labels",
        "filled",
    ),
    "masked pairs": (
        lambda: judged(items=np.ma.masked_equal([2, 3], 3)),
        TypeError,
        "items",
        "filled",
    ),
    "no k": (lambda: histogram().precision_at_k([]), ValueError, "k=[]", "pass an int"),
    "no k of an array": (lambda: histogram().recall_at_k(np.array([])), ValueError, "k=[]"),
    "a gain beyond float64": (
        lambda: judged(grades=[1, 2000]).ndcg_at_k(2, "exponential"),
        ValueError,
        "2000",
        "linear",
    ),
    "k zero": (lambda: histogram().precision_at_k(0), ValueError, "k=0", "at least 1"),
    "k a float": (lambda: histogram().precision_at_k([1, 2.5]), TypeError, "k=2.5", "int"),
    "k too large": (lambda: histogram().precision_at_k([1, 5]), ValueError, "k=5", "at most 4"),
    "nearest k zero": (lambda: nearest(CODES, CODES, 0), ValueError, "k=0", "at least 1"),
    "nearest k too large": (lambda: nearest(CODES, CODES, 5), ValueError, "k=5", "at most 4"),
    "radius": (lambda: histogram().precision_at_radius(-1), ValueError, "radius=-1", "at least 0"),
    "top zero": (lambda: one_line(top=0, ties="stable"), ValueError, "top=0", "at least 1"),
    "top a float": (lambda: one_line(top=2.0), TypeError, "top=2.0", "int"),
    "normalize": (lambda: one_line(normalize="max"), ValueError, "'max'", '"min"'),
    "empty": (lambda: one_line(empty="none"), ValueError, "'none'", '"skip"'),
    "ties": (lambda: one_line(ties="random"), ValueError, "'random'", '"stable"'),
    "gain": (lambda: histogram().ndcg_at_k(1, "log"), ValueError, "'log'", '"linear"'),
    "no grades": (lambda: histogram().ndcg_at_k(1, "linear"), ValueError, "linear", "graded=True"),
    "all queries empty": (lambda: one_line([5] * 4), ValueError, "4 queries", "labels"),
    "no curve": (
        lambda: histogram(query_labels=[5] * 4).precision_recall(),
        ValueError,
        "4 queries",
        "labels",
    ),
    "no hit in the top": (
        lambda: one_line(LABELS[::-1], top=1, normalize="retrieved", ties="stable"),
        ValueError,
        "4 queries",
    ),
    "other queries": (
        lambda: histogram() + histogram(CODES[:1], query_labels=[0]),
        ValueError,
        "n_queries=1",
        "same",
    ),
    "other lengths": (lambda: histogram() + histogram(n_bits=3), ValueError, "n_bits=3", "same"),
    "not a self-histogram": (
        lambda: histogram(db_codes=CODES + 8).without_self(),
        ValueError,
        "query 0",
        "database",
    ),
    "own item of another label": (
        lambda: histogram(query_labels=LABELS[::-1]).without_self(),
        ValueError,
        "query 0",
    ),
    "no such query": (lambda: judged([0, 4]), ValueError, "queries", "4", "below 4"),
    "a missing neighbour": (lambda: judged(items=[-1, 2]), ValueError, "items", "-1", "from 0"),
    "float grades": (lambda: judged(grades=[0.5, 1]), ValueError, "grades", "float64", "whole"),
    "negative grades": (lambda: judged(grades=[-2, 1]), ValueError, "grades", "-2", "from 0"),
    "a pair too few": (lambda: judged(items=[1]), ValueError, "items", "(1,)", "pair"),
    "a pair twice": (lambda: judged([0, 0], [2, 2]), ValueError, "query 0", "item 2", "once"),
}


@pytest.mark.parametrize(
    ("call", "error", "parts"), [(c, e, p) for c, e, *p in ERRORS.values()], ids=ERRORS
)
def test_errors_name_the_value_and_the_way_out(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    message = str(caught.value)
    assert all(part in message for part in parts), message
    assert any(verb in message for verb in ("pass", "check", "encode")), message


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy before 2.0")
def test_strings_of_numpys_own_kind_work_unless_one_is_missing():
    kind = np.dtypes.StringDType(na_object=None)
    labels = np.array(["ant", "bee"] * 2, kind)
    assert histogram(query_labels=labels, db_labels=labels).relevant.sum() == 8
    with pytest.raises(TypeError, match=r"query_labels.*StringDType"):
        histogram(query_labels=np.array(["ant", None] * 2, kind), db_labels=labels)


def test_the_highest_grade_has_a_finite_gain():
    h = judged(grades=[959, 960])
    ndcg = h.ndcg_at_k(4, "exponential", per_query=True)
    assert ((ndcg > 0) & (ndcg <= 1))[:2].all()


def test_an_array_without_masked_entries_works():
    labels = np.ma.masked_array(LABELS, mask=False)
    assert histogram(query_labels=labels).relevant.tolist() == histogram().relevant.tolist()


def test_a_bad_row_far_into_the_database_is_named():
    codes = np.zeros((9000, 1), np.uint8)
    codes[7001] = 8
    with pytest.raises(ValueError, match=r"db_codes\[7001\]"):
        histogram(codes[:1], codes, [0], [0] * 9000, n_bits=3)
    sets = np.zeros((9, 2), int)
    sets[5, 1] = 3
    with pytest.raises(ValueError, match=r"db_labels\[5, 1\] is 3"):
        histogram(codes[:1], codes[:9], sets[:1], sets)


def test_histograms_of_your_own_counts():
    h = HammingHistogram(np.array([[2, 2]]), np.array([[1, 0]]))
    assert h.mean_average_precision() == 0.75
