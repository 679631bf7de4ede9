"""Data directories with a partition that cannot be read: the other partitions are done, and the exit code is 1."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import pytest
from commands import cordwood
from scripts import BECOME_NOBODY, run, write_script

# modules that are imported on first use may not be readable for the user
RUN = (
    "import json, sys\nfrom cordwood.cli import main\n"
    "commands = json.loads(sys.argv[1])\n"
    "for words in commands:\n    main(words)\n"
    "sys.stdout.write('\\0')\nsys.stderr.write('\\0')\n"
    + BECOME_NOBODY
    + "for words in commands:\n    code = main(words)\n"
    "    sys.stdout.write(f'\\0{code}\\0')\n    sys.stderr.write('\\0')\n"
)


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder that another user can reach."""
    path = Path(tempfile.mkdtemp(prefix="cordwood-"))
    path.chmod(0o755)
    yield path
    for closed in path.rglob("*"):
        if closed.is_dir():
            closed.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def data(top: Path) -> Path:
    path = Path(shutil.copytree(corpus.GOLDEN / "16-data-dir", top / "data"))
    shutil.copytree(corpus.partition("11-transactions").path, path / "payments-0")
    return path


def as_nobody(top: Path, env: dict[str, str], *commands: list[Any]) -> list[tuple[int, str, str]]:
    """The exit code, output and errors of commands that a user without rights runs."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = run(write_script(top, RUN), words, env=env)
    out, errors = done.stdout.split("\0")[1:], done.stderr.split("\0")[1:]
    return [(int(out[2 * at + 1]), out[2 * at], errors[at]) for at in range(len(commands))]


def test_a_directory_that_may_not_be_opened_does_not_hide_the_others(
    top: Path, data: Path, script_environment: dict[str, str]
) -> None:
    closed = data / "cities-0"
    closed.chmod(0)
    listed, counted, opened, loaded, text = as_nobody(
        top,
        script_environment,
        ["ls", data, "--json"],
        ["count", data, "--json"],
        ["transactions", data, "--open", "--json"],
        ["verify", data, "--as-kafka", "--clean", "--json"],
        ["ls", data, "--by", "topic"],
    )
    for code, _, error in (listed, counted, opened, loaded, text):
        assert code == 1
        assert f"{closed}" in error
        assert "ermission denied" in error
        assert "Traceback" not in error
    whole = {row["name"]: row for row in json.loads(cordwood("ls", data, "--json").stdout)["partitions"]}
    rows = {row["name"]: row for row in json.loads(listed[1])["partitions"]}
    assert list(rows) == list(whole)
    assert (rows["cities-0"]["topic"], rows["cities-0"]["partition"]) == ("cities", 0)
    assert "ermission denied" in rows["cities-0"]["error"]
    # its files are not known, so they are not none
    assert rows["cities-0"].keys() == {*whole["cities-0"], "error"} - {
        *("size", "log_start_offset", "log_end_offset", "segments", "missing", "warnings"),
    }
    assert [rows["cities-0"][name] for name in ("files", "file_bytes", "disk_bytes", "modified")] == [None] * 4
    assert " partitions, at least " in text[1]
    assert rows["cities-1"]["log_end_offset"] == whole["cities-1"]["log_end_offset"]
    document, everything = (json.loads(cordwood("count", data, "--json").stdout), json.loads(counted[1]))
    assert [row["path"] for row in everything["failed"]] == [str(closed)]
    assert everything["groups"] == [row for row in document["groups"] if row["path"] != str(closed)]
    assert everything["records"] == sum(row["records"] for row in everything["groups"]) > 0
    *found, failed = sorted(map(json.loads, opened[1].splitlines()), key=lambda row: row["topic"] == "cities")
    assert {row["first_offset"] for row in found} == {903, 940}
    assert (failed["topic"], failed["partition"], failed["first_offset"]) == ("cities", 0, None)
    *loads, summary = [json.loads(line) for line in loaded[1].splitlines()]
    assert not summary["starts"]
    assert [Path(load["path"]).name for load in loads if "error" in load] == ["cities-0"]
    assert {Path(load["path"]).name for load in loads if "error" not in load} == set(whole) - {"cities-0"}


def test_a_log_file_that_may_not_be_read_is_counted_with_nothing(
    top: Path, data: Path, script_environment: dict[str, str]
) -> None:
    """It is found after a part of the partition was counted."""
    payments = data / "payments-0"
    last = sorted(payments.glob("*.log"))[1]
    last.chmod(0)
    by_partition, by_key, hours, opened = as_nobody(
        top,
        script_environment,
        ["count", data, "--json"],
        ["count", data, "--by", "key", "--json"],
        ["count", data, "--by", "hour", "--by", "topic", "--json"],
        ["transactions", data, "--open", "--json"],
    )
    shutil.rmtree(payments)
    for (code, out, error), options in (
        (by_partition, []),
        (by_key, ["--by", "key"]),
        (hours, ["--by", "hour", "--by", "topic"]),
    ):
        assert code == 1
        assert f"cordwood: {last}: Permission denied\n" in error
        assert error.endswith("could not be read: payments-0\n")
        document = json.loads(out)
        assert [row["path"] for row in document.pop("failed")] == [str(payments)]
        assert document == json.loads(cordwood("count", data, *options, "--json").stdout)
    assert opened[0] == 1
    assert "Permission denied" in opened[2]


def test_a_partition_without_its_segments_does_not_hide_the_others(data: Path) -> None:
    for file in (data / "cities-0").glob("*.log"):
        file.unlink()
    done = cordwood("count", data, "--json")
    assert done.returncode == 1
    assert "could not be read: cities-0" in done.stderr.decode()
    paths = [Path(row["path"]).name for row in json.loads(done.stdout)["groups"]]
    assert "cities-0" not in paths
    assert {"cities-1", "payments-0"} <= set(paths)
    done = cordwood("transactions", data, "--open")
    assert done.returncode == 1
    assert b"payments-0" in done.stdout
    assert str(data / "cities-0") in done.stderr.decode()
    # alone, it is the error of the command
    assert cordwood("count", data / "cities-0").returncode == 1
