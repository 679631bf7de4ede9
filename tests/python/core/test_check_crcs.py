"""`scan(check_crcs=False)`: checksums are verified only where they decide which batches there are."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from batches import TRANSACTIONAL, Rec, batch, marker, name, write_partition

import cordwood as cw


def test_flipped_bits_are_returned_as_data_and_the_scan_pickles(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", [(0, [batch(n, [Rec(b"value-%d" % n)]) for n in range(3)])])
    file = path / name(0)
    file.write_bytes(file.read_bytes().replace(b"value-1", b"valve-1"))
    log = cw.Log(path)
    with pytest.raises(cw.CorruptLogError, match="CRC"):
        log.scan(columns=["value"]).to_arrow()
    scan = log.scan(columns=["value"], check_crcs=False)
    for unchecked in (scan, pickle.loads(pickle.dumps(scan))):
        assert unchecked.to_arrow().column("value").to_pylist() == [b"value-0", b"valve-1", b"value-2"]


def flip(path: Path, value: bytes) -> None:
    file = path / name(0)
    file.write_bytes(file.read_bytes().replace(value, value.swapcase()))


def test_threads_return_the_same(tmp_path: Path) -> None:
    batches = [batch(n, [Rec(b"value-%d" % n + bytes(600_000))]) for n in range(10)]
    path = write_partition(tmp_path / "orders-0", [(0, batches)])
    flip(path, b"value-6")
    for threads in (1, 2):
        table = cw.Log(path).scan(columns=["value"], check_crcs=False, threads=threads).to_arrow()
        wanted = [b"VALUE-%d" % n if n == 6 else b"value-%d" % n for n in range(10)]
        assert [value[:7] for value in table.column("value").to_pylist()] == wanted


def test_the_last_batch_is_always_verified(tmp_path: Path) -> None:
    """The end of the log is where its valid batches end, as after a recovery."""
    path = write_partition(tmp_path / "orders-0", [(0, [batch(n, [Rec(b"value-%d" % n)]) for n in range(3)])])
    flip(path, b"value-2")
    log = cw.Log(path)
    assert log.log_end_offset == 2
    table = log.scan(columns=["value"], check_crcs=False).to_arrow()
    assert table.column("value").to_pylist() == [b"value-0", b"value-1"]


def test_committed_reads_are_verified(tmp_path: Path) -> None:
    """Otherwise a damaged batch of an aborted transaction would be returned."""
    aborted = batch(1, [Rec(b"aborted")], attributes=TRANSACTIONAL, producer_id=5, producer_epoch=0)
    batches = [batch(0, [Rec(b"first")]), aborted, marker(2, 5, commit=False), batch(3, [Rec(b"last")])]
    path = write_partition(tmp_path / "orders-0", [(0, batches)])
    flip(path, b"aborted")
    log = cw.Log(path)
    with pytest.raises(cw.CorruptLogError, match="CRC"):
        log.scan(isolation_level="read_committed", check_crcs=False).to_arrow()
    scan = log.scan(columns=["value"], isolation_level="read_committed", check_crcs=False, on_damage="skip")
    assert scan.to_arrow().column("value").to_pylist() == [b"first", b"last"]
    assert [damaged.start_offset for damaged in scan.damaged_ranges] == [1]


def test_another_type_than_bool_is_refused(tmp_path: Path) -> None:
    log = cw.Log(write_partition(tmp_path / "orders-0", [(0, [batch(0, [Rec(b"value")])])]))
    with pytest.raises(TypeError, match=r"^check_crcs: expected a bool"):
        log.scan(check_crcs="no")  # type: ignore[arg-type]
