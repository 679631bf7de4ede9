"""The text of `kafka-dump-log`."""

from collections.abc import Iterable
from typing import final

import pyarrow as pa

from cordwood._stubs.arguments import FilePath, Time, Zone

@final
class Dump:
    """The contents of a partition's files as text; made by `dump`. An iterator over blocks of whole lines.

    Each file is opened when the blocks reach it. Blocks have 256 KiB and one line; a dump has one of them in memory
    at a time, with a part of the file and, if it is larger, a batch of records.

    *Errors*: where `kafka-dump-log` ends with an exception, the text up to there is returned first, and the next step
    raises a `CorruptLogError`, an `UnsupportedFormatError`, a `LogNotFoundError`, a `ConfigError` (a file's name) or
    an `OSError`.
    """

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are dumped."""
    @property
    def messages(self) -> list[str]:
        """The lines that `kafka-dump-log` writes to the standard error, as far as the dump has been read.

        Files with an unknown suffix and snapshots that are corrupt; and, after the last file, entries of indexes that
        do not match the `.log`, and record offsets that are not consecutive (normal in a compacted log; and in each
        segment but the first one, its first offset, which does not follow -1).
        """
    def text(self) -> str:
        """Return all text that has not been read yet.

        An error is raised without the text before it; an iteration returns it first.
        """
    def rows(
        self,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        *,
        tz: Zone | None = None,
    ) -> DumpRows:
        """Return what the dump shows of the `.log` and `.checkpoint` files as columns, from the first file on.

        Without *deep_iteration* there is a row for each batch: `file position last_offset max_timestamp base_offset
        producer_id delete_horizon size magic count base_sequence last_sequence producer_epoch leader_epoch
        timestamp_type codec crc is_valid is_transactional is_control`; what old formats do not have is null. With it,
        or with what implies it, there is a row for each record: `file batch_position offset timestamp key_size
        value_size sequence timestamp_type control key payload crc is_valid header_keys`; the texts of `key` and
        `payload` are null unless they are printed, `crc` and `is_valid` belong to a message of an old format.
        Numbers are as stored; timestamps are in milliseconds, -1 if there is none.

        The ranges are half-open and select records, or the batches that overlap with the offsets and whose
        `max_timestamp` is in the time range. *tz*: the time zone of texts without one. Needs pyarrow.

        >>> log = "tests/golden/01-small/tickets-0/00000000000000000000.log"
        >>> [batch] = cw.dump(log).rows(start_offset=10, end_offset=12)
        >>> batch.to_pydict()["base_offset"], batch.to_pydict()["is_valid"]
        ([10], [True])
        """
    def __iter__(self) -> Dump: ...
    def __next__(self) -> str: ...
    def _next_block(self) -> tuple[bytes, bool] | None:
        """Return the next block as UTF-8, and whether it is for the standard error; `None` at the end."""

@final
class DumpRows:
    """Record batches of Arrow; made by `Dump.rows`.

    *Errors*: as `Dump`, after the rows before the error.
    """

    @property
    def schema(self) -> pa.Schema:
        """The schema."""
    def __iter__(self) -> DumpRows: ...
    def __next__(self) -> pa.RecordBatch: ...

def dump(
    files: FilePath | Iterable[FilePath],
    *,
    deep_iteration: bool = False,
    print_data_log: bool = False,
    index_sanity_check: bool = False,
    verify_index_only: bool = False,
    max_message_size: int = 5242880,
    max_bytes: int = 2147483647,
    skip_record_metadata: bool = False,
    key_decoder_class: str | None = None,
    value_decoder_class: str | None = None,
    offsets_decoder: bool = False,
    transaction_log_decoder: bool = False,
    cluster_metadata_decoder: bool = False,
    remote_log_metadata_decoder: bool = False,
    share_group_state_decoder: bool = False,
    max_batch_bytes: int = 134217728,
) -> Dump:
    """Return the contents of files as text, byte for byte as `kafka-dump-log` of Kafka 4.3 prints it.

    *files*: `.log`, `.index`, `.timeindex`, `.txnindex`, `.snapshot` and `.checkpoint` (a snapshot of the metadata
    log), in any state of damage. A directory stands for its files in name order, and then for the files of the
    partitions in it. An index is compared with the `.log` beside it.

    The options are as for `kafka-dump-log`. *deep_iteration*: a line for each record. *print_data_log*: keys and
    values; the decoders imply it, and it implies *deep_iteration*. *index_sanity_check*: only the check that a broker
    does when it opens an index. *verify_index_only*: entries are compared, but not printed. *max_message_size*: bytes
    within which the batch of an index entry must end. *max_bytes*: bytes of a `.log` that are read.
    *skip_record_metadata*: only keys and values. *key_decoder_class*, *value_decoder_class*: `String` (the default),
    `Integer`, `Long`, `Double` or `Bytes`, or the class of one, such as `org.apache.kafka.tools.api.LongDecoder`.
    `Bytes` (`DefaultDecoder`) are hexadecimal digits here; Kafka prints the identity of a Java array. The other
    decoders are for records of internal topics. *max_batch_bytes* (not an option of the tool): the largest batch whose
    records are read, as stored and decompressed; at a larger one the text ends with a `BatchTooLargeError`.

    *Source*: Kafka `DumpLogSegments`.

    >>> text = cw.dump("tests/golden/01-small/tickets-0/00000000000000000000.index").text()
    >>> text.splitlines()[1]
    'offset: 8 position: 629'
    """
