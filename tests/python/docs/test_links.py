"""The documents as a repository shows them: links, pictures, and the pages of the reference that the site generates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "pages"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), ROOT / "benches" / "README.md", *sorted(PAGES.rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
# a link to a Python name, which only the site can follow
SITE_LINK = re.compile(r"\]\[[\w.]+\]")
# what only the site shows: documentation of a Python object, or a part that is generated from the code
GENERATED = re.compile(r"^(?:::: |<!-- generated: )", re.MULTILINE)
# where to read the same in the repository; the site leaves this paragraph out
ELSEWHERE = re.compile(r"^> In the repository: .*\n(?:> .*\n)*", re.MULTILINE)


def prose(text: str) -> str:
    """A document without its code."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The places of a document to which a link can lead: its headings, as GitHub and the site name them, and ids."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def broken(path: Path, text: str) -> Iterator[str]:
    """The links of a document that lead to no file, or to no place in it. Only the site has anchors of Python names."""
    for link in LINK.findall(prose(text)):
        target, _, anchor = link.partition("#")
        file = path.parent / target if target else path
        if not file.exists():
            yield link
        elif anchor and not anchor.startswith("cordwood."):
            document = file.read_text(encoding="utf-8") if target else text
            if anchor not in anchors(document):
                yield link
    yield from SITE_LINK.findall(prose(text))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_and_picture_is_a_file_of_the_repository(path: Path) -> None:
    assert not list(broken(path, path.read_text(encoding="utf-8")))


def test_a_broken_link_is_noticed() -> None:
    text = "[a](nowhere.md#b) ![e](https://example.org/f.png) `[g](h.md)` [i][cordwood.Log] [j](README.md)"
    assert list(broken(ROOT / "README.md", text)) == ["nowhere.md#b", "][cordwood.Log]"]


def test_a_link_to_no_place_in_a_document_is_noticed() -> None:
    text = "# One day\n[a](#one-day) [b](#two-days) [c](SECURITY.md#limits) [d](SECURITY.md#limit)"
    assert list(broken(ROOT / "README.md", text)) == ["#two-days", "SECURITY.md#limit"]


GENERATED_PAGES = [path for path in PAGES.rglob("*.md") if GENERATED.search(path.read_text(encoding="utf-8"))]


def names_defined(path: Path) -> set[str]:
    """The classes and functions of a Python file, or of all files of a folder."""
    files = path.rglob("*.py") if path.is_dir() else [path]
    nodes = [node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body]
    return {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}


@pytest.mark.parametrize("path", GENERATED_PAGES, ids=lambda path: str(path.relative_to(PAGES)))
def test_a_page_that_is_generated_links_to_the_source_of_its_contents(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    elsewhere = "".join(ELSEWHERE.findall(text))
    assert "make docs" in elsewhere
    linked = [path.parent / link.partition("#")[0] for link in LINK.findall(elsewhere)]
    assert linked
    documented = {name.rpartition(".")[2] for name in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)} - {"_core"}
    sources = [source for source in linked if source.is_dir() or source.suffix in {".py", ".pyi"}]
    assert documented <= set().union(*map(names_defined, sources))
