"""The options of Spark's Kafka source and of cordwood: names, invalid values and ignored options."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import cordwood.spark
from cordwood._core import _SourceOptions
from cordwood.spark.write.options import _KNOWN
from spark.reading import CITIES, DATA, NAMES, PARTS, expected, got, made, plan, read, refuses, source, struct


def test_names_of_options_are_case_insensitive() -> None:
    part = PARTS["cities-0"]
    options = {"STARTINGOFFSETS": {"cities": {"0": 260}}, "eNdInGoFfSeTs": {"cities": {"0": 264}}}
    assert got(part.path, **options) == expected([part], {("cities", 0): (260, 264)})


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
    ("maxLogBatchBytes", {"maxLogBatchBytes": 0}),
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
        ("groupIdPrefx", "groupIdPrefix"),
        ("kafak.isolation.level", "kafka.isolation.level"),
        ("kafka.isolation.levl", "kafka.isolation.level"),
        ("kafka.isolationlevel", "isolationLevel"),
        ("kafka.isolation_level", "kafka.isolation.level"),
        ("kafka.Isolation.Levels", "kafka.isolation.level"),
        ("kafka.startingOffsets", "startingOffsets"),
        ("kafka.starting.offsets", "startingOffsets"),
        ("kafka.subscribe", "subscribe"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(typed: str, meant: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", typed.lower(), meant):
        source(DATA, **{typed: "1"}).schema()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": {"cities": {"0": 3}}}, "found none for cities-1"),
        (
            {"startingOffsets": {"cities": {"0": 3, "1": 40, "7": 0}, "towns": {"0": 1}}},
            "found one for cities-7, towns-0",
        ),
        ({"endingOffsets": {"towns": {"0": 3}}}, "found none for cities-0, cities-1 and one for towns-0"),
        (
            {"startingOffsets": {"cities": {"0": 3, "1": 40}}, "endingOffsets": {"cities": {"0": 3}}},
            "endingOffsets: expected an entry for each partition that startingOffsets names, found none for cities-1",
        ),
    ],
    ids=["missing", "too many", "both", "of two options"],
)
def test_missing_and_unexpected_partitions_of_offsets_are_both_named(options: dict[str, Any], words: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "expected an entry for each partition", words):
        source(DATA, subscribe="cities", **options).reader(schema=struct("offset")).partitions()


def by_cities(zero: object, one: object) -> dict[str, dict[str, object]]:
    return {"cities": {"0": zero, "1": one}}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"startingOffsets": by_cities(0, 45), "endingOffsets": by_cities(9, 44)},
            "endingOffsets: expected 45 or later for cities-1, where startingOffsets begins, found 44",
        ),
        (
            {"startingTimestamp": 1_700_000_000_001, "endingTimestamp": 1_700_000_000_000},
            "endingTimestamp: expected 1700000000001 or later, where startingTimestamp begins, found 1700000000000",
        ),
        (
            {"startingTimestamp": 1_700_000_000_001, "endingOffsetsByTimestamp": by_cities(1_700_000_000_001, 5)},
            "endingOffsetsByTimestamp: expected 1700000000001 or later for cities-1, where startingTimestamp begins",
        ),
        (
            {"startingOffsetsByTimestamp": by_cities(7, 6), "endingOffsetsByTimestamp": by_cities(6, 6)},
            "endingOffsetsByTimestamp: expected 7 or later for cities-0, where startingOffsetsByTimestamp begins",
        ),
    ],
    ids=["offsets", "times", "a time and times", "times of each"],
)
@pytest.mark.parametrize("more", [{}, {"failOnDataLoss": False}], ids=["", "clipped"])
def test_an_end_before_its_start_is_refused(options: dict[str, Any], words: str, more: dict[str, Any]) -> None:
    with refuses("CORDWOOD_BAD_OPTION", words):
        source(DATA, subscribe="cities", **options, **more).reader(schema=struct("offset")).partitions()


def test_an_end_at_its_start_and_one_of_the_other_kind_are_empty_ranges() -> None:
    at = by_cities(40, 40)
    time = 1_700_000_000_000
    for options in (
        {"startingOffsets": at, "endingOffsets": at},
        {"startingOffsets": by_cities(-2, -2), "endingOffsets": by_cities(0, 31)},
        {"startingTimestamp": time, "endingTimestamp": time},
        {"startingOffsets": by_cities(45, 45), "endingTimestamp": 0},
    ):
        assert got(DATA, subscribe="cities", **options) == []


@pytest.mark.parametrize("typed", ["zzzzqqqq", "colour"])
def test_an_unknown_option_without_a_similar_one_is_refused_with_all_options(typed: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", typed, "one of path, paths, subscribe, ", "maxTriggerDelay") as raised:
        source(DATA, **{typed: "1"}).schema()
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize("typed", ["leaderEpok", "LEADEREPOCH", "leader_epoch"])
def test_an_unknown_column_is_refused_with_the_nearest_name(typed: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", typed, "did you mean leaderEpoch?"):
        source(DATA, columns=f"offset,{typed}").schema()


@pytest.mark.parametrize("table", ["records", "batches"])
def test_an_unknown_column_without_a_similar_one_is_refused_with_all_columns(table: str) -> None:
    schema = StructType([StructField("zzzz", LongType())])
    with refuses("CORDWOOD_BAD_OPTION", "zzzz", "one of ", "topic, partition", "leaderEpoch") as raised:
        source(DATA, table=table).reader(schema=schema)
    assert "did you mean" not in str(raised.value)


BROKER_ONLY = {
    "kafka.bootstrap.servers": "broker:9092",
    "kafka.security.protocol": "SSL",
    "kafka.group.id": "g",
    "kafka.max.poll.records": "500",
    # the consumer's options that are most similar to cordwood's
    "kafka.max.partition.fetch.bytes": "1048576",
    "kafka.fetch.max.bytes": "1048576",
    "kafka.partition.assignment.strategy": "range",
    "kafka.auto.offset.reset": "latest",
    "kafka.session.timeout.ms": "1",
    "groupIdPrefix": "p",
    "kafkaConsumer.pollTimeoutMs": "512",
    "fetchOffset.numRetries": "3",
    "fetchOffset.retryIntervalMs": "10",
}


@pytest.mark.parametrize("option", BROKER_ONLY)
def test_an_option_for_a_broker_is_accepted_with_a_warning_that_it_is_ignored(
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


def test_options_survive_a_conversion_to_strings() -> None:
    """A job stores its options as strings."""
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
        "maxLogBatchBytes": "12",
        "io": "mmap",
        "table": "records",
    }
    checked = _SourceOptions(given)
    written = checked.texts
    assert all(isinstance(text, str) for text in written.values())
    assert _SourceOptions(written) == checked
    assert _SourceOptions({name.lower(): text for name, text in written.items()}) == checked
    assert _SourceOptions({"path": "x"}).texts == {"paths": '["x"]'}


@pytest.mark.parametrize("given", [{"maxOffsetsPerTrigger": 5}, {"minOffsetsPerTrigger": 5, "maxTriggerDelay": "1m"}])
def test_a_limit_for_streams_is_ignored_in_a_batch_with_a_warning(
    given: dict[str, Any], said: Callable[[], list[str]]
) -> None:
    assert got(DATA, subscribe="cities", **given) == expected(CITIES)
    assert f"ignored, because this is not a stream: {', '.join(given)}" in said()


@pytest.mark.parametrize("mode", ["failfast", "PERMISSIVE", "DropMalformed"])
def test_modes_are_case_insensitive(mode: str) -> None:
    part = PARTS["cities-0"]
    assert len(plan(part.path, mode=mode).rows()) == 265


def documented(title: str) -> dict[str, list[str]]:
    """The rows of a table of options in the docstring of the package, by name."""
    part = (cordwood.spark.__doc__ or "").partition(f"\n{title}:")[2]
    lines = itertools.takewhile(lambda line: line.startswith("|"), part.partition("\n\n")[2].splitlines())
    cells = [[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in lines][2:]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_the_package_documents_every_option_of_a_query_with_its_default() -> None:
    with refuses("CORDWOOD_BAD_OPTION") as raised:
        source(DATA, zzzzqqqq="1").schema()
    declared = str(raised.value).partition("one of ")[2].partition(", found")[0].split(", ")
    rows = documented("Reading")
    assert sorted(rows) == sorted(declared)
    assert all(len(row) == 3 for row in rows.values())
    defaults = {name: row[1] for name, row in rows.items() if re.fullmatch(r"[\w]+", row[1])}
    # an option with its default is left out of the texts
    assert len(defaults) == 13
    # except for this one, which is not the same as none
    assert _SourceOptions({"path": "x", **defaults}).texts.keys() == {"paths", "endingOffsets"}
    # and each choice is one
    for name, (kind, _, _) in rows.items():
        for choice in kind.split(", ") if re.fullmatch(r"[\w]+(, [\w]+)+", kind) and "names" not in kind else []:
            assert _SourceOptions({"path": "x", name: choice}).texts


def test_the_package_documents_every_option_of_a_write() -> None:
    assert sorted(documented("Writing")) == sorted([*_KNOWN, "kafka.*"])


def test_the_options_in_the_text_of_the_guide_are_documented() -> None:
    guide = Path(__file__).resolve().parents[3] / "docs" / "pages" / "guides" / "spark.md"
    section = guide.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+(?:[A-Z]\w+)+)(?:=\w+)?`", section)) - {"foreachBatch"}
    assert "failOnDataLoss" in named
    assert named <= {*documented("Reading"), *documented("Writing")}, named
