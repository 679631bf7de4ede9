//! Options as texts: what is read is written, in any case of the names, and other texts are an error.

use std::collections::BTreeMap;

use cordwood::plan::{Code, PlanError, SourceOptions};
use proptest::prelude::*;

use crate::support::fixed_seed;

/// Every option with texts that it accepts. Offsets are all of the same partitions.
const ACCEPTED: [(&str, &[&str]); 34] = [
    ("path", &["data", "/a b/ü", "file:/data", "[x]*?"]),
    ("paths", &[r#"["a", "b\n\"c\""]"#, "[]"]),
    ("subscribe", &["orders", " a , b.c-d_e "]),
    ("subscribePattern", &["orders-.*", "(?i)^a|b$", r"\Qa\E"]),
    ("assign", &[r#"{"orders":[0,3],"a\"b":[7]}"#, r#"{"a":[2147483647]}"#]),
    ("kafka.exclude.internal.topics", &["true", "FALSE"]),
    ("excludeInternalTopics", &["true", "false"]),
    ("startingOffsets", &["earliest", "LATEST", r#"{"a":{"0":0,"1":-2},"b":{"0":-1}}"#]),
    (
        "startingTimestamp",
        &["0", "9223372036854775807", " 5 ", "2024-05-01T10:00Z", "2024-05-01", "-2h", "1700000012ms"],
    ),
    (
        "startingOffsetsByTimestamp",
        &[
            r#"{"a":{"0":0,"1":9223372036854775807},"b":{"0":5}}"#,
            r#"{"a":{"0":"2024-05-01T12:00+02:00","1":"1700000012s"},"b":{"0":"1700000012ms"}}"#,
        ],
    ),
    ("startingOffsetsByTimestampStrategy", &["error", "latest"]),
    ("endingOffsets", &["latest", r#"{"a":{"0":3,"1":-1},"b":{"0":9223372036854775807}}"#]),
    ("endingTimestamp", &["0", "1700000000000", "now", "1700000000000000us"]),
    ("endingOffsetsByTimestamp", &[r#"{"a":{"0":0,"1":1},"b":{"0":5}}"#]),
    ("failOnDataLoss", &["true", "false"]),
    ("minPartitions", &["1", "9223372036854775807"]),
    ("maxRecordsPerPartition", &["1", "1000"]),
    ("maxPartitionBytes", &["1", "134217728"]),
    ("maxOffsetsPerTrigger", &["500", "9223372036854775807"]),
    ("minOffsetsPerTrigger", &["1", "500"]),
    ("maxTriggerDelay", &["15m", "0ms", "3 s", "2min", "1H", "1d", "18446744073709551615ms"]),
    ("table", &["records", "Batches", "segments"]),
    ("columns", &["offset", "value, topic"]),
    ("includeHeaders", &["true", "false"]),
    ("kafka.isolation.level", &["read_committed", "read_uncommitted"]),
    ("isolationLevel", &["READ_COMMITTED", "read_uncommitted"]),
    ("cleanupPolicy", &["delete", "compact", "compact,delete", " delete , compact "]),
    ("mode", &["failfast", "DROPMALFORMED", "Permissive"]),
    ("maxBatchRows", &["1", "20000"]),
    ("maxBatchBytes", &["1", "8388608"]),
    ("maxLogBatchBytes", &["1", "134217728"]),
    ("checkCrc", &["true", "false"]),
    ("kafka.check.crcs", &["true", "False"]),
    ("io", &["auto", "mmap", "pread"]),
];

fn read(texts: &[(&str, &str)]) -> Result<SourceOptions, PlanError> {
    SourceOptions::from_texts(texts.iter().copied(), &mut Vec::new())
}

fn written(options: &SourceOptions) -> BTreeMap<&'static str, String> {
    let texts = options.to_texts();
    let pairs: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let again = read(&pairs).unwrap_or_else(|error| panic!("{texts:?}: {error}"));
    assert_eq!(&again, options, "{texts:?}");
    assert_eq!(again.to_texts(), texts);
    texts
}

#[test]
fn every_option_is_written_as_it_was_read() {
    for (name, texts) in ACCEPTED {
        for text in texts {
            let options = read(&[("path", "data"), (name, text)])
                .unwrap_or_else(|error| panic!("{name}={text}: {error}"));
            let found = written(&options);
            let default = read(&[("path", "data")]).unwrap();
            assert!(
                options == default || found.len() > 1 || name == "path" || name == "paths",
                "{name}={text}: {found:?}"
            );
        }
    }
}

#[test]
fn a_time_is_the_same_as_a_text_and_in_milliseconds() {
    for text in ["2024-05-01T10:00Z", "2024-05-01T12:00+02:00", "1714557600s", "1714557600000"] {
        for name in ["startingTimestamp", "endingTimestamp"] {
            assert_eq!(
                written(&read(&[("path", "x"), (name, text)]).unwrap())[name],
                "1714557600000",
                "{text}"
            );
        }
        for name in ["startingOffsetsByTimestamp", "endingOffsetsByTimestamp"] {
            let found = read(&[("path", "x"), (name, &format!(r#"{{"a":{{"0":"{text}"}}}}"#))]).unwrap();
            assert_eq!(written(&found)[name], r#"{"a":{"0":1714557600000}}"#, "{text}");
        }
    }
}

#[test]
fn a_time_in_another_unit_or_without_a_zone_is_refused() {
    for (text, words) in [
        ("1700000012", "in seconds it is 1700000012s (2023-11-14T22:13:32.000Z), in ms 1700000012ms"),
        ("1700000012000000", "in microseconds it is 1700000012000000us"),
        ("1700000012000000000", "in nanoseconds it is 1700000012000000000ns"),
        ("2024-05-01T10:00", "add Z for UTC (2024-05-01T10:00Z)"),
        ("yesterday", "a time in one of the forms 2024-05-01T10:00Z, "),
    ] {
        for name in ["startingTimestamp", "endingTimestamp"] {
            let error = read(&[("path", "x"), (name, text)]).unwrap_err();
            assert_eq!(error.code, Code::BadOption);
            assert!(error.reason.starts_with(name) && error.reason.contains(words), "{}", error.reason);
        }
        let in_json = if text.starts_with('1') { text.to_owned() } else { format!("{text:?}") };
        for name in ["startingOffsetsByTimestamp", "endingOffsetsByTimestamp"] {
            let json = format!(r#"{{"a":{{"0":{in_json}}}}}"#);
            let error = read(&[("path", "x"), (name, &json)]).unwrap_err();
            assert!(error.reason.starts_with(name) && error.reason.contains(words), "{}", error.reason);
        }
    }
}

/// Letters in one of several cases.
fn in_case(name: &str, case: u8) -> String {
    let other = |(at, letter): (usize, char)| match (case, at % 2) {
        (0, _) => letter,
        (1, _) | (2, 0) => letter.to_ascii_uppercase(),
        _ => letter.to_ascii_lowercase(),
    };
    name.chars().enumerate().map(other).collect()
}

proptest! {
    #![proptest_config(fixed_seed(300))]

    #[test]
    fn options_together_are_written_as_they_were_read(
        picked in proptest::collection::vec((0..ACCEPTED.len(), any::<prop::sample::Index>(), 0u8..4), 0..8),
    ) {
        let path = [("path".to_owned(), "data")];
        let texts = picked.iter().map(|(place, pick, case)| {
            let (name, texts) = ACCEPTED[*place];
            (in_case(name, *case), *pick.get(texts))
        });
        let texts: Vec<(String, &str)> = path.into_iter().chain(texts).collect();
        let pairs: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        match read(&pairs) {
            Ok(options) => drop(written(&options)),
            Err(error) => assert_eq!(error.code, Code::BadOption, "{error}"),
        }
    }

    #[test]
    fn any_text_is_an_error_or_written_as_it_was_read(
        place in 0..ACCEPTED.len(),
        texts in proptest::collection::vec(
            prop_oneof![
                ".{0,20}",
                "[0-9+-]{0,22}",
                r#"[{}\[\]",:a0-9 -]{0,24}"#,
                "[0-9]{0,22}[a-zé]{0,3}",
                any::<i64>().prop_map(|number| number.to_string()),
            ],
            20..21,
        ),
    ) {
        let (name, _) = ACCEPTED[place];
        for text in texts {
            match read(&[("path", "data"), (name, &text)]) {
                Ok(options) => drop(written(&options)),
                Err(error) => {
                    assert_eq!(error.code, Code::BadOption, "{name}={text:?}: {error}");
                    assert!(error.reason.starts_with(name), "{name}={text:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn any_name_is_an_error_or_known(name in prop_oneof![".{0,20}", "(kafka\\.)?[a-zA-Z.]{0,20}"], text in ".{0,5}") {
        match read(&[("path", "data"), (&name, &text)]) {
            Ok(options) => drop(written(&options)),
            Err(error) => assert_eq!(error.code, Code::BadOption, "{error}"),
        }
    }
}

/// Deep, huge, or twice: in every option whose text is JSON.
#[test]
fn hostile_json_is_refused() {
    let deep =
        |opening: &str, closing: &str| format!("{}{}", opening.repeat(100_000), closing.repeat(100_000));
    let texts = [
        deep("[", "]"),
        deep("{\"a\":", "}"),
        format!("{{\"a\":{}}}", deep("[", "]")),
        "{\"a\":".repeat(100_000),
        "[\"a\",".repeat(100_000),
        format!("{{\"a\":{{\"0\":{}}}}}", "9".repeat(100_000)),
        r#"{"a":{"0":1e5}}"#.to_owned(),
        r#"{"a":{"0":9223372036854775808}}"#.to_owned(),
        r#"{"a":{"0":1.0}}"#.to_owned(),
        r#"{"a":{"0":-3}}"#.to_owned(),
        r#"{"a":{"0":"one"}}"#.to_owned(),
        r#"{"a":{"0":["1"]}}"#.to_owned(),
        r#"{"a":{"0":1,"0":2}}"#.to_owned(),
        r#"{"a":{"0":1,"00":2}}"#.to_owned(),
        r#"{"a":{"0":1},"a":{"1":2}}"#.to_owned(),
        r#"{"a":{"-1":1}}"#.to_owned(),
        r#"{"a":{"2147483648":1}}"#.to_owned(),
        r#"{"a":{}}"#.to_owned(),
        "{}".to_owned(),
        "null".to_owned(),
        r#"{"a":[-1]}"#.to_owned(),
        r#"{"a":[2147483648]}"#.to_owned(),
        r#"{"a":[0.0]}"#.to_owned(),
        r#"{"a":[0],"a":[1]}"#.to_owned(),
        r#"{"a":0}"#.to_owned(),
        "[0]".to_owned(),
        "[\"\"]".to_owned(),
        "[[\"a\"]]".to_owned(),
        "[null]".to_owned(),
    ];
    let names = [
        "paths",
        "assign",
        "startingOffsets",
        "startingOffsetsByTimestamp",
        "endingOffsets",
        "endingOffsetsByTimestamp",
    ];
    // of times, a text may be one
    assert!(read(&[("path", "data"), ("startingOffsets", r#"{"a":{"0":"1"}}"#)]).is_err());
    for name in names {
        for text in &texts {
            let error = read(&[("path", "data"), (name, text)]).unwrap_err();
            assert_eq!(error.code, Code::BadOption);
            assert!(error.reason.starts_with(name), "{:.200}", error.reason);
        }
    }
}
