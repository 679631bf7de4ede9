//! Batches of 256 bytes to 1 MiB in a log of 32 MiB: every header, records into columns, `Log::locate`.

use cordwood::types::Io;

use super::records;
use super::support::batches::Codec;
use super::support::naive::{From, Reader};
use super::support::random::Random;
use super::support::walked::{Walked, hopped, scanned};
use super::support::written::{Shape, Written};
use super::sweep::{Answer, Arm, Sweeps};

const SIZES: [usize; 7] = [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const LOG_BYTES: usize = 32 << 20;
const LOOK_UPS: usize = 1 << 13;
const SWEEPS: [&str; 3] = ["batches/headers", "batches/columns", "batches/locate"];

pub fn run(sweeps: &mut Sweeps) {
    if !sweeps.wants(&SWEEPS) {
        return;
    }
    for batch_bytes in SIZES {
        let written = Written::new(Shape {
            batch_bytes,
            codec: Codec::None,
            log_bytes: LOG_BYTES,
            segment_bytes: LOG_BYTES / 2,
        });
        if sweeps.wants(&SWEEPS[..1]) {
            headers(sweeps, batch_bytes as u64, &written);
        }
        if sweeps.wants(&SWEEPS[1..2]) {
            records::columns_of(sweeps, SWEEPS[1], batch_bytes as u64, &written);
        }
        if sweeps.wants(&SWEEPS[2..]) {
            locate(sweeps, batch_bytes as u64, &written);
        }
    }
}

fn headers(sweeps: &mut Sweeps, size: u64, written: &Written) {
    let mut right = Walked::default();
    for batch in &written.batches {
        right.add(batch.size.into(), batch.base_offset, batch.last_offset, batch.max_timestamp);
    }
    let (log, maps) = (written.open(Io::Mmap), written.maps());
    let arms: [(&str, &dyn Fn() -> Walked); 4] = [
        ("Log::scan", &|| scanned(&log, false)),
        ("Log::scan; checksums", &|| scanned(&log, true)),
        ("loop over the bytes", &|| hopped(&maps, false)),
        ("loop over the bytes; checksums", &|| hopped(&maps, true)),
    ];
    let arms = arms.map(|(name, walk)| {
        assert_eq!(walk(), right, "{name}");
        Arm::new(name, right.batches, move || walk().sum())
    });
    sweeps.measure(SWEEPS[0], size, &arms);
}

fn locate(sweeps: &mut Sweeps, size: u64, written: &Written) {
    let targets = Random(4).between(0, written.end_offset(), LOOK_UPS);
    let right = |target: &i64| -> Answer {
        let batch = written.batch_of(*target);
        (batch.segment + (i64::from(batch.size) << 32), (batch.base_offset << 32) + batch.position as i64)
    };
    let answers: Vec<_> = targets.iter().map(right).collect();
    let logs = [Io::Mmap, Io::Pread].map(|io| written.open(io));
    let reader = Reader::open(&written.dir);
    let mut arms: Vec<_> = ["Log::locate; mapped", "Log::locate; read by position"]
        .into_iter()
        .zip(&logs)
        .map(|(name, log)| {
            Arm::look_ups(name, &targets, &answers, |target| {
                let found = log.locate(target).unwrap().unwrap();
                let place = (found.batch_base_offset << 32) + found.position as i64;
                (found.segment_base_offset + (i64::from(found.size) << 32), place)
            })
        })
        .collect();
    arms.push(Arm::look_ups("index and a read of each header", &targets, &answers, |target| {
        let (segment, base_offset, position, size) = reader.locate(target, From::Index, false);
        (segment + ((size as i64) << 32), (base_offset << 32) + position as i64)
    }));
    sweeps.measure(SWEEPS[2], size, &arms);
}
