"""Resolution of paths to partition directories: data directories, partition directories, globs of both."""

import glob
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import cordwood as cw
from cordwood._core import _has_segments, _is_segment_file, _partition_name
from cordwood.spark.errors import BAD_OPTION, NOT_FOUND, SEGMENT_GONE, SparkLogError
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.topic_pattern import topic_pattern

__all__ = ["PartitionDirectory", "absolute", "find_partitions", "local_path", "log_warning"]

_logger = logging.getLogger("cordwood")

# Kafka: Topic.isInternal, and the log of the controllers, which clients do not see as a topic
_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})


@dataclass(frozen=True, order=True)
class PartitionDirectory:
    """A partition directory: its absolute path, and the topic and partition in its name, if it is `topic-partition`."""

    topic: str | None
    partition: int | None
    path: str

    @classmethod
    def at(cls, path: str) -> "PartitionDirectory":
        """Create it from a path."""
        path = absolute(path)
        topic, partition = _partition_name(Path(path).name) or (None, None)
        return cls(topic, partition, path)


def absolute(path: str) -> str:
    """Normalise a path. If the last name is a link, it is kept, because the name contains the topic."""
    found = Path(path).absolute()
    return str(found.resolve() if found.name == ".." else found.parent.resolve() / found.name)


Warn: TypeAlias = Callable[[SparkLogError], None]


def log_warning(error: SparkLogError) -> None:
    """Log an error about skipped or lost data as a warning."""
    _logger.warning("%s", error.sentence)


def find_partitions(options: SparkLogOptions, warn: Warn = log_warning) -> list[PartitionDirectory]:
    """List the partitions that the options select, in order of topic and partition.

    A partition that Kafka has just created has no segment yet, and is skipped. *warn* is called for everything that is
    skipped because of `failOnDataLoss=false`.

    *Errors*: `CORDWOOD_NOT_FOUND` for a path that does not exist, and (with `failOnDataLoss`) for a path without a
    partition and for a missing topic or partition; `CORDWOOD_SEGMENT_GONE` (with `failOnDataLoss`) for a partition that
    lost its segments; `CORDWOOD_BAD_OPTION` for a partition under two of the paths.
    """
    found = [directory for path in options.paths for directory in _under(path, options, warn)]
    chosen = [directory for directory in found if _is_chosen(directory, options)]
    _check_once(chosen)
    missing = _missing(chosen, options)
    if missing:
        topics = ", ".join(sorted({directory.topic or directory.path for directory in found}))
        reason = f"no partition of {', '.join(missing)} under {', '.join(options.paths)}, found: {topics}"
        if options.fail_on_data_loss:
            raise SparkLogError(NOT_FOUND, reason + " (failOnDataLoss=false continues without it)")
        warn(SparkLogError(NOT_FOUND, reason + "; left out"))
    return sorted(chosen, key=lambda directory: (directory.topic or "", directory.partition or 0, directory.path))


def _check_once(chosen: Iterable[PartitionDirectory]) -> None:
    by_name: dict[object, PartitionDirectory] = {}
    for directory in chosen:
        is_named = directory.topic is not None
        key = (directory.topic, directory.partition) if is_named else os.path.realpath(directory.path)
        other = by_name.setdefault(key, directory)
        if other is not directory:
            reason = f"path: expected each partition once, found it at {other.path} and at {directory.path}"
            raise SparkLogError(BAD_OPTION, reason, topic=directory.topic, partition=directory.partition)


def _under(path: str, options: SparkLogOptions, warn: Warn) -> Iterator[PartitionDirectory]:
    """Yield the partition directories that one of the user's paths refers to."""
    local = local_path(path)
    if os.path.lexists(local) or not glob.has_magic(local):
        directories, found = [local], "none"
        wanted = "a directory with segments (a .log named by 20 digits), or one with such directories in it"
    else:
        matches = sorted(glob.glob(local))  # noqa: PTH207  (the pattern may be absolute)
        directories = [match for match in matches if Path(match).is_dir()]
        found = f"{len(directories)} matching directories without a partition that has segments"
        wanted = "directories"
        if not directories:
            raise SparkLogError(NOT_FOUND, f"{path}: expected {wanted}, found {_first_match(matches)}")
    partitions = [partition for directory in directories for partition in _partitions(directory, options, warn)]
    if not partitions:
        error = SparkLogError(NOT_FOUND, f"{path}: expected {wanted}, found {found}")
        if options.fail_on_data_loss:
            raise error
        warn(error)
    yield from partitions


def _first_match(files: list[str]) -> str:
    return _file_in_words(files[0]) if files else "no match"


def _partitions(path: str, options: SparkLogOptions, warn: Warn) -> Iterator[PartitionDirectory]:
    """Yield the partition directories with segments: the directory itself, or those in it."""
    directory = PartitionDirectory.at(path)
    try:
        if _has_segments(path):
            yield directory
            return
        data = _data_directory(path)
        if data:
            found = [PartitionDirectory.at(str(Path(path, name))) for name in data]
        elif data is None or directory.topic is not None:
            # a partition directory without a segment, or an empty directory that may be one
            data, found = cw.LogDir(Path(directory.path).parent), [directory]
        else:
            return
        for one in found:
            if _should_read(one, data, options, warn):
                yield one
    except SparkLogError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        wanted = "a data directory, a partition directory, or a glob of either, as this machine sees it"
        found_there = _file_in_words(path) if Path(path).is_file() else "no directory"
        raise SparkLogError(NOT_FOUND, f"{path}: expected {wanted}, found {found_there}") from error
    except (cw.CordwoodError, OSError) as error:
        raise SparkLogError.of(error) from error


def _data_directory(path: str) -> cw.LogDir | None:
    """Open a data directory; `None` if the path is a partition directory."""
    try:
        return cw.LogDir(path)
    except cw.ConfigError:
        # only the path is given, and only that of a partition is refused
        return None


def _should_read(directory: PartitionDirectory, data: cw.LogDir, options: SparkLogOptions, warn: Warn) -> bool:
    """Whether a partition of a data directory has segments. A partition that Kafka has just created has none yet.

    *Errors*: `CORDWOOD_SEGMENT_GONE` for a selected partition that lost its segments; with `failOnDataLoss=false` this
    is a warning.
    """
    try:
        if _has_segments(directory.path):
            return True
        if not _is_chosen(directory, options):
            return False
        data[Path(directory.path).name]
    except cw.CorruptLogError as error:
        reason = str(error.args[0])
    except (KeyError, FileNotFoundError):
        if directory.topic is not None or not Path(directory.path).is_dir():
            # just created, or deleted since it was listed
            return False
        reason = f"{directory.path}: expected a segment in a partition directory, found none"
    else:
        # its first segment has just been created
        return True
    if options.fail_on_data_loss:
        advice = "; failOnDataLoss=false continues without the partition"
        raise SparkLogError(SEGMENT_GONE, reason + advice, topic=directory.topic, partition=directory.partition)
    reason += "; left out"
    warn(SparkLogError(SEGMENT_GONE, reason, topic=directory.topic, partition=directory.partition))
    return False


def _file_in_words(path: str) -> str:
    file = Path(path)
    if not _is_segment_file(file.name):
        return f"the file {file.name}"
    return f"the file {file.name} of a segment: load its directory, {file.parent}"


def local_path(path: str) -> str:
    """Remove `file:` from a path. *Errors*: `CORDWOOD_BAD_OPTION` for another scheme."""
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
        existing = {(directory.topic, directory.partition) for directory in chosen}
        return [f"{topic}-{partition}" for topic, partition in sorted(options.assign - existing)]
    if options.subscribe is not None:
        return [topic for topic in options.subscribe if topic not in topics]
    if options.subscribe_pattern is not None and not chosen:
        internal = (
            "" if options.exclude_internal_topics is False else " (excludeInternalTopics=false reads internal ones)"
        )
        return [f"a topic like {options.subscribe_pattern}{internal}"]
    return []
