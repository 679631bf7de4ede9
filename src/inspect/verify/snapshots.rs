//! Producer snapshots, compared with the states of the producers that the batches of the log give.
//!
//! A producer whose batches were all deleted, or that is expired, cannot be compared, nor can anything in a
//! compacted log. A producer with an open transaction does not expire. One that was forgotten and has written
//! since is known by its later batches only ([`Restarts`]). Nothing after damage is compared, because the
//! damage hides batches.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::finding::Finding;
use super::restarts::Restarts;
use super::rule::{Rule, Severity};
use super::stable_limits::StableLimits;
use super::summary::Summary;
use crate::error::{Malformed, Result};
use crate::fs::Directory;
use crate::inspect::rebuild::{end_of_snapshots, lost_transaction};
use crate::log::Log;
use crate::record::BatchHeader;
use crate::segment::{SCAN_READ, Step};
use crate::state::checkpoint::DurableOffsetFile;
use crate::state::producers::{
    MalformedMarker, ProducerEntry, ProducerReplay, ProducerSnapshot, ProducerStates, RefusedBatch,
    snapshot_files,
};

/// The findings about the snapshots of a partition.
pub(super) fn check(log: &Log, directory: &Directory, summaries: &[Summary]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    // the newest one is above the last segment's base offset, where the listing of segments ends
    let names = snapshot_files::list(directory)?;
    let has_producers = summaries.iter().any(|summary| summary.has_producers);
    if names.is_empty() && has_producers && summaries.len() > 1 {
        let expected = "a snapshot of the producers, because batches have producer ids";
        let rule = Rule::SnapshotMissing;
        findings.push(Finding::new(rule, log.path(), log.path(), expected, "no .snapshot"));
    }
    // read before the log end offset: an append raises both
    let durable = DurableOffsetFile::read(directory)?;
    let end = end_of_snapshots(log, names.last_key_value().map(|(offset, _)| *offset))?;
    let mut snapshots: BTreeMap<i64, (String, ProducerSnapshot)> = BTreeMap::new();
    for (offset, name) in names {
        // removed meanwhile
        let Some(file) = snapshot_files::read(directory, &name)? else { continue };
        match file.decoded {
            Ok(snapshot) if offset > end => {
                let is_complete = durable.is_some_and(|durable| durable.max(log.log_start_offset()) == end);
                findings.extend(beyond_end(
                    log,
                    directory.path_of(&name),
                    offset,
                    end,
                    &snapshot,
                    is_complete,
                ));
            }
            Ok(snapshot) => {
                snapshots.insert(offset, (name, snapshot));
            }
            Err((position, malformed)) => {
                let path = directory.path_of(&name);
                let finding = Finding::malformed(Rule::SnapshotUnreadable, log.path(), path, malformed);
                findings.push(finding.at(position, file.size).offsets(offset, None));
            }
        }
    }
    // compaction removes a producer's batches, and changes the timestamps of others
    let is_compacted = log.is_stated_compacted() || summaries.iter().any(|summary| summary.is_compacted);
    let is_transactional = summaries.iter().any(|summary| summary.is_transactional);
    if is_compacted {
        snapshots.clear();
    }
    if !snapshots.is_empty() || is_transactional {
        let mut replay = Replay {
            log,
            producers: ProducerReplay::new(ProducerStates::default(), MalformedMarker::RefusedIfDamaged),
            restarts: Restarts::new(log.log_start_offset()),
            snapshots,
            findings,
            is_whole: summaries.first().is_some_and(|first| first.first_offset == Some(0)),
            limits: StableLimits::default(),
        };
        replay.run(summaries)?;
        findings = replay.findings;
        findings.extend(replay.limits.check(log)?);
    }
    Ok(findings)
}

/// The finding for a snapshot above the end of the log. `is_complete`: whether a writer's log ends where that
/// writer left it: then a truncation inside a batch took the snapshot, unless the snapshot names a record
/// that is missing.
fn beyond_end(
    log: &Log,
    path: PathBuf,
    offset: i64,
    end: i64,
    snapshot: &ProducerSnapshot,
    is_complete: bool,
) -> Option<Finding> {
    let expected = format!("a log end offset of at least {offset}, as of which the snapshot is");
    let found = format!("log end offset {end}");
    let finding =
        Finding::new(Rule::SnapshotBeyondEnd, log.path(), path, expected, found).offsets(end, Some(offset));
    let named =
        |entry: &ProducerEntry| entry.last_batch().map(|batch| batch.last_offset).max(entry.open_transaction);
    let lost = snapshot.entries.iter().filter(|entry| named(entry) >= Some(end));
    match lost.max_by_key(|entry| named(entry)) {
        Some(entry) => Some(finding.because(format!("it has {}", shown(entry)))),
        None if is_complete => None,
        None => Some(finding.with_severity(Severity::Warning).because("it names no record that is missing")),
    }
}

struct Replay<'a> {
    log: &'a Log,
    producers: ProducerReplay,
    restarts: Restarts,
    /// The snapshots that were not compared yet, by offset.
    snapshots: BTreeMap<i64, (String, ProducerSnapshot)>,
    findings: Vec<Finding>,
    /// Whether the log has all batches since its offset 0.
    is_whole: bool,
    limits: StableLimits,
}

impl Replay<'_> {
    fn run(&mut self, summaries: &[Summary]) -> Result<()> {
        let mut end = 0;
        for (summary, segment) in summaries.iter().zip(self.log.segments().iter()) {
            if summary.is_damaged {
                return Ok(());
            }
            end = summary.end_offset;
            if !summary.has_producers {
                self.compare_below(end + 1);
                continue;
            }
            let mut walk = segment.walk(-1, SCAN_READ)?;
            loop {
                self.log.options().interrupt.check()?;
                let batch = match walk.step()? {
                    Step::Batch(batch) => batch,
                    Step::End => break,
                    // found before, or changed since
                    Step::Damage(_) => return Ok(()),
                };
                let header = batch.header;
                self.compare_below(header.base_offset + 1);
                let bytes = if ProducerReplay::needs_bytes(&header) { walk.bytes(&batch)? } else { &[] };
                if let Err(refused) = self.add(&header, bytes) {
                    let rule = Rule::TransactionsContradict;
                    let finding =
                        Finding::malformed(rule, self.log.path(), segment.path(), Malformed::from(refused));
                    let offsets = (header.base_offset, Some(header.last_offset + 1));
                    self.findings.push(finding.at(batch.position, batch.end()).offsets(offsets.0, offsets.1));
                    return Ok(());
                }
            }
        }
        self.compare_below(end + 1);
        Ok(())
    }

    fn add(&mut self, header: &BatchHeader, bytes: &[u8]) -> Result<(), RefusedBatch> {
        let before = self.producers.states.get(header.producer_id);
        let is_open = before.is_some_and(|before| before.open_transaction.is_some());
        let added = self.producers.add(header, bytes)?;
        self.restarts.add(header, added.marker.as_ref(), is_open);
        if let Some(ended) = &added.ended {
            self.limits.add(ended);
        }
        Ok(())
    }

    /// Compares the snapshots with an offset below this one.
    fn compare_below(&mut self, offset: i64) {
        while let Some(first) = self.snapshots.first_entry().filter(|first| *first.key() < offset) {
            let (offset, (name, snapshot)) = first.remove_entry();
            let path = self.log.path().join(&name);
            let new = |expected, found| {
                Finding::new(Rule::SnapshotWrong, self.log.path(), &path, expected, found)
                    .offsets(offset, None)
            };
            let wrong = (0_u64..).zip(&snapshot.entries).find_map(|(number, entry)| {
                let (expected, found) = self.difference(entry)?;
                let start = 10 + 46 * number;
                Some(new(expected, found).at(start, start + 46))
            });
            // one finding a snapshot: the rest of it is rebuilt too
            self.findings.extend(wrong.or_else(|| {
                let known =
                    self.producers.states.iter().filter(|known| !self.restarts.is_deleted(known.producer_id));
                let lost = lost_transaction(&snapshot, known)?;
                let found = format!("no entry of producer {}", lost.producer_id);
                Some(new(format!("{}, from the batches", shown(lost)), found))
            }));
        }
    }

    /// What an entry should be, and is.
    fn difference(&self, entry: &ProducerEntry) -> Option<(String, String)> {
        let id = entry.producer_id;
        let Some(known) = self.producers.states.get(id) else {
            let expected = "producers of batches of the log".to_owned();
            return self.is_whole.then(|| (expected, format!("producer {id}, of which there is no batch")));
        };
        let first = self.log.segments().first().map_or(0, |first| first.base_offset());
        let is_open_known = entry.open_transaction.is_none_or(|open| open >= first);
        let open_differs = is_open_known
            && known.open_transaction != entry.open_transaction
            && !self.restarts.may_begin(entry);
        let is_same = known.producer_epoch == entry.producer_epoch
            && (known.coordinator_epoch == entry.coordinator_epoch
                || known.coordinator_epoch < 0 && !self.is_whole
                || self.restarts.may_lack_marker(entry))
            && known.last_timestamp == entry.last_timestamp
            && (known.last_batch() == entry.last_batch()
                || known.last_batch().is_none() && !self.is_whole
                || self.restarts.may_lack_batch(entry)
                || same_batch(known, entry));
        if is_same && !open_differs {
            return None;
        }
        Some((format!("{}, from the batches", shown(known)), shown(entry)))
    }
}

/// A snapshot does not store the timestamp of the last batch if a marker follows it.
fn same_batch(known: &ProducerEntry, entry: &ProducerEntry) -> bool {
    let fields = |entry: &ProducerEntry| {
        entry.last_batch().map(|batch| (batch.last_sequence, batch.last_offset, batch.offset_delta))
    };
    fields(known) == fields(entry)
}

fn shown(entry: &ProducerEntry) -> String {
    let ProducerEntry {
        producer_id,
        producer_epoch,
        coordinator_epoch,
        last_timestamp,
        open_transaction,
        ..
    } = entry;
    let batch = entry.last_batch().map_or_else(
        || "no batch".to_owned(),
        |batch| {
            format!(
                "offsets {} to {}, last sequence {}",
                batch.first_offset(),
                batch.last_offset,
                batch.last_sequence
            )
        },
    );
    let open = open_transaction
        .map_or_else(String::new, |first| format!(", a transaction open from offset {first}"));
    format!(
        "producer {producer_id} with epoch {producer_epoch}, {batch}, timestamp {last_timestamp}, coordinator epoch \
         {coordinator_epoch}{open}"
    )
}
