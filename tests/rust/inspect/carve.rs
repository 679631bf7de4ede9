//! Carving: every whole batch of an image is found, and nothing is invented.

use std::path::Path;

use cordwood::inspect::carve::{CarveOptions, CarveReport, Confidence, carve};
use cordwood::log::{Log, LogOptions, OnDamage};

use crate::support::batches::{BatchV2, Rec};
use crate::support::{golden, reading};

/// The `.log` files of an intact case, in order.
fn logs(case: &str) -> Vec<Vec<u8>> {
    let partition = golden::intact().into_iter().find(|partition| partition.case == case).unwrap();
    let files = reading::files(&partition.dir).into_iter();
    files
        .filter(|(name, _)| Path::new(name).extension().is_some_and(|suffix| suffix == "log"))
        .map(|(_, bytes)| bytes)
        .collect()
}

/// The base offset and the last offset of each batch, as a naive walk through whole logs finds them.
fn batches_of(dir: &Path) -> Vec<(i64, i64)> {
    let log = Log::open(dir, LogOptions::default()).unwrap();
    let read = reading::all(&log, OnDamage::Raise);
    assert!(read.error.is_none(), "{}: {:?}", dir.display(), read.error);
    assert!(log.warnings().is_empty(), "{:?}", log.warnings());
    read.batches.iter().map(|batch| (batch.base_offset, batch.last_offset)).collect()
}

fn carved(image: &[u8]) -> (CarveReport, Vec<Vec<(i64, i64)>>) {
    let folder = reading::folder();
    let path = folder.path().join("image");
    std::fs::write(&path, image).unwrap();
    let destination = folder.path().join("carved");
    let report = carve(&path, Some(&destination), &CarveOptions::default()).unwrap();
    let runs: Vec<_> = report.runs.iter().map(|run| batches_of(run.directory.as_ref().unwrap())).collect();
    for (run, batches) in report.runs.iter().zip(&runs) {
        assert_eq!(run.batches, batches.len() as u64);
        assert_eq!((run.first_offset, run.last_offset), (batches[0].0, batches.last().unwrap().1));
    }
    assert_eq!((report.given_up, report.small_runs), (0, 0));
    (report, runs)
}

fn all_of(case: &str) -> Vec<(i64, i64)> {
    let partition = golden::intact().into_iter().find(|partition| partition.case == case).unwrap();
    batches_of(&partition.dir)
}

/// Bytes that look random, the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

const CASES: [&str; 9] = [
    "01-small",
    "05-zstd",
    "08-no-timestamps",
    "11-transactions",
    "17-v0-none",
    "17-v0-gzip",
    "17-v1-gzip",
    "17-v1-lz4",
    "17-raised-and-lowered",
];

#[test]
fn segments_in_garbage_are_joined_to_the_log_that_they_were() {
    for case in CASES {
        let mut image = noise(7, 3001);
        for (number, log) in logs(case).into_iter().enumerate() {
            image.extend(log);
            image.extend(noise(number as u64 + 20, 1777));
        }
        let (report, runs) = carved(&image);
        assert_eq!(runs, [all_of(case)], "{case}");
        let confidence = report.runs[0].confidence();
        assert!(matches!(confidence, Confidence::Joined | Confidence::High), "{case}: {confidence}");
    }
}

#[test]
fn segments_in_any_order_are_one_log() {
    let mut logs = logs("01-small");
    logs.reverse();
    let (report, runs) = carved(&logs.concat());
    assert_eq!(runs, [all_of("01-small")]);
    assert_eq!(report.runs[0].pieces.len(), 4);
}

#[test]
fn a_cut_and_an_overwritten_image_give_the_batches_that_are_whole() {
    let image = logs("01-small").concat();
    let all = all_of("01-small");
    // by a naive walk: position and size of each batch
    let mut places = Vec::new();
    let mut at = 0;
    while at < image.len() {
        let size = 12 + u32::from_be_bytes(image[at + 8..at + 12].try_into().unwrap()) as usize;
        places.push(at..at + size);
        at += size;
    }
    for (start, end) in [(0, 10_000), (5_000, 5_001), (20_000, 24_096), (40_000, 45_952)] {
        let mut damaged = image.clone();
        damaged[start..end].copy_from_slice(&noise(start as u64, end - start));
        let (_, runs) = carved(&damaged);
        let whole: Vec<_> = all
            .iter()
            .zip(&places)
            .filter(|(_, place)| place.end <= start || place.start >= end)
            .map(|(batch, _)| *batch)
            .collect();
        assert_eq!(runs.concat(), whole, "overwritten from {start} to {end}");
        let cut = &image[start..end];
        let inside: Vec<_> = all
            .iter()
            .zip(&places)
            .filter(|(_, place)| place.start >= start && place.end <= end)
            .map(|(batch, _)| *batch)
            .collect();
        assert_eq!(carved(cut).1.concat(), inside, "cut from {start} to {end}");
    }
}

#[test]
fn shuffled_blocks_give_the_batches_inside_a_block() {
    let image = logs("01-small").concat();
    let blocks: Vec<_> = image.chunks(4096).collect();
    // a fixed permutation
    let shuffled: Vec<u8> =
        (0..blocks.len()).flat_map(|number| blocks[number * 7 % blocks.len()].to_vec()).collect();
    let (_, runs) = carved(&shuffled);
    let mut found = runs.concat();
    found.sort_unstable();
    let all = all_of("01-small");
    assert!(found.iter().all(|batch| all.contains(batch)));
    let mut at = 0;
    let mut inside = Vec::new();
    for batch in all {
        let size = 12 + u32::from_be_bytes(image[at + 8..at + 12].try_into().unwrap()) as usize;
        if at / 4096 == (at + size - 1) / 4096 {
            inside.push(batch);
        }
        at += size;
    }
    assert!(inside.iter().all(|batch| found.contains(batch)));
}

#[test]
fn a_second_copy_is_not_returned_again() {
    let image = logs("01-small").concat();
    let (report, runs) = carved(&[&image[..], &noise(3, 100), &image].concat());
    assert_eq!(runs, [all_of("01-small")]);
    assert_eq!(report.repeated_batches, all_of("01-small").len() as u64);
}

#[test]
fn batches_of_other_partitions_with_the_same_offsets_are_kept_apart() {
    let image = [logs("01-small").concat(), noise(9, 50), logs("19-leader-epochs").concat()].concat();
    let (report, runs) = carved(&image);
    let found: Vec<_> = runs.iter().map(Vec::len).collect();
    assert_eq!(found.iter().sum::<usize>(), all_of("01-small").len() + all_of("19-leader-epochs").len());
    assert!(report.runs.iter().all(|run| !run.conflicts.is_empty()), "{:#?}", report.runs);
    for run in &runs {
        let is_of = |case: &str| run.iter().all(|batch| all_of(case).contains(batch));
        assert!(is_of("01-small") || is_of("19-leader-epochs"));
    }
}

#[test]
fn a_batch_in_a_value_is_left_out_and_one_in_a_damaged_batch_is_not() {
    let mut inner = BatchV2::new(70);
    inner.records = vec![Rec::at(5).value(b"inner")];
    let mut outer = BatchV2::new(10);
    outer.records = vec![Rec::at(4).value(inner.build().bytes), Rec::at(5).value(b"outer")];
    let image = outer.build().bytes;
    assert_eq!(carved(&image).1, [[(10, 11)]]);
    let mut damaged = image;
    damaged[18] ^= 1;
    assert_eq!(carved(&damaged).1, [[(70, 70)]]);
}

#[test]
fn the_files_of_a_directory_are_searched_whatever_their_names() {
    let folder = reading::folder();
    let images = folder.path().join("found");
    std::fs::create_dir(&images).unwrap();
    for (number, log) in logs("01-small").into_iter().enumerate() {
        std::fs::write(images.join(format!("#{}", 9 - number)), log).unwrap();
    }
    let report = carve(&images, None, &CarveOptions { min_records: 2, ..CarveOptions::default() }).unwrap();
    assert_eq!((report.runs.len(), report.runs[0].records), (1, 370));
    assert!(report.runs[0].directory.is_none());
}

#[test]
fn noise_and_zeros_have_no_batch() {
    for image in [noise(1, 1 << 18), vec![0; 1 << 18], vec![2; 1 << 16], vec![0xff; 1 << 16], Vec::new()] {
        assert!(carved(&image).0.runs.is_empty());
    }
}

/// Every few bytes look like the header of a batch, whose length reaches far.
#[test]
fn an_image_made_of_possible_headers_takes_no_quadratic_time() {
    let mut header = BatchV2::new(3).build().bytes;
    header.truncate(61);
    header[8..12].copy_from_slice(&300_000_u32.to_be_bytes());
    let mut image = header.repeat((1 << 20) / 61);
    // two bytes that repeat: a possible header at every second position
    image.extend([2, 0].repeat(1 << 18));
    let folder = reading::folder();
    let path = folder.path().join("image");
    std::fs::write(&path, &image).unwrap();
    let cpu_time = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec;
    let started = cpu_time();
    let report = carve(&path, None, &CarveOptions::default()).unwrap();
    assert!(report.runs.is_empty());
    // a limit for builds that are not optimised
    let seconds = cpu_time() - started;
    assert!(seconds < 20, "{seconds} s");
}

#[test]
fn aborted_transactions_are_in_the_transaction_index() {
    let folder = reading::folder();
    let path = folder.path().join("image");
    std::fs::write(&path, logs("11-transactions").concat()).unwrap();
    let report = carve(&path, Some(&folder.path().join("carved")), &CarveOptions::default()).unwrap();
    let of = |dir: &Path| -> Vec<u8> {
        let files = reading::files(dir).into_iter();
        files.filter(|(name, _)| name.ends_with(".txnindex")).flat_map(|(_, bytes)| bytes).collect()
    };
    let source = golden::intact().into_iter().find(|partition| partition.case == "11-transactions").unwrap();
    let carved = of(report.runs[0].directory.as_ref().unwrap());
    assert_eq!((report.runs.len(), carved.is_empty()), (1, false));
    assert_eq!(carved, of(&source.dir));
}

/// Batches of an old producer: each has three records and covers one offset.
fn of_an_old_producer() -> [Vec<u8>; 2] {
    [0, 3].map(|base_offset| {
        let mut batch = BatchV2::new(base_offset).last_offset_delta(0);
        batch.records = (0..3).map(|number| Rec::at(1000 + number).value([b'v'; 40])).collect();
        batch.build().bytes
    })
}

#[test]
fn batches_with_more_records_than_offsets_are_found() {
    let batches = of_an_old_producer();
    let image = [noise(5, 500), batches[0].clone(), noise(6, 100), batches[1].clone()].concat();
    let (report, runs) = carved(&image);
    assert_eq!(runs.concat(), [(0, 0), (3, 3)]);
    assert_eq!(report.runs.iter().map(|run| run.records).sum::<u64>(), 6);
    // with a wrong checksum it is no candidate
    let mut damaged = image;
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    assert_eq!(carved(&damaged).1.concat(), [(0, 0)]);
}
