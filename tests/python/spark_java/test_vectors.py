"""Vectors outlive their batch without reading its memory: they throw."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from spark.java_objects import JvmSource, jvm
from spark.reading import TYPES, struct

EDGES = corpus.partition("07-edge-values")
NAMES = list(TYPES)
ENDED = "IllegalStateException: expected a vector of the current batch"
CLOSED = "IllegalStateException: expected a reader of a running task, found it closed"
ROWS = 9

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def reader() -> Iterator[Any]:
    """A reader of all columns, with batches of a few rows."""
    found = opened()
    yield found
    found.close()


def opened(part: corpus.Partition = EDGES) -> Any:
    options = {"path": str(part.path), "includeHeaders": "true", "maxBatchRows": str(ROWS), "minPartitions": "1"}
    tasks = JvmSource(options).reader(struct(*NAMES))
    split = tasks.partitions()[0]
    return tasks.factory.value.createColumnarReader(jvm().new("LogInputPartition", bytes(split.value)))


def first_batch(reader: Any) -> Any:
    assert reader.next()
    return reader.get()


def throws(read: Callable[[], Any], message: str = ENDED) -> None:
    with pytest.raises(Exception, match=message):
        read()


def row_where(vector: Any, *, is_null: bool) -> int:
    return next(row for row in range(ROWS) if vector.isNullAt(row) == is_null)


ACCESSES: list[tuple[str, Callable[[Any, int], Any]]] = [
    ("key", lambda vector, row: vector.getBinary(row)),
    ("value", lambda vector, row: vector.getBinary(row)),
    ("value", lambda vector, row: vector.getUTF8String(row)),
    ("topic", lambda vector, row: vector.getUTF8String(row)),
    ("partition", lambda vector, row: vector.getInt(row)),
    ("offset", lambda vector, row: vector.getLong(row)),
    ("timestamp", lambda vector, row: vector.getLong(row)),
    ("timestampType", lambda vector, row: vector.getInt(row)),
    ("headers", lambda vector, row: vector.getArray(row)),
    ("headers", lambda vector, _: vector.getChild(0)),
    ("headers", lambda vector, _: vector.numNulls()),
    ("key", lambda vector, _: vector.numNulls()),
    *((name, lambda vector, row: vector.isNullAt(row)) for name in NAMES),
]


def column(batch: Any, name: str) -> Any:
    return batch.column(NAMES.index(name))


@pytest.mark.parametrize("end", ["next", "close", "closeVector", "closeBatch"])
@pytest.mark.parametrize(("name", "access"), ACCESSES, ids=[f"{i}-{name}" for i, (name, _) in enumerate(ACCESSES)])
def test_a_vector_of_an_ended_batch_throws(reader: Any, name: str, access: Any, end: str) -> None:
    """Each access, also those that find no null without the memory."""
    batch = first_batch(reader)
    vector = column(batch, name)
    row = row_where(vector, is_null=False)
    access(vector, row)
    had_nulls = vector.hasNull()
    {"next": reader.next, "close": reader.close, "closeVector": vector.close, "closeBatch": batch.close}[end]()
    if "numNulls" in access.__code__.co_names and not had_nulls:
        assert access(vector, row) == 0
    else:
        throws(lambda: access(vector, row))


def test_only_the_vectors_of_the_current_batch_can_be_read(reader: Any) -> None:
    held: list[Any] = []
    while reader.next():
        vector = column(reader.get(), "offset")
        assert vector.getLong(0) >= len(held)
        for old in held:
            throws(functools.partial(old.getLong, 0))
        held.append(vector)
    assert len(held) >= 110 // ROWS
    for old in held:
        throws(functools.partial(old.getLong, 0))


def test_rows_of_an_ended_batch_throw(reader: Any) -> None:
    batch = first_batch(reader)
    row, rows = batch.getRow(0), batch.rowIterator()
    kept = rows.next()
    assert row.getLong(NAMES.index("offset")) == 0
    assert reader.next()
    throws(lambda: row.getLong(NAMES.index("offset")))
    throws(lambda: kept.getBinary(0) if not kept.isNullAt(0) else None)
    throws(row.copy)


def test_arrays_and_structs_of_an_ended_batch_throw(reader: Any) -> None:
    vector = column(first_batch(reader), "headers")
    while (row := next((r for r in range(ROWS) if not vector.isNullAt(r)), None)) is None:
        vector = column(first_batch(reader), "headers")
    array = vector.getArray(row)
    header = array.getStruct(0, 2)
    keys = vector.getChild(0).getChild(0)
    assert not header.isNullAt(0)
    reader.next()
    throws(lambda: header.isNullAt(0))
    throws(lambda: header.getUTF8String(0))
    throws(lambda: array.getStruct(0, 2).getUTF8String(0))
    throws(lambda: array.copy().getStruct(0, 2).getUTF8String(0))
    throws(lambda: keys.getUTF8String(0))


def test_strings_and_binaries_are_copies(reader: Any) -> None:
    batch = first_batch(reader)
    keys = column(batch, "key")
    row = row_where(keys, is_null=False)
    key, topic = keys.getUTF8String(row), column(batch, "topic").getUTF8String(0)
    text = key.toString()
    reader.next()
    reader.close()
    assert key.toString() == text
    assert topic.toString() == EDGES.topic


def test_a_closed_reader_reads_no_more_and_may_be_closed_again() -> None:
    reader = opened()
    first_batch(reader)
    reader.close()
    reader.close()
    throws(reader.next, CLOSED)
    assert next(iter(reader.currentMetricsValues())).value() > 0


def test_the_end_closes_a_reader() -> None:
    reader = opened()
    rows = 0
    while reader.next():
        batch = reader.get()
        rows += batch.numRows()
    assert rows == 110
    throws(lambda: batch.column(4).getLong(0))
    assert not reader.next()
    assert reader.get() is None


def in_another_thread(call: Callable[[], Any]) -> None:
    """A thread of Python has one of its own in the JVM."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_closing_by_another_thread_ends_vectors_and_the_reader() -> None:
    """The memory is freed at the next call of the thread that reads."""
    reader = opened()
    vector = column(first_batch(reader), "offset")
    in_another_thread(reader.close)
    throws(lambda: vector.getLong(0))
    throws(reader.next, CLOSED)
    throws(reader.next, CLOSED)
    reader.close()


def test_closing_before_the_first_batch() -> None:
    reader = opened()
    in_another_thread(reader.close)
    assert reader.next()
    reader.close()


def read(reader: Any, found: list[int], errors: list[str], started: threading.Event) -> None:
    """Read all offsets, up to an error."""
    try:
        while reader.next():
            vector = column(reader.get(), "offset")
            for row in range(reader.get().numRows()):
                found.append(vector.getLong(row))
                started.set()
    except Exception as error:  # noqa: BLE001  (the test judges it)
        errors.append(str(error))


@pytest.mark.parametrize("delay", [number / 200 for number in range(12)])
def test_closing_by_another_thread_at_any_time_stops_the_reading(delay: float) -> None:
    """The thread that reads gets values of the corpus, or an exception."""
    part = corpus.partition("01-small")
    wanted = [record.offset for record in corpus.visible(part)]
    reader = opened(part)
    found: list[int] = []
    errors: list[str] = []
    started = threading.Event()
    thread = threading.Thread(target=read, args=(reader, found, errors, started))
    thread.start()
    assert started.wait(30)
    time.sleep(delay)
    reader.close()
    thread.join(30)
    assert not thread.is_alive()
    assert found == wanted[: len(found)]
    assert errors or found == wanted
    assert [error for error in errors if "IllegalStateException" not in error] == []
