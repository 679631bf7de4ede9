//! The text of an error: one line, with a JSON object at its end that programs read.

use cordwood::plan::{Code, Context, PlanError, Query, SourceOptions, Stream};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::fixed_seed;
use crate::support::golden;
use crate::support::planning::{asked, cache, query, run_json};
use crate::support::reading::folder;

/// What ends a line in Python's `splitlines`, and in Java.
const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

fn check(error: &PlanError) {
    let text = error.to_string();
    assert!(!text.contains(LINE_ENDS), "{text:?}");
    let sentence = error.sentence();
    // a topic or a path may contain the same words
    let object = text.strip_prefix(&sentence).and_then(|rest| rest.strip_prefix(" | cordwood: ")).unwrap();
    let name = error.code.name();
    assert!(sentence.starts_with(&format!("[{name}] ")), "{text}");
    assert!(sentence.ends_with(&error.reason), "{text}");
    let object: Value = serde_json::from_str(object).unwrap_or_else(|_| panic!("{text}"));
    let mut wanted = json!({ "code": name });
    for (part, value) in [
        ("topic", json!(error.topic)),
        ("partition", json!(error.partition)),
        ("segment", json!(error.segment)),
        ("position", json!(error.position)),
    ] {
        if !value.is_null() {
            wanted[part] = value;
        }
    }
    assert_eq!(object, wanted);
}

#[test]
fn codes_have_different_names() {
    let codes = [
        (Code::NotFound, "CORDWOOD_NOT_FOUND"),
        (Code::BadOption, "CORDWOOD_BAD_OPTION"),
        (Code::OffsetOutOfRange, "CORDWOOD_OFFSET_OUT_OF_RANGE"),
        (Code::TimeNotFound, "CORDWOOD_TIME_NOT_FOUND"),
        (Code::CorruptBatch, "CORDWOOD_CORRUPT_BATCH"),
        (Code::Unsupported, "CORDWOOD_UNSUPPORTED"),
        (Code::SegmentGone, "CORDWOOD_SEGMENT_GONE"),
        (Code::Io, "CORDWOOD_IO"),
        (Code::Internal, "CORDWOOD_INTERNAL"),
    ];
    for (code, name) in codes {
        assert_eq!(code.name(), name);
    }
}

#[test]
fn the_text_of_damage_names_its_place() {
    let mut corrupt = 0;
    for damaged in golden::damaged() {
        let answer = run_json(&cache(), &asked(&damaged.dir, &[]));
        let Some(error) = answer.error else { continue };
        check(&error);
        if error.code == Code::CorruptBatch {
            corrupt += 1;
            let place = format!("-{} segment {}", error.partition.unwrap(), error.segment.unwrap());
            assert!(error.sentence().contains(&place), "{error}");
            assert!(error.position.is_some() && error.topic.is_some(), "{error}");
        }
    }
    assert!(corrupt > 20, "{corrupt}");
}

#[test]
fn errors_of_bounds_name_their_log() {
    let dir = golden::intact()[0].dir.clone();
    for (options, code) in [
        ([("startingOffsets", r#"{"orders":{"0":9999999}}"#)], Code::OffsetOutOfRange),
        ([("startingTimestamp", "9223372036854775807")], Code::TimeNotFound),
    ] {
        let error = run_json(&cache(), &asked(&dir, &options)).error.unwrap();
        assert_eq!((error.code, error.topic.as_deref(), error.partition), (code, Some("orders"), Some(0)));
        check(&error);
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(
        &[
            "a",
            "\n",
            "\r",
            "\r\n",
            "\u{b}",
            "\u{85}",
            "\u{2028}",
            "\"",
            "\\",
            "{}",
            " | cordwood: ",
            "]",
            "é",
            "\0",
            "\u{10ffff}",
        ][..],
    );
    proptest::collection::vec(part, 1..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(fixed_seed(100))]

    #[test]
    fn hostile_options_give_one_line(text in hostile()) {
        for name in [
            "path", "paths", "subscribe", "subscribePattern", "assign", "startingOffsets", "columns", "mode", "table", "maxBatchRows",
            "maxTriggerDelay", "cleanupPolicy", text.as_str(),
        ] {
            let options = SourceOptions::from_texts([("path", "data"), (name, text.as_str())], &mut Vec::new());
            match options.and_then(|options| Query::new(options, None)) {
                Err(error) => check(&error),
                // the path does not exist
                Ok(query) => check(&Context::new(cache()).plan(&query).unwrap_err()),
            }
        }
    }

    /// Of a topic in a checkpoint, not even the letters are known.
    #[test]
    fn hostile_offsets_of_a_stream_give_one_line(topic in hostile()) {
        let dir = golden::intact()[0].dir.clone();
        let mut stream = Stream::new(query(&asked(&dir, &[])), Context::new(cache())).unwrap();
        let start = json!({ topic: { "0": 5 } }).to_string();
        check(&stream.latest_offset(&start, None).unwrap_err());
        check(&stream.plan(&start, &start.replace('5', "6")).unwrap_err());
        check(&stream.latest_offset(&start[1..], None).unwrap_err());
    }

    #[test]
    fn hostile_paths_give_one_line(name in hostile()) {
        let folder = folder();
        let name = name.replace(['\0', '/'], "");
        let path = folder.path().join(&name);
        if !name.is_empty() {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("00000000000000000000.log"), "damage").unwrap();
        }
        for path in [path.join("missing"), path] {
            if let Some(error) = run_json(&cache(), &asked(&path, &[])).error {
                check(&error);
            }
        }
    }
}
