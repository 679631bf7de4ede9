"""`cordwood recover`: show what recovery of a log changes, or recover it."""

from pathlib import Path
from typing import Annotated

import typer

from cordwood import LogWriter, RecoveryPlan
from cordwood.cli.settings import PROPERTIES, SETTINGS, settings
from cordwood.cli.terminal import Column, bytes_in_words, print_json, print_table, print_text

__all__ = ["recover"]

_COLUMNS: list[Column] = [("change", "left"), ("file", "left"), ("details", "text")]

_REBUILT = {
    "missing": "the file is missing",
    "untrimmed": "the file is longer than its entries",
    "differs": "the entries differ from the batches",
}
_CHANGED = {
    "staged": "a temporary file of a truncation that did not finish",
    "uncommitted": "a compaction or a split did not finish",
    "replaced": "a compaction or a split replaces it",
    "committed": "a compaction or a split is committed",
    "emptied": "all records of the log were being removed",
}


def recover(
    path: Annotated[Path, typer.Argument(help="A partition's directory.")],
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Recover the log. Without this, only print the plan.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Recover a log after a crash. Without --yes, only print what would be changed.

    Recovery cuts a torn write from the end of the log and keeps the bytes in quarantine/, rebuilds indexes that are
    missing or wrong, and finishes or undoes a compaction that was interrupted. Opening a log for writing does the same.

    \b
    cordwood recover orders-0          print what would be changed
    cordwood recover orders-0 --yes    change it
    """  # noqa: D301
    config = settings(properties, assignments)
    plan = LogWriter.plan_recovery(path, config=config)
    if yes:
        with LogWriter(path, config=config) as writer:
            # the log may have changed since it was planned
            plan = writer.recovery or plan
    if json:
        print_json(_document(plan) | {"dry_run": not yes})
        return
    _say(plan, dry_run=not yes)


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
        "rebuilt_indexes": [{"file": index.file, "reason": index.reason} for index in plan.rebuilt_indexes],
        "file_changes": [
            {"file": change.file, "new_file": change.new_file, "reason": change.reason} for change in plan.file_changes
        ],
        "splits": [{"file": split.file, "base_offsets": split.base_offsets} for split in plan.splits],
        "rewrites_leader_epochs": plan.rewrites_leader_epochs,
    }


def _rows(plan: RecoveryPlan) -> list[list[str]]:
    rows = []
    for change in plan.file_changes:
        if change.new_file is None:
            rows.append(["delete", Path(change.file).name, _CHANGED[change.reason]])
        else:
            details = f"to {Path(change.new_file).name}: {_CHANGED[change.reason]}"
            rows.append(["rename", Path(change.file).name, details])
    for cut in plan.cuts:
        kept = "only zeros" if cut.quarantine is None else f"kept in quarantine/{Path(cut.quarantine).name}"
        where = f"positions {cut.start_position} to {cut.end_position} ({bytes_in_words(cut.size)})"
        if cut.start_position == 0:
            where = f"the whole segment ({bytes_in_words(cut.size)})"
        details = f"{where}, from offset {cut.start_offset} on: {cut.reason}; {kept}"
        rows.append(["cut", Path(cut.file).name, details])
    for split in plan.splits:
        bases = ", ".join(str(base) for base in split.base_offsets)
        rows.append(["split", Path(split.file).name, f"into segments with the base offsets {bases}"])
    rows += [["rebuild", Path(index.file).name, _REBUILT[index.reason]] for index in plan.rebuilt_indexes]
    if plan.rewrites_leader_epochs:
        rows.append(["rewrite", "leader-epoch-checkpoint", "it disagrees with the batches"])
    return rows


def _say(plan: RecoveryPlan, *, dry_run: bool) -> None:
    ends = f"the log starts at offset {plan.log_start_offset} and ends at offset {plan.log_end_offset}"
    if plan.is_clean:
        print_text(f"{plan.path}: nothing to recover; {ends}")
        return
    words = "recovery would change these files" if dry_run else "recovery changed these files"
    print_table(f"{plan.path}: {words}", _COLUMNS, _rows(plan))
    print_text(f"after recovery {ends}")
    if dry_run:
        print_text("nothing was written; add --yes to recover the log", style="dim")
