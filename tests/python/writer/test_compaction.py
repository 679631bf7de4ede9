"""Compaction by the writer and by the command."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from scripts import Command

import cordwood as cw

CONFIG = cw.LogConfig(
    segment_bytes=2000, cleanup_policy="compact", min_cleanable_dirty_ratio=0.4, delete_retention_ms=1000
)
SETTINGS = ("--set", "internal.segment.bytes=2000", "--set", "delete.retention.ms=1000")
NOW = 1_700_000_000_000


def write(path: Path, count: int = 200) -> None:
    with cw.LogWriter(path, config=CONFIG, flush="none") as writer:
        for number in range(count):
            value = None if number % 7 == 0 else f"{number} {'x' * 30}"
            writer.append(value, key=f"k{number % 5}", timestamp=NOW + number)


def values(log: cw.Log) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in log.records()}


def test_a_compaction_is_what_its_plan_says(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    write(path)
    with cw.LogWriter(path, config=CONFIG) as writer:
        log = writer.reader()
        before, plan = values(log), cw.plan_compaction(log, CONFIG, NOW, threads=2)
        done = writer.compact(NOW)
        assert done == plan
        assert (done.state, done.is_due, done.is_complete, done.bound) == ("dirty", True, True, "active_segment")
        assert (done.first_dirty_offset, done.dirty_ratio, done.keys) == (0, 1.0, 5)
        assert done.end_offset == done.first_uncleanable_offset == log.segments[-1].base_offset
        assert sum(segment.records_after for segment in done.segments) == 5
        after = writer.reader()
        assert values(after) == before
        assert after.size < log.size / 5
        assert after.size == done.segments[-1].bytes_after + after.segments[-1].size
        assert after.is_compacted
        again = writer.compact(NOW)
        assert (again.state, again.is_due, again.segments) == ("clean", False, [])
        assert again.first_dirty_offset == done.end_offset
    assert values(cw.Log(path)) == before
    assert [finding for finding in cw.verify(path).findings if finding.severity == "error"] == []


def test_the_settings_decide_whether_a_compaction_is_due(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    write(path)
    log = cw.Log(path)
    last = log.segments[-2].largest_timestamp
    for changes, state, bound in [
        ({"min_cleanable_dirty_ratio": 1.0}, "below_ratio", "active_segment"),
        ({"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 1000}, "overdue", "active_segment"),
        ({"min_compaction_lag_ms": NOW}, "clean", "young_records"),
        ({"min_compaction_lag_ms": 50}, "dirty", "young_records"),
    ]:
        config = cw.LogConfig(segment_bytes=2000, cleanup_policy="compact,delete", **changes)  # type: ignore[arg-type]
        now = last + 20 if bound == "young_records" else last + 10_000
        plan = cw.plan_compaction(log, config, now)
        assert (plan.state, plan.bound) == (state, bound), changes
    with pytest.raises(cw.ConfigError, match=r"cleanup\.policy: expected compact"):
        cw.plan_compaction(log)
    with pytest.raises(cw.ConfigError, match=r"dedupe_buffer_bytes: expected at least 48 bytes"):
        cw.plan_compaction(log, CONFIG, dedupe_buffer_bytes=20)


def test_with_little_memory_several_passes_give_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    write(path)
    before = values(cw.Log(path))
    config = cw.LogConfig(segment_bytes=2000, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    ends = []
    with cw.LogWriter(path, config=config) as writer:
        while (done := writer.compact(NOW, dedupe_buffer_bytes=24 * 4)).is_due:
            ends.append(done.end_offset)
            assert done.keys <= 3
            assert done.is_complete == (done.end_offset == done.first_uncleanable_offset)
    assert len(ends) > 3
    assert ends == sorted(set(ends))
    assert values(cw.Log(path)) == before


def test_tombstones_are_removed_after_their_retention(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    with cw.LogWriter(path, config=CONFIG) as writer:
        for value in ("v", None):
            writer.append(value, key="gone", timestamp=NOW)
        writer.append("v", key="kept", timestamp=NOW)
        writer.roll()
        writer.compact(NOW)
        assert [record.key for record in writer.reader().records()] == [b"gone", b"kept"]
        for now, keys in [(NOW + 999, [b"gone", b"kept"]), (NOW + 1000, [b"kept"])]:
            writer.append("new", key="other", timestamp=NOW)
            writer.roll()
            writer.compact(now)
            assert [record.key for record in writer.reader().records() if record.key != b"other"] == keys


def test_appends_of_other_threads_go_on(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    write(path)
    config = cw.LogConfig(segment_bytes=2000, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    with cw.LogWriter(path, config=config, flush="none") as writer:
        sent: dict[bytes, bytes] = {}
        stop = threading.Event()

        def append() -> None:
            number = 0
            while (not stop.is_set() and number < 2000) or number < 50:
                number += 1
                key, value = b"new %d" % (number % 3), b"%d" % number
                writer.append(value, key=key)
                sent[key] = value

        thread = threading.Thread(target=append)
        thread.start()
        for _ in range(3):
            writer.compact()
        stop.set()
        thread.join()
        expected = {b"k%d" % n: values(writer.reader())[b"k%d" % n] for n in range(5)} | sent
        writer.roll()
        writer.compact()
        assert values(writer.reader()) == expected
    assert values(cw.Log(path)) == expected


def test_a_truncation_lowers_what_counts_as_clean(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    write(path)
    with cw.LogWriter(path, config=CONFIG) as writer:
        end = writer.compact(NOW).end_offset
        writer.truncate_to(end - 10)
        base = writer.reader().segments[-1].base_offset
        writer.append("v", key="k0", timestamp=NOW)
        writer.roll()
        assert writer.compact(NOW).first_dirty_offset == base
        writer.truncate_fully_and_start_at(3)
        writer.append("v", key="k0", timestamp=NOW)
        writer.roll()
        assert writer.compact(NOW).first_dirty_offset == 3


def test_in_a_data_directory_the_offset_is_a_line_of_kafkas_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\nother 3 77\n")
    path = tmp_path / "profiles-0"
    write(path)
    with cw.LogWriter(path, config=CONFIG) as writer:
        end = writer.compact(NOW).end_offset
    assert checkpoint.read_text() == f"0\n2\nother 3 77\nprofiles 0 {end}\n"
    assert not (path / ".cordwood.compacted").exists()
    assert cw.plan_compaction(cw.Log(path), CONFIG, NOW).first_dirty_offset == end
    # above the log end offset, as after a loss: the whole log is dirty
    checkpoint.write_text("0\n1\nprofiles 0 100000\n")
    assert cw.plan_compaction(cw.Log(path), CONFIG, NOW).first_dirty_offset == 0


def test_the_command_compacts_only_with_yes(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    write(path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    code, out, error = command("compact", path, *SETTINGS, "--now", "2023-11-15")
    assert (code, error) == (0, "")
    assert "would be compacted: 100% of" in out
    assert "nothing was written; add --yes to compact" in out
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    code, out, _ = command(
        "compact", path, *SETTINGS, "--now", "2023-11-15", "--dedupe-buffer-bytes", 72, "--yes", "--json"
    )
    document = json.loads(out)
    assert (code, document["dry_run"]) == (0, False)
    assert len(document["passes"]) > 1
    assert [one["is_complete"] for one in document["passes"] if one["state"] == "dirty"].count(True) <= 1
    code, out, _ = command("compact", path, *SETTINGS, "--set", "min.cleanable.dirty.ratio=0", "--yes")
    assert code == 0
    code, out, _ = command("compact", path, *SETTINGS)
    assert (code, "nothing to compact below offset" in out) == (0, True)
    assert command("compact", path, "--set", "cleanup.policy=delete")[0] == 2
    assert command("compact", tmp_path / "missing-0")[0] == 2
