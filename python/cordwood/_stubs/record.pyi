"""`Record`; what an append takes and returns."""

from datetime import tzinfo
from typing import Self, final

from cordwood._stubs.arguments import Bytes, Headers, Time
from cordwood.types import TimestampType

@final
class Record:
    """A record: read by `Log.records()`, or made by a program for `LogWriter.append_many`.

    *value*, *key*: bytes, a text (encoded as UTF-8), or `None` for null. *headers*: (name, value) tuples or lists, or a
    mapping; the names in UTF-8. *timestamp*: int ms since the epoch, a datetime with a time zone (a fraction of a
    millisecond is left out), a text such as `"-2h"`, or -1 for none; by default the present time.

    *Errors*: `ConfigError` for a name that is not UTF-8, and for an int *timestamp* that is a time from 1980 to 2100 in
    seconds, microseconds or nanoseconds, as `int(time.time())`. A datetime can be any time but one in the last
    millisecond before 1970, which would be -1.

    >>> record = cw.Record("paid", key="order-7", headers={"trace": b"1"}, timestamp=1700000000000)
    >>> record.value, record.headers, record.offset
    (b'paid', [('trace', b'1')], -1)

    Records with the same fields are equal. A record can be pickled.
    """

    def __new__(
        cls,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """The offset (absolute); -1 for a record that a program made."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, -1 if there is none."""
    @property
    def timestamp_type(self) -> TimestampType:
        """The meaning of the timestamp; `CreateTime` for a record that a program made."""
    @property
    def key(self) -> bytes | None:
        """The key; `None` for null, which is not the same as empty."""
    @property
    def value(self) -> bytes | None:
        """The value; `None` for null, which is not the same as empty. In a compacted topic null deletes the key."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in their order, duplicates included. Invalid UTF-8 in a name is U+FFFD, as in Kafka's client."""

def _record(
    offset: int,
    timestamp: int,
    timestamp_type: TimestampType,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    /,
) -> Record:
    """Return a record with these fields, as one that was read."""

def _other_unit(number: int, /) -> tuple[str, int] | None:
    """Return the unit in which a number is a time from 1980 to 2100, if it is not one in ms; and that time in ms.

    The unit is `seconds`, `microseconds` or `nanoseconds`. `None`: the number may be ms, or is no such time in a unit.
    """

def _time_forms() -> str:
    """Return the forms of a time as a text, for help texts and errors."""

def _parse_time(text: str, now_ms: int | None = None, zone: tzinfo | None = None, *, rounds_up: bool = True) -> int:
    """Parse a time, as `cordwood.times.parse` describes."""

@final
class Appended:
    """The result of an append. *Source*: Kafka `LogAppendInfo`."""

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
    @property
    def last_offset(self) -> int:
        """The offset of the last record (inclusive); below `first_offset` if no record was given."""
    @property
    def max_timestamp(self) -> int:
        """The largest timestamp that was stored, in ms; -1 if no record has one."""
    @property
    def durable(self) -> bool:
        """Whether the records survive a power loss."""
    @property
    def is_duplicate(self) -> bool:
        """Whether the producer had appended the records before: nothing was appended, and the offsets are theirs."""

@final
class WriterMetrics:
    """What a `LogWriter` has done since it was opened. Returned by `LogWriter.metrics`.

    The counts and the sums of times only grow: rates and mean times are from the difference of two values.
    """

    @property
    def appends(self) -> int:
        """Writes to the log: one for each batch that is built, each call of `append_batches` and each marker."""
    @property
    def records(self) -> int:
        """The records of these, with markers. Duplicates are not written."""
    @property
    def bytes(self) -> int:
        """The bytes of their batches."""
    @property
    def append_ns(self) -> int:
        """The time of these writes in nanoseconds, with rolls of the log, without flushes."""
    @property
    def max_append_ns(self) -> int:
        """The longest one, in nanoseconds."""
    @property
    def flushes(self) -> int:
        """Flushes that appends and `flush` made. Several appends share one."""
    @property
    def flush_ns(self) -> int:
        """The time of the flushes in nanoseconds."""
    @property
    def max_flush_ns(self) -> int:
        """The longest one, in nanoseconds."""
    @property
    def rolls(self) -> int:
        """New segments."""
    @property
    def segments(self) -> int:
        """The number of segments now."""

@final
class FlushMode:
    """A mode with parameters, for `LogWriter(flush=…)`. The modes `"always"` and `"none"` are texts.

    `str()` returns a text that `flush` accepts, for configuration files and the command line.

    >>> cw.FlushMode.group(ms=5)
    FlushMode.group(ms=5, bytes=1048576)
    """

    @staticmethod
    def group(ms: int = 2, bytes: int = 1_048_576) -> FlushMode:  # noqa: A002
        """Return the mode in which each append waits until it is durable, and several appends share one flush.

        The first of several appends waits for more, until `ms` milliseconds have passed or `bytes` were appended (both
        >= 0), then flushes for all of them. There are fewer flushes than with `"always"`. On a disk with fast flushes
        there are also fewer appends per second.
        """
    @staticmethod
    def interval(messages: int | None = None, ms: int | None = None) -> FlushMode:
        """Return the mode in which an append does not wait, unless a flush is due.

        If `messages` records were appended or `ms` milliseconds have passed (both >= 1) since the last flush, the next
        append flushes before it returns. No thread watches the clock: records before a pause become durable at the
        next append, `flush()` or `close()`. Without arguments the settings `flush.messages` and `flush.ms` apply.
        """
