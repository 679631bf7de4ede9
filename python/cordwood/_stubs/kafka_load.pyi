"""What a broker does when it opens a partition directory: `plan_kafka_load`, `KafkaLoad`."""

from typing import Literal, final

from cordwood._stubs.arguments import FilePath, Settings

def plan_kafka_load(
    path: FilePath,
    *,
    clean: bool | None = None,
    recovery_point: int | None = None,
    log_start_offset: int | None = None,
    config: Settings | None = None,
    max_batch_bytes: int = 134217728,
) -> KafkaLoad:
    """Plan what a broker of Kafka 4.3.1 does when it opens a partition directory. Nothing is changed.

    A broker creates, cuts, renames and deletes files then. After an unclean shutdown it throws away everything after
    the first batch that is not valid; after a clean one it trusts what it finds.

    `clean`: whether the broker was shut down cleanly; by default, whether the data directory has the marker
    `.kafka_cleanshutdown`, and never for `__cluster_metadata-0`, which a broker always recovers. `recovery_point`,
    `log_start_offset`: by default those in the data directory's checkpoints, 0 without them. `config`: the topic's
    settings; what it does not state is that in the metadata of the data directory, or Kafka's default. What a broker
    finds after an unclean shutdown, and the sizes of rebuilt indexes, depend on `index.interval.bytes`: if neither
    *config* nor the metadata has it, it is the one that the existing offset indexes show, or else Kafka's default.

    Producer ids do not expire in the plan: that depends on the time of the start.

    Cost: as the broker's. After an unclean shutdown, the segments from the recovery point on are read.
    Memory: the indexes of these segments.

    `max_batch_bytes` as in `rebuild_indexes`.

    Errors: ConfigError if `clean` is not given and the directory is not in a Kafka data directory; BatchTooLargeError.

    >>> load = cw.plan_kafka_load("tests/golden/damaged/torn-last-byte/tickets-0", clean=True)
    >>> load.log.log_end_offset
    285
    >>> for warning in load.warnings: print(warning.kind, warning.file)
    end_at_base 00000000000000000285.log
    >>> load = cw.plan_kafka_load("tests/golden/damaged/torn-last-byte/tickets-0", clean=False)
    >>> print(next(action for action in load.actions if action.kind == "cut"))
    00000000000000000285.log: cut from 10290 to 10098 bytes: 192 bytes lost (the file ends inside a batch)
    """

@final
class KafkaLoad:
    """What a broker does when it opens a partition directory, from `plan_kafka_load`."""

    @property
    def path(self) -> str:
        """The absolute path of the partition directory."""
    @property
    def is_clean(self) -> bool:
        """Whether the loading succeeds, loses nothing and accepts no damage. It may still rebuild indexes."""
    @property
    def closed_cleanly(self) -> bool:
        """Whether the broker takes the last shutdown for a clean one."""
    @property
    def recovery_point(self) -> int:
        """The recovery point with which the broker starts."""
    @property
    def log_start_offset(self) -> int:
        """The log start offset with which the broker starts, from the checkpoint."""
    @property
    def actions(self) -> list[LoadAction]:
        """What is done to the files, in order."""
    @property
    def log(self) -> LoadedLog | None:
        """The log afterwards; `None` if the loading fails."""
    @property
    def failure(self) -> LoadFailure | None:
        """How the loading fails; `None` if it succeeds."""
    @property
    def files(self) -> list[LoadedFile]:
        """Every file, before and afterwards, by name."""
    @property
    def lost_offsets(self) -> list[LostOffsets]:
        """The offsets that the log no longer has, ascending."""
    @property
    def bytes_cut(self) -> int:
        """The bytes that are cut off `.log` files, with the bytes of the segments that are removed because of that."""
    @property
    def warnings(self) -> list[LoadWarning]:
        """Damage that the broker accepts without a word."""
    @property
    def index_interval_bytes(self) -> int:
        """The `index.interval.bytes` of the plan."""
    @property
    def interval_source(self) -> Literal["given", "topic", "inferred", "default"]:
        """Where the interval is from.

        The settings, the topic's in the metadata, the existing offset indexes, or Kafka's default.
        """

@final
class LoadAction:
    """What a broker does to one file. `str()` returns a line."""

    @property
    def kind(
        self,
    ) -> Literal["delete", "delete_later", "rename", "cut", "rebuild", "create", "resize", "write"]:
        """What is done.

        `delete_later`: the file is renamed to `.deleted`, and deleted after `file.delete.delay.ms`. `rebuild`: an index
        is written from the batches. `resize`: the entries of an index stay.
        """
    @property
    def file(self) -> str:
        """The name of the file."""
    @property
    def new_file(self) -> str | None:
        """The name after a rename."""
    @property
    def reason(
        self,
    ) -> Literal[
        "deleted",
        "uncommitted",
        "replaced",
        "committed",
        "orphaned",
        "missing_index",
        "wrong_transaction_index",
        "recovery",
        "invalid_batch",
        "torn_batch",
        "invalid_offset",
        "after_cut",
        "below_log_start",
        "no_segment",
        "missing",
        "active_segment",
        "producers",
        "stray_snapshot",
        "snapshot_out_of_range",
        "corrupt_snapshot",
        "leader_epochs",
        "split",
    ]:
        """Why it is done."""
    @property
    def old_size(self) -> int | None:
        """The size before in bytes; `None` if the file does not exist."""
    @property
    def new_size(self) -> int | None:
        """The size afterwards in bytes; `None` if the file does not exist then."""
    @property
    def is_changed(self) -> bool:
        """Whether the file has other bytes afterwards than it has in the directory."""

@final
class LoadFailure:
    """The exception with which the loading ends. `str()` returns a sentence."""

    @property
    def kind(
        self,
    ) -> Literal[
        "corrupt_record",
        "invalid_record",
        "invalid_offset",
        "index_offset_overflow",
        "invalid_txn_state",
        "io",
        "storage",
        "kafka",
        "illegal_argument",
        "illegal_state",
        "number_format",
        "no_such_element",
        "null_pointer",
    ]:
        """The kind of the exception."""
    @property
    def exception(self) -> str:
        """The Java class of the exception."""
    @property
    def file(self) -> str | None:
        """The name of the file that causes it."""
    @property
    def reason(self) -> str:
        """What is wrong."""
    @property
    def takes_directory_offline(self) -> bool:
        """Whether the broker takes the data directory offline and continues. Otherwise it does not start."""

@final
class LoadedLog:
    """The log after a broker has loaded it."""

    @property
    def log_start_offset(self) -> int:
        """The log start offset (inclusive)."""
    @property
    def log_end_offset(self) -> int:
        """The log end offset (exclusive)."""
    @property
    def recovery_point(self) -> int:
        """The recovery point."""
    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the log end offset."""
    @property
    def segments(self) -> list[LoadedSegment]:
        """The segments, ascending."""
    @property
    def leader_epochs(self) -> list[tuple[int, int]]:
        """The leader epochs and their start offsets, ascending."""
    @property
    def producer_ids(self) -> list[int]:
        """The ids of the producers that the broker remembers, ascending."""

@final
class LoadedSegment:
    """A segment after a broker has loaded it."""

    @property
    def base_offset(self) -> int:
        """The base offset."""
    @property
    def size(self) -> int:
        """The size of the `.log` in bytes."""
    @property
    def offset_entries(self) -> int:
        """The number of entries of the offset index, as the broker counts them."""
    @property
    def time_entries(self) -> int:
        """The number of entries of the time index, as the broker counts them."""
    @property
    def largest_timestamp(self) -> int | None:
        """The largest timestamp that the broker knows of, in ms; `None` if it knows none."""

@final
class LoadedFile:
    """A file of the directory, before and after the loading."""

    @property
    def name(self) -> str:
        """The name of the file."""
    @property
    def old_size(self) -> int | None:
        """The size now in bytes; `None` if the file does not exist."""
    @property
    def new_size(self) -> int | None:
        """The size after the loading in bytes; `None` if the file does not exist then."""
    @property
    def closed_size(self) -> int | None:
        """The size after a clean shutdown that follows without an append; `None` if there is no file then."""
    @property
    def crc32c(self) -> int | None:
        """The CRC-32C of the bytes after that shutdown, or of those that a loading that fails leaves.

        `None` if they are a part of a file of the directory, and of a snapshot of several producers, which Kafka
        writes in the order of a hash map.
        """

@final
class LostOffsets:
    """Offsets whose records cannot be read after the loading. `str()` returns a sentence."""

    @property
    def start_offset(self) -> int:
        """The first offset (inclusive)."""
    @property
    def end_offset(self) -> int | None:
        """The end of the range (exclusive); `None` if it is not known where the log ended."""
    @property
    def is_hidden(self) -> bool:
        """Whether the bytes remain in the files, but the log ends below these offsets."""

@final
class LoadWarning:
    """Damage that a broker accepts without a word. `str()` returns a sentence."""

    @property
    def kind(self) -> Literal["torn_tail", "end_at_base", "padded_index", "empty_time_index"]:
        """What it is.

        `torn_tail`: bytes after the last whole batch stay, and the next append follows them. `end_at_base`: no batch
        was found in the last segment, and the log ends at its base offset. `padded_index`: zeros are taken for entries.
        `empty_time_index`: a missing time index was created without entries.
        """
    @property
    def file(self) -> str:
        """The name of the file."""
    @property
    def position(self) -> int:
        """The position of the damage in the file."""
    @property
    def size(self) -> int:
        """The size of the damage in bytes."""
