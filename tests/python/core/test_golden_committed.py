"""The records of real consumers with each isolation level, and the same derived from the markers."""

from __future__ import annotations

import pickle
from typing import Any

import corpus
import pytest
from corpus import Partition
from tables import expected_rows, first_difference, offsets, rows

import cordwood as cw

every_partition = pytest.mark.parametrize("part", corpus.partitions(), ids=str)


def told(level: str) -> list[tuple[Partition, list[dict[str, Any]]]]:
    """Partitions that a consumer with this isolation level read, with its results."""
    found = []
    for part in corpus.partitions():
        answers = [
            line for line in part.lines("client.jsonl") if line["type"] == "consumer" and line["isolation"] == level
        ]
        if answers:
            found.append((part, answers))
    return found


@pytest.mark.parametrize(
    ("part", "answers"), told("read_uncommitted"), ids=lambda v: str(v) if isinstance(v, Partition) else ""
)
def test_read_uncommitted_returns_the_records_of_a_consumer(part: Partition, answers: list[dict[str, Any]]) -> None:
    log = cw.Log(part.path)
    for answer in answers:
        got = offsets(log.scan(isolation_level="read_uncommitted", columns=["offset"]).to_arrow())
        assert got == corpus.offsets_of_ranges(answer["offsets"])
        assert len(got) == answer["records"]


@pytest.mark.parametrize(
    ("part", "answers"), told("read_committed"), ids=lambda v: str(v) if isinstance(v, Partition) else ""
)
def test_read_committed_returns_the_records_of_a_consumer(part: Partition, answers: list[dict[str, Any]]) -> None:
    log = cw.Log(part.path)
    for answer in answers:
        got = offsets(log.scan(isolation_level="read_committed", columns=["offset"]).to_arrow())
        assert got == corpus.offsets_of_ranges(answer["offsets"])
        assert len(got) == answer["records"]
        assert log.last_stable_offset == answer["endOffset"]


def test_consumers_were_asked_about_transactions() -> None:
    assert {part.case for part, _ in told("read_committed")} >= {
        "11-transactions",
        "12-compacted-empty",
        "14-killed-transactions",
    }


@every_partition
def test_read_committed_equals_a_linear_read_of_the_markers(part: Partition) -> None:
    log = cw.Log(part.path)
    wanted = corpus.committed(part, part.opened["logEndOffset"])
    assert first_difference(rows(log.scan(isolation_level="read_committed").to_arrow()), expected_rows(wanted)) == ""


@every_partition
def test_committed_records_equal_the_scan(part: Partition) -> None:
    got = [r.offset for r in cw.Log(part.path).records(isolation_level="read_committed")]
    assert got == [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]


@every_partition
def test_the_last_stable_offset_equals_kafkas(part: Partition) -> None:
    assert cw.Log(part.path).last_stable_offset == part.opened["lastStableOffset"]


@every_partition
def test_committed_reads_do_not_need_the_transaction_index(part: Partition, copied: Any) -> None:
    path = copied(part.path)
    for file in [*path.glob("*index"), *path.glob("*.snapshot")]:
        file.unlink()
    log = cw.Log(path, log_start_offset=part.log_start)
    got = offsets(log.scan(isolation_level="read_committed", columns=["offset"]).to_arrow())
    assert got == [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]
    assert log.last_stable_offset == part.opened["lastStableOffset"]


TRANSACTIONAL = ["11-transactions", "14-killed-transactions", "21-follower", "21-replica-leader"]


@pytest.mark.parametrize("case", TRANSACTIONAL)
def test_a_committed_range_is_that_part_of_the_committed_log(case: str) -> None:
    """A range may begin inside an aborted transaction whose marker is after the end of the range."""
    part = corpus.partition(case)
    log = cw.Log(part.path)
    committed = [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]
    end = log.log_end_offset
    for start in range(0, end, max(1, end // 97)):
        stop = min(end, start + 41)
        scan = log.scan(start_offset=start, end_offset=stop, isolation_level="read_committed", columns=["offset"])
        assert offsets(scan.to_arrow()) == [o for o in committed if start <= o < stop], start


@pytest.mark.parametrize("case", TRANSACTIONAL)
def test_committed_markers_come_with_include_control_below_the_last_stable_offset(case: str) -> None:
    part = corpus.partition(case)
    log = cw.Log(part.path)
    scan = log.scan(isolation_level="read_committed", include_control=True, columns=["offset"])
    stable = part.opened["lastStableOffset"]
    data = [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]
    markers = [r.offset for r in corpus.records(part) if r.is_control and r.offset < stable]
    assert offsets(scan.to_arrow()) == sorted(data + markers)


@pytest.mark.parametrize("case", TRANSACTIONAL)
@pytest.mark.parametrize("threads", [1, 2])
def test_committed_splits_add_up_to_the_committed_log(case: str, threads: int) -> None:
    """A split may be inside a transaction that begins before it and ends after it."""
    part = corpus.partition(case)
    log = cw.Log(part.path)
    got = []
    for split in log.plan(4096):
        scan = log.scan(split=split, isolation_level="read_committed", columns=["offset"], threads=threads)
        got += offsets(scan.to_arrow())
    assert got == [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]


@pytest.mark.parametrize("case", TRANSACTIONAL)
@pytest.mark.parametrize("threads", [1, 2])
def test_committed_splits_contain_the_aborted_transactions(case: str, threads: int) -> None:
    part = corpus.partition(case)
    splits = cw.Log(part.path).plan(4096, isolation_level="read_committed")
    got = []
    for split in splits:
        assert split.aborted is not None
        assert all(first < split.end_offset and last >= split.start_offset for _, first, last in split.aborted)
        assert pickle.loads(pickle.dumps(split)) == split
        scan = cw.Log(part.path).scan(
            split=split, isolation_level="read_committed", columns=["offset"], threads=threads
        )
        got += offsets(pickle.loads(pickle.dumps(scan)).to_arrow())
        assert offsets(scan.to_arrow()) == got[len(got) - scan.stats.records :]
    assert got == [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]
    assert all(split.aborted is None for split in cw.Log(part.path).plan(4096))


def test_the_aborted_transactions_of_a_split_are_part_of_its_value() -> None:
    split = cw.Split("/data/t-0", 0, 10, aborted=[(7, 2, 4)])
    assert split.aborted == [(7, 2, 4)]
    assert split != cw.Split("/data/t-0", 0, 10)
    assert cw.Split("/data/t-0", 0, 10).aborted is None
