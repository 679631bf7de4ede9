"""`cordwood recover`: show what recovery of a log would change, or recover it."""

from pathlib import Path
from typing import Annotated

import typer

from cordwood import (
    FileChange,
    Log,
    LogWriter,
    RebuiltIndex,
    RecoveryCut,
    RecoveryPlan,
    SegmentSplit,
)
from cordwood._core import _wrong_writer_files
from cordwood.cli.exit_codes import say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import silent_log
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.settings import PROPERTIES, SETTINGS, interval_in_words, settings_of
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.quantities import several

__all__ = ["recover", "say_changes"]

_COLUMNS: list[Column] = [("file", "left"), ("change", "text")]


def recover(  # noqa: PLR0913, PLR0917  (its options)
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    yes: Annotated[bool, typer.Option("--yes", help="Recover the log. Without this, only print the plan.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Recover a log after a crash. Without --yes, only print what would be changed.

    Recovery cuts a torn write off the end of the log and keeps its bytes in quarantine/, rebuilds missing and wrong
    indexes, and finishes or undoes an interrupted compaction. Opening a log for writing does the same.

    The entries of an index depend on index.interval.bytes: from --set, the topic's settings in the metadata of the data
    directory or --properties, else that of the writer that closed the log, or from a broker's indexes, else Kafka's
    default.

    \b
    cordwood recover orders-0          print what would be changed
    cordwood recover orders-0 --yes    change it
    cordwood recover orders-0 --set index.interval.bytes=1024
    """  # noqa: D301
    config = settings_of(path, properties, assignments).config
    plan = LogWriter.plan_recovery(path, config=config, max_batch_bytes=max_batch_bytes)
    if plan.is_clean:
        # raises for a directory without a segment: opening it for writing would create a log
        Log(path, max_batch_bytes=max_batch_bytes)
    # an opening makes them again, which is not in the plan
    wrong_files = _wrong_writer_files(path)
    if yes and (not plan.is_clean or wrong_files):
        with silent_log(), LogWriter(path, config=config, max_batch_bytes=max_batch_bytes) as writer:
            done = writer.recovery
        # another process may have recovered the log after the first plan
        plan = done or LogWriter.plan_recovery(path, config=config, max_batch_bytes=max_batch_bytes)
    if json:
        print_json(_document(plan) | {"rewritten_files": wrong_files, "dry_run": not yes})
    else:
        _say(plan, wrong_files, dry_run=not yes)


def _document(plan: RecoveryPlan) -> dict[str, object]:
    return {
        "path": plan.path,
        "is_clean": plan.is_clean,
        "closed_cleanly": plan.closed_cleanly,
        "recovery_point": plan.recovery_point,
        "log_start_offset": plan.log_start_offset,
        "log_end_offset": plan.log_end_offset,
        "segments": plan.segments,
        "cuts": [
            {
                "file": cut.file,
                "start_position": cut.start_position,
                "end_position": cut.end_position,
                "start_offset": cut.start_offset,
                "end_offset": cut.end_offset,
                "reason": cut.reason,
                "quarantine": cut.quarantine,
            }
            for cut in plan.cuts
        ],
        "index_interval_bytes": plan.index_interval_bytes,
        "interval_source": plan.interval_source,
        "rebuilt_indexes": [{"file": index.file, "reason": index.reason} for index in plan.rebuilt_indexes],
        "file_changes": [
            {"file": change.file, "new_file": change.new_file, "reason": change.reason} for change in plan.file_changes
        ],
        "splits": [{"file": split.file, "base_offsets": split.base_offsets} for split in plan.splits],
        "kept_files": plan.kept_files,
        "rewrites_leader_epochs": plan.rewrites_leader_epochs,
    }


def _changes(plan: RecoveryPlan, *, with_warned: bool = True) -> list[list[str]]:
    """Return for each file that a recovery changes its name, and the change in words.

    *with_warned*: also the cuts of which a `LogWriter` warns when it makes them, those with bytes in quarantine.
    """
    entries: list[FileChange | RecoveryCut | SegmentSplit | RebuiltIndex]
    cuts = [cut for cut in plan.cuts if with_warned or cut.quarantine is None]
    entries = [*plan.file_changes, *cuts, *plan.splits, *plan.rebuilt_indexes]
    rows = [[Path(entry.file).name, str(entry).removeprefix(f"{entry.file}: ")] for entry in entries]
    if plan.rewrites_leader_epochs:
        rows.append(["leader-epoch-checkpoint", "rewritten: it disagrees with the batches"])
    return rows


def say_changes(recovery: RecoveryPlan | None) -> None:
    """Say what the opening of a log has changed, but for what it has warned of: a line for each kind of change."""
    if recovery is None:
        return
    files: dict[str, list[str]] = {}
    for file, change in _changes(recovery, with_warned=False):
        files.setdefault(change, []).append(file)
    for change, names in files.items():
        more = f" and {several(len(names) - 1, 'other file')}" if len(names) > 1 else ""
        say(f"opening the log changed {names[0]}{more}: {change}")
    if recovery.rebuilt_indexes:
        say(f"the indexes were rebuilt with {interval_in_words(recovery)}")


def _say(plan: RecoveryPlan, wrong_files: list[str], *, dry_run: bool) -> None:
    for file in plan.kept_files:
        print_text(f"{file}: stays, because its records may be nowhere else; a broker deletes it")
    ends = f"the log starts at offset {plan.log_start_offset} and ends at offset {plan.log_end_offset}"
    if plan.is_clean and not wrong_files:
        print_text(f"{plan.path}: nothing to recover; {ends}")
        return
    rows = _changes(plan) + [[Path(file).name, "written again: it cannot be read"] for file in wrong_files]
    words = "recovery would change these files" if dry_run else "recovery changed these files"
    interval = f" ({interval_in_words(plan)})" if plan.rebuilt_indexes else ""
    print_table(f"{plan.path}: {words}{interval}", _COLUMNS, rows)
    print_text(f"after recovery {ends}")
    if dry_run:
        print_text("nothing was written; add --yes to recover the log", style="dim")
