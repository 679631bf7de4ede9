//! Options that are refused: conflicts, unknown names with the nearest known one, values that are not
//! allowed.

use std::time::Duration;

use cordwood::plan::{Code, SourceOptions, Warning};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::cpu_time;
use crate::support::fixed_seed;

/// All options, as an error lists them.
fn known() -> Vec<String> {
    let error = refused(&[("path", "x"), ("qqqqqqqqqqqqqqqqqqqqq", "1")]);
    let names = error.split_once("one of ").unwrap().1.split_once(", found").unwrap().0;
    names.split(", ").map(str::to_owned).collect()
}

fn read(texts: &[(&str, &str)]) -> Result<(SourceOptions, Vec<Warning>), String> {
    let mut warnings = Vec::new();
    match SourceOptions::from_texts(texts.iter().copied(), &mut warnings) {
        Ok(options) => Ok((options, warnings)),
        Err(error) => {
            assert_eq!(error.code, Code::BadOption);
            Err(error.reason)
        }
    }
}

fn refused(texts: &[(&str, &str)]) -> String {
    read(texts).unwrap_err()
}

/// The number of letters to insert, delete or change: the naive definition.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut table = vec![vec![0; to.len() + 1]; from.len() + 1];
    for row in 0..=from.len() {
        for column in 0..=to.len() {
            table[row][column] = if row == 0 || column == 0 {
                row + column
            } else {
                let changed = table[row - 1][column - 1] + usize::from(from[row - 1] != to[column - 1]);
                changed.min(table[row - 1][column] + 1).min(table[row][column - 1] + 1)
            };
        }
    }
    table[from.len()][to.len()]
}

fn edits(from: &str, to: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    distance(&letters(from), &letters(to))
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let offsets = (r#"{"a":{"0":1}}"#, r#"{"a":{"1":1}}"#, r#"{"a":{"0":1,"1":1}}"#);
    for texts in [
        &[("subscribe", "a"), ("assign", r#"{"a":[0]}"#)][..],
        &[("subscribe", "a"), ("subscribePattern", "a")],
        &[("assign", r#"{"a":[0]}"#), ("subscribePattern", "a")],
        &[("subscribe", "a"), ("subscribePattern", "a"), ("assign", r#"{"a":[0]}"#)],
        &[("minOffsetsPerTrigger", "5"), ("maxOffsetsPerTrigger", "4")],
        &[("startingOffsets", offsets.0), ("endingOffsets", offsets.1)],
        &[("startingOffsets", offsets.0), ("endingOffsets", offsets.2)],
        &[("startingOffsets", offsets.2), ("endingOffsetsByTimestamp", offsets.0)],
        &[("startingOffsetsByTimestamp", offsets.2), ("endingOffsets", offsets.1)],
        &[("table", "batches"), ("columns", "offset")],
        &[("columns", "offset"), ("table", "segments")],
        &[("isolationLevel", "read_committed"), ("kafka.isolation.level", "read_uncommitted")],
        &[("excludeInternalTopics", "true"), ("kafka.exclude.internal.topics", "false")],
    ] {
        let reversed: Vec<_> = texts.iter().rev().copied().collect();
        for texts in [texts, &reversed] {
            let error = refused(&[&[("path", "x")], texts].concat());
            let is_named = texts.iter().any(|(name, _)| error.contains(name));
            assert!(is_named, "{error}");
        }
        // alone, each is allowed
        for text in texts {
            read(&[("path", "x"), *text]).unwrap();
        }
    }
}

#[test]
fn two_names_of_one_option_may_have_the_same_value() {
    for texts in [
        [("isolationLevel", "read_committed"), ("kafka.isolation.level", "READ_COMMITTED")],
        [("excludeInternalTopics", "true"), ("kafka.exclude.internal.topics", "True")],
    ] {
        assert_eq!(read(&[("path", "x"), texts[0], texts[1]]).unwrap().1, []);
    }
}

#[test]
fn no_path_is_refused() {
    for texts in [&[][..], &[("paths", "[]")], &[("path", "")], &[("subscribe", "a")]] {
        assert!(refused(texts).starts_with("path"), "{texts:?}");
    }
}

#[test]
fn numbers_outside_their_range_are_refused() {
    let counts = [
        "minPartitions",
        "maxRecordsPerPartition",
        "maxPartitionBytes",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxBatchRows",
        "maxBatchBytes",
    ];
    let wrong = [
        "0",
        "-1",
        "1.5",
        "1e3",
        "",
        " ",
        "9223372036854775808",
        "٣",
        "1_000",
        "0x10",
        "++1",
        "1 2",
        "NaN",
        "00000000000000000001",
    ];
    for name in counts {
        for text in wrong {
            assert!(refused(&[("path", "x"), (name, text)]).starts_with(name), "{name}={text}");
        }
    }
    for name in ["startingTimestamp", "endingTimestamp"] {
        // zeros before a time are no mistake
        for text in wrong.iter().filter(|text| !text.starts_with('0') || text.contains('x')) {
            assert!(refused(&[("path", "x"), (name, text)]).starts_with(name), "{name}={text}");
        }
    }
    for text in [
        "",
        "5",
        "m",
        "-5m",
        "1.5h",
        "5y",
        "18446744073709551616ms",
        "999999999999999999d",
        "5 m m",
        "m5",
        "5mm",
    ] {
        assert!(
            refused(&[("path", "x"), ("maxTriggerDelay", text)]).starts_with("maxTriggerDelay"),
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(fixed_seed(500))]

    /// Of a misspelt name, a known one with the fewest edits is suggested.
    #[test]
    fn the_nearest_name_is_suggested(
        picked in any::<Index>(),
        changes in proptest::collection::vec((any::<Index>(), 0u8..3, "[a-zA-Z.]"), 1..4),
    ) {
        let known = known();
        let name = picked.get(&known);
        let mut letters: Vec<char> = name.chars().collect();
        for (place, kind, letter) in changes {
            let place = place.index(letters.len());
            let letter = letter.chars().next().unwrap();
            match kind {
                0 => letters[place] = letter,
                1 => letters.insert(place, letter),
                _ if letters.len() > 1 => drop(letters.remove(place)),
                _ => {}
            }
        }
        let typed: String = letters.into_iter().collect();
        if known.iter().any(|known| known.eq_ignore_ascii_case(&typed)) {
            return Ok(());
        }
        let found = read(&[("path", "x"), (&typed, "1")]);
        let is_broker = typed.to_lowercase().starts_with("kafka.");
        let Err(error) = found else {
            assert!(is_broker, "{typed} is unknown");
            return Ok(());
        };
        let nearest = known.iter().map(|known| edits(&typed, known)).min().unwrap();
        let allowed = (typed.chars().count() / 3).max(1);
        match error.split_once("did you mean ").map(|(_, rest)| rest.split_once("?)").unwrap().0) {
            // the prefix is not counted
            Some(meant) if is_broker => assert!(known.iter().any(|known| known == meant), "{error}"),
            // one of the options for a broker
            Some(meant) if !known.iter().any(|known| known == meant) => assert!(edits(&typed, meant) <= nearest),
            Some(meant) => assert_eq!(edits(&typed, meant), nearest, "{typed}: {error}"),
            None => assert!(nearest > allowed, "{typed}: {error}"),
        }
    }
}

#[test]
fn options_for_a_broker_are_ignored_with_one_warning() {
    let texts = [
        ("path", "x"),
        ("kafka.bootstrap.servers", "broker:9092"),
        ("KAFKA.security.protocol", "SSL"),
        ("groupIdPrefix", "g"),
        ("fetchOffset.numRetries", "3"),
        ("kafkaConsumer.pollTimeoutMs", "5"),
    ];
    let (options, warnings) = read(&texts).unwrap();
    assert_eq!(options, read(&texts[..1]).unwrap().0);
    assert_eq!(warnings.len(), 1);
    assert!(texts[1..].iter().all(|(name, _)| warnings[0].text.contains(name)), "{warnings:?}");
}

/// A name is compared with all known ones.
#[test]
fn a_huge_name_or_text_is_refused_soon() {
    let huge = "a".repeat(50_000);
    let start = cpu_time();
    refused(&[("path", "x"), (&huge, "1")]);
    for name in known().iter().filter(|name| !["path", "subscribe", "columns"].contains(&name.as_str())) {
        refused(&[("path", "x"), (name, &huge)]);
    }
    let time = cpu_time().saturating_sub(start);
    assert!(time < Duration::from_secs(3), "{time:?}");
}
