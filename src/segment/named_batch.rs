//! The first look-up of an offset in a batch, with one read: where the index has an entry for each batch, as
//! with batches larger than its interval, two entries enclose the batch.
//!
//! ```text
//! offset index   … (199, 8000)   (299, 24500)      (399, 41000) …       the entry of a batch: its last offset, its position
//! look-up                   250: between these two
//! .log           … │ 100 to 199 │ 200 to 299       │ 300 to 399 …
//!                               24500 └─ one read ─┘ and the header after it
//! ```
//!
//! The entries are hints. The batch is used if its header, its checksum and the header after it agree with
//! all of them; otherwise the walk of [`Segment::find_offset`] decides.

use super::damage::{Preceding, follows};
use super::verified_batches::BatchKey;
use super::walk::Batch;
use super::{LOOKUP_READ, MAX_LOOKUP_READ, Segment, Walk};
use crate::error::Result;
use crate::index::{Method, OffsetIndex};
use crate::record::V2_HEADER;
use crate::types::OffsetPosition;

impl Segment {
    /// The batch that contains `offset`, if the entries around it name the batch and the log agrees. `None`
    /// if [`Segment::find_offset`] has to walk.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    pub(super) fn find_named_batch(&self, offset: i64) -> Result<Option<Batch>> {
        // a window of the walk has all small batches between two entries
        let smallest = match self.typical_found_bytes() {
            None => LOOKUP_READ,
            Some(_) if self.finds_large_batches() => LOOKUP_READ / 2,
            Some(_) => return Ok(None),
        };
        // the walk warns of an index that cannot be read
        let Ok(Some(index)) = self.offset_index() else { return Ok(None) };
        let Ok(Some([before, named, next])) = entries_around(&index, offset) else { return Ok(None) };
        let size = i64::from(next.position) - i64::from(named.position);
        let Ok(position) = u64::try_from(named.position) else { return Ok(None) };
        let Some(size) = u32::try_from(size).ok().filter(|size| *size as usize <= MAX_LOOKUP_READ) else {
            return Ok(None);
        };
        // a batch that was verified before is not read again, only headers
        if size as usize <= smallest || self.verified.has_position(position) {
            return Ok(None);
        }
        let bounds = self.bounds()?;
        let mut walk = Walk::new(self.look_up_file(size as usize + V2_HEADER)?, bounds, position, None);
        let Ok(&header) = walk.header_at(position)? else { return Ok(None) };
        let before = Preceding { last_offset: before.offset, leader_epoch: -1, earlier_epoch: -1 };
        let is_named =
            header.size == size && header.last_offset == named.offset && header.base_offset <= offset;
        if !is_named || bounds.is_far(&header) || bounds.check(&header, Some(before)).is_err() {
            return Ok(None);
        }
        let batch = Batch { position, header };
        let is_followed = walk
            .header_at(batch.end())?
            .is_ok_and(|next| follows(header.last_offset, header.leader_epoch, next).is_ok());
        if !is_followed || walk.verify(&batch)?.is_err() {
            return Ok(None);
        }
        self.verified.insert(BatchKey::of(&batch));
        Ok(Some(batch))
    }
}

/// The last entry below an offset, and the two entries after it. `None` if there are fewer.
fn entries_around(index: &OffsetIndex, offset: i64) -> Result<Option<[OffsetPosition; 3]>> {
    let Some(below) = offset.checked_sub(1) else { return Ok(None) };
    let Some(slot) = index.lower_slot(below, Method::default())? else { return Ok(None) };
    if slot + 2 >= index.entries() {
        return Ok(None);
    }
    let [before, named, next] = [index.entry(slot)?, index.entry(slot + 1)?, index.entry(slot + 2)?];
    let is_between = before.offset < offset && offset <= named.offset && named.offset < next.offset;
    Ok(is_between.then_some([before, named, next]))
}
