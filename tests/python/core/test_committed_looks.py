"""The cost of a look of a committed follower: what is new, not the whole log."""

from __future__ import annotations

from pathlib import Path

import pytest

import cordwood as cw

VALUE = bytes(20_000)


def bytes_read() -> int:
    """The bytes that this process has read by system calls so far."""
    lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


@pytest.mark.parametrize("segment_bytes", [1 << 20, 1 << 30])
@pytest.mark.parametrize("is_in_transaction", [False, True])
def test_a_committed_follower_reads_only_what_is_new(
    tmp_path: Path, segment_bytes: int, is_in_transaction: bool
) -> None:
    config = cw.LogConfig(segment_bytes=segment_bytes)
    with cw.LogWriter(tmp_path / "jobs-0", config=config, flush="none") as writer:
        for number in range(20):
            with writer.transaction(f"id-{number % 3}") as transaction:
                for _ in range(25):
                    transaction.append(VALUE)
        end = writer.log_end_offset
        with cw.Log(writer.path, io="pread").follow(end, timeout=0, isolation_level="read_committed") as follow:
            assert list(follow) == []
        log = cw.Log(writer.path, io="pread")
        before = bytes_read()
        assert log.last_stable_offset == end
        assert bytes_read() - before > 10 * len(VALUE), "the first look reads the whole log"
        for _ in range(20):
            if is_in_transaction:
                with writer.transaction("id-1") as transaction:
                    transaction.append(b"v")
            else:
                writer.append(b"v")
            before = bytes_read()
            log = log.refresh()
            assert log.last_stable_offset == writer.log_end_offset
            # what is read again is at most a few batches
            assert bytes_read() - before < 400_000
            assert cw.Log(writer.path).last_stable_offset == writer.log_end_offset


def test_an_open_transaction_holds_a_refreshed_log_back_until_it_ends(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "jobs-0", flush="none") as writer:
        writer.append(b"first")
        log = cw.Log(writer.path)
        assert log.last_stable_offset == 1
        transaction = writer.transaction("id-0")
        with transaction:
            for number in range(10):
                transaction.append(VALUE)
                writer.append(b"plain")
                log = log.refresh()
                assert (log.last_stable_offset, log.log_end_offset) == (1, 3 + 2 * number)
        log = log.refresh()
        assert log.last_stable_offset == log.log_end_offset == 22
