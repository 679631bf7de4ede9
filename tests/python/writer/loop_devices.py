"""Real file systems in images on loop devices. They need root and support in the kernel."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# by file system: the options of mkfs and of mount, and the smallest image
KINDS = {
    "ext4": (["-q", "-m", "0"], "data=journal,errors=remount-ro", 64 << 20),
    "xfs": (["-q"], "defaults", 300 << 20),
}
# FS_IOC_SHUTDOWN (EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN): all later writes fail, and data that is not durable
# is lost. The flags say whether the journal is written before.
SHUTDOWN = 0x8004587D
LOG_FLUSH, NO_LOG_FLUSH = 1, 2


def tool(name: str) -> str | None:
    """Find a program, including those only in root's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def call(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    found = tool(name)
    assert found is not None, f"{name} is missing"
    return subprocess.run([found, *map(str, arguments)], check=False, capture_output=True, text=True)


def needs(kind: str) -> None:
    """Skip with a reason if this machine cannot run the test. In CI only a missing kernel feature is a reason."""
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    known = Path("/proc/filesystems").read_text(encoding="utf-8").split()
    if kind not in known or not Path("/dev/loop-control").exists():
        pytest.skip(f"this kernel has no loop devices, or no {kind}")
    if tool(f"mkfs.{kind}") is None:
        assert "CI" not in os.environ, f"mkfs.{kind} is missing, and here it must be there"
        pytest.skip(f"mkfs.{kind} is not installed")


def make_image(kind: str, image: Path, size: int | None = None) -> None:
    """Create an image with an empty file system."""
    options, _, least = KINDS[kind]
    with image.open("wb") as file:
        file.truncate(size or least)
    done = call(f"mkfs.{kind}", *options, image)
    assert done.returncode == 0, done.stderr


@contextmanager
def mounted(kind: str, image: Path, options: str | None = None) -> Iterator[Path]:
    """Mount an image in a directory next to it."""
    mount = image.with_suffix(".mount")
    mount.mkdir(exist_ok=True)
    with _mounted("-o", f"loop,{options or KINDS[kind][1]}", image, mount):
        yield mount


@contextmanager
def bound(source: Path, target: Path) -> Iterator[None]:
    """Bind a file of another file system into a directory."""
    with _mounted("--bind", source, target):
        yield


@contextmanager
def _mounted(*arguments: object) -> Iterator[None]:
    done = call("mount", *arguments)
    if "permission denied" in done.stderr.lower():
        pytest.skip("this process may not mount")
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        done = call("umount", arguments[-1])
        assert done.returncode == 0, done.stderr


def shut_down(mount: Path, flags: int = NO_LOG_FLUSH) -> None:
    """Shut a file system down, as after a disk failure or a loss of power."""
    descriptor = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", flags))
    finally:
        os.close(descriptor)
