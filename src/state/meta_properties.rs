//! `meta.properties`: the ids of a data directory, its broker and its cluster. Kafka: `MetaProperties`,
//! `java.util.Properties`.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::fs::{Directory, META_PROPERTIES};

/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The properties of a data directory, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MetaProperties(BTreeMap<String, String>);

impl MetaProperties {
    /// Reads the file of a data directory; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn read(folder: &Directory) -> Result<Option<Self>> {
        Ok(folder.read_small(META_PROPERTIES, MAX_BYTES)?.map(|text| Self::parse(&text)))
    }

    fn parse(text: &[u8]) -> Self {
        // Java reads these files as Latin-1
        let text: String = text.iter().copied().map(char::from).collect();
        let lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
        let property = |line: &str| {
            let (name, value) = line.split_once(['=', ':', ' ', '\t']).unwrap_or((line, ""));
            let value = value.trim_start_matches([' ', '\t', '=', ':']).trim_end();
            (name.to_owned(), value.to_owned())
        };
        Self(lines.map(property).collect())
    }

    /// A property's text.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The id of the broker; `None` if there is none, or it is no number.
    pub(crate) fn node_id(&self) -> Option<i32> {
        self.get("node.id").or_else(|| self.get("broker.id"))?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_as_java_reads_them() {
        for text in
            ["node.id=7", "# a comment\nnode.id: 7\r\n", "node.id 7", "  node.id = 7  ", "broker.id=7"]
        {
            assert_eq!(MetaProperties::parse(text.as_bytes()).node_id(), Some(7), "{text}");
        }
        for text in ["", "node.id", "node.id=x", "#node.id=7"] {
            assert_eq!(MetaProperties::parse(text.as_bytes()).node_id(), None, "{text}");
        }
        assert_eq!(MetaProperties::parse(b"cluster.id=\xe4").get("cluster.id"), Some("\u{e4}"));
    }
}
