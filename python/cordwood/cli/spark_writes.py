"""`cordwood spark-writes`: show the writes of Spark that were interrupted, or undo one."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cordwood import classify
from cordwood.cli.exit_codes import FAILED, UsageError
from cordwood.cli.path import parse_path
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.times import in_words

if TYPE_CHECKING:
    from cordwood.spark.write.undo import UnfinishedWrite, WrittenPartition

__all__ = ["spark_writes"]

_WRITES: list[Column] = [
    ("write", "left"),
    ("state", "left"),
    ("begun", "left"),
    ("topics", "text"),
    ("partitions", "right"),
    ("records", "right"),
]
_PARTITIONS: list[Column] = [("partition", "left"), ("offsets", "left"), ("records", "right"), ("undo", "text")]


def spark_writes(
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A data directory.")],
    undo: Annotated[str | None, typer.Option(help="The id of the write to undo.")] = None,
    yes: Annotated[
        bool, typer.Option("--apply", "--yes", help="Undo the write. Without this, only print what would be removed.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Show the writes of Spark's sink that are not finished; with --undo, remove what one has left in the logs.

    A write whose driver is killed while it commits leaves records that readers see, until the next write to the
    directory takes them back. --undo does that at once: each partition is truncated to where it ended before the write,
    with the locks of all its partitions. A partition in which other records follow is not changed: the records of the
    write stay visible there, and later writes continue after them. Where the records of the write cannot be told from
    others, as while its staged records are out of reach, nothing is removed, and the write is not ended: repeat it.

    States: interrupted; running: a process has a lock of the partitions, and nothing can be undone; committed: it
    counts, and the next write deletes the older records that it replaces.

    \b
    cordwood spark-writes data                        print the writes
    cordwood spark-writes data --undo 0f3a…           print what would be removed
    cordwood spark-writes data --undo 0f3a… --apply   remove it

    Exit codes: 0 no interrupted write, or undone; 1 an interrupted write, or records of it stay, or it is not ended.
    """  # noqa: D301
    if path.is_dir() and classify(path).kind == "partition":
        expected = "a data directory, with the directories of partitions"
        raise UsageError(f"path: expected {expected}, found {path}, which is the directory of one: give its parent")
    # the sink is in the package for Spark, but needs no Spark here
    from cordwood.spark.write.undo import undo_write, unfinished_writes  # noqa: PLC0415

    if undo is None:
        if yes:
            raise UsageError("--apply: expected --undo with the id of a write")
        found = unfinished_writes(path)
        _list(path, found, json=json)
        if any(write.state == "interrupted" for write in found):
            raise typer.Exit(FAILED)
        return
    write = undo_write(path, undo, dry_run=not yes)
    _say(write, json=json, is_applied=yes)
    if not write.is_undone or any(_stays(one) for one in write.partitions):
        raise typer.Exit(FAILED)


def _stays(one: "WrittenPartition") -> bool:
    """Whether records of the write, or what may be such, stay in a partition."""
    return one.is_kept and (one.records > 0 or one.error is not None)


def _document(write: "UnfinishedWrite") -> dict[str, object]:
    return {**asdict(write), "topics": write.topics, "records": write.records}


def _list(path: Path, found: "list[UnfinishedWrite]", *, json: bool) -> None:
    if json:
        print_json({"path": str(path), "writes": [_document(write) for write in found]})
        return
    if not found:
        print_text(f"{path}: no unfinished write of Spark")
        return
    rows = [
        [
            write.id,
            write.state,
            in_words(write.begun_ms),
            ", ".join(write.topics),
            str(len(write.partitions)),
            str(write.records),
        ]
        for write in found
    ]
    print_table(f"{path}: writes of Spark that are not finished", _WRITES, rows)


def _say(write: "UnfinishedWrite", *, json: bool, is_applied: bool) -> None:
    if json:
        print_json(_document(write))
        return
    words = "an undo would change these partitions"
    if is_applied:
        words = "the write was undone" if write.is_undone else "not all of the write was undone; it is not ended"
    rows = [
        [f"{one.topic}-{one.partition}", f"{one.start_offset} to {one.end_offset}", str(one.records), _undo_of(one)]
        for one in write.partitions
    ]
    print_table(f"{write.id}: {words}", _PARTITIONS, rows)
    if not is_applied:
        print_text("nothing was written; add --apply to undo the write", style="dim")
    elif not write.is_undone:
        print_text(
            "when the cause is removed, repeat the command for the partitions that are not changed; to keep their "
            f"records and end the write, remove {write.file}"
        )


def _undo_of(one: "WrittenPartition") -> str:
    if one.error is not None:
        return f"not changed: the records of the write cannot be told from others ({one.error})"
    if one.is_kept:
        kept = "its records stay, because" if one.records else "no record of the write;"
        return f"not changed: {kept} {one.others} of others follow"
    return f"truncated to offset {one.start_offset}" if one.records else "no record of the write"
