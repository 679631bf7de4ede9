//! `verify` of uncompressed batches, on one thread, compared with the checksums of the same bytes alone: in
//! memory that is mapped already, and read from the file, which no verification can do without.

use std::hint::black_box;

use cordwood::fs::SystemFile;
use cordwood::inspect::verify::{VerifyOptions, verify};
use cordwood::record::crc::crc32c;
use cordwood_benches as support;
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
        std::fs::write(written.dir.join("leader-epoch-checkpoint"), "0\n1\n0 0\n").unwrap();
        let maps = written.maps();
        let checksums = || maps.iter().map(|map| intact_batches(map.mapped().unwrap()).0).sum();
        let read = || {
            let mut batches = 0;
            for map in &maps {
                let file = SystemFile::open(map.path()).unwrap();
                let mut window = vec![0; 256 << 10];
                let mut position = 0;
                while position < file.size() {
                    window.truncate(usize::try_from(file.size() - position).unwrap());
                    file.read_exact_at(position, &mut window).unwrap();
                    let (count, bytes) = intact_batches(&window);
                    batches += count;
                    position += bytes as u64;
                }
            }
            batches
        };
        let verified = |is_deep: bool| {
            let options = VerifyOptions { is_deep, ..VerifyOptions::default() };
            let found = verify(std::slice::from_ref(&written.dir), &options, |_| Ok(())).unwrap();
            assert!(found.findings.is_empty(), "{:?}", found.findings);
            found.batches_checked
        };
        let count = written.batches.len() as u64;
        let bytes: u64 = written.batches.iter().map(|batch| u64::from(batch.size)).sum();
        let arms: [(&str, &dyn Fn() -> u64); 4] = [
            ("checksums", &checksums),
            ("read_checksums", &read),
            ("verify", &|| verified(false)),
            ("verify_deep", &|| verified(true)),
        ];
        let mut group = group(criterion, &format!("verify/{size}"));
        group.throughput(Throughput::ElementsAndBytes { elements: count, bytes });
        for (arm, run) in arms {
            assert_eq!(run(), count, "{arm}");
            group.bench_function(arm, |bencher| bencher.iter(|| black_box(run())));
        }
        group.finish();
    }
}

/// The number of whole batches at the start of these bytes, and their size.
///
/// # Panics
/// If a checksum is wrong.
fn intact_batches(bytes: &[u8]) -> (u64, usize) {
    let (mut batches, mut position) = (0, 0);
    while let Some(length) = bytes.get(position + 8..position + 12) {
        let size = 12 + u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let Some(batch) = bytes.get(position..position + size) else { break };
        assert_eq!(crc32c(&batch[21..]).to_be_bytes(), batch[17..21]);
        position += size;
        batches += 1;
    }
    (batches, position)
}

criterion_group!(benches, verification);
criterion_main!(benches);
