"""`cordwood transactions`: transactional ids of `__transaction_state`, and the transactions that logs show as open."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import cordwood
from cordwood.cli.declared import Argument, Option
from cordwood.cli.exit_codes import NothingFoundError, UsageError, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES, MAX_BATCH_BYTES_OPTION
from cordwood.cli.path import parse_path
from cordwood.cli.progress import elapsed
from cordwood.cli.tables import (
    MOST_MESSAGES,
    FormatOption,
    JsonOption,
    OnDamageOption,
    OutputOption,
    Shown,
    list_in_words,
    time_in_words,
    write,
)
from cordwood.quantities import several

__all__ = ["transactions"]

_TOPIC = "__transaction_state"


def transactions(  # noqa: PLR0913, PLR0917  (a command's options)
    paths: Annotated[
        list[Path],
        Argument(
            parser=parse_path,
            metavar="PATH…",
            help="Data directories, such as all of a broker, or partition directories.",
        ),
    ],
    transactional_id: Annotated[
        list[str] | None, Option("--id", help="Only this transactional id. Can be repeated.")
    ] = None,
    open_: Annotated[
        bool,
        Option("--open", help="The transactions without a marker in the logs themselves."),
    ] = False,
    topic: Annotated[list[str] | None, Option(help="With --open: only this topic. Can be repeated.")] = None,
    abort: Annotated[
        int | None,
        Option("--abort", metavar="PRODUCER_ID", help="Abort the open transaction of this producer in a partition."),
    ] = None,
    yes: Annotated[bool, Option("--yes", help="With --abort: write the marker. Without this, only print it.")] = False,
    on_damage: OnDamageOption = "raise",
    max_batch_bytes: Annotated[int, Option(**MAX_BATCH_BYTES_OPTION)] = DEFAULT_MAX_BATCH_BYTES,
    output_format: FormatOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """List transactional ids and their states, or the open transactions of logs.

    \b
    cordwood transactions /var/lib/kafka             transactional ids, from __transaction_state
    cordwood transactions /var/lib/kafka --open      what holds back read_committed consumers, in every partition
    cordwood transactions /var/lib/kafka/orders-0    the same for one partition
    cordwood transactions orders-0 --abort 1002      print what would be aborted; with --yes, abort it

    --abort is for a log that no broker has open; for others there is kafka-transactions.sh abort.

    For a partition of another topic than __transaction_state, the open transactions are listed also without --open.
    Transactions whose records were all deleted are named after them. A transaction hangs if it is older than its
    timeout (15 minutes if that is not known) and its coordinator, in __transaction_state, does not know that it is open
    in this partition: no marker will come. The column is empty if not all partitions of __transaction_state are in
    these data directories. If damage may have destroyed the marker of an open transaction, its notes say so, and the
    exit code is
    1. It is also 1 if a partition cannot be read: the others are listed.
    """  # noqa: D301
    named = [cordwood.classify(path).topic for path in paths]
    is_open = open_ or abort is not None or not {None, _TOPIC}.issuperset(named)
    if is_open and transactional_id:
        raise UsageError("--id is for the ids in __transaction_state, which other logs do not have: leave out --id")
    if yes and abort is None:
        raise UsageError("--yes has an effect only with --abort")
    if abort is not None:
        if topic or output_format is not None or output is not None:
            raise UsageError("--abort is for one partition and prints no table: leave out --topic, --format and -o")
        if len(paths) > 1:
            raise UsageError("--abort is for one partition: give one partition directory")
        _abort(paths[0], abort, max_batch_bytes, yes=yes, json=json)
        return
    if topic and not is_open:
        raise UsageError("--topic has an effect only with --open")
    if topic and None in named:
        _check_topics(topic, [path for path, of_path in zip(paths, named, strict=True) if of_path is None])
    with elapsed(f"reading {' '.join(map(str, paths))}"):
        if is_open:
            table = cordwood.open_transactions(
                paths, topics=topic, on_damage=on_damage, max_batch_bytes=max_batch_bytes
            )
            shown = _OPEN
            is_partition = len(paths) == 1 and named[0] is not None
            deleted = _deleted_if_known(paths[0], table, max_batch_bytes) if is_partition else []
        else:
            table = cordwood.transactions(
                paths, transactional_ids=transactional_id, on_damage=on_damage, max_batch_bytes=max_batch_bytes
            )
            shown, deleted = _IDS, []
    _say_deleted(deleted)
    remarks = _unread(table) if is_open else []
    write(table, shown, paths=paths, json_lines=json, output_format=output_format, output=output, remarks=remarks)


def _check_topics(topics: list[str], directories: list[Path]) -> None:
    known = sorted({name for directory in directories for name in cordwood.LogDir(directory).topics})
    unknown = next((name for name in topics if name not in known), None)
    if unknown is not None:
        where = ", ".join(map(str, directories))
        raise NothingFoundError(f"{where}: no topic {unknown!r}; there are {', '.join(known) or 'none'}")


def _abort(path: Path, producer_id: int, max_batch_bytes: int, *, yes: bool, json: bool) -> None:
    """Append an ABORT marker, or print what it would end."""
    # not needed for a list
    from cordwood.cli.terminal import print_json, print_text  # noqa: PLC0415

    if cordwood.classify(path).kind == "data_directory":
        raise UsageError(f"--abort needs one partition directory, found the data directory {path}")
    rows = cordwood.open_transactions(path, max_batch_bytes=max_batch_bytes).to_dicts()
    row = next((row for row in rows if row["producer_id"] == producer_id), None)
    if row is None:
        row = next((row for row in _deleted(path, rows, max_batch_bytes) if row["producer_id"] == producer_id), None)
    if row is None:
        others = ", ".join(str(row["producer_id"]) for row in rows if row["producer_id"] is not None)
        raise NothingFoundError(
            f"{path}: producer {producer_id} has no open transaction; producers with one: {others or 'none'}"
        )
    names = ("producer_id", "producer_epoch", "first_offset", "last_offset", "records")
    document = {"path": str(path.absolute()), **{name: row[name] for name in names}, "marker_offset": None}
    if not yes:
        # the error with which a log is not opened for writing
        cordwood.LogWriter.plan_recovery(path, max_batch_bytes=max_batch_bytes)
    else:
        # imported here: it needs typer
        from cordwood.cli.recover import say_changes  # noqa: PLC0415

        with cordwood.LogWriter(path, max_batch_bytes=max_batch_bytes) as writer:
            say_changes(writer.recovery)
            document["marker_offset"] = writer.abort_transaction(producer_id).first_offset
    document["dry_run"] = not yes
    if json:
        print_json(document)
        return
    records = several(row["records"], "record") if row["records"] else "whose records were all deleted"
    offsets = f"from offset {row['first_offset']} to {row['last_offset']}"
    what = f"the transaction of producer {producer_id} {offsets}, {records}"
    if yes:
        print_text(f"{path}: aborted {what}; its marker is at offset {document['marker_offset']}")
    else:
        print_text(f"{path}: would abort {what}")
        print_text("nothing was written; add --yes to abort it", style="dim")


def _deleted(path: Path, rows: list[dict[str, Any]], max_batch_bytes: int) -> list[dict[str, Any]]:
    """Return the open transactions whose records are all below the log start offset. *rows*: those with records."""
    names = ("producer_id", "producer_epoch", "first_offset", "last_offset")
    known = {row["producer_id"] for row in rows}
    opened = cordwood.LogWriter._open_transactions(path, max_batch_bytes)  # noqa: SLF001
    found = [dict(zip(names, one, strict=True)) for one in opened]
    return [row | {"records": 0} for row in found if row["producer_id"] not in known]


def _deleted_if_known(path: Path, table: cordwood.Table, max_batch_bytes: int) -> list[dict[str, Any]]:
    """Return `_deleted`; nothing of a log that another process writes, or that a writer would not open."""
    with suppress(cordwood.CordwoodError, OSError):
        start = cordwood.Log(path, max_batch_bytes=max_batch_bytes).log_start_offset
        # others can be missing from the table because of damage
        return [
            row
            for row in _deleted(path, table.to_dicts(), max_batch_bytes)
            if max(row["first_offset"], row["last_offset"] or 0) < start
        ]
    return []


def _say_deleted(rows: list[dict[str, Any]]) -> None:
    """Name the open transactions whose records were all deleted. They hold back no reader of this library."""
    for row in rows:
        say(
            f"producer {row['producer_id']}: the records of its open transaction, from offset {row['first_offset']} to "
            f"{row['last_offset']}, were all deleted; compaction, and read_committed consumers of a broker, stop at "
            f"the log start until it is ended, with --abort {row['producer_id']}"
        )


def _unread(table: cordwood.Table) -> list[str]:
    """Return the errors of partitions that could not be read."""
    rows = table.to_dicts()
    errors = [row["error"] for row in rows if row["producer_id"] is None and row["first_offset"] is None]
    more = len(errors) - MOST_MESSAGES
    return errors[:MOST_MESSAGES] + ([f"and {several(more, 'more error')}"] if more > 0 else [])


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _id_row(row: dict[str, Any]) -> list[str]:
    partitions = [f"{topic['topic']}-{list_in_words(topic['partitions'])}" for topic in row["partitions"] or []]
    return [
        *(_text(row[name]) for name in ("transactional_id", "producer_id", "producer_epoch", "state", "timeout_ms")),
        time_in_words(row["start_time"]),
        time_in_words(row["last_update_time"]),
        row["error"] or " ".join(partitions),
    ]


def _age(since: int | None) -> str:
    if since is None:
        return ""
    minutes = max(0, int(time.time() * 1000) - since) // 60_000
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min"


def _open_row(row: dict[str, Any]) -> list[str]:
    names = ("producer_id", "producer_epoch", "first_offset", "last_offset", "records")
    return [
        f"{row['topic']}-{row['partition']}" if row["topic"] is not None else "",
        *(_text(row[name]) for name in names),
        time_in_words(row["start_time"]),
        _age(row["start_time"]),
        _text(row["transactional_id"]),
        _text(row["state"]),
        *(_text(row[name]) for name in ("last_stable_offset", "records_behind")),
        {None: "", True: "yes", False: "no"}[row["is_hanging"]],
        row["error"] or "",
    ]


def _count(rows: list[dict[str, Any]], name: str) -> int:
    """Return the number of rows that are not only an error."""
    return sum(row[name] is not None for row in rows)


_IDS = Shown(
    title=lambda rows: several(_count(rows, "transactional_id"), "transactional id"),
    columns=[
        ("transactional id", "left"),
        ("producer", "right"),
        ("epoch", "right"),
        ("state", "left"),
        ("timeout ms", "right"),
        ("started", "left"),
        ("updated", "left"),
        ("partitions", "text"),
    ],
    row=_id_row,
    nothing="there is no transactional id here that --id selects",
)
_OPEN = Shown(
    title=lambda rows: several(_count(rows, "producer_id"), "open transaction"),
    columns=[
        ("partition", "left"),
        ("producer", "right"),
        ("epoch", "right"),
        ("first offset", "right"),
        ("last offset", "right"),
        ("records", "right"),
        ("first batch", "left"),
        ("age", "right"),
        ("transactional id", "left"),
        ("state", "left"),
        ("LSO", "right"),
        ("behind it", "right"),
        ("hangs", "left"),
        ("notes", "text"),
    ],
    row=_open_row,
    nothing="no open transaction has records here",
)
