//! Paths in values that are serialized. Serde refuses a path that is not UTF-8; a text of the operating
//! system it takes.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The type of a field with paths.
pub(crate) trait Paths: Clone {
    /// The same with texts of the operating system.
    type Texts: DeserializeOwned + Serialize;

    fn into_texts(self) -> Self::Texts;

    fn of_texts(texts: Self::Texts) -> Self;
}

impl Paths for PathBuf {
    type Texts = OsString;

    fn into_texts(self) -> OsString {
        self.into_os_string()
    }

    fn of_texts(text: OsString) -> Self {
        text.into()
    }
}

impl<P: Paths> Paths for Option<P> {
    type Texts = Option<P::Texts>;

    fn into_texts(self) -> Self::Texts {
        self.map(P::into_texts)
    }

    fn of_texts(text: Self::Texts) -> Self {
        text.map(P::of_texts)
    }
}

impl<P: Paths> Paths for Vec<P> {
    type Texts = Vec<P::Texts>;

    fn into_texts(self) -> Self::Texts {
        self.into_iter().map(P::into_texts).collect()
    }

    fn of_texts(texts: Self::Texts) -> Self {
        texts.into_iter().map(P::of_texts).collect()
    }
}

/// For `serde(with = …)`.
pub(crate) fn serialize<P: Paths, S: Serializer>(paths: &P, serializer: S) -> Result<S::Ok, S::Error> {
    paths.clone().into_texts().serialize(serializer)
}

/// For `serde(with = …)`.
pub(crate) fn deserialize<'de, P: Paths, D: Deserializer<'de>>(deserializer: D) -> Result<P, D::Error> {
    P::Texts::deserialize(deserializer).map(P::of_texts)
}
