//! `partition.metadata`: the id of the topic that a partition belongs to. Kafka: `PartitionMetadataFile`.
//!
//! ```text
//! version: 0
//! topic_id: aFsHoJ8mSkaI5w7rWQb5Qg            22 letters of base64url: 16 bytes. No newline behind them
//! ```

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The name of the file, in the partition directory.
pub const PARTITION_METADATA: &str = "partition.metadata";

/// A topic's id, as Kafka writes it: 22 letters of base64url. Kafka: `Uuid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicId(String);

impl TopicId {
    /// The id in the text of the file.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse_file(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        let field = |line: Option<&str>, name: &str| {
            let found = line.unwrap_or_default();
            let value = found.split_once(':').filter(|(key, _)| *key == name).map(|(_, value)| value.trim());
            value.map(str::to_owned).ok_or_else(|| format!("expected a line \"{name}: …\", found {found:?}"))
        };
        let mut lines = text.lines();
        let version = field(lines.next(), "version")?;
        // newer ones are read, too, as Kafka does
        if !version.parse::<i32>().is_ok_and(|version| version >= 0) {
            return Err(format!("expected a version, 0 or above, found {version:?}"));
        }
        field(lines.next(), "topic_id")?.parse().map_err(|error: Error| error.to_string())
    }

    /// The text of the file.
    pub fn to_file(&self) -> String {
        format!("version: 0\ntopic_id: {self}")
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for TopicId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
        // the last of 22 letters carries 2 bits only
        let is_id = text.len() == 22 && text.bytes().all(is_letter) && text.ends_with(['A', 'Q', 'g', 'w']);
        if is_id && text.bytes().any(|letter| letter != b'A') {
            return Ok(Self(text.to_owned()));
        }
        let expected = "22 letters of base64url, as Kafka prints a topic's id, and not all zero";
        Err(Error::config("topic_id", expected, format!("{text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::TopicId;

    #[test]
    fn the_file_is_read_and_written_as_kafka_does() {
        let text = "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg";
        assert_eq!(TopicId::parse_file(text.as_bytes()).unwrap().to_file(), text);
        for broken in [
            "",
            "version: x\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg",
            "version: 0\n",
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
            "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qh",
            "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5",
        ] {
            assert!(TopicId::parse_file(broken.as_bytes()).is_err(), "{broken:?}");
        }
    }
}
