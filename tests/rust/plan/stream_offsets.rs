//! Offsets of a stream as JSON. They come from a checkpoint, which may be damaged, or written by hand or by
//! another version.

use std::path::Path;
use std::sync::Arc;

use cordwood::plan::{Code, Context, PlanError, Stream};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::batches::{BatchV2, Rec};
use crate::support::fixed_seed;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{asked, cache, query};
use crate::support::reading::folder;

fn write(parent: &Path) {
    for name in ["a-0", "a-1", "b-0"] {
        let batch = |base: i64| {
            let records = (0..5).map(|number| Rec::at(1000 + base + number).value("value"));
            BatchV2::new(base).leader_epoch(3).records(records).build()
        };
        let batches = (0..4).map(|number| batch(5 * number));
        PartitionBuilder::new(Indexing::every(100)).segment(0, batches).write(parent, name);
    }
}

fn stream(path: &Path, options: &[(&str, &str)]) -> Stream {
    Stream::new(query(&asked(path, options)), Context::new(cache())).unwrap()
}

/// All calls with an offset: the same error of each, if there is one.
fn ask(stream: &mut Stream, text: &str) -> Vec<PlanError> {
    let good = r#"{"a":{"0":5,"1":5},"b":{"0":5}}"#;
    let results = [
        stream.latest_offset(text, None).map(drop),
        stream.latest_offset(text, Some(u64::MAX)).map(drop),
        stream.plan(text, good).map(drop),
        stream.plan(good, text).map(drop),
        stream.plan(text, text).map(drop),
    ];
    results.into_iter().filter_map(Result::err).collect()
}

fn is_refused(stream: &mut Stream, text: &str) {
    let errors = ask(stream, text);
    let shown: String = text.chars().take(80).collect();
    assert_eq!(errors.len(), 5, "{shown}");
    for error in errors {
        assert_eq!(error.code, Code::BadOption, "{shown}: {error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn the_text_of_a_state_is_always_the_same() {
    let folder = folder();
    write(folder.path());
    let text = |options: &[(&str, &str)]| stream(folder.path(), options).initial_offset().unwrap();
    let latest = text(&[]);
    for _ in 0..5 {
        assert_eq!(text(&[]), latest);
        assert_eq!(text(&[("subscribe", "b,a")]), latest);
    }
    // in the order of topics and partitions
    let parsed: Value = serde_json::from_str(&latest).unwrap();
    let at = format!(r#"{{"offset":20,"leaderEpoch":3,"crc":{}}}"#, parsed["a"]["0"]["crc"]);
    assert_eq!(latest, format!(r#"{{"a":{{"0":{at},"1":{at}}},"b":{{"0":{at}}}}}"#));
    assert_eq!(
        text(&[("startingOffsets", "earliest")]),
        r#"{"a":{"0":{"offset":0},"1":{"offset":0}},"b":{"0":{"offset":0}}}"#
    );
    let mut again = stream(folder.path(), &[]);
    assert_eq!(again.initial_offset().unwrap(), latest);
    assert_eq!(again.latest_offset(&latest, None).unwrap(), latest);
}

#[test]
fn hostile_offsets_are_refused() {
    let folder = folder();
    write(folder.path());
    let mut stream = stream(folder.path(), &[]);
    for text in [
        "",
        " ",
        "null",
        "5",
        "[]",
        "\"a\"",
        "{",
        r#"{"a":5}"#,
        r#"{"a":[5]}"#,
        r#"{"a":{"x":5}}"#,
        r#"{"a":{"0":"5"}}"#,
        r#"{"a":{"0":null}}"#,
        r#"{"a":{"0":[5]}}"#,
        r#"{"a":{"0":5.5}}"#,
        r#"{"a":{"0":5.0}}"#,
        r#"{"a":{"0":1e2}}"#,
        r#"{"a":{"0":1e999}}"#,
        r#"{"a":{"0":9223372036854775808}}"#,
        r#"{"a":{"0":-9223372036854775809}}"#,
        r#"{"a":{"2147483648":5}}"#,
        r#"{"a":{"0":{}}}"#,
        r#"{"a":{"0":{"offset":null}}}"#,
        r#"{"a":{"0":{"offset":"5"}}}"#,
        r#"{"a":{"0":{"offset":5,"leaderEpoch":2147483648}}}"#,
        r#"{"a":{"0":{"offset":5,"leaderEpoch":"3"}}}"#,
        r#"{"a":{"0":{"offset":5,"crc":-1}}}"#,
        r#"{"a":{"0":{"offset":5,"crc":4294967296}}}"#,
        r#"{"a":{"0":{"offset":5,"topicId":7}}}"#,
        r#"{"a":{"0":{"offset":5,"checksum":7}}}"#,
        r#"{"a":{"0":{"offset":5,"Offset":5}}}"#,
        r#"{"a":{"0":5}} {}"#,
        "{\"a\":{\"0\":5}}\u{0}",
    ] {
        is_refused(&mut stream, text);
    }
    for (opening, closing) in [("[", "]"), ("{\"a\":", "}")] {
        is_refused(&mut stream, &format!("{}{}", opening.repeat(100_000), closing.repeat(100_000)));
        is_refused(
            &mut stream,
            &format!("{{\"a\":{{\"0\":{}{}}}}}", opening.repeat(120), closing.repeat(120)),
        );
    }
    is_refused(&mut stream, &format!("{{\"a\":{{\"0\":{}}}}}", "9".repeat(100_000)));
}

/// Of two positions of one partition, one would be ignored, and its records read twice or never.
#[test]
fn a_partition_twice_is_refused() {
    let folder = folder();
    write(folder.path());
    let mut stream = stream(folder.path(), &[]);
    for text in [
        r#"{"a":{"0":5,"0":6}}"#,
        r#"{"a":{"0":5},"a":{"0":6}}"#,
        r#"{"a":{"0":5},"a":{"1":6}}"#,
        r#"{"a":{"0":5,"00":6}}"#,
        r#"{"a":{"0":5,"+0":6}}"#,
        r#"{"a":{"0":{"offset":5,"offset":6}}}"#,
    ] {
        is_refused(&mut stream, text);
    }
}

#[test]
fn positions_that_no_partition_can_have_are_refused() {
    let folder = folder();
    write(folder.path());
    for loses in ["true", "false"] {
        let mut stream = stream(folder.path(), &[("failOnDataLoss", loses)]);
        for text in [r#"{"a":{"-1":5}}"#, r#"{"a":{"+1":5}}"#, r#"{"a":{"01":5}}"#, r#"{"a":{" 1":5}}"#] {
            is_refused(&mut stream, text);
        }
    }
}

/// Offsets outside the log are lost data: an error, or clipped with a warning.
#[test]
fn extreme_offsets_are_lost_data() {
    let folder = folder();
    write(folder.path());
    for offset in [i64::MIN, -2, -1, 21, i64::MAX - 1, i64::MAX] {
        let text = format!("{{\"a\":{{\"0\":{offset},\"1\":{offset}}},\"b\":{{\"0\":{offset}}}}}");
        let errors = ask(&mut stream(folder.path(), &[]), &text);
        assert!(!errors.is_empty(), "{offset}");
        assert!(errors.iter().all(|error| error.code == Code::SegmentGone), "{offset}: {errors:?}");
        let mut tolerant = stream(folder.path(), &[("failOnDataLoss", "false")]);
        assert!(ask(&mut tolerant, &text).is_empty());
        assert_eq!(tolerant.take_warnings().len(), 3, "one for each partition");
    }
}

#[test]
fn a_limit_of_any_size_is_one_of_each_partition_or_more() {
    let folder = folder();
    write(folder.path());
    let start = r#"{"a":{"0":0,"1":0},"b":{"0":0}}"#;
    for limit in [0, 1, 2, 3, 59, 60, 61, u64::MAX] {
        let end = stream(folder.path(), &[]).latest_offset(start, Some(limit)).unwrap();
        let end: Value = serde_json::from_str(&end).unwrap();
        let read: u64 = [&end["a"]["0"], &end["a"]["1"], &end["b"]["0"]]
            .iter()
            .map(|at| at["offset"].as_u64().unwrap())
            .sum();
        assert!(read >= 3 && read <= limit.max(3), "{read} of {limit}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0i64..25).prop_map(Value::from),
        ".{0,5}".prop_map(Value::from),
    ];
    let name = proptest::sample::select(
        &["a", "b", "0", "1", "-1", "offset", "topicId", "leaderEpoch", "crc", "", "é"][..],
    );
    leaf.prop_recursive(4, 20, 4, move |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => proptest::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|pairs| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(fixed_seed(50))]

    #[test]
    fn random_json_is_an_error_or_an_offset(values in proptest::collection::vec(any_json(), 10..11), cut in 0usize..60) {
        let folder = folder();
        write(folder.path());
        let logs = cache();
        let asked = asked(folder.path(), &[("failOnDataLoss", "false")]);
        let mut stream = Stream::new(query(&asked), Context::new(Arc::clone(&logs))).unwrap();
        for value in values {
            let text = value.to_string();
            let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            for text in [&text, &text[..cut]] {
                for error in ask(&mut stream, text) {
                    assert_eq!(error.code, Code::BadOption, "{text}: {error}");
                }
            }
        }
    }
}
