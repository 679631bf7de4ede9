"""The partitions that a command reads: of partition directories and of data directories."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from cordwood import CordwoodError, LogDir, LogNotFoundError, classify
from cordwood._core import _has_segments, _nearest, _partition_parts
from cordwood.cli.exit_codes import NothingFoundError, UsageError, say
from cordwood.cli.path import parse_path
from cordwood.cli.segment_files import SegmentFiles, segment_files

__all__ = ["PartitionNumbers", "Paths", "Selection", "Topics", "has_log", "selected"]

Paths = Annotated[
    list[Path],
    typer.Argument(parser=parse_path, help="Partition directories and data directories, or .log files of a partition."),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="GLOB", help="Only topics that match, such as 'orders-*'. Repeatable."),
]
PartitionNumbers = Annotated[
    list[int] | None, typer.Option("--partition", min=0, help="Only partitions with this number. Repeatable.")
]


@dataclass(frozen=True)
class Selection:
    """Partitions that were selected."""

    paths: list[Path]
    """Their directories: in the order of the arguments, and in each data directory by topic and number."""

    is_single: bool
    """Whether exactly one partition was named, by its path alone: then rows have no columns for topic and partition."""

    failed: list[tuple[Path, CordwoodError | OSError]] = field(default_factory=list)
    """The partitions that cannot be read, or that have lost their segments, with the error; they are not in `paths`."""

    files: SegmentFiles | None = None
    """The segments of the partition, if `.log` files were named instead of it."""

    def offsets(self, start_offset: int | None, end_offset: int | None) -> dict[str, int | None]:
        """Return a range of offsets as arguments of the core: in the named files, if files were named."""
        if self.files is not None:
            start_offset, end_offset = self.files.within(start_offset, end_offset)
        return {"start_offset": start_offset, "end_offset": end_offset}


@dataclass(frozen=True)
class _Partition:
    path: Path
    topic: str | None
    number: int | None
    error: CordwoodError | OSError | None = None


def selected(
    paths: Sequence[Path], topics: Sequence[str] | None, numbers: Sequence[int] | None, max_batch_bytes: int
) -> Selection:
    """Return the partitions of these paths that match the options.

    *Errors*: `NothingFoundError` if there is none, or none of a topic that was named; as for `LogDir` and
    `segment_files`.
    """
    files = segment_files(paths, max_batch_bytes)
    if files is not None:
        if topics or numbers:
            raise UsageError("--topic and --partition select partitions of data directories, not .log files")
        return Selection([files.partition], is_single=True, files=files)
    if len(paths) == 1 and not topics and not numbers and not _is_data_directory(paths[0]):
        return Selection([paths[0]], is_single=True)
    found = list(_distinct(partition for path in paths for partition in _partitions(path)))
    for glob in topics or ():
        if not any(_matches(partition, [glob]) for partition in found):
            raise NothingFoundError(f"--topic: {_no_topic(glob, found)}")
    chosen = [
        partition
        for partition in found
        if (not topics or _matches(partition, topics)) and (not numbers or partition.number in numbers)
    ]
    if not chosen:
        wanted = " or ".join(map(str, numbers or ()))
        where = ", ".join(map(str, paths))
        raise NothingFoundError(f"{where}: no partition" + (f" with the number {wanted}" if wanted else ""))
    _warn_of_copies(chosen)
    return Selection(
        [partition.path for partition in chosen if partition.error is None],
        is_single=False,
        failed=[(partition.path, partition.error) for partition in chosen if partition.error is not None],
    )


def _is_data_directory(path: Path) -> bool:
    try:
        return classify(path).kind == "data_directory"
    except (LogNotFoundError, PermissionError):
        # the error of opening it says what is wrong
        return False


def _partitions(path: Path) -> Iterator[_Partition]:
    try:
        named = classify(path)
    except PermissionError as error:
        topic, number, _ = _partition_parts(path.absolute().name) or (None, None, None)
        yield _Partition(path, topic, number, error)
        return
    if named.kind != "data_directory":
        yield _Partition(path, named.topic, named.partition)
        return
    directory = LogDir(path)
    partitions = []
    for name in directory:
        topic, number, _ = _partition_parts(name) or (None, None, None)
        try:
            if has_log(directory, name):
                partitions.append(_Partition(path / name, topic, number))
        except (CordwoodError, OSError) as error:
            partitions.append(_Partition(path / name, topic, number, error))
    yield from sorted(partitions, key=lambda partition: (partition.topic or "", partition.number or 0))


def has_log(directory: LogDir, name: str) -> bool:
    """Return false for a partition that Kafka has just created, or that was deleted.

    *Errors*: `CorruptLogError` if it has lost its segments; `OSError` if it cannot be read.
    """
    try:
        return _has_segments(Path(directory.path, name)) or directory.get(name) is not None
    except LogNotFoundError:
        return False


def _distinct(partitions: Iterable[_Partition]) -> Iterator[_Partition]:
    known = set()
    for partition in partitions:
        real = partition.path.resolve()
        if real not in known:
            known.add(real)
            yield partition


def _warn_of_copies(partitions: Iterable[_Partition]) -> None:
    known: dict[tuple[str | None, int | None], Path] = {}
    for partition in partitions:
        name = (partition.topic, partition.number)
        if partition.error is None and None not in name:
            other = known.setdefault(name, partition.path)
            if other != partition.path:
                places = [other.parent, partition.path.parent]
                if len(set(places)) == 1:
                    places = [other, partition.path]
                say(f"{partition.topic}-{partition.number} is in {places[0]} and in {places[1]}: both are read")


def _matches(partition: _Partition, globs: Sequence[str]) -> bool:
    topic = partition.topic
    return topic is not None and any(topic == glob or fnmatchcase(topic, glob) for glob in globs)


def _no_topic(glob: str, found: Sequence[_Partition]) -> str:
    topics = sorted({partition.topic for partition in found if partition.topic is not None})
    near = _nearest(glob, topics)
    hint = f"; did you mean {near}?" if near else ""
    return f"no topic matches {glob!r}; there are {', '.join(topics) or 'none'}{hint}"
