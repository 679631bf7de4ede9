//! Messages as JSON, as Kafka's `*JsonConverter` classes and Jackson write them.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use super::java::write_double;
use super::message::{Message, Value, Version, default_value};
use super::schema::{Field, Struct};

/// A value that is written instead of a field's own.
pub(super) type Replacement<'r> = &'r dyn Fn(&Struct, &Field, &Value<'_>) -> Option<String>;

/// Writes messages in a version.
pub(super) struct JsonWriter<'r> {
    pub(super) version: Version,
    pub(super) replacement: Option<Replacement<'r>>,
}

/// Writes a message in a version, which may be another one than it was read in.
pub(super) fn write_message(out: &mut String, message: &Message<'_>, version: i16) {
    let writer = JsonWriter { version: Version::of(message.schema, version), replacement: None };
    writer.write_struct(out, message);
}

impl JsonWriter<'_> {
    pub(super) fn write_struct(&self, out: &mut String, message: &Message<'_>) {
        let schema = message.schema;
        out.push('{');
        let mut separator = "";
        for (field, value) in schema.fields.iter().zip(&message.values) {
            let is_default = || field.tag.is_some() && *value == default_value(field);
            if !field.is_in(self.version.known) || is_default() {
                continue;
            }
            out.push_str(separator);
            separator = ",";
            // names of fields need no escapes
            out.push('"');
            out.push_str(field.name);
            out.push_str("\":");
            match self.replacement.and_then(|replacement| replacement(schema, field, value)) {
                Some(json) => out.push_str(&json),
                None => self.write_value(out, value),
            }
        }
        out.push('}');
    }

    fn write_value(&self, out: &mut String, value: &Value<'_>) {
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(number) => out.push_str(itoa::Buffer::new().format(*number)),
            Value::Float(number) => write_float(out, *number),
            Value::Uuid(uuid) => {
                out.push('"');
                out.push_str(&uuid_text(*uuid));
                out.push('"');
            }
            Value::Text(text) => write_text(out, text),
            Value::Bytes(bytes) => {
                out.push('"');
                BASE64_STANDARD.encode_string(bytes, out);
                out.push('"');
            }
            Value::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.write_value(out, element);
                }
                out.push(']');
            }
            Value::Struct(message) => self.write_struct(out, message),
        }
    }
}

/// A UUID as Kafka's `Uuid.toString` writes it.
pub(super) fn uuid_text(uuid: [u8; 16]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(uuid)
}

/// Numbers that JSON does not have are texts.
fn write_float(out: &mut String, number: f64) {
    let quote = if number.is_finite() { "" } else { "\"" };
    out.push_str(quote);
    write_double(out, number);
    out.push_str(quote);
}

/// Jackson escapes quotes, backslashes and the control characters below the space, with upper-case
/// hexadecimal digits.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => {
                _ = write!(out, "\\u{:04X}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}
