"""What an export does to the disk, and how logs are counted and cut, without a Spark session.

The steps' writer is a stand-in that writes what the corpus says; all else is the shipped code.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import cordwood as cw
from cordwood.spark import jobs
from cordwood.spark.bounds import Bounds
from cordwood.spark.errors import CORRUPT_BATCH, SEGMENT_GONE, SparkLogError
from cordwood.spark.jobs.counting import records_of
from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.exporting import export
from cordwood.spark.jobs.footers import read_footer
from cordwood.spark.jobs.journal import Counts, Journal, Plan
from cordwood.spark.jobs.ranges import Range, Step, cut, plan_steps
from cordwood.spark.jobs.run import Export, Progress, carry_out
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory
from cordwood.spark.split import Piece, plan_splits

PLAIN = corpus.partition("01-plain")
DATES = ("2024-05-01", "2024-05-02")


class KilledError(BaseException):
    """What no `except Exception` stops."""


def a_plan(steps: int = 3, partitions: tuple[int, ...] = (0, 1)) -> Plan:
    """Partitions of a topic; a step has ten offsets of each."""
    ranges = [
        tuple(Range("orders", p, f"/data/orders-{p}", 10 * n, 10 * n + 10, size=100) for p in partitions)
        for n in range(steps)
    ]
    return Plan(["/data"], {}, {}, "{}", "{}", [Step(n, parts) for n, parts in enumerate(ranges)])


def write_step(step: Step, staging: Path) -> None:
    """A file for each partition and date, as a Spark job leaves them, with all that lies beside them."""
    for part, (n, date) in itertools.product(step.ranges, enumerate(DATES)):
        folder = staging / f"topic={part.topic}" / f"date={date}"
        folder.mkdir(parents=True, exist_ok=True)
        offsets = [o for o in range(part.start_offset, part.end_offset) if o % len(DATES) == n]
        table = pa.table({"partition": pa.array([part.partition] * len(offsets), pa.int32()), "offset": offsets})
        pq.write_table(table, folder / f"part-{part.partition}-{n}.c000.zstd.parquet")
        (folder / f".part-{part.partition}-{n}.c000.zstd.parquet.crc").write_bytes(b"crc")
    (staging / "_SUCCESS").touch()


def count_step(step: Step) -> Counts:
    return {(str(p.topic), p.partition or 0): p.end_offset - p.start_offset for p in step.ranges}


def silent(_: Progress) -> None:
    pass


def planned(path: Path, start: int, end: int, **options: str) -> tuple[SparkLogOptions, list[Piece]]:
    """A range of a partition as its tasks get it."""
    given = SparkLogOptions.from_options({"path": str(path), **options})
    tasks = plan_splits([Bounds(PartitionDirectory.at(str(path)), start, end)], given)
    return given, [piece for task in tasks for piece in task]


def counted(path: Path, start: int, end: int, **options: str) -> int:
    given, pieces = planned(path, start, end, **options)
    return sum(records_of(piece, given) for piece in pieces)


def go(output: Path, plan: Plan, *, write: Callable[[Step, Path], None] = write_step) -> Export:
    """One start of an export, as `export` does it."""
    output.mkdir(exist_ok=True)
    journal = Journal(output)
    with journal.locked():
        if journal.plan() is None:
            journal.begin(plan)
        return carry_out(journal, plan, write, count_step, silent)


def seen(output: Path) -> Counter[tuple[int, int]]:
    """What another reader finds: how often each record is there."""
    if not any(output.glob("topic=*/*/*.parquet")):
        return Counter()
    table = ds.dataset(output, format="parquet", partitioning="hive").to_table(columns=["partition", "offset"])
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def wanted(plan: Plan) -> Counter[tuple[int, int]]:
    return Counter(
        (part.partition or 0, offset)
        for step in plan.steps
        for part in step.ranges
        for offset in range(part.start_offset, part.end_offset)
    )


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextmanager
def killed_at(call: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Dies before the call with that number to anything that changes the disk; the names of the calls so far."""
    made: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **named: Any) -> Any:
            made.append(name)
            if len(made) - 1 == call:
                raise KilledError(name)
            return real(*arguments, **named)

        return stand_in

    with monkeypatch.context() as patch:
        for owner, name in [
            (os, "fsync"),
            (Path, "mkdir"),
            (Path, "replace"),
            (Path, "open"),
            (json, "dump"),
            (shutil, "rmtree"),
        ]:
            patch.setattr(owner, name, counted(name, getattr(owner, name)))
        yield made


def test_an_export_killed_before_any_change_to_the_disk_goes_on_without_loss_or_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(2, (0,))
    whole = wanted(plan)
    reached: set[str] = set()
    for call in itertools.count():
        output = tmp_path / str(call)
        output.mkdir()
        died = False
        with killed_at(call, monkeypatch) as calls:
            try:
                go(output, plan)
            except KilledError:
                died = True
        # whoever reads meanwhile sees no record twice, and nothing that is not of the log
        assert seen(output) <= whole
        done = go(output, plan)
        assert seen(output) == whole, (call, calls[-1])
        reached.update(calls)
        assert done.rows == whole.total()
        assert not list((output / "_cordwood" / "staging").iterdir())
        if not died:
            break
    # the kinds of calls that were reached, so that the test cannot become empty
    assert reached == {"fsync", "mkdir", "replace", "open", "dump", "rmtree"}
    assert call > 40


def test_an_export_killed_twice_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = a_plan(2, (0,))
    with killed_at(-1, monkeypatch) as calls:
        go(tmp_path / "whole", plan)
    for first, second in itertools.product(range(8, len(calls), 11), range(1, 30, 6)):
        output = tmp_path / f"{first}-{second}"
        output.mkdir()
        for call in (first, second):
            with killed_at(call, monkeypatch), suppress(KilledError):
                go(output, plan)
            assert seen(output) <= wanted(plan)
        go(output, plan)
        assert seen(output) == wanted(plan), (first, second)


@pytest.mark.parametrize("after", range(3))
def test_a_writer_that_dies_half_way_leaves_nothing_in_sight(tmp_path: Path, after: int) -> None:
    plan = a_plan(3)

    def dying(step: Step, staging: Path) -> None:
        write_step(step, staging)
        if step.number == after:
            next(staging.rglob("*.parquet")).unlink()
            raise KilledError

    output = tmp_path / "out"
    with pytest.raises(KilledError):
        go(output, plan, write=dying)
    assert seen(output).total() == 20 * after
    done = go(output, plan)
    assert seen(output) == wanted(plan)
    assert (done.ranges, done.skipped) == (2 * (3 - after), 2 * after)


def test_the_rest_of_the_files_of_a_recorded_step_come_into_sight(tmp_path: Path) -> None:
    # as a power failure leaves it: the record is there, and some of the renames
    plan = a_plan(1)
    output = tmp_path / "out"
    go(output, plan)
    record = json.loads((output / "_cordwood/steps/00000.json").read_text())
    staging = output / "_cordwood/staging" / record["staging"]
    for file in record["files"][1:]:
        staged = staging / file["staged"]
        staged.parent.mkdir(parents=True, exist_ok=True)
        (output / file["place"]).replace(staged)
    assert seen(output).total() < 20
    go(output, plan)
    assert seen(output) == wanted(plan)


def test_a_finished_export_repeated_changes_nothing(tmp_path: Path) -> None:
    plan = a_plan()
    output = tmp_path / "out"
    first = go(output, plan)
    before = tree(output)

    def never(_: Step, __: Path) -> None:
        raise AssertionError("a finished step was written again")

    again = go(output, plan, write=never)
    assert tree(output) == before
    assert (again.rows, again.files, again.size) == (first.rows, first.files, first.size)
    assert (again.ranges, again.skipped) == (0, first.ranges)


def test_a_removed_file_is_an_error_with_partition_and_counts(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    gone = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    gone.unlink()
    with pytest.raises(ExportError, match=r"orders-0: the log has 30 records and the Parquet files 25") as caught:
        go(output, a_plan())
    assert str(gone) in str(caught.value)
    assert (caught.value.expected, caught.value.found) == ("30", "25")


def test_a_file_of_others_among_ours_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    ours = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    shutil.copy(ours, ours.with_name("copy.parquet"))
    with pytest.raises(ExportError, match=r"copy\.parquet is not of this export"):
        go(output, a_plan())


def test_a_file_with_other_rows_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    ours = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    pq.write_table(pq.read_table(ours, partitioning=None).slice(1), ours)
    with pytest.raises(ExportError, match=r"orders-0: the log has 30 records and the Parquet files 29"):
        go(output, a_plan())


def test_a_torn_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    ours = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    ours.write_bytes(ours.read_bytes()[:-1])
    with pytest.raises(ExportError, match=r"part-00001-0000\.parquet"):
        go(output, a_plan())


def test_a_step_that_lost_rows_is_not_published(tmp_path: Path) -> None:
    def losing(step: Step, staging: Path) -> None:
        write_step(step, staging)
        if step.number == 1:
            next(staging.rglob("*.parquet")).unlink()

    output = tmp_path / "out"
    with pytest.raises(ExportError, match=r"orders-[01]: the log has 10 records and the Parquet files 5, in step 1"):
        go(output, a_plan(), write=losing)
    assert seen(output).total() == 20
    go(output, a_plan())
    assert seen(output) == wanted(a_plan())


def test_a_step_without_records_has_no_files(tmp_path: Path) -> None:
    plan = Plan(["/data"], {}, {}, "{}", "{}", [Step(0, (Range("orders", 0, "/data/orders-0", 5, 5),))])
    output = tmp_path / "out"

    def nothing(_: Step, staging: Path) -> None:
        staging.mkdir()
        (staging / "_SUCCESS").touch()

    assert go(output, plan, write=nothing).rows == 0
    assert go(output, plan, write=nothing).skipped == 1


def test_two_exports_to_one_output_are_kept_apart(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with journal.locked(), pytest.raises(ExportError, match="another export is writing"), Journal(tmp_path).locked():
        pass
    with journal.locked():
        pass


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with Journal(tmp_path).locked():
        pass


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"precious\.txt"):
        go(tmp_path, a_plan())
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    go(tmp_path / "out", a_plan())
    path = tmp_path / "out/_cordwood/export.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(ExportError, match="has the format 99"):
        go(tmp_path / "out", a_plan())


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    plan = Plan(["/data"], {"mode": "PERMISSIVE"}, {"/data/orders-0": "abc"}, "{}", "{}", a_plan().steps)
    with journal.locked():
        journal.begin(plan)
    assert journal.plan() == plan


@pytest.mark.parametrize("output", ["s3://bucket/x", "hdfs:/x", "s3a://bucket", "gs://b/c"])
def test_an_output_that_is_no_directory_is_refused(output: str) -> None:
    with pytest.raises(cw.ConfigError, match=output.partition(":")[0]):
        export(None, PLAIN.path, output)  # type: ignore[arg-type]


def test_an_output_inside_the_log_is_refused(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    with pytest.raises(cw.ConfigError, match="nothing is ever written there"):
        export(None, path, path / "out")  # type: ignore[arg-type]
    assert not (path / "out").exists()


@pytest.mark.parametrize("mark", ["meta.properties", "replication-offset-checkpoint", ".lock"])
def test_an_output_in_a_brokers_directory_is_refused(tmp_path: Path, copied: Callable[[Path], Path], mark: str) -> None:
    path = copied(PLAIN.path)
    (path.parent / mark).touch()
    before = tree(path.parent)
    for given, output in [
        (path, path.parent / "out"),
        (path, path.parent / "new" / "out"),
        (path.parent / "*", path.parent / "out"),
        (path.parent / "*", path / "out"),
        (PLAIN.path, path.parent / "out"),
    ]:
        with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
            export(None, given, output)  # type: ignore[arg-type]
        assert not output.exists()
    (tmp_path / "link").symlink_to(path.parent)
    with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
        export(None, path, tmp_path / "link" / "out")  # type: ignore[arg-type]
    assert tree(path.parent) == before
    assert {entry.name for entry in path.parent.iterdir()} <= {path.name, mark, "link"}


def test_an_output_inside_another_partition_is_refused(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    for given in (path.parent / "*", PLAIN.path):
        with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
            export(None, given, path / "out")  # type: ignore[arg-type]
        assert not (path / "out").exists()


def test_an_output_beside_a_copied_partition_is_none_of_a_brokers(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    begin_by_hand(path, path.parent / "out")


def test_paths_may_be_written_as_uris(tmp_path: Path) -> None:
    begin_by_hand(f"file://{PLAIN.path}", f"file:{tmp_path}/out")
    plan = json.loads((tmp_path / "out/_cordwood/export.json").read_text())
    assert plan["source"] == [str(PLAIN.path)]


def test_a_table_that_is_not_of_records_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(cw.ConfigError, match="table=batches"):
        export(None, PLAIN.path, tmp_path / "out", table="batches")  # type: ignore[arg-type]


def begin_by_hand(path: Path | str, output: Path | str, **options: Any) -> None:
    """A first start that dies before its first step: without a session the planning gets this far."""
    with pytest.raises(AttributeError):
        export(None, path, output, step_bytes=1 << 20, **options)  # type: ignore[arg-type]
    assert (Path(str(output).removeprefix("file:")) / "_cordwood/export.json").exists()


def test_other_options_are_refused_by_name(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begin_by_hand(PLAIN.path, output, startingTimestamp=1_700_000_010_000)
    for options, message in [
        ({}, r"begun with startingTimestamp=1700000010000, not with no startingTimestamp"),
        ({"startingTimestamp": 5}, r"begun with startingTimestamp=1700000010000, not with startingTimestamp=5"),
        (
            {"startingTimestamp": 1_700_000_010_000, "isolationLevel": "read_committed"},
            r"begun with no isolationLevel, not with isolationLevel=read_committed",
        ),
    ]:
        with pytest.raises(ExportError, match=message):
            export(None, PLAIN.path, output, **options)  # type: ignore[arg-type]
    with pytest.raises(ExportError, match="begun with path="):
        export(None, corpus.partition("01-small").path, output, startingTimestamp=1_700_000_010_000)  # type: ignore[arg-type]


def test_options_that_change_no_row_may_change(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begin_by_hand(PLAIN.path, output)
    begin_by_hand(PLAIN.path, output, maxPartitionBytes=10_000, io="mmap", maxBatchRows=7)
    begin_by_hand(PLAIN.path, output, **{"kafka.isolation.level": "read_uncommitted"})


def test_options_may_become_less_strict_and_not_more(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begin_by_hand(PLAIN.path, output)
    begin_by_hand(PLAIN.path, output, failOnDataLoss=False)
    begin_by_hand(PLAIN.path, output, mode="DROPMALFORMED")
    begin_by_hand(PLAIN.path, output)
    with pytest.raises(ExportError, match="not with mode=PERMISSIVE"):
        export(None, PLAIN.path, output, mode="PERMISSIVE")  # type: ignore[arg-type]
    begin_by_hand(PLAIN.path, tmp_path / "lenient", failOnDataLoss=False)
    with pytest.raises(ExportError, match="begun with failOnDataLoss=false, not with no failOnDataLoss"):
        export(None, PLAIN.path, tmp_path / "lenient")  # type: ignore[arg-type]


def test_a_topic_that_was_made_anew_is_refused(tmp_path: Path, copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    begin_by_hand(path, tmp_path / "out")
    metadata = path / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    with pytest.raises(ExportError, match="belongs to another topic now"):
        export(None, path, tmp_path / "out")  # type: ignore[arg-type]


def test_the_offsets_stay_those_of_the_first_start(tmp_path: Path, copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    last = max(path.glob("*.log"))
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2 + 7])
    begin_by_hand(path, tmp_path / "out")
    planned = (tmp_path / "out/_cordwood/export.json").read_text()
    assert "1500" not in json.loads(planned)["ending_offsets"]
    last.write_bytes(whole)
    begin_by_hand(path, tmp_path / "out")
    assert (tmp_path / "out/_cordwood/export.json").read_text() == planned


@pytest.mark.parametrize("piece_bytes", [1, 3_000, 50_000, 1 << 30])
@pytest.mark.parametrize("step_bytes", [1, 40_000, 1 << 40])
def test_steps_hold_every_offset_once(piece_bytes: int, step_bytes: int) -> None:
    parts = [corpus.partition("01-plain"), corpus.partition("04-lz4"), corpus.partition("15-empty")]
    ranges = []
    for part in parts:
        log = cw.Log(part.path)
        ranges.append(Range(part.topic, part.number, str(part.path), log.log_start_offset, log.log_end_offset))
    steps = plan_steps(ranges, piece_bytes=piece_bytes, step_bytes=step_bytes, io="pread")
    assert [step.number for step in steps] == list(range(len(steps)))
    for whole in ranges:
        mine = [part for step in steps for part in step.ranges if part.path == whole.path]
        edges = [whole.start_offset, *(part.end_offset for part in mine)]
        assert [part.start_offset for part in mine] == edges[:-1]
        assert edges[-1] == whole.end_offset
    for step in steps:
        assert len({part.path for part in step.ranges}) == len(step.ranges)
        assert step.size < step_bytes + max(piece_bytes, 20_000)


def test_a_range_inside_a_batch_keeps_its_edges() -> None:
    # batches of 01-plain hold about ten records: 3 and 1497 lie inside one
    whole = Range("orders", 0, str(PLAIN.path), 3, 1497)
    pieces = list(cut(whole, 20_000, "pread"))
    assert len(pieces) > 3
    assert (pieces[0].start_offset, pieces[-1].end_offset) == (3, 1497)


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_counts_are_those_of_the_corpus(part: corpus.Partition) -> None:
    log = cw.Log(part.path)
    start, end = log.log_start_offset, log.log_end_offset
    spans = {(start, end), (start + 1, end), (start, end - 1), ((2 * start + end) // 3, (start + 2 * end) // 3)}
    for low, high in spans:
        if not start <= low <= high <= end:
            continue
        in_span = [r for r in corpus.visible(part) if low <= r.offset < high]
        for options in ({}, {"mode": "DROPMALFORMED"}, {"failOnDataLoss": "false"}):
            assert counted(part.path, low, high, **options) == len(in_span), (low, high, options)
    stable = log.last_stable_offset
    for low in {start, min(start + 5, stable)}:
        committed = [r for r in corpus.committed(part, end) if low <= r.offset < stable]
        assert counted(part.path, low, stable, isolationLevel="read_committed") == len(committed), low


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges whose records are read, to be counted."""
    ranges: list[tuple[int, int]] = []
    from cordwood.spark.jobs import counting

    def note(piece: Piece, _: SparkLogOptions) -> int:
        ranges.append((piece.split.start_offset, piece.split.end_offset))
        return 0

    monkeypatch.setattr(counting, "_scanned", note)
    return ranges


def test_headers_are_enough_where_they_tell(scanned: list[tuple[int, int]]) -> None:
    assert counted(PLAIN.path, 0, 1500) == 1500
    assert counted(PLAIN.path, 0, 1500, isolationLevel="read_committed") == 1500
    assert scanned == []
    counted(PLAIN.path, 3, 1500)
    assert len(scanned) == 1
    assert scanned[0][0] == 3
    assert scanned[0][1] < 50


def test_transactions_side_by_side_are_read_at_once(scanned: list[tuple[int, int]]) -> None:
    part = corpus.partition("11-transactions")
    headers = cw.Log(part.path).batches().to_arrow().to_pylist()
    runs = [sure for sure, _ in itertools.groupby(headers, lambda header: not header["is_transactional"]) if not sure]
    counted(part.path, 0, cw.Log(part.path).last_stable_offset, isolationLevel="read_committed")
    assert 0 < len(scanned) <= len(runs) < sum(header["is_control"] for header in headers)


def gone(path: Path, base_offset: int) -> None:
    for file in path.glob(f"{base_offset:020}.*"):
        file.unlink()


@pytest.mark.parametrize(("base_offset", "left"), [(0, 1100), (400, 1093), (1217, 1217)])
def test_a_segment_that_went_after_planning_is_no_smaller_count(
    copied: Callable[[Path], Path], caplog: pytest.LogCaptureFixture, base_offset: int, left: int
) -> None:
    path = copied(PLAIN.path)
    strict, pieces = planned(path, 0, 1500, maxPartitionBytes="100000000")
    gone(path, base_offset)
    with pytest.raises(SparkLogError, match="orders-0") as caught:
        records_of(pieces[0], strict)
    assert caught.value.code == SEGMENT_GONE
    lenient = SparkLogOptions.from_options({"path": str(path), "failOnDataLoss": "false"})
    assert records_of(pieces[0], lenient) == left
    assert SEGMENT_GONE in caplog.text


def test_a_segment_that_was_shortened_after_planning_is_no_smaller_count(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    strict, pieces = planned(path, 0, 1500)
    last = max(path.glob("*.log"))
    os.truncate(last, last.stat().st_size - 1)
    with pytest.raises(SparkLogError, match="shortened") as caught:
        records_of(pieces[0], strict)
    assert caught.value.code == SEGMENT_GONE
    lenient = SparkLogOptions.from_options({"path": str(path), "failOnDataLoss": "false"})
    assert records_of(pieces[0], lenient) == cw.Log(path).log_end_offset


def test_records_deleted_inside_a_batch_after_planning_are_not_counted(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    lenient, pieces = planned(path, 0, 1500, failOnDataLoss="false")
    (path.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 103\n")
    assert sum(records_of(piece, lenient) for piece in pieces) == 1397


def test_a_footer_tells_partitions_and_damage_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    error = pa.array([None, "bad", None, None], pa.string())
    one = pa.table({"partition": pa.array([3, None, 3, 3], pa.int32()), "_error": error})
    pq.write_table(one, path)
    assert (read_footer(path).rows, read_footer(path).records) == (4, {3: 3})
    mixed = pa.table({"partition": pa.array([3, None, 3, 4], pa.int32()), "_error": error})
    pq.write_table(mixed, path)
    assert read_footer(path).records == {3: 2, 4: 1}
    pq.write_table(mixed, path, write_statistics=False)
    assert read_footer(path).records == {3: 2, 4: 1}
    pq.write_table(mixed.slice(0, 0), path)
    assert (read_footer(path).rows, read_footer(path).records) == (0, {})


def test_offsets_are_frozen_as_options() -> None:
    data = corpus.GOLDEN / "16-data-dir"
    found = jobs.resolve_offsets(data, subscribe="cities")
    parts = [corpus.partition("16-data-dir", name) for name in ("cities-0", "cities-1")]
    assert json.loads(found["startingOffsets"]) == {"cities": {str(p.number): p.log_start for p in parts}}
    ends = {str(p.number): p.opened["logEndOffset"] for p in parts}
    assert json.loads(found["endingOffsets"]) == {"cities": ends}
    # what was frozen is frozen again to the same
    assert jobs.resolve_offsets(data, subscribe="cities", **found) == found


def test_offsets_of_what_was_committed_end_at_the_last_stable_one() -> None:
    part = corpus.partition("11-transactions")
    end = corpus.last_stable_offset(part, part.opened["logEndOffset"])
    for asked in ({}, {"endingOffsets": {part.topic: {str(part.number): part.opened["logEndOffset"]}}}):
        found = jobs.resolve_offsets(part.path, isolationLevel="read_committed", startingOffsets="earliest", **asked)
        assert json.loads(found["endingOffsets"]) == {part.topic: {str(part.number): end}}


def test_offsets_of_a_directory_without_a_name_are_refused(tmp_path: Path) -> None:
    shutil.copytree(PLAIN.path, tmp_path / "restored")
    with pytest.raises(cw.ConfigError, match="expected a name such as orders-0"):
        jobs.resolve_offsets(tmp_path / "restored")


@pytest.mark.parametrize("path", sorted(corpus.GOLDEN.glob("damaged/*/*-[0-9]*/")), ids=lambda path: path.parent.name)
def test_damage_is_counted_as_it_is_read(path: Path) -> None:
    log = cw.Log(path)
    start, end = log.log_start_offset, log.log_end_offset
    for mode, on_damage in (("FAILFAST", "raise"), ("DROPMALFORMED", "skip"), ("PERMISSIVE", "skip")):
        try:
            rows = log.scan(columns=["offset"], on_damage=on_damage).to_arrow().num_rows
        except cw.CorruptLogError:
            with pytest.raises(SparkLogError) as caught:
                counted(path, start, end, mode=mode)
            assert caught.value.code == CORRUPT_BATCH
            continue
        for piece_bytes in (1, 1_000, 10_000, 1 << 30):
            assert counted(path, start, end, mode=mode, maxPartitionBytes=str(piece_bytes)) == rows, (mode, piece_bytes)


def test_offsets_are_printed_without_spark(script_environment: dict[str, str]) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        # no Java is found there, so that none is started
        settings = {**script_environment, "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
        return subprocess.run(
            [sys.executable, "-m", "cordwood.spark", *arguments],
            env=settings,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = command("resolve-offsets", str(PLAIN.path), "--since", "2023-11-14T22:13:30Z")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "startingOffsets": '{"orders":{"0":488}}',
        "endingOffsets": '{"orders":{"0":1500}}',
    }
    for code, words, arguments in [
        (0, "segments", ("--help",)),
        (2, "is not a time", ("resolve-offsets", str(PLAIN.path), "--since", "soon")),
        (2, "did you mean subscribe?", ("resolve-offsets", str(PLAIN.path), "--option", "subscrib=x")),
        (2, "--help shows what is possible", ("exprot",)),
        (1, "install 17 or newer", ("count", str(PLAIN.path))),
    ]:
        done = command(*arguments)
        assert done.returncode == code, done.stderr
        assert words in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_chatter_is_left_out_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    from cordwood.spark.jobs import session

    chatter = ("WARNING: Using incubator modules: jdk.incubator.vector\n", 'Setting default log level to "WARN".\n')
    lines = "something happened\n".join(chatter)
    threads = set(threading.enumerate())
    with session._chatter_left_out():  # noqa: SLF001  (what starts a JVM)
        subprocess.run([sys.executable, "-c", f"import os; os.write(2, {lines.encode()!r})"], check=True)
    for thread in set(threading.enumerate()) - threads:
        thread.join()
    os.write(2, b"and this is ours\n")
    assert capfd.readouterr().err == "something happened\nand this is ours\n"
