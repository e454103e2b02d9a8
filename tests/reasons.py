"""All that engine and app say by code, read off their sources: for the test of its translations.

Finds every call that makes a Reason or an EngineError and works out what its template may be.
Knows syntax alone: nothing is imported or run.
"""

import ast
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parents[1]
# What `measured` puts its own words behind: judgements of a pair that is no refusal.
ADVICE = ("unknown_size", "as_large", "not_smaller", "hardly_smaller", "small_target",
          "somewhat_smaller", "much_smaller", "smaller_translated")  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A code, its English template (None: put together in a way not understood), and where."""

    code: str
    template: str | None
    place: str


@functools.cache
def said() -> tuple[Said, ...]:
    """Everything, each once a module."""
    paths = sorted(path for part in ("engine", "app") for path in (TOP / part).rglob("*.py"))
    modules = {
        ".".join(path.relative_to(TOP).with_suffix("").parts): _Module(path) for path in paths
    }
    for module in modules.values():
        module.take_over(modules)
    kinds = _kinds([node for module in modules.values() for node in ast.walk(module.tree)])
    guidance = modules["engine.guidance"].said(kinds, [])
    advice = [found.template for found in guidance if found.code in ADVICE and found.template]
    every = (found for module in modules.values() for found in module.said(kinds, advice))
    return tuple(dict.fromkeys(every))


def _kinds(nodes: list[ast.AST]) -> set[str]:
    """Names that are called with a code and a template: classes, and helpers that hand both on."""
    kinds = {"Reason", "EngineError"}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args]
            if names[:2] == ["code", "template"]:
                kinds.add(node.name)
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    for _ in range(4):  # as deep as the tree of errors is
        kinds |= {c.name for c in classes if any(_name(base) in kinds for base in c.bases)}
    return kinds


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


class _Module:
    """One source file."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self._name = str(path.relative_to(TOP))
        nodes = list(ast.walk(self.tree))
        self.constants = _assigned([n for n in self.tree.body if isinstance(n, ast.Assign)])
        self._functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
        self._calls = [n for n in nodes if isinstance(n, ast.Call) and _has_code(n)]

    def take_over(self, modules: "dict[str, _Module]") -> None:
        """Know the constants that are imported of other modules."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                theirs = modules[node.module].constants
                for name in node.names:
                    if name.name in theirs:
                        self.constants[name.asname or name.name] = theirs[name.name]

    def said(self, kinds: set[str], advice: list[str]) -> Iterator[Said]:
        for call in self._calls:
            around = [node for node in self._around(call) if node.lineno < call.lineno]
            names = self.constants | _assigned(around)
            if self._speaks(call.func, kinds, names):
                code = ast.literal_eval(call.args[0])
                texts: list[str | None] = [*_texts(call.args[1], names, advice)] or [None]
                yield from (Said(code, text, self._name) for text in texts)

    def _around(self, call: ast.Call) -> list[ast.Assign]:
        """What is assigned in the innermost function that a call stands in."""
        inside = (f for f in self._functions if f.lineno <= call.lineno <= (f.end_lineno or 0))
        innermost = max(inside, key=lambda f: f.lineno, default=None)
        nodes = ast.walk(innermost) if innermost is not None else iter(())
        return [node for node in nodes if isinstance(node, ast.Assign)]

    def _speaks(self, func: ast.expr, kinds: set[str], names: dict[str, ast.expr]) -> bool:
        if _name(func) in kinds:
            return True
        value = names.get(_name(func)) if isinstance(func, ast.Name) else None
        return isinstance(value, ast.IfExp) and _name(value.body) in kinds


def _has_code(call: ast.Call) -> bool:
    code = call.args[0] if len(call.args) > 1 else None
    text = code.value if isinstance(code, ast.Constant) else None
    return isinstance(text, str) and text.isidentifier()


def _assigned(nodes: list[ast.Assign]) -> dict[str, ast.expr]:
    """What is given to each name, last of all."""
    found: dict[str, ast.expr] = {}
    for node in sorted(nodes, key=lambda node: node.lineno):
        found |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
    return found


def _texts(node: ast.expr, names: dict[str, ast.expr], advice: list[str]) -> Iterator[str]:
    """All that an expression may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in names:
        yield from _texts(names[node.id], names, advice)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body, names, advice)
        yield from _texts(node.orelse, names, advice)
    elif isinstance(node, ast.Attribute) and node.attr == "template":
        yield from advice
    elif isinstance(node, ast.FormattedValue):
        yield from _texts(node.value, names, advice)
    elif isinstance(node, ast.JoinedStr):
        parts = [list(_texts(part, names, advice)) for part in node.values]
        yield from ("".join(chosen) for chosen in itertools.product(*parts))
