"""The golden partitions and the results of Kafka's own classes for them.

Everything here is read from ``tests/golden``; nothing is computed by the tested code. The naive oracles at the end
(`first_at_or_after`, `visible`, `committed`) are linear searches in the expected records.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent.parent / "golden"

TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
KILLED = ("14-killed", "14-killed-preallocated-log", "14-killed-transactions")


@lru_cache(maxsize=16)
def lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file, plain or gzipped."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def unbase64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


@dataclass(frozen=True)
class Expected:
    """One record as Kafka reads it, with its batch."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    sequence: int
    is_control: bool
    batch: dict[str, Any]
    control: dict[str, Any] | None


@dataclass(frozen=True)
class Partition:
    """One partition directory of the corpus."""

    case: str
    name: str
    path: Path
    expected: Path
    checkpointed_start: int | None

    def __str__(self) -> str:
        return f"{self.case}/{self.name}"

    @property
    def topic(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def number(self) -> int:
        return int(self.name.rpartition("-")[2])

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of a file of expected results; empty if the file does not exist."""
        path = self.expected / name
        return lines(path) if path.exists() else []

    @cached_property
    def bases(self) -> list[int]:
        return [line["segment"] for line in self.lines("records.jsonl.gz") if line["type"] == "segment"]

    @cached_property
    def first_base(self) -> int:
        return min(self.bases)

    @cached_property
    def log_start(self) -> int:
        return self.first_base if self.checkpointed_start is None else self.checkpointed_start

    @cached_property
    def opened(self) -> dict[str, Any]:
        """Kafka's result of a clean open; of recovery if a clean open fails or is not comparable."""
        answers = [line for line in self.lines("open.jsonl.gz") if line["ok"]]
        clean = [line for line in answers if line["clean"]]
        return clean[0] if clean and self.case not in KILLED else next(a for a in answers if not a["clean"])

    @property
    def overrides(self) -> dict[str, int]:
        """Arguments of `Log` that make every record of the files visible."""
        return {} if self.checkpointed_start is None else {"log_start_offset": self.first_base}


@cache
def manifest() -> dict[str, Any]:
    return json.loads((GOLDEN / "MANIFEST.json").read_text(encoding="utf-8"))


@cache
def cases() -> dict[str, dict[str, Any]]:
    return {case["case"]: case for case in manifest()["cases"]}


@cache
def partitions() -> tuple[Partition, ...]:
    """Every partition of the intact cases, in the order of the manifest."""
    found = []
    for name, case in cases().items():
        if name.startswith("damaged/"):
            continue
        for part in case["partitions"]:
            folder = GOLDEN / name / "expected"
            found.append(
                Partition(
                    case=name,
                    name=part["dir"],
                    path=GOLDEN / name / part["dir"],
                    expected=folder / part["dir"] if len(case["partitions"]) > 1 else folder,
                    checkpointed_start=part["checkpoints"].get("log_start_offset"),
                )
            )
    return tuple(found)


def partition(case: str, name: str | None = None) -> Partition:
    """The partition of an intact case; `name` selects one of several."""
    found = [p for p in partitions() if p.case == case and name in (None, p.name)]
    assert len(found) == 1, (case, name)
    return found[0]


@cache
def batches(part: Partition) -> tuple[dict[str, Any], ...]:
    """Every batch, in file order."""
    return tuple(line for line in part.lines("records.jsonl.gz") if line["type"] == "batch")


@cache
def records(part: Partition) -> tuple[Expected, ...]:
    """Every record of the files, including control records and records below the log start."""
    found: list[Expected] = []
    batch: dict[str, Any] = {}
    for line in part.lines("records.jsonl.gz"):
        if line["type"] == "batch":
            batch = line
        if line["type"] != "record":
            continue
        found.append(
            Expected(
                offset=line["offset"],
                timestamp=line["timestamp"],
                timestamp_type=TIMESTAMP_TYPES[batch["timestampType"]],
                key=unbase64(line["key"]),
                value=unbase64(line["value"]),
                headers=tuple((name, unbase64(value)) for name, value in line["headers"]),
                sequence=line["sequence"],
                is_control=batch["control"],
                batch=batch,
                control=line.get("control"),
            )
        )
    return tuple(found)


def visible(part: Partition, *, control: bool = False) -> list[Expected]:
    """The result of a plain scan: records at or above the log start."""
    start = part.log_start
    return [r for r in records(part) if r.offset >= start and (control or not r.is_control)]


def first_at_or_after(found: list[Expected] | tuple[Expected, ...], target: int) -> Expected | None:
    """The result of a search by time, by a linear search."""
    return next((r for r in found if r.timestamp >= target and r.timestamp >= 0), None)


def last_stable_offset(part: Partition, end: int) -> int:
    """The first offset of the oldest transaction without a marker, otherwise `end`."""
    return min([end, *_transactions(part)[1]])


def _transactions(part: Partition) -> tuple[set[int], list[int]]:
    """Offsets of the records of aborted transactions, and the first offsets of open ones."""
    pending: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for record in records(part):
        batch = record.batch
        if not batch["transactional"]:
            continue
        producer = batch["producerId"]
        if not record.is_control:
            pending.setdefault(producer, []).append(record.offset)
            continue
        offsets = pending.pop(producer, [])
        if record.control is not None and record.control["type"] == "ABORT":
            aborted.update(offsets)
    return aborted, [offsets[0] for offsets in pending.values()]


def committed(part: Partition, end: int) -> list[Expected]:
    """The records of a read_committed consumer: none that are aborted or at or above the last stable offset."""
    aborted, _ = _transactions(part)
    stable = last_stable_offset(part, end)
    return [r for r in visible(part) if r.offset < stable and r.offset not in aborted]


def offsets_of_ranges(ranges: list[list[int]]) -> list[int]:
    """The offsets of inclusive ranges."""
    return [offset for first, last in ranges for offset in range(first, last + 1)]
