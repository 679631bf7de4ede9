"""Invalid arguments of a writer: the error names the argument and the expected and found value; nothing is created."""

from __future__ import annotations

import os
import uuid
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cordwood as cw


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


@pytest.fixture
def writer(path: Path) -> Iterator[Any]:
    """With offsets from 0 to 100."""
    with cw.LogWriter(path) as writer:
        writer.append_many([b"x"] * 100)
        yield writer


@pytest.mark.parametrize(
    ("argument", "given", "found"),
    [
        ("config", {"segment.bytes": "1"}, "dict"),
        ("config", {}, "dict"),
        ("config", "segment.bytes=1", "str"),
        ("config", cw.LogConfig, "type"),
        ("flush", None, "NoneType"),
        ("flush", b"always", "bytes"),
        ("topic_id", 5, "int"),
        ("topic_id", uuid.UUID(int=5), "UUID"),
        ("leader_epoch", "1", "str"),
        ("leader_epoch", 1.0, "float"),
        ("leader_epoch", True, "bool"),
    ],
)
def test_an_argument_of_another_type_is_named(path: Path, argument: str, given: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"^{argument}: expected .*, found {found}"):
        cw.LogWriter(path, **{argument: given})
    assert not path.exists()


@pytest.mark.parametrize(
    ("argument", "given", "found"),
    [
        ("flush", "sometimes", '"sometimes"'),
        ("topic_id", "x", '"x"'),
        ("leader_epoch", -1, "-1"),
        ("leader_epoch", 2**31, "2147483648"),
        ("leader_epoch", -(2**40), "-1099511627776"),
        ("leader_epoch", 2**100, str(2**100)),
    ],
)
def test_a_value_that_is_not_allowed_is_named(path: Path, argument: str, given: Any, found: str) -> None:
    with pytest.raises(cw.ConfigError, match=f"^{argument}: expected .*, found {found}"):
        cw.LogWriter(path, **{argument: given})
    assert not path.exists()


def test_an_invalid_config_is_refused_with_advice(writer: Any, path: Path) -> None:
    for use in (lambda: cw.LogWriter(path, config={}), lambda: cw.plan_retention(writer.reader(), {})):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"expected a LogConfig, found dict; .*LogConfig\.from_properties"):
            use()


@pytest.mark.parametrize("size", [4, 8, 11])
def test_indexes_too_small_for_an_entry_are_refused_by_their_setting(path: Path, size: int) -> None:
    # Kafka allows it, and its files can be read
    config = cw.LogConfig.from_properties({"segment.index.bytes": size})
    with pytest.raises(cw.ConfigError, match=rf"^segment\.index\.bytes: expected at least 12 .*, found {size}"):
        cw.LogWriter(path, config=config)
    assert not path.exists()
    with cw.LogWriter(path, config=cw.LogConfig(segment_index_bytes=12)) as writer:
        assert [writer.append(b"x").first_offset for _ in range(3)] == [0, 1, 2]


CALLS = ["wait_durable", "truncate_to", "truncate_fully_and_start_at", "delete_before"]


@pytest.mark.parametrize("name", CALLS)
def test_values_that_are_not_offsets_are_refused(writer: Any, name: str) -> None:
    call: Callable[[Any], Any] = getattr(writer, name)
    for wrong in ("5", None, 5.0, True, [5]):
        with pytest.raises(TypeError, match=f"^offset: expected an offset .*, found {type(wrong).__name__}"):
            call(wrong)
    for beyond in (2**63, -(2**63) - 1, 10**30):
        with pytest.raises(cw.ConfigError, match=f"^offset: expected an offset .*, found {beyond}"):
            call(beyond)
    with pytest.raises(cw.CordwoodError, match=r"offset.* -5"):
        call(-5)
    assert (writer.log_start_offset, writer.log_end_offset) == (0, 100)


def test_waiting_for_an_offset_without_a_record_is_refused(writer: Any) -> None:
    assert writer.wait_durable(99) is None
    with pytest.raises(cw.ConfigError, match=r"^offset: expected an offset, 0 or above, found -5"):
        writer.wait_durable(-5)
    for beyond in (100, 101, 2**63 - 1):
        with pytest.raises(cw.OffsetOutOfRangeError, match=f"offset {beyond} is outside"):
            writer.wait_durable(beyond)


def test_an_offset_outside_the_log_is_refused_with_the_range(writer: Any) -> None:
    words = r"holds offsets 0 \(inclusive\) to 100 \(exclusive\): the next record there gets offset 100$"
    with pytest.raises(cw.OffsetOutOfRangeError, match=words):
        writer.delete_before(101)
    assert writer.delete_before(100) is True
    with pytest.raises(cw.OffsetOutOfRangeError, match="is empty: the next record there gets offset 100"):
        writer.reader().locate(100)


def test_epochs_and_times_beyond_their_size_are_refused(writer: Any) -> None:
    with pytest.raises(cw.ConfigError, match=r"^epoch: expected an epoch .*, found 1099511627776"):
        writer.end_offset_for(2**40)
    words = "expected milliseconds within 64 bits, found 9223372036854775808"
    with pytest.raises(cw.ConfigError, match=f"^timestamp: {words}"):
        writer.append(b"", timestamp=2**63)
    with pytest.raises(cw.ConfigError, match=f"^now: {words}"):
        writer.apply_retention(now=2**63)


def test_the_invalid_one_of_many_records_is_named(writer: Any) -> None:
    for wrong in (5, None):
        with pytest.raises(TypeError, match=r"^records: expected an iterable of Record or bytes, found"):
            writer.append_many(wrong)
        with pytest.raises(TypeError, match=r"^records\[1\]: expected a Record, or the bytes of a value, found"):
            writer.append_many([b"good", wrong, b"good"])
    assert writer.log_end_offset == 100


def test_many_records_with_one_too_large_append_nothing(path: Path) -> None:
    large = cw.Record(b"", headers=[("h", b"x" * 1000)])
    with cw.LogWriter(path, config=cw.LogConfig(max_message_bytes=1000)) as writer:
        with pytest.raises(cw.RecordTooLargeError, match=r"max\.message\.bytes.*record 40 alone; nothing was appended"):
            writer.append_many([*[b"x" * 100] * 40, large])
        assert writer.log_end_offset == 0
        # the maximum: 61 bytes are the header
        fits = next(n for n in range(1000, 0, -1) if n + 61 + 9 <= 1000)
        assert writer.append_many([b"x" * fits, b"x" * fits]).last_offset == 1
        with pytest.raises(cw.RecordTooLargeError):
            writer.append_many([b"x", b"x" * (fits + 1)])
        assert writer.log_end_offset == 2


def test_invalid_properties_are_refused() -> None:
    for wrong in (5, None, [("segment.bytes", "1")]):
        with pytest.raises(TypeError, match=r"^properties: expected a path or a mapping, found"):
            cw.LogConfig.from_properties(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^overrides: expected a mapping, found int"):
        cw.LogConfig.from_properties({}, overrides=5)  # type: ignore[arg-type]
    with pytest.raises(cw.ConfigError, match=r"^properties: expected names that are strings, found 5"):
        cw.LogConfig.from_properties({5: "x"})  # type: ignore[dict-item]


DAMAGED = [b"", b"garbage", b"0\n", b"\xff\xfe\n", b"1\nlog-start-offset 0\ncrc32c 00000000\n"]


@pytest.mark.parametrize("damaged", DAMAGED, ids=repr)
def test_the_error_of_a_damaged_checkpoint_explains_its_removal(path: Path, damaged: bytes) -> None:
    with cw.LogWriter(path) as writer:
        writer.append_many([b"x"] * 10)
        writer.delete_before(5)
    (path / ".cordwood.checkpoint").write_bytes(damaged)
    with pytest.raises(cw.CorruptLogError, match=r"cordwood\.checkpoint is damaged at position 0") as raised:
        cw.LogWriter(path)
    text = str(raised.value)
    assert "with a valid checksum" in text
    assert "remove it" in text
    assert "on_damage" not in text
    assert "found expected" not in text
    # as the error explains: everything is read again, and records deleted from the first segment reappear
    (path / ".cordwood.checkpoint").unlink()
    with cw.LogWriter(path) as writer:
        assert (writer.log_start_offset, writer.log_end_offset) == (0, 10)


@pytest.mark.parametrize(
    "given",
    [
        *(np.int64(7), np.uint8(7), np.float64(7), np.bool_(True), np.void(b"abc")),
        *(np.datetime64("2024-01-01"), np.datetime64("2024-01-01", "ns"), np.timedelta64(1, "s")),
        *(np.arange(3), np.array(7, "u1"), np.zeros((2, 2), "<u2"), array("i", [1, 2])),
    ],
    ids=repr,
)
def test_numbers_and_dates_are_not_accepted_as_bytes(path: Path, given: Any) -> None:
    with cw.LogWriter(path) as writer:
        for append in (
            lambda: writer.append(given),
            lambda: writer.append(b"v", key=given),
            lambda: writer.append(b"v", headers=[(b"h", given)]),
            lambda: writer.append(b"v", headers=[(given, b"v")]),
            lambda: writer.append_many([given]),
            lambda: writer.append_many([cw.Record(given)]),
        ):
            with pytest.raises(TypeError, match=f"found {type(given).__name__}"):
                append()
        assert writer.log_end_offset == 0


def test_bytes_of_an_array_are_accepted(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        for given in (np.frombuffer(b"abc", "u1"), np.frombuffer(b"abc", "i1"), array("B", b"abc"), np.bytes_(b"abc")):
            writer.append(given)
        assert {record.value for record in writer.reader().records()} == {b"abc"}


def test_a_mapping_is_refused_as_records(path: Path) -> None:
    with (
        cw.LogWriter(path) as writer,
        pytest.raises(TypeError, match=r"^records: expected an iterable of Record or bytes, found dict"),
    ):
        writer.append_many({"a": 1})


def test_a_closed_writer_closes_its_files(tmp_path: Path) -> None:
    def held() -> list[str]:
        links = [os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
        maps = Path("/proc/self/maps").read_text().splitlines()
        return [name for name in [*links, *maps] if str(tmp_path) in name]

    writer = cw.LogWriter(tmp_path / "orders-0")
    writer.append(b"v")
    writer.reader()
    assert held()
    writer.close()
    assert held() == []
    assert writer.closed
    writer.close()
    with pytest.raises(cw.ClosedError, match="closed"):
        writer.append(b"v")
