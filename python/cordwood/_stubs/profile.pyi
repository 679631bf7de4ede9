"""The profile of a log, for `cordwood report`."""

from typing import Any, final

from cordwood._stubs.log import Log

@final
class _Profiler:
    """Computes the profile of a log: the numbers that a report draws, from one scan of every record."""

    def __new__(cls, log: Log) -> _Profiler: ...
    def advance(self, max_bytes: int) -> int | None:
        """Read about *max_bytes* of the log. Return the bytes that were read so far; `None` at the end."""
    def finish(self) -> dict[str, Any]:
        """Return the profile, by the names of the fields of the struct `Profile` in Rust."""
