//! Values of settings and their texts: allowed values, and parsing as in Kafka's `ConfigDef.parseType`.

use std::fmt;

use crate::types::TimestampType;

/// A setting's value, of any type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number from 0 to 1.
    Ratio(f64),
    /// `true` or `false`.
    Flag(bool),
    /// One of the allowed words.
    Word(&'static str),
    /// Some of the allowed words, in the order of the allowed words.
    Words(Vec<&'static str>),
    /// That of `message.timestamp.type`.
    TimestampType(TimestampType),
}

impl Value {
    pub(super) fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    pub(super) fn ratio(&self) -> Option<f64> {
        if let Self::Ratio(ratio) = self { Some(*ratio) } else { None }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        if let Self::Flag(flag) = self { Some(*flag) } else { None }
    }

    pub(super) fn word(&self) -> Option<&'static str> {
        if let Self::Word(word) = self { Some(word) } else { None }
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        matches!(self, Self::Words(words) if words.contains(&word))
    }
}

/// The text in Kafka's properties.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(formatter),
            Self::Ratio(ratio) => write!(formatter, "{ratio:?}"),
            Self::Flag(flag) => flag.fmt(formatter),
            Self::Word(word) => word.fmt(formatter),
            Self::Words(words) => words.join(",").fmt(formatter),
            Self::TimestampType(kind) => kind.name().fmt(formatter),
        }
    }
}

/// The allowed values of a setting. Its text is used in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allowed {
    /// A whole number.
    Integer {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
    /// A whole number in a range, or one other number.
    IntegerOr {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
        /// The other number.
        or: i64,
    },
    /// A number from 0 to 1.
    Ratio,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    OneOf(&'static [&'static str]),
    /// Any number of some words, separated by commas; may be empty.
    ListOf(&'static [&'static str]),
}

impl Allowed {
    /// Parses a text; `None` if it has another type. [`Allowed::admits`] checks the range.
    #[doc(hidden)]
    pub fn parse(self, text: &str) -> Option<Value> {
        let text = trim(text);
        match self {
            Self::Integer { .. } | Self::IntegerOr { .. } => text.parse().ok().map(Value::Integer),
            // Rust would also parse `inf` and `nan`
            Self::Ratio if text.bytes().any(|byte| !b"0123456789+-.eE".contains(&byte)) => None,
            Self::Ratio => text.parse().ok().map(Value::Ratio),
            Self::Flag if text.eq_ignore_ascii_case("true") => Some(Value::Flag(true)),
            Self::Flag if text.eq_ignore_ascii_case("false") => Some(Value::Flag(false)),
            Self::Flag => None,
            Self::OneOf(words) => words.iter().find(|word| **word == text).map(|word| Value::Word(word)),
            Self::ListOf(_) if text.is_empty() => Some(Value::Words(Vec::new())),
            Self::ListOf(words) => {
                let given: Vec<_> = text.split(',').map(trim).collect();
                let known = given.iter().all(|word| words.contains(word));
                let present = words.iter().copied().filter(|word| given.contains(word));
                known.then(|| Value::Words(present.collect()))
            }
        }
    }

    /// Whether a value of the right type is in range.
    #[doc(hidden)]
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer { min, max }, Value::Integer(number)) => (min..=max).contains(number),
            (Self::IntegerOr { min, max, or }, Value::Integer(number)) => {
                (min..=max).contains(number) || *number == or
            }
            (Self::Ratio, Value::Ratio(ratio)) => (0.0..=1.0).contains(ratio),
            (Self::Flag, Value::Flag(_)) => true,
            (Self::OneOf(words), Value::Word(word)) => words.contains(word),
            (Self::OneOf(words), Value::TimestampType(kind)) => words.contains(&kind.name()),
            (Self::ListOf(words), Value::Words(given)) => given.iter().all(|word| words.contains(word)),
            _ => false,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max } => write!(formatter, "a whole number from {min} to {max}"),
            Self::IntegerOr { min, max, or } => {
                write!(formatter, "a whole number from {min} to {max}, or {or}")
            }
            Self::Ratio => formatter.write_str("a number from 0 to 1"),
            Self::Flag => formatter.write_str("true or false"),
            Self::OneOf(words) => write!(formatter, "one of {}", words.join(", ")),
            Self::ListOf(words) => write!(formatter, "any of {}, separated by commas", words.join(", ")),
        }
    }
}

/// Java's `String.trim`: it removes control characters and spaces, and no character above U+0020.
fn trim(text: &str) -> &str {
    text.trim_matches(|letter| letter <= ' ')
}
