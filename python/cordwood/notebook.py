"""The HTML of a `Scan` in a notebook: its first rows as a table."""

from __future__ import annotations

import html as markup
from typing import TYPE_CHECKING

from cordwood._core import Scan
from cordwood.times import in_words

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["html"]

_MAX_CHARACTERS = 60


def html(title: str, preview: Scan) -> str:
    """Format the rows of *preview*, a scan of a few rows, under a title. An error is shown as its message."""
    heading = f"<p><code>{markup.escape(title)}</code></p>"
    try:
        return heading + _table(preview)
    except Exception as error:  # noqa: BLE001  (a representation must not raise)
        return heading + f"<pre>{markup.escape(f'{type(error).__name__}: {error}')}</pre>"


def _table(preview: Scan) -> str:
    batch = next(iter(preview), None)
    if batch is None:
        return "<p>no rows</p>"
    head = "".join(f"<th>{markup.escape(name)}</th>" for name in batch.schema.names)
    columns = [_shown_column(column) for column in batch.columns]
    rows = ["".join(f"<td>{markup.escape(shown)}</td>" for shown in row) for row in zip(*columns, strict=True)]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


def _shown_column(values: pa.Array) -> list[str]:
    """Format the values of a column. Times are formatted as on the command line: a datetime cannot hold all of them."""
    import pyarrow as pa  # noqa: PLC0415  (an extra; without it there is no batch)

    if pa.types.is_timestamp(values.type):
        times = values.cast(pa.timestamp("ms", values.type.tz), safe=False).cast(pa.int64()).to_pylist()
        return ["" if time is None else in_words(time) for time in times]
    return [_shown(value) for value in values.to_pylist()]


def _shown(value: object) -> str:
    """Format a value in a few characters; bytes as text if they are UTF-8."""
    if isinstance(value, bytes):
        start = value[: 4 * _MAX_CHARACTERS]
        try:
            value = value.decode() if len(start) == len(value) else start.decode(errors="ignore")
        except UnicodeDecodeError:
            value = repr(start)
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
