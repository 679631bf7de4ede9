"""Data directories made of partitions of the corpus, and their rows as the oracle has them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pyarrow.parquet
from core.test_damaged import EXACT
from corpus import Expected, Partition
from pyspark.sql.pandas.types import to_arrow_schema
from spark.reading import KAFKA, kafka_row, struct

WITH_HEADERS = [*KAFKA, "headers"]
PLACE = ["topic", "partition", "offset"]
# the end of a range without a limit
NO_END = 1 << 62


@dataclass
class DataSet:
    """A data directory. The rows in Parquet have also `_stable`: whether a read_committed consumer gets them."""

    name: str
    path: Path
    parts: list[Partition]
    records: dict[Partition, list[Expected]]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def parquet(self) -> Path:
        return self.path.with_name(f"{self.name}.parquet")

    @property
    def topics(self) -> list[str]:
        return sorted({part.topic for part in self.parts})

    def size(self) -> int:
        """Bytes of the segment files."""
        return sum(file.stat().st_size for file in self.path.rglob("*.log"))

    def everything(self) -> list[tuple[Partition, Expected]]:
        return [(part, record) for part in self.parts for record in self.records[part]]

    def write(self) -> None:
        rows = [
            {
                **kafka_row(part, record),
                "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
                "_stable": record in stable,
            }
            for part in self.parts
            for stable in [stable_records(part)]
            for record in self.records[part]
        ]
        fields = [*to_arrow_schema(struct(*WITH_HEADERS), timezone="UTC"), pa.field("_stable", pa.bool_())]
        pa.parquet.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), self.parquet)


class Stable:
    """The records of a read_committed consumer, by offset."""

    def __init__(self, records: Iterable[Expected]) -> None:
        self.offsets = {record.offset for record in records}

    def __contains__(self, record: Expected) -> bool:
        return record.offset in self.offsets


def stable_records(part: Partition) -> Stable:
    return Stable(corpus.committed(part, part.opened["logEndOffset"]))


CASES = {
    "small": ["01-small", "15-one-record", "15-empty"],
    "segments": ["20-many-segments", "18-leaps"],
    "codecs": ["06-mixed-codecs"],
    "edges": ["07-edge-values"],
    "times": ["08-no-timestamps", "09-append-time", "17-v1-append-time"],
    "late": ["08-late-lz4"],
    "transactions": ["11-transactions", "14-killed-transactions"],
    "compacted": ["12-compacted", "12-compacted-codecs", "12-compacted-empty"],
    "trimmed": ["13-delete-records", "18-far-base"],
    "directory": ["16-data-dir"],
    "legacy": ["17-raised-and-lowered", "17-v0-gzip", "17-v1-lz4", "17-v0-none"],
    "followers": ["21-replica-follower"],
}
DAMAGED = ["flip-record", "length-zero", "flip-zstd", "flip-legacy"]


def copy(name: str, folder: Path, damaged: bool = False) -> DataSet:
    """One data directory with partitions of several cases, or the damaged ones."""
    path = folder / name
    path.mkdir()
    if damaged:
        (damage,) = [one for one in EXACT if one.name == name]
        shutil.copytree(damage.path, path / damage.path.name)
        found = DataSet(name, path, [damage.source], {damage.source: damage.survivors}, {"mode": "DROPMALFORMED"})
    else:
        parts = [part for part in corpus.partitions() if part.case in CASES[name]]
        starts = []
        for part in parts:
            shutil.copytree(part.path, path / part.name)
            if part.checkpointed_start is not None:
                starts.append(f"{part.topic} {part.number} {part.checkpointed_start}\n")
        (path / "log-start-offset-checkpoint").write_text(f"0\n{len(starts)}\n{''.join(starts)}")
        found = DataSet(name, path, parts, {part: corpus.visible(part) for part in parts})
    found.write()
    return found


def _log_start(part: Partition) -> int:
    return int(part.opened["logStartOffset"])


def _ranges_by_offset(data: DataSet, rng: random.Random) -> tuple[dict[str, Any], str]:
    options: dict[str, Any] = {"startingOffsets": {}, "endingOffsets": {}}
    conditions = []
    for part in data.parts:
        low, high = _log_start(part), part.opened["logEndOffset"]
        start, end = sorted((rng.randint(low, high), rng.choice([high, rng.randint(low, high)])))
        options["startingOffsets"].setdefault(part.topic, {})[str(part.number)] = start
        options["endingOffsets"].setdefault(part.topic, {})[str(part.number)] = end
        conditions.append(condition(part, start, end))
    return options, " or ".join(conditions)


def timed(data: DataSet) -> list[int]:
    return [record.timestamp for _, record in data.everything() if record.timestamp >= 0] or [0]


def condition(part: Partition, start: int, end: int) -> str:
    return f"(topic = '{part.topic}' and partition = {part.number} and offset >= {start}L and offset < {end}L)"


def _ranges_by_time(data: DataSet, rng: random.Random) -> tuple[dict[str, Any], str]:
    """From the first record at or after a time, to the first at or after another; without one, to or from the end."""
    times = timed(data)
    early, late = sorted(rng.choice(times) + rng.choice([-1, 0, 0, 1]) for _ in "12")
    options: dict[str, Any] = {"startingOffsetsByTimestampStrategy": "latest"}
    if rng.random() < 0.8:
        options["startingTimestamp"] = early
    if rng.random() < 0.8:
        options["endingTimestamp"] = late
    conditions = []
    for part in data.parts:
        found = corpus.visible(part, control=True)
        first = corpus.first_at_or_after(found, early)
        last = corpus.first_at_or_after(found, late)
        start = (first.offset if first else NO_END) if "startingTimestamp" in options else 0
        end = last.offset if last and "endingTimestamp" in options else NO_END
        conditions.append(condition(part, start, end))
    return options, " or ".join(conditions)


def _topics(data: DataSet, rng: random.Random) -> tuple[dict[str, Any], str]:
    chosen = rng.sample(data.topics, rng.randint(1, len(data.topics)))
    listed = ", ".join(f"'{topic}'" for topic in chosen)
    return {"subscribe": ",".join(chosen)}, f"topic in ({listed})"


def _partitions(data: DataSet, rng: random.Random) -> tuple[dict[str, Any], str]:
    chosen = rng.sample(data.parts, rng.randint(1, len(data.parts)))
    options: dict[str, list[int]] = {}
    for part in chosen:
        options.setdefault(part.topic, []).append(part.number)
    return {"assign": options}, " or ".join(condition(part, 0, NO_END) for part in chosen)


RANGES: list[Callable[[DataSet, random.Random], tuple[dict[str, Any], str]]] = [
    _ranges_by_offset,
    _ranges_by_time,
    _topics,
    _partitions,
]


@dataclass
class Reading:
    """The options of both sources, and of the rows in Parquet the columns and the condition."""

    options: dict[str, str]
    splits: dict[str, str]
    columns: list[str]
    condition: str


def reading(data: DataSet, rng: random.Random) -> Reading:
    """Random options. Both sources get them, apart from those of the splits, which the one in Python rarely gets."""
    options, columns, conditions = dict(data.options), list(KAFKA), ["true"]
    if rng.random() < 0.5 and not data.options:
        more, where = rng.choice(RANGES)(data, rng)
        options.update(more)
        conditions.append(f"({where})")
    if data.name == "edges" or rng.random() < 0.2:
        options["includeHeaders"] = True
        columns = list(WITH_HEADERS)
    if not data.options and rng.random() < (0.7 if data.name in {"transactions", "followers"} else 0.1):
        options[rng.choice(["isolationLevel", "kafka.isolation.level"])] = "read_committed"
        conditions.append("_stable")
    if rng.random() < 0.2:
        # headers are columns by their own option
        options.pop("includeHeaders", None)
        others = [name for name in KAFKA if name not in PLACE]
        columns = [*PLACE, *rng.sample(others, rng.randint(0, len(others)))]
        rng.shuffle(columns)
        options["columns"] = ",".join(columns)
    size = data.size()
    splits: dict[str, Any] = rng.choice(
        [
            {},
            {"maxPartitionBytes": 1 << 40},
            {"maxPartitionBytes": size // 3 + 1},
            {"maxPartitionBytes": size // 7 + 1},
            {"minPartitions": 3},
            {"minPartitions": 5, "maxBatchRows": 7},
            {"maxRecordsPerPartition": 200},
            {"maxBatchRows": 64, "io": "pread"},
        ]
    )
    return Reading(_texts(options), _texts(splits), columns, " and ".join(conditions))


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value) if isinstance(value, dict) else str(value) for name, value in options.items()}
