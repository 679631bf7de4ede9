"""The modules of the Spark package use those below them and none above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SPARK = Path(__file__).resolve().parents[3] / "python" / "cordwood" / "spark"

# from the lowest layer up; the package itself only imports names lazily
ORDER = [
    "errors",
    "arrow_scalars",
    "workers",
    "jar_file",
    "active_session",
    "schema",
    "batch",
    "stream",
    "write",
    "source",
    "java_source",
    "lookup",
    "udf",
    "decoding",
    "jobs",
    "__main__",
]

# modules that can be used and tested without Spark
WITHOUT_SPARK = ["errors", "arrow_scalars", "workers", "jar_file"]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SPARK.rglob("*.py")):
        yield path.relative_to(SPARK).parts[0].removesuffix(".py"), path


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def upward(name: str, path: Path) -> Iterator[str]:
    for module in imported(path):
        package, _, used = module.removeprefix("cordwood.spark").lstrip(".").partition(".")
        if module.startswith("cordwood.spark.") and ORDER.index(package) > ORDER.index(name):
            yield f"{path.name} uses {package}{used and '.' + used}"


def test_every_module_has_its_place() -> None:
    assert {name for name, _ in modules()} == {*ORDER, "__init__"}


def test_no_module_uses_one_above_it() -> None:
    wrong = [use for name, path in modules() if name != "__init__" for use in upward(name, path)]
    assert wrong == []


def test_an_upward_use_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "workers.py"
    path.write_text("from cordwood.spark.source import LogDataSource\n")
    assert list(upward("workers", path)) == ["workers.py uses source"]


def test_errors_need_no_spark() -> None:
    needs = {name: {module.partition(".")[0] for module in imported(path)} for name, path in modules()}
    assert [name for name in WITHOUT_SPARK if "pyspark" in needs[name]] == []
    assert "pyspark" in needs["source"]
