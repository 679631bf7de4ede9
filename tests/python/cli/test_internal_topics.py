"""`cordwood groups`, `transactions` and `metadata`."""

from __future__ import annotations

import csv
import io
import json
import shutil
import struct
from pathlib import Path

import corpus
import pyarrow as pa
import pytest
from batches import Rec, batch, write_partition
from commands import cordwood
from pyarrow import parquet

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
PAYMENTS = corpus.partition("11-transactions").path
SNAPSHOT = DATA / "__cluster_metadata-0" / "00000000000000000068-0000000001.checkpoint"


@pytest.mark.parametrize(
    ("arguments", "table"),
    [
        (["groups", DATA], cw.consumer_offsets(DATA)),
        (["groups", DATA, "--group", "readers", "--topic", "cities"], cw.consumer_offsets(DATA, groups=["readers"])),
        (["groups", DATA, "--members"], cw.consumer_groups(DATA)),
        (["transactions", DATA], cw.transactions(DATA)),
        (["transactions", DATA, "--id", "city-1"], cw.transactions(DATA, transactional_ids=["city-1"])),
        (["metadata", DATA], cw.metadata(DATA).topics),
        (["metadata", DATA, "partitions", "--topic", "cities"], cw.metadata(DATA, topics=["cities"]).partitions),
        (["metadata", SNAPSHOT, "brokers"], cw.metadata(SNAPSHOT).brokers),
        (["metadata", DATA, "records"], cw.metadata_records(DATA)),
    ],
)
def test_every_format_has_the_rows_of_the_library(arguments: list[object], table: cw.Table) -> None:
    lines = cordwood(*arguments, "--json")
    assert (lines.returncode, lines.stderr) == (0, b"")
    assert [json.loads(line) for line in lines.stdout.splitlines()] == table.to_dicts()
    text = cordwood(*arguments, "--format", "csv").stdout.decode()
    headings, *rows = csv.reader(io.StringIO(text))
    assert headings == table.column_names
    assert len(rows) == len(table)
    arrow = cordwood(*arguments, "--format", "arrow").stdout
    assert pa.ipc.open_stream(arrow).read_all() == table.to_arrow()
    shown = cordwood(*arguments)
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) >= len(table) + 3


def test_parquet_is_written_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "offsets.parquet"
    assert cordwood("groups", DATA, "-o", file).returncode == 0
    assert parquet.read_table(file).equals(cw.consumer_offsets(DATA).to_arrow())


def test_open_transactions_of_a_partition_and_of_a_directory() -> None:
    partition = corpus.partition("11-transactions").path
    of_partition = cordwood("transactions", partition, "--json")
    assert [json.loads(line)["first_offset"] for line in of_partition.stdout.splitlines()] == [903, 940]
    nothing = cordwood("transactions", DATA, "--open")
    assert (nothing.returncode, nothing.stderr) == (1, b"cordwood: no open transaction has records here\n")


def test_an_open_transaction_is_aborted_only_with_yes(tmp_path: Path) -> None:
    partition = Path(shutil.copytree(PAYMENTS, tmp_path / "payments-0"))
    files = {file.name: file.read_bytes() for file in partition.iterdir()}
    dry = cordwood("transactions", partition, "--abort", "4")
    assert (dry.returncode, dry.stderr) == (0, b"")
    assert f"{partition}: would abort the transaction of producer 4 from offset 903" in dry.stdout.decode()
    assert "add --yes to abort it" in dry.stdout.decode()
    document = json.loads(cordwood("transactions", partition, "--abort", "4", "--json").stdout)
    assert (document["dry_run"], document["marker_offset"], document["first_offset"]) == (True, None, 903)
    assert {file.name: file.read_bytes() for file in partition.iterdir()} == files
    end = cw.Log(partition).log_end_offset
    done = cordwood("transactions", partition, "--abort", "4", "--yes")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "aborted the transaction of producer 4 from offset 903" in done.stdout.decode()
    assert f"its marker is at offset {end}" in done.stdout.decode()
    assert cw.Log(partition).last_stable_offset == 940
    done = cordwood("transactions", partition, "--abort", "5", "--yes", "--json")
    assert json.loads(done.stdout)["marker_offset"] == end + 1
    log = cw.Log(partition)
    assert log.last_stable_offset == log.log_end_offset == end + 2
    assert cordwood("transactions", partition).returncode == 1


def test_an_open_transaction_whose_records_were_all_deleted_is_aborted(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    with cw.LogWriter(partition) as writer:
        deleted, other = writer.transaction("deleted"), writer.transaction("other")
        deleted.append(b"1")
        deleted.append(b"2")
        other.append(b"3")
        writer.delete_before(2)
        writer.append(b"4")
    (row,) = cw.open_transactions(partition).to_dicts()
    assert (row["producer_id"], row["transactional_id"]) == (other.producer_id, "other")
    files = {file.name: file.read_bytes() for file in partition.iterdir() if file.is_file()}
    listed = cordwood("transactions", partition, "--json")
    assert [json.loads(line)["producer_id"] for line in listed.stdout.splitlines()] == [other.producer_id]
    assert (
        f"producer {deleted.producer_id}: the records of its open transaction, from offset 0 to 1"
        in listed.stderr.decode()
    )
    dry = cordwood("transactions", partition, "--abort", deleted.producer_id)
    assert (dry.returncode, dry.stderr) == (0, b"")
    what = f"the transaction of producer {deleted.producer_id} from offset 0 to 1, whose records were all deleted"
    assert f"would abort {what}" in dry.stdout.decode()
    assert {file.name: file.read_bytes() for file in partition.iterdir() if file.is_file()} == files
    done = cordwood("transactions", partition, "--abort", deleted.producer_id, "--yes", "--json")
    assert done.stderr == b""
    document = json.loads(done.stdout)
    assert (document["first_offset"], document["last_offset"], document["records"]) == (0, 1, 0)
    assert (document["marker_offset"], document["dry_run"]) == (4, False)
    again = cordwood("transactions", partition, "--abort", deleted.producer_id, "--yes")
    assert again.returncode == 1
    message = f"producer {deleted.producer_id} has no open transaction; producers with one: {other.producer_id}"
    assert message in again.stderr.decode()
    assert cw.Log(partition).last_stable_offset == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["groups", DATA, "--group", "nobody"], 1, "--group and --topic select"),
        (["groups", DATA / "cities-0"], 2, "a partition directory of __consumer_offsets"),
        (["groups", DATA, "--json", "--format", "csv"], 2, "use one of them"),
        (["groups", DATA, "--members", "--topic", "cities"], 2, "--topic has no effect"),
        (["groups", DATA / "missing"], 2, "no such directory"),
        (["metadata", DATA, "acls"], 1, "has no acls"),
        (["metadata", DATA, "brokers", "--topic", "cities"], 2, "--topic selects rows of"),
        (["transactions", DATA, "--topic", "cities"], 2, "only with --open"),
        (["transactions", DATA, "--yes"], 2, "--yes has an effect only with --abort"),
        (["transactions", DATA, "--abort", "5"], 2, "--abort needs one partition directory"),
        (["transactions", PAYMENTS, "--abort", "x"], 2, "--abort"),
        (["transactions", PAYMENTS, "--abort", "5", "--id", "city-1"], 2, "--id is for the ids in __transaction_state"),
        (["transactions", PAYMENTS, "--abort", "5", "--format", "csv"], 2, "leave out --topic, --format and -o"),
        (["transactions", PAYMENTS, "--abort", "5", "--topic", "payments"], 2, "leave out --topic, --format and -o"),
        (["transactions", PAYMENTS, "--abort", "6"], 1, "producer 6 has no open transaction; producers with one: 4, 5"),
        (["transactions", DATA, "--open", "--topic", "citties"], 1, "no topic 'citties'; there are"),
        (["metadata", DATA, "--topic", "citties"], 1, "no topics of a topic named citties"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[object], code: int, message: str) -> None:
    result = cordwood(*arguments)
    assert result.returncode == code
    assert message in result.stderr.decode()
    assert result.stdout == b""


def damaged(path: Path, count: int) -> Path:
    """A `__consumer_offsets-0` of batches that are all damaged, each after a whole one without a commit of a group."""
    record = Rec(key=struct.pack(">h", 1) + b"\0\1g\0\1t" + bytes(4), value=None)
    raws = []
    for place in range(0, 2 * count, 2):
        wrong = bytearray(batch(place, [record]))
        wrong[-3] ^= 1
        raws += [bytes(wrong), batch(place + 1, [record])]
    return write_partition(path / "__consumer_offsets-0", [(0, raws)])


@pytest.mark.parametrize("members", [(), ("--members",)])
def test_damage_is_said_before_that_nothing_is_there(tmp_path: Path, members: tuple[str, ...]) -> None:
    out = tmp_path / "rows.jsonl"
    for options in ((), ("--json",), ("-o", out)):
        done = cordwood("groups", damaged(tmp_path / str(len(options)) / str(options[:1]), 1), *members, *options,
                        "--on-damage", "skip")  # fmt: skip
        first, last = done.stderr.decode().splitlines()
        assert first.startswith("cordwood: left out ")
        assert "group" in last
        assert (done.returncode, done.stdout) == (1, b"")
    assert not out.exists()


def test_many_messages_are_counted(tmp_path: Path) -> None:
    done = cordwood("groups", damaged(tmp_path, 8), "--on-damage", "skip")
    lines = done.stderr.decode().splitlines()
    assert len([line for line in lines if "left out /" in line]) == 5
    assert lines[5] == "cordwood: left out 3 more damaged ranges"


def test_metadata_that_is_not_whole_says_so_with_every_table(tmp_path: Path) -> None:
    log = (SNAPSHOT.parent / "00000000000000000000.log").read_bytes()
    size = 12 + struct.unpack_from(">i", log, 8)[0]
    size += 12 + struct.unpack_from(">i", log, size + 8)[0]
    partition = write_partition(tmp_path / "__cluster_metadata-0", [(0, [log[size:]])])
    for table in ("topics", "acls", "brokers"):
        done = cordwood("metadata", partition, table)
        assert done.returncode == 1
        lines = done.stderr.decode().splitlines()
        assert any(line.startswith("cordwood: offset 0: offsets 0 to ") for line in lines)
        assert any("this table may be wrong" in line for line in lines)
        assert ("has no acls here" in lines[-1]) == (table == "acls")
    assert b"rows have an error" in cordwood("metadata", partition, "errors").stderr
    assert cordwood("metadata", partition, "records").returncode == 1
