"""`verify --as-kafka` says of broken data directories whether a real broker starts on them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import Command

import cordwood as cw
from interop.broken_directories import PARTITIONS, Break, cases, copy_whole
from interop.kafka_classes import KafkaClasses

CASES = cases()
USUAL = (
    "nothing broken",
    "a directory lost+found",
    "log-start-offset-checkpoint: zeros",
    "replication-offset-checkpoint: a blank line at the end",
    "cleaner-offset-checkpoint: count too high",
    "meta.properties: empty",
    "__cluster_metadata-0/00000000000000000084-0000000001.checkpoint: empty",
    "cities-0: a page of zeros at the end",
)
# a broker whose start fails leaves threads
STARTS_OF_ONE_JVM = 12


def chosen() -> list[str]:
    """`CORDWOOD_STARTS=all`: every case; without it, a few."""
    return list(CASES) if os.environ.get("CORDWOOD_STARTS") == "all" else list(USUAL)


@pytest.fixture(scope="module")
def try_start(
    kafka: KafkaClasses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Path], dict[str, Any]]]:
    """Starts a broker, in a JVM for a few of them. `kafka` only says that the tools are there."""
    assert kafka.ask("version")["version"]
    jvm: list[KafkaClasses] = []
    starts = 0
    with (tmp_path_factory.mktemp("starting") / "said.txt").open("w+", encoding="utf-8") as said:

        def start(path: Path) -> dict[str, Any]:
            nonlocal starts
            if starts % STARTS_OF_ONE_JVM == 0:
                while jvm:
                    jvm.pop().close()
                jvm.append(KafkaClasses(said))
            starts += 1
            return jvm[0].ask("try_start", dir=path, partitions=list(PARTITIONS))

        yield start
        while jvm:
            jvm.pop().close()


def broken(tmp_path: Path, change: Break) -> Path:
    path = copy_whole(tmp_path / "data")
    change(path)
    return path


@pytest.mark.parametrize("case", chosen())
def test_a_broker_starts_on_a_broken_directory_as_the_verdict_says(
    command: Command, try_start: Callable[[Path], dict[str, Any]], tmp_path: Path, case: str
) -> None:
    path = broken(tmp_path, CASES[case])
    code, shown, _ = command("verify", path, "--as-kafka", "-q", "--json")
    verdict = json.loads(shown)
    ends = {}
    findings = cw.verify(path).findings
    if verdict["starts"]:
        for name in PARTITIONS:
            # the broker makes an empty partition in the place of a stray one
            if {"partition_metadata_missing", "topic_id_mismatch"} & {
                finding.code for finding in findings if Path(finding.file).parent.name == name
            }:
                continue
            if (path / name).exists() and any((path / name).iterdir()):
                log = cw.plan_kafka_load(path / name).log
                assert log is not None
                ends[name] = [log.log_start_offset, log.log_end_offset]
    errors = [finding for finding in findings if finding.severity == "error"]
    answer = try_start(path)
    assert ("ended" not in answer) == verdict["starts"], (answer, verdict)
    assert verdict["starts"] == (not verdict["reasons"])
    if not verdict["starts"]:
        assert code == 1
        # the rule of `verify`: what a broker does not start with is an error
        assert errors
    served = {name: offsets for name, offsets in answer.get("offsets", {}).items() if isinstance(offsets, list)}
    assert {name: ends[name] for name in served if name in ends} == {
        name: offsets for name, offsets in served.items() if name in ends
    }
