//! Random histories of a log whose segments are deleted, truncated, compacted, damaged and repaired, with the
//! `.deleted` files that a broker leaves: after each opening, every record that was acknowledged and not
//! removed is in an undamaged batch, of a live segment or of a `.deleted` file.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use cordwood::Result;
use cordwood::cleaner::CompactionOptions;
use cordwood::config::{CleanupPolicy, LogConfig};
use cordwood::fs::mem::{MemoryDisk, Survivors};
use cordwood::inspect::repair::{RepairOptions, RepairPolicy, repair_in};
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use cordwood_tests::is_exhaustive;
use cordwood_tests::random::Random;

use crate::found::{self, Files, fingerprint, segments};
use crate::judge::Tally;
use crate::naive::{self, Batch};
use crate::script::NOW;

/// A record of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    fingerprint: u64,
    key: i64,
    /// Whether a compaction may have removed it.
    is_superseded: bool,
}

/// Which records the log has, from its client's calls.
#[derive(Debug, Clone, Default)]
struct Model {
    records: BTreeMap<i64, Known>,
    start: i64,
    end: i64,
}

impl Model {
    /// A compaction may remove every record but the last one of each key.
    fn compact(&mut self) {
        let mut seen = BTreeSet::new();
        for known in self.records.values_mut().rev() {
            known.is_superseded |= !seen.insert(known.key);
        }
    }

    fn truncate_to(&mut self, offset: i64) {
        self.records.split_off(&offset);
        self.end = self.end.min(offset);
    }
}

/// The records in the undamaged batches of a log, and in those of its `.deleted` files.
struct Contents {
    live: BTreeSet<(i64, u64)>,
    /// Whether no live segment is damaged.
    is_whole: bool,
    /// By name, with whether a file is undamaged.
    deleted: BTreeMap<String, (BTreeSet<(i64, u64)>, bool)>,
}

impl Contents {
    fn of(files: &Files) -> Self {
        let mut found = Self { live: BTreeSet::new(), is_whole: true, deleted: BTreeMap::new() };
        for (_, bytes) in segments(files) {
            let (records, is_whole) = undamaged(bytes);
            found.live.extend(records);
            found.is_whole &= is_whole;
        }
        for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".log.deleted")) {
            let (records, is_whole) = undamaged(bytes);
            found.deleted.insert(name.clone(), (records.into_iter().collect(), is_whole));
        }
        found
    }

    fn has(&self, record: (i64, u64)) -> bool {
        self.live.contains(&record) || self.deleted.values().any(|(records, _)| records.contains(&record))
    }
}

/// The records of the batches with the right checksum, and whether all are right. The lengths of batches are.
fn undamaged(bytes: &[u8]) -> (Vec<(i64, u64)>, bool) {
    let (mut batches, mut is_whole, mut rest) = (Vec::<Rc<Batch>>::new(), true, bytes);
    while !rest.is_empty() {
        let size = rest.get(8..12).map(|size| u32::from_be_bytes(size.try_into().unwrap()) as usize + 12);
        let Some((batch, after)) = size.and_then(|size| rest.split_at_checked(size)) else {
            is_whole = false;
            break;
        };
        match naive::read_batch(batch) {
            Ok(batch) => batches.push(Rc::new(batch)),
            Err(_) => is_whole = false,
        }
        rest = after;
    }
    (found::records(&batches), is_whole)
}

/// What a call did to the log, or could do before a crash.
#[derive(Debug, Clone)]
struct Change {
    before: Model,
    after: Model,
}

struct History {
    seed: u64,
    disk: MemoryDisk,
    writer: Option<LogWriter>,
    random: Random,
    is_compacted: bool,
    leader_epoch: i32,
    model: Model,
    /// The `.log` files that calls have removed or replaced since the last opening.
    retired: Vec<(i64, Arc<Vec<u8>>)>,
    steps: Vec<String>,
    appended: i64,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut history = Self {
            seed,
            disk: MemoryDisk::new(16),
            writer: None,
            random: Random(seed),
            is_compacted: seed % 2 == 1,
            leader_epoch: 0,
            model: Model::default(),
            retired: Vec::new(),
            steps: Vec::new(),
            appended: 0,
        };
        history.writer = Some(history.open(&history.disk).unwrap());
        history
    }

    fn open(&self, disk: &MemoryDisk) -> Result<LogWriter> {
        let config = LogConfig {
            segment_bytes: 400,
            index_interval_bytes: 1,
            segment_index_bytes: 96,
            retention_bytes: 1500,
            retention_ms: -1,
            min_cleanable_dirty_ratio: 0.0,
            cleanup_policy: CleanupPolicy { delete: !self.is_compacted, compact: self.is_compacted },
            ..LogConfig::default()
        };
        let options = WriterOptions {
            config,
            flush: FlushMode::Always,
            clock: || NOW,
            random: 1,
            leader_epoch: Some(self.leader_epoch),
            ..WriterOptions::default()
        };
        LogWriter::open_in(disk.directory("/orders-0"), &options)
    }

    fn is_one_of(&mut self, cases: i64) -> bool {
        self.random.below(cases) == 0
    }

    fn step(&mut self, words: impl Into<String>) {
        self.steps.push(words.into());
    }

    /// Runs a call of the writer. Returns what it did; one that fails may have done it in part.
    fn call(&mut self, tally: &mut Tally) -> Change {
        let before = self.model.clone();
        let mut after = before.clone();
        let files = self.disk.shown().files();
        self.disk.record();
        let done = match self.random.below(12) {
            0..=5 => self.append(&mut after),
            6 => {
                self.step("roll");
                self.writer.as_mut().unwrap().roll()
            }
            7 => self.delete(&mut after),
            8 | 9 => self.truncate(&mut after),
            _ => self.clean(&mut after),
        };
        let now = self.disk.shown().files();
        let is_kept = |(base, bytes): &(i64, &Arc<Vec<u8>>)| {
            segments(&now).iter().any(|(other, now)| other == base && now.starts_with(bytes))
        };
        self.retired.extend(
            segments(&files)
                .into_iter()
                .filter(|segment| !is_kept(segment))
                .map(|(base, bytes)| (base, Arc::clone(bytes))),
        );
        match done {
            Ok(()) => self.model = after.clone(),
            // damage in its way
            Err(error) => {
                self.step(format!("failed: {}", error.code()));
                let change = Change { before, after };
                self.crash(&change, false, tally);
                return change;
            }
        }
        Change { before, after }
    }

    fn append(&mut self, after: &mut Model) -> Result<()> {
        let count = 1 + self.random.below(3);
        self.step(format!("append {count}"));
        let mut records = Vec::new();
        for _ in 0..count {
            self.appended += 1;
            let key = self.random.below(4);
            let value = format!("{} {}", self.appended, "x".repeat(20)).into_bytes();
            records.push((format!("key {key}").into_bytes(), value));
            let (name, value) = &records[records.len() - 1];
            let fingerprint = fingerprint(NOW, Some(name), Some(value), &[]);
            after.records.insert(after.end, Known { fingerprint, key, is_superseded: false });
            after.end += 1;
        }
        let new =
            |(key, value)| NewRecord { timestamp: NOW, key: Some(key), value: Some(value), headers: &[] };
        let new: Vec<_> = records.iter().map(|(key, value)| (&key[..], &value[..])).map(new).collect();
        self.writer.as_mut().unwrap().append_many(&new).map(|appended| assert!(appended.durable))
    }

    fn delete(&mut self, after: &mut Model) -> Result<()> {
        let offset = (self.model.start + self.random.below(5)).min(self.model.end);
        self.step(format!("delete before {offset}"));
        after.start = after.start.max(offset);
        after.records = after.records.split_off(&after.start);
        self.writer.as_mut().unwrap().delete_before(offset).map(|_| ())
    }

    /// Truncates, and continues with a new leader epoch, as a follower does, or with the same one.
    fn truncate(&mut self, after: &mut Model) -> Result<()> {
        let offset = (self.model.end - self.random.below(9)).max(self.model.start);
        self.step(format!("truncate to {offset}"));
        after.truncate_to(offset);
        self.writer.as_mut().unwrap().truncate_to(offset)?;
        // a cut inside a batch removes the whole batch
        let files = self.disk.shown().files();
        let live = Contents::of(&files).live;
        let next = self.writer.as_ref().unwrap().log_end_offset();
        let is_left =
            |offset: i64, known: &Known| offset < next - 3 || live.contains(&(offset, known.fingerprint));
        after.records.retain(|offset, known| is_left(*offset, known));
        if self.is_one_of(2) {
            self.leader_epoch += 1;
            self.step(format!("epoch {}", self.leader_epoch));
            self.writer.as_mut().unwrap().close()?;
            self.writer = None;
            let writer = self.open(&self.disk)?;
            // an opening finds the end of the last batch; the new epoch begins there, also below a hole, so
            // that records of the old one above it count as truncated
            after.truncate_to(writer.log_end_offset());
            self.writer = Some(writer);
        }
        Ok(())
    }

    fn clean(&mut self, after: &mut Model) -> Result<()> {
        let writer = self.writer.as_mut().unwrap();
        if self.is_compacted {
            self.steps.push("compact".to_owned());
            after.compact();
            let options = CompactionOptions { now: Some(NOW), ..CompactionOptions::default() };
            return writer.compact(&options).map(|_| ());
        }
        self.steps.push("retain".to_owned());
        let plan = writer.apply_retention(Some(NOW));
        after.start = plan.as_ref().map_or(after.end, |plan| plan.log_start_offset.max(after.start));
        after.records = after.records.split_off(&after.start);
        plan.map(|_| ())
    }

    /// Stops the writer, in the middle of its last call or after it, changes the files as a broker, a failing
    /// disk and an operator do, and opens the log again.
    fn crash(&mut self, change: &Change, is_anywhere: bool, tally: &mut Tally) {
        let mut points: Vec<_> = self.disk.recorded().into_iter().map(|(_, point)| point).collect();
        points.push(self.disk.crash_point());
        let last = points.len() - 1;
        let number = if is_anywhere { self.random.below(last as i64 + 1) as usize } else { last };
        let point = &points[number];
        self.writer = None;
        let sets = point.survivors(4, self.seed ^ self.steps.len() as u64);
        let survivors = sets[self.random.below(sets.len() as i64) as usize];
        let survivors = if self.is_one_of(2) { Survivors::All } else { survivors };
        self.step(format!("crash {number} {survivors:?}"));
        let disk = point.image(survivors).disk();
        let before = disk.fork();
        self.meddle(&disk);
        self.reopen(disk, before, change, tally);
        self.retired.clear();
    }

    /// Leaves `.deleted` files of removed segments, moves or damages a live one, repairs the log, and removes
    /// `quarantine/`.
    fn meddle(&mut self, disk: &MemoryDisk) {
        let files = disk.shown().files();
        let exists = |name: &str| files.iter().any(|(file, _)| file == name);
        for (base, bytes) in std::mem::take(&mut self.retired) {
            let name = format!("{base:020}.log.deleted");
            if !exists(&name) && self.is_one_of(2) {
                self.step(format!("left {name}"));
                disk.put(&name, &bytes);
            }
        }
        let live = segments(&files);
        let sealed = &live[..live.len().saturating_sub(1)];
        let place = self.random.below(3 * sealed.len().max(1) as i64) as usize;
        if let Some((base, bytes)) = sealed.get(place).filter(|(_, bytes)| bytes.len() > 70) {
            let name = format!("{base:020}.log");
            let deleted = format!("{name}.deleted");
            if !exists(&deleted) {
                self.move_or_damage(disk, &name, &deleted, bytes);
            }
        }
        if self.is_one_of(3) {
            let options = RepairOptions { policy: RepairPolicy::Salvage, ..RepairOptions::default() };
            // a start that is lost is one that salvage continues without
            if self.open(&disk.fork()).is_ok() {
                let done = repair_in(&disk.directory("/orders-0"), &options);
                self.step(format!("salvage: {:?}", done.map(|plan| plan.actions.len()).ok()));
            }
        }
        if self.is_one_of(2) {
            self.step("quarantine removed");
            disk.take("quarantine");
        }
    }

    fn move_or_damage(&mut self, disk: &MemoryDisk, name: &str, deleted: &str, bytes: &Arc<Vec<u8>>) {
        match self.random.below(3) {
            0 => self.step(format!("copied {name}")),
            1 => {
                self.step(format!("moved {name}"));
                disk.take(name);
            }
            _ => {
                self.step(format!("damaged {name}"));
                let mut damaged = Vec::clone(bytes);
                // not a header: a wrong length hides what follows
                let position = 61 + self.random.below(size_of_first(bytes) as i64 - 61) as usize;
                damaged[position] ^= 0x40;
                disk.put(name, &damaged);
            }
        }
        disk.put(deleted, bytes);
    }

    /// Opens the log and checks it; if it is refused, its files are unchanged, and those of `before` are
    /// opened.
    fn reopen(&mut self, disk: MemoryDisk, before: MemoryDisk, change: &Change, tally: &mut Tally) {
        let shown = |disk: &MemoryDisk| {
            let files = disk.shown().files().into_iter();
            files.filter(|(name, _)| !name.starts_with(".cordwood.lock")).collect::<Vec<_>>()
        };
        let found = shown(&disk);
        let refused = match self.open(&disk) {
            Ok(writer) => return self.opened(writer, disk, change, tally),
            Err(error) => error,
        };
        if shown(&disk) != found {
            tally.note("unstable", &|| self.place(), &format!("changed, and refused: {refused}"));
        }
        self.step(format!("refused: {refused}"));
        match self.open(&before) {
            Ok(writer) => self.opened(writer, before, change, tally),
            // with damage that it must read, a log is refused until it is repaired: the history ends
            Err(_) if !Contents::of(&shown(&before)).is_whole => {}
            Err(error) => tally.note("unopened", &|| self.place(), &error.to_string()),
        }
    }

    fn opened(&mut self, writer: LogWriter, disk: MemoryDisk, change: &Change, tally: &mut Tally) {
        self.disk = disk;
        self.check(&writer, change, tally);
        self.writer = Some(writer);
    }

    fn place(&self) -> String {
        format!("{}: {}", self.seed, self.steps.join(", "))
    }

    fn check(&mut self, writer: &LogWriter, change: &Change, tally: &mut Tally) {
        tally.judged += 1;
        let place = || self.place();
        let files = self.disk.shown().files();
        let contents = Contents::of(&files);
        let (start, end) = (writer.log_start_offset(), writer.log_end_offset());
        let Change { before, after } = change;
        let latest_start = before.start.max(after.start);
        let mut model = Model { records: BTreeMap::new(), start, end };
        let offsets: BTreeSet<_> = before.records.keys().chain(after.records.keys()).copied().collect();
        for offset in offsets {
            let sides = [before.records.get(&offset), after.records.get(&offset)];
            for known in sides.into_iter().flatten() {
                let record = (offset, known.fingerprint);
                let is_live = contents.live.contains(&record);
                let is_in_both =
                    sides.iter().all(|side| side.is_some_and(|side| side.fingerprint == record.1));
                let is_superseded = sides.iter().flatten().any(|side| side.is_superseded);
                let is_needed = is_in_both && !is_superseded && offset >= latest_start;
                // at or above the end, after a salvage: only in a `.deleted` file
                let is_there = offset >= start && contents.has(record);
                if is_needed && !is_there {
                    let what = format!("no record at {offset} of {start}..{end}");
                    tally.note("lost", &place, &what);
                }
                if offset >= start && offset < end && (is_live || is_in_both) {
                    model.records.insert(offset, Known { is_superseded, ..*known });
                }
            }
        }
        let is_known = |(offset, fingerprint): &(i64, u64)| {
            *offset < start
                || [before, after].iter().any(|side| {
                    side.records.get(offset).is_some_and(|known| known.fingerprint == *fingerprint)
                })
        };
        if let Some((offset, _)) = contents.live.iter().find(|record| !is_known(record)) {
            tally.note("invented", &place, &format!("another record at {offset}"));
        }
        self.model = model;
        self.check_deleted(&contents, tally);
    }

    /// A copy of records that are in the log is deleted; and another opening removes no record.
    fn check_deleted(&self, contents: &Contents, tally: &mut Tally) {
        let place = || self.place();
        tally.read += contents.deleted.len() as u64;
        for (name, (records, is_whole)) in &contents.deleted {
            let is_elsewhere = records.iter().all(|record| contents.live.contains(record));
            // batches of a compacted log have offsets without a record
            let is_plain = *is_whole && contents.is_whole && !self.is_compacted && !records.is_empty();
            if is_plain && is_elsewhere {
                tally.note("unstable", &place, &format!("{name} is kept, and the log has its records"));
            }
        }
        let again = self.disk.fork();
        match self.open(&again) {
            Ok(_) => {
                // it sees the segments and the epochs that the first one has recovered
                let kept = Contents::of(&again.shown().files());
                let is_needed = |(_, known): &(&i64, &Known)| !known.is_superseded;
                for (offset, known) in self.model.records.iter().filter(is_needed) {
                    let record = (*offset, known.fingerprint);
                    if contents.has(record) && !kept.has(record) {
                        tally.note("lost", &place, &format!("no record at {offset} after another opening"));
                    }
                }
                if let Some(name) = kept.deleted.keys().find(|name| !contents.deleted.contains_key(*name)) {
                    tally.note("unstable", &place, &format!("{name} is there again"));
                }
            }
            Err(_) if !contents.is_whole => {}
            Err(error) => tally.note("unopened", &place, &format!("again: {error}")),
        }
    }
}

fn size_of_first(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes[8..12].try_into().unwrap()) as usize + 12
}

/// Runs a history for each seed.
fn run(seeds: std::ops::Range<u64>, steps: usize) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut history = History::new(seed);
        for _ in 0..steps {
            let change = history.call(&mut tally);
            if history.writer.is_some() && history.is_one_of(6) {
                history.crash(&change, true, &mut tally);
            }
            if history.writer.is_none() || tally.violations() > 0 {
                break;
            }
        }
    }
    tally
}

#[test]
fn deleted_files_that_are_the_only_copy_of_a_record_stay_in_any_history() {
    let seeds = if is_exhaustive() { 3_000 } else { 60 };
    let tally = run(0..seeds, 60);
    println!("{} .deleted files stayed: {}", tally.read, tally.counts());
    tally.assert_none();
    assert!(tally.judged > 200 && tally.read > 40, "{} {}", tally.read, tally.counts());
}
