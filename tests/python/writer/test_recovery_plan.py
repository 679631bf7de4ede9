"""`LogWriter.plan_recovery` changes nothing, states what an opening would do, and makes the same checks."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import corpus
import pytest
from batches import Rec, batch, crc32c, write_partition
from commands import cordwood
from core.test_read_only import MUTATING, SHARED_WRITE
from scripts import BECOME_NOBODY, Command, run, write_script

import cordwood as cw

Prepare = Callable[[Path, ExitStack], None]


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Names, modes, times and contents of everything."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def written(path: Path) -> None:
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=300)) as writer:
        for number in range(20):
            writer.append(b"x" * 50, timestamp=1_700_000_000_000 + number)


def command(*arguments: object) -> tuple[int, str, str]:
    done = cordwood(*arguments, COLUMNS="400")
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """An exclusive lock like that of a broker's JVM, in a separate process."""
    script = (
        "import fcntl, struct, sys; f = open(sys.argv[1], 'a'); "
        "fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()


def other_writer(path: Path, stack: ExitStack) -> None:
    written(path)
    stack.enter_context(cw.LogWriter(path))


def broker(path: Path, stack: ExitStack) -> None:
    written(path)
    (path.parent / "meta.properties").write_bytes(b"version=1\nbroker.id=1\n")
    stack.enter_context(lock(path.parent / ".lock"))


def damaged(path: Path, _: ExitStack) -> None:
    written(path)
    first = min(path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    (path / ".cordwood.clean").unlink()
    (path / ".cordwood.checkpoint").unlink()


def truncated(path: Path, _: ExitStack) -> None:
    written(path)
    last = max(path.glob("*.log"))
    os.truncate(last, 0)


def segment_gone(path: Path, _: ExitStack) -> None:
    written(path)
    sorted(path.glob("*.log"))[2].unlink()


def compacting(path: Path, _: ExitStack) -> None:
    written(path)
    (path / "00000000000000000000.log.swap").write_bytes(b"")


def checkpoint(path: Path, _: ExitStack) -> None:
    written(path)
    (path / ".cordwood.checkpoint").write_bytes(b"garbage")


def topic_id(path: Path, _: ExitStack) -> None:
    written(path)
    (path / "partition.metadata").write_bytes(b"garbage")


def strange_name(path: Path, _: ExitStack) -> None:
    (path.parent / "meta.properties").write_bytes(b"version=1\nbroker.id=1\n")
    path.rename(path.parent / "strange")


def no_directory(path: Path, _: ExitStack) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"a file")


REFUSED: list[Prepare] = [
    other_writer, broker, damaged, truncated, segment_gone, compacting, checkpoint, topic_id, no_directory,
]  # fmt: skip


def failure(call: Callable[[], object]) -> tuple[type, str, str | None]:
    with pytest.raises((cw.CordwoodError, OSError)) as raised:
        call()
    # the advice for a path that is not a directory depends on whether a directory would be created
    facts = str(raised.value).partition("; ")[0]
    return type(raised.value), facts, getattr(raised.value, "code", None)


def outcome(call: Callable[[], object]) -> tuple[type, str] | None:
    try:
        call()
    except cw.CordwoodError as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("prepare", REFUSED, ids=lambda prepare: prepare.__name__)
def test_a_plan_is_refused_with_the_same_error_as_an_opening(tmp_path: Path, prepare: Prepare) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    with ExitStack() as stack:
        prepare(path, stack)
        before = state(tmp_path)
        found = failure(lambda: cw.LogWriter.plan_recovery(path))
        assert state(tmp_path) == before
        assert found == failure(lambda: cw.LogWriter(path))


def test_an_invalid_name_is_refused_with_the_same_error(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    strange_name(path, ExitStack())
    strange = tmp_path / "strange"
    assert failure(lambda: cw.LogWriter.plan_recovery(strange)) == failure(lambda: cw.LogWriter(strange))


def test_settings_that_an_opening_refuses_are_refused_by_a_plan(tmp_path: Path) -> None:
    written(tmp_path / "orders-0")
    config = cw.LogConfig(segment_index_bytes=8)
    check = failure(lambda: cw.LogWriter.plan_recovery(tmp_path / "orders-0", config=config))
    assert check == failure(lambda: cw.LogWriter(tmp_path / "orders-0", config=config))
    assert check[0] is cw.ConfigError


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_the_plan_of_every_golden_log_agrees_with_the_opening_of_a_copy(part: corpus.Partition, tmp_path: Path) -> None:
    copy = tmp_path / part.name
    shutil.copytree(part.path, copy)
    for index in copy.glob("*index"):
        index.unlink()
    before = state(tmp_path)
    told = outcome(lambda: cw.LogWriter.plan_recovery(copy))
    assert state(tmp_path) == before
    assert told == outcome(lambda: cw.LogWriter(copy).close())


def torn(path: Path) -> None:
    """A log of a killed process, with half a batch at its end and one index missing."""
    written(path)
    (path / ".cordwood.clean").unlink()
    last = max(path.glob("*.log"))
    with last.open("ab") as file:
        file.write(b"\0\0\0\0\0\0\0\x14half a batch")
    last.with_suffix(".timeindex").unlink()


def test_an_opening_does_what_the_plan_states(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "orders-0"
    torn(path)
    last = max(path.glob("*.log"))
    size, tail = last.stat().st_size, b"\0\0\0\0\0\0\0\x14half a batch"
    before = state(tmp_path)
    plan = cw.LogWriter.plan_recovery(path)
    assert state(tmp_path) == before
    assert (plan.is_clean, plan.closed_cleanly, plan.path) == (False, False, str(path))
    assert (plan.log_start_offset, plan.log_end_offset) == (0, 20)
    assert plan.segments == [int(log.stem) for log in sorted(path.glob("*.log"))]
    (cut,) = plan.cuts
    assert (cut.file, cut.start_position, cut.end_position) == (str(last), size - len(tail), size)
    assert (cut.size, cut.start_offset, cut.end_offset) == (len(tail), 20, None)
    assert [(index.file, index.reason) for index in plan.rebuilt_indexes] == [
        (str(last.with_suffix(".timeindex")), "missing")
    ]
    assert (plan.file_changes, plan.splits, plan.rewrites_leader_epochs) == ([], [], False)
    with caplog.at_level(logging.INFO, logger="cordwood"), cw.LogWriter(path) as writer:
        assert writer.recovery == plan
        assert hash(writer.recovery) == hash(plan)
    assert cut.quarantine is not None
    assert Path(cut.quarantine).read_bytes() == tail
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", str(cut)),
        ("INFO", str(plan.rebuilt_indexes[0])),
    ]
    caplog.clear()
    again = cw.LogWriter.plan_recovery(path)
    assert (again.is_clean, again.closed_cleanly) == (True, True)
    with caplog.at_level(logging.INFO, logger="cordwood"), cw.LogWriter(path) as writer:
        assert writer.recovery is None
    assert not caplog.records


def test_a_plan_names_the_files_that_it_deletes_and_renames(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    written(path)
    first = min(path.glob("*.log"))
    shutil.copy(first, f"{first}.swap")
    (path / f"{max(path.glob('*.log')).name}.tmp").write_bytes(b"staged")
    plan = cw.LogWriter.plan_recovery(path)
    changes = {Path(change.file).name: (change.new_file, change.reason) for change in plan.file_changes}
    assert changes[f"{first.name}.swap"] == (str(first), "committed")
    assert changes[first.name] == (None, "replaced")
    assert [reason for _, reason in changes.values()].count("staged") == 1
    assert repr(plan.file_changes[0]).startswith("FileChange(file=")
    assert repr(plan).startswith("RecoveryPlan(path=")


def test_the_command_shows_the_plan_and_with_yes_recovers(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    path = tmp_path / "orders-0"
    torn(path)
    before = state(tmp_path)
    plan = cw.LogWriter.plan_recovery(path)
    code, shown, _ = command("recover", path)
    assert code == 0
    assert state(tmp_path) == before
    for words in ("cut 20 bytes", "index rebuilt", "kept in", "ends at offset 20", "nothing was written"):
        assert words in shown
    document = json.loads(command("recover", path, "--json")[1])
    assert state(tmp_path) == before
    assert document["dry_run"] is True
    done = json.loads(command("recover", path, "--json", "--yes")[1])
    assert done == document | {"dry_run": False}
    (cut,) = done["cuts"]
    assert Path(cut["quarantine"]).exists()
    assert (cut["start_position"], cut["reason"]) == (plan.cuts[0].start_position, plan.cuts[0].reason)
    code, shown, _ = command("recover", path)
    assert code == 0
    assert "nothing to recover" in shown
    assert command("recover", tmp_path / "no-0")[0] == 2


CHANGING = re.compile(r"O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE|F_SETLK|F_OFD_SETLK")


@pytest.mark.strace
def test_no_system_call_of_a_plan_changes_the_directory(tmp_path: Path, script_environment: dict[str, str]) -> None:
    if shutil.which("strace") is None:
        assert "CI" not in os.environ, "strace is missing, and here it must be there"
        pytest.skip("strace is not installed")
    path = tmp_path / "data" / "orders-0"
    path.parent.mkdir()
    torn(path)
    text = "import sys\nimport cordwood as cw\nprint(cw.LogWriter.plan_recovery(sys.argv[1]).is_clean)\n"
    script, output = write_script(tmp_path, text), tmp_path / "trace.txt"
    tracer = ("strace", "-f", "-y", "-s", "300", "-e", "trace=%file,%desc,mmap,msync,fcntl", "-o", str(output))
    assert run(script, path, env=script_environment, before=tracer).stdout.split() == ["False"]
    trace = [line for line in output.read_text(errors="replace").splitlines() if str(path) in line]
    assert len(trace) > 20
    assert [line for line in trace if MUTATING.search(line) or SHARED_WRITE.search(line) or CHANGING.search(line)] == []


def test_a_plan_checks_the_lock_without_acquiring_it(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    written(path)
    cw.LogWriter.plan_recovery(path)
    with (path / ".cordwood.lock").open("r+b") as file:
        # this would fail if another process had an OFD lock
        fcntl.fcntl(file, 37, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        assert failure(lambda: cw.LogWriter.plan_recovery(path))[0] is cw.LockedError
    with cw.LogWriter(path):
        pass


def test_a_plan_needs_no_write_permission_and_an_opening_does(script_environment: dict[str, str]) -> None:
    """As an unprivileged user; the error is that of the system."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o755)
    written(top / "orders-0")
    script = write_script(
        top,
        "import sys\nimport cordwood as cw\n"
        "try:\n    cw.Log('/nowhere')\nexcept OSError:\n    pass\n"
        # modules that are imported on first use, which the user may not be able to read
        "cw.LogConfig()\n"
        + BECOME_NOBODY
        + "log = cw.Log(sys.argv[1])\n"
        + "print(len(cw.plan_retention(log, cw.LogConfig(retention_ms=1)).segments) > 1)\n"
        + "print(cw.plan_compaction(log, cw.LogConfig(cleanup_policy='compact')).is_due)\n"
        + "for call in (cw.LogWriter.plan_recovery, cw.LogWriter):\n"
        + "    try:\n        print(call(sys.argv[1]).log_end_offset)\n"
        + "    except PermissionError as error:\n        print('denied', sys.argv[1] in error.filename)\n",
    )
    try:
        printed = run(script, top / "orders-0", env=script_environment).stdout.splitlines()
        assert printed == ["True", "True", "20", "denied True"]
    finally:
        shutil.rmtree(top)


@pytest.mark.parametrize("more", [(), ("--yes",)])
def test_recover_creates_no_log_in_an_empty_directory(command: Command, tmp_path: Path, more: tuple[str, ...]) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    code, _, error = command("recover", folder, *more)
    assert (code, "a directory without a segment" in error) == (1, True), error
    assert list(folder.iterdir()) == []


def test_recover_does_not_change_a_clean_log(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"a")
    before = state(path)
    code, shown, error = command("recover", path, "--yes")
    assert (code, "nothing to recover" in shown, error) == (0, True, "")
    assert state(path) == before


@pytest.mark.parametrize("name", ["truncate", "recover"])
def test_a_command_that_recovers_a_log_warns_of_what_was_cut_once(command: Command, tmp_path: Path, name: str) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"a")
    with next(path.glob("*.log")).open("ab") as log:
        log.write(b"torn write")
    (path / ".cordwood.clean").unlink()
    arguments = ("recover", path, "--yes") if name == "recover" else ("truncate", path, "--to", 1, "--yes")
    code, shown, error = command(*arguments)
    assert code == 0
    assert (shown + error).count("cut ") == 1
    assert all(line.startswith("warning: ") for line in error.splitlines())


def test_an_index_without_a_log_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / f"{0:020d}.index").write_bytes(bytes(8))
    [change] = cw.LogWriter.plan_recovery(path).file_changes
    assert (Path(change.file).name, change.new_file, change.reason) == (f"{0:020d}.index", None, "orphaned")
    with cw.LogWriter(path) as writer:
        assert writer.recovery is not None
        assert writer.recovery.file_changes == [change]


def opened_as_planned(path: Path) -> cw.RecoveryPlan:
    """The plan of an opening, which then does what the plan states."""
    plan = cw.LogWriter.plan_recovery(path)
    with cw.LogWriter(path) as writer:
        assert writer.recovery == plan
        assert (writer.log_start_offset, writer.log_end_offset) == (plan.log_start_offset, plan.log_end_offset)
    for change in plan.file_changes:
        if change.new_file is not None:
            assert not Path(change.file).exists()
            assert Path(change.new_file).exists()
    assert [int(log.stem) for log in sorted(path.glob("*.log"))] == plan.segments
    assert cw.LogWriter.plan_recovery(path).is_clean
    return plan


def test_a_plan_names_the_parts_of_a_segment_that_is_split(tmp_path: Path) -> None:
    far = 2**31 + 5
    raws = [batch(0, [Rec(value=b"a")]), batch(far, [Rec(value=b"b"), Rec(value=b"c")])]
    path = write_partition(tmp_path / "orders-0", [(0, raws)])
    plan = opened_as_planned(path)
    [split] = plan.splits
    assert (split.file, split.base_offsets) == (str(path / f"{0:020d}.log"), [0, far])
    assert plan.segments == [0, far]
    assert [file.read_bytes() for file in sorted(path.glob("*.log"))] == raws
    assert cw.Log(path).scan().to_arrow()["offset"].to_pylist() == [0, far, far + 1]


def test_a_plan_completes_the_removal_of_all_records(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    written(path)
    lines = "0\nended-at 20\nlog-start-offset 30\nrecovery-point 30\nstarting-at 30\n"
    checkpoint = f"{lines}crc32c {crc32c(lines.encode()):08x}\n"
    (path / ".cordwood.checkpoint").write_text(checkpoint)
    (path / ".cordwood.clean").unlink()
    segments = {str(file) for file in path.iterdir() if file.suffix in {".log", ".index", ".timeindex"}}
    plan = opened_as_planned(path)
    assert (plan.log_start_offset, plan.log_end_offset, plan.segments) == (30, 30, [30])
    assert {change.file for change in plan.file_changes} == segments
    assert {(change.new_file, change.reason) for change in plan.file_changes} == {(None, "emptied")}
    assert (plan.cuts, plan.splits) == ([], [])


def test_a_plan_keeps_what_a_replacement_covers_only_in_part(tmp_path: Path) -> None:
    """A `.swap` file of compaction ends inside the second segment, whose other records no file would have."""
    raws = [batch(offset, [Rec(value=b"x")]) for offset in range(6)]
    path = write_partition(tmp_path / "orders-0", [(0, raws[:2]), (2, raws[2:4]), (4, raws[4:])])
    (path / f"{0:020d}.log.swap").write_bytes(b"".join(raws[:3]))
    plan = opened_as_planned(path)
    [cut] = plan.cuts
    assert (cut.file, cut.start_offset) == (str(path / f"{2:020d}.log"), 2)
    assert cut.quarantine is not None
    assert Path(cut.quarantine).read_bytes() == b"".join(raws[2:4])
    assert cw.Log(path).scan().to_arrow()["offset"].to_pylist() == [0, 1, 2, 4, 5]


def test_a_plan_names_no_file_that_stays(tmp_path: Path) -> None:
    """Kafka's names have 20 digits; an opening leaves other files alone."""
    path = tmp_path / "orders-0"
    path.mkdir()
    for name in (f"{0:021d}.index", f"{0:020d}.snapshot"):
        (path / name).write_bytes(bytes(8))
    assert cw.LogWriter.plan_recovery(path).file_changes == []
    cw.LogWriter(path).close()
    assert {file.name for file in path.iterdir()} >= {f"{0:021d}.index"}


def test_a_plan_names_a_link_that_an_opening_removes(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    index = path / f"{0:020d}.index"
    index.symlink_to(tmp_path / "elsewhere")
    [change] = cw.LogWriter.plan_recovery(path).file_changes
    assert (change.reason, Path(change.file)) == ("orphaned", index)
    cw.LogWriter(path).close()
    assert not index.is_symlink()
