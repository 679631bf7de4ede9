"""Hooks of MkDocs: parts of pages that are generated from the code, and the documents of the root directory as pages.

A comment `<!-- generated: NAME -->` in a page is replaced by the result of a function below. A public name without
documentation, or without an entry in the reference, is an error.
"""

from __future__ import annotations

import ast
import dataclasses
import html
import inspect
import itertools
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "pages"
PACKAGE = ROOT / "python" / "cordwood"
sys.path.insert(0, str(PACKAGE.parent))

import cordwood  # noqa: E402
import cordwood.spark  # noqa: E402
from cordwood.cli.commands import CHECK, HEADINGS, LOOK, MEND, WRITE, Commands  # noqa: E402

_DOCUMENTS = {
    "ARCHITECTURE.md": "design.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SAFETY.md": "project/safety.md",
    "SECURITY.md": "project/security.md",
}
"""Documents of the root directory, and the page that each becomes."""

_PICTURES = {
    "tests/python/report/example.png": "images/report.png",
    **{
        str(drawing.relative_to(ROOT)): f"images/{drawing.name}"
        for drawing in sorted((ROOT / "benches" / "record").glob("*.svg"))
    },
}
"""Pictures outside the pages, and the file of the site that each becomes."""

_OTHER_LINKS = {"benches/README.md": "performance.md"}
"""Other files to which documents link, and the page that has the same subject."""

_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")

_ELSEWHERE = re.compile(r"^> In the repository: .*\n(?:> .*\n)*\n?", re.MULTILINE)
"""What a page says to those who read it in the repository, which does not have the generated parts."""


# --- files outside the pages ------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401  (MkDocs' own classes)
    """Add the documents of the root directory as pages, and the pictures outside the pages."""
    for name, uri in _DOCUMENTS.items():
        text = _with_links_of_pages((ROOT / name).read_text(encoding="utf-8"), ROOT, uri)
        files.append(File.generated(config, uri, content=text))
    for name, uri in _PICTURES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    return files


def _with_links_of_pages(text: str, folder: Path, uri: str) -> str:
    """Return a document with links between pages, which has links between files of the repository."""

    def page_link(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if target.is_relative_to(PAGES):
            page = str(target.relative_to(PAGES))
        else:
            name = str(target.relative_to(ROOT))
            page = {**_DOCUMENTS, **_PICTURES, **_OTHER_LINKS}.get(name)
            if page is None:
                raise PluginError(f"{uri} links to {name}, which is neither a page nor a picture of the site")
        return f"]({'../' * uri.count('/')}{page}{link[2] or ''})"

    return _LINK.sub(page_link, text)


# --- parts of pages ---------------------------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Replace the comments that name a generated part."""

    def part(comment: re.Match[str]) -> str:
        if comment[1] not in _PARTS:
            raise PluginError(f"{page.file.src_uri}: there is no generated part {comment[1]!r}")
        return "\n".join(_PARTS[comment[1]]())

    uri = page.file.src_uri
    if uri not in _DOCUMENTS.values():
        markdown = _with_links_of_pages(_ELSEWHERE.sub("", markdown), (PAGES / uri).parent, uri)
    return re.sub(r"<!-- generated: ([\w ]+) -->", part, markdown)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = list(heads)
    for cells in itertools.chain([heads, ["---"] * len(heads)], rows):
        # a new line would end the table
        yield "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _names() -> Iterator[str]:
    """Yield the public names by page of the reference."""
    rows = []
    for path in (PAGES / "reference" / "python" / name for name in _reference_pages()):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        names = [name for name in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE) if name != "cordwood._core"]
        if names:
            rows.append((f"[{title}]({path.name})", ", ".join(f"[`{_short(name)}`][{name}]" for name in names)))
    yield from _table(("page", "names"), rows)
    yield f"\nErrors are on [their own page](../errors.md). This is version {cordwood.__version__}."


def _reference_pages() -> list[str]:
    """Return the pages of the reference of Python in the order of the site."""
    text = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(r": reference/python/(\w+\.md)$", text, re.MULTILINE)


def _short(name: str) -> str:
    return name.removeprefix("cordwood.").removeprefix("spark.")


def _questions() -> Iterator[str]:
    """Yield the table of questions and commands in the README."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Questions and commands\n")[2]
    rows = re.findall(r"^\|.*", section.partition("\n## ")[0], re.MULTILINE)
    if not rows:
        raise PluginError("README.md has no table of questions and commands")
    yield from rows


def _commands() -> Iterator[str]:
    """Yield the commands with their arguments and options, from the parser."""
    for heading in (LOOK, CHECK, MEND, WRITE):
        yield f"\n## {heading}\n"
        for name in (name for name, its_heading in HEADINGS.items() if its_heading == heading):
            yield from _command(name)


def _command(name: str) -> Iterator[str]:
    command = Commands()[name]
    context = command.make_context(f"cordwood {name}", [], resilient_parsing=True)
    yield f"### {name}\n"
    yield f"```text\n{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}\n```\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield "```text\n" + paragraph.removeprefix("\b\n") + "\n```\n"
        else:
            yield _escaped(" ".join(paragraph.split())) + "\n"
    records = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    yield from _table(("argument or option", ""), ((_code(names), _escaped(said)) for names, said in records))
    yield ""


def _code(text: str) -> str:
    """Return code for a cell of a table, in which Markdown would show the escape of a bar."""
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _escaped(text: str) -> str:
    """Return the words of a help as Markdown: options and placeholders in it are code."""
    text = re.sub(r"([*_<>\[\]])", r"\\\1", text)
    return re.sub(r"(?<![\w-])(--?[a-z][a-z-]*)", r"`\1`", text)


def _settings() -> Iterator[str]:
    """Yield the fields of LogConfig with the names of Kafka."""
    said = _field_docs(PACKAGE / "config.py", "LogConfig")
    properties = cordwood.LogConfig().to_properties()
    rows = []
    for field in dataclasses.fields(cordwood.LogConfig):
        name = field.name.replace("_", ".")
        default = properties.get(name, properties.get(f"internal.{name}", ""))
        rows.append((f"`{name}`", f"`{default}`" if default else "", said[field.name]))
    yield from _table(("setting", "default", "meaning, unit: limits; default"), rows)


def _field_docs(path: Path, name: str) -> dict[str, str]:
    """Return the strings after the fields of a class."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    pairs = itertools.pairwise(found.body)
    return {
        field.target.id: text.value.value
        for field, text in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _spark_options() -> Iterator[str]:
    """Yield the options of the source and the sink; a test compares their docstring with the declaration in Rust."""
    text = inspect.getdoc(cordwood.spark) or ""
    text = "The options are" + text.partition("The options are")[2]
    text = re.sub(r"^Reading: (.*)$", r"## Reading\n\n\1", text, flags=re.MULTILINE)
    yield re.sub(r"^Writing: (.*)$", r"## Writing\n\n\1", text, flags=re.MULTILINE)


def _matches(pattern: str, path: str) -> list[tuple[str, ...]]:
    """Return what a pattern finds in a source file, which is at least one match."""
    found = re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"))
    if not found:
        raise PluginError(f"{path} has no match of {pattern}")
    return found


_EXCEPTIONS_OF_PYTHON = {"Io", "Interrupted"}
"""Errors of the core that become an OSError, or what the handler of a signal raised, and have no code in Python."""


def _error_codes() -> Iterator[str]:
    """Yield the codes of the core's errors, with their exceptions."""
    classes = dict(_matches(r'Error::(\w+) \{ \.\. \} => "(\w+Error)"', "src/python/error.rs"))
    codes = _matches(r'Self::(\w+)(?: \{[^}]*\}|\(_\)) => "([a-z_]+)"', "src/error.rs")
    kinds = {kind for kind, _ in codes}
    if differing := kinds ^ (set(classes) | _EXCEPTIONS_OF_PYTHON):
        raise PluginError(f"errors with a code but no exception, or the reverse: {', '.join(sorted(differing))}")
    rows = []
    for kind, code in codes:
        if kind in classes:
            said = (inspect.getdoc(getattr(cordwood, classes[kind])) or "").partition("\n\n")[0]
            rows.append((f"`{code}`", f"[`{classes[kind]}`][cordwood.errors.{classes[kind]}]", said))
    rows.append(
        ("`internal`", "[`InternalError`][cordwood.errors.InternalError]", "A bug in cordwood. Please report it.")
    )
    yield from _table(("code", "exception", "meaning"), rows)


def _spark_error_codes() -> Iterator[str]:
    import cordwood.spark.errors as errors  # noqa: PLC0415, PLR0402

    lines = (inspect.getdoc(errors) or "").splitlines()
    yield from (line for line in lines if line.startswith("|"))


def _findings() -> Iterator[str]:
    """Yield the rules of verify."""
    text = (ROOT / "src" / "inspect" / "verify" / "rule.rs").read_text(encoding="utf-8").partition("\nrules! {")[2]
    text = re.sub(r"\\\n\s+", "", text)
    rule = re.compile(r'((?:^    ///[^\n]*\n)+)    \w+ = "(\w+)", (\w+),.*?"([^"]*)";\n', re.MULTILINE | re.DOTALL)
    found = list(rule.finditer(text))
    if len(found) != text.count(' = "'):
        raise PluginError(f"rule.rs has {text.count(chr(32) + '= ' + chr(34))} rules, and {len(found)} were found")
    rows = [
        (f"`{each[2]}`", each[3].lower(), re.sub(r"^ +/// ", "", each[1], flags=re.MULTILINE), each[4])
        for each in found
    ]
    yield from _table(("code", "usually", "what is found", "what Kafka does"), rows)


def _guarantee_tests() -> Iterator[str]:
    """Yield the tests of each sentence of the guarantees, folded."""
    promised = tomllib.loads((ROOT / "tests" / "guarantees.toml").read_text(encoding="utf-8"))
    for number, guarantee in enumerate(promised["guarantee"], 1):
        yield f'??? note "{number}. {guarantee["title"]}"\n'
        for promise in guarantee["promises"]:
            yield f"    {promise['says']}\n"
            for test in promise["tests"]:
                yield f"    - `{test}`"
            yield ""


_PARTS = {
    "names": _names,
    "questions": _questions,
    "commands": _commands,
    "settings": _settings,
    "spark options": _spark_options,
    "error codes": _error_codes,
    "spark error codes": _spark_error_codes,
    "findings": _findings,
    "guarantee tests": _guarantee_tests,
}


# --- what must be documented ------------------------------------------------------------------------------------------


def on_post_build(config: Any) -> None:  # noqa: ANN401, ARG001
    """Check that every public name is documented and in the reference."""
    texts = [path.read_text(encoding="utf-8") for path in (PAGES / "reference").rglob("*.md")]
    listed = set(re.findall(r"^::: ([\w.]+)$", "\n".join(texts), re.MULTILINE))
    listed |= {name.replace("cordwood.errors.", "cordwood.") for name in listed}
    for module in (cordwood, cordwood.spark, cordwood.spark.jobs):
        for name in module.__all__:
            found = getattr(module, name)
            if name == "__version__" or inspect.ismodule(found):
                continue
            if f"{module.__name__}.{name}" not in listed:
                raise PluginError(f"{module.__name__}.{name} is in no page of the reference")
            if not inspect.getdoc(found):
                raise PluginError(f"{module.__name__}.{name} has no documentation")
