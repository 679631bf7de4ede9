"""Gaps in offsets between segments, and the detection of compacted logs, in logs of brokers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import corpus
import pytest
from corpus import Partition
from spark.changes import aged

import cordwood as cw
from core.test_damaged import BROKEN, Damage

COMPACTED = ("12-compacted", "12-compacted-codecs", "12-compacted-empty", "18-leaps")

Gap = tuple[int, int, int, int]


def gaps(log: cw.Log, *offsets: int) -> list[Gap]:
    found = log.offset_gaps(*offsets)
    return [(gap.start_offset, gap.end_offset, gap.segment_base_offset, gap.next_base_offset) for gap in found]


@pytest.mark.parametrize("part", corpus.partitions(), ids=lambda part: f"{part.case}/{part.name}")
def test_gaps_are_those_between_the_batches_of_kafkas_dump(part: Partition) -> None:
    """Derived from Kafka's dump of each batch; also for ranges."""
    log = cw.Log(part.path)
    ends = {base: base for base in part.bases}
    ends |= {batch["segment"]: batch["lastOffset"] + 1 for batch in corpus.batches(part)}
    whole = [
        (max(ends[base], log.log_start_offset), following, base, following) for base, following in pairwise(part.bases)
    ]
    whole = [gap for gap in whole if gap[0] < gap[1]]
    assert gaps(log) == whole
    for start, end, *_ in whole:
        for low, high in (
            (start - 1, end + 1),
            (start, start + 1),
            ((start + end) // 2, end),
            (end, end),
            (start - 1, start),
        ):
            wanted = [(max(low, a), min(high, b), *bases) for a, b, *bases in whole if max(low, a) < min(high, b)]
            assert gaps(log, low, high) == wanted


def test_only_compacted_logs_count_as_compacted(copied: Any) -> None:
    """Only these logs have gaps between segments; a copy without the checkpoint is detected by its batches."""
    for part in corpus.partitions():
        log = cw.Log(part.path)
        if gaps(log):
            assert log.is_compacted, part.path
            assert cw.Log(copied(part.path, under=part.case)).is_compacted, part.path
        else:
            assert part.case not in COMPACTED
    assert not cw.Log(corpus.partition("01-plain").path).is_compacted


def test_the_checkpoint_of_kafkas_cleaner_is_read_again(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    aged(path)
    log = cw.Log(path)
    for text, is_compacted in (("0\n1\nothers 0 9\n", False), ("0\n1\norders 0 9\n", True), ("broken", False)):
        (path.parent / "cleaner-offset-checkpoint").write_text(text)
        assert cw.Log(path).is_compacted == is_compacted
        log = log.refresh()
        assert log.is_compacted == is_compacted
        assert log.refresh() is log


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_a_damaged_end_of_a_segment_is_damage_and_not_a_gap(damage: Damage) -> None:
    assert gaps(damage.open()) == []
