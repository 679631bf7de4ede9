"""The topic id, from Kafka's `partition.metadata`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corpus
import pytest

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"


def test_the_topic_id_is_that_of_partition_metadata() -> None:
    found = 0
    for part in corpus.partitions():
        file = part.path / "partition.metadata"
        wanted = file.read_text().split("topic_id: ")[1].strip() if file.exists() else None
        assert cw.Log(part.path).topic_id == wanted, part.path
        found += wanted is not None
    assert found > 20


def test_refresh_reads_the_topic_id_again(copied: Any) -> None:
    log = cw.Log(copied(DATA / "cities-0"))
    before = log.topic_id
    metadata = Path(log.path, "partition.metadata")
    metadata.write_text("version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg")
    assert (before, log.topic_id) == ("6sc1tPBuS4ODmV6YKUWCjg", "aFsHoJ8mSkaI5w7rWQb5Qg")
    metadata.unlink()
    assert log.topic_id is None
    assert log.warnings == []


@pytest.mark.parametrize("text", ["", "version: 0\ntopic_id: short", "\xff", "x" * (1 << 20)])
def test_a_topic_id_that_cannot_be_read_is_none_and_a_warning(copied: Any, text: str) -> None:
    path = copied(DATA / "cities-0")
    (path / "partition.metadata").write_text(text, encoding="latin-1")
    log = cw.Log(path)
    assert log.topic_id is None
    assert log.topic_id is None
    [warning] = log.warnings
    assert str(path / "partition.metadata") in warning
    assert warning.endswith("; ignored")
