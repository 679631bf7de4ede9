//! A batch length with one flipped bit that leads exactly to the end of the data: the batches after it are
//! still found.

use std::collections::BTreeMap;

use cordwood::Error;
use cordwood::log::{OnDamage, Ranges, ScanOptions};

use crate::support::batches::{BatchV2, Built, MessageSet, Rec};
use crate::support::naive;
use crate::support::partition::{file_name, offset_entry};
use crate::support::reading::{all, both, folder, scan, write};

/// A batch of one record, `size` bytes in all.
fn sized(magic: u8, offset: i64, size: usize) -> Built {
    (0..size)
        .map(|length| Rec::at(1000 + offset).value(vec![b'x'; length]))
        .map(|record| match magic {
            2 => BatchV2::new(offset).record(record).build(),
            _ => MessageSet::v1(offset).record(record).build().remove(0),
        })
        .find(|built| built.bytes.len() == size)
        .unwrap()
}

/// Flips the bit of the length that adds exactly `after` bytes.
fn flipped(damaged: &Built, after: usize) -> Built {
    let length = i32::from_be_bytes(damaged.bytes[8..12].try_into().unwrap());
    assert!(after.is_power_of_two() && length & after as i32 == 0);
    let mut flipped = damaged.clone();
    flipped.bytes[8..12].copy_from_slice(&(length | after as i32).to_be_bytes());
    flipped
}

/// The sizes of the batches after the damaged one, which has 100 bytes (a length of 88).
const SIZES_AFTER: [&[usize]; 6] =
    [&[128], &[128, 128], &[100, 156], &[128; 8], &[128, 384], &[200, 200, 112, 128, 128, 256]];

/// The bytes of the log with the flip, the position of the damaged batch, and the original batches.
fn with_flip(magic: u8, after: &[usize]) -> (Vec<u8>, usize, Vec<Built>) {
    let mut built: Vec<Built> = (0..3).map(|offset| sized(magic, offset, 90)).collect();
    let position = built.iter().map(|batch| batch.bytes.len()).sum();
    built.push(sized(magic, 3, 100));
    built.extend(after.iter().enumerate().map(|(n, size)| sized(magic, 4 + n as i64, *size)));
    let mut bytes: Vec<u8> = built.iter().flat_map(|batch| batch.bytes.clone()).collect();
    let damaged = flipped(&built[3], after.iter().sum());
    bytes[position..position + damaged.bytes.len()].copy_from_slice(&damaged.bytes);
    (bytes, position, built)
}

#[test]
fn a_length_that_reaches_the_end_of_the_data_hides_no_batch_after_it() {
    for magic in [2, 1] {
        for after in SIZES_AFTER {
            for has_index in [false, true] {
                for is_sealed in [false, true] {
                    let (bytes, position, built) = with_flip(magic, after);
                    let end = 4 + after.len() as i64;
                    let mut files = BTreeMap::from([(file_name(0, "log"), bytes)]);
                    if has_index {
                        let entry = offset_entry(0, 4, (position + 100) as i32);
                        files.insert(file_name(0, "index"), entry.to_vec());
                    }
                    let mut expected: Vec<i64> = (0..end).filter(|offset| *offset != 3).collect();
                    if is_sealed {
                        files.insert(file_name(end, "log"), sized(magic, end, 90).bytes);
                        expected.push(end);
                    }
                    let parent = folder();
                    let dir = write(parent.path(), "t-0", &files);
                    let context = format!("magic {magic}, {after:?}, index {has_index}, sealed {is_sealed}");
                    for log in both(&dir) {
                        assert_eq!(
                            log.log_end_offset().unwrap(),
                            expected[expected.len() - 1] + 1,
                            "{context}"
                        );
                        assert_eq!(log.warnings(), [""; 0], "{context}");
                        let raised = all(&log, OnDamage::Raise);
                        assert_eq!(raised.offsets(), [0, 1, 2], "{context}");
                        match &raised.error {
                            Some(error @ Error::Corrupt { .. }) => {
                                assert_eq!(error.position(), Some(position as u64), "{context}");
                            }
                            other => panic!("{context}: {other:?}"),
                        }
                        for on_damage in [OnDamage::Skip, OnDamage::Report] {
                            let read = all(&log, on_damage).whole();
                            assert_eq!(read.offsets(), expected, "{context}: {:?}", read.gaps);
                            let [gap] = &read.gaps[..] else { panic!("{context}: {:?}", read.gaps) };
                            assert_eq!(
                                (gap.start_position, gap.end_position, gap.start_offset, gap.end_offset),
                                (position as u64, position as u64 + 100, 3, Some(4)),
                                "{context}"
                            );
                        }
                        for start in 4..end {
                            let ranges = Ranges { start_offset: Some(start), ..Ranges::default() };
                            let read = scan(
                                &log,
                                ScanOptions { ranges, on_damage: OnDamage::Skip, ..ScanOptions::default() },
                            );
                            let rest: Vec<i64> =
                                expected.iter().copied().filter(|offset| *offset >= start).collect();
                            assert_eq!(read.whole().offsets(), rest, "{context} from {start}");
                        }
                    }
                    assert_eq!(naive::read_batch(&built[4].bytes).unwrap().base_offset, 4);
                }
            }
        }
    }
}

#[test]
fn a_length_that_reaches_the_end_of_the_data_before_zeros_hides_no_batch() {
    // preallocated zeros follow the data; the flip leads to the end of the data
    for after in SIZES_AFTER {
        let (mut bytes, position, _) = with_flip(2, after);
        bytes.resize(bytes.len() + 4096, 0);
        let parent = folder();
        let dir = write(parent.path(), "t-0", &BTreeMap::from([(file_name(0, "log"), bytes)]));
        let end = 4 + after.len() as i64;
        for log in both(&dir) {
            assert_eq!(log.log_end_offset().unwrap(), end, "{after:?}");
            let raised = all(&log, OnDamage::Raise);
            assert_eq!(raised.error.unwrap().position(), Some(position as u64));
            let read = all(&log, OnDamage::Skip).whole();
            let expected: Vec<i64> = (0..end).filter(|offset| *offset != 3).collect();
            assert_eq!(read.offsets(), expected, "{after:?}: {:?}", read.gaps);
        }
    }
}
