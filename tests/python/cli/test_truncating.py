"""`cordwood truncate`, `apply-retention` and `recover`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import corpus
import pytest
from commands import files, ok, outputs

import cordwood as cw

pytest.importorskip("typer")

T = 1_700_000_000_000


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        for number in range(3):
            writer.append_many([cw.Record(b"x" * 100, timestamp=T + 1000 * number)] * 10)
            writer.append_many([cw.Record(b"x" * 100, timestamp=T + 1000 * number)] * 10)
            writer.roll()
    return path


def test_truncate_without_yes_prints_the_plan_and_writes_nothing(log: Path) -> None:
    before = files(log)
    text = ok("truncate", log, "--to", 25)
    assert "would remove" in text
    assert "offset 20 to 60" in text
    assert "--yes" in text
    document = json.loads(ok("truncate", log, "--to", 25, "--json"))
    assert (document["first_offset"], document["segments"], document["dry_run"]) == (20, [40, 60], True)
    sizes = {s.base_offset: s.size for s in cw.Log(log).segments}
    assert document["bytes"] == sizes[20] + sizes[40]
    assert json.loads(ok("truncate", log, "--to", 30, "--json"))["bytes"] == sizes[20] // 2 + sizes[40]
    assert "nothing to truncate" in ok("truncate", log, "--to", 60)
    assert files(log) == before
    for missing in (("truncate", log.with_name("no-0"), "--to", 5), ("apply-retention", log.with_name("no-0"))):
        for more in ((), ("--yes",)):
            assert outputs(*missing, *more)[0] == 2
    assert not log.with_name("no-0").exists()


def test_truncate_with_yes_truncates(log: Path) -> None:
    text = ok("truncate", log, "--to", 25, "--yes")
    assert "removed" in text
    found = cw.Log(log)
    # the batch that contains 25 is removed as a whole
    assert found.log_end_offset == 20
    assert "the log ends at 20" in text
    assert [r.offset for r in found.records()] == list(range(20))


def test_truncate_below_the_log_start_leaves_an_empty_log(log: Path) -> None:
    with cw.LogWriter(log) as writer:
        writer.delete_before(25)
    document = json.loads(ok("truncate", log, "--to", 22, "--json"))
    assert (document["first_offset"], document["segments"]) == (25, [20, 40, 60])
    document = json.loads(ok("truncate", log, "--to", 22, "--json", "--yes"))
    assert (document["log_end_offset"], document["truncated"]) == (22, True)
    found = cw.Log(log)
    assert (found.log_start_offset, found.log_end_offset, list(found.records())) == (22, 22, [])


def test_apply_retention_prints_the_plan_and_with_yes_applies_it(log: Path) -> None:
    settings = ("--set", "retention.ms=1000", "--now", str(T + 2500))
    before = files(log)
    text = ok("apply-retention", log, *settings)
    assert "would be deleted" in text
    assert "starts at 40" in text
    document = json.loads(ok("apply-retention", log, *settings, "--json"))
    assert (document["segments"], document["log_start_offset"], document["dry_run"]) == ([0, 20], 40, True)
    assert files(log) == before
    done = json.loads(ok("apply-retention", log, *settings, "--json", "--yes"))
    assert done == {**document, "dry_run": False}
    assert [s.base_offset for s in cw.Log(log).segments] == [40, 60]
    assert "no segment" in ok("apply-retention", log, *settings)


def test_apply_retention_reads_a_brokers_properties(log: Path) -> None:
    properties = log.with_name("server.properties")
    properties.write_text("log.retention.hours=1\nnode.id=1\nlog.retention.bytes=-1\n")
    arguments = ("apply-retention", log, "--properties", properties, "--now", str(T + 2500), "--json")
    assert json.loads(ok(*arguments))["segments"] == []
    assert json.loads(ok(*arguments, "--set", "retention.ms=1000"))["segments"] == [0, 20]


def test_a_log_that_has_a_writer_is_refused(log: Path) -> None:
    with cw.LogWriter(log):
        for command in (
            ("append", log),
            ("truncate", log, "--to", "5"),
            ("truncate", log, "--to", "5", "--yes"),
            ("apply-retention", log),
            ("apply-retention", log, "--yes"),
        ):
            code, out, error = outputs(*command, given=b"x\n")
            assert (code, out) == (1, "")
            assert "locked" in error
    ok("truncate", log, "--to", "5")
    ok("apply-retention", log)


@pytest.mark.parametrize("command", [("truncate", "--to", "5"), ("apply-retention",)], ids=lambda command: command[0])
def test_a_dry_run_refuses_what_the_real_one_refuses(tmp_path: Path, command: tuple[str, ...]) -> None:
    source = corpus.partition("01-plain")
    path = tmp_path / source.name
    shutil.copytree(source.path, path)
    first = min(path.glob("*.log"))
    first.write_bytes(bytes([*(data := first.read_bytes())[:70], data[70] ^ 1, *data[71:]]))
    before = files(path)
    found = outputs(command[0], path, *command[1:])
    assert files(path) == before
    assert found == outputs(command[0], path, *command[1:], "--yes")
    code, out, error = found
    assert (code, out) == (1, "")
    assert "damaged at position 0" in error


def test_a_log_with_producers_is_recovered_and_truncated(tmp_path: Path) -> None:
    source = corpus.partition("10-idempotent")
    path = tmp_path / source.name
    shutil.copytree(source.path, path)
    last = max(path.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])
    code, out, _ = outputs("recover", path)
    assert code == 0
    assert last.name in out
    assert "after recovery the log starts at offset 0 and ends at offset 885" in " ".join(out.split())
    assert outputs("recover", path, "--yes")[0] == 0
    # the base offset of a batch
    assert outputs("truncate", path, "--to", "499", "--yes")[0] == 0
    log = cw.Log(path)
    assert log.log_end_offset == 499
    assert outputs("verify", path)[0] == 0


def test_recover_says_which_small_files_it_writes_again(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"x")
    (path / ".cordwood.durable").write_bytes(b"x")
    before = files(path)
    code, out, _ = outputs("recover", path)
    assert code == 0
    assert "recovery would change these files" in out
    assert ".cordwood.durable" in out
    assert "add --yes" in out
    assert files(path) == before
    document = json.loads(outputs("recover", path, "--json")[1])
    assert (document["is_clean"], document["rewritten_files"]) == (True, [str(path / ".cordwood.durable")])
    assert outputs("recover", path, "--yes")[0] == 0
    assert files(path) != before
    assert "nothing to recover" in outputs("recover", path)[1]
