//! What a writer is opened with, looked at before anything is made.

use super::WriterOptions;
use crate::error::{Error, Result};

/// An entry of a time index, the larger of the two kinds, bytes.
const LARGEST_ENTRY: u32 = 12;

impl WriterOptions {
    /// Whether a log can be opened with these options, as far as they can say it themselves.
    ///
    /// # Errors
    /// [`Error::Config`]: for a setting that is not allowed; for a `segment.index.bytes` that holds no entry, which Kafka
    /// lets pass and then rolls at each append; for a negative epoch.
    pub(crate) fn check(&self) -> Result<()> {
        self.config.validate()?;
        if self.config.segment_index_bytes < LARGEST_ENTRY {
            return Err(Error::config(
                "segment.index.bytes",
                format!(
                    "{LARGEST_ENTRY} or more to write with: an entry of a time index takes as many bytes"
                ),
                self.config.segment_index_bytes.to_string(),
            ));
        }
        if let Some(epoch) = self.leader_epoch.filter(|epoch| *epoch < 0) {
            return Err(Error::config("leader_epoch", "an epoch, 0 or above", epoch.to_string()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::WriterOptions;
    use crate::config::LogConfig;

    #[test]
    fn an_index_has_room_for_an_entry() {
        for (bytes, is_allowed) in [(3, false), (4, false), (11, false), (12, true)] {
            let config = LogConfig { segment_index_bytes: bytes, ..LogConfig::default() };
            let checked = WriterOptions { config, ..WriterOptions::default() }.check();
            assert_eq!(checked.is_ok(), is_allowed, "{bytes}: {checked:?}");
        }
    }

    #[test]
    fn an_epoch_is_not_negative() {
        assert!(WriterOptions { leader_epoch: Some(-1), ..WriterOptions::default() }.check().is_err());
    }
}
