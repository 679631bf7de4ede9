"""Files of batches that no broker writes, with right checksums: kept and read as Kafka keeps and reads them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from batches import name

import cordwood as cw
from interop.kafka_classes import KafkaClasses, KafkaRefusedError
from interop.odd_files import partitions
from interop.twins import our_lines

REFUSALS = (cw.CorruptLogError, cw.UnsupportedFormatError)
# Kafka reads the key of a control batch only if it has a producer id
ODD_MARKERS = ("marker", "attributes 32")


def returned(lines: Iterable[str]) -> Iterator[str]:
    """What a consumer returns of the records that a log has: those with an offset above the one before."""
    offset = -1
    for line in lines:
        if (own := int(line.split()[0])) > offset:
            offset = own
            yield line


def opened(kafka: KafkaClasses, partition: Path) -> tuple[int | None, list[str] | None]:
    """The log end offset after a crash, and the records; `None` where Kafka fails. It cuts nothing off."""
    loaded: dict[str, Any] = kafka.ask("load", dir=partition, settings={"retention.ms": -1}, clean=False)
    if "exception" in loaded:
        return None, None
    before = sum(path.stat().st_size for path in partition.glob("*.log"))
    after = sum(size for file, (size, _) in loaded["after"].items() if file.endswith(".log"))
    assert after == before or loaded["log_end_offset"] > 1 << 31
    try:
        read = kafka.ask("open", dir=partition, settings={"retention.ms": -1}, clean=False, lines=True)
    except KafkaRefusedError:
        return loaded["log_end_offset"], None
    return loaded["log_end_offset"], list(returned(read["records"]["lines"]))


def test_odd_batches_in_files_are_kept_and_read_as_in_kafka(kafka: KafkaClasses, tmp_path: Path) -> None:
    wrong = []
    for number, (oddity, raws) in enumerate(partitions()):
        partition = tmp_path / f"t{number}-0"
        partition.mkdir()
        (partition / name(0)).write_bytes(b"".join(raws))
        end, lines = opened(kafka, partition)
        try:
            if end is not None:
                check(partition, oddity, end, lines)
            else:
                # Kafka does not load it; here it is no worse than an error
                with_errors(partition)
        except (AssertionError, cw.CordwoodError, pytest.fail.Exception) as error:
            wrong.append(f"{oddity}: {error!r}"[:400])
    assert wrong == []


def check(partition: Path, oddity: str, end: int, lines: list[str] | None) -> None:
    log = cw.Log(partition)
    # Kafka's falls below offsets that the log has
    has_low_end = "last offset delta -" in oddity and "last" in oddity.rsplit(", ", 1)
    expected = 4 if has_low_end else end
    assert log.log_end_offset == expected
    assert cw.LogWriter.plan_recovery(partition).log_end_offset == expected
    findings = {(finding.severity, finding.code) for finding in cw.verify(partition, deep=True).findings}
    errors = {code for severity, code in findings if severity == "error"}
    if lines is None:
        assert errors
        with pytest.raises(REFUSALS):
            our_lines(log, include_control=True)
    else:
        ours = our_lines(log, include_control=True)
        assert ours == lines
        assert not errors or any(name in oddity for name in ODD_MARKERS), errors
        data = [line.split()[0] for line in our_lines(log)]
        assert [str(record.offset) for record in log.records()] == data
        assert log.scan().count() == len(data)
        assert log.scan(check_crcs=False, on_damage="skip").count() >= 0
    written = b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))
    copied = partition.with_name(f"copy-of-{partition.name}")
    shutil.copytree(partition, copied)
    with cw.LogWriter(copied) as writer:
        assert writer.log_end_offset == expected
    assert b"".join(path.read_bytes() for path in sorted(copied.glob("*.log"))) == written


def with_errors(partition: Path) -> None:
    log = cw.Log(partition)
    try:
        our_lines(log, on_damage="skip")
        cw.verify(partition, deep=True)
    except REFUSALS:
        pass
