"""No branch of the package depends on the text of an error: branches use a type, a code or an attribute."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = sorted((ROOT / "python" / "cordwood").rglob("*.py"))
RUST = sorted((ROOT / "src").rglob("*.rs"))
TEXTS = {"args", "expected", "found", "reason", "sentence", "advice", "strerror", "argument"}
SEARCHES = {
    "startswith",
    "endswith",
    "find",
    "index",
    "match",
    "search",
    "fullmatch",
    "partition",
    "rpartition",
    "split",
}

IN_RUST = re.compile(
    # the text of an error that is searched or compared, and an operation that is named by a string
    r"(?:error|wrong|failed|refused)\.to_string\(\)\s*\.(?:contains|starts_with|ends_with|split|find)"
    r"|(?:error|wrong|failed|refused)\.to_string\(\)\s*[!=]=|\baction: \""
)


def is_text_of(node: ast.AST, names: set[str]) -> bool:
    """Whether this is `str(error)`, `error.args[0]`, `error.found` or similar, of an error with one of the names."""
    match node:
        case ast.Call(func=ast.Name("str" | "repr"), args=[ast.Name(name)]):
            return name in names
        case ast.Subscript(value=inner):
            return is_text_of(inner, names)
        case ast.Attribute(value=ast.Name(name), attr=attribute):
            return name in names and attribute in TEXTS
    return False


def branches_on_texts(tree: ast.AST) -> Iterator[int]:
    """The lines where the text of an error that an `except` binds is compared or searched."""
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        names = {handler.name}
        for node in ast.walk(handler):
            match node:
                case ast.Compare(left=left, comparators=others):
                    looked_at = [left, *others]
                case ast.Call(func=ast.Attribute(value=value, attr=attribute), args=arguments) if attribute in SEARCHES:
                    looked_at = [value, *arguments]
                case _:
                    continue
            if any(is_text_of(one, names) for one in looked_at):
                yield node.lineno


@pytest.mark.parametrize(
    "code",
    [
        "if 'full' in str(error): pass",
        "if error.found == 'x': pass",
        "if error.argument != 'x': pass",
        "if error.args[0].startswith('x'): pass",
        "re.search('x', str(error))",
    ],
)
def test_the_search_finds_branches_on_texts(code: str) -> None:
    tree = ast.parse(f"try: pass\nexcept OSError as error:\n    {code}")
    assert list(branches_on_texts(tree)) == [3]
    assert IN_RUST.search('if error.to_string().contains("full") {}')
    assert IN_RUST.search('matches!(error, Error::Io { action: "create", .. })')


def test_no_branch_in_python_depends_on_the_text_of_an_error() -> None:
    found = [f"{path}:{line}" for path in PYTHON for line in branches_on_texts(ast.parse(path.read_text()))]
    assert found == []


def test_no_branch_in_rust_depends_on_the_text_of_an_error() -> None:
    assert len(RUST) > 100
    # the tests of a module are at its end
    shipped = {
        path: path.read_text().partition("#[cfg(test)]\nmod tests {")[0] for path in RUST if "tests" not in path.parts
    }
    assert [str(path) for path, text in shipped.items() if IN_RUST.search(text)] == []
