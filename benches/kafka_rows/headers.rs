//! Every batch's header, mapped: a scan with `batches_only`. Kafka reads 17 and then 61 bytes of each batch.
//! *Checked*: both verify the checksum of each batch.

use cordwood::Log;
use cordwood::log::{ScanOptions, ScanStep};
use cordwood::types::Io;

use super::contest::{Contest, Row};
use super::log_targets::{LogTargets, opened};
use super::turns::Clock;

pub fn run(contest: &mut Contest) {
    for (batch_kib, floor) in [(16, 10.0), (1, 12.0)] {
        let rows = [
            (format!("headers/{batch_kib}KiB/unchecked"), "FileRecords.batches", Some(floor), "false"),
            (format!("headers/{batch_kib}KiB/checked"), "FileRecords.batches, ensureValid", None, "true"),
        ];
        for (name, peer, floor, checked) in rows {
            if !contest.wants(&name) {
                continue;
            }
            let dir = contest.scanned_log(batch_kib, "none");
            let log = opened(&dir, Io::Mmap);
            let elements = LogTargets::of(&dir).batches();
            let row = Row { name, peer, floor, clock: Clock::Cpu, elements };
            contest.race(
                row,
                || headers(&log, checked == "true"),
                &["headers", dir.to_str().unwrap(), checked],
            );
        }
    }
}

/// The number of batches and sums over their headers, as in the JVM.
fn headers(log: &Log, check_crcs: bool) -> i64 {
    let mut sum = 0i64;
    let mut scan =
        log.scan(ScanOptions { batches_only: true, check_crcs, ..ScanOptions::default() }).unwrap();
    while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
        let header = &batch.header;
        let numbers = [
            1,
            i64::from(header.size),
            header.base_offset.wrapping_mul(31),
            header.last_offset.wrapping_mul(961),
            header.max_timestamp,
        ];
        sum = numbers.into_iter().fold(sum, i64::wrapping_add);
    }
    sum
}
