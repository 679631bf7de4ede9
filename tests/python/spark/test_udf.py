"""The functions of the UDFs, called as a worker calls them, compared with Kafka's batches and a linear search."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pandas as pd
import pyarrow as pa
import pytest
from batches import Rec, batch, name
from corpus import Partition
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_type

from cordwood.spark import locate, offset_for_time
from spark.reading import refuses

PLAIN = corpus.partition("01-plain")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOCATION = ["segment_base_offset", "batch_base_offset", "position", "size"]
MILLION = 1000
in_every_kind = pytest.mark.parametrize("kind", ["pandas", "arrow"])
once_a_task_or_batch = pytest.mark.parametrize("iterator", [False, True], ids=["scalar", "iterator"])
every_partition = pytest.mark.parametrize("part", corpus.partitions(), ids=str)


def asked(look_up: Any, kind: str, iterator: bool, *columns: pa.Array) -> list[Any]:
    """The results of the function for columns in a worker's form, as dicts or `None`."""
    udf = look_up.udf
    func = cloudpickle.loads(cloudpickle.dumps(udf.func))
    given: list[Any] = [column.to_pandas() for column in columns] if kind == "pandas" else list(columns)
    one = given[0] if len(given) == 1 else tuple(given)
    (found,) = list(func(iter([one]))) if iterator else [func(*given)]
    if kind == "arrow":
        assert found.type == to_arrow_type(udf.returnType, timezone="UTC")
        return list(found.to_pylist())
    assert isinstance(found, pd.DataFrame)
    rows = pa.Table.from_pandas(found, preserve_index=False).to_pylist()
    # a pandas UDF cannot return a null struct, only a struct of nulls, which the Spark column converts to
    # null
    return [None if all(value is None for value in row.values()) else row for row in rows]


def place(part: Partition, offset: int) -> dict[str, int] | None:
    """The batch that contains an offset, or the next batch if it is in a gap, by a linear search."""
    if not part.log_start <= offset < part.opened["logEndOffset"]:
        return None
    b = next((b for b in corpus.batches(part) if b["lastOffset"] >= offset), None)
    return b and dict(zip(LOCATION, (b["segment"], b["baseOffset"], b["position"], b["size"]), strict=True))


def some_offsets(part: Partition) -> list[int]:
    near = {o + step for b in corpus.batches(part) for o in (b["baseOffset"], b["lastOffset"]) for step in (-1, 0, 1)}
    ends = {part.log_start, part.opened["logEndOffset"]}
    return sorted(near | ends | {-1, -(1 << 63), (1 << 63) - 1})


@every_partition
@in_every_kind
@once_a_task_or_batch
def test_locate_finds_the_batch_of_every_offset(part: Partition, kind: str, iterator: bool) -> None:
    look_up = locate(str(part.path), kind=kind, iterator=iterator)
    offsets = some_offsets(part)
    found = asked(look_up, kind, iterator, pa.array(offsets, pa.int64()))
    assert found == [place(part, offset) for offset in offsets]


@in_every_kind
@once_a_task_or_batch
def test_locate_returns_null_for_null_negative_and_unknown_offsets(kind: str, iterator: bool) -> None:
    part = corpus.partition("13-delete-records")
    offsets = [None, -1, 0, 436, 437, 799, 800, None, 1 << 50]
    found = asked(locate(str(part.path), kind=kind, iterator=iterator), kind, iterator, pa.array(offsets, pa.int64()))
    assert found == [None if offset is None else place(part, offset) for offset in offsets]
    assert [answer is None for answer in found] == [True, True, True, True, False, False, True, True, True]


@in_every_kind
@pytest.mark.parametrize("values", [[], [None], [None, None], [5], [-1, -1]])
def test_locate_accepts_any_batch(kind: str, values: list[int | None]) -> None:
    """Also an empty one, and one with only nulls, which has another type in pandas."""
    part = corpus.partition("01-plain")
    found = asked(locate(str(part.path), kind=kind), kind, False, pa.array(values, pa.int64()))
    assert found == [None if value is None else place(part, value) for value in values]
    times = pa.array([None if value is None else value * MILLION for value in values], pa.timestamp("us", tz="UTC"))
    found = asked(
        offset_for_time(str(part.path), kind=kind), kind, False, times if kind == "arrow" else times.cast(pa.int64())
    )
    assert [answer is None for answer in found] == [value is None or value < 0 for value in values]


def time_answer(part: Partition, micros: int | None) -> dict[str, Any] | None:
    """The first record at or after a time, including markers; none for a time before 1970."""
    if micros is None or micros < 0:
        return None
    found = corpus.first_at_or_after(corpus.visible(part, control=True), -(-micros // MILLION))
    return found and {"timestamp": EPOCH + timedelta(milliseconds=found.timestamp), "offset": found.offset}


def some_times(part: Partition) -> list[int]:
    known = sorted({r.timestamp for r in corpus.visible(part, control=True) if r.timestamp >= 0})
    near = {
        time * MILLION + step for time in known[:: max(1, len(known) // 40)] for step in (-MILLION, -1, 0, 1, MILLION)
    }
    return sorted(near | {0, 1, 4_000_000_000_000_000})


@every_partition
@once_a_task_or_batch
def test_offset_for_time_finds_the_first_record_at_or_after_a_time(part: Partition, iterator: bool) -> None:
    """Exact for microseconds between the milliseconds of the log."""
    look_up = offset_for_time(str(part.path), kind="arrow", iterator=iterator)
    micros = some_times(part)
    found = asked(look_up, "arrow", iterator, pa.array(micros, pa.timestamp("us", tz="UTC")))
    assert found == [time_answer(part, time) for time in micros]


@in_every_kind
@once_a_task_or_batch
def test_a_path_column_looks_up_each_row_in_its_own_log(kind: str, iterator: bool) -> None:
    """In row order, for any order of the paths; a row without a path returns null."""
    parts = [corpus.partition(case) for case in ("01-plain", "18-leaps", "15-one-record")]
    asks = [(parts[n % 3], n * 97 % 1600) for n in range(200)]
    paths = [str(part.path) for part, _ in asks]
    offsets: list[int | None] = [offset for _, offset in asks]
    wanted = [place(part, offset) for part, offset in asks]
    paths_with_nulls: list[str | None] = [*paths, None, paths[0]]
    offsets += [5, None]
    look_up = locate(kind=kind, iterator=iterator)
    columns = (pa.array(paths_with_nulls, pa.string()), pa.array(offsets, pa.int64()))
    assert asked(look_up, kind, iterator, *columns) == [*wanted, None, None]


@in_every_kind
def test_a_column_of_null_paths_returns_nulls(kind: str) -> None:
    columns = (pa.array([None, None], pa.string()), pa.array([1, None], pa.int64()))
    assert asked(locate(kind=kind), kind, False, *columns) == [None, None]
    empty = (pa.array([], pa.string()), pa.array([], pa.int64()))
    assert asked(locate(kind=kind), kind, False, *empty) == []


@in_every_kind
@pytest.mark.parametrize("bad", [-1, 1500, 1 << 62])
def test_on_missing_error_names_the_unknown_offset_and_keeps_nulls(kind: str, bad: int) -> None:
    part = corpus.partition("01-plain")
    look_up = locate(str(part.path), kind=kind, on_missing="error")
    fine = asked(look_up, kind, False, pa.array([3, None, 1499], pa.int64()))
    assert fine == [place(part, 3), None, place(part, 1499)]
    found = "locate: expected offsets 0 to 1500 (exclusive), found "
    with refuses("CORDWOOD_OFFSET_OUT_OF_RANGE", "orders-0", f"{found}{bad}"):
        asked(look_up, kind, False, pa.array([3, bad], pa.int64()))
    with refuses("CORDWOOD_OFFSET_OUT_OF_RANGE", "orders-0", f"{found}3 others, the first {bad}"):
        asked(look_up, kind, False, pa.array([bad, 3, 5000, 5001], pa.int64()))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (-1_000_000, "1969-12-31T23:59:59.000Z (-1000 ms)"),
        (4_000_000_000_000_000, "2096-10-02T07:06:40.000Z (4000000000000 ms)"),
        # a time between two milliseconds is rounded up
        (4_000_000_000_000_001, "2096-10-02T07:06:40.000001Z (4000000000001 ms)"),
        # a datetime cannot hold it
        (9_000_000_000_000_000_000, "9000000000000000 ms"),
    ],
)
def test_on_missing_error_names_a_time_after_all_records(bad: int, said: str) -> None:
    part = corpus.partition("01-plain")
    look_up = offset_for_time(str(part.path), kind="arrow", on_missing="error")
    kind = pa.timestamp("us", tz="UTC")
    (fine, null) = asked(look_up, "arrow", False, pa.array([1_700_000_000_025_000, None], kind))
    assert (fine["offset"], null) == (1, None)
    expected = "offset_for_time: expected times from 1970 to the latest of the log, found"
    with refuses("CORDWOOD_TIME_NOT_FOUND", "orders-0", f"{expected} {said}"):
        asked(look_up, "arrow", False, pa.array([1_700_000_000_025_000, bad], kind))


def test_large_offsets_next_to_a_null_keep_every_digit_in_arrow() -> None:
    """Pandas has no null integers: with nulls it gets floats, which are exact up to 2^53. Above, it is an error."""
    part = corpus.partition("18-far-base")
    offsets = [5_000_000_001, None, 5_000_000_936, (1 << 53) + 1]
    wanted = [None if offset is None else place(part, offset) for offset in offsets]
    assert asked(locate(str(part.path), kind="arrow"), "arrow", False, pa.array(offsets, pa.int64())) == wanted
    pandas = locate(str(part.path), kind="pandas")
    assert asked(pandas, "pandas", False, pa.array(offsets[:3], pa.int64())) == wanted[:3]


NAIVE = pa.array([datetime(2023, 11, 14, 22, 13, 30)], pa.timestamp("us"))  # noqa: DTZ001  (that is the point)


@pytest.mark.parametrize(
    ("make", "kind", "given", "found"),
    [
        (locate, "arrow", pa.array([5.0]), "double"),
        (locate, "arrow", pa.array(["5"]), "string"),
        (locate, "pandas", pa.array([5.5, None]), "double"),
        (locate, "pandas", pa.array(["5"]), "string"),
        (offset_for_time, "arrow", NAIVE, "timestamp[us]"),
        (offset_for_time, "pandas", NAIVE, "timestamp["),
        # may be milliseconds
        (offset_for_time, "arrow", pa.array([1_700_000_010_000]), "int64"),
    ],
)
def test_values_of_an_ambiguous_type_are_refused(make: Any, kind: str, given: pa.Array, found: str) -> None:
    """A bare UDF can be called with any type; a column is checked before."""
    with refuses("CORDWOOD_BAD_OPTION", make.__name__, "expected a column of type ", found):
        asked(make(PLAIN.path, kind=kind), kind, False, given)


@in_every_kind
def test_a_path_that_is_not_a_string_is_refused(kind: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "locate", "a path", "int64"):
        asked(locate(kind=kind), kind, False, pa.array([5]), pa.array([5]))


def test_a_path_may_be_a_large_string() -> None:
    """As Spark passes strings with `spark.sql.execution.arrow.useLargeVarTypes`."""
    part = corpus.partition("01-plain")
    answers = locate(kind="arrow").udf.func(pa.array([str(part.path)], pa.large_string()), pa.array([0]))
    assert answers.to_pylist() == [place(part, 0)]


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32()])
@in_every_kind
def test_offsets_of_smaller_types_are_offsets(kind: str, type_: pa.DataType) -> None:
    assert asked(locate(PLAIN.path, kind=kind), kind, False, pa.array([5], type_)) == [place(PLAIN, 5)]


@pytest.mark.parametrize("make", [locate, offset_for_time])
def test_invalid_arguments_are_refused_when_the_udf_is_created(make: Any) -> None:
    with pytest.raises(Exception, match="kind"):
        make(str(corpus.partition("01-plain").path), kind="row")
    with pytest.raises(Exception, match="on_missing"):
        make(str(corpus.partition("01-plain").path), on_missing="panic")
    with refuses("CORDWOOD_NOT_FOUND", "/nowhere/at-0"):
        make("/nowhere/at-0")


@in_every_kind
def test_an_iterator_without_batches_returns_nothing(kind: str) -> None:
    assert list(locate(str(PLAIN.path), kind=kind, iterator=True).udf.func(iter([]))) == []


def test_a_path_may_be_a_path_object() -> None:
    assert asked(locate(PLAIN.path, kind="arrow"), "arrow", False, pa.array([5], pa.int64())) == [place(PLAIN, 5)]


def test_records_that_are_appended_later_are_found(tmp_path: Path) -> None:
    """A worker keeps its handle while the log grows."""
    path = tmp_path / "t-0"
    path.mkdir()
    (path / name(0)).write_bytes(batch(0, [Rec(b"a")]))
    look_up = locate(str(path), kind="arrow")
    assert [row is None for row in asked(look_up, "arrow", False, pa.array([0, 1], pa.int64()))] == [False, True]
    with (path / name(0)).open("ab") as file:
        file.write(batch(1, [Rec(b"b")]))
    assert [row is None for row in asked(look_up, "arrow", False, pa.array([0, 1], pa.int64()))] == [False, False]


def test_an_iterator_is_read_batch_by_batch() -> None:
    """The batches are not collected: a task may be larger than memory."""
    part = corpus.partition("01-plain")
    taken: list[int] = []

    def batches() -> Iterator[pa.Array]:
        for number in range(5):
            taken.append(number)
            yield pa.array([number], pa.int64())

    answers = locate(str(part.path), kind="arrow", iterator=True).udf.func(batches())
    assert next(iter(answers)).to_pylist() == [place(part, 0)]
    assert len(taken) <= 2
