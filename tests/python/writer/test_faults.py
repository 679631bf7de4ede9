"""System calls that fail, or at which the process is killed, with strace: acknowledged records are kept."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path

import pytest
from scripts import run, write_script

import cordwood as cw
from writer.appending import APPENDER, check_recovered, start

KILLS = int(os.environ.get("CORDWOOD_KILLS", "10"))
# system calls that change files, and the maximum number of calls before the process is killed on entering one
CALLS = [
    ("pwrite64", 300),
    ("fdatasync", 300),
    ("fsync", 30),
    ("ftruncate", 15),
    ("fallocate", 15),
    ("renameat", 15),
    ("unlinkat", 30),
    ("mkdirat", 2),
]

pytestmark = pytest.mark.strace


@pytest.fixture(autouse=True)
def _strace() -> None:
    if shutil.which("strace") is None:
        assert "CI" not in os.environ, "strace is missing, and here it must be there"
        pytest.skip("strace is not installed")


def tracer(injections: dict[str, str]) -> tuple[str, ...]:
    injected = [word for call, how in injections.items() for word in ("-e", f"inject={call}:{how}")]
    return ("strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={','.join(injections)}", *injected)


@pytest.mark.parametrize("kill", range(KILLS))
def test_acknowledged_records_survive_a_kill_at_any_system_call(
    tmp_path: Path, kill: int, script_environment: dict[str, str]
) -> None:
    """The process is killed on entering its nth write (or sync, …): during creation, appends, rolls or recovery."""
    choose = random.Random(kill)
    path = tmp_path / "orders-0"
    script = write_script(tmp_path, APPENDER)
    told = b""
    for generation in range(2):
        flush = choose.choice(["always", cw.FlushMode.group(ms=0), "none", cw.FlushMode.interval(messages=50)])
        call, most = choose.choice(CALLS)
        how = {"flush": flush, "codec": "producer", "generation": generation, "threads": 1}
        nth = choose.randrange(1, most)
        # if this call is not made often enough, the process is killed at the write that prints the
        # acknowledged offset
        before = tracer({call: f"signal=SIGKILL:when={nth}", "write": "signal=SIGKILL:when=300"})
        with start(script, path, **how, env=script_environment, before=before) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            told += process.stdout.read()
            assert process.stderr.read() == b""
        assert process.returncode != 0
        check_recovered(path, told)


FAULTY = """
import errno, sys
import cordwood as cw

writer = cw.LogWriter(sys.argv[1], config=cw.LogConfig(segment_bytes=1500))
for number in range(100):
    try:
        print("told", number, writer.append(b"%d/" % number + b"x" * 100).first_offset)
    except cw.PoisonedError:
        print("poisoned", number)
    except OSError as error:
        print("failed", number, errno.errorcode[error.errno])
try:
    writer.close()
    print("closed")
except (cw.PoisonedError, OSError) as error:
    print("not closed", type(error).__name__)
"""


FAULTS = [
    ("pwrite64", "ENOSPC", (3, 7, 8, 9, 30)),
    ("pwrite64", "EIO", (8, 9, 33)),
    ("fdatasync", "EIO", (3, 7, 8, 9, 30)),
    ("fsync", "EIO", (2, 5, 9, 12)),
    # the third only frees blocks, and may fail
    ("ftruncate", "EIO", (2, 4, 5, 6, 7)),
    ("renameat", "EIO", (1, 3, 4, 6)),
]


@pytest.mark.parametrize(("call", "error", "nth"), [(c, e, n) for c, e, numbers in FAULTS for n in numbers])
def test_a_call_that_fails_is_an_error_and_loses_nothing(
    tmp_path: Path, call: str, error: str, nth: int, script_environment: dict[str, str]
) -> None:
    path = tmp_path / "orders-0"
    script = write_script(tmp_path, FAULTY)
    try:
        done = run(script, path, env=script_environment, before=tracer({call: f"error={error}:when={nth}"}))
    except AssertionError as opening:
        # the call failed during the opening
        assert "OSError" in str(opening)  # noqa: PT017
        lines = []
    else:
        lines = [line.split() for line in done.stdout.splitlines()]
    said: dict[str, list[list[str]]] = {}
    for word, *rest in lines:
        said.setdefault(word, []).append(rest)
    failed = {int(number) for number, _ in said.get("failed", [])}
    assert failed or not lines or "not" in said, "nothing failed"
    assert all(name == error for _, name in said.get("failed", []))
    assert len(failed) <= 1
    if said.get("poisoned"):
        # the failure is the last result, and all later calls were refused
        first = min(int(number) for (number,) in said["poisoned"])
        assert [int(number) for (number,) in said["poisoned"]] == list(range(first, 100))
        assert "closed" not in said
    with cw.LogWriter(path) as writer:
        found = {
            int(record.value.split(b"/")[0]): record.offset for record in writer.reader().records() if record.value
        }
        told = {int(number): int(offset) for number, offset in said.get("told", [])}
        assert told.items() <= found.items()
        # the log may contain the failed append, but not the refused ones
        assert found.keys() - told.keys() <= failed
        assert sorted(found.values()) == list(range(len(found)))
        if not said.get("poisoned"):
            assert found.keys() == told.keys()


# each task awaits five appends; a task that counts runs beside them
AWAITING = """
import asyncio, os, sys
import cordwood as cw

async def main():
    turns = 0
    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1
    async def appends():
        for _ in range(5):
            assert (await writer.append_async(b"x" * 100)).durable
    counting = asyncio.create_task(count())
    await asyncio.gather(*(appends() for _ in range(1000)))
    counting.cancel()
    return turns

with cw.LogWriter(sys.argv[1]) as writer:
    writer.append(b"before")
    os.write(1, b"opened\\n")
    turns = asyncio.run(main())
    os.write(1, b"appended\\n")
    assert writer.log_end_offset == 5001
print(turns)
"""


def test_a_thousand_tasks_share_flushes_that_do_not_block_the_event_loop(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    script, trace = write_script(tmp_path, AWAITING), tmp_path / "trace"
    calls = "trace=fdatasync,fsync,write"
    slow = "inject=fdatasync:delay_enter=100000"
    before = ("strace", "-f", "-qqq", "-o", str(trace), "-e", calls, "-e", slow)
    *_, turns = run(script, tmp_path / "orders-0", env=script_environment, before=before).stdout.split()
    appending = trace.read_text().partition('"opened')[2].partition('"appended')[0]
    syncs = len(re.findall(r"f(?:data)?sync\(", appending))
    # as many for all tasks as for one
    assert 5 <= syncs <= 7
    # the event loop ran while each of them lasted
    assert int(turns) >= 10 * syncs


AWAITED_FAILURE = """
import asyncio, sys
import cordwood as cw

async def main():
    failed = []
    while not failed:
        done = await asyncio.gather(*(writer.append_async(b"x") for _ in range(50)), return_exceptions=True)
        failed = [type(one).__name__ for one in done if isinstance(one, Exception)]
    print(*failed)
    try:
        await writer.append_async(b"x")
    except cw.PoisonedError:
        print("poisoned")

writer = cw.LogWriter(sys.argv[1])
asyncio.run(main())
"""


def test_a_flush_that_fails_is_an_error_of_all_tasks_that_wait_for_it(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    script = write_script(tmp_path, AWAITED_FAILURE)
    # counted for each thread: the one that opens the log makes fewer of these calls, and one that flushes
    # makes as many
    before = tracer({"fdatasync": "error=EIO:when=10+"})
    results, last = run(script, tmp_path / "orders-0", env=script_environment, before=before).stdout.splitlines()
    assert sorted(results.split()) == ["OSError"] + ["PoisonedError"] * 49
    assert last == "poisoned"


FULL = """
import errno, os, resource, sys
import cordwood as cw

path = sys.argv[1]
writer = cw.LogWriter(path)
writer.append(b"before")
log = os.path.join(path, f"{0:020}.log")
size = os.path.getsize(log)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    writer.append(b"x" * 1000)
    sys.exit("there was room")
except OSError as error:
    assert error.errno == errno.EFBIG, error
assert os.path.getsize(log) == size, "the half that was written is still there"
assert writer.log_end_offset == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert writer.append(b"after").first_offset == 1
writer.close()
print(*(record.value.decode() for record in cw.Log(path).records()))
"""


def test_a_write_on_a_full_disk_is_undone_and_the_writer_continues(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    script = write_script(tmp_path, FULL)
    assert run(script, tmp_path / "orders-0", env=script_environment).stdout.split() == ["before", "after"]
