"""The options of the sink: those of Spark's Kafka sink, and cordwood's own. Does not use Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cordwood import ConfigError, LogConfig
from cordwood._core import _is_topic, _local_path, _nearest, _partition_parts
from cordwood.spark.errors import bad_option

__all__ = ["MAX_PARTITIONS", "SinkOptions", "TopicConfigs"]

MAX_PARTITIONS = 100_000

_PREFIX = "kafka."

# of Spark's Kafka sink and of its streams: without effect here
_WITHOUT_EFFECT = ("includeHeaders", "checkpointLocation")
_KNOWN = ("path", "topic", "numPartitions", "txnAppId", "txnVersion", *_WITHOUT_EFFECT)

# the settings of a topic; some are settings of a producer too
_SETTINGS = [*LogConfig().to_properties(), "internal.segment.bytes"]

# a producer's name of "uncompressed"
_NO_COMPRESSION = {"none": "uncompressed"}


class TopicConfigs:
    """The settings of the topics of a data directory, each read once."""

    def __init__(self, root: str, given: Mapping[str, str] | None = None) -> None:
        """Read nothing yet. *given*: settings of all topics, by Kafka's names, which take precedence."""
        self._root = root
        self._given = dict(given or {})
        self._known: dict[str, LogConfig] = {}

    def of(self, topic: str) -> LogConfig:
        """Return the settings of a topic: those given, then those in the metadata of the data directory, if it has any.

        *Errors*: `CorruptLogError` if the metadata is damaged.
        """
        if topic not in self._known:
            known = LogConfig.from_metadata(Path(self._root, f"{topic}-0"), overrides=self._given)
            self._known[topic] = known or LogConfig.from_properties(self._given, kind="topic")
        return self._known[topic]


@dataclass(frozen=True)
class SinkOptions:
    """The checked options of a write."""

    root: str
    """The directory of the partition directories, absolute."""

    topic: str | None
    """The topic of all rows; `None`: each row names its topic."""

    partition: int | None
    """The partition of all rows, if the path is that of a partition."""

    partitions: int | None
    """The number of partitions of each topic; `None`: those that there are, and one in a new topic."""

    settings: Mapping[str, str]
    """The settings of the topics, by Kafka's names. Others are those in the metadata of the data directory."""

    transaction: tuple[str, int] | None
    """An application's id of a batch write and its number: numbers up to the last committed one are not written."""

    @classmethod
    def of(cls, texts: Mapping[str, str], *, has_topics: bool) -> "SinkOptions":
        """Check the options. *has_topics*: whether the rows have a topic each.

        *Errors*: `CORDWOOD_BAD_OPTION`.
        """
        given = {name.lower(): text for name, text in texts.items()}
        settings: dict[str, str] = {}
        for name, text in given.items():
            if name.startswith(_PREFIX):
                settings |= _setting(name, text)
            elif name not in {known.lower() for known in _KNOWN}:
                meant = _nearest(name, _KNOWN)
                raise bad_option(name, f"an option of a write{f' (did you mean {meant}?)' if meant else ''}", text)
        root, topic, partition = _place(given.get("path", ""), given.get("topic"), has_topics=has_topics)
        partitions = _partitions(given.get("numpartitions"), partition)
        transaction = _transaction(given.get("txnappid"), given.get("txnversion"))
        _check_settings(settings)
        return cls(root, topic, partition, partitions, settings, transaction)

    def configs(self) -> TopicConfigs:
        """Return the settings of the topics, as they are now."""
        return TopicConfigs(self.root, self.settings)

    def directory(self, topic: str, partition: int) -> Path:
        """Return the path of a partition directory."""
        return Path(self.root, f"{topic}-{partition}")


def _place(path: str, topic: str | None, *, has_topics: bool) -> tuple[str, str | None, int | None]:
    """Return the data directory, the topic and the partition that a path and the option `topic` name."""
    if not path:
        raise bad_option("path", "a data directory, or a partition directory such as data/orders-0", path)
    directory = Path(os.path.abspath(_local_path(path)))  # noqa: PTH100  (links are not resolved)
    if topic is not None and not _is_topic(topic):
        raise bad_option("topic", "1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-'", topic)
    named = _partition_parts(directory.name)
    if topic is not None or has_topics:
        if named is not None and any(directory.glob("*.log")):
            expected = f"the data directory {directory.parent}, because the rows have a topic"
            raise bad_option("path", expected, str(directory))
        return str(directory), topic, None
    if named is None or named[2] != "live" or not _is_topic(named[0]):
        raise bad_option(
            "topic", "the option topic, a column topic, or the path of a partition such as data/orders-0", None
        )
    return str(directory.parent), named[0], named[1]


def _partitions(text: str | None, partition: int | None) -> int | None:
    if text is None:
        return None
    if partition is not None:
        raise bad_option("numPartitions", "no such option, because the path is that of one partition", text)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_PARTITIONS:
        raise bad_option("numPartitions", f"a number from 1 to {MAX_PARTITIONS}", text)
    return int(text)


def _transaction(application: str | None, number: str | None) -> tuple[str, int] | None:
    if application is None and number is None:
        return None
    if application is None or not _is_topic(application):
        expected = "an id of 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-', together with txnVersion"
        raise bad_option("txnAppId", expected, application)
    if number is None or not number.isascii() or not number.isdigit() or int(number) >= 1 << 63:
        raise bad_option("txnVersion", "a number, 0 or more, together with txnAppId", number)
    return application, int(number)


def _setting(name: str, text: str) -> dict[str, str]:
    """Return a setting of a topic; nothing for one of a producer, which has no effect without a broker."""
    setting = name.removeprefix(_PREFIX)
    if setting == "compression.type":
        return {setting: _NO_COMPRESSION.get(text, text)}
    if setting in _SETTINGS:
        return {setting: text}
    meant = _nearest(setting, _SETTINGS, 4)
    if meant is not None:
        raise bad_option(name, f"a setting of a topic or of a producer (did you mean {_PREFIX}{meant}?)", text)
    return {}


def _check_settings(settings: Mapping[str, str]) -> None:
    try:
        LogConfig.from_properties(settings, kind="topic")
    except ConfigError as error:
        raise bad_option(f"{_PREFIX}{error.argument}", str(error.expected), error.found) from error
