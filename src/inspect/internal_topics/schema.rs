//! Schemas of messages, as Kafka publishes them: fields, types, and the versions that have them.

/// The fields of a message, or of a structure in one.
#[derive(Debug)]
pub(super) struct Struct {
    /// Kafka's name of the class.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) place: Place,
}

/// Where a structure stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// A message, with its versions and the first version that is flexible.
    Message { lowest: i16, highest: i16, flexible: Option<i16> },
    /// Defined where it is used: Kafka's class reads no version above the message's highest.
    Nested,
    /// Defined for several fields (`commonStructs`): Kafka's class reads every version.
    Shared,
}

/// A field of a structure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    since: i16,
    until: i16,
    nullable_since: Option<i16>,
    /// The field is in the section of tagged fields, under this number, and absent if it has the default.
    pub(super) tag: Option<i32>,
    pub(super) default: Default,
}

/// The value of a field in versions without it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Default {
    /// A number (1 is `true`); or for other types an empty value: no text, no bytes, no elements, the zero
    /// UUID.
    Number(i64),
    Null,
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Int8,
    Int16,
    UInt16,
    Int32,
    Int64,
    /// Milliseconds since the epoch. Only in tables: Kafka's schemas have no type for it.
    Time,
    Float64,
    Uuid,
    Text,
    Bytes,
    Struct(&'static Struct),
    Array(&'static Kind),
}

impl Struct {
    pub(super) const fn message(
        name: &'static str,
        lowest: i16,
        highest: i16,
        fields: &'static [Field],
    ) -> Self {
        Self { name, fields, place: Place::Message { lowest, highest, flexible: None } }
    }

    /// From this version on, lengths are varints, and each structure ends with tagged fields.
    pub(super) const fn flexible(self, since: i16) -> Self {
        match self.place {
            Place::Message { lowest, highest, .. } => {
                Self { place: Place::Message { lowest, highest, flexible: Some(since) }, ..self }
            }
            Place::Nested | Place::Shared => self,
        }
    }

    pub(super) const fn nested(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, place: Place::Nested }
    }

    pub(super) const fn shared(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, place: Place::Shared }
    }

    /// The lowest and the highest version of a message.
    pub(super) fn versions(&self) -> (i16, i16) {
        match self.place {
            Place::Message { lowest, highest, .. } => (lowest, highest),
            Place::Nested | Place::Shared => (0, i16::MAX),
        }
    }
}

/// A field of every version.
pub(super) const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        since: 0,
        until: i16::MAX,
        nullable_since: None,
        tag: None,
        default: Default::Number(0),
    }
}

impl Field {
    pub(super) const fn since(self, since: i16) -> Self {
        Self { since, ..self }
    }

    /// In the versions from `since` to `until`, both included.
    pub(super) const fn only(self, since: i16, until: i16) -> Self {
        Self { since, until, ..self }
    }

    pub(super) const fn nullable(self) -> Self {
        self.nullable_since(0)
    }

    pub(super) const fn nullable_since(self, since: i16) -> Self {
        Self { nullable_since: Some(since), ..self }
    }

    pub(super) const fn tag(self, tag: i32) -> Self {
        Self { tag: Some(tag), ..self }
    }

    pub(super) const fn default(self, default: i64) -> Self {
        Self { default: Default::Number(default), ..self }
    }

    pub(super) const fn default_null(self) -> Self {
        Self { default: Default::Null, ..self }
    }

    pub(super) fn is_in(&self, version: i16) -> bool {
        (self.since..=self.until).contains(&version)
    }

    pub(super) fn is_nullable(&self, version: i16) -> bool {
        self.nullable_since.is_some_and(|since| version >= since)
    }
}
