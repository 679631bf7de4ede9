"""What a write leaves beside the logs until it is committed, and what is known of the last commit. Does not use Spark.

The drawing is in `cordwood.spark.write`.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cordwood._core import _has_segments, _partition_parts
from cordwood.spark.errors import UNFINISHED_WRITE, SparkLogError

__all__ = ["Change", "Commit", "Journal", "Piece", "is_log", "unless_removed"]

_OWN = ".cordwood.spark"
_FORMAT = 1
_PARTLY_WRITTEN = ".part"

# staged logs of a write whose driver died are removed when nothing was written to them for so long
_STALE_SECONDS = 7 * 24 * 3600

_ATTEMPTS = 100

_T = TypeVar("_T")


@dataclass(frozen=True)
class Piece:
    """Records of a staged log."""

    place: str
    """The path of the staged log, relative to the data directory."""

    start_offset: int
    """The first offset in the staged log."""

    end_offset: int
    """The offset after the last one (exclusive)."""


@dataclass(frozen=True)
class Change:
    """What a commit does with one partition."""

    name: str
    """The name of the partition directory."""

    start_offset: int
    """The log end offset before the commit: the offset of the first appended record."""

    pieces: list[Piece]
    """What is appended, in order."""


@dataclass(frozen=True)
class Commit:
    """A commit: the contents of its file."""

    write: str
    """The id of the write."""

    query: str | None
    """The id of a streaming query; `None` for a batch write."""

    batch: int | None
    """The number of the query's micro-batch."""

    is_overwrite: bool
    """Whether the older records are to be deleted."""

    changes: list[Change]
    """The partitions, sorted by name. The first has the file."""


class Journal:
    """The files of all writes to the partitions of one data directory."""

    def __init__(self, root: str) -> None:
        """Use a data directory, which need not exist. Nothing is read or written yet."""
        self.root = Path(root)

    def partitions(self) -> Iterator[tuple[str, str, int]]:
        """Return the partition directories: their names, topics and partitions. Other directories are left out."""
        with suppress(FileNotFoundError):
            for name in sorted(entry.name for entry in self.root.iterdir()):
                parts = _partition_parts(name)
                if parts is not None and parts[2] == "live" and (self.root / name).is_dir():
                    yield name, parts[0], parts[1]

    def existing(self) -> dict[str, tuple[int, ...]]:
        """Return the partitions of each topic that have a segment, ascending."""
        found: dict[str, list[int]] = {}
        for name, topic, partition in self.partitions():
            if is_log(self.root / name):
                found.setdefault(topic, []).append(partition)
        return {topic: tuple(sorted(numbers)) for topic, numbers in found.items()}

    # staged logs

    def make_staging(self, name: str, write: str, task: str) -> Path:
        """Make the directory of a staged log, in that of a partition. Returns its path."""
        folder = self.root / name / _OWN / "staged" / write / task
        unless_removed(lambda: folder.mkdir(parents=True, exist_ok=True))
        return folder

    def remove_staged(self, writes: str) -> None:
        """Remove the staged logs of the writes whose ids begin with a text, and those that nobody will commit."""
        kept = {commit.write for _, commit in self.unfinished()}
        oldest = time.time() - _STALE_SECONDS
        for name, _, _ in self.partitions():
            own = self.root / name / _OWN
            if not own.exists():
                continue
            staged = own / "staged"
            for folder in _entries(staged):
                if folder.name not in kept and (folder.name.startswith(writes) or _last_change(folder) < oldest):
                    # an attempt that outlived its job may still write there; the rest is removed later
                    shutil.rmtree(folder, ignore_errors=True)
            empty = [staged, own]
            if not is_log(own.parent):
                # nothing was ever committed to this partition
                empty = [staged, own / "unfinished", own, own.parent]
            for folder in empty:
                with suppress(OSError):
                    folder.rmdir()

    # commits

    def unfinished(self) -> list[tuple[Path, Commit]]:
        """Return the commits that are going on or were interrupted, with their files."""
        return list(self._read("unfinished"))

    def partly_written(self) -> list[tuple[str, Path]]:
        """Return the files whose writing is going on or was interrupted, with the names of their partitions."""
        return [
            (partition, path)
            for partition, _, _ in self.partitions()
            for folder in ("unfinished", "finished")
            for path in _entries(self.root / partition / _OWN / folder)
            if path.suffix == _PARTLY_WRITTEN
        ]

    def finished(self) -> list[tuple[Path, Commit]]:
        """Return the recorded commits: the last of queries, and those whose older records are not deleted yet."""
        return list(self._read("finished"))

    def last_batch(self, query: str) -> int:
        """Return the number of the last micro-batch of a query that was committed, -1 before the first."""
        found = [commit.batch for _, commit in self._read("finished", f"{query}.json")]
        return max((batch for batch in found if batch is not None), default=-1)

    def begin(self, commit: Commit) -> Path:
        """Write the file of a commit, before its first change. Returns its path."""
        path = self._file(commit, "unfinished", commit.write)

        def write() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _sync(path.parent.parent.parent)
            _sync(path.parent.parent)
            _write(path, commit)

        unless_removed(write)
        return path

    def withdraw(self, path: Path) -> None:
        """Remove the file of a commit whose appended records were taken back."""
        path.unlink()
        _sync(path.parent)

    def finish(self, path: Path, commit: Commit) -> Path | None:
        """Make a commit count: remove its file, or rename it if it is needed. Returns the new path.

        It is needed for the number of a micro-batch, and until the older records are deleted.
        """
        if commit.query is None and not commit.is_overwrite:
            self.withdraw(path)
            return None
        kept = self._file(commit, "finished", commit.query or commit.write)
        kept.parent.mkdir(exist_ok=True)
        _sync(kept.parent.parent)
        path.replace(kept)
        _sync(kept.parent)
        _sync(path.parent)
        return kept

    def older_deleted(self, path: Path, commit: Commit) -> None:
        """Note that the older records of an overwrite are deleted."""
        if commit.query is None:
            self.withdraw(path)
        else:
            _write(path, replace(commit, is_overwrite=False))

    def _file(self, commit: Commit, folder: str, name: str) -> Path:
        return self.root / commit.changes[0].name / _OWN / folder / f"{name}.json"

    def _read(self, folder: str, name: str | None = None) -> Iterator[tuple[Path, Commit]]:
        """Return the files of commits in the directories of this name; those with a name, or all."""
        for partition, _, _ in self.partitions():
            for path in _entries(self.root / partition / _OWN / folder):
                if path.suffix == ".json" and name in {None, path.name}:
                    # another process may have ended its commit meanwhile
                    with suppress(FileNotFoundError):
                        yield path, _commit_from(path)


def is_log(partition: Path) -> bool:
    """Whether a partition directory has a segment. Another process may have removed it."""
    try:
        return _has_segments(partition)
    except FileNotFoundError:
        return False


def unless_removed(make: Callable[[], _T]) -> _T:
    """Call a function that makes files; again, if another process has removed their directory while it was empty."""
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            return make()
    return make()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _last_change(folder: Path) -> float:
    """Return when something in a directory was changed last, 0 if another process has removed it."""
    times = [0.0]
    # unlike `rglob`, it leaves out directories that are removed meanwhile
    for parent, _, files in os.walk(folder):
        for path in (parent, *(os.path.join(parent, file) for file in files)):  # noqa: PTH118  (texts, as of `os.walk`)
            with suppress(OSError):
                times.append(os.stat(path).st_mtime)  # noqa: PTH116
    return max(times)


def _write(path: Path, commit: Commit) -> None:
    """Write a file atomically and durably: after a power failure it is complete or missing."""
    unfinished = path.with_name(f".{path.name}{_PARTLY_WRITTEN}")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, **asdict(commit)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _commit_from(path: Path) -> Commit:
    try:
        document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        changes = [
            Change(change["name"], change["start_offset"], [Piece(**piece) for piece in change["pieces"]])
            for change in document["changes"]
        ]
        names = ("write", "query", "batch", "is_overwrite")
        if document["format"] == _FORMAT and changes:
            return Commit(**{name: document[name] for name in names}, changes=changes)
        wrong = f"the format {document['format']!r}"
    except (ValueError, KeyError, TypeError) as error:
        wrong = f"damage: {error}"
    expected = f"a file of the sink with the format {_FORMAT}"
    raise SparkLogError(UNFINISHED_WRITE, f"{path}: expected {expected}, found {wrong}; move it away to write again")
