"""The tables of Kafka's internal topics."""

from collections.abc import Sequence
from typing import Any, final

import pandas as pd
import polars as pl
import pyarrow as pa

from cordwood._stubs.arguments import FilePath, Io, OnDamage
from cordwood._stubs.scan import DamagedRange

@final
class Table:
    """A table of an internal topic, in memory.

    Dataframe libraries read it through `__arrow_c_stream__`. `len(table)` is the number of its rows. Every column can
    have nulls, and a UUID is a string in Kafka's notation.

    >>> table = cw.metadata("tests/golden/16-data-dir").features
    >>> table.to_dicts()[0]
    {'feature': 'eligible.leader.replicas.version', 'level': 1}
    """

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns. Needs the extra `arrow`."""
    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """The damaged ranges that were left out, of all partitions; empty with `on_damage="raise"`."""
    def to_arrow(self) -> pa.Table:
        """Return the rows as a `pyarrow.Table`. Needs the extra `arrow`."""
    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a `pandas.DataFrame`. Needs the extra `pandas`."""
    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a `polars.DataFrame`. Needs the extra `polars`."""
    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict of its columns. Times are ms since the epoch. Needs no extra."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

def consumer_offsets(
    path: FilePath | Sequence[FilePath],
    *,
    groups: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
    on_damage: OnDamage = "raise",
    io: Io = "auto",
    max_batch_bytes: int = 134217728,
) -> Table:
    """Read the offsets that groups have committed, from `__consumer_offsets`.

    *path*: a data directory, or one partition directory of the topic, or a list of them: such as all data directories
    of a broker, among which the partitions are distributed. *groups*, *topics*: only these. `max_batch_bytes` as in
    `Log`.

    A row is a group, a topic and a partition, in this order: `group topic partition offset leader_epoch metadata
    commit_time expire_time topic_id`, then

    - `pending_offset pending_producer_id`: what a transaction that has not ended commits. An offset of a transaction
      is the committed one only when the transaction is.
    - `log_start_offset log_end_offset lag`: the log of the partition in these data directories, and the distance of
      the offset to its end; null if it is not there, or cannot be read
    - `coordinator_partition record_offset`: where the record is
    - `error`: why it is not decodable; why the log cannot be read; or that damage may have destroyed the marker of a
      transaction, so that its `pending_offset` may have been committed. Null for the others. With
      `on_damage="report"` a damaged range is such a row.

    With `"skip"` and `"report"`, a partition of the topic that has lost its segments is a row with an `error`.

    *Cost*: reads the partitions of the topic; the memory is in proportion to the number of different keys.

    *Errors*: `ConfigError` if the path is not of `__consumer_offsets`.

    >>> table = cw.consumer_offsets("tests/golden/16-data-dir", topics=["cities"])
    >>> [(row["group"], row["partition"], row["offset"], row["lag"]) for row in table.to_dicts()]
    [('readers', 0, 268, 0), ('readers', 1, 150, 0)]
    """

def consumer_groups(
    path: FilePath | Sequence[FilePath],
    *,
    groups: Sequence[str] | None = None,
    on_damage: OnDamage = "raise",
    io: Io = "auto",
    max_batch_bytes: int = 134217728,
) -> Table:
    """Read the groups in `__consumer_offsets`: classic, consumer, share and streams groups.

    The path and the rest as in `consumer_offsets`. A row is a group, by name: `group type state protocol_type protocol
    epoch assignment_epoch leader state_time members coordinator_partition record_offset error`. `state` is the one that
    follows from the records; `epoch` is the generation of a classic group. `members` is a list of structs with
    `member_id instance_id client_id client_host rack_id epoch subscribed_topics assignment`.
    A group that has only committed offsets is a classic one without a protocol type.

    >>> cw.consumer_groups("tests/golden/16-data-dir").column_names[:3]
    ['group', 'type', 'state']
    """

def transactions(
    path: FilePath | Sequence[FilePath],
    *,
    transactional_ids: Sequence[str] | None = None,
    on_damage: OnDamage = "raise",
    io: Io = "auto",
    max_batch_bytes: int = 134217728,
) -> Table:
    """Read the transactional ids in `__transaction_state`, with the state of the last transaction of each.

    *path*: a data directory, or one partition directory of the topic, or a list of them. `max_batch_bytes` as in `Log`.

    A row is a transactional id: `transactional_id producer_id producer_epoch state timeout_ms start_time
    last_update_time partitions previous_producer_id next_producer_id next_producer_epoch transaction_version
    coordinator_partition record_offset error`. `state` is one of `Empty Ongoing PrepareCommit PrepareAbort
    CompleteCommit CompleteAbort Dead PrepareEpochFence`. `partitions` is a list of structs with `topic` and
    `partitions`. `error` says why a record is not decodable. With `on_damage="report"` damage is a row with an `error`.

    *Errors*: `ConfigError` if the path is not of `__transaction_state`.

    >>> cw.transactions("tests/golden/16-data-dir").column_names[:4]
    ['transactional_id', 'producer_id', 'producer_epoch', 'state']
    """

def open_transactions(
    path: FilePath | Sequence[FilePath],
    *,
    topics: Sequence[str] | None = None,
    on_damage: OnDamage = "raise",
    io: Io = "auto",
    max_batch_bytes: int = 134217728,
) -> Table:
    """Find the transactions that the logs of data directories, or single logs, show as open.

    A transaction is open from the first record of a producer to the next marker. The first one of a partition holds
    back its committed readers; one whose producer is gone is a hanging transaction.

    A row is a transaction: `topic partition producer_id producer_epoch first_offset last_offset records start_time
    last_time`, then

    - `last_stable_offset records_behind`: where the committed readers of the partition stop, and the records from there
    - `transactional_id state timeout_ms`: of its producer, from `__transaction_state` of the same data directories;
      null if it has none there. A `LogWriter` knows the id of its own
    - `is_hanging`: its last record is older than its timeout (15 minutes if that is not known), and its coordinator
      does not know that it is open in this partition: no marker will come. Null if that is not known, because not all
      partitions of `__transaction_state` are there.
    - `error`

    The times are the largest timestamps of its first and of its last batch. `error` says if damage
    after its first offset may have destroyed its marker: then it may have ended. With `on_damage="report"` a damaged
    range is a row with an `error` too. So is, whatever `on_damage` is, a partition of a data directory that cannot be
    opened or read.

    `max_batch_bytes` as in `Log`, of the batches that are decompressed.

    *Cost*: walks the headers of the logs, and does not read their records; reads `__transaction_state`.

    >>> table = cw.open_transactions("tests/golden/11-transactions/payments-0")
    >>> [(row["producer_id"], row["first_offset"]) for row in table.to_dicts()]
    [(4, 903), (5, 940)]
    """

@final
class ClusterMetadata:
    """The metadata of a cluster at an offset of its log; returned by `metadata`."""

    @property
    def offset(self) -> int:
        """The end, exclusive: every record below it is applied, except the records in `errors`."""
    @property
    def snapshot(self) -> str | None:
        """The snapshot from which the replay began; `None` if it began with the log."""
    @property
    def topics(self) -> Table:
        """Topics by name: `topic topic_id partitions replicas`."""
    @property
    def partitions(self) -> Table:
        """Partitions by topic and number.

        `topic partition leader leader_epoch partition_epoch replicas isr adding_replicas removing_replicas
        eligible_leader_replicas last_known_elr leader_recovery_state directories topic_id`
        """
    @property
    def brokers(self) -> Table:
        """The registered brokers: the fields of Kafka's `RegisterBrokerRecord`, with all changes."""
    @property
    def controllers(self) -> Table:
        """The registered controllers: the fields of Kafka's `RegisterControllerRecord`."""
    @property
    def configs(self) -> Table:
        """Settings that were changed: `resource_type resource name value`."""
    @property
    def features(self) -> Table:
        """The levels of the features: `feature level`."""
    @property
    def acls(self) -> Table:
        """ACLs: `resource_type resource pattern_type principal host operation permission id`."""
    @property
    def client_quotas(self) -> Table:
        """Quotas: `user client_id ip key value`. The default user or client is `<default>`."""
    @property
    def scram_credentials(self) -> Table:
        """Users with SCRAM credentials: `user mechanism iterations`. Salts and keys are left out."""
    @property
    def delegation_tokens(self) -> Table:
        """Delegation tokens: `token_id owner requester renewers issue_time max_time expiry_time`."""
    @property
    def producer_ids(self) -> Table:
        """The first producer id of the next block, `next_producer_id`: at most one row."""
    @property
    def errors(self) -> Table:
        """What is missing, not decodable, or contradicts the records before it: `offset error`.

        Empty if all is right; otherwise each table may be wrong. Damage is here and in every table's `damaged_ranges`.
        """

def metadata(
    path: FilePath | Sequence[FilePath],
    *,
    topics: Sequence[str] | None = None,
    on_damage: OnDamage = "raise",
    io: Io = "auto",
    max_batch_bytes: int = 134217728,
) -> ClusterMetadata:
    """Read the metadata of a cluster from `__cluster_metadata`: its last snapshot, and the log after it.

    *path*: a data directory with `__cluster_metadata-0`, this partition directory, or one snapshot (`.checkpoint`). Of
    a list of data directories, the one that has it. *topics*: of topics, partitions and configs only these.
    `max_batch_bytes` as in `Log`.

    The log is read to its end. A controller applies a record when the quorum has it: the last records may not be
    applied there. A damaged snapshot is replaced by the one before it, unless *on_damage* is `"raise"`.

    *Errors*: `ConfigError` if the path is none of these.

    >>> [row["topic"] for row in cw.metadata("tests/golden/16-data-dir").topics.to_dicts()]
    ['__consumer_offsets', '__transaction_state', 'cities', 'rivers.compact']
    """

def metadata_records(
    path: FilePath | Sequence[FilePath],
    *,
    on_damage: OnDamage = "raise",
    io: Io = "auto",
    max_batch_bytes: int = 134217728,
) -> Table:
    """Read the records of `__cluster_metadata` one by one, control records of KRaft included.

    *path*: a data directory with `__cluster_metadata-0`, or this partition directory. `max_batch_bytes` as in `Log`.

    A row is a record: `offset leader_epoch timestamp type version data error`. `data` is JSON, as `kafka-dump-log
    --cluster-metadata-decoder` prints it. Offsets that are missing between others are a row with an `error`, and so is
    damage with `on_damage="report"`.

    >>> cw.metadata_records("tests/golden/16-data-dir").to_dicts()[0]["type"]
    'LEADER_CHANGE'
    """
