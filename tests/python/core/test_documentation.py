"""`help()` shows the docstrings of the stub, which is the source of the extension module's documentation."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cordwood import _core

STUB = Path(_core.__file__).with_name("_core.pyi")
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in [STUB, *STUB.with_name("_stubs").glob("*.pyi")]}


def members(tree: ast.Module | ast.ClassDef, above: str = "") -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(
            isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases
        ):
            continue
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield above + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from members(node, f"{node.name}.")


MEMBERS = dict(member for tree in TREES.values() for member in members(tree))
DOCUMENTED = {name: ast.get_docstring(node) for name, node in MEMBERS.items() if ast.get_docstring(node)}
CALLS = {
    name: node
    for name, node in MEMBERS.items()
    if isinstance(node, ast.FunctionDef)
    and not any(isinstance(d, ast.Name) and d.id in {"property", "overload"} for d in node.decorator_list)
}


def in_module(name: str) -> Any:
    found: Any = _core
    for part in name.split("."):
        # not by getattr, which returns the value of a property
        found = inspect.getattr_static(found, part)
    return found.__func__ if isinstance(found, staticmethod) else found


def test_the_stub_has_documentation_to_compare() -> None:
    assert {"Log", "Log.scan", "Log.path", "LogWriter.append", "OffsetIndex.entries", "plan_retention"} <= set(
        DOCUMENTED
    )
    assert len(DOCUMENTED) > 150


def test_the_documentation_of_the_module_is_that_of_the_stub() -> None:
    assert inspect.getdoc(_core) == ast.get_docstring(TREES[STUB])


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_documentation_in_the_module_is_that_of_the_stub(name: str) -> None:
    assert inspect.getdoc(in_module(name)) == DOCUMENTED[name]


def test_everything_public_is_documented() -> None:
    """Special methods are documented by Python."""
    public = {
        f"{name}.{member}" if member else name
        for name in _core.__all__
        for member in ["", *(vars(getattr(_core, name)) if inspect.isclass(getattr(_core, name)) else ())]
        if not member.startswith("_") and not name.startswith("__")
    }
    assert public - set(DOCUMENTED) == set()


def defaults(function: ast.FunctionDef) -> dict[str, Any]:
    """Each parameter's default in the stub; `...` if it has none."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    none = [ast.Constant(...)] * (len(positional) - len(arguments.defaults))
    pairs = [*zip(positional, [*none, *arguments.defaults], strict=True)]
    pairs += [
        (name, value or ast.Constant(...))
        for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return {name.arg: ast.literal_eval(value) for name, value in pairs if name.arg not in {"self", "cls"}}


@pytest.mark.parametrize("name", CALLS)
def test_signatures_are_those_of_the_stub(name: str) -> None:
    class_name, _, method = name.rpartition(".")
    if method == "__new__":
        found = inspect.signature(in_module(class_name))
    else:
        found = inspect.signature(getattr(getattr(_core, class_name), method) if class_name else getattr(_core, method))
    wanted = defaults(CALLS[name])
    shown = {
        parameter.name: ... if parameter.default is parameter.empty else parameter.default
        for parameter in found.parameters.values()
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    }
    if method.startswith("__") and method != "__new__":
        # special methods have Python's own parameter names
        assert len(shown) == len(wanted)
        return
    assert shown == wanted
    keywords = {p.name for p in found.parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords == {argument.arg for argument in CALLS[name].args.kwonlyargs}


@pytest.mark.parametrize(("name", "lines"), [("README.md", 180), ("ARCHITECTURE.md", 250), ("benches/README.md", 150)])
def test_what_one_reads_first_is_short(name: str, lines: int) -> None:
    """What does not fit is in `docs`."""
    assert len((Path(__file__).resolve().parents[3] / name).read_text(encoding="utf-8").splitlines()) <= lines


def test_help_shows_the_arguments_and_the_documentation_of_a_method() -> None:
    script = "import cordwood as cw; help(cw.Log.scan)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "start_offset=None" in shown
    assert "isolation_level='read_uncommitted'" in shown
    assert "A time range is exact" in shown
