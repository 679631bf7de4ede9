"""Kafka's `UnifiedLog` opens repaired directories: it cuts nothing, rebuilds nothing, and reads the same records."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.mutations import mutate
from interop.test_kafka_load import partitions
from interop.twins import our_lines

SEEDS = range(60)


@pytest.mark.parametrize("policy", ["salvage", "torn_tail", "kafka"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_repaired_directory_is_opened_as_it_is(kafka: KafkaClasses, tmp_path: Path, seed: int, policy: str) -> None:
    choose = random.Random(seed)
    part, settings = choose.choice(partitions())
    path = tmp_path / part.name
    shutil.copytree(part.path, path)
    done = mutate(path, choose)
    case = f"seed {seed}: {part.case}, {done}"
    properties = {"internal.segment.bytes" if name == "segment.bytes" else name: v for name, v in settings.items()}
    # without it, it is the one that the indexes show
    properties.setdefault("index.interval.bytes", "4096")
    config = cw.LogConfig.from_properties(properties)
    try:
        plan = cw.repair(path, policy=policy, config=config, dry_run=False)  # type: ignore[arg-type]
    except cw.CorruptLogError:
        # no policy removes the only copy of records
        needed = [
            found
            for found in cw.verify(path).findings
            if (found.code, found.severity) == ("replacement_uncommitted", "error")
        ]
        assert policy == "torn_tail" or needed, case
        return
    if any(finding.code == "partition_metadata_unreadable" for finding in cw.verify(path).findings):
        # a repair does not know the topic id, and Kafka opens no directory with half of it
        return
    log = cw.Log(path)
    assert log.log_end_offset == plan.log_end_offset, case
    ours = our_lines(log)
    offsets = {line.split()[0] for line in ours}
    for clean in (True, False):
        opened = kafka.ask(
            "open", dir=path, settings=settings, clean=clean, lines=True, log_start_offset=log.log_start_offset
        )
        assert opened["complaints"] == [], (case, clean)
        assert opened["bytes_cut"] == 0, (case, clean)
        assert opened["log_end_offset"] == plan.log_end_offset, (case, clean)
        # Kafka's lines include control records
        assert [line for line in opened["records"]["lines"] if line.split()[0] in offsets] == ours, (case, clean)
        # after an unclean stop, Kafka rebuilds the indexes of intact segments too, and not always to the same
        # entries
        for name, listed in opened["before"].items() if clean else ():
            if Path(name).suffix in {".log", ".index", ".timeindex", ".txnindex"}:
                assert opened["after"].get(name) == listed, (case, clean, name)
