"""How an export cuts logs into steps."""

from __future__ import annotations

import corpus
import pytest

import cordwood as cw
from cordwood.spark.jobs.ranges import Range, cut, plan_steps
from spark.exporting import PLAIN


@pytest.mark.parametrize("piece_bytes", [1, 3_000, 50_000, 1 << 30])
@pytest.mark.parametrize("step_bytes", [1, 80_000, 1 << 40])
def test_steps_contain_every_offset_once(piece_bytes: int, step_bytes: int) -> None:
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
        # a piece may be larger: a batch is not cut
        assert step.size <= max(step_bytes, piece_bytes, 20_000)


def test_a_range_inside_a_batch_keeps_its_edges() -> None:
    # batches of 01-plain have about ten records: 3 and 1497 are inside a batch
    whole = Range("orders", 0, str(PLAIN.path), 3, 1497)
    pieces = list(cut(whole, 20_000, "pread"))
    assert len(pieces) > 3
    assert (pieces[0].start_offset, pieces[-1].end_offset) == (3, 1497)
