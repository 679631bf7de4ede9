"""Random odd batches, sent to a real broker as they are: what it stores and its consumer returns is what is read here.

`CORDWOOD_ODD_BATCHES` is the number of batches.
"""

from __future__ import annotations

import json
import os
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
from batches import batch
from commands import cordwood
from spark.reading import plan, struct
from stream_forms import RECORDS, REFUSED, STREAMS, payload_of

import cordwood as cw
from interop.kafka_classes import KafkaClasses, Row, base64_text, hexadecimal
from interop.odd_batches import odd_batch
from interop.produce_requests import RawProducer
from interop.test_dump import compare
from interop.twins import our_lines

TOPIC = "odd"
BATCHES = int(os.environ.get("CORDWOOD_ODD_BATCHES", "300"))
PATIENCE = 110  # seconds for the consumer; below that of a question
# one batch a response: where batches overlap, what a consumer skips of the second depends on the size of its
# responses
ONE_BATCH = {"max.partition.fetch.bytes": "1", "fetch.max.bytes": "1"}


def test_what_a_broker_accepts_is_read_as_its_consumer_reads_it(kafka: KafkaClasses, tmp_path: Path) -> None:
    address = kafka.ask("start", dir=tmp_path / "data")["address"]
    try:
        kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1"})
        stored: dict[int, str] = {}
        with RawProducer(address, TOPIC) as producer:
            for seed in range(BATCHES):
                oddity, raw = odd_batch(seed)
                error, base_offset = producer.send(raw)
                if error == 0:
                    stored[base_offset] = f"{seed}: {oddity}"
        for number, aborts in enumerate((False, True, True, False)):
            (offset,) = transaction(kafka, f"producer-{number % 2}", aborts=aborts)
            stored[offset] = "a transaction"
        question = {"lines": True, "skip_refused": True, "patience": PATIENCE, "settings": ONE_BATCH}
        served = kafka.ask("consume", topic=TOPIC, **question)
        question["settings"] = {**ONE_BATCH, "isolation.level": "read_committed"}
        committed = kafka.ask("consume", topic=TOPIC, **question)
    finally:
        kafka.ask("stop")
    assert len(stored) > BATCHES // 4
    log = cw.Log(tmp_path / "data" / f"{TOPIC}-0")

    def oddity_of(offset: int) -> str:
        return stored[max(base for base in stored if base <= offset)]

    # a batch that ends with an error for the consumer ends with one here, after the same records
    refused = {oddity_of(error["offset"]) for error in served["refused"]}
    scan = log.scan(on_damage="skip")
    scan.to_arrow()
    assert {oddity_of(damaged.start_offset) for damaged in scan.damaged_ranges} == refused
    assert log.log_end_offset == served["end"]
    ours = our_lines(log, on_damage="skip")
    first = next((n for n, (a, b) in enumerate(zip(ours, served["lines"], strict=False)) if a != b), None)
    assert first is None, (ours[first], served["lines"][first], oddity_of(int(served["lines"][first].split()[0])))
    assert ours == served["lines"]
    assert our_lines(log, "read_committed", on_damage="skip") == committed["lines"]
    assert len(ours) - len(committed["lines"]) == 2
    epoch = epoch_of(log)
    assert [line(record, epoch) for record in log.records(on_damage="skip")] == ours

    errors = [finding for finding in cw.verify(log.path, deep=True).findings if finding.severity == "error"]
    assert {oddity_of(finding.start_offset or 0) for finding in errors} <= refused, errors

    # not those of the responses: a batch whose first record is not at its base offset has another one there
    bases = log.batches().to_arrow()["base_offset"].to_pylist()
    whole = [
        (base, after)
        for base, after in zip(bases, [*bases[1:], log.log_end_offset], strict=True)
        if oddity_of(base) not in refused
    ]
    check_counts(log, ours, whole)
    check_look_ups(log, whole)
    check_command_line(log, ours)
    check_spark(log, ours)
    check_dump(kafka, log, whole, tmp_path / "kept-0")
    print(json.dumps({"rig": "odd batches", "sent": BATCHES, "stored": len(stored)}))


def test_a_broker_stores_the_streams_that_are_read_here(kafka: KafkaClasses, tmp_path: Path) -> None:
    address = kafka.ask("start", dir=tmp_path / "data")["address"]
    refused: dict[int, set[str]] = {codec: set() for codec in STREAMS}
    values: list[bytes | None] = []
    try:
        kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1"})
        with RawProducer(address, TOPIC) as producer:
            for records in RECORDS.values():
                for codec, forms in STREAMS.items():
                    for stream, form in forms(payload_of(records)):
                        error, _ = producer.send(batch(0, records, codec=codec, payload=stream))
                        if error:
                            refused[codec].add(form)
                        else:
                            values += [record.value for record in records]
        served = kafka.ask("consume", topic=TOPIC, lines=True, settings=ONE_BATCH)
    finally:
        kafka.ask("stop")
    assert refused == REFUSED
    log = cw.Log(tmp_path / "data" / f"{TOPIC}-0")
    assert [record.value for record in log.records()] == values
    assert our_lines(log) == served["lines"]


def transaction(kafka: KafkaClasses, name: str, *, aborts: bool) -> list[int]:
    """The offset of the only record."""
    records = [{"timestamp": 1_700_000_000_000, "value": base64_text(name.encode())}]
    settings = {"transactional.id": name}
    answer = kafka.ask("produce", topic=TOPIC, records=records, settings=settings, abort=aborts)
    offsets: list[int] = answer["offsets"]
    return offsets


def check_counts(log: cw.Log, ours: list[str], whole: list[tuple[int, int]]) -> None:
    """`Scan.count()` is the number of records: of all, and of the range of every batch."""
    assert log.scan(on_damage="skip").count() == len(ours)
    for base, after in whole:
        scan = log.scan(start_offset=base, end_offset=after)
        assert scan.count() == scan.to_arrow().num_rows, base


def check_look_ups(log: cw.Log, whole: list[tuple[int, int]]) -> None:
    for base, after in whole:
        for offset in (base, after - 1):
            location = log.locate(offset)
            assert location is not None
            assert location.batch_base_offset == base
    for base, _ in whole[::40]:
        found = cordwood("find", log.path, "--offset", base, "--json")
        assert found.returncode == 0, found.stderr
        answer = json.loads(found.stdout)
        # where no record has the base offset, the next record is found
        assert base in (answer["batch_base_offset"], answer.get("missing"))


def check_command_line(log: cw.Log, ours: list[str]) -> None:
    printed = cordwood("cat", log.path, "--on-damage", "skip", "--columns", "offset,value", "--format", "arrow")
    with pa.ipc.open_stream(printed.stdout) as reader:
        table = reader.read_all()
    columns = zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)
    fields = [line.split(" ") for line in ours]
    assert [(offset, hexadecimal(value)) for offset, value in columns] == [(int(f[0]), f[5]) for f in fields]
    counted = cordwood("count", log.path, "--on-damage", "skip", "--json")
    assert json.loads(counted.stdout)["records"] == len(ours)


def check_spark(log: cw.Log, ours: list[str]) -> None:
    """The source in Python, called as Spark calls it."""
    rows = plan(log.path, mode="DROPMALFORMED", schema=struct("offset", "key", "value")).rows()
    fields = [line.split(" ") for line in ours]
    found = [(offset, hexadecimal(key), hexadecimal(value)) for offset, key, value in rows]
    # batches overlap; the rows are sorted
    assert found == sorted(((int(f[0]), f[4], f[5]) for f in fields), key=itemgetter(0))


def check_dump(kafka: KafkaClasses, log: cw.Log, whole: list[tuple[int, int]], kept: Path) -> None:
    """The tool ends at the first batch that it cannot read: a file without those."""
    raw = {segment.base_offset: Path(segment.path).read_bytes() for segment in log.segments}
    kept.mkdir()
    file = kept / f"{0:020}.log"
    places = [location for base, _ in whole if (location := log.locate(base)) is not None]
    file.write_bytes(b"".join(raw[at.segment_base_offset][at.position : at.position + at.size] for at in places))
    for options in ({}, {"print_data_log": True}, {"deep_iteration": True}):
        text, failed = compare(kafka, [file], options)
        assert not failed
        assert text


def epoch_of(log: cw.Log) -> int:
    """The broker writes all batches in one leader epoch."""
    (epoch,) = set(log.batches().to_arrow()["leader_epoch"].to_pylist())
    return int(epoch)


def line(record: cw.Record, epoch: int) -> str:
    return str(
        Row(
            record.offset,
            int(record.timestamp_type),
            record.timestamp,
            epoch,
            record.key,
            record.value,
            [(name, value) for name, value in record.headers],
        )
    )
