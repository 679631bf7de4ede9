//! Every header of a log: their sums, and two ways to read them.

use cordwood::Log;
use cordwood::fs::FileBytes;
use cordwood::log::{ScanOptions, ScanStep};

use super::batches::crc32c;
use super::naive::Header;

/// The number of batches, and sums over their headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walked {
    pub batches: u64,
    pub bytes: u64,
    pub base_offsets: i64,
    pub last_offset: i64,
    pub timestamps: i64,
}

impl Walked {
    pub fn add(&mut self, size: u64, base_offset: i64, last_offset: i64, max_timestamp: i64) {
        self.batches += 1;
        self.bytes += size;
        self.base_offsets = self.base_offsets.wrapping_add(base_offset);
        self.last_offset = last_offset;
        self.timestamps = self.timestamps.wrapping_add(max_timestamp);
    }

    /// One number that depends on all of them.
    pub fn sum(&self) -> i64 {
        let sizes = (self.batches + self.bytes) as i64;
        self.base_offsets.wrapping_add(self.last_offset).wrapping_add(self.timestamps).wrapping_add(sizes)
    }

    pub fn add_header(&mut self, header: &Header) {
        self.add(header.size, header.base_offset, header.last_offset, header.max_timestamp);
    }
}

/// All headers, by a scan.
pub fn scanned(log: &Log, check_crcs: bool) -> Walked {
    let mut walked = Walked::default();
    let mut scan =
        log.scan(ScanOptions { batches_only: true, check_crcs, ..ScanOptions::default() }).unwrap();
    while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
        let header = &batch.header;
        walked.add(header.size.into(), header.base_offset, header.last_offset, header.max_timestamp);
    }
    walked
}

/// All headers, by a loop over the bytes.
pub fn hopped(maps: &[FileBytes], crc: bool) -> Walked {
    let mut walked = Walked::default();
    for map in maps {
        let mut rest = map.mapped().unwrap();
        while !rest.is_empty() {
            let header = Header::new(rest);
            let (batch, after) = rest.split_at(header.size as usize);
            if crc {
                assert_eq!(crc32c(&batch[21..]), header.crc);
            }
            walked.add_header(&header);
            rest = after;
        }
    }
    walked
}
