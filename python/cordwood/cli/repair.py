"""`cordwood repair`: show what a repair of a damaged partition would change, or repair it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cordwood import Log, RepairPlan
from cordwood import repair as repair_partition
from cordwood.cli.exit_codes import FAILED
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import silent_log
from cordwood.cli.missing_segments import missing_in_words, missing_segments
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.settings import PROPERTIES, SETTINGS, settings_of
from cordwood.cli.terminal import Column, print_json, print_table, print_text

__all__ = ["repair"]

Policy = Literal["torn_tail", "kafka", "salvage"]

_ACTIONS: list[Column] = [("file", "left"), ("change", "text")]
_LOST: list[Column] = [("file", "left"), ("lost", "text")]


def repair(  # noqa: PLR0913, PLR0917  (its options)
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    policy: Annotated[Policy, typer.Option("--policy", help="What is repaired.")] = "torn_tail",
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    yes: Annotated[
        bool, typer.Option("--apply", "--yes", help="Repair the partition. Without this, only print the plan.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Repair a damaged partition. Without --apply, only print what would be changed and what would be lost.

    torn_tail cuts a torn write off the end of the log. Any other damage of a .log is an error.
    salvage takes damaged bytes out and keeps every intact batch. It corrects offsets, lengths and leader epochs where
    the checksum and the neighbouring batches determine them, and one wrong bit of a transaction's marker, and moves
    batches that are at a wrong place back.
    kafka cuts the log at the first damage and removes everything after it, as a broker does at a wrong checksum. Where
    a batch with a right checksum contradicts others, a broker usually keeps the log: the plan says so; prefer salvage.

    All of them rebuild wrong indexes, producer snapshots and leader epochs, and remove what an interrupted compaction
    or deletion left; .deleted files stay if their records may be nowhere else. The bytes that are taken out are kept in
    quarantine/. The index.interval.bytes of rebuilt indexes is taken from --set, the topic's settings in the metadata
    of the data directory or --properties, else from the existing indexes.

    \b
    cordwood repair orders-0                             print what would be changed
    cordwood repair orders-0 --policy salvage            and what would be lost
    cordwood repair orders-0 --policy salvage --apply    change it

    Exit codes: 0 nothing to repair, or repaired; 1 something to repair, or refused.
    """  # noqa: D301
    has_settings = properties is not None or assignments
    config = settings_of(path, properties, assignments).config if has_settings else None
    plan = repair_partition(
        path,
        policy=policy,
        config=config,
        dry_run=not yes,
        max_batch_bytes=max_batch_bytes,
    )
    if json:
        print_json(_document(plan))
    else:
        _say(plan, max_batch_bytes)
    if not (plan.is_clean or plan.is_applied):
        raise typer.Exit(FAILED)


def _document(plan: RepairPlan) -> dict[str, object]:
    return {
        "path": plan.path,
        "policy": plan.policy,
        "is_clean": plan.is_clean,
        "is_applied": plan.is_applied,
        "actions": [
            {
                "kind": action.kind,
                "file": action.file,
                "start_position": action.start_position,
                "end_position": action.end_position,
                "reason": action.reason,
                "quarantine": action.quarantine,
            }
            for action in plan.actions
        ],
        "lost_ranges": [
            {
                "file": lost.file,
                "start_position": lost.start_position,
                "end_position": lost.end_position,
                "start_offset": lost.start_offset,
                "end_offset": lost.end_offset,
                "reason": lost.reason,
                "quarantine": lost.quarantine,
            }
            for lost in plan.lost_ranges
        ],
        "lost_bytes": plan.lost_bytes,
        "kept_batches": plan.kept_batches,
        "kept_bytes": plan.kept_bytes,
        "segments": plan.segments,
        "log_end_offset": plan.log_end_offset,
        "kept_files": plan.kept_files,
        "foreign_files": plan.foreign_files,
        "has_clean_shutdown": plan.has_clean_shutdown,
    }


def _say(plan: RepairPlan, max_batch_bytes: int) -> None:
    for file in plan.kept_files:
        print_text(
            f"{file}: stays, because its records may be nowhere else; a broker deletes it; cordwood verify names its "
            "offsets, and how they can be read"
        )
    for file in plan.foreign_files:
        print_text(f"{file}: not a file of the log; a broker does not load the partition before you move it away")
    if plan.is_clean:
        print_text(f"{plan.path}: nothing to repair; the log ends at offset {plan.log_end_offset}")
        _say_missing(plan, max_batch_bytes)
        return
    words = "the repair changed these files" if plan.is_applied else "a repair would change these files"
    actions = [[Path(action.file).name, str(action).removeprefix(f"{action.file}: ")] for action in plan.actions]
    print_table(f"{plan.path}: {words}", _ACTIONS, actions)
    if plan.lost_ranges:
        lost = [[Path(lost.file).name, str(lost).removeprefix(f"{lost.file}: ")] for lost in plan.lost_ranges]
        print_table(f"lost: {plan.lost_bytes} bytes", _LOST, lost)
        if any(range_.quarantine for range_ in plan.lost_ranges):
            when = "" if plan.is_applied else " after the repair"
            folder = Path(plan.path) / "quarantine"
            print_text(f"cordwood carve {folder} finds whole batches in these bytes{when}, if there are any")
    kept = (
        f"{plan.kept_batches} batches are kept ({plan.kept_bytes} bytes); the log ends at offset {plan.log_end_offset}"
    )
    print_text(kept)
    if plan.has_clean_shutdown:
        removed = "was removed" if plan.is_applied else "would be removed first"
        print_text(
            f"{Path(plan.path).parent / '.kafka_cleanshutdown'} {removed}: at its next start the broker recovers all "
            "partitions of the data directory"
        )
    if plan.is_applied:
        _say_missing(plan, max_batch_bytes)
    else:
        print_text("nothing was written; add --apply to repair the partition", style="dim")


def _say_missing(plan: RepairPlan, max_batch_bytes: int) -> None:
    """Warn of offsets that no segment has."""
    with silent_log():
        gaps = missing_segments(Log(plan.path, max_batch_bytes=max_batch_bytes))
    for gap in gaps:
        text = missing_in_words(gap.start_offset, gap.end_offset)
        print_text(f"warning: {text}, which a repair cannot restore", style="yellow")
