"""Make mutants of a Python file: copies of it in which one small thing is wrong.

A mutant that no test notices shows a line that no test needs. `tools.mutate` runs them.

Only the mutated place differs, byte for byte. Docstrings, error texts, type hints, decorators and
`__all__` are left alone, because no test of behaviour can notice a change in them.

>>> [mutant.new for mutant in mutants("toy.py", "x = a < 1")]
['x = a <= 1', 'x = a >= 1', 'x = a < 2', 'x = a < 0']
"""

from __future__ import annotations

import ast
import bisect
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants"]

COMPARISONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
}
OPERATORS = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "//": "*",
    "%": "*",
    "**": "*",
    "@": "*",
    "&": "|",
    "|": "&",
    "^": "|",
    "<<": ">>",
    ">>": "<<",
}
SYMBOLS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.And: "and",
    ast.Or: "or",
}
PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all")]
SWAPPED = dict(PAIRS) | {b: a for a, b in PAIRS}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
UNMUTATED = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


@dataclass(frozen=True)
class Mutant:
    """One change of one place.

    Attributes
    ----------
    file : str
        Path from the root of the project.
    function : str
        Where the change is, such as ``Codebook.add``; empty outside of functions and classes.
    line : int
        Line of the change.
    old, new : str
        The changed lines before and after, with single spaces.
    statement : (int, int)
        First and last line of the statement, or of its head, that the change is in.
    in_function : bool
        Whether the change is in a statement that runs when a function is called.
    start, end, text
        What is at these places of the source becomes `text`.
    """

    file: str
    function: str
    line: int
    old: str
    new: str
    statement: tuple[int, int]
    in_function: bool
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """Return the file with the change."""
        return source[: self.start] + self.text + source[self.end :]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what names the mutant, also after edits elsewhere in the file."""
        return self.file, self.function, self.old, self.new


def mutants(file: str, source: str) -> list[Mutant]:
    """Return all mutants of a file, in the order of its lines."""
    found = _Mutator(file, source).module()
    return sorted(found, key=lambda mutant: mutant.line)


class _Mutator:
    """Walk over the tree of one file, and yield a mutant for each change that is possible."""

    def __init__(self, file: str, source: str):
        self.file = file
        self.source = source
        # Positions of `ast` are in bytes, those of `tokenize` in characters.
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        reader = io.StringIO(source).readline
        self.tokens = list(tokenize.generate_tokens(reader))
        self.token_starts = [self.place(*token.start) for token in self.tokens]
        self.function = ""
        self.in_function = False
        self.statement = (1, 1)

    # Positions.

    def place(self, line: int, column: int) -> int:
        """Return the place in the source of a position of `tokenize`."""
        return self.starts[line - 1] + column

    def offset(self, line: int, byte: int) -> int:
        """Return the place in the source of a position of `ast`."""
        text = self.lines[line - 1].encode()[:byte].decode()
        return self.starts[line - 1] + len(text)

    def span(self, node: ast.AST) -> tuple[int, int]:
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def find(self, words: str, after: int, before: int) -> tuple[int, int]:
        """Return where an operator of one or two words is, between two places."""
        wanted = words.split()
        first = bisect.bisect_left(self.token_starts, after)
        last = bisect.bisect_left(self.token_starts, before)
        for i in range(first, last):
            tokens = self.tokens[i : i + len(wanted)]
            if [token.string for token in tokens] == wanted:
                return self.token_starts[i], self.place(*tokens[-1].end)
        raise AssertionError(f"{words} is not between {after} and {before}")

    def change(self, start: int, end: int, text: str) -> Mutant:
        """Return the mutant that has `text` from `start` to `end`."""
        line = bisect.bisect_right(self.starts, start)
        last_line = bisect.bisect_left(self.starts, end)
        before = self.source[self.starts[line - 1] : start]
        after = self.source[end : self.starts[last_line]]
        old = before + self.source[start:end] + after
        new = before + text + after
        return Mutant(
            self.file,
            self.function,
            line,
            " ".join(old.split()),
            " ".join(new.split()),
            self.statement,
            self.in_function,
            start,
            end,
            text,
        )

    # Statements.

    def module(self) -> Iterator[Mutant]:
        """Yield the mutants of the file."""
        yield from self.block(ast.parse(self.source).body, set())

    def block(self, body: list[ast.stmt], bound: set[str]) -> Iterator[Mutant]:
        """Yield the mutants of statements; `bound` has the names that are known before them."""
        for node in body:
            yield from self.one_statement(node, bound)
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    bound.add(part.id)

    def one_statement(self, node: ast.stmt, bound: set[str]) -> Iterator[Mutant]:
        self.statement = (node.lineno, node.end_lineno)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from self.definition(node)
            return
        if isinstance(node, UNMUTATED) or _is_all(node):
            return
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(node, "handlers", [])]
        inner = [statement for block in blocks for statement in block]
        if inner:
            self.statement = (node.lineno, max(node.lineno, inner[0].lineno - 1))
        yield from self.whole_statement(node, bound)
        if isinstance(node, ast.AugAssign):
            symbol = SYMBOLS[type(node.op)]
            text = f"{OPERATORS[symbol]}="
            yield self.between(node.target, node.value, f"{symbol}=", text)
        if isinstance(node, (ast.If, ast.While)):
            yield from self.condition(node.test)
        if not isinstance(node, ast.Raise):
            for part in _expressions(node):
                yield from self.expression(part)
        for block in blocks:
            yield from self.block(block, bound)

    def definition(self, node: ast.stmt) -> Iterator[Mutant]:
        """Yield the mutants of a function or class: of its defaults, then of its body."""
        outer = (self.function, self.in_function)
        self.function = f"{self.function}.{node.name}".lstrip(".")
        bound = set()
        if isinstance(node, FUNCTIONS):
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            for part in defaults:
                yield from self.expression(part)
            bound |= {part.arg for part in ast.walk(node.args) if hasattr(part, "arg")}
            self.in_function = True
        yield from self.block(node.body, bound)
        self.function, self.in_function = outer

    def whole_statement(self, node: ast.stmt, bound: set[str]) -> Iterator[Mutant]:
        """Yield the mutants that remove or replace a statement."""
        start, end = self.span(node)
        if isinstance(node, ast.Return):
            text = "return None" if node.value else "pass"
            is_none = isinstance(node.value, ast.Constant) and node.value.value is None
            if not is_none:
                yield self.change(start, end, text)
        elif isinstance(node, ast.Break):
            yield self.change(start, end, "continue")
        elif isinstance(node, ast.Continue):
            yield self.change(start, end, "break")
            yield self.change(start, end, "pass")
        elif _can_go(node, bound):
            yield self.change(start, end, "pass")

    # Expressions.

    def expression(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of an expression and of its parts."""
        if isinstance(node, UNMUTATED):
            return
        yield from self.one_expression(node)
        for part in ast.iter_child_nodes(node):
            yield from self.expression(part)

    def one_expression(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Constant):
            yield from self.constant(node)
        elif isinstance(node, ast.Compare):
            lefts = [node.left, *node.comparators[:-1]]
            for left, op, right in zip(lefts, node.ops, node.comparators, strict=True):
                symbol = SYMBOLS[type(op)]
                for text in COMPARISONS[symbol]:
                    yield self.between(left, right, symbol, text)
        elif isinstance(node, ast.BoolOp):
            symbol = SYMBOLS[type(node.op)]
            text = "or" if symbol == "and" else "and"
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield self.between(left, right, symbol, text)
        elif isinstance(node, ast.BinOp):
            symbol = SYMBOLS[type(node.op)]
            yield self.between(node.left, node.right, symbol, OPERATORS[symbol])
        elif isinstance(node, ast.UnaryOp):
            start, _ = self.span(node)
            symbol = {ast.Not: "not ", ast.USub: "-", ast.Invert: "~"}.get(type(node.op), "")
            if symbol:
                yield self.change(start, start + len(symbol), "")
        elif isinstance(node, ast.Call):
            yield from self.call(node)
        tests = [node.test] if isinstance(node, ast.IfExp) else []
        if isinstance(node, ast.comprehension):
            tests = node.ifs
        for test in tests:
            yield from self.condition(test)

    def between(self, left: ast.expr, right: ast.expr, symbol: str, text: str) -> Mutant:
        """Return the mutant with another operator between two expressions."""
        start, end = self.find(symbol, self.span(left)[1], self.span(right)[0])
        return self.change(start, end, text)

    def constant(self, node: ast.Constant) -> Iterator[Mutant]:
        """Yield True for False, n + 1 and n - 1 for n, 1 for 0, and 2 x for x with a point."""
        value = node.value
        texts = []
        if isinstance(value, bool):
            texts = [str(not value)]
        elif isinstance(value, int):
            texts = [str(value + 1), str(value - 1)] if value else ["1"]
        elif isinstance(value, float):
            texts = [repr(2 * value or 1.0)]
        for text in texts:
            yield self.change(*self.span(node), text)

    def call(self, node: ast.Call) -> Iterator[Mutant]:
        """Yield max for min and the like."""
        function = node.func
        name = getattr(function, "id", getattr(function, "attr", ""))
        if name in SWAPPED:
            _, end = self.span(function)
            yield self.change(end - len(name), end, SWAPPED[name])

    def condition(self, node: ast.expr) -> Iterator[Mutant]:
        """Yield the negation of a condition that has no operator of its own."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            start, _ = self.span(node)
            yield self.change(start, start, "not ")


def _is_all(node: ast.stmt) -> bool:
    targets = getattr(node, "targets", [])
    return any(getattr(target, "id", "") == "__all__" for target in targets)


def _expressions(node: ast.stmt) -> list[ast.AST]:
    """Return the expressions of a statement, without type hints and inner statements."""
    parts = []
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "finalbody", "handlers", "annotation", "op"):
            continue
        values = value if isinstance(value, list) else [value]
        parts += [part for part in values if isinstance(part, ast.AST)]
    return parts


def _can_go(node: ast.stmt, bound: set[str]) -> bool:
    """Return whether the file still makes sense without a statement."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise)):
        return True
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return False
    is_text = isinstance(getattr(node.value, "value", None), str)
    if is_text or isinstance(node.value, ast.JoinedStr):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [part for target in targets for part in ast.walk(target)]
    new = [part for part in names if isinstance(getattr(part, "ctx", None), ast.Store)]
    return all(getattr(part, "id", None) in bound for part in new if isinstance(part, ast.Name))
