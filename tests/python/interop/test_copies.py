"""Kafka's `UnifiedLog` opens copies of a broker's logs, whole and in part: the same records, nothing cut or rebuilt."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import partition

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.twins import our_lines


@pytest.mark.parametrize("case", ["01-plain", "11-transactions", "12-compacted", "13-retention", "21-follower"])
@pytest.mark.parametrize("part", ["whole", "range"])
def test_kafka_opens_a_copy(kafka: KafkaClasses, tmp_path: Path, case: str, part: str) -> None:
    source = cw.Log(partition(case).path)
    length = source.log_end_offset - source.log_start_offset
    start, end = source.log_start_offset + length // 4, source.log_start_offset + length * 3 // 4
    bounds = {} if part == "whole" else {"start_offset": start, "end_offset": end}
    report = cw.copy(source.path, tmp_path / "copied-0", **bounds)
    log = cw.Log(tmp_path / "copied-0")
    for clean in (True, False):
        opened = kafka.ask(
            "open", dir=report.path, settings={}, clean=clean, lines=True, log_start_offset=log.log_start_offset
        )
        assert opened["complaints"] == [], clean
        assert opened["bytes_cut"] == 0, clean
        assert (opened["log_start_offset"], opened["log_end_offset"]) == (report.log_start_offset, report.end_offset)
        ours = our_lines(log)
        # Kafka's lines include control records
        offsets = {line.split()[0] for line in ours}
        assert [line for line in opened["records"]["lines"] if line.split()[0] in offsets] == ours, clean
        if clean:
            # nothing was rebuilt; Kafka deletes a snapshot at the log start offset, because no record
            # precedes it
            for name, listed in opened["before"].items():
                if name.startswith("0") and name != f"{report.log_start_offset:020}.snapshot":
                    assert opened["after"][name] == listed, name
