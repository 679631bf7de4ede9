"""Output for a terminal: tables, numbers, and text without control characters."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

# rich and json are imported by what prints with them: most commands do not
if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Column",
    "drop_output",
    "dropping_unread",
    "escape",
    "escape_json",
    "print_any_text",
    "print_json",
    "print_line",
    "print_table",
    "print_text",
]

Column = tuple[str, Literal["left", "right", "text"]]
"""A heading, and the alignment of the cells. Only `text` cells (left-aligned) are wrapped."""

# C0 and C1 controls, DEL, lone surrogates (bytes that are not UTF-8), and characters that reorder or hide
# text
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_WIDE = 10_000
_GAP = "   "
"""Between the columns of a table."""
_LATIN_END, _BMP_END = 0x100, 0x10000


def _escaped(match: re.Match[str]) -> str:
    point = ord(match[0])
    if point < _LATIN_END:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < _BMP_END else f"\\U{point:08x}"


def escape(text: str) -> str:
    r"""Escape text from a log or a file name for a terminal.

    >>> escape("orders\x1b[2J")
    'orders\\x1b[2J'
    """
    return _UNSAFE.sub(_escaped, text)


def _escaped_in_json(match: re.Match[str]) -> str:
    import json  # noqa: PLC0415

    return json.dumps(match[0])[1:-1] if ord(match[0]) >= _LATIN_END else f"\\u{ord(match[0]):04x}"


def escape_json(line: str) -> str:
    r"""Escape a line of JSON for a terminal, as equivalent JSON.

    >>> escape_json('{"key": "\x9b"}')
    '{"key": "\\u009b"}'
    """
    return _UNSAFE.sub(_escaped_in_json, line)


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415

    class StandardOutput(Console):
        def on_broken_pipe(self) -> None:
            """Not exit, as the console of rich does."""
            drop_output()

    # without a terminal nothing is cut off
    return StandardOutput(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def print_table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; cells are text, never markup. Numbers, times and paths are never wrapped.

    The tables of rich take milliseconds for a row.
    """
    cell_len = _cell_len()
    from rich.text import Text  # noqa: PLC0415

    console = _console()
    headings = [heading for heading, _ in columns]
    cells = [[escape(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(headings, *cells, strict=True)]
    wrapped = [place for place, (_, side) in enumerate(columns) if side == "text"]
    least = {place: max(_longest_word(row[place]) for row in [headings, *cells]) for place in wrapped}
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - console.width
    while excess > 0 and (shrinkable := [place for place in wrapped if widths[place] > least[place]]):
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
        excess -= 1

    def padded(cell: str, place: int) -> str:
        space = " " * (widths[place] - cell_len(cell))
        return space + cell if columns[place][1] == "right" else cell + space

    def lines(row: Sequence[str]) -> Iterator[str]:
        blocks = [[cell] for cell in row]
        for place in wrapped:
            if cell_len(row[place]) > widths[place]:
                blocks[place] = [line.plain for line in Text(row[place]).wrap(console, widths[place], overflow="fold")]
        for parts in zip_longest(*blocks, fillvalue=""):
            yield _GAP.join(padded(part, place) for place, part in enumerate(parts)).rstrip()

    print_text(title, style="bold")
    for line in lines(headings):
        console.print(Text(line, style="bold"), overflow="ignore", no_wrap=True, crop=False)
    print_line(_rule() * (sum(widths) + len(_GAP) * (len(widths) - 1)))
    for row in cells:
        print_line("\n".join(lines(row)))


def _longest_word(text: str) -> int:
    return max(map(_cell_len(), text.split()), default=0)


def _cell_len() -> Callable[[str], int]:
    """Return the function that measures the columns of a terminal that a text takes."""
    from rich import cells  # noqa: PLC0415

    return cells.cell_len


def print_text(text: str, style: str = "") -> None:
    """Print a line, wrapped between words at the width of the terminal."""
    from rich.text import Text  # noqa: PLC0415

    _console().print(Text(escape(text), style=style), overflow="ignore", crop=False)


def print_json(value: Any) -> None:  # noqa: ANN401  (any JSON value)
    """Print one JSON document."""
    import json  # noqa: PLC0415

    print_line(json.dumps(value, indent=2))


def print_line(line: str) -> None:
    """Write a line as it is. Like all functions here, if its reader is gone it drops the output: see `drop_output`."""
    try:
        sys.stdout.write(line + "\n")
    except BrokenPipeError:
        drop_output()


def print_any_text() -> None:
    """Print characters that the encoding of standard output does not have as escapes, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _rule() -> str:
    line = "─"
    try:
        line.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "-"
    return line


@contextmanager
def dropping_unread() -> Iterator[None]:
    """Drop the rest of what the block writes to standard output if its reader is gone: see `drop_output`."""
    try:
        yield
    except BrokenPipeError as error:
        # only an error of standard output has no file name
        if error.filename is not None:
            raise
        drop_output()


def drop_output() -> None:
    """Drop what is written to standard output from now on, because its reader is gone (`cordwood … | head`).

    So a command that prints what it has found ends with its own exit code.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
