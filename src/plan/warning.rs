//! Warnings of plans and tasks, which the engine's adapter logs.

use serde_json::{Map, Value};

use super::error::PlanError;

/// A warning.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// A sentence.
    pub text: String,
    /// The place, for programs: `topic`, `partition`, `file`, `position`, `offset`, as far as it is known.
    pub context: Map<String, Value>,
}

impl Warning {
    /// A warning without a place.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), context: Map::new() }
    }

    /// An error about lost or skipped data as a warning. `more` is appended to its sentence.
    pub(crate) fn of(error: &PlanError, more: &str) -> Self {
        let place = [
            ("topic", error.topic.clone().map(Value::from)),
            ("partition", error.partition.map(Value::from)),
        ];
        Self {
            text: error.sentence() + more,
            context: place.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
        }
    }

    /// The same warning with a part of its place.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.context.insert(name.to_owned(), value.into());
        self
    }
}
