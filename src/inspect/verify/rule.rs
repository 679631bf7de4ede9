//! The rules that are checked: for each its code, its severity, what Kafka does where it is broken, and what
//! to do.

use std::borrow::Cow;
use std::fmt;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub enum Severity {
    /// No rule is broken; an operator may want to know it.
    Info,
    /// Something is missing or left over, and can be made again or removed. No record is affected.
    Warning,
    /// Records are damaged or missing, or a file makes Kafka return wrong results, delete records or refuse
    /// to start.
    Error,
}

impl Severity {
    /// A stable name: `info`, `warning`, `error`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub(super) enum Remedy {
    /// `cordwood reindex`: it refuses a log with damage.
    Reindex,
    /// `cordwood repair`: it mends all but damage between batches.
    Repair,
    /// `cordwood repair --policy salvage`
    Salvage,
    /// `cordwood recover`: the files of a writer of this library.
    Recover,
    /// Something that no command does.
    Manual(Cow<'static, str>),
    Nothing,
}

impl Remedy {
    /// Something that no command does.
    pub(super) const fn manual(sentence: &'static str) -> Self {
        Self::Manual(Cow::Borrowed(sentence))
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $severity:ident, $remedy:expr, $kafka:literal;)+) => {
        /// A rule that a file breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $name,)+
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// A stable name, such as `damaged_batch`.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// The usual severity of a finding of this rule. That of an offset gap depends on what may
            /// explain it, and that of a snapshot above the end, or of a replacement of segments, on what it
            /// says; that of a batch above the limit on whether the rest of its segment was checked.
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// What Kafka does with it when it loads the log, after a clean stop and after a crash.
            pub fn kafka(self) -> &'static str {
                match self { $(Self::$name => $kafka,)+ }
            }

            pub(super) fn remedy(self) -> Remedy {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

rules! {
    /// A batch whose checksum, length, magic, count, offsets or leader epoch is wrong.
    DamagedBatch = "damaged_batch", Error, Remedy::Salvage,
        "after a clean stop: loads it; readers fail here, or skip the rest of the segment. \
         After a crash: cuts the segment here and deletes all segments after it";
    /// A batch in a format that this version does not support.
    UnsupportedBatch = "unsupported_batch", Error, Remedy::manual("verify it with a newer version of cordwood"),
        "reads it if its version supports the format";
    /// A batch above the limit `max_batch_bytes`, stored or decompressed: its records were not decoded. Its
    /// checksum is right. An error where the rest of the segment was not checked, because the offsets are in
    /// the records.
    BatchTooLarge = "batch_too_large", Warning,
        Remedy::manual("not damage, and not checked: verify it with a higher max_batch_bytes (--max-batch-bytes)"),
        "loads it and reads it: Kafka limits no batch on disk";
    /// A segment whose file has the name of another one, above its first batch, or a name inside the offsets
    /// of the segment before it: it was renamed, or copied from another replica.
    MisnamedSegment = "misnamed_segment", Error,
        Remedy::manual("rename the .log to the offset of its first batch, or move it out of the partition"),
        "a name above the first batch: after a crash, or without its indexes, usually does not start, because no index entry can have such \
         an offset. A name inside the offsets of the segment before: loads both; a consumer that comes from before reads the records of both \
         in order, and one that begins at an offset of both reads those of the second file";
    /// Bytes after the last whole batch of the log.
    TornTail = "torn_tail", Error, Remedy::Repair,
        "after a clean stop: the log end offset may fall to the base offset of the segment. After a crash: cuts these bytes off";
    /// Zeros after the last batch of the log, as in a preallocated file.
    ZerosAfterEnd = "zeros_after_end", Info, Remedy::Repair,
        "after a clean stop: fails or ignores them. After a crash: cuts them off";
    /// The records of a batch whose checksum is right: their count, lengths, offsets, or compressed bytes are
    /// wrong.
    DamagedRecords = "damaged_records", Error,
        Remedy::manual("restore the segment from another replica, or copy the other records with cordwood cat --on-damage skip"),
        "loads it, also after a crash: the checksum is right. Consumers and the cleaner fail at this batch";
    /// A compressed batch of an old format, with a right checksum, that cannot be decompressed, or has no
    /// whole message in it.
    UndecodableWrapper = "undecodable_wrapper", Error,
        Remedy::manual(
            "restore the segment from another replica, or copy the other records with cordwood cat --on-damage skip; cordwood verify \
             --as-kafka shows whether a broker starts",
        ),
        "does not start where it needs the first offset of the batch, also after a clean stop: in the last segment, at or after the last \
         entry of the offset index. Elsewhere loads it; consumers and the cleaner fail at this batch";
    /// Records whose offsets do not ascend within their batch, or are above its last offset; the checksum is
    /// right.
    OffsetsOutOfPlace = "offsets_out_of_place", Warning,
        Remedy::manual("nothing is lost by a restart; produce the records again if consumers need all of them"),
        "loads it; consumers return each record whose offset is above the one before it, and leave out the others";
    /// A batch with a right checksum that begins at or below the last offset before it.
    OverlappingBatch = "overlapping_batch", Warning,
        Remedy::manual("nothing is lost by a restart; produce the records again if consumers need all of them"),
        "loads it, and cuts nothing off after a crash; consumers leave out its records up to the last offset before it";
    /// Two or more batches with right checksums that repeat the offsets up to the last one before them.
    RepeatedBatches = "repeated_batches", Warning,
        Remedy::manual("stop the broker cleanly, or copy the records with cordwood copy: the copy has each offset once"),
        "loads it, and consumers pass over them. After a crash: cuts nothing off, but empties the segment and deletes those after it \
         where an index entry is due for one of them";
    /// A leader epoch below −1, or a last offset below the base offset, in a batch whose checksum is right.
    OddHeader = "odd_header", Warning,
        Remedy::manual("nothing is lost by a restart; produce the records again if consumers need all of them"),
        "loads it, and cuts nothing off after a crash; after a last offset far below the base offset, does not load the log";
    /// The largest timestamp in a batch's header is not that of its records.
    WrongMaxTimestamp = "wrong_max_timestamp", Warning,
        Remedy::manual("searches by time and retention are wrong for this batch; produce its records again if that matters"),
        "loads it, and uses the header's timestamp for searches by time and for retention";
    /// A `.log` of more than 2^31 - 1 bytes: positions in indexes have 32 bits.
    SegmentTooLarge = "segment_too_large", Error, Remedy::manual("copy the records with cordwood copy"),
        "does not load the log";
    /// Offsets more than 2^31 - 1 above the base offset, to which no index can refer.
    OffsetsTooFar = "offsets_too_far", Info, Remedy::Recover,
        "after a clean stop: loads it. After a crash: splits the segment";
    /// Timestamps after the present time.
    FutureTimestamps = "future_timestamps", Info,
        Remedy::manual("retention by time keeps the segment until then; limit message.timestamp.after.max.ms"),
        "loads it; retention by time does not delete the segment before that time";
    /// Offsets in no batch. Between two segments it is an error unless something explains the gap: a segment
    /// may be lost. Between two batches of a segment it is a warning, because hardly anything but compaction
    /// takes whole batches out of a file, and a note if a truncation explains the gap.
    OffsetGap = "offset_gap", Error, Remedy::manual("restore the missing segment or batches from another replica"),
        "loads it; readers continue after the gap without an error";
    /// Batches of a producer that contradict its open transaction.
    TransactionsContradict = "transactions_contradict", Error, Remedy::manual(
            "copy the log up to there with cordwood copy --end-offset; the records from there on are not in that copy, but cordwood cat \
             prints them",
        ),
        "does not load the log when it reads these batches, as it does after a crash";

    /// No `.index`.
    IndexMissing = "index_missing", Warning, Remedy::Reindex, "reads the whole segment and builds the index, also after a clean stop";
    /// No `.timeindex`.
    TimeIndexMissing = "time_index_missing", Warning, Remedy::Reindex,
        "after a clean stop: creates an empty one, and searches by time may find a record that is too late, or none. \
         After a crash: builds it";
    /// An index without entries, where entries are due.
    IndexEmpty = "index_empty", Warning, Remedy::Reindex,
        "after a clean stop: uses it; look-ups read the segment from its start. After a crash: builds it";
    /// An index whose size is not a whole number of entries.
    IndexFragment = "index_fragment", Warning, Remedy::Reindex,
        "after a clean stop: ignores the fragment. After a crash: builds the index";
    /// Zeros after the entries of an index of a segment that is not the last.
    IndexZeroTail = "index_zero_tail", Warning, Remedy::Reindex,
        "after a clean stop: takes the zeros for entries, and look-ups may be wrong. After a crash: builds the index";
    /// An entry of an offset index that does not agree with the log.
    IndexEntryWrong = "index_entry_wrong", Error, Remedy::Reindex,
        "after a clean stop: uses it, and reads may fail or skip records. After a crash: builds the index";
    /// An entry of an offset index that names a batch which repeats offsets.
    IndexEntryRepeated = "index_entry_repeated", Warning, Remedy::Reindex,
        "uses it: a consumer that begins there gets the records that were appended again";
    /// An entry of a time index that does not agree with the log.
    TimeIndexEntryWrong = "time_index_entry_wrong", Error, Remedy::Reindex,
        "after a clean stop: uses it; searches by time and retention may be wrong. After a crash: builds the index";
    /// A time index without an entry for the largest timestamp of its segment, which is not the last.
    TimeIndexIncomplete = "time_index_incomplete", Warning, Remedy::Reindex,
        "after a clean stop: searches by time may skip the segment. After a crash: builds the index";
    /// An entry of a transaction index that does not agree with the markers in the log.
    TransactionIndexEntryWrong = "transaction_index_entry_wrong", Error, Remedy::Reindex,
        "after a clean stop: committed readers skip records that were committed, or fail. After a crash: builds the index";
    /// An aborted transaction without an entry in the transaction index.
    TransactionIndexEntryMissing = "transaction_index_entry_missing", Error, Remedy::Reindex,
        "after a clean stop: committed readers get records of the aborted transaction. After a crash: builds the index";
    /// Bytes after the last entry of a transaction index.
    TransactionIndexFragment = "transaction_index_fragment", Warning, Remedy::Reindex,
        "after a clean stop: ignores them, and appends entries after them that it then cannot read. After a crash: builds the index";
    /// An index file of a segment that does not exist.
    OrphanFile = "orphan_file", Warning, Remedy::Repair, "deletes it";

    /// A producer snapshot that cannot be read.
    SnapshotUnreadable = "snapshot_unreadable", Warning, Remedy::Reindex,
        "deletes it, and uses the next older one, or reads the whole log";
    /// A producer snapshot that does not agree with the batches.
    SnapshotWrong = "snapshot_wrong", Error, Remedy::Reindex,
        "uses it: idempotent producers may fail or write duplicates, and transactions stay open or end at a wrong offset";
    /// A producer snapshot as of an offset above the log end offset: if it names a record there, records were
    /// lost; otherwise it may be left over.
    SnapshotBeyondEnd = "snapshot_beyond_end", Error,
        Remedy::manual("restore the records after the log end from another replica, or continue without them: remove the file"),
        "deletes it";
    /// No producer snapshot, in a log with producers.
    SnapshotMissing = "snapshot_missing", Warning, Remedy::Reindex,
        "after a clean stop: takes the state of all producers as empty. After a crash: reads the whole log";
    /// A `leader-epoch-checkpoint` that cannot be read.
    LeaderEpochsUnreadable = "leader_epochs_unreadable", Error, Remedy::Repair,
        "takes the data directory offline, or refuses to start";
    /// A `leader-epoch-checkpoint` without an epoch, where batches have one.
    LeaderEpochsMissing = "leader_epochs_missing", Warning, Remedy::Repair,
        "uses it as it is: a follower may truncate too much or too little. After a crash: adds the epochs of recovered segments";
    /// A line of `leader-epoch-checkpoint` that no batch can agree with.
    LeaderEpochsWrong = "leader_epochs_wrong", Warning, Remedy::Repair, "drops the line when it loads the file";
    /// Leader epochs that fall: another cluster, such as one in which a backup was restored, continued the
    /// log.
    LeaderEpochsFall = "leader_epochs_fall", Warning, Remedy::Nothing,
        "reads on; leader-epoch-checkpoint begins at the lower epoch, or after a crash knows only the higher one, so that a follower may \
         truncate too much or too little";
    /// A batch whose leader epoch is not the one that `leader-epoch-checkpoint` has for its offset.
    LeaderEpochMismatch = "leader_epoch_mismatch", Error, Remedy::Repair,
        "does not compare them: a follower may truncate too much or too little";
    /// A checkpoint that cannot be read.
    CheckpointUnreadable = "checkpoint_unreadable", Error,
        Remedy::manual("restore the file from a copy"),
        "takes the data directory offline, and ends if it has no other. A word in the place of a number, or a negative number of lines: \
         continues without the file; of the high watermarks, no partition gets a leader";
    /// A negative offset in a checkpoint.
    CheckpointOffsetNegative = "checkpoint_offset_negative", Warning,
        Remedy::manual("remove the partition's line, and lower the count in the second line of the file by one"),
        "takes the start of the log in its place";
    /// A recovery point above the log end offset: records were lost.
    RecoveryPointBeyondEnd = "recovery_point_beyond_end", Error,
        Remedy::manual(
            "restore the records after the log end from another replica, or continue without them: cordwood repair with --policy salvage",
        ),
        "after a clean stop: loads the log as it is. After a crash: recovers nothing of this log below that offset";
    /// A log start offset above the log end offset.
    LogStartBeyondEnd = "log_start_beyond_end", Error,
        Remedy::manual(
            "before a broker starts: remove the partition's line in log-start-offset-checkpoint, and lower the count in the second \
             line of the file by one",
        ),
        "deletes all segments of the partition, and starts it empty at that offset";
    /// A high watermark above the log end offset.
    HighWatermarkBeyondEnd = "high_watermark_beyond_end", Warning,
        Remedy::manual("restore the records after the log end from another replica"),
        "lowers the high watermark to the log end offset";
    /// A `partition.metadata` without a valid topic id.
    PartitionMetadataUnreadable = "partition_metadata_unreadable", Error,
        Remedy::manual("restore the file from another replica of the partition"),
        "does not load the partition";
    /// A partition without `partition.metadata`, in a data directory with the metadata of its cluster.
    PartitionMetadataMissing = "partition_metadata_missing", Error,
        Remedy::manual("restore the file from another replica of the partition before a broker starts"),
        "takes the partition for a stray one: renames the directory to -stray, and creates an empty partition";
    /// A `partition.metadata` with another topic id than other partitions of the topic have, or with that of
    /// another topic.
    TopicIdMismatch = "topic_id_mismatch", Error,
        Remedy::manual("restore partition.metadata from another replica of the partition before a broker starts"),
        "takes the partition for one of the topic with that id: if the broker has no such replica, renames the directory to -stray; \
         otherwise refuses to lead or follow it";
    /// A partition that the metadata of the cluster does not have, or has on other brokers: that of a deleted
    /// topic, for example.
    StrayPartition = "stray_partition", Error,
        Remedy::manual(
            "if its records are wanted, move the directory out of the data directory before a broker starts; otherwise nothing",
        ),
        "takes the partition for a stray one: renames the directory to -stray, and serves none of its records; no broker deletes it";
    /// A partition that the metadata of the cluster has on this broker and in this data directory, without a
    /// directory.
    PartitionMissing = "partition_missing", Error,
        Remedy::manual(
            "restore the directory from a copy before a broker starts, unless another data directory of the broker has it; verify all \
             data directories of a broker together",
        ),
        "creates an empty partition: where it becomes the leader, and always if no other broker has a replica, the records are gone; \
         as a follower it copies them";
    /// Several directories of one partition, or one that is being moved here beside the live one.
    DuplicateDirectory = "duplicate_directory", Error,
        Remedy::manual("compare them with cordwood diff, and move all but one of them out of the data directory"),
        "does not start";
    /// A `meta.properties` that cannot be read, or that has another `directory.id` than the metadata of the
    /// cluster.
    MetaPropertiesUnreadable = "meta_properties_unreadable", Error,
        Remedy::manual(
            "write the file again: version=1, and the broker's cluster.id, node.id and the directory.id of this directory, which \
             the table partitions of cordwood metadata has; without it no partition there gets a leader",
        ),
        "does not start, or takes the data directory offline; with another directory.id, none of its partitions gets a leader";
    /// A `quorum-state` that cannot be read.
    QuorumStateUnreadable = "quorum_state_unreadable", Error,
        Remedy::manual(
            "of a controller that is alone, remove the file: it elects itself again, from the epoch in __cluster_metadata-0. Of several \
             controllers, restore the file, or remove the controller from the quorum and add it again: without the file it may vote twice \
             in one epoch",
        ),
        "does not start";
    /// A newest snapshot of the cluster's metadata, or a `bootstrap.checkpoint`, that a broker cannot read
    /// whole.
    MetadataSnapshotDamaged = "metadata_snapshot_damaged", Error,
        Remedy::manual("restore the file from another controller, or from a copy"), "does not start";
    /// A record of the metadata log of the cluster that a broker cannot read, or that contradicts those
    /// before it.
    MetadataRecordUnreadable = "metadata_record_unreadable", Error,
        Remedy::manual(
            "of several controllers, stop this one and remove the files of the directory but quorum-state: it copies the log from the \
             others; of a controller that is alone, restore the directory from a copy",
        ),
        "does not start";
    /// A data directory of a broker without the metadata log of the cluster.
    ClusterMetadataMissing = "cluster_metadata_missing", Warning,
        Remedy::manual("restore the directory from a copy, unless another data directory of the broker has it"),
        "if it is its own controller, starts as an empty cluster: renames the directories of all partitions to -stray, and serves none of \
         their records; otherwise gets the metadata from the controllers";

    /// A `.cordwood.*` file that cannot be read.
    WriterFileUnreadable = "writer_file_unreadable", Warning, Remedy::Recover, "ignores the file";
    /// A position of a consumer (`.cordwood.positions/`) that cannot be read.
    PositionUnreadable = "position_unreadable", Warning,
        Remedy::manual("commit the consumer's offset again, or remove the file"), "ignores the directory";
    /// The file of the names of producers, or of the producers without records in the log, cannot be read.
    ProducerNamesUnreadable = "producer_names_unreadable", Warning,
        Remedy::manual("remove the file: named producers that it is needed for then begin again at sequence 0"),
        "ignores the file";
    /// A log that ends below the offset up to which a writer synced it.
    LostEnd = "lost_end", Error,
        Remedy::manual("restore the records after the log end from a copy, or continue without them: cordwood repair with --policy salvage"),
        "ignores the file";
    /// Segments that are missing or have another size than when the writer closed the log.
    NotAsClosed = "not_as_closed", Error,
        Remedy::manual("restore the segment from a copy, or continue without it: cordwood repair with --policy salvage"),
        "ignores the file";
    /// A log whose first segments are missing: a writer stores the log start offset before it deletes
    /// segments, and raises the start of the first leader epoch, as a broker does.
    LostStart = "lost_start", Error,
        Remedy::manual("restore the first segments from a copy, or continue without them: cordwood repair with --policy salvage"),
        "starts the log at its first segment";
    /// A log whose start is below its first segment, by its leader epochs and by
    /// `log-start-offset-checkpoint`.
    RemoteStart = "remote_start", Warning,
        Remedy::manual(
            "of a topic with remote.storage.enable=true, nothing: its start is in remote storage; otherwise restore the first segments \
             from a copy",
        ),
        "reads the offsets below the first segment from remote storage; without it, starts the log at its first segment";
    /// A truncation that was interrupted.
    TruncationInterrupted = "truncation_interrupted", Warning, Remedy::Recover, "ignores the file";
    /// Bytes that a recovery has cut off.
    Quarantined = "quarantined", Info, Remedy::manual("look at the bytes, then remove the directory"), "ignores the directory";

    /// A replacement of segments that was committed, but not renamed.
    ReplacementCommitted = "replacement_committed", Warning, Remedy::Repair,
        "deletes the segments that it replaces, and renames it";
    /// A replacement of segments that was not committed.
    ReplacementUncommitted = "replacement_uncommitted", Warning, Remedy::Repair, "deletes the file";
    /// A copy that is not complete.
    UnfinishedCopy = "unfinished_copy", Error,
        Remedy::manual("run the copy again, which continues it, or remove the directory"),
        "until its segments are complete: deletes its files, and creates an empty log. After that: loads it";
    /// A write of the Spark sink that was interrupted: readers may see a part of its records.
    SparkWriteUnfinished = "spark_write_unfinished", Warning,
        Remedy::manual(
            "take its records back before another program appends: cordwood spark-writes lists the writes of a data directory, and \
             undoes one with --undo ID --apply",
        ),
        "ignores the directory, and serves the records";
    /// A file that is being deleted.
    DeletedFile = "deleted_file", Info, Remedy::Nothing, "deletes it";
    /// A file with a name that Kafka does not know.
    ForeignFile = "foreign_file", Info, Remedy::Nothing, "ignores it";
    /// A file with the suffix of a segment and a name that is no offset of 20 digits.
    ForeignSegmentName = "foreign_segment_name", Error,
        Remedy::manual("if it is a segment of this log, give it its name: its base offset in 20 digits; otherwise move it out of the directory"),
        "does not load the log, or takes the file for a segment";
    /// A file of a segment or of a broker that is not a regular file.
    NotAFile = "not_a_file", Error, Remedy::manual("move it out of the directory"),
        "ignores a directory where it needs no file, and hangs or fails at anything else";
    /// A symbolic link in the place of a file. It was not followed, so that what it leads to was not checked.
    LinkedFile = "linked_file", Error,
        Remedy::manual("put the file itself in the place of the link, or verify a copy without links (cp -RL)"),
        "follows the link";
    /// Files of another user than the owner of `meta.properties`, or outside of a data directory of the
    /// partition: what root has restored or repaired, where the broker runs as a user of its own.
    OtherOwner = "other_owner", Warning,
        Remedy::manual("give the files to the user as whom the broker runs (chown -R)"),
        "if it may not write to the file: takes the data directory offline, and does not start if it has no other";
    /// A directory in a data directory that is not a partition's.
    ForeignDirectory = "foreign_directory", Error,
        Remedy::manual(
            "move it out of the data directory; what belongs to a file system stays: make a directory beside it the data directory, \
             with all other files in it",
        ),
        "does not start";
    /// A partition that a broker cannot load after a clean stop.
    LoadFails = "load_fails", Error, Remedy::Repair, "does not start, or takes the data directory offline";
    /// A partition without a segment that had records.
    NoSegment = "no_segment", Error, Remedy::manual("restore the segments from another replica"),
        "creates an empty log at the partition's offset in log-start-offset-checkpoint, without one at 0, and deletes the producer \
         snapshots and the leader epochs that are not in it: as the leader it has lost the records; as a follower it copies them";
    /// A file that cannot be read.
    Unreadable = "unreadable", Error, Remedy::manual("check the disk and the permissions"),
        "takes the data directory offline, or deletes what it cannot read when it recovers";
    /// A file that was changed, replaced or removed during the verification.
    Changed = "changed", Warning, Remedy::manual("verify it again"), "nothing: a broker or a writer has changed it";
    /// Findings of one file that were left out because there are too many.
    FindingsLeftOut = "findings_left_out", Error, Remedy::Nothing, "as with the findings before it";
}
