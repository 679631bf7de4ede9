"""Kafka's enumerations that need no Rust."""

from enum import IntEnum

__all__ = ["TimestampType"]


class TimestampType(IntEnum):
    """What a record's timestamp means, with Kafka's names and numbers.

    >>> TimestampType(0).name
    'CreateTime'
    """

    NoTimestampType = -1
    """The format (magic 0) has no timestamps."""

    CreateTime = 0
    """The time of the producer."""

    LogAppendTime = 1
    """The time of the broker at the append."""
