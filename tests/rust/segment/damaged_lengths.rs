//! A length with one bit flipped that leads exactly to the end of the data: the batches behind it are still there.

use std::collections::BTreeMap;

use cordwood::Error;
use cordwood::log::{OnDamage, Ranges, ScanOptions};

use crate::support::batches::{BatchV2, Built, MessageSet, Rec};
use crate::support::naive;
use crate::support::partition::{file_name, offset_entry};
use crate::support::reading::{all, both, folder, scan, write};

/// One record, so many bytes in all.
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

/// Which bit of the length adds exactly `behind` bytes.
fn flipped(damaged: &Built, behind: usize) -> Built {
    let length = i32::from_be_bytes(damaged.bytes[8..12].try_into().unwrap());
    assert!(behind.is_power_of_two() && length & behind as i32 == 0);
    let mut flipped = damaged.clone();
    flipped.bytes[8..12].copy_from_slice(&(length | behind as i32).to_be_bytes());
    flipped
}

/// The sizes of the batches behind the damaged one, which has 100 bytes (a length of 88).
const BEHIND: [&[usize]; 6] =
    [&[128], &[128, 128], &[100, 156], &[128; 8], &[128, 384], &[200, 200, 112, 128, 128, 256]];

/// The log with the flip, where the damaged batch lies, and what was there before the flip.
fn with_flip(magic: u8, behind: &[usize]) -> (Vec<u8>, usize, Vec<Built>) {
    let mut built: Vec<Built> = (0..3).map(|offset| sized(magic, offset, 90)).collect();
    let place = built.iter().map(|batch| batch.bytes.len()).sum();
    built.push(sized(magic, 3, 100));
    built.extend(behind.iter().enumerate().map(|(n, size)| sized(magic, 4 + n as i64, *size)));
    let mut bytes: Vec<u8> = built.iter().flat_map(|batch| batch.bytes.clone()).collect();
    let damaged = flipped(&built[3], behind.iter().sum());
    bytes[place..place + damaged.bytes.len()].copy_from_slice(&damaged.bytes);
    (bytes, place, built)
}

#[test]
fn a_length_that_reaches_the_end_of_the_data_hides_no_batch_behind_it() {
    for magic in [2, 1] {
        for behind in BEHIND {
            for has_index in [false, true] {
                for is_sealed in [false, true] {
                    let (bytes, place, built) = with_flip(magic, behind);
                    let end = 4 + behind.len() as i64;
                    let mut files = BTreeMap::from([(file_name(0, "log"), bytes)]);
                    if has_index {
                        let entry = offset_entry(0, 4, (place + 100) as i32);
                        files.insert(file_name(0, "index"), entry.to_vec());
                    }
                    let mut expected: Vec<i64> = (0..end).filter(|offset| *offset != 3).collect();
                    if is_sealed {
                        files.insert(file_name(end, "log"), sized(magic, end, 90).bytes);
                        expected.push(end);
                    }
                    let parent = folder();
                    let dir = write(parent.path(), "t-0", &files);
                    let context = format!("magic {magic}, {behind:?}, index {has_index}, sealed {is_sealed}");
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
                                assert_eq!(error.position(), Some(place as u64), "{context}");
                            }
                            other => panic!("{context}: {other:?}"),
                        }
                        for on_damage in [OnDamage::Skip, OnDamage::Report] {
                            let read = all(&log, on_damage).whole();
                            assert_eq!(read.offsets(), expected, "{context}: {:?}", read.gaps);
                            let [gap] = &read.gaps[..] else { panic!("{context}: {:?}", read.gaps) };
                            assert_eq!(
                                (gap.start_position, gap.end_position, gap.start_offset, gap.end_offset),
                                (place as u64, place as u64 + 100, 3, Some(4)),
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
fn a_length_that_reaches_the_end_of_the_data_behind_which_zeros_lie_hides_no_batch() {
    // the file goes on with preallocated zeros; the flip leads to where the data end
    for behind in BEHIND {
        let (mut bytes, place, _) = with_flip(2, behind);
        bytes.resize(bytes.len() + 4096, 0);
        let parent = folder();
        let dir = write(parent.path(), "t-0", &BTreeMap::from([(file_name(0, "log"), bytes)]));
        let end = 4 + behind.len() as i64;
        for log in both(&dir) {
            assert_eq!(log.log_end_offset().unwrap(), end, "{behind:?}");
            let raised = all(&log, OnDamage::Raise);
            assert_eq!(raised.error.unwrap().position(), Some(place as u64));
            let read = all(&log, OnDamage::Skip).whole();
            let expected: Vec<i64> = (0..end).filter(|offset| *offset != 3).collect();
            assert_eq!(read.offsets(), expected, "{behind:?}: {:?}", read.gaps);
        }
    }
}
