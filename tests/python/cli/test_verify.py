"""`cordwood verify`: lines, exit codes, JSON, the journal."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import corpus
import pytest
from commands import cordwood

import cordwood as cw

pytest.importorskip("typer")

PLAIN = corpus.GOLDEN / "01-plain" / "orders-0"
DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def verify(*arguments: object) -> Done:
    done = cordwood("verify", *arguments)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_an_intact_partition_has_exit_code_0_and_one_line() -> None:
    done = verify(PLAIN)
    assert done.returncode == 0
    assert done.stdout.startswith("intact: no finding; checked 4 segments of 1 partition")
    assert done.stdout.count("\n") == 1


def test_damage_has_exit_code_1_and_a_line_with_the_place() -> None:
    done = verify(DAMAGED, "--explain")
    assert done.returncode == 1
    line, kafka, advice, summary = done.stdout.splitlines()
    assert line.startswith("error damaged_batch: ")
    assert "00000000000000000285.log at position 2126, offset 302: expected CRC" in line
    assert kafka.startswith("    Kafka: after a clean stop: ")
    assert advice == f"    do: cordwood repair {DAMAGED}"
    assert summary.startswith("damaged: 1 error; checked 4 segments")


def test_json_lines_have_the_attributes_of_the_findings() -> None:
    done = verify(DAMAGED, "--json")
    finding, summary = map(json.loads, done.stdout.splitlines())
    [found] = cw.verify(DAMAGED).findings
    assert finding == {name: getattr(found, name) for name in finding}
    assert (summary["is_intact"], summary["errors"], summary["segments_checked"]) == (False, 1, 4)


def test_warnings_alone_have_exit_code_0_and_quiet_hides_notes(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(PLAIN, partition)
    next(partition.glob("*.timeindex")).unlink()
    (partition / "README").write_text("hello")
    done = verify(partition, "--quiet")
    assert done.returncode == 0
    assert "warning time_index_missing: " in done.stdout
    assert "README" not in done.stdout
    assert "README" in verify(partition).stdout


def test_resume_skips_what_is_unchanged(tmp_path: Path) -> None:
    partition, journal = tmp_path / "data" / "orders-0", tmp_path / "verified.jsonl"
    shutil.copytree(PLAIN, partition)
    assert "4 segments of 1 partition" in verify(partition, "--resume", journal).stdout
    again = verify(partition, "--resume", journal).stdout
    assert "checked 1 segment of 1 partition" in again
    assert "3 segments verified before" in again
    log = sorted(partition.glob("*.log"))[2]
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    changed = verify(partition, "--resume", journal)
    assert changed.returncode == 1
    assert "checked 2 segments" in changed.stdout
    # a later check of everything is not satisfied by one that decoded no records
    assert "checked 4 segments" in verify(partition, "--deep", "--resume", journal).stdout


@pytest.mark.parametrize("arguments", [["nowhere"], [str(PLAIN / "partition.metadata")]])
def test_another_path_is_an_error(arguments: list[str]) -> None:
    done = verify(*arguments)
    assert done.returncode in {1, 2}
    assert done.stderr


def test_a_journal_inside_the_partition_is_refused(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(PLAIN, partition)
    done = verify(partition, "--resume", partition / "journal")
    assert done.returncode == 2
    assert "outside the directories that are verified" in done.stderr
    assert not (partition / "journal").exists()
