"""Counts of records, for `cordwood count`."""

from collections.abc import Sequence
from typing import Any, final

from cordwood._stubs.arguments import FilePath
from cordwood._stubs.cat import _Zone
from cordwood._stubs.log import Log
from cordwood._stubs.scan import DamagedRange
from cordwood.errors import CordwoodError

@final
class _Counter:
    """Counts the records of logs in groups: by `partition`, `topic`, `key`, and one of `minute`, `hour` and `day`.

    The periods are in the time zone *zone*, or UTC. The other arguments select records, as for `_scan_logs`.
    """

    def __new__(
        cls,
        logs: Sequence[Log | FilePath],
        by: Sequence[str],
        *,
        zone: _Zone | None = None,
        **keywords: Any,  # noqa: ANN401  (as of `Log.records`)
    ) -> _Counter: ...
    def advance(self) -> int | None:
        """Read about 16 MiB of the logs; return the number of records so far, and `None` at the end."""
    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """The damaged ranges that were skipped so far; empty after `finish`."""
    def take_failures(self) -> list[tuple[int, CordwoodError | OSError]]:
        """Return the errors of logs that could not be opened or read, with their places in *logs*, each once.

        Of several logs the others are counted, and nothing of these; a single log raises its error.
        """
    def finish(self) -> list[tuple[str | None, int | None, tuple[int, int] | None, bytes | None, int]]:
        """Return the groups, in order: topic, place in *logs*, start of the period, key and number of records.

        The period is in milliseconds of a local clock since 1970, with the seconds that it is ahead of UTC. What is
        not grouped by is `None`; so are the period of records without a timestamp, and the key of those without one.
        """
