//! Concurrent changes to a folder while it is listed.
//!
//! `readdir` is not atomic. POSIX guarantees an entry only if it exists during the whole listing. Each entry
//! that is created or deleted during the listing may be returned or not, independently. ext4 with hashed
//! directories behaves this way.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::MemoryDisk;
use super::state::Node;

/// What happens during each listing of a folder. See [`MemoryDisk::set_listing_race`].
pub struct ListingRace {
    /// Called once in the middle of each listing. A listing from within this call is atomic.
    pub meanwhile: Box<dyn FnMut() + Send>,
    /// Whether the listing returns an entry that was created or deleted during it.
    pub returns: Box<dyn FnMut(&str) -> bool + Send>,
}

impl fmt::Debug for ListingRace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ListingRace")
    }
}

impl MemoryDisk {
    /// Changes folders while they are listed; `None`: listings are atomic.
    pub fn set_listing_race(&self, race: Option<ListingRace>) {
        self.lock().race = race;
    }

    /// The entries of a folder as one listing returns them.
    pub(super) fn list(&self, folder: usize) -> BTreeMap<Arc<str>, Node> {
        let mut inner = self.lock();
        let before = inner.entries(folder);
        let Some(mut race) = inner.race.take() else { return BTreeMap::clone(&before) };
        drop(inner);
        (race.meanwhile)();
        let mut inner = self.lock();
        let after = inner.entries(folder);
        let mut listed: BTreeMap<_, _> =
            before.iter().chain(after.iter()).map(|(name, node)| (Arc::clone(name), *node)).collect();
        listed.retain(|name, _| {
            let is_stable = before.contains_key(name) && after.contains_key(name);
            is_stable || (race.returns)(name)
        });
        inner.race.get_or_insert(race);
        listed
    }
}
