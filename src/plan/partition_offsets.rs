//! Offsets or times by topic and partition, as JSON: `{"orders":{"0":23,"1":42}}`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::{Code, PlanError, Result};
use crate::text::{TIME_FORMS, TimeText, write_time};

/// In offsets: the log start offset.
pub(crate) const EARLIEST: i64 = -2;
/// In offsets: the log end offset; for `read_committed` the last stable offset.
pub(crate) const LATEST: i64 = -1;

const OFFSETS: &str = r#"{"orders":{"0":23,"1":42}}"#;

/// A topic and a partition.
pub type PartitionKey = (String, i32);

/// Offsets, or times in milliseconds, by topic and partition.
pub type Offsets = BTreeMap<PartitionKey, i64>;

/// A topic and a partition of a directory, which may not be named `topic-partition`.
pub(crate) type DirectoryKey = (Option<String>, Option<i32>);

/// Reads offsets, each `minimum` or more.
pub(crate) fn read_offsets(option: &str, text: &str, minimum: i64) -> Result<Offsets> {
    read_by_partition(option, text, OFFSETS, |value| {
        let offset = if let Json::Other(Value::Number(number)) = value { number.as_i64() } else { None };
        offset.filter(|offset| *offset >= minimum).ok_or_else(|| format!("an offset of {minimum} or more"))
    })
}

/// Reads times: each is a number of milliseconds, or a text in one of the forms of the library.
pub(crate) fn read_times(option: &str, text: &str) -> Result<Offsets> {
    const EXAMPLE: &str = r#"{"orders":{"0":1700000000000,"1":"2024-05-01T10:00Z"}}"#;
    read_by_partition(option, text, EXAMPLE, |value| {
        let text = match value {
            Json::Other(Value::Number(number)) if number.is_i64() => number.to_string(),
            Json::Other(Value::String(text)) => text.clone(),
            _ => return Err(format!("a time in one of the forms {TIME_FORMS}")),
        };
        TimeText::bound(&text).map_err(|wrong| wrong.expected)
    })
}

/// Reads numbers by topic and partition. `read` returns that of a value, or what it expected.
fn read_by_partition(
    option: &str,
    text: &str,
    example: &str,
    read: impl Fn(&Json) -> Result<i64, String>,
) -> Result<Offsets> {
    let wrong = || PlanError::option(option, format!("JSON such as {example}"), format!("{text:?}"));
    let Json::Object(topics) = read_json(option, text, example)? else { return Err(wrong()) };
    let mut found = Offsets::new();
    for (topic, values) in topics {
        let Json::Object(values) = values else { return Err(wrong()) };
        if values.is_empty() {
            return Err(wrong());
        }
        for (partition, value) in values {
            let refused = |expected: &str| {
                let expected = format!("{expected} by partition, such as {example}");
                PlanError::option(option, expected, format!("{{{partition:?}: {value}}}"))
            };
            let key = read_partition(&partition).ok_or_else(|| refused("the number of a partition"))?;
            found.insert((topic.clone(), key), read(&value).map_err(|expected| refused(&expected))?);
        }
    }
    if found.is_empty() { Err(wrong()) } else { Ok(found) }
}

/// A partition as the name of a member. It has one spelling: of two offsets for one partition neither may be
/// ignored.
pub(crate) fn read_partition(name: &str) -> Option<i32> {
    name.parse::<i32>().ok().filter(|partition| *partition >= 0 && partition.to_string() == name)
}

/// Writes offsets in a fixed order: engines compare the text.
pub(crate) fn write_offsets(offsets: &Offsets) -> String {
    nested(offsets.iter().map(|(key, offset)| (key, offset.to_string())))
}

/// Writes times in a fixed order.
pub(crate) fn write_times(times: &Offsets) -> String {
    nested(times.iter().map(|(key, time)| {
        let text = write_time(*time);
        // with a unit it is no number
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        (key, if is_number { text } else { Value::from(text).to_string() })
    }))
}

/// JSON values by topic and partition as nested objects, in the order of the values, which is that of their
/// keys.
pub(crate) fn nested<'a>(values: impl IntoIterator<Item = (&'a PartitionKey, String)>) -> String {
    let mut text = String::from("{");
    let mut last = None;
    for ((topic, partition), value) in values {
        if last == Some(topic) {
            text += ",";
        } else {
            let separator = if last.is_some() { "}," } else { "" };
            text.extend([separator, &Value::from(topic.as_str()).to_string(), ":{"]);
            last = Some(topic);
        }
        text.extend(["\"", &partition.to_string(), "\":", &value]);
    }
    text + if last.is_some() { "}}" } else { "}" }
}

/// Reads partitions: `{"orders":[0,1]}`.
pub(crate) fn read_assign(option: &str, text: &str) -> Result<BTreeSet<PartitionKey>> {
    const EXAMPLE: &str = r#"{"orders":[0,1]}"#;
    let wrong =
        || PlanError::option(option, format!("partition numbers by topic: {EXAMPLE}"), format!("{text:?}"));
    let Json::Object(topics) = read_json(option, text, EXAMPLE)? else { return Err(wrong()) };
    let mut read = BTreeSet::new();
    for (topic, partitions) in topics {
        let Json::Array(partitions) = partitions else { return Err(wrong()) };
        for partition in partitions {
            let Json::Other(Value::Number(number)) = partition else { return Err(wrong()) };
            let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
            let partition = number.filter(|number| *number >= 0).ok_or_else(wrong)?;
            read.insert((topic.clone(), partition));
        }
    }
    if read.is_empty() { Err(wrong()) } else { Ok(read) }
}

/// Writes partitions in a fixed order.
pub(crate) fn write_assign(assign: &BTreeSet<PartitionKey>) -> String {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in assign {
        topics.entry(topic).or_default().push(*partition);
    }
    let lists = topics
        .iter()
        .map(|(topic, partitions)| format!("{}:{}", Value::from(*topic), Value::from(partitions.clone())));
    format!("{{{}}}", lists.collect::<Vec<_>>().join(","))
}

/// Reads a JSON list of paths.
pub(crate) fn read_paths(option: &str, text: &str) -> Result<Vec<String>> {
    const EXAMPLE: &str = r#"["data", "more"]"#;
    let wrong =
        || PlanError::option(option, format!("a JSON list of paths, such as {EXAMPLE}"), format!("{text:?}"));
    let Json::Array(items) = read_json(option, text, EXAMPLE)? else { return Err(wrong()) };
    let path = |item| match item {
        Json::Other(Value::String(path)) if !path.is_empty() => Ok(path),
        _ => Err(wrong()),
    };
    items.into_iter().map(path).collect()
}

/// Checks that an option names exactly the partitions that it must name.
pub(crate) fn check_entries(
    option: &str,
    named: &BTreeSet<DirectoryKey>,
    wanted: &BTreeSet<DirectoryKey>,
    expected: &str,
) -> Result<()> {
    let found = |which: &str, keys: Vec<&DirectoryKey>| {
        let mut words: Vec<_> = keys.into_iter().map(name_of).collect();
        words.sort();
        (!words.is_empty()).then(|| format!("{which} for {}", words.join(", ")))
    };
    let parts =
        [found("none", wanted.difference(named).collect()), found("one", named.difference(wanted).collect())];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return Ok(());
    }
    let reason = format!("{option}: expected an entry for {expected}, found {}", parts.join(" and "));
    Err(PlanError::new(Code::BadOption, reason))
}

fn name_of((topic, partition): &DirectoryKey) -> String {
    match (topic, partition) {
        (Some(topic), Some(partition)) => format!("{topic}-{partition}"),
        _ => "a directory that is not named topic-partition".to_owned(),
    }
}

/// The keys of partitions, for [`check_entries`].
pub(crate) fn keys_of<'a>(offsets: impl IntoIterator<Item = &'a PartitionKey>) -> BTreeSet<DirectoryKey> {
    offsets.into_iter().map(|(topic, partition)| (Some(topic.clone()), Some(*partition))).collect()
}

fn read_json(option: &str, text: &str, example: &str) -> Result<Json> {
    serde_json::from_str(text).map_err(|error| {
        PlanError::option(option, format!("JSON such as {example} ({error})"), format!("{text:?}"))
    })
}

/// A JSON value whose objects have each name once: of two offsets for one partition neither may be ignored.
#[derive(Debug)]
pub(crate) enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    Other(Value),
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(_) => formatter.write_str("an object"),
            Self::Array(_) => formatter.write_str("a list"),
            Self::Other(value) => write!(formatter, "{value}"),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut pairs: Vec<(String, Json)> = Vec::new();
        let mut known = HashSet::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            if !known.insert(name.clone()) {
                return Err(de::Error::custom(format_args!("{name:?} is there twice")));
            }
            pairs.push((name, value));
        }
        Ok(Json::Object(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::Array(all))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Other(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other(Value::Null))
    }
}
