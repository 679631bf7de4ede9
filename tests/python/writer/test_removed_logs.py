"""A log that is removed or replaced under its writer: nothing is acknowledged that nobody can find.

A removed file can still be written and synced by the process that has it open.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cordwood as cw

LOG = f"{0:020}.log"


def remove_all(path: Path) -> None:
    shutil.rmtree(path)


def remove_active(path: Path) -> None:
    (path / LOG).unlink()


def remove_linked(path: Path) -> None:
    """Remove the name of a file that has another one, as in a copy by hard links."""
    os.link(path / LOG, path.parent / "copy")
    (path / LOG).unlink()


def replace_active(path: Path) -> None:
    copy = path.parent / "copy"
    shutil.copy(path / LOG, copy)
    copy.rename(path / LOG)


def replace_all(path: Path) -> None:
    path.rename(path.with_name("moved-0"))
    shutil.copytree(path.with_name("moved-0"), path)


REMOVALS = [remove_all, remove_active, remove_linked, replace_active, replace_all]

Acknowledge = Callable[[cw.LogWriter], object]


def flushed(writer: cw.LogWriter) -> None:
    writer.append("b")
    writer.flush()


def waited_for(writer: cw.LogWriter) -> None:
    writer.wait_durable(writer.append("b").last_offset)


def in_transaction(writer: cw.LogWriter) -> None:
    with writer.transaction("billing") as transaction:
        transaction.append("b")


def by_producer(writer: cw.LogWriter) -> None:
    writer.producer("billing").append("b")


ALWAYS: list[Acknowledge] = [lambda writer: writer.append("b"), by_producer, in_transaction]
LATER: list[Acknowledge] = [flushed, waited_for]


def expect_failure(writer: cw.LogWriter, acknowledge: Acknowledge, path: Path, remove: Callable[[Path], None]) -> None:
    with pytest.raises(cw.LogNotFoundError, match="removed or replaced") as failed:
        acknowledge(writer)
    assert failed.value.file == str(path if remove is replace_all else path / LOG)
    for call in (lambda: writer.append("c"), writer.flush, writer.roll, writer.close):
        with pytest.raises(cw.PoisonedError):
            call()


@pytest.mark.parametrize("remove", REMOVALS)
@pytest.mark.parametrize("acknowledge", ALWAYS)
def test_no_append_to_a_removed_log_is_acknowledged(
    tmp_path: Path, remove: Callable[[Path], None], acknowledge: Acknowledge
) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path)
    assert writer.append("a").durable
    # the small files of producers are written before the removal
    writer.producer("billing")
    remove(path)
    if acknowledge is in_transaction:
        with pytest.raises((cw.CordwoodError, OSError)):
            acknowledge(writer)
    else:
        expect_failure(writer, acknowledge, path, remove)


@pytest.mark.parametrize("remove", REMOVALS)
@pytest.mark.parametrize("acknowledge", LATER)
@pytest.mark.parametrize("flush", ["none", cw.FlushMode.interval(messages=1000)])
def test_no_flush_of_a_removed_log_is_acknowledged(
    tmp_path: Path, remove: Callable[[Path], None], acknowledge: Acknowledge, flush: object
) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path, flush=flush)  # type: ignore[arg-type]
    writer.append("a")
    writer.flush()
    remove(path)
    expect_failure(writer, acknowledge, path, remove)


@pytest.mark.parametrize("remove", REMOVALS)
def test_a_roll_of_a_removed_log_poisons_the_writer(tmp_path: Path, remove: Callable[[Path], None]) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path)
    writer.append("a")
    remove(path)
    expect_failure(writer, lambda writer: writer.roll(), path, remove)


@pytest.mark.parametrize("remove", REMOVALS)
def test_the_close_of_a_removed_log_fails_and_leaves_no_clean_marker(
    tmp_path: Path, remove: Callable[[Path], None]
) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path, flush="none")
    writer.append("a")
    remove(path)
    with pytest.raises(cw.LogNotFoundError):
        writer.close()
    assert not list(tmp_path.rglob(".cordwood.clean"))


def test_a_second_writer_of_the_path_is_the_only_one_that_acknowledges(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    first = cw.LogWriter(path)
    first.append("a")
    shutil.rmtree(path)
    with cw.LogWriter(path) as second:
        assert second.append("b").durable
        with pytest.raises(cw.LogNotFoundError):
            first.append("c")
    assert [record.value for record in cw.Log(path).records()] == [b"b"]


def test_a_moved_log_is_written_on_under_its_new_path(tmp_path: Path) -> None:
    path, moved = tmp_path / "orders-0", tmp_path / "moved-0"
    writer = cw.LogWriter(path)
    writer.append("a")
    path.rename(moved)
    assert writer.append("b").durable
    writer.roll()
    assert writer.append("c").durable
    writer.close()
    with cw.LogWriter(moved) as again:
        assert again.recovery is None
    assert [record.value for record in cw.Log(moved).records()] == [b"a", b"b", b"c"]


def test_the_writer_goes_on_after_truncations_retention_and_compaction(tmp_path: Path) -> None:
    """They replace and remove files too."""
    config = cw.LogConfig(segment_bytes=300, cleanup_policy="compact,delete", min_cleanable_dirty_ratio=0.0)
    with cw.LogWriter(tmp_path / "orders-0", config=config) as writer:
        for number in range(40):
            writer.append("v" * 40, key=f"k{number % 3}")
        writer.compact()
        assert writer.append("b", key="b").durable
        writer.truncate_to(20)
        assert writer.append("b", key="b").durable
        writer.delete_before(writer.log_end_offset)
        assert writer.append("b", key="b").durable
        writer.truncate_fully_and_start_at(100)
        assert writer.append("b", key="b").durable
        writer.apply_retention("2999-01-01")
        assert writer.append("b", key="b").durable


@pytest.mark.parametrize("is_replaced", [False, True])
def test_no_append_without_its_lock_is_acknowledged(tmp_path: Path, is_replaced: bool) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path)
    writer.append("a")
    (path / ".cordwood.lock").unlink()
    if is_replaced:
        with cw.LogWriter(path) as other:
            assert other.append("b").first_offset == 1
    with pytest.raises(cw.LogNotFoundError, match="the lock of the writer was removed"):
        writer.append("c")
    for call in (lambda: writer.append("d"), writer.close):
        with pytest.raises(cw.PoisonedError):
            call()
