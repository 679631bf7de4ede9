"""The writer of batches of these tests, compared with published vectors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from batches import GZIP, TRANSACTIONAL, Rec, batch, crc32c, marker, moved, name, varint, write_partition

import cordwood as cw

ONE_RECORD = (
    "00000000000000000000003a0000000002716a618900000000000000000000000003e800000000000003e8"
    "ffffffffffffffffffffffffffff0000000110000000026b027600"
)
NULL_KEY = (
    "00000000000000000000003d0000000002e641a44b0000000000000000018bcfe568000000018bcfe56800"
    "ffffffffffffffffffffffffffff0000000116000000010a68656c6c6f00"
)
COMMIT = (
    "000000000000000000000042ffffffff02bda9896c0030000000000000000000000000000000000000000000000000000000010000"
    "ffffffff000000012000000008000000010c00000000000000"
)
EMPTY = (
    "0000000000000005000000310000000702032b6085000000000003ffffffffffffffff00000000000007d0000000000000000900010000"
    "000a00000000"
)


def test_the_checksum_has_the_published_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize(
    ("number", "encoded"), [(-1, "01"), (0, "00"), (64, "8001"), (-65, "8101"), (17179869184, "808080808001")]
)
def test_variable_length_integers_are_as_published(number: int, encoded: str) -> None:
    assert varint(number).hex() == encoded


def test_a_record_with_key_and_value_gives_the_published_batch() -> None:
    assert batch(0, [Rec(key=b"k", value=b"v", timestamp=1000)]).hex() == ONE_RECORD


def test_a_record_without_a_key_gives_the_published_batch() -> None:
    assert batch(0, [Rec(value=b"hello", timestamp=1_700_000_000_000)]).hex() == NULL_KEY


def test_a_commit_marker_gives_the_published_batch() -> None:
    assert marker(0, 1, commit=True, leader_epoch=-1).hex() == COMMIT


def test_a_batch_without_records_gives_the_published_batch() -> None:
    made = batch(
        5,
        [],
        leader_epoch=7,
        last_offset_delta=3,
        max_timestamp=2000,
        producer_id=9,
        producer_epoch=1,
        base_sequence=10,
    )
    assert made.hex() == EMPTY


def test_a_moved_batch_differs_in_its_first_eight_bytes_only() -> None:
    raw = batch(0, [Rec(value=b"x")])
    assert moved(raw, 77) == batch(77, [Rec(value=b"x")])
    assert moved(raw, 77)[8:] == raw[8:]


@pytest.mark.parametrize("codec", [0, GZIP])
def test_the_library_reads_back_what_the_writer_wrote(tmp_path: Path, codec: int) -> None:
    """Headers in order with duplicates, nulls and bytes that are not UTF-8; decreasing times; gaps in a batch."""
    records = [
        Rec(value=b"a", key=None, timestamp=50, headers=((b"h", b"1"), (b"h", None), (b"", b""))),
        Rec(value=None, key=b"", timestamp=40, offset_delta=3),
        Rec(value=b"", key=b"k", timestamp=-1, offset_delta=9),
    ]
    raw = batch(100, records, codec=codec, max_timestamp=50, last_offset_delta=12)
    log = cw.Log(write_partition(tmp_path / "made-3", [(100, [raw])]))
    assert [(r.offset, r.timestamp, r.key, r.value) for r in log.records()] == [
        (100, 50, None, b"a"),
        (103, 40, b"", None),
        (109, -1, b"k", b""),
    ]
    assert [tuple(h) for h in next(iter(log.records())).headers] == [("h", b"1"), ("h", None), ("", b"")]
    assert log.log_end_offset == 113
    assert (log.topic, log.partition) == ("made", 3)
    assert log.warnings == []


def test_header_names_that_are_not_utf8_are_replaced_or_returned_as_bytes(tmp_path: Path) -> None:
    """The client replaces bytes that it cannot decode; `header_keys="bytes"` returns them."""
    raw = batch(0, [Rec(value=b"v", headers=((b"\xff\xfeok", b"1"),))])
    log = cw.Log(write_partition(tmp_path / "made-0", [(0, [raw])]))
    decoded = log.scan().to_arrow()["headers"].to_pylist()
    assert decoded == [[{"key": "\ufffd\ufffdok", "value": b"1"}]]
    exact = log.scan(header_keys="binary").to_arrow()["headers"].to_pylist()
    assert exact == [[{"key": b"\xff\xfeok", "value": b"1"}]]


@pytest.mark.parametrize(
    "raw",
    [
        batch(0, [Rec(value=b"v")], count=2),
        batch(0, [Rec(value=b"v"), Rec(value=b"w")], count=1),
        batch(0, [Rec(value=b"v")], count=-1),
        batch(0, [], payload=varint(200) + b"\0", count=1, last_offset_delta=0),
        batch(0, [], payload=b"\xff" * 11, count=1, last_offset_delta=0),
        batch(0, [], payload=b"\x1f\x8b\x08\0garbage", codec=GZIP, count=1, last_offset_delta=0),
    ],
    ids=["too few", "too many", "negative", "cut short", "endless varint", "no gzip"],
)
def test_records_that_do_not_fit_their_batch_are_corrupt_with_a_valid_checksum(tmp_path: Path, raw: bytes) -> None:
    """A valid batch follows, so that the invalid one is not a torn tail."""
    good = batch(2, [Rec(value=b"good")])
    path = write_partition(tmp_path / "made-0", [(0, [raw, good])])
    with pytest.raises(cw.CorruptLogError) as raised:
        cw.Log(path).scan().to_arrow()
    assert raised.value.position == 0
    assert Path(raised.value.file).name == name(0)
    rest = cw.Log(path).scan(on_damage="skip").to_arrow()
    assert rest["offset"].to_pylist()[-1:] == [2]


def test_a_batch_that_decompresses_to_gigabytes_is_an_error(tmp_path: Path) -> None:
    """Two megabytes of gzip members that decompress to one well-formed record of 2 GiB, above the limit."""
    claimed = 2**31 - 1
    head = varint(claimed) + b"\0" + varint(0) + varint(0) + varint(-1) + varint(claimed - 20)
    zeros = gzip.compress(bytes(64 << 20), mtime=0)
    raw = batch(0, [], payload=gzip.compress(head, mtime=0) + zeros * 32, codec=GZIP, count=1, last_offset_delta=0)
    path = write_partition(tmp_path / "made-0", [(0, [raw, batch(1, [Rec(value=b"v")])])])
    with pytest.raises(cw.CordwoodError):
        cw.Log(path).scan().to_arrow()


def test_control_records_are_returned_only_on_request(tmp_path: Path) -> None:
    data = batch(
        0, [Rec(value=b"v", timestamp=5)], attributes=TRANSACTIONAL, producer_id=1, producer_epoch=0, base_sequence=0
    )
    log = cw.Log(write_partition(tmp_path / "made-0", [(0, [data, marker(1, 1, commit=True, timestamp=9)])]))
    assert [r.offset for r in log.records()] == [0]
    table = log.scan(include_control=True, columns=["offset", "is_control", "key"]).to_arrow()
    assert table.to_pylist() == [
        {"offset": 0, "is_control": False, "key": None},
        {"offset": 1, "is_control": True, "key": b"\0\0\0\1"},
    ]
