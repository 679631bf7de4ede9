"""The flush modes of a `LogWriter` that have numbers, as the text that it takes."""

from cordwood.settings import Integer, refused, shown

__all__ = ["group", "interval"]


def group(ms: int = 2, bytes: int = 1 << 20) -> str:  # noqa: A002  (the mode's own word)
    """Every append waits until it is durable, and several share one flush.

    The first of several appends at once waits for others, for at most `ms` milliseconds or until `bytes` were appended,
    and then flushes for all of them. That is fewer flushes than `"always"`, where those share one that come meanwhile,
    and where the disk flushes fast, fewer appends too.

    >>> group(ms=5)
    'group(ms=5, bytes=1048576)'
    """
    return f"group(ms={_number('ms', ms, 0)}, bytes={_number('bytes', bytes, 0)})"


def interval(messages: int | None = None, ms: int | None = None) -> str:
    """Append and return at once; every so many records, or so much time, an append flushes first.

    No thread looks at the clock, only the next append does: a pause after the last one leaves its records to `flush()`
    or `close()`. Without either number, the settings `flush.messages` and `flush.ms` say it.

    >>> interval(messages=1000, ms=50)
    'interval(messages=1000, ms=50)'
    """
    given = {"messages": messages, "ms": ms}
    numbers = [f"{name}={_number(name, value, 1)}" for name, value in given.items() if value is not None]
    return f"interval({', '.join(numbers)})"


def _number(name: str, value: int, least: int) -> int:
    allowed = Integer(least, 2**63 - 1)
    try:
        return allowed.check(value)
    except ValueError:
        raise refused(name, str(allowed), shown(value)) from None
