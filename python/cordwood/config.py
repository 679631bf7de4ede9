"""The settings of a log, under Kafka's names, with the defaults and limits of Kafka 4.3.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Literal, Self

from cordwood import properties as files
from cordwood._core import _log_config_checked, _log_config_from_properties, _log_config_to_properties
from cordwood.properties import refused, shown
from cordwood.types import TimestampType

__all__ = ["LogConfig"]

# the core has the table of settings: names, defaults, limits, and which name of a broker's file wins
_DEFAULTS = _log_config_from_properties({}, "topic")


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The settings of one log. Each field's Kafka name has dots for its underscores.

    >>> config = LogConfig(segment_bytes=4096, compression_type="zstd")
    >>> config.to_properties()["internal.segment.bytes"]
    '4096'
    >>> LogConfig.from_properties({"log.roll.ms": "5000", "log.roll.hours": "1"}).segment_ms
    5000

    A value of the wrong type or outside its limits is a `ConfigError` that names the setting, the value and what is
    allowed.
    """

    segment_bytes: int = _DEFAULTS["segment_bytes"]
    """Largest size of a segment's `.log`, bytes: 14 to 2³¹-1; 1 GiB. Kafka calls one below 1 MiB
    `internal.segment.bytes`."""

    segment_ms: int = _DEFAULTS["segment_ms"]
    """Longest time between a segment's first record and its last, ms: at least 1; 7 days."""

    segment_jitter_ms: int = _DEFAULTS["segment_jitter_ms"]
    """Largest random amount subtracted from `segment_ms`, ms: at least 0; 0."""

    segment_index_bytes: int = _DEFAULTS["segment_index_bytes"]
    """Size of each index file of the active segment, bytes: 4 to 2³¹-1; 10 MiB. Rounded down to whole entries; a
    `LogWriter` wants room for one: 12."""

    index_interval_bytes: int = _DEFAULTS["index_interval_bytes"]
    """Bytes of batches between two index entries: 0 to 2³¹-1; 4096."""

    flush_messages: int = _DEFAULTS["flush_messages"]
    """Flush after this many records: at least 1; 2⁶³-1, which is never."""

    flush_ms: int = _DEFAULTS["flush_ms"]
    """Flush after this long, ms: at least 0; 2⁶³-1, which is never."""

    retention_bytes: int = _DEFAULTS["retention_bytes"]
    """The oldest segments are deleted while the log stays at least this large, bytes; negative: never; -1."""

    retention_ms: int = _DEFAULTS["retention_ms"]
    """A segment is deleted when all its records are older, ms: at least -1; 7 days. -1: never."""

    max_message_bytes: int = _DEFAULTS["max_message_bytes"]
    """Largest batch, bytes: 0 to 2³¹-1; 1 MiB + 12."""

    delete_retention_ms: int = _DEFAULTS["delete_retention_ms"]
    """How long compaction keeps tombstones and markers, ms: at least 0; 1 day."""

    min_compaction_lag_ms: int = _DEFAULTS["min_compaction_lag_ms"]
    """Records younger than this are not compacted, ms: at least 0; 0. At most `max_compaction_lag_ms`."""

    max_compaction_lag_ms: int = _DEFAULTS["max_compaction_lag_ms"]
    """Longest time that a record stays uncompacted, ms: at least 1; 2⁶³-1, which is no limit."""

    min_cleanable_dirty_ratio: float = _DEFAULTS["min_cleanable_dirty_ratio"]
    """Share of the log that must be dirty before it is compacted: 0 to 1; 0.5."""

    cleanup_policy: str = _DEFAULTS["cleanup_policy"]
    """How old records are removed: `"delete"`, `"compact"`, `"compact,delete"`, or `""`: nothing is removed."""

    file_delete_delay_ms: int = _DEFAULTS["file_delete_delay_ms"]
    """How long a broker keeps a deleted segment's files under their `.deleted` names, ms: at least 0; 1 minute. A
    `LogWriter` deletes them at once."""

    compression_type: str = _DEFAULTS["compression_type"]
    """How batches are compressed: `"uncompressed"`, `"zstd"`, `"lz4"`, `"snappy"`, `"gzip"`, or `"producer"`: batches
    keep their codec, and records appended one by one are not compressed."""

    compression_gzip_level: int = _DEFAULTS["compression_gzip_level"]
    """gzip's level: 1 to 9, or -1, zlib's own default; -1."""

    compression_lz4_level: int = _DEFAULTS["compression_lz4_level"]
    """LZ4's level: 1 to 17; 9. A `LogWriter` compresses the same at every level."""

    compression_zstd_level: int = _DEFAULTS["compression_zstd_level"]
    """Zstandard's level: -131072 to 22; 3."""

    preallocate: bool = _DEFAULTS["preallocate"]
    """Whether the `.log` of a new segment is created at full size: no."""

    message_timestamp_type: TimestampType = _DEFAULTS["message_timestamp_type"]
    """What a record's timestamp means: `CreateTime` or `LogAppendTime`, or the name as a text."""

    message_timestamp_before_max_ms: int = _DEFAULTS["message_timestamp_before_max_ms"]
    """Largest age of a record's timestamp when it is appended, ms: at least 0; 2⁶³-1, which is no limit."""

    message_timestamp_after_max_ms: int = _DEFAULTS["message_timestamp_after_max_ms"]
    """How far a record's timestamp may be in the future, ms: at least 0; 1 hour."""

    min_insync_replicas: int = _DEFAULTS["min_insync_replicas"]
    """Replicas that must have a record before it is acknowledged: at least 1; 1. For a cluster; a single log does not
    use it."""

    unclean_leader_election_enable: bool = _DEFAULTS["unclean_leader_election_enable"]
    """Whether an out-of-sync replica may become leader: no. For a cluster; a single log does not use it."""

    def __post_init__(self) -> None:
        """Check every setting, alone and with the others, and convert each value to its one form."""
        for field, value in _log_config_checked(vars(self)).items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_properties(
        cls,
        properties: str | PathLike[str] | Mapping[str, object],
        *,
        overrides: Mapping[str, object] | None = None,
        kind: Literal["broker", "topic"] | None = None,
    ) -> Self:
        """Take the settings from a `.properties` file, or a mapping, of a broker or a topic.

        `kind="broker"`: the broker's own names (`log.segment.bytes`); other names are ignored. Where a
        setting has several names, Kafka's precedence applies: `log.roll.ms` over `log.roll.hours`.

        `kind="topic"`: a topic's overrides (`segment.bytes`). An unknown name is a `ConfigError` that names a
        near one, if any.

        `None`: a broker's where a name begins with `log.`, or is `broker.id`, `node.id` or `process.roles`; else a
        topic's.

        `overrides` are a topic's and win over the rest. A setting that is not named has its default.
        """
        given_kind: object = kind
        if not isinstance(given_kind, str | None) or given_kind not in {"broker", "topic", None}:
            raise refused("kind", '"broker" or "topic"', shown(given_kind))
        if not isinstance(properties, (Mapping, str, PathLike)):
            raise _no_instance("properties", "a path or a mapping", properties)
        if not isinstance(overrides, (Mapping, type(None))):
            raise _no_instance("overrides", "a mapping", overrides)
        given = files.texts("properties", properties) if isinstance(properties, Mapping) else files.read(properties)
        topics = None if overrides is None else files.texts("overrides", overrides)
        return cls(**_log_config_from_properties(given, kind, topics))

    def to_properties(self) -> dict[str, str]:
        """Give all settings under their topic names; `from_properties` makes the same of them."""
        return _log_config_to_properties(vars(self))


def _no_instance(argument: str, wanted: str, found: object) -> TypeError:
    return TypeError(f"{argument}: expected {wanted}, found {type(found).__name__}")
