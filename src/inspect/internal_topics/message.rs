//! A message as values, decoded by its schema. Kafka: the `read` methods that its message generator writes.
//!
//! ```text
//! text, bytes, array   length i16 (text) or i32 │ content         flexible: length + 1 as an unsigned varint │ content
//! structure            its fields, one after the other            flexible: │ number of tagged fields │ (tag │ size │ value) …
//! nullable structure   i8, negative for null │ the structure
//! ```
//!
//! Numbers are big-endian. Tagged fields are where their tag is, and have the default where it is not.

use std::borrow::Cow;

use super::readable::{DecodeError, Readable};
use super::schema::{Default, Field, Kind, Place, Struct};
use crate::record::java_string;

/// A decoded structure: a value for each field of the schema, in its order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message<'a> {
    pub(super) schema: &'static Struct,
    pub(super) values: Vec<Value<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Float(f64),
    Uuid([u8; 16]),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    Array(Vec<Value<'a>>),
    Struct(Message<'a>),
}

/// The version of a message, in the two ways in which Kafka's classes use it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    /// As it is in the record.
    pub(super) number: i16,
    /// The nearest one that the schema has: it decides which fields there are.
    pub(super) known: i16,
    pub(super) highest: i16,
    pub(super) is_flexible: bool,
}

impl Version {
    pub(super) fn of(schema: &Struct, number: i16) -> Self {
        let (lowest, highest) = schema.versions();
        let known = number.clamp(lowest, highest);
        let is_flexible = match schema.place {
            Place::Message { flexible, .. } => flexible.is_some_and(|since| known >= since),
            Place::Nested | Place::Shared => false,
        };
        Self { number, known, highest, is_flexible }
    }

    /// Whether Kafka's class of the structure has this version.
    pub(super) fn is_readable(self, schema: &Struct) -> bool {
        !matches!(schema.place, Place::Nested) || self.number <= self.highest
    }
}

impl PartialEq for Struct {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl<'a> Message<'a> {
    /// Decodes a message from the front of `input`.
    ///
    /// # Errors
    /// [`DecodeError`], with Kafka's text.
    ///
    /// *Memory*: in proportion to the bytes, and at most a million values; no count in them reserves memory.
    pub(super) fn read(
        schema: &'static Struct,
        input: &mut Readable<'a>,
        version: i16,
    ) -> Result<Self, DecodeError> {
        read_struct(schema, input, Version::of(schema, version))
    }

    /// The same with values of its own.
    pub(super) fn into_owned(self) -> Message<'static> {
        let values = self.values.into_iter().map(Value::into_owned).collect();
        Message { schema: self.schema, values }
    }

    /// A field's value; `None` if the schema has no such field.
    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        let at = self.schema.fields.iter().position(|field| field.name == name)?;
        self.values.get(at)
    }
}

impl Value<'_> {
    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => Value::Number(number),
            Self::Float(number) => Value::Float(number),
            Self::Uuid(uuid) => Value::Uuid(uuid),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Array(elements) => Value::Array(elements.into_iter().map(Value::into_owned).collect()),
            Self::Struct(message) => Value::Struct(message.into_owned()),
        }
    }
}

fn read_struct<'a>(
    schema: &'static Struct,
    input: &mut Readable<'a>,
    version: Version,
) -> Result<Message<'a>, DecodeError> {
    if !version.is_readable(schema) {
        return Err(DecodeError::new(format!("Can't read version {} of {}", version.number, schema.name)));
    }
    input.make_values(schema.fields.len())?;
    let mut values = Vec::with_capacity(schema.fields.len());
    for field in schema.fields {
        values.push(if field.is_in(version.known) && field.tag.is_none() {
            read_field(field, input, version)?
        } else {
            default_value(field)
        });
    }
    if version.is_flexible {
        read_tagged_fields(schema, input, version, &mut values)?;
    }
    Ok(Message { schema, values })
}

fn read_tagged_fields<'a>(
    schema: &'static Struct,
    input: &mut Readable<'a>,
    version: Version,
    values: &mut [Value<'a>],
) -> Result<(), DecodeError> {
    for _ in 0..input.unsigned_varint()? {
        let tag = input.unsigned_varint()?;
        let size = input.unsigned_varint()?;
        let known = schema.fields.iter().zip(values.iter_mut()).find(|(field, _)| field.tag == Some(tag));
        let Some((field, value)) = known else {
            input.bytes(size)?;
            continue;
        };
        if !field.is_in(version.known) {
            return Err(DecodeError::new(format!("Tag {tag} is not valid for version {}", version.number)));
        }
        // Kafka's classes do not compare the size with what they read
        *value = match field.kind {
            Kind::Struct(nested) if field.is_nullable(version.known) => {
                if input.unsigned_varint()? <= 0 {
                    Value::Null
                } else {
                    Value::Struct(read_struct(nested, input, version)?)
                }
            }
            _ => read_field(field, input, version)?,
        };
    }
    Ok(())
}

fn read_field<'a>(
    field: &Field,
    input: &mut Readable<'a>,
    version: Version,
) -> Result<Value<'a>, DecodeError> {
    if let (Kind::Struct(_), true) = (field.kind, field.is_nullable(version.known))
        && input.int8()? < 0
    {
        return Ok(Value::Null);
    }
    let place = ValueName { field: field.name, is_element: false };
    read_value(field.kind, place, field.is_nullable(version.known), input, version)
}

/// How errors name a value.
#[derive(Clone, Copy)]
struct ValueName {
    field: &'static str,
    is_element: bool,
}

impl std::fmt::Display for ValueName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.field, if self.is_element { " element" } else { "" })
    }
}

fn read_value<'a>(
    kind: Kind,
    name: ValueName,
    is_nullable: bool,
    input: &mut Readable<'a>,
    version: Version,
) -> Result<Value<'a>, DecodeError> {
    Ok(match kind {
        Kind::Bool => Value::Bool(input.int8()? != 0),
        Kind::Int8 => Value::Number(input.int8()?.into()),
        Kind::Int16 => Value::Number(input.int16()?.into()),
        Kind::UInt16 => Value::Number(u16::from_be_bytes(input.array()?).into()),
        Kind::Int32 => Value::Number(input.int32()?.into()),
        Kind::Int64 | Kind::Time => Value::Number(input.int64()?),
        Kind::Float64 => Value::Float(f64::from_be_bytes(input.array()?)),
        Kind::Uuid => Value::Uuid(input.array()?),
        Kind::Struct(schema) => Value::Struct(read_struct(schema, input, version)?),
        Kind::Text | Kind::Bytes | Kind::Array(_) => {
            let length = read_length(matches!(kind, Kind::Text), input, version)?;
            if length < 0 && is_nullable {
                return Ok(Value::Null);
            }
            if length < 0 {
                return Err(DecodeError::new(format!("non-nullable field {name} was serialized as null")));
            }
            read_content(kind, name, length, input, version)?
        }
    })
}

/// The length of text, bytes or an array; negative for null.
fn read_length(is_text: bool, input: &mut Readable<'_>, version: Version) -> Result<i32, DecodeError> {
    if version.is_flexible {
        return Ok(input.unsigned_varint()?.wrapping_sub(1));
    }
    if is_text { Ok(input.int16()?.into()) } else { input.int32() }
}

fn read_content<'a>(
    kind: Kind,
    name: ValueName,
    length: i32,
    input: &mut Readable<'a>,
    version: Version,
) -> Result<Value<'a>, DecodeError> {
    match kind {
        Kind::Text if length > i16::MAX.into() => {
            Err(DecodeError::new(format!("string field {name} had invalid length {length}")))
        }
        Kind::Text => Ok(Value::Text(java_string(input.bytes(length)?))),
        Kind::Array(_) if length > input.remaining() => Err(DecodeError::new(format!(
            "Tried to allocate a collection of size {length}, but there are only {} bytes remaining.",
            input.remaining()
        ))),
        Kind::Array(element) => {
            input.make_values(usize::try_from(length).unwrap_or(usize::MAX))?;
            let name = ValueName { is_element: true, ..name };
            let elements = (0..length).map(|_| read_value(*element, name, false, input, version));
            Ok(Value::Array(elements.collect::<Result<_, _>>()?))
        }
        _ => Ok(Value::Bytes(Cow::Borrowed(input.bytes(length)?))),
    }
}

/// The value of a field in a version without it, and of a tagged field that is not there.
pub(super) fn default_value<'a>(field: &Field) -> Value<'a> {
    let Default::Number(number) = field.default else {
        return Value::Null;
    };
    match field.kind {
        Kind::Bool => Value::Bool(number != 0),
        Kind::Float64 => Value::Float(0.0),
        Kind::Uuid => Value::Uuid([0; 16]),
        Kind::Text => Value::Text(Cow::Borrowed("")),
        Kind::Bytes => Value::Bytes(Cow::Borrowed(&[])),
        Kind::Array(_) => Value::Array(Vec::new()),
        Kind::Struct(schema) => {
            Value::Struct(Message { schema, values: schema.fields.iter().map(default_value).collect() })
        }
        Kind::Int8 | Kind::Int16 | Kind::UInt16 | Kind::Int32 | Kind::Int64 | Kind::Time => {
            Value::Number(number)
        }
    }
}
