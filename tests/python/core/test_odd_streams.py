"""Forms of compressed streams, read and refused as by Kafka (`interop/test_odd_batches.py` compares with a broker)."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import batch
from stream_forms import RECORDS, REFUSED, STREAMS, payload_of

import cordwood as cw


@pytest.mark.parametrize("codec", STREAMS)
def test_a_stream_is_read_if_kafka_reads_it(codec: int, tmp_path: Path) -> None:
    for size, records in RECORDS.items():
        outcomes: dict[bool, set[str]] = {True: set(), False: set()}
        for stream, name in STREAMS[codec](payload_of(records)):
            path = tmp_path / f"{size}-0"
            path.mkdir(exist_ok=True)
            (path / f"{0:020}.log").write_bytes(batch(0, records, codec=codec, payload=stream))
            errors = [finding for finding in cw.verify(path, deep=True).findings if finding.severity == "error"]
            try:
                assert [record.value for record in cw.Log(path).records()] == [record.value for record in records]
            except cw.CorruptLogError:
                assert errors, name
                outcomes[False].add(name)
            else:
                assert not errors, name
                outcomes[True].add(name)
        assert outcomes[False] == REFUSED[codec], size
        assert len(outcomes[True] | outcomes[False]) == len(STREAMS[codec](b""))
