"""Several data directories, `.log` files, and the exit code if nothing is found."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import corpus
import pytest
from interop.broken_directories import another_of_broker
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scripts import Command

import cordwood as cw
from cordwood.cli.terminal import print_table

PLAIN = corpus.partition("01-plain")


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Two data directories of a broker: a topic has a partition in each."""
    one, two = tmp_path / "one", tmp_path / "two"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", one, ignore=shutil.ignore_patterns("expected"))
    another_of_broker(one, two)
    for name in ("cities-1", "__transaction_state-0"):
        if (one / name).exists():
            (one / name).rename(two / name)
    return one, two


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_ls_lists_the_partitions_of_several_directories(command: Command, disks: tuple[Path, Path]) -> None:
    one, two = disks
    code, out, _ = command("ls", one, two, one)
    assert code == 0
    listed = {(row[0], row[-1]) for row in rows_of(out) if row and row[0].startswith("cities-")}
    assert listed == {("cities-0", str(one)), ("cities-1", str(two))}
    document = json.loads(command("ls", one, two, "--json")[1])
    whole = json.loads(command("ls", corpus.GOLDEN / "16-data-dir", "--json")[1])
    assert document["paths"] == [str(one), str(two)]
    assert [row["name"] for row in document["partitions"]] == [row["name"] for row in whole["partitions"]]
    topics = json.loads(command("ls", one, two, "--by", "topic", "--json")[1])["topics"]
    wanted = json.loads(command("ls", corpus.GOLDEN / "16-data-dir", "--by", "topic", "--json")[1])["topics"]
    assert [(row["topic"], row["partitions"], row["size"]) for row in topics] == [
        (row["topic"], row["partitions"], row["size"]) for row in wanted
    ]


@pytest.mark.parametrize("by", [(), ("--by", "topic")])
def test_ls_counts_what_is_not_in_its_table(command: Command, disks: tuple[Path, Path], by: tuple[str, ...]) -> None:
    one, _ = disks
    assert "not in the table" not in command("ls", one, *by)[1]
    shutil.copytree(one / "cities-0", one / "cities-7.5a1b2c3d4e5f60718293a4b5c6d7e8f9-delete")
    shutil.copytree(one / "cities-0", one / "cities-8.5a1b2c3d4e5f60718293a4b5c6d7e8f9-stray")
    shutil.copytree(one / "cities-0", one / "cities-9.5a1b2c3d4e5f60718293a4b5c6d7e8f9-stray")
    (one / "lost+found").mkdir()
    (one / "dump.bin").write_bytes(b"x" * 100_000)
    code, out, _ = command("ls", one, *by)
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("not in the table: "))
    assert "1 deleted partition, " in line
    assert "2 stray partitions, " in line
    assert "2 foreign items (dump.bin, lost+found), " in line
    others = json.loads(command("ls", one, "--json", *by)[1])["others"]
    assert sorted(other["kind"] for other in others) == ["delete", "foreign", "foreign", "stray", "stray"]
    assert sum(other["disk_bytes"] for other in others if other["kind"] == "foreign") >= 100_000
    # with --all the partitions are in the table
    if not by:
        line = next(line for line in command("ls", one, "--all")[1].splitlines() if line.startswith("not in the table"))
        assert line.startswith("not in the table: 2 foreign items")


def test_ls_and_verify_know_the_same_files_and_folders_of_a_broker(command: Command, disks: tuple[Path, Path]) -> None:
    one, _ = disks
    (one / "remote-log-index-cache").mkdir()
    for name in (
        "recovery-point-offset-checkpoint.tmp",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint.tmp",
        "meta.properties.tmp",
        "bootstrap.checkpoint.tmp",
        ".cordwood.lock",
        ".lock",
        ".kafka_cleanshutdown",
    ):
        (one / name).touch()
    assert "not in the table" not in command("ls", one)[1]
    assert not [finding for finding in cw.verify(one).findings if finding.code == "foreign_directory"]
    (one / "bootstrap.checkpoint.d").mkdir()
    assert "1 foreign item (bootstrap.checkpoint.d)" in command("ls", one)[1]
    (foreign,) = [finding for finding in cw.verify(one).findings if finding.code == "foreign_directory"]
    assert (foreign.file, foreign.stops_broker) == (str(one / "bootstrap.checkpoint.d"), True)


def test_ls_names_ten_foreign_items_and_counts_the_others(command: Command, disks: tuple[Path, Path]) -> None:
    one, _ = disks
    for number in range(25):
        (one / f"x{number:02}").mkdir()
    line = next(line for line in command("ls", one)[1].splitlines() if line.startswith("not in the table: "))
    assert line.startswith(
        "not in the table: 25 foreign items (x00, x01, x02, x03, x04, x05, x06, x07, x08, x09, and 15 more), "
    )
    assert len(json.loads(command("ls", one, "--json")[1])["others"]) == 25


def test_the_files_of_a_broker_are_not_foreign(command: Command, disks: tuple[Path, Path]) -> None:
    one, _ = disks
    (one / "remote-log-index-cache").mkdir()
    for name in (
        ".lock",
        ".cordwood.lock",
        ".kafka_cleanshutdown",
        "cleaner-offset-checkpoint.tmp",
        "meta.properties.tmp",
    ):
        (one / name).touch()
    assert "not in the table" not in command("ls", one)[1]


def test_ls_goes_on_if_a_file_vanishes_meanwhile(
    command: Command, disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = disks
    vanishing = {one / "gone.tmp", one / "cities-7.5a1b2c3d4e5f60718293a4b5c6d7e8f9-delete"}
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: [*listed(path), *(vanishing if path == one else ())])
    code, out, _ = command("ls", one)
    assert code == 0
    assert "not in the table" not in out


def test_find_has_the_offset_of_a_time_in_every_partition(command: Command, disks: tuple[Path, Path]) -> None:
    one, two = disks
    records = {path.name: list(cw.Log(path).records()) for path in (one / "cities-0", two / "cities-1")}
    for timestamp in (0, records["cities-1"][40].timestamp, max(r.timestamp for r in records["cities-0"])):
        code, out, _ = command("find", one, two, "--topic", "cities", "--time", str(timestamp), "--json")
        assert code == 0
        found = {f"{row['topic']}-{row['partition']}": row["offset"] for row in json.loads(out)["partitions"]}
        wanted = {
            name: next((r.offset for r in of_one if r.timestamp >= timestamp), None) for name, of_one in records.items()
        }
        assert found == wanted
    code, out, error = command("find", one, two, "--topic", "cities", "--time", "2190-01-01T00:00Z")
    assert code == 1
    assert "not found in 2 partitions" in error
    code, out, _ = command("find", one, two, "--topic", "cities", "--offset", "200")
    assert code == 0
    # one of the two ends before it
    assert {row[0]: row[1] for row in rows_of(out) if row and row[0].startswith("cities-")} == {
        "cities-0": "200",
        "cities-1": "none",
    }


def test_log_files_are_parts_of_their_partition(command: Command) -> None:
    log = cw.Log(PLAIN.path)
    segments = list(log.segments)
    all_records = [(r.offset, r.timestamp) for r in log.records()]
    for chosen in (segments[:1], segments[1:2], segments[1:3], segments[-1:]):
        files = [segment.path for segment in chosen]
        start, end = chosen[0].base_offset, chosen[-1].end_offset
        wanted = [record for record in all_records if start <= record[0] < end]
        code, out, _ = command("cat", *files[::-1])
        assert code == 0
        assert [json.loads(line)["offset"] for line in out.splitlines()] == [offset for offset, _ in wanted]
        assert "topic" not in json.loads(out.splitlines()[0])
        assert json.loads(command("count", *files, "--json")[1])["records"] == len(wanted)
        rows = json.loads(command("ls", *files, "--json")[1])["segments"]
        assert [row["path"] for row in rows] == files
        for timestamp in (wanted[0][1], wanted[len(wanted) // 2][1]):
            found = json.loads(command("find", *files, "--time", timestamp, "--json")[1])
            assert found["offset"] == next(offset for offset, time in wanted if time >= timestamp)
        assert command("find", *files, "--offset", end)[0] == 1
        assert json.loads(command("find", *files, "--offset", start, "--json")[1])["offset"] == start
        assert command("cat", *files, "--last", 1)[1] == command("cat", PLAIN.path, "--end-offset", end, "--last", 1)[1]


def test_log_files_that_are_no_part_of_one_partition_are_refused(command: Command) -> None:
    files = [segment.path for segment in cw.Log(PLAIN.path).segments]
    other = next(iter(cw.Log(corpus.partition("12-compacted").path).segments)).path
    for wrong in ([files[0], files[2]], [files[0], other], [files[0], PLAIN.path]):
        code, out, error = command("cat", *wrong)
        assert (code, out) == (2, "")
        assert "expected" in error
    assert command("cat", files[0], "--follow")[0] == 2


@pytest.mark.parametrize("name", ["cat", "count"])
def test_nothing_found_is_exit_code_1(command: Command, name: str, tmp_path: Path) -> None:
    for options in (
        ("--grep", "no such value"),
        ("--key", "absent"),
        ("--key-prefix", "absent"),
        ("--since", "2150-01-01"),
        ("--start-offset", "1500"),
        ("--until", "1990-01-01"),
    ):
        code, _, error = command(name, PLAIN.path, *options)
        assert (code, error) == (1, "cordwood: no record matches\n"), options
    empty = tmp_path / "empty-0"
    cw.LogWriter(empty).close()
    # nothing was looked for
    assert command(name, empty)[0] == 0
    assert command(name, PLAIN.path, "--grep", ".")[0] == 0
    if name == "cat":
        assert command(name, PLAIN.path, "--key", "absent", "--limit", "0")[0] == 0


def by_rich(columns: list[tuple[str, str]], rows: list[list[str]]) -> str:
    """The same table as rich prints it."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, (heading, side) in enumerate(columns):
        widest = max([len(heading), *(Text(row[place]).cell_len for row in rows)])
        table.add_column(
            heading, justify="right" if side == "right" else "left", no_wrap=side != "text", min_width=widest
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(width=10_000, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def test_a_table_is_that_of_rich(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [("name", "left"), ("size", "right"), ("notes", "text")]
    rows = [["orders-0", "12", "a note"], ["日本-1", "1,234,567", ""], ["", "0", "[bold]no markup[/]"]]
    print_table("title", columns, rows)  # type: ignore[arg-type]
    assert capsys.readouterr().out == f"title\n{by_rich(columns, rows)}\n"


def test_a_table_of_3000_rows_takes_a_fraction_of_the_time_of_rich(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [(f"column {place}", "left" if place else "text") for place in range(9)]
    rows = [[f"cell {place} of {row}" for place in range(9)] for row in range(3000)]
    start = time.process_time()
    print_table("title", columns, rows)  # type: ignore[arg-type]
    ours = time.process_time() - start
    by_rich(columns, rows)
    assert 4 * ours < time.process_time() - start - ours
    assert len(capsys.readouterr().out.splitlines()) == 3003
