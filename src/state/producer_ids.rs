//! `.cordwood.producers`: the producer ids of the names and transactional ids that a writer has given out.
//! Format: `checksummed_text`.
//!
//! ```text
//! 0
//! producer/billing 1000000000000000       a named producer, and its id
//! transaction/orders 2000000000000003     a transactional id, and the id of its producer
//! crc32c 9c4e08f1
//! ```
//!
//! The file is written before the first batch with an id. Epochs and sequences are in the log.

use std::collections::BTreeMap;
use std::ops::Range;

use super::checksummed_text;
use crate::error::{Malformed, Result};
use crate::fs::Directory;

/// The name of the file.
pub(crate) const PRODUCERS: &str = ".cordwood.producers";
/// The largest file that is read, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// What a producer id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdOwner {
    /// A producer with a name.
    Producer,
    /// A transactional id, or a producer without a name.
    Transaction,
}

impl IdOwner {
    /// The ids that are given out. A broker's ids ascend from 0, in blocks of 1000, and do not reach them.
    pub(crate) fn ids(self) -> Range<i64> {
        const FIRST: i64 = 1_000_000_000_000_000;
        match self {
            Self::Producer => FIRST..2 * FIRST,
            Self::Transaction => 2 * FIRST..i64::MAX,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Producer => "producer/",
            Self::Transaction => "transaction/",
        }
    }
}

/// The producer ids by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProducerIds {
    ids: BTreeMap<String, i64>,
}

impl ProducerIds {
    /// Reads the file; without one, no id was given out.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the file is damaged or of another format;
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn read(directory: &Directory) -> Result<Self> {
        let Some(text) = directory.read_small(PRODUCERS, MAX_BYTES)? else { return Ok(Self::default()) };
        let parsed = checksummed_text::read(&text).and_then(|ids| {
            let owner = |name: &str| {
                [IdOwner::Producer, IdOwner::Transaction]
                    .into_iter()
                    .find(|owner| name.starts_with(owner.prefix()))
            };
            let wrong =
                ids.iter().find(|(name, id)| owner(name).is_none_or(|owner| !owner.ids().contains(id)));
            match wrong {
                Some((name, id)) => Err(format!("the line \"{name} {id}\"")),
                None => Ok(Self { ids }),
            }
        });
        parsed.map_err(|wrong| {
            let expected = "producer ids of names with a valid checksum (remove the file to go on: each name then gets a new \
                            producer id, so that what was written under it is not known, and a transaction that is open \
                            has to be aborted by its producer id)";
            Malformed::new(expected, wrong).at(directory.path_of(PRODUCERS), 0, None)
        })
    }

    /// The producer id of a name.
    pub(crate) fn get(&self, owner: IdOwner, name: &str) -> Option<i64> {
        self.ids.get(&(owner.prefix().to_owned() + name)).copied()
    }

    /// Gives a producer id to a name.
    pub(crate) fn insert(&mut self, owner: IdOwner, name: &str, producer_id: i64) {
        self.ids.insert(owner.prefix().to_owned() + name, producer_id);
    }

    /// Keeps the names with these producer ids.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(i64) -> bool) {
        self.ids.retain(|_, producer_id| is_kept(*producer_id));
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, owner: IdOwner, name: &str) {
        self.ids.remove(&(owner.prefix().to_owned() + name));
    }

    /// The names of a kind, and their producer ids.
    pub(crate) fn of(&self, owner: IdOwner) -> impl Iterator<Item = (&str, i64)> {
        self.ids.iter().filter_map(move |(name, id)| Some((name.strip_prefix(owner.prefix())?, *id)))
    }

    /// All producer ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> {
        self.ids.values().copied()
    }

    /// Replaces the file, durably.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io): the file has its old or its new contents.
    pub(crate) fn write(&self, directory: &Directory) -> Result<()> {
        let ids = self.ids.iter().map(|(name, id)| (name.as_str(), *id)).collect();
        directory.stage(PRODUCERS, &checksummed_text::write(&ids))?.put()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn names_keep_their_ids_and_damage_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path(), "").unwrap();
        assert_eq!(ProducerIds::read(&directory).unwrap(), ProducerIds::default());
        let mut ids = ProducerIds::default();
        ids.insert(IdOwner::Producer, "a", IdOwner::Producer.ids().start);
        ids.insert(IdOwner::Transaction, "a", IdOwner::Transaction.ids().start + 1);
        ids.write(&directory).unwrap();
        let read = ProducerIds::read(&directory).unwrap();
        assert_eq!(read, ids);
        assert_eq!(read.get(IdOwner::Producer, "a"), Some(1_000_000_000_000_000));
        assert_eq!(read.get(IdOwner::Transaction, "a"), Some(2_000_000_000_000_001));
        assert_eq!(read.get(IdOwner::Transaction, "b"), None);
        let path = folder.path().join(PRODUCERS);
        let whole = std::fs::read(&path).unwrap();
        let other =
            |text: &str| format!("{text}crc32c {:08x}\n", crate::record::crc::crc32c(text.as_bytes()));
        let wrong_id = other("0\nproducer/a 7\n").into_bytes();
        let wrong_name = other("0\nconsumer/a 1000000000000000\n").into_bytes();
        for damaged in [whole[..whole.len() - 1].to_vec(), wrong_id, wrong_name, Vec::new()] {
            std::fs::write(&path, &damaged).unwrap();
            match ProducerIds::read(&directory) {
                Err(Error::Corrupt { place, .. }) => assert_eq!(place.file, path),
                other => panic!("{other:?} of {damaged:?}"),
            }
        }
    }
}
