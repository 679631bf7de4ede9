//! The producers of a recovered log: every snapshot is that of the batches below it, the transaction indexes
//! have the transactions that the markers abort, and a producer that sends its last batch again gets the old
//! offsets.

use std::collections::BTreeMap;
use std::rc::Rc;

use cordwood::fs::mem::MemoryDisk;
use cordwood::state::producers::{ProducerEntry, ProducerSnapshot};
use cordwood::writer::{LogWriter, WriterOptions};

use crate::found::{self, Files};
use crate::judge::Recovered;
use crate::naive::Batch;

/// A producer's epoch, and the last sequence and the last offset of its last batch in it.
pub type State = (i16, Option<(i32, i64)>);

/// The state of a producer after these batches; `None` if none is of it.
fn state_after<'a>(producer_id: i64, batches: impl Iterator<Item = &'a Rc<Batch>>) -> Option<State> {
    let own = batches.filter(|batch| batch.producer_id == producer_id);
    own.fold(None, |before, batch| {
        // a marker may raise the epoch
        let kept = before.filter(|(epoch, _)| batch.control && *epoch == batch.producer_epoch);
        let last = Some((batch.last_sequence, batch.last_offset)).filter(|_| !batch.control);
        kept.or(Some((batch.producer_epoch, last)))
    })
}

fn state(entry: &ProducerEntry) -> State {
    (entry.producer_epoch, entry.last_batch().map(|last| (last.last_sequence, last.last_offset)))
}

/// Offset, name and contents of each snapshot.
fn snapshots(files: &Files) -> impl Iterator<Item = (i64, &str, &[u8])> {
    files.iter().filter_map(|(name, bytes)| {
        let offset = name.strip_suffix(".snapshot")?.parse().unwrap();
        Some((offset, name.as_str(), &bytes[..]))
    })
}

/// The producers in a snapshot that have a batch or an open transaction at or above the log start, with their
/// states.
pub fn visible(bytes: &[u8], log_start_offset: i64) -> BTreeMap<i64, (State, Option<i64>)> {
    let entries = ProducerSnapshot::decode(bytes).map(|snapshot| snapshot.entries).unwrap_or_default();
    let fields = |entry: &ProducerEntry| (entry.producer_id, (state(entry), entry.open_transaction));
    let is_visible = |entry: &&ProducerEntry| {
        let last = entry.last_batch().map(|last| last.last_offset);
        last.max(entry.open_transaction) >= Some(log_start_offset)
    };
    entries.iter().filter(is_visible).map(fields).collect()
}

/// Checks the snapshots of a crashed log: it is recovered up to every record that one of them names.
pub fn check_not_ahead(crashed: &Files, recovered: &Recovered) -> Result<(), String> {
    if found::checkpointed(crashed, "starting-at").is_some() {
        // all records were being removed
        return Ok(());
    }
    for (_, name, bytes) in snapshots(crashed) {
        let snapshot = ProducerSnapshot::decode(bytes).map_err(|wrong| format!("{name}: {wrong:?}"))?;
        let last = snapshot.entries.iter().filter_map(ProducerEntry::last_batch).map(|last| last.last_offset);
        if let Some(last) = last.max().filter(|last| *last >= recovered.bounds.1) {
            return Err(format!("{name} has offset {last}, the log ends at {}", recovered.bounds.1));
        }
    }
    Ok(())
}

/// Checks a log after a roll: there is a snapshot as of the base offset of its last segment.
pub fn check_rolled(files: &Files, log_start_offset: i64) -> Result<(), String> {
    let last = found::segments(files).last().map_or(0, |(base, _)| *base);
    if last > log_start_offset && snapshots(files).all(|(offset, ..)| offset != last) {
        return Err(format!("no snapshot as of the last segment, {last}"));
    }
    Ok(())
}

/// Checks the snapshots of a recovered log.
fn check_snapshots(recovered: &Recovered, batches: &[Rc<Batch>]) -> Result<(), String> {
    let segments = found::segments(&recovered.files);
    let last_base = segments.last().map_or(0, |(base, _)| *base);
    for (offset, name, bytes) in snapshots(&recovered.files) {
        let snapshot = ProducerSnapshot::decode(bytes).map_err(|wrong| format!("{name}: {wrong:?}"))?;
        if offset > recovered.bounds.1 {
            return Err(format!("{name} of a log that ends at {}", recovered.bounds.1));
        }
        let is_base = segments.iter().any(|(base, _)| *base == offset);
        if !is_base && offset < last_base && offset != recovered.bounds.0 {
            return Err(format!("{name} belongs to no segment"));
        }
        let below = || batches.iter().filter(|batch| batch.last_offset < offset);
        for entry in &snapshot.entries {
            let naive = state_after(entry.producer_id, below());
            // its batches may be deleted
            let is_deleted = |(_, last): State| last.is_none_or(|(_, last)| last < recovered.bounds.0);
            let is_unknown = naive.is_none_or(is_deleted) && is_deleted(state(entry));
            if naive != Some(state(entry)) && !is_unknown {
                return Err(format!("{name}: {entry:?}, according to the naive reader {naive:?}"));
            }
        }
        let is_known =
            |batch: &&Rc<Batch>| snapshot.entries.iter().any(|entry| entry.producer_id == batch.producer_id);
        let present =
            below().filter(|batch| batch.producer_id >= 0 && batch.base_offset >= recovered.bounds.0);
        if let Some(batch) = present.clone().find(|batch| !is_known(batch)) {
            return Err(format!("{name} lacks producer {}", batch.producer_id));
        }
    }
    Ok(())
}

/// Checks the transaction indexes against the batches above the log start. A transaction that began below it
/// may also be in an index.
fn check_transaction_indexes(recovered: &Recovered, batches: &[Rc<Batch>]) -> Result<(), String> {
    let start = recovered.bounds.0;
    // producer, first offset, marker
    let (mut open, mut expected) = (BTreeMap::new(), Vec::new());
    for batch in batches.iter().filter(|batch| batch.transactional && batch.base_offset >= start) {
        if !batch.control {
            open.entry(batch.producer_id).or_insert(batch.base_offset);
        } else if let Some(first) = open.remove(&batch.producer_id)
            && batch.records[0].key.as_deref() == Some(&[0, 0, 0, 0])
        {
            expected.push((batch.producer_id, first, batch.last_offset));
        }
    }
    let mut found = Vec::new();
    for (base, _) in found::segments(&recovered.files) {
        let name = format!("{base:020}.txnindex");
        let index = recovered.files.iter().find(|(file, _)| *file == name);
        for entry in index.map(|(_, bytes)| &bytes[..]).unwrap_or_default().chunks_exact(34) {
            let number = |at: usize| i64::from_be_bytes(entry[at..at + 8].try_into().unwrap());
            found.push((number(2), number(10), number(18)));
        }
    }
    let same = |(id, first, last): &(i64, i64, i64), other: &(i64, i64, i64)| {
        (id, last) == (&other.0, &other.2) && (first == &other.1 || other.1 < start)
    };
    let is_lost = |entry: &&_| !found.iter().any(|other| same(entry, other));
    if let Some(lost) = expected.iter().find(is_lost) {
        return Err(format!("the aborted transaction {lost:?} is not in {found:?}"));
    }
    let is_invented = |entry: &&(i64, i64, i64)| entry.1 >= start && !expected.contains(entry);
    match found.iter().find(is_invented) {
        Some(entry) => Err(format!("the entry {entry:?} is of none of {expected:?}")),
        None => Ok(()),
    }
}

/// The bytes of a batch.
fn bytes_of(files: &Files, batch: &Batch) -> Option<Vec<u8>> {
    for (_, bytes) in found::segments(files) {
        let mut position = 0;
        while let Some(head) = bytes.get(position..position + 12) {
            let size = 12 + u32::from_be_bytes(head[8..].try_into().unwrap()) as usize;
            if i64::from_be_bytes(head[..8].try_into().unwrap()) == batch.base_offset {
                return Some(bytes[position..position + size].to_vec());
            }
            position += size;
        }
    }
    None
}

/// Checks the snapshots, and sends the last batch with a producer id again.
pub fn check(recovered: &Recovered, batches: &[Rc<Batch>], options: &WriterOptions) -> Result<(), String> {
    check_snapshots(recovered, batches)?;
    check_transaction_indexes(recovered, batches)?;
    let is_sent = |batch: &&Rc<Batch>| batch.producer_id >= 0 && !batch.control;
    let sent = batches.iter().rfind(is_sent).filter(|sent| sent.base_offset >= recovered.bounds.0);
    let sent = sent.filter(|sent| {
        // no later marker raises the epoch
        let state = state_after(sent.producer_id, batches.iter());
        state.is_some_and(|(epoch, _)| epoch == sent.producer_epoch)
    });
    let Some((sent, raw)) = sent.and_then(|sent| Some((sent, bytes_of(&recovered.files, sent)?))) else {
        return Ok(());
    };
    let disk: MemoryDisk = recovered.disk.fork();
    let mut writer =
        LogWriter::open_in(disk.directory("/orders-0"), options).map_err(|error| error.to_string())?;
    let again = writer.append_batches(&raw, false).map_err(|error| format!("sent again: {error}"))?;
    if (again.first_offset, again.last_offset) != (sent.base_offset, sent.last_offset) {
        let (first, last) = (again.first_offset, again.last_offset);
        return Err(format!("sent again: written to {first}..={last}, is at {}", sent.base_offset));
    }
    Ok(())
}
