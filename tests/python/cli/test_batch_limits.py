"""`--max-batch-bytes` of every command that reads records."""

from __future__ import annotations

from pathlib import Path

import batches
import pytest
from batches import GZIP, Rec, batch, write_partition
from commands import cordwood

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


def values(offset: int, size: int) -> list[Rec]:
    return [Rec(b"x" * size, key=b"k%d" % (offset + n), timestamp=1000 + offset + n) for n in range(2)]


def test_the_commands_with_the_option_are_tried() -> None:
    assert set(COMMANDS) == WITH_MAX_BATCH_BYTES


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


def test_a_limit_below_one_byte_is_wrong_usage(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", [(0, [batch(0, values(0, 10))])])
    for command in ("cat", "dump"):
        assert cordwood(command, path, "--max-batch-bytes", 0).returncode == 2
