//! The values of a message's fields by name and type.

use super::message::{Message, Value};

impl<'a> Message<'a> {
    /// A number; 0 if the field is not one.
    pub(super) fn number(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    /// A text; empty if the field is null or not one.
    pub(super) fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// A UUID; zero if the field is not one.
    pub(super) fn uuid(&self, name: &str) -> [u8; 16] {
        match self.get(name) {
            Some(Value::Uuid(uuid)) => *uuid,
            _ => [0; 16],
        }
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// The structures of an array; none if it is null.
    pub(super) fn structs(&self, name: &str) -> impl Iterator<Item = &Message<'a>> {
        let elements = match self.get(name) {
            Some(Value::Array(elements)) => elements.as_slice(),
            _ => &[],
        };
        elements.iter().filter_map(|element| match element {
            Value::Struct(message) => Some(message),
            _ => None,
        })
    }

    /// A copy of a field's value; null if there is no such field.
    pub(super) fn value(&self, name: &str) -> Value<'a> {
        self.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Replaces a field's value.
    pub(super) fn set(&mut self, name: &str, value: Value<'a>) {
        let place = self.schema.fields.iter().position(|field| field.name == name);
        if let Some(field) = place.and_then(|at| self.values.get_mut(at)) {
            *field = value;
        }
    }
}

/// The text at the start of a key's message: the group, in the records of groups.
pub(super) fn leading_text(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let (length, text) = bytes.split_first_chunk::<2>()?;
    let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
    text.get(..length).map(crate::record::java_string)
}
