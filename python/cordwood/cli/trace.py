"""`cordwood trace`: show the pages of an index that a search reads."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from cordwood import OffsetIndex, TimeIndex, TimestampOffset
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.moment import parse_time
from cordwood.cli.path import parse_path
from cordwood.cli.terminal import Column, print_json, print_table
from cordwood.quantities import several
from cordwood.times import in_words

__all__ = ["trace"]

Method = Literal["binary", "warm", "learned"]

_PAGE_BYTES = 4096
_MAX_MAP_CELLS = 64
_COLUMNS: list[Column] = [("method", "left"), ("pages, in order", "text"), ("map", "left")]


def trace(
    index: Annotated[Path, typer.Argument(parser=parse_path, help="An .index or a .timeindex.")],
    target: Annotated[str, typer.Argument(help="An offset, or a time for a .timeindex.")],
    method: Annotated[Method | None, typer.Option(help="One search method; all of them by default.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Show the 4 KiB pages of an index that a look-up reads, by search method.

    The warm search is Kafka's: it reads the newest 8 KiB first, so that look-ups near the end always read the same few
    pages. The learned search, the default of look-ups, has some of the keys in memory. The last entry is in memory.

    \b
    cordwood trace orders-0/00000000000000000000.index 399
    cordwood trace orders-0/00000000000000000000.timeindex 2024-05-01T10:00Z --method warm
    """  # noqa: D301
    with _open(index) as opened:
        key = _key(opened, target)
        methods = get_args(Method) if method is None else (method,)
        pages = {name: opened.trace(key, name) for name in methods}
        entry = opened.lookup(key)
        page_count = -(-opened.entries * opened.entry_size // _PAGE_BYTES)
        document: dict[str, Any] = {
            "index": opened.path,
            "target": key,
            "entries": opened.entries,
            "entry_size": opened.entry_size,
            "pages": page_count,
            "answer": _fields(entry),
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
    rows = [[name, " ".join(map(str, read)) or "none", _page_map(read, page_count)] for name, read in pages.items()]
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
            raise UsageError(f"{path}: expected an .index or a .timeindex")


def _key(index: OffsetIndex | TimeIndex, text: str) -> int:
    # "-2h" is a time, -1 a number below all times
    if isinstance(index, TimeIndex) and not re.fullmatch(r"-\d+", text):
        return parse_time("TARGET", text)
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is not an offset") from None


def _fields(entry: object) -> dict[str, int]:
    names = ("timestamp", "offset") if isinstance(entry, TimestampOffset) else ("offset", "position")
    return {name: getattr(entry, name) for name in names}


def _page_map(read: list[int], page_count: int) -> str:
    """Draw the pages of an index, with a block for each page that was read. If there are many, several share a cell."""
    cells = min(page_count, _MAX_MAP_CELLS)
    hit = {page * cells // page_count for page in read} if page_count else set()
    return "".join("█" if cell in hit else "·" for cell in range(cells))
