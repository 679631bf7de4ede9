"""Paths, subscriptions, ranges and what is refused: the options of Spark's Kafka source, and ours.

The oracle cuts the expected records itself: for a start or end by time it looks for the first record that is late
enough, markers of transactions included, as Kafka's own search does.
"""

from __future__ import annotations

import json
import logging
import shutil
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import corpus
import pytest
from corpus import Partition
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_reading import data_parts, kafka_rows, made, offsets, plan, read, refuses, source, struct
from tables import first_difference

from cordwood.spark import errors
from cordwood.spark.options import SparkLogOptions

DATA = corpus.GOLDEN / "16-data-dir"
PARTS = data_parts()
CITIES = [PARTS["cities-0"], PARTS["cities-1"]]
NAMES = ("topic", "partition", "offset")


def expected(
    parts: list[Partition], bounds: dict[tuple[str, int], tuple[int, int]] | None = None
) -> list[tuple[Any, ...]]:
    """(topic, partition, offset) of the visible records, of those within [start, end) where bounds are given."""
    found = []
    for part in parts:
        start, end = (bounds or {}).get((part.topic, part.number), (0, 1 << 62))
        found += [(part.topic, part.number, r.offset) for r in corpus.visible(part) if start <= r.offset < end]
    return sorted(found)


def got(*paths: Path | str, **options: Any) -> list[tuple[Any, ...]]:
    return read(*paths, schema=struct(*NAMES), **options)


def end_of(part: Partition) -> int:
    return int(part.opened["logEndOffset"])


# ---------------------------------------------------------------- paths


def test_a_data_directory_gives_all_its_partitions() -> None:
    assert got(DATA) == expected(list(PARTS.values()))


def test_a_partition_directory_gives_that_partition_above_its_checkpointed_start() -> None:
    assert got(DATA / "cities-1") == expected([PARTS["cities-1"]])
    assert min(offsets(DATA / "cities-1")) == 31


def test_several_paths_of_both_kinds_are_read_together() -> None:
    other = corpus.partition("02-gzip")
    late = corpus.partition("18-leaps")
    rows = read(DATA, other.path, late.path.parent)
    wanted = [row for part in [*PARTS.values(), other, late] for row in kafka_rows(part, corpus.visible(part))]
    assert first_difference(rows, sorted(wanted, key=lambda row: row[2:5])) == ""


def test_a_glob_of_partition_directories_gives_those_that_match() -> None:
    assert got(DATA / "cities-*") == expected(CITIES)
    assert got(DATA / "[cr]i*s*-0") == expected([PARTS["cities-0"], PARTS["rivers.compact-0"]])


def test_a_glob_of_data_directories_gives_all_their_partitions(tmp_path: Path) -> None:
    parts = [corpus.partition(case) for case in ("01-small", "15-one-record", "18-leaps")]
    for number, part in enumerate(parts):
        shutil.copytree(part.path, tmp_path / f"disk{number}" / part.name)
        (tmp_path / f"disk{number}" / "meta.properties").write_text("version=1\n")
    assert got(tmp_path / "disk*") == expected(parts)
    assert got(tmp_path / "disk[02]", tmp_path / "disk1" / "one-*") == expected(parts)


@pytest.mark.parametrize("folder", ["with space", "a[1]", "100%25", "Ünïcødé", "a*b", "x{y,z}", "comma,name", "c:d"])
def test_a_path_that_exists_is_itself_and_no_glob(tmp_path: Path, folder: str) -> None:
    part = corpus.partition("15-one-record")
    shutil.copytree(part.path, tmp_path / folder / part.name)
    assert got(tmp_path / folder) == expected([part])
    assert got(tmp_path / folder / part.name) == expected([part])


def test_a_file_url_is_a_path_and_another_scheme_is_refused() -> None:
    for scheme in ("file:", "file://", "FILE://"):
        assert got(f"{scheme}{DATA}/cities-0") == expected([PARTS["cities-0"]])
    for path in ("hdfs://namenode/data", "s3a://bucket/data", "dbfs:/data"):
        with refuses("CORDWOOD_BAD_OPTION", path):
            source(path).schema()


def test_a_relative_path_is_that_of_the_planning_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor may have any working directory."""
    monkeypatch.chdir(DATA)
    found = plan("cities-0", schema=struct(*NAMES))
    monkeypatch.chdir("/")
    assert found.rows() == expected([PARTS["cities-0"]])


def test_a_link_to_a_partition_is_a_partition(tmp_path: Path) -> None:
    (tmp_path / "linked-7").symlink_to(DATA / "cities-0")
    rows = read(tmp_path / "linked-7", schema=struct(*NAMES))
    assert rows == [("linked", 7, offset) for _, _, offset in expected([PARTS["cities-0"]])]


@pytest.mark.parametrize(
    "paths",
    [
        (DATA / "cities-0", DATA / "cities-0"),
        (DATA, DATA / "cities-0"),
        (DATA / "cities-0", DATA / "cities-*"),
        (DATA / "cities-1", f"{DATA}/../16-data-dir/cities-1/"),
    ],
    ids=["twice", "inside", "glob", "other spelling"],
)
def test_a_partition_in_two_of_the_paths_is_refused(paths: tuple[Path | str, ...]) -> None:
    """Two readings of it would be two times its records, and a stream's offsets have one place for each."""
    with refuses("CORDWOOD_BAD_OPTION", "cities-"):
        source(*paths).schema()


def test_two_logs_of_one_name_are_refused_unless_the_subscription_leaves_one_out(tmp_path: Path) -> None:
    part = corpus.partition("01-plain")
    for folder in ("a", "b"):
        shutil.copytree(part.path, tmp_path / folder / part.name)
    with refuses("CORDWOOD_BAD_OPTION", "orders-0"):
        source(tmp_path / "a", tmp_path / "b").schema()
    shutil.copytree(corpus.partition("15-one-record").path, tmp_path / "b" / "one-record-0")
    assert got(tmp_path / "a", tmp_path / "b", subscribe="one-record") == [("one-record", 0, 0)]


def missing() -> list[tuple[str, tuple[Any, ...], dict[str, str]]]:
    return [
        ("no such directory", ("/nowhere/at/all",), {}),
        ("no such partition", (DATA / "cities-9",), {}),
        ("one of two is missing", (DATA / "cities-0", DATA / "cities-9"), {}),
        ("an empty glob", (DATA / "towns-*",), {}),
        ("a file", (DATA / "meta.properties",), {}),
        ("a data directory without partitions", (DATA / "expected" / "cities-0",), {}),
        ("no such topic", (DATA,), {"subscribe": "towns"}),
        ("one of two topics is missing", (DATA,), {"subscribe": "cities,towns"}),
        ("no topic matches", (DATA,), {"subscribePattern": "town.*"}),
        ("a pattern has to match the whole name", (DATA,), {"subscribePattern": "citie"}),
        ("no such partition of a topic", (DATA,), {"assign": json.dumps({"cities": [0, 2]})}),
    ]


@pytest.mark.parametrize(("paths", "options"), [m[1:] for m in missing()], ids=[m[0] for m in missing()])
def test_what_is_not_there_is_said_at_load_and_with_the_users_schema_too(
    paths: tuple[Any, ...], options: dict[str, str]
) -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        source(*paths, **options).schema()
    with refuses("CORDWOOD_NOT_FOUND"):
        source(*paths, **options).reader(schema=struct("offset")).partitions()


@pytest.mark.parametrize(
    "options",
    [{"subscribe": "cities,towns"}, {"assign": {"cities": [0, 1, 2], "towns": [0]}}],
    ids=["subscribe", "assign"],
)
def test_without_fail_on_data_loss_what_is_missing_is_left_out(
    options: dict[str, Any], said: Callable[[], list[str]]
) -> None:
    assert got(DATA, failOnDataLoss=False, **options) == expected(CITIES)
    assert [text for text in said() if "towns" in text or "cities-2" in text]


def test_a_missing_root_is_an_error_even_without_fail_on_data_loss() -> None:
    with refuses("CORDWOOD_NOT_FOUND", "/nowhere/at/all"):
        source("/nowhere/at/all", failOnDataLoss=False).schema()


def test_the_message_names_the_path_that_is_missing() -> None:
    with refuses("CORDWOOD_NOT_FOUND", "cities-9"):
        source(DATA / "cities-9").schema()


# ---------------------------------------------------------------- what is subscribed to


def test_subscribe_takes_a_list_of_topics() -> None:
    assert got(DATA, subscribe="cities") == expected(CITIES)
    assert got(DATA, subscribe=" rivers.compact , cities") == expected([*CITIES, PARTS["rivers.compact-0"]])


def test_a_subscribed_name_is_no_pattern() -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        source(DATA, subscribe="rivers-compact").schema()


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("citi.*", ["cities-0", "cities-1"]),
        (r"rivers\.compact|cities", ["cities-0", "cities-1", "rivers.compact-0"]),
        ("[a-z.]+", ["cities-0", "cities-1", "rivers.compact-0"]),
    ],
)
def test_subscribe_pattern_matches_whole_names(pattern: str, names: list[str]) -> None:
    assert got(DATA, subscribePattern=pattern) == expected([PARTS[name] for name in names])


def test_assign_takes_some_partitions() -> None:
    assert got(DATA, assign={"cities": [1], "rivers.compact": [0]}) == expected(
        [PARTS["cities-1"], PARTS["rivers.compact-0"]]
    )


@pytest.mark.parametrize("topic", ["a-b", "a-1-2", "a.b_c-d", "-a", "0", "a-0-0", "__x", "a" * 200])
def test_topics_with_dots_dashes_and_digits_keep_their_names(tmp_path: Path, topic: str) -> None:
    part = corpus.partition("15-one-record")
    for number in (0, 12):
        shutil.copytree(part.path, tmp_path / f"{topic}-{number}")
    assert got(tmp_path) == [(topic, 0, 0), (topic, 12, 0)]
    assert got(tmp_path, subscribe=topic) == [(topic, 0, 0), (topic, 12, 0)]
    assert got(tmp_path, assign={topic: [12]}) == [(topic, 12, 0)]


def test_a_data_directory_with_many_partitions_and_strange_neighbours(tmp_path: Path) -> None:
    """Folders of partitions on their way out, files and foreign folders are no partitions."""
    part = corpus.partition("15-one-record")
    for number in range(60):
        shutil.copytree(part.path, tmp_path / f"many-{number}")
    for foreign in ("many-3.0123456789abcdef0123456789abcdef-delete", "lost+found", "backup", "remote-log-index-cache"):
        (tmp_path / foreign).mkdir()
    shutil.copytree(part.path, tmp_path / "many-61.0123456789abcdef0123456789abcdef-delete")
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert got(tmp_path) == [("many", number, 0) for number in range(60)]
    # small ones share a task: one for each would cost more than what it reads
    assert len(plan(tmp_path, schema=struct(*NAMES)).splits) < 60


# ---------------------------------------------------------------- ranges by offset

RANGED = [PARTS["cities-0"], PARTS["cities-1"], PARTS["rivers.compact-0"]]
SUBSCRIBED = {"subscribe": "cities,rivers.compact"}


def by_partition(found: dict[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for (topic, number), value in found.items():
        out.setdefault(topic, {})[str(number)] = value
    return out


@st.composite
def offset_ranges(draw: st.DrawFn) -> tuple[dict[str, Any], dict[tuple[str, int], tuple[int, int]]]:
    """Options with starts and ends for each partition, and what they come to."""
    starts, ends, bounds = {}, {}, {}
    for part in RANGED:
        name = (part.topic, part.number)
        low, high = part.log_start, end_of(part)
        start = draw(st.just(-2) | st.integers(low, high))
        end = draw(st.just(-1) | st.integers(low, high))
        starts[name], ends[name] = start, end
        bounds[name] = (low if start == -2 else start, high if end == -1 else end)
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["startingOffsets"] = by_partition(starts)
    else:
        bounds = {name: (0, end) for name, (_, end) in bounds.items()}
    if draw(st.booleans()):
        options["endingOffsets"] = by_partition(ends)
    else:
        bounds = {name: (start, 1 << 62) for name, (start, _) in bounds.items()}
    options |= draw(
        st.sampled_from([{}, {"minPartitions": 7}, {"maxPartitionBytes": 2000}, {"maxRecordsPerPartition": 9}])
    )
    return options, bounds


@given(offset_ranges())
def test_starts_and_ends_by_offset_cut_each_partition_there(
    chosen: tuple[dict[str, Any], dict[tuple[str, int], tuple[int, int]]],
) -> None:
    """-2 is the earliest and -1 the latest; an end is exclusive; a start behind its end is an empty range."""
    options, bounds = chosen
    assert got(DATA, **SUBSCRIBED, **options) == expected(RANGED, bounds)


def test_offsets_in_a_hole_of_the_log_are_legal() -> None:
    """Compaction leaves holes, in which a range may begin and end."""
    part = corpus.partition("18-leaps")
    held = [r.offset for r in corpus.visible(part)]
    hole = next(left + 1 for left, right in pairwise(held) if right > left + 1000)
    offset = {"leaps": {"3": hole}}
    assert offsets(part.path, startingOffsets=offset) == [o for o in held if o >= hole]
    assert offsets(part.path, endingOffsets=offset) == [o for o in held if o < hole]


@pytest.mark.parametrize("word", ["earliest", "EARLIEST", " earliest "])
def test_earliest_and_latest_are_words_in_any_case(word: str) -> None:
    assert got(DATA, startingOffsets=word, endingOffsets="Latest", subscribe="cities") == expected(CITIES)


def test_names_of_options_are_taken_in_any_case() -> None:
    part = PARTS["cities-0"]
    options = {"STARTINGOFFSETS": {"cities": {"0": 260}}, "eNdInGoFfSeTs": {"cities": {"0": 264}}}
    assert got(part.path, **options) == expected([part], {("cities", 0): (260, 264)})


OUT_OF_RANGE = [
    ("a start below the log start", {"startingOffsets": {"cities": {"0": 0, "1": 30}}}, (31, 1 << 62)),
    ("a start above the log end", {"startingOffsets": {"cities": {"0": 0, "1": 151}}}, (150, 1 << 62)),
    ("an end above the log end", {"endingOffsets": {"cities": {"0": -1, "1": 151}}}, (31, 150)),
    ("an end below the log start", {"endingOffsets": {"cities": {"0": -1, "1": 3}}}, (31, 31)),
]


@pytest.mark.parametrize("options", [o[1] for o in OUT_OF_RANGE[:3]], ids=[o[0] for o in OUT_OF_RANGE[:3]])
def test_offsets_that_the_log_does_not_have_are_data_loss(options: dict[str, Any]) -> None:
    with refuses("CORDWOOD_OFFSET_OUT_OF_RANGE", "cities-1") as raised:
        plan(DATA, subscribe="cities", **options)
    told = errors.parse(raised.value)
    assert (told.topic, told.partition) == ("cities", 1)


@pytest.mark.parametrize(("options", "left"), [o[1:] for o in OUT_OF_RANGE], ids=[o[0] for o in OUT_OF_RANGE])
def test_without_fail_on_data_loss_offsets_are_clipped_with_a_warning(
    options: dict[str, Any], left: tuple[int, int], said: Callable[[], list[str]]
) -> None:
    wanted = expected(CITIES, {("cities", 1): left})
    assert got(DATA, subscribe="cities", failOnDataLoss=False, **options) == wanted
    assert [text for text in said() if "cities-1" in text]


# ---------------------------------------------------------------- ranges by time


def offset_at(part: Partition, time: int) -> int | None:
    """The first record at or after the log start that is late enough; markers count."""
    found = corpus.first_at_or_after(corpus.visible(part, control=True), time)
    return None if found is None else found.offset


TIMED = [
    corpus.partition(case) for case in ("01-plain", "08-late", "09-append-time", "11-transactions", "13-delete-records")
]


def times_of(part: Partition) -> st.SearchStrategy[int]:
    known = [r.timestamp for r in corpus.visible(part, control=True) if r.timestamp >= 0]
    return st.builds(lambda time, step: max(0, time + step), st.sampled_from(known), st.integers(-1, 1))


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("part", TIMED, ids=str)
@pytest.mark.parametrize("by", ["global", "partition"])
def test_starts_and_ends_by_time_are_offsets_found_by_time(part: Partition, by: str, data: st.DataObject) -> None:
    """Later records with earlier times belong to the range, as in Kafka; no match for an end is the end of the log."""
    early, late = data.draw(times_of(part)), data.draw(times_of(part))
    start, end = offset_at(part, early), offset_at(part, late)
    assert start is not None
    if by == "global":
        options: dict[str, Any] = {"startingTimestamp": early, "endingTimestamp": late}
    else:
        at = str(part.number)
        options = {
            "startingOffsetsByTimestamp": {part.topic: {at: early}},
            "endingOffsetsByTimestamp": {part.topic: {at: late}},
        }
    wanted = [r.offset for r in corpus.visible(part) if start <= r.offset < (1 << 62 if end is None else end)]
    assert offsets(part.path, **options) == wanted


FAR = 4_000_000_000_000


def test_an_end_by_time_that_no_record_reaches_is_the_end_of_the_log() -> None:
    assert got(DATA, subscribe="cities", endingTimestamp=FAR) == expected(CITIES)


@pytest.mark.parametrize(
    "options",
    [{"startingTimestamp": FAR}, {"startingOffsetsByTimestamp": {"cities": {"0": 0, "1": FAR}}}],
    ids=["global", "partition"],
)
def test_a_start_by_time_that_no_record_reaches_is_an_error_or_the_latest(options: dict[str, Any]) -> None:
    with refuses("CORDWOOD_TIME_NOT_FOUND", "cities-"):
        plan(DATA, subscribe="cities", **options)
    with refuses("CORDWOOD_TIME_NOT_FOUND"):
        plan(DATA, subscribe="cities", startingOffsetsByTimestampStrategy="error", **options)
    latest = got(DATA, subscribe="cities", startingOffsetsByTimestampStrategy="latest", **options)
    assert latest == (expected([CITIES[0]]) if "startingOffsetsByTimestamp" in options else [])


def test_records_without_times_are_found_by_no_start_time() -> None:
    part = corpus.partition("17-v0-none")
    with refuses("CORDWOOD_TIME_NOT_FOUND", "old.v0.none-0"):
        plan(part.path, startingTimestamp=0)
    assert len(offsets(part.path, endingTimestamp=0)) == 400


def test_the_more_particular_start_wins() -> None:
    """startingTimestamp, then startingOffsetsByTimestamp, then startingOffsets; for the ends the same."""
    part = corpus.partition("01-plain")
    times = [r.timestamp for r in corpus.visible(part)]
    starts = {
        "startingTimestamp": times[300],
        "startingOffsetsByTimestamp": {"orders": {"0": times[200]}},
        "startingOffsets": {"orders": {"0": 100}},
    }
    ends = {
        "endingTimestamp": times[1300],
        "endingOffsetsByTimestamp": {"orders": {"0": times[1200]}},
        "endingOffsets": {"orders": {"0": 1100}},
    }
    for names, first in ((list(starts), 300), (list(starts)[1:], 200), (list(starts)[2:], 100)):
        found = offsets(part.path, **{name: starts[name] for name in names})
        assert found[0] == (100 if first == 100 else offset_at(part, times[first]))
    for names, last in ((list(ends), 1300), (list(ends)[1:], 1200), (list(ends)[2:], 1100)):
        found = offsets(part.path, **{name: ends[name] for name in names})
        end = 1100 if last == 1100 else offset_at(part, times[last])
        assert end is not None
        assert found[-1] == end - 1
    first, last = offset_at(part, times[300]), offset_at(part, times[1300])
    assert offsets(part.path, **starts, **ends) == list(range(first or 0, last or 0))


# ---------------------------------------------------------------- what is refused

BAD: list[tuple[str, dict[str, Any]]] = [
    ("startingOffsets", {"startingOffsets": {"cities": {"0": -3, "1": -2}}}),
    ("startingOffsets", {"startingOffsets": {"cities": {"0": "five", "1": 31}}}),
    ("startingOffsets", {"startingOffsets": {"cities": {"zero": 5, "1": 31}}}),
    ("startingOffsets", {"startingOffsets": '{"cities":[0,1]}'}),
    ("startingOffsets", {"startingOffsets": '{"cities"'}),
    ("startingOffsets", {"startingOffsets": "sometimes"}),
    ("startingOffsets", {"startingOffsets": '{"cities":{"0":1.5,"1":31}}'}),
    ("startingOffsets", {"startingOffsets": '{"cities":{"0":true,"1":31}}'}),
    ("endingOffsets", {"endingOffsets": "earliest"}),
    ("endingOffsets", {"endingOffsets": {"cities": {"0": -2, "1": -1}}}),
    ("endingOffsets", {"endingOffsets": {"cities": {"1": 40}}}),
    ("Offsets", {"startingOffsets": {"cities": {"0": 1}}, "endingOffsets": {"cities": {"1": 40}}}),
    ("startingOffsetsByTimestamp", {"startingOffsetsByTimestamp": "earliest"}),
    ("endingOffsetsByTimestamp", {"endingOffsetsByTimestamp": {"cities": {"1": 5}}}),
    ("startingTimestamp", {"startingTimestamp": "yesterday"}),
    ("startingTimestamp", {"startingTimestamp": -5}),
    ("endingTimestamp", {"endingTimestamp": "1e3"}),
    ("startingOffsetsByTimestampStrategy", {"startingOffsetsByTimestampStrategy": "perhaps"}),
    ("subscribe", {"assign": {"cities": [0]}}),
    ("subscribe", {"subscribePattern": "c.*"}),
    ("minPartitions", {"minPartitions": 0}),
    ("minPartitions", {"minPartitions": "many"}),
    ("maxRecordsPerPartition", {"maxRecordsPerPartition": 0}),
    ("maxRecordsPerPartition", {"maxRecordsPerPartition": -1}),
    ("maxPartitionBytes", {"maxPartitionBytes": 0}),
    ("maxPartitionBytes", {"maxPartitionBytes": "lots"}),
    ("maxBatchRows", {"maxBatchRows": 0}),
    ("maxBatchBytes", {"maxBatchBytes": 0}),
    ("includeHeaders", {"includeHeaders": "perhaps"}),
    ("failOnDataLoss", {"failOnDataLoss": "perhaps"}),
    ("mode", {"mode": "CAREFUL"}),
    ("table", {"table": "chairs"}),
    ("isolationLevel", {"isolationLevel": "serializable"}),
    ("isolation", {"kafka.isolation.level": "serializable"}),
    ("io", {"io": "punched cards"}),
    ("columns", {"columns": "offset,colour"}),
    ("columns", {"columns": "offset,offset"}),
    ("columns", {"columns": " , "}),
]


@pytest.mark.parametrize(("named", "options"), BAD, ids=[f"{name}-{n}" for n, (name, _) in enumerate(BAD)])
def test_a_bad_option_is_refused_by_name_at_load_and_with_the_users_schema_too(
    named: str, options: dict[str, Any]
) -> None:
    options = {"subscribe": "cities", **options}
    with refuses("CORDWOOD_BAD_OPTION", named):
        source(DATA, **options).schema()
    with refuses("CORDWOOD_BAD_OPTION", named):
        source(DATA, **options).reader(schema=struct("offset")).partitions()


@pytest.mark.parametrize("option", ["startingOffsets", "startingOffsetsByTimestamp"])
def test_a_batch_has_to_say_of_each_partition_where_it_begins(option: str) -> None:
    """A stream has not: when it is started again there may be a partition that was unknown before."""
    with refuses("CORDWOOD_BAD_OPTION", option, "cities-1"):
        plan(DATA, subscribe="cities", schema=struct("offset"), **{option: {"cities": {"0": 5}}})


@pytest.mark.parametrize(
    "options",
    [{"startingOffsets": "latest"}, {"startingOffsets": {"cities": {"0": -1, "1": -2}}}],
    ids=["word", "number"],
)
def test_a_batch_cannot_begin_at_the_latest_offset(options: dict[str, Any]) -> None:
    """A stream can, and at `.load()` it is not known yet which of the two this will be."""
    with refuses("CORDWOOD_BAD_OPTION", "startingOffsets"):
        plan(DATA, subscribe="cities", schema=struct("offset"), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": {"cities": {"0": 1, "1": 40, "2": 3}}},
        {"endingOffsets": {"cities": {"0": 1, "1": 40}, "towns": {"0": 3}}},
    ],
)
def test_offsets_of_partitions_that_are_not_subscribed_to_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(BAD_OPTION|NOT_FOUND)\]"):
        source(DATA, subscribe="cities", **options).schema()


@pytest.mark.parametrize("pattern", ["(", "*", "[a-"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "subscribePattern"):
        source(DATA, subscribePattern=pattern).schema()


@pytest.mark.parametrize("assigned", ["cities", '{"cities":"0"}', '{"cities":[-1]}', '{"cities":["a"]}', "[]", "{}"])
def test_an_assignment_that_is_none_is_refused(assigned: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "assign"):
        source(DATA, assign=assigned).schema()


def test_no_path_at_all_is_refused() -> None:
    with refuses("CORDWOOD_BAD_OPTION", "path"):
        source().schema()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("startingOfsets", "startingOffsets"),
        ("startOffsets", "startingOffsets"),
        ("maxRecordPerPartition", "maxRecordsPerPartition"),
        ("includeHeader", "includeHeaders"),
        ("isolation_level", "isolationLevel"),
        ("subscribePatern", "subscribePattern"),
        ("failOnDataloss_", "failOnDataLoss"),
    ],
)
def test_an_unknown_option_is_refused_with_the_name_that_was_meant(typed: str, meant: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", typed.lower(), meant):
        source(DATA, **{typed: "1"}).schema()


def test_an_unknown_option_without_a_near_name_is_refused_too() -> None:
    with refuses("CORDWOOD_BAD_OPTION", "zzzzqqqq"):
        source(DATA, zzzzqqqq="1").schema()


def test_an_unknown_column_is_refused_with_the_name_that_was_meant() -> None:
    with refuses("CORDWOOD_BAD_OPTION", "leaderEpok", "leaderEpoch"):
        source(DATA, columns="offset,leaderEpok").schema()


BROKER_ONLY = {
    "kafka.bootstrap.servers": "broker:9092",
    "kafka.security.protocol": "SSL",
    "kafka.group.id": "g",
    "groupIdPrefix": "p",
    "kafkaConsumer.pollTimeoutMs": "512",
    "fetchOffset.numRetries": "3",
    "fetchOffset.retryIntervalMs": "10",
}


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Any:
    """Everything that was logged or warned of so far."""
    caplog.set_level(logging.WARNING)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield lambda: [r.getMessage() for r in caplog.records] + [str(w.message) for w in warned]


@pytest.mark.parametrize("option", BROKER_ONLY)
def test_an_option_that_only_a_broker_needs_is_accepted_and_said_to_be_without_effect(
    option: str, said: Callable[[], list[str]]
) -> None:
    data = source(DATA, subscribe="cities", **{option: BROKER_ONLY[option]})
    data.schema()
    rows = made(data, struct(*NAMES)).rows()
    assert rows == expected(CITIES)
    assert [text for text in said() if option.lower() in text.lower()]


def test_options_with_an_effect_are_not_warned_of(said: Callable[[], list[str]]) -> None:
    options = {"kafka.isolation.level": "read_committed", "maxPartitionBytes": 1 << 20, "includeHeaders": True}
    assert len(read(corpus.partition("11-transactions").path, **options)) > 0
    assert said() == []


def test_options_written_out_are_the_same_options() -> None:
    """As text and back: what a job keeps of them says all."""
    given = {
        "path": str(DATA),
        "assign": '{"cities":[1,0],"rivers.compact":[0]}',
        "startingOffsets": '{"cities":{"0":-2,"1":40},"rivers.compact":{"0":3}}',
        "endingOffsets": '{"cities":{"0":-1,"1":41},"rivers.compact":{"0":9}}',
        "startingOffsetsByTimestamp": '{"cities":{"0":1,"1":40},"rivers.compact":{"0":3}}',
        "endingTimestamp": "1700000000000",
        "startingOffsetsByTimestampStrategy": "latest",
        "failOnDataLoss": "FALSE",
        "minPartitions": "7",
        "maxRecordsPerPartition": "8",
        "maxPartitionBytes": "9",
        "columns": "offset, value",
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "mode": "permissive",
        "maxBatchRows": "10",
        "maxBatchBytes": "11",
        "io": "mmap",
        "table": "records",
    }
    checked = SparkLogOptions.from_options(given)
    written = checked.to_options()
    assert all(isinstance(text, str) for text in written.values())
    assert SparkLogOptions.from_options(written) == checked
    assert SparkLogOptions.from_options({name.lower(): text for name, text in written.items()}) == checked
    assert SparkLogOptions.from_options(SparkLogOptions.from_options({"path": "x"}).to_options()) is not None


def test_a_limit_for_streams_is_ignored_in_a_batch_with_a_warning(said: Callable[[], list[str]]) -> None:
    assert got(DATA, subscribe="cities", maxOffsetsPerTrigger=5) == expected(CITIES)
    assert [text for text in said() if "maxoffsetspertrigger" in text.lower()]


@pytest.mark.parametrize("mode", ["failfast", "PERMISSIVE", "DropMalformed"])
def test_modes_are_taken_in_any_case(mode: str) -> None:
    part = PARTS["cities-0"]
    assert len(plan(part.path, mode=mode).rows()) == 265
