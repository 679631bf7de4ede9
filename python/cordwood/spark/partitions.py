"""Which partition directories a path means: data directories, partition directories, globs of both."""

import glob
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import cordwood as cw
from cordwood.spark.errors import BAD_OPTION, NOT_FOUND, SparkLogError
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.topic_pattern import topic_pattern

__all__ = ["PartitionDirectory", "absolute", "find_partitions", "has_segments", "local_path"]

_logger = logging.getLogger("cordwood")

_SEGMENT = re.compile(r"\d{20,}\.log(\.swap)?")
_SEGMENT_FILE = re.compile(r"\d{20,}\..*")
# Kafka: Topic.isInternal, and the log of the controllers, which clients do not see as a topic
_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
_NAMED = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)")


@dataclass(frozen=True, order=True)
class PartitionDirectory:
    """A partition directory: its absolute path, and what its name says; `None` where it is not `topic-partition`."""

    topic: str | None
    partition: int | None
    path: str

    @classmethod
    def at(cls, path: str) -> "PartitionDirectory":
        """Describe a directory by its name."""
        path = absolute(path)
        named = _NAMED.fullmatch(Path(path).name)
        if named is None or int(named["partition"]) >= 1 << 31:
            return cls(None, None, path)
        return cls(named["topic"], int(named["partition"]), path)


def absolute(path: str) -> str:
    """Give a path one spelling. A link that the last name may be is kept: its name says the topic."""
    found = Path(path).absolute()
    return str(found.resolve() if found.name == ".." else found.parent.resolve() / found.name)


def find_partitions(options: SparkLogOptions) -> list[PartitionDirectory]:
    """List the partitions that the options choose, in order of topic and partition.

    *Errors*: `CORDWOOD_NOT_FOUND` for a path that is not there or holds no partition, and (with `failOnDataLoss`) for a
    topic or a partition that is not there; `CORDWOOD_BAD_OPTION` for one that lies under two of the paths.
    """
    found = [directory for path in options.paths for directory in _under(path, options)]
    chosen = [directory for directory in found if _is_chosen(directory, options)]
    _check_once(chosen)
    missing = _missing(chosen, options)
    if missing:
        here = ", ".join(sorted({directory.topic or directory.path for directory in found}))
        reason = f"no partition of {', '.join(missing)} under {', '.join(options.paths)}; what is there: {here}"
        if options.fail_on_data_loss:
            raise SparkLogError(NOT_FOUND, reason + " (failOnDataLoss=false goes on without)")
        _logger.warning("[%s] %s; left out", NOT_FOUND, reason)
    return sorted(chosen, key=lambda directory: (directory.topic or "", directory.partition or 0, directory.path))


def _check_once(chosen: Iterable[PartitionDirectory]) -> None:
    once: dict[object, PartitionDirectory] = {}
    for directory in chosen:
        unnamed = os.path.realpath(directory.path)
        name = unnamed if directory.topic is None else (directory.topic, directory.partition)
        other = once.setdefault(name, directory)
        if other is not directory:
            reason = f"path: expected each partition once, found it at {other.path} and at {directory.path}"
            raise SparkLogError(BAD_OPTION, reason, topic=directory.topic, partition=directory.partition)


def _under(path: str, options: SparkLogOptions) -> Iterator[PartitionDirectory]:
    """Partition directories that one path of the user means."""
    local = local_path(path)
    if os.path.lexists(local) or not glob.has_magic(local):
        partitions = list(_partitions(local))
        if not partitions:
            wanted = "a directory with segments (a .log named by 20 digits), or one with such directories in it"
            error = SparkLogError(NOT_FOUND, f"{path}: expected {wanted}, found none")
            if options.fail_on_data_loss:
                raise error
            _logger.warning("%s", error)
        yield from partitions
        return
    matches = sorted(glob.glob(local))  # noqa: PTH207  (an absolute one)
    directories = [match for match in matches if Path(match).is_dir()]
    partitions = [partition for match in directories for partition in _partitions(match)]
    if not partitions:
        found = f"{len(directories)} directories that match, and none is or holds a partition"
        if matches and not directories:
            found = _file_in_words(matches[0])
        raise SparkLogError(NOT_FOUND, f"{path}: expected directories, found {found}")
    yield from partitions


def _partitions(path: str) -> Iterator[PartitionDirectory]:
    try:
        if has_segments(path):
            yield PartitionDirectory.at(path)
            return
        for name in cw.LogDir(path):
            inside = str(Path(path, name))
            # one that was just created has no segment yet, and one that was just deleted is no more
            with suppress(FileNotFoundError):
                if has_segments(inside):
                    yield PartitionDirectory.at(inside)
    except (FileNotFoundError, NotADirectoryError) as error:
        wanted = "a data directory, a partition directory, or a glob of either, as this machine sees it"
        found = _file_in_words(path) if Path(path).is_file() else "no directory"
        raise SparkLogError(NOT_FOUND, f"{path}: expected {wanted}, found {found}") from error
    except (cw.CordwoodError, OSError) as error:
        raise SparkLogError.of(error) from error


def _file_in_words(path: str) -> str:
    file = Path(path)
    if _SEGMENT_FILE.fullmatch(file.name) is None:
        return f"the file {file.name}"
    return f"the file {file.name} of a segment: load its directory, {file.parent}"


def has_segments(path: str) -> bool:
    """Say whether segments lie right in a directory: then it is a partition's."""
    with os.scandir(path) as entries:
        return any(_SEGMENT.fullmatch(entry.name) for entry in entries)


def local_path(path: str) -> str:
    """Take `file:` off a path. *Errors*: `CORDWOOD_BAD_OPTION` for another scheme."""
    scheme = re.match(r"(?P<name>[A-Za-z][A-Za-z0-9+.-]+):/", path)
    if scheme is None:
        return path
    if scheme["name"].lower() != "file":
        reason = f"path: expected a path that every node sees as a directory, found {path!r} (mount it, or copy it)"
        raise SparkLogError(BAD_OPTION, reason)
    return str(Path("/" + path[len("file:") :].lstrip("/")))


def _is_chosen(directory: PartitionDirectory, options: SparkLogOptions) -> bool:
    topic, pattern = directory.topic, options.subscribe_pattern
    if options.assign is not None:
        return (topic, directory.partition) in options.assign
    if options.subscribe is not None:
        return topic in options.subscribe
    is_excluded = options.exclude_internal_topics
    if topic in _INTERNAL_TOPICS and (pattern is not None if is_excluded is None else is_excluded):
        return False
    return pattern is None or (topic is not None and topic_pattern(pattern).search(topic) is not None)


def _missing(chosen: list[PartitionDirectory], options: SparkLogOptions) -> list[str]:
    topics = {directory.topic for directory in chosen}
    if options.assign is not None:
        there = {(directory.topic, directory.partition) for directory in chosen}
        return [f"{topic}-{partition}" for topic, partition in sorted(options.assign - there)]
    if options.subscribe is not None:
        return [topic for topic in options.subscribe if topic not in topics]
    if options.subscribe_pattern is not None and not chosen:
        internal = (
            "" if options.exclude_internal_topics is False else " (excludeInternalTopics=false reads internal ones)"
        )
        return [f"a topic like {options.subscribe_pattern}{internal}"]
    return []
