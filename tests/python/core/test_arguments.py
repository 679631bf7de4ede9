"""Invalid values for every argument of every public call: the error names the argument and the expected value.

The messages of the binding (PyO3) do not, and its `OverflowError` is not an error of cordwood.
"""

from __future__ import annotations

import asyncio
import decimal
import functools
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import corpus
import numpy as np
import pytest

import cordwood as cw
from cordwood.spark.write import undo

PLAIN = corpus.partition("01-plain").path
DATA = corpus.GOLDEN / "16-data-dir"
INDEX = PLAIN / "00000000000000000000.index"
TIME_INDEX = PLAIN / "00000000000000000000.timeindex"
PAYMENTS = corpus.partition("11-transactions").path
ABORTED = {"producer_id": 1, "first_offset": 2, "last_offset": 3, "last_stable_offset": 2}

NOT_OURS = re.compile(
    r"can't extract|cannot be converted|is not an instance of|cannot be interpreted|too (large|big) to|"
    r"out of range integral|while processing|argument '|object is not|must be (str|real|int)|codec can't|embedded null",
    re.IGNORECASE,
)


class Odd:
    """A value that no argument accepts."""


class Indexed:
    """An integer of another class."""

    def __index__(self) -> int:
        return 2**80


VALUES: list[Any] = [
    "text",
    "",
    "\ud800",
    "a\0b",
    b"bytes",
    bytearray(b"x"),
    memoryview(b"x"),
    5,
    -1,
    2**31,
    -(2**31) - 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**5000,
    Indexed(),
    1.5,
    float("nan"),
    True,
    None,
    Odd(),
    Odd,
    [],
    [Odd()],
    ["offset", 5],
    ["offset", None],
    ["\ud800"],
    [(1, 2)],
    [(1, 2, 2**70)],
    [("h", 5)],
    [[None, b"v"]],
    (),
    {},
    {"a": 1},
    {1: b"x"},
    range(3),
    iter(()),
    lambda: 5,
    datetime(2024, 5, 1),  # noqa: DTZ001
    datetime(2024, 5, 1, tzinfo=UTC),
    decimal.Decimal(5),
    np.int64(5),
    np.uint64(2**63),
    np.float64(5),
    np.arange(3),
    cw.TimestampType.CreateTime,
]

# a test must not fill the disk
TOO_LARGE = {"max_index_size": 2**30}

Made = tuple[Callable[..., Any], dict[str, Any]]


def on_log(name: str, /, **good: Any) -> Callable[[Path], Made]:
    return lambda _: (getattr(cw.Log(PLAIN), name), good)


def on_segments(name: str, **good: Any) -> Callable[[Path], Made]:
    return lambda _: (getattr(cw.Log(PLAIN).segments, name), good)


def on_dir(name: str, **good: Any) -> Callable[[Path], Made]:
    return lambda _: (getattr(cw.LogDir(DATA), name), good)


WRITERS: list[cw.LogWriter] = []


def on_writer(name: str, **good: Any) -> Callable[[Path], Made]:
    return of_writer(lambda writer: getattr(writer, name), **good)


def of_writer(call: Callable[[cw.LogWriter], Any], **good: Any) -> Callable[[Path], Made]:
    def make(folder: Path) -> Made:
        writer = cw.LogWriter(folder / "made-0")
        WRITERS.append(writer)
        writer.append_many([b"x"] * 10)
        return call(writer), good

    return make


def awaited(method: Callable[[cw.LogWriter], Any], **good: Any) -> Callable[[Path], Made]:
    """A method of a writer, or of its parts, whose `await` raises the errors."""

    def make(folder: Path) -> Made:
        call, _ = of_writer(method)(folder)

        @functools.wraps(call)
        def run(*values: Any, **named: Any) -> Any:
            async def main() -> Any:
                return await call(*values, **named)

            return asyncio.run(main())

        return run, good

    return make


def entered(block: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose `async with` raises the errors."""

    @functools.wraps(block)
    async def enter(*values: Any, **named: Any) -> None:
        async with block(*values, **named):
            pass

    return enter


def on_index(kind: Any, name: str, **good: Any) -> Callable[[Path], Made]:
    suffix = {
        cw.OffsetIndexWriter: "index",
        cw.TimeIndexWriter: "timeindex",
        cw.TransactionIndexWriter: "txnindex",
    }[kind]

    def make(folder: Path) -> Made:
        size = {} if kind is cw.TransactionIndexWriter else {"max_index_size": 120}
        index = kind(folder / f"{0:020d}.{suffix}", **size)
        return getattr(index, name), good

    return make


TXNINDEX = next(PAYMENTS.glob("*.txnindex"))
CALLS: dict[str, Callable[[Path], Made]] = {
    "Log": lambda _: (cw.Log, {"path": PLAIN}),
    "Log.locate": on_log("locate", offset=5),
    "Log.locate_many": on_log("locate_many", offsets=[5]),
    "Log.offset_for_time": on_log("offset_for_time", timestamp=5),
    "Log.offsets_for_times": on_log("offsets_for_times", timestamps=[5]),
    "Scan.to_parquet": lambda folder: (cw.Log(PLAIN).scan(limit=1).to_parquet, {"path": folder / "a.parquet"}),
    "Log.scan": on_log("scan"),
    "Log.records": on_log("records"),
    "Log.batches": on_log("batches"),
    "Log.plan": on_log("plan", max_bytes=100_000),
    "Log.offset_gaps": on_log("offset_gaps"),
    "Log.latest": on_log("latest", key=b"k"),
    "Log.follow": on_log("follow", timeout=0),
    "Log.position": on_log("position", name="billing"),
    "Position.commit": lambda folder: (
        cw.Log(shutil.copytree(PLAIN, folder / "made-0")).position("billing").commit,
        {"offset": 5},
    ),
    "Position.commit_async": awaited(lambda writer: writer.reader().position("billing").commit_async, offset=5),
    "LogDir": lambda _: (cw.LogDir, {"path": DATA}),
    "LogDir.scan": on_dir("scan"),
    "LogDir.__getitem__": on_dir("__getitem__", key="cities-0"),
    "LogDir.get": on_dir("get", key="cities-0"),
    "Split": lambda _: (cw.Split, {"path": PLAIN, "start_offset": 0, "end_offset": 5}),
    "PlannedSegment": lambda _: (cw.PlannedSegment, {"base_offset": 0, "size": 5}),
    "Segments.floor": on_segments("floor", offset=5),
    "Segments.higher": on_segments("higher", offset=5),
    "Segments.between": on_segments("between", start=0, end=2**62),
    "Segments.__getitem__": on_segments("__getitem__", key=0),
    "Segments.index": on_segments("index", value=None),
    "Segments.count": on_segments("count", value=None),
    "AbortedTransaction": lambda _: (cw.AbortedTransaction, ABORTED),
    "Record": lambda _: (cw.Record, {"value": b"v"}),
    "LogWriter": lambda folder: (cw.LogWriter, {"path": folder / "made-0"}),
    "LogWriter.plan_recovery": lambda folder: (cw.LogWriter.plan_recovery, {"path": folder}),
    "LogWriter.end_offset_for": on_writer("end_offset_for", epoch=0),
    "LogWriter.append": on_writer("append", value=b"v"),
    "LogWriter.append_many": on_writer("append_many", records=[b"v"]),
    "LogWriter.append_async": awaited(lambda writer: writer.append_async, value=b"v"),
    "LogWriter.append_many_async": awaited(lambda writer: writer.append_many_async, records=[b"v"]),
    "LogWriter.transaction_async": awaited(
        lambda writer: entered(writer.transaction_async), transactional_id="billing"
    ),
    "LogWriter.append_arrow": on_writer("append_arrow", table=None),
    "LogWriter.append_batches": on_writer("append_batches", raw=b""),
    "LogWriter.backup": on_writer("backup", path="backup-0"),
    "LogWriter.producer": on_writer("producer"),
    "LogWriter.transaction": on_writer("transaction", transactional_id="billing"),
    "LogWriter.abort_transaction": on_writer("abort_transaction", producer_id=5),
    "Producer.append": of_writer(lambda writer: writer.producer().append, value=b"v"),
    "Producer.append_many": of_writer(lambda writer: writer.producer().append_many, records=[b"v"]),
    "Transaction.append": of_writer(lambda writer: writer.transaction("billing").append, value=b"v"),
    "Transaction.append_many": of_writer(lambda writer: writer.transaction("billing").append_many, records=[b"v"]),
    "Producer.append_async": awaited(lambda writer: writer.producer().append_async, value=b"v"),
    "Producer.append_many_async": awaited(lambda writer: writer.producer().append_many_async, records=[b"v"]),
    "Transaction.append_async": awaited(lambda writer: writer.transaction("billing").append_async, value=b"v"),
    "Transaction.append_many_async": awaited(
        lambda writer: writer.transaction("billing").append_many_async, records=[b"v"]
    ),
    "LogWriter.wait_durable": on_writer("wait_durable", offset=5),
    "LogWriter.truncate_to": on_writer("truncate_to", offset=5),
    "LogWriter.truncate_fully_and_start_at": on_writer("truncate_fully_and_start_at", offset=5),
    "LogWriter.delete_before": on_writer("delete_before", offset=5),
    "LogWriter.apply_retention": on_writer("apply_retention"),
    "LogWriter.compact": on_writer("compact"),
    "plan_compaction": lambda _: (cw.plan_compaction, {"log": cw.Log(PLAIN)}),
    "plan_retention": lambda _: (cw.plan_retention, {"log": cw.Log(PLAIN)}),
    "FlushMode.group": lambda _: (cw.FlushMode.group, {}),
    "FlushMode.interval": lambda _: (cw.FlushMode.interval, {}),
    "Dump.rows": lambda _: (cw.dump(PLAIN).rows, {}),
    "carve": lambda _: (cw.carve, {"image": PLAIN}),
    "consumer_groups": lambda _: (cw.consumer_groups, {"path": DATA}),
    "consumer_offsets": lambda _: (cw.consumer_offsets, {"path": DATA}),
    "copy": lambda folder: (cw.copy, {"source": PLAIN, "destination": folder / "copied-0"}),
    "diff": lambda _: (cw.diff, {"a": PLAIN, "b": PLAIN}),
    "dump": lambda _: (cw.dump, {"files": PLAIN}),
    "metadata": lambda _: (cw.metadata, {"path": DATA}),
    "metadata_records": lambda _: (cw.metadata_records, {"path": DATA}),
    "open_transactions": lambda _: (cw.open_transactions, {"path": DATA}),
    "plan_kafka_load": lambda _: (cw.plan_kafka_load, {"path": PLAIN, "clean": True}),
    "rebuild_indexes": lambda _: (cw.rebuild_indexes, {"path": PLAIN}),
    "repair": lambda _: (cw.repair, {"path": PLAIN}),
    "retention_timer": lambda folder: (
        cw.retention_timer,
        {"writer": on_writer("roll")(folder)[0].__self__, "every": 60},  # type: ignore[attr-defined]
    ),
    "transactions": lambda _: (cw.transactions, {"path": DATA}),
    "verify": lambda _: (cw.verify, {"paths": PLAIN}),
    "classify": lambda _: (cw.classify, {"path": PLAIN}),
    "LogConfig": lambda _: (cw.LogConfig, {}),
    "LogConfig.from_metadata": lambda folder: (cw.LogConfig.from_metadata, {"path": folder / "made-0"}),
    "LogConfig.from_properties": lambda _: (cw.LogConfig.from_properties, {"properties": {}}),
    "OffsetIndex": lambda folder: (cw.OffsetIndex, {"path": shutil.copy(INDEX, folder)}),
    "OffsetIndexWriter": lambda folder: (cw.OffsetIndexWriter, {"path": folder / INDEX.name, "max_index_size": 80}),
    "TimeIndexWriter": lambda folder: (cw.TimeIndexWriter, {"path": folder / TIME_INDEX.name, "max_index_size": 80}),
    "TransactionIndexWriter": lambda folder: (cw.TransactionIndexWriter, {"path": folder / TXNINDEX.name}),
    "OffsetIndex.entry": lambda _: (cw.OffsetIndex(INDEX).entry, {"n": 0}),
    "OffsetIndex.lookup": lambda _: (cw.OffsetIndex(INDEX).lookup, {"target": 5}),
    "OffsetIndex.slot_range": lambda _: (cw.OffsetIndex(INDEX).slot_range, {"target": 5}),
    "OffsetIndex.trace": lambda _: (cw.OffsetIndex(INDEX).trace, {"target": 5}),
    "OffsetIndex.fetch_upper_bound": lambda _: (
        cw.OffsetIndex(INDEX).fetch_upper_bound,
        {"position": 5, "fetch_size": 5},
    ),
    "OffsetIndexWriter.append": on_index(cw.OffsetIndexWriter, "append", offset=5, position=5),
    "OffsetIndexWriter.truncate_to": on_index(cw.OffsetIndexWriter, "truncate_to", offset=5),
    "OffsetIndexWriter.resize": on_index(cw.OffsetIndexWriter, "resize", max_index_size=80),
    "TimeIndex": lambda folder: (cw.TimeIndex, {"path": shutil.copy(TIME_INDEX, folder)}),
    "TimeIndex.entry": lambda _: (cw.TimeIndex(TIME_INDEX).entry, {"n": 0}),
    "TimeIndex.lookup": lambda _: (cw.TimeIndex(TIME_INDEX).lookup, {"target": 5}),
    "TimeIndex.slot_range": lambda _: (cw.TimeIndex(TIME_INDEX).slot_range, {"target": 5}),
    "TimeIndex.trace": lambda _: (cw.TimeIndex(TIME_INDEX).trace, {"target": 5}),
    "TimeIndexWriter.maybe_append": on_index(cw.TimeIndexWriter, "maybe_append", timestamp=5, offset=5),
    "TimeIndexWriter.truncate_to": on_index(cw.TimeIndexWriter, "truncate_to", offset=5),
    "TimeIndexWriter.resize": on_index(cw.TimeIndexWriter, "resize", max_index_size=120),
    "TransactionIndex": lambda folder: (cw.TransactionIndex, {"path": shutil.copy(TXNINDEX, folder)}),
    "TransactionIndex.entry": lambda _: (cw.TransactionIndex(TXNINDEX).entry, {"n": 0}),
    "TransactionIndex.collect_aborted": lambda _: (
        cw.TransactionIndex(TXNINDEX).collect_aborted,
        {"fetch_offset": 0, "upper_bound": 5},
    ),
    "TransactionIndexWriter.append": on_index(cw.TransactionIndexWriter, "append", **ABORTED),
    "TransactionIndexWriter.append (an entry)": on_index(cw.TransactionIndexWriter, "append"),
    "TransactionIndexWriter.truncate_to": on_index(cw.TransactionIndexWriter, "truncate_to", offset=5),
}

SPARK_CALLS: dict[str, Callable[[Path], Made]] = {
    "spark.undo_write": lambda _: (undo.undo_write, {"path": DATA, "write": "x"}),
    "spark.unfinished_writes": lambda _: (undo.unfinished_writes, {"path": DATA}),
}
ALL_CALLS = CALLS | SPARK_CALLS

# the names of arguments of Python's own protocols differ between releases
NAMES = {"LogDir.__getitem__": "key", "Segments.__getitem__": "key"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """If a value is accepted as a path by mistake, the directory is created here."""
    monkeypatch.chdir(tmp_path)
    yield
    while WRITERS:
        WRITERS.pop().close()


def parameters(name: str, call: Callable[..., Any]) -> list[tuple[str, bool]]:
    """Each argument, and whether it is positional."""
    found = inspect.signature(call).parameters.values()
    return [(NAMES.get(name, p.name), p.kind is p.POSITIONAL_ONLY) for p in found if p.kind is not p.VAR_KEYWORD]


def shown(value: Any) -> str:
    return "a number of 5,000 digits" if type(value) is int and value >= 10**5000 else f"{value!r:.40}"


def is_ours(argument: str, raised: Exception) -> bool:
    """Whether an error names the argument and the expected and found value, or has them as fields."""
    text = str(raised)
    if NOT_OURS.search(text) or getattr(raised, "__notes__", None):
        return False
    named = re.match(rf"{argument}(\[\d+\])*: expected .+, found .+", text, re.DOTALL) is not None
    if type(raised) is TypeError:
        # of arguments that are required together, the missing one is named
        return named or "an AbortedTransaction, or producer_id=" in text
    if isinstance(raised, cw.ConfigError):
        # a setting, or a field of the value
        return re.match(r"[a-z0-9_.]+(\[\d+\])*: expected .+, found .+", text, re.DOTALL) is not None
    if isinstance(raised, OSError):
        return isinstance(raised, cw.CordwoodError) or bool(raised.errno and raised.filename)
    # errors of Python's own containers
    is_pythons = isinstance(raised, KeyError | IndexError) and argument == "key"
    is_index = type(raised) is ValueError and argument == "value" and "not a segment" in text
    return isinstance(raised, cw.CordwoodError) or is_pythons or is_index


@pytest.mark.parametrize("name", ALL_CALLS)
def test_a_wrong_argument_is_named_with_the_expected_and_found_value(name: str, tmp_path: Path) -> None:
    wrong = []
    refusals = 0
    (tmp_path / "first").mkdir()
    for argument, is_placed in parameters(name, ALL_CALLS[name](tmp_path / "first")[0]):
        folder = tmp_path / argument
        folder.mkdir()
        call, good = ALL_CALLS[name](folder)
        others = {k: v for k, v in good.items() if k != argument}
        for value in VALUES:
            if type(value) is int and TOO_LARGE.get(argument, 2**70) <= value < 2**63:
                continue
            if argument == "progress" and callable(value):  # what it raises is its own error
                continue
            try:
                taken = call(value) if is_placed else call(**others, **{argument: value})
            except Exception as raised:  # noqa: BLE001 (any is judged)
                refusals += 1
                if not is_ours(argument, raised):
                    wrong.append(f"{name}({argument}: {shown(value)}): {type(raised).__name__}: {raised}")
            else:
                if isinstance(taken, cw.LogWriter | cw.OffsetIndex | cw.TimeIndex | cw.TransactionIndex):
                    taken.close()
    assert wrong == []
    # `count` is Python's, and returns 0 for a value that is not a segment
    assert refusals > 0 or name == "Segments.count"


def test_every_public_call_is_tried() -> None:
    """All exported calls with arguments other than `self`."""
    tried = {name.partition(" ")[0] for name in CALLS}
    public = set()
    for exported in cw.__all__:
        found = getattr(cw, exported)
        if exported.startswith("__") or (inspect.isclass(found) and issubclass(found, Exception | int)):
            continue
        public.add(exported)
        if inspect.isclass(found):
            public |= {
                f"{exported}.{name}"
                for name, member in vars(found).items()
                if callable(getattr(found, name)) and (not name.startswith("_") or name == "__getitem__")
                if len(inspect.signature(getattr(found, name)).parameters) > (not isinstance(member, classmethod))
            }
        elif not inspect.signature(found).parameters:
            public.discard(exported)
    cannot_be_made = {
        "Appended", "CarveReport", "CarvedPiece", "CarvedRun", "ClusterMetadata", "CommittedOffset", "CompactedSegment",
        "Compaction", "CopyReport",
        "DamagedRange", "DerivedFile", "Difference", "Dump", "DumpRows", "FileChange", "Finding",
        "FirstDifference", "FlushMode", "Follow", "KafkaLoad", "LoadAction", "LoadFailure", "LoadWarning", "LoadedFile",
        "LoadedLog", "LoadedSegment", "Location", "LostOffsets", "LostRange", "OffsetGap", "OffsetPosition",
        "OtherForm", "PathInfo", "Position", "Producer", "ProducerState", "RebuildReport", "RebuiltIndex",
        "RecordPlace", "Records",
        "RecoveryCut", "RecoveryPlan", "RepairAction", "RepairPlan", "Replica", "RetentionPlan", "RetentionTimer",
        "Scan", "ScanStats", "Segment", "SegmentSplit", "Segments", "Table", "TimestampOffset", "Transaction",
        "Unprotected", "Verification", "WriterMetrics",
    }  # fmt: skip
    assert public - cannot_be_made == tried
    for name in cannot_be_made:
        with pytest.raises(TypeError):
            getattr(cw, name)()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: log.scan(columns="key"), r"^columns: expected a list of column names, .*, found str$"),
        (lambda log: log.scan(columns=["key", 5]), r"^columns\[1\]: expected a str, found int$"),
        (lambda log: log.locate(2**64), rf"^offset: expected an offset from 0 to 2\^63 - 1, found {2**64}$"),
        (lambda log: log.offset_for_time(2**64), rf"^timestamp: expected milliseconds within 64 bits, found {2**64}$"),
        (lambda _: cw.LogDir(DATA).scan("cities"), r"^topics: expected a list of topics or globs, .*, found str$"),
        (lambda _: cw.LogDir(DATA, include="delete"), r"^include: expected a list of .*, found str$"),
        (lambda _: cw.FlushMode.group("soon"), r"^ms: expected a whole number, 0 or more, found str$"),
        (lambda _: cw.FlushMode.interval(messages=0), r"^messages: expected a whole number, 1 or more, found 0$"),
        (lambda _: cw.Record(5), r"^value: expected bytes, str or None, found int$"),  # type: ignore[arg-type]
        (lambda log: log.scan(split=(0, 5)), r"^split: expected a Split, .*, found tuple$"),
    ],
)  # fmt: skip
def test_the_message_of_a_wrong_argument(call: Callable[[cw.Log], Any], words: str) -> None:
    with pytest.raises((TypeError, cw.ConfigError), match=words):
        call(cw.Log(PLAIN))


def shown_defaults(call: Callable[..., Any]) -> dict[str, Any]:
    found = inspect.signature(call).parameters.values()
    return {p.name: p.default for p in found if p.default is not p.empty}


@pytest.mark.parametrize("name", ["scan", "batches"])
def test_the_documented_defaults_are_the_actual_ones(name: str) -> None:
    """The pickle of a scan contains all its arguments."""
    log = cw.Log(PLAIN)
    call = getattr(log, name)
    assert call(**shown_defaults(call)).__reduce__() == call().__reduce__()
    for directory in (cw.Log, cw.LogDir):
        path = PLAIN if directory is cw.Log else DATA
        assert directory(path, **shown_defaults(directory)).__reduce__() == directory(path).__reduce__()
    scan = cw.LogDir(DATA).scan
    assert scan(**shown_defaults(scan)).__reduce__() == scan().__reduce__()
