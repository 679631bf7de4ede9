"""Interrupted replacements of segments, and what is left of the replaced ones, beside Kafka's `LogLoader`."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from batches import Rec, batch, name

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.twins import our_lines

SETTINGS = {"retention.ms": -1}
ENDS = {"missing": None, "empty": 0, "shorter": 2, "whole": 5, "longer": 7}
"""How many records of five are left of an original."""


def rows(start: int, end: int) -> bytes:
    return b"".join(batch(n, [Rec(b"%d" % n, b"k%d" % n, 1000 + n)]) for n in range(start, end))


def write(partition: Path, swaps: tuple[int, ...], originals: tuple[str, str], *, has_next: bool) -> None:
    partition.mkdir()
    for base in swaps:
        (partition / f"{name(base)}.swap").write_bytes(rows(base, base + 5))
    for base, state in zip((0, 5), originals, strict=True):
        if (count := ENDS[state]) is not None:
            (partition / name(base)).write_bytes(rows(base, base + count))
    if has_next:
        (partition / name(20)).write_bytes(rows(20, 22))


@pytest.mark.parametrize("swaps", [(0, 5), (0,), (5,)], ids=str)
@pytest.mark.parametrize("has_next", [True, False])
def test_committed_replacements_are_read_and_finished_as_in_kafka(
    kafka: KafkaClasses, tmp_path: Path, swaps: tuple[int, ...], has_next: bool
) -> None:
    for number, originals in enumerate(itertools.product(ENDS, ENDS)):
        # a longer first segment overlaps the second one
        if originals[0] == "longer" and (originals[1] != "missing" or 5 in swaps):
            continue
        partition = tmp_path / f"t{number}-0"
        write(partition, swaps, originals, has_next=has_next)
        kafkas = kafka.ask("open", dir=partition, settings=SETTINGS, clean=True, lines=True)
        log = cw.Log(partition)
        assert our_lines(log) == kafkas["records"]["lines"], originals
        assert log.log_end_offset == kafkas["log_end_offset"], originals
        with cw.LogWriter(partition) as writer:
            assert writer.log_end_offset == kafkas["log_end_offset"], originals
        assert our_lines(cw.Log(partition)) == kafkas["records"]["lines"], originals
        assert not list(partition.glob("*.swap"))


def test_a_replacement_that_lacks_batches_of_shorter_segments_is_refused(tmp_path: Path) -> None:
    """A flipped bit in the replacement's last base offset makes it cover segments that it does not replace."""
    partition = tmp_path / "t-0"
    write(partition, (0,), ("whole", "whole"), has_next=False)
    flipped = rows(0, 4) + rows(260, 261)
    (partition / f"{name(0)}.swap").write_bytes(flipped)
    log = cw.Log(partition)
    assert [record.offset for record in log.records()] == list(range(10))
    with pytest.raises(cw.CorruptLogError, match="which this file would replace"):
        cw.LogWriter(partition)
