"""Indexes that a writer rebuilds and continues have the interval that they were written with.

The expected bytes and distances are those of Kafka's own indexes, in the golden partitions.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
from commands import outputs

import cordwood as cw

GOLDEN = Path(__file__).resolve().parents[2] / "golden/01-plain/orders-0"
INTERVAL = 1024
"""The `index.interval.bytes` of that partition; Kafka's default is 4096."""


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "orders-0"))


def indexes(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for pattern in ("*.index", "*.timeindex") for file in path.glob(pattern)}


def distances(path: Path) -> list[int]:
    """The distances between the positions of the entries of the last offset index."""
    positions = [entry.position for entry in cw.OffsetIndex(max(path.glob("*.index")))]
    return [after - before for before, after in itertools.pairwise(positions)]


def append(path: Path) -> None:
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=1 << 20)) as writer:
        for _ in range(200):
            writer.append(b"x" * 100)


def test_a_missing_index_is_rebuilt_as_kafka_wrote_it(partition: Path) -> None:
    before = indexes(partition)
    first = min(partition.glob("*.index"))
    first.unlink()
    plan = cw.LogWriter.plan_recovery(partition)
    assert (plan.index_interval_bytes, plan.interval_source) == (INTERVAL, "inferred")
    assert [(Path(index.file).name, index.reason) for index in plan.rebuilt_indexes] == [(first.name, "missing")]
    cw.LogWriter(partition).close()
    assert indexes(partition) == before


def test_a_given_interval_is_used_whatever_the_indexes_show(partition: Path) -> None:
    for interval in (4096, 512):
        plan = cw.LogWriter.plan_recovery(partition, config=cw.LogConfig(index_interval_bytes=interval))
        assert (plan.index_interval_bytes, plan.interval_source) == (interval, "given")
        assert {index.reason for index in plan.rebuilt_indexes} == {"differs"}


def test_new_entries_have_the_interval_of_the_existing_ones_also_after_a_clean_close(partition: Path) -> None:
    for opened in range(1, 4):
        # in a new segment, because the records of the others are old
        append(partition)
        assert len(distances(partition)) > 20 * opened
        # an opening counts from its first batch, as in Kafka
        assert INTERVAL < min(distances(partition)) <= max(distances(partition)) < 2 * INTERVAL + 200


def test_an_interval_that_was_given_once_stays(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path, config=cw.LogConfig(index_interval_bytes=300)) as writer:
        writer.append(b"x")
    append(path)
    assert 300 < min(distances(path)) <= max(distances(path)) < 300 + 200


def test_an_index_whose_last_batches_a_crash_lost_shows_the_interval(partition: Path) -> None:
    before = indexes(partition)
    last = max(partition.glob("*.log"))
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size // 2)
    for segment in partition.glob("*"):
        if segment.stem != last.stem and segment.name[0].isdigit():
            segment.unlink()
    (partition / "leader-epoch-checkpoint").unlink(missing_ok=True)
    plan = cw.LogWriter.plan_recovery(partition)
    assert (plan.index_interval_bytes, plan.interval_source) == (INTERVAL, "inferred")
    cw.LogWriter(partition).close()
    name = last.with_suffix(".index").name
    kept = indexes(partition)[name]
    assert kept
    assert before[name].startswith(kept)


def test_without_entries_the_interval_is_kafkas_default(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"x")
    (path / ".cordwood.clean").unlink()
    plan = cw.LogWriter.plan_recovery(path)
    assert (plan.index_interval_bytes, plan.interval_source) == (4096, "default")


def test_the_commands_say_with_which_interval_indexes_were_rebuilt(partition: Path, tmp_path: Path) -> None:
    pytest.importorskip("typer")
    shown = f"index.interval.bytes {INTERVAL}, as the indexes show"
    commands = {
        "truncate": ("truncate", "--to", 1400, "--yes"),
        "append": ("append",),
        "recover": ("recover", "--yes"),
    }
    for name, (command, *options) in commands.items():
        path = Path(shutil.copytree(partition, tmp_path / name / "orders-0"))
        min(path.glob("*.index")).unlink()
        code, out, err = outputs(command, path, *options, given=b"line\n")
        assert (code, shown in out + err) == (0, True), (name, out, err)
    path = Path(shutil.copytree(partition, tmp_path / "json" / "orders-0"))
    document = json.loads(outputs("recover", path, "--json")[1])
    assert (document["index_interval_bytes"], document["interval_source"]) == (INTERVAL, "inferred")


def test_entries_of_several_batches_each_show_no_interval(partition: Path) -> None:
    """A follower's append of several batches has one entry, with the last offset of all."""
    for file in partition.glob("*.index"):
        content = file.read_bytes()
        entries = [content[at : at + 8] for at in range(0, len(content), 8)]
        pairs = zip(entries[::2], entries[1::2], strict=False)
        file.write_bytes(b"".join(second[:4] + first[4:] for first, second in pairs))
    plan = cw.LogWriter.plan_recovery(partition)
    assert (plan.index_interval_bytes, plan.interval_source) == (4096, "default")


def test_a_log_of_a_writer_that_crashed_has_the_default_interval(partition: Path) -> None:
    """A recovery that was interrupted has replaced some indexes: what they show would depend on where."""
    cw.LogWriter(partition).close()
    (partition / ".cordwood.clean").unlink()
    plan = cw.LogWriter.plan_recovery(partition)
    assert (plan.index_interval_bytes, plan.interval_source) == (4096, "default")
