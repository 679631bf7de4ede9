"""The main jobs, on partitions that a real Kafka wrote. Prints the result and the duration of each step."""

import struct
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

import cordwood as cw
import demo_incident
import demo_spark
import demo_write
from demo_steps import GOLDEN, ROOT, expect, step

ORDERS = GOLDEN / "01-plain" / "orders-0"
PAYMENTS = GOLDEN / "11-transactions" / "payments-0"
DAMAGED = GOLDEN / "damaged" / "flip-record" / "tickets-0"
DATA_DIR = GOLDEN / "16-data-dir"


def clock(timestamp: int) -> str:
    moment = datetime.fromtimestamp(timestamp / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def list_partitions() -> None:
    with step("List a broker's data directory, and the segments of a partition") as say:
        for name, log in cw.LogDir(DATA_DIR).items():
            say(f"{name:24} offsets {log.log_start_offset} to {log.log_end_offset}, {log.size} bytes")
        log = cw.Log(ORDERS)
        say(f"{log.topic}-{log.partition}:")
        for segment in log.segments:
            say(
                f"  segment {segment.base_offset:>5} to {segment.end_offset:>5}, {segment.size} bytes, "
                f"newest {clock(segment.largest_timestamp)}"
            )
        expect("log end offset", log.log_end_offset, 1500)


def find_offset_and_time() -> None:
    log = cw.Log(ORDERS)
    with step("Find an offset") as say:
        at = log.locate(1000)
        if at is None:
            sys.exit("offset 1000 was not found")
        batch = f"batch {at.batch_base_offset}, {at.size} bytes at byte {at.position}"
        say(f"offset 1000: segment {at.segment_base_offset}, {batch}")
        expect("segment", at.segment_base_offset, 807)
    with step("Find a time") as say:
        found = log.offset_for_time(datetime(2023, 11, 14, 22, 13, 30, tzinfo=UTC))
        if found is None:
            sys.exit("the time was not found")
        say(f"the first record at or after 22:13:30Z: offset {found.offset}, {clock(found.timestamp)}")
        expect("offset", found.offset, 488)


def show_pages() -> None:
    with step("Show the pages that an index search touches") as say:
        index = cw.Log(ORDERS).segments[0].offset_index
        if index is None:
            sys.exit("the segment has no index")
        say(f"orders-0, first segment, {index.entries} entries: pages {index.trace(399)}")
        with tempfile.TemporaryDirectory() as folder:
            # in Kafka's format: (relative offset, position), big-endian
            path = Path(folder) / f"{0:020}.index"
            entries = 14 * 4096 // 8
            path.write_bytes(b"".join(struct.pack(">ii", n * 10, n * 4096) for n in range(entries)))
            with cw.OffsetIndex(path) as large:
                for method in ("binary", "warm"):
                    pages = large.trace(entries * 10, method)
                    strip = "".join("#" if page in pages else "." for page in range(14))
                    say(f"an index of 14 full pages, newest entry, {method:6}: {strip}  pages {pages}")
                expect("warm pages", large.trace(entries * 10, "warm"), [11, 12, 13])


def scan_time_range() -> None:
    with step("Scan a time range into a table") as say:
        scan = cw.Log(ORDERS).scan(start_time=1_700_000_010_000, end_time=1_700_000_012_000)
        table = scan.to_arrow()
        stats = scan.stats
        say(f"two seconds: {table.num_rows} records, columns {', '.join(table.column_names)}")
        say(f"{stats.batches} batch headers read, {stats.batches_skipped} batches skipped, {stats.bytes_read} bytes")
        for row in table.slice(0, 3).to_pylist():
            say(f"  {row['offset']}  {row['timestamp'].isoformat()}  {row['key'].decode()}  {row['value'][:40]!r}…")
        expect("records", table.num_rows, 102)


def read_committed() -> None:
    with step("Read only committed records") as say:
        log = cw.Log(PAYMENTS)
        everything = log.scan(columns=["offset"]).to_arrow().num_rows
        committed = log.scan(columns=["offset"], isolation_level="read_committed").to_arrow().num_rows
        say(
            f"{everything} records; {committed} of them committed below the last stable offset {log.last_stable_offset}"
        )
        say("a real consumer of that broker received the same records")
        expect(
            "records, committed, last stable offset", (everything, committed, log.last_stable_offset), (889, 596, 903)
        )


def write_parquet() -> None:
    with step("Write Parquet") as say:
        target = ROOT / "target" / "demo" / "orders-0.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        reader = pa.RecordBatchReader.from_stream(cw.Log(ORDERS).scan())
        with parquet.ParquetWriter(target, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)
        rows = parquet.read_metadata(target).num_rows
        say(f"{target.relative_to(ROOT)}: {rows} rows, {target.stat().st_size} bytes")
        expect("rows", rows, 1500)


def read_damaged() -> None:
    with step("Read a partition with one flipped bit") as say:
        log = cw.Log(DAMAGED)
        try:
            log.scan().to_arrow()
        except cw.CorruptLogError as error:
            say(f"on_damage='raise': {str(error).replace(f'{ROOT}/', '')}")
            expect("position", error.position, 2126)
        else:
            sys.exit("the damage was not seen")
        scan = log.scan(on_damage="skip")
        table = scan.to_arrow()
        say(f"on_damage='skip': {table.num_rows} records; left out:")
        for gap in scan.damaged_ranges:
            say(
                f"  {Path(gap.file).name}, bytes {gap.start_position} to {gap.end_position}, "
                f"offsets {gap.start_offset} to {gap.end_offset}: {gap.reason}"
            )
        expect("records", table.num_rows, 369)


def main() -> None:
    start = time.perf_counter()
    print(f"cordwood {cw.__version__}, on partitions in {GOLDEN.relative_to(ROOT)}")
    list_partitions()
    find_offset_and_time()
    show_pages()
    scan_time_range()
    read_committed()
    write_parquet()
    read_damaged()
    demo_write.main()
    demo_incident.main()
    demo_spark.main()
    print(f"\nAll steps took {time.perf_counter() - start:.2f} s; nothing was written to the repository's partitions.")


if __name__ == "__main__":
    main()
