"""`cordwood apply-retention`: delete the segments that retention allows to delete."""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated

import typer

from cordwood import Log, LogConfig, LogWriter, RetentionPlan, Segment, plan_retention
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import opened
from cordwood.cli.moment import parse_time, with_unit
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.recover import say_changes
from cordwood.cli.settings import METADATA, PROPERTIES, SETTINGS, YES, settings_of
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.cli.zone import TZ, zone_of
from cordwood.quantities import bytes_in_words
from cordwood.times import FORMS, in_words

__all__ = ["apply_retention"]

_COLUMNS: list[Column] = [("base", "right"), ("end", "right"), ("size", "right"), ("largest time", "left")]


def apply_retention(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    metadata: Annotated[Path | None, METADATA] = None,
    now: Annotated[str | None, typer.Option(help=f"The time against which ages are measured: {FORMS}.")] = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    tz: Annotated[str | None, TZ] = None,
    yes: Annotated[bool, YES] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Delete the segments that retention allows to delete, oldest first. Without --yes, only print them.

    The settings are retention.ms (default 7 days, -1: no limit), retention.bytes (default -1: no limit) and
    cleanup.policy, as in Kafka. What --set and --properties do not name is taken from the topic's settings in
    __cluster_metadata-0 of the data directory; without it, from the defaults. The settings of a broker's own file,
    server.properties, are in no metadata: give it with --properties. In a Kafka data directory, retention.ms must be in
    one of these: nothing is deleted by the default. A log that shows compaction needs a cleanup.policy that is not
    only the default. The age of a segment is the age of its newest record.

    \b
    cordwood apply-retention orders-0 --set retention.ms=86400000          print what would be deleted
    cordwood apply-retention orders-0 --properties /etc/kafka/server.properties --yes
    cordwood apply-retention orders-0 --set retention.bytes=1073741824 --set retention.ms=-1 --now 2024-05-01T10:00Z
    """  # noqa: D301
    zone = zone_of(tz)
    found = settings_of(path, properties, assignments, metadata)
    config, source = found.config, found.source_of(["cleanup.policy", "retention.ms", "retention.bytes"])
    at = None if now is None else with_unit(parse_time("--now", now, zone, has_tz=True))
    log = opened(context, path, max_batch_bytes)
    plan = plan_retention(log, config, at)
    shown = _segments(log, plan, zone or UTC)
    if not yes:
        # the error with which a log is not opened for writing
        LogWriter.plan_recovery(path, config=config, max_batch_bytes=max_batch_bytes)
    else:
        with LogWriter(path, config=config, max_batch_bytes=max_batch_bytes) as writer:
            say_changes(writer.recovery)
            plan = writer.apply_retention(at)
    if json:
        document = {"path": log.path, "log_start_offset": plan.log_start_offset, "segments": plan.segments}
        document |= {"bytes": plan.bytes, "rolls": plan.rolls, "dry_run": not yes}
        print_json(document | {"settings": _limits(config), "source": source})
        return
    _say(log, config, plan, shown, dry_run=not yes)
    print_text(f"settings: {source}", style="dim")


def _segments(log: Log, plan: RetentionPlan, zone: tzinfo) -> list[list[str]]:
    return [
        [
            str(segment.base_offset),
            str(segment.end_offset),
            bytes_in_words(segment.size),
            _age(segment, zone),
        ]
        for segment in log.segments
        if segment.base_offset in plan.segments
    ]


def _age(segment: Segment, zone: tzinfo) -> str:
    """Format the time that retention uses: as in Kafka, the file's time if no record has a timestamp."""
    words = in_words(segment.largest_timestamp, zone)
    return words if segment.largest_record_timestamp >= 0 else f"{words} (the file's)"


def _limits(config: LogConfig) -> str:
    """Format the settings that determine which segments are deleted."""
    policy = config.cleanup_policy
    if "delete" not in policy.split(","):
        return f"cleanup.policy={policy or 'none'}, which deletes only segments below the log start offset"
    return f"retention.ms={config.retention_ms}, retention.bytes={config.retention_bytes}"


def _say(log: Log, config: LogConfig, plan: RetentionPlan, shown: list[list[str]], *, dry_run: bool) -> None:
    limits = _limits(config)
    if not plan.segments:
        print_text(f"{log.path}: no segment to delete with {limits}")
        return
    words = "would be deleted" if dry_run else "deleted"
    print_table(f"{log.path}: {words} with {limits}", _COLUMNS, shown)
    print_text(f"{bytes_in_words(plan.bytes)}; after that the log starts at {plan.log_start_offset}")
    if dry_run:
        print_text("nothing was written; add --yes to delete", style="dim")
