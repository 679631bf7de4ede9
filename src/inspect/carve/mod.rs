//! Finds batches in a raw image, and writes them as partitions: from a disk image, a truncated or overwritten
//! file, or files whose names are lost.
//!
//! ```text
//!   finder ──▶ runs ──▶ write
//!   every valid   what belongs    a directory
//!   batch         together        for each run
//! ```

mod candidate;
mod carve_report;
mod finder;
mod runs;
mod write;

use std::path::Path;

pub use carve_report::{CarveReport, CarvedPiece, CarvedRun, Confidence};

use self::runs::{Collector, Run};
use crate::error::{Error, NotFound, Result};
use crate::fs::{Directory, FileBytes, FileType, SystemFile};
use crate::inspect::copy::refuse_inside;
use crate::types::Interrupt;

/// The number of conflicts of a run that are listed.
const MAX_CONFLICTS: usize = 16;

/// How an image is searched.
#[derive(Debug, Clone)]
pub struct CarveOptions {
    /// Runs with fewer records are left out; 0 counts as 1.
    pub min_records: u64,
    /// Called during long work.
    pub interrupt: Interrupt,
}

impl Default for CarveOptions {
    fn default() -> Self {
        Self { min_records: 1, interrupt: Interrupt::NEVER }
    }
}

/// Finds every whole batch of an image, or of the files of a directory, at any position, and groups them into
/// runs, each a part of one partition. With a `destination`, a new or empty directory, each run is written
/// there as a partition directory `carved-<number>`, with its offsets, indexes (also of aborted transactions)
/// and leader epochs.
///
/// A batch is found if its header is possible and its checksum matches. A batch inside a record of another
/// one is not returned, unless that one is not whole: an image does not show where it ends. A batch that was
/// found before with the same bytes is not returned again.
///
/// *Cost*: reads the image once, and the batches once more to write them. Memory for each run, and for the
/// identities of up to four million batches.
///
/// # Errors
/// [`Error::LogNotFound`] if there is no such file; [`Error::Config`] if the destination is not empty, or is
/// inside `image`; [`Error::LogChanged`] if the image changes meanwhile; [`Error::Io`].
pub fn carve(
    image: impl AsRef<Path>,
    destination: Option<&Path>,
    options: &CarveOptions,
) -> Result<CarveReport> {
    let image = image.as_ref();
    let files = open(image)?;
    if let (Ok(folder), Some(destination)) = (Directory::open(image, ""), destination) {
        refuse_inside(&folder, destination)?;
    }
    // before the search, which may take long
    let destination = destination.map(write::destination).transpose()?;
    let mut collector = Collector::default();
    let (mut given_up, mut bytes_searched) = (0, 0);
    for (number, file) in files.iter().enumerate() {
        let bytes = FileBytes::new(SystemFile::open(file.path())?, None, false)?;
        bytes_searched += bytes.size();
        let mut buffer = Vec::new();
        given_up += finder::find(&bytes, options.interrupt, |found| {
            let mut found = *found;
            if found.header.is_wrapper() {
                // the base offset of a compressed entry of the old formats is inside
                let size = usize::try_from(found.header.size).unwrap_or(0);
                let entry = bytes.read(found.position, size, &mut buffer)?.to_vec();
                if found.header.resolve_base_offset(&entry, &mut Vec::new()).is_err() {
                    return Ok(());
                }
            }
            collector.add(number, &found);
            Ok(())
        })?;
    }
    let repeated_batches = collector.repeated;
    let (runs, small): (Vec<_>, Vec<_>) =
        collector.finish().into_iter().partition(|run| run.facts.records >= options.min_records.max(1));
    let mut report = CarveReport {
        path: std::path::absolute(image).unwrap_or_else(|_| image.to_owned()),
        runs: runs.iter().map(|run| carved(run, &files)).collect(),
        small_runs: small.len() as u64,
        repeated_batches,
        given_up,
        bytes_searched,
        destination: destination.as_ref().map(|destination| destination.path().to_owned()),
    };
    add_conflicts(&mut report.runs);
    if let Some(destination) = &destination {
        for (number, (run, carved)) in runs.iter().zip(&mut report.runs).enumerate() {
            let name = format!("carved-{number}");
            write::write(destination, &name, run, &files, options.interrupt)?;
            carved.directory = Some(destination.path_of(&name));
        }
        destination.sync()?;
    }
    Ok(report)
}

/// Opens the image, or the files of the directory, by name.
fn open(path: &Path) -> Result<Vec<SystemFile>> {
    let directory = match Directory::open(path, "give the path of an image, or of a directory with images") {
        Ok(directory) => directory,
        Err(Error::LogNotFound { found: NotFound::NoDirectoryButAFile, .. }) => {
            return Ok(vec![SystemFile::open(path)?]);
        }
        Err(error) => return Err(error),
    };
    let mut entries = directory.entries()?;
    entries.retain(|(_, file_type)| *file_type == FileType::RegularFile);
    entries.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    entries.iter().map(|(name, _)| directory.open_file(name)).collect()
}

fn carved(run: &Run, files: &[SystemFile]) -> CarvedRun {
    let pieces = run.pieces.iter().map(|piece| CarvedPiece {
        file: files.get(piece.image).map(|file| file.path().to_owned()).unwrap_or_default(),
        start_position: piece.start,
        end_position: piece.end,
        first_offset: piece.first_offset,
        last_offset: piece.last_offset,
    });
    let facts = &run.facts;
    CarvedRun {
        pieces: pieces.collect(),
        first_offset: run.first_offset(),
        last_offset: run.last_offset(),
        batches: facts.batches,
        records: facts.records,
        bytes: facts.bytes,
        largest_batch: facts.largest_batch,
        timestamps: facts.timestamps,
        leader_epochs: (facts.first_epoch, facts.last_epoch),
        magics: facts.magics.iter().copied().collect(),
        codecs: facts.codecs.iter().map(ToString::to_string).collect(),
        producer_ids: facts.producer_ids.iter().copied().collect(),
        gaps: facts.gaps,
        conflicts: Vec::new(),
        directory: None,
    }
}

/// Notes which runs have offsets in common. They are sorted by their first offset.
fn add_conflicts(runs: &mut [CarvedRun]) {
    let mut conflicts = vec![Vec::new(); runs.len()];
    for (number, run) in runs.iter().enumerate() {
        let later = runs.iter().enumerate().skip(number + 1).take(MAX_CONFLICTS);
        for (other, _) in later.take_while(|(_, other)| other.first_offset <= run.last_offset) {
            for (one, another) in [(number, other), (other, number)] {
                if let Some(list) =
                    conflicts.get_mut(one).filter(|list: &&mut Vec<usize>| list.len() < MAX_CONFLICTS)
                {
                    list.push(another);
                }
            }
        }
    }
    for (run, conflicts) in runs.iter_mut().zip(conflicts) {
        run.conflicts = conflicts;
    }
}
