//! What is wrong in a log of an internal topic.

/// Errors beyond these are counted, so that a log of other records does not fill the memory.
const MAX_ERRORS: usize = 1000;

/// An error, at the offset of a record or at the first one that is missing.
#[derive(Debug)]
pub(super) struct LogError {
    /// `None` for an error without a place.
    pub(super) offset: Option<i64>,
    pub(super) text: String,
}

/// The errors of a log: the first 1,000, and the number of the others.
#[derive(Debug, Default)]
pub(super) struct LogErrors {
    errors: Vec<LogError>,
    more: u64,
}

impl LogErrors {
    pub(super) fn add(&mut self, offset: impl Into<Option<i64>>, text: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(LogError { offset: offset.into(), text: text.into() });
        } else {
            self.more += 1;
        }
    }

    /// Puts the errors of an earlier part in front.
    pub(super) fn prepend(&mut self, earlier: Self) {
        let later = std::mem::replace(self, earlier);
        self.more += later.more;
        for LogError { offset, text } in later.errors {
            self.add(offset, text);
        }
    }

    /// Their number.
    pub(super) fn count(&self) -> u64 {
        self.errors.len() as u64 + self.more
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }
}

impl IntoIterator for LogErrors {
    type Item = LogError;
    type IntoIter = std::iter::Chain<std::vec::IntoIter<LogError>, std::option::IntoIter<LogError>>;

    /// The errors, and at the end one that has the number of the others.
    fn into_iter(self) -> Self::IntoIter {
        let more =
            (self.more > 0).then(|| LogError { offset: None, text: format!("{} more errors", self.more) });
        self.errors.into_iter().chain(more)
    }
}
