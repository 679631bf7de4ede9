"""`plan_kafka_load` is what UnifiedLog does with directories that are damaged at random."""

from __future__ import annotations

import json
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import corpus
import pytest

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.mutations import mutate
from interop.odd_files import message
from interop.old_wrappers import wrappers

SEEDS = range(120)


def partitions() -> list[tuple[corpus.Partition, dict[str, str]]]:
    """The partitions of cases with one topic, and its settings."""
    manifest = json.loads((corpus.GOLDEN / "MANIFEST.json").read_text())
    settings = {case["case"]: case.get("settings", {}) for case in manifest["cases"]}
    found = []
    for part in corpus.partitions():
        own = {name: value for name, value in settings[part.case].items() if name != "message.format.version"}
        if all(isinstance(value, str) for value in own.values()):
            found.append((part, own))
    return found


def planned(path: Path, settings: dict[str, str], **how: Any) -> tuple[dict[str, Any], dict[str, list[int | None]]]:
    """The plan as the JVM writes it, and the size and checksum of each file afterwards."""
    properties = {"internal.segment.bytes" if name == "segment.bytes" else name: v for name, v in settings.items()}
    # without it, it is the one that the indexes show
    properties.setdefault("index.interval.bytes", "4096")
    load = cw.plan_kafka_load(path, config=cw.LogConfig.from_properties(properties), **how)
    if load.log is None:
        assert load.failure is not None
        return {"exception": load.failure.exception}, {
            file.name: [file.new_size, file.crc32c] for file in load.files if file.new_size is not None
        }
    log = load.log
    fields: dict[str, Any] = {
        name: getattr(log, name)
        for name in ("log_start_offset", "log_end_offset", "recovery_point", "last_stable_offset", "producer_ids")
    }
    fields["epochs"] = [list(epoch) for epoch in log.leader_epochs]
    fields["segments"] = [
        {
            "base_offset": segment.base_offset,
            "size": segment.size,
            "offset_entries": segment.offset_entries,
            "time_entries": segment.time_entries,
            "largest_timestamp": -1 if segment.largest_timestamp is None else segment.largest_timestamp,
        }
        for segment in log.segments
    ]
    return fields, {file.name: [file.closed_size, file.crc32c] for file in load.files if file.closed_size is not None}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_directory_is_loaded_as_planned(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    part, settings = choose.choice(partitions())
    path = tmp_path / part.name
    shutil.copytree(part.path, path)
    done = mutate(path, choose)
    how = {
        "clean": choose.random() < 0.5,
        "recovery_point": choose.choice([0, 0, 0, 100, 300, 10**6]),
        "log_start_offset": choose.choice([0, 0, 0, 0, 50, 400, 5000]),
    }
    fields, files = planned(path, settings, **how)
    answer = kafka.ask("load", dir=path, settings=settings, **how)
    case = f"seed {seed}: {part.case}, {done}, {how}"
    assert {name: answer.get(name) for name in fields} == fields, case
    assert ("exception" in answer) == ("exception" in fields), case
    assert {name: size for name, (size, _) in answer["after"].items()} == {
        name: size for name, (size, _) in files.items()
    }, case
    for name, (_, crc32c) in files.items():
        if crc32c is not None:
            assert answer["after"][name][1] == crc32c, f"{name}; {case}"


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 20), (20, 0), (20, 2), (20, 20)])
def test_a_compressed_batch_that_cannot_be_decoded_is_loaded_as_planned(
    kafka: KafkaClasses, tmp_path: Path, magic: int, before: int, after: int
) -> None:
    """Kafka decodes those whose first offsets it needs to find the end of the log, and no others."""
    refused = 0
    for case, wrapper in wrappers(before, magic):
        plain = [
            message(n, bytes(1_000), magic=magic) for n in (*range(before), *range(before + 3, before + 3 + after))
        ]
        log = b"".join([*plain[:before], wrapper, *plain[before:]])
        for has_index, clean in ((False, False), (True, False), (True, True)):
            path = tmp_path / f"{case}-{has_index}-{clean}" / "old-0"
            path.mkdir(parents=True)
            (path / f"{0:020d}.log").write_bytes(log)
            if has_index:
                # of each plain batch before the compressed one
                size = len(plain[0]) if plain else 0
                entries = [struct.pack(">ii", n, n * size) for n in range(5, before, 5)]
                (path / f"{0:020d}.index").write_bytes(b"".join(entries))
                (path / f"{0:020d}.timeindex").write_bytes(b"")
            how = {"clean": clean, "recovery_point": 0, "log_start_offset": 0}
            fields, _ = planned(path, {}, **how)
            answer = kafka.ask("load", dir=path, settings={"index.interval.bytes": "4096"}, **how)
            assert {name: answer.get(name) for name in fields} == fields, f"{case}, {how}"
            assert ("exception" in answer) == ("exception" in fields), f"{case}, {how}"
            refused += "exception" in answer and case != "offset zero"
            if "exception" in answer:
                # what a broker does not start with is an error, also where no record is decoded
                found = cw.verify(path).findings
                assert any(finding.severity == "error" for finding in found), f"{case}, {how}"
    # one that index entries lead past is not decoded
    assert bool(refused) == ((before, after) != (20, 20))


DAMAGED = sorted(path for path in (corpus.GOLDEN / "damaged").glob("*/*-0") if "tickets" in path.name)


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.parent.name)
def test_without_settings_the_interval_of_the_indexes_tells_what_recovery_finds(
    kafka: KafkaClasses, path: Path
) -> None:
    """The indexes of this log are those of an interval of 512."""
    load = cw.plan_kafka_load(path, clean=False)
    settings = {"index.interval.bytes": "512"}
    answer = kafka.ask(
        "load", dir=path, settings=settings, clean=False, recovery_point=load.recovery_point, log_start_offset=0
    )
    if load.log is None:
        assert load.failure is not None
        assert answer["exception"] == load.failure.exception
    else:
        assert answer["log_end_offset"] == load.log.log_end_offset
        assert [segment["size"] for segment in answer["segments"]] == [segment.size for segment in load.log.segments]
