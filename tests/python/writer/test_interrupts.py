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
