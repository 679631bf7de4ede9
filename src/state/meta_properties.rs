//! `meta.properties`: the ids of a data directory, its broker and its cluster. Kafka: `MetaProperties`,
//! `java.util.Properties`.

use std::collections::BTreeMap;

use super::{java_text, uuid};
use crate::error::Result;
use crate::fs::{Directory, META_PROPERTIES};

/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 64 << 10;

/// What a broker does not accept in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongProperties {
    pub(crate) expected: &'static str,
    pub(crate) found: String,
    /// Whether a broker loads the file: then it does not start, whatever other data directories it has.
    /// One that it cannot load takes the data directory offline.
    pub(crate) is_loaded: bool,
}

const NUMBER: &str = "the number of the broker, from 0 up";
const CLUSTER: &str = "cluster.id with the id of the cluster";

/// Whether Kafka reserves a UUID, so that it is no id of a directory. *Source*: `DirectoryId.reserved`.
fn is_reserved((upper, lower): (i64, i64)) -> bool {
    upper == 0 && lower < 100
}

/// The properties of a data directory, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MetaProperties {
    properties: BTreeMap<String, String>,
    /// The text for which the JDK does not load the file.
    malformed: Option<String>,
}

impl MetaProperties {
    /// Reads the file of a data directory; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn read(folder: &Directory) -> Result<Option<Self>> {
        Ok(folder.read_small(META_PROPERTIES, MAX_BYTES)?.map(|text| Self::parse(&text)))
    }

    fn parse(text: &[u8]) -> Self {
        match java_text::properties(text) {
            Ok(properties) => Self { properties, malformed: None },
            Err(malformed) => Self { properties: BTreeMap::new(), malformed: Some(malformed) },
        }
    }

    /// A property's text.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// The id of the data directory, as the metadata of the cluster has it.
    pub(crate) fn directory_id(&self) -> Option<String> {
        self.get("directory.id").map(|id| uuid::canonical(id).unwrap_or_else(|| id.to_owned()))
    }

    /// Checks what a broker needs of the file.
    ///
    /// *Source*: `MetaProperties.Builder`, `MetaPropertiesEnsemble.verify`.
    ///
    /// # Errors
    /// What is wrong. What a broker cannot load comes first: then it does not look at the ids.
    pub(crate) fn check(&self) -> std::result::Result<(), WrongProperties> {
        let number = |name: &str| self.get(name).map(str::parse::<i32>);
        let not_loaded = |expected, found| Err(WrongProperties { expected, found, is_loaded: false });
        if let Some(malformed) = &self.malformed {
            return not_loaded(
                "four hexadecimal digits after \\u, or \\\\ for a backslash",
                malformed.clone(),
            );
        }
        // of the numbers, Kafka trims only this one
        let node = match self.get("version").map(|version| version.trim().parse::<i32>()) {
            None | Some(Ok(0)) => "broker.id",
            Some(Ok(1)) => "node.id",
            _ => return not_loaded("version 0 or 1", self.shown("version")),
        };
        // version 0 may lack the ids: it is loaded, but no broker of KRaft starts with it
        let may_lack = node == "broker.id";
        if matches!(number(node), Some(Err(_))) || (self.get(node).is_none() && !may_lack) {
            return not_loaded(NUMBER, self.shown(node));
        }
        if self.get("cluster.id").is_none() && !may_lack {
            return not_loaded(CLUSTER, self.shown("cluster.id"));
        }
        let directory = self.get("directory.id").map(|given| (given, uuid::parse(given)));
        if let Some((given, None)) = directory {
            return not_loaded("directory.id with a UUID of 22 letters", format!("{given:?}"));
        }
        let refused = |expected, found| Err(WrongProperties { expected, found, is_loaded: true });
        if !matches!(number(node), Some(Ok(0..))) {
            return refused(NUMBER, self.shown(node));
        }
        if self.get("cluster.id").is_none() {
            return refused(CLUSTER, self.shown("cluster.id"));
        }
        if let Some((given, Some(id))) = directory
            && is_reserved(id)
        {
            return refused("directory.id with a UUID that Kafka does not reserve", format!("{given:?}"));
        }
        Ok(())
    }

    /// A property as the file has it.
    fn shown(&self, name: &str) -> String {
        self.get(name).map_or_else(|| format!("no {name}"), |value| format!("{name}={value}"))
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
    fn wrong_properties_are_refused_or_cannot_be_loaded() {
        let rest = "cluster.id=c\nnode.id=1\nbroker.id=1\n";
        for (text, is_loaded) in [
            ("version=2\n".to_owned() + rest, Some(false)),
            ("version=x\n".to_owned() + rest, Some(false)),
            ("version=1\ncluster.id=c\n".to_owned(), Some(false)),
            ("version=1\ncluster.id=c\nnode.id=x\n".to_owned(), Some(false)),
            ("version=1\nnode.id=1\n".to_owned(), Some(false)),
            ("version=0\ncluster.id=c\nbroker.id=x\n".to_owned(), Some(false)),
            ("directory.id=?\n".to_owned(), Some(false)),
            ("version=1\nnote=C:\\users\n".to_owned() + rest, Some(false)),
            ("version=1\n# C:\\users\n".to_owned() + rest, None),
            ("ver\\\n  sion=1\n".to_owned() + rest, None),
            ("version=1 \n".to_owned() + rest, None),
            ("version=1\ncluster.id=c\nnode.id=1 \n".to_owned(), Some(false)),
            (String::new(), Some(true)),
            ("version=0\ncluster.id=c\n".to_owned(), Some(true)),
            ("version=0\ncluster.id=c\nnode.id=1\n".to_owned(), Some(true)),
            ("version=0\nbroker.id=1\n".to_owned(), Some(true)),
            ("version=1\ncluster.id=c\nnode.id=-1\n".to_owned(), Some(true)),
            ("version=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n".to_owned() + rest, Some(true)),
            ("version=1\ndirectory.id=AAAAAAAAAAD__________w\n".to_owned() + rest, Some(true)),
            ("version=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZA\n".to_owned() + rest, None),
            ("version=1\ncluster.id=\nnode.id=1\n".to_owned(), None),
            ("version=0\ncluster.id=c\nbroker.id=1\n".to_owned(), None),
        ] {
            let checked = MetaProperties::parse(text.as_bytes()).check();
            assert_eq!(checked.err().map(|wrong| wrong.is_loaded), is_loaded, "{text}");
        }
    }

    #[test]
    fn properties_are_read_as_java_reads_them() {
        for text in ["node.id=7", "# a comment\nnode.id: 7\r\n", "node.id 7", "  node.id = 7", "broker.id=7"]
        {
            assert_eq!(MetaProperties::parse(text.as_bytes()).node_id(), Some(7), "{text}");
        }
        for text in ["", "node.id", "node.id=x", "node.id=7 ", "#node.id=7"] {
            assert_eq!(MetaProperties::parse(text.as_bytes()).node_id(), None, "{text}");
        }
        assert_eq!(MetaProperties::parse(b"cluster.id=\xe4").get("cluster.id"), Some("\u{e4}"));
    }
}
