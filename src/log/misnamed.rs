//! A segment whose file has the name of another one. Its records are whole: it needs its name, no repair.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::{LiveOffsets, Log};
use crate::error::{Error, Malformed, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::segment::{BelowBase, Flip, Segment};

/// A segment with a wrong name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misnamed {
    /// The base offset of the segment in which its name looks like damage: it, or the one before.
    pub(crate) damaged: i64,
    /// The one in its name.
    pub(crate) base_offset: i64,
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
        let damaged: HashSet<_> = damaged.iter().copied().collect();
        let mut names = Names { log: self, extents: None, live: HashMap::new() };
        let (mut found, mut bases) = (Vec::new(), HashSet::new());
        let is_damaged = |segment: &&Arc<Segment>| damaged.contains(&segment.base_offset());
        for segment in self.segments().iter().filter(is_damaged) {
            if let Some(misnamed) = names.of_batches_below(segment)? {
                bases.insert(segment.base_offset());
                found.push(misnamed);
            }
        }
        for segment in self.segments().iter().filter(is_damaged) {
            let is_known = |segment: &Segment| bases.contains(&segment.base_offset());
            let next = self.segments().higher(segment.base_offset());
            if let Some(next) = next.filter(|next| !is_known(segment) && !is_known(next))
                && let Some(end) = segment.end_beyond_next()?
                && let Some(misnamed) = names.after(segment, end, next)?
            {
                bases.insert(next.base_offset());
                found.push(misnamed);
            }
        }
        Ok(found)
    }
}

/// The names of the segments of a log, compared with their batches.
struct Names<'a> {
    log: &'a Log,
    /// Of all segments, once a name is wrong.
    extents: Option<Vec<Extent>>,
    live: HashMap<i64, LiveOffsets>,
}

/// The offsets of a segment, whatever its name is.
struct Extent {
    base_offset: i64,
    /// From the first valid batch on; `None` without one.
    offsets: Option<Range<i64>>,
}

impl Names<'_> {
    /// A segment with batches below its name.
    fn of_batches_below(&mut self, segment: &Segment) -> Result<Option<Misnamed>> {
        let Some(BelowBase { offsets, flip, has_others }) = segment.below_base()? else { return Ok(None) };
        // a single batch with a flipped bit, or one of another segment that was written here
        let is_damage = match flip {
            Flip::Exact => true,
            Flip::AfterGap => self.log.is_compacted()?,
            Flip::None => false,
        };
        if is_damage || has_others && self.has_all(&offsets, segment.base_offset(), None)? {
            return Ok(None);
        }
        let base_offset = segment.base_offset();
        let expected = format!("batches from offset {base_offset} on, by the name of the file");
        let advice = self.advice(segment, &offsets)?;
        let misnamed = Misnamed::new(segment, base_offset, expected, Some(offsets.start), advice)?;
        Ok(Some(misnamed.hiding(offsets)))
    }

    /// The segment after one whose valid batches reach beyond its name up to `end`.
    fn after(&mut self, segment: &Segment, end: i64, next: &Segment) -> Result<Option<Misnamed>> {
        let name = segment_file(segment.base_offset(), FileKind::Log);
        let expected = format!("a segment from offset {end} on, where {name} ends");
        let first = next.first_valid_offset()?;
        let hidden = next.base_offset()..end;
        let advice = match first {
            Some(first) if first >= end => {
                // a damaged batch may precede the first valid one
                let start = if next.first_offset()?.is_some() { first } else { end };
                self.advice(next, &(start..first + 1))?
            }
            Some(_) if self.has_all(&hidden, segment.base_offset(), Some(next.base_offset()))? => {
                return Ok(None);
            }
            Some(_) => overlaps(&name),
            None => "move the file out of the partition: no valid batch was found in it".to_owned(),
        };
        let misnamed = Misnamed::new(next, segment.base_offset(), expected, first, advice)?;
        Ok(Some(misnamed.hiding(hidden)))
    }

    /// What to do with a segment that has these offsets.
    fn advice(&mut self, misnamed: &Segment, offsets: &Range<i64>) -> Result<String> {
        let name = segment_file(offsets.start, FileKind::Log);
        let mut named = None;
        let others = self.extents()?.iter().filter(|other| other.base_offset != misnamed.base_offset());
        for Extent { base_offset, offsets: other } in others {
            if *base_offset == offsets.start {
                named = Some(other.is_some());
            }
            let has_offsets = other.as_ref().is_some_and(|other| {
                offsets.contains(&other.start) || other.start < offsets.start && other.end > offsets.start
            });
            if has_offsets {
                return Ok(overlaps(&segment_file(*base_offset, FileKind::Log)));
            }
        }
        let rename =
            format!("rename the .log to {name} and remove its indexes, which cordwood reindex writes again");
        Ok(match named {
            None => rename,
            Some(true) => format!(
                "{name} has the batches of another segment: give that one its own name first, then {rename}"
            ),
            Some(false) => format!(
                "{name} exists, and no valid batch was found in it: move it out of the partition first, then {rename}"
            ),
        })
    }

    fn extents(&mut self) -> Result<&[Extent]> {
        if self.extents.is_none() {
            let mut extents = Vec::with_capacity(self.log.segments().len());
            for segment in self.log.segments().iter() {
                let end = segment.end_offset()?;
                let offsets = segment.first_valid_offset()?.map(|first| first..end);
                extents.push(Extent { base_offset: segment.base_offset(), offsets });
            }
            self.extents = Some(extents);
        }
        Ok(self.extents.as_deref().unwrap_or_default())
    }

    /// Whether the segments other than `except` have all of these offsets; `from`: only those with this base
    /// offset or a higher one.
    fn has_all(&mut self, offsets: &Range<i64>, except: i64, from: Option<i64>) -> Result<bool> {
        let mut next = offsets.start;
        for segment in self.log.segments().between(from.unwrap_or(offsets.start), offsets.end) {
            let base_offset = segment.base_offset();
            if base_offset == except {
                continue;
            }
            let live = match self.live.entry(base_offset) {
                Entry::Occupied(live) => live.into_mut(),
                Entry::Vacant(live) => live.insert(LiveOffsets::of(segment, true)?),
            };
            for run in &live.runs {
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
            base_offset: segment.base_offset(),
            path: segment.path(),
            size: segment.file_size()?,
            malformed: Malformed::new(expected, found),
            hidden: 0..0,
            advice,
            first_offset: first_offset.unwrap_or(segment.base_offset()),
        })
    }
}
