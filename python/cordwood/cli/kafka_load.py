"""What a broker would do when it opens partitions: `cordwood verify --as-kafka`."""

import json as json_module
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cordwood
from cordwood import ConfigError, CordwoodError, Finding, KafkaLoad, LoadAction, LogConfig
from cordwood._core import _directory_fates
from cordwood.cli.exit_codes import UsageError, error_in_words, say
from cordwood.cli.progress import elapsed
from cordwood.cli.settings import INTERVAL_SOURCES, settings_of
from cordwood.cli.start_verdict import (
    KEPT,
    Fate,
    Outcomes,
    Verdict,
    is_emptied,
    say_deleted,
    say_losses,
    say_verdicts,
)
from cordwood.cli.terminal import Column, print_line, print_table, print_text
from cordwood.properties import read
from cordwood.quantities import several

__all__ = ["Broker", "finding_fields", "print_kafka_loads"]

_COLUMNS: list[Column] = [("file", "left"), ("what the broker does", "text")]


@dataclass(frozen=True)
class Broker:
    """How a broker was stopped, if that is given, and the settings with which it starts."""

    clean: bool | None
    assignments: list[str] | None
    properties: Path | None
    max_batch_bytes: int

    def __post_init__(self) -> None:
        """Refuse settings that cannot be read, once and not for each partition."""
        if self.properties is not None:
            LogConfig.from_properties(read(self.properties))

    def plan(self, path: Path, clean: bool | None) -> KafkaLoad:
        """Return what it does when it opens a partition. *clean*: how it was stopped, for this partition."""
        is_given = self.properties is not None or self.assignments
        config = settings_of(path, self.properties, self.assignments).config if is_given else None
        return cordwood.plan_kafka_load(path, clean=clean, config=config, max_batch_bytes=self.max_batch_bytes)


def print_kafka_loads(paths: Sequence[Path], *, broker: Broker, quiet: bool, json: bool) -> bool:
    """Print the plan of each partition, and of each data directory whether a broker starts on it.

    Return whether all are loaded and no byte of a record is cut or hidden. Damage that a broker accepts is a warning;
    it loses nothing by itself. Of several partitions, one that cannot be read does not end the others. *quiet*:
    only the verdicts.
    """
    say_load = _nothing if quiet else _print_fields if json else _say
    said: set[str] = set()
    directories, partitions = _targets(paths)
    is_single = len(partitions) == 1 and not directories
    verdicts: list[Verdict] = []
    for directory in directories:
        with elapsed(f"reading {directory}"):
            findings = cordwood.verify(directory).findings
            fates = _fates(directory, directories, broker.properties)
        outcomes = Outcomes(has_metadata=any(fate.code == "metadata" for fate in fates.values()))
        for name, fate in fates.items():
            path = directory / name
            if fate.code in {"missing", "created"}:
                outcomes.missing += [(str(path.absolute()), fate.reason)] if fate.code == "missing" else []
                continue
            if fate.code == "offline":
                outcomes.is_offline = True
                continue
            if not path.is_dir():
                if fate.code == "no_leader":
                    # the partitions have the same reason
                    continue
                outcomes.refused.append((str(path.absolute()), fate.reason))
                continue
            # a broker recovers this log after any shutdown
            how = broker.clean if fate.code != "metadata" else False
            _load(path, partial(broker.plan, path, how), fate, findings, outcomes, say_load, said)
        verdicts.append(Verdict(directory, findings, outcomes))
    is_whole = say_verdicts(verdicts, json=json)
    outcomes = Outcomes()
    fates_of = _Surroundings()
    for partition in partitions:
        planned = partial(broker.plan, partition, broker.clean)
        _load(partition, planned, fates_of(partition), None, outcomes, say_load, said, is_single=is_single)
    if partitions and (quiet or (len(partitions) > 1 and not json)):
        if json:
            print_line(json_module.dumps({"summary": True, **outcomes.fields()}))
        else:
            print_text(str(outcomes), style="bold")
            say_losses(outcomes)
            say_deleted(outcomes)
    return is_whole and outcomes.is_whole


def _fates(directory: Path, directories: Sequence[Path], properties: Path | None) -> dict[str, Fate]:
    """Return what becomes of the directories in a data directory, one of several of a broker."""
    return {fate[0]: Fate(*fate[1:]) for fate in _directory_fates(directory, list(directories), properties)}


class _Surroundings:
    """What becomes of partitions that are given by themselves, by the metadata of the data directories around them."""

    def __init__(self) -> None:
        self._known: dict[Path, dict[str, Fate]] = {}

    def __call__(self, partition: Path) -> Fate:
        path = partition.absolute()
        if path.parent not in self._known:
            is_data_directory = cordwood.classify(path.parent).kind == "data_directory"
            fates = _fates(path.parent, [path.parent], None) if is_data_directory else {}
            # without it, the metadata may be in another data directory
            has_metadata = any(fate.code == "metadata" for fate in fates.values())
            self._known[path.parent] = fates if has_metadata else {}
        return self._known[path.parent].get(path.name, KEPT)


def _load(  # noqa: PLR0913, PLR0917  (one partition)
    path: Path,
    plan: Callable[[], KafkaLoad],
    fate: Fate,
    findings: Sequence[Finding] | None,
    outcomes: Outcomes,
    say_load: Callable[[KafkaLoad, Fate, Sequence[Finding]], None],
    said: set[str],
    *,
    is_single: bool = False,
) -> None:
    """Show the loading of a partition, as planned. *findings*: about its data directory, if they are known."""
    try:
        with elapsed(f"reading {path}"):
            load = plan()
            accepted = _accepted(load, findings)
    except (CordwoodError, OSError) as error:
        # of a data directory, only the partition's name can be wrong, or nothing says how the broker was
        # stopped
        if is_single or (isinstance(error, ConfigError) and findings is None):
            raise
        outcomes.unreadable += 1
        words = error_in_words(error, "verify")
        if words not in said:
            # the same for all partitions of folders that are not data directories
            said.add(words)
            say(words)
        if say_load is _print_fields:
            print_line(json_module.dumps({"path": str(path.absolute()), "error": words}))
        return
    outcomes.take(load, fate, accepted)
    say_load(load, fate, accepted)


def _nothing(_load: KafkaLoad, _fate: Fate, _accepted: Sequence[Finding]) -> None:
    """Print nothing of a partition."""


def _accepted(load: KafkaLoad, findings: Sequence[Finding] | None) -> list[Finding]:
    """Return the errors that are in the files after the loading: the broker does not check for them."""
    if load.failure is not None:
        return []
    cut = {action.file: action.new_size or 0 for action in load.actions if action.kind == "cut"}
    replaced = {action.file for action in load.actions if action.kind not in {"cut", "resize"}}

    def is_accepted(finding: Finding) -> bool:
        folder, name = os.path.split(finding.file)
        is_cut = name in cut and finding.position is not None and finding.position >= cut[name]
        is_error = finding.severity == "error" and not finding.stops_broker
        if is_emptied(finding):
            return is_error and finding.file == load.path
        return is_error and folder == load.path and name not in replaced and not is_cut

    return list(filter(is_accepted, cordwood.verify(load.path).findings if findings is None else findings))


def _targets(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the data directories, and the partition directories outside them, each once."""
    directories: dict[Path, Path] = {}
    partitions: dict[Path, Path] = {}
    for path in paths:
        kind = cordwood.classify(path).kind
        if kind not in {"data_directory", "partition"}:
            raise UsageError(f"{path}: --as-kafka expects a partition directory or a data directory")
        if kind == "data_directory":
            directories.setdefault(path.resolve(), path)
        else:
            partitions.setdefault(_resolved(path), path)
    outside = [path for resolved, path in partitions.items() if resolved.parent not in directories]
    return list(directories.values()), outside


def _resolved(partition: Path) -> Path:
    """Return the path without symbolic links but that of the partition, whose name counts."""
    path = partition.absolute()
    return path.parent.resolve() / path.name


def _print_fields(load: KafkaLoad, fate: Fate, accepted: Sequence[Finding]) -> None:
    print_line(json_module.dumps(_fields(load, fate, accepted)))


def _fields(load: KafkaLoad, fate: Fate, accepted: Sequence[Finding]) -> dict[str, object]:
    log, failure = load.log, load.failure
    return {
        "path": load.path,
        "fate": fate.code,
        "fate_reason": fate.reason or None,
        "closed_cleanly": load.closed_cleanly,
        "recovery_point": load.recovery_point,
        "log_start_offset": load.log_start_offset,
        "is_clean": load.is_clean,
        "bytes_cut": load.bytes_cut,
        "index_interval_bytes": load.index_interval_bytes,
        "interval_source": load.interval_source,
        "actions": [_action_fields(action) for action in load.actions],
        "lost_offsets": [
            {"start_offset": lost.start_offset, "end_offset": lost.end_offset, "is_hidden": lost.is_hidden}
            for lost in load.lost_offsets
        ],
        "warnings": [
            {"kind": warning.kind, "file": warning.file, "position": warning.position, "size": warning.size}
            for warning in load.warnings
        ],
        "accepted": list(map(finding_fields, accepted)),
        "failure": failure
        and {
            "kind": failure.kind,
            "exception": failure.exception,
            "file": failure.file,
            "reason": failure.reason,
            "takes_directory_offline": failure.takes_directory_offline,
        },
        "log": log
        and {
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "recovery_point": log.recovery_point,
            "last_stable_offset": log.last_stable_offset,
            "segments": [segment.base_offset for segment in log.segments],
            "leader_epochs": log.leader_epochs,
            "producer_ids": log.producer_ids,
        },
    }


def _action_fields(action: LoadAction) -> dict[str, object]:
    return {
        "kind": action.kind,
        "file": action.file,
        "new_file": action.new_file,
        "reason": action.reason,
        "old_size": action.old_size,
        "new_size": action.new_size,
        "is_changed": action.is_changed,
    }


def _say(load: KafkaLoad, fate: Fate, accepted: Sequence[Finding]) -> None:
    shutdown = "a clean" if load.closed_cleanly else "an unclean"
    source = INTERVAL_SOURCES[load.interval_source]
    interval = f"index.interval.bytes {load.index_interval_bytes}, {source}"
    title = f"{load.path}: a broker of Kafka 4.3.1 opens it after {shutdown} shutdown ({interval})"
    shown = [action for action in load.actions if action.is_changed or action.kind == "rename"]
    if shown:
        rows = [[action.file, str(action).removeprefix(f"{action.file}: ")] for action in shown]
        print_table(title, _COLUMNS, rows)
    else:
        print_text(f"{title}: no file changes")
    same = len(load.actions) - len(shown)
    if same:
        print_text(f"and writes {several(same, 'file')} with the same bytes", style="dim")
    for lost in load.lost_offsets:
        print_text(str(lost), style="red")
    for warning in load.warnings:
        print_text(str(warning), style="yellow")
    for finding in accepted:
        print_text(f"accepted at load: {finding}", style="yellow")
    if load.failure is not None:
        print_text(f"the loading fails: {load.failure}", style="red")
    elif load.log is not None:
        log = load.log
        print_text(
            f"afterwards the log starts at offset {log.log_start_offset} and ends at offset {log.log_end_offset}, "
            f"in {several(len(log.segments), 'segment')}"
        )
        if str(fate):
            print_text(str(fate), style="yellow")


def finding_fields(finding: Finding) -> dict[str, object]:
    """Return the attributes of a finding by name."""
    return {
        "severity": finding.severity,
        "code": finding.code,
        "file": finding.file,
        "position": finding.position,
        "end_position": finding.end_position,
        "start_offset": finding.start_offset,
        "end_offset": finding.end_offset,
        "expected": finding.expected,
        "found": finding.found,
        "evidence": finding.evidence,
        "stops_broker": finding.stops_broker,
        "takes_directory_offline": finding.takes_directory_offline,
        "kafka": finding.kafka,
        "advice": finding.advice,
    }
