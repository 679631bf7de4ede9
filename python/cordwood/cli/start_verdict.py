"""Whether a broker starts on data directories, and what becomes of their partitions: `cordwood verify --as-kafka`."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from cordwood import Finding, KafkaLoad
from cordwood._core import _other_directories
from cordwood.cli.exit_codes import say
from cordwood.cli.terminal import print_line, print_text
from cordwood.quantities import several

__all__ = ["KEPT", "Fate", "Outcomes", "Verdict", "is_emptied", "say_deleted", "say_losses", "say_verdicts"]


class Fate(NamedTuple):
    """What becomes of a directory that a broker can load."""

    code: Literal[
        "kept",
        "metadata",
        "stray",
        "unserved",
        "no_leader",
        "deleted",
        "set_aside",
        "refused",
        "offline",
        "missing",
        "created",
    ]
    expected: str = ""
    found: str = ""

    @property
    def reason(self) -> str:
        """What a broker expects and finds; empty if it finds what it expects."""
        return f"expected {self.expected}, found {self.found}" if self.expected else ""

    def __str__(self) -> str:
        """Return what the broker does, and why."""
        words = {
            "kept": "",
            "metadata": "",
            "stray": "the broker renames the directory to -stray, and serves none of its records",
            "unserved": "the broker serves none of its records",
            "no_leader": "it gets no leader on this broker, which serves none of its records",
            "deleted": "the broker deletes the directory, because of its name",
            "set_aside": "the broker leaves the directory because of its name: it serves none of its records",
            "refused": "the broker does not start with it",
            "offline": "the broker takes the data directory offline",
            "missing": "the broker creates an empty partition in its place",
            "created": "the broker creates the partition",
        }[self.code]
        return f"{words}: {self.reason}" if self.reason else words


KEPT = Fate("kept")


@dataclass
class Outcomes:
    """What becomes of the partitions of one data directory, or of those that are given by themselves.

    Directories that are deleted or were set aside before are not partitions.
    """

    kept: int = 0
    losses: list[tuple[str, str]] = field(default_factory=list)
    strays: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    fatal: list[tuple[str, str]] = field(default_factory=list)
    """Those failures that end a broker whatever other data directories it has."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    deleted: list[tuple[str, str]] = field(default_factory=list)
    unreadable: int = 0
    hides_records: bool = False
    has_metadata: bool = False
    """Whether the metadata log of the cluster is in it."""
    is_offline: bool = False
    """Whether a broker looks at nothing in it, because it cannot load `meta.properties`."""

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        named = (self.losses, self.strays, self.failures, self.missing)
        return self.kept + sum(map(len, named)) + self.unreadable

    @property
    def is_whole(self) -> bool:
        """Whether all partitions keep all records."""
        return not (self.losses or self.failures or self.missing or self.unreadable or self.hides_records)

    def __str__(self) -> str:
        """Return the numbers of partitions in words."""
        others = [
            f"{count:,} {words}"
            for count, words in (
                (len(self.losses), "with records lost or hidden"),
                (len(self.strays), "renamed to -stray"),
                (len(self.failures), "not loaded"),
                (len(self.missing), "missing"),
                (self.unreadable, "cannot be read"),
            )
            if count
        ]
        return ", ".join([f"{several(self.partitions, 'partition')}: {self.kept:,} kept as they are", *others])

    def fields(self) -> dict[str, object]:
        """Return the numbers of partitions by name."""
        return {
            "partitions": self.partitions,
            "whole": self.kept,
            "lossy": len(self.losses),
            "stray": len(self.strays),
            "failed": len(self.failures),
            "missing": len(self.missing),
            "unreadable": self.unreadable,
        }

    def take(self, load: KafkaLoad, fate: Fate, accepted: Sequence[Finding]) -> None:
        """Count a directory that was planned. *accepted*: the errors in it that a broker accepts."""
        if fate.code == "refused":
            self.refused.append((load.path, fate.reason))
        if load.failure is None:
            self.deleted += [
                (str(Path(load.path) / action.file), several(action.old_size, "byte"))
                for action in load.actions
                if action.reason == "deleted" and action.file.endswith(".log.deleted") and action.old_size
            ]
        if load.failure is not None:
            failure = (str(Path(load.path) / (load.failure.file or "")), str(load.failure))
            self.failures.append(failure)
            self.fatal += [] if load.failure.takes_directory_offline else [failure]
        elif fate.code in {"deleted", "set_aside"}:
            pass
        elif fate.code == "stray":
            self.strays.append((load.path, fate.reason))
            self.hides_records |= _has_records(load)
        elif lost := _losses(load, fate, accepted):
            self.losses.append((load.path, "; ".join(lost)))
        else:
            self.kept += 1


@dataclass
class Verdict:
    """Whether a broker starts on a data directory."""

    directory: Path
    findings: Sequence[Finding]
    outcomes: Outcomes
    others: list[Verdict] = field(default_factory=list)
    """Those of the further data directories of the same broker."""

    def _stopping(self) -> list[Finding]:
        """Return the findings that prevent it, but those of partitions, of which the plans say more."""
        left_out = {"load_fails"}
        if not self.outcomes.has_metadata and any(other.outcomes.has_metadata for other in self.others):
            # a broker reads bootstrap.checkpoint only beside the metadata log
            left_out.add("metadata_snapshot_damaged")
        return [finding for finding in self.findings if finding.stops_broker and finding.code not in left_out]

    def reasons(self) -> dict[str, str]:
        """Return what prevents it, by file."""
        reasons = {finding.file: f"expected {finding.expected}, found {finding.found}" for finding in self._stopping()}
        for file, reason in [*self.outcomes.refused, *self.outcomes.failures]:
            reasons.setdefault(file, reason)
        return reasons

    def fatal(self) -> dict[str, str]:
        """Return the reasons that prevent it also on other data directories: the others take this one offline."""
        if self.outcomes.has_metadata:
            # a broker ends without the metadata log
            return self.reasons()
        if self.outcomes.is_offline:
            return {}
        files = {file for file, _ in [*self.outcomes.refused, *self.outcomes.fatal]}
        files |= {finding.file for finding in self._stopping() if not finding.takes_directory_offline}
        return {file: reason for file, reason in self.reasons().items() if file in files}

    def elsewhere(self) -> dict[str, str]:
        """Return the reasons in the other data directories that prevent it on this one."""
        reasons: dict[str, str] = {}
        for other in self.others:
            reasons |= other.fatal()
        return reasons

    @property
    def is_left_out(self) -> bool:
        """Whether a broker starts on the other data directories, and serves no partition of this one."""
        ends = self.elsewhere() or self.fatal() or all(other.reasons() for other in self.others)
        return bool(self.reasons()) and not ends

    def __str__(self) -> str:
        """Return the verdict in one line."""
        alone = "these data directories" if self.others else "this data directory alone"
        start = f"{self.directory}: a broker of Kafka 4.3.1 with {alone}"
        if self.is_left_out:
            return f"{start} starts without this one, and serves none of its partitions"
        return f"{start} {'does not start' if self.reasons() or self.elsewhere() else 'starts'}; {self.outcomes}"


def is_emptied(finding: Finding) -> bool:
    """Whether the finding is that files show records of a partition of which there is no segment."""
    return finding.code == "no_segment"


def _losses(load: KafkaLoad, fate: Fate, accepted: Sequence[Finding]) -> list[str]:
    """Return which records of a partition a broker cuts or hides, in words."""
    # a segment that is cut may be deleted afterwards
    lost = list(dict.fromkeys(map(str, load.lost_offsets)))
    if load.bytes_cut and not lost:
        lost.append(f"{several(load.bytes_cut, 'byte')} of the log are cut")
    if fate.code in {"unserved", "no_leader"}:
        lost.append(str(fate))
    emptied = [f"expected {finding.expected}, found {finding.found}" for finding in accepted if is_emptied(finding)]
    return lost or emptied


def _has_records(load: KafkaLoad) -> bool:
    log = load.log
    return bool(load.lost_offsets or load.bytes_cut) or (log is not None and log.log_end_offset > log.log_start_offset)


def say_verdicts(verdicts: Sequence[Verdict], *, json: bool) -> bool:
    """Print the verdicts, one for all directories of a broker. Return whether all start, with all records."""
    directories = [verdict.directory for verdict in verdicts]
    for verdict in verdicts:
        others = set(map(Path, _other_directories(verdict.directory, directories)))
        verdict.others = [other for other in verdicts if other.directory in others]
    is_whole = True
    for verdict in verdicts:
        is_whole &= _say_verdict(verdict, json=json) and verdict.outcomes.is_whole
    if any(len(verdict.others) + 1 < len(verdicts) for verdict in verdicts):
        say(
            "by meta.properties, these data directories are not all of one broker: no broker starts with all of them "
            "(verify those of each broker by themselves)"
        )
        return False
    return is_whole


def _say_verdict(verdict: Verdict, *, json: bool) -> bool:
    """Print whether a broker starts on a data directory, and the files that prevent it. Return whether it does."""
    outcomes = verdict.outcomes
    own = verdict.reasons()
    reasons = own | verdict.elsewhere()
    if json:
        fields = {
            "path": str(verdict.directory.absolute()),
            "other_directories": [str(other.directory.absolute()) for other in verdict.others],
            "starts": not reasons,
            "is_left_out": verdict.is_left_out,
            "reasons": [{"file": file, "reason": reason} for file, reason in reasons.items()],
            "losses": [{"file": file, "reason": reason} for file, reason in outcomes.losses],
            "strays": [{"file": file, "reason": reason} for file, reason in outcomes.strays],
            "missing_directories": [{"file": file, "reason": reason} for file, reason in outcomes.missing],
            "deleted_files": [file for file, _ in outcomes.deleted],
            **outcomes.fields(),
        }
        print_line(json_module.dumps({"summary": True, **fields}))
        return not reasons
    print_text(str(verdict), style="bold")
    for file, reason in own.items():
        print_text(f"{file}: {reason}", style="red")
    for finding in verdict.findings:
        if finding.code == "other_owner":
            print_text(f"unless the broker runs as root: {finding}", style="yellow")
    say_losses(outcomes)
    for file, reason in outcomes.strays:
        print_text(f"{file} is renamed to -stray: {reason}", style="yellow")
    for file, reason in outcomes.missing:
        print_text(f"{file} is missing, and becomes an empty partition: {reason}", style="red")
    say_deleted(outcomes)
    return not reasons


def say_losses(outcomes: Outcomes) -> None:
    """Print the partitions of which a broker cuts or hides records."""
    for path, lost in outcomes.losses:
        print_text(f"{path}: {lost}", style="red")


def say_deleted(outcomes: Outcomes) -> None:
    """Print the segments that a broker deletes because of their names."""
    for file, size in outcomes.deleted:
        print_text(f"{file}: the broker deletes it, {size}, because of its name", style="yellow")
