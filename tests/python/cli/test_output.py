"""Targets of `cordwood cat -o`: files are replaced, links followed, pipes and devices written directly."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import corpus
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import cordwood, environment, ok
from scripts import BECOME_NOBODY, run, write_script

from cli.test_commands import failed

SMALL = corpus.partition("01-small")
OFFSETS = list(range(370))
FORMATS = ["jsonl", "csv", "arrow", "parquet"]


def offsets(content: bytes) -> list[int]:
    """The offsets in a file, whatever its format."""
    if content[:4] == b"PAR1":
        table = pq.read_table(pa.BufferReader(content))
    elif content[:6] == b"ARROW1":
        table = pa.ipc.open_file(content).read_all()
    elif content[:4] == b"\xff\xff\xff\xff":
        table = pa.ipc.open_stream(content).read_all()
    elif content[:1] == b"{":
        return [json.loads(line)["offset"] for line in content.splitlines()]
    else:
        return [int(row["offset"]) for row in csv.DictReader(io.StringIO(content.decode()))]
    return table["offset"].to_pylist()


def kind(content: bytes) -> str:
    starts = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "stream", b'{"of': "jsonl", b'"off': "csv"}
    return starts[content[:4]]


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_dash_is_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in FORMATS:
        plain, dashed = (cordwood("cat", SMALL.path, "--format", given, *more) for more in ((), ("-o", "-")))
        assert dashed.returncode == 0
        assert dashed.stdout == plain.stdout
        assert offsets(dashed.stdout) == OFFSETS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_name_of_standard_output_is_standard_output(tmp_path: Path, name: str) -> None:
    """`/dev/stdout` is such a link; a test must not risk replacing it."""
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    target = str(tmp_path / name)
    assert offsets(cordwood("cat", SMALL.path, "-o", target).stdout) == OFFSETS
    with (tmp_path / "out").open("wb") as file:
        file.write(b"before\n")
        file.flush()
        command = [sys.executable, "-m", "cordwood.cli", "cat", str(SMALL.path), "-o", target]
        subprocess.run(command, stdout=file, env=environment(), check=True, timeout=60)
    before, _, rest = (tmp_path / "out").read_bytes().partition(b"\n")
    assert before == b"before"
    assert offsets(rest) == OFFSETS
    assert (tmp_path / "stdout").is_symlink()


def words(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cordwood.cli", "cat", str(SMALL.path), *map(str, arguments)]


@pytest.mark.parametrize("given", FORMATS)
@pytest.mark.parametrize(
    ("target", "number"), [("/dev/fd/3", 3), ("/proc/self/fd/3", 3), ("link", 3), ("/dev/stderr", 2)]
)
def test_a_descriptor_of_a_file_is_written_directly(
    tmp_path: Path, script_environment: dict[str, str], target: str, number: int, given: str
) -> None:
    """What others write to it before and after is kept."""
    (tmp_path / "link").symlink_to("/proc/self/fd/3")
    script = f'{{ echo header >&{number}; "$@"; echo tail >&{number}; }} {number}>out'
    command = ["/bin/sh", "-c", script, "sh", *words("-o", target, "--format", given)]
    subprocess.run(command, env=script_environment, cwd=tmp_path, check=True, timeout=60)
    content = (tmp_path / "out").read_bytes()
    assert content.startswith(b"header\n")
    assert content.endswith(b"tail\n")
    assert offsets(content[7:-5]) == OFFSETS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


def test_an_open_file_of_another_process_is_appended_to(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        file.write(b"header\n")
        file.flush()
        ok("cat", SMALL.path, "-o", f"/proc/{os.getpid()}/fd/{file.fileno()}")
    content = (tmp_path / "out").read_bytes()
    assert content[:7] == b"header\n"
    assert offsets(content[7:]) == OFFSETS


@pytest.mark.parametrize("target", ["-", "/dev/stdout", "/dev/fd/1"])
def test_a_socket_as_standard_output_is_written_to(script_environment: dict[str, str], target: str) -> None:
    here, there = socket.socketpair()
    with here, here.makefile("rb") as reading:
        with there:
            process = subprocess.Popen(words("-o", target), stdout=there, env=script_environment)
        assert offsets(reading.read()) == OFFSETS
        assert process.wait(60) == 0


def test_a_pipe_by_name_whose_reader_is_gone_is_an_error(tmp_path: Path, script_environment: dict[str, str]) -> None:
    """The output is incomplete; only standard output may be cut short (`| head`)."""
    target = tmp_path / "pipe"
    os.mkfifo(target)
    reader = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen(words("-o", target), stderr=subprocess.PIPE, env=script_environment) as process:
        select.select([reader], [], [], 60)
        os.close(reader)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.decode()) == (1, f"cordwood: {target}: Broken pipe\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize(
    ("owner", "mode", "wanted"),
    [
        ((0, 4242), 0o660, (65534, 4242, 0o660)),
        ((0, 4242), 0o6770, (65534, 4242, 0o770)),
        ((0, 4243), 0o6776, (65534, 65534, 0o706)),
        ((65534, 4243), 0o2660, (65534, 65534, 0o600)),
    ],
)
def test_a_file_that_an_unprivileged_user_replaces_keeps_its_group_or_has_no_rights_of_one(
    script_environment: dict[str, str], owner: tuple[int, int], mode: int, wanted: tuple[int, int, int]
) -> None:
    """The user is in group 4242, and not in group 4243."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o777)
    target = top / "out.jsonl"
    target.write_bytes(b"old")
    os.chown(target, *owner)
    target.chmod(mode)
    script = write_script(
        top,
        "import os, sys\nfrom cordwood.cli import main\n"
        "main(['cat', sys.argv[1], '-o', '/dev/null'])\n"
        "os.setgroups([4242])\nos.setresgid(65534, 65534, 65534)\nos.setresuid(65534, 65534, 65534)\n"
        "sys.exit(main(['cat', sys.argv[1], '-o', sys.argv[2]]))\n",
    )
    try:
        run(script, shutil.copytree(SMALL.path, top / "small-0"), target, env=script_environment)
        assert offsets(target.read_bytes()) == OFFSETS
        found = target.stat()
        assert (found.st_uid, found.st_gid, oct(found.st_mode & 0o7777)) == (*wanted[:2], oct(wanted[2]))
    finally:
        shutil.rmtree(top)


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o444, 0o777, 0o4755])
def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """As root, who may write a file of mode 0444."""
    target = tmp_path / "out.jsonl"
    target.write_bytes(b"old")
    target.chmod(mode)
    with target.open("rb") as old:
        if os.geteuid() == 0 or mode & 0o200:
            ok("cat", SMALL.path, "-o", target)
            assert offsets(target.read_bytes()) == OFFSETS
        # a process that has the old file open still reads it
        assert old.read() == b"old"
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert left_behind(tmp_path) == []


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        ok("cat", SMALL.path, "-o", tmp_path / "out.jsonl")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_that_root_replaces_keeps_its_owner(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_bytes(b"old")
    os.chown(target, 65534, 65533)
    target.chmod(0o640)
    ok("cat", SMALL.path, "-o", target)
    found = target.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65533, 0o640)


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.jsonl").write_bytes(b"old")
    (tmp_path / "far" / "real.jsonl").chmod(0o640)
    (tmp_path / "second.jsonl").symlink_to("far/real.jsonl")
    (tmp_path / "first.jsonl").symlink_to(tmp_path / "second.jsonl")
    ok("cat", SMALL.path, "-o", tmp_path / "first.jsonl")
    assert (tmp_path / "first.jsonl").is_symlink()
    assert (tmp_path / "second.jsonl").is_symlink()
    assert offsets((tmp_path / "far" / "real.jsonl").read_bytes()) == OFFSETS
    assert stat.S_IMODE((tmp_path / "far" / "real.jsonl").stat().st_mode) == 0o640
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == ["real.jsonl"]


def test_a_link_to_a_missing_file_creates_it(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to("made.csv")
    ok("cat", SMALL.path, "-o", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert offsets((tmp_path / "made.csv").read_bytes()) == OFFSETS
    (tmp_path / "round").symlink_to("round")
    assert "round" in failed(cordwood("cat", SMALL.path, "-o", tmp_path / "round"), 1)


@pytest.mark.parametrize("given", FORMATS)
def test_a_pipe_is_written_directly(tmp_path: Path, given: str) -> None:
    pipe = tmp_path / f"out.{given}"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    ok("cat", SMALL.path, "-o", pipe)
    reader.join(30)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert kind(read[0]) == ("stream" if given == "arrow" else given)
    assert offsets(read[0]) == OFFSETS
    assert left_behind(tmp_path) == []


def device(folder: Path, name: str, minor: int) -> Path:
    """A copy of a device in /dev: as root, a failing test could replace the machine's own."""
    if os.geteuid() != 0:
        return Path("/dev", name)
    path = folder / name
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"makes no device here: {error}")
    return path


@pytest.mark.parametrize("given", FORMATS)
def test_devices_are_written_directly(tmp_path: Path, given: str) -> None:
    """Regression: as root, a device was replaced by a file."""
    null, full = device(tmp_path, "null", 3), device(tmp_path, "full", 7)
    before = [path.lstat() for path in (null, full)]
    ok("cat", SMALL.path, "--format", given, "-o", null)
    error = failed(cordwood("cat", SMALL.path, "--format", given, "-o", full), 1)
    assert error == f"cordwood: {full}: No space left on device\n"
    for old, new in zip(before, [path.lstat() for path in (null, full)], strict=True):
        assert stat.S_ISCHR(new.st_mode)
        assert (old.st_mode, old.st_rdev, old.st_ino) == (new.st_mode, new.st_rdev, new.st_ino)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [("cat",), ("cat", "--format", "csv"), ("cat", "--format", "parquet"), ("ls",), ("ls", "--json")],
    ids=str,
)
@pytest.mark.parametrize(
    ("redirection", "reason"), [(">&-", "Bad file descriptor"), ("> /dev/full", "No space left on device")]
)
def test_an_error_of_standard_output_is_named(
    script_environment: dict[str, str], arguments: tuple[str, ...], redirection: str, reason: str
) -> None:
    words = [sys.executable, "-m", "cordwood.cli", arguments[0], str(SMALL.path), *arguments[1:]]
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *words], env=script_environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (1, f"cordwood: standard output: {reason}\n")


def test_a_closed_standard_error_does_not_matter(script_environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "cordwood.cli", "cat", str(SMALL.path), "--limit", "1"]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" 2>&-', "sh", *words], env=script_environment, stdout=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)


@pytest.mark.parametrize("given", FORMATS)
def test_output_that_fits_in_part_is_an_error(tmp_path: Path, script_environment: dict[str, str], given: str) -> None:
    """An unbuffered standard output writes the part and reports its size, which was ignored."""
    script = write_script(
        tmp_path,
        """
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        os.dup2(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT), 1)
        words = [sys.executable, "-u", "-m", "cordwood.cli", "cat", sys.argv[1], "--format", sys.argv[3]]
        os.execv(sys.executable, words)
        """,
    )
    target = tmp_path / "out"
    words = [sys.executable, str(script), str(SMALL.path), str(target), given]
    done = subprocess.run(words, env=script_environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"cordwood: standard output: File too large\n")
    assert target.stat().st_size == 1000


def test_a_standard_input_that_cannot_be_read_is_named(tmp_path: Path, script_environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "cordwood.cli", "append", str(tmp_path / "never-0")]
    shell = ["/bin/sh", "-c", '"$@" 0> /dev/null', "sh", *words]
    done = subprocess.run(shell, env=script_environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"cordwood: standard input: Bad file descriptor\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_where_standard_output_is_closed(tmp_path: Path, script_environment: dict[str, str]) -> None:
    words = [sys.executable, "-m", "cordwood.cli", "cat", str(SMALL.path), "-o", str(tmp_path / "out.csv")]
    done = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *words], env=script_environment, check=False)
    assert done.returncode == 0
    assert offsets((tmp_path / "out.csv").read_bytes()) == OFFSETS


def test_a_directory_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for target in (tmp_path, tmp_path / "link"):
        error = failed(cordwood("cat", SMALL.path, "-o", target), 2)
        assert f"{target} is a directory" in error
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    error = failed(cordwood("cat", SMALL.path, "-o", tmp_path / "nowhere" / "out.csv"), 1)
    assert error == f"cordwood: {tmp_path / 'nowhere'}: No such file or directory\n"
    (tmp_path / "file").write_bytes(b"")
    assert "file" in failed(cordwood("cat", SMALL.path, "-o", tmp_path / "file" / "out.csv"), 1)


def test_nothing_is_written_into_a_partition(copied: object) -> None:
    path = copied(SMALL.path)  # type: ignore[operator]
    (path / "quarantine").mkdir()
    link = path.parent / "link.jsonl"
    link.symlink_to(path / "through.jsonl")
    before = sorted(path.rglob("*"))
    for target in (path / "out.jsonl", path / "quarantine" / "out.jsonl", link):
        assert "inside the partition" in failed(cordwood("cat", path, "-o", target), 2)
    assert sorted(path.rglob("*")) == before


def test_a_directory_that_may_not_be_written_is_named(script_environment: dict[str, str]) -> None:
    """As an unprivileged user; the old file is kept."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o755)
    target = top / "out.jsonl"
    target.write_bytes(b"old")
    target.chmod(0o666)
    script = write_script(
        top,
        "import sys\nfrom cordwood.cli import main\n"
        "main(['cat', '/nowhere'])\n" + BECOME_NOBODY + "print(main(['cat', sys.argv[1], '-o', sys.argv[2]]))\n"
        "print(main(['cat', sys.argv[1], '-o', sys.argv[2] + '.new.jsonl']))\n",
    )
    partition = top / "small-0"
    shutil.copytree(SMALL.path, partition)
    try:
        done = run(script, partition, target, env=script_environment)
        assert done.stdout.splitlines() == ["1", "1"]
        assert done.stderr.splitlines()[-2:] == [f"cordwood: {top}: Permission denied"] * 2
        assert target.read_bytes() == b"old"
        assert left_behind(top) == []
    finally:
        shutil.rmtree(top)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder.mkdir()
    mounted = subprocess.run(
        ["/usr/bin/env", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounts no disk here")
    try:
        yield folder
    finally:
        subprocess.run(["/usr/bin/env", "umount", str(folder)], check=True)


@pytest.mark.parametrize("given", FORMATS)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, given: str) -> None:
    with small_disk(tmp_path / "disk") as disk:
        target = disk / f"out.{given}"
        target.write_bytes(b"old")
        (disk / "filler").write_bytes(b"x" * (56 << 10))
        error = failed(cordwood("cat", SMALL.path, "-o", target), 1)
        assert error == f"cordwood: {target}: No space left on device\n"
        assert target.read_bytes() == b"old"
        assert left_behind(disk) == []


def test_a_read_error_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_bytes(b"old")
    broken = corpus.GOLDEN / "damaged/flip-record/tickets-0"
    assert "285.log" in failed(cordwood("cat", broken, "-o", target), 1)
    assert target.read_bytes() == b"old"
    assert left_behind(tmp_path) == []
