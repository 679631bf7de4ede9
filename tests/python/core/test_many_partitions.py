"""Data directories with many more partitions than the process may open files."""

from __future__ import annotations

from pathlib import Path

from batches import Rec, batch, write_partition
from scripts import run, write_script

PARTITIONS = 1500
FOLLOWED = 120
TRANSACTIONAL = 0x10

SCRIPT = """
import os, resource, sys
from pathlib import Path
import cordwood as cw

resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
path = Path(sys.argv[1])
rows = int(sys.argv[2])
"""

SCANS = """
directory = cw.LogDir(path)
for options in [{}, {"threads": 2}, {"isolation_level": "read_committed"}, {"latest": True}]:
    scan = directory.scan(**options)
    found = scan.to_arrow().num_rows
    assert found == {"isolation_level": rows - 1500, "latest": 0}.get(next(iter(options), None), rows), (options, found)
    if not options or "threads" in options:
        first = scan.first_uncommitted
        assert (Path(first[0]).name, first[1]) == ("t-0", 1), first
assert len(os.listdir("/proc/self/fd")) < 200
"""

FOLLOWS = """
import subprocess, time
program = Path(sys.executable).parent / "cordwood"
command = [program, "cat", "--follow", "--columns", "topic,partition,offset", path]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
    first = {follower.stdout.readline() for _ in range(rows)}
    assert len(first) == rows
    for partition in [119, 3, 70]:
        with (path / f"t-{partition}" / f"{0:020d}.log").open("ab") as log:
            log.write(Path(sys.argv[4]).read_bytes())
        line = follower.stdout.readline()
        assert f'"partition": {partition}' in line and '"offset": 2' in line, (line, follower.poll())
    assert follower.poll() is None
    follower.terminate()
    assert "Too many open files" not in follower.stderr.read()
"""


def data_directory(parent: Path, partitions: int) -> Path:
    """Each partition has a record, and one of a transaction that is open."""
    batches = [batch(0, [Rec(b"v")]), batch(1, [Rec(b"w")], attributes=TRANSACTIONAL, producer_id=5, producer_epoch=0)]
    for number in range(partitions):
        write_partition(parent / "data" / f"t-{number}", [(0, batches)])
    return parent / "data"


def test_a_data_directory_with_more_partitions_than_descriptors_is_scanned(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = data_directory(tmp_path, PARTITIONS)
    run(write_script(tmp_path, SCRIPT + SCANS), path, 2 * PARTITIONS, 256, env=script_environment)


def test_more_partitions_than_descriptors_are_followed(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path = data_directory(tmp_path, FOLLOWED)
    third = tmp_path / "batch"
    third.write_bytes(batch(2, [Rec(b"x")]))
    run(write_script(tmp_path, SCRIPT + FOLLOWS), path, 2 * FOLLOWED, 64, third, env=script_environment)


VERIFIES = """
found = cw.verify(path)
codes = {finding.code for finding in found.findings}
missing = {"index_missing", "leader_epochs_missing", "time_index_missing"}
assert (found.partitions, codes) == (rows // 2, missing), (found.partitions, codes)
"""


def test_more_partitions_than_descriptors_are_verified(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path = data_directory(tmp_path, PARTITIONS)
    run(write_script(tmp_path, SCRIPT + VERIFIES), path, 2 * PARTITIONS, 64, env=script_environment)
