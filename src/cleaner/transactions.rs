//! Which batches and markers of transactions compaction may remove. Kafka: `CleanedTransactionMetadata`.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::index::AbortedTransaction;
use crate::record::BatchHeader;
use crate::record::control::ControlType;

/// The transactions at a position of a pass, in which the batches come in the order of the log.
#[derive(Debug)]
pub(super) struct CleanedTransactions {
    /// The aborted transactions that begin above the position, by their first offset.
    aborted_ahead: VecDeque<AbortedTransaction>,
    /// The aborted transactions whose marker is ahead, by producer, and whether one of their batches was
    /// seen.
    aborted: HashMap<i64, (AbortedTransaction, bool)>,
    /// The producers with a batch of a committed transaction whose marker is ahead.
    committed: HashSet<i64>,
}

/// What becomes of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkerFate {
    /// Whether no batch of its transaction is left, so that it may be removed after the delete horizon.
    pub(super) is_removable: bool,
    /// The entry of the transaction index that the marker keeps.
    pub(super) aborted: Option<AbortedTransaction>,
}

impl CleanedTransactions {
    /// `aborted`: the aborted transactions that end in the pass or after it.
    pub(super) fn new(aborted: &[AbortedTransaction]) -> Self {
        let mut aborted_ahead: Vec<_> = aborted.to_vec();
        aborted_ahead.sort_by_key(|transaction| transaction.first_offset);
        Self { aborted_ahead: aborted_ahead.into(), aborted: HashMap::new(), committed: HashSet::new() }
    }

    /// Adds a batch that is not a control batch. True if its transaction was aborted.
    ///
    /// *Source*: `CleanedTransactionMetadata.onBatchRead`.
    pub(super) fn add_batch(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset);
        if !header.is_transactional() {
            return false;
        }
        if let Some((_, is_seen)) = self.aborted.get_mut(&header.producer_id) {
            *is_seen = true;
            return true;
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// Adds a control batch. `control_type`: of its record; `None` if compaction has removed the record.
    ///
    /// *Source*: `CleanedTransactionMetadata.onControlBatchRead`.
    pub(super) fn add_marker(
        &mut self,
        header: &BatchHeader,
        control_type: Option<ControlType>,
    ) -> MarkerFate {
        self.begin_up_to(header.last_offset);
        let mut kept = None;
        let is_removable = match control_type {
            None => true,
            Some(ControlType::Abort) => {
                let ended = self.aborted.remove(&header.producer_id);
                kept = ended.filter(|(_, is_seen)| *is_seen).map(|(transaction, _)| transaction);
                kept.is_none()
            }
            Some(ControlType::Commit) => !self.committed.remove(&header.producer_id),
            Some(ControlType::Other(_)) => false,
        };
        MarkerFate { is_removable, aborted: kept }
    }

    fn begin_up_to(&mut self, offset: i64) {
        while let Some(next) = self.aborted_ahead.front().copied().filter(|next| next.first_offset <= offset)
        {
            self.aborted_ahead.pop_front();
            self.aborted.entry(next.producer_id).or_insert((next, false));
        }
    }
}
