//! Every header of a partition: `Log::scan` with `batches_only`, mapped and by position, compared with a loop
//! that reads 17 and then 61 bytes per batch, like Kafka's, and one that steps through a mapping.
//!
//! The library verifies every batch's checksum and compares the headers of neighbours. So the naive arms also
//! exist with the checksum (`crc`), which reads the whole batch. Only those do the same work.

use std::hint::black_box;
use std::os::unix::fs::FileExt;

use cordwood::types::Io;
use cordwood_benches as support;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::batches::{Codec, crc32c};
use support::naive::{Header, Reader};
use support::race::group;
use support::walked::{Walked, hopped, scanned};
use support::written::{Shape, Written};

/// The first 17 bytes contain size and magic, 61 bytes the whole header.
fn by_position(reader: &Reader, crc: bool) -> Walked {
    let mut walked = Walked::default();
    let (mut prefix, mut bytes, mut batch) = ([0; 17], [0; 61], Vec::new());
    for segment in &reader.segments {
        let mut position = 0;
        while position < segment.size {
            segment.log.read_exact_at(&mut prefix, position).unwrap();
            assert_eq!(prefix[16], 2);
            segment.log.read_exact_at(&mut bytes, position).unwrap();
            let header = Header::new(&bytes);
            if crc {
                batch.resize(header.size as usize, 0);
                segment.log.read_exact_at(&mut batch, position).unwrap();
                assert_eq!(crc32c(&batch[21..]), header.crc);
            }
            walked.add_header(&header);
            position += header.size;
        }
    }
    walked
}

fn walk(criterion: &mut Criterion) {
    for (size, batch_bytes) in [("1KiB", 1 << 10), ("16KiB", 16 << 10)] {
        let written = Written::new(Shape {
            batch_bytes,
            codec: Codec::None,
            log_bytes: 256 << 20,
            segment_bytes: 128 << 20,
        });
        let mut right = Walked::default();
        for batch in &written.batches {
            right.add(batch.size.into(), batch.base_offset, batch.last_offset, batch.max_timestamp);
        }
        let [mapped, positional] = [Io::Mmap, Io::Pread].map(|io| written.open(io));
        let reader = Reader::open(&written.dir);
        let maps = written.maps();

        let arms: [(&str, &dyn Fn() -> Walked); 6] = [
            ("cordwood/mmap", &|| scanned(&mapped, true)),
            ("cordwood/pread", &|| scanned(&positional, true)),
            ("naive/pread", &|| by_position(&reader, false)),
            ("naive/pread_crc", &|| by_position(&reader, true)),
            ("naive/hop", &|| hopped(&maps, false)),
            ("naive/hop_crc", &|| hopped(&maps, true)),
        ];
        let mut group = group(criterion, &format!("walk/{size}"));
        group.throughput(Throughput::ElementsAndBytes { elements: right.batches, bytes: right.bytes });
        for (arm, run) in arms {
            assert_eq!(run(), right, "{arm}");
            group.bench_function(arm, |bencher| bencher.iter(|| black_box(run())));
        }
        group.finish();
    }
}

criterion_group!(benches, walk);
criterion_main!(benches);
