//! What transaction coordinators know of producers, for transactions that logs show as open.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::super::message::{Message, Value};
use super::topic_logs::TableOptions;
use super::{TRANSACTION_STATE, metadata, transactions};
use crate::dir::LogDir;
use crate::error::{Error, Result};
use crate::log::OnDamage;

/// The timeout of a transaction whose id is not known, ms. *Source*: `TransactionStateManagerConfig`,
/// `transaction.max.timeout.ms`.
const MAX_TIMEOUT_MS: i64 = 900_000;

/// The states of the transactional ids in data directories, by producer id.
pub(super) struct CoordinatorStates {
    by_producer: HashMap<i64, Message<'static>>,
    /// Whether all partitions of `__transaction_state` are there and were read: then no other producer id
    /// has a state.
    is_complete: bool,
}

impl CoordinatorStates {
    /// Reads them. A directory without `__transaction_state` has none.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; other errors of these logs only make them incomplete.
    pub(super) fn read(directories: &[Arc<LogDir>], options: &TableOptions) -> Result<Self> {
        let mut states = Self { by_producer: HashMap::new(), is_complete: false };
        let present: BTreeSet<i64> = directories
            .iter()
            .flat_map(|directory| directory.partitions().values())
            .filter(|partition| partition.topic == TRANSACTION_STATE)
            .map(|partition| partition.partition.into())
            .collect();
        if present.is_empty() {
            return Ok(states);
        }
        let paths: Vec<&Path> = directories.iter().map(|directory| directory.path()).collect();
        let options =
            TableOptions { groups: None, topics: None, on_damage: OnDamage::Report, ..options.clone() };
        let table = match transactions(&paths, &options) {
            Ok(table) => table,
            Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
            Err(_) => return Ok(states),
        };
        let mut has_errors = false;
        for state in table.messages() {
            let is_error = state.get("error").is_some_and(|error| !matches!(error, Value::Null));
            has_errors |= is_error;
            // the row of an error has no producer id, and 0 is one
            if let (false, Some(Value::Number(producer_id))) = (is_error, state.get("producer_id")) {
                states.by_producer.insert(*producer_id, state.clone());
            }
        }
        // without the cluster's metadata, it is not known how many there are
        let count = partition_count(&paths, &options)?;
        states.is_complete = !has_errors && count.is_some_and(|count| present.into_iter().eq(0..count));
        Ok(states)
    }

    /// The state of a producer's transactional id; `None` if none is known.
    pub(super) fn of(&self, producer_id: i64) -> Option<&Message<'static>> {
        self.by_producer.get(&producer_id)
    }

    /// Whether a transaction hangs that a partition shows as open: it is older than its timeout, and its
    /// coordinator does not know that it is open there. `age`: ms since its last record. `None` if that
    /// is not known, because not all coordinators are there.
    ///
    /// *Source*: `TransactionsCommand.FindHangingTransactionsCommand`.
    pub(super) fn is_hanging(&self, producer_id: i64, topic: &str, partition: i64, age: i64) -> Option<bool> {
        let Some(state) = self.of(producer_id) else {
            return if age <= MAX_TIMEOUT_MS { Some(false) } else { self.is_complete.then_some(true) };
        };
        let is_expected = state.structs("partitions").any(|of_topic| {
            let numbers = match of_topic.get("partitions") {
                Some(Value::Array(numbers)) => numbers.as_slice(),
                _ => &[],
            };
            of_topic.text("topic") == topic && numbers.contains(&Value::Number(partition))
        });
        Some(age > state.number("timeout_ms") && !is_expected)
    }
}

/// The number of partitions of `__transaction_state` by the cluster's metadata; `None` if it is not in these
/// directories.
fn partition_count(paths: &[&Path], options: &TableOptions) -> Result<Option<i64>> {
    let options = TableOptions { topics: Some(vec![TRANSACTION_STATE.to_owned()]), ..options.clone() };
    match metadata(paths, &options) {
        Ok(metadata) => Ok(metadata.topics.messages().first().map(|topic| topic.number("partitions"))),
        Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
        Err(_) => Ok(None),
    }
}
