"""`LogDir`, a broker's data directory, and `classify`: what a path is."""

from collections.abc import ItemsView, Iterator, KeysView, Sequence, ValuesView
from typing import Literal, Self, TypeVar, final, overload

from cordwood._stubs.arguments import (
    ByteType,
    Columns,
    FilePath,
    HeaderKeys,
    IncludedState,
    Io,
    IsolationLevel,
    Keys,
    OnDamage,
    OnInvalidUtf8,
    Time,
    TimestampUnit,
    Zone,
)
from cordwood._stubs.log import Log
from cordwood._stubs.scan import Scan

_T = TypeVar("_T")

@final
class LogDir:
    """A broker's data directory: a mapping from the names of partition directories to `Log`s, in order of the names.

    The directory is listed once, at the opening. Each access to a log opens it, with *io*, *max_open_files* and
    *max_batch_bytes* as in `Log`. A `LogDir` takes no lock and writes nothing. It can be pickled.

    *include*: also partitions in these states, by their directories' suffixes: `"delete"` (being deleted), `"future"`
    (being moved to this directory), `"stray"` (no longer assigned to the broker).

    *Errors*: `LogNotFoundError` if there is no directory; `ConfigError` for a partition directory, and for the folder
    above a data directory. `directory[name]` raises a `KeyError` if there is no partition with this name, a
    `LogNotFoundError` for a partition that Kafka has just created, which has no segment yet, and a `CorruptLogError` if
    the partition has lost its segments.

    >>> directory = cw.LogDir("tests/golden/16-data-dir")
    >>> directory["cities-1"].log_start_offset
    31
    """

    def __new__(
        cls,
        path: FilePath,
        *,
        io: Io = "auto",
        max_open_files: int = 256,
        include: Sequence[IncludedState] | None = None,
        max_batch_bytes: int = 134217728,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The absolute path of the data directory."""
    @property
    def topics(self) -> list[str]:
        """The topics that have a partition here, in order of their names.

        >>> cw.LogDir("tests/golden/16-data-dir").topics
        ['__cluster_metadata', '__consumer_offsets', '__transaction_state', 'cities', 'rivers.compact']
        """
    def scan(
        self,
        topics: Sequence[str] | None = None,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        columns: Columns | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        include_control: bool = False,
        on_damage: OnDamage = "raise",
        header_keys: HeaderKeys = "utf8",
        timestamp_unit: TimestampUnit = "ms",
        max_rows: int = 65_536,
        max_bytes: int = 4_194_304,
        threads: int = 1,
        limit: int | None = None,
        check_crcs: bool = True,
        key_type: ByteType = "binary",
        value_type: ByteType = "binary",
        on_invalid_utf8: OnInvalidUtf8 = "raise",
        latest: bool = False,
        include_tombstones: bool = False,
        key: Keys | None = None,
        key_prefix: Keys | None = None,
        grep: str | Sequence[str] | None = None,
        last: int | None = None,
        tz: Zone | None = None,
        partitions: Sequence[int] | None = None,
    ) -> Scan:
        """Read the partitions of `topics` (`None`: all) one after the other, as `Log.scan` does.

        *topics*: names, or patterns with `*`, `?` and `[…]`, as in `fnmatch.fnmatchcase`. The order is by topic, then
        by partition. *partitions*: only those with these numbers. By default the columns `topic` and `partition` come
        before the columns of `Log.scan`. The offsets and *last* apply to each partition separately, *limit* to all of
        them together. A partition without a segment that Kafka has just created has no rows.

        *Errors*: `ConfigError` for a topic that is not here, a pattern that matches none, and a number that no
        partition of the topics has. Errors of opening and reading a log are raised while reading.

        >>> cw.LogDir("tests/golden/16-data-dir").scan(["cit*"]).schema.names[:3]
        ['topic', 'partition', 'offset']
        >>> cw.LogDir("tests/golden/16-data-dir").scan(["cities"], partitions=[1], last=5).count()
        5
        """
    def __getitem__(self, key: str, /) -> Log: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    @overload
    def get(self, key: str) -> Log | None: ...
    @overload
    def get(self, key: str, default: _T) -> Log | _T:
        """Open the partition with this directory name; return *default* if there is none.

        *Errors*: as for `directory[name]`, except the `KeyError`.
        """
    def keys(self) -> KeysView[str]:
        """Return a view of the names of the partition directories."""
    def values(self) -> ValuesView[Log]:
        """Return a view of the logs. Iteration opens each of them."""
    def items(self) -> ItemsView[str, Log]:
        """Return a view of the names and logs. Iteration opens each log."""

@final
class PathInfo:
    """The type of a path and the parts of its name, from `classify`."""

    @property
    def kind(
        self,
    ) -> Literal[
        "data_directory",
        "partition",
        "log",
        "offset_index",
        "time_index",
        "transaction_index",
        "producer_snapshot",
        "leader_epoch_checkpoint",
        "partition_metadata",
        "offset_checkpoint",
        "meta_properties",
        "broker_file",
        "other",
    ]:
        """The type of the directory or file; `"other"` for one that is none of these.

        `"broker_file"`: another file or directory of a broker's data directory, such as `.lock`.
        """
    @property
    def topic(self) -> str | None:
        """The topic in the name of the partition directory; `None` if there is none or it is not `topic-partition`."""
    @property
    def partition(self) -> int | None:
        """The partition in the name of its directory; `None` if there is none or it is not `topic-partition`."""
    @property
    def base_offset(self) -> int | None:
        """The offset in the name of a segment's file or a producer snapshot; `None` for other paths."""
    @property
    def state(self) -> Literal["live", "delete", "future", "stray", "swap", "cleaned", "deleted"] | None:
        """The state, by the suffix of the name; `None` for other paths.

        Of a partition directory: `live`, `delete`, `future` or `stray`. Of a segment's file: `live`, `swap`, `cleaned`
        or `deleted`.
        """

def classify(path: FilePath) -> PathInfo:
    """Return the type of a path: of a directory by the files in it, of a file by its name. No file is read.

    A directory with a partition directory in it is a data directory, and so is one with a `meta.properties`, a `.lock`,
    a `recovery-point-offset-checkpoint` or a `log-start-offset-checkpoint`.

    *Errors*: `LogNotFoundError` if the path does not exist.

    >>> cw.classify("tests/golden/01-plain/orders-0/00000000000000000400.timeindex")
    PathInfo(kind='time_index', topic='orders', partition=0, base_offset=400, state='live')
    >>> cw.classify("tests/golden/16-data-dir").kind
    'data_directory'
    """
