//! Every header of a partition: `Log::scan` with `batches_only`, mapped and by position, compared with a loop that reads
//! 17 and then 61 bytes per batch, like Kafka's, and one that steps through a mapping.
//!
//! The library verifies every batch's checksum and compares the headers of neighbours. So the naive arms also exist with the
//! checksum (`crc`), which reads the whole batch. Only those do the same work.
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
use std::os::unix::fs::FileExt;

use cordwood::fs::{FileBytes, SystemFile};
use cordwood::log::{ScanOptions, ScanStep};
use cordwood::types::Io;
use cordwood::{Log, LogOptions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::batches::{Codec, crc32c};
use support::naive::{Header, Reader};
use support::partition::file_name;
use support::race::group;
use support::written::{Shape, Written};

/// The number of batches, and sums over their headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Walked {
    batches: u64,
    bytes: u64,
    base_offsets: i64,
    last_offset: i64,
    timestamps: i64,
}

impl Walked {
    fn add(&mut self, size: u64, base_offset: i64, last_offset: i64, max_timestamp: i64) {
        self.batches += 1;
        self.bytes += size;
        self.base_offsets = self.base_offsets.wrapping_add(base_offset);
        self.last_offset = last_offset;
        self.timestamps = self.timestamps.wrapping_add(max_timestamp);
    }

    fn add_header(&mut self, header: &Header) {
        self.add(header.size, header.base_offset, header.last_offset, header.max_timestamp);
    }
}

fn ours(log: &Log) -> Walked {
    let mut walked = Walked::default();
    let mut scan = log.scan(ScanOptions { batches_only: true, ..ScanOptions::default() }).unwrap();
    while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
        let header = &batch.header;
        walked.add(header.size.into(), header.base_offset, header.last_offset, header.max_timestamp);
    }
    walked
}

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

fn by_hops(maps: &[FileBytes], crc: bool) -> Walked {
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
        let [mapped, positional] = [Io::Mmap, Io::Pread]
            .map(|io| Log::open(&written.dir, LogOptions { io, ..LogOptions::default() }).unwrap());
        let reader = Reader::open(&written.dir);
        let map = |segment: &support::naive::Segment| {
            let path = written.dir.join(file_name(segment.base_offset, "log"));
            FileBytes::new(SystemFile::open(&path).unwrap(), None, true).unwrap()
        };
        let maps: Vec<_> = reader.segments.iter().map(map).collect();

        let arms: [(&str, &dyn Fn() -> Walked); 6] = [
            ("cordwood/mmap", &|| ours(&mapped)),
            ("cordwood/pread", &|| ours(&positional)),
            ("naive/pread", &|| by_position(&reader, false)),
            ("naive/pread_crc", &|| by_position(&reader, true)),
            ("naive/hop", &|| by_hops(&maps, false)),
            ("naive/hop_crc", &|| by_hops(&maps, true)),
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
