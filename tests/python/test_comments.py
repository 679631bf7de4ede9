"""The width of comments, in all languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "python", "tests", "benches", "docs", "examples")
SLASHES = re.compile(r"\s*(//|\*)")
HASH = re.compile(r"\s*#")
COMMENTS = {".rs": SLASHES, ".java": SLASHES, ".py": HASH, ".pyi": HASH, ".mk": HASH, ".toml": HASH}
WIDTH = 110


def sources() -> Iterator[Path]:
    yield from (ROOT / name for name in ("Makefile", "Cargo.toml", "pyproject.toml", "clippy.toml", "deny.toml"))
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in COMMENTS and "target" not in path.parts:
                yield path


def wide_comments(text: str, comment: re.Pattern[str]) -> Iterator[int]:
    """Yield the numbers of lines that are too wide; tables, drawings and code of examples may be wider."""
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not comment.match(line):
            is_code = False
            continue
        is_code ^= "```" in line
        is_table = re.search(r"\S {3,}\S|-----|^\s*(//[/!]|\*) ?\|", line)
        is_word = len(line.split()) <= 2
        if len(line) > WIDTH and not (is_code or is_table or is_word):
            yield number


def test_comments_are_at_most_110_columns_wide() -> None:
    paths = list(sources())
    assert len(paths) > 1000
    wide = []
    for path in paths:
        comment = COMMENTS.get(path.suffix, HASH)
        text = path.read_text(encoding="utf-8")
        wide += [f"{path.relative_to(ROOT)}:{number}" for number in wide_comments(text, comment)]
    assert wide == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/// " + "a " * 60, [1]),
        ("let a = 1; // " + "a " * 60, []),
        ("//! ```text\n//! " + "a " * 60 + "\n//! ```\n//! " + "a " * 60, [4]),
        ("// name    " + "a " * 60, []),
        ("/// <https://" + "a" * 120 + ">", []),
    ],
)
def test_a_wide_comment_is_found(text: str, expected: list[int]) -> None:
    assert list(wide_comments(text, SLASHES)) == expected
