"""The work of a task: read its pieces as Arrow batches of the schema."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import pyarrow as pa

import cordwood as cw
from cordwood.spark.errors import CORRUPT_BATCH, SEGMENT_GONE, UNSUPPORTED, SparkLogError
from cordwood.spark.log_cache import freeze_modules, open_cached
from cordwood.spark.offset_gaps import gap_in_words, is_compacted
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.schema import Shape
from cordwood.spark.segments import describe_segment
from cordwood.spark.split import Piece, part_of

__all__ = ["read_pieces"]

_logger = logging.getLogger("cordwood")

PLAN_AGAIN = "; load() again to read the current log, or set failOnDataLoss=false to skip the missing data"
"""Advice for a log that changed during a query."""

_ON_DAMAGE: dict[str, Literal["raise", "skip", "report"]] = {
    "FAILFAST": "raise",
    "DROPMALFORMED": "skip",
    "PERMISSIVE": "report",
}


def read_pieces(
    pieces: Iterable[Piece], options: SparkLogOptions, shape: Shape, advice: str = PLAN_AGAIN
) -> Iterator[pa.RecordBatch]:
    """Read pieces one after the other. *advice* is appended to the error for a log that changed after it was planned.

    *Errors*: `SparkLogError`; `CORDWOOD_SEGMENT_GONE` if the log differs from the plan, or has no segment for some of
    its offsets and is not compacted (with `failOnDataLoss=false` this is a warning, and the rest is read).
    """
    freeze_modules()
    seen: set[str] = set()
    for piece in pieces:
        # segment by segment if loss is allowed, so that a missing segment does not stop the others
        for part in (piece,) if options.fail_on_data_loss else _by_segment(piece):
            path = part.directory.path
            try:
                yield from _read(part, options, shape, advice, refresh=path not in seen)
            except SparkLogError as error:
                if options.fail_on_data_loss or error.code != SEGMENT_GONE:
                    raise
                _logger.warning("%s; left out", error.sentence)
            seen.add(path)


def _read(
    piece: Piece, options: SparkLogOptions, shape: Shape, advice: str, *, refresh: bool
) -> Iterator[pa.RecordBatch]:
    directory = piece.directory
    try:
        log = open_cached(directory.path, io=options.io, refresh=refresh)
        if options.table == "segments":
            batches = _description(piece, log, options)
        else:
            piece = piece if options.fail_on_data_loss else _remaining(piece, log)
            batches = _batches(piece, log, options, shape)
        for batch in batches:
            if batch.num_rows:
                yield shape.fill(batch, directory.topic, directory.partition)
        # after the records, because damage is an error of the scan
        if options.table != "segments":
            _check_gaps(piece, log, options)
    except SparkLogError:
        raise
    except cw.ConfigError as error:
        # all other arguments were checked when the query was planned
        reason = (
            f"expected a time that Spark's microseconds can hold, found {error.found}; leave the column timestamp out"
        )
        raise SparkLogError(UNSUPPORTED, reason, topic=directory.topic, partition=directory.partition) from error
    except pa.ArrowInvalid as error:
        # only times are cast to a type that may be too small
        reason = f"expected times that Spark's microseconds can hold: {error}"
        raise SparkLogError(UNSUPPORTED, reason, topic=directory.topic, partition=directory.partition) from error
    except (cw.CordwoodError, OSError) as error:
        # planned offsets and files existed, so they were removed
        is_gone = isinstance(error, cw.OffsetOutOfRangeError | FileNotFoundError)
        raised = _coded(error, piece, SEGMENT_GONE if is_gone else None)
        if options.fail_on_data_loss and isinstance(error, cw.LogChangedError):
            raised = SparkLogError(
                SEGMENT_GONE,
                raised.reason + advice,
                topic=directory.topic,
                partition=directory.partition,
                segment=raised.segment,
            )
        raise raised from error


def _coded(error: Exception, piece: Piece, code: str | None = None) -> SparkLogError:
    return SparkLogError.of(error, topic=piece.directory.topic, partition=piece.directory.partition, code=code)


def _description(piece: Piece, log: cw.Log, options: SparkLogOptions) -> Iterator[pa.RecordBatch]:
    """Describe the segment of a piece; no row if it is missing and loss is allowed."""
    [segment] = piece.split.segments
    if options.fail_on_data_loss:
        _compare(piece.split, log)
    else:
        _remaining(piece, log)
    yield describe_segment(log, segment.base_offset, "raise" if options.mode == "FAILFAST" else "skip")


def _batches(piece: Piece, log: cw.Log, options: SparkLogOptions, shape: Shape) -> Iterator[pa.RecordBatch]:
    split = piece.split
    on_damage = _ON_DAMAGE[options.mode]
    if options.table == "batches":
        if on_damage == "report":
            on_damage = "skip"
        _compare(split, log)
        scan = log.batches(start_offset=split.start_offset, end_offset=split.end_offset, on_damage=on_damage)
    else:
        scan = log.scan(
            split=split,
            columns=shape.core_columns,
            isolation_level=options.isolation_level,
            on_damage=on_damage,
            timestamp_unit="us",
            max_rows=options.max_batch_rows,
            max_bytes=options.max_batch_bytes,
        )
    rows = 0
    for batch in scan:
        damaged = batch.num_rows - batch.column("error").null_count if on_damage == "report" else 0
        if damaged:
            # the n-th row with an error describes the n-th range
            ranges = scan.damaged_ranges[rows : rows + damaged]
            rows += damaged
            yield _own_damage(batch, [_is_own(damage, piece, log) for damage in ranges])
        else:
            yield batch
    for damage in scan.damaged_ranges:
        if not _is_own(damage, piece, log):
            continue
        context = {"file": damage.file, "position": damage.start_position, "offset": damage.start_offset}
        reason = f"bytes {damage.start_position} to {damage.end_position} left out: {damage.reason}"
        _logger.warning("[%s] %s: %s", CORRUPT_BATCH, damage.file, reason, extra={"context": context})


def _is_own(damage: cw.DamagedRange, piece: Piece, log: cw.Log) -> bool:
    """Whether the piece reports a damaged range.

    The piece before reports a range that starts in it. A torn tail is the end of the data: a broker may be writing it.
    """
    start = piece.split.start_offset
    if damage.is_tail:
        return False
    if piece.is_first or damage.start_offset > start:
        return True
    place = (damage.file, damage.start_position)
    before = damage.start_offset < start or any(
        place == (other.file, other.start_position) for other in _damage_before(start, log)
    )
    return not before


def _own_damage(batch: pa.RecordBatch, is_own: list[bool]) -> pa.RecordBatch:
    """Keep the rows of records, and those with an error that are *is_own*, in their order."""
    kept = iter(is_own)
    is_damage = batch.column("error").is_valid().to_pylist()
    return batch.filter(pa.array([next(kept) if damage else True for damage in is_damage], pa.bool_()))


def _damage_before(start: int, log: cw.Log) -> list[cw.DamagedRange]:
    """Return the damaged ranges of a scan that ends at `start`."""
    if start <= log.log_start_offset:
        return []
    scan = log.scan(start_offset=start - 1, end_offset=start, columns=["offset"], on_damage="skip")
    for _ in scan:
        pass
    return scan.damaged_ranges


def _check_gaps(piece: Piece, log: cw.Log, options: SparkLogOptions) -> None:
    """Report gaps in the offsets, unless compaction may have removed them."""
    directory = piece.directory
    for gap in log.offset_gaps(piece.split.start_offset, piece.split.end_offset):
        if is_compacted(log, options):
            return
        reason = f"expected segments without a gap in a log that is not compacted, found {gap_in_words(gap)}"
        if options.fail_on_data_loss:
            reason += "; failOnDataLoss=false reads the rest, cleanupPolicy=compact declares the log compacted"
        error = SparkLogError(
            SEGMENT_GONE, reason, topic=directory.topic, partition=directory.partition, segment=gap.segment_base_offset
        )
        if options.fail_on_data_loss:
            raise error
        _logger.warning("%s", error.sentence)


def _compare(split: cw.Split, log: cw.Log) -> None:
    """Compare the log with a plan, as the scan of a split does, without reading.

    *Errors*: `LogChangedError` if a planned segment was removed, shortened or replaced.
    """
    start = max(split.start_offset, min(log.log_start_offset, split.end_offset))
    log.scan(split=cw.Split(split.path, start, split.end_offset, segments=split.segments))


def _remaining(piece: Piece, log: cw.Log) -> Piece:
    """Warn of changes after the plan, and return the piece from the log start on, without the planned segments."""
    try:
        _compare(piece.split, log)
    except cw.LogChangedError as error:
        # compaction may have merged the segment into another one, which has its remaining records
        _logger.warning("%s", _coded(error, piece).sentence)
    split, directory = piece.split, piece.directory
    start = max(split.start_offset, log.log_start_offset)
    if start > split.start_offset:
        reason = f"offsets {split.start_offset} to {start} were deleted after it was planned; left out"
        gone = SparkLogError(SEGMENT_GONE, reason, topic=directory.topic, partition=directory.partition)
        _logger.warning("%s", gone.sentence)
    left = cw.Split(split.path, min(start, split.end_offset), split.end_offset, size=split.size, aborted=split.aborted)
    return replace(piece, split=left)


def _by_segment(piece: Piece) -> Iterator[Piece]:
    split = piece.split
    bases = [segment.base_offset for segment in split.segments]
    starts = [split.start_offset, *bases[1:]]
    ends = [*bases[1:], split.end_offset]
    for segment, start, end in zip(split.segments, starts, ends, strict=True):
        is_first = piece.is_first and start == split.start_offset
        yield Piece(piece.directory, part_of(split, start, end, segment.size), is_first)
