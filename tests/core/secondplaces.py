"""Finds code that decides what an error means, in the syntax tree of a module.

It knows the ways in which a second classifier begins: asking for the statuses of
refusals, naming the table's codes or a gateway's, matching the words of errors,
making or changing a verdict of one's own, and reading what an exception says.
"""

import ast
import re
from collections.abc import Iterator

from threads.core.endings import Ending
from threads.core.names import LIMIT_SOURCES, NAMES, WEAK_NAMES
from threads.core.table import CODES, ERRORS
from threads.core.wordings import CAPS, NAMES_THE_KEY, WORDINGS

OWN_CODES = frozenset(
    {
        *("stopped", "round_cap", "internal_error", "history_unreadable", "no_model"),
        *("tool_rounds_exceeded", "worker_lost", "worker_never_started"),
        *("repeated_tool_call", "repeated_tool_error", "repeated_tool_error_any_args"),
        "approval_expired",
    }
)
"""Codes of a round's own endings: nothing that a gateway said is among them."""

COMMON = frozenset(ending.value for ending in Ending) | OWN_CODES
LISTED = {
    *CODES,
    *ERRORS,
    *LIMIT_SOURCES,
    *(name for names in (NAMES | WEAK_NAMES).values() for name in names),
}
TELLING = frozenset(
    name for name in LISTED if re.search(r"[_.]", name) and name not in COMMON
)
"""Codes and names that nobody writes who means something else."""

PATTERNS = [*(wording.pattern for wording in WORDINGS), CAPS, NAMES_THE_KEY]
REGEX_SIGNS = re.compile(r"\\[bwdsW]|[\\.?*+()|\[\]^${}]")
QUANTITIES = re.compile(r"(?i)len|length|size|seconds|ms$|count|width|number|limit|max")

VERDICT_FIELDS = frozenset({"code", "condition", "transient", "key_effect"})
TELLING_FIELDS = frozenset({"args", "message", "body", "code", "status_code"})
TEXT_TESTS = frozenset({"startswith", "endswith", "find", "index", "count", "search"})
TEXT_TESTS |= {"match", "fullmatch", "findall", "finditer", "compile"}


def second_places(source: str) -> list[str]:
    """List what of a module decides what an error means, each with its line."""
    tree = ast.parse(source)
    finder = _Finder(tree)
    finder.visit(tree)
    return [f"{line}: {what}" for line, what in sorted(set(finder.found))]


class _Finder(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[int, str]] = []
        self._documentation = set(_documentation(tree))

    def _note(self, node: ast.AST, what: str) -> None:
        self.found.append((getattr(node, "lineno", 0), what))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        if not any(_is_quantity(operand) for operand in operands):
            for operand in operands:
                if any(_is_status(each) for each in _members(operand)):
                    self._note(node, "compares with a status")
        if any(_is_class_of_status(operand) for operand in operands):
            self._note(node, "compares with a class of statuses")
        for operand in operands:
            self._note_words(_members(operand))
        self.generic_visit(node)

    def _note_words(self, nodes: list[ast.expr]) -> None:
        """Texts that something is compared with, or searched for."""
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and _is_wording(text):
                self._note(node, f"looks for {text[:40]!r}")

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        if _is_status(node.value):
            self._note(node, "compares with a status")
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if sum(_is_status(key) for key in node.keys if key is not None) > 1:
            self._note(node, "holds a table of statuses")
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self._visit_collection(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self._visit_collection(node)

    def visit_List(self, node: ast.List) -> None:
        self._visit_collection(node)

    def _visit_collection(self, node: ast.Set | ast.Tuple | ast.List) -> None:
        if len(node.elts) > 1 and all(_is_status(each) for each in node.elts):
            self._note(node, "holds a list of statuses")
        for each in node.elts:
            text = each.value if isinstance(each, ast.Constant) else None
            if isinstance(text, str) and " " in text and _is_wording(text):
                self._note(each, f"lists {text[:40]!r}")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = node.value
        if not isinstance(text, str) or id(node) in self._documentation:
            return
        if text.lower() in TELLING:
            self._note(node, f"names {text!r}")

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        named = {word.arg: word.value for word in node.keywords if word.arg}
        if name == "Verdict":
            code = named.get("code", node.args[0] if node.args else None)
            literal = code.value if isinstance(code, ast.Constant) else None
            if literal not in OWN_CODES:
                self._note(node, "makes a verdict")
        if name == "replace" and VERDICT_FIELDS & set(named):
            self._note(node, "changes a verdict")
        if name in TEXT_TESTS:
            self._note_words(node.args)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            told = {node.name}
            body = ast.Module(node.body, [])
            texts = {
                target.id
                for each in ast.walk(body)
                if isinstance(each, ast.Assign) and _tells(each.value, told)
                for target in each.targets
                if isinstance(target, ast.Name)
            }
            for each in ast.walk(body):
                if _tests(each) and _tells(each, told, texts):
                    self._note(each, "reads what an exception says")
        self.generic_visit(node)


def _documentation(tree: ast.AST) -> Iterator[int]:
    """Strings that stand for themselves: docstrings, and those after constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def _is_wording(text: str) -> bool:
    """Tell whether words, or a pattern for them, are those of a row of the table."""
    plain = " ".join(REGEX_SIGNS.sub(" ", text.lower()).split())
    return any(
        pattern.search(each) for pattern in PATTERNS for each in (text.lower(), plain)
    )


def _is_status(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "HTTPStatus":
        return node.attr not in ("OK", "CREATED", "NO_CONTENT")
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
        return True
    return isinstance(value, int) and 400 <= value <= 599


def _is_class_of_status(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.FloorDiv)
        and isinstance(node.right, ast.Constant)
        and node.right.value == 100
    )


def _is_quantity(node: ast.expr) -> bool:
    named = node.func if isinstance(node, ast.Call) else node
    return isinstance(named, ast.Name | ast.Attribute) and bool(
        QUANTITIES.search(ast.unparse(named))
    )


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    if isinstance(node, ast.Call) and _called(node) in ("frozenset", "set", "range"):
        return [member for each in node.args for member in _members(each)]
    return [node]


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _tests(node: ast.AST) -> bool:
    """Tell whether a node asks something of a text."""
    return isinstance(node, ast.Compare) or (
        isinstance(node, ast.Call) and _called(node) in TEXT_TESTS
    )


def _tells(node: ast.AST, errors: set[str], texts: set[str] | None = None) -> bool:
    """Tell whether a node contains what an exception says of itself."""
    return any(_told(each, errors, texts or set()) for each in ast.walk(node))


def _told(node: ast.AST, errors: set[str], texts: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in texts
        case ast.Call(args=[ast.Name(id=name), *_]):
            return name in errors and _called(node) in ("str", "repr", "format")
        case ast.FormattedValue(value=ast.Name(id=name)):
            return name in errors
        case ast.Attribute(value=ast.Name(id=name), attr=field):
            return name in errors and field in TELLING_FIELDS
        case _:
            return False
