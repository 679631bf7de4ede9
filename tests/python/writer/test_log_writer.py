"""`LogWriter`: appended records are read back, and each method does what is documented."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import batches
import corpus
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

import cordwood as cw
from cordwood._core import _other_unit

T = 1_700_000_000_000
PLAIN = corpus.partition("01-plain")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


@pytest.fixture
def writer(path: Path) -> Iterator[cw.LogWriter]:
    with cw.LogWriter(path) as writer:
        yield writer


def read(path: Path | str) -> list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in cw.Log(path).records()]


def test_an_append_is_durable_and_returns_its_offsets(writer: cw.LogWriter, path: Path) -> None:
    first = writer.append(b"one", key="k", headers=[("h", b"1"), (b"h", None)], timestamp=T)
    second = writer.append(None, timestamp=-1)
    assert (first.first_offset, first.last_offset, first.max_timestamp, first.durable) == (0, 0, T, True)
    assert (second.first_offset, second.last_offset, second.max_timestamp, second.durable) == (1, 1, -1, True)
    assert repr(first) == f"Appended(first_offset=0, last_offset=0, max_timestamp={T}, durable=True)"
    assert first != second
    assert len({first, second}) == 2
    with pytest.raises(AttributeError):
        first.last_offset = 3  # type: ignore[misc]
    assert (writer.log_start_offset, writer.log_end_offset, writer.durable_offset) == (0, 2, 2)
    assert read(path) == [(0, T, b"k", b"one", [("h", b"1"), ("h", None)]), (1, -1, None, None, [])]


@pytest.mark.parametrize(
    "value",
    [b"bytes", bytearray(b"bytes"), memoryview(b"_bytes_")[1:-1], memoryview(b"b_y_t_e_s_")[::2], "bytes"],
    ids=lambda value: type(value).__name__,
)
def test_values_may_be_bytes_of_any_kind_or_text(writer: cw.LogWriter, value: Any) -> None:
    writer.append(value, key=value, headers=[(value, value)], timestamp=T)
    record = next(iter(writer.reader().records()))
    assert (record.value, record.key, record.headers) == (b"bytes", b"bytes", [("bytes", b"bytes")])


@pytest.mark.parametrize("value", [1, [1, 2], {"a": 1}, 1.5, object()], ids=lambda value: type(value).__name__)
def test_values_that_are_not_bytes_or_strings_are_refused(writer: cw.LogWriter, value: Any) -> None:
    for wrong in (
        lambda: writer.append(value),
        lambda: writer.append(b"", key=value),
        lambda: writer.append(b"", headers=[("h", value)]),
        lambda: writer.append_many([value]),
        lambda: cw.Record(value),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert writer.log_end_offset == 0


@pytest.mark.parametrize("headers", ["ab", ["ab"], [("a",)], [("a", b"", 1)], [(None, b"")], 3, b"xy"], ids=repr)
def test_headers_that_are_not_pairs_are_refused(writer: cw.LogWriter, headers: Any) -> None:
    with pytest.raises(TypeError, match="headers"):
        writer.append(b"", headers=headers)
    assert writer.log_end_offset == 0


def test_headers_may_be_a_mapping(writer: cw.LogWriter) -> None:
    writer.append(b"", headers={"a": b"1", "b": None, "c": "text"})
    assert next(iter(writer.reader().records())).headers == [("a", b"1"), ("b", None), ("c", b"text")]


def test_times_are_ms_datetimes_or_now(writer: cw.LogWriter) -> None:
    before = datetime.now(UTC)
    moment = datetime(2024, 5, 1, 10, 0, 0, 1, tzinfo=UTC)
    writer.append(b"", timestamp=moment)
    writer.append(b"", timestamp=T)
    writer.append(b"")
    times = [record.timestamp for record in writer.reader().records()]
    # a fraction of a millisecond is left out, in a search it is rounded up
    assert times[0] == int(moment.replace(microsecond=0).timestamp() * 1000)
    found = writer.reader().offset_for_time(moment.replace(microsecond=0))
    assert found is not None
    assert found.offset == 0
    assert times[1] == T
    now = datetime.fromtimestamp(times[2] / 1000, UTC)
    assert before - timedelta(seconds=1) <= now <= datetime.now(UTC) + timedelta(seconds=1)
    for wrong in (datetime(2024, 5, 1), -2):  # noqa: DTZ001
        with pytest.raises(cw.ConfigError):
            writer.append(b"", timestamp=wrong)
    with pytest.raises(TypeError):
        writer.append(b"", timestamp=1.5)  # type: ignore[arg-type]
    # more than an hour ahead, by message.timestamp.after.max.ms
    with pytest.raises(cw.InvalidRecordError):
        writer.append(b"", timestamp=datetime.now(UTC) + timedelta(hours=2))
    assert writer.log_end_offset == 3


def test_many_records_are_one_batch_if_they_fit(writer: cw.LogWriter, path: Path) -> None:
    records = [cw.Record(f"{n}", key=f"k{n % 3}", timestamp=T + n) for n in range(100)]
    appended = writer.append_many(records)
    assert (appended.first_offset, appended.last_offset, appended.max_timestamp) == (0, 99, T + 99)
    assert writer.append_many(iter([b"a", "b", bytearray(b"c")])).last_offset == 102
    nothing = writer.append_many([])
    assert (nothing.first_offset, nothing.last_offset, nothing.durable) == (103, 102, True)
    assert [v for _, _, _, v, _ in read(path)] == [b"%d" % n for n in range(100)] + [b"a", b"b", b"c"]
    assert [r["base_offset"] for r in cw.Log(path).batches().to_arrow().to_pylist()] == [0, 100]


def test_many_records_that_do_not_fit_are_several_batches(path: Path) -> None:
    with cw.LogWriter(path, config=cw.LogConfig(max_message_bytes=1000)) as writer:
        assert writer.append_many([b"x" * 100] * 50).last_offset == 49
        with pytest.raises(cw.RecordTooLargeError, match=r"max\.message\.bytes"):
            writer.append(b"x" * 1000)
    assert cw.Log(path).scan().to_arrow().num_rows == 50
    sizes = cw.Log(path).batches().to_arrow()["size"].to_pylist()
    assert len(sizes) > 1
    assert max(sizes) <= 1000


@pytest.mark.parametrize("records", [b"abc", "abc", 5, [b"good", 5], [None]], ids=repr)
def test_invalid_records_are_refused_before_anything_is_written(writer: cw.LogWriter, records: Any) -> None:
    with pytest.raises(TypeError):
        writer.append_many(records)
    assert writer.log_end_offset == 0


def test_a_record_with_an_invalid_timestamp_is_refused_before_any_record_is_appended(path: Path) -> None:
    """The records before it fill several batches."""
    with cw.LogWriter(path, config=cw.LogConfig(max_message_bytes=200)) as writer:
        with pytest.raises(cw.ConfigError, match="timestamp"):
            writer.append_many([*[cw.Record(b"y" * 100)] * 4, cw.Record(b"x", timestamp=-5)])
        assert writer.log_end_offset == 0


def test_an_exception_of_an_iterator_is_passed_on_and_nothing_is_written(writer: cw.LogWriter) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        writer.append_many(broken())
    assert writer.log_end_offset == 0


def test_created_and_read_records_can_be_appended(path: Path) -> None:
    made = cw.Record(b"v", "k", {"h": "x"}, T)
    assert (made.offset, made.timestamp, made.key, made.value, made.headers) == (-1, T, b"k", b"v", [("h", b"x")])
    assert made.timestamp_type is cw.TimestampType.CreateTime
    assert abs(cw.Record(None).timestamp - datetime.now(UTC).timestamp() * 1000) < 60_000
    with pytest.raises(ValueError, match="UTF-8"):
        cw.Record(b"", headers=[(b"\xff", None)])
    edge = corpus.partition("07-edge-values")
    wanted = list(cw.Log(edge.path).records())
    with cw.LogWriter(path, config=cw.LogConfig(max_message_bytes=2 << 20)) as writer:
        writer.append_many(wanted)
    fields = [(r.timestamp, r.key, r.value, r.headers) for r in wanted]
    assert [(r.timestamp, r.key, r.value, r.headers) for r in cw.Log(path).records()] == fields


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
blobs = st.none() | st.binary(max_size=40)
records = st.lists(
    st.tuples(
        st.integers(-1, T).filter(lambda number: _other_unit(number) is None),
        blobs,
        blobs,
        st.lists(st.tuples(names, st.none() | st.binary(max_size=9)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@given(
    groups=st.lists(records, max_size=5),
    codec=st.sampled_from(["producer", "gzip", "snappy", "lz4", "zstd"]),
    flush=st.sampled_from(["always", "none", cw.FlushMode.group(ms=0), cw.FlushMode.interval(messages=3)]),
    reopen=st.booleans(),
)
def test_the_appended_records_are_read_back(
    groups: list[Any], codec: str, flush: str, reopen: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "trip-0"
    config = cw.LogConfig(compression_type=codec, segment_bytes=2048, index_interval_bytes=64)
    wanted = [record for group in groups for record in group]
    writer = cw.LogWriter(path, config=config, flush=flush)
    for group in groups:
        if len(group) == 1:
            (time, key, value, headers) = group[0]
            writer.append(value, key, headers, time)
        else:
            writer.append_many([cw.Record(v, k, h, t) for t, k, v, h in group])
        if reopen:
            writer.close()
            writer = cw.LogWriter(path, config=config, flush=flush)
    for log in (writer.reader(), cw.Log(path)):
        assert [(r.timestamp, r.key, r.value, r.headers) for r in log.records()] == wanted
        assert [r.offset for r in log.records()] == list(range(len(wanted)))
    writer.close()
    table = cw.Log(path).scan().to_arrow().to_pylist()
    assert [(r["key"], r["value"], r["offset"]) for r in table] == [(k, v, n) for n, (_, k, v, _) in enumerate(wanted)]


def test_raw_batches_are_refused_with_what_was_expected(writer: cw.LogWriter) -> None:
    sparse = bytearray(batches.batch(0, [batches.Rec(b"a", timestamp=T)]))
    struct.pack_into(">i", sparse, 23, 5)
    struct.pack_into(">I", sparse, 17, batches.crc32c(bytes(sparse[21:])))
    for raw, expected in (
        (bytes(10), "expected whole batches, found 10 bytes"),
        (bytes(sparse), "expected as many records as offsets, and at least one, found 1 records and"),
    ):
        with pytest.raises(cw.CordwoodError, match=expected):
            writer.append_batches(raw)
    assert writer.log_end_offset == 0


def test_raw_batches_get_the_next_offsets_or_keep_theirs(writer: cw.LogWriter, path: Path) -> None:
    raw = batches.batch(0, [batches.Rec(b"a", timestamp=T), batches.Rec(b"b", timestamp=T)])
    assert writer.append_batches(raw).last_offset == 1
    assert writer.append_batches(memoryview(raw + raw)).first_offset == 2
    kept = batches.batch(10, [batches.Rec(b"c", timestamp=T)], leader_epoch=3)
    appended = writer.append_batches(kept, keep_offsets=True)
    assert (appended.first_offset, appended.last_offset, writer.log_end_offset) == (10, 10, 11)
    assert [r[0] for r in read(path)] == [0, 1, 2, 3, 4, 5, 10]
    assert writer.leader_epochs == [(0, 0), (3, 10)]
    assert writer.end_offset_for(0) == (0, 10)
    assert writer.end_offset_for(3) == (3, 11)
    assert writer.end_offset_for(9) is None
    for wrong in (raw[:-1], raw[:70] + b"\xff" + raw[71:], b"nonsense", raw + b"x"):
        with pytest.raises(cw.CordwoodError):
            writer.append_batches(wrong)
    assert writer.log_end_offset == 11


def test_the_flush_modes_determine_when_a_record_is_durable(tmp_path: Path) -> None:
    for mode, shown, durable in (
        ("always", "always", [True] * 4),
        (cw.FlushMode.group(ms=0, bytes=1), "group(ms=0, bytes=1)", [True] * 4),
        ("none", "none", [False] * 4),
        (cw.FlushMode.interval(messages=2), "interval(messages=2)", [False, True, False, True]),
    ):
        with cw.LogWriter(tmp_path / f"{mode}-0", flush=mode) as writer:
            assert writer.flush_mode == shown
            assert [writer.append(b"x").durable for _ in range(4)] == durable
            writer.append(b"last")
            writer.wait_durable(4)
            assert writer.durable_offset == 5
            writer.append(b"more")
            writer.flush()
            assert writer.durable_offset == 6
            with pytest.raises(cw.OffsetOutOfRangeError):
                writer.wait_durable(6)
    for wrong in ("often", "group(", "interval(0)", "interval(messages=-1)"):
        with pytest.raises(cw.ConfigError, match="flush"):
            cw.LogWriter(tmp_path / "wrong-0", flush=wrong)
    assert not (tmp_path / "wrong-0").exists()


def test_segments_roll_and_the_log_is_cut_at_both_ends(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        for number in range(30):
            writer.append(f"{number}", timestamp=T + number)
            if number % 10 == 9:
                writer.roll()
        assert [s.base_offset for s in writer.reader().segments] == [0, 10, 20, 30]
        before = writer.reader()
        assert writer.truncate_to(100) is False
        assert writer.truncate_to(25) is True
        assert (writer.log_end_offset, writer.durable_offset) == (25, 25)
        assert writer.delete_before(12) is True
        assert writer.delete_before(12) is False
        assert (writer.log_start_offset, writer.log_end_offset) == (12, 25)
        with pytest.raises(cw.OffsetOutOfRangeError):
            writer.delete_before(26)
        log = writer.reader()
        assert [r.offset for r in log.records()] == list(range(12, 25))
        assert [s.base_offset for s in log.segments] == [10, 20]
        with pytest.raises(cw.LogChangedError):
            list(before.records(start_offset=20))
        assert writer.append(b"again", timestamp=T).first_offset == 25
        writer.truncate_fully_and_start_at(1000)
        assert (writer.log_start_offset, writer.log_end_offset) == (1000, 1000)
        assert writer.append(b"anew", timestamp=T).first_offset == 1000
    assert [(r[0], r[3]) for r in read(path)] == [(1000, b"anew")]
    with cw.LogWriter(path) as writer:
        assert (writer.log_start_offset, writer.log_end_offset) == (1000, 1001)
        with pytest.raises(cw.ConfigError):
            writer.truncate_to(-1)


def test_retention_is_planned_and_then_done(path: Path) -> None:
    config = cw.LogConfig(retention_ms=1000, retention_bytes=-1)
    with cw.LogWriter(path, config=config) as writer:
        for number in range(3):
            writer.append(b"x" * 100, timestamp=T + 1000 * number)
            writer.roll()
        assert writer.config is config
        log = writer.reader()
        assert cw.plan_retention(log, config, now=T).segments == []
        plan = cw.plan_retention(log, config, now=T + 2500)
        assert (plan.segments, plan.log_start_offset, plan.rolls) == ([0, 1], 2, False)
        assert plan.bytes == sum(s.size for s in list(log.segments)[:2])
        assert repr(plan).startswith("RetentionPlan(log_start_offset=2, segments=[0, 1], ")
        assert writer.log_start_offset == 0
        done = writer.apply_retention(now=datetime.fromtimestamp((T + 2500) / 1000, UTC))
        assert done == plan
        assert writer.log_start_offset == 2
        assert writer.apply_retention(now=T + 2500).segments == []
    assert [r[0] for r in read(path)] == [2]


def test_settings_of_another_kind_are_refused(path: Path) -> None:
    for wrong in ({"segment.bytes": "1"}, 5):
        with pytest.raises((TypeError, AttributeError, cw.ConfigError)):
            cw.LogWriter(path, config=wrong)  # type: ignore[arg-type]
    with pytest.raises(cw.ConfigError, match="topic_id"):
        cw.LogWriter(path, topic_id="short")
    with pytest.raises(cw.ConfigError, match="leader_epoch"):
        cw.LogWriter(path, leader_epoch=-1)


def test_a_leader_epoch_below_the_logs_is_refused(path: Path) -> None:
    with cw.LogWriter(path, leader_epoch=7) as writer:
        writer.append(b"")
    with pytest.raises(cw.ConfigError, match=r"^leader_epoch: expected 7 or above, .*, found 6$"):
        cw.LogWriter(path, leader_epoch=6)
    for epoch, stamped in [(7, [(7, 0)]), (None, [(7, 0)]), (9, [(7, 0), (9, 3)])]:
        with cw.LogWriter(path, leader_epoch=epoch) as writer:
            writer.append(b"")
            assert writer.leader_epochs == stamped


def test_the_topic_id_is_written_as_in_kafka(path: Path) -> None:
    with cw.LogWriter(path, topic_id="aFsHoJ8mSkaI5w7rWQb5Qg", leader_epoch=7) as writer:
        writer.append(b"")
        assert writer.leader_epochs == [(7, 0)]
    assert (path / "partition.metadata").read_text() == "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg"


def test_every_use_of_a_closed_writer_is_an_error(path: Path) -> None:
    writer = cw.LogWriter(path)
    writer.append(b"x")
    assert not writer.closed
    assert "next offset 1" in repr(writer)
    writer.close()
    writer.close()
    assert writer.closed
    assert "closed" in repr(writer)
    for use in every_use(writer):
        with pytest.raises(cw.ClosedError, match="closed"):
            use()
    with pytest.raises(cw.ClosedError, match="closed"), writer:
        pass
    assert writer.path == str(path)


def every_use(writer: cw.LogWriter) -> list[Any]:
    raw = batches.batch(0, [batches.Rec(b"a", timestamp=T)])
    return [
        lambda: writer.append(b""),
        lambda: writer.append_many([b""]),
        lambda: writer.append_arrow(cw.Log(PLAIN.path).scan()),
        lambda: writer.append_batches(raw),
        writer.flush,
        lambda: writer.wait_durable(0),
        lambda: writer.durable_offset,
        lambda: writer.log_end_offset,
        lambda: writer.log_start_offset,
        lambda: writer.leader_epochs,
        lambda: writer.end_offset_for(0),
        writer.roll,
        lambda: writer.truncate_to(0),
        lambda: writer.truncate_fully_and_start_at(5),
        lambda: writer.delete_before(1),
        writer.apply_retention,
        writer.reader,
    ]


def test_an_exception_in_the_block_closes_the_log_and_is_passed_on(path: Path) -> None:
    writer = cw.LogWriter(path, flush="none")

    def fail() -> None:
        with writer:
            writer.append(b"kept")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert writer.closed
    with cw.LogWriter(path) as again:
        assert again.log_end_offset == 1


def test_a_writer_does_not_pickle(writer: cw.LogWriter) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(writer)


def test_a_writer_dropped_without_close_leaves_what_was_appended(path: Path) -> None:
    writer = cw.LogWriter(path, flush="none")
    writer.append(b"one")
    del writer
    with cw.LogWriter(path) as again:
        assert again.append(b"two").first_offset == 1
    assert [r[3] for r in read(path)] == [b"one", b"two"]


def test_a_log_of_real_kafka_can_be_continued(copied: Any) -> None:
    path = copied(PLAIN.path)
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == 1500
        assert writer.append(b"ours").first_offset == 1500
    assert rows(cw.Log(path).scan(end_offset=1500).to_arrow()) == rows(cw.Log(PLAIN.path).scan().to_arrow())


def test_a_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(cw.LogNotFoundError):
        cw.LogWriter(tmp_path / "not" / "there-0")
    file = tmp_path / "file-0"
    file.write_text("")
    with pytest.raises((cw.CordwoodError, OSError)):
        cw.LogWriter(file)
