"""Directories of real brokers, opened for writing: recovered as by Kafka."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import corpus
import pytest

import cordwood as cw

MANIFEST = json.loads((corpus.GOLDEN / "MANIFEST.json").read_text())


def settings(part: corpus.Partition) -> dict[str, str]:
    """The topic's settings, with their names in 4.3.1."""
    (entry,) = (entry for entry in MANIFEST["cases"] if entry["case"] == part.case)
    found = entry["settings"]
    found = dict(found.get(part.topic, found))
    if any(isinstance(value, dict) for value in found.values()):
        return {}
    found.pop("message.format.version", None)
    if int(found.get("segment.bytes", 1 << 20)) < 1 << 20:
        found["internal.segment.bytes"] = found.pop("segment.bytes")
    return found


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.name != ".cordwood.lock"}


def unclean(part: corpus.Partition) -> dict:
    """Kafka's result after an unclean stop."""
    return next(line for line in part.lines("open.jsonl.gz") if not line["clean"])


REBUILT = [part for part in corpus.partitions() if part.lines("rebuild.jsonl")]
KNOWN = [part for part in REBUILT if unclean(part)["ok"]]


def test_the_corpus_has_enough_cases() -> None:
    assert len(KNOWN) >= 40
    assert {part.case for part in KNOWN} & set(corpus.KILLED) == {
        "14-killed",
        "14-killed-preallocated-log",
        "14-killed-transactions",
    }


@pytest.mark.parametrize("part", KNOWN, ids=str)
def test_a_brokers_log_is_recovered_as_by_kafka(part: corpus.Partition, tmp_path: Path) -> None:
    # a writer refuses the metadata of a cluster by its name
    path = tmp_path / part.name.removeprefix("__cluster_")
    shutil.copytree(part.path, path)
    for name in path.glob("*index"):
        name.unlink()
    expected = unclean(part)
    with cw.LogWriter(path, config=cw.LogConfig.from_properties(settings(part), kind="topic")) as writer:
        assert writer.log_end_offset == expected["logEndOffset"]
        assert writer.log_start_offset == expected["segments"][0]["base"]
        assert writer.leader_epochs == [(line["epoch"], line["startOffset"]) for line in expected["epochs"]]
    log = cw.Log(path)
    assert [segment.base_offset for segment in log.segments] == [line["base"] for line in expected["segments"]]
    assert [segment.size for segment in log.segments] == [line["size"] for line in expected["segments"]]
    for line in part.lines("rebuild.jsonl"):
        if line["type"] == "file" and line["name"].endswith((".log", ".index", ".timeindex", ".txnindex")):
            assert hashlib.sha256((path / line["name"]).read_bytes()).hexdigest() == line["sha256"], line["name"]
