"""The settings of a log, under Kafka's names, with the defaults and limits of Kafka 4.3.1."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from functools import wraps
from os import PathLike
from typing import Any, Literal, Self, TypeVar

from cordwood import properties as files
from cordwood._core import (
    _log_config_checked,
    _log_config_from_properties,
    _log_config_of_topic,
    _log_config_to_properties,
    _nearest,
)
from cordwood.properties import refused, shown
from cordwood.types import TimestampType

__all__ = ["LogConfig", "of_topic", "stated_names"]

# The core has the table of settings: names, defaults, limits, and the precedence of a broker's names.
_DEFAULTS = _log_config_checked({})


class _Default:
    """The default of a field in the signature, which tells a value that is not given from one that equals it."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return repr(self._value)


def _default(name: str) -> Any:  # noqa: ANN401  (it takes the place of any value)
    return _Default(_DEFAULTS[name])


_C = TypeVar("_C", bound=type)


def _with_suggestions(made: _C) -> _C:
    """Let the constructor suggest the nearest setting for an unknown name, as methods of the core do."""
    construct: Any = vars(made)["__init__"]

    @wraps(construct)
    def checked(self: object, *args: object, **given: object) -> None:
        for name in given:
            if name not in _DEFAULTS and name != "_stated":
                meant = _nearest(name, list(_DEFAULTS))
                hint = f' (did you mean "{meant}"?)' if meant else ""
                raise TypeError(f"{made.__name__}() got an unexpected keyword argument {name!r}{hint}")
        construct(self, *args, **given)

    setattr(made, "__init__", checked)  # noqa: B010  (mypy refuses the assignment)
    return made


@_with_suggestions
@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The settings of one log. Kafka's name of a field has dots instead of underscores.

    >>> config = LogConfig(segment_bytes=4096, compression_type="zstd")
    >>> config.to_properties()["internal.segment.bytes"]
    '4096'
    >>> LogConfig.from_properties({"log.roll.ms": "5000", "log.roll.hours": "1"}).segment_ms
    5000

    A value of the wrong type or outside its limits raises a `ConfigError` that names the setting, the value and the
    allowed values.

    A setting that is not given has Kafka's default. In a Kafka data directory it is the topic's, wherever the settings
    of a log are used, if the metadata of the data directory has it (`from_metadata`). `replace` keeps which settings
    were given.
    """

    segment_bytes: int = _default("segment_bytes")
    """Maximum size of a segment's `.log`, bytes: 14 to 2³¹-1; 1 GiB. Below 1 MiB, Kafka's name is
    `internal.segment.bytes`."""

    segment_ms: int = _default("segment_ms")
    """Maximum time between a segment's first record and its last, ms: at least 1; 7 days."""

    segment_jitter_ms: int = _default("segment_jitter_ms")
    """Maximum random amount subtracted from `segment_ms`, ms: at least 0; 0."""

    segment_index_bytes: int = _default("segment_index_bytes")
    """Size of each index file of the active segment, bytes: 4 to 2³¹-1; 10 MiB. Rounded down to whole entries; a
    `LogWriter` needs at least 12, the size of one entry."""

    index_interval_bytes: int = _default("index_interval_bytes")
    """Bytes of batches between two index entries: 0 to 2³¹-1; 4096."""

    flush_messages: int = _default("flush_messages")
    """Flush after this many records: at least 1; 2⁶³-1, which means never."""

    flush_ms: int = _default("flush_ms")
    """Flush after this time, ms: at least 0; 2⁶³-1, which means never."""

    retention_bytes: int = _default("retention_bytes")
    """The oldest segments are deleted as long as the log remains at least this large, bytes; negative: never; -1."""

    retention_ms: int = _default("retention_ms")
    """A segment is deleted when all its records are older than this, ms: at least -1; 7 days. -1: never. In a Kafka
    data directory, retention is refused if neither the topic nor the caller has stated it."""

    max_message_bytes: int = _default("max_message_bytes")
    """Maximum size of a batch, bytes: 0 to 2³¹-1; 1 MiB + 12."""

    delete_retention_ms: int = _default("delete_retention_ms")
    """How long compaction keeps tombstones and markers, ms: at least 0; 1 day."""

    min_compaction_lag_ms: int = _default("min_compaction_lag_ms")
    """Records younger than this are not compacted, ms: at least 0; 0. At most `max_compaction_lag_ms`."""

    max_compaction_lag_ms: int = _default("max_compaction_lag_ms")
    """Maximum time that a record stays uncompacted, ms: at least 1; 2⁶³-1, which means no limit."""

    min_cleanable_dirty_ratio: float = _default("min_cleanable_dirty_ratio")
    """Minimum ratio of the dirty part to the whole log for compaction: 0 to 1; 0.5."""

    cleanup_policy: str = _default("cleanup_policy")
    """How old records are removed: `"delete"`, `"compact"`, `"compact,delete"`, or `""`: none are removed. The default
    is `"delete"`; but if nobody has stated it, retention refuses a log that shows compaction."""

    file_delete_delay_ms: int = _default("file_delete_delay_ms")
    """How long a broker keeps the files of a deleted segment under their `.deleted` names, ms: at least 0; 1 minute. A
    `LogWriter` deletes them immediately."""

    compression_type: str = _default("compression_type")
    """How batches are compressed: `"uncompressed"`, `"zstd"`, `"lz4"`, `"snappy"`, `"gzip"`, or `"producer"`: batches
    keep their codec, and records appended one by one are not compressed."""

    compression_gzip_level: int = _default("compression_gzip_level")
    """gzip level: 1 to 9, or -1, the default of zlib; -1."""

    compression_lz4_level: int = _default("compression_lz4_level")
    """LZ4 level: 1 to 17; 9. A `LogWriter` ignores it."""

    compression_zstd_level: int = _default("compression_zstd_level")
    """Zstandard level: -131072 to 22; 3."""

    preallocate: bool = _default("preallocate")
    """Whether the `.log` of a new segment is created at full size: `False`."""

    message_timestamp_type: TimestampType = _default("message_timestamp_type")  # noqa: RUF009  (it is immutable)
    """What a record's timestamp means: `CreateTime` or `LogAppendTime`, or its name as a string."""

    message_timestamp_before_max_ms: int = _default("message_timestamp_before_max_ms")
    """Maximum age of a record's timestamp when it is appended, ms: at least 0; 2⁶³-1, which means no limit."""

    message_timestamp_after_max_ms: int = _default("message_timestamp_after_max_ms")
    """Maximum distance of a record's timestamp into the future, ms: at least 0; 1 hour."""

    min_insync_replicas: int = _default("min_insync_replicas")
    """Number of replicas that must have a record before it is acknowledged: at least 1; 1. Only a cluster uses it; a
    single log does not."""

    unclean_leader_election_enable: bool = _default("unclean_leader_election_enable")
    """Whether an out-of-sync replica may become leader: `False`. Only a cluster uses it; a single log does not."""

    _stated: InitVar[frozenset[str] | None] = None

    def __post_init__(self, _stated: frozenset[str] | None) -> None:
        """Check each setting and their combination, and convert each value to its canonical type.

        *_stated*: only `dataclasses.replace` passes it, with all fields: those that were given before.
        """
        if not isinstance(_stated, frozenset | None):
            raise _wrong_type("_stated", "a frozenset", _stated)
        given = {name: value for name, value in vars(self).items() if not isinstance(value, _Default)}
        fields = _log_config_checked(given)
        if _stated is not None:
            given = {name: value for name, value in fields.items() if name in _stated or value != _DEFAULTS[name]}
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "_stated", frozenset(given))

    @classmethod
    def from_properties(
        cls,
        properties: str | PathLike[str] | Mapping[str, object],
        *,
        overrides: Mapping[str, object] | None = None,
        kind: Literal["broker", "topic"] | None = None,
    ) -> Self:
        """Return the settings in a `.properties` file, or a mapping, of a broker or a topic.

        `kind="broker"`: the names of a broker's settings (`log.segment.bytes`); other names are ignored. If a setting
        has several names, Kafka's precedence applies: `log.roll.ms` over `log.roll.hours`.

        `kind="topic"`: a topic's overrides (`segment.bytes`). An unknown name raises a `ConfigError` that suggests a
        similar name, if any.

        `None`: `"broker"` if a name begins with `log.`, or is `broker.id`, `node.id` or `process.roles`; otherwise
        `"topic"`.

        `overrides` are a topic's overrides and take precedence. A setting that is not named has its default.
        """
        given_kind: object = kind
        if not isinstance(given_kind, str | None) or given_kind not in {"broker", "topic", None}:
            raise refused("kind", '"broker" or "topic"', shown(given_kind))
        return cls(**_log_config_from_properties(_texts("properties", properties), kind, _overrides(overrides)))

    @classmethod
    def from_metadata(
        cls,
        path: str | PathLike[str],
        *,
        metadata: str | PathLike[str] | None = None,
        properties: str | PathLike[str] | Mapping[str, object] | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> Self | None:
        """Return the settings of a partition's topic from the metadata of its cluster; `None` if they are not known.

        *path*: a partition directory, which need not exist. *metadata*: a data directory with `__cluster_metadata-0`,
        this partition directory, or a snapshot; by default, the data directory of the partition.

        The settings are, in this order: *overrides*, under a topic's names; the settings of the topic; the settings of
        the broker and of all brokers in the metadata; *properties*, a broker's own file, which the metadata does not
        contain; Kafka's defaults. (Properties of a topic take precedence over the metadata, too.) Settings of a later
        version of Kafka are ignored. A setting that none of these has counts as not given, because the broker's file
        may have another value than Kafka's default; with the file, the default is known to be the limit of retention
        and the policy.

        `None` if the data directory has no metadata, or the metadata has no such topic. A topic of the same name with
        another id is another topic.

        *Errors*: `CorruptLogError` if records of the metadata are missing or not decodable; `ConfigError` if *metadata*
        is given and has no such topic.

        >>> config = LogConfig.from_metadata("tests/golden/16-data-dir/rivers.compact-0")
        >>> config.cleanup_policy, config.segment_bytes
        ('compact', 16384)
        """
        file = {} if properties is None else _texts("properties", properties)
        found = _log_config_of_topic(path, metadata, file, _overrides(overrides) or {})
        return None if found is None else cls(**found[0])

    def to_properties(self) -> dict[str, str]:
        """Return all settings under their topic names; `from_properties` converts them back."""
        return _log_config_to_properties(vars(self))


def of_topic(
    path: str | PathLike[str],
    metadata: str | PathLike[str] | None,
    properties: Mapping[str, str],
    overrides: Mapping[str, str],
) -> tuple[LogConfig, dict[str, str]] | None:
    """Return what `LogConfig.from_metadata` does, and the source of each setting, by its topic name.

    The sources: `"override"` (also a topic's *properties*), `"topic"`, `"broker"` (dynamic settings in the metadata),
    `"file"` (a broker's *properties*), `"default"`.
    """
    found = _log_config_of_topic(path, metadata, dict(properties), dict(overrides))
    return None if found is None else (LogConfig(**found[0]), found[1])


def stated_names(config: LogConfig) -> set[str]:
    """Return the topic names of the settings that were given."""
    given: frozenset[str] = vars(config)["_stated"]
    return {field.replace("_", ".") for field in given}


def _overrides(overrides: Mapping[str, object] | None) -> dict[str, str] | None:
    if not isinstance(overrides, (Mapping, type(None))):
        raise _wrong_type("overrides", "a mapping", overrides)
    return None if overrides is None else files.texts("overrides", overrides)


def _texts(argument: str, properties: str | PathLike[str] | Mapping[str, object]) -> dict[str, str]:
    """Return the properties in a file or a mapping."""
    if not isinstance(properties, (Mapping, str, PathLike)):
        raise _wrong_type(argument, "a path or a mapping", properties)
    return files.texts(argument, properties) if isinstance(properties, Mapping) else files.read(properties)


def _wrong_type(argument: str, expected: str, found: object) -> TypeError:
    return TypeError(f"{argument}: expected {expected}, found {type(found).__name__}")
