//! Repair: what was intact is there afterwards, byte for byte; a second repair changes nothing.

mod corpus;
mod crashes;
mod displaced;
mod mutations;
mod rules;
mod transactions;
mod unsearched;
mod values_that_are_logs;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use cordwood::config::StatedSettings;
use cordwood::fs::names::{FileKind, SegmentFileName, Stage};
use cordwood::inspect::repair::{
    RepairAction, RepairActionKind, RepairOptions, RepairPlan, RepairPolicy, plan_repair, repair,
};
use cordwood::log::{Log, LogOptions, OnDamage};
use cordwood::{Error, LogConfig};

use crate::support::reading;

/// A batch: its offsets and its bytes.
type OwnBatch = (i64, i64, Vec<u8>);

/// The files of a directory by their path in it.
type Files = BTreeMap<String, Vec<u8>>;

fn options(policy: RepairPolicy, interval: u32) -> RepairOptions {
    let config =
        LogConfig { index_interval_bytes: interval, stated: StatedSettings::ALL, ..LogConfig::default() };
    RepairOptions { policy, config: Some(config), ..RepairOptions::default() }
}

/// `index.interval.bytes` of a case.
fn interval(manifest: &serde_json::Value) -> u32 {
    manifest["settings"]["index.interval.bytes"].as_str().map_or(4096, |text| text.parse().unwrap())
}

/// Every batch that a reader returns, in order. `on_damage`: what the reader does.
fn batches(dir: &Path, on_damage: OnDamage) -> Vec<OwnBatch> {
    let log = Log::open(dir, LogOptions::default()).unwrap();
    let read = reading::all(&log, on_damage);
    assert!(read.error.is_none(), "{}: {:?}", dir.display(), read.error);
    let files = reading::files(dir);
    read.batches
        .iter()
        .map(|batch| {
            let name = format!("{:020}.log", batch.segment);
            let bytes = files.get(&name).unwrap_or_else(|| &files[&format!("{name}.swap")]);
            let start = batch.position as usize;
            (batch.base_offset, batch.last_offset, bytes[start..start + batch.size as usize].to_vec())
        })
        .collect()
}

/// Finds batches in bytes, at any position.
struct Haystack<'a> {
    bytes: &'a [u8],
    /// The positions of each group of four bytes.
    positions: HashMap<[u8; 4], Vec<usize>>,
}

impl<'a> Haystack<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut positions: HashMap<[u8; 4], Vec<usize>> = HashMap::new();
        for (position, group) in bytes.windows(4).enumerate() {
            positions.entry(group.try_into().unwrap()).or_default().push(position);
        }
        Self { bytes, positions }
    }

    /// Whether they contain all bytes of a batch. Its checksum is at 12 or 17.
    fn contains(&self, batch: &[u8]) -> bool {
        let found = self.positions.get(&batch[17..21]).into_iter().flatten();
        found.filter_map(|at| self.bytes.get(at.checked_sub(17)?..)).any(|rest| rest.starts_with(batch))
    }
}

fn is_live_log(name: &str) -> bool {
    SegmentFileName::parse(name)
        .is_some_and(|parsed| (parsed.kind, parsed.stage) == (FileKind::Log, Stage::Live))
}

/// The files of a directory and of its `quarantine/`.
fn all_files(dir: &Path) -> Files {
    let mut files = reading::files(dir);
    let quarantine = dir.join("quarantine");
    if quarantine.is_dir() {
        let kept = reading::files(&quarantine).into_iter();
        files.extend(kept.map(|(name, bytes)| (format!("quarantine/{name}"), bytes)));
    }
    files
}

/// Repairs a directory. The plan changes nothing, the repair does what it says, a second repair has nothing
/// to do, and no byte is gone.
fn repaired(dir: &Path, options: &RepairOptions) -> Result<RepairPlan, Error> {
    let before = all_files(dir);
    let plan = plan_repair(dir, options);
    assert_eq!(before, all_files(dir), "a plan has changed a file");
    let mut plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            assert!(repair(dir, options).is_err());
            let after = all_files(dir);
            let own = |name: &&String| !name.starts_with(".cordwood.lock");
            assert!(
                before.keys().filter(own).eq(after.keys().filter(own)),
                "a refused repair has changed files"
            );
            return Err(error);
        }
    };
    let done = repair(dir, options).unwrap();
    plan.is_applied = true;
    assert_eq!(done, plan);
    let after = all_files(dir);
    assert_conserved(&before, &after, &done);
    let again = repair(dir, options).unwrap();
    assert!(again.is_clean(), "{:#?}", again.actions);
    assert_eq!(after, all_files(dir), "the second repair has changed a file");
    Ok(done)
}

/// Every byte of every file is where it was, or in `quarantine/`, or zero.
fn assert_conserved(before: &Files, after: &Files, plan: &RepairPlan) {
    let name_of = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for (name, bytes) in before {
        let actions: Vec<_> = plan.actions.iter().filter(|action| name_of(&action.file) == *name).collect();
        let mut rest = Vec::new();
        let mut at = 0;
        for action in &actions {
            let (start, end) = (action.start_position as usize, action.end_position as usize);
            assert!(at <= start, "{name}: {action} overlaps the action before");
            rest.extend(&bytes[at..start]);
            at = end;
            let taken = &bytes[start..end];
            if let Some(path) = &action.quarantine {
                let kept = &after[&format!("quarantine/{}", name_of(path))];
                assert!(taken.starts_with(kept), "{name}: {action}: other bytes are kept");
                assert!(
                    taken[kept.len()..].iter().all(|byte| *byte == 0),
                    "{name}: {action}: bytes are missing"
                );
            } else if action.kind != RepairActionKind::MoveBatch {
                assert!(taken.iter().all(|byte| *byte == 0), "{name}: {action}: bytes are gone");
            }
            match action.kind {
                RepairActionKind::CorrectHeader | RepairActionKind::CorrectMarker => {
                    rest.extend(vec![0; end - start]);
                }
                RepairActionKind::RemoveFile
                | RepairActionKind::Rebuild
                | RepairActionKind::RemoveSegment
                | RepairActionKind::ReplaceLeaderEpochs => at = bytes.len(),
                _ => {}
            }
        }
        rest.extend(&bytes[at.min(bytes.len())..]);
        let kinds: Vec<_> = actions.iter().map(|action| action.kind).collect();
        if kinds.contains(&RepairActionKind::MoveBatch) {
            let is_moved = |action: &&&RepairAction| action.kind == RepairActionKind::MoveBatch;
            let moved: u64 = actions.iter().filter(is_moved).map(|action| action.size()).sum();
            assert_eq!(after[name].len(), rest.len() + moved as usize, "{name}");
        } else if is_live_log(name)
            && !kinds.contains(&RepairActionKind::RemoveFile)
            && after.contains_key(name)
        {
            let now = &after[name];
            assert_eq!(rest.len(), now.len(), "{name}");
            let differ = rest.iter().zip(now).filter(|(old, new)| old != new && **old != 0).count();
            assert_eq!(differ, 0, "{name}: other bytes have changed");
        } else if actions.is_empty() && !name.starts_with(".cordwood") {
            // the indexes of a removed segment are kept without an action of their own
            let is_kept = after.get(name) == Some(bytes) || after.values().any(|kept| kept == bytes);
            assert!(is_kept || bytes.iter().all(|byte| *byte == 0), "{name} has changed without an action");
        }
    }
}
