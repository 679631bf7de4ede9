"""The partitions of a topic: which of them a write may name, and how many there are. Does not use Spark."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from cordwood import Log, metadata
from cordwood.spark.errors import BAD_OPTION, SparkLogError, bad_option
from cordwood.spark.write.journal import Journal, is_log

__all__ = ["Partitions", "partitions_of_topics"]

_METADATA = "__cluster_metadata-0"


@dataclass(frozen=True)
class Partitions:
    """The partitions of a topic, when a write begins.

    Their number is that of the metadata, if it is known: the directories of others may be in another data directory.
    """

    root: str
    """The data directory."""

    topic: str
    """The topic."""

    here: tuple[int, ...] = ()
    """The partitions that have a segment here, ascending."""

    stated: int | None = None
    """Their number in the metadata of the data directory; `None` if it has none, or not of this topic."""

    def count(self, wanted: int | None) -> int:
        """Return their number, by which a key chooses one. *wanted*: the option `numPartitions`.

        *Errors*: `CORDWOOD_BAD_OPTION` if it is not known, and if the option says another number.
        """
        self.check_count(wanted)
        if self.stated is not None:
            return self.stated
        if wanted is not None:
            return wanted
        if not self._are_all():
            numbers = ", ".join(map(str, self.here))
            raise _refused(
                f"numPartitions: expected the number of partitions of the topic {self.topic}, of which only the "
                f"directories of {numbers} are here; or use the column partition"
            )
        return len(self.here) or 1

    def created(self, wanted: int | None) -> range:
        """Return the partitions that a write has to create, though no row is for them."""
        return range(wanted or 0) if self.stated is None else range(0)

    def check_count(self, wanted: int | None) -> None:
        """Check that the option `numPartitions` agrees with the partitions that the topic has.

        If some are missing, the topic has more than these. A topic without records may get more partitions. *Errors*:
        `CORDWOOD_BAD_OPTION`.
        """
        if wanted is None or wanted == self.stated:
            return
        if self.stated is not None:
            raise bad_option("numPartitions", f"{self.stated}, because {self._of_metadata()}", str(wanted))
        if not self.here:
            return
        count = self.here[-1] + 1
        if len(self.here) < count <= wanted or count == wanted:
            return
        if count < wanted:
            # another first write has created the rest meanwhile
            if is_log(self._directory(wanted - 1)):
                return
            # one was interrupted while it created the partitions
            if all(Log(self._directory(number)).log_end_offset == 0 for number in self.here):
                return
        most = f"{count} or more" if len(self.here) < count else f"{count}"
        expected = f"{most}, because the topic {self.topic} has the partition {self.topic}-{self.here[-1]} as its last "
        advice = f"one here; to add a partition to the topic, write to its path first: {self._directory(count)}"
        raise bad_option("numPartitions", expected + advice, str(wanted))

    def check_row(self, number: int, wanted: int | None) -> None:
        """Check a partition that a row names: a write adds none to a topic. *Errors*: `CORDWOOD_BAD_OPTION`."""
        self.check_count(wanted)
        count = wanted if self.stated is None else self.stated
        known = range(count) if count is not None else self.here or range(1)
        # of a stream, the topic may have got it since the query began
        if number not in known and not (count is None and is_log(self._directory(number))):
            raise _refused(f"column partition: {self._why_not(number, wanted)}")

    def check_path(self, number: int) -> None:
        """Check the partition that a path names: a write creates only the next one. *Errors*: `CORDWOOD_BAD_OPTION`."""
        path = str(self._directory(number))
        if self.stated is not None and number >= self.stated:
            raise bad_option("path", f"{self._span(range(self.stated))}, because {self._of_metadata()}", path)
        following = self.here[-1] + 1 if self.here else 0
        if self.stated is None and number > following:
            expected = f"a path up to {self._directory(following)}, so that the topic {self.topic} has no gap"
            raise bad_option("path", f"{expected}; {self._how_to_add(number)}", path)
        self.check_here(number)

    def check_here(self, number: int) -> None:
        """Check that a partition of the metadata has a directory here. *Errors*: `CORDWOOD_BAD_OPTION`."""
        if self.stated is None or number in self.here or is_log(self._directory(number)):
            return
        name = f"{self.topic}-{number}"
        others = f"only {self._span(self.here)} of the topic" if self.here else "no partition of the topic"
        raise _refused(
            f"path: expected the data directory with {name}, because {self._of_metadata()}, found {self.root}, which "
            f"has {others}; {name} is in another data directory of the broker, or on another broker: write its rows "
            "there"
        )

    def without_key(self, task: int, count: int) -> int:
        """Return the partition of the rows of a task that have no key: as Kafka's producer, one that is there."""
        return self.here[task % len(self.here)] if self.stated is not None and self.here else task % count

    def _why_not(self, number: int, wanted: int | None) -> str:
        """Say why the topic has no partition of this number."""
        found = f"found {number} in a row of {self.topic}"
        if self.stated is not None:
            return f"expected {self._span(range(self.stated))}, because {self._of_metadata()}, {found}"
        if wanted is not None:
            return f"expected 0 to {wanted - 1}, because of numPartitions={wanted}, {found}"
        if not self.here:
            advice = "give the option numPartitions, or drop the column, so that the keys choose the partitions"
            return f"expected 0, because the new topic {self.topic} gets 1 partition, {found}; {advice}"
        noun = "partition" if len(self.here) == 1 else "partitions"
        advice = "leave it null to choose the partition by the key" if number < 0 else self._how_to_add(number)
        has = f"the topic {self.topic} has {len(self.here)} {noun} here"
        return f"expected {self._span(self.here)}, because {has}, {found}; {advice}"

    def _how_to_add(self, number: int) -> str:
        """Say how the topic gets a partition. Alone it could leave gaps: then no partition can be chosen by a key."""
        if not self.here:
            options = f"topic={self.topic} and numPartitions={number + 1}"
            return f"to create the partitions 0 to {number}, write to {self.root} with {options}"
        first, last = self._directory(min(self.here[-1] + 1, number)), self._directory(number)
        if first == last:
            return f"to add a partition to the topic, write to its path first: {last}"
        return f"to add partitions to the topic, write to the path of each first, from {first} to {last}"

    def _of_metadata(self) -> str:
        noun = "partition" if self.stated == 1 else "partitions"
        return f"the topic {self.topic} has {self.stated} {noun} in the metadata of {self.root}"

    def _span(self, numbers: Collection[int]) -> str:
        first, *rest = numbers
        if len(rest) > 0 and tuple(numbers) == tuple(range(len(numbers))):
            return f"{first} to {rest[-1]}"
        return ", ".join(map(str, numbers))

    def _are_all(self) -> bool:
        return self.here == tuple(range(len(self.here)))

    def _directory(self, number: int) -> Path:
        return Path(self.root, f"{self.topic}-{number}")


def partitions_of_topics(root: str, topic: str | None = None) -> dict[str, Partitions]:
    """Return the partitions of the topics that a data directory has, or of one topic, which may be new.

    *Errors*: `CorruptLogError` if the metadata is damaged.
    """
    existing, stated = Journal(root).existing(), _stated(root, topic)
    found = {}
    for name in {*existing, *stated} if topic is None else {topic}:
        here, (topic_id, count) = existing.get(name, ()), stated.get(name, (None, 0))
        # a topic of this name with another id is another topic
        is_known = count > 0 and (not here or Log(Path(root, f"{name}-{here[0]}")).topic_id in {topic_id, None})
        found[name] = Partitions(root, name, here, count if is_known else None)
    return found


def _stated(root: str, topic: str | None) -> dict[str, tuple[str, int]]:
    """Return the ids of the topics in the metadata, and their numbers of partitions."""
    if not Path(root, _METADATA).is_dir():
        return {}
    rows = metadata(root, topics=None if topic is None else [topic]).topics.to_dicts()
    return {row["topic"]: (row["topic_id"], row["partitions"]) for row in rows}


def _refused(reason: str) -> SparkLogError:
    return SparkLogError(BAD_OPTION, reason)
