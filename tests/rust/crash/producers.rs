//! The producers of a recovered log: every snapshot is that of the batches below it, and a producer that sends its last batch again gets
//! the old offsets.

use std::rc::Rc;

use cordwood::fs::mem::MemoryDisk;
use cordwood::state::producers::{ProducerEntry, ProducerSnapshot};
use cordwood::writer::{LogWriter, WriterOptions};

use crate::found::{self, Files};
use crate::judge::Recovered;
use crate::naive::Batch;

/// The epoch, the last sequence and the last offset of a producer's last batch among these.
fn last_of<'a>(producer_id: i64, batches: impl Iterator<Item = &'a Rc<Batch>>) -> Option<(i16, i32, i64)> {
    let last = batches.filter(|batch| batch.producer_id == producer_id).last()?;
    Some((last.producer_epoch, last.last_sequence, last.last_offset))
}

fn fields(entry: &ProducerEntry) -> Option<(i16, i32, i64)> {
    let last = entry.last_batch()?;
    Some((entry.producer_epoch, last.last_sequence, last.last_offset))
}

/// Checks the snapshots of a recovered log.
fn check_snapshots(recovered: &Recovered, batches: &[Rc<Batch>]) -> Result<(), String> {
    for (name, bytes) in &recovered.files {
        let Some(offset) = name.strip_suffix(".snapshot") else { continue };
        let offset: i64 = offset.parse().map_err(|_| format!("{name}: not an offset"))?;
        let snapshot = ProducerSnapshot::decode(bytes).map_err(|wrong| format!("{name}: {wrong:?}"))?;
        if offset > recovered.bounds.1 {
            return Err(format!("{name} of a log that ends at {}", recovered.bounds.1));
        }
        let below = || batches.iter().filter(|batch| batch.last_offset < offset);
        for entry in &snapshot.entries {
            // its batches may be deleted
            let naive = last_of(entry.producer_id, below()).or_else(|| fields(entry));
            if fields(entry) != naive {
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
    let sent =
        batches.iter().rfind(|batch| batch.producer_id >= 0 && batch.base_offset >= recovered.bounds.0);
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
