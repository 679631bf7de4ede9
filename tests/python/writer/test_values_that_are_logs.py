"""Values that are whole logs: a reader beside a writer sees the ends that the writer had, and nothing of a value."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from batches import Rec, batch
from scripts import write_script

import cordwood as cw

APPENDS = int(os.environ.get("CORDWOOD_NESTED_APPENDS", "150"))
RECORDS = 3
"""Of a batch: the end of the log is always a multiple of it."""

# Appends batches of one record that is a log and two others, until it is told to end.
WRITER = """
import sys
import cordwood as cw

path, value, appends = sys.argv[1], open(sys.argv[2], "rb").read(), int(sys.argv[3])
with cw.LogWriter(path, flush="none") as writer:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(appends):
        writer.append_many([value, b"second of %d" % number, b"third of %d" % number])
    print("appended", flush=True)
    sys.stdin.readline()
"""

# Looks at the log again and again, and checks each end.
READER = """
import json, logging, os, sys
import cordwood as cw

path, how, value, records = sys.argv[1], sys.argv[2], open(sys.argv[3], "rb").read(), int(sys.argv[4])
warned = []
class Kept(logging.Handler):
    def emit(self, record):
        warned.append(record.getMessage())
logging.getLogger("cordwood").addHandler(Kept())
log, read, looks, partial = cw.Log(path), 0, 0, 0
while read < records:
    looks += 1
    log = log.refresh() if how == "refresh" else cw.Log(path)
    end = log.log_end_offset
    if end % 3 or end < read:
        sys.exit(f"{how}: end {end} after {read}")
    start = max(read, end - 3)
    for on_damage in ("raise", "skip"):
        last = list(log.records(start_offset=start, on_damage=on_damage))
        if [record.offset for record in last] != list(range(start, end)):
            sys.exit(f"{how}: {on_damage}: {[record.offset for record in last]} from {start} to {end}")
        if [record.value == value for record in last] not in ([], [True, False, False]):
            sys.exit(f"{how}: wrong values at {end}")
    partial += os.stat(log.segments[-1].path).st_size > log.segments[-1].size
    warned += log.warnings
    read = end
if warned:
    sys.exit(f"{how}: {len(warned)} warnings in {looks} looks: {warned[0]}")
print(json.dumps({"looks": looks, "partial": partial}))
"""


def nested_log(size: int, first_offset: int, value: bytes = b"n" * 900) -> bytes:
    """Return whole batches of about so many bytes in all, with offsets from the first one on."""
    built: list[bytes] = []
    while sum(map(len, built)) < size:
        built.append(batch(first_offset + len(built), [Rec(value)]))
    return b"".join(built)


@pytest.mark.parametrize("first_offset", [0, 40, 1_000_000])
def test_readers_beside_a_writer_see_only_ends_that_it_had(
    tmp_path: Path, first_offset: int, script_environment: dict[str, str]
) -> None:
    path, value = tmp_path / "captures-0", tmp_path / "value"
    value.write_bytes(nested_log(450_000, first_offset))
    writer_script = write_script(tmp_path, WRITER, "writer.py")
    reader_script = write_script(tmp_path, READER, "reader.py")
    command = [sys.executable, str(writer_script), str(path), str(value), str(APPENDS)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": script_environment}
    with subprocess.Popen(command, stdin=subprocess.PIPE, **pipes) as writer:  # type: ignore[call-overload]
        assert writer.stdout.readline() == "open\n"
        readers = [
            subprocess.Popen(
                [sys.executable, str(reader_script), str(path), how, str(value), str(RECORDS * APPENDS)], **pipes
            )  # type: ignore[call-overload]
            for how in ("open", "refresh")
        ]
        followed: list[int] = []

        def follow() -> None:
            for record in cw.Log(path).follow(start_offset=0, timeout=60):
                followed.append(record.offset)
                if len(followed) == RECORDS * APPENDS:
                    return

        follower = threading.Thread(target=follow)
        follower.start()
        writer.stdin.write("go\n")
        writer.stdin.flush()
        told = [reader.communicate(timeout=120) for reader in readers]
        follower.join()
        writer.communicate("end\n", timeout=60)
    assert [reader.returncode for reader in readers] == [0, 0], told
    assert followed == list(range(RECORDS * APPENDS))
    looks = [json.loads(said) for said, _ in told]
    figures = {"rig": "values that are logs beside a writer", "looks": sum(look["looks"] for look in looks)}
    print(json.dumps({**figures, "partial": sum(look["partial"] for look in looks)}))


def torn(path: Path, first_offset: int) -> int:
    """Write two records, and one that is a log, of whose batch 10 bytes are cut; return the right end."""
    with cw.LogWriter(path, flush="none") as writer:
        writer.append(b"first")
        writer.append(b"second")
        writer.append(nested_log(600, first_offset, b"n" * 40))
        size = writer.reader().size
    for name in (".cordwood.clean", ".cordwood.durable"):
        (path / name).unlink(missing_ok=True)
    os.truncate(path / f"{0:020}.log", size - 10)
    return 2


@pytest.mark.parametrize("first_offset", [0, 2, 1000])
def test_a_torn_record_that_is_a_log_has_no_records(tmp_path: Path, first_offset: int) -> None:
    path = tmp_path / "captures-0"
    end = torn(path, first_offset)
    log = cw.Log(path)
    assert log.log_end_offset == end
    for on_damage in ("raise", "skip"):
        assert log.scan(on_damage=on_damage, columns=["value"]).to_arrow()["value"].to_pylist() == [b"first", b"second"]
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == end
        assert writer.append(b"third").first_offset == end
    assert [record.value for record in cw.Log(path).records()] == [b"first", b"second", b"third"]


# Appends a batch, and is stopped within the write of the next one by the limit of a file's size.
STOPPED = """
import resource, signal, sys
import cordwood as cw

path, value = sys.argv[1], open(sys.argv[2], "rb").read()
writer = cw.LogWriter(path, flush="none")
writer.append_many([b"first", b"second"])
size = writer.reader().size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[3]), resource.RLIM_INFINITY))
# the rest of the write exceeds the limit
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
writer.append(value)
"""


@pytest.mark.parametrize("written", [100, 2000, 4096, 300_000])
def test_a_writer_that_was_killed_within_a_record_that_is_a_log_continues_before_it(
    tmp_path: Path, written: int, script_environment: dict[str, str]
) -> None:
    path, value = tmp_path / "captures-0", tmp_path / "value"
    value.write_bytes(nested_log(450_000, 1000))
    script = write_script(tmp_path, STOPPED)
    command = [sys.executable, str(script), str(path), str(value), str(written)]
    done = subprocess.run(command, env=script_environment, capture_output=True, check=False)
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    log = cw.Log(path)
    assert Path(log.segments[-1].path).stat().st_size > log.size
    assert log.log_end_offset == 2
    with cw.LogWriter(path) as writer:
        assert writer.append(b"third").first_offset == 2
    assert [record.value for record in cw.Log(path).records()] == [b"first", b"second", b"third"]


def damaged_ranges(log: cw.Log) -> list[tuple[int, int]]:
    scan = log.scan(on_damage="skip")
    assert scan.to_arrow()["value"].to_pylist() == [b"first", b"second"]
    return [(found.start_position, found.start_offset) for found in scan.damaged_ranges]


def test_a_torn_end_is_a_warning_only_if_no_writer_has_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "captures-0"
    with cw.LogWriter(path, flush="none") as writer, caplog.at_level(logging.WARNING, "cordwood"):
        writer.append_many([b"first", b"second"])
        end = writer.reader().size
        with (path / f"{0:020}.log").open("r+b") as file:
            # as a part of an append looks to a reader
            file.seek(end)
            file.write(batch(2, [Rec(b"third")])[:-4])
            file.flush()
            log = cw.Log(path)
            assert log.log_end_offset == 2
            assert log.warnings == []
            assert damaged_ranges(log) == []
            file.truncate(end)
    assert caplog.messages == []
    with (path / f"{0:020}.log").open("ab") as file:
        file.write(batch(2, [Rec(b"third")])[:-4])
    log = cw.Log(path)
    with caplog.at_level(logging.WARNING, "cordwood"):
        assert log.log_end_offset == 2
    assert [f"no whole batch follows position {end}" in warning for warning in log.warnings] == [True]
    assert len(caplog.messages) == 1
    assert damaged_ranges(log) == [(end, 2)]
