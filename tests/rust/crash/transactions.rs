//! The transactions and the named producer of a recovered log: no record of an aborted or an open transaction
//! is visible, the open transaction of a transactional id is found again, and a call of a named producer is
//! not written twice.

use std::collections::BTreeMap;
use std::rc::Rc;

use cordwood::fs::mem::{MemoryDisk, Survivors};
use cordwood::log::ScanOptions;
use cordwood::record::NewRecord;
use cordwood::types::IsolationLevel;
use cordwood::writer::{FlushMode, LogWriter, TransactionVersion, WriterOptions};
use cordwood::{Log, LogOptions};

use crate::judge::Recovered;
use crate::naive::Batch;
use crate::script::{Before, NAMED, NOW, Setup, TRANSACTIONAL};

/// The first id of a named producer, and the first one of a transactional id.
const NAMED_IDS: i64 = 1_000_000_000_000_000;
const TRANSACTIONAL_IDS: i64 = 2 * NAMED_IDS;

/// The offsets of the records that a committed reader sees, and the last stable offset.
fn visible(batches: &[Rc<Batch>], (start, end): (i64, i64)) -> (Vec<i64>, i64) {
    let mut open: BTreeMap<i64, Vec<&Rc<Batch>>> = BTreeMap::new();
    let mut offsets = Vec::new();
    let mut add = |batch: &Batch| offsets.extend(batch.records.iter().map(|record| record.offset));
    // also those below the log start: a transaction may begin there
    for batch in batches {
        if !batch.transactional {
            add(batch);
        } else if !batch.control {
            open.entry(batch.producer_id).or_default().push(batch);
        } else if batch.records[0].key.as_deref() == Some(&[0, 0, 0, 1]) {
            open.remove(&batch.producer_id).into_iter().flatten().for_each(|batch| add(batch));
        } else {
            open.remove(&batch.producer_id);
        }
    }
    open.retain(|_, batches| batches.iter().any(|batch| batch.last_offset >= start));
    let first_open = open.values().map(|batches| batches[0].base_offset.max(start)).min().unwrap_or(end);
    offsets.retain(|offset| *offset >= start && *offset < first_open);
    offsets.sort_unstable();
    (offsets, first_open)
}

fn read_committed(log: &Log) -> cordwood::Result<Vec<i64>> {
    let isolation_level = IsolationLevel::ReadCommitted;
    let options = ScanOptions { isolation_level, ..ScanOptions::default() };
    let mut scan = log.scan(options)?;
    let mut offsets = Vec::new();
    while scan.next_step()?.is_some() {
        while let Some(record) = scan.next_record()? {
            offsets.push(record.offset);
        }
    }
    Ok(offsets)
}

pub fn check(recovered: &Recovered, batches: &[Rc<Batch>], options: &WriterOptions) -> Result<(), String> {
    let fail = |error: cordwood::Error| error.to_string();
    let log = Log::open_in(recovered.disk.directory("/orders-0"), LogOptions::default()).map_err(fail)?;
    let read_end = log.log_end_offset().map_err(fail)?;
    let (expected, stable) = visible(batches, (recovered.bounds.0, read_end));
    let found = (read_committed(&log).map_err(fail)?, log.last_stable_offset().map_err(fail)?);
    if found != (expected.clone(), stable) {
        return Err(format!(
            "committed readers see {found:?}, according to the naive reader {expected:?}, {stable}"
        ));
    }
    let disk: MemoryDisk = recovered.disk.fork();
    let mut writer = LogWriter::open_in(disk.directory("/orders-0"), options).map_err(fail)?;
    let present = || batches.iter().filter(|batch| batch.base_offset >= recovered.bounds.0);
    let is_named = |batch: &&Rc<Batch>| (NAMED_IDS..TRANSACTIONAL_IDS).contains(&batch.producer_id);
    if let Some(last) = present().rfind(is_named) {
        let producer = writer.producer(Some(NAMED)).map_err(fail)?;
        let known = (
            producer.producer_id(),
            producer.next_sequence().map_err(fail)?,
            producer.last_offset().map_err(fail)?,
        );
        let expected = (last.producer_id, last.last_sequence + 1, Some(last.last_offset));
        if known != expected {
            return Err(format!("the named producer is at {known:?}, its last batch at {expected:?}"));
        }
        let again = producer.append(&NewRecord::default(), Some(last.last_sequence)).map_err(fail)?;
        if (again.first_offset, again.is_duplicate) != (last.base_offset, true) {
            return Err(format!(
                "the last call of the named producer is written again at {}",
                again.first_offset
            ));
        }
    }
    // that of the transactional id; the other transactions are those of clients
    let is_ours = |batch: &&Rc<Batch>| batch.producer_id >= TRANSACTIONAL_IDS;
    // one of which all batches were deleted may be open
    let was_open = present().rfind(is_ours).map(|last| !last.control);
    let end = writer.log_end_offset();
    let mut transaction = writer.transaction(TRANSACTIONAL, TransactionVersion::V2).map_err(fail)?;
    if was_open.is_some_and(|was_open| was_open != (writer.log_end_offset() == end + 1)) {
        let found = writer.log_end_offset();
        return Err(format!(
            "open: {was_open:?}, and the log ends at {end} before the next transaction, then at {found}"
        ));
    }
    transaction.append(&NewRecord::default()).map_err(fail)?;
    transaction.commit().map_err(fail)?;
    writer.flush().map_err(fail)?;
    let log = writer.reader().map_err(fail)?;
    // the opening may have deleted segments below the log start
    let first = log.segments().first().map_or(0, |first| first.base_offset());
    let is_client = |batch: &&Rc<Batch>| batch.producer_id < TRANSACTIONAL_IDS && batch.base_offset >= first;
    let others: Vec<_> = batches.iter().filter(is_client).map(Rc::clone).collect();
    let (_, first_open) = visible(&others, (recovered.bounds.0, writer.log_end_offset()));
    let stable = log.last_stable_offset().map_err(fail)?;
    if stable != first_open {
        return Err(format!("after a transaction the last stable offset is {stable}, not {first_open}"));
    }
    Ok(())
}

#[test]
fn an_idle_named_producer_keeps_its_sequences_when_a_crash_interrupts_the_deletion_of_its_records() {
    let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Nothing };
    let disk = MemoryDisk::new(16);
    let open = |disk: &MemoryDisk| LogWriter::open_in(disk.directory("/orders-0"), &setup.options()).unwrap();
    let mut writer = open(&disk);
    let record = NewRecord { timestamp: NOW, value: Some(b"v"), ..NewRecord::default() };
    for _ in 0..3 {
        writer.producer(Some(NAMED)).unwrap().append(&record, None).unwrap();
    }
    writer.append(&record).unwrap();
    let mut judged = 0;
    let mut check = |disk: &MemoryDisk| {
        judged += 1;
        let opened = open(disk);
        let producer = opened.producer(Some(NAMED)).unwrap();
        assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (3, Some(2)));
    };
    for step in 0..3 {
        disk.record();
        match step {
            0 => writer.roll().unwrap(),
            1 => assert!(writer.delete_before(4).unwrap()),
            _ => writer.close().unwrap(),
        }
        let points = disk.recorded().into_iter().map(|(_, point)| point).chain([disk.crash_point()]);
        for (number, point) in points.enumerate() {
            for survivors in point.survivors(8, number as u64) {
                check(&point.image(survivors).disk());
            }
        }
    }
    check(&disk.crash_point().image(Survivors::None).disk());
    assert!(judged > 60, "{judged}");
}
