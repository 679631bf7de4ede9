"""`cordwood verify`: lines, exit codes, JSON, the journal."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import corpus
import pytest
from commands import cordwood

import cordwood as cw

pytest.importorskip("typer")

PLAIN = corpus.GOLDEN / "01-plain" / "orders-0"
TORN = corpus.GOLDEN / "damaged" / "torn-last-byte" / "tickets-0"
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
    assert advice == f"    do: cordwood repair {DAMAGED} --policy salvage --apply"
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
    assert done.returncode == 2
    assert done.stderr


def test_a_journal_inside_the_partition_is_refused(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(PLAIN, partition)
    done = verify(partition, "--resume", partition / "journal")
    assert done.returncode == 2
    assert "outside the directories that are verified" in done.stderr
    assert not (partition / "journal").exists()


def test_as_kafka_shows_what_an_unclean_start_cuts() -> None:
    done = verify(TORN, "--as-kafka", "--unclean")
    assert done.returncode == 1
    assert f"{TORN.absolute()}: a broker of Kafka 4.3.1 opens it after an unclean shutdown" in done.stdout
    assert re.search(r"(?m)^00000000000000000285\.log +cut from 10290 to 10098 bytes: 192 bytes lost", done.stdout)
    assert done.stdout.splitlines()[-1] == (
        "afterwards the log starts at offset 0 and ends at offset 369, in 4 segments"
    )


def test_as_kafka_shows_what_a_clean_start_hides() -> None:
    done = verify(TORN, "--as-kafka", "--clean")
    assert done.returncode == 1
    assert "offsets 285 to 368 are hidden: the log ends below" in done.stdout
    assert "ends at offset 285" in done.stdout


def test_as_kafka_names_the_damage_that_a_clean_start_accepts() -> None:
    """Recovery, which would find it, is skipped."""
    flipped = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    done = verify(flipped, "--as-kafka", "--clean")
    assert done.returncode == 0
    log = flipped.absolute() / "00000000000000000285.log"
    assert re.search(rf"(?m)^accepted at load: error \w+: {re.escape(str(log))}", done.stdout)
    document = json.loads(verify(flipped, "--as-kafka", "--clean", "--json").stdout)
    [accepted] = document["accepted"]
    assert (accepted["file"], accepted["position"], accepted["severity"]) == (str(log), 2126, "error")
    # recovery cuts the log there
    unclean = verify(flipped, "--as-kafka", "--unclean", "--json")
    assert json.loads(unclean.stdout)["accepted"] == []
    assert "accepted at load" not in verify(PLAIN, "--as-kafka", "--clean").stdout


@pytest.mark.parametrize("clean", [True, False])
def test_as_kafka_json_has_the_fields_of_the_plan(clean: bool) -> None:
    done = verify(TORN, "--as-kafka", "--clean" if clean else "--unclean", "--json")
    document = json.loads(done.stdout)
    load = cw.plan_kafka_load(TORN, clean=clean)
    assert load.log is not None
    assert document["path"] == load.path
    assert (document["is_clean"], document["closed_cleanly"]) == (False, clean)
    assert document["bytes_cut"] == load.bytes_cut
    assert [action["file"] for action in document["actions"]] == [action.file for action in load.actions]
    assert [lost["start_offset"] for lost in document["lost_offsets"]] == ([285] if clean else [])
    assert [warning["kind"] for warning in document["warnings"]] == [warning.kind for warning in load.warnings]
    assert document["log"]["log_end_offset"] == load.log.log_end_offset == (285 if clean else 369)


def test_as_kafka_of_intact_and_of_failing_partitions() -> None:
    for option in ("--clean", "--unclean"):
        assert verify(PLAIN, "--as-kafka", option).returncode == 0
    failing = corpus.GOLDEN / "damaged" / "epochs-count" / "elections-0"
    done = verify(PLAIN, failing, "--as-kafka", "--clean")
    assert done.returncode == 1
    assert "the loading fails: " in done.stdout
    documents = [
        json.loads(line) for line in verify(PLAIN, failing, "--as-kafka", "--clean", "--json").stdout.splitlines()
    ]
    assert [document["failure"] is None for document in documents] == [True, False]
    assert [document["log"] is None for document in documents] == [False, True]


def test_as_kafka_takes_the_shutdown_from_the_marker_of_the_data_directory(tmp_path: Path) -> None:
    shutil.copytree(corpus.GOLDEN / "16-data-dir", tmp_path / "data")
    data = tmp_path / "data"
    marker = data / ".kafka_cleanshutdown"
    for is_clean in (True, False):
        marker.unlink(missing_ok=True)
        if is_clean:
            marker.write_text('{"version":0,"brokerEpoch":-1}')
        # a partition that is also in the data directory is shown once
        done = verify(data, data / "cities-0", "--as-kafka", "--json")
        *documents, verdict = [json.loads(line) for line in done.stdout.splitlines()]
        assert [Path(document["path"]).name for document in documents] == list(cw.LogDir(data, include=["future"]))
        # a broker recovers the metadata log after any shutdown
        cleanly = {Path(document["path"]).name: document["closed_cleanly"] for document in documents}
        assert not cleanly.pop("__cluster_metadata-0")
        assert set(cleanly.values()) == {is_clean}
        assert (verdict["path"], verdict["partitions"]) == (str(data), len(documents))
        assert [Path(reason["file"]).name for reason in verdict["reasons"]] == ["expected"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([TORN, "--clean"], "--clean and --unclean: expected --as-kafka with them"),
        ([TORN, "--as-kafka", "--clean", "--deep"], "--as-kafka: expected no --deep"),
        ([TORN, "--set", "index.interval.bytes=512"], "--set and --properties: expected --as-kafka with them"),
        ([TORN, "--as-kafka"], "--clean or --unclean: expected "),
        ([TORN / "00000000000000000285.log", "--as-kafka"], "--as-kafka expects a partition directory"),
    ],
)
def test_wrong_usage_of_as_kafka(arguments: list[object], said: str) -> None:
    done = verify(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
