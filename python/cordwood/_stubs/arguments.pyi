"""The types of arguments, as `src/python/arguments.rs`, `lookup_targets.rs` and `record_input.rs` accept them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from os import PathLike
from typing import Literal, Protocol, TypeAlias

from typing_extensions import Buffer

class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

# A `cordwood.LogConfig`, or another object with this method.
class Settings(Protocol):
    def to_properties(self) -> dict[str, str]: ...

FilePath: TypeAlias = str | PathLike[str]

# A time: milliseconds since the epoch; a datetime with a time zone, rounded up to a whole millisecond;
# or a text: "2024-05-01T10:00Z", "2024-05-01" (midnight UTC), "-2h" (two hours ago), "now", "1714557600s".
# `cordwood.times.FORMS` has all forms of a text. An int that is a time of these decades only in seconds,
# microseconds or nanoseconds is an error.
Time: TypeAlias = int | datetime | str

# Many offsets or times: a list, a NumPy array, or a column of Arrow, pandas or Polars.
Integers: TypeAlias = Iterable[int | None] | Buffer | ArrowArray | ArrowStream
Times: TypeAlias = Iterable[int | datetime | None] | Buffer | ArrowArray | ArrowStream

# The name of a time zone, such as "Europe/Berlin", or a zone of Python.
Zone: TypeAlias = str | tzinfo

# Bytes; a text is encoded as UTF-8.
Bytes: TypeAlias = Buffer | str
Keys: TypeAlias = Bytes | Sequence[Bytes]
Headers: TypeAlias = Iterable[Sequence[Bytes | None]] | Mapping[str, Bytes | None] | Mapping[bytes, Bytes | None] | None

# `Sequence[str]` in place of literals: programs compute lists of columns, and `list[str]` has to be accepted.
Columns: TypeAlias = Sequence[str]

Io: TypeAlias = Literal["auto", "mmap", "pread"]
IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
OnDamage: TypeAlias = Literal["raise", "skip", "report"]
ByteType: TypeAlias = Literal["binary", "binary_view", "string", "string_view"]
OnInvalidUtf8: TypeAlias = Literal["raise", "null", "replace"]
HeaderKeys: TypeAlias = Literal["utf8", "binary"]
TimestampUnit: TypeAlias = Literal["ms", "us"]
SearchMethod: TypeAlias = Literal["binary", "warm", "learned"]
IncludedState: TypeAlias = Literal["delete", "future", "stray"]
PropertySource: TypeAlias = Literal["broker", "topic"]
