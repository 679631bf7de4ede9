//! `verify` of uncompressed batches, on one thread, compared with the checksums of the same bytes alone: what no verification can do
//! without.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking, and its sizes are its own"
)]

mod support;

use std::hint::black_box;

use cordwood::inspect::verify::{VerifyOptions, verify};
use cordwood::record::crc::crc32c;
use cordwood::types::Io;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::batches::Codec;
use support::race::group;
use support::written::{Shape, Written};

fn verification(criterion: &mut Criterion) {
    for (size, batch_bytes) in [("1KiB", 1 << 10), ("16KiB", 16 << 10)] {
        let written = Written::new(Shape {
            batch_bytes,
            codec: Codec::None,
            log_bytes: 256 << 20,
            segment_bytes: 128 << 20,
        });
        let maps = written.maps();
        let checksums = || {
            let mut batches = 0_u64;
            for map in &maps {
                let map = map.mapped().unwrap();
                let mut position = 0;
                while let Some(batch) = map.get(position..).filter(|batch| !batch.is_empty()) {
                    let size = 12 + u32::from_be_bytes(batch[8..12].try_into().unwrap()) as usize;
                    assert_eq!(crc32c(&batch[21..size]).to_be_bytes(), batch[17..21]);
                    position += size;
                    batches += 1;
                }
            }
            batches
        };
        let verified = |is_deep: bool| {
            let options = VerifyOptions { io: Io::Mmap, is_deep, ..VerifyOptions::default() };
            let found = verify(std::slice::from_ref(&written.dir), &options, |_| Ok(())).unwrap();
            assert!(found.findings.is_empty(), "{:?}", found.findings);
            found.batches_checked
        };
        let count = written.batches.len() as u64;
        let bytes: u64 = written.batches.iter().map(|batch| u64::from(batch.size)).sum();
        let arms: [(&str, &dyn Fn() -> u64); 3] =
            [("checksums", &checksums), ("verify", &|| verified(false)), ("verify_deep", &|| verified(true))];
        let mut group = group(criterion, &format!("verify/{size}"));
        group.throughput(Throughput::ElementsAndBytes { elements: count, bytes });
        for (arm, run) in arms {
            assert_eq!(run(), count, "{arm}");
            group.bench_function(arm, |bencher| bencher.iter(|| black_box(run())));
        }
        group.finish();
    }
}

criterion_group!(benches, verification);
criterion_main!(benches);
