//! Flush modes: when an append is acknowledged.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// When appended records are made durable (`fdatasync`), and whether an append waits for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FlushMode {
    /// Before each append returns; concurrent appends share one sync.
    #[default]
    Always,
    /// As [`FlushMode::Always`], but the first of several appends waits for others before it syncs for all of
    /// them.
    Group {
        /// The maximum wait, ms.
        ms: u64,
        /// The wait ends early after this many appended bytes.
        bytes: u64,
    },
    /// An append syncs before it returns if `messages` records or `ms` milliseconds have passed since the
    /// last sync; otherwise it returns at once. Without either limit, Kafka's settings `flush.messages`
    /// and `flush.ms` are used.
    Interval {
        /// Records since the last sync.
        messages: Option<u64>,
        /// Time since the last sync, ms; checked only by the next append.
        ms: Option<u64>,
    },
    /// An append returns at once. Only `flush`, a roll and a close sync.
    None,
}

impl FlushMode {
    /// The default of `ms` of [`FlushMode::Group`].
    #[doc(hidden)]
    pub const GROUP_MS: u64 = 2;
    /// The default of `bytes` of [`FlushMode::Group`].
    #[doc(hidden)]
    pub const GROUP_BYTES: u64 = 1 << 20;
}

impl fmt::Display for FlushMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => formatter.write_str("always"),
            Self::None => formatter.write_str("none"),
            Self::Group { ms, bytes } => write!(formatter, "group(ms={ms}, bytes={bytes})"),
            Self::Interval { messages, ms } => {
                let fields = [("messages", messages), ("ms", ms)];
                let fields =
                    fields.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
                write!(formatter, "interval({})", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl FromStr for FlushMode {
    type Err = Error;

    /// Parses `always`, `none`, `group(ms=5, bytes=65536)`, `interval(messages=1000, ms=50)`. Without names,
    /// values are taken in this order. Fields may be omitted: the defaults of a group are 2 ms and 1 MiB.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let expected = "\"always\", \"none\", \"group(ms=N, bytes=N)\" with integers of 0 or above, or \
                            \"interval(messages=N, ms=N)\" with integers of 1 or above; either field may be omitted";
            Error::config("flush", expected, format!("{text:?}"))
        };
        let text = text.trim();
        let (name, fields) = match text.split_once('(') {
            Some((name, fields)) => (name.trim(), fields.strip_suffix(')').ok_or_else(wrong)?),
            None => (text, ""),
        };
        let names = match name {
            "always" if fields.is_empty() => return Ok(Self::Always),
            "none" if fields.is_empty() => return Ok(Self::None),
            "group" => ["ms", "bytes"],
            "interval" => ["messages", "ms"],
            _ => return Err(wrong()),
        };
        let mut values = [None; 2];
        for (index, field) in fields.split(',').map(str::trim).filter(|field| !field.is_empty()).enumerate() {
            let (index, value) = match field.split_once('=') {
                Some((name, value)) => {
                    let index = names.iter().position(|known| *known == name.trim()).ok_or_else(wrong)?;
                    (index, value.trim())
                }
                None => (index, field),
            };
            let slot = values.get_mut(index).filter(|slot| slot.is_none()).ok_or_else(wrong)?;
            *slot = Some(
                value
                    .replace('_', "")
                    .parse()
                    .ok()
                    .filter(|value| *value > 0 || name == "group")
                    .ok_or_else(wrong)?,
            );
        }
        let [first, second] = values;
        Ok(match name {
            "group" => Self::Group {
                ms: first.unwrap_or(Self::GROUP_MS),
                bytes: second.unwrap_or(Self::GROUP_BYTES),
            },
            _ => Self::Interval { messages: first, ms: second },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::FlushMode;

    #[test]
    fn a_mode_parses_from_its_text() {
        let interval = |messages, ms| FlushMode::Interval { messages, ms };
        for (text, mode) in [
            ("always", FlushMode::Always),
            ("none", FlushMode::None),
            ("group", FlushMode::Group { ms: 2, bytes: 1 << 20 }),
            ("group(5, 65_536)", FlushMode::Group { ms: 5, bytes: 65_536 }),
            ("group(bytes=7)", FlushMode::Group { ms: 2, bytes: 7 }),
            ("interval", interval(None, None)),
            ("interval(100)", interval(Some(100), None)),
            ("interval(ms=50)", interval(None, Some(50))),
            ("interval(messages=9, ms=50)", interval(Some(9), Some(50))),
        ] {
            assert_eq!(text.parse::<FlushMode>().unwrap(), mode, "{text}");
            assert_eq!(mode.to_string().parse::<FlushMode>().unwrap(), mode, "{mode}");
        }
        for text in
            ["", "often", "always(1)", "group(1", "group(1,2,3)", "group(x=1)", "interval(0)", "interval(-1)"]
        {
            assert!(text.parse::<FlushMode>().is_err(), "{text}");
        }
    }
}
