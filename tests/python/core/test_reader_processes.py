"""Readers in other processes while a writer rolls continuously find every record once and in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from scripts import write_script

import cordwood as cw

RECORDS = int(os.environ.get("CORDWOOD_READ_RECORDS", "4000"))
# a batch of one-byte values fills a segment
BATCH, SEGMENT_BYTES = (20, 237) if RECORDS <= 100_000 else (100, 1000)
# maximum distance of the writer from the slowest reader, and so the number of segments that are listed
AHEAD = 250 * BATCH

# Reads up to the end of each opening or refresh, checks every offset and value, and reports its position.
READER = """
import json, logging, os, sys, time
import cordwood as cw

# each opening beside the deletions warns of hidden records
logging.getLogger("cordwood").disabled = True

path, how, records, progress = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
log, expected, looks = cw.Log(path), 0, 0
said = os.open(progress, os.O_WRONLY)
while expected < records:
    looks += 1
    log = log.refresh() if how == "refresh" else cw.Log(path)
    table = log.scan(start_offset=expected, columns=["offset", "value"]).to_arrow()
    for offset, value in zip(table["offset"].to_pylist(), table["value"].to_pylist()):
        if offset != expected or value != bytes([offset % 251]):
            sys.exit(f"{how}: expected offset {expected}, found {offset} with {value!r}; warnings: {log.warnings}")
        expected += 1
    odd = [warning for warning in log.warnings if "hidden below the log start offset" not in warning]
    if expected != log.log_end_offset or odd:
        sys.exit(f"{how}: ended at {expected} of {log.log_end_offset}: {odd}")
    os.pwrite(said, b"%020d" % expected, 0)
    if not table.num_rows:
        time.sleep(0.001)
print(json.dumps({"records": expected, "looks": looks}))
"""

BUSY = "while True: pass"


class InProcess(threading.Thread):
    """The same in the writer's process, with its own reader and with one that is refreshed."""

    def __init__(self, writer: cw.LogWriter) -> None:
        super().__init__()
        self.writer = writer
        self.expected = 0
        self.failure: str | None = None

    def run(self) -> None:
        try:
            self.read()
        except Exception as error:  # noqa: BLE001  (a thread's exception would be lost)
            self.failure = repr(error)

    def read(self) -> None:
        reader, looks = self.writer.reader(), 0
        while self.expected < RECORDS and self.failure is None:
            looks += 1
            reader = reader.refresh() if looks % 3 else self.writer.reader()
            for record in reader.records(start_offset=self.expected):
                if record.offset != self.expected or record.value != bytes([self.expected % 251]):
                    self.failure = f"expected offset {self.expected}, found {record}"
                    return
                self.expected += 1
            time.sleep(0.001)


def values(start: int) -> list[bytes]:
    return [bytes([offset % 251]) for offset in range(start, start + BATCH)]


def test_readers_during_rolls_find_every_record_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    script = write_script(tmp_path, READER)
    config = cw.LogConfig(segment_bytes=SEGMENT_BYTES, segment_index_bytes=64)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(4)]
    readers: list[subprocess.Popen[str]] = []
    try:
        with cw.LogWriter(path, config=config, flush="none") as writer:
            writer.append_many(values(0))
            progress = [tmp_path / f"progress-{number}" for number in range(4)]
            for said, how in zip(progress, ["open", "refresh", "open", "refresh"], strict=True):
                said.write_text("0")
                command = [sys.executable, str(script), str(path), how, str(RECORDS), str(said)]
                readers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            inside = InProcess(writer)
            inside.start()
            end = BATCH
            while end < RECORDS:
                slowest = min(inside.expected, *(int(said.read_text()) for said in progress))
                if any(reader.poll() for reader in readers) or inside.failure:
                    for reader in readers:
                        reader.terminate()
                    break
                # delete what all readers have read, so that the directory does not grow, but not the last
                # segment that a reader may have before its next refresh
                writer.delete_before(max(slowest - 2 * BATCH, 0))
                if end - slowest > AHEAD:
                    time.sleep(0.001)
                    continue
                for start in range(end, end + 10 * BATCH, BATCH):
                    writer.append_many(values(start))
                end += 10 * BATCH
            said = [reader.communicate() for reader in readers]
            inside.join(60)
    finally:
        for process in [*busy, *readers]:
            process.kill()
            process.wait()
    assert [(reader.returncode, error) for reader, (_, error) in zip(readers, said, strict=True)] == [(0, "")] * 4
    assert inside.failure is None
    read = [json.loads(output) for output, _ in said]
    assert all(found["records"] >= RECORDS for found in read)
    looks = sum(found["looks"] for found in read)
    records = min(found["records"] for found in read)
    print(json.dumps({"rig": "readers", "readers": len(read), "records_each": records, "looks": looks}))
