//! A segment whose file has the name of another one. Its records are whole: it needs its name, no repair.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::{LiveOffsets, Log};
use crate::error::{Error, Malformed, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::segment::Segment;

/// A segment with a wrong name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misnamed {
    /// The base offset of the segment in which its name looks like damage: it, or the one before.
    pub(crate) damaged: i64,
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) malformed: Malformed,
    /// The offsets that are there, although the names hide them.
    pub(crate) hidden: Range<i64>,
    /// What to do.
    pub(crate) advice: String,
    first_offset: i64,
}

impl Misnamed {
    fn hiding(self, hidden: Range<i64>) -> Self {
        Self { hidden, ..self }
    }

    /// The error of a command that cannot work with it.
    pub(crate) fn error(self) -> Error {
        let Self { malformed: Malformed { expected, found, .. }, advice, path, first_offset, .. } = self;
        let expected = format!("{expected} (its name is wrong: {advice})");
        Malformed::new(expected, found).at(path, 0, Some(first_offset))
    }
}

impl Log {
    /// The segments whose names are the reason for damage in those with these base offsets.
    ///
    /// # Errors
    /// Those of reading the `.log`s.
    pub(crate) fn misnamed(&self, damaged: &[i64]) -> Result<Vec<Misnamed>> {
        let mut found: Vec<Misnamed> = Vec::new();
        let is_damaged = |segment: &&Arc<Segment>| damaged.contains(&segment.base_offset());
        for segment in self.segments().iter().filter(is_damaged) {
            if let Some(offsets) = segment.misnamed()? {
                let base_offset = segment.base_offset();
                let expected = format!("batches from offset {base_offset} on, by the name of the file");
                let advice = self.advice(segment, &offsets)?;
                let first = Some(offsets.start);
                found.push(Misnamed::new(segment, base_offset, expected, first, advice)?.hiding(offsets));
            }
        }
        let is_known = |found: &[Misnamed], segment: &Segment| {
            found.iter().any(|misnamed| misnamed.path == segment.path())
        };
        for segment in self.segments().iter().filter(is_damaged) {
            let next = self.segments().higher(segment.base_offset());
            if let Some(next) = next.filter(|next| !is_known(&found, segment) && !is_known(&found, next))
                && let Some(end) = segment.end_without_next()?.filter(|end| next.base_offset() < *end)
            {
                found.extend(self.misnamed_after(segment, end, next)?);
            }
        }
        Ok(found)
    }

    /// The segment after one whose batches, all of them valid, reach beyond its name up to `end`.
    fn misnamed_after(&self, segment: &Segment, end: i64, next: &Segment) -> Result<Option<Misnamed>> {
        let name = segment_file(segment.base_offset(), FileKind::Log);
        let expected = format!("a segment from offset {end} on, where {name} ends");
        let first = next.first_offset()?;
        let advice = match first {
            Some(first) if first >= end => self.advice(next, &(first..first + 1))?,
            Some(_) if self.has_all(next.base_offset()..end, next)? => return Ok(None),
            Some(_) => overlaps(&name),
            None if next.file_size()? == 0 => {
                "move the file out of the partition: it has no record".to_owned()
            }
            None => return Ok(None),
        };
        let hidden = next.base_offset()..end;
        Ok(Some(Misnamed::new(next, segment.base_offset(), expected, first, advice)?.hiding(hidden)))
    }

    /// What to do with a segment that has these offsets.
    fn advice(&self, misnamed: &Segment, offsets: &Range<i64>) -> Result<String> {
        let name = segment_file(offsets.start, FileKind::Log);
        let mut has_name = false;
        for other in self.segments().iter().filter(|other| other.base_offset() != misnamed.base_offset()) {
            let Some(first) = other.first_offset()? else { continue };
            has_name |= other.base_offset() == offsets.start;
            if offsets.contains(&first) || first < offsets.start && other.end_offset()? > offsets.start {
                return Ok(overlaps(&segment_file(other.base_offset(), FileKind::Log)));
            }
        }
        let indexes = "remove its indexes, which cordwood reindex writes again";
        Ok(if has_name {
            format!(
                "{name} has the batches of another segment: give that one its own name first, then rename this .log to {name} and {indexes}"
            )
        } else {
            format!("rename the .log to {name} and {indexes}")
        })
    }

    /// Whether the batches from a segment on have all of these offsets.
    fn has_all(&self, offsets: Range<i64>, from: &Segment) -> Result<bool> {
        let mut next = offsets.start;
        for segment in self.segments().between(from.base_offset(), offsets.end) {
            for run in LiveOffsets::of(segment, true)?.runs {
                if run.offsets.contains(&next) {
                    next = run.offsets.end;
                }
            }
        }
        Ok(next >= offsets.end)
    }
}

/// What to do with a segment that has offsets of another one, and may have others.
fn overlaps(name: &str) -> String {
    format!(
        "compare its records with those of {name}, which has offsets of it (cordwood dump), copy those that only this file has \
         (cordwood cat), and move it out of the partition"
    )
}

impl Misnamed {
    fn new(
        segment: &Segment,
        damaged: i64,
        expected: String,
        first_offset: Option<i64>,
        advice: String,
    ) -> Result<Self> {
        let found = match first_offset {
            Some(first) => format!("offsets from {first} on, in batches whose checksums are right"),
            None => "no batch".to_owned(),
        };
        Ok(Self {
            damaged,
            path: segment.path(),
            size: segment.file_size()?,
            malformed: Malformed::new(expected, found),
            hidden: 0..0,
            advice,
            first_offset: first_offset.unwrap_or(segment.base_offset()),
        })
    }
}
