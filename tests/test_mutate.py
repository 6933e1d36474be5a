"""Check the tool that makes mutants, runs the tests on them and reports the survivors."""

import ast
import difflib
import subprocess
import sys
import textwrap

import pytest
from helpers import JIT_IS_OFF, ROOT

from tools import mutant_tests, mutate
from tools.mutants import mutants

pytestmark = pytest.mark.skipif(JIT_IS_OFF, reason="the tool has no compiled loops")
CORE = ["hmoh.py", "kernels.py", "metrics.py"]


def changes(source):
    """Return old and new text of all mutants of a source, as pairs."""
    source = textwrap.dedent(source)
    return [(mutant.old, mutant.new) for mutant in mutants("toy.py", source)]


def new_lines(source):
    """Return what the mutants make of a source of one line."""
    return [new for _, new in changes(source)]


# ---- the mutator ---------------------------------------------------------------------


@pytest.mark.parametrize("file", CORE)
def test_a_mutant_of_the_core_is_python_that_differs_in_one_place(file):
    source = (ROOT / file).read_text()
    found = mutants(file, source)
    assert len(found) > 200
    original = ast.dump(ast.parse(source))
    for mutant in found[:: len(found) // 20]:
        changed = mutant.apply(source)
        assert ast.dump(ast.parse(changed)) != original
        # What is before and after the place is the same, byte for byte.
        n_after = len(source) - mutant.end
        assert changed[: mutant.start] == source[: mutant.start]
        assert changed[len(changed) - n_after :] == source[mutant.end :]
        assert changed[mutant.start : len(changed) - n_after] == mutant.text


def test_old_and_new_text_are_the_line_that_differs():
    source = (ROOT / "kernels.py").read_text()
    lines = source.splitlines()
    for mutant in mutants("kernels.py", source)[::9]:
        changed = mutant.apply(source).splitlines()
        blocks = difflib.SequenceMatcher(None, lines, changed, autojunk=False)
        edits = [code for code in blocks.get_opcodes() if code[0] != "equal"]
        ((_, first, last, new_first, new_last),) = edits
        # A line that is equal before and after belongs to no edit, so parts are compared.
        assert " ".join(" ".join(lines[first:last]).split()) in mutant.old
        assert " ".join(" ".join(changed[new_first:new_last]).split()) in mutant.new
        assert mutant.line <= first + 1


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x = a < b", ["x = a <= b", "x = a >= b"]),
        ("x = a == b", ["x = a != b"]),
        ("x = a is not b", ["x = a is b"]),
        ("x = a not in b", ["x = a in b"]),
        ("x = a < b < c", [f"x = a {s} c" for s in ("<= b <", ">= b <")]),
        ("x = a + b", ["x = a - b"]),
        ("x = (a) * (b)", ["x = (a) / (b)"]),
        ("x = a // b", ["x = a * b"]),
        ("x = a & b", ["x = a | b"]),
        ("x = a << b", ["x = a >> b"]),
        ("x = a ^ b", ["x = a | b"]),
        ("x = -a", ["x = a"]),
        ("x = ~a", ["x = a"]),
        ("x = not a", ["x = a"]),
        ("x = a and b", ["x = a or b"]),
        ("x = 7", ["x = 8", "x = 6"]),
        ("x = 0", ["x = 1"]),
        ("x = 0xFF", ["x = 256", "x = 254"]),
        ("x = 1_000", ["x = 1001", "x = 999"]),
        ("x = 2.5", ["x = 5.0"]),
        ("x = True", ["x = False"]),
        ("x = min(a, b)", ["x = max(a, b)"]),
        ("x = a.argmax()", ["x = a.argmin()"]),
        ("x = a if b else c", ["x = a if not b else c"]),
        ("del a", ["pass"]),
        ("f(a)", ["pass"]),
        ("a.b = c", ["pass"]),
        ("x += a", ["pass", "x -= a"]),
        ("x = 'ä' + b", ["x = 'ä' - b"]),
    ],
)
def test_each_kind_of_change(source, wanted):
    assert new_lines(source)[: len(wanted)] == wanted


def test_statements_are_replaced_in_functions_and_loops():
    source = """
        def f(a):
            for x in a:
                if x:
                    continue
                break
            a = g(a)
            if not a:
                return
            return a
    """
    found = changes(source)
    wanted = [
        ("if x:", "if not x:"),
        ("continue", "break"),
        ("continue", "pass"),
        ("break", "continue"),
        ("a = g(a)", "pass"),
        ("if not a:", "if a:"),
        ("return", "pass"),
        ("return a", "return None"),
    ]
    assert found == wanted


def test_docstrings_error_texts_hints_decorators_and_imports_are_left_alone():
    source = """
        '''Return 1 < 2.'''
        from a import b
        __all__ = ["f"]
        @cached(1)
        def f(x: tuple[1]) -> list[2]:
            '''Add 1 + 2.'''
            y: dict[3] = x
            need = f"pass {x + 1:3}"
            raise ValueError(f"{x < 1}" + need)
    """
    assert changes(source) == [('raise ValueError(f"{x < 1}" + need)', "pass")]


def test_a_change_over_several_lines_is_told_in_one():
    source = """
        f(
            a,
            b,
        )
    """
    assert changes(source) == [("f( a, b, )", "pass")]


def test_a_mutant_knows_its_function_and_whether_it_runs_at_import():
    source = textwrap.dedent("""
        N = 1
        class A:
            def f(self, k=2):
                return k
    """)
    found = mutants("toy.py", source)
    places = [(m.function, m.in_function, m.line) for m in found]
    assert places == [
        *[("", False, 2)] * 2,
        *[("A.f", False, 4)] * 2,
        ("A.f", True, 5),
    ]


# ---- the list of equivalent mutants --------------------------------------------------


def test_a_list_has_reasons_that_hold_for_the_entries_below_them(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text(
        "# A head.\n\n# Only slower,\n# nothing else.\n\na.py f\n- x = 1\n+ x = 2\n+ x = 0\n"
        "# Another.\nb.py\n- y\n+ pass\n"
    )
    entries = [(entry.key, entry.reason) for entry in mutate.read_list(path)]
    assert entries == [
        (("a.py", "f", "x = 1", "x = 2"), "Only slower, nothing else."),
        (("a.py", "f", "x = 1", "x = 0"), "Only slower, nothing else."),
        (("b.py", "", "y", "pass"), "Another."),
    ]


def test_a_list_without_a_reason_or_with_another_line_is_an_error(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("a.py f\n- x = 1\n+ x = 2\n")
    with pytest.raises(ValueError, match="without a reason; give one"):
        mutate.read_list(path)
    path.write_text("# A reason.\nx = 1\n")
    with pytest.raises(ValueError, match=r"line 2 of .* is 'x = 1'; begin it with"):
        mutate.read_list(path)


def test_the_list_of_the_core_can_be_written_again(tmp_path):
    entries = mutate.read_list(mutate.LISTED)
    assert {entry.key[0] for entry in entries} <= set(CORE)
    assert len({entry.key for entry in entries}) == len(entries)
    mutate.write_list(tmp_path / "list.txt", entries)
    assert mutate.read_list(tmp_path / "list.txt") == entries
    assert (tmp_path / "list.txt").read_text() == mutate.LISTED.read_text()


# ---- a whole run ---------------------------------------------------------------------

TOY = """
LIMIT = 3


def known_to_all(function):
    return function


@known_to_all
def clip(x, most=LIMIT):
    if x > most:
        return most
    return x


def forget(known, x):
    known.discard(x)
    known.add(None)


def count_down(n):
    while n != 0:
        n -= 1
    return n
"""
TOY_TEST = """
from toy import clip, count_down, forget


def test_clip():
    assert [clip(x) for x in (2, 3, 4)] == [2, 3, 3]


def test_forget():
    known = {1}
    forget(known, 1)
    assert 1 not in known


def test_count_down():
    assert count_down(3) == 0
"""
SURVIVOR = "toy.py:18  known.add(None) -> pass"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Return the folder of a project with one line that no test needs, and an equivalent mutant."""
    monkeypatch.setattr(mutant_tests, "LEAST_LIMIT", 2)
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "toy.py").write_text(TOY)
    (root / "tests" / "test_toy.py").write_text(TOY_TEST)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    return root


def run(root, **options):
    """Return the report on the toy, and the survivors that were shown."""
    shown = []
    targets = {"toy.py": "tests/test_*.py"}
    path = root / "list.txt"
    report = mutate.run(root, targets, path, (), show=shown.append, **options)
    return report, shown


def test_a_line_that_no_test_needs_is_reported(toy):
    before = {path: path.read_bytes() for path in toy.rglob("*.*") if path.is_file()}
    report, shown = run(toy)
    # clip(3) is 3 also with >=. Nobody looks for the None. All else is noticed.
    equivalent = "toy.py:11  if x > most: -> if x >= most:"
    assert sorted(shown) == [equivalent, SURVIVOR]
    counts = report.count("toy.py")
    assert counts["survived"] == 2
    assert counts["timeout"] >= 1  # count_down without its inner line never ends
    assert counts["killed"] > 8
    assert report.share() == 1 - 2 / counts.total()
    assert SURVIVOR in str(report)
    # The checkout is as it was, but for the kept results.
    after = {path: path.read_bytes() for path in toy.rglob("*.*") if path.is_file()}
    del after[toy / "build" / "mutants.json"]
    assert after == before


def test_several_patterns_name_each_test_file_once(toy):
    for name in ("test_other.py", "test_third.py"):
        (toy / "tests" / name).write_text("")
    patterns = "tests/test_t*.py tests/test_other.py tests/test_toy.py"
    suite = mutant_tests.Suite(toy, "toy.py", patterns, {})
    names = ["test_other.py", "test_third.py", "test_toy.py"]
    assert suite.test_files == [f"tests/{name}" for name in names]


def test_a_line_that_runs_only_at_import_concerns_all_tests(toy):
    report, shown = run(toy, function="known_to_all")
    assert shown == []
    assert [(mutant.new, status) for mutant, status in report.statuses] == [
        ("return None", "killed")
    ]


def test_the_list_is_respected_and_a_stale_entry_is_reported(toy):
    (toy / "list.txt").write_text(
        "# Both give the same number.\n"
        "toy.py clip\n- if x > most:\n+ if x >= most:\n+ if x <= most:\n+ if x == most:\n"
    )
    report, shown = run(toy, function="clip", with_listed=True)
    assert shown == []
    assert report.count()["listed"] == 1
    assert [entry.key[3] for entry in report.stale] == ["if x == most:"]
    assert [entry.key[3] for entry in report.needless] == ["if x <= most:"]
    text = str(report)
    assert "Stale, there is no such mutant any more: ('toy.py', 'clip'" in text
    assert "Listed, but a test kills it: ('toy.py', 'clip'" in text
    assert "No survivor." in text


def test_a_listed_mutant_is_not_tested_without_being_asked(toy):
    (toy / "list.txt").write_text("# Nobody looks.\ntoy.py forget\n- known.add(None)\n+ pass\n")
    (toy / "tests" / "test_toy.py").write_text("def test_nothing():\n    pass\n")
    report, shown = run(toy, function="forget")
    assert shown == ["toy.py:17  known.discard(x) -> pass"]
    assert report.count() == {"survived": 1, "listed": 1}


def test_results_are_kept_until_the_file_or_a_test_changes(toy, monkeypatch):
    tried = []
    original = mutate.try_mutant

    def note(mutant, suite, project, first, quick):
        tried.append((mutant.new, first))
        return original(mutant, suite, project, first, quick)

    monkeypatch.setattr(mutate, "try_mutant", note)
    options = {"function": "forget", "resume": True}
    run(toy, **options)
    assert len(tried) == 2
    _, shown = run(toy, **options)
    assert len(tried) == 2 and shown == [SURVIVOR]
    with (toy / "tests" / "test_toy.py").open("a") as file:
        file.write("\n\ndef test_none():\n    known = set()\n")
        file.write("    forget(known, 1)\n    assert None in known\n")
    report, shown = run(toy, **options)
    # The test that killed a mutant before is the first to be tried.
    assert tried[2:] == [("pass", "tests/test_toy.py::test_forget"), ("pass", None)]
    assert shown == [] and report.count() == {"killed": 2}


def test_a_sample_is_the_same_each_time_and_stays_when_other_lines_change(toy):
    def chosen(seed):
        report, _ = run(toy, function="clip", sample=3, seed=seed)
        return [mutant.key for mutant, _ in report.statuses]

    first = chosen(seed=1)
    assert len(set(first)) == 3
    assert chosen(seed=2) != first
    (toy / "toy.py").write_text("# A new line moves all others.\n" + TOY)
    assert chosen(seed=1) == first


def test_tests_that_fail_without_a_mutation_are_an_error(toy):
    with (toy / "tests" / "test_toy.py").open("a") as file:
        file.write("\n\ndef test_wrong():\n    assert clip(4) == 4\n")
    with pytest.raises(RuntimeError, match="do not pass without a mutation") as error:
        run(toy)
    assert "test_wrong" in str(error.value)


def test_several_jobs_give_the_same_report(toy):
    one, _ = run(toy, function="clip")
    two, _ = run(toy, function="clip", jobs=2)
    assert one.statuses == two.statuses


def test_the_command_knows_the_files_of_the_core():
    command = [sys.executable, "-m", "tools.mutate", "--file", "other.py"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert all(file in ended.stderr for file in CORE)
