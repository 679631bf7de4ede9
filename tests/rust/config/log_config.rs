//! `LogConfig` compared with the results of Kafka's classes (tests/vectors): names, defaults, limits, and
//! whole files of settings.

use std::collections::{BTreeMap, BTreeSet};

use cordwood::config::{
    Allowed, CleanupPolicy, CompressionType, LogConfig, PropertySource, Setting, StatedSettings, settings,
};
use cordwood::error::Error;
use cordwood::types::TimestampType;
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn setting(name: &str) -> &'static Setting {
    settings().find(|setting| setting.name == name).unwrap()
}

fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn pairs_of(value: &Value) -> Option<BTreeMap<String, String>> {
    let pairs = value.as_object()?.iter();
    Some(pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect())
}

/// Argument, expected, found.
fn words(error: Error) -> (String, String, String) {
    let Error::Config { argument, expected, found } = error else { panic!("{error}") };
    (argument, expected, found)
}

fn topic_error(pairs: &[(&str, &str)]) -> (String, String, String) {
    words(LogConfig::from_properties(&properties(pairs), Some(PropertySource::Topic)).unwrap_err())
}

/// Kafka's settings that do not affect a log's files.
const LEFT_OUT: [&str; 8] = [
    "follower.replication.throttled.replicas",
    "internal.segment.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
];

#[test]
fn names_defaults_and_synonyms_are_those_of_kafka() {
    let kafka = vectors("log_config.json");
    let mut seen = BTreeSet::new();
    for row in kafka["settings"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        seen.insert(name.to_owned());
        if LEFT_OUT.contains(&name) {
            assert!(settings().all(|setting| setting.name != name), "{name}");
            continue;
        }
        let setting = setting(name);
        assert_eq!(setting.text(&LogConfig::default()), row["default"].as_str().unwrap(), "{name}");
        let synonyms = row["synonyms"].as_array().unwrap().iter();
        let synonyms: Vec<_> = synonyms
            .map(|synonym| (synonym["name"].as_str().unwrap(), synonym["factor"].as_i64().unwrap()))
            .collect();
        let ours: Vec<_> = setting.synonyms.iter().map(|synonym| (synonym.name, synonym.factor)).collect();
        assert_eq!(ours, synonyms, "{name}");
    }
    assert_eq!(settings().count() + LEFT_OUT.len(), seen.len());
}

#[test]
fn limits_are_those_of_kafka() {
    for row in vectors("log_config.json")["settings"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        if LEFT_OUT.contains(&name) {
            continue;
        }
        let (min_value, max_value) = match row["type"].as_str().unwrap() {
            "INT" => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let valid = row["valid"].as_str().unwrap_or("[...]");
        let ours = match setting(name).allowed {
            // smaller sizes have another name
            Allowed::Integer { min: 14, max } if name == "segment.bytes" => format!("[1048576,{max}]"),
            Allowed::Integer { min, max } => format!("[{min},{max}]"),
            Allowed::IntegerOr { min, max, or } => format!("[{min},...,{max}] or {or}"),
            Allowed::Ratio => "[0,...,1]".to_owned(),
            Allowed::Flag => "[...]".to_owned(),
            Allowed::OneOf(words) | Allowed::ListOf(words) => format!("[{}]", words.join(", ")),
            _ => panic!("{name}"),
        };
        let is_range = matches!(setting(name).allowed, Allowed::Integer { .. });
        let theirs = match valid {
            "[...]" if is_range => format!("[{min_value},{max_value}]"),
            valid if is_range => {
                let (min, max) = valid[1..valid.len() - 1].split_once(",...").unwrap();
                let max = max.strip_prefix(',').map_or(max_value, |max| max.parse().unwrap());
                format!("[{min},{max}]")
            }
            valid => valid.to_owned(),
        };
        assert_eq!(ours, theirs, "{name}");
    }
}

/// Whether Kafka accepts the settings and cordwood refuses them: segment sizes too small for a batch, NaN,
/// and numbers in Java's notation.
fn is_refused_only_by_cordwood(topic: &BTreeMap<String, String>) -> bool {
    topic.iter().any(|(name, text)| match name.as_str() {
        "internal.segment.bytes" => !text.trim().parse::<i64>().is_ok_and(|bytes| bytes >= 14),
        "min.cleanable.dirty.ratio" => ["NaN", "0.5f", "0.5d", "0x1p-1"].contains(&text.as_str()),
        "remote.storage.enable" => text.trim().eq_ignore_ascii_case("true"),
        _ => text == "٣" && !LEFT_OUT.contains(&name.as_str()),
    })
}

#[test]
fn sets_of_properties_have_the_same_settings_as_in_kafka() {
    let (mut accepted, mut refused, mut differing) = (0, 0, 0);
    for case in vectors("log_config_cases.json")["cases"].as_array().unwrap() {
        let (broker, topic) = (pairs_of(&case["broker"]), pairs_of(&case["topic"]));
        // cordwood does not check values of settings that it ignores
        let names = topic.iter().flatten().map(|(name, _)| name.as_str());
        let is_ignored = |name: &str| LEFT_OUT.contains(&name) && name != "internal.segment.bytes";
        if case["error"].is_string() && names.clone().any(is_ignored) {
            continue;
        }
        let config = match (&broker, &topic) {
            (Some(broker), Some(topic)) => LogConfig::from_properties(broker, Some(PropertySource::Broker))
                .and_then(|config| config.with_overrides(topic)),
            (Some(broker), None) => LogConfig::from_properties(broker, Some(PropertySource::Broker)),
            (None, topic) => LogConfig::from_properties(topic.as_ref().unwrap(), Some(PropertySource::Topic)),
        };
        if case["error"].is_null() && topic.as_ref().is_some_and(is_refused_only_by_cordwood) {
            assert!(config.is_err(), "{case}");
            differing += 1;
            continue;
        }
        let Some(expected) = pairs_of(&case["settings"]) else {
            let (argument, ..) = words(config.expect_err(&case.to_string()));
            let names = broker.iter().chain(&topic).flat_map(BTreeMap::keys);
            assert!(
                names.clone().any(|name| *name == argument) || argument == "min.compaction.lag.ms",
                "{case}"
            );
            refused += 1;
            continue;
        };
        let config = config.unwrap_or_else(|error| panic!("{case}: {error}"));
        config.validate().unwrap();
        assert_eq!(u64::from(config.segment_bytes), case["segment_size"].as_u64().unwrap(), "{case}");
        assert_eq!(config.max_segment_ms(), case["max_segment_ms"].as_i64().unwrap(), "{case}");
        assert_eq!(u64::from(config.init_file_size()), case["init_file_size"].as_u64().unwrap(), "{case}");
        for setting in settings().filter(|setting| setting.name != "segment.bytes") {
            let default = setting.text(&LogConfig::default());
            let mut theirs = expected.get(setting.name).cloned().unwrap_or(default);
            if theirs == "delete,compact" {
                theirs = "compact,delete".to_owned(); // a set has no order
            }
            assert_eq!(setting.text(&config), theirs, "{} of {case}", setting.name);
        }
        let again = LogConfig::from_properties(&config.to_properties(), Some(PropertySource::Topic)).unwrap();
        assert_eq!(again, config, "{case}");
        accepted += 1;
    }
    assert!(accepted > 450 && refused > 300 && differing > 20, "{accepted} {refused} {differing}");
}

#[test]
fn a_segment_below_a_mebibyte_is_written_as_kafkas_internal_setting() {
    for (bytes, name) in [(4096, "internal.segment.bytes"), (1 << 20, "segment.bytes")] {
        let config = LogConfig { segment_bytes: bytes, ..LogConfig::default() };
        config.validate().unwrap();
        let properties = config.to_properties();
        assert_eq!(properties.get(name), Some(&bytes.to_string()));
        assert_eq!(properties.keys().filter(|key| key.ends_with("segment.bytes")).count(), 1);
        assert_eq!(LogConfig::from_properties(&properties, None).unwrap(), config);
    }
    let (argument, expected, found) = topic_error(&[("segment.bytes", "4096")]);
    assert_eq!((argument.as_str(), found.as_str()), ("segment.bytes", "\"4096\""));
    assert!(expected.contains("from 1048576") && expected.contains("internal.segment.bytes"), "{expected}");
}

#[test]
fn a_field_outside_its_limits_is_an_error_with_the_name_of_the_field() {
    let default = LogConfig::default;
    let cases = [
        (LogConfig { segment_bytes: 13, ..default() }, "segment_bytes"),
        (LogConfig { segment_bytes: 1 << 31, ..default() }, "segment_bytes"),
        (LogConfig { segment_ms: 0, ..default() }, "segment_ms"),
        (LogConfig { min_cleanable_dirty_ratio: f64::NAN, ..default() }, "min_cleanable_dirty_ratio"),
        (LogConfig { compression_gzip_level: 0, ..default() }, "compression_gzip_level"),
        (
            LogConfig { message_timestamp_type: TimestampType::NoTimestampType, ..default() },
            "message_timestamp_type",
        ),
        (
            LogConfig { min_compaction_lag_ms: 6, max_compaction_lag_ms: 5, ..default() },
            "min_compaction_lag_ms",
        ),
    ];
    for (config, field) in cases {
        assert_eq!(words(config.validate().unwrap_err()).0, field);
    }
    let all = LogConfig { compression_type: CompressionType::Zstd, compression_gzip_level: 9, ..default() };
    all.validate().unwrap();
}

#[test]
fn an_unknown_topic_setting_is_an_error_that_suggests_the_nearest_name() {
    let nearest = [
        ("segmnt.bytes", "segment.bytes"),
        ("retention.mss", "retention.ms"),
        ("compresion.type", "compression.type"),
        ("internal.segment.byte", "internal.segment.bytes"),
        ("log.roll.hours", "segment.ms"),
        ("message.max.bytes", "max.message.bytes"),
        ("RETENTION.MS", "retention.ms"),
    ];
    for (given, known) in nearest {
        let (argument, expected, _) = topic_error(&[(given, "1")]);
        assert_eq!(argument, given);
        assert!(expected.ends_with(&format!("is {known}")), "{expected}");
    }
    let (argument, expected, _) = topic_error(&[("on.damage", "1")]);
    assert_eq!((argument.as_str(), expected.as_str()), ("on.damage", "a topic setting"));
}

#[test]
fn the_source_is_guessed_from_the_names() {
    for names in [
        &["log.dirs"][..],
        &["log.anything", "segment.bytes"],
        &["broker.id"],
        &["node.id"],
        &["process.roles"],
    ] {
        assert_eq!(PropertySource::guess(names.iter().copied()), PropertySource::Broker, "{names:?}");
    }
    for names in [&[][..], &["segment.bytes"], &["compression.type", "logging"], &["message.max.bytes"]] {
        assert_eq!(PropertySource::guess(names.iter().copied()), PropertySource::Topic, "{names:?}");
    }
    let broker = properties(&[("node.id", "1"), ("segment.ms", "5"), ("log.roll.ms", "7")]);
    assert_eq!(LogConfig::from_properties(&broker, None).unwrap().segment_ms, 7);
}

#[test]
fn tiered_storage_is_refused_and_its_other_settings_are_ignored() {
    let off = [
        ("remote.storage.enable", "false"),
        ("local.retention.ms", "5"),
        ("remote.log.copy.disable", "true"),
    ];
    assert_eq!(LogConfig::from_properties(&properties(&off), None).unwrap(), LogConfig::default());
    assert_eq!(topic_error(&[("remote.storage.enable", "true")]).0, "remote.storage.enable");
}

#[test]
fn a_setting_is_stated_by_properties_or_by_another_value_than_the_default() {
    let stated = |config: &LogConfig| -> Vec<_> {
        settings().map(|setting| setting.name).filter(|name| config.states(name)).collect()
    };
    assert_eq!(stated(&LogConfig::default()), [""; 0]);
    assert_eq!(stated(&LogConfig { segment_ms: 5, ..LogConfig::default() }), ["segment.ms"]);
    let week = StatedSettings::of(["retention.ms", "no.such.setting"]);
    assert_eq!(stated(&LogConfig { stated: week, ..LogConfig::default() }), ["retention.ms"]);
    let broker = properties(&[("log.retention.hours", "168"), ("log.cleanup.policy", "delete")]);
    let config = LogConfig::from_properties(&broker, None).unwrap();
    assert_eq!(stated(&config), ["retention.ms", "cleanup.policy"]);
    let small = config.with_overrides(&properties(&[("internal.segment.bytes", "4096")])).unwrap();
    assert_eq!(stated(&small), ["segment.bytes", "retention.ms", "cleanup.policy"]);
    let names: Vec<_> = settings().map(|setting| setting.name).collect();
    assert_eq!(StatedSettings::of(names.iter().copied()), StatedSettings::ALL);
    assert_eq!(stated(&LogConfig { stated: StatedSettings::ALL, ..LogConfig::default() }), names);
    assert!(!LogConfig::default().states("no.such.setting"));
}

#[test]
fn jitter_is_a_remainder_modulo_the_smaller_of_jitter_and_age() {
    let config =
        |segment_ms, segment_jitter_ms| LogConfig { segment_ms, segment_jitter_ms, ..LogConfig::default() };
    assert_eq!(config(1000, 0).random_segment_jitter(17), 0);
    assert_eq!(config(1000, 300).random_segment_jitter(1234), 34);
    assert_eq!(config(1000, 300).random_segment_jitter(-1234), 34);
    assert_eq!(config(1000, 5000).random_segment_jitter(1234), 234);
    assert_eq!(config(1000, 300).random_segment_jitter(i32::MIN), 0);
    assert_eq!(config(i64::MAX, i64::MAX).random_segment_jitter(i32::MAX), i64::from(i32::MAX));
}

#[test]
fn a_compacted_log_rolls_before_its_compaction_is_due() {
    let rolled_after = |compact| {
        let cleanup_policy = CleanupPolicy { delete: true, compact };
        LogConfig { cleanup_policy, max_compaction_lag_ms: 7, segment_ms: 9, ..LogConfig::default() }
            .max_segment_ms()
    };
    assert_eq!((rolled_after(true), rolled_after(false)), (7, 9));
}
