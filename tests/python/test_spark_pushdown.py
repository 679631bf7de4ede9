"""Filters that Spark pushes: the rows are the same with them, without them, and by plain Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import corpus
import pytest
from corpus import Partition
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import StringType, StructField, StructType
from spark_reading import Plan, again, checked, data_parts, kafka_rows, source, struct
from test_damaged import EXACT, HARMLESS, Damage

from cordwood.spark.source import PushingLogDataSource

NAMES = ("topic", "partition", "offset", "timestamp")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATA = corpus.GOLDEN / "16-data-dir"
# Times out of order, none at all, of all formats, with leaps, and several partitions of several topics.
CASES = [
    "01-small",
    "08-late",
    "08-no-timestamps",
    "11-transactions",
    "17-raised-and-lowered",
    "17-upgraded",
    "18-leaps",
]
COMPARE: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}


def truth(pushed: Filter, row: dict[str, Any]) -> bool | None:
    """What SQL says of a row: true, false or null."""
    if isinstance(pushed, Not):
        inner = truth(pushed.child, row)
        return None if inner is None else not inner
    value = row[pushed.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(pushed, IsNull | IsNotNull):
        return isinstance(pushed, IsNull) == (value is None)
    wanted = pushed.value  # type: ignore[attr-defined]
    if isinstance(pushed, In):
        # value = first OR value = second OR ...
        each = [truth(EqualTo(pushed.attribute, one), row) for one in wanted]
        return True if True in each else None if None in each else False
    if isinstance(pushed, EqualNullSafe):
        return bool(wanted == value)
    return None if wanted is None or value is None else bool(COMPARE[type(pushed)](value, wanted))


def shown(row: tuple[Any, ...]) -> dict[str, Any]:
    """A row as Spark compares it: times are datetimes."""
    time = None if row[3] is None else EPOCH + timedelta(microseconds=row[3])
    return dict(zip(NAMES, (*row[:3], time), strict=True))


def passing(rows: list[tuple[Any, ...]], filters: list[Filter]) -> list[tuple[Any, ...]]:
    return [row for row in rows if all(truth(pushed, shown(row)) is True for pushed in filters)]


def pushed(path: Any, filters: list[Filter], **options: Any) -> tuple[Plan, list[Filter]]:
    """A plan after the filters were pushed, and the filters that Spark still has to evaluate."""
    data = PushingLogDataSource(options=source(path, **options).options)
    reader = data.reader(schema=struct(*NAMES))
    left = list(reader.pushFilters(filters))
    assert {id(one) for one in left} <= {id(one) for one in filters}
    splits = again(reader).partitions()
    checked(splits)
    return Plan(data, struct(*NAMES), reader, splits), left


def number(parts: list[Partition]) -> st.SearchStrategy[int]:
    near = [r.offset + step for part in parts for r in corpus.visible(part)[::7] for step in (-1, 0, 1)]
    return st.sampled_from(near) | st.sampled_from([0, -1, -(1 << 63), (1 << 63) - 1])


def time(parts: list[Partition]) -> st.SearchStrategy[datetime]:
    """Whole milliseconds and microseconds between them, the time of records without one, and the ends of time."""
    known = [r.timestamp for part in parts for r in corpus.visible(part)[::7]]
    near = st.builds(
        lambda ms, us: EPOCH + timedelta(milliseconds=ms, microseconds=us), st.sampled_from(known), st.integers(-2, 2)
    )
    ends = [datetime.min, datetime.max, datetime(1969, 12, 31, 23, 59, 59, 999_000), datetime(1970, 1, 1)]  # noqa: DTZ001, DTZ901
    return near | st.sampled_from([end.replace(tzinfo=UTC) for end in ends])


def comparisons(parts: list[Partition]) -> st.SearchStrategy[Filter]:
    topics = st.sampled_from(sorted({part.topic for part in parts} | {"", "nowhere", "cities2"}))
    small = st.integers(-1, 4) | st.just((1 << 31) - 1)
    options: list[st.SearchStrategy[Filter]] = []
    for name, value in (("offset", number(parts)), ("partition", small), ("topic", topics), ("timestamp", time(parts))):
        attribute = st.just((name,))
        null = st.none()
        kinds = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
        one: st.SearchStrategy[Filter] = st.builds(
            lambda kind, at, v: kind(at, v), st.sampled_from(kinds), attribute, st.one_of(value, value, value, null)
        )
        several = st.builds(In, attribute, st.lists(value | null, max_size=4))
        nulls = st.builds(lambda kind, at: kind(at), st.sampled_from((IsNull, IsNotNull)), attribute)
        options += [one, one, several, nulls]
        if name == "topic":
            kinds_of_text = st.sampled_from((StringStartsWith, StringEndsWith, StringContains))
            options.append(st.builds(lambda kind, at, v: kind(at, v), kinds_of_text, attribute, topics))
    plain = st.one_of(options)
    return plain | st.builds(Not, plain)


@cache
def all_rows(parts: tuple[Partition, ...]) -> list[tuple[Any, ...]]:
    return sorted(row for part in parts for row in kafka_rows(part, corpus.visible(part), NAMES))


def agree(path: Any, parts: list[Partition], filters: list[Filter], **options: Any) -> Plan:
    """The rows that pass are the same with pushing, without, and by looking at every record."""
    everything = all_rows(tuple(parts))
    found, left = pushed(path, filters, **options)
    rows = found.rows()
    assert passing(rows, left) == passing(everything, filters)
    assert set(rows) <= set(everything)
    return found


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=15)
@given(st.data())
def test_filters_on_one_partition_change_no_row_that_passes(case: str, data: st.DataObject) -> None:
    part = corpus.partition(case)
    filters = data.draw(st.lists(comparisons([part]), min_size=1, max_size=4))
    options = data.draw(st.sampled_from([{}, {"maxPartitionBytes": 3000}]))
    agree(part.path, [part], filters, **options)


@given(st.lists(comparisons(list(data_parts().values())), min_size=1, max_size=4))
def test_filters_on_a_data_directory_change_no_row_that_passes(filters: list[Filter]) -> None:
    agree(DATA, list(data_parts().values()), filters)


@given(st.data())
def test_filters_and_starts_and_committed_reads_together(data: st.DataObject) -> None:
    part = corpus.partition("11-transactions")
    filters = data.draw(st.lists(comparisons([part]), min_size=1, max_size=3))
    options = {"isolationLevel": "read_committed", "startingOffsets": {"payments": {"0": 100}}}
    committed = [r for r in corpus.committed(part, part.opened["logEndOffset"]) if r.offset >= 100]
    found, left = pushed(part.path, filters, **options)
    assert passing(found.rows(), left) == passing(kafka_rows(part, committed, NAMES), filters)


DAMAGES = [d for d in EXACT if d.name in ("flip-magic", "flip-record", "zero-tail-middle-segment")]


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
@settings(max_examples=10)
@given(st.data())
def test_filters_on_a_damaged_partition_change_no_row_that_passes(damage: Damage, data: st.DataObject) -> None:
    """The row of a gap has an offset and no time, and passes or not like any other."""
    filters = data.draw(st.lists(comparisons([damage.source]), min_size=1, max_size=3))
    schema = StructType([*struct(*NAMES).fields, StructField("_error", StringType())])
    plain = PushingLogDataSource(options=source(damage.path, mode="PERMISSIVE", maxPartitionBytes=3000).options)
    reader = plain.reader(schema=schema)
    everything = Plan(plain, schema, reader, reader.partitions()).rows()
    reader = plain.reader(schema=schema)
    left = list(reader.pushFilters(filters))
    found = Plan(plain, schema, reader, again(reader).partitions()).rows()
    assert passing([row[:4] for row in found], left) == passing([row[:4] for row in everything], filters)


@pytest.mark.parametrize("damage", HARMLESS, ids=str)
def test_filters_on_time_do_not_trust_the_files_beside_the_log(damage: Damage) -> None:
    everything = all_rows((damage.source,))
    for row in everything[3::150]:
        at = EPOCH + timedelta(microseconds=row[3])
        for kind in (GreaterThan, LessThanOrEqual):
            filters: list[Filter] = [kind(("timestamp",), at)]
            found, left = pushed(damage.path, filters, maxPartitionBytes=9000)
            assert passing(found.rows(), left) == passing(everything, filters)


def test_a_record_without_a_time_passes_a_filter_for_early_times() -> None:
    """It is shown one millisecond before 1970, and must be there though it has no time."""
    part = corpus.partition("17-v0-none")
    assert len(agree(part.path, [part], [LessThan(("timestamp",), EPOCH)]).rows()) == 400
    at = EPOCH - timedelta(milliseconds=1)
    assert len(agree(part.path, [part], [EqualTo(("timestamp",), at)]).rows()) == 400
    assert len(agree(part.path, [part], [In(("timestamp",), [at])]).rows()) == 400


def narrow(filters: list[Filter], path: Any = DATA, **options: Any) -> list[tuple[Any, ...]]:
    return pushed(path, filters, **options)[0].rows()


def test_filters_on_offsets_narrow_what_is_read() -> None:
    """Not only right but of use: what cannot pass is not even planned."""
    part = corpus.partition("01-plain")
    low, high = GreaterThanOrEqual(("offset",), 700), LessThan(("offset",), 710)
    found = agree(part.path, [part], [IsNotNull(("offset",)), low, high], maxPartitionBytes=20_000)
    whole = pushed(part.path, [], maxPartitionBytes=20_000)[0]
    assert len(found.splits) == 1 < len(whole.splits)
    batches = [b for b in corpus.batches(part) if b["baseOffset"] < 710 and b["lastOffset"] >= 700]
    assert len(found.rows()) <= batches[-1]["lastOffset"] + 1 - batches[0]["baseOffset"]


def test_filters_on_topic_and_partition_narrow_what_is_read() -> None:
    assert {row[0] for row in narrow([EqualTo(("topic",), "cities")])} == {"cities"}
    assert {row[:2] for row in narrow([EqualTo(("topic",), "cities"), EqualTo(("partition",), 1)])} == {("cities", 1)}
    assert {row[1] for row in narrow([GreaterThan(("partition",), 0)])} == {1}
    assert {row[0] for row in narrow([In(("topic",), ["cities", "rivers.compact"])])} == {"cities", "rivers.compact"}


def test_filters_on_time_narrow_what_is_read() -> None:
    part = corpus.partition("01-plain")
    times = sorted(r.timestamp for r in corpus.visible(part))
    at = EPOCH + timedelta(milliseconds=times[-20])
    rows = agree(part.path, [part], [GreaterThanOrEqual(("timestamp",), at)], maxPartitionBytes=20_000).rows()
    assert 0 < len(rows) < 400


def test_filters_that_nothing_can_pass_leave_one_empty_split() -> None:
    found, _ = pushed(DATA, [EqualTo(("topic",), "cities"), EqualTo(("topic",), "rivers.compact")])
    assert (len(found.splits), found.rows()) == (1, [])
    found, _ = pushed(DATA, [LessThan(("offset",), 5), GreaterThan(("offset",), 5)])
    assert (len(found.splits), found.rows()) == (1, [])


def test_pushing_the_same_filters_twice_gives_the_same_plan() -> None:
    part = corpus.partition("01-plain")
    filters: list[Filter] = [GreaterThan(("offset",), 90), LessThanOrEqual(("offset",), 1100)]
    first, _ = pushed(part.path, filters, maxPartitionBytes=9000)
    second, _ = pushed(part.path, filters, maxPartitionBytes=9000)
    assert [first.table(split) for split in first.splits] == [second.table(split) for split in second.splits]


def test_the_plain_reader_takes_no_filters() -> None:
    """One that overrides `pushFilters` fails every query where the setting of Spark is off."""
    reader = source(DATA).reader(schema=struct())
    assert type(reader).pushFilters is DataSourceReader.pushFilters


def test_the_table_of_batches_is_not_narrowed_by_filters_on_records_columns() -> None:
    """A batch that begins below an offset may reach above it."""
    part = corpus.partition("01-plain")
    data = PushingLogDataSource(options=source(part.path, table="batches").options)
    schema = data.schema()
    reader = data.reader(schema=schema)
    filters: list[Filter] = [GreaterThan(("partition",), -1), GreaterThanOrEqual(("baseOffset",), 0)]
    left = list(reader.pushFilters(filters))
    found = Plan(data, schema, reader, reader.partitions())
    assert len(found.rows()) == len(corpus.batches(part))
    assert left == filters
