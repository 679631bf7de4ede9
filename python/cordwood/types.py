"""Enumerations of Kafka that are defined in Python."""

from enum import IntEnum

__all__ = ["TimestampType"]


class TimestampType(IntEnum):
    """The meaning of a record's timestamp, with Kafka's names and numbers. *Source*: Kafka `TimestampType`.

    >>> TimestampType(0).name
    'CreateTime'
    """

    NoTimestampType = -1
    """The format (magic 0) has no timestamps."""

    CreateTime = 0
    """The time on the producer's clock when the record was created, or a time that the program set."""

    LogAppendTime = 1
    """The time on the broker's clock when the record was appended."""
