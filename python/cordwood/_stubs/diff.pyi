"""The comparison of two replicas of a partition: `diff`, `Difference`."""

from typing import Literal, final

from cordwood._stubs.arguments import FilePath
from cordwood._stubs.scan import DamagedRange

def diff(
    a: FilePath,
    b: FilePath,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    max_batch_bytes: int = 134217728,
) -> Difference:
    """Compare two replicas of a partition, and find the first difference. Nothing is changed.

    `start_offset` (inclusive) and `end_offset` (exclusive) limit the comparison; by default all offsets that both have
    are compared. Offsets that only one replica has at its start (retention) or end (lag) do not count as a difference.

    Batches with the same bytes are not decoded. Others are compared record by record: the same records in other
    batches, or with another codec, leader epoch, producer or header, are the same, and `other_form` says where that
    begins.

    `max_batch_bytes` as in `Log`.

    Cost: both logs are read once. Memory: a batch of each.

    Errors: ConfigError for a negative offset, and if the replicas have no offset of the range in common. Two logs that
    are empty at the same offset are the same.

    >>> leader, follower = (f"tests/golden/21-replica-{role}/copied-0" for role in ("leader", "follower"))
    >>> cw.diff(leader, follower).is_same
    True
    """

@final
class Difference:
    """The comparison of two replicas, from `diff`."""

    @property
    def is_same(self) -> bool:
        """Whether no difference was found."""
    @property
    def replicas(self) -> tuple[Replica, Replica]:
        """The two replicas, in the order of the arguments."""
    @property
    def start_offset(self) -> int:
        """The first offset that was compared (inclusive)."""
    @property
    def end_offset(self) -> int:
        """The end of the offsets that were compared (exclusive). Not higher than the first difference."""
    @property
    def same_batches(self) -> int:
        """The number of batches with the same bytes in both."""
    @property
    def same_records(self) -> int:
        """The number of records that are the same although their batches are not."""
    @property
    def other_form(self) -> OtherForm | None:
        """The first records that are stored in another form; `None` if there are none."""
    @property
    def first(self) -> FirstDifference | None:
        """The first difference; `None` if the replicas have the same records."""

@final
class Replica:
    """One of the two replicas."""

    @property
    def path(self) -> str:
        """The absolute path of the partition directory."""
    @property
    def log_start_offset(self) -> int:
        """The log start offset (inclusive)."""
    @property
    def log_end_offset(self) -> int:
        """The log end offset (exclusive)."""
    @property
    def leader_epochs(self) -> list[tuple[int, int]]:
        """The leader epochs and their start offsets, from `leader-epoch-checkpoint`; none if there is no valid file."""
    @property
    def truncated_to(self) -> int | None:
        """The offset to which this replica truncates its log as a follower of the other one.

        The log end offset if it keeps everything; `None` if the leader epochs do not tell.
        """
    @property
    def warnings(self) -> list[str]:
        """What was found while reading, such as bytes after the last whole batch."""

@final
class OtherForm:
    """Records that are the same in both replicas, in batches that are not."""

    @property
    def offset(self) -> int:
        """The first such offset."""
    @property
    def batches(self) -> bool:
        """Whether the batches have other offsets there."""
    @property
    def codec(self) -> bool:
        """Whether the codecs differ there."""
    @property
    def leader_epoch(self) -> bool:
        """Whether the leader epochs differ there."""
    @property
    def producer(self) -> bool:
        """Whether the producer id, its epoch, or whether it is a transaction differ there."""
    @property
    def header(self) -> bool:
        """Whether other fields of the headers differ there, such as the format, the delete horizon or the sequences.

        Of batches with other offsets only those fields that do not depend on the records.
        """
    @property
    def bytes(self) -> bool:
        """Whether only the bytes of the records differ there, as with another level of compression."""

@final
class FirstDifference:
    """The first difference of two replicas."""

    @property
    def offset(self) -> int:
        """The offset."""
    @property
    def field(self) -> Literal["record", "control", "timestamp", "key", "value", "headers", "damage"]:
        """What differs. `record`: one of the replicas has no record with this offset.

        `control`: one of them is a control record, such as the marker of a transaction, and the other one is not.
        """
    @property
    def cause(self) -> Literal["epochs", "damage", "unknown"]:
        """Why.

        `epochs`: the leader epochs part at or before the offset, so that a follower truncates the difference away.
        `damage`: one of the replicas is damaged. `unknown`: neither; a follower does not notice the difference.
        """
    @property
    def places(self) -> tuple[RecordPlace | None, RecordPlace | None]:
        """The record in each replica; `None` where there is none or its bytes are damaged."""
    @property
    def different_byte(self) -> tuple[int, int] | None:
        """The position in each file of the first byte after the checksums in which the two batches differ.

        `None` if the batches do not begin at the same offset, or one of them is damaged.
        """
    @property
    def damage(self) -> tuple[DamagedRange | None, DamagedRange | None]:
        """The damaged bytes of each replica; `None` for one that is not damaged there."""

@final
class RecordPlace:
    """Where a record is in one of the replicas, and what it has."""

    @property
    def file(self) -> str:
        """The path of the `.log`."""
    @property
    def position(self) -> int:
        """The position of its batch in the file."""
    @property
    def batch_base_offset(self) -> int:
        """The base offset of its batch."""
    @property
    def leader_epoch(self) -> int | None:
        """The leader epoch of its batch; `None` if it has none."""
    @property
    def timestamp(self) -> int | None:
        """Its timestamp in ms; `None` if it has none."""
    @property
    def key(self) -> bytes | None:
        """Its key."""
    @property
    def value(self) -> bytes | None:
        """Its value."""
