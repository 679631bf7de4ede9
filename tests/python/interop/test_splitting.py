"""Segments with offsets that do not fit in their indexes: recovery splits them into the same files as Kafka."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from batches import Rec, batch, name

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.twins import contents, our_lines

FAR = 2**31 - 1
SETTINGS = {"index.interval.bytes": 1, "segment.index.bytes": 4096, "retention.ms": -1}


def sample(base: int) -> list[bytes]:
    """The batches that Kafka's own tests write at a base offset."""
    return [one(base, 1), one(base + 1, 2), one(base + FAR - 1, 1)]


def one(base: int, count: int) -> bytes:
    return batch(
        base,
        [Rec(b"%d" % (base + number), timestamp=1_700_000_000_000 + base % 1000 + number) for number in range(count)],
    )


LAYOUTS = {
    "in the middle": [(0, sample(0)), (FAR, sample(FAR) + sample(2 * FAR)), (3 * FAR, sample(3 * FAR))],
    "the last segment": [(0, sample(0) + sample(FAR))],
    "into three": [(0, sample(0) + sample(FAR) + sample(2 * FAR))],
    "the only batch out of reach": [(0, [one(FAR + 1, 1)])],
    "the only batch reaching out": [(0, [one(FAR, 2)])],
    "a first batch above the base": [(5, [one(7, 2), one(FAR + 9, 1)])],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_overflowing_segment_is_split_into_the_same_files_as_in_kafka(
    kafka: KafkaClasses, tmp_path: Path, layout: str
) -> None:
    ours = tmp_path / "t-0"
    ours.mkdir()
    for base, raws in LAYOUTS[layout]:
        (ours / name(base)).write_bytes(b"".join(raws))
        (ours / name(base, ".index")).touch()
        (ours / name(base, ".timeindex")).touch()
    records = our_lines(cw.Log(ours))
    theirs = kafka.ask("open", dir=ours, settings=SETTINGS, clean=False, lines=True)
    assert theirs["bytes_cut"] == 0
    assert theirs["records"]["lines"] == records
    with cw.LogWriter(ours, config=cw.LogConfig.from_properties(SETTINGS)) as writer:
        assert writer.log_end_offset == theirs["log_end_offset"]
    assert our_lines(cw.Log(ours)) == records
    for pattern in ["*.log", "*.index", "*.timeindex"]:
        found = {
            file: [len(content), hashlib.sha256(content).hexdigest()]
            for file, content in contents(ours, pattern).items()
        }
        assert found == {file: listed for file, listed in theirs["after"].items() if Path(file).match(pattern)}
