//! The first difference of two replicas of a partition.
//!
//! Offsets that only one of them has at its start (retention) or at its end (lag) are no difference. The
//! offsets of both are compared batch by batch; batches of the same bytes are not decoded. Other batches are
//! compared record by record, because the same records may be stored in another form: compressed, in other
//! batches, or with another leader epoch.
//!
//! The leader epochs then say whether a follower would find the difference: it truncates its log to where its
//! epochs and its leader's part. Kafka: `AbstractFetcherThread`, `LeaderEpochFileCache.endOffsetFor`.

mod lineage;
mod side;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::log::{DamagedRange, Log, LogOptions, ScanOptions};
use crate::record::MAX_BATCH_BYTES;
use crate::types::{Interrupt, Io};
use side::{Next, Side};

pub use side::RecordPlace;

/// What is compared, and how.
#[derive(Debug, Clone, Copy)]
pub struct DiffOptions {
    /// The first offset that is compared; `None`: the higher of the two log start offsets.
    pub start_offset: Option<i64>,
    /// The end of the comparison, exclusive; `None`: the lower of the two log end offsets.
    pub end_offset: Option<i64>,
    /// The largest batch, bytes, as stored and decompressed. See [`LogOptions::max_batch_bytes`].
    pub max_batch_bytes: usize,
    /// Called during the comparison.
    pub interrupt: Interrupt,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            start_offset: None,
            end_offset: None,
            max_batch_bytes: MAX_BATCH_BYTES,
            interrupt: Interrupt::default(),
        }
    }
}

/// The comparison of two replicas.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Difference {
    /// The two replicas.
    pub replicas: [Replica; 2],
    /// The offsets that were compared: inclusive.
    pub start_offset: i64,
    /// Exclusive. Not higher than the offset of the first difference.
    pub end_offset: i64,
    /// The number of batches with the same bytes in both.
    pub same_batches: u64,
    /// The number of records that are the same although their batches are not.
    pub same_records: u64,
    /// The first records that are stored in another form.
    pub other_form: Option<OtherForm>,
    /// The first offset at which the replicas differ; `None` if they have the same records.
    pub first: Option<FirstDifference>,
}

/// One of the replicas.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Replica {
    /// The partition directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// Inclusive.
    pub log_start_offset: i64,
    /// Exclusive.
    pub log_end_offset: i64,
    /// The leader epochs in `leader-epoch-checkpoint` and their start offsets; none if there is no file or a
    /// damaged one.
    pub leader_epochs: Vec<(i32, i64)>,
    /// The offset to which this replica would truncate its log as a follower of the other one, its log end
    /// offset if it would keep everything; `None` if its epochs do not tell.
    pub truncated_to: Option<i64>,
    /// The warnings of reading it, such as bytes after its last whole batch.
    pub warnings: Vec<String>,
}

/// Records that are the same, in batches that are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub struct OtherForm {
    /// The first such offset.
    pub offset: i64,
    /// Whether the batches have other offsets there.
    pub batches: bool,
    /// Whether the codecs differ there.
    pub codec: bool,
    /// Whether the leader epochs differ there.
    pub leader_epoch: bool,
    /// Whether the producer, its epoch, or whether it is a transaction differ there.
    pub producer: bool,
    /// Whether other fields of the headers differ there, such as the format, the delete horizon, the
    /// sequence numbers and the largest timestamp; of batches with other offsets only those that do not
    /// depend on the records.
    pub header: bool,
    /// Whether nothing of these differs there, but the bytes of the records do, as with another level of
    /// compression.
    pub bytes: bool,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum DifferentField {
    /// One of the replicas has no record with this offset.
    Record,
    /// One of them is a control record, such as the marker of a transaction, and the other one is not.
    Control,
    /// The timestamps, or their types.
    Timestamp,
    /// The keys.
    Key,
    /// The values.
    Value,
    /// The headers.
    Headers,
    /// Bytes of one of the replicas are damaged.
    Damage,
}

impl DifferentField {
    /// A stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Control => "control",
            Self::Timestamp => "timestamp",
            Self::Key => "key",
            Self::Value => "value",
            Self::Headers => "headers",
            Self::Damage => "damage",
        }
    }
}

/// Why replicas differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum DifferenceCause {
    /// The leader epochs part at or before the offset: a follower truncates its log to there, and the
    /// replicas are the same again.
    Epochs,
    /// One of the replicas is damaged.
    Damage,
    /// Neither: the checksums of both are right, and a follower does not notice the difference.
    Unknown,
}

impl DifferenceCause {
    /// A stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Epochs => "epochs",
            Self::Damage => "damage",
            Self::Unknown => "unknown",
        }
    }
}

/// The first difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct FirstDifference {
    /// The offset.
    pub offset: i64,
    /// What differs there.
    pub field: DifferentField,
    /// Why.
    pub cause: DifferenceCause,
    /// The record in each replica; `None` where there is none or its bytes are damaged.
    pub places: [Option<RecordPlace>; 2],
    /// The position in each file of the first byte after the checksums in which the two batches differ;
    /// `None` if the batches do not begin at the same offset, or one of them is damaged.
    pub different_byte: Option<[u64; 2]>,
    /// What is wrong with the bytes of each replica; `None` for one that is not damaged there.
    pub damage: [Option<DamagedRange>; 2],
}

impl Difference {
    /// Compares two partition directories. Nothing is changed. *Memory*: a batch of each and its records.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative offset, and if the replicas have no offset of the range in common
    /// (two logs that are empty at the same offset are the same); [`Error::LogNotFound`]; [`Error::Io`];
    /// [`Error::LogChanged`]; [`Error::Interrupted`].
    pub fn between(a: &Path, b: &Path, options: &DiffOptions) -> Result<Self> {
        for (argument, given) in [("start_offset", options.start_offset), ("end_offset", options.end_offset)]
        {
            if let Some(offset) = given.filter(|offset| *offset < 0) {
                return Err(Error::config(argument, "an offset from 0 to 2^63 - 1", offset.to_string()));
            }
        }
        let open = |path| {
            let options = LogOptions {
                io: Io::Pread,
                max_batch_bytes: options.max_batch_bytes,
                interrupt: options.interrupt,
                ..LogOptions::default()
            };
            Log::open(path, options)
        };
        let logs = [open(a)?, open(b)?];
        let replicas = lineage::replicas(&logs)?;
        let [one, other] = &replicas;
        let first = one.log_start_offset.max(other.log_start_offset);
        let end = one.log_end_offset.min(other.log_end_offset);
        // nothing would be compared; but an empty log is the same as another one
        let are_empty = replicas.iter().all(|replica| replica.log_start_offset == replica.log_end_offset);
        if first > end || first == end && !are_empty {
            let offsets = |replica: &Replica| {
                format!("offsets {} to {} (exclusive)", replica.log_start_offset, replica.log_end_offset)
            };
            let expected =
                format!("a replica that has offsets in common with the other one, {}", offsets(one));
            return Err(Error::config("b", expected, offsets(other)));
        }
        let start_offset = options.start_offset.unwrap_or(first).max(first);
        let end_offset = options.end_offset.unwrap_or(end).min(end);
        if start_offset > end_offset || start_offset == end_offset && !are_empty {
            let expected = format!("offsets that both replicas have: {first} to {end} (exclusive)");
            let found = format!("offsets {start_offset} to {end_offset}");
            let argument = if options.start_offset.is_some() { "start_offset" } else { "end_offset" };
            return Err(Error::config(argument, expected, found));
        }
        let mut found = Self {
            replicas,
            start_offset,
            end_offset,
            same_batches: 0,
            same_records: 0,
            other_form: None,
            first: None,
        };
        let scan = |log: &Log| {
            let mut scan = ScanOptions { include_control: true, ..ScanOptions::default() };
            scan.ranges.start_offset = Some(start_offset);
            scan.ranges.end_offset = Some(end_offset);
            scan.on_damage = crate::log::OnDamage::Report;
            log.scan(scan).map(|scan| Side::new(scan, end_offset))
        };
        let [a, b] = &logs;
        found.compare(&mut scan(a)?, &mut scan(b)?, options.interrupt)?;
        for (replica, log) in found.replicas.iter_mut().zip(&logs) {
            replica.warnings = log.warnings();
        }
        Ok(found)
    }

    /// Whether no difference was found.
    pub fn is_same(&self) -> bool {
        self.first.is_none()
    }

    fn compare(&mut self, a: &mut Side, b: &mut Side, interrupt: Interrupt) -> Result<()> {
        loop {
            interrupt.check()?;
            a.fill()?;
            b.fill()?;
            if a.is_new() && b.is_new() && a.bytes_equal(b)? {
                self.same_batches += 1;
                a.skip();
                b.skip();
                continue;
            }
            let (one, other) = (a.next_record()?, b.next_record()?);
            match (one, other) {
                (Next::NoneInBatch, _) | (_, Next::NoneInBatch) => {}
                (Next::End, Next::End) => return Ok(()),
                (Next::Damage, _) | (_, Next::Damage) => {
                    self.first = Some(self.damage(a, b));
                    return Ok(());
                }
                (Next::End, Next::Record(offset)) | (Next::Record(offset), Next::End) => {
                    return self.stop(a, b, offset, DifferentField::Record);
                }
                (Next::Record(one), Next::Record(other)) if one != other => {
                    return self.stop(a, b, one.min(other), DifferentField::Record);
                }
                (Next::Record(offset), Next::Record(_)) => {
                    if let Some(field) = a.different_field(b) {
                        return self.stop(a, b, offset, field);
                    }
                    self.same_records += 1;
                    if let Some(form) = self.other_form.is_none().then(|| a.other_form(b, offset)).flatten() {
                        self.other_form = Some(form);
                    }
                    a.take();
                    b.take();
                }
            }
        }
    }

    /// Ends the comparison at a difference of records.
    fn stop(&mut self, a: &mut Side, b: &mut Side, offset: i64, field: DifferentField) -> Result<()> {
        let places = [a.place(offset), b.place(offset)];
        let is_explained = self.replicas.iter().any(|replica| {
            replica.truncated_to.is_some_and(|to| to <= offset && to < replica.log_end_offset)
        });
        let cause = if is_explained { DifferenceCause::Epochs } else { DifferenceCause::Unknown };
        self.end_offset = offset;
        let different_byte = a.different_byte(b)?;
        self.first =
            Some(FirstDifference { offset, field, cause, places, different_byte, damage: [None, None] });
        Ok(())
    }

    fn damage(&mut self, a: &Side, b: &Side) -> FirstDifference {
        let starts = [a.damage_start(), b.damage_start()];
        let offset = starts.iter().flatten().min().copied().unwrap_or(self.end_offset);
        self.end_offset = offset;
        FirstDifference {
            offset,
            field: DifferentField::Damage,
            cause: DifferenceCause::Damage,
            places: [a.place(offset), b.place(offset)],
            different_byte: None,
            damage: [a.damage(), b.damage()],
        }
    }
}
