"""`--max-batch-bytes` of every command that reads records."""

from __future__ import annotations

import shutil
from pathlib import Path

import batches
import corpus
import pytest
from batches import GZIP, Rec, batch, write_partition
from commands import cordwood

import cordwood as cw
from cordwood.cli.exit_codes import WITH_MAX_BATCH_BYTES

LIMIT = "--max-batch-bytes=10000"
RAISED = "--max-batch-bytes=20000"

COMMANDS: dict[str, list[object]] = {
    "cat": ["--on-damage", "skip"],
    "count": ["--by", "key", "--on-damage", "skip"],
    "find": ["--time", "1970-01-01T00:00:01.003Z"],
    "dump": ["--print-data-log"],
    "copy": ["{new}", "--on-damage", "skip"],
    "compact": ["--set", "min.cleanable.dirty.ratio=0"],
    "diff": ["{other}"],
    "report": ["-o", "{new}.svg"],
    "verify": ["--deep"],
}


# a data directory, or the partition of old batches
OTHERS: dict[str, list[object]] = {
    "reindex": [],
    "repair": ["--policy", "salvage"],
    "recover": [],
    "verify": ["--as-kafka", "--unclean"],
    "groups": ["{data}", "--on-damage", "skip"],
    "transactions": ["{data}", "--on-damage", "skip"],
    "metadata": ["{data}", "--on-damage", "skip"],
    "ls": [],
    "producers": [],
    "positions": [],
    "truncate": ["--to", 3],
    "apply-retention": [],
    "append": [],
}


def values(offset: int, size: int) -> list[Rec]:
    return [Rec(b"x" * size, key=b"k%d" % (offset + n), timestamp=1000 + offset + n) for n in range(2)]


def test_the_commands_with_the_option_are_tried() -> None:
    assert set(COMMANDS) | set(OTHERS) == WITH_MAX_BATCH_BYTES


@pytest.mark.parametrize("codec", [batches.NONE, GZIP], ids=["stored", "decompressed"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_option_and_reads_with_a_higher_limit(command: str, codec: int, tmp_path: Path) -> None:
    def segments(codec: int) -> list[tuple[int, list[bytes]]]:
        return [(base, [batch(base, values(base, size), codec=codec)]) for base, size in ((0, 10), (2, 8_000), (4, 10))]

    path = write_partition(tmp_path / "orders-0", segments(codec))
    write_partition(tmp_path / "others-0", segments(GZIP if codec == batches.NONE else batches.NONE))
    given = {"{new}": tmp_path / "new-0", "{new}.svg": tmp_path / "new.svg", "{other}": tmp_path / "others-0"}
    words = [given.get(str(word), word) for word in COMMANDS[command]]
    before = {file: file.read_bytes() for file in path.iterdir()}
    limited = cordwood(command, path, *words, LIMIT)
    output = limited.stdout.decode() + limited.stderr.decode()
    if command == "verify":
        assert "warning batch_too_large" in output
        assert limited.returncode == 0
    elif command == "copy" and codec == GZIP:
        # batches are copied as they are
        assert limited.returncode == 0
        return
    else:
        assert limited.returncode == 1, output
        assert "--max-batch-bytes raises the limit" in output
    raised = cordwood(command, path, *words, RAISED)
    output = raised.stdout.decode() + raised.stderr.decode()
    assert raised.returncode == 0, output
    assert "batch_too_large" not in output
    assert {file: file.read_bytes() for file in path.iterdir()} == before


@pytest.mark.parametrize("command", OTHERS)
def test_a_command_that_decompresses_few_batches_names_the_option(command: str, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(corpus.partition("17-v1-gzip").path, path)
    cw.Log(path).position("reader").commit(1)
    words = [corpus.GOLDEN / "16-data-dir" if word == "{data}" else word for word in OTHERS[command]]
    words = words if words != OTHERS[command] else [path, *words]
    limited = cordwood(command, *words, "--max-batch-bytes=80")
    assert limited.returncode == 1, limited.stdout
    assert b"--max-batch-bytes raises the limit" in limited.stderr
    raised, usual = (cordwood(command, *words, *option) for option in (["--max-batch-bytes=1000000"], []))
    assert (raised.returncode, raised.stdout, raised.stderr) == (usual.returncode, usual.stdout, usual.stderr)


@pytest.mark.parametrize("command", ["truncate", "apply-retention", "append", "recover", "compact"])
def test_a_command_that_changes_a_log_opens_it_with_the_limit(command: str, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(corpus.partition("17-v1-gzip").path, path)
    for file in path.glob("*.index"):
        file.unlink()
    words = {"truncate": ["--to", 3], "compact": ["--set", "min.cleanable.dirty.ratio=0"]}.get(command, [])
    given: list[object] = [path, *words, *([] if command == "append" else ["--yes"])]
    limited = cordwood(command, *given, "--max-batch-bytes=80", given=b"line\n")
    assert limited.returncode == 1, limited.stdout
    assert b"--max-batch-bytes raises the limit" in limited.stderr
    raised = cordwood(command, *given, "--max-batch-bytes=1000000", given=b"line\n")
    assert raised.returncode == 0, raised.stderr


def test_the_files_of_a_partition_are_opened_with_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(corpus.partition("17-v1-gzip").path, path)
    files = sorted(path.glob("*.log"))
    for command in ("ls", "cat", "count"):
        limited = cordwood(command, *files, "--max-batch-bytes=80")
        assert limited.returncode == 1, limited.stdout
        assert b"--max-batch-bytes raises the limit" in limited.stderr
        assert cordwood(command, *files, "--max-batch-bytes=1000000").returncode == 0


def test_a_limit_below_one_byte_is_wrong_usage(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", [(0, [batch(0, values(0, 10))])])
    for command in ("cat", "dump"):
        assert cordwood(command, path, "--max-batch-bytes", 0).returncode == 2
