//! The producers of a log that is recovered, and the transaction indexes of the segments that are read.

use std::sync::Arc;

use super::existing_log::Existing;
use super::segment_plan::SegmentPlan;
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::writer::producers::{ProducerPlan, Rebuild, Replayed};

impl Existing<'_> {
    /// Plans the producers, and the stale transaction indexes in `plans`. The log start offset as stored, and
    /// both ends of the log.
    pub(super) fn producers(
        &self,
        plans: &mut [SegmentPlan],
        (stored_start, log_start_offset, log_end_offset): (i64, i64, i64),
        closed_cleanly: bool,
    ) -> Result<ProducerPlan> {
        let mut segments = Vec::with_capacity(plans.len());
        for (segment, plan) in self.segments.iter().zip(&*plans) {
            let scanned = plan.scanned.as_ref().filter(|_| plan.is_unclean() || plan.is_split());
            // a sealed segment is also read after damage, as readers do
            let Some(scanned) = scanned else {
                segments.push(Replayed::whole(segment)?);
                continue;
            };
            let end_offset = Some(scanned.end_offset).filter(|_| !scanned.has_producers && !plan.is_split());
            segments.extend(scanned.parts.iter().map(|part| Replayed {
                segment: Arc::clone(segment),
                base_offset: part.base_offset,
                bytes: part.start..part.start + part.state.size,
                is_verified: true,
                end_without_producers: end_offset,
            }));
        }
        let expiration_ms = self.options.producer_id_expiration_ms;
        let now = (self.options.clock)();
        let mut rebuild = Rebuild::at_opening(self.directory, &segments, stored_start, expiration_ms, now)?;
        let mut parts = segments.iter();
        for plan in &mut *plans {
            let own = parts.by_ref().take(plan.base_offsets().len());
            if !plan.is_recovered() {
                own.for_each(drop);
                continue;
            }
            for part in own {
                let entries = rebuild.recover_segment(part)?;
                plan.transaction_indexes.push((part.base_offset, entries));
            }
            // a split writes the indexes of its parts
            if !plan.is_split()
                && let Some((base_offset, entries)) = plan.transaction_indexes.last()
            {
                let stale = self.stale_transaction_index(*base_offset, entries)?;
                plan.rebuilt.extend(stale.map(|reason| (FileKind::TransactionIndex, reason)));
            }
        }
        let bases: Vec<_> = plans.iter().flat_map(SegmentPlan::base_offsets).collect();
        rebuild.open(&bases, log_start_offset, log_end_offset, closed_cleanly)
    }
}
