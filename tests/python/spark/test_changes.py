"""Changes on disk, by the state of the session and the mode of the read: an error, a warning, or rows.

Nothing is ever left out silently. The reader is called without a JVM here; `test_changed_logs.py` runs a part of the
table in Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import needs_pyspark  # noqa: F401
import pytest

import cordwood as cw
from spark.changes import CHANGES, TABLE, Cell, Values, aged, make
from spark.reading import Row, plan, refuses
from spark.streaming import ALL, EARLIEST, Engine


def by_offset(rows: list[Row]) -> tuple[Values, int]:
    """Values by offset, and the number of rows about damage."""
    good = [row for row in rows if len(row) == 2 or row[2] is None]
    found = {offset: value for offset, value, *_ in good}
    assert len(found) == len(good), "a record is given twice"
    return found, len(rows) - len(good)


class Stream(Engine):
    columns = ("offset", "value")


def loaded(path: Path, cell: Cell) -> Path:
    return path.parent / cell.change.load


def read_batch(path: Path, cell: Cell) -> list[Row]:
    chosen = plan(loaded(path, cell), columns="offset,value", **cell.options)
    return [row for piece in chosen.pieces() for row in piece]


def run_batch(path: Path, cell: Cell) -> list[Row]:
    for number, step in enumerate(cell.change.steps):
        if cell.reads_before(number):
            between(lambda: read_batch(path, cell))
        step(path)
    return read_batch(path, cell)


def run_stream(path: Path, cell: Cell) -> list[Row]:
    engine = Stream(loaded(path, cell), maxOffsetsPerTrigger=cell.change.at, **cell.options, **EARLIEST)
    assert len(engine.batch() or []) == cell.change.at

    def elsewhere() -> tuple[Path, Stream]:
        """Restart the query with a path that this process has never opened."""
        moved = path.parent.rename(path.parent.with_name("moved")) / path.name
        return moved, Stream(loaded(moved, cell), checkpoint=engine.at, **cell.options, **EARLIEST)

    for number, step in enumerate(cell.change.steps):
        if cell.session == "between" and number == 1:
            path, engine = elsewhere()
        if cell.reads_before(number):
            between(partial(lambda query: query.read(query.at, query.latest(ALL)), engine))
        step(path)
    if cell.session == "new":
        path, engine = elsewhere()
    rows: list[Row] = []
    while (more := engine.batch(ALL)) is not None:
        rows += more
    return rows


def between(read: Callable[[], object]) -> None:
    """Read between two steps, when the log may be damaged."""
    with suppress(cw.CordwoodError):
        read()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for record in caplog.records if (text := record.getMessage()).startswith("[CORDWOOD_")]


@pytest.mark.parametrize("cell", TABLE, ids=str)
def test_a_change_on_disk_gives_its_rows_a_warning_or_an_error(
    tmp_path: Path, cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data" / "t-0"
    make(path)
    aged(path)
    run = run_stream if cell.is_stream else run_batch
    if cell.error is not None:
        with refuses(cell.error, "t-0"):
            run(path, cell)
        return
    with caplog.at_level(logging.WARNING, "cordwood"):
        caplog.clear()
        rows, errors = by_offset(run(path, cell))
    assert rows == cell.found.rows
    assert errors == (cell.found.damaged and cell.mode == "PERMISSIVE")
    if len(cell.change.steps) == 1 or cell.session == "new":
        # a reading between two steps warns, too
        assert bool(warnings_of(caplog)) == cell.is_warned_of


def test_the_table_has_every_kind_of_cell() -> None:
    """Errors of both kinds, warnings of both kinds, and rows, of streams and batches, in every session and mode."""
    several = sum(len(change.steps) > 1 for change in CHANGES)
    assert len(TABLE) == 24 * len(CHANGES) + 12 * several >= 560
    for stream in (False, True):
        cells = [cell for cell in TABLE if cell.is_stream == stream]
        assert {cell.error for cell in cells} == {None, "CORDWOOD_SEGMENT_GONE", "CORDWOOD_CORRUPT_BATCH"}
        assert {(cell.found.lost, cell.found.damaged) for cell in cells if cell.is_warned_of} == {
            (True, False),
            (False, True),
        }
        assert sum(cell.error is None and not cell.is_warned_of for cell in cells) > 60
