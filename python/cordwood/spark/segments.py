"""The row of a segment in `table=segments`."""

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

import cordwood as cw
from cordwood.spark.offset_gaps import offsets_in_gaps

__all__ = ["describe_segment"]


def describe_segment(log: cw.Log, base_offset: int, on_damage: Literal["raise", "skip"]) -> pa.RecordBatch:
    """Describe the segment at `base_offset`: its batch headers, and the state of its indexes.

    Returns no row if the segment no longer exists.
    """
    segment = log.segments.floor(base_offset)
    if segment is None or segment.base_offset != base_offset:
        return pa.RecordBatch.from_pylist([], schema=_SCHEMA)
    following = log.segments.higher(base_offset)
    end = log.log_end_offset if following is None else following.base_offset
    scan = log.batches(
        start_offset=min(max(base_offset, log.log_start_offset), end), end_offset=end, on_damage=on_damage
    )
    count = 0
    records: int | None = 0
    first = largest = None
    codecs: set[str] = set()
    for batch in scan:
        count += batch.num_rows
        counts = batch.column("count")
        if records is not None:
            data = counts.filter(pc.invert(batch.column("is_control")))
            records = None if counts.null_count else records + (pc.sum(data).as_py() or 0)
        codecs.update(pc.unique(batch.column("codec")).to_pylist())
        if count == batch.num_rows and not batch.column("delete_horizon")[0].is_valid:
            first = _milliseconds(batch.column("base_timestamp"))[0].as_py()
        times = (largest, pc.max(_milliseconds(batch.column("max_timestamp"))).as_py())
        largest = max((time for time in times if time is not None), default=None)
    index, time_index = segment.offset_index, segment.time_index
    entries = None if index is None else len(index)
    row = {
        "segment_base_offset": base_offset,
        "end_offset": segment.end_offset,
        "offset_gap": offsets_in_gaps(log, base_offset, end),
        "bytes": segment.size,
        "batches": count,
        "records": records,
        "first_timestamp": first,
        "largest_timestamp": largest,
        "codecs": sorted(codecs),
        "index_entries": entries,
        "time_index_entries": None if time_index is None else len(time_index),
        "bytes_per_index_entry": segment.size / entries if entries else None,
        "index_state": _state(segment),
        # without a torn tail: a broker may be writing it
        "damaged_bytes": sum(
            damage.end_position - damage.start_position
            for damage in scan.damaged_ranges
            if damage.end_offset is not None
        ),
    }
    return pa.RecordBatch.from_pylist([row], schema=_SCHEMA)


def _milliseconds(times: pa.Array) -> pa.Array:
    # as integers, because a datetime cannot hold every time
    return times.cast(pa.int64())


_TIME = pa.timestamp("ms", tz="UTC")
_SCHEMA = pa.schema(
    {
        "segment_base_offset": pa.int64(),
        "end_offset": pa.int64(),
        "offset_gap": pa.int64(),
        "bytes": pa.int64(),
        "batches": pa.int64(),
        "records": pa.int64(),
        "first_timestamp": _TIME,
        "largest_timestamp": _TIME,
        "codecs": pa.list_(pa.string()),
        "index_entries": pa.int64(),
        "time_index_entries": pa.int64(),
        "bytes_per_index_entry": pa.float64(),
        "index_state": pa.string(),
        "damaged_bytes": pa.int64(),
    }
)


def _state(segment: cw.Segment) -> str:
    """Return `ok`, or the problem of each index."""
    wrong = []
    for name, index in (("index", segment.offset_index), ("timeindex", segment.time_index)):
        if index is None:
            wrong.append(f"{name} missing")
            continue
        try:
            index.sanity_check()
        except cw.CorruptLogError as error:
            wrong.append(f"{name} {error.found}")
    return ", ".join(wrong) or "ok"
