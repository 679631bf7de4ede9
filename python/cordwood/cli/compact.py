"""`cordwood compact`: keep only the last record of each key."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cordwood import CompactedSegment, Compaction, LogConfig, LogWriter, plan_compaction
from cordwood._core import _is_in_data_directory
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import opened
from cordwood.cli.moment import parse_time, with_unit
from cordwood.cli.path import parse_path
from cordwood.cli.progress import elapsed
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.recover import say_changes
from cordwood.cli.settings import METADATA, PROPERTIES, SETTINGS, Settings, settings_of
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.cli.zone import TZ_OF_INPUT, zone_of
from cordwood.quantities import bytes_in_words
from cordwood.times import FORMS

__all__ = ["compact"]

_COLUMNS: list[Column] = [
    ("segment", "right"),
    ("records", "right"),
    ("remain", "right"),
    ("size", "right"),
    ("remains", "right"),
    ("becomes", "left"),
]
_YES = typer.Option("--yes", help="Compact. Without this, only print what would remain.")
_MEMORY = typer.Option(
    "--dedupe-buffer-bytes",
    metavar="BYTES",
    min=48,
    help="Memory for the keys of a pass, 24 bytes for each. [default: 128 MiB]",
)
_NAMES = [
    "cleanup.policy",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
]
"""The settings that decide what is removed."""

_BOUNDS = {
    "active_segment": "where the active segment begins",
    "open_transaction": "where a segment with an open transaction begins",
    "young_records": "where a segment with a record younger than min.compaction.lag.ms begins",
}


def compact(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    metadata: Annotated[Path | None, METADATA] = None,
    now: Annotated[str | None, typer.Option(help=f"The time against which ages are measured: {FORMS}.")] = None,
    tz: Annotated[str | None, TZ_OF_INPUT] = None,
    memory: Annotated[int | None, _MEMORY] = None,
    threads: Annotated[int, typer.Option(min=1, help="How many threads decompress and compress batches.")] = 1,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    yes: Annotated[bool, _YES] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Compact a log: keep only the last record of each key. Without --yes, only print what would remain.

    It does what Kafka's log cleaner does, once: it rewrites the segments before the active one without records whose
    key a later record has, without records that have no key, and without records of aborted transactions. A tombstone
    (a record without a value) is removed delete.retention.ms after the compaction that first kept it. Offsets do not
    change.

    The settings are cleanup.policy (compact, unless --properties or the topic's settings say otherwise; in a Kafka
    data directory, one of them must say it), min.cleanable.dirty.ratio (default 0.5: nothing is done if a smaller part
    of the log is dirty), min.compaction.lag.ms, max.compaction.lag.ms, delete.retention.ms, segment.bytes,
    segment.index.bytes and index.interval.bytes, as in Kafka. What --set and --properties do not name is taken from the
    topic's settings in __cluster_metadata-0 of the data directory; without it, from the defaults. Use the settings that
    the log was written with.

    \b
    cordwood compact profiles-0                                      print what would remain
    cordwood compact profiles-0 --set min.cleanable.dirty.ratio=0 --yes
    cordwood compact profiles-0 --properties topic.properties --threads 4 --yes
    """  # noqa: D301
    found = settings_of(path, properties, assignments, metadata)
    config = _compacting(path, found)
    at = None if now is None else with_unit(parse_time("--now", now, zone_of(tz), has_tz=True))
    log = opened(context, path, max_batch_bytes)
    with elapsed(f"compacting {path}" if yes else f"reading {path}"):
        if yes:
            with LogWriter(path, config=config, max_batch_bytes=max_batch_bytes) as writer:
                say_changes(writer.recovery)
                passes = [writer.compact(at, memory, threads)]
                while passes[-1].is_due and not passes[-1].is_complete:
                    passes.append(writer.compact(at, memory, threads))
        else:
            passes = [plan_compaction(log, config, at, memory, threads)]
            # the error with which a log is not opened for writing
            LogWriter.plan_recovery(path, config=config, max_batch_bytes=max_batch_bytes)
    source = found.source_of(_NAMES)
    if "cleanup.policy" not in found.sources:
        source += "; cleanup.policy=compact by this command, although nobody stated that the topic is compacted"
    if json:
        document = {"path": log.path, "dry_run": not yes, "passes": [_document(one) for one in passes]}
        print_json(document | {"source": source})
        return
    for one in passes:
        _say(log.path, config, one, dry_run=not yes)
    print_text(f"settings: {source}", style="dim")
    if not yes and passes[-1].is_due:
        print_text("nothing was written; add --yes to compact", style="dim")


def _compacting(path: Path, found: Settings) -> LogConfig:
    """Return the settings with a policy that compacts; refuse one that does not, and none in a Kafka data directory."""
    policy = found.config.cleanup_policy
    if "compact" in policy.split(","):
        return found.config
    if "cleanup.policy" not in found.sources and not _is_in_data_directory(path):
        return replace(found.config, cleanup_policy="compact")
    raise UsageError(
        f"cleanup.policy: expected compact, found {policy or 'none'} (settings: "
        f"{found.source_of(['cleanup.policy'])}); --set cleanup.policy=compact compacts the log nevertheless"
    )


def _document(compaction: Compaction) -> dict[str, object]:
    names = ["state", "first_dirty_offset", "first_uncleanable_offset", "bound", "clean_bytes", "cleanable_bytes"]
    names += ["dirty_ratio", "end_offset", "is_complete", "keys"]
    of_segment = ["base_offset", "new_base_offset", "bytes_before", "bytes_after", "records_before", "records_after"]
    segments = [{name: getattr(segment, name) for name in of_segment} for segment in compaction.segments]
    return {name: getattr(compaction, name) for name in names} | {"segments": segments}


def _say(path: str, config: LogConfig, compaction: Compaction, *, dry_run: bool) -> None:
    dirty = f"{compaction.dirty_ratio:.0%} of {bytes_in_words(compaction.clean_bytes + compaction.cleanable_bytes)}"
    bound = _BOUNDS[compaction.bound]
    end = compaction.first_uncleanable_offset
    match compaction.state:
        case "clean":
            print_text(f"{path}: nothing to compact below offset {end}, {bound}")
            return
        case "below_ratio":
            limit = f"min.cleanable.dirty.ratio={config.min_cleanable_dirty_ratio:g}"
            print_text(f"{path}: not compacted: {dirty} is dirty, which is not above {limit}")
            return
    words = "would be compacted" if dry_run else "compacted"
    start = compaction.first_dirty_offset
    why = f"{dirty} is dirty" if compaction.state == "dirty" else "a record is older than max.compaction.lag.ms"
    print_table(f"{path}: {words}: {why}, from offset {start}", _COLUMNS, _rows(compaction.segments))
    before = sum(segment.bytes_before for segment in compaction.segments)
    after = sum(segment.bytes_after for segment in compaction.segments)
    print_text(f"{bytes_in_words(before)} become {bytes_in_words(after)}; clean up to offset {compaction.end_offset}")
    if compaction.is_complete:
        print_text(f"the end is {bound}", style="dim")
    else:
        print_text(f"the memory is full after {compaction.keys} keys: another pass follows, up to {end}", style="dim")


def _rows(segments: list[CompactedSegment]) -> list[list[str]]:
    return [
        [
            str(segment.base_offset),
            str(segment.records_before),
            str(segment.records_after),
            bytes_in_words(segment.bytes_before),
            bytes_in_words(segment.bytes_after),
            "" if segment.base_offset == segment.new_base_offset else f"part of {segment.new_base_offset}",
        ]
        for segment in segments
    ]
