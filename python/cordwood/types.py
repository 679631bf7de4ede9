"""Words of Kafka's that need no Rust."""

from enum import IntEnum

__all__ = ["TimestampType"]


class TimestampType(IntEnum):
    """What a record's timestamp means, under Kafka's own names and numbers.

    >>> TimestampType(0).name
    'CreateTime'
    """

    NoTimestampType = -1
    """The format (magic 0) has no timestamps."""

    CreateTime = 0
    """The producer's clock."""

    LogAppendTime = 1
    """The broker's clock at the append."""
