//! The batches of a segment, as the parts of a pass read them: without damage, or not at all.

use crate::error::{Error, Malformed, Result};
use crate::log::Log;
use crate::record::BatchHeader;
use crate::segment::{Batch, Damage, EpochsBefore, LOOKUP_READ, Preceding, SCAN_READ, Segment, Step, Walk};

/// Of which batches all bytes are read, and the checksums verified; of the others only the headers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BytesOf {
    AllBatches,
    Markers,
}

/// A batch, and the state of the log before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) batch: Batch,
    before: Option<Preceding>,
}

/// Why a batch cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    Malformed(Malformed),
    Error(Box<Error>),
}

impl From<Malformed> for Unusable {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

/// The batches of a segment, in order.
#[derive(Debug)]
pub(super) struct SegmentBatches<'a> {
    segment: &'a Segment,
    log: &'a Log,
    walk: Walk,
    bytes_of: BytesOf,
}

impl<'a> SegmentBatches<'a> {
    /// `epochs`: those before the segment.
    pub(super) fn new(
        segment: &'a Segment,
        log: &'a Log,
        epochs: EpochsBefore,
        bytes_of: BytesOf,
    ) -> Result<Self> {
        let read_ahead = match bytes_of {
            BytesOf::AllBatches => SCAN_READ,
            // from one header to the next, unless batches are small
            BytesOf::Markers => LOOKUP_READ,
        };
        Ok(Self { segment, log, walk: segment.walk(epochs, read_ahead)?, bytes_of })
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at damage; [`Error::UnsupportedFormat`], also for a batch that begins below the end
    /// of those before it: two of its records may have one offset; [`Error::Io`]; [`Error::Interrupted`].
    pub(super) fn next(&mut self) -> Result<Option<Place>> {
        self.log.options().interrupt.check()?;
        let before = self.walk.before;
        let step = match self.bytes_of {
            BytesOf::AllBatches => self.walk.step_through()?,
            BytesOf::Markers => self.walk.step_reading(|batch| batch.header.is_control())?,
        };
        let place = match step {
            Step::End => return Ok(None),
            Step::Damage(damage) => return Err(self.damaged(&damage)?),
            Step::Batch(batch) => Place { batch, before },
        };
        let Batch { position, header: BatchHeader { base_offset, last_offset, .. } } = place.batch;
        if let Some(repeated) = self.walk.repeated_after(&place.batch) {
            let expected = format!("a batch that starts above offset {last_offset} (for a compaction)");
            let found = Malformed::unsupported(expected, "batches that repeat offsets");
            return Err(found.at(self.segment.path(), repeated.start, Some(last_offset + 1)));
        }
        if let Some(last) = before.map(|before| before.last_offset).filter(|last| base_offset <= *last) {
            let expected = format!("a batch that starts above offset {last} (for a compaction)");
            let found = Malformed::unsupported(expected, format!("base offset {base_offset}"));
            return Err(found.at(self.segment.path(), position, Some(base_offset)));
        }
        if self.bytes_of == BytesOf::Markers
            && place.batch.header.is_control()
            && let Err(malformed) = self.walk.verify(&place.batch)?
        {
            return Err(self.error(&place, malformed.into()));
        }
        Ok(Some(place))
    }

    /// The bytes of a batch. Its checksum was verified if it is one of [`BytesOf`].
    pub(super) fn bytes(&mut self, place: &Place) -> Result<&[u8]> {
        self.walk.bytes(&place.batch)
    }

    /// The leader epochs up to the batch returned last.
    pub(super) fn epochs(&self) -> EpochsBefore {
        EpochsBefore::after(self.walk.before)
    }

    /// The error of a batch that cannot be used, which may be one before the last.
    pub(super) fn error(&mut self, place: &Place, why: Unusable) -> Error {
        match why {
            Unusable::Error(error) => *error,
            Unusable::Malformed(malformed) => {
                let damage = self.walk.reject(&place.batch, place.before, malformed);
                self.damaged(&damage).unwrap_or_else(|error| error)
            }
        }
    }

    fn damaged(&mut self, damage: &Damage) -> Result<Error> {
        let span = self.segment.resume(&mut self.walk, damage)?;
        let found = span.unsupported().unwrap_or_else(|| damage.clone());
        Ok(self.segment.corrupt(&found))
    }
}
