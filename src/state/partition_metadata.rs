//! `partition.metadata`: the id of the topic that a partition belongs to. Kafka: `PartitionMetadataFile`.
//!
//! ```text
//! version: 0
//! topic_id: aFsHoJ8mSkaI5w7rWQb5Qg            22 base64url characters: 16 bytes. No newline follows
//! ```

use std::fmt;
use std::str::FromStr;

use super::{java_text, uuid};
use crate::error::{Error, Malformed};
use crate::fs::Directory;

/// The name of the file, in the partition directory.
pub const PARTITION_METADATA: &str = "partition.metadata";

/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 64 << 10;

/// A topic id in Kafka's notation: 22 base64url characters. Kafka: `Uuid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicId(String);

impl TopicId {
    /// Parses the id from the text of the file.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    pub fn parse_file(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        let field = |line: Option<&str>, name: &str| {
            let found = line.unwrap_or_default();
            let value = value(found).filter(|_| found.split(':').next() == Some(name));
            value.map(str::to_owned).ok_or_else(|| format!("expected a line \"{name}: …\", found {found:?}"))
        };
        let mut lines = java_text::lines(text);
        let version = field(lines.next(), "version")?;
        // as in Kafka, newer versions are accepted
        if !version.parse::<i32>().is_ok_and(|version| version >= 0) {
            return Err(format!("expected a version, 0 or above, found {version:?}"));
        }
        field(lines.next(), "topic_id")?.parse().map_err(|error: Error| error.to_string())
    }

    /// Reads the file in a partition directory; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the file has no valid topic id; [`Error::Io`].
    pub(crate) fn read(directory: &Directory) -> crate::error::Result<Option<Self>> {
        let Some(text) = directory.read_small(PARTITION_METADATA, MAX_BYTES)? else { return Ok(None) };
        let parsed = Self::parse_file(&text).map_err(|wrong| {
            let expected =
                "a topic id (restore the file from another replica; a broker renames a directory without it)";
            Malformed::new(expected, wrong).at(directory.path_of(PARTITION_METADATA), 0, None)
        });
        parsed.map(Some)
    }

    /// Replaces the file in a partition directory, durably.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(&self, directory: &Directory) -> crate::error::Result<()> {
        directory.replace(PARTITION_METADATA, self.to_file().as_bytes())
    }

    /// The text of the file.
    pub fn to_file(&self) -> String {
        format!("version: 0\ntopic_id: {self}")
    }
}

/// The value in `name: value`; a line of another form has none, such as one without the white space.
///
/// *Source*: `PartitionMetadataReadBuffer.read`.
pub(crate) fn value(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(':')?;
    let value = rest.trim_start_matches([' ', '\t', '\u{b}', '\u{c}']);
    (value.len() < rest.len() && !value.is_empty()).then_some(value)
}

impl fmt::Display for TopicId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for TopicId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(id) = uuid::canonical(text).filter(|_| uuid::parse(text) != Some((0, 0))) {
            return Ok(Self(id));
        }
        let expected = "22 base64url characters, as Kafka prints a topic id, and not all zero";
        Err(Error::config("topic_id", expected, format!("{text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::TopicId;

    #[test]
    fn the_file_is_read_and_written_as_kafka_does() {
        let text = "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg";
        for same in [text.to_owned(), text.replace('\n', "\r") + "\r", text.replace(' ', " \t")] {
            assert_eq!(TopicId::parse_file(same.as_bytes()).unwrap().to_file(), text);
        }
        let same = TopicId::parse_file(b"version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qh").unwrap();
        assert_eq!(same.to_file(), text);
        for broken in [
            "",
            "version: x\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg",
            "version:0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg",
            "version: 0\ntopic_id:aFsHoJ8mSkaI5w7rWQb5Qg",
            "version: 0 \ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg",
            "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg ",
            "version: 0\n",
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
            "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5",
        ] {
            assert!(TopicId::parse_file(broken.as_bytes()).is_err(), "{broken:?}");
        }
    }
}
