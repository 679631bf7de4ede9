"""Scans as lines of text: once, or for `--follow` again and again."""

from collections.abc import Callable
from typing import Any, BinaryIO

from cordwood import Log, Scan
from cordwood._core import _scan_logs, _Zone
from cordwood.cli.follow import Follower
from cordwood.cli.formats import write_lines
from cordwood.cli.progress import counted

__all__ = ["LimitReached", "TextOutput"]

_OF_TERMINALS = {"csv", "raw"}


class LimitReached(Exception):  # noqa: N818  (not an error)
    """The number of rows of `--limit` was written."""


class TextOutput:
    """The output of one command."""

    def __init__(self, name: str, zone: _Zone | None, out: BinaryIO, *, to_file: bool) -> None:
        """Write in a text format: `jsonl`, `csv` or `raw`."""
        self._name: Any = f"terminal_{name}" if name in _OF_TERMINALS and out.isatty() else name
        self._zone = zone
        self._out = out
        self._to_file = to_file
        self._headings = True

    def write(self, scan: Scan) -> None:
        """Write all rows of a scan, and show the progress."""
        blocks = scan._lines(self._name, zone=self._zone)  # noqa: SLF001  (it is for this command)
        write_lines(counted(blocks, lambda block: block[1], to_file=self._to_file), self._out)

    def follower(self, request: dict[str, Any], after: Callable[[Scan], None]) -> Callable[[Log, Follower], None]:
        """Return a function that writes the rows that are new in a log, and calls *after* with its scan.

        It raises `LimitReached` after the rows of `request["limit"]`.
        """
        rows_left = request["limit"]

        def write(log: Log, follower: Follower) -> None:
            nonlocal rows_left
            ranges: dict[str, Any] = {"start_offset": follower.next_offset, "end_offset": follower.end_offset}
            if follower.is_new or not follower.is_first:
                ranges["last"] = None
            scan = _scan_logs([log], **(request | ranges | {"limit": rows_left}))
            blocks = scan._lines(self._name, headings=self._headings, zone=self._zone)  # noqa: SLF001
            self._headings = False
            try:
                for text, rows in blocks:
                    self._out.write(text)
                    self._out.flush()
                    rows_left = None if rows_left is None else rows_left - rows
            finally:
                # rows that were written before the log changed are not written again
                if blocks.last_offset >= 0:
                    follower.next_offset, follower.is_first = blocks.last_offset + 1, False
            after(scan)
            if rows_left == 0:
                raise LimitReached

        return write
