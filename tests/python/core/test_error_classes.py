"""Every error class of the package: an example, its attributes, and its pickle."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import GZIP, Rec, batch, write_partition

import cordwood as cw
from cordwood import errors

PLAIN = corpus.partition("01-plain")
DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
ATTRIBUTES = (
    *("code", "file", "position", "offset", "log_start_offset", "log_end_offset", "expected", "found"),
    *("argument", "advice", "producer_id", "producer_epoch"),
)
NOW = 1_700_000_000_000
GOOD = batch(0, [Rec(b"good", timestamp=NOW)])
OLD_TIMES = {"message_timestamp_before_max_ms": 1 << 62}


@contextmanager
def writer(path: Path, **settings: Any) -> Iterator[cw.LogWriter]:
    with cw.LogWriter(path / "orders-0", config=cw.LogConfig(**{**OLD_TIMES, **settings}), flush="none") as opened:
        yield opened


def damaged(_: Path) -> None:
    cw.Log(DAMAGED).scan().to_arrow()


def unsupported(path: Path) -> None:
    cw.Log(write_partition(path / "new-0", [(0, [batch(0, [Rec(b"a")], codec=6), GOOD])])).scan().to_arrow()


def too_large(path: Path) -> None:
    log = write_partition(path / "large-0", [(0, [GOOD, batch(1, [Rec(b"x" * 2000)], codec=GZIP)])])
    cw.Log(log, max_batch_bytes=1000).scan(on_damage="skip").to_arrow()


def changed(path: Path) -> None:
    shutil.copytree(PLAIN.path, path / "orders-0")
    log = cw.Log(path / "orders-0")
    (path / "orders-0" / f"{400:020d}.log").unlink()
    log.scan().to_arrow()


def locked(path: Path) -> None:
    with writer(path), writer(path):
        pass


def forked(path: Path) -> None:
    """In a child process, which sends the pickled error to its parent."""
    with writer(path) as opened:
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                opened.append(b"")
            except cw.CordwoodError as error:
                os.write(sink, pickle.dumps(error))
            finally:
                os._exit(0)
        os.close(sink)
        with os.fdopen(source, "rb") as answer:
            error = pickle.loads(answer.read())
        os.waitpid(child, 0)
    raise error


def poisoned(path: Path) -> None:
    opened = cw.LogWriter(path / "orders-0")
    opened.append(b"")
    shutil.rmtree(path / "orders-0")
    with pytest.raises(OSError, match="orders-0"):
        opened.close()
    opened.append(b"")


def closed_writer(path: Path) -> None:
    with writer(path) as opened:
        pass
    opened.append(b"")


def closed_index(path: Path) -> None:
    index = cw.OffsetIndexWriter(path / f"{0:020d}.index")
    index.close()
    index.append(0, 0)


def beyond_the_end(_: Path) -> None:
    cw.Log(PLAIN.path).locate(1500)


def not_yet_appended(path: Path) -> None:
    with writer(path) as opened:
        opened.truncate_fully_and_start_at(30)
        opened.append(b"")
        opened.wait_durable(31)


def large_record(path: Path) -> None:
    with writer(path, max_message_bytes=1000) as opened:
        opened.append(b"x" * 1000)


def large_record_among_others(path: Path) -> None:
    with writer(path, max_message_bytes=2000, segment_bytes=1000, segment_index_bytes=16) as opened:
        opened.append_many([b"x", b"x" * 1000])


def large_batch(path: Path) -> None:
    with writer(path, max_message_bytes=70) as opened:
        opened.append_batches(GOOD + batch(0, [Rec(b"x" * 1000, timestamp=NOW)]))


def batches_above_a_segment(path: Path) -> None:
    with writer(path, segment_bytes=1000, segment_index_bytes=16) as opened:
        opened.append_batches(b"".join(batch(n, [Rec(b"x" * 600)]) for n in range(2)), keep_offsets=True)


def wrong_checksum(path: Path) -> None:
    with writer(path) as opened:
        opened.append_batches(GOOD + GOOD[:-1] + b"!")


def no_key(path: Path) -> None:
    with writer(path, cleanup_policy="compact") as opened:
        opened.append(b"")


def no_key_in_a_batch(path: Path) -> None:
    with writer(path, cleanup_policy="compact") as opened:
        opened.append_batches(batch(0, [Rec(b"", key=b"k")]) + GOOD)


def produced(path: Path, epoch: int, sequence: int) -> None:
    """After a batch of producer 7 with epoch 4 and sequence 0."""
    with writer(path) as opened:
        for fields in ({"producer_epoch": 4, "base_sequence": 0}, {"producer_epoch": epoch, "base_sequence": sequence}):
            opened.append_batches(GOOD + batch(0, [Rec(b"", timestamp=NOW)], producer_id=7, **fields))


def sequence_after_a_gap(path: Path) -> None:
    produced(path, 4, 9)


def epoch_of_an_older_producer(path: Path) -> None:
    produced(path, 3, 1)


def far_future(path: Path) -> None:
    with writer(path) as opened:
        opened.append(b"", timestamp=1 << 62)


@dataclass(frozen=True)
class Case:
    """The expected attributes; `...` is any value but `None`. Attributes that are not named must be `None`."""

    kind: type[cw.CordwoodError]
    act: Callable[[Path], object]
    also: tuple[type[Exception], ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.act.__name__


PLACED = {"expected": ..., "found": ..., "file": ...}
REFUSED = {"code": "invalid_record", "expected": ..., "found": ...}
LARGE = {"code": "record_too_large", "expected": ..., "found": ..., "advice": ...}
PRODUCER = {"expected": ..., "producer_id": 7, "producer_epoch": ...}
CASES = [
    Case(
        cw.CorruptLogError,
        damaged,
        attributes=PLACED
        | {"code": "corrupt", "file": str(DAMAGED / f"{285:020d}.log"), "position": 2126, "offset": ..., "advice": ...},
    ),
    Case(
        cw.UnsupportedFormatError,
        unsupported,
        attributes=PLACED | {"code": "unsupported_format", "position": 0, "offset": 0},
    ),
    Case(
        cw.BatchTooLargeError,
        too_large,
        attributes=PLACED | {"code": "batch_too_large", "position": len(GOOD), "offset": 1, "advice": ...},
    ),
    Case(cw.LogChangedError, changed, attributes=PLACED | {"code": "log_changed", "advice": ...}),
    Case(
        cw.LogNotFoundError,
        lambda path: cw.Log(path / "none-0"),
        (FileNotFoundError,),
        PLACED | {"code": "log_not_found"},
    ),
    Case(
        cw.LogNotFoundError,
        cw.Log,
        (FileNotFoundError,),
        PLACED | {"code": "no_segment", "advice": ...},
    ),
    Case(cw.LockedError, locked, (OSError,), PLACED | {"code": "locked"}),
    Case(cw.ForkedHandleError, forked, attributes={"code": "forked_handle", "expected": ..., "found": ...}),
    Case(cw.PoisonedError, poisoned, attributes={"code": "poisoned", "found": ..., "advice": ...}),
    *(
        Case(cw.ClosedError, act, (ValueError,), {"code": "closed", "expected": ..., "found": ..., "advice": ...})
        for act in (closed_writer, closed_index)
    ),
    Case(
        cw.OffsetOutOfRangeError,
        beyond_the_end,
        attributes=PLACED
        | {"code": "offset_out_of_range", "offset": 1500, "log_start_offset": 0, "log_end_offset": 1500},
    ),
    Case(
        cw.OffsetOutOfRangeError,
        not_yet_appended,
        attributes=PLACED | {"code": "offset_out_of_range", "offset": 31, "log_start_offset": 30, "log_end_offset": 31},
    ),
    *(
        Case(cw.RecordTooLargeError, act, (ValueError,), LARGE | {"argument": setting})
        for act, setting in (
            (large_record, "max.message.bytes"),
            (large_record_among_others, "segment.bytes"),
            (large_batch, "max.message.bytes"),
            (batches_above_a_segment, "segment.bytes"),
        )
    ),
    Case(cw.InvalidRecordError, wrong_checksum, (ValueError,), REFUSED | {"argument": "raw", "position": len(GOOD)}),
    Case(cw.InvalidRecordError, no_key, (ValueError,), REFUSED | {"argument": "key"}),
    Case(cw.InvalidRecordError, no_key_in_a_batch, (ValueError,), REFUSED | {"argument": "key", "position": ...}),
    Case(cw.InvalidRecordError, far_future, (ValueError,), REFUSED | {"argument": "timestamp"}),
    *(
        Case(
            kind,
            act,
            (ValueError,),
            {"code": code, "argument": "raw", "position": len(GOOD), **PRODUCER, "found": found},
        )
        for kind, act, code, found in (
            (cw.OutOfOrderSequenceError, sequence_after_a_gap, "out_of_order_sequence", "9"),
            (cw.InvalidProducerEpochError, epoch_of_an_older_producer, "invalid_producer_epoch", "3"),
        )
    ),
    Case(
        cw.ConfigError,
        lambda path: cw.Log(path, io="fast"),
        (ValueError,),
        {"code": "config", "argument": "io", "expected": ..., "found": ...},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_error_has_its_class_and_its_attributes_and_survives_a_pickle(case: Case, tmp_path: Path) -> None:
    with pytest.raises(cw.CordwoodError) as raised:
        case.act(tmp_path)
    error = raised.value
    assert type(error) is case.kind
    # it is a subclass of no other built-in class
    builtin = (ValueError, OSError, LookupError, TypeError, RuntimeError)
    assert {kind for kind in builtin if isinstance(error, kind)} == {
        kind for kind in builtin if any(issubclass(other, kind) for other in case.also)
    }
    found = {name: getattr(error, name) for name in ATTRIBUTES}
    for name, value in found.items():
        wanted = case.attributes.get(name)
        assert (value is not None) if wanted is ... else value == wanted, (name, value)
    sentence = str(error)
    assert all(found[name] in sentence for name in ("file", "advice") if found[name] is not None)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(error, protocol))
        assert type(other) is type(error)
        assert str(other) == sentence
        assert {name: getattr(other, name) for name in ATTRIBUTES} == found


def test_the_table_has_every_class() -> None:
    # a bug in cordwood cannot be triggered on purpose
    assert {case.kind.__name__ for case in CASES} == set(errors.__all__) - {"CordwoodError", "InternalError"}
    assert {name for name in vars(cw) if name.endswith("Error")} == set(errors.__all__)


@pytest.mark.parametrize("name", errors.__all__)
def test_every_attribute_of_every_class_survives_a_pickle(name: str) -> None:
    given = {attribute: f"{attribute} ü\n" for attribute in ATTRIBUTES}
    error = getattr(cw, name)("a sentence", **given)
    error.add_note("a note")
    other = pickle.loads(pickle.dumps(error))
    assert {attribute: getattr(other, attribute) for attribute in ATTRIBUTES} == given
    assert (other.args, other.__notes__) == (("a sentence",), ["a note"])


def test_an_error_of_the_system_is_the_subclass_of_os_error_with_its_message(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.index").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        cw.OffsetIndexWriter(tmp_path / f"{0:020d}.index")
    assert raised.value.strerror == os.strerror(raised.value.errno)


def test_the_advice_of_a_call_that_changes_a_log_is_not_to_skip_damage(tmp_path: Path) -> None:
    path = Path(shutil.copytree(DAMAGED, tmp_path / "tickets-0"))
    calls: list[Callable[[], object]] = [
        lambda: cw.LogWriter(path),
        lambda: cw.LogWriter.plan_recovery(path),
        lambda: cw.rebuild_indexes(path),
    ]
    for call in calls:
        with pytest.raises(cw.CorruptLogError) as raised:
            call()
        assert "on_damage" not in str(raised.value)
        assert "cordwood verify --explain shows what is damaged" in str(raised.value)
    with pytest.raises(cw.CorruptLogError, match='on_damage="skip"'):
        cw.Log(path).scan().to_arrow()
