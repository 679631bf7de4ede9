"""`cordwood diff`: lines, exit codes, JSON, wrong usage."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import corpus
import pytest
from commands import cordwood

import cordwood as cw

pytest.importorskip("typer")

LEADER, FOLLOWER = (corpus.GOLDEN / f"21-replica-{role}" / "copied-0" for role in ("leader", "follower"))
SMALL = corpus.GOLDEN / "01-small" / "tickets-0"
FLIPPED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def diff(*arguments: object) -> Done:
    done = cordwood("diff", *arguments)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_replicas_with_the_same_batches_have_exit_code_0() -> None:
    done = diff(LEADER, FOLLOWER)
    assert (done.returncode, done.stderr) == (0, "")
    a, b, compared = done.stdout.splitlines()
    assert a == f"A: {LEADER.absolute()}: offsets 0 to 889"
    assert b.startswith(f"B: {FOLLOWER.absolute()}: ")
    assert compared.startswith("offsets 0 to 889 (exclusive): the same records (")


def test_what_one_lacks_at_its_start_and_end_is_said(tmp_path: Path) -> None:
    copied = Path(shutil.copytree(FOLLOWER, tmp_path / "copied-0"))
    for file in [*copied.glob("00000000000000000000.*"), *copied.glob("00000000000000000500.*")]:
        file.unlink()
    done = diff(LEADER, copied)
    assert done.returncode == 0
    assert "B lacks offsets 0 to 43 (exclusive) at its start (retention), not compared\n" in done.stdout
    assert "B lacks offsets 500 to 889 (exclusive) at its end (lag), not compared\n" in done.stdout
    assert "offsets 43 to 500 (exclusive): the same records" in done.stdout
    assert "A lacks offsets 0 to 43 (exclusive) at its start" in diff(copied, LEADER).stdout


def test_damage_has_exit_code_1_its_place_and_its_effect() -> None:
    done = diff(SMALL, FLIPPED)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "first difference at offset 302: damage" in lines
    [damaged] = [line for line in lines if "is damaged from position 2126 to 2296: expected CRC" in line]
    assert damaged.startswith(f"B: {FLIPPED.absolute()}/00000000000000000285.log is damaged")
    assert any(line.startswith("A: ") and "batch 302 at position 2126" in line for line in lines)
    assert lines[-1].startswith("B: as the leader, its followers refuse the damaged bytes")
    assert diff(SMALL, FLIPPED, "--end-offset", "302").returncode == 0
    assert diff(SMALL, FLIPPED, "--start-offset", "303").returncode == 0


def test_a_different_value_is_shown_with_what_followers_do(tmp_path: Path) -> None:
    paths = []
    for folder, epoch, values in [("a", 1, [b"0", b"1", b"new"]), ("b", 0, [b"0", b"1", b"old", b"3"])]:
        path = tmp_path / folder / "orders-0"
        path.parent.mkdir()
        with cw.LogWriter(path, leader_epoch=0) as writer:
            for number, value in enumerate(values[:2]):
                writer.append(value, timestamp=1000 + number)
        with cw.LogWriter(path, leader_epoch=epoch) as writer:
            for number, value in enumerate(values[2:]):
                writer.append(value, timestamp=1002 + number)
        paths.append(path)
    done = diff(*paths)
    assert done.returncode == 1
    assert "first difference at offset 2: value\n" in done.stdout
    assert 'timestamp 1002, key null, value "new"\n' in done.stdout
    assert 'timestamp 1002, key null, value "old"\n' in done.stdout
    assert ", leader epoch 1\n" in done.stdout
    assert "B lacks" not in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last == "B as a follower of A: it truncates its log to offset 2, which removes the difference"
    document = json.loads(diff(*paths, "--json").stdout)
    first = cw.diff(*paths).first
    assert first is not None
    assert first.different_byte is not None
    assert document["is_same"] is False
    assert document["first"]["cause"] == "epochs"
    assert document["first"]["different_byte"] == list(first.different_byte)
    assert [place["value"] for place in document["first"]["places"]] == ["new", "old"]
    assert [replica["leader_epochs"] for replica in document["replicas"]] == [[[0, 0], [1, 2]], [[0, 0]]]


def test_json_of_damage_and_of_the_same_records() -> None:
    document = json.loads(diff(SMALL, FLIPPED, "--json").stdout)
    assert [damage and damage["start_position"] for damage in document["first"]["damage"]] == [None, 2126]
    assert [place and place["position"] for place in document["first"]["places"]] == [2126, None]
    document = json.loads(diff(LEADER, FOLLOWER, "--json").stdout)
    assert (document["is_same"], document["first"], document["other_form"]) == (True, None, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([LEADER], "Missing argument"),
        ([LEADER, FOLLOWER, "--start-offset", "-1"], "--start-offset: expected an offset from 0 to 2^63 - 1, found -1"),
        ([LEADER, FOLLOWER, "--end-offset", "x"], "--end-offset"),
        (
            [LEADER, FOLLOWER, "--start-offset", "5000"],
            "--start-offset: expected offsets that both replicas have: 0 to 889",
        ),
    ],
)
def test_wrong_usage_has_exit_code_2(arguments: list[object], said: str) -> None:
    done = diff(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    done = diff(LEADER, tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere" in done.stderr
