"""`verify --as-kafka` says of broken directories whether a real broker starts on them, and what it leaves of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
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
    "__cluster_metadata-0: missing",
    "notes.log in a -delete directory",
    "cities-1 as -delete",
    "cities-1 as -stray",
    "cities-0: missing",
    "cities-0: v0, compressed twice",
    "cities-0: v1, an lz4 frame with a wrong checksum",
    "cities-0: v1, usual",
    "cities-0: v1, offset zero, after another",
    "cities-1 as -future",
    "a copy of cities-0 as cities-00",
    "a copy of cities-0 as towns-0",
    "cities-1 on another disk",
    "cities-1 with the id of rivers.compact",
    "__cluster_metadata-0: a record of other bytes",
    "__cluster_metadata-0: a record of a later version",
    "__cluster_metadata-0/quorum-state: leaderEpoch null",
    "cities-0/partition.metadata: no space before the version",
    "cities-0/partition.metadata: another id",
    "cities-0: a directory 00000000000000000268.snapshot",
    ".kafka_cleanshutdown: a directory with a file",
    "meta.properties: a path with backslashes",
    "meta.properties: another directory.id",
    "replication-offset-checkpoint: a negative count",
)
# directories are deleted at once, and no record by its age
SETTINGS = {"log.initial.task.delay.ms": "100", "log.segment.delete.delay.ms": "1", "log.retention.ms": "-1"}

# what a broker does with a directory, and with the partitions that it must not serve in the end
TryStart = Callable[[Path, Collection[str]], dict[str, Any]]

# a broker whose start fails leaves threads
STARTS_OF_ONE_JVM = 12


def chosen() -> list[str]:
    """`CORDWOOD_STARTS=all`: every case; without it, a few."""
    return list(CASES) if os.environ.get("CORDWOOD_STARTS") == "all" else list(USUAL)


@pytest.fixture(scope="module")
def try_start(kafka: KafkaClasses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TryStart]:
    """Starts a broker, in a JVM for a few of them. `kafka` only says that the tools are there."""
    assert kafka.ask("version")["version"]
    jvm: list[KafkaClasses] = []
    starts = 0
    with (tmp_path_factory.mktemp("starting") / "said.txt").open("w+", encoding="utf-8") as said:

        def start(path: Path, unserved: Collection[str]) -> dict[str, Any]:
            nonlocal starts
            if starts % STARTS_OF_ONE_JVM == 0:
                while jvm:
                    jvm.pop().close()
                jvm.append(KafkaClasses(said))
            starts += 1
            return jvm[0].ask(
                "try_start", dir=path, partitions=list(PARTITIONS), unserved=list(unserved), settings=SETTINGS
            )

        yield start
        while jvm:
            jvm.pop().close()


@pytest.fixture(scope="module")
def figures() -> Iterator[Counter[str]]:
    """What was compared. It is printed for the table of guarantees."""
    counted: Counter[str] = Counter(starts=0, compared=0, renamed=0, deleted=0)
    yield counted
    print(json.dumps({"rig": "starting", **counted}))


def broken(tmp_path: Path, change: Break) -> Path:
    path = copy_whole(tmp_path / "data")
    change(path)
    return path


def directories(path: Path) -> dict[int, str]:
    """The directories of a data directory, by what a renaming does not change."""
    return {entry.lstat().st_ino: entry.name for entry in path.iterdir() if entry.is_dir()}


def log_end_offset(partition: Path) -> int:
    try:
        return cw.Log(partition).log_end_offset
    except cw.LogNotFoundError:
        return 0


def readers_end_offset(plan: dict[str, Any]) -> int:
    """The end for a reader of the files, which also reads the records that are hidden below a broker's end."""
    hidden = [lost["end_offset"] for lost in plan["lost_offsets"] if lost["is_hidden"]]
    return max([plan["log"]["log_end_offset"], *hidden])


def names_after(name: str, fate: str) -> Callable[[str | None], bool]:
    """Whether a directory has the name that its fate says; `None`: it is gone."""
    live = name.removesuffix("-future").rpartition(".")[0]
    return {
        "kept": lambda after: after == name or (name.endswith("-future") and after == live),
        "metadata": lambda after: after == name,
        "unserved": lambda after: after == name,
        "no_leader": lambda after: after == name,
        "set_aside": lambda after: after == name,
        "stray": lambda after: after is not None and after.endswith("-stray") and after != name,
        "deleted": lambda after: after is None,
    }[fate]


@pytest.mark.parametrize("case", chosen())
def test_a_broker_starts_on_a_broken_directory_as_the_verdict_says(
    command: Command,
    try_start: TryStart,
    figures: Counter[str],
    tmp_path: Path,
    case: str,
) -> None:
    path = broken(tmp_path, CASES[case])
    code, shown, _ = command("verify", path, "--as-kafka", "--json")
    *lines, verdict = map(json.loads, shown.splitlines())
    planned = {Path(line["path"]).name: line for line in lines}
    # a record of a later version stops this version of Kafka, and is no error
    errors = [finding for finding in cw.verify(path).findings if finding.severity == "error" or finding.stops_broker]
    before = directories(path)
    unserved = {name for name, plan in planned.items() if plan["fate"] in {"no_leader", "unserved"}}
    answer = try_start(path, unserved)
    assert ("ended" not in answer) == verdict["starts"], (answer, verdict)
    assert verdict["starts"] == (not verdict["reasons"])
    figures["starts"] += verdict["starts"]
    if not verdict["starts"]:
        assert code == 1
        # the rule of `verify`: what a broker does not start with is an error
        assert errors
        return
    after = directories(path)
    wrong = []
    fates: Counter[str] = Counter()
    for inode, name in before.items():
        if name not in planned:
            # a directory that is no partition's: a broker starts with none that it does not ignore
            wrong += [(name, after.get(inode))] if after.get(inode, name) != name else []
            continue
        fate = planned[name]["fate"]
        fates[fate] += 1
        left = after.get(inode)
        if not names_after(name, fate)(left):
            wrong.append((name, fate, left))
        # records are added to the metadata log at each start
        elif left is not None and fate != "metadata":
            ends = readers_end_offset(planned[name]), log_end_offset(path / left)
            wrong += [(name, fate, ends)] if ends[0] != ends[1] else []
    assert not wrong, answer
    assert planned.keys() <= set(before.values())
    assert sum(fates.values()) == len(planned)
    # a partition without a directory is an empty one afterwards
    made = {Path(missing["file"]).name for missing in verdict["missing_directories"]}
    assert not made & set(before.values())
    assert made <= set(after.values())
    assert verdict["missing"] == len(made)
    assert fates["stray"] == verdict["stray"] == len(verdict["strays"])
    stay = ("kept", "metadata", "unserved", "no_leader")
    assert sum(fates[fate] for fate in stay) == verdict["whole"] + verdict["lossy"]
    figures.update(compared=len(planned), renamed=fates["stray"], deleted=fates["deleted"])
    for name, offsets in answer["offsets"].items():
        # one without a leader has an error in their place, and so has one that the broker does not know
        is_served = name in after.values() and name not in unserved
        assert isinstance(offsets, list) == is_served, (name, offsets)
        if is_served:
            assert offsets == expected_offsets(planned, name), name


def expected_offsets(planned: dict[str, Any], partition: str) -> list[int]:
    """The first and the end offset of a partition; a broker makes an empty one where it keeps none."""
    kept = [line for name, line in planned.items() if line["fate"] == "kept" and name.split(".0123")[0] == partition]
    return [kept[0]["log"]["log_start_offset"], kept[0]["log"]["log_end_offset"]] if kept else [0, 0]
