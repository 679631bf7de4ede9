//! The dump, compared with what Kafka's own tool prints.

mod golden;
mod peer;
mod recorded;
mod rows;

use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::inspect::{Dump, DumpOptions, OutputStream};

/// What a dump writes.
#[derive(Debug, Default)]
pub struct Written {
    pub stdout: String,
    pub stderr: String,
    pub error: Option<Error>,
}

/// Reads a dump to its end.
pub fn dump(files: &[PathBuf], options: DumpOptions) -> Written {
    let mut dump = Dump::new(files, options);
    let mut written = Written::default();
    loop {
        match dump.next_block() {
            Ok(Some(block)) => {
                let text = String::from_utf8(block.text).unwrap();
                match block.stream {
                    OutputStream::Stdout => written.stdout.push_str(&text),
                    OutputStream::Stderr => written.stderr.push_str(&text),
                }
            }
            Ok(None) => return written,
            Err(error) => {
                assert!(dump.next_block().unwrap().is_none(), "an error ends the dump");
                written.error = Some(error);
                return written;
            }
        }
    }
}

/// The files of a directory with one of these suffixes, each suffix in name order.
pub fn files_of(dir: &Path, suffixes: &[&str]) -> Vec<PathBuf> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let of = |suffix: &&str| {
        names.iter().filter(|name| name.ends_with(*suffix)).map(|name| dir.join(name)).collect()
    };
    suffixes.iter().flat_map(|suffix| -> Vec<_> { of(suffix) }).collect()
}
