//! The texts of records against those of Kafka's `DumpLogSegments`
//! (`tests/vectors/InternalTopicVectors.java`).

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cordwood::inspect::internal_topics::{MessageParser, ParsedRecord, control_record_text};
use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde_json::Value;

const PARSERS: [(&str, MessageParser); 5] = [
    ("offsets", MessageParser::Offsets),
    ("transaction-log", MessageParser::TransactionLog),
    ("cluster-metadata", MessageParser::ClusterMetadata),
    ("share-group-state", MessageParser::ShareGroupState),
    ("remote-log-metadata", MessageParser::RemoteLogMetadata),
];

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/internal_topics.jsonl.gz");
    let path = std::env::var("CORDWOOD_INTERNAL_TOPICS").unwrap_or_else(|_| path.to_owned());
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(row: &Value, name: &str) -> Option<Vec<u8>> {
    row[name].as_str().map(|text| BASE64_STANDARD.decode(text).unwrap())
}

fn text(row: &Value, name: &str) -> Option<String> {
    row[name].as_str().map(str::to_owned)
}

#[test]
fn every_record_has_the_text_of_kafkas_tool() {
    let mut differences = Vec::new();
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for row in vectors() {
        let (key, value) = (bytes(&row, "key_bytes"), bytes(&row, "value_bytes"));
        let (key, value) = (key.as_deref(), value.as_deref());
        let name = row["parser"].as_str().unwrap();
        *rows.entry(name.to_owned()).or_default() += 1;
        let expected = text(&row, "error")
            .map_or_else(|| Ok(ParsedRecord { key: text(&row, "key"), payload: text(&row, "payload") }), Err);
        let found = if name == "control" {
            control_record_text(key, value)
                .map(|text| ParsedRecord { key: None, payload: Some(text) })
                .map_err(|error| error.to_string())
        } else {
            let (_, parser) = PARSERS.iter().find(|(known, _)| *known == name).unwrap();
            parser.parse(row["offset"].as_i64().unwrap(), key, value).map_err(|error| error.message)
        };
        if found != expected {
            differences.push(format!("{row}\n  found {found:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(5)].join("\n")
    );
    assert!(PARSERS.iter().all(|(name, _)| rows[*name] > 20) && rows["control"] > 20, "{rows:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, rng_seed: proptest::test_runner::RngSeed::Fixed(17), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_have_a_text(
        kind in 0u8..30,
        version in 0u8..6,
        key in proptest::collection::vec(any::<u8>(), 0..40),
        value in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..4, Just(0xff)], 0..80),
    ) {
        // a known type and version in front, so that what follows is decoded
        let key = [&[0, kind], &key[..]].concat();
        let framed = [&[1, kind, version], &value[..]].concat();
        let value = [&[0, version], &value[..]].concat();
        for (_, parser) in PARSERS {
            for value in [&value, &framed] {
                let parsed = parser.parse(7, Some(&key), Some(value)).unwrap();
                prop_assert!(parsed.key.is_some() || parsed.payload.is_some());
            }
            prop_assert!(parser.parse(7, Some(&key), None).is_ok());
        }
        _ = control_record_text(Some(&[0, 0, 0, kind % 8]), Some(&value));
    }
}
