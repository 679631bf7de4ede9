"""Runs commands of the command line, each in a process of its own.

These processes are forks of one that has imported the command line, because importing takes longer than most commands.
"""

from __future__ import annotations

import functools
import gc
import io
import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, suppress
from pathlib import Path

REQUEST_BYTES = 1 << 20


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command without a terminal, with a width that no table exceeds."""
    paths = os.pathsep.join(p for p in sys.path if p)
    return {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", **changes}


def cordwood(*arguments: object, given: bytes = b"", **changes: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with this standard input; `changes` are of its environment."""
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    read_error, write_error = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(write_in, "wb") as file:
            file.write(given)

    def read(fd: int) -> bytes:
        with os.fdopen(fd, "rb") as file:
            return file.read()

    with ThreadPoolExecutor() as pool:
        pool.submit(write)
        out, error = pool.submit(read, read_out), pool.submit(read, read_error)
        code = run_with([read_in, write_out, write_error], arguments, environment(**changes))
        return subprocess.CompletedProcess(arguments, code, out.result(), error.result())


def outputs(*arguments: object, given: bytes = b"") -> tuple[int, str, str]:
    """Run a command; return its exit code, its standard output and its standard error."""
    done = cordwood(*arguments, given=given)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ok(*arguments: object, given: bytes = b"") -> str:
    """Run a command that succeeds, and return its standard output."""
    code, out, error = outputs(*arguments, given=given)
    assert code == 0, error
    return out


def files(path: Path) -> dict[str, bytes]:
    """Return the content of all files of a directory."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def run_with(files: list[int], arguments: tuple[object, ...], environment: dict[str, str]) -> int:
    """Run a command with these three descriptors, which are closed here, and return its exit code."""
    umask = os.umask(0)
    os.umask(umask)
    request = json.dumps([[str(argument) for argument in arguments], environment, umask]).encode()
    assert len(request) < REQUEST_BYTES
    to_server, _ = server()
    socket.send_fds(to_server, [request], files)
    for file in files:
        os.close(file)
    return int(to_server.recv(16))


@functools.cache
def server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that forks, and the connection to it. It ends when the process of the tests does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
    ours.settimeout(120)
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, env=environment(), pass_fds=[theirs.fileno()]
        )
    return ours, process


def serve(requests: socket.socket) -> None:
    """Fork for each request; in the fork, run the command and exit with its code."""
    import pandas as pd  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from cordwood.cli import main

    # imports the commands, and what the parser of arguments imports when it has some to parse
    with redirect_stderr(io.StringIO()):
        assert main(["cat", os.devnull]) == 2

    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 3)
        if not request:
            return
        process = os.fork()
        if process == 0:
            requests.close()
            for target, file in enumerate(files):
                os.dup2(file, target)
                os.close(file)
            arguments, variables, umask = json.loads(request)
            os.umask(umask)
            os.environ.clear()
            os.environ.update(variables)
            sys.argv = ["cordwood", *arguments]
            code = main()
            sys.stdout.flush()
            # without the end of the interpreter, which would copy every page of the forking process
            os._exit(code)
        for file in files:
            os.close(file)
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


if __name__ == "__main__":
    # the directory of this file is on the path for Python alone
    sys.path.remove(str(Path(__file__).parent))
    serve(socket.socket(fileno=int(sys.argv[1])))
