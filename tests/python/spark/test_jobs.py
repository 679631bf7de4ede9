"""The jobs in a real Spark, compared with the corpus and with what pyarrow reads from the exported files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from corpus import Expected, Partition
from pyspark.errors import PySparkException

import cordwood as cw
from cordwood.spark import errors, jobs
from cordwood.spark.jobs import commands
from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.journal import Journal

pytestmark = [pytest.mark.spark, pytest.mark.long]

Everything = tuple[Path, list[Partition]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = corpus.partition("01-plain")
COMPACTED = corpus.partition("12-compacted")
PAYMENTS = corpus.partition("11-transactions")
DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"


def read(output: Path) -> pa.Table:
    """The exported files, read by pyarrow alone."""
    fields = pa.schema([("topic", pa.string()), ("date", pa.string())])
    return ds.dataset(output, format="parquet", partitioning=ds.partitioning(fields, flavor="hive")).to_table()


def names(output: Path) -> set[str]:
    return {str(path.relative_to(output)) for path in output.glob("topic=*/date=*/*.parquet")}


def day(record: Expected) -> str | None:
    return None if record.timestamp == -1 else str((EPOCH + timedelta(milliseconds=record.timestamp)).date())


def hour(record: Expected) -> int | None:
    return None if record.timestamp == -1 else record.timestamp // 3_600_000


def rows_of(part: Partition, records: list[Expected]) -> Counter[tuple[Any, ...]]:
    return Counter((part.topic, part.number, r.offset, r.timestamp, day(r), r.key, r.value) for r in records)


def exported(output: Path) -> Counter[tuple[Any, ...]]:
    table = read(output)
    micros = table["timestamp"].cast(pa.int64()).to_pylist()
    names = ("topic", "partition", "offset", "date", "key", "value")
    topic, partition, offset, date, key, value = (table[name].to_pylist() for name in names)
    milliseconds = [time // 1000 for time in micros]
    return Counter(zip(topic, partition, offset, milliseconds, date, key, value, strict=True))


def test_segments_are_those_of_the_logs(spark: Any, everything: Everything) -> None:
    folder, parts = everything
    rows = jobs.segments(spark, folder).collect()
    found = {(row.topic, row.partition, row.segmentBaseOffset): (row.bytes, row.endOffset) for row in rows}
    assert found == {
        (part.topic, part.number, segment.base_offset): (segment.size, segment.end_offset)
        for part in parts
        for segment in cw.Log(folder / part.name).segments
    }


def test_records_are_counted_by_partition(spark: Any, everything: Everything) -> None:
    folder, parts = everything
    found = {(row.topic, row.partition): row.records for row in jobs.count(spark, folder).collect()}
    # empty partitions have a row too
    assert found == {(part.topic, part.number): len(corpus.visible(part)) for part in parts}


def test_gaps_between_segments_are_counted_and_are_data_loss_without_compaction(spark: Any, copied: Any) -> None:
    path = copied(PLAIN.path)
    for file in path.glob("00000000000000000400.*"):
        file.unlink()
    with pytest.raises(PySparkException) as raised:
        jobs.count(spark, path).collect()
    assert errors.parse(raised.value).code == "CORDWOOD_SEGMENT_GONE"
    for options in ({"failOnDataLoss": False}, {"cleanupPolicy": "compact"}):
        [row] = jobs.count(spark, path, maxPartitionBytes=20_000, **options).collect()
        assert (row.records, row.offsetGap) == (1093, 407)
    rows = jobs.segments(spark, path).orderBy("segmentBaseOffset").collect()
    assert [(row.segmentBaseOffset, row.endOffset, row.offsetGap) for row in rows] == [
        (0, 400, 407),
        (807, 1217, 0),
        (1217, 1500, 0),
    ]
    [row] = jobs.count(spark, COMPACTED.path).collect()
    wanted = sum(gap.end_offset - gap.start_offset for gap in cw.Log(COMPACTED.path).offset_gaps())
    assert row.offsetGap == wanted > 0


def test_records_are_counted_by_key_and_by_hour(spark: Any, everything: Everything) -> None:
    folder, parts = everything
    records = [(part, record) for part in parts for record in corpus.visible(part)]
    by_key = {row.key and bytes(row.key): row.records for row in jobs.count(spark, folder, by="key").collect()}
    assert by_key == Counter(record.key for _, record in records)
    rows = jobs.count(spark, folder, by="hour").selectExpr("topic", "unix_seconds(hour) / 3600 AS hour", "records")
    by_hour = {(row.topic, None if row.hour is None else int(row.hour)): row.records for row in rows.collect()}
    assert by_hour == Counter((part.topic, hour(record)) for part, record in records)


def test_aborted_records_are_not_counted(spark: Any) -> None:
    committed = corpus.committed(PAYMENTS, PAYMENTS.opened["logEndOffset"])
    for by in ("partition", "hour"):
        rows = jobs.count(spark, PAYMENTS.path, by=by, isolationLevel="read_committed").collect()
        assert sum(row.records for row in rows) == len(committed)


def test_damage_is_not_counted(spark: Any) -> None:
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        for by in ("partition", "key"):
            assert sum(row.records for row in jobs.count(spark, DAMAGED, by=by, mode=mode).collect()) == 369


def test_everything_is_exported_once(spark: Any, everything: Everything, tmp_path: Path) -> None:
    folder, parts = everything
    output = tmp_path / "out with a space"
    size = sum(cw.Log(folder / part.name).size for part in parts)
    told: list[jobs.Progress] = []
    done = jobs.export(spark, folder, output, step_bytes=size // 2, progress=told.append)
    wanted = sum((rows_of(part, corpus.visible(part)) for part in parts), Counter())
    assert exported(output) == wanted
    assert (done.rows, done.skipped) == (wanted.total(), 0)
    assert done.files == len(names(output))
    assert (told[0].steps_done, told[-1].steps_done, told[-1].rows) == (0, told[-1].steps, done.rows)
    assert told[-1].steps > 1
    # Spark's own settings are what they were
    assert spark.conf.get("spark.sql.maxConcurrentOutputFileWriters") == "0"
    # and Spark reads what it wrote, without our own directory
    assert spark.read.parquet(str(output)).count() == done.rows

    before = {name: (output / name).stat().st_mtime_ns for name in names(output)}
    again = jobs.export(spark, folder, output)
    assert (again.rows, again.ranges, again.skipped) == (done.rows, 0, done.ranges)
    assert {name: (output / name).stat().st_mtime_ns for name in names(output)} == before

    (output / min(before)).unlink()
    with pytest.raises(ExportError, match=r"the log has \d+ records and the Parquet files \d+"):
        jobs.export(spark, folder, output)


def test_an_export_killed_in_each_step_continues(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after Spark's commit, and after the record of the step; each start advances by one step."""
    finish, place = Journal.finish, Journal._place  # noqa: SLF001  (the moments to die at)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    def start() -> jobs.Export:
        return jobs.export(spark, PLAIN.path, tmp_path / "out", step_bytes=80_000, maxPartitionBytes=20_000)

    wanted = rows_of(PLAIN, corpus.visible(PLAIN))
    for moment in ("finish", "_place", "finish", "_place"):
        monkeypatch.setattr(Journal, moment, die)
        with pytest.raises(KeyboardInterrupt):
            start()
        monkeypatch.setattr(Journal, "finish", finish)
        monkeypatch.setattr(Journal, "_place", place)
        assert not names(tmp_path / "out") or exported(tmp_path / "out") <= wanted
    done = start()
    assert exported(tmp_path / "out") == wanted
    assert done.skipped == 2


def test_only_committed_records_are_exported(spark: Any, tmp_path: Path) -> None:
    jobs.export(spark, PAYMENTS.path, tmp_path / "out", **{"kafka.isolation.level": "read_committed"})
    committed = corpus.committed(PAYMENTS, PAYMENTS.opened["logEndOffset"])
    assert exported(tmp_path / "out") == rows_of(PAYMENTS, committed)


@pytest.mark.parametrize(("mode", "errors"), [("DROPMALFORMED", 0), ("PERMISSIVE", 1)])
def test_the_rest_of_a_damaged_log_is_exported(spark: Any, tmp_path: Path, mode: str, errors: int) -> None:
    done = jobs.export(spark, DAMAGED, tmp_path / "out", mode=mode)
    table = read(tmp_path / "out")
    assert done.rows == table.num_rows == 369 + errors
    if errors:
        assert table.num_rows - table["_error"].null_count == errors


def test_damage_stops_an_export_and_publishes_nothing(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="CORDWOOD_CORRUPT_BATCH"):
        jobs.export(spark, DAMAGED, tmp_path / "out")
    assert not list((tmp_path / "out").glob("topic=*"))


def test_an_export_overtaken_by_retention_continues_with_the_rest(
    spark: Any, tmp_path: Path, copied: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, output = copied(PLAIN.path), tmp_path / "out"
    place = Journal._place  # noqa: SLF001  (the moment to stop at)

    def start(**options: Any) -> jobs.Export:
        return jobs.export(spark, path, output, step_bytes=20_000, maxPartitionBytes=20_000, **options)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "_place", stop)
    with pytest.raises(KeyboardInterrupt):
        start()
    monkeypatch.setattr(Journal, "_place", place)
    (first,) = json.loads((output / "_cordwood/export.json").read_text())["steps"][0]["ranges"]
    assert first["end_offset"] < 400
    for file in path.glob(f"{0:020}.*"):
        file.unlink()
    with pytest.raises(Exception, match="failOnDataLoss=false"):
        start()
    done = start(failOnDataLoss=False)
    left = [record for record in corpus.visible(PLAIN) if not first["end_offset"] <= record.offset < 400]
    assert exported(output) == rows_of(PLAIN, left)
    assert done.skipped == 1
    steps = [json.loads(file.read_text()) for file in sorted((output / "_cordwood/steps").iterdir())]
    assert steps[0]["relaxed"] == {}
    assert all(step["relaxed"] == {"failOnDataLoss": "false"} for step in steps[1:])
    # nothing is left to be lost
    assert start().rows == done.rows


def test_selected_columns_and_those_that_place_a_row_are_exported(spark: Any, tmp_path: Path) -> None:
    jobs.export(spark, PLAIN.path, tmp_path / "out", columns="valueSize", endingTimestamp=1_700_000_010_000)
    table = read(tmp_path / "out")
    assert set(table.column_names) == {"valueSize", "topic", "partition", "offset", "timestamp", "date"}
    assert table.num_rows == 488


@pytest.fixture
def command(spark: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command in the shared session; returns the exit code, standard output and standard error."""

    @contextmanager
    def shared(_job: str, _master: str | None) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(commands, "session", shared)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = commands.run([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


def test_commands_print_what_the_jobs_find(command: Callable[..., Any], tmp_path: Path) -> None:
    data = corpus.GOLDEN / "16-data-dir"
    code, out, _ = command("segments", data, "--option", "subscribe=cities", "--json")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["partition"], line["segmentBaseOffset"]) for line in lines] == [(0, 0), (0, 197), (0, 236), (1, 0)]
    assert lines[0]["largestTimestamp"].endswith("Z")

    code, out, err = command("count", PLAIN.path, "--by", "key", "--json", "--limit", "2")
    most = Counter(record.key for record in corpus.visible(PLAIN)).most_common(2)
    assert code == 0
    assert [json.loads(line)["records"] for line in out.splitlines()] == [count for _, count in most]
    assert "--limit" in err

    code, out, _ = command("count", PLAIN.path, "--until", "2023-11-14T22:13:30Z")
    assert code == 0
    assert "488" in out

    for expected in ("1 range of offsets exported, 0 from before", "0 ranges of offsets exported, 1 from before"):
        code, out, _ = command("export", PLAIN.path, tmp_path / "out")
        assert code == 0
        assert "1,500 rows" in out
        assert expected in out


def test_commands_fail_with_one_line(command: Callable[..., Any], tmp_path: Path, copied: Any) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "precious.txt").touch()
    for code, words, arguments in [
        (1, "[CORDWOOD_CORRUPT_BATCH] tickets-0 segment 285 position 2126", ("count", DAMAGED, "--by", "key")),
        (2, "did you mean subscribe?", ("count", PLAIN.path, "--option", "subscrib=orders")),
        (1, "[CORDWOOD_NOT_FOUND]", ("segments", tmp_path / "nothing")),
        (2, "expected KEY=VALUE", ("segments", PLAIN.path, "--option", "subscribe")),
        (2, "s3://", ("export", PLAIN.path, "s3://bucket/x")),
        (2, "it has 'precious.txt'", ("export", PLAIN.path, foreign)),
        (2, "where nothing is ever written", ("export", PAYMENTS.path, copied(PLAIN.path) / "out")),
        (2, "exists, and is not replaced", ("count", PLAIN.path, "-o", foreign)),
        (2, "where nothing is ever written", ("segments", PAYMENTS.path, "-o", copied(PLAIN.path, under="b") / "out")),
        (2, "expected one of them", ("count", PLAIN.path, "--since", "5", "--option", "startingtimestamp=5")),
    ]:
        found, out, err = command(*arguments)
        assert (found, out) == (code, ""), err
        assert words in err
        assert err.count("\n") == 1, err
