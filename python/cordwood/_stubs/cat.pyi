"""Reading of several logs with filters, for `cordwood cat`."""

from collections.abc import Sequence
from typing import Any, final

from cordwood._stubs.arguments import FilePath
from cordwood._stubs.log import Log
from cordwood._stubs.scan import Scan

@final
class _Zone:
    """A time zone, from its name and the bytes of its file in the format TZif."""

    def __new__(cls, name: str, tzif: bytes) -> _Zone: ...

def _scan_logs(
    logs: Sequence[Log | FilePath],
    *,
    last: int | None = None,
    **keywords: Any,  # noqa: ANN401  (as of `LogDir.scan`)
) -> Scan:
    """Scan logs one after another, with the keyword arguments of `LogDir.scan`, and *key*, *key_prefix* and *grep*.

    Each of these is one value or a list. Only records are returned whose key is one of *key*, whose key begins with one
    of *key_prefix*, and whose value matches one of the regular expressions *grep*; and of each log only the last ones,
    *last* of them. Both *last* and *limit* count the records that the others select. The log of a path is opened when
    it is reached, and its warnings are logged after it. The scan cannot be pickled.
    """
