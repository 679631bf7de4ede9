//! The states of producers from the batches of a log, one after another: for a writer that opens a log, and
//! for everything that derives transaction indexes and snapshots or compares them with the batches.

use super::ProducerStates;
use super::states::EndedTransaction;
use super::updates::{ProducerRefusal, ProducerUpdates};
use crate::error::Malformed;
use crate::record::BatchHeader;
use crate::record::control::EndMarker;

/// What a control batch of a producer means whose first record is not a valid end marker: it is cut or
/// damaged, it cannot be read within the limits, or it is of another type.
///
/// Kafka throws an exception in each of these cases, and does not load the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum MalformedMarker {
    /// The batch is refused. For the caller that is an error, or damage, as a wrong checksum is.
    #[default]
    Refused,
    /// The batch is refused if it is damaged. One that is only above a limit ends nothing: the transaction of
    /// its producer stays open.
    RefusedIfDamaged,
}

/// Why a batch is refused. The states are unchanged.
#[derive(Debug)]
pub(crate) enum RefusedBatch {
    /// Its marker is malformed.
    Marker(Malformed),
    /// It contradicts the transactions before it ([`ProducerStates::append`]).
    Contradiction(Malformed),
}

impl From<RefusedBatch> for Malformed {
    fn from(refused: RefusedBatch) -> Self {
        match refused {
            RefusedBatch::Marker(malformed) | RefusedBatch::Contradiction(malformed) => malformed,
        }
    }
}

/// What a batch was for its producer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplayedBatch {
    /// The marker of a control batch, unless compaction has removed it.
    #[cfg_attr(not(feature = "inspect"), expect(dead_code, reason = "only the operator's functions use it"))]
    pub(crate) marker: Option<EndMarker>,
    /// The transaction that the marker has ended.
    pub(crate) ended: Option<EndedTransaction>,
}

/// The producers of a log up to a batch.
#[derive(Debug, Default)]
pub(crate) struct ProducerReplay {
    pub(crate) states: ProducerStates,
    malformed: MalformedMarker,
    /// The effect of the batches that are added as one append.
    held: Option<ProducerUpdates>,
    /// For compressed markers.
    buffer: Vec<u8>,
}

impl ProducerReplay {
    /// `states`: the producers before the first batch.
    #[cfg(feature = "inspect")]
    pub(crate) fn new(states: ProducerStates, malformed: MalformedMarker) -> Self {
        Self { states, malformed, ..Self::default() }
    }

    /// Whether the bytes of a batch say what it means for its producer: whether it may have a marker.
    pub(crate) fn needs_bytes(header: &BatchHeader) -> bool {
        header.producer_id >= 0 && header.is_control()
    }

    /// Adds the next batch. `bytes`: the whole batch if it [needs](ProducerReplay::needs_bytes) them.
    pub(crate) fn add(&mut self, header: &BatchHeader, bytes: &[u8]) -> Result<ReplayedBatch, RefusedBatch> {
        let marker = self.marker(header, bytes).map_err(RefusedBatch::Marker)?;
        let ended = match &mut self.held {
            None => self.states.append(header, marker.as_ref()).map_err(RefusedBatch::Contradiction)?,
            Some(held) => match held.add(&self.states, header, marker.as_ref(), false) {
                Err(ProducerRefusal::Transaction(malformed)) => {
                    return Err(RefusedBatch::Contradiction(malformed));
                }
                // sequences and epochs are not checked
                _ => None,
            },
        };
        Ok(ReplayedBatch { marker, ended })
    }

    fn marker(&mut self, header: &BatchHeader, bytes: &[u8]) -> Result<Option<EndMarker>, Malformed> {
        if !Self::needs_bytes(header) {
            return Ok(None);
        }
        match EndMarker::read(*header, bytes, &mut self.buffer) {
            Err(malformed)
                if self.malformed == MalformedMarker::RefusedIfDamaged && !malformed.is_damage() =>
            {
                Ok(None)
            }
            read => read,
        }
    }

    /// Adds the batches of a segment as one append: none has an effect if `add_all` fails.
    ///
    /// *Source*: `UnifiedLog.loadProducersFromRecords`.
    pub(crate) fn add_at_once<T, E>(
        &mut self,
        add_all: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.held = Some(ProducerUpdates::default());
        let added = add_all(self);
        if let Some(held) = self.held.take()
            && added.is_ok()
        {
            self.states.apply(held);
        }
        added
    }
}
