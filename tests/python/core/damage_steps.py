"""Steps that make, break and mend the partitions of a data directory."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import corpus
import pytest
from batches import GZIP, Rec, batch, write_partition

import cordwood as cw
from cordwood.cli import main

BROKER = corpus.GOLDEN / "16-data-dir"
METADATA = "__cluster_metadata-0"
STARTS = "log-start-offset-checkpoint"


@dataclass(frozen=True)
class Place:
    data: Path
    replica: Path
    partition: str

    @property
    def path(self) -> Path:
        return self.data / self.partition

    def last_log(self) -> Path:
        return max(self.path.glob("*.log"))


Step = Callable[[Place], object]


def golden(case: str) -> Step:
    return lambda place: shutil.copytree(corpus.GOLDEN / case / place.partition, place.path)


def broker(place: Place) -> None:
    shutil.copytree(BROKER, place.data, ignore=lambda _folder, names: [n for n in names if n == "expected"])


def written(place: Place) -> None:
    """A log of a writer, with four segments."""
    place.data.mkdir()
    config = cw.LogConfig(segment_bytes=4096, retention_ms=-1)
    with cw.LogWriter(place.path, config=config) as writer:
        for number in range(200):
            writer.append(f"value {number}" * 5, timestamp=1_700_000_000_000 + number)


def generated(*raws: bytes) -> Step:
    """A partition with these batches, and all files that belong to them."""

    def make(place: Place) -> None:
        write_partition(place.path, [(0, raws)])

    return make


def rows(base: int, count: int, **fields: int) -> bytes:
    return batch(base, [Rec(b"value %d" % n, timestamp=1000 + n) for n in range(count)], **fields)


def nothing(_place: Place) -> None:
    """Nothing to do."""


def change(file: str, how: Callable[[bytes], bytes]) -> Step:
    """Change a file, relative to the data directory."""

    def step(place: Place) -> None:
        path = place.data / file.replace("PARTITION", place.partition)
        path.write_bytes(how(path.read_bytes()))

    return step


def write(file: str, text: bytes) -> Step:
    def step(place: Place) -> None:
        (place.data / file.replace("PARTITION", place.partition)).write_bytes(text)

    return step


def damaged(case: str) -> Step:
    """The partition as in the corpus of damage."""

    def step(place: Place) -> None:
        shutil.rmtree(place.path, ignore_errors=True)
        shutil.copytree(corpus.GOLDEN / "damaged" / case / place.partition, place.path)
        checkpoint = corpus.GOLDEN / "damaged" / case / STARTS
        if checkpoint.exists():
            shutil.copy(checkpoint, place.data)

    return step


def remove(pattern: str) -> Step:
    def step(place: Place) -> None:
        for path in place.data.glob(pattern.replace("PARTITION", place.partition)):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    return step


def restore(place: Place) -> None:
    """Restore the partition from another replica."""
    shutil.rmtree(place.path)
    shutil.copytree(place.replica / place.partition, place.path)


def restore_file(file: str) -> Step:
    def step(place: Place) -> None:
        target = place.data / file.replace("PARTITION", place.partition)
        remove(file)(place)
        source = place.replica / file.replace("PARTITION", place.partition)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)

    return step


def move_out(file: str) -> Step:
    return lambda place: (place.data / file.replace("PARTITION", place.partition)).rename(place.data.parent / "moved")


def without_line(file: str, topic: str) -> Step:
    """Remove the partition's line, and lower the count by one."""

    def how(text: bytes) -> bytes:
        version, count, *lines = text.splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(topic.encode() + b" ")]
        return version + b"%d\n" % (int(count) - 1) + b"".join(kept)

    return change(file, how)


def run(*arguments: str) -> Step:
    """A command that the advice names, on the partition."""

    def step(place: Place) -> None:
        texts = {
            "PATH": str(place.path),
            "DATA": str(place.data),
            "COPY": str(place.data.parent / "copies" / place.partition),
        }
        (place.data.parent / "copies").mkdir(exist_ok=True)
        assert main([texts.get(argument, argument) for argument in arguments]) in {0, 1}

    return step


def both(*steps: Step) -> Step:
    return lambda place: [step(place) for step in steps]


def open_sparse(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def commit(path: Path) -> None:
    cw.Log(path).position("billing").commit(3)


def named_producer(path: Path) -> None:
    path.parent.mkdir()
    with cw.LogWriter(path) as writer:
        writer.producer("billing").append("x")


def unfinished(place: Place) -> None:
    """A copy beside the partition that was interrupted."""

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        cw.copy(place.path, place.data / "copied-0", progress=stop)


def half_write(place: Place) -> None:
    """A write of the Spark sink that was interrupted before its first append."""
    change = {"name": place.partition, "start_offset": cw.Log(place.path).log_end_offset, "pieces": []}
    commit = {"format": 1, "write": "w", "query": None, "batch": None, "is_overwrite": False, "changes": [change]}
    folder = place.path / ".cordwood.spark" / "unfinished"
    folder.mkdir(parents=True)
    (folder / "w.json").write_text(json.dumps(commit))


def mark_deleted(base_offset: int) -> Step:
    """Rename the files of a segment, as a broker does before it deletes them."""

    def step(place: Place) -> None:
        for file in place.path.glob(f"{base_offset:020d}.*"):
            file.rename(f"{file}.deleted")

    return step


def take_back(place: Place) -> None:
    for file in place.path.glob("*.deleted"):
        file.rename(file.with_suffix(""))


def cat_shows_offsets(*offsets: int) -> Step:
    def step(place: Place) -> None:
        written = place.data.parent / "offsets.csv"
        assert main(["cat", str(place.path), "--columns", "offset", "-o", str(written)]) == 0
        assert [int(line) for line in written.read_text().split()[1:]] == list(offsets)

    return step


def write_large(log: Path) -> None:
    """Add a batch that expands to more than the default of `max_batch_bytes`."""
    log.write_bytes(rows(0, 3) + batch(3, [Rec(bytes(1 << 27))], codec=GZIP))


def rename(before: str, after: str) -> Step:
    return lambda place: (place.path / before).rename(place.path / after)


def link(place: Place) -> None:
    """Put a symbolic link in the place of a file."""
    index = place.last_log().with_suffix(".timeindex")
    target = place.data.parent / "target"
    index.rename(target)
    index.symlink_to(target)


def give_to(user: int) -> Step:
    def step(place: Place) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can give files to another user")
        os.chown(place.last_log(), user, -1)

    return step
