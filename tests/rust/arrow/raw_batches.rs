//! Cells with many batches.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::BinaryArray;
use arrow_array::cast::AsArray;
use cordwood::Error;
use cordwood::arrow::decode_cells;
use cordwood::types::Interrupt;

use crate::support::batches::{BatchV2, Rec};

const LIMIT: usize = 128 << 20;

/// A cell of so many batches of one record.
fn cell(batches: i64) -> BinaryArray {
    let bytes: Vec<u8> = (0..batches)
        .flat_map(|offset| BatchV2::new(offset).records([Rec::at(0).value("v")]).build().bytes)
        .collect();
    BinaryArray::from(vec![bytes.as_slice()])
}

#[test]
fn every_record_of_a_cell_of_many_batches_is_returned() {
    let decoded = decode_cells(&cell(20_000), usize::MAX, LIMIT, Interrupt::NEVER).unwrap();
    let records = decoded.column_by_name("records").unwrap().as_list::<i32>();
    assert_eq!(records.value(0).len(), 20_000);
}

#[test]
fn the_batches_of_a_cell_together_have_the_limit_of_one() {
    // a record for each 64 bytes
    for (batches, is_decoded) in [(100, true), (101, false)] {
        let decoded = decode_cells(&cell(batches), usize::MAX, 64 * 100, Interrupt::NEVER).unwrap();
        let kind = decoded.column_by_name("kind").unwrap().as_string::<i32>().clone();
        assert_eq!(kind.iter().next().unwrap(), (!is_decoded).then_some("too_large"), "{batches}");
    }
}

#[test]
fn a_signal_ends_the_decoding_within_a_cell() {
    static CHECKS: AtomicUsize = AtomicUsize::new(0);
    let interrupt = || match CHECKS.fetch_add(1, Ordering::Relaxed) {
        50 => Err("a signal".into()),
        _ => Ok(()),
    };
    let ended = decode_cells(&cell(100), usize::MAX, LIMIT, Interrupt(interrupt));
    assert!(matches!(ended, Err(Error::Interrupted(_))));
}
