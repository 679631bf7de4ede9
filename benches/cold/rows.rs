//! Measured look-ups, their table, and the record.

use std::fmt::Write;
use std::fs;
use std::time::Instant;

use super::page_cache::DiskReads;
use super::support::arguments::Arguments;
use super::turns::Spread;

/// What one call has read, and its time.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    reads: DiskReads,
    micros: f64,
}

impl Call {
    pub fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let (reads, start) = (DiskReads::so_far(), Instant::now());
        let done = work();
        let micros = start.elapsed().as_secs_f64() * 1e6;
        (Self { reads: DiskReads::so_far() - reads, micros }, done)
    }
}

/// The calls of a row.
#[derive(Debug, Default)]
pub struct Calls {
    /// Opening, if each look-up has its own.
    pub opening: Vec<Call>,
    pub look_up: Vec<Call>,
    /// The number of pages of an index that each look-up reads, in memory or not.
    pub pages: Vec<usize>,
}

/// Mean and maximum.
fn mean_and_max(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (count, sum, max) = numbers
        .fold((0.0, 0.0, 0.0_f64), |(count, sum, max), number| (count + 1.0, sum + number, max.max(number)));
    (sum / f64::max(count, 1.0), max)
}

/// All rows.
pub struct Rows {
    arguments: Arguments,
    csv: String,
}

impl Rows {
    pub fn new(arguments: Arguments) -> Self {
        println!(
            "{:<52} {:^16} | {:^15} {:^15} {:^19} {:>22}",
            "", "opening: mean", "pages", "faults", "KiB read", "µs"
        );
        println!(
            "{:<52} {:>7} {:>8} | {:>9} {:>5} {:>9} {:>5} {:>10} {:>8} {:>22}",
            "row", "faults", "KiB", "mean", "max", "mean", "max", "mean", "max", "median (min–max)"
        );
        let csv =
            "row,look_ups,opening_faults,opening_kib,pages_mean,pages_max,faults_mean,faults_max,kib_mean,\
                   kib_max,median_us,min_us,max_us\n"
                .to_owned();
        Self { arguments, csv }
    }

    pub fn wants(&self, row: &str) -> bool {
        self.arguments.wants(row)
    }

    /// The number of look-ups of a row.
    pub fn look_ups(&self) -> usize {
        self.arguments.repeat
    }

    /// Prints a row. `expected`: the largest mean of page faults that is expected.
    pub fn add(&mut self, row: &str, calls: &Calls, expected: Option<f64>) {
        let (opening_faults, _) = mean_and_max(calls.opening.iter().map(|call| call.reads.faults as f64));
        let (opening_kib, _) = mean_and_max(calls.opening.iter().map(|call| call.reads.kib as f64));
        let (pages, max_pages) = mean_and_max(calls.pages.iter().map(|pages| *pages as f64));
        let (faults, max_faults) = mean_and_max(calls.look_up.iter().map(|call| call.reads.faults as f64));
        let (kib, max_kib) = mean_and_max(calls.look_up.iter().map(|call| call.reads.kib as f64));
        let Spread { median, min, max } = Spread::of(calls.look_up.iter().map(|call| call.micros));
        let time = format!("{median:.0} ({min:.0}–{max:.0})");
        let verdict = match expected {
            Some(max) if faults > max => format!("at most {max}: MISSED"),
            Some(max) => format!("at most {max}: kept"),
            None => String::new(),
        };
        println!(
            "{row:<52} {opening_faults:>7.2} {opening_kib:>8.1} | {pages:>9.2} {max_pages:>5} {faults:>9.2} \
             {max_faults:>5} {kib:>10.1} {max_kib:>8} {time:>22} {verdict}"
        );
        writeln!(
            self.csv,
            "{row},{},{opening_faults:.3},{opening_kib:.1},{pages:.3},{max_pages},{faults:.3},{max_faults},\
             {kib:.1},{max_kib},{median:.1},{min:.1},{max:.1}",
            calls.look_up.len()
        )
        .unwrap();
    }

    /// Writes the record.
    pub fn finish(self) {
        let Some(path) = self.arguments.record else { return };
        fs::write(&path, self.csv).unwrap();
        println!("{}", path.display());
    }
}
