"""`cordwood verify`: check the files of partitions, and explain what is wrong."""

import json as json_module
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

import cordwood
from cordwood import Finding, Verification
from cordwood.cli.exit_codes import FAILED, UsageError
from cordwood.cli.kafka_load import Broker, finding_fields, print_kafka_loads
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.settings import PROPERTIES, SETTINGS
from cordwood.cli.terminal import print_line, print_text
from cordwood.quantities import bytes_in_words, several

__all__ = ["verify"]

_QUIET_SECONDS = 2.0
_STYLES = {"error": "red", "warning": "yellow", "info": ""}
# where these are the only errors, it is not known whether anything is damaged
_UNKNOWN = {frozenset({"unreadable"}): "not readable", frozenset({"batch_too_large"}): "not checked"}


def verify(  # noqa: PLR0913, PLR0917  (the options of the command)
    paths: Annotated[
        list[Path],
        typer.Argument(
            parser=parse_path, metavar="PATH…", help="Partition directories, data directories, or .log files."
        ),
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Also decode all records.")] = False,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Segments to verify at the same time.")] = 1,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            parser=parse_path,
            metavar="FILE",
            help="Note intact segments in this file, and skip those noted in it whose files are unchanged.",
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors and warnings only; with --as-kafka, only the verdict.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="After each finding, what Kafka would do and what to do.")
    ] = False,
    as_kafka: Annotated[
        bool, typer.Option("--as-kafka", help="Instead: what a broker does when it opens the partitions.")
    ] = False,
    clean: Annotated[
        bool | None,
        typer.Option(
            "--clean/--unclean",
            help="With --as-kafka: how the broker was stopped. By default as the marker in the data directory says.",
        ),
    ] = None,
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    json: Annotated[
        bool, typer.Option("--json", help="JSON lines: one for each finding, and a summary; or one for each partition.")
    ] = False,
) -> None:
    """Check partitions: structure, checksums, indexes, snapshots, epochs, checkpoints, names.

    Nothing is changed. A line for each finding: its severity, the rule, the file and position, the offsets, what was
    expected and what was found. An error means that records are damaged or missing, or that a file misleads Kafka; a
    warning, that something is missing or left over; info breaks no rule.

    --as-kafka prints what a broker of Kafka 4.3.1 does when it opens the partitions: the files that it cuts, deletes,
    rebuilds and writes, the records that it loses or hides, the errors that it accepts because it does not check for
    them, such as all damage of records after a clean shutdown, and the offsets of the log afterwards, or why it fails.
    For a data directory it ends with the verdict: whether a broker with it and those given beside it starts, or which
    files prevent it, and how many partitions it keeps. A broker renames partitions to -stray, and no longer serves
    them, if the metadata of the cluster does not have them, or has them on other brokers; give all data directories of
    a broker together, and those of several brokers one by one. After a crash, what a broker finds depends on the
    topic's index.interval.bytes: from --set, the topic's settings in the metadata or --properties, else from the
    existing indexes, else Kafka's default.

    \b
    cordwood verify /var/lib/kafka/orders-0             one partition
    cordwood verify /var/lib/kafka --threads 4          all partitions of a data directory
    cordwood verify orders-0 --explain                  what Kafka would do with each finding, and what to do
    cordwood verify /var/lib/kafka --resume done.jsonl  stop it with Ctrl-C, run it again: it continues
    cordwood verify orders-0 --json | jq -r 'select(.severity == "error") | .file'
    cordwood verify orders-0 --as-kafka --unclean       what a broker does with it after a crash
    cordwood verify /var/lib/kafka --as-kafka -q        whether a broker starts, and if not, why

    \b
    Exit codes: 0 intact (there may be warnings), 1 errors were found or a segment was not checked, 2 wrong usage,
    130 Ctrl-C.
    With --as-kafka: 0 the broker keeps all records (it may accept errors), 1 it cuts or hides some, takes a data
    directory offline or does not start, a partition cannot be read, or the data directories are of several brokers.
    """  # noqa: D301
    if as_kafka:
        if deep or threads != 1 or resume is not None or explain:
            others = "--deep, --threads, --resume or --explain"
            raise UsageError(f"--as-kafka: expected no {others} with it")
        broker = Broker(clean, assignments, properties, max_batch_bytes)
        if not print_kafka_loads(paths, broker=broker, quiet=quiet, json=json):
            raise typer.Exit(FAILED)
        return
    if clean is not None:
        raise UsageError("--clean and --unclean: expected --as-kafka with them")
    if properties is not None or assignments:
        raise UsageError("--set and --properties: expected --as-kafka with them")
    with _progress() as progress:
        found = cordwood.verify(
            [str(path) for path in paths],
            deep=deep,
            threads=threads,
            resume=None if resume is None else str(resume),
            progress=progress,
            max_batch_bytes=max_batch_bytes,
        )
    findings = [finding for finding in found.findings if not quiet or finding.severity != "info"]
    if json:
        for finding in findings:
            _print_line(finding_fields(finding))
        _print_line(_summary_fields(found))
    else:
        for finding in findings:
            _say(finding, explain=explain)
        print_text(_summary(found), style="bold")
    if not found.is_intact:
        raise typer.Exit(FAILED)


def _counts(found: Verification) -> dict[str, int]:
    severities = [finding.severity for finding in found.findings]
    return {severity: severities.count(severity) for severity in ("error", "warning", "info")}


def _summary_fields(found: Verification) -> dict[str, object]:
    counts = _counts(found)
    return {
        "summary": True,
        "is_intact": found.is_intact,
        "errors": counts["error"],
        "warnings": counts["warning"],
        "infos": counts["info"],
        "partitions": found.partitions,
        "segments_checked": found.segments_checked,
        "segments_skipped": found.segments_skipped,
        "bytes_checked": found.bytes_checked,
        "batches_checked": found.batches_checked,
        "deep": found.deep,
        "unprotected_leader_epochs": found.unprotected.leader_epochs,
        "unprotected_base_offsets": found.unprotected.base_offsets,
    }


def _summary(found: Verification) -> str:
    counts = _counts(found)
    errors = {finding.code for finding in found.findings if finding.severity == "error"}
    words = "intact" if found.is_intact else _UNKNOWN.get(frozenset(errors), "damaged")
    listed = [several(counts[severity], severity) for severity in ("error", "warning") if counts[severity]]
    listed += [several(counts["info"], "note")] if counts["info"] else []
    checked = (
        f"{several(found.segments_checked, 'segment')} of {several(found.partitions, 'partition')}, "
        f"{bytes_in_words(found.bytes_checked)} in {found.batches_checked:,} batches"
    )
    skipped = f"; {several(found.segments_skipped, 'segment')} verified before" if found.segments_skipped else ""
    is_limited = any(finding.code == "batch_too_large" for finding in found.findings)
    records = "with all records within --max-batch-bytes" if is_limited else "with all records"
    depth = records if found.deep else "records not decoded (--deep)"
    return f"{words}: {', '.join(listed) or 'no finding'}; checked {checked}, {depth}{skipped}"


def _say(finding: Finding, *, explain: bool) -> None:
    print_text(str(finding), style=_STYLES[finding.severity])
    if explain:
        print_text(f"    Kafka: {finding.kafka}")
        if finding.advice:
            print_text(f"    do: {finding.advice}")


def _print_line(fields: dict[str, object]) -> None:
    print_line(json_module.dumps(fields))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """After two seconds show the bytes that were verified, if stderr is a terminal."""
    # a closed stderr is None
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=sys.stderr), transient=True, redirect_stdout=False)
    task = bar.add_task("", total=None)
    start, shown = time.monotonic(), False

    def report(done: int, total: int) -> None:
        nonlocal shown
        bar.update(task, completed=done, total=total)
        if not shown and time.monotonic() - start > _QUIET_SECONDS:
            shown = True
            bar.start()

    try:
        yield report
    finally:
        if shown:
            bar.stop()
