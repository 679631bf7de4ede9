//! The corpus: partitions written by real Kafka, with the results of Kafka's own classes.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use super::naive::{Batch, Codec, Control, Record, TimestampType};

/// A partition of a case.
#[derive(Debug, Clone)]
pub struct Partition {
    pub case: String,
    /// The name of its directory.
    pub name: String,
    pub dir: PathBuf,
    /// The folder of the expected results.
    pub expected: PathBuf,
    /// From the checkpoint of the data directory.
    pub log_start_offset: Option<i64>,
    pub batches: u64,
    /// Including control records.
    pub records: u64,
    pub control_records: u64,
    /// The case's entry in the manifest.
    pub manifest: &'static Value,
}

/// `tests/golden`.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
    assert!(
        root.join("MANIFEST.json").is_file(),
        "{} is missing: it is part of the repository, and these tests need it",
        root.join("MANIFEST.json").display()
    );
    root
}

/// `MANIFEST.json`, parsed once: it is long.
pub fn manifest() -> &'static Value {
    static MANIFEST: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_slice(&fs::read(root().join("MANIFEST.json")).unwrap()).unwrap());
    &MANIFEST
}

/// A snapshot of producers without its checksum, and the bytes of its entries, sorted: Kafka writes them in
/// the order of a hash map, and reads any.
pub fn sorted_snapshot(bytes: &[u8]) -> (&[u8], &[u8], Vec<&[u8]>) {
    let mut entries: Vec<_> = bytes[10..].chunks(46).collect();
    entries.sort_unstable();
    (&bytes[..2], &bytes[6..10], entries)
}

/// Every partition of every intact case.
pub fn intact() -> Vec<Partition> {
    let mut partitions = Vec::new();
    for manifest in manifest()["cases"].as_array().unwrap() {
        let Some(in_case) = manifest["partitions"].as_array() else { continue };
        for partition in in_case {
            let case = text(&manifest["case"]);
            let name = text(&partition["dir"]);
            let expected = root().join(&case).join("expected");
            let own = expected.join(&name);
            partitions.push(Partition {
                dir: root().join(&case).join(&name),
                expected: if own.is_dir() { own } else { expected },
                case,
                name,
                log_start_offset: partition["checkpoints"]["log_start_offset"].as_i64(),
                batches: partition["batches"].as_u64().unwrap(),
                records: partition["records"].as_u64().unwrap(),
                control_records: partition["control_records"].as_u64().unwrap(),
                manifest,
            });
        }
    }
    partitions
}

/// A case made from an intact one by damage.
#[derive(Debug, Clone)]
pub struct Damaged {
    pub case: String,
    pub dir: PathBuf,
    pub expected: PathBuf,
    /// The intact case.
    pub from: Partition,
    /// The damage.
    pub recipe: Vec<Value>,
    /// The commands of Kafka's classes that ended with an exception.
    failed: Vec<Value>,
}

impl Damaged {
    /// Whether a command of Kafka's classes ended with an exception.
    pub fn fails_in(&self, command: &str) -> bool {
        self.failed.iter().any(|failed| failed["command"] == command)
    }
}

pub fn damaged() -> Vec<Damaged> {
    let intact = intact();
    let mut cases = Vec::new();
    for manifest in manifest()["cases"].as_array().unwrap() {
        let Some(recipe) = manifest["recipe"].as_array() else { continue };
        let (case, name, from) = (text(&manifest["case"]), text(&manifest["dir"]), text(&manifest["from"]));
        let from = intact.iter().find(|p| p.case == from && p.name == name).unwrap().clone();
        let root = root().join(&case);
        let (dir, expected) = (root.join(name), root.join("expected"));
        let failed = manifest["failed"].as_array().cloned().unwrap_or_default();
        cases.push(Damaged { case, dir, expected, from, recipe: recipe.clone(), failed });
    }
    cases
}

/// The lines of a `.jsonl` or `.jsonl.gz`; none if there is no such file.
pub fn lines(path: &Path) -> Vec<Value> {
    let Ok(bytes) = fs::read(path) else { return Vec::new() };
    let text = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        text
    } else {
        String::from_utf8(bytes).unwrap()
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of one type in a file of `expected/`.
pub fn lines_of_type(path: &Path, kind: &str) -> Vec<Value> {
    lines(path).into_iter().filter(|line| line["type"] == kind).collect()
}

/// `records.jsonl.gz`: every batch with its records.
pub fn expected_batches(expected: &Path) -> Vec<Batch> {
    let path = expected.join("records.jsonl.gz");
    let lines = lines(&path);
    assert!(!lines.is_empty(), "{} is missing", path.display());
    let mut batches: Vec<Batch> = Vec::new();
    for line in &lines {
        match line["type"].as_str().unwrap() {
            "batch" => batches.push(batch(line)),
            "record" => batches.last_mut().unwrap().records.push(record(line)),
            _ => {}
        }
    }
    batches
}

fn batch(line: &Value) -> Batch {
    assert_eq!(line["valid"], true);
    Batch {
        segment: number(&line["segment"]),
        position: line["position"].as_u64().unwrap(),
        size: line["size"].as_u64().unwrap(),
        magic: number(&line["magic"]) as u8,
        base_offset: number(&line["baseOffset"]),
        last_offset: number(&line["lastOffset"]),
        count: line["count"].as_i64().map(|count| count as i32),
        codec: match line["codec"].as_str().unwrap() {
            "none" => Codec::None,
            "gzip" => Codec::Gzip,
            "snappy" => Codec::Snappy,
            "lz4" => Codec::Lz4,
            "zstd" => Codec::Zstd,
            other => panic!("codec {other}"),
        },
        timestamp_type: match line["timestampType"].as_str().unwrap() {
            "NoTimestampType" => TimestampType::NoTimestampType,
            "CreateTime" => TimestampType::CreateTime,
            "LogAppendTime" => TimestampType::LogAppendTime,
            other => panic!("timestamp type {other}"),
        },
        base_timestamp: line["baseTimestamp"].as_i64(),
        max_timestamp: number(&line["maxTimestamp"]),
        leader_epoch: number(&line["leaderEpoch"]) as i32,
        producer_id: number(&line["producerId"]),
        producer_epoch: number(&line["producerEpoch"]) as i16,
        base_sequence: number(&line["baseSequence"]) as i32,
        last_sequence: number(&line["lastSequence"]) as i32,
        transactional: line["transactional"].as_bool().unwrap(),
        control: line["control"].as_bool().unwrap(),
        delete_horizon: line["deleteHorizon"].as_i64(),
        crc: number(&line["crc"]) as u32,
        records: Vec::new(),
    }
}

fn record(line: &Value) -> Record {
    let key = bytes(&line["key"]);
    let control = line.get("control").map(|control| {
        let coordinator_epoch = || number(&control["coordinatorEpoch"]) as i32;
        match control["type"].as_str().unwrap() {
            "ABORT" => Control::Abort { coordinator_epoch: coordinator_epoch() },
            "COMMIT" => Control::Commit { coordinator_epoch: coordinator_epoch() },
            name => Control::Other { kind: control_kind(name) },
        }
    });
    Record {
        offset: number(&line["offset"]),
        timestamp: number(&line["timestamp"]),
        sequence: number(&line["sequence"]) as i32,
        key,
        value: bytes(&line["value"]),
        headers: line["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|header| (text(&header[0]).into_bytes(), bytes(&header[1])))
            .collect(),
        control,
    }
}

fn control_kind(name: &str) -> i16 {
    match name {
        "LEADER_CHANGE" => 2,
        "SNAPSHOT_HEADER" => 3,
        "SNAPSHOT_FOOTER" => 4,
        "KRAFT_VERSION" => 5,
        "KRAFT_VOTERS" => 6,
        other => panic!("control type {other}"),
    }
}

pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not an i64"))
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

/// Base64 or null.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut bit_count) = (0u32, 0);
    for c in value.as_str()?.bytes().filter(|&c| c != b'=') {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("{other} in base64"),
        };
        bits = bits << 6 | u32::from(six);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            out.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    Some(out)
}
