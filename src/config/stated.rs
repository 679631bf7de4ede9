//! Which settings of a log somebody has stated.

use std::collections::BTreeMap;

use super::LogConfig;
use super::settings::{COUNT, Setting, settings};

/// The settings of a [`LogConfig`] that somebody has stated for the log: its owner, its topic or its broker.
/// The others are Kafka's defaults, which are no statement about this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatedSettings(u32);

impl StatedSettings {
    /// All of them: also a value that equals Kafka's default is that of the log.
    pub const ALL: Self = Self(u32::MAX >> (u32::BITS as usize - COUNT));

    /// The settings of these names, which are names of topics' settings, such as `retention.ms`. Unknown
    /// names are left out.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut stated = Self::default();
        names.into_iter().for_each(|name| stated.add(name));
        stated
    }

    /// Adds the setting of a name.
    pub(crate) fn add(&mut self, name: &str) {
        self.0 |= bit(name);
    }

    fn has(self, name: &str) -> bool {
        self.0 & bit(name) != 0
    }
}

/// The bit of a setting; none for an unknown name.
fn bit(name: &str) -> u32 {
    let place = settings().position(|setting| setting.name == name);
    place.and_then(|place| 1_u32.checked_shl(u32::try_from(place).ok()?)).unwrap_or(0)
}

impl LogConfig {
    /// Whether somebody has stated a setting, by its name for topics (`retention.ms`): [`LogConfig::stated`]
    /// has it, or its value is not Kafka's default.
    pub fn states(&self, name: &str) -> bool {
        let is_other = |setting: &Setting| setting.value(self) != setting.value(&Self::default());
        self.stated.has(name) || settings().find(|setting| setting.name == name).is_some_and(is_other)
    }

    /// The stated settings under their topic names.
    #[cfg(any(feature = "inspect", feature = "binding"))]
    #[doc(hidden)]
    pub fn stated_properties(&self) -> BTreeMap<String, String> {
        self.properties_of(|setting| self.states(setting.name))
    }

    /// Some settings under their topic names.
    pub(super) fn properties_of(&self, is_wanted: impl Fn(&Setting) -> bool) -> BTreeMap<String, String> {
        let wanted = settings().filter(|setting| is_wanted(setting));
        wanted.map(|setting| (self.property_name(setting).to_owned(), setting.text(self))).collect()
    }
}
