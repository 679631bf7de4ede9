"""`cordwood trace`: which pages of an index a search touches."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from cordwood import OffsetIndex, TimeIndex, TimestampOffset
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.terminal import Column, print_json, print_table, several
from cordwood.times import in_words, parse

__all__ = ["trace"]

Method = Literal["binary", "warm"]

_PAGE_BYTES = 4096
_STRIP_CELLS = 64
_COLUMNS: list[Column] = [("method", "left"), ("pages, in order", "text"), ("map", "left")]


def trace(
    index: Annotated[Path, typer.Argument(help="An .index or a .timeindex.")],
    target: Annotated[str, typer.Argument(help="An offset; for a .timeindex a time.")],
    method: Annotated[Method | None, typer.Option(help="One search method; all of them by default.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Show which 4 KiB pages of an index a look-up touches, by search method.

    The warm search looks at the newest 8 KiB first, so that a look-up near the end always touches the same few pages.

    \b
    cordwood trace orders-0/00000000000000000000.index 399
    cordwood trace orders-0/00000000000000000000.timeindex 2024-05-01T10:00Z --method warm
    """  # noqa: D301
    with _open(index) as opened:
        wanted = _target(opened, target)
        methods = get_args(Method) if method is None else (method,)
        pages = {name: opened.trace(wanted, name) for name in methods}
        answer = opened.lookup(wanted)
        page_count = -(-opened.entries * opened.entry_size // _PAGE_BYTES)
        document: dict[str, Any] = {
            "index": opened.path,
            "target": wanted,
            "entries": opened.entries,
            "entry_size": opened.entry_size,
            "pages": page_count,
            "answer": _answer(answer),
            "methods": pages,
        }
    if json:
        print_json(document)
        return
    found = ", ".join(
        f"{name} {in_words(value) if name == 'timestamp' else value}" for name, value in document["answer"].items()
    )
    size = f"{_entries(document['entries'])} on {several(page_count, 'page')}"
    title = f"{document['index']}: {size}; {target} is found at {found}"
    rows = [[name, " ".join(map(str, touched)), _strip(touched, page_count)] for name, touched in pages.items()]
    print_table(title, _COLUMNS, rows)


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _open(path: Path) -> OffsetIndex | TimeIndex:
    match path.suffix:
        case ".index":
            return OffsetIndex(path)
        case ".timeindex":
            return TimeIndex(path)
        case _:
            raise UsageError(f"{path} is not searched by key: trace wants an .index or a .timeindex")


def _target(index: OffsetIndex | TimeIndex, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        if isinstance(index, TimeIndex):
            return parse(text)
        raise UsageError(f"{text!r} is not an offset") from None


def _answer(entry: object) -> dict[str, int]:
    names = ("timestamp", "offset") if isinstance(entry, TimestampOffset) else ("offset", "position")
    return {name: getattr(entry, name) for name in names}


def _strip(touched: list[int], page_count: int) -> str:
    """Draw the pages: a block for each that was touched; of many pages several share a cell."""
    cells = min(page_count, _STRIP_CELLS)
    hit = {page * cells // page_count for page in touched} if page_count else set()
    return "".join("█" if cell in hit else "·" for cell in range(cells))
