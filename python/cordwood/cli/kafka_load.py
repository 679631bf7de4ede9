"""What a broker would do when it opens partitions: `cordwood verify --as-kafka`."""

import json as json_module
import os
from collections.abc import Sequence
from pathlib import Path

import cordwood
from cordwood import ConfigError, CordwoodError, Finding, KafkaLoad, LoadAction, LogDir
from cordwood.cli.exit_codes import UsageError, error_in_words, say
from cordwood.cli.progress import elapsed
from cordwood.cli.terminal import Column, print_line, print_table, print_text
from cordwood.quantities import several

__all__ = ["finding_fields", "print_kafka_loads"]

_COLUMNS: list[Column] = [("file", "left"), ("what the broker does", "text")]


def print_kafka_loads(paths: Sequence[Path], *, clean: bool | None, json: bool) -> bool:
    """Print the plan of each partition. Return whether all are loaded and no byte of a record is cut or hidden.

    Damage that a broker accepts is a warning; it loses nothing by itself. Of several partitions, one that cannot be
    read does not end the others.
    """
    is_whole = True
    partitions = _partitions(paths)
    for path in partitions:
        try:
            with elapsed(f"reading {path}"):
                load = cordwood.plan_kafka_load(path, clean=clean)
                accepted = _accepted(load)
        except (CordwoodError, OSError) as error:
            if len(partitions) == 1 or isinstance(error, ConfigError):
                raise
            is_whole = False
            words = error_in_words(error, "verify")
            say(words)
            if json:
                print_line(json_module.dumps({"path": str(path.absolute()), "error": words}))
            continue
        is_whole &= load.failure is None and not load.lost_offsets and load.bytes_cut == 0
        if json:
            print_line(json_module.dumps(_fields(load, accepted)))
        else:
            _say(load, accepted)
    return is_whole


def _accepted(load: KafkaLoad) -> list[Finding]:
    """Return the errors that are in the files after the loading: the broker does not check for them."""
    if load.failure is not None:
        return []
    cut = {action.file: action.new_size or 0 for action in load.actions if action.kind == "cut"}
    replaced = {action.file for action in load.actions if action.kind not in {"cut", "resize"}}

    def is_accepted(finding: Finding) -> bool:
        folder, name = os.path.split(finding.file)
        is_cut = name in cut and finding.position is not None and finding.position >= cut[name]
        return finding.severity == "error" and folder == load.path and name not in replaced and not is_cut

    return list(filter(is_accepted, cordwood.verify(load.path).findings))


def _partitions(paths: Sequence[Path]) -> list[Path]:
    """Return the partition directories, each once; of a data directory the live and future ones."""
    found: dict[str, Path] = {}
    for path in paths:
        kind = cordwood.classify(path).kind
        if kind == "data_directory":
            directories = [path / name for name in LogDir(path, include=["future"])]
        elif kind == "partition":
            directories = [path]
        else:
            raise UsageError(f"{path}: --as-kafka expects a partition directory or a data directory")
        found |= {str(directory.absolute()): directory for directory in directories}
    return list(found.values())


def _fields(load: KafkaLoad, accepted: Sequence[Finding]) -> dict[str, object]:
    log, failure = load.log, load.failure
    return {
        "path": load.path,
        "closed_cleanly": load.closed_cleanly,
        "recovery_point": load.recovery_point,
        "log_start_offset": load.log_start_offset,
        "is_clean": load.is_clean,
        "bytes_cut": load.bytes_cut,
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


def _say(load: KafkaLoad, accepted: Sequence[Finding]) -> None:
    shutdown = "a clean" if load.closed_cleanly else "an unclean"
    title = f"{load.path}: a broker of Kafka 4.3.1 opens it after {shutdown} shutdown"
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
        "kafka": finding.kafka,
        "advice": finding.advice,
    }
