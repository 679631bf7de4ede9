"""A broker's odd batches, compacted by `LogWriter` and by Kafka's `Cleaner`: the same records, or a failure of both."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from batches import Rec, batch

import cordwood as cw
from interop.kafka_classes import KafkaClasses, KafkaRefusedError
from interop.scenarios import text
from interop.twins import KAFKAS_NOW, START, Step, assert_the_same_files, kafkas_names

SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0, "segment.bytes": 6000, "retention.ms": -1}
KEYS = (b"a", b"b", b"c")
DELTAS = [(0, 1, 2), (0, 0, 0), (1, 0, 2), (2, 1, 0), (0, 5, 9), (0, 0, 9), (9, 0, 1), (-1, 0, 1)]
REPLACED = [keys for count in range(4) for keys in itertools.combinations(KEYS, count)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("deltas", DELTAS, ids=str)
def test_records_out_of_place_are_compacted_as_in_kafka(
    kafka: KafkaClasses, tmp_path: Path, deltas: tuple[int, ...], threads: int
) -> None:
    for number, keys in enumerate(REPLACED):
        ours, kafkas = tmp_path / f"ours{number}-0", tmp_path / f"kafkas{number}-0"
        records = [Rec(b"old", key, START, offset_delta=delta) for key, delta in zip(KEYS, deltas, strict=True)]
        steps: list[Step] = [
            raw(batch(0, [Rec(b"first", b"first", START)])),
            raw(batch(0, records, last_offset_delta=2)),
        ]
        steps += [raw(batch(0, [Rec(b"new", key, START + 1)])) for key in keys]
        steps += [{"do": "roll"}, raw(batch(0, [Rec(b"last", b"last", START + 2)]))]
        written = kafka.ask("write", dir=ours, settings=kafkas_names(SETTINGS), steps=steps, now=KAFKAS_NOW)
        assert [step for step in written["steps"] if "error" in step] == []
        shutil.copytree(ours, kafkas)
        try:
            step = {"do": "compact", "bytes": 1 << 20, "now": KAFKAS_NOW}
            answer = kafka.ask("write", dir=kafkas, settings=kafkas_names(SETTINGS), steps=[step], now=KAFKAS_NOW)
            error = answer["steps"][0].get("error")
        except KafkaRefusedError as refused:
            error = str(refused)
        config = cw.LogConfig.from_properties({name: str(value) for name, value in kafkas_names(SETTINGS).items()})
        with cw.LogWriter(ours, config=config, flush="none") as writer:
            if error is None:
                writer.compact(now=KAFKAS_NOW, dedupe_buffer_bytes=1 << 20, threads=threads)
            else:
                with pytest.raises(cw.CorruptLogError, match="ascending offsets"):
                    writer.compact(now=KAFKAS_NOW, dedupe_buffer_bytes=1 << 20, threads=threads)
                assert "Illegal offset" in error
        if error is None:
            assert_the_same_files(ours, kafkas, ["*.log"])


def raw(batches: bytes) -> Step:
    return {"do": "raw", "batches": text(batches)}
