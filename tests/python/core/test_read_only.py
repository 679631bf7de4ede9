"""Reading writes nothing, needs only read permission, and treats all files other than the log as hints."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import Rec, batch, name
from corpus import Partition
from scripts import BECOME_NOBODY, run, write_script
from tables import expected_rows, first_difference, offsets, rows

import cordwood as cw

USE_EVERYTHING = """
import sys
import cordwood as cw
import pyarrow as pa

def use(path):
    log = cw.Log(path)
    count = log.scan().to_arrow().num_rows
    log.scan(isolation_level="read_committed", include_control=True, threads=2).to_arrow()
    log.batches().to_arrow()
    for record in log.records(end_offset=log.log_start_offset + 5):
        record.value
    log.locate(log.log_start_offset + 3)
    log.locate_many([log.log_start_offset, log.log_end_offset - 1])
    log.offset_for_time(0)
    log.offsets_for_times([0, 1_700_000_000_500, 2**62])
    for split in log.plan(4096):
        log.scan(split=split, columns=["offset"]).to_arrow()
    for segment in log.segments:
        segment.largest_timestamp
        for index in (segment.offset_index, segment.time_index, segment.transaction_index):
            if index is not None:
                list(index)
                index.sanity_check()
    log.refresh().scan(columns=["offset"]).to_arrow()
    str(log.warnings), log.size, log.last_stable_offset
    cw.LogDir(str(path).rpartition("/")[0]).scan(columns=["offset"]).to_arrow()
    return count
"""


def fingerprint(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every file's bytes, mode and times (not the time of the last access) below a folder."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        info = path.stat()
        content = (
            hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else sorted(entry.name for entry in path.iterdir())
        )
        found[str(path.relative_to(folder))] = (
            info.st_mode,
            info.st_size,
            info.st_mtime_ns,
            info.st_ctime_ns,
            info.st_ino,
            content,
        )
    return found


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A data directory with one partition that is readable and not writable for everyone."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o755)
    data = top / "data"
    shutil.copytree(corpus.partition("11-transactions").path, data / "payments-0")
    for path in [*data.rglob("*"), data]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield data / "payments-0"
    for path in [data, *data.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(top)


@pytest.mark.parametrize("case", ["11-transactions", "14-killed", "17-upgraded", "12-compacted-empty"])
def test_using_the_whole_api_changes_nothing_on_disk(copied: Any, case: str) -> None:
    part = corpus.partition(case)
    path = copied(part.path)
    for index in [*path.glob("*.timeindex")][:1]:
        index.unlink()
    before = fingerprint(path.parent)
    scope: dict[str, Any] = {}
    exec(USE_EVERYTHING, scope)  # noqa: S102 (the same lines run below in a process of their own)
    assert scope["use"](str(path)) == len(corpus.visible(part))
    assert fingerprint(path.parent) == before


def test_read_permission_is_enough(read_only: Path, script_environment: dict[str, str]) -> None:
    """Mode 0555 with files of 0444, as a user without privileges. A first use loads all modules."""
    text = USE_EVERYTHING + "\nuse(sys.argv[1])\n" + BECOME_NOBODY + "\nprint(use(sys.argv[1]))\n"
    script = write_script(read_only.parent.parent, text)
    before = fingerprint(read_only.parent)
    assert run(script, read_only, env=script_environment).stdout.split() == ["889"]
    assert fingerprint(read_only.parent) == before


MUTATING = re.compile(
    r"^(?:\d+\s+)?(?:creat|unlink|unlinkat|rename|renameat|renameat2|mkdir|mkdirat|rmdir|mknod|mknodat|truncate|ftruncate|"
    r"fallocate|link|linkat|symlink|symlinkat|chmod|fchmod|fchmodat|fchmodat2|chown|fchown|lchown|fchownat|utime|utimes|"
    r"utimensat|futimesat|setxattr|fsetxattr|lsetxattr|write|pwrite64|writev|pwritev|pwritev2|copy_file_range|sendfile|"
    r"splice|flock|msync|sync_file_range|fsync|fdatasync)\("
)
WRITABLE = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE|F_SETLK|F_SETLKW|F_OFD_SETLK")
SHARED_WRITE = re.compile(r"mmap\(.*PROT_WRITE.*MAP_SHARED")


def mutations(trace: str, folder: str) -> list[str]:
    """Lines of a trace that could change something below `folder`."""
    return [
        line
        for line in trace.splitlines()
        if folder in line and (MUTATING.search(line) or WRITABLE.search(line) or SHARED_WRITE.search(line))
    ]


@pytest.mark.strace
def test_no_system_call_could_change_the_directory(read_only: Path, script_environment: dict[str, str]) -> None:
    if shutil.which("strace") is None:
        assert "CI" not in os.environ, "strace is missing, and here it must be there"
        pytest.skip("strace is not installed")
    text = USE_EVERYTHING + "\nuse(sys.argv[1])\n" + BECOME_NOBODY + "\nprint(use(sys.argv[1]))\n"
    script = write_script(read_only.parent.parent, text)
    output = read_only.parent.parent / "trace.txt"
    calls = "%file,%desc,mmap,msync,fcntl,flock"
    tracer = ("strace", "-f", "-y", "-s", "300", "-e", f"trace={calls}", "-o", str(output))
    run(script, read_only, env=script_environment, before=tracer)
    trace = output.read_text(errors="replace")
    assert trace.count(str(read_only)) > 20
    assert mutations(trace, str(read_only.parent)) == []


def test_the_filter_of_mutating_calls_finds_them() -> None:
    """Without this check, the test above might never fail."""
    seen = mutations(
        'openat(AT_FDCWD, "/d/p-0/x", O_RDWR|O_CREAT) = 3\n'
        "12 ftruncate(3</d/p-0/x>, 8) = 0\n"
        "12 mmap(NULL, 8, PROT_READ|PROT_WRITE, MAP_SHARED, 3</d/p-0/x>, 0) = 0x7f\n"
        "fcntl(3</d/.lock>, F_OFD_SETLK, {l_type=F_RDLCK}) = 0\n"
        'openat(AT_FDCWD, "/d/p-0/x", O_RDONLY|O_CLOEXEC) = 3\n'
        "mmap(NULL, 8, PROT_READ, MAP_SHARED, 3</d/p-0/x>, 0) = 0x7f\n"
        "fcntl(3</d/.lock>, F_OFD_GETLK, {l_type=F_UNLCK}) = 0\n"
        'openat(AT_FDCWD, "/elsewhere", O_RDWR|O_CREAT) = 3\n',
        "/d",
    )
    assert len(seen) == 4


HINT_KINDS = {
    "offset": "*.index",
    "time": "*.timeindex",
    "transaction": "*.txnindex",
    "snapshot": "*.snapshot",
    "epochs": "leader-epoch-checkpoint",
    "metadata": "partition.metadata",
}


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "garbage":
        path.write_bytes(hashlib.sha512(path.name.encode()).digest() * 9)
    elif how == "truncated":
        path.write_bytes(data[: len(data) * 2 // 3 - 1] if len(data) > 3 else b"")
    elif how == "zeros":
        path.write_bytes(data + bytes(4096))
    elif how == "of another":
        path.write_bytes((path.parent / min(p.name for p in path.parent.glob("*" + path.suffix))).read_bytes())


def same_answers(log: cw.Log, part: Partition) -> None:
    """Records, committed records, positions and times as in the undamaged partition."""
    assert first_difference(rows(log.scan().to_arrow()), expected_rows(corpus.visible(part))) == ""
    committed = offsets(log.scan(isolation_level="read_committed", columns=["offset"]).to_arrow())
    assert committed == [r.offset for r in corpus.committed(part, part.opened["logEndOffset"])]
    everything = corpus.visible(part, control=True)
    for record in everything[::13]:
        b = record.batch
        place = log.locate(record.offset)
        assert (place.segment_base_offset, place.position, place.size) == (b["segment"], b["position"], b["size"])
        wanted = corpus.first_at_or_after(everything, record.timestamp) if record.timestamp >= 0 else None
        if wanted is not None:
            found = log.offset_for_time(record.timestamp)
            assert (found.timestamp, found.offset) == (wanted.timestamp, wanted.offset)
    assert log.log_end_offset == part.opened["logEndOffset"]
    assert log.last_stable_offset == part.opened["lastStableOffset"]


@pytest.mark.parametrize("case", ["11-transactions", "17-upgraded", "21-replica-leader"])
@pytest.mark.parametrize("how", ["missing", "empty", "garbage", "truncated", "zeros", "of another"])
@pytest.mark.parametrize("kind", HINT_KINDS)
def test_a_damaged_hint_changes_no_result(copied: Any, kind: str, how: str, case: str) -> None:
    part = corpus.partition(case)
    path = copied(part.path)
    for file in sorted(path.glob(HINT_KINDS[kind]), reverse=True):
        spoil(file, how)
    same_answers(cw.Log(path), part)


@pytest.mark.parametrize(
    ("offset", "time", "transaction"),
    list(itertools.product(["whole", "missing", "empty", "garbage", "truncated"], repeat=3)),
)
def test_all_combinations_of_damaged_indexes_give_the_same_results(
    copied: Any, offset: str, time: str, transaction: str
) -> None:
    part = corpus.partition("11-transactions")
    path = copied(part.path)
    for kind, how in (("offset", offset), ("time", time), ("transaction", transaction)):
        for file in sorted(path.glob(HINT_KINDS[kind]), reverse=True):
            spoil(file, how)
    same_answers(cw.Log(path), part)


def test_foreign_files_and_folders_are_ignored(copied: Any) -> None:
    part = corpus.partition("01-small")
    path = copied(part.path)
    for other in (
        "README",
        "notes.log",
        "7.log",
        "00000000000000000007.log.bak",
        "x.index",
        "-1.log",
        ".log",
        "1e3.log",
    ):
        (path / other).write_bytes(b"foreign")
    (path / "quarantine").mkdir()
    (path / "00000000000000000400.log.deleted").write_bytes(b"gone")
    before = fingerprint(path)
    same_answers(cw.Log(path), part)
    assert fingerprint(path) == before


@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_a_directory_may_be_renamed_while_open(copied: Any, io: str) -> None:
    """As Kafka does with a partition before deleting it."""
    part = corpus.partition("20-many-segments")
    path = copied(part.path)
    log = cw.Log(path, io=io)
    log.locate(3)
    path.rename(path.with_name("minutes-0.0123456789abcdef0123456789abcdef-delete"))
    assert rows(log.scan().to_arrow()) == expected_rows(corpus.visible(part))
    assert log.locate(200).segment_base_offset <= 200


def grow(path: Path, base: int, raws: list[bytes]) -> None:
    with (path / name(base)).open("ab") as file:
        file.write(b"".join(raws))


def test_refresh_finds_appended_records_and_the_old_log_does_not(copied: Any) -> None:
    part = corpus.partition("01-small")
    path = copied(part.path)
    log = cw.Log(path)
    grow(path, 285, [batch(370, [Rec(value=b"a"), Rec(value=b"b")]), batch(372, [Rec(value=b"c")])])
    assert log.log_end_offset == 370
    assert log.scan(columns=["offset"]).to_arrow().num_rows == 370
    fresh = log.refresh()
    assert fresh.log_end_offset == 373
    assert [r.value for r in fresh.records(start_offset=370)] == [b"a", b"b", b"c"]
    assert fresh.locate(371).batch_base_offset == 370
    assert log.log_end_offset == 370


def test_refresh_finds_a_new_segment(copied: Any) -> None:
    path = copied(corpus.partition("01-small").path)
    log = cw.Log(path)
    grow(path, 370, [batch(370, [Rec(value=b"new", timestamp=1_800_000_000_000)])])
    fresh = log.refresh()
    assert [s.base_offset for s in fresh.segments] == [0, 96, 189, 285, 370]
    assert [r.value for r in fresh.records(start_offset=370)] == [b"new"]
    assert fresh.offset_for_time(1_790_000_000_000).offset == 370
    assert len(log.segments) == 4


def test_refresh_detects_a_removed_segment(copied: Any) -> None:
    part = corpus.partition("01-small")
    path = copied(part.path)
    log = cw.Log(path)
    for file in path.glob(name(0, ".*")):
        file.rename(file.with_name(file.name + ".deleted"))
    fresh = log.refresh()
    assert fresh.log_start_offset == 96
    assert rows(fresh.scan().to_arrow()) == expected_rows(r for r in corpus.visible(part) if r.offset >= 96)
    with pytest.raises(cw.OffsetOutOfRangeError):
        fresh.locate(95)


def test_refresh_of_an_unchanged_directory_is_the_same_log(copied: Any) -> None:
    part = corpus.partition("14-killed-preallocated-log")
    log = cw.Log(copied(part.path))
    fresh = log.refresh()
    assert (fresh.log_start_offset, fresh.log_end_offset, fresh.size) == (0, 500, log.size)
    assert rows(fresh.scan().to_arrow()) == expected_rows(corpus.visible(part))


def test_a_file_shortened_by_another_process_is_an_error(copied: Any) -> None:
    """With reads by position; a mapping of a shortened file would kill the process."""
    path = copied(corpus.partition("01-plain").path)
    log = cw.Log(path, io="pread")
    os.truncate(path / name(0), 3000)
    with pytest.raises(cw.CordwoodError):
        log.scan().to_arrow()
    (path / name(400)).unlink()
    with pytest.raises((cw.CordwoodError, OSError)):
        cw.Log(path, io="pread").scan(start_offset=0).to_arrow()
