"""The position of a stream in a partition, with fields that detect whether the log was replaced.

A position is stored in the offsets of a stream as `{"offset":1500,"topicId":"…","leaderEpoch":4,"crc":123}`: the next
offset to read, the topic id, and leader epoch and checksum of the batch of the previous offset. A follower in
Kafka compares topic id and leader epoch with those of its leader. The checksum detects what these do not: a log that
was truncated and rewritten in the same epoch.

Unknown fields are not compared: the topic id if there is no `partition.metadata`, the leader epoch in the formats v0
and v1, and both epoch and checksum if the batch was removed, by retention or compaction. A plain number, as in the
offsets of Spark's Kafka source, is an offset without these fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import cordwood as cw
from cordwood.spark.errors import bad_option
from cordwood.spark.option_parsing import PartitionName

__all__ = ["Position", "Positions", "StreamOffset", "read_positions", "write_positions"]

StreamOffset: TypeAlias = dict[str, dict[str, dict[str, int | str] | int]]
"""By topic and partition, as Spark stores it."""


@dataclass(frozen=True)
class Position:
    """The next offset to read of a partition, and fields of the batch before it; `None` where unknown."""

    offset: int
    topic_id: str | None = None
    leader_epoch: int | None = None
    crc: int | None = None

    @classmethod
    def of(cls, log: cw.Log, offset: int) -> "Position":
        """Return the position for an offset of a log as it is now. *Cost*: the batch before it is read."""
        before = _batch_before(log, offset)
        epoch = before.get("leader_epoch", -1)
        return cls(offset, log.topic_id, None if epoch < 0 else epoch, before.get("crc"))

    def mismatch(self, now: "Position", is_compacted: Callable[[], bool]) -> str | None:
        """Describe how the log differs from the one that the position was taken in; `None` if it is the same.

        *now*: the same offset in the current log. *is_compacted* is called if only the checksum differs: compaction
        rewrites batches.
        """
        if _differ(self.topic_id, now.topic_id):
            return f"the topic has the id {now.topic_id}, not {self.topic_id}: it was deleted and created again"
        if _differ(self.leader_epoch, now.leader_epoch):
            return (
                f"the batch before it has leader epoch {now.leader_epoch}, not {self.leader_epoch}: "
                "the log was truncated and rewritten"
            )
        if _differ(self.crc, now.crc) and not is_compacted():
            return (
                f"the batch before it has CRC {now.crc}, not {self.crc}: the log was truncated and rewritten, "
                "or it is compacted and needs the option cleanupPolicy=compact"
            )
        return None


Positions: TypeAlias = dict[PartitionName, Position]


def _batch_before(log: cw.Log, offset: int) -> dict[str, Any]:
    if offset <= log.log_start_offset:
        return {}
    # damage is reported when the records are read
    scan = log.batches(start_offset=offset - 1, end_offset=offset, on_damage="skip")
    rows: list[dict[str, Any]] = scan.to_arrow().select(["leader_epoch", "crc"]).to_pylist()
    return rows[0] if rows else {}


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


_NAMES = {"topicId": "topic_id", "leaderEpoch": "leader_epoch", "crc": "crc"}


def write_positions(positions: Positions) -> StreamOffset:
    """Nest positions by topic and partition, in a fixed order: Spark compares the text.

    >>> write_positions({("t", 1): Position(7, crc=5), ("t", 0): Position(3)})
    {'t': {'0': {'offset': 3}, '1': {'offset': 7, 'crc': 5}}}
    """
    nested: StreamOffset = {}
    for (topic, partition), position in sorted(positions.items()):
        known = {name: value for name, field in _NAMES.items() if (value := getattr(position, field)) is not None}
        nested.setdefault(topic, {})[str(partition)] = {"offset": position.offset, **known}
    return nested


def read_positions(offset: Mapping[str, Mapping[str, Any]]) -> Positions:
    """Read what `write_positions` wrote, or the plain numbers of Spark's Kafka source.

    *Errors*: `CORDWOOD_BAD_OPTION` for an offset that this version cannot read.
    """
    positions = {}
    for topic, partitions in offset.items():
        for number, value in partitions.items():
            match value:
                case int(at):
                    positions[topic, int(number)] = Position(at)
                case {"offset": int(at), **known} if known.keys() <= _NAMES.keys():
                    named: dict[str, Any] = {field: known.get(name) for name, field in _NAMES.items()}
                    positions[topic, int(number)] = Position(at, **named)
                case _:
                    expected = "offsets of a stream that this version of cordwood wrote, in the query's checkpoint"
                    raise bad_option("checkpointLocation", expected, {topic: {number: value}})
    return positions
