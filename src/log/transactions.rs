//! Which transactional records a committed reader sees, from the markers in the log alone.
//!
//! A transaction is open from a producer's first transactional batch to its next marker. One walk over the headers finds
//! the aborted ones, and the oldest that is still open: the last stable offset. While one is open, checksums are verified. `.txnindex` files could only shorten it,
//! and a missing one looks like "none aborted"; they are asked where damage has swallowed a marker.

use std::collections::HashMap;

use super::Log;
use crate::error::{Error, Malformed, Result};
use crate::record::Records;
use crate::record::control::ControlType;
use crate::segment::{Batch, SCAN_READ, Segment, Step, Stretch, Walk};

/// What the markers of a log say.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Offsets from here on belong to, or come after, a transaction that is still open. Exclusive end of what a committed
    /// reader sees.
    pub(crate) last_stable_offset: i64,
    /// First and last offset of each aborted transaction, by producer, in order.
    aborted: HashMap<i64, Vec<(i64, i64)>>,
    /// The first damage that may have swallowed a marker: file, position, offset and what is wrong.
    unsure: Option<(std::path::PathBuf, u64, i64, Malformed)>,
}

/// First offsets of the open transactions, by producer.
type OpenTransactions = HashMap<i64, i64>;

impl Transactions {
    /// Reads them from a log.
    pub(super) fn read(log: &Log) -> Result<Self> {
        let mut transactions = Self::default();
        let mut open = OpenTransactions::new();
        let mut leader_epoch = -1;
        for segment in log.segments().iter() {
            let mut walk = segment.walk_after(leader_epoch, SCAN_READ)?;
            transactions.read_segment(segment, &mut walk, &mut open)?;
            leader_epoch = walk.before.map_or(-1, |before| before.leader_epoch);
        }
        let first_unstable = open.values().min().copied().unwrap_or(log.log_end_offset());
        transactions.last_stable_offset = first_unstable.max(log.log_start_offset());
        Ok(transactions)
    }

    fn read_segment(
        &mut self,
        segment: &Segment,
        walk: &mut Walk,
        open: &mut OpenTransactions,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            segment.open_files().interrupt.check()?;
            let before = walk.before;
            let damage = match walk.step()? {
                Step::End => return Ok(()),
                Step::Batch(batch)
                    if !batch.header.is_transactional()
                        && open.is_empty()
                        && walk.is_continued(&batch)? =>
                {
                    continue;
                }
                Step::Batch(batch) => match self.take(&batch, walk, open, &mut buffer)? {
                    Ok(()) => continue,
                    Err(malformed) => walk.reject(&batch, before, malformed),
                },
                Step::Damage(damage) => damage,
            };
            let index = segment.usable(segment.offset_index());
            let stretch = walk.resume(&damage, index.as_deref())?;
            self.close_from_index(segment, stretch, open);
            if !open.is_empty() && self.unsure.is_none() {
                self.unsure = Some((segment.path(), damage.position, damage.offset, damage.malformed));
            }
        }
    }

    /// One batch: opens a transaction, belongs to an open one, ends it, or has nothing to do with any. It is verified: a
    /// flipped bit makes a marker look like any other batch, and its transaction would stay open and take in the next.
    fn take(
        &mut self,
        batch: &Batch,
        walk: &mut Walk,
        open: &mut OpenTransactions,
        buffer: &mut Vec<u8>,
    ) -> Result<std::result::Result<(), Malformed>> {
        let header = batch.header;
        if let Err(malformed) = walk.verify(batch)? {
            return Ok(Err(malformed));
        }
        if !header.is_transactional() || !header.is_control() && open.contains_key(&header.producer_id) {
            return Ok(Ok(()));
        }
        if !header.is_control() {
            open.insert(header.producer_id, header.base_offset);
            return Ok(Ok(()));
        }
        match marker(header, walk.bytes(batch)?, buffer) {
            Ok(Some(kind)) => {
                let first = open.remove(&header.producer_id);
                if let (ControlType::Abort, Some(first)) = (kind, first) {
                    self.add(header.producer_id, first, header.last_offset);
                }
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(malformed) => Ok(Err(malformed)),
        }
    }

    fn add(&mut self, producer_id: i64, first: i64, last: i64) {
        self.aborted.entry(producer_id).or_default().push((first, last));
    }

    /// Damage swallowed a stretch: where the transaction index names an abort marker in it, that transaction is over.
    fn close_from_index(&mut self, segment: &Segment, stretch: Stretch, open: &mut OpenTransactions) {
        let end = stretch.end_offset.unwrap_or(segment.upper());
        let Some(index) = segment.usable(segment.transaction_index()) else { return };
        for entry in index.iter().map_while(Result::ok) {
            if (stretch.start_offset..end).contains(&entry.last_offset)
                && let Some(first) = open.remove(&entry.producer_id)
            {
                self.add(entry.producer_id, first, entry.last_offset);
            }
        }
    }

    /// Whether a producer's batch at `offset` belongs to an aborted transaction.
    pub(crate) fn is_aborted(&self, producer_id: i64, offset: i64) -> bool {
        self.aborted.get(&producer_id).is_some_and(|aborted| {
            let after = aborted.partition_point(|(first, _)| *first <= offset);
            after.checked_sub(1).and_then(|at| aborted.get(at)).is_some_and(|(_, last)| offset <= *last)
        })
    }

    /// An error where damage leaves it open how a transaction ended.
    pub(crate) fn sure(&self) -> Result<()> {
        match &self.unsure {
            None => Ok(()),
            Some((file, position, offset, malformed)) => {
                let error: Error = malformed.clone().at(file, *position, Some(*offset));
                Err(error)
            }
        }
    }
}

/// The type of the (first) control record of a batch, or `None` where compaction left none or it ends no transaction.
fn marker(
    header: crate::record::BatchHeader,
    bytes: &[u8],
    buffer: &mut Vec<u8>,
) -> std::result::Result<Option<ControlType>, Malformed> {
    let (mut records, payload) = Records::open(header, bytes, buffer)?;
    let Some(record) = records.next(payload.of(bytes, buffer))? else { return Ok(None) };
    Ok(match ControlType::parse(record.key)? {
        ControlType::Other(_) => None,
        kind => Some(kind),
    })
}
