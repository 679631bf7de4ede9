"""What Spark's filters say about where rows can be: which partitions, offsets and times need not be read.

Filters only prune here. Spark evaluates every one of them again, so a filter that is not understood costs nothing but
time, and the rows are the same with pushdown and without.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from cordwood.spark.bounds import Bounds

__all__ = ["Pruning"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Interval:
    """Whole numbers from `low` to `high`, both inclusive; `None` is no bound."""

    low: int | None = None
    high: int | None = None

    def meet(self, other: "Interval") -> "Interval":
        """Give what lies in both."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Interval(max(lows, default=None), min(highs, default=None))

    def holds(self, number: int) -> bool:
        """Say whether a number lies in it."""
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


@dataclass(frozen=True)
class Pruning:
    """What rows can pass all the filters: offsets, times in microseconds, partitions, topics (`None`: all)."""

    offset: Interval = Interval()
    timestamp: Interval = Interval()
    partition: Interval = Interval()
    topics: frozenset[str] | None = None

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> "Pruning":
        """Read what the filters say together; those that are not understood say nothing."""
        pruning = cls()
        for pushed in filters:
            pruning = pruning._and(pushed)
        return pruning

    def without_ranges(self) -> "Pruning":
        """Give what is said of topics and partitions alone."""
        return replace(self, offset=Interval(), timestamp=Interval())

    def apply(self, bounds: Iterable[Bounds]) -> Iterator[Bounds]:
        """Narrow what is read, so that no row is lost that passes the filters."""
        return (narrowed for bound in bounds if (narrowed := self._narrow(bound)) is not None)

    def _and(self, pushed: Filter) -> "Pruning":
        attribute = getattr(pushed, "attribute", None)
        if attribute == ("topic",):
            topics = _topics(pushed)
            if topics is None:
                return self
            return replace(self, topics=topics if self.topics is None else self.topics & topics)
        if attribute not in (("offset",), ("partition",), ("timestamp",)):
            return self
        name = attribute[0]
        interval = _interval(pushed, _microseconds if name == "timestamp" else _whole)
        return replace(self, **{name: getattr(self, name).meet(interval)})

    def _narrow(self, bound: Bounds) -> Bounds | None:
        if self.topics is not None and bound.topic not in self.topics:
            return None
        if self.partition != Interval() and (bound.partition is None or not self.partition.holds(bound.partition)):
            return None
        start, end = bound.start_offset, bound.end_offset
        if self.offset.low is not None:
            start = max(start, min(self.offset.low, end))
        if self.offset.high is not None:
            end = max(start, min(end, self.offset.high + 1))
        narrowed = replace(bound, start_offset=start, end_offset=end)
        low, high = self.timestamp.low, self.timestamp.high
        # a record without a time is shown as -1 ms and lies outside every range of times: only a range that leaves it
        # out anyway may be asked for
        if low is not None and low >= 0:
            first = -(-low // 1000)
            narrowed = replace(narrowed, start_time=first)
            if high is not None:
                narrowed = replace(narrowed, end_time=max(first, high // 1000 + 1))
        return narrowed


def _interval(pushed: Filter, read: Callable[[object], int | None]) -> Interval:  # noqa: PLR0911  (a case each)
    if isinstance(pushed, In):
        values = [value for value in pushed.value if value is not None]
        numbers = [number for value in values if (number := read(value)) is not None]
        if not numbers or len(numbers) < len(values):
            return Interval()
        return Interval(min(numbers), max(numbers))
    number = read(getattr(pushed, "value", None))
    if number is None:
        return Interval()
    match pushed:
        case EqualTo() | EqualNullSafe():
            return Interval(number, number)
        case GreaterThan():
            return Interval(low=number + 1)
        case GreaterThanOrEqual():
            return Interval(low=number)
        case LessThan():
            return Interval(high=number - 1)
        case LessThanOrEqual():
            return Interval(high=number)
        case _:
            return Interval()


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _microseconds(value: object) -> int | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // _MICROSECOND


def _topics(pushed: Filter) -> frozenset[str] | None:
    match pushed:
        case EqualTo(value=str(topic)) | EqualNullSafe(value=str(topic)):
            return frozenset([topic])
        case In(value=values) if all(isinstance(value, str) for value in values if value is not None):
            return frozenset(value for value in values if value is not None)
        case _:
            return None
