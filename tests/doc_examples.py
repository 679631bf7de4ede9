"""Runs the examples of the README, the documentation, the stub and the docstrings, from the root of the repository."""

import ast
import doctest
import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import cordwood

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "cordwood"
STUBS = [PACKAGE / "_core.pyi", *sorted((PACKAGE / "_stubs").glob("*.pyi"))]
PARSER = doctest.DocTestParser()


def stub_examples() -> Iterator[doctest.DocTest]:
    def walk(node: ast.AST, name: str, stub: Path) -> Iterator[doctest.DocTest]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                inner = f"{name}.{child.name}"
                text = ast.get_docstring(child)
                if text:
                    yield PARSER.get_doctest(text, {"cw": cordwood}, inner, str(stub), child.lineno)
                yield from walk(child, inner, stub)

    for stub in STUBS:
        yield from walk(ast.parse(stub.read_text()), "cordwood", stub)


def page_examples() -> Iterator[doctest.DocTest]:
    """The examples of the README and of the pages of the documentation."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").rglob("*.md"))]:
        blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
        # one session for each page: a later block continues an earlier one
        yield PARSER.get_doctest("\n".join(blocks), {}, str(path.relative_to(ROOT)), str(path), 0)


def docstring_examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for found in pkgutil.walk_packages(cordwood.__path__, "cordwood."):
        if found.name.endswith(("._core", ".__main__")):
            continue
        yield from finder.find(importlib.import_module(found.name), found.name)
    yield from finder.find(cordwood, "cordwood")


def main() -> int:
    os.chdir(ROOT)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    seen = set()
    for examples in (stub_examples, page_examples, docstring_examples):
        ran = 0
        for example in examples():
            # the module has the same docstrings as the stub
            if example.examples and example.name not in seen:
                seen.add(example.name)
                runner.run(example)
                ran += 1
        if ran == 0:
            print(f"{examples.__name__} found nothing to run")
            return 1
    results = runner.summarize(verbose=False)
    print(f"{results.attempted - results.failed} passed, {results.failed} failed")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
