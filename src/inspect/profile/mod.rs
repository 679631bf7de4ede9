//! A profile of a log: the numbers that `cordwood report` draws, from one scan of every record.
//!
//! *Memory*: bounded, whatever the size of the log: counts in bins, a sketch of the keys, and the largest
//! gaps. Only the producers of transactions and the damaged ranges are kept one by one.

mod bins;
mod gaps;
mod keys;
mod transactions;

use std::collections::BTreeMap;

pub use bins::{OffsetBin, OffsetBins, SizeCounts, TimeBin, TimeBins};
pub use gaps::{BatchGap, Gaps};
use keys::KeySketch;
pub use transactions::{AbortedTransaction, OpenTransaction, TransactionProfile};

use crate::error::Result;
use crate::log::{DamagedRange, Log, OnDamage, Scan, ScanOptions, ScanStep};
use crate::record::{BatchHeader, Codec, RecordRef};
use crate::segment::Segment;

/// The profile of a log. Records are those at or above the log start offset; transaction markers are not
/// among them.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Inclusive.
    pub log_start_offset: i64,
    /// Exclusive.
    pub log_end_offset: i64,
    /// Batches, control batches included. Batches without a record, which compaction leaves, are not
    /// counted.
    pub batches: u64,
    /// The bytes of the batches, as they are stored.
    pub bytes: u64,
    /// Records without transaction markers and other control records.
    pub records: u64,
    /// Records whose value is null.
    pub tombstones: u64,
    /// Records without a key.
    pub null_keys: u64,
    /// An estimate of the number of different keys.
    pub distinct_keys: KeyEstimate,
    /// The bytes of all keys.
    pub key_bytes: u64,
    /// The bytes of all values.
    pub value_bytes: u64,
    /// The smallest and the largest timestamp, ms since the epoch; `None` if no record has one.
    pub time_range: Option<(i64, i64)>,
    /// Records with a timestamp below that of an earlier record.
    pub late_records: u64,
    /// The largest difference between a record's timestamp and the largest before it, ms.
    pub max_lateness: i64,
    /// The segments, in order.
    pub segments: Vec<SegmentProfile>,
    /// Records and bytes by timestamp.
    pub time_bins: TimeBins,
    /// Records, bytes and timestamps by offset.
    pub offset_bins: OffsetBins,
    /// Batches by their size in bytes.
    pub batch_sizes: SizeCounts,
    /// Batches by their number of records.
    pub batch_records: SizeCounts,
    /// Records by the bytes of key and value.
    pub record_sizes: SizeCounts,
    /// Sums by codec, in the order of Kafka's ids.
    pub codecs: Vec<CodecProfile>,
    /// Offsets that are in no batch.
    pub gaps: Gaps,
    /// Transactions by their outcome.
    pub transactions: TransactionProfile,
    /// What could not be read.
    pub damaged_ranges: Vec<DamagedRange>,
}

/// An estimated number of different keys. In 95 % of cases the number is from `lower` to `upper`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyEstimate {
    /// The estimate.
    pub keys: u64,
    /// Two standard deviations below.
    pub lower: u64,
    /// Two standard deviations above.
    pub upper: u64,
}

/// The sums of one segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentProfile {
    /// The base offset.
    pub base_offset: i64,
    /// The offset after its last batch; the base offset if no batch was read.
    pub end_offset: i64,
    /// Batches, control batches included.
    pub batches: u64,
    /// Records without control records.
    pub records: u64,
    /// The bytes of the batches.
    pub bytes: u64,
    /// The smallest and the largest timestamp of its records, ms; `None` if none has one.
    pub time_range: Option<(i64, i64)>,
    /// The entries of its offset index; `None` without one that can be read.
    pub offset_entries: Option<u64>,
    /// The entries of its time index; `None` without one that can be read.
    pub time_entries: Option<u64>,
}

/// The sums of one codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecProfile {
    /// The codec.
    pub codec: Codec,
    /// Batches, control batches included.
    pub batches: u64,
    /// Their bytes, as they are stored.
    pub stored_bytes: u64,
    /// The bytes that they would have without compression.
    pub uncompressed_bytes: u64,
}

/// Computes a [`Profile`], step by step, so that its caller can show the progress.
///
/// # Examples
///
/// ```
/// use cordwood::inspect::profile::Profiler;
/// use cordwood::log::{Log, LogOptions};
///
/// # fn main() -> cordwood::Result<()> {
/// let log = Log::open("tests/golden/01-plain/orders-0", LogOptions::default())?;
/// let mut profiler = Profiler::new(&log)?;
/// while profiler.advance(1 << 20)?.is_some() {}
/// let profile = profiler.finish()?;
/// assert_eq!((profile.records, profile.segments.len()), (1500, 4));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Profiler {
    scan: Scan,
    profile: Profile,
    keys: KeySketch,
    codecs: BTreeMap<i16, CodecProfile>,
    transactions: transactions::Replay,
    /// The last offset of the batch before; `None` at first.
    last_offset: Option<i64>,
    is_finished: bool,
}

impl Profiler {
    /// Starts at the log start offset. Damaged ranges are left out.
    ///
    /// # Errors
    /// Those of [`Log::log_end_offset`] and [`Log::scan`].
    pub fn new(log: &Log) -> Result<Self> {
        let log_end_offset = log.log_end_offset()?;
        let options =
            ScanOptions { include_control: true, on_damage: OnDamage::Skip, ..ScanOptions::default() };
        let log_start_offset = log.log_start_offset();
        Ok(Self {
            scan: log.scan(options)?,
            profile: Profile {
                log_start_offset,
                log_end_offset,
                offset_bins: OffsetBins::new(log_start_offset, log_end_offset),
                segments: log.segments().iter().map(|segment| segment_profile(segment)).collect(),
                ..Profile::default()
            },
            keys: KeySketch::new(),
            codecs: BTreeMap::new(),
            transactions: transactions::Replay::default(),
            last_offset: None,
            is_finished: false,
        })
    }

    /// Reads about `max_bytes` of the log. Returns the bytes that were read so far; `None` at the end.
    ///
    /// # Errors
    /// Those of [`Scan::next_step`].
    pub fn advance(&mut self, max_bytes: u64) -> Result<Option<u64>> {
        let stop = self.profile.bytes.saturating_add(max_bytes);
        while !self.is_finished && self.profile.bytes < stop {
            match self.scan.next_step()? {
                Some(ScanStep::Batch(batch)) => self.add_batch(&batch.header)?,
                Some(ScanStep::DamagedRange(_)) => {}
                None => self.is_finished = true,
            }
        }
        Ok((!self.is_finished).then_some(self.profile.bytes))
    }

    /// The profile of what was read.
    ///
    /// # Errors
    /// None of its own; the errors of a last [`Profiler::advance`], if the end was not reached.
    pub fn finish(mut self) -> Result<Profile> {
        while self.advance(u64::MAX)?.is_some() {}
        self.profile.distinct_keys = self.keys.estimate();
        self.profile.codecs = self.codecs.into_values().collect();
        self.profile.transactions = self.transactions.finish();
        self.profile.damaged_ranges = self.scan.damaged_ranges().to_vec();
        Ok(self.profile)
    }

    fn add_batch(&mut self, header: &BatchHeader) -> Result<()> {
        let size = u64::from(header.size);
        let base_offset = self.scan.segment();
        self.profile.batches += 1;
        self.profile.bytes += size;
        self.profile.batch_sizes.add(size);
        let codec = header.attributes.codec().unwrap_or(Codec::None);
        let sums = self.codecs.entry(codec.id()).or_insert(CodecProfile {
            codec,
            batches: 0,
            stored_bytes: 0,
            uncompressed_bytes: 0,
        });
        sums.batches += 1;
        sums.stored_bytes += size;
        sums.uncompressed_bytes += self.scan.uncompressed_size(header);
        if let Some(last) = self.last_offset {
            self.profile.gaps.add(last + 1, header.base_offset);
        }
        self.last_offset = Some(header.last_offset);
        self.profile.offset_bins.add_bytes(header.base_offset, size);
        let index = base_offset.and_then(|base| {
            self.profile.segments.binary_search_by_key(&base, |segment| segment.base_offset).ok()
        });
        let mut of_batch = SegmentProfile::default();
        let is_control = header.attributes.is_control();
        if is_control {
            while let Some(record) = self.scan.next_record()? {
                self.transactions.end(header, &record);
            }
        } else {
            while let Some(record) = self.scan.next_record()? {
                add_record(&mut self.profile, &mut self.keys, &mut of_batch, &record);
            }
            self.profile.batch_records.add(of_batch.records);
            if header.is_transactional() {
                self.transactions.add(header, of_batch.records);
            }
        }
        if let Some(segment) = index.and_then(|index| self.profile.segments.get_mut(index)) {
            segment.end_offset = header.last_offset.saturating_add(1);
            segment.batches += 1;
            segment.bytes += size;
            segment.records += of_batch.records;
            segment.time_range = bins::union(segment.time_range, of_batch.time_range);
        }
        Ok(())
    }
}

/// Adds a record to the sums of the log and of its batch.
fn add_record(
    profile: &mut Profile,
    keys: &mut KeySketch,
    batch: &mut SegmentProfile,
    record: &RecordRef<'_>,
) {
    let key_bytes = record.key.map_or(0, <[u8]>::len) as u64;
    let value_bytes = record.value.map_or(0, <[u8]>::len) as u64;
    batch.records += 1;
    profile.records += 1;
    profile.tombstones += u64::from(record.value.is_none());
    profile.null_keys += u64::from(record.key.is_none());
    profile.key_bytes += key_bytes;
    profile.value_bytes += value_bytes;
    profile.record_sizes.add(key_bytes + value_bytes);
    if let Some(key) = record.key {
        keys.add(key);
    }
    let mut lateness = 0;
    if record.timestamp >= 0 {
        let time = Some((record.timestamp, record.timestamp));
        let latest = profile.time_range.map_or(record.timestamp, |(_, latest)| latest);
        lateness = (latest - record.timestamp).max(0);
        profile.late_records += u64::from(lateness > 0);
        profile.max_lateness = profile.max_lateness.max(lateness);
        profile.time_range = bins::union(profile.time_range, time);
        batch.time_range = bins::union(batch.time_range, time);
        profile.time_bins.add(record.timestamp, key_bytes + value_bytes);
    }
    profile.offset_bins.add_record(record.offset, record.timestamp, lateness);
}

fn segment_profile(segment: &Segment) -> SegmentProfile {
    // a missing or malformed index has no density; what is wrong with it is not the profile's subject
    let offset_entries = segment.offset_index().ok().flatten().map(|index| index.entries());
    let time_entries = segment.time_index().ok().flatten().map(|index| index.entries());
    let base_offset = segment.base_offset();
    SegmentProfile {
        base_offset,
        end_offset: base_offset,
        offset_entries,
        time_entries,
        ..SegmentProfile::default()
    }
}
