//! The header of a batch as the dump shows it, whatever its values.

use super::batch_stream::BatchStream;
use super::text::Text;
use crate::error::{Malformed, Result};
use crate::inspect::batch_place::BatchPlace;
use crate::record::{BatchHeader, LOG_OVERHEAD, V2_HEADER};

/// Bytes of the header of a message of magic 0 or 1. Source: `LegacyRecord.HEADER_SIZE_V0`, `HEADER_SIZE_V1`.
const LEGACY_HEADERS: [usize; 2] = [LOG_OVERHEAD + 6, LOG_OVERHEAD + 14];

/// A batch and its header, unchecked.
#[derive(Debug, Clone, Copy)]
pub(super) struct DumpedBatch {
    pub(super) place: BatchPlace,
    pub(super) header: BatchHeader,
}

impl DumpedBatch {
    /// Reads the header.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the file ends inside it, or for a magic below 0;
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io).
    pub(super) fn read(stream: &mut BatchStream, place: BatchPlace) -> Result<Self> {
        let wrong = |malformed: Malformed, stream: &BatchStream| {
            Err(stream.corrupt(malformed, place.position, Some(place.offset)))
        };
        let Ok(magic) = usize::try_from(place.magic) else {
            let found = format!("magic {}", place.magic);
            return wrong(Malformed::new("magic 0 or above", found), stream);
        };
        let size = LEGACY_HEADERS.get(magic).copied().unwrap_or(V2_HEADER);
        let bytes = stream.bytes(place.position, size)?;
        match BatchHeader::unchecked(bytes, place.size) {
            Some(header) => Ok(Self { place, header }),
            None => wrong(cut(size, bytes.len()), stream),
        }
    }

    pub(super) fn is_v2(&self) -> bool {
        self.place.magic >= 2
    }

    pub(super) fn is_control(&self) -> bool {
        self.is_v2() && self.header.attributes.is_control()
    }

    /// The sum of the base offset and the delta wraps, as in Java.
    pub(super) fn last_offset(&self) -> i64 {
        self.header.last_offset
    }

    /// The line of the batch.
    ///
    /// # Errors
    /// As [`DumpedBatch::read`]; for a codec id from 5 to 7. The text before the error is in the buffer.
    pub(super) fn write(out: &mut Text, stream: &mut BatchStream, place: BatchPlace) -> Result<Self> {
        if place.magic < 2 {
            out.str("offset: ").int(place.offset);
        }
        let batch = Self::read(stream, place)?;
        let header = &batch.header;
        if batch.is_v2() {
            batch.write_v2_fields(out);
        }
        let codec = header.attributes.codec();
        let codec = codec.map_err(|wrong| stream.corrupt(wrong, place.position, Some(place.offset)))?;
        let is_valid = batch.is_valid(stream)?;
        out.str(" position: ").int(place.position).str(" ").str(header.timestamp_type().name());
        out.str(": ")
            .int(header.max_timestamp)
            .str(" size: ")
            .int(place.size)
            .str(" magic: ")
            .int(place.magic);
        out.str(" compresscodec: ").str(codec.name()).str(" crc: ").int(header.crc);
        out.str(" isvalid: ").bool(is_valid).end_line();
        Ok(batch)
    }

    fn write_v2_fields(&self, out: &mut Text) {
        let header = &self.header;
        out.str("baseOffset: ").int(header.base_offset).str(" lastOffset: ").int(self.last_offset());
        out.str(" count: ").int(header.count.unwrap_or(0)).str(" baseSequence: ").int(header.base_sequence);
        out.str(" lastSequence: ").int(header.last_sequence()).str(" producerId: ").int(header.producer_id);
        out.str(" producerEpoch: ").int(header.producer_epoch).str(" partitionLeaderEpoch: ");
        out.int(header.leader_epoch).str(" isTransactional: ").bool(header.is_transactional());
        out.str(" isControl: ").bool(header.is_control()).str(" deleteHorizonMs: ");
        out.optional(header.delete_horizon());
    }

    /// Whether the checksum is that of the batch's bytes. A batch of magic 2 that is smaller than its header
    /// never is.
    pub(super) fn is_valid(&self, stream: &mut BatchStream) -> Result<bool> {
        let start = if self.is_v2() { 21 } else { 16 };
        if self.is_v2() && (self.place.size as usize) < V2_HEADER {
            return Ok(false);
        }
        Ok(stream.checksum(&self.place, start)? == self.header.crc)
    }
}

#[cold]
fn cut(wanted: usize, found: usize) -> Malformed {
    Malformed::new(format!("a header of {wanted} bytes"), format!("the end of the file after {found}"))
}
