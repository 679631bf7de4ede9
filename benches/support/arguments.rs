//! The command line's arguments of a bench that is not one of criterion's.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What is measured, and how often.
#[derive(Debug)]
pub struct Arguments {
    /// Parts of names; empty is all.
    only: Vec<String>,
    /// How often each is measured.
    pub repeat: usize,
    /// The path of the CSV; `None`: only a part is measured, and not recorded.
    pub record: Option<PathBuf>,
}

impl Arguments {
    /// `bench`: a part of the record's name. `repeat`: the default.
    ///
    /// # Panics
    /// On an unknown option.
    pub fn of_command_line(bench: &str, repeat: usize) -> Self {
        let mut arguments = Self { only: Vec::new(), repeat, record: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            match word.as_str() {
                // added by cargo
                "--bench" => {}
                "--only" => arguments.only.push(value()),
                "--repeat" => arguments.repeat = value().parse().unwrap(),
                "--record" => arguments.record = Some(value().into()),
                _ => panic!("{word} is unknown; the options are --only NAME, --repeat N, --record FILE"),
            }
        }
        if arguments.only.is_empty() && arguments.record.is_none() {
            let date = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
            let name = format!("record/{}-{bench}.csv", String::from_utf8(date).unwrap().trim());
            arguments.record = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
        }
        arguments
    }

    /// Whether a row of this name is measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}
