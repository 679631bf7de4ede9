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
    **keywords: Any,  # noqa: ANN401  (as of `LogDir.scan`)
) -> Scan:
    """Scan logs one after another, with the keyword arguments of `LogDir.scan`, for `cordwood cat`.

    The log of a path is opened when it is reached, and its warnings are logged after it. The scan cannot be pickled.
    """
