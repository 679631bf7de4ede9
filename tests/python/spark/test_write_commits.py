"""What of a write is in the logs: all of it after a commit, and nothing otherwise."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from cordwood.spark import errors
from cordwood.spark.write import commit as commits
from cordwood.spark.write import journal as journals
from cordwood.spark.write import staging
from cordwood.spark.write.journal import Commit, Journal
from spark.reading import refuses
from spark.writing import Sink, all_texts, left, texts, values

pytestmark = pytest.mark.python_source


def orders(path: Path, partitions: int = 2, **options: Any) -> Sink:
    """A write to a topic, which has so many partitions if it is new."""
    count = {} if (path / "orders-0").exists() else {"numPartitions": partitions}
    return Sink(path, "value", "partition", topic="orders", **count, **options)


def placed(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"value": text.encode(), "partition": number} for number, text in pairs]


def test_an_append_continues_the_logs_in_the_order_of_the_tasks(root: Path) -> None:
    orders(root).run(placed((0, "a"), (1, "b")), placed((0, "c")))
    orders(root).run(placed((0, "d")), [], placed((1, "e"), (0, "f")))
    assert [texts(root / f"orders-{n}") for n in range(2)] == [["a", "c", "d", "f"], ["b", "e"]]
    assert left(root) == []


def test_only_the_attempts_whose_messages_are_committed_count(root: Path) -> None:
    """As with speculative tasks, and with tasks that are run again."""
    sink = orders(root)
    first = [sink.stage(0, placed((0, "a"))) for _ in range(3)]
    second = [sink.stage(1, placed((0, "b"), (1, "c"))) for _ in range(2)]
    sink.commit([first[1], second[0]])
    assert all_texts(root) == Counter("abc")
    assert left(root) == []
    # an attempt that ends after the commit is not read
    sink.stage(0, placed((0, "late")))
    orders(root).run(placed((1, "d")))
    assert all_texts(root) == Counter("abcd")


def test_a_commit_without_the_message_of_a_task_is_refused(root: Path) -> None:
    sink = orders(root)
    with refuses("CORDWOOD_INTERNAL", "message"):
        sink.commit([sink.stage(0, placed((0, "a"))), None])
    assert all_texts(root) == Counter()


def test_a_task_that_fails_leaves_nothing(root: Path) -> None:
    sink = orders(root)
    with pytest.raises(RuntimeError, match="no more"):
        sink.stage(0, *Failing())
    sink.abort([None])
    assert list(root.iterdir()) == []


class Failing:
    """Batches of which the second cannot be had."""

    def __iter__(self) -> Any:
        yield placed((0, "a"))
        raise RuntimeError("no more")


def test_an_aborted_write_leaves_nothing(root: Path) -> None:
    orders(root).run(placed((0, "a")))
    before = sorted(path.name for path in (root / "orders-0").iterdir())
    sink = orders(root)
    sink.abort([sink.stage(0, placed((0, "b"), (1, "c"))), None])
    assert all_texts(root) == Counter("a")
    assert sorted(path.name for path in root.iterdir()) == ["orders-0", "orders-1"]
    assert sorted(path.name for path in (root / "orders-0").iterdir()) == before


def test_an_overwrite_replaces_the_topic(root: Path) -> None:
    orders(root, 3).run(placed(*((n % 3, str(n)) for n in range(30))))
    Sink(root, "value", topic="others").run(values("kept"))
    orders(root, overwrite=True).run(placed((0, "a"), (1, "b")))
    assert [texts(root / f"orders-{n}") for n in range(3)] == [["a"], ["b"], []]
    assert texts(root / "others-0") == ["kept"]
    assert left(root) == []
    # offsets are not used again
    assert [cw.Log(root / f"orders-{n}").log_start_offset for n in range(3)] == [10, 10, 10]
    # and the files of the older records are deleted
    assert min(segment.base_offset for segment in cw.Log(root / "orders-0").segments) == 10


def test_an_overwrite_without_rows_empties_the_topic(root: Path) -> None:
    orders(root).run(placed((0, "a"), (1, "b")))
    orders(root, overwrite=True).run([])
    assert all_texts(root) == Counter()
    orders(root).run(placed((0, "c")))
    assert all_texts(root) == Counter("c")


def test_an_overwrite_of_rows_with_topics_replaces_those_topics(root: Path) -> None:
    def write(*pairs: tuple[str, str], **options: Any) -> None:
        rows = [{"topic": topic, "value": text.encode()} for topic, text in pairs]
        Sink(root, "topic", "value", **options).run(rows)

    write(("x", "a"), ("y", "b"))
    write(("x", "c"), overwrite=True)
    assert [texts(root / "x-0"), texts(root / "y-0")] == [["c"], ["b"]]


def test_an_overwrite_of_a_partition_leaves_the_others(root: Path) -> None:
    orders(root).run(placed((0, "a"), (1, "b")))
    Sink(root / "orders-1", "value", overwrite=True).run(values("c"))
    assert [texts(root / f"orders-{n}") for n in range(2)] == [["a"], ["c"]]


@pytest.mark.parametrize("buffer_bytes", [1, 100, 1 << 20])
def test_rows_are_collected_for_each_partition(root: Path, monkeypatch: pytest.MonkeyPatch, buffer_bytes: int) -> None:
    monkeypatch.setattr(staging, "_BUFFER_BYTES", buffer_bytes)
    sink = orders(root, 5)
    rounds = [placed(*((n, f"{n}.{turn}") for n in range(5))) for turn in range(3)]
    message = sink.stage(0, *rounds)
    assert len(left(root)) == 1
    sink.commit([message])
    assert [texts(root / f"orders-{n}") for n in range(5)] == [[f"{n}.{t}" for t in range(3)] for n in range(5)]


def test_a_commit_to_many_partitions_raises_the_limit_of_open_files(root: Path) -> None:
    sink = orders(root, 60)
    message = sink.stage(0, placed(*((n, str(n)) for n in range(60))))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 100, before[1]))
        sink.commit([message])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert all_texts(root) == Counter(map(str, range(60)))


def test_large_logs_are_appended_piece_by_piece(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_CHUNK_BYTES", 5000)
    given = [str(n) * 50 for n in range(1000)]
    settings = {"kafka__max__message__bytes": 3000, "kafka__internal__segment__bytes": 20_000}
    Sink(root, "value", topic="orders", **settings).run(values(*given))
    assert texts(root / "orders-0") == given


def test_a_log_that_a_broker_has_is_refused_before_a_task_runs(root: Path) -> None:
    orders(root).run(placed((0, "a")))
    (root / "meta.properties").write_text("version=1\n")
    with (root / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        # a lock of the same process does not conflict, so another one tries
        child = os.fork()
        if child == 0:
            code = 1
            try:
                orders(root)
            except errors.SparkLogError as error:
                code = 0 if error.code == "CORDWOOD_LOCKED" else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0


def test_a_commit_waits_for_another_writer_and_then_fails_as_a_whole(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "_LOCK_WAIT_SECONDS", 0.2)
    orders(root).run(placed((0, "a"), (1, "b")))
    sink = orders(root)
    message = sink.stage(0, placed((0, "c"), (1, "d")))
    with cw.LogWriter(root / "orders-1") as other:
        start = time.monotonic()
        with refuses("CORDWOOD_LOCKED"):
            sink.commit([message])
        assert time.monotonic() - start >= 0.2
        other.append("e")
    assert all_texts(root) == Counter("abe")
    # the message is good until the write is aborted
    sink.commit([message])
    assert [texts(root / f"orders-{n}") for n in range(2)] == [["a", "c"], ["b", "e", "d"]]


def test_a_staged_log_that_is_missing_or_short_fails_the_commit(root: Path) -> None:
    orders(root).run(placed((0, "a"), (1, "b")))
    sink = orders(root)
    message = sink.stage(0, placed((0, "c"), (1, "d")))
    (staged,) = root.rglob("staged/*/*/*.log")
    staged.write_bytes(b"")
    with refuses("CORDWOOD_SEGMENT_GONE", "the 2 records"):
        sink.commit([message])
    shutil.rmtree(staged.parent)
    with refuses("CORDWOOD_NOT_FOUND"):
        sink.commit([message])
    assert all_texts(root) == Counter("ab")


def test_two_writes_at_the_same_time_do_not_disturb_each_other(root: Path) -> None:
    one, other = orders(root), orders(root)
    messages = [sink.stage(0, placed((0, text))) for sink, text in ((one, "a"), (other, "b"))]
    one.commit([messages[0]])
    other.commit([messages[1]])
    assert texts(root / "orders-0") == ["a", "b"]


def test_staged_logs_that_nobody_commits_are_removed_after_a_week(root: Path) -> None:
    orders(root).stage(0, placed((0, "a"), (1, "b")))
    cw.LogWriter(root / "orders-2").close()
    Sink(root / "orders-2", "value").run(values("c"))
    assert len(left(root)) == 1
    week = 7 * 24 * 3600 + 60
    for path in root.rglob("staged/**/*"):
        os.utime(path, (time.time() - week,) * 2)
    for path in root.rglob("staged/*"):
        os.utime(path, (time.time() - week,) * 2)
    Sink(root / "orders-2", "value").run(values("d"))
    assert [path.name for path in root.iterdir()] == ["orders-2"]


def test_a_commit_counts_also_if_its_staged_logs_cannot_be_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error would make Spark write the rows again."""

    def fail(_: Journal, __: str) -> None:
        raise PermissionError(13, "Permission denied")

    sink = Sink(root, topic="orders")
    messages = [sink.stage(0, values("a"))]
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "remove_staged", fail)
        sink.commit(messages)
    assert texts(root / "orders-0") == ["a"]


def test_what_another_process_removes_meanwhile_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that began before a partition had a segment may find its directories empty."""
    journal, removed = Journal(str(root)), []
    write = journals._write  # noqa: SLF001  (the step that is disturbed)

    def removing(path: Path, commit: Commit) -> None:
        if not removed:
            path.parent.rmdir()
            removed.append(path)
        write(path, commit)

    with monkeypatch.context() as patch:
        patch.setattr(journals, "_write", removing)
        Sink(root, topic="orders").run(values("a"))
    assert texts(root / "orders-0") == ["a"]
    assert len(removed) == 1
    monkeypatch.setattr(Journal, "partitions", lambda _: iter([("orders-1", "orders", 1)]))
    assert journal.existing() == {}
    assert journal.unfinished() == []


def test_a_directory_that_somebody_made_for_a_partition_is_not_removed(root: Path) -> None:
    (root / "orders-7").mkdir()
    orders(root).run(placed((0, "a")))
    assert (root / "orders-7").is_dir()
