//! Counts of records, by partition, topic, time and key.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::error::{Error, Result};
use crate::log::{Counted, Log, Progress, RecordFilter, Scan, ScanOptions, ScanStep};
use crate::text::UtcOffset;

/// The bytes of distinct keys that are kept, with an estimate of what a map needs for each.
const MAX_KEY_BYTES: usize = 1 << 30;
const KEY_OVERHEAD: usize = 64;

/// The length of a period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A calendar day.
    Day,
}

impl Period {
    fn milliseconds(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }
}

/// What is counted, and in which groups.
#[expect(clippy::struct_excessive_bools, reason = "independent choices of the caller")]
#[derive(Debug, Clone, Default)]
pub struct CountOptions {
    /// Which records. `batches_only` and `include_control` are not used: records are counted, without
    /// transaction markers.
    pub scan: ScanOptions,
    /// Only the records that it accepts.
    pub filter: Option<RecordFilter>,
    /// A group for each log.
    pub by_partition: bool,
    /// A group for each topic.
    pub by_topic: bool,
    /// A group for each period of the records' timestamps.
    pub by_time: Option<Period>,
    /// The time zone of the periods; `None`: UTC.
    pub utc_offset: Option<UtcOffset>,
    /// A group for each key.
    pub by_key: bool,
    /// Whether a log that cannot be opened or read is left out, and its error kept, instead of ending the
    /// count. Damage that is found while a log is read is not such an error: see `scan.on_damage`.
    pub goes_on: bool,
}

/// A group, without its key. Fields of groups that were not asked for are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Group {
    /// The topic; `None` also if the directory's name has none.
    pub topic: Option<String>,
    /// The place of the log among those that are counted, from 0.
    pub partition: Option<usize>,
    /// The period; `None` also for records without a timestamp.
    pub time: Option<LocalPeriod>,
}

/// The start of a period in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalPeriod {
    /// Milliseconds since 1970-01-01 00:00 on a local clock.
    pub local: i64,
    /// The seconds that local time is ahead of UTC; 0 for a day, whose hours may differ in it.
    pub utc_offset: i32,
}

/// In the order of time: a clock that is set back repeats an hour.
impl Ord for LocalPeriod {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |period: &Self| {
            (period.local.saturating_sub(i64::from(period.utc_offset) * 1000), period.utc_offset)
        };
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for LocalPeriod {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The number of records of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupCount {
    /// The group.
    pub group: Group,
    /// The key, if the groups are by key; `Some(None)` for records without one.
    pub key: Option<Option<Vec<u8>>>,
    /// The number of records, 1 or more unless nothing was asked but the number of all records.
    pub records: u64,
}

#[derive(Debug, Default)]
struct Counts {
    records: u64,
    without_key: u64,
    keys: HashMap<Box<[u8]>, u64>,
}

/// Counts the records of logs, in steps: those that a scan returns. Batches are decompressed only where their
/// headers do not give the number: for groups by time or key, with a filter, where a time range may cut a
/// batch, and in the formats before v2. Of an uncompressed batch the offsets of its records are read, because
/// a consumer leaves out a record whose offset is not above the one before it; with `check_crcs: false`, only
/// headers are.
///
/// *Memory*: the scan's, and the groups: an error if distinct keys take more than 1 GiB.
///
/// # Examples
///
/// ```
/// use cordwood::inspect::count::{CountOptions, Counter};
/// use cordwood::log::{Log, LogOptions};
///
/// # fn main() -> cordwood::Result<()> {
/// let log = Log::open("tests/golden/01-plain/orders-0", LogOptions::default())?;
/// let mut counter = Counter::new(std::iter::once(Ok(log)), CountOptions::default());
/// while counter.advance(1 << 20)?.is_some() {}
/// assert_eq!(counter.finish()[0].records, 1500);
/// # Ok(())
/// # }
/// ```
pub struct Counter {
    options: CountOptions,
    logs: Box<dyn Iterator<Item = Result<Log>> + Send>,
    current: Option<(Scan, Counted)>,
    /// The number of logs that were begun.
    begun: usize,
    /// The group of the last record, whose count is not in `groups` yet.
    group: Group,
    pending: u64,
    /// The groups of the log that is being read, and the number of its records so far.
    of_log: HashMap<Group, Counts>,
    records_of_log: u64,
    /// The groups of the logs that were read to their ends.
    groups: HashMap<Group, Counts>,
    total: u64,
    key_bytes: usize,
    progress: Progress,
    failures: Vec<(usize, Error)>,
}

impl fmt::Debug for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Counter").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Counter {
    /// A counter of these logs; each is opened after the previous one was read.
    pub fn new(logs: impl Iterator<Item = Result<Log>> + Send + 'static, options: CountOptions) -> Self {
        Self::with_progress(logs, options, Progress::default())
    }

    /// The same, which adds what it reads to `progress`.
    pub fn with_progress(
        logs: impl Iterator<Item = Result<Log>> + Send + 'static,
        options: CountOptions,
        progress: Progress,
    ) -> Self {
        Self {
            options,
            logs: Box::new(logs),
            current: None,
            begun: 0,
            group: Group::default(),
            pending: 0,
            of_log: HashMap::new(),
            records_of_log: 0,
            groups: HashMap::new(),
            total: 0,
            key_bytes: 0,
            progress,
            failures: Vec::new(),
        }
    }

    /// Takes the errors of the logs that were left out so far, with the place of each log. None of their
    /// records is counted.
    pub fn take_failures(&mut self) -> Vec<(usize, Error)> {
        std::mem::take(&mut self.failures)
    }

    /// The damaged ranges that were skipped so far.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Reads about `max_bytes` of the logs, and returns the number of records so far; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::next_step`]; [`Error::Config`] for more distinct keys than fit into memory.
    pub fn advance(&mut self, max_bytes: u64) -> Result<Option<u64>> {
        let mut bytes_left = max_bytes;
        while bytes_left > 0 {
            let Some((mut scan, mut counted)) = self.current.take() else {
                let Some(log) = self.logs.next() else { return Ok(None) };
                let goes_on = self.options.goes_on;
                self.begun += 1;
                match log {
                    Ok(log) => match self.begin(&log) {
                        Err(error) if goes_on && error.is_unreadable() => self.leave_out(error),
                        begun => begun?,
                    },
                    Err(error) if goes_on && !error.ends_all() => self.leave_out(error),
                    Err(error) => return Err(error),
                }
                continue;
            };
            let before = scan.stats().bytes_read;
            let has_more = self.count(&mut scan, bytes_left);
            self.progress.update(&scan, &mut counted);
            // a step may return without having read anything
            bytes_left = bytes_left.saturating_sub((scan.stats().bytes_read - before).max(1));
            match has_more {
                Ok(true) => self.current = Some((scan, counted)),
                Ok(false) => self.end_log(),
                Err(error) if self.options.goes_on && error.is_unreadable() => self.leave_out(error),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(self.total))
    }

    /// The groups, in order; without any group the number of all records. Of each group its keys, those with
    /// the most records first.
    pub fn finish(mut self) -> Vec<GroupCount> {
        self.end_log();
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut rows = Vec::new();
        for (group, counts) in groups {
            if !self.options.by_key {
                rows.push(GroupCount { group, key: None, records: counts.records });
                continue;
            }
            let mut keys: Vec<_> =
                counts.keys.into_iter().map(|(key, count)| (Some(key.into_vec()), count)).collect();
            if counts.without_key > 0 {
                keys.push((None, counts.without_key));
            }
            keys.sort_by(|(key, count), (other, other_count)| other_count.cmp(count).then(key.cmp(other)));
            let row = |(key, records)| GroupCount { group: group.clone(), key: Some(key), records };
            rows.extend(keys.into_iter().map(row));
        }
        rows
    }

    /// Begins a log.
    fn begin(&mut self, log: &Log) -> Result<()> {
        let CountOptions { scan, by_partition, by_topic, .. } = &self.options;
        self.group = Group {
            topic: log.topic().filter(|_| *by_topic).map(str::to_owned),
            partition: by_partition.then_some(self.begun - 1),
            time: None,
        };
        let options = ScanOptions { batches_only: true, include_control: false, ..*scan };
        let scan = log.scan(options)?;
        // the group of an empty partition, unless it would be one of records without a time
        if self.options.by_time.is_none() && !self.options.by_key {
            self.of_log.entry(self.group.clone()).or_default();
        }
        self.current = Some((scan, Counted::default()));
        Ok(())
    }

    /// Adds the groups of the log that was read.
    fn end_log(&mut self) {
        self.flush();
        self.records_of_log = 0;
        for (group, counts) in std::mem::take(&mut self.of_log) {
            let all = match self.groups.entry(group) {
                Entry::Vacant(vacant) => {
                    vacant.insert(counts);
                    continue;
                }
                Entry::Occupied(all) => all.into_mut(),
            };
            all.records += counts.records;
            all.without_key += counts.without_key;
            for (key, count) in counts.keys {
                match all.keys.entry(key) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(count);
                    }
                    Entry::Occupied(mut known) => {
                        self.key_bytes -= known.key().len() + KEY_OVERHEAD;
                        *known.get_mut() += count;
                    }
                }
            }
        }
    }

    /// Drops what was counted of the log that was begun last, and keeps its error.
    fn leave_out(&mut self, error: Error) {
        self.pending = 0;
        self.total -= std::mem::take(&mut self.records_of_log);
        for counts in std::mem::take(&mut self.of_log).into_values() {
            let keys = counts.keys.keys().map(|key| key.len() + KEY_OVERHEAD);
            self.key_bytes -= keys.sum::<usize>();
        }
        self.failures.push((self.begun - 1, error));
    }

    /// Counts the next batches of a scan; false at its end.
    fn count(&mut self, scan: &mut Scan, max_bytes: u64) -> Result<bool> {
        let end = scan.stats().bytes_read.saturating_add(max_bytes);
        let is_by_batch =
            self.options.by_time.is_none() && !self.options.by_key && self.options.filter.is_none();
        while scan.stats().bytes_read < end {
            let batch = match scan.next_step()? {
                None => return Ok(false),
                Some(ScanStep::DamagedRange(_)) => continue,
                Some(ScanStep::Batch(batch)) => batch,
            };
            match scan.count_in_header(&batch)? {
                Some(0) => {}
                Some(count) if is_by_batch => self.add(u64::try_from(count).unwrap_or(0)),
                _ => {
                    if scan.open(batch)? {
                        self.count_records(scan)?;
                    }
                }
            }
        }
        Ok(true)
    }

    fn count_records(&mut self, scan: &mut Scan) -> Result<()> {
        let filter = self.options.filter.clone();
        while let Some(record) = scan.next_accepted(filter.as_ref())? {
            if let Some(period) = self.options.by_time {
                let time = self.period(period, record.timestamp);
                if time != self.group.time {
                    self.flush();
                    self.group.time = time;
                }
            }
            if self.options.by_key {
                self.add_key(record.key)?;
            }
            self.add(1);
        }
        Ok(())
    }

    fn period(&self, period: Period, timestamp: i64) -> Option<LocalPeriod> {
        if timestamp == -1 {
            return None;
        }
        let utc_offset =
            self.options.utc_offset.as_ref().and_then(|zone| zone.seconds(timestamp)).unwrap_or(0);
        let local = timestamp.saturating_add(i64::from(utc_offset) * 1000);
        // the first period begins with the smallest timestamp
        let local = local.saturating_sub(local.rem_euclid(period.milliseconds()));
        let utc_offset = if period == Period::Day { 0 } else { utc_offset };
        Some(LocalPeriod { local, utc_offset })
    }

    fn add(&mut self, records: u64) {
        self.pending += records;
        self.records_of_log += records;
        self.total += records;
    }

    fn add_key(&mut self, key: Option<&[u8]>) -> Result<()> {
        if !self.of_log.contains_key(&self.group) {
            self.of_log.insert(self.group.clone(), Counts::default());
        }
        let Some(counts) = self.of_log.get_mut(&self.group) else { return Ok(()) };
        let Some(key) = key else {
            counts.without_key += 1;
            return Ok(());
        };
        if let Some(count) = counts.keys.get_mut(key) {
            *count += 1;
            return Ok(());
        }
        self.key_bytes += key.len() + KEY_OVERHEAD;
        if self.key_bytes > MAX_KEY_BYTES {
            let expected = "keys that fit into 1 GiB: a smaller range, or another group";
            return Err(Error::config("by", expected, "more distinct keys"));
        }
        counts.keys.insert(key.into(), 1);
        Ok(())
    }

    /// Adds the pending records to their group.
    fn flush(&mut self) {
        let records = std::mem::take(&mut self.pending);
        if records > 0 {
            self.of_log.entry(self.group.clone()).or_default().records += records;
        }
    }
}
