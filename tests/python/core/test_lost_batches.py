"""A batch that was taken out of a log that is not compacted: every reader says so.

The records that remain, and the missing offsets, are Kafka's own dump of the log without one batch.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import commands
import corpus
import pytest
from corpus import GOLDEN, Partition

import cordwood as cw

# written by a broker, in one leader epoch, with several batches in a segment
PLAIN = ("01-plain", "02-gzip", "05-zstd", "10-idempotent", "01-small")


def without_batch(part: Partition, path: Path, number: int) -> tuple[int, int]:
    """Copy a partition without a batch that has others around it in its segment. Return the missing offsets."""
    shutil.copytree(part.path, path)
    batches = list(corpus.batches(part))
    inner = [
        (before, batch)
        for before, batch, after in zip(batches, batches[1:], batches[2:], strict=False)
        if before["segment"] == batch["segment"] == after["segment"]
    ]
    before, batch = inner[number % len(inner)]
    file = path / f"{batch['segment']:020}.log"
    content = file.read_bytes()
    start, end = before["position"] + before["size"], batch["position"] + batch["size"]
    file.write_bytes(content[:start] + content[end:])
    for index in path.glob("*.*index"):
        index.unlink()
    return before["lastOffset"] + 1, batch["lastOffset"] + 1


@pytest.mark.parametrize("number", [0, 7, -1])
@pytest.mark.parametrize("case", PLAIN)
def test_a_lost_batch_is_a_warning_of_every_reader(
    case: str, number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    part = next(part for part in corpus.partitions() if part.case == case)
    path = tmp_path / part.path.name
    start, end = without_batch(part, path, number)
    text = f"offsets {start} to {end - 1} are missing" if end - start > 1 else f"offset {start} is missing"
    log = cw.Log(path)
    assert not log.is_compacted
    with caplog.at_level(logging.WARNING, "cordwood"):
        offsets = [record.offset for record in log.records()]
        log.scan().to_arrow()
    assert not set(offsets) & set(range(start, end))
    assert any(text in warning for warning in log.warnings)
    assert any(text in record.message for record in caplog.records)
    for command in (("cat", path), ("count", path)):
        done = commands.cordwood(*command)
        assert text in done.stderr.decode(), command


def test_a_scan_counts_lost_gaps(tmp_path: Path) -> None:
    part = corpus.partition("01-plain")
    path = tmp_path / part.path.name
    start, end = without_batch(part, path, 3)
    scan = cw.Log(path).scan()
    scan.to_arrow()
    assert (scan.stats.lost_gaps, scan.stats.offset_gaps) == (1, 1)
    # in each range with some of the missing offsets
    counts = []
    for low, high in pairwise((0, start, start + 1, end, cw.Log(path).log_end_offset)):
        scan = cw.Log(path).scan(start_offset=low, end_offset=high)
        scan.to_arrow()
        counts.append(scan.stats.lost_gaps)
    assert counts == [0, 1, 1, 0]


@pytest.mark.parametrize("place", ["start", "inside", "last"])
def test_a_range_that_begins_inside_a_gap_warns_as_one_that_begins_before_it(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    part = corpus.partition("01-plain")
    path = tmp_path / part.path.name
    start, end = without_batch(part, path, 3)
    assert end - start > 2
    offset = {"start": start, "inside": start + 1, "last": end - 1}[place]
    text = f"offsets {start} to {end - 1} are missing"
    readers: list[Callable[[cw.Log], object]] = [
        lambda log: log.scan(start_offset=offset).to_arrow(),
        lambda log: list(log.records(start_offset=offset)),
        lambda log: list(log.follow(offset, timeout=0)),
        lambda log: log.scan(start_offset=offset, isolation_level="read_committed").to_arrow(),
        lambda log: [log.scan(split=split).to_arrow() for split in log.plan(start_offset=offset, max_bytes=2000)],
    ]
    for read in readers:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "cordwood"):
            read(cw.Log(path))
        assert [record.message for record in caplog.records if text in record.message], read
    assert text in commands.cordwood("cat", path, "--start-offset", str(offset)).stderr.decode()
    # the next batch begins after the gap
    caplog.clear()
    with caplog.at_level(logging.WARNING, "cordwood"):
        list(cw.Log(path).records(start_offset=end))
    assert not caplog.records


@pytest.mark.parametrize("part", corpus.partitions(), ids=lambda part: f"{part.case}/{part.name}")
def test_logs_as_kafka_wrote_them_have_no_lost_batch(part: Partition) -> None:
    log = cw.Log(part.path)
    scan = log.scan(on_damage="skip")
    scan.to_arrow()
    assert (scan.stats.lost_gaps, [text for text in log.warnings if "lost" in text]) == (0, [])


def test_compaction_that_removes_whole_batches_only_is_known_by_traces_elsewhere(tmp_path: Path) -> None:
    """The gaps of a log that Kafka compacted, most of which have no rewritten batch beside them."""
    path = tmp_path / "profiles-0"
    shutil.copytree(GOLDEN / "12-compacted" / "profiles-0", path)
    log = cw.Log(path)
    assert log.is_compacted
    scan = log.scan()
    scan.to_arrow()
    assert scan.stats.offset_gaps > 0
    assert (scan.stats.lost_gaps, log.warnings) == (0, [])
