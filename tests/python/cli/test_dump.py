"""`cordwood dump`, and `cw.dump`."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path

import corpus
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import cordwood

import cordwood as cw

SMALL = corpus.partition("01-small")
LOG = SMALL.path / "00000000000000000000.log"


def expected(part: corpus.Partition, name: str) -> bytes:
    """The recorded text, whose paths are relative to the case's directory."""
    text = gzip.decompress((part.expected / name).read_bytes())
    return text.replace(b"Dumping ", b"Dumping " + os.fsencode(part.path.parent) + b"/")


def test_the_text_of_a_partition_is_that_of_kafkas_tool() -> None:
    logs = sorted(SMALL.path.glob("*.log"))
    given = ",".join(map(str, logs))
    for arguments in (("--files", given), tuple(logs), ("--files", given + ",")):
        done = cordwood("dump", "--deep-iteration", "--print-data-log", *arguments)
        assert done.returncode == 0
        assert done.stdout == expected(SMALL, "dump-log.txt.gz")
        # as Kafka's tool: each file begins after no record
        assert done.stderr.decode().count(" is followed by ") == len(logs) - 1
    assert cw.dump(logs, print_data_log=True).text().encode() == expected(SMALL, "dump-log.txt.gz")


def test_a_directory_stands_for_its_files_in_name_order(tmp_path: Path) -> None:
    files = sorted(p for p in SMALL.path.iterdir() if p.suffix in {".log", ".index", ".timeindex", ".snapshot"})
    done = cordwood("dump", SMALL.path)
    assert done.stdout == cordwood("dump", *files).stdout
    assert done.returncode == 0
    data = cw.dump(corpus.GOLDEN / "16-data-dir").files
    # first the data directory's own file, then the partitions
    assert [Path(path).name for path in data[:2]] == ["bootstrap.checkpoint", "00000000000000000000.index"]
    assert data[1:] == sorted(data[1:])
    assert any(path.endswith("0000000001.checkpoint") for path in data)
    assert not any("leader-epoch" in path for path in data)
    empty = cordwood("dump", tmp_path)
    assert (empty.returncode, empty.stdout) == (2, b"")
    assert "a directory without one" in empty.stderr.decode()


def test_what_does_not_match_goes_to_stderr_and_does_not_change_the_exit_code() -> None:
    # an old broker's index has offsets within batches
    index = corpus.partition("17-down-to-0").path / "00000000000000000000.index"
    done = cordwood("dump", "--verify-index-only", index)
    assert done.returncode == 0
    assert done.stdout == f"Dumping {index}\n".encode()
    lines = done.stderr.decode().splitlines()
    assert lines[0] == f"Mismatches in :{index}"
    assert lines[1:] == [
        "  Index offset: 137, log offset: 140",
        "  Index offset: 121, log offset: 126",
        "  Index offset: 100, log offset: 103",
    ]
    assert cw.dump(index).messages == []
    dump = cw.dump(index)
    dump.text()
    assert dump.messages == lines


def test_where_kafkas_tool_throws_the_text_ends_and_an_error_follows() -> None:
    zeros = corpus.GOLDEN / "damaged/length-zero/tickets-0/00000000000000000285.log"
    done = cordwood("dump", zeros, LOG)
    assert done.returncode == 1
    text = done.stdout.decode().splitlines()
    assert text[0] == f"Dumping {zeros}"
    assert text[-1].startswith("baseOffset: ")
    assert f"{zeros} is damaged at position " in done.stderr.decode()
    with pytest.raises(cw.CorruptLogError) as raised:
        cw.dump([zeros, LOG]).text()
    assert raised.value.expected == "a batch whose length is 14 or above"
    assert raised.value.found == "length 0"
    blocks = cw.dump([zeros, LOG])
    assert next(blocks).splitlines() == text
    with pytest.raises(cw.CorruptLogError):
        next(blocks)
    with pytest.raises(StopIteration):
        next(blocks)


def test_files_that_are_missing_or_not_files_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "00000000000000000000.log")
    for name, words in (
        ("00000000000000000000.log", "not a regular file"),
        ("00000000000000000007.log", "no such file"),
    ):
        done = cordwood("dump", tmp_path / name)
        assert done.returncode == 1
        assert words in done.stderr.decode()
    notes = tmp_path / "notes.log"
    notes.write_bytes(LOG.read_bytes())
    done = cordwood("dump", notes)
    assert (done.returncode, done.stdout) == (1, f"Dumping {notes}\n".encode())
    (tmp_path / "linked").symlink_to(SMALL.path)
    done = cordwood("dump", tmp_path / "linked" / LOG.name, tmp_path / "notes")
    assert done.returncode == 0
    assert done.stderr.decode() == f"Ignoring unknown file {tmp_path / 'notes'}\n"


def test_decoders(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "numbers-0") as writer:
        writer.append((7).to_bytes(8, "big"), key=b"\0\0\0\5rest")
        writer.append(b"\x40\x09\x21\xfb\x54\x44\x2d\x18", key=b"\xff" * 4)
    log = tmp_path / "numbers-0/00000000000000000000.log"

    def lines(**options: object) -> list[str]:
        text = cw.dump(log, skip_record_metadata=True, **options).text()  # type: ignore[arg-type]
        return [line for line in text.splitlines() if line.startswith("| ")]

    assert lines(key_decoder_class="Integer", value_decoder_class="org.apache.kafka.tools.api.LongDecoder") == [
        "| key: 5 payload: 7",
        "| key: -1 payload: 4614256656552045848",
    ]
    assert (
        lines(key_decoder_class="Bytes", value_decoder_class="Double")[1]
        == "| key: ffffffff payload: 3.141592653589793"
    )
    assert lines() == []
    with pytest.raises(cw.ConfigError, match="key_decoder_class: expected String, Integer"):
        cw.dump(log, key_decoder_class="org.example.Mine")
    done = cordwood("dump", log, "--value-decoder-class", "Mine")
    assert done.returncode == 2
    assert "--value-decoder-class: expected String, Integer" in done.stderr.decode()
    # a key of four bytes is no long: the text ends before it
    done = cordwood("dump", log, "--key-decoder-class", "Long")
    assert done.returncode == 1
    assert b" key: 23394087796 payload: " in done.stdout
    assert done.stdout.endswith(
        b"| offset: 1 CreateTime: %d keySize: 4 valueSize: 8 sequence: -1 headerKeys: []" % last_time(log)
    )
    assert "8 bytes or more of a number, found 4 bytes" in done.stderr.decode()


def last_time(log: Path) -> int:
    return [record.timestamp for record in cw.Log(log.parent).records()][-1]


def test_arguments_that_are_wrong_are_named() -> None:
    with pytest.raises(TypeError, match="files: expected a path, or an iterable of paths, found int"):
        cw.dump(7)  # type: ignore[arg-type]
    with pytest.raises(cw.ConfigError, match="files"):
        cw.dump([])
    with pytest.raises(cw.ConfigError, match="max_bytes: expected a number of bytes from 0 to 2\\^31 - 1, found -1"):
        cw.dump(LOG, max_bytes=-1)
    with pytest.raises(TypeError, match="deep_iteration: expected a bool"):
        cw.dump(LOG, deep_iteration=3)  # type: ignore[arg-type]
    for arguments in ((), ("--files", "a,,b")):
        assert cordwood("dump", *arguments).returncode == 2
    inside = cordwood("dump", LOG, "-o", SMALL.path / "new.txt")
    assert (inside.returncode, (SMALL.path / "new.txt").exists()) == (2, False)


def test_output_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "dump.txt"
    assert cordwood("dump", LOG, "-o", out).returncode == 0
    assert out.read_text() == cw.dump(LOG).text()


def test_rows_in_each_format(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in cordwood("dump", "--format", "jsonl", LOG).stdout.splitlines()]
    assert len(rows) == sum(line.startswith("baseOffset: ") for line in cw.dump(LOG).text().splitlines())
    assert {row["file"] for row in rows} == {str(LOG)}
    assert all(row["is_valid"] for row in rows)
    deep = cw.dump(SMALL.path, print_data_log=True).rows(start_offset=90, end_offset=100)
    table = pa.Table.from_batches(list(deep), schema=deep.schema)
    assert table["offset"].to_pylist() == list(range(90, 100))
    for suffix, read in ((".parquet", pq.read_table), (".arrow", lambda path: pa.ipc.open_file(path).read_all())):
        out = tmp_path / f"rows{suffix}"
        options = ("--print-data-log", "--start-offset", 90, "--end-offset", 100)
        done = cordwood("dump", *options, "-o", out, SMALL.path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert read(out).equals(table), suffix
    found = cordwood(
        "dump", "--deep-iteration", "--format", "csv", "--until", "2023-11-14T22:13:21Z", SMALL.path
    ).stdout
    lines = list(csv.DictReader(found.decode().splitlines()))
    assert [int(line["offset"]) for line in lines] == list(range(len(lines)))
    assert 0 < len(lines) < 370
    assert all(int(line["timestamp"]) < 1_700_000_001_000 for line in lines)
    assert {line["header_keys"] for line in lines} == {"[]"}


def test_ranges_need_rows() -> None:
    done = cordwood("dump", "--start-offset", 5, LOG)
    assert done.returncode == 2
    assert "--format" in done.stderr.decode()


@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".csv", ".arrow", ".parquet"])
def test_a_file_has_what_is_before_an_error_and_the_message_says_so(tmp_path: Path, suffix: str) -> None:
    zeros = corpus.GOLDEN / "damaged/length-zero/tickets-0/00000000000000000285.log"
    misnamed = tmp_path / "in" / "notes.log"
    misnamed.parent.mkdir()
    misnamed.write_bytes(LOG.read_bytes())
    before = sum(line.startswith("baseOffset: ") for line in next(cw.dump(zeros)).splitlines())
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / f"dump{suffix}"
    # damage, and a file that is missing, after one that is whole; the text also needs the offset in a name
    missing = tmp_path / "in" / "00000000000000000007.log"
    for wrong, batches in ((zeros, before), (missing, 0), *([(misnamed, 0)] if suffix == ".txt" else [])):
        done = cordwood("dump", LOG, wrong, "-o", out)
        assert done.returncode == 1
        lines = done.stderr.decode().splitlines()
        assert lines[-2] == f"cordwood: {out} ends where the following error is"
        assert str(wrong) in lines[-1]
        whole = sum(line.startswith("baseOffset: ") for line in cw.dump(LOG).text().splitlines())
        if suffix == ".txt":
            assert out.read_bytes() == cordwood("dump", LOG, wrong).stdout
        elif suffix == ".parquet":
            assert pq.read_table(out).num_rows == whole + batches
        elif suffix == ".arrow":
            assert pa.ipc.open_file(out).read_all().num_rows == whole + batches
        else:
            assert len(out.read_text().splitlines()) == whole + batches + (suffix == ".csv")
        out.unlink()


def test_without_a_row_there_is_no_file(tmp_path: Path) -> None:
    missing = tmp_path / "orders-0" / "00000000000000000007.log"
    missing.parent.mkdir()
    for options in (("--start-offset", 1 << 40), ("--until", "1970-01-02")):
        for name in ("rows.csv", "rows.parquet"):
            done = cordwood("dump", LOG, *options, "-o", tmp_path / name)
            assert (done.returncode, done.stdout) == (1, b"")
            assert "no batch or record that the options select" in done.stderr.decode()
            assert not (tmp_path / name).exists()
    # an error in front of every row is an error
    done = cordwood("dump", missing, "-o", tmp_path / "rows.csv")
    assert done.returncode == 1
    assert "no such file" in done.stderr.decode()
    assert not (tmp_path / "rows.csv").exists()


def test_null_and_empty_text_differ_in_csv(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "texts-0") as writer:
        writer.append(b"", key=None)
        writer.append(b'a "b", c\n', key=b"k")
    lines = cordwood("dump", "--print-data-log", "--format", "csv", tmp_path / "texts-0").stdout.decode()
    headings = lines.split("\n", 1)[0].split(",")
    assert lines.split("\n")[1].split(",")[headings.index("key")] == ""
    assert '""' in lines.split("\n")[1].split(",")
    rows = list(csv.DictReader(lines.splitlines(keepends=True)))
    assert [row["payload"] for row in rows] == ["", 'a "b", c\n']
