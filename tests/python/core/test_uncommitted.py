"""`first_uncommitted`, the first returned record that read_committed leaves out, compared with a naive oracle."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import pytest

import cordwood as cw

TRANSACTIONAL = [p for p in corpus.partitions() if any(b["transactional"] for b in corpus.batches(p))]


def undone(part: corpus.Partition) -> set[int]:
    """The offsets of records whose transaction was aborted or has no marker, without markers."""
    aborted: set[int] = set()
    pending: dict[int, list[int]] = {}
    for record in corpus.records(part):
        if not record.batch["transactional"]:
            continue
        producer = record.batch["producerId"]
        if not record.is_control:
            pending.setdefault(producer, []).append(record.offset)
        elif record.control is not None:
            offsets = pending.pop(producer, [])
            aborted.update(offsets if record.control["type"] == "ABORT" else ())
    return aborted.union(*pending.values())


def wanted(part: corpus.Partition, given: list[int]) -> tuple[str, int] | None:
    found = sorted(undone(part).intersection(given))
    return (str(part.path), found[0]) if found else None


@pytest.mark.parametrize("part", TRANSACTIONAL, ids=str)
def test_the_first_record_of_an_aborted_or_open_transaction_is_found(part: corpus.Partition) -> None:
    log = cw.Log(part.path)
    dice = random.Random(13)
    start, end = log.log_start_offset, log.log_end_offset
    times = sorted({r.timestamp for r in corpus.visible(part)})
    for turn in range(150):
        low = dice.randint(start, end)
        ranges: dict[str, Any] = {"start_offset": low, "end_offset": dice.randint(low, end)}
        if turn % 3 == 0:
            bounds = sorted(dice.choices(times, k=2))
            ranges |= {"start_time": bounds[0], "end_time": bounds[1] + 1}
        more: dict[str, Any] = {"include_control": turn % 2 == 0}
        scan = log.scan(**ranges, **more, columns=["offset"], threads=1 + turn % 3, max_rows=dice.choice([7, 65_536]))
        given = scan.to_arrow()["offset"].to_pylist()
        assert scan.first_uncommitted == wanted(part, given), ranges
        records = log.records(**ranges, **more)
        assert [r.offset for r in records] == given
        assert records.first_uncommitted == wanted(part, given), ranges


def test_some_logs_have_such_records_and_some_have_none() -> None:
    found = {bool(undone(part)) for part in TRANSACTIONAL}
    assert found == {True, False}
    for part in corpus.partitions():
        if part not in TRANSACTIONAL:
            records = cw.Log(part.path).records()
            assert sum(1 for _ in records) == len(corpus.visible(part))
            assert records.first_uncommitted is None


def test_a_committed_reading_gives_none() -> None:
    part = corpus.partition("11-transactions")
    scan = cw.Log(part.path).scan(isolation_level="read_committed", columns=["offset"])
    assert scan.to_arrow().num_rows == len(corpus.committed(part, cw.Log(part.path).log_end_offset))
    assert scan.first_uncommitted is None


def test_no_more_is_read_than_necessary(copied: Callable[..., Path]) -> None:
    """A log without transactions is read once; after a range, only the required markers are read."""
    plain = cw.Log(corpus.partition("01-plain").path).scan(columns=["offset"])
    plain.to_arrow()
    before = plain.stats
    assert plain.first_uncommitted is None
    assert plain.stats == before
    part = corpus.partition("11-transactions")
    path = copied(part.path)
    # the required markers are in the first segments, so damage in the last one has no effect
    last = max(path.glob("*.log"))
    last.write_bytes(b"\xff" * last.stat().st_size)
    log = cw.Log(path)
    records = log.records(end_offset=min(undone(part)) + 1)
    given = [r.offset for r in records]
    assert records.first_uncommitted == (str(path), given[-1])


def test_the_partition_is_named_in_a_data_directory() -> None:
    scan = cw.LogDir(corpus.GOLDEN / "16-data-dir").scan(columns=["offset"])
    scan.to_arrow()
    parts = [part for part in TRANSACTIONAL if part.case == "16-data-dir" and undone(part)]
    paths = {str(part.path) for part in parts}
    assert parts
    assert scan.first_uncommitted is not None
    assert scan.first_uncommitted[0] in paths


def records_of(scan: cw.Scan) -> set[int]:
    """The offsets of the records, without rows about damage, which have an error."""
    rows = scan.to_arrow().to_pylist()
    return {row["offset"] for row in rows if row.get("error") is None}


@pytest.mark.parametrize("on_damage", ["skip", "report"])
def test_records_whose_marker_may_be_damaged_are_uncommitted(copied: Callable[..., Path], on_damage: Any) -> None:
    """A read_committed scan leaves them out."""
    part = corpus.partition("11-transactions")
    controls = [b for b in corpus.batches(part) if b["control"]]
    marker = controls[0]
    path = copied(part.path)
    file = path / f"{marker['segment']:020d}.log"
    data = bytearray(file.read_bytes())
    data[marker["position"] + marker["size"] - 1] ^= 1
    file.write_bytes(data)
    for index in path.glob("*.txnindex"):
        index.unlink()
    log = cw.Log(path)
    scan = log.scan(on_damage=on_damage, columns=["offset"], end_offset=marker["baseOffset"] + 1)
    committed = log.scan(on_damage=on_damage, isolation_level="read_committed", columns=["offset"])
    given, seen = records_of(scan), records_of(committed)
    left_out = {offset for offset in given if offset not in seen and offset < marker["baseOffset"]}
    assert left_out
    assert scan.first_uncommitted == (str(path), min(left_out))


def test_a_record_that_was_read_ahead_and_not_returned_does_not_count() -> None:
    """One call of the core reads many records."""
    log = cw.Log(corpus.GOLDEN / "11-transactions" / "payments-0")
    first = log.scan()
    first.to_arrow()
    assert first.first_uncommitted is not None
    offset = first.first_uncommitted[1]
    records = log.records()
    for record in records:
        assert (records.first_uncommitted is None) == (record.offset < offset)
        if record.offset == offset:
            break
