//! Opens an image with a writer, and checks the recovered log.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use cordwood::fs::mem::{Image, MemoryDisk, Survivors};
use cordwood::writer::{LogWriter, WriterOptions};
use cordwood::{Log, LogOptions};

use crate::found::{self, Files, Reader};
use crate::model::{Expected, Fault};
use crate::naive::Batch;
use crate::{producers, transactions};

/// Counts of checks and violations.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Images created.
    pub images: u64,
    /// Distinct pairs of an image and its expectation that were checked.
    pub judged: u64,
    pub lost: u64,
    pub invented: u64,
    /// The log was not opened.
    pub unopened: u64,
    /// A second recovery, or one after another crash, had a different result.
    pub unstable: u64,
    /// Bytes were cut and not kept in `quarantine/`.
    pub not_kept: u64,
    /// The results of a reader differed from those of the naive reader.
    pub misread: u64,
    /// Recoveries after a crash during recovery.
    pub nested: u64,
    pub read: u64,
    /// The first violation of each kind, which has the shortest sequence.
    pub examples: BTreeMap<&'static str, String>,
}

impl Tally {
    pub fn violations(&self) -> u64 {
        self.lost + self.invented + self.unopened + self.unstable + self.not_kept + self.misread
    }

    pub fn add(&mut self, other: Self) {
        self.images += other.images;
        self.judged += other.judged;
        self.lost += other.lost;
        self.invented += other.invented;
        self.unopened += other.unopened;
        self.unstable += other.unstable;
        self.not_kept += other.not_kept;
        self.misread += other.misread;
        self.nested += other.nested;
        self.read += other.read;
        for (kind, example) in other.examples {
            let shortest = self.examples.entry(kind).or_insert_with(|| example.clone());
            if example.len() < shortest.len() {
                *shortest = example;
            }
        }
    }

    pub fn note(&mut self, kind: &'static str, place: &dyn Fn() -> String, what: &str) {
        match kind {
            "lost" => self.lost += 1,
            "invented" => self.invented += 1,
            "unopened" => self.unopened += 1,
            "unstable" => self.unstable += 1,
            "not kept" => self.not_kept += 1,
            "misread" => self.misread += 1,
            other => panic!("{other}"),
        }
        self.examples.entry(kind).or_insert_with(|| format!("{}: {what}", place()));
    }

    /// The counts as text.
    pub fn counts(&self) -> String {
        format!(
            "{} images, {} judged: {} lost, {} invented, {} unopened, {} unstable, {} not kept, {} misread; \
             {} nested recoveries, {} logs read",
            self.images,
            self.judged,
            self.lost,
            self.invented,
            self.unopened,
            self.unstable,
            self.not_kept,
            self.misread,
            self.nested,
            self.read
        )
    }

    /// Fails if there was a violation.
    pub fn assert_none(&self) {
        let examples: Vec<_> = self.examples.iter().map(|(kind, what)| format!("{kind}: {what}")).collect();
        assert_eq!(self.violations(), 0, "{}\n{}", self.counts(), examples.join("\n"));
    }
}

/// Checks images, each distinct image once.
pub struct Judge {
    options: WriterOptions,
    reader: Reader,
    /// Recovered logs that were read completely.
    checked: HashSet<u64>,
    pub tally: Tally,
}

/// A recovered log.
pub struct Recovered {
    pub disk: MemoryDisk,
    /// Log start and end offset.
    pub bounds: (i64, i64),
    pub files: Files,
    pub hash: u128,
}

impl Judge {
    pub fn new(options: WriterOptions) -> Self {
        Self { options, reader: Reader::default(), checked: HashSet::new(), tally: Tally::default() }
    }

    pub fn options(&self) -> WriterOptions {
        self.options.clone()
    }

    /// Opens the log on a disk and then stops without a close, as a process killed directly after the open.
    pub fn recover(&self, disk: MemoryDisk) -> Result<Recovered, String> {
        let writer = LogWriter::open_in(disk.directory("/orders-0"), &self.options)
            .map_err(|error| error.to_string())?;
        let bounds = (writer.log_start_offset(), writer.log_end_offset());
        if writer.durable_offset() != bounds.1 {
            return Err(format!("durable up to {} of {}", writer.durable_offset(), bounds.1));
        }
        let shown = disk.shown();
        drop(writer);
        Ok(Recovered { bounds, files: shown.files(), hash: shown.hash(), disk })
    }

    /// Checks an image. `place` describes its origin. `process_only`: only the process ended, not the system.
    pub fn judge(
        &mut self,
        image: &Image,
        expected: &Expected,
        process_only: bool,
        place: &dyn Fn() -> String,
    ) -> Option<Recovered> {
        self.judge_disk(image.disk(), std::slice::from_ref(expected), process_only, place)
    }

    /// Checks the log on a disk against several expectations, one of which must hold.
    pub fn judge_disk(
        &mut self,
        disk: MemoryDisk,
        expected: &[Expected],
        process_only: bool,
        place: &dyn Fn() -> String,
    ) -> Option<Recovered> {
        self.tally.judged += 1;
        // the durable contents, not those that are only visible after a failed sync
        let before = disk.crash_point().image(Survivors::All).files();
        let recovered = match self.recover(disk) {
            Ok(recovered) => recovered,
            Err(error) => {
                self.tally.note("unopened", place, &error);
                return None;
            }
        };
        let batches = match self.reader.read(&recovered.files) {
            Ok(batches) => batches,
            Err(what) => {
                self.tally.note("unopened", place, &format!("not a valid log: {what}"));
                return None;
            }
        };
        let records = found::records(&batches);
        let mut wrong =
            expected.iter().map(|expected| expected.check(recovered.bounds, &records, process_only));
        let first = wrong.next().expect("something is expected");
        if let Err((fault, what)) = first
            && wrong.all(|result| result.is_err())
        {
            let kind = if fault == Fault::Lost { "lost" } else { "invented" };
            self.tally.note(kind, place, &what);
        }
        if expected.iter().all(|expected| expected.keeps_what_it_cuts)
            && let Some(what) = found::not_kept(&before, &recovered.files)
        {
            self.tally.note("not kept", place, &what);
        }
        if self.checked.insert(found::hash_of_log(&recovered.files)) {
            let was_closed = before.iter().any(|(name, _)| name == ".cordwood.clean");
            self.check_recovered(&recovered, was_closed, &batches, place);
        }
        Some(recovered)
    }

    /// Checks that the recovered log is durable, that another recovery does not change it, and that readers
    /// read it.
    fn check_recovered(
        &mut self,
        recovered: &Recovered,
        was_closed: bool,
        batches: &[Rc<Batch>],
        place: &dyn Fn() -> String,
    ) {
        // after a close the indexes are those of the writer, which may have fewer entries than those that
        // recovery builds
        let rebuilt;
        let recovered = if was_closed {
            match self.recover(recovered.disk.fork()) {
                Ok(again) if again.bounds == recovered.bounds => rebuilt = again,
                Ok(again) => {
                    let what = format!("{:?} after a close, then {:?}", recovered.bounds, again.bounds);
                    return self.tally.note("unstable", place, &what);
                }
                Err(error) => return self.tally.note("unstable", place, &format!("after a close: {error}")),
            }
            &rebuilt
        } else {
            recovered
        };
        let power = recovered.disk.crash_point();
        let again = [
            ("again", recovered.disk.fork()),
            ("after a power loss", power.image(Survivors::None).disk()),
            ("after a power loss that kept all", power.image(Survivors::All).disk()),
        ];
        for (when, disk) in again {
            self.tally.nested += 1;
            match self.recover(disk) {
                Err(error) => self.tally.note("unstable", place, &format!("recovered {when}: {error}")),
                Ok(other) => {
                    if let Some(what) = differs(recovered, &other) {
                        self.tally.note("unstable", place, &format!("recovered {when}: {what}"));
                    }
                }
            }
        }
        self.tally.read += 1;
        let checked = compare_with_naive_reader(recovered, batches)
            .and_then(|()| producers::check(recovered, batches, &self.options))
            .and_then(|()| transactions::check(recovered, batches, &self.options));
        if let Err(what) = checked {
            self.tally.note("misread", place, &what);
        }
    }
}

/// The byte differences between two recovered logs. The second log had more crashes.
pub fn differs(one: &Recovered, other: &Recovered) -> Option<String> {
    if one.bounds != other.bounds {
        return Some(format!("{:?} was {:?}", other.bounds, one.bounds));
    }
    if one.hash == other.hash {
        return None;
    }
    let start = one.bounds.0;
    let by_name = |files: &Files| files.iter().cloned().collect::<BTreeMap<String, Arc<Vec<u8>>>>();
    let (one, other) = (by_name(&one.files), by_name(&other.files));
    let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let changed: Vec<_> = names
        .into_iter()
        // an unused staged file is replaced at its next use
        .filter(|name| !name.ends_with(".tmp") && one.get(*name) != other.get(*name))
        // a cut that a crash undid in part is repeated, and copies the rest to quarantine again
        .filter(|name| !name.starts_with("quarantine/") || one.contains_key(*name))
        // a snapshot may be left out: the batches are read instead. What it has of deleted batches depends on
        // the older snapshots
        .filter(|name| {
            let visible = |files: &BTreeMap<String, Arc<Vec<u8>>>| {
                files.get(*name).map(|bytes| producers::visible(bytes, start))
            };
            !name.ends_with(".snapshot") || other.contains_key(*name) && visible(&one) != visible(&other)
        })
        // an index without its log is ignored, and Kafka deletes it
        .filter(|name| {
            let log = name.split('.').next().map(|base| format!("{base}.log")).unwrap_or_default();
            let is_index = [".index", ".timeindex", ".txnindex"].iter().any(|kind| name.ends_with(kind));
            !is_index || one.contains_key(&log) || other.contains_key(&log)
        })
        .map(|name| {
            let bytes = |files: &BTreeMap<_, Arc<Vec<u8>>>| {
                files.get(name).map_or("nothing".to_owned(), |bytes| format!("{:02x?}", &bytes[..]))
            };
            format!("{name} is {}, was {}", bytes(&other), bytes(&one))
        })
        .collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

/// Compares the results of a reader that uses indexes with those of the naive reader.
pub fn compare_with_naive_reader(recovered: &Recovered, batches: &[Rc<Batch>]) -> Result<(), String> {
    let fail = |error: cordwood::Error| error.to_string();
    let log = Log::open_in(recovered.disk.directory("/orders-0"), LogOptions::default()).map_err(fail)?;
    let (start, end) = recovered.bounds;
    let read = (log.log_start_offset(), log.log_end_offset().map_err(fail)?);
    let data_end = batches.last().map_or(start, |batch| batch.last_offset + 1).max(start);
    let last_base = found::segments(&recovered.files).last().map_or(0, |(base, _)| *base);
    if read.0 != start || read.1 != data_end.max(last_base) || read.1 > end {
        return Err(format!("the reader has {read:?}, the writer {:?}", recovered.bounds));
    }
    // of a large gap between two batches, only its ends
    let near = |batch: &Rc<Batch>| (batch.base_offset - 8).max(start)..(batch.last_offset + 8).min(read.1);
    let offsets: std::collections::BTreeSet<i64> = batches.iter().flat_map(near).collect();
    for offset in offsets {
        let found = log.locate(offset).map_err(fail)?.map(|at| (at.batch_base_offset, at.size));
        let naive = batches.iter().find(|batch| batch.last_offset >= offset);
        let naive = naive.map(|batch| (batch.base_offset, batch.size));
        let found = found.map(|(base, size)| (base, u64::from(size)));
        if found != naive {
            return Err(format!("offset {offset} is at {found:?}, according to the naive reader {naive:?}"));
        }
    }
    let records = || batches.iter().flat_map(|batch| &batch.records);
    for target in records().map(|record| record.timestamp).chain([0, i64::MAX]) {
        let found = log.offset_for_time(target).map_err(fail)?.map(|found| found.offset);
        let naive = records().find(|record| record.offset >= start && record.timestamp >= target);
        if found != naive.map(|record| record.offset) {
            return Err(format!(
                "time {target} is at {found:?}, according to the naive reader {:?}",
                naive.map(|r| r.offset)
            ));
        }
    }
    Ok(())
}
