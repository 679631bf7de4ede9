"""A signal immediately interrupts an append that waits to be durable; its record is kept but not acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import run, write_script

import cordwood as cw

# The wait is a minute, far longer than the test: a call that returns earlier was interrupted.
WAIT = """
import os, signal, sys, threading, time
import cordwood as cw

# the parent process may ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
path, kind = sys.argv[1:]
writer = cw.LogWriter(path, flush=cw.FlushMode.group(ms=60_000, bytes=1 << 30))

def until(end):
    while writer.log_end_offset < end:
        pass

def send(end):
    until(end)
    os.kill(os.getpid(), signal.SIGUSR1 if kind == "handler" else signal.SIGINT)

waits = kind == "follower"
if waits:
    leader = threading.Thread(target=lambda: writer.append(b"leads"))
    leader.start()
    until(1)
signal.signal(signal.SIGUSR1, lambda *_: writer.flush())
threading.Thread(target=send, args=(2 if waits else 1,)).start()
began = time.monotonic()
try:
    appended = writer.append(b"waits")
except KeyboardInterrupt:
    print("interrupted", writer.log_end_offset, writer.durable_offset)
else:
    print("appended", appended.durable)
assert time.monotonic() - began < 30
writer.flush()
if waits:
    leader.join()
assert writer.append_many([]).durable
writer.close()
"""


@pytest.mark.parametrize(
    ("kind", "said"), [("leader", "interrupted 1 0"), ("follower", "interrupted 2 0"), ("handler", "appended True")]
)
def test_an_append_that_waits_for_others_is_interrupted(
    tmp_path: Path, kind: str, said: str, script_environment: dict[str, str]
) -> None:
    """Also if another thread leads the group; and the signal handler may use the writer."""
    path = tmp_path / "orders-0"
    script = write_script(tmp_path, WAIT)
    assert run(script, path, kind, env=script_environment).stdout.strip() == said
    # it was written, and the log continues after it
    assert [record.value for record in cw.Log(path).records()][-1] == b"waits"
    with cw.LogWriter(path) as writer:
        assert writer.append(b"more").first_offset == (2 if kind == "follower" else 1)


# A signal arrives while a call works. If it came too late, the call is made again.
WORK = """
import os, signal, sys, threading
import cordwood as cw

path, working, kind = sys.argv[1:]
config = cw.LogConfig(cleanup_policy="compact,delete", min_cleanable_dirty_ratio=0, segment_bytes=4 << 20)
writer = cw.LogWriter(path, config=config, flush="none")
timer = cw.retention_timer(writer, every=0.01)
CALLS = {
    "delete_before": lambda: writer.delete_before(1),
    "apply_retention": lambda: writer.apply_retention(),
    "backup": lambda: writer.backup(f"{path}-other-{attempt}"),
    "close": lambda: writer.close(),
    "log_start_offset": lambda: writer.log_start_offset,
    "stop": lambda: timer.stop(),
    "append": lambda: writer.append("x", key="x"),
}
inside, said = False, ""

def is_working():
    # a signal that arrives at the end of the call is handled after it
    if working == "backup":
        return True
    try:
        return writer.log_start_offset < 0
    except RuntimeError:
        return True

def handle(*_):
    global said
    if inside and not said and is_working():
        said = "nothing"
        try:
            CALLS[kind]()
            said = "done"
        except RuntimeError as error:
            said = str(error)

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
if kind == "stop":
    timer.start()
for attempt in range(100):
    for key in range(300):
        writer.append(os.urandom(1 << 16), key=b"%d" % key)
    inside = True
    writer.backup(f"{path}-{attempt}") if working == "backup" else writer.compact()
    inside = False
    # "done" may come from a signal after the end of the backup, which `is_working` does not know
    if said and not (said == "done" and working == "backup" and kind in ("delete_before", "backup")):
        break
    said = ""
signal.setitimer(signal.ITIMER_REAL, 0)
timer.stop()
assert not timer.is_running
writer.close()
print(said)
"""


@pytest.mark.parametrize(
    ("working", "kind"),
    [
        *[("backup", kind) for kind in ("delete_before", "backup", "stop", "append", "log_start_offset")],
        *[("compact", kind) for kind in ("apply_retention", "close", "log_start_offset", "stop", "append")],
    ],
)
def test_a_signal_handler_that_calls_the_writer_inside_its_call_does_not_wait_forever(
    tmp_path: Path, working: str, kind: str, script_environment: dict[str, str]
) -> None:
    """What would wait for the interrupted call is an error; the rest works."""
    done = run(write_script(tmp_path, WORK), tmp_path / "orders-0", working, kind, env=script_environment, timeout=60)
    said = done.stdout.strip()
    if kind == "stop" or (working == "backup" and kind in ("append", "log_start_offset")):
        assert said == "done"
    else:
        assert said.startswith(f"LogWriter.{working}() runs in this thread"), said
