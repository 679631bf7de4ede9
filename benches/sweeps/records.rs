//! Batches of 1 to 10,000 records: records into Arrow columns, and into rows of owned values.

use cordwood::arrow::Column;
use cordwood::types::Io;

use super::support::columns::{columns, rows, sums_of_columns, sums_of_rows, sums_of_two_columns};
use super::support::written::Written;
use super::sweep::{Arm, Sweeps};

const COUNTS: [usize; 9] = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];
const RECORDS: usize = 120_000;
const SWEEP: &str = "records/columns";

pub fn run(sweeps: &mut Sweeps) {
    if sweeps.wants(&[SWEEP]) {
        for count in COUNTS {
            columns_of(sweeps, SWEEP, count as u64, &Written::of_records(count, RECORDS / count));
        }
    }
}

/// All records of a log, mapped.
pub fn columns_of(sweeps: &mut Sweeps, sweep: &'static str, size: u64, written: &Written) {
    let (log, maps, right) = (written.open(Io::Mmap), written.maps(), &written.sums);
    assert_eq!(sums_of_columns(&log), *right);
    assert_eq!(sums_of_two_columns(&log), (right.records, right.offsets, right.timestamps));
    assert_eq!(sums_of_rows(&maps), *right);
    let two = [Column::Offset, Column::Timestamp];
    let arms = [
        Arm::new("default columns", right.records, || columns(&log, &Column::DEFAULT) as i64),
        Arm::new("offset and timestamp", right.records, || columns(&log, &two) as i64),
        Arm::new("rows of owned values", right.records, || rows(&maps) as i64),
    ];
    sweeps.measure(sweep, size, &arms);
}
