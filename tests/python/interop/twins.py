"""One list of steps, run with `LogWriter` and then with Kafka's UnifiedLog, and the comparison of the two directories.

Steps are those of `tests/interop/README.md`: mappings with `do` and its arguments, bytes in base64. So they are sent to
Kafka unchanged.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import cordwood as cw
from interop.kafka_classes import KafkaClasses, Row

COLUMNS = ["offset", "timestamp_type", "timestamp", "leader_epoch", "key", "value", "headers"]
COMPARED = (
    *("*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot"),
    *("leader-epoch-checkpoint", "partition.metadata"),
)
START = 1_700_000_000_000  # of timestamps: long past, so that none is too far ahead of the clock
KAFKAS_NOW = START + 90_000_000_000

Step = dict[str, Any]


Result = cw.Appended | cw.Compaction | cw.CordwoodError | None
Answer = tuple[Result, int]
"""The result of a step, and the log end offset after it."""
Told = Generator[Step, Answer | None, None]
"""Steps that depend on the answers to those before."""


@dataclass
class Written:
    """The results of the steps with `LogWriter`: a value or an error for each."""

    results: list[Result] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    stable: list[int] = field(default_factory=list)

    def errors(self) -> list[str]:
        return [str(result) for result in self.results if isinstance(result, cw.CordwoodError)]


def write_with_cordwood(partition: Path, settings: dict[str, Any], steps: Iterable[Step], **options: Any) -> Written:
    """Run the steps and close the log. `options` are arguments of `LogWriter`."""
    return write_as_told(partition, settings, (step for step in steps), **options)[1]


def write_as_told(partition: Path, settings: dict[str, Any], told: Told, **options: Any) -> tuple[list[Step], Written]:
    """Run the steps and close the log. Return the steps too."""
    config = cw.LogConfig.from_properties({name: str(value) for name, value in kafkas_names(settings).items()})
    written = Written()
    partition.parent.mkdir(parents=True, exist_ok=True)
    options.setdefault("flush", "none")
    writer = cw.LogWriter(partition, config=config, **options)
    steps: list[Step] = []
    answer: Answer | None = None
    while (step := next_step(told, answer)) is not None:
        steps.append(step)
        try:
            if step["do"] in ("reopen", "crash"):
                if step["do"] == "reopen":
                    writer.close()
                else:
                    # not closed
                    del writer
                options["leader_epoch"] = step.get("leader_epoch", options.get("leader_epoch", 0))
                writer = cw.LogWriter(partition, config=config, **options)
                result = None
            else:
                result = done(writer, step)
        except cw.CordwoodError as error:
            # its traceback would keep the writer open
            result = error.with_traceback(None)
        written.results.append(result)
        written.ends.append(writer.log_end_offset)
        written.stable.append(writer.last_stable_offset)
        answer = (result, writer.log_end_offset)
    writer.close()
    return steps, written


def next_step(told: Told, answer: Answer | None) -> Step | None:
    try:
        return told.send(answer)
    except StopIteration:
        return None


def done(writer: cw.LogWriter, step: Step) -> cw.Appended | cw.Compaction | None:
    """Run one step; only appends and compactions have a result."""
    match step["do"]:
        case "append":
            records = [record(fields) for fields in step["records"]]
            if len(records) == 1:
                only = records[0]
                return writer.append(only.value, key=only.key, headers=only.headers, timestamp=only.timestamp)
            return writer.append_many(records)
        case "raw":
            return writer.append_batches(base64.b64decode(step["batches"]))
        case "follow":
            return writer.append_batches(base64.b64decode(step["batches"]), keep_offsets=True)
        case "roll" | "flush" as how:
            getattr(writer, how)()
        case "truncate_to" | "truncate_fully" as how:
            truncate = writer.truncate_to if how == "truncate_to" else writer.truncate_fully_and_start_at
            truncate(step["offset"])
        case "delete_before":
            writer.delete_before(step["offset"])
        case "retain":
            writer.apply_retention(now=step["now"])
        case "compact":
            return writer.compact(now=step["now"], dedupe_buffer_bytes=step["bytes"], threads=2)
        case other:
            raise AssertionError(other)
    return None


def record(fields: dict[str, Any]) -> cw.Record:
    return cw.Record(
        value=unbase64(fields.get("value")),
        key=unbase64(fields.get("key")),
        headers=[(name, unbase64(value)) for name, value in fields.get("headers", ())],
        timestamp=fields["timestamp"],
    )


def unbase64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def write_with_kafka(
    kafka: KafkaClasses, partition: Path, settings: dict[str, Any], steps: Iterable[Step], written: Written, **more: Any
) -> dict[str, Any]:
    """The same steps, with Kafka's clock set to our times, so that LogAppendTime is the same."""
    timed = []
    for step, result in zip(steps, written.results, strict=True):
        ours = isinstance(result, cw.Appended) and settings.get("message.timestamp.type") == "LogAppendTime"
        timed.append({**step, "now": result.max_timestamp} if ours else step)
    return kafka.ask("write", dir=partition, settings=settings, steps=timed, **{"now": KAFKAS_NOW, **more})


def kafkas_names(settings: dict[str, Any]) -> dict[str, Any]:
    """The names of topic settings: a small segment size has another name there."""
    named = dict(settings)
    if named.get("segment.bytes", 1 << 20) < 1 << 20:
        named["internal.segment.bytes"] = named.pop("segment.bytes")
    return named


def assert_the_same(written: Written, answer: dict[str, Any], ours: Path, kafkas: Path) -> None:
    """Compare the results first: if they differ, the files differ for the same reason."""
    assert_the_same_answers(written, answer)
    assert_the_same_files(ours, kafkas)


def assert_the_same_answers(written: Written, answer: dict[str, Any]) -> None:
    for number, (result, end, step) in enumerate(zip(written.results, written.ends, answer["steps"], strict=True)):
        where = (number, result, step)
        assert isinstance(result, cw.CordwoodError) == ("error" in step), where
        if isinstance(result, cw.Appended) and "error" not in step:
            assert (result.first_offset, result.last_offset) == (step["first"], step["last"]), where
            # for a duplicate, Kafka returns the timestamp of the batch that is not written
            is_duplicate = number > 0 and end == written.ends[number - 1]
            assert is_duplicate or result.max_timestamp == step["max_timestamp"], where
        assert end == step["log_end_offset"], where
        stable, kafkas, start = written.stable[number], step["last_stable_offset"], step["log_start_offset"]
        # of a transaction from before the log start: Kafka's is below that, or at the first record
        assert stable == kafkas or (0 < start == stable and kafkas < end), where


def assert_the_same_files(ours: Path, kafkas: Path, patterns: Iterable[str] = COMPARED) -> None:
    mine, theirs = contents(ours, *patterns), contents(kafkas, *patterns)
    assert sorted(mine) == sorted(theirs)
    for name, content in theirs.items():
        assert mine[name] == content, (name, len(mine[name]), len(content), first_difference(mine[name], content))


def first_difference(one: bytes, other: bytes) -> tuple[int, str, str]:
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return at, one[at : at + 24].hex(), other[at : at + 24].hex()


def contents(partition: Path, *patterns: str) -> dict[str, bytes]:
    """The contents of the files that match the patterns, by name; snapshots with their producers in one order."""
    found = {path.name: path.read_bytes() for pattern in patterns for path in sorted(partition.glob(pattern))}
    return {name: in_order(content) if name.endswith(".snapshot") else content for name, content in found.items()}


def in_order(snapshot: bytes) -> bytes:
    """A snapshot without its checksum, and with its producers by ascending id: Kafka writes and reads any order."""
    entries = [snapshot[at : at + 46] for at in range(10, len(snapshot), 46)]
    return snapshot[:2] + snapshot[6:10] + b"".join(sorted(entries))


def our_lines(
    log: cw.Log,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    on_damage: Literal["raise", "skip"] = "raise",
    *,
    include_control: bool = False,
) -> list[str]:
    """Every record, in the format of Kafka's side."""
    table = log.scan(
        columns=COLUMNS, isolation_level=isolation_level, on_damage=on_damage, include_control=include_control
    ).to_arrow()
    at = table.schema.get_field_index("timestamp")
    table = table.set_column(at, "timestamp", table["timestamp"].cast(pa.int64()))
    return [
        str(
            Row(
                row["offset"],
                row["timestamp_type"],
                -1 if row["timestamp"] is None else row["timestamp"],
                row["leader_epoch"],
                row["key"],
                row["value"],
                [(header["key"], header["value"]) for header in row["headers"] or ()],
            )
        )
        for row in table.to_pylist()
    ]
