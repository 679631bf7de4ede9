//! Producer ids and epochs that a writer gives out.
//!
//! The epoch of a producer is in the log, with its batches and markers. Here are the epochs that are not in
//! the log yet, and the file with the ids of names. A handle with a lower epoch than its producer has is
//! fenced.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use super::partition::Partition;
use crate::error::{Error, Result};
use crate::state::producer_ids::{IdOwner, ProducerIds};

/// The number of transactional ids without a transaction that keep their producer ids.
const MAX_IDLE_IDS: usize = 256;

/// The sessions of a writer.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// The file of names; `None` until a name is used.
    ids: Option<ProducerIds>,
    by_id: HashMap<i64, Session>,
}

impl Sessions {
    /// Whether a handle of a producer with its present epoch is in use.
    pub(super) fn is_in_use(&self, producer_id: i64) -> bool {
        self.by_id.get(&producer_id).is_some_and(|session| session.handle.strong_count() > 0)
    }

    /// The producers that have a handle in use.
    pub(super) fn in_use(&self) -> HashSet<i64> {
        self.by_id.keys().copied().filter(|producer_id| self.is_in_use(*producer_id)).collect()
    }
}

#[derive(Debug)]
struct Session {
    epoch: i16,
    /// Whether a handle with this epoch is in use.
    handle: Weak<()>,
}

/// A producer id and an epoch of it, in use until this is dropped.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    _in_use: Arc<()>,
}

impl Partition {
    /// The epoch of a producer; −1 if it has none.
    pub(super) fn epoch_of(&self, producer_id: i64) -> i16 {
        let in_log = self.producers.get(producer_id).map_or(-1, |entry| entry.producer_epoch);
        self.sessions.by_id.get(&producer_id).map_or(in_log, |session| session.epoch.max(in_log))
    }

    /// Sets the epoch of a producer: handles with a lower one are fenced.
    pub(super) fn set_epoch(&mut self, producer_id: i64, epoch: i16) {
        self.sessions.by_id.insert(producer_id, Session { epoch, handle: Weak::new() });
    }

    /// Gives out a handle.
    pub(super) fn hold(&mut self, producer_id: i64, producer_epoch: i16) -> Holder {
        let in_use = Arc::new(());
        let session = Session { epoch: producer_epoch, handle: Arc::downgrade(&in_use) };
        // a session that is over, and that fences no more than the log does, is not needed
        let in_log = |id: &i64| self.producers.get(*id).map_or(0, |entry| entry.producer_epoch);
        let is_needed = |id: &i64, old: &mut Session| old.handle.strong_count() > 0 || in_log(id) < old.epoch;
        self.sessions.by_id.retain(is_needed);
        self.sessions.by_id.insert(producer_id, session);
        Holder { producer_id, producer_epoch, _in_use: in_use }
    }

    /// Fails if the handle is fenced.
    pub(super) fn check_holder(&self, holder: &Holder) -> Result<()> {
        let Holder { producer_id, producer_epoch: found, .. } = *holder;
        let expected = self.epoch_of(producer_id);
        if found < expected {
            return Err(Error::InvalidProducerEpoch { position: None, producer_id, expected, found });
        }
        Ok(())
    }

    /// The producer id of a name. `None` if it has none, or nothing is known of it: it has not written, or it
    /// has expired, or its batches were truncated. Then the name gets another id, because batches that
    /// were written with this one may be in the log.
    pub(super) fn known_id(&mut self, owner: IdOwner, name: &str) -> Result<Option<i64>> {
        let id = self.ids()?.get(owner, name);
        if owner == IdOwner::Producer && id.is_some_and(|id| self.producers.get(id).is_none()) {
            self.producers.restore_named(&self.directory, self.ends.log_end_offset())?;
        }
        Ok(id.filter(|id| self.is_known(*id)))
    }

    fn is_known(&self, producer_id: i64) -> bool {
        self.producers.get(producer_id).is_some() || self.sessions.by_id.contains_key(&producer_id)
    }

    fn ids(&mut self) -> Result<&ProducerIds> {
        let ids = match self.sessions.ids.take() {
            Some(ids) => ids,
            None => ProducerIds::read(&self.directory)?,
        };
        Ok(self.sessions.ids.insert(ids))
    }

    /// A producer id that the log does not have. If it is for a name, the name has it durably when this
    /// returns.
    pub(super) fn new_id(&mut self, owner: IdOwner, name: Option<&str>) -> Result<i64> {
        let mut names = self.ids()?.clone();
        self.producers.remove_expired((self.clock)(), |producer_id| self.sessions.is_in_use(producer_id));
        // a name whose records were deleted is known, and its id is used
        self.producers.restore_named(&self.directory, self.ends.log_end_offset())?;
        let range = owner.ids();
        let used = self.producers.ids().chain(names.iter()).chain(self.sessions.by_id.keys().copied());
        let last = used.filter(|id| range.contains(id)).max();
        let producer_id = last.map_or(range.start, |last| last.saturating_add(1));
        if !range.contains(&producer_id) {
            let expected = format!("producer ids below {}", range.end);
            return Err(Error::config("producer_id", expected, producer_id.to_string()));
        }
        if let Some(name) = name {
            names.retain(|id| self.is_known(id));
            names.insert(owner, name, producer_id);
            self.put_names(names)?;
        }
        Ok(producer_id)
    }

    fn put_names(&mut self, names: ProducerIds) -> Result<()> {
        self.ends.commit().or_poison_after_sync(names.write(&self.directory))?;
        self.sessions.ids = Some(names);
        Ok(())
    }

    /// The producer id for a transactional id that has none: if many are not in use, that of the one whose
    /// last transaction ended first, which loses it, else a new one. So a program with a transactional id
    /// for each request does not have a producer for each.
    pub(super) fn transaction_producer(&mut self, transactional_id: &str) -> Result<i64> {
        let mut names = self.ids()?.clone();
        let mut idle: Vec<_> = names
            .of(IdOwner::Transaction)
            .filter_map(|(name, id)| Some((self.idle_since(id)?, id, name.to_owned())))
            .collect();
        idle.sort_unstable();
        // new ids are above the highest one of a name
        let highest = names.of(IdOwner::Transaction).map(|(_, id)| id).max();
        let surplus = (idle.len() + 1).saturating_sub(MAX_IDLE_IDS);
        let Some(&(_, producer_id, _)) = idle.first().filter(|_| surplus > 0) else {
            return self.new_id(IdOwner::Transaction, Some(transactional_id));
        };
        for (_, id, name) in idle.iter().take(surplus) {
            if *id == producer_id || Some(*id) != highest {
                names.remove(IdOwner::Transaction, name);
            }
        }
        names.insert(IdOwner::Transaction, transactional_id, producer_id);
        self.put_names(names)?;
        Ok(producer_id)
    }

    /// The time of the end of a producer's last transaction, ms; `None` if it has none, or is in use.
    fn idle_since(&self, producer_id: i64) -> Option<i64> {
        let entry = self.producers.get(producer_id)?;
        let is_idle = entry.open_transaction.is_none()
            && !self.sessions.is_in_use(producer_id)
            && self.epoch_of(producer_id) < i16::MAX;
        is_idle.then_some(entry.last_timestamp)
    }
}
