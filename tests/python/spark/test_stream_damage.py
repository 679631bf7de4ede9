"""Damaged logs in a stream: each damaged offset is reported once."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import corpus
import pytest
from batches import name
from core.test_damaged import EXACT, Damage

from spark.reading import NAMES, kafka_rows, refuses
from spark.streaming import EARLIEST, Engine, flat


def test_a_corrupt_batch_fails_a_stream_with_its_code_and_dropmalformed_continues() -> None:
    damaged = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    with refuses("CORDWOOD_CORRUPT_BATCH", "tickets-0"):
        Engine(damaged, maxOffsetsPerTrigger=40, **EARLIEST).all()
    engine = Engine(damaged, maxOffsetsPerTrigger=40, mode="DROPMALFORMED", **EARLIEST)
    assert [row[2] for row in flat(engine.all())] == [o for o in range(370) if o != 302]


@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_permissive_streams_report_each_damaged_offset_once(damage: Damage, limit: int | None) -> None:
    """A micro-batch that ends inside a damaged range reports its part of it, and the next one the rest."""
    options = {**EARLIEST, "mode": "PERMISSIVE", **({} if limit is None else {"maxOffsetsPerTrigger": limit})}
    found = [row for rows in Engine(damage.path, **options).all() for row in rows]
    assert sorted(row[:3] for row in found if row[3] is None) == kafka_rows(damage.source, damage.survivors, NAMES)
    gaps = [row for row in found if row[3] is not None]
    assert len({(row[0], row[1], row[2]) for row in gaps}) == len(gaps) >= 1
    assert len({row[3]["startPosition"] for row in gaps}) == 1
    assert limit is not None or len(gaps) == 1


@pytest.mark.parametrize(
    ("damage", "limit"), [*itertools.product(EXACT, [None, 7]), *((damage, 1) for damage in EXACT[::6])], ids=str
)
def test_a_stream_warns_once_of_each_damaged_range(
    damage: Damage, limit: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**EARLIEST, "mode": "DROPMALFORMED", **({} if limit is None else {"maxOffsetsPerTrigger": limit})}
    with caplog.at_level(logging.WARNING, "cordwood"):
        Engine(damage.path, **options).all(2000)
    warnings = [record.getMessage() for record in caplog.records if "CORRUPT_BATCH" in record.getMessage()]
    assert len(warnings) == len(set(warnings)) >= 1


def test_a_large_damaged_batch_is_reported_once_by_a_stream(copied: Any) -> None:
    """Several micro-batches begin and end inside it."""
    part = corpus.partition("02-gzip")
    path = copied(part.path)
    hit = max(corpus.batches(part)[:-1], key=lambda b: b["lastOffset"] - b["baseOffset"])
    file = path / name(hit["segment"])
    data = bytearray(file.read_bytes())
    data[hit["position"] + hit["size"] - 1] ^= 0x10
    file.write_bytes(data)
    engine = Engine(path, mode="PERMISSIVE", maxOffsetsPerTrigger=10, **EARLIEST)
    found = [row for rows in engine.all() for row in rows]
    good = [row[2] for row in found if row[3] is None]
    assert good == [r.offset for r in corpus.visible(part) if not hit["baseOffset"] <= r.offset <= hit["lastOffset"]]
    assert [row[2] for row in found if row[3] is not None] == [hit["baseOffset"]]
