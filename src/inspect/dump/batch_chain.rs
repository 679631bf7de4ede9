//! The batches of a `.log` from one position to the end of the file, for many searches by offset.
//!
//! For each entry of a time index Kafka's tool reads the headers of all batches from a position to the end of
//! the file. Here the file is read once, and a search reads only the part of it in which the batch is.

use super::batch::DumpedBatch;
use super::batch_stream::BatchStream;
use crate::error::Result;
use crate::inspect::batch_place::BatchPlace;

/// Bytes of the `.log` in a block.
const BLOCK_BYTES: u64 = 64 << 10;

/// Batches that follow one another.
#[derive(Debug)]
struct Block {
    /// The position of the first one.
    start: u64,
    /// The highest last offset; `i64::MAX` if one of them cannot be read, so that a search does not pass it
    /// over.
    max_last_offset: i64,
}

/// The batches from a position on. *Memory*: 16 bytes for each 64 KiB of the `.log`.
#[derive(Debug)]
pub(super) struct BatchChain {
    blocks: Vec<Block>,
    /// The position after the last batch.
    end: u64,
}

impl BatchChain {
    /// Reads the headers of all batches from a position on.
    ///
    /// # Errors
    /// As [`BatchStream::slice`], [`BatchStream::next`].
    pub(super) fn read(log: &mut BatchStream, position: i64) -> Result<Self> {
        log.slice(position, u64::MAX)?;
        let mut blocks: Vec<Block> = Vec::new();
        while let Some(place) = log.next()? {
            let last_offset = last_offset(log, place).unwrap_or(i64::MAX);
            match blocks.last_mut() {
                Some(block) if place.position - block.start < BLOCK_BYTES => {
                    block.max_last_offset = block.max_last_offset.max(last_offset);
                }
                _ => blocks.push(Block { start: place.position, max_last_offset: last_offset }),
            }
        }
        Ok(Self { blocks, end: log.position() })
    }

    /// The first batch at or after a position whose last offset is at or above `offset`, and its last offset;
    /// `None` if there is none.
    ///
    /// # Errors
    /// If the headers of the batches from the position to the end of the file, or up to the batch found,
    /// cannot be read.
    pub(super) fn find(
        &self,
        log: &mut BatchStream,
        position: i64,
        offset: i64,
    ) -> Result<Option<(BatchPlace, i64)>> {
        log.slice(position, u64::MAX)?;
        let position = log.position();
        let Some(block) = self.block_of(log, position)? else {
            // Kafka reads all headers before it searches them
            while log.next()?.is_some() {}
            log.slice(i64::try_from(position).unwrap_or(i64::MAX), u64::MAX)?;
            return first_at_or_above(log, offset, u64::MAX);
        };
        let mut from = position;
        for (number, block) in self.blocks.iter().enumerate().skip(block) {
            if block.max_last_offset >= offset {
                let end = self.blocks.get(number + 1).map_or(self.end, |next| next.start);
                log.slice(i64::try_from(from.max(block.start)).unwrap_or(i64::MAX), u64::MAX)?;
                let found = first_at_or_above(log, offset, end)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            from = block.start;
        }
        Ok(None)
    }

    /// The number of the block in which a batch starts at a position; `None` if there is none.
    fn block_of(&self, log: &mut BatchStream, position: u64) -> Result<Option<usize>> {
        let after = self.blocks.partition_point(|block| block.start <= position);
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        let start = self.blocks.get(number).map_or(0, |block| block.start);
        log.slice(i64::try_from(start).unwrap_or(i64::MAX), u64::MAX)?;
        while log.position() < position && log.next()?.is_some() {}
        let is_batch = log.position() == position && position < self.end;
        Ok(is_batch.then_some(number))
    }
}

/// The first batch with a last offset at or above `offset`, before the position `end`.
fn first_at_or_above(log: &mut BatchStream, offset: i64, end: u64) -> Result<Option<(BatchPlace, i64)>> {
    while log.position() < end {
        let Some(place) = log.next()? else { return Ok(None) };
        let last_offset = last_offset(log, place)?;
        if last_offset >= offset {
            return Ok(Some((place, last_offset)));
        }
    }
    Ok(None)
}

fn last_offset(log: &mut BatchStream, place: BatchPlace) -> Result<i64> {
    if place.magic < 2 { Ok(place.offset) } else { Ok(DumpedBatch::read(log, place)?.last_offset()) }
}
