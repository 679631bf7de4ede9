//! The command line's arguments.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const OPTIONS: &str = "--only NAME, --quick, --rounds N, --log-mib N, --scan-mib N, --files N, --data DIR, --record FILE, \
                       --strict";

/// What is measured, and how long.
#[derive(Debug)]
pub struct Arguments {
    /// Parts of names; empty is all.
    only: Vec<String>,
    /// Timed turns of each side.
    pub rounds: usize,
    /// The minimum time of a turn.
    pub turn: Duration,
    /// Look-ups in both index classes of the JVM before anything is timed.
    pub warm_up: Duration,
    /// CPU time of the untimed turns of each row.
    pub row_warm_up: Duration,
    /// Size of the log of look-ups and recovery, before compression.
    pub log_mib: u64,
    /// Size of the logs that are scanned, before compression.
    pub scan_mib: u64,
    /// Index files of the rows of many files.
    pub files: usize,
    /// Targets in one index file. Repeated passes must not find everything in a core's own cache.
    pub index_targets: usize,
    /// Targets in many index files.
    pub many_targets: usize,
    /// Targets in a log.
    pub log_targets: usize,
    /// The directory of the written files.
    pub data: PathBuf,
    /// The path of the CSV.
    pub record: PathBuf,
    /// Whether a missed floor is exit code 1.
    pub is_strict: bool,
}

impl Arguments {
    /// # Panics
    /// On an unknown option.
    pub fn of_command_line() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let mut arguments =
            if words.iter().any(|word| word == "--quick") { Self::quick() } else { Self::full() };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            match word.as_str() {
                // cargo adds the first
                "--bench" | "--quick" => {}
                "--only" => arguments.only.push(value()),
                "--rounds" => arguments.rounds = value().parse().unwrap(),
                "--log-mib" => arguments.log_mib = value().parse().unwrap(),
                "--scan-mib" => arguments.scan_mib = value().parse().unwrap(),
                "--files" => arguments.files = value().parse().unwrap(),
                "--data" => arguments.data = value().into(),
                "--record" => arguments.record = value().into(),
                "--strict" => arguments.is_strict = true,
                _ => panic!("{word} is unknown; the options are {OPTIONS}"),
            }
        }
        arguments
    }

    fn full() -> Self {
        let date = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
        let name = format!("record/{}-kafka.csv", String::from_utf8(date).unwrap().trim());
        Self {
            only: Vec::new(),
            rounds: 7,
            turn: Duration::from_millis(100),
            warm_up: Duration::from_secs(6),
            row_warm_up: Duration::from_millis(1500),
            log_mib: 1023,
            scan_mib: 256,
            files: 200,
            index_targets: 1 << 18,
            many_targets: 1 << 20,
            log_targets: 1 << 16,
            // `target/tmp` is on the repository's disk; a temporary directory may be in memory
            data: Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-kafka"),
            record: Path::new(env!("CARGO_MANIFEST_DIR")).join(name),
            is_strict: false,
        }
    }

    /// Less of everything, to see that it works. It replaces no record of a full run.
    fn quick() -> Self {
        let full = Self::full();
        Self {
            rounds: 3,
            turn: Duration::from_millis(30),
            warm_up: Duration::from_secs(1),
            row_warm_up: Duration::from_millis(500),
            log_mib: 128,
            scan_mib: 64,
            files: 20,
            index_targets: 1 << 16,
            many_targets: 1 << 16,
            log_targets: 1 << 13,
            record: full.data.join("quick.csv"),
            ..full
        }
    }

    /// Whether the row is measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}
